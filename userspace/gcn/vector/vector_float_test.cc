// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_float*.cc: each operation computes the right function of float.h, in every mode and with all
// modifiers. So these tests also compare the fast code with the exact functions.
#include "gcn/vector/vector_float_test.h"

#include <cmath>

namespace gcn::vector_float_test {
namespace {

constexpr Encoding kVop1 = Encoding::kVop1;
constexpr Encoding kVop2 = Encoding::kVop2;
constexpr Encoding kVop3 = Encoding::kVop3;

// Makes the cases of functions of one format.
template <class F>
constexpr unsigned kBits = 8 * sizeof(typename F::Bits);

template <class F>
FloatCase unary(Op op, typename F::Bits (*f)(typename F::Bits, const FloatMode&)) {
  return {op, kVop1, kBits<F>, {kBits<F>}, [f](const Sources& s, std::uint32_t mode) {
            return f(static_cast<typename F::Bits>(s[0]), float_mode<F>(mode));
          }};
}
template <class F, class Function>
FloatCase binary(Op op, Function f) {
  return {op, kVop2, kBits<F>, {kBits<F>, kBits<F>}, [f](const Sources& s, std::uint32_t mode) {
            using Bits = typename F::Bits;
            return f(static_cast<Bits>(s[0]), static_cast<Bits>(s[1]), float_mode<F>(mode));
          }};
}
template <class F, class Function>
FloatCase ternary(Op op, Function f) {
  return {op, kVop3, kBits<F>, {kBits<F>, kBits<F>, kBits<F>}, [f](const Sources& s, std::uint32_t mode) {
            using Bits = typename F::Bits;
            return f(static_cast<Bits>(s[0]), static_cast<Bits>(s[1]), static_cast<Bits>(s[2]), float_mode<F>(mode));
          }};
}
FloatCase accumulating(FloatCase c) {
  c.accumulates = true;
  return c;
}
FloatCase keeping(FloatCase c) {
  c.keeps_other = true;
  return c;
}

template <class F>
constexpr auto kMinus =
    [](auto a, auto b, const FloatMode& m) { return is_nan<F>(b) ? add<F>(a, b, m) : add<F>(a, negated<F>(b), m); };
template <class F>
constexpr auto kReverse = [](auto a, auto b, const FloatMode& m) { return kMinus<F>(b, a, m); };
template <class F>
constexpr auto kLeast = [](auto a, auto b, auto c, const FloatMode& m) { return min<F>(min<F>(a, b, m), c, m); };
template <class F>
constexpr auto kMost = [](auto a, auto b, auto c, const FloatMode& m) { return max<F>(max<F>(a, b, m), c, m); };

TEST(VectorFloat, singles) {
  check(binary<Fp32>(Op::kVAddF32, add<Fp32>));
  check(binary<Fp32>(Op::kVSubF32, kMinus<Fp32>));
  check(binary<Fp32>(Op::kVSubrevF32, kReverse<Fp32>));
  check(binary<Fp32>(Op::kVMulF32, mul<Fp32>));
  check(binary<Fp32>(Op::kVMulLegacyF32, mul_legacy));
  check(binary<Fp32>(Op::kVMinF32, min<Fp32>));
  check(binary<Fp32>(Op::kVMaxF32, max<Fp32>));
  check(ternary<Fp32>(Op::kVFmaF32, fma<Fp32>));
  check(accumulating(ternary<Fp32>(Op::kVFmacF32, fma<Fp32>)));
  check(ternary<Fp32>(Op::kVMadF32, mad<Fp32>));
  check(ternary<Fp32>(Op::kVMadmkF32, mad<Fp32>));
  check(ternary<Fp32>(Op::kVMadakF32, mad<Fp32>));
  check(accumulating(ternary<Fp32>(Op::kVMacF32, mad<Fp32>)));
  check(ternary<Fp32>(Op::kVMadLegacyF32, [](auto a, auto b, auto c, const FloatMode& m) {
    return add<Fp32>(mul_legacy(a, b, flushing(m)), c, flushing(m));
  }));
  check(ternary<Fp32>(Op::kVMin3F32, kLeast<Fp32>));
  check(ternary<Fp32>(Op::kVMax3F32, kMost<Fp32>));
  check(ternary<Fp32>(Op::kVMed3F32, med3<Fp32>));
  check(ternary<Fp32>(Op::kVDivFixupF32, div_fixup<Fp32>));
}

TEST(VectorFloat, functions_of_singles) {
  check(unary<Fp32>(Op::kVFractF32, fract<Fp32>));
  check(unary<Fp32>(Op::kVTruncF32, trunc<Fp32>));
  check(unary<Fp32>(Op::kVCeilF32, ceil<Fp32>));
  check(unary<Fp32>(Op::kVRndneF32, rndne<Fp32>));
  check(unary<Fp32>(Op::kVFloorF32, floor<Fp32>));
  check(unary<Fp32>(Op::kVExpF32, exp2<Fp32>));
  check(unary<Fp32>(Op::kVExpLegacyF32, exp2<Fp32>));
  check(unary<Fp32>(Op::kVLogF32, log2<Fp32>));
  check(unary<Fp32>(Op::kVLogLegacyF32, log2<Fp32>));
  check(unary<Fp32>(Op::kVRcpF32, rcp<Fp32>));
  check(unary<Fp32>(Op::kVRcpIflagF32, rcp<Fp32>));
  check(unary<Fp32>(Op::kVRsqF32, rsq<Fp32>));
  check(unary<Fp32>(Op::kVSqrtF32, sqrt<Fp32>));
  check(unary<Fp32>(Op::kVSinF32, sin<Fp32>));
  check(unary<Fp32>(Op::kVCosF32, cos<Fp32>));
  check(unary<Fp32>(Op::kVFrexpMantF32, frexp_mant<Fp32>));
  check({Op::kVFrexpExpI32F32, kVop1, 32, {32}, [](const Sources& s, std::uint32_t mode) {
           return static_cast<std::uint32_t>(frexp_exp<Fp32>(static_cast<std::uint32_t>(s[0]), float_mode<Fp32>(mode)));
         }});
  check({Op::kVLdexpF32, kVop3, 32, {32, 16}, [](const Sources& s, std::uint32_t mode) {
           return ldexp<Fp32>(static_cast<std::uint32_t>(s[0]), static_cast<int>(s[1]), float_mode<Fp32>(mode));
         }});
}

TEST(VectorFloat, halves) {
  check(binary<Fp16>(Op::kVAddF16, add<Fp16>));
  check(binary<Fp16>(Op::kVSubF16, kMinus<Fp16>));
  check(binary<Fp16>(Op::kVSubrevF16, kReverse<Fp16>));
  check(binary<Fp16>(Op::kVMulF16, mul<Fp16>));
  check(binary<Fp16>(Op::kVMinF16, min<Fp16>));
  check(binary<Fp16>(Op::kVMaxF16, max<Fp16>));
  check(accumulating(ternary<Fp16>(Op::kVMacF16, mad<Fp16>)));
  check(ternary<Fp16>(Op::kVMadmkF16, mad<Fp16>));
  check(ternary<Fp16>(Op::kVMadakF16, mad<Fp16>));
  check(ternary<Fp16>(Op::kVMadLegacyF16, mad<Fp16>));
  check(ternary<Fp16>(Op::kVFmaLegacyF16, fma<Fp16>));
  check(ternary<Fp16>(Op::kVDivFixupLegacyF16, div_fixup<Fp16>));
  check(keeping(ternary<Fp16>(Op::kVMadF16, mad<Fp16>)));
  check(keeping(ternary<Fp16>(Op::kVFmaF16, fma<Fp16>)));
  check(keeping(ternary<Fp16>(Op::kVDivFixupF16, div_fixup<Fp16>)));
  check(keeping(ternary<Fp16>(Op::kVMin3F16, kLeast<Fp16>)));
  check(keeping(ternary<Fp16>(Op::kVMax3F16, kMost<Fp16>)));
  check(keeping(ternary<Fp16>(Op::kVMed3F16, med3<Fp16>)));
}

TEST(VectorFloat, functions_of_halves) {
  check(unary<Fp16>(Op::kVRcpF16, rcp<Fp16>));
  check(unary<Fp16>(Op::kVSqrtF16, sqrt<Fp16>));
  check(unary<Fp16>(Op::kVRsqF16, rsq<Fp16>));
  check(unary<Fp16>(Op::kVLogF16, log2<Fp16>));
  check(unary<Fp16>(Op::kVExpF16, exp2<Fp16>));
  check(unary<Fp16>(Op::kVSinF16, sin<Fp16>));
  check(unary<Fp16>(Op::kVCosF16, cos<Fp16>));
  check(unary<Fp16>(Op::kVFloorF16, floor<Fp16>));
  check(unary<Fp16>(Op::kVCeilF16, ceil<Fp16>));
  check(unary<Fp16>(Op::kVTruncF16, trunc<Fp16>));
  check(unary<Fp16>(Op::kVRndneF16, rndne<Fp16>));
  check(unary<Fp16>(Op::kVFractF16, fract<Fp16>));
  check(unary<Fp16>(Op::kVFrexpMantF16, frexp_mant<Fp16>));
  check({Op::kVFrexpExpI16F16, kVop1, 16, {16}, [](const Sources& s, std::uint32_t mode) {
           return static_cast<std::uint16_t>(frexp_exp<Fp16>(static_cast<std::uint16_t>(s[0]), float_mode<Fp16>(mode)));
         }});
  check({Op::kVLdexpF16, kVop2, 16, {16, 16}, [](const Sources& s, std::uint32_t mode) {
           return ldexp<Fp16>(static_cast<std::uint16_t>(s[0]), static_cast<std::int16_t>(s[1]),
                              float_mode<Fp16>(mode));
         }});
}

TEST(VectorFloat, doubles) {
  check(binary<Fp64>(Op::kVAddF64, add<Fp64>));
  check(binary<Fp64>(Op::kVMulF64, mul<Fp64>));
  check(binary<Fp64>(Op::kVMinF64, min<Fp64>));
  check(binary<Fp64>(Op::kVMaxF64, max<Fp64>));
  check(ternary<Fp64>(Op::kVFmaF64, fma<Fp64>));
  check(accumulating(ternary<Fp64>(Op::kVFmacF64, fma<Fp64>)));
  check(ternary<Fp64>(Op::kVDivFixupF64, div_fixup<Fp64>));
  check(unary<Fp64>(Op::kVTruncF64, trunc<Fp64>));
  check(unary<Fp64>(Op::kVCeilF64, ceil<Fp64>));
  check(unary<Fp64>(Op::kVRndneF64, rndne<Fp64>));
  check(unary<Fp64>(Op::kVFloorF64, floor<Fp64>));
  check(unary<Fp64>(Op::kVFractF64, fract<Fp64>));
  check(unary<Fp64>(Op::kVRcpF64, rcp<Fp64>));
  check(unary<Fp64>(Op::kVRsqF64, rsq<Fp64>));
  check(unary<Fp64>(Op::kVSqrtF64, sqrt<Fp64>));
  check(unary<Fp64>(Op::kVFrexpMantF64, frexp_mant<Fp64>));
  check({Op::kVFrexpExpI32F64, kVop1, 32, {64}, [](const Sources& s, std::uint32_t mode) {
           return static_cast<std::uint32_t>(frexp_exp<Fp64>(s[0], float_mode<Fp64>(mode)));
         }});
  check({Op::kVLdexpF64, kVop3, 64, {64, 16}, [](const Sources& s, std::uint32_t mode) {
           return ldexp<Fp64>(s[0], static_cast<int>(s[1]), float_mode<Fp64>(mode));
         }});
  check({Op::kVTrigPreopF64, kVop3, 64, {64, 32}, [](const Sources& s, std::uint32_t /*mode*/) {
           return trig_preop(s[0], static_cast<std::uint32_t>(s[1]));
         }});
}

// --- Modifiers ---

std::uint32_t bits_of(float a) { return std::bit_cast<std::uint32_t>(a); }

// Executes an operation of singles and returns the result of one lane.
std::uint32_t result_of(const Instruction& in, std::array<float, 3> sources, std::uint32_t mode) {
  FloatMachine m;
  m.wave.mode = mode;
  for (unsigned n = 0; n < 3; ++n) m.put(FloatMachine::source(n), 5, 32, bits_of(sources[n]));
  EXPECT_EQ(m.run(in), Outcome::kNext);
  return m.wave.vgpr[FloatMachine::kDst][5];
}

constexpr std::uint32_t kFlushMode = 0xc0;  // no IEEE, no denormals of fp32

TEST(VectorFloat, neg_and_abs_change_signs_of_sources) {
  Instruction in = float_instruction(Op::kVFmaF32, kVop3);
  in.neg = 1 | 4;
  in.abs = 2 | 4;
  EXPECT_EQ(result_of(in, {2, -3, -5}, kUsualMode), bits_of(-2.0F * 3 - 5));
  in = float_instruction(Op::kVAddF32, kVop3);
  in.neg = 2;
  EXPECT_EQ(result_of(in, {2, 3, 0}, kUsualMode), bits_of(-1.0F));
}

TEST(VectorFloat, clamp_and_omod_apply_to_results) {
  Instruction in = float_instruction(Op::kVAddF32, kVop3);
  in.clamp = true;
  EXPECT_EQ(result_of(in, {2, 3, 0}, kUsualMode), bits_of(1));
  EXPECT_EQ(result_of(in, {-2, -3, 0}, kUsualMode), 0U);
  EXPECT_EQ(result_of(in, {INFINITY, -INFINITY, 0}, kUsualMode), 0U);
  in.clamp = false;
  in.omod = 2;
  EXPECT_EQ(result_of(in, {2, 3, 0}, kFlushMode), bits_of(20));
  EXPECT_EQ(result_of(in, {2, 3, 0}, kUsualMode), bits_of(5));
  in = float_instruction(Op::kVFmacF32, kVop3);
  in.omod = 3;
  EXPECT_EQ(result_of(in, {2, 3, 0}, kFlushMode), bits_of(3));
}

TEST(VectorFloat, constants_and_literals_are_sources) {
  Instruction in = float_instruction(Op::kVMadakF32, kVop2);
  in.src = {operand::kFloatHalf, operand::kVgpr0 + FloatMachine::source(1), operand::kLiteral, operand::kNone};
  in.literal = bits_of(100);
  EXPECT_EQ(result_of(in, {0, 4, 0}, kUsualMode), bits_of(102));
  in = float_instruction(Op::kVAddF16, kVop2);
  in.src[0] = operand::kFloatHalf + 2;
  in.src[1] = operand::kFloatHalf + 4;
  EXPECT_EQ(result_of(in, {}, kUsualMode), 0x4200U);
}

TEST(VectorFloat, div_scale_says_which_lanes_are_scaled) {
  FloatMachine m;
  const auto put = [&m](unsigned lane, float n, float d) {
    m.put(FloatMachine::source(0), lane, 32, bits_of(n));
    m.put(FloatMachine::source(1), lane, 32, bits_of(d));
    m.put(FloatMachine::source(2), lane, 32, bits_of(n));
  };
  for (unsigned lane = 0; lane < kLanes; ++lane) put(lane, 1, 3);
  put(7, 0x1p-126F, 0x1p10F);
  m.wave.set_vcc(~std::uint64_t{0});
  ASSERT_EQ(m.run(float_instruction(Op::kVDivScaleF32, kVop3)), Outcome::kNext);
  EXPECT_EQ(m.wave.vcc(), std::uint64_t{1} << 7);
  EXPECT_EQ(m.wave.vgpr[FloatMachine::kDst][7], bits_of(0x1p-62F));
  EXPECT_EQ(m.wave.vgpr[FloatMachine::kDst][8], bits_of(1));
}

TEST(VectorFloat, div_fmas_scales_lanes_of_vcc) {
  FloatMachine m;
  for (unsigned n = 0; n < 3; ++n) m.fill(FloatMachine::source(n), [](unsigned) { return bits_of(1); });
  m.wave.set_vcc(2);
  ASSERT_EQ(m.run(float_instruction(Op::kVDivFmasF32, kVop3)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[FloatMachine::kDst][0], bits_of(2));
  EXPECT_EQ(m.wave.vgpr[FloatMachine::kDst][1], bits_of(0x1p-63F));
}

// The fast code propagates and generates the NaNs that the exact functions do.
TEST(VectorFloat, nans_of_the_fast_way_are_those_of_the_exact_way) {
  const std::array<std::uint32_t, 6> values = {0x7f800001, 0xffc00002, 0x7f800000, 0xff800000, 0, 0x3f800000};
  for (const std::uint32_t a : values) {
    for (const std::uint32_t b : values) {
      for (const std::uint32_t c : values) {
        const std::array<float, 3> s = {std::bit_cast<float>(a), std::bit_cast<float>(b), std::bit_cast<float>(c)};
        const FloatMode m = float_mode<Fp32>(kUsualMode);
        EXPECT_EQ(result_of(float_instruction(Op::kVFmaF32, kVop3), s, kUsualMode), fma<Fp32>(a, b, c, m));
        EXPECT_EQ(result_of(float_instruction(Op::kVMadF32, kVop3), s, kUsualMode), mad<Fp32>(a, b, c, m));
        EXPECT_EQ(result_of(float_instruction(Op::kVSubF32, kVop2), s, kUsualMode), kMinus<Fp32>(a, b, m));
      }
    }
  }
}

}  // namespace
}  // namespace gcn::vector_float_test
