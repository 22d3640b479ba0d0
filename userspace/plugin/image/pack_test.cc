// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Packed chunks: what is stored, what a reader finds, which damage it refuses, and when chunks are packed.
#include "plugin/image/pack.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <random>

#include "plugin/image/bytes.h"
#include "plugin/image/test_support.h"

namespace plugin::image {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kIndexHead = 24;
constexpr std::size_t kBoEntry = 48;

// Without a zero byte. LZ4 makes a tenth of it; other seeds have other bytes.
Bytes text(std::size_t size, unsigned seed = 1) {
  Bytes bytes(size);
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < size; i += 64) {
    const auto word = static_cast<std::byte>(random() | 1U);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i), std::min<std::size_t>(64, size - i), word);
  }
  return bytes;
}

Bytes noise(std::size_t size) {
  Bytes bytes(size);
  std::mt19937 random(7);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random() | 1U);
  return bytes;
}

TEST(Pack, bytes_come_back) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{5000}, std::size_t{kChunkSize}}) {
    const Bytes bytes = text(size);
    const Bytes packed = pack(bytes);
    ASSERT_FALSE(packed.empty()) << size;
    EXPECT_LT(packed.size(), size);
    Bytes out(size);
    EXPECT_TRUE(unpack(packed, out).ok());
    EXPECT_TRUE(out == bytes);
  }
}

TEST(Pack, what_does_not_become_smaller_is_not_packed) {
  EXPECT_TRUE(pack(noise(kChunkSize)).empty());
  EXPECT_TRUE(pack(noise(1)).empty());
}

TEST(Pack, other_lengths_are_refused) {
  const Bytes bytes = text(5000);
  Bytes packed = pack(bytes);
  for (const std::size_t size : {4999U, 5001U}) {
    Bytes out(size);
    EXPECT_FALSE(unpack(packed, out).ok()) << size;
  }
  Bytes out(bytes.size());
  EXPECT_FALSE(unpack(std::span(packed).first(packed.size() - 1), out).ok());
  EXPECT_FALSE(unpack(std::span(packed).first(0), out).ok());
  packed.push_back(std::byte{0});
  EXPECT_FALSE(unpack(packed, out).ok());
}

TEST(PackPolicy, packs_while_the_disk_is_busy) {
  PackPolicy policy;
  EXPECT_FALSE(policy.wants(false));
  EXPECT_TRUE(policy.wants(true));
  policy.choose(Packing::kNever);
  EXPECT_FALSE(policy.wants(true));
  policy.choose(Packing::kAlways);
  EXPECT_TRUE(policy.wants(false));
}

TEST(PackPolicy, passes_over_more_chunks_after_each_that_did_not_become_smaller) {
  PackPolicy policy;
  const auto passed_over = [&policy] {
    unsigned count = 0;
    while (!policy.wants(true)) ++count;
    return count;
  };
  EXPECT_EQ(passed_over(), 0U);
  for (const unsigned expected : {1U, 3U, 7U, 15U, 31U, 63U, 63U}) {
    policy.learn(false);
    EXPECT_EQ(passed_over(), expected);
  }
  policy.learn(true);
  EXPECT_EQ(passed_over(), 0U);
  policy.learn(false);
  EXPECT_EQ(passed_over(), 1U);
}

class PackedDumpTest : public SessionTest {
 protected:
  // `prepare` is told the writer before contents are appended.
  void write(const std::vector<Bytes>& contents, Packing packing, bool threads = false,
             const std::function<void(SessionWriter&)>& prepare = {}) {
    auto writer = SessionWriter::create(dir(), kSession);
    ASSERT_TRUE(writer.ok());
    (*writer)->pack_by(packing);
    if (prepare) prepare(**writer);
    if (threads) (*writer)->start_workers();
    for (const Bytes& each : contents) EXPECT_TRUE((*writer)->file(kKfdId).append(each).ok());
    expect_ok((*writer)->file(kKfdId).settle_all());
    (*writer)->stop_workers();
    expect_ok((*writer)->add({kKfdId, kfd_of(42, contents)}));
    expect_ok((*writer)->prepare(test_session()));
    expect_ok((*writer)->commit());
  }

