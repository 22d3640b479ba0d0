// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Command submission, on an SDMA and on a compute ring alike.
#include <xf86drm.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "drmtest/harness/buffer.h"
#include "drmtest/tests/submitter_fixture.h"

namespace drmtest {
namespace {

constexpr std::uint32_t kUntouched = 0xdeadbeef;

class CsTest : public SubmitterTest<RingTest> {
 protected:
  [[nodiscard]] Commands commands() const { return Commands(device(), ip()); }
  [[nodiscard]] static Job job(std::vector<amdgpu_bo_handle> bos) { return {.ip = ip(), .bos = std::move(bos)}; }
};

TEST_P(CsTest, nops_of_every_length_are_executed) {
  for (const std::size_t dwords : {1U, 2U, 3U, 8U, 255U, 1000U}) {
    Commands nops = commands();
    nops.nop(dwords);
    EXPECT_OK(submitter().run(job({}), nops)) << dwords << " dwords";
  }
}

TEST_P(CsTest, written_words_arrive_and_nothing_beside_them) {
  for (const BoSpec& spec : {gtt(2 * kPage), vram(2 * kPage)}) {
    ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), spec));
    for (const std::size_t count : {1U, 2U, 3U, 7U, 64U, 1000U}) {
      target.fill(kUntouched);
      std::vector<std::uint32_t> words(count);
      write_pattern(words, static_cast<std::uint32_t>(count));
      Commands write = commands();
      write.write(target.address(4), words);
      ASSERT_OK(submitter().run(job({target.handle()}), write));
      EXPECT_EQ(first_mismatch(target.words().subspan(1, count), static_cast<std::uint32_t>(count)), count);
      EXPECT_EQ(target.load(0), kUntouched);
      EXPECT_EQ(target.load(count + 1), kUntouched);
    }
  }
}

TEST_P(CsTest, a_fill_covers_its_bytes_and_no_more) {
  constexpr std::uint32_t kValue = 0x11223344;
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), vram(8 * kMiB)));
  for (const std::uint64_t size : {std::uint64_t{4}, std::uint64_t{60}, kPage, kPage + 4, kMiB, 5 * kMiB + 12}) {
    target.fill(kUntouched);
    Commands fill = commands();
    fill.fill(target.address(8), size, kValue);
    ASSERT_OK(submitter().run(job({target.handle()}), fill));
    EXPECT_EQ(target.load(1), kUntouched);
    const auto filled = target.words().subspan(2, size / 4);
    EXPECT_TRUE(std::all_of(filled.begin(), filled.end(), [](std::uint32_t word) { return word == kValue; })) << size;
    EXPECT_EQ(target.load(2 + size / 4), kUntouched) << size;
  }
}

TEST_P(CsTest, copies_of_every_size_and_direction_are_exact) {
  constexpr std::uint64_t kSize = 8 * kMiB;
  ASSERT_OK_AND_ASSIGN(const Buffer system, Buffer::create(device(), gtt(kSize)));
  ASSERT_OK_AND_ASSIGN(const Buffer local, Buffer::create(device(), vram(kSize)));
  ASSERT_OK_AND_ASSIGN(const Buffer back, Buffer::create(device(), gtt(kSize)));
  write_pattern(system.words(), 1);
  for (const std::uint64_t size :
       {std::uint64_t{4}, std::uint64_t{256}, kPage - 4, kPage, 3 * kPage, 4 * kMiB, kSize}) {
    local.fill(kUntouched);
    back.fill(kUntouched);
    Commands copy = commands();
    copy.copy(local.address(), system.address(), size).copy(back.address(), local.address(), size);
    ASSERT_OK(submitter().run(job({system.handle(), local.handle(), back.handle()}), copy));
    EXPECT_EQ(first_mismatch(local.words().first(size / 4), 1), size / 4) << "to VRAM, " << size;
    EXPECT_EQ(first_mismatch(back.words().first(size / 4), 1), size / 4) << "and back, " << size;
    if (size < kSize) {
      EXPECT_EQ(back.load(size / 4), kUntouched) << size;
    }
  }
}

