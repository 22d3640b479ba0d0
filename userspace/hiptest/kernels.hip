// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The kernels. The build compiles them for every chip whose waves vasicd executes.
#include <hip/hip_runtime.h>
// This one does not include what it uses.
#include <hip/hip_cooperative_groups.h>

#include "hiptest/kernels.h"

namespace hiptest {
namespace {

constexpr int kBlock = 256;

int blocks_for(int n) { return (n + kBlock - 1) / kBlock; }

__device__ int global_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void vector_add_kernel(const float* a, const float* b, float* sum, int n) {
  const int i = global_index();
  if (i < n) sum[i] = a[i] + b[i];
}

__global__ void reduce_kernel(const float* in, float* partial, int n) {
  __shared__ float shared[kReduceBlock];
  const int i = global_index();
  shared[threadIdx.x] = i < n ? in[i] : 0.0f;
  for (unsigned half = kReduceBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = shared[0];
}

__global__ void scan_kernel(const std::uint32_t* in, std::uint32_t* out) {
  __shared__ std::uint32_t shared[kScanBlock];
  const unsigned i = threadIdx.x;
  shared[i] = in[i];
  for (unsigned step = 1; step < kScanBlock; step *= 2) {
    __syncthreads();
    const std::uint32_t before = i >= step ? shared[i - step] : 0;
    __syncthreads();
    shared[i] += before;
  }
  out[i] = shared[i];
}

__global__ void histogram_kernel(const std::uint32_t* in, std::uint32_t* bins, int n) {
  __shared__ std::uint32_t local[kBins];
  if (threadIdx.x < kBins) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = global_index(); i < n; i += static_cast<int>(gridDim.x * blockDim.x)) {
    atomicAdd(&local[in[i] % kBins], 1u);
  }
  __syncthreads();
  if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const unsigned x = threadIdx.x;
  const unsigned y = threadIdx.y;
  const unsigned row = blockIdx.y * kTile + y;
  const unsigned column = blockIdx.x * kTile + x;
  float sum = 0.0f;
  for (int at = 0; at < k; at += kTile) {
    tile_a[y][x] = a[row * k + at + x];
    tile_b[y][x] = b[(at + y) * n + column];
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = fmaf(tile_a[y][i], tile_b[i][x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void iterate_kernel(double* x, int n, int rounds) {
  const int i = global_index();
  if (i >= n) return;
  double value = x[i];
  for (int round = 0; round < rounds; ++round) value = sqrt(value * value + 1.0) / (value + 2.0);
  x[i] = value;
}

using Halves = _Float16 __attribute__((ext_vector_type(4)));
using Brains = short __attribute__((ext_vector_type(2)));
using Sums = float __attribute__((ext_vector_type(4)));

[[maybe_unused]] __device__ float of_half(std::uint16_t bits) { return static_cast<float>(__builtin_bit_cast(_Float16, bits)); }
[[maybe_unused]] __device__ float of_brain(std::uint16_t bits) { return __builtin_bit_cast(float, std::uint32_t{bits} << 16); }

// One wave. Work-item i has four elements of row or column i % kTile, and two of bfloat16; its sums are those of column
// i % kTile in four rows.
__global__ void multiply_short_floats_kernel(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* d,
                                             const std::uint16_t* e, float* c, int rounds) {
  const unsigned column = threadIdx.x % kTile;
  const unsigned group = threadIdx.x / kTile;
  Sums sums = {0, 0, 0, 0};
#if defined(__gfx908__) || defined(__gfx90a__)
  const Halves a_part = *reinterpret_cast<const Halves*>(a + column * kTile + 4 * group);
  const Halves b_part = *reinterpret_cast<const Halves*>(b + column * kTile + 4 * group);
  const Brains d_part = *reinterpret_cast<const Brains*>(d + column * kTile / 2 + 2 * group);
  const Brains e_part = *reinterpret_cast<const Brains*>(e + column * kTile / 2 + 2 * group);
  for (int round = 0; round < rounds; ++round) {
    sums = __builtin_amdgcn_mfma_f32_16x16x16f16(a_part, b_part, sums, 0, 0, 0);
    sums = __builtin_amdgcn_mfma_f32_16x16x8bf16(d_part, e_part, sums, 0, 0, 0);
  }
#else
  for (int round = 0; round < rounds; ++round) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = 4 * group + i;
      for (unsigned k = 0; k < kTile; ++k) sums[i] += of_half(a[row * kTile + k]) * of_half(b[column * kTile + k]);
      for (unsigned k = 0; k < kTile / 2; ++k)
        sums[i] += of_brain(d[row * kTile / 2 + k]) * of_brain(e[column * kTile / 2 + k]);
    }
  }
#endif
  for (unsigned i = 0; i < 4; ++i) c[(4 * group + i) * kTile + column] = sums[i];
}

__global__ void add_neighbours_kernel(std::uint32_t* x, std::uint32_t* other, int n, int rounds) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int i = global_index();
  for (int round = 0; round < rounds; ++round) {
    other[i] = x[(i + 1) % n] + x[(i + n - 1) % n];
    grid.sync();
    x[i] = other[i];
    grid.sync();
  }
}

// Returns to each work-item the sum over its block of kBlock.
__device__ float block_sum(float value, float* shared) {
  shared[threadIdx.x] = value;
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  const float sum = shared[0];
  __syncthreads();
  return sum;
}

__device__ float block_max(float value, float* shared) {
  shared[threadIdx.x] = value;
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  const float most = shared[0];
  __syncthreads();
  return most;
}

__global__ void layer_norm_kernel(const float* in, const float* gain, const float* bias, float* out, int width) {
  constexpr float kEpsilon = 1e-5f;
  __shared__ float shared[kBlock];
  const float* row = in + blockIdx.x * width;
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kBlock) sum += row[i];
  const float mean = block_sum(sum, shared) / static_cast<float>(width);
  float squares = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kBlock) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(block_sum(squares, shared) / static_cast<float>(width) + kEpsilon);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kBlock) {
    out[blockIdx.x * width + i] = (row[i] - mean) * scale * gain[i] + bias[i];
  }
}

