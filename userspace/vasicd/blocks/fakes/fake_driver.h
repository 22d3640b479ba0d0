// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A driver's view of the engines, for tests: builds MQDs, rings and run lists in fake memory, submits, steps until
// idle.
#pragma once

#include <memory>
#include <vector>

#include "packets/aql.h"
#include "packets/mqd.h"
#include "packets/mqd_sdma.h"
#include "packets/pm4_hws.h"
#include "packets/sdma.h"
#include "vasic/vasic_abi.h"
#include "vasicd/blocks/engines.h"
#include "vasicd/blocks/fakes/fake_context.h"

namespace vasicd {

// One queue in guest memory: MQD, ring, pointer words. `wptr` counts as the kind of queue does.
struct GuestQueue {
  GpuAddr mqd = 0;
  GpuAddr ring = 0;
  GpuAddr rptr_word = 0;
  GpuAddr wptr_word = 0;
  std::uint32_t doorbell = 0;
  std::uint64_t ring_dwords = 0;
  std::uint64_t wptr = 0;  // PM4: dwords, SDMA: bytes, AQL: packets
  packets::pm4::QueueEngine engine = packets::pm4::QueueEngine::kCompute;
  bool aql = false;
  bool kernel = false;
};

class FakeDriver : public FakeContext {
 public:
  static constexpr std::size_t kMemory = 16u << 20;
  static constexpr GpuAddr kData = 8u << 20;  // memory from here on is for tests
  static constexpr std::uint32_t kHiqDoorbell = 2;
  static constexpr std::uint32_t kPasid = 0x8001;
  static constexpr unsigned kVmid = 8;

  explicit FakeDriver(unsigned gfx_level = 9) : FakeContext(kMemory) {
    info.gfx_level = gfx_level;
    info.gc_ip = gfx_level == 9 ? VASIC_IP_VERSION(9u, 4u, 0u) : VASIC_IP_VERSION(gfx_level, 0u, 0u);
    info.doorbell_size = gfx_level < 9 ? 4 : 8;
    info.sdma_format = gfx_level - 7;  // one per generation
    info.sdma_count = 2;
    info.mec_count = 2;
    info.pipes_per_mec = 4;
    info.queues_per_pipe = 8;
    info.xcc_count = 1;
    engines = Engines::create(info, context());
  }
  // Replaces the device and keeps guest memory, as when a program moves to another host or VM.
  void replace_device() {
    engines = Engines::create(info, context());
    doorbells.rung.clear();
  }

  GpuAddr alloc(std::uint64_t bytes) {
    const GpuAddr at = next_;
    next_ += (bytes + 0xfff) & ~GpuAddr{0xfff};
    return at;
  }

  GuestQueue make_queue(std::uint32_t doorbell, std::uint64_t ring_dwords) {
    GuestQueue q;
    q.mqd = alloc(4096);
    q.ring = alloc(ring_dwords * 4);
    q.rptr_word = alloc(4096);
    q.wptr_word = q.rptr_word + 64;
    q.doorbell = doorbell;
    q.ring_dwords = ring_dwords;
    return q;
  }
  [[nodiscard]] const packets::mqd::ComputeMqdLayout& compute_layout() const {
    return packets::mqd::compute_layout(info.gfx_level);
  }
  [[nodiscard]] const packets::mqd::SdmaMqdLayout& sdma_layout() const {
    return packets::mqd::sdma_layout(info.gfx_level);
  }
  void mqd_word(const GuestQueue& q, std::size_t index, std::uint32_t value) {
    if (index != packets::mqd::kNone) memory.put(q.mqd + index * 4, value);
  }
  [[nodiscard]] std::uint32_t mqd_word(const GuestQueue& q, std::size_t index) const {
    return index == packets::mqd::kNone ? 0 : memory.get<std::uint32_t>(q.mqd + index * 4);
  }

