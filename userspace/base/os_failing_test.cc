// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of the failing system calls.
#include "base/os_failing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mapping.h"
#include "base/os.h"
#include "base/unique_fd.h"

namespace {

class Failing : public testing::Test {
 protected:
  ~Failing() override { os::fail_call(0, 0); }
};

TEST_F(Failing, only_the_chosen_call_fails_and_with_the_chosen_errno) {
  struct ::stat status {};
  os::fail_call(2, ENOSPC);
  EXPECT_EQ(os::fstat(STDERR_FILENO, &status), 0);
  errno = 0;
  EXPECT_EQ(os::fstat(STDERR_FILENO, &status), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(os::failed_call(), "fstat");
  EXPECT_EQ(os::fstat(STDERR_FILENO, &status), 0);
  EXPECT_EQ(os::calls(), 3U);
}

TEST(FailStep, is_one_or_what_the_environment_says) {
  for (const auto& [text, step] : {std::pair("3", 3U), std::pair("1", 1U), std::pair("0", 1U), std::pair("no", 1U)}) {
    ::setenv("KFD_CRIU_FAIL_STEP", text, 1);
    EXPECT_EQ(os::fail_step(), step) << text;
  }
  ::unsetenv("KFD_CRIU_FAIL_STEP");
  EXPECT_EQ(os::fail_step(), 1U);
}

TEST_F(Failing, a_call_that_fails_is_not_made) {
  os::fail_call(1, EIO);
  const base::UniqueFd file(os::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(file.valid());
  const base::UniqueFd next(os::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(next.valid());
  os::fail_call(1, EIO);
  EXPECT_EQ(os::fcntl(next.get(), F_SETFD, 0), -1);
  EXPECT_EQ(os::fcntl(next.get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(Failing, owners_of_descriptors_and_memory_go_through_the_seam) {
  os::fail_call(1, ENOMEM);
  const auto memory = base::Mapping::anonymous(4096, "memory");
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code(), ENOMEM);
  EXPECT_EQ(os::failed_call(), "mmap");
}

TEST_F(Failing, releasing_is_not_counted_and_never_fails) {
  const int fd = os::open("/dev/null", O_RDONLY | O_CLOEXEC);
  DIR* dir = os::opendir("/");
  void* memory = os::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  os::fail_call(1, EIO);
  EXPECT_EQ(os::close(fd), 0);
  EXPECT_EQ(os::closedir(dir), 0);
  EXPECT_EQ(os::munmap(memory, 4096), 0);
  EXPECT_EQ(os::getpid(), ::getpid());
  EXPECT_EQ(os::calls(), 0U);
}

// Each function with arguments that are harmless when it is called.
std::vector<std::pair<std::string, std::function<bool()>>> fallible() {
  static struct ::stat status {};
  static std::array<char, 16> bytes{};
  static int word = 0;
  const auto bad = [](auto result) { return result == -1; };
  return {
      {"open", [=] { return bad(os::open("/dev/null", O_RDONLY)); }},
      {"openat", [=] { return bad(os::openat(AT_FDCWD, "/dev/null", O_RDONLY)); }},
      {"read", [=] { return bad(os::read(-1, bytes.data(), 0)); }},
      {"pread", [=] { return bad(os::pread(-1, bytes.data(), 0, 0)); }},
      {"pwrite", [=] { return bad(os::pwrite(-1, bytes.data(), 0, 0)); }},
      {"fsync", [=] { return bad(os::fsync(-1)); }},
      {"ftruncate", [=] { return bad(os::ftruncate(-1, 0)); }},
      {"fcntl", [=] { return bad(os::fcntl(0, F_GETFD)); }},
      {"dup2", [=] { return bad(os::dup2(-1, -1)); }},
      {"ioctl", [=] { return bad(os::ioctl(-1, 0, nullptr)); }},
      {"fchmod", [=] { return bad(os::fchmod(-1, 0)); }},
      {"fchown", [=] { return bad(os::fchown(-1, 0, 0)); }},
      {"flock", [=] { return bad(os::flock(-1, 0)); }},
      {"fstat", [=] { return bad(os::fstat(0, &status)); }},
      {"fstatvfs", [=] { return bad(os::fstatvfs(-1, nullptr)); }},
      {"access", [=] { return bad(os::access("/", F_OK)); }},
      {"faccessat", [=] { return bad(os::faccessat(AT_FDCWD, "/", F_OK, 0)); }},
      {"stat", [=] { return bad(os::stat("/", &status)); }},
      {"fstatat", [=] { return bad(os::fstatat(AT_FDCWD, "/", &status, 0)); }},
      {"link", [=] { return bad(os::link("", "")); }},
      {"linkat", [=] { return bad(os::linkat(-1, "", -1, "", 0)); }},
      {"mknodat", [=] { return bad(os::mknodat(-1, "", 0, 0)); }},
      {"readlink", [=] { return bad(os::readlink("/proc/self/exe", bytes.data(), bytes.size())); }},
      {"renameat", [=] { return bad(os::renameat(-1, "", -1, "")); }},
      {"unlink", [=] { return bad(os::unlink("")); }},
      {"unlinkat", [=] { return bad(os::unlinkat(-1, "", 0)); }},
      {"opendir", [] { return os::opendir("/") == nullptr; }},
      {"fdopendir", [] { return os::fdopendir(-1) == nullptr; }},
      {"readdir", [] { return os::readdir(nullptr) == nullptr; }},
      {"mmap", [] { return os::mmap(nullptr, 0, 0, 0, -1, 0) == MAP_FAILED; }},
      {"getrandom", [=] { return bad(os::getrandom(bytes.data(), 1, 0)); }},
      {"getrlimit", [=] { return bad(os::getrlimit(-1, nullptr)); }},
      {"setrlimit", [=] { return bad(os::setrlimit(-1, nullptr)); }},
      {"fork", [=] { return bad(os::fork()); }},
      {"fork_sharing_files", [=] { return bad(os::fork_sharing_files(0)); }},
      {"waitpid", [=] { return bad(os::waitpid(-1, &word, WNOHANG)); }},
      {"kill", [=] { return bad(os::kill(::getpid(), 0)); }},
      {"kcmp", [=] { return bad(os::kcmp(::getpid(), ::getpid(), 0, 0, 0)); }},
      {"process_vm_readv", [=] { return bad(os::process_vm_readv(::getpid(), nullptr, 0, nullptr, 0)); }},
      {"pidfd_open", [=] { return bad(os::pidfd_open(::getpid(), 0)); }},
      {"poll", [=] { return bad(os::poll(nullptr, 0, 0)); }},
      {"pidfd_getfd", [=] { return bad(os::pidfd_getfd(-1, 0, 0)); }},
      {"socketpair", [=] { return bad(os::socketpair(-1, 0, 0, nullptr)); }},
      {"sendmsg", [=] { return bad(os::sendmsg(-1, nullptr, 0)); }},
      {"setsockopt", [=] { return bad(os::setsockopt(-1, 0, 0, nullptr, 0)); }},
      {"recvmsg", [=] { return bad(os::recvmsg(-1, nullptr, 0)); }},
      {"fsopen", [=] { return bad(os::fsopen("", 0)); }},
      {"fsconfig", [=] { return bad(os::fsconfig(-1, 0, nullptr, nullptr, 0)); }},
      {"fsmount", [=] { return bad(os::fsmount(-1, 0, 0)); }},
  };
}

// EXDEV is an errno that none of these calls has by itself with these arguments.
TEST_F(Failing, every_function_can_fail_and_names_itself) {
  for (const auto& [name, call] : fallible()) {
    os::fail_call(1, EXDEV);
    errno = 0;
    EXPECT_TRUE(call()) << name;
    EXPECT_EQ(errno, EXDEV) << name;
    EXPECT_EQ(os::failed_call(), name);
    EXPECT_EQ(os::calls(), 1U) << name;
  }
}

TEST_F(Failing, a_library_can_ask_whether_its_call_must_fail) {
  os::fail_call(2, EBUSY);
  EXPECT_EQ(os::fault("first"), 0);
  EXPECT_EQ(os::fault("second"), EBUSY);
  EXPECT_EQ(os::fault("third"), 0);
  EXPECT_EQ(os::failed_call(), "second");
}

TEST_F(Failing, a_forked_process_counts_with_its_parent) {
  os::fail_call(2, EIO);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(os::fault("in the child"));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(os::fault("in the parent"), EIO);
  EXPECT_EQ(os::calls(), 2U);
}

class FailingByEnvironment : public Failing {
 protected:
  FailingByEnvironment() { ::setenv("KFD_CRIU_FAIL_RECORD", record_.c_str(), 1); }
  ~FailingByEnvironment() override {
    ::unsetenv("KFD_CRIU_FAIL_CALL");
    ::unsetenv("KFD_CRIU_FAIL_RECORD");
    std::filesystem::remove(record_);
  }
  static void choose(const char* value) {
    ::setenv("KFD_CRIU_FAIL_CALL", value, 1);
    os::fail_call_of_environment();
  }
  // What the record says, on one line.
  [[nodiscard]] std::string record() const {
    std::ifstream in(record_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string record_ =
      (std::filesystem::temp_directory_path() / ("os_failing." + std::to_string(::getpid()))).string();
};

TEST_F(FailingByEnvironment, chooses_the_call_and_the_record_names_it) {
  choose("2:28");
  EXPECT_EQ(os::access("/", F_OK), 0);
  EXPECT_EQ(os::access("/", F_OK), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(os::access("/", F_OK), 0);
  EXPECT_EQ(record(), "2 28 access\n");
}

TEST_F(FailingByEnvironment, the_record_has_the_number_of_calls_when_a_program_ends) {
  const pid_t child = ::fork();
  if (child == 0) {
    choose("0");
    for (int i = 0; i < 3; ++i) (void)os::fault("call");
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(record(), "3 calls\n");
}

TEST_F(FailingByEnvironment, the_list_has_every_call) {
  const std::string list =
      (std::filesystem::temp_directory_path() / ("os_list." + std::to_string(::getpid()))).string();
  ::setenv("KFD_CRIU_FAIL_LIST", list.c_str(), 1);
  choose("2");
  (void)os::access("/", F_OK);
  (void)os::fault("call");
  ::unsetenv("KFD_CRIU_FAIL_LIST");
  (void)os::fault("another");
  std::ifstream in(list);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "1 access\n2 call\n");
  std::filesystem::remove(list);
}

TEST_F(FailingByEnvironment, without_an_errno_the_call_fails_with_eio) {
  choose("1");
  EXPECT_EQ(os::fault("call"), EIO);
}

TEST_F(FailingByEnvironment, a_value_that_is_no_number_lets_nothing_fail) {
  for (const char* value : {"", "x", "1:", "1:x", "1:0", "1x", ":5", "0"}) {
    choose(value);
    EXPECT_EQ(os::fault("call"), 0) << value;
    EXPECT_EQ(record(), "") << value;
  }
}

}  // namespace
