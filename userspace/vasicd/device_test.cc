// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The device as the guest sees it: command mailbox, TLB handshake, interrupts with PASID, host state.
#include "vasicd/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "vasicd/transport/fake_engines.h"
#include "vasicd/transport/loopback.h"

namespace vasicd {
namespace {

constexpr std::uint64_t kRw = pte::kValid | pte::kReadable | pte::kWriteable;
constexpr GpuAddr kVa = 0x7f00'0000'0000;
constexpr std::uint64_t kHuge = ~std::uint64_t{0};

using Args = std::initializer_list<std::uint64_t>;

struct DeviceTest : testing::Test {
  FakeEngines::Script script;
  Loopback guest{FakeEngines::factory(script)};

  std::uint32_t status(std::uint32_t opcode, Args args = {}) { return guest.command(opcode, args).status; }
  bool called(const std::string& call) const { return std::ranges::count(script.calls, call) != 0; }
};

struct StartedDeviceTest : DeviceTest {
  void SetUp() override { ASSERT_TRUE(guest.start()); }
  std::uint32_t ring_load(std::uint64_t instance, std::uint64_t base, std::uint64_t size, std::uint64_t rptr,
                          std::uint64_t doorbell, std::uint64_t wptr) {
    return status(VASIC_CMD_RING_LOAD, {instance, base, size, rptr, doorbell, wptr});
  }
};

TEST_F(DeviceTest, a_fresh_device_says_what_it_is_and_that_it_is_ready) {
  const auto& info = *reinterpret_cast<const vasic_info*>(guest.region().bytes().data() + VASIC_OFF_INFO);
  EXPECT_EQ(info.magic, VASIC_ABI_MAGIC);
  EXPECT_STREQ(info.name, "gfx906");
  EXPECT_EQ(guest.host_words().state, static_cast<std::uint32_t>(VASIC_HOST_READY));
}

TEST_F(DeviceTest, a_command_is_answered_once_per_sequence_number) {
  EXPECT_EQ(status(VASIC_CMD_NOP), VASIC_OK);
  EXPECT_FALSE(guest.device().poll());
  EXPECT_EQ(status(VASIC_CMD_NOP), VASIC_OK);
  EXPECT_EQ(std::ranges::count_if(guest.trace().lines, [](auto& l) { return l.starts_with("cmd: NOP ok"); }), 2);
}

TEST_F(DeviceTest, unknown_opcodes_are_enosys) {
  EXPECT_EQ(status(VASIC_CMD_HQD_PREPARE + 1), VASIC_ENOSYS);
  EXPECT_EQ(status(0xffffffff), VASIC_ENOSYS);
}

TEST_F(DeviceTest, the_heartbeat_counts_polls) {
  const auto before = guest.host_words().heartbeat;
  guest.device().poll();
  guest.device().poll();
  EXPECT_EQ(guest.host_words().heartbeat, before + 2);
}

TEST_F(DeviceTest, reset_with_another_abi_version_is_refused_and_names_ours) {
  const auto reply = guest.command(VASIC_CMD_RESET, {VASIC_ABI_VERSION + 1});
  EXPECT_EQ(reply.status, VASIC_EINVAL);
  EXPECT_EQ(reply.value[0], VASIC_ABI_VERSION);
  EXPECT_FALSE(called("reset"));
}

TEST_F(DeviceTest, rings_and_queues_need_the_memory_layout_first) {
  for (const std::uint32_t opcode : {VASIC_CMD_RING_LOAD, VASIC_CMD_RING_UNLOAD, VASIC_CMD_HQD_LOAD,
                                     VASIC_CMD_HQD_UNLOAD, VASIC_CMD_HQD_QUERY, VASIC_CMD_HQD_PREPARE})
    EXPECT_EQ(status(opcode), VASIC_ESTATE) << opcode;
  EXPECT_TRUE(script.calls.empty());
}

TEST_F(DeviceTest, hostile_layouts_are_refused) {
  const auto bar = guest.vm().bar_address(0);
  const auto size = Loopback::kGartSize;
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {kHuge, kHuge, kHuge, kHuge, kHuge}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {Loopback::kVramBase, Loopback::kVramBase, size, 0, bar}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {Loopback::kVramBase, 0, size, guest.vram().size(), bar}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {Loopback::kVramBase, 0, std::uint64_t{1} << 30, 0, bar}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {Loopback::kVramBase, 0, size, 0, bar + 8}), VASIC_EINVAL);
  for (const std::uint64_t bits : {std::uint64_t{8}, std::uint64_t{10}, std::uint64_t{1} << 32, kHuge})
    EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {Loopback::kVramBase, 0, size, 0, bar, bits}), VASIC_EINVAL) << bits;
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {Loopback::kVramBase, 0, size, 0, bar, 9, kHuge}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_RING_UNLOAD), VASIC_ESTATE) << "still no layout";
  EXPECT_EQ(status(VASIC_CMD_MC_SETUP, {Loopback::kVramBase, 0, size, 0, bar}), VASIC_OK);
}

