// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every system call of a dump and of a restore fails once, with each errno that matters. A dump that fails leaves
// nothing that loads and no pause; a restore that fails says so. One that succeeds in spite of the fault has done all
// that an undisturbed one does: the images are the same to the byte, and so is what KFD was told.
// KFD and the machine are fakes, and the program is a child process; a call of KFD counts as a system call.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "base/os_failing.h"
#include "kfd/fake_kfd.h"
#include "plugin/dump.h"
#include "plugin/fake_criu_restore.h"
#include "plugin/image/catalogue.h"
#include "plugin/image/codec.h"
#include "plugin/restore.h"
#include "plugin/test_program.h"
#include "plugin/test_support.h"

namespace plugin {
namespace {

using base::UniqueFd;
using testing::FakeCriu;
using testing::FakeCriuImages;
using testing::FakeMachine;
using testing::read_file;
using testing::TempDir;
using testing::TestProgram;
using testing::write_file;

constexpr std::uint32_t kKfdId = 4;
constexpr std::uint32_t kRenderId = 9;
constexpr std::uint32_t kPid = 77;
constexpr pid_t kRestoredPid = 5000;
constexpr std::uint64_t kSession = 5;
constexpr std::uint32_t kGpu = 0x1111;
constexpr std::uint32_t kOtherGpu = 0x2222;
constexpr std::uint64_t kBoAddr = 0x7f0000000000;
constexpr std::uint64_t kBoOffset = 0x100000000;
constexpr std::uint64_t kBoStep = 0x10000000;
constexpr std::size_t kBoSize = 4096 * 20;
constexpr std::array kErrnos = {EIO, ENOSPC, ENOMEM, EINTR, EMFILE};
constexpr const char* kSemaphore = "sem.hsakmt_semaphore";
constexpr int kFirstNumber = 200;  // of the restored program's descriptors

std::vector<std::byte> contents(std::size_t seed) {
  std::vector<std::byte> bytes(kBoSize);
  for (std::size_t i = 0; i < bytes.size(); i += 3) bytes[i] = static_cast<std::byte>(i / 3 + seed);
  return bytes;
}

// What is dumped and restored, by which CRIU and kernel.
struct Case {
  const char* name;
  kfd::Abi abi;
  bool own_mount_namespace;
  bool takes_vma_fd;  // see Criu
};

// Memory in a fake KFD is no DMA-buf, whose references procfs counts.
base::Result<std::uint64_t> count_references_of_one(int fd) {
  (void)memory_holders::references_of("/proc", fd);
  return testing::kReferencesOfOne;
}

// The fakes of one machine: its files, CRIU and KFD.
struct Fakes {
  explicit Fakes(const std::string& images) : criu(images) {
    services.render.has_metadata = [](int, int) -> base::Result<bool> { return false; };
  }

  FakeMachine machine;
  FakeCriu criu;
  System system{machine.roots()};
  kfd::FakeKfd kfd;
  Services services{
      criu,
      system,
      kfd,
      [](int, const Options&) -> base::Result<std::unique_ptr<copy::Copier>> { return copy::make_cpu_copier(); },
      Options{},
      {[](int, std::uint32_t) -> base::Result<std::string> { return std::string(); },
       [](int, std::uint64_t) -> base::Result<std::optional<bool>> { return std::optional<bool>(true); }},
      count_references_of_one};

