// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table. Sources: "stock" is drivers/gpu/drm/amd/amdkfd of Linux 6.12; file names without it are those of the
// series (kernel/amdkfd-criu/overlay); "uapi" is linux/kfd_criu_ioctl.h; "rst" is
// Documentation/gpu/amdgpu/kfd-criu.rst.
#include "kfd/errors.h"

#include <linux/kfd_criu_ioctl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace kfd {
namespace {

using base::Error;

constexpr std::uint32_t bit(Abi abi) { return static_cast<std::uint32_t>(abi); }
constexpr std::uint32_t bit(Operation operation) { return static_cast<std::uint32_t>(operation); }

constexpr std::uint32_t kReleased = bit(Abi::kReleased);
constexpr std::uint32_t kExtensible = bit(Abi::kExtensible);
constexpr std::uint32_t kBoth = kReleased | kExtensible;

constexpr std::uint32_t kVersion = bit(Operation::kVersion);
constexpr std::uint32_t kProbe = bit(Operation::kProbe);
constexpr std::uint32_t kPause = bit(Operation::kPause);
constexpr std::uint32_t kCheckpoint = bit(Operation::kCheckpoint);
constexpr std::uint32_t kExportBo = bit(Operation::kExportBo);
constexpr std::uint32_t kBoOffset = bit(Operation::kBoOffset);
constexpr std::uint32_t kUnpause = bit(Operation::kUnpause);
constexpr std::uint32_t kRestore = bit(Operation::kRestore);
constexpr std::uint32_t kResume = bit(Operation::kResume);
constexpr std::uint32_t kOfBo = kExportBo | kBoOffset;
constexpr std::uint32_t kReadsState = kPause | kCheckpoint | kOfBo;
constexpr std::uint32_t kAll = kVersion | kProbe | kReadsState | kUnpause | kRestore | kResume;

constexpr auto kTable = std::to_array<ErrorRow>({
    // Which kernel, which file.
    {kReleased, kAll & ~kVersion, ENOTTY, "the kernel has no AMDKFD_IOC_CRIU_OP, or the file is not /dev/kfd",
     "boot Linux 5.18 or later", "stock kfd_chardev.c kfd_ioctl: nr >= AMDKFD_CORE_IOCTL_COUNT"},
    {kExtensible, kAll & ~kVersion, ENOTTY, "the file is not /dev/kfd", "dump the process that opened it",
     "uapi Errors"},
    {kExtensible, kProbe, EINVAL, "the kernel has only the released checkpoint interface", "use the released interface",
     "stock kfd_chardev.c kfd_ioctl_criu: default"},
    {kReleased, kVersion, EBADF, "the file was opened by another process",
     "call it in the process that opened the file", "stock kfd_chardev.c kfd_ioctl: lead_thread"},

    // Who may.
    {kReleased, kPause | kCheckpoint | kUnpause, EBADF, "the process that opened this file is not traced by the caller",
     "dump that process together with the program, or close the inherited file in the program",
     "stock kfd_chardev.c kfd_ioctl: ptrace_attached; kfd_criu_session.c kfd_criu_check_tracer_access"},
    {kReleased, kRestore, EBADF, "the file was opened by another process",
     "restore in the process that opened the file", "stock kfd_chardev.c kfd_ioctl: lead_thread"},
    {kReleased, kResume, EBADF, "the file was opened by another process, or the process is not traced by the caller",
     "resume from the thread that traces the process",
     "stock kfd_chardev.c kfd_ioctl: lead_thread; kfd_criu_v1.c kfd_criu_v1_resume"},
    {kReleased, kPause | kCheckpoint | kUnpause | kResume, EACCES,
     "the caller has neither CAP_CHECKPOINT_RESTORE nor CAP_SYS_ADMIN",
     "run CRIU with one of them: in the initial user namespace, or with the kernel series in that of the process",
     "stock kfd_chardev.c kfd_ioctl: capable(); rst Access, released interface"},
    {kReleased, kRestore, EACCES,
     "the caller has neither CAP_CHECKPOINT_RESTORE nor CAP_SYS_ADMIN in the initial user namespace",
     "run CRIU as root outside of user namespaces", "stock kfd_chardev.c kfd_ioctl: capable(); rst Access"},
    {kExtensible, kReadsState | kResume, EACCES,
     "the caller has neither CAP_CHECKPOINT_RESTORE nor CAP_SYS_ADMIN in the user namespace of the process",
     "run CRIU with one of them there", "rst Access, extensible interface"},
    {kExtensible, kRestore, EACCES,
     "the caller has neither CAP_CHECKPOINT_RESTORE nor CAP_SYS_ADMIN; an image with queues needs it in the initial "
     "user namespace, because it sets registers",
     "run CRIU as root outside of user namespaces", "rst Access, extensible interface"},
    {kReleased, kPause | kCheckpoint | kUnpause | kResume, EPERM,
     "the caller may not attach to the process with ptrace",
     "run CRIU with CAP_SYS_PTRACE, or permit it in the security module", "rst Access; drm_checkpoint.c"},
    {kExtensible, kReadsState | kResume, EPERM, "the caller may not attach to the process with ptrace",
     "run CRIU with CAP_SYS_PTRACE, or permit it in the security module", "uapi Errors; drm_checkpoint.c"},
    {kBoth, kRestore, EPERM,
     "the GPU cannot retry page faults (XNACK), which the program had switched on; or the process has called exec "
     "since "
     "it opened /dev/kfd",
     "restore on a GPU with XNACK switched on (amdgpu.noretry=0)",
     "rst Refusals; stock kfd_chardev.c criu_restore_process"},

    // What the process is doing.
    {kReleased, kPause, ENODEV, "the process sees no GPU", "permit a GPU to it in its device cgroup",
     "stock kfd_chardev.c criu_process_info: n_pdds"},
    {kReleased, kCheckpoint, ENODEV, "the process sees no GPU, or a GPU is being removed",
     "permit a GPU to it in its device cgroup",
     "stock kfd_chardev.c criu_checkpoint: n_pdds; kfd_criu_event.c kfd_criu_event_drain_interrupts"},
    {kExtensible, kCheckpoint, ENODEV, "a GPU is being removed", "end the program",
     "kfd_criu_event.c kfd_criu_event_drain_interrupts"},
    {kExtensible, kPause, ENODEV, "the process has opened no GPU, so there is nothing to save",
     "dump it later, or let it close /dev/kfd", "uapi PAUSE; kfd_criu_v2.c kfd_criu_v2_measure"},
    {kReleased, kPause, EBUSY, "another checkpointer has paused the process, or the process is being restored",
     "end the other one and dump again", "rst States; kfd_criu_session_pause.c kfd_criu_check_owner"},
    {kExtensible, kPause, EBUSY, "the process is being restored", "dump it when it runs", "rst States"},
    {kReleased, kCheckpoint | kUnpause, EBUSY, "another checkpointer has paused the process",
     "end the other one and dump again", "kfd_criu_session_pause.c kfd_criu_check_owner"},
    {kExtensible, kCheckpoint, EBUSY, "the process is being restored", "dump it when it runs", "rst States"},
    {kReleased, kCheckpoint, EINVAL, "the process is not paused, or its objects have changed since it was",
     "stop all threads of the program while it is dumped",
     "stock kfd_chardev.c criu_checkpoint; kfd_criu_v1_same_counts"},
    {kExtensible, kCheckpoint | kOfBo, EBADF, "the descriptor is not that of a pause", "dump again", "uapi Errors"},
    {kExtensible, kCheckpoint | kOfBo | kUnpause, EXDEV, "the pause is one of another process", "dump again",
     "uapi CHECKPOINT, UNPAUSE"},
    {kExtensible, kCheckpoint, EINVAL, "the pause has ended", "dump again", "kfd_criu_v2.c kfd_criu_v2_checkpoint"},
    {kExtensible, kCheckpoint, E2BIG, "the process has more objects than when it was paused",
     "stop all threads of the program while it is dumped", "uapi CHECKPOINT"},
    {kBoth, kPause | kCheckpoint, EAGAIN, "threads that are not stopped keep changing the SVM ranges",
     "stop all threads of the program while it is dumped", "uapi PAUSE; rst States"},
    {kExtensible, kExportBo, EINVAL, "the BO is neither in VRAM nor in GTT, or the pause has ended", "dump again",
     "uapi EXPORT_BO; kfd_criu_v2.c kfd_criu_v2_find_bo"},
    {kExtensible, kBoOffset, EINVAL, "the pause has ended", "dump again", "kfd_criu_v2.c kfd_criu_v2_find_bo"},
    {kExtensible, kOfBo, ENOENT, "the process has no such BO any more",
     "stop all threads of the program while it is dumped", "uapi EXPORT_BO, BO_OFFSET"},
    {kReleased, kUnpause, EINVAL, "the process is not paused: its pause has ended", "dump again",
     "stock kfd_chardev.c criu_unpause; rst States"},
    {kExtensible, kUnpause, EINVAL, "the pause has ended already", "dump again", "uapi UNPAUSE"},
    {kExtensible, kUnpause, EBADF, "the descriptor is not that of a pause", "dump again", "uapi Errors"},

    // What cannot be saved.
    {kReleased, kPause | kCheckpoint, EOPNOTSUPP,
     "a debugger uses the process, one of its queues or GPUs is of an unknown kind, or its render node has GEM "
     "objects, "
     "contexts, BO lists, sync objects or mappings that KFD did not make",
     "detach the debugger, or let the program free these objects",
     "rst Limits; kfd_criu_session.c kfd_criu_check_supported"},
    {kExtensible, kReadsState, EOPNOTSUPP, "the process has something that an image cannot contain",
     "let the program give it up before it is dumped", "uapi Errors; rst Limits"},
    {kBoth, kReadsState, ENOTRECOVERABLE, "a GPU of the process, or one of its queues, was reset, and has lost work",
     "end the program and start it again, or restore an older image", "uapi Errors; rst Limits"},
    {kBoth, kUnpause, ENOTRECOVERABLE,
     "a GPU or a queue was reset while the process was paused, so what was read may not be its state",
     "end the program and start it again, or restore an older image", "uapi UNPAUSE; rst Pauses"},

    // What cannot be restored.
    {kReleased, kRestore, EINVAL,
     "the image does not fit this kernel or this machine: a value, a size or a GPU is not what the kernel accepts; "
     "Linux "
     "without the series wants as many GPUs as the image has",
     "restore on a machine with the same kernel and the same number of GPUs; the kernel log names the object",
     "rst Refusals; stock kfd_chardev.c criu_restore_devices"},
    {kExtensible, kRestore, EINVAL,
     "the kernel does not accept a value of the image, or a GPU or a file that was passed for it",
     "restore on the GPUs and the kernel of the dump", "rst Refusals"},
    {kBoth, kRestore, EFAULT, "the image, or an address of a queue, is not in the memory of the process",
     "dump the program again", "rst Refusals"},
    {kBoth, kRestore, ENOSPC, "two objects of the image have the same id", "dump the program again", "rst Refusals"},
    {kBoth, kRestore, EBUSY,
     "the SDMA queue of that number, or the global wave sync, is in use by another process; or the process itself is "
     "paused, or in the middle of an ioctl",
     "end the other process, or restore on another GPU",
     "rst Refusals; stock kfd_device_queue_manager.c allocate_sdma_queue"},
    {kReleased, kRestore, ENODEV, "the GPU has no global wave sync, or a BO is on a GPU that was not chosen",
     "restore on a GPU like that of the dump", "rst Refusals; stock kfd_chardev.c criu_restore_bo"},
    {kExtensible, kRestore, ENODEV, "no GPU was chosen, no GPU has that id, or the GPU has no global wave sync",
     "restore on a GPU like that of the dump", "rst Refusals"},
    {kExtensible, kRestore, ENXIO, "the GPU differs from that of the image",
     "restore on a GPU of the same model and mode", "uapi struct kfd_criu_record_device; rst Refusals"},
    {kExtensible, kRestore, EPROTONOSUPPORT, "the image was written by a newer kernel",
     "restore on the kernel of the dump, or on a later one", "uapi RESTORE; rst Refusals"},
    {kExtensible, kRestore, EREMOTE, "a BO uses memory that was allocated for an object outside the image",
     "dump the process that the memory belongs to together with the program", "uapi RESTORE; rst Refusals"},
    {kExtensible, kRestore, EEXIST, "shared memory was passed twice", "dump the program again", "rst Refusals"},
    {kExtensible, kRestore, EBADF, "a file that was passed for shared memory is not open", "restore again",
     "rst Refusals"},
    {kBoth, kRestore, EOPNOTSUPP, "a debugger uses the process, or the generation of the GPU is unknown to the kernel",
     "detach the debugger, or restore on another GPU", "rst Refusals"},
    {kBoth, kRestore, ENOTRECOVERABLE, "a GPU that the process uses was reset", "restore once more", "rst Refusals"},
    {kBoth, kRestore, EIO, "a GPU does not respond or is being reset, or a restore of this process has failed before",
     "restore once more, in a new process", "rst States, Refusals"},
    {kBoth, kRestore, ETIME, "a GPU does not respond or is being reset", "restore once more", "rst Refusals"},

    // What lets the queues run.
    {kBoth, kResume, ESRCH, "there is no such process, or it does not use amdkfd", "restore once more",
     "uapi RESUME; stock kfd_chardev.c criu_resume"},
    {kBoth, kResume, EINVAL, "the process has not been restored, or two of its SVM ranges overlap",
     "dump the program again", "rst States, Refusals; stock amdgpu_amdkfd_gpuvm.c amdgpu_amdkfd_criu_resume"},
    {kBoth, kResume, EFAULT, "no memory is mapped at the address of an SVM range", "dump the program again",
     "rst Refusals"},
    {kBoth, kResume, EBUSY, "the process is being restored, or in the middle of another operation",
     "resume it after RESTORE has returned", "uapi RESUME; rst States"},
    {kBoth, kResume, EIO, "the restore of the process has failed", "restore once more", "rst States"},
    {kBoth, kResume, EAGAIN,
     "pages of SVM ranges were moved again and again for five seconds, or too many processes of the user have ended "
     "and "
     "still wait for a file system",
     "restore once more", "uapi RESUME; rst Refusals"},
    {kBoth, kResume, ENOTRECOVERABLE, "a GPU that the process uses was reset between RESTORE and RESUME",
     "restore once more", "rst Limits"},
    {kExtensible, kResume, ETIME,
     "the queues do not run yet: the kernel waits for user pages or for memory of the GPU, or the process is paused or "
     "has "
     "exited",
     "nothing: the kernel continues without another call", "uapi RESUME"},

    // What any operation may meet.
    {kBoth, kPause | kCheckpoint | kUnpause, EIO,
     "a GPU of the process does not respond or is being reset, or a restore of the process has failed",
     "end the program; the kernel log names the GPU", "rst States; stock kfd_process.c kfd_process_evict_queues"},
    {kBoth, kPause | kUnpause, ETIME, "a GPU of the process does not respond or is being reset",
     "end the program; the kernel log names the GPU", "stock kfd_device_queue_manager.c evict_process_queues_cpsch"},
    {kReleased, kCheckpoint | kRestore, EMFILE, "the caller has no free descriptor for the DMA-buf of each BO",
     "raise RLIMIT_NOFILE of CRIU above the number of BOs", "stock kfd_chardev.c criu_get_prime_handle"},
    {kExtensible, kPause | kExportBo | kResume, EMFILE, "the caller has no free descriptor",
     "raise RLIMIT_NOFILE of CRIU", "uapi RESUME; kfd_criu_v2.c kfd_criu_v2_export_bo, kfd_criu_file.c"},
    {kExtensible, kRestore, EMFILE, "the caller has no free descriptor", "raise RLIMIT_NOFILE of CRIU", "rst Refusals"},
    {kBoth, kRestore, ENOMEM, "there is not enough memory for the objects of the image, on the GPU or in the machine",
     "end other programs on the GPU, or restore on one with more memory", "rst Refusals"},
    {kBoth, kAll, ENOMEM, "the machine has not enough memory", "free memory and try again", "uapi Errors"},
    {kBoth, kAll & ~kVersion, EINTR, "a signal arrived, and the kernel has undone the operation", "try again",
     "uapi Errors; rst Refusals"},
    {kBoth, kAll, EFAULT, "the kernel could not access the memory of the caller", "report a bug of this program",
     "uapi Errors"},
    {kExtensible, kAll & ~kVersion, E2BIG, "the kernel is older than this program and does not know all arguments",
     "boot the kernel that this program was built for, or a later one", "uapi Errors; kfd_criu.c kfd_criu_validate"},
    {kExtensible, kAll & ~kVersion, EINVAL, "the kernel does not accept the arguments",
     "boot the kernel that this program was built for", "uapi Errors"},
    {kReleased, kAll & ~kVersion, EINVAL, "the kernel does not know the operation or does not accept its arguments",
     "boot Linux 5.18 or later", "stock kfd_chardev.c kfd_ioctl_criu: default"},
});

// The comments of KFD_CRIU_REASON_*, and what to do about each.
constexpr std::array<const char*, 10> kReasons = {
    nullptr,
    "a debugger uses the process: detach it",
    "the process has a queue of a type that the kernel cannot save",
    "the process has queues on a GPU of a generation that the kernel cannot save",
    "a render node of the process has GEM objects, which only DRM knows (graphics, video or interop): let the program "
    "free them",
    "a render node of the process has memory mapped to the GPU that KFD did not map: let the program unmap it",
    "a queue of the process hung and was reset: end the program and start it again",
    "a GPU of the process was reset: end the program and start it again",
    "a render node of the process has AMDGPU contexts, BO lists or sync objects: let the program free them",
    "the process has an event of a type that the kernel does not know: let the program destroy it",
};
static_assert(kReasons.size() == KFD_CRIU_REASON_EVENT_TYPE + 1);

std::string errno_name(int code) {
  const char* name = ::strerrorname_np(code);
  return name != nullptr ? name : "errno " + std::to_string(code);
}

// What went wrong: the kernel's own reason before that of the table, and the plain errno if there is none.
std::string explanation(const ErrorRow* row, int code, const char* reason) {
  if (reason != nullptr) return std::string(reason) + " (" + errno_name(code) + ")";
  if (row == nullptr) return std::string(std::strerror(code)) + " (" + errno_name(code) + ")";
  return std::string(row->cause) + " (" + errno_name(code) + "): " + row->remedy;
}

}  // namespace

