// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The JSON writer, and the check of JSON that the other tests use.
#include "kfd-criu/json.h"

#include <gtest/gtest.h>

#include <sstream>

#include "kfd-criu/names.h"
#include "kfd-criu/test_support.h"

namespace kfd_criu {
namespace {

using testing::is_json;

TEST(Json, objects_and_arrays_are_nested) {
  std::ostringstream out;
  Json json(out);
  json.begin_object().field("magic", "M").key("entries").begin_array();
  json.begin_object().field("a", std::uint64_t{1}).field("b", true).key("c").begin_array();
  json.value("x").value("y").end_array().end_object();
  json.begin_object().hex_field("d", 0xfeedfacedeadbeef).end_object();
  json.end_array().end_object();
  EXPECT_EQ(out.str(),
            "{\"magic\": \"M\", \"entries\": [\n{\"a\": 1, \"b\": true, \"c\": [\"x\", \"y\"]},\n"
            "{\"d\": \"0xfeedfacedeadbeef\"}\n]}\n");
  EXPECT_TRUE(is_json(out.str()));
}

TEST(Json, any_byte_of_a_text_gives_valid_json) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  std::ostringstream out;
  Json(out).value(text);
  EXPECT_TRUE(is_json(out.str())) << out.str();
  EXPECT_NE(out.str().find("\\u0000\\u0001"), std::string::npos);
  EXPECT_NE(out.str().find("\\\"#"), std::string::npos);
  EXPECT_NE(out.str().find("[\\\\]"), std::string::npos);
  EXPECT_NE(out.str().find("\\u00ff"), std::string::npos);
}

TEST(Json, the_check_of_these_tests_refuses_what_is_none) {
  for (const char* text : {"", "{", "{\"a\": 1,}", "[1 2]", "{\"a\" 1}", "\"\x01\"", "1]", "{1: 2}", "tru", "[\"a]"})
    EXPECT_FALSE(is_json(text)) << text;
  for (const char* text : {"{}", "[]", "[\n{\"a\": [1, true]},\n{}\n]\n", "\"\\\"\""})
    EXPECT_TRUE(is_json(text)) << text;
}

TEST(Names, sizes_and_counts_are_readable) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(192ULL << 30), "192.0 GiB");
  EXPECT_EQ(size_text(~0ULL), "16777216.0 TiB");
  EXPECT_EQ(count_text(1, "BO"), "1 BO");
  EXPECT_EQ(count_text(0, "byte"), "0 bytes");
}

TEST(Names, a_gpus_architecture_is_named_as_compilers_do) {
  plugin::topology::Node node;
  EXPECT_EQ(gfx_name(node), "gfx?");
  for (const auto& [version, name] : {std::pair{90006U, "gfx906"},
                                      {90010U, "gfx90a"},
                                      {90402U, "gfx942"},
                                      {100300U, "gfx1030"},
                                      {110000U, "gfx1100"},
                                      {120001U, "gfx1201"}}) {
    node.properties["gfx_target_version"] = version;
    EXPECT_EQ(gfx_name(node), name);
  }
}

TEST(Names, control_characters_do_not_reach_a_terminal) {
  EXPECT_EQ(printable("a\x1b[1m\r\n\x9b"), "a?[1m???");
  EXPECT_EQ(printable_lines("a\x1b\nb"), "a?\nb");
}

}  // namespace
}  // namespace kfd_criu
