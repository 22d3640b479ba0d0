// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Chunks that are equal in several BOs and files of a dump: where they are stored, what a reader finds, and that bytes
// decide, not checksums.
#include "plugin/image/equal_chunks.h"

#include <gtest/gtest.h>

#include "plugin/image/test_support.h"

namespace plugin::image {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kOtherId = 9;
constexpr std::uint32_t kPid = 42;
constexpr std::uint32_t kOtherPid = 43;

class EqualChunksTest : public SessionTest {
 protected:
  static void append(SessionWriter& writer, std::uint32_t id, const std::vector<Bytes>& contents) {
    for (const Bytes& each : contents) EXPECT_TRUE(writer.file(id).append(each).ok());
    EXPECT_TRUE(writer.file(id).settle_all().ok());
  }

  // A dump of one file, or with `others` of two.
  void write(const std::vector<Bytes>& contents, const std::vector<Bytes>& others = {}, bool threads = false,
             std::uint64_t (*hash)(std::span<const std::byte>) = nullptr) {
    auto writer = SessionWriter::create(dir(), kSession);
    ASSERT_TRUE(writer.ok());
    if (hash != nullptr) (*writer)->hash_by(hash);
    if (threads) (*writer)->start_workers();
    append(**writer, kKfdId, contents);
    if (!others.empty()) append(**writer, kOtherId, others);
    (*writer)->stop_workers();
    Session session = test_session();
    (*writer)->add_to(session.timing.emplace());
    timing_ = *session.timing;
    expect_ok((*writer)->add({kKfdId, kfd_of(kPid, contents)}));
    if (!others.empty()) expect_ok((*writer)->add({kOtherId, kfd_of(kOtherPid, others)}));
    expect_ok((*writer)->prepare(session));
    expect_ok((*writer)->commit());
  }

  void expect_contents(std::uint32_t id, const std::vector<Bytes>& expected) const {
    const Catalogue images = catalogue();
    const auto loaded = images.find(id);
    ASSERT_TRUE(loaded.ok() && *loaded != nullptr);
    const auto contents = open_contents(dir(), **loaded);
    ASSERT_TRUE(contents.ok()) << contents.error().message();
    ASSERT_EQ(contents->bos().size(), expected.size());
    for (std::size_t bo = 0; bo < expected.size(); ++bo) {
      Bytes bytes(expected[bo].size());
      BoReader reader(*contents, bo);
      expect_ok(reader.read(bytes));
      EXPECT_TRUE(bytes == expected[bo]) << "BO " << bo;
    }
  }

  [[nodiscard]] std::vector<Chunk> chunks(std::uint32_t id = kKfdId) const {
    return (*catalogue().find(id))->index().chunks;
  }
  [[nodiscard]] std::uint64_t pages_length(std::uint32_t id = kKfdId) const {
    const std::string name = path(pages_name(id));
    return fs::exists(name) ? fs::file_size(name) : 0;
  }

  // `value` makes contents differ; chunks of one contents differ, too.
  static Bytes contents(unsigned char value, std::size_t size = kChunkSize) {
    Bytes bytes = pattern(size);
    for (std::size_t i = 0; i < size; i += kPieceSize) bytes[i] = std::byte{value};
    return bytes;
  }

  static std::uint64_t same_hash(std::span<const std::byte>) { return 1; }

