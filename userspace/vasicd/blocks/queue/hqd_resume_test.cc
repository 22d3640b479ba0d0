// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queues survive being unmapped anywhere: the same work gives the same memory whether it runs through, is preempted
// after every step, or moves to another device with nothing but guest memory.
#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_rig.h"

namespace vasicd::hqd_resume_test {

namespace aql = packets::aql;
namespace m = packets::mqd;
namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kGate = FakeRig::kData;
constexpr GpuAddr kDst = FakeRig::kData + 0x400000;

void preempt_and_remap(FakeRig& rig, GuestQueue& q) {
  rig.unmap_all();
  rig.map({&q});
}
void move_to_another_device(FakeRig& rig, GuestQueue& q) {
  rig.unmap_all();
  rig.replace_device();
  rig.load_hiq();
  rig.map({&q});
}

TEST(Resume, pm4_waiting_inside_an_indirect_buffer) {
  for (auto* interrupt : {preempt_and_remap, move_to_another_device}) {
    FakeRig rig;
    rig.load_hiq();
    GuestQueue q = rig.make_compute(0x404);
    rig.map({&q});
    Words ib;
    const std::uint32_t one = 1;
    pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = one});
    pm4::wait_reg_mem(ib, {.addr = kGate, .reference = 5});
    pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = 0x100});
    Words w;
    pm4::indirect_buffer(w, rig.put_words(ib), static_cast<std::uint32_t>(ib.size()));
    pm4::atomic_mem(w, {.code = 0x2f, .addr = kDst, .src = 0x10000});
    rig.submit(q, w);
    rig.run();
    interrupt(rig, q);
    rig.run();
    interrupt(rig, q);
    EXPECT_EQ(rig.memory.get<std::uint64_t>(kDst), 1u);
    rig.memory.put<std::uint32_t>(kGate, 5);
    rig.run();
    EXPECT_EQ(rig.memory.get<std::uint64_t>(kDst), 0x10101u);
    EXPECT_EQ(rig.memory.get<std::uint32_t>(q.rptr_word), q.wptr);
  }
}

