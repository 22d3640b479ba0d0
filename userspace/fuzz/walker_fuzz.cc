// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The page walker over hostile tables in VRAM, guest RAM and a peer's BAR, chained and self-referencing. VRAM and RAM
// are heap blocks of their exact size. Whatever the tables say, a translation lies inside one of them.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/input.h"
#include "vasic/vasic_abi.h"
#include "vasicd/mem/gpu_memory.h"

namespace {

using fuzz::check;
using fuzz::Input;
using namespace vasicd;

constexpr std::size_t kVram = 24 * kGpuPageSize;
constexpr std::size_t kRam = 8 * kGpuPageSize;
constexpr std::size_t kRamLow = 5 * kGpuPageSize;
constexpr std::uint64_t kPeerBar = std::uint64_t{1} << 40;
constexpr std::size_t kBar = std::size_t{8} << 20;
constexpr unsigned kMaxLookups = 32;
// The other GPU of the hive, whose VRAM begins at kSegment.
constexpr std::size_t kNode = 4 * kGpuPageSize;
constexpr std::uint64_t kSegment = 32 * kGpuPageSize;

// Not zeroed for each input: no assertion depends on what a run leaves in the peer's BAR.
std::vector<std::byte>& peer_bar() {
  static std::vector<std::byte> bar(kBar);
  return bar;
}

class Machine {
 public:
  explicit Machine(Input& in) : in_(in), hive_(in.below(4) == 0), format_(page_format(in.below(VASIC_PTE_GFX12 + 1))) {
    check(bus_.attach(0, kPeerBar), "the peer is on the bus");
  }

  void run() {
    while (!in_.empty()) {
      switch (in_.below(6)) {
        case 0:
          write_entry();
          break;
        case 1:
          write_bytes();
          break;
        case 2:
          memory_.set_page_directory(in_.below(VASIC_MAX_VMID + 2), address());
          break;
        case 3:
          memory_.invalidate(in_.u32());
          break;
        case 4:
          set_mc();
          break;
        default:
          for (unsigned n = 1 + in_.below(kMaxLookups); n > 0 && !in_.empty(); --n) look_up();
      }
    }
  }

 private:
  std::span<std::byte> vram() { return {vram_.get(), kVram}; }
  std::span<std::byte> node() { return {node_.get(), kNode}; }
  VramSpace space() { return hive_ ? VramSpace({vram(), node()}, 0, kSegment) : VramSpace(vram()); }
  std::span<std::byte> ram() { return {ram_.get(), kRam}; }

  // Something that a table entry or a base may hold: an address near the memories' edges, and flags.
  std::uint64_t address() {
    const std::uint64_t flags = in_.u8() | std::uint64_t{in_.u16()} << 48;
    switch (in_.below(6)) {
      case 0:
        return in_.below((kSegment + kNode) / kGpuPageSize + 2) * kGpuPageSize | flags;
      case 1:
        return (GuestRam::kHighBase + in_.below(8) * kGpuPageSize) | pte::kSystem | flags;
      case 2:
        return (kPeerBar + VASIC_OFF_VRAM - kGpuPageSize + in_.below(4) * kGpuPageSize) | pte::kSystem | flags;
      case 3:
        return (kPeerBar + kBar - in_.below(4) * kGpuPageSize) | pte::kSystem | flags;
      case 4:
        return in_.u64();
      default:
        return in_.below(kRamLow / kGpuPageSize + 2) * kGpuPageSize | pte::kSystem | flags;
    }
  }
  // One entry at an index that walks of small addresses use, or a run of equal ones.
  void write_entry() {
    const auto memory = in_.flag() ? vram() : ram();
    const std::uint64_t page = in_.below(static_cast<std::uint32_t>(memory.size() / kGpuPageSize));
    const std::uint64_t index = in_.flag() ? in_.below(4) : in_.u16() % 512u;
    std::uint64_t entry = address();
    const std::uint64_t step = in_.flag() ? kGpuPageSize : 0;
    for (std::uint64_t i = index; i < 512 && i <= index + in_.below(8); ++i, entry += step)
      std::memcpy(memory.data() + page * kGpuPageSize + i * 8, &entry, sizeof(entry));
  }
  void write_bytes() {
    const auto memory = in_.flag() ? vram() : ram();
    const std::size_t at = in_.u32() % memory.size();
    const auto bytes = in_.bytes(in_.u8());
    std::memcpy(memory.data() + at, bytes.data(), std::min(bytes.size(), memory.size() - at));
  }
  void set_mc() {
    McLayout layout;
    layout.vram_base = in_.flag() ? std::uint64_t{1} << 39 : in_.u64();
    layout.gart_base = in_.flag() ? 0x10000000 : in_.u64();
    layout.gart_size = in_.flag() ? in_.u16() * kGpuPageSize : in_.u64();
    layout.gart_table = in_.flag() ? in_.below(32) * kGpuPageSize : in_.u64();
    layout.table_bits = in_.below(32);
    layout.va_pages = in_.flag() ? 0 : in_.u64();
    (void)memory_.set_mc(layout);
  }

  static bool inside(std::span<const std::byte> outer, std::span<const std::byte> inner) {
    return inner.data() >= outer.data() && inner.data() + inner.size() <= outer.data() + outer.size();
  }
  void look_up() {
    const unsigned vmid = in_.below(VASIC_MAX_VMID + 1);
    GpuAddr va = in_.u64();
    // Mostly low indices at every level, where the tables are.
    if (in_.flag()) va &= 0x0000'0180'c060'3fff;
    const std::size_t limit = in_.flag() ? in_.u64() | 1 : in_.u16() + 1u;
    const auto access = in_.flag() ? Access::kWrite : Access::kRead;
    const auto found = memory_.map(vmid, va, limit, access);
    if (!found.ok()) return;
    check(!found->empty() && found->size() <= limit, "a run has between one and `limit` bytes");
    const auto peer = std::span(peer_bar()).subspan(VASIC_OFF_VRAM);
    check(inside(vram(), *found) || (hive_ && inside(node(), *found)) || inside(ram(), *found) ||
              inside(peer, *found) || memory_.is_prt(*found),
          "a run is inside a memory");
    // Reads both ends, so that AddressSanitizer sees a wrong one.
    volatile std::byte first = found->front();
    volatile std::byte last = found->back();
    (void)first, (void)last;
    (void)memory_.load64(vmid, va);
  }

  Input& in_;
  bool hive_;
  PageFormat format_;
  std::unique_ptr<std::byte[]> node_ = std::make_unique<std::byte[]>(kNode);
  std::unique_ptr<std::byte[]> vram_ = std::make_unique<std::byte[]>(kVram);
  std::unique_ptr<std::byte[]> ram_ = std::make_unique<std::byte[]>(kRam);
  Bus bus_{GuestRam(ram(), kRamLow), {{.bytes = peer_bar()}}};
  GpuMemory memory_{space(), bus_, format_};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  Machine(in).run();
  return 0;
}
