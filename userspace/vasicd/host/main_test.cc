// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The vasicd program itself: exit statuses, the ready line, signals, what is left on disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "vasicd/chip.h"
#include "vasicd/transport/ivshmem_client.h"

namespace vasicd {
namespace {

constexpr int kDeadlineMs = 20000;
constexpr int kNoExit = -1;

// A child process with stdout and stderr in one pipe. Killed on destruction if it is still there.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    int pipe_fds[2] = {-1, -1};
    if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return;
    output_ = base::UniqueFd(pipe_fds[0]);
    const base::UniqueFd write_end(pipe_fds[1]);
    arguments.insert(arguments.begin(), VASICD_PATH);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::dup2(write_end.get(), STDOUT_FILENO);
    ::dup2(write_end.get(), STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }

  // The next line of output, without its newline; empty at the end of output or the deadline.
  std::string line() {
    std::string text;
    char byte = 0;
    while (true) {
      pollfd wait{.fd = output_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, kDeadlineMs) <= 0 || ::read(output_.get(), &byte, 1) != 1 || byte == '\n') return text;
      text += byte;
    }
  }
  // Its exit status, or kNoExit if it died of a signal or does not end.
  int wait_for_exit() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDeadlineMs);
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) return kNoExit;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kNoExit;
  }

 private:
  pid_t pid_ = -1;
  base::UniqueFd output_;
};

struct MainTest : testing::Test {
  std::string dir = testing::TempDir() + "/vasicd-main-XXXXXX";

  void SetUp() override { ASSERT_NE(::mkdtemp(dir.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(dir); }
  std::vector<std::string> arguments(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"--dir", dir, "--ram-size", "64M", "--gpu", "gfx906,vram=64M"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string socket() const { return dir + "/gpu0.sock"; }
};

TEST_F(MainTest, prints_one_ready_line_when_it_can_be_connected_to) {
  Process vasicd(arguments());
  const std::string line = vasicd.line();
  EXPECT_TRUE(line.starts_with("vasicd: ready pid=" + std::to_string(vasicd.pid()) + " ram=/proc/")) << line;
  EXPECT_TRUE(line.ends_with(" gpus=1")) << line;
  EXPECT_EQ(receive_handshake(connect_ivshmem(socket()).get()).size(), 7u);
}

TEST_F(MainTest, sigterm_and_sigint_end_it_cleanly_without_sockets) {
  for (const int number : {SIGTERM, SIGINT}) {
    Process vasicd(arguments());
    ASSERT_NE(vasicd.line(), "");
    const auto client = connect_ivshmem(socket());
    ASSERT_TRUE(client.valid());
    vasicd.signal(number);
    EXPECT_EQ(vasicd.wait_for_exit(), 0);
    EXPECT_FALSE(std::filesystem::exists(socket()));
  }
}

TEST_F(MainTest, after_sigkill_the_next_one_replaces_the_stale_socket) {
  {
    Process vasicd(arguments());
    ASSERT_NE(vasicd.line(), "");
  }
  ASSERT_TRUE(std::filesystem::exists(socket()));
  Process vasicd(arguments());
  EXPECT_TRUE(vasicd.line().starts_with("vasicd: ready "));
  EXPECT_TRUE(connect_ivshmem(socket()).valid());
}

TEST_F(MainTest, a_second_one_in_the_directory_is_refused) {
  Process first(arguments());
  ASSERT_NE(first.line(), "");
  Process second(arguments());
  EXPECT_EQ(second.line(),
            "vasicd: error: " + dir + ": another vasicd (pid " + std::to_string(first.pid()) + ") is running here");
  EXPECT_EQ(second.wait_for_exit(), 1);
  EXPECT_TRUE(connect_ivshmem(socket()).valid());
}

TEST_F(MainTest, usage_errors_exit_64) {
  Process vasicd({"--dir", dir, "--gpu", "gfx1"});
  std::string chips;
  for (const std::string_view chip : chip_names()) chips += " " + std::string(chip);
  EXPECT_EQ(vasicd.line(), "vasicd: error: --gpu gfx1: unknown chip 'gfx1', one of:" + chips);
  EXPECT_EQ(vasicd.wait_for_exit(), 64);
}

TEST_F(MainTest, list_chips_exits_0) {
  Process vasicd({"--list-chips"});
  for (const std::string_view chip : chip_names()) EXPECT_EQ(vasicd.line(), chip);
  EXPECT_EQ(vasicd.wait_for_exit(), 0);
}

TEST_F(MainTest, list_chips_as_json_exits_0) {
  Process vasicd({"--list-chips", "--json"});
  EXPECT_EQ(vasicd.line(), "[");
  for (const std::string_view chip : chip_names())
    EXPECT_TRUE(vasicd.line().starts_with("{\"name\": \"" + std::string(chip) + "\", ")) << chip;
  EXPECT_EQ(vasicd.line(), "]");
  EXPECT_EQ(vasicd.wait_for_exit(), 0);
}

TEST_F(MainTest, with_once_it_exits_0_when_the_guest_has_gone) {
  Process vasicd(arguments({"--once"}));
  ASSERT_NE(vasicd.line(), "");
  EXPECT_EQ(receive_handshake(connect_ivshmem(socket()).get()).size(), 7u);
  EXPECT_EQ(vasicd.wait_for_exit(), 0);
}

TEST_F(MainTest, with_die_with_parent_it_does_not_outlive_its_parent) {
  // The parent is a process in between; we are its reaper when it has gone.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Process vasicd(arguments({"--die-with-parent"}));
    ::_exit(vasicd.line().empty() ? 1 : 0);  // without destructors: vasicd is left behind
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const pid_t orphan = ::waitpid(-1, &status, 0);
  EXPECT_GT(orphan, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

}  // namespace
}  // namespace vasicd
