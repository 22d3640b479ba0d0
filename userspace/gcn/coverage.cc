// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// usage: gcn_coverage
//
// Prints docs/gfx9-coverage.md: which operations of gfx9 there are, and which are executed.
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gcn/execute.h"

namespace gcn {
namespace {

constexpr auto kEncodingNames = std::to_array<std::string_view>(
    {"SOP2",  "SOPK",   "SOP1", "SOPC", "SOPP",   "SMEM",    "VOP2",  "VOP1",  "VOPC", "VOP3",
     "VOP3P", "VINTRP", "DS",   "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF", "MIMG", "EXP"});
constexpr auto kChipNames = std::to_array<std::string_view>({"gfx900", "gfx906", "gfx908", "gfx90a"});

bool is_executed(Op op) { return handlers()[op] != nullptr; }

struct Row {
  std::string encodings;
  IsaMask isas = 0;
};

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

std::string chips(IsaMask isas) {
  if (isas == kAllIsas) return "all";
  std::string list;
  for (std::size_t n = 0; n < kChipNames.size(); ++n) {
    if (contains(isas, static_cast<Isa>(n))) append(list, kChipNames[n]);
  }
  return list;
}

std::vector<Row> rows() {
  std::vector<Row> all(kOps);
  // The same operation of several chips in one encoding is named once.
  std::vector<std::size_t> last(kOps, kEncodingNames.size());
  for (const Opcode& opcode : kOpcodes) {
    const auto op = static_cast<std::size_t>(opcode.op);
    const auto encoding = static_cast<std::size_t>(opcode.encoding);
    all[op].isas = static_cast<IsaMask>(all[op].isas | opcode.isas);
    if (last[op] != encoding) append(all[op].encodings, kEncodingNames[encoding]);
    last[op] = encoding;
  }
  return all;
}

// Numbers of an encoding, each with its operation; an operation may have two on different chips.
void print_summary() {
  struct Count {
    unsigned executed = 0;
    unsigned all = 0;
  };
  std::array<Count, kEncodingNames.size()> counts;
  for (const Opcode& opcode : kOpcodes) {
    Count& count = counts[static_cast<std::size_t>(opcode.encoding)];
    ++count.all;
    if (is_executed(opcode.op)) ++count.executed;
  }
  std::printf("| encoding | opcodes | executed |\n|---|---|---|\n");
  for (std::size_t n = 0; n < counts.size(); ++n) {
    std::printf("| %s | %u | %u |\n", std::string(kEncodingNames[n]).c_str(), counts[n].all, counts[n].executed);
  }
}

void print() {
  std::printf(
      "# Coverage of gfx9\n\n"
      "Every operation of the gfx9 encodings, and whether `userspace/gcn` executes it. What it does not execute is an\n"
      "illegal instruction. Printed by `gcn_coverage` from its tables; a unit test holds it against them.\n\n");
  print_summary();
  std::printf("\n| operation | encodings | chips | executed |\n|---|---|---|---|\n");
  const std::vector<Row> all = rows();
  for (std::size_t n = 0; n < all.size(); ++n) {
    const auto op = static_cast<Op>(n);
    std::printf("| `%s` | %s | %s | %s |\n", std::string(name(op)).c_str(), all[n].encodings.c_str(),
                chips(all[n].isas).c_str(), is_executed(op) ? "yes" : "no");
  }
}

}  // namespace
}  // namespace gcn

int main() { gcn::print(); }
