// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The MES: what each request does, what it refuses, time sharing, and hangs.
#include "vasicd/blocks/sched/mes.h"

#include <gtest/gtest.h>

#include <random>

#include "vasicd/blocks/sched/scheduler_fixture.h"

namespace vasicd::mes_test {

namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;

constexpr GpuAddr kDst = FakeDriver::kData;
constexpr std::uint64_t kProcess = 0x1000;

class MesTest : public SchedulerTest {
 protected:
  MesTest() : SchedulerTest(11) {
    driver.info.scheduler = VASIC_SCHEDULER_MES;
    driver.info.first_kfd_vmid = 8;
    driver.info.queues_per_pipe = 4;
    driver.replace_device();
  }
  // Each queue is a gang of its own, as amdkfd has it.
  static MesQueue of(const GuestQueue& q, std::uint32_t process = 1) {
    return {.pasid = process,
            .page_directory = 0x1000u * process,
            .process_context = kProcess * process,
            .gang_context = q.mqd + 1,
            .mqd = q.mqd,
            .wptr_addr = q.wptr_word,
            .doorbell = q.doorbell,
            .kind = q.engine == pm4::QueueEngine::kCompute ? QueueKind::kCompute : QueueKind::kSdma,
            .process_quantum = 100000,
            .gang_quantum = 10000};
  }
  base::Status add(const GuestQueue& q, std::uint32_t process = 1) {
    return driver.engines->mes_add_queue(of(q, process));
  }
  int remove(const GuestQueue& q) { return code(driver.engines->mes_remove_queue(q.doorbell, q.mqd + 1)); }
  static int code(const base::Status& status) { return status.ok() ? 0 : status.error().code(); }
};

TEST_F(MesTest, a_queue_runs_from_add_to_remove) {
  GuestQueue q = driver.make_compute(0x404);
  ASSERT_TRUE(add(q).ok());
  EXPECT_EQ(driver.registers.pasid(8), 1u);
  write(q, kDst, 1);
  driver.run();
  EXPECT_EQ(at(kDst), 1u);
  EXPECT_EQ(remove(q), 0);
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().cp_hqd_pq_rptr), q.wptr);
  EXPECT_TRUE(driver.registers.bound.empty());
  EXPECT_FALSE(driver.engines->anything_mapped());
  EXPECT_EQ(remove(q), ENOENT);
}

TEST_F(MesTest, queues_of_a_process_share_its_vmid) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  GuestQueue c = driver.make_compute(0x600);
  ASSERT_TRUE(add(a, 1).ok());
  ASSERT_TRUE(add(b, 1).ok());
  ASSERT_TRUE(add(c, 2).ok());
  EXPECT_EQ(driver.registers.bound.size(), 2u);
  EXPECT_EQ(remove(a), 0);
  EXPECT_EQ(driver.registers.bound.size(), 2u);
  EXPECT_EQ(remove(b), 0);
  EXPECT_EQ(driver.registers.bound.size(), 1u);
}

TEST_F(MesTest, queues_sit_on_the_slots_that_the_driver_leaves_to_it) {
  GuestQueue a = driver.make_compute(0x404);
  ASSERT_TRUE(add(a).ok());
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 2, 0}).value().pq_base, a.ring);
  EXPECT_FALSE(driver.engines->query_hqd({QueueKind::kCompute, 0, 0, 0}).value().occupied);
}

TEST_F(MesTest, sdma_queues_are_spread_over_the_engines) {
  GuestQueue a = driver.make_sdma(0x404);
  GuestQueue b = driver.make_sdma(0x500);
  ASSERT_TRUE(add(a).ok());
  ASSERT_TRUE(add(b).ok());
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kSdma, 0, 2, 0}).value().pq_base, a.ring);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kSdma, 1, 2, 0}).value().pq_base, b.ring);
}