TEST_P(CsTest, a_copy_may_begin_and_end_at_any_byte) {
  ASSERT_OK_AND_ASSIGN(const Buffer source, Buffer::create(device(), gtt(kPage)));
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kPage)));
  const auto bytes = [](const Buffer& buffer) { return std::as_writable_bytes(buffer.words()); };
  write_pattern(source.words(), 3);
  for (const std::size_t size : {1U, 3U, 5U, 129U}) {
    for (const std::size_t shift : {0U, 1U, 2U, 3U}) {
      target.fill(kUntouched);
      Commands copy = commands();
      copy.copy(target.address(64 + shift), source.address(32 + 3 * shift), size);
      ASSERT_OK(submitter().run(job({source.handle(), target.handle()}), copy));
      const auto want = bytes(source).subspan(32 + 3 * shift, size);
      const auto got = bytes(target).subspan(64 + shift, size);
      EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin())) << size << " bytes at " << shift;
      EXPECT_EQ(target.load(15), kUntouched);
      EXPECT_EQ(target.load((64 + shift + size + 3) / 4), kUntouched);
    }
  }
}

TEST_P(CsTest, memory_that_the_cpu_cannot_reach_is_memory_to_the_gpu) {
  constexpr std::uint64_t kSize = 2 * kMiB;
  ASSERT_OK_AND_ASSIGN(const Buffer hidden, Buffer::create(device(), {.size = kSize,
                                                                      .heap = AMDGPU_GEM_DOMAIN_VRAM,
                                                                      .flags = AMDGPU_GEM_CREATE_NO_CPU_ACCESS}));
  ASSERT_OK_AND_ASSIGN(const Buffer source, Buffer::create(device(), gtt(kSize)));
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kSize)));
  write_pattern(source.words(), 9);
  Commands copy = commands();
  copy.copy(hidden.address(), source.address(), kSize).copy(target.address(), hidden.address(), kSize);
  ASSERT_OK(submitter().run(job({hidden.handle(), source.handle(), target.handle()}), copy));
  EXPECT_EQ(first_mismatch(target.words(), 9), kSize / 4);
}

TEST_P(CsTest, the_ibs_of_a_job_run_in_their_order) {
  constexpr std::uint32_t kIbs = 4;  // less than the limit of every ring
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kPage)));
  std::vector<Commands> ibs;
  for (std::uint32_t i = 0; i < kIbs; ++i) {
    ibs.push_back(commands());
    // Each IB reads what the IB before it wrote.
    ibs.back().write(target.address(0), i + 1).copy(target.address(4 * (i + 1)), target.address(0), 4);
  }
  ASSERT_OK(submitter().run(job({target.handle()}), ibs));
  for (std::uint32_t i = 0; i < kIbs; ++i) EXPECT_EQ(target.load(i + 1), i + 1);
}

TEST_P(CsTest, jobs_of_a_context_run_in_their_order_around_the_ring) {
  constexpr std::uint32_t kJobs = 400;  // more than the ring holds
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kPage)));
  amdgpu_cs_fence last{};
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    Commands step = commands();
    step.copy(target.address(4), target.address(0), 4).write(target.address(0), i + 1);
    ASSERT_OK_AND_ASSIGN(last, submitter().submit(job({target.handle()}), step));
  }
  ASSERT_OK_AND_ASSIGN(const bool ended, wait(last));
  ASSERT_TRUE(ended);
  EXPECT_EQ(target.load(0), kJobs);
  EXPECT_EQ(target.load(1), kJobs - 1);
}

TEST_P(CsTest, a_job_waits_for_the_job_of_another_context_that_it_depends_on) {
  ASSERT_OK_AND_ASSIGN(const Context other, Context::create(device()));
  ASSERT_OK_AND_ASSIGN(Submitter other_submitter, Submitter::create(device(), other));
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kPage)));
  const unsigned last_ring = std::min(device().rings(ip()), 2U) - 1;
  Commands first = commands();
  first.wait_equal(target.address(0), 1).write(target.address(4), 5U);
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence dependency, submitter().submit(job({target.handle()}), first));
  Commands second = commands();
  second.copy(target.address(8), target.address(4), 4);
  Job dependent = job({target.handle()});
  dependent.ring = last_ring;
  dependent.dependencies = {dependency};
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence fence, other_submitter.submit(dependent, second));
  ASSERT_OK_AND_ASSIGN(const bool early, wait(fence, kQuietPeriod));
  EXPECT_FALSE(early) << "the second job ran before the first had ended";
  target.store(0, 1);
  ASSERT_OK_AND_ASSIGN(const bool ended, wait(fence));
  ASSERT_TRUE(ended);
  EXPECT_EQ(target.load(2), 5U);
}

