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
using base::Status;

constexpr std::uint64_t kHeapPublic = 1;
constexpr std::uint64_t kHeapPrivate = 2;
constexpr std::size_t kMaxProperties = 256;

using Properties = std::map<std::string, std::uint64_t, std::less<>>;

// What a file or directory that is not there, or that a device cgroup hides, reads as.
bool is_hidden(const Error& error) { return error.code() == ENOENT || error.code() == EPERM; }

// Names of the numbered sub-directories, ascending; none when there is no such directory.
Result<std::vector<std::uint32_t>> numbered(const std::string& path) {
  std::vector<std::uint32_t> numbers;
  DIR* dir = os::opendir(path.c_str());
  if (dir == nullptr) {
    Error error = Error::from_errno(errno, path);
    if (is_hidden(error)) return numbers;
    return error;
  }
  errno = 0;
  while (const dirent* entry = os::readdir(dir)) {
    const std::string_view name(entry->d_name);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
    errno = 0;
  }
  const int code = errno;
  os::closedir(dir);
  if (code != 0) return Error::from_errno(code, path);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<std::string> read_unless_hidden(const std::string& path) {
  auto text = base::read_text(path);
  if (!text.ok() && is_hidden(text.error())) return std::string();
  return text;
}

// Lines "name value"; other lines are skipped.
Result<Properties> read_properties(const std::string& path) {
  Properties properties;
  ASSIGN_OR_RETURN(std::string text, read_unless_hidden(path));
  std::istringstream in(std::move(text));
  std::string line;
  while (properties.size() < kMaxProperties && std::getline(in, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    if (words >> name >> value) properties[name] = value;
  }
  return properties;
}

// Nothing when the file is hidden, or has no number.
Result<std::optional<std::uint32_t>> read_number(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, read_unless_hidden(path));
  std::istringstream in(std::move(text));
  std::uint32_t value = 0;
  if (!(in >> value)) return std::optional<std::uint32_t>();
  return std::optional<std::uint32_t>(value);
}

std::uint64_t at(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

Status add_memory(const std::string& path, Node& node) {
  std::uint64_t total = 0;
  std::uint64_t visible = 0;
  ASSIGN_OR_RETURN(const auto banks, numbered(path + "/mem_banks"));
  for (const std::uint32_t bank : banks) {
    ASSIGN_OR_RETURN(const Properties properties,
                     read_properties(path + "/mem_banks/" + std::to_string(bank) + "/properties"));
    const std::uint64_t heap = at(properties, "heap_type");
    const std::uint64_t size = at(properties, "size_in_bytes");
    if (heap == kHeapPublic) visible += size;
    if (heap == kHeapPublic || heap == kHeapPrivate) total += size;
  }
  node.properties[std::string(kVramSize)] = total;
  node.properties[std::string(kVramPublic)] = visible;
  return {};
}

Status add_links(const std::string& path, Node& node) {
  ASSIGN_OR_RETURN(const auto indices, numbered(path));
  for (const std::uint32_t index : indices) {
    ASSIGN_OR_RETURN(const Properties properties, read_properties(path + "/" + std::to_string(index) + "/properties"));
    const Link link{static_cast<std::uint32_t>(at(properties, "node_to")),
                    static_cast<std::uint32_t>(at(properties, "type"))};
    node.links.push_back(link);
  }
  return {};
}

}  // namespace

Result<std::vector<Node>> snapshot(const std::string& root) {
  std::vector<Node> nodes;
  ASSIGN_OR_RETURN(const auto numbers, numbered(root + "/nodes"));
  for (const std::uint32_t number : numbers) {
    const std::string path = root + "/nodes/" + std::to_string(number);
    ASSIGN_OR_RETURN(const auto gpu_id, read_number(path + "/gpu_id"));
    if (!gpu_id) continue;  // hidden by a device cgroup
    Node node;
    node.node_id = number;
    node.gpu_id = *gpu_id;
    ASSIGN_OR_RETURN(node.properties, read_properties(path + "/properties"));
    if (node.properties.empty()) continue;  // hidden by a device cgroup, too
    if (node.gpu_id != 0) TRY(add_memory(path, node));
    TRY(add_links(path + "/io_links", node));
    TRY(add_links(path + "/p2p_links", node));
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) return Error(ENODEV, root + ": no readable KFD topology node");
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
