// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// PM4 streams in a user queue and in a kernel ring, of every chip.
#include "fuzz/hostile.h"
#include "packets/pm4.h"

namespace {

namespace pm4 = packets::pm4;

struct Known {
  pm4::Opcode opcode;
  std::size_t dwords;
};
constexpr std::array kKnown = {
    Known{pm4::kNop, 2},        Known{pm4::kWriteData, 5},      Known{pm4::kReleaseMem, 8},
    Known{pm4::kReleaseMem, 7}, Known{pm4::kWaitRegMem, 7},     Known{pm4::kIndirectBuffer, 4},
    Known{pm4::kCopyData, 6},   Known{pm4::kAtomicMem, 9},      Known{pm4::kDmaData, 7},
    Known{pm4::kAcquireMem, 7}, Known{pm4::kAcquireMem, 8},     Known{pm4::kEventWrite, 2},
    Known{pm4::kSetShReg, 3},   Known{pm4::kSetUconfigReg, 3},  Known{pm4::kDispatchDirect, 5},
    Known{pm4::kClearState, 2}, Known{pm4::kContextControl, 3}, Known{pm4::kPfpSyncMe, 2},
    Known{pm4::kWriteData, 9},  Known{pm4::kMapQueues, 7},      Known{pm4::kInvalidateTlbs, 2},
};

void emit(fuzz::Input& in, fuzz::WordMaker& word, packets::Words& out) {
  if (in.below(16) == 0) {
    out.push_back(in.u32());
    return;
  }
  const Known& known = in.pick(std::span<const Known>(kKnown));
  const std::size_t dwords = in.below(8) == 0 ? 2u + in.below(14) : known.dwords;
  out.push_back(pm4::header(known.opcode, dwords));
  for (std::size_t i = 1; i < dwords; ++i) out.push_back(word());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  fuzz::Harness harness(in);
  const unsigned log2 = 4 + in.below(7);
  const bool kernel = in.below(4) == 0;
  const fuzz::Queue queue = kernel ? harness.make_kernel_ring(fuzz::Kind::kPm4, 0, 8, log2)
                                   : harness.make_queue(fuzz::Kind::kPm4, fuzz::Harness::kHostile, 0, 1, 8, log2);
  fuzz::Hostile(harness, in, queue, emit).run();
  return 0;
}
