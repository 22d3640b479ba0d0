// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Protobuf's wire format. Images of CRIU are read with it, of which few fields are needed. Images of this plugin are
// looked at before protobuf reads them: how many submessages and strings a message has. Two bytes of input can make
// protobuf allocate a hundred, so an image could otherwise take all memory of the machine.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>

#include "base/result.h"

namespace plugin::image {

// One field as it is on the wire.
struct WireField {
  std::uint32_t number = 0;
  std::uint32_t type = 0;
  std::uint64_t value = 0;             // of kWireVarint
  std::span<const std::byte> payload;  // of kWireBytes
  std::span<const std::byte> whole;    // with its tag
};
inline constexpr std::uint32_t kWireVarint = 0;
inline constexpr std::uint32_t kWireFixed64 = 1;
inline constexpr std::uint32_t kWireBytes = 2;

// The fields of a message in their order. Groups, which proto2 has but we do not use, are malformed.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  // False at the end and on malformed bytes; which, says malformed().
  bool next(WireField& field);
  // Reads a number that has no tag, as in the payload of a packed field; otherwise like next().
  bool next_packed(std::uint64_t& value);
  [[nodiscard]] bool malformed() const { return malformed_; }

 private:
  bool read_field(WireField& field);
  bool varint(std::uint64_t& value);

  std::span<const std::byte> rest_;
  bool malformed_ = false;
};

// What a reader knows of a field: its type on the wire; of kWireBytes how many a whole image file may have, and how
// long each may be. `message` is null unless the field is a submessage.
struct WireShape;
struct WireRule {
  std::uint32_t type = 0;
  std::uint32_t most = 0;
  std::size_t longest = 0;
  const WireShape* message = nullptr;
};
// The rules of a message's fields, that of number 1 first.
struct WireShape {
  std::span<const WireRule> fields;
};

// What the messages of one image file have used up of it.
class WireBudget {
 public:
  // Fails when the message is malformed, has more of something than its rule permits, or too many bytes without a rule.
  base::Status take(std::span<const std::byte> message, const WireShape& shape);

 private:
  std::map<const WireRule*, std::uint32_t> seen_;
  std::size_t unknown_ = 0;  // bytes of fields that protobuf keeps without knowing them
};

}  // namespace plugin::image
