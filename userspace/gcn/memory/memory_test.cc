// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of scalar_memory.cc, flat.cc, lane_memory.cc and atomics.cc. buffer_test.cc tests buffer.cc.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <thread>

#include "gcn/fake_memory.h"
#include "gcn/memory/atomics.h"

namespace gcn::memory_test {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr Address kBase = FakeMachine::kBase;
Instruction smem(std::string_view mnemonic, std::uint16_t sdata, int offset = 0,
                 std::uint16_t soffset = operand::kNone) {
  Instruction instruction = named_instruction(mnemonic);
  instruction.encoding = Encoding::kSmem;
  instruction.dst = sdata;
  instruction.src = {20, soffset, sdata, operand::kNone};
  instruction.offset = offset;
  return instruction;
}

TEST(ScalarMemory, loads_fill_registers) {
  FakeMachine m;
  m.wave.set_scalar64(20, kBase);
  for (U32 i = 0; i < 32; ++i) m.memory.set(kBase + 4 * i, 100 + i);
  EXPECT_EQ(m.run(smem("s_load_dword", 0, 8)), Outcome::kNext);
  EXPECT_EQ(m.wave.scalar[0], 102u);
  EXPECT_EQ(m.run(smem("s_load_dwordx2", 0, 16)), Outcome::kNext);
  EXPECT_EQ(m.wave.scalar64(0), 104 | U64{105} << 32);
  EXPECT_EQ(m.run(smem("s_load_dwordx4", 4, 4)), Outcome::kNext);
  EXPECT_EQ(m.wave.scalar[7], 104u);
  EXPECT_EQ(m.run(smem("s_load_dwordx8", 40)), Outcome::kNext);
  EXPECT_EQ(m.wave.scalar[47], 107u);
  EXPECT_EQ(m.run(smem("s_load_dwordx16", 60)), Outcome::kNext);
  EXPECT_EQ(m.wave.scalar[75], 115u);
  EXPECT_EQ(m.wave.pc, 0x1000u + 5 * 8);
}

TEST(ScalarMemory, offsets_are_added_and_the_low_bits_ignored) {
  FakeMachine m;
  m.wave.set_scalar64(20, kBase + 64);
  m.wave.scalar[operand::kM0] = 16;
  m.memory.set(kBase + 60, U32{1});
  m.memory.set(kBase + 80, U32{2});
  m.run(smem("s_load_dword", 0, -4));
  EXPECT_EQ(m.wave.scalar[0], 1u);
  m.run(smem("s_load_dword", 0, 3, operand::kM0));
  EXPECT_EQ(m.wave.scalar[0], 2u);
}

TEST(ScalarMemory, faults_leave_everything_as_it_is) {
  FakeMachine m;
  m.wave.set_scalar64(20, kBase + 65536 - 8);
  m.wave.scalar[0] = 7;
  EXPECT_EQ(m.run(smem("s_load_dwordx4", 0)), Outcome::kFault);
  EXPECT_EQ(m.wave.scalar[0], 7u);
  EXPECT_EQ(m.run(smem("s_store_dwordx4", 0)), Outcome::kFault);
  EXPECT_EQ(m.memory.get<U32>(kBase + 65536 - 8), 0u);
  EXPECT_EQ(m.wave.pc, 0x1000u);
}

TEST(ScalarMemory, stores_write_registers) {
  FakeMachine m;
  m.wave.set_scalar64(20, kBase);
  for (U32 i = 0; i < 4; ++i) m.wave.scalar[i] = 5 + i;
  m.run(smem("s_store_dword", 3));
  m.run(smem("s_store_dwordx2", 0, 8));
  m.run(smem("s_store_dwordx4", 0, 16));
  EXPECT_EQ(m.memory.get<U32>(kBase), 8u);
  EXPECT_EQ(m.memory.get<U32>(kBase + 12), 6u);
  EXPECT_EQ(m.memory.get<U32>(kBase + 28), 8u);
}

TEST(ScalarMemory, buffers_end_where_they_say) {
  FakeMachine m;
  m.wave.set_scalar64(20, kBase);
  m.wave.scalar[22] = 8;
  for (U32 i = 0; i < 8; ++i) m.memory.set(kBase + 4 * i, 100 + i);
  m.run(smem("s_buffer_load_dwordx4", 0));
  EXPECT_EQ(m.wave.scalar[1], 101u);
  EXPECT_EQ(m.wave.scalar[2], 0u);
  m.wave.scalar[21] |= 16u << 16;  // stride: records are 16 bytes
  m.run(smem("s_buffer_load_dwordx4", 0));
  EXPECT_EQ(m.wave.scalar[3], 103u);
  m.wave.scalar[22] = 1;
  m.run(smem("s_buffer_store_dwordx4", 0, 8));
  EXPECT_EQ(m.memory.get<U32>(kBase + 12), 101u);
  EXPECT_EQ(m.memory.get<U32>(kBase + 16), 104u);
}

TEST(ScalarMemory, atomics_return_with_glc) {
  FakeMachine m;
  m.wave.set_scalar64(20, kBase);
  m.memory.set(kBase, U32{10});
  m.wave.scalar[0] = 5;
  m.run(smem("s_atomic_add", 0));
  EXPECT_EQ(m.memory.get<U32>(kBase), 15u);
  EXPECT_EQ(m.wave.scalar[0], 5u);
  m.wave.scalar[1] = 15;
  Instruction cmpswap = smem("s_atomic_cmpswap", 0);
  cmpswap.glc = true;
  m.run(cmpswap);
  EXPECT_EQ(m.memory.get<U32>(kBase), 5u);
  EXPECT_EQ(m.wave.scalar[0], 15u);
  m.wave.scalar[22] = 4;
  m.run(smem("s_buffer_atomic_add_x2", 0));
  EXPECT_EQ(m.memory.get<U32>(kBase), 5u);
}

TEST(ScalarMemory, clocks) {
  FakeMachine m;
  m.wave.set_scalar64(0, 1);
  m.run(smem("s_memtime", 0));
  EXPECT_EQ(m.wave.scalar64(0), 0u);
  m.shared.clock = [] { return U64{0x123456789}; };
  m.run(smem("s_memtime", 0));
  EXPECT_EQ(m.wave.scalar64(0), 0x123456789u);
  m.run(smem("s_memrealtime", 2));
  EXPECT_EQ(m.wave.scalar64(2), 0x123456789u);
  EXPECT_EQ(m.run(smem("s_memtime", 127)), Outcome::kIllegal);
  EXPECT_EQ(m.run(smem("s_dcache_wb", operand::kNone)), Outcome::kNext);
}

// The tests have addresses in v[0:1], data in v[4...] and results in v[8...].
Instruction vmem(std::string_view mnemonic, int offset = 0, std::uint16_t saddr = operand::kNone) {
  Instruction instruction = named_instruction(mnemonic);
  instruction.encoding = Encoding::kGlobal;
  instruction.dst = v(8);
  instruction.src = {v(0), v(4), saddr, operand::kNone};
  instruction.offset = offset;
  return instruction;
}

// Lane l's address is `base` + l * `step`.
void set_addresses(FakeMachine& m, Address base, Address step) {
  m.fill(0, [&](unsigned lane) { return base + lane * step; });
  m.fill(1, [&](unsigned lane) { return (base + lane * step) >> 32; });
}

U32 word(unsigned n) { return 0x01010101u * n + 0x80c0e0f0; }

void fill_words(FakeMachine& m) {
  for (unsigned n = 0; n < 16384; ++n) m.memory.set(kBase + 4 * n, word(n));
}

TEST(Global, loads_of_all_sizes) {
  FakeMachine m;
  fill_words(m);
  set_addresses(m, kBase, 16);
  struct {
    const char* op;
    unsigned words;
  } const kSizes[] = {
      {"global_load_dword", 1}, {"global_load_dwordx2", 2}, {"global_load_dwordx3", 3}, {"global_load_dwordx4", 4}};
  for (const auto& size : kSizes) {
    for (unsigned i = 0; i < 4; ++i) m.fill(8 + i, [](unsigned) { return 7; });
    ASSERT_EQ(m.run(vmem(size.op, 4)), Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned i = 0; i < 4; ++i) {
        ASSERT_EQ(m.wave.vgpr[8 + i][lane], i < size.words ? word(4 * lane + 1 + i) : 7u) << size.op << lane;
      }
    }
  }
}

