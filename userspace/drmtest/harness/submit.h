// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Contexts, submissions and their fences.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "drmtest/env/device.h"
#include "drmtest/harness/buffer.h"
#include "drmtest/harness/commands.h"

namespace drmtest {

using Nanoseconds = std::chrono::nanoseconds;
// Generous: a wait that ends with it is a failure, so only failing tests ever spend it.
inline constexpr Nanoseconds kDeadline = std::chrono::seconds(20);
// How long something that must not happen is watched for.
inline constexpr Nanoseconds kQuietPeriod = std::chrono::milliseconds(150);

// Owner of a GPU context.
class Context {
 public:
  static base::Result<Context> create(const Device& device, std::int32_t priority = AMDGPU_CTX_PRIORITY_NORMAL);
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&&) = delete;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  [[nodiscard]] amdgpu_context_handle handle() const { return handle_; }
  // AMDGPU_CTX_QUERY2_FLAGS_*
  [[nodiscard]] base::Result<std::uint64_t> reset_flags() const;

 private:
  explicit Context(amdgpu_context_handle handle) : handle_(handle) {}
  amdgpu_context_handle handle_ = nullptr;
};

// One of a process's sync objects.
class SyncObject {
 public:
  static base::Result<SyncObject> create(const Device& device, std::uint32_t flags = 0);
  // Takes ownership of `handle`.
  SyncObject(const Device& device, std::uint32_t handle) : device_(device.handle()), handle_(handle) {}
  SyncObject(SyncObject&& other) noexcept : device_(std::exchange(other.device_, nullptr)), handle_(other.handle_) {}
  SyncObject& operator=(SyncObject&&) = delete;
  SyncObject(const SyncObject&) = delete;
  SyncObject& operator=(const SyncObject&) = delete;
  ~SyncObject();

  [[nodiscard]] std::uint32_t handle() const { return handle_; }

 private:
  amdgpu_device_handle device_ = nullptr;
  std::uint32_t handle_ = 0;
};

// A point of a timeline; 0 stands for a binary sync object.
struct SyncPoint {
  std::uint32_t handle = 0;
  std::uint64_t point = 0;
};

// What is submitted in addition to the commands.
struct Job {
  unsigned ip = AMDGPU_HW_IP_DMA;
  unsigned ring = 0;
  std::vector<amdgpu_bo_handle> bos = {};  // in addition to the IBs'
  std::vector<amdgpu_cs_fence> dependencies = {};
  std::vector<SyncPoint> wait_for = {};
  std::vector<SyncPoint> signal = {};
  amdgpu_bo_handle user_fence = nullptr;  // one page; its first 64 bits become the sequence number
};

// Command buffers in one GTT buffer, used from its start again for each submission that follows the end of the last.
class Submitter {
 public:
  static base::Result<Submitter> create(const Device& device, const Context& context,
                                        std::uint64_t ib_bytes = 256 * kPage);

  // Puts each list into an IB of its own and submits all as one job.
  base::Result<amdgpu_cs_fence> submit(const Job& job, std::span<Commands> ibs);
  base::Result<amdgpu_cs_fence> submit(const Job& job, Commands& commands) {
    return submit(job, std::span(&commands, 1));
  }
  // Submits and waits; ETIME if it does not end.
  base::Status run(const Job& job, std::span<Commands> ibs);
  base::Status run(const Job& job, Commands& commands) { return run(job, std::span(&commands, 1)); }
  // From now on IBs may overwrite those that were submitted.
  void rewind() { used_ = 0; }

 private:
  Submitter(const Device& device, const Context& context, Buffer ibs)
      : device_(&device), context_(&context), ibs_(std::move(ibs)) {}
  base::Result<drm_amdgpu_cs_chunk_ib> place(const Job& job, Commands& commands);
  const Device* device_;
  const Context* context_;
  Buffer ibs_;
  std::uint64_t used_ = 0;
};

// False when `limit` has passed before the job ended.
[[nodiscard]] base::Result<bool> wait(amdgpu_cs_fence fence, Nanoseconds limit = kDeadline);
// As wait() until kDeadline, but asks again and again: the driver takes a deadline for one of the machine's clock, and
// CRIU restores a program with a clock of its own, which may be behind. ETIME if the job does not end.
[[nodiscard]] base::Status poll_until_ended(amdgpu_cs_fence fence);
// As a deadline of sync objects: CLOCK_MONOTONIC, absolute.
[[nodiscard]] std::int64_t from_now(Nanoseconds limit);

}  // namespace drmtest
