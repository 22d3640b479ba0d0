// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Rounding and arithmetic. The host's MXCSR always has its default, which rounds to nearest. An operation with another
// rounding mode is computed exactly, or as a double and the sign of its error, and then rounded in integer arithmetic.
#include "gcn/float/float.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gcn {
namespace {

using U64 = std::uint64_t;
using U128 = unsigned __int128;

template <class F>
using Bits = typename F::Bits;

[[gnu::target("fma")]] double host_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
[[gnu::target("fma")]] float host_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// The first source that is NaN, made quiet, if there is one.
template <class F>
struct Nan {
  bool found;
  Bits<F> value;
};
template <class F, class... B>
Nan<F> first_nan(B... sources) {
  Nan<F> nan = {false, 0};
  for (const Bits<F> source : {sources...}) {
    if (!nan.found && is_nan<F>(source)) nan = {true, quieted<F>(source)};
  }
  return nan;
}

struct Sum {
  double value;  // rounded to nearest
  double error;  // exact sum - value
};
// Adds exactly: the error of an addition is a double, whichever source is larger, unless the sum overflows.
Sum two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double a_part = sum - b_part;
  return {sum, (a - a_part) + (b - b_part)};
}

// Returns the exact sum: the double below it in magnitude, and whether it is larger than that.
Exact exact_sum(const Sum& sum) {
  if (sum.error == 0) return exact(sum.value);
  const bool below = (sum.error < 0) != (sum.value < 0);
  Exact e = exact(below ? as_double(std::bit_cast<U64>(sum.value) - 1) : sum.value);
  e.sticky = true;
  return e;
}

template <class F>
Bits<F> signed_zero(bool negative) {
  return negative ? F::kSign : Bits<F>{0};
}

// Returns the sign of a zero sum: that of the terms if they agree, else the one that the rounding mode selects.
bool zero_is_negative(bool a, bool b, const FloatMode& m) { return a == b ? a : m.round == Round::kDown; }

// Computes a + b for formats whose exact sums are a double and an error.
template <class F>
Bits<F> add_small(double a, double b, const FloatMode& m) {
  const Sum sum = two_sum(a, b);
  if (std::isinf(sum.value)) return with_sign<F>(F::kInf, sum.value < 0);
  if (sum.value == 0) return signed_zero<F>(zero_is_negative(std::signbit(a), std::signbit(b), m));
  return round_to<F>(exact_sum(sum), m);
}

// --- fp64, exactly ---

struct Wide {
  U128 significand;  // its highest bit is kTop
  int exponent;
};
constexpr int kTop = 125;  // a sum has one bit more, and U128 is not left

int width(U64 a) { return static_cast<int>(std::bit_width(a)); }
int bits_of(U128 a) {
  const auto high = static_cast<U64>(a >> 64);
  return high != 0 ? 64 + width(high) : width(static_cast<U64>(a));
}

Wide widened(U128 significand, int exponent) {
  const int shift = kTop + 1 - bits_of(significand);
  return {significand << shift, exponent - shift};
}

struct Term {
  bool negative;
  Wide wide;
};

// Keeps the top 64 bits, and records in `sticky` whether others were set.
Exact narrowed(bool negative, bool sticky, U128 significand, int exponent) {
  const int shift = std::max(0, bits_of(significand) - 64);
  const bool lost = (significand & ((U128{1} << shift) - 1)) != 0;
  return {negative, sticky || lost, exponent + shift, static_cast<U64>(significand >> shift)};
}

// Adds two terms; the significand is 0 if they cancel. When bits are lost to `sticky`, the smaller term is below the
// lowest set bit of the larger one, so at most one leading bit cancels and the bit is where rounding expects it.
Exact sum_of(Term a, Term b) {
  if (a.wide.exponent < b.wide.exponent) std::swap(a, b);
  const int shift = a.wide.exponent - b.wide.exponent;
  const U128 kept = shift > kTop ? 0 : b.wide.significand >> shift;
  const bool sticky = shift > kTop || (kept << shift) != b.wide.significand;
  if (a.negative == b.negative) return narrowed(a.negative, sticky, a.wide.significand + kept, a.wide.exponent);
  if (kept > a.wide.significand) return narrowed(b.negative, false, kept - a.wide.significand, a.wide.exponent);
  return narrowed(a.negative, sticky, a.wide.significand - kept - (sticky ? 1 : 0), a.wide.exponent);
}

