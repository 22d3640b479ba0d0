// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A runtime of ROCm as the machine has it, loaded at run time, so that one program runs with several releases. Argument
// types of a call must be exactly those of the function; nobody checks them.
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <initializer_list>
#include <string>

#include "base/result.h"

namespace fieldtest {

class RuntimeLibrary {
 public:
  // The first of these that the machine has. ENOENT: it has none.
  static base::Result<RuntimeLibrary> open(std::initializer_list<const char*> names) {
    RuntimeLibrary library;
    for (const char* const name : names) {
      library.handle_ = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
      if (library.handle_ != nullptr) return library;
    }
    return base::Error(ENOENT, std::string("no library of the runtime: ") + ::dlerror());
  }

  // The function `name`; null if this release has none.
  template <typename Function>
  [[nodiscard]] Function* function(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  // What the function `name` returns. ENOSYS: this release has none.
  template <typename... Arguments>
  [[nodiscard]] base::Result<int> state(const char* name, Arguments... arguments) const {
    auto* const called = function<int(Arguments...)>(name);
    if (called == nullptr) return base::Error(ENOSYS, std::string("the runtime has no ") + name);
    return called(arguments...);
  }

  // Calls the function `name`, which returns 0 for success.
  template <typename... Arguments>
  [[nodiscard]] base::Status call(const char* name, Arguments... arguments) const {
    ASSIGN_OR_RETURN(const int status, state(name, arguments...));
    return status == 0 ? base::Status() : base::Error(EIO, std::string(name) + ": status " + std::to_string(status));
  }

 private:
  RuntimeLibrary() = default;
  void* handle_ = nullptr;  // never unloaded: a runtime has threads of its own
};

}  // namespace fieldtest
