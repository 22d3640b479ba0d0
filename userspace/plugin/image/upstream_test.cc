// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Images of CRIU's own amdgpu plugin. Those of the tests named RecordedUpstream were written by that plugin
// (recorded/README); all others were made by upstream_made.h.
#include "plugin/image/upstream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "plugin/image/catalogue.h"
#include "plugin/image/upstream_format.h"
#include "plugin/image/upstream_made.h"
#include "plugin/image/writer.h"
#include "plugin/test_support.h"

namespace plugin::image {
namespace {

using plugin::testing::read_file;
using plugin::testing::TempDir;
using plugin::testing::write_file;
using testing::Age;
using testing::MadeDump;
using testing::Message;
using testing::with_length;

constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
constexpr std::uint32_t kGtt = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
constexpr std::uint32_t kUserptr = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
constexpr std::uint32_t kId = 28;
constexpr std::uint32_t kRenderId = 30;

std::string pattern(std::size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 7 + i / 256 + seed) | 1);
  return bytes;
}

testing::MadeBo bo(std::uint64_t addr, std::uint64_t size, std::uint32_t gpu, std::uint32_t flags) {
  const kfd::Bo bo{addr, size, addr + (1ULL << 40), gpu, flags};
  return {bo, MadeDump::has_contents(bo) ? pattern(size, gpu + static_cast<unsigned>(addr >> 12)) : ""};
}

// One GPU, one page of VRAM: small enough for exhaustive tests.
MadeDump small_dump(Age age = Age::k3_17) {
  MadeDump dump;
  dump.age = age;
  dump.bos = {bo(0x10000, 4096, 100, kVram)};
  return dump;
}

// BOs of two GPUs, mixed, some larger than a chunk, some without contents.
MadeDump large_dump(Age age = Age::k3_17) {
  MadeDump dump;
  dump.age = age;
  dump.gpus = {0x6c05, 0x12345};
  dump.bos = {bo(0x100000, 4096, 0x12345, kVram), bo(0x200000, 8192, 0x6c05, kUserptr),
              bo(0x300000, 3 * kChunkSize + 4096, 0x6c05, kVram), bo(0x900000, 65536, 0x12345, kGtt),
              bo(0xa00000, 4096, 0x6c05, kGtt)};
  return dump;
}

class UpstreamTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  [[nodiscard]] int dir() const { return dir_fd_.get(); }

  void write(const MadeDump& dump, std::uint32_t id = kId) const {
    for (const auto& [name, bytes] : dump.files(id)) write_file(path(name), bytes);
  }
  void write_render(Age age, std::uint32_t gpu, std::uint32_t objects = 0) const {
    write_file(path(upstream::render_name(kRenderId)), MadeDump::render(age, gpu, objects));
  }

  // Empty when the file and its contents can be read to the end.
  [[nodiscard]] std::string error_of(std::uint32_t id = kId) const {
    const auto catalogue = Catalogue::read(dir());
    if (!catalogue.ok()) return catalogue.error().message();
    const auto loaded = catalogue->find(id);
    if (!loaded.ok()) return loaded.error().message();
    if (*loaded == nullptr) return "no image";
    if ((*loaded)->kfd() == nullptr) return "";
    const auto contents = open_contents(dir(), **loaded);
    if (!contents.ok()) return contents.error().message();
    expect_possible(*(*loaded)->kfd());
    const auto status = contents->verify();
    return status.ok() ? "" : status.error().message();
  }
  // What must hold for every image that is accepted.
  static void expect_possible(const KfdFile& kfd) {
    for (const BoRecord& record : kfd.bos) {
      EXPECT_NE(record.bo.size, 0U);
      EXPECT_EQ(record.bo.size % kPageSize, 0U);
      EXPECT_GE(record.bo.addr + record.bo.size, record.bo.addr);
    }
  }

  [[nodiscard]] std::vector<std::string> contents_of(const Loaded& loaded) const {
    std::vector<std::string> all;
    const auto contents = open_contents(dir(), loaded);
    EXPECT_TRUE(contents.ok()) << contents.error().message();
    if (!contents.ok()) return all;
    for (std::size_t i = 0; i < loaded.kfd()->bos.size(); ++i) {
      const BoRecord& record = loaded.kfd()->bos[i];
      std::string bytes(stores_contents(record) ? record.bo.size : 0, '\0');
      BoReader reader(*contents, i);
      EXPECT_TRUE(reader.read(std::as_writable_bytes(std::span(bytes))).ok());
      all.push_back(std::move(bytes));
    }
    return all;
  }

  void expect_error(const std::string& text, std::uint32_t id = kId) const {
    const std::string error = error_of(id);
    EXPECT_NE(error.find(text), std::string::npos) << "is: " << (error.empty() ? "accepted" : error);
  }

  TempDir dir_;
  base::UniqueFd dir_fd_{::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

// ---- what is accepted ----

class UpstreamVersions : public UpstreamTest, public ::testing::WithParamInterface<Age> {};
INSTANTIATE_TEST_SUITE_P(Ages, UpstreamVersions, ::testing::Values(Age::k3_17, Age::kCriuDev));

TEST_P(UpstreamVersions, an_image_is_read_with_all_contents) {
  const MadeDump dump = large_dump(GetParam());
  write(dump);
  write_render(GetParam(), 0x6c05);
  ASSERT_EQ(error_of(), "");
  ASSERT_EQ(error_of(kRenderId), "");
  const auto catalogue = Catalogue::read(dir());
  const Loaded& loaded = **catalogue->find(kId);
  const KfdFile& kfd = *loaded.kfd();
  EXPECT_EQ(kfd.pid, 42U);
  EXPECT_EQ(kfd.num_objects, 3U);
  EXPECT_EQ(kfd.priv_data.size(), dump.priv_data.size());
  ASSERT_EQ(kfd.devices.size(), 2U);
  for (const kfd::Device& device : kfd.devices) EXPECT_EQ(device.user_id, device.actual_id);
  ASSERT_EQ(kfd.bos.size(), dump.bos.size());
  const auto contents = contents_of(loaded);
  for (std::size_t i = 0; i < dump.bos.size(); ++i) {
    EXPECT_EQ(kfd.bos[i].bo.addr, dump.bos[i].bo.addr);
    EXPECT_EQ(kfd.bos[i].bo.mmap_offset, dump.bos[i].bo.mmap_offset);
    EXPECT_EQ(contents[i], dump.bos[i].contents) << "BO " << i;
  }
  const RenderFile& render = *(*catalogue->find(kRenderId))->render();
  EXPECT_EQ(render.gpu_id, 0x6c05U);
  EXPECT_EQ(render.binding, Binding::kUnknown);
  EXPECT_EQ(render.owner, 42U);
}

TEST_F(UpstreamTest, both_files_are_of_one_session_that_says_where_it_is_from) {
  write(large_dump());
  write_render(Age::k3_17, 0x6c05);
  const auto catalogue = Catalogue::read(dir());
  ASSERT_EQ(catalogue->sessions().size(), 1U);
  const Session& session = *catalogue->sessions()[0];
  EXPECT_EQ(session.version, Version::kUpstream);
  EXPECT_EQ(session.abi, Abi::kReleased);
  EXPECT_EQ(catalogue->files_of(session).size(), 2U);
  const topology::Node* gpu = nullptr;
  for (const topology::Node& node : session.nodes)
    if (node.gpu_id == 0x6c05) gpu = &node;
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->property("simd_count"), 240U);
  EXPECT_EQ(gpu->property("vram_size"), 1U << 30U);
  EXPECT_EQ(gpu->property("vram_public"), 1U << 30U);
  EXPECT_EQ(gpu->links, (std::vector<topology::Link>{{0, 2}}));
  // Their plugin always writes 0, which no GPU has: it must not be compared.
  EXPECT_FALSE(gpu->properties.contains("gds_size_in_kb"));
  EXPECT_FALSE(gpu->properties.contains("gfx_target_version"));
}

