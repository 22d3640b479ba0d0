// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writing and reading a dump: round trips, zeros, the commit mark, several dumps in a directory, values that are
// refused. Damage of every byte is in damage_test.cc.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <limits>

#include "base/os_failing.h"
#include "plugin/image/codec.h"
#include "plugin/image/hash.h"
#include "plugin/image/test_support.h"
#include "plugin/image/version_1.h"

namespace plugin::image {
namespace {

using base::read_file;
using base::write_file;

class ImageTest : public SessionTest {
 protected:
  ~ImageTest() override { os::fail_call(0, 0); }

  void write_dump_with_two_states() {
    auto writer = SessionWriter::create(dir(), kSession);
    ASSERT_TRUE(writer.ok());
    for (const std::uint32_t id : {kKfdId, kRenderId}) {
      KfdFile kfd = test_kfd();
      kfd.bos.clear();
      expect_ok((*writer)->add({id, std::move(kfd)}));
    }
    expect_ok((*writer)->prepare(test_session()));
    expect_ok((*writer)->commit());
  }
};

TEST_F(ImageTest, what_was_written_is_read_back) {
  const auto contents = pattern(2 * kChunkSize + 5000);
  expect_ok(write_all_kinds(contents, kSession));
  const Catalogue images = catalogue();
  EXPECT_TRUE(images.damaged().empty());
  ASSERT_EQ(images.intact().size(), 4U);
  const Loaded* loaded = *images.find(kKfdId);
  ASSERT_NE(loaded, nullptr);
  const KfdFile& kfd = *loaded->kfd();
  EXPECT_EQ(kfd.pid, 42U);
  EXPECT_EQ(kfd.num_objects, 3U);
  EXPECT_EQ(kfd.priv_data, test_kfd().priv_data);
  EXPECT_EQ(kfd.devices.at(0).user_id, 100U);
  EXPECT_EQ(kfd.shared_files.at(0).contents, "shared");
  EXPECT_EQ(kfd.shared_files.at(0).links, std::vector<std::string>{"link_remap.5"});
  ASSERT_EQ(kfd.bos.size(), 4U);
  EXPECT_EQ(kfd.bos[0].bo.addr, 0x1000U);
  EXPECT_EQ(kfd.bos[0].bo.mmap_offset, 0x5000U);
  EXPECT_EQ(kfd.bos[0].handle, 77U);
  EXPECT_EQ(kfd.bos[0].inode, 4711U);
  EXPECT_FALSE(kfd.bos[0].shares_contents);
  EXPECT_TRUE(kfd.bos[3].shares_contents);
  EXPECT_EQ(*load_contents(), contents);
}

TEST_F(ImageTest, whose_memory_a_bo_has_is_read_back) {
  auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_TRUE(writer.ok());
  KfdFile kfd = test_kfd();
  kfd.bos = {test_bo(kPageSize), test_bo(kPageSize)};
  kfd.bos[0].imported = true;
  kfd.bos[0].stored_elsewhere = true;
  kfd.bos[1].inode = 5;
  kfd.foreign_memories = {{4711, KFD_IOC_ALLOC_MEM_FLAGS_COHERENT}};
  expect_ok((*writer)->file(kKfdId).append(pattern(kPageSize)));
  expect_ok((*writer)->add({kKfdId, kfd}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  const Catalogue images = catalogue();
  const Loaded* loaded = *images.find(kKfdId);
  ASSERT_NE(loaded, nullptr);
  const KfdFile& read = *loaded->kfd();
  EXPECT_TRUE(read.bos[0].imported && read.bos[0].stored_elsewhere);
  EXPECT_FALSE(read.bos[1].imported || read.bos[1].stored_elsewhere);
  ASSERT_EQ(read.foreign_memories.size(), 1U);
  EXPECT_EQ(read.foreign_memories[0].inode, 4711U);
  EXPECT_EQ(read.foreign_memories[0].alloc_flags, std::uint32_t{KFD_IOC_ALLOC_MEM_FLAGS_COHERENT});
}

// A reader that does not know a flag must not restore the BO with memory of its own.
TEST(IndexFlags, that_are_unknown_are_refused) {
  Index index;
  index.bos = {test_bo(kPageSize)};
  auto bytes = encode_index(index);
  bytes[24 + 44] = std::byte{8};
  EXPECT_FALSE(decode_index(bytes).ok());
}

TEST_F(ImageTest, a_process_with_two_states_is_refused) {
  write_dump_with_two_states();
  const Catalogue images = catalogue();
  EXPECT_TRUE(images.intact().empty());
  EXPECT_NE(load_error(kKfdId).find("process 42 twice"), std::string::npos) << load_error(kKfdId);
}

TEST_F(ImageTest, what_is_known_of_the_dump_is_stored_once) {
  expect_ok(write_all_kinds(pattern(10), kSession));
  const Catalogue images = catalogue();
  ASSERT_EQ(images.sessions().size(), 1U);
  const Session& session = *images.sessions()[0];
  EXPECT_EQ(session.id, kSession);
  EXPECT_EQ(session.version, Version::k2);
  EXPECT_EQ(session.abi, Abi::kExtensible);
  EXPECT_EQ(session.kernel_release, "6.12.0-test");
  EXPECT_EQ(session.nodes, test_session().nodes);
  EXPECT_EQ(session.processes, test_session().processes);
  for (const Loaded* loaded : images.intact()) EXPECT_EQ(&loaded->session(), &session);
  EXPECT_EQ(read_file(path(metadata_name(kRenderId))).find("simd_count"), std::string::npos);
}

TEST_F(ImageTest, each_kind_of_file_keeps_owner_and_flags) {
  expect_ok(write_all_kinds(pattern(10), kSession));
  const Catalogue images = catalogue();
  EXPECT_EQ((*images.find(kSecondId))->second()->owner, 42U);
  EXPECT_EQ((*images.find(kInertId))->inert()->owner, 43U);
  EXPECT_EQ(open_flags_of((*images.find(kInertId))->file()), static_cast<std::uint32_t>(O_NONBLOCK));
  const RenderFile& render = *(*images.find(kRenderId))->render();
  EXPECT_EQ(render.binding, Binding::kKfd);
  EXPECT_EQ(render.owner, 42U);
  EXPECT_EQ(render.gpu_id, 200U);
  EXPECT_EQ((*images.find(kRenderId))->kind(), Kind::kRender);
  EXPECT_EQ(open_flags_of((*images.find(kRenderId))->file()), static_cast<std::uint32_t>(O_NONBLOCK));
  EXPECT_EQ(owner_of((*images.find(kKfdId))->file()), 42U);
}

// An image that was written on one processor is read on another.
TEST(Hash, is_equal_by_the_code_of_every_processor) {
  const auto bytes = pattern(2 * kChunkSize);
  EXPECT_EQ(hash_bytes({}), 0x2d06800538d394c2U);  // XXH3 of nothing
  for (const std::size_t size : {1U, 3U, 8U, 16U, 17U, 128U, 129U, 240U, 241U, 1024U, 1025U, kPieceSize, kChunkSize - 1,
                                 kChunkSize, kChunkSize + 7}) {
    for (const std::size_t at : {0U, 1U, 33U}) {
      const std::uint64_t expected = hash_plain(&bytes[at], size);
      EXPECT_EQ(hash_bytes(std::span(bytes).subspan(at, size)), expected) << size;
#if defined(__x86_64__)
      if (__builtin_cpu_supports("avx2") != 0) {
        EXPECT_EQ(hash_avx2(&bytes[at], size), expected) << size;
      }
#endif
    }
  }
}

TEST_F(ImageTest, a_bo_can_be_read_in_slices_of_any_length) {
  const auto contents = pattern(2 * kChunkSize + 5000);
  write_kfd(contents);
  for (const std::size_t slice : {std::size_t{4096}, std::size_t{300000}, std::size_t{3} * kChunkSize})
    EXPECT_EQ(*load_contents(slice), contents) << slice;
}

TEST_F(ImageTest, a_bo_cannot_be_read_behind_its_end) {
  write_kfd(pattern(5000));
  const Catalogue images = catalogue();
  const auto contents = open_contents(dir(), **images.find(kKfdId));
  BoReader reader(*contents, 0);
  std::vector<std::byte> bytes(5001);
  EXPECT_FALSE(reader.read(bytes).ok());
}

TEST_F(ImageTest, chunks_that_are_zero_are_passed_over_at_their_beginning_only) {
  std::vector<std::byte> contents(6 * kChunkSize + 5000);
  contents[2 * kChunkSize + 9] = std::byte{1};
  contents[3 * kChunkSize] = std::byte{2};
  write_kfd(contents);
  const Catalogue images = catalogue();
  const auto opened = open_contents(dir(), **images.find(kKfdId));
  BoReader reader(*opened, 0);
  EXPECT_EQ(reader.skip_zeros(kChunkSize - 1), 0U);
  EXPECT_EQ(reader.skip_zeros(contents.size()), 2 * kChunkSize);
  EXPECT_EQ(reader.skip_zeros(contents.size()), 0U);
  std::vector<std::byte> out(kChunkSize + kChunkSize / 2);
  expect_ok(reader.read(out));
  EXPECT_EQ(out[9], std::byte{1});
  EXPECT_EQ(out[kChunkSize], std::byte{2});
  EXPECT_EQ(reader.skip_zeros(contents.size()), 0U);  // in the middle of a chunk
  expect_ok(reader.read(std::span(out).first(kChunkSize / 2)));
  EXPECT_EQ(reader.skip_zeros(kChunkSize), kChunkSize);
  EXPECT_EQ(reader.skip_zeros(contents.size()), kChunkSize + 5000U);
  EXPECT_EQ(reader.skip_zeros(contents.size()), 0U);
  EXPECT_FALSE(reader.read(std::span(out).first(1)).ok());
}

TEST_F(ImageTest, of_a_chunk_only_the_pieces_that_are_not_zero_are_stored) {
  auto contents = std::vector<std::byte>(8 * kChunkSize);
  contents[5 * kChunkSize + 3 * kPieceSize + 17] = std::byte{1};
  contents[5 * kChunkSize + 7 * kPieceSize] = std::byte{2};
  contents[6 * kChunkSize - 1] = std::byte{3};
  write_kfd(contents);
  EXPECT_EQ(std::filesystem::file_size(path(pages_name(kKfdId))), kPageSize + 3 * kPieceSize);
  const Catalogue images = catalogue();
  const Index& index = (*images.find(kKfdId))->index();
  ASSERT_EQ(index.chunks.size(), 8U);
  EXPECT_EQ(index.chunks[5].stored, (1U << 3) | (1U << 7) | (1U << 15));
  EXPECT_EQ(index.chunks[4], Chunk{});
  EXPECT_EQ(*load_contents(), contents);
  expect_ok(open_contents(dir(), **images.find(kKfdId))->verify());
}

TEST_F(ImageTest, any_selection_of_pieces_comes_back) {
  std::uint32_t seed = 7;
  std::vector<std::byte> contents(3 * kChunkSize + kPieceSize / 2);
  for (std::size_t piece = 0; piece * kPieceSize < contents.size(); ++piece) {
    seed = seed * 1664525U + 1013904223U;
    if ((seed >> 30) != 0) contents[std::min(piece * kPieceSize + (seed >> 16), contents.size() - 1)] = std::byte{9};
  }
  write_kfd(contents);
  EXPECT_EQ(*load_contents(), contents);
}

TEST_F(ImageTest, contents_that_are_all_zero_need_no_pages_file) {
  write_kfd(std::vector<std::byte>(2 * kChunkSize));
  EXPECT_FALSE(std::filesystem::exists(path(pages_name(kKfdId))));
  EXPECT_EQ(*load_contents(), std::vector<std::byte>(2 * kChunkSize));
}

TEST_F(ImageTest, chunks_begin_at_page_boundaries_one_behind_the_other) {
  auto writer = SessionWriter::create(dir(), kSession);
  KfdFile kfd = test_kfd();
  for (const std::size_t size : {std::size_t{100}, std::size_t{5000}, std::size_t{1}}) {
    kfd.bos.push_back(test_bo(size));
    expect_ok((*writer)->file(kKfdId).append(pattern(size)));
  }
  EXPECT_EQ((*writer)->file(kKfdId).appended(), 5101U);
  EXPECT_EQ((*writer)->file(kKfdId).stored(), 4 * kPageSize);
  expect_ok((*writer)->add({kKfdId, kfd}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  const Catalogue images = catalogue();
  const Index& index = (*images.find(kKfdId))->index();
  EXPECT_EQ(index.chunks[0].offset, kPageSize);
  EXPECT_EQ(index.chunks[1].offset, 2 * kPageSize);
  EXPECT_EQ(index.chunks[2].offset, 4 * kPageSize);
}

TEST_F(ImageTest, times_end_when_all_files_but_the_manifest_are_on_the_disk) {
  auto writer = SessionWriter::create(dir(), kSession);
  KfdFile kfd = test_kfd();
  kfd.bos = {test_bo(kPageSize)};
  expect_ok((*writer)->file(kKfdId).append(pattern(kPageSize)));
  expect_ok((*writer)->add({kKfdId, kfd}));
  std::vector<std::string> there;
  expect_ok((*writer)->prepare(test_session(), [&] {
    for (const auto& [name, bytes] : files()) there.push_back(name);
    Timing timing;
    (*writer)->add_to(timing);
    EXPECT_GT(timing.syncing_us, 0U);
    timing.paused_us = 4711;
    return timing;
  }));
  EXPECT_EQ(there, (std::vector{metadata_name(kKfdId), index_name(kKfdId), pages_name(kKfdId)}));
  expect_ok((*writer)->commit());
  ASSERT_TRUE(catalogue().sessions().front()->timing.has_value());
  EXPECT_EQ(catalogue().sessions().front()->timing->paused_us, 4711U);
}

// ---- workers ----

// Chunks with contents, with zeros, and with both; the last one of each BO is shorter.
std::vector<std::vector<std::byte>> mixed_contents() {
  std::vector<std::vector<std::byte>> bos;
  for (std::size_t i = 0; i < 5; ++i) {
    auto& bytes = bos.emplace_back(pattern(3 * kChunkSize + (i + 1) * kPageSize));
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i % 3 * kChunkSize), kChunkSize, std::byte{0});
    for (std::size_t piece = i; piece < chunk_count(bytes.size(), kPieceSize); piece += 7)
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(piece * kPieceSize),
                  std::min<std::size_t>(kPieceSize, bytes.size() - piece * kPieceSize), std::byte{0});
  }
  return bos;
}

TEST_F(ImageTest, workers_write_the_same_files) {
  const auto bos = mixed_contents();
  const auto write = [&](bool works) {
    auto writer = SessionWriter::create(dir(), kSession);
    ASSERT_TRUE(writer.ok());
    KfdFile kfd = test_kfd();
    kfd.bos.clear();
    {
      std::optional<Working> working;
      if (works) working.emplace(**writer);
      FileWriter& file = (*writer)->file(kKfdId);
      for (const auto& bytes : bos) {
        kfd.bos.push_back(test_bo(bytes.size()));
        const auto number = file.append(bytes);
        ASSERT_TRUE(number.ok());
        if (bytes.size() % (2 * kPageSize) == 0) expect_ok(file.settle(*number));
      }
      expect_ok(file.settle_all());
    }
    expect_ok((*writer)->add({kKfdId, kfd}));
    expect_ok((*writer)->prepare(test_session()));
    expect_ok((*writer)->commit());
  };
  write(false);
  const auto alone = files();
  ASSERT_TRUE(alone.contains(pages_name(kKfdId)));
  write(true);
  EXPECT_TRUE(files() == alone);
}

// As a dump appends what several GPUs read: the pages file has the chunks as they come, the index by BO.
TEST_F(ImageTest, parts_of_several_bos_may_be_appended_in_turns) {
  const auto bos = mixed_contents();
  auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_TRUE(writer.ok());
  KfdFile kfd = test_kfd();
  kfd.bos.clear();
  {
    const Working working(**writer);
    FileWriter& file = (*writer)->file(kKfdId);
    std::vector<std::uint64_t> places;
    for (const auto& bytes : bos) {
      kfd.bos.push_back(test_bo(bytes.size()));
      places.push_back(file.begin_bo(name_of(Kind::kKfd, kfd.pid, kfd.bos.back())));
    }
    for (std::size_t chunk = 0; chunk < chunk_count(bos.back().size(), kChunkSize); ++chunk)
      for (std::size_t bo = bos.size(); bo-- > 0;) {
        if (chunk >= chunk_count(bos[bo].size(), kChunkSize)) continue;
        const auto part = std::span(bos[bo]).subspan(chunk * kChunkSize);
        expect_ok(file.append(places[bo]++, part.first(std::min<std::size_t>(kChunkSize, part.size()))));
      }
    expect_ok(file.settle_all());
  }
  expect_ok((*writer)->add({kKfdId, kfd}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  const Catalogue images = catalogue();
  const auto contents = open_contents(dir(), **images.find(kKfdId));
  ASSERT_TRUE(contents.ok()) << contents.error().message();
  expect_ok(contents->verify());
  for (std::size_t bo = 0; bo < bos.size(); ++bo) {
    std::vector<std::byte> bytes(bos[bo].size());
    expect_ok(BoReader(*contents, bo).read(bytes));
    EXPECT_TRUE(bytes == bos[bo]) << bo;
  }
}

TEST_F(ImageTest, a_bo_with_other_contents_than_it_was_begun_with_is_refused) {
  auto writer = SessionWriter::create(dir(), kSession);
  FileWriter& file = (*writer)->file(kKfdId);
  KfdFile kfd = test_kfd();
  kfd.bos = {test_bo(kPageSize)};
  for (int twice = 0; twice < 2; ++twice) expect_ok(file.append(0, pattern(kPageSize)));
  expect_ok((*writer)->add({kKfdId, kfd}));
  const auto status = (*writer)->prepare(test_session());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "amdgpu-pages-7.img: a BO has other contents than it was begun with");
}

// ---- files whose id comes later ----

TEST_F(ImageTest, a_file_gets_its_id_after_its_contents) {
  auto writer = SessionWriter::create(dir(), kSession);
  KfdFile kfd = test_kfd();
  kfd.bos = {test_bo(kPageSize)};
  const auto contents = pattern(kPageSize);
  FileWriter& file = (*writer)->nameless_file();
  expect_ok(file.append(contents));
  EXPECT_EQ(names(), (std::vector<std::string>{"amdgpu-pages-0.img.tmp"}));
  expect_ok((*writer)->give_id(file, kKfdId));
  EXPECT_EQ(names(), (std::vector{pages_name(kKfdId)}));
  EXPECT_EQ(&(*writer)->file(kKfdId), &file);
  const auto twice = (*writer)->give_id(file, kKfdId + 1);
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().code(), EEXIST);
  const auto taken = (*writer)->give_id((*writer)->nameless_file(), kKfdId);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), EEXIST);
}

TEST_F(ImageTest, a_dump_is_refused_as_long_as_a_file_has_no_id) {
  auto writer = SessionWriter::create(dir(), kSession);
  expect_ok((*writer)->nameless_file().append(pattern(kPageSize)));
  const auto status = (*writer)->prepare(test_session());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "amdgpu-pages-0.img.tmp has the contents of a file without an id");
  expect_ok((*writer)->discard());
  EXPECT_TRUE(names().empty());
}