  GuestQueue make_compute(std::uint32_t doorbell, std::uint64_t ring_dwords = 1024) {
    namespace m = packets::mqd;
    const auto& at = compute_layout();
    GuestQueue q = make_queue(doorbell, ring_dwords);
    mqd_word(q, at.header, m::kHeaderValue);
    mqd_word(q, at.cp_hqd_pq_base_lo, packets::lo32(q.ring >> 8));
    mqd_word(q, at.cp_hqd_pq_base_hi, packets::hi32(q.ring >> 8));
    mqd_word(q, at.cp_hqd_pq_control, static_cast<std::uint32_t>(__builtin_ctzll(ring_dwords) - 1));
    mqd_word(q, at.cp_hqd_pq_rptr_report_addr_lo, packets::lo32(q.rptr_word));
    mqd_word(q, at.cp_hqd_pq_wptr_poll_addr_lo, packets::lo32(q.wptr_word));
    mqd_word(q, at.cp_hqd_pq_doorbell_control, at.doorbell_offset.put(doorbell));
    mqd_word(q, at.cp_hqd_cntl_stack_size, 0x2000);
    mqd_word(q, at.cp_hqd_cntl_stack_offset, 0x2000);
    mqd_word(q, at.cp_hqd_wg_state_offset, 0x2000);
    mqd_word(q, at.cp_hqd_ib_control, m::kIbMinAvailSize.put(3) | m::kIbExeDisable.put(1));
    return q;
  }
  GuestQueue make_aql(std::uint32_t doorbell, std::uint64_t packets_in_ring = 64) {
    namespace m = packets::mqd;
    const auto& at = compute_layout();
    GuestQueue q = make_compute(doorbell, packets_in_ring * packets::aql::kPacketDwords);
    q.aql = true;
    mqd_word(q, at.aql_enable(), 1);
    mqd_word(
        q, at.cp_hqd_pq_control,
        mqd_word(q, at.cp_hqd_pq_control) | m::kPqNoUpdateRptr.put(1) | at.slot_based_wptr.put(m::kSlotBasedWptrAql));
    for (std::uint64_t i = 0; i < packets_in_ring; ++i) {
      memory.put<std::uint16_t>(q.ring + i * packets::aql::kPacketBytes, packets::aql::kInvalid);
    }
    return q;
  }
  GuestQueue make_sdma(std::uint32_t doorbell, unsigned engine = 0, std::uint64_t ring_dwords = 1024) {
    namespace m = packets::mqd;
    const auto& at = sdma_layout();
    GuestQueue q = make_queue(doorbell, ring_dwords);
    q.engine = engine == 0 ? packets::pm4::QueueEngine::kSdma0 : packets::pm4::QueueEngine::kSdma1;
    mqd_word(q, at.rb_cntl, at.rb_size.put(static_cast<std::uint32_t>(__builtin_ctzll(ring_dwords))));
    mqd_word(q, at.rb_base, packets::lo32(q.ring >> 8));
    mqd_word(q, at.rb_rptr_addr_lo, packets::lo32(q.rptr_word));
    mqd_word(q, at.doorbell_index(), at.doorbell_field().put(doorbell));
    return q;
  }

  // Appends packets to a ring. `wptr` counts dwords of a PM4 ring and bytes of an SDMA ring.
  void write_ring(GuestQueue& q, packets::WordView words) {
    const std::uint64_t unit = q.engine == packets::pm4::QueueEngine::kCompute ? 1 : 4;
    for (const std::uint32_t word : words) {
      memory.put(q.ring + (q.wptr / unit) % q.ring_dwords * 4, word);
      q.wptr += unit;
    }
  }
  // On chips before gfx9 pointers of user queues are 32 bits wide and wrap.
  void ring(const GuestQueue& q) {
    const bool old = info.gfx_level < 9 && !q.kernel;
    const std::uint64_t unit = q.engine == packets::pm4::QueueEngine::kCompute ? 1 : 4;
    const std::uint64_t wptr = old ? q.wptr % (q.ring_dwords * unit) : q.wptr;
    memory.put(q.wptr_word, wptr);
    doorbells.rung[q.doorbell] = info.doorbell_size == 4 ? packets::lo32(wptr) : wptr;
  }
  void ring_aql(const GuestQueue& q) {
    namespace m = packets::mqd;
    memory.put(q.wptr_word, q.wptr);
    switch (compute_layout().aql_doorbell) {
      case m::AqlDoorbell::kDwords:
        doorbells.rung[q.doorbell] = q.wptr * packets::aql::kPacketDwords % q.ring_dwords;
        break;
      case m::AqlDoorbell::kCount32:
        doorbells.rung[q.doorbell] = packets::lo32(q.wptr);
        break;
      case m::AqlDoorbell::kIndex64:
        doorbells.rung[q.doorbell] = q.wptr - 1;
        break;
    }
  }
  void submit(GuestQueue& q, packets::WordView words) {
    write_ring(q, words);
    ring(q);
  }
  template <typename Packet>
  void submit_aql(GuestQueue& q, const Packet& packet) {
    memory.put(q.ring + q.wptr % (q.ring_dwords / packets::aql::kPacketDwords) * packets::aql::kPacketBytes, packet);
    ++q.wptr;
    ring_aql(q);
  }

