// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory controller: the VASIC_REG_* registers and the table of VMIDs (page directory and PASID each).
// Does not translate (mem/gpu_memory.h) and does not say how a fault looks (ih_encode.h).
#pragma once

#include <array>
#include <cstdint>

#include "vasic/vasic_abi.h"
#include "vasicd/context/context.h"
#include "vasicd/mem/gpu_memory.h"

namespace vasicd {

class Gmc final : public Registers {
 public:
  // `can_retry`: the chip retries faults of the VMIDs whose SH_MEM_CONFIG lets it.
  Gmc(GpuMemory& memory, Trace& trace, bool can_retry = false)
      : memory_(memory), trace_(trace), can_retry_(can_retry) {}

  bool write(std::uint32_t index, std::uint32_t value) override;
  void bind_vmid(unsigned vmid, std::uint64_t pd, std::uint32_t pasid) override;
  void unbind_vmid(unsigned vmid) override;
  void set_retry(unsigned vmid, bool retry) override;
  [[nodiscard]] std::uint32_t pasid(unsigned vmid) const override;

  // Whether a fault becomes an interrupt now: always, except a retried fault, which is reported once in kRetryNs.
  bool report_fault(const MemoryFault& fault, std::uint64_t now_ns);

  static constexpr std::uint64_t kRetryNs = 2'000'000;

  // Power-on state: all VMIDs unbound, MC layout unknown.
  void reset();

 private:
  struct Vmid {
    std::uint64_t pd = 0;
    std::uint32_t pasid = 0;
  };

  GpuMemory& memory_;
  Trace& trace_;
  const bool can_retry_;

  // Retried faults that were reported; a new one replaces the oldest.
  static constexpr std::size_t kRetried = 64;
  struct Retried {
    unsigned vmid = 0;  // 0: free
    GpuAddr page = 0;
    std::uint64_t reported_ns = 0;
  };
  std::array<Retried, kRetried> retried_{};
  std::size_t next_retried_ = 0;
  std::array<Vmid, VASIC_MAX_VMID> vmids_{};
};

}  // namespace vasicd
