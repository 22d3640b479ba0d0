// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The checks of an image's values, each with its own message. Runs after checksums, before any ioctl: a checksum
// guards against damage, this against a program that wrote the image on purpose. The writer makes them too, so that no
// dump is committed that no restore would take.
#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <map>
#include <set>

#include "plugin/image/format.h"
#include "plugin/image/index.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Status;

constexpr std::uint64_t kMaxBoSize = 1ULL << 47;
constexpr std::uint64_t kMaxPages = 1ULL << 62;
constexpr std::uint32_t kMaxChunkSize = 64U << 20;
constexpr std::uint32_t kMaxPieces = 64;  // bits of Chunk::stored

Error invalid(std::string message) { return Error(EINVAL, "invalid image: " + std::move(message)); }

std::uint64_t whole_pages(std::uint64_t length) { return (length + kPageSize - 1) / kPageSize * kPageSize; }

// ---- the session ----

Status validate_nodes(const std::vector<topology::Node>& nodes) {
  if (nodes.size() > kMaxNodes) return invalid("too many topology nodes");
  std::set<std::uint32_t> node_ids;
  std::set<std::uint32_t> gpu_ids;
  for (const topology::Node& node : nodes) {
    if (!node_ids.insert(node.node_id).second)
      return invalid("topology node " + std::to_string(node.node_id) + " twice");
    if (node.gpu_id != 0 && !gpu_ids.insert(node.gpu_id).second)
      return invalid("GPU " + std::to_string(node.gpu_id) + " twice in the topology");
  }
  return {};
}

bool is_pid(std::uint32_t pid) { return pid != 0 && pid <= INT_MAX; }

Status validate_processes(const std::vector<Process>& processes) {
  for (const Process& process : processes) {
    if (!is_pid(process.pid)) return invalid("process id " + std::to_string(process.pid));
    if (process.comm.size() > kMaxText) return invalid("name of process " + std::to_string(process.pid) + " too long");
  }
  return {};
}

bool is_length_of_pages(std::uint64_t length) {
  return length > kPageSize && length <= kMaxPages && length % kPageSize == 0;
}

Status validate_sources(const FileEntry& entry) {
  if (!entry.sources.empty() && entry.index_length == 0) return invalid("contents of other files, and no index");
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  std::uint64_t rest = kMaxPages - entry.pages_length;
  for (const Source& source : entry.sources) {
    if (source.depth > kMaxDepth)
      return invalid("contents of a dump that is " + std::to_string(source.depth) + " before this one");
    if (!seen.emplace(source.depth, source.id).second) return invalid("contents of another file twice");
    if (!is_length_of_pages(source.pages_length) || source.pages_length > rest)
      return invalid("impossible length of the pages file of another file");
    rest -= source.pages_length;
  }
  return {};
}

// `pages`: lengths of the pages files of the dump, by id.
Status validate_own_sources(const FileEntry& entry, const Session& session,
                            const std::map<std::uint32_t, std::uint64_t>& pages) {
  for (const Source& source : entry.sources) {
    if (source.depth != 0) continue;
    const auto found = pages.find(source.id);
    if (source.id == entry.id || found == pages.end() || found->second != source.pages_length ||
        source.session_id != session.id)
      return invalid("file " + std::to_string(entry.id) + ": contents of file " + std::to_string(source.id) +
                     ", which this dump does not have so");
  }
  return {};
}

Status validate_entry(const FileEntry& entry) {
  const std::string where = "file " + std::to_string(entry.id);
  if (entry.kind != Kind::kKfd && entry.kind != Kind::kSecond && entry.kind != Kind::kInert &&
      entry.kind != Kind::kRender && entry.kind != Kind::kDmabuf && entry.kind != Kind::kSyncFile)
    return invalid(where + " is of an unknown kind");
  if (entry.metadata_length == 0 || entry.metadata_length > kMaxMetadata)
    return invalid(where + ": impossible length of the metadata");
  const bool has_index = entry.index_length != 0;
  if (entry.index_length > kMaxIndex || (entry.kind == Kind::kKfd && !has_index) ||
      (has_index && entry.kind != Kind::kKfd && entry.kind != Kind::kRender && entry.kind != Kind::kDmabuf))
    return invalid(where + ": impossible length of the index");
  const bool has_pages = entry.pages_length != 0;
  if (has_pages && (!has_index || !is_length_of_pages(entry.pages_length)))
    return invalid(where + ": impossible length of the pages file");
  if (auto status = validate_sources(entry); !status.ok()) return std::move(status).error().wrap(where);
  return {};
}

// ---- files ----

