// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A list of commands for a ring, in the vocabulary of the tests: write, fill, copy, wait. Which packets they become is
// decided by the ring and the chip; the encoding is userspace/packets'. Addresses are GPU addresses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drmtest/env/device.h"
#include "packets/sdma.h"

namespace drmtest {

class Commands {
 public:
  // `ip` is AMDGPU_HW_IP_DMA or AMDGPU_HW_IP_COMPUTE.
  Commands(const Device& device, unsigned ip);

  Commands& nop(std::size_t dwords = 1);
  Commands& write(std::uint64_t address, std::span<const std::uint32_t> words);
  Commands& write(std::uint64_t address, std::uint32_t word) { return write(address, std::span(&word, 1)); }
  // Address and size are multiples of 4.
  Commands& fill(std::uint64_t address, std::uint64_t size, std::uint32_t word);
  // Any alignment and size; as many packets as it takes.
  Commands& copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);
  // Stops the ring until the word at `address` is `value`.
  Commands& wait_equal(std::uint64_t address, std::uint32_t value);
  // A packet that no engine has.
  Commands& bad_opcode();

  // Padded with NOPs as the hardware wants an IB to be.
  [[nodiscard]] std::span<const std::uint32_t> padded();

 private:
  [[nodiscard]] bool is_sdma() const { return ip_ == AMDGPU_HW_IP_DMA; }
  unsigned ip_;
  const packets::sdma::Format* sdma_;
  std::vector<std::uint32_t> dwords_;
};

}  // namespace drmtest
