// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// AMDGPU_INFO: every query that a client without display and video asks, and what the driver says to those it does not
// answer.
#include <sys/mman.h>
#include <xf86drm.h>

#include <array>
#include <bit>
#include <cerrno>
#include <thread>
#include <vector>

#include "drmtest/env/gpu_test.h"
#include "drmtest/harness/buffer.h"
#include "drmtest/harness/submit.h"

namespace drmtest {
namespace {

class InfoTest : public GpuTest {
 protected:
  // The raw ioctl: 0 or a negative errno.
  int query(std::uint32_t id, void* out, std::uint32_t size) const {
    drm_amdgpu_info request{};
    request.return_pointer = reinterpret_cast<std::uintptr_t>(out);
    request.return_size = size;
    request.query = id;
    return drmCommandWrite(device().fd(), DRM_AMDGPU_INFO, &request, sizeof(request));
  }
  template <typename T>
  T number(std::uint32_t id) const {
    T value{};
    EXPECT_EQ(amdgpu_query_info(device().handle(), id, sizeof(value), &value), 0) << "query " << id;
    return value;
  }
};

struct Query {
  const char* name;
  std::uint32_t id;
  std::uint32_t size;
};

constexpr std::array kQueries = {
    Query{"ACCEL_WORKING", AMDGPU_INFO_ACCEL_WORKING, 4},
    Query{"TIMESTAMP", AMDGPU_INFO_TIMESTAMP, 8},
    Query{"NUM_BYTES_MOVED", AMDGPU_INFO_NUM_BYTES_MOVED, 8},
    Query{"VRAM_USAGE", AMDGPU_INFO_VRAM_USAGE, 8},
    Query{"GTT_USAGE", AMDGPU_INFO_GTT_USAGE, 8},
    Query{"VIS_VRAM_USAGE", AMDGPU_INFO_VIS_VRAM_USAGE, 8},
    Query{"GDS_CONFIG", AMDGPU_INFO_GDS_CONFIG, sizeof(drm_amdgpu_info_gds)},
    Query{"VRAM_GTT", AMDGPU_INFO_VRAM_GTT, sizeof(drm_amdgpu_info_vram_gtt)},
    Query{"DEV_INFO", AMDGPU_INFO_DEV_INFO, sizeof(drm_amdgpu_info_device)},
    Query{"NUM_EVICTIONS", AMDGPU_INFO_NUM_EVICTIONS, 8},
    Query{"MEMORY", AMDGPU_INFO_MEMORY, sizeof(drm_amdgpu_memory_info)},
    Query{"VCE_CLOCK_TABLE", AMDGPU_INFO_VCE_CLOCK_TABLE, sizeof(drm_amdgpu_info_vce_clock_table)},
    Query{"NUM_VRAM_CPU_PAGE_FAULTS", AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS, 8},
    Query{"VRAM_LOST_COUNTER", AMDGPU_INFO_VRAM_LOST_COUNTER, 4},
};

TEST_P(InfoTest, every_plain_query_is_answered_and_writes_no_more_than_asked_for) {
  constexpr std::uint8_t kGuard = 0xa5;
  constexpr std::size_t kRoom = 8;
  for (const Query& asked : kQueries) {
    std::vector<std::uint8_t> out(asked.size + kRoom, kGuard);
    EXPECT_EQ(query(asked.id, out.data(), asked.size), 0) << asked.name;
    EXPECT_EQ(query(asked.id, out.data(), 1), 0) << asked.name << " into one byte";
    for (std::size_t i = asked.size; i < out.size(); ++i) EXPECT_EQ(out[i], kGuard) << asked.name;
  }
}

TEST_P(InfoTest, a_query_without_room_or_into_nowhere_or_unknown_is_refused) {
  constexpr std::uint32_t kUnknown = 0x7fff;
  std::uint64_t value = 0;
  EXPECT_EQ(query(AMDGPU_INFO_DEV_INFO, &value, 0), -EINVAL);
  EXPECT_EQ(query(AMDGPU_INFO_DEV_INFO, nullptr, sizeof(value)), -EINVAL);
  EXPECT_EQ(query(kUnknown, &value, sizeof(value)), -EINVAL);
  void* hole = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  for (const Query& asked : kQueries) EXPECT_EQ(query(asked.id, hole, asked.size), -EFAULT) << asked.name;
  munmap(hole, kPage);
}

TEST_P(InfoTest, acceleration_works_and_no_vram_was_lost) {
  EXPECT_EQ(number<std::uint32_t>(AMDGPU_INFO_ACCEL_WORKING), 1U);
  EXPECT_EQ(number<std::uint32_t>(AMDGPU_INFO_VRAM_LOST_COUNTER), 0U);
}

TEST_P(InfoTest, the_device_is_described_without_contradictions) {
  const drm_amdgpu_info_device& info = device().info();
  EXPECT_NE(info.device_id, 0U);
  EXPECT_NE(info.family, static_cast<std::uint32_t>(AMDGPU_FAMILY_UNKNOWN));
  EXPECT_GT(info.num_shader_engines, 0U);
  EXPECT_GT(info.num_shader_arrays_per_engine, 0U);
  EXPECT_GT(info.gpu_counter_freq, 0U);
  EXPECT_TRUE(info.wave_front_size == 64 || info.wave_front_size == 32) << info.wave_front_size;
  EXPECT_EQ(info.gart_page_size, kPage);
  EXPECT_EQ(info.virtual_address_alignment, kPage);
  EXPECT_LT(info.virtual_address_offset, info.virtual_address_max);
  unsigned active = 0;
  for (const auto& engine : info.cu_bitmap)
    for (const std::uint32_t array : engine) active += static_cast<unsigned>(std::popcount(array));
  EXPECT_GT(active, 0U);
  EXPECT_EQ(info.cu_active_number % active, 0U) << "the bitmap is that of one of equal XCCs";
}

TEST_P(InfoTest, libdrm_knows_the_gpu_it_initialised_for) {
  amdgpu_gpu_info gpu{};
  ASSERT_OK(check(amdgpu_query_gpu_info(device().handle(), &gpu), "amdgpu_query_gpu_info"));
  EXPECT_EQ(gpu.asic_id, device().info().device_id);
  EXPECT_EQ(gpu.family_id, device().info().family);
  EXPECT_EQ(gpu.cu_active_number, device().info().cu_active_number);
  EXPECT_EQ(gpu.gpu_counter_freq, device().info().gpu_counter_freq);
}

TEST_P(InfoTest, heaps_and_both_ways_to_ask_for_them_agree) {
  ASSERT_OK_AND_ASSIGN(const drm_amdgpu_memory_info memory, device().memory());
  const auto sizes = number<drm_amdgpu_info_vram_gtt>(AMDGPU_INFO_VRAM_GTT);
  EXPECT_GE(memory.vram.total_heap_size, memory.vram.usable_heap_size);
  EXPECT_EQ(memory.vram.usable_heap_size, sizes.vram_size);
  EXPECT_EQ(memory.cpu_accessible_vram.usable_heap_size, sizes.vram_cpu_accessible_size);
  EXPECT_LE(memory.cpu_accessible_vram.total_heap_size, memory.vram.total_heap_size);
  EXPECT_EQ(memory.gtt.usable_heap_size, sizes.gtt_size);
  amdgpu_heap_info heap{};
  ASSERT_OK(check(amdgpu_query_heap_info(device().handle(), AMDGPU_GEM_DOMAIN_VRAM, 0, &heap), "heap"));
  EXPECT_EQ(heap.heap_size, memory.vram.usable_heap_size);
}

TEST_P(InfoTest, allocating_is_seen_in_the_usage_of_its_heap_and_freeing_too) {
  const auto usage = [this](std::uint32_t heap) {
    return number<std::uint64_t>(heap == AMDGPU_GEM_DOMAIN_VRAM ? AMDGPU_INFO_VRAM_USAGE : AMDGPU_INFO_GTT_USAGE);
  };
  constexpr std::uint64_t kSize = 8 * kMiB;
  for (const BoSpec& spec : {vram(kSize), gtt(kSize)}) {
    const std::uint64_t before = usage(spec.heap);
    {
      ASSERT_OK_AND_ASSIGN(Bo bo, Bo::create(device(), spec));
      ASSERT_OK(bo.words());
      // Memory of an earlier test may have been freed meanwhile.
      EXPECT_GE(usage(spec.heap), before + kSize / 2) << "heap " << spec.heap;
    }
    // The driver frees it when the engine that clears it is done.
    const std::int64_t end = from_now(kDeadline);
    while (usage(spec.heap) >= before + kSize / 2 && from_now(Nanoseconds(0)) < end) std::this_thread::yield();
    EXPECT_LT(usage(spec.heap), before + kSize / 2) << "heap " << spec.heap;
  }
}

TEST_P(InfoTest, the_gpu_clock_counts_at_the_rate_that_is_told) {
  // A reading of the GPU's clock, and readings of CLOCK_MONOTONIC before and after it: a loaded machine may pause in
  // between.
  struct Reading {
    std::int64_t before_ns;
    std::uint64_t ticks;
    std::int64_t after_ns;
  };
  const auto read = [this] {
    const std::int64_t before_ns = from_now(Nanoseconds(0));
    const auto ticks = number<std::uint64_t>(AMDGPU_INFO_TIMESTAMP);
    return Reading{before_ns, ticks, from_now(Nanoseconds(0))};
  };
  const Reading begin = read();
  while (from_now(Nanoseconds(0)) - begin.after_ns < kQuietPeriod.count()) std::this_thread::yield();
  const Reading end = read();
  const auto ticks_in = [this](std::int64_t ns) {
    return static_cast<double>(ns) * device().info().gpu_counter_freq / 1e6;  // kHz
  };
  const auto ticks = static_cast<double>(end.ticks - begin.ticks);
  EXPECT_GT(ticks, 0.8 * ticks_in(end.before_ns - begin.after_ns));
  EXPECT_LT(ticks, 1.2 * ticks_in(end.after_ns - begin.before_ns));
}

TEST_P(InfoTest, the_sdma_and_compute_engines_have_rings) {
  for (const unsigned ip : {AMDGPU_HW_IP_DMA, AMDGPU_HW_IP_COMPUTE}) {
    drm_amdgpu_info_hw_ip info{};
    ASSERT_OK(check(amdgpu_query_hw_ip_info(device().handle(), ip, 0, &info), "HW_IP_INFO"));
    EXPECT_NE(info.available_rings, 0U) << "ip " << ip;
    EXPECT_GT(info.hw_ip_version_major, 0U) << "ip " << ip;
    EXPECT_GT(info.ib_start_alignment, 0U) << "ip " << ip;
    std::uint32_t count = 0;
    ASSERT_OK(check(amdgpu_query_hw_ip_count(device().handle(), ip, &count), "HW_IP_COUNT"));
    EXPECT_GT(count, 0U) << "ip " << ip;
  }
}

TEST_P(InfoTest, engines_that_a_compute_gpu_does_not_have_have_no_rings) {
  for (const unsigned ip :
       {AMDGPU_HW_IP_UVD, AMDGPU_HW_IP_VCE, AMDGPU_HW_IP_VCN_DEC, AMDGPU_HW_IP_VCN_ENC, AMDGPU_HW_IP_VCN_JPEG}) {
    EXPECT_EQ(device().rings(ip), 0U) << "ip " << ip;
    std::uint32_t count = 0;
    EXPECT_EQ(amdgpu_query_hw_ip_count(device().handle(), ip, &count), -EINVAL) << "ip " << ip;
  }
  drm_amdgpu_info_hw_ip info{};
  constexpr unsigned kNoIp = 0xff;
  EXPECT_EQ(amdgpu_query_hw_ip_info(device().handle(), kNoIp, 0, &info), -EINVAL);
  EXPECT_EQ(amdgpu_query_hw_ip_info(device().handle(), AMDGPU_HW_IP_DMA, 0xff, &info), -EINVAL);
}

TEST_P(InfoTest, firmware_versions_are_told) {
  for (const unsigned firmware : {AMDGPU_INFO_FW_GFX_MEC, AMDGPU_INFO_FW_SDMA}) {
    std::uint32_t version = 0;
    std::uint32_t feature = 0;
    EXPECT_EQ(amdgpu_query_firmware_version(device().handle(), firmware, 0, 0, &version, &feature), 0) << firmware;
    EXPECT_GT(version, 0U) << "firmware " << firmware;
  }
  std::uint32_t version = 0;
  std::uint32_t feature = 0;
  EXPECT_EQ(amdgpu_query_firmware_version(device().handle(), AMDGPU_INFO_FW_SDMA, 1, 0, &version, &feature), -EINVAL);
}

TEST_P(InfoTest, only_registers_of_the_list_are_readable) {
  constexpr std::uint32_t kAllInstances = 0xffffffff;
  constexpr unsigned kGbAddrConfig = 0x263e;  // mmGB_ADDR_CONFIG, gca/gfx_7_2_d.h; libdrm reads it on every GPU
  constexpr unsigned kUnlisted = 0x3fff0;
  constexpr unsigned kTooMany = 129;
  std::vector<std::uint32_t> values(kTooMany);
  amdgpu_device_handle handle = device().handle();
  EXPECT_EQ(amdgpu_read_mm_registers(handle, kGbAddrConfig, 1, kAllInstances, 0, values.data()), 0);
  EXPECT_NE(amdgpu_read_mm_registers(handle, kUnlisted, 1, kAllInstances, 0, values.data()), 0);
  EXPECT_EQ(amdgpu_read_mm_registers(handle, kGbAddrConfig, kTooMany, kAllInstances, 0, values.data()), -EINVAL);
}

TEST_P(InfoTest, what_is_not_there_is_an_error_and_harms_nothing) {
  std::uint32_t value = 0;
  drm_amdgpu_info_video_caps caps{};
  amdgpu_device_handle handle = device().handle();
  for (unsigned sensor = AMDGPU_INFO_SENSOR_GFX_SCLK; sensor <= AMDGPU_INFO_SENSOR_STABLE_PSTATE_GFX_MCLK; ++sensor)
    EXPECT_NE(amdgpu_query_sensor_info(handle, sensor, sizeof(value), &value), 0) << "sensor " << sensor;
  EXPECT_NE(amdgpu_query_video_caps_info(handle, AMDGPU_INFO_VIDEO_CAPS_DECODE, sizeof(caps), &caps), 0);
  std::int32_t crtc = 0;
  EXPECT_EQ(amdgpu_query_crtc_from_id(handle, 1, &crtc), -EINVAL);
  EXPECT_EQ(number<std::uint32_t>(AMDGPU_INFO_ACCEL_WORKING), 1U);
}

EVERY_GPU(InfoTest);

}  // namespace
}  // namespace drmtest
