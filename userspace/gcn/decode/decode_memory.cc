// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Microcode formats of memory, LDS and export.
// Source: chapter "Microcode formats" of the ISA documents.
#include "gcn/decode/decoder.h"

namespace gcn {
namespace {

// This saddr of a GLOBAL or SCRATCH instruction means that it has none.
constexpr Word kNoSaddr = 0x7f;

}  // namespace

bool Decoder::smem() {
  if (!put_scalar_src(0, bits(low_, 0, 6) << 1)) return false;
  const bool immediate = bit(low_, 17);
  const bool register_too = bit(low_, 14);
  out_.glc = bit(low_, 16);
  if (ops_->src[0] == 0) {
    if (immediate) return false;
  } else {
    if (immediate) out_.offset = sign_extend(bits(high_, 0, 21), 21);
    // If both flags are clear, the low bits of the offset are the register's number, as in older chips.
    if (register_too || !immediate) {
      const Word number = register_too ? bits(high_, 25, 7) : bits(high_, 0, 7);
      if (!put(out_.src[1], scalar_register(number, 1))) return false;
    }
  }
  const Word data = bits(low_, 6, 7);
  if (out_.op == Op::kSAtcProbe || out_.op == Op::kSAtcProbeBuffer) {
    out_.src[2] = static_cast<std::uint16_t>(data);  // not a register but the value itself
    return true;
  }
  return (!returns(2) || put_scalar_dst(data)) && put_scalar_src(2, data);
}

bool Decoder::ds() {
  out_.offset = static_cast<std::int32_t>(bits(low_, 0, 16));
  out_.gds = bit(low_, 16);
  out_.agpr = isa_ == Isa::kGfx90a && bit(low_, 25);
  // An instruction without data cannot have it in an accumulation register. GWS instructions have their data where
  // others have an address.
  const bool data = ops_->dst != 0 || ops_->src[1] != 0 || (ops_->src[0] != 0 && ops_->is(trait::kGds));
  if (!data && bit(low_, 25)) return false;
  if (ops_->is(trait::kGds) && !out_.gds) return false;
  if (ops_->is(trait::kNoGds) && out_.gds) return false;
  if (ops_->is(trait::kNoImmediate) && out_.offset != 0) return false;
  return put_vector_src_or_0(0, bits(high_, 0, 8)) && put_vector_src_or_0(1, bits(high_, 8, 8)) &&
         put_vector_src_or_0(2, bits(high_, 16, 8)) && put_vector_dst_or_0(bits(high_, 24, 8));
}

bool Decoder::flat() {
  const bool segment = out_.encoding != Encoding::kFlat;
  out_.offset = segment ? sign_extend(bits(low_, 0, 13), 13) : static_cast<std::int32_t>(bits(low_, 0, 13));
  out_.lds = bit(low_, 13);
  out_.glc = bit(low_, 16);
  out_.slc = bit(low_, 17);
  if (isa_ == Isa::kGfx90a) {
    out_.scc = bit(low_, 25);
    out_.agpr = bit(high_, 23);
  }
  if (out_.lds && !ops_->is(trait::kLds)) return false;
  return flat_address() && flat_data();
}

// An offset in an saddr makes vaddr 32 bits wide in GLOBAL, and takes its place in SCRATCH.
bool Decoder::flat_address() {
  const Word saddr = bits(high_, 16, 7);
  const Word vaddr = bits(high_, 0, 8);
  switch (out_.encoding) {
    case Encoding::kFlat:
      return saddr == 0 && put_vector_src(0, vaddr);
    case Encoding::kGlobal:
      if (saddr == kNoSaddr) return put_vector_src(0, vaddr);
      return put(out_.src[2], scalar_register(saddr, 2)) && put(out_.src[0], vector_register(vaddr, 1));
    default:
      if (saddr == kNoSaddr) return put_vector_src(0, vaddr);
      return put(out_.src[2], scalar_register(saddr, 1));
  }
}

bool Decoder::flat_data() {
  const Word dst = bits(high_, 24, 8);
  const Word data = bits(high_, 8, 8);
  if (out_.lds) return !bit(high_, 23);
  return float_atomic_modifiers() && (!returns(1) || put_vector_dst(dst)) && put_vector_src(1, data);
}

// The floating-point atomics of MI100 return nothing, and none has a coherence scope.
bool Decoder::float_atomic_modifiers() const {
  if (!ops_->is(trait::kFloatAtomic)) return true;
  if (isa_ != Isa::kGfx90a && out_.glc) return false;
  return out_.encoding == Encoding::kMubuf ? !out_.scc : !bit(low_, 25);
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
  if (ops_->src[2] == 0) return cache_control();
  if (out_.lds ? !ops_->is(trait::kLds) : out_.op == Op::kBufferStoreLdsDword) return false;
  return buffer_address() && buffer_data();
}

bool Decoder::cache_control() {
  // Only a writeback has a choice of scope.
  const bool scope = out_.op == Op::kBufferWbl2;
  if (out_.offen || out_.idxen || out_.lds) return false;
  if (out_.op != Op::kBufferWbinvl1 && out_.op != Op::kBufferWbinvl1Vol && out_.agpr) return false;
  if (!scope && (out_.glc || bit(low_, 15))) return false;
  out_.offset = 0;
  out_.slc = out_.tfe = out_.agpr = false;
  return true;
}

bool Decoder::buffer_address() {
  const unsigned registers = out_.offen && out_.idxen ? 2 : 1;
  if ((out_.offen || out_.idxen) && !put(out_.src[0], vector_register(bits(high_, 0, 8), registers))) return false;
  const Word soffset = bits(high_, 24, 8);
  if (soffset == operand::kLiteral || soffset == operand::kLdsDirect) return false;
  return put_scalar_src(2, bits(high_, 16, 5) << 2) && put(out_.src[3], source(soffset, 1));
}

bool Decoder::buffer_data() {
  if (out_.lds) return out_.op != Op::kBufferStoreLdsDword || (!out_.offen && !out_.idxen);
  const Word data = bits(high_, 8, 8);
  return float_atomic_modifiers() && (!returns(1) || put_vector_dst(data)) && put_vector_src(1, data);
}

// MIMG instructions are not executed: only their registers and what describe() needs are decoded.
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
