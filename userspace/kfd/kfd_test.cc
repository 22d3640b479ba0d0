// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// RealKfd without a /dev/kfd: which of its operations ask the kernel.
#include "kfd/kfd.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace kfd {
namespace {

TEST(RealKfd, asks_the_kernel_nothing_to_confirm_a_pause) {
  RealKfd kfd;
  Pause pause;
  EXPECT_EQ(kfd.unpause(-1, pause).error().code(), EBADF);
  // A kernel may count a second PROCESS_INFO, which no UNPAUSE takes back.
  EXPECT_TRUE(kfd.confirm(-1, pause).ok());
}

}  // namespace
}  // namespace kfd
