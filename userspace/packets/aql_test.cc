// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Golden bytes of AQL packets and of the signal layout.
#include "packets/aql.h"

#include <gtest/gtest.h>

namespace packets {
namespace {

TEST(Aql, header_bits_are_those_of_the_specification) {
  EXPECT_EQ(aql::header(aql::kBarrierAnd, true), 0x1503);
  EXPECT_EQ(aql::header(aql::kKernelDispatch, false, aql::kScopeAgent, aql::kScopeNone), 0x0202);
}

TEST(Aql, vendor_packet_carries_an_indirect_buffer) {
  const aql::Slot slot = aql::to_slot(aql::vendor_pm4_ib(0x1234'5678'9abc, 0x40, 0xaabb'ccdd'eeff));
  const aql::Slot golden = {0x00011500, 0xc0023f02, 0x56789abc, 0x1234, 0x00800040, 10, 0,          0,
                            0,          0,          0,          0,      0,          0,  0xccddeeff, 0xaabb};
  EXPECT_EQ(slot, golden);
}

TEST(Aql, a_barrier_on_a_value_has_a_signal_a_value_a_mask_and_a_condition) {
  aql::BarrierValue b;
  b.header = aql::header(aql::kVendorSpecific, true);
  b.signal = 0x1234'5678'9abc;
  b.value = -2;
  b.mask = 0xff;
  b.condition = aql::Condition::kGreaterEqual;
  b.completion_signal = 9;
  const aql::Slot golden = {0x00021500, 0, 0x56789abc, 0x1234, 0xfffffffe, 0xffffffff, 0xff, 0, 3, 0, 0, 0, 0, 0, 9, 0};
  EXPECT_EQ(aql::to_slot(b), golden);
  EXPECT_EQ(aql::kHeaderVendorFormat.get(golden[0]), aql::kVendorBarrierValue);
}

TEST(Aql, barrier_has_five_signals_and_a_completion) {
  aql::Barrier b;
  b.header = aql::header(aql::kBarrierOr);
  for (std::uint32_t i = 0; i < aql::kBarrierSignals; ++i) b.dep_signal[i] = i + 1;
  b.completion_signal = 9;
  const aql::Slot golden = {0x1405, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0, 0, 9, 0};
  EXPECT_EQ(aql::to_slot(b), golden);
  EXPECT_EQ(aql::from_slot<aql::Barrier>(golden).completion_signal, 9u);
}

}  // namespace
}  // namespace packets
