// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of decode*.cc and of disassemble.cc. isa_listing_test.cc has the breadth; here is what it cannot see.
#include "gcn/decode.h"

#include <gtest/gtest.h>

#include <random>

namespace gcn {
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
  const auto plain = decode_words(Isa::kGfx906, {0xdd088000, 0x047f0802});    // global_atomic_add v[2:3], v8, off
  const auto returns = decode_words(Isa::kGfx906, {0xdd098000, 0x047f0802});  // ... v4, v[2:3], v8, off glc
  ASSERT_TRUE(returns);
  EXPECT_EQ(returns->dst, v(4));
  if (plain) {
    EXPECT_EQ(plain->dst, operand::kNone);
  }
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
}  // namespace gcn
