// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// PM4 type-3 packets of the compute micro engine (MEC) of GFX7 to GFX12. Encoders append to Words; decoders take a
// whole packet, header included, and return nothing if it is too short. Where generations differ both take the level,
// as vasic_info.gfx_level counts. Sources: amdgpu/{cikd,vid,soc15d,nvd}.h, amdkfd/kfd_pm4_opcodes.h,
// amdkfd/kfd_pm4_headers_ai.h, amdgpu/gfx_v{7,8,9,10,11,12}_0.c. Scheduler packets are in pm4_hws.h.
#pragma once

#include <optional>

#include "packets/compare.h"
#include "packets/words.h"

namespace packets::pm4 {

enum Opcode : std::uint8_t {
  kNop = 0x10,
  kSetBase = 0x11,
  kClearState = 0x12,
  kDispatchDirect = 0x15,
  kDispatchIndirect = 0x16,
  kAtomicMem = 0x1e,
  kCondExec = 0x22,
  kContextControl = 0x28,
  kWriteData = 0x37,
  kWaitRegMem = 0x3c,
  kIndirectBuffer = 0x3f,
  kCopyData = 0x40,
  kPfpSyncMe = 0x42,
  kSurfaceSync = 0x43,  // GFX7, GFX8
  kEventWrite = 0x46,
  kEventWriteEop = 0x47,  // GFX7, GFX8
  kReleaseMem = 0x49,
  kDmaData = 0x50,
  kAcquireMem = 0x58,
  kSetConfigReg = 0x68,
  kSetContextReg = 0x69,
  kSetShReg = 0x76,
  kSetUconfigReg = 0x79,
  kHdpFlush = 0x95,
  kInvalidateTlbs = 0x98,
  kSetResources = 0xa0,
  kMapProcess = 0xa1,
  kMapQueues = 0xa2,
  kUnmapQueues = 0xa3,
  kQueryStatus = 0xa4,
  kRunList = 0xa5,
};

// Header.
inline constexpr Field kHeaderType{30, 2};
inline constexpr Field kHeaderCount{16, 14};
inline constexpr Field kHeaderOpcode{8, 8};
inline constexpr Field kHeaderCompute{1, 1};
inline constexpr std::uint32_t kType2 = 2;
inline constexpr std::uint32_t kType3 = 3;
// A type-2 packet is one dword of filler, and so is a NOP of this count.
inline constexpr std::uint32_t kType2Filler = 0x80000000;
inline constexpr std::uint32_t kNopOneDwordCount = 0x3fff;

// `dwords` counts the header: 2..16385 (a type-3 packet has at least one body dword).
constexpr std::uint32_t header(Opcode opcode, std::size_t dwords) {
  return kHeaderType.put(kType3) | kHeaderCount.put(static_cast<std::uint32_t>(dwords - 2)) |
         kHeaderOpcode.put(opcode) | kHeaderCompute.put(1);
}
inline constexpr std::uint32_t kNopOneDword =
    kHeaderType.put(kType3) | kHeaderCount.put(kNopOneDwordCount) | kHeaderOpcode.put(kNop);

struct Header {
  std::uint32_t type = 0;
  std::uint8_t opcode = 0;
  std::size_t dwords = 0;  // length of the whole packet
};

// Every 32-bit value is a header; types other than 2 and 3 have no meaning on MEC.
constexpr Header decode_header(std::uint32_t word) {
  const std::uint32_t type = kHeaderType.get(word);
  const auto opcode = static_cast<std::uint8_t>(kHeaderOpcode.get(word));
  const std::uint32_t count = kHeaderCount.get(word);
  const bool one = type != kType3 || (opcode == kNop && count == kNopOneDwordCount);
  return {type, opcode, one ? std::size_t{1} : std::size_t{count} + 2};
}

// NOP of `dwords` in all (>= 1); its body is not looked at.
inline void nop(Words& out, std::size_t dwords = 1) {
  if (dwords == 1) {
    out.push_back(kNopOneDword);
    return;
  }
  out.push_back(header(kNop, dwords));
  out.insert(out.end(), dwords - 1, 0);
}

// --- WRITE_DATA: immediate dwords to memory or registers.
enum class WriteDst : std::uint8_t { kRegister = 0, kMemorySync = 1, kL2 = 2, kGds = 3, kMemory = 5 };
inline constexpr Field kWriteDataDst{8, 4};
inline constexpr Field kWriteDataOneAddr{16, 1};
inline constexpr Field kWriteDataConfirm{20, 1};
inline constexpr std::size_t kWriteDataMinDwords = 5;

inline void write_data(Words& out, std::uint64_t addr, WordView data, WriteDst dst = WriteDst::kMemory) {
  append(out, {header(kWriteData, 4 + data.size()),
               kWriteDataDst.put(static_cast<std::uint32_t>(dst)) | kWriteDataConfirm.put(1), lo32(addr), hi32(addr)});
  append(out, data);
}
inline void write_data(Words& out, std::uint64_t addr, std::uint32_t value) {
  write_data(out, addr, WordView(&value, 1));
}
struct WriteData {
  WriteDst dst = WriteDst::kMemory;
  bool one_addr = false;
  std::uint64_t addr = 0;  // bytes; of a register: its dword index
  WordView data;           // part of the packet
};
inline std::optional<WriteData> decode_write_data(WordView p) {
  if (p.size() < kWriteDataMinDwords) return std::nullopt;
  return WriteData{static_cast<WriteDst>(kWriteDataDst.get(p[1])), kWriteDataOneAddr.get(p[1]) != 0, join(p[2], p[3]),
                   p.subspan(4)};
}

// --- RELEASE_MEM: end-of-pipe write and interrupt. Before GFX9 the context id of the interrupt is the data.
enum class ReleaseData : std::uint8_t { kNone = 0, kLow32 = 1, k64 = 2, kGpuClock = 3, kSystemClock = 4 };
enum class ReleaseInt : std::uint8_t {
  kNone = 0,
  kOnly = 1,
  kAfterWrite = 2,
  kDataAfterConfirm = 3,
  kUnconditional = 4,
  kIfEqual32 = 5,  // if memory holds the data, from GFX9 on
  kIfEqual64 = 6,
};
inline constexpr ReleaseInt release_int_max(unsigned level) {
  return level < 9 ? ReleaseInt::kDataAfterConfirm : ReleaseInt::kIfEqual64;
}
inline constexpr std::uint32_t kEventCacheFlushAndInvTs = 0x14;
inline constexpr std::uint32_t kEventIndexEop = 5;
inline constexpr Field kReleaseEventType{0, 6};
inline constexpr Field kReleaseEventIndex{8, 4};
inline constexpr Field kReleaseDst{16, 2};
inline constexpr Field kReleaseInt{24, 3};
inline constexpr Field kReleaseData{29, 3};
constexpr std::size_t release_mem_dwords(unsigned level) { return level < 9 ? 7 : 8; }

struct ReleaseMem {
  std::uint32_t event_type = kEventCacheFlushAndInvTs;
  std::uint32_t event_index = kEventIndexEop;
  std::uint32_t dst_sel = 0;  // 0 memory controller, 1 L2
  ReleaseInt int_sel = ReleaseInt::kNone;
  ReleaseData data_sel = ReleaseData::kNone;
  std::uint64_t addr = 0;
  std::uint64_t data = 0;
  std::uint32_t int_ctxid = 0;
};
inline void release_mem(Words& out, const ReleaseMem& p, unsigned level = 9) {
  append(out, {header(kReleaseMem, release_mem_dwords(level)),
               kReleaseEventType.put(p.event_type) | kReleaseEventIndex.put(p.event_index),
               kReleaseDst.put(p.dst_sel) | kReleaseInt.put(static_cast<std::uint32_t>(p.int_sel)) |
                   kReleaseData.put(static_cast<std::uint32_t>(p.data_sel)),
               lo32(p.addr), hi32(p.addr), lo32(p.data), hi32(p.data)});
  if (level >= 9) out.push_back(p.int_ctxid);
}
inline std::optional<ReleaseMem> decode_release_mem(WordView p, unsigned level = 9) {
  if (p.size() < release_mem_dwords(level)) return std::nullopt;
  ReleaseMem r;
  r.event_type = kReleaseEventType.get(p[1]);
  r.event_index = kReleaseEventIndex.get(p[1]);
  r.dst_sel = kReleaseDst.get(p[2]);
  r.int_sel = static_cast<ReleaseInt>(kReleaseInt.get(p[2]));
  r.data_sel = static_cast<ReleaseData>(kReleaseData.get(p[2]));
  r.addr = join(p[3], p[4]);
  r.data = join(p[5], p[6]);
  r.int_ctxid = level < 9 ? p[5] : p[7];
  return r;
}

// --- EVENT_WRITE_EOP: RELEASE_MEM of GFX7 and GFX8, with a shorter address.
inline constexpr Field kEopAddrHi{0, 16};
inline constexpr Field kEopInt{24, 2};
inline constexpr std::size_t kEventWriteEopDwords = 6;
inline void event_write_eop(Words& out, const ReleaseMem& p) {
  append(out, {header(kEventWriteEop, kEventWriteEopDwords),
               kReleaseEventType.put(p.event_type) | kReleaseEventIndex.put(p.event_index), lo32(p.addr),
               kEopAddrHi.put(hi32(p.addr)) | kEopInt.put(static_cast<std::uint32_t>(p.int_sel)) |
                   kReleaseData.put(static_cast<std::uint32_t>(p.data_sel)),
               lo32(p.data), hi32(p.data)});
}
inline std::optional<ReleaseMem> decode_event_write_eop(WordView p) {
  if (p.size() < kEventWriteEopDwords) return std::nullopt;
  ReleaseMem r;
  r.event_type = kReleaseEventType.get(p[1]);
  r.event_index = kReleaseEventIndex.get(p[1]);
  r.int_sel = static_cast<ReleaseInt>(kEopInt.get(p[3]));
  r.data_sel = static_cast<ReleaseData>(kReleaseData.get(p[3]));
  r.addr = join(p[2], kEopAddrHi.get(p[3]));
  r.data = join(p[4], p[5]);
  r.int_ctxid = p[4];
  return r;
}

// --- COND_EXEC: if the dword at an address is 0, the next `dwords` dwords are skipped.
inline constexpr Field kCondExecCount{0, 14};
inline constexpr std::size_t kCondExecDwords = 5;
struct CondExec {
  std::uint64_t addr = 0;
  std::uint32_t dwords = 0;
};
inline void cond_exec(Words& out, std::uint64_t addr, std::uint32_t dwords) {
  append(out, {header(kCondExec, kCondExecDwords), lo32(addr), hi32(addr), 0, kCondExecCount.put(dwords)});
}
inline std::optional<CondExec> decode_cond_exec(WordView p) {
  if (p.size() < kCondExecDwords) return std::nullopt;
  return CondExec{join(p[1] & ~3u, p[2]), kCondExecCount.get(p[4])};
}

// --- WAIT_REG_MEM: stop until (value & mask) FUNCTION reference.
inline constexpr Field kWaitFunction{0, 3};
inline constexpr Field kWaitMemSpace{4, 2};
inline constexpr Field kWaitOperation{6, 2};
inline constexpr std::size_t kWaitRegMemDwords = 7;

struct WaitRegMem {
  Compare function = Compare::kEqual;
  bool memory = true;
  std::uint32_t operation = 0;  // 0 wait, 1 write-wait-write (registers)
  std::uint64_t addr = 0;       // bytes; of a register: its dword index
  std::uint32_t reference = 0;
  std::uint32_t mask = 0xffffffff;
  std::uint32_t interval = 4;
};
inline void wait_reg_mem(Words& out, const WaitRegMem& p) {
  append(out, {header(kWaitRegMem, kWaitRegMemDwords),
               kWaitFunction.put(static_cast<std::uint32_t>(p.function)) | kWaitMemSpace.put(p.memory ? 1 : 0) |
                   kWaitOperation.put(p.operation),
               lo32(p.addr), hi32(p.addr), p.reference, p.mask, p.interval});
}
inline std::optional<WaitRegMem> decode_wait_reg_mem(WordView p) {
  if (p.size() < kWaitRegMemDwords || kWaitFunction.get(p[1]) > kCompareMax) return std::nullopt;
  WaitRegMem w;
  w.function = static_cast<Compare>(kWaitFunction.get(p[1]));
  w.memory = kWaitMemSpace.get(p[1]) == 1;
  w.operation = kWaitOperation.get(p[1]);
  w.addr = join(p[2], p[3]);
  w.reference = p[4];
  w.mask = p[5];
  w.interval = p[6];
  return w;
}

// --- INDIRECT_BUFFER: run another buffer; with CHAIN, never come back to this one. `vmid` counts in kernel rings only.
inline constexpr Field kIbSize{0, 20};
inline constexpr Field kIbChain{20, 1};
inline constexpr Field kIbValid{23, 1};
inline constexpr Field kIbVmid{24, 4};
inline constexpr std::size_t kIndirectBufferDwords = 4;

struct IndirectBuffer {
  std::uint64_t addr = 0;
  std::uint32_t dwords = 0;
  bool chain = false;
  unsigned vmid = 0;
};
inline void indirect_buffer(Words& out, std::uint64_t addr, std::uint32_t dwords, bool chain = false,
                            unsigned vmid = 0) {
  append(out, {header(kIndirectBuffer, kIndirectBufferDwords), lo32(addr) & ~3u, hi32(addr),
               kIbSize.put(dwords) | kIbChain.put(chain ? 1 : 0) | kIbValid.put(1) | kIbVmid.put(vmid)});
}
inline std::optional<IndirectBuffer> decode_indirect_buffer(WordView p) {
  if (p.size() < kIndirectBufferDwords) return std::nullopt;
  return IndirectBuffer{join(p[1] & ~3u, p[2]), kIbSize.get(p[3]), kIbChain.get(p[3]) != 0, kIbVmid.get(p[3])};
}

// --- ACQUIRE_MEM: caches; nothing to decode. From GFX10 on GCR_CNTL says which.
constexpr std::size_t acquire_mem_dwords(unsigned level) { return level < 10 ? 7 : 8; }
inline constexpr std::uint32_t kCoherAll = 0x28c00000;  // SH_ICACHE | SH_KCACHE | TC | TCL1
inline void acquire_mem(Words& out, std::uint32_t control = kCoherAll, unsigned level = 9) {
  append(out, {header(kAcquireMem, acquire_mem_dwords(level)), level < 10 ? control : 0, 0xffffffff, 0xff, 0, 0, 4});
  if (level >= 10) out.push_back(control);
}

// --- COPY_DATA: one 32- or 64-bit word.
enum class CopySrc : std::uint8_t { kRegister = 0, kMemory = 1, kL2 = 2, kImmediate = 5, kGpuClock = 9 };
enum class CopyDst : std::uint8_t { kRegister = 0, kMemorySync = 1, kL2 = 2, kMemory = 5 };
inline constexpr Field kCopySrc{0, 4};
inline constexpr Field kCopyDst{8, 4};
inline constexpr Field kCopy64{16, 1};
inline constexpr Field kCopyConfirm{20, 1};
inline constexpr std::size_t kCopyDataDwords = 6;

struct CopyData {
  CopySrc src_sel = CopySrc::kMemory;
  CopyDst dst_sel = CopyDst::kMemory;
  bool wide = false;      // 64 bits
  std::uint64_t src = 0;  // address or immediate
  std::uint64_t dst = 0;
};
inline void copy_data(Words& out, const CopyData& p) {
  append(out,
         {header(kCopyData, kCopyDataDwords),
          kCopySrc.put(static_cast<std::uint32_t>(p.src_sel)) | kCopyDst.put(static_cast<std::uint32_t>(p.dst_sel)) |
              kCopy64.put(p.wide ? 1 : 0) | kCopyConfirm.put(1),
          lo32(p.src), hi32(p.src), lo32(p.dst), hi32(p.dst)});
}
inline std::optional<CopyData> decode_copy_data(WordView p) {
  if (p.size() < kCopyDataDwords) return std::nullopt;
  return CopyData{static_cast<CopySrc>(kCopySrc.get(p[1])), static_cast<CopyDst>(kCopyDst.get(p[1])),
                  kCopy64.get(p[1]) != 0, join(p[2], p[3]), join(p[4], p[5])};
}

// --- ATOMIC_MEM; operation codes in atomic.h.
inline constexpr Field kAtomicCode{0, 7};
inline constexpr Field kAtomicLoop{8, 4};
inline constexpr std::size_t kAtomicMemDwords = 9;

struct AtomicMem {
  std::uint32_t code = 0;
  bool loop = false;  // compare-swap: repeat until it succeeds
  std::uint64_t addr = 0;
  std::uint64_t src = 0;
  std::uint64_t compare = 0;
};
inline void atomic_mem(Words& out, const AtomicMem& p) {
  append(out, {header(kAtomicMem, kAtomicMemDwords), kAtomicCode.put(p.code) | kAtomicLoop.put(p.loop ? 1 : 0),
               lo32(p.addr), hi32(p.addr), lo32(p.src), hi32(p.src), lo32(p.compare), hi32(p.compare), 0});
}
inline std::optional<AtomicMem> decode_atomic_mem(WordView p) {
  if (p.size() < kAtomicMemDwords) return std::nullopt;
  return AtomicMem{kAtomicCode.get(p[1]), kAtomicLoop.get(p[1]) != 0, join(p[2], p[3]), join(p[4], p[5]),
                   join(p[6], p[7])};
}

// --- DMA_DATA: copy or fill bytes, memory to memory.
enum class DmaSrc : std::uint8_t { kMemory = 0, kGds = 1, kData = 2, kL2 = 3 };
inline constexpr Field kDmaDstSel{20, 2};
inline constexpr Field kDmaSrcSel{29, 2};
inline constexpr Field kDmaBytes{0, 26};
inline constexpr Field kDmaBytesBeforeGfx9{0, 21};
inline constexpr Field kDmaRegisterSpace{26, 2};  // SAS and DAS: source or destination is a register
inline constexpr std::size_t kDmaDataDwords = 7;

struct DmaData {
  DmaSrc src_sel = DmaSrc::kMemory;
  std::uint32_t dst_sel = 0;  // 0 memory, 1 GDS, 3 L2
  bool registers = false;
  std::uint64_t src = 0;  // address or data
  std::uint64_t dst = 0;
  std::uint32_t bytes = 0;
};
inline void dma_data(Words& out, const DmaData& p) {
  append(out, {header(kDmaData, kDmaDataDwords),
               kDmaSrcSel.put(static_cast<std::uint32_t>(p.src_sel)) | kDmaDstSel.put(p.dst_sel), lo32(p.src),
               hi32(p.src), lo32(p.dst), hi32(p.dst), kDmaBytes.put(p.bytes)});
}
inline std::optional<DmaData> decode_dma_data(WordView p, unsigned level = 9) {
  if (p.size() < kDmaDataDwords) return std::nullopt;
  return DmaData{static_cast<DmaSrc>(kDmaSrcSel.get(p[1])),
                 kDmaDstSel.get(p[1]),
                 kDmaRegisterSpace.get(p[6]) != 0,
                 join(p[2], p[3]),
                 join(p[4], p[5]),
                 (level < 9 ? kDmaBytesBeforeGfx9 : kDmaBytes).get(p[6])};
}

// --- EVENT_WRITE
inline void event_write(Words& out, std::uint32_t type, std::uint32_t index) {
  append(out, {header(kEventWrite, 2), kReleaseEventType.put(type) | kReleaseEventIndex.put(index)});
}

// --- SET_*_REG: consecutive registers of a window.
inline constexpr std::uint32_t kConfigRegBase = 0x2000;
inline constexpr std::uint32_t kConfigRegEnd = 0x2c00;
inline constexpr std::uint32_t kContextRegBase = 0xa000;
inline constexpr std::uint32_t kContextRegEnd = 0xa400;
inline constexpr std::uint32_t kShRegBase = 0x2c00;
inline constexpr std::uint32_t kShRegEnd = 0x3000;
inline constexpr std::uint32_t kUconfigRegBase = 0xc000;
inline constexpr std::uint32_t kUconfigRegEnd = 0x10000;
inline constexpr Field kSetRegOffset{0, 16};
inline constexpr std::size_t kSetRegMinDwords = 3;

// `reg` is an absolute dword index inside the window.
inline void set_sh_reg(Words& out, std::uint32_t reg, WordView values) {
  append(out, {header(kSetShReg, 2 + values.size()), kSetRegOffset.put(reg - kShRegBase)});
  append(out, values);
}
inline void set_uconfig_reg(Words& out, std::uint32_t reg, WordView values) {
  append(out, {header(kSetUconfigReg, 2 + values.size()), kSetRegOffset.put(reg - kUconfigRegBase)});
  append(out, values);
}
struct SetReg {
  std::uint32_t offset = 0;  // in the window
  WordView values;
};
inline std::optional<SetReg> decode_set_reg(WordView p) {
  if (p.size() < kSetRegMinDwords) return std::nullopt;
  return SetReg{kSetRegOffset.get(p[1]), p.subspan(2)};
}

// --- DISPATCH_DIRECT
inline void dispatch_direct(Words& out, std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t initiator) {
  append(out, {header(kDispatchDirect, 5), x, y, z, initiator});
}
// COMPUTE_DIM_* and COMPUTE_DISPATCH_INITIATOR.
struct DispatchDirect {
  std::array<std::uint32_t, 3> dims = {};
  std::uint32_t initiator = 0;
};
inline std::optional<DispatchDirect> decode_dispatch_direct(WordView p) {
  constexpr std::size_t kDwords = 5;
  if (p.size() != kDwords) return std::nullopt;
  return DispatchDirect{{p[1], p[2], p[3]}, p[4]};
}

// --- DISPATCH_INDIRECT, as the MEC takes it: three dimensions lie at `addr`
struct DispatchIndirect {
  std::uint64_t addr = 0;
  std::uint32_t initiator = 0;
};
inline std::optional<DispatchIndirect> decode_dispatch_indirect(WordView p) {
  constexpr std::size_t kDwords = 4;
  if (p.size() != kDwords) return std::nullopt;
  return DispatchIndirect{(std::uint64_t{p[2]} << 32 | p[1]) & ~std::uint64_t{3}, p[3]};
}

}  // namespace packets::pm4
