// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Kernels of kernels.hip, each behind a function that launches it on the current device's null stream. Pointers are
// device memory, sizes count elements.
#pragma once

#include <cstdint>

namespace hiptest {

void vector_add(const float* a, const float* b, float* sum, int n);
// Sums of blocks of 256: one partial sum for each.
inline constexpr int kReduceBlock = 256;
void reduce_blocks(const float* in, float* partial, int n);
// Inclusive scan of one block of 1024.
inline constexpr int kScanBlock = 1024;
void scan_block(const std::uint32_t* in, std::uint32_t* out);
inline constexpr int kBins = 64;
void histogram(const std::uint32_t* in, std::uint32_t* bins, int n);
// c = a * b; row-major, m x k times k x n; sizes are multiples of kTile.
inline constexpr int kTile = 16;
void matmul(const float* a, const float* b, float* c, int m, int n, int k);
// Double precision, with division and square root: x -> sqrt(x * x + 1) / (x + 2), `rounds` times.
void iterate(double* x, int n, int rounds);

// Of a transformer layer; rows of `width`, one block each.
void layer_norm(const float* in, const float* gain, const float* bias, float* out, int rows, int width);
// With a gate (memory that host and device see) each block waits, in the middle of its row, until that is not 0.
void softmax_rows(float* x, int rows, int width, const std::uint32_t* gate);
// scores[h][i][j] = q[i] . k[j] / sqrt(head width), of the columns of head h.
void attention_scores(const float* q, const float* k, float* scores, int tokens, int width, int heads);
void attention_mix(const float* scores, const float* v, float* out, int tokens, int width, int heads);
void gelu(float* x, int n);
void add_to(float* x, const float* y, int n);

}  // namespace hiptest
