// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Compares decode() and disassemble() with LLVM's disassembler: which dwords are an instruction, how long it is, and
// how it is written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "gcn/decode/decode.h"
#include "gcn/text/disassemble.h"
#include "gcn/text/listing_words.h"

#ifndef GCN_LLVM_MC
#error "GCN_LLVM_MC: the path of LLVM's machine code playground, from CMakeLists.txt"
#endif

namespace gcn {
namespace {

using listing::Candidate;

// Two markers follow each candidate: the first may become the candidate's literal, the second cannot.
constexpr std::uint32_t kFirstMarker = 0xbf805555;  // s_nop 0x5555
constexpr std::uint32_t kLastMarker = 0xbf806666;
constexpr std::string_view kFirstMarkerText = "s_nop 0x5555";
constexpr std::string_view kLastMarkerText = "s_nop 0x6666";

std::string_view chip(Isa isa) {
  constexpr std::array<std::string_view, 4> kChips = {"gfx900", "gfx906", "gfx908", "gfx90a"};
  return kChips[static_cast<std::size_t>(isa)];
}

std::string without_extra_spaces(const std::string& line) {
  std::istringstream words(line);
  std::string text;
  for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
  return text;
}

// LLVM's reading of one candidate. An empty text means that LLVM finds no instruction.
struct Listed {
  std::string text;
  unsigned bytes = 0;
};

// ---------------------------------------------------------------------------------------------------------------------
// One run of LLVM's disassembler for all candidates of a chip. A line of input is one candidate or one marker, so a
// complaint about column 1 means that a candidate does not begin with an instruction.

void write_input(const std::string& path, const std::vector<Candidate>& candidates) {
  std::ofstream file(path);
  const auto put = [&file](std::uint32_t word) {
    for (unsigned n = 0; n < 32; n += 8) file << (word >> n & 0xff) << ' ';
  };
  for (const Candidate& candidate : candidates) {
    for (unsigned n = 0; n < candidate.count; ++n) put(candidate.words[n]);
    file << '\n';
    put(kFirstMarker);
    file << '\n';
    put(kLastMarker);
    file << '\n';
  }
}

// Returns the candidate's number, and whether the line is about its first dword.
std::set<std::pair<std::size_t, bool>> read_complaints(const std::string& path) {
  std::set<std::pair<std::size_t, bool>> complaints;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t input = line.find("<stdin>:");
    if (input != 0 || line.find("invalid instruction encoding") == std::string::npos) continue;
    unsigned long number = 0;
    unsigned long column = 0;
    char colon = 0;
    std::istringstream(line.substr(8)) >> number >> colon >> column;
    if (number % 3 == 1) complaints.emplace((number - 1) / 3, column == 1);
  }
  return complaints;
}

std::vector<Listed> read_listing(const std::string& path, const std::vector<Candidate>& candidates,
                                 const std::set<std::pair<std::size_t, bool>>& complaints) {
  std::vector<Listed> listed;
  std::ifstream file(path);
  std::vector<std::string> block;
  bool has_first_marker = false;
  for (std::string line; std::getline(file, line);) {
    const std::string text = without_extra_spaces(line);
    if (text.empty() || text[0] == '.') continue;
    if (text == kFirstMarkerText) {
      has_first_marker = true;
    } else if (text != kLastMarkerText) {
      block.push_back(text);
    } else {
      const std::size_t n = listed.size();
      if (n == candidates.size()) break;
      Listed& entry = listed.emplace_back();
      if (!complaints.contains({n, true}) && !block.empty()) {
        const bool second_is_another = block.size() > 1 || complaints.contains({n, false});
        const bool is_long = candidates[n].count == 2 ? !second_is_another : !has_first_marker;
        entry = {block[0], is_long ? 8u : 4u};
      }
      block.clear();
      has_first_marker = false;
    }
  }
  return listed;
}

std::vector<Listed> run_llvm(Isa isa, const std::vector<Candidate>& candidates) {
  const std::string base =
      testing::TempDir() + "gcn_listing_" + std::string(chip(isa)) + "_" + std::to_string(getpid());
  const std::string input = base + ".in";
  const std::string output = base + ".out";
  const std::string errors = base + ".err";
  write_input(input, candidates);
  const std::string command = std::string("'" GCN_LLVM_MC "' -arch=amdgcn -mcpu=") + std::string(chip(isa)) +
                              " -disassemble <'" + input + "' >'" + output + "' 2>'" + errors + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<Listed> listed = read_listing(output, candidates, read_complaints(errors));
  for (const std::string& path : {input, output, errors}) unlink(path.c_str());
  return listed;
}

// ---------------------------------------------------------------------------------------------------------------------
// Differences that are permitted, and the reason of each.

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
bool starts_with_any(const std::string& text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view b) { return text.starts_with(b); });
}

bool is_scalar_or_buffer(Encoding encoding) {
  return encoding <= Encoding::kSmem || encoding == Encoding::kMubuf || encoding == Encoding::kMtbuf;
}

// Encodings that gcn does not execute: the test compares only their mnemonics.
bool is_graphics(const Candidate& candidate, const std::string& text) {
  switch (candidate.encoding) {
    case Encoding::kVintrp:
    case Encoding::kMtbuf:
    case Encoding::kMimg:
    case Encoding::kExp:
      return true;
    default:
      return text.starts_with("v_interp");
  }
}