  Timing timing_;
};

TEST_F(EqualChunksTest, of_two_bos_are_stored_once) {
  const std::vector<Bytes> bos = {contents(2, 2 * std::size_t{kChunkSize} + 5000), contents(4),
                                  contents(2, 2 * std::size_t{kChunkSize} + 5000)};
  write(bos);
  EXPECT_EQ(pages_length(), kPageSize + 3 * kChunkSize + 2 * kPageSize);
  EXPECT_EQ(timing_.equal_bytes, 2 * kChunkSize + 5000);
  EXPECT_EQ(timing_.stored_bytes, pages_length() - kPageSize);
  EXPECT_EQ(timing_.referred_bytes, 0U);
  expect_contents(kKfdId, bos);
}

TEST_F(EqualChunksTest, of_two_processes_are_stored_once) {
  const std::vector<Bytes> first = {contents(2, 2 * std::size_t{kChunkSize})};
  const std::vector<Bytes> second = {contents(2, 2 * std::size_t{kChunkSize}), contents(4)};
  write(first, second);
  EXPECT_EQ(pages_length(kOtherId), kPageSize + kChunkSize);
  const auto entry = (*catalogue().find(kOtherId))->entry();
  EXPECT_EQ(entry.sources, (std::vector<Source>{{0, kKfdId, kSession, pages_length()}}));
  EXPECT_FALSE(needs_earlier(entry));
  expect_contents(kKfdId, first);
  expect_contents(kOtherId, second);
}

// As a dump writes several processes: which file has which id is known later, and not in this order.
TEST_F(EqualChunksTest, of_files_that_get_their_ids_later_are_found) {
  const std::vector<Bytes> first = {contents(2), contents(4)};
  const std::vector<Bytes> second = {contents(4), contents(6)};
  auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_TRUE(writer.ok());
  FileWriter& a = (*writer)->nameless_file();
  FileWriter& b = (*writer)->nameless_file();
  for (const Bytes& each : first) expect_ok(a.append(each));
  for (const Bytes& each : second) expect_ok(b.append(each));
  expect_ok((*writer)->give_id(b, kKfdId));
  expect_ok((*writer)->give_id(a, kOtherId));
  expect_ok((*writer)->add({kOtherId, kfd_of(kPid, first)}));
  expect_ok((*writer)->add({kKfdId, kfd_of(kOtherPid, second)}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  EXPECT_EQ((*catalogue().find(kKfdId))->entry().sources,
            (std::vector<Source>{{0, kOtherId, kSession, pages_length(kOtherId)}}));
  expect_contents(kOtherId, first);
  expect_contents(kKfdId, second);
}

TEST_F(EqualChunksTest, may_be_all_that_a_process_has) {
  write({contents(2)}, {contents(2)});
  EXPECT_EQ(pages_length(kOtherId), 0U);
  expect_contents(kOtherId, {contents(2)});
}

TEST_F(EqualChunksTest, are_the_same_ones_with_threads) {
  std::vector<Bytes> first;
  for (unsigned char i = 0; i < 12; ++i)
    first.push_back(contents(static_cast<unsigned char>(i % 3 * 2 + 1), (1 + i % 2) * std::size_t{kChunkSize}));
  const std::vector<Bytes> second(first.rbegin(), first.rend());
  write(first, second);
  const auto alone = files();
  write(first, second, true);
  auto together = files();
  // It has the times.
  together[std::string(kManifestName)] = alone.at(std::string(kManifestName));
  EXPECT_TRUE(alone == together);
  expect_contents(kOtherId, second);
}

TEST_F(EqualChunksTest, are_those_with_equal_bytes_whatever_their_checksum_is) {
  write({contents(2), contents(4), contents(2), contents(4)}, {contents(6), contents(2)}, false, same_hash);
  const auto stored = chunks();
  EXPECT_EQ(stored[0].offset, kPageSize);
  EXPECT_EQ(stored[1].offset, kPageSize + kChunkSize);
  EXPECT_EQ(stored[2].offset, stored[0].offset);
  // Only the first chunk of a checksum is looked for.
  EXPECT_EQ(stored[3].offset, kPageSize + 2 * kChunkSize);
  const auto other = chunks(kOtherId);
  EXPECT_EQ(other[0].offset, kPageSize);
  EXPECT_EQ(other[1].offset, pages_length(kOtherId) + kPageSize);
  const std::string pages = base::read_file(path(pages_name(kKfdId)));
  const Bytes expected = contents(4);
  EXPECT_EQ(std::memcmp(pages.data() + stored[3].offset, expected.data(), expected.size()), 0);
}

TEST_F(EqualChunksTest, have_the_same_length_and_the_same_pieces) {
  const Bytes whole = contents(2);
  const Bytes shorter(whole.begin(), whole.end() - kPageSize);
  // As many bytes are stored of both, and these are equal.
  Bytes first_zero = contents(2);
  Bytes last_zero = contents(2);
  std::fill_n(first_zero.begin(), kPieceSize, std::byte{0});
  std::copy(first_zero.begin() + kPieceSize, first_zero.end(), last_zero.begin());
  std::fill_n(last_zero.end() - kPieceSize, kPieceSize, std::byte{0});
  write({whole, shorter}, {}, false, same_hash);
  EXPECT_NE(chunks()[0].offset, chunks()[1].offset);
  write({first_zero, last_zero}, {}, false, same_hash);
  EXPECT_NE(chunks()[0].offset, chunks()[1].offset);
}

TEST_F(EqualChunksTest, that_a_later_dump_has_too_are_found_where_they_are) {
  write({contents(2)}, {contents(2), contents(4)});
  const base::TempDir later;
  fs::create_directory_symlink(fs::relative(dir_.path(), later.path()), later.path() + "/parent");
  const base::UniqueFd dir_of_later(::open(later.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto earlier = Earlier::read(dir_of_later.get());
  ASSERT_TRUE(earlier.ok()) << earlier.error().message();
  const KfdFile kfd = kfd_of(kOtherPid, {contents(2), contents(4)});
  const auto first = (*earlier)->find(name_of(Kind::kKfd, kOtherPid, kfd.bos[0]));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ((*earlier)->sources()[first[0].source], (Source{1, kKfdId, kSession, pages_length()}));
  EXPECT_EQ(first[0].chunk.offset, kPageSize);
  const auto second = (*earlier)->find(name_of(Kind::kKfd, kOtherPid, kfd.bos[1]));
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ((*earlier)->sources()[second[0].source], (Source{1, kOtherId, kSession, pages_length(kOtherId)}));
}

// Without the other file it is no dump.
TEST_F(EqualChunksTest, of_a_file_that_is_gone_are_refused) {
  write({contents(2)}, {contents(2)});
  fs::remove(path(pages_name(kKfdId)));
  EXPECT_NE(load_error(kOtherId).find("amdgpu-pages-7.img"), std::string::npos) << load_error(kOtherId);
}

struct BadOwnSource {
  const char* name;
  void (*change)(Source& source);
};

class BadOwnSources : public ::testing::TestWithParam<BadOwnSource> {};

TEST_P(BadOwnSources, are_refused) {
  Manifest manifest{test_session(),
                    {{7, Kind::kKfd, 10, 1, 100, 1, 2 * kPageSize, {}},
                     {8, Kind::kKfd, 10, 1, 100, 1, 0, {{0, 7, kSession, 2 * kPageSize}}}}};
  const auto good = validate(manifest);
  ASSERT_TRUE(good.ok()) << good.error().message();
  GetParam().change(manifest.files[1].sources[0]);
  const auto bad = validate(manifest);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message().find("which this dump does not have so"), std::string::npos) << bad.error().message();
}

INSTANTIATE_TEST_SUITE_P(Values, BadOwnSources,
                         ::testing::Values(BadOwnSource{"itself", [](Source& s) { s.id = 8; }},
                                           BadOwnSource{"nobody", [](Source& s) { s.id = 9; }},
                                           BadOwnSource{"another_dump", [](Source& s) { s.session_id = 1; }},
                                           BadOwnSource{"longer", [](Source& s) { s.pages_length = 3 * kPageSize; }}),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace plugin::image
