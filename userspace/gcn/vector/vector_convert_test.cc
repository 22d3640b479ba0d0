// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_convert.cc, vector_float_compare.cc and vector_packed.cc. They compare with the host's conversions
// and comparisons, or with values computed by hand.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "gcn/vector/vector_float_test.h"

namespace gcn::vector_convert_test {
namespace {

constexpr Encoding kVop1 = Encoding::kVop1;
constexpr Encoding kVop2 = Encoding::kVop2;
constexpr Encoding kVop3 = Encoding::kVop3;

float single(std::uint64_t a) { return std::bit_cast<float>(static_cast<std::uint32_t>(a)); }
double real(std::uint64_t a) { return std::bit_cast<double>(a); }
std::uint32_t bits_of(float a) { return std::bit_cast<std::uint32_t>(a); }
std::uint64_t bits_of(double a) { return std::bit_cast<std::uint64_t>(a); }

bool flushes(std::uint32_t mode, unsigned bits) {
  return (mode & (bits == 32 ? mode::kDenormIn32 : mode::kDenormIn64)) == 0;
}

// Saturates by definition, for comparison with the conversions under test.
template <class Int>
Int saturated(double a) {
  if (std::isnan(a)) return 0;
  if (a <= static_cast<double>(std::numeric_limits<Int>::min())) return std::numeric_limits<Int>::min();
  if (a >= static_cast<double>(std::numeric_limits<Int>::max())) return std::numeric_limits<Int>::max();
  return static_cast<Int>(a);
}

// Returns the results of one source in every mode.
FloatCase of_single(Op op, std::uint32_t (*f)(float)) {
  return {op, kVop1, 32, {32}, [f](const Sources& s, std::uint32_t mode) {
            const auto a = flushed<Fp32>(static_cast<std::uint32_t>(s[0]), flushes(mode, 32));
            return f(std::bit_cast<float>(a));
          }};
}

TEST(VectorConvert, singles_become_integers) {
  check(of_single(Op::kVCvtI32F32, [](float a) { return static_cast<std::uint32_t>(saturated<std::int32_t>(a)); }));
  check(of_single(Op::kVCvtU32F32, [](float a) { return saturated<std::uint32_t>(a); }));
  check(of_single(Op::kVCvtFlrI32F32,
                  [](float a) { return static_cast<std::uint32_t>(saturated<std::int32_t>(std::floor(double{a}))); }));
  check(of_single(Op::kVCvtRpiI32F32, [](float a) {
    return static_cast<std::uint32_t>(saturated<std::int32_t>(std::floor(double{a} + 0.5)));
  }));
}

TEST(VectorConvert, doubles_become_integers) {
  const auto of_double = [](Op op, std::uint32_t (*f)(double)) {
    return FloatCase{op, kVop1, 32, {64}, [f](const Sources& s, std::uint32_t) { return f(real(s[0])); }};
  };
  check(of_double(Op::kVCvtI32F64, [](double a) { return static_cast<std::uint32_t>(saturated<std::int32_t>(a)); }));
  check(of_double(Op::kVCvtU32F64, [](double a) { return saturated<std::uint32_t>(a); }));
}

// --- To floats. The host rounds to nearest only; float_test.cc tests the other rounding modes. ---

std::uint32_t first_lane(Op op, Encoding encoding, Sources sources, std::array<unsigned, 3> bits = {32, 32, 32},
                         std::uint32_t mode = kUsualMode) {
  FloatMachine m;
  m.wave.mode = mode;
  for (unsigned n = 0; n < 3; ++n) m.put(FloatMachine::source(n), 0, bits[n], sources[n]);
  EXPECT_EQ(m.run(float_instruction(op, encoding)), Outcome::kNext) << name(op);
  return m.wave.vgpr[FloatMachine::kDst][0];
}

TEST(VectorConvert, integers_become_floats) {
  std::mt19937 random(1);
  for (int n = 0; n < 300; ++n) {
    const auto a = static_cast<std::uint32_t>(random()) >> (n % 32);
    ASSERT_EQ(first_lane(Op::kVCvtF32U32, kVop1, {a}), bits_of(static_cast<float>(a)));
    ASSERT_EQ(first_lane(Op::kVCvtF32I32, kVop1, {~a}), bits_of(static_cast<float>(static_cast<std::int32_t>(~a))));
    ASSERT_EQ(first_lane(Op::kVCvtF32Ubyte0, kVop1, {a}), bits_of(static_cast<float>(a & 0xff)));
    ASSERT_EQ(first_lane(Op::kVCvtF32Ubyte1, kVop1, {a}), bits_of(static_cast<float>(a >> 8 & 0xff)));
    ASSERT_EQ(first_lane(Op::kVCvtF32Ubyte2, kVop1, {a}), bits_of(static_cast<float>(a >> 16 & 0xff)));
    ASSERT_EQ(first_lane(Op::kVCvtF32Ubyte3, kVop1, {a}), bits_of(static_cast<float>(a >> 24)));
  }
  const auto exactly = [](double (*f)(std::uint32_t)) {
    return [f](const Sources& s, std::uint32_t) { return bits_of(f(static_cast<std::uint32_t>(s[0]))); };
  };
  check({Op::kVCvtF64U32, kVop1, 64, {32}, exactly([](std::uint32_t a) { return static_cast<double>(a); })});
  check({Op::kVCvtF64I32, kVop1, 64, {32}, exactly([](std::uint32_t a) {
           return static_cast<double>(static_cast<std::int32_t>(a));
         })});
}

// Some modes use the fast code and others do not, so all modes are tested.
TEST(VectorConvert, floats_become_floats_in_all_modes) {
  check({Op::kVCvtF32F64, kVop1, 32, {64}, [](const Sources& s, std::uint32_t mode) {
           return convert<Fp32, Fp64>(s[0], float_mode<Fp64>(mode), float_mode<Fp32>(mode));
         }});
  check({Op::kVCvtF64F32, kVop1, 64, {32}, [](const Sources& s, std::uint32_t mode) {
           return convert<Fp64, Fp32>(static_cast<std::uint32_t>(s[0]), float_mode<Fp32>(mode), float_mode<Fp64>(mode));
         }});
  check({Op::kVCvtF16F32, kVop1, 16, {32}, [](const Sources& s, std::uint32_t mode) {
           return convert<Fp16, Fp32>(static_cast<std::uint32_t>(s[0]), float_mode<Fp32>(mode), float_mode<Fp16>(mode));
         }});
  check({Op::kVCvtF32F16, kVop1, 32, {16}, [](const Sources& s, std::uint32_t mode) {
           return convert<Fp32, Fp16>(static_cast<std::uint16_t>(s[0]), float_mode<Fp16>(mode), float_mode<Fp32>(mode));
         }});
  check({Op::kVCvtF32U32, kVop1, 32, {32}, [](const Sources& s, std::uint32_t mode) {
           return from_int<Fp32>(static_cast<std::int64_t>(s[0]), float_mode<Fp32>(mode));
         }});
  check({Op::kVCvtF32I32, kVop1, 32, {32}, [](const Sources& s, std::uint32_t mode) {
           return from_int<Fp32>(static_cast<std::int32_t>(s[0]), float_mode<Fp32>(mode));
         }});
}

TEST(VectorConvert, rounding_is_that_of_the_result) {
  constexpr std::uint32_t kUp32 = 0x3f1;  // fp32 up, fp64 and fp16 to nearest
  EXPECT_EQ(first_lane(Op::kVCvtF32U32, kVop1, {0x01000001}, {32, 32, 32}, kUp32), 0x4b800001U);
  EXPECT_EQ(first_lane(Op::kVCvtF32F64, kVop1, {bits_of(1 + 0x1p-40)}, {64, 32, 32}, kUp32), 0x3f800001U);
  EXPECT_EQ(first_lane(Op::kVCvtF16F32, kVop1, {bits_of(1 + 0x1p-20F)}, {32, 32, 32}, kUp32), 0x3c00U);
  EXPECT_EQ(first_lane(Op::kVCvtF16F32, kVop1, {bits_of(1 + 0x1p-20F)}, {32, 32, 32}, 0x3f4), 0x3c01U);
  EXPECT_EQ(first_lane(Op::kVCvtF16U16, kVop1, {0xffff}), 0x7c00U);
  EXPECT_EQ(first_lane(Op::kVCvtF16U16, kVop1, {0xffff}, {32, 32, 32}, 0x3fc), 0x7bffU);
  EXPECT_EQ(first_lane(Op::kVCvtF16I16, kVop1, {0xffff}), 0xbc00U);
}

TEST(VectorConvert, denormals_of_either_format_follow_their_own_mode) {
  EXPECT_EQ(first_lane(Op::kVCvtF64F32, kVop1, {1}, {32, 32, 32}, 0x3c0), 0U);
  EXPECT_EQ(first_lane(Op::kVCvtF32F16, kVop1, {1}, {32, 32, 32}, 0x3c0), bits_of(0x1p-24F));
  EXPECT_EQ(first_lane(Op::kVCvtF32F16, kVop1, {1}, {32, 32, 32}, 0x330), 0U);
  EXPECT_EQ(first_lane(Op::kVCvtF16F32, kVop1, {bits_of(0x1p-20F)}, {32, 32, 32}, 0x330), 0U);
  EXPECT_EQ(first_lane(Op::kVCvtF16F32, kVop1, {bits_of(0x1p-20F)}, {32, 32, 32}, 0x3c0), 16U);
  EXPECT_EQ(first_lane(Op::kVCvtF32F64, kVop1, {bits_of(0x1p-130)}, {64, 32, 32}, 0x3c0), 0U);
}

// Converts all halves to floats and back, and to integers.
TEST(VectorConvert, all_halves) {
  FloatMachine m;
  Instruction widen = float_instruction(Op::kVCvtF32F16, kVop1);
  Instruction narrow = float_instruction(Op::kVCvtF16F32, kVop1);
  narrow.src[0] = widen.dst;
  narrow.dst = static_cast<std::uint16_t>(widen.dst + 1);
  for (std::uint32_t base = 0; base < 0x10000; base += kLanes) {
    m.fill(FloatMachine::source(0), [base](unsigned lane) { return base + lane; });
    const auto run = [&m](Op op) {
      EXPECT_EQ(m.run(float_instruction(op, kVop1)), Outcome::kNext);
      return m.wave.vgpr[FloatMachine::kDst];
    };
    const Vgpr signed_ints = run(Op::kVCvtI16F16);
    const Vgpr unsigned_ints = run(Op::kVCvtU16F16);
    const Vgpr singles = run(Op::kVCvtF32F16);
    ASSERT_EQ(m.run(narrow), Outcome::kNext);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const auto half = static_cast<std::uint16_t>(base + lane);
      const double value = to_double<Fp16>(half);
      ASSERT_EQ(m.wave.vgpr[FloatMachine::kDst + 1][lane], quieted<Fp16>(half));
      ASSERT_EQ(static_cast<std::int16_t>(signed_ints[lane]), saturated<std::int16_t>(value));
      ASSERT_EQ(unsigned_ints[lane], saturated<std::uint16_t>(value));
      if (std::isnan(value)) continue;
      ASSERT_EQ(static_cast<double>(single(singles[lane])), value);
    }
  }
}

TEST(VectorConvert, packed_results) {
  const std::uint32_t big = bits_of(65536.0F);
  EXPECT_EQ(first_lane(Op::kVCvtPkrtzF16F32, kVop3, {bits_of(1 + 0x1.ffp-11F), big}), 0x7bff3c00U);
  EXPECT_EQ(first_lane(Op::kVCvtPkrtzF16F32, kVop3, {bits_of(-INFINITY), bits_of(-1.0F)}), 0xbc00fc00U);
  EXPECT_EQ(first_lane(Op::kVCvtPknormI16F32, kVop3, {bits_of(1.0F), bits_of(-7.0F)}), 0x80017fffU);
  EXPECT_EQ(first_lane(Op::kVCvtPknormU16F32, kVop3, {bits_of(0.5F), bits_of(-7.0F)}), 0x00008000U);
  EXPECT_EQ(first_lane(Op::kVCvtPknormI16F16, kVop3, {0x3c00, 0xbc00}), 0x80017fffU);
  EXPECT_EQ(first_lane(Op::kVCvtPknormU16F16, kVop3, {0x3800, 0x3c00}), 0xffff8000U);
  EXPECT_EQ(first_lane(Op::kVCvtNormI16F16, kVop1, {0xbc00}), 0x8001U);
  EXPECT_EQ(first_lane(Op::kVCvtNormU16F16, kVop1, {0x3800}), 0x8000U);
}

TEST(VectorConvert, pk_u8_puts_a_byte_rounded_by_mode) {
  EXPECT_EQ(first_lane(Op::kVCvtPkU8F32, kVop3, {bits_of(2.5F), 1, 0x11223344}), 0x11220244U);
  EXPECT_EQ(first_lane(Op::kVCvtPkU8F32, kVop3, {bits_of(2.5F), 7, 0x11223344}, {32, 32, 32}, 0x3f1), 0x03223344U);
  EXPECT_EQ(first_lane(Op::kVCvtPkU8F32, kVop3, {bits_of(300.0F), 0, 0x11223344}), 0x112233ffU);
  EXPECT_EQ(first_lane(Op::kVCvtPkU8F32, kVop3, {bits_of(-3.0F), 2, 0x11223344}), 0x11003344U);
  FloatMachine m;
  m.put(FloatMachine::kDst, 0, 32, 0x11223344);
  m.put(FloatMachine::source(0), 0, 32, bits_of(9.0F));
  m.put(FloatMachine::source(1), 0, 32, 3);
  ASSERT_EQ(m.run(float_instruction(Op::kVCvtPkaccumU8F32, kVop3)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[FloatMachine::kDst][0], 0x09223344U);
}

TEST(VectorConvert, off_i4_is_in_sixteenths) {
  for (int value = -8; value < 8; ++value) {
    EXPECT_EQ(first_lane(Op::kVCvtOffF32I4, kVop1, {static_cast<std::uint32_t>(value & 15) | 0xa0}),
              bits_of(static_cast<float>(value) * 0.0625F));
  }
}

// --- Comparisons ---

struct Comparison {
  const char* name;
  bool (*holds)(double a, double b);
};
constexpr std::array kComparisons = {
    Comparison{"f", [](double, double) { return false; }},
    Comparison{"lt", [](double a, double b) { return a < b; }},
    Comparison{"eq", [](double a, double b) { return a == b; }},
    Comparison{"le", [](double a, double b) { return a <= b; }},
    Comparison{"gt", [](double a, double b) { return a > b; }},
    Comparison{"lg", [](double a, double b) { return a < b || a > b; }},
    Comparison{"ge", [](double a, double b) { return a >= b; }},
    Comparison{"o", [](double a, double b) { return !std::isunordered(a, b); }},
    Comparison{"u", [](double a, double b) { return std::isunordered(a, b); }},
    Comparison{"nge", [](double a, double b) { return !(a >= b); }},
    Comparison{"nlg", [](double a, double b) { return !(a < b || a > b); }},
    Comparison{"ngt", [](double a, double b) { return !(a > b); }},
    Comparison{"nle", [](double a, double b) { return !(a <= b); }},
    Comparison{"neq", [](double a, double b) { return !(a == b); }},
    Comparison{"nlt", [](double a, double b) { return !(a < b); }},
    Comparison{"tru", [](double, double) { return true; }},
};

Op op_named(const std::string& wanted) {
  for (std::size_t n = 0; n < kOps; ++n) {
    if (kOpNames[n] == wanted) return static_cast<Op>(n);
  }
  ADD_FAILURE() << wanted;
  return Op::kSNop;
}

double value_of(std::uint64_t a, unsigned bits) {
  if (bits == 16) return to_double<Fp16>(static_cast<std::uint16_t>(a));
  return bits == 32 ? static_cast<double>(single(a)) : real(a);
}

void check_comparison(const Comparison& c, unsigned bits, bool sets_exec) {
  FloatMachine m;
  const Op op = op_named(std::string(sets_exec ? "v_cmpx_" : "v_cmp_") + c.name + "_f" + std::to_string(bits));
  for (int turn = 0; turn < 8; ++turn) {
    const std::uint64_t exec = turn % 2 == 0 ? ~std::uint64_t{0} : m.random();
    std::uint64_t expected = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t a = m.number(bits);
      const std::uint64_t b = lane % 4 == 0 ? a : m.number(bits);
      m.put(FloatMachine::source(0), lane, bits, a);
      m.put(FloatMachine::source(1), lane, bits, b);
      if (c.holds(value_of(a, bits), value_of(b, bits))) expected |= std::uint64_t{1} << lane;
    }
    m.wave.set_exec(exec);
    ASSERT_EQ(m.run(float_instruction(op, Encoding::kVopc)), Outcome::kNext) << name(op);
    ASSERT_EQ(m.wave.vcc(), expected & exec) << name(op);
    ASSERT_EQ(m.wave.exec(), sets_exec ? expected & exec : exec) << name(op);
  }
}

TEST(VectorFloatCompare, all_conditions_of_all_formats) {
  for (const Comparison& c : kComparisons) {
    for (const unsigned bits : {16u, 32u, 64u}) {
      check_comparison(c, bits, false);
      check_comparison(c, bits, true);
    }
  }
}

TEST(VectorFloatCompare, denormals_are_zero_if_the_mode_flushes_them) {
  FloatMachine m;
  m.put(FloatMachine::source(0), 0, 32, 1);
  m.put(FloatMachine::source(1), 0, 32, 0x80000002);
  ASSERT_EQ(m.run(float_instruction(Op::kVCmpEqF32, Encoding::kVopc)), Outcome::kNext);
  EXPECT_EQ(m.wave.vcc() & 1, 0U);
  m.wave.mode = 0x3c0;
  ASSERT_EQ(m.run(float_instruction(Op::kVCmpEqF32, Encoding::kVopc)), Outcome::kNext);
  EXPECT_EQ(m.wave.vcc() & 1, 1U);
}

TEST(VectorFloatCompare, class_tests_each_bit_of_its_mask) {
  FloatMachine m;
  m.wave.mode = 0x300;  // without denormals: they are seen all the same
  const std::array<std::uint32_t, 10> values = {0x7f800001, 0x7fc00000, 0xff800000, 0xbf800000, 0x80000001,
                                                0x80000000, 0,          1,          0x3f800000, 0x7f800000};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    m.put(FloatMachine::source(0), lane, 32, values[lane % 10]);
    m.put(FloatMachine::source(1), lane, 32, lane % 3 == 0 ? 1u << (lane % 10) : ~(1u << (lane % 10)));
  }
  ASSERT_EQ(m.run(float_instruction(Op::kVCmpClassF32, Encoding::kVopc)), Outcome::kNext);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    ASSERT_EQ((m.wave.vcc() >> lane & 1) != 0, lane % 3 == 0) << "bit " << lane % 10;
  }
}

