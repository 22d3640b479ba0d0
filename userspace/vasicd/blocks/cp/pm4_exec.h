// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Executes PM4 packets of compute queues and rings, one at a time. Where packets come from, and what happens after an
// error, is decided by cp_queue and cp_ring. A dispatch is only described here (queue_waves.h executes it); on a chip
// whose waves are not executed it is an illegal instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "packets/pm4.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/blocks/queue/word_source.h"
#include "vasicd/context/context.h"
#include "vasicd/waves/launch.h"

namespace vasicd {

// The owner of the queue or ring whose packets are executed.
enum class Pm4Client : std::uint8_t {
  kUser,
  kKernel,  // in VMID 0 registers may be written
};

class Pm4Executor {
 public:
  // `ring_id` goes into end-of-pipe interrupts.
  Pm4Executor(EngineContext context, std::string name, Pm4Client client, std::uint8_t ring_id)
      : context_(context), name_(std::move(name)), level_(context.info.gfx_level), client_(client), ring_id_(ring_id) {}

  // Executes the packet at `pos` of a ring or buffer with `available` dwords from there on, in the VMID of `source`.
  // kWait may also mean that the rest of the packet is not there yet. kEnterIb: next_ib() says where, and whether it
  // replaces the current buffer. kMore: call again for the same packet. kDispatch: next_dispatch() says which.
  QueueResult<PacketStatus> execute_at(const WordSource& source, std::uint64_t pos, std::uint64_t available,
                                       Budget& budget);
  // Reads no more of the packet at `pos` than its length, for packet_dwords().
  QueueResult<void> look_at(const WordSource& source, std::uint64_t pos);
  // Length of the packet that was executed or looked at last; 0: its header could not be read.
  [[nodiscard]] std::size_t packet_dwords() const { return packet_dwords_; }
  [[nodiscard]] const packets::pm4::IndirectBuffer& next_ib() const { return next_ib_; }
  // The dispatch that kDispatch asks for.
  [[nodiscard]] const packets::pm4::DispatchDirect& next_dispatch() const { return next_dispatch_; }
  // COMPUTE_* registers, as SET_SH_REG left them.
  [[nodiscard]] ComputeRegisters& registers() { return registers_; }
  // A packet has been done in part and must be executed again before the queue may be saved.
  [[nodiscard]] bool in_progress() const { return progress_ > 0; }
  // Gives up a packet that has been done in part; it would begin from its start.
  void abandon_packet() { progress_ = 0; }

  // Raises an end-of-pipe interrupt.
  void raise_eop(unsigned vmid, std::uint32_t context_id);

 private:
  QueueResult<PacketStatus> execute(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> execute_state(packets::WordView packet);
  [[nodiscard]] bool privileged() const { return client_ == Pm4Client::kKernel && vmid_ == 0; }
  QueueResult<PacketStatus> write_registers(const packets::pm4::WriteData& p);
  QueueResult<PacketStatus> wait_register(const packets::pm4::WaitRegMem& p, std::uint32_t header);
  QueueResult<PacketStatus> end_of_pipe(const packets::pm4::ReleaseMem& p, std::uint32_t header);
  QueueResult<bool> memory_equals(const packets::pm4::ReleaseMem& p);
  QueueResult<PacketStatus> cond_exec(packets::WordView packet);
  QueueResult<PacketStatus> write_data(packets::WordView packet);
  QueueResult<PacketStatus> wait_reg_mem(packets::WordView packet);
  QueueResult<PacketStatus> indirect_buffer(packets::WordView packet);
  QueueResult<PacketStatus> copy_data(packets::WordView packet);
  QueueResult<PacketStatus> atomic_mem(packets::WordView packet);
  QueueResult<PacketStatus> dma_data(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> set_registers(packets::WordView packet, std::uint32_t base, std::uint32_t end);
  QueueResult<PacketStatus> dispatch(packets::WordView packet);
  QueueResult<std::uint64_t> copy_data_source(const packets::pm4::CopyData& p, std::uint32_t header);

  EngineContext context_;
  std::string name_;
  unsigned level_;  // vasic_info.gfx_level
  Pm4Client client_;
  std::uint8_t ring_id_;
  unsigned vmid_ = 0;                  // VMID of the current packet
  std::vector<std::uint32_t> packet_;  // the current packet
  std::size_t packet_dwords_ = 0;
  packets::pm4::IndirectBuffer next_ib_;
  std::uint64_t progress_ = 0;
  packets::pm4::DispatchDirect next_dispatch_;
  ComputeRegisters registers_ = {};
};

}  // namespace vasicd
