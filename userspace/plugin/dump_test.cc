// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A dump as a transaction, over a fake KFD and real child processes: pauses, refusals, kinds of files, and the order of
// things at the end. Each refusal has one test, with both ABIs where both can have it.
#include "plugin/dump.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <functional>
#include <set>

#include "kfd/fake_kfd.h"
#include "plugin/fake_criu_restore.h"
#include "plugin/image/catalogue.h"
#include "plugin/queued_file.h"
#include "plugin/session.h"
#include "plugin/test_program.h"
#include "plugin/test_support.h"

namespace plugin {
namespace {

using base::UniqueFd;
using kfd::Abi;
using testing::FakeMachine;
using testing::open_descriptors;
using testing::TempDir;
using testing::TestProgram;
using testing::write_file;

constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
constexpr std::uint32_t kCoherent = KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
constexpr std::uint32_t kUserptr = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
constexpr std::uint64_t kBoAddr = 0x7f0000000000;
constexpr std::uint64_t kBoOffset = 0x100000000;
constexpr std::uint64_t kBoSize = 8192;

class LoggingCriu final : public Criu {
 public:
  explicit LoggingCriu(const std::string& dir) : dir_(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  [[nodiscard]] int image_dir() const override { return dir_.get(); }
  [[nodiscard]] int unused_fd() const override { return 900; }
  [[nodiscard]] bool takes_vma_fd() const override { return false; }
  [[nodiscard]] bool passes_files() const override { return has_fdstore; }
  [[nodiscard]] base::Result<std::vector<std::string>> arguments() const override { return command_line; }
  void inform(std::string_view message) const override { informed.emplace_back(message); }
  void warn(std::string_view message) const override {
    if (!message.empty()) warned.emplace_back(message);
  }

  bool has_fdstore = true;
  std::vector<std::string> command_line = {"dump", "-t", "7"};
  mutable std::vector<std::string> informed;
  mutable std::vector<std::string> warned;

 private:
  UniqueFd dir_;
};

// Calls back before it reads.
class WatchedCopier final : public copy::Copier {
 public:
  explicit WatchedCopier(std::function<void()> watch) : watch_(std::move(watch)), copier_(copy::make_cpu_copier()) {}
  copy::Outcome read(int dmabuf, std::uint64_t size, const copy::Sink& sink) override {
    watch_();
    return copier_->read(dmabuf, size, sink);
  }
  copy::Outcome write(int dmabuf, std::uint64_t size, copy::Source& source) override {
    return copier_->write(dmabuf, size, source);
  }

 private:
  std::function<void()> watch_;
  std::unique_ptr<copy::Copier> copier_;
};

UniqueFd open_device(const char* path, int flags = 0) { return UniqueFd(::open(path, O_RDWR | O_CLOEXEC | flags)); }
UniqueFd open_kfd() { return open_device("/dev/null"); }
UniqueFd open_render() { return open_device("/dev/zero"); }

kfd::FakeKfd::FakeBo vram_bo(std::uint32_t handle) {
  return {{kBoAddr + handle * 0x100000ULL, kBoSize, kBoOffset + handle * 0x100000ULL, kGpu, kVram},
          std::vector<std::byte>(kBoSize, std::byte{static_cast<unsigned char>(handle)}),
          handle,
          0,
          false};
}

class DumpTest : public ::testing::TestWithParam<Abi> {
 protected:
  DumpTest() {
    machine_.add_gpu(1, kGpu, 128);
    write_file(machine_.root() + "/proc/sys/kernel/osrelease", "6.12.0-test\n");
    kfd_.abi = GetParam();
    give_state(kfd_.processes.front(), 77);
    services_.render.objects = [](int, std::uint32_t) -> base::Result<std::string> { return std::string(); };
    services_.render.may_map = [](int, std::uint64_t) -> base::Result<std::optional<bool>> {
      return std::optional<bool>(true);
    };
    services_.count_references = [](int) -> base::Result<std::uint64_t> { return testing::kReferencesOfOne; };
    services_.render.is_home = [](int, int, std::uint64_t) -> base::Result<bool> { return true; };
    services_.render.alloc_flags = [](int, int) -> base::Result<std::uint32_t> { return kCoherent; };
    services_.render.has_metadata = [](int, int) -> base::Result<bool> { return false; };
  }

  static void give_state(kfd::FakeProcess& process, std::uint32_t pid) {
    process.pid = pid;
    process.devices = {{kGpu, kGpu}};
    process.bos = {vram_bo(1), {{0x5000, 4096, 0, kGpu, kUserptr}, {}, 2, 0, false}};
    process.priv_data.assign(64, std::byte{0x5a});
    process.num_objects = 2;
  }

  // Another process, with a program that has opened `file`.
  kfd::FakeProcess& add_process(std::uint32_t pid, const UniqueFd& file) {
    kfd::FakeProcess& process = kfd_.add_process(pid);
    give_state(process, pid);
    kfd_.add_file(file.get(), process);
    programs_.push_back(std::make_unique<TestProgram>(machine_, pid, std::vector<int>{file.get()}));
    return process;
  }

  // The program of the first process, with the one file `kfd_file_` and what else is given.
  TestProgram& start(std::vector<int> others = {}, const std::string& maps = {}) {
    others.insert(others.begin(), kfd_file_.get());
    kfd_.add_file(kfd_file_.get(), kfd_.processes.front());
    programs_.push_back(std::make_unique<TestProgram>(machine_, 77, others, maps));
    return *programs_.back();
  }

  base::Result<Claim> save(const UniqueFd& file, std::uint32_t id) { return dump_->dump_file(file.get(), id); }

  void expect_saved(const UniqueFd& file, std::uint32_t id) {
    const auto claim = save(file, id);
    ASSERT_TRUE(claim.ok()) << claim.error().message();
    EXPECT_EQ(*claim, Claim::kMine);
  }

  // The dump of the first program is refused, says why, and leaves everything as it was.
  void expect_refused(const std::vector<std::string>& words) {
    write_file(images_.path() + "/amdgpu-4.img", "of an older dump");
    const auto claim = save(kfd_file_, 4);
    ASSERT_FALSE(claim.ok());
    for (const std::string& word : words)
      EXPECT_NE(claim.error().message().find(word), std::string::npos) << claim.error().message();
    const auto again = save(kfd_file_, 4);
    EXPECT_FALSE(again.ok());
    expect_failed_end();
    EXPECT_TRUE(std::filesystem::exists(images_.path() + "/amdgpu-4.img"));
  }

