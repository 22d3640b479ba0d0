// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Makes the dwords with which isa_listing_test.cc tries the decoder.
#include "gcn/text/listing_words.h"

#include "gcn/isa/operands.h"

namespace gcn::listing {
namespace {

using Word = std::uint32_t;
using Words = std::array<Word, 2>;

// How many changed forms each row gets, and how many random words each encoding.
constexpr unsigned kChanged = 12;
constexpr unsigned kRandom = 1000;

constexpr Word kVgpr = 256;

struct Layout {
  Encoding encoding;
  Word base;     // the bits that select the encoding
  Word mask;     // where these bits are
  unsigned low;  // lowest bit of the opcode
  unsigned count;
  unsigned dwords;
};

constexpr Word ones(unsigned count) { return (1u << count) - 1; }

constexpr std::array<Layout, 20> kLayouts = {
    {{Encoding::kSop2, 0x80000000, 0xc0000000, 23, 7, 1},   {Encoding::kSopk, 0xb0000000, 0xf0000000, 23, 5, 1},
     {Encoding::kSop1, 0xbe800000, 0xff800000, 8, 8, 1},    {Encoding::kSopc, 0xbf000000, 0xff800000, 16, 7, 1},
     {Encoding::kSopp, 0xbf800000, 0xff800000, 16, 7, 1},   {Encoding::kSmem, 0xc0000000, 0xfc000000, 18, 8, 2},
     {Encoding::kVop2, 0x00000000, 0x80000000, 25, 6, 1},   {Encoding::kVop1, 0x7e000000, 0xfe000000, 9, 8, 1},
     {Encoding::kVopc, 0x7c000000, 0xfe000000, 17, 8, 1},   {Encoding::kVop3, 0xd0000000, 0xfc000000, 16, 10, 2},
     {Encoding::kVop3p, 0xd3800000, 0xff800000, 16, 7, 2},  {Encoding::kVintrp, 0xd4000000, 0xfc000000, 16, 2, 1},
     {Encoding::kDs, 0xd8000000, 0xfc000000, 17, 8, 2},     {Encoding::kFlat, 0xdc000000, 0xfc00c000, 18, 7, 2},
     {Encoding::kGlobal, 0xdc008000, 0xfc00c000, 18, 7, 2}, {Encoding::kScratch, 0xdc004000, 0xfc00c000, 18, 7, 2},
     {Encoding::kMubuf, 0xe0000000, 0xfc000000, 18, 7, 2},  {Encoding::kMtbuf, 0xe8000000, 0xfc000000, 15, 4, 2},
     {Encoding::kMimg, 0xf0000000, 0xfc000000, 18, 7, 2},   {Encoding::kExp, 0xc4000000, 0xfc000000, 0, 0, 2}}};

const Layout& layout(Encoding encoding) {
  std::size_t n = 0;
  while (kLayouts[n].encoding != encoding) ++n;
  return kLayouts[n];
}

bool is_short_valu(Encoding encoding) {
  return encoding == Encoding::kVop1 || encoding == Encoding::kVop2 || encoding == Encoding::kVopc;
}

// Puts registers in all places; `dst` and the other operands only where the operation has them.
Words plain_memory(const Opcode& opcode, const Operands& ops, Words words) {
  const Word dst = ops.dst != 0 ? 4u : 0u;
  switch (opcode.encoding) {
    case Encoding::kSmem:
      return {words[0] | 16 << 6 | (ops.src[0] != 0 ? 1u << 17 | 2 : 0), 0x10};
    case Encoding::kDs:
      return {words[0] | (ops.is(trait::kGds) ? 1u << 16 : 0), dst << 24 | (ops.src[2] != 0 ? 6u << 16 : 0) |
                                                                   (ops.src[1] != 0 ? 8u << 8 : 0) |
                                                                   (ops.src[0] != 0 ? 2u : 0)};
    case Encoding::kFlat:
      return {words[0], dst << 24 | (ops.src[1] != 0 ? 8u << 8 : 0) | 2};
    case Encoding::kGlobal:
    case Encoding::kScratch:
      return {words[0], dst << 24 | 0x7fu << 16 | (ops.src[1] != 0 ? 8u << 8 : 0) | 2};
    case Encoding::kMubuf:
      if (ops.src[2] == 0) return words;
      if (opcode.op == Op::kBufferStoreLdsDword) words[0] |= 1u << 16;
      return {words[0] | 0x10, 0x80010402};
    case Encoding::kMtbuf:
      return {words[0] | 1u << 19, 0x80010402};
    case Encoding::kMimg:
      return {words[0] | 1u << 8, 0x00010402};
    default:
      return words;
  }
}

Words plain_vop3(const Opcode& opcode, const Operands& ops, Words words) {
  const bool packed = opcode.encoding == Encoding::kVop3p && !ops.is(trait::kMfma);
  words[0] |= 4 | (packed && ops.src[2] != 0 ? 1u << 14 : 0);
  words[1] |= packed ? 3u << 27 : 0;
  for (unsigned n = 0; n < 3; ++n) {
    if (ops.src[n] != 0) words[1] |= (kVgpr + 2 + 4 * n) << 9 * n;
  }
  // Lane numbers and masks are in SGPRs.
  if (opcode.op == Op::kVReadlaneB32) words[1] = (kVgpr + 2) | 6 << 9;
  if (opcode.op == Op::kVWritelaneB32) words[1] = 2 | 6 << 9;
  if (ops.is(trait::kMask)) words[1] = (kVgpr + 2) | (kVgpr + 6) << 9 | 8 << 18;
  return words;
}

Words plain(const Opcode& opcode) {
  const Layout& format = layout(opcode.encoding);
  const Operands& ops = operands(opcode.op);
  Words words = {format.base | static_cast<Word>(opcode.number) << format.low, 0x12345678};
  switch (opcode.encoding) {
    case Encoding::kSop2:
      words[0] |= 4 << 16 | 2 << 8 | 6;
      break;
    case Encoding::kSopk:
      words[0] |= 4 << 16 | 5;
      break;
    case Encoding::kSop1:
      words[0] |= 4 << 16 | 2;
      break;
    case Encoding::kSopc:
      words[0] |= 2 << 8 | 6;
      break;
    case Encoding::kSopp:
      words[0] |= ops.is(trait::kNoImmediate) ? 0 : 3;
      break;
    case Encoding::kVop2:
      words[0] |= 4 << 17 | 2 << 9 | (kVgpr + 6);
      break;
    case Encoding::kVop1:
      words[0] |= ops.dst != 0 ? 4 << 17 | (kVgpr + 6) : 0;
      break;
    case Encoding::kVopc:
      words[0] |= 2 << 9 | (kVgpr + 6);
      break;
    case Encoding::kVintrp:
      words[0] |= 4 << 18 | 2;
      break;
    case Encoding::kVop3:
    case Encoding::kVop3p:
      return plain_vop3(opcode, ops, {words[0], 0});
    default:
      return plain_memory(opcode, ops, {words[0], 0});
  }
  return words;
}

// The second dwords of SDWA and DPP in the form in which an assembler writes them.
Word usual_sdwa(Encoding encoding, const Operands& ops) {
  return 2 | (encoding == Encoding::kVopc ? 0 : 6u << 8) | 6u << 16 | (ops.src[1] != 0 ? 6u << 24 : 0);
}
constexpr Word kUsualDpp = 0xff010102;  // row_shl:1

// LLVM's printer aborts at selections that are reserved.
bool has_reserved_selection(const Candidate& candidate) {
  if (!is_short_valu(candidate.encoding) || (candidate.words[0] & 0x1ff) != 249) return false;
  const Word word = candidate.words[1];
  return (word >> 8 & 7) == 7 || (word >> 16 & 7) == 7 || (word >> 24 & 7) == 7 || (word >> 11 & 3) == 3;
}

class Maker {
 public:
  Maker(Isa isa, std::mt19937& random) : isa_(isa), random_(random) {}

