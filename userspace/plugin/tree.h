// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The programs of one dump: the tasks that this thread traces, and what of AMD GPUs they have open or mapped. CRIU
// shows its plugin one file after another; a dump must pause all of them before it saves the first. Not here: whether
// they can be saved (preflight), and what KFD says of them (dump).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/system.h"

namespace plugin {

// A mapping of an AMD device file.
struct DeviceMapping {
  DeviceFile device;
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

struct Task {
  pid_t pid = 0;                // as seen here
  std::uint32_t inner_pid = 0;  // in its own pid namespace
  std::string comm;
  std::vector<DeviceMapping> mappings;

  [[nodiscard]] std::string name() const;  // for messages
};

// Descriptor `number` of task `task`, an index in Tree::tasks.
struct Holder {
  std::size_t task = 0;
  int number = -1;
};

// One open file, however many descriptors it has.
struct OpenFile {
  base::UniqueFd fd;            // our own descriptor of it
  DeviceFile device;            // kDmabuf, kSyncFile: whichever driver it is of
  std::vector<Holder> holders;  // never empty; by task, then number
};

struct Tree {
  std::vector<Task> tasks;  // by pid
  std::vector<OpenFile> files;
  // Mappings of DMA-bufs, for messages: "a mapping at 0x...".
  struct MappedDmabuf {
    std::size_t task = 0;
    std::string what;
  };
  std::vector<MappedDmabuf> mapped_dmabufs;

  // The open file behind a descriptor of this process; null if it is none of them.
  [[nodiscard]] base::Result<const OpenFile*> find(int fd) const;
  // How many descriptors of this file the tasks have. Tasks with one table of descriptors have each once.
  [[nodiscard]] base::Result<std::size_t> count_descriptors(const OpenFile& file) const;
  // The holder that CRIU asks for the file at restore: that with the lowest pid in its own namespace.
  [[nodiscard]] const Holder& asked_holder(const OpenFile& file) const;
  // "program 'x' (process 7), descriptor 4 (/dev/kfd)", by the first holder.
  [[nodiscard]] std::string name_of(const OpenFile& file) const;
};

// Every task must be stopped. A task that cannot be looked at is an error, not left out.
base::Result<Tree> scan_tree(const System& system);

}  // namespace plugin