TEST_F(UpstreamTest, nodes_of_gpus_that_the_program_could_not_see_are_left_out) {
  MadeDump dump = small_dump();
  dump.invisible_gpus = 3;
  write(dump);
  ASSERT_EQ(error_of(), "");
  EXPECT_EQ(Catalogue::read(dir())->sessions()[0]->nodes.size(), 2U);
}

TEST_F(UpstreamTest, what_an_older_and_longer_image_left_behind_the_end_is_ignored) {
  write(large_dump());
  for (const auto& [name, bytes] : large_dump().files(kId)) write_file(path(name), bytes + "left over");
  EXPECT_EQ(error_of(), "");
}

TEST_F(UpstreamTest, a_gpu_without_contents_needs_no_pages_file) {
  MadeDump dump = small_dump();
  dump.bos = {bo(0x10000, 4096, 100, kUserptr)};
  write(dump);
  std::filesystem::remove(path(upstream::pages_name(kId, 100)));
  EXPECT_EQ(error_of(), "");
}

TEST_F(UpstreamTest, files_of_libhsakmt_have_the_modes_and_names_that_criu_knows) {
  write(small_dump());
  const auto regular = [](const std::string& name, std::uint64_t size, std::uint32_t mode) {
    Message file;
    file.number(1, 21).number(2, 0).number(3, 0).bytes(6, name);
    if (size != 0) file.number(8, size).number(10, mode);
    const std::string text = Message().number(1, 1).number(2, 21).message(3, file).text();
    std::string length(4, '\0');
    length[0] = static_cast<char>(text.size());
    return length + text;
  };
  const std::string head = "\x19\x43\x56\x54\x38\x31\x30\x56";
  write_file(path("files.img"), head + regular("/dev/shm/hsakmt_shared_mem", 8, 0100644) +
                                    regular("/dev/shm/sem.txooa3", 32, 0100600) +
                                    regular("/dev/shm/link_remap.24", 0, 0) + regular("/etc/passwd", 8, 0100644));
  const auto catalogue = Catalogue::read(dir());
  const auto& files = (*catalogue->find(kId))->kfd()->shared_files;
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "hsakmt_shared_mem");
  EXPECT_EQ(files[0].contents, std::string("HSAT\0\0\0\0", 8));
  EXPECT_EQ(files[0].mode, 0644U);
  EXPECT_EQ(files[1].name, "sem.hsakmt_semaphore");
  EXPECT_EQ(files[1].mode, 0600U);
  EXPECT_EQ(files[1].links, std::vector<std::string>{"link_remap.24"});
  // Two names: either may be the semaphore's.
  write_file(path("files.img"),
             head + regular("/dev/shm/link_remap.24", 0, 0) + regular("/dev/shm/link_remap.25", 0, 0));
  EXPECT_TRUE((*Catalogue::read(dir())->find(kId))->kfd()->shared_files[1].links.empty());
}

TEST_F(UpstreamTest, mount_points_in_the_dump_mean_that_it_had_its_own_mount_namespace) {
  write(small_dump());
  EXPECT_FALSE((*Catalogue::read(dir())->find(kId))->kfd()->own_mount_namespace);
  write_file(path("mountpoints-12.img"), "");
  EXPECT_TRUE((*Catalogue::read(dir())->find(kId))->kfd()->own_mount_namespace);
}

TEST_F(UpstreamTest, a_dump_of_ours_in_the_directory_comes_first) {
  write(small_dump());
  auto writer = SessionWriter::create(dir(), 7);
  ASSERT_TRUE(writer.ok());
  topology::Node gpu;
  gpu.node_id = 1;
  gpu.gpu_id = 100;
  ASSERT_TRUE((*writer)->add({kRenderId, RenderFile{100}}).ok());
  Session session;
  session.nodes = {gpu};
  ASSERT_TRUE((*writer)->prepare(session).ok());
  ASSERT_TRUE((*writer)->commit().ok());
  write(small_dump());  // in case ours removed it
  EXPECT_EQ(error_of(kId), "no image");
  EXPECT_EQ(error_of(kRenderId), "");
}