  std::vector<Candidate> run() {
    for (const Opcode& opcode : kOpcodes) {
      if (contains(opcode.isas, isa_)) row(opcode);
    }
    for (const Layout& format : kLayouts) {
      for (unsigned n = 0; n < kRandom; ++n) {
        const Word word = (any() & ~format.mask) | format.base;
        // A literal, SDWA or DPP dword may follow where it could be one.
        add({format.encoding, std::nullopt, format.encoding == Encoding::kSopp ? 1u : 2u, {word, any()}});
      }
    }
    return std::move(made_);
  }

 private:
  Word any() { return static_cast<Word>(random_()); }
  Word below(Word limit) { return any() % limit; }

  void add(const Candidate& candidate) {
    if (!has_reserved_selection(candidate)) made_.push_back(candidate);
  }

  void row(const Opcode& opcode) {
    const Layout& format = layout(opcode.encoding);
    const Operands& ops = operands(opcode.op);
    const Words words = plain(opcode);
    add({opcode.encoding, opcode.op, format.dwords, words});
    if (is_short_valu(opcode.encoding)) {
      const Word word = words[0] & ~0x1ffu;
      add({opcode.encoding, opcode.op, 2, {word | 249, usual_sdwa(opcode.encoding, ops)}});
      add({opcode.encoding, opcode.op, 2, {word | 250, kUsualDpp}});
    }
    for (unsigned n = 0; n < kChanged; ++n) add(changed(opcode, format, ops, words));
  }

