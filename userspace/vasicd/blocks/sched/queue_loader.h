// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Loads a user queue into a hardware slot, for the driver (HQD_LOAD) and for a scheduler.
#pragma once

#include <memory>
#include <string>

#include "vasicd/blocks/queue/mqd.h"
#include "vasicd/blocks/queue/packet_queue.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/context/context.h"

namespace vasicd {

struct UserQueue {
  HqdSlot slot;           // the caller checked that it exists, except for the SDMA engine
  unsigned vmid = 0;      // 0: the MQD says it
  GpuAddr wptr_addr = 0;  // 0: the MQD says it
};
base::Result<std::unique_ptr<PacketQueue>> load_user_queue(EngineContext context, const UserQueue& queue,
                                                           const Mqd& mqd);
base::Result<Mqd> user_mqd_at(const EngineContext& context, QueueKind kind, GpuAddr mqd);
base::Result<std::uint32_t> doorbell_of(const EngineContext& context, QueueKind kind, const Mqd& mqd);
// Whether the MQD could be loaded.
base::Status check_user_queue(const EngineContext& context, QueueKind kind, GpuAddr mqd);

// The name of the queue in this slot, in the trace: "cp.p0.q1", "sdma1.q2".
std::string slot_name(const HqdSlot& slot);

}  // namespace vasicd
