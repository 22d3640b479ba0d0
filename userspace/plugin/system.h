// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the plugin asks of the operating system: which device a file is, device files, processes, /dev/shm.
// All paths start at the given roots, so that tests bring their own. Holds no state.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/image/format.h"
#include "plugin/topology/node.h"

namespace plugin {

struct Roots {
  std::string sys = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

enum class DeviceKind { kNotOurs, kKfd, kRender };
struct DeviceFile {
  DeviceKind kind = DeviceKind::kNotOurs;
  std::uint32_t minor = 0;  // a render node's minor number
};

// The files in /dev/shm that a process uses, and whether its /dev/shm is another than ours.
struct SharedFiles {
  std::vector<image::SharedFile> files;
  bool own_mount_namespace = false;
};

class System {
 public:
  explicit System(Roots roots) : roots_(std::move(roots)) {}
  [[nodiscard]] const Roots& roots() const { return roots_; }

  // Never fails: what cannot be identified is not ours. Other vendors' render nodes are not ours.
  [[nodiscard]] DeviceFile identify(const struct stat& status) const;
  [[nodiscard]] DeviceFile identify_path(std::string_view path) const;

  [[nodiscard]] base::Result<base::UniqueFd> open_kfd() const;
  // extra_flags adds to O_RDWR | O_CLOEXEC.
  [[nodiscard]] base::Result<base::UniqueFd> open_render(std::uint32_t minor, int extra_flags = 0) const;
  [[nodiscard]] base::Result<std::vector<topology::Node>> topology() const;

  // Whether KFD uses the VM of this open render node.
  [[nodiscard]] image::Binding render_binding(int fd) const;

  // The process, as seen here, that this thread traces and that is `innermost` in its own pid namespace.
  [[nodiscard]] std::optional<pid_t> find_tracee(std::uint32_t innermost) const;
  // The pids of a process from this namespace inwards; empty when there is no such process.
  [[nodiscard]] std::vector<std::uint32_t> namespace_pids(pid_t pid) const;

  // libhsakmt's files that the process uses (or, when it is unknown, that exist).
  [[nodiscard]] base::Result<SharedFiles> read_shared_files(std::optional<pid_t> pid) const;
  // Makes the file if there is none.
  [[nodiscard]] base::Status create_shared_file(const image::SharedFile& file) const;

  // Another descriptor of this process for the same open file.
  [[nodiscard]] std::optional<int> find_duplicate(int fd) const;

 private:
  Roots roots_;
};

}  // namespace plugin
