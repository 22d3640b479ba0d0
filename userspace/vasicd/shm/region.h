// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// BAR2 of one GPU (kernel/uapi/vasic/vasic_abi.h): the memory itself and the only code that knows where its words are
// and in which order they are accessed. Words the host writes are never read back: the guest can overwrite them.
// Does not know what commands mean or when epochs move (device.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/mapping.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "packets/words.h"
#include "vasic/vasic_abi.h"
#include "vasicd/context/context.h"

namespace vasicd {

// A memfd and its mapping. The memory is gone when the process is, however it ends.
struct SharedMemory {
  base::UniqueFd fd;
  base::Mapping mapping;

  static base::Result<SharedMemory> create(std::uint64_t size, const char* name);
};

class Region final : public Doorbells {
 public:
  // info.bar_size bytes; the control pages are as power_on() leaves them.
  static base::Result<std::unique_ptr<Region>> create(const vasic_info& info);

  [[nodiscard]] int fd() const { return memory_.fd.get(); }
  [[nodiscard]] std::span<std::byte> bytes() const { return memory_.mapping.bytes(); }
  [[nodiscard]] std::span<std::byte> vram() const { return bytes().subspan(VASIC_OFF_VRAM, vram_size_); }

  // Brings BAR2 to the state after a cold boot: zeroed, VRAM too, all doorbells empty, `info` published.
  base::Status power_on(const vasic_info& info);

  // Stores walk_epoch, then, with a full barrier between, loads tlb_gen.
  std::uint32_t open_walk_epoch(std::uint32_t odd);
  // Stores tlb_ack, then walk_epoch.
  void close_walk_epoch(std::uint32_t tlb_ack, std::uint32_t even);

  // Guest words.
  [[nodiscard]] std::uint32_t ih_rptr() const;

  // Host words; each stored with release order.
  void set_state(vasic_host_state value);
  void set_heartbeat(std::uint32_t value);

  // A private copy of the command, if its sequence number is not `last_seq`.
  [[nodiscard]] std::optional<vasic_command> command_after(std::uint32_t last_seq) const;
  // A private copy of the MQD that goes with a command; and the way back, cut to the size of the MQD page.
  [[nodiscard]] packets::Words mqd() const;
  void put_mqd(packets::WordView words);
  // Stores reply.seq last.
  void answer(const vasic_reply& reply);

  // Slots are as wide as vasic_info.doorbell_size says.
  std::optional<std::uint64_t> take(std::uint32_t dword_index) override;
  [[nodiscard]] bool in_range(std::uint32_t dword_index) const override;

 private:
  explicit Region(SharedMemory memory) : memory_(std::move(memory)) {}

  template <typename Slot>
  std::optional<std::uint64_t> take_slot(std::uint32_t dword_index);

  template <typename T>
  [[nodiscard]] T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(memory_.mapping.data() + offset);
  }

  SharedMemory memory_;
  std::size_t vram_size_ = 0;
  bool has_32_bit_doorbells_ = false;
};

}  // namespace vasicd