TEST_F(ImageTest, what_a_killed_dump_has_left_of_a_file_without_an_id_is_removed_by_the_next_one) {
  base::write_file(path("amdgpu-pages-3.img.tmp"), "half");
  const auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_TRUE(writer.ok());
  EXPECT_TRUE(names().empty());
}

TEST_F(ImageTest, a_settled_part_is_not_read_again) {
  auto writer = SessionWriter::create(dir(), kSession);
  KfdFile kfd = test_kfd();
  kfd.bos = {test_bo(8 * kChunkSize)};
  const auto contents = pattern(8 * kChunkSize);
  {
    const Working working(**writer);
    FileWriter& file = (*writer)->file(kKfdId);
    std::vector<std::byte> buffer(kChunkSize);
    for (std::size_t at = 0; at < contents.size(); at += kChunkSize) {
      std::copy_n(contents.begin() + static_cast<std::ptrdiff_t>(at), kChunkSize, buffer.begin());
      const auto number = file.append(buffer);
      ASSERT_TRUE(number.ok());
      expect_ok(file.settle(*number));
    }
  }
  expect_ok((*writer)->add({kKfdId, kfd}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  EXPECT_TRUE(*load_contents() == contents);
}

TEST_F(ImageTest, a_failing_call_of_a_worker_fails_the_dump) {
  const auto contents = pattern(8 * kChunkSize);
  for (const bool settles : {true, false}) {
    // The first calls make threads, which a dump can do without.
    for (std::uint64_t call = 1;; ++call) {
      auto writer = SessionWriter::create(dir(), kSession);
      ASSERT_TRUE(writer.ok());
      KfdFile kfd = test_kfd();
      kfd.bos = {test_bo(contents.size())};
      os::fail_call(call, ENOSPC);
      base::Status status;
      {
        const Working working(**writer);
        FileWriter& file = (*writer)->file(kKfdId);
        const auto number = file.append(contents);
        status = number.ok() ? base::Status() : base::Status(number.error());
        if (number.ok() && settles) status = file.settle(*number);
      }
      const std::string failed = os::failed_call();
      os::fail_call(0, 0);
      if (failed.empty()) break;
      if (settles) {
        EXPECT_EQ(status.ok(), failed == "pthread_create") << call << failed;
      }
      expect_ok((*writer)->add({kKfdId, kfd}));
      const auto prepared = (*writer)->prepare(test_session());
      EXPECT_EQ(prepared.ok(), failed == "pthread_create") << call << failed;
      if (!prepared.ok()) {
        EXPECT_EQ(prepared.error().code(), ENOSPC);
      }
      writer->reset();
      EXPECT_TRUE(files().empty());
    }
  }
}

TEST_F(ImageTest, a_dump_that_is_given_up_while_workers_write_leaves_no_file) {
  const auto contents = pattern(16 * kChunkSize);
  auto writer = SessionWriter::create(dir(), kSession);
  (*writer)->start_workers();
  expect_ok((*writer)->file(kKfdId).append(contents));
  writer->reset();
  EXPECT_TRUE(files().empty());
}

TEST_F(ImageTest, an_id_without_files_is_no_image_and_no_error) { EXPECT_EQ(load_error(), "no image"); }

// ---- the commit mark ----

TEST_F(ImageTest, until_the_commit_every_file_is_refused_as_incomplete) {
  auto writer = SessionWriter::create(dir(), kSession);
  KfdFile kfd = test_kfd();
  kfd.bos.push_back(test_bo(10));
  expect_ok((*writer)->file(kKfdId).append(pattern(10)));
  expect_ok((*writer)->add({kKfdId, kfd}));
  EXPECT_FALSE((*writer)->commit().ok());
  EXPECT_FALSE((*writer)->prepared());
  expect_ok((*writer)->prepare(test_session()));
  EXPECT_TRUE((*writer)->prepared());
  EXPECT_NE(load_error().find("did not complete"), std::string::npos) << load_error();
  expect_ok((*writer)->commit());
  EXPECT_EQ(load_error(), "");
}

TEST_F(ImageTest, a_dump_that_is_not_committed_leaves_no_file) {
  {
    auto writer = SessionWriter::create(dir(), kSession);
    expect_ok((*writer)->file(kKfdId).append(pattern(10)));
    EXPECT_EQ(files().size(), 1U);
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(ImageTest, a_dump_can_be_discarded_at_any_time) {
  write_file(path("core-1.img"), "CRIU's");
  for (const int steps : {0, 1, 2}) {
    auto writer = SessionWriter::create(dir(), kSession);
    expect_ok((*writer)->add({kRenderId, RenderFile{200, 0, Binding::kOther, 0}}));
    if (steps >= 1) expect_ok((*writer)->prepare(test_session()));
    if (steps >= 2) expect_ok((*writer)->commit());
    expect_ok((*writer)->discard());
    EXPECT_EQ(files().size(), 1U) << steps;
  }
}

TEST_F(ImageTest, a_committed_dump_outlives_its_writer) {
  write_kfd(pattern(10));
  EXPECT_EQ(load_error(), "");
}

TEST_F(ImageTest, a_new_dump_removes_what_older_ones_left_and_nothing_else) {
  testing::write_version_1(dir_.path());
  write_file(path("amdgpu-manifest-3.img.tmp"), "x");
  write_file(path(kUnfinishedManifestName), "x");
  write_file(path(kManifestName), "x");
  write_file(path(index_name(5)), "x");
  write_file(path("amdgpu-07.img"), "not ours");
  write_file(path("amdgpu-kfd-1.img"), "not ours");
  write_file(path("pages-1.img"), "CRIU's");
  const auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_TRUE(writer.ok());
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"amdgpu-07.img", "amdgpu-kfd-1.img", "pages-1.img"}));
}

TEST_F(ImageTest, a_prepared_file_of_somebody_else_keeps_neither_mode_nor_owner) {
  for (const std::string& name : {std::string(kUnfinishedManifestName), std::string(kManifestName),
                                  metadata_name(kKfdId), index_name(kKfdId), pages_name(kKfdId)}) {
    write_file(path(name), "left");
    ASSERT_EQ(::chmod(path(name).c_str(), 0666), 0);
  }
  write_kfd(pattern(5000));
  EXPECT_EQ(files().size(), 4U);
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms(0600)) << entry.path();
}

