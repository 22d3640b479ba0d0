// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// vasicd: process-wide set-up (signals, parent death), then Host does the work. Errors are printed here and only here.
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "vasicd/host/host.h"
#include "vasicd/host/options.h"

namespace {

// Turns SIGTERM and SIGINT into a readable descriptor. Called before any thread exists, so that all inherit the mask.
base::Result<base::UniqueFd> stop_signals() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &stop, nullptr) != 0) return base::Error::from_errno(errno, "sigprocmask");
  base::UniqueFd fd(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return base::Error::from_errno(errno, "signalfd");
  return fd;
}

base::Status die_with_parent() {
  const pid_t parent = ::getppid();
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return base::Error::from_errno(errno, "PR_SET_PDEATHSIG");
  if (::getppid() != parent) return base::Error(ESRCH, "the parent process has gone");
  return {};
}

base::Status run(const vasicd::Options& options) {
  ASSIGN_OR_RETURN(const base::UniqueFd stop, stop_signals());
  if (options.die_with_parent) TRY(die_with_parent());
  ASSIGN_OR_RETURN(const auto host, vasicd::Host::create(options, vasicd::Engines::create));
  std::printf("%s\n", host->ready_line().c_str());
  std::fflush(stdout);
  return host->serve(stop.get());
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = vasicd::parse_options(std::vector<std::string>(argv + 1, argv + argc));
  std::fputs(parsed.out.c_str(), stdout);
  std::fputs(parsed.error.c_str(), stderr);
  if (!parsed.options) return parsed.exit_status;
  if (const auto done = run(*parsed.options); !done.ok()) {
    std::fprintf(stderr, "vasicd: error: %s\n", done.error().message().c_str());
    return 1;
  }
  return 0;
}