  // CRIU ends the dump, because a hook has failed.
  void expect_failed_end() {
    const Dump::End end = dump_->finish(1);
    EXPECT_TRUE(end.errors.empty()) << end.errors.front().message();
    EXPECT_FALSE(end.must_end_criu);
    EXPECT_TRUE(kfd_.all_run());
    EXPECT_EQ(open_descriptors(), descriptors_);
  }

  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(images_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  [[nodiscard]] image::Catalogue catalogue() const {
    auto read = image::Catalogue::read(criu_.image_dir());
    EXPECT_TRUE(read.ok());
    return std::move(read).value();
  }

  // The memory of vram_bo(1) has other references than that of all others.
  void count_of_first(std::uint64_t references) {
    services_.count_references = [references](int fd) -> base::Result<std::uint64_t> {
      char handle = 0;
      EXPECT_EQ(::pread(fd, &handle, 1, 0), 1);
      return handle == 1 ? references : testing::kReferencesOfOne;
    };
  }

  // Call when all files of the test are open and registered.
  void count_descriptors() { descriptors_ = open_descriptors(); }

  TempDir images_;
  FakeMachine machine_;
  LoggingCriu criu_{images_.path()};
  System system_{machine_.roots()};
  kfd::FakeKfd kfd_;
  Services services_{criu_, system_, kfd_,
                     [this](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
                       return std::unique_ptr<copy::Copier>(new WatchedCopier([this] { watch_(); }));
                     },
                     Options{}};
  std::function<void()> watch_ = [] {};
  std::unique_ptr<Dump> dump_ = std::make_unique<Dump>(services_, 5);
  std::vector<std::unique_ptr<TestProgram>> programs_;
  UniqueFd kfd_file_ = open_kfd();
  std::size_t descriptors_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Abis, DumpTest, ::testing::Values(Abi::kReleased, Abi::kExtensible),
                         [](const auto& each) { return each.param == Abi::kReleased ? "released" : "extensible"; });

// `criu pre-dump` saves only host memory.
TEST(PreDump, neither_pauses_nor_saves) {
  const TempDir images;
  LoggingCriu criu(images.path());
  const auto session = Session::create(Mode::kPreDump, criu, Options{});
  ASSERT_TRUE(session.ok()) << session.error().message();
  EXPECT_EQ((*session)->dump(), nullptr);
  EXPECT_EQ((*session)->restore(), nullptr);
}

// ---- pauses -----------------------------------------------------------------

TEST_P(DumpTest, all_processes_are_paused_before_the_first_byte_is_saved) {
  start();
  const UniqueFd second = open_kfd();
  const UniqueFd third = open_kfd();
  add_process(78, second);
  add_process(79, third);
  unsigned reads = 0;
  watch_ = [&] {
    EXPECT_TRUE(kfd_.all_stand());
    ++reads;
  };
  expect_saved(kfd_file_, 4);
  expect_saved(second, 5);
  expect_saved(third, 6);
  EXPECT_EQ(reads, 3U);
  EXPECT_TRUE(kfd_.all_stand());
  for (const kfd::FakeProcess& process : kfd_.processes) EXPECT_EQ(process.evictions, 1U);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
}

TEST_P(DumpTest, a_mapping_pauses_as_the_first_file_does) {
  start();
  struct stat status {};
  ASSERT_EQ(::stat("/dev/zero", &status), 0);
  EXPECT_EQ(*dump_->handle_vma(status), Claim::kMine);
  EXPECT_TRUE(kfd_.all_stand());
  EXPECT_EQ(dump_->finish(1).errors.size(), 0U);
  EXPECT_TRUE(kfd_.all_run());
}

TEST_P(DumpTest, what_is_not_of_an_amd_gpu_costs_no_scan) {
  std::filesystem::remove_all(machine_.root() + "/proc");
  struct stat status {};
  ASSERT_EQ(::stat("/dev/full", &status), 0);
  EXPECT_EQ(*dump_->handle_vma(status), Claim::kNotMine);
  EXPECT_EQ(*save(open_device("/dev/full"), 3), Claim::kNotMine);
  EXPECT_EQ(*save(open_device("/dev/urandom"), 4), Claim::kNotMine);
  EXPECT_EQ(*save(UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 5), Claim::kNotMine);
  EXPECT_TRUE(kfd_.calls.empty());
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  EXPECT_TRUE(files().empty());
}

TEST_P(DumpTest, a_failure_at_any_step_lets_all_run_and_leaves_no_descriptor_and_no_file) {
  start();
  const UniqueFd second = open_kfd();
  add_process(78, second);
  count_descriptors();
  for (const char* step : {"version", "choose_abi", "is_traced", "pause", "checkpoint", "export_bo"}) {
    kfd_.fail_at = step;
    kfd_.fail_pid = step == std::string("version") || step == std::string("choose_abi") ? 0 : 78;
    dump_ = std::make_unique<Dump>(services_, 5);
    auto claim = save(kfd_file_, 4);
    if (claim.ok()) claim = save(second, 5);
    ASSERT_FALSE(claim.ok()) << step;
    EXPECT_NE(claim.error().message().find(step), std::string::npos) << claim.error().message();
    expect_failed_end();
    EXPECT_TRUE(files().empty()) << step;
  }
}

TEST_P(DumpTest, a_gpu_that_cannot_be_read_fails_the_dump_with_its_name) {
  services_.make_copier = [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    return base::Error(EIO, "broken copier");
  };
  start();
  count_descriptors();
  const auto claim = save(kfd_file_, 4);
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().message(), "GPU 4369 (renderD128): broken copier");
  expect_failed_end();
  EXPECT_TRUE(files().empty());
}

// CRIU asks for one file after the other, and a GPU would wait until the others are read.
TEST_P(DumpTest, contents_of_all_processes_are_saved_when_criu_asks_for_the_first_file) {
  start();
  const UniqueFd second = open_kfd();
  add_process(78, second);
  unsigned reads = 0;
  watch_ = [&] { ++reads; };
  expect_saved(kfd_file_, 4);
  EXPECT_EQ(reads, 2U);
  EXPECT_EQ(files(), (std::vector<std::string>{"amdgpu-pages-4.img"}));  // the other one has equal contents
  expect_saved(second, 3);
  EXPECT_EQ(reads, 2U);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  for (const auto& [id, pid] : {std::pair(4U, 77U), std::pair(3U, 78U)}) {
    const auto loaded = images.find(id);
    ASSERT_TRUE(loaded.ok() && *loaded != nullptr && (*loaded)->kfd() != nullptr);
    EXPECT_EQ((*loaded)->kfd()->pid, pid);
    const auto contents = image::open_contents(criu_.image_dir(), **loaded);
    ASSERT_TRUE(contents.ok()) << contents.error().message();
    EXPECT_TRUE(contents->verify().ok());
  }
}

TEST_P(DumpTest, a_second_file_of_a_process_is_neither_paused_nor_saved_twice) {
  const UniqueFd second = open_device("/dev/null", O_NONBLOCK);
  kfd_.add_file(second.get(), kfd_.processes.front());
  start({second.get()});
  unsigned reads = 0;
  watch_ = [&] { ++reads; };
  expect_saved(kfd_file_, 4);
  expect_saved(second, 5);
  EXPECT_EQ(reads, 1U);
  EXPECT_TRUE(kfd_.all_stand());
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  const image::SecondFile* file = (*images.find(5))->second();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->owner, 77U);
  EXPECT_EQ(file->open_flags, static_cast<std::uint32_t>(O_NONBLOCK));
}

TEST_P(DumpTest, a_file_that_only_a_child_has_is_inert_and_its_owner_is_saved_once) {
  const UniqueFd old = open_kfd();
  kfd_.add_file(old.get(), kfd_.processes.front());
  start();
  programs_.push_back(std::make_unique<TestProgram>(machine_, 112, std::vector<int>{old.get(), kfd_file_.get()}));
  expect_saved(old, 3);
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  ASSERT_NE((*images.find(3))->inert(), nullptr);
  EXPECT_EQ((*images.find(3))->inert()->owner, 77U);
  ASSERT_NE((*images.find(4))->kfd(), nullptr);
  EXPECT_EQ((*images.find(4))->kfd()->pid, 77U);
}

TEST_P(DumpTest, a_file_inherited_from_outside_is_inert_and_nobody_outside_is_paused) {
  const UniqueFd daemons = open_kfd();
  kfd::FakeProcess& daemon = kfd_.add_process(1);
  daemon.traced = false;
  kfd_.add_file(daemons.get(), daemon);
  start({daemons.get()});
  expect_saved(daemons, 3);
  expect_saved(kfd_file_, 4);
  EXPECT_EQ(daemon.evictions, 0U);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  ASSERT_NE((*images.find(3))->inert(), nullptr);
  EXPECT_EQ((*images.find(3))->inert()->owner, 0U);
}

// ---- what is saved ----------------------------------------------------------

TEST_P(DumpTest, the_session_says_what_was_saved_and_how) {
  const UniqueFd render = open_render();
  start({render.get()});
  expect_saved(render, 9);
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  ASSERT_EQ(images.sessions().size(), 1U);
  const image::Session& session = *images.sessions().front();
  EXPECT_EQ(session.abi, GetParam() == Abi::kReleased ? image::Abi::kReleased : image::Abi::kExtensible);
  EXPECT_EQ(session.kernel_release, "6.12.0-test");
  EXPECT_EQ(session.processes, (std::vector<image::Process>{{77, "program77"}}));
  const image::RenderFile* file = (*images.find(9))->render();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->gpu_id, kGpu);
  EXPECT_EQ(file->binding, image::Binding::kKfd);
  EXPECT_EQ(file->owner, 77U);
  const image::KfdFile* kfd = (*images.find(4))->kfd();
  ASSERT_EQ(kfd->bos.size(), 2U);
  EXPECT_EQ(kfd->bos[0].handle, 1U);
  auto contents = image::open_contents(criu_.image_dir(), **images.find(4));
  ASSERT_TRUE(contents.ok());
  std::vector<std::byte> bytes(kBoSize);
  image::BoReader reader(*contents, 0);
  ASSERT_TRUE(reader.read(bytes).ok());
  EXPECT_EQ(bytes, kfd_.bos[0].contents);
}

TEST_P(DumpTest, the_log_names_each_file_and_each_gpu) {
  start();
  expect_saved(kfd_file_, 4);
  ASSERT_EQ(criu_.informed.size(), 4U);
  EXPECT_NE(criu_.informed[0].find(GetParam() == Abi::kReleased ? "released" : "extensible"), std::string::npos);
  EXPECT_TRUE(criu_.informed[1].starts_with("paused 1 processes within ")) << criu_.informed[1];
  EXPECT_NE(criu_.informed[2].find("GPU 4369 (renderD128): 1 BOs, 8 KiB"), std::string::npos) << criu_.informed[2];
  EXPECT_NE(criu_.informed[3].find("/dev/kfd"), std::string::npos) << criu_.informed[3];
  dump_->finish(1);
}

TEST_P(DumpTest, what_the_released_abi_leaves_out_is_said) {
  start();
  expect_saved(kfd_file_, 4);
  dump_->finish(1);
  if (GetParam() == Abi::kExtensible) {
    EXPECT_TRUE(criu_.warned.empty());
    return;
  }
  ASSERT_EQ(criu_.warned.size(), 1U);
  for (const char* word : {"trap handlers", "RUNTIME_ENABLE", "memory policies", "ages of events"})
    EXPECT_NE(criu_.warned[0].find(word), std::string::npos) << criu_.warned[0];
}

TEST_P(DumpTest, many_bos_need_no_descriptor_each_with_the_extensible_abi) {
  kfd_.bos.clear();
  for (std::uint32_t i = 1; i <= 300; ++i) kfd_.bos.push_back(vram_bo(i));
  start();
  count_descriptors();
  std::size_t most = 0;
  watch_ = [&] { most = std::max(most, open_descriptors()); };
  expect_saved(kfd_file_, 4);
  EXPECT_GT(most, 0U);
  if (GetParam() == Abi::kExtensible) {
    EXPECT_LE(most, descriptors_ + 64);
  }
  EXPECT_TRUE(dump_->finish(0).errors.empty());
}

TEST_P(DumpTest, a_render_file_that_kfd_does_not_use_is_an_independent_one) {
  const UniqueFd render = open_render();
  start({render.get()});
  services_.render.may_map = [](int, std::uint64_t) -> base::Result<std::optional<bool>> {
    return std::optional<bool>(false);
  };
  expect_saved(kfd_file_, 4);
  expect_saved(render, 9);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  EXPECT_EQ((*images.find(9))->render()->binding, image::Binding::kOther);
  EXPECT_EQ((*images.find(9))->render()->owner, 0U);
}

TEST_P(DumpTest, a_program_without_kfd_has_independent_render_files_and_is_not_paused) {
  const UniqueFd render = open_render();
  programs_.push_back(std::make_unique<TestProgram>(machine_, 77, std::vector<int>{render.get()}));
  expect_saved(render, 9);
  EXPECT_TRUE(kfd_.calls.empty());
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  EXPECT_EQ((*images.find(9))->render()->binding, image::Binding::kOther);
}

TEST_P(DumpTest, the_only_render_file_of_a_gpu_without_memory_is_the_one_that_kfd_uses) {
  const UniqueFd render = open_render();
  kfd_.bos.clear();
  start({render.get()});
  expect_saved(kfd_file_, 4);
  expect_saved(render, 9);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  EXPECT_EQ((*images.find(9))->render()->binding, image::Binding::kKfd);
}

TEST_P(DumpTest, too_little_space_is_a_warning_before_anything_is_saved) {
  kfd_.bos[0].bo.size = 1ULL << 50;
  start();
  kfd_.fail_at = "export_bo";  // nobody wants to read so much
  EXPECT_FALSE(save(kfd_file_, 4).ok());
  ASSERT_FALSE(criu_.warned.empty());
  EXPECT_NE(criu_.warned.back().find("1125899906842624 bytes"), std::string::npos) << criu_.warned.back();
  dump_->finish(1);
}

// ---- refusals ---------------------------------------------------------------

TEST_P(DumpTest, a_stream_is_refused_by_its_socket) {
  start();
  count_descriptors();
  write_file(images_.path() + "/streamer-capture.sock", "");
  expect_refused({"--stream", "streamer"});
  EXPECT_TRUE(kfd_.calls.empty());
}

TEST_P(DumpTest, a_stream_is_refused_by_the_command_line) {
  start();
  count_descriptors();
  criu_.command_line.emplace_back("--stream");
  expect_refused({"--stream"});
}

TEST_P(DumpTest, lazy_pages_are_refused) {
  start();
  count_descriptors();
  criu_.command_line.emplace_back("--lazy-pages");
  expect_refused({"--lazy-pages"});
  EXPECT_TRUE(kfd_.calls.empty());
}

TEST_P(DumpTest, abbreviations_of_lazy_pages_are_refused) {
  start();
  count_descriptors();
  criu_.command_line.emplace_back("--lazy");
  expect_refused({"--lazy-pages"});
  EXPECT_TRUE(kfd_.calls.empty());
}

TEST_P(DumpTest, pages_that_are_to_come_later_are_refused_at_the_end) {
  using Images = testing::FakeCriuImages;
  const std::string head = Images::head(0x56084025) + Images::message(Images::number(1, 1));
  const auto entry = [](std::uint64_t flags) {
    return Images::message(Images::number(1, 0x1000) + Images::number(2, 1) + Images::number(4, flags));
  };
  const std::string path = images_.path() + "/pagemap-77.img";
  start();
  // Present and lazy is what every dump has.
  write_file(path, head + entry(4) + entry(6));
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  dump_ = std::make_unique<Dump>(services_, 6);
  write_file(path, head + entry(4) + entry(2));
  expect_saved(kfd_file_, 4);
  const Dump::End end = dump_->finish(0);
  EXPECT_TRUE(end.must_end_criu);
  ASSERT_EQ(end.errors.size(), 1U);
  EXPECT_NE(end.errors[0].message().find("--lazy-pages"), std::string::npos) << end.errors[0].message();
  EXPECT_TRUE(catalogue().intact().empty());
}

TEST_P(DumpTest, an_old_kernel_is_refused_before_anything_is_paused) {
  start();
  count_descriptors();
  kfd_.kfd_version = {1, 7};
  expect_refused({"1.7", "Linux 5.18"});
  EXPECT_EQ(kfd_.calls, std::vector<std::string>{"version"});
}

// ---- DMA-bufs ---------------------------------------------------------------

// A stand-in for a DMA-buf, which a program shows.
class DumpDmabuf : public DumpTest {
 protected:
  DumpDmabuf() {
    kfd_.bos[0].inode = 4711;
    services_.find_dmabuf = [this](int fd) -> base::Result<std::optional<dmabuf_file::Info>> {
      struct stat status {};
      EXPECT_EQ(::fstat(fd, &status), 0);
      if (status.st_ino != number()) return std::optional<dmabuf_file::Info>();
      return std::optional<dmabuf_file::Info>(info_);
    };
  }

