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

namespace vasicd::device_test {

constexpr std::uint64_t kRw = pte::kValid | pte::kReadable | pte::kWriteable;
constexpr GpuAddr kVa = 0x7f00'0000'0000;
constexpr std::uint64_t kHuge = ~std::uint64_t{0};

struct DeviceTest : testing::Test {
  FakeEngines::Script script;
  Loopback guest{FakeEngines::factory(script)};

  std::uint32_t status(std::uint32_t opcode, const vasic_cmd& cmd = {}) { return guest.command(opcode, cmd).status; }
  std::uint32_t reset(std::uint64_t abi_version) {
    return status(VASIC_CMD_RESET, {.reset = {.abi_version = abi_version}});
  }
  std::uint32_t mc_setup(const vasic_cmd_mc_setup& setup) { return status(VASIC_CMD_MC_SETUP, {.mc_setup = setup}); }
  std::uint32_t ih_setup(const vasic_cmd_ih_setup& setup) { return status(VASIC_CMD_IH_SETUP, {.ih_setup = setup}); }
  std::uint32_t ring_unload(std::uint64_t instance) {
    return status(VASIC_CMD_RING_UNLOAD, {.ring_unload = {.instance = instance, .kind = VASIC_RING_SDMA, .mode = 0}});
  }
  bool called(const std::string& call) const { return std::ranges::count(script.calls, call) != 0; }
};

struct StartedDeviceTest : DeviceTest {
  void SetUp() override { ASSERT_TRUE(guest.start()); }
  std::uint32_t ring_load(const vasic_cmd_ring_load& ring) { return status(VASIC_CMD_RING_LOAD, {.ring_load = ring}); }
  std::uint32_t hqd_load(const vasic_hqd& hqd, std::uint64_t vmid, std::uint64_t flags = 0) {
    return status(VASIC_CMD_HQD_LOAD, {.hqd_load = {.hqd = hqd, .vmid = vmid, .flags = flags}});
  }
  std::uint32_t hqd_unload(const vasic_hqd& hqd, std::uint64_t mode, std::uint64_t flags = 0) {
    return status(VASIC_CMD_HQD_UNLOAD, {.hqd_unload = {.hqd = hqd, .mode = mode, .flags = flags}});
  }
  std::uint32_t hqd_prepare(const vasic_hqd& hqd, std::uint64_t flags = 0) {
    return status(VASIC_CMD_HQD_PREPARE, {.hqd_prepare = {.hqd = hqd, .reserved = 0, .flags = flags}});
  }
  vasic_reply hqd_query(const vasic_hqd& hqd) {
    return guest.command(VASIC_CMD_HQD_QUERY, {.hqd_query = {.hqd = hqd}});
  }
  std::uint32_t mes_add_queue(const vasic_cmd_mes_add_queue& queue) {
    return status(VASIC_CMD_MES_ADD_QUEUE, {.mes_add_queue = queue});
  }
  std::uint32_t mes_remove_queue(std::uint64_t doorbell, std::uint64_t gang) {
    return status(VASIC_CMD_MES_REMOVE_QUEUE, {.mes_remove_queue = {.doorbell = doorbell, .gang_context = gang}});
  }
  std::uint32_t mes_reset_queue(std::uint64_t doorbell) {
    return status(VASIC_CMD_MES_RESET_QUEUE, {.mes_reset_queue = {.doorbell = doorbell}});
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
  const auto reply = guest.command(VASIC_CMD_RESET, {.reset = {.abi_version = VASIC_ABI_VERSION + 1}});
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
  vasic_cmd_mc_setup good{};
  good.vram_base = Loopback::kVramBase;
  good.gart_size = Loopback::kGartSize;
  good.bar_address = guest.vm().bar_address(0);
  const auto with = [&](auto vasic_cmd_mc_setup::*field, std::uint64_t value) {
    vasic_cmd_mc_setup setup = good;
    setup.*field = value;
    return mc_setup(setup);
  };
  EXPECT_EQ(mc_setup({}), VASIC_EINVAL);
  EXPECT_EQ(mc_setup({kHuge, kHuge, kHuge, kHuge, kHuge, 0, 0}), VASIC_EINVAL);
  EXPECT_EQ(with(&vasic_cmd_mc_setup::gart_base, Loopback::kVramBase), VASIC_EINVAL);
  EXPECT_EQ(with(&vasic_cmd_mc_setup::gart_table, guest.vram().size()), VASIC_EINVAL);
  EXPECT_EQ(with(&vasic_cmd_mc_setup::gart_size, std::uint64_t{1} << 30), VASIC_EINVAL);
  EXPECT_EQ(with(&vasic_cmd_mc_setup::bar_address, good.bar_address + 8), VASIC_EINVAL);
  for (const std::uint64_t bits : {std::uint64_t{8}, std::uint64_t{10}, std::uint64_t{1} << 32, kHuge})
    EXPECT_EQ(with(&vasic_cmd_mc_setup::table_bits, bits), VASIC_EINVAL) << bits;
  good.table_bits = 9;
  EXPECT_EQ(with(&vasic_cmd_mc_setup::va_pages, kHuge), VASIC_EINVAL);
  good.table_bits = 0;
  EXPECT_EQ(status(VASIC_CMD_RING_UNLOAD), VASIC_ESTATE) << "still no layout";
  EXPECT_EQ(mc_setup(good), VASIC_OK);
}

TEST_F(DeviceTest, hostile_ih_rings_are_refused) {
  EXPECT_EQ(ih_setup({.ring = kHuge, .size = kHuge, .wptr_addr = kHuge}), VASIC_EINVAL);
  EXPECT_EQ(ih_setup({.ring = 0x1000, .size = 0x1001, .wptr_addr = 0x3000}), VASIC_EINVAL);
  EXPECT_EQ(ih_setup({.ring = kHuge, .size = 0, .wptr_addr = kHuge}), VASIC_OK)
      << "size 0 is off, whatever the addresses";
}

TEST_F(StartedDeviceTest, a_kernel_ring_reaches_the_engines_as_told) {
  ASSERT_EQ(ring_load({.instance = 1,
                       .base = 0x10000000,
                       .size = 4096,
                       .rptr_addr = 0x10001000,
                       .doorbell = 0x200,
                       .wptr_addr = 0x10001020,
                       .kind = VASIC_RING_SDMA}),
            VASIC_OK);
  EXPECT_EQ(script.ring.instance, 1u);
  EXPECT_EQ(script.ring.base, 0x10000000u);
  EXPECT_EQ(script.ring.size, 4096u);
  EXPECT_EQ(script.ring.rptr_addr, 0x10001000u);
  EXPECT_EQ(script.ring.wptr_addr, 0x10001020u);
  EXPECT_EQ(script.ring.doorbell, 0x200u);
  EXPECT_EQ(ring_unload(1), VASIC_OK);
  EXPECT_TRUE(called("unload_ring sdma1"));
}

TEST_F(StartedDeviceTest, hostile_ring_arguments_do_not_reach_the_engines) {
  const std::uint64_t end = VASIC_DOORBELL_SIZE / 4;
  const auto with = [&](auto vasic_cmd_ring_load::*field, std::uint64_t value) {
    vasic_cmd_ring_load ring{};
    ring.size = 4096;
    ring.*field = value;
    return ring_load(ring);
  };
  for (const std::uint64_t instance : {std::uint64_t{2}, std::uint64_t{1} << 32})
    EXPECT_EQ(with(&vasic_cmd_ring_load::instance, instance), VASIC_EINVAL) << "instance " << instance;
  EXPECT_EQ(with(&vasic_cmd_ring_load::base, 1), VASIC_EINVAL) << "base";
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{4095}, std::uint64_t{128}, std::uint64_t{1} << 40, kHuge})
    EXPECT_EQ(with(&vasic_cmd_ring_load::size, size), VASIC_EINVAL) << "size " << size;
  EXPECT_EQ(with(&vasic_cmd_ring_load::rptr_addr, 4), VASIC_EINVAL) << "read pointer";
  EXPECT_EQ(with(&vasic_cmd_ring_load::wptr_addr, 4), VASIC_EINVAL) << "write pointer";
  for (const std::uint64_t doorbell : {std::uint64_t{1}, end, std::uint64_t{1} << 32, kHuge})
    EXPECT_EQ(with(&vasic_cmd_ring_load::doorbell, doorbell), VASIC_EINVAL) << "doorbell " << doorbell;
  EXPECT_EQ(ring_unload(2), VASIC_EINVAL);
  EXPECT_EQ(ring_unload(kHuge), VASIC_EINVAL);
  EXPECT_TRUE(script.calls.empty());
}

