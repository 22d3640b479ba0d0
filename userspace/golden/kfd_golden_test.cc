// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The ioctls that userspace/kfd issues: the header that it is compiled with against that of the kernel it talks to.
#include <gtest/gtest.h>
#include <linux/kfd_ioctl.h>

#include <cstddef>

#include "golden/facts.h"
#include "kfd/abi.h"
#include "packets/aql.h"
#include "packets/ih.h"

namespace {

#define EXPECT_MEMBER(structure, field)                                                                    \
  EXPECT_EQ(offsetof(structure, field) * 8, golden::member("kfd_ioctl/" #structure "." #field).dword * 32) \
      << #structure "." #field

TEST(KfdGolden, criu_structs_are_the_kernels) {
  EXPECT_EQ(sizeof(kfd_ioctl_criu_args), golden::size_of("kfd_ioctl/kfd_ioctl_criu_args"));
  EXPECT_MEMBER(kfd_ioctl_criu_args, devices);
  EXPECT_MEMBER(kfd_ioctl_criu_args, bos);
  EXPECT_MEMBER(kfd_ioctl_criu_args, priv_data);
  EXPECT_MEMBER(kfd_ioctl_criu_args, priv_data_size);
  EXPECT_MEMBER(kfd_ioctl_criu_args, num_devices);
  EXPECT_MEMBER(kfd_ioctl_criu_args, num_bos);
  EXPECT_MEMBER(kfd_ioctl_criu_args, num_objects);
  EXPECT_MEMBER(kfd_ioctl_criu_args, pid);
  EXPECT_MEMBER(kfd_ioctl_criu_args, op);
  EXPECT_EQ(sizeof(kfd_criu_device_bucket), golden::size_of("kfd_ioctl/kfd_criu_device_bucket"));
  EXPECT_MEMBER(kfd_criu_device_bucket, user_gpu_id);
  EXPECT_MEMBER(kfd_criu_device_bucket, actual_gpu_id);
  EXPECT_MEMBER(kfd_criu_device_bucket, drm_fd);
  EXPECT_EQ(sizeof(kfd_criu_bo_bucket), golden::size_of("kfd_ioctl/kfd_criu_bo_bucket"));
  EXPECT_MEMBER(kfd_criu_bo_bucket, addr);
  EXPECT_MEMBER(kfd_criu_bo_bucket, size);
  EXPECT_MEMBER(kfd_criu_bo_bucket, offset);
  EXPECT_MEMBER(kfd_criu_bo_bucket, restored_offset);
  EXPECT_MEMBER(kfd_criu_bo_bucket, gpu_id);
  EXPECT_MEMBER(kfd_criu_bo_bucket, alloc_flags);
  EXPECT_MEMBER(kfd_criu_bo_bucket, dmabuf_fd);
}

TEST(KfdGolden, criu_operations_are_the_kernels) {
  EXPECT_EQ(KFD_CRIU_OP_PROCESS_INFO, golden::value("kfd_ioctl/KFD_CRIU_OP_PROCESS_INFO"));
  EXPECT_EQ(KFD_CRIU_OP_CHECKPOINT, golden::value("kfd_ioctl/KFD_CRIU_OP_CHECKPOINT"));
  EXPECT_EQ(KFD_CRIU_OP_UNPAUSE, golden::value("kfd_ioctl/KFD_CRIU_OP_UNPAUSE"));
  EXPECT_EQ(KFD_CRIU_OP_RESTORE, golden::value("kfd_ioctl/KFD_CRIU_OP_RESTORE"));
  EXPECT_EQ(KFD_CRIU_OP_RESUME, golden::value("kfd_ioctl/KFD_CRIU_OP_RESUME"));
}

// The kernel fills what a shorter struct of an older header lacks with zeroes (kfd_chardev.c: kfd_ioctl).
TEST(KfdGolden, other_structs_begin_as_the_kernels) {
  EXPECT_EQ(sizeof(kfd_ioctl_get_version_args), golden::size_of("kfd_ioctl/kfd_ioctl_get_version_args"));
  EXPECT_LE(sizeof(kfd_ioctl_create_queue_args), golden::size_of("kfd_ioctl/kfd_ioctl_create_queue_args"));
  EXPECT_MEMBER(kfd_ioctl_create_queue_args, ctx_save_restore_address);
  EXPECT_MEMBER(kfd_ioctl_create_queue_args, ctl_stack_size);
  EXPECT_LE(sizeof(kfd_ioctl_wait_events_args), golden::size_of("kfd_ioctl/kfd_ioctl_wait_events_args"));
  EXPECT_MEMBER(kfd_ioctl_wait_events_args, wait_result);
}

// For structs that Debian's header lacks: abi.h has them under names of its own.
#define EXPECT_MEMBER_AS(ours, theirs, field) \
  EXPECT_EQ(offsetof(ours, field) * 8, golden::member("kfd_ioctl/" #theirs "." #field).dword * 32) << #theirs "." #field

TEST(KfdGolden, a_debuggers_structs_are_the_kernels) {
  using kfd::abi::DeviceSnapshot;
  using kfd::abi::QueueSnapshot;
  EXPECT_EQ(sizeof(kfd::abi::DebugTrapArgs), golden::size_of("kfd_ioctl/kfd_ioctl_dbg_trap_args"));
  EXPECT_EQ(packets::aql::kSaveAreaErrorPayload, offsetof(kfd::abi::SaveAreaHeader, error_payload_address));
  EXPECT_EQ(sizeof(QueueSnapshot), golden::size_of("kfd_ioctl/kfd_queue_snapshot_entry"));
  EXPECT_MEMBER_AS(QueueSnapshot, kfd_queue_snapshot_entry, exception_status);
  EXPECT_MEMBER_AS(QueueSnapshot, kfd_queue_snapshot_entry, ring_base_address);
  EXPECT_MEMBER_AS(QueueSnapshot, kfd_queue_snapshot_entry, queue_id);
  EXPECT_MEMBER_AS(QueueSnapshot, kfd_queue_snapshot_entry, gpu_id);
  EXPECT_MEMBER_AS(QueueSnapshot, kfd_queue_snapshot_entry, ring_size);
  EXPECT_MEMBER_AS(QueueSnapshot, kfd_queue_snapshot_entry, queue_type);
  EXPECT_EQ(sizeof(DeviceSnapshot), golden::size_of("kfd_ioctl/kfd_dbg_device_info_entry"));
  EXPECT_MEMBER_AS(DeviceSnapshot, kfd_dbg_device_info_entry, gpu_id);
  EXPECT_MEMBER_AS(DeviceSnapshot, kfd_dbg_device_info_entry, location_id);
  EXPECT_MEMBER_AS(DeviceSnapshot, kfd_dbg_device_info_entry, gfx_target_version);
  EXPECT_MEMBER_AS(DeviceSnapshot, kfd_dbg_device_info_entry, simd_count);
  EXPECT_MEMBER_AS(DeviceSnapshot, kfd_dbg_device_info_entry, num_xcc);
}

TEST(KfdGolden, a_debuggers_operations_are_the_kernels) {
  EXPECT_EQ(kfd::abi::kTrapEnable, golden::value("kfd_ioctl/KFD_IOC_DBG_TRAP_ENABLE"));
  EXPECT_EQ(kfd::abi::kTrapDisable, golden::value("kfd_ioctl/KFD_IOC_DBG_TRAP_DISABLE"));
  EXPECT_EQ(kfd::abi::kTrapSuspendQueues, golden::value("kfd_ioctl/KFD_IOC_DBG_TRAP_SUSPEND_QUEUES"));
  EXPECT_EQ(kfd::abi::kTrapResumeQueues, golden::value("kfd_ioctl/KFD_IOC_DBG_TRAP_RESUME_QUEUES"));
  EXPECT_EQ(kfd::abi::kTrapQueueSnapshot, golden::value("kfd_ioctl/KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT"));
  EXPECT_EQ(kfd::abi::kTrapDeviceSnapshot, golden::value("kfd_ioctl/KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT"));
  const auto bit_of = [](const char* code) { return std::uint64_t{1} << (golden::value(code) - 1); };
  EXPECT_EQ(kfd::abi::kExceptionWaveAbort, bit_of("kfd_ioctl/EC_QUEUE_WAVE_ABORT"));
  EXPECT_EQ(kfd::abi::kExceptionWaveTrap, bit_of("kfd_ioctl/EC_QUEUE_WAVE_TRAP"));
  EXPECT_EQ(kfd::abi::kExceptionWaveIllegalInstruction, bit_of("kfd_ioctl/EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION"));
  EXPECT_EQ(packets::ih::kTrapWaveAbort, bit_of("kfd_ioctl/EC_QUEUE_WAVE_ABORT"));
  EXPECT_EQ(packets::ih::kTrapWaveTrap, bit_of("kfd_ioctl/EC_QUEUE_WAVE_TRAP"));
  EXPECT_EQ(packets::ih::kTrapIllegalInstruction, bit_of("kfd_ioctl/EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION"));
  EXPECT_EQ(packets::ih::kTrapApertureViolation, bit_of("kfd_ioctl/EC_QUEUE_WAVE_APERTURE_VIOLATION"));
  EXPECT_EQ(kfd::abi::kExceptionQueueNew, std::uint64_t{1} << (golden::value("kfd_ioctl/EC_QUEUE_NEW") - 1));
}

}  // namespace
