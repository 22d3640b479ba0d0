// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What every scenario begins with: a connection to KFD and a page of words that CPU and GPU share; and what many end
// with. A scenario runs on the first GPU.
#pragma once

#include <chrono>

#include "base/result.h"
#include "kfdtest-criu/harness/event.h"
#include "kfdtest-criu/harness/gpu.h"
#include "kfdtest-criu/harness/memory.h"
#include "kfdtest-criu/harness/session.h"

namespace kfdtest {

inline constexpr std::chrono::seconds kEventLimit{20};

struct Stage {
  Session session;
  GpuMemory words;  // a page of zeros

  static base::Result<Stage> open();
  [[nodiscard]] const Gpu& gpu() const { return session.gpus().front(); }
};

// Waits for a memory exception of this GPU at this address. `event` has EventKind::kMemory.
base::Status expect_fault(const KfdEvent& event, const Gpu& gpu, std::uint64_t address);

}  // namespace kfdtest
