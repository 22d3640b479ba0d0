// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A program whose render node, that KFD uses, has GEM objects and mappings: memory of KFD, as HIP's virtual memory
// management makes them, and others. From the dump to the restore, over a fake KFD and a fake driver.
#include "plugin/kfd_objects.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/os_failing.h"
#include "kfd/fake_kfd.h"
#include "plugin/dump.h"
#include "plugin/fake_render_driver.h"
#include "plugin/image/writer.h"
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
using testing::open_descriptors;
using testing::TempDir;
using testing::TestProgram;
using testing::write_file;

constexpr std::uint32_t kKfdId = 4;
constexpr std::uint32_t kRenderId = 9;
constexpr std::uint32_t kPid = 77;
constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kUserGpu = 0x4444;  // by which the program knows it
constexpr std::uint32_t kOtherGpu = 0x2222;
constexpr std::uint64_t kSize = 20 * 4096;
constexpr std::uint64_t kMappedAddr = 0x7f0000000000;  // of the BO that KFD has mapped
constexpr std::uint64_t kHandleAddr = 1ULL << 47;      // where libhsakmt puts memory without an address
constexpr std::uint64_t kReserved = 0x200000000;       // by hipMemAddressReserve()
// Handles, and what they are of.
constexpr std::uint32_t kMapped = 5;
constexpr std::uint32_t kUnmapped = 0x7ffffffe;
constexpr std::uint32_t kGemOnly = 9;
// KFD allocates with flags that no user of the render node can give, and that the kernel does not list.
constexpr std::uint64_t kFlagsOfKfd = 1ULL << 13;

std::vector<std::byte> pattern(std::size_t seed) {
  std::vector<std::byte> bytes(kSize);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i / 5 + seed);
  return bytes;
}

std::uint64_t inode_of(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
}

// The fakes of one machine; dump and restore use different ones.
struct Fakes {
  explicit Fakes(const std::string& images) : criu(images) {
    kfd.abi = kfd::Abi::kExtensible;
    kfd.keeps_memory = true;
    services.render.driver = driver;
    services.options.fence_timeout = std::chrono::seconds(0);
    services.render.objects = [](int, std::uint32_t) -> base::Result<std::string> { return std::string(); };
    services.render.has_metadata = [](int, int) -> base::Result<bool> { return false; };
    services.render.may_map = [](int, std::uint64_t) -> base::Result<std::optional<bool>> {
      return std::optional<bool>(true);
    };
    services.render.is_home = [](int, int, std::uint64_t) -> base::Result<bool> { return true; };
    services.find_render_client = [](int) -> base::Result<std::optional<render_holders::Client>> {
      return std::optional<render_holders::Client>();
    };
    write_file(machine.root() + "/proc/sys/kernel/osrelease", "6.12.0\n");
  }

  FakeMachine machine;
  FakeCriu criu;
  System system{machine.roots()};
  kfd::FakeKfd kfd;
  std::shared_ptr<FakeRenderDriver> driver = std::make_shared<FakeRenderDriver>();
  Services services{
      criu, system, kfd,
      [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{}};
};

class KfdObjectsTest : public ::testing::Test {
 protected:
  KfdObjectsTest() {
    source_.machine.add_gpu(1, kGpu, 128);
    target_.machine.add_gpu(1, kOtherGpu, 128);
    target_.criu.task = kPid;
    auto& driver = *source_.driver;
    FakeRenderDriver::File& file = objects();
    driver.add(file_.get(), {kMapped, kSize, image::kGemVram, kFlagsOfKfd, 4096, false}, pattern(1)).mappings = {
        {kReserved, 4096, 8192, 6}, {kMappedAddr, kSize, 0, 14}};
    driver.add(file_.get(), {kUnmapped, kSize, image::kGemVram, kFlagsOfKfd, 4096, false}, pattern(2)).mappings = {
        {kReserved + kSize, kSize, 0, 6}, {kReserved + 2 * kSize, kSize, 0, 2}};
    file.gem.at(kUnmapped).metadata = {1, 2, std::vector<std::byte>(4, std::byte{3})};
    driver.add(file_.get(), {kGemOnly, kSize, image::kGemVram, 1, 4096, false}, pattern(3)).mappings = {
        {kReserved + 8 * kSize, kSize, 0, 6}};
    file.bo_lists = {{5, kUnmapped, 3, false}, {5, kGemOnly, 0, false}};
    file.contexts = {{1, {1, 0}}};
    source_.kfd.devices = {{kUserGpu, kGpu}};
    source_.kfd.bos = {bo_of(kMapped, kMappedAddr, {kUserGpu}), bo_of(kUnmapped, kHandleAddr, {})};
    source_.kfd.priv_data.assign(64, std::byte{0x5a});
    source_.kfd.pid = kPid;
    source_.kfd.processes.front().has_objects = true;
    // KFD's BO and its GEM object with a handle of KFD's own, the program's handle, and the descriptor that asks.
    source_.services.count_references = [this](int fd) -> base::Result<std::uint64_t> {
      return inode_of(fd) == inode_of(objects().gem.at(kGemOnly).memory.get()) ? render_objects::kOwnReferences
                                                                               : references_;
    };
  }