// --- VOP3P ---

Instruction packed_instruction(Op op) {
  Instruction in = float_instruction(op, Encoding::kVop3p);
  in.op_sel_hi = 7;
  return in;
}

std::uint32_t packed_result(const Instruction& in, std::array<std::uint32_t, 3> sources, std::uint32_t old = 0,
                            std::uint32_t mode = kUsualMode) {
  FloatMachine m;
  m.wave.isa = Isa::kGfx90a;
  m.wave.mode = mode;
  for (unsigned n = 0; n < 3; ++n) m.put(FloatMachine::source(n), 0, 32, sources[n]);
  m.put(FloatMachine::kDst, 0, 32, old);
  EXPECT_EQ(m.run(in), Outcome::kNext) << name(in.op);
  return m.wave.vgpr[FloatMachine::kDst][0];
}

TEST(VectorPacked, both_halves_are_computed) {
  EXPECT_EQ(packed_result(packed_instruction(Op::kVPkAddF16), {0x40003c00, 0x3c003800}), 0x42003e00U);
  EXPECT_EQ(packed_result(packed_instruction(Op::kVPkMulF16), {0x40003c00, 0xc0003800}), 0xc4003800U);
  EXPECT_EQ(packed_result(packed_instruction(Op::kVPkFmaF16), {0x40003c00, 0x40003800, 0x3c003c00}), 0x45003e00U);
  EXPECT_EQ(packed_result(packed_instruction(Op::kVPkMinF16), {0x40003c00, 0x3c004000}), 0x3c003c00U);
  EXPECT_EQ(packed_result(packed_instruction(Op::kVPkMaxF16), {0x40003c00, 0x3c004000}), 0x40004000U);
}

