// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// File header, names, chunk arithmetic. The checks of values are in validate.cc.
#include "plugin/image/format.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "plugin/image/bytes.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;

// Field offsets in the header; all little endian. The last field is the XXH3 of the bytes before it.
constexpr std::array<char, 8> kMagic = {'A', 'M', 'D', 'K', 'F', 'D', 'C', 'R'};
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kKindAt = 12;
constexpr std::size_t kPayloadAt = 16;
constexpr std::size_t kHashAt = 24;
constexpr std::size_t kHeaderHashAt = 32;

constexpr std::string_view kSuffix = ".img";
constexpr std::string_view kUnfinishedSuffix = ".img.tmp";

Error wrong_version(std::uint32_t found, Version expected) {
  if (found == static_cast<std::uint32_t>(Version::k1) || found == static_cast<std::uint32_t>(Version::k2))
    return Error(EINVAL, "has format version " + std::to_string(found) + ", its manifest has version " +
                             std::to_string(static_cast<std::uint32_t>(expected)) + " (of another dump?)");
  return Error(EINVAL, "unknown format version " + std::to_string(found) +
                           ", this plugin reads 1 and 2; restore with the plugin that dumped");
}

// The id in "<prefix><id><suffix>"; nothing for other names, and for spellings of a number that we do not write.
std::optional<std::uint32_t> id_between(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  const auto digits = static_cast<std::size_t>(end - name.data());
  if (error != std::errc() || name.substr(digits) != suffix) return std::nullopt;
  if (digits > 1 && name.front() == '0') return std::nullopt;
  return id;
}

std::string name_of(std::string_view prefix, std::uint32_t id) {
  return std::string(prefix) + std::to_string(id) + std::string(kSuffix);
}

constexpr std::string_view kMetadataPrefix = "amdgpu-";
constexpr std::string_view kIndexPrefix = "amdgpu-index-";
constexpr std::string_view kPagesPrefix = "amdgpu-pages-";
constexpr std::string_view kManifestPrefix = "amdgpu-manifest-";

}  // namespace

Kind kind_of(const File& file) {
  // The alternatives of File::contents in their order.
  constexpr std::array kinds = {Kind::kKfd, Kind::kSecond, Kind::kInert, Kind::kRender, Kind::kDmabuf, Kind::kSyncFile};
  return kinds[file.contents.index()];
}

std::uint32_t owner_of(const File& file) {
  if (const auto* kfd = std::get_if<KfdFile>(&file.contents)) return kfd->pid;
  if (const auto* second = std::get_if<SecondFile>(&file.contents)) return second->owner;
  if (const auto* inert = std::get_if<InertFile>(&file.contents)) return inert->owner;
  if (const auto* render = std::get_if<RenderFile>(&file.contents)) return render->owner;
  return 0;
}

std::uint32_t actual_id_of(const KfdFile& kfd, std::uint32_t user_id) {
  for (const kfd::Device& device : kfd.devices)
    if (device.user_id == user_id) return device.actual_id;
  return 0;
}

std::uint32_t open_flags_of(const File& file) {
  return std::visit([](const auto& contents) { return contents.open_flags; }, file.contents);
}

std::uint64_t pages_tag(std::uint64_t session_id, std::uint32_t id) {
  std::array<std::byte, sizeof(session_id) + sizeof(id)> bytes{};
  put(bytes, 0, session_id);
  put(bytes, sizeof(session_id), id);
  return hash_bytes(bytes);
}

std::array<std::byte, kHeaderSize> encode_header(const Header& header) {
  std::array<std::byte, kHeaderSize> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(bytes, kVersionAt, static_cast<std::uint32_t>(header.version));
  put(bytes, kKindAt, static_cast<std::uint32_t>(header.kind));
  put(bytes, kPayloadAt, header.payload);
  put(bytes, kHashAt, header.hash);
  put(bytes, kHeaderHashAt, hash_bytes(std::span(bytes).first(kHeaderHashAt)));
  return bytes;
}

