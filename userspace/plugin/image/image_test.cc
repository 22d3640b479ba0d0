// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The image: round trips, the commit mark, and damage of every kind at every place.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <numeric>

#include "plugin/image/catalogue.h"
#include "plugin/image/codec.h"
#include "plugin/image/writer.h"
#include "plugin/test_support.h"

namespace plugin::image {
namespace {

using testing::read_file;
using testing::TempDir;
using testing::write_file;

constexpr std::uint32_t kId = 7;
constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;

topology::Node node(std::uint32_t gpu_id) {
  topology::Node node;
  node.node_id = gpu_id;
  node.gpu_id = gpu_id;
  node.properties = {{"simd_count", 240}};
  node.links = {{0, 2}};
  return node;
}

KfdFile small_kfd() {
  KfdFile kfd;
  kfd.pid = 42;
  kfd.num_objects = 3;
  kfd.devices = {{100, 200}};
  kfd.priv_data = {std::byte{1}, std::byte{2}, std::byte{3}};
  kfd.shared_files = {{"hsakmt_shared_mem", "shared", 0666, 0, 0, {"link_remap.5"}}};
  return kfd;
}

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 7 + i / 256) | 1);
  return bytes;
}

class ImageTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  [[nodiscard]] int dir() const { return dir_fd_.get(); }

  // One GPU, one BO with `contents`.
  void write_image(const std::vector<std::byte>& contents) {
    auto writer = Writer::create(dir(), kId);
    ASSERT_TRUE(writer.ok());
    KfdFile kfd = small_kfd();
    BoRecord record{{0x1000, contents.size(), 0x5000, 100, kVram}, {}};
    ASSERT_TRUE(writer->append(contents, record.chunks).ok());
    kfd.bos.push_back(record);
    const auto status = writer->commit({11, {node(0), node(200)}, kfd});
    ASSERT_TRUE(status.ok()) << status.error().message();
  }

  // Empty when the image loads and its pages file can be opened.
  [[nodiscard]] std::string load_error() const {
    const auto loaded = load(dir(), kId);
    if (!loaded.ok()) return loaded.error().message();
    if (!*loaded) return "no image";
    const auto contents = open_contents(dir(), **loaded);
    return contents.ok() ? "" : contents.error().message();
  }

  // Loads the image and all its contents.
  [[nodiscard]] base::Result<std::vector<std::byte>> load_contents() const {
    ASSIGN_OR_RETURN(auto loaded, load(dir(), kId));
    if (!loaded) return base::Error(ENOENT, "no image");
    ASSIGN_OR_RETURN(const Contents contents, open_contents(dir(), *loaded));
    const BoRecord& record = loaded->kfd()->bos.at(0);
    std::vector<std::byte> bytes(record.bo.size);
    for (std::size_t i = 0; i < record.chunks.size(); ++i) {
      const auto length = chunk_length(record.bo.size, loaded->kfd()->chunk_size, i);
      TRY(contents.read_chunk(record.chunks[i], std::span(bytes).subspan(i * loaded->kfd()->chunk_size, length)));
    }
    return bytes;
  }

  TempDir dir_;
  base::UniqueFd dir_fd_{::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(ImageTest, what_was_written_is_read_back) {
  const auto contents = pattern(2 * kChunkSize + 5000);
  write_image(contents);
  auto loaded = load(dir(), kId);
  ASSERT_TRUE(loaded.ok() && *loaded) << load_error();
  const KfdFile& kfd = *(*loaded)->kfd();
  EXPECT_EQ(kfd.pid, 42U);
  EXPECT_EQ(kfd.num_objects, 3U);
  EXPECT_EQ(kfd.priv_data, small_kfd().priv_data);
  EXPECT_EQ(kfd.devices.at(0).user_id, 100U);
  EXPECT_EQ(kfd.shared_files.at(0).contents, "shared");
  EXPECT_EQ(kfd.shared_files.at(0).links, std::vector<std::string>{"link_remap.5"});
  EXPECT_EQ((*loaded)->file().nodes, (std::vector<topology::Node>{node(0), node(200)}));
  EXPECT_EQ(kfd.bos.at(0).chunks.size(), 3U);
  EXPECT_EQ(*load_contents(), contents);
}

TEST_F(ImageTest, zero_chunks_are_not_stored) {
  auto contents = std::vector<std::byte>(8 * kChunkSize);
  contents[5 * kChunkSize] = std::byte{1};
  write_image(contents);
  EXPECT_EQ(std::filesystem::file_size(path(pages_name(kId))), kPageSize + kChunkSize);
  EXPECT_EQ(*load_contents(), contents);
}

TEST_F(ImageTest, chunks_begin_at_page_boundaries) {
  auto writer = Writer::create(dir(), kId);
  std::vector<Chunk> chunks;
  ASSERT_TRUE(writer->append(pattern(100), chunks).ok());
  ASSERT_TRUE(writer->append(pattern(5000), chunks).ok());
  ASSERT_TRUE(writer->append(pattern(1), chunks).ok());
  EXPECT_EQ(chunks[0].offset, kPageSize);
  EXPECT_EQ(chunks[1].offset, 2 * kPageSize);
  EXPECT_EQ(chunks[2].offset, 4 * kPageSize);
}

TEST_F(ImageTest, a_render_node_is_read_back) {
  auto writer = Writer::create(dir(), 3);
  ASSERT_TRUE(writer->commit({11, {node(200)}, RenderFile{200, O_NONBLOCK, Binding::kKfd}}).ok());
  auto loaded = load(dir(), 3);
  ASSERT_TRUE(loaded.ok() && *loaded);
  ASSERT_NE((*loaded)->render(), nullptr);
  EXPECT_EQ((*loaded)->render()->binding, Binding::kKfd);
  EXPECT_EQ((*loaded)->render()->open_flags, static_cast<std::uint32_t>(O_NONBLOCK));
}

TEST_F(ImageTest, an_id_without_files_is_no_image_and_no_error) { EXPECT_EQ(load_error(), "no image"); }

TEST_F(ImageTest, an_image_without_manifest_is_refused_as_incomplete) {
  write_image(pattern(10));
  std::filesystem::remove(path(manifest_name(kId)));
  EXPECT_NE(load_error().find("did not complete"), std::string::npos) << load_error();
}

TEST_F(ImageTest, a_new_dump_to_the_same_id_uncommits_the_old_one_first) {
  write_image(pattern(10));
  ASSERT_TRUE(Writer::create(dir(), kId).ok());
  EXPECT_NE(load_error().find("did not complete"), std::string::npos);
}

TEST_F(ImageTest, a_smaller_dump_over_a_larger_one_leaves_nothing_of_it) {
  write_image(pattern(3 * kChunkSize));
  write_image(pattern(10));
  EXPECT_EQ(*load_contents(), pattern(10));
  EXPECT_EQ(std::filesystem::file_size(path(pages_name(kId))), 2 * kPageSize);
}

TEST_F(ImageTest, each_damage_has_its_own_message) {
  const auto damaged = [this](const std::string& name, const std::function<void(std::string&)>& damage) {
    write_image(pattern(5000));
    std::string bytes = read_file(path(name));
    damage(bytes);
    write_file(path(name), bytes);
    return load_error();
  };
  EXPECT_NE(damaged(metadata_name(kId), [](auto& b) { b[8] = 9; }).find("unknown format version 9"), std::string::npos);
  EXPECT_NE(damaged(metadata_name(kId), [](auto& b) { b[0] = 'X'; }).find("bad magic"), std::string::npos);
  EXPECT_NE(damaged(metadata_name(kId), [](auto& b) { b[45] ^= 1; }).find("wrong checksum"), std::string::npos);
  EXPECT_NE(damaged(pages_name(kId), [](auto& b) { b.pop_back(); }).find("truncated"), std::string::npos);
  EXPECT_NE(damaged(manifest_name(kId), [](auto& b) { b.resize(20); }).find("truncated"), std::string::npos);
}

TEST_F(ImageTest, a_damaged_chunk_is_refused_when_read) {
  write_image(pattern(5000));
  std::string bytes = read_file(path(pages_name(kId)));
  bytes[kPageSize + 4999] ^= 1;
  write_file(path(pages_name(kId)), bytes);
  const auto contents = load_contents();
  ASSERT_FALSE(contents.ok());
  EXPECT_NE(contents.error().message().find("wrong checksum of the chunk at 4096"), std::string::npos);
}

TEST_F(ImageTest, metadata_of_another_dump_is_refused) {
  write_image(pattern(10));
  const std::string other = read_file(path(metadata_name(kId)));
  write_image(pattern(11));
  write_file(path(metadata_name(kId)), other);
  EXPECT_NE(load_error().find("not the one that was committed"), std::string::npos) << load_error();
}

TEST_F(ImageTest, flipping_any_byte_gives_an_error_or_the_same_contents) {
  const auto contents = pattern(300);
  write_image(contents);
  for (const std::string& name : {manifest_name(kId), metadata_name(kId), pages_name(kId)}) {
    const std::string good = read_file(path(name));
    const base::UniqueFd file(::open(path(name).c_str(), O_RDWR | O_CLOEXEC));
    for (std::size_t i = 0; i < good.size(); ++i) {
      const char bad = static_cast<char>(good[i] ^ (1 << (i % 8)));
      ASSERT_EQ(::pwrite(file.get(), &bad, 1, static_cast<off_t>(i)), 1);
      const auto result = load_contents();
      // Only the padding of the pages file is not covered.
      ASSERT_TRUE(!result.ok() || (*result == contents && name == pages_name(kId))) << name << " byte " << i;
      ASSERT_EQ(::pwrite(file.get(), &good[i], 1, static_cast<off_t>(i)), 1);
    }
  }
  EXPECT_EQ(*load_contents(), contents);
}

TEST_F(ImageTest, truncation_at_any_length_is_an_error) {
  for (const std::string& name : {manifest_name(kId), metadata_name(kId), pages_name(kId)}) {
    write_image(pattern(300));
    ASSERT_EQ(load_error(), "");
    for (auto length = std::filesystem::file_size(path(name)); length-- > 0;) {
      std::filesystem::resize_file(path(name), length);
      ASSERT_FALSE(load_contents().ok()) << name << " length " << length;
    }
  }
}

TEST_F(ImageTest, a_byte_too_many_is_an_error) {
  for (const std::string& name : {manifest_name(kId), metadata_name(kId), pages_name(kId)}) {
    write_image(pattern(300));
    write_file(path(name), read_file(path(name)) + 'x');
    ASSERT_NE(load_error().find("extended"), std::string::npos) << name << ": " << load_error();
  }
}

TEST_F(ImageTest, random_protobuf_bytes_never_crash_the_decoder) {
  const std::string good = encode(File{1, {node(200)}, small_kfd()});
  std::uint32_t seed = 1;
  int decoded = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 1664525U + 1013904223U;
      bad[(seed >> 8) % bad.size()] = static_cast<char>(seed >> 24);
    }
    auto file = decode_file(std::as_bytes(std::span(bad)));
    if (file.ok()) decoded += validate(*file, 0).ok() ? 1 : 0;
  }
  EXPECT_GT(decoded, 0);
}

