// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A disk that the test lets work step by step.
#include "plugin/image/writeback.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

namespace plugin::image {
namespace {

constexpr std::uint64_t kBytes = 1000;
constexpr int kFile = 5;

class Disk {
 public:
  int wait(std::uint64_t length) {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.wait(lock, [&] { return allowed_ >= done_ + length; });
    done_ += length;
    ++calls_;
    errno = error_;
    return error_ == 0 ? 0 : -1;
  }
  void allow(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    allowed_ += bytes;
    changed_.notify_all();
  }
  void fail_with(int error) { error_ = error; }
  [[nodiscard]] int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  [[nodiscard]] int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  Writeback::Wait as_wait() {
    return [this](int /*file*/, std::uint64_t /*offset*/, std::uint64_t length) { return wait(length); };
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t allowed_ = 0;
  std::uint64_t done_ = 0;
  int begun_ = 0;  // calls
  int calls_ = 0;  // those that have ended
  int error_ = 0;
};

void wait_until(const std::function<bool()>& is_so) {
  while (!is_so()) std::this_thread::yield();
}

TEST(Writeback, is_busy_when_half_of_what_may_wait_does) {
  Disk disk;
  Writeback writeback(4 * kBytes, disk.as_wait());
  EXPECT_TRUE(writeback.add(kFile, 0, kBytes).ok());
  EXPECT_FALSE(writeback.is_busy());
  EXPECT_TRUE(writeback.add(kFile, kBytes, kBytes).ok());
  EXPECT_TRUE(writeback.is_busy());
  disk.allow(kBytes);
  wait_until([&] { return !writeback.is_busy(); });
  disk.allow(kBytes);
}

TEST(Writeback, adding_more_than_may_wait_takes_as_long_as_the_disk_does) {
  Disk disk;
  Writeback writeback(2 * kBytes, disk.as_wait());
  std::atomic<bool> is_added = false;
  EXPECT_TRUE(writeback.add(kFile, 0, kBytes).ok());
  std::thread adder([&] {
    EXPECT_TRUE(writeback.add(kFile, kBytes, kBytes).ok());
    is_added = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_added);
  disk.allow(kBytes);
  adder.join();
  disk.allow(kBytes);
}

TEST(Writeback, the_first_error_of_the_disk_is_kept) {
  Disk disk;
  disk.fail_with(ENOSPC);
  disk.allow(1000000 * kBytes);
  Writeback writeback(100 * kBytes, disk.as_wait());
  (void)writeback.add(kFile, 0, kBytes);
  wait_until([&] { return !writeback.add(kFile, kBytes, kBytes).ok(); });
  EXPECT_EQ(writeback.add(kFile, 2 * kBytes, kBytes).error().code(), ENOSPC);
  EXPECT_EQ(writeback.end().error().code(), ENOSPC);
}

TEST(Writeback, a_file_system_without_such_a_wait_is_no_error) {
  for (const int error : {EINVAL, ESPIPE, ENOSYS}) {
    Disk disk;
    disk.fail_with(error);
    disk.allow(kBytes);
    Writeback writeback(100 * kBytes, disk.as_wait());
    EXPECT_TRUE(writeback.add(kFile, 0, kBytes).ok());
    wait_until([&] { return disk.calls() == 1; });
    EXPECT_TRUE(writeback.end().ok());
  }
}

// The error belongs to that call: no later fsync() reports it.
TEST(Writeback, an_error_of_the_call_that_is_under_way_at_the_end_is_answered) {
  Disk disk;
  disk.fail_with(EIO);
  Writeback writeback(100 * kBytes, disk.as_wait());
  EXPECT_TRUE(writeback.add(kFile, 0, kBytes).ok());
  wait_until([&] { return disk.begun() == 1; });
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    disk.allow(kBytes);
  });
  const base::Status status = writeback.end();
  later.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EIO);
}

TEST(Writeback, ends_without_waiting_for_what_is_left) {
  Disk disk;
  {
    Writeback writeback(100 * kBytes, disk.as_wait());
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(writeback.add(kFile, 0, kBytes).ok());
    disk.allow(kBytes);
    wait_until([&] { return disk.calls() == 1; });
    // The second call may be under way; the others must not begin.
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      disk.allow(kBytes);
    });
    later.detach();
  }
  EXPECT_LE(disk.calls(), 2);
}

}  // namespace
}  // namespace plugin::image
