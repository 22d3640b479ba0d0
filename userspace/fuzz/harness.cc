// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Building queues, and the canary.
#include "fuzz/harness.h"

#include <bit>

#include "packets/mqd.h"
#include "packets/mqd_sdma.h"
#include "packets/pm4.h"
#include "packets/sdma.h"
#include "vasicd/chip.h"

namespace fuzz {

using packets::hi32;
using packets::lo32;
using vasicd::GpuAddr;

namespace {

// A generous bound of what all queues together may ask for in one step. A step that never ends exceeds every bound.
constexpr std::uint64_t kMaxMaps = 500'000;
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
// One queue may use up a step's budget; the next step begins with another queue.
constexpr unsigned kBeatSteps = 8;

constexpr std::uint64_t kCanaryMqdPage = 40;
constexpr std::uint64_t kCanaryWords = 7;  // page that the device writes to
constexpr std::uint64_t kCanaryRingPages = 3;
constexpr unsigned kCanaryRingLog2 = 8;
constexpr std::uint32_t kDoorbellStep = 0x10;
constexpr std::uint32_t kKernelDoorbell = 0x800;

vasic_info any_chip(Input& in) {
  const auto names = vasicd::chip_names();
  const auto info = vasicd::parse_gpu_spec(std::string(names[in.below(static_cast<std::uint32_t>(names.size()))]), 0);
  check(info.ok(), "every chip's name is a SPEC");
  return *info;
}

}  // namespace

Harness::Harness(Input& in) : info(any_chip(in)) {
  memory.give(0, kKernelPages);
  memory.give(kHostile, kHostilePages);
  memory.give(kCanary, kCanaryPages);
  fakes.info = info;
  fakes.trace.on = in.flag();
  engines = vasicd::Engines::create(info, fakes.context_with(memory));
}

Queue Harness::make_queue(Kind kind, unsigned vmid, unsigned slot, std::uint64_t mqd_page, std::uint64_t ring_page,
                          unsigned ring_log2) {
  Queue q;
  q.kind = kind;
  q.vmid = vmid;
  q.slot = slot;
  q.mqd = page(mqd_page);
  q.ring = page(ring_page);
  q.rptr_word = page(ring_page + kRingPages);
  q.wptr_word = q.rptr_word + 64;
  q.doorbell = static_cast<std::uint32_t>(mqd_page) * kDoorbellStep;
  q.ring_dwords = std::uint32_t{1} << ring_log2;
  if (kind == Kind::kSdma) {
    fill_sdma_mqd(q);
  } else {
    fill_compute_mqd(q);
  }
  return q;
}

Queue Harness::make_kernel_ring(Kind kind, unsigned instance, std::uint64_t ring_page, unsigned ring_log2) {
  Queue q;
  q.kind = kind;
  q.slot = instance;
  q.kernel = true;
  q.ring = page(ring_page);
  q.rptr_word = page(ring_page + kRingPages);
  q.wptr_word = q.rptr_word + 64;
  q.doorbell = kKernelDoorbell + instance * kDoorbellStep;
  q.ring_dwords = std::uint32_t{1} << ring_log2;
  return q;
}

void Harness::mqd_word(const Queue& queue, std::size_t index, std::uint32_t value) {
  if (index != packets::mqd::kNone) memory.put(0, queue.mqd + index * 4, value);
}

void Harness::fill_compute_mqd(const Queue& q) {
  namespace m = packets::mqd;
  const auto& at = m::compute_layout(info.gfx_level);
  std::uint32_t control = m::kPqQueueSize.put(static_cast<std::uint32_t>(std::countr_zero(q.ring_dwords)) - 1);
  mqd_word(q, at.header, m::kHeaderValue);
  mqd_word(q, at.cp_hqd_pq_base_lo, lo32(q.ring >> 8));
  mqd_word(q, at.cp_hqd_pq_base_hi, hi32(q.ring >> 8));
  mqd_word(q, at.cp_hqd_pq_rptr_report_addr_lo, lo32(q.rptr_word));
  mqd_word(q, at.cp_hqd_pq_wptr_poll_addr_lo, lo32(q.wptr_word));
  mqd_word(q, at.cp_hqd_pq_doorbell_control, at.doorbell_offset.put(q.doorbell));
  mqd_word(q, at.cp_hqd_cntl_stack_size, 0x2000);
  if (q.kind == Kind::kAql) {
    mqd_word(q, at.aql_enable(), 1);
    control |= m::kPqNoUpdateRptr.put(1) | at.slot_based_wptr.put(m::kSlotBasedWptrAql);
    for (std::uint32_t i = 0; i < q.ring_dwords; i += 16) memory.put(q.vmid, q.ring + i * 4, std::uint32_t{1});
  }
  mqd_word(q, at.cp_hqd_pq_control, control);
}

void Harness::fill_sdma_mqd(const Queue& q) {
  const auto& at = packets::mqd::sdma_layout(info.gfx_level);
  mqd_word(q, at.rb_cntl, at.rb_size.put(static_cast<std::uint32_t>(std::countr_zero(q.ring_dwords))));
  mqd_word(q, at.rb_base, lo32(q.ring >> 8));
  mqd_word(q, at.rb_base_hi, hi32(q.ring >> 8));
  mqd_word(q, at.rb_rptr_addr_lo, lo32(q.rptr_word));
  mqd_word(q, at.doorbell_index(), at.doorbell_field().put(q.doorbell));
}

bool Harness::load(const Queue& q) {
  if (q.kernel) {
    const auto kind = q.kind == Kind::kSdma ? vasicd::RingKind::kSdma : vasicd::RingKind::kCompute;
    return engines
        ->load_ring({kind, q.slot, q.ring, std::uint64_t{q.ring_dwords} * 4, q.rptr_word, q.wptr_word, q.doorbell})
        .ok();
  }
  const auto kind = q.kind == Kind::kSdma ? vasicd::QueueKind::kSdma : vasicd::QueueKind::kCompute;
  return engines->load_hqd({kind, 0, q.slot, 0}, q.mqd, q.vmid).ok();
}

void Harness::unload(const Queue& q, vasicd::UnloadMode mode) {
  memory.maps = memory.bytes = 0;
  if (q.kernel) {
    const auto kind = q.kind == Kind::kSdma ? vasicd::RingKind::kSdma : vasicd::RingKind::kCompute;
    (void)engines->unload_ring(kind, q.slot, mode);
  } else {
    const auto kind = q.kind == Kind::kSdma ? vasicd::QueueKind::kSdma : vasicd::QueueKind::kCompute;
    (void)engines->unload_hqd({kind, 0, q.slot, 0}, mode);
  }
  check(memory.maps <= kMaxMaps && memory.bytes <= kMaxBytes, "stopping a queue is bounded");
}

void Harness::write(Queue& q, packets::WordView words) {
  std::uint64_t at = q.position();
  for (const std::uint32_t word : words) memory.put(q.vmid, q.ring + at++ % q.ring_dwords * 4, word);
  q.wptr += q.kind == Kind::kSdma ? words.size() * 4 : q.kind == Kind::kAql ? words.size() / 16 : words.size();
}

void Harness::ring(const Queue& q, std::uint64_t wptr) {
  memory.put(q.vmid, q.wptr_word, wptr);
  fakes.doorbells.rung[q.doorbell] = q.kind == Kind::kAql && info.gfx_level >= 9 ? wptr - 1 : wptr;
}

bool Harness::step() {
  memory.maps = memory.bytes = 0;
  const bool advanced = engines->step();
  check(memory.maps <= kMaxMaps && memory.bytes <= kMaxBytes, "a step is bounded");
  fakes.trace.lines.clear();
  fakes.interrupts.raised.clear();
  fakes.interrupts.faults.clear();
  return advanced;
}

packets::Words Harness::canary_packet(Kind kind, GpuAddr addr, std::uint32_t value) const {
  packets::Words words;
  if (kind == Kind::kSdma) {
    packets::sdma::fence(words, addr, value);
  } else {
    packets::pm4::write_data(words, addr, value);
  }
  return words;
}

void Harness::start_canary() {
  canary_ = {make_queue(Kind::kPm4, kCanary, 1, kCanaryMqdPage, 0, kCanaryRingLog2),
             make_queue(Kind::kSdma, kCanary, 1, kCanaryMqdPage + 1, kCanaryRingPages, kCanaryRingLog2)};
  for (std::size_t i = 0; i < canary_.size(); ++i) {
    Queue& q = canary_[i];
    q.rptr_word = page(kCanaryWords) + i * 256;
    q.wptr_word = q.rptr_word + 64;
    if (q.kind == Kind::kSdma) {
      fill_sdma_mqd(q);
    } else {
      fill_compute_mqd(q);
    }
    check(load(q), "the canary's queues can be loaded");
  }
  const auto bytes = memory.guest(kCanary, page(0), kCanaryWords * FuzzMemory::kPage);
  canary_image_.assign(bytes.begin(), bytes.end());
}

void Harness::beat() {
  ++beats_;
  const auto done = [&](const Queue& q) { return memory.get<std::uint32_t>(kCanary, q.rptr_word + 128) == beats_; };
  for (Queue& q : canary_) {
    const std::uint64_t before = q.position();
    const packets::Words words = canary_packet(q.kind, q.rptr_word + 128, beats_);
    write(q, words);
    ring(q, q.wptr);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t at = (q.ring - page(0)) + (before + i) % q.ring_dwords * 4;
      std::memcpy(canary_image_.data() + at, &words[i], 4);
    }
  }
  for (unsigned i = 0; i < kBeatSteps; ++i) step();
  for (const Queue& q : canary_) check(done(q), "other queues go on");
  const auto bytes = memory.guest(kCanary, page(0), kCanaryWords * FuzzMemory::kPage);
  check(std::equal(bytes.begin(), bytes.end(), canary_image_.begin()), "nobody touches another VMID's memory");
}

void Harness::reset() {
  engines->reset();
  fakes.doorbells.rung.clear();
  canary_.clear();
  check(!engines->anything_mapped() && !engines->user_queues_mapped(), "nothing is mapped after a reset");
  check(!engines->step(), "a reset device has nothing to do");
}

}  // namespace fuzz
