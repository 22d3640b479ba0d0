// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What each generation's driver must find in an entry. The masks here are those of kfd_int_process_v*.c, written out.
#include "vasicd/blocks/ih_encode.h"

#include <gtest/gtest.h>

namespace vasicd::ih_encode_test {

constexpr GpuAddr kVa = 0xffff'f123'4567'89ab;  // 48 bits of it count
constexpr FaultClient kCp{};

constexpr FaultClient sdma(unsigned instance) {
  return {.unit = FaultClient::Unit::kSdma, .instance = static_cast<std::uint8_t>(instance)};
}

constexpr FaultClient cp_of(unsigned xcc) { return {.xcc = static_cast<std::uint8_t>(xcc)}; }

vasic_info chip(unsigned gfx_level, std::uint32_t ih_format, std::uint32_t gc_ip, std::uint32_t sdma_ip,
                unsigned sdma_per_aid) {
  vasic_info info{};
  info.gfx_level = gfx_level;
  info.ih_format = ih_format;
  info.gc_ip = gc_ip;
  info.sdma_ip = sdma_ip;
  info.sdma_per_aid = sdma_per_aid;
  return info;
}

struct IhEncode : testing::Test {
  vasic_info gfx7 = chip(7, VASIC_IH_CIK, 0, 0, 2);
  vasic_info gfx8 = chip(8, VASIC_IH_CIK, 0, 0, 2);
  vasic_info gfx906 = chip(9, VASIC_IH_SOC15, VASIC_IP_VERSION(9, 4, 0), VASIC_IP_VERSION(4, 2, 0), 2);
  vasic_info gfx908 = chip(9, VASIC_IH_SOC15, VASIC_IP_VERSION(9, 4, 1), VASIC_IP_VERSION(4, 2, 2), 8);
  vasic_info gfx942 = chip(9, VASIC_IH_SOC15, VASIC_IP_VERSION(9, 4, 3), VASIC_IP_VERSION(4, 4, 2), 4);
  vasic_info gfx1010 = chip(10, VASIC_IH_SOC15, VASIC_IP_VERSION(10, 1, 10), VASIC_IP_VERSION(5, 0, 0), 2);
  vasic_info gfx1030 = chip(10, VASIC_IH_SOC15, VASIC_IP_VERSION(10, 3, 0), VASIC_IP_VERSION(5, 2, 0), 4);
  vasic_info gfx1100 = chip(11, VASIC_IH_SOC21, VASIC_IP_VERSION(11, 0, 0), VASIC_IP_VERSION(6, 0, 0), 2);
  vasic_info gfx1201 = chip(12, VASIC_IH_SOC21, VASIC_IP_VERSION(12, 0, 1), VASIC_IP_VERSION(7, 0, 1), 2);

