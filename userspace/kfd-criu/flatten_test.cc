// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Dumps that refer to earlier ones, as the commands see them, and `flatten`.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "kfd-criu/test_support.h"

namespace kfd_criu::testing {
namespace {

namespace fs = std::filesystem;
namespace image = plugin::image;

// Two dumps of one program, the second of which has changed one byte of the second chunk.
class FlattenTest : public ::testing::Test {
 protected:
  FlattenTest() {
    write(1);
    fs::create_symlink("../1", path(2) + "/parent");
    write(2);
  }

  [[nodiscard]] std::string path(int dump) const {
    const std::string path = root_.path() + "/" + std::to_string(dump);
    fs::create_directories(path);
    return path;
  }

  void write(int dump) const {
    write_dump(path(dump), [dump](Dump& out) {
      out.session_id = static_cast<std::uint64_t>(dump);
      out.kfd.bos = {image::test_bo(2 * image::kChunkSize)};
      auto contents = image::pattern(2 * image::kChunkSize);
      contents.back() = static_cast<std::byte>(dump);
      out.contents = {contents};
    });
  }

  [[nodiscard]] std::map<std::string, std::string> files(int dump) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(path(dump)))
      if (entry.is_regular_file()) found[entry.path().filename()] = base::read_file(entry.path());
    return found;
  }

  // `read`: what `verify` reads of its files.
  void expect_independent(int dump, const std::string& read = "2.0 MiB") const {
    fs::rename(path(1), root_.path() + "/away");
    const Outcome verified = run_tool({"verify", path(dump)});
    EXPECT_EQ(verified.status, Exit::kGood) << verified.out << verified.error;
    EXPECT_NE(verified.out.find(read + " of contents read"), std::string::npos) << verified.out;
    EXPECT_FALSE(fs::exists(path(dump) + "/amdgpu-flatten"));
    fs::remove(path(1));
    fs::rename(root_.path() + "/away", path(1));
  }

  base::TempDir root_;
};

TEST_F(FlattenTest, show_says_what_a_dump_needs) {
  const Outcome shown = run_tool({"show", path(2)});
  EXPECT_EQ(shown.status, Exit::kGood);
  EXPECT_NE(shown.out.find("needs parent/amdgpu-pages-7.img of session 0000000000000001\n"), std::string::npos)
      << shown.out;
  EXPECT_NE(shown.out.find("2.0 MiB: 1.0 MiB stored, 1.0 MiB in earlier dumps, 0"), std::string::npos) << shown.out;
  const Outcome json = run_tool({"show", "--json", path(2)});
  EXPECT_TRUE(is_json(json.out));
  EXPECT_NE(json.out.find("\"referred\": 1048576"), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("\"path\": \"parent/amdgpu-pages-7.img\""), std::string::npos) << json.out;
}

TEST_F(FlattenTest, verify_reads_what_a_dump_needs) {
  EXPECT_EQ(run_tool({"verify", path(2)}).status, Exit::kGood);
  const std::string pages = path(1) + "/amdgpu-pages-7.img";
  std::string bytes = base::read_file(pages);
  bytes[image::kPageSize + 9] ^= 1;
  base::write_file(pages, bytes);
  const Outcome damaged = run_tool({"verify", path(2)});
  EXPECT_EQ(damaged.status, Exit::kDiffers);
  EXPECT_NE(damaged.out.find("parent/amdgpu-pages-7.img: damaged: wrong checksum"), std::string::npos) << damaged.out;
  // What was not referred to may change.
  bytes[image::kPageSize + 9] ^= 1;
  bytes[bytes.size() - 1] ^= 1;
  base::write_file(pages, bytes);
  EXPECT_EQ(run_tool({"verify", path(2)}).status, Exit::kGood);
}

TEST_F(FlattenTest, a_flattened_dump_needs_no_other_one) {
  base::write_file(path(2) + "/inventory.img", "CRIU's");
  const Outcome done = run_tool({"flatten", path(2)});
  EXPECT_EQ(done.status, Exit::kGood) << done.error;
  EXPECT_EQ(done.out, path(2) + ": stored 1.0 MiB of earlier dumps; it needs none of them\n");
  expect_independent(2);
  EXPECT_EQ(base::read_file(path(2) + "/inventory.img"), "CRIU's");
  const Outcome again = run_tool({"flatten", path(2)});
  EXPECT_EQ(again.out, path(2) + ": needs no earlier dump\n");
  EXPECT_EQ(run_tool({"diff", path(1), path(2)}).status, Exit::kDiffers);
}

TEST_F(FlattenTest, compressed_contents_stay_compressed) {
  for (const int dump : {1, 2})
    write_dump(path(dump), [dump](Dump& out) {
      out.session_id = static_cast<std::uint64_t>(dump);
      out.packing = image::Packing::kAlways;
      out.kfd.bos = {image::test_bo(2 * image::kChunkSize)};
      out.contents = {std::vector<std::byte>(2 * image::kChunkSize, std::byte{5})};
      out.contents[0].back() = static_cast<std::byte>(dump);
    });
  EXPECT_NE(run_tool({"show", path(2)}).out.find("in earlier dumps, 2.0 MiB saved"), std::string::npos);
  EXPECT_EQ(run_tool({"verify", path(2)}).status, Exit::kGood);
  EXPECT_EQ(run_tool({"flatten", path(2)}).status, Exit::kGood);
  EXPECT_LT(fs::file_size(path(2) + "/amdgpu-pages-7.img"), 16 * image::kPageSize);
  expect_independent(2, "20.0 KiB");
}

