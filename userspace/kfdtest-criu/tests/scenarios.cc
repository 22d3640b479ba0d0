// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The scenarios by name, and those that are in no file of their own.
#include "kfdtest-criu/tests/scenarios.h"

#include <fcntl.h>
#include <hsakmt.h>
#include <libdrm/amdgpu_drm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mapping.h"
#include "base/unique_fd.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/harness/workload.h"
#include "kfdtest-criu/tests/debugger_scenarios.h"
#include "kfdtest-criu/tests/defect_scenarios.h"
#include "kfdtest-criu/tests/injection_scenarios.h"
#include "kfdtest-criu/tests/restore_scenarios.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/shared_scenarios.h"
#include "kfdtest-criu/tests/stage.h"

namespace kfdtest {
namespace {

constexpr std::uint32_t kAlive = 0xa11e;

base::Status submit_write(RingQueue& queue, QueueKind kind, const Gpu& gpu, std::uint64_t address) {
  const std::uint32_t word = kAlive;
  if (kind == QueueKind::kPm4) return queue.submit(Pm4Commands(gpu).write(address, word).dwords());
  return queue.submit(SdmaCommands(gpu).write(address, std::span(&word, 1)).dwords());
}

base::Status memory_fault(QueueKind kind) {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu(), EventKind::kMemory, ResetMode::kManual));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), kind));
  // Allocated after the queue, whose buffers might get the address otherwise, and not freed, so that nothing else is
  // put at this address.
  ASSIGN_OR_RETURN(GpuMemory hidden, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, kPageSize));
  TRY(hidden.unmap());
  const std::uint64_t address = hidden.gpu_address();
  TRY(submit_write(queue, kind, stage.gpu(), address));
  return expect_fault(event, stage.gpu(), address);
}

base::Status expect_alive(RingQueue& queue, const Stage& stage, std::size_t offset) {
  TRY(queue.submit(Pm4Commands(stage.gpu()).fence(stage.words.gpu_address(offset), kAlive).dwords()));
  return wait_for_word(stage.words, offset, kAlive);
}

// A bad packet stops its own queue and nothing else.
base::Status bad_opcode() {
  constexpr std::size_t kBehindBad = 0;
  constexpr std::size_t kOther = 64;
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(RingQueue bad, RingQueue::create(stage.gpu(), QueueKind::kPm4));
  ASSIGN_OR_RETURN(RingQueue other, RingQueue::create(stage.gpu(), QueueKind::kPm4));
  TRY(expect_alive(other, stage, kOther));
  TRY(bad.submit(Pm4Commands(stage.gpu()).bad_opcode().fence(stage.words.gpu_address(kBehindBad), kAlive).dwords()));
  for (std::size_t i = 1; i <= 8; ++i) TRY(expect_alive(other, stage, kOther * i + 8));
  if (!stays([&] { return stage.words.load32(kBehindBad) == 0; }))
    return base::Error(EIO, "the queue went on behind a packet that does not exist");
  ASSIGN_OR_RETURN(RingQueue fresh, RingQueue::create(stage.gpu(), QueueKind::kPm4));
  return expect_alive(fresh, stage, 2048);
}

// With the runtime enabled, KFD reports the packet error through the queue's exception word and event.
base::Status bad_opcode_report() {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  TRY(ioctls_of(stage.gpu()).client().enable_runtime());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu()));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kPm4, {.error_event = &event}));
  TRY(queue.submit(Pm4Commands(stage.gpu()).bad_opcode().dwords()));
  ASSIGN_OR_RETURN(const WaitOutcome outcome, event.wait(kEventLimit));
  if (outcome != WaitOutcome::kSignaled) return base::Error(ETIME, "no queue exception");
  const auto reason = static_cast<std::uint64_t>(*queue.error_reason());
  if ((reason & kfd::abi::kPacketExceptions) != 0) return {};
  return base::Error(EIO, "exception word " + std::to_string(reason) + " names no packet error");
}

// With the runtime enabled, KFD passes on what the trap handler sends of a wave that cannot continue. `code` is for the
// chips whose waves are executed; a dispatch to another chip is an illegal instruction.
base::Status wave_error_report(std::span<const std::uint32_t> code, std::uint64_t exception) {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  TRY(ioctls_of(stage.gpu()).client().enable_runtime());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu()));
  ASSIGN_OR_RETURN(GpuMemory wave, GpuMemory::allocate(stage.gpu(), MemoryKind::kGtt, kPageSize));
  std::memcpy(wave.data(), code.data(), code.size_bytes());
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kPm4, {.error_event = &event}));
  TRY(queue.submit(Pm4Commands(stage.gpu()).wave(wave.gpu_address(), 0).dwords()));
  ASSIGN_OR_RETURN(const WaitOutcome outcome, event.wait(kEventLimit));
  if (outcome != WaitOutcome::kSignaled) return base::Error(ETIME, "no queue exception");
  const auto reason = static_cast<std::uint64_t>(*queue.error_reason());
  if (reason == exception) return {};
  return base::Error(EIO, "exception word " + std::to_string(reason) + " instead of " + std::to_string(exception));
}

