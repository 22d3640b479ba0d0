// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_lanes.h: every lane computes its function of float.h, in code for hosts with fused multiply-add and
// in code for others.
#include "gcn/vector/vector_lanes.h"

#include <cmath>

#include "gcn/vector/vector_float_test.h"

namespace gcn::vector_lanes_test {
namespace {

// Makes numbers whose sums and products are often close to halfway between two results.
template <class F>
typename F::Bits number(FloatMachine& m) {
  const std::uint64_t bits = m.random();
  const std::uint64_t fraction = F::kMinNormal - 1u;
  switch (m.random() % 4) {
    case 0:
      return static_cast<typename F::Bits>(m.number(8 * sizeof(typename F::Bits)));
    case 1:  // a number near 1 with few bits set or clear
      return static_cast<typename F::Bits>((bits & F::kSign) + F::kOne - F::kMinNormal * (bits % 13) +
                                           (std::uint64_t{1} << bits % F::kFraction) - (bits >> 60 & 1));
    case 2:
      return static_cast<typename F::Bits>((bits & (F::kSign | fraction)) + F::kOne -
                                           F::kMinNormal * (bits >> 40) % 13);
    default:
      return static_cast<typename F::Bits>(bits);
  }
}

template <class Lane, class F, class Exact, std::size_t... I>
void check_lane(Exact exact, const FloatMode& mode, std::index_sequence<I...> /*sources*/) {
  using Loops = FastLoops<Lane>;
  const Instruction instruction;
  const LaneContext context = {instruction, 0, Isa::kGfx906};
  FloatMachine m;
  for (int turn = 0; turn < 1000; ++turn) {
    std::array<std::array<typename F::Bits, kLanes>, sizeof...(I)> values;
    typename Loops::Sources sources;
    for (std::size_t n = 0; n < sizeof...(I); ++n) {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        values[n][lane] = number<F>(m);
        detail::store(values[n][lane], sources[n].buffer[0].data(), sources[n].buffer[1].data(), lane);
      }
      sources[n].lo = sources[n].buffer[0].data();
      sources[n].hi = sources[n].buffer[1].data();
    }
    Results here;
    Results anywhere;
    Loops::loop(mode.flush_in)(context, sources, here);
    (mode.flush_in ? Loops::template run_anywhere<true> : Loops::template run_anywhere<false>)(context, sources,
                                                                                               anywhere);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const auto expected = exact(values[I][lane]..., mode);
      const auto of = [lane](const Results& r) {
        return detail::load<ElementOfFormat<F>>(r.lo.data(), r.hi.data(), lane);
      };
      ASSERT_EQ(expected, of(here)) << std::hex << +values[0][lane] << ' ' << +values[sizeof...(I) - 1][lane];
      ASSERT_EQ(expected, of(anywhere)) << std::hex << +values[0][lane] << ' ' << +values[sizeof...(I) - 1][lane];
    }
  }
}

constexpr FloatMode kDenormals = {};
constexpr FloatMode kIeee = {.ieee = true};
constexpr FloatMode kFlushing = {.flush_in = true, .flush_out = true};

template <class Lane, class F>
void check2(typename F::Bits (*exact)(typename F::Bits, typename F::Bits, const FloatMode&), bool ieee = false) {
  check_lane<Lane, F>(exact, ieee ? kIeee : kDenormals, std::make_index_sequence<2>());
  check_lane<Lane, F>(exact, {.flush_in = true, .flush_out = true, .ieee = ieee}, std::make_index_sequence<2>());
}
template <class Lane, class F>
void check1(typename F::Bits (*exact)(typename F::Bits, const FloatMode&)) {
  check_lane<Lane, F>(exact, kDenormals, std::make_index_sequence<1>());
  check_lane<Lane, F>(exact, kFlushing, std::make_index_sequence<1>());
}

template <class F>
class VectorLanes : public ::testing::Test {};
using AllFormats = ::testing::Types<Fp16, Fp32, Fp64>;
TYPED_TEST_SUITE(VectorLanes, AllFormats);

TYPED_TEST(VectorLanes, arithmetic_is_exact) {
  using F = TypeParam;
  check2<AddLane<F>, F>(add<F>);
  check2<SubLane<F>, F>(sub<F>);
  check2<SubrevLane<F>, F>(subrev<F>);
  check2<MulLane<F>, F>(mul<F>);
  check_lane<FmaLane<F>, F>(fma<F>, kDenormals, std::make_index_sequence<3>());
  check_lane<FmaLane<F>, F>(fma<F>, kFlushing, std::make_index_sequence<3>());
  check_lane<MadLane<F>, F>(mad<F>, kFlushing, std::make_index_sequence<3>());
}

TYPED_TEST(VectorLanes, choices_are_exact) {
  using F = TypeParam;
  check2<MinLane<F, false>, F>(min<F>);
  check2<MaxLane<F, false>, F>(max<F>);
  check2<MinLane<F, true>, F>(min<F>, true);
  check2<MaxLane<F, true>, F>(max<F>, true);
}

TYPED_TEST(VectorLanes, functions_are_exact) {
  using F = TypeParam;
  check1<FunctionLane<F, Function::kTrunc>, F>(trunc<F>);
  check1<FunctionLane<F, Function::kCeil>, F>(ceil<F>);
  check1<FunctionLane<F, Function::kFloor>, F>(floor<F>);
  check1<FunctionLane<F, Function::kRndne>, F>(rndne<F>);
  check_lane<FunctionLane<F, Function::kRcp>, F>(rcp<F>, kFlushing, std::make_index_sequence<1>());
  check_lane<FunctionLane<F, Function::kSqrt>, F>(sqrt<F>, kFlushing, std::make_index_sequence<1>());
  if constexpr (!std::is_same_v<F, Fp16>) check1<FunctionLane<F, Function::kFract>, F>(fract<F>);
}

// Tests doubles close to the points where the rounded half changes, for halves of all magnitudes.
TEST(VectorLanes, doubles_become_halves_as_by_one_rounding) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 500000; ++n) {
    const std::uint64_t near =
        std::bit_cast<std::uint64_t>(to_double<Fp16>(static_cast<std::uint16_t>(random() & 0xfbff)));
    const std::uint64_t tie = near + (random() % 3 << 41);
    const double value = std::bit_cast<double>(tie + random() % 3 - 1);
    if (std::isnan(value)) continue;
    ASSERT_EQ(half_of(value), from_double<Fp16>(value, kDenormals)) << std::hexfloat << value;
  }
}

}  // namespace
}  // namespace gcn::vector_lanes_test
