// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The bits of page table entries, and how the formats of the generations (enum vasic_pte_format) differ.
// Facts: amdgpu_vm.h (AMDGPU_PTE_*, AMDGPU_PDE_*), gmc_v7_0.c to gmc_v12_0.c (get_vm_pde, get_vm_pte).
#pragma once

#include <cstdint>

#include "vasic/vasic_abi.h"

namespace vasicd {

namespace pte {
inline constexpr std::uint64_t kValid = 1u << 0;
inline constexpr std::uint64_t kSystem = 1u << 1;
inline constexpr std::uint64_t kExecutable = 1u << 4;
inline constexpr std::uint64_t kReadable = 1u << 5;
inline constexpr std::uint64_t kWriteable = 1u << 6;
inline constexpr std::uint64_t kPrt = std::uint64_t{1} << 51;   // gfx9 to gfx11
inline constexpr std::uint64_t kHuge = std::uint64_t{1} << 54;  // this PDE is a leaf; gfx9 to gfx11
inline constexpr std::uint64_t kTranslateFurther = std::uint64_t{1} << 56;
inline constexpr std::uint64_t kPrtGfx12 = std::uint64_t{1} << 56;
inline constexpr std::uint64_t kHugeGfx12 = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kAddressMask = 0x0000FFFFFFFFF000;
inline constexpr std::uint64_t kAddressMaskGfx7 = 0x000000FFFFFFF000;
// An absent entry whose faults must not be retried (AMDGPU_VM_NORETRY_FLAGS). AMDGPU_VM_NORETRY_FLAGS_TF says so too:
// valid and PRT at the same time, which no mapping is.
inline constexpr std::uint64_t kNoRetry = kExecutable | kHuge | kTranslateFurther;
}  // namespace pte

struct PageFormat {
  unsigned levels = 3;  // page directories above a page table
  unsigned va_bits = 48;
  bool directory_is_mc = false;  // directory entries hold MC addresses, without flags that say VRAM or system
  std::uint64_t address_mask = pte::kAddressMask;
  std::uint64_t huge = pte::kHuge;         // 0: a PDE is never a leaf
  std::uint64_t prt = pte::kPrt;           // 0: none (gfx7 and gfx8 have apertures for it)
  std::uint64_t no_retry = pte::kNoRetry;  // 0: none
};

constexpr PageFormat page_format(std::uint32_t pte_format) {
  PageFormat format;
  if (pte_format == VASIC_PTE_GFX7) {
    format = {.levels = 1,
              .va_bits = 40,
              .directory_is_mc = true,
              .address_mask = pte::kAddressMaskGfx7,
              .huge = 0,
              .prt = 0,
              .no_retry = 0};
  } else if (pte_format == VASIC_PTE_GFX12) {
    format.huge = pte::kHugeGfx12;
    format.prt = pte::kPrtGfx12;
    format.no_retry = 0;
  }
  return format;
}

}  // namespace vasicd
