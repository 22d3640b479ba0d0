// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What Linux 6.12's checkpoint/restore loses silently, lets be done when it must not be, or leaves behind. What it
// takes from an image without looking: image_hole_scenarios.cc.
#include <linux/kfd_criu_ioctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include "kfd/extensible_kfd.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/harness/successor.h"
#include "kfdtest-criu/tests/debugger_scenarios.h"
#include "kfdtest-criu/tests/defect_scenarios.h"
#include "kfdtest-criu/tests/restore_scenarios.h"
#include "kfdtest-criu/tests/taken_image.h"

namespace kfdtest {
namespace {

bool has_debugger(const Gpus& gpus) { return gpus.front().generation.gfx_level >= 9; }

int fd_of(const Session& session) { return ioctls_of(session.gpus().front()).client().fd(); }

// The extensible ABI, whose image has more fields, if the kernel has it.
CriuAbi best_abi(const Session& session) {
  kfd::ExtensibleKfd kfd;
  return kfd.choose_abi(fd_of(session)).ok() ? CriuAbi::kExtensible : CriuAbi::kReleased;
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
  if (wait_until(is_back)) return {};
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
  // The image is taken before there is a queue, because not every kernel can save one.
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
  return queue.wait_done(2);
}

// ---- who may do what, and when ----------------------------------------------

base::Status seize(pid_t program) {
  if (::ptrace(PTRACE_SEIZE, program, nullptr, nullptr) == 0) return {};
  return base::Error::from_errno(errno, "PTRACE_SEIZE");
}

base::Status pause_and_die(pid_t program, int fd) {
  TRY(seize(program));
  kfd::RealKfd kfd;
  const auto paused = kfd.pause(fd);
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
  return queue.wait_done(2);
}

base::Status unpause_as_tracer(pid_t program, int fd) {
  TRY(seize(program));
  kfd::RealKfd kfd;
  kfd::Pause not_ours;
  return kfd.unpause(fd, not_ours).ok() ? base::Error(EIO, "a pause was ended by another than its owner")
                                        : base::Status();
}

base::Status pause_is_owned() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  kfd::RealKfd kfd;
  ASSIGN_OR_RETURN(kfd::Pause pause, kfd.pause(fd_of(session)));
  const pid_t self = ::getpid();
  TRY(run_with_successors([&] { return unpause_as_tracer(self, fd_of(session)); }));
  return kfd.unpause(fd_of(session), pause);
}

// The descriptors and addresses in a request are the caller's, not those of the process whose /dev/kfd it uses.
base::Status restore_as_tracer() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(session.gpus().front(), MemoryKind::kGtt, kPageSize));
  ASSIGN_OR_RETURN(const TakenImage image, TakenImage::take(session));
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
    const pid_t self = ::getpid();
    return run_with_successors([&]() -> base::Status {
      TRY(seize(self));
      return restoree.expect_refused(restoree.request(image));
    });
  });
}

base::Status use_before_resume(const TakenImage& image) {
  ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
  kfd::RealKfd kfd;
  const int fd = restoree.client().fd();
  if (const auto restored = kfd.restore(fd, restoree.request(image)); !restored.ok()) return restored.error();
  const auto early = restoree.client().create_event(KFD_IOC_EVENT_HW_EXCEPTION, /*auto_reset=*/true, 0);
  if (early.ok()) return base::Error(EIO, "a program made an event while it was being restored");
  if (early.error().code() != EBUSY) return early.error();
  TRY(kfd.resume(fd, ::getpid()));
  const auto event = restoree.client().create_event(KFD_IOC_EVENT_HW_EXCEPTION, /*auto_reset=*/true, 0);
  return event.ok() ? base::Status() : event.error();
}

base::Status program_waits_for_resume() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(session.gpus().front(), MemoryKind::kGtt, kPageSize));
  ASSIGN_OR_RETURN(const TakenImage image, TakenImage::take(session));
  return run_with_successors([&] { return use_before_resume(image); });
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

// The driver has no call that returns these settings, but an image of the extensible ABI has them. On a kernel without
// that ABI they cannot be checked, and the scenarios fail.
base::Result<kfd_criu_record_device> settings_of(const Session& session, std::uint32_t gpu_id) {
  kfd::ExtensibleKfd kfd;
  ASSIGN_OR_RETURN(kfd::Pause pause, kfd.pause(fd_of(session)));
  ASSIGN_OR_RETURN(const kfd::Checkpoint checkpoint, kfd.checkpoint(fd_of(session), pause));
  TRY(kfd.unpause(fd_of(session), pause));
  std::span<const std::byte> image = checkpoint.priv_data;
  while (image.size() >= sizeof(kfd_criu_record)) {
    kfd_criu_record_device device{};
    std::memcpy(&device, image.data(), std::min(sizeof(device), image.size()));
    if (device.record.type == KFD_CRIU_RECORD_DEVICE && device.user_gpu_id == gpu_id) return device;
    image = image.subspan(std::min<std::size_t>(image.size(), device.record.size));
  }
  return base::Error(ENOENT, "the image does not have the GPU");
}

