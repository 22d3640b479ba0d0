// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The counter is in memory that forked processes share. What this file does for itself bypasses the counter.
#include "base/os_failing.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/os.h"
#include "base/os_calls.inc"
#include "base/parse.h"

namespace os {
namespace {

struct Counter {
  std::atomic<std::uint64_t> calls = 0;
  std::uint64_t failing = 0;
  int code = 0;
  std::array<char, 64> failed{};
};

// "N" or "N:ERRNO"; what is neither arms nothing.
void arm_from_environment(Counter& counter) {
  counter.failing = 0;
  const char* text = std::getenv("KFD_CRIU_FAIL_CALL");
  if (text == nullptr) return;
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  const long code = *end == ':' ? std::strtol(end + 1, &end, 10) : EIO;
  if (end == text || *end != '\0' || code <= 0) return;
  counter.failing = number;
  counter.code = static_cast<int>(code);
}

Counter& counter() {
  static Counter* const shared = [] {
    void* memory = ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    auto* made = new (memory) Counter;
    arm_from_environment(*made);
    return made;
  }();
  return *shared;
}

void record(const std::string& line, const char* variable = "KFD_CRIU_FAIL_RECORD") {
  const char* path = std::getenv(variable);
  std::FILE* file = path != nullptr ? std::fopen(path, "ae") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

// A task that CRIU restores never gets here, because it leaves CRIU's code without exit().
__attribute__((destructor)) void record_calls() { record(std::to_string(counter().calls) + " calls"); }

}  // namespace

int fault(const char* call) {
  Counter& shared = counter();
  const std::uint64_t number = ++shared.calls;
  record(std::to_string(number) + " " + call, "KFD_CRIU_FAIL_LIST");
  if (number != shared.failing) return 0;
  std::strncpy(shared.failed.data(), call, shared.failed.size() - 1);
  record(std::to_string(number) + " " + std::to_string(shared.code) + " " + call);
  return shared.code;
}

void fail_call(std::uint64_t number, int code) {
  Counter& shared = counter();
  shared.calls = 0;
  shared.failing = number;
  shared.code = code;
  shared.failed.fill('\0');
}

void fail_call_of_environment() {
  fail_call(0, 0);
  arm_from_environment(counter());
}

std::uint64_t fail_step() {
  const char* text = std::getenv("KFD_CRIU_FAIL_STEP");
  return text == nullptr ? 1 : std::max<std::uint64_t>(base::parse_u64(text).value_or(1), 1);
}

std::uint64_t calls() { return counter().calls; }
std::string failed_call() { return counter().failed.data(); }

}  // namespace os
