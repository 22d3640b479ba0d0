// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Golden bytes of SDMA packets.
#include "packets/sdma.h"

#include <gtest/gtest.h>

#include "packets/atomic.h"

namespace packets {
namespace {

constexpr std::uint64_t kA = 0x0000'1111'2222'3340;
constexpr std::uint64_t kB = 0x0000'4444'5555'6660;

TEST(SdmaV4, nop_count_excludes_the_header) {
  Words w;
  sdma::nop(w, 3);
  EXPECT_EQ(w, (Words{0x00020000, 0, 0}));
}

TEST(SdmaV4, copy_linear_counts_bytes_minus_one) {
  Words w;
  sdma::copy_linear(w, kB, kA, 0x1000);
  EXPECT_EQ(w, (Words{1, 0xfff, 0, 0x22223340, 0x1111, 0x55556660, 0x4444}));
  EXPECT_EQ(sdma::decode_copy(w)->bytes, 0x1000u);
}

TEST(SdmaV4, sub_window_and_broadcast_copies_are_refused) {
  Words w;
  sdma::copy_linear(w, kB, kA, 4);
  w[0] = sdma::header(sdma::kCopy, sdma::kCopyLinearSubWindow);
  EXPECT_FALSE(sdma::decode_copy(w).has_value());
  w[0] = sdma::header(sdma::kCopy) | sdma::kCopyBroadcast.put(1);
  EXPECT_FALSE(sdma::decode_copy(w).has_value());
}

TEST(SdmaV4, long_copies_are_split_at_four_mebibytes) {
  Words w;
  sdma::copy_linear_split(w, kB, kA, (8u << 20) + 1);
  ASSERT_EQ(w.size(), 3 * sdma::kCopyLinearDwords);
  EXPECT_EQ(w[1], 0x3fffffu);
  EXPECT_EQ(w[15], 0u);
  EXPECT_EQ(w[17], 0x22a23340u);
}

TEST(SdmaV4, write_linear) {
  Words w;
  sdma::write_linear(w, kA, Words{7, 8});
  EXPECT_EQ(w, (Words{2, 0x22223340, 0x1111, 1, 7, 8}));
  EXPECT_EQ(sdma::decode_write(w)->dwords, 2u);
}

TEST(SdmaV4, indirect_names_its_vmid) {
  Words w;
  sdma::indirect(w, kA, 0x80, 9);
  EXPECT_EQ(w, (Words{0x00090004, 0x22223340, 0x1111, 0x80, 0, 0}));
  EXPECT_EQ(sdma::decode_indirect(w)->vmid, 9u);
}

TEST(SdmaV4, fence_and_trap) {
  Words w;
  sdma::fence(w, kA, 5);
  sdma::trap(w, 0xffffffff);
  EXPECT_EQ(w, (Words{5, 0x22223340, 0x1111, 5, 6, 0x0fffffff}));
}

TEST(SdmaV5, fence_passes_the_caches) {
  Words w;
  sdma::fence(w, kA, 5, sdma::kFormat5);
  EXPECT_EQ(w, (Words{0x00030005, 0x22223340, 0x1111, 5}));
  EXPECT_EQ(sdma::decode_fence(w)->data, 5u);
}

TEST(SdmaV4, poll_regmem) {
  Words w;
  sdma::poll_regmem(w, {.function = Compare::kEqual, .addr = kA, .reference = 1, .mask = 0xff});
  EXPECT_EQ(w, (Words{0xb0000008, 0x22223340, 0x1111, 1, 0xff, 0x0fff0004}));
  EXPECT_TRUE(sdma::decode_poll_regmem(w)->memory);
  EXPECT_FALSE(sdma::decode_poll_regmem(w)->hdp_flush);
}

TEST(SdmaV4, cond_exe_and_pre_exe) {
  Words w;
  sdma::cond_exe(w, kA, 1, 12);
  sdma::pre_exe(w, 1, 4);
  EXPECT_EQ(w, (Words{9, 0x22223340, 0x1111, 1, 12, 0x0001000f, 4}));
}

TEST(SdmaV4, atomic) {
  Words w;
  sdma::atomic(w, {.code = atomic_code64(AtomicOp::kAdd), .addr = kA, .src = 1, .compare = 2});
  EXPECT_EQ(w, (Words{0x5e00000a, 0x22223340, 0x1111, 1, 0, 2, 0, 0}));
  EXPECT_EQ(sdma::decode_atomic(w)->code, 0x2fu);
}

TEST(SdmaV4, const_fill_counts_by_element) {
  Words w;
  sdma::const_fill(w, kA, 0xdeadbeef, 0x100);
  EXPECT_EQ(w, (Words{0x8000000b, 0x22223340, 0x1111, 0xdeadbeef, 0xff}));
  EXPECT_EQ(sdma::decode_const_fill(w)->bytes, 0x100u);
  w[4] = 0xfc;
  EXPECT_EQ(sdma::decode_const_fill(w)->bytes, 0x100u);
  w[0] = sdma::header(sdma::kConstFill);
  EXPECT_EQ(sdma::decode_const_fill(w)->bytes, 0xfdu);
}

TEST(SdmaV4, pte_generation_and_copy) {
  Words w;
  sdma::pte_gen(w, {.dst = kA, .mask = 0x77, .init = 0x1000, .increment = 0x1000, .count = 512});
  EXPECT_EQ(w, (Words{12, 0x22223340, 0x1111, 0x77, 0, 0x1000, 0, 0x1000, 0, 511}));
  Words c;
  sdma::pte_copy(c, {.src = kA, .dst = kB, .mask = ~std::uint64_t{0}, .count = 2});
  EXPECT_EQ(c, (Words{0x10c, 0x22223340, 0x1111, 0x55556660, 0x4444, 0xffffffff, 0xffffffff, 1}));
}

TEST(SdmaV4, timestamp_and_srbm_write) {
  Words w;
  sdma::timestamp_get_global(w, kA);
  sdma::srbm_write(w, 0x1010, 5);
  EXPECT_EQ(w, (Words{0x20d, 0x22223340, 0x1111, 0xf000000e, 0x1010, 5}));
  EXPECT_EQ(sdma::decode_srbm_write(WordView(w).subspan(3))->reg, 0x1010u);
}

TEST(SdmaV7, srbm_write_names_a_register_by_its_byte) {
  Words w;
  sdma::srbm_write(w, 0x1010, 5, sdma::kFormat7);
  EXPECT_EQ(w, (Words{0xe, 0x4040, 5}));
  EXPECT_EQ(sdma::decode_srbm_write(w, sdma::kFormat7)->reg, 0x1010u);
}

TEST(SdmaV4, short_packets_decode_to_nothing) {
  const Words w(1, 0);
  EXPECT_FALSE(sdma::decode_copy(w).has_value());
  EXPECT_FALSE(sdma::decode_write(w).has_value());
  EXPECT_FALSE(sdma::decode_indirect(w).has_value());
  EXPECT_FALSE(sdma::decode_fence(w).has_value());
  EXPECT_FALSE(sdma::decode_trap(w).has_value());
  EXPECT_FALSE(sdma::decode_poll_regmem(w).has_value());
  EXPECT_FALSE(sdma::decode_atomic(w).has_value());
  EXPECT_FALSE(sdma::decode_pte_gen(w).has_value());
}

TEST(SdmaFormats, are_those_of_the_gpus_family) {
  EXPECT_EQ(&sdma::format_of_family(120), &sdma::kFormat2);  // Hawaii
  EXPECT_EQ(&sdma::format_of_family(130), &sdma::kFormat3);  // Fiji
  EXPECT_EQ(&sdma::format_of_family(141), &sdma::kFormat4);  // Vega
  EXPECT_EQ(&sdma::format_of_family(143), &sdma::kFormat5);  // Navi
  EXPECT_EQ(&sdma::format_of_family(149), &sdma::kFormat5);  // an APU with gfx10 that came after gfx11
  EXPECT_EQ(&sdma::format_of_family(151), &sdma::kFormat5);  // another
  EXPECT_EQ(&sdma::format_of_family(148), &sdma::kFormat6);  // an APU with gfx11
  EXPECT_EQ(&sdma::format_of_family(152), &sdma::kFormat7);  // gfx12
}

TEST(SdmaFormats, counts_survive_encoding_in_every_generation) {
  for (unsigned i = 0; i < 6; ++i) {
    const sdma::Format& f = sdma::format(i);
    Words w;
    sdma::copy_linear(w, 1, 2, 0x1234, f);
    ASSERT_EQ(w.size(), f.copy_linear_dwords);
    EXPECT_EQ(sdma::decode_copy(w, f)->bytes, 0x1234u);
    EXPECT_EQ(w[1], f.generation >= 4 ? 0x1233u : 0x1234u);
    w.clear();
    sdma::write_linear(w, 1, Words{1, 2, 3}, f);
    EXPECT_EQ(sdma::decode_write(w, f)->dwords, 3u);
    w.clear();
    sdma::const_fill(w, 1, 2, 0x100, sdma::FillSize::kDword, f);
    EXPECT_EQ(sdma::decode_const_fill(w, f)->bytes, 0x100u);
    w.clear();
    sdma::pte_gen(w, {.count = 17}, f);
    EXPECT_EQ(sdma::decode_pte_gen(w, f)->count, 17u);
    w.clear();
    sdma::copy_linear_split(w, 0, 0, 3 * sdma::kCopyMaxBytes, f);
    std::uint64_t bytes = 0;
    for (packets::WordView rest(w); !rest.empty(); rest = rest.subspan(f.copy_linear_dwords)) {
      bytes += sdma::decode_copy(rest.first(f.copy_linear_dwords), f)->bytes;
    }
    EXPECT_EQ(bytes, 3 * sdma::kCopyMaxBytes);
  }
}

TEST(SdmaFormats, a_box_survives_encoding) {
  for (unsigned i = 0; i < 6; ++i) {
    const sdma::Format& f = sdma::format(i);
    sdma::CopyWindow c;
    c.element_log2 = 3;
    c.src = {.addr = 0x1'0000'1000, .x = 1, .y = 2, .z = 3, .pitch = 100, .slice_pitch = 5000};
    c.dst = {.addr = 0x2'0000'1000, .x = 4, .y = 5, .z = 6, .pitch = 200, .slice_pitch = 6000};
    c.width = 7;
    c.height = 8;
    c.depth = 9;
    Words w;
    sdma::copy_window(w, c, f);
    const auto d = sdma::decode_copy_window(w, f);
    ASSERT_TRUE(d.has_value());
    EXPECT_EQ(d->src.addr, c.src.addr);
    EXPECT_EQ(d->dst.pitch, 200u);
    EXPECT_EQ(d->dst.slice_pitch, 6000u);
    EXPECT_EQ(d->src.z, 3u);
    EXPECT_EQ(d->width, 7u);
    EXPECT_EQ(d->height, 8u);
    EXPECT_EQ(d->depth, 9u);
  }
}

}  // namespace
}  // namespace packets
