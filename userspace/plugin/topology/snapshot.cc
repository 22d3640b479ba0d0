// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// sysfs parsing. Properties are taken by whatever name they have: what is compared is the matcher's business.
#include "plugin/topology/snapshot.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>

#include "base/os.h"
#include "base/text_file.h"

namespace plugin::topology {
namespace {

using base::Error;
using base::Result;

constexpr std::uint64_t kHeapPublic = 1;
constexpr std::uint64_t kHeapPrivate = 2;
constexpr std::size_t kMaxProperties = 256;

using Properties = std::map<std::string, std::uint64_t, std::less<>>;

// Names of the numbered sub-directories, ascending; none when there is no such directory.
std::vector<std::uint32_t> numbered(const std::string& path) {
  std::vector<std::uint32_t> numbers;
  DIR* dir = os::opendir(path.c_str());
  if (dir == nullptr) return numbers;
  while (const dirent* entry = os::readdir(dir)) {
    const std::string_view name(entry->d_name);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  os::closedir(dir);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Lines "name value"; other lines are skipped.
Properties read_properties(const std::string& path) {
  Properties properties;
  std::istringstream in(base::read_text_or_empty(path));
  std::string line;
  while (properties.size() < kMaxProperties && std::getline(in, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    if (words >> name >> value) properties[name] = value;
  }
  return properties;
}

std::optional<std::uint32_t> read_number(const std::string& path) {
  std::istringstream in(base::read_text_or_empty(path));
  std::uint32_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

std::uint64_t at(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

void add_memory(const std::string& path, Node& node) {
  std::uint64_t total = 0;
  std::uint64_t visible = 0;
  for (const std::uint32_t bank : numbered(path + "/mem_banks")) {
    const Properties properties = read_properties(path + "/mem_banks/" + std::to_string(bank) + "/properties");
    const std::uint64_t heap = at(properties, "heap_type");
    const std::uint64_t size = at(properties, "size_in_bytes");
    if (heap == kHeapPublic) visible += size;
    if (heap == kHeapPublic || heap == kHeapPrivate) total += size;
  }
  node.properties[std::string(kVramSize)] = total;
  node.properties[std::string(kVramPublic)] = visible;
}

void add_links(const std::string& path, Node& node) {
  for (const std::uint32_t index : numbered(path)) {
    const Properties properties = read_properties(path + "/" + std::to_string(index) + "/properties");
    const Link link{static_cast<std::uint32_t>(at(properties, "node_to")),
                    static_cast<std::uint32_t>(at(properties, "type"))};
    node.links.push_back(link);
  }
}

}  // namespace

Result<std::vector<Node>> snapshot(const std::string& root) {
  std::vector<Node> nodes;
  for (const std::uint32_t number : numbered(root + "/nodes")) {
    const std::string path = root + "/nodes/" + std::to_string(number);
    const auto gpu_id = read_number(path + "/gpu_id");
    if (!gpu_id) continue;  // hidden by a device cgroup
    Node node;
    node.node_id = number;
    node.gpu_id = *gpu_id;
    node.properties = read_properties(path + "/properties");
    if (node.properties.empty()) continue;  // hidden by a device cgroup, too
    if (node.gpu_id != 0) add_memory(path, node);
    add_links(path + "/io_links", node);
    add_links(path + "/p2p_links", node);
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) return Error(ENODEV, root + ": no readable KFD topology node; is amdgpu loaded?");
  return nodes;
}

std::vector<Node> select(const std::vector<Node>& nodes, const std::vector<std::uint32_t>& gpu_ids) {
  std::vector<Node> selected;
  for (const Node& node : nodes)
    if (node.gpu_id == 0 || std::find(gpu_ids.begin(), gpu_ids.end(), node.gpu_id) != gpu_ids.end())
      selected.push_back(node);
  return selected;
}

const Node* find_gpu(const std::vector<Node>& nodes, std::uint32_t gpu_id) {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [gpu_id](const Node& node) { return gpu_id != 0 && node.gpu_id == gpu_id; });
  return found == nodes.end() ? nullptr : &*found;
}

const Node* find_render_minor(const std::vector<Node>& nodes, std::uint32_t minor) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [minor](const Node& node) {
    return node.gpu_id != 0 && node.render_minor() == minor;
  });
  return found == nodes.end() ? nullptr : &*found;
}

}  // namespace plugin::topology
