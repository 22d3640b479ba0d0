// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The index of a file behind its checksum: it has one spelling, and what the plugin takes of it gives every page of the
// pages file but the header's to a chunk; other chunks lie in pages files of other files, behind their headers.
#include <algorithm>
#include <span>
#include <vector>

#include "fuzz/input.h"
#include "plugin/image/index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using plugin::image::Version;
  fuzz::Input in(data, size);
  // The choice: the length of the pages file, and of those of up to two other files; whether chunks are packed.
  const std::uint64_t pages_length = std::uint64_t{in.u16()} * plugin::image::kPageSize;
  const unsigned choice = in.below(6);
  std::vector<plugin::image::Source> sources(choice % 3);
  const bool packed = choice >= 3;
  for (auto& source : sources) source.pages_length = (std::uint64_t{in.u16()} + 2) * plugin::image::kPageSize;
  const auto bytes = std::as_bytes(in.bytes(size));
  const auto index = plugin::image::decode_index(bytes, packed);
  if (!index.ok()) return 0;
  const auto written = plugin::image::encode_index(*index);
  fuzz::check(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()), "an index has one spelling");
  if (!plugin::image::validate(*index, pages_length, Version::k2, sources).ok()) return 0;
  const auto begins = plugin::image::begins_of(pages_length, sources);
  std::vector<bool> pages(pages_length / plugin::image::kPageSize);  // those that a chunk has
  std::size_t next = 0;
  for (const auto& record : index->bos) {
    if (!plugin::image::stores_contents(record)) continue;
    const std::uint64_t count = plugin::image::chunk_count(record.bo.size, index->chunk_size);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto& chunk = index->chunks[next++];
      const auto length = plugin::image::chunk_length(record.bo.size, index->chunk_size, i);
      const auto part = plugin::image::stored_length(chunk, length, index->piece_size);
      fuzz::check(part <= length, "no chunk stores more than it has");
      if (part != 0 && chunk.offset >= pages_length) {
        const auto end = std::upper_bound(begins.begin(), begins.end(), chunk.offset);
        fuzz::check(end != begins.begin() && end != begins.end(), "a chunk lies in a pages file");
        fuzz::check(chunk.offset >= *(end - 1) + plugin::image::kPageSize && part <= *end - chunk.offset,
                    "a chunk lies behind the header of the pages file of another file");
        continue;
      }
      fuzz::check(part == 0 || (chunk.offset % plugin::image::kPageSize == 0 && chunk.offset + part <= pages_length),
                  "a chunk lies in the pages file, where a page begins");
      const std::uint64_t first = chunk.offset / plugin::image::kPageSize;
      for (std::uint64_t at = 0; at < part; at += plugin::image::kPageSize)
        pages[first + at / plugin::image::kPageSize] = true;
    }
  }
  fuzz::check(next == index->chunks.size(), "each chunk belongs to a BO");
  if (pages.empty()) return 0;
  fuzz::check(!pages[0], "no chunk lies in the header");
  fuzz::check(std::find(pages.begin() + 1, pages.end(), false) == pages.end(), "the chunks fill the pages file");
  return 0;
}
