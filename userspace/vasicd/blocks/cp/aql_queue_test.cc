// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// AQL packets: barriers, signals, PM4 inside AQL, refusals, and what a doorbell means.
#include <gtest/gtest.h>

#include "packets/ih.h"
#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::aql_queue_test {

namespace aql = packets::aql;
namespace ih = packets::ih;
namespace pm4 = packets::pm4;
using packets::Words;

constexpr GpuAddr kDst = FakeDriver::kData + 0x400000;
constexpr GpuAddr kMailbox = FakeDriver::kData + 0x500000;

class Aql : public ::testing::Test {
 protected:
  Aql() {
    driver.load_hiq();
    q = driver.make_aql(0x404);
    driver.map({&q});
  }
  GpuAddr make_signal(std::int64_t value, std::uint32_t event_id = 0) {
    const GpuAddr at = FakeDriver::kData + 64 * signals_++;
    aql::Signal signal;
    signal.kind = aql::kSignalKindUser;
    signal.value = value;
    signal.event_mailbox_ptr = event_id != 0 ? kMailbox : 0;
    signal.event_id = event_id;
    driver.memory.put(at, signal);
    return at;
  }
  std::int64_t value_of(GpuAddr signal) { return driver.memory.get<aql::Signal>(signal).value; }
  static aql::Barrier barrier(aql::Type type, std::initializer_list<GpuAddr> deps, GpuAddr completion) {
    aql::Barrier b;
    b.header = aql::header(type, true);
    std::size_t i = 0;
    for (const GpuAddr dep : deps) b.dep_signal[i++] = dep;
    b.completion_signal = completion;
    return b;
  }
  template <typename Packet>
  void submit(const Packet& packet) {
    driver.submit_aql(q, packet);
    driver.run();
  }
  std::uint64_t read_index() { return driver.memory.get<std::uint64_t>(q.rptr_word); }

  FakeDriver driver;
  GuestQueue q;

 private:
  std::uint64_t signals_ = 0;
};

TEST_F(Aql, a_barrier_completes_its_signal_and_frees_its_slot) {
  const GpuAddr done = make_signal(1);
  submit(barrier(aql::kBarrierAnd, {}, done));
  EXPECT_EQ(value_of(done), 0);
  EXPECT_EQ(read_index(), 1u);
  EXPECT_EQ(driver.memory.get<std::uint16_t>(q.ring), aql::kInvalid);
  EXPECT_TRUE(driver.interrupts.raised.empty());
}

TEST_F(Aql, a_signal_with_a_mailbox_raises_its_event) {
  const GpuAddr done = make_signal(1, 33);
  submit(barrier(aql::kBarrierAnd, {}, done));
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kMailbox), 33u);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpEndOfPipe);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], 33u);
  EXPECT_EQ(driver.interrupts.raised[0].vmid, FakeDriver::kVmid);
}

TEST_F(Aql, barrier_and_waits_for_all) {
  const GpuAddr a = make_signal(1);
  const GpuAddr b = make_signal(1);
  const GpuAddr done = make_signal(1);
  submit(barrier(aql::kBarrierAnd, {a, b}, done));
  driver.memory.put<std::int64_t>(a + 8, 0);
  driver.run();
  EXPECT_EQ(value_of(done), 1);
  driver.memory.put<std::int64_t>(b + 8, 0);
  driver.run();
  EXPECT_EQ(value_of(done), 0);
}

TEST_F(Aql, barrier_or_waits_for_any) {
  const GpuAddr a = make_signal(1);
  const GpuAddr b = make_signal(1);
  const GpuAddr done = make_signal(1);
  submit(barrier(aql::kBarrierOr, {a, b}, done));
  EXPECT_EQ(value_of(done), 1);
  driver.memory.put<std::int64_t>(b + 8, 0);
  driver.run();
  EXPECT_EQ(value_of(done), 0);
}

TEST_F(Aql, packets_behind_a_waiting_barrier_wait_too) {
  const GpuAddr a = make_signal(1);
  const GpuAddr done = make_signal(1);
  submit(barrier(aql::kBarrierAnd, {a}, 0));
  submit(barrier(aql::kBarrierAnd, {}, done));
  EXPECT_EQ(value_of(done), 1);
  driver.memory.put<std::int64_t>(a + 8, 0);
  driver.run();
  EXPECT_EQ(value_of(done), 0);
}

