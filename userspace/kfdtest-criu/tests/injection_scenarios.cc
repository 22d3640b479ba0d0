// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Each scenario asks for one fault and checks what the program sees of it.
#include "kfdtest-criu/tests/injection_scenarios.h"

#include <libdrm/drm.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kfd/kfd.h"
#include "kfdtest-criu/env/control_port.h"
#include "kfdtest-criu/env/vgem.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/smi_events.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/stage.h"

namespace kfdtest {
namespace {

// The driver waits for a preemption up to nine seconds by default (queue_preemption_timeout_ms), and then resets.
constexpr std::chrono::seconds kResetLimit{60};
constexpr std::chrono::milliseconds kShort{300};

// Before the MES, a scheduler says which compute queue hangs, and the driver resets that one alone.
bool has_mes(const Gpu& gpu) { return gpu.generation.gfx_level >= 11; }

base::Status fence(RingQueue& queue, QueueKind kind, const Gpu& gpu, std::uint64_t address, std::uint32_t value) {
  if (kind == QueueKind::kPm4) return queue.submit(Pm4Commands(gpu).fence(address, value).dwords());
  return queue.submit(SdmaCommands(gpu).fence(address, value).dwords());
}

// A queue that works, and its name on the control port.
struct NamedQueue {
  RingQueue queue;
  std::string name;
  QueueKind kind;

  // `marker` dwords of NOPs give the queue a write pointer that no other queue has: by that it is found in `status`.
  static base::Result<NamedQueue> create(const Stage& stage, ControlPort& port, QueueKind kind, std::size_t marker) {
    ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), kind));
    const bool pm4 = kind == QueueKind::kPm4;
    if (pm4)
      TRY(queue.submit(Pm4Commands(stage.gpu()).nop(marker).dwords()));
    else
      TRY(queue.submit(SdmaCommands(stage.gpu()).nop(marker).dwords()));
    TRY(queue.wait_idle());
    const std::uint64_t written = queue.written() * (pm4 ? 1 : sizeof(std::uint32_t));
    std::string name;
    ASSIGN_OR_RETURN(const std::vector<QueueStatus> queues, port.queues());
    for (const QueueStatus& each : queues) {
      if (each.vmid == 0 || each.packets != (pm4 ? "pm4" : "sdma") || each.wptr != written) continue;
      if (!name.empty()) return base::Error(EEXIST, name + " and " + each.name + " look the same");
      name = each.name;
    }
    if (name.empty()) return base::Error(ENOENT, "the GPU does not show the queue");
    return NamedQueue{std::move(queue), std::move(name), kind};
  }
  base::Status fence(const Stage& stage, std::size_t offset, std::uint32_t value) {
    return kfdtest::fence(queue, kind, stage.gpu(), stage.words.gpu_address(offset), value);
  }
};

// What the driver tells a process about hangs and resets.
struct Reports {
  KfdEvent exception;
  SmiEvents smi;

  static base::Result<Reports> open(const Gpu& gpu) {
    ASSIGN_OR_RETURN(KfdEvent exception, KfdEvent::create(gpu, EventKind::kHwException, ResetMode::kManual));
    ASSIGN_OR_RETURN(SmiEvents smi, SmiEvents::open(gpu, {SmiKind::kGpuPreReset, SmiKind::kGpuPostReset}));
    return Reports{std::move(exception), std::move(smi)};
  }
  [[nodiscard]] base::Status expect_exception(const Gpu& gpu) const {
    ASSIGN_OR_RETURN(const WaitOutcome outcome, exception.wait(kResetLimit));
    if (outcome != WaitOutcome::kSignaled) return base::Error(ETIME, "no hardware exception");
    if (exception.exception().gpu_id != gpu.gpu_id) return base::Error(EIO, "a hardware exception of another GPU");
    if (!exception.exception().memory_lost) return base::Error(EIO, "the hardware exception says that memory is kept");
    return {};
  }
  // Waits until the GPU can be used again.
  base::Status expect_reset(const Gpu& gpu) {
    ASSIGN_OR_RETURN(const std::string before, smi.wait_for(SmiKind::kGpuPreReset, "", kResetLimit));
    TRY(expect_exception(gpu));
    ASSIGN_OR_RETURN(const std::string after, smi.wait_for(SmiKind::kGpuPostReset, "", kResetLimit));
    return {};
  }
};

