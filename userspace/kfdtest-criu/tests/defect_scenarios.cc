// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// H1 to H8: what makes Linux 6.12's own checkpoint/restore fail or crash.
#include "kfdtest-criu/tests/defect_scenarios.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/mapping.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/smi_events.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/tests/evictors.h"
#include "kfdtest-criu/tests/restore_scenarios.h"
#include "kfdtest-criu/tests/taken_image.h"
#include "packets/mqd.h"

namespace kfdtest {
namespace {

constexpr std::uint32_t kGttFlags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
constexpr std::uint32_t kUserptrFlags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;

unsigned gfx_level(const Gpus& gpus) { return gpus.front().generation.gfx_level; }

base::Status comes_back(std::string_view workload) {
  return run_restored(workload, GpuOrder::kSame, CriuAbi::kReleased);
}

// ---- H3: one MQD for each XCC -----------------------------------------------

std::uint64_t save_area_of(std::span<const std::byte> mqd) {
  const packets::mqd::ComputeMqdLayout& layout = packets::mqd::compute_layout(9);
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::memcpy(&low, &mqd[layout.cp_hqd_ctx_save_base_addr_lo * sizeof(low)], sizeof(low));
  std::memcpy(&high, &mqd[layout.cp_hqd_ctx_save_base_addr_hi * sizeof(high)], sizeof(high));
  return std::uint64_t{high} << 32 | low;
}

// Each XCC saves its waves in a part of the save area of its own.
base::Status image_has_every_xcc() {
  const std::size_t mqd_size = packets::mqd::compute_layout(9).dwords * sizeof(std::uint32_t);
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(gpu, QueueKind::kPm4));
  ASSIGN_OR_RETURN(TakenImage image, TakenImage::take(session));
  ASSIGN_OR_RETURN(const QueueRecord record, image.first_queue());
  if (record.mqd_size != gpu.num_xcc * mqd_size)
    return base::Error(EIO, "the image has " + std::to_string(record.mqd_size / mqd_size) + " of " +
                                std::to_string(gpu.num_xcc) + " XCCs");
  const auto mqds = image.objects().subspan(sizeof(record), record.mqd_size);
  for (std::uint64_t xcc = 0; xcc < gpu.num_xcc; ++xcc)
    if (save_area_of(mqds.subspan(xcc * mqd_size, mqd_size)) != record.save_area + xcc * record.save_area_size)
      return base::Error(EIO, "the image has not the MQD of XCC " + std::to_string(xcc));
  return {};
}

// ---- H5: a GPU without a VM -------------------------------------------------

base::Status unused_gpu() {
  ASSIGN_OR_RETURN(const Gpus gpus, gpus_in_sysfs());
  ASSIGN_OR_RETURN(const kfd::Client client, kfd::Client::open());
  const std::string path = "/dev/dri/renderD" + std::to_string(gpus.front().render_minor);
  const base::UniqueFd render_node(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!render_node.valid()) return base::Error::from_errno(errno, path);
  const std::uint32_t id = gpus.front().gpu_id;
  TRY(client.acquire_vm(id, render_node.get()));
  constexpr std::uint64_t kAddress = std::uint64_t{8} << 30;
  ASSIGN_OR_RETURN(const kfd::CreatedMemory memory,
                   client.allocate({.gpu_id = id, .va = kAddress, .size = kPageSize, .flags = kGttFlags}));
  TRY(client.map(memory.handle, {&id, 1}));
  kfd::RealKfd kfd;
  ASSIGN_OR_RETURN(kfd::Pause pause, kfd.pause(client.fd()));
  ASSIGN_OR_RETURN(const kfd::Checkpoint checkpoint, kfd.checkpoint(client.fd(), pause));
  TRY(kfd.unpause(client.fd(), pause));
  return checkpoint.bos.size() == 1 ? base::Status() : base::Error(EIO, "the image does not have the one BO");
}

// ---- H6: RESUME of another process          ---------------------------------

// If the driver missed that pages move, the GPU would use pages that belong to another process by now.
base::Status queues_stop_when_pages_move(const Gpu& gpu) {
  const auto evictor = make_evictor("userptr");
  TRY(evictor->prepare(gpu));
  ASSIGN_OR_RETURN(StepQueue queue, StepQueue::create(gpu, QueueKind::kSdma));
  TRY(queue.submit(2));
  queue.open(1);
  TRY(queue.wait_done(1));
  TRY(evictor->evict(queue));
  TRY(evictor->resume(queue));
  queue.open(2);
  return queue.wait_done(2);
}

base::Status resume_as_stranger(pid_t program) {
  ASSIGN_OR_RETURN(const kfd::Client own, kfd::Client::open());
  kfd::RealKfd kfd;
  if (kfd.resume(own.fd(), program).ok()) return base::Error(EIO, "a stranger resumed a program that was not restored");
  return {};
}

base::Status stranger_resumes() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const pid_t self = ::getpid();
  TRY(run_with_successors([=] { return resume_as_stranger(self); }));
  return queues_stop_when_pages_move(session.gpus().front());
}