TEST_P(CsTest, a_bo_that_is_always_valid_need_not_be_listed) {
  BoSpec spec = vram(kPage);
  spec.flags |= AMDGPU_GEM_CREATE_VM_ALWAYS_VALID;
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), spec));
  Commands write = commands();
  write.write(target.address(), 42U);
  ASSERT_OK(submitter().run(job({}), write));
  EXPECT_EQ(target.load(0), 42U);
}

TEST_P(CsTest, every_ring_of_the_kind_works) {
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), gtt(kPage)));
  for (unsigned ring = 0; ring < device().rings(ip()); ++ring) {
    Commands write = commands();
    write.write(target.address(4 * ring), ring + 1);
    Job here = job({target.handle()});
    here.ring = ring;
    ASSERT_OK(submitter().run(here, write)) << "ring " << ring;
    EXPECT_EQ(target.load(ring), ring + 1);
  }
}

TEST_P(CsTest, a_page_for_a_user_fence_gets_the_sequence_number) {
  ASSERT_OK_AND_ASSIGN(const Buffer page, Buffer::create(device(), gtt(kPage)));
  page.fill(0);
  Commands nop = commands();
  nop.nop();
  Job fenced = job({page.handle()});
  fenced.user_fence = page.handle();
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence fence, submitter().submit(fenced, nop));
  ASSERT_OK_AND_ASSIGN(const bool ended, wait(fence));
  ASSERT_TRUE(ended);
  EXPECT_EQ(page.load(0), static_cast<std::uint32_t>(fence.fence));
}

TEST_P(CsTest, submissions_that_make_no_sense_are_refused_and_the_ring_lives_on) {
  const auto code = [this](const Job& bad) {
    Commands nop = commands();
    nop.nop();
    const auto fence = submitter().submit(bad, nop);
    return fence.ok() ? 0 : fence.error().code();
  };
  EXPECT_EQ(code({.ip = 0xff}), EINVAL);
  EXPECT_EQ(code({.ip = AMDGPU_HW_IP_UVD}), EINVAL);
  EXPECT_EQ(code({.ip = ip(), .ring = 200}), EINVAL);
  EXPECT_EQ(code({.ip = ip(), .wait_for = {{.handle = 0x7fffffff}}}), ENOENT);
  EXPECT_EQ(code({.ip = ip(), .signal = {{.handle = 0x7fffffff}}}), EINVAL);
  std::vector<Commands> too_many(200, commands());
  EXPECT_FALSE(submitter().submit(job({}), too_many).ok());
  EXPECT_EQ(code(job({})), 0);
}

TEST_P(CsTest, chunks_that_make_no_sense_are_refused) {
  constexpr std::uint32_t kUnknownChunk = 0x55;
  std::uint64_t seq = 0;
  std::array<std::uint32_t, 16> data{};
  const auto submit = [&](std::uint32_t id, std::uint32_t dwords, const void* address) {
    drm_amdgpu_cs_chunk chunk{
        .chunk_id = id, .length_dw = dwords, .chunk_data = reinterpret_cast<std::uintptr_t>(address)};
    return amdgpu_cs_submit_raw2(device().handle(), context().handle(), 0, 1, &chunk, &seq);
  };
  EXPECT_EQ(submit(kUnknownChunk, data.size(), data.data()), -EINVAL);
  EXPECT_EQ(submit(AMDGPU_CHUNK_ID_IB, 1, data.data()), -EINVAL) << "too short";
  EXPECT_EQ(submit(AMDGPU_CHUNK_ID_IB, data.size(), nullptr), -EFAULT);
  EXPECT_EQ(submit(AMDGPU_CHUNK_ID_FENCE, data.size(), data.data()), -EINVAL) << "no such BO";
  EXPECT_EQ(submit(AMDGPU_CHUNK_ID_DEPENDENCIES, data.size(), data.data()), -EINVAL) << "no IB";
}

EVERY_RING(CsTest);

}  // namespace
}  // namespace drmtest
