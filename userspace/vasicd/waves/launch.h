// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a dispatch asks for, whether it came as an AQL packet or by registers, and how much of a chip it needs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "gcn/isa/wave.h"
#include "packets/aql.h"
#include "packets/compute.h"
#include "vasic/vasic_abi.h"
#include "vasicd/mem/memory.h"

namespace vasicd {

// Why the command processor does not begin a dispatch.
struct LaunchError {
  enum class Kind : std::uint8_t {
    kDimensions,
    kGroupSize,
    kGroupMemory,
    kCode,
    kRegisters,
    kScratch,  // the queue has too little scratch memory
  };
  Kind kind = Kind::kDimensions;
};
// The value for the queue's inactive signal.
[[nodiscard]] std::uint64_t inactive_code(LaunchError::Kind kind);
[[nodiscard]] const char* name(LaunchError::Kind kind);

using Dim3 = std::array<std::uint32_t, 3>;

struct Launch {
  GpuAddr code = 0;
  std::uint32_t rsrc1 = 0;
  std::uint32_t rsrc2 = 0;
  std::uint32_t rsrc3 = 0;
  std::array<std::uint32_t, packets::compute::kUserSgprs> user_sgprs = {};
  Dim3 first = {};  // id of the first group
  Dim3 groups = {1, 1, 1};
  Dim3 size = {1, 1, 1};       // work-items of a group
  Dim3 last_size = {1, 1, 1};  // work-items of the last group in each dimension
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_wave_bytes = 0;  // of each wave's part of the scratch memory; 0: none
  std::uint32_t scratch_waves = 0;       // number of these parts

  [[nodiscard]] std::uint64_t group_count() const { return std::uint64_t{groups[0]} * groups[1] * groups[2]; }
  [[nodiscard]] Dim3 group_id(std::uint64_t index) const;
  [[nodiscard]] Dim3 group_size(const Dim3& id) const;
  [[nodiscard]] std::uint32_t waves_per_group() const;
};

// The dialect of this chip's waves; nothing if they are not executed.
[[nodiscard]] std::optional<gcn::Isa> isa_of(const vasic_info& info);

// Registers of a wave, as allocated.
struct WaveSize {
  unsigned vgprs = 0;
  unsigned agprs = 0;
  unsigned sgprs = 0;
};
[[nodiscard]] WaveSize wave_size(gcn::Isa isa, const Launch& launch);

// How many groups a compute unit holds at once; 0: not even one.
[[nodiscard]] unsigned groups_per_cu(gcn::Isa isa, const Launch& launch);

// Whether a launch can be executed at all. Scratch memory is not checked here.
base::Expected<void, LaunchError> check(gcn::Isa isa, const Launch& launch);

// What a dispatch takes from the queue of its AQL packet: members of amd_queue_t.
struct QueueScratch {
  GpuAddr queue = 0;  // the object
  std::uint32_t tmpring_size = 0;
  std::array<std::uint32_t, 4> descriptor = {};
  GpuAddr location = 0;
};

// Both check the launch that they return. `packet_addr` is the address of the packet, `id` its index.
base::Expected<Launch, LaunchError> launch_of(gcn::Isa isa, const packets::aql::KernelDispatch& packet,
                                              const packets::compute::KernelDescriptor& kernel,
                                              const QueueScratch& scratch, GpuAddr packet_addr, std::uint64_t id);

// The COMPUTE_* registers, from kDispatchInitiator on.
using ComputeRegisters =
    std::array<std::uint32_t, packets::compute::kRegistersEnd - packets::compute::kDispatchInitiator>;
// `dims` and `initiator` are the packet's.
base::Expected<Launch, LaunchError> launch_of(gcn::Isa isa, const ComputeRegisters& registers, const Dim3& dims,
                                              std::uint32_t initiator);

}  // namespace vasicd