base::Status stray_resume() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  kfd::RealKfd kfd;
  if (kfd.resume(ioctls_of(session.gpus().front()).client().fd(), ::getpid()).ok())
    return base::Error(EIO, "a program was resumed that was not restored");
  return queues_stop_when_pages_move(session.gpus().front());
}

base::Status resume_without_gpu() {
  ASSIGN_OR_RETURN(const kfd::Client client, kfd::Client::open());
  kfd::RealKfd kfd;
  if (kfd.resume(client.fd(), ::getpid()).ok()) return base::Error(EIO, "a program was resumed that has no GPU");
  return {};
}

// ---- H7: a restore that failed half-way -------------------------------------

// After a failed restore either the process has no GPUs any more (EIO), or the driver still notices when pages go.
base::Status pages_are_followed(const kfd::Client& client, std::uint32_t gpu_id) {
  constexpr std::uint64_t kAddress = std::uint64_t{32} << 30;
  ASSIGN_OR_RETURN(const base::Mapping pages, base::Mapping::anonymous(kPageSize, "pages for a userptr"));
  pages.bytes().front() = std::byte{1};
  const auto memory = client.allocate({.gpu_id = gpu_id,
                                       .va = kAddress,
                                       .size = pages.size(),
                                       .flags = kUserptrFlags,
                                       .user_address = reinterpret_cast<std::uint64_t>(pages.data())});
  if (!memory.ok() && memory.error().code() == EIO) return {};
  if (!memory.ok()) return memory.error();
  TRY(client.map(memory->handle, {&gpu_id, 1}));
  ASSIGN_OR_RETURN(SmiEvents events, SmiEvents::open(client, gpu_id, {SmiKind::kQueueEviction}));
  if (::madvise(pages.data(), pages.size(), MADV_DONTNEED) != 0)
    return base::Error::from_errno(errno, "dropping pages");
  const auto line = events.wait_for(SmiKind::kQueueEviction, "");
  return line.ok() ? base::Status() : base::Error(EIO, "the GPU keeps pages that are gone");
}

base::Status fail_and_use(const TakenImage& image) {
  ASSIGN_OR_RETURN(const Restoree restoree, Restoree::open(image));
  kfd::RestoreRequest request = restoree.request(image);
  request.priv_data.push_back(std::byte{0});  // the kernel finds it after all objects are restored
  TRY(restoree.expect_refused(std::move(request)));
  return pages_are_followed(restoree.client(), image.gpus().front().gpu_id);
}

base::Status failed_restore() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  ASSIGN_OR_RETURN(const GpuMemory pages, GpuMemory::allocate(gpu, MemoryKind::kUserptr, kPageSize));
  ASSIGN_OR_RETURN(const KfdEvent event, KfdEvent::create(gpu));
  ASSIGN_OR_RETURN(const TakenImage image, TakenImage::take(session));
  return run_with_successors([&] { return fail_and_use(image); });
}

// ---- H8: a checkpoint while SVM ranges come and go --------------------------

constexpr std::size_t kStillRanges = 40;
constexpr std::size_t kRangePages = 4;
constexpr std::size_t kRangeSize = kRangePages * kPageSize;
constexpr std::size_t kMovingRanges = 8;

// Neighbours differ in their granularity, so that each stays a range of its own.
base::Status make_range(const Gpu& gpu, std::uint64_t address, std::uint64_t size, std::uint32_t granularity) {
  const kfd_ioctl_svm_attribute attributes[] = {{KFD_IOCTL_SVM_ATTR_GRANULARITY, granularity},
                                                {KFD_IOCTL_SVM_ATTR_ACCESS, gpu.gpu_id}};
  return ioctls_of(gpu).client().svm_set(address, size, attributes);
}

