// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory of one kind and nothing else: between two stages the process has no queue, so an image of it has only BOs.
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 256 * kKiB;
constexpr std::uint64_t kSeed = 0xb1;
constexpr std::uint32_t kFillWord = 0xf111f111;

class BoKind : public Workload {
 public:
  explicit BoKind(MemoryKind kind) : kind_(kind), name_("bo_" + std::string(name_of(kind))) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] unsigned stages() const override { return 3; }
  [[nodiscard]] bool maps_vram() const override { return kind_ == MemoryKind::kVram; }

  base::Status setup(const Gpu& gpu) override {
    gpu_ = gpu;
    ASSIGN_OR_RETURN(GpuMemory source, GpuMemory::allocate(gpu, kind_, kSize));
    ASSIGN_OR_RETURN(GpuMemory target, GpuMemory::allocate(gpu, kind_, kSize));
    fill_pattern(source.bytes(), kSeed);
    source_.emplace(std::move(source));
    target_.emplace(std::move(target));
    // With this first queue the process has mapped its doorbells.
    return run_alone(gpu_, SdmaCommands(gpu_).fill(target_->gpu_address(), kSize, kFillWord));
  }

  base::Status advance(unsigned stage) override {
    if (stage == 0) {
      TRY(expect_word(*target_));
      return run_alone(gpu_, SdmaCommands(gpu_).copy(target_->gpu_address(), source_->gpu_address(), kSize));
    }
    if (stage == 1) {
      TRY(expect_pattern(*target_));
      return run_alone(gpu_, SdmaCommands(gpu_).fill(source_->gpu_address(), kSize, kFillWord));
    }
    TRY(expect_word(*source_));
    return run_alone(gpu_, SdmaCommands(gpu_).copy(source_->gpu_address(), target_->gpu_address(), kSize));
  }

  base::Status verify() override {
    TRY(expect_pattern(*target_));
    return expect_pattern(*source_);
  }

 private:
  static base::Status expect_word(const GpuMemory& memory) {
    const auto at = find_other_word(memory.bytes(), kFillWord);
    if (!at.has_value()) return {};
    return base::Error(EIO, "what the GPU filled is wrong at word " + std::to_string(*at));
  }
  static base::Status expect_pattern(const GpuMemory& memory) {
    const auto at = find_mismatch(memory.bytes(), kSeed);
    if (!at.has_value()) return {};
    return base::Error(EIO, "what the GPU copied is wrong at byte " + std::to_string(*at));
  }

  MemoryKind kind_;
  std::string name_;
  Gpu gpu_;
  std::optional<GpuMemory> source_;
  std::optional<GpuMemory> target_;
};

}  // namespace

std::unique_ptr<Workload> make_bo_gtt() { return std::make_unique<BoKind>(MemoryKind::kGtt); }
std::unique_ptr<Workload> make_bo_userptr() { return std::make_unique<BoKind>(MemoryKind::kUserptr); }
std::unique_ptr<Workload> make_bo_vram() { return std::make_unique<BoKind>(MemoryKind::kVram); }

}  // namespace kfdtest
