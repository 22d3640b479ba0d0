// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The lanes that vector_fast.h runs: one type for each operation that has fast code.
#pragma once

#include "gcn/vector/vector_fast.h"

namespace gcn {

template <class F>
struct ElementOf {
  using Element = B32;
};
template <>
struct ElementOf<Fp16> {
  using Element = F16;
};
template <>
struct ElementOf<Fp64> {
  using Element = B64;
};
template <class F>
using ElementOfFormat = typename ElementOf<F>::Element;

template <class F>
struct UnaryLane {
  using Format = F;
  using Signature = ElementOfFormat<F>(ElementOfFormat<F>);
  using Bits = typename F::Bits;
};
template <class F>
struct BinaryLane {
  using Format = F;
  using Signature = ElementOfFormat<F>(ElementOfFormat<F>, ElementOfFormat<F>);
  using Bits = typename F::Bits;
};
template <class F>
struct TernaryLane {
  using Format = F;
  using Signature = ElementOfFormat<F>(ElementOfFormat<F>, ElementOfFormat<F>, ElementOfFormat<F>);
  using Bits = typename F::Bits;
};

// Rounds to nearest. All three cases are computed and one is selected, so that there is no branch.
[[gnu::always_inline]] inline Fp16::Bits half_of(float a) {
  const std::uint32_t bits = from_host(a);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t size = bits & 0x7fffffffu;
  // Adds half a unit in the last place less one bit, and one more bit if the result's last bit is odd, so that ties go
  // to even. The subtraction changes the exponent's bias.
  const std::uint32_t normal = (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13;
  // The last place of this sum is that of a denormal half.
  const std::uint32_t denormal = from_host(to_host<Fp32>(size) + 0.5F) - 0x3f000000u;
  const std::uint32_t finite = size < 0x38800000u ? denormal : normal;
  const std::uint32_t number = size >= 0x477ff000u ? std::uint32_t{Fp16::kInf} : finite;
  const std::uint32_t nan = std::uint32_t{Fp16::kInf} | Fp16::kQuiet | (size >> 13 & 0x3ffu);
  return static_cast<Fp16::Bits>(sign | (size > 0x7f800000u ? nan : number));
}
// Rounds to odd first, to a float: that has more than two bits beyond a half, so rounding it gives what rounding the
// double would give.
[[gnu::always_inline]] inline Fp16::Bits half_of(double a) {
  constexpr std::uint64_t kBelow = (std::uint64_t{1} << 29) - 1;
  const std::uint64_t bits = from_host(a);
  const std::uint64_t odd = (bits & ~kBelow) | ((bits & kBelow) != 0 ? kBelow + 1 : 0);
  return half_of(static_cast<float>(to_host<Fp64>(odd)));
}
[[gnu::always_inline]] inline float float_of(Fp16::Bits a) {
  const std::uint32_t size = a & 0x7fffu;
  const float finite = to_host<Fp32>(size << 13) * 0x1p112F;  // as in to_double()
  const std::uint32_t bits = size >= Fp16::kInf ? 0x7f800000u | size << 13 : from_host(finite);
  return to_host<Fp32>(bits | (a & 0x8000u) << 16);
}

// Converts to the host's type of the computation. Sums and products of halves may be rounded to a float first: a float
// has more than two bits beyond twice those of a half, so the second rounding gives what a single one would.
template <class F>
[[gnu::always_inline]] inline auto wide(typename F::Bits a) {
  if constexpr (std::is_same_v<F, Fp16>) {
    return float_of(a);
  } else {
    return to_host<F>(a);
  }
}
template <class F, class Host>
[[gnu::always_inline]] inline typename F::Bits narrow(Host a) {
  if constexpr (std::is_same_v<F, Fp16>) {
    return half_of(a);
  } else {
    return from_host(a);
  }
}

template <class F>
struct AddLane : BinaryLane<F> {
  using typename BinaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return quiet_if_nan<F>(a, quiet_if_nan<F>(b, narrow<F>(wide<F>(a) + wide<F>(b))));
  }
};
template <class F>
struct SubLane : BinaryLane<F> {
  using typename BinaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return quiet_if_nan<F>(a, quiet_if_nan<F>(b, narrow<F>(wide<F>(a) - wide<F>(b))));
  }
};
template <class F>
struct SubrevLane : BinaryLane<F> {
  using typename BinaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return SubLane<F>::template run<kFused>(b, a);
  }
};
template <class F>
struct MulLane : BinaryLane<F> {
  using typename BinaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    return quiet_if_nan<F>(a, quiet_if_nan<F>(b, narrow<F>(wide<F>(a) * wide<F>(b))));
  }
};

