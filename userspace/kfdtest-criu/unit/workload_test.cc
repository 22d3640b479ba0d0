// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// run() with a workload that only records its calls.
#include "kfdtest-criu/harness/workload.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace kfdtest {
namespace {

class Recorder : public Workload, public Checkpointer {
 public:
  explicit Recorder(std::string failing = {}) : failing_(std::move(failing)) {}
  [[nodiscard]] std::string_view name() const override { return "recorder"; }
  [[nodiscard]] unsigned stages() const override { return 2; }
  base::Status setup(const Gpu& /*gpu*/) override { return step("setup"); }
  base::Status advance(unsigned stage) override { return step("stage" + std::to_string(stage)); }
  base::Status verify() override { return step("verify"); }
  base::Status between_stages(const Workload& /*workload*/, unsigned next) override {
    return step("before" + std::to_string(next));
  }
  std::vector<std::string> steps;

 private:
  base::Status step(const std::string& what) {
    steps.push_back(what);
    if (what == failing_) return base::Error(EIO, "broken");
    return {};
  }
  std::string failing_;
};

TEST(RunTest, the_checkpointer_acts_before_every_stage_and_before_verify) {
  Recorder recorder;
  EXPECT_TRUE(run(recorder, Gpu{}, recorder).ok());
  EXPECT_EQ(recorder.steps,
            (std::vector<std::string>{"setup", "before0", "stage0", "before1", "stage1", "before2", "verify"}));
}

TEST(RunTest, the_first_failing_step_ends_the_run_and_is_named) {
  Recorder recorder("stage1");
  const base::Status status = run(recorder, Gpu{}, recorder);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "recorder, stage 1: broken");
  EXPECT_EQ(recorder.steps.back(), "stage1");
}

TEST(RunTest, a_failed_checkpoint_is_not_passed_over) {
  Recorder recorder("before1");
  const base::Status status = run(recorder, Gpu{}, recorder);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "recorder, checkpoint before stage 1: broken");
}

TEST(WorkloadTableTest, every_name_makes_the_workload_of_that_name) {
  EXPECT_FALSE(workload_names().empty());
  for (const std::string& name : workload_names()) {
    const auto workload = make_workload(name);
    ASSERT_NE(workload, nullptr);
    EXPECT_EQ(workload->name(), name);
    EXPECT_GE(workload->stages(), 2U);
  }
  EXPECT_EQ(make_workload("none_such"), nullptr);
}

}  // namespace
}  // namespace kfdtest
