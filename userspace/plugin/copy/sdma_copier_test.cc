// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The SDMA copier, with packets of each generation, on an engine that is simulated.
#include "plugin/copy/sdma_copier.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "plugin/copy/fake_sdma_engine.h"

namespace plugin::copy {
namespace {

namespace sdma = packets::sdma;

constexpr std::size_t kPage = 4096;

base::UniqueFd memory_file(std::size_t size) {
  base::UniqueFd fd(::memfd_create("bo", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

// No two pages of all BOs are equal.
std::vector<std::byte> contents(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size; at += sizeof(seed)) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(bytes.data() + at, &seed, std::min(sizeof(seed), size - at));
  }
  return bytes;
}

base::UniqueFd filled_file(const std::vector<std::byte>& bytes) {
  base::UniqueFd fd = memory_file(bytes.size());
  EXPECT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return fd;
}

std::vector<std::byte> contents_of(const base::UniqueFd& fd, std::size_t size) {
  std::vector<std::byte> bytes(size);
  EXPECT_EQ(::pread(fd.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
  return bytes;
}

// Bytes in memory, of which runs of whole kUnit that are zero are known to be. Fails at an offset if told so.
class MemorySource final : public Source {
 public:
  static constexpr std::size_t kUnit = 64U << 10;

  explicit MemorySource(std::span<const std::byte> bytes, std::size_t fail_at = SIZE_MAX)
      : bytes_(bytes), fail_at_(fail_at) {}
  std::uint64_t skip_zeros(std::uint64_t limit) override {
    std::uint64_t skipped = 0;
    while (at_ % kUnit == 0 && at_ + kUnit <= bytes_.size() && skipped + kUnit <= limit && is_zero(at_)) {
      at_ += kUnit;
      skipped += kUnit;
    }
    return skipped;
  }
  base::Status read(std::span<std::byte> out) override {
    EXPECT_LE(out.size(), kStepSize);
    if (at_ + out.size() > fail_at_) return base::Error(EINVAL, "damaged");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), out.size(), out.begin());
    at_ += out.size();
    return {};
  }

 private:
  [[nodiscard]] bool is_zero(std::size_t at) const {
    const auto unit = bytes_.subspan(at, kUnit);
    return std::all_of(unit.begin(), unit.end(), [](std::byte b) { return b == std::byte{0}; });
  }

  std::span<const std::byte> bytes_;
  std::size_t fail_at_;
  std::size_t at_ = 0;
};

class SdmaCopierTest : public ::testing::TestWithParam<const sdma::Format*> {
 protected:
  FakeSdma sdma_;
  std::unique_ptr<Copier> copier_ = make_sdma_copier(std::make_unique<FakeSdmaEngine>(sdma_, *GetParam()), *GetParam());
};

TEST_P(SdmaCopierTest, reads_a_large_bo_in_slices_of_which_two_are_under_way) {
  const auto bytes = contents(3 * kSliceSize + kPage, 1);
  const base::UniqueFd bo = filled_file(bytes);
  std::vector<std::byte> read;
  std::vector<std::size_t> slices;
  const auto sink = [&](std::span<const std::byte> slice) -> base::Status {
    read.insert(read.end(), slice.begin(), slice.end());
    slices.push_back(slice.size());
    return {};
  };
  ASSERT_TRUE(copier_->read(bo.get(), bytes.size(), sink).ok());
  EXPECT_EQ(read, bytes);
  EXPECT_EQ(slices, (std::vector<std::size_t>{kSliceSize, kSliceSize, kSliceSize, kPage}));
  EXPECT_EQ(sdma_.most_under_way, 2U);
  EXPECT_EQ(sdma_.mapped, 0U);
}

TEST_P(SdmaCopierTest, writes_what_is_stored_through_its_buffers_and_fills_what_is_zero) {
  constexpr std::size_t kSize = 2 * kSliceSize + kSliceSize / 2 + kPage;
  auto bytes = contents(kSize, 2);
  std::fill_n(bytes.begin(), kSliceSize, std::byte{0});
  std::fill_n(bytes.begin() + kSliceSize + kStepSize, MemorySource::kUnit, std::byte{0});
  const base::UniqueFd bo = filled_file(std::vector<std::byte>(kSize, std::byte{0xee}));
  MemorySource source(bytes);
  ASSERT_TRUE(copier_->write(bo.get(), kSize, source).ok());
  EXPECT_EQ(contents_of(bo, kSize), bytes);
  EXPECT_EQ(sdma_.filled, kSliceSize + MemorySource::kUnit);
  EXPECT_EQ(sdma_.copied, kSize - sdma_.filled);
  EXPECT_EQ(sdma_.most_under_way, 2U);
}

TEST_P(SdmaCopierTest, many_changes_between_zeros_and_others_use_several_submissions) {
  constexpr std::size_t kSize = 2 * kSliceSize;
  auto bytes = contents(kSize, 4);
  for (std::size_t at = 0; at < kSize; at += 2 * MemorySource::kUnit)
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), MemorySource::kUnit, std::byte{0});
  const base::UniqueFd bo = filled_file(std::vector<std::byte>(kSize, std::byte{0xee}));
  MemorySource source(bytes);
  ASSERT_TRUE(copier_->write(bo.get(), kSize, source).ok());
  EXPECT_EQ(contents_of(bo, kSize), bytes);
}

TEST_P(SdmaCopierTest, a_failing_source_ends_the_copy) {
  const auto bytes = contents(3 * kSliceSize, 5);
  const base::UniqueFd bo = memory_file(bytes.size());
  MemorySource source(bytes, 2 * kSliceSize + 1);
  const auto outcome = copier_->write(bo.get(), bytes.size(), source);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kBroken);
  EXPECT_EQ(outcome.error().error.code(), EINVAL);
  EXPECT_EQ(sdma_.mapped, 0U);
}

