// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Copies to and from a buffer that KFD allocated.
#include "kfdtest-criu/tests/shared_pages.h"

#include <cerrno>
#include <string>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/pattern.h"

namespace kfdtest {
namespace {

std::uint64_t address_of(std::span<const std::byte> pages) { return reinterpret_cast<std::uint64_t>(pages.data()); }

base::Status copy(const Gpu& gpu, std::uint64_t destination, std::uint64_t source, std::size_t size) {
  return run_alone(gpu, SdmaCommands(gpu).copy(destination, source, size));
}

}  // namespace

base::Status gpu_reads(const Gpu& gpu, std::span<const std::byte> pages, std::uint64_t seed) {
  ASSIGN_OR_RETURN(GpuMemory target, GpuMemory::allocate(gpu, MemoryKind::kGtt, pages.size()));
  TRY(copy(gpu, target.gpu_address(), address_of(pages), pages.size()));
  if (const auto at = find_mismatch(target.bytes(), seed))
    return base::Error(EIO, "the GPU reads something else at " + std::to_string(*at));
  return {};
}

base::Status gpu_writes(const Gpu& gpu, std::span<const std::byte> pages, std::uint64_t seed) {
  ASSIGN_OR_RETURN(GpuMemory source, GpuMemory::allocate(gpu, MemoryKind::kGtt, pages.size()));
  fill_pattern(source.bytes(), seed);
  return copy(gpu, address_of(pages), source.gpu_address(), pages.size());
}

}  // namespace kfdtest