TEST(Global, small_loads_are_extended_or_take_half_a_register) {
  FakeMachine m;
  set_addresses(m, kBase, 0);
  m.memory.set(kBase, U32{0x12348685});
  struct {
    const char* op;
    U32 expected;
  } const kCases[] = {{"global_load_ubyte", 0x85},           {"global_load_sbyte", 0xffffff85},
                      {"global_load_ushort", 0x8685},        {"global_load_sshort", 0xffff8685},
                      {"global_load_ubyte_d16", 0xaaaa0085}, {"global_load_ubyte_d16_hi", 0x0085bbbb},
                      {"global_load_sbyte_d16", 0xaaaaff85}, {"global_load_sbyte_d16_hi", 0xff85bbbb},
                      {"global_load_short_d16", 0xaaaa8685}, {"global_load_short_d16_hi", 0x8685bbbb}};
  for (const auto& c : kCases) {
    m.fill(8, [](unsigned) { return 0xaaaabbbb; });
    ASSERT_EQ(m.run(vmem(c.op)), Outcome::kNext);
    EXPECT_EQ(m.wave.vgpr[8][63], c.expected) << c.op;
  }
}

TEST(Global, stores_write_no_more_than_their_bytes) {
  struct {
    const char* op;
    std::array<U32, 4> expected;
  } const kCases[] = {{"global_store_byte", {0x111111a0, 0x11111111, 0x11111111, 0x11111111}},
                      {"global_store_byte_d16_hi", {0x111111c0, 0x11111111, 0x11111111, 0x11111111}},
                      {"global_store_short", {0x1111b0a0, 0x11111111, 0x11111111, 0x11111111}},
                      {"global_store_short_d16_hi", {0x1111d0c0, 0x11111111, 0x11111111, 0x11111111}},
                      {"global_store_dword", {0xd0c0b0a0, 0x11111111, 0x11111111, 0x11111111}},
                      {"global_store_dwordx2", {0xd0c0b0a0, 5, 0x11111111, 0x11111111}},
                      {"global_store_dwordx3", {0xd0c0b0a0, 5, 6, 0x11111111}},
                      {"global_store_dwordx4", {0xd0c0b0a0, 5, 6, 7}}};
  for (const auto& c : kCases) {
    FakeMachine m;
    std::fill(m.memory.bytes().begin(), m.memory.bytes().end(), std::byte{0x11});
    set_addresses(m, kBase, 16);
    m.fill(4, [](unsigned) { return 0xd0c0b0a0; });
    for (unsigned i = 1; i < 4; ++i) m.fill(4 + i, [&](unsigned) { return 4 + i; });
    m.wave.set_exec(U64{1} << 5);
    ASSERT_EQ(m.run(vmem(c.op)), Outcome::kNext);
    EXPECT_EQ((m.memory.get<std::array<U32, 4>>(kBase + 80)), c.expected) << c.op;
    EXPECT_EQ(m.memory.get<U32>(kBase + 96), 0x11111111u);
  }
}

