// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A fixture of suites that submit jobs: GpuTest or RingTest with a context and a submitter.
#pragma once

#include <optional>

#include "drmtest/env/gpu_test.h"
#include "drmtest/harness/submit.h"

namespace drmtest {

template <class Base>
class SubmitterTest : public Base {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Base::SetUp());
    ASSERT_OK_AND_ASSIGN(Context context, Context::create(this->device()));
    context_.emplace(std::move(context));
    ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(this->device(), *context_));
    submitter_.emplace(std::move(submitter));
  }
  void TearDown() override {
    submitter_.reset();
    context_.reset();
  }
  Submitter& submitter() { return *submitter_; }
  [[nodiscard]] const Context& context() const { return *context_; }

 private:
  std::optional<Context> context_;
  std::optional<Submitter> submitter_;
};

}  // namespace drmtest
