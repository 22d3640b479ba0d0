// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Conversions between floats, and between floats and integers. A result that is a float is rounded by the mode of its
// format and takes output modifiers; one that is an integer saturates, with or without clamp.
#include <algorithm>
#include <cmath>

#include "gcn/vector/vector_lanes.h"

namespace gcn {
namespace {

template <class To, class From>
struct Convert {
  typename To::Bits operator()(typename From::Bits a, const LaneContext& context) const {
    const FloatMode m = float_mode<To>(context.mode);
    return finished<To>(convert<To, From>(a, float_mode<From>(context.mode), m), context, m);
  }
};

template <class To, class Int>
struct FromInt {
  typename To::Bits operator()(Int a, const LaneContext& context) const {
    const FloatMode m = float_mode<To>(context.mode);
    return finished<To>(from_int<To>(a, m), context, m);
  }
};

template <unsigned kByte>
struct FromByte {
  std::uint32_t operator()(std::uint32_t a, const LaneContext& context) const {
    const auto value = static_cast<float>(a >> (8 * kByte) & 0xff);
    return finished<Fp32>(std::bit_cast<std::uint32_t>(value), context, float_mode<Fp32>(context.mode));
  }
};

// Returns `a` as a double, after the mode's treatment of denormal sources.
template <class F>
double seen(typename F::Bits a, const LaneContext& context) {
  return to_double<F>(flushed<F>(a, float_mode<F>(context.mode).flush_in));
}

template <class F>
std::int32_t i32_lane(typename F::Bits a, const LaneContext& context) {
  return to_i32(seen<F>(a, context));
}
template <class F>
std::uint32_t u32_lane(typename F::Bits a, const LaneContext& context) {
  return to_u32(seen<F>(a, context));
}
std::int16_t i16_lane(Fp16::Bits a, const LaneContext& context) {
  return static_cast<std::int16_t>(to_int(seen<Fp16>(a, context), INT16_MIN, INT16_MAX));
}
std::uint16_t u16_lane(Fp16::Bits a, const LaneContext& context) {
  return static_cast<std::uint16_t>(to_int(seen<Fp16>(a, context), 0, UINT16_MAX));
}

// Rounds halves up. The sum is exact, or so close to one half that its error does not change the result.
std::int32_t rpi_lane(std::uint32_t a, const LaneContext& context) {
  return to_i32(std::floor(seen<Fp32>(a, context) + 0.5));
}
std::int32_t flr_lane(std::uint32_t a, const LaneContext& context) {
  return to_i32(std::floor(seen<Fp32>(a, context)));
}

// Converts four bits with a sign to sixteenths.
std::uint32_t off_i4_lane(std::uint32_t a, const LaneContext& context) {
  const int value = static_cast<int>(a & 7) - static_cast<int>(a & 8);
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value) / 16);
  return finished<Fp32>(bits, context, float_mode<Fp32>(context.mode));
}

constexpr std::uint32_t pair(std::uint16_t low, std::uint16_t high) { return low | std::uint32_t{high} << 16; }

// Converts with overflow to the largest number, whatever FP16_OVFL says.
std::uint16_t half_to_zero(std::uint32_t a, const LaneContext& context) {
  const FloatMode m = rounding(float_mode<Fp16>(context.mode), Round::kZero);
  return finished<Fp16>(convert<Fp16, Fp32>(a, float_mode<Fp32>(context.mode), m), context, m);
}
std::uint32_t pkrtz_lane(std::uint32_t a, std::uint32_t b, const LaneContext& context) {
  return pair(half_to_zero(a, context), half_to_zero(b, context));
}

template <class F, auto kConvert>
struct Norm {
  std::uint16_t operator()(typename F::Bits a, const LaneContext& context) const {
    return kConvert(seen<F>(a, context));
  }
};
template <class F, auto kConvert>
struct PackedNorm {
  std::uint32_t operator()(typename F::Bits a, typename F::Bits b, const LaneContext& context) const {
    return pair(kConvert(seen<F>(a, context)), kConvert(seen<F>(b, context)));
  }
};

// Replaces the byte of `old` that `number` selects with `a`, rounded by MODE.
std::uint32_t pk_u8_lane(std::uint32_t a, std::uint32_t number, std::uint32_t old, const LaneContext& context) {
  const double rounded = to_integral(seen<Fp32>(a, context), float_mode<Fp32>(context.mode).round);
  const auto byte = static_cast<std::uint32_t>(to_int(rounded, 0, 255));
  const unsigned shift = 8 * (number & 3);
  return (old & ~(0xffu << shift)) | byte << shift;
}

