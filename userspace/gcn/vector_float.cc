// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Vector floating point: fp32. What programs mostly do (round to nearest, all denormals or none, no output modifiers)
// is done for all lanes at once with the host's arithmetic; everything else lane by lane.
#include "gcn/vector_float.h"

namespace gcn {
namespace {

using Bits = std::uint32_t;

[[gnu::always_inline]] inline float as_float(Bits a) {
  float value;
  std::memcpy(&value, &a, sizeof(value));  // as in vector_operands.h
  return value;
}
[[gnu::always_inline]] inline Bits as_bits(float a) {
  Bits value;
  std::memcpy(&value, &a, sizeof(value));
  return value;
}
[[gnu::always_inline]] inline Bits quiet_if_nan(Bits a, Bits otherwise) {
  return (a & 0x7fffffffu) > 0x7f800000u ? a | 0x400000u : otherwise;
}

// One rounding without the host's help. The product is exact as a double. The sum is made odd if it is not exact: a
// double that lies between two others that fp32 could round to, so that rounding it once more rounds as the exact sum.
[[gnu::always_inline]] inline float fused_by_double(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const auto addend = static_cast<double>(c);
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof(bits));
  const bool inexact = error < 0 || error > 0;  // not if it is NaN, as that of an infinite sum is
  const bool beyond = (error < 0) != (sum < 0);
  if (inexact && (bits & 1) == 0) bits += beyond ? ~std::uint64_t{0} : 1;
  double odd = 0;
  std::memcpy(&odd, &bits, sizeof(odd));
  return static_cast<float>(odd);
}

// Lanes: kFused says that the code is for hosts that fuse. NaNs are chosen here, as hosts and compilers differ.
struct AddLane {
  using Signature = B32(B32, B32);
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return quiet_if_nan(a, quiet_if_nan(b, as_bits(as_float(a) + as_float(b))));
  }
};
struct SubLane {
  using Signature = B32(B32, B32);
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return quiet_if_nan(a, quiet_if_nan(b, as_bits(as_float(a) - as_float(b))));
  }
};
struct SubrevLane {
  using Signature = B32(B32, B32);
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return SubLane::run<kFused>(b, a);
  }
};
struct MulLane {
  using Signature = B32(B32, B32);
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return quiet_if_nan(a, quiet_if_nan(b, as_bits(as_float(a) * as_float(b))));
  }
};
struct FmaLane {
  using Signature = B32(B32, B32, B32);
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b, Bits c) {
    const float value = kFused ? __builtin_fmaf(as_float(a), as_float(b), as_float(c))
                               : fused_by_double(as_float(a), as_float(b), as_float(c));
    return quiet_if_nan(a, quiet_if_nan(b, quiet_if_nan(c, as_bits(value))));
  }
};
struct MadLane {
  using Signature = B32(B32, B32, B32);
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b, Bits c) {
    const Bits product = as_bits(as_float(a) * as_float(b));
    const Bits sum = as_bits(as_float(flushed<Fp32>(product, true)) + as_float(c));
    return quiet_if_nan(a, quiet_if_nan(b, quiet_if_nan(product, quiet_if_nan(c, sum))));
  }
};

template <class Lane, bool kFlush, bool kFused, class... B>
[[gnu::always_inline]] inline Bits run_lane(B... sources) {
  return flushed<Fp32>(Lane::template run<kFused>(flushed<Fp32>(sources, kFlush)...), kFlush);
}

using Column = const std::uint32_t* __restrict;
template <class Lane, bool kFlush, bool kFused>
[[gnu::always_inline]] inline void run_columns(std::uint32_t* __restrict d, Column a, Column b, Column c) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if constexpr (std::is_same_v<typename Lane::Signature, B32(B32, B32)>) {
      d[lane] = run_lane<Lane, kFlush, kFused>(a[lane], b[lane]);
    } else {
      d[lane] = run_lane<Lane, kFlush, kFused>(a[lane], b[lane], c[lane]);
    }
  }
}
template <class Lane, bool kFlush>
void run_anywhere(std::uint32_t* __restrict d, Column a, Column b, Column c) {
  run_columns<Lane, kFlush, false>(d, a, b, c);
}
template <class Lane, bool kFlush>
[[gnu::target("avx2,fma")]] void run_fused(std::uint32_t* __restrict d, Column a, Column b, Column c) {
  run_columns<Lane, kFlush, true>(d, a, b, c);
}

bool host_has_vectors() {
  static const bool has = host_has_fma() && __builtin_cpu_supports("avx2") != 0;
  return has;
}

enum class Last : std::uint8_t { kSource, kDestination };
enum class Denormals : std::uint8_t { kByMode, kNever };

// Reads the sources, runs the lanes, writes.
template <class Lane, Last kLast>
Outcome run_fast(const Instruction& instruction, Machine& machine, bool flush) {
  constexpr bool kTwo = std::is_same_v<typename Lane::Signature, B32(B32, B32)>;
  const VectorOperands operands(instruction, machine);
  std::array<Source, kTwo ? 2 : 3> s;
  if (!operands.check_dst(B32::kKind) || !operands.read(0, B32::kKind, s[0]) || !operands.read(1, B32::kKind, s[1])) {
    return Outcome::kIllegal;
  }
  if constexpr (!kTwo) {
    if (kLast == Last::kDestination ? !operands.read_dst(B32::kKind, s[2]) : !operands.read(2, B32::kKind, s[2])) {
      return Outcome::kIllegal;
    }
  }
  const auto run = host_has_vectors() ? (flush ? run_fused<Lane, true> : run_fused<Lane, false>)
                                      : (flush ? run_anywhere<Lane, true> : run_anywhere<Lane, false>);
  Results results;
  run(results.lo.data(), s[0].lo, s[1].lo, s[kTwo ? 1 : 2].lo);
  operands.write(B32::kKind, results);
  return Outcome::kNext;
}

