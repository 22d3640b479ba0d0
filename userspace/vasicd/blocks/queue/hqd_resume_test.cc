// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queues survive being unmapped anywhere: the same work gives the same memory whether it runs through, is preempted
// after every step, or moves to another device with nothing but guest memory.
#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::hqd_resume_test {

namespace aql = packets::aql;
namespace m = packets::mqd;
namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kGate = FakeDriver::kData;
constexpr GpuAddr kDst = FakeDriver::kData + 0x400000;

void preempt_and_remap(FakeDriver& driver, GuestQueue& q) {
  driver.unmap_all();
  driver.map({&q});
}
void move_to_another_device(FakeDriver& driver, GuestQueue& q) {
  driver.unmap_all();
  driver.replace_device();
  driver.load_hiq();
  driver.map({&q});
}

TEST(Resume, pm4_waiting_inside_an_indirect_buffer) {
  for (auto* interrupt : {preempt_and_remap, move_to_another_device}) {
    FakeDriver driver;
    driver.load_hiq();
    GuestQueue q = driver.make_compute(0x404);
    driver.map({&q});
    Words ib;
    const std::uint32_t one = 1;
    pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = one});
    pm4::wait_reg_mem(ib, {.addr = kGate, .reference = 5});
    pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = 0x100});
    Words w;
    pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()));
    pm4::atomic_mem(w, {.code = 0x2f, .addr = kDst, .src = 0x10000});
    driver.submit(q, w);
    driver.run();
    interrupt(driver, q);
    driver.run();
    interrupt(driver, q);
    EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 1u);
    driver.memory.put<std::uint32_t>(kGate, 5);
    driver.run();
    EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x10101u);
    EXPECT_EQ(driver.memory.get<std::uint32_t>(q.rptr_word), q.wptr);
  }
}

TEST(Resume, sdma_waiting_inside_an_indirect_buffer) {
  for (auto* interrupt : {preempt_and_remap, move_to_another_device}) {
    FakeDriver driver;
    driver.load_hiq();
    GuestQueue q = driver.make_sdma(0x404);
    driver.map({&q});
    Words ib;
    sdma::atomic(ib, {.code = 0x2f, .addr = kDst, .src = 1});
    sdma::poll_regmem(ib, {.addr = kGate, .reference = 5});
    sdma::atomic(ib, {.code = 0x2f, .addr = kDst, .src = 0x100});
    Words w;
    sdma::indirect(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()));
    sdma::atomic(w, {.code = 0x2f, .addr = kDst, .src = 0x10000});
    driver.submit(q, w);
    driver.run();
    interrupt(driver, q);
    driver.run();
    interrupt(driver, q);
    EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 1u);
    driver.memory.put<std::uint32_t>(kGate, 5);
    driver.run();
    EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x10101u);
    EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  }
}

TEST(Resume, aql_waiting_in_a_barrier_behind_many_laps) {
  for (auto* interrupt : {preempt_and_remap, move_to_another_device}) {
    FakeDriver driver;
    driver.load_hiq();
    GuestQueue q = driver.make_aql(0x404);
    driver.map({&q});
    aql::Signal done;
    done.value = 201;
    driver.memory.put(kDst, done);
    aql::Barrier b;
    b.header = aql::header(aql::kBarrierAnd);
    b.completion_signal = kDst;
    for (int i = 0; i < 200; ++i) {
      driver.submit_aql(q, b);
      driver.run();
    }
    driver.memory.put<std::int64_t>(kGate + 8, 1);
    b.dep_signal[0] = kGate;
    driver.submit_aql(q, b);
    driver.run();
    interrupt(driver, q);
    driver.run();
    EXPECT_EQ(driver.memory.get<aql::Signal>(kDst).value, 1);
    driver.memory.put<std::int64_t>(kGate + 8, 0);
    driver.run();
    EXPECT_EQ(driver.memory.get<aql::Signal>(kDst).value, 0);
    EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), 201u);
  }
}

