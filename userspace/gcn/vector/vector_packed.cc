// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of floating point in VOP3P: two results, sources of mixed precision, dot products; and of the VOP2
// operations v_pk_fmac_f16 and v_dot2c_f32_f16.
#include "gcn/vector/vector_float.h"
#include "gcn/vector/vector_lanes.h"

namespace gcn {
namespace {

using Half = Fp16::Bits;
using Single = Fp32::Bits;

constexpr Half low_half(std::uint32_t a) { return static_cast<Half>(a); }
constexpr Half high_half(std::uint32_t a) { return static_cast<Half>(a >> 16); }

template <auto kOp>
constexpr Handler kHalves2 = packed<F16(F16, F16), FloatOp<Fp16, kOp>{}>;
template <auto kOp>
constexpr Handler kHalves3 = packed<F16(F16, F16, F16), FloatOp<Fp16, kOp>{}>;
template <auto kOp>
constexpr Handler kSingles2 = packed<B32(B32, B32), FloatOp<Fp32, kOp>{}>;
template <auto kOp>
constexpr Handler kSingles3 = packed<B32(B32, B32, B32), FloatOp<Fp32, kOp>{}>;

template <class Lane, Handler kExact>
constexpr Handler kFast = fast<Lane, kExact, Form::kPacked>;

std::uint32_t pk_fmac_lane(std::uint32_t a, std::uint32_t b, std::uint32_t c, const LaneContext& context) {
  const FloatMode m = float_mode<Fp16>(context.mode);
  const Half low = fma<Fp16>(low_half(a), low_half(b), low_half(c), m);
  const Half high = fma<Fp16>(high_half(a), high_half(b), high_half(c), m);
  return low | std::uint32_t{high} << 16;
}

Single widened(Half a, std::uint32_t mode) {
  return convert<Fp32, Fp16>(a, float_mode<Fp16>(mode), float_mode<Fp32>(mode));
}

// --- Dot products ---

// Computes two fused steps, the upper halves first, as compilers assume. Denormals of fp32 are flushed, on gfx90a those
// of fp16 too. Hardware may round less often in between.
Single dot2(std::uint32_t a, std::uint32_t b, Single c, const LaneContext& context) {
  const FloatMode m = flushing(float_mode<Fp32>(context.mode));
  const auto factor = [&](Half value) {
    return widened(flushed<Fp16>(value, context.isa == Isa::kGfx90a), context.mode);
  };
  const Single upper = fma<Fp32>(factor(high_half(a)), factor(high_half(b)), c, m);
  return fma<Fp32>(factor(low_half(a)), factor(low_half(b)), upper, m);
}

Single dot2c_lane(std::uint32_t a, std::uint32_t b, Single c, const LaneContext& context) {
  return finished<Fp32>(dot2(a, b, c, context), context, flushing(float_mode<Fp32>(context.mode)));
}

bool bit_of(unsigned bits, unsigned n) { return (bits >> n & 1) != 0; }

Outcome dot2_f32_f16(const Instruction& instruction, Machine& machine) {
  const VectorOperands operands(instruction, machine);
  std::array<Source, 2> low;
  std::array<Source, 2> high;
  Source addend;
  bool legal = operands.check_dst(B32::kKind) && operands.read(2, B32::kKind, addend);
  for (unsigned n = 0; n < 2 && legal; ++n) {
    legal = operands.read(n, F16::kKind, low[n], Part::kLow) && operands.read(n, F16::kKind, high[n], Part::kHigh);
  }
  if (!legal) return Outcome::kIllegal;
  const LaneContext context = operands.context();
  Results results;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto both = [&](unsigned n) { return low_half(low[n].lo[lane]) | high[n].lo[lane] << 16; };
    const Single c = bit_of(instruction.neg, 2) ? negated<Fp32>(addend.lo[lane]) : addend.lo[lane];
    results.lo[lane] = dot2c_lane(both(0), both(1), c, context);
  }
  operands.write(B32::kKind, results);
  return Outcome::kNext;
}

// --- Mixed precision: op_sel_hi says which sources are halves, op_sel which half; neg_hi is abs ---

// The ISA documents do not say which value a constant has for a source that is a half; only zero is certain.
bool is_certain(std::uint16_t number) {
  return operand::is_vgpr(number) || number < kScalars || number == operand::kInt0;
}

bool read_mixed(const VectorOperands& operands, const LaneContext& context, unsigned n, Vgpr& values) {
  const Instruction& in = context.instruction;
  const bool is_half = bit_of(in.op_sel_hi, n);
  if (is_half && !is_certain(in.src[n])) return false;
  Source source;
  const bool legal = is_half ? operands.read(n, U16::kKind, source, Part::kLow) : operands.read(n, B32::kKind, source);
  if (!legal) return false;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    Single value = is_half ? widened(low_half(source.lo[lane]), context.mode) : source.lo[lane];
    if (bit_of(in.abs, n)) value = magnitude<Fp32>(value);
    values[lane] = bit_of(in.neg, n) ? negated<Fp32>(value) : value;
  }
  return true;
}

