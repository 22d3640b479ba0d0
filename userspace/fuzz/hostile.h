// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A hostile program's queue: what it does with its ring, its memory, its doorbell and its time. A target adds how its
// packets look. Also the words that packets are made of.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "fuzz/harness.h"

namespace fuzz {

// A packet's length and how its header looks.
struct Shape {
  std::uint32_t header = 0;
  std::size_t dwords = 1;
};

// Words that are likely to mean something in a packet: addresses of the program's memory, small numbers, all ones.
class WordMaker {
 public:
  WordMaker(Input& in, std::size_t memory_bytes) : in_(in), bytes_(memory_bytes) {}

  std::uint32_t operator()() {
    switch (in_.below(8)) {
      case 0:
        return 0;
      case 1:
      case 2:
        return packets::lo32(FuzzMemory::kBase) + in_.u16() * 4u % static_cast<std::uint32_t>(bytes_);
      case 3:
        return in_.u32();
      case 4:
        return in_.u16();
      case 5:
        return std::uint32_t{1} << in_.below(32);
      case 6:
        return ~0u >> in_.below(32);
      default:
        return in_.u8();
    }
  }

 private:
  Input& in_;
  std::size_t bytes_;
};

class Hostile {
 public:
  // Appends one packet.
  using Emit = std::function<void(Input&, WordMaker&, packets::Words&)>;

  Hostile(Harness& harness, Input& in, Queue queue, Emit emit)
      : harness_(harness), in_(in), queue_(queue), emit_(std::move(emit)), word_(in, harness.memory.size(queue.vmid)) {}

  // Acts until the input ends. If there is a canary, it is checked meanwhile.
  void run();

 private:
  [[nodiscard]] bool watched() const { return queue_.vmid != 0; }
  void begin();
  void act();
  void emit_to_ring();
  void emit_to_memory();
  void scribble();
  void reload();

  Harness& harness_;
  Input& in_;
  Queue queue_;
  Emit emit_;
  WordMaker word_;
  bool loaded_ = false;
};

}  // namespace fuzz
