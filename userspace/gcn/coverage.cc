// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// usage: gcn_coverage [--summary]
//
// Prints a table of all operations of gfx9: their encodings, the chips that have them, and whether they are executed.
// What is not executed is an illegal instruction.
//   --summary   the part of README.md between its two lines "coverage"; a unit test compares them
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gcn/execute.h"

namespace gcn {
namespace {

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
  // An operation whose number in one encoding differs between chips has two rows there; the encoding is named once.
  std::vector<std::size_t> last(kOps, kEncodings);
  for (const Opcode& opcode : kOpcodes) {
    const auto op = static_cast<std::size_t>(opcode.op);
    const auto encoding = static_cast<std::size_t>(opcode.encoding);
    all[op].isas = static_cast<IsaMask>(all[op].isas | opcode.isas);
    if (last[op] != encoding) append(all[op].encodings, kEncodingNames[encoding]);
    last[op] = encoding;
  }
  return all;
}

// Opcodes of one encoding. An operation that has two numbers on different chips counts twice.
struct Count {
  unsigned executed = 0;
  unsigned all = 0;
  std::vector<std::string_view> missing;
};

std::array<Count, kEncodings> counts() {
  std::array<Count, kEncodings> counts;
  for (const Opcode& opcode : kOpcodes) {
    Count& count = counts[static_cast<std::size_t>(opcode.encoding)];
    ++count.all;
    if (is_executed(opcode.op)) {
      ++count.executed;
    } else if (count.missing.empty() || count.missing.back() != name(opcode.op)) {
      count.missing.push_back(name(opcode.op));
    }
  }
  return counts;
}

// One item of a list, in lines of at most kWidth characters.
void print_item(std::string_view title, const std::vector<std::string_view>& names) {
  constexpr std::size_t kWidth = 120;
  std::string line = "- " + std::string(title) + ":";
  for (std::size_t n = 0; n < names.size(); ++n) {
    const std::string word = " `" + std::string(names[n]) + "`" + (n + 1 < names.size() ? "," : "");
    if (line.size() + word.size() > kWidth) {
      std::printf("%s\n", line.c_str());
      line = " ";
    }
    line += word;
  }
  std::printf("%s\n", line.c_str());
}

// The counts, and by name what is missing in encodings that are executed in part: all other operations are executed.
void print_summary() {
  const std::array<Count, kEncodings> all = counts();
  std::printf("<!-- coverage -->\n| encoding | opcodes | executed |\n|---|---|---|\n");
  for (std::size_t n = 0; n < kEncodings; ++n) {
    std::printf("| %s | %u | %u |\n", std::string(kEncodingNames[n]).c_str(), all[n].all, all[n].executed);
  }
  std::printf("\nNot executed in encodings that are executed in part:\n\n");
  for (std::size_t n = 0; n < kEncodings; ++n) {
    if (all[n].executed != 0 && !all[n].missing.empty()) print_item(kEncodingNames[n], all[n].missing);
  }
  std::printf("<!-- /coverage -->\n");
}

void print_operations() {
  std::printf("| operation | encodings | chips | executed |\n|---|---|---|---|\n");
  const std::vector<Row> all = rows();
  for (std::size_t n = 0; n < all.size(); ++n) {
    const auto op = static_cast<Op>(n);
    std::printf("| `%s` | %s | %s | %s |\n", std::string(name(op)).c_str(), all[n].encodings.c_str(),
                chips(all[n].isas).c_str(), is_executed(op) ? "yes" : "no");
  }
}

}  // namespace
}  // namespace gcn

int main(int argc, char** argv) {
  if (argc == 1) {
    gcn::print_operations();
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--summary") {
    gcn::print_summary();
    return 0;
  }
  std::fprintf(stderr, "usage: gcn_coverage [--summary]\n");
  return 64;
}