std::span<const ErrorRow> error_table() { return kTable; }

const ErrorRow* find_error(Abi abi, Operation operation, int code) {
  for (const ErrorRow& row : kTable)
    if (row.code == code && (row.abis & bit(abi)) != 0 && (row.operations & bit(operation)) != 0) return &row;
  return nullptr;
}

const char* operation_name(Abi abi, Operation operation) {
  switch (operation) {
    case Operation::kVersion:
      return "AMDKFD_IOC_GET_VERSION";
    case Operation::kProbe:
      return "KFD PROBE";
    case Operation::kPause:
      return abi == Abi::kReleased ? "KFD PROCESS_INFO" : "KFD PAUSE";
    case Operation::kCheckpoint:
      return "KFD CHECKPOINT";
    case Operation::kExportBo:
      return "KFD EXPORT_BO";
    case Operation::kBoOffset:
      return "KFD BO_OFFSET";
    case Operation::kUnpause:
      return "KFD UNPAUSE";
    case Operation::kRestore:
      return "KFD RESTORE";
    case Operation::kResume:
      return "KFD RESUME";
  }
  return "KFD";
}

const char* reason_text(std::uint32_t reason) { return reason < kReasons.size() ? kReasons[reason] : nullptr; }

Error operation_error(Abi abi, Operation operation, int code, ErrorDetail detail) {
  const bool has_reason = code == EOPNOTSUPP || code == ENOTRECOVERABLE;
  std::string text =
      explanation(find_error(abi, operation, code), code, has_reason ? reason_text(detail.reason) : nullptr);
  if (detail.record != 0) text = "record " + std::to_string(detail.record) + " of the image: " + text;
  return Error(code, std::move(text)).wrap(operation_name(abi, operation));
}

}  // namespace kfd