TEST(VectorPacked, halves_are_selected_negated_and_clamped) {
  Instruction in = packed_instruction(Op::kVPkAddF16);
  in.op_sel = 1;
  in.op_sel_hi = 2;
  in.neg = 2;
  EXPECT_EQ(packed_result(in, {0x40003c00, 0x3c003800}), 0x40003e00U);  // 2 - 0.5, 1 + 1
  in = packed_instruction(Op::kVPkAddF16);
  in.abs = 1;  // neg_hi
  in.clamp = true;
  EXPECT_EQ(packed_result(in, {0x40003c00, 0x3c003800}), 0x00003c00U);
}

TEST(VectorPacked, fmac_accumulates_both_halves) {
  Instruction in = float_instruction(Op::kVPkFmacF16, kVop2);
  EXPECT_EQ(packed_result(in, {0x40003c00, 0x40003800, 0}, 0x3c003c00), 0x45003e00U);
  in.src[0] = operand::kFloatHalf + 2;  // 1.0, and nothing in the upper half
  EXPECT_EQ(packed_result(in, {0, 0x40003800, 0}, 0x3c003c00), 0x3c003e00U);
}

TEST(VectorPacked, pairs_of_singles) {
  FloatMachine m;
  m.wave.isa = Isa::kGfx90a;
  const auto put = [&m](unsigned n, float low, float high) {
    m.put(FloatMachine::source(n), 0, 64, bits_of(low) | std::uint64_t{bits_of(high)} << 32);
  };
  put(0, 2, 3);
  put(1, 5, 7);
  put(2, 11, 13);
  const auto run = [&m](const Instruction& in) {
    EXPECT_EQ(m.run(in), Outcome::kNext);
    const std::uint64_t bits = m.get(FloatMachine::kDst, 0, 64);
    return std::pair(single(bits), single(bits >> 32));
  };
  EXPECT_EQ(run(packed_instruction(Op::kVPkFmaF32)), std::pair(21.0F, 34.0F));
  EXPECT_EQ(run(packed_instruction(Op::kVPkMulF32)), std::pair(10.0F, 21.0F));
  Instruction in = packed_instruction(Op::kVPkAddF32);
  in.op_sel = 2;     // the low result takes the upper register of source 1
  in.op_sel_hi = 2;  // the high one the lower register of source 0
  in.abs = 2;
  EXPECT_EQ(run(in), std::pair(9.0F, -5.0F));
}

