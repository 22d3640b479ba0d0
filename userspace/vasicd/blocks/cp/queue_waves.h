// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The dispatch that a compute queue has in flight, and how it is saved and restored when the queue is unmapped and
// mapped. There is at most one: the queue's next packet waits for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "vasicd/blocks/queue/hqd.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/context/context.h"
#include "vasicd/waves/dispatch.h"
#include "vasicd/waves/save_area.h"

namespace vasicd {

class QueueWaves {
 public:
  // `mqd` is the address of the queue's descriptor, `save` the part of its contents that describes saved waves.
  QueueWaves(EngineContext context, std::string name, unsigned vmid, GpuAddr mqd, const WaveSave& save);

  // The dialect of this chip's waves; nothing if they are not executed.
  [[nodiscard]] std::optional<gcn::Isa> isa() const { return isa_; }
  // A dispatch is in flight.
  [[nodiscard]] bool busy() const { return dispatch_ != nullptr; }
  // Precondition: busy().
  [[nodiscard]] std::uint64_t start_ticks() const { return dispatch_->start_ticks(); }

  // Restores the waves that the descriptor says were saved, if any. Called once, before the queue's first step.
  QueueResult<void> resume();
  QueueResult<void> begin(const Launch& launch);
  // kDone: the dispatch has ended. After an error there is none.
  QueueResult<PacketStatus> step(Budget& budget);
  // Saves the waves and returns where they are, for the descriptor. Without a save area the dispatch is executed to its
  // end instead, for a bounded time.
  QueueResult<WaveSave> save();

 private:
  [[nodiscard]] SavePlace place() const;
  QueueError error_of(const WaveStop& stop);
  QueueResult<void> drain();

  EngineContext context_;
  std::string name_;
  unsigned vmid_;
  GpuAddr stack_;
  WaveSave save_;
  std::optional<gcn::Isa> isa_;
  std::unique_ptr<Dispatch> dispatch_;
};

// The error of a dispatch that cannot be begun.
[[nodiscard]] QueueError launch_error(const LaunchError& error);

}  // namespace vasicd
