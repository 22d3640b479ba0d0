// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The copier whose packets an SDMA engine executes: some staging buffers are filled by the GPU while sinks have the
// contents of others, also from one BO to the next. A submission has the packets of many small BOs, or of one that is
// larger than a slice.
#pragma once

#include <memory>

#include "packets/sdma.h"
#include "plugin/copy/copier.h"
#include "plugin/copy/sdma_engine.h"

namespace plugin::copy {

// The most BOs that one submission has, and each submission has its own: no more than kSlots times as many are
// imported.
inline constexpr std::size_t kMaxBos = 256;

// `format` is borrowed for the copier's life.
std::unique_ptr<Copier> make_sdma_copier(std::unique_ptr<SdmaEngine> engine, const packets::sdma::Format& format);

}  // namespace plugin::copy
