// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// SDMA packets: what our encoders make is taken apart with the kernel's macros.
#include <gtest/gtest.h>

#include "golden/facts.h"
#include "packets/sdma.h"

namespace {

namespace sdma = packets::sdma;
using packets::Words;

constexpr std::uint64_t kAddr = 0x0000123456789ac0;
constexpr std::uint64_t kOther = 0x0000fedcba987640;

// One packet, and the names of its fields in the kernel's header.
class Packet {
 public:
  explicit Packet(std::string prefix) : prefix_(std::move(prefix)) {}
  Words words;

  std::uint32_t operator[](const std::string& field) const {
    return golden::get(words, golden::sdma_field(prefix_ + field));
  }
  [[nodiscard]] std::uint64_t wide(const std::string& lo, const std::string& hi) const {
    return packets::join((*this)[lo], (*this)[hi]);
  }

 private:
  std::string prefix_;
};

std::string name(const char* packet) { return std::string("sdma4/SDMA_PKT_") + packet + "_"; }

TEST(SdmaGolden, v4_opcodes_are_the_kernels) {
  EXPECT_EQ(sdma::kNop, golden::value("sdma4/SDMA_OP_NOP"));
  EXPECT_EQ(sdma::kCopy, golden::value("sdma4/SDMA_OP_COPY"));
  EXPECT_EQ(sdma::kWrite, golden::value("sdma4/SDMA_OP_WRITE"));
  EXPECT_EQ(sdma::kIndirect, golden::value("sdma4/SDMA_OP_INDIRECT"));
  EXPECT_EQ(sdma::kFence, golden::value("sdma4/SDMA_OP_FENCE"));
  EXPECT_EQ(sdma::kTrap, golden::value("sdma4/SDMA_OP_TRAP"));
  EXPECT_EQ(sdma::kSemaphore, golden::value("sdma4/SDMA_OP_SEM"));
  EXPECT_EQ(sdma::kPollRegmem, golden::value("sdma4/SDMA_OP_POLL_REGMEM"));
  EXPECT_EQ(sdma::kCondExe, golden::value("sdma4/SDMA_OP_COND_EXE"));
  EXPECT_EQ(sdma::kAtomic, golden::value("sdma4/SDMA_OP_ATOMIC"));
  EXPECT_EQ(sdma::kConstFill, golden::value("sdma4/SDMA_OP_CONST_FILL"));
  EXPECT_EQ(sdma::kPtePde, golden::value("sdma4/SDMA_OP_PTEPDE"));
  EXPECT_EQ(sdma::kTimestamp, golden::value("sdma4/SDMA_OP_TIMESTAMP"));
  EXPECT_EQ(sdma::kSrbmWrite, golden::value("sdma4/SDMA_OP_SRBM_WRITE"));
  EXPECT_EQ(sdma::kPreExe, golden::value("sdma4/SDMA_OP_PRE_EXE"));
  EXPECT_EQ(sdma::kDummyTrap4, golden::value("sdma4/SDMA_OP_DUMMY_TRAP"));
  EXPECT_EQ(sdma::kCopyLinearSubWindow, golden::value("sdma4/SDMA_SUBOP_COPY_LINEAR_SUB_WIND"));
  EXPECT_EQ(sdma::kPtePdeCopy, golden::value("sdma4/SDMA_SUBOP_PTEPDE_COPY"));
  EXPECT_EQ(sdma::kTimestampGetGlobal, golden::value("sdma4/SDMA_SUBOP_TIMESTAMP_GET_GLOBAL"));
}

TEST(SdmaGolden, v4_copy_linear) {
  Packet p(name("COPY_LINEAR"));
  sdma::copy_linear(p.words, kAddr, kOther, 0x234567);
  EXPECT_EQ(p["HEADER_op"], golden::value("sdma4/SDMA_OP_COPY"));
  EXPECT_EQ(p["HEADER_sub_op"], golden::value("sdma4/SDMA_SUBOP_COPY_LINEAR"));
  EXPECT_EQ(p["HEADER_broadcast"], 0u);
  EXPECT_EQ(p["COUNT_count"], 0x234567u - 1);
  EXPECT_EQ(p.wide("SRC_ADDR_LO_src_addr_31_0", "SRC_ADDR_HI_src_addr_63_32"), kOther);
  EXPECT_EQ(p.wide("DST_ADDR_LO_dst_addr_31_0", "DST_ADDR_HI_dst_addr_63_32"), kAddr);
}

TEST(SdmaGolden, v4_write_linear) {
  Packet p(name("WRITE_UNTILED"));
  sdma::write_linear(p.words, kAddr, Words{7, 8, 9});
  EXPECT_EQ(p["HEADER_op"], golden::value("sdma4/SDMA_OP_WRITE"));
  EXPECT_EQ(p.wide("DST_ADDR_LO_dst_addr_31_0", "DST_ADDR_HI_dst_addr_63_32"), kAddr);
  EXPECT_EQ(p["DW_3_count"], 2u);
  EXPECT_EQ(p["DATA0_data0"], 7u);
}

TEST(SdmaGolden, v4_indirect) {
  Packet p(name("INDIRECT"));
  sdma::indirect(p.words, kAddr, 0xabcde, 9);
  EXPECT_EQ(p["HEADER_op"], golden::value("sdma4/SDMA_OP_INDIRECT"));
  EXPECT_EQ(p["HEADER_vmid"], 9u);
  EXPECT_EQ(p.wide("BASE_LO_ib_base_31_0", "BASE_HI_ib_base_63_32"), kAddr);
  EXPECT_EQ(p["IB_SIZE_ib_size"], 0xabcdeu);
  EXPECT_EQ(p.wide("CSA_ADDR_LO_csa_addr_31_0", "CSA_ADDR_HI_csa_addr_63_32"), 0u);
}

TEST(SdmaGolden, v4_fence_and_trap) {
  Packet fence(name("FENCE"));
  sdma::fence(fence.words, kAddr, 0xdeadbeef);
  EXPECT_EQ(fence["HEADER_op"], golden::value("sdma4/SDMA_OP_FENCE"));
  EXPECT_EQ(fence.wide("ADDR_LO_addr_31_0", "ADDR_HI_addr_63_32"), kAddr);
  EXPECT_EQ(fence["DATA_data"], 0xdeadbeefu);
  Packet trap(name("TRAP"));
  sdma::trap(trap.words, 0xabcdef1);
  EXPECT_EQ(trap["HEADER_op"], golden::value("sdma4/SDMA_OP_TRAP"));
  EXPECT_EQ(trap["INT_CONTEXT_int_context"], 0xabcdef1u);
}

TEST(SdmaGolden, v4_poll_regmem) {
  Packet p(name("POLL_REGMEM"));
  sdma::poll_regmem(p.words, {.hdp_flush = true,
                              .memory = true,
                              .function = packets::Compare::kGreaterEqual,
                              .addr = kAddr,
                              .reference = 0x1111,
                              .mask = 0x2222});
  EXPECT_EQ(p["HEADER_op"], golden::value("sdma4/SDMA_OP_POLL_REGMEM"));
  EXPECT_EQ(p["HEADER_hdp_flush"], 1u);
  EXPECT_EQ(p["HEADER_func"], 5u);  // no header names the functions
  EXPECT_EQ(p["HEADER_mem_poll"], 1u);
  EXPECT_EQ(p.wide("ADDR_LO_addr_31_0", "ADDR_HI_addr_63_32"), kAddr);
  EXPECT_EQ(p["VALUE_value"], 0x1111u);
  EXPECT_EQ(p["MASK_mask"], 0x2222u);
}

TEST(SdmaGolden, v4_conditional_execution) {
  Packet cond(name("COND_EXE"));
  sdma::cond_exe(cond.words, kAddr, 0x77, 0x2345);
  EXPECT_EQ(cond["HEADER_op"], golden::value("sdma4/SDMA_OP_COND_EXE"));
  EXPECT_EQ(cond.wide("ADDR_LO_addr_31_0", "ADDR_HI_addr_63_32"), kAddr);
  EXPECT_EQ(cond["REFERENCE_reference"], 0x77u);
  EXPECT_EQ(cond["EXEC_COUNT_exec_count"], 0x2345u);
  Packet pre(name("PRE_EXE"));
  sdma::pre_exe(pre.words, 0xa5, 0x1234);
  EXPECT_EQ(pre["HEADER_op"], golden::value("sdma4/SDMA_OP_PRE_EXE"));
  EXPECT_EQ(pre["HEADER_dev_sel"], 0xa5u);
  EXPECT_EQ(pre["EXEC_COUNT_exec_count"], 0x1234u);
}

TEST(SdmaGolden, v4_atomic) {
  Packet p(name("ATOMIC"));
  sdma::atomic(p.words, {.code = 0x2f, .loop = true, .addr = kAddr, .src = kOther, .compare = kAddr + 1});
  EXPECT_EQ(p["HEADER_op"], golden::value("sdma4/SDMA_OP_ATOMIC"));
  EXPECT_EQ(p["HEADER_loop"], 1u);
  EXPECT_EQ(p["HEADER_atomic_op"], 0x2fu);
  EXPECT_EQ(p.wide("ADDR_LO_addr_31_0", "ADDR_HI_addr_63_32"), kAddr);
  EXPECT_EQ(p.wide("SRC_DATA_LO_src_data_31_0", "SRC_DATA_HI_src_data_63_32"), kOther);
  EXPECT_EQ(p.wide("CMP_DATA_LO_cmp_data_31_0", "CMP_DATA_HI_cmp_data_63_32"), kAddr + 1);
}

TEST(SdmaGolden, v4_constant_fill) {
  Packet p(name("CONSTANT_FILL"));
  sdma::const_fill(p.words, kAddr, 0xcafe, 0x2000);
  EXPECT_EQ(p["HEADER_op"], golden::value("sdma4/SDMA_OP_CONST_FILL"));
  EXPECT_EQ(p["HEADER_fillsize"], 2u);
  EXPECT_EQ(p.wide("DST_ADDR_LO_dst_addr_31_0", "DST_ADDR_HI_dst_addr_63_32"), kAddr);
  EXPECT_EQ(p["DATA_src_data_31_0"], 0xcafeu);
  EXPECT_EQ(p["COUNT_count"], 0x1fffu);
}

TEST(SdmaGolden, v4_page_tables) {
  Packet copy(name("PTEPDE_COPY"));
  sdma::pte_copy(copy.words, {.src = kOther, .dst = kAddr, .mask = ~std::uint64_t{0}, .count = 0x321});
  EXPECT_EQ(copy["HEADER_op"], golden::value("sdma4/SDMA_OP_PTEPDE"));
  EXPECT_EQ(copy["HEADER_sub_op"], golden::value("sdma4/SDMA_SUBOP_PTEPDE_COPY"));
  EXPECT_EQ(copy.wide("SRC_ADDR_LO_src_addr_31_0", "SRC_ADDR_HI_src_addr_63_32"), kOther);
  EXPECT_EQ(copy.wide("DST_ADDR_LO_dst_addr_31_0", "DST_ADDR_HI_dst_addr_63_32"), kAddr);
  EXPECT_EQ(copy.wide("MASK_DW0_mask_dw0", "MASK_DW1_mask_dw1"), ~std::uint64_t{0});
  EXPECT_EQ(copy["COUNT_count"], 0x320u);
}

TEST(SdmaGolden, v4_registers_and_time) {
  Packet write(name("SRBM_WRITE"));
  sdma::srbm_write(write.words, 0x2abcd, 0x12345678);
  EXPECT_EQ(write["HEADER_op"], golden::value("sdma4/SDMA_OP_SRBM_WRITE"));
  EXPECT_EQ(write["HEADER_byte_en"], 0xfu);
  EXPECT_EQ(write["ADDR_addr"], 0x2abcdu);
  EXPECT_EQ(write["DATA_data"], 0x12345678u);
  Packet time(name("TIMESTAMP_GET_GLOBAL"));
  sdma::timestamp_get_global(time.words, kAddr);
  EXPECT_EQ(time["HEADER_op"], golden::value("sdma4/SDMA_OP_TIMESTAMP"));
  EXPECT_EQ(time["HEADER_sub_op"], golden::value("sdma4/SDMA_SUBOP_TIMESTAMP_GET_GLOBAL"));
  EXPECT_EQ(time["WRITE_ADDR_LO_write_addr_31_3"], packets::lo32(kAddr) >> 3);
  Packet nop(name("NOP"));
  sdma::nop(nop.words, 5);
  EXPECT_EQ(nop["HEADER_op"], golden::value("sdma4/SDMA_OP_NOP"));
  EXPECT_EQ(nop["HEADER_count"], 4u);
}

}  // namespace
