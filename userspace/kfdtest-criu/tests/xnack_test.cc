// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// XNACK: memory that the program did not register. An access of the GPU to an absent page is retried until the driver
// has brought the page, perhaps into VRAM, or has said that there is none.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/mapping.h"
#include "kfdtest-criu/env/control_port.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/smi_events.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/shared_pages.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 3 * kMiB;  // more than the driver brings at once
constexpr std::uint64_t kSeed = 0xac4;
// enum KFD_MIGRATE_TRIGGERS, the last field of a migration's line
constexpr const char* kByGpuFault = " 1";
constexpr const char* kByCpuFault = " 2";

class XnackTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    if (!gpu().has_svm() || !client().set_xnack(true).ok()) GTEST_SKIP() << "the driver offers no XNACK for this chip";
    ASSERT_OK_AND_ASSIGN(pages_, base::Mapping::anonymous(kSize, "pages for XNACK"));
  }
  void TearDown() override {
    pages_ = base::Mapping();
    if (!IsSkipped()) {
      EXPECT_OK(client().set_xnack(false));  // the mode in which a process starts
    }
  }
  static const kfd::Client& client() { return ioctls_of(gpu()).client(); }
  [[nodiscard]] std::span<std::byte> pages() const { return pages_.bytes(); }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(pages_.data()); }
  // `location`: a gpu_id, or 0 for system memory.
  [[nodiscard]] base::Status prefer(std::uint32_t location) const {
    const kfd_ioctl_svm_attribute attribute[] = {{KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, location}};
    return client().svm_set(address(), kSize, attribute);
  }
  void expect_write(RingQueue& queue, std::uint32_t word) const {
    ASSERT_OK(queue.submit(SdmaCommands(gpu()).write(address(), std::span(&word, 1)).dwords()));
    const auto* const written = reinterpret_cast<const volatile std::uint32_t*>(pages().data());
    EXPECT_TRUE(wait_until([&] { return *written == word; })) << "the GPU writes no more: the word is " << *written;
  }
  // Holds the interrupts of the GPU, which the caller ends. One of them is that of a retry fault on the first page, in
  // `queue`, which is the only user queue; the GPU has written the page since.
  void hold_an_answered_fault(ControlPort& port, RingQueue& queue) const {
    ASSERT_OK(prefer(0)) << "in VRAM, each access of the CPU would make the next one of the GPU a fault";
    ASSERT_NO_FATAL_FAILURE(expect_write(queue, 1));
    ASSERT_OK_AND_ASSIGN(const std::vector<QueueStatus> queues, port.queues());
    const auto user = std::ranges::find_if(queues, [](const QueueStatus& each) { return each.vmid != 0; });
    ASSERT_NE(user, queues.end());
    ASSERT_OK(port.tell("hold-interrupts on"));
    EXPECT_OK(port.tell("vm-fault " + user->name + " " + std::to_string(address())));
    expect_write(queue, 2);
  }

 private:
  base::Mapping pages_;
};

TEST_F(XnackTest, the_gpu_reads_memory_that_nobody_registered) {
  fill_pattern(pages(), kSeed);
  ASSERT_OK_AND_ASSIGN(SmiEvents events, SmiEvents::open(gpu(), {SmiKind::kPageFaultStart, SmiKind::kPageFaultEnd}));
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed));
  EXPECT_OK(events.wait_for(SmiKind::kPageFaultStart));
  EXPECT_OK(events.wait_for(SmiKind::kPageFaultEnd));
}

TEST_F(XnackTest, the_gpu_is_the_first_to_write_to_memory) {
  ASSERT_OK(gpu_writes(gpu(), pages(), kSeed));
  EXPECT_EQ(find_mismatch(pages(), kSeed), std::nullopt);
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed));
}

TEST_F(XnackTest, queues_of_all_kinds_wait_for_the_same_page) {
  ASSERT_OK_AND_ASSIGN(RingQueue pm4, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK_AND_ASSIGN(RingQueue sdma, RingQueue::create(gpu(), QueueKind::kSdma));
  const std::uint32_t word = 0x5d3a;
  ASSERT_OK(pm4.submit(Pm4Commands(gpu()).write(address(), 0x9304).dwords()));
  ASSERT_OK(sdma.submit(SdmaCommands(gpu()).write(address() + 64, std::span(&word, 1)).dwords()));
  auto* const words = reinterpret_cast<const volatile std::uint32_t*>(pages().data());
  EXPECT_TRUE(wait_until([&] { return words[0] == 0x9304 && words[16] == word; }))
      << std::hex << words[0] << " and " << words[16];
}

// The CPU waits in a fault for a page that the GPU takes back at once: which of the two drops the old page last decides
// whether it is free when it is reused.
TEST_F(XnackTest, pages_that_cpu_and_gpu_fault_on_in_turns_keep_their_data) {
  constexpr std::uint32_t kRounds = 40;
  constexpr std::size_t kPages = 4;
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  auto* const words = reinterpret_cast<const volatile std::uint32_t*>(pages().data());
  const auto word_of = [&](std::size_t page) -> std::uint32_t { return words[page * kPageSize / sizeof(*words)]; };
  const std::jthread other([&](const std::stop_token& stop) {
    for (std::size_t i = 0; !stop.stop_requested(); ++i) static_cast<void>(word_of(i % kPages));
  });
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    SdmaCommands commands(gpu());
    for (std::size_t page = 0; page < kPages; ++page)
      commands.write(address() + page * kPageSize, std::span(&round, 1));
    ASSERT_OK(queue.submit(commands.dwords()));
    for (std::size_t page = 0; page < kPages; ++page)
      EXPECT_TRUE(wait_until([&] { return word_of(page) == round; })) << page << " in round " << round;
    if (HasFailure()) break;
  }
}