  [[nodiscard]] ino_t number() const {
    struct stat status {};
    EXPECT_EQ(::fstat(dmabuf_.get(), &status), 0);
    return status.st_ino;
  }
  void show(const TestProgram& program) const { program.show(dmabuf_.get(), "/dmabuf:"); }

  // The descriptor of the program, that of this process by which it was made, and that of the dump.
  static constexpr std::uint64_t kOfDescriptor = 3;

  UniqueFd dmabuf_{::memfd_create("dmabuf", MFD_CLOEXEC)};
  dmabuf_file::Info info_{4711, kBoSize, "drm", "a name"};
};

INSTANTIATE_TEST_SUITE_P(Abis, DumpDmabuf, ::testing::Values(Abi::kReleased, Abi::kExtensible),
                         [](const auto& each) { return each.param == Abi::kReleased ? "released" : "extensible"; });

TEST_P(DumpDmabuf, of_a_bo_is_saved_by_the_extensible_abi) {
  show(start());
  kfd_.bos.push_back(vram_bo(3));
  count_of_first(testing::kReferencesOfOne + kOfDescriptor);
  ASSERT_EQ(::fcntl(dmabuf_.get(), F_SETFL, O_NONBLOCK), 0);
  criu_.has_fdstore = false;  // the program has a BO of the memory, so nobody needs to give it any
  count_descriptors();
  if (GetParam() == Abi::kReleased) {
    expect_refused({"program77", "a DMA-buf", "the released ABI"});
    return;
  }
  expect_saved(kfd_file_, 4);
  expect_saved(dmabuf_, 5);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  const image::DmabufFile& saved = *(*images.find(5))->dmabuf();
  EXPECT_EQ(saved.inode, 4711U);
  EXPECT_EQ(saved.size, kBoSize);
  EXPECT_EQ(saved.name, "a name");
  EXPECT_EQ(saved.open_flags, static_cast<std::uint32_t>(O_NONBLOCK));
}

TEST_P(DumpDmabuf, that_somebody_outside_has_as_well_is_refused) {
  if (GetParam() == Abi::kReleased) return;
  show(start());
  kfd_.bos.push_back(vram_bo(3));
  count_of_first(testing::kReferencesOfOne + kOfDescriptor + 1);
  count_descriptors();
  expect_refused({"program77", "somebody outside"});
}

// CRIU asks the process with the lowest pid, which is given the memory like one that shares it.
TEST_P(DumpDmabuf, in_a_program_without_kfd_needs_a_criu_that_passes_files) {
  if (GetParam() == Abi::kReleased) return;
  show(start());
  programs_.push_back(std::make_unique<TestProgram>(machine_, 50, std::vector<int>{}));
  show(*programs_.back());
  kfd_.bos.push_back(vram_bo(3));
  count_of_first(testing::kReferencesOfOne + kOfDescriptor + 1);
  criu_.has_fdstore = false;
  count_descriptors();
  expect_refused({"program50", "this CRIU does not export fdstore_add()"});
  criu_.has_fdstore = true;
  dump_ = std::make_unique<Dump>(services_, 6);
  expect_saved(dmabuf_, 5);
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
}

TEST_P(DumpDmabuf, whose_bo_was_freed_is_refused) {
  show(start());
  info_.inode = 4712;
  count_descriptors();
  if (GetParam() == Abi::kReleased) return;
  expect_refused(
      {"program77", "descriptor " + std::to_string(dmabuf_.get()), "'drm'", "8192 bytes", "does not list GEM objects"});
}

TEST_P(DumpDmabuf, that_another_driver_exports_is_refused_with_its_name) {
  show(start());
  info_.exporter = "udmabuf";
  count_descriptors();
  expect_refused({"program77", "descriptor " + std::to_string(dmabuf_.get()), "exported by 'udmabuf'"});
}

// Whatever is wrong with this plugin or this machine's GPUs, CRIU and its other plugins decide.
TEST_P(DumpDmabuf, of_a_program_without_a_gpu_is_not_ours) {
  programs_.push_back(std::make_unique<TestProgram>(machine_, 50, std::vector<int>{}));
  show(*programs_.back());
  info_.exporter = "udmabuf";
  services_.options_status = base::Error(EINVAL, "a wrong option");
  for (int i = 0; i < 2; ++i) {
    const auto claim = save(dmabuf_, 5);
    ASSERT_TRUE(claim.ok()) << claim.error().message();
    EXPECT_EQ(*claim, Claim::kNotMine);
  }
  EXPECT_TRUE(dump_->finish(0).errors.empty());
}

TEST_P(DumpDmabuf, on_its_way_through_a_socket_is_refused) {
  start();
  const auto claim = save(dmabuf_, 5);
  ASSERT_FALSE(claim.ok());
  EXPECT_NE(claim.error().message().find("on its way through a socket"), std::string::npos) << claim.error().message();
  dump_->finish(1);
}

TEST(CountDescriptors, tasks_with_one_table_have_each_descriptor_once) {
  const auto sharing = [](pid_t pid) {
    while (pid == 0) ::pause();
    return pid;
  };
  const pid_t same = sharing(os::fork_sharing_files(0));
  const pid_t other = sharing(::fork());
  Tree tree;
  for (const pid_t pid : {::getpid(), same, other})
    tree.tasks.push_back({pid, static_cast<std::uint32_t>(pid), {}, {}});
  OpenFile file;
  file.holders = {{0, 5}, {1, 5}, {1, 6}, {2, 5}};
  const auto count = tree.count_descriptors(file);
  for (const pid_t pid : {same, other}) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, __WALL);
  }
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 3U);
}

