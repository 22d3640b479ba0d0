// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Program control: branches, calls, and the operations that end, stop or delay a wave (SOPP, and some of SOP1 and
// SOPK). Not implemented: fork and join (s_cbranch_g_fork, s_cbranch_i_fork, s_cbranch_join), s_rfe, s_setvskip,
// s_setkill, s_endpgm_saved.
#include "gcn/scalar/scalar.h"

namespace gcn {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

// The hardware ignores the lowest two bits of a program counter.
constexpr U64 kPcMask = ~U64{3};

Address next(const Instruction& instruction, const Wave& wave) { return wave.pc + instruction.bytes; }

// execute() adds the instruction's length afterwards.
void jump(const Instruction& instruction, Wave& wave, Address target) {
  wave.pc = (target & kPcMask) - instruction.bytes;
}

// Offsets of branches are in dwords, from the next instruction.
void jump_relative(const Instruction& instruction, Wave& wave) {
  const auto distance = static_cast<U64>(std::int64_t{instruction.offset} * 4);
  jump(instruction, wave, next(instruction, wave) + distance);
}

template <auto kCondition>
Outcome branch(const Instruction& instruction, Machine& machine) {
  if (kCondition(machine.wave)) jump_relative(instruction, machine.wave);
  return Outcome::kNext;
}

template <U32 kBits>
bool any_status(const Wave& wave) {
  return (wave.status & kBits) != 0;
}

bool both_debug_conditions(const Wave& wave) {
  return any_status<status::kConditionalDebugUser>(wave) && any_status<status::kConditionalDebugSystem>(wave);
}

void add_branches(HandlerTable& table) {
  constexpr U32 kUser = status::kConditionalDebugUser;
  constexpr U32 kSystem = status::kConditionalDebugSystem;
  table.set(Op::kSBranch, branch<[](const Wave&) { return true; }>);
  table.set(Op::kSCbranchScc0, branch<[](const Wave& wave) { return !wave.scc; }>);
  table.set(Op::kSCbranchScc1, branch<[](const Wave& wave) { return wave.scc; }>);
  table.set(Op::kSCbranchVccz, branch<[](const Wave& wave) { return wave.vcc() == 0; }>);
  table.set(Op::kSCbranchVccnz, branch<[](const Wave& wave) { return wave.vcc() != 0; }>);
  table.set(Op::kSCbranchExecz, branch<[](const Wave& wave) { return wave.exec() == 0; }>);
  table.set(Op::kSCbranchExecnz, branch<[](const Wave& wave) { return wave.exec() != 0; }>);
  table.set(Op::kSCbranchCdbgsys, branch<any_status<kSystem>>);
  table.set(Op::kSCbranchCdbguser, branch<any_status<kUser>>);
  table.set(Op::kSCbranchCdbgsysOrUser, branch<any_status<kSystem | kUser>>);
  table.set(Op::kSCbranchCdbgsysAndUser, branch<both_debug_conditions>);
}

Outcome getpc(const Instruction& instruction, Machine& machine) {
  put(machine, instruction.dst, next(instruction, machine.wave));
  return Outcome::kNext;
}

Outcome setpc(const Instruction& instruction, Machine& machine) {
  jump(instruction, machine.wave, read_scalar<U64>(instruction, machine, instruction.src[0]));
  return Outcome::kNext;
}

Outcome swappc(const Instruction& instruction, Machine& machine) {
  // The target is read first, because the destination may be the same register pair.
  const U64 target = read_scalar<U64>(instruction, machine, instruction.src[0]);
  put(machine, instruction.dst, next(instruction, machine.wave));
  jump(instruction, machine.wave, target);
  return Outcome::kNext;
}

Outcome call(const Instruction& instruction, Machine& machine) {
  put(machine, instruction.dst, next(instruction, machine.wave));
  jump_relative(instruction, machine.wave);
  return Outcome::kNext;
}

U32 constant(const Instruction& instruction) { return static_cast<U32>(instruction.offset) & 0xffff; }

Outcome sleep(const Instruction& instruction, Machine& machine) {
  machine.wave.sleep = constant(instruction) & 0x7f;
  return Outcome::kSleep;
}

template <Outcome kOutcome>
Outcome send_message(const Instruction& instruction, Machine& machine) {
  machine.wave.message = constant(instruction);
  return kOutcome;
}

// No message has the number 0, so s_sethalt and s_sendmsghalt can be told apart.
Outcome set_halt(const Instruction& instruction, Machine& machine) {
  machine.wave.message = 0;
  return (constant(instruction) & 1) != 0 ? Outcome::kHalt : Outcome::kNext;
}

Outcome trap(const Instruction& instruction, Machine& machine) {
  machine.wave.trap_id = static_cast<std::uint8_t>(constant(instruction));
  return Outcome::kTrap;
}

// Only s_getreg sees the priority: waves take turns whatever it is.
Outcome set_priority(const Instruction& instruction, Machine& machine) {
  U32& status = machine.wave.status;
  status = (status & ~status::kUserPriority) | (constant(instruction) & 3) << status::kUserPriorityShift;
  return Outcome::kNext;
}

Outcome nothing(const Instruction& /*instruction*/, Machine& /*machine*/) { return Outcome::kNext; }

template <Outcome kOutcome>
Outcome just(const Instruction& /*instruction*/, Machine& /*machine*/) {
  return kOutcome;
}

}  // namespace

void add_scalar_control_handlers(HandlerTable& table) {
  add_branches(table);
  table.set(Op::kSGetpcB64, getpc);
  table.set(Op::kSSetpcB64, setpc);
  table.set(Op::kSSwappcB64, swappc);
  table.set(Op::kSCallB64, call);
  table.set(Op::kSEndpgm, just<Outcome::kEnd>);
  table.set(Op::kSBarrier, just<Outcome::kBarrier>);
  table.set(Op::kSSleep, sleep);
  table.set(Op::kSSendmsg, send_message<Outcome::kMessage>);
  table.set(Op::kSSendmsghalt, send_message<Outcome::kHalt>);
  table.set(Op::kSSethalt, set_halt);
  table.set(Op::kSTrap, trap);
  table.set(Op::kSSetprio, set_priority);
  // These operations do nothing: no memory access is pending, nothing is cached or counted, and a sleep ends at the
  // wave's next turn anyway.
  for (const Op op : {Op::kSNop, Op::kSWaitcnt, Op::kSIcacheInv, Op::kSIncperflevel, Op::kSDecperflevel,
                      Op::kSTtracedata, Op::kSWakeup}) {
    table.set(op, nothing);
  }
}

}  // namespace gcn
