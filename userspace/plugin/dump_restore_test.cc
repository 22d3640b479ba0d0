// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Dump and restore from end to end over a fake KFD and a machine made of files, failing at each step.
#include <gtest/gtest.h>
#include <linux/kcmp.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "kfd/fake_kfd.h"
#include "plugin/copy/fake_sdma_engine.h"
#include "plugin/copy/sdma_copier.h"
#include "plugin/dump.h"
#include "plugin/image/version_1.h"
#include "plugin/restore.h"
#include "plugin/test_program.h"
#include "plugin/test_support.h"

namespace plugin {
namespace {

using base::UniqueFd;
using testing::FakeCriu;
using testing::FakeMachine;
using testing::open_descriptors;
using testing::read_file;
using testing::TempDir;
using testing::TestProgram;
using testing::write_file;

constexpr std::uint32_t kKfdId = 4;
constexpr std::uint32_t kRenderId = 9;
constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kOtherGpu = 0x2222;
constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
constexpr std::uint32_t kUserptr = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
constexpr std::uint64_t kBoAddr = 0x7f0000000000;
constexpr std::uint64_t kBoOffset = 0x100000000;
constexpr std::size_t kBoSize = 3 * 1024 * 1024 + 4096;

std::vector<std::byte> contents() {
  std::vector<std::byte> bytes(kBoSize);
  for (std::size_t i = 0; i < bytes.size(); i += 3) bytes[i] = static_cast<std::byte>(i / 3);
  return bytes;
}

bool same_file(int a, int b) { return ::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, a, b) == 0; }

// The fakes of one machine: its files, CRIU and KFD. Dump and restore may use different ones.
struct Fakes {
  explicit Fakes(const std::string& images) : criu(images) {}

  FakeMachine machine;
  FakeCriu criu;
  System system{machine.roots()};
  kfd::FakeKfd kfd;
  Services services{
      criu, system, kfd,
      [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{}};
};

class DumpRestoreTest : public ::testing::Test {
 protected:
  DumpRestoreTest() {
    source_.machine.add_gpu(1, kGpu, 128);
    source_.kfd.devices = {{kGpu, kGpu}};
    source_.kfd.bos = {{{kBoAddr, kBoSize, kBoOffset, kGpu, kVram}, contents()},
                       {{0x5000, 4096, 0, kGpu, kUserptr}, {}}};
    source_.kfd.priv_data.assign(64, std::byte{0x5a});
    source_.kfd.num_objects = 2;
    source_.kfd.pid = 77;
    target_.criu.task = 77;
    write_file(source_.machine.root() + "/proc/sys/kernel/osrelease", "6.12.0\n");
    source_.services.render.objects = [](int, std::uint32_t) -> base::Result<std::string> { return std::string(); };
    source_.services.count_references = [](int) -> base::Result<std::uint64_t> { return testing::kReferencesOfOne; };
    source_.services.render.has_metadata = [](int, int) -> base::Result<bool> { return false; };
    source_.services.render.may_map = [](int, std::uint64_t) -> base::Result<std::optional<bool>> {
      return std::optional<bool>(true);
    };
  }

  // The program has the two files, and the mappings `maps_`.
  void dump_all() {
    const TestProgram program(source_.machine, 77, {kfd_file_.get(), render_file_.get()}, maps_);
    Dump dump(source_.services, 5);
    const auto render = dump.dump_file(render_file_.get(), kRenderId);
    ASSERT_TRUE(render.ok()) << render.error().message();
    const auto kfd = dump.dump_file(kfd_file_.get(), kKfdId);
    ASSERT_TRUE(kfd.ok()) << kfd.error().message();
    EXPECT_TRUE(dump.finish(0).errors.empty());
  }

