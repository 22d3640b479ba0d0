// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One array of 64-bit words: a counter, then for each process its progress, the offsets of its BOs, the descriptors of
// its GPUs, then a word for each memory that processes share. Progress is stored with release and loaded with acquire
// order; it publishes the other words. A word of a memory has its state in the two lowest bits, the rest is its value.
#include "plugin/restore_board.h"

#include <chrono>
#include <ctime>

#include "base/os.h"

namespace plugin {
namespace {

constexpr std::chrono::milliseconds kPoll{1};
constexpr unsigned kStateBits = 2;

std::uint64_t word_of(RestoreBoard::Memory::State state, std::uint32_t value) {
  return (std::uint64_t{value} << kStateBits) | static_cast<std::uint64_t>(state);
}

}  // namespace

base::Result<RestoreBoard> RestoreBoard::create(const std::vector<Process>& processes, std::size_t num_memories) {
  RestoreBoard board;
  std::size_t words = kNumber + 1;
  for (const Process& process : processes) {
    board.entries_.push_back({process.pid, words, words + 1, words + 1 + process.num_bos});
    words += 1 + process.num_bos + process.num_gpus;
  }
  board.first_memory_ = words;
  words += num_memories;
  ASSIGN_OR_RETURN(board.memory_, base::Mapping::shared_anonymous(words * sizeof(std::atomic<std::uint64_t>),
                                                                  "memory that restored processes share"));
  return board;
}

std::atomic<std::uint64_t>& RestoreBoard::word(std::size_t index) const {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.data())[index];
}

std::optional<std::size_t> RestoreBoard::find(std::uint32_t pid) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].pid == pid) return i;
  return std::nullopt;
}

void RestoreBoard::set_progress(std::size_t process, Progress progress) {
  word(entries_[process].progress).store(static_cast<std::uint64_t>(progress), std::memory_order_release);
}

Progress RestoreBoard::progress(std::size_t process) const {
  return static_cast<Progress>(word(entries_[process].progress).load(std::memory_order_acquire));
}

void RestoreBoard::set_offset(std::size_t process, std::size_t bo, std::uint64_t offset) {
  word(entries_[process].first_bo + bo).store(offset, std::memory_order_relaxed);
}

std::uint64_t RestoreBoard::offset(std::size_t process, std::size_t bo) const {
  return word(entries_[process].first_bo + bo).load(std::memory_order_relaxed);
}

void RestoreBoard::set_descriptor(std::size_t process, std::size_t gpu, int number) {
  word(entries_[process].first_gpu + gpu).store(static_cast<std::uint64_t>(number) + 1, std::memory_order_relaxed);
}

int RestoreBoard::descriptor(std::size_t process, std::size_t gpu) const {
  return static_cast<int>(word(entries_[process].first_gpu + gpu).load(std::memory_order_relaxed)) - 1;
}

bool RestoreBoard::claim_memory(std::size_t memory, std::uint32_t pid) {
  std::uint64_t none = 0;
  return word(first_memory_ + memory).compare_exchange_strong(none, word_of(Memory::State::kClaimed, pid));
}

void RestoreBoard::offer_memory(std::size_t memory, int number) {
  word(first_memory_ + memory)
      .store(word_of(Memory::State::kAvailable, static_cast<std::uint32_t>(number)), std::memory_order_release);
}

void RestoreBoard::set_loaded(std::size_t memory) {
  word(first_memory_ + memory)
      .store(word_of(Memory::State::kLoaded, this->memory(memory).value), std::memory_order_release);
}

RestoreBoard::Memory RestoreBoard::memory(std::size_t memory) const {
  const std::uint64_t value = word(first_memory_ + memory).load(std::memory_order_acquire);
  return {static_cast<Memory::State>(value & ((1U << kStateBits) - 1)),
          static_cast<std::uint32_t>(value >> kStateBits)};
}

RestoreBoard::Waited RestoreBoard::wait(std::size_t process, Progress wanted, std::chrono::milliseconds longest,
                                        const std::function<bool()>& is_alive) const {
  Progress last = progress(process);
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    const Progress now = progress(process);
    if (now == Progress::kFailed) return Waited::kEnded;
    if (now >= wanted) return Waited::kReached;
    if (!is_alive()) return Waited::kEnded;
    if (now != last) since = std::chrono::steady_clock::now();
    last = now;
    if (std::chrono::steady_clock::now() - since >= longest) return Waited::kTooLong;
    timespec pause{};
    pause.tv_nsec = std::chrono::nanoseconds(kPoll).count();
    (void)os::nanosleep(&pause);
  }
}

}  // namespace plugin
