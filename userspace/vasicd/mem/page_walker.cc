// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The walk. The guest may write to its tables at any time, so each entry is loaded once, atomically, and then checked.
#include "vasicd/mem/page_walker.h"

#include <algorithm>
#include <atomic>

namespace vasicd {
namespace {

constexpr std::uint64_t kEntrySize = sizeof(std::uint64_t);
constexpr unsigned kDirectoryBits = 9;

std::uint64_t load_entry(std::span<std::byte> table, std::uint64_t index) {
  auto* words = reinterpret_cast<std::uint64_t*>(table.data());
  return std::atomic_ref(words[index]).load(std::memory_order_acquire);
}

}  // namespace

std::span<std::byte> PageWalker::target(std::uint64_t entry, std::uint64_t offset, std::uint64_t limit) const {
  const std::uint64_t address = (entry & format_.address_mask) + offset;
  return (entry & pte::kSystem) != 0 ? bus_.resolve(address, limit) : vram_.resolve(address, limit);
}

std::span<std::byte> PageWalker::table(std::uint64_t entry, std::uint64_t size) const {
  const std::uint64_t address = entry & format_.address_mask;
  const auto bytes =
      format_.directory_is_mc ? vram_.resolve(address - vram_base_ + vram_.own_offset(), size) : target(entry, 0, size);
  return bytes.size() == size ? bytes : std::span<std::byte>{};
}

PageWalker::Result PageWalker::leaf(std::uint64_t entry, std::uint64_t offset, std::uint64_t size,
                                    bool complete) const {
  const auto bytes = target(entry, offset, size);
  const std::uint64_t usable = bytes.size() & ~kGpuPageMask;
  if (usable == 0) return FaultKind::kBadTable;
  return Translation{.host = bytes.data(),
                     .size = usable,
                     .readable = (entry & pte::kReadable) != 0,
                     .writable = (entry & pte::kWriteable) != 0,
                     .complete = complete || usable < size};
}

PageWalker::Result PageWalker::absent(std::uint64_t entry, std::uint64_t size, bool complete) const {
  const bool is_prt = (entry & format_.prt) != 0;
  if (is_prt && (entry & pte::kValid) == 0)
    return Translation{.host = nullptr, .size = size, .readable = true, .writable = true, .complete = complete};
  const bool is_final = is_prt || (format_.no_retry != 0 && (entry & format_.no_retry) == format_.no_retry);
  return is_final ? FaultKind::kRefused : FaultKind::kNotPresent;
}

PageWalker::Result PageWalker::walk(std::uint64_t pd, GpuAddr va, std::uint64_t want) const {
  if (pd == 0) return FaultKind::kNotPresent;
  va &= (std::uint64_t{1} << format_.va_bits) - 1;
  // The base of the root has no flags where directories have none.
  std::uint64_t entry = format_.directory_is_mc ? pd | pte::kValid : pd;
  unsigned shift = static_cast<unsigned>(kGpuPageShift) + table_bits_ + kDirectoryBits * (format_.levels - 1);
  for (unsigned level = 0; level < format_.levels; ++level, shift -= kDirectoryBits) {
    if ((entry & pte::kValid) == 0) return FaultKind::kNotPresent;
    // The root is as large as the address space, the others have their nine bits.
    const bool is_root = level == 0;
    const std::uint64_t index = is_root ? va >> shift : (va >> shift) & ((1u << kDirectoryBits) - 1);
    const auto directory = table(entry, ((index >> kDirectoryBits) + 1) << kDirectoryBits << 3);
    if (directory.empty()) return FaultKind::kBadTable;
    entry = load_entry(directory, index);
    if ((entry & format_.huge) == 0) continue;
    const std::uint64_t size = std::uint64_t{1} << shift;
    const std::uint64_t offset = va & (size - 1) & ~kGpuPageMask;
    if (!is_valid(entry)) return absent(entry, size - offset, true);
    if (is_root) return FaultKind::kBadTable;
    return leaf(entry, offset, size - offset, true);
  }
  if ((entry & pte::kValid) == 0) return FaultKind::kNotPresent;
  const std::uint64_t count = std::uint64_t{1} << table_bits_;
  const auto pages = table(entry, count * kEntrySize);
  if (pages.empty()) return FaultKind::kBadTable;
  return walk_flat(pages, (va >> kGpuPageShift) & (count - 1), want);
}

PageWalker::Result PageWalker::walk_flat(std::span<std::byte> table, std::uint64_t index, std::uint64_t want) const {
  const std::uint64_t count = table.size() / kEntrySize;
  if (index >= count) return FaultKind::kBadTable;
  const std::uint64_t first = load_entry(table, index);
  const bool is_page = is_valid(first);
  // These bits must be equal in neighbouring PTEs for their pages to form one run.
  const std::uint64_t flags = pte::kValid | pte::kSystem | pte::kReadable | pte::kWriteable | format_.prt;
  if (!is_page) {
    const auto none = absent(first, kGpuPageSize, false);
    if (!none.ok()) return none;
  }

  std::uint64_t pages = 1;
  bool complete = false;
  while (pages * kGpuPageSize < want && !complete) {
    complete = index + pages >= count;
    if (complete) break;
    const std::uint64_t next = load_entry(table, index + pages);
    const std::uint64_t expected = (first & format_.address_mask) + pages * kGpuPageSize;
    complete = ((next ^ first) & flags) != 0 || (is_page && (next & format_.address_mask) != expected);
    if (!complete) ++pages;
  }
  const std::uint64_t size = pages * kGpuPageSize;
  return is_page ? leaf(first, 0, size, complete) : absent(first, size, complete);
}

}  // namespace vasicd
