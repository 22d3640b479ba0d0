// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Restore of processes and files of render nodes that share memory, one after the other in this process, over a fake
// KFD and fake render nodes that follow the kernel's rules about it.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>

#include "base/os_failing.h"
#include "kfd/fake_kfd.h"
#include "plugin/fake_criu_restore.h"
#include "plugin/fake_render_driver.h"
#include "plugin/image/writer.h"
#include "plugin/restore.h"

namespace plugin {
namespace {

using base::UniqueFd;
using testing::FakeCriu;
using testing::FakeCriuImages;
using testing::FakeMachine;
using testing::FakeRenderDriver;
using testing::TempDir;

constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
constexpr auto kWritable = static_cast<std::uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE);
constexpr std::uint32_t kCoherent = KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
constexpr std::uint64_t kSize = 8192;
constexpr int kNumber = 700;  // of a program's /dev/kfd

struct SharedBo {
  std::uint64_t inode = 0;
  bool imported = false;
  bool stored = true;
  std::uint32_t flags = kVram;
};

std::uint64_t number_of(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
}

// Whether somebody who has this descriptor of CRIU's has memory by it: a socket with a message, or memory itself.
bool has_memory(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

// Writes as SDMA does, for which it does not matter what the CPU may do.
class ReopeningCopier final : public copy::Copier {
 public:
  copy::Outcome read(int /*dmabuf*/, std::uint64_t /*size*/, const copy::Sink& /*sink*/) override {
    return copy::Failure{copy::FailureKind::kBroken, base::Error(EIO, "reads nothing")};
  }
  copy::Outcome write(int dmabuf, std::uint64_t size, copy::Source& source) override {
    const UniqueFd file(::open(("/proc/self/fd/" + std::to_string(dmabuf)).c_str(), O_RDWR | O_CLOEXEC));
    return copy::make_cpu_copier()->write(file.get(), size, source);
  }
};

// Counts how often it is waited for.
class CountingCopier final : public copy::Copier {
 public:
  explicit CountingCopier(int& finished) : finished_(finished) {}
  copy::Outcome read(int dmabuf, std::uint64_t size, const copy::Sink& sink) override {
    return copy::make_cpu_copier()->read(dmabuf, size, sink);
  }
  copy::Outcome write(int dmabuf, std::uint64_t size, copy::Source& source) override {
    return copy::make_cpu_copier()->write(dmabuf, size, source);
  }
  base::Status finish() override {
    ++finished_;
    return {};
  }

 private:
  int& finished_;
};

class RestoreSharing : public ::testing::Test {
 protected:
  RestoreSharing() {
    machine_.add_gpu(1, kGpu, 128);
    kfd_.keeps_memory = true;
    services_.render.driver = driver_;
    node_.node_id = 1;
    node_.gpu_id = kGpu;
    node_.properties = {{"simd_count", 240}, {"gfx_target_version", 90006}, {"drm_render_minor", 128}};
  }

  // The KFD file of a process has the number of the process. Contents of memory are its inode.
  void add(std::uint32_t pid, const std::vector<SharedBo>& bos, std::vector<image::ForeignMemory> foreign = {}) {
    image::KfdFile file;
    file.pid = pid;
    file.devices = {{kGpu, kGpu}};
    file.priv_data.assign(16, std::byte{1});
    file.foreign_memories = std::move(foreign);
    for (const SharedBo& bo : bos)
      file.bos.push_back({{0x1000'0000 * (file.bos.size() + 1), kSize, 0x100000, kGpu, bo.flags},
                          0,
                          bo.inode,
                          false,
                          bo.imported,
                          !bo.stored});
    files_.push_back({pid, std::move(file)});
    criu_images_.tasks[pid].files.push_back({kNumber, pid});
  }

  // An open file of a render node, of this process. Handles are 5, 6, ...
  image::RenderFile& add_render(std::uint32_t id, std::uint32_t pid, const std::vector<SharedBo>& objects) {
    image::RenderFile file{kGpu, 0, image::Binding::kOther, 0};
    for (const SharedBo& object : objects) {
      const auto handle = static_cast<std::uint32_t>(5 + file.bos.size());
      const std::uint32_t domains = object.flags == kVram ? image::kGemVram : image::kGemGtt;
      file.objects.gem.push_back(
          {handle, domains, 0, 4096, {{0x200000000U + std::uint64_t{0x10000} * handle, kSize, 0, 2}}});
      file.bos.push_back(
          {{0, kSize, 0x300000, kGpu, object.flags}, handle, object.inode, false, object.imported, !object.stored});
    }
    files_.push_back({id, std::move(file)});
    criu_images_.tasks[pid].files.push_back({static_cast<int>(kNumber + id), id});
    return std::get<image::RenderFile>(files_.back().contents);
  }

  base::Result<UniqueFd> restore_render(std::uint32_t pid, std::uint32_t id) { return restore_dmabuf(pid, id); }

  [[nodiscard]] std::uint64_t object(const UniqueFd& file, std::uint32_t handle) const {
    return number_of(driver_->file(file.get()).gem.at(handle).memory.get());
  }
  [[nodiscard]] std::byte last_byte(const UniqueFd& file, std::uint32_t handle) const {
    return FakeRenderDriver::contents(driver_->file(file.get()).gem.at(handle)).back();
  }

  // A DMA-buf that these processes have open.
  void add_dmabuf(std::uint32_t id, std::uint64_t inode, const std::vector<std::uint32_t>& holders,
                  std::uint64_t size = kSize, const std::string& name = {}) {
    files_.push_back({id, image::DmabufFile{inode, size, name, O_NONBLOCK}});
    for (const std::uint32_t pid : holders) criu_images_.tasks[pid].files.push_back({kNumber + 2, id});
  }

  Restore& start() {
    auto writer = image::SessionWriter::create(criu_.image_dir(), 5);
    EXPECT_TRUE(writer.ok());
    image::Session session;
    session.nodes = {node_};
    session.abi = abi_;
    for (const image::File& file : files_) {
      const auto* process = std::get_if<image::KfdFile>(&file.contents);
      const auto* render = std::get_if<image::RenderFile>(&file.contents);
      if (process != nullptr) session.processes.push_back({process->pid, "program"});
      const std::vector<image::BoRecord> bos = process != nullptr  ? process->bos
                                               : render != nullptr ? render->bos
                                                                   : std::vector<image::BoRecord>();
      for (const image::BoRecord& record : bos) {
        const std::vector<std::byte> contents(record.bo.size, static_cast<std::byte>(record.inode));
        if (image::stores_contents(record)) {
          EXPECT_TRUE((*writer)->file(file.id).append(contents).ok());
        }
      }
      EXPECT_TRUE((*writer)->add(file).ok());
    }
    const auto prepared = (*writer)->prepare(std::move(session));
    EXPECT_TRUE(prepared.ok()) << prepared.error().message();
    EXPECT_TRUE((*writer)->commit().ok());
    criu_images_.write(dir_.path());
    restore_ = std::make_unique<Restore>(services_);
    restore_->prepare();
    return *restore_;
  }

  // Another restore of the same images.
  void restart() {
    kfd_.restored_memories.clear();
    criu_.kept.clear();
    restore_ = std::make_unique<Restore>(services_);
    restore_->prepare();
  }

  // Which of the calls that `what` makes is the first one of this name; 0: none.
  std::uint64_t number_of_call(const std::string& name, const std::function<void()>& what) const {
    const std::string list = dir_.path() + "/calls";
    ::setenv("KFD_CRIU_FAIL_LIST", list.c_str(), 1);
    os::fail_call(0, 0);
    what();
    ::unsetenv("KFD_CRIU_FAIL_LIST");
    std::ifstream in(list);
    for (std::string line; std::getline(in, line);)
      if (line.ends_with(" " + name)) return std::strtoull(line.c_str(), nullptr, 10);
    ADD_FAILURE() << "no call " << name;
    return 0;
  }

  base::Status restore(std::uint32_t pid) {
    criu_.task = static_cast<pid_t>(pid);
    auto fd = restore_->restore_file(pid);
    if (!fd.ok()) return std::move(fd).error();
    const UniqueFd file(fd->value());
    return {};
  }

  base::Result<UniqueFd> restore_dmabuf(std::uint32_t pid, std::uint32_t id) {
    criu_.task = static_cast<pid_t>(pid);
    ASSIGN_OR_RETURN(const auto fd, restore_->restore_file(id));
    if (!fd) return base::Error(ENOENT, "not ours");
    return UniqueFd(*fd);
  }

  base::Result<Claim> resume(std::uint32_t pid) {
    const auto path = machine_.root() + "/proc/" + std::to_string(pid) + "/status";
    testing::write_file(path, "NSpid:\t" + std::to_string(pid) + "\n");
    return restore_->resume(static_cast<pid_t>(pid));
  }

  // BO `bo` of the index-th process that was restored.
  [[nodiscard]] std::uint64_t memory(std::size_t index, std::size_t bo) const {
    return number_of(kfd_.restored_memories[index][bo].get());
  }
  [[nodiscard]] std::byte first_byte(std::size_t index, std::size_t bo) const {
    std::byte byte{};
    EXPECT_EQ(::pread(kfd_.restored_memories[index][bo].get(), &byte, 1, kSize - 1), 1);
    return byte;
  }
  [[nodiscard]] std::string name(std::size_t index, std::size_t bo) const {
    std::array<char, 64> text{};
    const std::string path = "/proc/self/fd/" + std::to_string(kfd_.restored_memories[index][bo].get());
    EXPECT_GT(::readlink(path.c_str(), text.data(), text.size() - 1), 0);
    return text.data();
  }

  void expect_refused(const std::string& why) {
    for (const image::File& file : files_) {
      const auto* process = std::get_if<image::KfdFile>(&file.contents);
      const auto status = process != nullptr ? restore(file.id) : base::Status(restore_dmabuf(77, file.id).error());
      ASSERT_FALSE(status.ok());
      EXPECT_NE(status.error().message().find(why), std::string::npos) << status.error().message();
    }
    for (const std::string& call : kfd_.calls) EXPECT_NE(call, "restore");
  }

  TempDir dir_;
  FakeMachine machine_;
  FakeCriu criu_{dir_.path()};
  FakeCriuImages criu_images_;
  System system_{machine_.roots()};
  kfd::FakeKfd kfd_;
  Services services_{
      criu_, system_, kfd_,
      [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{}};
  topology::Node node_;
  image::Abi abi_ = image::Abi::kExtensible;
  std::vector<image::File> files_;
  std::unique_ptr<Restore> restore_;
  std::shared_ptr<FakeRenderDriver> driver_ = std::make_shared<FakeRenderDriver>();
};

TEST_F(RestoreSharing, three_processes_have_the_memory_of_the_one_that_allocated_it) {
  add(77, {{7}, {8}});
  add(78, {{9}, {7, true, false}});
  add(79, {{7, true, false}, {8, true, false}});
  start();
  for (const std::uint32_t pid : {77U, 78U, 79U}) ASSERT_TRUE(restore(pid).ok()) << pid;
  EXPECT_EQ(memory(0, 0), memory(1, 1));
  EXPECT_EQ(memory(0, 0), memory(2, 0));
  EXPECT_EQ(memory(0, 1), memory(2, 1));
  EXPECT_NE(memory(0, 0), memory(0, 1));
  EXPECT_EQ(first_byte(2, 0), std::byte{7});
  EXPECT_EQ(first_byte(2, 1), std::byte{8});
  EXPECT_EQ(first_byte(1, 0), std::byte{9});
  for (const std::uint32_t pid : {77U, 78U, 79U}) EXPECT_TRUE(resume(pid).ok()) << resume(pid).error().message();
}

TEST_F(RestoreSharing, of_a_cycle_each_process_gives_or_makes_and_flags_are_those_of_the_allocation) {
  add(77, {{7}, {8, true, false}});
  add(78, {{7, true, false}, {8, false, true, kVram | kWritable | kCoherent}});
  start();
  ASSERT_TRUE(restore(77).ok());
  ASSERT_TRUE(restore(78).ok());
  EXPECT_EQ(memory(0, 0), memory(1, 0));
  EXPECT_EQ(memory(0, 1), memory(1, 1));
  EXPECT_EQ(first_byte(1, 0), std::byte{7});
  EXPECT_EQ(first_byte(1, 1), std::byte{8});
  const auto made = kfd::fake_memory_name({kSize, kGpu, kVram | kWritable | kCoherent, -1});
  EXPECT_NE(name(0, 1).find(made), std::string::npos) << name(0, 1);
  EXPECT_EQ(name(0, 0).find("fake-memory"), std::string::npos);
  EXPECT_TRUE(resume(77).ok());
}

TEST_F(RestoreSharing, memory_of_nobody_is_made_as_it_was_allocated_by_who_needs_it_first) {
  const std::uint32_t imported = kVram | kWritable;
  add(77, {{7, true, true, imported}}, {{7, kCoherent}});
  add(78, {{7, true, false, imported}});
  start();
  ASSERT_TRUE(restore(78).ok());
  ASSERT_TRUE(restore(77).ok());
  EXPECT_EQ(memory(0, 0), memory(1, 0));
  EXPECT_EQ(first_byte(0, 0), std::byte{7});
  EXPECT_NE(name(0, 0).find(kfd::fake_memory_name({kSize, kGpu, kVram | kWritable | kCoherent, -1})), std::string::npos)
      << name(0, 0);
}

// The dump goes through processes by their pids on the host, and the restore through files.
TEST_F(RestoreSharing, memory_of_nobody_is_made_as_the_file_with_its_contents_says) {
  const std::uint32_t imported = kVram | kWritable;
  constexpr std::uint32_t kPublic = KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
  add(77, {{7, true, false, imported}});
  add(78, {{8}, {7, true, true, imported}}, {{7, kCoherent | kPublic}});
  add(79, {{7, true, false, imported}});
  start();
  for (const std::uint32_t pid : {77U, 78U, 79U}) ASSERT_TRUE(restore(pid).ok()) << pid;
  EXPECT_EQ(memory(0, 0), memory(1, 1));
  EXPECT_EQ(memory(0, 0), memory(2, 0));
  EXPECT_EQ(first_byte(0, 0), std::byte{7});
  const auto made = kfd::fake_memory_name({kSize, kGpu, kVram | kWritable | kCoherent | kPublic, -1});
  EXPECT_NE(name(0, 0).find(made), std::string::npos) << name(0, 0);
}

TEST_F(RestoreSharing, no_descriptor_of_shared_memory_stays_in_a_process) {
  add(77, {{7}, {8, true, false}});
  add(78, {{7, true, false}, {8}});
  start();
  ASSERT_TRUE(restore(77).ok());
  ASSERT_TRUE(restore(78).ok());
  std::size_t memories = 0;
  const auto descriptors = *system_.descriptors();
  for (const int fd : descriptors)
    if (system_.descriptor_path(fd)->starts_with("/memfd:fake")) ++memories;
  // CRIU has those of each process that gives memory in a socket, and the fake KFD one of each BO.
  EXPECT_EQ(criu_.kept.size(), 2U);
  EXPECT_EQ(memories, 4U);
}

// Without --restore-detached CRIU lives as long as the programs.
TEST_F(RestoreSharing, what_criu_keeps_refers_to_no_memory_when_the_restore_is_complete) {
  add(77, {{7}, {8, true, false}});
  add(78, {{7, true, false}, {8}});
  start();
  ASSERT_TRUE(restore(77).ok());
  ASSERT_TRUE(restore(78).ok());
  ASSERT_EQ(criu_.kept.size(), 2U);
  for (const UniqueFd& kept : criu_.kept) EXPECT_TRUE(has_memory(kept.get()));
  ASSERT_TRUE(resume(77).ok());
  for (const UniqueFd& kept : criu_.kept) EXPECT_FALSE(has_memory(kept.get()));
  EXPECT_TRUE(resume(78).ok());
  EXPECT_TRUE(criu_.warnings.empty());
}

TEST_F(RestoreSharing, memory_that_criu_cannot_release_is_named) {
  add(77, {{7}});
  add(78, {{7, true, false}});
  start();
  ASSERT_TRUE(restore(77).ok());
  ASSERT_TRUE(restore(78).ok());
  const std::uint64_t call = number_of_call("fdstore_get", [this] { (void)resume(77); });
  restart();
  ASSERT_TRUE(restore(77).ok());
  ASSERT_TRUE(restore(78).ok());
  os::fail_call(call, EIO);
  EXPECT_TRUE(resume(77).ok());
  os::fail_call(0, 0);
  ASSERT_EQ(criu_.warnings.size(), 1U);
  EXPECT_NE(criu_.warnings[0].find("shared memory of 8192 bytes stays allocated as long as CRIU runs"),
            std::string::npos)
      << criu_.warnings[0];
}

TEST_F(RestoreSharing, a_full_fdstore_is_refused_with_the_number_of_memories_and_what_to_do) {
  add(77, {{7}, {8}});
  add(78, {{7, true, false}, {8, true, false}});
  start();
  const std::uint64_t call = number_of_call("fdstore_add", [this] { (void)restore(77); });
  for (const auto& [code, remedy] : {std::pair(EAGAIN,
                                               "every process that gives memory to others needs a place for each 253; "
                                               "give CRIU CAP_NET_ADMIN, or raise net.core.wmem_max"),
                                     std::pair(ETOOMANYREFS,
                                               "2 memories that the processes share needs one; give CRIU "
                                               "CAP_SYS_RESOURCE, or raise its limit of open files")}) {
    restart();
    os::fail_call(call, code);
    const auto status = restore(77);
    EXPECT_EQ(os::failed_call(), "fdstore_add");
    os::fail_call(0, 0);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message().find(remedy), std::string::npos) << status.error().message();
  }
}

// CRIU may not be permitted to enlarge the queue of its fdstore.
TEST_F(RestoreSharing, a_thousand_memories_need_few_places_in_the_fdstore) {
  std::vector<SharedBo> given;
  std::vector<SharedBo> taken;
  for (std::uint64_t inode = 1; inode <= 600; ++inode) {
    given.push_back({inode});
    taken.push_back({inode, true, false});
    given.push_back({1000 + inode, true, false});
    taken.push_back({1000 + inode});
  }
  add(77, given);
  add(78, taken);
  start();
  ASSERT_TRUE(restore(77).ok());
  ASSERT_TRUE(restore(78).ok());
  EXPECT_EQ(criu_.kept.size(), 6U);  // 253, 253 and 94 that are given, and as many that are made apart
  for (std::size_t bo = 0; bo < given.size(); ++bo) {
    ASSERT_EQ(memory(0, bo), memory(1, bo)) << bo;
    ASSERT_EQ(first_byte(1, bo), static_cast<std::byte>(given[bo].inode)) << bo;
  }
  ASSERT_TRUE(resume(77).ok());
  for (const UniqueFd& kept : criu_.kept) EXPECT_FALSE(has_memory(kept.get()));
}

// Loading takes as long as the memory is large, and the others need only the memory.
TEST_F(RestoreSharing, a_process_offers_all_memory_before_it_loads_any) {
  add(77, {{7}, {8, true, false}});
  add(78, {{7, true, false}, {8}});
  start();
  std::optional<std::size_t> offered;
  services_.make_copier = [&](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    if (!offered) offered = criu_.kept.size();
    return copy::make_cpu_copier();
  };
  ASSERT_TRUE(restore(77).ok());
  EXPECT_EQ(offered, 2U);  // it makes one, and the other is allocated for it
}

TEST_F(RestoreSharing, a_process_waits_once_for_the_contents_of_all_memories) {
  add(77, {{7}, {8}, {9, true, false}, {10, true, false}});
  add(78, {{7, true, false}, {8, true, false}, {9}, {10}});
  start();
  int finished = 0;
  services_.make_copier = [&](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    return std::unique_ptr<copy::Copier>(std::make_unique<CountingCopier>(finished));
  };
  ASSERT_TRUE(restore(77).ok());
  EXPECT_EQ(finished, 2);  // once for the memories, once for what it shares with nobody
  ASSERT_TRUE(restore(78).ok());
  for (std::size_t bo = 0; bo < 4; ++bo) EXPECT_EQ(first_byte(1, bo), static_cast<std::byte>(7 + bo));
  EXPECT_TRUE(resume(78).ok());
}

TEST_F(RestoreSharing, a_giver_that_has_ended_fails_the_others_with_its_name_at_once) {
  const pid_t giver = ::fork();
  if (giver == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(giver), &info, WEXITED | WNOWAIT), 0);  // it stays a zombie
  add(static_cast<std::uint32_t>(giver), {{7}});
  add(78, {{7, true, false}});
  start();
  const auto begin = std::chrono::steady_clock::now();
  const auto status = restore(78);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("process " + std::to_string(giver) +
                                          ", which allocates it, has ended or was not restored"),
            std::string::npos)
      << status.error().message();
  ::waitpid(giver, nullptr, 0);
}

TEST_F(RestoreSharing, a_giver_that_cannot_be_watched_is_not_said_to_have_ended) {
  const pid_t giver = ::fork();
  if (giver == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(giver), &info, WEXITED | WNOWAIT), 0);
  add(static_cast<std::uint32_t>(giver), {{7}});
  add(78, {{7, true, false}});
  start();
  const std::uint64_t call = number_of_call("pidfd_open", [this] { (void)restore(78); });
  restart();
  os::fail_call(call, EMFILE);
  const auto status = restore(78);
  EXPECT_EQ(os::failed_call(), "pidfd_open");
  os::fail_call(0, 0);
  ::waitpid(giver, nullptr, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EMFILE);
  EXPECT_EQ(status.error().message(), "shared memory of 8192 bytes: watching process " + std::to_string(giver) +
                                          ", which allocates it: Too many open files");
}

