// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The thread that evicts and restores the queues with the ioctls PROCESS_INFO and UNPAUSE.
#include "hiptest/preemptor.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>

#include "kfd/kfd.h"

namespace hiptest {

namespace {

// Returns the runtime's descriptor of /dev/kfd: another open file would belong to another kfd_process.
base::Result<int> kfd_file() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (!error && target == "/dev/kfd") return std::stoi(entry.path().filename());
  }
  return base::Error(ENOENT, "this process has no /dev/kfd");
}

base::Status preempt(kfd::Kfd& kfd, int file) {
  ASSIGN_OR_RETURN(kfd::Pause pause, kfd.pause(file));
  if (pause.info.num_objects == 0) return base::Error(EIO, "PROCESS_INFO found no queue");
  return kfd.unpause(file, pause);
}

}  // namespace

base::Result<Preemptor> Preemptor::begin(std::uint32_t seed, Pace pace) {
  ASSIGN_OR_RETURN(const int file, kfd_file());
  Preemptor preemptor;
  Shared* const shared = preemptor.shared_.get();
  preemptor.thread_ = std::jthread([shared, file, seed, pace](const std::stop_token& stop) {
    constexpr unsigned kLongestPauseUs = 5000;
    std::mt19937 random(seed);
    kfd::RealKfd kfd;
    while (!stop.stop_requested() && shared->status.ok()) {
      if (pace == Pace::kRandom) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongestPauseUs));
      }
      shared->status = preempt(kfd, file);
      if (shared->status.ok()) ++shared->count;
    }
  });
  return preemptor;
}

base::Status Preemptor::end() {
  thread_.request_stop();
  thread_.join();
  return shared_->status;
}

}  // namespace hiptest
