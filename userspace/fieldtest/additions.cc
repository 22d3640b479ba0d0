// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "fieldtest/additions.h"

#include <drm.h>
#include <drm_mode.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/mapping.h"
#include "kfdtest-criu/env/vgem.h"

namespace fieldtest {
namespace {

constexpr std::uint64_t kGemSize = drmtest::kMiB;
constexpr std::uint32_t kGemSeed = 29;
// More handles than the plugin tries.
constexpr std::size_t kLowerHandles = 4200;
constexpr std::uint64_t kSmallGem = 4096;
constexpr int kChildren = 2;
// The first child of Pids::kLow gets the process id after this one.
constexpr std::string_view kLowPid = "15000";
// A number above those of the files of a program that uses a few GPUs.
constexpr int kPidfdNumber = 200;
constexpr const char* kKfd = "/dev/kfd";
constexpr std::size_t kVgemSize = 64 * 64 * 4;
constexpr std::byte kVgemByte{0x5e};

// The process's first open /dev/kfd; -1 without one.
int find_kfd() {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", code)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == kKfd) return std::atoi(entry.path().filename().c_str());
  }
  return -1;
}

base::Status choose_next_pid() {
  const base::UniqueFd file(::open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC));
  if (!file.valid() || ::write(file.get(), kLowPid.data(), kLowPid.size()) < 0)
    return base::Error::from_errno(errno, "ns_last_pid");
  return {};
}

// The child's whole life: it waits for SIGUSR1, and its exit status tells whether the inherited file is as it was.
[[noreturn]] void wait_for_signal(int kfd) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  while (::sigwaitinfo(&set, nullptr) != SIGUSR1) {
  }
  kfd_ioctl_get_version_args version{};
  const bool refused = kfd < 0 || (::ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version) != 0 && errno == EBADF);
  ::_exit(refused ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace

base::Result<std::unique_ptr<GemObject>> GemObject::create(GemUse use) {
  const auto nodes = drmtest::render_nodes();
  if (nodes.empty()) return base::Error(ENODEV, "no render node");
  ASSIGN_OR_RETURN(drmtest::Device device, drmtest::Device::open(nodes.front().path));
  std::unique_ptr<GemObject> object(new GemObject(std::move(device)));
  if (use == GemUse::kAddress) {
    ASSIGN_OR_RETURN(drmtest::Buffer buffer, drmtest::Buffer::create(object->device_, drmtest::gtt(kGemSize)));
    object->buffer_.emplace(std::move(buffer));
    drmtest::write_pattern(object->buffer_->words(), kGemSeed);
    return object;
  }
  std::vector<drmtest::Bo> lower;
  for (std::size_t i = 0; use == GemUse::kHighHandle && i < kLowerHandles; ++i) {
    ASSIGN_OR_RETURN(drmtest::Bo each, drmtest::Bo::create(object->device_, drmtest::gtt(kSmallGem)));
    lower.push_back(std::move(each));
  }
  ASSIGN_OR_RETURN(drmtest::Bo bo, drmtest::Bo::create(object->device_, drmtest::gtt(kGemSize)));
  object->bo_.emplace(std::move(bo));
  ASSIGN_OR_RETURN(const auto words, object->bo_->words());
  drmtest::write_pattern(words, kGemSeed);
  if (use != GemUse::kMapped) TRY(object->bo_->forget_words());
  return object;
}

base::Status GemObject::check() {
  std::span<std::uint32_t> words;
  if (buffer_) {
    words = buffer_->words();
  } else {
    ASSIGN_OR_RETURN(words, bo_->words());
  }
  const std::size_t wrong = drmtest::first_mismatch(words, kGemSeed);
  if (wrong != words.size()) return base::Error(EIO, "word " + std::to_string(wrong) + " of the GEM object is wrong");
  return {};
}

base::Result<Children> Children::fork(Pids pids) {
  const int kfd = find_kfd();
  if (pids == Pids::kLow) TRY(choose_next_pid());
  // Blocked before the fork, so that the signal cannot end a child that does not wait for it yet.
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  Children children;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return base::Error::from_errno(errno, "fork");
    if (pid == 0) wait_for_signal(kfd);
    children.pids_.push_back(pid);
  }
  if ((children.pids_.front() < ::getpid()) != (pids == Pids::kLow))
    return base::Error(EAGAIN, "child " + std::to_string(children.pids_.front()) + " has no such process id");
  return children;
}

