// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// SDMA packets that differ by generation, against each generation's header. For SDMA 2 the kernel has opcodes and a few
// fields only, for SDMA 7 nothing.
#include <gtest/gtest.h>

#include "golden/facts.h"
#include "packets/sdma.h"

namespace {

namespace sdma = packets::sdma;
using packets::Words;

constexpr std::uint64_t kAddr = 0x0000123456789ac0;
constexpr std::uint64_t kOther = 0x0000fedcba987640;

struct Generation {
  const char* unit;
  const sdma::Format* format;
};

class SdmaFormatGolden : public testing::TestWithParam<Generation> {
 protected:
  [[nodiscard]] const sdma::Format& format() const { return *GetParam().format; }
  [[nodiscard]] std::uint64_t value(const std::string& name) const {
    return golden::value(GetParam().unit + ("/" + name));
  }
  // A field of `words`, by the name of its packet and itself.
  [[nodiscard]] std::uint32_t get(const std::string& field) const {
    return golden::get(words, golden::sdma_field(GetParam().unit + ("/SDMA_PKT_" + field)));
  }
  [[nodiscard]] std::uint64_t wide(const std::string& lo, const std::string& hi) const {
    return packets::join(get(lo), get(hi));
  }
  Words words;
};

TEST_P(SdmaFormatGolden, copy_linear) {
  sdma::copy_linear(words, kAddr, kOther, 0x234567, format());
  EXPECT_EQ(get("COPY_LINEAR_HEADER_op"), value("SDMA_OP_COPY"));
  EXPECT_EQ(get("COPY_LINEAR_HEADER_sub_op"), value("SDMA_SUBOP_COPY_LINEAR"));
  EXPECT_EQ(get("COPY_LINEAR_COUNT_count"), format().put(0x234567));
  EXPECT_EQ(wide("COPY_LINEAR_SRC_ADDR_LO_src_addr_31_0", "COPY_LINEAR_SRC_ADDR_HI_src_addr_63_32"), kOther);
  EXPECT_EQ(wide("COPY_LINEAR_DST_ADDR_LO_dst_addr_31_0", "COPY_LINEAR_DST_ADDR_HI_dst_addr_63_32"), kAddr);
}

TEST_P(SdmaFormatGolden, copy_window) {
  const std::string p = "COPY_LINEAR_SUBWIN_";
  sdma::CopyWindow c{.element_log2 = 2,
                     .src = {kAddr, 11, 12, 13, 0x123, 0x4567},
                     .dst = {kOther, 21, 22, 23, 0x321, 0x7654},
                     .width = 31,
                     .height = 32,
                     .depth = 33};
  sdma::copy_window(words, c, format());
  EXPECT_EQ(get(p + "HEADER_sub_op"), value("SDMA_SUBOP_COPY_LINEAR_SUB_WIND"));
  EXPECT_EQ(get(p + "HEADER_elementsize"), 2u);
  EXPECT_EQ(wide(p + "SRC_ADDR_LO_src_addr_31_0", p + "SRC_ADDR_HI_src_addr_63_32"), kAddr);
  EXPECT_EQ(get(p + "DW_3_src_x"), 11u);
  EXPECT_EQ(get(p + "DW_3_src_y"), 12u);
  EXPECT_EQ(get(p + "DW_4_src_z"), 13u);
  EXPECT_EQ(get(p + "DW_4_src_pitch"), 0x122u);
  EXPECT_EQ(get(p + "DW_5_src_slice_pitch"), 0x4566u);
  EXPECT_EQ(wide(p + "DST_ADDR_LO_dst_addr_31_0", p + "DST_ADDR_HI_dst_addr_63_32"), kOther);
  EXPECT_EQ(get(p + "DW_8_dst_x"), 21u);
  EXPECT_EQ(get(p + "DW_8_dst_y"), 22u);
  EXPECT_EQ(get(p + "DW_9_dst_z"), 23u);
  EXPECT_EQ(get(p + "DW_9_dst_pitch"), 0x320u);
  EXPECT_EQ(get(p + "DW_10_dst_slice_pitch"), 0x7653u);
  EXPECT_EQ(get(p + "DW_11_rect_x"), 30u);
  EXPECT_EQ(get(p + "DW_11_rect_y"), 31u);
  EXPECT_EQ(get(p + "DW_12_rect_z"), 32u);
}

TEST_P(SdmaFormatGolden, write_and_fill) {
  sdma::write_linear(words, kAddr, Words{7, 8, 9}, format());
  EXPECT_EQ(get("WRITE_UNTILED_HEADER_op"), value("SDMA_OP_WRITE"));
  EXPECT_EQ(wide("WRITE_UNTILED_DST_ADDR_LO_dst_addr_31_0", "WRITE_UNTILED_DST_ADDR_HI_dst_addr_63_32"), kAddr);
  EXPECT_EQ(get("WRITE_UNTILED_DW_3_count"), format().put(3));
  EXPECT_EQ(get("WRITE_UNTILED_DATA0_data0"), 7u);
  words.clear();
  sdma::const_fill(words, kAddr, 0xcafe, 0x2000, sdma::FillSize::kDword, format());
  EXPECT_EQ(get("CONSTANT_FILL_HEADER_op"), value("SDMA_OP_CONST_FILL"));
  EXPECT_EQ(get("CONSTANT_FILL_HEADER_fillsize"), 2u);
  EXPECT_EQ(wide("CONSTANT_FILL_DST_ADDR_LO_dst_addr_31_0", "CONSTANT_FILL_DST_ADDR_HI_dst_addr_63_32"), kAddr);
  EXPECT_EQ(get("CONSTANT_FILL_DATA_src_data_31_0"), 0xcafeu);
  EXPECT_EQ(get("CONSTANT_FILL_COUNT_count"), format().put(0x2000));
}

TEST_P(SdmaFormatGolden, page_table_entries) {
  sdma::pte_gen(words, {.dst = kAddr, .mask = 0x73, .init = kOther, .increment = 0x1000, .count = 0x321}, format());
  EXPECT_EQ(get("WRITE_INCR_HEADER_op"), value(format().generation < 4 ? "SDMA_OP_GEN_PTEPDE" : "SDMA_OP_PTEPDE"));
  EXPECT_EQ(get("WRITE_INCR_HEADER_sub_op"), 0u);
  EXPECT_EQ(wide("WRITE_INCR_DST_ADDR_LO_dst_addr_31_0", "WRITE_INCR_DST_ADDR_HI_dst_addr_63_32"), kAddr);
  EXPECT_EQ(wide("WRITE_INCR_MASK_DW0_mask_dw0", "WRITE_INCR_MASK_DW1_mask_dw1"), 0x73u);
  EXPECT_EQ(wide("WRITE_INCR_INIT_DW0_init_dw0", "WRITE_INCR_INIT_DW1_init_dw1"), kOther);
  EXPECT_EQ(wide("WRITE_INCR_INCR_DW0_incr_dw0", "WRITE_INCR_INCR_DW1_incr_dw1"), 0x1000u);
  EXPECT_EQ(get("WRITE_INCR_COUNT_count"), format().put(0x321));
}

TEST_P(SdmaFormatGolden, indirect) {
  sdma::indirect(words, kAddr, 0xabcde, 9, format());
  EXPECT_EQ(get("INDIRECT_HEADER_op"), value("SDMA_OP_INDIRECT"));
  EXPECT_EQ(get("INDIRECT_HEADER_vmid"), 9u);
  EXPECT_EQ(wide("INDIRECT_BASE_LO_ib_base_31_0", "INDIRECT_BASE_HI_ib_base_63_32"), kAddr);
  EXPECT_EQ(get("INDIRECT_IB_SIZE_ib_size"), 0xabcdeu);
  EXPECT_EQ(get("INDIRECT_CSA_ADDR_HI_csa_addr_63_32"), 0u);
}

TEST_P(SdmaFormatGolden, fence) {
  sdma::fence(words, kAddr, 0xdeadbeef, format());
  EXPECT_EQ(get("FENCE_HEADER_op"), value("SDMA_OP_FENCE"));
  if (format().generation >= 5) {
    EXPECT_EQ(get("FENCE_HEADER_mtype"), sdma::kMtypeUncached);
  }
  EXPECT_EQ(wide("FENCE_ADDR_LO_addr_31_0", "FENCE_ADDR_HI_addr_63_32"), kAddr);
  EXPECT_EQ(get("FENCE_DATA_data"), 0xdeadbeefu);
}

TEST_P(SdmaFormatGolden, opcodes) {
  EXPECT_EQ(sdma::kFence, value("SDMA_OP_FENCE"));
  EXPECT_EQ(sdma::kTrap, value("SDMA_OP_TRAP"));
  EXPECT_EQ(sdma::kPollRegmem, value("SDMA_OP_POLL_REGMEM"));
  EXPECT_EQ(sdma::kCondExe, value("SDMA_OP_COND_EXE"));
  EXPECT_EQ(sdma::kAtomic, value("SDMA_OP_ATOMIC"));
  EXPECT_EQ(sdma::kTimestamp, value("SDMA_OP_TIMESTAMP"));
  EXPECT_EQ(sdma::kSrbmWrite, value("SDMA_OP_SRBM_WRITE"));
  EXPECT_EQ(sdma::kPreExe, value("SDMA_OP_PRE_EXE"));
}

// cikd.h names bits of the upper half of a header.
constexpr unsigned kExtraShift = 16;

TEST(SdmaFormat2Golden, opcodes) {
  EXPECT_EQ(sdma::kCopy, golden::value("cikd/SDMA_OPCODE_COPY"));
  EXPECT_EQ(sdma::kCopyLinearSubWindow, golden::value("cikd/SDMA_COPY_SUB_OPCODE_LINEAR_SUB_WINDOW"));
  EXPECT_EQ(sdma::kWrite, golden::value("cikd/SDMA_OPCODE_WRITE"));
  EXPECT_EQ(sdma::kIndirect, golden::value("cikd/SDMA_OPCODE_INDIRECT_BUFFER"));
  EXPECT_EQ(sdma::kFence, golden::value("cikd/SDMA_OPCODE_FENCE"));
  EXPECT_EQ(sdma::kTrap, golden::value("cikd/SDMA_OPCODE_TRAP"));
  EXPECT_EQ(sdma::kSemaphore, golden::value("cikd/SDMA_OPCODE_SEMAPHORE"));
  EXPECT_EQ(sdma::kPollRegmem, golden::value("cikd/SDMA_OPCODE_POLL_REG_MEM"));
  EXPECT_EQ(sdma::kCondExe, golden::value("cikd/SDMA_OPCODE_COND_EXEC"));
  EXPECT_EQ(sdma::kConstFill, golden::value("cikd/SDMA_OPCODE_CONSTANT_FILL"));
  EXPECT_EQ(sdma::kPtePde, golden::value("cikd/SDMA_OPCODE_GENERATE_PTE_PDE"));
  EXPECT_EQ(sdma::kTimestamp, golden::value("cikd/SDMA_OPCODE_TIMESTAMP"));
  EXPECT_EQ(sdma::kTimestampGet, golden::value("cikd/SDMA_TIMESTAMP_SUB_OPCODE_GET_LOCAL"));
  EXPECT_EQ(sdma::kTimestampGetGlobal, golden::value("cikd/SDMA_TIMESTAMP_SUB_OPCODE_GET_GLOBAL"));
  EXPECT_EQ(sdma::kSrbmWrite, golden::value("cikd/SDMA_OPCODE_SRBM_WRITE"));
}

TEST(SdmaFormat2Golden, fields) {
  EXPECT_EQ(sdma::kNopCount.put(1), golden::value("cikd/SDMA_NOP_COUNT(1)"));
  EXPECT_EQ(sdma::kPollFunction.put(1), golden::value("cikd/SDMA_POLL_REG_MEM_EXTRA_FUNC(1)") << kExtraShift);
  EXPECT_EQ(sdma::kPollMemory.put(1), golden::value("cikd/SDMA_POLL_REG_MEM_EXTRA_M") << kExtraShift);
  EXPECT_EQ(sdma::kFillSize.put(1), golden::value("cikd/SDMA_CONSTANT_FILL_EXTRA_SIZE(1)") << kExtraShift);
}

constexpr Generation kGenerations[] = {
    {"sdma3", &sdma::kFormat3}, {"sdma4", &sdma::kFormat4}, {"sdma5", &sdma::kFormat5}, {"sdma6", &sdma::kFormat6}};
INSTANTIATE_TEST_SUITE_P(Generations, SdmaFormatGolden, testing::ValuesIn(kGenerations),
                         [](const auto& generation) { return std::string(generation.param.unit); });

}  // namespace
