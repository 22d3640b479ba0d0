// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Runs CRIU and does something at one point of its work that the log tells.
//   criu_watch LOG WHERE COMMAND CRIU ARGUMENT...
// CRIU writes its log (it has no -o) into a pipe that holds one line, and LOG receives what comes. WHERE is a number of
// lines, or a text that a line contains. When that line has come, CRIU stops at its next line, and `sh -c COMMAND`
// runs, with CRIU's process id in $CRIU_PID; then CRIU continues. The status is CRIU's, 128 + N after signal N, and 125
// if the line never came. The log ends when CRIU has ended and nothing more has come for a while: CRIU's code inside a
// program writes its last lines after CRIU was killed, and the program would get SIGPIPE from a pipe that nobody reads.
// Tasks of a killed restore keep the pipe open for ever.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
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

// Waits until there is something to read, or CRIU has ended and there is nothing for a while. False: nothing will come.
bool wait_for_packet(int log, int criu) {
  for (;;) {
    pollfd files[] = {{log, POLLIN, 0}, {criu, POLLIN, 0}};
    if (::poll(files, 2, -1) < 0 && errno != EINTR) return false;
    if (files[0].revents != 0) return true;
    if (files[1].revents != 0) return ::poll(files, 1, kQuietMs) > 0;
  }
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
  while (wait_for_packet(out.get(), criu_file.get())) {
    const ssize_t size = ::read(out.get(), packet.data(), packet.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    const std::string_view text(packet.data(), static_cast<std::size_t>(size));
    if (::write(log.get(), text.data(), text.size()) < 0) return die(argv[1]);
    if (watch.reached(text)) run_command(argv[3], criu);
  }
  const int status = status_of(criu);
  return watch.done() ? status : kInfrastructure;
}