TEST_F(RestoreSharing, a_giver_whose_restore_has_failed_fails_the_others_with_its_name_at_once) {
  const auto giver = static_cast<std::uint32_t>(::getpid());
  add(giver, {{7}});
  add(78, {{7, true, false}});
  start();
  kfd_.fail_at = "restore";
  EXPECT_FALSE(restore(giver).ok());
  const auto status = restore(78);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("process " + std::to_string(giver)), std::string::npos);
}

TEST_F(RestoreSharing, without_its_contents_no_holder_of_a_memory_is_resumed) {
  add(77, {{7}});
  add(78, {{7, true, false}});
  start();
  services_.make_copier = [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    return base::Error(EIO, "no copier");
  };
  EXPECT_FALSE(restore(77).ok());
  ASSERT_TRUE(restore(78).ok());  // it has the memory
  const auto resumed = resume(78);
  ASSERT_FALSE(resumed.ok());
  EXPECT_NE(resumed.error().message().find("the contents of shared memory of 8192 bytes were not loaded"),
            std::string::npos)
      << resumed.error().message();
}

TEST_F(RestoreSharing, without_fdstore_it_is_refused_before_anything_is_made) {
  add(77, {{7}});
  add(78, {{7, true, false}});
  criu_.has_fdstore = false;
  start();
  expect_refused("this CRIU has no fdstore_add() and fdstore_get()");
}

