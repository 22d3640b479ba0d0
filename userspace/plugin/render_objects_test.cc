// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Objects of render nodes from the dump to the restore, over a fake driver: what comes back, what is refused by name,
// and each call that can fail.
#include "plugin/render_objects.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/os_failing.h"
#include "kfd/fake_kfd.h"
#include "plugin/dump.h"
#include "plugin/fake_render_driver.h"
#include "plugin/image/catalogue.h"
#include "plugin/render_holders.h"
#include "plugin/restore.h"
#include "plugin/test_program.h"
#include "plugin/test_support.h"

namespace plugin {
namespace {

using base::UniqueFd;
using image::GemMapping;
using testing::FakeCriu;
using testing::FakeCriuImages;
using testing::FakeMachine;
using testing::FakeRenderDriver;
using testing::MappingModel;
using testing::open_descriptors;
using testing::TempDir;
using testing::TestProgram;
using testing::write_file;

constexpr std::uint32_t kRenderId = 9;
constexpr std::uint32_t kPid = 77;
constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kOtherGpu = 0x2222;
constexpr std::uint64_t kSize = 20 * 4096;
constexpr std::uint64_t kAddress = 0x200000000;
constexpr std::uint32_t kHandle = 0x7ffffffe;
constexpr std::uint32_t kSmallHandle = 7;
constexpr std::uint64_t kOwnReferences = render_objects::kOwnReferences;
constexpr pid_t kOutside = 5000000;  // no process has it
constexpr const char* kFdinfo = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t17\ndrm-pdev:\t0000:03:00.0\n";

std::vector<std::byte> pattern(std::size_t seed) {
  std::vector<std::byte> bytes(kSize);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i / 7 + seed);
  return bytes;
}

ino_t inode_of(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
}

// Descriptor 5 of a process that nobody traces.
void show_outside(const std::string& proc, pid_t pid, const std::string& link, const std::string& fdinfo) {
  const std::string process = proc + "/" + std::to_string(pid);
  write_file(process + "/status", "TracerPid:\t0\nNSpid:\t" + std::to_string(pid) + "\n");
  write_file(process + "/comm", "launcher\n");
  write_file(process + "/fdinfo/5", fdinfo);
  std::filesystem::create_directories(process + "/fd");
  std::filesystem::create_symlink(link, process + "/fd/5");
}

// The fakes of one machine; dump and restore use different ones.
struct Fakes {
  explicit Fakes(const std::string& images) : criu(images) {
    services.render.driver = driver;
    services.options.fence_timeout = std::chrono::seconds(0);
    services.find_render_client = [](int) -> base::Result<std::optional<render_holders::Client>> {
      return render_holders::parse_client(kFdinfo);
    };
    write_file(machine.root() + "/proc/sys/kernel/osrelease", "6.12.0\n");
  }

  FakeMachine machine;
  FakeCriu criu;
  System system{machine.roots()};
  kfd::FakeKfd kfd;
  std::shared_ptr<FakeRenderDriver> driver = std::make_shared<FakeRenderDriver>();
  Services services{
      criu,
      system,
      kfd,
      [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{},
      {},
      [](int) -> base::Result<std::uint64_t> { return std::uint64_t{kOwnReferences}; }};
};

class RenderObjectsTest : public ::testing::Test {
 protected:
  RenderObjectsTest() {
    source_.machine.add_gpu(1, kGpu, 128);
    target_.machine.add_gpu(1, kOtherGpu, 128);
    target_.criu.task = kPid;
    FakeRenderDriver::File& file = source_.driver->file(file_.get());
    source_.driver->add(file_.get(), {kHandle, kSize, image::kGemVram, 1, 65536, false}, pattern(1)).mappings = {
        {kAddress, 4096, 4096, 6}, {kAddress + kSize, kSize, 0, 14}};
    source_.driver->add(file_.get(), {kSmallHandle, 4096, 2, 0, 4096, false}, {}).metadata = {
        1, 2, std::vector<std::byte>(8, std::byte{3})};
    file.sparse = {{kAddress + 8 * kSize, 65536, 0, image::kSparseFlags}};
    file.contexts = {{4095, {4095, 512}}, {1, {1, 0}}};
    file.contexts.at(4095).sequence = 1ULL << 40;
    file.bo_lists = {{5, kHandle, 3, false}, {5, kSmallHandle, 0, false}, {6, 0, 0, true}};
    file.syncobjs = {{1, {1}}, {2, {2}}, {900, {900}}};
    file.states = {{1, image::Syncobj{1, image::SyncobjState::kEmpty, 0}},
                   {2, image::Syncobj{2, image::SyncobjState::kSignaled, 0}},
                   {900, image::Syncobj{900, image::SyncobjState::kTimeline, 12}}};
  }

  FakeRenderDriver::File& objects() { return source_.driver->file(file_.get()); }

  base::Status dump(const std::string& maps = {}) {
    const TestProgram program(source_.machine, kPid, {file_.get()}, maps);
    if (has_user_memory_) objects().gem.at(kSmallHandle).user.pid = program.pid();
    Dump dump(source_.services, 5);
    const auto claim = dump.dump_file(file_.get(), kRenderId);
    const Dump::End end = dump.finish(claim.ok() ? 0 : 1);
    if (!claim.ok()) return claim.error();
    if (!end.errors.empty()) return end.errors.front();
    EXPECT_EQ(*claim, Claim::kMine);
    EXPECT_TRUE(end.committed);
    return {};
  }

  void expect_refused(const std::vector<std::string>& words) {
    const auto descriptors = open_descriptors();
    const auto status = dump();
    ASSERT_FALSE(status.ok());
    for (const std::string& word : words)
      EXPECT_NE(status.error().message().find(word), std::string::npos) << status.error().message();
    EXPECT_TRUE(std::filesystem::is_empty(images_.path()));
    EXPECT_EQ(open_descriptors(), descriptors);
  }

  // What the dump has warned of; there is room enough, which is an empty warning.
  [[nodiscard]] std::vector<std::string> warnings() const {
    std::vector<std::string> said = source_.criu.warnings;
    std::erase(said, "");
    return said;
  }

  void write_criu_images(int number) {
    FakeCriuImages images;
    images.tasks[kPid] = {0, {kPid}, {{number, kRenderId}}, {}};
    images.write(images_.path());
  }

  base::Result<UniqueFd> restore_file() {
    restore_.emplace(target_.services);
    ASSIGN_OR_RETURN(const std::optional<int> fd, restore_->restore_file(kRenderId));
    if (!fd) return base::Error(ENOENT, "not ours");
    return UniqueFd(*fd);
  }

