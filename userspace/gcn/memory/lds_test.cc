// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of lds.cc and lds_atomics.cc.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "gcn/fake_memory.h"

namespace gcn::lds_test {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

// The tests have addresses in v0, data0 in v[4...], data1 in v[6...] and results in v[8...].
Instruction ds(std::string_view mnemonic, int offset = 0) {
  Instruction instruction = named_instruction(mnemonic);
  instruction.encoding = Encoding::kDs;
  const bool returns = mnemonic.find("_rtn_") != mnemonic.npos || mnemonic.find("read") != mnemonic.npos ||
                       mnemonic.find("perm") != mnemonic.npos || mnemonic.find("swizzle") != mnemonic.npos ||
                       mnemonic == "ds_append" || mnemonic == "ds_consume";
  instruction.dst = returns ? v(8) : operand::kNone;
  instruction.src = {v(0), v(4), v(6), operand::kNone};
  instruction.offset = offset;
  return instruction;
}

template <typename T>
T lds_get(const FakeMachine& m, std::size_t address) {
  T value;
  std::memcpy(&value, &m.lds[address], sizeof value);
  return value;
}

template <typename T>
void lds_set(FakeMachine& m, std::size_t address, T value) {
  std::memcpy(&m.lds[address], &value, sizeof value);
}

U32 word(unsigned n) { return 0x01010101u * n + 0x80c0e0f0; }

void fill_lds(FakeMachine& m) {
  for (unsigned n = 0; n < m.lds.size() / 4; ++n) lds_set(m, 4 * n, word(n));
}

TEST(Lds, loads_of_all_sizes) {
  FakeMachine m;
  fill_lds(m);
  m.fill(0, [](unsigned lane) { return 16 * lane; });
  const std::pair<const char*, unsigned> kSizes[] = {
      {"ds_read_b32", 1}, {"ds_read_b64", 2}, {"ds_read_b96", 3}, {"ds_read_b128", 4}};
  for (const auto& [op, words] : kSizes) {
    for (unsigned i = 0; i < 4; ++i) m.fill(8 + i, [](unsigned) { return 7; });
    ASSERT_EQ(m.run(ds(op, 4)), Outcome::kNext);
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(m.wave.vgpr[8 + i][9], i < words ? word(37 + i) : 7u) << op;
  }
}

TEST(Lds, small_loads) {
  FakeMachine m;
  lds_set(m, 0, U32{0x12348685});
  const std::pair<const char*, U32> kCases[] = {{"ds_read_u8", 0x85},
                                                {"ds_read_i8", 0xffffff85},
                                                {"ds_read_u16", 0x8685},
                                                {"ds_read_i16", 0xffff8685},
                                                {"ds_read_u8_d16", 0xaaaa0085},
                                                {"ds_read_u8_d16_hi", 0x0085bbbb},
                                                {"ds_read_i8_d16", 0xaaaaff85},
                                                {"ds_read_i8_d16_hi", 0xff85bbbb},
                                                {"ds_read_u16_d16", 0xaaaa8685},
                                                {"ds_read_u16_d16_hi", 0x8685bbbb}};
  for (const auto& [op, expected] : kCases) {
    m.fill(8, [](unsigned) { return 0xaaaabbbb; });
    ASSERT_EQ(m.run(ds(op)), Outcome::kNext);
    EXPECT_EQ(m.wave.vgpr[8][63], expected) << op;
  }
}

TEST(Lds, stores_write_no_more_than_their_bytes) {
  using Words = std::array<U32, 4>;
  const std::pair<const char*, Words> kCases[] = {
      {"ds_write_b8", {0x111111a0, 0x11111111, 0x11111111, 0x11111111}},
      {"ds_write_b8_d16_hi", {0x111111c0, 0x11111111, 0x11111111, 0x11111111}},
      {"ds_write_b16", {0x1111b0a0, 0x11111111, 0x11111111, 0x11111111}},
      {"ds_write_b16_d16_hi", {0x1111d0c0, 0x11111111, 0x11111111, 0x11111111}},
      {"ds_write_b32", {0xd0c0b0a0, 0x11111111, 0x11111111, 0x11111111}},
      {"ds_write_b64", {0xd0c0b0a0, 5, 0x11111111, 0x11111111}},
      {"ds_write_b96", {0xd0c0b0a0, 5, 6, 0x11111111}},
      {"ds_write_b128", {0xd0c0b0a0, 5, 6, 7}}};
  for (const auto& [op, expected] : kCases) {
    FakeMachine m;
    m.lds.fill(std::byte{0x11});
    m.fill(0, [](unsigned lane) { return 16 * lane; });
    m.fill(4, [](unsigned) { return 0xd0c0b0a0; });
    for (unsigned i = 1; i < 4; ++i) m.fill(4 + i, [&](unsigned) { return 4 + i; });
    m.wave.set_exec(U64{1} << 5);
    ASSERT_EQ(m.run(ds(op, 32)), Outcome::kNext);
    EXPECT_EQ(lds_get<Words>(m, 112), expected) << op;
    EXPECT_EQ(lds_get<U32>(m, 128), 0x11111111u);
  }
}

TEST(Lds, two_addresses_have_an_offset_each) {
  FakeMachine m;
  fill_lds(m);
  m.run(ds("ds_read2_b32", 2 | 5 << 8));
  EXPECT_EQ(m.wave.vgpr[8][0], word(2));
  EXPECT_EQ(m.wave.vgpr[9][0], word(5));
  m.run(ds("ds_read2st64_b32", 1 | 2 << 8));
  EXPECT_EQ(m.wave.vgpr[8][0], word(64));
  EXPECT_EQ(m.wave.vgpr[9][0], word(128));
  m.run(ds("ds_read2_b64", 3 | 1 << 8));
  EXPECT_EQ(m.wave.vgpr[9][0], word(7));
  EXPECT_EQ(m.wave.vgpr[10][0], word(2));
  m.run(ds("ds_read2st64_b64", 0 | 1 << 8));
  EXPECT_EQ(m.wave.vgpr[10][0], word(128));
  m.fill(4, [](unsigned) { return 1; });
  m.fill(5, [](unsigned) { return 2; });
  m.fill(6, [](unsigned) { return 3; });
  m.fill(7, [](unsigned) { return 4; });
  m.run(ds("ds_write2_b32", 2 | 5 << 8));
  EXPECT_EQ(lds_get<U32>(m, 8), 1u);
  EXPECT_EQ(lds_get<U32>(m, 20), 3u);
  m.run(ds("ds_write2st64_b64", 0 | 1 << 8));
  EXPECT_EQ(lds_get<U64>(m, 0), 1 | U64{2} << 32);
  EXPECT_EQ(lds_get<U64>(m, 512), 3 | U64{4} << 32);
}

TEST(Lds, lanes_number_addresses) {
  FakeMachine m;
  m.wave.scalar[operand::kM0] = 0xffff0100;
  m.fill(4, [](unsigned lane) { return lane + 1; });
  m.run(ds("ds_write_addtid_b32", 8));
  EXPECT_EQ(lds_get<U32>(m, 0x108 + 4 * 63), 64u);
  m.run(ds("ds_read_addtid_b32", 8));
  EXPECT_EQ(m.wave.vgpr[8][63], 64u);
}

TEST(Lds, out_of_range_reads_zero_and_writes_nothing) {
  FakeMachine m;
  m.lds.fill(std::byte{0x11});
  m.fill(0, [&](unsigned lane) { return m.lds.size() - 4 + (lane > 0 ? 2 : 0); });
  m.fill(4, [](unsigned) { return 0; });
  m.fill(8, [](unsigned) { return 5; });
  m.run(ds("ds_read_b32"));
  EXPECT_EQ(m.wave.vgpr[8][0], 0x11111111u);
  EXPECT_EQ(m.wave.vgpr[8][1], 0u);
  m.run(ds("ds_read_b64"));
  EXPECT_EQ(m.wave.vgpr[8][0], 0u);
  m.wave.set_exec(2);
  m.run(ds("ds_write_b32"));
  m.run(ds("ds_and_b32"));
  EXPECT_EQ(lds_get<U32>(m, m.lds.size() - 4), 0x11111111u);
  m.fill(0, [](unsigned) { return -4; });
  m.run(ds("ds_write_b32", 4));
  EXPECT_EQ(lds_get<U32>(m, 0), 0u);
}

TEST(Lds, unaligned_addresses) {
  FakeMachine m;
  fill_lds(m);
  m.fill(0, [](unsigned lane) { return lane; });
  m.run(ds("ds_read_b128", 1));
  EXPECT_EQ(m.wave.vgpr[11][6], lds_get<U32>(m, 19));
}

struct AtomicCase {
  const char* op;  // after "ds_", before the size
  const char* type;
  U64 old, data0, data1, expected;
};

constexpr U64 kMinus = ~U64{0};
const AtomicCase kAtomics[] = {
    {"add", "u", kMinus, 3, 0, 2}, {"sub", "u", 1, 3, 0, kMinus - 1},  {"rsub", "u", 1, 3, 0, 2},
    {"inc", "u", 4, 5, 0, 5},      {"inc", "u", 5, 5, 0, 0},           {"dec", "u", 0, 5, 0, 5},
    {"dec", "u", 5, 5, 0, 4},      {"min", "i", kMinus, 3, 0, kMinus}, {"max", "i", kMinus, 3, 0, 3},
    {"min", "u", kMinus, 3, 0, 3}, {"max", "u", kMinus, 3, 0, kMinus}, {"and", "b", 0xc, 0xa, 0, 0x8},
    {"or", "b", 0xc, 0xa, 0, 0xe}, {"xor", "b", 0xc, 0xa, 0, 0x6},     {"mskor", "b", 0xff, 0xf0, 0x20, 0x2f},
    {"cmpst", "b", 1, 1, 9, 9},    {"cmpst", "b", 1, 2, 9, 1}};

void check_atomic(const AtomicCase& c, bool returns, bool wide) {
  FakeMachine m;
  lds_set(m, 24, c.old);
  m.wave.set_exec(1);
  m.fill(0, [](unsigned) { return 16; });
  m.fill(4, [&](unsigned) { return c.data0; });
  m.fill(5, [&](unsigned) { return c.data0 >> 32; });
  m.fill(6, [&](unsigned) { return c.data1; });
  m.fill(7, [&](unsigned) { return c.data1 >> 32; });
  m.fill(8, [](unsigned) { return 77; });
  const std::string mnemonic = std::string("ds_") + c.op + (returns ? "_rtn_" : "_") + c.type + (wide ? "64" : "32");
  ASSERT_EQ(m.run(ds(mnemonic, 8)), Outcome::kNext) << mnemonic;
  if (wide) {
    EXPECT_EQ(lds_get<U64>(m, 24), c.expected) << mnemonic;
  } else {
    EXPECT_EQ(lds_get<U32>(m, 24), static_cast<U32>(c.expected)) << mnemonic;
    EXPECT_EQ(lds_get<U32>(m, 28), static_cast<U32>(c.old >> 32)) << mnemonic;
  }
  EXPECT_EQ(m.wave.vgpr[8][0], returns ? static_cast<U32>(c.old) : 77u) << mnemonic;
  EXPECT_EQ(m.wave.vgpr[9][0], returns && wide ? static_cast<U32>(c.old >> 32) : 0u) << mnemonic;
}

TEST(Lds, atomics) {
  for (const AtomicCase& c : kAtomics) {
    for (const bool returns : {false, true}) {
      check_atomic(c, returns, false);
      check_atomic(c, returns, true);
    }
  }
}

TEST(Lds, exchanges) {
  FakeMachine m;
  fill_lds(m);
  m.wave.set_exec(1);
  m.fill(4, [](unsigned) { return 1; });
  m.fill(5, [](unsigned) { return 2; });
  m.fill(6, [](unsigned) { return 3; });
  m.run(ds("ds_wrxchg_rtn_b32", 4));
  EXPECT_EQ(m.wave.vgpr[8][0], word(1));
  EXPECT_EQ(lds_get<U32>(m, 4), 1u);
  m.run(ds("ds_wrxchg_rtn_b64", 8));
  EXPECT_EQ(m.wave.vgpr[9][0], word(3));
  EXPECT_EQ(lds_get<U64>(m, 8), 1 | U64{2} << 32);
  m.run(ds("ds_wrxchg2_rtn_b32", 4 | 6 << 8));
  EXPECT_EQ(m.wave.vgpr[9][0], word(6));
  EXPECT_EQ(lds_get<U32>(m, 24), 3u);
  m.run(ds("ds_wrxchg2st64_rtn_b64", 1 | 2 << 8));
  EXPECT_EQ(m.wave.vgpr[8][0], word(128));
  EXPECT_EQ(m.wave.vgpr[11][0], word(257));
  EXPECT_EQ(lds_get<U64>(m, 512), 1 | U64{2} << 32);
}

TEST(Lds, wrapping_subtraction) {
  FakeMachine m;
  m.wave.set_exec(3);
  m.fill(4, [](unsigned) { return 4; });
  m.fill(6, [](unsigned) { return 10; });
  lds_set(m, 0, U32{5});
  m.run(ds("ds_wrap_rtn_b32"));
  EXPECT_EQ(m.wave.vgpr[8][1], 1u);
  EXPECT_EQ(lds_get<U32>(m, 0), 11u);
}

U32 bits(float value) { return std::bit_cast<U32>(value); }

float after_float(const char* mnemonic, float old, float data0, float data1 = 0,
                  U32 mode = mode::kDenormIn32 | mode::kDenormOut32) {
  FakeMachine m;
  m.wave.mode = mode;
  m.wave.set_exec(1);
  lds_set(m, 0, old);
  m.fill(4, [&](unsigned) { return bits(data0); });
  m.fill(6, [&](unsigned) { return bits(data1); });
  EXPECT_EQ(m.run(ds(mnemonic)), Outcome::kNext);
  return lds_get<float>(m, 0);
}

TEST(Lds, floats) {
  EXPECT_EQ(after_float("ds_add_f32", 1.5F, 2), 3.5F);
  EXPECT_EQ(after_float("ds_add_rtn_f32", 0x1p-149F, 0x1p-149F), 0x1p-148F);
  EXPECT_EQ(after_float("ds_add_f32", 0x1p-149F, 0x1p-149F, 0, 0), 0);
  EXPECT_EQ(after_float("ds_min_f32", 1.5F, -2), -2);
  EXPECT_EQ(after_float("ds_max_f32", 1.5F, -2), 1.5F);
  EXPECT_EQ(after_float("ds_max_f32", std::nanf(""), -2), -2);
  EXPECT_EQ(after_float("ds_max_f32", -2, std::nanf("")), -2);
  EXPECT_EQ(after_float("ds_cmpst_f32", -0.0F, 0.0F, 7), 7);
  EXPECT_EQ(after_float("ds_cmpst_f32", 1, 0, 7), 1);
}

TEST(Lds, doubles) {
  FakeMachine m;
  m.wave.set_exec(1);
  lds_set(m, 0, 1.5);
  m.fill(4, [](unsigned) { return 0; });
  m.fill(5, [](unsigned) { return std::bit_cast<U64>(2.0) >> 32; });
  m.run(ds("ds_add_f64"));
  EXPECT_EQ(lds_get<double>(m, 0), 3.5);
  m.run(ds("ds_min_rtn_f64"));
  EXPECT_EQ(lds_get<double>(m, 0), 2.0);
}

TEST(Lds, counting_active_lanes) {
  FakeMachine m;
  m.wave.scalar[operand::kM0] = 8;
  m.wave.set_exec(0xff);
  lds_set(m, 12, U32{100});
  m.run(ds("ds_append", 4));
  EXPECT_EQ(m.wave.vgpr[8][7], 100u);
  EXPECT_EQ(m.wave.vgpr[8][8], 0u);
  m.wave.set_exec(0xf);
  m.run(ds("ds_consume", 4));
  EXPECT_EQ(m.wave.vgpr[8][3], 108u);
  EXPECT_EQ(lds_get<U32>(m, 12), 104u);
}

TEST(Lds, swizzles) {
  FakeMachine m;
  m.fill(0, [](unsigned lane) { return 100 + lane; });
  m.run(ds("ds_swizzle_b32", 0x8000 | 0b00011011));  // quad reversed
  EXPECT_EQ(m.wave.vgpr[8][4], 107u);
  EXPECT_EQ(m.wave.vgpr[8][63], 160u);
  m.run(ds("ds_swizzle_b32", 0x1f | 0x10 << 10));  // lane ^ 16
  EXPECT_EQ(m.wave.vgpr[8][0], 116u);
  EXPECT_EQ(m.wave.vgpr[8][40], 156u);
  m.run(ds("ds_swizzle_b32", 0x18 | 0x3 << 5));  // the fourth of each eight
  EXPECT_EQ(m.wave.vgpr[8][45], 143u);
  m.wave.set_exec(2);
  m.run(ds("ds_swizzle_b32", 0x1e));
  EXPECT_EQ(m.wave.vgpr[8][1], 0u);
  EXPECT_EQ(m.run(ds("ds_swizzle_b32", 0xe000)), Outcome::kIllegal);
}

TEST(Lds, permutations) {
  FakeMachine m;
  m.fill(0, [](unsigned lane) { return 4 * (lane ^ 1) + 256; });
  m.fill(4, [](unsigned lane) { return 100 + lane; });
  m.run(ds("ds_permute_b32", 4));
  EXPECT_EQ(m.wave.vgpr[8][2], 100u);
  EXPECT_EQ(m.wave.vgpr[8][0], 162u);
  m.run(ds("ds_bpermute_b32"));
  EXPECT_EQ(m.wave.vgpr[8][6], 107u);
  m.wave.set_exec(0x3);
  m.fill(0, [](unsigned) { return 8; });
  m.run(ds("ds_bpermute_b32"));
  EXPECT_EQ(m.wave.vgpr[8][0], 0u);
  EXPECT_EQ(m.wave.vgpr[8][6], 107u);
  m.fill(0, [](unsigned) { return 4; });
  m.run(ds("ds_permute_b32"));
  EXPECT_EQ(m.wave.vgpr[8][0], 0u);
  EXPECT_EQ(m.wave.vgpr[8][1], 101u);
}

TEST(Lds, the_global_data_share_is_not_there) {
  FakeMachine m;
  for (const char* op : {"ds_read_b32", "ds_write_b32", "ds_add_u32", "ds_append", "ds_read2_b64"}) {
    Instruction instruction = ds(op);
    instruction.gds = true;
    EXPECT_EQ(m.run(instruction), Outcome::kIllegal);
  }
}

TEST(Lds, registers_must_exist) {
  FakeMachine m;
  Instruction instruction = ds("ds_read_b128");
  instruction.dst = v(61);
  EXPECT_EQ(m.run(instruction), Outcome::kIllegal);
  instruction = ds("ds_write2_b64");
  instruction.src[2] = v(63);
  EXPECT_EQ(m.run(instruction), Outcome::kIllegal);
}

TEST(Gws, a_wave_waits_for_as_many_as_its_first_active_lane_says) {
  FakeMachine m;
  m.fill(0, [](unsigned lane) { return 100 + lane; });
  m.wave.set_exec(0x30);
  EXPECT_EQ(m.run(ds("ds_gws_barrier")), Outcome::kGridBarrier);
  EXPECT_EQ(m.wave.barrier_waves, 105u);
  m.fill(0, [](unsigned) { return kMostBarrierWaves - 1; });
  EXPECT_EQ(m.run(ds("ds_gws_barrier")), Outcome::kGridBarrier);
  EXPECT_EQ(m.wave.barrier_waves, kMostBarrierWaves);
}

TEST(Gws, a_wave_without_active_lanes_does_not_wait_and_too_many_are_a_violation) {
  FakeMachine m;
  m.fill(0, [](unsigned) { return kMostBarrierWaves; });
  EXPECT_EQ(m.run(ds("ds_gws_barrier")), Outcome::kViolation);
  m.wave.set_exec(0);
  EXPECT_EQ(m.run(ds("ds_gws_barrier")), Outcome::kNext);
}

TEST(Gws, its_register_must_exist) {
  FakeMachine m;
  for (const char* op : {"ds_gws_barrier", "ds_gws_init"}) {
    Instruction instruction = ds(op);
    EXPECT_NE(m.run(instruction), Outcome::kIllegal) << op;
    instruction.src[0] = v(64);
    EXPECT_EQ(m.run(instruction), Outcome::kIllegal) << op;
  }
}

}  // namespace
}  // namespace gcn::lds_test
