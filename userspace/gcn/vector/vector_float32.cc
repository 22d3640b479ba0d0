// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of vector floating point: fp32.
#include "gcn/vector/vector_float.h"
#include "gcn/vector/vector_lanes.h"

namespace gcn {
namespace {

using Bits = std::uint32_t;

template <auto kOp>
constexpr Handler kUnary = vector<B32(B32), FloatOp<Fp32, kOp>{}>;
template <auto kOp>
constexpr Handler kBinary = vector<B32(B32, B32), FloatOp<Fp32, kOp>{}>;
template <auto kOp>
constexpr Handler kTernary = vector<B32(B32, B32, B32), FloatOp<Fp32, kOp>{}>;
template <auto kOp>
constexpr Handler kAccumulating = accumulate<B32(B32, B32, B32), FloatOp<Fp32, kOp>{}>;

// A handler of an operation that has no denormals, whatever the mode.
template <class Lane, Handler kExact, Form kForm = Form::kSources>
constexpr Handler kFastFlushing = fast<Lane, kExact, kForm, Denormals::kNever>;

template <Function kFunction, auto kOp>
constexpr Handler kFastFunction = fast<FunctionLane<Fp32, kFunction>, kUnary<kOp>>;

Bits mad_legacy(Bits a, Bits b, Bits c, const FloatMode& mode) {
  const FloatMode m = flushing(mode);
  return add<Fp32>(mul_legacy(a, b, m), c, m);
}

Bits ldexp_lane(Bits a, std::int32_t n, const LaneContext& context) {
  const FloatMode m = float_mode<Fp32>(context.mode);
  return finished<Fp32>(ldexp<Fp32>(a, n, m), context, m);
}
std::int32_t frexp_exp_lane(Bits a, const LaneContext& context) {
  return frexp_exp<Fp32>(a, float_mode<Fp32>(context.mode));
}
WithBit<B32>::Value div_scale_lane(Bits a, Bits denominator, Bits numerator, const LaneContext& context) {
  const FloatMode m = float_mode<Fp32>(context.mode);
  const Scaled<Fp32> result = div_scale<Fp32>(a, denominator, numerator, m);
  return {finished<Fp32>(result.value, context, m), result.scaled};
}
Bits div_fmas_lane(Bits a, Bits b, Bits c, std::uint32_t scaled, const LaneContext& context) {
  const FloatMode m = float_mode<Fp32>(context.mode);
  return finished<Fp32>(div_fmas<Fp32>(a, b, c, scaled != 0, m), context, m);
}

template <Bits Cube::*kPart>
Bits cube_part(Bits x, Bits y, Bits z, const FloatMode& m) {
  return cube(x, y, z, m).*kPart;
}

void add_arithmetic(HandlerTable& table) {
  constexpr Handler kMad = kFastFlushing<MadLane<Fp32>, kTernary<mad<Fp32>>>;
  table.set(Op::kVAddF32, fast<AddLane<Fp32>, kBinary<add<Fp32>>>);
  table.set(Op::kVSubF32, fast<SubLane<Fp32>, kBinary<sub<Fp32>>>);
  table.set(Op::kVSubrevF32, fast<SubrevLane<Fp32>, kBinary<subrev<Fp32>>>);
  table.set(Op::kVMulF32, fast<MulLane<Fp32>, kBinary<mul<Fp32>>>);
  table.set(Op::kVFmaF32, fast<FmaLane<Fp32>, kTernary<fma<Fp32>>>);
  table.set(Op::kVFmacF32, fast<FmaLane<Fp32>, kAccumulating<fma<Fp32>>, Form::kAccumulate>);
  table.set(Op::kVMadF32, kMad);
  table.set(Op::kVMadmkF32, kMad);
  table.set(Op::kVMadakF32, kMad);
  table.set(Op::kVMacF32, kFastFlushing<MadLane<Fp32>, kAccumulating<mad<Fp32>>, Form::kAccumulate>);
  table.set(Op::kVMulLegacyF32, kBinary<mul_legacy>);
  table.set(Op::kVMadLegacyF32, kTernary<mad_legacy>);
  table.set(Op::kVMinF32, fast_choice<MinLane, Fp32, kBinary<min<Fp32>>>);
  table.set(Op::kVMaxF32, fast_choice<MaxLane, Fp32, kBinary<max<Fp32>>>);
  table.set(Op::kVMin3F32, kTernary<min3<Fp32>>);
  table.set(Op::kVMax3F32, kTernary<max3<Fp32>>);
  table.set(Op::kVMed3F32, kTernary<med3<Fp32>>);
}

void add_functions(HandlerTable& table) {
  table.set(Op::kVFractF32, kFastFunction<Function::kFract, fract<Fp32>>);
  table.set(Op::kVTruncF32, kFastFunction<Function::kTrunc, trunc<Fp32>>);
  table.set(Op::kVCeilF32, kFastFunction<Function::kCeil, ceil<Fp32>>);
  table.set(Op::kVRndneF32, kFastFunction<Function::kRndne, rndne<Fp32>>);
  table.set(Op::kVFloorF32, kFastFunction<Function::kFloor, floor<Fp32>>);
  table.set(Op::kVExpF32, kUnary<exp2<Fp32>>);
  table.set(Op::kVLogF32, kUnary<log2<Fp32>>);
  table.set(Op::kVExpLegacyF32, kUnary<exp2<Fp32>>);
  table.set(Op::kVLogLegacyF32, kUnary<log2<Fp32>>);
  constexpr Handler kRcp = kFastFlushing<FunctionLane<Fp32, Function::kRcp>, kUnary<rcp<Fp32>>>;
  table.set(Op::kVRcpF32, kRcp);
  table.set(Op::kVRcpIflagF32, kRcp);  // differs from v_rcp_f32 only in the exception that it raises
  table.set(Op::kVRsqF32, kUnary<rsq<Fp32>>);
  table.set(Op::kVSqrtF32, kFastFlushing<FunctionLane<Fp32, Function::kSqrt>, kUnary<sqrt<Fp32>>>);
  table.set(Op::kVSinF32, kUnary<sin<Fp32>>);
  table.set(Op::kVCosF32, kUnary<cos<Fp32>>);
  table.set(Op::kVFrexpMantF32, kUnary<frexp_mant<Fp32>>);
  table.set(Op::kVFrexpExpI32F32, vector<I32(B32), frexp_exp_lane>);
  table.set(Op::kVLdexpF32, vector<B32(B32, I32), ldexp_lane>);
  table.set(Op::kVDivScaleF32, vector<WithBit<B32>(B32, B32, B32), div_scale_lane>);
  table.set(Op::kVDivFmasF32, vector<B32(B32, B32, B32, VccBit), div_fmas_lane>);
  table.set(Op::kVDivFixupF32, kTernary<div_fixup<Fp32>>);
  table.set(Op::kVCubeidF32, kTernary<cube_part<&Cube::id>>);
  table.set(Op::kVCubescF32, kTernary<cube_part<&Cube::sc>>);
  table.set(Op::kVCubetcF32, kTernary<cube_part<&Cube::tc>>);
  table.set(Op::kVCubemaF32, kTernary<cube_part<&Cube::ma>>);
}

}  // namespace

void add_float32_handlers(HandlerTable& table) {
  add_arithmetic(table);
  add_functions(table);
}

}  // namespace gcn
