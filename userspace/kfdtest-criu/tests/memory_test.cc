// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What AMDKFD_IOC_ALLOC_MEMORY_OF_GPU and its neighbours offer: every combination of flags, exhaustion, sharing by
// dmabuf, doorbells and registers, clocks. The bytes go through SDMA, so memory need not be visible to the CPU.
#include <sys/timex.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 256 * kKiB;
constexpr std::uint64_t kSeed = 0x3e3;

// Copies by SDMA and waits for the fence.
base::Status copy(const Gpu& gpu, std::uint64_t destination, std::uint64_t source, std::size_t size) {
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kSdma));
  ASSIGN_OR_RETURN(GpuMemory fence, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  fence.store32(0, 0);
  TRY(queue.submit(SdmaCommands(gpu).copy(destination, source, size).fence(fence.gpu_address(), 1).dwords()));
  return wait_for_word(fence, 0, 1);
}

// Bytes that the CPU wrote come back after a stay in `memory`.
base::Status keeps_contents(const Gpu& gpu, const GpuMemory& memory) {
  ASSIGN_OR_RETURN(GpuMemory source, GpuMemory::allocate(gpu, MemoryKind::kGtt, kSize));
  ASSIGN_OR_RETURN(GpuMemory target, GpuMemory::allocate(gpu, MemoryKind::kGtt, kSize));
  fill_pattern(source.bytes(), kSeed);
  std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0});
  TRY(copy(gpu, memory.gpu_address(), source.gpu_address(), kSize));
  TRY(copy(gpu, target.gpu_address(), memory.gpu_address(), kSize));
  if (const auto at = find_mismatch(target.bytes(), kSeed))
    return base::Error(EIO, "differs at " + std::to_string(*at));
  return {};
}

struct Flags {
  const char* name;
  std::uint32_t bits;  // KFD_IOC_ALLOC_MEM_FLAGS_*, attributes only
};
constexpr Flags kAttributes[] = {
    {"plain", 0},
    {"executable", KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE},
    {"no_substitute", KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE},
    {"coherent", KFD_IOC_ALLOC_MEM_FLAGS_COHERENT},
    {"uncached", KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED},
    {"coherent_uncached", KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED},
    {"ext_coherent", kfd::abi::kAllocExtCoherent},
    {"contiguous", kfd::abi::kAllocContiguous},
    {"public", KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC},
    {"everything", KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE |
                       KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED |
                       kfd::abi::kAllocExtCoherent | kfd::abi::kAllocContiguous},
};

class MemoryTest : public GpuTest {
 protected:
  static KfdDriver& driver() { return ioctls_of(gpu()); }
  static const kfd::Client& client() { return driver().client(); }
  static base::Result<GpuMemory> allocate(std::uint32_t flags, std::size_t size = kSize) {
    ASSIGN_OR_RETURN(Block block, driver().allocate_with(gpu(), flags, size));
    return GpuMemory::take(gpu(), block);
  }
};

class AllocFlagsTest : public MemoryTest, public testing::WithParamInterface<Flags> {};

TEST_P(AllocFlagsTest, vram_and_gtt_with_these_flags_keep_their_contents) {
  for (const std::uint32_t domain : {KFD_IOC_ALLOC_MEM_FLAGS_VRAM, KFD_IOC_ALLOC_MEM_FLAGS_GTT}) {
    const std::uint32_t flags = domain | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | GetParam().bits;
    // KFD reports either all of VRAM as public, or none.
    const bool refused = (flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) != 0 && domain == KFD_IOC_ALLOC_MEM_FLAGS_VRAM &&
                         !gpu().vram_cpu_visible;
    if (refused) {
      EXPECT_FALSE(allocate(flags).ok());
      continue;
    }
    ASSERT_OK_AND_ASSIGN(GpuMemory memory, allocate(flags));
    EXPECT_OK(keeps_contents(gpu(), memory));
  }
}