  TempDir images_;
  Fakes source_{images_.path()};
  Fakes target_{images_.path()};
  std::optional<Restore> restore_;
  // The user memory of kSmallHandle is that of the dumped program.
  bool has_user_memory_ = false;
  UniqueFd file_{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
};

void expect_ok(const base::Status& status) { ASSERT_TRUE(status.ok()) << status.error().message(); }

TEST_F(RenderObjectsTest, all_come_back_on_another_gpu_with_their_numbers) {
  expect_ok(dump());
  write_criu_images(200);
  const auto fd = restore_file();
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const FakeRenderDriver::File& before = objects();
  const FakeRenderDriver::File& after = target_.driver->file(fd->get());
  ASSERT_EQ(after.gem.size(), 2U);
  for (const std::uint32_t handle : {kHandle, kSmallHandle}) {
    const auto& was = before.gem.at(handle);
    const auto& is = after.gem.at(handle);
    EXPECT_EQ(is.listed.size, was.listed.size);
    EXPECT_EQ(is.listed.domains, was.listed.domains);
    EXPECT_EQ(is.listed.flags, was.listed.flags);
    EXPECT_EQ(is.listed.alignment, was.listed.alignment);
    EXPECT_EQ(is.mappings, was.mappings);
    EXPECT_EQ(is.metadata.flags, was.metadata.flags);
    EXPECT_EQ(is.metadata.tiling, was.metadata.tiling);
    EXPECT_EQ(is.metadata.bytes, was.metadata.bytes);
    EXPECT_EQ(FakeRenderDriver::contents(is), FakeRenderDriver::contents(was));
  }
  ASSERT_EQ(after.contexts.size(), 2U);
  EXPECT_EQ(after.contexts.at(4095).priority, 512);
  EXPECT_EQ(after.contexts.at(4095).sequence, 1ULL << 40);
  EXPECT_EQ(after.sparse, before.sparse);
  ASSERT_EQ(after.bo_lists.size(), 3U);
  EXPECT_EQ(after.bo_lists[0].handle, kHandle);
  EXPECT_EQ(after.bo_lists[0].priority, 3U);
  EXPECT_TRUE(after.bo_lists[2].is_empty);
  EXPECT_EQ(after.states, before.states);
}

// CRIU before 3.19 duplicates what it is answered, later ones take it.
TEST_F(RenderObjectsTest, a_mapping_is_found_at_the_new_offset_through_the_programs_own_file) {
  const std::uint64_t offset = *objects().gem.at(kHandle).mmap_offset;
  std::ostringstream maps;
  maps << "7f000000-7f001000 rw-s " << std::hex << offset + 4096 << " 00:05 5 /dev/dri/renderD128\n";
  expect_ok(dump(maps.str()));
  target_.driver->next_offset = 0x900000000;
  for (const bool takes_fd : {false, true}) {
    target_.criu.new_rule = takes_fd;
    constexpr int kNumber = 210;
    write_criu_images(kNumber);
    auto fd = restore_file();
    ASSERT_TRUE(fd.ok()) << fd.error().message();
    const UniqueFd own(::fcntl(fd->get(), F_DUPFD_CLOEXEC, kNumber));
    ASSERT_EQ(own.get(), kNumber);
    const auto answer = restore_->update_vma("/dev/dri/renderD128", 0x7f000000, offset + 4096);
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ((*answer)->offset, *target_.driver->file(fd->get()).gem.at(kHandle).mmap_offset + 4096);
    EXPECT_EQ((*answer)->fd == kNumber, !takes_fd);
    EXPECT_TRUE(testing::same_open_file((*answer)->fd, kNumber));
    if (takes_fd) ::close((*answer)->fd);
  }
}

// A program with mappings of two open files of one render node.
class TwoFilesTest : public RenderObjectsTest {
 protected:
  static constexpr std::uint32_t kSecondId = 10;
  static constexpr int kNumber = 210;
  static constexpr std::uint64_t kStart = 0x7f000000;

  TwoFilesTest() {
    source_.driver->add(second_.get(), {kHandle, kSize, image::kGemVram, 1, 4096, false}, pattern(2));
    target_.driver->next_offset = 0x900000000;
  }

  [[nodiscard]] std::uint64_t offset_in(const UniqueFd& file, std::uint64_t distance) {
    return *source_.driver->file(file.get()).gem.at(kHandle).mmap_offset + distance;
  }

  // The `index`-th page of the program, which is of the file that CRIU calls `file_id`.
  static FakeCriuImages::Vma vma(std::uint64_t index, std::uint64_t offset, std::uint32_t file_id) {
    FakeCriuImages::Vma result;
    result.start = kStart + index * 4096;
    result.offset = offset;
    result.file_id = file_id;
    result.status |= FakeCriuImages::kFileShared | FakeCriuImages::kPlugin;
    result.path = "/dev/dri/renderD128";
    return result;
  }

  // Until CRIU asks for mappings.
  void dump_and_restore(const std::vector<FakeCriuImages::Vma>& vmas) {
    std::ostringstream maps;
    for (const auto& each : vmas)
      maps << std::hex << each.start << "-" << each.start + 4096 << " rw-s " << each.offset << " 00:05 5 " << each.path
           << "\n";
    const TestProgram program(source_.machine, kPid, {file_.get(), second_.get()}, maps.str());
    Dump dump(source_.services, 5);
    for (const auto& [fd, id] : {std::pair{file_.get(), kRenderId}, std::pair{second_.get(), kSecondId}}) {
      const auto claim = dump.dump_file(fd, id);
      ASSERT_TRUE(claim.ok()) << claim.error().message();
    }
    EXPECT_TRUE(dump.finish(0).committed);
    FakeCriuImages images;
    images.tasks[kPid] = {0, {kPid}, {{kNumber, kRenderId}, {kNumber + 1, kSecondId}}, vmas};
    images.write(images_.path());
    restore_.emplace(target_.services);
    for (const std::uint32_t id : {kRenderId, kSecondId}) {
      const auto fd = restore_->restore_file(id);
      ASSERT_TRUE(fd.ok()) << fd.error().message();
      ASSERT_TRUE(fd->has_value());
      const UniqueFd opened(**fd);
      own_.emplace_back(::fcntl(opened.get(), F_DUPFD_CLOEXEC, kNumber));
    }
    ASSERT_EQ(own_.front().get(), kNumber);
    ASSERT_EQ(own_.back().get(), kNumber + 1);
  }

  // Mapping `index` of the restored program.
  base::Result<std::optional<VmaAnswer>> ask(const FakeCriuImages::Vma& of) {
    return restore_->update_vma(of.path, of.start, of.offset);
  }

