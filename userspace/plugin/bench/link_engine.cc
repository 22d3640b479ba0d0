// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/bench/link_engine.h"

#include <cerrno>
#include <cstring>

namespace plugin::bench {
namespace {

namespace sdma = packets::sdma;

constexpr std::size_t kNumbered = 1U << 20;

// A GPU address here is one of this process.
class Memory final : public copy::GpuMemory {
 public:
  explicit Memory(const std::byte* data) : data_(data) {}
  [[nodiscard]] std::uint64_t va() const override { return reinterpret_cast<std::uintptr_t>(data_); }

 private:
  const std::byte* data_;
};

// Bytes that cross the link: those that are copied.
std::uint64_t bytes_of(packets::WordView words) {
  std::uint64_t bytes = 0;
  while (!words.empty()) {
    const auto copy = sdma::op_of(words[0]) == sdma::kCopy ? sdma::decode_copy(words, sdma::kFormat4) : std::nullopt;
    const bool is_fill = sdma::op_of(words[0]) == sdma::kConstFill;
    if (copy) bytes += copy->bytes;
    words = words.subspan(copy ? sdma::kFormat4.copy_linear_dwords : is_fill ? sdma::kConstFillDwords : 1);
  }
  return bytes;
}

std::byte* pointer(std::uint64_t va) { return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(va)); }

}  // namespace

LinkEngine::LinkEngine(Rate& link, std::span<std::byte> bo, std::span<std::byte> staging, std::uint64_t copies)
    : link_(link), bo_(bo), copies_(copies) {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    slots_[i].staging = staging.subspan(i * copy::kSliceSize, copy::kSliceSize);
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

LinkEngine::~LinkEngine() = default;

base::Result<std::unique_ptr<copy::GpuMemory>> LinkEngine::import(int /*dmabuf*/, std::uint64_t size) {
  if (size > bo_.size()) return base::Error(EINVAL, "importing a BO");
  return std::unique_ptr<copy::GpuMemory>(std::make_unique<Memory>(bo_.data()));
}

base::Status LinkEngine::submit(std::size_t slot, packets::WordView words,
                                std::span<const copy::GpuMemory* const> /*bos*/) {
  {
    const std::lock_guard lock(mutex_);
    slots_[slot].words.assign(words.begin(), words.end());
    slots_[slot].under_way = true;
    queue_.push_back(slot);
  }
  changed_.notify_all();
  return {};
}

base::Status LinkEngine::wait(std::size_t slot) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !slots_[slot].under_way; });
  return {};
}

void LinkEngine::serve(const std::stop_token& stop) {
  for (;;) {
    std::size_t slot = 0;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      slot = queue_.front();
      queue_.pop_front();
    }
    execute(slots_[slot].words);
    {
      const std::lock_guard lock(mutex_);
      slots_[slot].under_way = false;
    }
    changed_.notify_all();
  }
}

void LinkEngine::execute(packets::WordView words) {
  const sdma::Format& format = sdma::kFormat4;
  const Rate::Clock::time_point end = link_.begin(bytes_of(words));
  for (packets::WordView rest = words; !rest.empty();) {
    std::size_t length = 1;
    if (sdma::op_of(rest[0]) == sdma::kCopy) {
      const auto copy = sdma::decode_copy(rest, format);
      std::memcpy(pointer(copy->dst), pointer(copy->src), copy->bytes);
      if (pointer(copy->src) >= bo_.data() && pointer(copy->src) < bo_.data() + bo_.size())
        number({pointer(copy->dst), copy->bytes});
      length = format.copy_linear_dwords;
    } else if (sdma::op_of(rest[0]) == sdma::kConstFill) {
      const auto fill = sdma::decode_const_fill(rest, format);
      std::memset(pointer(fill->dst), 0, fill->bytes);
      length = sdma::kConstFillDwords;
    }
    rest = rest.subspan(length);
  }
  std::this_thread::sleep_until(end);
}

void LinkEngine::number(std::span<std::byte> copy) {
  for (std::size_t at = 0; at + sizeof(copies_) <= copy.size(); at += kNumbered) {
    ++copies_;
    std::memcpy(copy.data() + at, &copies_, sizeof(copies_));
  }
}

}  // namespace plugin::bench