TEST_F(DeviceTest, hostile_ih_rings_are_refused) {
  EXPECT_EQ(status(VASIC_CMD_IH_SETUP, {kHuge, kHuge, kHuge}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_IH_SETUP, {0x1000, 0x1001, 0x3000}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_IH_SETUP, {kHuge, 0, kHuge}), VASIC_OK) << "size 0 is off, whatever the addresses";
}

TEST_F(StartedDeviceTest, a_kernel_ring_reaches_the_engines_as_told) {
  ASSERT_EQ(ring_load(1, 0x10000000, 4096, 0x10001000, 0x200, 0x10001020), VASIC_OK);
  EXPECT_EQ(script.ring.instance, 1u);
  EXPECT_EQ(script.ring.base, 0x10000000u);
  EXPECT_EQ(script.ring.size, 4096u);
  EXPECT_EQ(script.ring.rptr_addr, 0x10001000u);
  EXPECT_EQ(script.ring.wptr_addr, 0x10001020u);
  EXPECT_EQ(script.ring.doorbell, 0x200u);
  EXPECT_EQ(status(VASIC_CMD_RING_UNLOAD, {1}), VASIC_OK);
  EXPECT_TRUE(called("unload_ring sdma1"));
}

TEST_F(StartedDeviceTest, hostile_ring_arguments_do_not_reach_the_engines) {
  const std::uint64_t end = VASIC_DOORBELL_SIZE / 4;
  EXPECT_EQ(ring_load(2, 0, 4096, 0, 0, 0), VASIC_EINVAL) << "instance";
  EXPECT_EQ(ring_load(std::uint64_t{1} << 32, 0, 4096, 0, 0, 0), VASIC_EINVAL) << "instance";
  EXPECT_EQ(ring_load(0, 1, 4096, 0, 0, 0), VASIC_EINVAL) << "base";
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{4095}, std::uint64_t{128}, std::uint64_t{1} << 40, kHuge})
    EXPECT_EQ(ring_load(0, 0, size, 0, 0, 0), VASIC_EINVAL) << "size " << size;
  EXPECT_EQ(ring_load(0, 0, 4096, 4, 0, 0), VASIC_EINVAL) << "read pointer";
  EXPECT_EQ(ring_load(0, 0, 4096, 0, 0, 4), VASIC_EINVAL) << "write pointer";
  for (const std::uint64_t doorbell : {std::uint64_t{1}, end, std::uint64_t{1} << 32, kHuge})
    EXPECT_EQ(ring_load(0, 0, 4096, 0, doorbell, 0), VASIC_EINVAL) << "doorbell " << doorbell;
  EXPECT_EQ(status(VASIC_CMD_RING_UNLOAD, {2}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_RING_UNLOAD, {kHuge}), VASIC_EINVAL);
  EXPECT_TRUE(script.calls.empty());
}

