// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Contents of memory of every kind: seeded by the CPU, filled and copied round by SDMA, read back by both.
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 1 * kMiB;
constexpr std::size_t kKinds = std::size(kAllMemoryKinds);
constexpr std::uint32_t kFillWord = 0xc0de0000;
constexpr std::uint64_t kSeed = 0xb0;

class BoPattern : public Workload {
 public:
  [[nodiscard]] std::string_view name() const override { return "bo_pattern"; }
  [[nodiscard]] unsigned stages() const override { return 3; }
  [[nodiscard]] bool maps_vram() const override { return true; }

  base::Status setup(const Gpu& gpu) override {
    for (const MemoryKind kind : kAllMemoryKinds) {
      ASSIGN_OR_RETURN(GpuMemory source, GpuMemory::allocate(gpu, kind, kSize));
      ASSIGN_OR_RETURN(GpuMemory target, GpuMemory::allocate(gpu, kind, kSize));
      fill_pattern(source.bytes(), kSeed + sources_.size());
      sources_.push_back(std::move(source));
      targets_.push_back(std::move(target));
    }
    ASSIGN_OR_RETURN(GpuMemory readback, GpuMemory::allocate(gpu, MemoryKind::kGtt, kKinds * kSize));
    readback_.emplace(std::move(readback));
    ASSIGN_OR_RETURN(GpuMemory fence, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    fence_.emplace(std::move(fence));
    ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kSdma));
    queue_.emplace(std::move(queue));
    return {};
  }

  base::Status advance(unsigned stage) override {
    TRY(finish_previous(stage));
    SdmaCommands commands(queue_->gpu());
    for (std::size_t i = 0; i < kKinds; ++i) {
      const std::uint64_t target = targets_[i].gpu_address();
      if (stage == 0) commands.fill(target, kSize, kFillWord + static_cast<std::uint32_t>(i));
      if (stage == 1) commands.copy(target, sources_[(i + 1) % kKinds].gpu_address(), kSize);
      if (stage == 2) commands.copy(readback_->gpu_address(i * kSize), target, kSize);
    }
    commands.fence(fence_->gpu_address(), stage + 1);
    return queue_->submit(commands.dwords());
  }

  base::Status verify() override {
    TRY(wait_for_word(*fence_, 0, stages(), limit_));
    for (std::size_t i = 0; i < kKinds; ++i) {
      TRY(expect_pattern(sources_[i].bytes(), i, "source"));
      TRY(expect_pattern(targets_[i].bytes(), (i + 1) % kKinds, "target"));
      TRY(expect_pattern(readback_->bytes().subspan(i * kSize, kSize), (i + 1) % kKinds, "copy back"));
    }
    return {};
  }

 private:
  base::Status finish_previous(unsigned stage) {
    if (stage == 0) return {};
    TRY(wait_for_word(*fence_, 0, stage, limit_));
    if (stage != 1) return {};
    for (std::size_t i = 0; i < kKinds; ++i)
      if (const auto at = find_other_word(targets_[i].bytes(), kFillWord + static_cast<std::uint32_t>(i)))
        return base::Error(
            EIO, "fill of " + std::string(name_of(targets_[i].kind())) + " is wrong at word " + std::to_string(*at));
    return {};
  }

  static base::Status expect_pattern(std::span<const std::byte> bytes, std::size_t source, std::string_view what) {
    const auto at = find_mismatch(bytes, kSeed + source);
    if (!at.has_value()) return {};
    return base::Error(EIO, std::string(what) + " that should hold " + std::string(name_of(kAllMemoryKinds[source])) +
                                "'s pattern differs at byte " + std::to_string(*at));
  }

  std::vector<GpuMemory> sources_;
  std::vector<GpuMemory> targets_;
  std::optional<GpuMemory> readback_;
  std::optional<GpuMemory> fence_;
  std::optional<RingQueue> queue_;
};

}  // namespace

std::unique_ptr<Workload> make_bo_pattern() { return std::make_unique<BoPattern>(); }

}  // namespace kfdtest
