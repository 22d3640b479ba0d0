// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Runs each program on each GPU, undisturbed and preempted, and copies memory between GPUs.
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hiptest/device_memory.h"
#include "hiptest/kernels.h"
#include "hiptest/numbers.h"
#include "hiptest/preemptor.h"
#include "hiptest/programs.h"

namespace hiptest {
namespace {

constexpr unsigned kPreemptions = 100;

int gpus() {
  int count = 0;
  return hipGetDeviceCount(&count) == hipSuccess ? count : 0;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

class HipProgram : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_GT(gpus(), 0); }
  void TearDown() override { static_cast<void>(hipSetDevice(0)); }
};
INSTANTIATE_TEST_SUITE_P(, HipProgram, testing::ValuesIn(program_names()), [](const auto& p) { return p.param; });

TEST_P(HipProgram, agrees_with_its_reference_on_every_gpu) {
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    ASSERT_EQ(hipSetDevice(gpu), hipSuccess);
    const auto program = make_program(GetParam());
    auto prepared = program->prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
    auto result = program->run();
    ASSERT_TRUE(result.ok()) << result.error().message();
    const std::vector<double> expected = program->reference();
    ASSERT_EQ(result->size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double room = program->tolerance() * std::max(1.0, std::abs(expected[i]));
      ASSERT_LE(std::abs((*result)[i] - expected[i]), room) << "gpu " << gpu << " value " << i << ": " << (*result)[i];
    }
  }
}

TEST_P(HipProgram, gives_the_same_bits_when_it_is_preempted) {
  const auto program = make_program(GetParam());
  ASSERT_TRUE(program->prepare().ok());
  auto undisturbed = program->run();
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.error().message();
  auto preemptor = Preemptor::begin(testing::UnitTest::GetInstance()->random_seed() + 1);
  ASSERT_TRUE(preemptor.ok()) << preemptor.error().message();
  unsigned runs = 0;
  while (preemptor->count() < kPreemptions) {
    auto result = program->run();
    ASSERT_TRUE(result.ok()) << result.error().message();
    ASSERT_TRUE(same_bits(*result, *undisturbed)) << "run " << runs << ", preemption " << preemptor->count();
    ++runs;
  }
  const auto ended = preemptor->end();
  EXPECT_TRUE(ended.ok()) << ended.error().message();
  RecordProperty("runs", static_cast<int>(runs));
}

TEST(HipTwoGpus, a_result_goes_from_one_to_the_other) {
  if (gpus() < 2) GTEST_SKIP() << "this machine has one GPU";
  constexpr std::size_t kCount = 10'000;
  const std::vector<float> a = floats(kCount, 11);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  auto first = DeviceMemory<float>::copy_of(a);
  ASSERT_TRUE(first.ok());
  vector_add(first->data(), first->data(), first->data(), first->count());
  ASSERT_TRUE(finished().ok());
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  auto second = DeviceMemory<float>::allocate(kCount);
  ASSERT_TRUE(second.ok());
  ASSERT_EQ(hipMemcpyPeer(second->data(), 1, first->data(), 0, kCount * sizeof(float)), hipSuccess);
  vector_add(second->data(), second->data(), second->data(), second->count());
  ASSERT_TRUE(finished().ok());
  auto result = second->load();
  ASSERT_TRUE(result.ok());
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ((*result)[i], 4 * a[i]) << i;
  static_cast<void>(hipSetDevice(0));
}

}  // namespace
}  // namespace hiptest