TEST(VectorPacked, mixed_sources_are_halves_or_singles) {
  Instruction in = float_instruction(Op::kVFmaMixF32, Encoding::kVop3p);
  in.op_sel_hi = 3;
  in.op_sel = 2;
  EXPECT_EQ(packed_result(in, {0x00004000, 0x42000000, bits_of(1.5F)}), bits_of(7.5F));
  in.neg = 4;
  in.abs = 1;
  EXPECT_EQ(packed_result(in, {0x0000c000, 0x42000000, bits_of(1.5F)}), bits_of(4.5F));
  in.src[0] = operand::kFloatHalf;
  FloatMachine m;
  EXPECT_EQ(m.run(in), Outcome::kIllegal) << "a constant that is a half";
}

TEST(VectorPacked, mixed_results_keep_the_other_half) {
  Instruction in = float_instruction(Op::kVFmaMixloF16, Encoding::kVop3p);
  EXPECT_EQ(packed_result(in, {bits_of(2.0F), bits_of(3.0F), bits_of(1.0F)}, 0x12345678), 0x12344700U);
  in.op = Op::kVFmaMixhiF16;
  EXPECT_EQ(packed_result(in, {bits_of(2.0F), bits_of(3.0F), bits_of(1.0F)}, 0x12345678), 0x47005678U);
  in.clamp = true;
  EXPECT_EQ(packed_result(in, {bits_of(2.0F), bits_of(3.0F), bits_of(1.0F)}, 0x12345678), 0x3c005678U);
  in = float_instruction(Op::kVMadMixF32, Encoding::kVop3p);
  EXPECT_EQ(packed_result(in, {1, bits_of(3.0F), bits_of(1.0F)}), bits_of(1.0F)) << "a denormal";
}

