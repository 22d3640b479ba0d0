// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What an earlier dump stores, so that a dump can refer to contents that did not change (CRIU's --prev-images-dir).
// Holds no descriptor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "plugin/image/catalogue.h"

namespace plugin::image {

// By what memory of one dump is found in another dump of the same program. If it is other memory there, no checksum is
// equal, and nothing is referred to.
struct MemoryName {
  Kind kind = Kind::kKfd;
  std::uint32_t owner = 0;   // pid; 0: unknown
  std::uint32_t gpu_id = 0;  // as in BoRecord::bo
  std::uint64_t addr = 0;
  std::uint32_t handle = 0;
  std::uint64_t size = 0;
  auto operator<=>(const MemoryName&) const = default;
};
// `owner` is the pid of the process or, for a render node, of its owner.
[[nodiscard]] MemoryName name_of(Kind kind, std::uint32_t owner, const BoRecord& record);

// A chunk that an earlier dump has.
struct KnownChunk {
  Chunk chunk;           // its offset is that in the pages file
  std::uint32_t source;  // index in Earlier::sources()
};

class Earlier {
 public:
  // Reads the nearest earlier dump of ours (version 2) behind `parent` in the directory. Null: there is no `parent`, or
  // no dump behind it. Fails if there is one that cannot be read completely; with ELOOP if the new dump would replace
  // files that an earlier one needs.
  static base::Result<std::unique_ptr<Earlier>> read(int dir_fd);

  [[nodiscard]] std::uint64_t session_id() const { return session_id_; }
  // The pages files in which its chunks are, seen from the new dump.
  [[nodiscard]] const std::vector<Source>& sources() const { return sources_; }
  // The chunks of the memory, in order; of those that cannot be referred to `stored` is 0. Empty: no such memory.
  [[nodiscard]] std::vector<KnownChunk> find(const MemoryName& name) const;

 private:
  struct Place {
    const Loaded* file = nullptr;
    std::size_t chunk = 0;  // the first one
    std::size_t count = 0;
  };
  struct File {
    std::vector<std::uint64_t> begins;   // begins_of() its own pages file and its sources
    std::vector<std::uint32_t> sources;  // for each of them the index in sources_; kNone: it is too many dumps away
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Earlier(Catalogue catalogue, std::uint32_t depth, std::uint32_t reach)
      : catalogue_(std::move(catalogue)), depth_(depth), reach_(reach) {}
  void add(const Loaded& loaded);
  std::uint32_t source_index(const Source& source);

  Catalogue catalogue_;
  std::uint32_t depth_;
  std::uint32_t reach_;  // the depth of the last dump that may be referred to
  std::uint64_t session_id_ = 0;
  std::vector<Source> sources_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> index_of_;  // by depth and id
  std::map<const Loaded*, File> files_;
  std::map<MemoryName, Place> places_;
};

}  // namespace plugin::image