  UniqueFd second_{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
  std::vector<UniqueFd> own_;  // of the restored program
};

// CRIU 3.17 to 4.2 find that the second mapping borrows the file of the first, and number both all the same.
TEST_F(TwoFilesTest, neighbouring_mappings_of_two_files_are_each_made_through_their_own) {
  const std::vector vmas = {vma(0, offset_in(file_, 0), 70), vma(1, offset_in(second_, 4096), 71),
                            vma(2, offset_in(file_, 8192), 72)};
  for (const bool takes_fd : {false, true}) {
    target_.criu.new_rule = takes_fd;
    dump_and_restore(vmas);
    if (HasFatalFailure()) return;
    MappingModel model(takes_fd);
    ASSERT_TRUE(model.open_vmas(*restore_, vmas));
    ASSERT_TRUE(model.map_all());
    ASSERT_EQ(model.mapped().size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& mapped = model.mapped()[i];
      const int number = kNumber + static_cast<int>(i % 2);
      EXPECT_TRUE(testing::same_open_file(mapped.file.get(), number)) << i;
      EXPECT_EQ(mapped.offset, *target_.driver->file(number).gem.at(kHandle).mmap_offset + i * 4096) << i;
    }
    own_.clear();
  }
}

TEST_F(TwoFilesTest, mappings_of_two_files_that_criu_takes_for_one_fail) {
  target_.criu.new_rule = true;
  const std::vector vmas = {vma(0, offset_in(file_, 0), 70), vma(1, offset_in(file_, 4096), 70),
                            vma(2, offset_in(second_, 0), 70)};
  dump_and_restore(vmas);
  if (HasFatalFailure()) return;
  const auto first = ask(vmas[0]);
  ASSERT_TRUE(first.ok() && first->has_value());
  const UniqueFd run((*first)->fd);
  const auto next = ask(vmas[1]);
  ASSERT_TRUE(next.ok() && next->has_value()) << next.error().message();
  EXPECT_EQ((*next)->fd, kNumber);
  const auto other = ask(vmas[2]);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message().find(std::to_string(vmas[2].start)), std::string::npos) << other.error().message();
  EXPECT_NE(other.error().message().find("two open files of the device"), std::string::npos) << other.error().message();
}

TEST_F(RenderObjectsTest, a_mapping_of_no_object_is_refused) {
  const std::uint64_t behind = *objects().gem.at(kSmallHandle).mmap_offset + 4096;
  std::ostringstream maps;
  maps << "7f000000-7f001000 rw-s " << std::hex << behind << " 00:05 5 /dev/dri/renderD128\n";
  const auto status = dump(maps.str());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("no GEM object of a render node"), std::string::npos)
      << status.error().message();
}

TEST_F(RenderObjectsTest, an_object_of_its_vm_alone_is_saved_through_mappings) {
  // The file is /dev/zero, of which each mapping begins at 0.
  objects().gem.at(kSmallHandle).listed.flags = image::kGemVmAlwaysValid;
  objects().gem.at(kSmallHandle).mmap_offset = 0;
  target_.driver->next_offset = 0;
  expect_ok(dump());
  write_criu_images(200);
  const auto fd = restore_file();
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  EXPECT_EQ(target_.driver->file(fd->get()).gem.at(kSmallHandle).listed.flags, image::kGemVmAlwaysValid);
}

// ---- refusals ----

TEST_F(RenderObjectsTest, objects_that_cannot_be_created_again_are_refused_by_name) {
  ListedGem& listed = objects().gem.at(kSmallHandle).listed;
  const ListedGem good = listed;
  struct Bad {
    const char* says;
    void (*change)(ListedGem&);
  };
  for (const Bad& bad : {Bad{"imported from", [](ListedGem& gem) { gem.is_import = true; }},
                         Bad{"user queues", [](ListedGem& gem) { gem.domains = 1U << 6; }},
                         Bad{"inside the GPU", [](ListedGem& gem) { gem.domains = 1U << 3; }},
                         Bad{"encrypted", [](ListedGem& gem) { gem.flags = 1U << 10; }},
                         Bad{"coherent", [](ListedGem& gem) { gem.flags = 1U << 14; }},
                         Bad{"flags", [](ListedGem& gem) { gem.flags = 1U << 16; }}}) {
    listed = good;
    bad.change(listed);
    expect_refused({"program77", "/dev/dri/renderD128", "GEM object 7", bad.says});
  }
}

TEST_F(RenderObjectsTest, user_memory_is_an_object_of_the_program_that_has_the_file) {
  FakeRenderDriver::Gem& gem = objects().gem.at(kSmallHandle);
  gem.user = {kSmallHandle, 2 | 4 | 8, 0x7f0000001000};
  has_user_memory_ = true;
  gem.mmap_offset.reset();
  gem.mappings = {{kAddress + 4 * kSize, 4096, 0, 6}};
  expect_ok(dump());
  write_criu_images(200);
  const auto fd = restore_file();
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const auto& after = target_.driver->file(fd->get()).gem.at(kSmallHandle);
  EXPECT_EQ(after.user.addr, 0x7f0000001000U);
  EXPECT_EQ(after.user.flags, 2U | 4U | 8U);
  EXPECT_EQ(after.listed.size, 4096U);
  EXPECT_EQ(after.mappings, gem.mappings);
  EXPECT_EQ(FakeRenderDriver::contents(target_.driver->file(fd->get()).gem.at(kHandle)), pattern(1));
}

TEST_F(RenderObjectsTest, user_memory_of_a_process_that_does_not_restore_the_file_is_refused) {
  FakeRenderDriver::Gem& gem = objects().gem.at(kSmallHandle);
  gem.mmap_offset.reset();
  gem.user = {kSmallHandle, 8, 0x7f0000001000, 0};
  expect_refused({"GEM object 7", "ended", "execve"});
  // Its parent, for example, has made the object and closed the file.
  gem.user.pid = kOutside;
  expect_refused({"GEM object 7", "process " + std::to_string(kOutside), "restores the file"});
  const TestProgram child(source_.machine, kPid + 1, {file_.get()});
  gem.user.pid = child.pid();
  expect_refused({"GEM object 7", "process " + std::to_string(child.pid()), "restores the file"});
  has_user_memory_ = true;
  expect_ok(dump());
}

TEST_F(RenderObjectsTest, an_object_that_nobody_can_read_is_refused) {
  objects().gem.at(kSmallHandle).listed.flags = image::kGemVmAlwaysValid | image::kGemNoCpuAccess;
  objects().gem.at(kSmallHandle).mmap_offset.reset();
  expect_refused({"GEM object 7", "neither the CPU"});
}

TEST_F(RenderObjectsTest, contexts_that_no_new_one_would_equal_are_refused_by_name) {
  ListedContext& context = objects().contexts.at(4095);
  const ListedContext good = context;
  struct Bad {
    const char* says;
    void (*change)(ListedContext&);
  };
  for (const Bad& bad : {Bad{"guilty", [](ListedContext& each) { each.is_guilty = true; }},
                         Bad{"reset", [](ListedContext& each) { each.was_reset = true; }},
                         Bad{"DRM master", [](ListedContext& each) { each.is_overridden = true; }},
                         Bad{"clocks", [](ListedContext& each) { each.stable_pstate = 1; }}}) {
    context = good;
    bad.change(context);
    expect_refused({"program77", "context 4095", bad.says});
  }
}

TEST_F(RenderObjectsTest, work_in_flight_is_waited_for) {
  source_.services.options.fence_timeout = std::chrono::seconds(60);
  objects().gem.at(kHandle).busy = 3;
  expect_ok(dump());
  EXPECT_EQ(objects().gem.at(kHandle).busy, 0);
}

TEST_F(RenderObjectsTest, work_that_does_not_end_is_refused_by_name) {
  objects().gem.at(kHandle).busy = 1000;
  expect_refused({"GEM object 2147483646", "work that the GPU does not finish"});
  objects().gem.at(kHandle).busy = 0;
  objects().contexts.at(1).is_busy = true;
  expect_refused({"context", "work that the GPU does not finish"});
}

TEST_F(RenderObjectsTest, synchronization_objects_that_cannot_come_back_are_refused_by_name) {
  objects().states.at(900).reset();
  expect_refused({"synchronization object 900", "waits for something"});
  objects().syncobjs.at(1).is_shared = true;
  expect_refused({"synchronization object 1", "refers to it, too"});
  objects().syncobjs.at(1) = {1, false, true};
  expect_refused({"synchronization object 1", "eventfd"});
}

TEST_F(RenderObjectsTest, a_bo_list_with_an_object_without_handle_is_refused) {
  objects().bo_lists[1].handle = 0;
  expect_refused({"BO list 5", "handle was closed"});
}

TEST_F(RenderObjectsTest, memory_that_somebody_else_has_is_refused) {
  source_.services.count_references = [](int) -> base::Result<std::uint64_t> { return kOwnReferences + 1; };
  expect_refused({"is shared", "4 references"});
}

TEST_F(RenderObjectsTest, a_file_that_has_used_an_engine_for_video_is_refused_by_name) {
  source_.services.render.video_engine = [](int) -> base::Result<std::string> { return std::string("dec"); };
  expect_refused({"program77", "engine 'dec'", "video sessions"});
}

TEST(VideoEngine, is_one_that_fdinfo_has_a_line_of) {
  const std::string head = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-engine-gfx:\t12 ns\ndrm-engine-dma:\t3 ns\n";
  EXPECT_EQ(render_file::video_engine_in(head), "");
  EXPECT_EQ(render_file::video_engine_in(head + "drm-engine-jpeg:\t4 ns\n"), "");
  EXPECT_EQ(render_file::video_engine_in(head + "drm-engine-enc_1:\t4 ns\n"), "enc_1");
  EXPECT_EQ(render_file::video_engine_in("drm-engine-dec:\t4 ns\n"), "dec");
}

TEST_F(RenderObjectsTest, a_reference_that_somebody_has_for_a_moment_is_not_sharing) {
  std::uint64_t more = 3;
  source_.services.count_references = [&](int) -> base::Result<std::uint64_t> {
    return kOwnReferences + (more == 0 ? 0 : more--);
  };
  expect_ok(dump());
}

TEST_F(RenderObjectsTest, a_dmabuf_that_the_program_has_open_comes_back) {
  // That of the program, which is this process's own, too, and that of the tree.
  source_.services.count_references = [this](int fd) -> base::Result<std::uint64_t> {
    return kOwnReferences + (inode_of(fd) == inode_of(objects().gem.at(kSmallHandle).memory.get()) ? 3 : 0);
  };
  const UniqueFd dmabuf(::fcntl(objects().gem.at(kSmallHandle).memory.get(), F_DUPFD_CLOEXEC, 0));
  struct stat status {};
  ASSERT_EQ(::fstat(dmabuf.get(), &status), 0);
  source_.services.find_dmabuf = [&](int fd) -> base::Result<std::optional<dmabuf_file::Info>> {
    if (!testing::same_open_file(fd, dmabuf.get())) return std::optional<dmabuf_file::Info>();
    return std::optional<dmabuf_file::Info>({status.st_ino, 4096, "drm", ""});
  };
  const TestProgram program(source_.machine, kPid, {file_.get()});
  program.show(dmabuf.get(), "/dmabuf:");
  Dump dump(source_.services, 5);
  for (const auto& [fd, id] : {std::pair{file_.get(), kRenderId}, std::pair{dmabuf.get(), kRenderId + 1}}) {
    const auto claim = dump.dump_file(fd, id);
    ASSERT_TRUE(claim.ok()) << claim.error().message();
  }
  ASSERT_TRUE(dump.finish(0).committed);
  FakeCriuImages images;
  images.tasks[kPid] = {0, {kPid}, {{200, kRenderId}, {201, kRenderId + 1}}, {}};
  images.write(images_.path());
  const auto file = restore_file();
  ASSERT_TRUE(file.ok()) << file.error().message();
  const auto restored = restore_->restore_file(kRenderId + 1);
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  const UniqueFd again(**restored);
  EXPECT_EQ(inode_of(again.get()), inode_of(target_.driver->file(file->get()).gem.at(kSmallHandle).memory.get()));
}

// A program with descriptors of memory, and nothing else of a GPU but an open file.
class LostMemoryTest : public RenderObjectsTest {
 protected:
  static constexpr std::uint32_t kDmabufId = 12;

