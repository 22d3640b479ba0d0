// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A submission is a list of chunks (amdgpu_drm.h: drm_amdgpu_cs_chunk).
#include "drmtest/harness/submit.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace drmtest {
namespace {

constexpr std::uint64_t kIbAlign = 256;  // what AMDGPU_INFO_HW_IP_INFO asks of SDMA, and more than compute wants
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr Nanoseconds kPollPause = std::chrono::microseconds(100);

template <typename T>
drm_amdgpu_cs_chunk chunk(std::uint32_t id, std::vector<T>& items) {
  return {.chunk_id = id,
          .length_dw = static_cast<std::uint32_t>(items.size() * sizeof(T) / sizeof(std::uint32_t)),
          .chunk_data = reinterpret_cast<std::uintptr_t>(items.data())};
}

std::vector<drm_amdgpu_cs_chunk_syncobj> timeline_points(const std::vector<SyncPoint>& points) {
  std::vector<drm_amdgpu_cs_chunk_syncobj> out;
  for (const SyncPoint& point : points)
    if (point.point != 0) out.push_back({.handle = point.handle, .flags = 0, .point = point.point});
  return out;
}

std::vector<drm_amdgpu_cs_chunk_sem> binary_points(const std::vector<SyncPoint>& points) {
  std::vector<drm_amdgpu_cs_chunk_sem> out;
  for (const SyncPoint& point : points)
    if (point.point == 0) out.push_back({.handle = point.handle});
  return out;
}

// All that the chunks point to.
struct Chunks {
  std::vector<drm_amdgpu_cs_chunk_ib> ibs;
  std::vector<drm_amdgpu_bo_list_entry> entries;
  std::vector<drm_amdgpu_bo_list_in> list;
  std::vector<drm_amdgpu_cs_chunk_dep> dependencies;
  std::vector<drm_amdgpu_cs_chunk_sem> wait_binary, signal_binary;
  std::vector<drm_amdgpu_cs_chunk_syncobj> wait_points, signal_points;
  std::vector<drm_amdgpu_cs_chunk_data> user_fence;

  // Valid while this object lives.
  std::vector<drm_amdgpu_cs_chunk> headers() {
    std::vector<drm_amdgpu_cs_chunk> out;
    for (drm_amdgpu_cs_chunk_ib& ib : ibs)
      out.push_back({.chunk_id = AMDGPU_CHUNK_ID_IB,
                     .length_dw = sizeof(ib) / sizeof(std::uint32_t),
                     .chunk_data = reinterpret_cast<std::uintptr_t>(&ib)});
    const auto add = [&](std::uint32_t id, auto& items) {
      if (!items.empty()) out.push_back(chunk(id, items));
    };
    add(AMDGPU_CHUNK_ID_BO_HANDLES, list);
    add(AMDGPU_CHUNK_ID_DEPENDENCIES, dependencies);
    add(AMDGPU_CHUNK_ID_SYNCOBJ_IN, wait_binary);
    add(AMDGPU_CHUNK_ID_SYNCOBJ_OUT, signal_binary);
    add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, wait_points);
    add(AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, signal_points);
    // Only a part of the union drm_amdgpu_cs_chunk_data is a fence.
    if (!user_fence.empty())
      out.push_back({.chunk_id = AMDGPU_CHUNK_ID_FENCE,
                     .length_dw = sizeof(drm_amdgpu_cs_chunk_fence) / sizeof(std::uint32_t),
                     .chunk_data = reinterpret_cast<std::uintptr_t>(user_fence.data())});
    return out;
  }
};

base::Status list_bos(Chunks& chunks, std::span<const amdgpu_bo_handle> bos) {
  for (const amdgpu_bo_handle bo : bos) {
    std::uint32_t handle = 0;
    TRY(check(amdgpu_bo_export(bo, amdgpu_bo_handle_type_kms, &handle), "GEM handle"));
    chunks.entries.push_back({.bo_handle = handle, .bo_priority = 0});
  }
  chunks.list.push_back({.operation = ~0U,
                         .list_handle = ~0U,
                         .bo_number = static_cast<std::uint32_t>(chunks.entries.size()),
                         .bo_info_size = sizeof(drm_amdgpu_bo_list_entry),
                         .bo_info_ptr = reinterpret_cast<std::uintptr_t>(chunks.entries.data())});
  return {};
}

}  // namespace

base::Result<Context> Context::create(const Device& device, std::int32_t priority) {
  amdgpu_context_handle handle = nullptr;
  TRY(check(amdgpu_cs_ctx_create2(device.handle(), static_cast<std::uint32_t>(priority), &handle),
            "amdgpu_cs_ctx_create2"));
  return Context(handle);
}

Context::~Context() {
  if (handle_ != nullptr) amdgpu_cs_ctx_free(handle_);
}

