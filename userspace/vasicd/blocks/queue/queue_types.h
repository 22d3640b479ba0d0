// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the driver, the schedulers and the engines call a queue: its kind, its place, how it is stopped, how it looks
// from outside. Plain values, without behaviour.
#pragma once

#include <cstdint>
#include <string>

#include "vasicd/mem/memory.h"

namespace vasicd {

enum class RingKind : std::uint8_t { kSdma, kCompute };  // vasic_ring_kind

struct KernelRing {  // VASIC_CMD_RING_LOAD
  RingKind kind = RingKind::kSdma;
  unsigned instance = 0;
  GpuAddr base = 0;  // VMID 0
  std::uint64_t size = 0;
  GpuAddr rptr_addr = 0;
  GpuAddr wptr_addr = 0;
  std::uint32_t doorbell = 0;
};

enum class QueueKind : std::uint8_t { kCompute, kHiq, kSdma };
enum class UnloadMode : std::uint8_t { kDrain, kSave, kReset };

struct HqdSlot {
  QueueKind kind = QueueKind::kCompute;
  unsigned pipe = 0;  // SDMA: engine
  unsigned slot = 0;
  unsigned xcc = 0;
};

struct HqdState {
  bool occupied = false;
  GpuAddr pq_base = 0;
};

// A mapped queue as the control socket shows it.
struct QueueStatus {
  enum class State : std::uint8_t {
    kIdle,     // nothing to execute
    kBusy,     // packets left
    kWaiting,  // at a packet that waits
    kStopped,  // after an error
    kHung,     // Controls::hang
  };
  std::string name;
  const char* packets = "";  // "sdma", "pm4", "aql"
  unsigned vmid = 0;         // 0: a kernel ring
  std::uint64_t rptr = 0;    // SDMA: bytes, PM4: dwords, AQL: packets; so is wptr
  std::uint64_t wptr = 0;
  State state = State::kIdle;
};

}  // namespace vasicd
