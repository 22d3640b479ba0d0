// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/writeback.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "base/os.h"

namespace plugin::image {

using base::Error;
using base::Status;

Writeback::Writeback(std::uint64_t most, Wait wait) : most_(most), wait_(std::move(wait)), thread_(std::in_place, 1) {}

int Writeback::wait_for_disk(int file, std::uint64_t offset, std::uint64_t length) {
  return os::sync_file_range(file, static_cast<off_t>(offset), static_cast<off_t>(length),
                             SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

Status Writeback::add(int file, std::uint64_t offset, std::uint64_t length) {
  // The disk begins now, while other chunks are copied.
  (void)os::sync_file_range(file, static_cast<off_t>(offset), static_cast<off_t>(length), SYNC_FILE_RANGE_WRITE);
  // Without a thread nobody waits before the end.
  if (thread_->threads() == 0) return {};
  {
    const std::lock_guard lock(mutex_);
    waiting_ += length;
  }
  thread_->add([this, file, offset, length] { finish(file, offset, length); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_ < most_; });
  return status_;
}

void Writeback::finish(int file, std::uint64_t offset, std::uint64_t length) {
  Status status;
  // File systems that know no such wait, and pipes, answer these; nothing is wrong with the bytes then.
  if (!ending_ && wait_(file, offset, length) != 0 && errno != EINVAL && errno != ESPIPE && errno != ENOSYS &&
      errno != EINTR)
    status = Error::from_errno(errno, "writing contents to the disk");
  {
    const std::lock_guard lock(mutex_);
    waiting_ -= length;
    if (!status.ok() && status_.ok()) status_ = std::move(status);
  }
  changed_.notify_all();
}

bool Writeback::is_busy() {
  const std::lock_guard lock(mutex_);
  return waiting_ >= most_ / 2;
}

Status Writeback::end() {
  ending_ = true;
  thread_.reset();
  return status_;
}

}  // namespace plugin::image
