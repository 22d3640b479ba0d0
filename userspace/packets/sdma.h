// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Packets of the SDMA engines of every generation. Layouts: amdgpu/cikd.h and cik_sdma.c (2), tonga_sdma_pkt_open.h
// (3), vega10_sdma_pkt_open.h (4), navi10_sdma_pkt_open.h (5), sdma_v6_0_0_pkt_open.h (6, and 7 with what sdma_v7_0.c
// does differently). Encoders append to Words; decoders take a whole packet and return nothing if it is too short or
// has bits this project refuses. Both take the format: which packets exist, how counts are written.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>

#include "packets/compare.h"
#include "packets/words.h"

namespace packets::sdma {

enum Op : std::uint8_t {
  kNop = 0,
  kCopy = 1,
  kWrite = 2,
  kIndirect = 4,
  kFence = 5,
  kTrap = 6,
  kSemaphore = 7,
  kPollRegmem = 8,
  kCondExe = 9,
  kAtomic = 10,
  kConstFill = 11,
  kPtePde = 12,
  kTimestamp = 13,
  kSrbmWrite = 14,
  kPreExe = 15,
  kDummyTrap4 = 16,  // SDMA 4; a GPUVM_INV from SDMA 5 on
  kGpuvmInv = 16,
  kGcrReq = 17,
  kDummyTrap = 32,  // from SDMA 5 on
};
enum SubOp : std::uint8_t {
  kCopyLinear = 0,
  kCopyLinearSubWindow = 4,
  kCopyLinearBc = 16,  // COPY LINEAR as SDMA 4 had it
  kWriteLinear = 0,
  kFencePlain = 0,
  kMemIncr = 1,  // of FENCE
  kPtePdeGen = 0,
  kPtePdeCopy = 1,
  kTimestampSet = 0,
  kTimestampGet = 1,
  kTimestampGetGlobal = 2,
  kPollRegmemPlain = 0,
  kPollVmInvalidation = 4,
};

// What differs. `generation` is the major version of the engine: enum vasic_sdma_format counts from 2.
struct Format {
  unsigned generation;
  bool counts_minus_one;  // counts of bytes, dwords and page table entries
  std::size_t copy_linear_dwords;
  std::size_t indirect_dwords;
  Field byte_count;  // in copies and fills
  Field write_count;
  Field window_z{0, 11};
  Field window_pitch{13, 19};

