// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Makes handlers of the functions of float.h. A handler is either FloatOp in one of the templates of vector_operands.h,
// which calls its function lane by lane, or fast() of vector_fast.h, which has vector code for the most common modes.
#pragma once

#include <cstring>

#include "gcn/float/float.h"
#include "gcn/vector/vector_operands.h"

namespace gcn {

struct B64 : Element<std::uint64_t, Kind{.bits = 64, .is_float = true}> {};  // bits of a double
// Two halves in one operand of VOP2: a constant is one half, and the upper half is 0.
struct P16 : Element<std::uint32_t, Kind{.bits = 16, .is_float = true}> {};

// add_vector_float_handlers() calls these functions. Each adds the operations of its file.
void add_float32_handlers(HandlerTable& table);
void add_float16_handlers(HandlerTable& table);
void add_float64_handlers(HandlerTable& table);
void add_convert_handlers(HandlerTable& table);
void add_float_compare_handlers(HandlerTable& table);
void add_packed_float_handlers(HandlerTable& table);
void add_mfma_handlers(HandlerTable& table);

template <class F>
[[nodiscard]] inline typename F::Bits finished(typename F::Bits value, const LaneContext& context, const FloatMode& m) {
  const Instruction& in = context.instruction;
  return in.omod == 0 && !in.clamp ? value : modified<F>(value, {in.omod, in.clamp}, m);
}

// Makes a function of one lane from `kOp`, a function of bits of the format F and of its mode.
template <class F, auto kOp>
struct FloatOp {
  using Bits = typename F::Bits;
  Bits operator()(Bits a, const LaneContext& context) const {
    const FloatMode m = float_mode<F>(context.mode);
    return finished<F>(kOp(a, m), context, m);
  }
  Bits operator()(Bits a, Bits b, const LaneContext& context) const {
    const FloatMode m = float_mode<F>(context.mode);
    return finished<F>(kOp(a, b, m), context, m);
  }
  Bits operator()(Bits a, Bits b, Bits c, const LaneContext& context) const {
    const FloatMode m = float_mode<F>(context.mode);
    return finished<F>(kOp(a, b, c, m), context, m);
  }
};

// Functions that the ISA derives from those of float.h.
template <class F>
[[nodiscard]] typename F::Bits sub(typename F::Bits a, typename F::Bits b, const FloatMode& m) {
  return add<F>(a, is_nan<F>(b) ? b : negated<F>(b), m);
}
template <class F>
[[nodiscard]] typename F::Bits subrev(typename F::Bits a, typename F::Bits b, const FloatMode& m) {
  return sub<F>(b, a, m);
}
template <class F>
[[nodiscard]] typename F::Bits min3(typename F::Bits a, typename F::Bits b, typename F::Bits c, const FloatMode& m) {
  return min<F>(min<F>(a, b, m), c, m);
}
template <class F>
[[nodiscard]] typename F::Bits max3(typename F::Bits a, typename F::Bits b, typename F::Bits c, const FloatMode& m) {
  return max<F>(max<F>(a, b, m), c, m);
}

}  // namespace gcn