TEST_F(MesTest, bad_arguments_are_refused) {
  GuestQueue q = driver.make_compute(0x404);
  const auto refused = [&](auto change) {
    MesQueue queue = of(q);
    change(queue);
    return code(driver.engines->mes_add_queue(queue));
  };
  EXPECT_EQ(refused([](MesQueue& m) { m.kind = QueueKind::kHiq; }), EINVAL);
  EXPECT_EQ(refused([](MesQueue& m) { m.process_context = 0; }), EINVAL);
  EXPECT_EQ(refused([](MesQueue& m) { m.gang_context = 0; }), EINVAL);
  EXPECT_EQ(refused([](MesQueue& m) { m.doorbell = 0x7fffffff; }), EINVAL);
  EXPECT_EQ(refused([](MesQueue& m) { m.mqd = 1ull << 40; }), EFAULT);
  driver.mqd_word(q, driver.compute_layout().cp_hqd_pq_control, 0x3f);
  EXPECT_EQ(code(add(q)), EINVAL);
  EXPECT_FALSE(driver.engines->anything_mapped());
}

TEST_F(MesTest, what_is_there_is_not_added_again) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x404);
  GuestQueue c = driver.make_compute(0x600);
  ASSERT_TRUE(add(a).ok());
  EXPECT_EQ(code(add(a)), EBUSY);
  EXPECT_EQ(code(add(b)), EBUSY);
  MesQueue other = of(c);
  other.page_directory = 0xabc000;
  EXPECT_EQ(code(driver.engines->mes_add_queue(other)), EINVAL);
  EXPECT_EQ(code(driver.engines->mes_remove_queue(a.doorbell, 77)), EINVAL);
}

TEST_F(MesTest, a_suspended_gang_rests_and_its_process_gives_the_vmid_away) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  ASSERT_TRUE(add(a, 1).ok());
  ASSERT_TRUE(add(b, 2).ok());
  ASSERT_TRUE(driver.engines->mes_suspend(a.mqd + 1).ok());
  EXPECT_EQ(driver.registers.bound.size(), 1u);
  write(a, kDst, 1);
  write(b, kDst + 4, 2);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
  ASSERT_TRUE(driver.engines->mes_resume(a.mqd + 1).ok());
  driver.run();
  EXPECT_EQ(at(kDst), 1u);
  EXPECT_EQ(code(driver.engines->mes_suspend(77)), ENOENT);
  EXPECT_EQ(code(driver.engines->mes_resume(77)), ENOENT);
}

TEST_F(MesTest, every_gang_is_suspended_and_resumed_at_once) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_sdma(0x500);
  EXPECT_TRUE(driver.engines->mes_suspend(0).ok());
  ASSERT_TRUE(add(a).ok());
  ASSERT_TRUE(add(b).ok());
  ASSERT_TRUE(driver.engines->mes_suspend(0).ok());
  EXPECT_FALSE(driver.engines->anything_mapped());
  EXPECT_EQ(remove(b), 0);
  ASSERT_TRUE(driver.engines->mes_resume(0).ok());
  write(a, kDst, 1);
  driver.run();
  EXPECT_EQ(at(kDst), 1u);
}

TEST_F(MesTest, more_gangs_than_slots_and_more_processes_than_vmids_share_the_time) {
  std::vector<GuestQueue> queues;
  for (std::uint32_t i = 0; i < 40; ++i) {
    queues.push_back(driver.make_compute(0x400 + 2 * i));
    ASSERT_TRUE(add(queues[i], 1 + i / 2).ok());
    write(queues[i], kDst + 4 * i, i + 1);
  }
  EXPECT_EQ(driver.registers.bound.size(), 8u);
  driver.share_time(8);
  for (std::uint32_t i = 0; i < 40; ++i) EXPECT_EQ(at(kDst + 4 * i), i + 1) << i;
}

TEST_F(MesTest, who_has_priority_gets_the_slot) {
  std::vector<GuestQueue> queues;
  for (std::uint32_t i = 0; i < 10; ++i) {
    queues.push_back(driver.make_compute(0x400 + 2 * i));
    MesQueue queue = of(queues[i]);
    queue.priority = i == 9 ? 1 : 0;
    ASSERT_TRUE(driver.engines->mes_add_queue(queue).ok());
  }
  EXPECT_EQ(remove(queues[0]), 0);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 2, 0}).value().pq_base, queues[9].ring);
}

