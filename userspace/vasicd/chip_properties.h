// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What follows from a row of chip_table.h: what amdkfd and vasicd do with the chip. `vasicd --list-chips --json` prints
// it, and the tests choose by it what runs on a chip and which skips are expected there. A property is computed here
// and nowhere else. Does not know what a specification or a module parameter changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vasicd/chip_table.h"

namespace vasicd {

// Who maps a process's queues to the hardware. Names as in the JSON: none, hws, mes.
enum class QueueScheduler : std::uint8_t {
  kNone,  // amdkfd itself loads each queue
  kHws,   // the firmware, by packets on the HIQ
  kMes,   // the firmware, by commands to MES
};

struct ChipProperties {
  std::uint32_t gfx_target_version;  // as amdkfd's sysfs prints it: 90010 is gfx90a
  QueueScheduler scheduler;
  bool executes_waves;         // vasicd has an interpreter for this chip's instructions
  bool saves_waves;            // amdkfd saves the waves of a queue that it preempts (CWSR)
  bool svm;                    // amdkfd offers the SVM ioctl
  bool xgmi_sdma;              // in a hive, amdkfd has SDMA engines for XGMI
  bool gws;                    // amdkfd offers global wave sync
  bool debugger;               // amdkfd debugs programs that use it
  bool packet_error_events;    // amdkfd reports a bad packet to the program
  bool vendor_packets;         // the CP executes vendor-specific AQL packets
  bool sparse_ptes;            // page table entries can be sparse (PRT)
  bool aql_ring_mapped_twice;  // amdkfd maps an AQL ring twice in a row, and cannot update such a queue
};

[[nodiscard]] ChipProperties properties_of(const Chip& chip);

// An array with an object for each chip, one a line.
[[nodiscard]] std::string chips_as_json();

}  // namespace vasicd
