// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// FakeKfd: see the header.
#include "kfd/fake_kfd.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/os.h"

namespace kfd {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr int kHighNumber = 3000;

UniqueFd memory_file(std::uint64_t size, const std::string& name = "fake-bo") {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return UniqueFd();
  return fd;
}

bool has_size(int fd, std::uint64_t size) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && static_cast<std::uint64_t>(status.st_size) == size;
}

// As kernels do that evict the queues at each PROCESS_INFO, whether the process is paused or not: they run again when
// UNPAUSE was called as often, which the kernel permits once.
void begin_pause(FakeProcess& process) {
  process.paused = true;
  ++process.evicted;
}

void end_pause(FakeProcess& process) {
  process.paused = false;
  --process.evicted;
}

}  // namespace

std::string fake_memory_name(const Allocation& allocation) {
  return "fake-memory-" + std::to_string(allocation.gpu_id) + "-" + std::to_string(allocation.alloc_flags);
}

std::uint64_t fake_restored_offset(std::size_t index) { return 0x2'0000'0000ULL + index * 0x1000'0000ULL; }

bool FakeProcess::stands() {
  std::erase_if(pause_ends, [](const UniqueFd& end) {
    pollfd poll{.fd = end.get(), .events = 0, .revents = 0};
    return ::poll(&poll, 1, 0) != 0;  // the other end is closed
  });
  return evicted != 0 || !pause_ends.empty();
}

FakeProcess& FakeKfd::add_process(std::uint32_t new_pid) {
  processes.emplace_back().pid = new_pid;
  return processes.back();
}

void FakeKfd::add_file(int fd, const FakeProcess& process) {
  for (std::size_t i = 0; i < processes.size(); ++i)
    if (&processes[i] == &process) files_.push_back({UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), i});
}

FakeProcess& FakeKfd::process_of(int fd) {
  for (const File& file : files_)
    if (::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, fd, file.fd.get()) == 0) return processes[file.process];
  return processes.front();
}

bool FakeKfd::all_stand() {
  return std::all_of(processes.begin(), processes.end(), [](FakeProcess& process) { return process.stands(); });
}

bool FakeKfd::all_run() {
  return std::count_if(processes.begin(), processes.end(), [](FakeProcess& process) { return process.stands(); }) == 0;
}

Status FakeKfd::step(int fd, const std::string& name, Operation operation) {
  calls.push_back(name);
  if (::fcntl(fd, F_GETFD) < 0) return Error(EBADF, "fake " + name + ": descriptor is closed");
  const bool is_chosen = fail_at == name && (fail_pid == 0 || process_of(fd).pid == fail_pid);
  const int code = is_chosen ? fail_errno : os::fault(operation_name(abi, operation));
  if (code != 0) return operation_error(abi, operation, code).wrap("fake " + name);
  return {};
}

std::vector<std::byte> FakeKfd::restored_contents(std::size_t index) const {
  const auto bytes = restored_memory_[index].bytes();
  return {bytes.begin(), bytes.end()};
}

Result<Version> FakeKfd::version(int fd) {
  TRY(step(fd, "version", Operation::kVersion));
  return kfd_version;
}

Result<Abi> FakeKfd::choose_abi(int fd) {
  TRY(step(fd, "choose_abi", Operation::kProbe));
  return Abi{abi};
}

Result<bool> FakeKfd::is_traced(int fd) {
  TRY(step(fd, "is_traced", Operation::kUnpause));
  FakeProcess& process = process_of(fd);
  if (process.traced && process.paused) end_pause(process);
  return bool{process.traced};
}

Result<Pause> FakeKfd::pause(int fd) { return pause(fd, false); }

Result<Pause> FakeKfd::pause_with_objects(int fd) { return pause(fd, true); }

