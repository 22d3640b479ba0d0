// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queue descriptors: where members are, and the fields of their registers, of every generation.
#include <gtest/gtest.h>

#include "golden/facts.h"
#include "packets/mqd.h"
#include "packets/mqd_sdma.h"

namespace {

namespace m = packets::mqd;
using golden::register_field;
using golden::text;

// The prefixes that name a generation's facts.
struct Generation {
  unsigned level;
  std::string structs;    // prefix of facts from amd/include
  std::string registers;  // prefix of the graphics core's registers
  std::string sdma_registers;
  std::string sdma_queue;  // prefix of a queue's registers
};

class MqdGolden : public ::testing::TestWithParam<Generation> {
 protected:
  [[nodiscard]] const m::ComputeMqdLayout& compute() const { return m::compute_layout(GetParam().level); }
  [[nodiscard]] const m::SdmaMqdLayout& sdma() const { return m::sdma_layout(GetParam().level); }
  static packets::Field reg(const std::string& name) {
    return register_field(GetParam().registers + "/CP_HQD_" + name);
  }
  static packets::Field sdma_reg(const std::string& name) {
    return register_field(GetParam().sdma_registers + "/" + GetParam().sdma_queue + name);
  }
};

TEST_P(MqdGolden, compute_members_are_the_kernels) {
  const std::string structure = GetParam().structs + "/" + compute().struct_name;
  EXPECT_EQ(compute().dwords * 4, golden::size_of(structure));
  for (const m::ComputeMember& member : m::kComputeMembers) {
    const std::size_t index = compute().*member.index;
    if (index == m::kNone) continue;
    EXPECT_EQ(index, golden::dword(structure + "." + member.name)) << member.name;
  }
}

TEST_P(MqdGolden, sdma_members_are_the_kernels) {
  const std::string structure = GetParam().structs + "/" + sdma().struct_name;
  EXPECT_EQ(sdma().dwords * 4, golden::size_of(structure));
  for (const m::SdmaMember& member : m::kSdmaMembers) {
    const std::size_t index = sdma().*member.index;
    if (index == m::kNone) continue;
    const std::string name = member.name;
    const std::string prefix = name.starts_with("sdma_") ? "" : sdma().prefix;
    EXPECT_EQ(index, golden::dword(structure + "." + prefix + name)) << name;
  }
}

TEST_P(MqdGolden, compute_registers_have_the_kernels_fields) {
  EXPECT_EQ(text(m::kPqQueueSize), text(reg("PQ_CONTROL__QUEUE_SIZE")));
  EXPECT_EQ(text(m::kPqNoUpdateRptr), text(reg("PQ_CONTROL__NO_UPDATE_RPTR")));
  EXPECT_EQ(text(m::kPqPrivState), text(reg("PQ_CONTROL__PRIV_STATE")));
  EXPECT_EQ(text(m::kPqKmdQueue), text(reg("PQ_CONTROL__KMD_QUEUE")));
  EXPECT_EQ(text(compute().doorbell_offset), text(reg("PQ_DOORBELL_CONTROL__DOORBELL_OFFSET")));
  EXPECT_EQ(text(m::kDoorbellEn), text(reg("PQ_DOORBELL_CONTROL__DOORBELL_EN")));
  EXPECT_EQ(text(m::kIbSize), text(reg("IB_CONTROL__IB_SIZE")));
  EXPECT_EQ(text(m::kIbMinAvailSize), text(reg("IB_CONTROL__MIN_IB_AVAIL_SIZE")));
  EXPECT_EQ(text(m::kIbProcessing), text(reg("IB_CONTROL__PROCESSING_IB")));
  if (GetParam().level >= 8) {
    EXPECT_EQ(text(compute().slot_based_wptr), text(reg("PQ_CONTROL__SLOT_BASED_WPTR")));
    EXPECT_EQ(text(compute().error_code), text(reg("ERROR__EDC_ERROR_ID")));
    EXPECT_EQ(text(m::kErrorSua), text(reg("ERROR__SUA_ERROR")));
  }
  if (GetParam().level >= 9) {
    EXPECT_EQ(text(m::kIbExeDisable), text(reg("IB_CONTROL__IB_EXE_DISABLE")));
    EXPECT_EQ(text(m::kErrorAql), text(reg("ERROR__AQL_ERROR")));
    EXPECT_EQ(text(m::kErrorPqUtcl1), text(reg("ERROR__PQ_UTCL1_ERROR")));
    EXPECT_EQ(text(m::kErrorTcUtcl1), text(reg("ERROR__TC_UTCL1_ERROR")));
  }
}

TEST_P(MqdGolden, sdma_registers_have_the_kernels_fields) {
  EXPECT_EQ(text(sdma().rb_size), text(sdma_reg("RB_CNTL__RB_SIZE")));
  EXPECT_EQ(text(m::kRbRptrWritebackEnable), text(sdma_reg("RB_CNTL__RPTR_WRITEBACK_ENABLE")));
  EXPECT_EQ(text(m::kRbVmid), text(sdma_reg("RB_CNTL__RB_VMID")));
  EXPECT_EQ(text(m::kSdmaIbEnable), text(sdma_reg("IB_CNTL__IB_ENABLE")));
  EXPECT_EQ(text(m::kSdmaIbOffset), text(sdma_reg("IB_OFFSET__OFFSET")));
  EXPECT_EQ(text(m::kSdmaIbSize), text(sdma_reg("IB_SIZE__SIZE")));
  EXPECT_EQ(text(m::kSdmaException), text(sdma_reg("CONTEXT_STATUS__EXCEPTION")));
  EXPECT_EQ(text(m::kSdmaDoorbellEnable), text(sdma_reg("DOORBELL__ENABLE")));
  const bool offset_apart = sdma().doorbell_offset != m::kNone;
  EXPECT_EQ(text(sdma().doorbell_field()),
            text(sdma_reg(offset_apart ? "DOORBELL_OFFSET__OFFSET" : "DOORBELL__OFFSET")));
  if (sdma().skip_cntl != m::kNone) {
    EXPECT_EQ(text(sdma().skip_count), text(sdma_reg("SKIP_CNTL__SKIP_COUNT")));
  }
}

INSTANTIATE_TEST_SUITE_P(Gfx, MqdGolden,
                         ::testing::Values(Generation{7, "cik", "gc7", "oss2", "SDMA0_RLC0_"},
                                           Generation{8, "vi", "gc8", "oss3", "SDMA0_RLC0_"},
                                           Generation{9, "v9", "gc9", "sdma4_0", "SDMA0_RLC0_"},
                                           Generation{10, "v10", "gc10", "gc10", "SDMA0_RLC0_"},
                                           Generation{11, "v11", "gc11", "gc11", "SDMA0_QUEUE0_"},
                                           Generation{12, "v12", "gc12", "gc12", "SDMA0_QUEUE0_"}),
                         [](const auto& instance) { return std::to_string(instance.param.level); });

}  // namespace