TEST(Global, inactive_lanes_neither_load_nor_fault) {
  FakeMachine m;
  fill_words(m);
  set_addresses(m, kBase, 4);
  m.wave.vgpr[1][3] = 0xdead;
  m.fill(8, [](unsigned) { return 9; });
  m.wave.set_exec(~(U64{1} << 3));
  EXPECT_EQ(m.run(vmem("global_load_dword")), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][3], 9u);
  EXPECT_EQ(m.wave.vgpr[8][4], word(4));
}

TEST(Global, scalar_base_with_vector_offset_and_negative_constant) {
  FakeMachine m;
  fill_words(m);
  m.wave.set_scalar64(30, kBase);
  m.fill(0, [](unsigned lane) { return 8 + 4 * lane; });
  EXPECT_EQ(m.run(vmem("global_load_dword", -8, 30)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][63], word(63));
}

TEST(Global, destination_may_be_the_address) {
  FakeMachine m;
  fill_words(m);
  set_addresses(m, kBase, 8);
  Instruction load = vmem("global_load_dwordx2");
  load.dst = v(0);
  EXPECT_EQ(m.run(load), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[0][10], word(20));
  EXPECT_EQ(m.wave.vgpr[1][10], word(21));
}

TEST(Global, unaligned_and_piecemeal_memory) {
  FakeMachine m;
  fill_words(m);
  for (const std::size_t run : {1u, 2u, 4u, 64u, 4096u}) {
    m.memory.longest_run = run;
    set_addresses(m, kBase + 4093, 17);
    ASSERT_EQ(m.run(vmem("global_load_dwordx4")), Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned i = 0; i < 4; ++i) {
        ASSERT_EQ(m.wave.vgpr[8 + i][lane], m.memory.get<U32>(kBase + 4093 + 17 * lane + 4 * i)) << run << ' ' << lane;
      }
    }
  }
}

