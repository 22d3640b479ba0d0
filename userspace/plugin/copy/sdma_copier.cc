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

class SdmaCopier final : public Copier {
 public:
  SdmaCopier(std::unique_ptr<SdmaEngine> engine, const packets::sdma::Format& format)
      : engine_(std::move(engine)), format_(format) {}

  ~SdmaCopier() override { drain(); }

  Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) override {
    return run(dmabuf, size, [&](const GpuMemory& bo) { return read_slices(bo, size, sink); });
  }

  Outcome write(int dmabuf, std::uint64_t size, const Source& source) override {
    return run(dmabuf, size, [&](const GpuMemory& bo) { return write_slices(bo, size, source); });
  }

 private:
  enum class Direction { kFromBo, kToBo };

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
      if (i < slices) TRY(submit(i, bo, size, Direction::kFromBo));
      if (i == 0) continue;
      const std::size_t done = (i - 1) % kSlots;
      TRY(engine_->wait(done));
      TRY(sink(engine_->staging(done).first(slice_length(i - 1, size))));
    }
    return {};
  }

  Status write_slices(const GpuMemory& bo, std::uint64_t size, const Source& source) {
    const std::uint64_t slices = (size + kSliceSize - 1) / kSliceSize;
    for (std::uint64_t i = 0; i < slices; ++i) {
      const std::size_t slot = i % kSlots;
      TRY(engine_->wait(slot));
      TRY(source(engine_->staging(slot).first(slice_length(i, size))));
      TRY(submit(i, bo, size, Direction::kToBo));
    }
    for (std::size_t slot = 0; slot < kSlots; ++slot) TRY(engine_->wait(slot));
    return {};
  }

  static std::size_t slice_length(std::uint64_t index, std::uint64_t size) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(kSliceSize, size - index * kSliceSize));
  }

  Status submit(std::uint64_t index, const GpuMemory& bo, std::uint64_t size, Direction direction) {
    const std::size_t slot = index % kSlots;
    const std::uint64_t in_bo = bo.va() + index * kSliceSize;
    const std::uint64_t in_buffer = engine_->staging_va(slot);
    packets::Words words;
    if (direction == Direction::kFromBo)
      append_copy(words, in_bo, in_buffer, slice_length(index, size), format_);
    else
      append_copy(words, in_buffer, in_bo, slice_length(index, size), format_);
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