Children::~Children() {
  for (const pid_t pid : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

base::Status Children::finish() {
  for (const pid_t pid : std::exchange(pids_, {})) {
    int status = 0;
    if (::kill(pid, SIGUSR1) != 0) return base::Error::from_errno(errno, "child " + std::to_string(pid));
    if (::waitpid(pid, &status, 0) != pid) return base::Error::from_errno(errno, "child " + std::to_string(pid));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
      return base::Error(EIO, "child " + std::to_string(pid) + ": its inherited /dev/kfd is not what it was");
  }
  return {};
}

base::Result<base::UniqueFd> open_kfd_again() {
  base::UniqueFd file(::open(kKfd, O_RDWR | O_CLOEXEC));
  if (!file.valid()) return base::Error::from_errno(errno, kKfd);
  return file;
}

base::Result<base::UniqueFd> hold_pidfd() {
  const base::UniqueFd file(static_cast<int>(::syscall(SYS_pidfd_open, 1, 0)));
  if (!file.valid()) return base::Error::from_errno(errno, "pidfd_open");
  base::UniqueFd copy(::fcntl(file.get(), F_DUPFD_CLOEXEC, kPidfdNumber));
  if (!copy.valid()) return base::Error::from_errno(errno, "F_DUPFD_CLOEXEC");
  return copy;
}

base::Result<VgemDmabuf> VgemDmabuf::create() {
  ASSIGN_OR_RETURN(const base::UniqueFd card, kfdtest::open_vgem());
  drm_mode_create_dumb created{};
  created.width = created.height = 64;
  created.bpp = 32;
  if (::ioctl(card.get(), DRM_IOCTL_MODE_CREATE_DUMB, &created) != 0)
    return base::Error::from_errno(errno, "DRM_IOCTL_MODE_CREATE_DUMB");
  drm_prime_handle exported{};
  exported.handle = created.handle;
  exported.flags = DRM_CLOEXEC | DRM_RDWR;
  if (::ioctl(card.get(), DRM_IOCTL_PRIME_HANDLE_TO_FD, &exported) != 0)
    return base::Error::from_errno(errno, "DRM_IOCTL_PRIME_HANDLE_TO_FD");
  VgemDmabuf dmabuf{base::UniqueFd(exported.fd)};
  ASSIGN_OR_RETURN(const base::Mapping mapping,
                   base::Mapping::shared(dmabuf.fd_.get(), kVgemSize, 0, "memory of vgem"));
  std::fill(mapping.bytes().begin(), mapping.bytes().end(), kVgemByte);
  return dmabuf;
}

base::Status VgemDmabuf::check() const {
  ASSIGN_OR_RETURN(const base::Mapping mapping, base::Mapping::shared(fd_.get(), kVgemSize, 0, "memory of vgem"));
  if (std::all_of(mapping.bytes().begin(), mapping.bytes().end(), [](std::byte each) { return each == kVgemByte; }))
    return {};
  return base::Error(EIO, "the memory of vgem has other contents");
}

void Additions::declare(kfdtest::CommandLine& line) {
  line.words("--gem", {{"mapped", [this] { gem = GemUse::kMapped; }},
                       {"handle", [this] { gem = GemUse::kHandle; }},
                       {"address", [this] { gem = GemUse::kAddress; }},
                       {"high", [this] { gem = GemUse::kHighHandle; }}})
      .words("--children", {{"high", [this] { children = Pids::kHigh; }}, {"low", [this] { children = Pids::kLow; }}})
      .words("--also", {{"kfd", [this] { kfd_again = true; }}, {"pidfd", [this] { pidfd = true; }}, {"vgem", [this] {
                                                                                                       vgem = true;
                                                                                                     }}});
}

base::Result<Added> Added::make(const Additions& wanted) {
  Added added;
  if (wanted.gem) {
    ASSIGN_OR_RETURN(added.gem_, GemObject::create(*wanted.gem));
  }
  if (wanted.kfd_again) {
    ASSIGN_OR_RETURN(added.kfd_, open_kfd_again());
  }
  if (wanted.pidfd) {
    ASSIGN_OR_RETURN(added.pidfd_, hold_pidfd());
  }
  if (wanted.vgem) {
    ASSIGN_OR_RETURN(VgemDmabuf dmabuf, VgemDmabuf::create());
    added.vgem_.emplace(std::move(dmabuf));
  }
  if (wanted.children) {
    ASSIGN_OR_RETURN(Children children, Children::fork(*wanted.children));
    added.children_.emplace(std::move(children));
  }
  return added;
}

base::Status Added::check() {
  if (gem_) TRY(gem_->check());
  if (vgem_) TRY(vgem_->check());
  if (children_) TRY(children_->finish());
  return {};
}

}  // namespace fieldtest
