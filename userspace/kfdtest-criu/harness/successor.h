// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Checkpoint and restore by the raw ioctls, without CRIU: the process makes a checkpoint of itself
// and a successor by fork(), which has its memory and the numbers of its files but nothing of the GPU; then it ends,
// and the successor restores what the GPU had. So a workload continues in another process without knowing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kfd/kfd.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/workload.h"

namespace kfdtest {

// Which GPU becomes which.
enum class GpuOrder : std::uint8_t { kSame, kRotated };

// Which interface of the kernel is used.
enum class CriuAbi : std::uint8_t { kReleased, kExtensible };

// Whether the successor shares its pages with a child when it is resumed, so that the first write copies a page, as it
// is when CRIU restores a tree of processes.
enum class PageSharing : std::uint8_t { kNone, kWithChild };

// Memory that the process of an image has.
struct HeldMemory {
  std::uint64_t address = 0;    // the GPU's; 0 for an open DMA-buf
  int descriptor = -1;          // of an open DMA-buf
  std::uint64_t inode = 0;      // of its DMA-buf: equal for whatever has the same memory
  std::uint32_t kfd_flags = 0;  // KFD_IOC_ALLOC_MEM_FLAGS_* of a BO of KFD or a DMA-buf; 0: it is a GEM object's
};

// How a successor gets the memory that its process shares with others, which are restored at the same time.
class MemoryExchange {
 public:
  MemoryExchange() = default;
  MemoryExchange(const MemoryExchange&) = delete;
  MemoryExchange& operator=(const MemoryExchange&) = delete;
  virtual ~MemoryExchange() = default;
  // In the successor, before its restore. The descriptors have to stay open until exchanged(), after it. Memory that
  // the process has imported, and memory of which it has only DMA-bufs, has to be among them.
  virtual base::Result<std::vector<kfd::SharedMemory>> memories(std::span<const HeldMemory> held) = 0;
  virtual void exchanged() = 0;
};

class SuccessorCheckpointer : public Checkpointer {
 public:
  // The session of DriverKind::kIoctls outlives this, and so does the exchange.
  SuccessorCheckpointer(const Session& session, GpuOrder order, CriuAbi abi, PageSharing sharing = PageSharing::kNone,
                        MemoryExchange* exchange = nullptr)
      : session_(&session), order_(order), abi_(abi), sharing_(sharing), exchange_(exchange) {}
  // Returns in the successor; returns an error in the process in which it happened.
  base::Status between_stages(const Workload& /*workload*/, unsigned /*next_stage*/) override { return hand_over(); }
  // Checkpoints and restores a program that is no workload.
  base::Status hand_over();

 private:
  const Session* session_;
  GpuOrder order_;
  CriuAbi abi_;
  PageSharing sharing_;
  MemoryExchange* exchange_;
  std::size_t turned_ = 0;  // GPU i of the session is now GPU i + turned_ of the machine
};

// Runs `program` in a child process and waits for that and all of its successors; the error is the first one's.
base::Status run_with_successors(const std::function<base::Status()>& program);

}  // namespace kfdtest