TEST_F(FlattenTest, a_dump_that_cannot_be_read_is_left_as_it_is) {
  const auto before = files(2);
  const std::string pages = path(1) + "/amdgpu-pages-7.img";
  std::string bytes = base::read_file(pages);
  bytes[image::kPageSize + 9] ^= 1;
  base::write_file(pages, bytes);
  const Outcome damaged = run_tool({"flatten", path(2)});
  EXPECT_EQ(damaged.status, Exit::kUnreadable);
  EXPECT_NE(damaged.error.find("parent/amdgpu-pages-7.img: damaged"), std::string::npos) << damaged.error;
  fs::remove(pages);
  const Outcome missing = run_tool({"flatten", path(2)});
  EXPECT_EQ(missing.status, Exit::kDiffers);
  EXPECT_NE(missing.error.find("parent/amdgpu-pages-7.img: is missing"), std::string::npos) << missing.error;
  EXPECT_EQ(files(2), before);
  EXPECT_FALSE(fs::exists(path(2) + "/amdgpu-flatten"));
}

TEST_F(FlattenTest, without_room_a_dump_is_left_as_it_is) {
  const auto before = files(2);
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const struct rlimit small { image::kChunkSize, old.rlim_max };
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Outcome outcome = run_tool({"flatten", path(2)});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(outcome.status, Exit::kUnreadable);
  EXPECT_NE(outcome.error.find("writing amdgpu-pages-7.img"), std::string::npos) << outcome.error;
  EXPECT_EQ(files(2), before);
  EXPECT_FALSE(fs::exists(path(2) + "/amdgpu-flatten"));
}

// What is left of a run that was killed: the new dump is committed in the folder, and so many of its files have moved.
TEST_F(FlattenTest, a_run_that_was_killed_is_completed) {
  fs::copy(path(2), path(4), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  ASSERT_EQ(run_tool({"flatten", path(4)}).status, Exit::kGood);
  const auto fresh = files(4);
  for (std::size_t moved = 0; moved < fresh.size(); ++moved) {
    const std::string dir = root_.path() + "/killed";
    fs::copy(path(2), dir, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    std::size_t number = 0;
    for (const auto& [name, bytes] : fresh) {
      const bool has_moved = name != image::kManifestName && number++ < moved;
      base::write_file(has_moved ? dir + "/" + name : dir + "/amdgpu-flatten/" + name, bytes);
    }
    if (moved != 0) fs::remove(dir + "/amdgpu-manifest.img");
    const Outcome done = run_tool({"flatten", dir});
    EXPECT_EQ(done.status, Exit::kGood) << done.error;
    EXPECT_NE(done.out.find("completed what another run had begun"), std::string::npos) << done.out;
    fs::remove(dir + "/parent");
    EXPECT_EQ(run_tool({"verify", dir}).status, Exit::kGood);
    EXPECT_FALSE(fs::exists(dir + "/amdgpu-flatten"));
    fs::remove_all(dir);
  }
}

TEST_F(FlattenTest, what_a_killed_run_left_does_not_replace_a_newer_dump) {
  fs::copy(path(2), path(4), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  ASSERT_EQ(run_tool({"flatten", path(4)}).status, Exit::kGood);
  for (const auto& [name, bytes] : files(4)) base::write_file(path(2) + "/amdgpu-flatten/" + name, bytes);
  const auto left = [this] { return fs::exists(path(2) + "/amdgpu-flatten"); };
  // A dump that another tool has copied there.
  write(3);
  for (const auto& [name, bytes] : files(3)) base::write_file(path(2) + "/" + name, bytes);
  EXPECT_NE(run_tool({"flatten", path(2)}).out.find("needs no earlier dump"), std::string::npos);
  EXPECT_TRUE(left());
  EXPECT_EQ(run_tool({"diff", path(2), path(3)}).status, Exit::kGood);
  write(2);
  EXPECT_FALSE(left());
}

TEST_F(FlattenTest, one_that_was_killed_before_its_commit_begins_anew) {
  base::write_file(path(2) + "/amdgpu-flatten/amdgpu-pages-7.img", "half");
  base::write_file(path(2) + "/amdgpu-flatten/amdgpu-manifest.img.tmp", "half");
  EXPECT_EQ(run_tool({"flatten", path(2)}).status, Exit::kGood);
  expect_independent(2);
}

TEST_F(FlattenTest, a_dump_that_another_one_needs_is_left_as_it_is) {
  fs::create_symlink("../2", path(3) + "/parent");
  write(3);
  const auto before = files(2);
  const Outcome refused = run_tool({"flatten", path(2)});
  EXPECT_EQ(refused.status, Exit::kUnreadable);
  EXPECT_NE(refused.error.find("the dump in " + path(3) + " needs its files as they are"), std::string::npos)
      << refused.error;
  EXPECT_EQ(files(2), before);
  // From the last one to the first one.
  EXPECT_EQ(run_tool({"flatten", path(3)}).status, Exit::kGood);
  EXPECT_EQ(run_tool({"flatten", path(2)}).status, Exit::kGood);
  EXPECT_EQ(run_tool({"verify", path(3)}).status, Exit::kGood);
}

TEST_F(FlattenTest, a_directory_without_images_is_refused) {
  const Outcome outcome = run_tool({"flatten", path(5)});
  EXPECT_EQ(outcome.status, Exit::kUnreadable);
  EXPECT_NE(outcome.error.find("has no image of the plugin"), std::string::npos) << outcome.error;
  EXPECT_EQ(run_tool({"flatten", path(5), "--json"}).status, Exit::kUsage);
}

}  // namespace
}  // namespace kfd_criu::testing
