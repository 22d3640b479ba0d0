// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Engines under control: paused, stepped packet by packet, with faults, behind a slow link.
#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_rig.h"

namespace vasicd::engines_control_test {

namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kLocal = FakeRig::kData;
constexpr GpuAddr kRemote = FakeRig::kData + 0x400000;

struct EnginesControl : testing::Test {
  FakeRig rig;
  GuestQueue ring = rig.load_kernel_ring();
  GuestQueue user = rig.make_sdma(0x200, 1);

  void map_user() {
    rig.load_hiq();
    rig.map({&user});
  }
  static Words fences(GpuAddr addr, std::uint32_t count) {
    Words w;
    for (std::uint32_t i = 1; i <= count; ++i) sdma::fence(w, addr, i);
    return w;
  }
  std::uint32_t word(GpuAddr addr) { return rig.memory.get<std::uint32_t>(addr); }
  QueueStatus status(std::string_view name) {
    for (const auto& queue : rig.engines->queues())
      if (queue.name == name) return queue;
    return {};
  }
};

TEST_F(EnginesControl, a_paused_gpu_executes_exactly_the_packets_it_is_told_to) {
  map_user();
  const std::string user_name = rig.engines->queues().back().name;
  rig.controls.run(Running::kNothing);
  rig.submit(ring, fences(kLocal, 3));
  rig.submit(user, fences(kLocal + 64, 2));
  rig.run();
  EXPECT_EQ(word(kLocal), 0u);
  EXPECT_EQ(rig.engines->step_packet(), "sdma0");
  EXPECT_EQ(word(kLocal), 1u);
  EXPECT_EQ(word(kLocal + 64), 0u);
  EXPECT_EQ(rig.engines->step_packet(), user_name);
  EXPECT_EQ(word(kLocal + 64), 1u);
  EXPECT_EQ(rig.engines->step_packet(), "sdma0");
  EXPECT_EQ(rig.engines->step_packet(), user_name);
  EXPECT_EQ(rig.engines->step_packet(), "sdma0");
  EXPECT_EQ(word(kLocal), 3u);
  EXPECT_EQ(rig.engines->step_packet(), std::nullopt);
}

TEST_F(EnginesControl, user_queues_alone_can_be_paused) {
  map_user();
  rig.controls.run(Running::kKernel);
  rig.submit(ring, fences(kLocal, 3));
  rig.submit(user, fences(kLocal + 64, 2));
  rig.run();
  EXPECT_EQ(word(kLocal), 3u);
  EXPECT_EQ(word(kLocal + 64), 0u);
  rig.controls.run(Running::kAll);
  rig.run();
  EXPECT_EQ(word(kLocal + 64), 2u);
}

TEST_F(EnginesControl, a_vm_fault_hits_one_packet_at_the_address_asked_for) {
  rig.controls.fault("sdma0", 0xdead000);
  rig.submit(ring, fences(kLocal, 1));
  rig.submit(ring, fences(kLocal + 64, 1));
  rig.run();
  ASSERT_EQ(rig.interrupts.faults.size(), 1u);
  EXPECT_EQ(rig.interrupts.faults[0].fault.va, 0xdead000u);
  EXPECT_EQ(word(kLocal), 0u);
  EXPECT_EQ(word(kLocal + 64), 1u);
}

TEST_F(EnginesControl, a_vm_fault_stops_a_user_queue_and_status_says_so) {
  map_user();
  const std::string name = rig.engines->queues().back().name;
  rig.controls.fault(name, std::nullopt);
  rig.submit(user, fences(kLocal, 2));
  rig.run();
  EXPECT_EQ(word(kLocal), 0u);
  ASSERT_EQ(rig.interrupts.faults.size(), 1u);
  EXPECT_EQ(rig.interrupts.faults[0].fault.va, user.ring);
  EXPECT_EQ(status(name).state, QueueStatus::State::kStopped);
}

TEST_F(EnginesControl, a_queue_goes_on_after_a_vm_fault_that_is_retried) {
  map_user();
  rig.memory.retry = true;
  rig.controls.fault(rig.engines->queues().back().name, 0xdead000);
  rig.submit(user, fences(kLocal, 2));
  rig.run();
  ASSERT_EQ(rig.interrupts.faults.size(), 1u);
  EXPECT_EQ(rig.interrupts.faults[0].fault.va, 0xdead000u);
  EXPECT_TRUE(rig.interrupts.faults[0].fault.retry);
  rig.run();
  EXPECT_EQ(rig.interrupts.faults.size(), 1u);
  EXPECT_EQ(word(kLocal), 2u);
}

TEST_F(EnginesControl, status_shows_pointers_and_what_a_queue_does) {
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kIdle);
  Words w;
  sdma::poll_regmem(w, {.function = packets::Compare::kEqual, .addr = kLocal, .reference = 3, .mask = 0xf});
  rig.submit(ring, w);
  rig.run();
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kWaiting);
  EXPECT_EQ(status("sdma0").wptr, sdma::kPollDwords * 4);
  rig.controls.hang("sdma0");
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kHung);
}

