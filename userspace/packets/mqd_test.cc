// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Each generation has its own descriptor; where a member is, is compared with the kernel in golden/.
#include "packets/mqd.h"

#include <gtest/gtest.h>

#include "packets/mqd_sdma.h"

namespace packets::mqd {
namespace {

TEST(Mqd, every_generation_has_the_registers_that_a_queue_needs) {
  for (unsigned level = 7; level <= 12; ++level) {
    const ComputeMqdLayout& c = compute_layout(level);
    for (const std::size_t index : {c.cp_hqd_pq_base_lo, c.cp_hqd_pq_rptr, c.cp_hqd_pq_control, c.cp_hqd_ib_control,
                                    c.cp_hqd_pq_doorbell_control, c.aql_enable(), c.error()}) {
      EXPECT_LT(index, c.dwords) << "gfx" << level;
    }
    EXPECT_NE(c.cp_hqd_pq_wptr == kNone, c.cp_hqd_pq_wptr_lo == kNone) << "gfx" << level;
    const SdmaMqdLayout& s = sdma_layout(level);
    for (const std::size_t index :
         {s.rb_cntl, s.rb_rptr, s.rb_wptr, s.ib_cntl, s.skip(), s.exception(), s.doorbell_index(), s.sdma_queue_id}) {
      EXPECT_LT(index, s.dwords) << "gfx" << level;
    }
  }
}

TEST(Mqd, no_two_members_share_a_dword) {
  for (unsigned level = 7; level <= 12; ++level) {
    std::vector<const char*> at(kMaxDwords, nullptr);
    for (const ComputeMember& member : kComputeMembers) {
      const std::size_t index = compute_layout(level).*member.index;
      // GFX9.4.3 gave a register of the fifth shader engine another use.
      if (index == kNone || std::string(member.name) == "compute_current_logic_xcc_id") continue;
      EXPECT_EQ(at[index], nullptr) << "gfx" << level << " " << member.name << " " << at[index];
      at[index] = member.name;
    }
  }
}

TEST(Mqd, gfx7_and_gfx8_have_32_bit_pointers) {
  for (unsigned level = 7; level <= 12; ++level) {
    EXPECT_EQ(compute_layout(level).wptr_is_32_bits(), level < 9);
    EXPECT_EQ(sdma_layout(level).pointers_are_32_bits(), level < 9);
  }
}

}  // namespace
}  // namespace packets::mqd
