// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests that need two GPUs; they skip on a machine with one.
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 1 * kMiB;
constexpr std::uint64_t kSeed = 0x2b;

class TwoGpusTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    if (test_gpus().size() < 2) GTEST_SKIP() << "needs two GPUs";
    for (const Gpu& gpu : {first(), second()})
      if (!gpu.vram_cpu_visible) GTEST_SKIP() << kSmallBar;
  }
  [[nodiscard]] static const Gpu& first() { return test_gpus()[0]; }
  [[nodiscard]] static const Gpu& second() { return test_gpus()[1]; }

  static base::Status copy_on(const Gpu& gpu, std::uint64_t destination, std::uint64_t source) {
    ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kSdma));
    ASSIGN_OR_RETURN(GpuMemory fence, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    fence.store32(0, 0);
    TRY(queue.submit(SdmaCommands(gpu).copy(destination, source, kSize).fence(fence.gpu_address(), 1).dwords()));
    return wait_for_word(fence, 0, 1);
  }
};

TEST_F(TwoGpusTest, both_reach_the_same_system_memory) {
  ASSERT_OK_AND_ASSIGN(GpuMemory shared, GpuMemory::allocate(first(), MemoryKind::kGtt, kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory vram1, GpuMemory::allocate(first(), MemoryKind::kVram, kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory vram2, GpuMemory::allocate(second(), MemoryKind::kVram, kSize));
  const Gpu* const both[] = {&first(), &second()};
  ASSERT_OK(shared.map_to(both));
  fill_pattern(vram1.bytes(), kSeed);
  ASSERT_OK(copy_on(first(), shared.gpu_address(), vram1.gpu_address()));
  ASSERT_OK(copy_on(second(), vram2.gpu_address(), shared.gpu_address()));
  EXPECT_EQ(find_mismatch(vram2.bytes(), kSeed), std::nullopt);
}

TEST_F(TwoGpusTest, one_copies_out_of_the_others_vram) {
  ASSERT_OK_AND_ASSIGN(GpuMemory vram1, GpuMemory::allocate(first(), MemoryKind::kVram, kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory vram2, GpuMemory::allocate(second(), MemoryKind::kVram, kSize));
  const Gpu* const both[] = {&first(), &second()};
  if (!vram1.map_to(both).ok()) GTEST_SKIP() << "the kernel grants no peer-to-peer access between these GPUs";
  fill_pattern(vram1.bytes(), kSeed);
  ASSERT_OK(copy_on(second(), vram2.gpu_address(), vram1.gpu_address()));
  EXPECT_EQ(find_mismatch(vram2.bytes(), kSeed), std::nullopt);
}

TEST_F(TwoGpusTest, one_reads_and_writes_the_others_vram_through_a_dmabuf) {
  ASSERT_OK_AND_ASSIGN(GpuMemory vram, GpuMemory::allocate(first(), MemoryKind::kVram, kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory target, GpuMemory::allocate(second(), MemoryKind::kGtt, kSize));
  fill_pattern(vram.bytes(), kSeed);
  ASSERT_OK_AND_ASSIGN(const base::UniqueFd dmabuf, ioctls_of(first()).client().export_dmabuf(vram.block().handle));
  ASSERT_OK_AND_ASSIGN(Block block, ioctls_of(second()).import_dmabuf(second(), dmabuf.get(), kSize));
  ASSERT_OK_AND_ASSIGN(const GpuMemory imported, GpuMemory::take(second(), block));
  EXPECT_NE(imported.gpu_address(), vram.gpu_address());
  ASSERT_OK(copy_on(second(), target.gpu_address(), imported.gpu_address()));
  EXPECT_EQ(find_mismatch(target.bytes(), kSeed), std::nullopt);
  fill_pattern(target.bytes(), kSeed + 1);
  ASSERT_OK(copy_on(second(), imported.gpu_address(), target.gpu_address()));
  EXPECT_EQ(find_mismatch(vram.bytes(), kSeed + 1), std::nullopt);
}

TEST_F(TwoGpusTest, queues_of_one_do_not_wait_for_the_others) {
  ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(first(), MemoryKind::kGtt, kPageSize));
  words.store64(0, 0);
  words.store64(64, 0);
  const Gpu* const both[] = {&first(), &second()};
  ASSERT_OK(words.map_to(both));
  ASSERT_OK_AND_ASSIGN(RingQueue waiting, RingQueue::create(first(), QueueKind::kPm4));
  ASSERT_OK_AND_ASSIGN(RingQueue running, RingQueue::create(second(), QueueKind::kPm4));
  ASSERT_OK(
      waiting.submit(Pm4Commands(gpu()).wait_equal(words.gpu_address(64), 1).fence(words.gpu_address(0), 1).dwords()));
  EXPECT_TRUE(stays([&] { return words.load32(0) == 0; }));
  ASSERT_OK(running.submit(Pm4Commands(gpu()).fence(words.gpu_address(64), 1).dwords()));
  EXPECT_OK(wait_for_word(words, 0, 1));  // the second GPU opened the first one's gate
}

}  // namespace
}  // namespace kfdtest
