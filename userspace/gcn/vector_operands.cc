// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Constants, lane permutations, selections, and writing under a mask.
#include "gcn/vector_operands.h"

#include <algorithm>

namespace gcn {
namespace {

// 0.5 -0.5 1 -1 2 -2 4 -4 1/(2*pi)
constexpr std::array<std::uint16_t, 9> kFloats16 = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
                                                    0xc000, 0x4400, 0xc400, 0x3118};
constexpr std::array<std::uint32_t, 9> kFloats32 = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                                    0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
constexpr std::array<std::uint64_t, 9> kFloats64 = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                                    0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                                    0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

// A 64-bit operation reads a double whether it computes with floats or not. A 16-bit one reads a half only if it
// computes with floats; an integer one gets the low half of the float.
std::uint64_t inline_float(unsigned index, Kind kind) {
  if (kind.bits == 64) return kFloats64[index];
  if (kind.bits == 16 && kind.is_float) return kFloats16[index];
  return kFloats32[index];
}

std::uint64_t literal(std::uint32_t value, Kind kind) {
  if (kind.bits != 64) return value;
  if (kind.is_float) return std::uint64_t{value} << 32;
  return kind.is_signed ? static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)}) : value;
}

void fill(Source& source, std::uint64_t value) {
  source.buffer[0].fill(static_cast<std::uint32_t>(value));
  source.buffer[1].fill(static_cast<std::uint32_t>(value >> 32));
  source.lo = source.buffer[0].data();
  source.hi = source.buffer[1].data();
}

constexpr unsigned kRow = 16;
constexpr unsigned kNoLane = ~0u;

// Where `lane` reads from within its row of 16; kNoLane: from beyond the row.
unsigned shifted(unsigned lane, int distance) {
  const int position = static_cast<int>(lane % kRow) + distance;
  return position < 0 || position >= static_cast<int>(kRow) ? kNoLane
                                                            : lane - lane % kRow + static_cast<unsigned>(position);
}

// Which lane `lane` reads. DPP_CTRL is one of those that dpp_is_legal() accepts.
unsigned dpp_source(unsigned ctrl, unsigned lane) {
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

// Whether lane `from` has something to read.
bool readable(unsigned from, std::uint64_t exec) { return from != kNoLane && (exec >> from & 1) != 0; }

// The lanes that an instruction with `dpp` writes.
std::uint64_t dpp_lanes(const Dpp& dpp, std::uint64_t exec) {
  std::uint64_t lanes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const bool row = (dpp.row_mask >> (lane / kRow) & 1) != 0;
    const bool bank = (dpp.bank_mask >> (lane % kRow / 4) & 1) != 0;
    const bool source = dpp.bound_ctrl || readable(dpp_source(dpp.ctrl, lane), exec);
    if (row && bank && source) lanes |= std::uint64_t{1} << lane;
  }
  return lanes & exec;
}

void permute(const Dpp& dpp, std::uint64_t exec, const std::uint32_t* from, Vgpr& to) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned source = dpp_source(dpp.ctrl, lane);
    to[lane] = readable(source, exec) ? from[source] : 0;
  }
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

std::uint32_t sign_extend(std::uint32_t value, unsigned bits) {
  const unsigned shift = 32 - bits;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value << shift) >> shift);
}

std::uint32_t select(std::uint32_t value, Field from, bool sext) {
  const std::uint32_t selected = value >> from.shift & ones(from.bits);
  return sext ? sign_extend(selected, from.bits) : selected;
}

// What SDWA makes of a register that holds `old` when the result is `value`.
std::uint32_t merge(const Sdwa& sdwa, std::uint32_t old, std::uint32_t value) {
  const Field to = field(sdwa.dst_sel);
  const std::uint32_t low = value & ones(to.bits);
  const std::uint32_t placed = low << to.shift;
  switch (sdwa.dst_unused) {
    case DstUnused::kPreserve:
      return (old & ~(ones(to.bits) << to.shift)) | placed;
    case DstUnused::kSext:
      return sign_extend(low, to.bits) << to.shift;
    case DstUnused::kPad:
      break;
  }
  return placed;
}

void copy_masked(Vgpr& dst, const Vgpr& value, std::uint64_t lanes) {
  if (lanes == ~std::uint64_t{0}) {
    dst = value;
    return;
  }
  Vgpr flags;
  expand_mask(lanes, flags);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t keep = flags[lane] - 1;
    dst[lane] = (dst[lane] & keep) | (value[lane] & ~keep);
  }
}

}  // namespace

std::uint32_t read_scalar(const Wave& wave, unsigned number) {
  if (number >= kScalars || (number < operand::kSgprs && number >= wave.sgprs)) return 0;
  return wave.scalar[number];
}

std::uint64_t read_scalar64(const Wave& wave, unsigned number) {
  return read_scalar(wave, number) | std::uint64_t{read_scalar(wave, number + 1)} << 32;
}

void write_scalar(Wave& wave, unsigned number, std::uint32_t value) {
  if (number >= kScalars || (number < operand::kSgprs && number >= wave.sgprs)) return;
  wave.scalar[number] = value;
}