TEST_F(ImageTest, a_symbolic_link_is_replaced_and_not_followed) {
  const std::string target = path("victim");
  write_file(target, "precious");
  std::filesystem::create_symlink(target, path(pages_name(kKfdId)));
  std::filesystem::create_symlink(target, path(kUnfinishedManifestName));
  write_kfd(pattern(5000));
  EXPECT_EQ(read_file(target), "precious");
  EXPECT_EQ(load_error(), "");
}

TEST_F(ImageTest, a_file_that_appears_during_the_dump_is_not_written_through) {
  auto writer = SessionWriter::create(dir(), kSession);
  const std::string target = path("victim");
  write_file(target, "precious");
  std::filesystem::create_symlink(target, path(pages_name(kKfdId)));
  const auto status = (*writer)->file(kKfdId).append(pattern(5000));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EEXIST);
  EXPECT_EQ(read_file(target), "precious");
}

TEST_F(ImageTest, a_name_that_cannot_be_removed_fails_the_dump_before_it_begins) {
  std::filesystem::create_directory(path(metadata_name(kKfdId)));
  const auto writer = SessionWriter::create(dir(), kSession);
  ASSERT_FALSE(writer.ok());
  EXPECT_NE(writer.error().message().find("removing amdgpu-7.img"), std::string::npos) << writer.error().message();
}

