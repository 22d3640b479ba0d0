// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The engines of one GPU between two programs: a hostile one, in its own VMID or in the kernel's, and a canary, which
// shares the engines with it and must continue to work. The fuzzer's input decides what the hostile program does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuzz/fuzz_memory.h"
#include "fuzz/input.h"
#include "packets/words.h"
#include "vasicd/blocks/engines.h"
#include "vasicd/blocks/fakes/fake_context.h"

namespace fuzz {

enum class Kind : std::uint8_t { kPm4, kAql, kSdma };

// A queue as the driver sees it.
struct Queue {
  Kind kind = Kind::kPm4;
  unsigned vmid = 0;
  unsigned slot = 0;
  bool kernel = false;       // a kernel ring: no MQD
  vasicd::GpuAddr mqd = 0;   // VMID 0
  vasicd::GpuAddr ring = 0;  // these three in `vmid`
  vasicd::GpuAddr rptr_word = 0;
  vasicd::GpuAddr wptr_word = 0;
  std::uint32_t doorbell = 0;
  std::uint32_t ring_dwords = 0;
  std::uint64_t wptr = 0;  // PM4: dwords, SDMA: bytes, AQL: packets

  // Dwords that one step of the write pointer is.
  [[nodiscard]] std::uint64_t position() const {
    return kind == Kind::kSdma ? wptr / 4 : kind == Kind::kAql ? wptr * 16 : wptr;
  }
};

class Harness {
 public:
  static constexpr unsigned kHostile = 8;
  static constexpr unsigned kCanary = 9;
  static constexpr std::size_t kKernelPages = 48;
  static constexpr std::size_t kHostilePages = 24;
  static constexpr std::size_t kCanaryPages = 8;
  // Pages of a queue: its ring, and one of pointer words.
  static constexpr std::uint64_t kRingPages = 4;

  // The chip is the input's first choice.
  explicit Harness(Input& in);

  static vasicd::GpuAddr page(std::uint64_t index) { return FuzzMemory::kBase + index * FuzzMemory::kPage; }

  // `mqd_page` of VMID 0; the ring from `ring_page` of `vmid` on.
  Queue make_queue(Kind kind, unsigned vmid, unsigned slot, std::uint64_t mqd_page, std::uint64_t ring_page,
                   unsigned ring_log2);
  Queue make_kernel_ring(Kind kind, unsigned instance, std::uint64_t ring_page, unsigned ring_log2);
  bool load(const Queue& queue);
  void unload(const Queue& queue, vasicd::UnloadMode mode);

  // Appends to the ring; `ring` makes it known.
  void write(Queue& queue, packets::WordView words);
  void ring(const Queue& queue, std::uint64_t wptr);

  // One step, with its bound checked.
  bool step();

  // The canary: a PM4 and an SDMA queue in a VMID of their own.
  void start_canary();
  // Checks that both queues execute one more packet within a few steps, and that their memory is unchanged.
  void beat();

  // Resets the engines to the power-on state, where nothing is mapped.
  void reset();

  [[nodiscard]] packets::Words canary_packet(Kind kind, vasicd::GpuAddr addr, std::uint32_t value) const;

  FuzzMemory memory;
  vasic_info info;
  vasicd::FakeContext fakes{0};
  std::unique_ptr<vasicd::Engines> engines;

 private:
  void fill_compute_mqd(const Queue& queue);
  void fill_sdma_mqd(const Queue& queue);
  void mqd_word(const Queue& queue, std::size_t index, std::uint32_t value);

  std::vector<Queue> canary_;
  std::uint32_t beats_ = 0;
  std::vector<std::byte> canary_image_;  // what the canary's memory must hold, except its page of device words
};

}  // namespace fuzz
