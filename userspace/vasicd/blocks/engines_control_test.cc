// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Engines under control: paused, stepped packet by packet, with faults, behind a slow link.
#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::engines_control_test {

namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kLocal = FakeDriver::kData;
constexpr GpuAddr kRemote = FakeDriver::kData + 0x400000;

struct EnginesControl : testing::Test {
  FakeDriver driver;
  GuestQueue ring = driver.load_kernel_ring();
  GuestQueue user = driver.make_sdma(0x200, 1);

  void map_user() {
    driver.load_hiq();
    driver.map({&user});
  }
  static Words fences(GpuAddr addr, std::uint32_t count) {
    Words w;
    for (std::uint32_t i = 1; i <= count; ++i) sdma::fence(w, addr, i);
    return w;
  }
  std::uint32_t word(GpuAddr addr) { return driver.memory.get<std::uint32_t>(addr); }
  QueueStatus status(std::string_view name) {
    for (const auto& queue : driver.engines->queues())
      if (queue.name == name) return queue;
    return {};
  }
};

TEST_F(EnginesControl, a_paused_gpu_executes_exactly_the_packets_it_is_told_to) {
  map_user();
  const std::string user_name = driver.engines->queues().back().name;
  driver.controls.run(Running::kNothing);
  driver.submit(ring, fences(kLocal, 3));
  driver.submit(user, fences(kLocal + 64, 2));
  driver.run();
  EXPECT_EQ(word(kLocal), 0u);
  EXPECT_EQ(driver.engines->step_packet(), "sdma0");
  EXPECT_EQ(word(kLocal), 1u);
  EXPECT_EQ(word(kLocal + 64), 0u);
  EXPECT_EQ(driver.engines->step_packet(), user_name);
  EXPECT_EQ(word(kLocal + 64), 1u);
  EXPECT_EQ(driver.engines->step_packet(), "sdma0");
  EXPECT_EQ(driver.engines->step_packet(), user_name);
  EXPECT_EQ(driver.engines->step_packet(), "sdma0");
  EXPECT_EQ(word(kLocal), 3u);
  EXPECT_EQ(driver.engines->step_packet(), std::nullopt);
}

TEST_F(EnginesControl, user_queues_alone_can_be_paused) {
  map_user();
  driver.controls.run(Running::kKernel);
  driver.submit(ring, fences(kLocal, 3));
  driver.submit(user, fences(kLocal + 64, 2));
  driver.run();
  EXPECT_EQ(word(kLocal), 3u);
  EXPECT_EQ(word(kLocal + 64), 0u);
  driver.controls.run(Running::kAll);
  driver.run();
  EXPECT_EQ(word(kLocal + 64), 2u);
}

TEST_F(EnginesControl, a_vm_fault_hits_one_packet_at_the_address_asked_for) {
  driver.controls.fault("sdma0", 0xdead000);
  driver.submit(ring, fences(kLocal, 1));
  driver.submit(ring, fences(kLocal + 64, 1));
  driver.run();
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.va, 0xdead000u);
  EXPECT_EQ(word(kLocal), 0u);
  EXPECT_EQ(word(kLocal + 64), 1u);
}

TEST_F(EnginesControl, a_vm_fault_stops_a_user_queue_and_status_says_so) {
  map_user();
  const std::string name = driver.engines->queues().back().name;
  driver.controls.fault(name, std::nullopt);
  driver.submit(user, fences(kLocal, 2));
  driver.run();
  EXPECT_EQ(word(kLocal), 0u);
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.va, user.ring);
  EXPECT_EQ(status(name).state, QueueStatus::State::kStopped);
}

TEST_F(EnginesControl, a_queue_goes_on_after_a_vm_fault_that_is_retried) {
  map_user();
  driver.memory.retry = true;
  driver.controls.fault(driver.engines->queues().back().name, 0xdead000);
  driver.submit(user, fences(kLocal, 2));
  driver.run();
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.va, 0xdead000u);
  EXPECT_TRUE(driver.interrupts.faults[0].fault.retry);
  driver.run();
  EXPECT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(word(kLocal), 2u);
}

TEST_F(EnginesControl, status_shows_pointers_and_what_a_queue_does) {
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kIdle);
  Words w;
  sdma::poll_regmem(w, {.function = packets::Compare::kEqual, .addr = kLocal, .reference = 3, .mask = 0xf});
  driver.submit(ring, w);
  driver.run();
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kWaiting);
  EXPECT_EQ(status("sdma0").wptr, sdma::kPollDwords * 4);
  driver.controls.hang("sdma0");
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kHung);
}

// Bytes that copies of `each` bytes to `dst` have moved within `ns`, the device being polled every `interval`.
std::uint64_t copied(FakeDriver& driver, GuestQueue& ring, GpuAddr dst, std::uint64_t ns, std::uint64_t interval) {
  constexpr std::uint32_t kEach = 16u << 10;
  const std::uint64_t rptr = driver.memory.get<std::uint64_t>(ring.rptr_word);
  for (const std::uint64_t end = driver.clock.now + ns; driver.clock.now < end; driver.clock.now += interval) {
    for (int i = 0; i < 16 && ring.wptr - driver.memory.get<std::uint64_t>(ring.rptr_word) < 2048; ++i) {
      Words w;
      sdma::copy_linear(w, dst, kLocal, kEach);
      driver.submit(ring, w);
    }
    driver.engines->step();
  }
  return (driver.memory.get<std::uint64_t>(ring.rptr_word) - rptr) / (sdma::kCopyLinearDwords * 4) * kEach;
}

TEST_F(EnginesControl, copies_over_the_link_have_its_speed_within_5_percent_over_100_ms) {
  driver.memory.remote_from = kRemote;
  for (const std::uint64_t megabytes : {20U, 200U}) {
    driver.controls.link().limit(megabytes * 1'000'000);
    const auto bytes = static_cast<double>(copied(driver, ring, kRemote, 100'000'000, 500'000));
    EXPECT_NEAR(bytes, static_cast<double>(megabytes) * 1e5, static_cast<double>(megabytes) * 5e3);
  }
}

TEST_F(EnginesControl, copies_inside_vram_do_not_know_the_link) {
  driver.memory.remote_from = kRemote;
  driver.controls.link().limit(1'000'000);
  EXPECT_GT(copied(driver, ring, kLocal + 0x100000, 10'000'000, 500'000), 1'000'000u);
  EXPECT_EQ(driver.controls.link().crossed(), 0u);
}

TEST_F(EnginesControl, a_queue_that_waits_for_the_link_is_not_idle_and_can_be_unloaded) {
  driver.memory.remote_from = kRemote;
  driver.controls.link().limit(1'000'000);
  for (std::size_t i = 0; i < 65536; ++i) driver.memory.put(kLocal + i, static_cast<std::uint8_t>(i * 7));
  Words w;
  sdma::copy_linear(w, kRemote, kLocal, 65536);
  driver.submit(ring, w);
  driver.run();
  EXPECT_EQ(status("sdma0").state, QueueStatus::State::kBusy);
  EXPECT_EQ(driver.controls.link().crossed(), 4096u);
  ASSERT_TRUE(driver.engines->unload_ring(RingKind::kSdma, 0, UnloadMode::kDrain).ok());
  EXPECT_EQ(std::memcmp(driver.memory.bytes().data() + kRemote, driver.memory.bytes().data() + kLocal, 65536), 0);
}

}  // namespace vasicd::engines_control_test
