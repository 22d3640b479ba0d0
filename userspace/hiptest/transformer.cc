// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Computes the layer on the GPU, and its reference in double precision on the CPU.
#include "hiptest/transformer.h"

#include <algorithm>
#include <cmath>

#include "hiptest/device_memory.h"
#include "hiptest/kernels.h"
#include "hiptest/numbers.h"

namespace hiptest {
namespace {

constexpr int kTokens = 32;
constexpr int kWidth = 64;
constexpr int kHeads = 4;
constexpr int kHidden = 256;
constexpr std::size_t kState = std::size_t{kTokens} * kWidth;

// The seeds of the weights, in the order of their use.
struct Weights {
  std::vector<float> gain1 = ones(), bias1 = small(kWidth, 1);
  std::vector<float> query = square(2), key = square(3), value = square(4), projection = square(5);
  std::vector<float> gain2 = ones(), bias2 = small(kWidth, 6);
  std::vector<float> up = small(std::size_t{kWidth} * kHidden, 7), down = small(std::size_t{kHidden} * kWidth, 8);

  static std::vector<float> ones() { return std::vector<float>(kWidth, 1.0f); }
  static std::vector<float> small(std::size_t count, std::uint32_t seed) {
    constexpr float kScale = 0.125f;
    std::vector<float> values = floats(count, seed);
    for (float& v : values) v *= kScale;
    return values;
  }
  static std::vector<float> square(std::uint32_t seed) { return small(std::size_t{kWidth} * kWidth, seed); }
};

using Matrix = std::vector<double>;

Matrix times(const Matrix& a, const std::vector<float>& b, int m, int n, int k) {
  Matrix c(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += a[static_cast<std::size_t>(i * k + l)] * b[static_cast<std::size_t>(l * n + j)];
      c[static_cast<std::size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

Matrix normalized(const Matrix& x, const std::vector<float>& gain, const std::vector<float>& bias) {
  Matrix out(x.size());
  for (std::size_t row = 0; row < kTokens; ++row) {
    const double* in = x.data() + row * kWidth;
    double mean = 0;
    double variance = 0;
    for (int i = 0; i < kWidth; ++i) mean += in[i] / kWidth;
    for (int i = 0; i < kWidth; ++i) variance += (in[i] - mean) * (in[i] - mean) / kWidth;
    for (std::size_t i = 0; i < kWidth; ++i) {
      out[row * kWidth + i] = (in[i] - mean) / std::sqrt(variance + 1e-5) * gain[i] + bias[i];
    }
  }
  return out;
}

Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v) {
  constexpr std::size_t kColumns = kWidth / kHeads;
  Matrix out(kState);
  for (std::size_t head = 0; head < kHeads; ++head) {
    for (std::size_t i = 0; i < kTokens; ++i) {
      std::vector<double> row(kTokens);
      double sum = 0;
      for (std::size_t j = 0; j < kTokens; ++j) {
        double dot = 0;
        for (std::size_t c = head * kColumns; c < (head + 1) * kColumns; ++c)
          dot += q[i * kWidth + c] * k[j * kWidth + c];
        row[j] = std::exp(dot / std::sqrt(static_cast<double>(kColumns)));
        sum += row[j];
      }
      for (std::size_t c = head * kColumns; c < (head + 1) * kColumns; ++c) {
        for (std::size_t j = 0; j < kTokens; ++j) out[i * kWidth + c] += row[j] / sum * v[j * kWidth + c];
      }
    }
  }
  return out;
}

class Layer final : public Transformer {
 public:
  base::Status prepare() override {
    TRY(upload(gain1_, weights_.gain1));
    TRY(upload(bias1_, weights_.bias1));
    TRY(upload(query_, weights_.query));
    TRY(upload(key_, weights_.key));
    TRY(upload(value_, weights_.value));
    TRY(upload(projection_, weights_.projection));
    TRY(upload(gain2_, weights_.gain2));
    TRY(upload(bias2_, weights_.bias2));
    TRY(upload(up_, weights_.up));
    TRY(upload(down_, weights_.down));
    for (DeviceMemory<float>* memory : {&x_, &norm_, &q_, &k_, &v_, &mix_, &out_}) {
      ASSIGN_OR_RETURN(*memory, DeviceMemory<float>::allocate(kState));
    }
    ASSIGN_OR_RETURN(scores_, DeviceMemory<float>::allocate(std::size_t{kHeads} * kTokens * kTokens));
    ASSIGN_OR_RETURN(hidden_, DeviceMemory<float>::allocate(std::size_t{kTokens} * kHidden));
    return {};
  }

  base::Result<std::vector<double>> run() override {
    TRY(begin(nullptr));
    return end();
  }

  base::Status begin(const std::uint32_t* gate) override {
    TRY(x_.store(input_));
    layer_norm(x_.data(), gain1_.data(), bias1_.data(), norm_.data(), kTokens, kWidth);
    matmul(norm_.data(), query_.data(), q_.data(), kTokens, kWidth, kWidth);
    matmul(norm_.data(), key_.data(), k_.data(), kTokens, kWidth, kWidth);
    matmul(norm_.data(), value_.data(), v_.data(), kTokens, kWidth, kWidth);
    attention_scores(q_.data(), k_.data(), scores_.data(), kTokens, kWidth, kHeads);
    softmax_rows(scores_.data(), kHeads * kTokens, kTokens, gate);
    attention_mix(scores_.data(), v_.data(), mix_.data(), kTokens, kWidth, kHeads);
    matmul(mix_.data(), projection_.data(), out_.data(), kTokens, kWidth, kWidth);
    add_to(x_.data(), out_.data(), kTokens * kWidth);
    layer_norm(x_.data(), gain2_.data(), bias2_.data(), norm_.data(), kTokens, kWidth);
    matmul(norm_.data(), up_.data(), hidden_.data(), kTokens, kHidden, kWidth);
    gelu(hidden_.data(), kTokens * kHidden);
    matmul(hidden_.data(), down_.data(), out_.data(), kTokens, kWidth, kHidden);
    add_to(x_.data(), out_.data(), kTokens * kWidth);
    return checked(hipGetLastError(), "launch");
  }

  base::Result<std::vector<double>> end() override {
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<float> result, x_.load());
    return widened(result);
  }

  [[nodiscard]] std::vector<double> reference() const override {
    Matrix x = widened(input_);
    Matrix norm = normalized(x, weights_.gain1, weights_.bias1);
    const Matrix mix = attention(times(norm, weights_.query, kTokens, kWidth, kWidth),
                                 times(norm, weights_.key, kTokens, kWidth, kWidth),
                                 times(norm, weights_.value, kTokens, kWidth, kWidth));
    const Matrix projected = times(mix, weights_.projection, kTokens, kWidth, kWidth);
    std::transform(x.begin(), x.end(), projected.begin(), x.begin(), std::plus<>());
    norm = normalized(x, weights_.gain2, weights_.bias2);
    Matrix hidden = times(norm, weights_.up, kTokens, kHidden, kWidth);
    for (double& h : hidden) h = 0.5 * h * (1 + std::erf(h * std::sqrt(0.5)));
    const Matrix down = times(hidden, weights_.down, kTokens, kWidth, kHidden);
    std::transform(x.begin(), x.end(), down.begin(), x.begin(), std::plus<>());
    return x;
  }
  [[nodiscard]] double tolerance() const override { return 2e-4; }

 private:
  static base::Status upload(DeviceMemory<float>& to, const std::vector<float>& values) {
    ASSIGN_OR_RETURN(to, DeviceMemory<float>::copy_of(values));
    return {};
  }

  const std::vector<float> input_ = floats(kState, 42);
  const Weights weights_;
  DeviceMemory<float> gain1_, bias1_, query_, key_, value_, projection_, gain2_, bias2_, up_, down_;
  DeviceMemory<float> x_, norm_, q_, k_, v_, mix_, out_, scores_, hidden_;
};

}  // namespace

std::unique_ptr<Transformer> make_transformer() { return std::make_unique<Layer>(); }

}  // namespace hiptest
