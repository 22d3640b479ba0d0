// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queue descriptors of SDMA queues. mqd.h names the sources.
#pragma once

#include "packets/mqd.h"

namespace packets::mqd {

struct SdmaMqdLayout {
  const char* struct_name;
  const char* prefix;  // how all members but the last two begin in the kernel
  std::size_t dwords;
  std::size_t rb_cntl = kNone;
  std::size_t rb_base = kNone;
  std::size_t rb_base_hi = kNone;
  std::size_t rb_rptr = kNone;
  std::size_t rb_rptr_hi = kNone;
  std::size_t rb_wptr = kNone;
  std::size_t rb_wptr_hi = kNone;
  std::size_t rb_wptr_poll_cntl = kNone;
  std::size_t rb_rptr_addr_lo = kNone;
  std::size_t rb_rptr_addr_hi = kNone;
  std::size_t ib_cntl = kNone;
  std::size_t ib_rptr = kNone;
  std::size_t ib_offset = kNone;
  std::size_t ib_base_lo = kNone;
  std::size_t ib_base_hi = kNone;
  std::size_t ib_size = kNone;
  std::size_t skip_cntl = kNone;
  std::size_t context_status = kNone;
  std::size_t doorbell = kNone;
  std::size_t doorbell_offset = kNone;
  std::size_t dummy_reg = kNone;
  std::size_t rb_wptr_poll_addr_lo = kNone;
  std::size_t rb_wptr_poll_addr_hi = kNone;
  std::size_t context_switch_status = kNone;
  std::size_t midcmd_cntl = kNone;
  std::size_t midcmd_data0 = kNone;
  std::size_t sdma_engine_id = kNone;
  std::size_t sdma_queue_id = kNone;

  Field rb_size{1, 5};      // in rb_cntl; the ring has 1 << RB_SIZE dwords
  Field skip_count{0, 14};  // in skip()

