// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// PM4 packets on user compute queues.
#include <gtest/gtest.h>

#include "packets/atomic.h"
#include "packets/ih.h"
#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::cp_queue_test {

namespace ih = packets::ih;
namespace pm4 = packets::pm4;
using packets::Words;

constexpr GpuAddr kSrc = FakeDriver::kData;
constexpr GpuAddr kDst = FakeDriver::kData + 0x400000;
constexpr std::uint32_t kDoorbell = 0x404;

class Pm4Queue : public ::testing::Test {
 protected:
  Pm4Queue() {
    driver.load_hiq();
    q = driver.make_compute(kDoorbell);
    driver.map({&q});
  }
  void submit(const Words& w) {
    driver.submit(q, w);
    driver.run();
  }
  std::uint32_t at(GpuAddr va) { return driver.memory.get<std::uint32_t>(va); }

  FakeDriver driver;
  GuestQueue q;
};

TEST_F(Pm4Queue, write_data_stores_and_the_read_pointer_follows) {
  Words w;
  pm4::write_data(w, kDst, Words{1, 2});
  pm4::nop(w, 5);
  w.push_back(pm4::kType2Filler);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0001u);
  EXPECT_EQ(at(q.rptr_word), q.wptr);
  EXPECT_TRUE(driver.memory.vmids_used.contains(FakeDriver::kVmid));
}

TEST_F(Pm4Queue, release_mem_writes_then_interrupts) {
  Words w;
  pm4::release_mem(w, {.int_sel = pm4::ReleaseInt::kAfterWrite,
                       .data_sel = pm4::ReleaseData::k64,
                       .addr = kDst,
                       .data = 0x5'0000'0006,
                       .int_ctxid = 77});
  pm4::release_mem(w, {.data_sel = pm4::ReleaseData::kGpuClock, .addr = kDst + 8});
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x5'0000'0006u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), driver.clock.now);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpEndOfPipe);
  EXPECT_EQ(driver.interrupts.raised[0].vmid, FakeDriver::kVmid);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], 77u);
}

TEST_F(Pm4Queue, wait_reg_mem_holds_the_queue_without_holding_the_device) {
  Words w;
  pm4::wait_reg_mem(w, {.addr = kSrc, .reference = 1});
  pm4::write_data(w, kDst, 9);
  submit(w);
  EXPECT_EQ(at(kDst), 0u);
  EXPECT_FALSE(driver.engines->step());
  driver.memory.put<std::uint32_t>(kSrc, 1);
  driver.run();
  EXPECT_EQ(at(kDst), 9u);
}

TEST_F(Pm4Queue, indirect_buffers_run_and_chain) {
  Words second;
  pm4::write_data(second, kDst + 4, 2);
  const GpuAddr second_at = driver.put_words(second);
  Words first;
  pm4::write_data(first, kDst, 1);
  pm4::indirect_buffer(first, second_at, static_cast<std::uint32_t>(second.size()), true);
  pm4::write_data(first, kDst + 12, 0xbad);
  Words w;
  pm4::indirect_buffer(w, driver.put_words(first), static_cast<std::uint32_t>(first.size()));
  pm4::write_data(w, kDst + 8, 3);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0001u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), 3u);
  EXPECT_EQ(at(q.rptr_word), q.wptr);
}

TEST_F(Pm4Queue, nested_indirect_buffers_are_refused) {
  Words inner;
  pm4::nop(inner, 2);
  Words outer;
  pm4::indirect_buffer(outer, driver.put_words(inner), 2);
  Words w;
  pm4::indirect_buffer(w, driver.put_words(outer), static_cast<std::uint32_t>(outer.size()));
  pm4::write_data(w, kDst, 1);
  submit(w);
  EXPECT_EQ(at(kDst), 0u);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpBadOpcode);
}

TEST_F(Pm4Queue, a_buffer_that_chains_to_itself_does_not_hang_the_device) {
  const GpuAddr loop = driver.alloc(64);
  Words ib;
  pm4::indirect_buffer(ib, loop, pm4::kIndirectBufferDwords, true);
  for (std::size_t i = 0; i < ib.size(); ++i) driver.memory.put(loop + i * 4, ib[i]);
  Words w;
  pm4::indirect_buffer(w, loop, pm4::kIndirectBufferDwords);
  driver.submit(q, w);
  driver.run(10);
  driver.unmap_all();
  EXPECT_FALSE(driver.engines->user_queues_mapped());
}