base::Status expect_ready(ControlPort& port) {
  ASSIGN_OR_RETURN(const std::string state, port.status("gpu", "state"));
  return state == "ready" ? base::Status() : base::Error(EIO, "the GPU is " + state);
}

base::Status every_kind_of_queue_works() {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  for (const QueueKind kind : {QueueKind::kPm4, QueueKind::kAql, QueueKind::kSdma}) {
    ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(stage.gpu(), kind));
    TRY(queue.submit(2));
    queue.open(2);
    TRY(queue.wait_done(2));
  }
  ASSIGN_OR_RETURN(GpuMemory vram, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, 64 * kKiB));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kSdma));
  TRY(queue.submit(SdmaCommands(stage.gpu())
                       .fill(vram.gpu_address(), vram.size(), 0x600d)
                       .copy(stage.words.gpu_address(), vram.gpu_address(60 * kKiB), sizeof(std::uint32_t))
                       .dwords()));
  return wait_for_word(stage.words, 0, 0x600d);
}

// The hung queue stops where it was, and nothing but taking it off the hardware shows that it hangs.
base::Status hang(const Stage& stage, ControlPort& port, NamedQueue& queue) {
  TRY(port.tell("hang " + queue.name));
  TRY(queue.fence(stage, 0, 1));
  if (!stays([&] { return stage.words.load32(0) == 0; })) return base::Error(EIO, "the queue does not hang");
  return {};
}

// A program with a queue that hangs, one that works, and one whose end makes older schedulers notice.
struct HungProgram {
  Stage stage;
  ControlPort port;
  Reports reports;
  std::optional<RingQueue> other;
  RingQueue bystander;
  NamedQueue hung;

  static base::Result<HungProgram> start(QueueKind kind) {
    ASSIGN_OR_RETURN(Stage stage, Stage::open());
    ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
    ASSIGN_OR_RETURN(Reports reports, Reports::open(stage.gpu()));
    ASSIGN_OR_RETURN(RingQueue other, RingQueue::create(stage.gpu(), QueueKind::kPm4));
    ASSIGN_OR_RETURN(RingQueue bystander, RingQueue::create(stage.gpu(), QueueKind::kPm4));
    ASSIGN_OR_RETURN(NamedQueue hung, NamedQueue::create(stage, port, kind, 77));
    TRY(hang(stage, port, hung));
    return HungProgram{std::move(stage), std::move(port),      std::move(reports),
                       std::move(other), std::move(bystander), std::move(hung)};
  }
  [[nodiscard]] const Gpu& gpu() const { return stage.gpu(); }
  // A MES is asked to take off one queue; older schedulers take off all for each change of the run list.
  base::Status take_off() {
    if (!has_mes(gpu())) {
      other.reset();
      return {};
    }
    return hung.queue.set_percentage(kStopped).ok() ? base::Error(EIO, "a hung queue was taken off") : base::Status();
  }
  base::Status expect_bystander_works() {
    constexpr std::size_t kBystander = 64;
    TRY(fence(bystander, QueueKind::kPm4, gpu(), stage.words.gpu_address(kBystander), 2));
    return wait_for_word(stage.words, kBystander, 2);
  }
  base::Status expect_reset() {
    TRY(reports.expect_reset(gpu()));
    return expect_ready(port);
  }
};

base::Status hung_compute_queue() {
  ASSIGN_OR_RETURN(HungProgram program, HungProgram::start(QueueKind::kPm4));
  TRY(program.take_off());
  if (has_mes(program.gpu())) return program.expect_reset();
  TRY(program.reports.expect_exception(program.gpu()));
  if (program.reports.smi.wait_for(SmiKind::kGpuPreReset, "", kShort).ok())
    return base::Error(EIO, "all of the GPU was reset, not the queue alone");
  TRY(program.expect_bystander_works());
  return program.stage.words.load32(0) == 0 ? base::Status() : base::Error(EIO, "a queue that was reset went on");
}

