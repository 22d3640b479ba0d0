// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What an errno of a checkpoint or restore operation of /dev/kfd means, and what to do about it: one table for both
// ABIs. A row says only what the kernel's code or documentation says; an errno without a row gets no explanation.
// Not here: errors of other system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace kfd {

// One bit each, so that a row can name several.
enum class Abi : std::uint32_t {
  kReleased = 1,    // AMDKFD_IOC_CRIU_OP of Linux 5.18 and later, with and without the series
  kExtensible = 2,  // linux/kfd_criu_ioctl.h
};
enum class Operation : std::uint32_t {
  kVersion = 1 << 0,  // AMDKFD_IOC_GET_VERSION
  kProbe = 1 << 1,    // extensible only
  kPause = 1 << 2,    // PROCESS_INFO of the released ABI
  kCheckpoint = 1 << 3,
  kExportBo = 1 << 4,  // extensible only
  kBoOffset = 1 << 5,  // extensible only
  kUnpause = 1 << 6,
  kRestore = 1 << 7,
  kResume = 1 << 8,
};

struct ErrorRow {
  std::uint32_t abis;        // bits of Abi
  std::uint32_t operations;  // bits of Operation
  int code;
  const char* cause;
  const char* remedy;
  const char* source;  // where the kernel says so; shown to nobody
};

// The whole table, for its test. The first row that fits is the one.
[[nodiscard]] std::span<const ErrorRow> error_table();
// Null when the kernel gives no such errno by itself, or for a reason that nobody can do anything about.
[[nodiscard]] const ErrorRow* find_error(Abi abi, Operation operation, int code);

// What the operation is called in the kernel's documentation: "KFD RESTORE".
[[nodiscard]] const char* operation_name(Abi abi, Operation operation);
// A sentence for KFD_CRIU_REASON_*; null for 0 and for a reason of a newer kernel.
[[nodiscard]] const char* reason_text(std::uint32_t reason);

// What the extensible ABI says besides the errno.
struct ErrorDetail {
  std::uint32_t reason = 0;  // KFD_CRIU_REASON_*
  std::uint32_t record = 0;  // RESTORE: number of the record that was refused, starting at 1
};

// "KFD RESTORE: record 7 of the image: CAUSE (ENXIO): REMEDY"; the error's code is `code`.
[[nodiscard]] base::Error operation_error(Abi abi, Operation operation, int code, ErrorDetail detail = {});

}  // namespace kfd