// Computes a * b + c of finite doubles; neither the product nor c is zero.
Exact exact_fma(double a, double b, double c) {
  const Exact ea = exact(a);
  const Exact eb = exact(b);
  const Exact ec = exact(c);
  return sum_of({ea.negative != eb.negative, widened(U128{ea.significand} * eb.significand, ea.exponent + eb.exponent)},
                {ec.negative, widened(ec.significand, ec.exponent)});
}
Exact exact_product(double a, double b) {
  const Exact ea = exact(a);
  const Exact eb = exact(b);
  return narrowed(ea.negative != eb.negative, false, U128{ea.significand} * eb.significand, ea.exponent + eb.exponent);
}

template <class F>
Bits<F> scaled(Exact e, int scale, const FloatMode& m) {
  e.exponent += scale;
  return round_to<F>(e, m);
}

// Returns whether the host's result can be used as it is. One near the smallest normal may have been rounded up to it.
bool plain_result(double value) { return std::fabs(value) > 0x1p-1021 && !std::isinf(value); }

}  // namespace

bool host_has_fma() {
  static const bool has = __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0;
  return has;
}

template <class F>
unsigned class_of(Bits<F> a) {
  if (is_nan<F>(a)) return is_signalling<F>(a) ? 0 : 1;
  unsigned from_zero = 1;
  if (is_inf<F>(a)) {
    from_zero = 3;
  } else if (is_zero<F>(a)) {
    from_zero = 0;
  } else if (!is_denormal<F>(a)) {
    from_zero = 2;
  }
  return is_negative<F>(a) ? 5 - from_zero : 6 + from_zero;
}

Exact exact(double value) {
  const auto bits = std::bit_cast<U64>(value);
  const U64 fraction = bits & (Fp64::kMinNormal - 1);
  const int field = exponent_field<Fp64>(bits);
  const bool normal = field != 0;
  return {is_negative<Fp64>(bits), false, (normal ? field : 1) - Fp64::kBias - Fp64::kFraction,
          normal ? fraction | Fp64::kMinNormal : fraction};
}

template <class F>
Bits<F> overflow(bool negative, const FloatMode& m) {
  const bool to_max = m.f16_overflow || m.round == Round::kZero || m.round == (negative ? Round::kUp : Round::kDown);
  return with_sign<F>(to_max ? F::kMax : F::kInf, negative);
}

template <class F>
Bits<F> round_to(const Exact& value, const FloatMode& m) {
  constexpr int kLowest = 1 - F::kBias - F::kFraction;  // exponent of a denormal's last bit
  const int top = value.exponent + width(value.significand) - 1;
  int exponent = std::max(top - F::kFraction, kLowest);
  const int shift = exponent - value.exponent;
  U64 kept = 0;
  bool half = false;
  bool rest = value.sticky;
  if (shift <= 0) {
    kept = value.significand << -shift;
  } else if (shift <= 64) {
    kept = shift == 64 ? 0 : value.significand >> shift;
    half = (value.significand >> (shift - 1) & 1) != 0;
    rest = rest || (value.significand & ((U64{1} << (shift - 1)) - 1)) != 0;
  } else {
    rest = true;
  }
  const bool odd = (kept & 1) != 0;
  const bool away = m.round == Round::kNearest
                        ? half && (rest || odd)
                        : (half || rest) && m.round == (value.negative ? Round::kDown : Round::kUp);
  if (away) ++kept;
  if (kept >> (F::kFraction + 1) != 0) {
    kept >>= 1;
    ++exponent;
  }
  const Bits<F> sign = signed_zero<F>(value.negative);
  if (kept < F::kMinNormal) return m.flush_out ? sign : static_cast<Bits<F>>(sign | kept);
  const int field = exponent + F::kFraction + F::kBias;
  if (field >= F::kMaxField) return overflow<F>(value.negative, m);
  return static_cast<Bits<F>>(sign | static_cast<U64>(field) << F::kFraction | (kept & (F::kMinNormal - 1u)));
}

