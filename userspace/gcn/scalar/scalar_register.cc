// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Hardware registers (s_getreg, s_setreg) and the indexing mode of vector registers (s_set_gpr_idx_*).
// Source: section "Hardware registers" of the ISA documents.
#include "gcn/scalar/scalar.h"

namespace gcn {
namespace {

using U32 = std::uint32_t;

enum HardwareRegister : U32 {
  kMode = 1,
  kStatus = 2,
  kTrapStatus = 3,
  kHardwareId = 4,
  kGprAllocation = 5,
  kLdsAllocation = 6,
  kInstructionBufferStatus = 7,
  kShMemBases = 15,
};

// The bits that a wave may change without privilege. MODE: rounding, denormals, clamping, IEEE, exceptions, fp16
// overflow, indexing; not DEBUG_EN and not VSKIP. TRAPSTS: the exceptions seen so far.
constexpr U32 kModeWritable =
    0x0ff | mode::kDx10Clamp | mode::kIeee | 0x1ff000 | mode::kFp16Overflow | mode::kGprIdxEnable;
constexpr U32 kTrapStatusWritable = 0x1ff;

// The field of a register that simm16 of s_getreg and s_setreg selects.
struct Field {
  U32 id;
  unsigned first;
  U32 mask;
};

Field field(const Instruction& instruction) {
  const auto simm16 = static_cast<U32>(instruction.offset);
  const unsigned bits = (simm16 >> 11 & 31) + 1;
  return {simm16 & 63, simm16 >> 6 & 31, static_cast<U32>((std::uint64_t{1} << bits) - 1)};
}

// Registers hold sizes in granules, less one.
U32 granules(std::size_t count, std::size_t granule) {
  return count == 0 ? 0 : static_cast<U32>((count - 1) / granule);
}

U32 gpr_allocation(const Wave& wave) {
  const bool unified = wave.isa == Isa::kGfx90a;
  const std::size_t vgprs = wave.vgpr.size() + (unified ? wave.agpr.size() : 0);
  return (granules(vgprs, unified ? 8 : 4) & 63) << 8 | (granules(wave.sgprs, 16) & 15) << 24;
}

U32 lds_allocation(const Shared& shared) {
  constexpr std::size_t kGranule = 256;
  return static_cast<U32>((shared.lds.size() + kGranule - 1) / kGranule & 0x1ff) << 12;
}

U32 status_register(const Wave& wave) {
  const U32 stored = wave.status & ~(status::kScc | status::kExecz | status::kVccz);
  return stored | (wave.scc ? status::kScc : 0) | (wave.exec() == 0 ? status::kExecz : 0) |
         (wave.vcc() == 0 ? status::kVccz : 0);
}

U32 shared_memory_bases(const Shared& shared) {
  return static_cast<U32>(shared.shared_base >> 48) << 16 | static_cast<U32>(shared.private_base >> 48);
}

U32 read_hardware_register(U32 id, const Machine& machine) {
  switch (id) {
    case kMode:
      return machine.wave.mode;
    case kStatus:
      return status_register(machine.wave);
    case kTrapStatus:
      return machine.wave.trapsts;
    case kHardwareId:
      return machine.wave.hw_id;
    case kGprAllocation:
      return gpr_allocation(machine.wave);
    case kLdsAllocation:
      return lds_allocation(machine.shared);
    case kShMemBases:
      return shared_memory_bases(machine.shared);
    case kInstructionBufferStatus:  // nothing is ever outstanding
    default:
      return 0;
  }
}

Outcome getreg(const Instruction& instruction, Machine& machine) {
  const Field f = field(instruction);
  put(machine, instruction.dst, read_hardware_register(f.id, machine) >> f.first & f.mask);
  return Outcome::kNext;
}

// Writes to other registers are ignored.
void write_field(Wave& wave, const Field& f, U32 value) {
  const U32 mask = f.mask << f.first;
  const auto merge = [&](U32& reg, U32 writable) {
    reg = (reg & ~(mask & writable)) | (value << f.first & mask & writable);
  };
  if (f.id == kMode) merge(wave.mode, kModeWritable);
  if (f.id == kTrapStatus) merge(wave.trapsts, kTrapStatusWritable);
}

Outcome setreg(const Instruction& instruction, Machine& machine) {
  write_field(machine.wave, field(instruction), read_scalar<U32>(instruction, machine, instruction.src[0]));
  return Outcome::kNext;
}

Outcome setreg_literal(const Instruction& instruction, Machine& machine) {
  write_field(machine.wave, field(instruction), instruction.literal);
  return Outcome::kNext;
}

// M0 holds the index (7:0) and which operands it is added to (15:12); Wave::gpr_idx is the same for the vector side.
constexpr U32 kIndex = 0xff;
constexpr U32 kOperands = 0xf000;

void set_index(Wave& wave, U32 mask, U32 value) {
  U32& m0 = wave.scalar[operand::kM0];
  m0 = (m0 & ~mask) | (value & mask);
  wave.gpr_idx = m0 & (kIndex | kOperands);
}

Outcome index_on(const Instruction& instruction, Machine& machine) {
  const U32 index = read_scalar<U32>(instruction, machine, instruction.src[0]) & kIndex;
  // The field of the second source is the constant itself.
  set_index(machine.wave, kIndex | kOperands, index | U32{instruction.src[1]} << 12);
  machine.wave.mode |= mode::kGprIdxEnable;
  return Outcome::kNext;
}

Outcome index_off(const Instruction& /*instruction*/, Machine& machine) {
  machine.wave.mode &= ~mode::kGprIdxEnable;
  return Outcome::kNext;
}

Outcome index_operands(const Instruction& instruction, Machine& machine) {
  set_index(machine.wave, kOperands, static_cast<U32>(instruction.offset) << 12);
  return Outcome::kNext;
}

Outcome index_value(const Instruction& instruction, Machine& machine) {
  set_index(machine.wave, kIndex, read_scalar<U32>(instruction, machine, instruction.src[0]));
  return Outcome::kNext;
}

}  // namespace

void add_scalar_register_handlers(HandlerTable& table) {
  table.set(Op::kSGetregB32, getreg);
  table.set(Op::kSSetregB32, setreg);
  table.set(Op::kSSetregImm32B32, setreg_literal);
  table.set(Op::kSSetGprIdxOn, index_on);
  table.set(Op::kSSetGprIdxOff, index_off);
  table.set(Op::kSSetGprIdxMode, index_operands);
  table.set(Op::kSSetGprIdxIdx, index_value);
}

}  // namespace gcn