TEST_F(RestoreSharing, where_criu_does_not_say_who_opens_which_file_it_is_refused) {
  add(77, {{7}});
  add(78, {{7, true, false}});
  start();
  std::filesystem::remove(dir_.path() + "/pstree.img");
  restore_ = std::make_unique<Restore>(services_);
  restore_->prepare();
  expect_refused("CRIU's images are not readable");
}

TEST_F(RestoreSharing, processes_that_share_nothing_need_no_fdstore) {
  add(77, {{7}, {7, true, false}});
  std::get_if<image::KfdFile>(&files_[0].contents)->bos[1].stored_elsewhere = false;
  std::get_if<image::KfdFile>(&files_[0].contents)->bos[1].shares_contents = true;
  add(78, {{8}});
  criu_.has_fdstore = false;
  start();
  EXPECT_TRUE(restore(77).ok());
  EXPECT_TRUE(restore(78).ok());
  EXPECT_EQ(memory(0, 0), memory(0, 1));
}

TEST_F(RestoreSharing, an_image_with_two_that_allocated_is_refused_before_anything_is_made) {
  add(77, {{7}});
  add(78, {{7, false, false}});
  start();
  expect_refused("it was allocated for this BO and for one of process 77");
}

TEST_F(RestoreSharing, an_image_whose_contents_are_stored_twice_or_never_is_refused_before_anything_is_made) {
  add(77, {{7}});
  add(78, {{7, true, true}});
  start();
  expect_refused("are stored with it and with process 77");
  files_.clear();
  add(77, {{7, false, false}});
  add(78, {{7, true, false}});
  start();
  expect_refused("process 77: the contents of shared memory of 8192 bytes are not stored");
  files_.clear();
  add(77, {{7, false, false}});
  start();
  expect_refused("process 77: the contents of shared memory of 8192 bytes are not stored");
}

