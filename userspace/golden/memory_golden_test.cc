// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Page-table entries and interrupts.
#include <gtest/gtest.h>

#include "golden/facts.h"
#include "packets/ih.h"
#include "vasicd/mem/page_walker.h"

namespace {

namespace ih = packets::ih;
namespace pte = vasicd::pte;
using golden::value;

TEST(PteGolden, bits_are_the_kernels) {
  EXPECT_EQ(pte::kValid, value("vm/AMDGPU_PTE_VALID"));
  EXPECT_EQ(pte::kSystem, value("vm/AMDGPU_PTE_SYSTEM"));
  EXPECT_EQ(pte::kReadable, value("vm/AMDGPU_PTE_READABLE"));
  EXPECT_EQ(pte::kWriteable, value("vm/AMDGPU_PTE_WRITEABLE"));
  EXPECT_EQ(pte::kExecutable, value("vm/AMDGPU_PTE_EXECUTABLE"));
  EXPECT_EQ(pte::kHuge, value("vm/AMDGPU_PDE_PTE"));
  EXPECT_EQ(pte::kPrt, value("vm/AMDGPU_PTE_PRT"));
  EXPECT_EQ(pte::kTranslateFurther, value("vm/AMDGPU_PTE_TF"));
  EXPECT_EQ(pte::kHugeGfx12, value("vm/AMDGPU_PDE_PTE_GFX12"));
  EXPECT_EQ(pte::kPrtGfx12, value("vm/AMDGPU_PTE_PRT_GFX12"));
  EXPECT_EQ(pte::kNoRetry, value("vm/AMDGPU_VM_NORETRY_FLAGS"));
}

TEST(PteGolden, no_flag_is_inside_the_address) {
  for (const char* flag : {"PTE_VALID", "PTE_SYSTEM", "PTE_SNOOPED", "PTE_EXECUTABLE", "PTE_READABLE", "PTE_WRITEABLE",
                           "PTE_PRT", "PDE_PTE", "PTE_TF", "PTE_PRT_GFX12", "PDE_PTE_GFX12", "PTE_IS_PTE",
                           "PTE_MTYPE_VG10_MASK", "PTE_MTYPE_NV10_MASK", "PTE_MTYPE_GFX12_MASK"}) {
    EXPECT_EQ(pte::kAddressMask & value(std::string("vm/AMDGPU_") + flag), 0u) << flag;
  }
}

TEST(IhGolden, clients_of_gfx9_are_the_kernels) {
  EXPECT_EQ(ih::kClientIh, value("clients/SOC15_IH_CLIENTID_IH"));
  EXPECT_EQ(ih::kClientSe0Sh, value("clients/SOC15_IH_CLIENTID_SE0SH"));
  EXPECT_EQ(ih::kClientVmc, value("clients/SOC15_IH_CLIENTID_VMC"));
  EXPECT_EQ(ih::kClientGrbmCp, value("clients/SOC15_IH_CLIENTID_GRBM_CP"));
  EXPECT_EQ(ih::kClientUtcl2, value("clients/SOC15_IH_CLIENTID_UTCL2"));
}

TEST(IhGolden, sdma_engines_have_the_kernels_clients) {
  for (std::size_t engine = 0; engine < ih::kSdmaClients.size(); ++engine) {
    EXPECT_EQ(ih::kSdmaClients[engine], value("clients/SOC15_IH_CLIENTID_SDMA" + std::to_string(engine)));
  }
}

TEST(IhGolden, sources_are_the_kernels) {
  EXPECT_EQ(ih::kSourceVmFault, value("irq_vmc/VMC_1_0__SRCID__VM_FAULT"));
  EXPECT_EQ(ih::kSourceCpEndOfPipe, value("irq_gfx9/GFX_9_0__SRCID__CP_EOP_INTERRUPT"));
  EXPECT_EQ(ih::kSourceCpBadOpcode, value("irq_gfx9/GFX_9_0__SRCID__CP_BAD_OPCODE_ERROR"));
  EXPECT_EQ(ih::kSourceCpPrivilegedRegister, value("irq_gfx9/GFX_9_0__SRCID__CP_PRIV_REG_FAULT"));
  EXPECT_EQ(ih::kSourceSqInterrupt, value("irq_gfx9/GFX_9_0__SRCID__SQ_INTERRUPT_ID"));
  EXPECT_EQ(ih::kSourceSdmaTrap, value("irq_sdma4/SDMA0_4_0__SRCID__SDMA_TRAP"));
  EXPECT_EQ(ih::kSourceSdmaSrbmWrite, value("irq_sdma4/SDMA0_4_0__SRCID__SDMA_SRBMWRITE"));
}

}  // namespace
