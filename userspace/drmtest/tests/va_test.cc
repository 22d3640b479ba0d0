// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GPU address spaces: what is mapped where, seen through copies of the SDMA engine.
#include <cerrno>

#include "drmtest/harness/buffer.h"
#include "drmtest/tests/submitter_fixture.h"

namespace drmtest {
namespace {

class VaTest : public SubmitterTest<GpuTest> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SubmitterTest::SetUp());
    ASSERT_OK_AND_ASSIGN(Buffer result, Buffer::create(device(), gtt(kPage)));
    result_.emplace(std::move(result));
  }
  void TearDown() override {
    result_.reset();
    SubmitterTest::TearDown();
  }

  int va_op(const Bo* bo, std::uint64_t offset, std::uint64_t size, std::uint64_t address, std::uint32_t operation,
            std::uint64_t flags = kReadWriteExecute) const {
    return amdgpu_bo_va_op_raw(device().handle(), bo == nullptr ? nullptr : bo->handle(), offset, size, address, flags,
                               operation);
  }
  int map(const Bo& bo, std::uint64_t address, std::uint64_t offset = 0, std::uint64_t size = 0) const {
    return va_op(&bo, offset, size == 0 ? bo.size() - offset : size, address, AMDGPU_VA_OP_MAP);
  }
  static constexpr std::uint32_t kNeverRead = 0xdeadbeef;
  // Returns what the GPU reads at `address`, by a copy.
  std::uint32_t read(std::uint64_t address, std::vector<amdgpu_bo_handle> bos) {
    result_->store(0, kNeverRead);
    Commands copy(device(), AMDGPU_HW_IP_DMA);
    copy.copy(result_->address(), address, sizeof(std::uint32_t));
    bos.push_back(result_->handle());
    EXPECT_OK(submitter().run({.bos = std::move(bos)}, copy));
    return result_->load(0);
  }
  void write(std::uint64_t address, std::uint32_t value, std::vector<amdgpu_bo_handle> bos) {
    Commands write(device(), AMDGPU_HW_IP_DMA);
    write.write(address, value);
    EXPECT_OK(submitter().run({.bos = std::move(bos)}, write));
  }
  // A BO whose page i holds the words `first` + i.
  base::Result<Bo> numbered_pages(std::uint64_t pages, std::uint32_t first) const {
    ASSIGN_OR_RETURN(Bo bo, Bo::create(device(), gtt(pages * kPage)));
    ASSIGN_OR_RETURN(const auto words, bo.words());
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = first + static_cast<std::uint32_t>(i / (kPage / 4));
    return bo;
  }

 private:
  std::optional<Buffer> result_;
};

TEST_P(VaTest, one_bo_at_two_addresses_is_one_memory) {
  ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), vram(kPage)));
  ASSERT_OK_AND_ASSIGN(const auto words, bo.words());
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 2 * kPage));
  ASSERT_EQ(map(bo, range.begin()), 0);
  ASSERT_EQ(map(bo, range.begin() + kPage), 0);
  write(range.begin() + 8, 77, {bo.handle()});
  EXPECT_EQ(read(range.begin() + kPage + 8, {bo.handle()}), 77U);
  EXPECT_EQ(words[2], 77U);
}

TEST_P(VaTest, a_part_of_a_bo_is_mapped) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, numbered_pages(8, 100));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 8 * kPage));
  ASSERT_EQ(map(bo, range.begin(), 5 * kPage, 2 * kPage), 0);
  EXPECT_EQ(read(range.begin(), {bo.handle()}), 105U);
  EXPECT_EQ(read(range.begin() + kPage, {bo.handle()}), 106U);
}

TEST_P(VaTest, another_bo_at_the_same_address_is_seen_at_once) {
  ASSERT_OK_AND_ASSIGN(const Bo first, numbered_pages(2, 10));
  ASSERT_OK_AND_ASSIGN(const Bo second, numbered_pages(2, 20));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 2 * kPage));
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(map(first, range.begin()), 0);
    EXPECT_EQ(read(range.begin() + kPage, {first.handle()}), 11U);
    ASSERT_EQ(va_op(&first, 0, first.size(), range.begin(), AMDGPU_VA_OP_UNMAP), 0);
    ASSERT_EQ(map(second, range.begin()), 0);
    EXPECT_EQ(read(range.begin() + kPage, {second.handle()}), 21U);
    ASSERT_EQ(va_op(&second, 0, second.size(), range.begin(), AMDGPU_VA_OP_UNMAP), 0);
  }
}

