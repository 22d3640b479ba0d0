// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Golden bytes of PM4 packets.
#include "packets/pm4.h"

#include <gtest/gtest.h>

#include "packets/atomic.h"

namespace packets {
namespace {

constexpr std::uint64_t kAddr = 0x0000'1234'5678'9ab8;

TEST(Pm4, header_counts_the_body_minus_one) {
  EXPECT_EQ(pm4::header(pm4::kWriteData, 5), 0xc0033702u);
  EXPECT_EQ(pm4::decode_header(0xc0033702u).dwords, 5u);
  EXPECT_EQ(pm4::decode_header(0xc0033702u).opcode, pm4::kWriteData);
}

TEST(Pm4, fillers_are_one_dword_long) {
  EXPECT_EQ(pm4::kNopOneDword, 0xffff1000u);
  EXPECT_EQ(pm4::decode_header(pm4::kNopOneDword).dwords, 1u);
  EXPECT_EQ(pm4::decode_header(pm4::kType2Filler).dwords, 1u);
  EXPECT_EQ(pm4::decode_header(0).dwords, 1u);
}

TEST(Pm4, nop_has_the_length_asked_for) {
  Words w;
  pm4::nop(w, 4);
  EXPECT_EQ(w, (Words{0xc0021002, 0, 0, 0}));
}

TEST(Pm4, write_data) {
  Words w;
  pm4::write_data(w, kAddr, 0xcafe);
  EXPECT_EQ(w, (Words{0xc0033702, 0x00100500, 0x56789ab8, 0x1234, 0xcafe}));
  const auto d = pm4::decode_write_data(w);
  ASSERT_TRUE(d.has_value());
  EXPECT_EQ(d->addr, kAddr);
  EXPECT_EQ(d->data.front(), 0xcafeu);
}

TEST(Pm4, release_mem) {
  Words w;
  pm4::release_mem(w, {.int_sel = pm4::ReleaseInt::kAfterWrite,
                       .data_sel = pm4::ReleaseData::k64,
                       .addr = kAddr,
                       .data = 0x1'0000'0002,
                       .int_ctxid = 7});
  EXPECT_EQ(w, (Words{0xc0064902, 0x514, 0x42000000, 0x56789ab8, 0x1234, 2, 1, 7}));
  EXPECT_EQ(pm4::decode_release_mem(w)->data, 0x1'0000'0002u);
}

TEST(Pm4, wait_reg_mem) {
  Words w;
  pm4::wait_reg_mem(w, {.function = Compare::kGreaterEqual, .addr = kAddr, .reference = 5, .mask = 0xff});
  EXPECT_EQ(w, (Words{0xc0053c02, 0x15, 0x56789ab8, 0x1234, 5, 0xff, 4}));
  EXPECT_EQ(pm4::decode_wait_reg_mem(w)->function, Compare::kGreaterEqual);
  w[1] = 7;
  EXPECT_FALSE(pm4::decode_wait_reg_mem(w).has_value());
}

TEST(Pm4, indirect_buffer) {
  Words w;
  pm4::indirect_buffer(w, kAddr, 0x40, true);
  EXPECT_EQ(w, (Words{0xc0023f02, 0x56789ab8, 0x1234, 0x00900040}));
  EXPECT_TRUE(pm4::decode_indirect_buffer(w)->chain);
}

TEST(Pm4, acquire_mem_is_seven_dwords) {
  Words w;
  pm4::acquire_mem(w);
  ASSERT_EQ(w.size(), 7u);
  EXPECT_EQ(w[0], 0xc0055802u);
}

TEST(Pm4, copy_data) {
  Words w;
  pm4::copy_data(w, {.src_sel = pm4::CopySrc::kImmediate, .wide = true, .src = 0x1'0000'0002, .dst = kAddr});
  EXPECT_EQ(w, (Words{0xc0044002, 0x00110505, 2, 1, 0x56789ab8, 0x1234}));
  EXPECT_EQ(pm4::decode_copy_data(w)->dst, kAddr);
}

TEST(Pm4, atomic_mem) {
  Words w;
  pm4::atomic_mem(w, {.code = atomic_code64(AtomicOp::kAdd), .addr = kAddr, .src = 3, .compare = 4});
  EXPECT_EQ(w, (Words{0xc0071e02, 0x2f, 0x56789ab8, 0x1234, 3, 0, 4, 0, 0}));
  EXPECT_EQ(pm4::decode_atomic_mem(w)->compare, 4u);
}

TEST(Pm4, dma_data) {
  Words w;
  pm4::dma_data(w, {.src_sel = pm4::DmaSrc::kData, .src = 9, .dst = kAddr, .bytes = 64});
  EXPECT_EQ(w, (Words{0xc0055002, 0x40000000, 9, 0, 0x56789ab8, 0x1234, 64}));
  EXPECT_EQ(pm4::decode_dma_data(w)->bytes, 64u);
}

TEST(Pm4, registers_are_relative_to_their_window) {
  Words w;
  const std::uint32_t value = 8;
  pm4::set_sh_reg(w, 0x2e07, WordView(&value, 1));
  pm4::set_uconfig_reg(w, 0xc040, WordView(&value, 1));
  EXPECT_EQ(w, (Words{0xc0017602, 0x207, 8, 0xc0017902, 0x40, 8}));
}

TEST(Pm4, dispatch_direct) {
  Words w;
  pm4::dispatch_direct(w, 1, 2, 3, 0x8001);
  EXPECT_EQ(w, (Words{0xc0031502, 1, 2, 3, 0x8001}));
}

TEST(Pm4, short_packets_decode_to_nothing) {
  const Words w(3, 0);
  EXPECT_FALSE(pm4::decode_write_data(w).has_value());
  EXPECT_FALSE(pm4::decode_release_mem(w).has_value());
  EXPECT_FALSE(pm4::decode_wait_reg_mem(w).has_value());
  EXPECT_FALSE(pm4::decode_indirect_buffer(w).has_value());
  EXPECT_FALSE(pm4::decode_copy_data(w).has_value());
  EXPECT_FALSE(pm4::decode_atomic_mem(w).has_value());
  EXPECT_FALSE(pm4::decode_dma_data(w).has_value());
}

}  // namespace
}  // namespace packets
