// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// User compute queues of every generation: descriptors, pointers and doorbells, packets that differ, and that a stopped
// queue continues exactly where it was.
#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::cp_generations_test {

namespace aql = packets::aql;
namespace m = packets::mqd;
namespace pm4 = packets::pm4;
using packets::Words;

constexpr GpuAddr kDst = FakeDriver::kData + 0x400000;
constexpr GpuAddr kGate = FakeDriver::kData + 0x500000;
constexpr HqdSlot kSlot{QueueKind::kCompute, 1, 2, 0};
constexpr std::uint32_t kDoorbell = 0x404;

class ComputeGenerations : public ::testing::TestWithParam<unsigned> {
 protected:
  void load(const GuestQueue& q) { ASSERT_TRUE(driver.engines->load_hqd(kSlot, q.mqd, 9).ok()); }
  void move_to_another_device(const GuestQueue& q) {
    ASSERT_TRUE(driver.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
    driver.replace_device();
    load(q);
    driver.run();
  }
  static aql::Barrier barrier(GpuAddr dependency, GpuAddr completion) {
    aql::Barrier b;
    b.header = aql::header(aql::kBarrierAnd);
    b.dep_signal[0] = dependency;
    b.completion_signal = completion;
    return b;
  }
  FakeDriver driver{GetParam()};
};

TEST_P(ComputeGenerations, a_bell_rung_before_it_was_prepared_is_not_for_this_queue) {
  GuestQueue q = driver.make_compute(kDoorbell);
  driver.doorbells.rung[kDoorbell] = 16;
  ASSERT_TRUE(driver.engines->prepare_hqd(kSlot, q.mqd).ok());
  load(q);
  driver.run();
  EXPECT_TRUE(driver.engines->queues().at(0).state == QueueStatus::State::kIdle);
  Words w;
  pm4::write_data(w, kDst, 1);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 1u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(q.rptr_word), q.wptr);
}

TEST_P(ComputeGenerations, end_of_pipe_names_its_event) {
  GuestQueue q = driver.make_compute(kDoorbell);
  load(q);
  Words w;
  pm4::acquire_mem(w, pm4::kCoherAll, GetParam());
  pm4::release_mem(w,
                   {.int_sel = pm4::ReleaseInt::kAfterWrite,
                    .data_sel = pm4::ReleaseData::kLow32,
                    .addr = kDst,
                    .data = 77,
                    .int_ctxid = 77},
                   GetParam());
  pm4::write_data(w, kDst + 8, 1);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 77u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 8), 1u);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], 77u);
}

TEST_P(ComputeGenerations, older_packets_exist_where_they_did) {
  GuestQueue q = driver.make_compute(kDoorbell);
  load(q);
  Words w;
  pm4::event_write_eop(w, {.int_sel = pm4::ReleaseInt::kAfterWrite,
                           .data_sel = pm4::ReleaseData::k64,
                           .addr = kDst,
                           .data = 0x2'0000'0001});
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), GetParam() < 9 ? 0x2'0000'0001u : 0u);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind,
            GetParam() < 9 ? InterruptKind::kCpEndOfPipe : InterruptKind::kCpBadOpcode);
}

TEST_P(ComputeGenerations, conditional_interrupts_came_with_gfx9) {
  GuestQueue q = driver.make_compute(kDoorbell);
  load(q);
  driver.memory.put<std::uint32_t>(kDst, 3);
  Words w;
  for (const std::uint64_t data : {2U, 3U}) {
    pm4::release_mem(w, {.int_sel = pm4::ReleaseInt::kIfEqual32, .addr = kDst, .data = data, .int_ctxid = 5},
                     GetParam());
  }
  driver.submit(q, w);
  driver.run();
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind,
            GetParam() < 9 ? InterruptKind::kCpBadOpcode : InterruptKind::kCpEndOfPipe);
}