TEST_F(UpstreamTest, an_older_image_does_not_stand_in_for_a_damaged_dump_of_ours) {
  write(small_dump());
  write_render(Age::k3_17, 100);
  ASSERT_EQ(error_of(kRenderId), "");
  write_file(path(metadata_name(kRenderId)), "damaged");
  EXPECT_NE(error_of(kRenderId), "");
  EXPECT_EQ(error_of(kId), "no image");
}

// ---- what was recorded ----

// Writes the files of a recorded image (recorded/README); contents of GPU memory are made, as long as was recorded.
void write_recorded(const std::string& name, const std::string& folder) {
  std::istringstream lines(read_file(std::string(RECORDED_DIR) + "/" + name));
  std::map<std::string, std::string> files;
  std::string* file = nullptr;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first.empty() || first == "#") continue;
    if (first == "file") {
      std::size_t size = 0;
      words >> first >> size;
      file = &(files[first] = std::string(size, '\0'));
      continue;
    }
    std::size_t count = 0;
    std::string hex;
    words >> count >> hex;
    ASSERT_NE(file, nullptr) << line;
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
      bytes += static_cast<char>(std::stoul(hex.substr(i, 2), nullptr, 16));
    for (std::size_t i = 0, at = std::stoul(first, nullptr, 16); i < count; ++i, at += bytes.size())
      file->replace(at, bytes.size(), bytes);
  }
  for (auto& [file_name, bytes] : files) {
    if (file_name.starts_with("amdgpu-pages-")) {
      std::uint64_t length = 0;
      std::memcpy(&length, bytes.data(), sizeof(length));
      bytes += pattern(length, 1);
    }
    write_file(folder + "/" + file_name, bytes);
  }
}

struct Recorded {
  const char* name;
  std::size_t gpus;
  std::size_t bos;
  std::uint64_t contents;
};

class RecordedUpstream : public UpstreamTest, public ::testing::WithParamInterface<Recorded> {};
INSTANTIATE_TEST_SUITE_P(Files, RecordedUpstream,
                         ::testing::Values(Recorded{"trixie.txt", 1, 18, 12779520},
                                           Recorded{"sid.txt", 2, 26, 13901824}));

TEST_P(RecordedUpstream, an_image_is_read) {
  write_recorded(GetParam().name, dir_.path());
  const auto catalogue = Catalogue::read(dir());
  ASSERT_TRUE(catalogue.ok());
  ASSERT_TRUE(catalogue->damaged().empty()) << catalogue->damaged()[0].error.message();
  ASSERT_EQ(catalogue->sessions().size(), 1U);
  std::size_t render_nodes = 0;
  for (const Loaded* loaded : catalogue->intact()) {
    if (loaded->kind() == Kind::kRender) {
      ++render_nodes;
      continue;
    }
    const KfdFile& kfd = *loaded->kfd();
    EXPECT_EQ(kfd.pid, 20001U);
    EXPECT_EQ(kfd.devices.size(), GetParam().gpus);
    EXPECT_EQ(kfd.bos.size(), GetParam().bos);
    EXPECT_GT(kfd.num_objects, 0U);
    EXPECT_GT(kfd.priv_data.size(), 10000U);
    ASSERT_EQ(kfd.shared_files.size(), 2U);
    EXPECT_EQ(kfd.shared_files[0].contents, std::string("HSAT\0\0\0\0", 8));
    std::uint64_t contents = 0;
    for (const std::string& bytes : contents_of(*loaded)) contents += bytes.size();
    EXPECT_EQ(contents, GetParam().contents);
  }
  EXPECT_EQ(render_nodes, GetParam().gpus);
  for (const topology::Node& node : catalogue->sessions()[0]->nodes) {
    if (node.gpu_id == 0) continue;
    EXPECT_EQ(node.property("simd_count"), 240U);
    EXPECT_EQ(node.property("num_sdma_engines"), 2U);
    EXPECT_GE(node.property("vram_size"), 64U << 20U);
  }
}

