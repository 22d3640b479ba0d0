// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Buffer objects: what the CPU sees in them, where they are, what is refused, and what happens when memory runs out.
#include <sys/mman.h>
#include <xf86drm.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drmtest/env/gpu_test.h"
#include "drmtest/harness/buffer.h"
#include "drmtest/harness/submit.h"

namespace drmtest {
namespace {

class BoTest : public GpuTest {};

TEST_P(BoTest, a_fresh_bo_is_zero_and_keeps_what_the_cpu_writes) {
  for (const BoSpec& spec : {gtt(4 * kMiB), vram(4 * kMiB), gtt(kPage), vram(kPage)}) {
    ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), spec));
    ASSERT_OK_AND_ASSIGN(const auto words, bo.words());
    EXPECT_TRUE(std::all_of(words.begin(), words.end(), [](std::uint32_t word) { return word == 0; }));
    write_pattern(words, spec.heap);
    EXPECT_EQ(first_mismatch(words, spec.heap), words.size()) << "heap " << spec.heap;
  }
}

TEST_P(BoTest, memory_of_a_freed_bo_is_not_shown_to_its_next_owner) {
  constexpr std::uint64_t kSize = 16 * kMiB;
  {
    ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), vram(kSize)));
    ASSERT_OK_AND_ASSIGN(const auto words, bo.words());
    std::fill(words.begin(), words.end(), 0x5ec4e7edU);
  }
  ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), vram(kSize)));
  ASSERT_OK_AND_ASSIGN(const auto words, bo.words());
  EXPECT_TRUE(std::all_of(words.begin(), words.end(), [](std::uint32_t word) { return word == 0; }));
}

TEST_P(BoTest, both_mappings_of_a_bo_are_one_memory) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, Bo::create(device(), gtt(kPage)));
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_OK(check(amdgpu_bo_cpu_map(bo.handle(), &first), "first"));
  ASSERT_OK(check(amdgpu_bo_cpu_map(bo.handle(), &second), "second"));
  EXPECT_EQ(first, second) << "libdrm counts, it does not map again";
  EXPECT_EQ(amdgpu_bo_cpu_unmap(bo.handle()), 0);
  static_cast<std::uint32_t*>(first)[0] = 1;
  EXPECT_EQ(amdgpu_bo_cpu_unmap(bo.handle()), 0);
  EXPECT_EQ(amdgpu_bo_cpu_unmap(bo.handle()), -EINVAL);
}

TEST_P(BoTest, a_cpu_mapping_leads_back_to_its_bo) {
  ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), gtt(4 * kPage)));
  ASSERT_OK_AND_ASSIGN(const auto words, bo.words());
  amdgpu_bo_handle found = nullptr;
  std::uint64_t offset = 0;
  ASSERT_OK(check(amdgpu_find_bo_by_cpu_mapping(device().handle(), &words[kPage / 4], kPage, &found, &offset), "find"));
  EXPECT_EQ(found, bo.handle());
  EXPECT_EQ(offset, kPage);
  amdgpu_bo_free(found);  // finding took a reference
}

TEST_P(BoTest, memory_without_cpu_access_is_not_mapped) {
  ASSERT_OK_AND_ASSIGN(
      Bo bo,
      Bo::create(device(), {.size = kMiB, .heap = AMDGPU_GEM_DOMAIN_VRAM, .flags = AMDGPU_GEM_CREATE_NO_CPU_ACCESS}));
  EXPECT_FALSE(bo.words().ok());
}

TEST_P(BoTest, a_bo_says_how_it_was_made) {
  const BoSpec spec{.size = 2 * kMiB,
                    .heap = AMDGPU_GEM_DOMAIN_VRAM,
                    .flags = AMDGPU_GEM_CREATE_EXPLICIT_SYNC,
                    .alignment = 64 * 1024};
  ASSERT_OK_AND_ASSIGN(const Bo bo, Bo::create(device(), spec));
  amdgpu_bo_info info{};
  ASSERT_OK(check(amdgpu_bo_query_info(bo.handle(), &info), "amdgpu_bo_query_info"));
  EXPECT_EQ(info.alloc_size, spec.size);
  EXPECT_EQ(info.preferred_heap, spec.heap);
  EXPECT_EQ(info.alloc_flags & spec.flags, spec.flags);
  EXPECT_GE(info.phys_alignment, spec.alignment);
}

TEST_P(BoTest, metadata_stays_with_the_bo) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, Bo::create(device(), gtt(kPage)));
  amdgpu_bo_metadata metadata{};
  metadata.tiling_info = 0x1234;
  metadata.size_metadata = sizeof(metadata.umd_metadata);
  for (std::uint32_t i = 0; i < std::size(metadata.umd_metadata); ++i) metadata.umd_metadata[i] = i * i;
  ASSERT_OK(check(amdgpu_bo_set_metadata(bo.handle(), &metadata), "set"));
  amdgpu_bo_info info{};
  ASSERT_OK(check(amdgpu_bo_query_info(bo.handle(), &info), "query"));
  EXPECT_EQ(info.metadata.tiling_info, metadata.tiling_info);
  ASSERT_EQ(info.metadata.size_metadata, metadata.size_metadata);
  EXPECT_EQ(std::memcmp(info.metadata.umd_metadata, metadata.umd_metadata, sizeof(metadata.umd_metadata)), 0);
  metadata.size_metadata += 1;
  EXPECT_EQ(amdgpu_bo_set_metadata(bo.handle(), &metadata), -EINVAL);
}

