// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// SDMA packets on kernel rings and on user queues.
#include <gtest/gtest.h>

#include <numeric>

#include "packets/atomic.h"
#include "packets/ih.h"
#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::sdma_queue_test {

namespace ih = packets::ih;
namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kSrc = FakeDriver::kData;
constexpr GpuAddr kDst = FakeDriver::kData + 0x400000;

class Sdma : public ::testing::Test {
 protected:
  void fill_source(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) driver.memory.put(kSrc + i, static_cast<std::uint8_t>(i * 7 + (i >> 8)));
  }
  bool same(GpuAddr a, GpuAddr b, std::size_t bytes) {
    return std::memcmp(driver.memory.bytes().data() + a, driver.memory.bytes().data() + b, bytes) == 0;
  }
  FakeDriver driver;
};

class KernelRing : public Sdma {
 protected:
  KernelRing() : q(driver.load_kernel_ring()) {}
  void submit(const Words& w) {
    driver.submit(q, w);
    driver.run();
  }
  GuestQueue q;
};

class UserSdma : public Sdma {
 protected:
  UserSdma() {
    driver.load_hiq();
    q = driver.make_sdma(0x200, 1);
    driver.map({&q});
  }
  void submit(const Words& w) {
    driver.submit(q, w);
    driver.run();
  }
  GuestQueue q;
};

TEST_F(KernelRing, copy_moves_bytes_across_pages_at_any_alignment) {
  fill_source(20000);
  Words w;
  sdma::copy_linear(w, kDst + 13, kSrc + 5, 12345);
  submit(w);
  EXPECT_TRUE(same(kDst + 13, kSrc + 5, 12345));
  EXPECT_EQ(driver.memory.get<std::uint8_t>(kDst + 13 + 12345), 0);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  EXPECT_TRUE(driver.trace.contains("sdma0: copy src=0x800005 dst=0xc0000d bytes=12345"));
}

TEST_F(KernelRing, fence_follows_the_copy_and_trap_names_its_context) {
  Words w;
  sdma::fence(w, kDst, 0x1234);
  sdma::trap(w, 7);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0x1234u);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].instance, 0);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSdmaTrap);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], 7u);
  EXPECT_EQ(driver.interrupts.raised[0].vmid, 0);
}

TEST_F(KernelRing, write_and_fill_store_their_data) {
  Words w;
  sdma::write_linear(w, kDst, Words{1, 2, 3});
  sdma::const_fill(w, kDst + 0x1001, 0x04030201, 8);
  sdma::const_fill(w, kDst + 0x2000, 0xab, 3, sdma::FillSize::kByte);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0001u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 0x1001), 0x0403020104030201u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x2000), 0x00abababu);
}

TEST_F(KernelRing, page_table_entries_are_generated_and_copied) {
  Words w;
  sdma::pte_gen(w, {.dst = kDst, .mask = 0x71, .init = 0x10000, .increment = 0x1000, .count = 3});
  sdma::pte_copy(w, {.src = kDst, .dst = kDst + 0x100, .mask = ~std::uint64_t{1}, .count = 3});
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 16), 0x12071u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 0x110), 0x12070u);
}

TEST_F(KernelRing, indirect_buffer_runs_in_its_vmid) {
  Words ib;
  sdma::fence(ib, kDst, 5);
  Words w;
  sdma::indirect(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), 11);
  sdma::fence(w, kDst + 4, 6);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x6'0000'0005u);
  EXPECT_TRUE(driver.memory.vmids_used.contains(11));
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
}

TEST_F(KernelRing, register_writes_arrive_and_flushes_complete_at_once) {
  Words w;
  sdma::srbm_write(w, VASIC_REG_VM_PD_LO(3), 0x1234);
  sdma::poll_regmem(w, {.hdp_flush = true, .memory = false, .addr = 0x400, .reference = 1, .mask = 1});
  sdma::poll_regmem(w, {.memory = false, .addr = VASIC_REG_TLB_INVALIDATE * 4, .reference = 1, .mask = 1});
  submit(w);
  EXPECT_EQ(driver.registers.written[VASIC_REG_VM_PD_LO(3)], 0x1234u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  EXPECT_TRUE(driver.interrupts.faults.empty());
}

TEST_F(KernelRing, register_writes_from_a_user_buffer_are_refused) {
  Words ib;
  sdma::srbm_write(ib, VASIC_REG_VM_PD_LO(3), 0x1234);
  Words w;
  sdma::indirect(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), 9);
  submit(w);
  EXPECT_TRUE(driver.registers.written.empty());
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSdmaPrivilegedRegister);
}

