// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A run list: which processes with which queues the driver wants to run. Parsed from guest memory with every count
// bounded; no scheduling here.
#pragma once

#include <cstdint>
#include <vector>

#include "packets/pm4_hws.h"
#include "vasicd/blocks/sched/scheduler.h"
#include "vasicd/context/context.h"

namespace vasicd {

struct ParsedRunList {
  std::vector<ProcessRequest> processes;
  const char* error = nullptr;  // why the rest of the list was ignored
};

// amdkfd has 512 processes and by default 4096 queues (amdkfd/kfd_priv.h).
inline constexpr std::size_t kMaxRunListProcesses = 1024;
inline constexpr std::size_t kMaxRunListQueues = 4096;
inline constexpr std::size_t kMaxRunListBuffers = 16;
inline constexpr std::size_t kMaxRunListDwords = 65536;  // length of one buffer

// Reads the buffers that `first` begins, in VMID 0. A packet that chains to a buffer already read loops: the driver's
// way to say "there is more than fits, share the time".
ParsedRunList parse_run_list(Memory& memory, packets::pm4::HwsFormat format, const packets::pm4::RunList& first);

}  // namespace vasicd
