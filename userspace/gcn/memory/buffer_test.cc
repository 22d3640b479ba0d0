// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of buffer.cc.
#include <gtest/gtest.h>

#include "gcn/fake_memory.h"

namespace gcn::buffer_test {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr Address kBase = FakeMachine::kBase;

U32 word(unsigned n) { return 0x01010101u * n + 0x80c0e0f0; }

void fill_words(FakeMachine& m) {
  for (unsigned n = 0; n < 16384; ++n) m.memory.set(kBase + 4 * n, word(n));
}

struct Descriptor {
  U32 stride = 0;
  bool swizzle = false;
  U32 records = 65536;
  U32 index_stride = 0;  // as encoded: 8 << this
  bool add_tid = false;
  U32 data_format = 4;
};

// The descriptor is in s[8:11], soffset is s12.
void describe_buffer(FakeMachine& m, const Descriptor& d) {
  m.wave.scalar[8] = static_cast<U32>(kBase);
  m.wave.scalar[9] = static_cast<U32>(kBase >> 32) | d.stride << 16 | (d.swizzle ? 1u << 31 : 0);
  m.wave.scalar[10] = d.records;
  m.wave.scalar[11] = d.data_format << 15 | d.index_stride << 21 | (d.add_tid ? 1u << 23 : 0);
}

enum Addresses { kNoAddress, kOffset, kIndex, kBoth };

// The tests have addresses in v[0:1], data in v[4...] and results in v[8...].
Instruction mubuf(std::string_view mnemonic, Addresses addresses, int offset = 0) {
  Instruction instruction = named_instruction(mnemonic);
  instruction.encoding = Encoding::kMubuf;
  instruction.dst = v(8);
  instruction.src = {v(0), v(4), 8, 12};
  instruction.offset = offset;
  instruction.offen = addresses == kOffset || addresses == kBoth;
  instruction.idxen = addresses == kIndex || addresses == kBoth;
  return instruction;
}

TEST(Buffer, raw_offsets_are_added) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {});
  m.wave.scalar[12] = 64;
  m.fill(0, [](unsigned lane) { return 8 * lane; });
  EXPECT_EQ(m.run(mubuf("buffer_load_dwordx2", kOffset, 16)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][5], word(16 + 4 + 10));
  EXPECT_EQ(m.wave.vgpr[9][5], word(16 + 4 + 11));
  m.run(mubuf("buffer_load_dword", kNoAddress, 4));
  EXPECT_EQ(m.wave.vgpr[8][63], word(17));
}

TEST(Buffer, index_counts_strides) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {.stride = 12, .records = 64});
  m.fill(0, [](unsigned lane) { return lane; });
  m.fill(1, [](unsigned) { return 4; });
  m.run(mubuf("buffer_load_dword", kIndex, 8));
  EXPECT_EQ(m.wave.vgpr[8][5], word(17));
  m.run(mubuf("buffer_load_dword", kBoth));
  EXPECT_EQ(m.wave.vgpr[8][5], word(16));
}

TEST(Buffer, small_loads_and_stores) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {});
  m.fill(0, [](unsigned lane) { return lane; });
  m.run(mubuf("buffer_load_sbyte", kOffset));
  EXPECT_EQ(m.wave.vgpr[8][3], 0xffffff80u);
  m.fill(4, [](unsigned lane) { return lane << 16; });
  m.run(mubuf("buffer_store_byte_d16_hi", kOffset));
  EXPECT_EQ(m.memory.get<U32>(kBase + 60), 0x3f3e3d3cu);
}

TEST(Buffer, raw_range_is_checked_dword_by_dword) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {.records = 24});
  m.wave.scalar[12] = 8;
  m.fill(0, [](unsigned lane) { return 8 * lane; });
  EXPECT_EQ(m.run(mubuf("buffer_load_dwordx3", kOffset)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[10][0], word(4));
  EXPECT_EQ(m.wave.vgpr[9][1], word(5));
  EXPECT_EQ(m.wave.vgpr[10][1], 0u);
  EXPECT_EQ(m.wave.vgpr[8][2], 0u);
  m.run(mubuf("buffer_store_dwordx2", kOffset, 4));
  EXPECT_EQ(m.memory.get<U32>(kBase + 20), 0u);
  EXPECT_EQ(m.memory.get<U32>(kBase + 24), word(6));
}

TEST(Buffer, far_away_lanes_are_out_of_range_not_faults) {
  FakeMachine m;
  describe_buffer(m, {.records = 0xffff});
  m.fill(0, [](unsigned) { return 0xfffffff8; });
  m.fill(8, [](unsigned) { return 5; });
  EXPECT_EQ(m.run(mubuf("buffer_load_dword", kOffset, 4)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][0], 0u);
  m.fill(8, [](unsigned) { return 5; });
  EXPECT_EQ(m.run(mubuf("buffer_load_dwordx2", kOffset, 4)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[9][0], 0u) << "the second dword does not begin anew at offset 0";
}

// -8 * lane + 512, as the compiler addresses an array that it walks backwards.
TEST(Buffer, a_negative_offset_in_a_register_and_a_constant_make_a_sum_of_32_bits) {
  for (const bool swizzle : {false, true}) {
    FakeMachine m;
    fill_words(m);
    describe_buffer(m, {.swizzle = swizzle, .index_stride = 3, .add_tid = swizzle});
    m.fill(0, [](unsigned lane) { return 0u - 8 * lane; });
    EXPECT_EQ(m.run(mubuf("buffer_load_dword", kOffset, 512)), Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned element = (512 - 8 * lane) / 4;
      ASSERT_EQ(m.wave.vgpr[8][lane], word(swizzle ? element * 64 + lane : element)) << lane;
    }
    m.fill(4, [](unsigned lane) { return 1000 + lane; });
    EXPECT_EQ(m.run(mubuf("buffer_store_dword", kOffset, 1024)), Outcome::kNext);
    EXPECT_EQ(m.memory.get<U32>(kBase + (swizzle ? 254 * 256 + 4 : 1016)), 1001u);
  }
}

TEST(Buffer, the_lane_is_added_to_an_index_of_32_bits) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {.stride = 8, .records = 64, .add_tid = true, .data_format = 0});
  m.fill(0, [](unsigned) { return 0u - 2; });
  EXPECT_EQ(m.run(mubuf("buffer_load_dword", kIndex)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][0], 0u);
  EXPECT_EQ(m.wave.vgpr[8][2], word(0));
  EXPECT_EQ(m.wave.vgpr[8][5], word(6));
}

