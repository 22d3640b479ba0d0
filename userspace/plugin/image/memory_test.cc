// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What reading an image may cost: a file that somebody wrote on purpose makes the reader allocate less than five times
// its length, and never more than 32 MiB for a small one. Counts all memory of operator new, which this file replaces
// in the whole test program.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "plugin/image/codec.h"
#include "plugin/image/test_support.h"

namespace {

std::atomic<std::size_t> g_allocated = 0;
std::atomic<std::size_t> g_peak = 0;

void* counted_new(std::size_t size) noexcept {
  void* memory = std::malloc(size);
  if (memory == nullptr) return nullptr;
  const std::size_t now = g_allocated += ::malloc_usable_size(memory);
  std::size_t peak = g_peak;
  while (now > peak && !g_peak.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

void counted_delete(void* memory) noexcept {
  if (memory != nullptr) g_allocated -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  if (void* memory = counted_new(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept { return counted_new(size); }
void operator delete(void* memory) noexcept { counted_delete(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { counted_delete(memory); }

namespace plugin::image {
namespace {

constexpr std::size_t kLength = 8U << 20;
constexpr std::size_t kFactor = 5;
constexpr std::size_t kSmallChange = 32U << 20;

// Tag of a field that is a submessage or bytes; numbers below 16.
std::string field(std::uint32_t number, const std::string& payload) {
  std::string out(1, static_cast<char>((number << 3U) | 2U));
  std::size_t length = payload.size();
  for (; length >= 0x80; length >>= 7U) out += static_cast<char>((length & 0x7fU) | 0x80U);
  return out + static_cast<char>(length) + payload;
}

std::string repeat(const std::string& one, std::size_t times) {
  std::string all;
  all.reserve(one.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += one;
  return all;
}

std::string filled(const std::string& one) { return repeat(one, kLength / one.size()); }

// The memory that `read` needed at its worst, with the bytes that it was given.
std::size_t cost(const std::string& bytes, const std::function<void(std::span<const std::byte>)>& read) {
  const auto all = std::as_bytes(std::span(bytes));
  const std::vector<std::byte> copy(all.begin(), all.end());
  const std::size_t before = g_allocated;
  g_peak = before;
  read(copy);
  return g_peak - before + copy.size();
}

base::Result<Index> decode_index_of(std::span<const std::byte> bytes) { return decode_index(bytes); }

class Memory : public ::testing::Test {
 protected:
  template <typename Read>
  static void expect_cheap(const char* what, const std::string& bytes, Read read) {
    ASSERT_GE(bytes.size(), kLength / 2) << what;
    bool ok = false;
    const std::size_t peak = cost(bytes, [&](std::span<const std::byte> span) { ok = read(span).ok(); });
    EXPECT_LT(peak, kFactor * bytes.size())
        << what << ": " << static_cast<double>(peak) / static_cast<double>(bytes.size())
        << (ok ? ", read" : ", refused");
  }
};

// As many as a reader takes of the costly ones, then harmless bytes up to the length.
std::string with_padding(std::string costly, std::uint32_t padding_field) {
  return costly + field(padding_field, std::string(kLength - costly.size() - 16, 'x'));
}

TEST_F(Memory, is_counted) {
  EXPECT_GE(cost("", [](auto) { const std::vector<char> one(1U << 20); }), std::size_t{1} << 20);
}

TEST_F(Memory, of_crafted_metadata_is_bounded) {
  expect_cheap("empty devices", field(3, filled(field(4, ""))), decode_file);
  expect_cheap("empty BOs", field(3, filled(field(5, ""))), decode_file);
  expect_cheap("empty shared files", field(3, filled(field(7, ""))), decode_file);
  expect_cheap("empty links", field(3, field(7, filled(field(6, "")))), decode_file);
  expect_cheap("empty nodes", filled(field(2, "")), decode_file);
  expect_cheap("unknown fields", filled(field(15, "")), decode_file);
  expect_cheap("fields of another type", filled(field(1, "")), decode_file);
  expect_cheap("kernel state", field(3, field(6, std::string(kLength, 'x'))), decode_file);
  expect_cheap("states", filled(field(3, field(6, "x"))), decode_file);
  for (std::uint32_t objects = 5; objects <= 9; ++objects)
    expect_cheap("empty objects of a render node", field(4, filled(field(objects, ""))), decode_file);
  expect_cheap("empty mappings of a GEM object", field(4, field(5, filled(field(5, "")))), decode_file);
  expect_cheap("empty entries of a BO list", field(4, field(7, filled(field(2, "")))), decode_file);
  const std::string most = repeat(field(4, ""), kMaxDevices) + repeat(field(7, field(1, "")), 8);
  expect_cheap("as much as is permitted", field(3, with_padding(most, 6)), decode_file);
}

TEST_F(Memory, of_a_crafted_manifest_is_bounded) {
  expect_cheap("empty files", filled(field(5, "")), decode_manifest);
  expect_cheap("empty processes", filled(field(6, "")), decode_manifest);
  expect_cheap("empty sources", field(5, filled(field(8, ""))), decode_manifest);
  expect_cheap("empty nodes", filled(field(4, "")), decode_manifest);
  expect_cheap("empty properties", field(4, filled(field(3, ""))), decode_manifest);
  expect_cheap("empty topology links", field(4, filled(field(4, ""))), decode_manifest);
  const std::string name(20, 'n');
  std::string properties;
  for (int i = 0; i < 1 << 15; ++i) properties += field(3, field(1, name + std::to_string(i)));
  const std::string most = repeat(field(5, std::string(8, '\x18')), (1U << 16) - 1) +
                           field(5, repeat(field(8, std::string("\x10\x01")), kMaxSources)) +
                           repeat(field(6, field(2, name + name + name)), 1U << 14) + repeat(field(4, ""), 4000) +
                           field(4, properties + repeat(field(4, std::string("\x18\x01\x18\x01")), 1U << 15));
  expect_cheap("long text", field(3, std::string(kLength, 'x')), decode_manifest);
  const std::size_t peak = cost(most, [](auto span) { EXPECT_TRUE(decode_manifest(span).ok()); });
  EXPECT_LT(peak, kSmallChange) << "as much as is permitted in " << most.size();
}

TEST_F(Memory, of_crafted_metadata_of_version_1_is_bounded) {
  expect_cheap("empty BOs", field(3, filled(field(5, ""))), decode_file_1);
  const std::string small_bo = field(5, "\x08\x01\x10\x01");
  expect_cheap("as many BOs as are permitted", field(3, with_padding(repeat(small_bo, (1U << 16) + kLength / 32), 6)),
               decode_file_1);
  expect_cheap("chunks",
               field(3, field(5, field(6, std::string(kLength / 2, 'o')) + field(7, std::string(kLength / 2, 'h')))),
               decode_file_1);
  expect_cheap("chunks one by one",
               field(3, field(5, filled("\x31"
                                        "12345678") +
                                     filled("\x39"
                                            "12345678"))),
               decode_file_1);
  expect_cheap("empty nodes", filled(field(2, "")), decode_file_1);
  expect_cheap("kernel state", field(3, field(6, std::string(kLength, 'x'))), decode_file_1);
}

TEST_F(Memory, is_not_spent_on_text_or_unknown_fields_without_end) {
  const auto refused = [](const std::string& bytes) { return !decode_manifest(std::as_bytes(std::span(bytes))).ok(); };
  EXPECT_FALSE(refused(field(3, std::string(kMaxText, 'x'))));
  EXPECT_TRUE(refused(field(3, std::string(kMaxText + 1, 'x'))));
  EXPECT_FALSE(refused(repeat(field(15, ""), (1U << 19))));
  EXPECT_TRUE(refused(repeat(field(15, ""), (1U << 19) + 1)));
  // A field that we know, but of another type, is kept like an unknown one.
  EXPECT_TRUE(refused(repeat(field(1, ""), (1U << 19) + 1)));
}

TEST_F(Memory, of_a_crafted_index_is_bounded) {
  const auto text = [](const Index& index) {
    const auto bytes = encode_index(index);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Index bos;
  bos.bos.assign(kLength / 48, test_bo(4096));
  expect_cheap("BOs", text(bos), decode_index_of);
  Index chunks;
  chunks.chunks.assign(kLength / 24, {});
  expect_cheap("chunks", text(chunks), decode_index_of);
  expect_cheap("impossible counts", std::string(kLength, '\xff'), decode_index_of);
  // 2^60 BOs: a product of 64 bits says that they take no space.
  std::string wraps = text(chunks);
  wraps[15] = '\x10';
  expect_cheap("counts that wrap around", wraps, decode_index_of);
}

}  // namespace
}  // namespace plugin::image
