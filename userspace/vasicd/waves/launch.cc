// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Packets and registers to launches; occupancy.
#include "vasicd/waves/launch.h"

#include <algorithm>

namespace vasicd {

namespace aql = packets::aql;
namespace compute = packets::compute;

namespace {

constexpr std::uint32_t kMaxGroupItems = 1024;
constexpr std::uint32_t kMaxLdsBytes = 65536;
constexpr std::uint64_t kMaxGroups = std::uint64_t{1} << 40;  // more would not end within years
constexpr unsigned kSimds = 4;
constexpr unsigned kSgprsPerSimd = 800;
constexpr unsigned kMaxGroupsPerCu = 16;  // of more than one wave

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t granule) {
  return (value + granule - 1) / granule * granule;
}

// Fills user SGPRs from the front; those that do not fit are dropped, as the descriptor's count has it.
class UserSgprs {
 public:
  explicit UserSgprs(Launch& launch) : launch_(launch) {}
  void put(std::uint32_t value) {
    if (next_ < launch_.user_sgprs.size()) launch_.user_sgprs[next_] = value;
    ++next_;
  }
  void put64(std::uint64_t value) {
    put(packets::lo32(value));
    put(packets::hi32(value));
  }

 private:
  Launch& launch_;
  std::size_t next_ = 0;
};

void fill_user_sgprs(Launch& launch, std::uint32_t properties, const aql::KernelDispatch& packet,
                     const QueueScratch& scratch, GpuAddr packet_addr, std::uint64_t id) {
  UserSgprs sgprs(launch);
  if (compute::kSgprPrivateSegmentBuffer.get(properties) != 0) {
    for (const std::uint32_t word : scratch.descriptor) sgprs.put(word);
  }
  if (compute::kSgprDispatchPtr.get(properties) != 0) sgprs.put64(packet_addr);
  if (compute::kSgprQueuePtr.get(properties) != 0) sgprs.put64(scratch.queue);
  if (compute::kSgprKernargSegmentPtr.get(properties) != 0) sgprs.put64(packet.kernarg_address);
  if (compute::kSgprDispatchId.get(properties) != 0) sgprs.put64(id);
  if (compute::kSgprFlatScratchInit.get(properties) != 0) sgprs.put64(scratch.location);
  if (compute::kSgprPrivateSegmentSize.get(properties) != 0) sgprs.put(packet.private_segment_size);
}

// Size of the last group when `items` are divided into groups of `size`.
constexpr std::uint32_t last_of(std::uint32_t items, std::uint32_t size) {
  const std::uint32_t rest = items % size;
  return rest == 0 ? size : rest;
}

}  // namespace

std::uint64_t inactive_code(LaunchError::Kind kind) {
  switch (kind) {
    case LaunchError::Kind::kDimensions:
      return aql::kInactiveDimensions;
    case LaunchError::Kind::kGroupSize:
      return aql::kInactiveGroupSize;
    case LaunchError::Kind::kGroupMemory:
      return aql::kInactiveGroupMemory;
    case LaunchError::Kind::kCode:
      return aql::kInactiveCode;
    case LaunchError::Kind::kRegisters:
      return aql::kInactiveRegisters;
    case LaunchError::Kind::kScratch:
      break;
  }
  return aql::kInactiveScratch;
}

const char* name(LaunchError::Kind kind) {
  switch (kind) {
    case LaunchError::Kind::kDimensions:
      return "dimensions";
    case LaunchError::Kind::kGroupSize:
      return "group-size";
    case LaunchError::Kind::kGroupMemory:
      return "group-memory";
    case LaunchError::Kind::kCode:
      return "code";
    case LaunchError::Kind::kRegisters:
      return "registers";
    case LaunchError::Kind::kScratch:
      break;
  }
  return "scratch";
}

Dim3 Launch::group_id(std::uint64_t index) const {
  const auto x = static_cast<std::uint32_t>(index % groups[0]);
  const auto y = static_cast<std::uint32_t>(index / groups[0] % groups[1]);
  const auto z = static_cast<std::uint32_t>(index / groups[0] / groups[1]);
  return {x, y, z};
}

Dim3 Launch::group_size(const Dim3& id) const {
  Dim3 items = size;
  for (unsigned i = 0; i < items.size(); ++i) {
    if (id[i] + 1 == groups[i]) items[i] = last_size[i];
  }
  return items;
}

std::uint32_t Launch::waves_per_group() const {
  return round_up(size[0] * size[1] * size[2], gcn::kLanes) / gcn::kLanes;
}

