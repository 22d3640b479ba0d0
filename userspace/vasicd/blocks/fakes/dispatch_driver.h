// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A fake driver with kernels in machine code, and packets that dispatch them. For tests only.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "packets/compute.h"
#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd {

// gfx9 code. Arguments: s[0:1] point to them; s2 is the group's x.
namespace kernels {
// out[s2 * size + v0] = s2 * size + v0. Arguments: out, size.
//   s_load_dwordx2 s[4:5], s[0:1], 0x0; s_load_dword s6, s[0:1], 0x8; s_waitcnt lgkmcnt(0); s_mul_i32 s6, s6, s2;
//   v_add_u32 v1, s6, v0; v_lshlrev_b32 v2, 2, v1; global_store_dword v2, v1, s[4:5]; s_endpgm
inline const packets::Words kIds = {0xc0060100, 0x00000000, 0xc0020180, 0x00000008, 0xbf8cc07f, 0x92060206,
                                    0x68020006, 0x24040282, 0xdc708000, 0x00040102, 0xbf810000};
// Waits until *gate is not 0, then out[v0] += 1000 * s2 + v0. Arguments: out, gate.
//   s_load_dwordx4 s[4:7], s[0:1], 0x0; v_mov_b32 v2, 0; s_waitcnt lgkmcnt(0); loop: s_load_dword s8, s[6:7], 0x0 glc;
//   s_waitcnt lgkmcnt(0); s_cmp_eq_u32 s8, 0; s_cbranch_scc1 loop; s_mulk_i32 s2, 1000; v_add_u32 v1, s2, v0;
//   v_mov_b32 v3, 1; v_lshlrev_b32 v2, 2, v0; global_atomic_add v2, v1, s[4:5]; s_endpgm
inline const packets::Words kGate = {0xc00a0100, 0x00000000, 0x7e040280, 0xbf8cc07f, 0xc0030203, 0x00000000,
                                     0xbf8cc07f, 0xbf068008, 0xbf85fffb, 0xb78203e8, 0x68020002, 0x7e060281,
                                     0x24040082, 0xdd088000, 0x00040102, 0xbf810000};
// Groups of 256: out[256 * s2 + v0] = 255 - v0, by way of LDS and a barrier. Arguments: out.
//   s_load_dwordx2 s[4:5], s[0:1], 0x0; v_lshlrev_b32 v1, 2, v0; s_mov_b32 m0, -1; ds_write_b32 v1, v0;
//   s_waitcnt lgkmcnt(0); s_barrier; v_sub_u32 v2, 0x3fc, v1; ds_read_b32 v3, v2; s_waitcnt lgkmcnt(0);
//   s_lshl_b32 s2, s2, 10; s_add_u32 s4, s4, s2; s_addc_u32 s5, s5, 0; global_store_dword v1, v3, s[4:5]; s_endpgm
inline const packets::Words kMirror = {0xc0060100, 0x00000000, 0x24020082, 0xbefc00c1, 0xd81a0000,
                                       0x00000001, 0xbf8cc07f, 0xbf8a0000, 0x6a0402ff, 0x000003fc,
                                       0xd86c0000, 0x03000002, 0xbf8cc07f, 0x8e028a02, 0x80040204,
                                       0x82058005, 0xdc708000, 0x00040301, 0xbf810000};
// Three times, item 0 of each group adds 1 to out[0] and waits for those of all groups; then out[16 + 3 * s2 + round]
// is out[0]. Arguments: out, groups - 1.
//   s_load_dwordx4 s[4:7], s[0:1], 0x0; v_mov_b32 v1, 0; v_mov_b32 v2, 1; s_movk_i32 s8, 3; s_movk_i32 s13, 64;
//   s_mul_i32 s12, s2, 12; s_waitcnt lgkmcnt(0); v_mov_b32 v4, s6; loop: v_cmp_eq_u32 vcc, 0, v0;
//   s_and_saveexec_b64 s[10:11], vcc; s_cbranch_execz skip; global_atomic_add v1, v2, s[4:5]; s_waitcnt vmcnt(0);
//   s_mov_b32 m0, 0; ds_gws_barrier v4 gds; s_waitcnt lgkmcnt(0); skip: s_mov_b64 exec, s[10:11]; s_barrier;
//   global_load_dword v3, v1, s[4:5] glc; s_waitcnt vmcnt(0); s_add_u32 s9, s12, s13; v_mov_b32 v5, s9;
//   global_store_dword v5, v3, s[4:5]; s_add_u32 s13, s13, 4; s_sub_u32 s8, s8, 1; s_cmp_lg_u32 s8, 0;
//   s_cbranch_scc1 loop; s_endpgm
inline const packets::Words kMeet = {0xc00a0100, 0x00000000, 0x7e020280, 0x7e040281, 0xb0080003, 0xb00d0040, 0x920c8c02,
                                     0xbf8cc07f, 0x7e080206, 0x7d940080, 0xbe8a206a, 0xbf880007, 0xdd088000, 0x00040201,
                                     0xbf8c0f70, 0xbefc0080, 0xd93b0000, 0x00000004, 0xbf8cc07f, 0xbefe010a, 0xbf8a0000,
                                     0xdc518000, 0x03040001, 0xbf8c0f70, 0x80090d0c, 0x7e0a0209, 0xdc708000, 0x00040305,
                                     0x800d840d, 0x80888108, 0xbf078008, 0xbf85ffe9, 0xbf810000};
// s_sendmsg sendmsg(MSG_INTERRUPT) with m0 = 7; s_endpgm
inline const packets::Words kMessage = {0xbefc0087, 0xbf900001, 0xbf810000};
inline const packets::Words kTrap = {0xbf920002, 0xbf810000};        // s_trap 2
inline const packets::Words kIllegal = {0xbf800000, 0xd7ff0000, 0};  // s_nop 0; no instruction
inline const packets::Words kForever = {0xbf8e0001, 0xbf82fffe};     // s_sleep 1; s_branch back
}  // namespace kernels

