// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The SDMA copier, with packets of each generation, on an engine that is simulated.
#include "plugin/copy/sdma_copier.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "plugin/copy/fake_sdma_engine.h"

namespace plugin::copy {
namespace {

namespace sdma = packets::sdma;

constexpr std::size_t kPage = 4096;
// One more than half of the slots, until the oldest of them was waited for.
constexpr std::size_t kMostUnderWay = kSlots / 2 + 1;

base::UniqueFd memory_file(std::size_t size) {
  base::UniqueFd fd(::memfd_create("bo", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

// Whole pages, of which each begins and ends with a number of its own.
std::vector<std::byte> contents(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t page = 0; page < size; page += kPage) {
    for (const std::size_t at : {page, page + kPage - sizeof(seed)}) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(bytes.data() + at, &seed, sizeof(seed));
    }
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

TEST_P(SdmaCopierTest, reads_a_large_bo_in_slices_of_which_several_are_under_way) {
  const auto bytes = contents(2 * kSlots * kSliceSize + kPage, 1);
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
  std::vector<std::size_t> expected(2 * kSlots, kSliceSize);
  expected.push_back(kPage);
  EXPECT_EQ(slices, expected);
  EXPECT_EQ(sdma_.most_under_way, kMostUnderWay);
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
  EXPECT_GE(sdma_.most_under_way, 2U);
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

// What a sink was given, with the number of its BO.
using Delivered = std::vector<std::pair<std::size_t, std::vector<std::byte>>>;

Sink into(Delivered& delivered, std::size_t bo) {
  return [&delivered, bo](std::span<const std::byte> slice) -> base::Status {
    delivered.emplace_back(bo, std::vector<std::byte>(slice.begin(), slice.end()));
    return {};
  };
}

TEST_P(SdmaCopierTest, many_small_bos_share_submissions_and_are_delivered_in_order) {
  constexpr std::size_t kCount = 1000;
  std::vector<std::vector<std::byte>> bos;
  Delivered delivered;
  for (std::size_t i = 0; i < kCount; ++i) {
    bos.push_back(contents(kPage * (1 + i % 7), i));
    const base::UniqueFd bo = filled_file(bos.back());  // is closed while the copy may be under way
    ASSERT_TRUE(copier_->start_read({bo.get(), bos[i].size(), std::to_string(i)}, into(delivered, i)).ok());
  }
  EXPECT_LT(delivered.size(), kCount);
  ASSERT_TRUE(copier_->finish().ok());
  ASSERT_EQ(delivered.size(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(delivered[i].first, i);
    EXPECT_EQ(delivered[i].second, bos[i]) << i;
  }
  EXPECT_LE(sdma_.bos_of_submissions.size(), (kCount + kMaxBos - 1) / kMaxBos + 1);
  EXPECT_LE(sdma_.most_mapped, kSlots * kMaxBos + 1);
  EXPECT_EQ(sdma_.most_under_way, kMostUnderWay);
  EXPECT_EQ(sdma_.mapped, 0U);
}

// A sink that keeps what it is given until it is asked to settle it.
struct Keeper {
  std::vector<std::span<const std::byte>> kept;
  std::size_t settled = 0;  // slices
  std::size_t most_kept = 0;
  std::vector<std::byte> read;

  Sink sink() {
    return {[this](std::span<const std::byte> slice) -> base::Result<std::uint64_t> {
              kept.push_back(slice);
              most_kept = std::max(most_kept, kept.size() - settled);
              return std::uint64_t{kept.size()};
            },
            [this](std::uint64_t number) -> base::Status {
              for (; settled < number; ++settled) read.insert(read.end(), kept[settled].begin(), kept[settled].end());
              return {};
            }};
  }
};

TEST_P(SdmaCopierTest, bytes_stay_until_their_sink_has_settled_and_it_has_the_next_ones_then) {
  const auto bytes = contents(3 * kSlots * kSliceSize + kPage, 1);
  const base::UniqueFd bo = filled_file(bytes);
  Keeper keeper;
  ASSERT_TRUE(copier_->read(bo.get(), bytes.size(), keeper.sink()).ok());
  EXPECT_EQ(keeper.read, bytes);
  EXPECT_GE(keeper.most_kept, kSlots / 2);
}

TEST_P(SdmaCopierTest, a_failing_settle_names_its_bo_and_all_that_was_taken_is_settled) {
  for (const bool finishes : {true, false}) {
    std::vector<base::UniqueFd> files;
    std::size_t taken = 0;
    std::size_t settled = 0;
    for (std::size_t i = 0; i < 2 * kSlots; ++i) {
      files.push_back(memory_file(kSliceSize));
      const Sink sink([&taken](auto) -> base::Result<std::uint64_t> { return std::uint64_t{++taken}; },
                      [&settled](std::uint64_t number) -> base::Status {
                        settled = std::max<std::size_t>(settled, number);
                        return base::Error(ENOSPC, "full");
                      });
      const auto outcome = copier_->start_read({files[i].get(), kSliceSize, "BO " + std::to_string(i)}, sink);
      if (!finishes && taken != 0) break;
      if (outcome.ok()) continue;
      EXPECT_EQ(outcome.error().kind, FailureKind::kBroken);
      EXPECT_EQ(outcome.error().error.message(), "BO 0: full");
      EXPECT_EQ(outcome.error().error.code(), ENOSPC);
      break;
    }
    EXPECT_GT(taken, 0U);
    if (!finishes) copier_.reset();
    EXPECT_EQ(settled, taken);
    EXPECT_EQ(sdma_.mapped, 0U);
  }
}

TEST_P(SdmaCopierTest, large_bos_between_small_ones_are_delivered_in_order_and_alone) {
  const std::array<std::size_t, 6> sizes = {kPage,      2 * kSliceSize + kPage, 3 * kPage, kSliceSize / 2,
                                            kSliceSize, kSliceSize + kPage};
  std::vector<std::vector<std::byte>> bos;
  Delivered delivered;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bos.push_back(contents(sizes[i], i));
    const base::UniqueFd bo = filled_file(bos.back());
    ASSERT_TRUE(copier_->start_read({bo.get(), sizes[i], std::to_string(i)}, into(delivered, i)).ok());
  }
  ASSERT_TRUE(copier_->finish().ok());
  std::vector<std::vector<std::byte>> all(sizes.size());
  std::size_t last = 0;
  for (const auto& [bo, slice] : delivered) {
    EXPECT_GE(bo, last);
    last = bo;
    EXPECT_TRUE(slice.size() == kSliceSize || all[bo].size() + slice.size() == sizes[bo]) << bo;
    all[bo].insert(all[bo].end(), slice.begin(), slice.end());
  }
  EXPECT_EQ(all, bos);
  EXPECT_EQ(sdma_.bos_of_submissions, (std::vector<std::size_t>{1, 1, 1, 1, 2, 1, 1, 1}));
}

TEST_P(SdmaCopierTest, many_small_bos_are_written_in_few_submissions) {
  constexpr std::size_t kCount = 600;
  std::vector<std::vector<std::byte>> bos;
  std::vector<base::UniqueFd> files;
  for (std::size_t i = 0; i < kCount; ++i) {
    bos.push_back(i % 3 == 0 ? std::vector<std::byte>(MemorySource::kUnit) : contents(kPage * (1 + i % 5), i));
    files.push_back(filled_file(std::vector<std::byte>(bos[i].size(), std::byte{0xee})));
    MemorySource source(bos[i]);
    ASSERT_TRUE(copier_->start_write({files[i].get(), bos[i].size(), std::to_string(i)}, source).ok());
  }
  ASSERT_TRUE(copier_->finish().ok());
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(contents_of(files[i], bos[i].size()), bos[i]) << i;
  EXPECT_EQ(sdma_.filled, kCount / 3 * MemorySource::kUnit);
  EXPECT_LE(sdma_.bos_of_submissions.size(), 4U);
  EXPECT_LE(sdma_.most_mapped, kSlots * kMaxBos + 1);
  EXPECT_EQ(sdma_.mapped, 0U);
}

class ZeroSource final : public Source {
 public:
  std::uint64_t skip_zeros(std::uint64_t limit) override { return limit; }
  base::Status read(std::span<std::byte> /*out*/) override { return base::Error(EIO, "zeros are not read"); }
};

TEST_P(SdmaCopierTest, a_bo_of_zeros_is_filled_by_several_submissions) {
  constexpr std::size_t kSize = 300U << 20;
  const base::UniqueFd bo = memory_file(kSize);
  for (const auto at : {off_t{0}, off_t{kSize / 2}, off_t{kSize - 1}}) ASSERT_EQ(::pwrite(bo.get(), "x", 1, at), 1);
  ZeroSource source;
  ASSERT_TRUE(copier_->write(bo.get(), kSize, source).ok());
  for (const auto at : {off_t{0}, off_t{kSize / 2}, off_t{kSize - 1}}) {
    char byte = 'y';
    ASSERT_EQ(::pread(bo.get(), &byte, 1, at), 1);
    EXPECT_EQ(byte, 0);
  }
  EXPECT_EQ(sdma_.filled, kSize);
  EXPECT_EQ(sdma_.copied, 0U);
  EXPECT_EQ(sdma_.bos_of_submissions.size(), 2U);
}

TEST_P(SdmaCopierTest, a_failing_sink_names_its_bo_and_no_later_one_is_delivered) {
  Delivered delivered;
  std::vector<base::UniqueFd> files;
  for (std::size_t i = 0; i < 10; ++i) {
    files.push_back(memory_file(kPage));
    const Sink sink =
        i == 4 ? Sink([](auto) -> base::Status { return base::Error(ENOSPC, "full"); }) : into(delivered, i);
    ASSERT_TRUE(copier_->start_read({files[i].get(), kPage, "BO " + std::to_string(i)}, sink).ok());
  }
  const auto status = copier_->finish();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "BO 4: full");
  EXPECT_EQ(status.error().code(), ENOSPC);
  EXPECT_EQ(delivered.size(), 4U);
  EXPECT_EQ(sdma_.mapped, 0U);
  EXPECT_TRUE(copier_->finish().ok());
  EXPECT_EQ(delivered.size(), 4U);
}

TEST_P(SdmaCopierTest, a_failure_of_an_earlier_bo_is_answered_to_a_later_one_with_its_name) {
  const base::UniqueFd first = memory_file(2 * kSliceSize);
  const base::UniqueFd second = memory_file(2 * kSliceSize);
  const auto full = [](auto) -> base::Status { return base::Error(ENOSPC, "full"); };
  auto outcome = copier_->start_read({first.get(), kPage, "the first"}, full);
  ASSERT_TRUE(outcome.ok());
  outcome = copier_->start_read({second.get(), 2 * kSliceSize, "the second"}, [](auto) -> base::Status { return {}; });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kBroken);
  EXPECT_EQ(outcome.error().error.message(), "the first: full");
  EXPECT_EQ(sdma_.mapped, 0U);
}

TEST_P(SdmaCopierTest, a_submission_that_fails_names_its_bos) {
  for (const bool hangs : {false, true}) {
    (hangs ? sdma_.hang_submission : sdma_.fail_submission) = sdma_.bos_of_submissions.size();
    for (std::size_t i = 3; i < 6; ++i) {
      const base::UniqueFd bo = memory_file(kPage);
      const auto never = [](auto) -> base::Status { return base::Error(EINVAL, "nothing was read"); };
      ASSERT_TRUE(copier_->start_read({bo.get(), kPage, "BO " + std::to_string(i)}, never).ok());
    }
    const auto status = copier_->finish();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), hangs ? ETIMEDOUT : ENOMEM);
    EXPECT_EQ(status.error().message().find("BO 3 to BO 5 (3 in one submission): "), 0U) << status.error().message();
    EXPECT_EQ(sdma_.mapped, 0U);
    sdma_.fail_submission.reset();
  }
}

TEST_P(SdmaCopierTest, a_failing_source_names_its_bo) {
  const auto bytes = contents(kPage, 1);
  const base::UniqueFd bo = memory_file(kPage);
  MemorySource good(bytes);
  ASSERT_TRUE(copier_->start_write({bo.get(), kPage, "BO 0"}, good).ok());
  MemorySource bad(bytes, 0);
  const auto outcome = copier_->start_write({bo.get(), kPage, "BO 1"}, bad);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().error.message(), "BO 1: damaged");
  EXPECT_EQ(sdma_.mapped, 0U);
}

// One that the engine cannot import, as the fake one a file that may only be read.
TEST_P(SdmaCopierTest, a_bo_that_the_cpu_reads_comes_after_earlier_ones) {
  const auto copier = make_auto_copier(std::move(copier_), {});
  const auto bytes = contents(kPage, 1);
  Delivered delivered;
  for (std::size_t i = 0; i < 5; ++i) {
    const base::UniqueFd bo = filled_file(bytes);
    const base::UniqueFd read_only(::open(("/proc/self/fd/" + std::to_string(bo.get())).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(copier->start_read({i == 2 ? read_only.get() : bo.get(), kPage, {}}, into(delivered, i)).ok());
    EXPECT_EQ(delivered.size(), i < 2 ? 0U : 3U);
  }
  ASSERT_TRUE(copier->finish().ok());
  ASSERT_EQ(delivered.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(delivered[i].first, i);
    EXPECT_EQ(delivered[i].second, bytes);
  }
}

TEST_P(SdmaCopierTest, what_was_not_finished_is_not_delivered_when_the_copier_goes) {
  const base::UniqueFd bo = memory_file(kPage);
  const auto never = [](auto) -> base::Status {
    ADD_FAILURE() << "delivered";
    return {};
  };
  ASSERT_TRUE(copier_->start_read({bo.get(), kPage, {}}, never).ok());
  copier_.reset();
  EXPECT_EQ(sdma_.mapped, 0U);
}

// The others have copies and fills of these layouts.
INSTANTIATE_TEST_SUITE_P(Generations, SdmaCopierTest,
                         ::testing::Values(&sdma::kFormat2, &sdma::kFormat4, &sdma::kFormat7),
                         [](const auto& test) { return "sdma_" + std::to_string(test.param->generation); });

}  // namespace
}  // namespace plugin::copy
