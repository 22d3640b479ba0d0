// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Copiers that take turns: which of them reads how much when, and what is left when one fails.
#include "plugin/copy/parallel_reads.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>

#include "plugin/copy/fake_sdma_engine.h"
#include "plugin/copy/sdma_copier.h"

namespace plugin::copy {
namespace {

using base::Result;
using base::UniqueFd;

constexpr std::size_t kPage = 4096;

UniqueFd memory_of(std::size_t size, std::byte value) {
  UniqueFd file(::memfd_create("bo", MFD_CLOEXEC));
  const std::vector<std::byte> bytes(size, value);
  EXPECT_EQ(::pwrite(file.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
  return file;
}

// A GPU with BOs of one size, which have the GPU's number in each byte.
struct Gpu {
  Gpu(char gpu, std::size_t bo_count, std::size_t bo_size)
      : number(gpu), count(bo_count), size(bo_size), copier(make()) {}
  [[nodiscard]] std::unique_ptr<Copier> make() {
    const auto& format = packets::sdma::kFormat4;
    return make_sdma_copier(std::make_unique<FakeSdmaEngine>(sdma, format), format);
  }

  FakeSdma sdma;
  char number;
  std::size_t count;
  std::size_t size;
  std::size_t asked = 0;
  std::uint64_t delivered = 0;  // bytes
  std::unique_ptr<Copier> copier;
};

class ParallelReadsTest : public ::testing::Test {
 protected:
  void add(Gpu& gpu, const Sink& sink) {
    reads_.add(*gpu.copier, [&gpu, sink]() -> Result<std::optional<Read>> {
      if (gpu.asked == gpu.count) return std::optional<Read>();
      const std::string name = "BO " + std::to_string(gpu.asked++) + " of GPU " + gpu.number;
      return std::optional(Read{memory_of(gpu.size, static_cast<std::byte>(gpu.number)), gpu.size, name, sink});
    });
  }
  void add(Gpu& gpu) {
    add(gpu, [this, &gpu](std::span<const std::byte> slice) -> base::Status {
      for (const std::byte each : slice) EXPECT_EQ(each, static_cast<std::byte>(gpu.number));
      gpu.delivered += slice.size();
      order_.push_back(gpu.number);
      return {};
    });
  }

  ParallelReads reads_;
  std::string order_;  // the GPUs' numbers, as their slices are delivered
};

TEST_F(ParallelReadsTest, slices_of_large_bos_are_delivered_in_turns) {
  Gpu first('1', 1, 6 * kSliceSize);
  Gpu second('2', 2, 3 * kSliceSize);
  add(first);
  add(second);
  ASSERT_TRUE(reads_.run().ok());
  int ahead = 0;  // slices of the first GPU more than of the second
  for (const char gpu : order_) {
    ahead += gpu == '1' ? 1 : -1;
    EXPECT_LE(std::abs(ahead), 2) << order_;
  }
  EXPECT_EQ(first.delivered, 6 * kSliceSize);
  EXPECT_EQ(second.delivered, 6 * kSliceSize);
}

// A GPU that had one BO in each turn would get a small part of the time.
TEST_F(ParallelReadsTest, a_gpu_with_small_bos_reads_as_many_bytes_as_one_with_large_ones) {
  Gpu large('1', 1, 4 * kSliceSize);
  Gpu small('2', 8 * kSliceSize / (64 * kPage), 64 * kPage);
  std::size_t small_at_end_of_large = 0;
  add(large, [&](std::span<const std::byte> slice) -> base::Status {
    large.delivered += slice.size();
    if (large.delivered == 4 * kSliceSize) small_at_end_of_large = small.asked * small.size;
    return {};
  });
  add(small);
  ASSERT_TRUE(reads_.run().ok());
  EXPECT_GE(small_at_end_of_large, 3 * kSliceSize);
  EXPECT_LE(small_at_end_of_large, 6 * kSliceSize);
  EXPECT_EQ(small.delivered, 8 * kSliceSize);
}

TEST_F(ParallelReadsTest, each_gpu_has_as_many_submissions_under_way_as_alone) {
  Gpu first('1', 1, 6 * kSliceSize);
  Gpu second('2', 1, 6 * kSliceSize);
  std::size_t most_together = 0;
  const Sink count([&](std::span<const std::byte>) -> base::Status {
    most_together = std::max(most_together, first.sdma.under_way + second.sdma.under_way);
    return {};
  });
  add(first, count);
  add(second, count);
  ASSERT_TRUE(reads_.run().ok());
  // One slice of one GPU was just waited for.
  EXPECT_GE(most_together, 2 * (kSlots / 2));
}

TEST_F(ParallelReadsTest, a_lane_is_asked_for_a_bo_when_those_before_are_begun_and_never_after_its_last) {
  Gpu gpu('1', 2, 3 * kSliceSize);
  std::size_t asked_at_first_slice = 0;
  add(gpu, [&](std::span<const std::byte>) -> base::Status {
    if (asked_at_first_slice == 0) asked_at_first_slice = gpu.asked;
    return {};
  });
  ASSERT_TRUE(reads_.run().ok());
  EXPECT_EQ(asked_at_first_slice, 1U);
  EXPECT_EQ(gpu.asked, 2U);
}

TEST_F(ParallelReadsTest, without_a_bo_nothing_is_read) {
  Gpu gpu('1', 0, kPage);
  add(gpu);
  ASSERT_TRUE(reads_.run().ok());
  EXPECT_EQ(gpu.sdma.imported, 0U);
}

TEST_F(ParallelReadsTest, a_failure_names_the_bo_and_ends_all) {
  Gpu good('1', 1, 6 * kSliceSize);
  Gpu bad('2', 2, 2 * kSliceSize);
  bad.sdma.fail_submission = 2;  // the second BO's first
  add(good);
  add(bad);
  const auto status = reads_.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "BO 1 of GPU 2: submitting a copy to SDMA");
  EXPECT_LT(good.delivered, 6 * kSliceSize);
  good.copier.reset();
  EXPECT_EQ(good.sdma.mapped, 0U);
}

TEST_F(ParallelReadsTest, a_bo_that_the_copier_cannot_reach_is_named) {
  Gpu gpu('1', 0, kPage);
  reads_.add(*gpu.copier, []() -> Result<std::optional<Read>> {
    return std::optional(Read{UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), kPage, "BO 5", Sink()});
  });
  const auto status = reads_.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message().rfind("BO 5: importing a BO", 0), 0U) << status.error().message();
}

TEST_F(ParallelReadsTest, a_bo_that_cannot_be_exported_ends_all_with_its_error) {
  Gpu gpu('1', 1, 3 * kSliceSize);
  add(gpu);
  reads_.add(*gpu.copier, []() -> Result<std::optional<Read>> { return base::Error(EMFILE, "exporting BO 7"); });
  const auto status = reads_.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "exporting BO 7");
}

// By copiers that read all of a BO at once.
TEST_F(ParallelReadsTest, copiers_that_work_in_their_callers_thread_are_read_one_after_the_other) {
  const auto cpu = make_cpu_copier();
  std::vector<std::size_t> sizes;
  int left = 3;
  reads_.add(*cpu, [&]() -> Result<std::optional<Read>> {
    if (left-- == 0) return std::optional<Read>();
    return std::optional(Read{memory_of(kPage, std::byte{1}), kPage, "BO", [&](auto slice) -> base::Status {
                                sizes.push_back(slice.size());
                                return {};
                              }});
  });
  ASSERT_TRUE(reads_.run().ok());
  EXPECT_EQ(sizes, (std::vector<std::size_t>(3, kPage)));
}

}  // namespace
}  // namespace plugin::copy
