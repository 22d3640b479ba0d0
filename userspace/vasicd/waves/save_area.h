// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Waves in memory: writes a dispatch in flight to the control stack and the context save area when its queue is
// unmapped, and reads it back. Where both are, and how much of them is used, is the driver's ABI (v9_mqd:
// cp_hqd_ctx_save_*, cp_hqd_cntl_stack_*, cp_hqd_wg_state_offset; kfd_mqd_manager_v9.c, get_wave_state()); their
// contents are defined here. Both may come from a checkpoint image, so everything in them is checked.
//
// The control stack holds at its end: header, launch, progress, two dwords for each group. The context save area begins
// with space for a copy of the control stack; behind it, in the order of the groups: for each wave kWaveStateDwords,
// then its SGPRs, VGPRs and accumulation VGPRs; behind the last wave of a group its LDS.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "vasicd/mem/memory.h"
#include "vasicd/waves/dispatch.h"

namespace vasicd {

// Where a queue's waves are saved.
struct SavePlace {
  GpuAddr stack = 0;  // VMID 0
  std::uint32_t stack_bytes = 0;
  GpuAddr area = 0;  // in the process; its first stack_bytes are for a copy of the stack
  std::uint32_t area_bytes = 0;
  unsigned vmid = 0;
};

// What the MQD says of the saved state: offsets from the beginning of the stack, and of the area.
struct SavedExtent {
  std::uint32_t stack_offset = 0;
  std::uint32_t wave_end = 0;
};

// How many groups of `launch` fit.
[[nodiscard]] std::uint64_t groups_that_fit(gcn::Isa isa, const Launch& launch, const SavePlace& place);

MemoryResult<SavedExtent> save_dispatch(const Dispatch& dispatch, Memory& memory, const SavePlace& place);

// EINVAL: the saved state is invalid; EFAULT: it cannot be read.
base::Result<std::unique_ptr<Dispatch>> restore_dispatch(const vasic_info& info, gcn::Isa isa, Memory& memory,
                                                         const SavePlace& place, const SavedExtent& extent);

}  // namespace vasicd
