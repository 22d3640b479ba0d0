// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What CRIU's own images say about the processes to restore: which descriptors are files of plugins, and in which order
// CRIU opens the files of mappings. Read once, before the tree of processes exists. Only the few members that the
// plugin needs, whose numbers have been the same in all versions since 3.17. Not here: what is done with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"

namespace plugin {

// A descriptor whose file a plugin restores.
struct ExternalFd {
  std::uint32_t file_id = 0;  // the number that RESTORE_EXT_FILE is called with
  int number = -1;
  bool close_on_exec = false;
};

struct CriuVma {
  // How CRIU gets the file of the mapping in the task that it restores.
  enum class Source {
    kNone,      // no file is opened
    kPlugin,    // UPDATE_VMA_MAP
    kOpened,    // CRIU opens a file, and then has forgotten the file of the mapping before
    kMaybe,     // the same, unless CRIU has mapped it before the process tree was complete
    kSeparate,  // CRIU opens a file and remembers the file of the mapping before
  };
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t file_id = 0;
  std::uint32_t flags = 0;  // of open(2)
  Source source = Source::kNone;
  bool is_memfd = false;  // the file is one of memfd_create()
};

struct CriuTask {
  std::uint32_t parent = 0;
  std::vector<ExternalFd> files;
  std::vector<CriuVma> vmas;  // by ascending address
};

class CriuImages {
 public:
  // Fails when an image is missing or is not understood. Zombies have no files and no mappings.
  static base::Result<CriuImages> read(int dir_fd);

  // Null when the tree has no such process. Pids are those that the restored process sees.
  [[nodiscard]] const CriuTask* find(std::uint32_t pid) const;
  [[nodiscard]] const std::map<std::uint32_t, CriuTask>& tasks() const { return tasks_; }
  // Whether a process of the tree has a descriptor of this file.
  [[nodiscard]] bool uses_file(std::uint32_t file_id) const;
  // Another pid for each number, which no process or thread of the tree has. A process outside the tree may have it,
  // and it may be larger than pids can be.
  [[nodiscard]] std::uint32_t unused_pid(std::uint32_t number) const;

 private:
  std::map<std::uint32_t, CriuTask> tasks_;
  std::set<std::uint32_t> threads_;  // with those that lead their process
};

// Whether CRIU has left pages of this process out of the image, to serve them later (criu dump --lazy-pages). False
// when the image of pages is elsewhere, as with a page server; EPROTO: it is not understood.
base::Result<bool> lacks_pages(int dir_fd, std::uint32_t pid);

}  // namespace plugin