std::optional<gcn::Isa> isa_of(const vasic_info& info) {
  switch (info.gc_ip) {
    case VASIC_IP_VERSION(9u, 0u, 1u):
      return gcn::Isa::kGfx900;
    case VASIC_IP_VERSION(9u, 4u, 0u):
      return gcn::Isa::kGfx906;
    case VASIC_IP_VERSION(9u, 4u, 1u):
      return gcn::Isa::kGfx908;
    case VASIC_IP_VERSION(9u, 4u, 2u):
      return gcn::Isa::kGfx90a;
    default:
      return std::nullopt;
  }
}

WaveSize wave_size(gcn::Isa isa, const Launch& launch) {
  constexpr unsigned kGranule = 4;
  constexpr unsigned kGranule90a = 8;
  constexpr unsigned kMaxVgprs = 256;
  const std::uint32_t vgprs = compute::kRsrc1Vgprs.get(launch.rsrc1) + 1;
  // Counted in eights, allocated in sixteens; VCC, FLAT_SCRATCH and XNACK_MASK are among them.
  const unsigned sgprs = round_up((compute::kRsrc1Sgprs.get(launch.rsrc1) + 1) * 8, 16);
  if (isa == gcn::Isa::kGfx90a) {
    const unsigned all = vgprs * kGranule90a;
    const unsigned arch = std::min({(compute::kRsrc3AccumOffset.get(launch.rsrc3) + 1) * kGranule, all, kMaxVgprs});
    return {.vgprs = arch, .agprs = all - arch, .sgprs = sgprs};
  }
  const unsigned arch = vgprs * kGranule;
  return {.vgprs = arch, .agprs = isa == gcn::Isa::kGfx908 ? arch : 0, .sgprs = sgprs};
}

unsigned groups_per_cu(gcn::Isa isa, const Launch& launch) {
  const WaveSize size = wave_size(isa, launch);
  const bool wide = isa == gcn::Isa::kGfx90a;
  const unsigned registers = wide ? 512 : 256;
  const unsigned used = wide ? size.vgprs + size.agprs : size.vgprs;
  const unsigned max_waves = wide ? 8 : 10;
  const unsigned per_simd = std::min({max_waves, registers / used, kSgprsPerSimd / size.sgprs});
  const unsigned waves = launch.waves_per_group();
  unsigned groups = per_simd * kSimds / waves;
  if (waves > 1) groups = std::min(groups, kMaxGroupsPerCu);
  if (launch.lds_bytes > 0) groups = std::min(groups, kMaxLdsBytes / launch.lds_bytes);
  return groups;
}

base::Expected<void, LaunchError> check(gcn::Isa isa, const Launch& launch) {
  using Kind = LaunchError::Kind;
  std::uint64_t items = 1;
  for (unsigned i = 0; i < launch.size.size(); ++i) {
    if (launch.groups[i] == 0 || launch.size[i] == 0) return LaunchError{Kind::kDimensions};
    if (launch.last_size[i] == 0 || launch.last_size[i] > launch.size[i]) return LaunchError{Kind::kDimensions};
    if (launch.size[i] > kMaxGroupItems) return LaunchError{Kind::kGroupSize};
    items *= launch.size[i];
  }
  if (items > kMaxGroupItems) return LaunchError{Kind::kGroupSize};
  if (std::uint64_t{launch.groups[0]} * launch.groups[1] > kMaxGroups || launch.group_count() > kMaxGroups) {
    return LaunchError{Kind::kDimensions};
  }
  if (launch.lds_bytes > kMaxLdsBytes) return LaunchError{Kind::kGroupMemory};
  if (launch.code == 0 || launch.code % 4 != 0) return LaunchError{Kind::kCode};
  if (compute::kRsrc1Priv.get(launch.rsrc1) != 0) return LaunchError{Kind::kCode};
  const WaveSize size = wave_size(isa, launch);
  if (size.vgprs > 256 || size.agprs > 256 || groups_per_cu(isa, launch) == 0) return LaunchError{Kind::kRegisters};
  return {};
}

