// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes the image of a whole dump: contents as they come, then everything else, then the manifest, which commits.
// Until commit() has renamed the manifest, a reader refuses every file of the dump; a SessionWriter that is destroyed
// before commit() removes them.
//
//   create(dir)   removes what older dumps left in the directory
//   file(id)      for each file with contents: append() them, and settle(); or nameless_file(), whose id comes later
//   add(file)     for each file
//   prepare(...)  writes and syncs everything, the manifest under another name
//   commit()      renames the manifest and syncs the directory; or discard()
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "base/workers.h"
#include "plugin/image/earlier.h"
#include "plugin/image/equal_chunks.h"
#include "plugin/image/format.h"
#include "plugin/image/index.h"
#include "plugin/image/pack.h"
#include "plugin/image/writeback.h"

namespace plugin::image {

class SessionWriter;

// The contents of the BOs of one file. Used by one thread; the chunks are searched for zeros, hashed and written by the
// workers of the session, if it has any. A chunk has a place in the index, which follows the order in which bos_of()
// the file will have the BOs, and a number: the pages file has the chunks in the order in which they were appended.
class FileWriter {
 public:
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // For each BO that stores contents, in the order of bos_of(): which memory it is, in what the session may refer to.
  // Answers the place of its first chunk. Parts of several BOs may be appended in turns after that.
  std::uint64_t begin_bo(const MemoryName& name);
  // A part of a BO; its first chunk has this place in the index. Every part but a BO's last is a multiple of
  // kChunkSize. Answers a number for settle(): until that has returned, the bytes must stay as they are. After a
  // failure, which may be that of an earlier part, nobody uses the bytes.
  base::Result<std::uint64_t> append(std::uint64_t place, std::span<const std::byte> contents);
  // The part behind the one before, of a file whose BOs are appended one after the other.
  base::Result<std::uint64_t> append(std::span<const std::byte> contents) { return append(begun_, contents); }
  // Returns when all parts up to the one for which append() answered `number` are written, with the first failure there
  // was in any part.
  base::Status settle(std::uint64_t number);
  base::Status settle_all() { return settle(begun_); }

  // Bytes that append() was given, and those of them that are in the pages file. Exact after settle_all().
  [[nodiscard]] std::uint64_t appended() const { return appended_; }
  [[nodiscard]] std::uint64_t stored() const { return pages_length_ == 0 ? 0 : pages_length_ - kPageSize; }
  // Bytes of chunks that earlier dumps have, and of those that this dump has stored for other memory.
  [[nodiscard]] std::uint64_t referred() const { return referred_; }
  [[nodiscard]] std::uint64_t equal() const { return equal_; }
  // What all threads together spent on it.
  [[nodiscard]] std::chrono::nanoseconds hashing() const { return hashing_; }
  [[nodiscard]] std::chrono::nanoseconds writing() const { return writing_; }

 private:
  friend class SessionWriter;
  FileWriter(SessionWriter& session, std::uint32_t number, std::optional<std::uint32_t> id)
      : session_(&session), number_(number), id_(id) {}

  // In which pages file a chunk is: this one's; that of another file of the dump; one of an earlier dump.
  enum class Where : std::uint8_t { kOwn, kOther, kEarlier };
  // A pages file that is not this one's, by its file's number, or its index in Earlier::sources().
  using Target = std::pair<Where, std::uint32_t>;

  // A chunk that has its place.
  struct Placed {
    std::uint64_t place = 0;  // in the index
    Chunk chunk;
    Target target = {Where::kOwn, 0};
    bool is_new = true;  // its bytes are to be written
  };

  [[nodiscard]] std::string pages_name() const {
    return id_ ? image::pages_name(*id_) : unfinished_pages_name(number_);
  }
  void write_chunk(std::uint64_t number, std::uint64_t place, std::span<const std::byte> bytes);
  // Looks for the chunk in the earlier dump.
  Placed look_up(std::uint64_t place, const Chunk& chunk);
  // Looks for it in this dump. Called when all chunks before it have their places in the pages file.
  base::Result<Placed> find_equal(const Placed& wanted, std::span<const std::byte> bytes);
  // The stored pieces packed, if that is worth while now; else nothing.
  std::vector<std::byte> pack_pieces(const Chunk& chunk, std::span<const std::byte> bytes);
  // Whether the pages file has a chunk of these bytes at `place`. Returns when a chunk before is written.
  base::Result<bool> has_bytes(const EqualChunks::Place& place, std::uint64_t stored, std::span<const std::byte> bytes);
  base::Result<Placed> store(std::uint64_t number, Placed placed, std::span<const std::byte> bytes);
  // Whether the file may have this target. With mutex_ locked.
  bool add_target(Target target);
  // All chunks, as the index has them, and the sources that they need.
  base::Result<std::vector<Chunk>> take_chunks(std::vector<Source>& sources);
  [[nodiscard]] Source source_of(Target target) const;
  // Writes the pieces of a chunk; or `packed`, which they were packed into, if that is not empty.
  base::Status write_pieces(const Chunk& chunk, std::span<const std::byte> bytes, std::span<const std::byte> packed);

  SessionWriter* session_;
  std::uint32_t number_;             // index in SessionWriter::writers_
  std::optional<std::uint32_t> id_;  // nothing: not known yet
  std::uint64_t appended_ = 0;
  std::uint64_t begun_ = 0;     // chunks that were appended
  std::uint64_t expected_ = 0;  // chunks of the BOs that were begun

