// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Who owns which descriptor number in a task that is being restored.
//
// A file that the task itself restores passes through these states:
//   held      by this object, at a number above all of the program's: CRIU has not opened all files yet, and a file at
//             one of the program's numbers would be in its way
//   settled   the program's descriptors are of this file, and the number above is closed; or the program has none, and
//             the file stays where it was, because mappings are still to be made through it
//   released  nothing is held any more: the table has the program's descriptors and nothing else
// CRIU gives the numbers itself when it asked this task for the file. When it asked another task, because that has a
// lower pid, the program's numbers have a stand-in, which settle() replaces.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/criu.h"
#include "plugin/criu_images.h"
#include "plugin/processes.h"

namespace plugin {

class HeldFiles {
 public:
  HeldFiles(const Processes& processes, const Criu& criu) : processes_(&processes), criu_(&criu) {}

  using Key = std::size_t;
  [[nodiscard]] base::Result<Key> hold(base::UniqueFd file);
  // The file's descriptor: our own until settle(), then the program's if it has one.
  [[nodiscard]] int number(Key key) const { return files_[key].number; }
  [[nodiscard]] base::Result<base::UniqueFd> duplicate(Key key) const;

  // The program's descriptor `fd` is to be of this file.
  void claim(Key key, const ExternalFd& fd) { files_[key].claims.push_back(fd); }

  // When CRIU has given the program all its descriptors. `may_replace` says whether the descriptor's present file may
  // be closed. Does nothing the second time. knows_claims: claim() was called for all of the program's descriptors;
  // else they are looked for among all descriptors.
  base::Status settle(bool knows_claims, const std::function<bool(int fd)>& may_replace);
  [[nodiscard]] bool settled() const { return settled_; }
  // Whether only this object has the file.
  [[nodiscard]] bool is_held(Key key) const { return files_[key].held.valid(); }
  // When no mapping is to be made any more, but through `key`.
  void release_all_but(std::optional<Key> key);

 private:
  struct File {
    base::UniqueFd held;
    int number = -1;
    std::vector<ExternalFd> claims;
  };

  base::Status replace(const File& file, const ExternalFd& fd, const std::function<bool(int fd)>& may_replace) const;

  const Processes* processes_;
  const Criu* criu_;
  std::vector<File> files_;
  bool settled_ = false;
};

}  // namespace plugin
