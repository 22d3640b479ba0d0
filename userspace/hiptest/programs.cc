// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The small programs. transformer.cc has the large one.
#include "hiptest/programs.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "hiptest/device_memory.h"
#include "hiptest/kernels.h"
#include "hiptest/numbers.h"
#include "hiptest/transformer.h"

namespace hiptest {
namespace {

class VectorAdd final : public Program {
 public:
  base::Status prepare() override {
    ASSIGN_OR_RETURN(a_, DeviceMemory<float>::copy_of(in_a_));
    ASSIGN_OR_RETURN(b_, DeviceMemory<float>::copy_of(in_b_));
    ASSIGN_OR_RETURN(sum_, DeviceMemory<float>::allocate(in_a_.size()));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    TRY(sum_.clear());
    vector_add(a_.data(), b_.data(), sum_.data(), a_.count());
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<float> sum, sum_.load());
    return widened(sum);
  }
  [[nodiscard]] std::vector<double> reference() const override {
    std::vector<double> sum;
    for (std::size_t i = 0; i < in_a_.size(); ++i) sum.push_back(in_a_[i] + in_b_[i]);
    return sum;
  }

 private:
  static constexpr std::size_t kCount = 100'003;  // the last block is not full
  const std::vector<float> in_a_ = floats(kCount, 1);
  const std::vector<float> in_b_ = floats(kCount, 2);
  DeviceMemory<float> a_, b_, sum_;
};

// The numbers are integers in floating point, so that the order of additions does not change the sum.
class Reduction final : public Program {
 public:
  Reduction() {
    for (const std::uint32_t n : integers(kCount, 3)) in_.push_back(static_cast<float>(n % 16));
  }
  base::Status prepare() override {
    ASSIGN_OR_RETURN(values_, DeviceMemory<float>::copy_of(in_));
    ASSIGN_OR_RETURN(partial_, DeviceMemory<float>::allocate(kPartial));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    reduce_blocks(values_.data(), partial_.data(), values_.count());
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<float> partial, partial_.load());
    return std::vector<double>{std::accumulate(partial.begin(), partial.end(), 0.0)};
  }
  [[nodiscard]] std::vector<double> reference() const override {
    return {std::accumulate(in_.begin(), in_.end(), 0.0)};
  }

 private:
  static constexpr std::size_t kCount = 50'001;
  static constexpr std::size_t kPartial = (kCount + kReduceBlock - 1) / kReduceBlock;
  std::vector<float> in_;
  DeviceMemory<float> values_, partial_;
};

class Scan final : public Program {
 public:
  base::Status prepare() override {
    ASSIGN_OR_RETURN(values_, DeviceMemory<std::uint32_t>::copy_of(in_));
    ASSIGN_OR_RETURN(sums_, DeviceMemory<std::uint32_t>::allocate(kScanBlock));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    scan_block(values_.data(), sums_.data());
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<std::uint32_t> sums, sums_.load());
    return widened(sums);
  }
  [[nodiscard]] std::vector<double> reference() const override {
    std::vector<std::uint32_t> sums(in_.size());
    std::partial_sum(in_.begin(), in_.end(), sums.begin());
    return widened(sums);
  }

 private:
  const std::vector<std::uint32_t> in_ = integers(kScanBlock, 4);
  DeviceMemory<std::uint32_t> values_, sums_;
};

class Histogram final : public Program {
 public:
  base::Status prepare() override {
    ASSIGN_OR_RETURN(values_, DeviceMemory<std::uint32_t>::copy_of(in_));
    ASSIGN_OR_RETURN(bins_, DeviceMemory<std::uint32_t>::allocate(kBins));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    TRY(bins_.clear());
    histogram(values_.data(), bins_.data(), values_.count());
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<std::uint32_t> bins, bins_.load());
    return widened(bins);
  }
  [[nodiscard]] std::vector<double> reference() const override {
    std::vector<double> bins(kBins);
    for (const std::uint32_t value : in_) ++bins[value % kBins];
    return bins;
  }

 private:
  const std::vector<std::uint32_t> in_ = integers(40'000, 5);
  DeviceMemory<std::uint32_t> values_, bins_;
};