  TempDir images_;
  Fakes source_{images_.path()};
  Fakes target_{images_.path()};
  std::string maps_;
  UniqueFd kfd_file_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  UniqueFd render_file_{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
};

TEST_F(DumpRestoreTest, contents_and_state_arrive_on_another_gpu_under_the_old_name) {
  dump_all();
  target_.machine.add_gpu(1, kOtherGpu, 130);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  ASSERT_TRUE(fd->has_value());
  const UniqueFd owned(**fd);
  const kfd::RestoreRequest& request = *target_.kfd.restored;
  ASSERT_EQ(request.devices.size(), 1U);
  EXPECT_EQ(request.devices[0].user_id, kGpu);
  EXPECT_EQ(request.devices[0].actual_id, kOtherGpu);
  EXPECT_EQ(request.num_objects, 2U);
  EXPECT_EQ(request.priv_data, source_.kfd.priv_data);
  ASSERT_EQ(request.bos.size(), 2U);
  EXPECT_EQ(target_.kfd.restored_contents(0), contents());
}

TEST_F(DumpRestoreTest, how_long_they_took_is_in_the_log_and_in_the_image) {
  dump_all();
  EXPECT_TRUE(source_.criu.has_informed("GPU queues were paused for "));
  const auto images = image::Catalogue::read(source_.criu.image_dir());
  ASSERT_TRUE(images.ok());
  const auto& timing = images->sessions().front()->timing;
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->copied_bytes, kBoSize);
  EXPECT_GT(timing->stored_bytes, 0U);
  EXPECT_GE(timing->paused_us, timing->copying_us);
  EXPECT_GT(timing->copying_us, 0U);
  EXPECT_EQ(timing->gpu_us, 0U);  // the CPU has copied
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const UniqueFd owned(**fd);
  EXPECT_TRUE(target_.criu.has_informed("GPU memory of process 77: 3 MiB in "));
}

TEST_F(DumpRestoreTest, a_dump_that_would_replace_what_the_one_before_needs_is_refused) {
  dump_all();
  const TempDir second;
  const auto link = [](const std::string& from, const std::string& to) {
    std::filesystem::create_directory_symlink(std::filesystem::relative(to, from), from + "/parent");
  };
  link(second.path(), images_.path());
  source_.criu.command_line = {"dump", "--prev-images-dir", "../x"};
  source_.criu.use_dir(second.path());
  dump_all();
  link(images_.path(), second.path());
  source_.criu.use_dir(images_.path());
  const TestProgram program(source_.machine, 77, {kfd_file_.get(), render_file_.get()}, maps_);
  Dump dump(source_.services, 6);
  const auto refused = dump.dump_file(render_file_.get(), kRenderId);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("dump into another directory"), std::string::npos);
  (void)dump.finish(-1);
  EXPECT_TRUE(std::filesystem::exists(images_.path() + "/" + image::pages_name(kKfdId)));
}

// CRIU makes the link `parent` for --prev-images-dir.
TEST_F(DumpRestoreTest, a_dump_refers_to_the_contents_of_the_one_before) {
  dump_all();
  EXPECT_FALSE(source_.criu.has_informed("contents that are those of the dump before"));
  const TempDir second;
  const auto parent = std::filesystem::relative(images_.path(), second.path());
  std::filesystem::create_directory_symlink(parent, second.path() + "/parent");
  source_.criu.use_dir(second.path());
  // CRIU was not told of it: the link is that of another dump.
  dump_all();
  EXPECT_TRUE(std::filesystem::exists(second.path() + "/" + image::pages_name(kKfdId)));
  source_.criu.command_line = {"dump", "--prev-images-dir", "../1"};
  dump_all();
  EXPECT_TRUE(source_.criu.has_informed("contents that are those of the dump before"));
  EXPECT_FALSE(std::filesystem::exists(second.path() + "/" + image::pages_name(kKfdId)));
  Fakes target{second.path()};
  target.criu.task = 77;
  target.machine.add_gpu(1, kOtherGpu, 130);
  Restore restore(target.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const UniqueFd owned(**fd);
  EXPECT_EQ(target.kfd.restored_contents(0), contents());
}

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// CRIU enters namespaces of the programs between two hooks, which Linux refuses to a process of several threads.
TEST_F(DumpRestoreTest, no_thread_is_left_when_a_hook_returns) {
  const TestProgram program(source_.machine, 77, {kfd_file_.get(), render_file_.get()}, maps_);
  const auto before = threads();
  std::ptrdiff_t most = 0;
  source_.services.make_copier = [&most](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    most = std::max(most, threads());
    return copy::make_cpu_copier();
  };
  Dump dump(source_.services, 5);
  for (const auto& [fd, id] : {std::pair{render_file_.get(), kRenderId}, std::pair{kfd_file_.get(), kKfdId}}) {
    ASSERT_TRUE(dump.dump_file(fd, id).ok());
    EXPECT_EQ(threads(), before);
  }
  EXPECT_GT(most, before);
  EXPECT_TRUE(dump.finish(0).errors.empty());
}

// Dump and restore by a copier that has many BOs under way. Contents are stored in the order of the BOs, though two
// GPUs have them in turns.
TEST_F(DumpRestoreTest, contents_of_two_gpus_arrive_by_sdma) {
  constexpr std::size_t kCount = 40;
  constexpr std::size_t kSmall = 8192;
  copy::FakeSdma dumped;
  copy::FakeSdma restored;
  const auto copiers_on = [](copy::FakeSdma& sdma) {
    return [&sdma](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
      const auto& format = packets::sdma::kFormat4;
      return copy::make_sdma_copier(std::make_unique<copy::FakeSdmaEngine>(sdma, format), format);
    };
  };
  source_.services.make_copier = copiers_on(dumped);
  target_.services.make_copier = copiers_on(restored);
  source_.machine.add_gpu(2, kOtherGpu, 129);
  source_.kfd.devices.push_back({kOtherGpu, kOtherGpu});
  source_.kfd.bos.clear();
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint64_t place = 0x100000ULL * (i + 1);
    const auto byte = static_cast<std::byte>(i % 5 == 0 ? 0 : i);
    const std::uint32_t gpu = i / 4 % 2 == 0 ? kGpu : kOtherGpu;
    source_.kfd.bos.push_back({{kBoAddr + place, kSmall, kBoOffset + place, gpu, kVram}, std::vector(kSmall, byte)});
  }
  dump_all();
  EXPECT_LE(dumped.bos_of_submissions.size(), kCount / 4);
  target_.machine.add_gpu(1, kGpu, 128);
  target_.machine.add_gpu(2, kOtherGpu, 129);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const UniqueFd owned(**fd);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(target_.kfd.restored_contents(i), source_.kfd.bos[i].contents) << i;
  EXPECT_EQ(restored.bos_of_submissions.size(), 2U);  // one of each GPU
  EXPECT_EQ(restored.filled, kCount / 5 * kSmall);
}

TEST_F(DumpRestoreTest, a_program_restored_before_can_be_dumped_and_restored_again) {
  // User id and actual id differ since the first restore.
  source_.kfd.devices = {{kOtherGpu, kGpu}};
  for (auto& bo : source_.kfd.bos) bo.bo.user_gpu_id = kOtherGpu;
  dump_all();
  target_.machine.add_gpu(1, 0x3333, 128);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const UniqueFd owned(**fd);
  EXPECT_EQ(target_.kfd.restored->devices[0].user_id, kOtherGpu);
  EXPECT_EQ(target_.kfd.restored->devices[0].actual_id, 0x3333U);
  EXPECT_EQ(target_.kfd.restored_contents(0), contents());
}

TEST_F(DumpRestoreTest, kfd_and_the_program_share_one_render_file_whichever_comes_first) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  for (const auto& order : {std::array{kKfdId, kRenderId}, std::array{kRenderId, kKfdId}}) {
    Restore restore(target_.services);
    std::map<std::uint32_t, UniqueFd> files;
    for (const std::uint32_t id : order) {
      const auto fd = restore.restore_file(id);
      ASSERT_TRUE(fd.ok()) << fd.error().message();
      files[id].reset(**fd);
    }
    EXPECT_TRUE(same_file(files[kRenderId].get(), target_.kfd.restored->devices[0].drm_fd));
  }
}

