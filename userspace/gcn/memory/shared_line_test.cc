// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Waves of two threads, of which one writes a line of memory again and again while the other one reads it. Programs
// such as RCCL (protocols LL and LL128) put a flag beside or behind their data and take the data for new when the flag
// is.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "gcn/fake_memory.h"

namespace gcn::shared_line_test {
namespace {

constexpr Address kBase = FakeMachine::kBase;
constexpr unsigned kLine = 128, kLaneBytes = 16, kWriters = kLine / kLaneBytes;
constexpr unsigned kReads = 200000;

// Memory of both threads.
class Line : public Memory {
 public:
  std::span<std::byte> map(Address address, std::size_t limit, Access /*access*/) override {
    return std::span(bytes_).subspan(address - kBase, std::min<std::size_t>(limit, kLine - (address - kBase)));
  }

 private:
  alignas(kLine) std::array<std::byte, kLine> bytes_{};
};

Instruction global(std::string_view mnemonic) {
  Instruction instruction = named_instruction(mnemonic);
  instruction.encoding = Encoding::kGlobal;
  instruction.dst = v(8);
  instruction.src = {v(0), v(4), operand::kNone, operand::kNone};
  return instruction;
}

// A wave whose lanes 0 to 7 have the parts of the line.
class LineWave : public FakeMachine {
 public:
  explicit LineWave(Line& line) : line_(line) {
    wave.set_exec((1U << kWriters) - 1);
    fill(0, [](unsigned lane) { return static_cast<std::uint32_t>(kBase + kLaneBytes * lane); });
    fill(1, [](unsigned) { return static_cast<std::uint32_t>(kBase >> 32); });
    wave.set_scalar64(20, kBase);
  }
  Outcome access(const Instruction& instruction) {
    Machine with_line{wave, shared, line_};
    return execute(instruction, with_line);
  }

 private:
  Line& line_;
};

// While a wave writes rising numbers to all words of the line, `read` looks at it.
template <typename Read>
void while_it_is_written(const Read& read) {
  Line line;
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    LineWave wave(line);
    const Instruction store = global("global_store_dwordx4");
    for (std::uint32_t number = 1; !is_over; ++number) {
      for (unsigned i = 0; i < 4; ++i) wave.fill(4 + i, [&](unsigned) { return number; });
      wave.access(store);
    }
  });
  LineWave wave(line);
  unsigned wrong = 0;
  for (unsigned i = 0; i < kReads; ++i) wrong += read(wave) ? 0 : 1;
  is_over = true;
  writer.join();
  EXPECT_EQ(wrong, 0U) << "of " << kReads;
}

TEST(SharedLine, words_of_eight_bytes_are_read_whole) {
  const Instruction load = global("global_load_dwordx4");
  while_it_is_written([&](LineWave& wave) {
    if (wave.access(load) != Outcome::kNext) return false;
    bool good = true;
    for (unsigned lane = 0; lane < kWriters; ++lane)
      for (const unsigned word : {8U, 10U}) good &= wave.wave.vgpr[word][lane] == wave.wave.vgpr[word + 1][lane];
    return good;
  });
}

TEST(SharedLine, what_is_before_a_new_word_is_new) {
  const Instruction load = global("global_load_dwordx4");
  while_it_is_written([&](LineWave& wave) {
    if (wave.access(load) != Outcome::kNext) return false;
    const std::uint32_t flag = wave.wave.vgpr[11][kWriters - 1];
    bool good = true;
    for (unsigned lane = 0; lane < kWriters; ++lane)
      for (unsigned word = 8; word < 12; ++word) good &= wave.wave.vgpr[word][lane] >= flag;
    return good;
  });
}

TEST(SharedLine, scalar_loads_read_words_of_eight_bytes_whole) {
  Instruction load = named_instruction("s_load_dwordx4");
  load.encoding = Encoding::kSmem;
  load.dst = 24;
  load.src = {20, operand::kNone, operand::kNone, operand::kNone};
  while_it_is_written([&](LineWave& wave) {
    if (wave.access(load) != Outcome::kNext) return false;
    const auto& scalar = wave.wave.scalar;
    return scalar[24] == scalar[25] && scalar[26] == scalar[27] && scalar[24] >= scalar[26];
  });
}

}  // namespace
}  // namespace gcn::shared_line_test