TEST(Resume, sdma_waiting_inside_an_indirect_buffer) {
  for (auto* interrupt : {preempt_and_remap, move_to_another_device}) {
    FakeRig rig;
    rig.load_hiq();
    GuestQueue q = rig.make_sdma(0x404);
    rig.map({&q});
    Words ib;
    sdma::atomic(ib, {.code = 0x2f, .addr = kDst, .src = 1});
    sdma::poll_regmem(ib, {.addr = kGate, .reference = 5});
    sdma::atomic(ib, {.code = 0x2f, .addr = kDst, .src = 0x100});
    Words w;
    sdma::indirect(w, rig.put_words(ib), static_cast<std::uint32_t>(ib.size()));
    sdma::atomic(w, {.code = 0x2f, .addr = kDst, .src = 0x10000});
    rig.submit(q, w);
    rig.run();
    interrupt(rig, q);
    rig.run();
    interrupt(rig, q);
    EXPECT_EQ(rig.memory.get<std::uint64_t>(kDst), 1u);
    rig.memory.put<std::uint32_t>(kGate, 5);
    rig.run();
    EXPECT_EQ(rig.memory.get<std::uint64_t>(kDst), 0x10101u);
    EXPECT_EQ(rig.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  }
}

TEST(Resume, aql_waiting_in_a_barrier_behind_many_laps) {
  for (auto* interrupt : {preempt_and_remap, move_to_another_device}) {
    FakeRig rig;
    rig.load_hiq();
    GuestQueue q = rig.make_aql(0x404);
    rig.map({&q});
    aql::Signal done;
    done.value = 201;
    rig.memory.put(kDst, done);
    aql::Barrier b;
    b.header = aql::header(aql::kBarrierAnd);
    b.completion_signal = kDst;
    for (int i = 0; i < 200; ++i) {
      rig.submit_aql(q, b);
      rig.run();
    }
    rig.memory.put<std::int64_t>(kGate + 8, 1);
    b.dep_signal[0] = kGate;
    rig.submit_aql(q, b);
    rig.run();
    interrupt(rig, q);
    rig.run();
    EXPECT_EQ(rig.memory.get<aql::Signal>(kDst).value, 1);
    rig.memory.put<std::int64_t>(kGate + 8, 0);
    rig.run();
    EXPECT_EQ(rig.memory.get<aql::Signal>(kDst).value, 0);
    EXPECT_EQ(rig.memory.get<std::uint64_t>(q.rptr_word), 201u);
  }
}

TEST(Resume, aql_finds_its_index_without_the_saved_one) {
  FakeRig rig;
  rig.load_hiq();
  GuestQueue q = rig.make_aql(0x404);
  rig.map({&q});
  aql::Barrier b;
  b.header = aql::header(aql::kBarrierAnd);
  for (int i = 0; i < 100; ++i) {
    rig.submit_aql(q, b);
    rig.run();
  }
  rig.unmap_all();
  rig.mqd_word(q, rig.compute_layout().cp_mqd_readindex_lo, 0);
  rig.map({&q});
  rig.submit_aql(q, b);
  rig.run();
  EXPECT_EQ(rig.memory.get<std::uint64_t>(q.rptr_word), 101u);
}

TEST(Resume, skipped_dwords_stay_skipped) {
  FakeRig rig;
  rig.load_hiq();
  GuestQueue q = rig.make_sdma(0x404);
  rig.map({&q});
  Words guarded;
  sdma::fence(guarded, kDst, 1);
  Words w;
  sdma::cond_exe(w, kGate, 1, static_cast<std::uint32_t>(guarded.size()));
  rig.submit(q, w);
  rig.run();
  rig.memory.put<std::uint32_t>(kGate, 1);
  move_to_another_device(rig, q);
  sdma::fence(guarded, kDst + 4, 2);
  rig.submit(q, guarded);
  rig.run();
  EXPECT_EQ(rig.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
}

TEST(Resume, a_copy_is_finished_before_the_queue_is_unmapped) {
  FakeRig rig;
  rig.load_hiq();
  GuestQueue q = rig.make_sdma(0x404);
  rig.map({&q});
  rig.memory.put<std::uint32_t>(kGate + 0x2ffffc, 0x1234);
  Words w;
  sdma::copy_linear(w, kDst, kGate, 2u << 20);
  sdma::copy_linear(w, kDst, kGate, 3u << 20);
  rig.submit(q, w);
  rig.engines->step();
  rig.unmap_all();
  EXPECT_EQ(rig.memory.get<std::uint32_t>(kDst + 0x2ffffc), 0x1234u);
  EXPECT_EQ(rig.mqd_word(q, rig.sdma_layout().rb_rptr), 2 * sdma::kCopyLinearDwords * 4);
}

TEST(Resume, a_packet_queued_while_unmapped_runs_after_mapping) {
  FakeRig rig;
  rig.load_hiq();
  GuestQueue q = rig.make_compute(0x404);
  rig.map({&q});
  rig.unmap_all();
  Words w;
  pm4::write_data(w, kDst, 6);
  rig.submit(q, w);
  rig.run();
  EXPECT_EQ(rig.memory.get<std::uint32_t>(kDst), 0u);
  rig.map({&q});
  rig.run();
  EXPECT_EQ(rig.memory.get<std::uint32_t>(kDst), 6u);
}

TEST(Resume, unmapping_reports_an_empty_wave_area) {
  FakeRig rig;
  rig.load_hiq();
  GuestQueue q = rig.make_compute(0x404);
  rig.map({&q});
  rig.unmap_all();
  EXPECT_EQ(rig.mqd_word(q, rig.compute_layout().cp_hqd_cntl_stack_offset), 0x2000u);
  EXPECT_EQ(rig.mqd_word(q, rig.compute_layout().cp_hqd_wg_state_offset), 0x2000u);
  EXPECT_EQ(rig.mqd_word(q, rig.compute_layout().cp_hqd_ib_control),
            m::kIbMinAvailSize.put(3) | m::kIbExeDisable.put(1));
  EXPECT_EQ(rig.mqd_word(q, rig.compute_layout().queue_doorbell_id0), 0u);
}

TEST(Resume, preemption_after_every_step_changes_nothing) {
  std::vector<std::uint64_t> results;
  for (const bool preempt : {false, true}) {
    FakeRig rig;
    rig.load_hiq();
    GuestQueue q = rig.make_compute(0x404, 256);
    rig.map({&q});
    for (std::uint32_t i = 0; i < 100; ++i) {
      Words ib;
      for (std::uint32_t j = 0; j < 70; ++j) {
        pm4::atomic_mem(ib, {.code = 0x2f, .addr = kDst, .src = i + j});
        pm4::atomic_mem(ib, {.code = 0x37, .addr = kDst, .src = 0x5a5a5a});
      }
      Words w;
      pm4::indirect_buffer(w, FakeRig::kData + 0x100000, static_cast<std::uint32_t>(ib.size()));
      for (std::size_t k = 0; k < ib.size(); ++k) rig.memory.put(FakeRig::kData + 0x100000 + k * 4, ib[k]);
      rig.submit(q, w);
      while (rig.engines->step()) {
        if (preempt) preempt_and_remap(rig, q);
        if (rig.memory.get<std::uint32_t>(q.rptr_word) == q.wptr % q.ring_dwords) break;
      }
    }
    results.push_back(rig.memory.get<std::uint64_t>(kDst));
  }
  EXPECT_NE(results[0], 0u);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace vasicd::hqd_resume_test
