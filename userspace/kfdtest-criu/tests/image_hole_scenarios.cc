// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What Linux 6.12's checkpoint/restore accepts from an image without a check. Each image is a real one with one value
// changed.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/harness/successor.h"
#include "kfdtest-criu/tests/defect_scenarios.h"
#include "kfdtest-criu/tests/taken_image.h"
#include "packets/mqd.h"

namespace kfdtest {
namespace {

bool can_retry_faults(const Gpus& gpus) {
  constexpr std::uint32_t kGfx90a = 90010;
  return gpus.front().generation.gfx_level == 9 && gpus.front().gfx_target_version >= kGfx90a;
}
bool has_small_bar(const Gpus& gpus) { return !gpus.front().vram_cpu_visible; }

base::Status is_refused(const TakenImage& image) {
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
    return restoree.expect_refused(restoree.request(image));
  });
}

// ---- the process and its GPUs -----------------------------------------------

base::Status xnack_mode_is_refused() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(TakenImage image, TakenImage::take(session));
  constexpr std::size_t kModeAt = 4;  // byte offset, behind the version
  image.checkpoint.priv_data.at(kModeAt) = std::byte{7};
  return is_refused(image);
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

// ---- memory -----------------------------------------------------------------

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
  return is_refused(image);
}

// RESTORE of an image that pretends to be longer than it is. The kernel may not even ask for so much memory: the
// guest's log is watched.
class LongerImage {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 42;

  LongerImage(const TakenImage& image, const Restoree& restoree) : request_(restoree.request(image)) {
    for (const kfd::RestoreDevice& each : request_.devices)
      devices_.push_back({.user_gpu_id = each.user_id,
                          .actual_gpu_id = each.actual_id,
                          .drm_fd = static_cast<std::uint32_t>(each.drm_fd),
                          .pad = 0});
    for (const kfd::Bo& each : request_.bos)
      bos_.push_back({.addr = each.addr,
                      .size = each.size,
                      .offset = 0,
                      .restored_offset = 0,
                      .gpu_id = each.user_gpu_id,
                      .alloc_flags = each.alloc_flags,
                      .dmabuf_fd = 0,
                      .pad = 0});
  }

  [[nodiscard]] base::Status expect_refused(int fd, std::uint32_t more_bos) {
    kfd_ioctl_criu_args args{};
    args.op = KFD_CRIU_OP_RESTORE;
    args.devices = reinterpret_cast<std::uint64_t>(devices_.data());
    args.bos = reinterpret_cast<std::uint64_t>(bos_.data());
    args.priv_data = reinterpret_cast<std::uint64_t>(request_.priv_data.data());
    args.priv_data_size = kBytes;
    args.num_devices = static_cast<std::uint32_t>(devices_.size());
    args.num_bos = static_cast<std::uint32_t>(bos_.size()) + more_bos;
    args.num_objects = request_.num_objects;
    return ::ioctl(fd, AMDKFD_IOC_CRIU_OP, &args) == 0 ? base::Error(EIO, "the kernel took the image") : base::Status();
  }

 private:
  kfd::RestoreRequest request_;
  std::vector<kfd_criu_device_bucket> devices_;
  std::vector<kfd_criu_bo_bucket> bos_;
};

base::Status longer_image_is_refused(const TakenImage& image, std::uint32_t more_bos) {
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
    return LongerImage(image, restoree).expect_refused(restoree.client().fd(), more_bos);
  });
}

base::Status endless_bos() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(session.gpus().front(), MemoryKind::kGtt, kPageSize));
  ASSIGN_OR_RETURN(const TakenImage image, TakenImage::take(session));
  return longer_image_is_refused(image, 0xf0000000);
}

// ---- queues -----------------------------------------------------------------

// The queue is destroyed before the restore, so that only the changed value can be the reason for a refusal.
base::Result<TakenImage> image_of_queue(const Session& session, QueueKind kind) {
  ASSIGN_OR_RETURN(const StepQueue queue, StepQueue::create(session.gpus().front(), kind));
  return TakenImage::take(session);
}

base::Status spoiled_queue_is_refused(QueueKind kind, const std::function<void(QueueRecord&)>& spoil) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(TakenImage image, image_of_queue(session, kind));
  ASSIGN_OR_RETURN(QueueRecord record, image.first_queue());
  spoil(record);
  TRY(image.replace_first(record));
  return is_refused(image);
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
base::Status endless_control_stack() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(TakenImage image, image_of_queue(session, QueueKind::kPm4));
  ASSIGN_OR_RETURN(QueueRecord record, image.first_queue());
  record.control_stack_size = 0xf0000000;
  TRY(image.replace_first(record));
  return longer_image_is_refused(image, 0);
}

// Bits of CP_HQD_PQ_CONTROL that make a program's queue one of the driver's.
constexpr std::uint32_t kPrivileged = packets::mqd::kPqPrivState.mask() | packets::mqd::kPqKmdQueue.mask();