  LostMemoryTest() {
    const FakeRenderDriver::Gem& gem =
        source_.driver->add(file_.get(), {5, kSize, image::kGemVram, 1, 8192, false}, pattern(4));
    dmabuf_.reset(::open(("/proc/self/fd/" + std::to_string(gem.memory.get())).c_str(), O_RDONLY | O_CLOEXEC));
    FakeRenderDriver::File& file = objects();
    file = {std::move(file.fd)};
    source_.services.find_dmabuf = [this](int fd) -> base::Result<std::optional<dmabuf_file::Info>> {
      if (inode_of(fd) != inode_of(dmabuf_.get())) return std::optional<dmabuf_file::Info>();
      return std::optional<dmabuf_file::Info>({inode_of(fd), kSize, "drm", ""});
    };
    // The program's descriptor, which is this process's own, and that of the tree.
    source_.services.count_references = [this](int) -> base::Result<std::uint64_t> { return references_; };
  }

  ListedGem& listed() { return source_.driver->known.at(inode_of(dmabuf_.get())); }

  base::Status dump_both() {
    const TestProgram program(source_.machine, kPid, {file_.get()});
    program.show(dmabuf_.get(), "/dmabuf:");
    Dump dump(source_.services, 5);
    base::Status status;
    for (const auto& [fd, id] : {std::pair{file_.get(), kRenderId}, std::pair{dmabuf_.get(), kDmabufId}})
      if (auto claim = dump.dump_file(fd, id); !claim.ok() && status.ok()) status = std::move(claim).error();
    const Dump::End end = dump.finish(status.ok() ? 0 : 1);
    if (status.ok() && !end.errors.empty()) return end.errors.front();
    return status;
  }