// `kOp`: the same as a function of float.h.
template <class Lane, auto kOp, Last kLast = Last::kSource, Denormals kDenormals = Denormals::kByMode>
Outcome fast_single(const Instruction& instruction, Machine& machine) {
  const FloatMode m = float_mode<Fp32>(machine.wave.mode);
  const bool never = kDenormals == Denormals::kNever;
  if (m.round == Round::kNearest && instruction.omod == 0 && !instruction.clamp &&
      (never || m.flush_in == m.flush_out)) {
    return run_fast<Lane, kLast>(instruction, machine, never || m.flush_in);
  }
  if constexpr (kLast == Last::kDestination) {
    return accumulate<typename Lane::Signature, FloatOp<Fp32, kOp>{}>(instruction, machine);
  } else {
    return vector<typename Lane::Signature, FloatOp<Fp32, kOp>{}>(instruction, machine);
  }
}

Bits mad_legacy(Bits a, Bits b, Bits c, const FloatMode& mode) {
  const FloatMode m = flushing(mode);
  return add<Fp32>(mul_legacy(a, b, m), c, m);
}

template <auto kOp>
constexpr Handler kUnary = vector<B32(B32), FloatOp<Fp32, kOp>{}>;
template <auto kOp>
constexpr Handler kBinary = vector<B32(B32, B32), FloatOp<Fp32, kOp>{}>;
template <auto kOp>
constexpr Handler kTernary = vector<B32(B32, B32, B32), FloatOp<Fp32, kOp>{}>;

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
  constexpr auto kDestination = Last::kDestination;
  constexpr auto kNever = Denormals::kNever;
  table.set(Op::kVAddF32, fast_single<AddLane, add<Fp32>>);
  table.set(Op::kVSubF32, fast_single<SubLane, sub<Fp32>>);
  table.set(Op::kVSubrevF32, fast_single<SubrevLane, subrev<Fp32>>);
  table.set(Op::kVMulF32, fast_single<MulLane, mul<Fp32>>);
  table.set(Op::kVFmaF32, fast_single<FmaLane, fma<Fp32>>);
  table.set(Op::kVFmacF32, fast_single<FmaLane, fma<Fp32>, kDestination>);
  table.set(Op::kVMadF32, fast_single<MadLane, mad<Fp32>, Last::kSource, kNever>);
  table.set(Op::kVMadmkF32, fast_single<MadLane, mad<Fp32>, Last::kSource, kNever>);
  table.set(Op::kVMadakF32, fast_single<MadLane, mad<Fp32>, Last::kSource, kNever>);
  table.set(Op::kVMacF32, fast_single<MadLane, mad<Fp32>, kDestination, kNever>);
  table.set(Op::kVMulLegacyF32, kBinary<mul_legacy>);
  table.set(Op::kVMadLegacyF32, kTernary<mad_legacy>);
  table.set(Op::kVMinF32, kBinary<min<Fp32>>);
  table.set(Op::kVMaxF32, kBinary<max<Fp32>>);
  table.set(Op::kVMin3F32, kTernary<min3<Fp32>>);
  table.set(Op::kVMax3F32, kTernary<max3<Fp32>>);
  table.set(Op::kVMed3F32, kTernary<med3<Fp32>>);
}

void add_functions(HandlerTable& table) {
  table.set(Op::kVFractF32, kUnary<fract<Fp32>>);
  table.set(Op::kVTruncF32, kUnary<trunc<Fp32>>);
  table.set(Op::kVCeilF32, kUnary<ceil<Fp32>>);
  table.set(Op::kVRndneF32, kUnary<rndne<Fp32>>);
  table.set(Op::kVFloorF32, kUnary<floor<Fp32>>);
  table.set(Op::kVExpF32, kUnary<exp2<Fp32>>);
  table.set(Op::kVLogF32, kUnary<log2<Fp32>>);
  table.set(Op::kVExpLegacyF32, kUnary<exp2<Fp32>>);
  table.set(Op::kVLogLegacyF32, kUnary<log2<Fp32>>);
  table.set(Op::kVRcpF32, kUnary<rcp<Fp32>>);
  table.set(Op::kVRcpIflagF32, kUnary<rcp<Fp32>>);  // differs in the exception that it raises
  table.set(Op::kVRsqF32, kUnary<rsq<Fp32>>);
  table.set(Op::kVSqrtF32, kUnary<sqrt<Fp32>>);
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

void add_vector_float_handlers(HandlerTable& table) {
  add_float32_handlers(table);
  add_float16_handlers(table);
  add_float64_handlers(table);
  add_convert_handlers(table);
  add_float_compare_handlers(table);
  add_packed_float_handlers(table);
}

}  // namespace gcn