TEST_F(ImageTest, a_smaller_dump_over_a_larger_one_leaves_nothing_of_it) {
  expect_ok(write_all_kinds(pattern(3 * kChunkSize), 1));
  write_kfd(pattern(10));
  EXPECT_EQ(*load_contents(), pattern(10));
  EXPECT_EQ(std::filesystem::file_size(path(pages_name(kKfdId))), 2 * kPageSize);
  EXPECT_EQ(files().size(), 4U);
}

TEST_F(ImageTest, a_dump_has_one_sync_for_each_file_and_two_for_the_directory) {
  auto writer = SessionWriter::create(dir(), kSession);
  constexpr std::uint32_t kFiles = 100;
  for (std::uint32_t id = 0; id < kFiles; ++id) expect_ok((*writer)->add({id, RenderFile{200, 0, Binding::kOther, 0}}));
  os::fail_call(0, 0);
  expect_ok((*writer)->prepare(test_session()));
  // Each file: create, two writes, fsync; the manifest too; the directory: open and fsync.
  EXPECT_EQ(os::calls(), (kFiles + 1) * 4 + 2);
  os::fail_call(0, 0);
  expect_ok((*writer)->commit());
  EXPECT_EQ(os::calls(), 3U);
}

TEST_F(ImageTest, a_writer_refuses_what_a_reader_would) {
  auto writer = SessionWriter::create(dir(), kSession);
  KfdFile kfd = test_kfd();
  kfd.bos.push_back(test_bo(10));
  expect_ok((*writer)->add({kKfdId, kfd}));
  const auto status = (*writer)->prepare(test_session());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("amdgpu-index-7.img: invalid image: BO 0 has fewer chunks"),
            std::string::npos)
      << status.error().message();
}

