// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The speed of what connects a GPU to the rest of its machine: a schedule of when the next bytes may cross. Copies
// whose one side is not the GPU's own VRAM ask it; they cross in quanta, so that the speed is right over milliseconds.
// Does not know who copies, nor what time it is.
#pragma once

#include <cstdint>

namespace vasicd {

class Link {
 public:
  // Bytes per second; 0: as fast as the machine can.
  void limit(std::uint64_t bytes_per_second);
  [[nodiscard]] std::uint64_t limit() const { return rate_; }
  [[nodiscard]] bool limited() const { return rate_ != 0; }

  // The most bytes that may cross at once, at least a page.
  [[nodiscard]] std::uint64_t quantum() const;
  // Whether bytes may cross now. Who is refused asks again.
  bool ready(std::uint64_t now_ns);
  // They did.
  void spend(std::uint64_t bytes, std::uint64_t now_ns);
  [[nodiscard]] std::uint64_t crossed() const { return crossed_; }

 private:
  std::uint64_t rate_ = 0;
  std::uint64_t free_at_ns_ = 0;
  std::uint64_t refused_at_ns_ = 0;  // since the last bytes; 0: nobody waits for the link
  std::uint64_t crossed_ = 0;
};

}  // namespace vasicd
