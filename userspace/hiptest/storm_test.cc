// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Evicts and restores all queues of a process as fast as the driver can, while queues of all kinds work: waves and
// copies of a HIP program, and concurrently PM4, AQL and SDMA queues that the test makes. All results must be exact.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "hiptest/preemptor.h"
#include "hiptest/programs.h"
#include "kfdtest-criu/harness/gpu.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/workload.h"

namespace hiptest {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kStorm{60};
constexpr std::chrono::seconds kStepLimit{30};  // for one step of a queue that is evicted most of the time
constexpr unsigned kLeastPreemptions = 200;

// The progress of a thread, and its first error.
struct Worker {
  unsigned rounds = 0;
  base::Status status = {};
};

// Runs all workloads in turn until `end`, except those with SVM ranges, which libhsakmt registers by itself.
void run_workloads(const kfdtest::Gpu& gpu, steady_clock::time_point end, Worker& worker) {
  while (worker.status.ok() && steady_clock::now() < end) {
    for (const std::string& name : kfdtest::workload_names()) {
      const auto workload = kfdtest::make_workload(name);
      if (workload->uses_svm()) continue;
      workload->set_limit(kStepLimit);
      kfdtest::NoCheckpointer nobody;
      worker.status = kfdtest::run(*workload, gpu, nobody);
      if (!worker.status.ok()) return;
    }
    ++worker.rounds;
  }
}

TEST(Storm, all_kinds_of_queues_give_exact_results) {
  const auto program = make_program("transformer");
  ASSERT_TRUE(program->prepare().ok());
  auto expected = program->run();
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  auto session = kfdtest::Session::open(kfdtest::DriverKind::kThunk);
  ASSERT_TRUE(session.ok()) << session.error().message();

  auto preemptor = Preemptor::begin(1, Preemptor::Pace::kStorm);
  ASSERT_TRUE(preemptor.ok()) << preemptor.error().message();
  const auto end = steady_clock::now() + kStorm;
  Worker queues;
  unsigned layers = 0;
  {
    const std::jthread thread([&] { run_workloads(session->gpus().front(), end, queues); });
    while (steady_clock::now() < end) {
      auto result = program->run();
      ASSERT_TRUE(result.ok()) << result.error().message();
      ASSERT_EQ(std::memcmp(result->data(), expected->data(), expected->size() * sizeof(double)), 0)
          << "layer " << layers << ", preemption " << preemptor->count();
      ++layers;
    }
  }
  const auto ended = preemptor->end();
  EXPECT_TRUE(ended.ok()) << ended.error().message();
  EXPECT_TRUE(queues.status.ok()) << queues.status.error().message();
  EXPECT_GE(preemptor->count(), kLeastPreemptions);
  EXPECT_GT(queues.rounds, 0u);
  EXPECT_GT(layers, 0u);
  std::printf("%u preemptions, %u layers, %u rounds of all workloads\n", preemptor->count(), layers, queues.rounds);
}

}  // namespace
}  // namespace hiptest