TEST(Resume, aql_finds_its_index_without_the_saved_one) {
  FakeDriver driver;
  driver.load_hiq();
  GuestQueue q = driver.make_aql(0x404);
  driver.map({&q});
  aql::Barrier b;
  b.header = aql::header(aql::kBarrierAnd);
  for (int i = 0; i < 100; ++i) {
    driver.submit_aql(q, b);
    driver.run();
  }
  driver.unmap_all();
  driver.mqd_word(q, driver.compute_layout().cp_mqd_readindex_lo, 0);
  driver.map({&q});
  driver.submit_aql(q, b);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), 101u);
}

TEST(Resume, skipped_dwords_stay_skipped) {
  FakeDriver driver;
  driver.load_hiq();
  GuestQueue q = driver.make_sdma(0x404);
  driver.map({&q});
  Words guarded;
  sdma::fence(guarded, kDst, 1);
  Words w;
  sdma::cond_exe(w, kGate, 1, static_cast<std::uint32_t>(guarded.size()));
  driver.submit(q, w);
  driver.run();
  driver.memory.put<std::uint32_t>(kGate, 1);
  move_to_another_device(driver, q);
  sdma::fence(guarded, kDst + 4, 2);
  driver.submit(q, guarded);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
}

TEST(Resume, a_copy_is_finished_before_the_queue_is_unmapped) {
  FakeDriver driver;
  driver.load_hiq();
  GuestQueue q = driver.make_sdma(0x404);
  driver.map({&q});
  driver.memory.put<std::uint32_t>(kGate + 0x2ffffc, 0x1234);
  Words w;
  sdma::copy_linear(w, kDst, kGate, 2u << 20);
  sdma::copy_linear(w, kDst, kGate, 3u << 20);
  driver.submit(q, w);
  driver.engines->step();
  driver.unmap_all();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 0x2ffffc), 0x1234u);
  EXPECT_EQ(driver.mqd_word(q, driver.sdma_layout().rb_rptr), 2 * sdma::kCopyLinearDwords * 4);
}

TEST(Resume, a_packet_queued_while_unmapped_runs_after_mapping) {
  FakeDriver driver;
  driver.load_hiq();
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  driver.unmap_all();
  Words w;
  pm4::write_data(w, kDst, 6);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
  driver.map({&q});
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 6u);
}

TEST(Resume, unmapping_reports_an_empty_wave_area) {
  FakeDriver driver;
  driver.load_hiq();
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  driver.unmap_all();
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().cp_hqd_cntl_stack_offset), 0x2000u);
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().cp_hqd_wg_state_offset), 0x2000u);
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().cp_hqd_ib_control),
            m::kIbMinAvailSize.put(3) | m::kIbExeDisable.put(1));
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().queue_doorbell_id0), 0u);
}

TEST(Resume, preemption_after_every_step_changes_nothing) {
  std::vector<std::uint64_t> results;
  for (const bool preempt : {false, true}) {
    FakeDriver driver;
    driver.load_hiq();
    GuestQueue q = driver.make_compute(0x404, 256);
    driver.map({&q});
    for (std::uint32_t i = 0; i < 100; ++i) {
      Words ib;
      for (std::uint32_t j = 0; j < 70; ++j) {
        pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = i + j});
        pm4::atomic_mem(ib, {.code = 0x37, .addr = kDst, .src = 0x5a5a5a});
      }
      Words w;
      pm4::indirect_buffer(w, FakeDriver::kData + 0x100000, static_cast<std::uint32_t>(ib.size()));
      for (std::size_t k = 0; k < ib.size(); ++k) driver.memory.put(FakeDriver::kData + 0x100000 + k * 4, ib[k]);
      driver.submit(q, w);
      while (driver.engines->step()) {
        if (preempt) preempt_and_remap(driver, q);
        if (driver.memory.get<std::uint32_t>(q.rptr_word) == q.wptr % q.ring_dwords) break;
      }
    }
    results.push_back(driver.memory.get<std::uint64_t>(kDst));
  }
  EXPECT_NE(results[0], 0u);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace vasicd::hqd_resume_test
