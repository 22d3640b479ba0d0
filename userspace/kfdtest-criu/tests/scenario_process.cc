// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How a child process is made for a scenario, and how several of them wait for each other: by pipes that are their
// standard input and output.
#include "kfdtest-criu/tests/scenario_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "kfdtest-criu/env/deadline.h"

extern char** environ;

namespace kfdtest {
namespace {

// A child process; the destructor kills it.
class ScenarioProcess {
 public:
  // `input` and `output` are our descriptors that become its standard input and output.
  static base::Result<ScenarioProcess> start(std::string_view name, int input = STDIN_FILENO,
                                             int output = STDOUT_FILENO) {
    std::string program = "/proc/self/exe";
    std::string option = "--scenario";
    std::string argument(name);
    char* const arguments[] = {program.data(), option.data(), argument.data(), nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ScenarioProcess process;
    const int code = ::posix_spawn(&process.pid_, program.c_str(), &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (code != 0) {
      process.pid_ = -1;
      return base::Error::from_errno(code, "spawn");
    }
    return process;
  }
  ScenarioProcess(ScenarioProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ScenarioProcess& operator=(ScenarioProcess&&) = delete;
  ScenarioProcess(const ScenarioProcess&) = delete;
  ScenarioProcess& operator=(const ScenarioProcess&) = delete;
  ~ScenarioProcess() {
    if (pid_ == -1) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // The error says how it ended.
  base::Status join() {
    int status = 0;
    if (!wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, 3 * kDeadline))
      return base::Error(ETIME, "scenario did not end");
    // A worker of KFD frees its queues later: wait, so that the next process does not compete with them.
    const std::string entry = "/sys/class/kfd/kfd/proc/" + std::to_string(std::exchange(pid_, -1));
    if (!wait_until([&] { return !std::filesystem::exists(entry); }, 3 * kDeadline))
      return base::Error(ETIME, "the scenario's process keeps its GPUs");
    if (WIFSIGNALED(status))
      return base::Error(EIO, "scenario was killed by signal " + std::to_string(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0) return base::Error(EIO, "scenario failed; see its message above");
    return {};
  }

 private:
  ScenarioProcess() = default;
  pid_t pid_ = -1;
};

struct Pipe {
  base::UniqueFd from;
  base::UniqueFd to;

  static base::Result<Pipe> create() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return base::Error::from_errno(errno, "pipe");
    return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
  }
};

}  // namespace

base::Status spawn_scenario(std::string_view name) {
  ASSIGN_OR_RETURN(ScenarioProcess process, ScenarioProcess::start(name));
  return process.join();
}

base::Status spawn_together(std::string_view name, unsigned count) {
  ASSIGN_OR_RETURN(Pipe ready, Pipe::create());
  ASSIGN_OR_RETURN(Pipe go, Pipe::create());
  std::vector<ScenarioProcess> processes;
  for (unsigned i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(ScenarioProcess process, ScenarioProcess::start(name, go.from.get(), ready.to.get()));
    processes.push_back(std::move(process));
  }
  (void)::fcntl(ready.from.get(), F_SETFL, O_NONBLOCK);
  std::size_t came = 0;
  const auto all_are_there = [&] {
    std::array<char, 64> marks{};
    const ssize_t got = ::read(ready.from.get(), marks.data(), marks.size());
    if (got > 0) came += static_cast<std::size_t>(got);
    return came == count;
  };
  if (!wait_until(all_are_there, 3 * kDeadline))
    return base::Error(ETIME, std::to_string(came) + " of " + std::to_string(count) + " processes got ready");
  go.to.reset();  // every child reads end of file
  for (ScenarioProcess& process : processes) TRY(process.join());
  return {};
}

base::Status wait_for_the_others() {
  const char ready = '!';
  if (::write(STDOUT_FILENO, &ready, sizeof(ready)) != sizeof(ready)) return base::Error::from_errno(errno, "ready");
  char nothing = 0;
  ssize_t got = 0;
  do {
    got = ::read(STDIN_FILENO, &nothing, sizeof(nothing));
  } while (got < 0 && errno == EINTR);
  return got == 0 ? base::Status() : base::Error(EIO, "the processes do not start together");
}

}  // namespace kfdtest
