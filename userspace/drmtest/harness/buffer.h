// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Owners of amdgpu's resources: a BO, a range of GPU addresses, and both together as a Buffer that CPU and GPU use.
// They do not outlive their device.
#pragma once

#include <cstdint>
#include <span>

#include "drmtest/env/device.h"

namespace drmtest {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kReadWriteExecute =
    AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_PAGE_EXECUTABLE;

struct BoSpec {
  std::uint64_t size = kPage;
  std::uint32_t heap = AMDGPU_GEM_DOMAIN_GTT;
  std::uint64_t flags = 0;
  std::uint64_t alignment = kPage;
};
[[nodiscard]] inline BoSpec gtt(std::uint64_t size) { return {.size = size}; }
// VRAM that the CPU can reach.
[[nodiscard]] inline BoSpec vram(std::uint64_t size) {
  return {.size = size, .heap = AMDGPU_GEM_DOMAIN_VRAM, .flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED};
}

class Bo {
 public:
  static base::Result<Bo> create(const Device& device, const BoSpec& spec);
  // Takes ownership of `handle`.
  Bo(amdgpu_bo_handle handle, std::uint64_t size) : handle_(handle), size_(size) {}
  Bo(Bo&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), size_(other.size_), cpu_(std::exchange(other.cpu_, nullptr)) {}
  Bo& operator=(Bo&&) = delete;
  Bo(const Bo&) = delete;
  Bo& operator=(const Bo&) = delete;
  ~Bo();

  [[nodiscard]] amdgpu_bo_handle handle() const { return handle_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Maps it for the CPU on first use.
  base::Result<std::span<std::uint32_t>> words();
  // Removes the mapping of words(); the next call of it makes another one.
  base::Status forget_words();
  // The GEM handle of this process and device.
  [[nodiscard]] base::Result<std::uint32_t> kms() const;
  [[nodiscard]] base::Result<base::UniqueFd> dma_buf() const;

 private:
  amdgpu_bo_handle handle_ = nullptr;
  std::uint64_t size_ = 0;
  void* cpu_ = nullptr;
};

// A range of GPU addresses, reserved but without a mapping.
class AddressRange {
 public:
  static base::Result<AddressRange> reserve(const Device& device, std::uint64_t size, std::uint64_t alignment = kPage);
  AddressRange(AddressRange&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), begin_(other.begin_) {}
  AddressRange& operator=(AddressRange&&) = delete;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();

  [[nodiscard]] std::uint64_t begin() const { return begin_; }

 private:
  AddressRange(amdgpu_va_handle handle, std::uint64_t begin) : handle_(handle), begin_(begin) {}
  amdgpu_va_handle handle_ = nullptr;
  std::uint64_t begin_ = 0;
};

// A mapped BO. Words are 32 bits; the CPU side is there unless the BO forbids it.
class Buffer {
 public:
  static base::Result<Buffer> create(const Device& device, const BoSpec& spec);
  // Maps a BO that came from elsewhere; `cpu` may be empty.
  static base::Result<Buffer> map(const Device& device, Bo bo, std::span<std::uint32_t> cpu);
  Buffer(Buffer&& other) noexcept
      : bo_(std::move(other.bo_)),
        range_(std::move(other.range_)),
        words_(other.words_),
        mapped_(std::exchange(other.mapped_, false)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  [[nodiscard]] const Bo& bo() const { return bo_; }
  [[nodiscard]] amdgpu_bo_handle handle() const { return bo_.handle(); }
  [[nodiscard]] std::uint64_t address(std::uint64_t offset = 0) const { return range_.begin() + offset; }
  [[nodiscard]] std::uint64_t size() const { return bo_.size(); }
  [[nodiscard]] std::span<std::uint32_t> words() const { return words_; }
  // The GPU writes behind the compiler's back.
  [[nodiscard]] std::uint32_t load(std::size_t index) const {
    return __atomic_load_n(&words_[index], __ATOMIC_ACQUIRE);
  }
  void store(std::size_t index, std::uint32_t value) const {
    __atomic_store_n(&words_[index], value, __ATOMIC_RELEASE);
  }
  void fill(std::uint32_t value) const;

 private:
  Buffer(Bo bo, AddressRange range) : bo_(std::move(bo)), range_(std::move(range)) {}
  Bo bo_;
  AddressRange range_;
  std::span<std::uint32_t> words_;
  bool mapped_ = false;
};

// Word i of a pattern is a mix of seed and i, so that neither a shift nor another seed matches.
void write_pattern(std::span<std::uint32_t> words, std::uint32_t seed);
// The index of the first word that is not the pattern's; words.size() if there is none.
[[nodiscard]] std::size_t first_mismatch(std::span<const std::uint32_t> words, std::uint32_t seed);

}  // namespace drmtest