TEST_P(VaTest, replacing_the_middle_of_a_mapping_leaves_its_ends) {
  ASSERT_OK_AND_ASSIGN(const Bo all, numbered_pages(6, 10));
  ASSERT_OK_AND_ASSIGN(const Bo middle, numbered_pages(2, 50));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 6 * kPage));
  ASSERT_EQ(map(all, range.begin()), 0);
  ASSERT_EQ(va_op(&middle, 0, middle.size(), range.begin() + 2 * kPage, AMDGPU_VA_OP_REPLACE), 0);
  const std::vector<amdgpu_bo_handle> bos = {all.handle(), middle.handle()};
  for (const auto& [page, value] : {std::pair{0U, 10U}, {1U, 11U}, {2U, 50U}, {3U, 51U}, {4U, 14U}, {5U, 15U}})
    EXPECT_EQ(read(range.begin() + page * kPage, bos), value) << "page " << page;
  EXPECT_EQ(va_op(nullptr, 0, 6 * kPage, range.begin(), AMDGPU_VA_OP_CLEAR, 0), 0);
}

TEST_P(VaTest, clearing_a_range_makes_room_for_another_mapping) {
  ASSERT_OK_AND_ASSIGN(const Bo all, numbered_pages(4, 10));
  ASSERT_OK_AND_ASSIGN(const Bo part, numbered_pages(1, 60));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 4 * kPage));
  ASSERT_EQ(map(all, range.begin()), 0);
  EXPECT_EQ(map(part, range.begin() + kPage), -EINVAL) << "the page is taken";
  ASSERT_EQ(va_op(nullptr, 0, kPage, range.begin() + kPage, AMDGPU_VA_OP_CLEAR, 0), 0);
  EXPECT_EQ(map(part, range.begin() + kPage), 0);
  EXPECT_EQ(read(range.begin() + kPage, {all.handle(), part.handle()}), 60U);
  EXPECT_EQ(read(range.begin() + 3 * kPage, {all.handle(), part.handle()}), 13U);
}

TEST_P(VaTest, a_sparse_range_reads_as_zeros_and_swallows_writes) {
  // On gfx7 and gfx8 a register makes every address of a GPU sparse, and the driver warns about that.
  if (device().info().family < AMDGPU_FAMILY_AI) GTEST_SKIP() << "sparse page table entries begin with gfx9";
  ASSERT_OK_AND_ASSIGN(const Bo bo, numbered_pages(1, 42));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 600 * kPage));
  ASSERT_EQ(va_op(nullptr, 0, 600 * kPage, range.begin(), AMDGPU_VA_OP_MAP, AMDGPU_VM_PAGE_PRT), 0);
  for (const std::uint64_t page : {0U, 6U, 599U}) {
    const std::uint64_t address = range.begin() + page * kPage;
    EXPECT_EQ(read(address, {}), 0U) << "page " << page;
    write(address, 77, {});
    EXPECT_EQ(read(address, {}), 0U) << "page " << page;
  }
  ASSERT_EQ(va_op(&bo, 0, kPage, range.begin() + 7 * kPage, AMDGPU_VA_OP_REPLACE), 0);
  EXPECT_EQ(read(range.begin() + 6 * kPage, {bo.handle()}), 0U);
  EXPECT_EQ(read(range.begin() + 7 * kPage, {bo.handle()}), 42U);
  EXPECT_EQ(read(range.begin() + 8 * kPage, {bo.handle()}), 0U);
  EXPECT_EQ(va_op(nullptr, 0, 600 * kPage, range.begin(), AMDGPU_VA_OP_CLEAR, 0), 0);
}

TEST_P(VaTest, a_sparse_range_takes_mappings) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, numbered_pages(1, 42));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 16 * kPage));
  ASSERT_EQ(va_op(nullptr, 0, 16 * kPage, range.begin(), AMDGPU_VA_OP_MAP, AMDGPU_VM_PAGE_PRT), 0);
  EXPECT_EQ(map(bo, range.begin() + 7 * kPage), -EINVAL) << "taken by the sparse range";
  ASSERT_EQ(va_op(&bo, 0, kPage, range.begin() + 7 * kPage, AMDGPU_VA_OP_REPLACE), 0);
  EXPECT_EQ(read(range.begin() + 7 * kPage, {bo.handle()}), 42U);
  EXPECT_EQ(va_op(nullptr, 0, 16 * kPage, range.begin(), AMDGPU_VA_OP_CLEAR, 0), 0);
}

TEST_P(VaTest, mappings_of_every_size_and_alignment_reach_their_last_word) {
  constexpr std::uint64_t kMost = 48 * kMiB;
  ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), vram(kMost)));
  ASSERT_OK_AND_ASSIGN(const auto words, bo.words());
  for (const std::uint64_t size : {kPage, 3 * kPage, 64 * 1024 + kPage, 2 * kMiB, 5 * kMiB + 3 * kPage, kMost}) {
    for (const std::uint64_t shift : {std::uint64_t{0}, kPage, 17 * kPage}) {
      ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), size + shift, 2 * kMiB));
      const std::uint64_t address = range.begin() + shift;
      words[size / 4 - 1] = static_cast<std::uint32_t>(size ^ shift);
      ASSERT_EQ(map(bo, address, 0, size), 0);
      EXPECT_EQ(read(address + size - 4, {bo.handle()}), static_cast<std::uint32_t>(size ^ shift)) << size;
      ASSERT_EQ(va_op(&bo, 0, size, address, AMDGPU_VA_OP_UNMAP), 0);
    }
  }
}