TEST_F(ImageTest, a_full_disk_fails_the_dump) {
  // A file size limit is the full disk that needs no file system of its own.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 3 * kPageSize;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto writer = Writer::create(dir(), kId);
  std::vector<Chunk> chunks;
  const auto status = writer->append(pattern(kChunkSize), chunks);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  (void)std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EFBIG);
}

TEST_F(ImageTest, only_ids_with_a_manifest_or_metadata_are_listed) {
  write_image(pattern(1));
  write_file(path(metadata_name(2)), "");
  write_file(path(pages_name(5)), "");
  write_file(path("amdgpu-manifest-.img"), "");
  write_file(path("amdgpu-manifest-3.img.tmp"), "");
  write_file(path("amdgpu-manifest-99999999999.img"), "");
  EXPECT_EQ(*list_ids(dir()), (std::vector<std::uint32_t>{2, kId}));
}

TEST_F(ImageTest, a_catalogue_keeps_the_error_of_a_damaged_image_for_who_asks_for_it) {
  write_image(pattern(1));
  write_file(path(metadata_name(2)), "");
  write_file(path(manifest_name(3)), "short");
  const auto catalogue = Catalogue::read(dir());
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().message();
  ASSERT_EQ(catalogue->intact().size(), 1U);
  EXPECT_EQ(catalogue->intact()[0]->manifest().id, kId);
  EXPECT_EQ(*catalogue->find(kId), catalogue->intact()[0]);
  EXPECT_NE(catalogue->find(2).error().message().find("did not complete"), std::string::npos);
  EXPECT_NE(catalogue->find(3).error().message().find("amdgpu-manifest-3.img: truncated"), std::string::npos)
      << catalogue->find(3).error().message();
  EXPECT_EQ(*catalogue->find(4), nullptr);
}

