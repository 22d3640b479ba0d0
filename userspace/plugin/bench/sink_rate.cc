// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/bench/sink_rate.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

namespace plugin::bench {
namespace {

using Clock = Rate::Clock;

// A part of the file that the disk was asked to read.
struct Ahead {
  off_t begin = 0;
  off_t end = 0;
  Clock::time_point done;
};

Rate* g_rate = nullptr;
Sink g_sink = Sink::kDirect;
std::mutex g_mutex;  // guards g_ahead and g_written
std::vector<Ahead> g_ahead;
std::vector<Ahead> g_written;  // with Sink::kCached

// Headers and indices are not worth a sleep.
constexpr std::size_t kSmall = 16U << 10;

// When bytes have been read that were asked for before.
std::optional<Clock::time_point> read_ahead(off_t offset, std::size_t size) {
  const std::lock_guard lock(g_mutex);
  const off_t end = offset + static_cast<off_t>(size);
  for (const Ahead& each : g_ahead)
    if (each.begin < end && end <= each.end)
      return each.done - g_rate->time_of(static_cast<std::uint64_t>(each.end - end));
  return {};
}

Clock::time_point read_or_ahead(off_t offset, std::size_t size) {
  const auto done = read_ahead(offset, size);
  return done ? *done : g_rate->begin(size);
}

// When the disk has all bytes of this part of the file; all files are one here.
Clock::time_point written_at(off_t begin, off_t end) {
  const std::lock_guard lock(g_mutex);
  Clock::time_point latest;
  for (const Ahead& each : g_written)
    if (each.begin < end && begin < each.end) latest = std::max(latest, each.done);
  std::erase_if(g_written, [now = Clock::now()](const Ahead& each) { return each.done <= now; });
  return latest;
}

}  // namespace

void set_sink_rate(Rate* rate, Sink sink) {
  g_rate = rate;
  g_sink = sink;
  g_ahead.clear();
  g_written.clear();
}

}  // namespace plugin::bench

using plugin::bench::Clock;

extern "C" ssize_t pread(int fd, void* out, std::size_t size, off_t offset) {
  const bool is_slow = plugin::bench::g_rate != nullptr && size > plugin::bench::kSmall;
  const Clock::time_point done = is_slow ? plugin::bench::read_or_ahead(offset, size) : Clock::time_point();
  const ssize_t result = ::syscall(SYS_pread64, fd, out, size, offset);
  if (is_slow) std::this_thread::sleep_until(done);
  return result;
}

extern "C" ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t offset) {
  const bool is_slow = plugin::bench::g_rate != nullptr && size > plugin::bench::kSmall;
  const Clock::time_point done = is_slow ? plugin::bench::g_rate->begin(size) : Clock::time_point();
  const ssize_t result = ::syscall(SYS_pwrite64, fd, bytes, size, offset);
  if (is_slow && plugin::bench::g_sink == plugin::bench::Sink::kCached) {
    const std::lock_guard lock(plugin::bench::g_mutex);
    plugin::bench::g_written.push_back({offset, offset + static_cast<off_t>(size), done});
  } else if (is_slow) {
    std::this_thread::sleep_until(done);
  }
  return result;
}

extern "C" int sync_file_range(int fd, off_t offset, off_t length, unsigned flags) {
  const int result = static_cast<int>(::syscall(SYS_sync_file_range, fd, offset, length, flags));
  if ((flags & SYNC_FILE_RANGE_WAIT_AFTER) != 0)
    std::this_thread::sleep_until(plugin::bench::written_at(offset, offset + length));
  return result;
}

extern "C" int fsync(int fd) {
  const int result = static_cast<int>(::syscall(SYS_fsync, fd));
  std::this_thread::sleep_until(plugin::bench::written_at(0, std::numeric_limits<off_t>::max()));
  return result;
}

extern "C" int posix_fadvise(int /*fd*/, off_t offset, off_t length, int /*advice*/) {
  if (plugin::bench::g_rate == nullptr) return 0;
  const Clock::time_point done = plugin::bench::g_rate->begin(static_cast<std::uint64_t>(length));
  const std::lock_guard lock(plugin::bench::g_mutex);
  plugin::bench::g_ahead.push_back({offset, offset + length, done});
  if (plugin::bench::g_ahead.size() > 64) plugin::bench::g_ahead.erase(plugin::bench::g_ahead.begin());
  return 0;
}
