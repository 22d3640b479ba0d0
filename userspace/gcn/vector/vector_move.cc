// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of vector moves and selections, and of moves between vector and scalar registers.
#include <bit>
#include <cstdint>

#include "gcn/vector/vector_handlers.h"
#include "gcn/vector/vector_operands.h"

namespace gcn {
namespace {

std::uint32_t mov(std::uint32_t a) { return a; }
std::uint32_t cndmask(std::uint32_t a, std::uint32_t b, std::uint32_t bit) { return bit != 0 ? b : a; }

Outcome nop(const Instruction& /*instruction*/, Machine& /*machine*/) { return Outcome::kNext; }

Outcome clrexcp(const Instruction& /*instruction*/, Machine& machine) {
  constexpr std::uint32_t kExceptions = 0x1ff;  // TRAPSTS.EXCP
  machine.wave.trapsts &= ~kExceptions;
  return Outcome::kNext;
}

// Reads the lane number of v_readlane and v_writelane. Returns false if there is no such operand.
bool lane_operand(const Instruction& in, const Machine& machine, unsigned& lane) {
  std::uint64_t value = 0;
  if (operand::is_vgpr(in.src[1]) || !scalar_operand(in, machine, in.src[1], U32::kKind, value)) return false;
  lane = static_cast<unsigned>(value % kLanes);
  return true;
}

// The next three handlers ignore EXEC, but v_readfirstlane reads the first active lane.
Outcome readlane(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  const Vgpr* from = operands.vgpr(in.src[0], 0, 1);
  unsigned lane = 0;
  if (from == nullptr || in.dst >= kScalars || !lane_operand(in, machine, lane)) return Outcome::kIllegal;
  write_scalar(machine.wave, in.dst, (*from)[lane]);
  return Outcome::kNext;
}

Outcome readfirstlane(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  const Vgpr* from = operands.vgpr(in.src[0], 0, 1);
  if (from == nullptr || in.dst >= kScalars) return Outcome::kIllegal;
  const std::uint64_t exec = machine.wave.exec();
  const unsigned lane = exec == 0 ? 0 : static_cast<unsigned>(std::countr_zero(exec));
  write_scalar(machine.wave, in.dst, (*from)[lane]);
  return Outcome::kNext;
}

Outcome writelane(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  Vgpr* to = operands.vgpr(in.dst, 3, 1);
  unsigned lane = 0;
  std::uint64_t value = 0;
  if (to == nullptr || operand::is_vgpr(in.src[0]) || !lane_operand(in, machine, lane) ||
      !scalar_operand(in, machine, in.src[0], U32::kKind, value)) {
    return Outcome::kIllegal;
  }
  (*to)[lane] = static_cast<std::uint32_t>(value);
  return Outcome::kNext;
}

Outcome swap(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  Vgpr* a = operands.vgpr(in.dst, 3, 1);
  Vgpr* b = operands.vgpr(in.src[0], 0, 1);
  if (a == nullptr || b == nullptr || in.lanes != LaneMode::kPlain) return Outcome::kIllegal;
  const Vgpr old = *a;
  copy_lanes(*a, *b, operands.active());
  copy_lanes(*b, old, operands.active());
  return Outcome::kNext;
}

// op_sel chooses a register of each pair.
Outcome pk_mov(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  Source low;
  Source high;
  if (!operands.check_dst(U64::kKind) || !operands.read(0, U32::kKind, low, Part::kLow) ||
      !operands.read(1, U32::kKind, high, Part::kLow)) {
    return Outcome::kIllegal;
  }
  Results results;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    results.lo[lane] = low.lo[lane];
    results.hi[lane] = high.lo[lane];
  }
  operands.write(U64::kKind, results);
  return Outcome::kNext;
}

// Accumulation registers have the numbers of vector registers; the operation decides which of the two it accesses.
Vgpr* agpr(Wave& wave, std::uint16_t number) {
  if (!operand::is_vgpr(number)) return nullptr;
  const std::size_t index = number - std::size_t{operand::kVgpr0};
  return index < wave.agpr.size() ? &wave.agpr[index] : nullptr;
}

Outcome accvgpr_read(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  const Vgpr* from = agpr(machine.wave, in.src[0]);
  Vgpr* to = operands.vgpr(in.dst, 3, 1);
  if (from == nullptr || to == nullptr) return Outcome::kIllegal;
  copy_lanes(*to, *from, operands.active());
  return Outcome::kNext;
}

Outcome accvgpr_write(const Instruction& in, Machine& machine) {
  const VectorOperands operands(in, machine);
  Vgpr* to = agpr(machine.wave, in.dst);
  Source from;
  if (to == nullptr || !operands.read(0, U32::kKind, from)) return Outcome::kIllegal;
  Vgpr value;
  for (unsigned lane = 0; lane < kLanes; ++lane) value[lane] = from.lo[lane];
  copy_lanes(*to, value, operands.active());
  return Outcome::kNext;
}

Outcome accvgpr_mov(const Instruction& in, Machine& machine) {
  const Vgpr* from = agpr(machine.wave, in.src[0]);
  Vgpr* to = agpr(machine.wave, in.dst);
  if (from == nullptr || to == nullptr) return Outcome::kIllegal;
  copy_lanes(*to, *from, machine.wave.exec());
  return Outcome::kNext;
}

}  // namespace

void add_vector_move_handlers(HandlerTable& table) {
  table.set(Op::kVNop, nop);
  table.set(Op::kVClrexcp, clrexcp);
  table.set(Op::kVMovB32, vector<U32(B32), mov>);
  table.set(Op::kVCndmaskB32, vector<U32(B32, B32, MaskBit), cndmask>);
  table.set(Op::kVSwapB32, swap);
  table.set(Op::kVReadlaneB32, readlane);
  table.set(Op::kVReadfirstlaneB32, readfirstlane);
  table.set(Op::kVWritelaneB32, writelane);
  table.set(Op::kVPkMovB32, pk_mov);
  table.set(Op::kVAccvgprReadB32, accvgpr_read);
  table.set(Op::kVAccvgprWriteB32, accvgpr_write);
  table.set(Op::kVAccvgprMovB32, accvgpr_mov);
}

}  // namespace gcn