TEST_F(DumpRestoreTest, descriptors_that_stay_open_are_out_of_the_programs_way) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok());
  const UniqueFd owned(**fd);
  const int parked = target_.kfd.restored->devices[0].drm_fd;
  EXPECT_EQ(parked, 900);
  EXPECT_EQ(::fcntl(parked, F_GETFD), FD_CLOEXEC);
}

TEST_F(DumpRestoreTest, with_two_gpus_no_descriptor_stays_at_a_number_of_the_programs) {
  source_.machine.add_gpu(2, kOtherGpu, 129);
  source_.kfd.devices.push_back({kOtherGpu, kOtherGpu});
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  target_.machine.add_gpu(2, kOtherGpu, 129);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const UniqueFd owned(**fd);
  const auto& devices = target_.kfd.restored->devices;
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_NE(devices[0].drm_fd, devices[1].drm_fd);
  for (const auto& device : devices) EXPECT_GE(device.drm_fd, target_.criu.unused_fd());
}

TEST_F(DumpRestoreTest, a_gpu_that_was_only_opened_is_needed_and_the_refusal_says_why) {
  source_.machine.add_gpu(2, kOtherGpu, 129);
  source_.kfd.devices.push_back({kOtherGpu, kOtherGpu});
  source_.kfd.bos.push_back({{0x6000, 4096, 0, kOtherGpu, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP}, {}});
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("no memory on GPU " + std::to_string(kOtherGpu) + ","), std::string::npos)
      << fd.error().message();
  EXPECT_NE(fd.error().message().find("this machine has no 2 GPUs"), std::string::npos) << fd.error().message();
  EXPECT_TRUE(target_.kfd.calls.empty());
}

