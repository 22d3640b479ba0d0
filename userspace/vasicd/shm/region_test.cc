// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// BAR2: doorbells, mailbox, host words.
#include "vasicd/shm/region.h"

#include <gtest/gtest.h>

#include "vasicd/chip.h"

namespace vasicd::region_test {

constexpr std::uint32_t kDwords = VASIC_DOORBELL_SIZE / 4;

struct RegionTest : testing::Test {
  vasic_info info = *parse_gpu_spec("gfx906,vram=64M", 0);
  std::unique_ptr<Region> region = std::move(Region::create(info)).value();

  template <typename T>
  T& at(std::size_t offset) {
    return *reinterpret_cast<T*>(region->bytes().data() + offset);
  }
};

TEST_F(RegionTest, vram_is_as_large_as_asked_and_the_bar_a_power_of_two) {
  EXPECT_EQ(region->vram().size(), 64u << 20);
  EXPECT_EQ(region->bytes().size(), 128u << 20);
}

TEST_F(RegionTest, no_doorbell_is_rung_at_power_on) {
  for (std::uint32_t index = 0; index < kDwords; index += 2) ASSERT_EQ(region->take(index), std::nullopt);
}

TEST_F(RegionTest, a_doorbell_is_taken_once) {
  at<std::uint64_t>(VASIC_OFF_DOORBELL + 4 * 10) = 77;
  EXPECT_EQ(region->take(10), 77u);
  EXPECT_EQ(region->take(10), std::nullopt);
  at<std::uint64_t>(VASIC_OFF_DOORBELL + 4 * 10) = 77;
  EXPECT_EQ(region->take(10), 77u) << "an equal value rings again";
}

TEST_F(RegionTest, doorbells_out_of_range_are_never_rung) {
  for (const std::uint32_t index : {1u, kDwords, kDwords + 2, 0xfffffffeu, 0xffffffffu}) {
    EXPECT_FALSE(region->in_range(index)) << index;
    EXPECT_EQ(region->take(index), std::nullopt);
  }
  EXPECT_TRUE(region->in_range(kDwords - 2));
}

TEST_F(RegionTest, a_command_is_new_while_its_number_differs) {
  EXPECT_EQ(region->command_after(0), std::nullopt);
  auto& command = at<vasic_command>(VASIC_OFF_COMMAND);
  command.opcode = 5;
  command.cmd.arg[13] = 9;
  command.seq = 1;
  const auto copy = region->command_after(0);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->opcode, 5u);
  EXPECT_EQ(copy->cmd.arg[13], 9u);
  EXPECT_EQ(region->command_after(1), std::nullopt);
}

TEST_F(RegionTest, an_answer_and_the_host_words_are_where_the_abi_says) {
  vasic_reply reply{};
  reply.seq = 4;
  reply.status = VASIC_EBUSY;
  reply.value[6] = 6;
  region->answer(reply);
  at<vasic_guest_words>(VASIC_OFF_GUEST).tlb_gen = 7;
  EXPECT_EQ(region->open_walk_epoch(1), 7u);
  EXPECT_EQ(at<vasic_host_words>(VASIC_OFF_HOST).walk_epoch, 1u);
  region->close_walk_epoch(7, 2);
  region->set_state(VASIC_HOST_HUNG);
  region->set_heartbeat(3);
  EXPECT_EQ(at<vasic_reply>(VASIC_OFF_REPLY).seq, 4u);
  EXPECT_EQ(at<vasic_reply>(VASIC_OFF_REPLY).status, static_cast<std::uint32_t>(VASIC_EBUSY));
  EXPECT_EQ(at<vasic_reply>(VASIC_OFF_REPLY).value[6], 6u);
  const auto& words = at<vasic_host_words>(VASIC_OFF_HOST);
  EXPECT_EQ(words.walk_epoch, 2u);
  EXPECT_EQ(words.tlb_ack, 7u);
  EXPECT_EQ(words.state, static_cast<std::uint32_t>(VASIC_HOST_HUNG));
  EXPECT_EQ(words.heartbeat, 3u);
}

TEST_F(RegionTest, a_bar_too_small_for_its_vram_is_refused) {
  info.bar_size = VASIC_OFF_VRAM + info.vram_size - 1;
  EXPECT_FALSE(Region::create(info).ok());
}

TEST_F(RegionTest, doorbells_of_32_bits_are_neighbours) {
  info.doorbell_size = 4;
  auto narrow = Region::create(info);
  ASSERT_TRUE(narrow.ok());
  auto* const slots = reinterpret_cast<std::uint32_t*>((*narrow)->bytes().data() + VASIC_OFF_DOORBELL);
  EXPECT_EQ((*narrow)->take(11), std::nullopt);
  slots[10] = 5;
  slots[11] = 0;
  EXPECT_EQ((*narrow)->take(11), 0u);
  EXPECT_EQ((*narrow)->take(11), std::nullopt);
  EXPECT_EQ((*narrow)->take(10), 5u) << "its neighbour was not touched";
  EXPECT_TRUE((*narrow)->in_range(kDwords - 1));
  EXPECT_FALSE((*narrow)->in_range(kDwords));
  EXPECT_EQ((*narrow)->take(kDwords), std::nullopt);
}

}  // namespace vasicd::region_test
