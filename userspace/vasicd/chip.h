// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which GPUs can be modelled: the parser of a --gpu SPEC that starts from a row of chip_table.h.
// The guest driver has no table of its own; everything it knows is struct vasic_info.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "vasic/vasic_abi.h"

namespace vasicd {

inline constexpr unsigned kMaxHiveNodes = 8;

[[nodiscard]] std::vector<std::string_view> chip_names();

// SPEC is CHIP[,key=value]...; the error is one line that names what is allowed.
//   vram, vis   size of VRAM and of its CPU-visible part
//   cu, se      active compute units and shader engines, of each XCC
//   sdma, xcc   SDMA engines and XCCs
//   unique-id   hexadecimal
//   hive        id of an XGMI hive, hexadecimal; GPUs of one VM with the same id are its nodes
//   fw          version of the MEC firmware
base::Result<vasic_info> parse_gpu_spec(std::string_view spec, unsigned gpu_index);

// Numbers the nodes of each hive among all GPUs of a VM.
base::Status join_hives(std::span<vasic_info> gpus);

}  // namespace vasicd
