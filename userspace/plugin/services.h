// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The services that a dump or a restore uses, which its creator passes in.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kfd/kfd.h"
#include "plugin/copy/copier.h"
#include "plugin/criu.h"
#include "plugin/dmabuf_file.h"
#include "plugin/memory_holders.h"
#include "plugin/options.h"
#include "plugin/render_driver.h"
#include "plugin/render_file.h"
#include "plugin/render_holders.h"
#include "plugin/sync_file.h"
#include "plugin/system.h"

namespace plugin {

// Whether a hook's file, mapping or process is an AMD GPU's.
enum class Claim { kMine, kNotMine };

// A copier for the GPU behind an open render node, which the callee borrows for the call.
using CopierFactory = std::function<base::Result<std::unique_ptr<copy::Copier>>(int render_fd, const Options& options)>;

// Questions about open render nodes; see render_file.h and render_driver.h.
struct RenderChecks {
  std::function<base::Result<std::string>(int fd, std::uint32_t last_handle)> objects = render_file::objects_of;
  std::function<base::Result<std::optional<bool>>(int fd, std::uint64_t offset)> may_map = render_file::may_map;
  std::function<base::Result<std::string>(int fd)> video_engine = render_file::video_engine_of;
  // The file that the next three get is one of this process, unlike those of the questions above.
  std::function<base::Result<std::uint32_t>(int fd, int dmabuf)> alloc_flags = render_file::alloc_flags_of;
  std::function<base::Result<bool>(int fd, int dmabuf)> has_metadata = render_file::has_metadata;
  std::function<base::Result<bool>(int fd, int dmabuf, std::uint64_t mmap_offset)> is_home = render_file::is_home;
  std::shared_ptr<RenderDriver> driver = std::make_shared<RealRenderDriver>();
};

// How many references the DMA-buf behind a descriptor has; see memory_holders.h.
using CountReferences = std::function<base::Result<std::uint64_t>(int fd)>;

// Whether a descriptor of this process is of a DMA-buf, and of which; see dmabuf_file.h.
using FindDmabuf = std::function<base::Result<std::optional<dmabuf_file::Info>>(int fd)>;

// Whether a descriptor of this process is a sync file, and what it says; see sync_file.h.
using FindSyncFile = std::function<base::Result<std::optional<sync_file::Info>>(int fd)>;

// How DRM numbers the open render node behind a descriptor of this process; see render_holders.h.
using FindRenderClient = std::function<base::Result<std::optional<render_holders::Client>>(int fd)>;

struct Services {
  Criu& criu;
  System& system;
  kfd::Kfd& kfd;
  CopierFactory make_copier;
  Options options;
  RenderChecks render{};
  CountReferences count_references = [](int fd) { return memory_holders::references_of(Roots{}.proc, fd); };
  FindDmabuf find_dmabuf = [](int fd) { return dmabuf_file::info_of(Roots{}.proc, fd); };
  std::function<base::Status(int fd, const std::string& name)> name_dmabuf = dmabuf_file::set_name;
  FindSyncFile find_sync_file = [](int fd) { return sync_file::info_of(Roots{}.proc, fd); };
  std::function<base::Result<base::UniqueFd>(int render, const std::string& name)> create_sync_file =
      sync_file::create_finished;
  FindRenderClient find_render_client = [](int fd) { return render_holders::client_of(Roots{}.proc, fd); };
  // How long a task of a restore waits for another one that does not get on: longer than any memory takes to load.
  std::chrono::milliseconds longest_wait = std::chrono::minutes(30);
  // Why `options` are not what the user wanted. A dump or a restore fails with it at the first file that is ours, and
  // never because of it without such a file.
  base::Status options_status = {};
};

}  // namespace plugin
