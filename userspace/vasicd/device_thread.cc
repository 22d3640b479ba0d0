// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// When to spin and how long to sleep. Doorbells are plain stores that wake no thread, so the device polls while queues
// are mapped; the figures below keep an idle device under 2 % of a core.
#include "vasicd/device_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace vasicd {
namespace {

constexpr std::uint64_t kMicrosecond = 1000;
constexpr std::uint64_t kMillisecond = 1000 * kMicrosecond;
constexpr std::uint64_t kSecond = 1000 * kMillisecond;

constexpr std::uint64_t kSpin = 20 * kMicrosecond;
constexpr std::uint64_t kFirstSleep = 50 * kMicrosecond;
// A queue that was idle this long is likely to stay idle. The thread then sleeps, at the cost of latency.
constexpr std::uint64_t kQuiet = 20 * kMillisecond;

// The longest sleeps, shortly after work was done and after a longer idle time. (A wake-up may cost 20 us of CPU.)
struct Pace {
  std::uint64_t recent;
  std::uint64_t quiet;
};

constexpr Pace pace_of(Attention attention) {
  switch (attention) {
    case Attention::kUserQueues:
      return {.recent = 400 * kMicrosecond, .quiet = 2 * kMillisecond};
    case Attention::kKernel:
      return {.recent = kMillisecond, .quiet = 4 * kMillisecond};
    case Attention::kKicks:
      break;
  }
  return {.recent = 100 * kMillisecond, .quiet = 100 * kMillisecond};  // only for the heartbeat
}

// Sleeps until the eventfd is kicked or the time is over; true if kicked, and the eventfd is then drained.
bool sleep_until_kicked(int eventfd, std::uint64_t ns) {
  pollfd wait{.fd = eventfd, .events = POLLIN, .revents = 0};
  const timespec timeout{.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
  if (::ppoll(&wait, 1, &timeout, nullptr) <= 0) return false;
  eventfd_t count = 0;
  return ::eventfd_read(eventfd, &count) == 0;
}

}  // namespace

std::uint64_t SteadyClock::now_ns() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

DeviceThread::DeviceThread(DeviceSlot slot, EngineFactory make_engines, int kick)
    : kick_(kick), thread_([this, slot, make_engines = std::move(make_engines)](const std::stop_token& stop) {
        // A local variable, so that no other thread can reach it.
        Device device(slot, make_engines);
        run_device(device, slot.clock, stop);
      }) {}

DeviceThread::~DeviceThread() {
  thread_.request_stop();
  wake();
}

void DeviceThread::wake() const { ::eventfd_write(kick_, 1); }

base::Status DeviceThread::power_cycle() {
  std::unique_lock lock(mutex_);
  requested_ = true;
  wake();
  served_.wait(lock, [this] { return !requested_; });
  return request_result_;
}

void DeviceThread::serve_request(Device& device) {
  const std::lock_guard lock(mutex_);
  if (!requested_) return;
  request_result_ = device.power_cycle();
  requested_ = false;
  served_.notify_all();
}

bool DeviceThread::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= kMaxTasks) return false;
    tasks_.push_back(std::move(task));
  }
  wake();
  return true;
}

void DeviceThread::execute_tasks(Device& device) {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) task(device);
}

void DeviceThread::run_device(Device& device, const Clock& clock, const std::stop_token& stop) {
  std::uint64_t last_advance = clock.now_ns();
  std::uint64_t sleep = 0;  // 0: still spinning
  while (!stop.stop_requested()) {
    serve_request(device);
    execute_tasks(device);
    if (device.poll()) {
      last_advance = clock.now_ns();
      sleep = 0;
      continue;
    }
    const Attention attention = device.attention();
    const Pace pace = pace_of(attention);
    const std::uint64_t idle = clock.now_ns() - last_advance;
    const std::uint64_t longest = idle < kQuiet ? pace.recent : pace.quiet;
    if (sleep == 0) {
      if (idle < kSpin) continue;
      sleep = attention == Attention::kKicks ? longest : kFirstSleep;
    }
    if (sleep_until_kicked(kick_, std::min(sleep, longest))) {
      last_advance = clock.now_ns();
      sleep = 0;
    } else {
      sleep = std::min(2 * sleep, longest);
    }
  }
}

}  // namespace vasicd
