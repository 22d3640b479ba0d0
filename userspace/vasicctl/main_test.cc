// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// vasicctl and vasicd, the programs themselves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace vasicctl {
namespace {

constexpr auto kDeadline = std::chrono::seconds(20);

// A vasicd with two GPUs and a control socket; killed on destruction.
class Vasicd {
 public:
  explicit Vasicd(const std::string& dir) {
    std::vector<std::string> arguments{
        VASICD_PATH, "--dir",           dir,         "--ram-size",         "64M", "--gpu", "gfx906,vram=64M",
        "--gpu",     "gfx90a,vram=64M", "--control", dir + "/control.sock"};
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Vasicd() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Vasicd(const Vasicd&) = delete;
  Vasicd& operator=(const Vasicd&) = delete;

 private:
  pid_t pid_;
};

struct Output {
  int status = -1;
  std::string text;  // standard output and standard error
};

// `look` is called with all output so far each time that more arrives.
Output run(const std::string& arguments, const std::function<void(const std::string&)>& look = {}) {
  Output output;
  std::FILE* pipe = ::popen((std::string(VASICCTL_PATH) + " " + arguments + " 2>&1").c_str(), "re");
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t got = ::read(::fileno(pipe), bytes.data(), bytes.size());
    if (got <= 0) break;
    output.text.append(bytes.data(), static_cast<std::size_t>(got));
    if (look) look(output.text);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) output.status = WEXITSTATUS(status);
  return output;
}

struct MainTest : testing::Test {
  std::string dir = testing::TempDir() + "/vasicctl-main-XXXXXX";
  std::unique_ptr<Vasicd> vasicd;
  std::string socket;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    vasicd = std::make_unique<Vasicd>(dir);
    socket = "--socket " + dir + "/control.sock ";
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (run(socket + "version").status != 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void TearDown() override {
    vasicd.reset();
    std::filesystem::remove_all(dir);
  }
};

TEST_F(MainTest, status_is_printed) {
  const Output output = run(socket + "--gpu 1 status");
  EXPECT_EQ(output.status, 0);
  EXPECT_TRUE(output.text.starts_with("gpu 1 chip=gfx90a state=ready ")) << output.text;
}

TEST_F(MainTest, a_refusal_is_one_line_and_status_1) {
  const Output output = run(socket + "status");
  EXPECT_EQ(output.status, 1);
  EXPECT_EQ(output.text, "vasicctl: error: gpu=N is needed: there are 2 GPUs\n");
  EXPECT_EQ(run(socket + "--gpu 0 hang").text, "vasicctl: error: usage: hang NAME\n");
}

TEST_F(MainTest, a_command_is_executed) {
  EXPECT_EQ(run(socket + "--gpu 0 reset").status, 0);
  EXPECT_NE(run(socket + "--gpu 0 status").text.find(" state=hung "), std::string::npos);
}

TEST_F(MainTest, the_environment_names_the_socket) {
  ASSERT_EQ(::setenv("VASIC_CONTROL", (dir + "/control.sock").c_str(), 1), 0);
  const Output output = run("echo on");
  ::unsetenv("VASIC_CONTROL");
  EXPECT_EQ(output.text, "echo on\n");
}

TEST_F(MainTest, no_server_is_status_3) {
  const Output output = run("--socket " + dir + "/nothing status");
  EXPECT_EQ(output.status, 3);
  EXPECT_EQ(output.text, "vasicctl: error: " + dir + "/nothing: No such file or directory\n");
}

TEST_F(MainTest, watch_ends_with_the_server) {
  const auto second_time = [](const std::string& text) { return text.find("\n\ngpu 0 ") != std::string::npos; };
  const Output output = run(socket + "--gpu 0 --interval 0.05 watch", [&](const std::string& text) {
    if (second_time(text)) vasicd.reset();
  });
  EXPECT_EQ(output.status, 3);
  EXPECT_TRUE(second_time(output.text)) << output.text;
}

}  // namespace
}  // namespace vasicctl