// CP_HQD_PQ_CONTROL in the first MQD of the first queue.
base::Result<std::span<std::byte>> ring_control_of(TakenImage& image) {
  ASSIGN_OR_RETURN(const QueueRecord record, image.first_queue());
  const auto& layout = packets::mqd::compute_layout(image.gpus().front().generation.gfx_level);
  const std::size_t at = layout.cp_hqd_pq_control * sizeof(std::uint32_t);
  if (at + sizeof(std::uint32_t) > record.mqd_size) return base::Error(EINVAL, "an MQD that is too short");
  return image.objects().subspan(sizeof(record) + at, sizeof(std::uint32_t));
}

base::Status restored_without_rights(const TakenImage& image) {
  ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
  const int fd = restoree.client().fd();
  kfd::RealKfd kfd;
  if (const auto restored = kfd.restore(fd, restoree.request(image)); !restored.ok()) return restored.error();
  TRY(kfd.resume(fd, ::getpid()));
  ASSIGN_OR_RETURN(TakenImage again, TakenImage::take(fd, image.gpus()));
  ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, ring_control_of(again));
  std::uint32_t control = 0;
  std::memcpy(&control, bytes.data(), sizeof(control));
  return control & kPrivileged ? base::Error(EIO, "an image made a queue a privileged one") : base::Status();
}

base::Status privileged_queue() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(TakenImage image, image_of_queue(session, QueueKind::kPm4));
  ASSIGN_OR_RETURN(const std::span<std::byte> bytes, ring_control_of(image));
  std::uint32_t control = 0;
  std::memcpy(&control, bytes.data(), sizeof(control));
  control |= kPrivileged;
  std::memcpy(bytes.data(), &control, sizeof(control));
  return run_with_successors([&] { return restored_without_rights(image); });
}

// ---- events and SVM ranges --------------------------------------------------

// The id of a non-signal event must not be a slot of the signal page: the driver would look for it there.
base::Status event_among_signals_is_refused() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const kfd::Client& client = ioctls_of(session.gpus().front()).client();
  TRY(client.create_event(KFD_IOC_EVENT_HW_EXCEPTION, /*auto_reset=*/true, 0));
  ASSIGN_OR_RETURN(TakenImage image, TakenImage::take(session));
  ASSIGN_OR_RETURN(EventRecord record, image.first_event());
  record.event_id = 5;
  TRY(image.replace_first(record));
  return is_refused(image);
}

// The record counts pages: a page number above 2^52 wraps when it becomes an address.
base::Status svm_range_past_the_end_is_refused() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const base::Mapping pages, base::Mapping::anonymous(kPageSize, "pages for SVM"));
  const kfd_ioctl_svm_attribute access = {KFD_IOCTL_SVM_ATTR_ACCESS, gpu.gpu_id};
  TRY(ioctls_of(gpu).client().svm_set(reinterpret_cast<std::uint64_t>(pages.data()), kPageSize, {&access, 1}));
  ASSIGN_OR_RETURN(TakenImage image, TakenImage::take(session));
  ASSIGN_OR_RETURN(SvmRecord record, image.first_svm_range());
  record.first_page |= std::uint64_t{1} << 52;
  TRY(image.replace_first(record));
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
    kfd::RealKfd kfd;
    if (!kfd.restore(restoree.client().fd(), restoree.request(image)).ok()) return {};
    return kfd.resume(restoree.client().fd(), ::getpid()).ok() ? base::Error(EIO, "the kernel took the image")
                                                               : base::Status();
  });
}

constexpr Defect kHoles[] = {
    {"hole_an_image_with_an_impossible_xnack_mode_is_refused", can_retry_faults, xnack_mode_is_refused},
    {"hole_two_gpus_of_one_name_are_refused", has_two_gpus, one_name_for_two_gpus},
    {"hole_the_file_of_another_gpu_is_refused", has_two_gpus, file_of_another_gpu},
    {"hole_visible_memory_behind_a_small_bar_is_refused", has_small_bar, visible_vram_is_refused},
    {"hole_an_image_with_endless_memory_is_refused", always, endless_bos},
    {"hole_an_image_with_a_queue_of_the_scheduler_is_refused", always, hiq_is_refused},
    {"hole_an_image_with_a_queue_of_a_debugger_is_refused", always, diq_is_refused},
    {"hole_an_image_with_an_impossible_priority_is_refused", always, priority_is_refused},
    {"hole_an_image_with_an_impossible_percentage_is_refused", always, percentage_is_refused},
    {"hole_an_image_with_an_endless_control_stack_is_refused", always, endless_control_stack},
    {"hole_an_image_makes_no_queue_privileged", always, privileged_queue},
    {"hole_an_event_among_the_signals_is_refused", always, event_among_signals_is_refused},
    {"hole_an_svm_range_past_the_end_is_refused", has_svm, svm_range_past_the_end_is_refused},
};

}  // namespace

std::span<const Defect> image_holes() { return kHoles; }

}  // namespace kfdtest
