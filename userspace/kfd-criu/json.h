// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes JSON while it is produced, so that an image with a million BOs needs no memory for its text. Brackets and
// commas are the writer's business, the order of calls is the caller's.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace kfd_criu {

class Json {
 public:
  explicit Json(std::ostream& out) : out_(out) {}

  Json& begin_object();
  Json& end_object();
  Json& begin_array();
  Json& end_array();
  Json& key(std::string_view name);

  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(std::uint64_t number);
  Json& value(bool flag);

  template <typename T>
  Json& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  // Addresses and ids of 64 bits, which a reader of JSON might round if they were numbers.
  Json& hex_field(std::string_view name, std::uint64_t number);

 private:
  void separate();
  Json& open(char bracket);
  Json& close(char bracket);

  std::ostream& out_;
  std::vector<bool> has_members_;  // one for each open bracket
  bool after_key_ = false;
};

}  // namespace kfd_criu
