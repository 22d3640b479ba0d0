// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of v_cmp and v_cmpx of floats.
#include "gcn/vector/vector_float.h"

namespace gcn {
namespace {

// The conditions in the order of their opcodes. Those of the upper half negate those of the lower one, so they are true
// for NaN.
enum class Condition : std::uint8_t {
  kF,
  kLt,
  kEq,
  kLe,
  kGt,
  kLg,
  kGe,
  kO,
  kU,
  kNge,
  kNlg,
  kNgt,
  kNle,
  kNeq,
  kNlt,
  kTru
};

template <class T>
[[gnu::always_inline]] inline bool holds(Condition condition, T a, T b) {
  switch (condition) {
    case Condition::kF:
      return false;
    case Condition::kLt:
      return a < b;
    case Condition::kEq:
      return a == b;
    case Condition::kLe:
      return a <= b;
    case Condition::kGt:
      return a > b;
    case Condition::kLg:
      return a < b || a > b;
    case Condition::kGe:
      return a >= b;
    case Condition::kO:
      return a == a && b == b;
    case Condition::kU:
      return a != a || b != b;
    case Condition::kNge:
      return !(a >= b);
    case Condition::kNlg:
      return !(a < b || a > b);
    case Condition::kNgt:
      return !(a > b);
    case Condition::kNle:
      return !(a <= b);
    case Condition::kNeq:
      return a != b;
    case Condition::kNlt:
      return !(a < b);
    case Condition::kTru:
      break;
  }
  return true;
}

template <class F, Condition kCondition>
struct Compare {
  bool operator()(typename F::Bits a, typename F::Bits b, const LaneContext& context) const {
    const bool flush = float_mode<F>(context.mode).flush_in;
    a = flushed<F>(a, flush);
    b = flushed<F>(b, flush);
    if constexpr (std::is_same_v<F, Fp32>) {
      return holds(kCondition, std::bit_cast<float>(a), std::bit_cast<float>(b));
    } else {
      return holds(kCondition, to_double<F>(a), to_double<F>(b));
    }
  }
};

// v_cmp_class distinguishes denormals whatever the mode.
template <class F>
bool class_lane(typename F::Bits a, std::uint32_t classes) {
  return (classes >> class_of<F>(a) & 1) != 0;
}

struct Ops {
  Op first;   // v_cmp_f
  Op xfirst;  // v_cmpx_f
};

template <class F, class Element, std::size_t... I>
void add_conditions(HandlerTable& table, Ops ops, std::index_sequence<I...> /*conditions*/) {
  const auto nth = [](Op first, std::size_t n) { return static_cast<Op>(static_cast<std::size_t>(first) + n); };
  (table.set(nth(ops.first, I), vector<Cmp(Element, Element), Compare<F, static_cast<Condition>(I)>{}>), ...);
  (table.set(nth(ops.xfirst, I), vector<Cmpx(Element, Element), Compare<F, static_cast<Condition>(I)>{}>), ...);
}

// add_conditions() requires that ops.inc has the conditions in this order.
#define GCN_IN_ORDER(x, f)                                                                             \
  static_assert(static_cast<int>(Op::kVCmp##x##Tru##f) - static_cast<int>(Op::kVCmp##x##F##f) == 15 && \
                static_cast<int>(Op::kVCmp##x##Lg##f) - static_cast<int>(Op::kVCmp##x##F##f) == 5 &&   \
                static_cast<int>(Op::kVCmp##x##Nge##f) - static_cast<int>(Op::kVCmp##x##F##f) == 9)
GCN_IN_ORDER(, F16);
GCN_IN_ORDER(x, F16);
GCN_IN_ORDER(, F32);
GCN_IN_ORDER(x, F32);
GCN_IN_ORDER(, F64);
GCN_IN_ORDER(x, F64);
#undef GCN_IN_ORDER

}  // namespace

void add_float_compare_handlers(HandlerTable& table) {
  constexpr auto kConditions = std::make_index_sequence<16>();
  add_conditions<Fp16, F16>(table, {Op::kVCmpFF16, Op::kVCmpxFF16}, kConditions);
  add_conditions<Fp32, B32>(table, {Op::kVCmpFF32, Op::kVCmpxFF32}, kConditions);
  add_conditions<Fp64, B64>(table, {Op::kVCmpFF64, Op::kVCmpxFF64}, kConditions);
  table.set(Op::kVCmpClassF16, vector<Cmp(F16, U32), class_lane<Fp16>>);
  table.set(Op::kVCmpxClassF16, vector<Cmpx(F16, U32), class_lane<Fp16>>);
  table.set(Op::kVCmpClassF32, vector<Cmp(B32, U32), class_lane<Fp32>>);
  table.set(Op::kVCmpxClassF32, vector<Cmpx(B32, U32), class_lane<Fp32>>);
  table.set(Op::kVCmpClassF64, vector<Cmp(B64, U32), class_lane<Fp64>>);
  table.set(Op::kVCmpxClassF64, vector<Cmpx(B64, U32), class_lane<Fp64>>);
}

}  // namespace gcn
