// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The GPUs of this machine as libdrm sees them: a render node each. libdrm keeps one device for a node and process, so
// two clients of one GPU are two processes (see scenarios.h).
#pragma once

#include <amdgpu.h>
#include <amdgpu_drm.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace drmtest {

// What libdrm returns: 0 or a negative errno, as a Status.
[[nodiscard]] base::Status check(int result, std::string_view what);

// A render node of amdgpu. `name` is the chip, as amdkfd calls it, and the number of the GPU: "gfx906_0".
struct Node {
  std::string path;
  std::string name;
};

// The environment variable DRMTEST_LIST_FOR: chips, separated by blanks. A test runner on a host without GPUs lists the
// tests of a machine with these (--gtest_list_tests), before it boots the machine.
[[nodiscard]] std::optional<std::string> listed_machine();

// In the order of their minors.
[[nodiscard]] std::vector<Node> render_nodes();

class Device {
 public:
  static base::Result<Device> open(const std::string& path);
  Device(Device&& other) noexcept;
  Device& operator=(Device&&) = delete;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  [[nodiscard]] amdgpu_device_handle handle() const { return handle_; }
  // The render node, for ioctls that libdrm has no function for.
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const drm_amdgpu_info_device& info() const { return info_; }
  // AMDGPU_INFO_MEMORY as it is now.
  [[nodiscard]] base::Result<drm_amdgpu_memory_info> memory() const;
  // Number of rings of an AMDGPU_HW_IP_*.
  [[nodiscard]] unsigned rings(unsigned ip) const;

 private:
  Device(base::UniqueFd fd, amdgpu_device_handle handle) : fd_(std::move(fd)), handle_(handle) {}

  base::UniqueFd fd_;
  amdgpu_device_handle handle_ = nullptr;
  drm_amdgpu_info_device info_{};
};

}  // namespace drmtest
