// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// SDMA engines of every generation: the packets of each, and its queue pointers.
#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::sdma_generations_test {

namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kSrc = FakeDriver::kData;
constexpr GpuAddr kDst = FakeDriver::kData + 0x400000;
constexpr HqdSlot kSlot{QueueKind::kSdma, 1, 0, 0};

class SdmaGenerations : public ::testing::TestWithParam<unsigned> {
 protected:
  SdmaGenerations() {
    for (std::uint32_t i = 0; i < 0x4000; i += 4) driver.memory.put<std::uint32_t>(kSrc + i, i * 2654435761u);
  }
  [[nodiscard]] const sdma::Format& format() const { return sdma::format(driver.info.sdma_format); }
  bool same(GpuAddr a, GpuAddr b, std::size_t bytes) {
    return std::memcmp(driver.memory.bytes().data() + a, driver.memory.bytes().data() + b, bytes) == 0;
  }
  GuestQueue load_user(std::uint64_t ring_dwords = 1024) {
    GuestQueue q = driver.make_sdma(0x200, 1, ring_dwords);
    EXPECT_TRUE(driver.engines->load_hqd(kSlot, q.mqd, 9).ok());
    return q;
  }
  FakeDriver driver{GetParam()};
};

TEST_P(SdmaGenerations, kernel_ring_does_what_the_driver_asks) {
  GuestQueue q = driver.load_kernel_ring();
  Words ib;
  sdma::copy_linear(ib, kDst, kSrc, 0x1003, format());
  sdma::write_linear(ib, kDst + 0x2000, Words{1, 2, 3}, format());
  sdma::const_fill(ib, kDst + 0x3000, 0x11223344, 0x104, sdma::FillSize::kDword, format());
  sdma::pte_gen(ib, {.dst = kDst + 0x4000, .mask = 0x71, .init = 0x10000, .increment = 0x1000, .count = 3}, format());
  Words w;
  sdma::indirect(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), 5, format());
  sdma::fence(w, kDst + 0x5000, 7);
  sdma::trap(w, 0);
  if (format().generation == 2) w.pop_back();
  sdma::fence(w, kDst + 0x5004, 8);
  driver.submit(q, w);
  driver.run();
  EXPECT_TRUE(same(kDst, kSrc, 0x1003));
  EXPECT_EQ(driver.memory.get<std::uint8_t>(kDst + 0x1003), 0);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x2008), 3u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x200c), 0u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x3100), 0x11223344u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x3104), 0u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 0x4010), 0x12071u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 0x4018), 0u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 0x5000), 0x8'0000'0007u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  EXPECT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_TRUE(driver.interrupts.faults.empty());
}

TEST_P(SdmaGenerations, pointers_of_a_user_queue_go_round_the_ring) {
  GuestQueue q = load_user(64);
  for (std::uint32_t i = 1; i <= 100; ++i) {
    Words w;
    sdma::fence(w, kDst, i);
    sdma::trap(w, i);
    driver.submit(q, w);
    driver.run();
    ASSERT_EQ(driver.memory.get<std::uint32_t>(kDst), i);
  }
  const std::uint64_t end = GetParam() < 9 ? q.wptr % (q.ring_dwords * 4) : q.wptr;
  EXPECT_EQ(driver.memory.get<std::uint32_t>(q.rptr_word), packets::lo32(end));
  ASSERT_EQ(driver.interrupts.raised.size(), 100u);
  EXPECT_EQ(driver.interrupts.raised.back().data[0], 100u);
}

TEST_P(SdmaGenerations, kernel_pointers_pass_4_gib_though_doorbells_do_not) {
  GuestQueue q = driver.make_queue(0x100, 1024);
  q.kernel = true;
  q.engine = packets::pm4::QueueEngine::kSdma0;
  q.wptr = 0xffff'ff00;
  driver.memory.put(q.wptr_word, q.wptr);
  driver.memory.put(q.rptr_word, q.wptr);
  ASSERT_TRUE(driver.engines->load_ring({RingKind::kSdma, 0, q.ring, 4096, q.rptr_word, q.wptr_word, q.doorbell}).ok());
  for (std::uint32_t i = 1; i <= 40; ++i) {
    Words w;
    sdma::fence(w, kDst, i);
    driver.submit(q, w);
    driver.run();
    ASSERT_EQ(driver.memory.get<std::uint32_t>(kDst), i);
  }
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), 0xffff'ff00ull + 40 * 16);
}

TEST_P(SdmaGenerations, one_copy_may_have_two_destinations) {
  GuestQueue q = load_user();
  Words w;
  sdma::copy_broadcast(w, kDst, kDst + 0x10000, kSrc, 0x2001, format());
  sdma::fence(w, kDst + 0x20000, 1);
  driver.submit(q, w);
  driver.run();
  EXPECT_TRUE(same(kDst, kSrc, 0x2001));
  EXPECT_TRUE(same(kDst + 0x10000, kSrc, 0x2001));
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x20000), 1u);
}