  base::Result<UniqueFd> restore_dmabuf() {
    FakeCriuImages images;
    images.tasks[kPid] = {0, {kPid}, {{200, kRenderId}, {201, kDmabufId}}, {}};
    images.write(images_.path());
    restore_.emplace(target_.services);
    ASSIGN_OR_RETURN(const auto fd, restore_->restore_file(kDmabufId));
    if (!fd) return base::Error(ENOENT, "not ours");
    return UniqueFd(*fd);
  }

  void expect_dmabuf_refused(const std::vector<std::string>& words) {
    const auto status = dump_both();
    ASSERT_FALSE(status.ok());
    for (const std::string& word : words)
      EXPECT_NE(status.error().message().find(word), std::string::npos) << status.error().message();
  }

  UniqueFd dmabuf_;
  std::uint64_t references_ = 3;
};

TEST_F(LostMemoryTest, comes_back_with_its_contents_its_access_and_its_metadata) {
  source_.driver->known_metadata[inode_of(dmabuf_.get())] = {3, 1ULL << 40, std::vector<std::byte>(5, std::byte{6})};
  expect_ok(dump_both());
  // SDMA writes whatever the CPU may do.
  target_.services.make_copier = [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    class Copier final : public copy::Copier {
      copy::Outcome read(int, std::uint64_t, const copy::Sink&) override { return {}; }
      copy::Outcome write(int fd, std::uint64_t size, copy::Source& source) override {
        const UniqueFd file(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC));
        return copy::make_cpu_copier()->write(file.get(), size, source);
      }
    };
    return std::unique_ptr<copy::Copier>(std::make_unique<Copier>());
  };
  const auto dmabuf = restore_dmabuf();
  ASSERT_TRUE(dmabuf.ok()) << dmabuf.error().message();
  EXPECT_EQ(::fcntl(dmabuf->get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  std::vector<std::byte> bytes(kSize);
  EXPECT_EQ(::pread(dmabuf->get(), bytes.data(), kSize, 0), static_cast<ssize_t>(kSize));
  EXPECT_EQ(bytes, pattern(4));
  const ListedGem& made = target_.driver->known.at(inode_of(dmabuf->get()));
  EXPECT_EQ(made.domains, image::kGemVram);
  EXPECT_EQ(made.flags, 1U);
  EXPECT_EQ(made.alignment, 8192U);
  EXPECT_TRUE(target_.kfd.calls.empty());
  const GemMetadata& metadata = target_.driver->known_metadata.at(inode_of(dmabuf->get()));
  EXPECT_EQ(metadata.flags, 3U);
  EXPECT_EQ(metadata.tiling, 1ULL << 40);
  EXPECT_EQ(metadata.bytes, std::vector<std::byte>(5, std::byte{6}));
}

TEST_F(LostMemoryTest, that_kfd_has_allocated_is_allocated_by_kfd_again) {
  listed().flags = 1ULL << 13;
  expect_ok(dump_both());
  target_.services.make_copier = [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    return base::Error(EIO, "it has no contents in this test");
  };
  const auto dmabuf = restore_dmabuf();
  ASSERT_FALSE(dmabuf.ok());
  EXPECT_NE(dmabuf.error().message().find("no contents in this test"), std::string::npos) << dmabuf.error().message();
  const auto catalogue = image::Catalogue::read(source_.criu.image_dir());
  ASSERT_TRUE(catalogue.ok());
  EXPECT_EQ((*catalogue->find(kDmabufId))->dmabuf()->alloc_flags,
            std::uint32_t{KFD_IOC_ALLOC_MEM_FLAGS_VRAM} | std::uint32_t{KFD_IOC_ALLOC_MEM_FLAGS_COHERENT});
}

TEST_F(LostMemoryTest, whose_gpu_loses_it_during_the_dump_fails_the_dump) {
  const TestProgram program(source_.machine, kPid, {file_.get()});
  program.show(dmabuf_.get(), "/dmabuf:");
  Dump dump(source_.services, 5);
  for (const auto& [fd, id] : {std::pair{file_.get(), kRenderId}, std::pair{dmabuf_.get(), kDmabufId}}) {
    const auto claim = dump.dump_file(fd, id);
    ASSERT_TRUE(claim.ok()) << claim.error().message();
  }
  ++source_.driver->losses;
  const Dump::End end = dump.finish(0);
  EXPECT_FALSE(end.committed);
  EXPECT_TRUE(end.must_end_criu);
  ASSERT_EQ(end.errors.size(), 1U);
  EXPECT_NE(end.errors[0].message().find("lost the contents of VRAM"), std::string::npos) << end.errors[0].message();
  EXPECT_TRUE(std::filesystem::is_empty(images_.path()));
}

TEST_F(LostMemoryTest, that_somebody_else_has_is_refused) {
  references_ = 4;
  expect_dmabuf_refused({"program77", "a DMA-buf", "4 references, of which 3 are known"});
}

TEST_F(LostMemoryTest, that_cannot_be_created_again_is_refused_with_the_reason) {
  listed().flags = 1U << 10;
  expect_dmabuf_refused({"program77", "its memory", "encrypted"});
  listed().flags = 1U << 14;
  source_.driver->known_metadata[inode_of(dmabuf_.get())].tiling = 1;
  expect_dmabuf_refused({"program77", "its memory", "it has metadata (tiling)"});
  listed().is_import = true;
  expect_dmabuf_refused({"program77", "'drm'", "memory of none of the GPUs that KFD has"});
  source_.driver->lists = false;
  source_.services.render.objects = [](int, std::uint32_t) -> base::Result<std::string> { return std::string(); };
  expect_dmabuf_refused({"program77", "'drm'", "this kernel does not list GEM objects"});
}

TEST_F(LostMemoryTest, that_cannot_be_imported_is_refused_with_the_errno_of_the_import) {
  source_.driver->import_errno = EMFILE;
  const auto status = dump_both();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EMFILE);
  EXPECT_NE(status.error().message().find("its memory: importing it on GPU 4369 (renderD128): "), std::string::npos)
      << status.error().message();
  EXPECT_NE(status.error().message().find("Too many open files"), std::string::npos) << status.error().message();
}

TEST_F(LostMemoryTest, that_the_cpu_cannot_write_and_nobody_can_import_fails_with_the_errno_of_the_import) {
  expect_ok(dump_both());
  target_.driver->import_errno = EMFILE;
  const auto dmabuf = restore_dmabuf();
  ASSERT_FALSE(dmabuf.ok());
  EXPECT_EQ(dmabuf.error().code(), EMFILE);
  EXPECT_NE(dmabuf.error().message().find("contents of BO 0"), std::string::npos) << dmabuf.error().message();
  EXPECT_NE(dmabuf.error().message().find("Too many open files"), std::string::npos) << dmabuf.error().message();
}

TEST_F(RenderObjectsTest, more_objects_than_an_image_has_room_for_are_refused_before_any_is_saved) {
  for (std::uint32_t handle = 1; handle <= image::kMaxSyncobjs; ++handle) {
    objects().syncobjs[handle] = {handle};
    objects().states[handle] = image::Syncobj{handle, image::SyncobjState::kEmpty, 0};
  }
  objects().syncobjs[kHandle] = {kHandle};
  expect_refused({"65537 synchronization objects", "room for 65536"});
}

TEST_F(RenderObjectsTest, metadata_may_have_any_length) {
  objects().gem.at(kSmallHandle).metadata.bytes.resize(5);
  expect_ok(dump());
  write_criu_images(200);
  const auto fd = restore_file();
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  EXPECT_EQ(target_.driver->file(fd->get()).gem.at(kSmallHandle).metadata.bytes,
            objects().gem.at(kSmallHandle).metadata.bytes);
}

// CRIU would kill the program after the last hook, so it is ended instead.
TEST_F(RenderObjectsTest, a_reset_after_the_objects_were_read_fails_the_dump) {
  for (const bool lost : {false, true}) {
    objects().contexts.at(1).was_reset = false;
    const TestProgram program(source_.machine, kPid, {file_.get()});
    Dump dump(source_.services, 5);
    const auto claim = dump.dump_file(file_.get(), kRenderId);
    ASSERT_TRUE(claim.ok()) << claim.error().message();
    source_.driver->losses += lost ? 1 : 0;
    objects().contexts.at(1).was_reset = !lost;
    const Dump::End end = dump.finish(0);
    EXPECT_FALSE(end.committed);
    EXPECT_TRUE(end.must_end_criu);
    ASSERT_EQ(end.errors.size(), 1U);
    EXPECT_NE(end.errors[0].message().find(lost ? "lost the contents of VRAM" : "context 1"), std::string::npos)
        << end.errors[0].message();
    EXPECT_TRUE(std::filesystem::is_empty(images_.path()));
  }
}

// Another open file of a program has a handle of an object that file_ has.
class SharedObjectTest : public RenderObjectsTest {
 protected:
  static constexpr std::uint32_t kSecondId = 10;
  static constexpr std::uint32_t kImport = 3;