TEST(Global, unaligned_stores_over_pieces) {
  FakeMachine m;
  m.memory.longest_run = 2;
  set_addresses(m, kBase + 1, 9);
  m.fill(4, [](unsigned lane) { return word(lane); });
  m.fill(5, [](unsigned lane) { return word(lane + 100); });
  ASSERT_EQ(m.run(vmem("global_store_dwordx2")), Outcome::kNext);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(m.memory.get<U32>(kBase + 1 + 9 * lane), word(lane));
    EXPECT_EQ(m.memory.get<U32>(kBase + 5 + 9 * lane), word(lane + 100));
  }
}

TEST(Global, a_fault_of_one_lane_undoes_all) {
  FakeMachine m;
  set_addresses(m, kBase, 4);
  m.fill(4, [](unsigned) { return 1; });
  m.wave.vgpr[1][63] = 0;
  EXPECT_EQ(m.run(vmem("global_store_dword")), Outcome::kFault);
  EXPECT_EQ(m.run(vmem("global_atomic_add")), Outcome::kFault);
  EXPECT_EQ(m.memory.get<U32>(kBase), 0u);
  EXPECT_EQ(m.run(vmem("global_load_dword")), Outcome::kFault);
  EXPECT_EQ(m.wave.pc, 0x1000u);
  set_addresses(m, kBase, 4);
  m.memory.writable = false;
  EXPECT_EQ(m.run(vmem("global_store_dword")), Outcome::kFault);
  EXPECT_EQ(m.run(vmem("global_load_dword")), Outcome::kNext);
}

TEST(Global, neighbours_are_looked_up_once) {
  FakeMachine m;
  set_addresses(m, kBase + 256, 4);
  m.run(vmem("global_load_dword"));
  EXPECT_EQ(m.memory.maps, 1u);
}

TEST(Global, registers_must_exist) {
  FakeMachine m;
  set_addresses(m, kBase, 16);
  Instruction load = vmem("global_load_dwordx4");
  load.dst = v(61);
  EXPECT_EQ(m.run(load), Outcome::kIllegal);
  load.dst = v(60);
  EXPECT_EQ(m.run(load), Outcome::kNext);
  load.src[0] = v(63);
  EXPECT_EQ(m.run(load), Outcome::kIllegal);
  load.src[0] = 5;
  EXPECT_EQ(m.run(load), Outcome::kIllegal);
}

TEST(Global, data_in_accumulation_registers) {
  FakeMachine m;
  fill_words(m);
  set_addresses(m, kBase, 4);
  m.wave.agpr.resize(16);
  Instruction load = vmem("global_load_dword");
  load.agpr = true;
  m.run(load);
  EXPECT_EQ(m.wave.agpr[8][2], word(2));
  EXPECT_EQ(m.wave.vgpr[8][2], 0u);
}

struct AtomicCase {
  const char* op;
  U64 old, data, compare, expected;
};

constexpr U64 kMinus = ~U64{0};

const AtomicCase kAtomics[] = {{"swap", 1, 2, 0, 2},      {"cmpswap", 1, 2, 1, 2},      {"cmpswap", 1, 2, 3, 1},
                               {"add", kMinus, 3, 0, 2},  {"sub", 1, 3, 0, kMinus - 1}, {"smin", kMinus, 3, 0, kMinus},
                               {"umin", kMinus, 3, 0, 3}, {"smax", kMinus, 3, 0, 3},    {"umax", kMinus, 3, 0, kMinus},
                               {"and", 0xc, 0xa, 0, 0x8}, {"or", 0xc, 0xa, 0, 0xe},     {"xor", 0xc, 0xa, 0, 0x6},
                               {"inc", 4, 5, 0, 5},       {"inc", 5, 5, 0, 0},          {"inc", 9, 5, 0, 0},
                               {"dec", 4, 5, 0, 3},       {"dec", 0, 5, 0, 5},          {"dec", 6, 5, 0, 5}};

