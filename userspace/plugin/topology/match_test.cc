// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Matching: rules, preference, explanation, and completeness against a brute-force search.
#include "plugin/topology/match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <random>

#include "plugin/test_support.h"
#include "plugin/topology/snapshot.h"

namespace plugin::topology {
namespace {

Node gpu(std::uint32_t node_id, std::uint32_t gpu_id, std::uint64_t vram = 16) {
  Node node;
  node.node_id = node_id;
  node.gpu_id = gpu_id;
  node.properties = {{"gfx_target_version", 90006}, {"simd_count", 240}, {"vram_size", vram}, {"fw_version", 440}};
  node.properties["drm_render_minor"] = 127 + node_id;
  return node;
}

std::set<std::uint32_t> all(const std::vector<Node>& nodes) {
  std::set<std::uint32_t> ids;
  for (const Node& node : nodes) ids.insert(node.gpu_id);
  return ids;
}

TEST(Match, a_gpu_stands_for_itself_when_it_can) {
  const std::vector<Node> machine = {gpu(1, 10), gpu(2, 20), gpu(3, 30)};
  const auto map = match({gpu(2, 20)}, machine, all(machine), {});
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(*map, (GpuMap{{20, 20}}));
}

TEST(Match, a_larger_vram_fits_and_a_smaller_one_is_explained) {
  const std::vector<Node> machine = {gpu(1, 10, 8), gpu(2, 20, 32)};
  EXPECT_EQ(*match({gpu(1, 5, 16)}, machine, all(machine), {}), (GpuMap{{5, 20}}));
  const auto refused = match({gpu(1, 5, 64)}, machine, all(machine), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("GPU 10 (renderD128): vram_size is 8, needs at least 64"), std::string::npos)
      << refused.error().message();
}

TEST(Match, a_gpu_whose_render_node_cannot_be_opened_is_not_chosen) {
  const std::vector<Node> machine = {gpu(1, 10), gpu(2, 20)};
  EXPECT_EQ(*match({gpu(1, 10)}, machine, {20}, {}), (GpuMap{{10, 20}}));
  const auto refused = match({gpu(1, 10)}, machine, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("cannot be opened"), std::string::npos);
}

TEST(Match, older_firmware_is_refused_unless_the_check_is_off) {
  std::vector<Node> machine = {gpu(1, 10)};
  machine[0].properties["fw_version"] = 400;
  EXPECT_FALSE(match({gpu(1, 10)}, machine, {10}, {}).ok());
  EXPECT_TRUE(match({gpu(1, 10)}, machine, {10}, MatchPolicy{.check_firmware = false}).ok());
}

TEST(Match, the_users_map_is_followed_but_must_fit) {
  const std::vector<Node> machine = {gpu(1, 10), gpu(2, 20), gpu(3, 30, 1)};
  EXPECT_EQ(*match({gpu(1, 10)}, machine, all(machine), MatchPolicy{.forced = {{10, 20}}}), (GpuMap{{10, 20}}));
  EXPECT_FALSE(match({gpu(1, 10)}, machine, all(machine), MatchPolicy{.forced = {{10, 30}}}).ok());
}

TEST(Match, another_device_of_the_same_kind_is_taken_only_when_the_check_is_off) {
  std::vector<Node> source = {gpu(1, 10)};
  std::vector<Node> machine = {gpu(1, 10)};
  source[0].properties["device_id"] = 0x74a1;
  machine[0].properties["device_id"] = 0x74b5;
  EXPECT_FALSE(match(source, machine, {10}, {}).ok());
  EXPECT_TRUE(match(source, machine, {10}, MatchPolicy{.check_device_id = false}).ok());
  machine[0].properties["gfx_target_version"] = 90008;
  EXPECT_FALSE(match(source, machine, {10}, MatchPolicy{.check_device_id = false}).ok());
}

TEST(Match, a_busy_gpu_is_chosen_only_when_there_is_no_other) {
  const std::vector<Node> machine = {gpu(1, 10), gpu(2, 20), gpu(3, 30, 8)};
  MatchPolicy policy;
  policy.busy = {10};
  EXPECT_EQ(*match({gpu(1, 10)}, machine, all(machine), policy), (GpuMap{{10, 20}}));
  // Two are needed and only one of those that fit is idle: all may be used, the idle one first.
  EXPECT_EQ(*match({gpu(1, 10), gpu(2, 20)}, machine, all(machine), policy), (GpuMap{{10, 10}, {20, 20}}));
  policy.busy = {10, 20};
  EXPECT_EQ(*match({gpu(1, 10)}, machine, all(machine), policy), (GpuMap{{10, 10}}));
}

TEST(Match, a_link_must_exist_and_xgmi_stands_in_for_pcie_only) {
  std::vector<Node> source = {gpu(1, 10), gpu(2, 20)};
  source[0].links = {{2, kLinkPcie}};
  std::vector<Node> machine = {gpu(5, 50), gpu(6, 60), gpu(7, 70)};
  EXPECT_FALSE(match(source, machine, all(machine), {}).ok());
  machine[1].links = {{7, kLinkXgmi}};
  EXPECT_EQ(*match(source, machine, all(machine), {}), (GpuMap{{10, 60}, {20, 70}}));
  source[0].links = {{2, kLinkXgmi}};
  EXPECT_TRUE(match(source, machine, all(machine), {}).ok());
  machine[1].links = {{7, kLinkPcie}};
  EXPECT_FALSE(match(source, machine, all(machine), {}).ok());
}

TEST(Match, eight_identical_linked_gpus_that_need_one_more_link_are_refused_in_time) {
  std::vector<Node> source;
  for (std::uint32_t i = 1; i <= 8; ++i) source.push_back(gpu(i, i));
  for (Node& node : source)
    for (std::uint32_t to = 1; to <= 8; ++to)
      if (to != node.node_id) node.links.push_back({to, kLinkXgmi});
  std::vector<Node> machine = source;
  machine[7].links.pop_back();
  EXPECT_FALSE(match(source, machine, all(machine), {}).ok());
  EXPECT_TRUE(match(source, source, all(source), {}).ok());
}

std::int64_t processor_time_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

TEST(Match, busy_gpus_do_not_make_a_refusal_take_longer_than_two_searches) {
  // No GPU has the links, so every search of eight among many goes to its limit.
  std::vector<Node> source;
  for (std::uint32_t i = 1; i <= 9; ++i) source.push_back(gpu(i, i));
  for (Node& node : source)
    for (std::uint32_t to = 1; to <= 9; ++to)
      if (to != node.node_id) node.links.push_back({to, kLinkXgmi});
  std::vector<Node> machine;
  for (std::uint32_t i = 1; i <= 64; ++i) machine.push_back(gpu(i, i));
  for (Node& node : machine)
    for (std::uint32_t to = 1; to <= 64; ++to)
      if (to % 8 != node.node_id % 8) node.links.push_back({to, kLinkXgmi});
  MatchPolicy policy;
  policy.max_steps = 20'000;
  // Processor time of this thread: other programs of the machine do not count.
  const auto time_of = [&] {
    const std::int64_t begin = processor_time_ns();
    EXPECT_FALSE(match(source, machine, all(machine), policy).ok());
    return processor_time_ns() - begin;
  };
  const auto idle = time_of();
  for (std::uint32_t i = 11; i <= 64; ++i) policy.busy.insert(i);
  EXPECT_LT(time_of(), 10 * idle);  // there are 55 searches
}

// Small machines over which all injections can be tried.
struct Case {
  std::vector<Node> source;
  std::vector<Node> destination;
};

std::vector<Node> random_machine(std::mt19937& random, std::uint32_t size) {
  std::vector<Node> nodes;
  for (std::uint32_t i = 1; i <= size; ++i) {
    Node node = gpu(i, i, 1 + random() % 3);
    for (std::uint32_t to = 1; to <= size; ++to)
      if (to != i && random() % 3 == 0) node.links.push_back({to, random() % 2 == 0 ? kLinkPcie : kLinkXgmi});
    nodes.push_back(node);
  }
  return nodes;
}

bool link_fits(const Link& wanted, const Node& from, const Node& to) {
  return std::any_of(from.links.begin(), from.links.end(), [&](const Link& link) {
    return link.to == to.node_id && (link.type == wanted.type || link.type == kLinkXgmi);
  });
}

// `order[i]` is the destination of source i. Written apart from the matcher on purpose.
bool valid(const Case& c, const std::vector<std::size_t>& order) {
  for (std::size_t i = 0; i < c.source.size(); ++i) {
    const Node& from = c.destination[order[i]];
    if (from.property("vram_size") < c.source[i].property("vram_size")) return false;
    for (const Link& link : c.source[i].links)
      if (!link_fits(link, from, c.destination[order[link.to - 1]])) return false;
  }
  return true;
}

bool brute_force(const Case& c) {
  std::vector<std::size_t> order(c.destination.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (c.source.size() > order.size()) return false;
  do {
    if (valid(c, order)) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

TEST(Match, finds_a_mapping_exactly_when_one_exists) {
  std::mt19937 random(20260101);
  int feasible = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto source_size = static_cast<std::uint32_t>(1 + random() % 4);
    const auto destination_size = static_cast<std::uint32_t>(1 + random() % 5);
    const Case c{random_machine(random, source_size), random_machine(random, destination_size)};
    const auto map = match(c.source, c.destination, all(c.destination), {});
    ASSERT_EQ(map.ok(), brute_force(c)) << "round " << round;
    if (!map.ok()) continue;
    ++feasible;
    std::vector<std::size_t> order;
    for (const auto& [source, destination] : *map) order.push_back(destination - 1);
    ASSERT_TRUE(valid(c, order)) << "round " << round;
  }
  EXPECT_GT(feasible, 100);
  EXPECT_LT(feasible, 2900);
}

TEST(Snapshot, reads_gpus_memory_and_links_and_skips_hidden_nodes) {
  testing::FakeMachine machine;
  machine.add_gpu(1, 4660, 128, 1U << 20);
  testing::write_file(machine.node(2) + "/gpu_id", "77\n");  // no readable properties
  testing::write_file(machine.node(1) + "/mem_banks/1/properties", "heap_type 2\nsize_in_bytes 4096\n");
  const auto nodes = snapshot(machine.root() + "/sys/class/kfd/kfd/topology");
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 2U);
  const Node& node = (*nodes)[1];
  EXPECT_EQ(node.gpu_id, 4660U);
  EXPECT_EQ(node.render_minor(), 128U);
  EXPECT_EQ(node.property(kVramSize), (1U << 20) + 4096U);
  EXPECT_EQ(node.property(kVramPublic), 1U << 20);
  EXPECT_EQ(node.links, (std::vector<Link>{{0, kLinkPcie}}));
}

TEST(Snapshot, a_machine_without_kfd_is_an_error) { EXPECT_FALSE(snapshot("/nowhere").ok()); }

}  // namespace
}  // namespace plugin::topology
