// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Shared virtual memory: the program's own pages at their own addresses, in system memory or migrated to VRAM.
#include <sys/mman.h>

#include <algorithm>
#include <sstream>

#include "base/mapping.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/smi_events.h"
#include "kfdtest-criu/tests/shared_pages.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 512 * kKiB;
constexpr std::uint64_t kSeed = 0x5f3;
// enum KFD_MIGRATE_TRIGGERS, the last field of a migration's line
constexpr const char* kByPrefetch = " 0";
constexpr const char* kByCpuFault = " 2";
// enum KFD_SVM_UNMAP_TRIGGERS, the last field of an unmapping's line
constexpr const char* kByUnmap = " 2";

std::string hex(std::uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

class SvmTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    if (!gpu().has_svm()) GTEST_SKIP() << "the driver offers no SVM for this chip";
    ASSERT_OK_AND_ASSIGN(mapping_, base::Mapping::anonymous(2 * kSize, "pages for SVM"));
    fill_pattern(pages(), kSeed);
  }
  static const kfd::Client& client() { return ioctls_of(gpu()).client(); }
  [[nodiscard]] std::span<std::byte> pages() const { return mapping_.bytes().subspan(first_, kSize); }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(pages().data()); }

  base::Status set(std::uint32_t type, std::uint32_t value) const {
    const kfd_ioctl_svm_attribute attribute[] = {{type, value}};
    return client().svm_set(address(), kSize, attribute);
  }
  [[nodiscard]] base::Result<std::uint32_t> get(std::uint32_t type) const {
    kfd_ioctl_svm_attribute attribute[] = {{type, 0}};
    TRY(client().svm_get(address(), kSize, attribute));
    return std::uint32_t{attribute[0].value};
  }

  // How SMI events name the range: its first page and the number of its pages.
  [[nodiscard]] std::string as_in_events() const {
    return " @" + hex(address() / kPageSize) + "(" + hex(kSize / kPageSize) + ") ";
  }
  // Unmaps the pages; pages() must not be used afterwards.
  void free_pages() { mapping_ = {}; }
  // Before anything else: a range that crosses a multiple of 2 MiB is two for the driver, and so are its events.
  void keep_in_one_piece() {
    const std::uint64_t begin = address();
    first_ = (begin + kSize - 1) / kSize * kSize - begin;
    fill_pattern(pages(), kSeed);
  }

 private:
  base::Mapping mapping_;  // larger than pages(), which lies anywhere in it
  std::size_t first_ = 0;
};

TEST_F(SvmTest, gpu_and_cpu_see_each_others_changes) {
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed));
  fill_pattern(pages(), kSeed + 1);
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed + 1));
  ASSERT_OK(gpu_writes(gpu(), pages(), kSeed + 2));
  EXPECT_EQ(find_mismatch(pages(), kSeed + 2), std::nullopt);
}

TEST_F(SvmTest, attributes_are_what_was_set) {
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_GRANULARITY, 5));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, gpu().gpu_id));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_EXEC));
  ASSERT_OK_AND_ASSIGN(const std::uint32_t granularity, get(KFD_IOCTL_SVM_ATTR_GRANULARITY));
  ASSERT_OK_AND_ASSIGN(const std::uint32_t location, get(KFD_IOCTL_SVM_ATTR_PREFERRED_LOC));
  ASSERT_OK_AND_ASSIGN(const std::uint32_t flags, get(KFD_IOCTL_SVM_ATTR_SET_FLAGS));
  EXPECT_EQ(granularity, 5U);
  EXPECT_EQ(location, gpu().gpu_id);
  EXPECT_NE(flags & KFD_IOCTL_SVM_FLAG_GPU_EXEC, 0U);
  EXPECT_FALSE(set(KFD_IOCTL_SVM_ATTR_ACCESS, 1).ok()) << "no such GPU";
  EXPECT_FALSE(set(77, 0).ok()) << "no such attribute";
}

TEST_F(SvmTest, a_range_goes_to_vram_and_a_cpu_fault_brings_it_back) {
  ASSERT_OK_AND_ASSIGN(SmiEvents events, SmiEvents::open(gpu(), {SmiKind::kMigrateStart, SmiKind::kMigrateEnd}));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, gpu().gpu_id));
  EXPECT_OK(events.wait_for(SmiKind::kMigrateEnd, kByPrefetch));
  ASSERT_OK_AND_ASSIGN(const std::uint32_t there, get(KFD_IOCTL_SVM_ATTR_PREFETCH_LOC));
  EXPECT_EQ(there, gpu().gpu_id);
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed));
  ASSERT_OK(gpu_writes(gpu(), pages(), kSeed + 1));
  EXPECT_EQ(find_mismatch(pages(), kSeed + 1), std::nullopt);
  EXPECT_OK(events.wait_for(SmiKind::kMigrateEnd, kByCpuFault));
  fill_pattern(pages(), kSeed + 2);
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed + 2));
}

