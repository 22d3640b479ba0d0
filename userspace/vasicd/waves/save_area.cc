// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Layout, writing, reading.
#include "vasicd/waves/save_area.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "packets/words.h"

namespace vasicd {

namespace {

using packets::hi32;
using packets::lo32;
using packets::Words;

constexpr std::uint32_t kMagic = 0x56535731;  // "1WSV": version 1
constexpr std::size_t kGroupDwords = 2;
constexpr std::size_t kDword = sizeof(std::uint32_t);
constexpr std::uint32_t kMaxStackBytes = 1u << 20;  // the largest chip needs a fraction of it

// Dwords of the control stack, before the groups.
enum Header : std::size_t {
  kHeaderMagic,
  kHeaderDwords,  // of the whole stack
  kHeaderIsa,
  kHeaderGroups,
  kHeaderNextLo,
  kHeaderNextHi,
  kHeaderTicksLo,
  kHeaderTicksHi,
  kHeaderCodeLo,
  kHeaderCodeHi,
  kHeaderRsrc1,
  kHeaderRsrc2,
  kHeaderRsrc3,
  kHeaderLds,
  kHeaderScratchBytes,
  kHeaderScratchWaves,
  kHeaderFirst,
  kHeaderCount = kHeaderFirst + 3,
  kHeaderSize = kHeaderCount + 3,
  kHeaderLast = kHeaderSize + 3,
  kHeaderSgprs = kHeaderLast + 3,
  kHeaderEnd = kHeaderSgprs + packets::compute::kUserSgprs,
};

// The first of them has the state, and behind that how many waves meet at the barrier of a grid.
constexpr unsigned kBarrierWavesShift = 8;
constexpr std::uint32_t kStateMask = (1U << kBarrierWavesShift) - 1;
static_assert(gcn::kMostBarrierWaves >> (32 - kBarrierWavesShift) == 0);

// Dwords of a wave, before its SGPRs.
enum WaveWord : std::size_t {
  kWaveState,
  kWaveScratch,
  kWavePcLo,
  kWavePcHi,
  kWaveMode,
  kWaveStatus,
  kWaveTrapsts,
  kWaveScc,
  kWaveGprIdx,
  kWaveSpecial,  // scalar operands from FLAT_SCRATCH on
  kWaveEnd = kWaveSpecial + gcn::kScalars - gcn::operand::kSgprs,
};
// All of a compute unit's waves fit into what the driver reserves for hardware registers and SGPRs.
constexpr std::size_t kWaveStateDwords = 48;
static_assert(kWaveEnd <= kWaveStateDwords);

unsigned plain_sgprs(const WaveSize& size) { return std::min<unsigned>(size.sgprs, gcn::operand::kSgprs); }

std::uint64_t wave_bytes(gcn::Isa isa, const Launch& launch) {
  const WaveSize size = wave_size(isa, launch);
  return (kWaveStateDwords + plain_sgprs(size)) * kDword + (size.vgprs + size.agprs) * sizeof(gcn::Vgpr);
}

Words control_words(const Dispatch& dispatch) {
  const Launch& launch = dispatch.launch();
  Words w(kHeaderEnd);
  w[kHeaderMagic] = kMagic;
  w[kHeaderDwords] = static_cast<std::uint32_t>(kHeaderEnd + kGroupDwords * dispatch.groups().size());
  w[kHeaderIsa] = static_cast<std::uint32_t>(dispatch.isa());
  w[kHeaderGroups] = static_cast<std::uint32_t>(dispatch.groups().size());
  w[kHeaderNextLo] = lo32(dispatch.next_group());
  w[kHeaderNextHi] = hi32(dispatch.next_group());
  w[kHeaderTicksLo] = lo32(dispatch.start_ticks());
  w[kHeaderTicksHi] = hi32(dispatch.start_ticks());
  w[kHeaderCodeLo] = lo32(launch.code);
  w[kHeaderCodeHi] = hi32(launch.code);
  w[kHeaderRsrc1] = launch.rsrc1;
  w[kHeaderRsrc2] = launch.rsrc2;
  w[kHeaderRsrc3] = launch.rsrc3;
  w[kHeaderLds] = launch.lds_bytes;
  w[kHeaderScratchBytes] = launch.scratch_wave_bytes;
  w[kHeaderScratchWaves] = launch.scratch_waves;
  for (unsigned i = 0; i < 3; ++i) {
    w[kHeaderFirst + i] = launch.first[i];
    w[kHeaderCount + i] = launch.groups[i];
    w[kHeaderSize + i] = launch.size[i];
    w[kHeaderLast + i] = launch.last_size[i];
  }
  std::copy(launch.user_sgprs.begin(), launch.user_sgprs.end(), w.begin() + kHeaderSgprs);
  for (const auto& group : dispatch.groups()) packets::append(w, {lo32(group->index()), hi32(group->index())});
  return w;
}

std::uint64_t pair(std::span<const std::uint32_t> w, std::size_t lo) { return w[lo] | std::uint64_t{w[lo + 1]} << 32; }

Launch launch_from(std::span<const std::uint32_t> w) {
  Launch launch;
  launch.code = pair(w, kHeaderCodeLo);
  launch.rsrc1 = w[kHeaderRsrc1];
  launch.rsrc2 = w[kHeaderRsrc2];
  launch.rsrc3 = w[kHeaderRsrc3];
  launch.lds_bytes = w[kHeaderLds];
  launch.scratch_wave_bytes = w[kHeaderScratchBytes];
  launch.scratch_waves = w[kHeaderScratchWaves];
  for (unsigned i = 0; i < 3; ++i) {
    launch.first[i] = w[kHeaderFirst + i];
    launch.groups[i] = w[kHeaderCount + i];
    launch.size[i] = w[kHeaderSize + i];
    launch.last_size[i] = w[kHeaderLast + i];
  }
  std::copy_n(w.begin() + kHeaderSgprs, launch.user_sgprs.size(), launch.user_sgprs.begin());
  return launch;
}

std::array<std::uint32_t, kWaveStateDwords> wave_words(const WaveSlot& slot) {
  const gcn::Wave& wave = slot.wave;
  std::array<std::uint32_t, kWaveStateDwords> w{};
  w[kWaveState] = static_cast<std::uint32_t>(slot.state) | wave.barrier_waves << kBarrierWavesShift;
  w[kWaveScratch] = slot.scratch;
  w[kWavePcLo] = lo32(wave.pc);
  w[kWavePcHi] = hi32(wave.pc);
  w[kWaveMode] = wave.mode;
  w[kWaveStatus] = wave.status;
  w[kWaveTrapsts] = wave.trapsts;
  w[kWaveScc] = wave.scc ? 1 : 0;
  w[kWaveGprIdx] = wave.gpr_idx;
  std::copy(wave.scalar.begin() + gcn::operand::kSgprs, wave.scalar.end(), w.begin() + kWaveSpecial);
  return w;
}

// Does not set the scratch part: the caller has checked it together with the group.
bool put_wave_words(std::span<const std::uint32_t> w, WaveSlot& slot) {
  gcn::Wave& wave = slot.wave;
  const std::uint32_t state = w[kWaveState] & kStateMask;
  if (state > static_cast<std::uint32_t>(kLastWaveState)) return false;
  slot.state = static_cast<WaveState>(state);
  wave.barrier_waves = w[kWaveState] >> kBarrierWavesShift;
  if (slot.state == WaveState::kGridBarrier && wave.barrier_waves == 0) return false;
  wave.pc = pair(w, kWavePcLo);
  wave.mode = w[kWaveMode];
  wave.status = w[kWaveStatus];
  wave.trapsts = w[kWaveTrapsts];
  wave.scc = w[kWaveScc] != 0;
  wave.gpr_idx = w[kWaveGprIdx];
  std::copy_n(w.begin() + kWaveSpecial, gcn::kScalars - gcn::operand::kSgprs,
              wave.scalar.begin() + gcn::operand::kSgprs);
  return true;
}

// Reads the context save area from its front.
class Cursor {
 public:
  Cursor(Memory& memory, const SavePlace& place) : memory_(memory), place_(place), at_(place.stack_bytes) {}

