// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Measures how fast one core executes instructions. The "items" of the output are lanes per second.
#include <benchmark/benchmark.h>

#include "gcn/fake_memory.h"

namespace gcn {
namespace {

constexpr std::uint64_t kAllLanes = ~std::uint64_t{0};
constexpr std::uint64_t kEveryThird = 0x9249249249249249;

Instruction plain(Op op, Encoding encoding) {
  Instruction in;
  in.op = op;
  in.encoding = encoding;
  in.dst = operand::kVgpr0 + 4;
  in.sdst = operand::kVccLo;
  in.src = {operand::kVgpr0 + 8, operand::kVgpr0 + 12, operand::kVgpr0 + 16, operand::kNone};
  if (encoding == Encoding::kVop3p) in.op_sel_hi = 7;
  return in;
}

Instruction with_constant(Instruction in) {
  in.src[0] = operand::kInt0 + 5;
  return in;
}

Instruction with_carry(Instruction in) {
  in.src[2] = operand::kVccLo;
  return in;
}

Instruction with_dpp(Instruction in) {
  in.lanes = LaneMode::kDpp;
  in.dpp.ctrl = 0x111;  // row_shr:1
  return in;
}

Instruction with_sdwa(Instruction in) {
  in.lanes = LaneMode::kSdwa;
  in.sdwa.src_sel[0] = SubDword::kByte1;
  return in;
}

void lanes(benchmark::State& state, const Instruction& in, std::uint64_t exec) {
  FakeMachine m;
  for (unsigned n = 0; n < m.wave.vgpr.size(); ++n) {
    m.fill(n, [n](unsigned lane) { return 0x9e3779b9u * (64 * n + lane); });
  }
  m.wave.set_exec(exec);
  for ([[maybe_unused]] auto _ : state) {
    if (m.run(in) != Outcome::kNext) {
      state.SkipWithError("not executed");
      break;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(kLanes) * state.iterations());
}

BENCHMARK_CAPTURE(lanes, v_add_u32, plain(Op::kVAddU32, Encoding::kVop2), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_add_u32_partial_exec, plain(Op::kVAddU32, Encoding::kVop2), kEveryThird);
BENCHMARK_CAPTURE(lanes, v_add_u32_constant, with_constant(plain(Op::kVAddU32, Encoding::kVop2)), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_add_u32_sdwa, with_sdwa(plain(Op::kVAddU32, Encoding::kVop2)), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_addc_co_u32, with_carry(plain(Op::kVAddcCoU32, Encoding::kVop2)), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_mul_lo_u32, plain(Op::kVMulLoU32, Encoding::kVop3), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_mad_u64_u32, plain(Op::kVMadU64U32, Encoding::kVop3), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_mov_b32, plain(Op::kVMovB32, Encoding::kVop1), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_mov_b32_dpp, with_dpp(plain(Op::kVMovB32, Encoding::kVop1)), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_cmp_lt_u32, plain(Op::kVCmpLtU32, Encoding::kVopc), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_pk_add_u16, plain(Op::kVPkAddU16, Encoding::kVop3p), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_dot4_i32_i8, plain(Op::kVDot4I32I8, Encoding::kVop3p), kAllLanes);
BENCHMARK_CAPTURE(lanes, v_lshlrev_b64, plain(Op::kVLshlrevB64, Encoding::kVop3), kAllLanes);

}  // namespace
}  // namespace gcn