  // A count as the field holds it, and back.
  [[nodiscard]] constexpr std::uint32_t put(std::uint32_t count) const { return counts_minus_one ? count - 1 : count; }
  [[nodiscard]] constexpr std::uint32_t get(std::uint32_t field) const { return counts_minus_one ? field + 1 : field; }
};
inline constexpr Format kFormat2{2, false, 7, 4, {0, 22}, {0, 22}, {0, 11}, {16, 14}};
inline constexpr Format kFormat3{3, false, 7, 6, {0, 22}, {0, 22}, {0, 11}, {16, 14}};
// Engines from 4.4 and 5.2 on count 30 bits; the bits were reserved, and 0, before.
inline constexpr Format kFormat4{4, true, 7, 6, {0, 30}, {0, 20}};
inline constexpr Format kFormat5{5, true, 7, 6, {0, 30}, {0, 20}, {0, 13}};
inline constexpr Format kFormat6{6, true, 7, 6, {0, 30}, {0, 20}, {0, 13}};
inline constexpr Format kFormat7{7, true, 8, 6, {0, 30}, {0, 20}, {0, 13}};

// `sdma_format` as in vasic_info.
constexpr const Format& format(unsigned sdma_format) {
  constexpr const Format* kFormats[] = {&kFormat2, &kFormat3, &kFormat4, &kFormat5, &kFormat6, &kFormat7};
  return sdma_format < std::size(kFormats) ? *kFormats[sdma_format] : kFormat4;
}

// By the GPU's family (AMDGPU_FAMILY_* of amdgpu_drm.h, as the driver reports it). Those of APUs with gfx11 are not
// consecutive; engines of newer families are taken for those of gfx12.
constexpr const Format& format_of_family(std::uint32_t family) {
  constexpr std::uint32_t kKaveri = 125, kCarrizo = 135, kRaven = 142;
  constexpr std::uint32_t kGc1100 = 145, kGc1101 = 148, kGc1150 = 150, kGc1200 = 152;
  if (family <= kKaveri) return kFormat2;
  if (family <= kCarrizo) return kFormat3;
  if (family <= kRaven) return kFormat4;
  if (family == kGc1100 || family == kGc1101 || family == kGc1150) return kFormat6;
  return family >= kGc1200 ? kFormat7 : kFormat5;
}

inline constexpr Field kHeaderOp{0, 8};
inline constexpr Field kHeaderSubOp{8, 8};
constexpr std::uint32_t header(Op op, SubOp sub = kCopyLinear) { return kHeaderOp.put(op) | kHeaderSubOp.put(sub); }
constexpr Op op_of(std::uint32_t word) { return static_cast<Op>(kHeaderOp.get(word)); }
constexpr std::uint32_t sub_op_of(std::uint32_t word) { return kHeaderSubOp.get(word); }

// --- NOP: `count` dwords follow the header and are skipped.
inline constexpr Field kNopCount{16, 14};
inline void nop(Words& out, std::size_t dwords = 1) {
  out.push_back(header(kNop) | kNopCount.put(static_cast<std::uint32_t>(dwords - 1)));
  out.insert(out.end(), dwords - 1, 0);
}

// --- COPY LINEAR; with BROADCAST a second destination follows the first.
inline constexpr Field kCopyTmz{18, 1};
inline constexpr Field kCopyBroadcast{27, 1};
// The most bytes that one packet of every generation can copy or fill.
inline constexpr std::uint64_t kCopyMaxBytes = std::uint64_t{1} << 22;
inline constexpr std::size_t kCopyLinearDwords = 7;
inline constexpr std::size_t kCopyBroadcastDwords = 9;
struct CopyLinear {
  std::uint64_t src = 0;
  std::uint64_t dst = 0;
  std::optional<std::uint64_t> second_dst;
  std::uint32_t bytes = 0;
};
inline void copy_linear(Words& out, std::uint64_t dst, std::uint64_t src, std::uint32_t bytes,
                        const Format& f = kFormat4) {
  append(out,
         {header(kCopy, kCopyLinear), f.byte_count.put(f.put(bytes)), 0, lo32(src), hi32(src), lo32(dst), hi32(dst)});
  out.insert(out.end(), f.copy_linear_dwords - kCopyLinearDwords, 0);
}
// As many packets as `bytes` needs.
inline void copy_linear_split(Words& out, std::uint64_t dst, std::uint64_t src, std::uint64_t bytes,
                              const Format& f = kFormat4) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t limit = f.counts_minus_one ? kCopyMaxBytes : kCopyMaxBytes - kPage;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t n = std::min(bytes - done, limit);
    copy_linear(out, dst + done, src + done, static_cast<std::uint32_t>(n), f);
    done += n;
  }
}
inline void copy_broadcast(Words& out, std::uint64_t dst, std::uint64_t second_dst, std::uint64_t src,
                           std::uint32_t bytes, const Format& f = kFormat4) {
  append(out, {header(kCopy, kCopyLinear) | kCopyBroadcast.put(1), f.byte_count.put(f.put(bytes)), 0, lo32(src),
               hi32(src), lo32(dst), hi32(dst), lo32(second_dst), hi32(second_dst)});
}
// Tiled and encrypted copies decode to nothing.
inline std::optional<CopyLinear> decode_copy(WordView p, const Format& f = kFormat4) {
  const bool linear = !p.empty() && (sub_op_of(p[0]) == kCopyLinear || sub_op_of(p[0]) == kCopyLinearBc);
  if (!linear || p.size() < kCopyLinearDwords || kCopyTmz.get(p[0]) != 0) return std::nullopt;
  CopyLinear c{join(p[3], p[4]), join(p[5], p[6]), std::nullopt, f.get(f.byte_count.get(p[1]))};
  if (kCopyBroadcast.get(p[0]) != 0) {
    if (p.size() < kCopyBroadcastDwords) return std::nullopt;
    c.second_dst = join(p[7], p[8]);
  }
  return c;
}

