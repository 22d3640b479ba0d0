// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/sync_file.h"

#include <drm.h>
#include <linux/sync_file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/os.h"

namespace plugin::sync_file {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

Status call(int fd, unsigned long request, void* argument, const char* what) {
  while (os::ioctl(fd, request, argument) != 0)
    if (errno != EINTR) return Error::from_errno(errno, what);
  return {};
}

// The name that the kernel gives a sync file says which driver and timeline the work is of. Merged with itself, a sync
// file gets a name of our own.
Result<UniqueFd> named(UniqueFd file, const std::string& name) {
  sync_merge_data merge{};
  name.copy(merge.name, sizeof(merge.name) - 1);
  merge.fd2 = file.get();
  TRY(call(file.get(), SYNC_IOC_MERGE, &merge, "SYNC_IOC_MERGE"));
  return UniqueFd(merge.fence);
}

}  // namespace

Result<std::optional<Info>> info_of(const std::string& proc, int fd) {
  std::array<char, 32> link{};
  const ssize_t length = os::readlink((proc + "/self/fd/" + std::to_string(fd)).c_str(), link.data(), link.size());
  if (length < 0 || std::string_view(link.data(), static_cast<std::size_t>(length)) != kPath)
    return std::optional<Info>();
  sync_file_info answer{};
  TRY(call(fd, SYNC_IOC_FILE_INFO, &answer, "SYNC_IOC_FILE_INFO"));
  Info info;
  if (answer.status != 0) info.state = answer.status > 0 ? State::kFinished : State::kFailed;
  info.name.assign(answer.name, std::find(std::begin(answer.name), std::end(answer.name), '\0'));
  return std::optional<Info>(std::move(info));
}

// The sync object goes with its handle; a sync file keeps only its fence.
Result<UniqueFd> create_finished(int render, const std::string& name) {
  drm_syncobj_create created{};
  created.flags = DRM_SYNCOBJ_CREATE_SIGNALED;
  TRY(call(render, DRM_IOCTL_SYNCOBJ_CREATE, &created, "DRM_IOCTL_SYNCOBJ_CREATE"));
  drm_syncobj_handle exported{};
  exported.handle = created.handle;
  exported.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
  auto status = call(render, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &exported, "DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD");
  UniqueFd file(status.ok() ? exported.fd : -1);
  drm_syncobj_destroy destroyed{};
  destroyed.handle = created.handle;
  TRY(call(render, DRM_IOCTL_SYNCOBJ_DESTROY, &destroyed, "DRM_IOCTL_SYNCOBJ_DESTROY"));
  TRY(std::move(status));
  return named(std::move(file), name);
}

}  // namespace plugin::sync_file