TEST_P(RecordedUpstream, flipping_any_byte_of_the_numbers_never_crashes) {
  write_recorded(GetParam().name, dir_.path());
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    if (!entry.path().filename().string().starts_with("amdgpu-kfd-")) continue;
    const std::string good = read_file(entry.path());
    // Behind the numbers is what the kernel wrote, which only the kernel can check.
    for (std::size_t i = 0; i < std::min<std::size_t>(good.size(), 2048); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      auto kfd = upstream::decode_kfd(std::as_bytes(std::span(bad)).subspan(upstream::kLengthSize));
      if (!kfd.ok()) continue;
      for (const upstream::Bo& each : kfd->bos) {
        EXPECT_NE(each.bo.size, 0U);
        EXPECT_TRUE(kfd->contents.contains(each.bo.user_gpu_id));
      }
    }
  }
}

// ---- what is refused ----

TEST_F(UpstreamTest, numbers_that_do_not_agree_are_refused_by_name) {
  struct Case {
    const char* expected;
    std::function<void(MadeDump&)> change;
  };
  const std::vector<Case> cases = {
      {"says 3", [](MadeDump& d) { d.missing_gpus = 1; }},
      {"says 3", [](MadeDump& d) { d.missing_cpus = 1; }},
      {"has 1 BOs, says 2", [](MadeDump& d) { d.missing_bos = 1; }},
      {"has 1 GPUs, says 2", [](MadeDump& d) { d.missing_gpus = 1, d.missing_cpus = -1; }},
      {"has 0 GPUs", [](MadeDump& d) { d.gpus.clear(), d.bos.clear(); }},
      {"GPU 100 twice",
       [](MadeDump& d) {
         d.gpus = {100, 100};
       }},
      {"no kernel state", [](MadeDump& d) { d.priv_data.clear(); }},
      {"no process id", [](MadeDump& d) { d.pid = 0; }},
      {"size of libhsakmt's shared memory", [](MadeDump& d) { d.shared_size = 1U << 20U; }},
      {"BO 0: invalid image: impossible address or size", [](MadeDump& d) { d.bos[0].bo.size = 0; }},
      {"BO 0: invalid image: impossible address or size", [](MadeDump& d) { d.bos[0].bo.size = 4095; }},
      {"BO 0: invalid image: impossible address or size", [](MadeDump& d) { d.bos[0].bo.size = 1ULL << 48; }},
      {"BO 0: invalid image: impossible address or size", [](MadeDump& d) { d.bos[0].bo.addr = ~0ULL - 4095; }},
      {"BO 0: invalid image: impossible address or size", [](MadeDump& d) { d.bos[0].bo.addr = 1; }},
      {"BO 0: invalid image: belongs to an unknown GPU", [](MadeDump& d) { d.bos[0].bo.user_gpu_id = 5; }},
      {"has contents of 4096 bytes, the BOs have 8192", [](MadeDump& d) { d.bos[0].bo.size = 8192; }},
      {"has contents of 8192 bytes, the BOs have 4096", [](MadeDump& d) { d.bos[0].contents += pattern(4096, 1); }},
      {"larger than", [](MadeDump& d) { d.priv_data.resize(upstream::kMaxMessage); }},
  };
  for (const Case& each : cases) {
    MadeDump dump = small_dump();
    each.change(dump);
    write(dump);
    expect_error(each.expected);
  }
  write(small_dump());
  EXPECT_EQ(error_of(), "");
}

TEST_F(UpstreamTest, a_missing_number_is_refused) {
  // Fields 1 to 10 of the message, one left out at a time. 8 and 9 say nothing that a restore needs.
  const std::string full = small_dump().kfd().text();
  for (const unsigned field : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 10U}) {
    std::string text = full;
    std::string less;
    while (!text.empty()) {
      const auto tag = static_cast<unsigned char>(text[0]);
      std::size_t end = 1;
      std::size_t length = 0;
      for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(text[end++]);
        length |= static_cast<std::size_t>(byte & 0x7fU) << shift;
        if (byte < 0x80) break;
      }
      if ((tag & 7U) == 2) end += length;
      if (tag >> 3U != field) less += text.substr(0, end);
      text.erase(0, end);
    }
    ASSERT_LT(less.size(), full.size());
    write(small_dump());
    write_file(path(upstream::kfd_name(kId)), with_length(less));
    EXPECT_NE(error_of(), "") << "field " << field;
  }
}

