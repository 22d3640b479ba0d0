// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A HIP program with one addition that makes its checkpoint difficult: the user space that most programs have.
//   field_hip --dir FOLDER [--gem mapped|handle|address] [--children high|low] [--also kfd|pidfd] [--undisturbed]
// It adds vectors before and after the checkpoint, and allocates memory after it. The files in FOLDER are those of
// kfdtest-criu/demo/message_files.h.
#include <hip/hip_runtime_api.h>
#include <unistd.h>

#include <vector>

#include "fieldtest/additions.h"
#include "hiptest/device_memory.h"
#include "hiptest/kernels.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/harness/pattern.h"

namespace fieldtest {
namespace {

using FloatMemory = hiptest::DeviceMemory<float>;

constexpr int kElements = 1 << 16;

std::vector<float> numbers() {
  std::vector<float> values(kElements);
  for (int i = 0; i < kElements; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000);
  return values;
}

base::Status add(const FloatMemory& a, const FloatMemory& b, const FloatMemory& sum) {
  hiptest::vector_add(a.data(), b.data(), sum.data(), kElements);
  return hiptest::finished();
}

base::Status run(const kfdtest::CommandLine& line, const Additions& additions, const kfdtest::MessageFiles& messages) {
  ASSIGN_OR_RETURN(const FloatMemory first, FloatMemory::copy_of(numbers()));
  ASSIGN_OR_RETURN(const FloatMemory twice, FloatMemory::allocate(kElements));
  TRY(add(first, first, twice));
  ASSIGN_OR_RETURN(Added added, Added::make(additions));
  messages.say("pending");
  TRY(wait_pending(line, messages, kfdtest::counted([&] { return add(first, first, twice); })));
  ASSIGN_OR_RETURN(const FloatMemory late, FloatMemory::allocate(kElements));
  TRY(add(first, twice, late));
  ASSIGN_OR_RETURN(const std::vector<float> sums, late.load());
  TRY(added.check());
  kfdtest::Checksum checksum;
  checksum.add(std::as_bytes(std::span(sums)));
  return messages.publish_result(checksum.hex());
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  fieldtest::Additions additions;
  kfdtest::CommandLine line;
  additions.declare(line);
  // Not by exit(): after a fork, libraries of HIP wait in their destructors for threads.
  ::_exit(run_program(argc, argv, line, [&](const kfdtest::MessageFiles& messages) {
    return fieldtest::run(line, additions, messages);
  }));
}
