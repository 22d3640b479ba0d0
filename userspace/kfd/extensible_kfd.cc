// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Marshalling, and as much of an image as names its devices and BOs. The kernel wrote it, or checks it.
#include "kfd/extensible_kfd.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/kfd_criu_ioctl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "base/os.h"
#include "kfd/abi.h"
#include "kfd/errors.h"
#include "kfd_criu_layout.h"

namespace kfd {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::uint64_t kMaxImage = 1ULL << 30;

constexpr std::uint64_t bit_of(std::uint32_t op) { return 1ULL << (op - KFD_CRIU_CMD_PROBE); }
constexpr std::uint64_t kNeededOps = bit_of(KFD_CRIU_CMD_PROBE) | bit_of(KFD_CRIU_CMD_PAUSE) |
                                     bit_of(KFD_CRIU_CMD_CHECKPOINT) | bit_of(KFD_CRIU_CMD_UNPAUSE) |
                                     bit_of(KFD_CRIU_CMD_RESTORE) | bit_of(KFD_CRIU_CMD_RESUME) |
                                     bit_of(KFD_CRIU_CMD_EXPORT_BO) | bit_of(KFD_CRIU_CMD_BO_OFFSET);

Status call(int fd, kfd_criu_args& args, Operation operation) {
  int result = 0;
  do {
    result = os::ioctl(fd, AMDKFD_IOC_CRIU, &args);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return operation_error(Abi::kExtensible, operation, errno, {args.reason, args.record});
  return {};
}

std::uint64_t user_pointer(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

struct NamedBo {
  Bo bo;
  std::uint32_t handle = 0;
  std::uint64_t inode = 0;
  bool imported = false;
  std::vector<std::uint32_t> mapped = {};
};

struct Contents {
  std::vector<Device> devices;
  std::vector<NamedBo> bos;
};

template <typename Record>
Result<Record> read_record(std::span<const std::byte> bytes) {
  Record record{};
  if (bytes.size() < sizeof(record)) return Error(EPROTO, "record of an image is too short");
  std::memcpy(&record, bytes.data(), sizeof(record));
  return record;
}

Status read_device(std::span<const std::byte> bytes, Contents& contents) {
  ASSIGN_OR_RETURN(const auto record, read_record<kfd_criu_record_device>(bytes));
  if ((le32toh(record.flags) & KFD_CRIU_DEVICE_ACQUIRED) != 0)
    contents.devices.push_back({le32toh(record.user_gpu_id), le32toh(record.gpu_id)});
  return {};
}

Result<std::vector<std::uint32_t>> read_gpu_ids(std::span<const std::byte> record, std::size_t begin,
                                                std::size_t count) {
  if (begin > record.size() || count > (record.size() - begin) / sizeof(std::uint32_t))
    return Error(EPROTO, "record of an image is too short");
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t id = 0;
    std::memcpy(&id, record.data() + begin + i * sizeof(id), sizeof(id));
    ids.push_back(le32toh(id));
  }
  return ids;
}

Status read_bo(std::span<const std::byte> bytes, Contents& contents) {
  ASSIGN_OR_RETURN(const auto record, read_record<kfd_criu_record_bo>(bytes));
  NamedBo named{{le64toh(record.va), le64toh(record.size), le64toh(record.mmap_offset), le32toh(record.gpu_id),
                 le32toh(record.alloc_flags)},
                le32toh(record.handle),
                le64toh(record.inode),
                (le32toh(record.flags) & KFD_CRIU_BO_IMPORTED) != 0,
                {}};
  ASSIGN_OR_RETURN(named.mapped, read_gpu_ids(bytes, le32toh(record.record.fixed_size), le32toh(record.num_mapped)));
  contents.bos.push_back(std::move(named));
  return {};
}

Result<Contents> read_image(std::span<const std::byte> image) {
  Contents contents;
  while (!image.empty()) {
    ASSIGN_OR_RETURN(const auto header, read_record<kfd_criu_record>(image));
    const std::uint64_t size = le64toh(header.size);
    if (size < sizeof(header) || size > image.size()) return Error(EPROTO, "record of an image has an impossible size");
    const auto bytes = image.first(static_cast<std::size_t>(size));
    if (le32toh(header.type) == KFD_CRIU_RECORD_DEVICE) TRY(read_device(bytes, contents));
    if (le32toh(header.type) == KFD_CRIU_RECORD_BO) TRY(read_bo(bytes, contents));
    image = image.subspan(bytes.size());
  }
  return contents;
}

// A descriptor that is none: the process is restored, not paused.
constexpr int kNoPause = -1;

Result<UniqueFd> export_handle(int fd, int pause_fd, const Bo& bo, std::uint32_t handle) {
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_EXPORT_BO;
  args.pause_fd = pause_fd;
  args.gpu_id = bo.user_gpu_id;
  args.handle = handle;
  TRY(call(fd, args, Operation::kExportBo));
  return UniqueFd(args.fd);
}

Result<std::uint64_t> offset_of(int fd, const NamedBo& named) {
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_BO_OFFSET;
  args.pause_fd = kNoPause;
  args.gpu_id = named.bo.user_gpu_id;
  args.handle = named.handle;
  TRY(call(fd, args, Operation::kBoOffset));
  return args.offset;
}

// The kernel finds the BOs by its image, the caller by its own index of it.
Status compare(const Contents& contents, const RestoreRequest& request) {
  const Error differ(EINVAL, "BOs are not those of the image");
  if (contents.bos.size() != request.bos.size()) return differ;
  if (request.origins.empty()) return {};
  for (std::size_t i = 0; i < contents.bos.size(); ++i) {
    const NamedBo& named = contents.bos[i];
    const Origin& origin = request.origins[i];
    // Images of the first versions of this plugin do not say of a BO that it was imported.
    if (named.inode != origin.inode || named.bo.size != request.bos[i].size || (origin.imported && !named.imported))
      return differ;
  }
  return {};
}

// What a process is refused for whose objects of render nodes nobody saves.
bool is_about_objects(std::uint32_t reason) {
  return reason == KFD_CRIU_REASON_GEM_OBJECT || reason == KFD_CRIU_REASON_GEM_MAPPING ||
         reason == KFD_CRIU_REASON_DRM_CONTEXT;
}

Pause paused(const kfd_criu_args& args) {
  Pause pause;
  pause.file.reset(args.fd);
  pause.info.pid = args.pid;
  pause.info.priv_size = args.data_size;
  pause.has_objects = (args.flags & KFD_CRIU_PAUSE_DRM_OBJECTS) != 0;
  return pause;
}

// An address that every GPU has. The memory is mapped to none.
constexpr std::uint64_t kAnyAddress = 1ULL << 32;

Status driver_call(int fd, unsigned long request, void* args, const char* name) {
  int result = 0;
  do {
    result = os::ioctl(fd, request, args);
  } while (result < 0 && errno == EINTR);
  if (result < 0) return Error::from_errno(errno, name);
  return {};
}

}  // namespace

Result<Version> ExtensibleKfd::version(int fd) { return RealKfd().version(fd); }

Result<bool> ExtensibleKfd::probe(int fd) {
  kfd_criu_probe probe{};
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_PROBE;
  args.data = user_pointer(&probe);
  args.data_size = sizeof(probe);
  const Status status = call(fd, args, Operation::kProbe);
  if (status.ok()) return (probe.ops & kNeededOps) == kNeededOps;
  // A kernel without the ABI reads the operation as one of the released ABI that it does not know. It may look at the
  // caller's capabilities (EACCES) or the size of the args (ENOTTY) before.
  const int code = status.error().code();
  if (code == EINVAL || code == ENOTTY || code == EACCES) return false;
  return status.error();
}

Result<Abi> ExtensibleKfd::choose_abi(int fd) {
  ASSIGN_OR_RETURN(const bool is_there, probe(fd));
  if (!is_there) return Error(EOPNOTSUPP, "this kernel does not have the extensible ABI of AMDKFD_IOC_CRIU_OP");
  return Abi::kExtensible;
}

Result<bool> ExtensibleKfd::is_traced(int fd) { return RealKfd().is_traced(fd); }

Result<Pause> ExtensibleKfd::pause(int fd) {
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_PAUSE;
  TRY(call(fd, args, Operation::kPause));
  return paused(args);
}

Result<Pause> ExtensibleKfd::pause_with_objects(int fd) {
  kfd_criu_args plain{};
  plain.op = KFD_CRIU_CMD_PAUSE;
  const Status refused = call(fd, plain, Operation::kPause);
  if (refused.ok()) return paused(plain);
  if (refused.error().code() != EOPNOTSUPP || !is_about_objects(plain.reason)) return refused.error();
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_PAUSE;
  args.flags = KFD_CRIU_PAUSE_DRM_OBJECTS;
  const Status status = call(fd, args, Operation::kPause);
  if (status.ok()) return paused(args);
  // The kernel does not know the flag.
  if (status.error().code() == EINVAL) return refused.error();
  if (status.error().code() == EOPNOTSUPP && args.reason == KFD_CRIU_REASON_GEM_MAPPING)
    return Error(
        EOPNOTSUPP,
        "KFD PAUSE: the program has mapped a BO of KFD through a render node and then closed the GEM handle, so "
        "that no list shows the mapping, or has put another mapping in the place of one of KFD's: let it unmap "
        "this before the dump");
  return status.error();
}

Result<Checkpoint> ExtensibleKfd::checkpoint(int fd, const Pause& pause) {
  if (pause.info.priv_size == 0 || pause.info.priv_size > kMaxImage)
    return Error(EOVERFLOW, "KFD PAUSE answered an impossible size");
  Checkpoint result;
  result.priv_data.resize(pause.info.priv_size);
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_CHECKPOINT;
  args.pause_fd = pause.file.get();
  args.data = user_pointer(result.priv_data.data());
  args.data_size = result.priv_data.size();
  TRY(call(fd, args, Operation::kCheckpoint));
  if (args.data_size > result.priv_data.size()) return Error(EOVERFLOW, "KFD CHECKPOINT answered an impossible size");
  result.priv_data.resize(args.data_size);
  ASSIGN_OR_RETURN(Contents contents, read_image(result.priv_data));
  result.devices = std::move(contents.devices);
  for (const NamedBo& named : contents.bos)
    result.bos.push_back({named.bo, UniqueFd(), named.handle, named.inode, named.imported, named.mapped});
  return result;
}

Result<UniqueFd> ExtensibleKfd::export_bo(int fd, const Pause& pause, CheckpointedBo& bo) {
  return export_handle(fd, pause.file.get(), bo.bo, bo.handle);
}

Status ExtensibleKfd::confirm(int fd, Pause& pause) {
  // A second pause keeps the queues evicted while the first is ended for its verdict.
  ASSIGN_OR_RETURN(Pause again, pause.has_objects ? pause_with_objects(fd) : this->pause(fd));
  const Status verdict = unpause(fd, pause);
  pause.file = std::move(again.file);
  return verdict;
}

Status ExtensibleKfd::unpause(int fd, Pause& pause) {
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_UNPAUSE;
  args.pause_fd = pause.file.get();
  const Status status = call(fd, args, Operation::kUnpause);
  pause.file.reset();
  return status;
}

Result<std::vector<RestoredBo>> ExtensibleKfd::restore(int fd, RestoreRequest request) {
  ASSIGN_OR_RETURN(const Contents contents, read_image(request.priv_data));
  TRY(compare(contents, request));
  std::vector<kfd_criu_gpu> gpus;
  for (const RestoreDevice& device : request.devices)
    gpus.push_back({device.user_id, device.actual_id, device.drm_fd, 0});
  std::vector<kfd_criu_shared_memory> memories;
  for (const SharedMemory& memory : request.memories) memories.push_back({memory.inode, memory.dmabuf, 0});
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_RESTORE;
  args.memories = memories.empty() ? 0 : user_pointer(memories.data());
  args.num_memories = static_cast<std::uint32_t>(memories.size());
  args.data = user_pointer(request.priv_data.data());
  args.data_size = request.priv_data.size();
  args.gpus = user_pointer(gpus.data());
  args.num_gpus = static_cast<std::uint32_t>(gpus.size());
  TRY(call(fd, args, Operation::kRestore));
  std::vector<RestoredBo> result;
  for (const NamedBo& named : contents.bos) {
    ASSIGN_OR_RETURN(const std::uint64_t offset, offset_of(fd, named));
    result.push_back({offset, UniqueFd(), named.handle});
  }
  return result;
}

Result<UniqueFd> ExtensibleKfd::export_restored(int fd, const Bo& bo, RestoredBo& restored) {
  return export_handle(fd, kNoPause, bo, restored.handle);
}

Status ExtensibleKfd::resume(int fd, pid_t pid) {
  kfd_criu_args args{};
  args.op = KFD_CRIU_CMD_RESUME;
  args.pid = static_cast<std::uint32_t>(pid);
  return call(fd, args, Operation::kResume);
}

Result<UniqueFd> ExtensibleKfd::allocate(int fd, const Allocation& allocation) {
  kfd_ioctl_acquire_vm_args acquire{};
  acquire.gpu_id = allocation.gpu_id;
  acquire.drm_fd = static_cast<std::uint32_t>(allocation.drm_fd);
  TRY(driver_call(fd, AMDKFD_IOC_ACQUIRE_VM, &acquire, "AMDKFD_IOC_ACQUIRE_VM"));
  kfd_ioctl_alloc_memory_of_gpu_args allocate{};
  allocate.va_addr = kAnyAddress;
  allocate.size = allocation.size;
  allocate.gpu_id = allocation.gpu_id;
  allocate.flags = allocation.alloc_flags;
  TRY(driver_call(fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &allocate, "AMDKFD_IOC_ALLOC_MEMORY_OF_GPU"));
  abi::ExportDmabufArgs exported{.handle = allocate.handle, .flags = O_CLOEXEC | O_RDWR, .dmabuf_fd = 0};
  TRY(driver_call(fd, abi::kExportDmabuf, &exported, "AMDKFD_IOC_EXPORT_DMABUF"));
  return UniqueFd(static_cast<int>(exported.dmabuf_fd));
}

}  // namespace kfd
