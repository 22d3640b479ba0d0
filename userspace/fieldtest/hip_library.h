// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// HIP of release 5 or 6, as the machine has it. Structures are those of hip/hip_runtime_api.h of HIP 5.7 and later,
// whose layout differs from that of HIP 5.2.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "fieldtest/runtime_library.h"

namespace fieldtest {

class HipLibrary {
 public:
  static base::Result<HipLibrary> open() {
    ASSIGN_OR_RETURN(const RuntimeLibrary library, RuntimeLibrary::open({"libamdhip64.so.6", "libamdhip64.so.5"}));
    return HipLibrary(library);
  }

  // What HIP's function `name` returns.
  template <typename... Arguments>
  [[nodiscard]] base::Result<int> state(const char* name, Arguments... arguments) const {
    return library_.state(name, arguments...);
  }

  // Calls HIP's function `name`; the error has its name and HIP's text.
  template <typename... Arguments>
  [[nodiscard]] base::Status call(const char* name, Arguments... arguments) const {
    ASSIGN_OR_RETURN(const int error, state(name, arguments...));
    return error == 0 ? base::Status() : base::Error(EIO, std::string(name) + ": " + text_of(error));
  }

  [[nodiscard]] base::Status copy(void* to, const void* from, std::size_t size) const {
    constexpr int kDefault = 4;  // hipMemcpyDefault: HIP knows whose memory it is
    return call("hipMemcpy", to, from, size, kDefault);
  }

 private:
  explicit HipLibrary(const RuntimeLibrary& library) : library_(library) {}
  [[nodiscard]] std::string text_of(int error) const {
    auto* const text = library_.function<const char*(int)>("hipGetErrorString");
    return text == nullptr ? "error " + std::to_string(error) : text(error);
  }

  RuntimeLibrary library_;
};

// hipMemLocation
struct HipLocation {
  int type = 1;  // hipMemLocationTypeDevice
  int id = 0;
};

// hipMemAllocationProp
struct HipAllocationProperties {
  int type = 1;              // hipMemAllocationTypePinned
  int requested_handle = 1;  // hipMemHandleTypePosixFileDescriptor
  HipLocation location;
  void* windows_metadata = nullptr;
  std::uint8_t compression = 0;
  std::uint8_t rdma = 0;
  std::uint16_t usage = 0;
};

// hipMemAccessDesc
struct HipAccess {
  HipLocation location;
  int flags = 3;  // hipMemAccessFlagsProtReadWrite
};

}  // namespace fieldtest
