// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The images of CRIU's own amdgpu plugin, 3.17 and later: names, bytes -> checked values. Nothing in them has a
// checksum, and their plugin checks nothing, so every number here is compared with every other that must agree.
// Not here: files (upstream).
//
//   amdgpu-kfd-<id>.img            length Kfd          ; of upstream.proto
//   amdgpu-renderD-<id>.img        length RenderNode
//   amdgpu-pages-<id>-<gpu>.img    length contents*    ; of the GPU's BOs with VRAM or GTT, in the order of bo_entries
//   amdgpu-dmabuf_<id>.img         a DMA-buf, amdgpu-drm-pages-<id>-*.img contents of GEM objects: criu-dev only
//   length                         8 bytes, little endian: of what follows. A file may be longer, because their plugin
//                                  writes over an older file without emptying it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kfd/kfd.h"
#include "plugin/topology/node.h"

namespace plugin::image::upstream {

inline constexpr std::size_t kLengthSize = 8;
inline constexpr std::uint64_t kMaxMessage = 64ULL << 20;
inline constexpr std::size_t kMaxBos = 1U << 20;
inline constexpr std::size_t kMaxDevices = 4096;
inline constexpr std::size_t kMaxLinks = 1U << 16;  // of all nodes
inline constexpr std::uint64_t kMaxSharedMemory = 1U << 16;
inline constexpr std::size_t kSemaphoreSize = 32;  // glibc's sem_t

enum class NameKind { kKfd, kRender, kDmabuf, kPages };
struct Name {
  NameKind kind = NameKind::kKfd;
  std::uint32_t id = 0;
};
// Nothing when CRIU's plugin writes no file of this name.
[[nodiscard]] std::optional<Name> parse_name(std::string_view name);
[[nodiscard]] std::string kfd_name(std::uint32_t id);
[[nodiscard]] std::string render_name(std::uint32_t id);
[[nodiscard]] std::string dmabuf_name(std::uint32_t id);
[[nodiscard]] std::string pages_name(std::uint32_t id, std::uint32_t gpu_id);

struct Bo {
  kfd::Bo bo;
  std::uint64_t pages_offset = 0;  // of its contents in the pages file of its GPU; 0: it has none
};

// GPUs are named by the ids that the program knows, in `nodes` too.
struct Kfd {
  std::uint32_t pid = 0;  // in the innermost pid namespace
  std::uint32_t num_objects = 0;
  std::vector<topology::Node> nodes;
  std::vector<std::uint32_t> gpu_ids;
  std::vector<Bo> bos;
  std::vector<std::byte> priv_data;
  std::uint64_t shared_memory_size = 0;  // of libhsakmt's file in /dev/shm; 0: there was none
  std::uint32_t shared_memory_magic = 0;
  std::map<std::uint32_t, std::uint64_t> contents;  // by gpu_id: bytes in its pages file behind the length
};

struct Render {
  std::uint32_t gpu_id = 0;
  std::uint64_t objects = 0;  // GEM objects of its own
};

// The number in the first bytes of a file; an error unless so much can follow in a file of `file_length` bytes.
base::Result<std::uint64_t> decode_length(std::span<const std::byte, kLengthSize> bytes, std::uint64_t file_length);
// `payload` is what follows the length.
base::Result<Kfd> decode_kfd(std::span<const std::byte> payload);
base::Result<Render> decode_render(std::span<const std::byte> payload);

// What CRIU says of libhsakmt's files in /dev/shm, which a restored program must find: their plugin does not know modes
// and second names. 0: CRIU does not know either.
struct SharedMemoryFiles {
  std::uint32_t memory_mode = 0;
  std::uint32_t semaphore_mode = 0;
  // The semaphore's name by CRIU's --link-remap. Empty also if there is more than one such name, because then it cannot
  // be known which of them is the semaphore's.
  std::string semaphore_link;
};
// From CRIU's files.img; bytes that are no such image say nothing.
[[nodiscard]] SharedMemoryFiles shared_memory_files(std::span<const std::byte> files_image);

}  // namespace plugin::image::upstream
