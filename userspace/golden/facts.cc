// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of facts, and main.
#include "golden/facts.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <unordered_map>

namespace golden {
namespace {

struct Bits {
  std::uint64_t bit = 0;
  std::uint64_t width = 0;
};

struct Table {
  std::unordered_map<std::string, std::uint64_t> values;
  std::unordered_map<std::string, Bits> fields;
};

// Filled by main before any test, constant afterwards.
Table& table() {
  static Table facts;
  return facts;
}

packets::Field field_of(std::uint64_t shift, std::uint64_t mask) {
  const auto width = static_cast<unsigned>(std::popcount(mask));
  EXPECT_EQ(mask, (std::uint64_t{1} << width) - 1) << "a mask with a hole";
  return {static_cast<unsigned>(shift), width};
}

}  // namespace

std::string load_facts(const std::string& path) {
  std::ifstream in(path);
  if (!in) return path + ": cannot be read";
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    std::uint64_t first = 0;
    words >> kind >> name >> first;
    if (kind == "value" && words) {
      table().values[name] = first;
    } else if (std::uint64_t width = 0; kind == "field" && words >> width) {
      table().fields[name] = {first, width};
    } else {
      return path + ": not a fact: " + line;
    }
  }
  if (table().values.empty() || table().fields.empty()) return path + ": no facts";
  return {};
}

std::uint64_t value(const std::string& name) {
  const auto found = table().values.find(name);
  if (found != table().values.end()) return found->second;
  ADD_FAILURE() << "the kernel has no " << name;
  return 0;
}

std::uint64_t size_of(const std::string& name) {
  const std::size_t slash = name.find('/');
  return value(name.substr(0, slash) + "/sizeof." + name.substr(slash + 1));
}

Place member(const std::string& name) {
  const auto found = table().fields.find(name);
  if (found == table().fields.end()) {
    ADD_FAILURE() << "the kernel has no " << name;
    return {};
  }
  const Bits bits = found->second;
  return {static_cast<std::size_t>(bits.bit / 32),
          {static_cast<unsigned>(bits.bit % 32), static_cast<unsigned>(bits.width)}};
}

std::size_t dword(const std::string& name) {
  const Place place = member(name);
  EXPECT_EQ(place.field.shift, 0u) << name;
  return place.dword;
}

packets::Field register_field(const std::string& name) {
  const std::uint64_t shift = value(name + "__SHIFT");
  return field_of(shift, value(name + "_MASK") >> shift);
}

Place sdma_field(const std::string& name) {
  return {static_cast<std::size_t>(value(name + "_offset")), field_of(value(name + "_shift"), value(name + "_mask"))};
}

std::string text(packets::Field field) {
  return std::to_string(field.width) + " bits at " + std::to_string(field.shift);
}

std::uint32_t get(packets::WordView packet, const Place& place) {
  if (place.dword < packet.size()) return place.field.get(packet[place.dword]);
  ADD_FAILURE() << "the packet has " << packet.size() << " dwords";
  return 0;
}

}  // namespace golden

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  if (argc != 2) {
    std::fprintf(stderr, "golden_test: usage: golden_test [--gtest_...] FACTS (from scripts/kernel_facts.py)\n");
    return 64;
  }
  if (const std::string problem = golden::load_facts(argv[1]); !problem.empty()) {
    std::fprintf(stderr, "golden_test: %s\n", problem.c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