class MatrixMultiply final : public Program {
 public:
  base::Status prepare() override {
    ASSIGN_OR_RETURN(a_, DeviceMemory<float>::copy_of(in_a_));
    ASSIGN_OR_RETURN(b_, DeviceMemory<float>::copy_of(in_b_));
    ASSIGN_OR_RETURN(c_, DeviceMemory<float>::allocate(std::size_t{kRows} * kColumns));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    matmul(a_.data(), b_.data(), c_.data(), kRows, kColumns, kInner);
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<float> c, c_.load());
    return widened(c);
  }
  // The reference uses the kernel's fused operations in the kernel's order, so the bits agree.
  [[nodiscard]] std::vector<double> reference() const override {
    std::vector<double> c;
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        float sum = 0;
        for (std::size_t l = 0; l < kInner; ++l) sum = std::fma(in_a_[i * kInner + l], in_b_[l * kColumns + j], sum);
        c.push_back(sum);
      }
    }
    return c;
  }

 private:
  static constexpr int kRows = 64;
  static constexpr int kColumns = 96;
  static constexpr int kInner = 128;
  const std::vector<float> in_a_ = floats(std::size_t{kRows} * kInner, 6);
  const std::vector<float> in_b_ = floats(std::size_t{kInner} * kColumns, 7);
  DeviceMemory<float> a_, b_, c_;
};

// GPU and CPU both round division and square root of double precision correctly, so the results are equal bit for bit.
class Iterate final : public Program {
 public:
  base::Status prepare() override {
    ASSIGN_OR_RETURN(x_, DeviceMemory<double>::allocate(in_.size()));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    TRY(x_.store(in_));
    iterate(x_.data(), x_.count(), kRounds);
    TRY(finished());
    return x_.load();
  }
  [[nodiscard]] std::vector<double> reference() const override {
    std::vector<double> x = in_;
    for (double& value : x) {
      for (int round = 0; round < kRounds; ++round) value = std::sqrt(std::fma(value, value, 1.0)) / (value + 2.0);
    }
    return x;
  }

 private:
  static constexpr int kRounds = 20;
  const std::vector<double> in_ = widened(floats(1000, 8));
  DeviceMemory<double> x_;
};