TEST_F(Aql, pm4_inside_aql_completes_after_its_buffer) {
  const GpuAddr gate = make_signal(0);
  Words ib;
  pm4::write_data(ib, kDst, 7);
  pm4::wait_reg_mem(ib, {.addr = gate + 8, .reference = 1});
  const GpuAddr done = make_signal(1);
  submit(aql::vendor_pm4_ib(driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), done));
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 7u);
  EXPECT_EQ(value_of(done), 1);
  EXPECT_EQ(read_index(), 0u);
  driver.memory.put<std::int64_t>(gate + 8, 1);
  driver.run();
  EXPECT_EQ(value_of(done), 0);
  EXPECT_EQ(read_index(), 1u);
}

class BarrierValue : public Aql {
 protected:
  static aql::BarrierValue barrier_value(GpuAddr signal, aql::Condition condition, std::int64_t value,
                                         GpuAddr completion, std::int64_t mask = -1) {
    aql::BarrierValue b;
    b.header = aql::header(aql::kVendorSpecific, true);
    b.signal = signal;
    b.condition = condition;
    b.value = value;
    b.mask = mask;
    b.completion_signal = completion;
    return b;
  }
  void store(GpuAddr signal, std::int64_t value) {
    driver.memory.put<std::int64_t>(signal + offsetof(aql::Signal, value), value);
    driver.run();
  }
};

TEST_F(BarrierValue, waits_until_its_condition_holds) {
  struct Case {
    aql::Condition condition;
    std::int64_t reference;
    std::initializer_list<std::int64_t> closed;
    std::int64_t open;
  };
  const Case cases[] = {
      {aql::Condition::kEqual, 5, {4, 6, -5}, 5},
      {aql::Condition::kNotEqual, 5, {5}, 4},
      {aql::Condition::kLess, -3, {0, 7, -3}, -4},
      {aql::Condition::kGreaterEqual, -3, {-4, INT64_MIN}, -3},
  };
  std::uint64_t index = 0;
  for (const Case& each : cases) {
    const GpuAddr gate = make_signal(*each.closed.begin());
    const GpuAddr done = make_signal(1, 33);
    submit(barrier_value(gate, each.condition, each.reference, done));
    for (const std::int64_t value : each.closed) {
      store(gate, value);
      EXPECT_EQ(value_of(done), 1) << "at " << value;
    }
    store(gate, each.open);
    EXPECT_EQ(value_of(done), 0) << "at " << each.open;
    EXPECT_EQ(read_index(), ++index);
  }
  EXPECT_EQ(driver.interrupts.raised.size(), std::size(cases));
}

TEST_F(BarrierValue, looks_at_the_bits_of_its_mask_only) {
  const GpuAddr gate = make_signal(0x0f01);
  const GpuAddr done = make_signal(1);
  submit(barrier_value(gate, aql::Condition::kEqual, 0x02, done, 0xff));
  EXPECT_EQ(value_of(done), 1);
  store(gate, 0x0e02);
  EXPECT_EQ(value_of(done), 0);
}

TEST_F(BarrierValue, without_a_signal_waits_for_nothing) {
  const GpuAddr done = make_signal(1);
  submit(barrier_value(0, aql::Condition::kEqual, 77, done));
  EXPECT_EQ(value_of(done), 0);
}

TEST_F(BarrierValue, with_an_unknown_condition_is_a_bad_packet) {
  const GpuAddr done = make_signal(1);
  submit(barrier_value(make_signal(0), static_cast<aql::Condition>(4), 0, done));
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpBadOpcode);
  EXPECT_EQ(driver.interrupts.raised[0].data[1], ih::kEcodeVendorUnsupported);
  EXPECT_EQ(value_of(done), 1);
}

TEST_F(Aql, a_vendor_packet_of_an_unknown_format_is_a_bad_packet) {
  aql::BarrierValue packet;
  packet.header = aql::header(aql::kVendorSpecific, true);
  packet.format = aql::kVendorBarrierValue + 1;
  submit(packet);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpBadOpcode);
  EXPECT_EQ(read_index(), 0u);
}

TEST_F(Aql, a_kernel_dispatch_stops_the_queue_where_no_waves_are_executed) {
  driver.info.gc_ip = VASIC_IP_VERSION(9u, 1u, 0u);
  driver.replace_device();
  driver.load_hiq();
  driver.map({&q});
  aql::KernelDispatch dispatch;
  dispatch.header = aql::header(aql::kKernelDispatch);
  submit(dispatch);
  const GpuAddr done = make_signal(1);
  submit(barrier(aql::kBarrierAnd, {}, done));
  ASSERT_EQ(driver.interrupts.raised.size(), 2u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSqError);
  EXPECT_EQ(driver.interrupts.raised[1].kind, InterruptKind::kSqTrap);
  EXPECT_EQ(value_of(done), 1);
}

