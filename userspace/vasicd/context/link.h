// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The speed of the link between a GPU and the rest of its VM: a schedule of when the next bytes may cross. A copy asks
// it if one of its sides is not the GPU's own VRAM; bytes cross in quanta, so that the speed is right over
// milliseconds. Does not know who copies, and gets the time from its callers.
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
  // Whether bytes may cross now. A caller that is refused asks again later.
  bool ready(std::uint64_t now_ns);
  // So many bytes have crossed.
  void spend(std::uint64_t bytes, std::uint64_t now_ns);
  [[nodiscard]] std::uint64_t crossed() const { return crossed_; }

 private:
  std::uint64_t rate_ = 0;
  std::uint64_t free_at_ns_ = 0;
  std::uint64_t refused_at_ns_ = 0;  // the last refusal since bytes crossed; 0: no caller waits
  std::uint64_t crossed_ = 0;
};

}  // namespace vasicd