// Factors are small integers, so all sums are exact in whatever order.
class MatrixCores final : public Program {
 public:
  base::Status prepare() override {
    ASSIGN_OR_RETURN(a_, DeviceMemory<std::uint16_t>::copy_of(encoded(in_a_, kHalves)));
    ASSIGN_OR_RETURN(b_, DeviceMemory<std::uint16_t>::copy_of(encoded(in_b_, kHalves)));
    ASSIGN_OR_RETURN(d_, DeviceMemory<std::uint16_t>::copy_of(encoded(in_d_, kBrains)));
    ASSIGN_OR_RETURN(e_, DeviceMemory<std::uint16_t>::copy_of(encoded(in_e_, kBrains)));
    ASSIGN_OR_RETURN(c_, DeviceMemory<float>::allocate(std::size_t{kTile} * kTile));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    TRY(c_.clear());
    multiply_short_floats(a_.data(), b_.data(), d_.data(), e_.data(), c_.data(), kRounds);
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<float> c, c_.load());
    return widened(c);
  }
  [[nodiscard]] std::vector<double> reference() const override {
    std::vector<double> c;
    for (std::size_t row = 0; row < kTile; ++row)
      for (std::size_t column = 0; column < kTile; ++column)
        c.push_back(kRounds * (dot(in_a_, row, in_b_, column, kTile) + dot(in_d_, row, in_e_, column, kTile / 2)));
    return c;
  }

 private:
  static constexpr int kRounds = 200;
  static constexpr std::uint32_t kNumbers = 9;
  static constexpr std::uint16_t kSign = 0x8000;
  // The numbers 0 to 8.
  static constexpr std::array<std::uint16_t, kNumbers> kHalves = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                                                  0x4500, 0x4600, 0x4700, 0x4800};
  static constexpr std::array<std::uint16_t, kNumbers> kBrains = {0,      0x3f80, 0x4000, 0x4040, 0x4080,
                                                                  0x40a0, 0x40c0, 0x40e0, 0x4100};

  static std::vector<int> numbers(std::size_t count, std::uint32_t seed) {
    std::vector<int> result;
    for (const std::uint32_t n : integers(count, seed)) {
      const int number = static_cast<int>(n % kNumbers);
      result.push_back(n / kNumbers % 2 == 0 ? number : -number);
    }
    return result;
  }
  static std::vector<std::uint16_t> encoded(const std::vector<int>& values,
                                            const std::array<std::uint16_t, kNumbers>& codes) {
    std::vector<std::uint16_t> result;
    for (const int value : values) {
      const std::uint16_t code = codes[static_cast<std::size_t>(std::abs(value))];
      result.push_back(value < 0 ? static_cast<std::uint16_t>(code | kSign) : code);
    }
    return result;
  }
  static int dot(const std::vector<int>& rows, std::size_t row, const std::vector<int>& columns, std::size_t column,
                 std::size_t length) {
    int sum = 0;
    for (std::size_t k = 0; k < length; ++k) sum += rows[row * length + k] * columns[column * length + k];
    return sum;
  }

  const std::vector<int> in_a_ = numbers(std::size_t{kTile} * kTile, 9);
  const std::vector<int> in_b_ = numbers(std::size_t{kTile} * kTile, 10);
  const std::vector<int> in_d_ = numbers(std::size_t{kTile} * kTile / 2, 12);
  const std::vector<int> in_e_ = numbers(std::size_t{kTile} * kTile / 2, 13);
  DeviceMemory<std::uint16_t> a_, b_, d_, e_;
  DeviceMemory<float> c_;
};

class Ring final : public Program {
 public:
  base::Status prepare() override {
    ASSIGN_OR_RETURN(x_, DeviceMemory<std::uint32_t>::allocate(in_.size()));
    ASSIGN_OR_RETURN(other_, DeviceMemory<std::uint32_t>::allocate(in_.size()));
    return {};
  }
  base::Result<std::vector<double>> run() override {
    TRY(x_.store(in_));
    add_neighbours(x_.data(), other_.data(), x_.count(), kRounds);
    TRY(finished());
    ASSIGN_OR_RETURN(const std::vector<std::uint32_t> x, x_.load());
    return std::vector<double>(x.begin(), x.end());
  }
  [[nodiscard]] std::vector<double> reference() const override {
    std::vector<std::uint32_t> x = in_;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::uint32_t> sums;
      for (std::size_t i = 0; i < x.size(); ++i)
        sums.push_back(x[(i + 1) % x.size()] + x[(i + x.size() - 1) % x.size()]);
      x = std::move(sums);
    }
    return {x.begin(), x.end()};
  }

 private:
  static constexpr int kRounds = 20;
  const std::vector<std::uint32_t> in_ = integers(std::size_t{12} * kRingBlock, 14);
  DeviceMemory<std::uint32_t> x_, other_;
};

}  // namespace

const std::vector<std::string>& program_names() {
  static const std::vector<std::string> names = {"vector_add", "reduction",    "scan", "histogram",  "matmul",
                                                 "iterate",    "matrix_cores", "ring", "transformer"};
  return names;
}

std::unique_ptr<Program> make_program(const std::string& name) {
  if (name == "vector_add") return std::make_unique<VectorAdd>();
  if (name == "reduction") return std::make_unique<Reduction>();
  if (name == "scan") return std::make_unique<Scan>();
  if (name == "histogram") return std::make_unique<Histogram>();
  if (name == "matmul") return std::make_unique<MatrixMultiply>();
  if (name == "iterate") return std::make_unique<Iterate>();
  if (name == "matrix_cores") return std::make_unique<MatrixCores>();
  if (name == "ring") return std::make_unique<Ring>();
  return make_transformer();
}

}  // namespace hiptest
