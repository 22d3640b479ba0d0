// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Loading of the object that executes a queue, by its kind.
#include "vasicd/blocks/sched/queue_loader.h"

#include <cerrno>
#include <string>

#include "vasicd/blocks/cp/cp_queue.h"
#include "vasicd/blocks/queue/hqd.h"
#include "vasicd/blocks/sdma/sdma_queue.h"

namespace vasicd {

std::string slot_name(const HqdSlot& slot) {
  const char* const engine = slot.kind == QueueKind::kSdma ? "sdma" : "cp.p";
  return engine + std::to_string(slot.pipe) + ".q" + std::to_string(slot.slot);
}

base::Result<Mqd> user_mqd_at(const EngineContext& context, QueueKind kind, GpuAddr mqd) {
  return kind == QueueKind::kSdma ? sdma_mqd_at(context, mqd) : compute_mqd_at(context, mqd);
}

base::Result<std::uint32_t> doorbell_of(const EngineContext& context, QueueKind kind, const Mqd& mqd) {
  const unsigned level = context.info.gfx_level;
  if (kind == QueueKind::kSdma) {
    ASSIGN_OR_RETURN(const SdmaHqd hqd, read_sdma_mqd(packets::mqd::sdma_layout(level), mqd));
    return hqd.doorbell;
  }
  ASSIGN_OR_RETURN(const ComputeHqd hqd, read_compute_mqd(packets::mqd::compute_layout(level), mqd));
  return hqd.doorbell;
}

base::Status check_user_queue(const EngineContext& context, QueueKind kind, GpuAddr mqd) {
  ASSIGN_OR_RETURN(const Mqd place, user_mqd_at(context, kind, mqd));
  ASSIGN_OR_RETURN([[maybe_unused]] const std::uint32_t doorbell, doorbell_of(context, kind, place));
  return {};
}

base::Result<std::unique_ptr<PacketQueue>> load_user_queue(EngineContext context, const UserQueue& queue,
                                                           const Mqd& mqd) {
  const HqdSlot& slot = queue.slot;
  if (slot.kind == QueueKind::kSdma) {
    if (slot.pipe >= context.info.sdma_count) return base::Error(EINVAL, "no such SDMA engine");
    ASSIGN_OR_RETURN(std::unique_ptr<PacketQueue> loaded,
                     SdmaQueue::load_user(context, slot_name(slot), slot.pipe, queue.vmid, mqd, queue.wptr_addr));
    return loaded;
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<PacketQueue> loaded,
      ComputeQueue::load(context, slot_name(slot), {slot.pipe, slot.slot}, queue.vmid, mqd, queue.wptr_addr));
  return loaded;
}

}  // namespace vasicd
