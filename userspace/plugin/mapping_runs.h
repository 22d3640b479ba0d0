// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which mappings of a task share one descriptor in CRIU: pure functions over CRIU's list of mappings.
//
// CRIU opens the files of a task's mappings in the order of addresses, and a file once for as many of them as follow
// each other. From 3.19 on it takes the descriptor that UPDATE_VMA_MAP answers for the first of such a run, and closes
// it after the last; what it is answered for the others it forgets, and the program would have it for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "plugin/criu_images.h"

namespace plugin {

[[nodiscard]] std::optional<std::size_t> find_vma(std::span<const CriuVma> vmas, std::uint64_t start);

// Whether CRIU uses the descriptor that it took for `previous` for `now` as well. file_opened: a descriptor for a file
// has appeared since; only needed when may_open() says so.
[[nodiscard]] bool is_same_run(std::span<const CriuVma> vmas, std::size_t previous, std::size_t now, bool file_opened);

// Whether only the task's descriptors can tell if CRIU opens a file between `previous` and the next mapping of a
// plugin.
[[nodiscard]] bool may_open(std::span<const CriuVma> vmas, std::size_t previous);

// Whether one of those files is of memfd_create(), as is the anonymous shared memory that CRIU makes.
[[nodiscard]] bool may_open_memfd(std::span<const CriuVma> vmas, std::size_t previous);

}  // namespace plugin
