// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A whole dump of version 2, of all kinds of files, with every byte of every file changed, every length, and files that
// are of another dump or no regular files: an error, never something else than what was saved.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "plugin/image/test_support.h"

namespace plugin::image {
namespace {

using base::read_file;
using base::write_file;

constexpr std::size_t kSmallBo = 300;  // of the contents

class DamageTest : public SessionTest {
 protected:
  DamageTest() { expect_ok(write_all_kinds(contents_, kSession)); }

  // Loads everything that a restore loads. Its error, if there is one.
  [[nodiscard]] base::Status restore() const {
    ASSIGN_OR_RETURN(const Catalogue images, Catalogue::read(dir()));
    bool other = false;
    for (const std::uint32_t id : {kKfdId, kSecondId, kInertId, kRenderId}) {
      ASSIGN_OR_RETURN(const Loaded* loaded, images.find(id));
      if (loaded == nullptr) return base::Error(ENOENT, "no image");
      if (loaded->kind() != Kind::kKfd) continue;
      ASSIGN_OR_RETURN(const Contents contents, open_contents(dir(), *loaded));
      TRY(contents.verify());
      std::vector<std::byte> bytes(contents_.size());
      BoReader reader(contents, 0);
      TRY(reader.read(bytes));
      other = bytes != contents_;
    }
    if (other) return base::Error(EPROTO, "other contents, and no error");
    return {};
  }

  // Whether the damage was found, and by an error that says in which file it was found.
  void expect_refused(const std::string& what) const {
    const auto status = restore();
    ASSERT_FALSE(status.ok()) << what;
    ASSERT_NE(status.error().code(), EPROTO) << what;
    ASSERT_NE(status.error().message().find("amdgpu-"), std::string::npos) << what << ": " << status.error().message();
  }

  static std::set<std::string> names(const std::map<std::string, std::string>& files) {
    std::set<std::string> all;
    for (const auto& [name, bytes] : files) all.insert(name);
    return all;
  }