TEST(VectorPacked, dot_products) {
  const std::array<std::uint32_t, 3> sources = {0x40003c00, 0x42004400, bits_of(0.5F)};  // 1 * 4 + 2 * 3 + 0.5
  EXPECT_EQ(packed_result(packed_instruction(Op::kVDot2F32F16), sources), bits_of(10.5F));
  Instruction in = packed_instruction(Op::kVDot2F32F16);
  in.neg = 1 | 4;
  EXPECT_EQ(packed_result(in, sources), bits_of(1.5F));
  EXPECT_EQ(packed_result(float_instruction(Op::kVDot2cF32F16, kVop2), sources, bits_of(0.5F)), bits_of(10.5F));
}

TEST(VectorPacked, dot_products_have_denormals_of_halves_before_gfx90a) {
  FloatMachine m;
  m.put(FloatMachine::source(0), 0, 32, 0x00000001);
  m.put(FloatMachine::source(1), 0, 32, 0x00003c00);
  const Instruction in = packed_instruction(Op::kVDot2F32F16);
  ASSERT_EQ(m.run(in), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[FloatMachine::kDst][0], bits_of(0x1p-24F));
  m.wave.isa = Isa::kGfx90a;
  ASSERT_EQ(m.run(in), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[FloatMachine::kDst][0], 0U);
}

}  // namespace
}  // namespace gcn::vector_convert_test
