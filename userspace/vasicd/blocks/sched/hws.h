// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The hardware scheduler: consumes the HIQ and tells the Scheduler which queues are to run. A packet that has to stop a
// queue that hangs waits, and is abandoned when the time that SET_RESOURCES allows is over: the doorbell of the queue
// is then logged in the HIQ's MQD, where the driver reads it. With several XCCs each has the HIQ loaded, and the first
// executes it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "packets/pm4_hws.h"
#include "vasicd/blocks/queue/hqd.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/blocks/queue/word_source.h"
#include "vasicd/blocks/sched/scheduler.h"
#include "vasicd/context/context.h"

namespace vasicd {

class Hws {
 public:
  // `scheduler` outlives this.
  Hws(EngineContext context, Scheduler& scheduler);

  base::Status load_hiq(unsigned xcc, GpuAddr mqd);
  // Stops the HIQ; with that of the first XCC, all queues are unmapped first. ETIME if something hangs and `mode` is
  // not kReset.
  base::Status unload_hiq(unsigned xcc, UnloadMode mode);
  [[nodiscard]] bool loaded(unsigned xcc) const { return ((xccs_ >> xcc) & 1u) != 0; }
  [[nodiscard]] GpuAddr hiq_base() const { return ring_.base; }

  // Consumes at most `packets` of the HIQ; true if anything changed.
  bool step(unsigned packets);
  // Returns to the power-on state; the owner of the scheduler resets that.
  void reset();

 private:
  enum class Progress : std::uint8_t { kDone, kWait };

  bool execute_next();
  Progress execute(packets::WordView packet);
  void set_resources(packets::WordView packet);
  Progress run_list(packets::WordView packet);
  Progress unmap_queues(packets::WordView packet);
  void query_status(packets::WordView packet);
  void write_data(packets::WordView packet);
  void release_mem(packets::WordView packet);
  void raise_eop(std::uint32_t context_id);
  void memory_trouble(const MemoryFault& fault);
  // Lets a packet wait for these queues, if any, until its time is over.
  Progress await(const std::vector<std::uint32_t>& hung_doorbells);
  void log_hung(const std::vector<std::uint32_t>& doorbells);
  void stick(const char* why);

  EngineContext context_;
  Scheduler& scheduler_;
  packets::pm4::HwsFormat format_;
  const packets::mqd::ComputeMqdLayout& layout_;
  std::uint32_t xccs_ = 0;  // bit n: XCC n has the HIQ loaded
  Mqd mqd_;                 // descriptor of the first XCC
  ComputeHqd hqd_;
  WordSource ring_;
  std::uint64_t unmap_latency_ns_ = 0;
  std::optional<std::uint64_t> waits_since_;
  bool stuck_ = false;  // until the HIQ is reset
};

}  // namespace vasicd
