// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/tests/shared_holding.h"

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <ranges>
#include <span>

#include "base/mapping.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"

namespace kfdtest {
namespace {

base::Status sync(int dmabuf, std::uint64_t flags) {
  dma_buf_sync args{.flags = flags};
  while (::ioctl(dmabuf, DMA_BUF_IOCTL_SYNC, &args) != 0)
    if (errno != EINTR) return base::Error::from_errno(errno, "DMA_BUF_IOCTL_SYNC");
  return {};
}

// Lets the CPU work with the bytes of a DMA-buf.
base::Status with_bytes(int dmabuf, const std::function<void(std::span<std::byte>)>& work) {
  ASSIGN_OR_RETURN(const base::Mapping mapping, base::Mapping::shared(dmabuf, kSharedSize, 0, "mapping a DMA-buf"));
  TRY(sync(dmabuf, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
  work(mapping.bytes());
  return sync(dmabuf, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
}

}  // namespace

base::Result<Held> Held::allocate(const Gpu& gpu, As as) {
  if (as == As::kGem) {
    ASSIGN_OR_RETURN(GemMemory object, GemMemory::create(gpu, kSharedSize));
    return Held(gpu, std::move(object));
  }
  if (as == As::kViews) {
    ASSIGN_OR_RETURN(GemViews views, GemViews::allocate(gpu, kSharedSize));
    return Held(gpu, std::move(views));
  }
  ASSIGN_OR_RETURN(GpuMemory bo, GpuMemory::allocate(gpu, MemoryKind::kVram, kSharedSize));
  return Held(gpu, std::move(bo));
}

base::Result<Held> Held::import(const Gpu& gpu, As as, int dmabuf) {
  if (as == As::kGem) {
    ASSIGN_OR_RETURN(GemMemory object, GemMemory::import(gpu, dmabuf, kSharedSize));
    return Held(gpu, std::move(object));
  }
  if (as == As::kViews) {
    ASSIGN_OR_RETURN(GemViews views, GemViews::import(gpu, dmabuf, kSharedSize));
    return Held(gpu, std::move(views));
  }
  if (as == As::kDmabuf) {
    base::UniqueFd kept(::fcntl(dmabuf, F_DUPFD_CLOEXEC, 0));
    if (!kept.valid()) return base::Error::from_errno(errno, "keeping a DMA-buf");
    return Held(gpu, std::move(kept));
  }
  ASSIGN_OR_RETURN(Block block, ioctls_of(gpu).import_dmabuf(gpu, dmabuf, kSharedSize));
  ASSIGN_OR_RETURN(GpuMemory bo, GpuMemory::take(gpu, std::move(block)));
  return Held(gpu, std::move(bo));
}

std::vector<GemMapping> Held::mappings() const {
  if (const auto* views = std::get_if<GemViews>(&what_)) return {views->mappings().begin(), views->mappings().end()};
  if (std::holds_alternative<base::UniqueFd>(what_)) return {};
  const auto* bo = std::get_if<GpuMemory>(&what_);
  const std::uint64_t address = bo != nullptr ? bo->gpu_address() : std::get<GemMemory>(what_).gpu_address();
  return {{.address = address, .size = kSharedSize, .offset = 0, .flags = 0}};
}

bool Held::is(const HeldMemory& memory) const {
  if (const auto* dmabuf = std::get_if<base::UniqueFd>(&what_)) return dmabuf->get() == memory.descriptor;
  const std::vector<GemMapping> all = mappings();
  return std::ranges::find(all, memory.address, &GemMapping::address) != all.end();
}

base::Result<base::UniqueFd> Held::export_dmabuf() const {
  if (const auto* bo = std::get_if<GpuMemory>(&what_))
    return ioctls_of(*gpu_).client().export_dmabuf(bo->block().handle);
  if (const auto* object = std::get_if<GemMemory>(&what_)) return object->export_dmabuf();
  if (const auto* views = std::get_if<GemViews>(&what_)) return views->export_dmabuf();
  base::UniqueFd copy(::fcntl(std::get<base::UniqueFd>(what_).get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return base::Error::from_errno(errno, "copying the descriptor of a DMA-buf");
  return copy;
}

base::Status Held::map_also(const Gpu& other) {
  const Gpu* const both[] = {gpu_, &other};
  return std::get<GpuMemory>(what_).map_to(both);
}

base::Status Held::fill(std::uint64_t seed) const {
  ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, export_dmabuf());
  return with_bytes(dmabuf.get(), [seed](std::span<std::byte> bytes) { fill_pattern(bytes, seed); });
}

base::Status Held::store32(const Gpu& by, std::size_t offset, std::uint32_t word) const {
  if (const auto* dmabuf = std::get_if<base::UniqueFd>(&what_))
    return with_bytes(dmabuf->get(), [&](std::span<std::byte> bytes) {
      std::memcpy(bytes.subspan(offset).data(), &word, sizeof(word));
    });
  // The last address, which is that of a part if there is such a one and it has the word.
  for (const GemMapping& each : mappings() | std::views::reverse)
    if (offset >= each.offset && offset - each.offset < each.size)
      return run_alone(by, SdmaCommands(by).fence(each.address + offset - each.offset, word));
  return base::Error(EINVAL, "no address has this word");
}

base::Result<std::vector<Piece>> Held::read(const Gpu& by, const GpuMemory& page) const {
  std::vector<Piece> pieces;
  if (const auto* dmabuf = std::get_if<base::UniqueFd>(&what_)) {
    pieces.push_back({.offset = 0, .bytes = {}});
    TRY(with_bytes(dmabuf->get(),
                   [&](std::span<std::byte> bytes) { pieces.front().bytes.assign(bytes.begin(), bytes.end()); }));
  }
  for (const GemMapping& each : mappings()) {
    const std::span<std::byte> bytes = page.bytes().first(each.size);
    std::ranges::fill(bytes, std::byte{0});
    TRY(run_alone(by, SdmaCommands(by).copy(page.gpu_address(), each.address, each.size)));
    pieces.push_back({.offset = each.offset, .bytes = {bytes.begin(), bytes.end()}});
  }
  return pieces;
}

}  // namespace kfdtest