TEST_F(StartedDeviceTest, an_hqd_reaches_the_engines_as_told) {
  ASSERT_EQ(hqd_load({.kind = VASIC_QUEUE_HIQ, .mqd = 0x8000001000, .pipe = 7, .slot = 3, .xcc = 0}, 9), VASIC_OK);
  EXPECT_EQ(script.slot.kind, QueueKind::kHiq);
  EXPECT_EQ(script.slot.pipe, 7u);
  EXPECT_EQ(script.slot.slot, 3u);
  EXPECT_EQ(script.mqd, 0x8000001000u);
  EXPECT_EQ(script.vmid, 9u);
  ASSERT_EQ(hqd_prepare({.kind = VASIC_QUEUE_COMPUTE, .mqd = 0x8000002000, .pipe = 5, .slot = 1, .xcc = 0}), VASIC_OK);
  EXPECT_EQ(script.calls.back(), "prepare_hqd");
  EXPECT_EQ(script.mqd, 0x8000002000u);
  ASSERT_EQ(hqd_unload({.kind = VASIC_QUEUE_SDMA, .mqd = 0, .pipe = 1, .slot = 2, .xcc = 0}, VASIC_UNLOAD_RESET),
            VASIC_OK);
  EXPECT_EQ(script.slot.kind, QueueKind::kSdma);
  EXPECT_EQ(script.mode, UnloadMode::kReset);
}

