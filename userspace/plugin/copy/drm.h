// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// libdrm_amdgpu behind the seam to the operating system: its functions issue ioctls, and a test lets them fail as it
// does system calls (base/os.h). No other file of the plugin calls them directly.
#pragma once

#include <amdgpu.h>
#include <amdgpu_drm.h>

#include <type_traits>

#include "base/os.h"
#include "base/result.h"

namespace plugin::copy {

// `function` answers 0 or -errno; `what` names the call in the error.
template <typename... Parameters>
base::Status drm_call(const char* what, int (*function)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  int result = -os::fault(what);
  if (result == 0) result = function(arguments...);
  if (result != 0) return base::Error::from_errno(-result, what);
  return {};
}

// For what gives an object back: there is nothing to do about a failure.
template <typename... Parameters>
void drm_release(int (*function)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  (void)function(arguments...);
}

}  // namespace plugin::copy
