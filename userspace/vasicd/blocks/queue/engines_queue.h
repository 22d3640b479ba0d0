// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What every packet queue of the engines shares: why it stops, how a packet ends, how much it may do in one step, where
// its dwords come from. Behaviour of single packets is in sdma_exec.cc, pm4_exec.cc and aql_queue.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "packets/compare.h"
#include "vasicd/blocks/context.h"
#include "vasicd/blocks/engines.h"
#include "vasicd/blocks/queue/mqd.h"

namespace vasicd {

// Why a queue cannot go on with its packet.
struct QueueError {
  enum class Kind : std::uint8_t {
    kMemory,              // `fault`
    kBadOpcode,           // `word` is the packet's header
    kBadPacket,           // known opcode, impossible contents; `word` is the header
    kPrivilege,           // a user queue wrote a register; `word` is its index
    kIllegalInstruction,  // of a wave, or a dispatch on a chip whose waves are not executed
    kWritePointer,        // further ahead than the ring is long
    kMemoryViolation,     // of a wave, or saved waves that make no sense
    kTrap,                // a wave aborts
    kBadDispatch,         // `word` is a LaunchError::Kind
  };
  Kind kind = Kind::kBadPacket;
  MemoryFault fault = {};
  std::uint32_t word = 0;
};

template <typename T>
using QueueResult = base::Expected<T, QueueError>;

inline QueueError memory_error(const MemoryFault& fault) { return {QueueError::Kind::kMemory, fault, 0}; }
template <typename T>
QueueResult<T> lift(MemoryResult<T> result) {
  if (!result.ok()) return memory_error(result.error());
  return std::move(result).value();
}
inline QueueResult<void> lift(MemoryResult<void> result) {
  if (!result.ok()) return memory_error(result.error());
  return {};
}

enum class PacketStatus : std::uint8_t {
  kDone,      // go on behind it
  kMore,      // out of budget; the rest in the next step
  kWait,      // try again in the next step
  kLink,      // the same, but for the link: the queue is not idle
  kEnterIb,   // the packet stays current until the indirect buffer is done
  kDispatch,  // the packet stays current until its waves are done
};

// What one queue may do in one step.
struct Budget {
  static constexpr unsigned kPackets = 64;
  static constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;
  unsigned packets = kPackets;
  std::uint64_t bytes = kBytes;

  // One packet to its end, at whatever speed. The longest copy has this size. More is a packet that was changed behind
  // our back; it begins anew.
  static constexpr std::uint64_t kLongestCopy = std::uint64_t{1} << 30;
  static Budget whole_packet() { return {.packets = 1, .bytes = kLongestCopy}; }
  [[nodiscard]] bool obeys_link() const { return bytes <= kBytes; }
  [[nodiscard]] bool left() const { return packets > 0 && bytes > 0; }
  void spend_bytes(std::uint64_t n) { bytes = n < bytes ? bytes - n : 0; }
};

// Of a packet of which `done` bytes were moved in earlier steps. It lies in the guest's memory and is read anew in each
// step, so it may have become shorter than that.
[[nodiscard]] constexpr std::uint64_t bytes_left(std::uint64_t bytes, std::uint64_t done) {
  return bytes - std::min(bytes, done);
}

// Dwords in GPU memory; a ring of mask + 1 dwords, or a linear buffer (mask of all ones).
struct WordSource {
  static constexpr std::uint64_t kLinear = ~std::uint64_t{0};
  unsigned vmid = 0;
  GpuAddr base = 0;
  std::uint64_t mask = kLinear;

  [[nodiscard]] std::uint64_t ring_dwords() const { return mask + 1; }
  [[nodiscard]] GpuAddr address(std::uint64_t pos) const { return base + (pos & mask) * 4; }
};
// Copies dwords from position `pos`; a ring wraps.
MemoryResult<void> fetch_words(Memory& memory, const WordSource& source, std::uint64_t pos,
                               std::span<std::uint32_t> out);

// An indirect buffer that is being executed.
struct ActiveIb {
  unsigned vmid = 0;
  GpuAddr base = 0;
  std::uint32_t dwords = 0;
  std::uint32_t offset = 0;  // of the current packet, dwords

  [[nodiscard]] WordSource source() const { return {vmid, base, WordSource::kLinear}; }
};

// One mapped queue or kernel ring: the loop over its packets, and how it stops. What a packet is, and where queue
// pointers lie, is the business of the kinds of queues below it.
class PacketQueue {
 public:
  virtual ~PacketQueue() = default;
  PacketQueue(const PacketQueue&) = delete;
  PacketQueue& operator=(const PacketQueue&) = delete;