bool has_gpu(const Session& session, std::uint32_t gpu_id) {
  return gpu_id != 0 && std::any_of(session.nodes.begin(), session.nodes.end(),
                                    [gpu_id](const topology::Node& node) { return node.gpu_id == gpu_id; });
}

bool has_process(const Session& session, std::uint32_t pid) {
  return std::any_of(session.processes.begin(), session.processes.end(),
                     [pid](const Process& process) { return process.pid == pid; });
}

Status validate_devices(const Session& session, const KfdFile& kfd) {
  if (kfd.devices.empty() || kfd.devices.size() > kMaxDevices) return invalid("impossible number of devices");
  std::set<std::uint32_t> users;
  std::set<std::uint32_t> actuals;
  for (const kfd::Device& device : kfd.devices) {
    if (device.user_id == 0 || !users.insert(device.user_id).second)
      return invalid("device id " + std::to_string(device.user_id) + " is zero or used twice");
    if (!actuals.insert(device.actual_id).second)
      return invalid("GPU " + std::to_string(device.actual_id) + " stands for two devices");
    if (!has_gpu(session, device.actual_id))
      return invalid("GPU " + std::to_string(device.actual_id) + " is missing in the recorded topology");
  }
  for (std::size_t i = 0; i < kfd.bos.size(); ++i)
    if (!users.contains(kfd.bos[i].bo.user_gpu_id))
      return invalid("BO " + std::to_string(i) + " belongs to an unknown device");
  return {};
}

Status validate_shared_files(const KfdFile& kfd) {
  for (const SharedFile& file : kfd.shared_files) {
    // A name with a path in it is refused too, because only known names are allowed.
    if (std::find(kSharedFileNames.begin(), kSharedFileNames.end(), file.name) == kSharedFileNames.end())
      return invalid("unexpected name of a shared file");
    if (file.contents.size() > kMaxSharedFile || (file.mode & ~0777U) != 0)
      return invalid("impossible size or mode of " + file.name);
    if (file.links.size() > kMaxLinks) return invalid("too many second names of " + file.name);
    if (!std::all_of(file.links.begin(), file.links.end(), is_link_remap))
      return invalid("unexpected second name of " + file.name);
  }
  return {};
}

Status validate_foreign_memories(const KfdFile& kfd) {
  if (kfd.foreign_memories.empty()) return {};
  if (kfd.foreign_memories.size() > kMaxForeignMemories)
    return invalid("process " + std::to_string(kfd.pid) + " has too much memory that no process of the dump allocated");
  std::set<std::uint64_t> imported;
  for (const BoRecord& record : kfd.bos)
    if (record.imported) imported.insert(record.inode);
  std::set<std::uint64_t> seen;
  for (const ForeignMemory& memory : kfd.foreign_memories) {
    if (!imported.contains(memory.inode)) return invalid("says how memory was allocated that no BO was given");
    if (!seen.insert(memory.inode).second)
      return invalid("process " + std::to_string(kfd.pid) + " says twice how memory " + std::to_string(memory.inode) +
                     " was allocated");
  }
  return {};
}

Status validate_kfd(const KfdFile& kfd, const Session& session) {
  TRY(validate_devices(session, kfd));
  if (kfd.priv_data.empty()) return invalid("no kernel state in it");
  TRY(validate_foreign_memories(kfd));
  // Version 1 has no list of processes that this could be compared with.
  if (session.version != Version::k1 && !has_process(session, kfd.pid))
    return invalid("process " + std::to_string(kfd.pid) + " is not one of the dump");
  return validate_shared_files(kfd);
}

Status validate_owner(std::uint32_t owner, const Session& session) {
  if (!has_process(session, owner)) return invalid("owner " + std::to_string(owner) + " is not a process of the dump");
  return {};
}

Status validate_render(const RenderFile& render, const Session& session) {
  if (!has_gpu(session, render.gpu_id)) return invalid("render node of a GPU that is missing in the topology");
  if (render.binding != Binding::kUnknown && render.binding != Binding::kKfd && render.binding != Binding::kOther)
    return invalid("unknown binding of a render node");
  if (render.owner != 0) TRY(validate_owner(render.owner, session));
  if (render.binding == Binding::kKfd && !render.objects.empty() && session.abi != Abi::kExtensible)
    return invalid("objects of a render node in a VM that KFD uses, which the released ABI of KFD refuses to save");
  return validate_objects(render);
}

// That BOs have the memory is checked with all files of the session (sharing_of()).
Status validate_dmabuf(const DmabufFile& dmabuf, const Session& session) {
  if (dmabuf.inode == 0) return invalid("a DMA-buf of no memory");
  if (dmabuf.size == 0 || dmabuf.size > kMaxBoSize) return invalid("impossible size of a DMA-buf");
  if (dmabuf.name.size() > kMaxDmabufName || dmabuf.name.find('\0') != std::string::npos)
    return invalid("impossible name of a DMA-buf");
  if (dmabuf.gpu_id != 0 && !has_gpu(session, dmabuf.gpu_id))
    return invalid("a DMA-buf of memory of a GPU that is missing in the topology");
  return validate_object(dmabuf);
}

