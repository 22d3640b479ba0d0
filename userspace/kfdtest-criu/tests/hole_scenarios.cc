// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What Linux 6.12's checkpoint/restore loses silently, or takes from an image without looking, or leaves behind.
#include <linux/kfd_criu_ioctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include "kfd/extensible_kfd.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/harness/successor.h"
#include "kfdtest-criu/tests/defect_scenarios.h"
#include "kfdtest-criu/tests/restore_scenarios.h"
#include "kfdtest-criu/tests/taken_image.h"

namespace kfdtest {
namespace {

using Gpus = std::vector<Gpu>;

bool always(const Gpus& /*gpus*/) { return true; }
bool has_two_gpus(const Gpus& gpus) { return gpus.size() > 1; }
bool has_svm(const Gpus& gpus) { return gpus.front().has_svm(); }
bool has_small_bar(const Gpus& gpus) { return !gpus.front().vram_cpu_visible; }

int fd_of(const Session& session) { return ioctls_of(session.gpus().front()).client().fd(); }

// The one that carries more, if the kernel has it.
CriuAbi best_abi(const Session& session) {
  kfd::ExtensibleKfd kfd;
  if (!kfd.process_info(fd_of(session)).ok()) return CriuAbi::kReleased;
  return kfd.unpause(fd_of(session)).ok() ? CriuAbi::kExtensible : CriuAbi::kReleased;
}

// ---- images that are not a program's ----------------------------------------

// A queue whose place is free again, so that only what is spoiled can be a reason.
base::Status spoiled_queue_is_refused(QueueKind kind, const std::function<void(QueueRecord&)>& spoil) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  TakenImage image;
  {
    ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(session.gpus().front(), kind));
    ASSIGN_OR_RETURN(image, TakenImage::take(session));
  }
  ASSIGN_OR_RETURN(QueueRecord record, image.first_queue());
  spoil(record);
  TRY(image.replace_first_queue(record));
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
    return restoree.expect_refused(restoree.request(image));
  });
}

// The driver's own queues (enum kfd_queue_type).
constexpr std::uint32_t kHiq = 2;
constexpr std::uint32_t kDiq = 3;

base::Status hiq_is_refused() {
  return spoiled_queue_is_refused(QueueKind::kPm4, [](QueueRecord& record) { record.type = kHiq; });
}
base::Status diq_is_refused() {
  return spoiled_queue_is_refused(QueueKind::kPm4, [](QueueRecord& record) { record.type = kDiq; });
}
base::Status priority_is_refused() {
  return spoiled_queue_is_refused(QueueKind::kSdma, [](QueueRecord& record) { record.priority = 0x1000; });
}
base::Status percentage_is_refused() {
  return spoiled_queue_is_refused(QueueKind::kSdma, [](QueueRecord& record) { record.percentage = 101; });
}

base::Status spoiled_request_is_refused(const std::function<void(kfd::RestoreRequest&)>& spoil) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(session.gpus().front(), MemoryKind::kGtt, kPageSize));
  ASSIGN_OR_RETURN(const TakenImage image, TakenImage::take(session));
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
    kfd::RestoreRequest request = restoree.request(image);
    spoil(request);
    return restoree.expect_refused(std::move(request));
  });
}

base::Status one_name_for_two_gpus() {
  return spoiled_request_is_refused(
      [](kfd::RestoreRequest& request) { request.devices[1].user_id = request.devices[0].user_id; });
}
base::Status file_of_another_gpu() {
  return spoiled_request_is_refused(
      [](kfd::RestoreRequest& request) { std::swap(request.devices[0].drm_fd, request.devices[1].drm_fd); });
}

// Memory that AMDKFD_IOC_ALLOC_MEMORY_OF_GPU does not give such a GPU's programs.
base::Status visible_vram_is_refused() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(session.gpus().front(), MemoryKind::kVram, kPageSize));
  ASSIGN_OR_RETURN(TakenImage image, TakenImage::take(session));
  std::size_t spoiled = 0;
  for (kfd::CheckpointedBo& each : image.checkpoint.bos) {
    if (each.bo.alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) {
      each.bo.alloc_flags |= KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
      ++spoiled;
    }
  }
  if (spoiled == 0) return base::Error(EINVAL, "an image without VRAM");
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
    return restoree.expect_refused(restoree.request(image));
  });
}

// ---- what a failure leaves --------------------------------------------------

base::Status fail_and_look(const TakenImage& image) {
  ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
  const std::uint32_t id = image.gpus().front().gpu_id;
  ASSIGN_OR_RETURN(const std::uint64_t before, restoree.client().available_memory(id));
  kfd::RestoreRequest request = restoree.request(image);
  request.priv_data.push_back(std::byte{0});
  TRY(restoree.expect_refused(std::move(request)));
  std::uint64_t after = 0;
  const auto is_back = [&] {
    const auto now = restoree.client().available_memory(id);
    after = now.ok() ? *now : 0;
    return after >= before;
  };
  if (wait_until(is_back, std::chrono::seconds(3))) return {};
  return base::Error(EIO, "a failed restore keeps " + std::to_string(before - after) + " bytes of VRAM");
}