  // Looks at the doorbell and executes packets; true if anything advanced. What was copied is taken from `budget`.
  bool step(Budget& budget);
  // Stops at a packet boundary; unless `mode` is kReset, the state is written to the MQD (if there is one).
  // Precondition: not hung, or kReset, which cures it.
  void unload(UnloadMode mode);
  // Nothing left to execute (a queue that waits, or has stopped on an error, is idle too).
  [[nodiscard]] bool idle() const { return halted_ || waiting_ || empty(); }
  // In the trace, and in Controls.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool hung() const { return context_.controls.hung(name_); }
  [[nodiscard]] virtual GpuAddr pq_base() const = 0;
  // As unload() left it.
  [[nodiscard]] const Mqd& mqd() const { return mqd_; }
  // Of the ring; 0: a kernel ring.
  [[nodiscard]] virtual unsigned ring_vmid() const = 0;
  [[nodiscard]] QueueStatus status() const;
  // The higher, the sooner its turn comes.
  [[nodiscard]] virtual unsigned priority() const { return kKernelPriority; }
  static constexpr unsigned kKernelPriority = 16;  // above cp_hqd_queue_priority

 protected:
  PacketQueue(EngineContext context, std::string name, Mqd mqd)
      : context_(context), name_(std::move(name)), mqd_(mqd) {}

  struct Pointers {
    std::uint64_t rptr = 0;
    std::uint64_t wptr = 0;
  };
  // SDMA: bytes, PM4: dwords, AQL: packets.
  [[nodiscard]] virtual Pointers pointers() const = 0;
  // "sdma", "pm4" or "aql".
  [[nodiscard]] virtual const char* packets() const = 0;
  [[nodiscard]] virtual bool empty() const = 0;
  virtual void take_doorbell() = 0;
  virtual void report_rptr() = 0;
  virtual QueueResult<PacketStatus> execute_next(Budget& budget) = 0;
  // Reports the error, and either halts or goes behind the packet.
  virtual void fail(const QueueError& error) = 0;
  // A packet is done in part, which no MQD can describe; the rest of it is bounded.
  [[nodiscard]] virtual bool in_progress() const = 0;
  // Whose accesses fault.
  [[nodiscard]] virtual FaultClient fault_client() const = 0;
  virtual MemoryResult<void> save() = 0;

  // The fault that control asked for, when the packet at `packet` is the next one.
  QueueResult<void> injected_fault(unsigned vmid, GpuAddr packet);

  // A fault that is retried: reported, and the packet stays the next one.
  bool waits_for_page(const QueueError& error);

  EngineContext context_;
  std::string name_;
  Mqd mqd_;  // empty: a kernel ring
  bool halted_ = false;
  bool waiting_ = false;
};

[[nodiscard]] bool compare_holds(packets::Compare function, std::uint32_t value, std::uint32_t reference);

// One atomic of packets/atomic.h. False: a compare-swap that did not swap. `header` is for the error.
QueueResult<bool> apply_atomic(Memory& memory, unsigned vmid, GpuAddr addr, std::uint32_t code, std::uint64_t src,
                               std::uint64_t compare, std::uint32_t header);

// memmove between two GPU ranges of one VMID; how many of the bytes crossed the device's link.
MemoryResult<std::uint64_t> copy_bytes(Memory& memory, unsigned vmid, GpuAddr dst, GpuAddr src, std::uint64_t bytes);
// The same for all bytes at once; the link may be busy for longer afterwards.
MemoryResult<void> copy_all(const EngineContext& context, unsigned vmid, GpuAddr dst, GpuAddr src, std::uint64_t bytes);
// The same within the budget and at the speed of the link; how many of `bytes` were copied. 0: the link is busy.
MemoryResult<std::uint64_t> copy_some(const EngineContext& context, unsigned vmid, GpuAddr dst, GpuAddr src,
                                      std::uint64_t bytes, Budget& budget);
// Repeats the four bytes of `pattern`; the first byte written is byte `phase` % 4 of it.
MemoryResult<void> fill_bytes(Memory& memory, unsigned vmid, GpuAddr dst, std::uint32_t pattern, std::uint64_t phase,
                              std::uint64_t bytes);
// The same within the budget; how many of `bytes` were written.
MemoryResult<std::uint64_t> fill_some(Memory& memory, unsigned vmid, GpuAddr dst, std::uint32_t pattern,
                                      std::uint64_t phase, std::uint64_t bytes, Budget& budget);

// "name: text", if anybody listens.
[[gnu::format(printf, 3, 4)]] void trace_line(Trace& trace, const std::string& name, const char* format, ...);

}  // namespace vasicd