base::Status trap_handler_in_chain() {
  constexpr std::uint64_t kCode = 0x123456789000;
  constexpr std::uint64_t kMemory = 0x123456abc000;
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  TRY(ioctls_of(gpu).client().set_trap_handler(gpu.gpu_id, kCode, kMemory));
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session));
  TRY(checkpointer.hand_over());
  ASSIGN_OR_RETURN(const kfd_criu_record_device settings, settings_of(session, gpu.gpu_id));
  if (settings.tba == kCode && settings.tma == kMemory) return {};
  return base::Error(EIO, "the trap handler is another one");
}

base::Status policy_in_chain() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  constexpr kfd::MemoryPolicy kPolicy = {.coherent = true, .aperture_coherent = false, .base = 0, .size = 0};
  constexpr std::uint32_t kScratch = 0x12345678;
  TRY(ioctls_of(gpu).client().set_memory_policy(gpu.gpu_id, kPolicy));
  TRY(ioctls_of(gpu).client().set_scratch(gpu.gpu_id, kScratch));
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session));
  TRY(checkpointer.hand_over());
  ASSIGN_OR_RETURN(const kfd_criu_record_device settings, settings_of(session, gpu.gpu_id));
  if (!(settings.flags & KFD_CRIU_DEVICE_POLICY) || settings.default_policy != KFD_IOC_CACHE_POLICY_COHERENT ||
      settings.alternate_policy != KFD_IOC_CACHE_POLICY_NONCOHERENT)
    return base::Error(EIO, "the memory policy is another one");
  return settings.scratch == kScratch ? base::Status() : base::Error(EIO, "the scratch memory is another one");
}

// Enabling twice returns EBUSY, which shows that the runtime stayed enabled. A program that has queues could not enable
// it again itself.
base::Status runtime_in_chain() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  const kfd::Client& client = ioctls_of(gpu).client();
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  TRY(client.enable_runtime());
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session));
  TRY(checkpointer.hand_over());
  const base::Status again = client.enable_runtime();
  if (again.ok()) return base::Error(EIO, "the runtime is not enabled any more");
  return again.error().code() == EBUSY ? base::Status() : again;
}

// Two DMA-bufs of one BO are the same file.
base::Result<bool> are_same_memory(const kfd::Client& client, const GpuMemory& one, const GpuMemory& other) {
  ASSIGN_OR_RETURN(const base::UniqueFd first, client.export_dmabuf(one.block().handle));
  ASSIGN_OR_RETURN(const base::UniqueFd second, client.export_dmabuf(other.block().handle));
  struct stat a {};
  struct stat b {};
  if (::fstat(first.get(), &a) != 0 || ::fstat(second.get(), &b) != 0)
    return base::Error::from_errno(errno, "fstat of a DMA-buf");
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

base::Status shared_memory_in_chain() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  KfdDriver& driver = ioctls_of(gpu);
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kVram, kPageSize));
  ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, driver.client().export_dmabuf(memory.block().handle));
  ASSIGN_OR_RETURN(Block block, driver.import_dmabuf(gpu, dmabuf.get(), kPageSize));
  ASSIGN_OR_RETURN(const GpuMemory imported, GpuMemory::take(gpu, std::move(block)));
  ASSIGN_OR_RETURN(const bool before, are_same_memory(driver.client(), memory, imported));
  if (!before) return base::Error(EINVAL, "what was imported is not what was exported");
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session));
  TRY(checkpointer.hand_over());
  ASSIGN_OR_RETURN(const bool after, are_same_memory(driver.client(), memory, imported));
  return after ? base::Status() : base::Error(EIO, "what was shared memory is two memories");
}