TEST_F(StartedDeviceTest, an_hqd_reaches_the_engines_as_told) {
  ASSERT_EQ(status(VASIC_CMD_HQD_LOAD, {VASIC_QUEUE_HIQ, 0x8000001000, 7, 3, 0, 9}), VASIC_OK);
  EXPECT_EQ(script.slot.kind, QueueKind::kHiq);
  EXPECT_EQ(script.slot.pipe, 7u);
  EXPECT_EQ(script.slot.slot, 3u);
  EXPECT_EQ(script.mqd, 0x8000001000u);
  EXPECT_EQ(script.vmid, 9u);
  ASSERT_EQ(status(VASIC_CMD_HQD_PREPARE, {VASIC_QUEUE_COMPUTE, 0x8000002000, 5, 1}), VASIC_OK);
  EXPECT_EQ(script.calls.back(), "prepare_hqd");
  EXPECT_EQ(script.mqd, 0x8000002000u);
  ASSERT_EQ(status(VASIC_CMD_HQD_UNLOAD, {VASIC_QUEUE_SDMA, 0, 1, 2, 0, 2}), VASIC_OK);
  EXPECT_EQ(script.slot.kind, QueueKind::kSdma);
  EXPECT_EQ(script.mode, UnloadMode::kReset);
}

TEST_F(StartedDeviceTest, an_hqd_query_returns_what_the_engines_know) {
  script.hqd = {.occupied = true, .pq_base = 0x7f0000001000};
  const auto reply = guest.command(VASIC_CMD_HQD_QUERY, {VASIC_QUEUE_COMPUTE, 0, 1, 1, 0});
  EXPECT_EQ(reply.status, VASIC_OK);
  EXPECT_EQ(reply.value[0], 1u);
  EXPECT_EQ(reply.value[1], 0x7f0000001000u);
}

TEST_F(StartedDeviceTest, hostile_hqd_arguments_do_not_reach_the_engines) {
  const Args bad_slots[] = {{3, 0, 0, 0, 0, 0},
                            {kHuge, 0, 0, 0, 0, 0},
                            {VASIC_QUEUE_COMPUTE, 0, 8, 0, 0, 0},
                            {VASIC_QUEUE_SDMA, 0, 2, 0, 0, 0},
                            {VASIC_QUEUE_COMPUTE, 0, 0, 8, 0, 0},
                            {VASIC_QUEUE_COMPUTE, 0, 0, 0, 1, 0},
                            {VASIC_QUEUE_COMPUTE, 0, std::uint64_t{1} << 32, 0, 0, 0},
                            {VASIC_QUEUE_COMPUTE, 0, 0, std::uint64_t{1} << 32, 0, 0}};
  for (const auto& args : bad_slots) {
    EXPECT_EQ(status(VASIC_CMD_HQD_LOAD, args), VASIC_EINVAL);
    EXPECT_EQ(status(VASIC_CMD_HQD_UNLOAD, args), VASIC_EINVAL);
    EXPECT_EQ(status(VASIC_CMD_HQD_QUERY, args), VASIC_EINVAL);
    EXPECT_EQ(status(VASIC_CMD_HQD_PREPARE, args), VASIC_EINVAL);
  }
  EXPECT_EQ(status(VASIC_CMD_HQD_LOAD, {VASIC_QUEUE_COMPUTE, 2, 0, 0, 0, 0}), VASIC_EINVAL) << "MQD alignment";
  EXPECT_EQ(status(VASIC_CMD_HQD_LOAD, {VASIC_QUEUE_COMPUTE, 0, 0, 0, 0, 16}), VASIC_EINVAL) << "VMID";
  EXPECT_EQ(status(VASIC_CMD_HQD_UNLOAD, {VASIC_QUEUE_COMPUTE, 0, 0, 0, 0, 3}), VASIC_EINVAL) << "mode";
  EXPECT_TRUE(script.calls.empty());
}