// The GPU repeats a fault until the page is there, so a fault that is answered already may still wait for the interrupt
// handler when the program unmaps the page. The driver must not take it for an access to memory that is not there.
TEST_F(XnackTest, a_fault_that_is_handled_after_its_memory_was_unmapped_is_no_exception) {
  if (!ControlPort::exists()) GTEST_SKIP() << kNoControlPort;
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  {
    ASSERT_OK_AND_ASSIGN(ControlPort port, ControlPort::open());
    ASSERT_NO_FATAL_FAILURE(hold_an_answered_fault(port, queue));
    EXPECT_EQ(::munmap(pages().data(), kSize), 0);
    EXPECT_TRUE(stays([] { return true; })) << "time for the driver to remove its range";
    ASSERT_OK(port.tell("hold-interrupts off"));
  }
  EXPECT_TRUE(stays([] { return true; })) << "time for the driver to handle the fault";
  ASSERT_EQ(
      ::mmap(pages().data(), kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
      pages().data());
  expect_write(queue, 3);
}

// Without XNACK no fault is answered, but one that was answered before is no exception.
TEST_F(XnackTest, a_fault_that_is_handled_after_xnack_was_turned_off_is_no_exception) {
  if (!ControlPort::exists()) GTEST_SKIP() << kNoControlPort;
  {
    ASSERT_OK_AND_ASSIGN(ControlPort port, ControlPort::open());
    {
      ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
      ASSERT_NO_FATAL_FAILURE(hold_an_answered_fault(port, queue));
    }
    EXPECT_OK(client().set_xnack(false));
    ASSERT_OK(port.tell("hold-interrupts off"));
  }
  EXPECT_TRUE(stays([] { return true; })) << "time for the driver to handle the fault";
  ASSERT_OK(client().set_xnack(true));
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  expect_write(queue, 3);
}

TEST_F(XnackTest, a_range_that_prefers_vram_goes_there_when_the_gpu_touches_it) {
  fill_pattern(pages(), kSeed);
  ASSERT_OK_AND_ASSIGN(SmiEvents events, SmiEvents::open(gpu(), {SmiKind::kMigrateStart, SmiKind::kMigrateEnd}));
  ASSERT_OK(prefer(gpu().gpu_id));
  EXPECT_FALSE(events.wait_for(SmiKind::kMigrateStart, "", kQuietPeriod).ok()) << "nobody has touched it yet";
  ASSERT_OK(gpu_reads(gpu(), pages(), kSeed));
  EXPECT_OK(events.wait_for(SmiKind::kMigrateEnd, kByGpuFault));
  ASSERT_OK(gpu_writes(gpu(), pages(), kSeed + 1));
  EXPECT_EQ(find_mismatch(pages(), kSeed + 1), std::nullopt);
  EXPECT_OK(events.wait_for(SmiKind::kMigrateEnd, kByCpuFault));
  EXPECT_OK(gpu_reads(gpu(), pages(), kSeed + 1));
}

TEST_F(XnackTest, a_page_that_is_taken_from_the_gpu_comes_back_without_an_eviction) {
  fill_pattern(pages(), kSeed);
  ASSERT_OK(gpu_reads(gpu(), pages(), kSeed));
  ASSERT_OK_AND_ASSIGN(SmiEvents events, SmiEvents::open(gpu(), {SmiKind::kQueueEviction, SmiKind::kPageFaultEnd}));
  // A queue that the driver could evict.
  ASSERT_OK_AND_ASSIGN(const RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
  for (std::uint64_t round = 1; round <= 3; ++round) {
    ASSERT_EQ(::madvise(pages().data(), kSize, MADV_DONTNEED), 0);
    fill_pattern(pages(), kSeed + round);
    ASSERT_OK(gpu_reads(gpu(), pages(), kSeed + round));
    EXPECT_OK(events.wait_for(SmiKind::kPageFaultEnd));
  }
  EXPECT_FALSE(events.wait_for(SmiKind::kQueueEviction, "", kQuietPeriod).ok());
}

TEST_F(XnackTest, the_mode_is_what_was_set_and_stays_while_there_are_queues) {
  ASSERT_OK(client().set_xnack(false));
  ASSERT_OK_AND_ASSIGN(const bool off, client().xnack());
  EXPECT_FALSE(off);
  ASSERT_OK(client().set_xnack(true));
  ASSERT_OK_AND_ASSIGN(const bool on, client().xnack());
  EXPECT_TRUE(on);
  ASSERT_OK_AND_ASSIGN(const RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
  EXPECT_FALSE(client().set_xnack(false).ok());
}

// Each of these scenarios kills its own process; the memory of this process is still good.
TEST_F(XnackTest, an_address_without_memory_is_an_exception_for_sdma) {
  EXPECT_OK(spawn_scenario("retry_no_memory_sdma"));
  EXPECT_OK(gpu_writes(gpu(), pages(), kSeed));
}

TEST_F(XnackTest, an_address_without_memory_is_an_exception_for_pm4) {
  EXPECT_OK(spawn_scenario("retry_no_memory_pm4"));
  EXPECT_OK(gpu_writes(gpu(), pages(), kSeed));
}

TEST_F(XnackTest, memory_that_the_program_may_not_write_is_an_exception) {
  EXPECT_OK(spawn_scenario("retry_forbidden"));
}

TEST_F(XnackTest, without_retries_good_memory_that_is_not_mapped_is_an_exception) {
  EXPECT_OK(spawn_scenario("no_retry"));
}

}  // namespace
}  // namespace kfdtest
