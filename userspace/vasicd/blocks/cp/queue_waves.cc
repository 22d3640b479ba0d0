// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How a dispatch is begun, continued, saved and restored.
#include "vasicd/blocks/cp/queue_waves.h"

#include <cinttypes>

#include "vasicd/blocks/queue/trace_line.h"

namespace vasicd {

namespace {

// kfd_mqd_manager_v9.c: the control stack is one page behind the MQD, in the kernel's memory.
constexpr GpuAddr kStackOffset = 4096;
constexpr FaultClient kShader{.unit = FaultClient::Unit::kShader};

}  // namespace

QueueError launch_error(const LaunchError& error) {
  return {QueueError::Kind::kBadDispatch, {}, static_cast<std::uint32_t>(error.kind)};
}

QueueWaves::QueueWaves(EngineContext context, std::string name, unsigned vmid, GpuAddr mqd, const WaveSave& save)
    : context_(context),
      name_(std::move(name)),
      vmid_(vmid),
      stack_(mqd + kStackOffset),
      save_(save),
      isa_(isa_of(context.info)) {}

SavePlace QueueWaves::place() const {
  return {.stack = stack_,
          .stack_bytes = save_.stack_bytes,
          .area = save_.area,
          .area_bytes = save_.area_bytes,
          .vmid = vmid_};
}

QueueResult<void> QueueWaves::resume() {
  if (!isa_.has_value() || save_.empty()) return {};
  auto restored =
      restore_dispatch(context_.info, *isa_, context_.memory, place(), {save_.stack_offset, save_.wave_end});
  if (!restored.ok()) {
    trace_line(context_.trace, name_, "waves refused: %s", restored.error().message().c_str());
    return QueueError{QueueError::Kind::kMemoryViolation};
  }
  dispatch_ = std::move(*restored);
  trace_line(context_.trace, name_, "waves resumed groups=%zu next=%" PRIu64, dispatch_->groups().size(),
             dispatch_->next_group());
  return {};
}

QueueResult<void> QueueWaves::begin(const Launch& launch) {
  const std::uint64_t most_groups = save_.area == 0 ? Dispatch::kAnyNumber : groups_that_fit(*isa_, launch, place());
  if (most_groups == 0) return launch_error({LaunchError::Kind::kRegisters});
  dispatch_ = std::make_unique<Dispatch>(context_.info, *isa_, launch, most_groups, context_.ticks());
  trace_line(context_.trace, name_, "dispatch code=0x%" PRIx64 " groups=%u,%u,%u size=%u,%u,%u lds=%u", launch.code,
             launch.groups[0], launch.groups[1], launch.groups[2], launch.size[0], launch.size[1], launch.size[2],
             launch.lds_bytes);
  return {};
}

QueueError QueueWaves::error_of(const WaveStop& stop) {
  const auto text = gcn::describe(*isa_, stop.words);
  const char* what = "fault";
  QueueError error = memory_error(stop.fault);
  switch (stop.kind) {
    case WaveStop::Kind::kFault:
      break;
    case WaveStop::Kind::kIllegalInstruction:
      what = "illegal-instruction";
      error = {QueueError::Kind::kIllegalInstruction};
      break;
    case WaveStop::Kind::kViolation:
      what = "memory-violation";
      error = {QueueError::Kind::kMemoryViolation};
      break;
    case WaveStop::Kind::kTrap:
      what = "trap";
      error = {QueueError::Kind::kTrap, {}, stop.trap};
      break;
  }
  trace_line(context_.trace, name_, "wave %s pc=0x%" PRIx64 " at: %s", what, stop.pc, text.c_str());
  return error;
}

QueueResult<PacketStatus> QueueWaves::step(Budget& budget) {
  DispatchTurn turn = dispatch_->turn(context_.memory, vmid_, context_.workers);
  for (const std::uint32_t message : turn.messages) {
    context_.interrupts.raise(
        {.kind = InterruptKind::kSqMessage, .vmid = static_cast<std::uint8_t>(vmid_), .data = {message}});
  }
  if (turn.stop.has_value()) {
    const QueueError error = error_of(*turn.stop);
    dispatch_.reset();
    return error;
  }
  if (turn.page.has_value()) context_.interrupts.raise_fault(*turn.page, kShader);
  if (turn.done) {
    trace_line(context_.trace, name_, "dispatch done instructions=%" PRIu64, dispatch_->instructions());
    dispatch_.reset();
    return PacketStatus::kDone;
  }
  budget.packets = 1;  // one turn of the waves uses up the time of a step
  return turn.advanced ? PacketStatus::kMore : PacketStatus::kWait;
}

QueueResult<void> QueueWaves::drain() {
  constexpr unsigned kTurns = 4000;  // some seconds
  for (unsigned n = 0; n < kTurns && busy(); ++n) {
    Budget budget;
    TRY(step(budget));
  }
  if (!busy()) return {};
  dispatch_.reset();
  trace_line(context_.trace, name_, "waves lost: no context save area");
  return QueueError{QueueError::Kind::kMemoryViolation};
}

QueueResult<WaveSave> QueueWaves::save() {
  WaveSave saved = save_;
  saved.stack_offset = saved.wave_end = saved.stack_bytes;
  if (busy() && save_.area == 0) TRY(drain());
  if (!busy()) return saved;
  ASSIGN_OR_RETURN(const SavedExtent extent, lift(save_dispatch(*dispatch_, context_.memory, place())));
  saved.stack_offset = extent.stack_offset;
  saved.wave_end = extent.wave_end;
  trace_line(context_.trace, name_, "waves saved groups=%zu next=%" PRIu64 " bytes=%u", dispatch_->groups().size(),
             dispatch_->next_group(), saved.wave_end - saved.stack_bytes);
  return saved;
}

}  // namespace vasicd
