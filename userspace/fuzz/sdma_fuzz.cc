// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// SDMA streams in a user queue and in a kernel ring, in every chip's format.
#include "fuzz/hostile.h"
#include "packets/sdma.h"

namespace {

namespace sdma = packets::sdma;

struct Known {
  std::uint8_t op;
  std::uint8_t sub_op;
  std::size_t dwords;
};
// Lengths of the common form; other formats' are reached by the odd ones below.
constexpr std::array kKnown = {
    Known{sdma::kNop, 0, 1},        Known{sdma::kCopy, 0, 7},
    Known{sdma::kWrite, 0, 6},      Known{sdma::kIndirect, 0, 6},
    Known{sdma::kFence, 0, 4},      Known{sdma::kTrap, 0, 2},
    Known{sdma::kSemaphore, 0, 3},  Known{sdma::kPollRegmem, 0, 6},
    Known{sdma::kCondExe, 0, 5},    Known{sdma::kAtomic, 0, 8},
    Known{sdma::kConstFill, 0, 5},  Known{sdma::kPtePde, 0, 10},
    Known{sdma::kPtePde, 1, 8},     Known{sdma::kTimestamp, 0, 3},
    Known{sdma::kTimestamp, 1, 3},  Known{sdma::kTimestamp, 2, 3},
    Known{sdma::kSrbmWrite, 0, 3},  Known{sdma::kPreExe, 0, 2},
    Known{sdma::kDummyTrap, 0, 2},  Known{sdma::kCopy, 4, 13},
    Known{sdma::kWrite, 1, 10},     Known{17, 0, 4},
    Known{sdma::kPollRegmem, 1, 4}, Known{sdma::kCopy, 8, 8},
};

void emit(fuzz::Input& in, fuzz::WordMaker& word, packets::Words& out) {
  if (in.below(16) == 0) {
    out.push_back(in.u32());
    return;
  }
  const Known& known = in.pick(std::span<const Known>(kKnown));
  const std::uint32_t extra = in.flag() ? std::uint32_t{in.u16()} << 16 : 0;
  const std::size_t dwords = in.below(8) == 0 ? 1u + in.below(16) : known.dwords;
  out.push_back(known.op | std::uint32_t{known.sub_op} << 8 | extra);
  for (std::size_t i = 1; i < dwords; ++i) out.push_back(in.below(3) == 0 ? 0 : word());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  fuzz::Harness harness(in);
  const unsigned log2 = 4 + in.below(7);
  const bool kernel = in.below(4) == 0;
  const fuzz::Queue queue = kernel ? harness.make_kernel_ring(fuzz::Kind::kSdma, 0, 8, log2)
                                   : harness.make_queue(fuzz::Kind::kSdma, fuzz::Harness::kHostile, 0, 1, 8, log2);
  fuzz::Hostile(harness, in, queue, emit).run();
  return 0;
}
