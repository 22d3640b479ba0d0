// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Sync files from the dump to the restore: which come back, and which are refused by name. A memfd stands in for one.
#include "plugin/sync_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "kfd/fake_kfd.h"
#include "plugin/dump.h"
#include "plugin/fake_render_driver.h"
#include "plugin/image/catalogue.h"
#include "plugin/preflight.h"
#include "plugin/render_holders.h"
#include "plugin/restore.h"
#include "plugin/test_program.h"
#include "plugin/test_support.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;
using sync_file::State;
using testing::FakeCriu;
using testing::FakeCriuImages;
using testing::FakeMachine;
using testing::FakeRenderDriver;
using testing::open_descriptors;
using testing::TempDir;
using testing::TestProgram;
using testing::write_file;

constexpr std::uint32_t kRenderId = 9, kSyncId = 12, kPid = 77;
constexpr std::uint32_t kGpu = 0x1111, kOtherGpu = 0x2222;

// One machine.
struct Fakes {
  explicit Fakes(const std::string& images) : criu(images) {
    services.render.driver = driver;
    services.options.fence_timeout = std::chrono::seconds(0);
    services.find_render_client = [](int) -> Result<std::optional<render_holders::Client>> {
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
      criu,      system,
      kfd,       [](int, const Options&) -> Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{}, {}};
};

class SyncFileTest : public ::testing::Test {
 protected:
  SyncFileTest() {
    source_.machine.add_gpu(1, kGpu, 128);
    target_.machine.add_gpu(1, kOtherGpu, 128);
    target_.criu.task = kPid;
    source_.driver->file(render_.get());  // the fake keeps a descriptor of each file it has seen
    source_.services.find_sync_file = [this](int fd) -> Result<std::optional<sync_file::Info>> {
      struct stat wanted {
      }, found{};
      EXPECT_EQ(::fstat(file_.get(), &wanted), 0);
      EXPECT_EQ(::fstat(fd, &found), 0);
      if (wanted.st_ino != found.st_ino) return std::optional<sync_file::Info>();
      if (pending_ > 0) {
        --pending_;
        return std::optional<sync_file::Info>({State::kPending, "a name"});
      }
      return std::optional<sync_file::Info>({state_, "a name"});
    };
    target_.services.create_sync_file = [this](int render, const std::string& name) -> Result<UniqueFd> {
      struct stat status {};
      EXPECT_EQ(::fstat(render, &status), 0);
      EXPECT_EQ(status.st_rdev, makedev(1, 5)) << "another device than the render node";
      if (create_errno_ != 0) return Error(create_errno_, "DRM_IOCTL_SYNCOBJ_CREATE");
      created_.push_back(name);
      return UniqueFd(::memfd_create("made", MFD_CLOEXEC));
    };
  }

  Status dump() {
    const TestProgram program(source_.machine, kPid, {render_.get()});
    program.show(file_.get(), sync_file::kPath);
    Dump dump(source_.services, 5);
    Status status;
    for (const auto& [fd, id] : {std::pair{file_.get(), kSyncId}, std::pair{render_.get(), kRenderId}})
      if (auto claim = dump.dump_file(fd, id); !claim.ok() && status.ok()) status = std::move(claim).error();
    const Dump::End end = dump.finish(status.ok() ? 0 : 1);
    if (status.ok() && !end.errors.empty()) return end.errors.front();
    return status;
  }

  void expect_refused(const std::vector<std::string>& words) {
    const std::size_t descriptors = open_descriptors();
    const Status status = dump();
    ASSERT_FALSE(status.ok());
    for (const std::string& word : words)
      EXPECT_NE(status.error().message().find(word), std::string::npos) << status.error().message();
    EXPECT_TRUE(std::filesystem::is_empty(images_.path()));
    EXPECT_EQ(open_descriptors(), descriptors);
  }

  Result<UniqueFd> restore() {
    FakeCriuImages images;
    images.tasks[kPid] = {0, {kPid}, {{200, kRenderId}, {201, kSyncId}}, {}};
    images.write(images_.path());
    Restore restore(target_.services);
    restore.prepare();
    ASSIGN_OR_RETURN(const auto fd, restore.restore_file(kSyncId));
    if (!fd) return Error(ENOENT, "not ours");
    return UniqueFd(*fd);
  }

