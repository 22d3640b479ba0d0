/* SPDX-License-Identifier: MIT */
/* Copyright (c) 2026 The amdkfd-criu authors */
/*
 * The macros and helpers of the generated functions, for the GPU and for the host. A function has for each lane: `in`,
 * eight words; `out`, eight words; `memory`, sixteen private words; `lds`, eight words in LDS; and s0 to s3, which are
 * equal in all lanes. The GPU's function is the kernel k<number>; the host's is an entry of the file's table.
 */
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef _Float16 f16;
typedef float f32;
typedef double f64;

enum { kInWords = 8, kOutWords = 8, kMemoryWords = 16, kLdsWords = 8 };

#define UNIFORMS u64 s0, i64 s1, u32 s2, i32 s3
#define PARAMETERS const u64 *in, u64 *out, u64 *memory, UNIFORMS

#ifdef __AMDGCN__

#define LDS __attribute__((address_space(3)))
static LDS u64 lds_of_lanes[64 * kLdsWords] __attribute__((loader_uninitialized));
#define LANE __builtin_amdgcn_workitem_id_x()
#define FUNCTION(number) static inline __attribute__((always_inline)) void body_##number(PARAMETERS, LDS u64* lds)
#define END_FUNCTION(number)                                                                                  \
  __attribute__((amdgpu_kernel, visibility("default"))) void k##number(PARAMETERS) {                          \
    const u32 lane = LANE;                                                                                    \
    body_##number(in + lane * kInWords, out + lane * kOutWords, memory + lane * kMemoryWords, s0, s1, s2, s3, \
                  lds_of_lanes + lane * kLdsWords);                                                           \
  }
#define TABLE(file) static void* const unused[] __attribute__((unused))
#define ENTRY(number) 0

#else

#define LDS
#define FUNCTION(number) static inline void body_##number(PARAMETERS, u64* lds)
#define END_FUNCTION(number)                             \
  static void h##number(PARAMETERS) {                    \
    u64 lds[kLdsWords];                                  \
    body_##number(in, out, memory, s0, s1, s2, s3, lds); \
  }
#define TABLE(file) void (*const random_functions_##file[])(PARAMETERS)
#define ENTRY(number) h##number

#endif

/* The contents of LDS are undefined when a kernel begins. */
#define BEGIN_LDS \
  for (u32 i = 0; i < kLdsWords; ++i) lds[i] = in[i] + i

/* divisor_*() returns neither 0 nor -1: the smallest dividend divided by -1 overflows. */
#define INTEGER(t, mask, kind)                                                                             \
  static inline t min_##t(t a, t b) { return a < b ? a : b; }                                              \
  static inline t max_##t(t a, t b) { return a > b ? a : b; }                                              \
  static inline t divisor_##t(t b) { return (t)((b & 1) != 0 ? (b & (mask)) + 1 : -(t)(b & (mask)) - 2); } \
  static kind t divide_##t(t a, t b) { return (t)(a / divisor_##t(b)); }                                   \
  static kind t remainder_##t(t a, t b) { return (t)(a % divisor_##t(b)); }                                \
  static inline u64 bits_of_##t(t a) { return (u64)a; }
#define UNSIGNED(t, mask, kind)                                                    \
  static inline t min_##t(t a, t b) { return a < b ? a : b; }                      \
  static inline t max_##t(t a, t b) { return a > b ? a : b; }                      \
  static kind t divide_##t(t a, t b) { return (t)(a / (t)((b & (mask)) + 1)); }    \
  static kind t remainder_##t(t a, t b) { return (t)(a % (t)((b & (mask)) + 1)); } \
  static inline u64 bits_of_##t(t a) { return (u64)a; }
/*
 * clang 15 compiles a 64-bit division whose operands it knows to have 32 bits as one of 24 bits, in floating point,
 * which is wrong. These functions are not inlined, so that it does not know.
 */
#define UNKNOWN __attribute__((noinline, unused))
INTEGER(i8, 0x1f, inline)
INTEGER(i16, 0xfff, inline)
INTEGER(i32, 0xfffff, inline)
INTEGER(i64, 0xffffffffffl, UNKNOWN)
UNSIGNED(u8, 0x7f, inline)
UNSIGNED(u16, 0x7fff, inline)
UNSIGNED(u32, 0x7fffffff, inline)
UNSIGNED(u64, 0x7fffffffffffffffl, UNKNOWN)

#define WIDE(t, bits, suffix)                                                                   \
  static inline t rotate_##t(t a, u32 n) { return (t)(a << n | a >> (bits - n)); }              \
  static inline u32 count_##t(t a) { return (u32)__builtin_popcount##suffix(a); }               \
  static inline u32 leading_##t(t a) { return a == 0 ? bits : (u32)__builtin_clz##suffix(a); }  \
  static inline u32 trailing_##t(t a) { return a == 0 ? bits : (u32)__builtin_ctz##suffix(a); } \
  static inline t swap_##t(t a) { return __builtin_bswap##bits(a); }                            \
  static inline t reverse_##t(t a) { return __builtin_bitreverse##bits(a); }
WIDE(u32, 32, )
WIDE(u64, 64, l)