TEST_F(Pm4Queue, copy_data_moves_words_immediates_and_time) {
  driver.memory.put<std::uint64_t>(kSrc, 0x1122'3344'5566'7788);
  Words w;
  pm4::copy_data(w, {.src = kSrc, .dst = kDst});
  pm4::copy_data(w, {.wide = true, .src = kSrc, .dst = kDst + 8});
  pm4::copy_data(w, {.src_sel = pm4::CopySrc::kImmediate, .src = 5, .dst = kDst + 16});
  pm4::copy_data(w, {.src_sel = pm4::CopySrc::kGpuClock, .wide = true, .dst = kDst + 24});
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x55667788u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), 0x1122'3344'5566'7788u);
  EXPECT_EQ(at(kDst + 16), 5u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 24), driver.clock.now);
}

TEST_F(Pm4Queue, every_atomic_has_its_effect) {
  using packets::AtomicOp;
  const struct {
    AtomicOp op;
    std::uint32_t before, src, compare, after;
  } cases[] = {{AtomicOp::kSwap, 1, 2, 0, 2},
               {AtomicOp::kCompareSwap, 1, 2, 1, 2},
               {AtomicOp::kCompareSwap, 1, 2, 3, 1},
               {AtomicOp::kAdd, 0xffffffff, 2, 0, 1},
               {AtomicOp::kSub, 1, 2, 0, 0xffffffff},
               {AtomicOp::kSignedMin, 1, 0xffffffff, 0, 0xffffffff},
               {AtomicOp::kUnsignedMin, 1, 0xffffffff, 0, 1},
               {AtomicOp::kSignedMax, 1, 0xffffffff, 0, 1},
               {AtomicOp::kUnsignedMax, 1, 0xffffffff, 0, 0xffffffff},
               {AtomicOp::kAnd, 6, 3, 0, 2},
               {AtomicOp::kOr, 6, 3, 0, 7},
               {AtomicOp::kXor, 6, 3, 0, 5},
               {AtomicOp::kIncrement, 3, 3, 0, 0},
               {AtomicOp::kDecrement, 0, 3, 0, 3}};
  for (const auto& c : cases) {
    driver.memory.put<std::uint32_t>(kDst, c.before);
    driver.memory.put<std::uint64_t>(kDst + 8, c.before);
    Words w;
    pm4::atomic_mem(w, {.code = packets::atomic_code32(c.op), .addr = kDst, .src = c.src, .compare = c.compare});
    pm4::atomic_mem(w, {.code = packets::kAtomicNoReturn | packets::atomic_code64(AtomicOp::kAdd),
                        .addr = kDst + 8,
                        .src = 0x1'0000'0000});
    submit(w);
    EXPECT_EQ(at(kDst), c.after) << static_cast<int>(c.op);
    EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), 0x1'0000'0000u + c.before);
  }
}

TEST_F(Pm4Queue, unknown_atomics_are_bad_opcodes) {
  Words w;
  pm4::atomic_mem(w, {.code = 0x3f, .addr = kDst});
  submit(w);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpBadOpcode);
}

TEST_F(Pm4Queue, dma_data_copies_and_fills) {
  driver.memory.put<std::uint64_t>(kSrc, 0x1122'3344'5566'7788);
  Words w;
  pm4::dma_data(w, {.src = kSrc, .dst = kDst, .bytes = 8});
  pm4::dma_data(w, {.src_sel = pm4::DmaSrc::kData, .src = 0xdeadbeef, .dst = kDst + 8, .bytes = 8});
  pm4::dma_data(w, {.src = kSrc, .dst = kDst, .bytes = 0});
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x1122'3344'5566'7788u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), 0xdeadbeef'deadbeefu);
  EXPECT_EQ(at(q.rptr_word), q.wptr);
}

TEST_F(Pm4Queue, a_packet_that_becomes_shorter_while_it_runs_is_done) {
  Words w;
  pm4::dma_data(w, {.src_sel = pm4::DmaSrc::kData, .src = 0xdeadbeef, .dst = kSrc, .bytes = 6u << 20});
  const GpuAddr bytes = q.ring + 4 * (q.wptr + w.size() - 1);
  driver.submit(q, w);
  driver.engines->step();
  ASSERT_NE(at(q.rptr_word), q.wptr);
  driver.memory.put<std::uint32_t>(bytes, 4);
  driver.run();
  EXPECT_EQ(at(q.rptr_word), q.wptr);
  EXPECT_EQ(at(kSrc + (5u << 20)), 0u);
}