TEST_F(MesTest, one_exclusive_queue_runs_at_a_time) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  for (const GuestQueue* q : {&a, &b}) {
    MesQueue queue = of(*q);
    queue.exclusive = true;
    ASSERT_TRUE(driver.engines->mes_add_queue(queue).ok());
  }
  EXPECT_EQ(driver.trace.count("map_queue"), 1u);
}

TEST_F(MesTest, a_hung_queue_stays_until_it_is_reset) {
  GuestQueue q = driver.make_compute(0x404);
  GuestQueue other = driver.make_compute(0x500);
  ASSERT_TRUE(add(q).ok());
  ASSERT_TRUE(add(other).ok());
  driver.controls.hang("cp.p0.q2");
  EXPECT_EQ(remove(q), ETIME);
  EXPECT_EQ(code(driver.engines->mes_suspend(0)), ETIME);
  ASSERT_TRUE(driver.engines->mes_resume(0).ok());
  write(q, kDst, 1);
  write(other, kDst + 4, 2);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
  EXPECT_TRUE(driver.engines->mes_reset_queue(q.doorbell).ok());
  EXPECT_FALSE(driver.controls.hung("cp.p0.q2"));
  EXPECT_EQ(code(driver.engines->mes_reset_queue(q.doorbell)), ENOENT);
}

TEST_F(MesTest, a_failing_removal_changes_nothing) {
  GuestQueue q = driver.make_compute(0x404);
  ASSERT_TRUE(add(q).ok());
  driver.controls.fail_unmaps(1);
  EXPECT_EQ(remove(q), ETIME);
  write(q, kDst, 1);
  driver.run();
  EXPECT_EQ(at(kDst), 1u);
  EXPECT_EQ(remove(q), 0);
}

TEST_F(MesTest, a_hung_mes_answers_nothing_until_the_device_is_reset) {
  GuestQueue q = driver.make_compute(0x404);
  driver.controls.hang("mes");
  EXPECT_EQ(code(add(q)), ETIME);
  EXPECT_EQ(code(driver.engines->mes_suspend(0)), ETIME);
  driver.controls.device_reset();
  driver.engines->reset();
  EXPECT_TRUE(add(q).ok());
  EXPECT_TRUE(driver.engines->user_queues_mapped());
}

TEST_F(MesTest, there_is_either_a_hiq_or_a_mes) {
  driver.load_hiq();
  EXPECT_FALSE(driver.hiq_loaded);
  FakeDriver old;
  GuestQueue q = old.make_compute(0x404);
  EXPECT_EQ(code(old.engines->mes_add_queue(of(q))), EOPNOTSUPP);
  EXPECT_EQ(code(old.engines->mes_suspend(0)), EOPNOTSUPP);
}

TEST_F(MesTest, random_requests_never_hurt) {
  std::mt19937 random(1);
  std::vector<GuestQueue> queues;
  for (std::uint32_t i = 0; i < 30; ++i) {
    queues.push_back(i % 3 == 0 ? driver.make_sdma(0x400 + 2 * i) : driver.make_compute(0x400 + 2 * i));
  }
  for (int i = 0; i < 5000; ++i) {
    const GuestQueue& q = queues[random() % queues.size()];
    const std::uint64_t gang = random() % 4 == 0 ? 0 : q.mqd + 1;
    switch (random() % 6) {
      case 0:
        (void)add(q, static_cast<std::uint32_t>(1 + random() % 12));
        break;
      case 1:
        remove(q);
        break;
      case 2:
        (void)driver.engines->mes_suspend(gang);
        break;
      case 3:
        (void)driver.engines->mes_resume(gang);
        break;
      case 4:
        (void)driver.engines->mes_reset_queue(q.doorbell);
        break;
      default:
        driver.clock.now += 1'000'000;
        driver.engines->step();
    }
  }
  for (const GuestQueue& q : queues) remove(q);
  EXPECT_FALSE(driver.engines->anything_mapped());
  EXPECT_TRUE(driver.registers.bound.empty());
}

}  // namespace vasicd::mes_test