TEST_F(UpstreamTest, messages_without_end_are_refused_before_they_take_memory) {
  // Two bytes each, of which protobuf makes a hundred.
  for (const unsigned field : {4U, 6U}) {
    const std::string empty = Message().message(field, {}).text();
    std::string bomb;
    for (std::size_t i = 0; i < (8U << 20U); ++i) bomb += empty;
    write_file(path(upstream::kfd_name(kId)), with_length(bomb));
    rusage before{};
    rusage after{};
    (void)::getrusage(RUSAGE_SELF, &before);
    expect_error("can have");
    (void)::getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 256 << 10) << "KiB";
  }
  Message device;
  for (std::size_t i = 0; i < upstream::kMaxLinks + 1; ++i) device.message(32, {});
  write_file(path(upstream::kfd_name(kId)), with_length(Message().message(4, device).text()));
  expect_error("can have");
}

TEST_F(UpstreamTest, a_render_node_with_gem_objects_is_refused) {
  write(small_dump(Age::kCriuDev));
  write_render(Age::kCriuDev, 100, 2);
  expect_error("has 2 GEM objects", kRenderId);
}

TEST_F(UpstreamTest, a_render_node_of_no_known_gpu_is_refused) {
  write(small_dump());
  write_render(Age::k3_17, 101);
  expect_error("describes its GPU 101", kRenderId);
}

TEST_F(UpstreamTest, a_dmabuf_is_refused) {
  write(small_dump(Age::kCriuDev));
  write_file(path(upstream::dmabuf_name(31)), with_length(Message().number(1, 5).text()));
  expect_error("a DMA-buf", 31);
  EXPECT_EQ(error_of(), "");
}

TEST_F(UpstreamTest, a_missing_pages_file_says_what_may_have_happened) {
  write(small_dump());
  std::filesystem::rename(path(upstream::pages_name(kId, 100)), path(upstream::pages_name(kId, 101)));
  expect_error("amdgpu-pages-28-0064.img is missing");
  expect_error("had been restored before");
}

TEST_F(UpstreamTest, images_of_two_machines_are_two_sessions) {
  write(small_dump());
  MadeDump other = small_dump();
  other.gpus = {100, 101};
  write(other, 5);
  EXPECT_EQ(Catalogue::read(dir())->sessions().size(), 2U);
  EXPECT_EQ(error_of(kId), "");
  EXPECT_EQ(error_of(5), "");
  write_render(Age::k3_17, 100);
  expect_error("two dumps of different machines", kRenderId);
  write_render(Age::k3_17, 101);
  EXPECT_EQ(error_of(kRenderId), "");
}

TEST_F(UpstreamTest, a_symbolic_link_is_refused_and_a_pipe_does_not_hang) {
  write(small_dump());
  const std::string name = path(upstream::kfd_name(kId));
  std::filesystem::rename(name, path("elsewhere"));
  std::filesystem::create_symlink("elsewhere", name);
  EXPECT_NE(error_of(), "");
  std::filesystem::remove(name);
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  expect_error("not a regular file");
}

TEST_F(UpstreamTest, a_pages_file_that_changes_after_it_was_checked_is_refused) {
  write(small_dump());
  const auto catalogue = Catalogue::read(dir());
  MadeDump other = small_dump();
  other.bos[0].contents += other.bos[0].contents;
  write(other);
  const auto contents = open_contents(dir(), **catalogue->find(kId));
  ASSERT_FALSE(contents.ok());
  EXPECT_NE(contents.error().message().find("the BOs have 4096"), std::string::npos) << contents.error().message();
}

