// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory of each kind: reachable by CPU and SDMA, the same bytes from both sides, gone when freed.
#include <algorithm>
#include <vector>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 256 * kKiB;
constexpr std::uint64_t kSeed = 0xb0;

class BoTest : public GpuTest, public testing::WithParamInterface<MemoryKind> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (HasFatalFailure()) return;
    if (GetParam() == MemoryKind::kVram && !gpu().vram_cpu_visible) GTEST_SKIP() << kSmallBar;
  }
};

// The fixture has an SDMA queue, and a word for its fences.
struct Copier {
  RingQueue queue;
  GpuMemory fence;

  static base::Result<Copier> create(const Gpu& gpu) {
    ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kSdma));
    ASSIGN_OR_RETURN(GpuMemory fence, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    fence.store32(0, 0);
    return Copier{std::move(queue), std::move(fence)};
  }
  base::Status run(SdmaCommands commands) {
    fence.store32(0, 0);
    commands.fence(fence.gpu_address(), 1);
    TRY(queue.submit(commands.dwords()));
    return wait_for_word(fence, 0, 1);
  }
};

TEST_P(BoTest, sdma_reads_what_the_cpu_wrote) {
  ASSERT_OK_AND_ASSIGN(GpuMemory source, GpuMemory::allocate(gpu(), GetParam(), kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory target, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kSize));
  ASSERT_OK_AND_ASSIGN(Copier copier, Copier::create(gpu()));
  fill_pattern(source.bytes(), kSeed);
  ASSERT_OK(copier.run(SdmaCommands(gpu()).copy(target.gpu_address(), source.gpu_address(), kSize)));
  EXPECT_EQ(find_mismatch(target.bytes(), kSeed), std::nullopt);
}

TEST_P(BoTest, the_cpu_reads_what_sdma_wrote) {
  ASSERT_OK_AND_ASSIGN(GpuMemory source, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory target, GpuMemory::allocate(gpu(), GetParam(), kSize));
  ASSERT_OK_AND_ASSIGN(Copier copier, Copier::create(gpu()));
  fill_pattern(source.bytes(), kSeed);
  ASSERT_OK(copier.run(SdmaCommands(gpu()).copy(target.gpu_address(), source.gpu_address(), kSize)));
  EXPECT_EQ(find_mismatch(target.bytes(), kSeed), std::nullopt);
}

TEST_P(BoTest, a_fill_ends_where_it_should) {
  constexpr std::uint32_t kWord = 0x5eed5eed;
  ASSERT_OK_AND_ASSIGN(GpuMemory target, GpuMemory::allocate(gpu(), GetParam(), kSize));
  ASSERT_OK_AND_ASSIGN(Copier copier, Copier::create(gpu()));
  fill_pattern(target.bytes(), kSeed);
  ASSERT_OK(copier.run(SdmaCommands(gpu()).fill(target.gpu_address(kPageSize), kPageSize, kWord)));
  EXPECT_EQ(find_mismatch(target.bytes().first(kPageSize), kSeed), std::nullopt);
  EXPECT_EQ(find_other_word(target.bytes().subspan(kPageSize, kPageSize), kWord), std::nullopt);
  EXPECT_EQ(find_mismatch(target.bytes().subspan(2 * kPageSize), kSeed, 2 * kPageSize), std::nullopt);
}

TEST_P(BoTest, memory_comes_and_goes_many_times) {
  for (unsigned round = 0; round < 32; ++round) {
    ASSERT_OK_AND_ASSIGN(GpuMemory memory, GpuMemory::allocate(gpu(), GetParam(), kSize));
    memory.store32(0, round);
    ASSERT_EQ(memory.load32(0), round);
  }
}

TEST_P(BoTest, neighbouring_buffers_do_not_overlap) {
  std::vector<GpuMemory> buffers;
  for (std::uint64_t i = 0; i < 16; ++i) {
    ASSERT_OK_AND_ASSIGN(GpuMemory memory, GpuMemory::allocate(gpu(), GetParam(), 2 * kPageSize));
    fill_pattern(memory.bytes(), kSeed + i);
    buffers.push_back(std::move(memory));
  }
  for (std::uint64_t i = 0; i < buffers.size(); ++i)
    EXPECT_EQ(find_mismatch(buffers[i].bytes(), kSeed + i), std::nullopt) << "buffer " << i;
}

