// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// MUBUF instructions, and the addresses of the lanes' data in a buffer. Source: section "Buffer addressing" of the ISA
// documents.
//
// Linear:   base + soffset + index * stride + offset
// Swizzled: the elements (4 bytes) of `is` indices are contiguous, `is` being the index stride:
//           base + soffset + (index / is * stride + offset / 4 * 4) * is + index % is * 4 + offset % 4
// Range: with an index and a stride, records are counted in strides, else in bytes. Each dword beyond the range reads
// as 0 and is not written. Not implemented: formatted loads and stores (also MTBUF), buffer_store_lds_dword.
#include <algorithm>
#include <optional>

#include "gcn/memory/buffer_resource.h"
#include "gcn/memory/handler_groups.h"
#include "gcn/memory/lds.h"

namespace gcn {
namespace {

constexpr unsigned kElement = 4;

// The fields of the descriptor, which are the same for all lanes, decoded once for an instruction.
class Buffer {
 public:
  Buffer(const Instruction& instruction, const Machine& machine) {
    const BufferResource resource(machine.wave, instruction.src[2]);
    soffset_ = read_scalar32(instruction, machine, instruction.src[3]);
    base_ = resource.base() + soffset_;
    stride_ = resource.stride();
    records_ = resource.records();
    index_shift_ = static_cast<unsigned>(std::countr_zero(resource.index_stride()));
    swizzled_ = resource.is_swizzled();
    adds_lane_ = resource.adds_lane();
    structured_ = instruction.idxen && stride_ != 0;
  }

  // Returns whether the lane's number is added to the index.
  [[nodiscard]] bool adds_lane() const { return adds_lane_; }

  // Returns the address of the lane's data if all of it is in range and contiguous.
  [[nodiscard]] std::optional<Address> find_whole(unsigned bytes, std::uint64_t index, std::uint64_t offset) const {
    const std::uint64_t last = offset + (bytes - 1) / kElement * kElement;
    const bool together = !swizzled_ || offset % kElement + bytes <= kElement;
    if (!together || !in_range(index, last)) return std::nullopt;
    return base_ + relative(index, offset);
  }

  // Adds each dword on its own, for data that is not contiguous or not all in range. Returns false after a fault.
  [[nodiscard]] bool add_elements(LaneAccess& access, unsigned lane, std::uint64_t index, std::uint64_t offset) const {
    const unsigned bytes = access.bytes();
    access.note_alignment(swizzled_ ? base_ + offset : base_ + relative(index, offset));
    bool found = true;
    for (unsigned first = 0; first < bytes && found;) {
      const std::uint64_t at = offset + first;
      // In a swizzled buffer an unaligned dword is in two elements.
      const auto rest = static_cast<unsigned>(kElement - (swizzled_ ? at : first) % kElement);
      const unsigned size = std::min(rest, bytes - first);
      if (in_range(index, at)) found = access.add_part(lane, first, size, base_ + relative(index, at));
      first += size;
    }
    return found;
  }

 private:
  [[nodiscard]] std::uint64_t relative(std::uint64_t index, std::uint64_t offset) const {
    if (!swizzled_) return index * stride_ + offset;
    const std::uint64_t low = index & ((std::uint64_t{1} << index_shift_) - 1);
    const std::uint64_t row = (index >> index_shift_) * stride_ + offset / kElement * kElement;
    return (row << index_shift_) + low * kElement + offset % kElement;
  }

  [[nodiscard]] bool in_range(std::uint64_t index, std::uint64_t offset) const {
    if (!structured_) return relative(index, offset) + soffset_ < records_;
    return index < records_ && (!swizzled_ || offset < stride_);
  }

