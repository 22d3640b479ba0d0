// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/vma_map.h"

#include <gtest/gtest.h>

namespace plugin {
namespace {

const std::vector<MappableBo> kBos = {
    {.addr = 0x10000,
     .size = 0x4000,
     .old_offset = 0x100000,
     .new_offset = 0x900000,
     .source_gpu = 1,
     .destination_gpu = 5},
    {.addr = 0x20000,
     .size = 0x1000,
     .old_offset = 0x104000,
     .new_offset = 0x300000,
     .source_gpu = 1,
     .destination_gpu = 5},
    {.addr = 0x30000,
     .size = 0x4000,
     .old_offset = 0x100000,
     .new_offset = 0x700000,
     .source_gpu = 2,
     .destination_gpu = 6},
};

TEST(RenderVma, the_start_of_a_bo_is_found) {
  const auto found = locate_render_vma(kBos, 1, 0x10000, 0x100000);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->new_offset, 0x900000U);
  EXPECT_EQ(found->destination_gpu, 5U);
}

TEST(RenderVma, a_part_of_a_bo_keeps_its_distance_from_the_start) {
  EXPECT_EQ(locate_render_vma(kBos, 1, 0x13000, 0x103000)->new_offset, 0x903000U);
}

TEST(RenderVma, a_mapping_at_another_address_than_the_gpus_is_found_by_its_offset) {
  EXPECT_EQ(locate_render_vma(kBos, 1, 0xdead000, 0x101000)->new_offset, 0x901000U);
}

TEST(RenderVma, equal_offsets_on_two_gpus_are_told_apart_by_the_render_node) {
  EXPECT_EQ(locate_render_vma(kBos, 2, 0x30000, 0x100000)->destination_gpu, 6U);
  EXPECT_EQ(locate_render_vma(kBos, 1, 0x30000, 0x100000)->destination_gpu, 5U);
}

TEST(RenderVma, an_unknown_render_node_is_told_by_the_address) {
  EXPECT_EQ(locate_render_vma(kBos, std::nullopt, 0x30000, 0x100000)->destination_gpu, 6U);
}

TEST(ExactVma, address_and_offset_must_be_equally_far_from_the_start) {
  EXPECT_EQ(locate_exactly(kBos, 0x10000, 0x100000)->new_offset, 0x900000U);
  EXPECT_EQ(locate_exactly(kBos, 0x12000, 0x102000)->new_offset, 0x902000U);
  EXPECT_EQ(locate_exactly(kBos, 0x33000, 0x103000)->destination_gpu, 6U);
  EXPECT_FALSE(locate_exactly(kBos, 0x12000, 0x101000));
  EXPECT_FALSE(locate_exactly(kBos, 0x40000, 0x100000));
}

TEST(RenderVma, the_first_byte_after_a_bo_is_not_in_it) {
  EXPECT_EQ(locate_render_vma(kBos, 1, 0x14000, 0x104000)->new_offset, 0x300000U);
  EXPECT_FALSE(locate_render_vma(kBos, 1, 0x21000, 0x105000));
  EXPECT_FALSE(locate_render_vma(kBos, 1, 0x10000, 0xff000));
}

constexpr std::uint64_t kDoorbell = 3ULL << 62;
const std::vector<MappedGpu> kGpus = {{0x1234, 0xabcd}, {0xabcd, 0x1234}};

TEST(KfdVma, the_gpu_in_the_offset_is_exchanged_and_the_rest_kept) {
  EXPECT_EQ(locate_kfd_vma(kGpus, kDoorbell | (0x1234ULL << 46) | 0x1000), kDoorbell | (0xabcdULL << 46) | 0x1000);
  EXPECT_EQ(locate_kfd_vma(kGpus, 0xabcdULL << 46), 0x1234ULL << 46);
}

TEST(KfdVma, the_event_page_has_no_gpu_and_stays) { EXPECT_EQ(locate_kfd_vma(kGpus, 2ULL << 62), 2ULL << 62); }

TEST(KfdVma, an_unknown_gpu_is_not_found) { EXPECT_FALSE(locate_kfd_vma(kGpus, kDoorbell | (7ULL << 46))); }

}  // namespace
}  // namespace plugin