TEST_F(StartedDeviceTest, errors_of_the_engines_become_statuses) {
  const std::pair<int, std::uint32_t> expected[] = {
      {EBUSY, VASIC_EBUSY},     {ENOENT, VASIC_EBUSY},  {EFAULT, VASIC_EFAULT},     {ETIME, VASIC_ETIME},
      {ETIMEDOUT, VASIC_ETIME}, {EINVAL, VASIC_EINVAL}, {EOPNOTSUPP, VASIC_ENOSYS}, {EIO, VASIC_EINVAL}};
  for (const auto& [code, answer] : expected) {
    script.next = base::Error(code, "scripted");
    EXPECT_EQ(status(VASIC_CMD_HQD_UNLOAD, {VASIC_QUEUE_COMPUTE}), answer) << code;
  }
}

TEST_F(StartedDeviceTest, register_writes_are_checked_for_width_and_index) {
  EXPECT_EQ(status(VASIC_CMD_REG_WRITE, {VASIC_REG_VM_PASID(8), 5}), VASIC_OK);
  EXPECT_EQ(status(VASIC_CMD_REG_WRITE, {0, 5}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_REG_WRITE, {kHuge, 5}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_REG_WRITE, {VASIC_REG_VM_PASID(8), kHuge}), VASIC_EINVAL);
}

TEST_F(StartedDeviceTest, reset_forgets_everything_but_vram) {
  guest.vram_word(0x100000) = 42;
  ASSERT_EQ(status(VASIC_CMD_RESET, {VASIC_ABI_VERSION}), VASIC_OK);
  EXPECT_TRUE(called("reset"));
  EXPECT_EQ(status(VASIC_CMD_RING_UNLOAD, {0}), VASIC_ESTATE);
  EXPECT_EQ(guest.vram_word(0x100000), 42u);
  EXPECT_TRUE(guest.vm().bus().resolve(guest.vm().bar_address(0) + VASIC_OFF_VRAM, 8).empty());
  EXPECT_TRUE(guest.start()) << "and it can be started again";
}

TEST_F(StartedDeviceTest, the_walk_epoch_is_odd_exactly_while_engines_step) {
  std::uint32_t during = 0;
  script.step = [&](EngineContext&) {
    during = guest.host_words().walk_epoch;
    return false;
  };
  const auto before = guest.host_words().walk_epoch;
  guest.device().poll();
  EXPECT_EQ(before % 2, 0u);
  EXPECT_EQ(during, before + 1);
  EXPECT_EQ(guest.host_words().walk_epoch, before + 2);
}

TEST_F(StartedDeviceTest, a_bump_of_tlb_gen_drops_translations_before_the_next_step_and_is_acknowledged) {
  const auto root = guest.new_page_directory();
  guest.map(root, kVa, 0x5000, kGpuPageSize, kRw);
  guest.bind(8, root, 0x8001);
  std::byte* seen = nullptr;
  script.step = [&](EngineContext& context) {
    seen = context.memory.map(8, kVa, 8, Access::kRead)->data();
    return false;
  };
  guest.device().poll();
  guest.map(root, kVa, 0x6000, kGpuPageSize, kRw);
  guest.device().poll();
  EXPECT_EQ(seen, guest.vram().data() + 0x5000) << "the cache must matter, or this test proves nothing";
  guest.invalidate_tlb();
  guest.device().poll();
  EXPECT_EQ(seen, guest.vram().data() + 0x6000);
  EXPECT_EQ(guest.host_words().tlb_ack, guest.guest_words().tlb_gen);
}

