// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/options.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plugin/criu_options.h"

namespace plugin {
namespace {

using Environment = std::map<std::string, std::string>;

base::Result<Options> read(const Environment& environment, std::vector<std::string> arguments = {},
                           std::string file = "") {
  return read_options({std::move(arguments), std::move(file), [&environment](const char* name) -> const char* {
                         const auto found = environment.find(name);
                         return found == environment.end() ? nullptr : found->second.c_str();
                       }});
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

TEST(Options, are_taken_from_crius_own_options_then_the_file_then_the_environment) {
  const Environment environment = {
      {"AMDGPU_PLUGIN_COPY", "cpu"}, {"AMDGPU_PLUGIN_FENCE_TIMEOUT", "60"}, {"AMDGPU_PLUGIN_CHECK_DEVICE_ID", "0"}};
  const auto options = read(environment, {"--amdgpu.gpu-map=1:2", "--cuda.copy=fast", "--amdgpu_plugin.copy=auto"},
                            "# comment\n\n copy = sdma \nfence-timeout=30\n");
  ASSERT_TRUE(options.ok()) << options.error().message();
  EXPECT_EQ(options->copy, CopyMethod::kAuto);
  EXPECT_EQ(options->fence_timeout, std::chrono::seconds(30));
  EXPECT_FALSE(options->check_device_id);
  EXPECT_EQ(options->gpu_map, (topology::GpuMap{{1, 2}}));
}

TEST(Options, of_several_settings_in_one_place_the_last_counts) {
  EXPECT_EQ(read({}, {"--amdgpu.copy=cpu", "--amdgpu.copy=sdma"})->copy, CopyMethod::kSdma);
  EXPECT_EQ(read({}, {}, "copy=cpu\ncopy=sdma\n")->copy, CopyMethod::kSdma);
}

TEST(Options, say_whether_contents_are_compressed) {
  EXPECT_EQ(read({}, {})->compress, image::Packing::kAuto);
  EXPECT_EQ(read({}, {"--amdgpu.compress=never"})->compress, image::Packing::kNever);
  EXPECT_EQ(read({{"AMDGPU_PLUGIN_COMPRESS", "always"}}, {})->compress, image::Packing::kAlways);
  EXPECT_FALSE(read({}, {}, "compress=lz4").ok());
}

TEST(Options, that_do_not_exist_are_errors_that_say_where_they_stand) {
  const auto argument = read({}, {"--amdgpu.cpoy=cpu"});
  ASSERT_FALSE(argument.ok());
  EXPECT_NE(argument.error().message().find("--plugin-option amdgpu.cpoy=cpu"), std::string::npos)
      << argument.error().message();
  const auto file = read({}, {}, "cpoy=cpu");
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message().find("/etc/criu/amdgpu-plugin.conf: cpoy=cpu"), std::string::npos);
  EXPECT_FALSE(read({}, {"--amdgpu.copy"}).ok());
  EXPECT_FALSE(read({}, {}, "copy").ok());
  EXPECT_FALSE(read({}, {}, "copy=magic").ok());
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

// ---- options of CRIU itself ----

constexpr const char* kUnreadable = "/unreadable/.criu/default.conf";

base::Result<std::vector<std::string>> criu_arguments(std::vector<std::string> arguments,
                                                      const std::map<std::string, std::string>& configuration,
                                                      const Environment& environment = {}) {
  return criu_options::all(
      std::move(arguments),
      [&](const char* name) -> const char* {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      [&](const std::string& path) -> base::Result<std::string> {
        const auto found = configuration.find(path);
        if (path == kUnreadable) return base::Error(EACCES, path);
        return found == configuration.end() ? std::string() : found->second;
      });
}

bool is_lazy(const base::Result<std::vector<std::string>>& arguments) {
  return criu_options::contains(*arguments, "--lazy-pages", "--la");
}

TEST(CriuOptions, are_recognised_when_abbreviated) {
  for (const char* argument : {"--lazy-pages", "--lazy", "--la"})
    EXPECT_TRUE(is_lazy(criu_arguments({"dump", argument}, {}))) << argument;
  for (const char* argument : {"--l", "--lazy-pagess", "lazy-pages", "--", "--leave-running"})
    EXPECT_FALSE(is_lazy(criu_arguments({"dump", argument}, {}))) << argument;
}

TEST(CriuOptions, tell_whether_there_may_be_an_earlier_dump) {
  const std::vector<std::vector<std::string>> may = {{"dump", "--prev-images-dir", "../1"},
                                                     {"dump", "--prev-images-dir=../1"},
                                                     {"--prev=../1", "dump"},
                                                     {"swrk", "3"},
                                                     {"service", "--address", "criu.sock"}};
  for (const auto& arguments : may) EXPECT_TRUE(criu_options::may_have_parent(arguments)) << arguments[1];
  const std::vector<std::vector<std::string>> may_not = {
      {"dump", "-D", "1"}, {"dump", "--pre-dump-mode=read"}, {"dump", "--prev-images-dirs"}, {}};
  for (const auto& arguments : may_not) EXPECT_FALSE(criu_options::may_have_parent(arguments));
}

TEST(CriuOptions, of_a_file_that_cannot_be_read_are_none) {
  const auto arguments = criu_arguments({"dump"}, {}, {{"HOME", "/unreadable"}});
  ASSERT_TRUE(arguments.ok()) << arguments.error().message();
  EXPECT_EQ(*arguments, std::vector<std::string>{"dump"});
}

TEST(CriuOptions, are_found_in_every_configuration_file_that_criu_reads) {
  const std::string text = "# a comment\n\n  log-file \"x y\"\n\tlazy-pages # now\n";
  EXPECT_TRUE(is_lazy(criu_arguments({"dump"}, {{"/etc/criu/default.conf", text}})));
  EXPECT_TRUE(is_lazy(criu_arguments({"dump"}, {{"/root/.criu/default.conf", text}}, {{"HOME", "/root"}})));
  EXPECT_TRUE(is_lazy(criu_arguments({"dump"}, {{"/a.conf", text}}, {{"CRIU_CONFIG_FILE", "/a.conf"}})));
  EXPECT_TRUE(is_lazy(criu_arguments({"dump", "--config", "/b.conf"}, {{"/b.conf", text}})));
  EXPECT_TRUE(is_lazy(criu_arguments({"dump", "--config=/b.conf"}, {{"/b.conf", text}})));
  EXPECT_FALSE(is_lazy(criu_arguments({"dump", "--config", "/b.conf"}, {{"/etc/criu/default.conf", text}})));
  EXPECT_FALSE(is_lazy(criu_arguments({"dump", "--config=/b.conf", "--config", "/c.conf"}, {{"/b.conf", text}})));
  EXPECT_FALSE(is_lazy(criu_arguments({"dump", "--no-default-config"}, {{"/etc/criu/default.conf", text}})));
  EXPECT_FALSE(is_lazy(criu_arguments({"dump"}, {{"/etc/criu/default.conf", "#lazy-pages\nlog-file lazy-pages\n"}})));
}

}  // namespace
}  // namespace plugin
