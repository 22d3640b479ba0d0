// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes the image of a whole dump: contents as they come, then everything else, then the manifest, which commits.
// Until commit() has renamed the manifest, a reader refuses every file of the dump; a SessionWriter that is destroyed
// before commit() removes them.
//
//   create(dir)   removes what older dumps left in the directory
//   file(id)      for each file with contents: append() them
//   add(file)     for each file
//   prepare(...)  writes and syncs everything, the manifest under another name
//   commit()      renames the manifest and syncs the directory; or discard()
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/image/format.h"
#include "plugin/image/index.h"

namespace plugin::image {

class SessionWriter;

// The contents of the BOs of one file, in the order in which bos_of() the file will have them.
class FileWriter {
 public:
  // The next part of a BO that stores contents. Every part but a BO's last is a multiple of kChunkSize.
  base::Status append(std::span<const std::byte> contents);
  // Bytes that append() was given, and those of them that are in the pages file.
  [[nodiscard]] std::uint64_t appended() const { return appended_; }
  [[nodiscard]] std::uint64_t stored() const { return pages_length_ == 0 ? 0 : pages_length_ - kPageSize; }

 private:
  friend class SessionWriter;
  FileWriter(SessionWriter& session, std::uint32_t id) : session_(&session), id_(id) {}

  base::Status append_chunk(std::span<const std::byte> bytes);

  SessionWriter* session_;
  std::uint32_t id_;
  base::UniqueFd pages_;            // opened by the first append()
  std::uint64_t pages_length_ = 0;  // 0: no pages file
  std::uint64_t appended_ = 0;
  std::vector<Chunk> chunks_;
};

class SessionWriter {
 public:
  // Removes the files of older dumps, of either version, from the directory. dir_fd is borrowed for the writer's life.
  static base::Result<std::unique_ptr<SessionWriter>> create(int dir_fd, std::uint64_t session_id);
  SessionWriter(const SessionWriter&) = delete;
  SessionWriter& operator=(const SessionWriter&) = delete;
  ~SessionWriter();

  // Bytes that the file system of the directory can still take; the largest number when it does not say.
  static base::Result<std::uint64_t> free_space(int dir_fd);

  // For the contents of file `id`; lives as long as this object. The same one when asked again.
  FileWriter& file(std::uint32_t id);
  // Once for each file. Nothing is written yet.
  base::Status add(File file);
  // Writes and syncs all files, and the manifest under its temporary name. `session` has everything but id and version,
  // which this writer knows. Fails, and names the value, when a reader would refuse what is to be written.
  base::Status prepare(Session session);
  [[nodiscard]] bool prepared() const { return state_ != State::kOpen; }
  // Makes the manifest visible. A failure leaves the dump to discard().
  base::Status commit();
  // Removes all files of this dump, the manifest first, also after commit(). Answers the first failure, but tries all.
  base::Status discard();

 private:
  friend class FileWriter;
  enum class State { kOpen, kPrepared, kCommitted, kDiscarded };

  SessionWriter(int dir_fd, std::uint64_t session_id) : dir_fd_(dir_fd), session_id_(session_id) {}

  base::Result<base::UniqueFd> create_file(const std::string& name);
  base::Result<FileEntry> write_file(const File& file);
  base::Status write_index(std::span<const BoRecord> bos, FileWriter* contents, FileEntry& entry);
  base::Status finish_pages(FileWriter& contents);
  base::Result<std::uint64_t> write_payload(const std::string& name, FileKind kind, std::span<const std::byte> payload);
  base::Status sync_all();

  int dir_fd_;
  std::uint64_t session_id_;
  State state_ = State::kOpen;
  std::map<std::uint32_t, FileWriter> writers_;
  std::vector<File> files_;
  std::set<std::string> created_;                                 // names that discard() removes
  std::vector<std::pair<std::string, base::UniqueFd>> unsynced_;  // open until prepare() has synced them
};

}  // namespace plugin::image
