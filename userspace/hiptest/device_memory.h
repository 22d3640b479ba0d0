// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Owns memory of a GPU and frees it in its destructor, and returns HIP's errors as values.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cerrno>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hiptest {

inline base::Status checked(hipError_t error, const char* what) {
  if (error == hipSuccess) return {};
  return base::Error(EIO, std::string(what) + ": " + hipGetErrorString(error));
}

// Returns whether the launch before it succeeded, and waits until the GPU has finished.
inline base::Status finished() {
  TRY(checked(hipGetLastError(), "launch"));
  return checked(hipDeviceSynchronize(), "hipDeviceSynchronize");
}

template <typename T>
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static base::Result<DeviceMemory> allocate(std::size_t count) {
    DeviceMemory memory;
    TRY(checked(hipMalloc(reinterpret_cast<void**>(&memory.data_), count * sizeof(T)), "hipMalloc"));
    memory.count_ = count;
    return memory;
  }
  static base::Result<DeviceMemory> copy_of(const std::vector<T>& values) {
    ASSIGN_OR_RETURN(DeviceMemory memory, allocate(values.size()));
    TRY(memory.store(values));
    return memory;
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) static_cast<void>(hipFree(data_));
  }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] int count() const { return static_cast<int>(count_); }

  // Precondition: `values` has as many elements as the memory.
  base::Status store(const std::vector<T>& values) const {
    return checked(hipMemcpy(data_, values.data(), count_ * sizeof(T), hipMemcpyHostToDevice), "hipMemcpy to device");
  }
  base::Result<std::vector<T>> load() const {
    std::vector<T> values(count_);
    TRY(checked(hipMemcpy(values.data(), data_, count_ * sizeof(T), hipMemcpyDeviceToHost), "hipMemcpy to host"));
    return values;
  }
  base::Status clear() const { return checked(hipMemset(data_, 0, count_ * sizeof(T)), "hipMemset"); }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace hiptest
