// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The chips that can be modelled, as constants. A value is a fact about the chip, as the drivers (amdgpu_discovery.c,
// gfx_v*.c, kfd_device.c) and public documents have it, or a firmware version whose behaviour the engines model.
// Does not know specifications that change a chip (chip.h), nor what follows from a row (chip_properties.h).
#pragma once

#include <span>
#include <string_view>

#include "vasic/vasic_abi.h"

namespace vasicd {

struct Chip {
  std::string_view name;
  vasic_info info;             // also the upper limits of what a specification may ask for
  bool can_join_hive = false;  // has XGMI links
  bool in_rocm = false;        // the libhsakmt and rocminfo of Debian's ROCm 5.2 know it
  // The chip that this one differs from in numbers only: tests of code paths need to run on one of the two.
  std::string_view sibling_of = {};
};

[[nodiscard]] std::span<const Chip> chips();

}  // namespace vasicd
