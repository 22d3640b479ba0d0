// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// /dev/kfd and the render nodes of AMD GPUs: which one a file is, opening them, who uses them.
// A device is known by its number. Its path is a hint only: a container may have it under another name, or not at all.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/roots.h"
#include "plugin/topology/node.h"

namespace plugin {

enum class DeviceKind { kNotOurs, kKfd, kRender, kDmabuf, kSyncFile };
// A DMA-buf and a sync file are no devices; they are in a Tree only.
struct DeviceFile {
  DeviceKind kind = DeviceKind::kNotOurs;
  std::uint32_t minor = 0;  // a render node's minor number
};

// A device as this machine knows it; stays valid in a task whose /sys and /dev are others.
struct DeviceNode {
  std::string name;  // below /dev
  dev_t number = 0;
};

// A process that has an SDMA queue.
struct QueueHolder {
  pid_t pid = 0;
  std::string comm;  // empty when /proc does not show the process
  std::uint32_t gpu_id = 0;
};

// A DRM file of a GPU, as debugfs lists it.
struct ListedFile {
  pid_t pid = 0;                        // of the initial namespace: who used it last, or opened it
  std::optional<std::uint32_t> object;  // the handle of a GEM object; nothing: it has none
};

// What the names of nodes begin with that this plugin makes to open a device. The links of a restored program's
// descriptors show such a name if the program had no usual one.
inline constexpr std::string_view kShortLivedNode = ".amdgpu_plugin.";

// Opens the entry `name` of a directory, and not what a link there points to. Fails with ENXIO if it is no device with
// this number: the directory may be one in which others can make and replace entries.
base::Result<base::UniqueFd> open_device_at(int directory, const std::string& name, dev_t number, int flags);

class Devices {
 public:
  explicit Devices(Roots roots) : roots_(std::move(roots)) {}
  [[nodiscard]] const Roots& roots() const { return roots_; }

  // Other vendors' render nodes are not ours. An error: sysfs could not be read, so it may be ours.
  [[nodiscard]] base::Result<DeviceFile> identify(const struct stat& status) const;
  [[nodiscard]] DeviceFile identify_path(std::string_view path) const;

  [[nodiscard]] base::Result<DeviceNode> kfd_node() const;
  [[nodiscard]] base::Result<DeviceNode> render_node(std::uint32_t minor) const;

  // Opens the device with this number: by its usual path if that is the device; else by a node that has a name in the
  // task's /dev only as long as the call takes, so that a later dump can tell where the file is mounted; else by a node
  // in a file system of its own. extra_flags adds to O_RDWR | O_CLOEXEC.
  [[nodiscard]] base::Result<base::UniqueFd> open_node(const DeviceNode& node, int extra_flags = 0) const;

  // As open_node(), for the devices whose numbers sysfs has now.
  [[nodiscard]] base::Result<base::UniqueFd> open_kfd() const;
  [[nodiscard]] base::Result<base::UniqueFd> open_render(std::uint32_t minor, int extra_flags = 0) const;

  [[nodiscard]] base::Result<std::vector<topology::Node>> topology() const;

  // The DRM files of a render node's GPU; nothing when debugfs is not mounted or not permitted.
  [[nodiscard]] base::Result<std::optional<std::vector<ListedFile>>> listed_files(std::uint32_t minor) const;

  // The SDMA queues of all GPUs, one entry for each process and GPU; pids are those of the initial namespace. A hint:
  // processes end meanwhile, and what cannot be read is left out.
  [[nodiscard]] std::vector<QueueHolder> sdma_holders() const;

  // Whether sysfs has an entry of this pid of the initial namespace. It is there as long as a file that the process
  // opened, even when the process has ended.
  [[nodiscard]] bool has_kfd_entry(std::uint32_t pid) const;

 private:
  [[nodiscard]] base::Result<base::UniqueFd> open_path(const std::string& path, dev_t number, int flags) const;
  [[nodiscard]] base::Result<base::UniqueFd> open_short_lived(const DeviceNode& node, int flags) const;

  Roots roots_;
};

}  // namespace plugin