  [[nodiscard]] constexpr bool pointers_are_32_bits() const { return rb_rptr_hi == kNone; }
  // How many dwords COND_EXE still skips. SDMA 7 keeps this with the rest of a command that is done in part.
  [[nodiscard]] constexpr std::size_t skip() const { return skip_cntl != kNone ? skip_cntl : midcmd_data0; }
  // Why the queue stopped.
  [[nodiscard]] constexpr std::size_t exception() const {
    return context_status != kNone ? context_status : context_switch_status;
  }
  // Dword index in the doorbell aperture.
  [[nodiscard]] constexpr std::size_t doorbell_index() const {
    return doorbell_offset != kNone ? doorbell_offset : doorbell;
  }
  [[nodiscard]] constexpr Field doorbell_field() const {
    return doorbell_offset != kNone ? Field{2, 26} : Field{0, 21};
  }
};

// rb_cntl
inline constexpr Field kRbRptrWritebackEnable{12, 1};
inline constexpr Field kRbVmid{24, 4};
// ib_cntl
inline constexpr Field kSdmaIbEnable{0, 1};
// ib_offset, ib_rptr: dwords; ib_size
inline constexpr Field kSdmaIbOffset{2, 20};
inline constexpr Field kSdmaIbSize{0, 20};
// context_status
inline constexpr Field kSdmaException{4, 3};
// doorbell
inline constexpr Field kSdmaDoorbellEnable{28, 1};

inline constexpr SdmaMqdLayout kSdmaGfx7{
    .struct_name = "cik_sdma_rlc_registers",
    .prefix = "sdma_rlc_",
    .dwords = 128,
    .rb_cntl = 0,
    .rb_base = 1,
    .rb_base_hi = 2,
    .rb_rptr = 3,
    .rb_wptr = 4,
    .rb_wptr_poll_cntl = 5,
    .rb_rptr_addr_lo = 9,
    .rb_rptr_addr_hi = 8,
    .ib_cntl = 10,
    .ib_rptr = 11,
    .ib_offset = 12,
    .ib_base_lo = 13,
    .ib_base_hi = 14,
    .ib_size = 15,
    .skip_cntl = 16,
    .context_status = 17,
    .doorbell = 18,
    .rb_wptr_poll_addr_lo = 7,
    .rb_wptr_poll_addr_hi = 6,
    .sdma_engine_id = 126,
    .sdma_queue_id = 127,
    .rb_size = {1, 5},
};
inline constexpr SdmaMqdLayout kSdmaGfx8 = derive(kSdmaGfx7, [](SdmaMqdLayout& m) {
  m.struct_name = "vi_sdma_mqd";
  m.prefix = "sdmax_rlcx_";
});
inline constexpr SdmaMqdLayout kSdmaGfx9{
    .struct_name = "v9_sdma_mqd",
    .prefix = "sdmax_rlcx_",
    .dwords = 128,
    .rb_cntl = 0,
    .rb_base = 1,
    .rb_base_hi = 2,
    .rb_rptr = 3,
    .rb_rptr_hi = 4,
    .rb_wptr = 5,
    .rb_wptr_hi = 6,
    .rb_wptr_poll_cntl = 7,
    .rb_rptr_addr_lo = 9,
    .rb_rptr_addr_hi = 8,
    .ib_cntl = 10,
    .ib_rptr = 11,
    .ib_offset = 12,
    .ib_base_lo = 13,
    .ib_base_hi = 14,
    .ib_size = 15,
    .skip_cntl = 16,
    .context_status = 17,
    .doorbell = 18,
    .doorbell_offset = 22,
    .dummy_reg = 27,
    .rb_wptr_poll_addr_lo = 29,
    .rb_wptr_poll_addr_hi = 28,
    .midcmd_cntl = 41,
    .midcmd_data0 = 32,
    .sdma_engine_id = 126,
    .sdma_queue_id = 127,
    .rb_size = {1, 6},
};
inline constexpr SdmaMqdLayout kSdmaGfx10 = derive(kSdmaGfx9, [](SdmaMqdLayout& m) {
  m.struct_name = "v10_sdma_mqd";
  m.dwords = 130;
  m.sdma_engine_id = 128;
  m.sdma_queue_id = 129;
  m.rb_size = {1, 5};
  m.skip_count = {0, 20};
});
inline constexpr SdmaMqdLayout kSdmaGfx11{
    .struct_name = "v11_sdma_mqd",
    .prefix = "sdmax_rlcx_",
    .dwords = 128,
    .rb_cntl = 0,
    .rb_base = 1,
    .rb_base_hi = 2,
    .rb_rptr = 3,
    .rb_rptr_hi = 4,
    .rb_wptr = 5,
    .rb_wptr_hi = 6,
    .rb_rptr_addr_lo = 8,
    .rb_rptr_addr_hi = 7,
    .ib_cntl = 9,
    .ib_rptr = 10,
    .ib_offset = 11,
    .ib_base_lo = 12,
    .ib_base_hi = 13,
    .ib_size = 14,
    .skip_cntl = 15,
    .context_status = 16,
    .doorbell = 17,
    .doorbell_offset = 19,
    .dummy_reg = 25,
    .rb_wptr_poll_addr_lo = 27,
    .rb_wptr_poll_addr_hi = 26,
    .midcmd_cntl = 42,
    .midcmd_data0 = 31,
    .sdma_engine_id = 126,
    .sdma_queue_id = 127,
    .skip_count = {0, 20},
};
inline constexpr SdmaMqdLayout kSdmaGfx12{
    .struct_name = "v12_sdma_mqd",
    .prefix = "sdmax_rlcx_",
    .dwords = 128,
    .rb_cntl = 0,
    .rb_base = 1,
    .rb_base_hi = 2,
    .rb_rptr = 3,
    .rb_rptr_hi = 4,
    .rb_wptr = 5,
    .rb_wptr_hi = 6,
    .rb_rptr_addr_lo = 7,
    .rb_rptr_addr_hi = 8,
    .ib_cntl = 9,
    .ib_rptr = 10,
    .ib_offset = 11,
    .ib_base_lo = 12,
    .ib_base_hi = 13,
    .ib_size = 14,
    .doorbell = 15,
    .doorbell_offset = 17,
    .dummy_reg = 23,
    .rb_wptr_poll_addr_lo = 24,
    .rb_wptr_poll_addr_hi = 25,
    .context_switch_status = 30,
    .midcmd_cntl = 31,
    .midcmd_data0 = 32,
    .sdma_engine_id = 126,
    .sdma_queue_id = 127,
    .skip_count = {0, 20},
};

// `gfx_level` as in vasic_info: 7..12.
constexpr const SdmaMqdLayout& sdma_layout(unsigned gfx_level) {
  switch (gfx_level) {
    case 7:
      return kSdmaGfx7;
    case 8:
      return kSdmaGfx8;
    case 10:
      return kSdmaGfx10;
    case 11:
      return kSdmaGfx11;
    case 12:
      return kSdmaGfx12;
    default:
      return kSdmaGfx9;
  }
}

// Every member under its name in the kernel, like kComputeMembers.
struct SdmaMember {
  const char* name;
  std::size_t SdmaMqdLayout::*index;
};
inline constexpr SdmaMember kSdmaMembers[] = {
    {"rb_cntl", &SdmaMqdLayout::rb_cntl},
    {"rb_base", &SdmaMqdLayout::rb_base},
    {"rb_base_hi", &SdmaMqdLayout::rb_base_hi},
    {"rb_rptr", &SdmaMqdLayout::rb_rptr},
    {"rb_rptr_hi", &SdmaMqdLayout::rb_rptr_hi},
    {"rb_wptr", &SdmaMqdLayout::rb_wptr},
    {"rb_wptr_hi", &SdmaMqdLayout::rb_wptr_hi},
    {"rb_wptr_poll_cntl", &SdmaMqdLayout::rb_wptr_poll_cntl},
    {"rb_rptr_addr_lo", &SdmaMqdLayout::rb_rptr_addr_lo},
    {"rb_rptr_addr_hi", &SdmaMqdLayout::rb_rptr_addr_hi},
    {"ib_cntl", &SdmaMqdLayout::ib_cntl},
    {"ib_rptr", &SdmaMqdLayout::ib_rptr},
    {"ib_offset", &SdmaMqdLayout::ib_offset},
    {"ib_base_lo", &SdmaMqdLayout::ib_base_lo},
    {"ib_base_hi", &SdmaMqdLayout::ib_base_hi},
    {"ib_size", &SdmaMqdLayout::ib_size},
    {"skip_cntl", &SdmaMqdLayout::skip_cntl},
    {"context_status", &SdmaMqdLayout::context_status},
    {"doorbell", &SdmaMqdLayout::doorbell},
    {"doorbell_offset", &SdmaMqdLayout::doorbell_offset},
    {"dummy_reg", &SdmaMqdLayout::dummy_reg},
    {"rb_wptr_poll_addr_lo", &SdmaMqdLayout::rb_wptr_poll_addr_lo},
    {"rb_wptr_poll_addr_hi", &SdmaMqdLayout::rb_wptr_poll_addr_hi},
    {"context_switch_status", &SdmaMqdLayout::context_switch_status},
    {"midcmd_cntl", &SdmaMqdLayout::midcmd_cntl},
    {"midcmd_data0", &SdmaMqdLayout::midcmd_data0},
    {"sdma_engine_id", &SdmaMqdLayout::sdma_engine_id},
    {"sdma_queue_id", &SdmaMqdLayout::sdma_queue_id},
};

}  // namespace packets::mqd