  // A BO whose memory the GEM object with this handle is.
  kfd::FakeKfd::FakeBo bo_of(std::uint32_t handle, std::uint64_t addr, std::vector<std::uint32_t> mapped) {
    const auto& gem = objects().gem.at(handle);
    return {{addr, kSize, *gem.mmap_offset, kUserGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM},
            FakeRenderDriver::contents(gem),
            handle + 1000,
            inode_of(gem.memory.get()),
            false,
            std::move(mapped)};
  }

  FakeRenderDriver::File& objects() { return source_.driver->file(file_.get()); }
  FakeRenderDriver::Gem& gem(std::uint32_t handle) { return objects().gem.at(handle); }

  base::Status dump() { return dump(TestProgram(source_.machine, kPid, {kfd_.get(), file_.get()})); }
  base::Status dump(const TestProgram& /*program*/) {
    Dump dump(source_.services, 5);
    base::Status status;
    for (const auto& [fd, id] : {std::pair{kfd_.get(), kKfdId}, std::pair{file_.get(), kRenderId}}) {
      const auto claim = dump.dump_file(fd, id);
      if (!claim.ok()) status = claim.error();
      if (!claim.ok()) break;
    }
    const Dump::End end = dump.finish(status.ok() ? 0 : 1);
    if (status.ok() && !end.errors.empty()) return end.errors.front();
    EXPECT_EQ(end.committed, status.ok());
    EXPECT_TRUE(!status.ok() || source_.kfd.all_stand());
    EXPECT_TRUE(status.ok() || source_.kfd.all_run());
    return status;
  }

  void expect_refused(const std::vector<std::string>& words) {
    const auto descriptors = open_descriptors();
    expect_error(dump(), words);
    EXPECT_TRUE(std::filesystem::is_empty(images_.path()));
    EXPECT_EQ(open_descriptors(), descriptors);
  }

  static void expect_error(const base::Status& status, const std::vector<std::string>& words) {
    ASSERT_FALSE(status.ok());
    for (const std::string& word : words)
      EXPECT_NE(status.error().message().find(word), std::string::npos) << status.error().message();
  }

  void write_criu_images() {
    FakeCriuImages images;
    images.tasks[kPid] = {0, {kPid}, {{200, kKfdId}, {201, kRenderId}}, {}};
    images.write(images_.path());
  }

  base::Result<UniqueFd> restore_file(std::uint32_t id) {
    ASSIGN_OR_RETURN(const std::optional<int> fd, restore_->restore_file(id));
    if (!fd) return base::Error(ENOENT, "not ours");
    return UniqueFd(*fd);
  }

  // The restored objects, in the file that KFD was given.
  FakeRenderDriver::File& restored() { return target_.driver->file(target_.kfd.restored_files.at(1).get()); }