base::Status illegal_instruction_report() {
  constexpr std::array<std::uint32_t, 3> kCode = {0xbf800000, 0xd7ff0000, 0};  // s_nop 0; no instruction
  return wave_error_report(kCode, kfd::abi::kExceptionWaveIllegalInstruction);
}

base::Status wave_abort_report() {
  constexpr std::array<std::uint32_t, 2> kCode = {0xbf920002, 0xbf810000};  // s_trap 2; s_endpgm
  return wave_error_report(kCode, kfd::abi::kExceptionWaveAbort);
}

base::Status wave_trap_report() {
  constexpr std::array<std::uint32_t, 2> kCode = {0xbf920005, 0xbf810000};  // s_trap 5; s_endpgm
  return wave_error_report(kCode, kfd::abi::kExceptionWaveTrap);
}

base::Status thunk_topology() {
  ASSIGN_OR_RETURN(const Session session, Session::open(DriverKind::kThunk));
  for (const Gpu& gpu : session.gpus()) {
    HsaNodeProperties properties{};
    if (hsaKmtGetNodeProperties(gpu.node, &properties) != HSAKMT_STATUS_SUCCESS)
      return base::Error(EIO, "no properties of node " + std::to_string(gpu.node));
    if (properties.NumFComputeCores != gpu.simd_count || properties.LocationId != gpu.location_id ||
        properties.DrmRenderMinor != static_cast<std::int32_t>(gpu.render_minor))
      return base::Error(EIO, "libhsakmt and sysfs differ about node " + std::to_string(gpu.node));
  }
  return session.gpus().empty() ? base::Error(ENODEV, "no GPU") : base::Status();
}

base::Status thunk_workloads() {
  ASSIGN_OR_RETURN(const Session session, Session::open(DriverKind::kThunk));
  for (const Gpu& gpu : session.gpus()) {
    for (const std::string& name : workload_names()) {
      const auto workload = make_workload(name);
      if (workload->uses_svm()) continue;
      NoCheckpointer undisturbed;
      TRY(run(*workload, gpu, undisturbed));
    }
  }
  return {};
}

// All of VRAM that another process could have, in one go, through the graphics side of the driver.
base::Status take_vram() {
  ASSIGN_OR_RETURN(const std::vector<Gpu> gpus, gpus_in_sysfs());
  if (gpus.empty()) return base::Error(ENODEV, "no GPU");
  const std::string path = "/dev/dri/renderD" + std::to_string(gpus.front().render_minor);
  const base::UniqueFd drm(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!drm.valid()) return base::Error::from_errno(errno, path);
  drm_amdgpu_gem_create create{};
  create.in.bo_size = gpus.front().vram_size / kMiB * 7 / 10 * kMiB;
  create.in.alignment = kPageSize;
  create.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
  create.in.domain_flags = AMDGPU_GEM_CREATE_NO_CPU_ACCESS;
  if (::ioctl(drm.get(), DRM_IOCTL_AMDGPU_GEM_CREATE, &create) != 0)
    return base::Error::from_errno(errno, "a buffer of most of VRAM");
  return {};
}

// The error stops this queue only: another queue of the process goes on.
base::Status agent_dispatch() {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  const bool reported = stage.gpu().generation.gfx_level >= 9;  // amdkfd looks at no such interrupt before
  if (reported) TRY(ioctls_of(stage.gpu()).client().enable_runtime());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu()));
  ASSIGN_OR_RETURN(AqlQueue queue, AqlQueue::create(stage.gpu(), AqlQueue::kDefaultPackets, &event));
  ASSIGN_OR_RETURN(RingQueue other, RingQueue::create(stage.gpu(), QueueKind::kPm4));
  const AqlSignal behind(stage.words, 512, 1);
  TRY(queue.submit(aql_agent_dispatch()));
  TRY(queue.submit(aql_barrier_and({}, &behind)));
  if (reported) {
    ASSIGN_OR_RETURN(const WaitOutcome outcome, event.wait(kEventLimit));
    if (outcome != WaitOutcome::kSignaled) return base::Error(ETIME, "no queue exception");
    if ((*queue.error_reason() & kfd::abi::kPacketExceptions) == 0)
      return base::Error(EIO, "exception word " + std::to_string(*queue.error_reason()) + " names no packet error");
  }
  TRY(expect_alive(other, stage, 0));
  if (!stays([&] { return behind.value() == 1; }))
    return base::Error(EIO, "the queue went on behind a packet that it cannot execute");
  return {};
}

