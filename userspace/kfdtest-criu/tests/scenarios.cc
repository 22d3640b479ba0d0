// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The scenarios, and how a child process is made for one.
#include "kfdtest-criu/tests/scenarios.h"

#include <fcntl.h>
#include <hsakmt.h>
#include <libdrm/amdgpu_drm.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>

#include "base/mapping.h"
#include "base/unique_fd.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/workload.h"
#include "kfdtest-criu/tests/injection_scenarios.h"
#include "kfdtest-criu/tests/stage.h"

extern char** environ;

namespace kfdtest {
namespace {

constexpr std::uint32_t kAlive = 0xa11e;
base::Status memory_fault(QueueKind kind) {
  ASSIGN_OR_RETURN(Stage stage, Stage::open());
  ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(stage.gpu(), EventKind::kMemory, ResetMode::kManual));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(stage.gpu(), kind));
  // After the queue, or its buffers might take the address.
  // Kept allocated, so that nothing else is put at this address.
  ASSIGN_OR_RETURN(GpuMemory hidden, GpuMemory::allocate(stage.gpu(), MemoryKind::kVram, kPageSize));
  TRY(hidden.unmap());
  const std::uint64_t address = hidden.gpu_address();
  const std::uint32_t word = kAlive;
  if (kind == QueueKind::kPm4)
    TRY(queue.submit(Pm4Commands(stage.gpu()).write(address, word).dwords()));
  else
    TRY(queue.submit(SdmaCommands(stage.gpu()).write(address, std::span(&word, 1)).dwords()));
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

// The queue's own error, not one of its process: another queue goes on.
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
  // Reading is allowed.
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
  const std::uint32_t word = kAlive;
  if (kind == QueueKind::kPm4)
    TRY(queue.submit(Pm4Commands(stage.gpu()).write(address, word).dwords()));
  else
    TRY(queue.submit(SdmaCommands(stage.gpu()).write(address, std::span(&word, 1)).dwords()));
  return expect_fault(event, stage.gpu(), address);
}

}  // namespace

base::Status run_scenario(std::string_view name) {
  if (name == "memory_fault_pm4") return memory_fault(QueueKind::kPm4);
  if (name == "memory_fault_sdma") return memory_fault(QueueKind::kSdma);
  if (name == "bad_opcode") return bad_opcode();
  if (name == "bad_opcode_report") return bad_opcode_report();
  if (name == "agent_dispatch") return agent_dispatch();
  if (name == "read_only_fault") return read_only_fault();
  if (name == "retry_no_memory_pm4") return retried_access(QueueKind::kPm4, Behind::kNothing);
  if (name == "retry_no_memory_sdma") return retried_access(QueueKind::kSdma, Behind::kNothing);
  if (name == "retry_forbidden") return retried_access(QueueKind::kSdma, Behind::kForbidden);
  if (name == "no_retry") return retried_access(QueueKind::kSdma, Behind::kMemoryWithoutRetry);
  if (name == "take_vram") return take_vram();
  if (name == "thunk_topology") return thunk_topology();
  if (name == "thunk_workloads") return thunk_workloads();
  return run_injection(name);
}

base::Status spawn_scenario(std::string_view name) {
  std::string program = "/proc/self/exe";
  std::string option = "--scenario";
  std::string argument(name);
  char* const arguments[] = {program.data(), option.data(), argument.data(), nullptr};
  pid_t child = -1;
  if (const int code = ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ); code != 0)
    return base::Error::from_errno(code, "spawn");
  int status = 0;
  if (!wait_until([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 3 * kDeadline)) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return base::Error(ETIME, "scenario did not end");
  }
  if (WIFSIGNALED(status)) return base::Error(EIO, "scenario was killed by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return base::Error(EIO, "scenario failed; see its message above");
  return {};
}

}  // namespace kfdtest
