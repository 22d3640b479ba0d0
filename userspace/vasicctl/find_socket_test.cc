// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Folders as scripts/vm.sh leaves them.
#include "vasicctl/find_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>

#include "base/unique_fd.h"

namespace vasicctl {
namespace {

namespace fs = std::filesystem;

struct FindSocket : testing::Test {
  std::string dir = testing::TempDir() + "/vasicctl-XXXXXX";
  Options options;

  void SetUp() override { ASSERT_NE(::mkdtemp(dir.data()), nullptr); }
  void TearDown() override { fs::remove_all(dir); }
  void add_vm(const std::string& name) {
    fs::create_directories(vm_dir() / name);
    const std::string path = dir + "/" + name + ".sock";
    const base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    fs::create_symlink(path, vm_dir() / name / "control.sock");
  }
  fs::path vm_dir() const { return fs::path(dir) / "vm"; }
  std::string found(const char* environment = nullptr) const {
    const auto path = find_socket(options, environment, vm_dir());
    return path.ok() ? *path : "error: " + path.error().message();
  }
};

TEST_F(FindSocket, the_only_machine_that_runs_is_found) {
  add_vm("a");
  fs::create_directories(vm_dir() / "old");
  fs::create_symlink("/nonexistent", vm_dir() / "old" / "control.sock");
  fs::create_symlink("a", vm_dir() / "latest");
  EXPECT_EQ(found(), fs::canonical(dir + "/a.sock"));
}

TEST_F(FindSocket, none_or_several_are_an_error_that_says_what_to_do) {
  EXPECT_EQ(found(),
            "error: no virtual machine runs in " + vm_dir().string() + "; give --socket, --vm or VASIC_CONTROL");
  add_vm("b");
  add_vm("a");
  EXPECT_EQ(found(), "error: several virtual machines run, give --vm, one of: a b");
  options.vm = "b";
  EXPECT_EQ(found(), fs::canonical(dir + "/b.sock"));
  options.vm = "c";
  EXPECT_TRUE(found().starts_with("error: no virtual machine 'c' runs: no ")) << found();
}

TEST_F(FindSocket, an_option_is_stronger_than_the_environment_and_that_than_a_search) {
  add_vm("a");
  EXPECT_EQ(found("/x"), "/x");
  options.vm = "a";
  EXPECT_EQ(found("/x"), fs::canonical(dir + "/a.sock"));
  options.socket = "/y";
  EXPECT_EQ(found("/x"), "/y");
}

TEST_F(FindSocket, the_project_is_looked_for_upwards) {
  fs::create_directories(fs::path(dir) / "scripts");
  fs::create_directories(fs::path(dir) / "a" / "b");
  std::fclose(std::fopen((dir + "/scripts/vm.sh").c_str(), "w"));
  EXPECT_EQ(find_vm_dir(fs::path(dir) / "a" / "b", nullptr), fs::path(dir) / "out" / "vm");
  EXPECT_EQ(find_vm_dir("/", "/o"), fs::path("/o/vm"));
  EXPECT_EQ(find_vm_dir("/", nullptr), fs::path("/out/vm"));
}

}  // namespace
}  // namespace vasicctl
