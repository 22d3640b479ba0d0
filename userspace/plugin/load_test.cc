// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The real amdgpu_plugin.so in stand-ins for an old and a new CRIU, on a machine that need not have a GPU.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "plugin/image/writer.h"
#include "plugin/test_support.h"

namespace plugin {
namespace {

struct HostRun {
  int status = -1;
  std::string output;
};

// With `images`, a restore finds a file of the plugin.
enum class Images { kNone, kOneFile };

void write_images(const std::string& folder) {
  const base::UniqueFd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto writer = image::SessionWriter::create(dir.get(), 1);
  ASSERT_TRUE(writer.ok());
  image::Session session;
  session.kernel_release = "6.12";
  session.processes.push_back({77, "program"});
  ASSERT_TRUE((*writer)->add({1, image::InertFile{77, 0}}).ok());
  const base::Status prepared = (*writer)->prepare(session);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message();
  ASSERT_TRUE((*writer)->commit().ok());
}

HostRun load_in(const std::string& host, const std::string& environment = "", Images kind = Images::kNone) {
  const testing::TempDir images;
  if (kind == Images::kOneFile) write_images(images.path());
  const std::string command = environment + " " + host + " " + PLUGIN_PATH + " " + images.path() + " 2>&1";
  HostRun run;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) run.output += buffer.data();
  run.status = ::pclose(pipe);
  return run;
}

// Runs a shell command in namespaces of its own, as root there: `$host STORY` is the stand-in with the plugin.
HostRun run_in_namespaces(const std::string& host, const std::string& images, const std::string& command) {
  const std::string script =
      "host='env AMDGPU_PLUGIN_COPY=magic " + host + " " + PLUGIN_PATH + " " + images + "'; " + command;
  const testing::TempDir dir;
  testing::write_file(dir.path() + "/script", script);
  HostRun run;
  FILE* pipe = ::popen(("unshare -rUmpf sh " + dir.path() + "/script 2>&1").c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) run.output += buffer.data();
  run.status = ::pclose(pipe);
  return run;
}

// An image with the GPU state of the process that has this pid.
void save_process(const std::string& dir, std::uint32_t pid) {
  const base::UniqueFd images(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto writer = image::SessionWriter::create(images.get(), 5);
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  image::KfdFile kfd;
  kfd.pid = pid;
  kfd.num_objects = 1;
  kfd.priv_data.assign(16, std::byte{1});
  kfd.devices = {{7, 7}};
  image::Session session;
  session.kernel_release = "6.12";
  session.processes = {{pid, "program"}};
  topology::Node node;
  node.node_id = 1;
  node.gpu_id = 7;
  node.properties = {{"simd_count", 240}, {"gfx_target_version", 90006}, {"drm_render_minor", 128}};
  session.nodes = {node};
  ASSERT_TRUE((*writer)->add({4, kfd}).ok());
  const auto prepared = (*writer)->prepare(std::move(session));
  ASSERT_TRUE(prepared.ok()) << prepared.error().message();
  ASSERT_TRUE((*writer)->commit().ok());
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

// CRIU takes the failure for "map the old offset". The option that the plugin does not understand makes it fail.
TEST(Load, a_process_whose_mapping_fails_is_killed) {
  const testing::TempDir images;
  save_process(images.path(), 2);
  const HostRun run = run_in_namespaces(HOST_13, images.path(), "$host mapping; echo status $?");
  EXPECT_NE(run.output.find("AMDGPU_PLUGIN_COPY"), std::string::npos) << run.output;
  EXPECT_EQ(run.output.find("goes on"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("status 137"), std::string::npos) << run.output;
}

// The kernel lets no process of a pid namespace kill its init, which a container's main process is.
TEST(Load, an_init_of_a_pid_namespace_whose_mapping_fails_ends) {
  const testing::TempDir images;
  save_process(images.path(), 1);
  const HostRun run = run_in_namespaces(HOST_13, images.path(), "exec $host mapping");
  EXPECT_NE(run.output.find("AMDGPU_PLUGIN_COPY"), std::string::npos) << run.output;
  EXPECT_EQ(run.output.find("goes on"), std::string::npos) << run.output;
  EXPECT_TRUE(WIFEXITED(run.status) && WEXITSTATUS(run.status) == EXIT_FAILURE) << run.status;
}

// A dump that fails although CRIU takes it for a success, on a machine where /dev/null is /dev/kfd.
HostRun fail_dump(const std::string& host, const std::string& story) {
  const testing::TempDir images;
  const testing::FakeMachine machine;
  return run_in_namespaces(host, images.path(), "mount --bind " + machine.root() + "/sys /sys && exec $host " + story);
}

std::string lines_from(const std::string& text, const std::string& first) {
  const auto begin = text.find(first);
  return begin == std::string::npos ? text : text.substr(begin);
}

constexpr const char* kEnd =
    "log 1 Error (amdgpu_plugin): there is no image of the GPUs: CRIU ends here, and the programs run on\n";

TEST(Load, what_criu_did_to_the_programs_is_undone_before_it_is_ended) {
  for (const char* host : {HOST_10, HOST_12, HOST_13}) {
    const HostRun run = fail_dump(host, "failed-dump");
    EXPECT_NE(run.output.find("dump_ext_file -22\n"), std::string::npos) << run.output;
    EXPECT_EQ(lines_from(run.output, "unsuspend_lsm"),
              std::string("unsuspend_lsm\nnetwork_unlock\ndelete_link_remaps\nclean_cr_time_mounts\n"
                          "pstree_switch_state root_item 1\n") +
                  kEnd);
    EXPECT_TRUE(WIFEXITED(run.status) && WEXITSTATUS(run.status) == EXIT_FAILURE) << run.status;
  }
}

// CRIU does so itself before it calls the plugin, and a network that is unlocked twice is an error.
TEST(Load, with_leave_running_the_programs_are_only_let_go) {
  const HostRun run = fail_dump(HOST_13, "left-running");
  EXPECT_EQ(run.output.find("network_unlock"), std::string::npos) << run.output;
  EXPECT_EQ(lines_from(run.output, "pstree"), std::string("pstree_switch_state root_item 1\n") + kEnd);
}

TEST(Load, what_a_newer_criu_has_no_function_for_is_said) {
  const HostRun run = fail_dump(HOST_15, "failed-dump");
  for (const char* words : {"unsuspend_lsm", "network_unlock", "delete_link_remaps", "clean_cr_time_mounts",
                            "pstree_switch_state", "nftables", "link_remap."})
    EXPECT_NE(run.output.find(words), std::string::npos) << words << "\n" << run.output;
  EXPECT_NE(run.output.find(kEnd), std::string::npos) << run.output;
  EXPECT_TRUE(WIFEXITED(run.status) && WEXITSTATUS(run.status) == EXIT_FAILURE) << run.status;
}

// The host is the CRIU that has options of plugins. A restore on this machine fails in any case, at the wrong option
// first.
TEST(Load, crius_own_option_comes_before_the_environment) {
  const std::string wrong = "AMDGPU_PLUGIN_COPY=magic", right = "HOST_OPTION=--amdgpu.copy=cpu";
  const HostRun by_environment = load_in(HOST_15, wrong, Images::kOneFile);
  EXPECT_NE(by_environment.output.find("AMDGPU_PLUGIN_COPY=magic: expected auto"), std::string::npos)
      << by_environment.output;
  const HostRun by_option = load_in(HOST_15, wrong + " " + right, Images::kOneFile);
  EXPECT_EQ(by_option.output.find("magic"), std::string::npos) << by_option.output;
  const HostRun wrong_option =
      load_in(HOST_15, "AMDGPU_PLUGIN_COPY=cpu HOST_OPTION=--amdgpu.copy=magic", Images::kOneFile);
  EXPECT_NE(wrong_option.output.find("--plugin-option amdgpu.copy=magic: expected auto"), std::string::npos)
      << wrong_option.output;
}

}  // namespace
}  // namespace plugin