  TempDir images_;
  Fakes source_{images_.path()};
  Fakes target_{images_.path()};
  UniqueFd render_{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
  UniqueFd file_{::memfd_create("sync file", MFD_CLOEXEC)};
  State state_ = State::kFinished;
  int pending_ = 0;  // how often it is asked before its work has finished
  int create_errno_ = 0;
  std::vector<std::string> created_;
};

TEST_F(SyncFileTest, of_finished_work_comes_back_with_its_name_and_flags) {
  ASSERT_EQ(::fcntl(file_.get(), F_SETFL, O_NONBLOCK), 0);
  const Status dumped = dump();
  ASSERT_TRUE(dumped.ok()) << dumped.error().message();
  const auto restored = restore();
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  EXPECT_EQ(created_, std::vector<std::string>{"a name"});
  EXPECT_NE(::fcntl(restored->get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(SyncFileTest, of_work_in_flight_is_waited_for) {
  source_.services.options.fence_timeout = std::chrono::minutes(1);
  pending_ = 3;
  const Status dumped = dump();
  ASSERT_TRUE(dumped.ok()) << dumped.error().message();
  EXPECT_EQ(pending_, 0);
}

TEST_F(SyncFileTest, of_work_that_does_not_end_is_refused_by_name) {
  pending_ = 1000;
  expect_refused({"program77", "descriptor " + std::to_string(file_.get()), "a sync file", "does not finish"});
}

TEST_F(SyncFileTest, of_work_that_has_failed_is_refused_by_name) {
  state_ = State::kFailed;
  expect_refused({"program77", "descriptor " + std::to_string(file_.get()), "a sync file", "its work has failed"});
}

TEST_F(SyncFileTest, without_an_open_render_node_is_refused) {
  Tree tree;
  tree.tasks.push_back({77, kPid, "program77", {}});
  tree.files.push_back({UniqueFd(::dup(file_.get())), {DeviceKind::kSyncFile, 0}, {{0, 5}}});
  const Status status = preflight::refuse_sync_files(source_.services, tree);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("descriptor 5 (a sync file): no program has a render node"),
            std::string::npos)
      << status.error().message();
}

// CRIU and its other plugins decide, as without this one.
TEST_F(SyncFileTest, of_a_program_without_a_gpu_is_not_ours) {
  const TestProgram program(source_.machine, kPid, {});
  program.show(file_.get(), sync_file::kPath);
  pending_ = 1000;
  Dump dump(source_.services, 5);
  const auto claim = dump.dump_file(file_.get(), kSyncId);
  ASSERT_TRUE(claim.ok()) << claim.error().message();
  EXPECT_EQ(*claim, Claim::kNotMine);
  EXPECT_TRUE(dump.finish(0).errors.empty());
}

TEST_F(SyncFileTest, that_cannot_be_made_fails_the_restore) {
  ASSERT_TRUE(dump().ok());
  create_errno_ = EOPNOTSUPP;
  const std::size_t descriptors = open_descriptors();
  const auto restored = restore();
  ASSERT_FALSE(restored.ok());
  EXPECT_NE(restored.error().message().find("making a sync file: DRM_IOCTL_SYNCOBJ_CREATE"), std::string::npos)
      << restored.error().message();
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(SyncFile, is_what_procfs_calls_so) {
  const TempDir proc;
  const UniqueFd file(::memfd_create("no sync file", MFD_CLOEXEC));
  const std::string link = proc.path() + "/self/fd/" + std::to_string(file.get());
  EXPECT_FALSE(*sync_file::info_of(proc.path(), file.get()));
  std::filesystem::create_directories(proc.path() + "/self/fd");
  for (const char* const other : {"anon_inode:sync_files", "anon_inode:sync", "anon_inode:[eventfd]"}) {
    std::filesystem::create_symlink(other, link);
    const auto info = sync_file::info_of(proc.path(), file.get());
    EXPECT_TRUE(info.ok() && !info->has_value()) << other;
    std::filesystem::remove(link);
  }
  std::filesystem::create_symlink(sync_file::kPath, link);
  const auto info = sync_file::info_of(proc.path(), file.get());
  ASSERT_FALSE(info.ok()) << "a memfd has no such ioctl";
  EXPECT_NE(info.error().message().find("SYNC_IOC_FILE_INFO"), std::string::npos) << info.error().message();
}

}  // namespace
}  // namespace plugin