  std::mutex mutex_;  // guards the members below, while the session has workers
  std::condition_variable changed_;
  base::UniqueFd pages_;            // opened by the first chunk that is not zero
  std::uint64_t pages_length_ = 0;  // 0: no pages file
  std::uint64_t referred_ = 0;
  std::uint64_t equal_ = 0;
  std::set<Target> targets_;                   // those that chunks are in
  std::map<std::uint64_t, KnownChunk> known_;  // by the place of the chunk, until it was looked up
  std::vector<Placed> chunks_;                 // those that have their place in the pages file, by their numbers
  std::set<std::uint64_t> written_;            // chunks from written_up_to_ on that are written
  std::uint64_t written_up_to_ = 0;            // all before this one are
  base::Status status_;
  std::chrono::nanoseconds hashing_{};
  std::chrono::nanoseconds writing_{};
};

class SessionWriter {
 public:
  // Removes the files of older dumps, of either version, from the directory, flattened ones too. dir_fd is borrowed for
  // the writer's life.
  static base::Result<std::unique_ptr<SessionWriter>> create(int dir_fd, std::uint64_t session_id);
  SessionWriter(const SessionWriter&) = delete;
  SessionWriter& operator=(const SessionWriter&) = delete;
  ~SessionWriter();

  // Bytes that the file system of the directory can still take; the largest number when it does not say.
  static base::Result<std::uint64_t> free_space(int dir_fd);

  // Threads that do a part of the work of append(), until stop_workers(). CRIU enters namespaces, which Linux refuses
  // to a process of several threads, so they must be gone when a hook returns; see Working.
  void start_workers();
  void stop_workers();

  // Contents that this dump, read from the same directory, has already are referred to. Before contents are appended.
  void refer_to(std::unique_ptr<const Earlier> earlier) { earlier_ = std::move(earlier); }
  // How chunks are stored, before contents are appended.
  void pack_by(Packing packing) { policy_.choose(packing); }
  // For tests: another disk, which is busy sooner; before start_workers().
  void write_back_by(std::uint64_t most, Writeback::Wait wait);
  // For tests: another checksum than hash_bytes(), before contents are appended.
  void hash_by(std::uint64_t (*hash)(std::span<const std::byte>)) { hash_ = hash; }
  // Null: to none.
  [[nodiscard]] const Earlier* earlier() const { return earlier_.get(); }
  // For the contents of file `id`; lives as long as this object. The same one when asked again.
  FileWriter& file(std::uint32_t id);
  // For the contents of a file whose id is not known yet; it must get one before prepare().
  FileWriter& nameless_file();
  base::Status give_id(FileWriter& file, std::uint32_t id);
  // Adds what all files have in their pages files, and what that took.
  void add_to(Timing& timing) const;
  // Once for each file. Nothing is written yet.
  base::Status add(File file);
  // Writes and syncs all files, and then the manifest under its temporary name. `session` has everything but id and
  // version, which this writer knows; `timing` is called between the two. Fails, and names the value, when a reader
  // would refuse what is to be written.
  base::Status prepare(Session session, const std::function<Timing()>& timing = {});
  [[nodiscard]] bool prepared() const { return state_ != State::kOpen; }
  // Makes the manifest visible, if what the dump refers to is still there. A failure leaves the dump to discard().
  base::Status commit();
  // Removes all files of this dump, the manifest first, also after commit(). Answers the first failure, but tries all.
  base::Status discard();

 private:
  friend class FileWriter;
  enum class State { kOpen, kPrepared, kCommitted, kDiscarded };

  SessionWriter(int dir_fd, std::uint64_t session_id) : dir_fd_(dir_fd), session_id_(session_id) {}

  [[nodiscard]] FileWriter* find_writer(std::uint32_t id) const;
  base::Result<base::UniqueFd> create_file(const std::string& name);
  base::Result<FileEntry> write_file(const File& file);
  base::Status write_index(std::span<const BoRecord> bos, FileWriter* contents, FileEntry& entry);
  base::Status finish_pages(FileWriter& contents);
  base::Result<std::uint64_t> write_payload(const std::string& name, FileKind kind, std::span<const std::byte> payload);
  base::Status sync_all();

  int dir_fd_;
  std::uint64_t session_id_;
  State state_ = State::kOpen;
  std::unique_ptr<const Earlier> earlier_;
  EqualChunks equal_chunks_;
  PackPolicy policy_;
  std::uint64_t (*hash_)(std::span<const std::byte>) = hash_bytes;
  std::atomic<std::size_t> num_sources_ = 0;  // of all files, and those that there was no place for
  std::vector<std::unique_ptr<FileWriter>> writers_;
  std::vector<File> files_;
  std::vector<FileEntry> entries_;  // after prepare()
  std::chrono::nanoseconds syncing_{};
  std::mutex created_mutex_;                                      // held for an insertion, which workers make too
  std::set<std::string> created_;                                 // names that discard() removes
  std::vector<std::pair<std::string, base::UniqueFd>> unsynced_;  // open until prepare() has synced them
  std::uint64_t most_waiting_ = Writeback::kMost;
  Writeback::Wait wait_ = Writeback::wait_for_disk;
  std::unique_ptr<Writeback> writeback_;    // as long as there are workers
  base::Status disk_;                       // what the disk said to those that were there before
  std::unique_ptr<base::Workers> workers_;  // last: they use the members above until they end
};

// The session has workers as long as this object lives.
class Working {
 public:
  explicit Working(SessionWriter& session) : session_(session) { session_.start_workers(); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  ~Working() { session_.stop_workers(); }

 private:
  SessionWriter& session_;
};

}  // namespace plugin::image
