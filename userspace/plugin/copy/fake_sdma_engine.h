// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: an SDMA engine that executes packets on memory files. A submission is executed when it is waited for, the
// latest moment at which a GPU may, so that what a copier does too early has a wrong result.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "packets/sdma.h"
#include "plugin/copy/copier.h"
#include "plugin/copy/sdma_engine.h"

namespace plugin::copy {

// What the engine did, which outlives it.
struct FakeSdma {
  std::vector<std::size_t> bos_of_submissions;  // for each its number of BOs
  std::uint64_t copied = 0;                     // bytes that went through staging buffers
  std::uint64_t filled = 0;
  std::size_t imported = 0;
  std::size_t mapped = 0;  // BOs that have an address now
  std::size_t most_mapped = 0;
  std::size_t under_way = 0;
  std::size_t most_under_way = 0;
  std::optional<std::size_t> fail_submission;  // by its index
  std::optional<std::size_t> hang_submission;
};

class FakeSdmaEngine final : public SdmaEngine {
 public:
  FakeSdmaEngine(FakeSdma& state, const packets::sdma::Format& format) : state_(state), format_(format) {
    for (std::size_t i = 0; i < kSlots; ++i) {
      slots_[i].staging.resize(kSliceSize);
      slots_[i].va = place(slots_[i].staging.data(), kSliceSize);
    }
  }
  ~FakeSdmaEngine() override { EXPECT_EQ(state_.mapped, 0U); }

  base::Result<std::unique_ptr<GpuMemory>> import(int dmabuf, std::uint64_t size) override {
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
    if (data == MAP_FAILED) return base::Error::from_errno(errno, "importing a BO");
    ++state_.imported;
    state_.most_mapped = std::max(state_.most_mapped, ++state_.mapped);
    return std::unique_ptr<GpuMemory>(std::make_unique<Memory>(*this, static_cast<std::byte*>(data), size));
  }
  [[nodiscard]] std::span<std::byte> staging(std::size_t slot) const override { return slots_[slot].staging; }
  [[nodiscard]] std::uint64_t staging_va(std::size_t slot) const override { return slots_[slot].va; }
  [[nodiscard]] bool hung() const override { return hung_; }

  base::Status submit(std::size_t slot, packets::WordView words, std::span<const GpuMemory* const> bos) override {
    EXPECT_FALSE(slots_[slot].under_way) << "the slot is in use";
    EXPECT_FALSE(words.empty());
    EXPECT_LE(words.size(), kIbDwords);
    EXPECT_EQ(words.size() % 8, 0U);
    const std::size_t index = state_.bos_of_submissions.size();
    if (state_.fail_submission == index) return base::Error(ENOMEM, "submitting a copy to SDMA");
    state_.bos_of_submissions.push_back(bos.size());
    slots_[slot].words.assign(words.begin(), words.end());
    slots_[slot].bos.assign(bos.begin(), bos.end());
    slots_[slot].under_way = true;
    slots_[slot].index = index;
    state_.most_under_way = std::max(state_.most_under_way, ++state_.under_way);
    return {};
  }

  base::Status wait(std::size_t index) override {
    Slot& slot = slots_[index];
    if (!slot.under_way) return {};
    slot.under_way = false;
    --state_.under_way;
    if (hung_) return {};
    if (state_.hang_submission == slot.index) {
      hung_ = true;
      return base::Error(ETIMEDOUT, "SDMA did not finish a copy");
    }
    execute(slot);
    slot.bos.clear();
    return {};
  }

 private:
  struct Slot {
    mutable std::vector<std::byte> staging;
    std::uint64_t va = 0;
    packets::Words words;
    std::vector<const GpuMemory*> bos;
    bool under_way = false;
    std::size_t index = 0;
  };

  class Memory final : public GpuMemory {
   public:
    Memory(FakeSdmaEngine& engine, std::byte* data, std::uint64_t size)
        : engine_(engine), data_(data), size_(size), va_(engine.place(data, size)) {}
    ~Memory() override {
      for (const Slot& slot : engine_.slots_)
        EXPECT_TRUE(!slot.under_way || std::find(slot.bos.begin(), slot.bos.end(), this) == slot.bos.end())
            << "unmapped while it is copied";
      engine_.places_.erase(va_);
      --engine_.state_.mapped;
      ::munmap(data_, size_);
    }
    [[nodiscard]] std::uint64_t va() const override { return va_; }

   private:
    FakeSdmaEngine& engine_;
    std::byte* data_;
    std::uint64_t size_;
    std::uint64_t va_;
  };

  std::uint64_t place(std::byte* data, std::uint64_t size) {
    constexpr std::uint64_t kDistance = 1ULL << 36;
    const std::uint64_t va = next_va_ += kDistance;
    places_[va] = {data, static_cast<std::size_t>(size)};
    return va;
  }

  // What a packet may access: staging buffers, and BOs of its submission.
  std::byte* at(const Slot& slot, std::uint64_t va, std::uint64_t bytes) const {
    const auto place = std::prev(places_.upper_bound(va));
    EXPECT_LE(va + bytes, place->first + place->second.size());
    const bool is_staging =
        std::any_of(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.va == place->first; });
    const bool is_listed =
        std::any_of(slot.bos.begin(), slot.bos.end(), [&](const GpuMemory* bo) { return bo->va() == place->first; });
    EXPECT_TRUE(is_staging ? place->first == slot.va : is_listed) << "not of this submission";
    return place->second.data() + (va - place->first);
  }

  void execute(const Slot& slot) {
    namespace sdma = packets::sdma;
    for (packets::WordView rest(slot.words); !rest.empty();) {
      std::size_t length = 1;
      if (sdma::op_of(rest[0]) == sdma::kCopy) {
        const auto copy = sdma::decode_copy(rest, format_);
        ASSERT_TRUE(copy);
        std::memcpy(at(slot, copy->dst, copy->bytes), at(slot, copy->src, copy->bytes), copy->bytes);
        state_.copied += copy->bytes;
        length = format_.copy_linear_dwords;
      } else if (sdma::op_of(rest[0]) == sdma::kConstFill) {
        const auto fill = sdma::decode_const_fill(rest, format_);
        ASSERT_TRUE(fill && fill->data == 0);
        std::byte* memory = at(slot, fill->dst, fill->bytes);
        if (::madvise(memory, fill->bytes, MADV_REMOVE) != 0) std::memset(memory, 0, fill->bytes);
        state_.filled += fill->bytes;
        length = sdma::kConstFillDwords;
      } else {
        ASSERT_EQ(sdma::op_of(rest[0]), sdma::kNop);
      }
      ASSERT_LE(length, rest.size());
      rest = rest.subspan(length);
    }
  }

  FakeSdma& state_;
  const packets::sdma::Format& format_;
  std::array<Slot, kSlots> slots_;
  std::map<std::uint64_t, std::span<std::byte>> places_;
  std::uint64_t next_va_ = 0;
  bool hung_ = false;
};

}  // namespace plugin::copy
