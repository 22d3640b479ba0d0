// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Golden bytes of the interrupt ring format.
#include "packets/ih.h"

#include <gtest/gtest.h>

namespace packets {
namespace {

TEST(Ih, sdma_engines_have_the_client_ids_of_soc15) {
  EXPECT_EQ(ih::kSdmaClients[0], 0x08);
  EXPECT_EQ(ih::kSdmaClients[1], 0x09);
  EXPECT_EQ(ih::kSdmaClients[2], 0x01);
  EXPECT_EQ(ih::kSdmaClients[5], 0x11);
  EXPECT_EQ(ih::kSdmaClients[7], 0x18);
}

TEST(Ih, entry_has_its_fields_where_the_driver_reads_them) {
  ih::Entry e;
  e.client_id = ih::kClientGrbmCp;
  e.source_id = ih::kSourceCpEndOfPipe;
  e.ring_id = 0x12;
  e.vmid = 9;
  e.vmid_type = 1;
  e.timestamp = 0x1234'5678'9abc;
  e.pasid = 0x8001;
  e.node_id = 3;
  e.data = {1, 2, 3, 4};
  const std::array<std::uint32_t, 8> golden = {0x8912b514, 0x56789abc, 0x1234, 0x00038001, 1, 2, 3, 4};
  EXPECT_EQ(ih::encode(e), golden);
}

TEST(Ih, decode_inverts_encode) {
  const std::array<std::uint32_t, 8> golden = {0x8912b514, 0x56789abc, 0x1234, 0x00038001, 1, 2, 3, 4};
  EXPECT_EQ(ih::encode(ih::decode(golden)), golden);
}

TEST(Ih, a_short_entry_has_its_fields_where_cik_reads_them) {
  ih::Entry e;
  e.source_id = ih::kSourcePageInvalidCik;
  e.ring_id = 5;
  e.vmid = 9;
  e.pasid = 0x8001;
  e.data = {0x1234567, 0x12000004, 0, 0};
  const std::array<std::uint32_t, 4> golden = {146, 0x1234567, 0x80010905, 0x12000004};
  EXPECT_EQ(ih::encode_cik(e), golden);
  EXPECT_EQ(ih::encode_cik(ih::decode_cik(golden)), golden);
}

TEST(Ih, nodes_of_gc_9_4_3_are_numbered_as_the_driver_maps_them) {
  EXPECT_EQ(ih::xcc_node_id(0), 1);
  EXPECT_EQ(ih::xcc_node_id(1), 2);
  EXPECT_EQ(ih::xcc_node_id(2), 5);
  EXPECT_EQ(ih::xcc_node_id(5), 10);
  EXPECT_EQ(ih::aid_node_id(2), 8);
}

TEST(Ih, bad_opcode_context_names_doorbell_and_code) { EXPECT_EQ(ih::bad_opcode_context(0x3ff, 20), 0x53ffu); }

TEST(Ih, eop_ring_id_names_pipe_engine_and_queue) { EXPECT_EQ(ih::eop_ring_id(1, 2, 3), 0x36); }

}  // namespace
}  // namespace packets
