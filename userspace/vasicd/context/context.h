// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the device lends to its engines. An engine knows these interfaces and no other block; each has one real
// implementation in the device and one fake in the tests. All are used on the device's thread only, with one exception:
// while the device's thread waits for the workers that execute waves, the workers use Memory, one at a time
// (waves/wave_memory.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "vasic/vasic_abi.h"
#include "vasicd/context/controls.h"
#include "vasicd/mem/memory.h"

namespace vasicd {

class WorkerPool;

// Why an interrupt is raised. ih_encode.h alone knows how a chip writes it into its IH ring.
enum class InterruptKind : std::uint8_t {
  kCpEndOfPipe,              // data[0]: context id of the packet
  kCpBadOpcode,              // data[0]: doorbell id within the process, data[1]: packets::ih::kEcode*
  kCpPrivilegedRegister,     // data[0]: register
  kCpPrivilegedInstruction,  // data[0]: header of the packet
  kSqMessage,                // data[0]: what a wave sent by S_SENDMSG
  kSqError,                  // data[0]: SqError
  kSqTrap,                   // data[0]: doorbell id within the process, data[1]: packets::ih::kTrap*; from gfx9 on
  kSdmaTrap,                 // data[0]: context id of the packet
  kSdmaPrivilegedRegister,   // data[0]: register
};

enum class SqError : std::uint32_t { kIllegalInstruction = 1, kMemoryViolation = 2 };

struct Interrupt {
  InterruptKind kind = InterruptKind::kCpEndOfPipe;
  std::uint8_t instance = 0;  // SDMA engine; not used by the CP and the SQ
  std::uint8_t xcc = 0;       // where the CP or the SQ is; not used by SDMA
  std::uint8_t ring_id = 0;   // CP: packets::ih::eop_ring_id(); SDMA: 0 for the kernel ring, else 1 + queue
  std::uint8_t vmid = 0;      // the device adds the VMID's PASID
  std::uint32_t data[4] = {};
};

// The unit whose access faulted. The hub that the access went through follows from the chip.
struct FaultClient {
  enum class Unit : std::uint8_t { kCp, kSdma, kShader };
  Unit unit = Unit::kCp;
  std::uint8_t instance = 0;  // SDMA engine
  std::uint8_t xcc = 0;       // where the CP is
};

class InterruptSink {
 public:
  virtual ~InterruptSink() = default;
  // Never blocks. No entry is lost while the guest keeps reading the ring.
  virtual void raise(const Interrupt& interrupt) = 0;
  // An engine may raise a fault that is to be retried each time that it meets it: the device reports it to the guest at
  // a bounded rate.
  virtual void raise_fault(const MemoryFault& fault, const FaultClient& client) = 0;
};

// The VASIC_REG_* space and the VMID table behind it.
class Registers {
 public:
  virtual ~Registers() = default;
  // Returns false for an index that no register has.
  virtual bool write(std::uint32_t index, std::uint32_t value) = 0;
  // For the scheduler: binds a VMID. `pd` is the page directory base as amdgpu_gmc_pd_addr() makes it.
  virtual void bind_vmid(unsigned vmid, std::uint64_t pd, std::uint32_t pasid) = 0;
  virtual void unbind_vmid(unsigned vmid) = 0;
  // Says, after a VMID was bound, whether its faults on absent pages are to be retried, if the chip supports that.
  virtual void set_retry(unsigned vmid, bool retry) = 0;
  [[nodiscard]] virtual std::uint32_t pasid(unsigned vmid) const = 0;
};

class Doorbells {
 public:
  virtual ~Doorbells() = default;
  // Exchanges the slot for EMPTY, and returns the value if the guest wrote one since the last call. Nothing is returned
  // for an index out of range. On a chip with 32-bit doorbells (vasic_info.doorbell_size) the value is the low half of
  // the write pointer. A queue whose pointer has 64 bits extends it, which works because the pointer never moves back,
  // and by less than 4 Gi at once.
  virtual std::optional<std::uint64_t> take(std::uint32_t dword_index) = 0;
  [[nodiscard]] virtual bool in_range(std::uint32_t dword_index) const = 0;
};

class Trace {
 public:
  virtual ~Trace() = default;
  [[nodiscard]] virtual bool enabled() const = 0;
  // Writes the line of one event. `text` has no newline and a stable form: "block: verb key=value ...".
  virtual void line(std::string_view text) = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual std::uint64_t now_ns() const = 0;
};

// What the GPU clock counter shows after `ns`: ticks of vasic_info.clock_khz.
[[nodiscard]] inline std::uint64_t gpu_ticks(std::uint64_t ns, std::uint32_t clock_khz) {
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  return ns / kNsPerMs * clock_khz + ns % kNsPerMs * clock_khz / kNsPerMs;
}

struct EngineContext {
  const vasic_info& info;  // the device's private copy
  Memory& memory;
  InterruptSink& interrupts;
  Registers& registers;
  Doorbells& doorbells;
  Trace& trace;
  const Clock& clock;
  Controls& controls;
  WorkerPool& workers;  // for waves

  [[nodiscard]] std::uint64_t ticks() const { return gpu_ticks(clock.now_ns(), info.clock_khz); }
};

}  // namespace vasicd
