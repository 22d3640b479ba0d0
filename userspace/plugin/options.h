// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every knob of the plugin, read from the environment of CRIU. The table is in options.cc.
#pragma once

#include <chrono>
#include <functional>

#include "base/result.h"
#include "plugin/topology/match.h"

namespace plugin {

enum class CopyMethod { kAuto, kSdma, kCpu };

struct Options {
  topology::GpuMap gpu_map;
  bool check_firmware = true;
  CopyMethod copy = CopyMethod::kAuto;
  std::chrono::seconds fence_timeout{10};
};

// `get` is std::getenv or a test's stand-in. A value that cannot be understood is an error that names it.
base::Result<Options> read_options(const std::function<const char*(const char*)>& get);

}  // namespace plugin