base::Expected<Launch, LaunchError> launch_of(gcn::Isa isa, const aql::KernelDispatch& packet,
                                              const compute::KernelDescriptor& kernel, const QueueScratch& scratch,
                                              GpuAddr packet_addr, std::uint64_t id) {
  constexpr std::uint32_t kDimensions = 3;  // bits of setup
  const std::uint32_t dimensions = packet.setup & kDimensions;
  Launch launch;
  launch.code = packet.kernel_object + static_cast<std::uint64_t>(kernel.code_entry_byte_offset);
  launch.rsrc1 = kernel.pgm_rsrc1;
  launch.rsrc2 = kernel.pgm_rsrc2;
  launch.rsrc3 = kernel.pgm_rsrc3;
  launch.lds_bytes = round_up(std::min(packet.group_segment_size, kMaxLdsBytes + 1), compute::kLdsGranuleBytes);
  for (unsigned i = 0; i < dimensions; ++i) {
    launch.size[i] = packet.workgroup_size[i];
    if (launch.size[i] == 0 || packet.grid_size[i] == 0) return LaunchError{LaunchError::Kind::kDimensions};
    launch.groups[i] = packet.grid_size[i] / launch.size[i] + (packet.grid_size[i] % launch.size[i] != 0 ? 1 : 0);
    launch.last_size[i] = last_of(packet.grid_size[i], launch.size[i]);
  }
  if (dimensions == 0) return LaunchError{LaunchError::Kind::kDimensions};
  TRY(check(isa, launch));
  if (packet.private_segment_size != 0) {
    const std::uint64_t wave_bytes = std::uint64_t{packet.private_segment_size} * gcn::kLanes;
    const std::uint64_t have =
        std::uint64_t{compute::kTmpringWaveSize.get(scratch.tmpring_size)} * compute::kTmpringGranuleBytes;
    launch.scratch_waves = compute::kTmpringWaves.get(scratch.tmpring_size);
    if (have < wave_bytes || launch.scratch_waves < launch.waves_per_group() || scratch.location == 0) {
      return LaunchError{LaunchError::Kind::kScratch};
    }
    launch.scratch_wave_bytes = static_cast<std::uint32_t>(have);
  }
  fill_user_sgprs(launch, kernel.code_properties, packet, scratch, packet_addr, id);
  return launch;
}

base::Expected<Launch, LaunchError> launch_of(gcn::Isa isa, const ComputeRegisters& registers, const Dim3& dims,
                                              std::uint32_t initiator) {
  const auto reg = [&](std::uint32_t index) { return registers[index - compute::kDispatchInitiator]; };
  Launch launch;
  launch.code = (std::uint64_t{reg(compute::kPgmHi) & 0xffu} << 32 | reg(compute::kPgmLo)) << 8;
  launch.rsrc1 = reg(compute::kPgmRsrc1);
  launch.rsrc2 = reg(compute::kPgmRsrc2);
  launch.rsrc3 = reg(compute::kPgmRsrc3);
  launch.lds_bytes = compute::kRsrc2LdsSize.get(launch.rsrc2) * compute::kLdsGranuleBytes;
  for (unsigned i = 0; i < compute::kUserSgprs; ++i) launch.user_sgprs[i] = reg(compute::kUserData0 + i);
  for (unsigned i = 0; i < dims.size(); ++i) {
    const std::uint32_t threads = reg(compute::kNumThreadX + i);
    launch.size[i] = compute::kNumThreadFull.get(threads);
    launch.last_size[i] = launch.size[i];
    launch.groups[i] = dims[i];
    if (launch.size[i] == 0 || dims[i] == 0) return LaunchError{LaunchError::Kind::kDimensions};
    if (compute::kForceStartAt000.get(initiator) == 0) launch.first[i] = reg(compute::kStartX + i);
    if (compute::kUseThreadDimensions.get(initiator) != 0) {
      launch.groups[i] = dims[i] / launch.size[i] + (dims[i] % launch.size[i] != 0 ? 1 : 0);
      launch.last_size[i] = last_of(dims[i], launch.size[i]);
    } else if (compute::kPartialTgEn.get(initiator) != 0 && compute::kNumThreadPartial.get(threads) != 0) {
      launch.last_size[i] = compute::kNumThreadPartial.get(threads);
    }
  }
  // The packet's dimensions are ends, not counts.
  for (unsigned i = 0; i < dims.size(); ++i) {
    if (launch.first[i] >= launch.groups[i]) return LaunchError{LaunchError::Kind::kDimensions};
    launch.groups[i] -= launch.first[i];
  }
  TRY(check(isa, launch));
  if (compute::kRsrc2ScratchEn.get(launch.rsrc2) != 0) {
    const std::uint32_t ring = reg(compute::kTmpringSize);
    launch.scratch_wave_bytes = compute::kTmpringWaveSize.get(ring) * compute::kTmpringGranuleBytes;
    launch.scratch_waves = compute::kTmpringWaves.get(ring);
    if (launch.scratch_wave_bytes == 0 || launch.scratch_waves < launch.waves_per_group()) {
      return LaunchError{LaunchError::Kind::kScratch};
    }
  }
  return launch;
}

}  // namespace vasicd
