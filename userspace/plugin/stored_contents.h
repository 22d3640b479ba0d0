// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An image as what copiers read from and write to.
#pragma once

#include "plugin/copy/copier.h"
#include "plugin/copy_meter.h"
#include "plugin/image/contents.h"
#include "plugin/image/writer.h"

namespace plugin {

// A BO's contents in the image. `contents` is borrowed, and so is `meter`, which is told what was read.
class StoredContents final : public copy::Source {
 public:
  StoredContents(const image::Contents& contents, std::size_t bo, CopyMeter& meter)
      : reader_(contents, bo), meter_(meter) {}
  std::uint64_t skip_zeros(std::uint64_t limit) override {
    const std::uint64_t zeros = reader_.skip_zeros(limit);
    meter_.add(zeros);
    return zeros;
  }
  base::Status read(std::span<std::byte> out) override {
    meter_.add(out.size());
    return reader_.read(out);
  }

 private:
  image::BoReader reader_;
  CopyMeter& meter_;
};

// Where the contents of a BO go, which was begun with FileWriter::begin_bo(). `writer` is borrowed.
inline copy::Sink sink_of(image::FileWriter& writer, std::uint64_t first_chunk) {
  return {[&writer, place = first_chunk](std::span<const std::byte> slice) mutable {
            const std::uint64_t here = place;
            place += image::chunk_count(slice.size(), image::kChunkSize);
            return writer.append(here, slice);
          },
          [&writer](std::uint64_t number) { return writer.settle(number); }};
}

}  // namespace plugin