TEST_F(ImageTest, a_file_is_added_once_and_only_a_kfd_file_has_contents) {
  auto writer = SessionWriter::create(dir(), kSession);
  expect_ok((*writer)->add({kRenderId, RenderFile{200, 0, Binding::kOther, 0}}));
  EXPECT_FALSE((*writer)->add({kRenderId, RenderFile{200, 0, Binding::kOther, 0}}).ok());
  expect_ok((*writer)->file(kRenderId).append(pattern(10)));
  EXPECT_FALSE((*writer)->prepare(test_session()).ok());
}

TEST_F(ImageTest, a_dump_without_files_is_refused) {
  auto writer = SessionWriter::create(dir(), kSession);
  EXPECT_FALSE((*writer)->prepare(test_session()).ok());
}

// Every call of the writer fails once: no file of the dump is left, whatever it was.
TEST_F(ImageTest, a_dump_that_fails_at_any_call_leaves_nothing_that_loads) {
  std::uint64_t failures = 0;
  for (std::uint64_t number = 1;; ++number) {
    testing::write_version_1(dir_.path());
    os::fail_call(number, ENOSPC);
    const auto status = write_all_kinds(pattern(kChunkSize + 300), kSession);
    const std::string failed = os::failed_call();
    os::fail_call(0, 0);
    if (failed.empty()) {
      expect_ok(status);
      break;
    }
    ++failures;
    ASSERT_FALSE(status.ok()) << number << " " << failed;
    EXPECT_EQ(status.error().code(), ENOSPC) << number << " " << failed;
    const auto images = catalogue();
    for (const auto& session : images.sessions()) EXPECT_EQ(session->version, Version::k1) << number << " " << failed;
    for (const auto& [name, bytes] : files()) std::filesystem::remove(path(name));
  }
  EXPECT_GT(failures, 30U);
}

// Each call of the reader fails once: an error, or what was saved.
TEST_F(ImageTest, a_restore_that_fails_at_any_call_gets_an_error_or_the_contents) {
  const auto contents = pattern(kChunkSize + 300);
  expect_ok(write_all_kinds(contents, kSession));
  for (std::uint64_t number = 1;; ++number) {
    os::fail_call(number, EIO);
    const auto loaded = load_contents();
    const std::string failed = os::failed_call();
    os::fail_call(0, 0);
    if (failed.empty()) {
      ASSERT_TRUE(loaded.ok());
      break;
    }
    ASSERT_TRUE(!loaded.ok() || *loaded == contents) << number << " " << failed;
  }
}

TEST_F(ImageTest, a_full_disk_fails_the_dump) {
  // A file size limit is the full disk that needs no file system of its own.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 3 * kPageSize;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto writer = SessionWriter::create(dir(), kSession);
  const auto status = (*writer)->file(kKfdId).append(pattern(kChunkSize));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  (void)std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EFBIG);
}

TEST_F(ImageTest, the_free_space_of_the_directory_can_be_asked_for) {
  const auto room = SessionWriter::free_space(dir());
  ASSERT_TRUE(room.ok());
  EXPECT_GT(*room, 0U);
  os::fail_call(1, EIO);
  EXPECT_FALSE(SessionWriter::free_space(dir()).ok());
}

// ---- several dumps ----

TEST_F(ImageTest, damage_of_one_file_is_told_to_who_asks_for_it) {
  expect_ok(write_all_kinds(pattern(10), kSession));
  write_file(path(metadata_name(2)), "");
  write_file(path(metadata_name(kSecondId)), "short");
  std::filesystem::remove(path(metadata_name(kInertId)));
  const Catalogue images = catalogue();
  EXPECT_EQ(images.intact().size(), 2U);
  EXPECT_NE(images.find(2).error().message().find("amdgpu-2.img: is not part of the dump"), std::string::npos);
  EXPECT_NE(images.find(kSecondId).error().message().find("amdgpu-8.img: truncated"), std::string::npos);
  EXPECT_NE(images.find(kInertId).error().message().find("amdgpu-10.img: is missing"), std::string::npos);
  EXPECT_EQ(*images.find(4), nullptr);
  std::vector<std::uint32_t> ids;
  for (const Catalogue::Damage& damage : images.damaged()) ids.push_back(damage.id);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{2, kSecondId, kInertId}));
}

TEST_F(ImageTest, a_damaged_manifest_is_the_error_of_each_file) {
  expect_ok(write_all_kinds(pattern(10), kSession));
  write_file(path(kManifestName), "short");
  for (const std::uint32_t id : {kKfdId, kSecondId, kInertId, kRenderId})
    EXPECT_NE(load_error(id).find("amdgpu-manifest.img: truncated"), std::string::npos) << load_error(id);
  EXPECT_EQ(load_error(99), "no image");
  EXPECT_TRUE(catalogue().sessions().empty());
}

TEST_F(ImageTest, dumps_of_both_versions_are_kept_apart) {
  expect_ok(write_all_kinds(pattern(10), kSession));
  testing::write_version_1(dir_.path());
  const Catalogue images = catalogue();
  const auto sessions = images.sessions();
  // Version 1 has overwritten file 7 and brought a file 9.
  ASSERT_EQ(sessions.size(), 2U);
  EXPECT_EQ(sessions[0]->version, Version::k2);
  EXPECT_EQ(sessions[1]->version, Version::k1);
  EXPECT_EQ(images.files_of(*sessions[0]).size(), 3U);
  EXPECT_EQ(images.files_of(*sessions[1]).size(), 2U);
  EXPECT_EQ(&(*images.find(kKfdId))->session(), sessions[1]);
  EXPECT_EQ(&(*images.find(kRenderId))->session(), sessions[0]);
}

