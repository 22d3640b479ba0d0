// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Executes random C functions (generate.py), compiled for the GPU, and compares all that they compute, bit for bit,
// with the results of these functions compiled for the host.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>
#include <string>

#include "gcn/decode/decode.h"
#include "gcn/random/code_object.h"
#include "gcn/random/functions.h"
#include "gcn/text/disassemble.h"

namespace gcn {
namespace {

constexpr Address kBase = 0x7f1200000000;
constexpr Address kIn = kBase + 0x1000;
constexpr Address kOut = kBase + 0x4000;
constexpr Address kOwn = kBase + 0x8000;
constexpr Address kArguments = kBase + 0xc000;
constexpr Address kScratch = kBase + 0x10000;
constexpr Address kCode = kBase + 0x200000;
constexpr std::size_t kMemory = 0x300000;
constexpr unsigned kInWords = 8;
constexpr unsigned kOutWords = 8;
constexpr unsigned kOwnWords = 16;
constexpr unsigned kMaxSteps = 1'000'000;  // instructions of one kernel
constexpr unsigned kRounds = 3;            // each with other inputs

using In = std::array<std::array<std::uint64_t, kInWords>, kLanes>;
using Out = std::array<std::array<std::uint64_t, kOutWords>, kLanes>;
using Own = std::array<std::array<std::uint64_t, kOwnWords>, kLanes>;  // memory that a lane reads and writes

// The kernel's arguments, in the layout of its argument segment.
struct Uniforms {
  std::uint64_t s0;
  std::int64_t s1;
  std::uint32_t s2;
  std::int32_t s3;
};

struct Inputs {
  In in;
  Own own;
  Uniforms uniforms;
};

struct Outputs {
  Out out = {};
  Own own;
};

// Values near which functions often have branches, and random ones.
class Values {
 public:
  explicit Values(unsigned seed) : random_(seed) {}

  std::uint64_t integer() {
    static constexpr auto kSpecial = std::to_array<std::uint64_t>(
        {0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
         0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0xffffffff80000000});
    const std::uint64_t value = random_();
    switch (random_() % 4) {
      case 0:
        return kSpecial[value % kSpecial.size()];
      case 1:
        return value % 256 - 128;
      case 2:
        return value >> (random_() % 64);
      default:
        return value;
    }
  }
  std::uint32_t single() {
    static constexpr auto kSpecial = std::to_array<std::uint32_t>(
        {0, 0x80000000, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0x4b000000, 0x4f000000});
    const std::uint64_t value = random_();
    if (random_() % 4 == 0) return kSpecial[value % kSpecial.size()];
    if (random_() % 4 == 0) return static_cast<std::uint32_t>(value);
    return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(value)) * 0x1p-20F);
  }
  std::uint64_t real() {
    static constexpr auto kSpecial = std::to_array<std::uint64_t>(
        {0, 0x8000000000000000, 1, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3ff0000000000000,
         0x43e0000000000000, 0x41e0000000000000, 0x800fffffffffffff});
    const std::uint64_t value = random_();
    if (random_() % 4 == 0) return kSpecial[value % kSpecial.size()];
    if (random_() % 4 == 0) return value;
    return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(value)) * 0x1p-50);
  }

 private:
  std::mt19937_64 random_;
};

Inputs make_inputs(unsigned seed) {
  Values values(seed);
  Inputs inputs;
  for (auto& lane : inputs.in) {
    for (std::uint64_t& word : lane) word = values.integer();
    lane[4] = values.single();
    lane[5] = values.real();
  }
  for (auto& lane : inputs.own) {
    for (std::uint64_t& word : lane) word = values.integer();
  }
  inputs.uniforms = {values.integer(), static_cast<std::int64_t>(values.integer()),
                     static_cast<std::uint32_t>(values.integer()), static_cast<std::int32_t>(values.integer())};
  return inputs;
}

Outputs run_on_host(RandomFunction function, const Inputs& inputs) {
  Outputs outputs;
  outputs.own = inputs.own;
  const Uniforms& u = inputs.uniforms;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    function(inputs.in[lane].data(), outputs.out[lane].data(), outputs.own[lane].data(), u.s0, u.s1, u.s2, u.s3);
  }
  return outputs;
}

template <typename Lanes>
std::string first_difference(const char* what, const Lanes& expected, const Lanes& actual) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (std::size_t word = 0; word < expected[lane].size(); ++word) {
      if (expected[lane][word] == actual[lane][word]) continue;
      std::array<char, 160> text;
      std::snprintf(text.data(), text.size(), "%s[%zu] of lane %u is %#lx, not %#lx", what, word, lane,
                    actual[lane][word], expected[lane][word]);
      return text.data();
    }
  }
  return {};
}

