// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Owner of an mmap()ed range.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "base/os.h"
#include "base/result.h"

namespace base {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      unmap();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { unmap(); }

  // Maps [offset, offset + size) of fd, shared, readable and writable. `what` names it in the error.
  static Result<Mapping> shared(int fd, std::size_t size, off_t offset, std::string_view what) {
    return create(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset, what);
  }
  // Zeroed private memory.
  static Result<Mapping> anonymous(std::size_t size, std::string_view what) {
    return create(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, what);
  }
  // Zeroed memory that forks of this process share with it.
  static Result<Mapping> shared_anonymous(std::size_t size, std::string_view what) {
    return create(size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0, what);
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), size_}; }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static Result<Mapping> create(std::size_t size, int prot, int flags, int fd, off_t offset, std::string_view what) {
    void* data = os::mmap(nullptr, size, prot, flags, fd, offset);
    if (data == MAP_FAILED) return Error::from_errno(errno, what);
    Mapping mapping;
    mapping.data_ = data;
    mapping.size_ = size;
    return mapping;
  }
  void unmap() {
    if (data_ != nullptr) os::munmap(data_, size_);
    data_ = nullptr;
    size_ = 0;
  }

  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace base
