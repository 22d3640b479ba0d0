// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/earlier.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/os.h"
#include "base/unique_fd.h"
#include "plugin/image/directory.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::UniqueFd;

Result<bool> is_same(int a, int b) {
  struct stat first {};
  struct stat second {};
  if (os::fstat(a, &first) != 0 || os::fstat(b, &second) != 0) return Error::from_errno(errno, "fstat of a directory");
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Whether the link names its directory from the root. A task that is restored in a mount namespace has another root.
bool is_absolute(int dir_fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(dir_fd) + "/" + std::string(kParentName);
  char first = 0;
  return os::readlink(link.c_str(), &first, 1) == 1 && first == '/';
}

// The directories behind `parent`, the nearest one first.
Result<std::vector<UniqueFd>> open_parents(int dir_fd) {
  std::vector<UniqueFd> parents;
  while (parents.size() < kMaxDepth) {
    const int last = parents.empty() ? dir_fd : parents.back().get();
    auto next = open_parent(last);
    if (!next.ok() && (next.error().code() == ENOENT || !parents.empty())) break;
    if (!next.ok()) return std::move(next).error();
    ASSIGN_OR_RETURN(const bool own, is_same(next->get(), dir_fd));
    if (own)
      return Error(ELOOP,
                   "the dump before this one needs files of the image directory, which this dump replaces; dump into "
                   "another directory");
    if (is_absolute(last)) {
      if (!parents.empty()) break;
      return Error(EINVAL, "the path of the dump before is absolute; --prev-images-dir takes one from the images");
    }
    parents.push_back(std::move(*next));
  }
  return parents;
}

}  // namespace

MemoryName name_of(Kind kind, std::uint32_t owner, const BoRecord& record) {
  return {kind, owner, record.bo.user_gpu_id, record.bo.addr, record.handle, record.bo.size};
}

Result<std::unique_ptr<Earlier>> Earlier::read(int dir_fd) {
  ASSIGN_OR_RETURN(const auto parents, open_parents(dir_fd));
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const int dir = parents[i].get();
    // A pre-dump leaves a directory without files of ours.
    ASSIGN_OR_RETURN(Catalogue catalogue, Catalogue::read(dir));
    if (const auto damaged = catalogue.damaged(); !damaged.empty()) return Error(damaged.front().error);
    const auto sessions = catalogue.sessions();
    const auto found = std::find_if(sessions.begin(), sessions.end(),
                                    [](const Session* session) { return session->version == Version::k2; });
    if (found == sessions.end()) continue;
    const Session& session = **found;
    std::unique_ptr<Earlier> earlier(new Earlier(std::move(catalogue), static_cast<std::uint32_t>(i) + 1,
                                                 static_cast<std::uint32_t>(parents.size())));
    earlier->session_id_ = session.id;
    for (const Loaded* loaded : earlier->catalogue_.files_of(session)) {
      if (!has_index(loaded->file())) continue;
      // That the pages files are there and of this dump is checked; their contents are read by the restore that needs
      // them.
      TRY(open_contents(dir, *loaded));
      earlier->add(*loaded);
    }
    return earlier;
  }
  return std::unique_ptr<Earlier>();
}

void Earlier::add(const Loaded& loaded) {
  const FileEntry& entry = loaded.entry();
  File& file = files_[&loaded];
  file.begins = begins_of(entry.pages_length, entry.sources);
  if (entry.pages_length != 0)
    file.sources.push_back(source_index({depth_, entry.id, session_id_, entry.pages_length}));
  else
    file.sources.push_back(kNone);
  for (const Source& source : entry.sources)
    file.sources.push_back(source_index({depth_ + source.depth, source.id, source.session_id, source.pages_length}));
  std::size_t next = 0;
  for (const BoRecord& record : bos_of(loaded.file())) {
    if (!stores_contents(record)) continue;
    const auto count = static_cast<std::size_t>(chunk_count(record.bo.size, loaded.index().chunk_size));
    places_.emplace(name_of(loaded.kind(), owner_of(loaded.file()), record), Place{&loaded, next, count});
    next += count;
  }
}

std::uint32_t Earlier::source_index(const Source& source) {
  if (source.depth > reach_) return kNone;
  const auto [found, is_new] =
      index_of_.try_emplace({source.depth, source.id}, static_cast<std::uint32_t>(sources_.size()));
  if (is_new) sources_.push_back(source);
  return found->second;
}

std::vector<KnownChunk> Earlier::find(const MemoryName& name) const {
  std::vector<KnownChunk> known;
  const auto place = places_.find(name);
  if (place == places_.end()) return known;
  const auto [loaded, first, count] = place->second;
  const Index& index = loaded->index();
  if (index.chunk_size != kChunkSize || index.piece_size != kPieceSize) return known;
  const File& file = files_.at(loaded);
  known.reserve(count);
  for (const Chunk& chunk : std::span(index.chunks).subspan(first, count)) {
    KnownChunk& out = known.emplace_back(KnownChunk{chunk, kNone});
    if (chunk.stored == 0) continue;
    // The own pages file is the first one, and begins at 0.
    const auto next = std::upper_bound(file.begins.begin(), file.begins.end(), chunk.offset);
    out.source = file.sources[static_cast<std::size_t>(next - file.begins.begin())];
    if (next != file.begins.begin()) out.chunk.offset -= *(next - 1);
    if (out.source == kNone) out.chunk = {};
  }
  return known;
}

}  // namespace plugin::image
