// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Executes random dwords as instructions: no instruction may access anything beyond the wave's own state and memory,
// and one that cannot be executed must have changed nothing.
#include <gtest/gtest.h>

#include <random>

#include "gcn/decode/decode.h"
#include "gcn/fake_memory.h"
#include "gcn/text/disassemble.h"

namespace gcn::hostile_test {
namespace {

// The bits by which the decoder recognises an encoding; the test fills the others at random.
struct Prefix {
  const char* name;
  std::uint32_t value;
  std::uint32_t mask;
};
constexpr Prefix kPrefixes[] = {
    {"SOP2", 0x80000000, 0xc0000000}, {"SOPK", 0xb0000000, 0xf0000000},  {"SOP1", 0xbe800000, 0xff800000},
    {"SOPC", 0xbf000000, 0xff800000}, {"SOPP", 0xbf800000, 0xff800000},  {"SMEM", 0xc0000000, 0xfc000000},
    {"VOP2", 0x00000000, 0x80000000}, {"VOP1", 0x7e000000, 0xfe000000},  {"VOPC", 0x7c000000, 0xfe000000},
    {"VOP3", 0xd0000000, 0xfc000000}, {"VOP3P", 0xd3800000, 0xff800000}, {"DS", 0xd8000000, 0xfc000000},
    {"FLAT", 0xdc000000, 0xfc000000}, {"MUBUF", 0xe0000000, 0xfc000000}, {"MTBUF", 0xe8000000, 0xfc000000},
};
constexpr unsigned kWaves = 40;
constexpr unsigned kInstructionsPerWave = 100;
constexpr std::size_t kMemory = 8192;

// A wave with few registers and little memory, so that random register numbers and addresses are often, but not always,
// valid.
class Victim {
 public:
  Victim(Isa isa, unsigned seed) : random_(seed) {
    wave.isa = isa;
    wave.sgprs = 48;
    wave.vgpr.resize(160);
    wave.agpr.resize(isa == Isa::kGfx90a ? 96 : 160);
    shared.lds = lds_;
    shared.shared_base = FakeMachine::kSharedBase;
    shared.private_base = FakeMachine::kPrivateBase;
    memory.longest_run = 256;
    for (unsigned number = 0; number < kScalars; number += 2) wave.set_scalar64(number, address());
    wave.scalar[operand::kM0] = word() % 4096;
    wave.set_exec(random_() & random_());
    for (std::size_t n = 0; n + 1 < wave.vgpr.size(); n += 2) fill(wave.vgpr[n], wave.vgpr[n + 1]);
    for (Vgpr& reg : wave.agpr) reg.fill(word());
  }

  std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }

  Wave wave;
  Shared shared;
  FlatMemory memory{FakeMachine::kBase, kMemory};
  Machine machine{wave, shared, memory};

 private:
  Address address() {
    constexpr std::array kBases = {FakeMachine::kBase, FakeMachine::kSharedBase, FakeMachine::kPrivateBase};
    const Address offset = random_() % 3 == 0 ? 0 : random_() % kMemory;
    return random_() % 4 == 0 ? random_() : kBases[random_() % kBases.size()] + offset;
  }
  void fill(Vgpr& low, Vgpr& high) {
    const Address first = address() & ~Address{15};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      low[lane] = static_cast<std::uint32_t>(first + 8 * lane);
      high[lane] = static_cast<std::uint32_t>(first >> 32);
    }
  }

  std::mt19937_64 random_;
  std::array<std::byte, 512> lds_ = {};
};

bool is_refusal(Outcome outcome) {
  return outcome == Outcome::kFault || outcome == Outcome::kIllegal || outcome == Outcome::kViolation;
}

bool same(const Wave& a, const Wave& b) {
  return a.pc == b.pc && a.scalar == b.scalar && a.scc == b.scc && a.mode == b.mode && a.status == b.status &&
         a.trapsts == b.trapsts && a.gpr_idx == b.gpr_idx && a.vgpr == b.vgpr && a.agpr == b.agpr;
}

// Returns whether the dwords were an instruction that was executed.
bool attack(Victim& victim, const std::array<std::uint32_t, 2>& words) {
  const std::optional<Instruction> instruction = decode(victim.wave.isa, words);
  if (!instruction) return false;
  const Wave before = victim.wave;
  if (!is_refusal(execute(*instruction, victim.machine))) return true;
  EXPECT_TRUE(same(before, victim.wave)) << disassemble(*instruction, victim.wave.isa);
  return false;
}

struct Target {
  Isa isa;
  const char* name;
};

class Hostile : public testing::TestWithParam<std::tuple<Target, Prefix>> {};

TEST_P(Hostile, instructions_happen_or_change_nothing) {
  const auto& [target, prefix] = GetParam();
  unsigned executed = 0;
  for (unsigned seed = 0; seed < kWaves; ++seed) {
    Victim victim(target.isa, prefix.value + seed);
    for (unsigned n = 0; n < kInstructionsPerWave; ++n) {
      const std::uint32_t first = (victim.word() & ~prefix.mask) | prefix.value;
      if (attack(victim, {first, victim.word()})) ++executed;
    }
  }
  // MTBUF has no handlers.
  EXPECT_TRUE(executed > 0 || prefix.value == 0xe8000000);
}

INSTANTIATE_TEST_SUITE_P(
    All, Hostile,
    testing::Combine(testing::Values(Target{Isa::kGfx900, "gfx900"}, Target{Isa::kGfx906, "gfx906"},
                                     Target{Isa::kGfx908, "gfx908"}, Target{Isa::kGfx90a, "gfx90a"}),
                     testing::ValuesIn(kPrefixes)),
    [](const auto& test) { return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name; });

}  // namespace
}  // namespace gcn::hostile_test
