// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads constants, permutes lanes (DPP), selects parts of dwords (SDWA), and writes the active lanes of results.
#include "gcn/vector/vector_operands.h"

#include <algorithm>
#include <cstring>

namespace gcn {
namespace {

// 0.5 -0.5 1 -1 2 -2 4 -4 1/(2*pi)
constexpr std::array<std::uint16_t, 9> kFloats16 = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                                    0xc000, 0x4400, 0xc400, 0x3118};

bool is_scalar_operand(std::uint16_t number) {
  if (number <= operand::kIntMinus1 + 15) return true;
  if (number >= operand::kSharedBase && number <= operand::kPrivateLimit) return true;
  if (number >= operand::kFloatHalf && number <= operand::kInv2Pi) return true;
  return number >= operand::kVccz && number <= operand::kLiteral && number != operand::kLdsDirect;
}

void fill(Source& source, std::uint64_t value) {
  source.buffer[0].fill(static_cast<std::uint32_t>(value));
  source.buffer[1].fill(static_cast<std::uint32_t>(value >> 32));
  source.lo = source.buffer[0].data();
  source.hi = source.buffer[1].data();
}

constexpr unsigned kRow = 16;
constexpr unsigned kNoLane = ~0u;

// Returns the lane that `lane` reads within its row of 16, or kNoLane if that is beyond the row.
constexpr unsigned shifted(unsigned lane, int distance) {
  const int position = static_cast<int>(lane % kRow) + distance;
  if (position < 0 || position >= static_cast<int>(kRow)) return kNoLane;
  return lane - lane % kRow + static_cast<unsigned>(position);
}

// Returns the lane that `lane` reads. The caller has checked DPP_CTRL with dpp_is_legal().
constexpr unsigned dpp_source(unsigned ctrl, unsigned lane) {
  const unsigned row = lane - lane % kRow;
  const unsigned count = ctrl & 15;
  if (ctrl < 0x100) return (lane & ~3u) | (ctrl >> (2 * (lane & 3)) & 3);
  switch (ctrl) {
    case 0x130:  // wave_shl:1
      return lane + 1 < kLanes ? lane + 1 : kNoLane;
    case 0x134:  // wave_rol:1
      return (lane + 1) % kLanes;
    case 0x138:  // wave_shr:1
      return lane > 0 ? lane - 1 : kNoLane;
    case 0x13c:  // wave_ror:1
      return (lane + kLanes - 1) % kLanes;
    case 0x140:  // row_mirror
      return row + (kRow - 1 - lane % kRow);
    case 0x141:  // row_half_mirror
      return lane ^ 7;
    case 0x142:  // row_bcast:15
      return row > 0 ? row - 1 : kNoLane;
    case 0x143:  // row_bcast:31
      return lane >= 32 ? 31 : kNoLane;
    default:
      break;
  }
  switch (ctrl & 0x1f0) {
    case 0x100:  // row_shl
      return shifted(lane, static_cast<int>(count));
    case 0x110:  // row_shr
      return shifted(lane, -static_cast<int>(count));
    case 0x120:  // row_ror
      return row + (lane + kRow - count) % kRow;
    default:  // row_newbcast
      return row + count;
  }
}

bool dpp_is_legal(unsigned ctrl, Isa isa) {
  if (ctrl < 0x100) return true;
  if (ctrl > 0x100 && ctrl < 0x130) return (ctrl & 15) != 0;
  if (ctrl >= 0x150 && ctrl <= 0x15f) return isa == Isa::kGfx90a;
  return ctrl == 0x130 || ctrl == 0x134 || ctrl == 0x138 || ctrl == 0x13c || (ctrl >= 0x140 && ctrl <= 0x143);
}

// dpp_source() of all lanes. A lane without a source has itself in `from`, and is not in `valid`.
struct Permutation {
  std::array<std::uint8_t, kLanes> from = {};
  std::uint64_t valid = 0;
};
constexpr auto kPermutations = [] {
  std::array<Permutation, 0x160> table;
  for (unsigned ctrl = 0; ctrl < table.size(); ++ctrl) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned from = dpp_source(ctrl, lane);
      table[ctrl].from[lane] = static_cast<std::uint8_t>(from == kNoLane ? lane : from);
      if (from != kNoLane) table[ctrl].valid |= std::uint64_t{1} << lane;
    }
  }
  return table;
}();

