// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What Linux 6.12's linux/kfd_ioctl.h (KFD 1.17) has and Debian 12's (1.11) does not. Layouts are the kernel's; an
// older kernel ignores what lies behind the arguments it knows.
#pragma once

#include <linux/kfd_ioctl.h>

#include <cstddef>
#include <cstdint>

namespace kfd::abi {

struct CreateQueueArgs {
  kfd_ioctl_create_queue_args base;
  std::uint32_t sdma_engine_id;
  std::uint32_t pad;
};
static_assert(sizeof(CreateQueueArgs) == 96 && offsetof(CreateQueueArgs, sdma_engine_id) == 88);
inline constexpr unsigned long kCreateQueue = _IOWR('K', 0x02, CreateQueueArgs);
inline constexpr std::uint32_t kQueueTypeSdmaByEngine = 4;  // KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID

struct ExportDmabufArgs {
  std::uint64_t handle;
  std::uint32_t flags;
  std::uint32_t dmabuf_fd;
};
inline constexpr unsigned long kExportDmabuf = _IOWR('K', 0x24, ExportDmabufArgs);

struct RuntimeEnableArgs {
  std::uint64_t r_debug;
  std::uint32_t mode_mask;
  std::uint32_t capabilities_mask;
};
inline constexpr unsigned long kRuntimeEnable = _IOWR('K', 0x25, RuntimeEnableArgs);
inline constexpr std::uint32_t kRuntimeModeEnable = 1;  // KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK

// Exception codes of packets: enum kfd_dbg_trap_exception_code 16..23, bit code - 1.
inline constexpr std::uint64_t kPacketExceptions = 0xffULL << 15;
// Exception codes of waves: enum kfd_dbg_trap_exception_code 1, 2 and 4.
inline constexpr std::uint64_t kExceptionWaveAbort = 1ULL << 0;
inline constexpr std::uint64_t kExceptionWaveTrap = 1ULL << 1;
inline constexpr std::uint64_t kExceptionWaveIllegalInstruction = 1ULL << 3;

// In front of a queue's save area; struct kfd_context_save_area_header.
struct SaveAreaHeader {
  std::uint32_t control_stack_offset;
  std::uint32_t control_stack_size;
  std::uint32_t wave_state_offset;
  std::uint32_t wave_state_size;
  std::uint32_t debug_offset;
  std::uint32_t debug_size;
  std::uint64_t error_payload_address;
  std::uint32_t error_event_id;
  std::uint32_t reserved;
};
static_assert(sizeof(SaveAreaHeader) == 40);

// struct kfd_queue_snapshot_entry
struct QueueSnapshot {
  std::uint64_t exception_status;
  std::uint64_t ring_base_address;
  std::uint64_t write_pointer_address;
  std::uint64_t read_pointer_address;
  std::uint64_t ctx_save_restore_address;
  std::uint32_t queue_id;
  std::uint32_t gpu_id;
  std::uint32_t ring_size;
  std::uint32_t queue_type;
  std::uint32_t ctx_save_restore_area_size;
  std::uint32_t reserved;
};
static_assert(sizeof(QueueSnapshot) == 64);

// struct kfd_dbg_device_info_entry
struct DeviceSnapshot {
  std::uint64_t exception_status;
  std::uint64_t lds_base;
  std::uint64_t lds_limit;
  std::uint64_t scratch_base;
  std::uint64_t scratch_limit;
  std::uint64_t gpuvm_base;
  std::uint64_t gpuvm_limit;
  std::uint32_t gpu_id;
  std::uint32_t location_id;
  std::uint32_t vendor_id;
  std::uint32_t device_id;
  std::uint32_t revision_id;
  std::uint32_t subsystem_vendor_id;
  std::uint32_t subsystem_device_id;
  std::uint32_t fw_version;
  std::uint32_t gfx_target_version;
  std::uint32_t simd_count;
  std::uint32_t max_waves_per_simd;
  std::uint32_t array_count;
  std::uint32_t simd_arrays_per_engine;
  std::uint32_t num_xcc;
  std::uint32_t capability;
  std::uint32_t debug_prop;
};
static_assert(sizeof(DeviceSnapshot) == 120);

// struct kfd_ioctl_dbg_trap_args; the union's members that are used.
struct DebugTrapArgs {
  std::uint32_t pid;
  std::uint32_t op;
  union {
    struct {
      std::uint64_t exception_mask;
      std::uint64_t rinfo_ptr;
      std::uint32_t rinfo_size;
      std::uint32_t dbg_fd;
    } enable;
    struct {
      std::uint64_t exception_mask;
      std::uint64_t snapshot_buf_ptr;
      std::uint32_t num_queues;
      std::uint32_t entry_size;
    } queue_snapshot;
    struct {
      std::uint64_t exception_mask;
      std::uint64_t snapshot_buf_ptr;
      std::uint32_t num_devices;
      std::uint32_t entry_size;
    } device_snapshot;
    struct {
      std::uint64_t exception_mask;
      std::uint64_t queue_array_ptr;
      std::uint32_t num_queues;
      std::uint32_t grace_period;
    } suspend_queues;
    struct {
      std::uint64_t queue_array_ptr;
      std::uint32_t num_queues;
      std::uint32_t pad;
    } resume_queues;
  };
};
static_assert(sizeof(DebugTrapArgs) == 32);
inline constexpr unsigned long kDebugTrap = _IOWR('K', 0x26, DebugTrapArgs);
enum DebugTrapOp : std::uint32_t {
  kTrapEnable = 0,
  kTrapDisable = 1,
  kTrapSuspendQueues = 6,
  kTrapResumeQueues = 7,
  kTrapQueueSnapshot = 13,
  kTrapDeviceSnapshot = 14,
};
// Until a debugger clears it: the queue is new, and cannot be suspended (EC_QUEUE_NEW).
inline constexpr std::uint64_t kExceptionQueueNew = 1ULL << 30;

// KFD_IOC_ALLOC_MEM_FLAGS_*
inline constexpr std::uint32_t kAllocExtCoherent = 1U << 24;
inline constexpr std::uint32_t kAllocContiguous = 1U << 23;
// Where the memory of an allocation is. BOs of these kinds have contents of their own, which others can share.
inline constexpr std::uint32_t kMemoryKinds = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT;
// The flags of an allocation that are of the memory: not of where it is, and not of how one BO uses it.
inline constexpr std::uint32_t kMemoryAttributes =
    static_cast<std::uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC | KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE |
                               KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED |
                               KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE) |
    kAllocExtCoherent | kAllocContiguous;

inline constexpr std::uint32_t kSvmAlwaysMapped = 0x40;  // KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED

}  // namespace kfd::abi