TEST_F(SvmTest, migrations_are_announced_with_their_beginning_their_end_and_their_reason) {
  keep_in_one_piece();
  ASSERT_OK_AND_ASSIGN(SmiEvents events, SmiEvents::open(gpu(), {SmiKind::kMigrateStart, SmiKind::kMigrateEnd}));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, gpu().gpu_id));
  const std::string up = as_in_events() + "0->" + hex(gpu().gpu_id) + " ";
  ASSERT_OK_AND_ASSIGN(const std::string start, events.wait_for(SmiKind::kMigrateStart, up));
  EXPECT_TRUE(start.ends_with(kByPrefetch)) << start;
  ASSERT_OK_AND_ASSIGN(const std::string end, events.wait_for(SmiKind::kMigrateEnd, up));
  EXPECT_TRUE(end.ends_with(kByPrefetch)) << end;
  // A CPU fault migrates the whole range or a part around the page, depending on the granularity.
  EXPECT_EQ(find_mismatch(pages(), kSeed), std::nullopt);
  const std::string down = " " + hex(gpu().gpu_id) + "->0 ";
  ASSERT_OK_AND_ASSIGN(const std::string back_start, events.wait_for(SmiKind::kMigrateStart, down));
  EXPECT_TRUE(back_start.ends_with(kByCpuFault)) << back_start;
  ASSERT_OK_AND_ASSIGN(const std::string back_end, events.wait_for(SmiKind::kMigrateEnd, down));
  EXPECT_TRUE(back_end.ends_with(kByCpuFault)) << back_end;
}

TEST_F(SvmTest, pages_that_are_given_back_are_announced_as_unmapped_from_the_gpu) {
  keep_in_one_piece();
  ASSERT_OK_AND_ASSIGN(SmiEvents events, SmiEvents::open(gpu(), {SmiKind::kUnmapFromGpu}));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  ASSERT_OK(gpu_reads(gpu(), pages(), kSeed));
  const std::string unmapped = as_in_events() + hex(gpu().gpu_id);
  EXPECT_FALSE(events.wait_for(SmiKind::kUnmapFromGpu, unmapped, kQuietPeriod).ok());
  free_pages();
  ASSERT_OK_AND_ASSIGN(const std::string line, events.wait_for(SmiKind::kUnmapFromGpu, unmapped));
  EXPECT_TRUE(line.ends_with(kByUnmap)) << line;
}

TEST_F(SvmTest, a_range_is_prefetched_to_and_fro) {
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  for (std::uint64_t round = 1; round <= 4; ++round) {
    ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, gpu().gpu_id));
    ASSERT_OK(gpu_writes(gpu(), pages(), kSeed + round));
    ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, KFD_IOCTL_SVM_LOCATION_SYSMEM));
    ASSERT_OK(gpu_reads(gpu(), pages(), kSeed + round));
    EXPECT_EQ(find_mismatch(pages(), kSeed + round), std::nullopt);
  }
}

TEST_F(SvmTest, two_gpus_share_a_range_wherever_it_is) {
  if (test_gpus().size() < 2) GTEST_SKIP() << "needs two GPUs";
  const Gpu& other = test_gpus()[1];
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, other.gpu_id));
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed));
  EXPECT_OK(gpu_reads(other, pages(), kSeed));
  ASSERT_OK(gpu_writes(gpu(), pages(), kSeed + 1));
  EXPECT_OK(gpu_reads(other, pages(), kSeed + 1));
  EXPECT_EQ(find_mismatch(pages(), kSeed + 1), std::nullopt);
}

TEST_F(SvmTest, a_dropped_page_is_a_new_one_for_the_gpu_too) {
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_ACCESS, gpu().gpu_id));
  ASSERT_OK(set(KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, gpu().gpu_id));
  ASSERT_EQ(::madvise(pages().data(), kSize, MADV_DONTNEED), 0);
  fill_pattern(pages(), kSeed + 7);
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed + 7));
}

}  // namespace
}  // namespace kfdtest
