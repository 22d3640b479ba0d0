// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Interrupt ring entries. gfx9 and later: 32 bytes, fields as amdkfd/soc15_int.h reads them, identities from
// include/soc15_ih_clientid.h (soc15 and soc21) and include/ivsrcid/*. gfx7 and gfx8: 16 bytes, amdkfd/cik_int.h,
// amdgpu/cik_ih.c. Context ids: amdkfd/kfd_int_process_v9.c, _v10.c, _v11.c.
#pragma once

#include <array>
#include <cstdint>

#include "packets/words.h"

namespace packets::ih {

inline constexpr std::size_t kEntryDwords = 8;
inline constexpr std::size_t kEntryBytes = 32;

inline constexpr std::size_t kCikEntryDwords = 4;
inline constexpr std::size_t kCikEntryBytes = 16;

enum Client : std::uint8_t {
  kClientIh = 0x00,
  kClientVmc1 = 0x06,
  kClientSe0Sh = 0x0a,
  kClientVmc = 0x12,
  kClientGrbmCp = 0x14,
  kClientUtcl2 = 0x1b,
  // soc21 has one client, GFX, for what soc15 calls SQ (SE0SH), SDMA and UTCL2.
  kClientGfxSoc21 = 0x0a,
};

// SDMA engine n; beyond the first two they share numbers with blocks that such chips do not have.
inline constexpr std::array<std::uint8_t, 8> kSdmaClients = {0x08, 0x09, 0x01, 0x04, 0x05, 0x11, 0x13, 0x18};
// The fourth engine of gfx10.3 (SOC15_IH_CLIENTID_SDMA3_Sienna_Cichlid).
inline constexpr std::uint8_t kSdma3ClientGfx103 = 0x05;

enum Source : std::uint8_t {
  kSourceVmFault = 0,
  kSourceSdmaTrapSoc21 = 49,
  kSourceSdmaSrbmWriteSoc21 = 50,
  kSourcePageInvalidCik = 146,
  kSourceProtectionCik = 147,
  kSourceCpEndOfPipe = 181,
  kSourceCpBadOpcode = 183,
  kSourceCpPrivilegedRegister = 184,
  kSourceCpPrivilegedInstruction = 185,
  kSourceSdmaTrap = 224,
  kSourceSqInterrupt = 239,
  kSourceSdmaSrbmWrite = 247,
};

struct Entry {
  std::uint8_t client_id = 0;
  std::uint8_t source_id = 0;
  std::uint8_t ring_id = 0;
  std::uint8_t vmid = 0;
  std::uint8_t vmid_type = 0;   // 1: MMHUB
  std::uint64_t timestamp = 0;  // 48 bits
  std::uint16_t pasid = 0;
  std::uint8_t node_id = 0;
  std::array<std::uint32_t, 4> data{};
};

constexpr std::array<std::uint32_t, kEntryDwords> encode(const Entry& e) {
  const std::uint32_t dw0 = std::uint32_t{e.client_id} | std::uint32_t{e.source_id} << 8 |
                            std::uint32_t{e.ring_id} << 16 | (std::uint32_t{e.vmid} & 0xfu) << 24 |
                            (std::uint32_t{e.vmid_type} & 1u) << 31;
  return {dw0,
          lo32(e.timestamp),
          hi32(e.timestamp) & 0xffffu,
          std::uint32_t{e.pasid} | std::uint32_t{e.node_id} << 16,
          e.data[0],
          e.data[1],
          e.data[2],
          e.data[3]};
}

constexpr Entry decode(std::span<const std::uint32_t, kEntryDwords> w) {
  Entry e;
  e.client_id = static_cast<std::uint8_t>(w[0]);
  e.source_id = static_cast<std::uint8_t>(w[0] >> 8);
  e.ring_id = static_cast<std::uint8_t>(w[0] >> 16);
  e.vmid = static_cast<std::uint8_t>((w[0] >> 24) & 0xfu);
  e.vmid_type = static_cast<std::uint8_t>(w[0] >> 31);
  e.timestamp = join(w[1], w[2] & 0xffffu);
  e.pasid = static_cast<std::uint16_t>(w[3]);
  e.node_id = static_cast<std::uint8_t>(w[3] >> 16);
  e.data = {w[4], w[5], w[6], w[7]};
  return e;
}

// The 16-byte entry of gfx7 and gfx8; data[1] travels in the dword that hardware leaves 0 (vasic_abi.h: VASIC_IH_CIK).
constexpr std::array<std::uint32_t, kCikEntryDwords> encode_cik(const Entry& e) {
  return {e.source_id, e.data[0], std::uint32_t{e.ring_id} | std::uint32_t{e.vmid} << 8 | std::uint32_t{e.pasid} << 16,
          e.data[1]};
}

constexpr Entry decode_cik(std::span<const std::uint32_t, kCikEntryDwords> w) {
  Entry e;
  e.source_id = static_cast<std::uint8_t>(w[0]);
  e.ring_id = static_cast<std::uint8_t>(w[2]);
  e.vmid = static_cast<std::uint8_t>(w[2] >> 8);
  e.pasid = static_cast<std::uint16_t>(w[2] >> 16);
  e.data = {w[1], w[3], 0, 0};
  return e;
}

// A fault's data[0] is the page number's low half; data[1] (gmc_v9_0.c: gmc_v9_0_process_interrupt):
inline constexpr Field kFaultHighPage{0, 4};
inline constexpr Field kFaultWrite{5, 1};
inline constexpr Field kFaultRetry{7, 1};
// and its ring id (kfd_int_process_v9.c); the low bits name the client.
inline constexpr Field kFaultRingClient{0, 3};
inline constexpr Field kFaultRingNotPresent{3, 1};
inline constexpr Field kFaultRingNotReadable{4, 1};
inline constexpr Field kFaultRingNotWritable{5, 1};

// VM_CONTEXT1_PROTECTION_FAULT_STATUS (gmc_7_1_sh_mask.h); protections as gmc_v7_0.c reads them.
inline constexpr Field kCikFaultProtections{0, 8};
inline constexpr std::uint32_t kCikNotPresent = 0x04;
inline constexpr std::uint32_t kCikNotReadable = 0x08;
inline constexpr std::uint32_t kCikNotWritable = 0x10;
inline constexpr Field kCikFaultWrite{24, 1};
inline constexpr Field kCikFaultVmid{25, 4};

// cik_sdma.c: cik_sdma_process_trap_irq.
inline constexpr Field kCikSdmaInstance{0, 2};
inline constexpr Field kCikSdmaQueue{2, 2};
// sdma_v6_0.c: sdma_v6_0_process_trap_irq.
inline constexpr Field kSoc21SdmaQueue{0, 4};
inline constexpr Field kSoc21SdmaInstance{4, 4};

// GC 9.4.3: each AID with its two XCCs has four node ids (amdgpu_irq.h: AID0_NODEID, XCD0_NODEID ...).
constexpr std::uint8_t aid_node_id(unsigned aid) { return static_cast<std::uint8_t>(4 * aid); }
constexpr std::uint8_t xcc_node_id(unsigned xcc) { return static_cast<std::uint8_t>(4 * (xcc / 2) + 1 + xcc % 2); }

// CP_BAD_OPCODE's context id (kfd_int_process_v9.c: KFD_DEBUG_CP_BAD_OP_ECODE), codes of enum
// kfd_dbg_trap_exception_code.
inline constexpr Field kBadOpcodeDoorbell{0, 10};
inline constexpr Field kBadOpcodeEcode{10, 16};
inline constexpr std::uint32_t kEcodeDispatchDimensions = 16;
inline constexpr std::uint32_t kEcodeDispatchGroupMemory = 17;
inline constexpr std::uint32_t kEcodeDispatchCode = 18;
inline constexpr std::uint32_t kEcodePacketReserved = 19;
inline constexpr std::uint32_t kEcodePacketUnsupported = 20;
inline constexpr std::uint32_t kEcodeDispatchGroupSize = 21;
inline constexpr std::uint32_t kEcodeDispatchRegisters = 22;
inline constexpr std::uint32_t kEcodeVendorUnsupported = 23;

constexpr std::uint32_t bad_opcode_context(std::uint32_t doorbell, std::uint32_t ecode) {
  return kBadOpcodeDoorbell.put(doorbell) | kBadOpcodeEcode.put(ecode);
}

// What a trap handler sends of a wave that cannot continue: the doorbell within the process, and a bit for each code of
// enum kfd_dbg_trap_exception_code, from bit 0 for code 1 (kfd_int_process_v9.c: KFD_DEBUG_TRAP_CODE).
inline constexpr Field kTrapDoorbell{0, 10};
inline constexpr Field kTrapCodes{10, 8};
inline constexpr std::uint32_t kTrapWaveAbort = 1u << 0;
inline constexpr std::uint32_t kTrapWaveTrap = 1u << 1;
inline constexpr std::uint32_t kTrapIllegalInstruction = 1u << 3;
inline constexpr std::uint32_t kTrapApertureViolation = 1u << 5;

constexpr std::uint32_t trap_message(std::uint32_t doorbell, std::uint32_t codes) {
  return kTrapDoorbell.put(doorbell) | kTrapCodes.put(codes);
}

// SQ_INTERRUPT_MSG: context ids 0 and 1 by encoding (kfd_int_process_v9.c, _v10.c, _v11.c).
inline constexpr std::uint32_t kSqEncodingWave = 1;
inline constexpr std::uint32_t kSqEncodingError = 2;
// gfx7 to gfx9, context id 0 (gfx7 and gfx8 have no other); a wave's 24 bits of data are in three pieces on gfx9.
inline constexpr Field kSqEncodingGfx9{26, 2};
inline constexpr Field kSqDataCik{0, 8};
inline constexpr Field kSqDataLowGfx9{0, 12};
inline constexpr Field kSqDataMiddleGfx9{28, 4};
inline constexpr Field kSqDataHighGfx9{0, 8};  // context id 1
inline constexpr Field kSqPrivilegedGfx9{13, 1};
inline constexpr Field kSqErrorTypeGfx9{4, 4};  // context id 1
// gfx10 and later: encoding in context id 1, the rest in context id 0.
inline constexpr Field kSqEncodingGfx10{6, 2};
inline constexpr Field kSqDataGfx10{0, 23};
inline constexpr Field kSqErrorTypeGfx10{19, 4};
inline constexpr Field kSqPrivilegedGfx10{24, 1};
inline constexpr Field kSqDataGfx11{0, 24};
inline constexpr Field kSqPrivilegedGfx11{26, 1};
inline constexpr Field kSqErrorTypeGfx11{21, 4};

// EOP ring id: where the queue sits (amdgpu/gfx_v9_0.c: gfx_v9_0_eop_irq).
constexpr std::uint8_t eop_ring_id(unsigned me, unsigned pipe, unsigned queue) {
  return static_cast<std::uint8_t>((pipe & 3u) | (me & 3u) << 2 | (queue & 7u) << 4);
}

}  // namespace packets::ih
