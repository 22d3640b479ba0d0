// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "vasicd/context/controls.h"

namespace vasicd {

bool Controls::cure(std::string_view name) {
  const auto it = hung_.find(name);
  if (it == hung_.end()) return false;
  hung_.erase(it);
  return true;
}

bool Controls::take_failing_unmap() {
  if (unmaps_to_fail_ == 0) return false;
  --unmaps_to_fail_;
  return true;
}

void Controls::drop_interrupts(unsigned count, std::optional<InterruptClass> kind) {
  interrupts_to_drop_ = count;
  dropped_kind_ = kind;
}

bool Controls::take_dropped_interrupt(InterruptClass kind) {
  if (interrupts_to_drop_ == 0 || dropped_kind_.value_or(kind) != kind) return false;
  --interrupts_to_drop_;
  return true;
}

std::optional<std::uint64_t> Controls::take_fault(std::string_view name, std::uint64_t packet) {
  if (faults_.empty()) return std::nullopt;  // this is called for each packet
  const auto it = faults_.find(name);
  if (it == faults_.end()) return std::nullopt;
  const std::uint64_t address = it->second.value_or(packet);
  faults_.erase(it);
  return address;
}

}  // namespace vasicd
