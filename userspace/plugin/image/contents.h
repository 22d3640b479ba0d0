// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a reader has found: one file of a dump, its contents, and a way through those of one BO. Who read it, and
// whether this plugin or CRIU's own wrote it, makes no difference here.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/image/format.h"
#include "plugin/image/index.h"

namespace plugin::image {

// One file of a dump, without contents. Holds no descriptor: CRIU closes those that a restored task inherits.
class Loaded {
 public:
  // `index` has the BOs of a KfdFile, a RenderFile or a DmabufFile, which get their place in `file`.
  Loaded(std::shared_ptr<const Session> session, FileEntry entry, File file, Index index);

  [[nodiscard]] std::uint32_t id() const { return entry_.id; }
  [[nodiscard]] const Session& session() const { return *session_; }
  [[nodiscard]] const std::shared_ptr<const Session>& shared_session() const { return session_; }
  [[nodiscard]] const FileEntry& entry() const { return entry_; }
  [[nodiscard]] const File& file() const { return file_; }
  [[nodiscard]] Kind kind() const { return entry_.kind; }
  // Null when it is of another kind.
  [[nodiscard]] const KfdFile* kfd() const { return std::get_if<KfdFile>(&file_.contents); }
  [[nodiscard]] const SecondFile* second() const { return std::get_if<SecondFile>(&file_.contents); }
  [[nodiscard]] const InertFile* inert() const { return std::get_if<InertFile>(&file_.contents); }
  [[nodiscard]] const RenderFile* render() const { return std::get_if<RenderFile>(&file_.contents); }
  [[nodiscard]] const DmabufFile* dmabuf() const { return std::get_if<DmabufFile>(&file_.contents); }
  [[nodiscard]] const SyncFile* sync_file() const { return std::get_if<SyncFile>(&file_.contents); }

  // This file as a part of `session`.
  [[nodiscard]] Loaded in_session(std::shared_ptr<const Session> session) && {
    session_ = std::move(session);
    return std::move(*this);
  }
  // Where the contents of bos_of(file()) are; without BOs.
  [[nodiscard]] const Index& index() const { return index_; }

 private:
  std::shared_ptr<const Session> session_;
  FileEntry entry_;
  File file_;
  Index index_;
};

// The chunks and the open pages file of one file that has an index. Const functions may be called by several threads.
class Contents {
 public:
  // An open file with contents. Chunk offsets count through all of them: `begin` is that of the file's first byte.
  struct Pages {
    std::string name;
    base::UniqueFd fd;
    std::uint64_t begin = 0;
  };
  // `loaded` is borrowed. `pages` by ascending `begin`: ours, and those of other files; of CRIU's own plugin there
  // may be several.
  Contents(const Loaded& loaded, std::vector<Pages> pages);

  [[nodiscard]] std::uint32_t chunk_size() const { return loaded_->index().chunk_size; }
  [[nodiscard]] std::span<const BoRecord> bos() const { return bos_of(loaded_->file()); }
  // The chunks of BO `bo` of bos_of() the file; none when it stores no contents.
  [[nodiscard]] std::span<const Chunk> chunks(std::size_t bo) const;
  // Fills `out`, which has the chunk's length. `chunk` is one of chunks(). Fails when a byte of it is not what was
  // saved.
  base::Status read_chunk(const Chunk& chunk, std::span<std::byte> out) const;
  // Reads and checks every chunk.
  base::Status verify() const;

 private:
  [[nodiscard]] const Pages& pages_at(std::uint64_t offset) const;
  void read_ahead(const Chunk& chunk) const;
  base::Status read_pieces(const Chunk& chunk, std::span<std::byte> out) const;
  // The pieces of a packed chunk, one behind the other.
  [[nodiscard]] base::Result<std::vector<std::byte>> unpack_pieces(const Chunk& chunk, std::uint64_t length) const;
  base::Status check_padding(const Chunk& chunk, std::uint64_t length) const;

  const Loaded* loaded_;
  std::vector<std::uint64_t> first_;  // for each BO its first chunk, and the number of all chunks
  std::vector<Pages> pages_;
  // Up to which chunk the kernel was asked to read ahead. Objects of this class are moved, and atomics are not.
  std::unique_ptr<std::atomic<std::uint64_t>> ahead_ = std::make_unique<std::atomic<std::uint64_t>>(0);
};

// The contents of one BO from its beginning to its end, in slices of any length.
class BoReader {
 public:
  // `contents` is borrowed.
  BoReader(const Contents& contents, std::size_t bo);
  // Passes over the next chunks of which nothing is stored, and returns their bytes: at most `limit`, and 0 in the
  // middle of a chunk.
  std::uint64_t skip_zeros(std::uint64_t limit);
  // Fills `out` with the next bytes of the BO.
  base::Status read(std::span<std::byte> out);

 private:
  const Contents& contents_;
  std::span<const Chunk> chunks_;
  std::uint64_t size_;
  std::uint64_t next_ = 0;          // the next chunk to read
  std::vector<std::byte> partial_;  // a chunk that reached beyond its slice
  std::size_t used_ = 0;            // bytes of partial_ that were given out
};

}  // namespace plugin::image
