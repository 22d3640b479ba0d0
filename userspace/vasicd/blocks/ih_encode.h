// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How a chip names what happened: client, source, node, ring and context ids of interrupts and VM faults, for every
// vasic_ih_format. Does not know PASIDs, time, or the ring (ih.h).
#pragma once

#include "packets/ih.h"
#include "vasic/vasic_abi.h"
#include "vasicd/context/context.h"

namespace vasicd {

class IhEncoder {
 public:
  // `info` outlives the encoder.
  explicit IhEncoder(const vasic_info& info) : info_(info) {}

  // Everything but time stamp and PASID.
  [[nodiscard]] packets::ih::Entry entry(const Interrupt& interrupt) const;
  [[nodiscard]] packets::ih::Entry entry(const MemoryFault& fault, const FaultClient& client) const;

 private:
  using Entry = packets::ih::Entry;

  void set_sdma(unsigned instance, unsigned queue, Entry* entry) const;
  void set_sq(std::uint32_t encoding, std::uint32_t value, Entry* entry) const;
  void set_sq_privileged(packets::ih::Entry* entry) const;
  void set_fault_client(const FaultClient& client, Entry* entry) const;
  void set_cik_fault(const MemoryFault& fault, Entry* entry) const;
  [[nodiscard]] std::uint8_t xcc_node(unsigned xcc) const;
  [[nodiscard]] std::uint8_t sdma_client(unsigned instance) const;
  // GC 9.4.3 alone has nodes: AIDs and XCCs.
  [[nodiscard]] bool has_nodes() const;

  const vasic_info& info_;
};

}  // namespace vasicd