  // The program to be dumped, and what it has open.
  UniqueFd kfd_file{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  UniqueFd render_file{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
  std::unique_ptr<TestProgram> program;
};

std::set<int> descriptors() {
  std::set<int> numbers;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    numbers.insert(std::stoi(entry.path().filename()));
  std::erase_if(numbers, [](int number) { return ::fcntl(number, F_GETFD) < 0; });  // of the iterator
  return numbers;
}

// The machine and the program.
std::unique_ptr<Fakes> source(const std::string& images, const Case& with) {
  auto fakes = std::make_unique<Fakes>(images);
  fakes->kfd.abi = with.abi;
  fakes->machine.add_gpu(1, kGpu, 128);
  const std::string shm = fakes->machine.root() + "/dev/shm/";
  write_file(shm + kSemaphore, "semaphore");
  const std::string maps = "7f00-7f01 rw-s 0 00:01 1 " + shm + kSemaphore + "\n";
  write_file(fakes->machine.root() + "/proc/sys/kernel/osrelease", "6.12.0\n");
  const std::vector<int> files = {fakes->kfd_file.get(), fakes->render_file.get()};
  fakes->program = std::make_unique<TestProgram>(fakes->machine, kPid, files, maps);
  if (with.own_mount_namespace) {
    const std::string link = fakes->machine.root() + "/proc/" + std::to_string(fakes->program->pid()) + "/ns/mnt";
    std::filesystem::remove(link);
    std::filesystem::create_symlink("mnt:[1]", link);
  }
  fakes->kfd.devices = {{kGpu, kGpu}};
  fakes->kfd.bos = {{{kBoAddr, kBoSize, kBoOffset, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_VRAM}, contents(1), 1, 101, false},
                    {{kBoAddr + kBoStep, kBoSize, kBoOffset + kBoStep, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_GTT},
                     contents(2),
                     2,
                     102,
                     false},
                    {{0x5000, 4096, 0, kGpu, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR}, {}, 3, 0, false}};
  fakes->kfd.priv_data.assign(64, std::byte{0x5a});
  fakes->kfd.num_objects = 2;
  fakes->kfd.pid = kPid;
  return fakes;
}

// As if KFD had not been called yet.
void forget(Fakes& fakes) {
  fakes.kfd.paused = false;
  fakes.kfd.processes.front().evicted = 0;
  fakes.kfd.processes.front().pause_ends.clear();
  fakes.kfd.calls.clear();
  fakes.kfd.restored.reset();
  fakes.kfd.resumed.clear();
}

void empty(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) std::filesystem::remove_all(entry.path());
}

// The machine in which it is restored.
std::unique_ptr<Fakes> target(const std::string& images, const Case& with) {
  auto fakes = std::make_unique<Fakes>(images);
  fakes->machine.add_gpu(1, kOtherGpu, 130);
  fakes->machine.add_tracee(kRestoredPid, kPid, "");
  fakes->criu.task = static_cast<pid_t>(kPid);
  fakes->criu.new_rule = with.takes_vma_fd;
  return fakes;
}

std::uint64_t bo_address(std::uint64_t index) { return kBoAddr + index * kBoStep; }
std::uint64_t bo_offset(std::uint64_t index) { return kBoOffset + index * kBoStep; }

// What CRIU writes beside the images of the plugin.
void write_criu_images(const std::string& directory) {
  FakeCriuImages images;
  FakeCriuImages::Task& task = images.tasks[kPid];
  task.files = {{kFirstNumber, kKfdId}, {kFirstNumber + 1, kRenderId}};
  for (std::uint32_t i = 0; i < 2; ++i) {
    FakeCriuImages::Vma vma;
    vma.start = bo_address(i);
    vma.offset = bo_offset(i);
    vma.file_id = 70 + i;
    vma.status |= FakeCriuImages::kFileShared | FakeCriuImages::kPlugin;
    task.vmas.push_back(vma);
  }
  images.write(directory);
}

// ---- the two stories --------------------------------------------------------

// As CRIU does it: each file, then the end. Empty, or what went wrong.
std::string dump(Fakes& fakes) {
  Dump session(fakes.services, kSession);
  std::string errors;
  for (const auto& [fd, id] :
       {std::pair{fakes.kfd_file.get(), kKfdId}, std::pair{fakes.render_file.get(), kRenderId}}) {
    const auto claim = session.dump_file(fd, id);
    if (!claim.ok()) errors += claim.error().message() + "\n";
    if (claim.ok() && *claim != Claim::kMine) errors += "not ours\n";  // CRIU refuses such a file
    if (!errors.empty()) break;
  }
  const Dump::End end = session.finish(errors.empty() ? 0 : -EIO);
  for (const base::Error& error : end.errors) errors += error.message() + "\n";
  EXPECT_TRUE(!end.must_end_criu || !end.errors.empty());
  return errors;
}

struct Restored {
  std::string errors;
  std::string report;  // all that a restore has to bring back
};

// As CRIU does it, but in one process. Stops at the first failure, where CRIU or the plugin ends the process.
class Story {
 public:
  explicit Story(Fakes& fakes) : fakes_(fakes), session_(fakes.services) {}
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;
  ~Story() {
    for (const int number : {kFirstNumber, kFirstNumber + 1}) ::close(number);
  }

  Restored run() {
    session_.prepare();
    if (!restore_files() || !map()) {
      // As if CRIU went on, which ignores what UPDATE_VMA_MAP answers.
      (void)session_.resume(kRestoredPid);
      return {errors_, {}};
    }
    const auto resumed = session_.resume(kRestoredPid);
    if (failed(resumed)) return {errors_, {}};
    report_ << (*resumed == Claim::kMine ? "resumed\n" : "not resumed\n");
    tell_kfd();
    return {errors_, report_.str()};
  }