TEST_F(DumpRestoreTest, after_the_mappings_only_the_programs_own_descriptors_are_left) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  const auto before = open_descriptors();
  Restore restore(target_.services);
  const auto kfd_fd = restore.restore_file(kKfdId);
  const auto render_fd = restore.restore_file(kRenderId);
  ASSERT_TRUE(kfd_fd.ok() && render_fd.ok());
  const UniqueFd kfd(**kfd_fd);
  const UniqueFd render(**render_fd);
  const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr + 0x1000, kBoOffset + 0x1000);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ((*answer)->offset, kfd::fake_restored_offset(0) + 0x1000);
  EXPECT_EQ((*answer)->fd, render.get());  // CRIU before 3.19 duplicates what it is given
  // The fake keeps one of each file that it was given.
  EXPECT_EQ(open_descriptors(), before + 4);
}

// Each GPU has a BO; the program has the render file of the first GPU only.
TEST_F(DumpRestoreTest, of_64_gpus_only_the_programs_own_descriptors_are_left) {
  constexpr std::uint32_t kGpus = 64;
  for (std::uint32_t i = 1; i < kGpus; ++i) {
    source_.machine.add_gpu(1 + i, kGpu + i, 128 + i);
    source_.kfd.devices.push_back({kGpu + i, kGpu + i});
    source_.kfd.bos.push_back(
        {{kBoAddr + i * (16 * kBoSize), kBoSize, kBoOffset + i * (16 * kBoSize), kGpu + i, kVram}, contents()});
  }
  dump_all();
  for (std::uint32_t i = 0; i < kGpus; ++i) target_.machine.add_gpu(1 + i, kGpu + i, 128 + i);
  const auto before = open_descriptors();
  Restore restore(target_.services);
  const auto kfd_fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(kfd_fd.ok()) << kfd_fd.error().message();
  const auto render_fd = restore.restore_file(kRenderId);
  ASSERT_TRUE(render_fd.ok()) << render_fd.error().message();
  const UniqueFd kfd(**kfd_fd);
  const UniqueFd render(**render_fd);
  ASSERT_EQ(target_.kfd.restored->devices.size(), kGpus);
  const auto answer = restore.update_vma("/dev/dri/renderD128", kBoAddr, kBoOffset);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  // The fake keeps one descriptor of each file that it was given; those of BOs are closed when they are filled.
  EXPECT_EQ(open_descriptors(), before + 2 + (kGpus + 1));
}

TEST_F(DumpRestoreTest, a_criu_that_takes_the_descriptor_gets_one_of_its_own) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  target_.criu.new_rule = true;
  Restore restore(target_.services);
  const auto kfd_fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(kfd_fd.ok());
  const UniqueFd kfd(**kfd_fd);
  const auto answer = restore.update_vma("//dev/dri/renderD128", kBoAddr, kBoOffset);
  ASSERT_TRUE(answer.ok() && answer->has_value());
  const UniqueFd copy((*answer)->fd);
  EXPECT_NE(copy.get(), target_.kfd.restored_files[1].get());
  EXPECT_TRUE(same_file(copy.get(), target_.kfd.restored_files[1].get()));
}

