// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of packed 16-bit integers, dot products, and conversions to narrower integers.
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "gcn/vector/vector_int.h"
#include "gcn/vector/vector_operands.h"

namespace gcn {
namespace {

using u16 = std::uint16_t;
using i16 = std::int16_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

// The clamp bit saturates to the range of T, which is signed or unsigned.
template <typename T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <typename T>
T sub(T a, T b) {
  return static_cast<T>(a - b);
}
template <typename T>
T mad(T a, T b, T c) {
  return static_cast<T>(i64{a} * b + c);
}
template <typename T>
T add_clamp(T a, T b) {
  return saturate<T>(i64{a} + b);
}
template <typename T>
T sub_clamp(T a, T b) {
  return saturate<T>(i64{a} - b);
}
template <typename T>
T mad_clamp(T a, T b, T c) {
  return saturate<T>(i64{a} * b + c);
}
template <typename T>
T min2(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T max2(T a, T b) {
  return a < b ? b : a;
}
u16 mul_lo(u16 a, u16 b) { return static_cast<u16>(u32{a} * b); }
u16 lshl(u16 amount, u16 value) { return static_cast<u16>(value << (amount & 15)); }
u16 lshr(u16 amount, u16 value) { return static_cast<u16>(value >> (amount & 15)); }
i16 ashr(u16 amount, i16 value) { return static_cast<i16>(value >> (amount & 15)); }

// Returns element `n` of `bits` bits, extended.
i32 element(u32 packed, unsigned n, unsigned bits, bool is_signed) {
  const u32 high = packed << (32 - bits * (n + 1));
  return is_signed ? static_cast<i32>(high) >> (32 - bits) : static_cast<i32>(high >> (32 - bits));
}

// Returns the sum modulo 2^32, whose bits do not depend on the sign of its terms.
template <typename T, unsigned kBits>
T dot(u32 a, u32 b, T c) {
  constexpr bool kSigned = std::numeric_limits<T>::is_signed;
  const auto product = [a, b](unsigned n) {
    return static_cast<u32>(element(a, n, kBits, kSigned)) * static_cast<u32>(element(b, n, kBits, kSigned));
  };
  // Not a loop, so that the one over lanes is the innermost and becomes vector code.
  const u32 sum = [&]<unsigned... kN>(std::integer_sequence<unsigned, kN...> /*elements*/) {
    return (product(kN) + ...);
  }
  (std::make_integer_sequence<unsigned, 32 / kBits>());
  return static_cast<T>(sum + static_cast<u32>(c));
}
// The exact sum has no more than 40 bits.
template <typename T, unsigned kBits>
T dot_clamp(u32 a, u32 b, T c) {
  constexpr bool kSigned = std::numeric_limits<T>::is_signed;
  i64 sum = c;
  for (unsigned n = 0; n < 32 / kBits; ++n) {
    sum += i64{element(a, n, kBits, kSigned)} * element(b, n, kBits, kSigned);
  }
  return saturate<T>(sum);
}

// Dot products of two elements: op_sel and op_sel_hi choose the halves of the first two sources.
u32 halves(u16 low, u16 high) { return low | u32{high} << 16; }
template <typename E, bool kClamp>
Outcome dot2(const Instruction& in, Machine& machine) {
  using T = typename E::Value;
  const VectorOperands operands(in, machine);
  std::array<Source, 2> low;
  std::array<Source, 2> high;
  Source addend;
  for (unsigned n = 0; n < 2; ++n) {
    if (!operands.read(n, U16::kKind, low[n], Part::kLow) || !operands.read(n, U16::kKind, high[n], Part::kHigh)) {
      return Outcome::kIllegal;
    }
  }
  if (!operands.read(2, E::kKind, addend) || !operands.check_dst(E::kKind)) return Outcome::kIllegal;
  Results results;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const u32 a = halves(static_cast<u16>(low[0].lo[lane]), static_cast<u16>(high[0].lo[lane]));
    const u32 b = halves(static_cast<u16>(low[1].lo[lane]), static_cast<u16>(high[1].lo[lane]));
    const auto c = static_cast<T>(addend.lo[lane]);
    results.lo[lane] = static_cast<u32>(kClamp ? dot_clamp<T, 16>(a, b, c) : dot<T, 16>(a, b, c));
  }
  operands.write(E::kKind, results);
  return Outcome::kNext;
}
template <typename E>
Outcome dot2_op(const Instruction& in, Machine& machine) {
  return in.clamp ? dot2<E, true>(in, machine) : dot2<E, false>(in, machine);
}

u32 cvt_pk_u16_u32(u32 a, u32 b) { return halves(saturate<u16>(a), saturate<u16>(b)); }
u32 cvt_pk_i16_i32(i32 a, i32 b) {
  return halves(static_cast<u16>(saturate<i16>(a)), static_cast<u16>(saturate<i16>(b)));
}
u32 sat_pk_u8_i16(u32 a) {
  const u32 low = saturate<std::uint8_t>(element(a, 0, 16, true));
  const u32 high = saturate<std::uint8_t>(element(a, 1, 16, true));
  return low | high << 8;
}
u32 pack_b32_f16(u16 a, u16 b) { return halves(a, b); }

void add_packed(HandlerTable& t) {
  using Unsigned = U16(U16, U16);
  using Signed = I16(I16, I16);
  t.set(Op::kVPkAddU16, packed<Unsigned, add<u16>, add_clamp<u16>>);
  t.set(Op::kVPkSubU16, packed<Unsigned, sub<u16>, sub_clamp<u16>>);
  t.set(Op::kVPkMadU16, packed<U16(U16, U16, U16), mad<u16>, mad_clamp<u16>>);
  t.set(Op::kVPkAddI16, packed<Signed, add<i16>, add_clamp<i16>>);
  t.set(Op::kVPkSubI16, packed<Signed, sub<i16>, sub_clamp<i16>>);
  t.set(Op::kVPkMadI16, packed<I16(I16, I16, I16), mad<i16>, mad_clamp<i16>>);
  t.set(Op::kVPkMulLoU16, packed<Unsigned, mul_lo>);
  t.set(Op::kVPkMinU16, packed<Unsigned, min2<u16>>);
  t.set(Op::kVPkMaxU16, packed<Unsigned, max2<u16>>);
  t.set(Op::kVPkMinI16, packed<Signed, min2<i16>>);
  t.set(Op::kVPkMaxI16, packed<Signed, max2<i16>>);
  t.set(Op::kVPkLshlrevB16, packed<Unsigned, lshl>);
  t.set(Op::kVPkLshrrevB16, packed<Unsigned, lshr>);
  t.set(Op::kVPkAshrrevI16, packed<I16(U16, I16), ashr>);
}

void add_dots(HandlerTable& t) {
  using Unsigned = U32(U32, U32, U32);
  using Signed = I32(U32, U32, I32);
  t.set(Op::kVDot2I32I16, dot2_op<I32>);
  t.set(Op::kVDot2U32U16, dot2_op<U32>);
  t.set(Op::kVDot4I32I8, vector<Signed, dot<i32, 8>, dot_clamp<i32, 8>>);
  t.set(Op::kVDot4U32U8, vector<Unsigned, dot<u32, 8>, dot_clamp<u32, 8>>);
  t.set(Op::kVDot8I32I4, vector<Signed, dot<i32, 4>, dot_clamp<i32, 4>>);
  t.set(Op::kVDot8U32U4, vector<Unsigned, dot<u32, 4>, dot_clamp<u32, 4>>);
  t.set(Op::kVDot2cI32I16, accumulate<Signed, dot<i32, 16>, dot_clamp<i32, 16>>);
  t.set(Op::kVDot4cI32I8, accumulate<Signed, dot<i32, 8>, dot_clamp<i32, 8>>);
  t.set(Op::kVDot8cI32I4, accumulate<Signed, dot<i32, 4>, dot_clamp<i32, 4>>);
}

}  // namespace

void add_vector_int_packed_handlers(HandlerTable& table) {
  add_packed(table);
  add_dots(table);
  table.set(Op::kVCvtPkU16U32, vector<U32(U32, U32), cvt_pk_u16_u32>);
  table.set(Op::kVCvtPkI16I32, vector<U32(I32, I32), cvt_pk_i16_i32>);
  table.set(Op::kVSatPkU8I16, vector<U32(U32), sat_pk_u8_i16>);
  table.set(Op::kVPackB32F16, vector<U32(F16, F16), pack_b32_f16>);
}

}  // namespace gcn
