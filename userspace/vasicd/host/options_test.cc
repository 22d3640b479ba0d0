// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The command line.
#include "vasicd/host/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vasicd/chip_properties.h"
#include "vasicd/mem/bus.h"

namespace vasicd {
namespace {

// Checks the form every usage error has; returns its line.
std::string usage_error(const std::vector<std::string>& arguments) {
  const auto parsed = parse_options(arguments);
  EXPECT_FALSE(parsed.options.has_value());
  EXPECT_EQ(parsed.exit_status, kExitUsage);
  EXPECT_EQ(std::ranges::count(parsed.error, '\n'), 1);
  EXPECT_TRUE(parsed.error.starts_with("vasicd: error: ")) << parsed.error;
  return parsed.error;
}

TEST(Options, only_the_directory_is_required) {
  const auto parsed = parse_options({"--dir", "/tmp/x"});
  ASSERT_TRUE(parsed.options);
  EXPECT_EQ(parsed.options->dir, "/tmp/x");
  EXPECT_EQ(parsed.options->ram_size, std::uint64_t{2} << 30);
  EXPECT_EQ(parsed.options->ram_low, std::uint64_t{2} << 30);
  EXPECT_EQ(parsed.options->gpus.size(), 1u);
  EXPECT_FALSE(parsed.options->once);
}

TEST(Options, every_option_is_understood) {
  const auto parsed = parse_options({"--dir", "d", "--ram-size", "4G", "--ram-low", "1G", "--gpu", "gfx906,vram=64M",
                                     "--gpu=gfx906,cu=4,vram=128M", "--trace", "t", "--once", "--die-with-parent"});
  ASSERT_TRUE(parsed.options) << parsed.error;
  EXPECT_EQ(parsed.options->ram_size, std::uint64_t{4} << 30);
  EXPECT_EQ(parsed.options->ram_low, std::uint64_t{1} << 30);
  ASSERT_EQ(parsed.options->gpus.size(), 2u);
  EXPECT_EQ(parsed.options->gpus[0].vram_size, 64u << 20);
  EXPECT_EQ(parsed.options->gpus[1].cu_count, 4u);
  EXPECT_EQ(parsed.options->gpus[1].gpu_index, 1u);
  EXPECT_EQ(parsed.options->trace, "t");
  EXPECT_TRUE(parsed.options->once && parsed.options->die_with_parent);
}

TEST(Options, small_ram_is_all_low) {
  EXPECT_EQ(parse_options({"--dir", "d", "--ram-size", "512M"}).options->ram_low, 512u << 20);
}

// The names in the table, each between `before` and `after`.
std::string all_names(const std::string& before, const std::string& after) {
  std::string names;
  for (const Chip& chip : chips()) names += before + std::string(chip.name) + after;
  return names;
}

TEST(Options, list_chips_needs_nothing_else) {
  const auto parsed = parse_options({"--list-chips"});
  EXPECT_FALSE(parsed.options);
  EXPECT_EQ(parsed.exit_status, 0);
  EXPECT_EQ(parsed.out, all_names("", "\n"));
}

TEST(Options, list_chips_as_json_prints_the_table) {
  const auto parsed = parse_options({"--list-chips", "--json"});
  EXPECT_FALSE(parsed.options);
  EXPECT_EQ(parsed.exit_status, 0);
  EXPECT_EQ(parsed.out, chips_as_json());
}

TEST(Options, json_alone_is_a_usage_error) {
  EXPECT_EQ(usage_error({"--dir", "d", "--json"}), "vasicd: error: --json requires --list-chips\n");
}

TEST(Options, help_goes_to_stdout) {
  const auto parsed = parse_options({"--help"});
  EXPECT_EQ(parsed.exit_status, 0);
  EXPECT_NE(parsed.out.find("--die-with-parent"), std::string::npos);
}

TEST(Options, usage_errors_are_one_line_and_status_64) {
  usage_error({});
  usage_error({"--dir"});
  usage_error({"--dir", "d", "--frobnicate"});
  usage_error({"--dir", "d", "stray"});
  usage_error({"--dir", "d", "--ram-size", "lots"});
  usage_error({"--dir", "d", "--ram-size", "1M"});
  usage_error({"--dir", "d", "--ram-size", "17825793"});
  usage_error({"--dir", "d", "--ram-low", "5G"});
}

TEST(Options, a_bad_gpu_is_named_together_with_what_is_allowed) {
  EXPECT_EQ(usage_error({"--dir", "d", "--gpu", "gfx1"}),
            "vasicd: error: --gpu gfx1: unknown chip 'gfx1', one of:" + all_names(" ", "") + "\n");
  EXPECT_NE(
      usage_error({"--dir", "d", "--gpu", "gfx906,a=1"}).find("one of: vram vis cu se sdma xcc unique-id hive fw"),
      std::string::npos);
}

TEST(Options, there_is_a_bound_on_gpus) {
  std::vector<std::string> arguments{"--dir", "d"};
  for (unsigned gpu = 0; gpu < kMaxGpus; ++gpu) arguments.insert(arguments.end(), {"--gpu", "gfx906"});
  EXPECT_TRUE(parse_options(arguments).options.has_value());
  arguments.insert(arguments.end(), {"--gpu", "gfx906"});
  usage_error(arguments);
}

}  // namespace
}  // namespace vasicd
