// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The rules (a table) and the search (backtracking, most constrained source first).
#include "plugin/topology/match.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace plugin::topology {
namespace {

using base::Error;
using base::Result;

enum class Relation { kEqual, kDevice, kAtLeast, kFirmware };

struct Rule {
  std::string_view name;
  Relation relation;
};

// What compiled code, saved wave state or queue state depends on must be equal; what is a capacity may be larger.
constexpr std::array kRules = {
    Rule{"gfx_target_version", Relation::kEqual},
    Rule{"vendor_id", Relation::kEqual},
    Rule{"device_id", Relation::kDevice},
    Rule{"simd_count", Relation::kEqual},
    Rule{"simd_per_cu", Relation::kEqual},
    Rule{"array_count", Relation::kEqual},
    Rule{"simd_arrays_per_engine", Relation::kEqual},
    Rule{"cu_per_simd_array", Relation::kEqual},
    Rule{"num_xcc", Relation::kEqual},
    Rule{"wave_front_size", Relation::kEqual},
    Rule{"max_waves_per_simd", Relation::kEqual},
    Rule{"lds_size_in_kb", Relation::kEqual},
    Rule{"gds_size_in_kb", Relation::kEqual},
    Rule{"max_slots_scratch_cu", Relation::kEqual},
    Rule{"cwsr_size", Relation::kEqual},
    Rule{"ctl_stack_size", Relation::kEqual},
    Rule{"num_sdma_engines", Relation::kEqual},
    Rule{"num_sdma_xgmi_engines", Relation::kEqual},
    Rule{"num_sdma_queues_per_engine", Relation::kEqual},
    Rule{"num_cp_queues", Relation::kEqual},
    Rule{"num_gws", Relation::kAtLeast},
    Rule{"caches_count", Relation::kAtLeast},
    Rule{kVramSize, Relation::kAtLeast},
    Rule{kVramPublic, Relation::kAtLeast},
    Rule{"fw_version", Relation::kFirmware},
    Rule{"sdma_fw_version", Relation::kFirmware},
};

std::string name_of(const Node& node) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), "GPU %u (renderD%u)", node.gpu_id, node.render_minor());
  return text.data();
}

bool has_link(const Node& from, std::uint32_t to, std::uint32_t type) {
  return std::any_of(from.links.begin(), from.links.end(), [&](const Link& link) {
    // XGMI does all that PCIe does.
    return link.to == to && (link.type == type || (type == kLinkPcie && link.type == kLinkXgmi));
  });
}

// Every link source `a` -> source `b` exists between the GPUs that stand for them.
bool links_fit(const Node& a, const Node& b, const Node& for_a, const Node& for_b) {
  return std::all_of(a.links.begin(), a.links.end(), [&](const Link& link) {
    return link.to != b.node_id || has_link(for_a, for_b.node_id, link.type);
  });
}

int preference(const Node& source, const Node& candidate) {
  if (source.gpu_id == candidate.gpu_id) return 0;
  return source.render_minor() == candidate.render_minor() ? 1 : 2;
}

class Search {
 public:
  struct Item {
    const Node* source;
    std::vector<const Node*> candidates;  // in order of preference
    const Node* chosen = nullptr;
  };

  Search(std::vector<Item> items, std::uint64_t max_steps) : items_(std::move(items)), max_steps_(max_steps) {
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.candidates.size() < b.candidates.size(); });
  }

  enum class Outcome { kFound, kNone, kTooLong };

  Outcome run() {
    if (place(0)) return Outcome::kFound;
    return steps_ > max_steps_ ? Outcome::kTooLong : Outcome::kNone;
  }

  [[nodiscard]] GpuMap result() const {
    GpuMap map;
    for (const Item& item : items_) map[item.source->gpu_id] = item.chosen->gpu_id;
    return map;
  }

 private:
  // Finds places for items_[index...]. Depth is the number of source GPUs.
  bool place(std::size_t index) {
    if (index == items_.size()) return true;
    Item& item = items_[index];
    for (const Node* candidate : item.candidates) {
      if (++steps_ > max_steps_) return false;
      if (!fits(index, *candidate)) continue;
      item.chosen = candidate;
      if (place(index + 1)) return true;
    }
    item.chosen = nullptr;
    return false;
  }

  [[nodiscard]] bool fits(std::size_t index, const Node& candidate) const {
    const Node& source = *items_[index].source;
    for (std::size_t i = 0; i < index; ++i) {
      const Item& other = items_[i];
      if (other.chosen == &candidate) return false;
      if (!links_fit(source, *other.source, candidate, *other.chosen)) return false;
      if (!links_fit(*other.source, source, *other.chosen, candidate)) return false;
    }
    return true;
  }

  std::vector<Item> items_;
  std::uint64_t max_steps_;
  std::uint64_t steps_ = 0;
};

