// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// drmtest: runs in the guest, or on any machine with an AMD GPU. Zero tests are a failure, and so is a splat of the
// kernel during a test.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "drmtest/tests/scenarios.h"
#include "kfdtest-criu/env/kernel_log.h"

namespace {

class SplatListener : public testing::EmptyTestEventListener {
 public:
  void OnTestProgramStart(const testing::UnitTest& /*unit_test*/) override {
    auto opened = kfdtest::KernelLog::open();
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    log_.emplace(std::move(opened).value());
  }
  void OnTestEnd(const testing::TestInfo& /*info*/) override {
    if (!log_.has_value()) return;
    for (const std::string& line : log_->new_lines())
      if (kfdtest::is_splat(line)) ADD_FAILURE() << "kernel log: " << line;
  }

 private:
  std::optional<kfdtest::KernelLog> log_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--scenario") return drmtest::run_scenario({argv + 2, argv + argc});
  testing::InitGoogleTest(&argc, argv);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  listeners.Append(new SplatListener);
  // Behind the splat listener, so that a result is printed with the splats in it.
  listeners.Append(listeners.Release(listeners.default_result_printer()));
  const int status = RUN_ALL_TESTS();
  if (testing::GTEST_FLAG(list_tests)) return status;
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0) return status;
  std::fprintf(stderr, "drmtest: no test was selected, or there is no AMD GPU\n");
  return EXIT_FAILURE;
}