// A wave on its own machine, with the kernels of one file.
class Simulator {
 public:
  Simulator(Isa isa, const std::string& path) : code_(path) {
    wave_.isa = isa;
    code_.load(memory_, kCode);
    shared_.shared_base = FakeMachine::kSharedBase;
    shared_.private_base = FakeMachine::kPrivateBase;
  }

  // Runs kernel `number` and returns a description of the first difference from the expected results, or an empty
  // string.
  std::string compare(unsigned number, const Inputs& inputs, const Outputs& expected) {
    const std::optional<Kernel> kernel = code_.find(memory_, "k" + std::to_string(number));
    if (!kernel) return "no such kernel";
    memory_.set(kIn, inputs.in);
    memory_.set(kOut, Out{});
    memory_.set(kOwn, inputs.own);
    memory_.set(kArguments, std::array{kIn, kOut, kOwn});
    memory_.set(kArguments + 24, inputs.uniforms);
    lds_.assign(kernel->lds_bytes, std::byte{0xcc});
    shared_.lds = lds_;
    prepare(*kernel, {.arguments = kArguments, .scratch = kScratch, .wave_offset = 0x4000}, wave_);
    const std::string error = run();
    if (!error.empty()) return error;
    const std::string difference = first_difference("out", expected.out, memory_.get<Out>(kOut));
    return difference.empty() ? first_difference("memory", expected.own, memory_.get<Own>(kOwn)) : difference;
  }

  // The number of instructions that all kernels so far executed.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  // Runs the wave to its end. Returns what prevented that, or an empty string.
  std::string run() {
    for (unsigned step = 0; step < kMaxSteps; ++step) {
      const auto words = memory_.get<std::array<std::uint32_t, 2>>(wave_.pc);
      const std::optional<Instruction> instruction = decode(wave_.isa, words);
      const Outcome outcome = instruction ? execute(*instruction, machine_) : Outcome::kIllegal;
      ++steps_;
      if (outcome == Outcome::kEnd) return {};
      if (outcome == Outcome::kNext) continue;
      return "outcome " + std::to_string(static_cast<int>(outcome)) + " at " +
             (instruction ? disassemble(*instruction, wave_.isa) : describe(wave_.isa, words));
    }
    return "does not end";
  }

  CodeObject code_;
  FlatMemory memory_{kBase, kMemory};
  std::vector<std::byte> lds_;
  Wave wave_;
  Shared shared_;
  Machine machine_{wave_, shared_, memory_};
  std::uint64_t steps_ = 0;
};

// CMakeLists.txt compiles even files for one chip and odd ones for the other.
Isa isa_of(unsigned file) { return file % 2 == 0 ? Isa::kGfx906 : Isa::kGfx90a; }
std::string name_of(unsigned file) {
  return std::to_string(file) + (isa_of(file) == Isa::kGfx906 ? ".gfx906" : ".gfx90a");
}

class RandomKernels : public testing::TestWithParam<unsigned> {};

TEST_P(RandomKernels, compute_what_the_host_computes) {
  const unsigned file = GetParam();
  Simulator simulator(isa_of(file), std::string(RANDOM_KERNELS) + "/" + name_of(file));
  for (unsigned n = 0; n < kFunctionsPerFile; ++n) {
    const unsigned number = file * kFunctionsPerFile + n;
    for (unsigned round = 0; round < kRounds; ++round) {
      const Inputs inputs = make_inputs(number * kRounds + round);
      const Outputs expected = run_on_host(kRandomFunctions[file][n], inputs);
      EXPECT_EQ(simulator.compare(number, inputs, expected), "") << "k" << number;
    }
  }
  RecordProperty("instructions", std::to_string(simulator.steps()));
}

// Makes sure that the comparison can fail: the host computes with other inputs here.
TEST(RandomKernelsControl, other_inputs_are_noticed) {
  Simulator simulator(isa_of(0), std::string(RANDOM_KERNELS) + "/" + name_of(0));
  unsigned noticed = 0;
  for (unsigned n = 0; n < kFunctionsPerFile; ++n) {
    const Outputs expected = run_on_host(kRandomFunctions[0][n], make_inputs(n + 1));
    if (!simulator.compare(n, make_inputs(n), expected).empty()) ++noticed;
  }
  EXPECT_EQ(noticed, kFunctionsPerFile);
}

INSTANTIATE_TEST_SUITE_P(All, RandomKernels, testing::Range(0u, kRandomFiles));

}  // namespace
}  // namespace gcn
