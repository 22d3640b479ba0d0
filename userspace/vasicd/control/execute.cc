// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Commands, and the text of their replies.
#include "vasicd/control/execute.h"

#include <cinttypes>
#include <cstdio>

namespace vasicd::control {
namespace {

constexpr std::size_t kMaxNames = 256;  // queues that are hung, or have a fault to be injected
constexpr std::size_t kMaxStepTrace = 4096;
constexpr std::size_t kMaxRanges = 4096;

const char* text_of(std::uint32_t state) {
  switch (state) {
    case VASIC_HOST_READY:
      return "ready";
    case VASIC_HOST_HUNG:
      return "hung";
    default:
      return "gone";
  }
}

std::string megabytes(std::uint64_t bytes_per_second) {
  return bytes_per_second == 0 ? "off" : std::to_string(bytes_per_second / 1'000'000);
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

const char* text_of(QueueStatus::State state) {
  switch (state) {
    case QueueStatus::State::kIdle:
      return "idle";
    case QueueStatus::State::kBusy:
      return "busy";
    case QueueStatus::State::kWaiting:
      return "waiting";
    case QueueStatus::State::kStopped:
      return "stopped";
    case QueueStatus::State::kHung:
      break;
  }
  return "hung";
}

std::string queue_line(const QueueStatus& queue) {
  return "queue " + queue.name + " packets=" + queue.packets + " vmid=" + std::to_string(queue.vmid) +
         " rptr=" + hex(queue.rptr) + " wptr=" + hex(queue.wptr) + " state=" + text_of(queue.state) + "\n";
}

std::string status_lines(Device& device) {
  const Controls& controls = device.controls();
  const Device::Counters counters = device.counters();
  std::string text = "gpu " + std::to_string(device.info().gpu_index) + " chip=" + device.info().name +
                     " state=" + text_of(device.state()) + " running=" + std::string(name(controls.running())) +
                     " commands=" + std::to_string(counters.commands) +
                     " interrupts=" + std::to_string(counters.interrupts) +
                     " interrupts-dropped=" + std::to_string(counters.interrupts_dropped) +
                     " interrupts-waiting=" + std::to_string(counters.interrupts_waiting) + "\n";
  text += "link limit=" + megabytes(controls.link().limit()) + " crossed=" + std::to_string(controls.link().crossed()) +
          "\n";
  text += "inject drop-interrupt=" + std::to_string(controls.interrupts_to_drop()) +
          " fail-unmap=" + std::to_string(controls.unmaps_to_fail()) +
          " vm-fault=" + std::to_string(controls.faults_waiting()) +
          " hold-interrupts=" + (device.interrupts_held() ? "on" : "off") + "\n";
  for (const QueueStatus& queue : device.queues()) text += queue_line(queue);
  for (const auto& name : controls.all_hung()) text += "hung " + name + "\n";
  return text;
}

// Executes one packet and returns a line with the name of its queue, followed by the trace lines of the packet.
std::optional<std::string> step_lines(Device& device, TraceBuffer& trace) {
  std::uint64_t number = trace.next_number();
  const auto queue = device.step_packet();
  if (!queue) return std::nullopt;
  std::string traced;
  trace.read(number, TraceBuffer::Stamp::kNone, kMaxStepTrace, traced);
  std::string lines = "step queue=" + *queue + "\n";
  for (std::size_t at = 0; at < traced.size();) {
    const std::size_t end = traced.find('\n', at) + 1;
    lines += "trace " + traced.substr(at, end - at);
    at = end;
  }
  return lines;
}

std::string truth_lines(const VramTruth& truth, std::uint64_t from) {
  const auto ranges = truth.ranges(from, kMaxRanges);
  std::string text = "vram page=" + std::to_string(VramTruth::kPage) + " pages=" + std::to_string(truth.pages()) +
                     " changed=" + std::to_string(truth.changed()) + "\n";
  for (const auto& range : ranges) {
    text += "range first=" + std::to_string(range.first) + " count=" + std::to_string(range.count) + "\n";
  }
  if (ranges.size() == kMaxRanges) text += "more " + std::to_string(ranges.back().first + ranges.back().count) + "\n";
  return text;
}

std::string vram_truth(Device& device, std::optional<VramTruth>& truth, const VramTruthCommand& command) {
  using Verb = VramTruthCommand::Verb;
  if (!truth) truth.emplace(device.region().vram(), device.region().fd(), VASIC_OFF_VRAM);
  if (command.verb != Verb::kStart && !truth->started()) return reply_error("vram-truth start comes first");
  if (command.verb == Verb::kStart) truth->start();
  if (command.verb == Verb::kRead || command.verb == Verb::kStart) truth->read();
  if (command.verb == Verb::kDiff) truth->diff();
  return reply_ok(truth_lines(*truth, command.page));
}

struct Executor {
  Device& device;
  DeviceState& state;

  std::string operator()(const Status&) const { return reply_ok(status_lines(device)); }
  std::string operator()(const SetRunning& run) const {
    device.controls().run(run.running);
    return reply_ok();
  }
  std::string operator()(const Step& step) const {
    if (device.controls().running() != Running::kNothing) return reply_error("the GPU is not paused");
    std::string lines;
    state.trace.add_reader();
    for (unsigned i = 0; i < step.packets; ++i) {
      const auto ran = step_lines(device, state.trace);
      if (!ran) break;
      lines += *ran;
    }
    state.trace.remove_reader();
    return reply_ok(std::move(lines));
  }
  std::string operator()(const Hang& hang) const {
    if (device.controls().all_hung().size() >= kMaxNames) return reply_error("too many queues are hung");
    device.controls().hang(hang.name);
    return reply_ok();
  }
  std::string operator()(const Cure& cure) const {
    return device.controls().cure(cure.name) ? reply_ok() : reply_error(cure.name + " is not hung");
  }
  std::string operator()(const DropInterrupts& drop) const {
    device.controls().drop_interrupts(drop.count, drop.kind);
    return reply_ok();
  }
  std::string operator()(const HoldInterrupts& hold) const {
    device.hold_interrupts(hold.held);
    return reply_ok();
  }
  std::string operator()(const FailUnmaps& fail) const {
    device.controls().fail_unmaps(fail.count);
    return reply_ok();
  }
  std::string operator()(const VmFault& fault) const {
    if (device.controls().faults_waiting() >= kMaxNames) return reply_error("too many faults wait");
    device.controls().fault(fault.name, fault.address);
    return reply_ok();
  }
  std::string operator()(const LinkSpeed& link) const {
    device.controls().link().limit(link.bytes_per_second);
    return reply_ok();
  }
  std::string operator()(const VramTruthCommand& command) const { return vram_truth(device, state.truth, command); }
  std::string operator()(const Reset&) const {
    if (device.state() != VASIC_HOST_READY) return reply_error(std::string("the GPU is ") + text_of(device.state()));
    device.hang("control");
    return reply_ok();
  }
  std::string operator()(const Remove& remove) const {
    device.remove(remove.way == Remove::Way::kSilent ? Removal::kSilent : Removal::kAnnounced);
    return reply_ok();
  }
  template <typename T>
  std::string operator()(const T&) const {
    return reply_error("not a command for a GPU");
  }
};

}  // namespace

std::string reply_ok(std::string lines) { return std::move(lines) + "ok\n"; }

std::string reply_error(std::string_view why) { return "error: " + std::string(why) + "\n"; }

std::string execute(Device& device, DeviceState& state, const Command& command) {
  return std::visit(Executor{device, state}, command);
}

}  // namespace vasicd::control
