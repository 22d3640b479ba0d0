// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A recorded dump of version 1 is read as before, and its damage is found as before.
#include "plugin/image/version_1.h"

#include <gtest/gtest.h>

#include "plugin/image/test_support.h"

namespace plugin::image {
namespace {

using base::read_file;
using base::write_file;
using testing::kVersion1;

constexpr std::uint32_t kFile = 7;
constexpr std::uint32_t kRenderNode = 9;

class Version1Test : public SessionTest {
 protected:
  Version1Test() { testing::write_version_1(dir_.path()); }

  // The chunk of the BO that is not zero.
  [[nodiscard]] base::Result<std::string> load_chunk() const {
    ASSIGN_OR_RETURN(const Catalogue images, Catalogue::read(dir()));
    ASSIGN_OR_RETURN(const Loaded* loaded, images.find(kFile));
    if (loaded == nullptr) return base::Error(ENOENT, "no image");
    ASSIGN_OR_RETURN(const Contents contents, open_contents(dir(), *loaded));
    std::string bytes(testing::kVersion1Chunk, '\0');
    TRY(contents.read_chunk(contents.chunks(0)[1], std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

  [[nodiscard]] static std::vector<std::byte> expected() {
    std::vector<std::byte> bytes(kChunkSize);
    for (const char c : testing::version_1_chunk()) bytes.push_back(static_cast<std::byte>(c));
    return bytes;
  }
};

TEST_F(Version1Test, is_read_back) {
  const Catalogue images = catalogue();
  ASSERT_EQ(images.sessions().size(), 1U);
  const Session& session = *images.sessions()[0];
  EXPECT_EQ(session.id, 11U);
  EXPECT_EQ(session.version, Version::k1);
  EXPECT_EQ(session.abi, Abi::kReleased);
  EXPECT_EQ(session.nodes.size(), 2U);
  EXPECT_EQ(session.nodes[1], test_node(1, 200));
  EXPECT_EQ(session.processes, (std::vector<Process>{{42, ""}}));
  const Loaded& kfd = **images.find(kFile);
  EXPECT_EQ(&kfd.session(), &session);
  EXPECT_EQ(kfd.kfd()->pid, 42U);
  EXPECT_EQ(kfd.kfd()->bos.size(), 2U);
  EXPECT_EQ(kfd.kfd()->bos[0].bo.size, kChunkSize + testing::kVersion1Chunk);
  EXPECT_EQ(kfd.kfd()->priv_data, test_kfd().priv_data);
  EXPECT_EQ(kfd.kfd()->shared_files.at(0).links, std::vector<std::string>{"link_remap.5"});
  const Loaded& render = **images.find(kRenderNode);
  EXPECT_EQ(&render.session(), &session);
  EXPECT_EQ(render.render()->binding, Binding::kKfd);
  EXPECT_EQ(*load_contents(kChunkSize, kFile), expected());
}

TEST_F(Version1Test, without_its_manifest_is_refused_as_incomplete) {
  std::filesystem::remove(path(manifest_name_1(kFile)));
  EXPECT_NE(load_error(kFile).find("did not complete"), std::string::npos) << load_error(kFile);
  EXPECT_EQ(load_error(kRenderNode), "");
}

TEST_F(Version1Test, renamed_to_another_file_is_refused) {
  std::filesystem::rename(path(manifest_name_1(kRenderNode)), path(manifest_name_1(kFile)));
  EXPECT_NE(load_error(kFile).find("belongs to another file"), std::string::npos) << load_error(kFile);
}

TEST_F(Version1Test, flipping_any_byte_gives_an_error_or_the_same_contents) {
  for (const std::string& name : {manifest_name_1(kFile), metadata_name(kFile), pages_name(kFile)}) {
    const std::string good = read_file(path(name));
    const base::UniqueFd file(::open(path(name).c_str(), O_RDWR | O_CLOEXEC));
    for (std::size_t i = 0; i < good.size(); ++i) {
      const char bad = static_cast<char>(good[i] ^ (1 << (i % 8)));
      ASSERT_EQ(::pwrite(file.get(), &bad, 1, static_cast<off_t>(i)), 1);
      const auto result = load_chunk();
      // Only the padding of the pages file is not covered in this version.
      ASSERT_TRUE(!result.ok() || (*result == testing::version_1_chunk() && name == pages_name(kFile)))
          << name << " byte " << i;
      ASSERT_EQ(::pwrite(file.get(), &good[i], 1, static_cast<off_t>(i)), 1);
    }
  }
  EXPECT_EQ(*load_contents(kChunkSize, kFile), expected());
}

TEST_F(Version1Test, truncation_or_extension_is_an_error) {
  for (const std::string& name : {manifest_name_1(kFile), metadata_name(kFile), pages_name(kFile)}) {
    const std::string good = read_file(path(name));
    for (std::size_t length = good.size(); length-- > 0;) {
      std::filesystem::resize_file(path(name), length);
      ASSERT_FALSE(load_chunk().ok()) << name << " length " << length;
    }
    write_file(path(name), good + 'x');
    ASSERT_FALSE(load_chunk().ok()) << name;
    write_file(path(name), good);
  }
}

TEST(ValidateIndex1, refuses_a_chunk_outside_the_pages_file) {
  constexpr std::uint64_t kLength = kPageSize + kChunkSize;
  Index index;
  index.bos = {test_bo(kChunkSize)};
  for (const std::uint64_t good : {std::uint64_t{0}, std::uint64_t{kPageSize}}) {
    index.chunks = {{good, 1, 0}};
    const auto status = validate(index, kLength, Version::k1);
    EXPECT_TRUE(status.ok()) << status.error().message();
  }
  for (const std::uint64_t bad :
       {kPageSize + 1, 2 * kPageSize, kLength, kLength + kPageSize, std::uint64_t{0} - kPageSize}) {
    index.chunks = {{bad, 1, 0}};
    const auto status = validate(index, kLength, Version::k1);
    ASSERT_FALSE(status.ok()) << bad;
    EXPECT_NE(status.error().message().find("outside the pages file"), std::string::npos) << status.error().message();
  }
}

}  // namespace
}  // namespace plugin::image