TEST(DmabufFile, says_what_procfs_says) {
  const TempDir proc;
  const UniqueFd file(::memfd_create("dmabuf", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 8192), 0);
  const std::string number = std::to_string(file.get());
  EXPECT_FALSE(*dmabuf_file::info_of(proc.path(), file.get()));
  std::filesystem::create_directories(proc.path() + "/self/fd");
  std::filesystem::create_symlink("/dmabuf:", proc.path() + "/self/fd/" + number);
  write_file(proc.path() + "/self/fdinfo/" + number,
             "pos:\t0\nflags:\t02000002\nsize:\t8192\ncount:\t6\nexp_name:\tudmabuf\nname:\tmine\nand yours\n");
  const auto info = dmabuf_file::info_of(proc.path(), file.get());
  ASSERT_TRUE(info.ok() && info->has_value());
  EXPECT_EQ((*info)->exporter, "udmabuf");
  EXPECT_EQ((*info)->name, "mine\nand yours");
  EXPECT_EQ((*info)->size, 8192U);
  EXPECT_FALSE(dmabuf_file::set_name(file.get(), "x").ok());
}

TEST_P(DumpTest, a_dmabuf_mapping_is_refused) {
  start({}, "7f0000000000-7f0000001000 rw-s 00000000 00:0c 4 /dmabuf:\n");
  count_descriptors();
  expect_refused({"program77", "a mapping at 0x7f0000000000", "DMA-buf"});
  EXPECT_TRUE(kfd_.calls.empty());
}

TEST_P(DumpTest, gem_objects_of_a_render_node_are_refused) {
  const UniqueFd render = open_render();
  start({render.get()});
  count_descriptors();
  services_.render.objects = [](int, std::uint32_t) -> base::Result<std::string> {
    return std::string("GEM object 3");
  };
  expect_refused({"program77", "descriptor " + std::to_string(render.get()), "renderD128", "GEM object 3"});
  EXPECT_TRUE(kfd_.calls.empty());
}

TEST_P(DumpTest, a_gem_handle_that_only_debugfs_tells_is_refused) {
  const UniqueFd render = open_render();
  start({render.get()});
  count_descriptors();
  std::filesystem::create_directories(machine_.root() + "/sys/class/drm/renderD128/device/drm/card3");
  const std::string file = machine_.root() + "/sys/kernel/debug/dri/3/amdgpu_gem_info";
  // What the last user has counts, and until Linux 6.7 what the opener has.
  const auto header = [](pid_t pid, const std::string& name) {
    std::array<char, 64> line{};
    (void)std::snprintf(line.data(), line.size(), "pid %8d command %s:\n", pid, name.c_str());
    return std::string(line.data());
  };
  // The second program has chosen a name that looks like a file of this process.
  const std::string other = header(1, "other") + "\t\t0x00000001: 4096 byte GTT\n" +
                            header(2, "\npid " + std::to_string(::getpid()) + "\n0x1");
  for (const pid_t pid : {::getpid(), programs_.front()->pid()}) {
    dump_ = std::make_unique<Dump>(services_, 5);
    write_file(file, other + header(pid, "program") + "\t\t0x00001234:  4096 byte GTT\n");
    expect_refused({"program77", "renderD128", "GEM object 4660"});
  }
  EXPECT_TRUE(kfd_.calls.empty());
  write_file(file, other + header(::getpid(), "criu") + header(programs_.front()->pid(), "program") +
                       "\t\t0x00000001: 4096 byte GTT\n");
  dump_ = std::make_unique<Dump>(services_, 5);
  expect_saved(kfd_file_, 4);
  EXPECT_FALSE(dump_->finish(1).must_end_criu);
}