  SharedObjectTest() {
    FakeRenderDriver::Gem& gem =
        source_.driver->add(second_.get(), {kImport, kSize, image::kGemVram, 1, 65536, false}, {});
    gem.memory.reset(::fcntl(objects().gem.at(kHandle).memory.get(), F_DUPFD_CLOEXEC, 4000));
    gem.mmap_offset = objects().gem.at(kHandle).mmap_offset;
    gem.mappings = {{kAddress, 4096, 8192, 6}};
    source_.services.count_references = [this](int fd) -> base::Result<std::uint64_t> {
      return kOwnReferences + (inode_of(fd) == inode_of(objects().gem.at(kHandle).memory.get()) ? more_ : 0);
    };
  }

  base::Status dump_both() {
    const TestProgram program(source_.machine, kPid, {file_.get(), second_.get()});
    Dump dump(source_.services, 5);
    base::Status status;
    for (const auto& [fd, id] : {std::pair{second_.get(), kSecondId}, std::pair{file_.get(), kRenderId}})
      if (auto claim = dump.dump_file(fd, id); !claim.ok() && status.ok()) status = std::move(claim).error();
    const Dump::End end = dump.finish(status.ok() ? 0 : 1);
    if (status.ok() && !end.errors.empty()) return end.errors.front();
    return status;
  }

  void expect_both_refused(const std::vector<std::string>& words) {
    const auto status = dump_both();
    ASSERT_FALSE(status.ok());
    for (const std::string& word : words)
      EXPECT_NE(status.error().message().find(word), std::string::npos) << status.error().message();
    EXPECT_TRUE(std::filesystem::is_empty(images_.path()));
  }

  FakeRenderDriver::Gem& imported() { return source_.driver->file(second_.get()).gem.at(kImport); }

  UniqueFd second_{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
  std::uint64_t more_ = 1;  // references to the object of both
};

TEST_F(SharedObjectTest, comes_back_as_one_whose_contents_are_stored_once) {
  expect_ok(dump_both());
  const auto catalogue = image::Catalogue::read(source_.criu.image_dir());
  ASSERT_TRUE(catalogue.ok());
  std::size_t stored = 0;
  for (const image::Loaded* file : catalogue->intact())
    for (const image::BoRecord& record : image::bos_of(file->file()))
      if (record.inode == inode_of(imported().memory.get())) stored += image::stores_contents(record) ? 1 : 0;
  EXPECT_EQ(stored, 1U);
  FakeCriuImages images;
  images.tasks[kPid] = {0, {kPid}, {{200, kRenderId}, {201, kSecondId}}, {}};
  images.write(images_.path());
  const auto first = restore_file();
  ASSERT_TRUE(first.ok()) << first.error().message();
  const auto answer = restore_->restore_file(kSecondId);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  const UniqueFd second(**answer);
  const auto& made = target_.driver->file(first->get()).gem.at(kHandle);
  const auto& given = target_.driver->file(second.get()).gem.at(kImport);
  EXPECT_EQ(inode_of(made.memory.get()), inode_of(given.memory.get()));
  EXPECT_EQ(FakeRenderDriver::contents(given), pattern(1));
  EXPECT_EQ(given.mappings, imported().mappings);
  EXPECT_EQ(made.mappings, objects().gem.at(kHandle).mappings);
}

TEST_F(SharedObjectTest, is_refused_if_somebody_else_has_it) {
  more_ = 2;
  expect_both_refused({"is shared", "5 references, of which 4 are known", "somebody else has it"});
}

TEST_F(SharedObjectTest, is_refused_if_it_can_be_created_for_neither) {
  objects().gem.at(kHandle).listed.flags = 1U << 10;
  imported().listed.flags = 1U << 10;
  expect_both_refused({"GEM object 2147483646", "encrypted"});
}

TEST_F(SharedObjectTest, is_imported_on_another_gpu_from_the_one_that_has_it) {
  imported().listed = {kImport, kSize, image::kGemGtt, 1ULL << 40, 4096, true};
  more_ = 3;
  expect_ok(dump_both());
  more_ = 4;
  for (const auto& entry : std::filesystem::directory_iterator(images_.path())) std::filesystem::remove(entry.path());
  expect_both_refused({"7 references, of which 6 are known"});
}

TEST_F(SharedObjectTest, may_not_have_two_handles_in_one_file) {
  objects().gem.at(kSmallHandle).memory.reset(::fcntl(imported().memory.get(), F_DUPFD_CLOEXEC, 4000));
  expect_both_refused({"GEM object 2147483646 is also GEM object 7 of this file"});
}

TEST_F(SharedObjectTest, with_a_criu_that_passes_no_files_is_refused) {
  source_.criu.has_fdstore = false;
  expect_both_refused({"/dev/dri/renderD128", "fdstore_add()"});
}

// A process of KFD that imported the memory of a GEM object, and whose memory a render node has.
class SharedWithKfdTest : public SharedObjectTest {
 protected:
  static constexpr std::uint32_t kKfdId = 11;