TEST_P(SdmaGenerations, a_box_of_an_image_is_copied) {
  GuestQueue q = load_user();
  sdma::CopyWindow c;
  c.element_log2 = 2;
  c.src = {.addr = kSrc, .x = 3, .y = 2, .z = 0, .pitch = 32, .slice_pitch = 32 * 8};
  c.dst = {.addr = kDst, .x = 1, .y = 1, .z = 1, .pitch = 16, .slice_pitch = 16 * 8};
  c.width = 5;
  c.height = 3;
  c.depth = 2;
  Words w;
  sdma::copy_window(w, c, format());
  sdma::fence(w, kDst + 0x20000, 1);
  driver.submit(q, w);
  driver.run();
  if (format().generation == 7) {
    EXPECT_EQ(driver.interrupts.faults.size(), 1u) << "its layout is not known: refused";
    return;
  }
  for (std::uint64_t z = 0; z < 2; ++z) {
    for (std::uint64_t y = 0; y < 3; ++y) {
      EXPECT_TRUE(same(kDst + 4 * (1 + 16 * (1 + y) + 128 * (1 + z)), kSrc + 4 * (3 + 32 * (2 + y) + 256 * z), 20));
    }
  }
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 4 * (6 + 16 + 128)), 0u) << "right of the box";
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x20000), 1u);
}

TEST_P(SdmaGenerations, packets_of_later_generations_are_refused) {
  const struct {
    unsigned since;
    Words packet;
  } cases[] = {{4, {sdma::header(sdma::kPtePde, sdma::kPtePdeCopy), 0, 0, 0, 0, 0, 0, 0}},
               {5, {sdma::header(sdma::kGcrReq), 0, 0, 0, 0}},
               {6, {sdma::header(sdma::kFence, sdma::kMemIncr), packets::lo32(kDst), 0}}};
  for (const auto& c : cases) {
    FakeDriver fresh(GetParam());
    GuestQueue q = fresh.load_kernel_ring();
    Words w = c.packet;
    if (c.since == 4) {
      w.clear();
      sdma::pte_copy(w, {.src = kSrc, .dst = kDst, .mask = ~std::uint64_t{0}, .count = 1});
    }
    fresh.submit(q, w);
    fresh.run();
    const bool known = format().generation >= c.since;
    EXPECT_EQ(fresh.interrupts.faults.empty(), known) << c.since;
    EXPECT_EQ(fresh.memory.get<std::uint64_t>(q.rptr_word) == q.wptr, known) << c.since;
  }
}

TEST_P(SdmaGenerations, a_stopped_queue_continues_inside_its_buffer) {
  GuestQueue q = load_user();
  Words ib;
  sdma::atomic(ib, {.code = 0x2f, .addr = kDst, .src = 1});
  sdma::poll_regmem(ib, {.addr = kDst + 0x100, .reference = 5});
  sdma::atomic(ib, {.code = 0x2f, .addr = kDst, .src = 0x100});
  Words w;
  sdma::indirect(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), 0, format());
  sdma::atomic(w, {.code = 0x2f, .addr = kDst, .src = 0x10000});
  driver.submit(q, w);
  driver.run();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(driver.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
    driver.replace_device();
    ASSERT_TRUE(driver.engines->load_hqd(kSlot, q.mqd, 9).ok());
    driver.run();
  }
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 1u);
  driver.memory.put<std::uint32_t>(kDst + 0x100, 5);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x10101u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(q.rptr_word), packets::lo32(q.wptr));
}

TEST_P(SdmaGenerations, skipped_dwords_and_errors_survive_unloading) {
  GuestQueue q = load_user();
  Words w;
  sdma::cond_exe(w, kDst, 1, 8);
  driver.submit(q, w);
  driver.run();
  ASSERT_TRUE(driver.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
  ASSERT_TRUE(driver.engines->load_hqd(kSlot, q.mqd, 9).ok());
  w.clear();
  for (std::uint32_t i = 1; i <= 3; ++i) sdma::fence(w, kDst, i);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 3u);
  driver.submit(q, Words{0xff});
  driver.run();
  EXPECT_EQ(driver.interrupts.faults.size(), 1u);
  ASSERT_TRUE(driver.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
  driver.replace_device();
  ASSERT_TRUE(driver.engines->load_hqd(kSlot, q.mqd, 9).ok());
  w.clear();
  sdma::fence(w, kDst, 9);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 3u) << "an error is for good";
  EXPECT_EQ(driver.interrupts.faults.size(), 1u) << "and reported once";
}

INSTANTIATE_TEST_SUITE_P(Gfx, SdmaGenerations, ::testing::Range(7u, 13u),
                         [](const auto& instance) { return std::to_string(instance.param); });

}  // namespace vasicd::sdma_generations_test