TEST_F(StartedDeviceTest, an_hqd_query_returns_what_the_engines_know) {
  script.hqd = {.occupied = true, .pq_base = 0x7f0000001000};
  const auto reply = hqd_query({.kind = VASIC_QUEUE_COMPUTE, .mqd = 0, .pipe = 1, .slot = 1, .xcc = 0});
  EXPECT_EQ(reply.status, VASIC_OK);
  EXPECT_EQ(reply.value[0], 1u);
  EXPECT_EQ(reply.value[1], 0x7f0000001000u);
}

TEST_F(StartedDeviceTest, hostile_hqd_arguments_do_not_reach_the_engines) {
  constexpr std::uint64_t kWide = std::uint64_t{1} << 32;
  const vasic_hqd bad_slots[] = {{.kind = 3, .mqd = 0, .pipe = 0, .slot = 0, .xcc = 0},
                                 {.kind = kHuge, .mqd = 0, .pipe = 0, .slot = 0, .xcc = 0},
                                 {.kind = VASIC_QUEUE_COMPUTE, .mqd = 0, .pipe = 8, .slot = 0, .xcc = 0},
                                 {.kind = VASIC_QUEUE_SDMA, .mqd = 0, .pipe = 2, .slot = 0, .xcc = 0},
                                 {.kind = VASIC_QUEUE_COMPUTE, .mqd = 0, .pipe = 0, .slot = 8, .xcc = 0},
                                 {.kind = VASIC_QUEUE_COMPUTE, .mqd = 0, .pipe = 0, .slot = 0, .xcc = 1},
                                 {.kind = VASIC_QUEUE_COMPUTE, .mqd = 0, .pipe = kWide, .slot = 0, .xcc = 0},
                                 {.kind = VASIC_QUEUE_COMPUTE, .mqd = 0, .pipe = 0, .slot = kWide, .xcc = 0}};
  for (const auto& hqd : bad_slots) {
    EXPECT_EQ(hqd_load(hqd, 0), VASIC_EINVAL);
    EXPECT_EQ(hqd_unload(hqd, VASIC_UNLOAD_DRAIN), VASIC_EINVAL);
    EXPECT_EQ(hqd_query(hqd).status, VASIC_EINVAL);
    EXPECT_EQ(hqd_prepare(hqd), VASIC_EINVAL);
  }
  const vasic_hqd good{.kind = VASIC_QUEUE_COMPUTE, .mqd = 0, .pipe = 0, .slot = 0, .xcc = 0};
  const vasic_hqd misaligned{.kind = VASIC_QUEUE_COMPUTE, .mqd = 2, .pipe = 0, .slot = 0, .xcc = 0};
  EXPECT_EQ(hqd_load(misaligned, 0), VASIC_EINVAL) << "MQD alignment";
  EXPECT_EQ(hqd_load(good, VASIC_MAX_VMID), VASIC_EINVAL) << "VMID";
  EXPECT_EQ(hqd_unload(good, VASIC_UNLOAD_RESET + 1), VASIC_EINVAL) << "mode";
  EXPECT_TRUE(script.calls.empty());
}