TEST_P(DumpTest, without_debugfs_more_gem_handles_are_tried) {
  const UniqueFd render = open_render();
  start({render.get()});
  count_descriptors();
  services_.render.objects = [](int, std::uint32_t last_handle) -> base::Result<std::string> {
    return std::string(last_handle < 60000 ? "" : "GEM object 60000");
  };
  expect_refused({"program77", "renderD128", "GEM object 60000"});
}

TEST_P(DumpTest, a_render_node_that_cannot_be_asked_for_objects_is_an_error) {
  const UniqueFd render = open_render();
  start({render.get()});
  count_descriptors();
  services_.render.objects = [](int, std::uint32_t) -> base::Result<std::string> {
    return base::Error(ENODEV, "unplugged");
  };
  expect_refused({"renderD128", "unplugged"});
}

TEST_P(DumpTest, a_render_node_that_kfd_does_not_know_is_refused) {
  const UniqueFd render = open_render();
  start({render.get()});
  count_descriptors();
  write_file(machine_.node(1) + "/properties", "simd_count 240\ndrm_render_minor 200\n");
  expect_refused({"program77", "renderD128", "KFD does not know this GPU"});
}

TEST_P(DumpTest, a_mapping_that_is_no_bo_of_kfd_is_refused) {
  start({}, "7f0000000000-7f0000001000 rw-s 42000 00:05 4 /dev/dri/renderD128\n");
  count_descriptors();
  expect_refused({"program77", "mapping of 4096 bytes of renderD128", "no memory that KFD has"});
}

TEST_P(DumpTest, a_mapping_of_a_part_of_a_bo_is_accepted_and_one_that_reaches_beyond_is_not) {
  const std::string head = "7f0000000000-";
  const std::string offset = " rw-s 100101000 00:05 4 /dev/dri/renderD128\n";
  {
    start({}, head + "7f0000001000" + offset);
    expect_saved(kfd_file_, 4);
    EXPECT_TRUE(dump_->finish(0).errors.empty());
  }
  programs_.clear();
  dump_ = std::make_unique<Dump>(services_, 6);
  programs_.push_back(
      std::make_unique<TestProgram>(machine_, 77, std::vector<int>{kfd_file_.get()}, head + "7f0000002000" + offset));
  EXPECT_FALSE(save(kfd_file_, 4).ok());
  dump_->finish(1);
}

// A line of procfs for a mapping of the first BO.
constexpr const char* kMapsBo = "7f0000100000-7f0000102000 rw-s 100100000 00:05 4 /dev/dri/renderD128\n";

TEST_P(DumpTest, an_inherited_mapping_is_accepted_where_a_restore_finds_it) {
  const UniqueFd render = open_render();
  start({render.get()}, kMapsBo);
  programs_.push_back(std::make_unique<TestProgram>(machine_, 90, std::vector<int>{}, kMapsBo));
  expect_saved(kfd_file_, 4);
  dump_->finish(1);
}

TEST_P(DumpTest, an_inherited_mapping_of_a_process_that_uses_kfd_itself_is_refused) {
  const UniqueFd render = open_render();
  start({render.get()}, kMapsBo);
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = kfd_.add_process(78);
  give_state(other, 78);
  other.bos.erase(other.bos.begin());
  kfd_.add_file(second.get(), other);
  programs_.push_back(std::make_unique<TestProgram>(machine_, 78, std::vector<int>{second.get()}, kMapsBo));
  count_descriptors();
  expect_refused({"program78", "inherited mapping", "program77", "gets back only its own"});
}

TEST_P(DumpTest, an_inherited_mapping_at_another_address_is_refused) {
  const UniqueFd render = open_render();
  start({render.get()}, kMapsBo);
  programs_.push_back(std::make_unique<TestProgram>(
      machine_, 90, std::vector<int>{}, "7e0000000000-7e0000002000 rw-s 100100000 00:05 4 /dev/dri/renderD128\n"));
  count_descriptors();
  expect_refused({"program90", "inherited mapping", "program77", "another address"});
}

TEST_P(DumpTest, an_inherited_mapping_that_its_owner_has_unmapped_is_refused) {
  const UniqueFd render = open_render();
  start({render.get()});
  programs_.push_back(std::make_unique<TestProgram>(machine_, 90, std::vector<int>{}, kMapsBo));
  count_descriptors();
  expect_refused({"program90", "inherited mapping", "program77", "maps nothing of its GPUs"});
}

TEST_P(DumpTest, an_inherited_mapping_whose_owner_has_closed_the_render_node_is_refused) {
  start({}, kMapsBo);
  programs_.push_back(std::make_unique<TestProgram>(machine_, 90, std::vector<int>{}, kMapsBo));
  count_descriptors();
  expect_refused({"program90", "inherited mapping", "program77", "has closed the render node"});
}

TEST_P(DumpTest, an_inherited_mapping_that_may_be_of_two_processes_is_refused) {
  const UniqueFd render = open_render();
  machine_.add_gpu(2, 0x2222, 129);
  start({render.get()}, kMapsBo);
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = add_process(78, second);
  other.devices = {{0x2222, 0x2222}};
  for (auto& bo : other.bos) bo.bo.user_gpu_id = 0x2222;
  programs_.push_back(std::make_unique<TestProgram>(machine_, 90, std::vector<int>{}, kMapsBo));
  count_descriptors();
  expect_refused({"program90", "inherited mapping", "several programs"});
}

TEST_P(DumpTest, a_process_that_maps_kfd_without_having_it_open_is_refused) {
  start();
  programs_.push_back(std::make_unique<TestProgram>(
      machine_, 90, std::vector<int>{}, "7f0000000000-7f0000001000 rw-s c000000000000000 00:05 4 /dev/kfd\n"));
  count_descriptors();
  expect_refused({"program90", "has closed the /dev/kfd"});
}

TEST_P(DumpTest, a_process_whose_file_only_a_child_has_is_refused) {
  kfd_.add_file(kfd_file_.get(), kfd_.processes.front());
  programs_.push_back(std::make_unique<TestProgram>(machine_, 77, std::vector<int>{}));
  programs_.push_back(std::make_unique<TestProgram>(machine_, 78, std::vector<int>{kfd_file_.get()}));
  count_descriptors();
  expect_refused({"program77", "only a child has it"});
}

TEST_P(DumpTest, a_process_that_criu_would_ask_for_nothing_is_refused) {
  kfd_.pid = 78;
  kfd_.add_file(kfd_file_.get(), kfd_.processes.front());
  programs_.push_back(std::make_unique<TestProgram>(machine_, 77, std::vector<int>{kfd_file_.get()}));
  programs_.push_back(std::make_unique<TestProgram>(machine_, 78, std::vector<int>{kfd_file_.get()}));
  count_descriptors();
  expect_refused({"program78", "process 77 with a lower pid"});
}

// The other process gets the file, and a stand-in is in its place in the owner, which is asked for nothing later.
TEST_P(DumpTest, a_process_without_mappings_whose_other_files_criu_would_ask_another_for_is_refused) {
  const UniqueFd second = open_kfd();
  const UniqueFd render = open_render();
  kfd_.pid = 78;
  kfd_.add_file(kfd_file_.get(), kfd_.processes.front());
  kfd_.add_file(second.get(), kfd_.processes.front());
  for (const UniqueFd* shared : {&second, &render}) {
    programs_.clear();
    programs_.push_back(std::make_unique<TestProgram>(machine_, 78, std::vector<int>{kfd_file_.get(), shared->get()}));
    programs_.push_back(std::make_unique<TestProgram>(machine_, 77, std::vector<int>{shared->get()}));
    count_descriptors();
    dump_ = std::make_unique<Dump>(services_, 5);
    expect_refused({"program78", "process 77 with a lower pid"});
  }
}

