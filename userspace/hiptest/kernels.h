// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Kernels of kernels.hip, each behind a function that launches it on the current device's null stream. Pointers are
// device memory, sizes count elements.
#pragma once

#include <cstdint>

namespace hiptest {

void vector_add(const float* a, const float* b, float* sum, int n);
// Writes one partial sum for each block of 256 elements.
inline constexpr int kReduceBlock = 256;
void reduce_blocks(const float* in, float* partial, int n);
// Computes the inclusive scan of one block of 1024 elements.
inline constexpr int kScanBlock = 1024;
void scan_block(const std::uint32_t* in, std::uint32_t* out);
inline constexpr int kBins = 64;
void histogram(const std::uint32_t* in, std::uint32_t* bins, int n);
// Computes c = a * b, matrices of m x k and k x n elements in rows; the sizes are multiples of kTile.
inline constexpr int kTile = 16;
void matmul(const float* a, const float* b, float* c, int m, int n, int k);
// Replaces each x by sqrt(x * x + 1) / (x + 2) in double precision, `rounds` times.
void iterate(double* x, int n, int rounds);

// Computes c = rounds * (a * b + d * e): kTile x kTile elements in rows from a and b, fp16 with kTile of k, and d and
// e, bfloat16 with half of that, by the matrix instructions of chips that have them. A factor has the elements of row i
// of a and d, or of column i of b and e, in the order of k.
void multiply_short_floats(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* d,
                           const std::uint16_t* e, float* c, int rounds);

// In each round, x[i] becomes the sum of its neighbours on a ring of n numbers, a multiple of kRingBlock; `other` has
// as many. Blocks wait for each other by a cooperative launch, whose failure the runtime tells when it is asked for its
// last error.
inline constexpr int kRingBlock = 256;
void add_neighbours(std::uint32_t* x, std::uint32_t* other, int n, int rounds);

// The next kernels are those of a transformer layer. A matrix has rows of `width` elements, and a block computes a row.
void layer_norm(const float* in, const float* gain, const float* bias, float* out, int rows, int width);
// If `gate` is not null, each block waits in the middle of its row until the host, which shares that memory, writes
// another value than 0 there.
void softmax_rows(float* x, int rows, int width, const std::uint32_t* gate);
// Computes scores[h][i][j] = q[i] . k[j] / sqrt(head width) from the columns of head h.
void attention_scores(const float* q, const float* k, float* scores, int tokens, int width, int heads);
void attention_mix(const float* scores, const float* v, float* out, int tokens, int width, int heads);
void gelu(float* x, int n);
void add_to(float* x, const float* y, int n);

}  // namespace hiptest
