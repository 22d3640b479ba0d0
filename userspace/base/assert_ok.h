// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GoogleTest's view of base::Result and base::Status, for test programs.
#pragma once

#include <gtest/gtest.h>

#include "base/result.h"

namespace base {

// Explains itself with the error's message.
template <typename T, typename E>
testing::AssertionResult is_ok(const Expected<T, E>& result) {
  if (result.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().message();
}

}  // namespace base

// That a Result or Status holds a value.
#define ASSERT_OK(expr) ASSERT_TRUE(base::is_ok(expr))
#define EXPECT_OK(expr) EXPECT_TRUE(base::is_ok(expr))
// ASSERT_OK_AND_ASSIGN(auto x, f()): declares x with f()'s value, or fails the test.
#define ASSERT_OK_AND_ASSIGN(decl, expr) ASSERT_OK_AND_ASSIGN_(BASE_CONCAT(assert_ok_result_, __LINE__), decl, expr)
#define ASSERT_OK_AND_ASSIGN_(tmp, decl, expr)    \
  auto tmp = (expr);                              \
  ASSERT_TRUE(tmp.ok()) << tmp.error().message(); \
  decl = std::move(tmp).value()