base::Status failed_restore_frees() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(session.gpus().front(), MemoryKind::kVram, 16 * kMiB));
  ASSIGN_OR_RETURN(const TakenImage image, TakenImage::take(session));
  return run_with_successors([&] { return fail_and_look(image); });
}

base::Status refused_restore_does_not_stop() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  // Before there is a queue: not every kernel can save one.
  ASSIGN_OR_RETURN(const TakenImage image, TakenImage::take(session));
  ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(session.gpus().front(), QueueKind::kSdma));
  TRY(queue.submit(2));
  queue.open(1);
  TRY(queue.wait_done(1));
  kfd::RestoreRequest request;
  for (const Gpu& gpu : session.gpus())
    request.devices.push_back(
        {.user_id = gpu.gpu_id, .actual_id = gpu.gpu_id, .drm_fd = ioctls_of(gpu).render_fd(gpu)});
  for (const kfd::CheckpointedBo& each : image.checkpoint.bos) request.bos.push_back(each.bo);
  request.priv_data = image.checkpoint.priv_data;
  request.num_objects = image.num_objects;
  kfd::RealKfd kfd;
  if (kfd.restore(fd_of(session), std::move(request)).ok())
    return base::Error(EIO, "a running program was restored into");
  queue.open(2);
  return queue.wait_done(2, std::chrono::seconds(5));
}

base::Status pause_and_die(pid_t program, int fd) {
  if (::ptrace(PTRACE_SEIZE, program, nullptr, nullptr) != 0) return base::Error::from_errno(errno, "PTRACE_SEIZE");
  kfd::RealKfd kfd;
  const auto paused = kfd.process_info(fd);
  return paused.ok() ? base::Status() : paused.error();
}

base::Status pause_ends_with_owner() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(session.gpus().front(), QueueKind::kSdma));
  TRY(queue.submit(2));
  queue.open(1);
  TRY(queue.wait_done(1));
  const pid_t self = ::getpid();
  TRY(run_with_successors([&] { return pause_and_die(self, fd_of(session)); }));
  queue.open(2);
  return queue.wait_done(2, std::chrono::seconds(5));
}

// ---- what is lost -----------------------------------------------------------

// The age stands where struct kfd_hsa_signal_event_data has it: first in the union.
base::Status expect_wait(const Session& session, const KfdEvent& event, std::uint64_t last_age,
                         kfd::WaitResult wanted) {
  kfd_event_data data{};
  std::memcpy(&data, &last_age, sizeof(last_age));
  data.event_id = event.id();
  ASSIGN_OR_RETURN(const kfd::WaitResult result,
                   ioctls_of(session.gpus().front()).client().wait_events({&data, 1}, /*all=*/false, 0));
  if (result == wanted) return {};
  return base::Error(EIO, "a waiter that saw age " + std::to_string(last_age) +
                              (result == kfd::WaitResult::kComplete ? " was woken" : " was not woken"));
}

base::Status age_in_chain() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const KfdEvent event, KfdEvent::create(session.gpus().front()));
  TRY(event.set());
  TRY(event.set());
  TRY(expect_wait(session, event, 2, kfd::WaitResult::kComplete));
  TRY(expect_wait(session, event, 3, kfd::WaitResult::kTimeout));
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session));
  TRY(checkpointer.hand_over());
  TRY(expect_wait(session, event, 2, kfd::WaitResult::kComplete));
  return expect_wait(session, event, 3, kfd::WaitResult::kTimeout);
}

struct TrapHandler {
  std::uint64_t code = 0;
  std::uint64_t memory = 0;
  bool operator==(const TrapHandler&) const = default;
};

// Nobody can ask the driver for it, but an image tells.
base::Result<TrapHandler> trap_handler_of(const Session& session, std::uint32_t gpu_id) {
  kfd::ExtensibleKfd kfd;
  ASSIGN_OR_RETURN(const kfd::ProcessInfo info, kfd.process_info(fd_of(session)));
  ASSIGN_OR_RETURN(const kfd::Checkpoint checkpoint, kfd.checkpoint(fd_of(session), info));
  TRY(kfd.unpause(fd_of(session)));
  std::span<const std::byte> image = checkpoint.priv_data;
  while (image.size() >= sizeof(kfd_criu_record)) {
    kfd_criu_record_device device{};
    std::memcpy(&device, image.data(), std::min(sizeof(device), image.size()));
    if (device.record.type == KFD_CRIU_RECORD_DEVICE && device.user_gpu_id == gpu_id)
      return TrapHandler{device.tba, device.tma};
    image = image.subspan(std::min<std::size_t>(image.size(), device.record.size));
  }
  return base::Error(ENOENT, "the image does not have the GPU");
}

