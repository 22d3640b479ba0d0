// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Fetching and decoding.
#include "vasicd/waves/code_cache.h"

#include <cstring>
#include <optional>

namespace vasicd {

namespace {

constexpr std::size_t kDword = 4;
constexpr std::size_t kPair = 8;

std::uint32_t dword_at(const std::byte* bytes) {
  std::uint32_t value = 0;
  __atomic_load(reinterpret_cast<const std::uint32_t*>(bytes), &value, __ATOMIC_RELAXED);
  return value;
}

}  // namespace

// The second dword may lie on a page that is not mapped; then only an instruction of one dword can be decoded.
bool CodeCache::fetch(gcn::Address pc, gcn::Memory& memory, std::array<std::uint32_t, 2>& words) {
  const auto run = memory.map(pc, kPair, gcn::Access::kRead);
  if (run.size() < kDword) return false;
  words[0] = dword_at(run.data());
  if (run.size() >= kPair) {
    words[1] = dword_at(run.data() + kDword);
    return true;
  }
  words[1] = 0;
  const auto alone = gcn::decode(isa_, std::span(words).first(1));
  if (alone.has_value()) return true;
  const auto rest = memory.map(pc + kDword, kDword, gcn::Access::kRead);
  if (rest.size() < kDword) return false;
  words[1] = dword_at(rest.data());
  return true;
}

const DecodedInstruction* CodeCache::at(gcn::Address pc, gcn::Memory& memory) {
  pc &= ~gcn::Address{kDword - 1};
  std::array<std::uint32_t, 2> words;
  if (!fetch(pc, memory, words)) return nullptr;
  Entry& entry = entries_[pc / kDword % kEntries];
  if (entry.pc == pc && entry.decoded.words == words) return &entry.decoded;
  const auto instruction = gcn::decode(isa_, words);
  entry.pc = pc;
  entry.decoded = {.words = words,
                   .handler = instruction.has_value() ? gcn::handlers()[instruction->op] : nullptr,
                   .instruction = instruction.value_or(gcn::Instruction{})};
  return &entry.decoded;
}

}  // namespace vasicd
