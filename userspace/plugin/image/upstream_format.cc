// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Order of checks: number of submessages (before memory is allocated for them), presence, counts, topology, BOs.
#include "plugin/image/upstream_format.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <set>

#include "plugin/image/bytes.h"
#include "plugin/image/format.h"
#include "plugin/image/wire.h"
#include "upstream.pb.h"

namespace plugin::image::upstream {
namespace {

using base::Error;
using base::Result;
using base::Status;

constexpr std::uint64_t kMaxBoSize = 1ULL << 47;
constexpr std::string_view kSuffix = ".img";
constexpr std::string_view kShmFolder = "dev/shm/";
constexpr std::string_view kSemaphorePrefix = "sem.";
constexpr std::uint32_t kPermissions = 0777;
// First bytes of CRIU's files.img: that it is an image of CRIU, and of which kind; little endian.
constexpr std::uint32_t kCommonMagic = 0x54564319;
constexpr std::uint32_t kFilesMagic = 0x56303138;

Error invalid(std::string message) { return Error(EINVAL, "invalid image: " + std::move(message)); }
std::string gpu_name(std::uint32_t gpu_id) { return "GPU " + std::to_string(gpu_id); }

// Takes a decimal number off the text.
std::optional<std::uint32_t> take_number(std::string_view& text, int base) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || value > INT_MAX) return std::nullopt;  // CRIU's ids are int
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::size_t count(std::span<const std::byte> message, int number) {
  std::size_t found = 0;
  WireReader wire(message);
  for (WireField field; wire.next(field);)
    if (field.number == static_cast<std::uint32_t>(number)) ++found;
  return found;
}

Status check_submessages(std::span<const std::byte> payload) {
  using Message = amdkfd_criu::upstream::Kfd;
  if (count(payload, Message::kBoEntriesFieldNumber) > kMaxBos) return invalid("more BOs than a process can have");
  std::size_t devices = 0;
  std::size_t links = 0;
  WireReader wire(payload);
  for (WireField field; wire.next(field);) {
    if (field.number != Message::kDeviceEntriesFieldNumber) continue;
    ++devices;
    links += count(field.payload, amdkfd_criu::upstream::Device::kIolinksFieldNumber);
  }
  if (devices > kMaxDevices || links > kMaxLinks)
    return invalid("more topology nodes or links than a machine can have");
  return {};
}

template <typename Message>
Status parse(std::span<const std::byte> payload, Message& message) {
  if (payload.size() > kMaxMessage) return invalid("larger than any such file can be");
  if (!message.ParseFromArray(payload.data(), static_cast<int>(payload.size())))
    return Error(EINVAL, "not a message of CRIU's amdgpu plugin");
  return {};
}

// A node of a GPU that the program could not see: versions of 2026 leave it empty.
bool is_empty(const amdkfd_criu::upstream::Device& device) {
  return device.gpu_id() == 0 && device.cpu_cores_count() == 0 && device.iolinks().empty();
}

topology::Node to_node(const amdkfd_criu::upstream::Device& in) {
  topology::Node node;
  node.node_id = in.node_id();
  node.gpu_id = in.gpu_id();
  for (const auto& link : in.iolinks()) node.links.push_back({link.node_to_id(), link.type()});
  auto& properties = node.properties;
  properties["cpu_cores_count"] = in.cpu_cores_count();
  if (node.gpu_id == 0) return node;
  // Names of sysfs.
  properties["simd_count"] = in.simd_count();
  properties["caches_count"] = in.caches_count();
  properties["max_waves_per_simd"] = in.max_waves_per_simd();
  properties["lds_size_in_kb"] = in.lds_size_in_kb();
  properties["num_gws"] = in.num_gws();
  properties["wave_front_size"] = in.wave_front_size();
  properties["array_count"] = in.array_count();
  properties["simd_arrays_per_engine"] = in.simd_arrays_per_engine();
  properties["cu_per_simd_array"] = in.cu_per_simd_array();
  properties["simd_per_cu"] = in.simd_per_cu();
  properties["max_slots_scratch_cu"] = in.max_slots_scratch_cu();
  properties["vendor_id"] = in.vendor_id();
  properties["device_id"] = in.device_id();
  properties["num_sdma_engines"] = in.num_sdma_engines();
  properties["num_sdma_xgmi_engines"] = in.num_sdma_xgmi_engines();
  properties["num_sdma_queues_per_engine"] = in.num_sdma_queues_per_engine();
  properties["num_cp_queues"] = in.num_cp_queues();
  properties["fw_version"] = in.fw_version();
  properties["sdma_fw_version"] = in.sdma_fw_version();
  properties[std::string(topology::kRenderMinor)] = in.drm_render_minor();
  properties[std::string(topology::kVramSize)] = in.vram_size();
  properties[std::string(topology::kVramPublic)] = in.vram_public() != 0 ? in.vram_size() : 0;
  return node;
}

bool complete(const amdkfd_criu::upstream::Device& device) {
  return device.has_node_id() && device.has_gpu_id() && device.has_vendor_id() && device.has_device_id() &&
         device.has_simd_count() && device.has_drm_render_minor() && device.has_vram_size();
}

Status convert_devices(const amdkfd_criu::upstream::Kfd& message, Kfd& out) {
  const std::uint64_t expected = std::uint64_t{message.num_of_gpus()} + message.num_of_cpus();
  if (static_cast<std::uint64_t>(message.device_entries_size()) != expected)
    return invalid("has " + std::to_string(message.device_entries_size()) + " topology nodes, says " +
                   std::to_string(expected));
  std::set<std::uint32_t> node_ids;
  std::set<std::uint32_t> gpu_ids;
  for (const auto& device : message.device_entries()) {
    if (!complete(device)) return invalid("a topology node without all of its numbers");
    if (is_empty(device)) continue;
    if (!node_ids.insert(device.node_id()).second)
      return invalid("topology node " + std::to_string(device.node_id()) + " twice");
    out.nodes.push_back(to_node(device));
    if (device.gpu_id() == 0) continue;
    if (!gpu_ids.insert(device.gpu_id()).second) return invalid(gpu_name(device.gpu_id()) + " twice");
    out.gpu_ids.push_back(device.gpu_id());
  }
  if (out.gpu_ids.empty() || out.gpu_ids.size() != message.num_of_gpus())
    return invalid("has " + std::to_string(out.gpu_ids.size()) + " GPUs, says " +
                   std::to_string(message.num_of_gpus()));
  return {};
}

Status convert_bo(const amdkfd_criu::upstream::Bo& in, Kfd& out) {
  if (!in.has_addr() || !in.has_size() || !in.has_offset() || !in.has_alloc_flags() || !in.has_gpu_id())
    return invalid("without all of its numbers");
  Bo bo{{in.addr(), in.size(), in.offset(), in.gpu_id(), in.alloc_flags()}, 0};
  if (bo.bo.size == 0 || bo.bo.size > kMaxBoSize || bo.bo.size % kPageSize != 0 || bo.bo.addr % kPageSize != 0 ||
      bo.bo.addr + bo.bo.size < bo.bo.addr)
    return invalid("impossible address or size");
  const auto contents = out.contents.find(in.gpu_id());
  if (contents == out.contents.end()) return invalid("belongs to an unknown GPU");
  if (kfd::has_contents(bo.bo)) {
    bo.pages_offset = kLengthSize + contents->second;
    contents->second += bo.bo.size;  // at most 2^20 times 2^47
  }
  out.bos.push_back(bo);
  return {};
}

Status convert_bos(const amdkfd_criu::upstream::Kfd& message, Kfd& out) {
  if (static_cast<std::uint64_t>(message.bo_entries_size()) != message.num_of_bos())
    return invalid("has " + std::to_string(message.bo_entries_size()) + " BOs, says " +
                   std::to_string(message.num_of_bos()));
  for (const std::uint32_t gpu_id : out.gpu_ids) out.contents[gpu_id] = 0;
  for (int i = 0; i < message.bo_entries_size(); ++i)
    if (auto status = convert_bo(message.bo_entries(i), out); !status.ok())
      return std::move(status).error().wrap("BO " + std::to_string(i));
  return {};
}

// Whether it is a name of --link-remap in /dev/shm.
bool note_file(const amdkfd_criu::upstream::RegularFile& file, SharedMemoryFiles& out) {
  std::string_view name = file.name();
  if (name.starts_with('/')) name.remove_prefix(1);
  if (!name.starts_with(kShmFolder)) return false;
  name.remove_prefix(kShmFolder.size());
  if (name == kSharedFileNames[0]) {
    out.memory_mode = file.mode() & kPermissions;
  } else if (name.starts_with(kSemaphorePrefix) && file.size() == kSemaphoreSize) {
    // glibc maps a semaphore under a temporary name.
    out.semaphore_mode = file.mode() & kPermissions;
  } else if (is_link_remap(name)) {
    out.semaphore_link = name;
    return true;
  }
  return false;
}

}  // namespace

