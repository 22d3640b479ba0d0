// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Pages of the program as an SVM range: its attributes, and what CPU and GPU see in it. Between two stages the process
// has no queue.
#include <linux/kfd_ioctl.h>

#include <algorithm>
#include <array>

#include "base/mapping.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

constexpr std::size_t kSize = 64 * kKiB;
constexpr std::size_t kHalf = kSize / 2;
constexpr std::uint64_t kSeed = 0x57;
constexpr std::uint32_t kFillWord = 0x5f111f11;
constexpr std::uint32_t kFlags =
    KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT | kfd::abi::kSvmAlwaysMapped;
constexpr std::uint32_t kGranularity = 5;  // the driver's default is 9
// The default of a location is KFD_IOCTL_SVM_LOCATION_UNDEFINED.
constexpr std::uint32_t kPreferred = KFD_IOCTL_SVM_LOCATION_SYSMEM;

class SvmRange : public Workload {
 public:
  [[nodiscard]] std::string_view name() const override { return "svm_range"; }
  [[nodiscard]] bool uses_svm() const override { return true; }
  [[nodiscard]] unsigned stages() const override { return 3; }

  base::Status setup(const Gpu& gpu) override {
    gpu_ = gpu;
    ASSIGN_OR_RETURN(pages_, base::Mapping::anonymous(kSize, "pages for SVM"));
    fill_pattern(first(), kSeed);
    const kfd_ioctl_svm_attribute attributes[] = {{KFD_IOCTL_SVM_ATTR_SET_FLAGS, kFlags},
                                                  {KFD_IOCTL_SVM_ATTR_GRANULARITY, kGranularity},
                                                  {KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, kPreferred},
                                                  {KFD_IOCTL_SVM_ATTR_ACCESS, gpu.gpu_id}};
    TRY(ioctls_of(gpu_).client().svm_set(address(), kSize, attributes));
    return run_alone(gpu_, SdmaCommands(gpu_).fill(address() + kHalf, kHalf, kFillWord));
  }

  base::Status advance(unsigned stage) override {
    TRY(expect_attributes());
    if (stage == 0) {
      TRY(expect_word(second()));
      return run_alone(gpu_, SdmaCommands(gpu_).copy(address() + kHalf, address(), kHalf));
    }
    if (stage == 1) {
      TRY(expect_pattern(second()));
      return run_alone(gpu_, SdmaCommands(gpu_).fill(address(), kHalf, kFillWord));
    }
    TRY(expect_word(first()));
    return run_alone(gpu_, SdmaCommands(gpu_).copy(address(), address() + kHalf, kHalf));
  }

  base::Status verify() override {
    TRY(expect_attributes());
    TRY(expect_pattern(first()));
    return expect_pattern(second());
  }

 private:
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(pages_.data()); }
  [[nodiscard]] std::span<std::byte> first() const { return pages_.bytes().first(kHalf); }
  [[nodiscard]] std::span<std::byte> second() const { return pages_.bytes().subspan(kHalf); }

  [[nodiscard]] base::Status expect_attributes() const {
    std::array<kfd_ioctl_svm_attribute, 4> got = {{{KFD_IOCTL_SVM_ATTR_SET_FLAGS, 0},
                                                   {KFD_IOCTL_SVM_ATTR_GRANULARITY, 0},
                                                   {KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0},
                                                   {KFD_IOCTL_SVM_ATTR_ACCESS, gpu_.gpu_id}}};
    TRY(ioctls_of(gpu_).client().svm_get(address(), kSize, got));
    if ((got[0].value & kFlags) == kFlags && got[1].value == kGranularity && got[2].value == kPreferred &&
        got[3].type == KFD_IOCTL_SVM_ATTR_ACCESS)
      return {};
    return base::Error(EIO, "flags " + std::to_string(got[0].value) + ", granularity " + std::to_string(got[1].value) +
                                ", preferred location " + std::to_string(got[2].value) + ", access " +
                                std::to_string(got[3].type) + " are not those that were asked for");
  }

  static base::Status expect_word(std::span<const std::byte> bytes) {
    const auto at = find_other_word(bytes, kFillWord);
    if (!at.has_value()) return {};
    return base::Error(EIO, "what the GPU filled is wrong at word " + std::to_string(*at));
  }
  static base::Status expect_pattern(std::span<const std::byte> bytes) {
    const auto at = find_mismatch(bytes, kSeed);
    if (!at.has_value()) return {};
    return base::Error(EIO, "what the GPU copied is wrong at byte " + std::to_string(*at));
  }

  Gpu gpu_;
  base::Mapping pages_;
};

}  // namespace

std::unique_ptr<Workload> make_svm_range() { return std::make_unique<SvmRange>(); }

}  // namespace kfdtest