TEST_F(Aql, agent_dispatches_and_reserved_types_are_bad_packets) {
  aql::AgentDispatch dispatch;
  dispatch.header = aql::header(aql::kAgentDispatch);
  submit(dispatch);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpBadOpcode);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], 0x404u / 2);
  EXPECT_EQ(driver.interrupts.raised[0].data[1], ih::kEcodePacketUnsupported);
}

TEST_F(Aql, an_invalid_packet_holds_the_queue_until_its_header_is_written) {
  const GpuAddr done = make_signal(1);
  aql::Barrier b = barrier(aql::kBarrierAnd, {}, done);
  b.header = aql::kInvalid;
  submit(b);
  EXPECT_EQ(value_of(done), 1);
  driver.memory.put<std::uint16_t>(q.ring, aql::header(aql::kBarrierAnd));
  driver.run();
  EXPECT_EQ(value_of(done), 0);
}

TEST_F(Aql, bells_may_ring_in_the_wrong_order) {
  const GpuAddr done = make_signal(2);
  driver.submit_aql(q, barrier(aql::kBarrierAnd, {}, done));
  driver.submit_aql(q, barrier(aql::kBarrierAnd, {}, done));
  driver.run();
  driver.doorbells.rung[q.doorbell] = 0;
  driver.run();
  EXPECT_EQ(value_of(done), 0);
  EXPECT_EQ(read_index(), 2u);
}

TEST_F(Aql, a_bell_that_rings_with_a_count_runs_no_stale_slot) {
  driver.memory.put<std::uint16_t>(q.ring + 64, 0);  // never written: zeros are a vendor packet's type
  const GpuAddr done = make_signal(1);
  driver.submit_aql(q, barrier(aql::kBarrierAnd, {}, done));
  driver.doorbells.rung[q.doorbell] = q.wptr;
  driver.run();
  EXPECT_EQ(value_of(done), 0);
  EXPECT_TRUE(driver.interrupts.raised.empty());
}

TEST_F(Aql, indices_never_wrap_though_the_ring_does) {
  const GpuAddr done = make_signal(500);
  for (int i = 0; i < 500; ++i) submit(barrier(aql::kBarrierAnd, {}, done));
  EXPECT_EQ(value_of(done), 0);
  EXPECT_EQ(read_index(), 500u);
}

// As ROCr lays out its queues: the read index is a member of a larger object.
class RuntimeQueue : public Aql {
 protected:
  void describe(std::uint32_t properties, GpuAddr inactive) {
    driver.memory.put<std::uint32_t>(q.rptr_word + aql::kQueueBaseOffset, aql::kQueueBaseOffsetValue);
    driver.memory.put<std::uint32_t>(q.rptr_word + aql::kQueueProperties, properties);
    // The driver's write index lies where the signal would: only its handle matters to the queue.
    driver.memory.put<std::uint64_t>(q.rptr_word + aql::kQueueInactiveSignal, inactive);
  }
};

TEST_F(RuntimeQueue, profiling_stamps_completion_signals) {
  const GpuAddr done = make_signal(2);
  describe(0, 0);
  submit(barrier(aql::kBarrierAnd, {}, done));
  EXPECT_EQ(driver.memory.get<aql::Signal>(done).end_ts, 0u);
  describe(aql::kQueueProfiling.put(1), 0);
  const GpuAddr gate = make_signal(1);
  driver.clock.now = 5'000'000;
  submit(barrier(aql::kBarrierAnd, {gate}, done));
  driver.clock.now = 7'000'000;
  driver.memory.put<std::int64_t>(gate + 8, 0);
  driver.run();
  EXPECT_EQ(value_of(done), 0);
  EXPECT_EQ(driver.memory.get<aql::Signal>(done).end_ts, driver.context().ticks());
  EXPECT_NE(driver.memory.get<aql::Signal>(done).start_ts, 0u);
}

TEST_F(RuntimeQueue, the_inactive_signal_says_why_the_queue_stopped) {
  const GpuAddr inactive = make_signal(0, 44);
  aql::AgentDispatch dispatch;
  dispatch.header = aql::header(aql::kAgentDispatch);
  driver.submit_aql(q, dispatch);
  describe(0, inactive);
  driver.run();
  EXPECT_EQ(value_of(inactive), static_cast<std::int64_t>(aql::kInactivePacketFormat));
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kMailbox), 44u);
  ASSERT_EQ(driver.interrupts.raised.size(), 2u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpEndOfPipe);
  EXPECT_EQ(driver.interrupts.raised[1].kind, InterruptKind::kCpBadOpcode);
}

}  // namespace vasicd::aql_queue_test
