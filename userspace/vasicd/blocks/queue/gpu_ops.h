// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What SDMA and PM4 packets have in common to do with memory: compare, atomics, copies, fills. Does not know any
// packet.
#pragma once

#include <cstdint>

#include "packets/compare.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/context/context.h"

namespace vasicd {

[[nodiscard]] bool compare_holds(packets::Compare function, std::uint32_t value, std::uint32_t reference);

// Executes the atomic of packets/atomic.h that has this code. False: a compare-swap that did not swap. `header` is
// that of the packet, for the error.
QueueResult<bool> apply_atomic(Memory& memory, unsigned vmid, GpuAddr addr, std::uint32_t code, std::uint64_t src,
                               std::uint64_t compare, std::uint32_t header);

// memmove between two GPU ranges of one VMID; returns how many of the bytes crossed the device's link.
MemoryResult<std::uint64_t> copy_bytes(Memory& memory, unsigned vmid, GpuAddr dst, GpuAddr src, std::uint64_t bytes);
// Copies all bytes at once and charges the link for them, which may be busy for longer afterwards.
MemoryResult<void> copy_all(const EngineContext& context, unsigned vmid, GpuAddr dst, GpuAddr src, std::uint64_t bytes);
// Copies as many of `bytes` as the budget and the speed of the link allow, and returns how many. 0: the link is busy.
MemoryResult<std::uint64_t> copy_some(const EngineContext& context, unsigned vmid, GpuAddr dst, GpuAddr src,
                                      std::uint64_t bytes, Budget& budget);
// Repeats the four bytes of `pattern`; the first byte written is byte `phase` % 4 of it.
MemoryResult<void> fill_bytes(Memory& memory, unsigned vmid, GpuAddr dst, std::uint32_t pattern, std::uint64_t phase,
                              std::uint64_t bytes);
// Fills as many of `bytes` as the budget allows, and returns how many.
MemoryResult<std::uint64_t> fill_some(Memory& memory, unsigned vmid, GpuAddr dst, std::uint32_t pattern,
                                      std::uint64_t phase, std::uint64_t bytes, Budget& budget);

}  // namespace vasicd