TEST_P(VaTest, addresses_from_the_lowest_to_the_highest_work) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, numbered_pages(1, 9));
  const drm_amdgpu_info_device& info = device().info();
  std::vector<std::uint64_t> addresses = {info.virtual_address_offset, info.virtual_address_max - kPage};
  if (info.high_va_offset != 0) addresses.insert(addresses.end(), {info.high_va_offset, info.high_va_max - kPage});
  for (const std::uint64_t address : addresses) {
    ASSERT_EQ(map(bo, address), 0) << std::hex << address;
    EXPECT_EQ(read(address, {bo.handle()}), 9U) << std::hex << address;
    ASSERT_EQ(va_op(&bo, 0, kPage, address, AMDGPU_VA_OP_UNMAP), 0) << std::hex << address;
  }
}

TEST_P(VaTest, hundreds_of_mappings_are_kept_apart) {
  constexpr std::uint32_t kPages = 300;
  ASSERT_OK_AND_ASSIGN(const Bo bo, numbered_pages(kPages, 1000));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 2 * kPages * kPage));
  const auto address = [&](std::uint32_t page) { return range.begin() + 2 * std::uint64_t{kPages - 1 - page} * kPage; };
  for (std::uint32_t page = 0; page < kPages; ++page) ASSERT_EQ(map(bo, address(page), page * kPage, kPage), 0);
  for (std::uint32_t page = 0; page < kPages; page += 37)
    EXPECT_EQ(read(address(page), {bo.handle()}), 1000 + page) << "page " << page;
}

TEST_P(VaTest, a_mapping_whose_update_is_delayed_is_there_when_a_job_needs_it) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, numbered_pages(1, 31));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), kPage));
  ASSERT_EQ(va_op(&bo, 0, kPage, range.begin(), AMDGPU_VA_OP_MAP, kReadWriteExecute | AMDGPU_VM_DELAY_UPDATE), 0);
  EXPECT_EQ(read(range.begin(), {bo.handle()}), 31U);
}

TEST_P(VaTest, mappings_follow_a_bo_that_is_evicted) {
  ASSERT_OK_AND_ASSIGN(const drm_amdgpu_memory_info memory, device().memory());
  ASSERT_OK_AND_ASSIGN(const Buffer buffer, Buffer::create(device(), vram(4 * kMiB)));
  write_pattern(buffer.words(), 8);
  {
    constexpr std::uint64_t kFiller = 16 * kMiB;
    std::vector<Bo> fillers;
    for (std::uint64_t got = 0; got < memory.vram.usable_heap_size + kFiller; got += kFiller) {
      ASSERT_OK_AND_ASSIGN(Bo filler, Bo::create(device(), vram(kFiller)));
      fillers.push_back(std::move(filler));
    }
  }
  const std::uint32_t want = buffer.load(1000);
  EXPECT_EQ(read(buffer.address(4000), {buffer.handle()}), want);
}

TEST_P(VaTest, what_cannot_be_mapped_is_refused) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, Bo::create(device(), gtt(2 * kPage)));
  ASSERT_OK_AND_ASSIGN(const AddressRange range, AddressRange::reserve(device(), 4 * kPage));
  const std::uint64_t address = range.begin();
  constexpr std::uint32_t kNoOperation = 77;
  constexpr std::uint64_t kNoFlag = std::uint64_t{1} << 25;
  EXPECT_EQ(map(bo, address + 1), -EINVAL) << "address not of a page";
  EXPECT_EQ(map(bo, address, 100, kPage), -EINVAL) << "offset not of a page";
  EXPECT_EQ(map(bo, address, 0, 3 * kPage), -EINVAL) << "longer than the BO";
  EXPECT_EQ(map(bo, 0), -EINVAL) << "the reserved bottom";
  EXPECT_EQ(map(bo, std::uint64_t{0x900000000000}), -EINVAL) << "the hole";
  EXPECT_EQ(va_op(&bo, 0, kPage, address, kNoOperation), -EINVAL);
  EXPECT_EQ(va_op(&bo, 0, kPage, address, AMDGPU_VA_OP_MAP, kNoFlag), -EINVAL);
  EXPECT_NE(va_op(&bo, 0, kPage, address, AMDGPU_VA_OP_UNMAP), 0) << "not mapped";
  ASSERT_EQ(map(bo, address), 0);
  EXPECT_EQ(map(bo, address + kPage), -EINVAL) << "overlap";
  EXPECT_EQ(va_op(&bo, 0, bo.size(), address, AMDGPU_VA_OP_UNMAP), 0);
}

EVERY_GPU(VaTest);

}  // namespace
}  // namespace drmtest
