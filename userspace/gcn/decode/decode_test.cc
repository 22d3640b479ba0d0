// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of decode*.cc and of disassemble.cc: the cases that isa_listing_test.cc, which covers all opcodes, cannot
// check.
#include "gcn/decode/decode.h"

#include <gtest/gtest.h>

#include <random>

#include "gcn/text/disassemble.h"

namespace gcn::decode_test {
namespace {

std::optional<Instruction> decode_words(Isa isa, std::initializer_list<std::uint32_t> words) {
  return decode(isa, std::span(words.begin(), words.size()));
}

constexpr std::uint16_t v(unsigned number) { return static_cast<std::uint16_t>(operand::kVgpr0 + number); }

TEST(Decode, a_literal_makes_it_two_dwords) {
  const auto add = decode_words(Isa::kGfx906, {0x800402ff, 0x12345678});  // s_add_u32 s4, 0x12345678, s2
  ASSERT_TRUE(add);
  EXPECT_EQ(add->op, Op::kSAddU32);
  EXPECT_EQ(add->bytes, 8);
  EXPECT_EQ(add->dst, 4);
  EXPECT_EQ(add->src[0], operand::kLiteral);
  EXPECT_EQ(add->src[1], 2);
  EXPECT_EQ(add->literal, 0x12345678u);
}

TEST(Decode, an_instruction_that_goes_beyond_the_words_is_refused) {
  EXPECT_FALSE(decode_words(Isa::kGfx906, {}));
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0x800402ff}));  // its literal
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0xc0020002}));  // s_load_dword
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0x7e0802f9}));  // v_mov_b32_sdwa
}

TEST(Decode, carries_of_vop2_are_vcc) {
  const auto addc = decode_words(Isa::kGfx906, {0x38080506});  // v_addc_co_u32_e32 v4, vcc, v6, v2, vcc
  ASSERT_TRUE(addc);
  EXPECT_EQ(addc->dst, v(4));
  EXPECT_EQ(addc->sdst, operand::kVccLo);
  EXPECT_EQ(addc->src, (std::array<std::uint16_t, 4>{v(6), v(2), operand::kVccLo, operand::kNone}));
}

TEST(Decode, the_literal_of_madmk_is_its_second_source) {
  const auto madmk = decode_words(Isa::kGfx906, {0x2e080506, 0x3f801234});  // v_madmk_f32 v4, v6, 0x3f801234, v2
  ASSERT_TRUE(madmk);
  EXPECT_EQ(madmk->src, (std::array<std::uint16_t, 4>{v(6), operand::kLiteral, v(2), operand::kNone}));
  EXPECT_EQ(madmk->literal, 0x3f801234u);
}

TEST(Decode, an_atomic_has_a_destination_if_it_returns) {
  const auto plain = decode_words(Isa::kGfx906, {0xdd088000, 0x007f0802});    // global_atomic_add v[2:3], v8, off
  const auto returns = decode_words(Isa::kGfx906, {0xdd098000, 0x047f0802});  // ... v4, v[2:3], v8, off glc
  ASSERT_TRUE(plain);
  ASSERT_TRUE(returns);
  EXPECT_EQ(plain->dst, operand::kNone);
  EXPECT_EQ(returns->dst, v(4));
  EXPECT_EQ(returns->src, (std::array<std::uint16_t, 4>{v(2), v(8), operand::kNone, operand::kNone}));
}

TEST(Decode, a_comparison_writes_what_vop3_says) {
  const auto compare = decode_words(Isa::kGfx906, {0xd0c1000a, 0x00020d02});  // v_cmp_lt_i32_e64 s[10:11], v2, v6
  ASSERT_TRUE(compare);
  EXPECT_EQ(compare->dst, operand::kNone);
  EXPECT_EQ(compare->sdst, 10);
}

TEST(Decode, pairs_of_sgprs_begin_at_even_numbers) {
  const auto move = decode_words(Isa::kGfx906, {0xbe850103});  // s_mov_b64 with the odd register numbers 5 and 3
  ASSERT_TRUE(move);
  EXPECT_EQ(move->dst, 4);
  EXPECT_EQ(move->src[0], 2);
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0xbe84016b}));  // no pair begins at vcc_hi
}

