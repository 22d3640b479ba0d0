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
