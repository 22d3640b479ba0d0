// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/copy/sdma_copier.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "plugin/copy/sdma_packet.h"

namespace plugin::copy {
namespace {

using base::Error;
using base::Status;

// A slice never needs more packets than fit its IB.
static_assert(packet_count(kSliceSize, packets::sdma::kFormat2) * kMaxPacketDwords + kIbAlignDwords <= kIbDwords);

static_assert(kStepSize <= max_packet_bytes(packets::sdma::kFormat2));
// The most that one submission fills, so that it ends within the time that a slice may take.
constexpr std::uint64_t kMaxFill = 256U << 20;

class SdmaCopier final : public Copier {
 public:
  SdmaCopier(std::unique_ptr<SdmaEngine> engine, const packets::sdma::Format& format)
      : engine_(std::move(engine)), format_(format) {}

  ~SdmaCopier() override { drain(); }

  Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) override {
    return run(dmabuf, size, [&](const GpuMemory& bo) { return read_slices(bo, size, sink); });
  }

  Outcome write(int dmabuf, std::uint64_t size, Source& source) override {
    return run(dmabuf, size, [&](const GpuMemory& bo) { return write_slices(bo, size, source); });
  }

 private:
  template <typename Body>
  Outcome run(int dmabuf, std::uint64_t size, const Body& body) {
    if (engine_->hung()) return Failure{FailureKind::kUnreachable, Error(EIO, "the DMA ring did not answer before")};
    auto bo = engine_->import(dmabuf, size);
    if (!bo.ok()) return Failure{FailureKind::kUnreachable, std::move(bo).error()};
    Status status = body(**bo);
    drain();  // nothing may be in flight when the BO goes, nor when the next one comes
    if (!status.ok()) return Failure{FailureKind::kBroken, std::move(status).error()};
    return {};
  }

  Status read_slices(const GpuMemory& bo, std::uint64_t size, const Sink& sink) {
    const std::uint64_t slices = (size + kSliceSize - 1) / kSliceSize;
    for (std::uint64_t i = 0; i <= slices; ++i) {
      if (i < slices) TRY(submit_read(i, bo, size));
      if (i == 0) continue;
      const std::size_t done = (i - 1) % kSlots;
      TRY(engine_->wait(done));
      TRY(sink(engine_->staging(done).first(slice_length(i - 1, size))));
    }
    return {};
  }

  // What is stored goes through the staging buffers; zeros are made by the GPU.
  Status write_slices(const GpuMemory& bo, std::uint64_t size, Source& source) {
    std::uint64_t zeros = 0;  // the next bytes
    std::uint64_t at = 0;
    for (std::size_t slot = 0; at < size; slot = (slot + 1) % kSlots) {
      TRY(engine_->wait(slot));
      packets::Words words;
      std::size_t used = 0;
      std::uint64_t filled = 0;
      while (at < size && has_room(words)) {
        if (zeros == 0) zeros = source.skip_zeros(size - at);
        std::uint64_t step = std::min<std::uint64_t>(kStepSize, size - at);
        if (zeros != 0) {
          step = std::min({zeros, kMaxFill - filled, max_packet_bytes(format_)});
          if (step == 0) break;
          append_zeros(words, bo.va() + at, step, format_);
          zeros -= step;
          filled += step;
        } else {
          if (step > kSliceSize - used) break;
          TRY(source.read(engine_->staging(slot).subspan(used, step)));
          append_copy(words, engine_->staging_va(slot) + used, bo.va() + at, step, format_);
          used += step;
        }
        at += step;
      }
      TRY(submit(slot, words, bo));
    }
    for (std::size_t slot = 0; slot < kSlots; ++slot) TRY(engine_->wait(slot));
    return {};
  }

  static std::size_t slice_length(std::uint64_t index, std::uint64_t size) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(kSliceSize, size - index * kSliceSize));
  }

  Status submit_read(std::uint64_t index, const GpuMemory& bo, std::uint64_t size) {
    const std::size_t slot = index % kSlots;
    packets::Words words;
    append_copy(words, bo.va() + index * kSliceSize, engine_->staging_va(slot), slice_length(index, size), format_);
    return submit(slot, words, bo);
  }

  static bool has_room(const packets::Words& words) {
    return words.size() + kMaxPacketDwords + kIbAlignDwords <= kIbDwords;
  }

  Status submit(std::size_t slot, packets::Words& words, const GpuMemory& bo) {
    pad(words);
    const std::array bos = {&bo};
    return engine_->submit(slot, words, bos);
  }

  void drain() {
    for (std::size_t slot = 0; slot < kSlots; ++slot) (void)engine_->wait(slot);
  }

  std::unique_ptr<SdmaEngine> engine_;
  const packets::sdma::Format& format_;
};

}  // namespace

std::unique_ptr<Copier> make_sdma_copier(std::unique_ptr<SdmaEngine> engine, const packets::sdma::Format& format) {
  return std::make_unique<SdmaCopier>(std::move(engine), format);
}

}  // namespace plugin::copy
