// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The command line, and the GPU SPEC in it: a refusal is one line and names what is wrong; what is accepted describes
// a GPU within the ABI's limits.
#include <string>
#include <vector>

#include "fuzz/input.h"
#include "vasicd/host/options.h"

namespace {

using fuzz::check;

void check_gpu(const vasic_info& info) {
  check(info.magic == VASIC_ABI_MAGIC, "an accepted GPU has the magic");
  check(info.vram_size > 0 && info.vram_visible_size <= info.vram_size, "visible VRAM is part of VRAM");
  check((info.bar_size & (info.bar_size - 1)) == 0, "the BAR is a power of two");
  check(info.bar_size > VASIC_OFF_VRAM && info.vram_size <= info.bar_size - VASIC_OFF_VRAM, "VRAM is in the BAR");
  check(info.sdma_count <= VASIC_MAX_SDMA && info.xcc_count >= 1 && info.xcc_count <= VASIC_MAX_XCC,
        "engines are within the ABI");
  check(info.se_count <= VASIC_MAX_SE && info.sh_per_se <= VASIC_MAX_SH_PER_SE, "arrays are within the ABI");
  std::uint32_t active = 0;
  for (const auto& engine : info.cu_bitmap)
    for (const std::uint32_t bits : engine) active += static_cast<std::uint32_t>(__builtin_popcount(bits));
  check(active == info.cu_count, "as many CUs are active as there are bits");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  std::vector<std::string> arguments = {"--dir", "/d"};
  // Lines of the input: first the value of --gpu, then whole arguments.
  std::string line = "--gpu=";
  while (!in.empty()) {
    const char c = static_cast<char>(in.u8());
    if (c != '\n' && c != '\0') {
      line += c;
      continue;
    }
    arguments.push_back(line);
    line.clear();
  }
  arguments.push_back(line);
  const vasicd::ParsedOptions parsed = vasicd::parse_options(arguments);
  if (parsed.options.has_value()) {
    for (const vasic_info& info : parsed.options->gpus) check_gpu(info);
  } else if (parsed.out.empty()) {
    check(parsed.exit_status == vasicd::kExitUsage, "a wrong option is a usage error");
    check(std::count(parsed.error.begin(), parsed.error.end(), '\n') == 1 && parsed.error.back() == '\n',
          "a wrong option gets one line");
  }
  return 0;
}
