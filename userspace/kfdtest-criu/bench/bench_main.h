// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// main() of a benchmark: an error is one line with the name of the program, a wrong command line has a status of its
// own.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "base/result.h"

namespace kfdtest {

inline constexpr int kUsage = 64;

template <class Options>
int bench_main(const char* name, const base::Result<Options>& options, base::Status (*run)(const Options&)) {
  if (!options.ok()) {
    std::fprintf(stderr, "%s: %s\n", name, options.error().message().c_str());
    return kUsage;
  }
  const base::Status status = run(*options);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "%s: %s\n", name, status.error().message().c_str());
  return EXIT_FAILURE;
}

}  // namespace kfdtest
