// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Golden bytes of the scheduler packets.
#include "packets/pm4_hws.h"

#include <gtest/gtest.h>

namespace packets {
namespace {

using pm4::HwsFormat;

TEST(Pm4Hws, set_resources) {
  Words w;
  pm4::set_resources(w, {.vmid_mask = 0xff00, .queue_mask = 0x1'0000'0002});
  EXPECT_EQ(w, (Words{0xc006a002, 0x2000ff00, 2, 1, 0, 0, 0, 0}));
  EXPECT_EQ(pm4::decode_set_resources(w)->vmid_mask, 0xff00u);
}

TEST(Pm4Hws, run_list) {
  Words w;
  pm4::run_list(w, {.ib = 0x12'3456'7890, .dwords = 23, .chain = true, .processes = 2});
  EXPECT_EQ(w, (Words{0xc002a502, 0x34567890, 0x12, 0x02d00017}));
  EXPECT_TRUE(pm4::decode_run_list(w)->chain);
}

TEST(Pm4Hws, map_process) {
  Words w;
  pm4::map_process(w, {.pasid = 0x8001, .page_directory = 0x1'2345'6001, .queues = 3});
  EXPECT_EQ(w, (Words{0xc00ea102, 0x14008001, 0x23456001, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00c00080, 0, 0}));
  EXPECT_EQ(pm4::decode_map_process(w)->page_directory, 0x1'2345'6001u);
  EXPECT_EQ(pm4::decode_map_process(w)->queues, 3u);
}

TEST(Pm4Hws, map_queues) {
  Words w;
  pm4::map_queues(
      w, {.engine = pm4::QueueEngine::kSdma1, .doorbell = 0x802, .mqd = 0xf'0000'1000, .wptr_addr = 0x7'0000'0008});
  EXPECT_EQ(w, (Words{0xc005a202, 0x2c000010, 0x2008, 0x1000, 0xf, 8, 7}));
  EXPECT_EQ(pm4::decode_map_queues(w)->doorbell, 0x802u);
  EXPECT_EQ(pm4::decode_map_queues(w)->engine, pm4::QueueEngine::kSdma1);
}

TEST(Pm4Hws, unmap_queues) {
  Words w;
  pm4::unmap_queues(w, {.action = pm4::UnmapAction::kReset, .select = pm4::UnmapSelect::kPasid, .pasid = 0x8001});
  EXPECT_EQ(w, (Words{0xc004a302, 0x11, 0x8001, 0, 0, 0}));
  EXPECT_EQ(pm4::decode_unmap_queues(w)->pasid, 0x8001u);
}

TEST(Pm4Hws, query_status) {
  Words w;
  pm4::query_status(w, {.addr = 0x1'0000'0010, .data = 0x2'0000'0003});
  EXPECT_EQ(w, (Words{0xc005a402, 0x80000000, 0, 0x10, 1, 3, 2}));
  EXPECT_EQ(pm4::decode_query_status(w)->data, 0x2'0000'0003u);
}

TEST(Pm4Hws, set_resources_says_how_long_a_queue_may_take_to_stop) {
  Words w;
  pm4::set_resources(w, {.vmid_mask = 0xff00, .unmap_latency = 40, .gws_mask = ~std::uint64_t{0}});
  EXPECT_EQ(w, (Words{0xc006a002, 0x2028ff00, 0, 0, 0xffffffff, 0xffffffff, 0, 0}));
  EXPECT_EQ(pm4::decode_set_resources(w)->unmap_latency, 40u);
}

TEST(Pm4Hws, chips_use_the_format_of_their_packet_manager) {
  constexpr auto gc = [](unsigned major, unsigned minor, unsigned rev) { return major << 24 | minor << 16 | rev << 8; };
  EXPECT_EQ(pm4::hws_format(7, gc(7, 3, 0)), HwsFormat::kVi);
  EXPECT_EQ(pm4::hws_format(8, gc(8, 0, 0)), HwsFormat::kVi);
  EXPECT_EQ(pm4::hws_format(9, gc(9, 4, 1)), HwsFormat::kV9);
  EXPECT_EQ(pm4::hws_format(9, gc(9, 4, 2)), HwsFormat::kAldebaran);
  EXPECT_EQ(pm4::hws_format(9, gc(9, 4, 3)), HwsFormat::kAldebaran);
  EXPECT_EQ(pm4::hws_format(10, gc(10, 3, 0)), HwsFormat::kV9);
}

TEST(Pm4Hws, vi_map_process_carries_a_page_number) {
  Words w;
  pm4::map_process(w, {.pasid = 0x8001, .page_directory = 0xf4'0012'3000, .queues = 3, .num_gws = 64}, HwsFormat::kVi);
  EXPECT_EQ(w, (Words{0xc00ea102, 0x14008001, 0x0f400123, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00c00000, 0, 0}));
  EXPECT_EQ(pm4::decode_map_process(w, HwsFormat::kVi)->page_directory, 0xf4'0012'3000u);
}

TEST(Pm4Hws, aldebaran_map_process_is_longer) {
  Words w;
  pm4::map_process(w,
                   {.pasid = 1,
                    .quantum = 2,
                    .page_directory = 0x1000,
                    .queues = 1,
                    .num_gws = 64,
                    .sh_mem_config = 5,
                    .sh_mem_bases = 6,
                    .tba = 0x7f01'2345'6700,
                    .tma = 0x7f01'2345'7700},
                   HwsFormat::kAldebaran);
  EXPECT_EQ(w, (Words{0xc013a102, 0x04000001, 0x1000,     0, 6, 5, 0x01234567, 0x7f, 0x01234577, 0x7f, 0,
                      0,          0,          0x004000c0, 0, 0, 0, 0,          0,    0,          0}));
  const auto p = pm4::decode_map_process(w, HwsFormat::kAldebaran);
  EXPECT_EQ(p->tba, 0x7f01'2345'6700u);
  EXPECT_EQ(p->tma, 0x7f01'2345'7700u);
  EXPECT_EQ(p->num_gws, 64u);
  EXPECT_EQ(p->quantum, 2u);
  EXPECT_FALSE(pm4::decode_map_process(std::span(w).first(16), HwsFormat::kAldebaran).has_value());
}

TEST(Pm4Hws, trap_enable_of_gfx10_is_not_part_of_the_address) {
  Words w;
  pm4::map_process(w, {.tba = 0x7f01'2345'6700});
  w[7] |= 0x80000000;
  EXPECT_EQ(pm4::decode_map_process(w)->tba, 0x7f01'2345'6700u);
}

TEST(Pm4Hws, map_queues_names_engines_in_two_ways) {
  const auto engine = [](std::uint32_t extended, unsigned number) {
    return pm4::MapQueues{.engine = static_cast<pm4::QueueEngine>(number), .extended_engine = extended}.sdma_engine();
  };
  EXPECT_EQ(engine(pm4::kExtendedLegacy, 0), std::nullopt);
  EXPECT_EQ(engine(pm4::kExtendedLegacy, 2), 0u);
  EXPECT_EQ(engine(pm4::kExtendedLegacy, 3), 1u);
  EXPECT_EQ(engine(pm4::kExtendedLegacy, 4), std::nullopt);
  EXPECT_EQ(engine(pm4::kExtendedSdma0To7, 0), 0u);
  EXPECT_EQ(engine(pm4::kExtendedSdma0To7, 7), 7u);
  EXPECT_EQ(engine(pm4::kExtendedSdma8To15, 1), 9u);
}

TEST(Pm4Hws, map_queues_of_vi_knows_neither_extended_engines_nor_gws) {
  const pm4::MapQueues p{.engine = pm4::QueueEngine::kSdma0,
                         .extended_engine = pm4::kExtendedSdma8To15,
                         .doorbell = 0x3ff'ffff,
                         .gws = true};
  Words vi;
  pm4::map_queues(vi, p, HwsFormat::kVi);
  EXPECT_EQ(vi, (Words{0xc005a202, 0x28000010, 0x007ffffc, 0, 0, 0, 0}));
  EXPECT_EQ(pm4::decode_map_queues(vi, HwsFormat::kVi)->sdma_engine(), 0u);
  Words v9;
  pm4::map_queues(v9, p);
  EXPECT_EQ(v9, (Words{0xc005a202, 0x28001018, 0x0ffffffc, 0, 0, 0, 0}));
  EXPECT_TRUE(pm4::decode_map_queues(v9)->gws);
  EXPECT_EQ(pm4::decode_map_queues(v9)->sdma_engine(), 10u);
}

TEST(Pm4Hws, unmap_queues_by_doorbell) {
  const pm4::UnmapQueues p{.action = pm4::UnmapAction::kDisableProcess,
                           .select = pm4::UnmapSelect::kDoorbells,
                           .num_doorbells = 2,
                           .doorbells = {0x800, 0x802},
                           .extended_engine = pm4::kExtendedSdma0To7};
  Words w;
  pm4::unmap_queues(w, p);
  EXPECT_EQ(w, (Words{0xc004a302, 0x40000006, 0x2000, 0x2008, 0, 0}));
  EXPECT_EQ(pm4::decode_unmap_queues(w)->doorbells[1], 0x802u);
  EXPECT_EQ(pm4::decode_unmap_queues(w)->extended_engine, pm4::kExtendedSdma0To7);
}

TEST(Pm4Hws, vi_run_list_addresses_have_48_bits) {
  Words w;
  pm4::run_list(w, {.ib = 0x12'3456'7890, .dwords = 23, .chain = true}, HwsFormat::kVi);
  EXPECT_EQ(w[3], 0x00900017u);
  w[2] |= 0xffff0000;
  EXPECT_EQ(pm4::decode_run_list(w, HwsFormat::kVi)->ib, 0x12'3456'7890u);
}

}  // namespace
}  // namespace packets