 private:
  template <typename Outcome>
  bool failed(const Outcome& outcome) {
    if (!outcome.ok()) errors_ += outcome.error().message() + "\n";
    return !outcome.ok();
  }

  bool restore_files() {
    int number = kFirstNumber;
    for (const std::uint32_t id : {kKfdId, kRenderId}) {
      const auto fd = session_.restore_file(id);
      if (failed(fd)) return false;
      if (!fd->has_value()) {
        errors_ += "not ours\n";  // CRIU knows nobody else for the file
        return false;
      }
      const UniqueFd file(**fd);
      ::dup2(file.get(), number++);
    }
    return true;
  }

  bool map() {
    for (std::uint64_t i = 0; i < 2; ++i) {
      const auto vma = session_.update_vma("/dev/dri/renderD128", bo_address(i), bo_offset(i));
      if (failed(vma)) return false;
      if (!vma->has_value()) {
        report_ << "a mapping that is not ours\n";
        continue;
      }
      const VmaAnswer& answer = **vma;
      report_ << "mapping at " << answer.offset
              << (testing::same_open_file(answer.fd, kFirstNumber + 1) ? " through the program's file\n"
                                                                       : " through another file\n");
      if (fakes_.criu.takes_vma_fd()) ::close(answer.fd);
    }
    return true;
  }

  void tell_kfd() {
    const kfd::RestoreRequest& request = *fakes_.kfd.restored;
    for (const auto& device : request.devices) report_ << device.user_id << " is " << device.actual_id << "\n";
    report_ << request.num_objects << " objects, " << request.priv_data.size() << " bytes, " << request.bos.size()
            << " BOs\n";
    for (std::size_t i = 0; i < 2; ++i)
      report_ << (fakes_.kfd.restored_contents(i) == contents(i + 1) ? "right" : "wrong") << " contents\n";
    for (const auto& entry : std::filesystem::directory_iterator(fakes_.machine.root() + "/dev/shm"))
      report_ << entry.path().filename() << ": " << read_file(entry.path()) << "\n";
  }

