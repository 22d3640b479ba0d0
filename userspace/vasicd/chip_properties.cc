// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The rules of amdkfd, each with its place, and the JSON.
#include "vasicd/chip_properties.h"

#include <array>

#include "base/parse.h"
#include "vasicd/waves/launch.h"

namespace vasicd {
namespace {

// kfd_device.c writes the version as major * 10000 + minor * 100 + stepping. A chip's name is "gfx", the major number
// in decimal, and one hexadecimal digit each for the other two.
std::uint32_t target_version_of(std::string_view name) {
  constexpr std::size_t kPrefix = 3;
  const std::size_t minor = name.size() - 2;
  const auto digits = [&](std::size_t at, std::size_t count, int base) {
    return static_cast<std::uint32_t>(base::parse_u64(name.substr(at, count), base).value_or(0));
  };
  return digits(kPrefix, minor - kPrefix, 10) * 10000 + digits(minor, 1, 16) * 100 + digits(minor + 1, 1, 16);
}

// kfd_priv.h: KFD_IS_SOC15.
bool is_soc15(const vasic_info& info) { return info.gc_ip >= VASIC_IP_VERSION(9u, 0u, 1u); }

// kfd_device_queue_manager.c, device_queue_manager_init: "HWS is not available on Hawaii".
QueueScheduler scheduler_of(const vasic_info& info) {
  if (info.scheduler == VASIC_SCHEDULER_MES) return QueueScheduler::kMes;
  return info.gfx_level == 7 ? QueueScheduler::kNone : QueueScheduler::kHws;
}

// kfd_device.c, kfd_gws_init, with firmware as new as the table's.
bool has_gws(const vasic_info& info) {
  const bool is_gfx10_3_or_gfx11 =
      info.gc_ip >= VASIC_IP_VERSION(10u, 3u, 0u) && info.gc_ip < VASIC_IP_VERSION(12u, 0u, 0u);
  return info.gfx_level == 9 || is_gfx10_3_or_gfx11;
}

// kfd_device.c, kfd_get_num_xgmi_sdma_engines: in a hive, all but two engines are for XGMI.
bool has_xgmi_sdma(const Chip& chip) {
  constexpr std::uint32_t kPcieEngines = 2;
  return chip.can_join_hive && chip.info.sdma_count > kPcieEngines;
}

std::string_view name_of(QueueScheduler scheduler) {
  constexpr std::array kNames = {"none", "hws", "mes"};
  return kNames[static_cast<std::size_t>(scheduler)];
}

// A chip as JSON. Names of chips and of keys need no escapes.
class JsonObject {
 public:
  void add(std::string_view key, std::uint32_t number) { add_raw(key, std::to_string(number)); }
  void add(std::string_view key, bool flag) { add_raw(key, flag ? "true" : "false"); }
  // An empty text is null.
  void add(std::string_view key, std::string_view text) {
    add_raw(key, text.empty() ? "null" : "\"" + std::string(text) + "\"");
  }
  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  void add_raw(std::string_view key, const std::string& value) {
    members_ += (members_.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
  }

  std::string members_;
};

std::string as_json(const Chip& chip) {
  const ChipProperties properties = properties_of(chip);
  JsonObject json;
  json.add("name", chip.name);
  json.add("gfx_target_version", properties.gfx_target_version);
  json.add("gfx_level", chip.info.gfx_level);
  json.add("sibling_of", chip.sibling_of);
  json.add("scheduler", name_of(properties.scheduler));
  json.add("xccs", chip.info.xcc_count);
  json.add("rocm", chip.in_rocm);
  json.add("executes_waves", properties.executes_waves);
  json.add("saves_waves", properties.saves_waves);
  json.add("svm", properties.svm);
  json.add("xnack", chip.info.retry_faults != 0);
  json.add("xgmi", chip.can_join_hive);
  json.add("xgmi_sdma", properties.xgmi_sdma);
  json.add("gws", properties.gws);
  json.add("debugger", properties.debugger);
  json.add("packet_error_events", properties.packet_error_events);
  json.add("vendor_packets", properties.vendor_packets);
  json.add("sparse_ptes", properties.sparse_ptes);
  json.add("aql_ring_mapped_twice", properties.aql_ring_mapped_twice);
  return json.text();
}

}  // namespace

ChipProperties properties_of(const Chip& chip) {
  const vasic_info& info = chip.info;
  return {
      .gfx_target_version = target_version_of(chip.name),
      .scheduler = scheduler_of(info),
      .executes_waves = isa_of(info).has_value(),
      .saves_waves = info.gfx_level > 7,  // kfd_device.c, kfd_device_info_init: all chips here but Hawaii
      .svm = is_soc15(info),              // kfd_migrate.c, kgd2kfd_init_zone_device
      .xgmi_sdma = has_xgmi_sdma(chip),
      .gws = has_gws(info),
      .debugger = is_soc15(info),             // kfd_debug.c, kfd_dbg_trap_enable
      .packet_error_events = is_soc15(info),  // kfd_int_process_v9.c and later; cik_event_interrupt.c only wakes events
      .vendor_packets = is_soc15(info),       // packets/aql.h: AMD's vendor packets
      .sparse_ptes = info.pte_format >= VASIC_PTE_GFX9,
      .aql_ring_mapped_twice = !is_soc15(info),  // kfd_queue.c, kfd_queue_acquire_buffers
  };
}

std::string chips_as_json() {
  std::string text;
  for (const Chip& chip : chips()) text += (text.empty() ? "[\n" : ",\n") + as_json(chip);
  return text + "\n]\n";
}

}  // namespace vasicd