Status validate_sync_file(const SyncFile& file, const Session& session) {
  if (!has_gpu(session, file.gpu_id)) return invalid("a sync file of a GPU that is missing in the topology");
  if (file.name.size() > kMaxSyncFileName || file.name.find('\0') != std::string::npos)
    return invalid("impossible name of a sync file");
  return {};
}

// ---- the index ----

Status validate_sizes(const Index& index, Version version) {
  if (index.chunk_size < kPageSize || index.chunk_size > kMaxChunkSize || index.chunk_size % kPageSize != 0)
    return invalid("chunk size " + std::to_string(index.chunk_size));
  if (version == Version::k1) return {};
  if (index.piece_size < kPageSize || index.piece_size % kPageSize != 0 || index.chunk_size % index.piece_size != 0 ||
      index.chunk_size / index.piece_size > kMaxPieces)
    return invalid("piece size " + std::to_string(index.piece_size));
  return {};
}

// Inode and size of memory whose contents are stored.
std::set<std::pair<std::uint64_t, std::uint64_t>> stored_memories(const Index& index) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> memories;
  for (const BoRecord& record : index.bos)
    if (record.inode != 0 && stores_contents(record)) memories.emplace(record.inode, record.bo.size);
  return memories;
}

Status validate_bos(const Index& index) {
  const auto memories = stored_memories(index);
  for (std::size_t i = 0; i < index.bos.size(); ++i) {
    const BoRecord& record = index.bos[i];
    const std::string where = "BO " + std::to_string(i);
    if (record.bo.size == 0 || record.bo.size > kMaxBoSize || record.bo.addr + record.bo.size < record.bo.addr)
      return invalid(where + ": impossible address or size");
    if (record.shares_contents && (!kfd::has_contents(record.bo) || !memories.contains({record.inode, record.bo.size})))
      return invalid(where + ": its contents are not stored with another BO");
    if ((record.imported || record.stored_elsewhere) && (!kfd::has_contents(record.bo) || record.inode == 0))
      return invalid(where + ": shares memory that cannot be shared");
    if (record.shares_contents && record.stored_elsewhere)
      return invalid(where + ": its contents are stored in this file and in another one");
  }
  return {};
}

// `begins`: of the pages files of other files.
Status validate_reference(const Chunk& chunk, std::uint64_t stored, std::span<const std::uint64_t> begins) {
  const auto next = std::upper_bound(begins.begin(), begins.end(), chunk.offset);
  if (next == begins.end()) return invalid("lies outside the pages files");
  const std::uint64_t offset = chunk.offset - *(next - 1);
  if (offset < kPageSize || offset % kPageSize != 0 || stored > *next - chunk.offset)
    return invalid("lies outside the pages file of the other file");
  return {};
}

// What a chunk has in the pages file of its own file.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t stored = 0;  // bytes
  std::size_t bo = 0;
  std::uint64_t chunk = 0;  // of the BO
};

// In one pages file the chunks lie one behind the other, in any order, so each byte of it is part of one. A chunk may
// also lie within what others have.
Status validate_ranges(std::vector<Range>& ranges, std::uint64_t pages_length) {
  const auto is_before = [](const Range& a, const Range& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.stored > b.stored;
  };
  if (!std::is_sorted(ranges.begin(), ranges.end(), is_before)) std::sort(ranges.begin(), ranges.end(), is_before);
  std::uint64_t end = kPageSize;
  for (const Range& range : ranges) {
    const char* why = nullptr;
    if (range.offset < kPageSize || range.offset % kPageSize != 0)
      why = "begins at no place of a chunk";
    else if (range.offset > end)
      why = "lies outside the pages file, or not behind another chunk";
    else if (range.offset < end && range.stored > end - range.offset)
      why = "lies in a part of another chunk, and behind it";
    if (why != nullptr)
      return invalid(why).wrap("BO " + std::to_string(range.bo) + ", chunk " + std::to_string(range.chunk));
    if (range.offset == end) end += whole_pages(range.stored);
  }
  if (pages_length != (ranges.empty() ? 0 : end)) return invalid("the pages file has another length than its chunks");
  return {};
}

bool is_in_other_file(const Chunk& chunk, std::span<const std::uint64_t> begins) {
  return begins.size() > 1 && chunk.offset >= begins.front();
}