void check_atomic32(std::string_view prefix, const AtomicCase& c, Address address) {
  FakeMachine m;
  m.wave.set_scalar64(operand::kFlatScratchLo, kBase);
  m.memory.set(kBase, static_cast<U32>(c.old));
  std::memcpy(m.lds.data(), &c.old, 8);
  set_addresses(m, address, 0);
  m.wave.set_exec(1);
  m.fill(4, [&](unsigned) { return c.data; });
  m.fill(5, [&](unsigned) { return c.compare; });
  Instruction instruction = vmem(std::string(prefix) + "atomic_" + c.op);
  instruction.glc = true;
  ASSERT_EQ(m.run(instruction), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][0], static_cast<U32>(c.old)) << c.op;
  U32 now = m.memory.get<U32>(kBase);
  if (address == FakeMachine::kSharedBase) std::memcpy(&now, m.lds.data(), 4);
  EXPECT_EQ(now, static_cast<U32>(c.expected)) << c.op;
}

TEST(Global, atomics_of_dwords) {
  for (const AtomicCase& c : kAtomics) check_atomic32("global_", c, kBase);
}

TEST(Flat, atomics_reach_all_segments) {
  for (const AtomicCase& c : kAtomics) {
    check_atomic32("flat_", c, kBase);
    check_atomic32("flat_", c, FakeMachine::kSharedBase);
    check_atomic32("flat_", c, FakeMachine::kPrivateBase);
  }
}

void check_atomic64(const AtomicCase& c, std::string_view prefix) {
  FakeMachine m;
  m.memory.set(kBase, c.old);
  set_addresses(m, kBase, 0);
  m.wave.set_exec(1);
  m.fill(4, [&](unsigned) { return c.data; });
  m.fill(5, [&](unsigned) { return c.data >> 32; });
  m.fill(6, [&](unsigned) { return c.compare; });
  m.fill(7, [&](unsigned) { return c.compare >> 32; });
  Instruction instruction = vmem(std::string(prefix) + "atomic_" + c.op + "_x2");
  instruction.glc = true;
  ASSERT_EQ(m.run(instruction), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][0] | U64{m.wave.vgpr[9][0]} << 32, c.old) << c.op;
  EXPECT_EQ(m.memory.get<U64>(kBase), c.expected) << c.op;
}

TEST(Global, atomics_of_pairs) {
  for (const AtomicCase& c : kAtomics) {
    check_atomic64(c, "global_");
    check_atomic64(c, "flat_");
  }
}

TEST(Global, lanes_take_turns_at_one_address) {
  FakeMachine m;
  set_addresses(m, kBase, 0);
  m.fill(4, [](unsigned) { return 1; });
  Instruction instruction = vmem("global_atomic_add");
  m.run(instruction);
  EXPECT_EQ(m.memory.get<U32>(kBase), 64u);
  EXPECT_EQ(m.wave.vgpr[8][5], 0u);
  instruction.glc = true;
  m.run(instruction);
  EXPECT_EQ(m.memory.get<U32>(kBase), 128u);
  EXPECT_EQ(m.wave.vgpr[8][5], 69u);
}

