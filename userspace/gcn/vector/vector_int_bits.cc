// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of vector operations on bits and bytes: logic, shifts, fields, counts, sums of absolute differences.
#include <array>
#include <bit>
#include <cstdint>

#include "gcn/vector/vector_int.h"
#include "gcn/vector/vector_operands.h"

namespace gcn {
namespace {

using u16 = std::uint16_t;
using i16 = std::int16_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

u32 bit_and(u32 a, u32 b) { return a & b; }
u32 bit_or(u32 a, u32 b) { return a | b; }
u32 bit_xor(u32 a, u32 b) { return a ^ b; }
u32 bit_xnor(u32 a, u32 b) { return ~(a ^ b); }
u32 bit_not(u32 a) { return ~a; }
u32 or3(u32 a, u32 b, u32 c) { return a | b | c; }
u32 and_or(u32 a, u32 b, u32 c) { return (a & b) | c; }

// Shifts take the low bits of the amount.
u32 lshl(u32 amount, u32 value) { return value << (amount & 31); }
u32 lshr(u32 amount, u32 value) { return value >> (amount & 31); }
i32 ashr(u32 amount, i32 value) { return value >> (amount & 31); }
u16 lshl16(u16 amount, u16 value) { return static_cast<u16>(value << (amount & 15)); }
u16 lshr16(u16 amount, u16 value) { return static_cast<u16>(value >> (amount & 15)); }
i16 ashr16(u16 amount, i16 value) { return static_cast<i16>(value >> (amount & 15)); }
u64 lshl64(u32 amount, u64 value) { return value << (amount & 63); }
u64 lshr64(u32 amount, u64 value) { return value >> (amount & 63); }
i64 ashr64(u32 amount, i64 value) { return value >> (amount & 63); }
u32 lshl_add(u32 a, u32 b, u32 c) { return lshl(b, a) + c; }
u32 add_lshl(u32 a, u32 b, u32 c) { return lshl(c, a + b); }
u32 lshl_or(u32 a, u32 b, u32 c) { return lshl(b, a) | c; }
u32 add3(u32 a, u32 b, u32 c) { return a + b + c; }
u32 xad(u32 a, u32 b, u32 c) { return (a ^ b) + c; }
u32 alignbit(u32 high, u32 low, u32 amount) { return static_cast<u32>((u64{high} << 32 | low) >> (amount & 31)); }
u32 alignbyte(u32 high, u32 low, u32 bytes) { return alignbit(high, low, 8 * (bytes & 3)); }

// Bit fields. A mask has its low `width` bits set.
u32 field_mask(u32 width) { return (1u << (width & 31)) - 1; }
u32 bfe_u32(u32 a, u32 offset, u32 width) { return lshr(offset, a) & field_mask(width); }
u32 bfe_i32(i32 a, u32 offset, u32 width) {
  const u32 field = static_cast<u32>(ashr(offset, a)) & field_mask(width);
  const u32 sign = (field_mask(width) >> 1) + 1;  // unused if the width is 0, because the field is 0
  return (width & 31) == 0 ? 0 : (field ^ sign) - sign;
}
u32 bfi(u32 mask, u32 inside, u32 outside) { return (mask & inside) | (~mask & outside); }
u32 bfm(u32 width, u32 offset) { return field_mask(width) << (offset & 31); }

u32 reverse(u32 a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  a = (a >> 8 & 0x00ff00ff) | (a & 0x00ff00ff) << 8;
  return a >> 16 | a << 16;
}
u32 ffbh_u32(u32 a) { return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a)); }
u32 ffbl_b32(u32 a) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); }
u32 ffbh_i32(i32 a) { return ffbh_u32(static_cast<u32>(a ^ (a >> 31))); }
u32 bcnt(u32 a, u32 b) { return static_cast<u32>(std::popcount(a)) + b; }
u32 mbcnt_lo(u32 a, u32 b, u32 lane) { return bcnt(lane < 32 ? a & ((1u << lane) - 1) : a, b); }
u32 mbcnt_hi(u32 a, u32 b, u32 lane) { return bcnt(lane < 32 ? 0 : a & ((1u << (lane - 32)) - 1), b); }