TEST_F(DumpRestoreTest, mappings_of_dev_kfd_follow_the_gpu) {
  dump_all();
  target_.machine.add_gpu(1, kOtherGpu, 128);
  Restore restore(target_.services);
  const auto kfd_fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(kfd_fd.ok());
  const UniqueFd kfd(**kfd_fd);
  const auto answer = restore.update_vma("/dev/kfd", 0x1000, (3ULL << 62) | (std::uint64_t{kGpu} << 46));
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_EQ((*answer)->offset, (3ULL << 62) | (std::uint64_t{kOtherGpu} << 46));
  EXPECT_TRUE(same_file((*answer)->fd, kfd.get()));
}

TEST_F(DumpRestoreTest, a_mapping_that_no_bo_explains_is_an_error_and_a_foreign_path_is_not_ours) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  target_.criu.task = 78;
  EXPECT_FALSE(*restore.update_vma("/dev/dri/renderD128", kBoAddr, 0x42000));  // a task without KFD
  target_.criu.task = 77;
  const auto kfd_fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(kfd_fd.ok());
  const UniqueFd kfd(**kfd_fd);
  EXPECT_FALSE(restore.update_vma("/dev/dri/renderD128", kBoAddr, 0x42000).ok());
  EXPECT_FALSE(*restore.update_vma("/dev/nvidia0", kBoAddr, kBoOffset + 0x5000));
}

TEST_F(DumpRestoreTest, an_id_that_is_not_ours_is_not_claimed) {
  Restore restore(target_.services);
  const auto fd = restore.restore_file(1234);
  ASSERT_TRUE(fd.ok());
  EXPECT_FALSE(fd->has_value());
}

TEST_F(DumpRestoreTest, a_damaged_image_is_refused_before_the_kernel_is_asked) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  const std::string path = images_.path() + "/" + image::pages_name(kKfdId);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  Restore restore(target_.services);
  EXPECT_FALSE(restore.restore_file(kKfdId).ok());
  EXPECT_TRUE(target_.kfd.calls.empty());
}

TEST_F(DumpRestoreTest, damaged_contents_fail_the_restore_and_leak_no_descriptor) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  const std::string path = images_.path() + "/" + image::pages_name(kKfdId);
  std::string bytes = read_file(path);
  bytes[image::kPageSize + 77] ^= 1;
  write_file(path, bytes);
  const auto before = open_descriptors();
  {
    kfd::FakeKfd fake;
    Services services{target_.criu, target_.system, fake, target_.services.make_copier, Options{}};
    Restore restore(services);
    const auto fd = restore.restore_file(kKfdId);
    ASSERT_FALSE(fd.ok());
    EXPECT_NE(fd.error().message().find("contents of BO 0: amdgpu-pages-4.img: damaged"), std::string::npos)
        << fd.error().message();
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DumpRestoreTest, a_machine_without_a_fitting_gpu_is_refused_with_the_reason) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128, 4096);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("vram_size is 4096, needs at least"), std::string::npos) << fd.error().message();
  EXPECT_TRUE(target_.kfd.calls.empty());
}

TEST_F(DumpRestoreTest, a_restore_that_the_kernel_refuses_leaks_no_descriptor) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  target_.kfd.fail_at = "restore";
  const auto before = open_descriptors();
  {
    Restore restore(target_.services);
    EXPECT_FALSE(restore.restore_file(kKfdId).ok());
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DumpRestoreTest, a_restore_without_the_capability_says_which_one_it_needs) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  target_.kfd.fail_at = "restore";
  target_.kfd.fail_errno = EACCES;
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("in the initial user namespace"), std::string::npos) << fd.error().message();
}