// --- COPY LINEAR SUB WINDOW: a box out of one image into another. Pitches are stored minus one, in elements; sizes
// too, but for SDMA 2. Not known for SDMA 7.
inline constexpr Field kWindowElement{29, 3};  // log2 of its bytes
inline constexpr Field kWindowX{0, 14};
inline constexpr Field kWindowY{16, 14};
inline constexpr Field kWindowSlicePitch{0, 28};
inline constexpr std::size_t kCopyWindowDwords = 13;
struct WindowSide {
  std::uint64_t addr = 0;
  std::uint32_t x = 0, y = 0, z = 0;  // elements
  std::uint32_t pitch = 0;
  std::uint32_t slice_pitch = 0;
};
struct CopyWindow {
  unsigned element_log2 = 0;
  WindowSide src, dst;
  std::uint32_t width = 0, height = 0, depth = 0;
};
inline void copy_window(Words& out, const CopyWindow& c, const Format& f = kFormat4) {
  const std::uint32_t one = f.generation == 2 ? 0 : 1;
  out.push_back(header(kCopy, kCopyLinearSubWindow) | kWindowElement.put(c.element_log2));
  for (const WindowSide* side : {&c.src, &c.dst}) {
    append(out, {lo32(side->addr), hi32(side->addr), kWindowX.put(side->x) | kWindowY.put(side->y),
                 f.window_z.put(side->z) | f.window_pitch.put(side->pitch - 1),
                 kWindowSlicePitch.put(side->slice_pitch - 1)});
  }
  append(out, {kWindowX.put(c.width - one) | kWindowY.put(c.height - one), f.window_z.put(c.depth - one)});
}
inline std::optional<CopyWindow> decode_copy_window(WordView p, const Format& f = kFormat4) {
  constexpr std::uint32_t kMaxElementLog2 = 4;
  if (p.size() < kCopyWindowDwords || sub_op_of(p[0]) != kCopyLinearSubWindow || kCopyTmz.get(p[0]) != 0 ||
      kWindowElement.get(p[0]) > kMaxElementLog2) {
    return std::nullopt;
  }
  const auto side = [&](std::size_t at) {
    return WindowSide{
        join(p[at], p[at + 1]),    kWindowX.get(p[at + 2]),           kWindowY.get(p[at + 2]),
        f.window_z.get(p[at + 3]), f.window_pitch.get(p[at + 3]) + 1, kWindowSlicePitch.get(p[at + 4]) + 1};
  };
  const std::uint32_t one = f.generation == 2 ? 0 : 1;
  return CopyWindow{kWindowElement.get(p[0]),   side(1), side(6), kWindowX.get(p[11]) + one, kWindowY.get(p[11]) + one,
                    f.window_z.get(p[12]) + one};
}

// --- WRITE LINEAR: header here, data behind it.
inline constexpr std::size_t kWriteHeadDwords = 4;
struct WriteLinear {
  std::uint64_t dst = 0;
  std::uint32_t dwords = 0;
};
inline void write_linear(Words& out, std::uint64_t dst, WordView data, const Format& f = kFormat4) {
  append(out, {header(kWrite, kWriteLinear), lo32(dst), hi32(dst),
               f.write_count.put(f.put(static_cast<std::uint32_t>(data.size())))});
  append(out, data);
}
inline std::optional<WriteLinear> decode_write(WordView p, const Format& f = kFormat4) {
  if (p.size() < kWriteHeadDwords || sub_op_of(p[0]) != kWriteLinear) return std::nullopt;
  return WriteLinear{join(p[1], p[2]), f.get(f.write_count.get(p[3]))};
}

// --- INDIRECT: `vmid` counts in kernel rings only.
inline constexpr Field kIndirectVmid{16, 4};
inline constexpr Field kIndirectSize{0, 20};
inline constexpr std::uint32_t kIbAlign = 32;
inline constexpr std::size_t kIndirectMinDwords = 4;
struct Indirect {
  unsigned vmid = 0;
  std::uint64_t addr = 0;
  std::uint32_t dwords = 0;
};
inline void indirect(Words& out, std::uint64_t addr, std::uint32_t dwords, unsigned vmid = 0,
                     const Format& f = kFormat4) {
  append(out, {header(kIndirect) | kIndirectVmid.put(vmid), lo32(addr) & ~(kIbAlign - 1), hi32(addr),
               kIndirectSize.put(dwords)});
  out.insert(out.end(), f.indirect_dwords - kIndirectMinDwords, 0);
}
inline std::optional<Indirect> decode_indirect(WordView p) {
  if (p.size() < kIndirectMinDwords) return std::nullopt;
  return Indirect{kIndirectVmid.get(p[0]), join(p[1] & ~(kIbAlign - 1), p[2]), kIndirectSize.get(p[3])};
}

