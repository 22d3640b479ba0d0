// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of vector floating point: fp16, one result. Operations that gfx9 inherited clear the upper half of the
// destination; those that it introduced (with op_sel) keep the half that they do not write.
#include "gcn/vector/vector_float.h"
#include "gcn/vector/vector_lanes.h"

namespace gcn {
namespace {

using Bits = Fp16::Bits;

template <auto kOp>
constexpr Handler kUnary = vector<F16(F16), FloatOp<Fp16, kOp>{}>;
template <auto kOp>
constexpr Handler kBinary = vector<F16(F16, F16), FloatOp<Fp16, kOp>{}>;
template <auto kOp>
constexpr Handler kTernary = vector<F16(F16, F16, F16), FloatOp<Fp16, kOp>{}>;
template <auto kOp>
constexpr Handler kKeeping = vector<Keep<F16>(F16, F16, F16), FloatOp<Fp16, kOp>{}>;

template <auto kOp>
constexpr Handler kAccumulating = accumulate<F16(F16, F16, F16), FloatOp<Fp16, kOp>{}>;

template <class Lane, Handler kExact>
constexpr Handler kFast = fast<Lane, kExact, Form::kSources, Denormals::kByMode, F16>;
template <class Lane, Handler kExact, Form kForm = Form::kSources, class Result = F16>
constexpr Handler kFastFlushing = fast<Lane, kExact, kForm, Denormals::kNever, Result>;
template <Function kFunction, auto kOp>
constexpr Handler kFastFunction = kFast<FunctionLane<Fp16, kFunction>, kUnary<kOp>>;

Bits ldexp_lane(Bits a, std::int16_t n, const LaneContext& context) {
  const FloatMode m = float_mode<Fp16>(context.mode);
  return finished<Fp16>(ldexp<Fp16>(a, n, m), context, m);
}
std::int16_t frexp_exp_lane(Bits a, const LaneContext& context) {
  return static_cast<std::int16_t>(frexp_exp<Fp16>(a, float_mode<Fp16>(context.mode)));
}

void add_arithmetic(HandlerTable& table) {
  constexpr Handler kMad = kFastFlushing<MadLane<Fp16>, kTernary<mad<Fp16>>>;
  table.set(Op::kVAddF16, kFast<AddLane<Fp16>, kBinary<add<Fp16>>>);
  table.set(Op::kVSubF16, kFast<SubLane<Fp16>, kBinary<sub<Fp16>>>);
  table.set(Op::kVSubrevF16, kFast<SubrevLane<Fp16>, kBinary<subrev<Fp16>>>);
  table.set(Op::kVMulF16, kFast<MulLane<Fp16>, kBinary<mul<Fp16>>>);
  table.set(Op::kVMinF16, fast_choice<MinLane, Fp16, kBinary<min<Fp16>>, Form::kSources, F16>);
  table.set(Op::kVMaxF16, fast_choice<MaxLane, Fp16, kBinary<max<Fp16>>, Form::kSources, F16>);
  table.set(Op::kVMacF16, kFastFlushing<MadLane<Fp16>, kAccumulating<mad<Fp16>>, Form::kAccumulate>);
  table.set(Op::kVMadmkF16, kMad);
  table.set(Op::kVMadakF16, kMad);
  table.set(Op::kVMadLegacyF16, kMad);
  table.set(Op::kVFmaLegacyF16, kTernary<fma<Fp16>>);
  table.set(Op::kVDivFixupLegacyF16, kTernary<div_fixup<Fp16>>);
  table.set(Op::kVMadF16, kFastFlushing<MadLane<Fp16>, kKeeping<mad<Fp16>>, Form::kSources, Keep<F16>>);
  table.set(Op::kVFmaF16, fast<FmaLane<Fp16>, kKeeping<fma<Fp16>>, Form::kSources, Denormals::kByMode, Keep<F16>>);
  table.set(Op::kVDivFixupF16, kKeeping<div_fixup<Fp16>>);
  table.set(Op::kVMin3F16, kKeeping<min3<Fp16>>);
  table.set(Op::kVMax3F16, kKeeping<max3<Fp16>>);
  table.set(Op::kVMed3F16, kKeeping<med3<Fp16>>);
}

}  // namespace

void add_float16_handlers(HandlerTable& table) {
  add_arithmetic(table);
  table.set(Op::kVRcpF16, kFastFunction<Function::kRcp, rcp<Fp16>>);
  table.set(Op::kVSqrtF16, kFastFunction<Function::kSqrt, sqrt<Fp16>>);
  table.set(Op::kVRsqF16, kUnary<rsq<Fp16>>);
  table.set(Op::kVLogF16, kUnary<log2<Fp16>>);
  table.set(Op::kVExpF16, kUnary<exp2<Fp16>>);
  table.set(Op::kVSinF16, kUnary<sin<Fp16>>);
  table.set(Op::kVCosF16, kUnary<cos<Fp16>>);
  table.set(Op::kVFloorF16, kFastFunction<Function::kFloor, floor<Fp16>>);
  table.set(Op::kVCeilF16, kFastFunction<Function::kCeil, ceil<Fp16>>);
  table.set(Op::kVTruncF16, kFastFunction<Function::kTrunc, trunc<Fp16>>);
  table.set(Op::kVRndneF16, kFastFunction<Function::kRndne, rndne<Fp16>>);
  table.set(Op::kVFractF16, kUnary<fract<Fp16>>);
  table.set(Op::kVFrexpMantF16, kUnary<frexp_mant<Fp16>>);
  table.set(Op::kVFrexpExpI16F16, vector<I16(F16), frexp_exp_lane>);
  table.set(Op::kVLdexpF16, vector<F16(F16, I16), ldexp_lane>);
}

}  // namespace gcn