TEST_F(DumpRestoreTest, only_processes_of_the_image_are_resumed) {
  dump_all();
  target_.machine.add_tracee(5000, 77, "");
  target_.machine.add_tracee(5001, 78, "");
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  const auto restored = restore.restore_file(kKfdId);
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  const UniqueFd owned(**restored);
  target_.kfd.calls.clear();
  EXPECT_EQ(*restore.resume(5001), Claim::kNotMine);
  EXPECT_EQ(*restore.resume(6000), Claim::kNotMine);
  EXPECT_EQ(*restore.resume(-1), Claim::kNotMine);
  EXPECT_TRUE(target_.kfd.calls.empty());
  EXPECT_EQ(*restore.resume(5000), Claim::kMine);
  EXPECT_EQ(target_.kfd.resumed, std::vector<pid_t>{5000});
}

TEST_F(DumpRestoreTest, a_failing_resume_names_the_process) {
  dump_all();
  target_.machine.add_tracee(77, 77, "");
  target_.machine.add_gpu(1, kGpu, 128);
  target_.kfd.fail_at = "resume";
  Restore restore(target_.services);
  const auto restored = restore.restore_file(kKfdId);
  ASSERT_TRUE(restored.ok()) << restored.error().message();
  const UniqueFd owned(**restored);
  const auto claim = restore.resume(77);
  ASSERT_FALSE(claim.ok());
  EXPECT_NE(claim.error().message().find("process 77"), std::string::npos);
}

TEST_F(DumpRestoreTest, shared_files_that_the_program_maps_are_made_again_if_missing) {
  const std::string shm = source_.machine.root() + "/dev/shm/";
  write_file(shm + "hsakmt_shared_mem", "HSAK....");
  write_file(shm + "sem.hsakmt_semaphore", "unused");
  maps_ = "7f00-7f01 rw-s 0 00:1 2   " + shm + "hsakmt_shared_mem\n";
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  restore.prepare();
  EXPECT_EQ(read_file(target_.machine.root() + "/dev/shm/hsakmt_shared_mem"), "HSAK....");
  EXPECT_FALSE(std::filesystem::exists(target_.machine.root() + "/dev/shm/sem.hsakmt_semaphore"));
}

TEST_F(DumpRestoreTest, a_semaphore_mapped_under_a_vanished_name_gets_crius_link_back) {
  const std::string shm = source_.machine.root() + "/dev/shm/";
  const std::string semaphore = shm + "sem.hsakmt_semaphore";
  write_file(semaphore, "semaphore");
  std::filesystem::create_hard_link(semaphore, shm + "link_remap.12");
  std::filesystem::create_hard_link(semaphore, shm + "not_crius");
  struct stat status {};
  ASSERT_EQ(::stat(semaphore.c_str(), &status), 0);
  maps_ = "7f00-7f01 rw-s 0 00:1 " + std::to_string(status.st_ino) + " " + shm + "sem.XbY12 (deleted)\n";
  dump_all();
  Restore(target_.services).prepare();
  const std::string restored = target_.machine.root() + "/dev/shm/";
  EXPECT_EQ(read_file(restored + "sem.hsakmt_semaphore"), "semaphore");
  EXPECT_TRUE(std::filesystem::equivalent(restored + "sem.hsakmt_semaphore", restored + "link_remap.12"));
  EXPECT_FALSE(std::filesystem::exists(restored + "not_crius"));
}

TEST_F(DumpRestoreTest, a_link_that_is_another_file_stops_the_restore_and_is_left_alone) {
  const std::string shm = source_.machine.root() + "/dev/shm/";
  write_file(shm + "sem.hsakmt_semaphore", "semaphore");
  std::filesystem::create_hard_link(shm + "sem.hsakmt_semaphore", shm + "link_remap.12");
  maps_ = "7f00-7f01 rw-s 0 00:1 2 " + shm + "sem.hsakmt_semaphore\n";
  dump_all();
  const std::string left_over = target_.machine.root() + "/dev/shm/link_remap.12";
  write_file(left_over, "other");
  target_.machine.add_gpu(1, kGpu, 128);
  const auto fd = Restore(target_.services).restore_file(kKfdId);
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("link_remap.12 is left from another restore"), std::string::npos);
  EXPECT_EQ(read_file(left_over), "other");
}

