// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every kind of queue that KFD offers: it runs, its events arrive, and after each kind of eviction it continues exactly
// where it stopped. One test a cell; a cell that does not exist on a chip says why.
#include <algorithm>

#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/tests/evictors.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr QueueKind kKinds[] = {QueueKind::kPm4, QueueKind::kAql, QueueKind::kSdma, QueueKind::kSdmaXgmi,
                                QueueKind::kSdmaByEngine};
constexpr std::chrono::seconds kLong{20};
constexpr std::chrono::milliseconds kShort{20};

class MatrixTest : public GpuTest {
 protected:
  // Why the chip has no queue of this kind; empty if it has.
  static std::string not_applicable(QueueKind kind) {
    if (kind == QueueKind::kSdmaXgmi && gpu().sdma_xgmi_engines == 0) return "no SDMA engine of this chip is for XGMI";
    // amdkfd's scheduling without firmware, which gfx7 has, places queues by itself.
    if (kind == QueueKind::kSdmaByEngine && gpu().generation.gfx_level < 8) return "no firmware schedules this chip";
    return {};
  }
};

class QueueKindTest : public MatrixTest, public testing::WithParamInterface<QueueKind> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    if (const std::string why = not_applicable(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(QueueKindTest, runs_each_step_once_and_in_order) {
  ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), GetParam()));
  ASSERT_OK(queue.submit(12));
  EXPECT_OK(queue.expect_done(0));
  for (unsigned opened = 1; opened <= 4; ++opened) {
    queue.open(opened);
    ASSERT_OK(queue.wait_done(opened));
  }
  EXPECT_OK(queue.expect_done(4));
  queue.open(12);
  EXPECT_OK(queue.expect_done(12));
  ASSERT_OK(queue.submit(100));
  queue.open(112);
  EXPECT_OK(queue.expect_done(112));
}

TEST_P(QueueKindTest, its_interrupt_reaches_the_waiter_and_not_before_its_time) {
  ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), GetParam()));
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  for (unsigned round = 1; round <= 5; ++round) {
    ASSERT_OK(queue.submit_signal(event));
    ASSERT_OK_AND_ASSIGN(const WaitOutcome early, event.wait(kShort));
    ASSERT_EQ(early, WaitOutcome::kTimeout);
    queue.open(round);
    ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, event.wait(kLong));
    ASSERT_EQ(outcome, WaitOutcome::kSignaled) << "round " << round;
  }
}

std::string kind_name(const testing::TestParamInfo<QueueKind>& info) { return std::string(name_of(info.param)); }
INSTANTIATE_TEST_SUITE_P(kinds, QueueKindTest, testing::ValuesIn(kKinds), kind_name);

TEST_F(MatrixTest, each_sdma_engine_can_be_asked_for_by_its_id) {
  if (const std::string why = not_applicable(QueueKind::kSdmaByEngine); !why.empty()) GTEST_SKIP() << why;
  const auto engines = static_cast<std::uint32_t>(gpu().sdma_engines + gpu().sdma_xgmi_engines);
  for (std::uint32_t engine = 0; engine < engines; ++engine) {
    ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), QueueKind::kSdmaByEngine, {.sdma_engine = engine}));
    ASSERT_OK(queue.submit(3));
    queue.open(3);
    EXPECT_OK(queue.wait_done(3));
  }
  EXPECT_FALSE(StepQueue::create(gpu(), QueueKind::kSdmaByEngine, {.sdma_engine = engines}).ok());
}

class EvictionTest : public MatrixTest, public testing::WithParamInterface<std::tuple<QueueKind, std::string>> {
 protected:
  static QueueKind kind() { return std::get<0>(GetParam()); }
  static const std::string& reason() { return std::get<1>(GetParam()); }
};

TEST_P(EvictionTest, goes_on_exactly_where_it_stopped) {
  const auto evictor = make_evictor(reason());
  std::string why = not_applicable(kind());
  if (why.empty()) why = evictor->not_applicable(gpu(), kind());
  if (!why.empty()) GTEST_SKIP() << why;

  ASSERT_OK(evictor->prepare(gpu()));
  ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), kind()));
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  ASSERT_OK(queue.submit(9));
  ASSERT_OK(queue.submit_signal(event));
  queue.open(3);
  ASSERT_OK(queue.wait_done(3));
  ASSERT_OK(evictor->evict(queue));
  queue.open(6);
  if (evictor->holds()) {
    EXPECT_OK(queue.expect_done(3));
    ASSERT_OK(queue.submit(2));  // behind the signal; the doorbell is rung while the queue is off the hardware
  }
  ASSERT_OK(evictor->resume(queue));
  EXPECT_OK(queue.expect_done(6));
  queue.open(evictor->holds() ? 12 : 10);
  EXPECT_OK(queue.expect_done(evictor->holds() ? 12 : 10));
  ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, event.wait(kLong));
  EXPECT_EQ(outcome, WaitOutcome::kSignaled);
  EXPECT_OK(evictor->verify());
}

std::string cell_name(const testing::TestParamInfo<std::tuple<QueueKind, std::string>>& info) {
  return std::string(name_of(std::get<0>(info.param))) + "_by_" + std::get<1>(info.param);
}
INSTANTIATE_TEST_SUITE_P(matrix, EvictionTest,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(evictor_names())), cell_name);

}  // namespace
}  // namespace kfdtest