std::optional<Name> parse_name(std::string_view name) {
  struct Prefix {
    std::string_view text;
    NameKind kind;
  };
  constexpr std::array kPrefixes = {Prefix{"amdgpu-kfd-", NameKind::kKfd}, Prefix{"amdgpu-renderD-", NameKind::kRender},
                                    Prefix{"amdgpu-dmabuf_", NameKind::kDmabuf},
                                    Prefix{"amdgpu-pages-", NameKind::kPages}};
  for (const Prefix& prefix : kPrefixes) {
    if (!name.starts_with(prefix.text)) continue;
    std::string_view rest = name.substr(prefix.text.size());
    const auto id = take_number(rest, 10);
    if (!id) return std::nullopt;
    if (prefix.kind == NameKind::kPages) {
      if (!rest.starts_with('-')) return std::nullopt;  // a pages file of our own
      rest.remove_prefix(1);
      const auto end = rest.find_first_not_of("0123456789abcdef");
      if (end == 0 || end == std::string_view::npos) return std::nullopt;
      rest.remove_prefix(end);
    }
    if (rest != kSuffix) return std::nullopt;
    return Name{prefix.kind, *id};
  }
  return std::nullopt;
}

std::string kfd_name(std::uint32_t id) { return "amdgpu-kfd-" + std::to_string(id) + ".img"; }
std::string render_name(std::uint32_t id) { return "amdgpu-renderD-" + std::to_string(id) + ".img"; }
std::string dmabuf_name(std::uint32_t id) { return "amdgpu-dmabuf_" + std::to_string(id) + ".img"; }
std::string pages_name(std::uint32_t id, std::uint32_t gpu_id) {
  std::array<char, 16> hex{};
  (void)std::snprintf(hex.data(), hex.size(), "%04x", gpu_id);
  return "amdgpu-pages-" + std::to_string(id) + "-" + hex.data() + ".img";
}

