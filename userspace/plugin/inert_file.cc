// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The child shares the table of descriptors, not the memory: KFD tells processes apart by their memory.
#include "plugin/inert_file.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/os.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::UniqueFd;

// Exit statuses of the child: an errno, or this.
constexpr int kOpened = 0;

// In the child: opens the device and gives it the number that the parent knows.
[[noreturn]] void open_as(const Devices& devices, const DeviceNode& kfd, int extra_flags, int number) {
  const auto fd = devices.open_node(kfd, extra_flags);
  if (!fd.ok()) ::_exit(fd.error().code() > 0 && fd.error().code() < 256 ? fd.error().code() : EIO);
  const int result = os::dup2(fd->get(), number) < 0 ? errno : kOpened;
  (void)os::close(fd->get());  // the table is the parent's, too
  ::_exit(result);
}

}  // namespace

pid_t fork_with_unused_pid(const Devices& devices, const NextPid& next_pid) {
  for (std::uint32_t pid = next_pid(); pid != 0; pid = next_pid()) {
    if (devices.has_kfd_entry(pid)) continue;
    const pid_t child = os::fork_sharing_files(static_cast<pid_t>(pid));
    if (child >= 0) return child;
    if (errno == EPERM) break;  // without CAP_CHECKPOINT_RESTORE the kernel chooses
    if (errno != EEXIST) return child;
  }
  return os::fork_sharing_files(0);
}

Result<UniqueFd> open_inert(const Devices& devices, const DeviceNode& kfd, int extra_flags, const NextPid& next_pid) {
  UniqueFd file(os::open("/", O_PATH | O_CLOEXEC));  // takes the number
  if (!file.valid()) return Error::from_errno(errno, "opening an inert /dev/kfd");
  const pid_t child = fork_with_unused_pid(devices, next_pid);
  if (child < 0) return Error::from_errno(errno, "a process that opens an inert /dev/kfd");
  if (child == 0) open_as(devices, kfd, extra_flags, file.get());
  int status = 0;
  while (os::waitpid(child, &status, __WALL) < 0) {
    if (errno != EINTR) return Error::from_errno(errno, "waiting for the process that opens an inert /dev/kfd");
  }
  if (!WIFEXITED(status)) return Error(EIO, "the process that opens an inert /dev/kfd was ended");
  if (WEXITSTATUS(status) != kOpened) return Error::from_errno(WEXITSTATUS(status), "opening an inert /dev/kfd");
  if (os::fcntl(file.get(), F_SETFD, FD_CLOEXEC) < 0) return Error::from_errno(errno, "an inert /dev/kfd");
  return file;
}

}  // namespace plugin
