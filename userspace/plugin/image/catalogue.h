// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// All dumps in a directory, each file read and validated once. CRIU's plugin makes it before the tree of processes, and
// each restored task inherits it. Holds no descriptor. Does not know which dump is being restored: a damaged file may
// be left over from another one, so find() returns its error only when asked for that file.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "plugin/image/reader.h"

namespace plugin::image {

class Catalogue {
 public:
  static base::Result<Catalogue> read(int dir_fd);

  // Null when the directory has no file with this id; an error when that is damaged or was not committed. The result
  // lives as long as the catalogue. When several dumps left a file with this id, an intact one comes before a damaged
  // one, and version 2 before version 1.
  [[nodiscard]] base::Result<const Loaded*> find(std::uint32_t id) const;
  // Dumps that have an intact file: that of version 2, if there is one, then those of version 1; if there is no
  // file of ours, even a damaged one, those of CRIU's own plugin (Version::kUpstream). Files of one dump answer the
  // same object as Loaded::session().
  [[nodiscard]] std::vector<const Session*> sessions() const;
  // The files that are not damaged, by ascending id: of all dumps, or of one.
  [[nodiscard]] std::vector<const Loaded*> intact() const;
  [[nodiscard]] std::vector<const Loaded*> files_of(const Session& session) const;
  // Files that cannot be used, with the reason; a manifest that cannot be read, or is not there, speaks for each of its
  // files.
  struct Damage {
    std::uint32_t id = 0;
    base::Error error;
  };
  [[nodiscard]] std::vector<Damage> damaged() const;

 private:
  void read_version_2(int dir_fd, const std::vector<std::uint32_t>& metadata);
  void refuse_second_states();
  void read_version_1(int dir_fd, const std::vector<std::uint32_t>& manifests);
  base::Status read_upstream(int dir_fd);

  // By id; of several with one id those of version 2 come first.
  std::multimap<std::uint32_t, base::Result<Loaded>> files_;
  std::vector<std::shared_ptr<const Session>> sessions_;
};

}  // namespace plugin::image