// An update takes all queues off the hardware, and only the one that hangs does not come back.
base::Status hung_queue_is_changed() {
  ASSIGN_OR_RETURN(HungProgram program, HungProgram::start(QueueKind::kPm4));
  if (program.hung.queue.set_percentage(kStopped).ok()) return base::Error(EIO, "a hung queue was taken off");
  TRY(program.reports.expect_exception(program.gpu()));
  return program.expect_bystander_works();
}

// Why the kernel refuses a checkpoint: an errno, or 0 if it does not. The queues run again afterwards.
base::Result<int> refusal_of_image(const Gpu& gpu) {
  const int fd = ioctls_of(gpu).client().fd();
  kfd::RealKfd criu;
  auto pause = criu.pause(fd);
  if (!pause.ok()) return pause.error().code();
  const auto image = criu.checkpoint(fd, *pause);
  const auto end = criu.unpause(fd, *pause);
  // ENOTRECOVERABLE: the pause has ended, and UNPAUSE reports what a reset has lost.
  if (!end.ok() && end.error().code() != ENOTRECOVERABLE) return end.error();
  if (!image.ok()) return image.error().code();
  return end.ok() ? 0 : ENOTRECOVERABLE;
}

// The packets that a hung queue had under way are lost, whatever its MQD says.
base::Status hung_queue_has_no_image() {
  ASSIGN_OR_RETURN(HungProgram program, HungProgram::start(QueueKind::kPm4));
  TRY(program.take_off());
  TRY(has_mes(program.gpu()) ? program.expect_reset() : program.reports.expect_exception(program.gpu()));
  ASSIGN_OR_RETURN(const int refusal, refusal_of_image(program.gpu()));
  if (refusal == ENOTRECOVERABLE) return {};
  return base::Error(EIO, refusal == 0 ? "an image was taken of what a reset has lost"
                                       : "no image was taken, but for " + std::to_string(refusal));
}

// The checkpoint is the first to find that a queue hangs. Other queues go on, unless the driver resets the GPU for it.
base::Status pause_meets_hung_queue() {
  ASSIGN_OR_RETURN(HungProgram program, HungProgram::start(QueueKind::kPm4));
  ASSIGN_OR_RETURN(const int refusal, refusal_of_image(program.gpu()));
  if (refusal == 0) return base::Error(EIO, "an image was taken of a queue that hangs");
  return has_mes(program.gpu()) ? program.expect_reset() : program.expect_bystander_works();
}

base::Status hung_sdma_queue() {
  ASSIGN_OR_RETURN(HungProgram program, HungProgram::start(QueueKind::kSdma));
  TRY(program.take_off());
  return program.expect_reset();
}

// Updates a queue on a GPU that does not answer, so that it cannot be taken off.
base::Status lose_gpu(const char* command) {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(Reports reports, Reports::open(stage.gpu()));
  ASSIGN_OR_RETURN(NamedQueue queue, NamedQueue::create(stage, port, QueueKind::kPm4, 77));
  TRY(port.tell(command));
  if (queue.queue.set_percentage(kStopped).ok()) return base::Error(EIO, "a GPU that does not answer took a queue off");
  TRY(reports.expect_reset(stage.gpu()));
  TRY(expect_ready(port));
  ASSIGN_OR_RETURN(const std::string left, port.status("inject", "fail-unmap"));
  return left == "0" ? base::Status() : base::Error(EIO, "the driver asked for nothing");
}

base::Status unanswered_unmap() { return lose_gpu("fail-unmap 1"); }
base::Status hung_gpu() { return lose_gpu("reset"); }

