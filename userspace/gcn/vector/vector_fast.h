// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Fast code for the modes that programs use most (round to nearest, all denormals or none, no output modifiers). It
// computes all lanes at once, with the host's arithmetic, in a form that compilers can vectorise. Each lane's result is
// bit for bit that of its function of float.h, which handles all other modes.
#pragma once

#include <cstring>

#include "gcn/vector/vector_float.h"

namespace gcn {

template <class F>
[[gnu::always_inline]] inline auto to_host(typename F::Bits a) {
  std::conditional_t<std::is_same_v<F, Fp32>, float, double> value;
  static_assert(sizeof(value) == sizeof(a));
  std::memcpy(&value, &a, sizeof(value));  // not bit_cast, which keeps GCC from vectorising
  return value;
}
[[gnu::always_inline]] inline std::uint32_t from_host(float a) {
  std::uint32_t bits;
  std::memcpy(&bits, &a, sizeof(bits));
  return bits;
}
[[gnu::always_inline]] inline std::uint64_t from_host(double a) {
  std::uint64_t bits;
  std::memcpy(&bits, &a, sizeof(bits));
  return bits;
}

// Chooses the NaN of a result explicitly, because hosts and compilers choose different ones.
template <class F>
[[gnu::always_inline]] inline typename F::Bits quiet_if_nan(typename F::Bits a, typename F::Bits otherwise) {
  return is_nan<F>(a) ? static_cast<typename F::Bits>(a | F::kQuiet) : otherwise;
}

// The floating-point format whose MODE bits apply to an element; void for integers.
template <class Element>
struct FormatOf {
  using Format = void;
};
template <>
struct FormatOf<B32> {
  using Format = Fp32;
};
template <>
struct FormatOf<B64> {
  using Format = Fp64;
};
template <>
struct FormatOf<F16> {
  using Format = Fp16;
};

template <class Element, bool kFlush>
[[gnu::always_inline]] inline typename Element::Value element(typename Element::Value a) {
  using F = typename FormatOf<Element>::Format;
  if constexpr (std::is_void_v<F>) {
    return a;
  } else {
    return flushed<F>(a, kFlush);
  }
}

enum class Form : std::uint8_t {
  kSources,
  kAccumulate,  // the last source is the destination
  kPacked,      // VOP3P: two results
};
enum class Denormals : std::uint8_t { kByMode, kNever };

// Runs a Lane: a type with a Signature as in vector_operands.h, a Format whose MODE bits apply, and a function
// run<kFused> that computes one lane, where kFused says whether the host has fused multiply-add.
template <class Lane, class Signature = typename Lane::Signature>
struct FastRunner;
template <class Lane, class D, class... S>
struct FastRunner<Lane, D(S...)> {
  static constexpr std::size_t kSources = sizeof...(S);
  using Columns = std::array<Source, kSources>;
  using Indexes = std::index_sequence_for<S...>;
  using Last = std::tuple_element_t<kSources - 1, std::tuple<S...>>;

  template <bool kFlush, bool kFused, std::size_t... I>
  [[gnu::always_inline]] static void run_columns(std::uint32_t* __restrict lo, std::uint32_t* __restrict hi,
                                                 const Columns& sources, std::index_sequence<I...> /*sources*/) {
    const std::array<const std::uint32_t*, kSources> los = {sources[I].lo...};
    const std::array<const std::uint32_t*, kSources> his = {sources[I].hi...};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const auto result = Lane::template run<kFused>(element<S, kFlush>(detail::load<S>(los[I], his[I], lane))...);
      detail::store(element<D, kFlush>(static_cast<typename D::Value>(result)), lo, hi, lane);
    }
  }
  template <bool kFlush>
  static void run_anywhere(std::uint32_t* __restrict lo, std::uint32_t* __restrict hi, const Columns& sources) {
    run_columns<kFlush, false>(lo, hi, sources, Indexes());
  }
  template <bool kFlush>
  [[gnu::target("avx2,fma")]] static void run_fused(std::uint32_t* __restrict lo, std::uint32_t* __restrict hi,
                                                    const Columns& sources) {
    run_columns<kFlush, true>(lo, hi, sources, Indexes());
  }
  static void run(Results& results, const Columns& sources, bool flush) {
    const auto function = host_has_fma() ? (flush ? run_fused<true> : run_fused<false>)
                                         : (flush ? run_anywhere<true> : run_anywhere<false>);
    function(results.lo.data(), results.hi.data(), sources);
  }