// Returns why decode() refuses an instruction that LLVM lists as `text`; empty if it has no reason to.
std::string_view reason_to_refuse(const Candidate& candidate, const std::string& text) {
  if (has(text, "/*")) return "LLVM says itself that an operand is none";
  if (has(text, "null")) return "the null register, number 125, came with gfx10";
  if (has(text, "src_lds_direct") && is_scalar_or_buffer(candidate.encoding)) return "LDS is a source of the VALU only";
  if (starts_with_any(text, {"v_readfirstlane", "v_readlane", "v_writelane", "v_cndmask", "v_addc", "v_subb", "v_mfma",
                             "v_mqsad_u32", "s_setpc", "s_rfe_b64", "s_movrels", "s_cbranch_join"})) {
    return "LLVM's tables do not say which register file an operand is in";
  }
  if (candidate.encoding == Encoding::kMubuf && (candidate.words[0] >> 18 & 0x7f) == 0x71) {
    return "the number of buffer_wbinvl1 was this before gfx8";
  }
  if (starts_with_any(text, {"v_nop", "v_clrexcp"})) return "what has no operands has none that could be permuted";
  if (text.starts_with("v_cmp") && has(text, "_e64 src_")) return "a constant cannot be written";
  if (is_scalar_or_buffer(candidate.encoding) || candidate.encoding == Encoding::kMimg) {
    for (const std::string_view pair : {"flat_scratch", "xnack_mask", "vcc", "exec"}) {
      if (has(text, pair)) return "FLAT_SCRATCH, XNACK_MASK, VCC and EXEC are pairs, not the begin of a quad";
    }
  }
  return {};
}

// Returns LLVM's text in the form in which disassemble() writes it.
std::string expected_text(const Candidate& candidate, std::string text) {
  const auto drop = [&text](std::string_view part) {
    const std::size_t at = text.find(part);
    if (at != std::string::npos) text.erase(at, part.size());
    return at;
  };
  // LLVM writes the offset 0 of some SMEM instructions, which disassemble() leaves out.
  if (candidate.encoding == Encoding::kSmem && text.find(" offset:0x0") != std::string::npos &&
      (text.ends_with(" offset:0x0") || has(text, " offset:0x0 "))) {
    drop(" offset:0x0");
  }
  // LLVM writes SDWA's sign extension for the neg bits of VOP3 and DPP operations that cannot be negated.
  for (std::size_t at = 0; !has(text, "_sdwa ") && (at = drop("sext(")) != std::string::npos;) {
    text.erase(text.find(')', at), 1);
  }
  return text;
}

std::string words_of(const Candidate& candidate) {
  std::ostringstream text;
  for (unsigned n = 0; n < candidate.count; ++n) text << "0x" << std::hex << candidate.words[n] << ' ';
  return text.str();
}

// Compares one candidate. Returns an empty string if both agree or may differ.
std::string difference(Isa isa, const Candidate& candidate, const Listed& llvm) {
  std::vector<std::uint32_t> words(candidate.words.begin(), candidate.words.begin() + candidate.count);
  words.insert(words.end(), {kFirstMarker, kLastMarker});
  const std::optional<Instruction> instruction = decode(isa, words);
  if (!instruction) {
    return llvm.text.empty() || !reason_to_refuse(candidate, llvm.text).empty() ? "" : "refused here";
  }
  const std::string text = without_extra_spaces(disassemble(*instruction, isa));
  if (llvm.text.empty()) return is_graphics(candidate, llvm.text) ? "" : "accepted here: " + text;
  if (instruction->bytes != llvm.bytes) return std::to_string(instruction->bytes) + " bytes here";
  if (is_graphics(candidate, llvm.text)) {
    const std::string_view mnemonic = name(instruction->op);
    return llvm.text.starts_with(mnemonic) ? "" : "here " + std::string(mnemonic);
  }
  return text == expected_text(candidate, llvm.text) ? "" : "here " + text;
}

class IsaListing : public testing::TestWithParam<Isa> {};

TEST_P(IsaListing, agrees_with_llvm) {
  const Isa isa = GetParam();
  std::mt19937 random(1);
  const std::vector<Candidate> candidates = listing::candidates(isa, random);
  const std::vector<Listed> listed = run_llvm(isa, candidates);
  ASSERT_EQ(listed.size(), candidates.size());
  std::set<std::pair<Encoding, Op>> seen;
  std::size_t differences = 0;
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    const std::string what = difference(isa, candidates[n], listed[n]);
    if (!what.empty() && ++differences <= 20) {
      ADD_FAILURE() << words_of(candidates[n]) << "is for LLVM '" << listed[n].text << "', " << listed[n].bytes
                    << " bytes; " << what;
    }
    if (what.empty() && candidates[n].op && listed[n].text.starts_with(name(*candidates[n].op))) {
      seen.emplace(candidates[n].encoding, *candidates[n].op);
    }
  }
  EXPECT_EQ(differences, 0u);
  for (const Opcode& opcode : kOpcodes) {
    if (!contains(opcode.isas, isa)) continue;
    EXPECT_TRUE(seen.contains({opcode.encoding, opcode.op})) << "no form of " << name(opcode.op) << " was agreed upon";
  }
}

INSTANTIATE_TEST_SUITE_P(All, IsaListing, testing::Values(Isa::kGfx900, Isa::kGfx906, Isa::kGfx908, Isa::kGfx90a),
                         [](const testing::TestParamInfo<Isa>& tested) { return std::string(chip(tested.param)); });

}  // namespace
}  // namespace gcn