  void expect_restored() {
    FakeRenderDriver::File& after = restored();
    ASSERT_EQ(after.gem.size(), 3U);
    EXPECT_EQ(after.gem.at(kMapped).mappings, (std::vector<GemMapping>{{kReserved, 4096, 8192, 6}}));
    EXPECT_EQ(after.gem.at(kUnmapped).mappings, gem(kUnmapped).mappings);
    EXPECT_EQ(after.gem.at(kUnmapped).metadata.bytes, gem(kUnmapped).metadata.bytes);
    EXPECT_EQ(after.gem.at(kGemOnly).mappings, gem(kGemOnly).mappings);
    EXPECT_EQ(FakeRenderDriver::contents(after.gem.at(kGemOnly)), pattern(3));
    // Not copies: the memory that KFD has.
    const auto& memories = target_.kfd.restored_memories.back();
    EXPECT_EQ(inode_of(after.gem.at(kMapped).memory.get()), inode_of(memories.at(0).get()));
    EXPECT_EQ(inode_of(after.gem.at(kUnmapped).memory.get()), inode_of(memories.at(1).get()));
    after.gem.at(kUnmapped).listed.size = kSize;
    EXPECT_EQ(FakeRenderDriver::contents(after.gem.at(kUnmapped)), pattern(2));
    ASSERT_EQ(after.bo_lists.size(), 2U);
    EXPECT_EQ(after.bo_lists[0].handle, kUnmapped);
    EXPECT_EQ(after.contexts.size(), 1U);
  }

