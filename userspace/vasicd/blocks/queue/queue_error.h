// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Why a queue cannot continue with its packet, as a value. Each kind of queue decides how it is reported to the guest
// (PacketQueue::fail).
#pragma once

#include <cstdint>
#include <utility>

#include "base/result.h"
#include "vasicd/mem/memory.h"

namespace vasicd {

struct QueueError {
  enum class Kind : std::uint8_t {
    kMemory,              // `fault`
    kBadOpcode,           // `word` is the packet's header
    kBadPacket,           // known opcode, impossible contents; `word` is the header
    kPrivilege,           // a user queue wrote a register; `word` is its index
    kIllegalInstruction,  // a wave executed one, or a dispatch came to a chip whose waves are not executed
    kWritePointer,        // further ahead than the ring is long
    kMemoryViolation,     // a wave caused it, or saved waves make no sense
    kTrap,                // a wave executed s_trap; `word` is the trap's id
    kBadDispatch,         // `word` is a LaunchError::Kind
  };
  Kind kind = Kind::kBadPacket;
  MemoryFault fault = {};
  std::uint32_t word = 0;
};

template <typename T>
using QueueResult = base::Expected<T, QueueError>;

inline QueueError memory_error(const MemoryFault& fault) { return {QueueError::Kind::kMemory, fault, 0}; }

// A failed access to memory becomes the error of the queue that made it.
template <typename T>
QueueResult<T> lift(MemoryResult<T> result) {
  if (!result.ok()) return memory_error(result.error());
  return std::move(result).value();
}
inline QueueResult<void> lift(MemoryResult<void> result) {
  if (!result.ok()) return memory_error(result.error());
  return {};
}

}  // namespace vasicd
