// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Life of BOs and mappings.
#include "drmtest/harness/buffer.h"

#include <algorithm>

namespace drmtest {
namespace {

constexpr std::uint32_t kMix = 0x9e3779b1;

constexpr std::uint32_t pattern_word(std::uint32_t seed, std::size_t index) {
  const std::uint32_t word = (static_cast<std::uint32_t>(index) + seed * kMix) * kMix;
  return word ^ (word >> 15);
}

}  // namespace

base::Result<Bo> Bo::create(const Device& device, const BoSpec& spec) {
  amdgpu_bo_alloc_request request{};
  request.alloc_size = spec.size;
  request.phys_alignment = spec.alignment;
  request.preferred_heap = spec.heap;
  request.flags = spec.flags;
  amdgpu_bo_handle handle = nullptr;
  TRY(check(amdgpu_bo_alloc(device.handle(), &request, &handle), "amdgpu_bo_alloc"));
  return Bo(handle, spec.size);
}

Bo::~Bo() {
  if (handle_ == nullptr) return;
  if (cpu_ != nullptr) amdgpu_bo_cpu_unmap(handle_);
  amdgpu_bo_free(handle_);
}

base::Result<std::span<std::uint32_t>> Bo::words() {
  if (cpu_ == nullptr) TRY(check(amdgpu_bo_cpu_map(handle_, &cpu_), "amdgpu_bo_cpu_map"));
  return std::span(static_cast<std::uint32_t*>(cpu_), size_ / sizeof(std::uint32_t));
}

base::Status Bo::forget_words() {
  if (std::exchange(cpu_, nullptr) == nullptr) return {};
  return check(amdgpu_bo_cpu_unmap(handle_), "amdgpu_bo_cpu_unmap");
}

base::Result<std::uint32_t> Bo::kms() const {
  std::uint32_t handle = 0;
  TRY(check(amdgpu_bo_export(handle_, amdgpu_bo_handle_type_kms, &handle), "export of a GEM handle"));
  return handle;
}

base::Result<base::UniqueFd> Bo::dma_buf() const {
  std::uint32_t fd = 0;
  TRY(check(amdgpu_bo_export(handle_, amdgpu_bo_handle_type_dma_buf_fd, &fd), "export of a dma-buf"));
  return base::UniqueFd(static_cast<int>(fd));
}

base::Result<AddressRange> AddressRange::reserve(const Device& device, std::uint64_t size, std::uint64_t alignment) {
  std::uint64_t begin = 0;
  amdgpu_va_handle handle = nullptr;
  TRY(check(amdgpu_va_range_alloc(device.handle(), amdgpu_gpu_va_range_general, size, alignment, 0, &begin, &handle, 0),
            "amdgpu_va_range_alloc"));
  return AddressRange(handle, begin);
}

AddressRange::~AddressRange() {
  if (handle_ != nullptr) amdgpu_va_range_free(handle_);
}

base::Result<Buffer> Buffer::create(const Device& device, const BoSpec& spec) {
  ASSIGN_OR_RETURN(Bo bo, Bo::create(device, spec));
  std::span<std::uint32_t> words;
  if ((spec.flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS) == 0) {
    ASSIGN_OR_RETURN(words, bo.words());
  }
  return map(device, std::move(bo), words);
}

base::Result<Buffer> Buffer::map(const Device& device, Bo bo, std::span<std::uint32_t> cpu) {
  ASSIGN_OR_RETURN(AddressRange range, AddressRange::reserve(device, bo.size()));
  Buffer buffer(std::move(bo), std::move(range));
  TRY(check(amdgpu_bo_va_op(buffer.handle(), 0, buffer.size(), buffer.address(), 0, AMDGPU_VA_OP_MAP),
            "amdgpu_bo_va_op map"));
  buffer.words_ = cpu;
  buffer.mapped_ = true;
  return buffer;
}

Buffer::~Buffer() {
  if (mapped_) amdgpu_bo_va_op(handle(), 0, size(), address(), 0, AMDGPU_VA_OP_UNMAP);
}

void Buffer::fill(std::uint32_t value) const { std::fill(words_.begin(), words_.end(), value); }

void write_pattern(std::span<std::uint32_t> words, std::uint32_t seed) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = pattern_word(seed, i);
}

std::size_t first_mismatch(std::span<const std::uint32_t> words, std::uint32_t seed) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] != pattern_word(seed, i)) return i;
  return words.size();
}

}  // namespace drmtest