TEST(Buffer, structured_range_counts_records) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {.stride = 16, .records = 3});
  m.fill(0, [](unsigned lane) { return lane; });
  m.run(mubuf("buffer_load_dword", kIndex));
  EXPECT_EQ(m.wave.vgpr[8][2], word(8));
  EXPECT_EQ(m.wave.vgpr[8][3], 0u);
}

TEST(Buffer, scratch_descriptors_interleave_lanes) {
  FakeMachine m;
  describe_buffer(m, {.swizzle = true, .index_stride = 3, .add_tid = true});
  m.wave.scalar[12] = 1024;
  m.fill(0, [](unsigned) { return 8; });
  for (unsigned i = 0; i < 4; ++i) m.fill(4 + i, [&](unsigned lane) { return 1000 * i + lane; });
  EXPECT_EQ(m.run(mubuf("buffer_store_dwordx4", kOffset, 4)), Outcome::kNext);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      ASSERT_EQ(m.memory.get<U32>(kBase + 1024 + (3 + i) * 256 + 4 * lane), 1000 * i + lane);
    }
  }
  EXPECT_EQ(m.run(mubuf("buffer_load_dwordx2", kOffset, 8)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[9][7], 2007u);
  m.run(mubuf("buffer_load_ushort", kOffset, 10));
  EXPECT_EQ(m.wave.vgpr[8][7], 0u);
  m.run(mubuf("buffer_load_ushort", kOffset, 8));
  EXPECT_EQ(m.wave.vgpr[8][7], 1007u);
}

TEST(Buffer, swizzled_structures) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {.stride = 8, .swizzle = true, .records = 64});
  m.fill(0, [](unsigned lane) { return lane; });
  m.run(mubuf("buffer_load_dword", kIndex, 4));
  // Eight indices of two elements: the second elements of indices 8 to 15 begin at dword 16 + 8.
  EXPECT_EQ(m.wave.vgpr[8][9], word(25));
  m.run(mubuf("buffer_load_dword", kIndex, 8));
  EXPECT_EQ(m.wave.vgpr[8][9], 0u);
}

TEST(Buffer, atomics) {
  FakeMachine m;
  describe_buffer(m, {.records = 16});
  m.fill(0, [](unsigned lane) { return lane * 4; });
  m.fill(4, [](unsigned lane) { return lane + 1; });
  m.fill(8, [](unsigned) { return 5; });
  m.memory.set(kBase + 12, U32{10});
  Instruction instruction = mubuf("buffer_atomic_add", kOffset);
  instruction.glc = true;
  EXPECT_EQ(m.run(instruction), Outcome::kNext);
  EXPECT_EQ(m.memory.get<U32>(kBase + 12), 14u);
  EXPECT_EQ(m.memory.get<U32>(kBase + 16), 0u);
  EXPECT_EQ(m.wave.vgpr[8][3], 10u);
  EXPECT_EQ(m.wave.vgpr[8][4], 0u);
  EXPECT_EQ(m.run(mubuf("buffer_atomic_add_x2", kOffset)), Outcome::kViolation);
}

TEST(Buffer, loads_into_lds) {
  FakeMachine m;
  fill_words(m);
  describe_buffer(m, {});
  m.wave.scalar[operand::kM0] = 0x10040;
  m.fill(0, [](unsigned lane) { return 8 * lane; });
  Instruction instruction = mubuf("buffer_load_dword", kOffset, 4);
  instruction.lds = true;
  EXPECT_EQ(m.run(instruction), Outcome::kNext);
  U32 value = 0;
  std::memcpy(&value, &m.lds[0x44 + 4 * 5], 4);
  EXPECT_EQ(value, word(11));
  instruction = mubuf("buffer_load_dwordx2", kOffset);
  instruction.lds = true;
  EXPECT_EQ(m.run(instruction), Outcome::kIllegal);
}

TEST(Buffer, faults_leave_everything_as_it_is) {
  FakeMachine m;
  describe_buffer(m, {.records = 0xffffffff});
  m.fill(0, [](unsigned lane) { return lane < 63 ? 0 : 65536; });
  m.fill(4, [](unsigned) { return 1; });
  EXPECT_EQ(m.run(mubuf("buffer_store_dword", kOffset)), Outcome::kFault);
  EXPECT_EQ(m.memory.get<U32>(kBase), 0u);
  EXPECT_EQ(m.wave.pc, 0x1000u);
}

TEST(Buffer, caches_are_not_there) {
  FakeMachine m;
  for (const char* op : {"buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_wbl2", "buffer_invl2"}) {
    EXPECT_EQ(m.run(mubuf(op, kNoAddress)), Outcome::kNext);
  }
}

}  // namespace
}  // namespace gcn::buffer_test
