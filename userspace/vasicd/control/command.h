// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The language of the control socket: one line in, a typed request out. Syntax only: execute.h finds out whether a GPU
// exists or a queue is mapped. The protocol as a whole is described in control/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "vasicd/context/controls.h"
#include "vasicd/context/trace.h"

namespace vasicd::control {

inline constexpr std::size_t kMaxLine = 1024;  // bytes, without its end
inline constexpr unsigned kMaxCount = 1'000'000;
inline constexpr unsigned kMaxSteps = 1024;

// Commands that are answered without a GPU.
struct Help {};
struct Version {};
struct Echo {
  std::string text;
};

// Commands about the trace of one GPU.
struct TraceRecord {
  enum class State : std::uint8_t { kOn, kOff } state = State::kOn;
};
struct TraceRead {
  TraceBuffer::Stamp stamp = TraceBuffer::Stamp::kNone;
};
struct TraceFollow {
  TraceBuffer::Stamp stamp = TraceBuffer::Stamp::kNone;
};

// Commands about one GPU.
struct Status {};
struct SetRunning {
  Running running = Running::kAll;
};
struct Step {
  unsigned packets = 1;
};
struct Hang {
  std::string name;
};
struct Cure {
  std::string name;
};
struct DropInterrupts {
  unsigned count = 1;
  std::optional<InterruptClass> kind;
};
struct HoldInterrupts {
  bool held = false;
};
struct FailUnmaps {
  unsigned count = 1;
};
struct VmFault {
  std::string name;
  std::optional<std::uint64_t> address;
};
struct LinkSpeed {
  std::uint64_t bytes_per_second = 0;  // 0: no limit
};
struct VramTruthCommand {
  enum class Verb : std::uint8_t { kStart, kRead, kDiff, kMore } verb = Verb::kStart;
  std::uint64_t page = 0;  // kMore: the first
};
struct Reset {};
// Removes the GPU, with or without an announcement to the guest.
struct Remove {
  enum class Way : std::uint8_t { kAnnounced, kSilent } way = Way::kAnnounced;
};

using Command =
    std::variant<Help, Version, Echo, Status, SetRunning, Step, Hang, Cure, DropInterrupts, HoldInterrupts, FailUnmaps,
                 VmFault, LinkSpeed, VramTruthCommand, Reset, Remove, TraceRecord, TraceRead, TraceFollow>;

struct Request {
  std::optional<unsigned> gpu;
  Command command;
};

// The error is one line that says what is allowed.
base::Result<Request> parse(std::string_view line);

// The answer to `help`: lines, each with its end.
std::string help_text();

[[nodiscard]] std::string_view name(InterruptClass kind);
[[nodiscard]] std::string_view name(Running running);

}  // namespace vasicd::control
