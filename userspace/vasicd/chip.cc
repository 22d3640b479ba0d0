// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The parser of a specification, and what the GPUs of one VM have to agree on.
#include "vasicd/chip.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>

#include "base/parse.h"
#include "vasicd/chip_table.h"

namespace vasicd {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kMinVram = 64 * kMiB;
constexpr std::uint64_t kMaxVram = 64 * kGiB;

constexpr std::uint64_t kUniqueIdBase = 0x5641'5349'4300'0000;
constexpr std::uint64_t kMaxFirmware = 0xffff;  // amdkfd keeps 16 bits (kfd_priv.h)
constexpr std::string_view kKeys = "vram vis cu se sdma xcc unique-id hive fw";

// Replaces *value by the number in text if it is in [low, high].
base::Status set_number(std::string_view key, std::optional<std::uint64_t> number, std::uint64_t low,
                        std::uint64_t high, std::string_view unit, std::uint64_t* value) {
  if (!number || *number < low || *number > high) {
    return base::Error(
        EINVAL, std::string(key) + " must be " + std::to_string(low) + ".." + std::to_string(high) + std::string(unit));
  }
  *value = *number;
  return {};
}

base::Status set_size(std::string_view key, std::string_view text, std::uint64_t low, std::uint64_t high,
                      __u64* bytes) {
  const auto size = base::parse_size(text);
  std::uint64_t mib = 0;
  const bool whole = size && *size % kMiB == 0;
  TRY(set_number(key, whole ? std::optional(*size / kMiB) : std::nullopt, low / kMiB, high / kMiB, "M, whole megabytes",
                 &mib));
  *bytes = mib * kMiB;
  return {};
}

base::Status set_count(std::string_view key, std::string_view text, std::uint32_t high, std::uint32_t* count) {
  std::uint64_t value = 0;
  TRY(set_number(key, base::parse_u64(text), 1, high, "", &value));
  *count = static_cast<std::uint32_t>(value);
  return {};
}

base::Status set_id(std::string_view key, std::string_view text, __u64* id) {
  const auto value = base::parse_u64(text, 16);
  if (!value || *value == 0) return base::Error(EINVAL, std::string(key) + " must be a hexadecimal number, not 0");
  *id = *value;
  return {};
}

// The names of the chips that have the ability: " gfx90a gfx942".
std::string names_of(bool Chip::*ability) {
  std::string names;
  for (const Chip& chip : chips())
    if (chip.*ability) names += " " + std::string(chip.name);
  return names;
}

base::Status apply(const Chip& chip, std::string_view key, std::string_view text, vasic_info* info) {
  if (key == "vram") return set_size(key, text, kMinVram, kMaxVram, &info->vram_size);
  if (key == "vis") return set_size(key, text, kMiB, kMaxVram, &info->vram_visible_size);
  if (key == "se") return set_count(key, text, chip.info.se_count, &info->se_count);
  if (key == "cu")
    return set_count(key, text, chip.info.se_count * chip.info.sh_per_se * chip.info.cu_per_sh, &info->cu_count);
  if (key == "sdma") return set_count(key, text, chip.info.sdma_count, &info->sdma_count);
  if (key == "xcc") return set_count(key, text, chip.info.xcc_count, &info->xcc_count);
  if (key == "fw") return set_count(key, text, kMaxFirmware, &info->mec_fw_version);
  if (key == "unique-id") return set_id(key, text, &info->unique_id);
  if (key == "hive") {
    if (!chip.can_join_hive)
      return base::Error(EINVAL, "hive needs a chip with XGMI:" + names_of(&Chip::can_join_hive));
    return set_id(key, text, &info->xgmi_hive_id);
  }
  return base::Error(EINVAL, "unknown key '" + std::string(key) + "', one of: " + std::string(kKeys));
}

// Spreads the active CUs over the shader arrays as evenly as it goes, from bit 0 up.
void fill_cu_bitmap(vasic_info* info) {
  const std::uint32_t arrays = info->se_count * info->sh_per_se;
  for (std::uint32_t array = 0; array < arrays; ++array) {
    const std::uint32_t count = info->cu_count / arrays + (array < info->cu_count % arrays ? 1 : 0);
    info->cu_bitmap[array / info->sh_per_se][array % info->sh_per_se] = (1u << count) - 1;
  }
}

base::Status finish(std::string_view name, unsigned gpu_index, vasic_info* info) {
  if (info->cu_count > info->se_count * info->sh_per_se * info->cu_per_sh)
    return base::Error(EINVAL, "cu is more than se has room for (" + std::to_string(info->cu_per_sh) + " each)");
  if (info->vram_visible_size > info->vram_size) return base::Error(EINVAL, "vis must not be larger than vram");
  if (info->vram_visible_size == 0) info->vram_visible_size = info->vram_size;
  if (info->unique_id == 0) info->unique_id = kUniqueIdBase + gpu_index + 1;
  info->magic = VASIC_ABI_MAGIC;
  info->abi_version = VASIC_ABI_VERSION;
  info->info_size = sizeof(vasic_info);
  if (info->sdma_per_aid == 0) info->sdma_per_aid = info->sdma_count;
  info->bar_size = std::bit_ceil(VASIC_OFF_VRAM + info->vram_size);
  info->gpu_index = gpu_index;
  std::ranges::copy(name.substr(0, VASIC_NAME_LEN - 1), info->name);
  fill_cu_bitmap(info);
  return {};
}

std::string_view take_until(char separator, std::string_view* rest) {
  const auto end = rest->find(separator);
  const auto head = rest->substr(0, end);
  *rest = end == std::string_view::npos ? std::string_view{} : rest->substr(end + 1);
  return head;
}

}  // namespace

