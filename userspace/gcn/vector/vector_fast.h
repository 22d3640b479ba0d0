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

// The loops of a Lane: a type with a Signature as in vector_operands.h, a Format whose MODE bits apply, and a function
// run<kFused> that computes one lane, where kFused says whether the host has fused multiply-add.
template <class Lane, class Signature = typename Lane::Signature>
struct FastLoops;
template <class Lane, class D, class... S>
struct FastLoops<Lane, D(S...)> {
  using Runner = detail::Runner<D(S...)>;
  using Sources = typename Runner::Sources;
  using Indexes = typename Runner::Indexes;

  template <bool kFlush, bool kFused, std::size_t... I>
  [[gnu::always_inline]] static void run_columns(std::uint32_t* __restrict lo, std::uint32_t* __restrict hi,
                                                 const Sources& sources, std::index_sequence<I...> /*sources*/) {
    const std::array<const std::uint32_t*, sizeof...(S)> los = {sources[I].lo...};
    const std::array<const std::uint32_t*, sizeof...(S)> his = {sources[I].hi...};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const auto result = Lane::template run<kFused>(element<S, kFlush>(detail::load<S>(los[I], his[I], lane))...);
      detail::store(element<D, kFlush>(static_cast<typename D::Value>(result)), lo, hi, lane);
    }
  }
  template <bool kFlush>
  static void run_anywhere(const LaneContext& /*context*/, const Sources& sources, Results& results) {
    run_columns<kFlush, false>(results.lo.data(), results.hi.data(), sources, Indexes());
  }
  template <bool kFlush>
  [[gnu::target("avx2,fma")]] static void run_fused(const LaneContext& /*context*/, const Sources& sources,
                                                    Results& results) {
    run_columns<kFlush, true>(results.lo.data(), results.hi.data(), sources, Indexes());
  }
  // Returns the loop for this host; `flush` says whether denormal sources and results become zero.
  static typename Runner::Loop loop(bool flush) {
    return host_has_fma() ? (flush ? run_fused<true> : run_fused<false>)
                          : (flush ? run_anywhere<true> : run_anywhere<false>);
  }
};

// The handler that runs Lane in the modes that it supports, else calls kExact. `Result` is the element of the
// destination: that of Lane, or one that also says which half it keeps.
template <class Lane, Handler kExact, Form kForm = Form::kSources, Denormals kDenormals = Denormals::kByMode,
          class Result = B32>
Outcome fast(const Instruction& instruction, Machine& machine) {
  using Loops = FastLoops<Lane>;
  using Runner = typename Loops::Runner;
  const FloatMode m = float_mode<typename Lane::Format>(machine.wave.mode);
  constexpr bool kNever = kDenormals == Denormals::kNever;
  const bool usual = m.round == Round::kNearest && !m.f16_overflow && instruction.omod == 0 && !instruction.clamp &&
                     (kNever || m.flush_in == m.flush_out);
  if (!usual) return kExact(instruction, machine);
  const auto loop = Loops::loop(kNever || m.flush_in);
  if constexpr (kForm == Form::kPacked) {
    return Runner::run_packed(instruction, machine, loop);
  } else if constexpr (kForm == Form::kAccumulate) {
    return Runner::run_accumulate(instruction, machine, loop, Result::kKind);
  } else {
    return Runner::run(instruction, machine, loop, Result::kKind);
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