TEST_F(StartedDeviceTest, an_interrupt_gets_the_pasid_of_its_vmid_and_a_time_stamp) {
  guest.bind(8, 0, 0x8001);
  guest.clock().advance(1'000'000);
  script.step = [](EngineContext& context) {
    context.interrupts.raise({.kind = InterruptKind::kCpEndOfPipe, .ring_id = 4, .vmid = 8, .data = {7}});
    return false;
  };
  EXPECT_TRUE(guest.device().poll());
  const auto entry = guest.next_interrupt();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->pasid, 0x8001);
  EXPECT_EQ(entry->vmid_type, 0);
  EXPECT_EQ(entry->data[0], 7u);
  EXPECT_EQ(entry->timestamp, 1'001 * guest.vm().info(0).clock_khz) << "1001 ms after the clock's zero";
  EXPECT_EQ(guest.line().signals, 1);
}

TEST_F(StartedDeviceTest, a_fault_of_the_mmhub_is_marked_as_such) {
  guest.bind(9, 0, 0x8002);
  script.step = [](EngineContext& context) {
    const auto word = context.memory.load32(9, kVa);
    if (!word.ok()) context.interrupts.raise_fault(word.error(), {.unit = FaultClient::Unit::kSdma, .instance = 1});
    return false;
  };
  guest.device().poll();
  const auto entry = guest.next_interrupt();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->vmid_type, 1);
  EXPECT_EQ(entry->vmid, 9);
  EXPECT_EQ(entry->pasid, 0x8002);
  EXPECT_EQ(entry->data[0], static_cast<std::uint32_t>(kVa >> 12));
  EXPECT_EQ(entry->data[1] & 0xf, static_cast<std::uint32_t>(kVa >> 44));
}

TEST_F(StartedDeviceTest, a_hostile_ih_read_pointer_hangs_the_device_until_reset) {
  script.step = [](EngineContext& context) {
    context.interrupts.raise({});
    return true;
  };
  guest.guest_words().ih_rptr = 3;
  guest.device().poll();
  EXPECT_EQ(guest.host_words().state, static_cast<std::uint32_t>(VASIC_HOST_HUNG));
  EXPECT_FALSE(guest.device().poll()) << "engines do not run any more";
  EXPECT_EQ(status(VASIC_CMD_NOP), VASIC_OK);
  EXPECT_EQ(status(VASIC_CMD_REG_WRITE, {VASIC_REG_VM_PASID(8), 5}), VASIC_ESTATE);
  EXPECT_EQ(status(VASIC_CMD_RESET, {VASIC_ABI_VERSION}), VASIC_OK);
  EXPECT_EQ(guest.host_words().state, static_cast<std::uint32_t>(VASIC_HOST_READY));
}

TEST_F(StartedDeviceTest, a_descriptor_without_an_address_goes_by_value) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(guest.region().bytes().data() + VASIC_OFF_MQD);
  shared[0] = 0x11;
  shared[127] = 0x22;
  EXPECT_EQ(status(VASIC_CMD_HQD_PREPARE, {VASIC_QUEUE_SDMA, 0, 1, 1, 0, 0, VASIC_HQD_BY_VALUE}), VASIC_OK);
  EXPECT_EQ(script.mqd_words.at(127), 0x22u);
  script.mqd_words.clear();
  EXPECT_EQ(status(VASIC_CMD_HQD_LOAD, {VASIC_QUEUE_SDMA, 0, 1, 1, 0, 0, VASIC_HQD_BY_VALUE}), VASIC_OK);
  EXPECT_EQ(script.mqd_words.at(0), 0x11u);
  EXPECT_EQ(script.mqd_words.at(127), 0x22u);
  script.mqd_words = {0x33, 0x44};
  EXPECT_EQ(status(VASIC_CMD_HQD_UNLOAD, {VASIC_QUEUE_SDMA, 0, 1, 1, 0, VASIC_UNLOAD_SAVE, VASIC_HQD_BY_VALUE}),
            VASIC_OK);
  EXPECT_EQ(shared[1], 0x44u);
  EXPECT_EQ(shared[127], 0x22u);
  EXPECT_EQ(status(VASIC_CMD_HQD_LOAD, {VASIC_QUEUE_SDMA, 0, 1, 1, 0, 0, 2}), VASIC_EINVAL);
}