  TempDir images_;
  Fakes source_{images_.path()};
  Fakes target_{images_.path()};
  std::optional<Restore> restore_;
  std::uint64_t references_ = testing::kReferencesOfOne + 1;
  UniqueFd kfd_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  UniqueFd file_{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
};

TEST_F(KfdObjectsTest, come_back_on_another_gpu_whichever_file_criu_asks_for_first) {
  const auto status = dump();
  ASSERT_TRUE(status.ok()) << status.error().message();
  write_criu_images();
  for (const auto& order : {std::array{kKfdId, kRenderId}, std::array{kRenderId, kKfdId}}) {
    target_.driver->files.clear();
    restore_.emplace(target_.services);
    const auto first = restore_file(order[0]);
    ASSERT_TRUE(first.ok()) << first.error().message();
    const auto second = restore_file(order[1]);
    ASSERT_TRUE(second.ok()) << second.error().message();
    const int render = order[0] == kRenderId ? first->get() : second->get();
    EXPECT_TRUE(testing::same_open_file(render, target_.kfd.restored_files.at(1).get()));
    expect_restored();
  }
}

// Contents of KFD's memory are with the BO.
TEST_F(KfdObjectsTest, memory_of_kfd_is_saved_once) {
  const auto status = dump();
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto images = image::Catalogue::read(source_.criu.image_dir());
  ASSERT_TRUE(images.ok());
  const auto loaded = images->find(kRenderId);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const image::RenderFile& render = *(*loaded)->render();
  EXPECT_EQ(render.binding, image::Binding::kKfd);
  ASSERT_EQ(render.bos.size(), 1U);
  EXPECT_EQ(render.bos[0].handle, kGemOnly);
  ASSERT_EQ(render.objects.kfd_gem.size(), 2U);
  EXPECT_EQ(render.objects.kfd_gem[0].mappings, (std::vector<GemMapping>{{kReserved, 4096, 8192, 6}}));
}

// A BO that is mapped to no GPU leaves its address to the program.
TEST_F(KfdObjectsTest, only_a_mapping_that_kfd_has_made_is_not_the_programs) {
  gem(kUnmapped).mappings = {{kHandleAddr, kSize, 0, 6}};
  gem(kMapped).mappings.push_back({kMappedAddr + kSize, kSize, 0, 6});
  const auto status = dump();
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto images = image::Catalogue::read(source_.criu.image_dir());
  const image::RenderFile& render = *(*images->find(kRenderId))->render();
  EXPECT_EQ(render.objects.kfd_gem[0].mappings.size(), 2U);
  EXPECT_EQ(render.objects.kfd_gem[1].mappings, gem(kUnmapped).mappings);
}

TEST_F(KfdObjectsTest, a_queue_buffer_is_mapped_by_kfd_twice) {
  gem(kMapped).mappings.push_back({kMappedAddr + kSize, kSize, 0, 6});
  source_.kfd.bos[0].bo.alloc_flags |= KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM;
  const auto status = dump();
  ASSERT_TRUE(status.ok()) << status.error().message();
  const auto images = image::Catalogue::read(source_.criu.image_dir());
  EXPECT_EQ((*images->find(kRenderId))->render()->objects.kfd_gem[0].mappings.size(), 1U);
}

TEST_F(KfdObjectsTest, memory_of_another_gpu_of_kfd_is_no_other_drivers) {
  gem(kUnmapped).listed.is_import = true;
  const auto status = dump();
  EXPECT_TRUE(status.ok()) << status.error().message();
}

TEST_F(KfdObjectsTest, a_file_that_has_imported_all_memory_of_kfd_is_an_independent_one) {
  const UniqueFd second(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  for (const std::uint32_t handle : {kMapped, kUnmapped}) {
    const UniqueFd memory(::fcntl(gem(handle).memory.get(), F_DUPFD_CLOEXEC, 4000));
    source_.driver->add(second.get(), {handle, kSize, image::kGemVram, kFlagsOfKfd, 4096, false}, {})
        .memory.reset(::fcntl(memory.get(), F_DUPFD_CLOEXEC, 4000));
  }
  objects().gem.erase(kMapped);
  const TestProgram program(source_.machine, kPid, {kfd_.get(), second.get(), file_.get()});
  Dump dump(source_.services, 5);
  for (const auto& [fd, id] :
       {std::pair{kfd_.get(), kKfdId}, std::pair{second.get(), kRenderId + 1}, std::pair{file_.get(), kRenderId}}) {
    const auto claim = dump.dump_file(fd, id);
    ASSERT_TRUE(claim.ok()) << claim.error().message();
  }
  ASSERT_TRUE(dump.finish(0).committed);
  const auto catalogue = image::Catalogue::read(source_.criu.image_dir());
  ASSERT_TRUE(catalogue.ok());
  EXPECT_EQ((*catalogue->find(kRenderId))->render()->binding, image::Binding::kKfd);
  EXPECT_EQ((*catalogue->find(kRenderId + 1))->render()->binding, image::Binding::kOther);
  EXPECT_EQ((*catalogue->find(kRenderId + 1))->render()->bos.size(), 2U);
}

// The child has the file as soon as the owner has opened it, which may be before the owner's objects are in it.
TEST_F(KfdObjectsTest, a_child_that_maps_an_object_waits_for_the_process_that_makes_it) {
  constexpr int kNumber = 310;
  constexpr std::uint32_t kChild = kPid + 1;
  {
    const TestProgram child(source_.machine, kChild, {file_.get()});
    const auto status = dump();
    ASSERT_TRUE(status.ok()) << status.error().message();
  }
  FakeCriuImages images;
  images.tasks[kPid] = {0, {kPid}, {{200, kKfdId}, {201, kRenderId}}, {}};
  images.tasks[kChild] = {kPid, {kChild}, {{kNumber, kRenderId}}, {}};
  images.write(images_.path());
  restore_.emplace(target_.services);
  const auto file = restore_file(kRenderId);
  ASSERT_TRUE(file.ok()) << file.error().message();
  const UniqueFd given(::fcntl(file->get(), F_DUPFD_CLOEXEC, kNumber));
  ASSERT_EQ(given.get(), kNumber);
  const std::uint64_t offset = *gem(kGemOnly).mmap_offset;
  target_.criu.task = kChild;
  target_.services.longest_wait = std::chrono::milliseconds(0);
  const auto early = restore_->update_vma("/dev/dri/renderD128", 0x7f000000, offset);
  ASSERT_FALSE(early.ok());
  EXPECT_NE(early.error().message().find("process 77, which makes GEM object 9 that this one has mapped"),
            std::string::npos)
      << early.error().message();
  target_.criu.task = kPid;
  const auto kfd = restore_file(kKfdId);
  ASSERT_TRUE(kfd.ok()) << kfd.error().message();
  target_.criu.task = kChild;
  const auto answer = restore_->update_vma("/dev/dri/renderD128", 0x7f000000, offset);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->offset, *restored().gem.at(kGemOnly).mmap_offset);
}

// ---- refusals ----

TEST_F(KfdObjectsTest, memory_of_kfd_that_somebody_outside_has_is_refused) {
  references_ += 1;
  expect_refused({"program77", "somebody outside", "6 references, of which 5"});
}

TEST_F(KfdObjectsTest, an_object_that_is_none_of_kfd_is_refused_as_in_other_files) {
  gem(kGemOnly).listed.flags = kFlagsOfKfd;
  expect_refused({"program77", "GEM object 9", "coherent or uncached, which a program can ask only KFD for"});
}

TEST_F(KfdObjectsTest, two_handles_of_one_memory_are_refused) {
  const UniqueFd same(::fcntl(gem(kMapped).memory.get(), F_DUPFD_CLOEXEC, 4000));
  source_.driver->add(file_.get(), {7, kSize, image::kGemVram, kFlagsOfKfd, 4096, false}, {})
      .memory.reset(::fcntl(same.get(), F_DUPFD_CLOEXEC, 4000));
  expect_refused({"program77", "GEM object 7", "same memory of KFD"});
}

TEST_F(KfdObjectsTest, a_kernel_that_does_not_list_objects_refuses_the_pause) {
  source_.driver->lists = false;
  expect_refused({"program77", "a render node of the process has objects"});
}

TEST_F(KfdObjectsTest, the_released_abi_refuses_the_pause) {
  source_.kfd.abi = kfd::Abi::kReleased;
  expect_refused({"program77", "a render node of the process has objects"});
}

// KFD keeps the file, and with it objects that nobody can list.
TEST_F(KfdObjectsTest, a_program_that_has_closed_its_render_node_is_refused) {
  source_.services.render.may_map = [](int, std::uint64_t) -> base::Result<std::optional<bool>> {
    return std::optional<bool>(false);
  };
  const UniqueFd other(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  const auto status = dump(TestProgram(source_.machine, kPid, {kfd_.get(), other.get()}));
  expect_error(status, {"program77", "has closed the file of GPU 4369", "unknown which of them"});
}

TEST_F(KfdObjectsTest, a_program_with_a_lower_pid_that_has_the_file_is_refused) {
  const TestProgram lower(source_.machine, 5, {file_.get()});
  expect_refused({"KFD uses for program 'program77'", "program 'program5'", "lower pid"});
}

TEST_F(KfdObjectsTest, a_child_with_a_higher_pid_may_have_the_file) {
  const TestProgram higher(source_.machine, kPid + 1, {file_.get()});
  const auto status = dump();
  EXPECT_TRUE(status.ok()) << status.error().message();
}

TEST_F(KfdObjectsTest, a_program_without_objects_comes_back_as_before) {
  objects() = {std::move(objects().fd)};
  source_.kfd.processes.front().has_objects = false;
  source_.services.count_references = [](int) -> base::Result<std::uint64_t> { return testing::kReferencesOfOne; };
  const auto status = dump();
  ASSERT_TRUE(status.ok()) << status.error().message();
  write_criu_images();
  restore_.emplace(target_.services);
  const auto fd = restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  EXPECT_TRUE(restored().gem.empty());
}

// ---- images ----

// A dump of one process with one BO, and one object of its memory.
class KfdObjectsImage : public KfdObjectsTest {
 protected:
  static constexpr std::uint64_t kInode = 4711;

  KfdObjectsImage() {
    process_.pid = kPid;
    process_.devices = {{kUserGpu, kGpu}};
    process_.priv_data.assign(16, std::byte{1});
    process_.bos = {{{kMappedAddr, kSize, 0x100000, kUserGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, 3, kInode}};
    render_.binding = image::Binding::kKfd;
    render_.gpu_id = kGpu;
    render_.owner = kPid;
    render_.objects.kfd_gem = {{kUnmapped, kInode, kSize, {{kReserved, kSize, 0, 6}}}};
  }

  base::Status restore() {
    for (const auto& entry : std::filesystem::directory_iterator(images_.path())) std::filesystem::remove(entry.path());
    ASSIGN_OR_RETURN(auto writer, image::SessionWriter::create(target_.criu.image_dir(), 5));
    image::Session session;
    topology::Node node;
    node.node_id = 1;
    node.gpu_id = kGpu;
    node.properties = {{"simd_count", 240}, {"gfx_target_version", 90006}, {"drm_render_minor", 128}};
    session.nodes = {node};
    session.abi = image::Abi::kExtensible;
    session.processes = {{kPid, "program"}};
    TRY(writer->file(kKfdId).append(pattern(1)));
    TRY(writer->add({kKfdId, process_}));
    TRY(writer->add({kRenderId, render_}));
    if (more_) TRY(writer->add({kRenderId + 1, *more_}));
    TRY(writer->prepare(std::move(session)));
    TRY(writer->commit());
    write_criu_images();
    if (more_) {
      FakeCriuImages images;
      images.tasks[kPid] = {0, {kPid}, {{200, kKfdId}, {201, kRenderId}, {202, kRenderId + 1}}, {}};
      images.write(images_.path());
    }
    restore_.emplace(target_.services);
    ASSIGN_OR_RETURN(const UniqueFd fd, restore_file(kKfdId));
    return {};
  }

  void expect_invalid(const std::vector<std::string>& words) {
    target_.kfd.calls.clear();
    target_.driver->files.clear();
    expect_error(restore(), words);
    EXPECT_TRUE(target_.kfd.calls.empty());
    EXPECT_TRUE(target_.driver->files.empty());
  }

  image::KfdGem& object() { return render_.objects.kfd_gem.front(); }

  image::KfdFile process_;
  image::RenderFile render_;
  std::optional<image::RenderFile> more_;
};

TEST_F(KfdObjectsImage, of_this_test_is_good) {
  const auto status = restore();
  ASSERT_TRUE(status.ok()) << status.error().message();
  EXPECT_EQ(restored().gem.at(kUnmapped).mappings, object().mappings);
}

TEST_F(KfdObjectsImage, with_memory_that_no_bo_has_is_refused_before_anything_is_made) {
  object().inode = kInode + 1;
  expect_invalid({"invalid image", "file 9", "GEM object 2147483646", "no BO of process 77"});
}

TEST_F(KfdObjectsImage, with_another_size_than_its_bo_is_refused_before_anything_is_made) {
  object().size = kSize + 4096;
  expect_invalid({"invalid image", "GEM object 2147483646", "the BO has 81920 bytes"});
}

TEST_F(KfdObjectsImage, with_a_bo_that_has_no_contents_is_refused_before_anything_is_made) {
  object().inode = kInode + 1;
  process_.bos.push_back({{0x5000, kSize, 0, kUserGpu, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR}, 4, kInode + 1});
  expect_invalid({"no BO of process 77"});
}

TEST_F(KfdObjectsImage, of_a_gpu_that_the_process_does_not_use_is_refused_before_anything_is_made) {
  process_.devices = {{kUserGpu, kGpu}};
  more_ = render_;
  expect_invalid({"invalid image", "file 10", "second render node of the same GPU"});
}

TEST_F(KfdObjectsImage, each_impossible_object_is_refused_before_anything_is_made) {
  const image::RenderFile good = render_;
  struct Bad {
    const char* says;
    void (*change)(image::RenderFile&);
  };
  for (const Bad& bad :
       {Bad{"another handle of the file has the same memory",
            [](image::RenderFile& r) {
              r.objects.kfd_gem.push_back(r.objects.kfd_gem[0]);
              r.objects.kfd_gem[1].handle = 3;
              r.objects.kfd_gem[1].mappings.clear();
            }},
        Bad{"GEM object 2147483646 is impossible or there twice",
            [](image::RenderFile& r) {
              r.objects.kfd_gem.push_back(r.objects.kfd_gem[0]);
              r.objects.kfd_gem[1].inode = 1;
            }},
        Bad{"GEM object 0", [](image::RenderFile& r) { r.objects.kfd_gem[0].handle = 0; }},
        Bad{"impossible mapping", [](image::RenderFile& r) { r.objects.kfd_gem[0].mappings[0].offset = 4096; }},
        Bad{"impossible mapping", [](image::RenderFile& r) { r.objects.kfd_gem[0].mappings[0].size = 2 * kSize; }},
        Bad{"impossible mapping", [](image::RenderFile& r) { r.objects.kfd_gem[0].mappings[0].addr = 1; }},
        Bad{"two mappings",
            [](image::RenderFile& r) {
              r.objects.kfd_gem[0].mappings.push_back({kReserved + 4096, 4096, 0, 2});
            }},
        Bad{"size or inode", [](image::RenderFile& r) { r.objects.kfd_gem[0].inode = 0; }},
        Bad{"size or inode", [](image::RenderFile& r) { r.objects.kfd_gem[0].size = 100; }},
        Bad{"metadata", [](image::RenderFile& r) { r.objects.kfd_gem[0].metadata.resize(257); }},
        Bad{"unknown whose VM", [](image::RenderFile& r) { r.binding = image::Binding::kUnknown; }},
        Bad{"unknown whose VM", [](image::RenderFile& r) { r.owner = 0; }},
        Bad{"whose VM KFD does not use", [](image::RenderFile& r) {
              r.binding = image::Binding::kOther;
              r.owner = 0;
            }}}) {
    render_ = good;
    bad.change(render_);
    SCOPED_TRACE(bad.says);
    expect_invalid({bad.says});
  }
}

// ---- faults ----

TEST_F(KfdObjectsTest, a_dump_that_fails_at_any_call_lets_the_program_run) {
  bool succeeded = false;
  for (std::uint64_t call = 1; !succeeded; call += os::fail_step()) {
    const auto descriptors = open_descriptors();
    os::fail_call(call, EIO);
    const auto status = dump();
    succeeded = os::failed_call().empty();
    os::fail_call(0, 0);
    EXPECT_TRUE(status.ok() || source_.kfd.all_run()) << call;
    for (auto& process : source_.kfd.processes) process.pause_ends.clear();
    // After a success the pauses last as long as CRIU.
    if (!status.ok()) {
      EXPECT_EQ(open_descriptors(), descriptors) << call;
      EXPECT_TRUE(std::filesystem::is_empty(images_.path())) << call;
    }
    for (const auto& entry : std::filesystem::directory_iterator(images_.path())) std::filesystem::remove(entry.path());
    EXPECT_TRUE(!succeeded || status.ok());
  }
}

TEST_F(KfdObjectsTest, a_restore_that_fails_at_any_call_says_so_or_has_all) {
  const auto status = dump();
  ASSERT_TRUE(status.ok()) << status.error().message();
  write_criu_images();
  bool succeeded = false;
  for (std::uint64_t call = 1; !succeeded; call += os::fail_step()) {
    target_.driver->files.clear();
    target_.kfd.restored_files.clear();
    os::fail_call(call, EIO);
    restore_.emplace(target_.services);
    const auto fd = restore_file(kKfdId);
    const std::string failed = os::failed_call();
    succeeded = failed.empty();
    os::fail_call(0, 0);
    SCOPED_TRACE(failed + " fails as call " + std::to_string(call));
    // CRIU asks for this file, too, and a file of the image that could not be read is the answer then.
    if (fd.ok() && restore_file(kRenderId).ok()) expect_restored();
  }
}

}  // namespace
}  // namespace plugin
