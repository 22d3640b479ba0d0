// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// FLAT, GLOBAL and SCRATCH instructions, and the addresses of the lanes' data.
//
// Scratch is private memory of each lane. The wave's part begins at FLAT_SCRATCH, and dwords n of all 64 lanes are
// contiguous, so byte b of lane l is at FLAT_SCRATCH + b / 4 * 256 + l * 4 + b % 4.
#include "gcn/memory/handler_groups.h"
#include "gcn/memory/lane_operations.h"
#include "gcn/memory/scratch.h"
#include "gcn/scalar/scalar_operand.h"

namespace gcn {
namespace {

Address offset_of(const Instruction& instruction) { return static_cast<Address>(std::int64_t{instruction.offset}); }

// Computes the addresses of all lanes, because a test for active ones would be slower.
void add_to_pairs(Address base, const Vgpr* pairs, LaneAddresses& addresses) {
  for (unsigned lane = 0; lane < kLanes; ++lane) addresses[lane] = base + value_of<std::uint64_t>(pairs, lane);
}

Outcome find_global(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  const bool has_saddr = instruction.src[2] != operand::kNone;
  const Vgpr* const vaddr = find_registers(machine.wave, instruction.src[0], has_saddr ? 1 : 2);
  if (vaddr == nullptr || instruction.lds) return Outcome::kIllegal;
  const Address base =
      offset_of(instruction) + (has_saddr ? read_scalar64(instruction, machine, instruction.src[2]) : 0);
  LaneAddresses addresses;
  if (has_saddr) {
    for (unsigned lane = 0; lane < kLanes; ++lane) addresses[lane] = base + vaddr[0][lane];
  } else {
    add_to_pairs(base, vaddr, addresses);
  }
  return access.add_lanes(machine.wave.exec(), addresses) ? Outcome::kNext : Outcome::kFault;
}

Outcome find_scratch(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  const bool has_saddr = instruction.src[2] != operand::kNone;
  const Vgpr* const vaddr = has_saddr ? nullptr : find_registers(machine.wave, instruction.src[0], 1);
  if ((vaddr == nullptr && !has_saddr) || instruction.lds) return Outcome::kIllegal;
  const std::uint32_t base = static_cast<std::uint32_t>(instruction.offset) +
                             (has_saddr ? read_scalar32(instruction, machine, instruction.src[2]) : 0);
  std::array<std::uint32_t, kLanes> offsets;
  for (unsigned lane = 0; lane < kLanes; ++lane) offsets[lane] = base + (has_saddr ? 0 : (*vaddr)[lane]);
  return Scratch(machine.wave).add_lanes(access, machine.wave.exec(), offsets) ? Outcome::kNext : Outcome::kFault;
}

// The aperture that the upper half of an address selects. An aperture at 0 does not exist.
enum class Segment : std::uint8_t { kGlobal, kShared, kPrivate };

Segment segment_of(const Shared& shared, Address address) {
  const Address high = address >> 32;
  if (high == 0) return Segment::kGlobal;
  if (high == shared.shared_base >> 32) return Segment::kShared;
  return high == shared.private_base >> 32 ? Segment::kPrivate : Segment::kGlobal;
}

// Returns the active lanes whose register pair is in an aperture. The constant offset of the instruction is ignored
// here, as LLVM knows it of the hardware (AMDGPUDAGToDAGISel::SelectFlatOffsetImpl).
std::uint64_t lanes_in_apertures(const Machine& machine, const LaneAddresses& pairs) {
  // Most instructions have no address in an aperture, not even in inactive lanes. The compiler makes vector code of
  // this loop but not of the next one, which only runs if there are some.
  const Address shared = machine.shared.shared_base >> 32;
  const Address own = machine.shared.private_base >> 32;
  bool any = false;
  for (const Address address : pairs) any |= address >> 32 == shared || address >> 32 == own;
  if (!any) return 0;
  std::uint64_t lanes = 0;
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    const bool other = segment_of(machine.shared, pairs[lane]) != Segment::kGlobal;
    lanes |= std::uint64_t{other ? 1u : 0u} << lane;
  });
  return lanes;
}

// `pair` is the lane's register pair, which selects the aperture, and `constant` the offset of the instruction. Offsets
// in an aperture have 32 bits.
Outcome find_in_aperture(const Machine& machine, const Scratch& scratch, LaneAccess& access, unsigned lane,
                         Address pair, Address constant) {
  const auto offset = static_cast<std::uint32_t>(pair + constant);
  access.note_alignment(offset);
  if (segment_of(machine.shared, pair) == Segment::kPrivate) {
    return scratch.add(access, lane, offset) ? Outcome::kNext : Outcome::kFault;
  }
  const std::span<std::byte> lds = machine.shared.lds;
  if (offset >= lds.size() || access.bytes() > lds.size() - offset) return Outcome::kViolation;
  access.add_host(lane, &lds[offset]);
  return Outcome::kNext;
}

Outcome find_flat(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  const Vgpr* const vaddr = find_registers(machine.wave, instruction.src[0], 2);
  if (vaddr == nullptr || instruction.lds) return Outcome::kIllegal;
  LaneAddresses addresses;
  add_to_pairs(0, vaddr, addresses);
  const std::uint64_t others = lanes_in_apertures(machine, addresses);
  const Address constant = offset_of(instruction);
  if (constant != 0) {
    for (Address& address : addresses) address += constant;
  }
  if (!access.add_lanes(machine.wave.exec() & ~others, addresses)) return Outcome::kFault;
  const Scratch scratch(machine.wave);
  Outcome outcome = Outcome::kNext;
  for_each_lane(others, [&](unsigned lane) {
    if (outcome != Outcome::kNext) return;
    outcome = find_in_aperture(machine, scratch, access, lane, addresses[lane] - constant, constant);
  });
  return outcome;
}

}  // namespace

void add_flat_handlers(HandlerTable& table) {
  add_loads_and_stores<find_flat>(table, "flat_");
  add_atomics<find_flat>(table, "flat_");
  add_loads_and_stores<find_global>(table, "global_");
  add_atomics<find_global>(table, "global_");
  add_loads_and_stores<find_scratch>(table, "scratch_");
}

}  // namespace gcn
