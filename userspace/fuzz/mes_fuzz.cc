// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Requests to the MES of the chips that have one, and of those that refuse it: queues and gangs added, suspended,
// reset and removed in any order, with garbage for descriptors and names. Meanwhile a kernel ring must continue to
// work.
#include "fuzz/hostile.h"

namespace {

using fuzz::Harness;

constexpr std::uint64_t kQueueMqdPage = 2;
constexpr unsigned kQueues = 6;
constexpr std::uint64_t kKernelRingPage = 32;
constexpr unsigned kMaxActions = 100;
constexpr unsigned kBeatSteps = 24;

class Driver {
 public:
  explicit Driver(fuzz::Input& in) : in_(in), harness_(in), word_(in, 0x8000) {
    for (unsigned vmid = 1; vmid < VASIC_MAX_VMID; ++vmid) harness_.memory.give(vmid, 12);
    for (unsigned i = 0; i < kQueues; ++i) {
      constexpr std::array kKinds = {fuzz::Kind::kPm4, fuzz::Kind::kAql, fuzz::Kind::kSdma};
      queues_[i] = harness_.make_queue(kKinds[i % 3], Harness::kHostile, 0, kQueueMqdPage + i, (i % 2) * 5, 8);
    }
    kernel_ring_ = harness_.make_kernel_ring(fuzz::Kind::kSdma, 0, kKernelRingPage, 8);
    fuzz::check(harness_.load(kernel_ring_), "a kernel ring can be loaded");
  }

  void run() {
    for (unsigned i = 0; i < kMaxActions && !in_.empty(); ++i) act();
    check_kernel_ring();
    harness_.reset();
  }

 private:
  fuzz::Queue& any_queue() { return queues_[in_.below(kQueues)]; }
  std::uint32_t doorbell() { return in_.below(8) == 0 ? word_() : any_queue().doorbell; }
  std::uint64_t gang() { return in_.below(8) == 0 ? 0 : 0x1000u * (1 + in_.below(3)); }

  void add() {
    const fuzz::Queue& q = any_queue();
    vasicd::MesQueue queue{.pasid = in_.below(4),
                           .page_directory = in_.u16() * 4096u,
                           .process_context = 0x1000u * in_.below(3),
                           .gang_context = gang(),
                           .mqd = in_.below(16) == 0 ? word_() : q.mqd,
                           .wptr_addr = in_.below(16) == 0 ? in_.u64() : q.wptr_word,
                           .doorbell = in_.below(16) == 0 ? word_() : q.doorbell};
    queue.kind = q.kind == fuzz::Kind::kSdma ? vasicd::QueueKind::kSdma : vasicd::QueueKind::kCompute;
    queue.exclusive = in_.below(4) == 0;
    queue.process_quantum = in_.u16();
    queue.gang_quantum = in_.u16();
    queue.priority = in_.u8();
    (void)harness_.engines->mes_add_queue(queue);
  }
  void work() {
    fuzz::Queue& q = any_queue();
    const unsigned vmid = q.vmid;
    q.vmid = 1 + in_.below(15);  // any VMID that the scheduler may have given it
    if (q.kind != fuzz::Kind::kAql) harness_.write(q, harness_.canary_packet(q.kind, Harness::page(11), in_.u8()));
    harness_.ring(q, in_.flag() ? q.wptr : in_.u64());
    q.vmid = vmid;
  }
  void check_kernel_ring() {
    const std::uint32_t value = ++beats_;
    harness_.write(kernel_ring_, harness_.canary_packet(fuzz::Kind::kSdma, kernel_ring_.rptr_word + 128, value));
    harness_.ring(kernel_ring_, kernel_ring_.wptr);
    for (unsigned i = 0; i < kBeatSteps; ++i) harness_.step();
    fuzz::check(harness_.memory.get<std::uint32_t>(0, kernel_ring_.rptr_word + 128) == value,
                "the kernel ring continues");
  }

  void act() {
    switch (in_.below(12)) {
      case 0:
        (void)harness_.engines->mes_remove_queue(doorbell(), gang());
        return;
      case 1:
        (void)harness_.engines->mes_suspend(gang());
        return;
      case 2:
        (void)harness_.engines->mes_resume(gang());
        return;
      case 3:
        (void)harness_.engines->mes_reset_queue(doorbell());
        return;
      case 4:
        return harness_.memory.put(0, Harness::page(kQueueMqdPage + in_.below(kQueues)) + in_.below(512) * 4u, word_());
      case 5:
        harness_.fakes.clock.now += in_.u32();
        return;
      case 6:
        harness_.step();
        return;
      case 7:
        return check_kernel_ring();
      case 8:
      case 9:
        return work();
      default:
        return add();
    }
  }

  fuzz::Input& in_;
  Harness harness_;
  fuzz::WordMaker word_;
  std::array<fuzz::Queue, kQueues> queues_;
  fuzz::Queue kernel_ring_;
  std::uint32_t beats_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  Driver(in).run();
  return 0;
}
