// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Commands as SDMA and PM4 packets.
#include "drmtest/harness/commands.h"

#include <algorithm>

#include "packets/pm4.h"
#include "packets/sdma.h"

namespace drmtest {
namespace {

namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;

constexpr std::size_t kIbAlignDwords = 8;
// No type-3 packet and no SDMA packet has this opcode.
constexpr std::uint32_t kUnknownSdmaOpcode = 0xff;
constexpr auto kUnknownPm4Opcode = static_cast<pm4::Opcode>(0xff);
constexpr std::size_t kBadPacketDwords = 3;
// Below what COUNT can say, and a multiple of 4.
constexpr std::uint64_t kSdmaFillBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kDmaDataBytes = std::uint64_t{1} << 20;

}  // namespace

Commands::Commands(const Device& device, unsigned ip) : ip_(ip), sdma_(&sdma::format_of_family(device.info().family)) {}

Commands& Commands::nop(std::size_t dwords) {
  if (is_sdma())
    sdma::nop(dwords_, dwords);
  else
    pm4::nop(dwords_, dwords);
  return *this;
}

Commands& Commands::write(std::uint64_t address, std::span<const std::uint32_t> words) {
  if (is_sdma())
    sdma::write_linear(dwords_, address, words, *sdma_);
  else
    pm4::write_data(dwords_, address, words);
  return *this;
}

Commands& Commands::fill(std::uint64_t address, std::uint64_t size, std::uint32_t word) {
  const std::uint64_t most = is_sdma() ? kSdmaFillBytes : kDmaDataBytes;
  for (std::uint64_t done = 0; done < size; done += most) {
    const auto bytes = static_cast<std::uint32_t>(std::min(size - done, most));
    if (is_sdma())
      sdma::const_fill(dwords_, address + done, word, bytes, sdma::FillSize::kDword, *sdma_);
    else
      pm4::dma_data(dwords_, {.src_sel = pm4::DmaSrc::kData, .src = word, .dst = address + done, .bytes = bytes});
  }
  return *this;
}

Commands& Commands::copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  if (is_sdma()) {
    sdma::copy_linear_split(dwords_, destination, source, size, *sdma_);
    return *this;
  }
  for (std::uint64_t done = 0; done < size; done += kDmaDataBytes)
    pm4::dma_data(dwords_, {.src = source + done,
                            .dst = destination + done,
                            .bytes = static_cast<std::uint32_t>(std::min(size - done, kDmaDataBytes))});
  return *this;
}

Commands& Commands::wait_equal(std::uint64_t address, std::uint32_t value) {
  if (is_sdma())
    sdma::poll_regmem(dwords_, {.addr = address, .reference = value});
  else
    pm4::wait_reg_mem(dwords_, {.addr = address, .reference = value});
  return *this;
}

Commands& Commands::bad_opcode() {
  if (is_sdma()) {
    dwords_.push_back(kUnknownSdmaOpcode);
    return *this;
  }
  dwords_.push_back(pm4::header(kUnknownPm4Opcode, kBadPacketDwords));
  dwords_.insert(dwords_.end(), kBadPacketDwords - 1, 0);
  return *this;
}

std::span<const std::uint32_t> Commands::padded() {
  const std::size_t excess = dwords_.size() % kIbAlignDwords;
  if (excess != 0 || dwords_.empty()) {
    for (std::size_t left = kIbAlignDwords - excess; left > 0; --left) nop();
  }
  return dwords_;
}

}  // namespace drmtest