// Bytes that copies of `each` bytes to `dst` have moved within `ns`, the device being polled every `interval`.
std::uint64_t copied(FakeRig& rig, GuestQueue& ring, GpuAddr dst, std::uint64_t ns, std::uint64_t interval) {
  constexpr std::uint32_t kEach = 16u << 10;
  const std::uint64_t rptr = rig.memory.get<std::uint64_t>(ring.rptr_word);
  for (const std::uint64_t end = rig.clock.now + ns; rig.clock.now < end; rig.clock.now += interval) {
    for (int i = 0; i < 16 && ring.wptr - rig.memory.get<std::uint64_t>(ring.rptr_word) < 2048; ++i) {
      Words w;
      sdma::copy_linear(w, dst, kLocal, kEach);
      rig.submit(ring, w);
    }
    rig.engines->step();
  }
  return (rig.memory.get<std::uint64_t>(ring.rptr_word) - rptr) / (sdma::kCopyLinearDwords * 4) * kEach;
}

TEST_F(EnginesControl, copies_over_the_link_have_its_speed_within_5_percent_over_100_ms) {
  rig.memory.remote_from = kRemote;
  for (const std::uint64_t megabytes : {20U, 200U}) {
    rig.controls.link().limit(megabytes * 1'000'000);
    const auto bytes = static_cast<double>(copied(rig, ring, kRemote, 100'000'000, 500'000));
    EXPECT_NEAR(bytes, static_cast<double>(megabytes) * 1e5, static_cast<double>(megabytes) * 5e3);
  }
}

TEST_F(EnginesControl, copies_inside_vram_do_not_know_the_link) {
  rig.memory.remote_from = kRemote;
  rig.controls.link().limit(1'000'000);
  EXPECT_GT(copied(rig, ring, kLocal + 0x100000, 10'000'000, 500'000), 1'000'000u);
  EXPECT_EQ(rig.controls.link().crossed(), 0u);
}

TEST_F(EnginesControl, a_queue_that_waits_for_the_link_is_not_idle_and_can_be_unloaded) {
  rig.memory.remote_from = kRemote;
  rig.controls.link().limit(1'000'000);
  for (std::size_t i = 0; i < 65536; ++i) rig.memory.put(kLocal + i, static_cast<std::uint8_t>(i * 7));
  Words w;
  sdma::copy_linear(w, kRemote, kLocal, 65536);
  rig.submit(ring, w);
  rig.run();
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kBusy);
  EXPECT_EQ(rig.controls.link().crossed(), 4096u);
  ASSERT_TRUE(rig.engines->unload_ring(RingKind::kSdma, 0, UnloadMode::kDrain).ok());
  EXPECT_EQ(std::memcmp(rig.memory.bytes().data() + kRemote, rig.memory.bytes().data() + kLocal, 65536), 0);
}

}  // namespace vasicd::engines_control_test
