// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The rate of the disk of a benchmark: all calls together move no more bytes. What posix_fadvise() asks for is read
// from then on, and is there when it is needed later. They are functions of this program in place of those of the C
// library, so the plugin's code is the one that is shipped.
#pragma once

#include "plugin/bench/rate.h"

namespace plugin::bench {

enum class Sink {
  kDirect,  // pwrite() returns when the disk has the bytes
  kCached,  // pwrite() returns at once; sync_file_range() and fsync() return when the disk has the bytes
};

// Null: the disk is as fast as it is. `rate` is borrowed until the next call; nobody reads or writes meanwhile.
void set_sink_rate(Rate* rate, Sink sink = Sink::kDirect);

}  // namespace plugin::bench