  Candidate changed(const Opcode& opcode, const Layout& format, const Operands& ops, Words words) {
    unsigned count = format.dwords;
    Word fixed = format.mask | ones(format.count) << format.low;
    if (is_short_valu(opcode.encoding) && below(4) != 0) {
      const Word number = 249 + below(2);
      words = {(words[0] & ~0x1ffu) | number, number == 249 ? usual_sdwa(opcode.encoding, ops) : kUsualDpp};
      fixed |= 0x1ff;
      count = 2;
    } else if (count == 1) {
      interesting_source(opcode.encoding, words[0]);
    }
    for (unsigned flips = below(5); flips != 0; --flips) words[0] ^= (1u << below(32)) & ~fixed;
    if (count == 2) {
      for (unsigned flips = below(5); flips != 0; --flips) words[1] ^= 1u << below(32);
      if (format.dwords == 2 && below(3) == 0) interesting_field(words[1]);
    } else {
      words[1] = interesting_literal();
      count = 1 + below(2);
    }
    return {opcode.encoding, opcode.op, count, words};
  }

  // Changes the first source into a constant, a special register or a literal.
  void interesting_source(Encoding encoding, Word& word) {
    const bool valu = is_short_valu(encoding);
    if (!valu && encoding != Encoding::kSop1 && encoding != Encoding::kSop2 && encoding != Encoding::kSopc) return;
    if (below(2) == 0) word = (word & ~(valu ? 0x1ffu : 0xffu)) | (100 + below(156));
  }

  // Changes a byte that is the first source's constant in VOP3 and an address or data register in memory instructions.
  void interesting_field(Word& word) {
    const unsigned low = below(4) * 8;
    word = (word & ~(0xffu << low)) | (100 + below(156)) << low;
  }

  Word interesting_literal() {
    constexpr std::array<Word, 10> kValues = {0,          1,      64,     65,         0xfffffff0,
                                              0x3f800000, 0x3c00, 0x3118, 0x3e22f983, 0xffff3c00};
    return below(2) == 0 ? kValues[below(static_cast<Word>(kValues.size()))] : any();
  }

  Isa isa_;
  std::mt19937& random_;
  std::vector<Candidate> made_;
};

}  // namespace

std::vector<Candidate> candidates(Isa isa, std::mt19937& random) { return Maker(isa, random).run(); }

}  // namespace gcn::listing
