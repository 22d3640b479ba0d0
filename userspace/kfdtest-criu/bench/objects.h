// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Many objects of one kind, made for a benchmark and never used: the process ends with them. Nothing of the GPU is
// mapped into the process, so fork() costs the same with many as with few.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/client.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

enum class ObjectKind : std::uint8_t { kBo, kEvent, kSvmRange, kSdmaQueue, kComputeQueue };
inline constexpr ObjectKind kAllObjectKinds[] = {ObjectKind::kBo, ObjectKind::kEvent, ObjectKind::kSvmRange,
                                                 ObjectKind::kSdmaQueue, ObjectKind::kComputeQueue};
// The kind's key in the JSON.
[[nodiscard]] std::string_view name_of(ObjectKind kind);

// How many of them the benchmark makes at most: what issue and chip allow; 0 if the GPU has none.
[[nodiscard]] unsigned most_of(const Gpu& gpu, ObjectKind kind);

// /dev/kfd and the GPU's render node; the VM is acquired by make_objects(), or by a restore.
struct OpenGpu {
  kfd::Client client;
  base::UniqueFd render;
  static base::Result<OpenGpu> open(const Gpu& gpu);
};

// Acquires the GPU's VM and makes `count` objects, plus buffers that all queues share: their number is the same for
// every count, 0 too.
base::Status make_objects(const OpenGpu& open, const Gpu& gpu, ObjectKind kind, unsigned count);

}  // namespace kfdtest