TEST_P(DumpTest, an_owner_that_is_none_of_the_programs_is_refused) {
  start();
  count_descriptors();
  kfd_.pid = 1234;
  expect_refused({"pid 1234", "no program of this dump"});
}

TEST_P(DumpTest, an_owner_whose_pid_two_programs_have_in_nested_namespaces_is_refused) {
  start();
  programs_.push_back(std::make_unique<TestProgram>(machine_, 77, std::vector<int>{}));
  count_descriptors();
  expect_refused({"pid 77", "more than one program of this dump"});
}

TEST_P(DumpTest, memory_that_somebody_outside_has_is_refused) {
  start();
  kfd_.bos.push_back(vram_bo(3));
  count_descriptors();
  std::uint64_t one = testing::kReferencesOfOne;
  unsigned calls = 0;
  services_.count_references = [&](int) -> base::Result<std::uint64_t> { return ++calls == 1 ? one : one + 1; };
  expect_refused({"program77", "a BO of 8192 bytes", "somebody outside of the programs being saved has its memory"});
  // Linux before 6.8 has fewer references of its own.
  one -= 2;
  calls = 0;
  kfd_.bos.push_back(vram_bo(4));
  dump_ = std::make_unique<Dump>(services_, 5);
  services_.count_references = [&](int) -> base::Result<std::uint64_t> { return ++calls >= 3 ? one + 1 : one; };
  expect_refused({"program77", "somebody outside"});
}

TEST_P(DumpTest, a_reference_that_ends_soon_is_no_holder) {
  start();
  unsigned calls = 0;
  services_.count_references = [&](int) -> base::Result<std::uint64_t> {
    return testing::kReferencesOfOne + (++calls < 4 ? 1 : 0);
  };
  expect_saved(kfd_file_, 4);
  EXPECT_EQ(calls, 4U);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
}

TEST_P(DumpTest, memory_that_the_programs_further_gpus_map_has_no_holder_outside) {
  machine_.add_gpu(2, 0x2222, 129);
  kfd_.devices.push_back({0x2222, 0x2222});
  start();
  services_.count_references = [](int) -> base::Result<std::uint64_t> { return testing::kReferencesOfOne + 1; };
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
}

// The BO on another GPU, its GEM object, and the attachment of that.
constexpr std::uint64_t kOfImport = 3;

// The other GPU may have mapped the first BO as well, which is one reference more.
TEST_P(DumpTest, a_programs_own_memory_imported_on_another_gpu_has_no_holder_outside) {
  machine_.add_gpu(2, 0x2222, 129);
  kfd_.devices.push_back({0x2222, 0x2222});
  kfd_.bos.push_back(vram_bo(3));
  kfd_.bos[0].inode = 4711;
  kfd_.bos[2].inode = 4711;
  kfd_.bos[2].imported = true;
  kfd_.bos[2].bo.user_gpu_id = 0x2222;
  std::uint64_t references = testing::kReferencesOfOne + kOfImport + 2 * (kfd_.devices.size() - 1) + 1;
  services_.count_references = [&](int) -> base::Result<std::uint64_t> { return references; };
  start();
  count_descriptors();
  if (GetParam() == Abi::kReleased) {
    expect_refused({"program77", "have the same memory"});
    return;
  }
  expect_refused({"program77", "somebody outside"});
  references = testing::kReferencesOfOne + kOfImport;
  dump_ = std::make_unique<Dump>(services_, 6);
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
}

// Each program sees one GPU. Both programs on the second one have a GEM object of their own for the memory.
TEST_P(DumpTest, memory_of_one_gpu_in_programs_on_another_one_has_no_holder_outside) {
  if (GetParam() == Abi::kReleased) return;  // it does not say who gave memory
  machine_.add_gpu(2, 0x2222, 129);
  start();
  const UniqueFd second = open_kfd();
  const UniqueFd third = open_kfd();
  kfd_.bos[0].inode = 4711;
  kfd_.bos.push_back(vram_bo(3));
  for (const auto& [pid, file] : {std::pair(78U, &second), std::pair(79U, &third)}) {
    kfd::FakeProcess& other = add_process(pid, *file);
    other.devices = {{0x2222, 0x2222}};
    for (auto& bo : other.bos) bo.bo.user_gpu_id = 0x2222;
    other.bos[0].inode = 4711;
    other.bos[0].imported = true;
  }
  std::uint64_t more = 1;
  services_.count_references = [&](int fd) -> base::Result<std::uint64_t> {
    char handle = 0;
    EXPECT_EQ(::pread(fd, &handle, 1, 0), 1);
    return testing::kReferencesOfOne + (handle == 1 ? 2 * kOfImport + more : 0);
  };
  count_descriptors();
  expect_refused({"program77", "somebody outside"});
  more = 0;
  dump_ = std::make_unique<Dump>(services_, 6);
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(1).errors.empty());
}

// Whoever allocated it has ended. If that was on a GPU of these programs, the GEM object is still there.
TEST_P(DumpTest, memory_whose_giver_is_gone_is_explained_by_the_gpu_that_it_is_of) {
  if (GetParam() == Abi::kReleased) return;
  machine_.add_gpu(2, 0x2222, 129);
  start();
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = add_process(78, second);
  other.devices = {{0x2222, 0x2222}};
  for (auto& bo : other.bos) bo.bo.user_gpu_id = 0x2222;
  for (kfd::FakeProcess* process : {&kfd_.processes.front(), &other}) {
    process->bos[0].inode = 4711;
    process->bos[0].imported = true;
  }
  kfd_.bos.push_back(vram_bo(3));
  // A descriptor; a BO and the reference of the GEM object on the first GPU; an import on the second.
  std::uint64_t references = 1 + 1 + 1 + kOfImport;
  services_.count_references = [&](int fd) -> base::Result<std::uint64_t> {
    char handle = 0;
    EXPECT_EQ(::pread(fd, &handle, 1, 0), 1);
    return handle == 1 ? references : testing::kReferencesOfOne;
  };
  bool is_of_first = true;
  services_.render.is_home = [&](int fd, int, std::uint64_t offset) -> base::Result<bool> {
    struct stat status {};
    EXPECT_EQ(::fstat(fd, &status), 0);
    EXPECT_EQ(offset, kfd_.bos[0].bo.mmap_offset);
    return is_of_first && status.st_rdev == makedev(1, 5);
  };
  const auto is_saved = [&] {
    dump_ = std::make_unique<Dump>(services_, 6);
    const bool is_ok = save(kfd_file_, 4).ok();
    dump_->finish(1);
    return is_ok;
  };
  EXPECT_TRUE(is_saved());
  ++references;
  EXPECT_FALSE(is_saved());
  is_of_first = false;
  references = 1 + 2 * kOfImport;
  EXPECT_TRUE(is_saved());
  ++references;
  EXPECT_FALSE(is_saved());
}

TEST(MemoryHolders, the_references_are_those_that_the_kernel_counts) {
  const TempDir proc;
  write_file(proc.path() + "/self/fdinfo/5", "pos:\t0\nflags:\t02000002\nsize:\t8192\ncount:\t6\nexp_name:\tdrm\n");
  write_file(proc.path() + "/self/fdinfo/6", "pos:\t0\n");
  EXPECT_EQ(*memory_holders::references_of(proc.path(), 5), 6U);
  EXPECT_EQ(memory_holders::references_of(proc.path(), 6).error().code(), EPROTO);
}

TEST(MemoryHolders, references_are_counted_again_until_all_are_known_or_half_a_second_is_over) {
  std::uint64_t references = 7;
  unsigned calls = 0;
  const auto count = [&]() -> base::Result<std::uint64_t> {
    ++calls;
    return std::uint64_t{references == 4 ? 4 : --references};
  };
  EXPECT_EQ(*memory_holders::recount(5, 5, count), 5U);
  EXPECT_EQ(calls, 0U);
  EXPECT_EQ(*memory_holders::recount(7, 5, count), 5U);
  EXPECT_EQ(calls, 2U);
  EXPECT_EQ(*memory_holders::recount(7, 3, count), 4U);
  EXPECT_EQ(calls, 52U);
  const auto failing = []() -> base::Result<std::uint64_t> { return base::Error(EIO, "no count"); };
  EXPECT_EQ(memory_holders::recount(7, 3, failing).error().code(), EIO);
}