  SharedWithKfdTest() {
    kfd::FakeProcess& process = source_.kfd.add_process(kPid);
    source_.kfd.add_file(kfd_.get(), process);
    source_.kfd.abi = kfd::Abi::kExtensible;
    process.devices = {{kGpu, kGpu}};
    process.priv_data.assign(16, std::byte{1});
    // By which the dump finds out that KFD uses none of the files.
    process.bos.push_back(
        {{0x2000'0000, 4096, 0x800000, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, std::vector<std::byte>(4096), 2, 0, false});
    process.bos.push_back({{0x1000'0000, kSize, 0x700000, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM},
                           pattern(9),
                           1,
                           inode_of(objects().gem.at(kHandle).memory.get()),
                           true});
    source_.services.render.has_metadata = [](int, int) -> base::Result<bool> { return false; };
    source_.services.render.may_map = [](int, std::uint64_t) -> base::Result<std::optional<bool>> {
      return std::optional<bool>(false);
    };
    bo_ = &process.bos.back();
    source_.services.count_references = [this](int fd) -> base::Result<std::uint64_t> {
      struct stat status {};
      EXPECT_EQ(::fstat(fd, &status), 0);
      const bool is_small_object = inode_of(fd) == inode_of(objects().gem.at(kSmallHandle).memory.get());
      return kOwnReferences + (status.st_size == kSize ? more_ : is_small_object ? 0 : 1);
    };
  }

  base::Status dump_all() {
    const TestProgram program(source_.machine, kPid, {kfd_.get(), file_.get(), second_.get()});
    Dump dump(source_.services, 5);
    base::Status status;
    for (const auto& [fd, id] :
         {std::pair{kfd_.get(), kKfdId}, std::pair{second_.get(), kSecondId}, std::pair{file_.get(), kRenderId}})
      if (auto claim = dump.dump_file(fd, id); !claim.ok() && status.ok()) status = std::move(claim).error();
    const Dump::End end = dump.finish(status.ok() ? 0 : 1);
    if (status.ok() && !end.errors.empty()) return end.errors.front();
    return status;
  }

  // Whether the record of the memory has contents, and whether the memory was allocated for it; by file.
  std::map<std::uint32_t, std::pair<bool, bool>> records() {
    std::map<std::uint32_t, std::pair<bool, bool>> result;
    const auto catalogue = image::Catalogue::read(source_.criu.image_dir());
    EXPECT_TRUE(catalogue.ok());
    for (const image::Loaded* file : catalogue->intact())
      for (const image::BoRecord& record : image::bos_of(file->file()))
        if (record.inode == bo_->inode) result[file->id()] = {image::stores_contents(record), !record.imported};
    return result;
  }

  UniqueFd kfd_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  kfd::FakeProcess::FakeBo* bo_ = nullptr;
};

TEST_F(SharedWithKfdTest, memory_is_stored_with_the_object_or_bo_that_it_was_allocated_for) {
  using Records = std::map<std::uint32_t, std::pair<bool, bool>>;
  more_ = 3;  // the other handle, the BO of KFD, and its handle in KFD's own file
  expect_ok(dump_all());
  EXPECT_EQ(records(), (Records{{kRenderId, {true, true}}, {kSecondId, {false, false}}, {kKfdId, {false, false}}}));
  bo_->imported = false;
  expect_ok(dump_all());
  EXPECT_EQ(records(), (Records{{kRenderId, {false, false}}, {kSecondId, {false, false}}, {kKfdId, {true, true}}}));
  // What KFD has allocated has flags that no program may ask for, and its BO may be gone.
  objects().gem.at(kHandle).listed.flags = imported().listed.flags = 1U << 13;
  bo_->imported = true;
  source_.services.render.alloc_flags = [](int, int) -> base::Result<std::uint32_t> { return 0U; };
  // The objects bring it back.
  source_.services.render.has_metadata = [this](int, int dmabuf) -> base::Result<bool> {
    return inode_of(dmabuf) == bo_->inode;
  };
  more_ = 2;
  expect_ok(dump_all());
  EXPECT_EQ(records(), (Records{{kRenderId, {false, false}}, {kSecondId, {false, false}}, {kKfdId, {true, false}}}));
}

TEST_F(SharedWithKfdTest, memory_that_somebody_outside_has_is_refused) {
  more_ = 4;
  const auto status = dump_all();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("somebody outside"), std::string::npos) << status.error().message();
}

TEST_F(SharedWithKfdTest, the_released_abi_gives_it_to_nobody) {
  source_.kfd.abi = kfd::Abi::kReleased;
  const auto status = dump_all();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("is memory that KFD has as well; the released ABI"), std::string::npos)
      << status.error().message();
}

TEST_F(RenderObjectsTest, a_file_that_a_program_outside_has_is_refused_with_that_program) {
  show_outside(source_.machine.root() + "/proc", kOutside, "/dev/dri/renderD128", kFdinfo);
  expect_refused({"program77", "/dev/dri/renderD128", "program 'launcher' (process 5000000)", "descriptor 5",
                  "Dump it together", "close the file"});
}

TEST_F(RenderObjectsTest, other_files_of_programs_outside_are_no_obstacle) {
  const std::string proc = source_.machine.root() + "/proc";
  show_outside(proc, kOutside, "/dev/dri/renderD128", "drm-client-id:\t18\ndrm-pdev:\t0000:03:00.0\n");
  show_outside(proc, kOutside + 1, "/dev/dri/renderD129", "drm-client-id:\t17\ndrm-pdev:\t0000:04:00.0\n");
  show_outside(proc, kOutside + 2, "/dev/kfd", kFdinfo);
  expect_ok(dump());
  EXPECT_EQ(warnings(), std::vector<std::string>{});
}

TEST_F(RenderObjectsTest, a_file_without_objects_may_be_that_of_a_program_outside) {
  show_outside(source_.machine.root() + "/proc", kOutside, "/dev/dri/renderD128", kFdinfo);
  FakeRenderDriver::File& file = objects();
  file = {std::move(file.fd)};
  expect_ok(dump());
}

TEST_F(RenderObjectsTest, holders_that_cannot_be_looked_for_are_a_warning) {
  source_.services.find_render_client = [](int) -> base::Result<std::optional<render_holders::Client>> {
    return std::optional<render_holders::Client>();
  };
  expect_ok(dump());
  ASSERT_EQ(warnings().size(), 1U);
  EXPECT_NE(warnings().front().find("no drm-client-id"), std::string::npos) << warnings().front();
}

TEST_F(RenderObjectsTest, a_process_outside_that_may_not_be_looked_at_is_a_warning) {
  show_outside(source_.machine.root() + "/proc", kOutside, "/dev/dri/renderD128", kFdinfo);
  bool is_warned = false;
  bool succeeded = false;
  for (std::uint64_t call = 1; !succeeded && !is_warned; ++call) {
    source_.criu.warnings.clear();
    os::fail_call(call, EACCES);
    const auto status = dump();
    succeeded = os::failed_call().empty();
    os::fail_call(0, 0);
    const auto said = warnings();
    is_warned = status.ok() && std::any_of(said.begin(), said.end(), [](const std::string& warning) {
                  return warning.find("CRIU may not read: 1;") != std::string::npos;
                });
    for (const auto& entry : std::filesystem::directory_iterator(images_.path())) std::filesystem::remove(entry.path());
  }
  EXPECT_TRUE(is_warned);
}

TEST(RenderHolders, are_known_by_the_number_that_drm_gives_an_open_file) {
  using render_holders::Client;
  using render_holders::parse_client;
  EXPECT_EQ(parse_client(kFdinfo), (Client{17, "0000:03:00.0"}));
  EXPECT_EQ(parse_client("drm-client-id:\t18446744073709551615\n"), (Client{~std::uint64_t{0}, ""}));
  for (const char* text : {"", "pos:\t0\nflags:\t02\n", "drm-pdev:\t0000:03:00.0\n", "drm-client-id:\t1x\n",
                           "drm-client-id:\n", "xdrm-client-id:\t1\n"})
    EXPECT_FALSE(parse_client(text)) << text;
}

TEST(RenderHolders, are_looked_for_in_all_processes_but_those_inside) {
  const TempDir proc;
  show_outside(proc.path(), 40, "/dev/dri/renderD128", kFdinfo);
  show_outside(proc.path(), 9, "/dev/dri/renderD128", kFdinfo);
  show_outside(proc.path(), 7, "/anon_inode:[eventfd]", kFdinfo);
  // As in a container that was restored without the usual node.
  show_outside(proc.path(), 300, "/dev/.amdgpu_plugin.3.128 (deleted)", kFdinfo);
  std::filesystem::create_directories(proc.path() + "/5");  // it has ended
  std::filesystem::create_directories(proc.path() + "/sys");
  const std::vector<render_holders::Client> clients = {{3, "0000:03:00.0"}, {17, "0000:03:00.0"}};
  std::vector<pid_t> inside;
  for (const pid_t expected : {9, 40, 300}) {
    const auto found = render_holders::find(proc.path(), clients, [&inside](pid_t pid) {
      return std::find(inside.begin(), inside.end(), pid) != inside.end();
    });
    ASSERT_TRUE(found.ok()) << found.error().message();
    ASSERT_TRUE(found->holder);
    EXPECT_EQ(found->holder->pid, expected);
    EXPECT_EQ(found->holder->comm, "launcher");
    EXPECT_EQ(found->holder->number, 5);
    EXPECT_EQ(found->holder->client, clients[1]);
    inside.push_back(expected);
  }
  const auto none = render_holders::find(proc.path(), clients, [](pid_t pid) { return pid >= 9; });
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->holder);
  EXPECT_EQ(none->hidden, 0U);
}

// Each call fails in turn, as it does when a process ends, or may not be looked at, or for another reason.
TEST(RenderHolders, that_end_or_are_hidden_are_no_error) {
  const TempDir proc;
  show_outside(proc.path(), 9, "/dev/dri/renderD128", kFdinfo);
  const std::vector<render_holders::Client> clients = {{17, "0000:03:00.0"}};
  os::fail_call(0, 0);
  EXPECT_TRUE(render_holders::find(proc.path(), clients, [](pid_t) { return true; }).ok());
  const std::uint64_t first = os::calls() + 1;  // after those that list the processes
  for (const int code : {ESRCH, ENOENT, EACCES, EPERM, EIO}) {
    std::string failed;
    for (std::uint64_t call = first;; call += os::fail_step()) {
      const auto descriptors = open_descriptors();
      os::fail_call(call, code);
      const auto found = render_holders::find(proc.path(), clients, [](pid_t) { return false; });
      failed = os::failed_call();
      os::fail_call(0, 0);
      EXPECT_EQ(open_descriptors(), descriptors);
      if (failed.empty()) break;
      SCOPED_TRACE(failed + " fails with " + std::to_string(code) + " as call " + std::to_string(call));
      const bool is_absent = code == ESRCH || code == ENOENT;
      if (found.ok() && found->holder) continue;  // it is the holder's name that could not be read
      EXPECT_EQ(found.ok(), code != EIO);
      if (!found.ok()) continue;
      EXPECT_EQ(found->hidden, is_absent ? 0U : 1U);
    }
  }
}

TEST_F(RenderObjectsTest, a_kernel_without_lists_refuses_what_can_be_found) {
  source_.driver->lists = false;
  source_.services.render.objects = [](int, std::uint32_t) -> base::Result<std::string> {
    return std::string("GEM object 3");
  };
  expect_refused({"GEM object 3", "only what was allocated through /dev/kfd"});
}

TEST_F(RenderObjectsTest, a_kernel_without_lists_restores_no_objects) {
  expect_ok(dump());
  write_criu_images(200);
  target_.driver->lists = false;
  const auto fd = restore_file();
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("drm-handle-at"), std::string::npos) << fd.error().message();
}

TEST_F(RenderObjectsTest, without_criu_images_nothing_is_restored) {
  expect_ok(dump());
  const auto fd = restore_file();
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("not readable"), std::string::npos) << fd.error().message();
}

// ---- faults ----

TEST_F(RenderObjectsTest, a_dump_that_fails_at_any_call_leaves_no_file) {
  bool succeeded = false;
  for (std::uint64_t call = 1; !succeeded; call += os::fail_step()) {
    const auto descriptors = open_descriptors();
    os::fail_call(call, EIO);
    const auto status = dump();
    succeeded = os::failed_call().empty();
    os::fail_call(0, 0);
    EXPECT_EQ(open_descriptors(), descriptors) << call;
    if (!status.ok()) {
      EXPECT_TRUE(std::filesystem::is_empty(images_.path())) << call;
    }
    for (const auto& entry : std::filesystem::directory_iterator(images_.path())) std::filesystem::remove(entry.path());
    EXPECT_TRUE(!succeeded || status.ok());
  }
}

TEST_F(RenderObjectsTest, a_restore_that_fails_at_any_call_says_so_or_has_all) {
  expect_ok(dump());
  write_criu_images(200);
  bool succeeded = false;
  for (std::uint64_t call = 1; !succeeded; call += os::fail_step()) {
    target_.driver->files.clear();
    os::fail_call(call, EIO);
    const auto fd = restore_file();
    succeeded = os::failed_call().empty();
    os::fail_call(0, 0);
    if (!fd.ok()) continue;
    const FakeRenderDriver::File& after = target_.driver->file(fd->get());
    EXPECT_EQ(after.gem.size(), 2U);
    EXPECT_EQ(FakeRenderDriver::contents(after.gem.at(kHandle)), pattern(1));
    EXPECT_EQ(after.states, objects().states);
  }
}

}  // namespace
}  // namespace plugin
