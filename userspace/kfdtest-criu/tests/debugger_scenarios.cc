// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A debugger through AMDKFD_IOC_DBG_TRAP. KFD wants a debugger to use ptrace, unless it is the debugged process itself.
#include "kfdtest-criu/tests/debugger_scenarios.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kfd/kfd.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/step_queue.h"

namespace kfdtest {
namespace {

// A process may debug itself.
class Debugger {
 public:
  static base::Result<Debugger> attach(const kfd::Client& client) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return base::Error::from_errno(errno, "pipe for a debugger");
    Debugger debugger(client);
    debugger.events_.reset(ends[0]);
    const base::UniqueFd told(ends[1]);
    kfd::abi::DebugTrapArgs args{};
    args.enable.dbg_fd = static_cast<std::uint32_t>(told.get());
    TRY(debugger.call(kfd::abi::kTrapEnable, &args));
    return debugger;
  }

  [[nodiscard]] base::Result<std::vector<kfd::abi::QueueSnapshot>> queues() const {
    std::vector<kfd::abi::QueueSnapshot> entries(kRoom);
    kfd::abi::DebugTrapArgs args{};
    args.queue_snapshot = {kfd::abi::kExceptionQueueNew, reinterpret_cast<std::uint64_t>(entries.data()), kRoom,
                           sizeof(entries[0])};
    TRY(call(kfd::abi::kTrapQueueSnapshot, &args));
    entries.resize(std::min(kRoom, args.queue_snapshot.num_queues));
    return entries;
  }
  [[nodiscard]] base::Result<std::vector<kfd::abi::DeviceSnapshot>> devices() const {
    std::vector<kfd::abi::DeviceSnapshot> entries(kRoom);
    kfd::abi::DebugTrapArgs args{};
    args.device_snapshot = {0, reinterpret_cast<std::uint64_t>(entries.data()), kRoom, sizeof(entries[0])};
    TRY(call(kfd::abi::kTrapDeviceSnapshot, &args));
    entries.resize(std::min(kRoom, args.device_snapshot.num_devices));
    return entries;
  }
  // KFD sets a bit in the id of a queue that it did not suspend or resume.
  [[nodiscard]] base::Status suspend(std::uint32_t queue) const {
    std::uint32_t id = queue;
    kfd::abi::DebugTrapArgs args{};
    args.suspend_queues = {0, reinterpret_cast<std::uint64_t>(&id), 1, 0};
    TRY(call(kfd::abi::kTrapSuspendQueues, &args));
    return id == queue ? base::Status() : base::Error(EIO, "the queue was not suspended");
  }
  [[nodiscard]] base::Status resume(std::uint32_t queue) const {
    std::uint32_t id = queue;
    kfd::abi::DebugTrapArgs args{};
    args.resume_queues = {reinterpret_cast<std::uint64_t>(&id), 1, 0};
    TRY(call(kfd::abi::kTrapResumeQueues, &args));
    return id == queue ? base::Status() : base::Error(EIO, "the queue was not resumed");
  }
  [[nodiscard]] base::Status detach() const {
    kfd::abi::DebugTrapArgs args{};
    return call(kfd::abi::kTrapDisable, &args);
  }

 private:
  static constexpr std::uint32_t kRoom = 16;
  explicit Debugger(const kfd::Client& client) : client_(&client) {}
  base::Status call(kfd::abi::DebugTrapOp op, kfd::abi::DebugTrapArgs* args) const {
    args->pid = static_cast<std::uint32_t>(::getpid());
    args->op = op;
    return client_->debug_trap(*args);
  }
  const kfd::Client* client_;
  base::UniqueFd events_;  // KFD wants a file that it can report exceptions to
};

base::Status expect_listed(std::span<const kfd::abi::QueueSnapshot> listed, const KfdQueue& queue,
                           kfd::QueueType type) {
  const auto entry = std::ranges::find(listed, queue.id(), &kfd::abi::QueueSnapshot::queue_id);
  const std::string name = "queue " + std::to_string(queue.id());
  if (entry == listed.end()) return base::Error(EIO, name + " is not listed");
  if (entry->gpu_id != queue.gpu().gpu_id) return base::Error(EIO, name + " is listed on another GPU");
  if (entry->queue_type != static_cast<std::uint32_t>(type))
    return base::Error(EIO, name + " is listed with another type");
  if (entry->ring_base_address != queue.ring().gpu_address() || entry->ring_size != queue.ring().size())
    return base::Error(EIO, name + " is listed with another ring");
  return {};
}

}  // namespace

