// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What an engine sees of memory: GPU virtual addresses in one of 16 VMIDs, translated to host bytes.
// Owned by the device; one implementation walks the guest's page tables, one is a flat array for tests.
// Does not decide who may access what (page tables do) or when translations are dropped (the device does, between two
// steps of an engine; a span is valid only until the step that asked for it returns).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/result.h"

namespace vasicd {

using GpuAddr = std::uint64_t;

enum class Access : std::uint8_t { kRead, kWrite };

enum class FaultKind : std::uint8_t {
  kNotPresent,   // no valid entry at some level
  kNotReadable,  // valid, but without READ
  kNotWritable,  // valid, but without WRITE
  kBadTable,     // an entry points outside the device and guest RAM
  kRefused,      // not present, and the driver says that it will not become so
};

// Why an address has no bytes behind it. Becomes an IH entry (VMC/UTCL2), as on hardware.
struct MemoryFault {
  unsigned vmid = 0;
  GpuAddr va = 0;
  Access access = Access::kRead;
  FaultKind kind = FaultKind::kNotPresent;
  // The driver may still map the page (XNACK): the queue or wave that accessed it raises the fault, stays where it is,
  // and tries again later. Raising the fault again is cheap, because the device bounds the rate of interrupts.
  bool retry = false;
};

template <typename T>
using MemoryResult = base::Expected<T, MemoryFault>;

class Memory {
 public:
  virtual ~Memory() = default;

  // The longest run of contiguous host bytes that backs [va, va + limit): at least one byte, at most `limit`
  // (limit > 0). The bytes are shared with the guest: they may change at any time, so copy before you check.
  virtual MemoryResult<std::span<std::byte>> map(unsigned vmid, GpuAddr va, std::size_t limit, Access access) = 0;

  // Whether a byte that map() gave is the device's own VRAM and not behind its link.
  [[nodiscard]] virtual bool is_local(const std::byte* /*byte*/) const { return true; }

  // Whether faults of the VMID on pages that are not present are to be retried.
  [[nodiscard]] virtual bool retries(unsigned /*vmid*/) const { return false; }

  // Copies out of / into GPU memory, across page boundaries. On a fault a prefix may have been copied.
  MemoryResult<void> read(unsigned vmid, GpuAddr va, std::span<std::byte> out);
  MemoryResult<void> write(unsigned vmid, GpuAddr va, std::span<const std::byte> in);

  // Naturally aligned words with acquire / release order. A misaligned address is aligned down, as hardware does.
  MemoryResult<std::uint32_t> load32(unsigned vmid, GpuAddr va);
  MemoryResult<std::uint64_t> load64(unsigned vmid, GpuAddr va);
  MemoryResult<void> store32(unsigned vmid, GpuAddr va, std::uint32_t value);
  MemoryResult<void> store64(unsigned vmid, GpuAddr va, std::uint64_t value);
  // Atomic add, sequentially consistent; returns the value before.
  MemoryResult<std::uint64_t> fetch_add64(unsigned vmid, GpuAddr va, std::uint64_t operand);
  MemoryResult<std::uint32_t> fetch_add32(unsigned vmid, GpuAddr va, std::uint32_t operand);
};

}  // namespace vasicd