  void expect_contents(const std::vector<Bytes>& expected) const {
    const Catalogue images = catalogue();
    const auto loaded = images.find(kKfdId);
    ASSERT_TRUE(loaded.ok() && *loaded != nullptr) << (loaded.ok() ? "" : loaded.error().message());
    const auto contents = open_contents(dir(), **loaded);
    ASSERT_TRUE(contents.ok()) << contents.error().message();
    for (std::size_t bo = 0; bo < expected.size(); ++bo) {
      Bytes bytes(expected[bo].size());
      BoReader reader(*contents, bo);
      expect_ok(reader.read(bytes));
      EXPECT_TRUE(bytes == expected[bo]) << "BO " << bo;
    }
  }

  [[nodiscard]] std::string error_of_contents() const {
    const Catalogue images = catalogue();
    const auto loaded = images.find(kKfdId);
    if (!loaded.ok()) return loaded.error().message();
    const auto contents = open_contents(dir(), **loaded);
    if (!contents.ok()) return contents.error().message();
    const auto status = contents->verify();
    return status.ok() ? "" : status.error().message();
  }

  [[nodiscard]] std::vector<Chunk> chunks() const { return (*catalogue().find(kKfdId))->index().chunks; }
  [[nodiscard]] bool is_packed() const { return (*catalogue().find(kKfdId))->entry().packed; }
  [[nodiscard]] std::uint64_t pages_length() const { return fs::file_size(path(pages_name(kKfdId))); }

  static std::uint64_t same_hash(std::span<const std::byte>) { return 1; }
};

TEST_F(PackedDumpTest, takes_less_space_and_has_the_same_contents) {
  const std::vector<Bytes> bos = {text(3 * std::size_t{kChunkSize} + 5000), noise(kChunkSize), text(100, 2)};
  write(bos, Packing::kNever);
  const std::uint64_t plain = pages_length();
  EXPECT_FALSE(is_packed());
  expect_contents(bos);
  for (const bool threads : {false, true}) {
    write(bos, Packing::kAlways, threads);
    EXPECT_TRUE(is_packed());
    EXPECT_LT(pages_length(), plain / 2);
    const auto all = chunks();
    ASSERT_EQ(all.size(), 6U);
    EXPECT_NE(all[0].packed, 0U);
    EXPECT_EQ(all[4].packed, 0U) << "noise was packed";
    expect_contents(bos);
    EXPECT_EQ(error_of_contents(), "");
  }
}

TEST_F(PackedDumpTest, pieces_that_are_zero_are_left_out) {
  Bytes bytes = text(2 * std::size_t{kChunkSize});
  for (const std::size_t piece : {0U, 5U, 6U, 15U, 20U})
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(piece * kPieceSize), kPieceSize, std::byte{0});
  const Bytes zeros(kChunkSize);
  write({bytes, zeros}, Packing::kAlways);
  EXPECT_NE(chunks()[0].packed, 0U);
  EXPECT_EQ(chunks()[2].packed, 0U);
  expect_contents({bytes, zeros});
}

TEST_F(PackedDumpTest, equal_chunks_are_stored_once) {
  const std::vector<Bytes> bos = {text(kChunkSize), text(kChunkSize, 2), text(kChunkSize)};
  write(bos, Packing::kAlways);
  const auto all = chunks();
  EXPECT_EQ(all[2], all[0]);
  EXPECT_NE(all[1].offset, all[0].offset);
  expect_contents(bos);
}

TEST_F(PackedDumpTest, equal_checksums_do_not_make_packed_chunks_equal) {
  const std::vector<Bytes> bos = {text(kChunkSize), text(kChunkSize, 2)};
  write(bos, Packing::kAlways, false, [](SessionWriter& writer) { writer.hash_by(same_hash); });
  EXPECT_NE(chunks()[1].offset, chunks()[0].offset);
}

TEST_F(PackedDumpTest, a_changed_byte_is_found) {
  const std::vector<Bytes> bos = {text(kChunkSize)};
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{777}}) {
    write(bos, Packing::kAlways);
    std::string bytes = base::read_file(path(pages_name(kKfdId)));
    bytes[kPageSize + at] = static_cast<char>(bytes[kPageSize + at] ^ 0x40);
    base::write_file(path(pages_name(kKfdId)), bytes);
    EXPECT_NE(error_of_contents(), "") << at;
    EXPECT_NE(error_of_contents().find("damaged"), std::string::npos) << error_of_contents();
  }
}

