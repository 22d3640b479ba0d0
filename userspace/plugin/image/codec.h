// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Values of format.h <-> protobuf bytes. The only user of generated code. Decoding counts submessages before it
// allocates them (wire.h); values are as found, see validate().
#pragma once

#include <span>
#include <string>

#include "plugin/image/format.h"
#include "plugin/image/index.h"

namespace plugin::image {

[[nodiscard]] std::string encode(const Manifest& manifest);
[[nodiscard]] std::string encode(const File& file, std::uint64_t session_id);

struct DecodedFile {
  std::uint64_t session_id = 0;
  File file;  // without BOs: they are in the index
};
base::Result<Manifest> decode_manifest(std::span<const std::byte> bytes);
base::Result<DecodedFile> decode_file(std::span<const std::byte> bytes);

// Version 1: each file has a manifest, its topology and its index in protobuf.
struct Manifest1 {
  std::uint64_t session_id = 0;
  FileEntry file;
};
struct DecodedFile1 {
  std::uint64_t session_id = 0;
  File file;
  std::vector<topology::Node> nodes;
  Index index;  // the BOs are here, not in `file`
};
base::Result<Manifest1> decode_manifest_1(std::span<const std::byte> bytes);
base::Result<DecodedFile1> decode_file_1(std::span<const std::byte> bytes);

}  // namespace plugin::image