  MemoryResult<void> write(std::span<const std::byte> bytes) {
    TRY(memory_.write(place_.vmid, place_.area + at_, bytes));
    at_ += bytes.size();
    return {};
  }
  MemoryResult<void> read(std::span<std::byte> bytes) {
    TRY(memory_.read(place_.vmid, place_.area + at_, bytes));
    at_ += bytes.size();
    return {};
  }
  [[nodiscard]] std::uint32_t at() const { return static_cast<std::uint32_t>(at_); }

 private:
  Memory& memory_;
  const SavePlace& place_;
  std::uint64_t at_;
};

MemoryResult<void> write_group(const WorkGroup& group, unsigned sgprs, Cursor& out) {
  for (const WaveSlot& slot : group.waves()) {
    const auto state = wave_words(slot);
    TRY(out.write(std::as_bytes(std::span(state))));
    TRY(out.write(std::as_bytes(std::span(slot.wave.scalar).first(sgprs))));
    TRY(out.write(std::as_bytes(std::span(slot.wave.vgpr))));
    TRY(out.write(std::as_bytes(std::span(slot.wave.agpr))));
  }
  return out.write(group.lds());
}

base::Error unreadable() { return base::Error(EFAULT, "saved waves cannot be read"); }
base::Error senseless(const char* what) { return base::Error(EINVAL, std::string("saved waves: ") + what); }

base::Status read_wave(WaveSlot& slot, unsigned sgprs, std::span<const std::uint32_t> state, Cursor& in) {
  if (!put_wave_words(state, slot)) return senseless("state of a wave");
  gcn::Wave& wave = slot.wave;
  const bool ok = in.read(std::as_writable_bytes(std::span(wave.scalar).first(sgprs))).ok() &&
                  in.read(std::as_writable_bytes(std::span(wave.vgpr))).ok() &&
                  in.read(std::as_writable_bytes(std::span(wave.agpr))).ok();
  if (!ok) return unreadable();
  return {};
}

// The scratch parts of a group's waves are needed before the group exists.
base::Result<std::vector<std::uint32_t>> scratch_parts(const Launch& launch, std::uint64_t waves,
                                                       std::uint64_t bytes_per_wave, Cursor in, Memory& memory,
                                                       const SavePlace& place) {
  std::vector<std::uint32_t> parts;
  if (launch.scratch_wave_bytes == 0) return parts;
  for (std::uint64_t n = 0; n < waves; ++n) {
    const GpuAddr addr = place.area + in.at() + n * bytes_per_wave + kWaveScratch * kDword;
    auto part = memory.load32(place.vmid, addr);
    if (!part.ok()) return unreadable();
    parts.push_back(*part);
  }
  return parts;
}

base::Status read_group(Dispatch& dispatch, std::uint64_t index, Memory& memory, const SavePlace& place, Cursor& in) {
  const Launch& launch = dispatch.launch();
  if (index >= dispatch.next_group()) return senseless("group that has not begun");
  const Dim3 items = launch.group_size(launch.group_id(index));
  const std::uint64_t waves = (std::uint64_t{items[0]} * items[1] * items[2] + gcn::kLanes - 1) / gcn::kLanes;
  ASSIGN_OR_RETURN(const auto scratch,
                   scratch_parts(launch, waves, wave_bytes(dispatch.isa(), launch), in, memory, place));
  WorkGroup* const group = dispatch.add(index, scratch);
  if (group == nullptr) return senseless("group");
  const unsigned sgprs = plain_sgprs(wave_size(dispatch.isa(), launch));
  for (WaveSlot& slot : group->waves()) {
    std::array<std::uint32_t, kWaveStateDwords> state{};
    if (!in.read(std::as_writable_bytes(std::span(state))).ok()) return unreadable();
    TRY(read_wave(slot, sgprs, state, in));
  }
  if (!in.read(group->lds()).ok()) return unreadable();
  return {};
}

}  // namespace

std::uint64_t groups_that_fit(gcn::Isa isa, const Launch& launch, const SavePlace& place) {
  constexpr std::uint64_t kHeaderBytes = kHeaderEnd * kDword;
  if (place.stack_bytes < kHeaderBytes || place.area_bytes < place.stack_bytes) return 0;
  const std::uint64_t by_stack = (place.stack_bytes - kHeaderBytes) / (kGroupDwords * kDword);
  const std::uint64_t group_bytes = wave_bytes(isa, launch) * launch.waves_per_group() + launch.lds_bytes;
  return std::min(by_stack, (place.area_bytes - place.stack_bytes) / group_bytes);
}

MemoryResult<SavedExtent> save_dispatch(const Dispatch& dispatch, Memory& memory, const SavePlace& place) {
  Cursor out(memory, place);
  const unsigned sgprs = plain_sgprs(wave_size(dispatch.isa(), dispatch.launch()));
  for (const auto& group : dispatch.groups()) TRY(write_group(*group, sgprs, out));
  // The header is written last, because it makes the rest valid.
  const Words control = control_words(dispatch);
  const auto bytes = static_cast<std::uint32_t>(control.size() * kDword);
  const std::uint32_t offset = place.stack_bytes - bytes;
  TRY(memory.write(0, place.stack + offset, std::as_bytes(std::span(control))));
  return SavedExtent{.stack_offset = offset, .wave_end = out.at()};
}

base::Result<std::unique_ptr<Dispatch>> restore_dispatch(const vasic_info& info, gcn::Isa isa, Memory& memory,
                                                         const SavePlace& place, const SavedExtent& extent) {
  if (place.stack_bytes > kMaxStackBytes || extent.stack_offset > place.stack_bytes ||
      (place.stack_bytes - extent.stack_offset) % kDword != 0 ||
      place.stack_bytes - extent.stack_offset < kHeaderEnd * kDword) {
    return senseless("extent of the control stack");
  }
  if (extent.wave_end > place.area_bytes) return senseless("extent of the waves");
  Words control((place.stack_bytes - extent.stack_offset) / kDword);
  const auto bytes = std::as_writable_bytes(std::span(control));
  if (!memory.read(0, place.stack + extent.stack_offset, bytes).ok()) return unreadable();
  if (control[kHeaderMagic] != kMagic || control[kHeaderDwords] != control.size()) return senseless("control stack");
  if (control[kHeaderIsa] != static_cast<std::uint32_t>(isa)) return senseless("of another kind of chip");
  if ((control.size() - kHeaderEnd) / kGroupDwords != control[kHeaderGroups]) return senseless("number of groups");
  const Launch launch = launch_from(control);
  if (!check(isa, launch).ok()) return senseless("dispatch");
  const std::uint64_t most_groups = groups_that_fit(isa, launch, place);
  if (most_groups == 0) return senseless("dispatch");
  auto dispatch = std::make_unique<Dispatch>(info, isa, launch, most_groups, pair(control, kHeaderTicksLo));
  if (!dispatch->resume_at(pair(control, kHeaderNextLo))) return senseless("progress");
  Cursor in(memory, place);
  for (std::size_t n = 0; n < control[kHeaderGroups]; ++n) {
    TRY(read_group(*dispatch, pair(control, kHeaderEnd + n * kGroupDwords), memory, place, in));
    if (in.at() > extent.wave_end) return senseless("waves behind their end");
  }
  return dispatch;
}

}  // namespace vasicd
