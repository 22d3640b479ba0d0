// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One virtual GPU: owns its blocks and engines, executes the command mailbox, keeps the TLB invalidation handshake
// (vasic_host_words.walk_epoch) around every use of a translation. Everything happens inside poll(), on one thread.
// Does not know where its memory comes from, how the guest is connected (transport/), or when to sleep
// (device_thread.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vasic/vasic_abi.h"
#include "vasicd/blocks/engines.h"
#include "vasicd/blocks/gmc.h"
#include "vasicd/blocks/ih.h"
#include "vasicd/blocks/ih_encode.h"
#include "vasicd/context/context.h"
#include "vasicd/context/controls.h"
#include "vasicd/mem/bus.h"
#include "vasicd/mem/gpu_memory.h"
#include "vasicd/shm/region.h"

namespace vasicd {

using EngineFactory = std::function<std::unique_ptr<Engines>(const vasic_info& info, EngineContext context)>;

// How soon the next poll() must come when this one did nothing.
enum class Attention : std::uint8_t {
  kKicks,       // only a kick can give it work
  kKernel,      // kernel rings or the HIQ are mapped, or interrupts wait for space in the ring
  kUserQueues,  // programs write doorbells by plain stores, which wake no thread
};

// How a device goes away.
enum class Removal : std::uint8_t {
  kAnnounced,  // the host state becomes VASIC_HOST_GONE
  kSilent,     // the host state stays, but nothing is answered any more
};

// What a device is connected to. All of it outlives the device.
struct DeviceSlot {
  unsigned gpu = 0;
  const vasic_info& info;  // the host's private copy
  Region& region;
  Bus& bus;
  InterruptLine& line;
  Trace& trace;
  const Clock& clock;
  WorkerPool& workers;
  std::vector<std::span<std::byte>> hive = {};  // VRAM of the nodes of its XGMI hive; empty: in none
};

class Device {
 public:
  Device(DeviceSlot slot, const EngineFactory& make_engines);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // One round: at most one command, one step of the engines, interrupts delivered. True if anything advanced.
  bool poll();
  [[nodiscard]] Attention attention() const;
  [[nodiscard]] Controls& controls() { return controls_; }
  // While held, interrupts go into the guest's ring without a signal.
  void hold_interrupts(bool held) { ih_.hold(held); }
  [[nodiscard]] bool interrupts_held() const { return ih_.held(); }
  [[nodiscard]] const Region& region() const { return slot_.region; }
  [[nodiscard]] const vasic_info& info() const { return slot_.info; }
  [[nodiscard]] vasic_host_state state() const { return state_; }

  // Counted since the process began.
  struct Counters {
    std::uint64_t commands = 0;
    std::uint64_t interrupts = 0;          // raised
    std::uint64_t interrupts_dropped = 0;  // without a ring, without space in it, or on request
    std::uint64_t interrupts_waiting = 0;  // wait for space in the ring now
  };
  [[nodiscard]] Counters counters() const;

  // Declares the device lost until the guest sends RESET. `reason` is one word for the trace.
  void hang(const char* reason);
  // Executes one packet now (Engines::step_packet), on a device that is paused.
  std::optional<std::string> step_packet();
  [[nodiscard]] std::vector<QueueStatus> queues() { return engines_->queues(); }
  // Removes the device until the next power cycle.
  void remove(Removal removal);

  // Resets the device and zeroes VRAM and mailbox, so that the next guest finds a fresh device.
  base::Status power_cycle();

 private:
  // Adds PASID and time to the interrupts that engines raise.
  class Interrupts final : public InterruptSink {
   public:
    explicit Interrupts(Device& device) : device_(device) {}
    void raise(const Interrupt& interrupt) override;
    void raise_fault(const MemoryFault& fault, const FaultClient& client) override;

   private:
    // Counts an interrupt, and returns whether Controls wants it dropped.
    bool dropped(InterruptClass which);
    void deliver(packets::ih::Entry entry);

    Device& device_;
  };

  // True if the guest was interrupted.
  bool flush_interrupts();
  void enter_translations();
  void leave_translations();
  bool run_command();
  void reset();
  void set_state(vasic_host_state state);
  // Ticks of vasic_info.clock_khz.
  [[nodiscard]] std::uint64_t gpu_clock() const;

  struct Outcome {
    vasic_status status = VASIC_OK;
    std::string why;  // one word or an engine's message, for the trace
    std::uint64_t value[2] = {};
  };
  static Outcome outcome_of(const base::Status& done);
  Outcome execute(const vasic_command& command);
  Outcome command_reset(const vasic_cmd_reset& cmd);
  Outcome command_mc_setup(const vasic_cmd_mc_setup& cmd);
  Outcome command_ih_setup(const vasic_cmd_ih_setup& cmd);
  [[nodiscard]] std::optional<RingKind> ring_kind(std::uint64_t kind, std::uint64_t instance) const;
  [[nodiscard]] std::optional<std::uint32_t> doorbell(std::uint64_t index) const;
  Outcome command_ring_load(const vasic_cmd_ring_load& cmd);
  Outcome command_ring_unload(const vasic_cmd_ring_unload& cmd);
  Outcome command_hqd(std::uint32_t opcode, const vasic_cmd& cmd);
  Outcome query_hqd(const HqdSlot& slot);
  base::Status prepare_hqd(const HqdSlot& slot, const vasic_cmd_hqd_prepare& cmd);
  base::Status load_hqd(const HqdSlot& slot, const vasic_cmd_hqd_load& cmd);
  base::Status unload_hqd(const HqdSlot& slot, const vasic_cmd_hqd_unload& cmd);
  Outcome command_mes(std::uint32_t opcode, const vasic_cmd& cmd);
  base::Status mes_add_queue(const vasic_cmd_mes_add_queue& cmd);
  base::Status mes_remove_queue(const vasic_cmd_mes_remove_queue& cmd);
  base::Status mes_reset_queue(const vasic_cmd_mes_reset_queue& cmd);
  Outcome command_reg_write(const vasic_cmd_reg_write& cmd);

  DeviceSlot slot_;
  Controls controls_;
  GpuMemory memory_;
  Gmc gmc_;
  IhEncoder encoder_;
  Ih ih_;
  Interrupts interrupts_;
  std::unique_ptr<Engines> engines_;

  vasic_host_state state_ = VASIC_HOST_READY;
  bool removed_ = false;
  Counters counters_;
  std::uint32_t last_seq_ = 0;
  std::uint32_t walk_epoch_ = 0;
  std::uint32_t tlb_gen_ = 0;
  std::uint32_t heartbeat_ = 0;
};

}  // namespace vasicd