// Another driver imports the memory, so amdgpu evicts the process and moves the memory into GTT. Before the copy is
// done, the GPU ceases to answer, so the driver cannot put back the queues. They stay evicted: after the reset, their
// memory is lost.
base::Status evicted_by_import() {
  ASSIGN_OR_RETURN(const Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(Reports reports, Reports::open(stage.gpu()));
  ASSIGN_OR_RETURN(SmiEvents queues, SmiEvents::open(stage.gpu(), {SmiKind::kQueueEviction, SmiKind::kQueueRestore}));
  ASSIGN_OR_RETURN(const base::UniqueFd importer, open_vgem());
  ASSIGN_OR_RETURN(const GpuMemory vram, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, 16 * kMiB));
  ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, ioctls_of(stage.gpu()).client().export_dmabuf(vram.block().handle));
  TRY(port.tell("link 10"));  // the copy takes 1.7 seconds
  drm_prime_handle import{};
  import.fd = dmabuf.get();
  auto imported = std::async(std::launch::async, [&importer, &import] {
    return ::ioctl(importer.get(), DRM_IOCTL_PRIME_FD_TO_HANDLE, &import) == 0
               ? base::Status()
               : base::Error::from_errno(errno, "DRM_IOCTL_PRIME_FD_TO_HANDLE of vgem");
  });
  TRY(queues.wait_for_eviction(EvictionTrigger::kTtm));
  TRY(port.tell("fail-unmap 1"));
  TRY(imported.get());
  ASSIGN_OR_RETURN(const std::string first, queues.wait_for(SmiKind::kQueueRestore));
  TRY(reports.expect_reset(stage.gpu()));
  const auto second = queues.wait_for(SmiKind::kQueueRestore, "", kShort);
  return second.ok() ? base::Error(EIO, "queues were put back after the reset: [" + *second + "]") : base::Status();
}

base::Status restore_meets_silent_gpu() {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(Reports reports, Reports::open(stage.gpu()));
  // The driver takes this queue off the hardware to put back those of the other process.
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kPm4));
  if (std::system("modprobe vgem") != 0) return base::Error(ENODEV, "modprobe vgem failed");
  const base::Status evicted = spawn_scenario("evicted_by_import");
  if (std::system("modprobe -r vgem") != 0) return base::Error(EBUSY, "modprobe -r vgem failed");
  TRY(evicted);
  return reports.expect_reset(stage.gpu());
}

// Signals the event, then stores `value` at `done`.
using Signal = base::Status (*)(RingQueue& queue, const Gpu& gpu, const KfdEvent& event, std::uint64_t done,
                                std::uint32_t value);

// `interrupt` is how the control port calls what `signal` raises.
base::Status lost_interrupt(const char* interrupt, QueueKind kind, Signal signal) {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu()));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), kind));
  TRY(port.tell(std::string("drop-interrupt 1 ") + interrupt));
  TRY(signal(queue, stage.gpu(), event, stage.words.gpu_address(), 1));
  TRY(wait_for_word(stage.words, 0, 1));
  ASSIGN_OR_RETURN(const std::string left, port.status("inject", "drop-interrupt"));
  if (left != "0") return base::Error(EIO, "no interrupt was dropped");
  ASSIGN_OR_RETURN(const WaitOutcome without, event.wait(kShort));
  if (without != WaitOutcome::kTimeout) return base::Error(EIO, "the waiter was woken without an interrupt");
  TRY(signal(queue, stage.gpu(), event, stage.words.gpu_address(), 2));
  ASSIGN_OR_RETURN(const WaitOutcome with, event.wait(kEventLimit));
  return with == WaitOutcome::kSignaled ? base::Status() : base::Error(ETIME, "the next interrupt woke nobody");
}

base::Status signal_by_pm4(RingQueue& queue, const Gpu& gpu, const KfdEvent& event, std::uint64_t done,
                           std::uint32_t value) {
  return queue.submit(Pm4Commands(gpu).signal(event).fence(done, value).dwords());
}

base::Status signal_by_sdma(RingQueue& queue, const Gpu& gpu, const KfdEvent& event, std::uint64_t done,
                            std::uint32_t value) {
  return queue.submit(SdmaCommands(gpu).signal(event).fence(done, value).dwords());
}

base::Status signal_by_wave(RingQueue& queue, const Gpu& gpu, const KfdEvent& event, std::uint64_t done,
                            std::uint32_t value) {
  ASSIGN_OR_RETURN(const MessageWave wave, MessageWave::create(gpu));
  TRY(queue.submit(wave.signal(event).fence(done, value).dwords()));
  return queue.wait_idle();
}