std::string why_not(const Node& source, const Node& destination, const std::set<std::uint32_t>& usable,
                    const MatchPolicy& policy) {
  const auto forced = policy.forced.find(source.gpu_id);
  if (forced != policy.forced.end() && forced->second != destination.gpu_id) return "the user's map says otherwise";
  if (!usable.contains(destination.gpu_id)) return "its render node cannot be opened";
  return mismatch(source, destination, policy);
}

std::vector<const Node*> gpus(const std::vector<Node>& nodes) {
  std::vector<const Node*> result;
  for (const Node& node : nodes)
    if (node.gpu_id != 0) result.push_back(&node);
  return result;
}

// The text after "no GPUs for this image:", one line per pair.
std::string explain(const std::vector<const Node*>& sources, const std::vector<const Node*>& destinations,
                    const std::set<std::uint32_t>& usable, const MatchPolicy& policy) {
  std::string text;
  for (const Node* source : sources) {
    text += "\n  image's " + name_of(*source) + ":";
    for (const Node* destination : destinations) {
      const std::string reason = why_not(*source, *destination, usable, policy);
      text += "\n    " + name_of(*destination) + ": " + (reason.empty() ? "fits" : reason);
    }
  }
  return text;
}

std::vector<Search::Item> items_for(const std::vector<Node>& source, const std::vector<Node>& destination,
                                    const std::set<std::uint32_t>& usable, const MatchPolicy& policy) {
  std::vector<Search::Item> items;
  for (const Node* node : gpus(source)) {
    Search::Item item{node, {}};
    for (const Node* candidate : gpus(destination))
      if (why_not(*node, *candidate, usable, policy).empty()) item.candidates.push_back(candidate);
    std::stable_sort(item.candidates.begin(), item.candidates.end(),
                     [node](const Node* a, const Node* b) { return preference(*node, *a) < preference(*node, *b); });
    items.push_back(std::move(item));
  }
  return items;
}

// Leaves out candidates that are not allowed.
std::vector<Search::Item> only(std::vector<Search::Item> items, const std::set<std::uint32_t>& allowed) {
  for (Search::Item& item : items)
    std::erase_if(item.candidates, [&](const Node* candidate) { return !allowed.contains(candidate->gpu_id); });
  return items;
}

}  // namespace

std::string mismatch(const Node& source, const Node& destination, const MatchPolicy& policy) {
  for (const Rule& rule : kRules) {
    if (rule.relation == Relation::kFirmware && !policy.check_firmware) continue;
    if (rule.relation == Relation::kDevice && !policy.check_device_id) continue;
    const auto wanted = source.properties.find(rule.name);
    const auto found = destination.properties.find(rule.name);
    // A property that one of the two kernels does not know cannot be compared.
    if (wanted == source.properties.end() || found == destination.properties.end()) continue;
    const bool equal = rule.relation == Relation::kEqual || rule.relation == Relation::kDevice;
    if (equal ? wanted->second == found->second : wanted->second <= found->second) continue;
    return std::string(rule.name) + " is " + std::to_string(found->second) + ", needs " + (equal ? "" : "at least ") +
           std::to_string(wanted->second);
  }
  return {};
}

Result<GpuMap> match(const std::vector<Node>& source, const std::vector<Node>& destination,
                     const std::set<std::uint32_t>& usable, const MatchPolicy& policy) {
  // First with the GPUs that nobody else uses, then with one more of the others at a time. All these searches together
  // take no more steps than the last one, with all GPUs, may take.
  std::set<std::uint32_t> allowed;
  std::vector<std::uint32_t> others;
  for (const std::uint32_t gpu_id : usable) {
    if (policy.busy.contains(gpu_id))
      others.push_back(gpu_id);
    else
      allowed.insert(gpu_id);
  }
  const auto items = items_for(source, destination, usable, policy);
  Search::Outcome outcome = Search::Outcome::kNone;
  for (std::size_t i = 0; i <= others.size(); ++i) {
    const std::uint64_t max_steps = i == others.size() ? policy.max_steps : policy.max_steps / others.size();
    Search search(only(items, allowed), max_steps);
    outcome = search.run();
    if (outcome == Search::Outcome::kFound) return search.result();
    if (i < others.size()) allowed.insert(others[i]);
  }
  switch (outcome) {
    case Search::Outcome::kFound:
    case Search::Outcome::kTooLong:
      return Error(E2BIG, "gave up the search for GPUs; name them with AMDGPU_PLUGIN_GPU_MAP");
    case Search::Outcome::kNone:
      break;
  }
  const auto sources = gpus(source);
  return Error(ENODEV, "this machine has no " + std::to_string(sources.size()) +
                           " GPUs that together fit the image (pairs that fit may lack links or be needed twice):" +
                           explain(sources, gpus(destination), usable, policy));
}

}  // namespace plugin::topology