template <class Lane, class Result, Handler kExact>
constexpr Handler kFast = fast<Lane, kExact, Form::kSources, Denormals::kByMode, Result>;

void add_to_float(HandlerTable& table) {
  table.set(Op::kVCvtF32F16, kFast<SingleOfHalfLane, B32, vector<B32(F16), Convert<Fp32, Fp16>{}>>);
  table.set(Op::kVCvtF16F32, kFast<HalfOfSingleLane, F16, vector<F16(B32), Convert<Fp16, Fp32>{}>>);
  table.set(Op::kVCvtF32F64, kFast<SingleOfDoubleLane, B32, vector<B32(B64), Convert<Fp32, Fp64>{}>>);
  table.set(Op::kVCvtF64F32, kFast<DoubleOfSingleLane, B64, vector<B64(B32), Convert<Fp64, Fp32>{}>>);
  table.set(Op::kVCvtF32I32, kFast<SingleOfIntLane, B32, vector<B32(I32), FromInt<Fp32, std::int32_t>{}>>);
  table.set(Op::kVCvtF32U32, kFast<SingleOfUnsignedLane, B32, vector<B32(U32), FromInt<Fp32, std::uint32_t>{}>>);
  table.set(Op::kVCvtF64I32, kFast<DoubleOfIntLane, B64, vector<B64(I32), FromInt<Fp64, std::int32_t>{}>>);
  table.set(Op::kVCvtF64U32, vector<B64(U32), FromInt<Fp64, std::uint32_t>{}>);
  table.set(Op::kVCvtF16I16, vector<F16(I16), FromInt<Fp16, std::int16_t>{}>);
  table.set(Op::kVCvtF16U16, vector<F16(U16), FromInt<Fp16, std::uint16_t>{}>);
  table.set(Op::kVCvtF32Ubyte0, vector<B32(U32), FromByte<0>{}>);
  table.set(Op::kVCvtF32Ubyte1, vector<B32(U32), FromByte<1>{}>);
  table.set(Op::kVCvtF32Ubyte2, vector<B32(U32), FromByte<2>{}>);
  table.set(Op::kVCvtF32Ubyte3, vector<B32(U32), FromByte<3>{}>);
  table.set(Op::kVCvtOffF32I4, vector<B32(U32), off_i4_lane>);
  table.set(Op::kVCvtPkrtzF16F32, vector<U32(B32, B32), pkrtz_lane>);
}

void add_to_int(HandlerTable& table) {
  table.set(Op::kVCvtI32F32, kFast<IntOfSingleLane, I32, vector<I32(B32), i32_lane<Fp32>>>);
  table.set(Op::kVCvtU32F32, kFast<UnsignedOfSingleLane, U32, vector<U32(B32), u32_lane<Fp32>>>);
  table.set(Op::kVCvtI32F64, vector<I32(B64), i32_lane<Fp64>>);
  table.set(Op::kVCvtU32F64, vector<U32(B64), u32_lane<Fp64>>);
  table.set(Op::kVCvtI16F16, vector<I16(F16), i16_lane>);
  table.set(Op::kVCvtU16F16, vector<U16(F16), u16_lane>);
  table.set(Op::kVCvtRpiI32F32, vector<I32(B32), rpi_lane>);
  table.set(Op::kVCvtFlrI32F32, vector<I32(B32), flr_lane>);
  table.set(Op::kVCvtNormI16F16, vector<U16(F16), Norm<Fp16, to_snorm16>{}>);
  table.set(Op::kVCvtNormU16F16, vector<U16(F16), Norm<Fp16, to_unorm16>{}>);
  table.set(Op::kVCvtPknormI16F32, vector<U32(B32, B32), PackedNorm<Fp32, to_snorm16>{}>);
  table.set(Op::kVCvtPknormU16F32, vector<U32(B32, B32), PackedNorm<Fp32, to_unorm16>{}>);
  table.set(Op::kVCvtPknormI16F16, vector<U32(F16, F16), PackedNorm<Fp16, to_snorm16>{}>);
  table.set(Op::kVCvtPknormU16F16, vector<U32(F16, F16), PackedNorm<Fp16, to_unorm16>{}>);
  table.set(Op::kVCvtPkU8F32, vector<U32(B32, U32, U32), pk_u8_lane>);
  table.set(Op::kVCvtPkaccumU8F32, accumulate<U32(B32, U32, U32), pk_u8_lane>);
}

}  // namespace

void add_convert_handlers(HandlerTable& table) {
  add_to_float(table);
  add_to_int(table);
}

}  // namespace gcn
