// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/options.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace plugin {
namespace {

base::Result<Options> read(const std::map<std::string, std::string>& environment) {
  return read_options([&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Options, have_defaults_in_an_empty_environment) {
  const auto options = read({});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->check_firmware);
  EXPECT_EQ(options->copy, CopyMethod::kAuto);
  EXPECT_EQ(options->fence_timeout, std::chrono::seconds(10));
}

TEST(Options, are_read_from_the_environment) {
  const auto options = read({{"AMDGPU_PLUGIN_GPU_MAP", "0x10:32,5:6"},
                             {"AMDGPU_PLUGIN_COPY", "cpu"},
                             {"AMDGPU_PLUGIN_CHECK_FIRMWARE", "0"},
                             {"AMDGPU_PLUGIN_FENCE_TIMEOUT", "60"}});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->gpu_map, (topology::GpuMap{{16, 32}, {5, 6}}));
  EXPECT_EQ(options->copy, CopyMethod::kCpu);
  EXPECT_FALSE(options->check_firmware);
  EXPECT_EQ(options->fence_timeout, std::chrono::seconds(60));
}

class BadOption : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadOption, is_an_error_that_names_variable_and_value) {
  const auto [name, value] = GetParam();
  const auto options = read({{name, value}});
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.error().message().find(std::string(name) + "=" + value), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadOption,
    ::testing::Values(std::pair{"AMDGPU_PLUGIN_GPU_MAP", "1"}, std::pair{"AMDGPU_PLUGIN_GPU_MAP", "1:2,"},
                      std::pair{"AMDGPU_PLUGIN_GPU_MAP", "1:2,1:3"}, std::pair{"AMDGPU_PLUGIN_GPU_MAP", "1:2,3:2"},
                      std::pair{"AMDGPU_PLUGIN_GPU_MAP", "0:2"}, std::pair{"AMDGPU_PLUGIN_GPU_MAP", "1:99999999999"},
                      std::pair{"AMDGPU_PLUGIN_COPY", "gpu"}, std::pair{"AMDGPU_PLUGIN_CHECK_FIRMWARE", "yes"},
                      std::pair{"AMDGPU_PLUGIN_FENCE_TIMEOUT", "0"}, std::pair{"AMDGPU_PLUGIN_FENCE_TIMEOUT", "-1"}));

}  // namespace
}  // namespace plugin
