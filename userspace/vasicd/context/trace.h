// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The event trace: one stable line per event, for people and for tests to read; its grammar is in README.md. One
// TraceFile is shared by all GPUs; each has its own GpuTrace, with a buffer for the control socket to read from.
// While the trace has no reader it costs two loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "vasicd/context/context.h"

namespace vasicd {

// Appends whole lines to a file; thread safe. Lines are flushed as they come, so that a killed run has them.
class TraceFile {
 public:
  // Truncates `path`.
  static base::Result<std::unique_ptr<TraceFile>> create(const std::string& path);
  void line(std::string_view prefix, std::string_view text);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit TraceFile(std::FILE* file) : file_(file) {}

  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> file_;
};

// The last lines, for readers on other threads. Writers never wait for readers; a reader that was too slow finds out
// how many lines it has missed.
class TraceBuffer {
 public:
  static constexpr std::size_t kMaxLines = 4096;
  enum class Stamp : std::uint8_t { kNone, kTime };

  // Lines are kept while at least one reader is there.
  void add_reader() { readers_.fetch_add(1, std::memory_order_relaxed); }
  void remove_reader() { readers_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool wanted() const { return readers_.load(std::memory_order_relaxed) > 0; }

  void push(std::string_view prefix, std::string_view text, std::uint64_t now_ns);
  // The number of the next line. The first line is 1.
  [[nodiscard]] std::uint64_t next_number() const;
  // Appends lines from `number` on, each as "NUMBER [t=SECONDS] LINE\n", until `out` has at least `limit` bytes, and
  // moves `number` behind them. Lines that are gone are one line: "dropped COUNT".
  void read(std::uint64_t& number, Stamp stamp, std::size_t limit, std::string& out) const;
  // The eventfd is written to once, when the next line comes.
  void notify_once(int eventfd) { notify_.store(eventfd, std::memory_order_release); }

 private:
  static constexpr int kNobody = -1;
  struct Line {
    std::uint64_t ns;
    std::string text;
  };

  std::atomic<int> readers_ = 0;
  std::atomic<int> notify_ = kNobody;
  mutable std::mutex mutex_;
  std::deque<Line> lines_;   // guarded by mutex_
  std::uint64_t first_ = 1;  // number of lines_.front(); guarded by mutex_
};

class GpuTrace final : public Trace {
 public:
  // `file` may be null: there is only the buffer. Both outlive this object.
  GpuTrace(TraceFile* file, unsigned gpu, const Clock& clock)
      : file_(file), clock_(clock), prefix_("gpu" + std::to_string(gpu) + " ") {}

  [[nodiscard]] bool enabled() const override { return file_ != nullptr || buffer_.wanted(); }
  void line(std::string_view text) override;
  [[nodiscard]] TraceBuffer& buffer() { return buffer_; }

 private:
  TraceFile* file_;
  const Clock& clock_;
  std::string prefix_;
  TraceBuffer buffer_;
};

// Formats only if `trace` is enabled. Lines are cut at 512 bytes.
[[gnu::format(printf, 2, 3)]] void tracef(Trace& trace, const char* format, ...);

}  // namespace vasicd
