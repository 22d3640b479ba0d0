// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of vector floating point: fp64.
#include "gcn/vector/vector_float.h"
#include "gcn/vector/vector_lanes.h"

namespace gcn {
namespace {

using Bits = Fp64::Bits;

template <auto kOp>
constexpr Handler kUnary = vector<B64(B64), FloatOp<Fp64, kOp>{}>;
template <auto kOp>
constexpr Handler kBinary = vector<B64(B64, B64), FloatOp<Fp64, kOp>{}>;
template <auto kOp>
constexpr Handler kTernary = vector<B64(B64, B64, B64), FloatOp<Fp64, kOp>{}>;
template <auto kOp>
constexpr Handler kAccumulating = accumulate<B64(B64, B64, B64), FloatOp<Fp64, kOp>{}>;

template <class Lane, Handler kExact, Form kForm = Form::kSources>
constexpr Handler kFast = fast<Lane, kExact, kForm, Denormals::kByMode, B64>;
template <Function kFunction, auto kOp>
constexpr Handler kFastFunction = kFast<FunctionLane<Fp64, kFunction>, kUnary<kOp>>;

Bits ldexp_lane(Bits a, std::int32_t n, const LaneContext& context) {
  const FloatMode m = float_mode<Fp64>(context.mode);
  return finished<Fp64>(ldexp<Fp64>(a, n, m), context, m);
}
std::int32_t frexp_exp_lane(Bits a, const LaneContext& context) {
  return frexp_exp<Fp64>(a, float_mode<Fp64>(context.mode));
}
Bits trig_preop_lane(Bits a, std::uint32_t segment, const LaneContext& context) {
  return finished<Fp64>(trig_preop(a, segment), context, float_mode<Fp64>(context.mode));
}
WithBit<B64>::Value div_scale_lane(Bits a, Bits denominator, Bits numerator, const LaneContext& context) {
  const FloatMode m = float_mode<Fp64>(context.mode);
  const Scaled<Fp64> result = div_scale<Fp64>(a, denominator, numerator, m);
  return {finished<Fp64>(result.value, context, m), result.scaled};
}
Bits div_fmas_lane(Bits a, Bits b, Bits c, std::uint32_t scaled, const LaneContext& context) {
  const FloatMode m = float_mode<Fp64>(context.mode);
  return finished<Fp64>(div_fmas<Fp64>(a, b, c, scaled != 0, m), context, m);
}

}  // namespace

void add_float64_handlers(HandlerTable& table) {
  table.set(Op::kVAddF64, kFast<AddLane<Fp64>, kBinary<add<Fp64>>>);
  table.set(Op::kVMulF64, kFast<MulLane<Fp64>, kBinary<mul<Fp64>>>);
  table.set(Op::kVMinF64, fast_choice<MinLane, Fp64, kBinary<min<Fp64>>, Form::kSources, B64>);
  table.set(Op::kVMaxF64, fast_choice<MaxLane, Fp64, kBinary<max<Fp64>>, Form::kSources, B64>);
  table.set(Op::kVFmaF64, kFast<FmaLane<Fp64>, kTernary<fma<Fp64>>>);
  table.set(Op::kVFmacF64, kFast<FmaLane<Fp64>, kAccumulating<fma<Fp64>>, Form::kAccumulate>);
  table.set(Op::kVTruncF64, kFastFunction<Function::kTrunc, trunc<Fp64>>);
  table.set(Op::kVCeilF64, kFastFunction<Function::kCeil, ceil<Fp64>>);
  table.set(Op::kVRndneF64, kFastFunction<Function::kRndne, rndne<Fp64>>);
  table.set(Op::kVFloorF64, kFastFunction<Function::kFloor, floor<Fp64>>);
  table.set(Op::kVFractF64, kFastFunction<Function::kFract, fract<Fp64>>);
  table.set(Op::kVRcpF64, kFastFunction<Function::kRcp, rcp<Fp64>>);
  table.set(Op::kVRsqF64, kUnary<rsq<Fp64>>);
  table.set(Op::kVSqrtF64, kFastFunction<Function::kSqrt, sqrt<Fp64>>);
  table.set(Op::kVFrexpMantF64, kUnary<frexp_mant<Fp64>>);
  table.set(Op::kVFrexpExpI32F64, vector<I32(B64), frexp_exp_lane>);
  table.set(Op::kVLdexpF64, vector<B64(B64, I32), ldexp_lane>);
  table.set(Op::kVTrigPreopF64, vector<B64(B64, U32), trig_preop_lane>);
  table.set(Op::kVDivScaleF64, vector<WithBit<B64>(B64, B64, B64), div_scale_lane>);
  table.set(Op::kVDivFmasF64, vector<B64(B64, B64, B64, VccBit), div_fmas_lane>);
  table.set(Op::kVDivFixupF64, kTernary<div_fixup<Fp64>>);
}

}  // namespace gcn
