// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An SDMA queue that waits in POLL_REGMEM, then copies a -> b -> c with odd addresses and sizes across pages; the
// bytes around every destination must stay.
#include <algorithm>
#include <array>
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

struct Shape {
  std::size_t source;
  std::size_t middle;
  std::size_t target;
  std::size_t size;
};

// Larger than 64 KiB and unaligned; a single byte; exactly a page; across one page boundary.
constexpr std::array kShapes = {
    Shape{.source = 3, .middle = 4093, .target = 17, .size = 200'001},
    Shape{.source = 4095, .middle = 1, .target = 8191, .size = 1},
    Shape{.source = 8192, .middle = 4096, .target = 12288, .size = 4096},
    Shape{.source = 4090, .middle = 4091, .target = 4092, .size = 13},
};
constexpr std::size_t kSize = 256 * kKiB;
constexpr std::uint64_t kSourceSeed = 0x5d;
constexpr std::byte kGuard{0xa5};

class SdmaChain : public Workload {
 public:
  [[nodiscard]] std::string_view name() const override { return "sdma_chain"; }
  [[nodiscard]] unsigned stages() const override { return kShapes.size(); }
  [[nodiscard]] bool maps_vram() const override { return true; }

  base::Status setup(const Gpu& gpu) override {
    ASSIGN_OR_RETURN(GpuMemory source, GpuMemory::allocate(gpu, MemoryKind::kUserptr, kSize));
    ASSIGN_OR_RETURN(GpuMemory middle, GpuMemory::allocate(gpu, MemoryKind::kVram, kSize));
    ASSIGN_OR_RETURN(GpuMemory target, GpuMemory::allocate(gpu, MemoryKind::kGtt, kSize));
    ASSIGN_OR_RETURN(GpuMemory words, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    fill_pattern(source.bytes(), kSourceSeed);
    std::fill(words.bytes().begin(), words.bytes().end(), std::byte{0});
    source_.emplace(std::move(source));
    middle_.emplace(std::move(middle));
    target_.emplace(std::move(target));
    words_.emplace(std::move(words));
    ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kSdma, {.ring_size = kPageSize}));
    queue_.emplace(std::move(queue));
    return {};
  }

  base::Status advance(unsigned stage) override {
    if (stage > 0) TRY(finish(stage - 1));
    std::fill(middle_->bytes().begin(), middle_->bytes().end(), kGuard);
    std::fill(target_->bytes().begin(), target_->bytes().end(), kGuard);
    const Shape& shape = kShapes[stage];
    SdmaCommands commands(queue_->gpu());
    commands.wait_equal(words_->gpu_address(kGate), stage + 1)
        .copy(middle_->gpu_address(shape.middle), source_->gpu_address(shape.source), shape.size)
        .copy(target_->gpu_address(shape.target), middle_->gpu_address(shape.middle), shape.size)
        .fence(words_->gpu_address(kFence), stage + 1);
    return queue_->submit(commands.dwords());
  }

  base::Status verify() override { return finish(kShapes.size() - 1); }

 private:
  static constexpr std::size_t kGate = 0;
  static constexpr std::size_t kFence = 64;

  base::Status finish(unsigned stage) {
    if (words_->load32(kFence) != stage) return base::Error(EIO, "the SDMA queue passed a closed gate");
    words_->store32(kGate, stage + 1);
    TRY(wait_for_word(*words_, kFence, stage + 1, limit_));
    const Shape& shape = kShapes[stage];
    TRY(expect_copy(*middle_, shape.middle, shape));
    return expect_copy(*target_, shape.target, shape);
  }

  static base::Status expect_copy(const GpuMemory& memory, std::size_t at, const Shape& shape) {
    const auto bytes = memory.bytes();
    const auto is_guard = [](std::byte byte) { return byte == kGuard; };
    if (find_mismatch(bytes.subspan(at, shape.size), kSourceSeed, shape.source).has_value())
      return base::Error(EIO, "copy of " + std::to_string(shape.size) + " bytes to " +
                                  std::string(name_of(memory.kind())) + " differs");
    const auto before = bytes.first(at);
    const auto after = bytes.subspan(at + shape.size);
    if (std::all_of(before.begin(), before.end(), is_guard) && std::all_of(after.begin(), after.end(), is_guard))
      return {};
    return base::Error(EIO, "copy of " + std::to_string(shape.size) + " bytes wrote outside its destination");
  }

  std::optional<GpuMemory> source_;
  std::optional<GpuMemory> middle_;
  std::optional<GpuMemory> target_;
  std::optional<GpuMemory> words_;
  std::optional<RingQueue> queue_;
};

}  // namespace

std::unique_ptr<Workload> make_sdma_chain() { return std::make_unique<SdmaChain>(); }

}  // namespace kfdtest
