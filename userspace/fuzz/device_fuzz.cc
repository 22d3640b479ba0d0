// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A whole device against a guest that writes anything anywhere in BAR2 and in its RAM: commands, guest words,
// doorbells, page tables, rings and MQDs, between polls. Whatever it does, each command is answered once and a reset
// brings the device back.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "fuzz/input.h"
#include "vasicd/blocks/engines.h"
#include "vasicd/chip.h"
#include "vasicd/transport/loopback.h"

namespace {

using fuzz::check;
using fuzz::Input;
using vasicd::Loopback;
using vasicd::VirtualMachine;

constexpr std::uint64_t kRam = std::uint64_t{1} << 20;
constexpr std::uint64_t kRamLow = kRam / 2;
// The part of VRAM that the fuzzer writes to; the loopback allocates behind it.
constexpr std::uint64_t kVramUsed = std::uint64_t{1} << 20;
constexpr unsigned kMaxPolls = 8;
constexpr std::uint32_t kLastOpcode = VASIC_CMD_MES_RESET_QUEUE;

class Guest {
 public:
  Guest(VirtualMachine& vm, Input& in) : vm_(vm), in_(in), gpu_(vm, 0, vasicd::Engines::create) {}

  void run() {
    if (in_.flag()) check(gpu_.start(), "a fresh device starts");
    while (!in_.empty()) {
      act();
      gpu_.trace().lines.clear();
      gpu_.line().signals = 0;
    }
    const vasic_reply reset = gpu_.command(VASIC_CMD_RESET, {.reset = {.abi_version = VASIC_ABI_VERSION}});
    check(reset.status == VASIC_OK, "RESET is answered OK");
    check(gpu_.host_words().state == VASIC_HOST_READY, "a reset device is ready");
    check(gpu_.device().attention() == vasicd::Attention::kKicks, "nothing is mapped after a reset");
    check(gpu_.start(), "a reset device starts");
  }

 private:
  // Numbers that mean something to a device, in a byte or two.
  std::uint64_t number() {
    switch (in_.below(8)) {
      case 0:
        return in_.u8();
      case 1:
        return in_.u64();
      case 2:
        return std::uint64_t{1} << in_.below(64);
      case 3:
        return Loopback::kVramBase + page();
      case 4:
        return Loopback::kGartBase + in_.below(256) * vasicd::kGpuPageSize;
      case 5:
        return page();
      case 6:
        return vm_.bar_address(0) + in_.u16() * std::uint64_t{16};
      default:
        return in_.u16();
    }
  }
  std::uint64_t page() { return in_.below(256) * vasicd::kGpuPageSize; }

  void command() {
    const std::uint32_t opcode = in_.flag() ? in_.below(kLastOpcode + 2) : in_.u32();
    vasic_cmd cmd{};
    const unsigned count = in_.below(std::size(cmd.arg) + 1);
    for (unsigned i = 0; i < count; ++i) cmd.arg[i] = number();
    const vasic_reply reply = gpu_.command(opcode, cmd);
    check(reply.status <= VASIC_ESTATE, "a reply has a status of the ABI");
  }

  void write_memory(std::span<std::byte> memory) {
    const std::uint64_t at = in_.u16() * std::uint64_t{8} % memory.size();
    const auto bytes = in_.bytes(1u + in_.u8());
    const auto room = memory.subspan(static_cast<std::size_t>(at));
    std::memcpy(room.data(), bytes.data(), std::min(room.size(), bytes.size()));
  }
  // A page-table entry or a pointer, at a place where tables are likely.
  void write_entry() {
    const std::uint64_t flags = in_.u8() | std::uint64_t{in_.u16()} << 48;
    gpu_.vram_word(page() + in_.below(8) * 8u) = number() | flags;
  }

  void act() {
    switch (in_.below(10)) {
      case 0:
        return command();
      case 1:
        return write_memory(gpu_.vram().first(kVramUsed));
      case 2:
        return write_memory(vm_.ram());
      case 3:
        return write_entry();
      case 4:
        return gpu_.ring_doorbell(in_.u16() * 2u % (VASIC_DOORBELL_SIZE / 4), number());
      case 5:
        gpu_.guest_words().ih_rptr = in_.flag() ? in_.u32() : in_.u8() * 32u;
        return;
      case 6:
        gpu_.invalidate_tlb();
        return;
      case 7:
        // All pages in front of the doorbells that have a meaning, those that the host writes included.
        return write_memory(gpu_.region().bytes().first(VASIC_OFF_MQD + VASIC_MQD_MAX_SIZE));
      case 8:
        gpu_.clock().advance(number() % 1'000'000'000'000);
        return;
      default:
        for (unsigned polls = 1 + in_.below(kMaxPolls); polls > 0; --polls) gpu_.device().poll();
    }
  }

  VirtualMachine& vm_;
  Input& in_;
  Loopback gpu_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const auto chips = vasicd::chip_names();
  const std::string spec = std::string(chips[in.below(static_cast<std::uint32_t>(chips.size()))]) + ",vram=64M";
  VirtualMachine vm({.spec = spec.c_str(), .ram_size = kRam, .ram_low = kRamLow});
  Guest(vm, in).run();
  return 0;
}