class DispatchDriver : public FakeDriver {
 public:
  static constexpr std::uint32_t kStackBytes = 0x2000;
  static constexpr std::uint32_t kAreaBytes = 0x200000;

  struct Shape {
    std::uint32_t groups = 1;
    std::uint16_t size = 64;
    std::uint32_t lds = 0;
    std::uint32_t scratch = 0;  // bytes of a work-item
  };

  explicit DispatchDriver(unsigned gfx_level = 9) : FakeDriver(gfx_level) {
    info.cu_count = 4;
    load_hiq();
  }

  // Like make_aql() and make_compute(), with an area to save waves to; an AQL queue gets the object around the read
  // index that ROCr allocates.
  GuestQueue make_wave_queue(std::uint32_t doorbell, bool aql) {
    GuestQueue q = aql ? make_aql(doorbell) : make_compute(doorbell);
    const GpuAddr place = alloc(0x1000 + kStackBytes);  // the stack is one page behind the MQD
    for (GpuAddr i = 0; i < 0x1000; i += 4) memory.put(place + i, memory.get<std::uint32_t>(q.mqd + i));
    q.mqd = place;
    const auto& at = compute_layout();
    save_area = alloc(kAreaBytes);
    mqd_word(q, at.cp_hqd_ctx_save_base_addr_lo, packets::lo32(save_area));
    mqd_word(q, at.cp_hqd_ctx_save_base_addr_hi, packets::hi32(save_area));
    mqd_word(q, at.cp_hqd_ctx_save_size, kAreaBytes);
    mqd_word(q, at.cp_hqd_cntl_stack_size, kStackBytes);
    mqd_word(q, at.cp_hqd_cntl_stack_offset, kStackBytes);
    mqd_word(q, at.cp_hqd_wg_state_offset, kStackBytes);
    if (aql) {
      const GpuAddr object = alloc(4096);
      q.rptr_word = object + packets::aql::kQueueBaseOffsetValue;
      mqd_word(q, at.cp_hqd_pq_rptr_report_addr_lo, packets::lo32(q.rptr_word));
      memory.put(q.rptr_word + packets::aql::kQueueBaseOffset, packets::aql::kQueueBaseOffsetValue);
      inactive = alloc(4096);
      memory.put(q.rptr_word + packets::aql::kQueueInactiveSignal, inactive);
    }
    return q;
  }