TEST_F(StartedDeviceTest, requests_to_the_mes_reach_it) {
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {0x8001, 0x2001, 3, 4, 0x5000, 6, 7, 0x800, VASIC_QUEUE_SDMA,
                                             VASIC_MES_EXCLUSIVE, 9ull << 32 | 10, 4, 64}),
            VASIC_OK);
  EXPECT_EQ(script.mes_queue.pasid, 0x8001u);
  EXPECT_EQ(script.mes_queue.page_directory, 0x2001u);
  EXPECT_EQ(script.mes_queue.process_context, 3u);
  EXPECT_EQ(script.mes_queue.gang_context, 4u);
  EXPECT_EQ(script.mes_queue.mqd, 0x5000u);
  EXPECT_EQ(script.mes_queue.wptr_addr, 6u);
  EXPECT_EQ(script.mes_queue.doorbell, 0x800u);
  EXPECT_EQ(script.mes_queue.kind, QueueKind::kSdma);
  EXPECT_TRUE(script.mes_queue.exclusive);
  EXPECT_EQ(script.mes_queue.process_quantum, 9u);
  EXPECT_EQ(script.mes_queue.gang_quantum, 10u);
  EXPECT_EQ(script.mes_queue.priority, 4u);
  EXPECT_EQ(status(VASIC_CMD_MES_REMOVE_QUEUE, {0x800, 4}), VASIC_OK);
  EXPECT_TRUE(called("mes_remove_queue 2048 of 4"));
  EXPECT_EQ(status(VASIC_CMD_MES_SUSPEND, {0}), VASIC_OK);
  EXPECT_TRUE(called("mes_suspend 0"));
  EXPECT_EQ(status(VASIC_CMD_MES_RESUME, {4}), VASIC_OK);
  EXPECT_TRUE(called("mes_resume 4"));
  script.next = base::Error(ETIME, "hangs");
  EXPECT_EQ(status(VASIC_CMD_MES_RESET_QUEUE, {0x800}), VASIC_ETIME);
}

TEST_F(StartedDeviceTest, requests_to_the_mes_are_checked) {
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {0x10000, 0, 3, 4, 0x5000, 6, 7, 0x800}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {1, 0, 3, 4, 0x5000, 6, 7, 1ull << 32}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {1, 0, 3, 4, 0x5001, 6, 7, 0x800}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {1, 0, 3, 4, 0x5000, 6, 7, 0x800, 3}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {1, 0, 3, 4, 0x5000, 6, 7, 0x800, VASIC_QUEUE_HIQ}), VASIC_EINVAL);
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {1, 0, 3, 4, 0x5000, 6, 7, 0x800, 0, 8}), VASIC_EINVAL) << "flags";
  EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {1, 0, 3, 4, 0x5000, 6, 7, 0x800, 0, 0, 0, 5}), VASIC_EINVAL) << "priority";
  for (const std::uint64_t gws : {std::uint64_t{65}, std::uint64_t{1} << 32 | 64, kHuge})
    EXPECT_EQ(status(VASIC_CMD_MES_ADD_QUEUE, {1, 0, 3, 4, 0x5000, 6, 7, 0x800, 0, 0, 0, 0, gws}), VASIC_EINVAL) << gws;
  for (const std::uint64_t doorbell :
       {std::uint64_t{1}, std::uint64_t{VASIC_DOORBELL_SIZE / 4}, std::uint64_t{1} << 32}) {
    EXPECT_EQ(status(VASIC_CMD_MES_REMOVE_QUEUE, {doorbell}), VASIC_EINVAL) << doorbell;
    EXPECT_EQ(status(VASIC_CMD_MES_RESET_QUEUE, {doorbell}), VASIC_EINVAL) << doorbell;
  }
  EXPECT_TRUE(script.calls.empty());
}

