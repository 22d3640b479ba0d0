// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The real amdgpu_plugin.so in stand-ins for an old and a new CRIU, on a machine that need not have a GPU.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "plugin/test_support.h"

namespace plugin {
namespace {

struct HostRun {
  int status = -1;
  std::string output;
};

HostRun load_in(const std::string& host, const std::string& environment = "") {
  const testing::TempDir images;
  const std::string command = environment + " " + host + " " + PLUGIN_PATH + " " + images.path() + " 2>&1";
  HostRun run;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) run.output += buffer.data();
  run.status = ::pclose(pipe);
  return run;
}

constexpr const char* kQuietDump = "init 0\ndump_ext_file -95\nhandle_device_vma -95\n";

TEST(Load, in_criu_3_17_it_has_ten_hooks_and_leaves_a_program_without_gpu_alone) {
  const HostRun run = load_in(HOST_10);
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.output, std::string("version 200\nmax_hooks 10\n") + kQuietDump +
                            "init 0\nrestore_ext_file -95\nretry 1\nupdate_vma_map -95\nresume -95\n");
}

class LoadInNewer : public ::testing::TestWithParam<std::pair<const char*, int>> {};

// CRIU 4.1 and later ask the plugin of an image that needs it to take its name out of the inventory. A dump of a
// program without GPU does not put it there.
TEST_P(LoadInNewer, it_has_the_hosts_hooks_and_takes_its_name_out_of_the_inventory) {
  const auto [host, max_hooks] = GetParam();
  const HostRun run = load_in(host);
  EXPECT_EQ(run.status, 0);
  const std::string retry = max_hooks >= 14 ? "retry 0\n" : "retry 1\n";  // CRIU reads the flag from 14 hooks on
  EXPECT_EQ(run.output, "version 200\nmax_hooks " + std::to_string(max_hooks) + "\n" + kQuietDump +
                            "take from inventory: amdgpu_plugin\ninit 0\nrestore_ext_file -95\n" + retry +
                            "update_vma_map -95\nresume -95\n");
}

INSTANTIATE_TEST_SUITE_P(Versions, LoadInNewer,
                         ::testing::Values(std::pair{HOST_12, 12}, std::pair{HOST_13, 13}, std::pair{HOST_15, 15}),
                         [](const auto& test) { return "with_" + std::to_string(test.param.second) + "_hooks"; });

TEST(Load, a_wrong_option_fails_no_dump_and_no_restore_of_a_program_without_gpu) {
  for (const std::string& host : {std::string(HOST_10), std::string(HOST_15)}) {
    const HostRun run = load_in(host, "AMDGPU_PLUGIN_COPY=magic");
    EXPECT_NE(run.output.find(kQuietDump), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("init 0\nrestore_ext_file -95"), std::string::npos) << run.output;
  }
}

}  // namespace
}  // namespace plugin