  const std::vector<std::byte> contents_ = pattern(kSmallBo);
};

TEST_F(DamageTest, the_dump_has_the_files_that_are_damaged_here) {
  EXPECT_EQ(names(files()),
            (std::set<std::string>{"amdgpu-manifest.img", "amdgpu-7.img", "amdgpu-8.img", "amdgpu-10.img",
                                   "amdgpu-12.img", "amdgpu-index-7.img", "amdgpu-pages-7.img"}));
  expect_ok(restore());
}

TEST_F(DamageTest, any_flipped_byte_of_any_file_is_found) {
  for (const auto& [name, good] : files()) {
    const base::UniqueFd file(::open(path(name).c_str(), O_RDWR | O_CLOEXEC));
    for (std::size_t i = 0; i < good.size(); ++i) {
      const char bad = static_cast<char>(good[i] ^ (1 << (i % 8)));
      ASSERT_EQ(::pwrite(file.get(), &bad, 1, static_cast<off_t>(i)), 1);
      expect_refused(name + " byte " + std::to_string(i));
      ASSERT_EQ(::pwrite(file.get(), &good[i], 1, static_cast<off_t>(i)), 1);
      if (HasFatalFailure()) return;
    }
  }
  expect_ok(restore());
}

TEST_F(DamageTest, a_flipped_byte_of_a_sparse_chunk_is_found) {
  // Two stored pieces with a zero one between them, and an odd end.
  std::vector<std::byte> sparse(2 * kPieceSize + kSmallBo);
  std::copy(contents_.begin(), contents_.end(), sparse.begin());
  std::copy(contents_.begin(), contents_.end(), sparse.begin() + 2 * kPieceSize);
  write_kfd(sparse);
  const std::string name = pages_name(kKfdId);
  const std::string good = read_file(path(name));
  ASSERT_EQ(good.size(), 2 * kPageSize + kPieceSize);
  const base::UniqueFd file(::open(path(name).c_str(), O_RDWR | O_CLOEXEC));
  for (std::size_t i = 0; i < good.size(); i += 97) {
    const char bad = static_cast<char>(good[i] ^ 1);
    ASSERT_EQ(::pwrite(file.get(), &bad, 1, static_cast<off_t>(i)), 1);
    ASSERT_FALSE(load_contents().ok()) << i;
    ASSERT_EQ(::pwrite(file.get(), &good[i], 1, static_cast<off_t>(i)), 1);
  }
  EXPECT_EQ(*load_contents(), sparse);
}

TEST_F(DamageTest, any_other_length_of_any_file_is_found) {
  for (const auto& [name, good] : files()) {
    for (std::size_t length = good.size(); length-- > 0;) {
      std::filesystem::resize_file(path(name), length);
      expect_refused(name + " length " + std::to_string(length));
      if (HasFatalFailure()) return;
    }
    for (const std::size_t more : {std::size_t{1}, std::size_t{kPageSize}}) {
      write_file(path(name), good + std::string(more, '\0'));
      expect_refused(name + " and " + std::to_string(more));
    }
    write_file(path(name), good);
  }
  expect_ok(restore());
}

TEST_F(DamageTest, any_missing_file_is_found) {
  for (const auto& [name, good] : files()) {
    std::filesystem::remove(path(name));
    expect_refused(name + " is missing");
    write_file(path(name), good);
  }
  expect_ok(restore());
}

TEST_F(DamageTest, any_selection_of_files_of_another_dump_is_found) {
  // A dump of this program a moment later: equal lengths everywhere, and other contents.
  const auto ours = files();
  auto later = contents_;
  later[5] ^= std::byte{2};
  expect_ok(write_all_kinds(later, kSession + 1));
  const auto others = files();
  ASSERT_EQ(names(ours), names(others));
  for (std::uint32_t chosen = 1; chosen + 1 < 1U << ours.size(); ++chosen) {
    std::uint32_t bit = 1;
    std::string what;
    for (const auto& [name, bytes] : ours) {
      write_file(path(name), (chosen & bit) != 0 ? others.at(name) : bytes);
      if ((chosen & bit) != 0) what += name + " ";
      bit <<= 1U;
    }
    expect_refused("of another dump: " + what);
    if (HasFatalFailure()) return;
  }
}

// The contents of both dumps are equal, so only what ties a file to its dump can tell.
TEST_F(DamageTest, a_file_of_another_dump_is_refused_as_such_even_with_the_same_contents) {
  const auto ours = files();
  KfdFile moved = test_kfd();
  auto writer = SessionWriter::create(dir(), kSession + 1);
  moved.bos = {test_bo(kSmallBo), test_bo(kPageSize), test_bo(kPageSize, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR),
               test_bo(kSmallBo)};
  moved.bos[0].bo.addr = 0x2000;
  moved.bos[3].shares_contents = true;
  expect_ok((*writer)->file(kKfdId).append(contents_));
  expect_ok((*writer)->file(kKfdId).append(std::vector<std::byte>(kPageSize)));
  expect_ok((*writer)->add({kKfdId, moved}));
  expect_ok((*writer)->prepare(test_session()));
  expect_ok((*writer)->commit());
  const auto others = files();
  for (const auto& [name, bytes] : ours) write_file(path(name), bytes);
  const std::map<std::string, std::string> expected = {
      {metadata_name(kKfdId), "amdgpu-7.img: is not the one that was committed"},
      {index_name(kKfdId), "amdgpu-index-7.img: is not the one that was committed"},
      {pages_name(kKfdId), "amdgpu-pages-7.img: is of another dump"}};
  for (const auto& [name, message] : expected) {
    ASSERT_EQ(others.at(name).size(), ours.at(name).size());
    write_file(path(name), others.at(name));
    EXPECT_NE(load_error().find(message), std::string::npos) << load_error();
    write_file(path(name), ours.at(name));
  }
  expect_ok(restore());
}

TEST_F(DamageTest, any_two_files_exchanged_are_found) {
  const auto good = files();
  for (const auto& [first, first_bytes] : good) {
    for (const auto& [second, second_bytes] : good) {
      if (first >= second) continue;
      write_file(path(first), second_bytes);
      write_file(path(second), first_bytes);
      expect_refused(first + " exchanged with " + second);
      write_file(path(first), first_bytes);
      write_file(path(second), second_bytes);
    }
  }
  expect_ok(restore());
}

TEST_F(DamageTest, what_is_no_regular_file_is_refused_and_nobody_waits_for_it) {
  const auto good = files();
  for (const auto& [name, bytes] : good) {
    const std::string elsewhere = path("elsewhere");
    std::filesystem::rename(path(name), elsewhere);
    ASSERT_EQ(::mkfifo(path(name).c_str(), 0600), 0);
    expect_refused(name + " is a FIFO");
    EXPECT_NE(restore().error().message().find(name + ": not a regular file"), std::string::npos);
    std::filesystem::remove(path(name));
    std::filesystem::create_symlink(elsewhere, path(name));
    expect_refused(name + " is a symbolic link");
    std::filesystem::remove(path(name));
    std::filesystem::create_directory(path(name));
    expect_refused(name + " is a directory");
    std::filesystem::remove(path(name));
    std::filesystem::create_symlink("/dev/zero", path(name));
    expect_refused(name + " is a link to a device");
    std::filesystem::remove(path(name));
    std::filesystem::rename(elsewhere, path(name));
  }
  expect_ok(restore());
}

TEST_F(DamageTest, a_reader_says_that_a_link_is_none_of_our_images) {
  std::filesystem::rename(path(kManifestName), path("elsewhere"));
  std::filesystem::create_symlink(path("elsewhere"), path(kManifestName));
  EXPECT_NE(load_error().find("amdgpu-manifest.img: is a symbolic link"), std::string::npos) << load_error();
}

}  // namespace
}  // namespace plugin::image
