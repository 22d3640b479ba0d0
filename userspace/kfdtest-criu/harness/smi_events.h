// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// KFD's system management events of one GPU: what the driver says it did to the process. One line an event, as
// linux/kfd_ioctl.h describes them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/client.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

// enum kfd_smi_event
enum class SmiKind : std::uint32_t {
  kVmFault = 1,
  kGpuPreReset = 3,
  kGpuPostReset = 4,
  kMigrateStart = 5,
  kMigrateEnd = 6,
  kPageFaultStart = 7,
  kPageFaultEnd = 8,
  kQueueEviction = 9,
  kQueueRestore = 10,
  kUnmapFromGpu = 11,
  kOfAllProcesses = 64,  // a flag, not a kind: events of other processes, too
};

// enum KFD_QUEUE_EVICTION_TRIGGERS
enum class EvictionTrigger : std::uint32_t { kSvm = 0, kUserptr = 1, kTtm = 2, kSuspend = 3, kCriuCheckpoint = 4 };

class SmiEvents {
 public:
  // Subscribes to events that happen from now on.
  static base::Result<SmiEvents> open(const Gpu& gpu, std::initializer_list<SmiKind> kinds);
  // For a process that has no session.
  static base::Result<SmiEvents> open(const kfd::Client& client, std::uint32_t gpu_id,
                                      std::initializer_list<SmiKind> kinds);

  // Waits for an event, for which `text` stands somewhere behind its number; returns its line.
  base::Result<std::string> wait_for(SmiKind kind, const std::string& text = "", Duration limit = kDeadline);
  base::Status wait_for_eviction(EvictionTrigger trigger);

 private:
  explicit SmiEvents(base::UniqueFd file) : file_(std::move(file)) {}
  void read_lines();

  base::UniqueFd file_;
  std::vector<std::string> lines_;  // read, but not returned by wait_for() yet
  std::string partial_;
};

}  // namespace kfdtest