template <class F>
Bits<F> from_double(double value, const FloatMode& m) {
  const auto bits = std::bit_cast<U64>(value);
  const bool negative = is_negative<Fp64>(bits);
  if (is_nan<Fp64>(bits)) {
    constexpr int kLess = Fp64::kFraction - F::kFraction;
    return with_sign<F>(static_cast<Bits<F>>(F::kInf | F::kQuiet | ((bits >> kLess) & (F::kMinNormal - 1u))), negative);
  }
  if (is_inf<Fp64>(bits)) return with_sign<F>(F::kInf, negative);
  if (value == 0) return signed_zero<F>(negative);
  if constexpr (std::is_same_v<F, Fp32>) {
    if (m.round == Round::kNearest) return flushed<F>(std::bit_cast<Bits<F>>(static_cast<float>(value)), m.flush_out);
  }
  return round_to<F>(exact(value), m);
}

template <class F>
Bits<F> add(Bits<F> a, Bits<F> b, const FloatMode& m) {
  a = flushed<F>(a, m.flush_in);
  b = flushed<F>(b, m.flush_in);
  if (const Nan<F> nan = first_nan<F>(a, b); nan.found) return nan.value;
  const double da = to_double<F>(a);
  const double db = to_double<F>(b);
  if (is_inf<F>(a) && is_inf<F>(b) && a != b) return F::kNan;
  if (is_inf<F>(a)) return a;
  if (is_inf<F>(b)) return b;
  if constexpr (std::is_same_v<F, Fp64>) {
    if (m.round == Round::kNearest) {
      const double sum = da + db;
      if (std::isinf(sum)) return overflow<F>(sum < 0, m);
      return flushed<F>(std::bit_cast<U64>(sum), m.flush_out);
    }
    return fma_scaled<F>(F::kOne, a, b, 0, m);
  } else {
    return add_small<F>(da, db, m);
  }
}

template <class F>
Bits<F> mul(Bits<F> a, Bits<F> b, const FloatMode& m) {
  a = flushed<F>(a, m.flush_in);
  b = flushed<F>(b, m.flush_in);
  if (const Nan<F> nan = first_nan<F>(a, b); nan.found) return nan.value;
  const bool negative = is_negative<F>(a) != is_negative<F>(b);
  if (is_inf<F>(a) || is_inf<F>(b)) {
    return is_zero<F>(a) || is_zero<F>(b) ? F::kNan : with_sign<F>(F::kInf, negative);
  }
  if (is_zero<F>(a) || is_zero<F>(b)) return signed_zero<F>(negative);
  const double da = to_double<F>(a);
  const double db = to_double<F>(b);
  if constexpr (std::is_same_v<F, Fp64>) {
    const double product = da * db;
    if (m.round == Round::kNearest && plain_result(product)) return std::bit_cast<U64>(product);
    return round_to<F>(exact_product(da, db), m);
  } else {
    return round_to<F>(exact(da * db), m);  // 48 bits at most: the product is exact
  }
}