// Computes a * b + c with one rounding on hosts without fused multiply-add. The product is exact as a double. An
// inexact sum is rounded to odd, so that rounding it to fp32 gives what rounding the exact sum would give.
[[gnu::always_inline]] inline float fused_by_double(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const auto addend = static_cast<double>(c);
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  const std::uint64_t bits = from_host(sum);
  const bool inexact = error < 0 || error > 0;  // not if it is NaN, as that of an infinite sum is
  const std::uint64_t step = (error < 0) != (sum < 0) ? ~std::uint64_t{0} : 1;
  return static_cast<float>(to_host<Fp64>(inexact && (bits & 1) == 0 ? bits + step : bits));
}

// Computes a * b + c of halves as doubles. The product is exact. If the sum is not, the addend, which is a half, is so
// much larger than the product (2^30 times, because a product has 22 bits) that it is the result, rounded once or
// twice.
[[gnu::always_inline]] inline Fp16::Bits fused_halves(Fp16::Bits a, Fp16::Bits b, Fp16::Bits c) {
  const double product = static_cast<double>(float_of(a)) * static_cast<double>(float_of(b));
  return half_of(product + static_cast<double>(float_of(c)));
}

template <class F>
struct FmaLane : TernaryLane<F> {
  using typename TernaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b, Bits c) {
    return quiet_if_nan<F>(a, quiet_if_nan<F>(b, quiet_if_nan<F>(c, number<kFused>(a, b, c))));
  }
  template <bool kFused>
  [[gnu::always_inline]] static Bits number(Bits a, Bits b, Bits c) {
    if constexpr (std::is_same_v<F, Fp16>) {
      return fused_halves(a, b, c);
    } else if constexpr (std::is_same_v<F, Fp32>) {
      const float value = kFused ? __builtin_fmaf(to_host<F>(a), to_host<F>(b), to_host<F>(c))
                                 : fused_by_double(to_host<F>(a), to_host<F>(b), to_host<F>(c));
      return from_host(value);
    } else {
      return kFused ? from_host(__builtin_fma(to_host<F>(a), to_host<F>(b), to_host<F>(c)))
                    : fma<F>(a, b, c, FloatMode{});
    }
  }
};
template <class F>
struct MadLane : TernaryLane<F> {
  using typename TernaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b, Bits c) {
    const Bits product = MulLane<F>::template run<kFused>(a, b);
    return AddLane<F>::template run<kFused>(flushed<F>(product, true), c);
  }
};

// Returns the result of min and max, given that of numbers: it handles NaN.
template <class F, bool kIeee>
[[gnu::always_inline]] inline typename F::Bits choice(typename F::Bits a, typename F::Bits b, typename F::Bits number) {
  typename F::Bits result = is_nan<F>(b) ? a : number;
  result = is_nan<F>(a) ? b : result;
  if constexpr (kIeee) {
    result = is_signalling<F>(b) ? quieted<F>(b) : result;
    result = is_signalling<F>(a) ? quieted<F>(a) : result;
  }
  return result;
}
// Equal numbers have equal bits, but for zeros, of which -0 is the lesser.
template <class F, bool kIeee>
struct MinLane : BinaryLane<F> {
  using typename BinaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    const Bits both = wide<F>(a) == wide<F>(b) ? static_cast<Bits>(a | b) : b;
    return choice<F, kIeee>(a, b, wide<F>(a) < wide<F>(b) ? a : both);
  }
};
template <class F, bool kIeee>
struct MaxLane : BinaryLane<F> {
  using typename BinaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a, Bits b) {
    const Bits both = wide<F>(a) == wide<F>(b) ? static_cast<Bits>(a & b) : b;
    return choice<F, kIeee>(a, b, wide<F>(a) > wide<F>(b) ? a : both);
  }
};

// Functions that the host has instructions for. On hosts without rounding instructions they are calls and not
// vectorised.
enum class Function : std::uint8_t { kTrunc, kCeil, kFloor, kRndne, kFract, kRcp, kSqrt };
template <class F, Function kFunction>
struct FunctionLane : UnaryLane<F> {
  using typename UnaryLane<F>::Bits;
  template <bool kFused>
  [[gnu::always_inline]] static Bits run(Bits a) {
    return quiet_if_nan<F>(a, narrow<F>(of(wide<F>(a))));
  }
  template <class Host>
  [[gnu::always_inline]] static Host of(Host a) {
    constexpr bool kSingle = std::is_same_v<Host, float>;
    if constexpr (kFunction == Function::kTrunc) {
      return kSingle ? static_cast<Host>(__builtin_truncf(static_cast<float>(a)))
                     : static_cast<Host>(__builtin_trunc(a));
    } else if constexpr (kFunction == Function::kCeil) {
      return kSingle ? static_cast<Host>(__builtin_ceilf(static_cast<float>(a))) : static_cast<Host>(__builtin_ceil(a));
    } else if constexpr (kFunction == Function::kFloor) {
      return kSingle ? static_cast<Host>(__builtin_floorf(static_cast<float>(a)))
                     : static_cast<Host>(__builtin_floor(a));
    } else if constexpr (kFunction == Function::kRndne) {
      return kSingle ? static_cast<Host>(__builtin_rintf(static_cast<float>(a))) : static_cast<Host>(__builtin_rint(a));
    } else if constexpr (kFunction == Function::kFract) {
      const Host part = a - FunctionLane<F, Function::kFloor>::of(a);
      const Host most = to_host<std::conditional_t<kSingle, Fp32, Fp64>>(kSingle ? 0x3f7fffff : 0x3fefffffffffffff);
      return part > most ? most : part;
    } else if constexpr (kFunction == Function::kRcp) {
      return 1 / a;
    } else {
      return kSingle ? static_cast<Host>(__builtin_sqrtf(static_cast<float>(a))) : static_cast<Host>(__builtin_sqrt(a));
    }
  }
};

