// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the control socket or a test asks of one GPU: faults to inject, which queues may run, the speed of its link.
// Written and read on the device's thread only. Only remembers the requests; each block asks for those that concern it
// and carries them out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "vasicd/context/link.h"

namespace vasicd {

enum class InterruptClass : std::uint8_t {
  kEndOfPipe,  // a compute queue's RELEASE_MEM or AQL signal
  kTrap,       // an SDMA queue's TRAP
  kMessage,    // a wave's message
  kFault,      // a VM fault
  kError,      // everything else: bad opcode, privileged register
};

// Which queues execute packets.
enum class Running : std::uint8_t {
  kAll,
  kKernel,   // kernel rings and the scheduler, not the user queues
  kNothing,  // packets are executed one by one, when asked for
};

class Controls {
 public:
  // From now on the queue or ring `name`, as the trace calls it ("sdma0", "sdma1.q2", "cp.p0.q1", "hws"), executes
  // nothing, and only a reset can stop it.
  void hang(std::string name) { hung_.insert(std::move(name)); }
  // Ends the hang of `name`, because it was reset; true if it was hung.
  bool cure(std::string_view name);
  [[nodiscard]] bool hung(std::string_view name) const { return hung_.contains(name); }
  [[nodiscard]] const std::set<std::string, std::less<>>& all_hung() const { return hung_; }

  // The next `count` requests to unmap user queues are not answered.
  void fail_unmaps(unsigned count) { unmaps_to_fail_ = count; }
  // Consumes one of these failures, if any is left.
  bool take_failing_unmap();
  [[nodiscard]] unsigned unmaps_to_fail() const { return unmaps_to_fail_; }

  // The next `count` interrupts, of one class or any, never reach the IH ring.
  void drop_interrupts(unsigned count, std::optional<InterruptClass> kind);
  // Consumes one, if an interrupt of this class is to be dropped.
  bool take_dropped_interrupt(InterruptClass kind);
  [[nodiscard]] unsigned interrupts_to_drop() const { return interrupts_to_drop_; }

  // The next packet of queue `name` faults, at `address` or else at the address of the packet itself. Where the driver
  // has faults retried, the packet is executed when it is tried again.
  void fault(std::string name, std::optional<std::uint64_t> address) {
    faults_.insert_or_assign(std::move(name), address);
  }
  // Consumes the fault that waits for `name`, whose current packet is at `packet`.
  std::optional<std::uint64_t> take_fault(std::string_view name, std::uint64_t packet);
  [[nodiscard]] std::size_t faults_waiting() const { return faults_.size(); }

  void run(Running running) { running_ = running; }
  [[nodiscard]] Running running() const { return running_; }

  [[nodiscard]] Link& link() { return link_; }
  [[nodiscard]] const Link& link() const { return link_; }

  // Called when the device was reset: nothing is hung any more. Faults that were not injected yet, pause and link speed
  // stay.
  void device_reset() { hung_.clear(); }

 private:
  std::set<std::string, std::less<>> hung_;
  unsigned unmaps_to_fail_ = 0;
  unsigned interrupts_to_drop_ = 0;
  std::optional<InterruptClass> dropped_kind_;
  std::map<std::string, std::optional<std::uint64_t>, std::less<>> faults_;
  Running running_ = Running::kAll;
  Link link_;
};

}  // namespace vasicd
