// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Finding and opening render nodes. The chip's name is amdkfd's: DRM has none that tells gfx906 from gfx900.
#include "drmtest/env/device.h"

#include <fcntl.h>
#include <xf86drm.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace drmtest {
namespace {

constexpr const char* kKfdNodes = "/sys/class/kfd/kfd/topology/nodes";
constexpr unsigned kFirstRenderMinor = 128;
constexpr unsigned kLastRenderMinor = 191;

// gfx_target_version is major * 10000 + minor * 100 + stepping, the last two digits of a name being hexadecimal.
std::string chip_name(unsigned version) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "gfx%u%u%x", version / 10000, version / 100 % 100, version % 100);
  return text.data();
}

// Render minor to chip.
std::map<unsigned, std::string> chips() {
  std::map<unsigned, std::string> names;
  std::error_code code;
  for (const auto& node : std::filesystem::directory_iterator(kKfdNodes, code)) {
    std::ifstream properties(node.path() / "properties");
    std::string key;
    std::uint64_t value = 0;
    unsigned minor = 0;
    unsigned version = 0;
    while (properties >> key >> value) {
      if (key == "drm_render_minor") minor = static_cast<unsigned>(value);
      if (key == "gfx_target_version") version = static_cast<unsigned>(value);
    }
    if (minor != 0 && version != 0) names.emplace(minor, chip_name(version));
  }
  return names;
}

bool is_amdgpu(int fd) {
  drmVersionPtr version = drmGetVersion(fd);
  if (version == nullptr) return false;
  const bool is = std::string_view(version->name) == "amdgpu";
  drmFreeVersion(version);
  return is;
}

}  // namespace

base::Status check(int result, std::string_view what) {
  if (result == 0) return {};
  return base::Error::from_errno(result < 0 ? -result : result, what);
}

std::vector<Node> nodes_of_listed_machine(const std::string& chips) {
  std::vector<Node> nodes;
  std::istringstream words(chips);
  for (std::string chip; words >> chip;) nodes.push_back({"", chip + "_" + std::to_string(nodes.size())});
  return nodes;
}

std::optional<std::string> listed_machine() {
  const char* const chips = std::getenv("DRMTEST_LIST_FOR");
  return chips == nullptr ? std::nullopt : std::optional<std::string>(chips);
}

std::vector<Node> render_nodes() {
  if (const auto listed = listed_machine()) return nodes_of_listed_machine(*listed);
  const auto names = chips();
  std::vector<Node> nodes;
  for (unsigned minor = kFirstRenderMinor; minor <= kLastRenderMinor; ++minor) {
    const std::string path = "/dev/dri/renderD" + std::to_string(minor);
    const base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.valid() || !is_amdgpu(fd.get())) continue;
    const auto name = names.find(minor);
    nodes.push_back(
        {path, (name == names.end() ? std::string("gpu") : name->second) + "_" + std::to_string(nodes.size())});
  }
  return nodes;
}

base::Result<Device> Device::open(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return base::Error::from_errno(errno, path);
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  amdgpu_device_handle handle = nullptr;
  TRY(check(amdgpu_device_initialize(fd.get(), &major, &minor, &handle), "amdgpu_device_initialize " + path));
  Device device(std::move(fd), handle);
  TRY(check(amdgpu_query_info(handle, AMDGPU_INFO_DEV_INFO, sizeof(device.info_), &device.info_), "DEV_INFO"));
  return device;
}

Device::Device(Device&& other) noexcept
    : fd_(std::move(other.fd_)), handle_(std::exchange(other.handle_, nullptr)), info_(other.info_) {}

Device::~Device() {
  if (handle_ != nullptr) amdgpu_device_deinitialize(handle_);
}

base::Result<drm_amdgpu_memory_info> Device::memory() const {
  drm_amdgpu_memory_info memory{};
  TRY(check(amdgpu_query_info(handle_, AMDGPU_INFO_MEMORY, sizeof(memory), &memory), "MEMORY"));
  return memory;
}

unsigned Device::rings(unsigned ip) const {
  drm_amdgpu_info_hw_ip info{};
  if (amdgpu_query_hw_ip_info(handle_, ip, 0, &info) != 0) return 0;
  return static_cast<unsigned>(std::popcount(info.available_rings));
}

}  // namespace drmtest
