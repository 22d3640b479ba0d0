// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// FakeKfd: see the header.
#include "kfd/fake_kfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/os.h"

namespace kfd {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

UniqueFd memory_file(std::uint64_t size) {
  UniqueFd fd(::memfd_create("fake-bo", MFD_CLOEXEC));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return UniqueFd();
  return fd;
}

}  // namespace

std::uint64_t fake_restored_offset(std::size_t index) { return 0x2'0000'0000ULL + index * 0x1000'0000ULL; }

Status FakeKfd::step(int fd, const std::string& name, Operation operation) {
  calls.push_back(name);
  if (::fcntl(fd, F_GETFD) < 0) return Error(EBADF, "fake " + name + ": descriptor is closed");
  const int code = fail_at == name ? fail_errno : os::fault(operation_name(Abi::kReleased, operation));
  if (code != 0) return operation_error(Abi::kReleased, operation, code).wrap("fake " + name);
  return {};
}

std::vector<std::byte> FakeKfd::restored_contents(std::size_t index) const {
  std::vector<std::byte> bytes(restored->bos[index].size);
  if (::pread(restored_memory_[index].get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return {};
  return bytes;
}

Result<Version> FakeKfd::version(int fd) {
  TRY(step(fd, "version", Operation::kVersion));
  return kfd_version;
}

Result<ProcessInfo> FakeKfd::process_info(int fd) {
  TRY(step(fd, "process_info", Operation::kPause));
  paused = true;
  return ProcessInfo{pid, static_cast<std::uint32_t>(devices.size()), static_cast<std::uint32_t>(bos.size()),
                     num_objects, priv_data.size()};
}

Result<Checkpoint> FakeKfd::checkpoint(int fd, const ProcessInfo& info) {
  TRY(step(fd, "checkpoint", Operation::kCheckpoint));
  if (!paused || info.num_bos != bos.size()) return Error(EINVAL, "fake checkpoint: not paused");
  Checkpoint result;
  result.devices = devices;
  result.priv_data = priv_data;
  for (const FakeBo& fake : bos) {
    CheckpointedBo out{fake.bo, UniqueFd()};
    if (has_contents(fake.bo)) {
      out.dmabuf = memory_file(fake.bo.size);
      if (::pwrite(out.dmabuf.get(), fake.contents.data(), fake.contents.size(), 0) < 0)
        return Error::from_errno(errno, "fake checkpoint");
    }
    result.bos.push_back(std::move(out));
  }
  return result;
}

Status FakeKfd::unpause(int fd) {
  TRY(step(fd, "unpause", Operation::kUnpause));
  if (!paused) return Error(EINVAL, "fake unpause: not paused");
  paused = false;
  return {};
}

Result<std::vector<RestoredBo>> FakeKfd::restore(int fd, RestoreRequest request) {
  TRY(step(fd, "restore", Operation::kRestore));
  for (const RestoreDevice& device : request.devices)
    if (::fcntl(device.drm_fd, F_GETFD) < 0) return Error(EINVAL, "fake restore: bad drm_fd");
  std::vector<RestoredBo> result;
  restored_memory_.clear();
  for (std::size_t i = 0; i < request.bos.size(); ++i) {
    RestoredBo out{fake_restored_offset(i), UniqueFd()};
    if (has_contents(request.bos[i])) {
      out.dmabuf = memory_file(request.bos[i].size);
      restored_memory_.emplace_back(::fcntl(out.dmabuf.get(), F_DUPFD_CLOEXEC, 0));
    } else {
      restored_memory_.emplace_back();
    }
    result.push_back(std::move(out));
  }
  restored = std::move(request);
  return result;
}

Status FakeKfd::resume(int fd, pid_t target) {
  TRY(step(fd, "resume", Operation::kResume));
  resumed.push_back(target);
  return {};
}

}  // namespace kfd