  Address base_;
  std::uint64_t soffset_;
  std::uint64_t stride_;
  std::uint64_t records_;
  unsigned index_shift_;
  bool swizzled_;
  bool adds_lane_;
  bool structured_;
};

Outcome find_any(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  const unsigned addresses = (instruction.idxen ? 1u : 0u) + (instruction.offen ? 1u : 0u);
  const Vgpr* const vaddr = addresses == 0 ? nullptr : find_registers(machine.wave, instruction.src[0], addresses);
  if ((vaddr == nullptr && addresses != 0) || instruction.tfe) return Outcome::kIllegal;
  const Buffer buffer(instruction, machine);
  const std::uint64_t lanes = machine.wave.exec();
  // Both sums have 32 bits: LLVM folds a constant into the instruction also where the register is negative
  // (AMDGPUDAGToDAGISel::SelectMUBUFScratchOffen, for private arrays with a computed index).
  const auto index = [&](unsigned lane) -> std::uint32_t {
    return (instruction.idxen ? vaddr[0][lane] : 0) + (buffer.adds_lane() ? lane : 0);
  };
  const auto offset = [&](unsigned lane) -> std::uint32_t {
    return (instruction.offen ? vaddr[addresses - 1][lane] : 0) + static_cast<std::uint32_t>(instruction.offset);
  };
  LaneAddresses found = {};
  std::uint64_t whole = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    const std::optional<Address> address = buffer.find_whole(access.bytes(), index(lane), offset(lane));
    found[lane] = address.value_or(0);
    whole |= std::uint64_t{address.has_value() ? 1u : 0u} << lane;
  });
  bool mapped = access.add_lanes(whole, found);
  for_each_lane(lanes & ~whole, [&](unsigned lane) {
    mapped = mapped && buffer.add_elements(access, lane, index(lane), offset(lane));
  });
  return mapped ? Outcome::kNext : Outcome::kFault;
}

Outcome find_buffer(const Instruction& instruction, Machine& machine, LaneAccess& access) {
  return instruction.lds ? Outcome::kIllegal : find_any(instruction, machine, access);
}

// Loads a dword for each lane into LDS, at M0 plus the constant offset.
template <LoadFormat kFormat>
Outcome load_to_lds(const Instruction& instruction, Machine& machine) {
  LaneAccess access(machine.memory, Access::kRead, kFormat.bytes);
  const Outcome outcome = find_any(instruction, machine, access);
  if (outcome != Outcome::kNext) return outcome;
  LaneWords words;
  words[0].fill(0);
  access.load<kFormat.bytes>(words);
  const std::uint32_t base =
      (machine.wave.scalar[operand::kM0] & 0xffff) + static_cast<std::uint32_t>(instruction.offset);
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(),
                [&](unsigned lane) { lds.set(base + 4 * lane, extend<kFormat>(0, words[0][lane])); });
  return Outcome::kNext;
}

template <LoadFormat kFormat>
Outcome load_or_to_lds(const Instruction& instruction, Machine& machine) {
  return instruction.lds ? load_to_lds<kFormat>(instruction, machine)
                         : load<find_buffer, kFormat>(instruction, machine);
}

Outcome nothing(const Instruction& /*instruction*/, Machine& /*machine*/) { return Outcome::kNext; }

}  // namespace

void add_buffer_handlers(HandlerTable& table) {
  add_loads_and_stores<find_buffer>(table, "buffer_");
  add_atomics<find_buffer>(table, "buffer_");
  table.set(Op::kBufferLoadUbyte, load_or_to_lds<LoadFormat{1}>);
  table.set(Op::kBufferLoadSbyte, load_or_to_lds<LoadFormat{1, true}>);
  table.set(Op::kBufferLoadUshort, load_or_to_lds<LoadFormat{2}>);
  table.set(Op::kBufferLoadSshort, load_or_to_lds<LoadFormat{2, true}>);
  table.set(Op::kBufferLoadDword, load_or_to_lds<LoadFormat{4}>);
  // No cache is modelled, so its control instructions do nothing.
  for (const Op op : {Op::kBufferWbinvl1, Op::kBufferWbinvl1Vol, Op::kBufferWbl2, Op::kBufferInvl2}) {
    table.set(op, nothing);
  }
}

}  // namespace gcn