// Returns the lanes that have a source: a disabled lane is none.
std::uint64_t dpp_readable(const Permutation& permutation, std::uint64_t exec) {
  std::uint64_t lanes = permutation.valid;
  if (exec == ~std::uint64_t{0}) return lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((exec >> permutation.from[lane] & 1) == 0) lanes &= ~(std::uint64_t{1} << lane);
  }
  return lanes;
}

// Returns the lanes that an instruction with `dpp` writes.
std::uint64_t dpp_lanes(const Dpp& dpp, std::uint64_t exec) {
  std::uint64_t rows = 0;
  std::uint64_t banks = 0;
  for (unsigned n = 0; n < 4; ++n) {
    if ((dpp.row_mask >> n & 1) != 0) rows |= std::uint64_t{0xffff} << (16 * n);
    if ((dpp.bank_mask >> n & 1) != 0) banks |= std::uint64_t{0x000f000f000f000f} << (4 * n);
  }
  const std::uint64_t sources = dpp.bound_ctrl ? exec : dpp_readable(kPermutations[dpp.ctrl], exec);
  return rows & banks & sources & exec;
}

void permute(const Dpp& dpp, std::uint64_t exec, const std::uint32_t* from, Vgpr& to) {
  const Permutation& permutation = kPermutations[dpp.ctrl];
  const std::uint64_t sources = dpp_readable(permutation, exec);
  for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] = from[permutation.from[lane]];
  if (sources == ~std::uint64_t{0}) return;
  for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] &= ~(static_cast<std::uint32_t>(sources >> lane & 1) - 1);
}

struct Field {
  unsigned shift;
  unsigned bits;
};
Field field(SubDword sel) {
  const auto n = static_cast<unsigned>(sel);
  if (sel <= SubDword::kByte3) return {8 * n, 8};
  if (sel <= SubDword::kWord1) return {16 * (n - 4), 16};
  return {0, 32};
}

std::uint32_t ones(unsigned bits) { return bits >= 32 ? ~0u : (1u << bits) - 1; }

// Returns the field `from` of every lane, extended to 32 bits. These functions compute their results in local
// variables: nothing can overlap those, so the compiler can vectorise the loops.
Vgpr select(Field from, bool sext, const std::uint32_t* in) {
  const unsigned left = 32 - from.bits - from.shift;
  const unsigned right = 32 - from.bits;
  Vgpr out;
  if (sext) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      out[lane] = static_cast<std::uint32_t>(static_cast<std::int32_t>(in[lane] << left) >> right);
    }
  } else {
    for (unsigned lane = 0; lane < kLanes; ++lane) out[lane] = in[lane] << left >> right;
  }
  return out;
}

// Returns the new value of a register that holds `old` after an SDWA instruction with the result `value`.
Vgpr merge(const Sdwa& sdwa, const Vgpr& old, const Vgpr& value) {
  const Field to = field(sdwa.dst_sel);
  const std::uint32_t kept = sdwa.dst_unused == DstUnused::kPreserve ? ~(ones(to.bits) << to.shift) : 0;
  const Vgpr fields = select({0, to.bits}, sdwa.dst_unused == DstUnused::kSext, value.data());
  Vgpr merged;
  for (unsigned lane = 0; lane < kLanes; ++lane) merged[lane] = (old[lane] & kept) | fields[lane] << to.shift;
  return merged;
}

// Applies abs and then neg.
void change_signs(Kind kind, bool abs, bool neg, Source& source) {
  if (!abs && !neg) return;
  const std::uint32_t sign = kind.bits == 16 ? 0x8000u : 0x80000000u;
  const std::uint32_t kept = abs ? ~sign : ~0u;
  const std::uint32_t flipped = neg ? sign : 0;
  const std::uint32_t*& from = kind.bits == 64 ? source.hi : source.lo;
  Vgpr changed;
  for (unsigned lane = 0; lane < kLanes; ++lane) changed[lane] = (from[lane] & kept) ^ flipped;
  Vgpr& to = source.buffer[kind.bits == 64 ? 1 : 0];
  to = changed;
  from = to.data();
}

// Bit n of a dword, as a table: code with different shifts in each lane would not be vectorised.
constexpr auto kBits = [] {
  std::array<std::uint32_t, 32> bits = {};
  for (unsigned n = 0; n < 32; ++n) bits[n] = 1u << n;
  return bits;
}();

}  // namespace

