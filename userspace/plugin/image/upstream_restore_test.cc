// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Images of CRIU's own amdgpu plugin go through the same restore as ours. They are made by upstream_made.h.
#include <gtest/gtest.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>

#include "kfd/fake_kfd.h"
#include "plugin/fake_criu_restore.h"
#include "plugin/image/upstream_made.h"
#include "plugin/restore.h"
#include "plugin/saved_files.h"
#include "plugin/test_support.h"

namespace plugin {
namespace {

using base::UniqueFd;
using image::testing::Age;
using image::testing::MadeDump;
using testing::FakeCriu;
using testing::FakeCriuImages;
using testing::FakeMachine;
using testing::TempDir;
using testing::write_file;

constexpr std::uint32_t kKfdId = 28;
constexpr std::uint32_t kRenderId = 30;
constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kOtherGpu = 0x2222;
constexpr std::uint64_t kAddr = 0x7f0000000000;
constexpr std::uint64_t kOffset = 0x100000000;
constexpr std::size_t kSize = 3 * 1024 * 1024 + 4096;

class UpstreamRestoreTest : public ::testing::Test {
 protected:
  UpstreamRestoreTest() {
    dump_.gpus = {kGpu};
    dump_.priv_data = "the kernel's state";
    dump_.shared_size = 0;
    std::string contents(kSize, '\0');
    for (std::size_t i = 0; i < kSize; i += 3) contents[i] = static_cast<char>(i / 3);
    dump_.bos = {{{0x5000, 4096, 0, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR}, ""},
                 {{kAddr, kSize, kOffset, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, contents}};
    machine_.add_gpu(1, kOtherGpu, 130);
    criu_.task = static_cast<pid_t>(dump_.pid);
    for (const auto& [name, bytes] : dump_.files(kKfdId)) write_file(path(name), bytes);
    write_file(path("amdgpu-renderD-30.img"), MadeDump::render(Age::k3_17, kGpu));
  }

  [[nodiscard]] std::string path(const std::string& name) const { return images_.path() + "/" + name; }

  MadeDump dump_;
  TempDir images_;
  FakeMachine machine_;
  FakeCriu criu_{images_.path()};
  System system_{machine_.roots()};
  kfd::FakeKfd kfd_;
  Services services_{
      criu_, system_, kfd_,
      [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{}};
};

TEST_F(UpstreamRestoreTest, state_and_contents_arrive_on_another_gpu_under_the_old_name) {
  Restore restore(services_);
  restore.prepare();
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_TRUE(fd.ok()) << fd.error().message();
  ASSERT_TRUE(fd->has_value());
  const UniqueFd kfd(**fd);
  const kfd::RestoreRequest& request = *kfd_.restored;
  ASSERT_EQ(request.devices.size(), 1U);
  EXPECT_EQ(request.devices[0].user_id, kGpu);
  EXPECT_EQ(request.devices[0].actual_id, kOtherGpu);
  EXPECT_EQ(request.num_objects, 3U);
  EXPECT_EQ(request.priv_data.size(), dump_.priv_data.size());
  ASSERT_EQ(request.bos.size(), 2U);
  EXPECT_EQ(request.bos[1].addr, kAddr);
  const auto expected = std::as_bytes(std::span(dump_.bos[1].contents));
  EXPECT_EQ(kfd_.restored_contents(1), std::vector<std::byte>(expected.begin(), expected.end()));
  const auto render = restore.restore_file(kRenderId);
  ASSERT_TRUE(render.ok() && render->has_value());
  const UniqueFd owned(**render);
  // KFD's BOs can be mapped only through the file that KFD has.
  EXPECT_EQ(::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, owned.get(), request.devices[0].drm_fd), 0);
  const auto answer = restore.update_vma("/dev/dri/renderD128", kAddr, kOffset);
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_EQ((*answer)->offset, kfd::fake_restored_offset(1));
}

TEST_F(UpstreamRestoreTest, there_is_one_notice_that_contents_have_no_checksum) {
  Restore restore(services_);
  restore.prepare();
  EXPECT_NE(restore.notice().find("no checksums"), std::string::npos);
}

TEST_F(UpstreamRestoreTest, an_empty_directory_needs_no_notice) {
  std::filesystem::remove_all(images_.path());
  std::filesystem::create_directories(images_.path());
  Restore restore(services_);
  restore.prepare();
  EXPECT_EQ(restore.notice(), "");
}

TEST_F(UpstreamRestoreTest, a_render_node_belongs_to_the_process_that_has_it_open) {
  MadeDump second = dump_;
  second.pid = 43;
  for (const auto& [name, bytes] : second.files(29)) write_file(path(name), bytes);
  write_file(path("amdgpu-renderD-31.img"), MadeDump::render(Age::k3_17, kGpu));
  FakeCriuImages criu_images;
  criu_images.tasks[42].files = {{5, kKfdId}, {6, kRenderId}};
  criu_images.tasks[43].parent = 42;
  criu_images.tasks[43].files = {{5, 29}, {6, 31}};
  criu_images.write(images_.path());
  const auto catalogue = image::Catalogue::read(criu_.image_dir());
  ASSERT_TRUE(catalogue.ok());
  const auto tasks = CriuImages::read(criu_.image_dir());
  ASSERT_TRUE(tasks.ok()) << tasks.error().message();
  auto files = saved_files(*catalogue);
  find_owners(files, *tasks);
  std::map<std::uint32_t, std::uint32_t> owners;
  for (const SavedFile& file : files) owners[file.id] = file.owner;
  EXPECT_EQ(owners, (std::map<std::uint32_t, std::uint32_t>{{kKfdId, 42}, {29, 43}, {kRenderId, 42}, {31, 43}}));
}

TEST_F(UpstreamRestoreTest, pages_that_are_too_short_are_refused_before_the_kernel_is_asked) {
  const std::string name = path("amdgpu-pages-28-1111.img");
  std::filesystem::resize_file(name, std::filesystem::file_size(name) - 1);
  Restore restore(services_);
  restore.prepare();
  const auto fd = restore.restore_file(kKfdId);
  ASSERT_FALSE(fd.ok());
  EXPECT_NE(fd.error().message().find("amdgpu-pages-28-1111.img: truncated"), std::string::npos)
      << fd.error().message();
  EXPECT_FALSE(kfd_.restored.has_value());
}

}  // namespace
}  // namespace plugin