TEST_F(StartedDeviceTest, attention_follows_what_is_mapped_and_what_waits) {
  EXPECT_EQ(guest.device().attention(), Attention::kKicks);
  script.anything_mapped = true;
  EXPECT_EQ(guest.device().attention(), Attention::kKernel);
  script.user_queues_mapped = true;
  EXPECT_EQ(guest.device().attention(), Attention::kUserQueues);
}

TEST_F(StartedDeviceTest, interrupts_that_wait_for_room_keep_the_device_awake) {
  script.step = [](EngineContext& context) {
    for (int i = 0; i < 200; ++i) context.interrupts.raise({});
    return false;
  };
  guest.device().poll();
  EXPECT_EQ(guest.device().attention(), Attention::kKernel);
}

TEST_F(StartedDeviceTest, power_cycling_leaves_nothing_of_the_old_guest) {
  guest.vram_word(0x100000) = 42;
  guest.ring_doorbell(10, 5);
  guest.guest_words().tlb_gen = 9;
  std::ranges::fill(guest.region().bytes().first(sizeof(vasic_info)), std::byte{0xee});
  ASSERT_TRUE(guest.device().power_cycle().ok());
  EXPECT_EQ(guest.vram_word(0x100000), 0u);
  EXPECT_EQ(guest.guest_words().tlb_gen, 0u);
  EXPECT_EQ(guest.region().take(10), std::nullopt);
  EXPECT_EQ(reinterpret_cast<const vasic_info*>(guest.region().bytes().data())->magic, VASIC_ABI_MAGIC);
  EXPECT_EQ(guest.host_words().state, static_cast<std::uint32_t>(VASIC_HOST_READY));
  EXPECT_FALSE(guest.device().poll()) << "no command is left over";
}

TEST(Device, says_gone_when_it_goes) {
  VirtualMachine vm;
  FakeEngines::Script script;
  { const Loopback guest(vm, 0, FakeEngines::factory(script)); }
  const auto& words = *reinterpret_cast<const vasic_host_words*>(vm.region(0).bytes().data() + VASIC_OFF_HOST);
  EXPECT_EQ(words.state, static_cast<std::uint32_t>(VASIC_HOST_GONE));
}

TEST(Device, of_gfx7_reads_its_own_page_tables_and_interrupts_in_16_bytes) {
  FakeEngines::Script script;
  Loopback guest{FakeEngines::factory(script), {.spec = "gfx701,vram=64M"}};
  ASSERT_TRUE(guest.start());
  guest.vram_word(0x100000) = (Loopback::kVramBase + 0x101000) | pte::kValid;
  guest.vram_word(0x101000 + 8) = 0x5000 | kRw;
  const GpuAddr root = Loopback::kVramBase + 0x100000;
  guest.command(VASIC_CMD_REG_WRITE, {VASIC_REG_VM_PD_LO(8), root & 0xffffffff});
  guest.command(VASIC_CMD_REG_WRITE, {VASIC_REG_VM_PD_HI(8), root >> 32});
  guest.command(VASIC_CMD_REG_WRITE, {VASIC_REG_VM_PASID(8), 0x8001});
  std::byte* seen = nullptr;
  script.step = [&](EngineContext& context) {
    const auto bytes = context.memory.map(8, 0x1000, 8, Access::kWrite);
    if (bytes.ok()) seen = bytes->data();
    if (const auto absent = context.memory.load32(8, 0x3000); !absent.ok())
      context.interrupts.raise_fault(absent.error(), {});
    return false;
  };
  guest.device().poll();
  EXPECT_EQ(seen, guest.vram().data() + 0x5000);
  const auto entry = guest.next_interrupt();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->source_id, 146);
  EXPECT_EQ(entry->pasid, 0x8001);
  EXPECT_EQ(entry->data[0], 3u) << "the page";
}

}  // namespace
}  // namespace vasicd
