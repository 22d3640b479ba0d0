// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that CRIU's main process shares with all tasks that it restores, which are forks of it: how far the GPU state
// of each process is, and where its BOs are now. Written by the task itself, read by the main process and by tasks that
// inherited its mappings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/mapping.h"
#include "base/result.h"

namespace plugin {

enum class Progress : std::uint32_t {
  kNothing,    // its GPU state is not restored
  kRestoring,  // what the kernel has is incomplete
  kRestored,   // all of it is there; the queues wait for RESUME
  kSettled,    // and the descriptors have the program's numbers
  kFailed,     // a file or a mapping could not be given to it
};

class RestoreBoard {
 public:
  struct Process {
    std::uint32_t pid = 0;  // innermost
    std::size_t num_bos = 0;
    std::size_t num_gpus = 0;
  };

  // Memory that processes share.
  struct Memory {
    enum class State {
      kNone,
      kClaimed,    // a process makes it
      kAvailable,  // CRIU keeps a descriptor of it
      kLoaded,     // and its contents are there
    };
    State state = State::kNone;
    std::uint32_t value = 0;  // kClaimed: the pid of the process; kAvailable, kLoaded: the number that CRIU gave it
  };

  RestoreBoard() = default;
  static base::Result<RestoreBoard> create(const std::vector<Process>& processes, std::size_t num_memories = 0);

  // The index of a process, as create() was given it.
  [[nodiscard]] std::optional<std::size_t> find(std::uint32_t pid) const;

  void set_progress(std::size_t process, Progress progress);
  [[nodiscard]] Progress progress(std::size_t process) const;

  // The offset at which BO `bo` is mapped after restore, and the descriptor of the file of its `gpu`-th GPU; readable
  // once the process is settled.
  void set_offset(std::size_t process, std::size_t bo, std::uint64_t offset);
  [[nodiscard]] std::uint64_t offset(std::size_t process, std::size_t bo) const;
  void set_descriptor(std::size_t process, std::size_t gpu, int number);
  [[nodiscard]] int descriptor(std::size_t process, std::size_t gpu) const;

  // False when another process has claimed it.
  [[nodiscard]] bool claim_memory(std::size_t memory, std::uint32_t pid);
  void offer_memory(std::size_t memory, int number);
  // By the process that has offered it.
  void set_loaded(std::size_t memory);
  [[nodiscard]] Memory memory(std::size_t memory) const;

  // 0, 1, 2, ...: another number for each call of all tasks together.
  [[nodiscard]] std::uint64_t next_number() const { return word(kNumber).fetch_add(1, std::memory_order_relaxed); }

  enum class Waited {
    kReached,
    kEnded,    // the process has ended or failed before
    kTooLong,  // its progress has not changed for as long as the caller waits
  };
  // Waits until the process has come as far as `wanted`. How long that takes depends on the size of its memory.
  [[nodiscard]] Waited wait(std::size_t process, Progress wanted, std::chrono::milliseconds longest,
                            const std::function<bool()>& is_alive) const;

 private:
  struct Entry {
    std::uint32_t pid = 0;
    std::size_t progress = 0;  // indices of words
    std::size_t first_bo = 0;
    std::size_t first_gpu = 0;
  };
  static constexpr std::size_t kNumber = 0;  // index of the word of next_number()
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::size_t index) const;

  std::vector<Entry> entries_;
  std::size_t first_memory_ = 0;  // index of a word
  base::Mapping memory_;
};

}  // namespace plugin
