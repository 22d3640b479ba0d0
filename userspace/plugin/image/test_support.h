// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: a small dump with a file of each kind, written and read as the plugin does it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "base/unique_fd.h"
#include "plugin/image/catalogue.h"
#include "plugin/image/writer.h"

namespace plugin::image {

inline constexpr std::uint32_t kKfdId = 7;
inline constexpr std::uint32_t kSecondId = 8;
inline constexpr std::uint32_t kInertId = 10;
inline constexpr std::uint32_t kRenderId = 12;
inline constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
inline constexpr std::uint64_t kSession = 0x1122334455667788;

inline topology::Node test_node(std::uint32_t node_id, std::uint32_t gpu_id) {
  topology::Node node;
  node.node_id = node_id;
  node.gpu_id = gpu_id;
  node.properties = {{"simd_count", 240}};
  node.links = {{0, 2}};
  return node;
}

inline Session test_session() {
  Session session;
  session.id = kSession;
  session.abi = Abi::kExtensible;
  session.kernel_release = "6.12.0-test";
  session.nodes = {test_node(0, 0), test_node(1, 200)};
  session.processes = {{42, "train"}, {43, "worker\n"}};
  return session;
}

// Without BOs.
inline KfdFile test_kfd() {
  KfdFile kfd;
  kfd.pid = 42;
  kfd.num_objects = 3;
  kfd.devices = {{100, 200}};
  kfd.priv_data = {std::byte{1}, std::byte{2}, std::byte{3}};
  kfd.shared_files = {{"hsakmt_shared_mem", "shared", 0666, 0, 0, {"link_remap.5"}}};
  return kfd;
}

inline BoRecord test_bo(std::uint64_t size, std::uint32_t flags = kVram) {
  BoRecord record;
  record.bo = {0x1000, size, 0x5000, 100, flags};
  record.handle = 77;
  record.inode = 4711;
  return record;
}

// With one BO for each contents.
inline KfdFile kfd_of(std::uint32_t pid, const std::vector<std::vector<std::byte>>& contents) {
  KfdFile kfd = test_kfd();
  kfd.pid = pid;
  for (const auto& each : contents) {
    BoRecord& record = kfd.bos.emplace_back(test_bo(each.size()));
    record.inode = 0;
    record.handle = static_cast<std::uint32_t>(kfd.bos.size());
    record.bo.addr += kfd.bos.size() << 32;
  }
  return kfd;
}

// Without a zero byte, and with other bytes in each chunk.
inline std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i * 7 + i / 256 + 2 * (i / kChunkSize)) | 1);
  return bytes;
}

class SessionTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(std::string_view name) const { return dir_.path() + "/" + std::string(name); }
  [[nodiscard]] int dir() const { return dir_fd_.get(); }

  // One KFD file with one BO.
  void write_kfd(const std::vector<std::byte>& contents, std::uint64_t session_id = kSession) {
    auto writer = SessionWriter::create(dir(), session_id);
    ASSERT_TRUE(writer.ok()) << writer.error().message();
    KfdFile kfd = test_kfd();
    kfd.bos.push_back(test_bo(contents.size()));
    expect_ok((*writer)->file(kKfdId).append(contents));
    expect_ok((*writer)->add({kKfdId, kfd}));
    expect_ok((*writer)->prepare(test_session()));
    expect_ok((*writer)->commit());
  }

  // A file of each kind; the BOs are contents, zeros, a userptr and an import of the first.
  [[nodiscard]] base::Status write_all_kinds(const std::vector<std::byte>& contents, std::uint64_t session_id) {
    ASSIGN_OR_RETURN(auto writer, SessionWriter::create(dir(), session_id));
    KfdFile kfd = test_kfd();
    kfd.bos = {test_bo(contents.size()), test_bo(kPageSize), test_bo(kPageSize, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR),
               test_bo(contents.size())};
    kfd.bos[1].inode = 0;
    kfd.bos[3].shares_contents = true;
    TRY(writer->file(kKfdId).append(contents));
    TRY(writer->file(kKfdId).append(std::vector<std::byte>(kPageSize)));
    TRY(writer->add({kKfdId, std::move(kfd)}));
    TRY(writer->add({kSecondId, SecondFile{42, 0}}));
    TRY(writer->add({kInertId, InertFile{43, O_NONBLOCK}}));
    TRY(writer->add({kRenderId, RenderFile{200, O_NONBLOCK, Binding::kKfd, 42}}));
    TRY(writer->prepare(test_session()));
    return writer->commit();
  }

  template <typename T>
  static void expect_ok(const base::Result<T>& result) {
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message());
  }

  [[nodiscard]] Catalogue catalogue() const {
    auto catalogue = Catalogue::read(dir());
    EXPECT_TRUE(catalogue.ok());
    return std::move(catalogue).value();
  }

  // Empty when the file loads and its pages file can be opened.
  [[nodiscard]] std::string load_error(std::uint32_t id = kKfdId) const {
    const auto catalogue = Catalogue::read(dir());
    if (!catalogue.ok()) return catalogue.error().message();
    const auto loaded = catalogue->find(id);
    if (!loaded.ok()) return loaded.error().message();
    if (*loaded == nullptr) return "no image";
    if ((*loaded)->kind() != Kind::kKfd) return "";
    const auto contents = open_contents(dir(), **loaded);
    return contents.ok() ? "" : contents.error().message();
  }

  // The contents of BO `bo` of file kKfdId, read in slices of `slice` bytes.
  [[nodiscard]] base::Result<std::vector<std::byte>> load_contents(std::size_t slice = kChunkSize,
                                                                   std::uint32_t id = kKfdId) const {
    ASSIGN_OR_RETURN(const Catalogue catalogue, Catalogue::read(dir()));
    ASSIGN_OR_RETURN(const Loaded* loaded, catalogue.find(id));
    if (loaded == nullptr) return base::Error(ENOENT, "no image");
    ASSIGN_OR_RETURN(const Contents contents, open_contents(dir(), *loaded));
    std::vector<std::byte> bytes(contents.bos()[0].bo.size);
    BoReader reader(contents, 0);
    for (std::size_t at = 0; at < bytes.size(); at += slice)
      TRY(reader.read(std::span(bytes).subspan(at, std::min(slice, bytes.size() - at))));
    return bytes;
  }

  [[nodiscard]] std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
      found[entry.path().filename()] = base::read_file(entry.path());
    return found;
  }

  // The names of the files, sorted.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& [name, bytes] : files()) found.push_back(name);
    return found;
  }

  base::TempDir dir_;
  base::UniqueFd dir_fd_{::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

}  // namespace plugin::image