TEST(MemoryHolders, what_most_memories_have_is_the_kernels_and_a_tie_is_in_the_programs_favour) {
  using memory_holders::kernel_references;
  using memory_holders::Memory;
  EXPECT_EQ(kernel_references(std::vector<Memory>{{4, 2, 0}, {4, 2, 0}, {5, 2, 0}}), 2U);
  EXPECT_EQ(kernel_references(std::vector<Memory>{{2, 2, 0}, {2, 2, 0}, {3, 2, 0}}), 0U);
  EXPECT_EQ(kernel_references(std::vector<Memory>{{2, 2, 0}, {4, 2, 0}}), 2U);
  EXPECT_EQ(kernel_references(std::vector<Memory>{{9, 2, 0}}), 2U);
  EXPECT_EQ(kernel_references({}), 2U);
}

TEST_P(DumpTest, memory_shared_by_two_processes_is_refused_or_saved_once_with_the_one_that_allocated_it) {
  start();
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = add_process(78, second);
  kfd_.bos[0].inode = 4711;
  kfd_.bos[0].imported = true;
  other.bos[0].inode = 4711;
  count_of_first(testing::kReferencesOfOne + 1);
  kfd_.bos.push_back(vram_bo(3));
  count_descriptors();
  if (GetParam() == Abi::kReleased) {
    expect_refused({"program78", "program77", "shares its memory"});
    return;
  }
  unsigned reads = 0;
  watch_ = [&] { ++reads; };
  expect_saved(kfd_file_, 4);
  expect_saved(second, 5);
  EXPECT_EQ(reads, 2U);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  const image::KfdFile& given = *(*images.find(4))->kfd();
  const image::KfdFile& allocated = *(*images.find(5))->kfd();
  EXPECT_TRUE(given.bos[0].imported && given.bos[0].stored_elsewhere);
  EXPECT_FALSE(image::stores_contents(given.bos[0]));
  EXPECT_FALSE(allocated.bos[0].imported || allocated.bos[0].stored_elsewhere);
  EXPECT_TRUE(image::stores_contents(allocated.bos[0]));
  EXPECT_TRUE(given.foreign_memories.empty() && allocated.foreign_memories.empty());
}

TEST_P(DumpTest, shared_memory_that_this_criu_could_not_pass_at_restore_is_refused) {
  if (GetParam() == Abi::kReleased) return;
  start();
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = add_process(78, second);
  kfd_.bos[0].inode = 4711;
  other.bos[0].inode = 4711;
  other.bos[0].imported = true;
  criu_.has_fdstore = false;
  count_descriptors();
  expect_refused({"program77", "that other programs have", "this CRIU does not export fdstore_add()"});
}