enum class To : std::uint8_t { kSingle, kLow, kHigh };

// A result that is a half is rounded twice: to fp32 first.
template <To kTo>
std::uint32_t placed(Single value, std::uint32_t old, const LaneContext& context) {
  const FloatMode single = float_mode<Fp32>(context.mode);
  if constexpr (kTo == To::kSingle) {
    return finished<Fp32>(value, context, single);
  } else {
    const FloatMode m = float_mode<Fp16>(context.mode);
    const std::uint32_t half = finished<Fp16>(convert<Fp16, Fp32>(value, single, m), context, m);
    return kTo == To::kLow ? (old & 0xffff0000) | half : (old & 0xffff) | half << 16;
  }
}

template <auto kOp, To kTo>
Outcome mix(const Instruction& instruction, Machine& machine) {
  const VectorOperands operands(instruction, machine);
  const LaneContext context = operands.context();
  std::array<Vgpr, 3> s;
  Source old;
  if (!operands.check_dst(U32::kKind) || !operands.read_dst(U32::kKind, old)) return Outcome::kIllegal;
  for (unsigned n = 0; n < 3; ++n) {
    if (!read_mixed(operands, context, n, s[n])) return Outcome::kIllegal;
  }
  const FloatMode m = float_mode<Fp32>(context.mode);
  Results results;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    results.lo[lane] = placed<kTo>(kOp(s[0][lane], s[1][lane], s[2][lane], m), old.lo[lane], context);
  }
  operands.write(U32::kKind, results);
  return Outcome::kNext;
}

}  // namespace

void add_packed_float_handlers(HandlerTable& table) {
  table.set(Op::kVPkFmaF16, kFast<FmaLane<Fp16>, kHalves3<fma<Fp16>>>);
  table.set(Op::kVPkAddF16, kFast<AddLane<Fp16>, kHalves2<add<Fp16>>>);
  table.set(Op::kVPkMulF16, kFast<MulLane<Fp16>, kHalves2<mul<Fp16>>>);
  table.set(Op::kVPkMinF16, fast_choice<MinLane, Fp16, kHalves2<min<Fp16>>, Form::kPacked>);
  table.set(Op::kVPkMaxF16, fast_choice<MaxLane, Fp16, kHalves2<max<Fp16>>, Form::kPacked>);
  table.set(Op::kVPkFmacF16, accumulate<U32(P16, P16, U32), pk_fmac_lane>);
  table.set(Op::kVPkFmaF32, kFast<FmaLane<Fp32>, kSingles3<fma<Fp32>>>);
  table.set(Op::kVPkMulF32, kFast<MulLane<Fp32>, kSingles2<mul<Fp32>>>);
  table.set(Op::kVPkAddF32, kFast<AddLane<Fp32>, kSingles2<add<Fp32>>>);
  table.set(Op::kVMadMixF32, mix<mad<Fp32>, To::kSingle>);
  table.set(Op::kVMadMixloF16, mix<mad<Fp32>, To::kLow>);
  table.set(Op::kVMadMixhiF16, mix<mad<Fp32>, To::kHigh>);
  table.set(Op::kVFmaMixF32, mix<fma<Fp32>, To::kSingle>);
  table.set(Op::kVFmaMixloF16, mix<fma<Fp32>, To::kLow>);
  table.set(Op::kVFmaMixhiF16, mix<fma<Fp32>, To::kHigh>);
  table.set(Op::kVDot2F32F16, dot2_f32_f16);
  table.set(Op::kVDot2cF32F16, accumulate<B32(P16, P16, B32), dot2c_lane>);
}

}  // namespace gcn