TEST_F(KernelRing, poll_waits_until_memory_changes) {
  Words w;
  sdma::poll_regmem(w, {.function = packets::Compare::kGreaterEqual, .addr = kSrc, .reference = 3, .mask = 0xf});
  sdma::fence(w, kDst, 1);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
  EXPECT_FALSE(driver.engines->step());
  driver.memory.put<std::uint32_t>(kSrc, 0x13);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 1u);
}

TEST_F(KernelRing, a_fault_skips_the_packet_only) {
  driver.memory.bad_pages.insert(kDst / FakeMemory::kPage);
  Words w;
  sdma::fence(w, kDst, 1);
  sdma::fence(w, kDst + 0x1000, 2);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x1000), 2u);
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.va, kDst);
  EXPECT_EQ(driver.interrupts.faults[0].client.unit, FaultClient::Unit::kSdma);
}

TEST_F(KernelRing, cond_exe_skips_what_it_guards) {
  Words w;
  sdma::cond_exe(w, kSrc, 1, 4);
  sdma::fence(w, kDst, 1);
  sdma::fence(w, kDst + 4, 2);
  sdma::pre_exe(w, 1, 4);
  sdma::fence(w, kDst + 8, 3);
  sdma::pre_exe(w, 2, 4);
  sdma::fence(w, kDst + 12, 4);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), 3u);
}

TEST_F(KernelRing, atomics_and_timestamps) {
  driver.memory.put<std::uint64_t>(kDst, 40);
  Words w;
  sdma::atomic(w, {.code = packets::atomic_code64(packets::AtomicOp::kAdd), .addr = kDst, .src = 2});
  sdma::timestamp_get_global(w, kDst + 8);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 42u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), driver.clock.now);
}

TEST_F(KernelRing, the_ring_wraps) {
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    Words w;
    sdma::fence(w, kDst, i);
    sdma::nop(w, 3);
    submit(w);
    ASSERT_EQ(driver.memory.get<std::uint32_t>(kDst), i);
  }
}

TEST_F(KernelRing, a_long_copy_continues_in_the_next_step) {
  Words w;
  sdma::copy_linear(w, kDst, kSrc, 3u << 20);
  sdma::copy_linear(w, kDst, kSrc, 3u << 20);
  driver.submit(q, w);
  EXPECT_TRUE(driver.engines->step());
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), sdma::kCopyLinearDwords * 4);
  EXPECT_TRUE(driver.engines->step());
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
}

TEST_F(KernelRing, unload_finishes_the_copy_it_is_in) {
  fill_source(3u << 20);
  Words w;
  sdma::copy_linear(w, kDst, kSrc, 2u << 20);
  sdma::copy_linear(w, kDst, kSrc, 3u << 20);
  driver.submit(q, w);
  driver.engines->step();
  ASSERT_TRUE(driver.engines->unload_ring(RingKind::kSdma, 0, UnloadMode::kDrain).ok());
  EXPECT_TRUE(same(kDst, kSrc, 3u << 20));
  EXPECT_FALSE(driver.engines->anything_mapped());
}

TEST_F(UserSdma, a_packet_that_becomes_shorter_while_it_runs_is_done) {
  Words w;
  sdma::const_fill(w, kSrc, 0x5a5a5a5a, 6u << 20);
  const GpuAddr count = q.ring + q.wptr + 4 * (w.size() - 1);
  driver.submit(q, w);
  driver.engines->step();
  ASSERT_LT(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  driver.memory.put<std::uint32_t>(count, 3);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kSrc + (5u << 20)), 0u);
}

TEST_F(KernelRing, is_loaded_once_and_validated) {
  EXPECT_EQ(driver.engines->load_ring({RingKind::kSdma, 0, q.ring, 4096, q.rptr_word, q.wptr_word, 2}).error().code(),
            EBUSY);
  EXPECT_EQ(driver.engines->load_ring({RingKind::kSdma, 1, q.ring, 5000, q.rptr_word, q.wptr_word, 2}).error().code(),
            EINVAL);
  EXPECT_EQ(driver.engines->load_ring({RingKind::kSdma, 2, q.ring, 4096, q.rptr_word, q.wptr_word, 2}).error().code(),
            EINVAL);
  EXPECT_EQ(driver.engines->load_ring({RingKind::kSdma, 1, q.ring, 4096, ~0ull, q.wptr_word, 2}).error().code(),
            EFAULT);
  EXPECT_EQ(driver.engines->unload_ring(RingKind::kSdma, 1, UnloadMode::kDrain).error().code(), EBUSY);
}

