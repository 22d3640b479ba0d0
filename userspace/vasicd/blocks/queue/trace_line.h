// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Lines of the event trace that begin with the name of a queue.
#pragma once

#include <string>

#include "vasicd/context/context.h"

namespace vasicd {

// Writes "name: text". Formats nothing while the trace has no reader.
[[gnu::format(printf, 3, 4)]] void trace_line(Trace& trace, const std::string& name, const char* format, ...);

}  // namespace vasicd
