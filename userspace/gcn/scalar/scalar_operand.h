// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scalar operands by number: registers, constants, apertures, conditions. The functions accept any number: one that is
// no operand, or a register that the wave does not have, reads as 0 and ignores writes. Source: tables "SGPR", "Scalar
// source operands" and section "Out-of-range SGPR" of the ISA documents.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "gcn/isa/handler.h"

namespace gcn {

// The bits of the STATUS register that instructions use.
namespace status {
inline constexpr std::uint32_t kScc = 1u << 0;
inline constexpr std::uint32_t kUserPriorityShift = 3;
inline constexpr std::uint32_t kUserPriority = 3u << kUserPriorityShift;
inline constexpr std::uint32_t kPrivileged = 1u << 5;
inline constexpr std::uint32_t kExecz = 1u << 9;
inline constexpr std::uint32_t kVccz = 1u << 10;
inline constexpr std::uint32_t kConditionalDebugUser = 1u << 20;
inline constexpr std::uint32_t kConditionalDebugSystem = 1u << 21;
}  // namespace status

inline constexpr Address kApertureSize = Address{1} << 32;

// Returns whether `number` (below 128) is a register that the wave has. Only a trap handler has the trap temporaries.
[[nodiscard]] inline bool scalar_exists(const Wave& wave, unsigned number) {
  if (number < operand::kSgprs) return number < wave.sgprs;
  if (number >= operand::kTtmp0 && number < operand::kM0) return (wave.status & status::kPrivileged) != 0;
  return number < kScalars && number != operand::kM0 + 1;
}

[[nodiscard]] inline std::uint32_t read_scalar(const Wave& wave, unsigned number) {
  return scalar_exists(wave, number) ? wave.scalar[number] : 0;
}

// A pair begins at an even number; hardware ignores the lowest bit.
[[nodiscard]] inline std::uint64_t read_scalar64(const Wave& wave, unsigned number) {
  number &= ~1u;
  return read_scalar(wave, number) | std::uint64_t{read_scalar(wave, number + 1)} << 32;
}

inline void write_scalar(Wave& wave, unsigned number, std::uint32_t value) {
  if (scalar_exists(wave, number)) wave.scalar[number] = value;
}

inline void write_scalar64(Wave& wave, unsigned number, std::uint64_t value) {
  number &= ~1u;
  write_scalar(wave, number, static_cast<std::uint32_t>(value));
  write_scalar(wave, number + 1, static_cast<std::uint32_t>(value >> 32));
}

namespace internal {
inline constexpr std::array<float, 8> kFloatConstants = {0.5F, -0.5F, 1, -1, 2, -2, 4, -4};

[[nodiscard]] inline std::uint64_t aperture(const Shared& shared, unsigned number) {
  switch (number) {
    case operand::kSharedBase:
      return shared.shared_base;
    case operand::kSharedLimit:
      return shared.shared_base + (kApertureSize - 1);
    case operand::kPrivateBase:
      return shared.private_base;
    case operand::kPrivateLimit:
      return shared.private_base + (kApertureSize - 1);
    default:
      return 0;
  }
}

// Returns the value of operands that fit every width: conditions and sign-extended small integers.
[[nodiscard]] inline std::int64_t small_constant(const Wave& wave, unsigned number) {
  if (number >= operand::kInt0 && number < operand::kIntMinus1) return std::int64_t{number} - operand::kInt0;
  if (number >= operand::kIntMinus1 && number <= 208) return std::int64_t{operand::kIntMinus1} - 1 - number;
  if (number == operand::kVccz) return wave.vcc() == 0;
  if (number == operand::kExecz) return wave.exec() == 0;
  if (number == operand::kScc) return wave.scc;
  return 0;
}
}  // namespace internal

[[nodiscard]] inline std::uint32_t read_scalar32(const Instruction& instruction, const Machine& machine,
                                                 unsigned number) {
  if (number < kScalars) return read_scalar(machine.wave, number);
  if (number == operand::kLiteral) return instruction.literal;
  if (number >= operand::kFloatHalf && number < operand::kInv2Pi) {
    return std::bit_cast<std::uint32_t>(internal::kFloatConstants[number - operand::kFloatHalf]);
  }
  if (number == operand::kInv2Pi) return 0x3e22f983;
  // A 32-bit operand reads the low half of an aperture, so programs read 64 bits and use the high half.
  if (number >= operand::kSharedBase && number <= operand::kPrivateLimit) {
    return static_cast<std::uint32_t>(internal::aperture(machine.shared, number));
  }
  return static_cast<std::uint32_t>(internal::small_constant(machine.wave, number));
}

// How a literal, which has 32 bits, is extended to 64 bits: the operation decides.
enum class LiteralIs : std::uint8_t { kUnsigned, kSigned };

[[nodiscard]] inline std::uint64_t read_scalar64(const Instruction& instruction, const Machine& machine,
                                                 unsigned number, LiteralIs literal = LiteralIs::kUnsigned) {
  if (number < kScalars) return read_scalar64(machine.wave, number);
  if (number == operand::kLiteral) {
    if (literal == LiteralIs::kUnsigned) return instruction.literal;
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(instruction.literal)});
  }
  if (number >= operand::kFloatHalf && number < operand::kInv2Pi) {
    return std::bit_cast<std::uint64_t>(double{internal::kFloatConstants[number - operand::kFloatHalf]});
  }
  if (number == operand::kInv2Pi) return 0x3fc45f306dc9c882;
  if (number >= operand::kSharedBase && number <= operand::kPrivateLimit) {
    return internal::aperture(machine.shared, number);
  }
  return static_cast<std::uint64_t>(internal::small_constant(machine.wave, number));
}

// Reads an operand as T: std::uint32_t, std::int32_t, std::uint64_t or std::int64_t.
template <typename T>
[[nodiscard]] T read_scalar(const Instruction& instruction, const Machine& machine, unsigned number) {
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(read_scalar32(instruction, machine, number));
  } else {
    constexpr LiteralIs kLiteralIs = std::is_signed_v<T> ? LiteralIs::kSigned : LiteralIs::kUnsigned;
    return static_cast<T>(read_scalar64(instruction, machine, number, kLiteralIs));
  }
}

}  // namespace gcn
