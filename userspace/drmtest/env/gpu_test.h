// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Fixtures: GpuTest runs on every GPU, RingTest on every kind of ring of every GPU. A suite is made of a fixture by
// EVERY_GPU or EVERY_RING.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>

#include "base/assert_ok.h"
#include "drmtest/env/device.h"

namespace drmtest {

class GpuTest : public testing::TestWithParam<Node> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(Device device, Device::open(GetParam().path));
    device_.emplace(std::move(device));
  }
  [[nodiscard]] const Device& device() const { return *device_; }

 private:
  std::optional<Device> device_;
};

// The first ring of an AMDGPU_HW_IP_* of a GPU.
struct Ring {
  Node node;
  unsigned ip = 0;
};

class RingTest : public testing::TestWithParam<Ring> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(Device device, Device::open(GetParam().node.path));
    device_.emplace(std::move(device));
  }
  [[nodiscard]] const Device& device() const { return *device_; }
  [[nodiscard]] static unsigned ip() { return GetParam().ip; }

 private:
  std::optional<Device> device_;
};

inline void PrintTo(const Node& node, std::ostream* out) { *out << node.path; }
inline void PrintTo(const Ring& ring, std::ostream* out) { *out << ring.node.path << " ip " << ring.ip; }

// The GPUs when a suite first asked: every suite does so before main().
[[nodiscard]] const std::vector<Node>& all_gpus();
[[nodiscard]] const std::vector<Ring>& all_rings();
[[nodiscard]] std::string ring_name(const Ring& ring);

}  // namespace drmtest

#define EVERY_GPU(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(Gpu, suite, testing::ValuesIn(drmtest::all_gpus()), \
                           [](const auto& test) { return test.param.name; })
#define EVERY_RING(suite)                                                        \
  INSTANTIATE_TEST_SUITE_P(Ring, suite, testing::ValuesIn(drmtest::all_rings()), \
                           [](const auto& test) { return drmtest::ring_name(test.param); })