TEST_F(RestoreSharing, an_image_of_the_released_abi_that_shares_memory_is_refused) {
  add(77, {{7}});
  add(78, {{7, true, false}});
  abi_ = image::Abi::kReleased;
  start();
  expect_refused("the released ABI of KFD");
}

// Whatever fails, a process has the right memory with the right contents, or is not resumed.
TEST_F(RestoreSharing, a_failure_of_any_call_is_an_error_or_changes_nothing) {
  add(77, {{7}, {8, true, false}});
  add(78, {{7, true, false}, {8}});
  start();
  unsigned survived = 0;
  for (std::uint64_t call = 1;; call += os::fail_step()) {
    SCOPED_TRACE(call);
    kfd_.restored_memories.clear();
    criu_.kept.clear();
    restore_ = std::make_unique<Restore>(services_);
    os::fail_call(call, EIO);
    restore_->prepare();
    bool is_good = restore(77).ok() && restore(78).ok();
    for (const std::uint32_t pid : {77U, 78U}) is_good = is_good && resume(pid).ok();
    const std::string failed = os::failed_call();
    os::fail_call(0, 0);
    while (failed == "waitpid" && ::waitpid(-1, nullptr, __WALL) > 0) {
    }
    EXPECT_EQ(::waitpid(-1, nullptr, __WALL | WNOHANG), -1) << failed;
    if (is_good) {
      ASSERT_EQ(memory(0, 0), memory(1, 0)) << failed;
      ASSERT_EQ(memory(0, 1), memory(1, 1)) << failed;
      ASSERT_EQ(first_byte(1, 0), std::byte{7}) << failed;
      ASSERT_EQ(first_byte(1, 1), std::byte{8}) << failed;
      if (failed.empty()) break;
      ++survived;
    }
    ASSERT_LT(call, 2000U);
  }
  EXPECT_LT(survived, 60U);
}

