// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Runs CRIU and does something at one point of its work that the log tells.
//   criu_watch LOG WHERE COMMAND CRIU ARGUMENT...
// CRIU writes its log (it has no -o) into a pipe that holds one line, and LOG receives what comes. WHERE is a number of
// lines, or a text that a line contains. When that line has come, CRIU stops at its next line, and `sh -c COMMAND`
// runs, with CRIU's process id in $CRIU_PID; then CRIU continues. The status is CRIU's, 128 + N after signal N, and 125
// if the line never came. The log ends when CRIU has ended, its code inside the programs has written its last line, and
// nothing more has come for a while: after a kill of CRIU that code still writes, and a program gets SIGPIPE from a
// pipe that nobody reads. Tasks of a killed restore keep the pipe open for ever.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "base/parse.h"
#include "base/unique_fd.h"

namespace {

constexpr int kUsage = 64;
constexpr int kInfrastructure = 125;
constexpr int kBySignal = 128;
// A pipe of one page has room for one packet; with O_DIRECT each write is a packet.
constexpr int kPipeSize = 4096;
constexpr int kQuietMs = 1000;
// How long CRIU's code inside a program may need to return to the program after CRIU's end.
constexpr std::chrono::seconds kReturnLimit{60};

int die(const char* what) {
  std::perror(what);
  return kInfrastructure;
}

int status_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
}

// Counts lines and looks for the one where something is to be done.
class Watch {
 public:
  explicit Watch(std::string_view where) : line_(base::parse_u64(where).value_or(0)), text_(where) {}

  // Whether the line has come with this text, for the first time.
  bool reached(std::string_view text) {
    if (done_) return false;
    for (const char c : text)
      if (c == '\n') ++lines_;
    done_ = line_ != 0 ? lines_ >= line_ : text.find(text_) != std::string_view::npos;
    return done_;
  }
  [[nodiscard]] bool done() const { return done_; }

 private:
  std::uint64_t line_;
  std::string_view text_;
  std::uint64_t lines_ = 0;
  bool done_ = false;
};

// Knows in which tasks CRIU's code waits for commands, by the lines "pie: PID: TEXT" that it writes there.
class Parasites {
 public:
  void read(std::string_view line) {
    if (!line.starts_with(kPrefix)) return;
    line.remove_prefix(kPrefix.size());
    const auto task = base::parse_u64(line.substr(0, line.find(':')));
    if (!task) return;
    if (line.find(kFirst) != std::string_view::npos) tasks_.insert(*task);
    if (line.find(kLast) != std::string_view::npos) tasks_.erase(*task);
  }

  // Whether one of them has yet to return to its program.
  [[nodiscard]] bool any() const {
    return std::any_of(tasks_.begin(), tasks_.end(),
                       [](std::uint64_t task) { return std::filesystem::exists("/proc/" + std::to_string(task)); });
  }

 private:
  static constexpr std::string_view kPrefix = "pie: ";
  static constexpr std::string_view kFirst = "Running daemon thread leader";
  // Tells where the program continues.
  static constexpr std::string_view kLast = "new_sp=";

  std::set<std::uint64_t> tasks_;
};

pid_t start(char** argv, int log) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execvp(argv[0], argv);
  ::_exit(kInfrastructure);
}

// Waits until there is something to read. False: CRIU has ended, and nothing will come.
bool wait_for_packet(int log, int criu, const Parasites& parasites) {
  for (;;) {
    pollfd files[] = {{log, POLLIN, 0}, {criu, POLLIN, 0}};
    if (::poll(files, 2, -1) < 0 && errno != EINTR) return false;
    if (files[0].revents != 0) return true;
    if (files[1].revents != 0) break;
  }
  pollfd file = {log, POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + kReturnLimit;
  while (::poll(&file, 1, kQuietMs) <= 0)
    if (!parasites.any() || std::chrono::steady_clock::now() > end) return false;
  return true;
}

void run_command(const char* command, pid_t criu) {
  ::setenv("CRIU_PID", std::to_string(criu).c_str(), 1);
  if (std::system(command) != 0) std::fprintf(stderr, "criu_watch: '%s' failed\n", command);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: criu_watch LOG WHERE COMMAND CRIU ARGUMENT...\n");
    return kUsage;
  }
  const base::UniqueFd log(::open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!log.valid()) return die(argv[1]);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_DIRECT) != 0) return die("pipe2");
  const base::UniqueFd out(ends[0]);
  base::UniqueFd in(ends[1]);
  if (::fcntl(out.get(), F_SETPIPE_SZ, kPipeSize) < 0) return die("F_SETPIPE_SZ");
  const pid_t criu = start(argv + 4, in.get());
  if (criu < 0) return die("fork");
  in.reset();
  const base::UniqueFd criu_file(static_cast<int>(::syscall(SYS_pidfd_open, criu, 0)));
  if (!criu_file.valid()) return die("pidfd_open");
  Watch watch(argv[2]);
  std::array<char, kPipeSize> packet{};
  Parasites parasites;
  while (wait_for_packet(out.get(), criu_file.get(), parasites)) {
    const ssize_t size = ::read(out.get(), packet.data(), packet.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    const std::string_view text(packet.data(), static_cast<std::size_t>(size));
    if (::write(log.get(), text.data(), text.size()) < 0) return die(argv[1]);
    parasites.read(text);
    if (watch.reached(text)) run_command(argv[3], criu);
  }
  const int status = status_of(criu);
  return watch.done() ? status : kInfrastructure;
}
