// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reading and partial writing of descriptors.
#include "vasicd/blocks/queue/mqd.h"

#include <algorithm>
#include <cerrno>

namespace vasicd {

Mqd::Mqd(packets::WordView words) : dwords_(std::min(words.size(), packets::mqd::kMaxDwords)) {
  std::copy_n(words.begin(), dwords_, words_.begin());
}

base::Result<Mqd> Mqd::at(Memory& memory, GpuAddr addr, std::size_t dwords) {
  Mqd mqd;
  mqd.memory_ = &memory;
  mqd.addr_ = addr;
  mqd.dwords_ = std::min(dwords, mqd.words_.size());
  if (!memory.read(0, addr, std::as_writable_bytes(std::span(mqd.words_).first(mqd.dwords_))).ok()) {
    return base::Error(EFAULT, "MQD is not readable");
  }
  return mqd;
}

std::uint32_t Mqd::get(std::size_t index) const { return index < dwords_ ? words_[index] : 0; }

std::uint64_t Mqd::get64(std::size_t index_lo, std::size_t index_hi) const {
  return packets::join(get(index_lo), get(index_hi));
}

MemoryResult<void> Mqd::put(std::size_t index, std::uint32_t value) {
  if (index >= dwords_) return {};
  words_[index] = value;
  if (memory_ == nullptr) return {};
  return memory_->store32(0, addr_ + index * sizeof(value), value);
}

MemoryResult<void> Mqd::put64(std::size_t index_lo, std::size_t index_hi, std::uint64_t value) {
  TRY(put(index_lo, packets::lo32(value)));
  return put(index_hi, packets::hi32(value));
}

MemoryResult<void> Mqd::put_field(std::size_t index, packets::Field field, std::uint32_t value) {
  return put(index, field.set(get(index), value));
}

}  // namespace vasicd
