// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A HIP program with one addition that makes its checkpoint difficult: the user space that most programs have.
//   field_hip --dir FOLDER [--gem mapped|handle|address] [--children high|low] [--also kfd|pidfd] [--undisturbed]
// It adds vectors before and after the checkpoint, and allocates memory after it. The files in FOLDER are those of
// kfdtest-criu/demo/outside.h.
#include <hip/hip_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fieldtest/additions.h"
#include "hiptest/device_memory.h"
#include "hiptest/kernels.h"
#include "kfdtest-criu/demo/outside.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/pattern.h"

namespace fieldtest {
namespace {

using FloatMemory = hiptest::DeviceMemory<float>;

constexpr int kUsage = 64;
constexpr int kElements = 1 << 16;

struct Options {
  std::string folder;
  Additions additions;
  bool undisturbed = false;
};

std::vector<float> numbers() {
  std::vector<float> values(kElements);
  for (int i = 0; i < kElements; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000);
  return values;
}

base::Status add(const FloatMemory& a, const FloatMemory& b, const FloatMemory& sum) {
  hiptest::vector_add(a.data(), b.data(), sum.data(), kElements);
  return hiptest::finished();
}

base::Status run(const Options& options, const kfdtest::Outside& outside) {
  ASSIGN_OR_RETURN(const FloatMemory first, FloatMemory::copy_of(numbers()));
  ASSIGN_OR_RETURN(const FloatMemory twice, FloatMemory::allocate(kElements));
  TRY(add(first, first, twice));
  ASSIGN_OR_RETURN(Added added, Added::make(options.additions));
  outside.say("pending");
  if (!options.undisturbed) {
    TRY(outside.publish("state", "pending " + std::to_string(::getpid())));
    while (!outside.told_to_go()) kfdtest::poll_pause();
    outside.say("go: the program continues");
  }
  ASSIGN_OR_RETURN(const FloatMemory late, FloatMemory::allocate(kElements));
  TRY(add(first, twice, late));
  ASSIGN_OR_RETURN(const std::vector<float> sums, late.load());
  TRY(added.check());
  kfdtest::Checksum checksum;
  checksum.add(std::as_bytes(std::span(sums)));
  outside.say("RESULT " + checksum.hex());
  return outside.publish("result", "RESULT " + checksum.hex());
}

base::Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--undisturbed") {
      options.undisturbed = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    ASSIGN_OR_RETURN(const bool taken, options.additions.take(name, value));
    if (!taken && name != "--dir") return base::Error(EINVAL, "no option " + name);
    if (!taken) options.folder = value;
  }
  if (options.folder.empty()) return base::Error(EINVAL, "--dir is needed");
  return options;
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  const auto options = fieldtest::parse(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "field_hip: %s\n", options.error().message().c_str());
    return fieldtest::kUsage;
  }
  const kfdtest::Outside outside(options->folder);
  const base::Status status = fieldtest::run(*options, outside);
  // Not by exit(): after a fork, libraries of HIP wait in their destructors for threads.
  ::_exit(status.ok() ? EXIT_SUCCESS : outside.fail(status.error().message()));
}