// The kernel accepts one event page in the life of a process.
base::Status event_page_in_chain() {
  constexpr std::size_t kPageOfEvents = 8 * kPageSize;
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  const kfd::Client& client = ioctls_of(gpu).client();
  ASSIGN_OR_RETURN(const Block page, ioctls_of(gpu).allocate(gpu, MemoryKind::kGtt, kPageOfEvents, MemoryUse::kData));
  ASSIGN_OR_RETURN(const kfd::CreatedEvent event, client.create_event(KFD_IOC_EVENT_SIGNAL, true, page.handle));
  TRY(client.destroy_event(event.id));
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, best_abi(session));
  TRY(checkpointer.hand_over());
  if (client.create_event(KFD_IOC_EVENT_SIGNAL, true, page.handle).ok())
    return base::Error(EIO, "the signal page was forgotten");
  const auto next = client.create_event(KFD_IOC_EVENT_SIGNAL, true, 0);
  return next.ok() ? base::Status() : next.error();
}

// AMDKFD_IOC_CREATE_EVENT takes any type.
base::Status other_event_in_chain() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const kfd::Client& client = ioctls_of(session.gpus().front()).client();
  ASSIGN_OR_RETURN(const kfd::CreatedEvent event, client.create_event(KFD_IOC_EVENT_NODECHANGE, true, 0));
  SuccessorCheckpointer checkpointer(session, GpuOrder::kSame, CriuAbi::kReleased);
  TRY(checkpointer.hand_over());
  return client.destroy_event(event.id);
}

// ---- pages that several processes share -------------------------------------

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

// CREATE_QUEUE returns a doorbell offset with the gpu_id that the program knows. A queue that has just been mapped
// finds its first step without a doorbell; the second step needs one.
base::Status new_queue_runs(const Session& session, const GpuMemory& /*memory*/) {
  ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(session.gpus().front(), QueueKind::kPm4));
  for (const unsigned steps : {1U, 2U}) {
    TRY(queue.submit(1));
    queue.open(steps);
    TRY(queue.wait_done(steps));
  }
  return {};
}

// GPU i of the program now runs on GPU i + 1 of the machine; the apertures must have the program's gpu_ids.
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

// Runs the program in a chain of processes that starts here.
template <base::Status (*kProgram)()>
base::Status chained() {
  return run_with_successors(kProgram);
}
template <base::Status (*kCheck)(const Session&, const GpuMemory&)>
base::Status named() {
  return run_with_successors([] { return names_in_chain(kCheck); });
}

constexpr Defect kHoles[] = {
    {"hole_a_queue_of_gfx7_comes_back", [](const Gpus& gpus) { return gpus.front().generation.gfx_level == 7; },
     [] { return run_restored("queue_counter", GpuOrder::kSame, CriuAbi::kReleased); }},
    {"hole_a_failed_restore_keeps_no_memory", always, failed_restore_frees},
    {"hole_a_refused_restore_does_not_stop_a_program", always, refused_restore_does_not_stop},
    {"hole_a_pause_ends_with_its_owner", always, pause_ends_with_owner},
    {"hole_a_pause_is_ended_by_its_owner_only", always, pause_is_owned},
    {"hole_a_program_is_restored_by_itself_only", always, restore_as_tracer},
    {"hole_a_restored_program_waits_for_its_resume", always, program_waits_for_resume},
    {"hole_a_program_that_is_debugged_is_refused", has_debugger, debugged_is_refused},
    {"hole_an_event_keeps_its_age", always, chained<age_in_chain>},
    {"hole_an_event_of_another_type_comes_back", always, chained<other_event_in_chain>},
    {"hole_the_signal_page_is_kept_without_events", always, chained<event_page_in_chain>},
    {"hole_a_trap_handler_is_kept", always, chained<trap_handler_in_chain>},
    {"hole_the_memory_policy_and_scratch_are_kept", always, chained<policy_in_chain>},
    {"hole_the_runtime_stays_enabled", always, chained<runtime_in_chain>},
    {"hole_shared_memory_stays_shared", always, chained<shared_memory_in_chain>},
    {"hole_an_svm_range_of_shared_pages_comes_back", has_svm, chained<shared_svm_in_chain>},
    {"hole_apertures_keep_the_names_of_gpus", has_two_gpus, named<apertures_have_names>},
    {"hole_a_buffer_is_exported_by_the_name_of_its_gpu", has_two_gpus, named<dmabuf_has_name>},
    {"hole_a_new_queue_finds_its_doorbell_by_the_name_of_its_gpu", has_two_gpus, named<new_queue_runs>},
    {"hole_an_event_page_on_another_gpu_goes_with_its_program", has_two_gpus,
     [] { return run_restored("event_state", GpuOrder::kRotated, CriuAbi::kReleased); }},
};

}  // namespace

std::span<const Defect> holes() { return kHoles; }

}  // namespace kfdtest