base::Status vm_fault(QueueKind kind) {
  constexpr std::uint64_t kAddress = 0x7654'3000;  // the injected fault need not be at an address that is in use
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu(), EventKind::kMemory, ResetMode::kManual));
  ASSIGN_OR_RETURN(NamedQueue queue, NamedQueue::create(stage, port, kind, 177));
  std::array<char, 64> command{};
  std::snprintf(command.data(), command.size(), "vm-fault %s 0x%llx", queue.name.c_str(),
                static_cast<unsigned long long>(kAddress));
  TRY(port.tell(command.data()));
  TRY(queue.fence(stage, 0, 1));
  TRY(queue.fence(stage, 64, 1));
  TRY(expect_fault(event, stage.gpu(), kAddress));
  if (event.fault().read_only) return base::Error(EIO, "the memory exception of a read says read-only");
  if (stage.words.load32(0) != 0) return base::Error(EIO, "the packet that faulted was executed");
  if (!stays([&] { return stage.words.load32(64) == 0; })) return base::Error(EIO, "the queue went on after its fault");
  return {};
}

base::Status vm_fault_beside_others(const char* victim) {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  std::vector<StepQueue> queues;
  for (const QueueKind kind : {QueueKind::kPm4, QueueKind::kAql, QueueKind::kSdma}) {
    ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(stage.gpu(), kind));
    TRY(queue.submit(4));
    queue.open(2);
    TRY(queue.wait_done(2));
    queues.push_back(std::move(queue));
  }
  TRY(spawn_scenario(victim));
  for (StepQueue& queue : queues) {
    TRY(queue.expect_done(2));
    queue.open(4);
    TRY(queue.expect_done(4));
  }
  return {};
}

base::Status vm_fault_pm4() { return vm_fault(QueueKind::kPm4); }
base::Status vm_fault_sdma() { return vm_fault(QueueKind::kSdma); }
base::Status vm_fault_pm4_beside_others() { return vm_fault_beside_others("vm_fault_pm4"); }
base::Status vm_fault_sdma_beside_others() { return vm_fault_beside_others("vm_fault_sdma"); }
base::Status lost_interrupt_pm4() { return lost_interrupt("eop", QueueKind::kPm4, signal_by_pm4); }
base::Status lost_interrupt_sdma() { return lost_interrupt("trap", QueueKind::kSdma, signal_by_sdma); }
base::Status lost_interrupt_wave() { return lost_interrupt("message", QueueKind::kPm4, signal_by_wave); }

// Seconds that a copy takes, as the program sees it: the best of a few, because this machine may be busy.
struct TimedCopy {
  static constexpr int kTries = 3;
  RingQueue queue;
  const Stage* stage;
  std::uint32_t copies = 0;

  base::Result<double> run(const GpuMemory& to, const GpuMemory& from) {
    double best = 0;
    for (int i = 0; i < kTries; ++i) {
      ASSIGN_OR_RETURN(const double seconds, run_once(to, from));
      best = i == 0 ? seconds : std::min(best, seconds);
    }
    return best;
  }

 private:
  base::Result<double> run_once(const GpuMemory& to, const GpuMemory& from) {
    const std::uint64_t begin = monotonic_ns();
    TRY(queue.submit(SdmaCommands(stage->gpu())
                         .copy(to.gpu_address(), from.gpu_address(), from.size())
                         .fence(stage->words.gpu_address(), ++copies)
                         .dwords()));
    TRY(wait_for_word(stage->words, 0, copies));
    return static_cast<double>(monotonic_ns() - begin) / 1e9;
  }
};