std::string flags_name(const testing::TestParamInfo<Flags>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(flags, AllocFlagsTest, testing::ValuesIn(kAttributes), flags_name);

TEST_F(MemoryTest, nonsense_is_refused) {
  constexpr std::uint32_t kWritable = KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
  EXPECT_FALSE(driver().allocate_with(gpu(), kWritable, kSize).ok()) << "memory of no kind";
  EXPECT_FALSE(
      client().allocate({.gpu_id = gpu().gpu_id, .va = 1 << 30, .size = 0, .flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT}).ok())
      << "no size";
  EXPECT_FALSE(
      client().allocate({.gpu_id = 1, .va = 1 << 30, .size = kSize, .flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT}).ok())
      << "no such GPU";
  EXPECT_FALSE(driver().allocate_with(gpu(), kWritable | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, kPageSize * 64).ok())
      << "doorbells of another size";
  EXPECT_FALSE(driver().allocate_with(gpu(), kWritable | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP, kPageSize * 2).ok())
      << "registers of another size";
  EXPECT_FALSE(client().free(0xdead0000beef).ok());
  EXPECT_OK(allocate(KFD_IOC_ALLOC_MEM_FLAGS_GTT | kWritable));
}

TEST_F(MemoryTest, an_aql_ring_is_mapped_twice) {
  constexpr std::uint32_t kWord = 0x2b1cef00;
  ASSERT_OK_AND_ASSIGN(GpuMemory memory, allocate(KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
                                                      KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM,
                                                  2 * kPageSize));
  memory.store32(64, 0);
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK(queue.submit(SdmaCommands(gpu()).fence(memory.gpu_address(kPageSize + 64), kWord).dwords()));
  EXPECT_OK(wait_for_word(memory, 64, kWord));  // written in the second half, seen in the first
}

TEST_F(MemoryTest, the_gpu_rings_a_doorbell) {
  constexpr std::uint32_t kLoaded = 0x10ad, kDone = 0xd00b;
  const std::size_t slice = gpu().generation.doorbell_slice;
  ASSERT_OK_AND_ASSIGN(RingQueue rung, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK_AND_ASSIGN(RingQueue ringer, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
  words.store64(0, 0);
  words.store64(8, 0);
  ASSERT_OK_AND_ASSIGN(
      GpuMemory doorbells,
      allocate(KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT,
               slice));
  // A queue that is loaded reads its write pointer, and CREATE_QUEUE does not wait until it is.
  ASSERT_OK(rung.submit(Pm4Commands(gpu()).fence(words.gpu_address(8), kLoaded).dwords()));
  ASSERT_OK(wait_for_word(words, 8, kLoaded));
  const auto bell = rung.append(Pm4Commands(gpu()).fence(words.gpu_address(), kDone).dwords());
  ASSERT_TRUE(stays([&] { return words.load32(0) == 0; }));
  const std::uint32_t value[] = {static_cast<std::uint32_t>(bell.value), static_cast<std::uint32_t>(bell.value >> 32)};
  ASSERT_OK(ringer.submit(SdmaCommands(gpu())
                              .write(doorbells.gpu_address(bell.offset),
                                     std::span(value).first(gpu().generation.doorbell_bytes / sizeof(value[0])))
                              .dwords()));
  EXPECT_OK(wait_for_word(words, 0, kDone));
}

TEST_F(MemoryTest, cpu_and_gpu_flush_through_the_page_of_registers) {
  constexpr std::uint32_t kFlush = 1;
  constexpr std::uint32_t kDone = 0xf1a5;
  constexpr std::uint32_t kFlags =
      KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
  ASSERT_OK_AND_ASSIGN(const std::uint64_t va, driver().reserve(kPageSize));
  const auto created = client().allocate({.gpu_id = gpu().gpu_id, .va = va, .size = kPageSize, .flags = kFlags});
  if (!created.ok() && created.error().code() == ENOMEM) GTEST_SKIP() << "the driver offers no page of registers";
  ASSERT_OK(created);
  Block block;
  block.size = kPageSize;
  block.gpu_address = va;
  block.handle = created->handle;
  ASSERT_OK_AND_ASSIGN(const GpuMemory registers, GpuMemory::take(gpu(), block));
  ASSERT_OK_AND_ASSIGN(
      const base::Mapping page,
      base::Mapping::shared(client().fd(), kPageSize, static_cast<off_t>(created->mmap_offset), "mapping registers"));
  for (const std::size_t at : {KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL, KFD_MMIO_REMAP_HDP_REG_FLUSH_CNTL})
    *reinterpret_cast<volatile std::uint32_t*>(page.data() + at) = kFlush;
  ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
  words.store32(0, 0);
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK(queue.submit(SdmaCommands(gpu())
                             .write(registers.gpu_address(KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL), std::span(&kFlush, 1))
                             .write(registers.gpu_address(KFD_MMIO_REMAP_HDP_REG_FLUSH_CNTL), std::span(&kFlush, 1))
                             .fence(words.gpu_address(), kDone)
                             .dwords()));
  EXPECT_OK(wait_for_word(words, 0, kDone));
}

TEST_F(MemoryTest, vram_runs_out_with_an_error_and_comes_back) {
  constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
  const std::size_t piece = gpu().vram_size / 16 / kMiB * kMiB;
  ASSERT_OK_AND_ASSIGN(const std::uint64_t before, client().available_memory(gpu().gpu_id));
  EXPECT_GT(before, gpu().vram_size / 2);
  EXPECT_LE(before, gpu().vram_size);
  std::vector<GpuMemory> pieces;
  for (unsigned i = 0; i < 17; ++i) {
    auto memory = allocate(kVram, piece);
    if (!memory.ok()) break;
    pieces.push_back(std::move(memory).value());
  }
  EXPECT_GE(pieces.size(), 8U);
  EXPECT_LT(pieces.size(), 17U);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t full, client().available_memory(gpu().gpu_id));
  EXPECT_LT(full, piece);
  EXPECT_OK(keeps_contents(gpu(), pieces.back()));
  pieces.clear();
  ASSERT_OK_AND_ASSIGN(const std::uint64_t after, client().available_memory(gpu().gpu_id));
  EXPECT_EQ(after, before);
  EXPECT_OK(allocate(kVram, piece));
}

TEST_F(MemoryTest, a_dmabuf_is_the_same_memory_under_another_address) {
  for (const std::uint32_t domain : {KFD_IOC_ALLOC_MEM_FLAGS_VRAM, KFD_IOC_ALLOC_MEM_FLAGS_GTT}) {
    ASSERT_OK_AND_ASSIGN(GpuMemory memory, allocate(domain | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE));
    ASSERT_OK_AND_ASSIGN(base::UniqueFd dmabuf, client().export_dmabuf(memory.block().handle));
    ASSERT_OK_AND_ASSIGN(const kfd::DmabufInfo info, client().dmabuf_info(dmabuf.get()));
    EXPECT_EQ(info.size, kSize);
    EXPECT_EQ(info.gpu_id, gpu().gpu_id);
    EXPECT_NE(info.flags & domain, 0U);
    ASSERT_OK_AND_ASSIGN(Block imported, driver().import_dmabuf(gpu(), dmabuf.get(), kSize));
    ASSERT_OK_AND_ASSIGN(GpuMemory other, GpuMemory::take(gpu(), imported));
    EXPECT_NE(other.gpu_address(), memory.gpu_address());
    EXPECT_OK(keeps_contents(gpu(), other));
    ASSERT_OK_AND_ASSIGN(GpuMemory target, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kSize));
    ASSERT_OK(copy(gpu(), target.gpu_address(), memory.gpu_address(), kSize));
    EXPECT_EQ(find_mismatch(target.bytes(), kSeed), std::nullopt);
  }
}

TEST_F(MemoryTest, clocks_count_on_and_agree) {
  ASSERT_OK_AND_ASSIGN(const auto first, client().clock_counters(gpu().gpu_id));
  ASSERT_TRUE(stays([] { return true; }, std::chrono::milliseconds(20)));
  ASSERT_OK_AND_ASSIGN(const auto second, client().clock_counters(gpu().gpu_id));
  EXPECT_GT(second.gpu_clock_counter, first.gpu_clock_counter);
  EXPECT_GT(second.cpu_clock_counter, first.cpu_clock_counter);
  EXPECT_GT(second.system_clock_counter, first.system_clock_counter);
  EXPECT_GT(second.system_clock_freq, 0U);
}

// How fast the kernel's clock runs: microseconds that it counts in a hundredth of a second, 10,000 when it is right.
class KernelClockRate {
 public:
  explicit KernelClockRate(long tick) { set(tick); }
  KernelClockRate(const KernelClockRate&) = delete;
  KernelClockRate& operator=(const KernelClockRate&) = delete;
  ~KernelClockRate() { set(kRight); }

  static constexpr long kRight = 10'000;
  static constexpr long kSlowest = 9'000;
  static constexpr long kFastest = 11'000;

 private:
  static void set(long tick) {
    timex change{};
    change.modes = ADJ_TICK;
    change.tick = tick;
    EXPECT_GE(::adjtimex(&change), 0) << "it needs CAP_SYS_TIME";
  }
};

// A driver that derives the counter from the kernel's clock would be wrong by as much as the two drift apart, which a
// kernel's clock at another rate makes happen within a moment.
TEST_F(MemoryTest, packets_store_a_time_between_two_readings_of_the_clock) {
  constexpr std::size_t kFence = 64;
  constexpr std::chrono::milliseconds kDrifting{200};
  ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
  for (const long tick : {KernelClockRate::kRight, KernelClockRate::kSlowest, KernelClockRate::kFastest}) {
    const KernelClockRate rate(tick);
    ASSERT_TRUE(stays([] { return true; }, kDrifting));
    for (const QueueKind kind : {QueueKind::kPm4, QueueKind::kSdma}) {
      ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), kind));
      words.store64(0, 0);
      words.store64(kFence, 0);
      const std::uint64_t at = words.gpu_address();
      ASSERT_OK_AND_ASSIGN(const auto before, client().clock_counters(gpu().gpu_id));
      ASSERT_OK(kind == QueueKind::kPm4 ? queue.submit(Pm4Commands(gpu()).clock(at).fence(at + kFence, 1).dwords())
                                        : queue.submit(SdmaCommands(gpu()).clock(at).fence(at + kFence, 1).dwords()));
      ASSERT_OK(wait_for_word(words, kFence, 1));
      ASSERT_OK_AND_ASSIGN(const auto after, client().clock_counters(gpu().gpu_id));
      EXPECT_GE(words.load64(0), before.gpu_clock_counter) << "tick " << tick;
      EXPECT_LE(words.load64(0), after.gpu_clock_counter) << "tick " << tick;
    }
  }
}

}  // namespace
}  // namespace kfdtest
