// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Contexts, and what they say after a hang. The tests named HangTest hang a ring until the driver's time limit for jobs
// is over, so they want a small one (amdgpu.lockup_timeout), and they reset the GPU under everyone else.
#include <cerrno>

#include "drmtest/tests/recovery.h"

namespace drmtest {
namespace {

class ContextTest : public GpuTest {};

TEST_P(ContextTest, every_priority_works) {
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kPage)));
  std::uint32_t value = 0;
  for (const std::int32_t priority : {AMDGPU_CTX_PRIORITY_VERY_LOW, AMDGPU_CTX_PRIORITY_LOW, AMDGPU_CTX_PRIORITY_NORMAL,
                                      AMDGPU_CTX_PRIORITY_HIGH, AMDGPU_CTX_PRIORITY_VERY_HIGH}) {
    ASSERT_OK_AND_ASSIGN(const Context context, Context::create(device(), priority));
    ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), context));
    for (const unsigned ip : {AMDGPU_HW_IP_DMA, AMDGPU_HW_IP_COMPUTE}) {
      if (device().rings(ip) == 0) continue;  // InfoTest reports it
      Commands write(device(), ip);
      write.write(target.address(), ++value);
      ASSERT_OK(submitter.run({.ip = ip, .bos = {target.handle()}}, write)) << "priority " << priority;
      EXPECT_EQ(target.load(0), value);
    }
  }
}

TEST_P(ContextTest, a_priority_that_does_not_exist_is_that_of_old_clients) {
  constexpr std::int32_t kNoPriority = 12345;
  // Clients older than priorities leave padding here, so the kernel takes an unknown value as normal.
  EXPECT_OK(Context::create(device(), kNoPriority));
}

TEST_P(ContextTest, a_new_context_has_seen_no_reset) {
  ASSERT_OK_AND_ASSIGN(const Context context, Context::create(device()));
  std::uint32_t state = 99;
  std::uint32_t hangs = 99;
  ASSERT_EQ(amdgpu_cs_query_reset_state(context.handle(), &state, &hangs), 0);
  EXPECT_EQ(state, static_cast<std::uint32_t>(AMDGPU_CTX_NO_RESET));
  EXPECT_EQ(hangs, 0U);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t flags, context.reset_flags());
  EXPECT_EQ(flags, 0U);
}

TEST_P(ContextTest, hundreds_of_contexts_work_side_by_side) {
  constexpr std::uint32_t kContexts = 200;
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kPage)));
  std::vector<Context> contexts;
  std::vector<Submitter> submitters;
  std::vector<amdgpu_cs_fence> fences;
  contexts.reserve(kContexts);
  for (std::uint32_t i = 0; i < kContexts; ++i) {
    ASSERT_OK_AND_ASSIGN(Context context, Context::create(device()));
    contexts.push_back(std::move(context));
    ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), contexts.back(), kPage));
    submitters.push_back(std::move(submitter));
    Commands write(device(), AMDGPU_HW_IP_DMA);
    write.write(target.address(4 * i), i + 1);
    ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence fence, submitters.back().submit({.bos = {target.handle()}}, write));
    fences.push_back(fence);
  }
  for (std::uint32_t i = 0; i < kContexts; ++i) {
    ASSERT_OK_AND_ASSIGN(const bool ended, wait(fences[i]));
    ASSERT_TRUE(ended);
    EXPECT_EQ(target.load(i), i + 1);
  }
}

TEST_P(ContextTest, a_context_may_go_while_its_job_runs) {
  ASSERT_OK_AND_ASSIGN(const Buffer page, Buffer::create(device(), gtt(kPage)));
  ASSERT_OK_AND_ASSIGN(const Context other, Context::create(device()));
  ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), other));
  {
    ASSERT_OK_AND_ASSIGN(const Context context, Context::create(device()));
    ASSERT_OK_AND_ASSIGN(Submitter gated, Submitter::create(device(), context));
    Commands commands(device(), AMDGPU_HW_IP_DMA);
    commands.wait_equal(page.address(), 1).write(page.address(4), 2U);
    ASSERT_OK(gated.submit({.bos = {page.handle()}}, commands));
    page.store(0, 1);
  }
  Commands nop(device(), AMDGPU_HW_IP_DMA);
  ASSERT_OK(submitter.run({}, nop.nop()));
}

class HangTest : public RecoveryTest {
 protected:
  // Submits a job that never ends and waits until the driver has ended it.
  void hang(const Context& context, unsigned ip) {
    ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), context));
    Commands commands(device(), ip);
    commands.wait_equal(page().address(), 1);
    ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence fence, submitter.submit({.ip = ip, .bos = {page().handle()}}, commands));
    expect_ended_by_reset(context, fence);
  }
};

TEST_P(HangTest, a_hung_ring_is_reset_and_a_new_context_works) {
  for (const unsigned ip : engines()) {
    ASSERT_OK_AND_ASSIGN(const Context guilty, Context::create(device()));
    ASSERT_NO_FATAL_FAILURE(hang(guilty, ip)) << "ip " << ip;
    for (const unsigned other : engines()) {
      ASSERT_OK_AND_ASSIGN(const Context after, Context::create(device()));
      ASSERT_NO_FATAL_FAILURE(expect_work(after, other, 100 * ip + other)) << "ip " << other;
      ASSERT_OK_AND_ASSIGN(const std::uint64_t flags, after.reset_flags());
      EXPECT_EQ(flags, 0U) << "a context made after the reset has not seen it";
    }
  }
}

TEST_P(HangTest, the_context_that_hung_is_refused_and_the_other_one_works_on) {
  ASSERT_OK_AND_ASSIGN(const Context innocent, Context::create(device()));
  ASSERT_OK_AND_ASSIGN(const Context guilty, Context::create(device()));
  ASSERT_NO_FATAL_FAILURE(expect_work(innocent, AMDGPU_HW_IP_DMA, 1));
  ASSERT_NO_FATAL_FAILURE(hang(guilty, AMDGPU_HW_IP_DMA));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t flags, innocent.reset_flags());
  EXPECT_NE(flags & AMDGPU_CTX_QUERY2_FLAGS_RESET, 0U);
  EXPECT_EQ(flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY, 0U);
  ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), guilty));
  Commands nop(device(), AMDGPU_HW_IP_DMA);
  const auto refused = submitter.submit({}, nop.nop());
  ASSERT_FALSE(refused.ok());
  // ECANCELED after a reset of the GPU; ETIME, the job's own error, after a reset of the ring alone.
  EXPECT_TRUE(refused.error().code() == ECANCELED || refused.error().code() == ETIME) << refused.error().message();
  if ((flags & AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST) == 0) {
    expect_work(innocent, AMDGPU_HW_IP_DMA, 2);
  }
}

EVERY_GPU(ContextTest);
EVERY_GPU(HangTest);

}  // namespace
}  // namespace drmtest
