// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The architected state of a wave of 64 work-items, and what it shares with its work-group. All that an instruction can
// see is here, so all of it is saved when the wave is preempted (vasicd/waves/save_area.h).
// Source: chapter "Program organization and state" of the ISA documents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gcn/isa/instruction.h"
#include "gcn/isa/memory.h"

namespace gcn {

inline constexpr unsigned kLanes = 64;
inline constexpr unsigned kScalars = 128;  // operand numbers 0..127

// A vector register, one dword for each lane.
using Vgpr = std::array<std::uint32_t, kLanes>;

// MODE register.
namespace mode {
inline constexpr std::uint32_t kRound32Shift = 0;  // 0 nearest even, 1 up, 2 down, 3 to zero
inline constexpr std::uint32_t kRound64Shift = 2;  // fp64 and fp16
inline constexpr std::uint32_t kRoundMask = 3;
inline constexpr std::uint32_t kDenormIn32 = 1u << 4;   // set: denormals are taken as they are
inline constexpr std::uint32_t kDenormOut32 = 1u << 5;  // set: denormals are produced
inline constexpr std::uint32_t kDenormIn64 = 1u << 6;   // fp64 and fp16
inline constexpr std::uint32_t kDenormOut64 = 1u << 7;
inline constexpr std::uint32_t kDx10Clamp = 1u << 8;
inline constexpr std::uint32_t kIeee = 1u << 9;
inline constexpr std::uint32_t kFp16Overflow = 1u << 23;
inline constexpr std::uint32_t kGprIdxEnable = 1u << 27;
}  // namespace mode

// The state that the waves of a work-group share, and the addresses of its flat apertures. The work-group owns it.
struct Shared {
  std::span<std::byte> lds;            // as many bytes as were allocated
  Address shared_base = 0;             // flat aperture of LDS, 4 GiB long
  Address private_base = 0;            // flat aperture of scratch, 4 GiB long
  std::uint64_t (*clock)() = nullptr;  // for s_memtime and s_memrealtime; nullptr: 0
};

// How many waves can meet at the barrier of a grid: the number fits into 24 bits of a saved wave.
inline constexpr std::uint32_t kMostBarrierWaves = (1U << 24) - 1;

struct Wave {
  Isa isa = Isa::kGfx906;
  Address pc = 0;
  // Indexed by operand number: s0-s101, flat_scratch, xnack_mask, vcc, ttmp, m0, exec.
  std::array<std::uint32_t, kScalars> scalar = {};
  bool scc = false;
  std::uint32_t mode = 0;
  std::uint32_t status = 0;  // as s_getreg sees it, SCC, EXECZ and VCCZ excepted
  std::uint32_t trapsts = 0;
  std::uint32_t hw_id = 0;
  std::uint32_t gpr_idx = 0;  // s_set_gpr_idx: bits 7:0 index, 15:12 which operands
  unsigned sgprs = kScalars;  // allocated; others read as 0 and swallow writes
  std::vector<Vgpr> vgpr;     // as many as were allocated; an instruction that names others is illegal
  std::vector<Vgpr> agpr;     // gfx908; gfx90a: the upper part of its unified file

  std::uint32_t message = 0;        // argument of s_sendmsg after Outcome::kMessage
  std::uint32_t barrier_waves = 0;  // how many waves meet, after Outcome::kGridBarrier
  std::uint8_t trap_id = 0;         // argument of s_trap after Outcome::kTrap
  std::uint32_t sleep = 0;          // argument of s_sleep after Outcome::kSleep, in units of 64 clocks

  [[nodiscard]] std::uint64_t scalar64(unsigned number) const {
    return scalar[number] | std::uint64_t{scalar[number + 1]} << 32;
  }
  void set_scalar64(unsigned number, std::uint64_t value) {
    scalar[number] = static_cast<std::uint32_t>(value);
    scalar[number + 1] = static_cast<std::uint32_t>(value >> 32);
  }
  [[nodiscard]] std::uint64_t exec() const { return scalar64(operand::kExecLo); }
  void set_exec(std::uint64_t value) { set_scalar64(operand::kExecLo, value); }
  [[nodiscard]] std::uint64_t vcc() const { return scalar64(operand::kVccLo); }
  void set_vcc(std::uint64_t value) { set_scalar64(operand::kVccLo, value); }
};

}  // namespace gcn
