// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Sync files that programs have. What they say does not change once their work has finished.
#include <algorithm>
#include <cerrno>

#include "plugin/preflight.h"
#include "plugin/wait_for_gpu.h"

namespace plugin::preflight {
namespace {

using base::Error;
using base::Result;
using base::Status;

Status refuse_unfinished(const Services& services, const OpenFile& file, Deadline deadline) {
  sync_file::Info info;
  TRY(wait_for_gpu(deadline, "it", [&]() -> Result<bool> {
    ASSIGN_OR_RETURN(const auto found, services.find_sync_file(file.fd.get()));
    if (!found) return Error(EPROTO, "procfs does not say that it is a sync file");
    info = *found;
    return info.state != sync_file::State::kPending;
  }));
  if (info.state == sync_file::State::kFinished) return {};
  return Error(EOPNOTSUPP,
               "its work has failed, and the kernel makes no sync file of failed work; let the program "
               "close it before the dump");
}

}  // namespace

Status refuse_sync_files(const Services& services, const Tree& tree) {
  const Deadline deadline = std::chrono::steady_clock::now() + services.options.fence_timeout;
  const bool has_render_node = std::any_of(tree.files.begin(), tree.files.end(), [](const OpenFile& file) {
    return file.device.kind == DeviceKind::kRender;
  });
  for (const OpenFile& file : tree.files) {
    if (file.device.kind != DeviceKind::kSyncFile) continue;
    if (!has_render_node)
      return Error(EOPNOTSUPP, tree.name_of(file) +
                                   ": no program has a render node of a GPU open, through which a "
                                   "restore would make it");
    if (auto status = refuse_unfinished(services, file, deadline); !status.ok())
      return std::move(status).error().wrap(tree.name_of(file));
  }
  return {};
}

}  // namespace plugin::preflight
