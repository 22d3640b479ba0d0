// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// AQL packets and signals: 64-byte records of the HSA Platform System Architecture Specification (2.9 "AQL packet
// format"), and the object behind a signal handle (amd_hsa_signal.h: amd_signal_t). No queue logic here.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "packets/pm4.h"
#include "packets/words.h"

namespace packets::aql {

inline constexpr std::size_t kPacketBytes = 64;
inline constexpr std::size_t kPacketDwords = 16;

enum Type : std::uint8_t {
  kVendorSpecific = 0,
  kInvalid = 1,
  kKernelDispatch = 2,
  kBarrierAnd = 3,
  kAgentDispatch = 4,
  kBarrierOr = 5,
};

// 16-bit header; the format of a vendor's packet follows it.
inline constexpr Field kHeaderType{0, 8};
inline constexpr Field kHeaderBarrier{8, 1};
inline constexpr Field kHeaderAcquire{9, 2};
inline constexpr Field kHeaderRelease{11, 2};
inline constexpr Field kHeaderVendorFormat{16, 16};
inline constexpr std::uint32_t kScopeNone = 0;
inline constexpr std::uint32_t kScopeAgent = 1;
inline constexpr std::uint32_t kScopeSystem = 2;

constexpr std::uint16_t header(Type type, bool barrier = false, std::uint32_t acquire = kScopeSystem,
                               std::uint32_t release = kScopeSystem) {
  return static_cast<std::uint16_t>(kHeaderType.put(type) | kHeaderBarrier.put(barrier ? 1 : 0) |
                                    kHeaderAcquire.put(acquire) | kHeaderRelease.put(release));
}

struct KernelDispatch {
  std::uint16_t header = 0;
  std::uint16_t setup = 0;
  std::uint16_t workgroup_size[3] = {};
  std::uint16_t reserved0 = 0;
  std::uint32_t grid_size[3] = {};
  std::uint32_t private_segment_size = 0;
  std::uint32_t group_segment_size = 0;
  std::uint64_t kernel_object = 0;
  std::uint64_t kernarg_address = 0;
  std::uint64_t reserved2 = 0;
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(KernelDispatch) == kPacketBytes);
static_assert(offsetof(KernelDispatch, kernel_object) == 32);
static_assert(offsetof(KernelDispatch, completion_signal) == 56);

struct AgentDispatch {
  std::uint16_t header = 0;
  std::uint16_t type = 0;
  std::uint32_t reserved0 = 0;
  std::uint64_t return_address = 0;
  std::uint64_t arg[4] = {};
  std::uint64_t reserved2 = 0;
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(AgentDispatch) == kPacketBytes);

// Barrier-AND and barrier-OR.
inline constexpr std::size_t kBarrierSignals = 5;
struct Barrier {
  std::uint16_t header = 0;
  std::uint16_t reserved0 = 0;
  std::uint32_t reserved1 = 0;
  std::uint64_t dep_signal[kBarrierSignals] = {};
  std::uint64_t reserved2 = 0;
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(Barrier) == kPacketBytes);
static_assert(offsetof(Barrier, dep_signal) == 8);

// AMD's vendor packet 1 on gfx9: a PM4 INDIRECT_BUFFER inside an AQL slot. Dword 0 is header | format << 16, dwords
// 1..4 the PM4 packet, dword 5 the count of dwords that remain of the slot.
inline constexpr std::uint16_t kVendorPm4Ib = 1;
inline constexpr std::uint32_t kVendorRemainingDwords = 10;
struct VendorPm4Ib {
  std::uint16_t header = 0;
  std::uint16_t format = 0;
  std::uint32_t ib[4] = {};
  std::uint32_t remaining = 0;
  std::uint32_t reserved[8] = {};
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(VendorPm4Ib) == kPacketBytes);
static_assert(offsetof(VendorPm4Ib, ib) == 4);
static_assert(offsetof(VendorPm4Ib, remaining) == 20);
static_assert(offsetof(VendorPm4Ib, completion_signal) == 56);

// AMD's vendor packet 2 (hsa_ext_amd.h: hsa_amd_barrier_value_packet_t): waits until the value of a signal, of which
// only the bits of the mask count, compares with `value` as the condition says. No signal is nothing to wait for.
inline constexpr std::uint16_t kVendorBarrierValue = 2;
// hsa_signal_condition_t; values are signed.
enum class Condition : std::uint32_t { kEqual = 0, kNotEqual = 1, kLess = 2, kGreaterEqual = 3 };
struct BarrierValue {
  std::uint16_t header = 0;
  std::uint16_t format = kVendorBarrierValue;
  std::uint32_t reserved0 = 0;
  std::uint64_t signal = 0;
  std::int64_t value = 0;
  std::int64_t mask = 0;
  Condition condition = Condition::kEqual;
  std::uint32_t reserved1 = 0;
  std::uint64_t reserved2[2] = {};
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(BarrierValue) == kPacketBytes);
static_assert(offsetof(BarrierValue, format) == 2);
static_assert(offsetof(BarrierValue, signal) == 8);
static_assert(offsetof(BarrierValue, value) == 16);
static_assert(offsetof(BarrierValue, mask) == 24);
static_assert(offsetof(BarrierValue, condition) == 32);
static_assert(offsetof(BarrierValue, completion_signal) == 56);

// A packet as it lies in the ring.
using Slot = std::array<std::uint32_t, kPacketDwords>;

template <typename Packet>
Slot to_slot(const Packet& packet) {
  static_assert(sizeof(Packet) == sizeof(Slot));
  return std::bit_cast<Slot>(packet);
}
template <typename Packet>
Packet from_slot(const Slot& slot) {
  static_assert(sizeof(Packet) == sizeof(Slot));
  return std::bit_cast<Packet>(slot);
}

inline VendorPm4Ib vendor_pm4_ib(std::uint64_t ib_addr, std::uint32_t ib_dwords, std::uint64_t completion_signal = 0) {
  VendorPm4Ib packet;
  packet.header = header(kVendorSpecific, true);
  packet.format = kVendorPm4Ib;
  Words ib;
  pm4::indirect_buffer(ib, ib_addr, ib_dwords);
  for (std::size_t i = 0; i < 4; ++i) packet.ib[i] = ib[i];
  packet.remaining = kVendorRemainingDwords;
  packet.completion_signal = completion_signal;
  return packet;
}

// What a signal handle points to.
struct Signal {
  std::int64_t kind = 0;
  std::int64_t value = 0;
  std::uint64_t event_mailbox_ptr = 0;
  std::uint32_t event_id = 0;
  std::uint32_t reserved1 = 0;
  std::uint64_t start_ts = 0;
  std::uint64_t end_ts = 0;
  std::uint64_t queue_ptr = 0;
  std::uint32_t reserved3[2] = {};
};
static_assert(sizeof(Signal) == 64);
static_assert(offsetof(Signal, value) == 8);
static_assert(offsetof(Signal, event_mailbox_ptr) == 16);
static_assert(offsetof(Signal, event_id) == 24);
static_assert(offsetof(Signal, start_ts) == 32);
static_assert(offsetof(Signal, end_ts) == 40);
static_assert(offsetof(Signal, queue_ptr) == 48);
inline constexpr std::int64_t kSignalKindUser = 1;

// The object that a runtime may keep around the read index of a queue (amd_hsa_queue.h: amd_queue_t): offsets of its
// members from the read index. The first member says where the object begins; there is an object only if its value is
// kQueueBaseOffsetValue.
inline constexpr std::uint64_t kQueueBaseOffset = 0x08;
inline constexpr std::uint64_t kQueueTmpringSize = 0x0c;        // COMPUTE_TMPRING_SIZE
inline constexpr std::uint64_t kQueueScratchDescriptor = 0x10;  // four dwords: a buffer resource
inline constexpr std::uint64_t kQueueScratchLocation = 0x20;    // GPU address, 0: none
inline constexpr std::uint64_t kQueueProperties = 0x34;
inline constexpr std::uint64_t kQueueInactiveSignal = 0x40;
inline constexpr std::uint32_t kQueueBaseOffsetValue = 0x80;
inline constexpr Field kQueueProfiling{3, 1};  // in the properties: completion signals get time stamps
// What the inactive signal gets when the queue stops; as ROCr reads it (amd_aql_queue.cpp).
inline constexpr std::uint64_t kInactiveScratch = 1;  // the runtime enlarges it, and clears the signal again
inline constexpr std::uint64_t kInactiveDimensions = 2;
inline constexpr std::uint64_t kInactiveGroupMemory = 4;
inline constexpr std::uint64_t kInactiveCode = 8;
inline constexpr std::uint64_t kInactivePacketFormat = 32;
inline constexpr std::uint64_t kInactiveGroupSize = 64;
inline constexpr std::uint64_t kInactiveRegisters = 128;
inline constexpr std::uint64_t kInactiveVendorFormat = 256;
inline constexpr std::uint64_t kInactiveMemoryViolation = 0x20000000;
inline constexpr std::uint64_t kInactiveIllegalInstruction = 0x40000000;
inline constexpr std::uint64_t kInactiveTrap = 0x80000000;  // s_trap 2: the program aborts

// The context save area begins with struct kfd_context_save_area_header. This is where its err_payload_addr is: the
// address of the word of exceptions that amdkfd sets for the runtime, or 0.
inline constexpr std::uint64_t kSaveAreaErrorPayload = 24;

}  // namespace packets::aql
