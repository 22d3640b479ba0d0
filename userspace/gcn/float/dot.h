// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Sums of products of fp16 and bfloat16 as matrix instructions compute them. MODE has no part in it: sums are rounded
// to nearest, and each generation has its own steps. No document of AMD says which; they were found out on hardware,
// where bits were compared: P. Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores",
// arXiv:2511.10909. That gfx90a flushes denormals is in AMD's manual of MIOpen, "MI200 MFMA behavior specifics".
// NaN: whichever number is one, the result is the one without payload.
#pragma once

#include <cstdint>
#include <span>

namespace gcn {

// The value of a bfloat16, which is the upper half of an fp32.
[[nodiscard]] float brain_float(std::uint16_t bits);

// gfx908: c + a[0] * b[0] + a[1] * b[1] + ..., rounded once, with denormals. Values of `a` and `b` are of fp16 or
// bfloat16; there are at most kMostFactors.
[[nodiscard]] std::uint32_t fused_dot(std::span<const float> a, std::span<const float> b, std::uint32_t c);

// gfx90a: each product, the sum of each two, and of two such sums, and that and c are rounded, each to fp32 without
// denormals. The caller has flushed denormals of `a`, `b` and of the first c to +0.
[[nodiscard]] std::uint32_t flushing_dot(std::span<const float> a, std::span<const float> b, std::uint32_t c);

inline constexpr std::size_t kMostFactors = 4;

}  // namespace gcn