__global__ void softmax_kernel(float* x, int width, const volatile std::uint32_t* gate) {
  __shared__ float shared[kBlock];
  float* row = x + blockIdx.x * width;
  float most = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kBlock) most = fmaxf(most, row[i]);
  most = block_max(most, shared);
  while (gate != nullptr && *gate == 0) __builtin_amdgcn_s_sleep(8);
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kBlock) {
    row[i] = expf(row[i] - most);
    sum += row[i];
  }
  sum = block_sum(sum, shared);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kBlock) row[i] /= sum;
}

__global__ void scores_kernel(const float* q, const float* k, float* scores, int tokens, int width, int heads) {
  const int i = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  const int columns = width / heads;
  for (int j = static_cast<int>(threadIdx.x); j < tokens; j += static_cast<int>(blockDim.x)) {
    float dot = 0.0f;
    for (int c = 0; c < columns; ++c) dot += q[i * width + head * columns + c] * k[j * width + head * columns + c];
    scores[(head * tokens + i) * tokens + j] = dot / sqrtf(static_cast<float>(columns));
  }
}

__global__ void mix_kernel(const float* scores, const float* v, float* out, int tokens, int width, int heads) {
  const int i = static_cast<int>(blockIdx.x);
  const int columns = width / heads;
  for (int c = static_cast<int>(threadIdx.x); c < width; c += static_cast<int>(blockDim.x)) {
    const float* row = scores + ((c / columns) * tokens + i) * tokens;
    float sum = 0.0f;
    for (int j = 0; j < tokens; ++j) sum += row[j] * v[j * width + c];
    out[i * width + c] = sum;
  }
}

__global__ void gelu_kernel(float* x, int n) {
  const int i = global_index();
  if (i < n) x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}

__global__ void add_kernel(float* x, const float* y, int n) {
  const int i = global_index();
  if (i < n) x[i] += y[i];
}

}  // namespace

void vector_add(const float* a, const float* b, float* sum, int n) {
  vector_add_kernel<<<blocks_for(n), kBlock>>>(a, b, sum, n);
}
void reduce_blocks(const float* in, float* partial, int n) {
  reduce_kernel<<<(n + kReduceBlock - 1) / kReduceBlock, kReduceBlock>>>(in, partial, n);
}
void scan_block(const std::uint32_t* in, std::uint32_t* out) { scan_kernel<<<1, kScanBlock>>>(in, out); }
void histogram(const std::uint32_t* in, std::uint32_t* bins, int n) {
  constexpr int kGroups = 8;
  histogram_kernel<<<kGroups, kBlock>>>(in, bins, n);
}
void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  matmul_kernel<<<dim3(n / kTile, m / kTile), dim3(kTile, kTile)>>>(a, b, c, n, k);
}
void iterate(double* x, int n, int rounds) { iterate_kernel<<<blocks_for(n), kBlock>>>(x, n, rounds); }

void multiply_short_floats(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* d,
                           const std::uint16_t* e, float* c, int rounds) {
  multiply_short_floats_kernel<<<1, 64>>>(a, b, d, e, c, rounds);
}

void add_neighbours(std::uint32_t* x, std::uint32_t* other, int n, int rounds) {
  void* arguments[] = {&x, &other, &n, &rounds};
  static_cast<void>(hipLaunchCooperativeKernel(reinterpret_cast<const void*>(add_neighbours_kernel),
                                               dim3(static_cast<unsigned>(n / kRingBlock)), dim3(kRingBlock), arguments,
                                               0, nullptr));
}
void layer_norm(const float* in, const float* gain, const float* bias, float* out, int rows, int width) {
  layer_norm_kernel<<<rows, kBlock>>>(in, gain, bias, out, width);
}
void softmax_rows(float* x, int rows, int width, const std::uint32_t* gate) {
  softmax_kernel<<<rows, kBlock>>>(x, width, gate);
}
void attention_scores(const float* q, const float* k, float* scores, int tokens, int width, int heads) {
  scores_kernel<<<dim3(tokens, heads), 64>>>(q, k, scores, tokens, width, heads);
}
void attention_mix(const float* scores, const float* v, float* out, int tokens, int width, int heads) {
  mix_kernel<<<tokens, 64>>>(scores, v, out, tokens, width, heads);
}
void gelu(float* x, int n) { gelu_kernel<<<blocks_for(n), kBlock>>>(x, n); }
void add_to(float* x, const float* y, int n) { add_kernel<<<blocks_for(n), kBlock>>>(x, y, n); }

}  // namespace hiptest
