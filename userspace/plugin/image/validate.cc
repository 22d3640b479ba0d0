// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The checks of an image's values, each with its own message. Runs after checksums, before any ioctl: a checksum
// guards against damage, this against a program that wrote the image on purpose.
#include <algorithm>
#include <cerrno>
#include <set>

#include "plugin/image/format.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Status;

constexpr std::uint64_t kMaxBoSize = 1ULL << 47;
constexpr std::uint32_t kMaxChunkSize = 64U << 20;

Error invalid(std::string message) { return Error(EINVAL, "invalid image: " + std::move(message)); }

Status validate_nodes(const std::vector<topology::Node>& nodes) {
  if (nodes.size() > kMaxNodes) return invalid("too many topology nodes");
  std::set<std::uint32_t> node_ids;
  std::set<std::uint32_t> gpu_ids;
  for (const topology::Node& node : nodes) {
    if (!node_ids.insert(node.node_id).second)
      return invalid("topology node " + std::to_string(node.node_id) + " twice");
    if (node.gpu_id != 0 && !gpu_ids.insert(node.gpu_id).second)
      return invalid("GPU " + std::to_string(node.gpu_id) + " twice in the topology");
  }
  return {};
}

bool has_gpu(const File& file, std::uint32_t gpu_id) {
  return gpu_id != 0 && std::any_of(file.nodes.begin(), file.nodes.end(),
                                    [gpu_id](const topology::Node& node) { return node.gpu_id == gpu_id; });
}

Status validate_devices(const File& file, const KfdFile& kfd) {
  if (kfd.devices.empty() || kfd.devices.size() > kMaxDevices) return invalid("impossible number of devices");
  std::set<std::uint32_t> users;
  std::set<std::uint32_t> actuals;
  for (const kfd::Device& device : kfd.devices) {
    if (device.user_id == 0 || !users.insert(device.user_id).second)
      return invalid("device id " + std::to_string(device.user_id) + " is zero or used twice");
    if (!actuals.insert(device.actual_id).second)
      return invalid("GPU " + std::to_string(device.actual_id) + " stands for two devices");
    if (!has_gpu(file, device.actual_id))
      return invalid("GPU " + std::to_string(device.actual_id) + " is missing in the recorded topology");
  }
  return {};
}

Status validate_chunks(const BoRecord& record, std::uint32_t chunk_size, std::uint64_t pages_length) {
  const std::uint64_t size = record.bo.size;
  const std::uint64_t count = kfd::has_contents(record.bo) ? chunk_count(size, chunk_size) : 0;
  if (record.chunks.size() != count)
    return invalid("has " + std::to_string(record.chunks.size()) + " chunks, needs " + std::to_string(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = record.chunks[i].offset;
    if (offset == 0) continue;
    const std::uint64_t length = chunk_length(size, chunk_size, i);
    if (offset % kPageSize != 0 || offset > pages_length || length > pages_length - offset)
      return invalid("chunk " + std::to_string(i) + " lies outside the pages file");
  }
  return {};
}

Status validate_bos(const KfdFile& kfd, std::uint64_t pages_length) {
  if (kfd.chunk_size < kPageSize || kfd.chunk_size > kMaxChunkSize || kfd.chunk_size % kPageSize != 0)
    return invalid("chunk size " + std::to_string(kfd.chunk_size));
  for (std::size_t i = 0; i < kfd.bos.size(); ++i) {
    const kfd::Bo& bo = kfd.bos[i].bo;
    const std::string where = "BO " + std::to_string(i);
    if (bo.size == 0 || bo.size > kMaxBoSize || bo.addr + bo.size < bo.addr)
      return Error(EINVAL, where + ": invalid image: impossible address or size");
    if (std::none_of(kfd.devices.begin(), kfd.devices.end(),
                     [&bo](const kfd::Device& device) { return device.user_id == bo.user_gpu_id; }))
      return Error(EINVAL, where + ": invalid image: belongs to an unknown device");
    if (auto status = validate_chunks(kfd.bos[i], kfd.chunk_size, pages_length); !status.ok())
      return std::move(status).error().wrap(where);
  }
  return {};
}

Status validate_shared_files(const KfdFile& kfd) {
  for (const SharedFile& file : kfd.shared_files) {
    // A name with a path in it is refused too, because only known names are allowed.
    if (std::find(kSharedFileNames.begin(), kSharedFileNames.end(), file.name) == kSharedFileNames.end())
      return invalid("unexpected name of a shared file");
    if (file.contents.size() > kMaxSharedFile || (file.mode & ~0777U) != 0)
      return invalid("impossible size or mode of " + file.name);
    if (file.links.size() > kMaxLinks) return invalid("too many second names of " + file.name);
    if (!std::all_of(file.links.begin(), file.links.end(), is_link_remap))
      return invalid("unexpected second name of " + file.name);
  }
  return {};
}

}  // namespace

Status validate(const File& file, std::uint64_t pages_length) {
  TRY(validate_nodes(file.nodes));
  if (const auto* render = std::get_if<RenderFile>(&file.kind)) {
    if (!has_gpu(file, render->gpu_id)) return invalid("render node of a GPU that is missing in the topology");
    return {};
  }
  const auto& kfd = *std::get_if<KfdFile>(&file.kind);
  TRY(validate_devices(file, kfd));
  if (kfd.priv_data.empty()) return invalid("no kernel state in it");
  TRY(validate_bos(kfd, pages_length));
  return validate_shared_files(kfd);
}

}  // namespace plugin::image
