// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The HIQ and run lists, in every chip's format: packets in any order, run lists that chain to each other and to
// themselves, queues whose descriptors are garbage. Meanwhile a kernel ring must continue to work.
#include "fuzz/hostile.h"
#include "packets/pm4_hws.h"

namespace {

namespace pm4 = packets::pm4;
using fuzz::FuzzMemory;
using fuzz::Harness;

constexpr std::uint64_t kHiqMqdPage = 1;
constexpr std::uint64_t kQueueMqdPage = 2;  // and the next ones
constexpr unsigned kQueues = 6;
constexpr std::uint64_t kListPage = 20;
constexpr unsigned kListPages = 2;
constexpr std::uint64_t kHiqRingPage = 24;
constexpr std::uint64_t kKernelRingPage = 32;
constexpr unsigned kMaxActions = 100;

class Driver {
 public:
  explicit Driver(fuzz::Input& in)
      : in_(in),
        harness_(in),
        format_(pm4::hws_format(harness_.info.gfx_level, harness_.info.gc_ip)),
        word_(in, 0x8000) {
    // One block of the hostile VMID backs whatever VMIDs the scheduler gives out.
    for (unsigned vmid = 1; vmid < VASIC_MAX_VMID; ++vmid) harness_.memory.give(vmid, 12);
    for (unsigned i = 0; i < kQueues; ++i) {
      constexpr std::array kKinds = {fuzz::Kind::kPm4, fuzz::Kind::kAql, fuzz::Kind::kSdma};
      queues_[i] = harness_.make_queue(kKinds[i % 3], Harness::kHostile, 0, kQueueMqdPage + i, (i % 2) * 5, 8);
    }
    hiq_ = harness_.make_queue(fuzz::Kind::kPm4, 0, 0, kHiqMqdPage, kHiqRingPage, 10);
    kernel_ring_ = harness_.make_kernel_ring(fuzz::Kind::kSdma, 0, kKernelRingPage, 8);
    fuzz::check(harness_.load(kernel_ring_), "a kernel ring can be loaded");
    load_hiq();
  }

  void run() {
    for (unsigned i = 0; i < kMaxActions && !in_.empty(); ++i) act();
    check_kernel_ring();
    harness_.reset();
  }

 private:
  void load_hiq() { (void)harness_.engines->load_hqd({vasicd::QueueKind::kHiq, 0, 0, 0}, hiq_.mqd, 0); }

  void submit(packets::WordView words) {
    harness_.write(hiq_, words);
    harness_.ring(hiq_, hiq_.wptr);
    harness_.step();
  }

  void map_process(packets::Words& out) {
    pm4::map_process(
        out, {.pasid = in_.below(4), .quantum = in_.u8(), .page_directory = in_.u16() * 4096u, .queues = in_.below(4)},
        format_);
  }
  void map_queue(packets::Words& out) {
    const fuzz::Queue& q = queues_[in_.below(kQueues)];
    const auto engine =
        q.kind == fuzz::Kind::kSdma ? static_cast<pm4::QueueEngine>(2 + in_.below(2)) : pm4::QueueEngine::kCompute;
    pm4::MapQueues map{.engine = engine, .doorbell = q.doorbell, .mqd = q.mqd, .wptr_addr = q.wptr_word};
    map.queue_type = in_.below(4);
    if (in_.below(16) == 0) map.mqd = word_();
    if (in_.below(16) == 0) map.wptr_addr = in_.u64();
    if (in_.below(8) == 0) map.extended_engine = in_.below(4);
    pm4::map_queues(out, map, format_);
  }
  void write_list() {
    packets::Words list;
    for (unsigned n = 1 + in_.below(6); n > 0; --n) {
      switch (in_.below(8)) {
        case 0:
          list.push_back(word_());
          break;
        case 1:
          pm4::run_list(list, {.ib = list_address(), .dwords = in_.u8(), .chain = true}, format_);
          break;
        case 2:
        case 3:
          map_process(list);
          break;
        default:
          map_queue(list);
      }
    }
    const vasicd::GpuAddr at = list_address();
    const vasicd::GpuAddr end = Harness::page(kListPage + kListPages);
    for (std::size_t i = 0; i < list.size() && at + i * 4 < end; ++i) harness_.memory.put(0, at + i * 4, list[i]);
    packets::Words run;
    const auto dwords = in_.below(8) == 0 ? in_.u32() : static_cast<std::uint32_t>(list.size());
    pm4::run_list(run, {.ib = at, .dwords = dwords, .processes = in_.below(4)}, format_);
    submit(run);
  }
  vasicd::GpuAddr list_address() {
    return Harness::page(kListPage) + in_.u8() * 32u % (kListPages * FuzzMemory::kPage);
  }