// --- FENCE; from SDMA 5 on its word passes the caches, or the CPU might not see it; decoders do not look at these
// bits. MEM_INCR, its sub-op of SDMA 6, adds one to a dword.
inline constexpr std::size_t kMemIncrDwords = 3;
inline void mem_incr(Words& out, std::uint64_t addr) {
  append(out, {header(kFence, kMemIncr), lo32(addr), hi32(addr)});
}
inline std::optional<std::uint64_t> decode_mem_incr(WordView p) {
  if (p.size() < kMemIncrDwords) return std::nullopt;
  return join(p[1], p[2]);
}
inline constexpr Field kFenceMtype{16, 3};
inline constexpr std::uint32_t kMtypeUncached = 3;
inline constexpr std::size_t kFenceDwords = 4;
struct Fence {
  std::uint64_t addr = 0;
  std::uint32_t data = 0;
};
inline void fence(Words& out, std::uint64_t addr, std::uint32_t data, const Format& f = kFormat4) {
  const std::uint32_t mtype = f.generation < 5 ? 0 : kMtypeUncached;
  append(out, {header(kFence) | kFenceMtype.put(mtype), lo32(addr), hi32(addr), data});
}
inline std::optional<Fence> decode_fence(WordView p) {
  if (p.size() < kFenceDwords) return std::nullopt;
  return Fence{join(p[1], p[2]), p[3]};
}

// --- TRAP. On the kernel rings of SDMA 2 it is the header alone, its context is 0.
inline constexpr Field kTrapContext{0, 28};
inline constexpr std::size_t kTrapDwords = 2;
inline constexpr std::size_t kTrapShortDwords = 1;
inline void trap(Words& out, std::uint32_t context) { append(out, {header(kTrap), kTrapContext.put(context)}); }
inline std::optional<std::uint32_t> decode_trap(WordView p) {
  if (p.size() < kTrapDwords) return std::nullopt;
  return kTrapContext.get(p[1]);
}

// --- POLL_REGMEM: wait until (value & mask) FUNCTION reference.
inline constexpr Field kPollHdpFlush{26, 1};
inline constexpr Field kPollFunction{28, 3};
inline constexpr Field kPollMemory{31, 1};
inline constexpr std::size_t kPollDwords = 6;
struct Poll {
  bool hdp_flush = false;
  bool memory = true;
  Compare function = Compare::kEqual;
  std::uint64_t addr = 0;  // bytes; of a register: its byte offset
  std::uint32_t reference = 0;
  std::uint32_t mask = 0xffffffff;
};
inline void poll_regmem(Words& out, const Poll& p) {
  append(out, {header(kPollRegmem) | kPollHdpFlush.put(p.hdp_flush ? 1 : 0) |
                   kPollFunction.put(static_cast<std::uint32_t>(p.function)) | kPollMemory.put(p.memory ? 1 : 0),
               lo32(p.addr), hi32(p.addr), p.reference, p.mask, 0x0fff0004});
}
inline std::optional<Poll> decode_poll_regmem(WordView p) {
  if (p.size() < kPollDwords || sub_op_of(p[0]) != kPollRegmemPlain || kPollFunction.get(p[0]) > kCompareMax) {
    return std::nullopt;
  }
  return Poll{kPollHdpFlush.get(p[0]) != 0,
              kPollMemory.get(p[0]) != 0,
              static_cast<Compare>(kPollFunction.get(p[0])),
              join(p[1], p[2]),
              p[3],
              p[4]};
}

inline constexpr std::size_t kVmInvalidationDwords = 4;

