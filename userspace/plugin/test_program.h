// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For the unit tests: a child process with open files that a fake machine shows as a program which this thread traces.
// The child is real, so that its descriptors can be taken; what procfs says of it is made up.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "plugin/test_support.h"

namespace plugin::testing {

class TestProgram {
 public:
  // It has the given descriptors, and no others that its machine shows. `inner_pid` is its pid in its own namespace.
  TestProgram(FakeMachine& machine, std::uint32_t inner_pid, const std::vector<int>& descriptors,
              const std::string& maps = {})
      : path_(machine.root() + "/proc/"), pid_(::fork()) {
    if (pid_ == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves nothing behind
    while (pid_ == 0) ::pause();
    path_ += std::to_string(pid_);
    machine.add_tracee(pid_, inner_pid, maps);
    write_file(path_ + "/comm", "program" + std::to_string(inner_pid) + "\n");
    std::filesystem::create_directories(path_ + "/fd");
    for (const int number : descriptors)
      show(number, "/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(number));
  }
  TestProgram(const TestProgram&) = delete;
  TestProgram& operator=(const TestProgram&) = delete;
  ~TestProgram() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(path_);
  }

  // A descriptor that links to `target`.
  void show(int number, const std::string& target) const {
    std::filesystem::create_symlink(target, path_ + "/fd/" + std::to_string(number));
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  std::string path_;
  pid_t pid_;
};

}  // namespace plugin::testing