TEST(QueueRoom, is_that_of_a_queue_that_only_cap_net_admin_may_enlarge) {
  std::ifstream limit("/proc/sys/net/core/wmem_max");
  std::size_t bytes = 0;
  limit >> bytes;
  ASSERT_GT(bytes, 0U);
  // The kernel doubles the limit, and a message takes 768 bytes of it.
  const std::size_t most = 2 * bytes / 768 + 1;
  const auto some = queue_capacity(7);
  ASSERT_TRUE(some.ok()) << some.error().message();
  EXPECT_EQ(*some, 7U);
  const pid_t child = ::fork();
  if (child == 0) {
    // Without CAP_NET_ADMIN.
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2] = {};
    if (::syscall(SYS_capget, &head, sets) != 0) ::_exit(2);
    sets[0].effective &= ~(1U << CAP_NET_ADMIN);
    if (::syscall(SYS_capset, &head, sets) != 0) ::_exit(3);
    const auto room = queue_capacity(2 * most);
    ::_exit(room.ok() && *room > most / 2 && *room <= most ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(DumpTest, a_holder_outside_is_seen_beside_those_of_the_programs) {
  if (GetParam() == Abi::kReleased) return;
  start();
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = add_process(78, second);
  kfd_.bos[0].inode = 4711;
  other.bos[0].inode = 4711;
  other.bos[0].imported = true;
  kfd_.bos.push_back(vram_bo(3));
  count_of_first(testing::kReferencesOfOne + 2);
  count_descriptors();
  expect_refused({"program77", "somebody outside", "6 references, of which 5 are known"});
}

TEST_P(DumpTest, memory_whose_giver_is_gone_is_saved_with_how_it_was_allocated) {
  if (GetParam() == Abi::kReleased) return;
  start();
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = add_process(78, second);
  for (kfd::FakeProcess* process : {&kfd_.processes.front(), &other}) {
    process->bos[0].inode = 4711;
    process->bos[0].imported = true;
    process->bos.push_back(vram_bo(3));
  }
  // A second BO, and no handle of the BO that was freed: as many references as memory of one BO has.
  expect_saved(kfd_file_, 4);
  expect_saved(second, 5);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  const image::KfdFile& first = *(*images.find(4))->kfd();
  ASSERT_EQ(first.foreign_memories.size(), 1U);
  EXPECT_EQ(first.foreign_memories[0].inode, 4711U);
  EXPECT_EQ(first.foreign_memories[0].alloc_flags, kCoherent);
  EXPECT_TRUE(image::stores_contents(first.bos[0]));
  EXPECT_TRUE((*images.find(5))->kfd()->bos[0].stored_elsewhere);
}

TEST_P(DumpTest, memory_whose_giver_is_gone_and_that_has_metadata_is_refused) {
  if (GetParam() == Abi::kReleased) return;
  start();
  kfd_.bos[0].inode = 4711;
  kfd_.bos[0].imported = true;
  kfd_.bos.push_back(vram_bo(3));
  services_.render.has_metadata = [](int, int) -> base::Result<bool> { return true; };
  count_descriptors();
  expect_refused({"program77", "a BO of " + std::to_string(kBoSize) + " bytes has metadata"});
}

TEST_P(DumpTest, memory_of_its_own_that_has_metadata_is_refused) {
  start();
  count_descriptors();
  services_.render.has_metadata = [](int, int) -> base::Result<bool> { return true; };
  expect_refused({"program77", "a BO of " + std::to_string(kBoSize) + " bytes has metadata"});
}

// The giver has a BO, and its handle a reference.
TEST_P(DumpTest, memory_whose_giver_is_outside_is_refused_even_where_the_programs_have_more_gpus) {
  if (GetParam() == Abi::kReleased) return;  // it does not say who gave memory
  machine_.add_gpu(2, 0x2222, 129);
  kfd_.devices.push_back({0x2222, 0x2222});
  start();
  kfd_.bos[0].inode = 4711;
  kfd_.bos[0].imported = true;
  kfd_.bos.push_back(vram_bo(3));
  count_of_first(testing::kReferencesOfOne + 1);
  count_descriptors();
  expect_refused({"program77", "somebody outside"});
}

// The kernel lets each process that has the memory map it.
TEST_P(DumpTest, shared_memory_does_not_tell_whose_a_render_node_is) {
  if (GetParam() == Abi::kReleased) return;
  const UniqueFd render = open_render();
  start({render.get()});
  const UniqueFd second = open_kfd();
  kfd::FakeProcess& other = add_process(78, second);
  other.bos[0].inode = 4711;
  kfd_.bos[0].inode = 4711;
  kfd_.bos[0].imported = true;
  kfd_.bos.push_back(vram_bo(3));
  count_of_first(testing::kReferencesOfOne + 1);
  services_.render.may_map = [&](int, std::uint64_t offset) -> base::Result<std::optional<bool>> {
    EXPECT_NE(offset, kfd_.bos[0].bo.mmap_offset);
    return std::optional<bool>(offset == kfd_.bos[2].bo.mmap_offset);
  };
  expect_saved(kfd_file_, 4);
  expect_saved(second, 5);
  expect_saved(render, 6);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  EXPECT_EQ((*catalogue().find(6))->render()->owner, 77U);
}

TEST_P(DumpTest, two_bos_of_one_memory_are_refused_or_saved_once) {
  start();
  kfd_.bos.push_back(vram_bo(3));
  kfd_.bos[0].inode = 4711;
  kfd_.bos[2].inode = 4711;
  kfd_.bos[2].imported = true;
  count_descriptors();
  if (GetParam() == Abi::kReleased) {
    expect_refused({"program77", "two BOs of 8192 bytes have the same memory"});
    return;
  }
  unsigned reads = 0;
  watch_ = [&] { ++reads; };
  expect_saved(kfd_file_, 4);
  EXPECT_EQ(reads, 1U);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  const image::Catalogue images = catalogue();
  EXPECT_FALSE((*images.find(4))->kfd()->bos[0].shares_contents);
  EXPECT_TRUE((*images.find(4))->kfd()->bos[2].shares_contents);
}

TEST_P(DumpTest, a_bo_that_the_kernel_did_not_describe_is_refused) {
  start();
  kfd_.bos[1].bo.size = 0;
  count_descriptors();
  expect_refused({"program77", "BO 1"});
}

TEST_P(DumpTest, a_gpu_that_sysfs_hides_is_refused) {
  start();
  kfd_.bos[0].bo.user_gpu_id = 0x9999;
  count_descriptors();
  expect_refused({"program77", "39321", "not in sysfs"});
}

TEST_P(DumpTest, more_gpus_than_can_be_restored_are_refused) {
  for (std::uint32_t i = 0; i < 1100; ++i) kfd_.devices.push_back({i + 1, i + 1});
  start();
  count_descriptors();
  expect_refused({"program77", "1101 GPUs"});
}

TEST_P(DumpTest, too_few_descriptors_are_refused_with_their_number) {
  if (GetParam() == Abi::kExtensible) return;  // BOs are exported one by one
  start();
  kfd_.fail_at = "checkpoint";
  kfd_.fail_errno = EMFILE;
  count_descriptors();
  expect_refused({"program77", "2 BOs", "RLIMIT_NOFILE"});
}

TEST_P(DumpTest, the_soft_limit_of_descriptors_is_raised_for_the_released_abi) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit low = before;
  low.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  preflight::reserve_descriptors(100);
  struct rlimit after {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_GE(after.rlim_cur, 300U);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_P(DumpTest, several_render_files_of_a_gpu_without_memory_are_refused) {
  const UniqueFd one = open_render();
  const UniqueFd other = open_render();
  kfd_.bos.clear();
  start({one.get(), other.get()});
  count_descriptors();
  expect_refused({"program77", "renderD128", "no memory on it that only the file has which KFD uses", "unknown which"});
}

TEST_P(DumpTest, a_file_of_a_program_that_is_not_traced_is_refused) {
  start();
  const UniqueFd strange = open_kfd();
  const auto claim = save(strange, 4);
  ASSERT_FALSE(claim.ok());
  EXPECT_NE(claim.error().message().find("no program has open which this thread traces"), std::string::npos)
      << claim.error().message();
  EXPECT_NE(claim.error().message().find("SCM_RIGHTS"), std::string::npos) << claim.error().message();
  dump_->finish(1);
  EXPECT_TRUE(kfd_.all_run());
}

// ---- the end ----------------------------------------------------------------

TEST_P(DumpTest, nothing_can_be_loaded_before_criu_has_succeeded) {
  start();
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(catalogue().intact().empty());
  EXPECT_TRUE(kfd_.all_stand());
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  EXPECT_EQ(catalogue().intact().size(), 1U);
}

TEST_P(DumpTest, after_success_the_queues_stand_until_criu_ends_or_run_at_once) {
  start();
  expect_saved(kfd_file_, 4);
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  dump_.reset();
  // The extensible ABI: the descriptor of the pause is left to the end of the process.
  EXPECT_EQ(kfd_.all_stand(), GetParam() == Abi::kExtensible);
}

// Kernels that count each PROCESS_INFO of a paused process leave a queue evicted for ever that was paused twice.
TEST_P(DumpTest, the_end_pauses_no_process_a_second_time) {
  start();
  const UniqueFd second = open_kfd();
  add_process(78, second);
  expect_saved(kfd_file_, 4);
  expect_saved(second, 5);
  const auto pauses = [this] { return std::count(kfd_.calls.begin(), kfd_.calls.end(), "pause"); };
  const auto before = pauses();
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  EXPECT_EQ(pauses(), before);
  for (const kfd::FakeProcess& process : kfd_.processes) EXPECT_EQ(process.evicted, 0U);
}

TEST_P(DumpTest, the_programs_file_may_be_closed_by_criu_before_the_end) {
  start();
  expect_saved(kfd_file_, 4);
  kfd_file_.reset();
  EXPECT_TRUE(dump_->finish(0).errors.empty());
  EXPECT_EQ(catalogue().intact().size(), 1U);
}

TEST_P(DumpTest, a_failure_of_criu_removes_the_image_and_lets_all_run) {
  start();
  const UniqueFd second = open_kfd();
  add_process(78, second);
  count_descriptors();
  expect_saved(kfd_file_, 4);
  expect_saved(second, 5);
  expect_failed_end();
  EXPECT_TRUE(files().empty());
}

TEST_P(DumpTest, a_reset_during_the_dump_ends_criu_and_leaves_nothing) {
  start();
  expect_saved(kfd_file_, 4);
  kfd_.processes.front().was_reset = true;
  const Dump::End end = dump_->finish(0);
  EXPECT_TRUE(end.must_end_criu);
  ASSERT_EQ(end.errors.size(), 1U);
  EXPECT_NE(end.errors[0].message().find("program77"), std::string::npos) << end.errors[0].message();
  EXPECT_NE(end.errors[0].message().find("not its state"), std::string::npos) << end.errors[0].message();
  EXPECT_TRUE(kfd_.all_run());
  EXPECT_TRUE(files().empty());
}

TEST_P(DumpTest, a_commit_that_fails_ends_criu_and_leaves_nothing) {
  start();
  expect_saved(kfd_file_, 4);
  std::filesystem::create_directories(images_.path() + "/" + std::string(image::kManifestName) + "/x");
  const Dump::End end = dump_->finish(0);
  EXPECT_TRUE(end.must_end_criu);
  EXPECT_FALSE(end.errors.empty());
  EXPECT_TRUE(kfd_.all_run());
  EXPECT_TRUE(catalogue().intact().empty());
}

TEST_P(DumpTest, a_file_that_criu_did_not_save_ends_criu) {
  const UniqueFd render = open_render();
  start({render.get()});
  expect_saved(kfd_file_, 4);
  const Dump::End end = dump_->finish(0);
  EXPECT_TRUE(end.must_end_criu);
  ASSERT_EQ(end.errors.size(), 1U);
  EXPECT_NE(end.errors[0].message().find("renderD128"), std::string::npos) << end.errors[0].message();
  EXPECT_TRUE(kfd_.all_run());
  EXPECT_TRUE(files().empty());
}

TEST_P(DumpTest, a_failure_that_criu_ignores_ends_it) {
  start();
  kfd_.fail_at = "checkpoint";
  EXPECT_FALSE(save(kfd_file_, 4).ok());
  const Dump::End end = dump_->finish(0);
  EXPECT_TRUE(end.must_end_criu);
  EXPECT_TRUE(kfd_.all_run());
}

TEST_P(DumpTest, a_pause_that_cannot_be_ended_is_reported_with_the_program) {
  start();
  expect_saved(kfd_file_, 4);
  kfd_.fail_at = "unpause";
  const Dump::End end = dump_->finish(1);
  ASSERT_EQ(end.errors.size(), 1U);
  EXPECT_NE(end.errors[0].message().find("program77"), std::string::npos) << end.errors[0].message();
}

TEST_P(DumpTest, the_end_asks_for_the_verdict_before_it_commits) {
  start();
  expect_saved(kfd_file_, 4);
  const std::string verdict = GetParam() == Abi::kExtensible ? "confirm" : "unpause";
  EXPECT_EQ(std::count(kfd_.calls.begin(), kfd_.calls.end(), verdict), 0);
  kfd_.fail_at = verdict;
  kfd_.fail_errno = EINVAL;
  const Dump::End end = dump_->finish(0);
  EXPECT_TRUE(end.must_end_criu);
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace plugin