TEST(Decode, sdwa_has_selections_and_a_clamp) {
  // v_add_f32_sdwa v4, v6, -v2 clamp dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:DWORD
  const auto add = decode_words(Isa::kGfx906, {0x020804f9, 0x16053106});
  ASSERT_TRUE(add);
  EXPECT_EQ(add->lanes, LaneMode::kSdwa);
  EXPECT_EQ(add->sdwa.dst_sel, SubDword::kByte1);
  EXPECT_EQ(add->sdwa.dst_unused, DstUnused::kPreserve);
  EXPECT_EQ(add->sdwa.src_sel, (std::array{SubDword::kWord1, SubDword::kDword}));
  EXPECT_EQ(add->neg, 2);
  EXPECT_TRUE(add->clamp);
}

TEST(Decode, reserved_selections_of_sdwa_are_refused) {
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0x020804f9, 0x06060706}));  // dst_sel
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0x020804f9, 0x06061e06}));  // dst_unused
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0x020804f9, 0x06070606}));  // src0_sel
  EXPECT_FALSE(decode_words(Isa::kGfx906, {0x020804f9, 0x07060606}));  // src1_sel
}

TEST(Decode, offsets_have_the_sign_of_their_format) {
  const auto load = decode_words(Isa::kGfx906, {0xc0020002, 0x001ffff0});  // s_load_dword s0, s[4:5], -0x10
  const auto global =
      decode_words(Isa::kGfx906, {0xdc509ff0, 0x047f0002});      // global_load_dword v4, v[2:3], off offset:-16
  const auto branch = decode_words(Isa::kGfx906, {0xbf82fffe});  // s_branch 65534
  ASSERT_TRUE(load && global && branch);
  EXPECT_EQ(load->offset, -16);
  EXPECT_EQ(global->offset, -16);
  EXPECT_EQ(branch->offset, -2);
}

TEST(Decode, an_accumulation_register_is_one_of_gfx90a) {
  const std::initializer_list<std::uint32_t> load = {0xdc508000, 0x04ff0002};  // global_load_dword a4, v[2:3], off
  EXPECT_TRUE(decode_words(Isa::kGfx90a, load)->agpr);
  EXPECT_FALSE(decode_words(Isa::kGfx906, load)->agpr);
}

TEST(Describe, says_as_much_as_is_known) {
  const auto text = [](std::initializer_list<std::uint32_t> words) {
    return describe(Isa::kGfx906, std::span(words.begin(), words.size()));
  };
  EXPECT_EQ(text({0xbf8a0005}), "s_barrier");  // with a constant
  EXPECT_EQ(text({0xbfff0000}), "SOPP opcode 0x7f");
  EXPECT_EQ(text({0xffffffff, 0x1}), "dwords 0xffffffff 0x1");
  EXPECT_EQ(text({}), "nothing");
}

TEST(Decode, an_opcode_of_another_chip_is_refused) {
  const std::initializer_list<std::uint32_t> fmac = {0x76080506};  // v_fmac_f32_e32 v4, v6, v2
  EXPECT_FALSE(decode_words(Isa::kGfx900, fmac));
  EXPECT_TRUE(decode_words(Isa::kGfx906, fmac));
}

TEST(Decode, any_dwords_can_be_decoded_and_named) {
  std::mt19937 random(1);
  std::size_t accepted = 0;
  std::size_t text = 0;
  for (int i = 0; i < 250'000; ++i) {
    const std::array<std::uint32_t, 2> words = {static_cast<std::uint32_t>(random()),
                                                static_cast<std::uint32_t>(random())};
    for (const Isa isa : {Isa::kGfx900, Isa::kGfx906, Isa::kGfx908, Isa::kGfx90a}) {
      const std::optional<Instruction> instruction = decode(isa, words);
      if (instruction) {
        ++accepted;
        ASSERT_TRUE(instruction->bytes == 4 || instruction->bytes == 8);
      }
      text += instruction ? disassemble(*instruction, isa).size() : describe(isa, words).size();
    }
  }
  EXPECT_GT(accepted, 100'000u);
  EXPECT_LT(text, 1'000'000u * 128u);
}

}  // namespace
}  // namespace gcn::decode_test