  static packets::ih::Entry entry(const vasic_info& info, const Interrupt& interrupt) {
    return IhEncoder(info).entry(interrupt);
  }
  static packets::ih::Entry fault(const vasic_info& info, FaultKind kind, Access access, FaultClient client = kCp) {
    return IhEncoder(info).entry({.vmid = 8, .va = kVa, .access = access, .kind = kind}, client);
  }
};

TEST_F(IhEncode, an_end_of_pipe_comes_from_the_command_processor) {
  const Interrupt eop{.ring_id = 0x14, .vmid = 9, .data = {33}};
  for (const auto* info : {&gfx906, &gfx1010, &gfx1100, &gfx1201}) {
    const auto e = entry(*info, eop);
    EXPECT_EQ(e.client_id, 0x14);
    EXPECT_EQ(e.source_id, 181);
    EXPECT_EQ(e.ring_id, 0x14);
    EXPECT_EQ(e.vmid, 9);
    EXPECT_EQ(e.data[0], 33u);
  }
  EXPECT_EQ(entry(gfx7, eop).client_id, 0);
  EXPECT_EQ(entry(gfx7, eop).source_id, 181);
}

TEST_F(IhEncode, what_the_command_processor_refuses_has_the_same_sources_everywhere) {
  for (const auto* info : {&gfx7, &gfx8, &gfx906, &gfx942, &gfx1010, &gfx1100, &gfx1201}) {
    EXPECT_EQ(entry(*info, {.kind = InterruptKind::kCpPrivilegedRegister}).source_id, 184);
    EXPECT_EQ(entry(*info, {.kind = InterruptKind::kCpPrivilegedInstruction}).source_id, 185);
    const auto bad = entry(*info, {.kind = InterruptKind::kCpBadOpcode, .data = {0x3ff, 20}});
    EXPECT_EQ(bad.source_id, 183);
    EXPECT_EQ(bad.data[0] & 0x3ff, 0x3ffu);
    EXPECT_EQ(bad.data[0] >> 10, 20u);
    EXPECT_EQ(bad.data[1], 0u);
  }
}

TEST_F(IhEncode, sdma_traps_are_found_where_each_driver_looks) {
  const auto trap = [](unsigned instance, unsigned ring = 0) {
    return Interrupt{.kind = InterruptKind::kSdmaTrap,
                     .instance = static_cast<std::uint8_t>(instance),
                     .ring_id = static_cast<std::uint8_t>(ring)};
  };
  EXPECT_EQ(entry(gfx7, trap(1, 2)).ring_id, 0x9);
  EXPECT_EQ(entry(gfx7, trap(1)).source_id, 224);
  EXPECT_EQ(entry(gfx906, trap(1)).client_id, 0x09);
  EXPECT_EQ(entry(gfx906, trap(1)).source_id, 224);
  EXPECT_EQ(entry(gfx908, trap(3)).client_id, 0x04);
  EXPECT_EQ(entry(gfx908, trap(7)).client_id, 0x18);
  EXPECT_EQ(entry(gfx1030, trap(2)).client_id, 0x01);
  EXPECT_EQ(entry(gfx1030, trap(3)).client_id, 0x05);
  EXPECT_EQ(entry(gfx1100, trap(1, 3)).client_id, 0x0a);
  EXPECT_EQ(entry(gfx1100, trap(1, 3)).source_id, 49);
  EXPECT_EQ(entry(gfx1100, trap(1, 3)).ring_id, 0x13);
  EXPECT_EQ(entry(gfx1201, {.kind = InterruptKind::kSdmaPrivilegedRegister}).source_id, 50);
  EXPECT_EQ(entry(gfx906, {.kind = InterruptKind::kSdmaPrivilegedRegister}).source_id, 247);
}

TEST_F(IhEncode, gfx942_names_the_die) {
  EXPECT_EQ(entry(gfx942, {.xcc = 0}).node_id, 1);
  EXPECT_EQ(entry(gfx942, {.xcc = 5}).node_id, 10);
  const auto trap = entry(gfx942, {.kind = InterruptKind::kSdmaTrap, .instance = 6});
  EXPECT_EQ(trap.client_id, 0x01) << "third engine of its AID";
  EXPECT_EQ(trap.node_id, 4);
  EXPECT_EQ(fault(gfx942, FaultKind::kNotPresent, Access::kRead, sdma(9)).node_id, 8);
  EXPECT_EQ(fault(gfx942, FaultKind::kNotPresent, Access::kRead, cp_of(3)).node_id, 6);
  EXPECT_EQ(entry(gfx908, {.xcc = 1}).node_id, 0);
}

TEST_F(IhEncode, a_message_of_a_wave_arrives_as_sent) {
  const Interrupt message{.kind = InterruptKind::kSqMessage, .data = {0xabcdef}};
  const auto gfx9 = entry(gfx906, message);
  EXPECT_EQ(gfx9.client_id, 0x0a);
  EXPECT_EQ(gfx9.source_id, 239);
  EXPECT_EQ((gfx9.data[0] >> 26) & 3, 1u);
  EXPECT_EQ((gfx9.data[0] & 0xfff) | ((gfx9.data[0] >> 16) & 0xf000) | ((gfx9.data[1] << 16) & 0xff0000), 0xabcdefu);
  const auto gfx10 = entry(gfx1030, message);
  EXPECT_EQ((gfx10.data[1] >> 6) & 3, 1u);
  EXPECT_EQ(gfx10.data[0], 0x2bcdefu) << "23 bits";
  const auto gfx11 = entry(gfx1100, message);
  EXPECT_EQ(gfx11.client_id, 0x0a);
  EXPECT_EQ((gfx11.data[1] >> 6) & 3, 1u);
  EXPECT_EQ(gfx11.data[0] & 0xffffff, 0xabcdefu);
  EXPECT_EQ(entry(gfx8, message).data[0], (1u << 26) | 0xefu);
}

TEST_F(IhEncode, an_error_of_a_wave_says_its_type) {
  const Interrupt error{.kind = InterruptKind::kSqError,
                        .data = {static_cast<std::uint32_t>(SqError::kIllegalInstruction)}};
  EXPECT_EQ(entry(gfx906, error).data[0] >> 26, 2u);
  EXPECT_EQ((entry(gfx906, error).data[1] >> 4) & 0xf, 1u);
  EXPECT_EQ(entry(gfx1010, error).data[1] >> 6, 2u);
  EXPECT_EQ((entry(gfx1010, error).data[0] & 0x780000) >> 19, 1u);
  EXPECT_EQ(entry(gfx1201, error).data[1] >> 6, 2u);
  EXPECT_EQ((entry(gfx1201, error).data[0] & 0x1e00000) >> 21, 1u);
  EXPECT_EQ(entry(gfx7, error).data[0], 2u << 26);
}

// KFD_CTXID0_DOORBELL_ID and KFD_CTXID0_TRAP_CODE of each kfd_int_process_v*.c.
TEST_F(IhEncode, a_trap_handlers_message_has_the_privileged_bit_the_doorbell_and_the_codes) {
  const Interrupt trap{.kind = InterruptKind::kSqTrap, .data = {0x3a5, packets::ih::kTrapApertureViolation}};
  const auto gfx9 = entry(gfx906, trap);
  EXPECT_EQ(gfx9.source_id, 239);
  EXPECT_EQ((gfx9.data[0] >> 26) & 3, 1u);
  EXPECT_EQ((gfx9.data[0] >> 13) & 1, 1u);
  const std::uint32_t data =
      (gfx9.data[0] & 0xfff) | ((gfx9.data[0] >> 16) & 0xf000) | ((gfx9.data[1] << 16) & 0xff0000);
  EXPECT_EQ(data & 0x3ff, 0x3a5u);
  EXPECT_EQ(data >> 10, 0x20u);
  for (const auto* info : {&gfx1030, &gfx1100, &gfx1201}) {
    const auto e = entry(*info, trap);
    EXPECT_EQ((e.data[1] >> 6) & 3, 1u);
    EXPECT_EQ((e.data[0] >> (info == &gfx1030 ? 24 : 26)) & 1, 1u);
    EXPECT_EQ(e.data[0] & 0x3ff, 0x3a5u);
    EXPECT_EQ((e.data[0] & 0x7fc00) >> 10, 0x20u);
  }
  EXPECT_EQ(entry(gfx1030, {.kind = InterruptKind::kSqMessage, .data = {0xffffff}}).data[0] >> 24, 0u);
}

TEST_F(IhEncode, a_fault_carries_the_page_number_as_amdkfd_reads_it) {
  for (const auto* info : {&gfx906, &gfx942, &gfx1010, &gfx1100, &gfx1201}) {
    const auto e = fault(*info, FaultKind::kNotPresent, Access::kRead);
    EXPECT_EQ(e.source_id, 0);
    EXPECT_EQ(e.vmid, 8);
    EXPECT_EQ(e.data[0], 0x12345678u);
    EXPECT_EQ(e.data[1], 0xfu);
  }
}

TEST_F(IhEncode, the_ring_id_tells_absent_pages_from_forbidden_ones) {
  EXPECT_EQ(fault(gfx906, FaultKind::kNotPresent, Access::kRead, sdma(1)).ring_id, 0x09);
  EXPECT_EQ(fault(gfx906, FaultKind::kBadTable, Access::kRead, sdma(1)).ring_id, 0x09);
  EXPECT_EQ(fault(gfx1100, FaultKind::kNotReadable, Access::kRead).ring_id, 0x10);
  EXPECT_EQ(fault(gfx1100, FaultKind::kNotWritable, Access::kWrite).ring_id, 0x20);
}

TEST_F(IhEncode, a_write_fault_is_marked_and_is_not_a_retry_fault) {
  EXPECT_EQ(fault(gfx906, FaultKind::kNotPresent, Access::kWrite).data[1] & 0xf0, 0x20u);
  EXPECT_EQ(fault(gfx906, FaultKind::kNotPresent, Access::kRead).data[1] & 0xf0, 0x00u);
}

TEST_F(IhEncode, a_fault_that_is_retried_says_so) {
  const auto e = IhEncoder(gfx942).entry({.vmid = 8, .va = kVa, .access = Access::kWrite, .retry = true}, kCp);
  EXPECT_EQ(e.data[1] & 0xf0, 0xa0u);
}

TEST_F(IhEncode, a_fault_comes_from_the_hub_of_its_client) {
  const auto client_of = [](const vasic_info& info, FaultClient client) {
    return fault(info, FaultKind::kNotPresent, Access::kRead, client).client_id;
  };
  EXPECT_EQ(client_of(gfx906, kCp), 0x1b);
  EXPECT_EQ(client_of(gfx906, sdma(1)), 0x12);
  EXPECT_EQ(fault(gfx906, FaultKind::kNotPresent, Access::kRead, sdma(1)).vmid_type, 1);
  EXPECT_EQ(client_of(gfx908, sdma(4)), 0x12);
  EXPECT_EQ(client_of(gfx908, sdma(5)), 0x06) << "MMHUB1";
  EXPECT_EQ(client_of(gfx1030, sdma(1)), 0x1b) << "GFXHUB";
  EXPECT_EQ(client_of(gfx1100, kCp), 0x0a);
  EXPECT_EQ(client_of(gfx1201, sdma(1)), 0x0a);
}

TEST_F(IhEncode, faults_of_gfx7_and_gfx8_carry_the_registers) {
  const auto absent = fault(gfx7, FaultKind::kNotPresent, Access::kWrite);
  EXPECT_EQ(absent.client_id, 0);
  EXPECT_EQ(absent.source_id, 146);
  EXPECT_EQ(absent.data[0], 0x12345678u);
  EXPECT_EQ((absent.data[1] >> 25) & 0xf, 8u);
  EXPECT_EQ((absent.data[1] >> 24) & 1, 1u);
  EXPECT_NE(absent.data[1] & 0x7, 0u);
  const auto forbidden = fault(gfx8, FaultKind::kNotWritable, Access::kWrite);
  EXPECT_EQ(forbidden.source_id, 147);
  EXPECT_EQ(forbidden.data[1] & 0xff, 0x10u);
  EXPECT_EQ(fault(gfx8, FaultKind::kNotReadable, Access::kRead).data[1], 0x08u | 8u << 25);
}

}  // namespace vasicd::ih_encode_test