base::Status debugger_lists() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  if (session.gpus().empty()) return base::Error(ENODEV, "no GPU");
  const Gpu& gpu = session.gpus().front();
  const Gpu& last = session.gpus().back();
  ASSIGN_OR_RETURN(RingQueue pm4, RingQueue::create(gpu, QueueKind::kPm4));
  ASSIGN_OR_RETURN(AqlQueue aql, AqlQueue::create(gpu));
  ASSIGN_OR_RETURN(RingQueue sdma, RingQueue::create(last, QueueKind::kSdma, {.ring_size = 2 * kPageSize}));
  ASSIGN_OR_RETURN(const Debugger debugger, Debugger::attach(ioctls_of(gpu).client()));
  ASSIGN_OR_RETURN(const auto fresh, debugger.queues());
  if (fresh.size() != 3) return base::Error(EIO, std::to_string(fresh.size()) + " queues are listed, not 3");
  TRY(expect_listed(fresh, pm4, kfd::QueueType::kCompute));
  TRY(expect_listed(fresh, aql, kfd::QueueType::kComputeAql));
  TRY(expect_listed(fresh, sdma, kfd::QueueType::kSdma));
  ASSIGN_OR_RETURN(const auto known, debugger.queues());
  for (std::size_t i = 0; i < fresh.size(); ++i)
    if (fresh[i].exception_status != kfd::abi::kExceptionQueueNew || known.at(i).exception_status != 0)
      return base::Error(EIO, "a queue is to be new until it was listed");
  ASSIGN_OR_RETURN(const auto devices, debugger.devices());
  for (const Gpu& each : session.gpus()) {
    const auto entry = std::ranges::find(devices, each.gpu_id, &kfd::abi::DeviceSnapshot::gpu_id);
    if (entry == devices.end()) return base::Error(EIO, "a GPU is not listed");
    if (entry->gfx_target_version != each.gfx_target_version || entry->location_id != each.location_id ||
        entry->simd_count != each.simd_count || entry->num_xcc != each.num_xcc)
      return base::Error(EIO, "the debugger and sysfs differ about a GPU");
  }
  TRY(debugger.detach());
  return debugger.queues().ok() ? base::Error(EIO, "who does not debug is told of queues") : base::Status();
}

base::Status debugger_suspends(QueueKind kind) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  if (session.gpus().empty()) return base::Error(ENODEV, "no GPU");
  const Gpu& gpu = session.gpus().front();
  const kfd::Client& client = ioctls_of(gpu).client();
  TRY(client.enable_runtime());
  ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(gpu, kind));
  ASSIGN_OR_RETURN(StepQueue other, StepQueue::create(gpu, kind));
  TRY(queue.submit(4));
  TRY(other.submit(2));
  ASSIGN_OR_RETURN(const Debugger debugger, Debugger::attach(client));
  if (debugger.suspend(queue.queue().id()).ok()) return base::Error(EIO, "a new queue was suspended");
  ASSIGN_OR_RETURN(const auto listed, debugger.queues());
  queue.open(2);
  TRY(queue.wait_done(2));
  TRY(debugger.suspend(queue.queue().id()));
  queue.open(4);
  other.open(2);
  TRY(other.wait_done(2));
  TRY(queue.expect_done(2));
  TRY(debugger.resume(queue.queue().id()));
  TRY(queue.wait_done(4));
  return debugger.detach();
}

base::Status debugged_is_refused() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const kfd::Client& client = ioctls_of(session.gpus().front()).client();
  TRY(client.enable_runtime());
  ASSIGN_OR_RETURN(const Debugger debugger, Debugger::attach(client));
  kfd::RealKfd criu;
  auto paused = criu.pause(client.fd());
  TRY(debugger.detach());
  if (!paused.ok()) return paused.error().code() == EOPNOTSUPP ? base::Status() : paused.error();
  TRY(criu.unpause(client.fd(), *paused));
  return base::Error(EIO, "a program is to be checkpointed without what its debugger has set");
}

}  // namespace kfdtest