base::Status slow_link() {
  constexpr std::size_t kSize = 8 * kMiB;
  constexpr double kExpected = static_cast<double>(kSize) / 20e6;
  constexpr std::uint64_t kSeed = 0x11c;
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(GpuMemory vram, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, kSize));
  ASSIGN_OR_RETURN(GpuMemory other_vram, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, kSize));
  ASSIGN_OR_RETURN(GpuMemory system, GpuMemory::allocate(stage.gpu(), MemoryKind::kGtt, kSize));
  ASSIGN_OR_RETURN(GpuMemory back, GpuMemory::allocate(stage.gpu(), MemoryKind::kGtt, kSize));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kSdma));
  TimedCopy copy{std::move(queue), &stage};
  fill_pattern(system.bytes(), kSeed);
  TRY(port.tell("link 20"));
  ASSIGN_OR_RETURN(const double in, copy.run(vram, system));
  ASSIGN_OR_RETURN(const double inside, copy.run(other_vram, vram));
  ASSIGN_OR_RETURN(const double out, copy.run(back, other_vram));
  TRY(port.tell("link off"));
  ASSIGN_OR_RETURN(const double unlimited, copy.run(system, vram));
  for (const double seconds : {in, out})
    if (seconds < 0.8 * kExpected || seconds > 3 * kExpected)
      return base::Error(
          EIO, "a copy over the link took " + std::to_string(seconds) + " s, not " + std::to_string(kExpected) + " s");
  for (const double seconds : {inside, unlimited})
    if (seconds > 0.5 * kExpected)
      return base::Error(EIO, "a copy that no link limits took " + std::to_string(seconds) + " s");
  if (find_mismatch(back.bytes(), kSeed).has_value())
    return base::Error(EIO, "what went over the link is not the same");
  return {};
}

// The pages of VRAM that change while `commands` run. What a queue and its driver write anyway is in `always`.
base::Result<std::vector<std::uint64_t>> pages_written(const Stage& stage, ControlPort& port, RingQueue& queue,
                                                       SdmaCommands commands, std::span<const std::uint64_t> always) {
  const std::uint32_t value = stage.words.load32(0) + 1;
  TRY(queue.submit(commands.fence(stage.words.gpu_address(), value).dwords()));
  TRY(wait_for_word(stage.words, 0, value));
  TRY(queue.wait_idle());
  ASSIGN_OR_RETURN(const std::vector<PageRange> ranges, port.changed_pages());
  std::vector<std::uint64_t> pages;
  for (const PageRange& range : ranges)
    for (std::uint64_t page = range.first; page < range.first + range.count; ++page)
      if (std::ranges::find(always, page) == always.end()) pages.push_back(page);
  return pages;
}

base::Status vram_truth() {
  constexpr std::size_t kPages = 16;
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(GpuMemory buffer, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, kPages * kPageSize));
  ASSIGN_OR_RETURN(GpuMemory copied, GpuMemory::allocate(stage.gpu(), MemoryKind::kGtt, kPages * kPageSize));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kSdma));
  const auto fill = [&](std::initializer_list<std::size_t> pages, std::uint32_t word) {
    SdmaCommands commands(stage.gpu());
    for (const std::size_t page : pages) commands.fill(buffer.gpu_address(page * kPageSize), kPageSize, word);
    return commands;
  };
  const auto read = [&] {
    return SdmaCommands(stage.gpu()).copy(copied.gpu_address(), buffer.gpu_address(), buffer.size());
  };
  ASSIGN_OR_RETURN(const auto started, port.request("vram-truth start"));
  ASSIGN_OR_RETURN(const auto always, pages_written(stage, port, queue, read(), {}));
  ASSIGN_OR_RETURN(const auto three, pages_written(stage, port, queue, fill({3, 7, 8}, 0xabc), always));
  if (three.size() != 3) return base::Error(EIO, std::to_string(three.size()) + " pages changed, not 3");
  ASSIGN_OR_RETURN(const auto one, pages_written(stage, port, queue, fill({7}, 0xdef), always));
  if (one.size() != 1 || std::ranges::find(three, one.front()) == three.end())
    return base::Error(EIO, std::to_string(one.size()) + " pages changed, not one of the three");
  ASSIGN_OR_RETURN(const auto same, pages_written(stage, port, queue, fill({7}, 0xdef), always));
  ASSIGN_OR_RETURN(const auto none, pages_written(stage, port, queue, read(), always));
  if (!same.empty() || !none.empty()) return base::Error(EIO, "pages changed that nobody changed");
  ASSIGN_OR_RETURN(const auto others, pages_written(stage, port, queue, fill({0, 15}, 0x123), always));
  if (others.size() != 2) return base::Error(EIO, std::to_string(others.size()) + " pages changed, not 2");
  for (const std::uint64_t page : others)
    if (std::ranges::find(three, page) != three.end()) return base::Error(EIO, "a page changed that nobody changed");
  return {};
}

