// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// PM4 packets that queues execute: opcodes, and our encoders against the kernel's structs and field macros.
#include <gtest/gtest.h>

#include "golden/facts.h"
#include "packets/pm4.h"

namespace {

namespace pm4 = packets::pm4;
using packets::Words;

constexpr std::uint64_t kAddr = 0x0000123456789ac0;

TEST(Pm4Golden, opcodes_are_the_kernels) {
  EXPECT_EQ(pm4::kNop, golden::value("opcodes/IT_NOP"));
  EXPECT_EQ(pm4::kClearState, golden::value("opcodes/IT_CLEAR_STATE"));
  EXPECT_EQ(pm4::kDispatchDirect, golden::value("opcodes/IT_DISPATCH_DIRECT"));
  EXPECT_EQ(pm4::kDispatchIndirect, golden::value("opcodes/IT_DISPATCH_INDIRECT"));
  EXPECT_EQ(pm4::kAtomicMem, golden::value("soc15d/PACKET3_ATOMIC_MEM"));
  EXPECT_EQ(pm4::kContextControl, golden::value("opcodes/IT_CONTEXT_CONTROL"));
  EXPECT_EQ(pm4::kWriteData, golden::value("opcodes/IT_WRITE_DATA"));
  EXPECT_EQ(pm4::kWaitRegMem, golden::value("opcodes/IT_WAIT_REG_MEM"));
  EXPECT_EQ(pm4::kIndirectBuffer, golden::value("opcodes/IT_INDIRECT_BUFFER"));
  EXPECT_EQ(pm4::kCopyData, golden::value("opcodes/IT_COPY_DATA"));
  EXPECT_EQ(pm4::kPfpSyncMe, golden::value("opcodes/IT_PFP_SYNC_ME"));
  EXPECT_EQ(pm4::kEventWrite, golden::value("opcodes/IT_EVENT_WRITE"));
  EXPECT_EQ(pm4::kReleaseMem, golden::value("opcodes/IT_RELEASE_MEM"));
  EXPECT_EQ(pm4::kDmaData, golden::value("opcodes/IT_DMA_DATA"));
  EXPECT_EQ(pm4::kAcquireMem, golden::value("opcodes/IT_ACQUIRE_MEM"));
  EXPECT_EQ(pm4::kSetShReg, golden::value("opcodes/IT_SET_SH_REG"));
  EXPECT_EQ(pm4::kSetUconfigReg, golden::value("opcodes/IT_SET_UCONFIG_REG"));
  EXPECT_EQ(pm4::kInvalidateTlbs, golden::value("soc15d/PACKET3_INVALIDATE_TLBS"));
  EXPECT_EQ(pm4::kSetResources, golden::value("opcodes/IT_SET_RESOURCES"));
  EXPECT_EQ(pm4::kMapProcess, golden::value("opcodes/IT_MAP_PROCESS"));
  EXPECT_EQ(pm4::kMapQueues, golden::value("opcodes/IT_MAP_QUEUES"));
  EXPECT_EQ(pm4::kUnmapQueues, golden::value("opcodes/IT_UNMAP_QUEUES"));
  EXPECT_EQ(pm4::kQueryStatus, golden::value("opcodes/IT_QUERY_STATUS"));
  EXPECT_EQ(pm4::kRunList, golden::value("opcodes/IT_RUN_LIST"));
}

TEST(Pm4Golden, release_mem) {
  const std::string s = "pm4_ai/pm4_mec_release_mem.";
  Words w;
  pm4::release_mem(w, {.dst_sel = 1,
                       .int_sel = pm4::ReleaseInt::kAfterWrite,
                       .data_sel = pm4::ReleaseData::k64,
                       .addr = kAddr,
                       .data = 0x1122334455667788,
                       .int_ctxid = 0x7654321});
  ASSERT_EQ(w.size() * 4, golden::size_of("pm4_ai/pm4_mec_release_mem"));
  const auto get = [&](const char* name) { return golden::get(w, golden::member(s + name)); };
  EXPECT_EQ(get("header.opcode"), golden::value("opcodes/IT_RELEASE_MEM"));
  EXPECT_EQ(get("header.type"), golden::value("opcodes/PM4_TYPE_3"));
  EXPECT_EQ(get("header.count"), w.size() - 2);
  EXPECT_EQ(get("bitfields2.event_type"), golden::value("pm4_ai/CACHE_FLUSH_AND_INV_TS_EVENT"));
  EXPECT_EQ(get("bitfields2.event_index"), golden::value("pm4_ai/event_index__mec_release_mem__end_of_pipe"));
  EXPECT_EQ(get("bitfields3.dst_sel"), golden::value("pm4_ai/dst_sel__mec_release_mem__tc_l2"));
  EXPECT_EQ(get("bitfields3.int_sel"),
            golden::value("pm4_ai/int_sel__mec_release_mem__send_interrupt_after_write_confirm"));
  EXPECT_EQ(get("bitfields3.data_sel"), golden::value("pm4_ai/data_sel__mec_release_mem__send_64_bit_data"));
  EXPECT_EQ(get("bitfields4b.address_lo_64b"), packets::lo32(kAddr) >> 3);
  EXPECT_EQ(get("address_hi"), packets::hi32(kAddr));
  EXPECT_EQ(get("data_lo"), 0x55667788u);
  EXPECT_EQ(get("data_hi"), 0x11223344u);
  EXPECT_EQ(get("int_ctxid"), 0x7654321u);
}

TEST(Pm4Golden, write_data) {
  const std::string s = "pm4_ai/pm4_mec_write_data_mmio.";
  Words w;
  pm4::write_data(w, 0x2abcd, 0x12345678);
  ASSERT_EQ(w.size() * 4, golden::size_of("pm4_ai/pm4_mec_write_data_mmio"));
  const auto get = [&](const char* name) { return golden::get(w, golden::member(s + name)); };
  EXPECT_EQ(get("bitfields2.dst_sel"), golden::value("pm4_ai/dst_sel___write_data__memory"));
  EXPECT_EQ(get("bitfields2.addr_incr"), golden::value("pm4_ai/addr_incr___write_data__increment_address"));
  EXPECT_EQ(get("bitfields2.wr_confirm"), golden::value("pm4_ai/wr_confirm___write_data__wait_for_write_confirmation"));
  EXPECT_EQ(get("bitfields3.dst_mmreg_addr"), 0x2abcdu);
  EXPECT_EQ(get("data"), 0x12345678u);
}

// What the four headers of the generations call alike; nvd.h is that of gfx10 and later.
class Pm4FormatGolden : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::uint64_t value(const std::string& name) {
    return golden::value(std::string(GetParam()) + "/" + name);
  }
};