// CRIU asks the process with the lowest pid for a file of several.
TEST_F(RestoreSharing, nobody_waits_in_its_files_for_a_process_whose_own_file_it_has_to_open) {
  add(77, {{7, true, false}});
  add(78, {{7}});
  criu_images_.tasks[77].files.push_back({kNumber + 1, 78});
  FakeCriuImages::Vma vma;
  vma.start = 0x1000'0000;
  vma.offset = 0x100000;
  vma.status |= FakeCriuImages::kFileShared | FakeCriuImages::kPlugin;
  criu_images_.tasks[78].vmas.push_back(vma);
  start();
  ASSERT_TRUE(restore(77).ok());
  const auto inert = restore_->restore_file(78);
  ASSERT_TRUE(inert.ok() && inert->has_value());
  const UniqueFd file(**inert);
  ASSERT_EQ(::dup2(file.get(), kNumber), kNumber);
  const UniqueFd planted(kNumber);
  criu_.task = 78;
  const auto answer = restore_->update_vma("/dev/dri/renderD128", vma.start, vma.offset);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(memory(0, 0), memory(1, 0));
  EXPECT_NE(name(0, 0).find("fake-memory"), std::string::npos);
}

// ---- GEM objects of several files ----

TEST_F(RestoreSharing, in_any_order_files_have_one_object_that_is_made_once) {
  add_render(1, 50, {{7}, {9}});
  add_render(2, 51, {{7, true, false}, {8}});
  add_render(3, 52, {{8, true, false}, {7, true, false}});
  std::array<std::uint32_t, 3> order = {1, 2, 3};
  abi_ = image::Abi::kReleased;  // none of them uses KFD
  start();
  do {
    restart();
    driver_->files.clear();
    std::map<std::uint32_t, UniqueFd> files;
    for (const std::uint32_t id : order) {
      auto file = restore_render(49 + id, id);
      ASSERT_TRUE(file.ok()) << file.error().message();
      files.emplace(id, std::move(*file));
    }
    EXPECT_EQ(object(files.at(1), 5), object(files.at(2), 5));
    EXPECT_EQ(object(files.at(1), 5), object(files.at(3), 6));
    EXPECT_EQ(object(files.at(2), 6), object(files.at(3), 5));
    EXPECT_NE(object(files.at(1), 5), object(files.at(2), 6));
    for (const auto& [id, file] : files) {
      EXPECT_EQ(driver_->file(file.get()).gem.size(), 2U);
      EXPECT_EQ(driver_->file(file.get()).gem.at(5).mappings.size(), 1U);
    }
    EXPECT_EQ(last_byte(files.at(3), 6), std::byte{7});
    EXPECT_EQ(last_byte(files.at(3), 5), std::byte{8});
    EXPECT_EQ(last_byte(files.at(1), 6), std::byte{9});
    ASSERT_TRUE(resume(50).ok());
    for (const UniqueFd& kept : criu_.kept) EXPECT_FALSE(has_memory(kept.get()));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_TRUE(kfd_.calls.empty());
}

TEST_F(RestoreSharing, two_files_of_one_process_may_share) {
  add_render(1, 50, {{7}});
  add_render(2, 50, {{7, true, false}});
  start();
  const auto second = restore_render(50, 2);
  ASSERT_TRUE(second.ok()) << second.error().message();
  const auto first = restore_render(50, 1);
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ(object(*first, 5), object(*second, 5));
}

TEST_F(RestoreSharing, an_object_has_the_memory_of_a_bo_whoever_allocated_it) {
  add(77, {{7}, {8, true, false}, {9}});
  add_render(1, 77, {{7, true, false}, {8}});
  add_render(2, 51, {{8, true, false}, {9, true, false}});
  for (const bool is_kfd_first : {false, true}) {
    start();
    driver_->files.clear();
    kfd_.restored_memories.clear();
    criu_.kept.clear();
    if (is_kfd_first) {
      ASSERT_TRUE(restore(77).ok());
    }
    const auto second = restore_render(51, 2);
    ASSERT_TRUE(second.ok()) << second.error().message();
    const auto first = restore_render(77, 1);
    ASSERT_TRUE(first.ok()) << first.error().message();
    if (!is_kfd_first) {
      ASSERT_TRUE(restore(77).ok());
    }
    EXPECT_EQ(memory(0, 0), object(*first, 5));
    EXPECT_EQ(memory(0, 1), object(*first, 6));
    EXPECT_EQ(memory(0, 1), object(*second, 5));
    EXPECT_EQ(memory(0, 2), object(*second, 6));
    for (const std::size_t bo : {0U, 1U, 2U}) EXPECT_EQ(first_byte(0, bo), static_cast<std::byte>(7 + bo));
    EXPECT_NE(name(0, 0).find("fake-memory"), std::string::npos) << "KFD has allocated it";
    EXPECT_NE(name(0, 1).find("gem"), std::string::npos) << "the render node has created it";
    EXPECT_TRUE(resume(77).ok());
  }
}

TEST_F(RestoreSharing, a_program_without_files_is_given_the_dmabuf_of_a_gem_object) {
  add_render(1, 77, {{7}});
  add_dmabuf(5, 7, {50, 77});
  abi_ = image::Abi::kReleased;
  start();
  const auto dmabuf = restore_dmabuf(50, 5);
  ASSERT_TRUE(dmabuf.ok()) << dmabuf.error().message();
  const auto file = restore_render(77, 1);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(number_of(dmabuf->get()), object(*file, 5));
  EXPECT_EQ(last_byte(*file, 5), std::byte{7});
}

TEST_F(RestoreSharing, a_dmabuf_that_may_not_be_written_through_is_made_so) {
  add(77, {{7, true}, {8}}, {{7, 0}});
  add_render(1, 51, {{9}});
  add_dmabuf(5, 7, {50});
  add_dmabuf(6, 9, {50});
  add_dmabuf(7, 8, {50});
  for (const std::size_t i : {2U, 3U}) std::get<image::DmabufFile>(files_[i].contents).read_only = true;
  services_.make_copier = [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> {
    return std::unique_ptr<copy::Copier>(std::make_unique<ReopeningCopier>());
  };
  start();
  ASSERT_TRUE(restore(77).ok());
  const std::map<std::uint32_t, int> expected = {{5, O_RDONLY}, {6, O_RDONLY}, {7, O_RDWR}};
  for (const auto& [id, access] : expected) {
    const auto dmabuf = restore_dmabuf(50, id);
    ASSERT_TRUE(dmabuf.ok()) << dmabuf.error().message();
    EXPECT_EQ(::fcntl(dmabuf->get(), F_GETFL) & O_ACCMODE, access) << id;
    std::byte byte{};
    EXPECT_EQ(::pread(dmabuf->get(), &byte, 1, kSize - 1), 1);
    EXPECT_EQ(byte, static_cast<std::byte>(id == 5 ? 7 : id == 6 ? 9 : 8));
  }
}

TEST_F(RestoreSharing, images_with_impossible_gem_objects_are_refused_before_anything_is_made) {
  struct Bad {
    SharedBo first;
    SharedBo second;
    const char* why;
  };
  for (const Bad& bad : {Bad{{7, true, false}, {7, true, false}, "it was allocated for no BO"},
                         Bad{{7}, {7, false, true}, "it was allocated for this BO and for one of"},
                         Bad{{7, false, true, KFD_IOC_ALLOC_MEM_FLAGS_GTT}, {7, true, false}, "it is VRAM"}}) {
    SCOPED_TRACE(bad.why);
    files_.clear();
    criu_images_.tasks.clear();
    add_render(1, 77, {bad.first});
    add_render(2, 77, {bad.second});
    start();
    expect_refused(bad.why);
    EXPECT_TRUE(driver_->files.empty());
  }
  files_.clear();
  criu_images_.tasks.clear();
  add_render(1, 77, {{7}}).objects.gem[0].flags = image::kGemVmAlwaysValid;
  add_render(2, 77, {{7, true, false}});
  start();
  expect_refused("GEM object 5 is shared, and only the VM of its file can have it");
  files_.clear();
  criu_images_.tasks.clear();
  add_render(1, 77, {{7}}).bos[0].bo.size = 2 * kSize;
  add_render(2, 77, {{7, true, false}});
  start();
  expect_refused("bytes of it");
}

TEST_F(RestoreSharing, a_gem_object_whose_maker_has_ended_is_no_longer_waited_for) {
  const pid_t maker = ::fork();
  if (maker == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(maker), &info, WEXITED | WNOWAIT), 0);
  const auto pid = static_cast<std::uint32_t>(maker);
  add_render(1, pid, {{7}});
  add_render(2, 1, {{7, true, false}});
  start();
  const auto call = number_of_call("create_gem", [&] { (void)restore_render(pid, 1); });
  restart();
  os::fail_call(call, EIO);
  EXPECT_FALSE(restore_render(pid, 1).ok());
  os::fail_call(0, 0);
  const auto file = restore_render(1, 2);
  ::waitpid(maker, nullptr, 0);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message().find("process " + std::to_string(maker) +
                                        ", which allocates it, has ended or was not restored"),
            std::string::npos)
      << file.error().message();
}

