// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a compute dispatch is described by on gfx9: the COMPUTE_* registers (amd/include/asic_reg/gc/gc_9_0_offset.h,
// gc_9_0_sh_mask.h), and the kernel descriptor that an AQL packet points to (LLVM, "User guide for AMDGPU backend":
// code object v3 kernel descriptor, initial kernel execution state).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "packets/words.h"

namespace packets::compute {

// Register indices; packets name them like this, too.
inline constexpr std::uint32_t kDispatchInitiator = 0x2e00;
inline constexpr std::uint32_t kStartX = 0x2e04;
inline constexpr std::uint32_t kNumThreadX = 0x2e07;
inline constexpr std::uint32_t kPgmLo = 0x2e0c;
inline constexpr std::uint32_t kPgmHi = 0x2e0d;
inline constexpr std::uint32_t kPgmRsrc1 = 0x2e12;
inline constexpr std::uint32_t kPgmRsrc2 = 0x2e13;
inline constexpr std::uint32_t kTmpringSize = 0x2e18;
inline constexpr std::uint32_t kPgmRsrc3 = 0x2e2d;  // gfx90a
inline constexpr std::uint32_t kUserData0 = 0x2e40;
inline constexpr std::size_t kUserSgprs = 16;
// A gfx9 MQD begins with its header and these registers: register r is dword r - kDispatchInitiator + 1.
inline constexpr std::uint32_t kRegistersEnd = kUserData0 + kUserSgprs;

// COMPUTE_DISPATCH_INITIATOR
inline constexpr Field kComputeShaderEn{0, 1};
inline constexpr Field kPartialTgEn{1, 1};
inline constexpr Field kForceStartAt000{2, 1};
inline constexpr Field kUseThreadDimensions{5, 1};
// COMPUTE_NUM_THREAD_*
inline constexpr Field kNumThreadFull{0, 16};
inline constexpr Field kNumThreadPartial{16, 16};
// COMPUTE_PGM_RSRC1
inline constexpr Field kRsrc1Vgprs{0, 6};
inline constexpr Field kRsrc1Sgprs{6, 4};
inline constexpr Field kRsrc1FloatMode{12, 8};
inline constexpr Field kRsrc1Priv{20, 1};
inline constexpr Field kRsrc1Dx10Clamp{21, 1};
inline constexpr Field kRsrc1IeeeMode{23, 1};
inline constexpr Field kRsrc1Fp16Overflow{26, 1};
// COMPUTE_PGM_RSRC2
inline constexpr Field kRsrc2ScratchEn{0, 1};
inline constexpr Field kRsrc2UserSgpr{1, 5};
inline constexpr Field kRsrc2TgidXEn{7, 1};
inline constexpr Field kRsrc2TgidYEn{8, 1};
inline constexpr Field kRsrc2TgidZEn{9, 1};
inline constexpr Field kRsrc2TgSizeEn{10, 1};
inline constexpr Field kRsrc2TidigCompCnt{11, 2};
inline constexpr Field kRsrc2LdsSize{15, 9};
inline constexpr std::uint32_t kLdsGranuleBytes = 512;
// COMPUTE_PGM_RSRC3 of gfx90a
inline constexpr Field kRsrc3AccumOffset{0, 6};
// COMPUTE_TMPRING_SIZE
inline constexpr Field kTmpringWaves{0, 12};
inline constexpr Field kTmpringWaveSize{12, 13};
inline constexpr std::uint32_t kTmpringGranuleBytes = 1024;

// What kernel_object of a dispatch packet points to.
struct KernelDescriptor {
  std::uint32_t group_segment_fixed_size = 0;
  std::uint32_t private_segment_fixed_size = 0;
  std::uint32_t kernarg_size = 0;
  std::uint8_t reserved0[4] = {};
  std::int64_t code_entry_byte_offset = 0;  // from the descriptor
  std::uint8_t reserved1[20] = {};
  std::uint32_t pgm_rsrc3 = 0;
  std::uint32_t pgm_rsrc1 = 0;
  std::uint32_t pgm_rsrc2 = 0;
  std::uint16_t code_properties = 0;
  std::uint8_t reserved2[6] = {};
};
static_assert(sizeof(KernelDescriptor) == 64);
static_assert(offsetof(KernelDescriptor, code_entry_byte_offset) == 16);
static_assert(offsetof(KernelDescriptor, pgm_rsrc3) == 44);
static_assert(offsetof(KernelDescriptor, pgm_rsrc1) == 48);
static_assert(offsetof(KernelDescriptor, code_properties) == 56);

// code_properties: which user SGPRs the CP fills, in this order.
inline constexpr Field kSgprPrivateSegmentBuffer{0, 1};  // 4 SGPRs
inline constexpr Field kSgprDispatchPtr{1, 1};           // 2
inline constexpr Field kSgprQueuePtr{2, 1};              // 2
inline constexpr Field kSgprKernargSegmentPtr{3, 1};     // 2
inline constexpr Field kSgprDispatchId{4, 1};            // 2
inline constexpr Field kSgprFlatScratchInit{5, 1};       // 2
inline constexpr Field kSgprPrivateSegmentSize{6, 1};    // 1

}  // namespace packets::compute
