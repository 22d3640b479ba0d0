// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/mapping_runs.h"

#include <algorithm>

namespace plugin {

std::optional<std::size_t> find_vma(std::span<const CriuVma> vmas, std::uint64_t start) {
  const auto found = std::lower_bound(vmas.begin(), vmas.end(), start,
                                      [](const CriuVma& vma, std::uint64_t value) { return vma.start < value; });
  if (found == vmas.end() || found->start != start) return std::nullopt;
  return static_cast<std::size_t>(found - vmas.begin());
}

bool is_same_run(std::span<const CriuVma> vmas, std::size_t previous, std::size_t now, bool file_opened) {
  if (vmas[previous].file_id != vmas[now].file_id || vmas[previous].flags != vmas[now].flags) return false;
  for (std::size_t i = previous + 1; i < now; ++i) {
    switch (vmas[i].source) {
      case CriuVma::Source::kNone:
      case CriuVma::Source::kSeparate:
        break;
      case CriuVma::Source::kMaybe:
        if (file_opened) return false;
        break;
      case CriuVma::Source::kOpened:
      case CriuVma::Source::kPlugin:
        return false;
    }
  }
  return true;
}

bool may_open(std::span<const CriuVma> vmas, std::size_t previous) {
  for (std::size_t i = previous + 1; i < vmas.size() && vmas[i].source != CriuVma::Source::kPlugin; ++i)
    if (vmas[i].source == CriuVma::Source::kMaybe) return true;
  return false;
}

bool may_open_memfd(std::span<const CriuVma> vmas, std::size_t previous) {
  for (std::size_t i = previous + 1; i < vmas.size() && vmas[i].source != CriuVma::Source::kPlugin; ++i)
    if (vmas[i].source == CriuVma::Source::kMaybe && vmas[i].is_memfd) return true;
  return false;
}

}  // namespace plugin