TEST_P(ComputeGenerations, cond_exec_skips_what_it_guards) {
  GuestQueue q = driver.make_compute(kDoorbell);
  load(q);
  Words guarded;
  pm4::write_data(guarded, kDst, 1);
  Words ib;
  pm4::cond_exec(ib, kGate, static_cast<std::uint32_t>(guarded.size()));
  packets::append(ib, guarded);
  pm4::write_data(ib, kDst + 4, 2);
  Words w;
  pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()));
  pm4::cond_exec(w, kGate, static_cast<std::uint32_t>(guarded.size()));
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
  driver.submit(q, guarded);
  pm4::write_data(guarded, kDst + 8, 3);
  driver.submit(q, packets::WordView(guarded).last(5));
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 8), 3u);
}

TEST_P(ComputeGenerations, cond_exec_cannot_leave_its_buffer) {
  GuestQueue q = driver.make_compute(kDoorbell);
  load(q);
  Words ib;
  pm4::cond_exec(ib, kGate, 1000);
  Words w;
  pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()));
  driver.submit(q, w);
  driver.run();
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpBadOpcode);
}

TEST_P(ComputeGenerations, pm4_continues_inside_an_indirect_buffer) {
  GuestQueue q = driver.make_compute(kDoorbell, 64);
  load(q);
  for (std::uint32_t i = 0; i < 20; ++i) {
    Words w;
    pm4::write_data(w, kDst + 0x100, i);
    driver.submit(q, w);
    driver.run();
  }
  Words ib;
  pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = 1});
  pm4::wait_reg_mem(ib, {.addr = kGate, .reference = 5});
  pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = 0x100});
  Words w;
  pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()));
  pm4::atomic_mem(w, {.code = 0x2f, .addr = kDst, .src = 0x10000});
  driver.submit(q, w);
  driver.run();
  move_to_another_device(q);
  move_to_another_device(q);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 1u);
  driver.memory.put<std::uint32_t>(kGate, 5);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x10101u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(q.rptr_word), q.wptr % q.ring_dwords);
}

TEST_P(ComputeGenerations, an_update_of_the_queue_does_not_lose_its_indirect_buffer) {
  GuestQueue q = driver.make_compute(kDoorbell);
  const std::uint32_t fresh = driver.mqd_word(q, driver.compute_layout().cp_hqd_ib_control);
  load(q);
  Words ib;
  pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = 1});
  pm4::wait_reg_mem(ib, {.addr = kGate, .reference = 5});
  pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = 0x100});
  Words w;
  pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()));
  driver.submit(q, w);
  driver.run();
  ASSERT_TRUE(driver.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
  driver.mqd_word(q, driver.compute_layout().cp_hqd_ib_control, fresh);
  load(q);
  driver.memory.put<std::uint32_t>(kGate, 5);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x101u);
}

TEST_P(ComputeGenerations, aql_continues_behind_many_laps) {
  GuestQueue q = driver.make_aql(kDoorbell, 64);
  load(q);
  aql::Signal done;
  done.value = 201;
  driver.memory.put(kDst, done);
  for (int i = 0; i < 200; ++i) {
    driver.submit_aql(q, barrier(0, kDst));
    driver.run();
  }
  EXPECT_EQ(driver.memory.get<aql::Signal>(kDst).value, 1);
  driver.memory.put<std::int64_t>(kGate + 8, 1);
  driver.submit_aql(q, barrier(kGate, kDst));
  driver.run();
  move_to_another_device(q);
  move_to_another_device(q);
  EXPECT_EQ(driver.memory.get<aql::Signal>(kDst).value, 1);
  driver.memory.put<std::int64_t>(kGate + 8, 0);
  driver.run();
  EXPECT_EQ(driver.memory.get<aql::Signal>(kDst).value, 0);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), 201u);
}