// ---- messages ----

TEST_F(ImageTest, each_damage_has_its_own_message) {
  const auto damaged = [this](std::string_view name, const std::function<void(std::string&)>& damage) {
    write_kfd(pattern(5000));
    std::string bytes = read_file(path(name));
    damage(bytes);
    write_file(path(name), bytes);
    return load_error();
  };
  const std::string metadata = metadata_name(kKfdId);
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(damaged(metadata, [](auto& b) { b[8] = 9; }), "amdgpu-7.img: unknown format version 9");
  expect(damaged(metadata, [](auto& b) { b[8] = 1; }), "has format version 1, its manifest has version 2");
  expect(damaged(metadata, [](auto& b) { b[0] = 'X'; }), "bad magic");
  expect(damaged(metadata, [](auto& b) { b[45] ^= 1; }), "wrong checksum");
  expect(damaged(index_name(kKfdId), [](auto& b) { b[45] ^= 1; }), "amdgpu-index-7.img: damaged: wrong checksum");
  expect(damaged(pages_name(kKfdId), [](auto& b) { b.pop_back(); }), "amdgpu-pages-7.img: truncated");
  expect(damaged(pages_name(kKfdId), [](auto& b) { b[100] = 1; }), "belong to no chunk");
  expect(damaged(kManifestName, [](auto& b) { b.resize(20); }), "amdgpu-manifest.img: truncated");
}

TEST_F(ImageTest, a_damaged_chunk_is_refused_when_read) {
  write_kfd(pattern(5000));
  std::string bytes = read_file(path(pages_name(kKfdId)));
  bytes[kPageSize + 4999] ^= 1;
  write_file(path(pages_name(kKfdId)), bytes);
  const auto contents = load_contents();
  ASSERT_FALSE(contents.ok());
  EXPECT_NE(contents.error().message().find("amdgpu-pages-7.img: damaged: wrong checksum of the chunk at 4096"),
            std::string::npos);
}

// ---- values ----

// Each change makes one value wrong; all must be refused by name.
struct BadValue {
  const char* expected;
  void (*change)(KfdFile&);
};

class ValidateKfd : public ::testing::TestWithParam<BadValue> {};

TEST_P(ValidateKfd, refuses_a_wrong_value) {
  KfdFile kfd = test_kfd();
  kfd.bos.push_back(test_bo(8192));
  ASSERT_TRUE(validate({kKfdId, kfd}, test_session()).ok());
  GetParam().change(kfd);
  const auto status = validate({kKfdId, kfd}, test_session());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find(GetParam().expected), std::string::npos) << status.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Values, ValidateKfd,
    ::testing::Values(BadValue{"number of devices", [](KfdFile& k) { k.devices.clear(); }},
                      BadValue{"zero or used twice", [](KfdFile& k) { k.devices[0].user_id = 0; }},
                      BadValue{"zero or used twice", [](KfdFile& k) { k.devices.push_back(k.devices[0]); }},
                      BadValue{"stands for two devices",
                               [](KfdFile& k) {
                                 k.devices.push_back({101, 200});
                               }},
                      BadValue{"missing in the recorded topology", [](KfdFile& k) { k.devices[0].actual_id = 9; }},
                      BadValue{"no kernel state", [](KfdFile& k) { k.priv_data.clear(); }},
                      BadValue{"not one of the dump", [](KfdFile& k) { k.pid = 44; }},
                      BadValue{"flags of open", [](KfdFile& k) { k.open_flags = O_APPEND; }},
                      BadValue{"that no BO was given",
                               [](KfdFile& k) {
                                 k.foreign_memories = {{4711, 0}};
                               }},
                      BadValue{"says twice how memory 4711 was allocated",
                               [](KfdFile& k) {
                                 k.bos[0].imported = true;
                                 k.bos[0].inode = 4711;
                                 k.foreign_memories = {{4711, 0}, {4711, KFD_IOC_ALLOC_MEM_FLAGS_COHERENT}};
                               }},
                      BadValue{"too much memory", [](KfdFile& k) { k.foreign_memories.resize(65537); }},
                      BadValue{"unknown device", [](KfdFile& k) { k.bos[0].bo.user_gpu_id = 5; }},
                      BadValue{"name of a shared file", [](KfdFile& k) { k.shared_files[0].name = "../etc/passwd"; }},
                      BadValue{"second name", [](KfdFile& k) { k.shared_files[0].links = {"link_remap./../x"}; }},
                      BadValue{"second name", [](KfdFile& k) { k.shared_files[0].links = {"link_remap."}; }},
                      BadValue{"second name", [](KfdFile& k) { k.shared_files[0].links = {"hsakmt_shared_mem"}; }},
                      BadValue{"second names", [](KfdFile& k) { k.shared_files[0].links.assign(65, "link_remap.1"); }},
                      BadValue{"size or mode", [](KfdFile& k) { k.shared_files[0].mode = 04777; }}));

TEST(Validate, refuses_owners_that_are_no_processes_of_the_dump) {
  const Session session = test_session();
  EXPECT_TRUE(validate({1, SecondFile{43, 0}}, session).ok());
  EXPECT_FALSE(validate({1, SecondFile{0, 0}}, session).ok());
  EXPECT_FALSE(validate({1, SecondFile{44, 0}}, session).ok());
  EXPECT_TRUE(validate({1, InertFile{0, 0}}, session).ok());
  EXPECT_FALSE(validate({1, InertFile{44, 0}}, session).ok());
  EXPECT_FALSE(validate({1, RenderFile{200, 0, Binding::kKfd, 44}}, session).ok());
  EXPECT_FALSE(validate({1, RenderFile{201, 0, Binding::kKfd, 42}}, session).ok());
  EXPECT_FALSE(validate({1, RenderFile{200, 0, static_cast<Binding>(3), 42}}, session).ok());
}

