// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Microcode formats of memory, LDS and export.
// Source: chapter "Microcode formats" of the ISA documents.
#include "gcn/decoder.h"

namespace gcn {
namespace {

// saddr of FLAT's segments that stands for none.
constexpr Word kNoSaddr = 0x7f;

}  // namespace

bool Decoder::smem() {
  if (!put_scalar_src(0, bits(low_, 0, 6) << 1)) return false;
  const bool immediate = bit(low_, 17);
  const bool register_too = bit(low_, 14);
  out_.glc = bit(low_, 16);
  if (ops_->src[0] != 0) {
    if (immediate) out_.offset = sign_extend(bits(high_, 0, 21), 21);
    // Without both, the low bits of the offset are the register's number, as in older chips.
    if (register_too || !immediate) {
      const Word number = register_too ? bits(high_, 25, 7) : bits(high_, 0, 7);
      if (!put(out_.src[1], scalar_register(number, 1))) return false;
    }
  }
  const Word data = bits(low_, 6, 7);
  const bool atomic = ops_->dst != 0 && ops_->src[2] != 0;
  if ((!atomic || out_.glc) && !put_scalar_dst(data)) return false;
  return put_scalar_src(2, data);
}

bool Decoder::ds() {
  out_.offset = static_cast<std::int32_t>(bits(low_, 0, 16));
  out_.gds = bit(low_, 16);
  out_.agpr = isa_ == Isa::kGfx90a && bit(low_, 25);
  return put_vector_src(0, bits(high_, 0, 8)) && put_vector_src(1, bits(high_, 8, 8)) &&
         put_vector_src(2, bits(high_, 16, 8)) && put_vector_dst(bits(high_, 24, 8));
}

bool Decoder::flat() {
  const bool segment = out_.encoding != Encoding::kFlat;
  const Word offset = bits(low_, 0, 13);
  out_.offset = segment ? sign_extend(offset, 13) : static_cast<std::int32_t>(offset);
  out_.lds = bit(low_, 13);
  out_.glc = bit(low_, 16);
  out_.slc = bit(low_, 17);
  if (isa_ == Isa::kGfx90a) {
    out_.scc = bit(low_, 25);
    out_.agpr = bit(high_, 23);
  }
  // vaddr is 32 bits wide next to an saddr, and a scratch offset's register may be either but not both.
  const Word saddr = bits(high_, 16, 7);
  const bool has_saddr = segment && saddr != kNoSaddr;
  if (has_saddr && !put(out_.src[2], scalar_register(saddr, out_.encoding == Encoding::kGlobal ? 2 : 1))) return false;
  if (!has_saddr || out_.encoding == Encoding::kGlobal) {
    if (!put(out_.src[0], vector_register(bits(high_, 0, 8), has_saddr ? 1 : ops_->src[0]))) return false;
  }
  const bool atomic = ops_->dst != 0 && ops_->src[1] != 0;
  if ((!atomic || out_.glc) && !out_.lds && !put_vector_dst(bits(high_, 24, 8))) return false;
  return put_vector_src(1, bits(high_, 8, 8));
}

bool Decoder::buffer() {
  out_.offset = static_cast<std::int32_t>(bits(low_, 0, 12));
  out_.offen = bit(low_, 12);
  out_.idxen = bit(low_, 13);
  out_.glc = bit(low_, 14);
  if (isa_ == Isa::kGfx90a) {
    out_.scc = out_.encoding == Encoding::kMubuf && bit(low_, 15);
    out_.agpr = bit(high_, 23);
  } else {
    out_.tfe = bit(high_, 23);
  }
  if (out_.encoding == Encoding::kMtbuf) {
    out_.format = static_cast<std::uint8_t>(bits(low_, 19, 4) | bits(low_, 23, 3) << 4);
    out_.slc = bit(high_, 22);
  } else {
    out_.lds = bit(low_, 16);
    out_.slc = bit(low_, 17);
  }
  if (ops_->src[2] == 0) return true;  // cache control
  const unsigned registers = out_.offen && out_.idxen ? 2 : 1;
  if ((out_.offen || out_.idxen) && !put(out_.src[0], vector_register(bits(high_, 0, 8), registers))) return false;
  if (!put_scalar_src(2, bits(high_, 16, 5) << 2)) return false;
  const Word soffset = bits(high_, 24, 8);
  if (soffset == operand::kLiteral || soffset == operand::kLdsDirect) return false;
  if (!put(out_.src[3], source(soffset, 1))) return false;
  const Word data = bits(high_, 8, 8);
  const bool atomic = ops_->dst != 0 && ops_->src[1] != 0;
  if ((!atomic || out_.glc) && !out_.lds && !put_vector_dst(data)) return false;
  return put_vector_src(1, data);
}

// Only what describe() needs, and the registers.
bool Decoder::mimg() {
  // The number's highest bit is at the other end; gfx9 has no operation there.
  if (bit(low_, 0)) return false;
  out_.glc = bit(low_, 13);
  out_.slc = bit(low_, 25);
  return put_vector_src(0, bits(high_, 0, 8)) && put_scalar_src(2, bits(high_, 16, 5) << 2) &&
         put_scalar_src(3, bits(high_, 21, 5) << 2) && put_vector_src(1, bits(high_, 8, 8)) &&
         put_vector_dst(bits(high_, 8, 8));
}

bool Decoder::exp() {
  // Enabled channels and target.
  out_.offset = static_cast<std::int32_t>(bits(low_, 0, 10));
  for (unsigned i = 0; i < 4; ++i) out_.src[i] = static_cast<std::uint16_t>(operand::kVgpr0 + bits(high_, 8 * i, 8));
  return true;
}

}  // namespace gcn