// ---- damage everywhere ----

TEST_F(UpstreamTest, flipping_any_bit_never_crashes_and_never_gives_an_impossible_size) {
  write(small_dump());
  write_render(Age::k3_17, 100);
  std::size_t refused = 0;
  for (const std::string& name :
       {upstream::kfd_name(kId), upstream::render_name(kRenderId), upstream::pages_name(kId, 100)}) {
    const std::string good = read_file(path(name));
    const base::UniqueFd file(::open(path(name).c_str(), O_RDWR | O_CLOEXEC));
    // The contents are left alone but for their first bytes, because nothing checks them.
    const std::size_t length = std::min<std::size_t>(good.size(), name == upstream::kfd_name(kId) ? good.size() : 16);
    for (std::size_t i = 0; i < length * 8; ++i) {
      const char bad = static_cast<char>(good[i / 8] ^ (1 << (i % 8)));
      ASSERT_EQ(::pwrite(file.get(), &bad, 1, static_cast<off_t>(i / 8)), 1);
      const bool accepted = error_of(kId).empty() && error_of(kRenderId).empty();
      // The length of a pages file must be right; the others may hide bytes behind their end.
      if (name == upstream::pages_name(kId, 100) && i < 64) {
        EXPECT_FALSE(accepted) << "bit " << i;
      }
      refused += accepted ? 0 : 1;
      ASSERT_EQ(::pwrite(file.get(), &good[i / 8], 1, static_cast<off_t>(i / 8)), 1);
    }
  }
  EXPECT_GT(refused, 500U);
  EXPECT_EQ(error_of(), "");
}

TEST_F(UpstreamTest, truncation_at_any_length_is_refused) {
  for (const std::string& name :
       {upstream::kfd_name(kId), upstream::render_name(kRenderId), upstream::pages_name(kId, 100)}) {
    write(small_dump());
    write_render(Age::k3_17, 100);
    for (auto length = std::filesystem::file_size(path(name)); length-- > 0;) {
      std::filesystem::resize_file(path(name), length);
      ASSERT_FALSE(error_of(kId).empty() && error_of(kRenderId).empty()) << name << " length " << length;
    }
  }
}

TEST_F(UpstreamTest, truncation_of_the_message_with_a_length_that_fits_is_refused) {
  const std::string full = small_dump().kfd().text();
  write(small_dump());
  for (std::size_t length = 0; length < full.size(); ++length) {
    write_file(path(upstream::kfd_name(kId)), with_length(full.substr(0, length)));
    ASSERT_NE(error_of(), "") << "length " << length;
  }
}

TEST(UpstreamNames, are_those_of_their_files_and_no_others) {
  using upstream::NameKind;
  using upstream::parse_name;
  EXPECT_EQ(parse_name("amdgpu-kfd-28.img")->id, 28U);
  EXPECT_EQ(parse_name("amdgpu-renderD-30.img")->kind, NameKind::kRender);
  EXPECT_EQ(parse_name("amdgpu-dmabuf_3.img")->kind, NameKind::kDmabuf);
  EXPECT_EQ(parse_name("amdgpu-pages-28-6c05.img")->kind, NameKind::kPages);
  for (const char* name : {"amdgpu-pages-28.img", "amdgpu-28.img", "amdgpu-manifest.img", "amdgpu-kfd-.img",
                           "amdgpu-kfd--1.img", "amdgpu-kfd-4294967295.img", "amdgpu-kfd-1.img.tmp",
                           "amdgpu-pages-28-.img", "amdgpu-pages-28-6C05.img", "amdgpu-kfd-1", "", "kfd-1.img"})
    EXPECT_FALSE(parse_name(name).has_value()) << name;
  EXPECT_EQ(upstream::pages_name(28, 0xab), "amdgpu-pages-28-00ab.img");
  EXPECT_EQ(upstream::pages_name(28, 0x12345), "amdgpu-pages-28-12345.img");
}

}  // namespace
}  // namespace plugin::image
