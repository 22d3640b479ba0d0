// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The metadata of one file, of either version, behind their checksum: what the plugin takes of them names only GPUs and
// processes of the dump and files that it may make, and is the same again when it is written and read.
#include <algorithm>
#include <span>
#include <string>

#include "fuzz/input.h"
#include "plugin/image/codec.h"

namespace {

using plugin::image::File;
using plugin::image::KfdFile;
using plugin::image::Session;
using plugin::image::Version;

constexpr std::uint32_t kGpu = 200;
constexpr std::uint32_t kPid = 42;

Session session_of(Version version) {
  Session session;
  session.version = version;
  session.nodes.resize(1);
  session.nodes[0].gpu_id = kGpu;
  session.processes = {{kPid, "fuzz"}};
  return session;
}

void check_kfd(const KfdFile& kfd) {
  for (const auto& device : kfd.devices) fuzz::check(device.actual_id == kGpu, "a GPU of the dump");
  for (const auto& file : kfd.shared_files) {
    fuzz::check(file.name.find('/') == std::string::npos, "a shared file has no path");
    for (const auto& link : file.links) fuzz::check(plugin::image::is_link_remap(link), "a link has CRIU's name");
  }
}

void check_file(const File& file, const Session& session) {
  if (!plugin::image::validate(file, session).ok()) return;
  const std::uint32_t owner = plugin::image::owner_of(file);
  fuzz::check(session.version == Version::k1 || owner == kPid || owner == 0, "an owner of the dump");
  if (const auto* kfd = std::get_if<KfdFile>(&file.contents)) check_kfd(*kfd);
}

void check_version_1(std::span<const std::byte> bytes) {
  auto decoded = plugin::image::decode_file_1(bytes);
  if (!decoded.ok()) return;
  check_file(decoded->file, session_of(Version::k1));
  constexpr std::uint64_t kPages = 1U << 20;
  if (!plugin::image::validate(decoded->index, kPages, Version::k1).ok()) return;
  for (const auto& chunk : decoded->index.chunks) fuzz::check(chunk.offset < kPages, "a chunk lies in the pages file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check_version_1(bytes);
  const auto decoded = plugin::image::decode_file(bytes);
  if (!decoded.ok()) {
    fuzz::check(!decoded.error().message().empty(), "a refusal has a reason");
    return 0;
  }
  const std::string written = plugin::image::encode(decoded->file, decoded->session_id);
  const auto again = plugin::image::decode_file(std::as_bytes(std::span(written)));
  fuzz::check(again.ok() && plugin::image::encode(again->file, again->session_id) == written,
              "what was read can be written and read");
  check_file(decoded->file, session_of(Version::k2));
  return 0;
}
