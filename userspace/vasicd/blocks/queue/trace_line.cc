// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Formatting of a trace line.
#include "vasicd/blocks/queue/trace_line.h"

#include <cstdarg>
#include <cstdio>

namespace vasicd {

void trace_line(Trace& trace, const std::string& name, const char* format, ...) {
  if (!trace.enabled()) return;
  char text[256];
  std::va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  trace.line(name + ": " + text);
}

}  // namespace vasicd
