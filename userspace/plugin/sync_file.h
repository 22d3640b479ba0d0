// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Sync files: descriptors that become readable when work of a GPU has finished (Documentation/driver-api/sync_file.rst
// of Linux). What was finished at the dump is finished after the restore, so a sync file of finished work comes back as
// one of no work at all.
//
// CRIU knows no such anonymous inode, so it calls DUMP_EXT_FILE and RESTORE_EXT_FILE, as for a DMA-buf.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plugin::sync_file {

// How links in /proc/PID/fd name it.
inline constexpr const char* kPath = "anon_inode:sync_file";

enum class State { kPending, kFinished, kFailed };

struct Info {
  State state = State::kPending;
  std::string name;  // of the timeline, or what a program has called it by SYNC_IOC_MERGE
};

// What a descriptor of this process is; nothing: no sync file, or procfs does not show it. `proc` is where procfs is
// mounted.
base::Result<std::optional<Info>> info_of(const std::string& proc, int fd);

// A sync file of finished work with this name, made through an open render node of any driver with sync objects.
base::Result<base::UniqueFd> create_finished(int render, const std::string& name);

}  // namespace plugin::sync_file
