// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "drmtest/tests/recovery.h"

#include <thread>

namespace drmtest {
namespace {

constexpr std::uint64_t kResetInProgress = 1U << 5;  // AMDGPU_CTX_QUERY2_FLAGS_RESET_IN_PROGRESS

}  // namespace

void RecoveryTest::SetUp() {
  ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
  ASSERT_OK_AND_ASSIGN(Buffer page, Buffer::create(device(), gtt(kPage)));
  page_.emplace(std::move(page));
}

void RecoveryTest::expect_ended_by_reset(const Context& context, amdgpu_cs_fence fence) const {
  // After a reset the fence has an error, which some functions that wait return.
  const auto ended = wait(fence, kHangLimit);
  EXPECT_TRUE(!ended.ok() || *ended) << "the job was not ended";
  wait_for_reset(context);
}

void RecoveryTest::wait_for_reset(const Context& context) const {
  const std::int64_t end = from_now(kHangLimit);
  while (from_now(Nanoseconds(0)) < end) {
    ASSERT_OK_AND_ASSIGN(const std::uint64_t flags, context.reset_flags());
    if ((flags & AMDGPU_CTX_QUERY2_FLAGS_RESET) != 0 && (flags & kResetInProgress) == 0) return;
    std::this_thread::yield();
  }
  FAIL() << "no reset";
}

void RecoveryTest::expect_work(const Context& context, unsigned ip, std::uint32_t value) const {
  ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), context));
  Commands write(device(), ip);
  write.write(page().address(8), value);
  ASSERT_OK(submitter.run({.ip = ip, .bos = {page().handle()}}, write));
  EXPECT_EQ(page().load(2), value);
}

std::vector<unsigned> RecoveryTest::engines() const {
  std::vector<unsigned> found = {AMDGPU_HW_IP_DMA};
  if (device().rings(AMDGPU_HW_IP_COMPUTE) != 0) found.push_back(AMDGPU_HW_IP_COMPUTE);
  return found;
}

}  // namespace drmtest
