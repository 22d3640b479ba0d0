// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a control command does to one GPU. Runs on the device's thread, between two of its rounds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vasicd/control/command.h"
#include "vasicd/control/vram_truth.h"
#include "vasicd/device.h"

namespace vasicd::control {

// A whole reply: `lines`, each with its end, then "ok".
std::string reply_ok(std::string lines = {});
// A whole reply: "error: WHY".
std::string reply_error(std::string_view why);

// State that the commands of one GPU keep from one to the next. Used on the device's thread only.
struct DeviceState {
  explicit DeviceState(TraceBuffer& trace_buffer) : trace(trace_buffer) {}
  TraceBuffer& trace;
  std::optional<VramTruth> truth;
};

// Executes a command and returns the whole reply. A command that is not about a GPU is refused.
std::string execute(Device& device, DeviceState& state, const Command& command);

}  // namespace vasicd::control
