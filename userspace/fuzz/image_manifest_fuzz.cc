// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The manifest of a dump, behind its checksum: what the plugin takes of it has known values, and is the same again when
// it is written and read.
#include <span>
#include <string>

#include "fuzz/input.h"
#include "plugin/image/codec.h"

namespace {

using plugin::image::FileEntry;
using plugin::image::Kind;
using plugin::image::Manifest;

void check_entry(const FileEntry& entry) {
  fuzz::check(entry.index_length != 0 || entry.kind != Kind::kKfd, "a file with a state has an index");
  fuzz::check(entry.index_length != 0 || (entry.pages_length == 0 && entry.sources.empty()),
              "only a file with an index has contents");
  for (const auto& source : entry.sources)
    fuzz::check(source.depth <= plugin::image::kMaxDepth && (source.depth != 0 || source.id != entry.id),
                "an earlier dump is not too far away");
  fuzz::check(entry.metadata_length <= plugin::image::kMaxMetadata && entry.index_length <= plugin::image::kMaxIndex,
              "no file is larger than a reader accepts");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = plugin::image::decode_manifest(std::as_bytes(std::span(data, size)));
  if (!manifest.ok()) {
    fuzz::check(!manifest.error().message().empty(), "a refusal has a reason");
    return 0;
  }
  const std::string written = plugin::image::encode(*manifest);
  const auto again = plugin::image::decode_manifest(std::as_bytes(std::span(written)));
  fuzz::check(again.ok() && plugin::image::encode(*again) == written, "what was read can be written and read");
  if (!plugin::image::validate(*manifest).ok()) return 0;
  for (const FileEntry& entry : manifest->files) check_entry(entry);
  return 0;
}
