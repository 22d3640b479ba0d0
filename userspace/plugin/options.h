// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every knob of the plugin. The table is in options.cc. An option comes from the first of these that has it: CRIU's own
// plugin options (`--plugin-option amdgpu.NAME=VALUE`), the file /etc/criu/amdgpu-plugin.conf, CRIU's environment.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plugin/copy/copier.h"
#include "plugin/image/pack.h"
#include "plugin/topology/match.h"

namespace plugin {

using CopyMethod = copy::Method;

struct Options {
  topology::GpuMap gpu_map;
  bool check_firmware = true;
  bool check_device_id = true;
  image::Packing compress = image::Packing::kAuto;
  CopyMethod copy = CopyMethod::kAuto;
  std::chrono::seconds fence_timeout{10};
};

inline constexpr const char* kOptionsFile = "/etc/criu/amdgpu-plugin.conf";

struct OptionSources {
  // As CRIU gives them to all plugins: "--PLUGIN.NAME=VALUE"; the last of several counts. Ours are of the plugins
  // "amdgpu" and "amdgpu_plugin", those of others are skipped.
  std::vector<std::string> arguments;
  // Lines "NAME=VALUE"; empty lines and those that begin with '#' are skipped.
  std::string file;
  // std::getenv or a test's stand-in.
  std::function<const char*(const char*)> environment;
};

// An option that does not exist or a value that cannot be understood is an error that says where it stands.
base::Result<Options> read_options(const OptionSources& sources);

}  // namespace plugin