Result<Header> decode_header(std::span<const std::byte> bytes, FileKind expected, Version version) {
  if (bytes.size() < kHeaderSize) return Error(EINVAL, "truncated: shorter than its header");
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return Error(EINVAL, "not an image of this plugin (bad magic)");
  if (const auto found = get<std::uint32_t>(bytes, kVersionAt); found != static_cast<std::uint32_t>(version))
    return wrong_version(found, version);
  if (get<std::uint64_t>(bytes, kHeaderHashAt) != hash_bytes(bytes.first(kHeaderHashAt)))
    return Error(EINVAL, "damaged: wrong checksum of the header");
  Header header;
  header.version = version;
  header.kind = static_cast<FileKind>(get<std::uint32_t>(bytes, kKindAt));
  if (header.kind != expected) return Error(EINVAL, "is another kind of image file than its name says");
  header.payload = get<std::uint64_t>(bytes, kPayloadAt);
  header.hash = get<std::uint64_t>(bytes, kHashAt);
  return header;
}

std::span<const BoRecord> bos_of(const File& file) {
  if (const auto* kfd = std::get_if<KfdFile>(&file.contents)) return kfd->bos;
  if (const auto* render = std::get_if<RenderFile>(&file.contents)) return render->bos;
  if (const auto* dmabuf = std::get_if<DmabufFile>(&file.contents)) return dmabuf->bos;
  return {};
}

// A render node with any objects has one, though it may list no BO: readers that know nothing of such objects refuse a
// render node with an index, and would else restore the file without them.
bool has_index(const File& file) {
  if (const auto* render = std::get_if<RenderFile>(&file.contents)) return !render->objects.empty();
  if (const auto* dmabuf = std::get_if<DmabufFile>(&file.contents)) return dmabuf->gpu_id != 0;
  return kind_of(file) == Kind::kKfd;
}

std::string metadata_name(std::uint32_t id) { return name_of(kMetadataPrefix, id); }
std::string index_name(std::uint32_t id) { return name_of(kIndexPrefix, id); }
std::string pages_name(std::uint32_t id) { return name_of(kPagesPrefix, id); }
std::string unfinished_pages_name(std::uint32_t number) {
  return name_of(kPagesPrefix, number) + std::string(kUnfinishedSuffix.substr(kSuffix.size()));
}

bool needs_earlier(const FileEntry& entry) {
  return std::any_of(entry.sources.begin(), entry.sources.end(), [](const Source& each) { return each.depth != 0; });
}

bool refers_to_earlier(const FileEntry& entry, const Chunk& chunk) {
  if (!refers(entry, chunk)) return false;
  std::uint64_t end = entry.pages_length;
  for (const Source& source : entry.sources) {
    end += source.pages_length;
    if (chunk.offset < end) return source.depth != 0;
  }
  return false;
}

std::string source_name(const Source& source) {
  std::string name;
  for (std::uint32_t i = 0; i < source.depth; ++i) name.append(kParentName).append("/");
  return name + pages_name(source.id);
}

std::string manifest_name_1(std::uint32_t id) { return name_of(kManifestPrefix, id); }

std::optional<Name> parse_name(std::string_view name) {
  if (name == kManifestName) return Name{NameKind::kManifest, 0};
  if (name == kUnfinishedManifestName) return Name{NameKind::kUnfinishedManifest, 0};
  struct Pattern {
    NameKind kind;
    std::string_view prefix;
    std::string_view suffix;
  };
  constexpr std::array<Pattern, 6> patterns = {{{NameKind::kManifest1, kManifestPrefix, kSuffix},
                                                {NameKind::kUnfinishedManifest1, kManifestPrefix, kUnfinishedSuffix},
                                                {NameKind::kIndex, kIndexPrefix, kSuffix},
                                                {NameKind::kPages, kPagesPrefix, kSuffix},
                                                {NameKind::kUnfinishedPages, kPagesPrefix, kUnfinishedSuffix},
                                                {NameKind::kMetadata, kMetadataPrefix, kSuffix}}};
  for (const Pattern& pattern : patterns)
    if (const auto id = id_between(name, pattern.prefix, pattern.suffix)) return Name{pattern.kind, *id};
  return std::nullopt;
}

std::uint64_t chunk_count(std::uint64_t size, std::uint32_t chunk_size) {
  return size / chunk_size + (size % chunk_size != 0 ? 1 : 0);
}

std::uint64_t chunk_length(std::uint64_t size, std::uint32_t chunk_size, std::uint64_t index) {
  return std::min<std::uint64_t>(chunk_size, size - index * chunk_size);
}

Limit limit_of(const Timing& timing) {
  if (timing.copied_bytes == 0) return Limit::kNothing;
  if (timing.gpu_us > (timing.copying_us + timing.syncing_us) / 2) return Limit::kGpu;
  return timing.writing_us + timing.syncing_us >= timing.hashing_us ? Limit::kFiles : Limit::kProcessor;
}

}  // namespace plugin::image
