// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How the driver handles kernel rings that misbehave, as requested through a virtual GPU's control port. The driver
// gives up a hung ring after its time limit for jobs (amdgpu.lockup_timeout), and a reset may affect every process.
#include <algorithm>
#include <cerrno>
#include <map>

#include "drmtest/tests/recovery.h"
#include "kfdtest-criu/env/control_port.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/env/kernel_log.h"

namespace drmtest {
namespace {

using kfdtest::ControlPort;

class InjectionTest : public RecoveryTest {
 protected:
  void SetUp() override {
    if (!ControlPort::exists()) GTEST_SKIP() << kfdtest::kNoControlPort;
    ASSERT_NO_FATAL_FAILURE(RecoveryTest::SetUp());
    ASSERT_OK_AND_ASSIGN(ControlPort port, ControlPort::open(gpu_number()));
    port_.emplace(std::move(port));
  }
  void TearDown() override {
    if (port_.has_value()) {
      EXPECT_OK(port_->cancel_requests());
    }
    port_.reset();
    RecoveryTest::TearDown();
  }
  [[nodiscard]] ControlPort& port() { return *port_; }

  // All rings of a kind by name, with their write pointers: the driver chooses the ring that a job runs on.
  base::Result<std::map<std::string, std::uint64_t>> rings(unsigned ip) {
    ASSIGN_OR_RETURN(const auto queues, port().queues());
    std::map<std::string, std::uint64_t> found;
    for (const kfdtest::QueueStatus& queue : queues)
      if (queue.vmid == 0 && queue.name.starts_with(ip == AMDGPU_HW_IP_DMA ? "sdma" : "compute"))
        found[queue.name] = queue.wptr;
    if (found.empty()) return base::Error(ENOENT, "the GPU shows no ring of the kind");
    return found;
  }
  // The ring whose write pointer has moved since.
  base::Result<std::string> ring_used_since(unsigned ip, const std::map<std::string, std::uint64_t>& before) {
    ASSIGN_OR_RETURN(const auto now, rings(ip));
    for (const auto& [name, wptr] : now)
      if (const auto at = before.find(name); at == before.end() || at->second != wptr) return name;
    return base::Error(ENOENT, "no ring was given anything");
  }

 private:
  // vasicd and the driver number GPUs in the same order.
  static unsigned gpu_number() {
    const std::vector<Node> nodes = render_nodes();
    const auto at = std::ranges::find(nodes, GetParam().path, &Node::path);
    return static_cast<unsigned>(at - nodes.begin());
  }
  std::optional<ControlPort> port_;
};

TEST_P(InjectionTest, a_ring_that_executes_nothing_is_reset_and_a_new_context_works) {
  for (const unsigned ip : engines()) {
    ASSERT_OK_AND_ASSIGN(const auto all, rings(ip));
    ASSERT_OK_AND_ASSIGN(const Context context, Context::create(device()));
    ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), context));
    Commands nop(device(), ip);
    // Waits until page tables are up to date: the driver updates them by the ring that is about to hang.
    ASSERT_OK(submitter.run({.ip = ip, .bos = {page().handle()}}, nop.nop()));
    page().store(0, 0);
    for (const auto& [name, wptr] : all) ASSERT_OK(port().tell("hang " + name));
    Commands write(device(), ip);
    write.write(page().address(), 1);
    ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence fence, submitter.submit({.ip = ip, .bos = {page().handle()}}, write));
    expect_ended_by_reset(context, fence);
    EXPECT_EQ(page().load(0), 0U) << "the ring did not hang";
    ASSERT_OK(port().cancel_requests());
    for (const unsigned other : engines()) {
      ASSERT_OK_AND_ASSIGN(const Context after, Context::create(device()));
      ASSERT_NO_FATAL_FAILURE(expect_work(after, other, 100 * ip + other)) << "ip " << other;
    }
  }
}

TEST_P(InjectionTest, a_vm_fault_of_a_ring_is_reported_and_every_job_ends) {
  for (const unsigned ip : engines()) {
    ASSERT_OK_AND_ASSIGN(const auto all, rings(ip));
    // The driver may choose another ring for each job.
    const auto rounds = static_cast<std::uint32_t>(4 * all.size());
    ASSERT_OK_AND_ASSIGN(kfdtest::KernelLog log, kfdtest::KernelLog::open());
    ASSERT_OK_AND_ASSIGN(const Context context, Context::create(device()));
    ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), context));
    const auto work = [&](std::uint32_t value) {
      Commands write(device(), ip);
      write.write(page().address(), value);
      return submitter.run({.ip = ip, .bos = {page().handle()}}, write);
    };
    // Waits until page tables are up to date on every ring, so that the fault does not hit a packet that sets them up.
    for (std::uint32_t job = 0; job < rounds; ++job) ASSERT_OK(work(job));
    ASSERT_OK_AND_ASSIGN(const auto before, rings(ip));
    ASSERT_OK(work(rounds));
    ASSERT_OK_AND_ASSIGN(const std::string name, ring_used_since(ip, before));
    ASSERT_OK(port().tell("vm-fault " + name + " 0x76543000"));
    std::string waiting = "1";
    for (std::uint32_t job = 0; job < rounds && waiting != "0"; ++job) {
      ASSERT_OK(work(job)) << "ip " << ip << " job " << job;
      ASSERT_OK_AND_ASSIGN(waiting, port().status("inject", "vm-fault"));
    }
    EXPECT_EQ(waiting, "0") << name << " executed nothing";
    EXPECT_TRUE(kfdtest::wait_until([&log] {
      return std::ranges::any_of(log.new_lines(), [](const std::string& line) {
        return line.find("page fault at 0x0000000076543000") != std::string::npos;
      });
    })) << "the driver did not report it";
    // The ring that skipped a packet must work, too.
    for (std::uint32_t job = 0; job < rounds; ++job) {
      ASSERT_OK(work(1000 + job)) << "ip " << ip;
      ASSERT_EQ(page().load(0), 1000 + job) << "ip " << ip;
    }
    ASSERT_OK_AND_ASSIGN(const std::uint64_t flags, context.reset_flags());
    EXPECT_EQ(flags, 0U);
  }
}

TEST_P(InjectionTest, a_lost_interrupt_delays_a_fence_and_does_not_lose_it) {
  for (const unsigned ip : engines()) {
    ASSERT_OK_AND_ASSIGN(const Context context, Context::create(device()));
    ASSERT_NO_FATAL_FAILURE(expect_work(context, ip, 1));
    ASSERT_OK(port().tell(ip == AMDGPU_HW_IP_DMA ? "drop-interrupt 1 trap" : "drop-interrupt 1 eop"));
    ASSERT_NO_FATAL_FAILURE(expect_work(context, ip, 2));
    ASSERT_OK_AND_ASSIGN(const std::string left, port().status("inject", "drop-interrupt"));
    EXPECT_EQ(left, "0") << "no interrupt was dropped";
    ASSERT_NO_FATAL_FAILURE(expect_work(context, ip, 3));
  }
}

EVERY_GPU(InjectionTest);

}  // namespace
}  // namespace drmtest