// Conversions. A source that would saturate is limited first, and the saturated result is selected afterwards.
struct IntOfSingleLane {
  using Format = Fp32;
  using Signature = I32(B32);
  template <bool kFused>
  [[gnu::always_inline]] static std::int32_t run(std::uint32_t a) {
    constexpr float kLow = -0x1p31F;
    constexpr float kHigh = 0x1.fffffep30F;
    const float value = to_host<Fp32>(a);
    const float above = value > kLow ? value : kLow;
    const auto inside = static_cast<std::int32_t>(above < kHigh ? above : kHigh);
    return is_nan<Fp32>(a) ? 0 : (value > kHigh ? INT32_MAX : inside);
  }
};
struct UnsignedOfSingleLane {
  using Format = Fp32;
  using Signature = U32(B32);
  template <bool kFused>
  [[gnu::always_inline]] static std::uint32_t run(std::uint32_t a) {
    constexpr float kHigh = 0x1.fffffep31F;
    const float value = to_host<Fp32>(a);
    const float above = value > 0 ? value : 0;
    // The upper half of the range is converted apart, because vectors have only signed conversions.
    const bool upper = above >= 0x1p31F;
    const float limited = above < kHigh ? above : kHigh;
    const auto inside = static_cast<std::uint32_t>(static_cast<std::int32_t>(upper ? limited - 0x1p31F : limited));
    return value > kHigh ? UINT32_MAX : (upper ? inside + 0x80000000u : inside);
  }
};
struct SingleOfIntLane {
  using Format = Fp32;
  using Signature = B32(I32);
  template <bool kFused>
  [[gnu::always_inline]] static std::uint32_t run(std::int32_t a) {
    return from_host(static_cast<float>(a));
  }
};
struct SingleOfUnsignedLane {
  using Format = Fp32;
  using Signature = B32(U32);
  template <bool kFused>
  [[gnu::always_inline]] static std::uint32_t run(std::uint32_t a) {
    // Both parts and their sum are exact as doubles.
    const double high = static_cast<double>(static_cast<std::int32_t>(a >> 16)) * 65536;
    return from_host(static_cast<float>(high + static_cast<double>(static_cast<std::int32_t>(a & 0xffff))));
  }
};
// Conversions between floats obey the MODE bits of the smaller format: denormals of the larger format become zero in
// any case, and denormals of the smaller one are normal in the larger one.
struct HalfOfSingleLane {
  using Format = Fp16;
  using Signature = F16(B32);
  template <bool kFused>
  [[gnu::always_inline]] static Fp16::Bits run(std::uint32_t a) {
    return half_of(to_host<Fp32>(a));
  }
};
struct SingleOfHalfLane {
  using Format = Fp16;
  using Signature = B32(F16);
  template <bool kFused>
  [[gnu::always_inline]] static std::uint32_t run(Fp16::Bits a) {
    return quiet_if_nan<Fp32>(from_host(float_of(a)), from_host(float_of(a)));
  }
};
struct SingleOfDoubleLane {
  using Format = Fp32;
  using Signature = B32(B64);
  template <bool kFused>
  [[gnu::always_inline]] static std::uint32_t run(std::uint64_t a) {
    return from_host(static_cast<float>(to_host<Fp64>(a)));
  }
};
struct DoubleOfSingleLane {
  using Format = Fp32;
  using Signature = B64(B32);
  template <bool kFused>
  [[gnu::always_inline]] static std::uint64_t run(std::uint32_t a) {
    return from_host(static_cast<double>(to_host<Fp32>(a)));
  }
};
struct DoubleOfIntLane {
  using Format = Fp64;
  using Signature = B64(I32);
  template <bool kFused>
  [[gnu::always_inline]] static std::uint64_t run(std::int32_t a) {
    return from_host(static_cast<double>(a));
  }
};

}  // namespace gcn