TEST_P(BoTest, a_bo_is_busy_until_its_job_has_ended) {
  ASSERT_OK_AND_ASSIGN(const Context context, Context::create(device()));
  ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), context));
  ASSERT_OK_AND_ASSIGN(const Buffer gate, Buffer::create(device(), gtt(kPage)));
  ASSERT_OK_AND_ASSIGN(const Buffer target, Buffer::create(device(), vram(kPage)));
  const auto is_busy = [&](Nanoseconds limit) {
    bool busy = false;
    EXPECT_EQ(amdgpu_bo_wait_for_idle(target.handle(), static_cast<std::uint64_t>(limit.count()), &busy), 0);
    return busy;
  };
  // The driver clears new VRAM by a job of its own.
  EXPECT_FALSE(is_busy(kDeadline));
  Commands commands(device(), AMDGPU_HW_IP_DMA);
  commands.wait_equal(gate.address(), 1).write(target.address(), 7U);
  ASSERT_OK(submitter.submit({.bos = {gate.handle(), target.handle()}}, commands));
  EXPECT_TRUE(is_busy(kQuietPeriod));
  gate.store(0, 1);
  EXPECT_FALSE(is_busy(kDeadline));
  EXPECT_EQ(target.load(0), 7U);
}

TEST_P(BoTest, more_bos_than_vram_holds_keep_their_contents) {
  constexpr std::uint64_t kSize = 32 * kMiB;
  ASSERT_OK_AND_ASSIGN(const drm_amdgpu_memory_info memory, device().memory());
  const std::uint64_t count = memory.vram.usable_heap_size / kSize + 3;
  if (count * kSize > memory.vram.usable_heap_size + memory.gtt.usable_heap_size / 2) GTEST_SKIP() << "little GTT";
  std::vector<Bo> bos;
  for (std::uint32_t i = 0; i < count; ++i) {
    ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), vram(kSize)));
    ASSERT_OK_AND_ASSIGN(const auto words, bo.words());
    write_pattern(words.first(kPage), i);
    write_pattern(words.last(kPage), i + 1);
    bos.push_back(std::move(bo));
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto words, bos[i].words());
    EXPECT_EQ(first_mismatch(words.first(kPage), i), kPage) << "BO " << i;
    EXPECT_EQ(first_mismatch(words.last(kPage), i + 1), kPage) << "BO " << i;
  }
}

TEST_P(BoTest, a_bo_larger_than_all_memory_is_refused) {
  ASSERT_OK_AND_ASSIGN(const drm_amdgpu_memory_info memory, device().memory());
  const std::uint64_t too_much = memory.vram.total_heap_size + memory.gtt.total_heap_size + kMiB;
  for (const BoSpec& spec : {gtt(too_much), vram(too_much)}) {
    const auto bo = Bo::create(device(), spec);
    ASSERT_FALSE(bo.ok());
    EXPECT_EQ(bo.error().code(), ENOMEM);
  }
  EXPECT_OK(Bo::create(device(), vram(kMiB)));
}

TEST_P(BoTest, what_makes_no_sense_is_refused) {
  const auto code = [this](const BoSpec& spec) {
    const auto bo = Bo::create(device(), spec);
    return bo.ok() ? 0 : bo.error().code();
  };
  EXPECT_NE(code({.size = 0}), 0);
  EXPECT_EQ(code({.heap = AMDGPU_GEM_DOMAIN_MASK + 1}), EINVAL);
  EXPECT_EQ(code({.flags = std::uint64_t{1} << 40}), EINVAL);
  EXPECT_EQ(code({.flags = AMDGPU_GEM_CREATE_ENCRYPTED}), EINVAL) << "there is no trusted zone";
  constexpr std::uint32_t kDoorbellDomain = 0x40;  // AMDGPU_GEM_DOMAIN_DOORBELL of newer headers
  EXPECT_EQ(code({.heap = kDoorbellDomain}), EINVAL) << "no client may have doorbells yet";
}

TEST_P(BoTest, a_handle_that_was_closed_or_never_given_out_is_refused) {
  std::uint32_t handle = 0;
  {
    ASSERT_OK_AND_ASSIGN(const Bo bo, Bo::create(device(), gtt(kPage)));
    ASSERT_OK_AND_ASSIGN(handle, bo.kms());
  }
  for (const std::uint32_t bad : {handle, 0U, 0xffffffffU}) {
    drm_amdgpu_gem_mmap map{};
    map.in.handle = bad;
    EXPECT_EQ(drmCommandWriteRead(device().fd(), DRM_AMDGPU_GEM_MMAP, &map, sizeof(map)), -ENOENT);
    drm_amdgpu_gem_wait_idle idle{};
    idle.in.handle = bad;
    EXPECT_EQ(drmCommandWriteRead(device().fd(), DRM_AMDGPU_GEM_WAIT_IDLE, &idle, sizeof(idle)), -ENOENT);
  }
}

TEST_P(BoTest, an_offset_that_is_no_bos_is_not_mapped) {
  constexpr off_t kNowhere = off_t{1} << 44;
  void* data = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, device().fd(), kNowhere);
  EXPECT_EQ(data, MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
}

EVERY_GPU(BoTest);

}  // namespace
}  // namespace drmtest