TEST_F(Pm4Queue, state_packets_are_accepted) {
  Words w;
  pm4::acquire_mem(w);
  pm4::event_write(w, 7, 4);
  pm4::set_sh_reg(w, 0x2e00, Words{1, 2});
  pm4::set_uconfig_reg(w, 0xc040, Words{3});
  pm4::write_data(w, kDst, 1);
  submit(w);
  EXPECT_EQ(at(kDst), 1u);
}

TEST_F(Pm4Queue, registers_outside_their_window_are_refused) {
  Words w;
  pm4::set_sh_reg(w, pm4::kShRegEnd - 1, Words{1, 2});
  submit(w);
  EXPECT_EQ(driver.interrupts.raised.size(), 1u);
}

TEST_F(Pm4Queue, an_unknown_opcode_stops_the_queue_and_says_which) {
  Words w;
  pm4::write_data(w, kDst, 1);
  w.push_back(0xc0009902);
  w.push_back(0);
  pm4::write_data(w, kDst, 2);
  submit(w);
  EXPECT_EQ(at(kDst), 1u);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpBadOpcode);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], kDoorbell / 2);
  EXPECT_EQ(driver.interrupts.raised[0].data[1], ih::kEcodePacketUnsupported);
}

TEST_F(Pm4Queue, a_dispatch_is_an_illegal_instruction_where_no_waves_are_executed) {
  driver.info.gc_ip = VASIC_IP_VERSION(9u, 1u, 0u);
  driver.replace_device();
  driver.load_hiq();
  driver.map({&q});
  Words w;
  pm4::dispatch_direct(w, 1, 1, 1, 1);
  submit(w);
  ASSERT_EQ(driver.interrupts.raised.size(), 2u);
  EXPECT_EQ(driver.interrupts.raised[1].kind, InterruptKind::kSqTrap);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSqError);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], static_cast<std::uint32_t>(SqError::kIllegalInstruction));
}

TEST_F(Pm4Queue, register_access_is_refused) {
  Words w;
  pm4::write_data(w, 0x1000, Words{1}, pm4::WriteDst::kRegister);
  submit(w);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpPrivilegedRegister);
  EXPECT_TRUE(driver.registers.written.empty());
}

TEST_F(Pm4Queue, a_fault_stops_this_queue_and_no_other) {
  GuestQueue other = driver.make_compute(0x500);
  driver.map({&q, &other});
  driver.memory.bad_pages.insert(kDst / FakeMemory::kPage);
  Words bad;
  pm4::write_data(bad, kDst, 1);
  Words good;
  pm4::write_data(good, kDst + 0x1000, 1);
  driver.submit(q, bad);
  driver.submit(other, good);
  driver.run();
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].client.unit, FaultClient::Unit::kCp);
  EXPECT_EQ(driver.interrupts.faults[0].fault.vmid, FakeDriver::kVmid);
  EXPECT_EQ(at(kDst + 0x1000), 1u);
}

TEST_F(Pm4Queue, the_write_pointer_may_be_kept_modulo_the_ring) {
  for (std::uint32_t i = 1; i <= 500; ++i) {
    Words w;
    pm4::write_data(w, kDst, i);
    driver.write_ring(q, w);
    driver.doorbells.rung[q.doorbell] = i % 2 == 0 ? q.wptr : q.wptr % q.ring_dwords;
    driver.run();
    ASSERT_EQ(at(kDst), i);
    ASSERT_EQ(at(q.rptr_word), q.wptr % q.ring_dwords);
  }
}

TEST_F(Pm4Queue, a_page_that_is_refused_after_a_retry_stops_the_queue) {
  driver.memory.retry = true;
  driver.memory.bad_pages.insert(kDst / FakeMemory::kPage);
  Words w;
  pm4::write_data(w, kDst, 1);
  submit(w);
  ASSERT_FALSE(driver.interrupts.faults.empty());
  EXPECT_TRUE(driver.interrupts.faults.back().fault.retry);
  driver.memory.retry = false;
  driver.run();
  EXPECT_FALSE(driver.interrupts.faults.back().fault.retry);
  const auto count = driver.interrupts.faults.size();
  driver.memory.bad_pages.clear();
  driver.run();
  EXPECT_EQ(driver.interrupts.faults.size(), count);
  EXPECT_EQ(at(kDst), 0u) << "stopped for good";
}

}  // namespace vasicd::cp_queue_test
