// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The chip table as data that scripts read. The runner's expected skips follow from it, and a skip that is not
// expected, or that does not happen, fails there; so a chip's values are checked against the driver in the guest. Here:
// the form, and one chip of each kind.
#include "vasicd/chip_properties.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace vasicd {
namespace {

const Chip& chip(std::string_view name) { return *std::ranges::find(chips(), name, &Chip::name); }

ChipProperties properties(std::string_view name) { return properties_of(chip(name)); }

TEST(ChipProperties, json_has_a_line_for_each_chip_in_the_order_of_the_table) {
  const std::string json = chips_as_json();
  ASSERT_TRUE(json.starts_with("[\n{") && json.ends_with("}\n]\n")) << json;
  std::string rest = json.substr(2);
  for (const Chip& each : chips()) {
    const std::string line = rest.substr(0, rest.find('\n'));
    rest.erase(0, line.size() + 1);
    EXPECT_TRUE(line.starts_with("{\"name\": \"" + std::string(each.name) + "\", ")) << line;
    EXPECT_TRUE(line.ends_with(&each == &chips().back() ? "}" : "},")) << line;
    EXPECT_EQ(std::ranges::count(line, '"') % 2, 0) << line;
  }
  EXPECT_EQ(rest, "]\n");
}

TEST(ChipProperties, json_names_every_property) {
  EXPECT_NE(chips_as_json().find("{\"name\": \"gfx908\", \"gfx_target_version\": 90008, \"gfx_level\": 9, "
                                 "\"sibling_of\": \"gfx906\", \"scheduler\": \"hws\", \"xccs\": 1, \"rocm\": true, "
                                 "\"executes_waves\": true, \"saves_waves\": true, \"svm\": true, \"xnack\": false, "
                                 "\"xgmi\": true, \"xgmi_sdma\": true, \"gws\": true, \"debugger\": true, "
                                 "\"packet_error_events\": true, \"vendor_packets\": true, \"sparse_ptes\": true, "
                                 "\"aql_ring_mapped_twice\": false}"),
            std::string::npos)
      << chips_as_json();
  EXPECT_NE(chips_as_json().find("{\"name\": \"gfx701\", \"gfx_target_version\": 70001, \"gfx_level\": 7, "
                                 "\"sibling_of\": null, \"scheduler\": \"none\", "),
            std::string::npos)
      << chips_as_json();
}

TEST(ChipProperties, chips_are_sorted_by_the_version_that_the_driver_prints) {
  std::uint32_t last = 0;
  for (const Chip& each : chips()) {
    const std::uint32_t version = properties_of(each).gfx_target_version;
    EXPECT_GT(version, last) << each.name;
    EXPECT_EQ(version / 10000, each.info.gfx_level) << each.name;
    last = version;
  }
  EXPECT_EQ(properties("gfx90a").gfx_target_version, 90010u);
  EXPECT_EQ(properties("gfx942").gfx_target_version, 90402u);
  EXPECT_EQ(properties("gfx1201").gfx_target_version, 120001u);
}

// Tests of code paths run on one of two siblings only, so every choice that the driver makes has to be the same.
TEST(ChipProperties, a_sibling_takes_the_same_paths_as_its_chip_in_the_table) {
  unsigned siblings = 0;
  for (const Chip& each : chips()) {
    if (each.sibling_of.empty()) continue;
    ++siblings;
    ASSERT_NE(std::ranges::find(chips(), each.sibling_of, &Chip::name), chips().end()) << each.name;
    const Chip& other = chip(each.sibling_of);
    EXPECT_TRUE(other.sibling_of.empty()) << each.name << ": the tests of " << other.name << " are cut short, too";
    EXPECT_EQ(each.info.gfx_level, other.info.gfx_level) << each.name;
    EXPECT_EQ(each.info.pte_format, other.info.pte_format) << each.name;
    EXPECT_EQ(each.info.ih_format, other.info.ih_format) << each.name;
    EXPECT_EQ(each.info.sdma_format, other.info.sdma_format) << each.name;
    EXPECT_EQ(each.info.xcc_count, other.info.xcc_count) << each.name;
    EXPECT_EQ(each.info.retry_faults, other.info.retry_faults) << each.name;
    EXPECT_EQ(properties_of(each).scheduler, properties_of(other).scheduler) << each.name;
    EXPECT_EQ(properties_of(each).executes_waves, properties_of(other).executes_waves) << each.name;
    EXPECT_EQ(properties_of(each).saves_waves, properties_of(other).saves_waves) << each.name;
  }
  EXPECT_GT(siblings, 0u);
}

TEST(ChipProperties, gfx8_and_older_lack_what_begins_with_gfx9) {
  for (const Chip& each : chips()) {
    const bool is_new = each.info.gfx_level >= 9;
    const ChipProperties has = properties_of(each);
    for (const bool property : {has.svm, has.debugger, has.packet_error_events, has.vendor_packets, has.sparse_ptes})
      EXPECT_EQ(property, is_new) << each.name;
    EXPECT_EQ(has.aql_ring_mapped_twice, !is_new) << each.name;
    EXPECT_EQ(has.saves_waves, each.info.gfx_level > 7) << each.name;
  }
}

TEST(ChipProperties, schedulers_follow_the_generation) {
  EXPECT_EQ(properties("gfx701").scheduler, QueueScheduler::kNone);
  EXPECT_EQ(properties("gfx803").scheduler, QueueScheduler::kHws);
  EXPECT_EQ(properties("gfx1030").scheduler, QueueScheduler::kHws);
  EXPECT_EQ(properties("gfx1100").scheduler, QueueScheduler::kMes);
}

TEST(ChipProperties, gws_is_offered_from_gfx9_on_with_gaps) {
  for (const char* name : {"gfx701", "gfx803", "gfx1010", "gfx1201"}) EXPECT_FALSE(properties(name).gws) << name;
  for (const char* name : {"gfx900", "gfx942", "gfx1030", "gfx1100"}) EXPECT_TRUE(properties(name).gws) << name;
}

TEST(ChipProperties, only_more_than_two_sdma_engines_leave_some_for_xgmi) {
  EXPECT_FALSE(properties("gfx906").xgmi_sdma) << "two engines";
  EXPECT_TRUE(properties("gfx90a").xgmi_sdma);
  EXPECT_FALSE(properties("gfx1030").xgmi_sdma) << "four engines, but no XGMI";
}

TEST(ChipProperties, waves_of_gfx900_to_gfx90a_are_executed) {
  std::set<std::uint32_t> versions;
  for (const Chip& each : chips())
    if (properties_of(each).executes_waves) versions.insert(properties_of(each).gfx_target_version);
  EXPECT_EQ(versions, (std::set<std::uint32_t>{90000, 90006, 90008, 90010}));
}

}  // namespace
}  // namespace vasicd