std::vector<std::string_view> chip_names() {
  std::vector<std::string_view> names;
  for (const Chip& chip : chips()) names.push_back(chip.name);
  return names;
}

base::Result<vasic_info> parse_gpu_spec(std::string_view spec, unsigned gpu_index) {
  std::string_view rest = spec;
  const auto name = take_until(',', &rest);
  const auto all = chips();
  const auto chip = std::ranges::find(all, name, &Chip::name);
  if (chip == all.end()) {
    std::string known;
    for (const Chip& each : all) known += " " + std::string(each.name);
    return base::Error(EINVAL, "unknown chip '" + std::string(name) + "', one of:" + known);
  }
  vasic_info info = chip->info;
  while (!rest.empty()) {
    auto value = take_until(',', &rest);
    const auto key = take_until('=', &value);
    TRY(apply(*chip, key, value, &info));
  }
  TRY(finish(name, gpu_index, &info));
  return info;
}

base::Status join_hives(std::span<vasic_info> gpus) {
  for (vasic_info& info : gpus) {
    if (info.xgmi_hive_id == 0) continue;
    const auto is_peer = [&](const vasic_info& other) { return other.xgmi_hive_id == info.xgmi_hive_id; };
    const auto before = gpus.first(static_cast<std::size_t>(&info - gpus.data()));
    const auto count = std::ranges::count_if(gpus, is_peer);
    if (count > kMaxHiveNodes) return base::Error(EINVAL, "hive: at most " + std::to_string(kMaxHiveNodes) + " GPUs");
    std::uint64_t largest = 0;
    for (const vasic_info& other : gpus) {
      if (!is_peer(other)) continue;
      if (other.gc_ip != info.gc_ip) return base::Error(EINVAL, "hive: all its GPUs must be of one chip");
      largest = std::max<std::uint64_t>(largest, other.vram_size);
    }
    info.xgmi_node_id = static_cast<std::uint64_t>(std::ranges::count_if(before, is_peer));
    info.xgmi_num_nodes = static_cast<std::uint32_t>(count);
    info.xgmi_segment_size = std::bit_ceil(largest);
  }
  return {};
}

}  // namespace vasicd
