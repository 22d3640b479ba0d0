// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The child shares the table of descriptors, so that the DMA-bufs stay, and not the memory, by which KFD tells
// processes apart: this process must have no object of KFD before its own state is restored.
#include "plugin/made_memory.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>

#include "base/os.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::string_view kWhat = "allocating memory in a short-lived process, from which others are given it";

// In the child, which closes what it has opened: the table is the parent's, too.
Status make_all(const Devices& devices, kfd::Kfd& kfd, const DeviceNode& kfd_node,
                std::span<const MemoryToMake> memories, const std::vector<UniqueFd>& places) {
  ASSIGN_OR_RETURN(const UniqueFd own, devices.open_node(kfd_node));
  std::map<std::uint32_t, UniqueFd> renders;  // by gpu_id
  for (std::size_t i = 0; i < memories.size(); ++i) {
    kfd::Allocation allocation = memories[i].allocation;
    UniqueFd& render = renders[allocation.gpu_id];
    if (!render.valid()) {
      ASSIGN_OR_RETURN(render, devices.open_node(memories[i].render));
    }
    allocation.drm_fd = render.get();
    ASSIGN_OR_RETURN(const UniqueFd memory, kfd.allocate(own.get(), allocation));
    if (os::dup2(memory.get(), places[i].get()) < 0) return Error::from_errno(errno, "dup2");
  }
  return {};
}

}  // namespace

Result<std::vector<UniqueFd>> make_memories(const Devices& devices, kfd::Kfd& kfd, const DeviceNode& kfd_node,
                                            std::span<const MemoryToMake> memories, const NextPid& next_pid) {
  std::vector<UniqueFd> places;  // take the numbers
  for (std::size_t i = 0; i < memories.size(); ++i) {
    places.emplace_back(os::open("/", O_PATH | O_CLOEXEC));
    if (!places.back().valid()) return Error::from_errno(errno, kWhat);
  }
  const pid_t child = fork_with_unused_pid(devices, next_pid);
  if (child < 0) return Error::from_errno(errno, kWhat);
  if (child == 0) {
    const Status status = make_all(devices, kfd, kfd_node, memories, places);
    const int code = status.ok() ? 0 : status.error().code();
    ::_exit(code >= 0 && code < 256 ? code : EIO);
  }
  int status = 0;
  while (os::waitpid(child, &status, __WALL) < 0) {
    if (errno != EINTR) return Error::from_errno(errno, kWhat);
  }
  if (!WIFEXITED(status)) return Error(EIO, std::string(kWhat) + ": the process that does it was ended");
  if (WEXITSTATUS(status) != 0) return Error::from_errno(WEXITSTATUS(status), kWhat);
  for (const UniqueFd& place : places)
    if (os::fcntl(place.get(), F_SETFD, FD_CLOEXEC) < 0) return Error::from_errno(errno, kWhat);
  return places;
}

}  // namespace plugin
