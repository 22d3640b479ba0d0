// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Bytes that were written to files and that the disk does not have yet. Linux takes them into its page cache at once,
// so that a writer does not learn how fast the disk is, and finds out when it syncs; here one thread waits for the
// disk, the oldest bytes first.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "base/workers.h"

namespace plugin::image {

class Writeback {
 public:
  // Returns when the disk has these bytes of the open file; -1 and errno as sync_file_range().
  using Wait = std::function<int(int file, std::uint64_t offset, std::uint64_t length)>;

  // At most this many bytes wait for the disk, and those of the calls of add() that are under way.
  static constexpr std::uint64_t kMost = 64U << 20;
  explicit Writeback(std::uint64_t most = kMost, Wait wait = wait_for_disk);
  ~Writeback() { (void)end(); }
  Writeback(const Writeback&) = delete;
  Writeback& operator=(const Writeback&) = delete;

  // These bytes of the file were written. Returns when there is room for more. The file stays open as long as this
  // object lives. Answers the first error of the disk for any file, which no later fsync() reports again.
  base::Status add(int file, std::uint64_t offset, std::uint64_t length);
  // Whether half of what may wait does.
  [[nodiscard]] bool is_busy();
  // Waits for no bytes any more, but for those of the one call of Wait that is under way. The first error of the disk.
  base::Status end();

  static int wait_for_disk(int file, std::uint64_t offset, std::uint64_t length);

 private:
  void finish(int file, std::uint64_t offset, std::uint64_t length);

  const std::uint64_t most_;
  const Wait wait_;
  std::mutex mutex_;  // guards waiting_ and status_
  std::condition_variable changed_;
  std::uint64_t waiting_ = 0;
  base::Status status_;
  std::atomic<bool> ending_ = false;
  std::optional<base::Workers> thread_;  // last: it uses the members above until it ends
};

}  // namespace plugin::image