  // A kernel object for code that wants its arguments in s[0:1] and the group's x in s2.
  GpuAddr make_kernel(packets::WordView code, bool scratch = false) {
    namespace c = packets::compute;
    const GpuAddr place = alloc(4096);
    c::KernelDescriptor kernel;
    kernel.code_entry_byte_offset = 256;
    kernel.pgm_rsrc1 = c::kRsrc1Vgprs.put(3) | c::kRsrc1Sgprs.put(1) | c::kRsrc1FloatMode.put(0xc0);
    kernel.pgm_rsrc2 = c::kRsrc2UserSgpr.put(2) | c::kRsrc2TgidXEn.put(1) | c::kRsrc2ScratchEn.put(scratch ? 1 : 0);
    kernel.code_properties = static_cast<std::uint16_t>(c::kSgprKernargSegmentPtr.put(1));
    memory.put(place, kernel);
    for (std::size_t i = 0; i < code.size(); ++i) memory.put(place + 256 + i * 4, code[i]);
    return place;
  }
  GpuAddr make_args(std::initializer_list<std::uint64_t> args) {
    const GpuAddr place = alloc(4096);
    GpuAddr at = place;
    for (const std::uint64_t arg : args) {
      memory.put(at, arg);
      at += sizeof(arg);
    }
    return place;
  }
  GpuAddr make_signal(std::int64_t value) {
    const GpuAddr signal = alloc(4096);
    packets::aql::Signal s;
    s.kind = packets::aql::kSignalKindUser;
    s.value = value;
    memory.put(signal, s);
    return signal;
  }
  [[nodiscard]] std::int64_t value_of(GpuAddr signal) const {
    return memory.get<std::int64_t>(signal + offsetof(packets::aql::Signal, value));
  }

  static packets::aql::KernelDispatch packet(const Shape& shape, GpuAddr kernel, GpuAddr args, GpuAddr signal) {
    packets::aql::KernelDispatch p;
    p.header = packets::aql::header(packets::aql::kKernelDispatch, true);
    p.setup = 1;
    p.workgroup_size[0] = shape.size;
    p.workgroup_size[1] = p.workgroup_size[2] = 1;
    p.grid_size[0] = shape.groups * shape.size;
    p.grid_size[1] = p.grid_size[2] = 1;
    p.group_segment_size = shape.lds;
    p.private_segment_size = shape.scratch;
    p.kernel_object = kernel;
    p.kernarg_address = args;
    p.completion_signal = signal;
    return p;
  }
  // PM4 packets that set registers and begin the dispatch that packet() describes.
  static packets::Words commands(const Shape& shape, GpuAddr code, GpuAddr args) {
    namespace c = packets::compute;
    namespace pm4 = packets::pm4;
    packets::Words w;
    pm4::set_sh_reg(w, c::kNumThreadX, packets::Words{shape.size, 1, 1});
    pm4::set_sh_reg(w, c::kPgmLo, packets::Words{packets::lo32(code >> 8), packets::hi32(code >> 8)});
    pm4::set_sh_reg(w, c::kPgmRsrc1,
                    packets::Words{c::kRsrc1Vgprs.put(3) | c::kRsrc1Sgprs.put(1) | c::kRsrc1FloatMode.put(0xc0),
                                   c::kRsrc2UserSgpr.put(2) | c::kRsrc2TgidXEn.put(1) |
                                       c::kRsrc2LdsSize.put(shape.lds / c::kLdsGranuleBytes)});
    pm4::set_sh_reg(w, c::kUserData0, packets::Words{packets::lo32(args), packets::hi32(args)});
    pm4::dispatch_direct(w, shape.groups, 1, 1, c::kComputeShaderEn.put(1) | c::kForceStartAt000.put(1));
    return w;
  }

  void preempt_and_remap(GuestQueue& q) {
    unmap_all();
    map({&q});
  }
  void move_to_another_device(GuestQueue& q, unsigned cus = 4) {
    unmap_all();
    info.cu_count = cus;
    replace_device();
    load_hiq();
    map({&q});
  }

  GpuAddr save_area = 0;
  GpuAddr inactive = 0;  // the signal of the last queue
};

}  // namespace vasicd