base::Status trap_handler_in_chain() {
  constexpr TrapHandler kHandler = {0x123456789000, 0x123456abc000};
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  TRY(ioctls_of(gpu).client().set_trap_handler(gpu.gpu_id, kHandler.code, kHandler.memory));
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session));
  TRY(checkpointer.hand_over());
  ASSIGN_OR_RETURN(const TrapHandler handler, trap_handler_of(session, gpu.gpu_id));
  return handler == kHandler ? base::Status() : base::Error(EIO, "the trap handler is another one");
}

// ---- pages that several processes have --------------------------------------

base::Status shared_svm_in_chain() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const auto workload = make_workload("svm_range");
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session), PageSharing::kWithChild);
  return run(*workload, session.gpus().front(), checkpointer);
}

// ---- names of GPUs ----------------------------------------------------------

base::Status names_in_chain(const std::function<base::Status(const Session&, const GpuMemory&)>& check) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(session.gpus().front(), MemoryKind::kGtt, kPageSize));
  SuccessorCheckpointer checkpointer(session, GpuOrder::kRotated, CriuAbi::kReleased);
  TRY(checkpointer.hand_over());
  return check(session, memory);
}

// GPU i is now where GPU i + 1 was: so are the names.
base::Status apertures_have_names(const Session& session, const GpuMemory& /*memory*/) {
  const std::vector<Gpu>& gpus = session.gpus();
  ASSIGN_OR_RETURN(const auto apertures,
                   ioctls_of(gpus.front()).client().apertures(static_cast<std::uint32_t>(gpus.size())));
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (apertures[(i + 1) % gpus.size()].gpu_id != gpus[i].gpu_id)
      return base::Error(EIO, "the apertures of GPU " + std::to_string(gpus[i].gpu_id) + " have another one's name");
  return {};
}

base::Status dmabuf_has_name(const Session& session, const GpuMemory& memory) {
  const Gpu& gpu = session.gpus().front();
  const kfd::Client& client = ioctls_of(gpu).client();
  ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, client.export_dmabuf(memory.block().handle));
  ASSIGN_OR_RETURN(const kfd::DmabufInfo info, client.dmabuf_info(dmabuf.get()));
  if (info.gpu_id == gpu.gpu_id) return {};
  return base::Error(EIO, "a DMA-buf of GPU " + std::to_string(gpu.gpu_id) + " has another one's name");
}

constexpr Defect kHoles[] = {
    {"hole_a_queue_of_gfx7_comes_back", [](const Gpus& gpus) { return gpus.front().generation.gfx_level == 7; },
     [] { return run_restored("queue_counter", GpuOrder::kSame, CriuAbi::kReleased); }},
    {"hole_an_image_with_a_queue_of_the_scheduler_is_refused", always, hiq_is_refused},
    {"hole_an_image_with_a_queue_of_a_debugger_is_refused", always, diq_is_refused},
    {"hole_an_image_with_an_impossible_priority_is_refused", always, priority_is_refused},
    {"hole_an_image_with_an_impossible_percentage_is_refused", always, percentage_is_refused},
    {"hole_two_gpus_of_one_name_are_refused", has_two_gpus, one_name_for_two_gpus},
    {"hole_the_file_of_another_gpu_is_refused", has_two_gpus, file_of_another_gpu},
    {"hole_visible_memory_behind_a_small_bar_is_refused", has_small_bar, visible_vram_is_refused},
    {"hole_a_failed_restore_keeps_no_memory", always, failed_restore_frees},
    {"hole_a_refused_restore_does_not_stop_a_program", always, refused_restore_does_not_stop},
    {"hole_a_pause_ends_with_its_owner", always, pause_ends_with_owner},
    {"hole_an_event_keeps_its_age", always, [] { return run_with_successors(age_in_chain); }},
    {"hole_a_trap_handler_is_kept", always, [] { return run_with_successors(trap_handler_in_chain); }},
    {"hole_an_svm_range_of_shared_pages_comes_back", has_svm, [] { return run_with_successors(shared_svm_in_chain); }},
    {"hole_apertures_keep_the_names_of_gpus", has_two_gpus,
     [] { return run_with_successors([] { return names_in_chain(apertures_have_names); }); }},
    {"hole_a_buffer_is_exported_by_the_name_of_its_gpu", has_two_gpus,
     [] { return run_with_successors([] { return names_in_chain(dmabuf_has_name); }); }},
    {"hole_an_event_page_on_another_gpu_goes_with_its_program", has_two_gpus,
     [] { return run_restored("event_state", GpuOrder::kRotated, CriuAbi::kReleased); }},
};

}  // namespace

std::span<const Defect> holes() { return kHoles; }

}  // namespace kfdtest
