// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Dumps that refer to contents of earlier ones: what is stored again, what a reader finds, and what it refuses.
#include "plugin/image/earlier.h"

#include <gtest/gtest.h>

#include "plugin/image/test_support.h"

namespace plugin::image {
namespace {

namespace fs = std::filesystem;

// Directories "1", "2", ... of one program's dumps. `parent` of each is the one before.
class EarlierTest : public ::testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;

  [[nodiscard]] std::string path(int dump) const { return root_.path() + "/" + std::to_string(dump); }
  [[nodiscard]] std::string pages(int dump) const { return path(dump) + "/amdgpu-pages-7.img"; }
  [[nodiscard]] base::UniqueFd open(int dump) const {
    return base::UniqueFd(::open(path(dump).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

  void make(int dump, int parent) const {
    fs::create_directories(path(dump));
    fs::remove(path(dump) + "/parent");
    if (parent != 0) fs::create_symlink("../" + std::to_string(parent), path(dump) + "/parent");
  }

  // Writes a dump as the plugin does; answers why it does not refer to an earlier one.
  std::string write(int dump, int parent, const Bytes& contents, bool threads = false) const {
    make(dump, parent);
    const base::UniqueFd dir = open(dump);
    auto earlier = Earlier::read(dir.get());
    auto writer = SessionWriter::create(dir.get(), session_of(dump));
    EXPECT_TRUE(writer.ok());
    if (earlier.ok()) (*writer)->refer_to(std::move(*earlier));
    if (threads) (*writer)->start_workers();
    KfdFile kfd = test_kfd();
    kfd.bos.push_back(test_bo(contents.size()));
    FileWriter& file = (*writer)->file(kKfdId);
    file.begin_bo(name_of(Kind::kKfd, kfd.pid, kfd.bos[0]));
    EXPECT_TRUE(file.append(contents).ok());
    EXPECT_TRUE(file.settle_all().ok());
    (*writer)->stop_workers();
    Session session = test_session();
    (*writer)->add_to(session.timing.emplace());
    EXPECT_TRUE((*writer)->add({kKfdId, kfd}).ok());
    const auto prepared = (*writer)->prepare(session);
    EXPECT_TRUE(prepared.ok()) << prepared.error().message();
    EXPECT_TRUE((*writer)->commit().ok());
    return earlier.ok() ? "" : earlier.error().message();
  }

  [[nodiscard]] base::Result<Bytes> read(int dump) const {
    const base::UniqueFd dir = open(dump);
    ASSIGN_OR_RETURN(const Catalogue catalogue, Catalogue::read(dir.get()));
    ASSIGN_OR_RETURN(const Loaded* loaded, catalogue.find(kKfdId));
    if (loaded == nullptr) return base::Error(ENOENT, "no image");
    ASSIGN_OR_RETURN(const Contents contents, open_contents(dir.get(), *loaded));
    TRY(contents.verify());
    Bytes bytes(contents.bos()[0].bo.size);
    BoReader reader(contents, 0);
    TRY(reader.read(bytes));
    return bytes;
  }

  void expect_contents(int dump, const Bytes& expected) const {
    const auto found = read(dump);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_TRUE(*found == expected);
  }

  void expect_refused(int dump, const std::string& why) const {
    const auto found = read(dump);
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.error().message().find(why), std::string::npos) << found.error().message();
  }

  [[nodiscard]] FileEntry entry(int dump) const {
    const base::UniqueFd dir = open(dump);
    const auto manifest = load_manifest(dir.get());
    return manifest.ok() && *manifest ? (*manifest)->files.at(0) : FileEntry();
  }

  static std::uint64_t session_of(int dump) { return 1000 + static_cast<std::uint64_t>(dump); }

  // Four chunks, the last one short; `change` alters the chunk with this number.
  static Bytes contents(int change = -1, unsigned char value = 2) {
    Bytes bytes = pattern(3 * std::size_t{kChunkSize} + 5000);
    if (change >= 0) bytes[static_cast<std::size_t>(change) * kChunkSize + 77] = std::byte{value};
    return bytes;
  }

  base::TempDir root_;
};

TEST_F(EarlierTest, equal_contents_are_not_stored_again) {
  write(1, 0, contents());
  EXPECT_EQ(write(2, 1, contents()), "");
  EXPECT_FALSE(fs::exists(pages(2)));
  EXPECT_EQ(entry(2).sources, (std::vector<Source>{{1, kKfdId, session_of(1), fs::file_size(pages(1))}}));
  expect_contents(2, contents());
}

TEST_F(EarlierTest, only_chunks_that_changed_are_stored) {
  write(1, 0, contents());
  write(2, 1, contents(1));
  EXPECT_EQ(fs::file_size(pages(2)), kPageSize + kChunkSize);
  expect_contents(2, contents(1));
  expect_contents(1, contents());
}

TEST_F(EarlierTest, threads_write_the_same_files) {
  write(1, 0, contents());
  write(2, 1, contents(2));
  write(3, 1, contents(2), true);
  EXPECT_EQ(fs::file_size(pages(3)), fs::file_size(pages(2)));
  EXPECT_EQ(base::read_file(path(3) + "/amdgpu-index-7.img"), base::read_file(path(2) + "/amdgpu-index-7.img"));
  expect_contents(3, contents(2));
}

TEST_F(EarlierTest, the_manifest_says_what_was_referred_to) {
  write(1, 0, contents());
  write(2, 1, contents(0));
  const base::UniqueFd dir = open(2);
  const auto manifest = load_manifest(dir.get());
  ASSERT_TRUE(manifest.ok() && *manifest && (*manifest)->session.timing);
  EXPECT_EQ((*manifest)->session.timing->referred_bytes, 2 * kChunkSize + 5000);
}

TEST_F(EarlierTest, each_chunk_is_looked_for_where_it_was_stored) {
  write(1, 0, contents());
  write(2, 1, contents(1));
  write(3, 2, contents(1));
  EXPECT_FALSE(fs::exists(pages(3)));
  const auto sources = entry(3).sources;
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_EQ(source_name(sources[0]), "parent/parent/amdgpu-pages-7.img");
  EXPECT_EQ(source_name(sources[1]), "parent/amdgpu-pages-7.img");
  expect_contents(3, contents(1));
}

TEST_F(EarlierTest, zeros_and_contents_that_replace_each_other_come_back) {
  Bytes zeros(contents().size());
  write(1, 0, contents());
  write(2, 1, zeros);
  write(3, 2, contents());
  EXPECT_EQ(fs::file_size(pages(3)), fs::file_size(pages(1)));
  expect_contents(2, zeros);
  expect_contents(3, contents());
}

TEST_F(EarlierTest, a_pre_dump_between_them_is_passed_over) {
  write(1, 0, contents());
  make(2, 1);
  write(3, 2, contents());
  EXPECT_EQ(entry(3).sources, (std::vector<Source>{{2, kKfdId, session_of(1), fs::file_size(pages(1))}}));
  expect_contents(3, contents());
}

TEST_F(EarlierTest, without_an_earlier_dump_everything_is_stored) {
  make(1, 0);
  EXPECT_EQ(write(2, 1, contents()), "");
  EXPECT_TRUE(entry(2).sources.empty());
  EXPECT_EQ(write(3, 9, contents()), "");
  EXPECT_TRUE(entry(3).sources.empty());
  expect_contents(3, contents());
}

TEST_F(EarlierTest, memory_of_another_name_is_stored) {
  write(1, 0, contents());
  const base::UniqueFd dir = open(1);
  make(2, 1);
  const base::UniqueFd next = open(2);
  const auto earlier = Earlier::read(next.get());
  ASSERT_TRUE(earlier.ok() && *earlier != nullptr);
  const MemoryName good = name_of(Kind::kKfd, 42, test_bo(contents().size()));
  EXPECT_EQ((*earlier)->find(good).size(), 4U);
  for (const auto& change : std::initializer_list<void (*)(MemoryName&)>{
           [](MemoryName& name) { name.kind = Kind::kRender; }, [](MemoryName& name) { name.owner = 43; },
           [](MemoryName& name) { name.gpu_id = 1; }, [](MemoryName& name) { name.addr += kPageSize; },
           [](MemoryName& name) { name.handle = 78; }, [](MemoryName& name) { name.size += kPageSize; }}) {
    MemoryName name = good;
    change(name);
    EXPECT_TRUE((*earlier)->find(name).empty());
  }
}

TEST_F(EarlierTest, a_dump_whose_earlier_one_is_missing_is_refused) {
  write(1, 0, contents());
  write(2, 1, contents(1));
  fs::rename(path(1), path(9));
  expect_refused(2, "parent/amdgpu-pages-7.img: opening the directory of the dump before");
  fs::create_directories(path(1));
  expect_refused(2, "parent/amdgpu-pages-7.img: is missing");
}

TEST_F(EarlierTest, a_dump_whose_earlier_one_was_replaced_is_refused) {
  write(1, 0, contents());
  write(2, 1, contents(1));
  fs::rename(path(1), path(9));
  write(3, 0, contents(2));
  fs::rename(path(3), path(1));
  expect_refused(2, "parent/amdgpu-pages-7.img: is of another dump");
}

TEST_F(EarlierTest, a_dump_whose_earlier_one_was_truncated_or_changed_is_refused) {
  write(1, 0, contents());
  write(2, 1, contents(1));
  const std::string good = base::read_file(pages(1));
  base::write_file(pages(1), good.substr(0, good.size() - 1));
  expect_refused(2, "parent/amdgpu-pages-7.img: truncated");
  std::string bad = good;
  bad[kPageSize + 5] ^= 1;
  base::write_file(pages(1), bad);
  expect_refused(2, "parent/amdgpu-pages-7.img: damaged: wrong checksum");
  bad = good;
  bad.back() = 1;  // behind the last chunk
  base::write_file(pages(1), bad);
  expect_refused(2, "parent/amdgpu-pages-7.img: ");
  base::write_file(pages(1), good);
  expect_contents(2, contents(1));
}

TEST_F(EarlierTest, a_damaged_dump_is_not_referred_to) {
  write(1, 0, contents());
  fs::remove(pages(1));
  EXPECT_NE(write(2, 1, contents()).find("amdgpu-pages-7.img: is missing"), std::string::npos);
  EXPECT_TRUE(entry(2).sources.empty());
  expect_contents(2, contents());
}

TEST_F(EarlierTest, a_dump_whose_earlier_one_goes_away_is_not_committed) {
  write(1, 0, contents());
  make(2, 1);
  const base::UniqueFd dir = open(2);
  auto earlier = Earlier::read(dir.get());
  auto writer = SessionWriter::create(dir.get(), session_of(2));
  ASSERT_TRUE(earlier.ok() && writer.ok());
  (*writer)->refer_to(std::move(*earlier));
  KfdFile kfd = test_kfd();
  kfd.bos.push_back(test_bo(contents().size()));
  (*writer)->file(kKfdId).begin_bo(name_of(Kind::kKfd, kfd.pid, kfd.bos[0]));
  const Bytes bytes = contents();
  ASSERT_TRUE((*writer)->file(kKfdId).append(bytes).ok());
  ASSERT_TRUE((*writer)->add({kKfdId, kfd}).ok());
  ASSERT_TRUE((*writer)->prepare(test_session()).ok());
  fs::rename(pages(1), path(1) + "/away");
  const auto refused = (*writer)->commit();
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("a file that this dump refers to has changed since"), std::string::npos);
  fs::rename(path(1) + "/away", pages(1));
  EXPECT_TRUE((*writer)->commit().ok());
  expect_contents(2, contents());
}

// The new dump would remove what the dump before it, or itself, refers to.
TEST_F(EarlierTest, a_dump_into_the_directory_of_an_earlier_one_that_is_needed_is_refused) {
  write(1, 0, contents());
  write(2, 1, contents(1));
  for (const int parent : {2, 1}) {
    make(1, parent);
    const base::UniqueFd dir = open(1);
    const auto earlier = Earlier::read(dir.get());
    ASSERT_FALSE(earlier.ok());
    EXPECT_EQ(earlier.error().code(), ELOOP);
    EXPECT_NE(earlier.error().message().find("dump into another directory"), std::string::npos);
  }
  expect_contents(2, contents(1));
}

// A restored task in a mount namespace would look for it elsewhere.
TEST_F(EarlierTest, an_absolute_path_is_not_referred_to) {
  write(1, 0, contents());
  make(2, 0);
  fs::create_symlink(path(1), path(2) + "/parent");
  const base::UniqueFd dir = open(2);
  const auto earlier = Earlier::read(dir.get());
  ASSERT_FALSE(earlier.ok());
  EXPECT_NE(earlier.error().message().find("absolute"), std::string::npos);
  fs::remove(path(2) + "/parent");
  fs::create_symlink("../1", path(2) + "/parent");
  write(2, 1, contents());
  make(3, 0);
  fs::remove(path(2) + "/parent");
  fs::create_symlink(path(1), path(2) + "/parent");
  // The files of dump 1 are behind the absolute link of dump 2.
  write(3, 2, contents());
  EXPECT_TRUE(entry(3).sources.empty());
}

TEST_F(EarlierTest, contents_that_are_too_many_dumps_away_are_stored_again) {
  constexpr int kDumps = static_cast<int>(kMaxDepth) + 2;
  write(1, 0, contents());
  for (int dump = 2; dump <= kDumps; ++dump) {
    write(dump, dump - 1, contents());
    EXPECT_EQ(fs::exists(pages(dump)), dump == kDumps) << dump;
  }
  expect_contents(kDumps, contents());
  expect_contents(kDumps - 1, contents());
}

struct BadReference {
  std::uint64_t offset;
  const char* why;
};

class BadReferences : public ::testing::TestWithParam<BadReference> {};

// A pages file of two pages, and one of an earlier dump of six.
TEST_P(BadReferences, are_refused) {
  const std::vector<Source> sources = {{1, 7, 5, 6 * kPageSize}};
  Index index;
  index.bos = {test_bo(kPageSize), test_bo(2 * kPageSize)};
  index.bos[1].inode = 0;
  index.chunks = {{kPageSize, 1, 1}, {2 * kPageSize + 4 * kPageSize, 1, 1}};
  const auto good = validate(index, 2 * kPageSize, Version::k2, sources);
  ASSERT_TRUE(good.ok()) << good.error().message();
  EXPECT_FALSE(validate(index, 2 * kPageSize, Version::k2).ok());
  index.chunks[1].offset = GetParam().offset;
  const auto bad = validate(index, 2 * kPageSize, Version::k2, sources);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message().find(GetParam().why), std::string::npos) << bad.error().message();
}

INSTANTIATE_TEST_SUITE_P(Offsets, BadReferences,
                         ::testing::Values(BadReference{0, "at no place of a chunk"},
                                           BadReference{kPageSize + 8, "at no place of a chunk"},
                                           BadReference{2 * kPageSize, "outside the pages file of the other file"},
                                           BadReference{3 * kPageSize + 8, "outside the pages file of the other file"},
                                           BadReference{7 * kPageSize, "outside the pages file of the other file"},
                                           BadReference{8 * kPageSize, "outside the pages files"},
                                           BadReference{UINT64_MAX - kPageSize + 1, "outside the pages files"}));

struct BadSource {
  const char* expected;
  void (*change)(FileEntry&);
};

class BadSources : public ::testing::TestWithParam<BadSource> {};

TEST_P(BadSources, are_refused) {
  Manifest manifest{test_session(), {{7, Kind::kKfd, 10, 1, 100, 1, 2 * kPageSize, {{1, 7, 5, 2 * kPageSize}}}}};
  const auto good = validate(manifest);
  ASSERT_TRUE(good.ok()) << good.error().message();
  GetParam().change(manifest.files[0]);
  const auto bad = validate(manifest);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message().find(GetParam().expected), std::string::npos) << bad.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadSources,
    ::testing::Values(BadSource{"file 7, which this dump", [](FileEntry& e) { e.sources[0].depth = 0; }},
                      BadSource{"33 before", [](FileEntry& e) { e.sources[0].depth = kMaxDepth + 1; }},
                      BadSource{"twice", [](FileEntry& e) { e.sources.push_back(e.sources[0]); }},
                      BadSource{"length", [](FileEntry& e) { e.sources[0].pages_length = kPageSize; }},
                      BadSource{"length", [](FileEntry& e) { e.sources[0].pages_length = 1ULL << 62; }},
                      BadSource{"no index", [](FileEntry& e) {
                                  e.kind = Kind::kRender;
                                  e.index_length = 0;
                                  e.pages_length = 0;
                                }}));

}  // namespace
}  // namespace plugin::image
