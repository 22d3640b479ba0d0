// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The environment and the listener of test_listener.h.
#include "kfdtest-criu/tests/test_listener.h"

#include <memory>
#include <optional>

#include "kfdtest-criu/env/kernel_log.h"
#include "kfdtest-criu/harness/session.h"

namespace kfdtest {
namespace {

class KfdEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    auto opened = Session::open();
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    session_.emplace(std::move(opened).value());
  }
  void TearDown() override { session_.reset(); }

  [[nodiscard]] const std::vector<Gpu>& gpus() const {
    static const std::vector<Gpu> none;
    return session_.has_value() ? session_->gpus() : none;
  }

 private:
  std::optional<Session> session_;
};

// GoogleTest owns the environment; this only remembers where it is.
KfdEnvironment*& environment() {
  static KfdEnvironment* instance = nullptr;
  return instance;
}

class SplatListener : public testing::EmptyTestEventListener {
 public:
  void OnTestProgramStart(const testing::UnitTest& /*unit_test*/) override {
    auto opened = KernelLog::open();
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    log_.emplace(std::move(opened).value());
  }
  // Splats that appeared since the previous test ended count, too.
  void OnTestEnd(const testing::TestInfo& /*info*/) override {
    if (!log_.has_value()) return;
    for (const std::string& line : log_->new_lines())
      if (is_splat(line)) ADD_FAILURE() << "kernel log: " << line;
  }

 private:
  std::optional<KernelLog> log_;
};

}  // namespace

void install_environment() {
  environment() = new KfdEnvironment;  // GoogleTest deletes it
  testing::AddGlobalTestEnvironment(environment());
  // GoogleTest calls OnTestEnd in reverse order: its printer, added before, prints the result with the splats in it.
  testing::UnitTest::GetInstance()->listeners().Append(new SplatListener);
}

const std::vector<Gpu>& test_gpus() { return environment()->gpus(); }

}  // namespace kfdtest
