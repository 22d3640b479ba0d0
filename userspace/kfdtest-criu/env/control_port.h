// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A virtual GPU's control socket as a test in the guest uses it: requests, and what `status` says, as values. A machine
// with real GPUs has no such port. The commands are those of userspace/vasicd/control/README.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/client.h"

namespace kfdtest {

inline constexpr const char* kNoControlPort = "no control port: not a virtual GPU";

// A mapped queue, or a kernel ring (VMID 0).
struct QueueStatus {
  std::string name;
  std::string packets;  // sdma, pm4, aql
  std::string state;    // idle, busy, waiting, stopped, hung
  unsigned vmid = 0;
  std::uint64_t rptr = 0;
  std::uint64_t wptr = 0;
};

// Pages of VRAM.
struct PageRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const PageRange&) const = default;
};

class ControlPort {
 public:
  static bool exists();
  // One process at a time has the port; others wait for it. `gpu` counts the machine's virtual GPUs.
  static base::Result<ControlPort> open(unsigned gpu = 0);

  // The lines of the reply.
  base::Result<std::vector<std::string>> request(std::string_view command);
  base::Status tell(std::string_view command);

  // KEY=VALUE of the line of `status` that begins with `noun`.
  base::Result<std::string> status(std::string_view noun, std::string_view key);
  base::Result<std::vector<QueueStatus>> queues();
  // Pages whose contents changed since the last start or diff; the next diff compares with now. A long list is an
  // error.
  base::Result<std::vector<PageRange>> changed_pages();
  // Cancels every request that has not taken effect yet, but for VM faults, which cannot be cancelled.
  base::Status cancel_requests();

 private:
  ControlPort(control::Client client, unsigned gpu) : client_(std::move(client)), gpu_(gpu) {}
  control::Client client_;
  unsigned gpu_;
};

}  // namespace kfdtest