// Operations on bytes.
u32 byte_of(u64 value, unsigned n) { return static_cast<u32>(value >> (8 * n)) & 0xff; }
u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }

u32 lerp(u32 a, u32 b, u32 round) {
  u32 result = 0;
  for (unsigned n = 0; n < 4; ++n) {
    result |= ((byte_of(a, n) + byte_of(b, n) + (byte_of(round, n) & 1)) >> 1) << (8 * n);
  }
  return result;
}

u32 perm(u32 high, u32 low, u32 selectors) {
  const u64 bytes = u64{high} << 32 | low;
  u32 result = 0;
  for (unsigned n = 0; n < 4; ++n) {
    const u32 selector = byte_of(selectors, n);
    u32 byte = 0xff;  // 13 and above
    if (selector < 8) byte = byte_of(bytes, selector);
    if (selector == 12) byte = 0;
    // Selectors 8 to 11 replicate the signs of the odd bytes.
    if (selector >= 8 && selector < 12) byte = byte_of(bytes, 2 * (selector - 8) + 1) >> 7 != 0 ? 0xff : 0;
    result |= byte << (8 * n);
  }
  return result;
}

u32 sad_u8(u32 a, u32 b, u32 sum) {
  for (unsigned n = 0; n < 4; ++n) sum += distance(byte_of(a, n), byte_of(b, n));
  return sum;
}
u32 sad_hi_u8(u32 a, u32 b, u32 c) { return (sad_u8(a, b, 0) << 16) + c; }
u32 sad_u16(u32 a, u32 b, u32 c) { return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c; }
u32 sad_u32(u32 a, u32 b, u32 c) { return distance(a, b) + c; }
// Bytes of the reference that are 0 do not count.
u32 msad_u8(u32 a, u32 reference, u32 sum) {
  for (unsigned n = 0; n < 4; ++n) {
    if (byte_of(reference, n) != 0) sum += distance(byte_of(a, n), byte_of(reference, n));
  }
  return sum;
}

// Computes four sums; each uses four bytes that begin one byte further.
template <auto kSad>
u64 quad(u64 a, u32 b, u64 c) {
  u64 result = 0;
  for (unsigned n = 0; n < 4; ++n) {
    const u32 sum = kSad(static_cast<u32>(a >> (8 * n)), b, static_cast<u32>(c >> (16 * n)) & 0xffff);
    result |= u64{sum & 0xffff} << (16 * n);
  }
  return result;
}

// v_mqsad_u32_u8 has four 32-bit sums. No other operation has operands of four registers.
Outcome mqsad_u32_u8(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  Source a;
  Source b;
  Vgpr* sums = operands.vgpr(in.src[2], 2, 4);
  Vgpr* dst = operands.vgpr(in.dst, 3, 4);
  if (in.clamp || sums == nullptr || dst == nullptr || !operands.read(0, U64::kKind, a) ||
      !operands.read(1, U32::kKind, b)) {
    return Outcome::kIllegal;
  }
  std::array<Vgpr, 4> results;
  for (unsigned n = 0; n < 4; ++n) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const u64 bytes = a.lo[lane] | u64{a.hi[lane]} << 32;
      results[n][lane] = msad_u8(static_cast<u32>(bytes >> (8 * n)), b.lo[lane], sums[n][lane]);
    }
  }
  for (unsigned n = 0; n < 4; ++n) copy_lanes(dst[n], results[n], operands.active());
  return Outcome::kNext;
}

using Unary = U32(U32);
using Binary = U32(U32, U32);
using Ternary = U32(U32, U32, U32);