base::Status make_ranges(const Gpu& gpu, std::uint64_t address, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    TRY(make_range(gpu, address + i * kRangeSize, kRangeSize, 4 + static_cast<std::uint32_t>(i % 2)));
  return {};
}

// Registers, splits and unmaps ranges until `ends` is true.
base::Status churn(const Gpu& gpu, std::byte* pages, const std::atomic<bool>& ends) {
  const auto address = reinterpret_cast<std::uint64_t>(pages);
  constexpr std::size_t kSize = kMovingRanges * kRangeSize;
  while (!ends.load()) {
    TRY(make_ranges(gpu, address, kMovingRanges));
    for (std::size_t i = 0; i < kMovingRanges; ++i)
      TRY(make_range(gpu, address + i * kRangeSize + kPageSize, kPageSize, 7));
    if (::mmap(pages, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return base::Error::from_errno(errno, "mapping pages again");
  }
  return {};
}

// A buffer for an image of SVM ranges only, followed by guard bytes that the kernel must not write.
class WatchedImage {
 public:
  explicit WatchedImage(const kfd::ProcessInfo& info) : info_(info), bytes_(info.priv_size + kBehind, kUntouched) {}

  // True if the kernel made the checkpoint, false if it refused because ranges changed.
  base::Result<bool> checkpoint(int fd) {
    std::vector<kfd_criu_device_bucket> devices(info_.num_devices);
    kfd_criu_bo_bucket no_bo{};
    kfd_ioctl_criu_args args{};
    args.op = KFD_CRIU_OP_CHECKPOINT;
    args.devices = reinterpret_cast<std::uint64_t>(devices.data());
    args.bos = reinterpret_cast<std::uint64_t>(&no_bo);
    args.priv_data = reinterpret_cast<std::uint64_t>(bytes_.data());
    args.priv_data_size = info_.priv_size;
    args.num_devices = info_.num_devices;
    args.num_objects = info_.num_objects;
    const bool taken = ::ioctl(fd, AMDKFD_IOC_CRIU_OP, &args) == 0;
    const int code = taken ? 0 : errno;
    const auto behind = std::span(bytes_).subspan(info_.priv_size);
    if (!std::ranges::all_of(behind, [](std::byte byte) { return byte == kUntouched; }))
      return base::Error(EIO, "the kernel wrote behind the image");
    // EINVAL alone says that the number of ranges changed.
    if (!taken && code != EINVAL) return base::Error::from_errno(code, "a checkpoint beside SVM ranges that change");
    if (taken) TRY(expect_whole());
    return taken;
  }

 private:
  static constexpr std::byte kUntouched{0xee};
  static constexpr std::size_t kBehind = 64 * kKiB;

  [[nodiscard]] base::Status expect_whole() const {
    constexpr std::size_t kAttributes = 4;  // plus one for each GPU
    const std::size_t size = 24 + sizeof(kfd_ioctl_svm_attribute) * (kAttributes + info_.num_devices);
    const std::size_t begin = kProcessRecordSize + kDeviceRecordSize * info_.num_devices;
    if (begin + size * info_.num_objects != info_.priv_size)
      return base::Error(EIO, "the image has an impossible size");
    for (std::size_t i = 0; i < info_.num_objects; ++i) {
      std::uint32_t type = 0;
      std::memcpy(&type, &bytes_[begin + i * size], sizeof(type));
      if (type != kSvmObject)
        return base::Error(EIO, "the image has only " + std::to_string(i) + " of its " +
                                    std::to_string(info_.num_objects) + " SVM ranges");
    }
    return {};
  }

  kfd::ProcessInfo info_;
  std::vector<std::byte> bytes_;
};

base::Status checkpoint_again_and_again(const Gpu& gpu) {
  constexpr Duration kEnough = std::chrono::seconds(3);
  const int fd = ioctls_of(gpu).client().fd();
  const std::uint64_t begin = monotonic_ns();
  // Most checkpoints are refused because ranges change meanwhile; one has to succeed.
  const auto goes_on = [&](unsigned taken) {
    const Duration limit = taken > 0 ? kEnough : kDeadline;
    return monotonic_ns() - begin < static_cast<std::uint64_t>(limit.count());
  };
  kfd::RealKfd kfd;
  unsigned taken = 0;
  while (goes_on(taken)) {
    ASSIGN_OR_RETURN(kfd::Pause pause, kfd.pause(fd));
    WatchedImage image(pause.info);
    ASSIGN_OR_RETURN(const bool one, image.checkpoint(fd));
    taken += one ? 1 : 0;
    TRY(kfd.unpause(fd, pause));
  }
  return taken > 0 ? base::Status() : base::Error(EIO, "not one checkpoint was taken");
}

base::Status checkpoint_beside_svm() {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const base::Mapping still, base::Mapping::anonymous(kStillRanges * kRangeSize, "pages for SVM"));
  ASSIGN_OR_RETURN(const base::Mapping moving, base::Mapping::anonymous(kMovingRanges * kRangeSize, "pages for SVM"));
  TRY(make_ranges(gpu, reinterpret_cast<std::uint64_t>(still.data()), kStillRanges));
  std::atomic<bool> ends = false;
  base::Status churned;
  std::jthread churner([&] { churned = churn(gpu, static_cast<std::byte*>(moving.data()), ends); });
  base::Status status = checkpoint_again_and_again(gpu);
  ends.store(true);
  churner.join();
  TRY(std::move(status));
  return churned;
}

constexpr Defect kDefects[] = {
    // gfx7 saves no waves, and gfx9 reports the right size of its control stack.
    {"h1_a_compute_queue_comes_back",
     [](const Gpus& gpus) { return gfx_level(gpus) != 7 && gfx_level(gpus) != 9 && gfx_level(gpus) < 12; },
     [] { return comes_back("queue_counter"); }},
    {"h1_a_queue_with_its_save_area_in_svm_comes_back", has_svm, [] { return comes_back("svm_queue"); }},
    // Linux 6.12 refuses them (h1, h4) before it comes to what is missing.
    {"h2_queues_of_a_mes_come_back_with_their_write_pointers", [](const Gpus& gpus) { return gfx_level(gpus) > 10; },
     [] { return comes_back("event_pending"); }},
    {"h3_an_image_has_every_xcc_of_a_queue", [](const Gpus& gpus) { return gpus.front().num_xcc > 1; },
     image_has_every_xcc},
    {"h4_a_compute_queue_of_gfx12_comes_back", [](const Gpus& gpus) { return gfx_level(gpus) == 12; },
     [] { return comes_back("queue_counter"); }},
    {"h4_an_sdma_queue_of_gfx12_comes_back", [](const Gpus& gpus) { return gfx_level(gpus) == 12; },
     [] { return comes_back("sdma_chain"); }},
    {"h5_a_gpu_that_is_not_used_does_no_harm", has_two_gpus, unused_gpu},
    {"h6_a_stranger_resumes_nobody", always, stranger_resumes},
    {"h6_a_resume_that_nobody_waits_for_changes_nothing", always, stray_resume},
    {"h6_a_program_without_a_gpu_is_not_resumed", always, resume_without_gpu},
    {"h7_after_a_failed_restore_no_page_is_kept", always, failed_restore},
    {"h8_a_checkpoint_beside_changing_svm_ranges_is_whole_or_refused", has_svm, checkpoint_beside_svm},
};

std::vector<Defect> all_defects() {
  std::vector<Defect> all(std::begin(kDefects), std::end(kDefects));
  all.insert(all.end(), holes().begin(), holes().end());
  all.insert(all.end(), image_holes().begin(), image_holes().end());
  return all;
}

}  // namespace

std::vector<std::string> defect_names() {
  std::vector<std::string> names;
  const auto gpus = gpus_in_sysfs();
  const bool all = lists_for_any_machine();
  if (!all && (!gpus.ok() || gpus->empty())) return names;
  for (const Defect& each : all_defects())
    if (all || each.applies(*gpus)) names.emplace_back(each.name);
  return names;
}

std::string defect_scenario(std::string_view name) { return "defect/" + std::string(name); }

std::optional<base::Status> run_defect_scenario(std::string_view name) {
  for (const Defect& each : all_defects())
    if (name == defect_scenario(each.name)) return each.check();
  return std::nullopt;
}

}  // namespace kfdtest