TEST(Validate, refuses_dmabufs_of_no_memory_and_with_impossible_values) {
  const Session session = test_session();
  const DmabufFile good{4711, kPageSize, std::string(kMaxDmabufName, 'x'), O_NONBLOCK};
  EXPECT_TRUE(validate({1, good}, session).ok());
  struct BadDmabuf {
    const char* expected;
    void (*change)(DmabufFile&);
  };
  DmabufFile of_kfd{4711, kPageSize, {}};
  of_kfd.gpu_id = session.nodes.back().gpu_id;
  of_kfd.object.domains = kGemVram;
  of_kfd.alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
  of_kfd.bos = {{{0, kPageSize, 0, of_kfd.gpu_id, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, 0, 4711}};
  EXPECT_TRUE(validate({1, of_kfd}, session).ok()) << validate({1, of_kfd}, session).error().message();
  of_kfd.object.tiling = 1;
  const auto with_metadata = validate({1, of_kfd}, session);
  ASSERT_FALSE(with_metadata.ok());
  EXPECT_NE(with_metadata.error().message().find("has metadata"), std::string::npos);
  for (const BadDmabuf& bad : {BadDmabuf{"of no memory", [](DmabufFile& d) { d.inode = 0; }},
                               BadDmabuf{"size", [](DmabufFile& d) { d.size = 0; }},
                               BadDmabuf{"size", [](DmabufFile& d) { d.size = (1ULL << 47) + 1; }},
                               BadDmabuf{"name", [](DmabufFile& d) { d.name += 'x'; }},
                               BadDmabuf{"name", [](DmabufFile& d) { d.name = std::string("a\0b", 3); }},
                               BadDmabuf{"flags of open", [](DmabufFile& d) { d.open_flags = O_RDWR; }}}) {
    DmabufFile changed = good;
    bad.change(changed);
    const auto status = validate({1, changed}, session);
    ASSERT_FALSE(status.ok()) << bad.expected;
    EXPECT_NE(status.error().message().find(bad.expected), std::string::npos) << status.error().message();
  }
}

TEST(Codec, a_dmabuf_is_read_as_it_was_written) {
  const std::string bytes = encode({7, DmabufFile{0x1234567890, 1U << 20, "a name", O_NONBLOCK}}, 5);
  const auto decoded = decode_file(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  EXPECT_EQ(decoded->file.id, 7U);
  const auto* dmabuf = std::get_if<DmabufFile>(&decoded->file.contents);
  ASSERT_NE(dmabuf, nullptr);
  EXPECT_EQ(dmabuf->inode, 0x1234567890U);
  EXPECT_EQ(dmabuf->size, 1U << 20);
  EXPECT_EQ(dmabuf->name, "a name");
  EXPECT_EQ(dmabuf->open_flags, static_cast<std::uint32_t>(O_NONBLOCK));
  EXPECT_EQ(kind_of(decoded->file), Kind::kDmabuf);
  EXPECT_EQ(owner_of(decoded->file), 0U);
  // A name longer than the kernel permits is refused before protobuf sees it.
  DmabufFile lost{1, 1U << 20, {}};
  lost.gpu_id = 5;
  lost.object.domains = kGemVram;
  lost.object.metadata_flags = 2;
  lost.object.tiling = 1ULL << 40;
  lost.object.metadata.assign(kMaxGemMetadata, std::byte{7});
  const std::string of_lost = encode({7, lost}, 5);
  const auto again = decode_file(std::as_bytes(std::span(of_lost)));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(std::get_if<DmabufFile>(&again->file.contents)->object, lost.object);
  lost.object.metadata.push_back(std::byte{7});
  const std::string too_long = encode({7, lost}, 5);
  EXPECT_FALSE(decode_file(std::as_bytes(std::span(too_long))).ok());
  const std::string longer = encode({7, DmabufFile{1, 1U << 20, std::string(kMaxDmabufName + 1, 'x'), 0}}, 5);
  EXPECT_FALSE(decode_file(std::as_bytes(std::span(longer))).ok());
}

TEST(Codec, a_sync_file_is_read_as_it_was_written) {
  const std::string bytes = encode({7, SyncFile{201, "a name", O_NONBLOCK}}, 5);
  const auto decoded = decode_file(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message();
  const auto* sync_file = std::get_if<SyncFile>(&decoded->file.contents);
  ASSERT_NE(sync_file, nullptr);
  EXPECT_EQ(sync_file->gpu_id, 201U);
  EXPECT_EQ(sync_file->name, "a name");
  EXPECT_EQ(open_flags_of(decoded->file), static_cast<std::uint32_t>(O_NONBLOCK));
  EXPECT_EQ(kind_of(decoded->file), Kind::kSyncFile);
  EXPECT_FALSE(has_index(decoded->file));
  const std::string longer = encode({7, SyncFile{201, std::string(kMaxSyncFileName + 1, 'x')}}, 5);
  EXPECT_FALSE(decode_file(std::as_bytes(std::span(longer))).ok());
}

TEST(Validate, refuses_sync_files_with_impossible_values) {
  const Session session = test_session();
  const std::uint32_t gpu = session.nodes.back().gpu_id;
  EXPECT_TRUE(validate({1, SyncFile{gpu, std::string(kMaxSyncFileName, 'x'), O_NONBLOCK}}, session).ok());
  EXPECT_FALSE(validate({1, SyncFile{0, ""}}, session).ok());
  EXPECT_FALSE(validate({1, SyncFile{gpu + 1, ""}}, session).ok());
  EXPECT_FALSE(validate({1, SyncFile{gpu, std::string(kMaxSyncFileName + 1, 'x')}}, session).ok());
  EXPECT_FALSE(validate({1, SyncFile{gpu, std::string("a\0b", 3)}}, session).ok());
  EXPECT_FALSE(validate({1, SyncFile{gpu, "", O_RDWR}}, session).ok());
}

struct BadIndex {
  const char* expected;
  void (*change)(Index&);
};

class ValidateIndex : public ::testing::TestWithParam<BadIndex> {};

constexpr std::uint64_t kPagesLength = kPageSize + 2 * kPieceSize;

TEST_P(ValidateIndex, refuses_a_wrong_value) {
  Index index;
  index.bos = {test_bo(kChunkSize), test_bo(kChunkSize)};
  index.bos[1].shares_contents = true;
  index.chunks = {{kPageSize, 1, 0b101}};
  const auto good = validate(index, kPagesLength, Version::k2);
  ASSERT_TRUE(good.ok()) << good.error().message();
  GetParam().change(index);
  const auto status = validate(index, kPagesLength, Version::k2);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find(GetParam().expected), std::string::npos) << status.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Values, ValidateIndex,
    ::testing::Values(BadIndex{"chunk size", [](Index& i) { i.chunk_size = 0; }},
                      BadIndex{"chunk size", [](Index& i) { i.chunk_size = 4097; }},
                      BadIndex{"chunk size", [](Index& i) { i.chunk_size = 128U << 20; }},
                      BadIndex{"piece size", [](Index& i) { i.piece_size = 0; }},
                      BadIndex{"piece size", [](Index& i) { i.piece_size = 4097; }},
                      BadIndex{"piece size", [](Index& i) { i.piece_size = 4096; }},
                      BadIndex{"address or size", [](Index& i) { i.bos[0].bo.size = 0; }},
                      BadIndex{"address or size", [](Index& i) { i.bos[0].bo.size = (1ULL << 47) + 4096; }},
                      BadIndex{"address or size", [](Index& i) { i.bos[0].bo.addr = ~0ULL - 10; }},
                      BadIndex{"not stored with another BO", [](Index& i) { i.bos[1].inode = 5; }},
                      BadIndex{"not stored with another BO", [](Index& i) { i.bos[1].bo.size = 4096; }},
                      BadIndex{"not stored with another BO", [](Index& i) { i.bos[0].shares_contents = true; }},
                      BadIndex{"not stored with another BO",
                               [](Index& i) { i.bos[1].bo.alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR; }},
                      BadIndex{"cannot be shared", [](Index& i) { i.bos[0].inode = 0, i.bos[0].imported = true; }},
                      BadIndex{"cannot be shared",
                               [](Index& i) {
                                 i.bos[1] = test_bo(kPageSize, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR);
                                 i.bos[1].stored_elsewhere = true;
                               }},
                      BadIndex{"in this file and in another one", [](Index& i) { i.bos[1].stored_elsewhere = true; }},
                      BadIndex{"fewer chunks than the 1", [](Index& i) { i.chunks.clear(); }},
                      BadIndex{"more chunks", [](Index& i) { i.chunks.push_back({}); }},
                      BadIndex{"another length than its chunks", [](Index& i) { i.chunks[0].stored = 0b111; }},
                      BadIndex{"another length than its chunks", [](Index& i) { i.chunks[0] = {}; }},
                      BadIndex{"behind its end", [](Index& i) { i.chunks[0].stored = 1ULL << 16; }},
                      BadIndex{"stores nothing", [](Index& i) { i.chunks[0].stored = 0; }},
                      BadIndex{"outside the pages file", [](Index& i) { i.chunks[0].offset += kPageSize; }},
                      BadIndex{"outside the pages file", [](Index& i) { i.chunks[0].offset = ~0ULL - kPageSize + 1; }},
                      BadIndex{"at no place of a chunk", [](Index& i) { i.chunks[0].offset = 0; }},
                      BadIndex{"at no place of a chunk", [](Index& i) { i.chunks[0].offset += 8; }}));

struct Places {
  std::array<std::uint64_t, 3> pages;  // where three chunks begin, which have one, two and two pages
  const char* why;                     // empty: they are right
};

class ValidatePlaces : public ::testing::TestWithParam<Places> {};

TEST_P(ValidatePlaces, give_each_page_to_a_chunk) {
  Index index;
  index.bos = {test_bo(kPageSize), test_bo(2 * kPageSize), test_bo(2 * kPageSize)};
  index.bos[1].inode = index.bos[2].inode = 0;
  for (const std::uint64_t page : GetParam().pages) index.chunks.push_back({page * kPageSize, 1, 1});
  const auto status = validate(index, 6 * kPageSize, Version::k2);
  EXPECT_EQ(status.ok() ? "" : status.error().message(), GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    Orders, ValidatePlaces,
    ::testing::Values(
        Places{{1, 2, 4}, ""}, Places{{5, 1, 3}, ""}, Places{{3, 4, 1}, ""}, Places{{1, 4, 2}, ""},
        Places{{2, 3, 5}, "BO 0, chunk 0: invalid image: lies outside the pages file, or not behind another chunk"},
        Places{{1, 2, 5}, "BO 2, chunk 0: invalid image: lies outside the pages file, or not behind another chunk"},
        Places{{1, 2, 3}, "BO 2, chunk 0: invalid image: lies in a part of another chunk, and behind it"},
        Places{{1, 2, 2}, "invalid image: the pages file has another length than its chunks"}));

struct BadManifest {
  const char* expected;
  void (*change)(Manifest&);
};

class ValidateManifest : public ::testing::TestWithParam<BadManifest> {};

TEST_P(ValidateManifest, refuses_a_wrong_value) {
  Manifest manifest{test_session(), {{kKfdId, Kind::kKfd, 10, 1, 24, 1, 2 * kPageSize, {}}}};
  ASSERT_TRUE(validate(manifest).ok());
  GetParam().change(manifest);
  const auto status = validate(manifest);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find(GetParam().expected), std::string::npos) << status.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Values, ValidateManifest,
    ::testing::Values(BadManifest{"interface of the kernel", [](Manifest& m) { m.session.abi = static_cast<Abi>(0); }},
                      BadManifest{"release", [](Manifest& m) { m.session.kernel_release.assign(65, 'x'); }},
                      BadManifest{"node 1 twice", [](Manifest& m) { m.session.nodes.push_back(test_node(1, 0)); }},
                      BadManifest{"GPU 200 twice", [](Manifest& m) { m.session.nodes.push_back(test_node(9, 200)); }},
                      BadManifest{"too many topology nodes",
                                  [](Manifest& m) {
                                    for (std::uint32_t i = 2; i < 4099; ++i) m.session.nodes.push_back(test_node(i, 0));
                                  }},
                      BadManifest{"process id 0", [](Manifest& m) { m.session.processes[0].pid = 0; }},
                      BadManifest{"process id", [](Manifest& m) { m.session.processes[0].pid = 1U << 31; }},
                      BadManifest{"name of process", [](Manifest& m) { m.session.processes[0].comm.assign(65, 'x'); }},
                      BadManifest{"without files", [](Manifest& m) { m.files.clear(); }},
                      BadManifest{"file 7 twice", [](Manifest& m) { m.files.push_back(m.files[0]); }},
                      BadManifest{"unknown kind", [](Manifest& m) { m.files[0].kind = static_cast<Kind>(5); }},
                      BadManifest{"length of the metadata", [](Manifest& m) { m.files[0].metadata_length = 0; }},
                      BadManifest{"length of the metadata",
                                  [](Manifest& m) { m.files[0].metadata_length = kMaxMetadata + 1; }},
                      BadManifest{"length of the index", [](Manifest& m) { m.files[0].index_length = 0; }},
                      BadManifest{"length of the index", [](Manifest& m) { m.files[0].index_length = kMaxIndex + 1; }},
                      BadManifest{"length of the index", [](Manifest& m) { m.files[0].kind = Kind::kSecond; }},
                      BadManifest{"length of the pages", [](Manifest& m) { m.files[0].pages_length = kPageSize; }},
                      BadManifest{"length of the pages", [](Manifest& m) { m.files[0].pages_length = kPageSize + 1; }},
                      BadManifest{"length of the pages", [](Manifest& m) { m.files[0].pages_length = 1ULL << 63; }}));

TEST(Names, are_those_that_are_written_and_no_others) {
  EXPECT_EQ(parse_name("amdgpu-7.img")->kind, NameKind::kMetadata);
  EXPECT_EQ(parse_name("amdgpu-index-7.img")->kind, NameKind::kIndex);
  EXPECT_EQ(parse_name("amdgpu-pages-4294967295.img")->id, 4294967295U);
  EXPECT_EQ(parse_name("amdgpu-manifest.img")->kind, NameKind::kManifest);
  EXPECT_EQ(parse_name("amdgpu-manifest-0.img")->kind, NameKind::kManifest1);
  for (const char* name : {"", "amdgpu-.img", "amdgpu-07.img", "amdgpu-+7.img", "amdgpu-7.img.tmp", "amdgpu-7.imgx",
                           "amdgpu-pages-1-2.img", "amdgpu-4294967296.img", "amdgpu-kfd-1.img", "pages-1.img"})
    EXPECT_FALSE(parse_name(name)) << name;
}

}  // namespace
}  // namespace plugin::image