TEST_P(BoTest, memory_is_mapped_again_after_an_unmap) {
  ASSERT_OK_AND_ASSIGN(GpuMemory source, GpuMemory::allocate(gpu(), GetParam(), kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory target, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kSize));
  ASSERT_OK_AND_ASSIGN(Copier copier, Copier::create(gpu()));
  fill_pattern(source.bytes(), kSeed);
  ASSERT_OK(source.unmap());
  ASSERT_OK(source.remap(gpu()));
  ASSERT_OK(copier.run(SdmaCommands(gpu()).copy(target.gpu_address(), source.gpu_address(), kSize)));
  EXPECT_EQ(find_mismatch(target.bytes(), kSeed), std::nullopt);
}

// Negative control: the pattern check must find a copy that did not happen and one that is a byte off.
TEST_P(BoTest, a_wrong_copy_is_found) {
  ASSERT_OK_AND_ASSIGN(GpuMemory source, GpuMemory::allocate(gpu(), GetParam(), kSize));
  ASSERT_OK_AND_ASSIGN(GpuMemory target, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kSize));
  ASSERT_OK_AND_ASSIGN(Copier copier, Copier::create(gpu()));
  fill_pattern(source.bytes(), kSeed);
  std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0});
  EXPECT_EQ(find_mismatch(target.bytes(), kSeed), 0U);
  ASSERT_OK(copier.run(SdmaCommands(gpu()).copy(target.gpu_address(), source.gpu_address(1), kSize - 1)));
  EXPECT_EQ(find_mismatch(target.bytes(), kSeed), 0U);
}

std::string kind_name(const testing::TestParamInfo<MemoryKind>& info) { return std::string(name_of(info.param)); }
INSTANTIATE_TEST_SUITE_P(kinds, BoTest, testing::ValuesIn(kAllMemoryKinds), kind_name);

class VramTest : public GpuTest {};

TEST_F(VramTest, an_allocation_larger_than_vram_is_refused_and_harms_nothing) {
  EXPECT_FALSE(GpuMemory::allocate(gpu(), MemoryKind::kVram, gpu().vram_size + kMiB).ok());
  EXPECT_OK(GpuMemory::allocate(gpu(), MemoryKind::kVram, kSize));
}

// The check goes through system memory, which the CPU reaches whatever the size of the BAR.
TEST_F(VramTest, half_of_vram_in_one_buffer_keeps_its_contents) {
  constexpr std::uint32_t kWord = 0xa11a11a1;
  const std::size_t size = gpu().vram_size / 2 / kMiB * kMiB;
  ASSERT_OK_AND_ASSIGN(GpuMemory memory, GpuMemory::allocate(gpu(), MemoryKind::kVram, size));
  ASSERT_OK_AND_ASSIGN(GpuMemory window, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kMiB));
  ASSERT_OK_AND_ASSIGN(Copier copier, Copier::create(gpu()));
  ASSERT_OK(copier.run(SdmaCommands(gpu()).fill(memory.gpu_address(), size, kWord)));
  for (std::size_t at = 0; at < size; at += kMiB)
    ASSERT_OK(copier.run(SdmaCommands(gpu()).fill(memory.gpu_address(at), 4, static_cast<std::uint32_t>(at))));
  for (std::size_t at = 0; at < size; at += kMiB) {
    ASSERT_OK(copier.run(SdmaCommands(gpu()).copy(window.gpu_address(), memory.gpu_address(at), kMiB)));
    ASSERT_EQ(window.load32(0), static_cast<std::uint32_t>(at));
    ASSERT_EQ(find_other_word(window.bytes().subspan(4), kWord), std::nullopt) << "at " << at;
  }
}

TEST_F(VramTest, all_of_it_that_the_cpu_reaches_is_the_gpus_memory) {
  if (!gpu().vram_cpu_visible) GTEST_SKIP() << kSmallBar;
  const std::size_t size = gpu().vram_size / 2 / kMiB * kMiB;
  ASSERT_OK_AND_ASSIGN(GpuMemory memory, GpuMemory::allocate(gpu(), MemoryKind::kVram, size));
  ASSERT_OK_AND_ASSIGN(GpuMemory word, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
  ASSERT_OK_AND_ASSIGN(Copier copier, Copier::create(gpu()));
  for (std::size_t at = 0; at < size; at += kMiB) memory.store32(at, static_cast<std::uint32_t>(at));
  for (std::size_t at = 0; at < size; at += kMiB) {
    ASSERT_OK(copier.run(SdmaCommands(gpu()).copy(word.gpu_address(), memory.gpu_address(at), 4)));
    ASSERT_EQ(word.load32(0), static_cast<std::uint32_t>(at));
  }
}

}  // namespace
}  // namespace kfdtest
