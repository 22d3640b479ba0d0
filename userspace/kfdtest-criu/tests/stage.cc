// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "kfdtest-criu/tests/stage.h"

#include <algorithm>
#include <cerrno>
#include <string>

namespace kfdtest {

base::Result<Stage> Stage::open() {
  ASSIGN_OR_RETURN(Session session, Session::open());
  if (session.gpus().empty()) return base::Error(ENODEV, "no GPU");
  ASSIGN_OR_RETURN(GpuMemory words, GpuMemory::allocate(session.gpus().front(), MemoryKind::kGtt, kPageSize));
  std::fill(words.bytes().begin(), words.bytes().end(), std::byte{0});
  return Stage{std::move(session), std::move(words)};
}

base::Status expect_fault(const KfdEvent& event, const Gpu& gpu, std::uint64_t address) {
  ASSIGN_OR_RETURN(const WaitOutcome outcome, event.wait(kEventLimit));
  if (outcome != WaitOutcome::kSignaled) return base::Error(ETIME, "no memory exception");
  const MemoryFault& fault = event.fault();
  if (fault.address != address)
    return base::Error(EIO,
                       "memory exception at " + std::to_string(fault.address) + ", not at " + std::to_string(address));
  if (fault.gpu_id != gpu.gpu_id) return base::Error(EIO, "memory exception of GPU " + std::to_string(fault.gpu_id));
  return {};
}

}  // namespace kfdtest
