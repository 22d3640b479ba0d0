// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A handler executes one operation. This file has its type, the machine that it works on, and the ways it can end. An
// instruction either happens as a whole or not at all: after kFault and kIllegal the wave is as it was before, its pc
// at the instruction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gcn/isa/instruction.h"
#include "gcn/isa/memory.h"
#include "gcn/isa/wave.h"

namespace gcn {

enum class Outcome : std::uint8_t {
  kNext,         // continue at wave.pc
  kEnd,          // s_endpgm: the wave is done
  kBarrier,      // s_barrier: wait for the work-group, then continue at wave.pc
  kGridBarrier,  // ds_gws_barrier: wait until wave.barrier_waves waves of the dispatch do, then continue at wave.pc
  kSleep,        // s_sleep: continue at wave.pc after other waves had a turn
  kMessage,      // s_sendmsg: wave.message, continue at wave.pc
  kHalt,         // s_sethalt 1 or s_sendmsghalt (wave.message): stays halted until the driver or a debugger clears it
  kTrap,         // s_trap: wave.trap_id, pc at the instruction
  kFault,        // memory has nothing at an address, or refuses
  kViolation,    // LDS or scratch access out of range that hardware reports
  kIllegal,      // no such instruction, not on this chip, or register out of range
};

// One wave and what it can access.
struct Machine {
  Wave& wave;
  Shared& shared;
  Memory& memory;
};

// Executes one operation. The caller then adds instruction.bytes to the pc, so a branch sets the pc to its target less
// instruction.bytes.
using Handler = Outcome (*)(const Instruction& instruction, Machine& machine);

// The handler of each operation. An operation without a handler is an illegal instruction.
class HandlerTable {
 public:
  void set(Op op, Handler handler) { handlers_[static_cast<std::size_t>(op)] = handler; }
  [[nodiscard]] Handler operator[](Op op) const { return handlers_[static_cast<std::size_t>(op)]; }

 private:
  std::array<Handler, kOps> handlers_ = {};
};

}  // namespace gcn
