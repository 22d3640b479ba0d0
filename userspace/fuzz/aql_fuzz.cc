// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// AQL packets of every type, with signals at any address, and vendor packets that run PM4 or wait for a value.
#include "fuzz/hostile.h"
#include "packets/aql.h"

namespace {

namespace aql = packets::aql;

void emit(fuzz::Input& in, fuzz::WordMaker& word, packets::Words& out) {
  const std::size_t begin = out.size();
  const auto type = static_cast<aql::Type>(in.below(7));
  const std::uint32_t header = in.below(16) == 0 ? in.u32() : aql::header(type, in.flag());
  if (type == aql::kVendorSpecific && in.below(4) == 0) {
    aql::BarrierValue barrier;
    barrier.header = static_cast<std::uint16_t>(header);
    barrier.signal = word();
    barrier.value = in.u8();
    barrier.mask = in.flag() ? -1 : in.u8();
    barrier.condition = static_cast<aql::Condition>(in.below(5));
    barrier.completion_signal = word();
    const aql::Slot slot = aql::to_slot(barrier);
    out.insert(out.end(), slot.begin(), slot.end());
    return;
  }
  out.push_back(header);
  if (type == aql::kVendorSpecific && in.flag()) {
    out.back() |= std::uint32_t{aql::kVendorPm4Ib} << 16;
    packets::pm4::indirect_buffer(out, word(), in.u8(), in.below(8) == 0);
    out.push_back(aql::kVendorRemainingDwords);
  }
  // Signal handles are 64 bits; the upper halves are mostly zero.
  while (out.size() < begin + aql::kPacketDwords)
    out.push_back((out.size() - begin) % 2 == 1 && in.below(8) != 0 ? 0 : word());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  fuzz::Harness harness(in);
  const fuzz::Queue queue = harness.make_queue(fuzz::Kind::kAql, fuzz::Harness::kHostile, 0, 1, 8, 4 + in.below(7));
  fuzz::Hostile(harness, in, queue, emit).run();
  return 0;
}
