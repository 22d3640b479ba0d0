// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queue descriptors as plain structs with every field checked, and written back when a queue stops. An MQD may come
// from a checkpoint image, so every field of it is checked. Layouts: packets/mqd.h.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "packets/mqd.h"
#include "packets/mqd_sdma.h"
#include "vasicd/blocks/queue/mqd.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/blocks/queue/word_source.h"
#include "vasicd/context/context.h"

namespace vasicd {

inline constexpr std::uint64_t kMaxRingDwords = std::uint64_t{1} << 28;  // 1 GiB
inline constexpr std::uint64_t kMinRingDwords = 16;

// Where waves of a queue are saved, and how much of it is in use (cp_hqd_ctx_save_*, cp_hqd_cntl_stack_*,
// cp_hqd_wg_state_offset). The stack grows down from its size, the waves up from there: equal offsets mean that none is
// saved.
struct WaveSave {
  GpuAddr area = 0;  // 0: waves cannot be saved
  std::uint32_t area_bytes = 0;
  std::uint32_t stack_bytes = 0;
  std::uint32_t stack_offset = 0;
  std::uint32_t wave_end = 0;

  [[nodiscard]] bool empty() const { return area == 0 || stack_offset == stack_bytes; }
};

// A compute queue, or the HIQ.
struct ComputeHqd {
  bool aql = false;
  unsigned vmid = 0;  // as the MQD says; the scheduler overrides it
  GpuAddr base = 0;
  std::uint64_t ring_dwords = 0;  // a power of two
  GpuAddr rptr_report = 0;
  GpuAddr wptr_poll = 0;
  std::uint32_t doorbell = 0;
  unsigned priority = 0;         // higher is more urgent
  std::uint32_t rptr = 0;        // dwords, modulo the ring
  std::uint64_t wptr = 0;        // as last seen: PM4 dwords, AQL packets
  std::uint64_t read_index = 0;  // AQL packets
  std::optional<ActiveIb> ib;    // without its VMID
  std::optional<QueueError::Kind> error;
  WaveSave waves;
};
base::Result<ComputeHqd> read_compute_mqd(const packets::mqd::ComputeMqdLayout& layout, const Mqd& mqd);
// Each of `xccs` XCCs has its own descriptor of a queue: returns the distance between two of them in bytes; 0: there is
// one descriptor for all. EINVAL: the descriptors overlap, so that saving one would overwrite another.
base::Result<std::uint64_t> mqd_stride(const packets::mqd::ComputeMqdLayout& layout, const Mqd& mqd, unsigned xccs);
// Writes pointers, IB state, error, and the extent of the saved waves.
MemoryResult<void> write_compute_mqd(const packets::mqd::ComputeMqdLayout& layout, Mqd& mqd, const ComputeHqd& hqd);

struct SdmaHqd {
  unsigned vmid = 0;
  GpuAddr base = 0;
  std::uint64_t ring_dwords = 0;  // a power of two
  GpuAddr rptr_report = 0;
  GpuAddr wptr_poll = 0;
  std::uint32_t doorbell = 0;
  std::uint64_t rptr = 0;  // bytes
  std::uint64_t wptr = 0;  // bytes
  std::optional<ActiveIb> ib;
  std::uint32_t skip = 0;  // dwords that COND_EXE still skips
  std::optional<QueueError::Kind> error;
};
base::Result<SdmaHqd> read_sdma_mqd(const packets::mqd::SdmaMqdLayout& layout, const Mqd& mqd);
MemoryResult<void> write_sdma_mqd(const packets::mqd::SdmaMqdLayout& layout, Mqd& mqd, const SdmaHqd& hqd);

// Descriptors of this chip, in GPU memory.
base::Result<Mqd> compute_mqd_at(const EngineContext& context, GpuAddr addr);
base::Result<Mqd> sdma_mqd_at(const EngineContext& context, GpuAddr addr);

}  // namespace vasicd
