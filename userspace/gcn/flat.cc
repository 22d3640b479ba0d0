// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// FLAT, GLOBAL and SCRATCH instructions: where each lane's data is.
//
// Scratch: each lane's own memory. The wave's begins at FLAT_SCRATCH; dword n of all 64 lanes lies together, so lane l
// finds byte b at FLAT_SCRATCH + b / 4 * 256 + l * 4 + b % 4.
#include "gcn/lane_operations.h"
#include "gcn/memory_parts.h"
#include "gcn/scalar_operand.h"
#include "gcn/scratch.h"

namespace gcn {
namespace {

Address offset_of(const Instruction& instruction) { return static_cast<Address>(std::int64_t{instruction.offset}); }

Outcome find_global(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  const bool has_saddr = instruction.src[2] != operand::kNone;
  const Vgpr* const vaddr = find_registers(machine.wave, instruction.src[0], has_saddr ? 1 : 2);
  if (vaddr == nullptr || instruction.lds) return Outcome::kIllegal;
  const Address base =
      offset_of(instruction) + (has_saddr ? read_scalar64(instruction, machine, instruction.src[2]) : 0);
  bool found = true;
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    const Address address = base + (has_saddr ? vaddr[0][lane] : value_of<std::uint64_t>(vaddr, lane));
    access.note_alignment(address);
    found = found && access.add(lane, address);
  });
  return found ? Outcome::kNext : Outcome::kFault;
}

Outcome find_scratch(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  const bool has_saddr = instruction.src[2] != operand::kNone;
  const Vgpr* const vaddr = has_saddr ? nullptr : find_registers(machine.wave, instruction.src[0], 1);
  if ((vaddr == nullptr && !has_saddr) || instruction.lds) return Outcome::kIllegal;
  const std::uint32_t base = static_cast<std::uint32_t>(instruction.offset) +
                             (has_saddr ? read_scalar32(instruction, machine, instruction.src[2]) : 0);
  const Scratch scratch(machine.wave);
  bool found = true;
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    const std::uint32_t offset = base + (has_saddr ? 0 : (*vaddr)[lane]);
    access.note_alignment(offset);
    found = found && scratch.add(access, lane, offset);
  });
  return found ? Outcome::kNext : Outcome::kFault;
}

// What the upper half of an address means. An aperture at 0 is none.
enum class Segment : std::uint8_t { kGlobal, kShared, kPrivate };

Segment segment_of(const Shared& shared, Address address) {
  const Address high = address >> 32;
  if (high == 0) return Segment::kGlobal;
  if (high == shared.shared_base >> 32) return Segment::kShared;
  return high == shared.private_base >> 32 ? Segment::kPrivate : Segment::kGlobal;
}

Outcome find_flat_lane(const Machine& machine, const Scratch& scratch, LaneAccess& access, unsigned lane,
                       Address address) {
  access.note_alignment(address);
  const auto offset = static_cast<std::uint32_t>(address);
  switch (segment_of(machine.shared, address)) {
    case Segment::kShared: {
      const std::span<std::byte> lds = machine.shared.lds;
      if (offset >= lds.size() || access.bytes() > lds.size() - offset) return Outcome::kViolation;
      access.add_host(lane, &lds[offset]);
      return Outcome::kNext;
    }
    case Segment::kPrivate:
      return scratch.add(access, lane, offset) ? Outcome::kNext : Outcome::kFault;
    default:
      return access.add(lane, address) ? Outcome::kNext : Outcome::kFault;
  }
}

Outcome find_flat(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  const Vgpr* const vaddr = find_registers(machine.wave, instruction.src[0], 2);
  if (vaddr == nullptr || instruction.lds) return Outcome::kIllegal;
  const Scratch scratch(machine.wave);
  Outcome outcome = Outcome::kNext;
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    if (outcome != Outcome::kNext) return;
    const Address address = offset_of(instruction) + value_of<std::uint64_t>(vaddr, lane);
    outcome = find_flat_lane(machine, scratch, access, lane, address);
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