bool scalar_operand(const Instruction& instruction, const Machine& machine, std::uint16_t number, Kind kind,
                    std::uint64_t& value) {
  if (!is_scalar_operand(number)) return false;
  if (kind.bits == 64) {
    const bool high_half = kind.is_float && number == operand::kLiteral;
    const LiteralIs literal = kind.is_signed ? LiteralIs::kSigned : LiteralIs::kUnsigned;
    value = high_half ? std::uint64_t{instruction.literal} << 32 : read_scalar64(instruction, machine, number, literal);
  } else if (kind.bits == 16 && kind.is_float && number >= operand::kFloatHalf && number <= operand::kInv2Pi) {
    // A 16-bit float operation reads the constant as a half; an integer one reads the low half of the 32-bit constant.
    value = kFloats16[number - operand::kFloatHalf];
  } else {
    value = read_scalar32(instruction, machine, number);
  }
  return true;
}

std::uint64_t mask_of(const Vgpr& flags) {
  std::array<std::uint8_t, kLanes> bytes;
  for (unsigned lane = 0; lane < kLanes; ++lane) bytes[lane] = static_cast<std::uint8_t>(flags[lane]);
  std::uint64_t mask = 0;
  for (unsigned n = 0; n < kLanes; n += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, &bytes[n], sizeof(eight));
    // The product moves bit 0 of byte k to bit 56 + k, and no two bits to one place.
    mask |= (eight * 0x0102040810204080u >> 56) << n;
  }
  return mask;
}

void expand_mask(std::uint64_t mask, Vgpr& flags) {
  for (unsigned half = 0; half < 2; ++half) {
    const auto bits = static_cast<std::uint32_t>(mask >> (32 * half));
    std::uint32_t* to = flags.data() + 32 * half;
    for (unsigned n = 0; n < 32; ++n) to[n] = (bits & kBits[n]) != 0 ? 1 : 0;
  }
}

void copy_lanes(Vgpr& dst, const Vgpr& value, std::uint64_t lanes) {
  if (lanes == ~std::uint64_t{0}) {
    dst = value;
    return;
  }
  Vgpr merged;
  for (unsigned half = 0; half < 2; ++half) {
    const auto bits = static_cast<std::uint32_t>(lanes >> (32 * half));
    const unsigned first = 32 * half;
    for (unsigned n = 0; n < 32; ++n) {
      const std::uint32_t write = (bits & kBits[n]) != 0 ? ~0u : 0u;
      merged[first + n] = (dst[first + n] & ~write) | (value[first + n] & write);
    }
  }
  dst = merged;
}

VectorOperands::VectorOperands(const Instruction& instruction, Machine& machine)
    : instruction_(instruction), machine_(machine), active_(machine.wave.exec()) {
  plain_ = instruction.lanes == LaneMode::kPlain &&
           (instruction.neg | instruction.abs | instruction.op_sel | instruction.op_sel_hi) == 0;
  if (instruction.lanes == LaneMode::kDpp) {
    legal_ = dpp_is_legal(instruction.dpp.ctrl, machine.wave.isa);
    if (legal_) active_ = dpp_lanes(instruction.dpp, active_);
  }
}

Vgpr* VectorOperands::vgpr(std::uint16_t number, unsigned bit, unsigned registers) const {
  if (!operand::is_vgpr(number)) return nullptr;
  Wave& wave = machine_.wave;
  std::size_t index = number - operand::kVgpr0;
  if ((wave.mode & mode::kGprIdxEnable) != 0 && (wave.gpr_idx >> (12 + bit) & 1) != 0) index += wave.gpr_idx & 0xff;
  return index + registers <= wave.vgpr.size() ? &wave.vgpr[index] : nullptr;
}

bool VectorOperands::read(unsigned n, Kind kind, Source& source, Part part) const {
  const std::uint16_t number = instruction_.src[n];
  const bool pair = kind.bits == 64 || (kind.bits == 32 && part != Part::kWhole);
  if (!legal_ || (instruction_.lanes == LaneMode::kDpp && n == 0 && !operand::is_vgpr(number))) return false;
  if (kind.from_scalar) {
    std::uint64_t mask = 0;
    if (!scalar_operand(instruction_, machine_, number, kind, mask)) return false;
    expand_mask(mask, source.buffer[0]);
    source.lo = source.hi = source.buffer[0].data();
    return true;
  }
  if (operand::is_vgpr(number)) {
    const Vgpr* registers = vgpr(number, n, pair ? 2 : 1);
    if (registers == nullptr) return false;
    source.lo = registers[0].data();
    source.hi = registers[pair ? 1 : 0].data();
  } else {
    std::uint64_t value = 0;
    if (!scalar_operand(instruction_, machine_, number, kind, value)) return false;
    if (pair && kind.bits == 32 && number < kScalars) value = read_scalar64(machine_.wave, number);
    fill(source, value);
  }
  if (!plain_ || part != Part::kWhole) modify(n, kind, part, source);
  return true;
}