template <class F>
Bits<F> fma_scaled(Bits<F> a, Bits<F> b, Bits<F> c, int scale, const FloatMode& m) {
  a = flushed<F>(a, m.flush_in);
  b = flushed<F>(b, m.flush_in);
  c = flushed<F>(c, m.flush_in);
  if (const Nan<F> nan = first_nan<F>(a, b, c); nan.found) return nan.value;
  const bool negative = is_negative<F>(a) != is_negative<F>(b);
  const bool zero = is_zero<F>(a) || is_zero<F>(b);
  if (is_inf<F>(a) || is_inf<F>(b)) {
    const bool opposite = is_inf<F>(c) && is_negative<F>(c) != negative;
    return zero || opposite ? F::kNan : with_sign<F>(F::kInf, negative);
  }
  if (is_inf<F>(c)) return c;
  const double da = to_double<F>(a);
  const double db = to_double<F>(b);
  const double dc = to_double<F>(c);
  if (zero && is_zero<F>(c)) return signed_zero<F>(zero_is_negative(negative, is_negative<F>(c), m));
  if (zero) return scaled<F>(exact(dc), scale, m);
  if (is_zero<F>(c)) return scaled<F>(exact_product(da, db), scale, m);
  if constexpr (std::is_same_v<F, Fp64>) {
    const Exact e = exact_fma(da, db, dc);
    if (e.significand == 0) return signed_zero<F>(m.round == Round::kDown);
    return scaled<F>(e, scale, m);
  } else {
    // The product has 48 bits at most, but the exact sum may have more bits than a double. It is not rounded to one:
    // the double toward zero and a sticky bit represent it. A double has more than two bits beyond any result of fp32
    // or fp16, so the single rounding gives what it would give for the exact sum.
    const Sum sum = two_sum(da * db, dc);
    if (sum.value == 0) return signed_zero<F>(m.round == Round::kDown);
    return scaled<F>(exact_sum(sum), scale, m);
  }
}

template <class F>
Bits<F> fma(Bits<F> a, Bits<F> b, Bits<F> c, const FloatMode& m) {
  if constexpr (!std::is_same_v<F, Fp16>) {
    using Host = std::conditional_t<std::is_same_v<F, Fp32>, float, double>;
    if (m.round == Round::kNearest && host_has_fma() && !m.flush_in) {
      const Host value = host_fma(std::bit_cast<Host>(a), std::bit_cast<Host>(b), std::bit_cast<Host>(c));
      if (std::isnormal(value)) return std::bit_cast<Bits<F>>(value);
    }
  }
  return fma_scaled<F>(a, b, c, 0, m);
}

std::uint32_t mul_legacy(std::uint32_t a, std::uint32_t b, const FloatMode& m) {
  const bool zero = is_zero<Fp32>(flushed<Fp32>(a, m.flush_in)) || is_zero<Fp32>(flushed<Fp32>(b, m.flush_in));
  return zero ? 0 : mul<Fp32>(a, b, m);
}

namespace {

// Returns the result of min and max if a source is NaN.
template <class F>
struct Choice {
  bool made;
  Bits<F> value;
};
template <class F>
Choice<F> choose_nan(Bits<F> a, Bits<F> b, const FloatMode& m) {
  if (m.ieee && is_signalling<F>(a)) return {true, quieted<F>(a)};
  if (m.ieee && is_signalling<F>(b)) return {true, quieted<F>(b)};
  if (is_nan<F>(a)) return {true, flushed<F>(b, m.flush_in || m.flush_out)};
  if (is_nan<F>(b)) return {true, flushed<F>(a, m.flush_in || m.flush_out)};
  return {false, 0};
}

// Compares numbers; zeros are ordered by their signs: -0 < +0.
template <class F>
Bits<F> lesser(Bits<F> a, Bits<F> b) {
  if (is_zero<F>(a) && is_zero<F>(b)) return static_cast<Bits<F>>(a | b);
  return less<F>(a, b) ? a : b;
}
template <class F>
Bits<F> greater(Bits<F> a, Bits<F> b) {
  if (is_zero<F>(a) && is_zero<F>(b)) return static_cast<Bits<F>>(a & b);
  return less<F>(b, a) ? a : b;
}

}  // namespace

template <class F>
Bits<F> min(Bits<F> a, Bits<F> b, const FloatMode& m) {
  if (const Choice<F> choice = choose_nan<F>(a, b, m); choice.made) return choice.value;
  return flushed<F>(lesser<F>(flushed<F>(a, m.flush_in), flushed<F>(b, m.flush_in)), m.flush_out);
}