TEST_F(StartedDeviceTest, errors_of_the_engines_become_statuses) {
  const std::pair<int, std::uint32_t> expected[] = {
      {EBUSY, VASIC_EBUSY},     {ENOENT, VASIC_EBUSY},  {EFAULT, VASIC_EFAULT},     {ETIME, VASIC_ETIME},
      {ETIMEDOUT, VASIC_ETIME}, {EINVAL, VASIC_EINVAL}, {EOPNOTSUPP, VASIC_ENOSYS}, {EIO, VASIC_EINVAL}};
  for (const auto& [code, answer] : expected) {
    script.next = base::Error(code, "scripted");
    EXPECT_EQ(status(VASIC_CMD_HQD_UNLOAD), answer) << code;
  }
}

TEST_F(StartedDeviceTest, register_writes_are_checked_for_width_and_index) {
  EXPECT_EQ(guest.write_register(VASIC_REG_VM_PASID(8), 5), VASIC_OK);
  EXPECT_EQ(guest.write_register(0, 5), VASIC_EINVAL);
  EXPECT_EQ(guest.write_register(kHuge, 5), VASIC_EINVAL);
  EXPECT_EQ(guest.write_register(VASIC_REG_VM_PASID(8), kHuge), VASIC_EINVAL);
}

TEST_F(StartedDeviceTest, reset_forgets_everything_but_vram) {
  guest.vram_word(0x100000) = 42;
  ASSERT_EQ(reset(VASIC_ABI_VERSION), VASIC_OK);
  EXPECT_TRUE(called("reset"));
  EXPECT_EQ(ring_unload(0), VASIC_ESTATE);
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

// The driver reads the counter by this command each time, because any other clock would drift away.
TEST_F(StartedDeviceTest, the_clock_that_a_command_reads_is_that_of_time_stamps) {
  script.step = [](EngineContext& context) {
    context.interrupts.raise({.kind = InterruptKind::kCpEndOfPipe, .ring_id = 4, .vmid = 8, .data = {7}});
    return false;
  };
  for (int round = 0; round < 3; ++round) {
    guest.clock().advance(123'457);
    const auto reply = guest.command(VASIC_CMD_NOP);
    EXPECT_EQ(reply.value[0], gpu_ticks(guest.clock().now_ns(), guest.vm().info(0).clock_khz));
    const auto entry = guest.next_interrupt();
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->timestamp, reply.value[0]);
  }
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
  EXPECT_EQ(guest.write_register(VASIC_REG_VM_PASID(8), 5), VASIC_ESTATE);
  EXPECT_EQ(reset(VASIC_ABI_VERSION), VASIC_OK);
  EXPECT_EQ(guest.host_words().state, static_cast<std::uint32_t>(VASIC_HOST_READY));
}

TEST_F(StartedDeviceTest, a_descriptor_without_an_address_goes_by_value) {
  constexpr vasic_hqd kSlot{.kind = VASIC_QUEUE_SDMA, .mqd = 0, .pipe = 1, .slot = 1, .xcc = 0};
  auto* const shared = reinterpret_cast<std::uint32_t*>(guest.region().bytes().data() + VASIC_OFF_MQD);
  shared[0] = 0x11;
  shared[127] = 0x22;
  EXPECT_EQ(hqd_prepare(kSlot, VASIC_HQD_BY_VALUE), VASIC_OK);
  EXPECT_EQ(script.mqd_words.at(127), 0x22u);
  script.mqd_words.clear();
  EXPECT_EQ(hqd_load(kSlot, 0, VASIC_HQD_BY_VALUE), VASIC_OK);
  EXPECT_EQ(script.mqd_words.at(0), 0x11u);
  EXPECT_EQ(script.mqd_words.at(127), 0x22u);
  script.mqd_words = {0x33, 0x44};
  EXPECT_EQ(hqd_unload(kSlot, VASIC_UNLOAD_SAVE, VASIC_HQD_BY_VALUE), VASIC_OK);
  EXPECT_EQ(shared[1], 0x44u);
  EXPECT_EQ(shared[127], 0x22u);
  EXPECT_EQ(hqd_load(kSlot, 0, VASIC_HQD_BY_VALUE + 1), VASIC_EINVAL);
}

TEST_F(StartedDeviceTest, requests_to_the_mes_reach_it) {
  EXPECT_EQ(mes_add_queue({.pasid = 0x8001,
                           .page_directory = 0x2001,
                           .process_context = 3,
                           .gang_context = 4,
                           .mqd = 0x5000,
                           .wptr_addr = 6,
                           .wptr_mc_addr = 7,
                           .doorbell = 0x800,
                           .kind = VASIC_QUEUE_SDMA,
                           .flags = VASIC_MES_EXCLUSIVE,
                           .quanta = 9ull << 32 | 10,
                           .priority = 4,
                           .gws = 64}),
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
  EXPECT_EQ(mes_remove_queue(0x800, 4), VASIC_OK);
  EXPECT_TRUE(called("mes_remove_queue 2048 of 4"));
  EXPECT_EQ(status(VASIC_CMD_MES_SUSPEND, {.mes_gang = {.gang_context = 0}}), VASIC_OK);
  EXPECT_TRUE(called("mes_suspend 0"));
  EXPECT_EQ(status(VASIC_CMD_MES_RESUME, {.mes_gang = {.gang_context = 4}}), VASIC_OK);
  EXPECT_TRUE(called("mes_resume 4"));
  script.next = base::Error(ETIME, "hangs");
  EXPECT_EQ(mes_reset_queue(0x800), VASIC_ETIME);
}

TEST_F(StartedDeviceTest, requests_to_the_mes_are_checked) {
  using Queue = vasic_cmd_mes_add_queue;
  const auto with = [&](auto Queue::*field, std::uint64_t value) {
    Queue queue{};
    queue.pasid = 1;
    queue.mqd = 0x5000;
    queue.doorbell = 0x800;
    queue.*field = value;
    return mes_add_queue(queue);
  };
  EXPECT_EQ(with(&Queue::pasid, 0x10000), VASIC_EINVAL);
  EXPECT_EQ(with(&Queue::doorbell, std::uint64_t{1} << 32), VASIC_EINVAL);
  EXPECT_EQ(with(&Queue::mqd, 0x5001), VASIC_EINVAL);
  for (const std::uint64_t kind : {std::uint64_t{3}, std::uint64_t{VASIC_QUEUE_HIQ}})
    EXPECT_EQ(with(&Queue::kind, kind), VASIC_EINVAL) << kind;
  EXPECT_EQ(with(&Queue::flags, 8), VASIC_EINVAL);
  EXPECT_EQ(with(&Queue::priority, 5), VASIC_EINVAL);
  for (const std::uint64_t gws : {std::uint64_t{65}, std::uint64_t{1} << 32 | 64, kHuge})
    EXPECT_EQ(with(&Queue::gws, gws), VASIC_EINVAL) << gws;
  for (const std::uint64_t doorbell :
       {std::uint64_t{1}, std::uint64_t{VASIC_DOORBELL_SIZE / 4}, std::uint64_t{1} << 32}) {
    EXPECT_EQ(mes_remove_queue(doorbell, 0), VASIC_EINVAL) << doorbell;
    EXPECT_EQ(mes_reset_queue(doorbell), VASIC_EINVAL) << doorbell;
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
  guest.write_register(VASIC_REG_VM_PD_LO(8), root & 0xffffffff);
  guest.write_register(VASIC_REG_VM_PD_HI(8), root >> 32);
  guest.write_register(VASIC_REG_VM_PASID(8), 0x8001);
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

}  // namespace vasicd::device_test