  Fakes& fakes_;
  Restore session_;
  std::string errors_;
  std::ostringstream report_;
};

Restored restore(Fakes& fakes) { return Story(fakes).run(); }

// ---- what must hold ---------------------------------------------------------

// The manifest without the time that the dump took.
std::map<std::string, std::string> files_of(const TempDir& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    files[entry.path().filename()] = read_file(entry.path());
  if (const auto found = files.find(std::string(image::kManifestName)); found != files.end()) {
    auto manifest = image::decode_manifest(std::as_bytes(std::span(found->second)).subspan(image::kHeaderSize));
    EXPECT_TRUE(manifest.ok() && manifest->session.timing.has_value());
    if (manifest.ok()) manifest->session.timing.reset();
    if (manifest.ok()) found->second = image::encode(*manifest);
  }
  return files;
}

std::size_t loadable(const Fakes& fakes) {
  const auto images = image::Catalogue::read(fakes.criu.image_dir());
  return images.ok() ? images->intact().size() : 0;
}

struct Fault {
  std::uint64_t number;
  int code;
  std::string call;
  [[nodiscard]] std::string text() const {
    return "call " + std::to_string(number) + " (" + call + ") failed with " + ::strerrorname_np(code);
  }
};

// Runs `story` with one call failing after the other, until it makes no such call; `story` is told how to arm the
// fault, and gets the fault back when it has happened. Returns how many there were. With a step greater than 1, each
// errno begins with another call than the one before it.
template <typename Story>
std::uint64_t for_each_call(std::size_t errno_index, const Story& story) {
  const int code = kErrnos[errno_index];
  std::uint64_t faults = 0;
  for (std::uint64_t number = 1 + errno_index % os::fail_step();; number += os::fail_step(), ++faults) {
    std::string call;
    story([&](const auto& body) {
      os::fail_call(number, code);
      body();
      call = os::failed_call();
      os::fail_call(0, 0);
      return Fault{number, code, call};
    });
    if (call.empty()) return faults;
    if (::testing::Test::HasFailure() && number > 100'000) return faults;  // a story that never ends
  }
}

class FaultTest : public ::testing::TestWithParam<Case> {
 protected:
  ~FaultTest() override { os::fail_call(0, 0); }

  void print() {
    std::printf("# %llu injected failures, %llu of them survived\n", static_cast<unsigned long long>(failures_),
                static_cast<unsigned long long>(survived_));
    RecordProperty("injected", static_cast<int>(failures_));
  }

  std::uint64_t failures_ = 0;
  std::uint64_t survived_ = 0;
};

// When CRIU ends, the kernel closes the descriptors that CRIU still has, which ends a pause of the extensible ABI.
// Returns how many there were.
std::size_t end_criu(Fakes& fakes, const std::set<int>& before) {
  std::set<int> ours = before;
  (void)fakes.kfd.all_run();  // lets the fake forget the pauses that have ended
  for (const UniqueFd& end : fakes.kfd.processes.front().pause_ends) ours.insert(end.get());
  std::size_t count = 0;
  for (const int number : descriptors()) {
    if (ours.contains(number)) continue;
    ::close(number);
    ++count;
  }
  return count;
}

TEST_P(FaultTest, a_dump_in_which_any_call_fails_leaves_the_program_as_it_was) {
  TempDir images;
  const auto fakes = source(images.path(), GetParam());
  const std::set<int> before = descriptors();
  ASSERT_EQ(dump(*fakes), "");
  const std::size_t pauses = end_criu(*fakes, before);
  const auto expected = files_of(images);
  ASSERT_EQ(loadable(*fakes), 2U);
  for (std::size_t i = 0; i < kErrnos.size(); ++i) {
    failures_ += for_each_call(i, [&](const auto& with_fault) {
      empty(images.path());
      forget(*fakes);
      const std::set<int> old = descriptors();
      std::string errors;
      const Fault fault = with_fault([&] { errors = dump(*fakes); });
      // A pause that UNPAUSE could not end is ended by the kernel when CRIU exits.
      const bool is_unpause = fault.call.find("UNPAUSE") != std::string::npos;
      if (errors.empty()) {
        ++survived_;
        EXPECT_TRUE(files_of(images) == expected) << fault.text() << ": dumped something else, without an error";
        EXPECT_EQ(end_criu(*fakes, old), pauses) << fault.text();
      } else {
        EXPECT_EQ(loadable(*fakes), 0U) << fault.text() << ": " << errors;
        EXPECT_EQ(end_criu(*fakes, old), 0U) << fault.text() << ": " << errors;
      }
      EXPECT_TRUE(fakes->kfd.all_run() || is_unpause) << fault.text() << ": " << errors;
    });
  }
  print();
}

TEST_P(FaultTest, a_restore_in_which_any_call_fails_says_so_or_is_complete) {
  TempDir images;
  {
    const auto program = source(images.path(), GetParam());
    const std::set<int> before = descriptors();
    ASSERT_EQ(dump(*program), "");
    end_criu(*program, before);
  }
  write_criu_images(images.path());
  const auto fakes = target(images.path(), GetParam());
  const Restored expected = restore(*fakes);
  ASSERT_EQ(expected.errors, "");
  EXPECT_EQ(expected.report.find("wrong"), std::string::npos) << expected.report;
  EXPECT_EQ(expected.report.find("not"), std::string::npos) << expected.report;
  EXPECT_EQ(expected.report.find("another file"), std::string::npos) << expected.report;
  const std::set<int> old = descriptors();  // the fake keeps the memory of the last restore
  for (std::size_t i = 0; i < kErrnos.size(); ++i) {
    failures_ += for_each_call(i, [&](const auto& with_fault) {
      empty(fakes->machine.root() + "/dev/shm");
      forget(*fakes);
      Restored result;
      const Fault fault = with_fault([&] { result = restore(*fakes); });
      if (!result.errors.empty()) {
        EXPECT_TRUE(fakes->kfd.resumed.empty()) << fault.text() << ": " << result.errors << "and its queues run";
        return;
      }
      ++survived_;
      EXPECT_EQ(result.report, expected.report) << fault.text();
    });
    EXPECT_EQ(descriptors(), old);
  }
  print();
}

INSTANTIATE_TEST_SUITE_P(Programs, FaultTest,
                         ::testing::Values(Case{"of_the_released_abi", kfd::Abi::kReleased, false, false},
                                           Case{"of_the_extensible_abi", kfd::Abi::kExtensible, false, true},
                                           Case{"in_another_mount_namespace", kfd::Abi::kReleased, true, true}),
                         [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace plugin