bool VectorOperands::read_dst(Kind kind, Source& source) const {
  const Vgpr* registers = vgpr(instruction_.dst, 3, kind.bits == 64 ? 2 : 1);
  if (!legal_ || registers == nullptr) return false;
  source.lo = registers[0].data();
  source.hi = registers[kind.bits == 64 ? 1 : 0].data();
  return true;
}

// Applies DPP, SDWA, op_sel, abs and neg to a source, in its buffer. A source without modifiers is not copied.
void VectorOperands::modify(unsigned n, Kind kind, Part part, Source& source) const {
  const Instruction& in = instruction_;
  const auto bit_of = [n](unsigned bits) { return (bits >> n & 1) != 0; };
  const bool upper = part == Part::kHigh ? bit_of(in.op_sel_hi) : bit_of(in.op_sel);
  if (kind.bits == 32 && part != Part::kWhole && upper) source.lo = source.hi;
  if (in.lanes == LaneMode::kDpp && n == 0) {
    permute(in.dpp, machine_.wave.exec(), source.lo, source.buffer[0]);
    source.lo = source.buffer[0].data();
    if (kind.bits == 64) {
      permute(in.dpp, machine_.wave.exec(), source.hi, source.buffer[1]);
      source.hi = source.buffer[1].data();
    }
  } else if (in.lanes == LaneMode::kSdwa && n < 2) {
    source.buffer[0] = select(field(in.sdwa.src_sel[n]), bit_of(in.sdwa.sext), source.lo);
    source.lo = source.buffer[0].data();
  } else if (kind.bits == 16 && upper && (part != Part::kWhole || in.encoding == Encoding::kVop3)) {
    source.buffer[0] = select(field(SubDword::kWord1), false, source.lo);
    source.lo = source.buffer[0].data();
  }
  if (!kind.is_float) return;
  if (in.encoding == Encoding::kVop3p) {
    if (part != Part::kWhole) change_signs(kind, false, part == Part::kHigh ? bit_of(in.abs) : bit_of(in.neg), source);
  } else {
    change_signs(kind, bit_of(in.abs), bit_of(in.neg), source);
  }
}

bool VectorOperands::check_dst(Kind kind) const {
  if (!legal_) return false;
  // It is not documented which bits a comparison writes for lanes that DPP disables, so it is illegal.
  if (!kind.has_result && instruction_.lanes == LaneMode::kDpp) return false;
  if (kind.has_mask && instruction_.sdst >= kScalars - 1) return false;
  return !kind.has_result || vgpr(instruction_.dst, 3, kind.bits == 64 ? 2 : 1) != nullptr;
}

void VectorOperands::write(Kind kind, const Results& results) const {
  if (kind.has_result) {
    Vgpr* registers = vgpr(instruction_.dst, 3, 1);
    write_vgpr(kind, registers[0], results.lo);
    if (kind.bits == 64) write_vgpr(kind, registers[1], results.hi);
  }
  if (kind.has_mask) {
    const std::uint64_t mask = mask_of(results.bit) & active_;
    write_scalar64(machine_.wave, instruction_.sdst, mask);
    if (kind.writes_exec) machine_.wave.set_exec(mask);
  }
}

void VectorOperands::write_vgpr(Kind kind, Vgpr& dst, const Vgpr& value) const {
  const bool upper = kind.bits == 16 && instruction_.encoding == Encoding::kVop3 && (instruction_.op_sel & 8) != 0;
  if (instruction_.lanes == LaneMode::kSdwa) {
    copy_lanes(dst, merge(instruction_.sdwa, dst, value), active_);
  } else if (upper || kind.keeps_other) {
    Vgpr merged;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      merged[lane] = upper ? (dst[lane] & 0xffff) | value[lane] << 16 : (dst[lane] & 0xffff0000) | value[lane];
    }
    copy_lanes(dst, merged, active_);
  } else {
    copy_lanes(dst, value, active_);
  }
}

namespace detail {

void read_implicit(const Wave& wave, Kind kind, Source& source) {
  if (kind.from_scalar) {
    expand_mask(wave.vcc(), source.buffer[0]);
  } else {
    for (unsigned lane = 0; lane < kLanes; ++lane) source.buffer[0][lane] = lane;
  }
  source.lo = source.hi = source.buffer[0].data();
}

}  // namespace detail
}  // namespace gcn