void write_scalar64(Wave& wave, unsigned number, std::uint64_t value) {
  write_scalar(wave, number, static_cast<std::uint32_t>(value));
  write_scalar(wave, number + 1, static_cast<std::uint32_t>(value >> 32));
}

bool scalar_operand(const Instruction& instruction, const Machine& machine, std::uint16_t number, Kind kind,
                    std::uint64_t& value) {
  const Wave& wave = machine.wave;
  if (number < kScalars) {
    value = kind.bits == 64 ? read_scalar64(wave, number) : read_scalar(wave, number);
    return true;
  }
  if (number < operand::kIntMinus1) {
    value = number - std::uint64_t{operand::kInt0};
    return true;
  }
  if (number < operand::kIntMinus1 + 16) {
    value = ~std::uint64_t{0} - (number - operand::kIntMinus1);
    return true;
  }
  if (number >= operand::kFloatHalf && number <= operand::kInv2Pi) {
    value = inline_float(number - operand::kFloatHalf, kind);
    return true;
  }
  constexpr std::uint64_t kAperture = 0xffffffff;
  switch (number) {
    case operand::kSharedBase:
      value = machine.shared.shared_base;
      return true;
    case operand::kSharedLimit:
      value = machine.shared.shared_base | kAperture;
      return true;
    case operand::kPrivateBase:
      value = machine.shared.private_base;
      return true;
    case operand::kPrivateLimit:
      value = machine.shared.private_base | kAperture;
      return true;
    case operand::kVccz:
      value = wave.vcc() == 0 ? 1 : 0;
      return true;
    case operand::kExecz:
      value = wave.exec() == 0 ? 1 : 0;
      return true;
    case operand::kScc:
      value = wave.scc ? 1 : 0;
      return true;
    case operand::kLiteral:
      value = literal(instruction.literal, kind);
      return true;
    default:
      return false;
  }
}

std::uint64_t mask_of(const Vgpr& flags) {
  std::uint64_t mask = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) mask |= std::uint64_t{flags[lane]} << lane;
  return mask;
}

void expand_mask(std::uint64_t mask, Vgpr& flags) {
  for (unsigned half = 0; half < 2; ++half) {
    const auto bits = static_cast<std::uint32_t>(mask >> (32 * half));
    for (unsigned n = 0; n < 32; ++n) flags[32 * half + n] = bits >> n & 1;
  }
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

// Copies the source to its buffer, permuted, selected and with its sign changed.
void VectorOperands::modify(unsigned n, Kind kind, Part part, Source& source) const {
  const Instruction& in = instruction_;
  const bool vop3p = in.encoding == Encoding::kVop3p;
  const auto bit_of = [n](unsigned bits) { return (bits >> n & 1) != 0; };
  const bool upper = part == Part::kHigh ? bit_of(in.op_sel_hi) : bit_of(in.op_sel);
  const bool neg = part == Part::kHigh ? bit_of(in.abs) : bit_of(in.neg);

  Vgpr& low = source.buffer[0];
  Vgpr& high = source.buffer[1];
  if (kind.bits == 32 && part != Part::kWhole && upper) source.lo = source.hi;
  if (in.lanes == LaneMode::kDpp && n == 0) {
    permute(in.dpp, machine_.wave.exec(), source.lo, low);
    if (kind.bits == 64) permute(in.dpp, machine_.wave.exec(), source.hi, high);
  } else {
    if (source.lo != low.data()) std::copy_n(source.lo, kLanes, low.data());
    if (kind.bits == 64 && source.hi != high.data()) std::copy_n(source.hi, kLanes, high.data());
  }
  source.lo = low.data();
  source.hi = high.data();

  if (in.lanes == LaneMode::kSdwa && n < 2) {
    const Field from = field(in.sdwa.src_sel[n]);
    const bool sext = bit_of(in.sdwa.sext);
    for (std::uint32_t& value : low) value = select(value, from, sext);
  } else if (kind.bits == 16 && upper && (part != Part::kWhole || in.encoding == Encoding::kVop3)) {
    for (std::uint32_t& value : low) value >>= 16;
  }
  if (!kind.is_float || (vop3p && part == Part::kWhole)) return;
  Vgpr& signs = kind.bits == 64 ? high : low;
  const std::uint32_t sign = kind.bits == 16 ? 0x8000u : 0x80000000u;
  if (!vop3p && bit_of(in.abs)) {
    for (std::uint32_t& value : signs) value &= ~sign;
  }
  if (neg) {
    for (std::uint32_t& value : signs) value ^= sign;
  }
}

bool VectorOperands::check_dst(Kind kind) const {
  if (!legal_) return false;
  // What disabled lanes do to a comparison's bits is not known.
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
    Vgpr merged;
    for (unsigned lane = 0; lane < kLanes; ++lane) merged[lane] = merge(instruction_.sdwa, dst[lane], value[lane]);
    copy_masked(dst, merged, active_);
  } else if (upper || kind.keeps_other) {
    Vgpr merged;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      merged[lane] = upper ? (dst[lane] & 0xffff) | value[lane] << 16 : (dst[lane] & 0xffff0000) | value[lane];
    }
    copy_masked(dst, merged, active_);
  } else {
    copy_masked(dst, value, active_);
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