Result<Pause> FakeKfd::pause(int fd, bool saves_objects) {
  TRY(step(fd, "pause", Operation::kPause));
  FakeProcess& process = process_of(fd);
  if (process.has_objects && (!saves_objects || abi == Abi::kReleased))
    return Error(EOPNOTSUPP, "fake pause: a render node of the process has objects");
  if (!process.traced) return Error(EBADF, "fake pause: the caller is not the tracer");
  if (process.was_reset) return Error(ENOTRECOVERABLE, "fake pause: reset");
  if (!process.stands()) ++process.evictions;
  Pause pause;
  pause.has_objects = process.has_objects;
  pause.info = {process.pid, static_cast<std::uint32_t>(process.devices.size()),
                static_cast<std::uint32_t>(process.bos.size()), process.num_objects, process.priv_data.size()};
  if (abi == Abi::kReleased) {
    begin_pause(process);
    return pause;
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno(errno, "fake pause");
  process.pause_ends.emplace_back(ends[0]);
  pause.file.reset(ends[1]);
  return pause;
}

Result<Checkpoint> FakeKfd::checkpoint(int fd, const Pause& pause) {
  TRY(step(fd, "checkpoint", Operation::kCheckpoint));
  FakeProcess& process = process_of(fd);
  if (!process.stands() || pause.info.pid != process.pid || pause.info.num_bos != process.bos.size())
    return Error(EINVAL, "fake checkpoint: not paused");
  Checkpoint result;
  result.devices = process.devices;
  result.priv_data = process.priv_data;
  for (const FakeBo& fake : process.bos) {
    CheckpointedBo out{fake.bo, UniqueFd(), fake.handle, fake.inode, fake.imported, fake.mapped};
    if (has_contents(fake.bo)) {
      UniqueFd memory = memory_file(fake.bo.size);
      if (::pwrite(memory.get(), fake.contents.data(), fake.contents.size(), 0) < 0)
        return Error::from_errno(errno, "fake checkpoint");
      struct stat status {};
      if (::fstat(memory.get(), &status) != 0) return Error::from_errno(errno, "fake checkpoint");
      if (out.inode == 0) out.inode = status.st_ino;
      if (abi == Abi::kReleased) out.dmabuf = std::move(memory);
    }
    result.bos.push_back(std::move(out));
  }
  return result;
}

Result<UniqueFd> FakeKfd::export_bo(int fd, const Pause& pause, CheckpointedBo& bo) {
  TRY(step(fd, "export_bo", Operation::kExportBo));
  if (abi == Abi::kReleased) return std::move(bo.dmabuf);
  if (!pause.file.valid()) return Error(EBADF, "fake export_bo: no pause");
  for (const FakeBo& fake : process_of(fd).bos) {
    if (fake.handle != bo.handle) continue;
    UniqueFd memory = memory_file(fake.bo.size);
    if (::pwrite(memory.get(), fake.contents.data(), fake.contents.size(), 0) < 0)
      return Error::from_errno(errno, "fake export_bo");
    return memory;
  }
  return Error(ENOENT, "fake export_bo: no such BO");
}

Status FakeKfd::confirm(int fd, Pause& /*pause*/) {
  if (abi == Abi::kReleased) return {};
  TRY(step(fd, "confirm", Operation::kPause));
  FakeProcess& process = process_of(fd);
  if (process.was_reset) return Error(ENOTRECOVERABLE, "fake confirm: reset");
  if (!process.stands()) return Error(EINVAL, "fake confirm: not paused");
  return {};
}

Status FakeKfd::unpause(int fd, Pause& pause) {
  TRY(step(fd, "unpause", Operation::kUnpause));
  FakeProcess& process = process_of(fd);
  if (abi == Abi::kReleased ? !process.paused : !process.stands()) return Error(EINVAL, "fake unpause: not paused");
  if (process.paused) end_pause(process);
  pause.file.reset();
  if (process.was_reset) return Error(ENOTRECOVERABLE, "fake unpause: reset");
  return {};
}

Result<std::vector<RestoredBo>> FakeKfd::restore(int fd, RestoreRequest request) {
  TRY(step(fd, "restore", Operation::kRestore));
  for (const RestoreDevice& device : request.devices)
    if (::fcntl(device.drm_fd, F_GETFD) < 0) return Error(EINVAL, "fake restore: bad drm_fd");
  restored_files.clear();
  restored_files.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, kHighNumber));
  for (const RestoreDevice& device : request.devices)
    restored_files.emplace_back(::fcntl(device.drm_fd, F_DUPFD_CLOEXEC, kHighNumber));
  std::vector<RestoredBo> result;
  restored = std::move(request);
  restored_memory_.clear();
  restored_memory_.resize(restored->bos.size());
  if (keeps_memory) TRY(give_memories());
  for (std::size_t i = 0; i < restored->bos.size(); ++i) {
    RestoredBo out{fake_restored_offset(i), UniqueFd(), static_cast<std::uint32_t>(i)};
    if (abi == Abi::kReleased && has_contents(restored->bos[i])) {
      ASSIGN_OR_RETURN(out.dmabuf, make_restored_memory(i));
    }
    result.push_back(std::move(out));
  }
  return result;
}

