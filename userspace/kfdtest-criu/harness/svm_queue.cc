// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Issues the ioctls on the /dev/kfd that libhsakmt has open.
#include "kfdtest-criu/harness/svm_queue.h"

#include <hsakmt.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "kfdtest-criu/harness/kfd_driver.h"

namespace kfdtest {
namespace {

constexpr std::size_t kRingSize = kPageSize;
constexpr std::size_t kEopSize = kPageSize;
constexpr std::size_t kReadPointer = 64;           // byte offset in the page of pointers
constexpr std::size_t kDoorbellPages = 8192;       // bytes of doorbells that a process has on gfx9
constexpr std::uint32_t kFlagAlwaysMapped = 0x40;  // KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED
constexpr std::uint32_t kNormalPriority = 7;

// libhsakmt does not lend its file.
base::Result<int> kfd_file() {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", code))
    if (std::filesystem::read_symlink(entry.path(), code) == "/dev/kfd") return std::stoi(entry.path().filename());
  return base::Error(ENOENT, "/dev/kfd is not open");
}

base::Status make_svm(const Gpu& gpu, std::span<std::byte> area) {
  std::array<HSA_SVM_ATTRIBUTE, 2> attributes = {
      {{HSA_SVM_ATTR_SET_FLAGS, HSA_SVM_FLAG_HOST_ACCESS | HSA_SVM_FLAG_COHERENT | kFlagAlwaysMapped},
       {HSA_SVM_ATTR_ACCESS, gpu.node}}};
  std::fill(area.begin(), area.end(), std::byte{0});
  const HSAKMT_STATUS status = hsaKmtSVMSetAttr(area.data(), area.size(), attributes.size(), attributes.data());
  if (status == HSAKMT_STATUS_SUCCESS) return {};
  return base::Error(EIO, "registering the save area: libhsakmt status " + std::to_string(static_cast<int>(status)));
}

}  // namespace

base::Result<SvmQueue> SvmQueue::create(const Gpu& gpu) {
  ASSIGN_OR_RETURN(const int kfd, kfd_file());
  ASSIGN_OR_RETURN(GpuMemory ring, GpuMemory::allocate(gpu, MemoryKind::kGtt, kRingSize, MemoryUse::kRing));
  ASSIGN_OR_RETURN(GpuMemory pointers, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  ASSIGN_OR_RETURN(GpuMemory eop, GpuMemory::allocate(gpu, MemoryKind::kVram, kEopSize));
  std::fill(pointers.bytes().begin(), pointers.bytes().end(), std::byte{0});
  ASSIGN_OR_RETURN(base::Mapping area, base::Mapping::anonymous(save_area_size(gpu), "save area"));
  TRY(make_svm(gpu, area.bytes()));
  SvmQueue queue(std::move(ring), std::move(pointers), std::move(eop), std::move(area));

  kfd_ioctl_create_queue_args args{};
  args.ring_base_address = queue.ring_.gpu_address();
  args.ring_size = kRingSize;
  args.write_pointer_address = queue.pointers_.gpu_address();
  args.read_pointer_address = queue.pointers_.gpu_address(kReadPointer);
  args.gpu_id = gpu.gpu_id;
  args.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE;
  args.queue_percentage = 100;
  args.queue_priority = kNormalPriority;
  args.eop_buffer_address = queue.eop_.gpu_address();
  args.eop_buffer_size = kEopSize;
  args.ctx_save_restore_address = reinterpret_cast<std::uint64_t>(queue.save_area_.data());
  args.ctx_save_restore_size = static_cast<std::uint32_t>(gpu.cwsr_size);
  args.ctl_stack_size = static_cast<std::uint32_t>(gpu.ctl_stack_size);
  if (::ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &args) != 0)
    return base::Error::from_errno(errno, "making a queue with an SVM save area");
  const std::uint64_t in_pages = args.doorbell_offset % kDoorbellPages;
  ASSIGN_OR_RETURN(queue.doorbells_,
                   base::Mapping::shared(kfd, kDoorbellPages, static_cast<off_t>(args.doorbell_offset - in_pages),
                                         "mapping doorbells"));
  queue.doorbell_ = static_cast<std::size_t>(in_pages);
  return queue;
}

base::Status SvmQueue::submit(std::span<const std::uint32_t> dwords) {
  if (dwords.size_bytes() >= kRingSize) return base::Error(E2BIG, "more packets than the ring holds");
  std::memcpy(ring_.data(), dwords.data(), dwords.size_bytes());
  pointers_.store64(0, dwords.size());
  std::atomic_thread_fence(std::memory_order_seq_cst);
  auto* const bell = reinterpret_cast<std::uint64_t*>(doorbells_.data() + doorbell_);
  std::atomic_ref<std::uint64_t>(*bell).store(dwords.size(), std::memory_order_release);
  return {};
}

}  // namespace kfdtest
