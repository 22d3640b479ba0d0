// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A line is "%x " with the event's number, then its own text.
#include "kfdtest-criu/harness/smi_events.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "kfdtest-criu/harness/kfd_driver.h"

namespace kfdtest {
namespace {

std::string prefix_of(SmiKind kind) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%x ", static_cast<unsigned>(kind));
  return text.data();
}

}  // namespace

base::Result<SmiEvents> SmiEvents::open(const Gpu& gpu, std::initializer_list<SmiKind> kinds) {
  return open(ioctls_of(gpu).client(), gpu.gpu_id, kinds);
}

base::Result<SmiEvents> SmiEvents::open(const kfd::Client& client, std::uint32_t gpu_id,
                                        std::initializer_list<SmiKind> kinds) {
  ASSIGN_OR_RETURN(base::UniqueFd file, client.smi_events(gpu_id));
  std::uint64_t mask = 0;
  for (const SmiKind kind : kinds) mask |= std::uint64_t{1} << (static_cast<unsigned>(kind) - 1);
  if (::write(file.get(), &mask, sizeof(mask)) != sizeof(mask)) return base::Error::from_errno(errno, "SMI event mask");
  return SmiEvents(std::move(file));
}

void SmiEvents::read_lines() {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(file_.get(), buffer.data(), buffer.size());
  if (got <= 0) return;  // EAGAIN: nothing yet
  partial_.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n')) {
    lines_.push_back(partial_.substr(0, end));
    partial_.erase(0, end + 1);
  }
}

base::Result<std::string> SmiEvents::wait_for(SmiKind kind, const std::string& text, Duration limit) {
  const std::string prefix = prefix_of(kind);
  std::string found;
  const auto is_there = [&] {
    read_lines();
    for (auto line = lines_.begin(); line != lines_.end(); ++line) {
      if (!line->starts_with(prefix) || line->find(text, prefix.size()) == std::string::npos) continue;
      found = *line;
      lines_.erase(line);
      return true;
    }
    return false;
  };
  if (wait_until(is_there, limit)) return found;
  std::string seen;
  for (const std::string& line : lines_) seen += " [" + line + "]";
  return base::Error(ETIME, "no SMI event " + prefix + text + "; seen:" + seen);
}

// "ns -pid gpu_id trigger"
base::Status SmiEvents::wait_for_eviction(EvictionTrigger trigger) {
  ASSIGN_OR_RETURN(const std::string line, wait_for(SmiKind::kQueueEviction));
  const std::string expected = " " + std::to_string(static_cast<unsigned>(trigger));
  if (line.ends_with(expected)) return {};
  return base::Error(EIO, "evicted for another reason than" + expected + ": " + line);
}

}  // namespace kfdtest
