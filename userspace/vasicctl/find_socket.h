// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Finds the control socket when the command line names none.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "vasicctl/options.h"

namespace vasicctl {

// In this order: --socket; --vm; `environment` ($VASIC_CONTROL); the only socket in `vm_dir`, the folder in which
// scripts/vm.sh keeps a folder for each virtual machine. Links are resolved: a socket's path must be short.
base::Result<std::string> find_socket(const Options& options, const char* environment,
                                      const std::filesystem::path& vm_dir);

// out/vm of the project around `from` (a folder that has scripts/vm.sh), else out/vm below `from`.
std::filesystem::path find_vm_dir(const std::filesystem::path& from, const char* out_dir);

}  // namespace vasicctl