base::Result<std::uint64_t> Context::reset_flags() const {
  std::uint64_t flags = 0;
  TRY(check(amdgpu_cs_query_reset_state2(handle_, &flags), "amdgpu_cs_query_reset_state2"));
  return flags;
}

base::Result<SyncObject> SyncObject::create(const Device& device, std::uint32_t flags) {
  std::uint32_t handle = 0;
  TRY(check(amdgpu_cs_create_syncobj2(device.handle(), flags, &handle), "amdgpu_cs_create_syncobj2"));
  return SyncObject(device, handle);
}

SyncObject::~SyncObject() {
  if (device_ != nullptr) amdgpu_cs_destroy_syncobj(device_, handle_);
}

base::Result<Submitter> Submitter::create(const Device& device, const Context& context, std::uint64_t ib_bytes) {
  ASSIGN_OR_RETURN(Buffer ibs, Buffer::create(device, gtt(ib_bytes)));
  return Submitter(device, context, std::move(ibs));
}

base::Result<drm_amdgpu_cs_chunk_ib> Submitter::place(const Job& job, Commands& commands) {
  const std::span<const std::uint32_t> dwords = commands.padded();
  const std::uint64_t offset = (used_ + kIbAlign - 1) / kIbAlign * kIbAlign;
  if (offset + dwords.size_bytes() > ibs_.size()) return base::Error(ENOSPC, "the IBs do not fit");
  std::copy(dwords.begin(), dwords.end(), ibs_.words().begin() + static_cast<std::ptrdiff_t>(offset / 4));
  used_ = offset + dwords.size_bytes();
  drm_amdgpu_cs_chunk_ib ib{};
  ib.va_start = ibs_.address(offset);
  ib.ib_bytes = static_cast<std::uint32_t>(dwords.size_bytes());
  ib.ip_type = job.ip;
  ib.ring = job.ring;
  return ib;
}

base::Result<amdgpu_cs_fence> Submitter::submit(const Job& job, std::span<Commands> ibs) {
  Chunks chunks;
  for (Commands& commands : ibs) {
    ASSIGN_OR_RETURN(const drm_amdgpu_cs_chunk_ib ib, place(job, commands));
    chunks.ibs.push_back(ib);
  }
  std::vector<amdgpu_bo_handle> bos = job.bos;
  bos.push_back(ibs_.handle());
  if (job.user_fence != nullptr) {
    amdgpu_cs_fence_info info{.handle = job.user_fence, .offset = 0};
    chunks.user_fence.resize(1);
    amdgpu_cs_chunk_fence_info_to_data(&info, chunks.user_fence.data());
  }
  TRY(list_bos(chunks, bos));
  for (amdgpu_cs_fence dependency : job.dependencies) {
    chunks.dependencies.emplace_back();
    amdgpu_cs_chunk_fence_to_dep(&dependency, &chunks.dependencies.back());
  }
  chunks.wait_binary = binary_points(job.wait_for);
  chunks.wait_points = timeline_points(job.wait_for);
  chunks.signal_binary = binary_points(job.signal);
  chunks.signal_points = timeline_points(job.signal);
  std::vector<drm_amdgpu_cs_chunk> headers = chunks.headers();
  amdgpu_cs_fence fence{
      .context = context_->handle(), .ip_type = job.ip, .ip_instance = 0, .ring = job.ring, .fence = 0};
  TRY(check(amdgpu_cs_submit_raw2(device_->handle(), context_->handle(), 0, static_cast<int>(headers.size()),
                                  headers.data(), &fence.fence),
            "amdgpu_cs_submit_raw2"));
  return fence;
}

base::Status Submitter::run(const Job& job, std::span<Commands> ibs) {
  ASSIGN_OR_RETURN(const amdgpu_cs_fence fence, submit(job, ibs));
  ASSIGN_OR_RETURN(const bool ended, wait(fence));
  if (!ended) return base::Error(ETIME, "the job did not end");
  rewind();
  return {};
}

base::Result<bool> wait(amdgpu_cs_fence fence, Nanoseconds limit) {
  std::uint32_t expired = 0;
  TRY(check(amdgpu_cs_query_fence_status(&fence, static_cast<std::uint64_t>(limit.count()), 0, &expired),
            "amdgpu_cs_query_fence_status"));
  return expired != 0;
}

base::Status poll_until_ended(amdgpu_cs_fence fence) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  for (;;) {
    ASSIGN_OR_RETURN(const bool ended, wait(fence, Nanoseconds(0)));
    if (ended) return {};
    if (std::chrono::steady_clock::now() >= end) return base::Error(ETIME, "a job did not end");
    std::this_thread::sleep_for(kPollPause);
  }
}

std::int64_t from_now(Nanoseconds limit) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec + limit.count();
}

}  // namespace drmtest
