// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/memory_holders.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "base/os.h"
#include "plugin/proc_text.h"

namespace plugin::memory_holders {
namespace {

using base::Error;
using base::Result;

// The GEM object has a reference to its DMA-buf, and so has its handle in the DRM file that KFD has for each GPU.
// Before Linux 6.8 KFD had no such file, and exported a BO without a handle: then there is neither.
constexpr std::size_t kMostByKernel = 2;
constexpr timespec kRecountPause{0, 10'000'000};
constexpr int kRecounts = 50;  // half a second

std::uint64_t rest_of(const Memory& memory) {
  return memory.references - std::min(memory.references, memory.explained);
}

}  // namespace

Result<std::uint64_t> references_of(const std::string& proc, int fd) {
  const std::string path = proc + "/self/fdinfo/" + std::to_string(fd);
  ASSIGN_OR_RETURN(const std::string text, field(path, "count"));
  const std::vector<std::uint32_t> numbers = numbers_of(text);
  if (numbers.empty()) return Error(EPROTO, path + ": the kernel does not count the references to a DMA-buf");
  return std::uint64_t{numbers.front()};
}

// Most BOs of a program are its own, so the number that most BOs have is the kernel's. If two numbers are equally
// frequent the larger one is taken, because an ordinary program must not be refused.
std::uint64_t kernel_references(std::span<const Memory> memories) {
  std::array<std::size_t, kMostByKernel + 1> frequency{};
  for (const Memory& memory : memories)
    if (!memory.is_orphan) ++frequency[std::min<std::uint64_t>(rest_of(memory), kMostByKernel)];
  std::uint64_t most = kMostByKernel;
  for (std::uint64_t i = kMostByKernel; i-- > 0;)
    if (frequency[i] > frequency[most]) most = i;
  return most;
}

std::uint64_t kernel_references_of(const Memory& memory, std::uint64_t by_kernel) {
  if (memory.is_remote) return 0;
  return memory.is_orphan ? by_kernel - std::min<std::uint64_t>(by_kernel, 1) : by_kernel;
}

// Whoever allocated an orphan may be outside and still have it, so what these programs may have is not taken for
// theirs.
std::uint64_t most_known(const Memory& memory, std::uint64_t by_kernel) {
  const std::uint64_t possible = memory.is_orphan ? 0 : memory.possible;
  return memory.explained + kernel_references_of(memory, by_kernel) + possible;
}

Result<std::uint64_t> recount(std::uint64_t references, std::uint64_t known,
                              const std::function<Result<std::uint64_t>()>& count) {
  for (int i = 0; references > known && i < kRecounts; ++i) {
    (void)os::nanosleep(&kRecountPause);
    ASSIGN_OR_RETURN(references, count());
  }
  return std::uint64_t{references};
}

}  // namespace plugin::memory_holders