TEST_F(KernelRing, started_over_with_a_stale_read_pointer_is_empty) {
  Words w;
  sdma::fence(w, kDst, 1);
  submit(w);
  ASSERT_TRUE(driver.engines->unload_ring(RingKind::kSdma, 0, UnloadMode::kDrain).ok());
  driver.memory.put<std::uint64_t>(q.wptr_word, 0);
  ASSERT_TRUE(driver.engines->load_ring({RingKind::kSdma, 0, q.ring, 4096, q.rptr_word, q.wptr_word, q.doorbell}).ok());
  driver.memory.put<std::uint32_t>(kDst, 0);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
}

TEST_F(UserSdma, runs_in_the_vmid_of_its_process) {
  fill_source(4096);
  Words w;
  sdma::copy_linear(w, kDst, kSrc, 4096);
  sdma::trap(w, 9);
  submit(w);
  EXPECT_TRUE(same(kDst, kSrc, 4096));
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].instance, 1);
  EXPECT_EQ(driver.interrupts.raised[0].vmid, FakeDriver::kVmid);
  EXPECT_TRUE(driver.trace.contains("sdma1.q0: copy "));
}

TEST_F(UserSdma, an_indirect_buffer_cannot_choose_its_vmid) {
  Words ib;
  sdma::fence(ib, kDst, 5);
  Words w;
  sdma::indirect(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), 3);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 5u);
  EXPECT_FALSE(driver.memory.vmids_used.contains(3));
}

TEST_F(UserSdma, a_register_write_stops_the_queue) {
  Words w;
  sdma::srbm_write(w, 0x1000, 1);
  sdma::fence(w, kDst, 5);
  submit(w);
  EXPECT_TRUE(driver.registers.written.empty());
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
}

TEST_F(UserSdma, a_fault_stops_this_queue_and_no_other) {
  GuestQueue other = driver.make_sdma(0x300, 0);
  driver.map({&q, &other});
  driver.memory.read_only_pages.insert(kDst / FakeMemory::kPage);
  Words bad;
  sdma::fence(bad, kDst, 1);
  sdma::fence(bad, kDst + 0x1000, 1);
  Words good;
  sdma::fence(good, kDst + 0x2000, 1);
  driver.submit(q, bad);
  driver.submit(other, good);
  driver.run();
  EXPECT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x1000), 0u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x2000), 1u);
}

constexpr auto kCopyTiled = static_cast<sdma::SubOp>(1);
TEST_F(UserSdma, refused_packets_stop_the_queue_with_a_fault) {
  submit(Words{sdma::header(sdma::kCopy, kCopyTiled), 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_TRUE(driver.trace.contains("sdma1.q0: bad packet header=0x00000101 stopped"));
}

TEST_F(UserSdma, a_write_pointer_beyond_the_ring_stops_the_queue) {
  driver.doorbells.rung[q.doorbell] = q.ring_dwords * 4 + 4;
  driver.run();
  EXPECT_EQ(driver.interrupts.faults.size(), 1u);
}

TEST_F(UserSdma, an_incomplete_packet_waits_for_its_rest) {
  Words w;
  sdma::fence(w, kDst, 3);
  submit(Words{w[0], w[1]});
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
  submit(Words{w[2], w[3]});
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 3u);
}

TEST_F(UserSdma, a_compare_swap_loop_waits_for_its_value) {
  Words w;
  sdma::atomic(w, {.code = packets::atomic_code32(packets::AtomicOp::kCompareSwap),
                   .loop = true,
                   .addr = kDst,
                   .src = 9,
                   .compare = 4});
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
  driver.memory.put<std::uint32_t>(kDst, 4);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 9u);
}

TEST_F(UserSdma, waits_for_a_page_that_the_driver_may_still_map) {
  driver.memory.retry = true;
  driver.memory.bad_pages.insert(kDst / FakeMemory::kPage);
  Words w;
  sdma::fence(w, kDst, 1);
  sdma::fence(w, kDst + 0x1000, 2);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x1000), 0u);
  ASSERT_FALSE(driver.interrupts.faults.empty());
  EXPECT_TRUE(driver.interrupts.faults[0].fault.retry);
  EXPECT_EQ(driver.interrupts.faults[0].client.unit, FaultClient::Unit::kSdma);
  EXPECT_FALSE(driver.engines->step()) << "waiting is not work";
  driver.memory.bad_pages.clear();
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 1u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x1000), 2u);
}

}  // namespace vasicd::sdma_queue_test