void add_logic(HandlerTable& t) {
  t.set(Op::kVAndB32, vector<Binary, bit_and>);
  t.set(Op::kVOrB32, vector<Binary, bit_or>);
  t.set(Op::kVXorB32, vector<Binary, bit_xor>);
  t.set(Op::kVXnorB32, vector<Binary, bit_xnor>);
  t.set(Op::kVNotB32, vector<Unary, bit_not>);
  t.set(Op::kVOr3B32, vector<Ternary, or3>);
  t.set(Op::kVAndOrB32, vector<Ternary, and_or>);
  t.set(Op::kVBfiB32, vector<Ternary, bfi>);
}

void add_shifts(HandlerTable& t) {
  t.set(Op::kVLshlrevB32, vector<Binary, lshl>);
  t.set(Op::kVLshrrevB32, vector<Binary, lshr>);
  t.set(Op::kVAshrrevI32, vector<I32(U32, I32), ashr>);
  t.set(Op::kVLshlrevB16, vector<U16(U16, U16), lshl16>);
  t.set(Op::kVLshrrevB16, vector<U16(U16, U16), lshr16>);
  t.set(Op::kVAshrrevI16, vector<I16(U16, I16), ashr16>);
  t.set(Op::kVLshlrevB64, vector<U64(U32, U64), lshl64>);
  t.set(Op::kVLshrrevB64, vector<U64(U32, U64), lshr64>);
  t.set(Op::kVAshrrevI64, vector<I64(U32, I64), ashr64>);
  t.set(Op::kVLshlAddU32, unclamped<Ternary, lshl_add>);
  t.set(Op::kVAddLshlU32, unclamped<Ternary, add_lshl>);
  t.set(Op::kVAdd3U32, unclamped<Ternary, add3>);
  t.set(Op::kVXadU32, unclamped<Ternary, xad>);
  t.set(Op::kVLshlOrB32, vector<Ternary, lshl_or>);
  t.set(Op::kVAlignbitB32, vector<Ternary, alignbit>);
  t.set(Op::kVAlignbyteB32, vector<Ternary, alignbyte>);
}

void add_fields(HandlerTable& t) {
  t.set(Op::kVBfeU32, vector<Ternary, bfe_u32>);
  t.set(Op::kVBfeI32, vector<U32(I32, U32, U32), bfe_i32>);
  t.set(Op::kVBfmB32, vector<Binary, bfm>);
  t.set(Op::kVBfrevB32, vector<Unary, reverse>);
  t.set(Op::kVFfbhU32, vector<Unary, ffbh_u32>);
  t.set(Op::kVFfblB32, vector<Unary, ffbl_b32>);
  t.set(Op::kVFfbhI32, vector<U32(I32), ffbh_i32>);
  t.set(Op::kVBcntU32B32, vector<Binary, bcnt>);
  t.set(Op::kVMbcntLoU32B32, vector<U32(U32, U32, LaneNumber), mbcnt_lo>);
  t.set(Op::kVMbcntHiU32B32, vector<U32(U32, U32, LaneNumber), mbcnt_hi>);
}

void add_bytes(HandlerTable& t) {
  t.set(Op::kVLerpU8, unclamped<Ternary, lerp>);
  t.set(Op::kVPermB32, vector<Ternary, perm>);
  t.set(Op::kVSadU8, unclamped<Ternary, sad_u8>);
  t.set(Op::kVSadHiU8, unclamped<Ternary, sad_hi_u8>);
  t.set(Op::kVSadU16, unclamped<Ternary, sad_u16>);
  t.set(Op::kVSadU32, unclamped<Ternary, sad_u32>);
  t.set(Op::kVMsadU8, unclamped<Ternary, msad_u8>);
  t.set(Op::kVQsadPkU16U8, unclamped<U64(U64, U32, U64), quad<sad_u8>>);
  t.set(Op::kVMqsadPkU16U8, unclamped<U64(U64, U32, U64), quad<msad_u8>>);
  t.set(Op::kVMqsadU32U8, mqsad_u32_u8);
}

}  // namespace

void add_vector_int_bits_handlers(HandlerTable& table) {
  add_logic(table);
  add_shifts(table);
  add_fields(table);
  add_bytes(table);
}

}  // namespace gcn