/* clang 15 would treat a visible 0xffffffff as -1 here. */
static UNKNOWN u32 high_u32(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
static UNKNOWN i32 high_i32(i32 a, i32 b) { return (i32)((i64)a * b >> 32); }
static inline u64 high_u64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static inline i64 high_i64(i64 a, i64 b) { return (i64)((__int128)a * b >> 64); }

/* Conversions to integers: 7 for NaN and for what is out of range. */
#define TO_INTEGER(f, t, low, high) \
  static inline t f##_to_##t(f a) { return a > (f)(low) && a < (f)(high) ? (t)a : 7; }
#define TO_INTEGERS(f)                            \
  TO_INTEGER(f, i8, -129, 128)                    \
  TO_INTEGER(f, u8, -1, 256)                      \
  TO_INTEGER(f, i16, -32769, 32768)               \
  TO_INTEGER(f, u16, -1, 65500)                   \
  TO_INTEGER(f, i32, -2147483648.0, 2147483648.0) \
  TO_INTEGER(f, u32, -1, 4294967296.0)            \
  TO_INTEGER(f, i64, -0x1p62, 0x1p63)             \
  TO_INTEGER(f, u64, -1, 0x1p64)
TO_INTEGERS(f32)
TO_INTEGERS(f64)
/* Halves are converted as floats of 32 bits, in which the limits do not overflow. */
#define HALF_TO_INTEGER(t) \
  static inline t f16_to_##t(f16 a) { return f32_to_##t((f32)a); }
HALF_TO_INTEGER(i8)
HALF_TO_INTEGER(u8)
HALF_TO_INTEGER(i16)
HALF_TO_INTEGER(u16)
HALF_TO_INTEGER(i32)
HALF_TO_INTEGER(u32)
HALF_TO_INTEGER(i64)
HALF_TO_INTEGER(u64)

#define FLOAT(t, integer, nan)             \
  static inline t t##_of(u64 bits) {       \
    union {                                \
      integer i;                           \
      t f;                                 \
    } u = {.i = (integer)bits};            \
    return u.f;                            \
  }                                        \
  static inline u64 bits_of_##t(t a) {     \
    union {                                \
      t f;                                 \
      integer i;                           \
    } u = {.f = a};                        \
    return a != a ? (u64)(nan) : (u64)u.i; \
  }
FLOAT(f16, u16, 0x7e00)
FLOAT(f32, u32, 0x7fc00000)
FLOAT(f64, u64, 0x7ff8000000000000)

/* copysign() treats a NaN as 1, because the sign of a NaN may differ between host and GPU. */
#define FLOAT_FUNCTIONS(t, suffix)                                                  \
  static inline t absolute_##t(t a) { return __builtin_fabs##suffix(a); }           \
  static inline t fma_##t(t a, t b, t c) { return __builtin_fma##suffix(a, b, c); } \
  static inline t floor_##t(t a) { return __builtin_floor##suffix(a); }             \
  static inline t ceil_##t(t a) { return __builtin_ceil##suffix(a); }               \
  static inline t trunc_##t(t a) { return __builtin_trunc##suffix(a); }             \
  static inline t rint_##t(t a) { return __builtin_rint##suffix(a); }               \
  static inline t copysign_##t(t a, t b) { return __builtin_copysign##suffix(a, b != b ? (t)1 : b); }
FLOAT_FUNCTIONS(f32, f)
FLOAT_FUNCTIONS(f64, )
/* The hardware's square root of a denormal f32 is that of 0, and clang 15 does not correct it. */
static inline f32 sqrt_f32(f32 a) { return absolute_f32(a) < 0x1p-126f ? a : __builtin_sqrtf(a); }
static inline f64 sqrt_f64(f64 a) { return __builtin_sqrt(a); }
static inline f16 absolute_f16(f16 a) { return a < (f16)0 ? -a : a; }

/* Minimum and maximum may return either of two zeroes with different signs, so the sign is dropped. */
#define SELECTIONS(t)                                                    \
  static inline t least_##t(t a, t b) { return (a < b ? a : b) + (t)0; } \
  static inline t greatest_##t(t a, t b) { return (a > b ? a : b) + (t)0; }
SELECTIONS(f16)
SELECTIONS(f32)
SELECTIONS(f64)

static const u32 table[16] = {0,          1,          0x80000000, 0xffffffff, 17,         0x1234,     0xcafe,     42,
                              0x7fffffff, 0xaaaaaaaa, 0x55555555, 0x0f0f0f0f, 0x00ff00ff, 0x31415926, 0x27182818, 9};

/* These functions are not inlined, so that calls by registers and stack are tested too. */
static __attribute__((noinline)) u64 mix(u32 a, u64 b, i32 c) {
  u64 result = b * 0x9e3779b97f4a7c15ul + a;
  for (i32 i = 0; i < (c & 3); ++i) result = (result << 13 | result >> 51) ^ (u64)(i64)c;
  return result;
}

static __attribute__((noinline)) f64 blend(f32 a, f64 b, i32 c) { return c < 0 ? a * b : a + b * 0.5; }

static __attribute__((noinline)) u64 sum(const u64* words, u32 count) {
  u64 result = 0;
  for (u32 i = 0; i < count; ++i) result = result * 31 + words[i];
  return result;
}
