// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfd-criu/json.h"

#include "kfd-criu/names.h"

namespace kfd_criu {
namespace {

// The first levels are the list of entries: each entry gets a line of its own, so that grep and diff are of use.
constexpr std::size_t kLinesUpTo = 2;

}  // namespace

void Json::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_members_.empty()) return;
  if (has_members_.back()) out_ << (has_members_.size() == kLinesUpTo ? "," : ", ");
  if (has_members_.size() == kLinesUpTo) out_ << '\n';
  has_members_.back() = true;
}

Json& Json::open(char bracket) {
  separate();
  out_ << bracket;
  has_members_.push_back(false);
  return *this;
}

Json& Json::close(char bracket) {
  if (has_members_.size() == kLinesUpTo && has_members_.back()) out_ << '\n';
  has_members_.pop_back();
  out_ << bracket;
  if (has_members_.empty()) out_ << '\n';
  return *this;
}

Json& Json::begin_object() { return open('{'); }
Json& Json::end_object() { return close('}'); }
Json& Json::begin_array() { return open('['); }
Json& Json::end_array() { return close(']'); }

Json& Json::key(std::string_view name) {
  value(name);
  out_ << ": ";
  after_key_ = true;
  return *this;
}

// A byte beyond ASCII becomes the code point of the same number: text of an image need not be UTF-8, JSON has to be.
Json& Json::value(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  separate();
  out_ << '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out_ << '\\' << c;
    else if (byte < 0x20 || byte >= 0x7f)
      out_ << "\\u00" << kDigits[byte >> 4U] << kDigits[byte & 15U];
    else
      out_ << c;
  }
  out_ << '"';
  return *this;
}

Json& Json::value(std::uint64_t number) {
  separate();
  out_ << number;
  return *this;
}

Json& Json::value(bool flag) {
  separate();
  out_ << (flag ? "true" : "false");
  return *this;
}

Json& Json::hex_field(std::string_view name, std::uint64_t number) { return field(name, "0x" + hex(number)); }

}  // namespace kfd_criu