// --- COND_EXE: unless *addr == reference, the next `dwords` dwords are skipped. PRE_EXE: run them only on a device.
inline constexpr Field kExecCount{0, 14};
inline constexpr Field kPreExeDevices{16, 8};
inline constexpr std::size_t kCondExeDwords = 5;
inline constexpr std::size_t kPreExeDwords = 2;
struct CondExe {
  std::uint64_t addr = 0;
  std::uint32_t reference = 0;
  std::uint32_t dwords = 0;
};
inline void cond_exe(Words& out, std::uint64_t addr, std::uint32_t reference, std::uint32_t dwords) {
  append(out, {header(kCondExe), lo32(addr), hi32(addr), reference, kExecCount.put(dwords)});
}
inline std::optional<CondExe> decode_cond_exe(WordView p) {
  if (p.size() < kCondExeDwords) return std::nullopt;
  return CondExe{join(p[1], p[2]), p[3], kExecCount.get(p[4])};
}
struct PreExe {
  std::uint32_t devices = 0;  // bit mask
  std::uint32_t dwords = 0;
};
inline void pre_exe(Words& out, std::uint32_t devices, std::uint32_t dwords) {
  append(out, {header(kPreExe) | kPreExeDevices.put(devices), kExecCount.put(dwords)});
}
inline std::optional<PreExe> decode_pre_exe(WordView p) {
  if (p.size() < kPreExeDwords) return std::nullopt;
  return PreExe{kPreExeDevices.get(p[0]), kExecCount.get(p[1])};
}

// --- ATOMIC; operation codes in atomic.h.
inline constexpr Field kAtomicLoop{16, 1};
inline constexpr Field kAtomicCode{25, 7};
inline constexpr std::size_t kAtomicDwords = 8;
struct Atomic {
  std::uint32_t code = 0;
  bool loop = false;
  std::uint64_t addr = 0;
  std::uint64_t src = 0;
  std::uint64_t compare = 0;
};
inline void atomic(Words& out, const Atomic& p) {
  append(out, {header(kAtomic) | kAtomicLoop.put(p.loop ? 1 : 0) | kAtomicCode.put(p.code), lo32(p.addr), hi32(p.addr),
               lo32(p.src), hi32(p.src), lo32(p.compare), hi32(p.compare), 0});
}
inline std::optional<Atomic> decode_atomic(WordView p) {
  if (p.size() < kAtomicDwords) return std::nullopt;
  return Atomic{kAtomicCode.get(p[0]), kAtomicLoop.get(p[0]) != 0, join(p[1], p[2]), join(p[3], p[4]),
                join(p[5], p[6])};
}

// --- CONST_FILL: a byte, half word or dword, repeated. In dwords the low two bits of COUNT are ignored.
enum class FillSize : std::uint8_t { kByte = 0, kHalf = 1, kDword = 2 };
inline constexpr Field kFillSize{30, 2};
inline constexpr std::size_t kConstFillDwords = 5;
struct ConstFill {
  FillSize size = FillSize::kDword;
  std::uint64_t dst = 0;
  std::uint32_t data = 0;
  std::uint32_t bytes = 0;
};
inline void const_fill(Words& out, std::uint64_t dst, std::uint32_t data, std::uint32_t bytes,
                       FillSize size = FillSize::kDword, const Format& f = kFormat4) {
  append(out, {header(kConstFill) | kFillSize.put(static_cast<std::uint32_t>(size)), lo32(dst), hi32(dst), data,
               f.byte_count.put(f.put(bytes))});
}
inline std::optional<ConstFill> decode_const_fill(WordView p, const Format& f = kFormat4) {
  if (p.size() < kConstFillDwords || sub_op_of(p[0]) != 0 || kFillSize.get(p[0]) > 2) return std::nullopt;
  const auto size = static_cast<FillSize>(kFillSize.get(p[0]));
  const std::uint32_t unit = size == FillSize::kDword ? 4 : size == FillSize::kHalf ? 2 : 1;
  const std::uint32_t count = f.byte_count.get(p[4]) & ~(unit - 1);
  return ConstFill{size, join(p[1], p[2]), p[3], f.counts_minus_one ? count + unit : count};
}

