// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a program must know of a GPU's generation in order to feed it: packet formats and the units of pointers and
// doorbells. Everything follows from what KFD's topology says. Sources: amdkfd/kfd_device.c, kfd_topology.c,
// kfd_queue.c; how ROCr and libhsakmt ring legacy doorbells.
#pragma once

#include <cstdint>

namespace kfdtest {

// What a program stores into an AQL queue's doorbell; the DoorbellType of topology's capability (kfd_sysfs.h).
enum class AqlDoorbell : std::uint8_t {
  kRingDwords = 0,   // PRE_1_0: packets written so far, modulo the ring, in dwords
  kPacketCount = 1,  // 1_0: packets written so far
  kLastPacket = 2,   // 2_0: index of the last packet
};

struct Generation {
  unsigned gfx_level = 9;               // 7..12
  unsigned sdma_format = 2;             // packets/sdma.h: one a generation, from gfx7 on
  unsigned doorbell_bytes = 8;          // bytes of one doorbell
  std::uint32_t doorbell_slice = 8192;  // bytes of doorbells that a process has
  AqlDoorbell aql_doorbell = AqlDoorbell::kLastPacket;
  // KFD takes an AQL ring for twice its size, mapped twice in a row.
  bool aql_ring_mapped_twice = false;
  // Write pointers have 64 bits and never wrap; without it they have 32 bits and wrap with the ring.
  bool endless_write_pointers = true;
  // The driver saves waves when it preempts a queue (CWSR): the queue has a save area.
  bool saves_waves = true;
  // The tests' waves are gfx9 code, which a real gfx942 would run, but a virtual one does not.
  bool runs_gfx9_waves = false;

  static constexpr Generation of(std::uint32_t gfx_target_version, std::uint32_t capability) {
    constexpr std::uint32_t kDoorbellTypeShift = 12;
    constexpr std::uint32_t kDoorbellTypeMask = 3;
    Generation generation;
    generation.gfx_level = gfx_target_version / 10000;
    generation.sdma_format = generation.gfx_level - 7;
    generation.aql_doorbell = static_cast<AqlDoorbell>((capability >> kDoorbellTypeShift) & kDoorbellTypeMask);
    if (generation.gfx_level < 9) {
      generation.doorbell_bytes = 4;
      generation.doorbell_slice = 4096;
      generation.aql_ring_mapped_twice = true;
      generation.endless_write_pointers = false;
    }
    generation.saves_waves = generation.gfx_level > 7;
    constexpr std::uint32_t kGfx900 = 90000;
    constexpr std::uint32_t kGfx90a = 90010;
    generation.runs_gfx9_waves = gfx_target_version >= kGfx900 && gfx_target_version <= kGfx90a;
    return generation;
  }
};

}  // namespace kfdtest