base::Status submit_additions(RingQueue& queue, const Stage& stage, unsigned count) {
  Pm4Commands commands(stage.gpu());
  for (unsigned i = 0; i < count; ++i) commands.atomic_add64(stage.words.gpu_address(), 1);
  return queue.submit(commands.dwords());
}

base::Status paused_user() {
  constexpr unsigned kCount = 3;
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kPm4));
  TRY(port.tell("pause user"));
  TRY(submit_additions(queue, stage, kCount));
  // The driver maps memory and makes queues meanwhile.
  {
    ASSIGN_OR_RETURN(GpuMemory vram, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, kMiB));
    ASSIGN_OR_RETURN(RingQueue other, RingQueue::create(stage.gpu(), QueueKind::kSdma));
  }
  if (!stays([&] { return stage.words.load64(0) == 0; })) return base::Error(EIO, "a paused queue went on");
  TRY(port.tell("resume"));
  return wait_for_word(stage.words, 0, kCount);
}

// Counts packets of the user queue only, not those of the driver's rings.
base::Status step(ControlPort& port, const std::string& name) {
  constexpr unsigned kMostOfOthers = 64;
  for (unsigned i = 0; i < kMostOfOthers; ++i) {
    ASSIGN_OR_RETURN(const std::vector<std::string> lines, port.request("step"));
    if (lines.empty()) return base::Error(ENOENT, "there is no packet left");
    if (lines.front() == "step queue=" + name) return {};
  }
  return base::Error(EIO, "only others were stepped");
}

base::Status stepped() {
  constexpr unsigned kCount = 4;
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(ControlPort port, ControlPort::open());
  ASSIGN_OR_RETURN(NamedQueue named, NamedQueue::create(stage, port, QueueKind::kPm4, 77));
  TRY(port.tell("pause"));
  TRY(submit_additions(named.queue, stage, kCount));
  if (!stays([&] { return stage.words.load64(0) == 0; })) return base::Error(EIO, "a paused GPU went on");
  for (unsigned done = 1; done <= kCount; ++done) {
    TRY(step(port, named.name));
    if (stage.words.load64(0) != done)
      return base::Error(EIO,
                         std::to_string(stage.words.load64(0)) + " packets were executed, not " + std::to_string(done));
  }
  if (step(port, named.name).ok()) return base::Error(EIO, "the queue executed more packets than it has");
  TRY(port.tell("resume"));
  TRY(submit_additions(named.queue, stage, 1));
  return wait_for_word(stage.words, 0, kCount + 1);
}

}  // namespace

base::Status run_injection(std::string_view name) {
  static const std::map<std::string_view, base::Status (*)()> scenarios = {
      {"every_kind_of_queue_works", every_kind_of_queue_works},
      {"hung_compute_queue", hung_compute_queue},
      {"hung_sdma_queue", hung_sdma_queue},
      {"hung_queue_is_changed", hung_queue_is_changed},
      {"hung_queue_has_no_image", hung_queue_has_no_image},
      {"pause_meets_hung_queue", pause_meets_hung_queue},
      {"unanswered_unmap", unanswered_unmap},
      {"hung_gpu", hung_gpu},
      {"evicted_by_import", evicted_by_import},
      {"restore_meets_silent_gpu", restore_meets_silent_gpu},
      {"lost_interrupt_pm4", lost_interrupt_pm4},
      {"lost_interrupt_sdma", lost_interrupt_sdma},
      {"lost_interrupt_wave", lost_interrupt_wave},
      {"vm_fault_pm4", vm_fault_pm4},
      {"vm_fault_sdma", vm_fault_sdma},
      {"vm_fault_pm4_beside_others", vm_fault_pm4_beside_others},
      {"vm_fault_sdma_beside_others", vm_fault_sdma_beside_others},
      {"slow_link", slow_link},
      {"vram_truth", vram_truth},
      {"paused_user", paused_user},
      {"stepped", stepped},
  };
  const auto found = scenarios.find(name);
  return found != scenarios.end() ? found->second() : base::Error(EINVAL, "no scenario " + std::string(name));
}

}  // namespace kfdtest