TEST_F(RestoreSharing, a_failure_of_any_call_gives_no_object_of_other_memory) {
  add(77, {{7}, {8, true, false}});
  add_render(1, 50, {{7, true, false}, {8}});
  add_render(2, 77, {{8, true, false}});
  start();
  unsigned survived = 0;
  for (std::uint64_t call = 1;; call += os::fail_step()) {
    SCOPED_TRACE(call);
    driver_->files.clear();
    kfd_.restored_memories.clear();
    criu_.kept.clear();
    restore_ = std::make_unique<Restore>(services_);
    os::fail_call(call, EIO);
    restore_->prepare();
    const auto first = restore_render(50, 1);
    const bool has_kfd = first.ok() && restore(77).ok();
    // Who has failed offers nothing, and this process would wait for itself.
    const auto second = has_kfd ? restore_render(77, 2) : base::Result<UniqueFd>(base::Error(EIO, "not tried"));
    const bool is_good = second.ok() && resume(77).ok();
    const std::string failed = os::failed_call();
    os::fail_call(0, 0);
    while (failed == "waitpid" && ::waitpid(-1, nullptr, __WALL) > 0) {
    }
    if (is_good) {
      ASSERT_EQ(memory(0, 0), object(*first, 5)) << failed;
      ASSERT_EQ(memory(0, 1), object(*first, 6)) << failed;
      ASSERT_EQ(memory(0, 1), object(*second, 5)) << failed;
      ASSERT_EQ(first_byte(0, 0), std::byte{7}) << failed;
      ASSERT_EQ(first_byte(0, 1), std::byte{8}) << failed;
      if (failed.empty()) break;
      ++survived;
    }
    ASSERT_LT(call, 2000U);
  }
  EXPECT_LT(survived, 60U);
}