Result<std::uint64_t> decode_length(std::span<const std::byte, kLengthSize> bytes, std::uint64_t file_length) {
  const auto length = get<std::uint64_t>(bytes, 0);
  if (file_length < kLengthSize || length > file_length - kLengthSize)
    return Error(EINVAL, "truncated: has " + std::to_string(file_length) + " bytes, needs " + std::to_string(length) +
                             " behind the first 8");
  return std::uint64_t{length};
}

Result<Kfd> decode_kfd(std::span<const std::byte> payload) {
  TRY(check_submessages(payload));
  amdkfd_criu::upstream::Kfd message;
  TRY(parse(payload, message));
  if (!message.has_pid() || !message.has_num_of_gpus() || !message.has_num_of_cpus() || !message.has_num_of_bos() ||
      !message.has_num_of_objects())
    return invalid("without all of its numbers");
  Kfd kfd;
  kfd.pid = message.pid();
  kfd.num_objects = message.num_of_objects();
  kfd.shared_memory_size = message.shared_mem_size();
  kfd.shared_memory_magic = message.shared_mem_magic();
  if (kfd.pid == 0) return invalid("no process id");
  if (message.priv_data().empty()) return invalid("no kernel state in it");
  if (kfd.shared_memory_size > kMaxSharedMemory) return invalid("impossible size of libhsakmt's shared memory");
  TRY(convert_devices(message, kfd));
  TRY(convert_bos(message, kfd));
  const auto bytes = std::as_bytes(std::span(message.priv_data()));
  kfd.priv_data.assign(bytes.begin(), bytes.end());
  return kfd;
}

Result<Render> decode_render(std::span<const std::byte> payload) {
  using Message = amdkfd_criu::upstream::RenderNode;
  const std::size_t entries = count(payload, Message::kBoEntriesFieldNumber);
  if (entries > kMaxBos) return invalid("more GEM objects than a file can have");
  Message message;
  TRY(parse(payload, message));
  if (message.gpu_id() == 0) return invalid("a render node of no GPU");
  if (message.num_of_bos() != static_cast<std::uint64_t>(message.bo_entries_size()))
    return invalid("has " + std::to_string(message.bo_entries_size()) + " GEM objects, says " +
                   std::to_string(message.num_of_bos()));
  return Render{message.gpu_id(), message.num_of_bos()};
}

SharedMemoryFiles shared_memory_files(std::span<const std::byte> image) {
  SharedMemoryFiles files;
  std::size_t links = 0;
  const auto take = [&image]() -> std::optional<std::uint32_t> {
    if (image.size() < sizeof(std::uint32_t)) return std::nullopt;
    const auto value = get<std::uint32_t>(image, 0);
    image = image.subspan(sizeof(std::uint32_t));
    return value;
  };
  if (take() != kCommonMagic || take() != kFilesMagic) return files;
  for (auto length = take(); length && *length <= image.size(); length = take()) {
    amdkfd_criu::upstream::FileEntry entry;
    if (*length <= INT_MAX && entry.ParseFromArray(image.data(), static_cast<int>(*length)))
      links += note_file(entry.reg(), files) ? 1 : 0;
    image = image.subspan(*length);
  }
  if (links > 1) files.semaphore_link.clear();
  return files;
}

}  // namespace plugin::image::upstream
