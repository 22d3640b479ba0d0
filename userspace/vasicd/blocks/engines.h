// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Everything of one GPU that consumes packets: SDMA engines, the compute command processor, and the hardware
// scheduler behind the HIQ. The device calls this; nothing else does. Not thread safe: one device, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "packets/words.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/blocks/sched/mes_queue.h"
#include "vasicd/context/context.h"

struct vasic_info;

namespace vasicd {

class Engines {
 public:
  // `info` describes the chip and is the device's private copy, not the guest's page; it outlives the engines.
  static std::unique_ptr<Engines> create(const vasic_info& info, EngineContext context);
  virtual ~Engines() = default;

  virtual base::Status load_ring(const KernelRing& ring) = 0;
  // ETIME, and the ring stays loaded, if it hangs and `mode` is not kReset.
  virtual base::Status unload_ring(RingKind kind, unsigned instance, UnloadMode mode) = 0;
  // Empties the doorbell of a queue, before the driver reads the write pointer that it puts into the MQD.
  virtual base::Status prepare_hqd(const HqdSlot& slot, GpuAddr mqd) = 0;
  virtual base::Status load_hqd(const HqdSlot& slot, GpuAddr mqd, unsigned vmid) = 0;
  virtual base::Status unload_hqd(const HqdSlot& slot, UnloadMode mode) = 0;
  virtual base::Result<HqdState> query_hqd(const HqdSlot& slot) = 0;
  // For an SDMA queue whose MQD has no address: the MQD is passed, and returned, as words.
  virtual base::Status prepare_hqd_value(const HqdSlot& slot, packets::WordView mqd) = 0;
  virtual base::Status load_hqd_value(const HqdSlot& slot, packets::WordView mqd) = 0;
  virtual base::Result<packets::Words> unload_hqd_value(const HqdSlot& slot, UnloadMode mode) = 0;

  // Requests to the MES; EOPNOTSUPP on a chip without one. ETIME: a queue or the MES hangs, and nothing has changed.
  virtual base::Status mes_add_queue(const MesQueue& queue) = 0;
  virtual base::Status mes_remove_queue(std::uint32_t doorbell, std::uint64_t gang) = 0;
  virtual base::Status mes_suspend(std::uint64_t gang) = 0;  // 0: every gang
  virtual base::Status mes_resume(std::uint64_t gang) = 0;   // 0: every gang
  virtual base::Status mes_reset_queue(std::uint32_t doorbell) = 0;

  virtual void reset() = 0;

  // Advances every mapped queue by a bounded amount (at most about a millisecond of work in all); true if anything
  // advanced. A queue that waits (WAIT_REG_MEM, barrier, POLL_REGMEM) does not count as advancing.
  virtual bool step() = 0;
  // Whether doorbells must be polled at all.
  [[nodiscard]] virtual bool anything_mapped() const = 0;
  // Whether user queues (not just kernel rings and the HIQ) are mapped: the device polls faster then.
  [[nodiscard]] virtual bool user_queues_mapped() const = 0;

  // Executes one packet of the first queue that can, whatever Controls::running() says, and names that queue. Order:
  // the scheduler; then the queues in turn, from the one behind the last that had it since the pause: kernel rings by
  // instance, queues in hardware slots, those of the scheduler as they were mapped.
  virtual std::optional<std::string> step_packet() = 0;
  [[nodiscard]] virtual std::vector<QueueStatus> queues() = 0;
};

}  // namespace vasicd
