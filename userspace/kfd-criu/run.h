// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The whole program but for its streams. Errors are printed here and in the commands' own lines, never below.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "kfd-criu/options.h"

namespace kfd_criu {

// Where a command prints.
struct Output {
  std::ostream& out;
  std::ostream& error;
};

// One command each. An error means that the command could not begin; its status is that of status_of().
base::Result<Exit> run_show(const Options& options, const Output& output);
base::Result<Exit> run_verify(const Options& options, const Output& output);
base::Result<Exit> run_diff(const Options& options, const Output& output);
base::Result<Exit> run_flatten(const Options& options, const Output& output);
base::Result<Exit> run_topology(const Options& options, const Output& output);

// kDiffers when the image itself is wrong, kUnreadable when the file could not be read.
[[nodiscard]] Exit status_of(const base::Error& error);
// The status of two parts together: one that is damaged decides, then one that cannot be read.
[[nodiscard]] Exit worse(Exit a, Exit b);

Exit run(const std::vector<std::string>& arguments, const Output& output);

}  // namespace kfd_criu