// Memory that several threads share.
class Bytes : public Memory {
 public:
  explicit Bytes(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> map(Address address, std::size_t limit, Access /*access*/) override {
    const std::size_t offset = address - kBase;
    return offset < bytes_.size() ? bytes_.subspan(offset, std::min(limit, bytes_.size() - offset))
                                  : std::span<std::byte>();
  }

 private:
  std::span<std::byte> bytes_;
};

// Threads access one dword without order. ThreadSanitizer must find no race: the program under test may have one, the
// interpreter may not.
TEST(Global, waves_of_two_threads_meet_in_memory) {
  constexpr unsigned kRounds = 200;
  FlatMemory memory(kBase, 4096);
  const auto work = [&](std::string_view other) {
    FakeMachine m;
    Bytes bytes(memory.bytes());
    set_addresses(m, kBase, 0);
    m.fill(4, [](unsigned) { return 1; });
    Machine machine{m.wave, m.shared, bytes};
    for (unsigned round = 0; round < kRounds; ++round) {
      execute(vmem("global_atomic_add"), machine);
      execute(vmem(other, 8), machine);
      execute(vmem("global_load_dwordx4", 6), machine);
      execute(vmem("global_store_dword", 17), machine);
    }
  };
  std::thread first(work, "global_store_dwordx2");
  std::thread second(work, "global_store_short");
  first.join();
  second.join();
  EXPECT_EQ(memory.get<U32>(kBase), 2 * kRounds * kLanes);
}

TEST(Global, unaligned_atomics_are_violations) {
  FakeMachine m;
  set_addresses(m, kBase + 2, 0);
  EXPECT_EQ(m.run(vmem("global_atomic_add")), Outcome::kViolation);
  set_addresses(m, kBase + 4, 0);
  EXPECT_EQ(m.run(vmem("global_atomic_add_x2")), Outcome::kViolation);
  EXPECT_EQ(m.run(vmem("global_atomic_add")), Outcome::kNext);
}

U32 float_bits(float value) { return std::bit_cast<U32>(value); }

TEST(Global, float_atomics) {
  FakeMachine m;
  m.wave.set_exec(1);
  set_addresses(m, kBase, 0);
  m.memory.set(kBase, 1.5F);
  m.fill(4, [](unsigned) { return float_bits(2.25F); });
  EXPECT_EQ(m.run(vmem("global_atomic_add_f32")), Outcome::kNext);
  EXPECT_EQ(m.memory.get<float>(kBase), 3.75F);
  m.memory.set(kBase, 0x1p-149F);
  m.fill(4, [](unsigned) { return float_bits(0x1p-149F); });
  m.run(vmem("global_atomic_add_f32"));
  EXPECT_EQ(m.memory.get<U32>(kBase), 0u);
  m.memory.set(kBase, 0x1p-1074);
  m.fill(4, [](unsigned) { return 1; });
  m.fill(5, [](unsigned) { return 0; });
  m.run(vmem("global_atomic_add_f64"));
  EXPECT_EQ(m.memory.get<double>(kBase), 0x1p-1073);
  m.run(vmem("global_atomic_min_f64"));
  EXPECT_EQ(m.memory.get<double>(kBase), 0x1p-1074);
  m.memory.set(kBase, std::nan(""));
  m.run(vmem("flat_atomic_max_f64"));
  EXPECT_EQ(m.memory.get<double>(kBase), 0x1p-1074);
}

TEST(Global, packed_halves_are_added_apart) {
  FakeMachine m;
  m.wave.set_exec(1);
  set_addresses(m, kBase, 0);
  m.memory.set(kBase, U32{0x3c00'0001});            // 1, smallest denormal
  m.fill(4, [](unsigned) { return 0x4000'0001; });  // 2, smallest denormal
  m.run(vmem("global_atomic_pk_add_f16"));
  EXPECT_EQ(m.memory.get<U32>(kBase), 0x4200'0002u);
}

TEST(Halves, conversion_rounds_to_nearest_even) {
  using float_atomics::double_to_half;
  using float_atomics::half_to_double;
  for (U32 half = 0; half < 0x10000; ++half) {
    if ((half & 0x7fff) > 0x7c00) continue;
    ASSERT_EQ(double_to_half(half_to_double(half)), half);
  }
  EXPECT_EQ(double_to_half(65519.99), 0x7bffu);
  EXPECT_EQ(double_to_half(-65520), 0xfc00u);
  EXPECT_EQ(double_to_half(2049), 0x6800u);
  EXPECT_EQ(double_to_half(2051), 0x6802u);
  EXPECT_EQ(double_to_half(0x1p-25), 0u);
  EXPECT_EQ(double_to_half(0x1.8p-25), 1u);
  EXPECT_EQ(double_to_half(0x1.ffcp-15 + 0x1p-26), 0x0400u);
  EXPECT_EQ(double_to_half(std::nan("")), 0x7e00u);
}

TEST(Flat, addresses_choose_the_segment) {
  FakeMachine m;
  m.wave.set_scalar64(operand::kFlatScratchLo, kBase + 8192);
  m.memory.set(kBase + 16, U32{1});
  const U32 two = 2;
  std::memcpy(&m.lds[20], &two, 4);
  m.memory.set(kBase + 8192 + 5 * 256 + 2 * 4, U32{3});
  set_addresses(m, kBase + 16, 0);
  const auto aim = [&](unsigned lane, Address address) {
    m.wave.vgpr[0][lane] = static_cast<U32>(address);
    m.wave.vgpr[1][lane] = static_cast<U32>(address >> 32);
  };
  aim(1, FakeMachine::kSharedBase + 20);
  aim(2, FakeMachine::kPrivateBase + 20);
  EXPECT_EQ(m.run(vmem("flat_load_dword")), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][0], 1u);
  EXPECT_EQ(m.wave.vgpr[8][1], 2u);
  EXPECT_EQ(m.wave.vgpr[8][2], 3u);
  aim(1, FakeMachine::kSharedBase + 4093);
  EXPECT_EQ(m.run(vmem("flat_load_dword")), Outcome::kViolation);
}

// "For a FLAT instruction the hardware decides [...] based on the high bits of vaddr, ignoring the offset field"
// (LLVM, AMDGPUDAGToDAGISel::SelectFlatOffsetImpl).
TEST(Flat, the_constant_offset_does_not_change_the_segment) {
  FakeMachine m;
  m.wave.set_scalar64(operand::kFlatScratchLo, kBase + 8192);
  const U32 two = 2;
  std::memcpy(&m.lds[20], &two, 4);
  m.memory.set(kBase + 8192 + 5 * 256, U32{3});
  m.wave.set_exec(1);
  const auto load = [&](Address pair, int offset) {
    m.wave.vgpr[0][0] = static_cast<U32>(pair);
    m.wave.vgpr[1][0] = static_cast<U32>(pair >> 32);
    m.wave.vgpr[8][0] = 0;
    return m.run(vmem("flat_load_dword", offset));
  };
  EXPECT_EQ(load(FakeMachine::kSharedBase - 16, 36), Outcome::kFault) << "in global memory";
  EXPECT_EQ(load(FakeMachine::kPrivateBase - 16, 36), Outcome::kFault);
  EXPECT_EQ(load(FakeMachine::kSharedBase + 0xfffffff0, 36), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][0], 2u);
  EXPECT_EQ(load(FakeMachine::kPrivateBase + 0xfffffff0, 36), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][0], 3u);
}

TEST(Scratch, dwords_of_all_lanes_lie_together) {
  FakeMachine m;
  m.wave.set_scalar64(operand::kFlatScratchLo, kBase);
  m.fill(0, [](unsigned) { return 8; });
  for (unsigned i = 0; i < 4; ++i) m.fill(4 + i, [&](unsigned lane) { return 1000 * i + lane; });
  EXPECT_EQ(m.run(vmem("scratch_store_dwordx4", 4)), Outcome::kNext);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      ASSERT_EQ(m.memory.get<U32>(kBase + (3 + i) * 256 + 4 * lane), 1000 * i + lane);
    }
  }
  m.wave.scalar[30] = 12;
  EXPECT_EQ(m.run(vmem("scratch_load_dwordx3", 4, 30)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][7], 1007u);
  EXPECT_EQ(m.wave.vgpr[10][7], 3007u);
}

TEST(Scratch, bytes_of_a_lane_are_contiguous_for_the_lane) {
  FakeMachine m;
  m.wave.set_scalar64(operand::kFlatScratchLo, kBase);
  m.fill(4, [](unsigned lane) { return 0x03020100 + 0x04040404 * lane; });
  m.fill(5, [](unsigned lane) { return 0x83828180 + 0x04040404 * lane; });
  m.fill(0, [](unsigned) { return 0; });
  m.run(vmem("scratch_store_dwordx2"));
  EXPECT_EQ(m.run(vmem("scratch_load_dword", 3)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[8][2], 0x8a89880bu);
  m.run(vmem("scratch_load_sshort", 3));
  EXPECT_EQ(m.wave.vgpr[8][2], 0xffff880bu);
  m.run(vmem("scratch_load_ubyte", 7));
  EXPECT_EQ(m.wave.vgpr[8][2], 0x8bu);
}

}  // namespace
}  // namespace gcn::memory_test