  template <std::size_t... I>
  static bool read(const VectorOperands& operands, Part part, Columns& sources, std::index_sequence<I...> /*which*/) {
    return (operands.read(I, std::tuple_element_t<I, std::tuple<S...>>::kKind, sources[I], part) && ...);
  }

  // `Result` is the element of the destination: D, or an element that also says which half it keeps.
  template <class Result, bool kAccumulate>
  static Outcome execute(const Instruction& instruction, Machine& machine, bool flush) {
    const VectorOperands operands(instruction, machine);
    Columns sources;
    if (!operands.check_dst(Result::kKind)) return Outcome::kIllegal;
    if (kAccumulate && !operands.read_dst(Last::kKind, sources[kSources - 1])) return Outcome::kIllegal;
    if (!read(operands, Part::kWhole, sources, std::make_index_sequence<kSources - (kAccumulate ? 1 : 0)>())) {
      return Outcome::kIllegal;
    }
    Results results;
    run(results, sources, flush);
    operands.write(Result::kKind, results);
    return Outcome::kNext;
  }

  static Outcome execute_packed(const Instruction& instruction, Machine& machine, bool flush) {
    constexpr bool kHalves = D::kKind.bits == 16;
    constexpr Kind kDst = {.bits = kHalves ? std::uint8_t{32} : std::uint8_t{64}};
    const VectorOperands operands(instruction, machine);
    Columns low;
    Columns high;
    if (!operands.check_dst(kDst) || !read(operands, Part::kLow, low, Indexes()) ||
        !read(operands, Part::kHigh, high, Indexes())) {
      return Outcome::kIllegal;
    }
    Results results;
    Results other;
    run(results, low, flush);
    run(other, high, flush);
    if constexpr (kHalves) {
      for (unsigned lane = 0; lane < kLanes; ++lane) results.lo[lane] |= other.lo[lane] << 16;
    } else {
      results.hi = other.lo;
    }
    operands.write(kDst, results);
    return Outcome::kNext;
  }
};

// The handler that runs Lane in the modes that it supports, else calls kExact.
template <class Lane, Handler kExact, Form kForm = Form::kSources, Denormals kDenormals = Denormals::kByMode,
          class Result = B32>
Outcome fast(const Instruction& instruction, Machine& machine) {
  using Runner = FastRunner<Lane>;
  const FloatMode m = float_mode<typename Lane::Format>(machine.wave.mode);
  constexpr bool kNever = kDenormals == Denormals::kNever;
  const bool usual = m.round == Round::kNearest && !m.f16_overflow && instruction.omod == 0 && !instruction.clamp &&
                     (kNever || m.flush_in == m.flush_out);
  if (!usual) return kExact(instruction, machine);
  const bool flush = kNever || m.flush_in;
  if constexpr (kForm == Form::kPacked) {
    return Runner::execute_packed(instruction, machine, flush);
  } else {
    return Runner::template execute<Result, kForm == Form::kAccumulate>(instruction, machine, flush);
  }
}

// The handler for lanes that have the IEEE mode as a parameter.
template <template <class, bool> class Lane, class F, Handler kExact, Form kForm = Form::kSources, class Result = B32>
Outcome fast_choice(const Instruction& instruction, Machine& machine) {
  const bool ieee = float_mode<F>(machine.wave.mode).ieee;
  return ieee ? fast<Lane<F, true>, kExact, kForm, Denormals::kByMode, Result>(instruction, machine)
              : fast<Lane<F, false>, kExact, kForm, Denormals::kByMode, Result>(instruction, machine);
}

}  // namespace gcn
