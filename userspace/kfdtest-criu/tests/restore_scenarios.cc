// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A chain of processes, each restoring what the one before it left.
#include "kfdtest-criu/tests/restore_scenarios.h"

#include <cerrno>

#include "kfdtest-criu/harness/session.h"

namespace kfdtest {
namespace {

constexpr GpuOrder kOrders[] = {GpuOrder::kSame, GpuOrder::kRotated};

constexpr CriuAbi kAbis[] = {CriuAbi::kReleased, CriuAbi::kExtensible};

base::Status run_in_chain(std::string_view name, GpuOrder order, CriuAbi abi) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  if (session.gpus().empty()) return base::Error(ENODEV, "no GPU");
  const auto workload = make_workload(name);
  SuccessorCheckpointer checkpointer(session, order, abi);
  return run(*workload, session.gpus().front(), checkpointer);
}

}  // namespace

std::string restore_scenario(std::string_view workload, GpuOrder order, CriuAbi abi) {
  return "restore/" + std::string(workload) + (order == GpuOrder::kSame ? "/same" : "/rotated") +
         (abi == CriuAbi::kReleased ? "/released" : "/extensible");
}

base::Status run_restored(std::string_view workload, GpuOrder order, CriuAbi abi) {
  return run_with_successors([&] { return run_in_chain(workload, order, abi); });
}

std::optional<base::Status> run_restore_scenario(std::string_view name) {
  for (const std::string& workload : workload_names())
    for (const GpuOrder order : kOrders)
      for (const CriuAbi abi : kAbis)
        if (name == restore_scenario(workload, order, abi)) return run_restored(workload, order, abi);
  return std::nullopt;
}

}  // namespace kfdtest
