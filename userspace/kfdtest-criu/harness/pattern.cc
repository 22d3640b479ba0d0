// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Pattern: lane n of stream `seed` is splitmix64's finaliser of seed + n * golden ratio.
#include "kfdtest-criu/harness/pattern.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace kfdtest {
namespace {

constexpr std::size_t kLane = sizeof(std::uint64_t);

std::uint64_t lane_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Calls visit(position in bytes, expected piece) for consecutive pieces of at most a lane.
template <typename Visit>
void for_each_piece(std::size_t size, std::uint64_t seed, std::uint64_t first, Visit visit) {
  for (std::size_t done = 0; done < size;) {
    const std::uint64_t offset = first + done;
    const std::uint64_t lane = lane_at(seed, offset / kLane);
    std::array<std::byte, kLane> raw{};
    std::memcpy(raw.data(), &lane, kLane);
    const std::size_t skip = offset % kLane;
    const std::size_t length = std::min(kLane - skip, size - done);
    if (!visit(done, std::span<const std::byte>(raw).subspan(skip, length))) return;
    done += length;
  }
}

}  // namespace

std::byte pattern_byte(std::uint64_t seed, std::uint64_t offset) {
  return static_cast<std::byte>(lane_at(seed, offset / kLane) >> (8 * (offset % kLane)));
}

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t first) {
  for_each_piece(bytes.size(), seed, first, [&](std::size_t at, std::span<const std::byte> piece) {
    std::memcpy(bytes.data() + at, piece.data(), piece.size());
    return true;
  });
}

std::optional<std::size_t> find_mismatch(std::span<const std::byte> bytes, std::uint64_t seed, std::uint64_t first) {
  std::optional<std::size_t> found;
  for_each_piece(bytes.size(), seed, first, [&](std::size_t at, std::span<const std::byte> piece) {
    if (std::memcmp(bytes.data() + at, piece.data(), piece.size()) == 0) return true;
    const auto differs = std::mismatch(piece.begin(), piece.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    found = at + static_cast<std::size_t>(differs.first - piece.begin());
    return false;
  });
  return found;
}

std::optional<std::size_t> find_other_word(std::span<const std::byte> bytes, std::uint32_t word) {
  for (std::size_t at = 0; at + sizeof(word) <= bytes.size(); at += sizeof(word))
    if (std::memcmp(bytes.data() + at, &word, sizeof(word)) != 0) return at / sizeof(word);
  return std::nullopt;
}

void Checksum::add(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  for (; at + kLane <= bytes.size(); at += kLane) {
    std::uint64_t lane = 0;
    std::memcpy(&lane, bytes.data() + at, kLane);
    add_lane(lane);
  }
  if (at < bytes.size()) {
    std::uint64_t lane = 0;
    std::memcpy(&lane, bytes.data() + at, bytes.size() - at);
    add_lane(lane);
  }
  add_lane(bytes.size());
}

void Checksum::add_lane(std::uint64_t lane) {
  state_ = (state_ ^ lane) * 0x100000001b3;
  state_ ^= state_ >> 32;  // without it high input bits never reach low output bits
}

std::string Checksum::hex() const {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(state_));
  return text.data();
}

}  // namespace kfdtest
