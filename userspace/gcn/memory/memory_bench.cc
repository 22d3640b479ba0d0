// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Measures how fast one core executes memory instructions. The "items" of the output are lanes per second, or
// instructions per second for scalar ones.
#include <benchmark/benchmark.h>

#include "gcn/fake_memory.h"

namespace gcn {
namespace {

constexpr std::uint64_t kAllLanes = ~std::uint64_t{0};

// The benches have addresses in v[0:1], data and results in v[8...], bases in s[4:5] and s[8:11].
Instruction access(std::string_view mnemonic) {
  Instruction in = named_instruction(mnemonic);
  in.dst = v(8);
  in.src = {v(0), v(8), operand::kNone, operand::kNone};
  return in;
}

Instruction buffer(std::string_view mnemonic) {
  Instruction in = access(mnemonic);
  in.src[2] = 8;
  in.src[3] = operand::kInt0;
  in.offen = true;
  return in;
}

Instruction scalar(std::string_view mnemonic) {
  Instruction in = named_instruction(mnemonic);
  in.dst = 20;
  in.src = {4, operand::kInt0, operand::kNone, operand::kNone};
  if (mnemonic.starts_with("s_load")) in.src[1] = operand::kNone;
  return in;
}

void run(benchmark::State& state, const Instruction& in, Address step, std::uint64_t exec, unsigned items) {
  FakeMachine m;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    m.wave.vgpr[0][lane] = static_cast<std::uint32_t>(FakeMachine::kBase + lane * step);
    m.wave.vgpr[1][lane] = static_cast<std::uint32_t>(FakeMachine::kBase >> 32);
  }
  m.wave.set_scalar64(4, FakeMachine::kBase);
  m.wave.set_scalar64(8, FakeMachine::kBase);
  m.wave.set_scalar64(operand::kFlatScratchLo, FakeMachine::kBase);
  m.wave.scalar[10] = 65536;
  m.wave.set_exec(exec);
  for ([[maybe_unused]] auto _ : state) {
    if (m.run(in) != Outcome::kNext) {
      state.SkipWithError("not executed");
      break;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(items) * state.iterations());
}

BENCHMARK_CAPTURE(run, s_add_u32, scalar("s_add_u32"), 0, kAllLanes, 1);
BENCHMARK_CAPTURE(run, s_and_b64, scalar("s_and_b64"), 0, kAllLanes, 1);
BENCHMARK_CAPTURE(run, s_load_dwordx4, scalar("s_load_dwordx4"), 0, kAllLanes, 1);
BENCHMARK_CAPTURE(run, global_load_dword, access("global_load_dword"), 4, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, global_load_dword_half_the_lanes, access("global_load_dword"), 4, 0x5555555555555555, 32);
BENCHMARK_CAPTURE(run, global_load_dword_far_apart, access("global_load_dword"), 1000, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, global_load_ubyte, access("global_load_ubyte"), 1, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, global_load_dwordx4, access("global_load_dwordx4"), 16, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, global_store_dword, access("global_store_dword"), 4, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, global_store_dwordx4, access("global_store_dwordx4"), 16, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, global_atomic_add, access("global_atomic_add"), 4, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, flat_load_dword, access("flat_load_dword"), 4, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, scratch_load_dword, access("scratch_load_dword"), 0, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, buffer_load_dword, buffer("buffer_load_dword"), 4, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, ds_read_b32, access("ds_read_b32"), 4, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, ds_write_b64, access("ds_write_b64"), 8, kAllLanes, kLanes);
BENCHMARK_CAPTURE(run, ds_bpermute_b32, access("ds_bpermute_b32"), 4, kAllLanes, kLanes);

}  // namespace
}  // namespace gcn