base::Status read_only_fault() {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  KfdDriver& driver = ioctls_of(stage.gpu());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu(), EventKind::kMemory, ResetMode::kManual));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), QueueKind::kSdma));
  ASSIGN_OR_RETURN(Block block, driver.allocate_with(stage.gpu(), KFD_IOC_ALLOC_MEM_FLAGS_GTT, kPageSize));
  ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::take(stage.gpu(), block));
  memory.store32(0, kAlive);
  // The GPU may read the page.
  TRY(queue.submit(
      SdmaCommands(stage.gpu()).copy(stage.words.gpu_address(), memory.gpu_address(), sizeof(kAlive)).dwords()));
  TRY(wait_for_word(stage.words, 0, kAlive));
  TRY(queue.submit(SdmaCommands(stage.gpu()).fill(memory.gpu_address(), kPageSize, 0).dwords()));
  TRY(expect_fault(event, stage.gpu(), memory.gpu_address()));
  if (memory.load32(0) != kAlive) return base::Error(EIO, "read-only memory was written");
  if (!event.fault().read_only) return base::Error(EIO, "the memory exception does not say read-only");
  return {};
}

// An access that is retried until the driver has said that there is nothing to map: an exception, not a wait for ever.
enum class Behind : std::uint8_t { kNothing, kForbidden, kMemoryWithoutRetry };

base::Status retried_access(QueueKind kind, Behind behind) {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  TRY(ioctls_of(stage.gpu()).client().set_xnack(behind != Behind::kMemoryWithoutRetry));
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu(), EventKind::kMemory, ResetMode::kManual));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), kind));
  // Mapped last, so that nothing else takes the address of what is unmapped again.
  ASSIGN_OR_RETURN(base::Mapping pages, base::Mapping::anonymous(kPageSize, "pages for XNACK"));
  const auto address = reinterpret_cast<std::uint64_t>(pages.data());
  if (behind == Behind::kNothing) pages = base::Mapping();
  if (behind == Behind::kForbidden && ::mprotect(pages.data(), kPageSize, PROT_NONE) != 0)
    return base::Error::from_errno(errno, "mprotect");
  TRY(submit_write(queue, kind, stage.gpu(), address));
  return expect_fault(event, stage.gpu(), address);
}

base::Status step_together() {
  constexpr unsigned kSteps = 10;
  constexpr std::size_t kLargeSaveArea = 48 * kMiB;
  ASSIGN_OR_RETURN(const Session session, Session::open());
  if (session.gpus().empty()) return base::Error(ENODEV, "no GPU");
  const Gpu& gpu = session.gpus().front();
  // On the largest chips so many save areas need more than the VM's memory; SDMA queues have none.
  const QueueKind kind = save_area_size(gpu) > kLargeSaveArea ? QueueKind::kSdma : QueueKind::kPm4;
  ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(gpu, kind));
  TRY(queue.submit(kSteps));
  queue.open(1);
  TRY(queue.wait_done(1));
  TRY(wait_for_the_others());
  for (unsigned step = 2; step <= kSteps; ++step) {
    queue.open(step);
    TRY(queue.wait_done(step));
  }
  return queue.expect_done(kSteps);
}

using Scenario = base::Status (*)();

constexpr std::pair<std::string_view, Scenario> kScenarios[] = {
    {"memory_fault_pm4", [] { return memory_fault(QueueKind::kPm4); }},
    {"memory_fault_sdma", [] { return memory_fault(QueueKind::kSdma); }},
    {"bad_opcode", bad_opcode},
    {"bad_opcode_report", bad_opcode_report},
    {"illegal_instruction_report", illegal_instruction_report},
    {"wave_abort_report", wave_abort_report},
    {"wave_trap_report", wave_trap_report},
    {"agent_dispatch", agent_dispatch},
    {"read_only_fault", read_only_fault},
    {"retry_no_memory_pm4", [] { return retried_access(QueueKind::kPm4, Behind::kNothing); }},
    {"retry_no_memory_sdma", [] { return retried_access(QueueKind::kSdma, Behind::kNothing); }},
    {"retry_forbidden", [] { return retried_access(QueueKind::kSdma, Behind::kForbidden); }},
    {"no_retry", [] { return retried_access(QueueKind::kSdma, Behind::kMemoryWithoutRetry); }},
    {"take_vram", take_vram},
    {"thunk_topology", thunk_topology},
    {"thunk_workloads", thunk_workloads},
    {"step_together", step_together},
    {"debugger_lists", debugger_lists},
    {"debugger_suspends_pm4", [] { return debugger_suspends(QueueKind::kPm4); }},
    {"debugger_suspends_aql", [] { return debugger_suspends(QueueKind::kAql); }},
};

}  // namespace

base::Status run_scenario(std::string_view name) {
  const auto found = std::ranges::find(kScenarios, name, &std::pair<std::string_view, Scenario>::first);
  if (found != std::end(kScenarios)) return found->second();
  if (auto restored = run_restore_scenario(name); restored.has_value()) return std::move(*restored);
  if (auto shared = run_shared_scenario(name); shared.has_value()) return std::move(*shared);
  if (auto held = run_defect_scenario(name); held.has_value()) return std::move(*held);
  return run_injection(name);
}

}  // namespace kfdtest