// --- PTEPDE: generate `count` 64-bit entries (init + i * increment) | flags; from SDMA 4 on, or copy them.
inline constexpr Field kPteCount{0, 19};
inline constexpr std::size_t kPteGenDwords = 10;
inline constexpr std::size_t kPteCopyDwords = 8;
struct PteGen {
  std::uint64_t dst = 0;
  std::uint64_t mask = 0;  // or-ed into each entry
  std::uint64_t init = 0;
  std::uint64_t increment = 0;
  std::uint32_t count = 0;
};
inline void pte_gen(Words& out, const PteGen& p, const Format& f = kFormat4) {
  append(out, {header(kPtePde, kPtePdeGen), lo32(p.dst), hi32(p.dst), lo32(p.mask), hi32(p.mask), lo32(p.init),
               hi32(p.init), lo32(p.increment), hi32(p.increment), kPteCount.put(f.put(p.count))});
}
inline std::optional<PteGen> decode_pte_gen(WordView p, const Format& f = kFormat4) {
  if (p.size() < kPteGenDwords) return std::nullopt;
  return PteGen{join(p[1], p[2]), join(p[3], p[4]), join(p[5], p[6]), join(p[7], p[8]), f.get(kPteCount.get(p[9]))};
}
struct PteCopy {
  std::uint64_t src = 0;
  std::uint64_t dst = 0;
  std::uint64_t mask = 0;  // and-ed with each entry
  std::uint32_t count = 0;
};
inline void pte_copy(Words& out, const PteCopy& p) {
  append(out, {header(kPtePde, kPtePdeCopy), lo32(p.src), hi32(p.src), lo32(p.dst), hi32(p.dst), lo32(p.mask),
               hi32(p.mask), kPteCount.put(p.count - 1)});
}
inline std::optional<PteCopy> decode_pte_copy(WordView p) {
  if (p.size() < kPteCopyDwords) return std::nullopt;
  return PteCopy{join(p[1], p[2]), join(p[3], p[4]), join(p[5], p[6]), kPteCount.get(p[7]) + 1};
}

// --- TIMESTAMP
inline constexpr std::size_t kTimestampDwords = 3;
inline void timestamp_get_global(Words& out, std::uint64_t addr) {
  append(out, {header(kTimestamp, kTimestampGetGlobal), lo32(addr) & ~7u, hi32(addr)});
}
// SET: the value to start from; GET, GET_GLOBAL: where to store 64 bits.
inline std::optional<std::uint64_t> decode_timestamp(WordView p) {
  if (p.size() < kTimestampDwords || sub_op_of(p[0]) > kTimestampGetGlobal) return std::nullopt;
  return join(sub_op_of(p[0]) == kTimestampSet ? p[1] : p[1] & ~7u, p[2]);
}

// --- GCR_REQ, GPUVM_INV of SDMA 5 and later: caches and translations; nothing to decode.
inline constexpr std::size_t kGcrReqDwords = 5;
inline constexpr std::size_t kGpuvmInvDwords = 4;

// --- SRBM_WRITE: a register by dword index; from generation 7 on (sdma_v7_0.c: sdma_v7_0_ring_emit_wreg) by the
// offset of its byte, and without byte enables.
inline constexpr Field kSrbmByteEnable{28, 4};
inline constexpr Field kSrbmAddr{0, 18};
inline constexpr std::size_t kSrbmWriteDwords = 3;
struct SrbmWrite {
  std::uint32_t reg = 0;
  std::uint32_t value = 0;
};
inline void srbm_write(Words& out, std::uint32_t reg, std::uint32_t value, const Format& format = kFormat4) {
  if (format.generation >= 7) return append(out, {header(kSrbmWrite), reg * 4, value});
  append(out, {header(kSrbmWrite) | kSrbmByteEnable.put(0xf), kSrbmAddr.put(reg), value});
}
inline std::optional<SrbmWrite> decode_srbm_write(WordView p, const Format& format = kFormat4) {
  if (p.size() < kSrbmWriteDwords) return std::nullopt;
  if (format.generation >= 7) return SrbmWrite{p[1] / 4, p[2]};
  return SrbmWrite{kSrbmAddr.get(p[1]), p[2]};
}

}  // namespace packets::sdma
