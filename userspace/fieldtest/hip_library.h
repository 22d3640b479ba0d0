// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// HIP as the machine has it: libamdhip64 of release 5 or 6, loaded at run time, so that one program runs with both.
// Argument types of call() and state() must be exactly those of HIP's function; structures are those of
// hip/hip_runtime_api.h of HIP 5.7 and later, whose layout differs from that of HIP 5.2.
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace fieldtest {

class HipLibrary {
 public:
  // ENOENT: the machine has none of them.
  static base::Result<HipLibrary> open() {
    HipLibrary hip;
    for (const char* const name : {"libamdhip64.so.6", "libamdhip64.so.5"}) {
      hip.library_ = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
      if (hip.library_ != nullptr) return hip;
    }
    return base::Error(ENOENT, std::string("no library of HIP: ") + ::dlerror());
  }

  // What HIP's function `name` returns.
  template <typename... Arguments>
  [[nodiscard]] base::Result<int> state(const char* name, Arguments... arguments) const {
    void* const symbol = ::dlsym(library_, name);
    if (symbol == nullptr) return base::Error(ENOSYS, std::string("HIP has no ") + name);
    return reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
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
  HipLibrary() = default;
  [[nodiscard]] std::string text_of(int error) const {
    void* const symbol = ::dlsym(library_, "hipGetErrorString");
    if (symbol == nullptr) return "error " + std::to_string(error);
    return reinterpret_cast<const char* (*)(int)>(symbol)(error);
  }

  void* library_ = nullptr;  // never unloaded: HIP has threads of its own
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