  void run(unsigned limit = 1000) {
    while (limit-- > 0 && engines->step()) {
    }
  }

  // Kernel SDMA ring of instance 0.
  GuestQueue load_kernel_ring(std::uint64_t ring_dwords = 1024) {
    GuestQueue q = make_queue(0x100, ring_dwords);
    q.kernel = true;
    q.engine = packets::pm4::QueueEngine::kSdma0;
    KernelRing ring_args{RingKind::kSdma, 0, q.ring, ring_dwords * 4, q.rptr_word, q.wptr_word, q.doorbell};
    ring_loaded = engines->load_ring(ring_args).ok();
    return q;
  }

  // --- The driver's scheduler.
  void load_hiq() {
    hiq = make_compute(kHiqDoorbell, 4096);
    hiq_loaded = engines->load_hqd({QueueKind::kHiq, 0, 0, 0}, hiq.mqd, 0).ok();
    set_resources(vmid_mask, ~std::uint64_t{0});
  }
  void set_resources(std::uint32_t vmids, std::uint64_t queue_mask, std::uint32_t unmap_latency = 0) {
    packets::Words w;
    packets::pm4::set_resources(w, {.vmid_mask = vmids, .queue_mask = queue_mask, .unmap_latency = unmap_latency});
    hiq_submit(w);
  }
  // Advances the clock by so many quantums of 10 ms, with steps between.
  void share_time(unsigned quantums) {
    for (unsigned i = 0; i < 10 * quantums; ++i) {
      clock.now += 1'000'000;
      run(20);
    }
  }
  void hiq_submit(packets::WordView words) {
    submit(hiq, words);
    engines->step();
  }
  static packets::pm4::MapQueues map_of(const GuestQueue& q) {
    return {.engine = q.engine, .doorbell = q.doorbell, .mqd = q.mqd, .wptr_addr = q.wptr_word};
  }
  struct GuestProcess {
    std::uint32_t pasid = kPasid;
    std::vector<GuestQueue*> queues;
  };
  void run_list(const std::vector<GuestProcess>& processes) {
    packets::Words list;
    for (const GuestProcess& process : processes) {
      packets::pm4::map_process(list, {.pasid = process.pasid, .page_directory = 0x1000u * process.pasid});
      for (const GuestQueue* q : process.queues) packets::pm4::map_queues(list, map_of(*q));
    }
    run_list_words(list);
  }
  void run_list_words(packets::WordView list) {
    const GpuAddr at = alloc(list.size_bytes());
    for (std::size_t i = 0; i < list.size(); ++i) memory.put(at + i * 4, list[i]);
    packets::Words w;
    packets::pm4::run_list(w, {.ib = at, .dwords = static_cast<std::uint32_t>(list.size())});
    hiq_submit(w);
  }
  void map(std::vector<GuestQueue*> queues) { run_list({{kPasid, std::move(queues)}}); }
  void unmap_all(packets::pm4::UnmapAction action = packets::pm4::UnmapAction::kPreempt) {
    packets::Words w;
    packets::pm4::unmap_queues(w, {.action = action, .select = packets::pm4::UnmapSelect::kAll});
    hiq_submit(w);
  }
  GpuAddr put_words(packets::WordView words) {
    const GpuAddr at = alloc(words.size_bytes());
    for (std::size_t i = 0; i < words.size(); ++i) memory.put(at + i * 4, words[i]);
    return at;
  }

  std::unique_ptr<Engines> engines;
  GuestQueue hiq;
  bool hiq_loaded = false;
  bool ring_loaded = false;
  std::uint32_t vmid_mask = 0xff00;

 private:
  GpuAddr next_ = 0x10000;
};

}  // namespace vasicd