TEST_P(ComputeGenerations, a_bell_rung_while_unmapped_is_heard) {
  GuestQueue q = driver.make_compute(kDoorbell);
  load(q);
  ASSERT_TRUE(driver.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
  // The address of the write pointer is not in the descriptors of gfx7.
  driver.mqd_word(q, driver.compute_layout().cp_hqd_pq_wptr_poll_addr_lo, 0);
  Words w;
  pm4::write_data(w, kDst, 6);
  driver.submit(q, w);
  load(q);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 6u);
}

TEST_P(ComputeGenerations, bits_of_the_driver_stay_as_they_are) {
  GuestQueue q = driver.make_compute(kDoorbell);
  const auto& at = driver.compute_layout();
  const std::size_t ours[] = {at.cp_hqd_pq_rptr,    at.cp_hqd_pq_wptr,         at.cp_hqd_pq_wptr_lo,
                              at.cp_hqd_pq_wptr_hi, at.cp_mqd_readindex_lo,    at.cp_mqd_readindex_hi,
                              at.cp_hqd_ib_rptr,    at.cp_hqd_ib_base_addr_lo, at.cp_hqd_ib_base_addr_hi,
                              at.ib_size(),         at.cp_hqd_wg_state_offset, at.cp_hqd_cntl_stack_offset};
  std::vector<std::uint32_t> before(at.dwords);
  for (std::size_t i = 0; i < at.dwords; ++i) {
    if (driver.mqd_word(q, i) == 0 && i != at.error() && i != at.aql_enable()) {
      const bool pointer = std::find(std::begin(ours), std::end(ours), i) != std::end(ours) ||
                           i == at.cp_hqd_pq_rptr_report_addr_hi || i == at.cp_hqd_pq_wptr_poll_addr_hi ||
                           i == at.cp_hqd_pq_base_hi;
      if (!pointer) driver.mqd_word(q, i, static_cast<std::uint32_t>(0x1000 + i));
    }
    before[i] = driver.mqd_word(q, i);
  }
  load(q);
  ASSERT_TRUE(driver.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
  for (std::size_t i = 0; i < at.dwords; ++i) {
    if (std::find(std::begin(ours), std::end(ours), i) != std::end(ours)) continue;
    EXPECT_EQ(driver.mqd_word(q, i), before[i]) << i;
  }
  EXPECT_EQ(driver.mqd_word(q, at.cp_hqd_ib_control), m::kIbMinAvailSize.put(3) | m::kIbExeDisable.put(1));
}

TEST_P(ComputeGenerations, an_error_is_for_good_and_reported_once) {
  for (const bool is_aql : {false, true}) {
    FakeDriver fresh(GetParam());
    GuestQueue q = is_aql ? fresh.make_aql(kDoorbell) : fresh.make_compute(kDoorbell);
    ASSERT_TRUE(fresh.engines->load_hqd(kSlot, q.mqd, 9).ok());
    if (is_aql) {
      aql::AgentDispatch dispatch;
      dispatch.header = aql::header(aql::kAgentDispatch);
      fresh.submit_aql(q, dispatch);
    } else {
      fresh.submit(q, Words{0xc0009902, 0});
    }
    fresh.run();
    EXPECT_EQ(fresh.interrupts.raised.size(), 1u);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(fresh.engines->unload_hqd(kSlot, UnloadMode::kSave).ok());
      fresh.replace_device();
      ASSERT_TRUE(fresh.engines->load_hqd(kSlot, q.mqd, 9).ok());
      Words w;
      pm4::write_data(w, kDst, 6);
      if (!is_aql) fresh.submit(q, w);
      fresh.run();
    }
    EXPECT_EQ(fresh.interrupts.raised.size(), 1u);
    EXPECT_EQ(fresh.memory.get<std::uint32_t>(kDst), 0u);
    const auto& at = fresh.compute_layout();
    EXPECT_NE(at.error_code.get(fresh.mqd_word(q, at.error())), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Gfx, ComputeGenerations, ::testing::Range(7u, 13u),
                         [](const auto& instance) { return std::to_string(instance.param); });

}  // namespace vasicd::cp_generations_test
