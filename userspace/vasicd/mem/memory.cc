// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The non-virtual half of Memory: loops over map(), and word accesses.
#include "vasicd/mem/memory.h"

#include <algorithm>
#include <atomic>

namespace vasicd {
namespace {

template <typename Word>
MemoryResult<Word*> word_at(Memory& memory, unsigned vmid, GpuAddr va, Access access) {
  va &= ~static_cast<GpuAddr>(sizeof(Word) - 1);
  ASSIGN_OR_RETURN(auto bytes, memory.map(vmid, va, sizeof(Word), access));
  // Pages are larger than a word and the word is aligned, so a run is never shorter.
  return reinterpret_cast<Word*>(bytes.data());
}

template <typename Word>
MemoryResult<Word> load(Memory& memory, unsigned vmid, GpuAddr va) {
  ASSIGN_OR_RETURN(Word * word, word_at<Word>(memory, vmid, va, Access::kRead));
  return std::atomic_ref<Word>(*word).load(std::memory_order_acquire);
}

template <typename Word>
MemoryResult<void> store(Memory& memory, unsigned vmid, GpuAddr va, Word value) {
  ASSIGN_OR_RETURN(Word * word, word_at<Word>(memory, vmid, va, Access::kWrite));
  std::atomic_ref<Word>(*word).store(value, std::memory_order_release);
  return {};
}

template <typename Word>
MemoryResult<Word> fetch_add(Memory& memory, unsigned vmid, GpuAddr va, Word operand) {
  ASSIGN_OR_RETURN(Word * word, word_at<Word>(memory, vmid, va, Access::kWrite));
  return std::atomic_ref<Word>(*word).fetch_add(operand);
}

}  // namespace

MemoryResult<void> Memory::read(unsigned vmid, GpuAddr va, std::span<std::byte> out) {
  while (!out.empty()) {
    ASSIGN_OR_RETURN(auto run, map(vmid, va, out.size(), Access::kRead));
    const std::size_t n = std::min(run.size(), out.size());
    std::memcpy(out.data(), run.data(), n);
    out = out.subspan(n);
    va += n;
  }
  return {};
}

MemoryResult<void> Memory::write(unsigned vmid, GpuAddr va, std::span<const std::byte> in) {
  while (!in.empty()) {
    ASSIGN_OR_RETURN(auto run, map(vmid, va, in.size(), Access::kWrite));
    const std::size_t n = std::min(run.size(), in.size());
    std::memcpy(run.data(), in.data(), n);
    in = in.subspan(n);
    va += n;
  }
  return {};
}

MemoryResult<std::uint32_t> Memory::load32(unsigned vmid, GpuAddr va) { return load<std::uint32_t>(*this, vmid, va); }
MemoryResult<std::uint64_t> Memory::load64(unsigned vmid, GpuAddr va) { return load<std::uint64_t>(*this, vmid, va); }
MemoryResult<void> Memory::store32(unsigned vmid, GpuAddr va, std::uint32_t value) {
  return store(*this, vmid, va, value);
}
MemoryResult<void> Memory::store64(unsigned vmid, GpuAddr va, std::uint64_t value) {
  return store(*this, vmid, va, value);
}
MemoryResult<std::uint64_t> Memory::fetch_add64(unsigned vmid, GpuAddr va, std::uint64_t operand) {
  return fetch_add(*this, vmid, va, operand);
}
MemoryResult<std::uint32_t> Memory::fetch_add32(unsigned vmid, GpuAddr va, std::uint32_t operand) {
  return fetch_add(*this, vmid, va, operand);
}

}  // namespace vasicd
