// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writing trace lines.
#include "vasicd/context/trace.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>

namespace vasicd {

base::Result<std::unique_ptr<TraceFile>> TraceFile::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return base::Error::from_errno(errno, path);
  return std::unique_ptr<TraceFile>(new TraceFile(file));
}

void TraceFile::line(std::string_view prefix, std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_.get(), "%.*s%.*s\n", static_cast<int>(prefix.size()), prefix.data(), static_cast<int>(text.size()),
               text.data());
  std::fflush(file_.get());
}

void TraceBuffer::push(std::string_view prefix, std::string_view text, std::uint64_t now_ns) {
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() == kMaxLines) {
      lines_.pop_front();
      ++first_;
    }
    lines_.push_back({now_ns, std::string(prefix).append(text)});
  }
  if (notify_.load(std::memory_order_relaxed) == kNobody) return;
  if (const int fd = notify_.exchange(kNobody); fd != kNobody) ::eventfd_write(fd, 1);
}

std::uint64_t TraceBuffer::next_number() const {
  const std::lock_guard lock(mutex_);
  return first_ + lines_.size();
}

void TraceBuffer::read(std::uint64_t& number, Stamp stamp, std::size_t limit, std::string& out) const {
  const std::lock_guard lock(mutex_);
  if (number < first_) {
    out += "dropped " + std::to_string(first_ - number) + "\n";
    number = first_;
  }
  for (; number < first_ + lines_.size() && out.size() < limit; ++number) {
    const Line& line = lines_[static_cast<std::size_t>(number - first_)];
    out += std::to_string(number) + " ";
    if (stamp == Stamp::kTime) {
      std::array<char, 40> text;
      std::snprintf(text.data(), text.size(), "t=%" PRIu64 ".%06" PRIu64 " ", line.ns / 1'000'000'000,
                    line.ns / 1000 % 1'000'000);
      out += text.data();
    }
    out += line.text + "\n";
  }
}

void GpuTrace::line(std::string_view text) {
  if (file_ != nullptr) file_->line(prefix_, text);
  if (buffer_.wanted()) buffer_.push(prefix_, text, clock_.now_ns());
}

void tracef(Trace& trace, const char* format, ...) {
  if (!trace.enabled()) return;
  std::array<char, 512> buffer;
  va_list args;
  va_start(args, format);
  const int written = std::vsnprintf(buffer.data(), buffer.size(), format, args);
  va_end(args);
  if (written < 0) return;
  trace.line({buffer.data(), std::min(static_cast<std::size_t>(written), buffer.size() - 1)});
}

}  // namespace vasicd
