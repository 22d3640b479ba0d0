// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queue descriptors that are garbage, as a checkpoint image may contain: loaded, run, stopped and loaded again. The
// device must accept the descriptor that it wrote when it stopped the queue.
#include "fuzz/hostile.h"

namespace {

using fuzz::check;

// Overwrites dwords of the descriptor: a few known to matter, or anything anywhere.
void corrupt(fuzz::Harness& harness, fuzz::Input& in, fuzz::WordMaker& word, const fuzz::Queue& queue) {
  for (unsigned n = in.below(24); n > 0; --n) {
    const std::uint64_t index = in.flag() ? in.below(256) : in.u16() % 512u;
    harness.memory.put(0, queue.mqd + index * 4, word());
  }
  if (in.below(8) != 0) return;
  const auto bytes = in.bytes(2048);
  std::memcpy(harness.memory.guest(0, queue.mqd, bytes.size()).data(), bytes.data(), bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  fuzz::Harness harness(in);
  fuzz::WordMaker word(in, harness.memory.size(fuzz::Harness::kHostile));
  harness.start_canary();
  const auto kind = static_cast<fuzz::Kind>(in.below(3));
  fuzz::Queue queue = harness.make_queue(kind, fuzz::Harness::kHostile, 0, 1, 8, 4 + in.below(7));
  corrupt(harness, in, word, queue);
  for (unsigned life = 0; life < 4; ++life) {
    if (!harness.load(queue)) break;
    harness.fakes.doorbells.rung[queue.doorbell] = in.u16();
    for (unsigned n = in.below(8); n > 0; --n) harness.step();
    harness.beat();
    harness.unload(queue, in.flag() ? vasicd::UnloadMode::kSave : vasicd::UnloadMode::kDrain);
    check(harness.load(queue), "what was saved can be loaded");
    harness.beat();
    harness.unload(queue, vasicd::UnloadMode::kReset);
    corrupt(harness, in, word, queue);
  }
  harness.beat();
  harness.reset();
  return 0;
}
