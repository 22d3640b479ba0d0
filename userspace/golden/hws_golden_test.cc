// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Packets of the HIQ, in the three formats of amdkfd: our encoders against the kernel's structs.
#include <gtest/gtest.h>

#include "golden/facts.h"
#include "packets/pm4_hws.h"

namespace {

namespace pm4 = packets::pm4;
using golden::value;
using packets::Words;
using pm4::HwsFormat;

constexpr std::uint64_t kAddr = 0x0000123456789000;

// One packet, and the struct that lays it out.
struct Packet {
  explicit Packet(std::string name) : structure(std::move(name)) {}
  std::uint32_t operator[](const std::string& member) const {
    return golden::get(words, golden::member(structure + "." + member));
  }
  [[nodiscard]] std::uint64_t wide(const std::string& lo, const std::string& hi) const {
    return packets::join((*this)[lo], (*this)[hi]);
  }
  void expect_header(const char* opcode) const {
    EXPECT_EQ(words.size() * 4, golden::size_of(structure));
    EXPECT_EQ((*this)["header.type"], value("opcodes/PM4_TYPE_3"));
    EXPECT_EQ((*this)["header.opcode"], value(opcode));
    EXPECT_EQ((*this)["header.count"], words.size() - 2);
  }
  std::string structure;
  Words words;
};

class HwsGolden : public testing::TestWithParam<HwsFormat> {
 protected:
  [[nodiscard]] bool vi() const { return GetParam() == HwsFormat::kVi; }
  // Only MAP_PROCESS differs between the two formats of gfx9.
  [[nodiscard]] Packet packet(const std::string& name) const {
    return Packet((vi() ? "pm4_vi/pm4_mes_" : "pm4_ai/pm4_mes_") + name);
  }
};

TEST_P(HwsGolden, set_resources) {
  Packet p = packet("set_resources");
  pm4::set_resources(
      p.words,
      {.vmid_mask = 0xff00, .queue_mask = 0x123456789abcdef0, .unmap_latency = 0xa5, .gws_mask = 0xfedcba9876543210});
  p.expect_header("opcodes/IT_SET_RESOURCES");
  EXPECT_EQ(p["bitfields2.vmid_mask"], 0xff00u);
  EXPECT_EQ(p["bitfields2.unmap_latency"], 0xa5u);
  EXPECT_EQ(p["bitfields2.queue_type"], value("pm4_ai/queue_type__mes_set_resources__hsa_interface_queue_hiq"));
  EXPECT_EQ(p.wide("queue_mask_lo", "queue_mask_hi"), 0x123456789abcdef0u);
  EXPECT_EQ(p.wide("gws_mask_lo", "gws_mask_hi"), 0xfedcba9876543210u);
}

TEST_P(HwsGolden, run_list) {
  Packet p = packet("runlist");
  pm4::run_list(p.words, {.ib = kAddr, .dwords = 0xabcde, .chain = true, .processes = 9}, GetParam());
  p.expect_header("opcodes/IT_RUN_LIST");
  EXPECT_EQ(p["bitfields2.ib_base_lo"], packets::lo32(kAddr) >> 2);
  EXPECT_EQ(p[vi() ? "bitfields3.ib_base_hi" : "ib_base_hi"], packets::hi32(kAddr));
  EXPECT_EQ(p["bitfields4.ib_size"], 0xabcdeu);
  EXPECT_EQ(p["bitfields4.chain"], 1u);
  EXPECT_EQ(p["bitfields4.valid"], 1u);
  EXPECT_EQ(p["bitfields4.process_cnt"], 9u);
  if (!vi()) {
    EXPECT_EQ(p["bitfields4.chained_runlist_idle_disable"], 1u);
  }
}

TEST_P(HwsGolden, map_process) {
  Packet p = GetParam() == HwsFormat::kAldebaran ? Packet("pm4_aldebaran/pm4_mes_map_process_aldebaran")
                                                 : packet("map_process");
  pm4::map_process(p.words,
                   {.pasid = 0x8765,
                    .quantum = 0x55,
                    .page_directory = kAddr,
                    .queues = 0x2aa,
                    .num_gws = 0x2a,
                    .sh_mem_config = 0x11223344,
                    .sh_mem_bases = 0x55667788,
                    .tba = kAddr,
                    .tma = kAddr + 0x1000},
                   GetParam());
  p.expect_header("opcodes/IT_MAP_PROCESS");
  EXPECT_EQ(p["bitfields2.pasid"], 0x8765u);
  EXPECT_EQ(p["bitfields2.process_quantum"], 0x55u);
  EXPECT_EQ(p["sh_mem_config"], 0x11223344u);
  EXPECT_EQ(p["sh_mem_bases"], 0x55667788u);
  if (vi()) {
    EXPECT_EQ(p["bitfields3.page_table_base"], (kAddr >> 12) & 0xfffffff);
    EXPECT_EQ(p["bitfields10.num_gws"], 0x2au);
    EXPECT_EQ(p["bitfields10.num_queues"], 0x2aau);
    return;
  }
  EXPECT_EQ(p.wide("vm_context_page_table_base_addr_lo32", "vm_context_page_table_base_addr_hi32"), kAddr);
  EXPECT_EQ(p.wide("sq_shader_tba_lo", "sq_shader_tba_hi"), kAddr >> 8);
  EXPECT_EQ(p.wide("sq_shader_tma_lo", "sq_shader_tma_hi"), (kAddr + 0x1000) >> 8);
  EXPECT_EQ(p["bitfields14.num_gws"], 0x2au);
  EXPECT_EQ(p["bitfields14.sdma_enable"], 1u);
  EXPECT_EQ(p["bitfields14.num_queues"], 0x2aau);
}

TEST_P(HwsGolden, map_queues) {
  Packet p = packet("map_queues");
  pm4::map_queues(p.words,
                  {.engine = pm4::QueueEngine::kSdma1,
                   .extended_engine = 2,
                   .queue_type = pm4::kQueueTypeStatic,
                   .doorbell = 0x1abcde,
                   .mqd = kAddr,
                   .wptr_addr = kAddr + 0x1000,
                   .gws = true},
                  GetParam());
  p.expect_header("opcodes/IT_MAP_QUEUES");
  EXPECT_EQ(p["bitfields2.queue_sel"], value("pm4_ai/queue_sel__mes_map_queues__map_to_hws_determined_queue_slots_vi"));
  EXPECT_EQ(p["bitfields2.queue_type"], value("pm4_ai/queue_type__mes_map_queues__normal_latency_static_queue_vi"));
  EXPECT_EQ(p["bitfields2.engine_sel"], value("pm4_ai/engine_sel__mes_map_queues__sdma1_vi"));
  EXPECT_EQ(p["bitfields2.num_queues"], 1u);
  EXPECT_EQ(p["bitfields3.doorbell_offset"], 0x1abcdeu);
  EXPECT_EQ(p.wide("mqd_addr_lo", "mqd_addr_hi"), kAddr);
  EXPECT_EQ(p.wide("wptr_addr_lo", "wptr_addr_hi"), kAddr + 0x1000);
  if (!vi()) {
    EXPECT_EQ(p["bitfields2.extended_engine_sel"],
              value("pm4_ai/extended_engine_sel__mes_map_queues__sdma8_to_15_sel"));
    EXPECT_EQ(p["bitfields2.gws_control_queue"], 1u);
  }
}

TEST_P(HwsGolden, unmap_queues) {
  Packet p = packet("unmap_queues");
  pm4::unmap_queues(p.words,
                    {.action = pm4::UnmapAction::kReset,
                     .select = pm4::UnmapSelect::kDoorbells,
                     .num_doorbells = 4,
                     .doorbells = {0x11111, 0x12222, 0x13333, 0x14444}},
                    GetParam());
  p.expect_header("opcodes/IT_UNMAP_QUEUES");
  EXPECT_EQ(p["bitfields2.action"], value("pm4_ai/action__mes_unmap_queues__reset_queues"));
  EXPECT_EQ(p["bitfields2.queue_sel"],
            value("pm4_ai/queue_sel__mes_unmap_queues__perform_request_on_specified_queues"));
  EXPECT_EQ(p["bitfields2.num_queues"], 4u);
  EXPECT_EQ(p["bitfields3b.doorbell_offset0"], 0x11111u);
  EXPECT_EQ(p["bitfields4.doorbell_offset1"], 0x12222u);
  EXPECT_EQ(p["bitfields5.doorbell_offset2"], 0x13333u);
  EXPECT_EQ(p["bitfields6.doorbell_offset3"], 0x14444u);

  Packet of_process = packet("unmap_queues");
  pm4::unmap_queues(of_process.words, {.select = pm4::UnmapSelect::kPasid, .pasid = 0x8765}, GetParam());
  EXPECT_EQ(of_process["bitfields2.action"], value("pm4_ai/action__mes_unmap_queues__preempt_queues"));
  EXPECT_EQ(of_process["bitfields2.queue_sel"],
            value("pm4_ai/queue_sel__mes_unmap_queues__perform_request_on_pasid_queues"));
  EXPECT_EQ(of_process["bitfields3a.pasid"], 0x8765u);
}

TEST_P(HwsGolden, query_status) {
  Packet p = packet("query_status");
  pm4::query_status(p.words, {.context_id = 0xabcdef1,
                              .command = pm4::QueryCommand::kFenceAfterAck,
                              .addr = kAddr,
                              .data = 0x1122334455667788,
                              .interrupt = pm4::QueryInterrupt::kQueue});
  p.expect_header("opcodes/IT_QUERY_STATUS");
  EXPECT_EQ(p["bitfields2.context_id"], 0xabcdef1u);
  EXPECT_EQ(p["bitfields2.interrupt_sel"], value("pm4_ai/interrupt_sel__mes_query_status__queue_status"));
  EXPECT_EQ(p["bitfields2.command"], value("pm4_ai/command__mes_query_status__fence_only_after_write_ack"));
  EXPECT_EQ(p.wide("addr_lo", "addr_hi"), kAddr);
  EXPECT_EQ(p.wide("data_lo", "data_hi"), 0x1122334455667788u);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, HwsGolden, testing::Values(HwsFormat::kVi, HwsFormat::kV9, HwsFormat::kAldebaran), [](const auto& format) {
      return std::string(format.param == HwsFormat::kVi ? "vi" : format.param == HwsFormat::kV9 ? "v9" : "aldebaran");
    });

}  // namespace