TEST_F(DumpRestoreTest, an_existing_shared_file_is_left_as_it_is) {
  write_file(source_.machine.root() + "/dev/shm/hsakmt_shared_mem", "old");
  maps_ = "7f00-7f01 rw-s 0 00:1 2 " + source_.machine.root() + "/dev/shm/hsakmt_shared_mem\n";
  write_file(target_.machine.root() + "/dev/shm/hsakmt_shared_mem", "in use");
  dump_all();
  Restore(target_.services).prepare();
  EXPECT_EQ(read_file(target_.machine.root() + "/dev/shm/hsakmt_shared_mem"), "in use");
}

TEST_F(DumpRestoreTest, a_left_over_image_of_another_dump_does_not_take_part_in_the_choice_of_gpus) {
  // Only a dump of version 1 can lie beside one of version 2; the oldest plugin wrote it there.
  dump_all();
  testing::write_version_1(images_.path());
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  const auto fd = restore.restore_file(kRenderId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  const UniqueFd owned(**fd);
}

// How often each file of a directory was opened since the counter was made, whoever opened it.
class OpenCounter {
 public:
  explicit OpenCounter(const std::string& dir) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), dir.c_str(), kEvents), 0);
  }

  // The directory itself is not counted.
  std::map<std::string, int> counts() {
    std::map<std::string, int> counts;
    alignas(inotify_event) std::array<char, 16384> buffer{};
    for (ssize_t count = 0; (count = ::read(fd_.get(), buffer.data(), buffer.size())) > 0;) {
      for (const char* at = buffer.data(); at < buffer.data() + count;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        if (event->len != 0 && (event->mask & IN_OPEN) != 0) ++counts[event->name];
        at += sizeof(*event) + event->len;
      }
    }
    return counts;
  }

 private:
  // The kernel merges an event with an equal one before it: reading and closing tell two opens apart.
  static constexpr std::uint32_t kEvents = IN_OPEN | IN_ACCESS | IN_CLOSE;

  UniqueFd fd_;
};

TEST_F(DumpRestoreTest, a_restore_opens_each_file_of_the_image_once) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  target_.machine.add_tracee(77, 77, "");
  OpenCounter opens(images_.path());
  Restore restore(target_.services);
  restore.prepare();
  const auto kfd_fd = restore.restore_file(kKfdId);
  const auto render_fd = restore.restore_file(kRenderId);
  ASSERT_TRUE(kfd_fd.ok() && render_fd.ok());
  const UniqueFd kfd(**kfd_fd);
  const UniqueFd render(**render_fd);
  EXPECT_FALSE(restore.restore_file(1234)->has_value());
  EXPECT_EQ(*restore.resume(77), Claim::kMine);
  const std::map<std::string, int> once = {{std::string(image::kManifestName), 1},
                                           {image::metadata_name(kKfdId), 1},
                                           {image::index_name(kKfdId), 1},
                                           {image::pages_name(kKfdId), 1},
                                           {image::metadata_name(kRenderId), 1}};
  EXPECT_EQ(opens.counts(), once);
}

TEST_F(DumpRestoreTest, a_prepared_restore_keeps_no_descriptor_for_criu_to_close) {
  dump_all();
  Restore restore(target_.services);
  const auto before = open_descriptors();
  restore.prepare();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DumpRestoreTest, a_task_uses_the_images_that_criu_read_before_the_fork) {
  dump_all();
  target_.machine.add_gpu(1, kGpu, 128);
  Restore restore(target_.services);
  restore.prepare();
  const pid_t task = ::fork();
  if (task == 0) {
    OpenCounter opens(images_.path());
    const auto fd = restore.restore_file(kKfdId);
    const bool is_right = fd.ok() && target_.kfd.restored_contents(0) == contents() &&
                          opens.counts() == std::map<std::string, int>{{image::pages_name(kKfdId), 1}};
    ::_exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(task, &status, 0), task);
  EXPECT_EQ(status, 0);
}

TEST_F(DumpRestoreTest, an_empty_directory_is_prepared_without_a_word) {
  Restore(target_.services).prepare();
  EXPECT_TRUE(target_.criu.warnings.empty());
}

}  // namespace
}  // namespace plugin
