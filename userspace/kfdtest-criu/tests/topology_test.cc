// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The GPUs are what the machine was started with: the environment
// variable KFDTEST_CHIP, when it is set, names the chip of all of them ("gfx906").
#include <cstdlib>
#include <set>
#include <string>

#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

// "gfx90a" is 9.0.10: a decimal major, then minor and stepping, a hexadecimal digit each. KFD writes 10000, 100, 1.
std::uint64_t target_version_of(const std::string& chip) {
  const auto digit = [&](std::size_t from_end) {
    return std::stoul(chip.substr(chip.size() - from_end, 1), nullptr, 16);
  };
  return std::stoul(chip.substr(3, chip.size() - 5)) * 10000 + digit(2) * 100 + digit(1);
}

class TopologyTest : public GpuTest {};

TEST_F(TopologyTest, every_gpu_is_the_chip_that_was_asked_for) {
  const char* const chip = std::getenv("KFDTEST_CHIP");
  ASSERT_OK_AND_ASSIGN(const std::vector<Gpu> nodes, gpus_in_sysfs());
  for (const Gpu& node : nodes) {
    if (chip != nullptr) {
      EXPECT_EQ(node.gfx_target_version, target_version_of(chip)) << chip;
    }
    EXPECT_GT(node.gfx_target_version, 0U);
    EXPECT_GT(node.sdma_engines + node.sdma_xgmi_engines, 0U);
    EXPECT_GT(node.simd_count, 0U);
  }
}

TEST_F(TopologyTest, gpu_ids_and_locations_are_unique) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Gpu> nodes, gpus_in_sysfs());
  std::set<std::uint64_t> ids;
  std::set<std::uint64_t> locations;
  for (const Gpu& node : nodes) {
    EXPECT_NE(node.gpu_id, 0U);
    EXPECT_TRUE(ids.insert(node.gpu_id).second) << "gpu_id " << node.gpu_id << " twice";
    EXPECT_TRUE(locations.insert(node.location_id).second);
  }
}

TEST_F(TopologyTest, every_gpu_has_vram) {
  for (const Gpu& each : test_gpus()) EXPECT_GT(each.vram_size, 0U);
}

}  // namespace
}  // namespace kfdtest
