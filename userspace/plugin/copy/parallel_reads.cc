// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/copy/parallel_reads.h"

namespace plugin::copy {

using base::Result;
using base::Status;

Status ParallelReads::run() {
  while (!lanes_.empty()) {
    for (auto lane = lanes_.begin(); lane != lanes_.end();) {
      ASSIGN_OR_RETURN(const bool has_ended, take_turn(*lane));
      lane = has_ended ? lanes_.erase(lane) : lane + 1;
    }
  }
  return {};
}

Result<bool> ParallelReads::take_turn(Lane& lane) {
  for (std::uint64_t begun = 0; begun < kSliceSize;) {
    if (lane.left == 0) {
      ASSIGN_OR_RETURN(auto read, lane.next());
      if (!read) {
        TRY(lane.copier->finish());
        return true;
      }
      Outcome outcome = lane.copier->begin_read({read->dmabuf.get(), read->size, read->name}, read->sink);
      if (!outcome.ok()) {
        Failure failure = std::move(outcome).error();
        if (failure.kind == FailureKind::kUnreachable) return std::move(failure.error).wrap(read->name);
        return std::move(failure.error);
      }
      lane.left = read->size;
    }
    ASSIGN_OR_RETURN(const std::uint64_t left, lane.copier->advance());
    begun += lane.left - left;
    lane.left = left;
  }
  return false;
}

}  // namespace plugin::copy