// ---- DMA-bufs that programs have open ----

TEST_F(RestoreSharing, an_open_dmabuf_of_its_own_memory_is_exported_by_the_process_itself) {
  add(77, {{8}, {7}});
  add_dmabuf(5, 7, {77, 90}, kSize, "mine");
  criu_.has_fdstore = false;
  std::string name;
  services_.name_dmabuf = [&](int, const std::string& given) -> base::Status {
    name = given;
    return {};
  };
  start();
  // CRIU asks for the DMA-buf first.
  const auto dmabuf = restore_dmabuf(77, 5);
  ASSERT_TRUE(dmabuf.ok()) << dmabuf.error().message();
  ASSERT_TRUE(restore(77).ok());
  EXPECT_EQ(number_of(dmabuf->get()), memory(0, 1));
  EXPECT_EQ(first_byte(0, 1), std::byte{7});
  EXPECT_EQ(name, "mine");
  EXPECT_NE(::fcntl(dmabuf->get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(kfd_.restored_memories.size(), 1U);
  EXPECT_TRUE(resume(77).ok());
}

TEST_F(RestoreSharing, a_process_that_maps_nothing_can_export_until_criu_has_asked_for_all) {
  add(77, {{7}});
  add_dmabuf(5, 7, {77});
  start();
  ASSERT_TRUE(restore(77).ok());
  const auto dmabuf = restore_dmabuf(77, 5);
  ASSERT_TRUE(dmabuf.ok()) << dmabuf.error().message();
  EXPECT_EQ(number_of(dmabuf->get()), memory(0, 0));
  EXPECT_TRUE(resume(77).ok());
}

TEST_F(RestoreSharing, a_program_without_kfd_is_given_the_memory_of_its_dmabuf) {
  add(77, {{7}});
  add_dmabuf(5, 7, {50, 77});
  start();
  ASSERT_TRUE(restore(77).ok());
  const auto dmabuf = restore_dmabuf(50, 5);
  ASSERT_TRUE(dmabuf.ok()) << dmabuf.error().message();
  EXPECT_EQ(number_of(dmabuf->get()), memory(0, 0));
  EXPECT_EQ(first_byte(0, 0), std::byte{7});
  ASSERT_TRUE(resume(77).ok());
  for (const UniqueFd& kept : criu_.kept) EXPECT_FALSE(has_memory(kept.get()));
}

// CRIU also asks it for the other's /dev/kfd, so that the other is restored when all files are open.
TEST_F(RestoreSharing, a_program_without_kfd_makes_the_memory_of_a_process_that_waits_for_its_files) {
  add(77, {{7}});
  add_dmabuf(5, 7, {50});
  criu_images_.tasks[50].files.push_back({kNumber, 77});
  FakeCriuImages::Vma vma;
  vma.start = 0x1000'0000;
  vma.offset = 0x100000;
  vma.status |= FakeCriuImages::kFileShared | FakeCriuImages::kPlugin;
  criu_images_.tasks[77].vmas.push_back(vma);
  start();
  const auto dmabuf = restore_dmabuf(50, 5);
  ASSERT_TRUE(dmabuf.ok()) << dmabuf.error().message();
  std::byte byte{};
  EXPECT_EQ(::pread(dmabuf->get(), &byte, 1, kSize - 1), 1);
  EXPECT_EQ(byte, std::byte{7});
  const auto inert = restore_->restore_file(77);
  ASSERT_TRUE(inert.ok() && inert->has_value());
  const UniqueFd file(**inert);
  ASSERT_EQ(::dup2(file.get(), kNumber), kNumber);
  const UniqueFd planted(kNumber);
  criu_.task = 77;
  const auto answer = restore_->update_vma("/dev/dri/renderD128", vma.start, vma.offset);
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(number_of(dmabuf->get()), memory(0, 0));
}

// Two processes may have DMA-bufs of each other's memory.
TEST_F(RestoreSharing, a_process_offers_its_own_memory_before_it_waits_for_that_of_its_dmabuf) {
  const pid_t giver = ::fork();
  if (giver == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(giver), &info, WEXITED | WNOWAIT), 0);
  const auto other = static_cast<std::uint32_t>(giver);
  add(1, {{7}});
  add(other, {{8}});
  add_dmabuf(5, 8, {1, other});
  add_dmabuf(6, 7, {other});
  start();
  const auto dmabuf = restore_dmabuf(1, 5);
  ::waitpid(giver, nullptr, 0);
  ASSERT_FALSE(dmabuf.ok());
  EXPECT_NE(dmabuf.error().message().find("process " + std::to_string(giver) +
                                          ", which allocates it, has ended or was not restored"),
            std::string::npos)
      << dmabuf.error().message();
  EXPECT_EQ(criu_.kept.size(), 1U);
}

TEST_F(RestoreSharing, an_image_with_a_dmabuf_of_no_bo_or_of_another_size_is_refused_before_anything_is_made) {
  add(77, {{7}});
  add_dmabuf(5, 8, {77});
  start();
  expect_refused("file 5: a DMA-buf of memory that no BO of the dump has");
  files_.pop_back();
  add_dmabuf(6, 7, {77}, 2 * kSize);
  start();
  expect_refused("a DMA-buf of 16384 bytes has the memory of a BO of 8192 bytes of process 77");
  files_.pop_back();
  add_dmabuf(6, 7, {77});
  abi_ = image::Abi::kReleased;
  start();
  expect_refused("file 6: a DMA-buf of memory that the released ABI of KFD does not name");
}

TEST_F(RestoreSharing, a_failure_of_any_call_gives_no_dmabuf_of_other_memory) {
  add(77, {{7}});
  add_dmabuf(5, 7, {50});
  add_dmabuf(6, 7, {77});
  start();
  unsigned survived = 0;
  for (std::uint64_t call = 1;; call += os::fail_step()) {
    SCOPED_TRACE(call);
    kfd_.restored_memories.clear();
    criu_.kept.clear();
    restore_ = std::make_unique<Restore>(services_);
    os::fail_call(call, EIO);
    restore_->prepare();
    bool is_good = restore(77).ok();
    const auto own = restore_dmabuf(77, 6);
    // Nobody else can offer the memory, so a process that was not restored is not waited for.
    const auto given = is_good ? restore_dmabuf(50, 5) : base::Result<UniqueFd>(base::Error(EIO, "not tried"));
    is_good = is_good && own.ok() && given.ok() && resume(77).ok();
    const std::string failed = os::failed_call();
    os::fail_call(0, 0);
    if (is_good) {
      ASSERT_EQ(number_of(own->get()), memory(0, 0)) << failed;
      ASSERT_EQ(number_of(given->get()), memory(0, 0)) << failed;
      ASSERT_EQ(first_byte(0, 0), std::byte{7}) << failed;
      if (failed.empty()) break;
      ++survived;
    }
    ASSERT_LT(call, 2000U);
  }
  EXPECT_LT(survived, 60U);
}

}  // namespace
}  // namespace plugin
