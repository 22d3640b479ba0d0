// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// kfdtest: the suite that runs in the guest. Zero tests run is a failure, so that a mistyped filter is not a pass.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "kfdtest-criu/tests/scenarios.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace {

int scenario_main(std::string_view name) {
  const base::Status status = kfdtest::run_scenario(name);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "scenario %.*s: %s\n", static_cast<int>(name.size()), name.data(),
               status.error().message().c_str());
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--scenario") return scenario_main(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  kfdtest::install_environment();
  const int status = RUN_ALL_TESTS();
  if (testing::GTEST_FLAG(list_tests)) return status;
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0) return status;
  std::fprintf(stderr, "kfdtest: no test was selected\n");
  return EXIT_FAILURE;
}