// A few changed bytes of LZ4 unpack to the same contents: those that choose between equal bytes to copy.
TEST_F(PackedDumpTest, a_changed_byte_is_found_or_changes_nothing) {
  const std::vector<Bytes> bos = {text(kPieceSize)};
  write(bos, Packing::kAlways);
  const std::size_t end = kPageSize + chunks()[0].packed;
  const auto has_error = [this](const std::string& name, const std::string& good, std::size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    base::write_file(path(name), bytes);
    return !error_of_contents().empty();
  };
  const std::string pages = base::read_file(path(pages_name(kKfdId)));
  for (std::size_t at = 0; at < pages.size(); at += 3) {
    if (has_error(pages_name(kKfdId), pages, at)) continue;
    ASSERT_TRUE(at >= kPageSize && at < end) << "byte " << at;
    expect_contents(bos);
  }
  base::write_file(path(pages_name(kKfdId)), pages);
  const std::string index = base::read_file(path(index_name(kKfdId)));
  for (std::size_t at = 0; at < index.size(); ++at)
    ASSERT_TRUE(has_error(index_name(kKfdId), index, at)) << "byte " << at;
}

TEST_F(PackedDumpTest, an_index_of_packed_chunks_has_one) {
  Index index;
  index.bos = {test_bo(kChunkSize)};
  index.chunks = {{kPageSize, 1, 0xffff, 5000}};
  auto bytes = encode_index(index);
  const auto read = decode_index(bytes, true);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->chunks, index.chunks);
  EXPECT_FALSE(decode_index(bytes, false).ok());
  put(std::span(bytes), kIndexHead + kBoEntry + 24, std::uint64_t{0});
  EXPECT_FALSE(decode_index(bytes, true).ok());
}

TEST_F(PackedDumpTest, impossible_lengths_are_refused) {
  Index index;
  index.bos = {test_bo(kChunkSize)};
  const auto is_valid = [&index](std::uint64_t packed, std::uint64_t pages) {
    index.chunks = {{kPageSize, 1, 0xffff, packed}};
    return validate(index, pages, Version::k2).ok();
  };
  EXPECT_TRUE(is_valid(5000, 3 * kPageSize));
  EXPECT_FALSE(is_valid(5000, 2 * kPageSize));
  EXPECT_TRUE(is_valid(kChunkSize - 1, kPageSize + kChunkSize));
  EXPECT_FALSE(is_valid(kChunkSize, kPageSize + kChunkSize));
  EXPECT_FALSE(is_valid(UINT64_MAX, kPageSize + kChunkSize));
  // Nothing is stored.
  index.chunks = {{0, 0, 0, 5}};
  EXPECT_FALSE(validate(index, 0, Version::k2).ok());
}

// A disk that does nothing until it is let.
class StuckDisk {
 public:
  void set_free() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  Writeback::Wait as_wait() {
    return [this](int /*file*/, std::uint64_t /*offset*/, std::uint64_t /*length*/) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return free_; });
      return 0;
    };
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool free_ = false;
};

TEST_F(PackedDumpTest, chunks_are_packed_as_long_as_the_disk_does_not_keep_up) {
  const std::vector<Bytes> bos = {text(16 * std::size_t{kChunkSize})};
  StuckDisk disk;
  auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_TRUE(writer.ok());
  (*writer)->write_back_by(8 * std::uint64_t{kChunkSize}, disk.as_wait());
  (*writer)->start_workers();
  FileWriter& file = (*writer)->file(kKfdId);
  for (std::size_t i = 0; i < 16; ++i) {
    const auto number = file.append(std::span(bos[0]).subspan(i * kChunkSize, kChunkSize));
    ASSERT_TRUE(number.ok());
    expect_ok(file.settle(*number));
  }
  disk.set_free();
  (*writer)->stop_workers();
  expect_ok((*writer)->add({kKfdId, kfd_of(42, bos)}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  const auto all = chunks();
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].packed != 0, i >= 4) << i;
  expect_contents(bos);
}

TEST_F(PackedDumpTest, an_error_of_the_disk_fails_the_dump) {
  auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_TRUE(writer.ok());
  (*writer)->write_back_by(kChunkSize, [](int, std::uint64_t, std::uint64_t) {
    errno = EIO;
    return -1;
  });
  (*writer)->start_workers();
  const Bytes bytes = text(kChunkSize);
  EXPECT_TRUE((*writer)->file(kKfdId).append(bytes).ok());
  (void)(*writer)->file(kKfdId).settle_all();
  (*writer)->stop_workers();
  expect_ok((*writer)->add({kKfdId, kfd_of(42, {bytes})}));
  const auto prepared = (*writer)->prepare(test_session());
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().code(), EIO);
}

}  // namespace
}  // namespace plugin::image
