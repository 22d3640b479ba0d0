// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of vector integer arithmetic.
#include "gcn/vector/vector_int.h"

#include "gcn/vector/vector_handlers.h"
#include "gcn/vector/vector_operands.h"

namespace gcn {
namespace {

using u16 = std::uint16_t;
using i16 = std::int16_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

using Carry = WithBit<U32>::Value;
using Carry64 = WithBit<U64>::Value;

// Sums and differences; those that wrap are computed in unsigned arithmetic.
u32 add_u32(u32 a, u32 b) { return a + b; }
u32 sub_u32(u32 a, u32 b) { return a - b; }
u32 subrev_u32(u32 a, u32 b) { return b - a; }
u32 add_u32_clamp(u32 a, u32 b) { return a + b < a ? ~0u : a + b; }
u32 sub_u32_clamp(u32 a, u32 b) { return a < b ? 0 : a - b; }
u32 subrev_u32_clamp(u32 a, u32 b) { return sub_u32_clamp(b, a); }
i32 add_i32_clamp(i32 a, i32 b) { return saturate<i32>(i64{a} + b); }
i32 sub_i32_clamp(i32 a, i32 b) { return saturate<i32>(i64{a} - b); }
i32 add_i32(i32 a, i32 b) { return static_cast<i32>(i64{a} + b); }
i32 sub_i32(i32 a, i32 b) { return static_cast<i32>(i64{a} - b); }

u16 add_u16(u16 a, u16 b) { return static_cast<u16>(a + b); }
u16 sub_u16(u16 a, u16 b) { return static_cast<u16>(a - b); }
u16 subrev_u16(u16 a, u16 b) { return static_cast<u16>(b - a); }
u16 add_u16_clamp(u16 a, u16 b) { return saturate<u16>(i64{a} + b); }
u16 sub_u16_clamp(u16 a, u16 b) { return saturate<u16>(i64{a} - b); }
u16 subrev_u16_clamp(u16 a, u16 b) { return saturate<u16>(i64{b} - a); }
i16 add_i16(i16 a, i16 b) { return static_cast<i16>(a + b); }
i16 sub_i16(i16 a, i16 b) { return static_cast<i16>(a - b); }
i16 add_i16_clamp(i16 a, i16 b) { return saturate<i16>(i64{a} + b); }
i16 sub_i16_clamp(i16 a, i16 b) { return saturate<i16>(i64{a} - b); }

// Sums and differences with carry: the bit says whether the true result is out of range.
Carry addc(u32 a, u32 b, u32 carry) {
  const u64 sum = u64{a} + b + carry;
  return {static_cast<u32>(sum), sum >> 32 != 0};
}
Carry subb(u32 a, u32 b, u32 borrow) { return {a - b - borrow, u64{a} < u64{b} + borrow}; }
Carry subbrev(u32 a, u32 b, u32 borrow) { return subb(b, a, borrow); }
Carry addc_clamp(u32 a, u32 b, u32 carry) {
  const Carry sum = addc(a, b, carry);
  return {sum.bit ? ~0u : sum.value, sum.bit};
}
Carry subb_clamp(u32 a, u32 b, u32 borrow) {
  const Carry difference = subb(a, b, borrow);
  return {difference.bit ? 0 : difference.value, difference.bit};
}
Carry subbrev_clamp(u32 a, u32 b, u32 borrow) { return subb_clamp(b, a, borrow); }
Carry add_co(u32 a, u32 b) { return addc(a, b, 0); }
Carry sub_co(u32 a, u32 b) { return subb(a, b, 0); }
Carry subrev_co(u32 a, u32 b) { return subb(b, a, 0); }
Carry add_co_clamp(u32 a, u32 b) { return addc_clamp(a, b, 0); }
Carry sub_co_clamp(u32 a, u32 b) { return subb_clamp(a, b, 0); }
Carry subrev_co_clamp(u32 a, u32 b) { return subb_clamp(b, a, 0); }

// Products. A 24-bit operand is the low 24 bits of a register.
u64 product_u24(u32 a, u32 b) { return u64{a & 0xffffff} * (b & 0xffffff); }
i64 product_i24(u32 a, u32 b) { return i64{static_cast<i32>(a << 8) >> 8} * (static_cast<i32>(b << 8) >> 8); }
u32 mul_u32_u24(u32 a, u32 b) { return static_cast<u32>(product_u24(a, b)); }
u32 mul_hi_u32_u24(u32 a, u32 b) { return static_cast<u32>(product_u24(a, b) >> 32); }
u32 mul_i32_i24(u32 a, u32 b) { return static_cast<u32>(product_i24(a, b)); }
u32 mul_hi_i32_i24(u32 a, u32 b) { return static_cast<u32>(product_i24(a, b) >> 32); }
u32 mad_u32_u24(u32 a, u32 b, u32 c) { return static_cast<u32>(product_u24(a, b)) + c; }
u32 mad_i32_i24(u32 a, u32 b, u32 c) { return static_cast<u32>(product_i24(a, b)) + c; }
u32 mul_lo_u32(u32 a, u32 b) { return a * b; }
u32 mul_hi_u32(u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }
u32 mul_hi_i32(i32 a, i32 b) { return static_cast<u32>(i64{a} * b >> 32); }
u16 mul_lo_u16(u16 a, u16 b) { return static_cast<u16>(u32{a} * b); }
u32 mad_u32_u16(u16 a, u16 b, u32 c) { return u32{a} * b + c; }
u32 mad_i32_i16(i16 a, i16 b, u32 c) { return static_cast<u32>(i32{a} * b) + c; }
u16 mad_u16(u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); }
u16 mad_u16_clamp(u16 a, u16 b, u16 c) { return saturate<u16>(i64{a} * b + c); }
i16 mad_i16(i16 a, i16 b, i16 c) { return static_cast<i16>(i64{a} * b + c); }
i16 mad_i16_clamp(i16 a, i16 b, i16 c) { return saturate<i16>(i64{a} * b + c); }

Carry64 mad_u64_u32(u32 a, u32 b, u64 c) {
  const u64 product = u64{a} * b;
  return {product + c, product + c < c};
}
// The carry bit is the sign of the 65-bit sum.
Carry64 mad_i64_i32(i32 a, i32 b, u64 c) {
  const auto product = static_cast<u64>(i64{a} * b);
  const u64 sum = product + c;
  const u64 overflow = (product ^ sum) & (c ^ sum);
  return {sum, ((sum ^ overflow) >> 63) != 0};
}

template <typename T>
T min2(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T max2(T a, T b) {
  return a < b ? b : a;
}
template <typename T>
T min3(T a, T b, T c) {
  return min2(min2(a, b), c);
}
template <typename T>
T max3(T a, T b, T c) {
  return max2(max2(a, b), c);
}
template <typename T>
T med3(T a, T b, T c) {
  return max2(min2(a, b), min2(max2(a, b), c));
}

void add_sums(HandlerTable& t) {
  using Sum = U32(U32, U32);
  using SumOut = WithBit<U32>(U32, U32);
  using SumInOut = WithBit<U32>(U32, U32, MaskBit);
  t.set(Op::kVAddU32, vector<Sum, add_u32, add_u32_clamp>);
  t.set(Op::kVSubU32, vector<Sum, sub_u32, sub_u32_clamp>);
  t.set(Op::kVSubrevU32, vector<Sum, subrev_u32, subrev_u32_clamp>);
  t.set(Op::kVAddCoU32, vector<SumOut, add_co, add_co_clamp>);
  t.set(Op::kVSubCoU32, vector<SumOut, sub_co, sub_co_clamp>);
  t.set(Op::kVSubrevCoU32, vector<SumOut, subrev_co, subrev_co_clamp>);
  t.set(Op::kVAddcCoU32, vector<SumInOut, addc, addc_clamp>);
  t.set(Op::kVSubbCoU32, vector<SumInOut, subb, subb_clamp>);
  t.set(Op::kVSubbrevCoU32, vector<SumInOut, subbrev, subbrev_clamp>);
  t.set(Op::kVAddI32, vector<I32(I32, I32), add_i32, add_i32_clamp>);
  t.set(Op::kVSubI32, vector<I32(I32, I32), sub_i32, sub_i32_clamp>);
  t.set(Op::kVAddU16, vector<U16(U16, U16), add_u16, add_u16_clamp>);
  t.set(Op::kVSubU16, vector<U16(U16, U16), sub_u16, sub_u16_clamp>);
  t.set(Op::kVSubrevU16, vector<U16(U16, U16), subrev_u16, subrev_u16_clamp>);
  t.set(Op::kVAddI16, vector<Keep<I16>(I16, I16), add_i16, add_i16_clamp>);
  t.set(Op::kVSubI16, vector<Keep<I16>(I16, I16), sub_i16, sub_i16_clamp>);
}

void add_products(HandlerTable& t) {
  using Product = U32(U32, U32);
  using Mad = U32(U32, U32, U32);
  t.set(Op::kVMulU32U24, unclamped<Product, mul_u32_u24>);
  t.set(Op::kVMulHiU32U24, unclamped<Product, mul_hi_u32_u24>);
  t.set(Op::kVMulI32I24, unclamped<Product, mul_i32_i24>);
  t.set(Op::kVMulHiI32I24, unclamped<Product, mul_hi_i32_i24>);
  t.set(Op::kVMadU32U24, unclamped<Mad, mad_u32_u24>);
  t.set(Op::kVMadI32I24, unclamped<Mad, mad_i32_i24>);
  t.set(Op::kVMulLoU32, unclamped<Product, mul_lo_u32>);
  t.set(Op::kVMulHiU32, unclamped<Product, mul_hi_u32>);
  t.set(Op::kVMulHiI32, unclamped<U32(I32, I32), mul_hi_i32>);
  t.set(Op::kVMulLoU16, unclamped<U16(U16, U16), mul_lo_u16>);
  t.set(Op::kVMadU32U16, unclamped<U32(U16, U16, U32), mad_u32_u16>);
  t.set(Op::kVMadI32I16, unclamped<U32(I16, I16, U32), mad_i32_i16>);
  t.set(Op::kVMadLegacyU16, vector<U16(U16, U16, U16), mad_u16, mad_u16_clamp>);
  t.set(Op::kVMadLegacyI16, vector<I16(I16, I16, I16), mad_i16, mad_i16_clamp>);
  t.set(Op::kVMadU16, vector<Keep<U16>(U16, U16, U16), mad_u16, mad_u16_clamp>);
  t.set(Op::kVMadI16, vector<Keep<I16>(I16, I16, I16), mad_i16, mad_i16_clamp>);
  t.set(Op::kVMadU64U32, unclamped<WithBit<U64>(U32, U32, U64), mad_u64_u32>);
  t.set(Op::kVMadI64I32, unclamped<WithBit<U64>(I32, I32, U64), mad_i64_i32>);
}

void add_orders(HandlerTable& t) {
  t.set(Op::kVMinI32, vector<I32(I32, I32), min2<i32>>);
  t.set(Op::kVMaxI32, vector<I32(I32, I32), max2<i32>>);
  t.set(Op::kVMinU32, vector<U32(U32, U32), min2<u32>>);
  t.set(Op::kVMaxU32, vector<U32(U32, U32), max2<u32>>);
  t.set(Op::kVMinI16, vector<I16(I16, I16), min2<i16>>);
  t.set(Op::kVMaxI16, vector<I16(I16, I16), max2<i16>>);
  t.set(Op::kVMinU16, vector<U16(U16, U16), min2<u16>>);
  t.set(Op::kVMaxU16, vector<U16(U16, U16), max2<u16>>);
  t.set(Op::kVMin3I32, vector<I32(I32, I32, I32), min3<i32>>);
  t.set(Op::kVMax3I32, vector<I32(I32, I32, I32), max3<i32>>);
  t.set(Op::kVMed3I32, vector<I32(I32, I32, I32), med3<i32>>);
  t.set(Op::kVMin3U32, vector<U32(U32, U32, U32), min3<u32>>);
  t.set(Op::kVMax3U32, vector<U32(U32, U32, U32), max3<u32>>);
  t.set(Op::kVMed3U32, vector<U32(U32, U32, U32), med3<u32>>);
  t.set(Op::kVMin3I16, vector<Keep<I16>(I16, I16, I16), min3<i16>>);
  t.set(Op::kVMax3I16, vector<Keep<I16>(I16, I16, I16), max3<i16>>);
  t.set(Op::kVMed3I16, vector<Keep<I16>(I16, I16, I16), med3<i16>>);
  t.set(Op::kVMin3U16, vector<Keep<U16>(U16, U16, U16), min3<u16>>);
  t.set(Op::kVMax3U16, vector<Keep<U16>(U16, U16, U16), max3<u16>>);
  t.set(Op::kVMed3U16, vector<Keep<U16>(U16, U16, U16), med3<u16>>);
}

}  // namespace

void add_vector_int_handlers(HandlerTable& table) {
  add_sums(table);
  add_products(table);
  add_orders(table);
  add_vector_int_bits_handlers(table);
  add_vector_int_packed_handlers(table);
  add_vector_int_compare_handlers(table);
}

}  // namespace gcn
