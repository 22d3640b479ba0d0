// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the image of one device file holds, as plain values; file names, file header, limits, checks.
// The grammar is docs/image-format.md. Not here: bytes of messages (codec), files (reader, writer).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "kfd/kfd.h"
#include "plugin/topology/node.h"

namespace plugin::image {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::size_t kPageSize = 4096;
inline constexpr std::uint32_t kChunkSize = 1U << 20;

// Limits that a reader enforces before it allocates.
inline constexpr std::uint64_t kMaxMetadata = 1ULL << 30;
inline constexpr std::size_t kMaxDevices = 1024;
inline constexpr std::size_t kMaxNodes = 4096;
inline constexpr std::size_t kMaxSharedFile = 1U << 16;

// The files of libhsakmt in /dev/shm that a restored program must find.
inline constexpr std::array<std::string_view, 2> kSharedFileNames = {"hsakmt_shared_mem", "sem.hsakmt_semaphore"};
inline constexpr std::size_t kMaxLinks = 64;  // hard links of one shared file
inline constexpr std::string_view kLinkRemapPrefix = "link_remap.";

// Whether `name` is one that CRIU makes for a file without a name: the prefix and a number.
inline bool is_link_remap(std::string_view name) {
  if (!name.starts_with(kLinkRemapPrefix)) return false;
  name.remove_prefix(kLinkRemapPrefix.size());
  return !name.empty() && name.size() <= 10 && name.find_first_not_of("0123456789") == std::string_view::npos;
}

struct Chunk {
  std::uint64_t offset = 0;  // in the pages file; 0: all zero, not stored
  std::uint64_t hash = 0;
  bool operator==(const Chunk&) const = default;
};

struct BoRecord {
  kfd::Bo bo;
  std::vector<Chunk> chunks;
};

struct SharedFile {
  std::string name;
  std::string contents;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  // Further names that CRIU's --link-remap gave it; CRIU looks for them at restore.
  std::vector<std::string> links;
};

struct KfdFile {
  std::uint32_t pid = 0;  // in the innermost pid namespace, at dump and again at restore
  std::uint32_t num_objects = 0;
  std::uint32_t chunk_size = kChunkSize;
  std::vector<kfd::Device> devices;
  std::vector<BoRecord> bos;
  std::vector<std::byte> priv_data;
  std::vector<SharedFile> shared_files;
  bool own_mount_namespace = false;  // the program's /dev/shm was not CRIU's
};

enum class Binding { kUnknown, kKfd, kOther };

struct RenderFile {
  std::uint32_t gpu_id = 0;  // actual id at dump
  std::uint32_t open_flags = 0;
  Binding binding = Binding::kUnknown;
};

struct File {
  std::uint64_t session_id = 0;  // same in all files of one dump
  std::vector<topology::Node> nodes;
  std::variant<KfdFile, RenderFile> kind;
};

struct Manifest {
  std::uint64_t session_id = 0;
  std::uint32_t id = 0;
  std::uint64_t metadata_length = 0;
  std::uint64_t metadata_hash = 0;
  std::uint64_t pages_length = 0;  // 0: no pages file
};

enum class FileKind : std::uint32_t { kMetadata = 1, kManifest = 2, kPages = 3 };

// First bytes of every file. `payload` is the length of what follows it (in a pages file: what follows the first page).
struct Header {
  FileKind kind = FileKind::kMetadata;
  std::uint64_t payload = 0;
  std::uint64_t hash = 0;  // XXH3 of the payload; 0 in a pages file, whose chunks have their own
};
inline constexpr std::size_t kHeaderSize = 40;
std::array<std::byte, kHeaderSize> encode_header(const Header& header);
// Refuses what is not ours, another version, another kind.
base::Result<Header> decode_header(std::span<const std::byte> bytes, FileKind expected);

[[nodiscard]] std::uint64_t hash_bytes(std::span<const std::byte> bytes);

[[nodiscard]] std::string metadata_name(std::uint32_t id);
[[nodiscard]] std::string pages_name(std::uint32_t id);
[[nodiscard]] std::string manifest_name(std::uint32_t id);

// Chunks that a BO of `size` bytes has, and the length of the `index`-th.
[[nodiscard]] std::uint64_t chunk_count(std::uint64_t size, std::uint32_t chunk_size);
[[nodiscard]] std::uint64_t chunk_length(std::uint64_t size, std::uint32_t chunk_size, std::uint64_t index);

// Everything that must hold before the kernel sees a value of `file`; pages_length is that of the pages file.
base::Status validate(const File& file, std::uint64_t pages_length);

}  // namespace plugin::image
