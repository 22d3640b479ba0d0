// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The files of a dump as a restore looks at them, whatever the version of the image: kind, owner, session.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/criu_images.h"
#include "plugin/image/catalogue.h"

namespace plugin {

struct SavedFile {
  std::uint32_t id = 0;
  image::Kind kind = image::Kind::kInert;
  std::uint32_t owner = 0;  // pid of the process that the file must be opened by; 0: any
  int open_flags = 0;       // O_NONBLOCK or nothing
  std::uint64_t session_id = 0;
  const image::Loaded* loaded = nullptr;
};

// The intact files of the catalogue, which must outlive the result.
[[nodiscard]] std::vector<SavedFile> saved_files(const image::Catalogue& catalogue);

// Finds owners that images of version 1 and of CRIU's own plugin do not name: a render node belongs to the process with
// KFD state that has it open, to the one with the lowest pid if several do.
void find_owners(std::vector<SavedFile>& files, const CriuImages& tasks);

// The GPU nodes that the files of a session need, each once.
[[nodiscard]] std::vector<topology::Node> needed_gpus(const std::vector<SavedFile>& files, std::uint64_t session_id);

// The needed GPUs on which no process of the session has memory. libhsakmt opens all GPUs that it sees, and maps host
// memory to all of them, also to those that the program never uses.
[[nodiscard]] std::vector<std::uint32_t> gpus_without_memory(const std::vector<SavedFile>& files,
                                                             std::uint64_t session_id);

}  // namespace plugin