TEST_P(Pm4FormatGolden, opcodes) {
  EXPECT_EQ(pm4::kNop, value("PACKET3_NOP"));
  EXPECT_EQ(pm4::kDispatchDirect, value("PACKET3_DISPATCH_DIRECT"));
  EXPECT_EQ(pm4::kAtomicMem, value("PACKET3_ATOMIC_MEM"));
  EXPECT_EQ(pm4::kCondExec, value("PACKET3_COND_EXEC"));
  EXPECT_EQ(pm4::kWriteData, value("PACKET3_WRITE_DATA"));
  EXPECT_EQ(pm4::kWaitRegMem, value("PACKET3_WAIT_REG_MEM"));
  EXPECT_EQ(pm4::kIndirectBuffer, value("PACKET3_INDIRECT_BUFFER"));
  EXPECT_EQ(pm4::kCopyData, value("PACKET3_COPY_DATA"));
  EXPECT_EQ(pm4::kPfpSyncMe, value("PACKET3_PFP_SYNC_ME"));
  EXPECT_EQ(pm4::kEventWrite, value("PACKET3_EVENT_WRITE"));
  EXPECT_EQ(pm4::kReleaseMem, value("PACKET3_RELEASE_MEM"));
  EXPECT_EQ(pm4::kDmaData, value("PACKET3_DMA_DATA"));
  EXPECT_EQ(pm4::kAcquireMem, value("PACKET3_ACQUIRE_MEM"));
  EXPECT_EQ(pm4::kSetShReg, value("PACKET3_SET_SH_REG"));
  EXPECT_EQ(pm4::kSetUconfigReg, value("PACKET3_SET_UCONFIG_REG"));
}

