// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// `topology`: the GPUs of a machine, and which of them would replace those of an image, by the plugin's own matcher and
// with its options.
#include <fcntl.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "base/text_file.h"
#include "base/unique_fd.h"
#include "kfd-criu/json.h"
#include "kfd-criu/names.h"
#include "kfd-criu/run.h"
#include "kfd-criu/sessions.h"
#include "plugin/devices.h"
#include "plugin/options.h"
#include "plugin/topology/match.h"
#include "plugin/topology/snapshot.h"

namespace kfd_criu {
namespace {

namespace image = plugin::image;
namespace topology = plugin::topology;
using base::Error;
using base::Result;

struct Machine {
  std::vector<topology::Node> nodes;
  std::set<std::uint32_t> usable;  // gpu_ids of those whose render node can be opened
  topology::MatchPolicy policy;
};

Result<Machine> read_machine(const std::string& root) {
  Machine machine;
  const std::string prefix = root.ends_with('/') ? root : root + "/";
  ASSIGN_OR_RETURN(machine.nodes, topology::snapshot(prefix + "sys/class/kfd/kfd/topology"));
  for (const topology::Node& node : machine.nodes) {
    if (node.gpu_id == 0) continue;
    const std::string path = prefix + "dev/dri/renderD" + std::to_string(node.render_minor());
    if (base::UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC)).valid()) machine.usable.insert(node.gpu_id);
  }
  plugin::OptionSources sources;
  ASSIGN_OR_RETURN(sources.file, base::read_text_if_there(prefix + std::string(plugin::kOptionsFile).substr(1)));
  sources.environment = [](const char* name) -> const char* { return std::getenv(name); };
  ASSIGN_OR_RETURN(const plugin::Options options, plugin::read_options(sources));
  machine.policy.check_firmware = options.check_firmware;
  machine.policy.check_device_id = options.check_device_id;
  machine.policy.forced = options.gpu_map;
  const plugin::Devices devices({prefix + "sys", prefix + "dev", prefix + "proc"});
  for (const plugin::QueueHolder& holder : devices.sdma_holders()) machine.policy.busy.insert(holder.gpu_id);
  return machine;
}

std::string link_text(const std::vector<topology::Node>& nodes, const topology::Link& link) {
  const std::string type = link.type == topology::kLinkXgmi   ? "XGMI"
                           : link.type == topology::kLinkPcie ? "PCIe"
                                                              : "link type " + std::to_string(link.type);
  for (const topology::Node& node : nodes)
    if (node.node_id == link.to && node.gpu_id != 0) return type + " to GPU " + std::to_string(node.gpu_id);
  return type + " to node " + std::to_string(link.to);
}

// The GPUs of a session that have a reason why a GPU of the machine cannot replace them, or "".
std::string reason_for(const topology::Node& source, const topology::Node& destination, const Machine& machine) {
  const auto forced = machine.policy.forced.find(source.gpu_id);
  if (forced != machine.policy.forced.end() && forced->second != destination.gpu_id)
    return "the option gpu-map says otherwise";
  if (!machine.usable.contains(destination.gpu_id)) return "its render node cannot be opened";
  return topology::mismatch(source, destination, machine.policy);
}

// ---- for people ---------------------------------------------------------------------------------------------------

void print_machine(const Machine& machine, std::ostream& out) {
  for (const topology::Node& node : machine.nodes) {
    if (node.gpu_id == 0) continue;
    out << "GPU " << node.gpu_id << ": " << gfx_name(node) << ", renderD" << node.render_minor() << ", VRAM "
        << size_text(node.property(topology::kVramSize)) << ", firmware " << node.property("fw_version");
    for (const topology::Link& link : node.links) out << ", " << link_text(machine.nodes, link);
    if (!machine.usable.contains(node.gpu_id)) out << ", its render node cannot be opened";
    out << '\n';
  }
}

void print_session(const image::Session& session, const Result<topology::GpuMap>& map, const Machine& machine,
                   std::ostream& out) {
  out << session_text(session) << ": ";
  if (!map.ok()) {
    out << "does not fit: " << printable_lines(map.error().message()) << '\n';
    return;
  }
  out << "fits\n";
  for (const auto& [source, destination] : *map) {
    const topology::Node* node = topology::find_gpu(machine.nodes, destination);
    out << "  GPU " << destination;
    if (node != nullptr) out << " (renderD" << node->render_minor() << ")";
    out << " replaces GPU " << source << " of the image\n";
  }
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

void write_machine(const Machine& machine, Json& json) {
  for (const topology::Node& node : machine.nodes) {
    if (node.gpu_id == 0) continue;
    json.begin_object().field("type", "gpu").field("gpu_id", std::uint64_t{node.gpu_id});
    json.field("gfx", gfx_name(node)).field("render_minor", std::uint64_t{node.render_minor()});
    json.field("usable", machine.usable.contains(node.gpu_id)).key("properties").begin_object();
    for (const auto& [name, value] : node.properties) json.field(name, value);
    json.end_object().end_object();
  }
}

void write_session(const image::Session& session, const Result<topology::GpuMap>& map, const Machine& machine,
                   Json& json) {
  json.begin_object().field("type", "session").hex_field("session_id", session.id).field("fits", map.ok());
  json.key("gpus").begin_array();
  for (const topology::Node& source : session.nodes) {
    if (source.gpu_id == 0) continue;
    json.begin_object().field("image_gpu_id", std::uint64_t{source.gpu_id});
    if (map.ok() && map->contains(source.gpu_id))
      json.field("replaced_by", std::uint64_t{map->find(source.gpu_id)->second});
    json.key("candidates").begin_array();
    for (const topology::Node& node : machine.nodes) {
      if (node.gpu_id == 0) continue;
      const std::string reason = reason_for(source, node, machine);
      json.begin_object().field("gpu_id", std::uint64_t{node.gpu_id}).field("fits", reason.empty());
      json.field("reason", reason).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  if (!map.ok()) json.field("error", map.error().message());
  json.end_object();
}

}  // namespace

Result<Exit> run_topology(const Options& options, const Output& output) {
  ASSIGN_OR_RETURN(const Machine machine, read_machine(options.root));
  std::optional<Images> images;
  if (!options.directory.empty()) {
    ASSIGN_OR_RETURN(images, open_images(options.directory));
  }
  Exit status = Exit::kGood;
  Json json(output.out);
  if (options.json) {
    json.begin_object().field("magic", "AMDGPU_TOPOLOGY").key("entries").begin_array();
    write_machine(machine, json);
  } else {
    print_machine(machine, output.out);
  }
  for (const image::Session* session : images ? images->catalogue.sessions() : std::vector<const image::Session*>()) {
    const auto map = topology::match(session->nodes, machine.nodes, machine.usable, machine.policy);
    if (!map.ok()) status = Exit::kDiffers;
    if (options.json)
      write_session(*session, map, machine, json);
    else
      print_session(*session, map, machine, output.out);
  }
  if (images)
    for (const auto& damage : images->catalogue.damaged()) {
      status = worse(status, status_of(damage.error));
      output.error << "kfd-criu: file " << damage.id << " cannot be used: " << printable(damage.error.message())
                   << '\n';
    }
  if (options.json) json.end_array().end_object();
  return status;
}

}  // namespace kfd_criu
