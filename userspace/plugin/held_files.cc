// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/held_files.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/os.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

// CRIU leaves so many numbers free between the program's highest and those of its own files.
constexpr int kRoomBelowCriu = 16;

// A number above CRIU's own files, which end at a power of two of at least 128 that is large enough for the program's
// numbers and for them.
int above_criu(int unused) { return 2 * (unused + 256); }

Result<UniqueFd> duplicate_at(int fd, int lowest) {
  UniqueFd copy(os::fcntl(fd, F_DUPFD_CLOEXEC, lowest));
  if (!copy.valid()) return Error::from_errno(errno, "duplicating descriptor " + std::to_string(fd));
  return copy;
}

}  // namespace

Result<HeldFiles::Key> HeldFiles::hold(UniqueFd file) {
  const int unused = criu_->unused_fd();
  if (unused >= 0) {
    auto held = duplicate_at(file.get(), unused);
    if (held.ok() && held->get() >= unused + kRoomBelowCriu) held = duplicate_at(file.get(), above_criu(unused));
    // A process whose limit of descriptors is lower has CRIU's files below it as well, so any free number will do.
    if (!held.ok()) held = duplicate_at(file.get(), unused);
    if (!held.ok()) return std::move(held).error();
    file = std::move(held).value();
  }
  const int number = file.get();
  files_.push_back({std::move(file), number, {}});
  return files_.size() - 1;
}

Result<UniqueFd> HeldFiles::duplicate(Key key) const { return duplicate_at(files_[key].number, 0); }

Status HeldFiles::replace(const File& file, const ExternalFd& fd,
                          const std::function<bool(int fd)>& may_replace) const {
  ASSIGN_OR_RETURN(const bool is_same, processes_->same_file(file.held.get(), fd.number));
  if (is_same) return {};
  const std::string what = "descriptor " + std::to_string(fd.number) + " of the program";
  if (!may_replace(fd.number)) return Error(EBADF, what + " is not the device file that CRIU was given");
  if (os::dup2(file.held.get(), fd.number) < 0) return Error::from_errno(errno, "replacing " + what);
  if (os::fcntl(fd.number, F_SETFD, fd.close_on_exec ? FD_CLOEXEC : 0) < 0)
    return Error::from_errno(errno, "setting flags of " + what);
  return {};
}

Status HeldFiles::settle(bool knows_claims, const std::function<bool(int fd)>& may_replace) {
  if (settled_) return {};
  for (File& file : files_) {
    for (const ExternalFd& fd : file.claims) TRY(replace(file, fd, may_replace));
    if (knows_claims) {
      if (!file.claims.empty()) file.number = file.claims.front().number;
    } else {
      ASSIGN_OR_RETURN(const auto own, processes_->find_duplicate(file.held.get()));
      if (own) file.number = *own;
    }
    if (file.number != file.held.get()) file.held.reset();
  }
  settled_ = true;
  return {};
}

void HeldFiles::release_all_but(std::optional<Key> key) {
  for (Key i = 0; i < files_.size(); ++i)
    if (i != key) files_[i].held.reset();
}

}  // namespace plugin