TEST_P(Pm4FormatGolden, register_windows) {
  EXPECT_EQ(pm4::kShRegBase, value("PACKET3_SET_SH_REG_START"));
  EXPECT_EQ(pm4::kShRegEnd, value("PACKET3_SET_SH_REG_END"));
  EXPECT_EQ(pm4::kUconfigRegBase, value("PACKET3_SET_UCONFIG_REG_START"));
  EXPECT_EQ(pm4::kConfigRegBase, value("PACKET3_SET_CONFIG_REG_START"));
  EXPECT_EQ(pm4::kContextRegBase, value("PACKET3_SET_CONTEXT_REG_START"));
}

TEST_P(Pm4FormatGolden, fields) {
  EXPECT_EQ(pm4::kWriteDataDst.put(1), value("WRITE_DATA_DST_SEL(1)"));
  EXPECT_EQ(pm4::kWriteDataOneAddr.put(1), value("WR_ONE_ADDR"));
  EXPECT_EQ(pm4::kWriteDataConfirm.put(1), value("WR_CONFIRM"));
  EXPECT_EQ(pm4::kWaitFunction.put(1), value("WAIT_REG_MEM_FUNCTION(1)"));
  EXPECT_EQ(pm4::kWaitMemSpace.put(1), value("WAIT_REG_MEM_MEM_SPACE(1)"));
  EXPECT_EQ(pm4::kWaitOperation.put(1), value("WAIT_REG_MEM_OPERATION(1)"));
  EXPECT_EQ(pm4::kReleaseEventType.put(1), value("EVENT_TYPE(1)"));
  EXPECT_EQ(pm4::kReleaseEventIndex.put(1), value("EVENT_INDEX(1)"));
  EXPECT_EQ(pm4::kIbValid.put(1), value("INDIRECT_BUFFER_VALID"));
  EXPECT_EQ(pm4::kDmaDstSel.put(1), value("PACKET3_DMA_DATA_DST_SEL(1)"));
  EXPECT_EQ(pm4::kDmaSrcSel.put(1), value("PACKET3_DMA_DATA_SRC_SEL(1)"));
  EXPECT_EQ(pm4::kDmaRegisterSpace.put(3), value("PACKET3_DMA_DATA_CMD_SAS") | value("PACKET3_DMA_DATA_CMD_DAS"));
}

TEST_P(Pm4FormatGolden, end_of_pipe_selectors) {
  const bool named_by_packet = GetParam() == std::string("nvd");
  EXPECT_EQ(pm4::kReleaseInt.put(1), value(named_by_packet ? "PACKET3_RELEASE_MEM_INT_SEL(1)" : "INT_SEL(1)"));
  EXPECT_EQ(pm4::kReleaseData.put(1), value(named_by_packet ? "PACKET3_RELEASE_MEM_DATA_SEL(1)" : "DATA_SEL(1)"));
}

TEST(Pm4Golden, event_write_eop_is_there_before_gfx9) {
  EXPECT_EQ(pm4::kEventWriteEop, golden::value("cikd/PACKET3_EVENT_WRITE_EOP"));
  EXPECT_EQ(pm4::kEventWriteEop, golden::value("vid/PACKET3_EVENT_WRITE_EOP"));
}

INSTANTIATE_TEST_SUITE_P(Generations, Pm4FormatGolden, testing::Values("cikd", "vid", "soc15d", "nvd"),
                         [](const auto& unit) { return std::string(unit.param); });

}  // namespace