// What a chunk alone says. Those that other files have may lie anywhere in theirs.
Status validate_chunk(const Chunk& chunk, std::uint64_t length, std::uint32_t piece_size,
                      std::span<const std::uint64_t> begins) {
  const std::uint64_t pieces = chunk_count(length, piece_size);
  if (pieces < kMaxPieces && (chunk.stored >> pieces) != 0) return invalid("stores pieces behind its end");
  if (chunk.stored == 0) {
    if (chunk.offset != 0 || chunk.hash != 0 || chunk.packed != 0)
      return invalid("stores nothing, but has a place or a checksum");
    return {};
  }
  if (chunk.packed >= pieces_length(chunk, length, piece_size)) return invalid("is packed into more bytes than it has");
  if (!is_in_other_file(chunk, begins)) return {};
  return validate_reference(chunk, stored_length(chunk, length, piece_size), begins);
}

Status validate_chunk_1(const Chunk& chunk, std::uint64_t length, std::uint64_t pages_length) {
  if (chunk.offset == 0) return {};
  if (chunk.offset % kPageSize != 0 || chunk.offset > pages_length || length > pages_length - chunk.offset)
    return invalid("lies outside the pages file");
  return {};
}

Status validate_chunks(const Index& index, std::uint64_t pages_length, Version version,
                       std::span<const Source> sources) {
  const auto begins = begins_of(pages_length, sources);
  std::uint64_t next = 0;
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < index.bos.size(); ++i) {
    const BoRecord& record = index.bos[i];
    const std::uint64_t count = stores_contents(record) ? chunk_count(record.bo.size, index.chunk_size) : 0;
    if (count > index.chunks.size() - next)
      return invalid("BO " + std::to_string(i) + " has fewer chunks than the " + std::to_string(count) +
                     " that it needs");
    for (std::uint64_t k = 0; k < count; ++k) {
      const Chunk& chunk = index.chunks[next++];
      const std::uint64_t length = chunk_length(record.bo.size, index.chunk_size, k);
      auto status = version == Version::k1 ? validate_chunk_1(chunk, length, pages_length)
                                           : validate_chunk(chunk, length, index.piece_size, begins);
      if (!status.ok())
        return std::move(status).error().wrap("BO " + std::to_string(i) + ", chunk " + std::to_string(k));
      if (version != Version::k1 && chunk.stored != 0 && !is_in_other_file(chunk, begins))
        ranges.push_back({chunk.offset, stored_length(chunk, length, index.piece_size), i, k});
    }
  }
  if (next != index.chunks.size()) return invalid("more chunks than the BOs need");
  return version == Version::k1 ? Status() : validate_ranges(ranges, pages_length);
}

}  // namespace

Status validate(const Manifest& manifest) {
  const Session& session = manifest.session;
  if (session.abi != Abi::kReleased && session.abi != Abi::kExtensible)
    return invalid("written for an interface of the kernel that this plugin does not know");
  if (session.kernel_release.size() > kMaxText) return invalid("release of the kernel too long");
  TRY(validate_nodes(session.nodes));
  TRY(validate_processes(session.processes));
  if (manifest.files.empty()) return invalid("a dump without files");
  std::map<std::uint32_t, std::uint64_t> pages;
  for (const FileEntry& entry : manifest.files) {
    if (!pages.emplace(entry.id, entry.pages_length).second)
      return invalid("file " + std::to_string(entry.id) + " twice");
    TRY(validate_entry(entry));
  }
  for (const FileEntry& entry : manifest.files) TRY(validate_own_sources(entry, session, pages));
  return {};
}

Status validate(const File& file, const Session& session) {
  if (session.version == Version::k1) TRY(validate_nodes(session.nodes));
  if ((open_flags_of(file) & ~static_cast<std::uint32_t>(O_NONBLOCK)) != 0) return invalid("unknown flags of open");
  switch (kind_of(file)) {
    case Kind::kKfd:
      return validate_kfd(*std::get_if<KfdFile>(&file.contents), session);
    case Kind::kSecond:
      return validate_owner(owner_of(file), session);
    case Kind::kInert:
      return owner_of(file) == 0 ? Status() : validate_owner(owner_of(file), session);
    case Kind::kRender:
      return validate_render(*std::get_if<RenderFile>(&file.contents), session);
    case Kind::kDmabuf:
      return validate_dmabuf(*std::get_if<DmabufFile>(&file.contents), session);
    case Kind::kSyncFile:
      return validate_sync_file(*std::get_if<SyncFile>(&file.contents), session);
  }
  return {};
}

Status validate(const Index& index, std::uint64_t pages_length, Version version, std::span<const Source> sources) {
  TRY(validate_sizes(index, version));
  TRY(validate_bos(index));
  return validate_chunks(index, pages_length, version, sources);
}

}  // namespace plugin::image
