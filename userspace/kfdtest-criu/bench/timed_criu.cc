// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "kfdtest-criu/bench/timed_criu.h"

#include <linux/kfd_criu_ioctl.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "kfd_criu_layout.h"
#include "kfdtest-criu/env/deadline.h"

namespace kfdtest {
namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

base::Status timed(int fd, unsigned long request, void* args, std::uint64_t& nanoseconds, std::string_view what) {
  const std::uint64_t begin = monotonic_ns();
  const int result = ::ioctl(fd, request, args);
  nanoseconds += monotonic_ns() - begin;
  return result == 0 ? base::Status() : base::Error::from_errno(errno, what);
}

class ReleasedImage final : public TimedImage {
 public:
  base::Status take(int fd, CriuTimes& times) override {
    args_ = {};
    TRY(call(fd, KFD_CRIU_OP_PROCESS_INFO, times.checkpoint, "PROCESS_INFO"));
    devices_.assign(args_.num_devices, {});
    bos_.assign(args_.num_bos + 1, {});  // the kernel wants a pointer even if there is none
    data_.assign(args_.priv_data_size, {});
    point();
    TRY(call(fd, KFD_CRIU_OP_CHECKPOINT, times.checkpoint, "CHECKPOINT"));
    for (std::uint32_t i = 0; i < args_.num_bos; ++i) base::UniqueFd(static_cast<int>(bos_[i].dmabuf_fd)).reset();
    return {};
  }

  base::Status restore(int fd, std::uint32_t gpu_id, int render_fd, CriuTimes& times) override {
    // The ioctl writes to copies: pages that are shared since fork() would be copied while the clock runs.
    devices_ = {kfd_criu_device_bucket{gpu_id, gpu_id, static_cast<std::uint32_t>(render_fd), 0}};
    bos_ = std::vector(bos_);
    point();
    TRY(call(fd, KFD_CRIU_OP_RESTORE, times.restore, "RESTORE"));
    args_ = {};
    args_.pid = static_cast<std::uint32_t>(::getpid());
    return call(fd, KFD_CRIU_OP_RESUME, times.resume, "RESUME");
  }

 private:
  void point() {
    args_.devices = address(devices_.data());
    args_.bos = address(bos_.data());
    args_.priv_data = address(data_.data());
  }
  base::Status call(int fd, kfd_criu_op op, std::uint64_t& nanoseconds, std::string_view what) {
    args_.op = op;
    return timed(fd, AMDKFD_IOC_CRIU_OP, &args_, nanoseconds, what);
  }

  kfd_ioctl_criu_args args_{};
  std::vector<kfd_criu_device_bucket> devices_;
  std::vector<kfd_criu_bo_bucket> bos_;
  std::vector<std::byte> data_;
};

class ExtensibleImage final : public TimedImage {
 public:
  base::Status take(int fd, CriuTimes& times) override {
    kfd_criu_args pause{};
    TRY(call(fd, pause, KFD_CRIU_CMD_PAUSE, times.checkpoint, "PAUSE"));
    // The process stays paused until it exits, as with the released ABI.
    pause_.reset(pause.fd);
    data_.assign(pause.data_size, {});
    kfd_criu_args args{};
    args.pause_fd = pause.fd;
    args.data = address(data_.data());
    args.data_size = data_.size();
    return call(fd, args, KFD_CRIU_CMD_CHECKPOINT, times.checkpoint, "CHECKPOINT");
  }

  base::Status restore(int fd, std::uint32_t gpu_id, int render_fd, CriuTimes& times) override {
    const kfd_criu_gpu device{gpu_id, gpu_id, render_fd, 0};
    kfd_criu_args args{};
    args.data = address(data_.data());
    args.data_size = data_.size();
    args.gpus = address(&device);
    args.num_gpus = 1;
    TRY(call(fd, args, KFD_CRIU_CMD_RESTORE, times.restore, "RESTORE"));
    kfd_criu_args resume{};
    resume.pid = static_cast<std::uint32_t>(::getpid());
    return call(fd, resume, KFD_CRIU_CMD_RESUME, times.resume, "RESUME");
  }

 private:
  static base::Status call(int fd, kfd_criu_args& args, std::uint32_t op, std::uint64_t& nanoseconds,
                           std::string_view what) {
    args.op = op;
    return timed(fd, AMDKFD_IOC_CRIU, &args, nanoseconds, what);
  }

  base::UniqueFd pause_;
  std::vector<std::byte> data_;
};

}  // namespace

std::unique_ptr<TimedImage> released_image() { return std::make_unique<ReleasedImage>(); }
std::unique_ptr<TimedImage> extensible_image() { return std::make_unique<ExtensibleImage>(); }

}  // namespace kfdtest