// Each change makes one value wrong; all must be refused by name.
struct BadValue {
  const char* expected;
  void (*change)(KfdFile&);
};

class Validate : public ::testing::TestWithParam<BadValue> {};

TEST_P(Validate, refuses_a_wrong_value) {
  KfdFile kfd = small_kfd();
  kfd.bos.push_back({{0x1000, 8192, 0, 100, kVram}, {{kPageSize, 1}}});
  ASSERT_TRUE(validate({1, {node(200)}, kfd}, 3 * kPageSize).ok());
  GetParam().change(kfd);
  const auto status = validate({1, {node(200)}, kfd}, 3 * kPageSize);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find(GetParam().expected), std::string::npos) << status.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Values, Validate,
    ::testing::Values(BadValue{"number of devices", [](KfdFile& k) { k.devices.clear(); }},
                      BadValue{"zero or used twice", [](KfdFile& k) { k.devices[0].user_id = 0; }},
                      BadValue{"zero or used twice", [](KfdFile& k) { k.devices.push_back(k.devices[0]); }},
                      BadValue{"stands for two devices",
                               [](KfdFile& k) {
                                 k.devices.push_back({101, 200});
                               }},
                      BadValue{"missing in the recorded topology", [](KfdFile& k) { k.devices[0].actual_id = 9; }},
                      BadValue{"no kernel state", [](KfdFile& k) { k.priv_data.clear(); }},
                      BadValue{"chunk size", [](KfdFile& k) { k.chunk_size = 0; }},
                      BadValue{"chunk size", [](KfdFile& k) { k.chunk_size = 4097; }},
                      BadValue{"address or size", [](KfdFile& k) { k.bos[0].bo.size = 0; }},
                      BadValue{"address or size", [](KfdFile& k) { k.bos[0].bo.addr = ~0ULL - 10; }},
                      BadValue{"unknown device", [](KfdFile& k) { k.bos[0].bo.user_gpu_id = 5; }},
                      BadValue{"has 0 chunks, needs 1", [](KfdFile& k) { k.bos[0].chunks.clear(); }},
                      BadValue{"has 1 chunks, needs 0",
                               [](KfdFile& k) { k.bos[0].bo.alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR; }},
                      BadValue{"outside the pages file", [](KfdFile& k) { k.bos[0].chunks[0].offset = 2 * kPageSize; }},
                      BadValue{"outside the pages file",
                               [](KfdFile& k) { k.bos[0].chunks[0].offset = ~0ULL - kPageSize + 1; }},
                      BadValue{"outside the pages file", [](KfdFile& k) { k.bos[0].chunks[0].offset = 5; }},
                      BadValue{"name of a shared file", [](KfdFile& k) { k.shared_files[0].name = "../etc/passwd"; }},
                      BadValue{"second name", [](KfdFile& k) { k.shared_files[0].links = {"link_remap./../x"}; }},
                      BadValue{"second name", [](KfdFile& k) { k.shared_files[0].links = {"link_remap."}; }},
                      BadValue{"second name", [](KfdFile& k) { k.shared_files[0].links = {"hsakmt_shared_mem"}; }},
                      BadValue{"second names", [](KfdFile& k) { k.shared_files[0].links.assign(65, "link_remap.1"); }},
                      BadValue{"size or mode", [](KfdFile& k) { k.shared_files[0].mode = 04777; }}));

}  // namespace
}  // namespace plugin::image