TEST_P(SdmaCopierTest, a_failing_sink_ends_the_copy_and_the_next_bo_is_read) {
  const auto bytes = contents(2 * kSliceSize, 3);
  const base::UniqueFd bo = filled_file(bytes);
  std::size_t calls = 0;
  const auto full = [&calls](std::span<const std::byte>) -> base::Status {
    ++calls;
    return base::Error(ENOSPC, "full");
  };
  auto outcome = copier_->read(bo.get(), bytes.size(), full);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kBroken);
  EXPECT_EQ(outcome.error().error.code(), ENOSPC);
  EXPECT_EQ(calls, 1U);
  EXPECT_EQ(sdma_.mapped, 0U);
  EXPECT_TRUE(copier_->read(bo.get(), bytes.size(), [](auto) -> base::Status { return {}; }).ok());
}

TEST_P(SdmaCopierTest, a_bo_that_it_cannot_import_is_unreachable) {
  const auto outcome = copier_->read(-1, kPage, [](auto) -> base::Status { return {}; });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kUnreachable);
}

TEST_P(SdmaCopierTest, after_a_hang_every_bo_is_unreachable) {
  sdma_.hang_submission = 1;
  const base::UniqueFd bo = memory_file(4 * kSliceSize);
  std::size_t slices = 0;
  const auto sink = [&slices](auto) -> base::Status {
    ++slices;
    return {};
  };
  auto outcome = copier_->read(bo.get(), 4 * kSliceSize, sink);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kBroken);
  EXPECT_EQ(outcome.error().error.code(), ETIMEDOUT);
  EXPECT_EQ(slices, 1U);
  outcome = copier_->read(bo.get(), kPage, sink);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kUnreachable);
  EXPECT_EQ(slices, 1U);
}

INSTANTIATE_TEST_SUITE_P(Generations, SdmaCopierTest,
                         ::testing::Values(&sdma::kFormat2, &sdma::kFormat3, &sdma::kFormat4, &sdma::kFormat5,
                                           &sdma::kFormat6, &sdma::kFormat7),
                         [](const auto& test) { return "sdma_" + std::to_string(test.param->generation); });

}  // namespace
}  // namespace plugin::copy
