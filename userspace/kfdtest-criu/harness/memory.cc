// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GPU memory through the session's driver.
#include "kfdtest-criu/harness/memory.h"

#include <atomic>
#include <string>

namespace kfdtest {
namespace {

template <typename T>
std::atomic_ref<T> word_at(std::byte* data, std::size_t offset) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(data + offset));
}

}  // namespace

std::string_view name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kVram:
      return "vram";
    case MemoryKind::kGtt:
      return "gtt";
    case MemoryKind::kUserptr:
      return "userptr";
  }
  return "?";
}

base::Result<GpuMemory> GpuMemory::allocate(const Gpu& gpu, MemoryKind kind, std::size_t size, MemoryUse use) {
  const std::size_t whole = (size + kPageSize - 1) / kPageSize * kPageSize;
  const auto in_context = [&](base::Error error) {
    return std::move(error).wrap(std::string(name_of(kind)) + " of " + std::to_string(size) + " bytes");
  };
  base::Mapping pages;
  if (kind == MemoryKind::kUserptr) {
    ASSIGN_OR_RETURN(pages, base::Mapping::anonymous(whole, "pages for a userptr"));
  }
  auto block = kind == MemoryKind::kUserptr ? gpu.driver->adopt(gpu, pages.bytes())
                                            : gpu.driver->allocate(gpu, kind, whole, use);
  if (!block.ok()) return in_context(std::move(block).error());
  auto memory = take(gpu, std::move(block).value());
  if (!memory.ok()) return in_context(std::move(memory).error());
  memory->pages_ = std::move(pages);
  return memory;
}

base::Result<GpuMemory> GpuMemory::take(const Gpu& gpu, Block block) {
  GpuMemory memory;
  memory.driver_ = gpu.driver;
  memory.block_ = std::move(block);
  TRY(memory.remap(gpu));
  return memory;
}

base::Status GpuMemory::remap(const Gpu& gpu) {
  const Gpu* const only[] = {&gpu};
  return map_to(only);
}

base::Status GpuMemory::map_to(std::span<const Gpu* const> gpus) { return driver_->map(block_, gpus); }

base::Status GpuMemory::unmap() { return driver_->map(block_, {}); }

void GpuMemory::release() {
  if (driver_ != nullptr) driver_->release(block_);
  driver_ = nullptr;
}

GpuMemory::GpuMemory(GpuMemory&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)),
      block_(std::move(other.block_)),
      pages_(std::move(other.pages_)) {}

GpuMemory& GpuMemory::operator=(GpuMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  driver_ = std::exchange(other.driver_, nullptr);
  block_ = std::move(other.block_);
  pages_ = std::move(other.pages_);
  return *this;
}

std::uint32_t GpuMemory::load32(std::size_t offset) const {
  return word_at<std::uint32_t>(block_.data, offset).load(std::memory_order_acquire);
}
std::uint64_t GpuMemory::load64(std::size_t offset) const {
  return word_at<std::uint64_t>(block_.data, offset).load(std::memory_order_acquire);
}
void GpuMemory::store32(std::size_t offset, std::uint32_t value) const {
  word_at<std::uint32_t>(block_.data, offset).store(value, std::memory_order_release);
}
void GpuMemory::store64(std::size_t offset, std::uint64_t value) const {
  word_at<std::uint64_t>(block_.data, offset).store(value, std::memory_order_release);
}

}  // namespace kfdtest
