// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/wire.h"

#include <cerrno>
#include <string>

namespace plugin::image {
namespace {

using base::Error;
using base::Status;

constexpr std::uint32_t kWireFixed32 = 5;
// Protobuf keeps fields that it does not know; a newer writer that has more to say raises the version.
constexpr std::size_t kMaxUnknown = 1U << 20;

}  // namespace

bool WireReader::varint(std::uint64_t& value) {
  value = 0;
  for (std::uint32_t shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = std::to_integer<std::uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    value |= (byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) return true;
  }
  return false;
}

bool WireReader::read_field(WireField& field) {
  const auto all = rest_;
  std::uint64_t tag = 0;
  if (!varint(tag) || (tag >> 3U) == 0 || (tag >> 3U) > std::numeric_limits<std::uint32_t>::max()) return false;
  field.number = static_cast<std::uint32_t>(tag >> 3U);
  field.type = static_cast<std::uint32_t>(tag & 7U);
  field.value = 0;
  field.payload = {};
  std::uint64_t length = 0;
  if (field.type == kWireVarint) {
    if (!varint(field.value)) return false;
  } else if (field.type == kWireBytes) {
    if (!varint(length)) return false;
  } else if (field.type == kWireFixed64 || field.type == kWireFixed32) {
    length = field.type == kWireFixed64 ? 8 : 4;
  } else {
    return false;
  }
  if (length > rest_.size()) return false;
  if (field.type == kWireBytes) field.payload = rest_.first(length);
  rest_ = rest_.subspan(length);
  field.whole = all.first(all.size() - rest_.size());
  return true;
}

bool WireReader::next(WireField& field) {
  if (rest_.empty() || malformed_) return false;
  malformed_ = !read_field(field);
  return !malformed_;
}

bool WireReader::next_packed(std::uint64_t& value) {
  if (rest_.empty() || malformed_) return false;
  malformed_ = !varint(value);
  return !malformed_;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the constant shapes.
Status WireBudget::take(std::span<const std::byte> message, const WireShape& shape) {
  WireReader reader(message);
  WireField field;
  while (reader.next(field)) {
    const WireRule* rule = field.number <= shape.fields.size() ? &shape.fields[field.number - 1] : nullptr;
    if (rule == nullptr || rule->type != field.type) {
      unknown_ += field.whole.size();
      if (unknown_ > kMaxUnknown) return Error(EFBIG, "invalid image: too many unknown fields");
    } else if (field.type == kWireBytes) {
      if (++seen_[rule] > rule->most)
        return Error(EFBIG, "invalid image: too many of field " + std::to_string(field.number));
      if (field.payload.size() > rule->longest)
        return Error(EFBIG, "invalid image: too long is field " + std::to_string(field.number));
      if (rule->message != nullptr) TRY(take(field.payload, *rule->message));
    }
  }
  if (reader.malformed()) return Error(EINVAL, "invalid image: not a protobuf message");
  return {};
}

}  // namespace plugin::image