template <class F>
Bits<F> max(Bits<F> a, Bits<F> b, const FloatMode& m) {
  if (const Choice<F> choice = choose_nan<F>(a, b, m); choice.made) return choice.value;
  return flushed<F>(greater<F>(flushed<F>(a, m.flush_in), flushed<F>(b, m.flush_in)), m.flush_out);
}

template <class F>
Bits<F> med3(Bits<F> a, Bits<F> b, Bits<F> c, const FloatMode& m) {
  if (is_nan<F>(a) || is_nan<F>(b) || is_nan<F>(c)) return min<F>(min<F>(a, b, m), c, m);
  a = flushed<F>(a, m.flush_in);
  b = flushed<F>(b, m.flush_in);
  c = flushed<F>(c, m.flush_in);
  const Bits<F> largest = max<F>(max<F>(a, b, m), c, m);
  if (equal<F>(largest, a)) return max<F>(b, c, m);
  if (equal<F>(largest, b)) return max<F>(a, c, m);
  return max<F>(a, b, m);
}

template <class To, class From>
typename To::Bits convert(typename From::Bits a, const FloatMode& from, const FloatMode& to) {
  return from_double<To>(to_double<From>(flushed<From>(a, from.flush_in)), to);
}

template <class F>
Bits<F> from_int(std::int64_t a, const FloatMode& m) {
  if (a == 0) return 0;
  const U64 bits = static_cast<U64>(a);
  return round_to<F>({a < 0, false, 0, a < 0 ? U64{0} - bits : bits}, m);
}

template <class F>
Bits<F> modified(Bits<F> a, OutputModifiers modifiers, const FloatMode& m) {
  if (modifiers.omod != 0 && !m.ieee && m.flush_out) {
    constexpr int kPowers[] = {0, 1, 2, -1};
    a = is_zero<F>(a) ? Bits<F>{0} : ldexp<F>(a, kPowers[modifiers.omod & 3], m);
    if (is_zero<F>(a)) a = 0;
  }
  if (!modifiers.clamp) return a;
  if (is_nan<F>(a)) return m.dx10_clamp ? Bits<F>{0} : a;
  if (is_negative<F>(a)) return 0;
  return std::min<Bits<F>>(a, F::kOne);
}

// Instantiates the templates for all formats.
#define GCN_FORMAT(F)                                                                \
  template unsigned class_of<F>(Bits<F>);                                            \
  template Bits<F> round_to<F>(const Exact&, const FloatMode&);                      \
  template Bits<F> overflow<F>(bool, const FloatMode&);                              \
  template Bits<F> from_double<F>(double, const FloatMode&);                         \
  template Bits<F> add<F>(Bits<F>, Bits<F>, const FloatMode&);                       \
  template Bits<F> mul<F>(Bits<F>, Bits<F>, const FloatMode&);                       \
  template Bits<F> fma<F>(Bits<F>, Bits<F>, Bits<F>, const FloatMode&);              \
  template Bits<F> fma_scaled<F>(Bits<F>, Bits<F>, Bits<F>, int, const FloatMode&);  \
  template Bits<F> min<F>(Bits<F>, Bits<F>, const FloatMode&);                       \
  template Bits<F> max<F>(Bits<F>, Bits<F>, const FloatMode&);                       \
  template Bits<F> med3<F>(Bits<F>, Bits<F>, Bits<F>, const FloatMode&);             \
  template Bits<F> from_int<F>(std::int64_t, const FloatMode&);                      \
  template Bits<F> modified<F>(Bits<F>, OutputModifiers, const FloatMode&);          \
  template Fp16::Bits convert<Fp16, F>(Bits<F>, const FloatMode&, const FloatMode&); \
  template Fp32::Bits convert<Fp32, F>(Bits<F>, const FloatMode&, const FloatMode&); \
  template Fp64::Bits convert<Fp64, F>(Bits<F>, const FloatMode&, const FloatMode&);
GCN_FORMAT(Fp16)
GCN_FORMAT(Fp32)
GCN_FORMAT(Fp64)
#undef GCN_FORMAT

}  // namespace gcn
