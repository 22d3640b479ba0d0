// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How fast waves are executed: lane-instructions a second with one worker and with as many as there are processors, in
// a loop of floating point, integers and LDS. JSON on standard output.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "vasicd/waves/dispatch.h"

namespace vasicd {
namespace {

// s_movk_i32 s4, 1000; v_cvt_f32_u32 v1, v0; v_lshlrev_b32 v5, 2, v0; s_mov_b32 m0, -1
// loop: v_fma_f32 v2, v1, v1, v2; v_add_f32 v3, v2, v1; v_mul_f32 v4, v3, v1; v_fma_f32 v2, v4, v3, v2;
//   v_add_u32 v6, v5, v0; v_and_b32 v6, 0xfc, v6; v_fma_f32 v2, v4, v1, v2; v_max_f32 v3, v2, v4; ds_read_b32 v7, v6;
//   s_sub_u32 s4, s4, 1; s_cmp_lg_u32 s4, 0; s_cbranch_scc1 loop
// s_endpgm
constexpr std::uint32_t kCode[] = {0xb00403e8, 0x7e020d00, 0x240a0082, 0xbefc00c1, 0xd1cb0002, 0x040a0301,
                                   0x02060302, 0x0a080303, 0xd1cb0002, 0x040a0704, 0x680c0105, 0x260c0cff,
                                   0x000000fc, 0xd1cb0002, 0x040a0304, 0x16060902, 0xd86c0000, 0x07000006,
                                   0x80848104, 0xbf078004, 0xbf85ffef, 0xbf810000};
constexpr GpuAddr kCodeAddress = 0x1000;
constexpr std::uint32_t kGroups = 64;
constexpr unsigned kRepeat = 5;

class CodePage final : public Memory {
 public:
  CodePage() { std::memcpy(bytes_.data(), kCode, sizeof(kCode)); }
  MemoryResult<std::span<std::byte>> map(unsigned vmid, GpuAddr va, std::size_t limit, Access access) override {
    if (va < kCodeAddress || va >= kCodeAddress + bytes_.size()) return MemoryFault{vmid, va, access};
    const auto rest = std::span(bytes_).subspan(static_cast<std::size_t>(va - kCodeAddress));
    return rest.first(std::min(limit, rest.size()));
  }

 private:
  std::array<std::byte, 4096> bytes_{};
};

// Lane-instructions a second, the best of some runs.
double measure(unsigned workers) {
  using Clock = std::chrono::steady_clock;
  Launch launch;
  launch.code = kCodeAddress;
  launch.rsrc1 = packets::compute::kRsrc1Vgprs.put(1) | packets::compute::kRsrc1FloatMode.put(0xc0);
  launch.groups = {kGroups, 1, 1};
  launch.size = {gcn::kLanes, 1, 1};
  launch.last_size = launch.size;
  launch.lds_bytes = 512;
  vasic_info info{};
  info.cu_count = kGroups;
  CodePage memory;
  WorkerPool pool(workers);
  double best = 0;
  for (unsigned n = 0; n < kRepeat; ++n) {
    Dispatch dispatch(info, gcn::Isa::kGfx906, launch, Dispatch::kAnyNumber, 0);
    const auto begin = Clock::now();
    DispatchTurn turn;
    while (!turn.done && !turn.stop.has_value()) turn = dispatch.turn(memory, 1, pool);
    const std::chrono::duration<double> time = Clock::now() - begin;
    if (turn.stop.has_value()) return 0;
    best = std::max(best, static_cast<double>(dispatch.instructions() * gcn::kLanes) / time.count());
  }
  return best;
}

}  // namespace
}  // namespace vasicd

int main() {
  const double one = vasicd::measure(1);
  const double two = vasicd::measure(2);
  std::printf("{\"wave_lane_instructions_per_second\": %.0f, \"wave_scaling_to_two_workers\": %.2f}\n", one,
              one > 0 ? two / one : 0);
  return one > 0 ? 0 : 1;
}