  void unmap() {
    packets::Words out;
    pm4::UnmapQueues p;
    p.action = static_cast<pm4::UnmapAction>(in_.below(4));
    p.select = static_cast<pm4::UnmapSelect>(in_.below(4));
    p.pasid = in_.below(4);
    p.num_doorbells = in_.below(8);
    for (auto& doorbell : p.doorbells) doorbell = queues_[in_.below(kQueues)].doorbell;
    pm4::unmap_queues(out, p, format_);
    submit(out);
  }
  void query() {
    packets::Words out;
    pm4::query_status(out, {.context_id = in_.u8(),
                            .command = static_cast<pm4::QueryCommand>(in_.below(4)),
                            .addr = word_(),
                            .data = in_.u64()});
    submit(out);
  }
  void garbage() {
    packets::Words out;
    for (unsigned n = 1 + in_.below(8); n > 0; --n) out.push_back(word_());
    if (in_.flag()) {
      constexpr std::array kOps = {pm4::kSetResources, pm4::kMapProcess, pm4::kMapQueues, pm4::kUnmapQueues,
                                   pm4::kQueryStatus,  pm4::kRunList,    pm4::kWriteData, pm4::kReleaseMem};
      out.front() = pm4::header(in_.pick(std::span<const pm4::Opcode>(kOps)), 2 + in_.below(24));
    }
    submit(out);
  }
  void set_resources() {
    packets::Words out;
    pm4::set_resources(out, {.vmid_mask = in_.u16(), .queue_mask = in_.u64()});
    submit(out);
  }

  void work() {
    fuzz::Queue& q = queues_[in_.below(kQueues)];
    const unsigned vmid = q.vmid;
    q.vmid = 1 + in_.below(15);  // any VMID that the scheduler may have given it
    const packets::Words words = harness_.canary_packet(q.kind, Harness::page(11), in_.u8());
    if (q.kind != fuzz::Kind::kAql) harness_.write(q, words);
    harness_.ring(q, q.wptr);
    q.vmid = vmid;
  }
  void scribble_mqd() {
    harness_.memory.put(0, Harness::page(kHiqMqdPage + in_.below(kQueues + 1)) + in_.below(512) * 4u, word_());
  }

  void check_kernel_ring() {
    const std::uint32_t value = ++beats_;
    harness_.write(kernel_ring_, harness_.canary_packet(fuzz::Kind::kSdma, kernel_ring_.rptr_word + 128, value));
    harness_.ring(kernel_ring_, kernel_ring_.wptr);
    for (unsigned i = 0; i < 24; ++i) harness_.step();
    fuzz::check(harness_.memory.get<std::uint32_t>(0, kernel_ring_.rptr_word + 128) == value,
                "the kernel ring continues");
  }

  void act() {
    switch (in_.below(11)) {
      case 0:
        return set_resources();
      case 1:
        return unmap();
      case 2:
        return query();
      case 3:
        return garbage();
      case 4:
        return work();
      case 5:
        return scribble_mqd();
      case 6:
        (void)harness_.engines->unload_hqd({vasicd::QueueKind::kHiq, 0, 0, 0},
                                           static_cast<vasicd::UnloadMode>(in_.below(3)));
        return load_hiq();
      case 7:
        harness_.fakes.clock.now += in_.u32();
        harness_.step();
        return;
      case 8:
        return check_kernel_ring();
      default:
        return write_list();
    }
  }

  fuzz::Input& in_;
  Harness harness_;
  pm4::HwsFormat format_;
  fuzz::WordMaker word_;
  std::array<fuzz::Queue, kQueues> queues_;
  fuzz::Queue hiq_;
  fuzz::Queue kernel_ring_;
  std::uint32_t beats_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  Driver(in).run();
  return 0;
}
