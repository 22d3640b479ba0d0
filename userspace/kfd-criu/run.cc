// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfd-criu/run.h"

#include <cerrno>

#include "kfd-criu/names.h"

namespace kfd_criu {
namespace {

base::Result<Exit> run_command(const Options& options, const Output& output) {
  switch (options.command) {
    case Command::kShow:
      return run_show(options, output);
    case Command::kVerify:
      return run_verify(options, output);
    case Command::kDiff:
      return run_diff(options, output);
    case Command::kFlatten:
      return run_flatten(options, output);
    case Command::kTopology:
      break;
  }
  return run_topology(options, output);
}

}  // namespace

// The readers of plugin/image say EINVAL of what is wrong in a file, and ENOENT of a file that should be beside it.
Exit status_of(const base::Error& error) {
  return error.code() == EINVAL || error.code() == ENOENT ? Exit::kDiffers : Exit::kUnreadable;
}

Exit worse(Exit a, Exit b) {
  for (const Exit status : {Exit::kDiffers, Exit::kUnreadable})
    if (a == status || b == status) return status;
  return Exit::kGood;
}

Exit run(const std::vector<std::string>& arguments, const Output& output) {
  const ParsedOptions parsed = parse_options(arguments);
  output.out << parsed.out;
  output.error << parsed.error;
  if (!parsed.options) return parsed.status;
  const auto status = run_command(*parsed.options, output);
  if (!status.ok()) {
    output.error << "kfd-criu: error: " << printable(status.error().message()) << '\n';
    return Exit::kUnreadable;
  }
  output.out.flush();
  if (output.out.fail()) {
    output.error << "kfd-criu: error: the output could not be written\n";
    return Exit::kUnreadable;
  }
  return *status;
}

}  // namespace kfd_criu