// kfd_criu_bo_alloc_or_import() of the series: BOs that allocated their memory come first in an image.
Status FakeKfd::give_memories() {
  std::map<std::uint64_t, int> known;  // by inode
  std::map<std::uint64_t, int> unused;
  for (const SharedMemory& memory : restored->memories) {
    if (memory.inode == 0) return Error(EINVAL, "fake restore: memory without inode");
    if (::fcntl(memory.dmabuf, F_GETFD) < 0) return Error(EBADF, "fake restore: bad DMA-buf");
    if (!known.emplace(memory.inode, memory.dmabuf).second) return Error(EEXIST, "fake restore: memory twice");
  }
  unused = known;
  auto& memories = restored_memories.emplace_back(restored->bos.size());
  for (const bool is_imported : {false, true}) {
    for (std::size_t i = 0; i < restored->bos.size(); ++i) {
      const Bo& bo = restored->bos[i];
      const Origin origin = restored->origins.empty() ? Origin{} : restored->origins[i];
      if (!has_contents(bo) || origin.imported != is_imported) continue;
      const auto found = origin.inode == 0 ? known.end() : known.find(origin.inode);
      if (found != known.end()) {
        unused.erase(origin.inode);
        if (!has_size(found->second, bo.size)) return Error(EINVAL, "fake restore: memory of another size");
        memories[i].reset(::fcntl(found->second, F_DUPFD_CLOEXEC, kHighNumber));
      } else if (is_imported) {
        return operation_error(abi, Operation::kRestore, EREMOTE);
      } else {
        memories[i].reset(::fcntl(memory_file(bo.size).get(), F_DUPFD_CLOEXEC, kHighNumber));
        if (origin.inode != 0) known[origin.inode] = memories[i].get();
      }
    }
  }
  if (!unused.empty()) return Error(EINVAL, "fake restore: memory that no BO has");
  return {};
}

Result<UniqueFd> FakeKfd::make_restored_memory(std::size_t index) {
  const std::uint64_t size = restored->bos[index].size;
  if (keeps_memory) return UniqueFd(::fcntl(restored_memories.back()[index].get(), F_DUPFD_CLOEXEC, 0));
  UniqueFd memory = memory_file(size);
  ASSIGN_OR_RETURN(restored_memory_[index], base::Mapping::shared(memory.get(), size, 0, "fake memory of a BO"));
  return memory;
}

Result<UniqueFd> FakeKfd::export_restored(int fd, const Bo& /*bo*/, RestoredBo& restored_bo) {
  TRY(step(fd, "export_restored", Operation::kExportBo));
  if (abi == Abi::kReleased) return std::move(restored_bo.dmabuf);
  return make_restored_memory(restored_bo.handle);
}

Status FakeKfd::resume(int fd, pid_t target) {
  TRY(step(fd, "resume", Operation::kResume));
  resumed.push_back(target);
  return {};
}

Result<UniqueFd> FakeKfd::allocate(int fd, const Allocation& allocation) {
  TRY(step(fd, "allocate", Operation::kExportBo));
  if (::fcntl(allocation.drm_fd, F_GETFD) < 0) return Error(EINVAL, "fake allocate: bad drm_fd");
  UniqueFd memory = memory_file(allocation.size, fake_memory_name(allocation));
  constexpr auto kWritable = static_cast<std::uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE);
  if ((allocation.alloc_flags & kWritable) != 0) return memory;
  return UniqueFd(::open(("/proc/self/fd/" + std::to_string(memory.get())).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace kfd
