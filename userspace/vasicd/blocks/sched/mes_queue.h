// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A queue as the driver describes it to the MES.
#pragma once

#include <cstdint>

#include "vasicd/blocks/queue/queue_types.h"

namespace vasicd {

struct MesQueue {  // VASIC_CMD_MES_ADD_QUEUE
  std::uint32_t pasid = 0;
  std::uint64_t page_directory = 0;   // as amdgpu_gmc_pd_addr() makes it
  std::uint64_t process_context = 0;  // identifies the process
  std::uint64_t gang_context = 0;     // identifies the gang
  GpuAddr mqd = 0;                    // VMID 0
  GpuAddr wptr_addr = 0;              // in the process
  std::uint32_t doorbell = 0;         // dword index; identifies the queue
  QueueKind kind = QueueKind::kCompute;
  bool exclusive = false;             // one such queue runs at a time
  std::uint32_t process_quantum = 0;  // 100 ns
  std::uint32_t gang_quantum = 0;     // 100 ns
  std::uint32_t priority = 0;
};

}  // namespace vasicd
