// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Any machine code in any kind of dispatch, on each chip that executes waves: it runs some turns, is saved, changed in
// the save area, and restored. It must stay in the memory of its VMID, end its turns, and not write to read-only pages.
#include <array>

#include "fuzz/fuzz_memory.h"
#include "vasicd/waves/dispatch.h"
#include "vasicd/waves/save_area.h"

namespace {

using fuzz::FuzzMemory;
using vasicd::Dispatch;

constexpr unsigned kVmid = 1;
constexpr std::size_t kStackBytes = 4096;
constexpr std::size_t kCodePages = 1;
constexpr std::size_t kAreaPages = 64;
constexpr std::size_t kDataPages = 8;
constexpr vasicd::GpuAddr kCode = FuzzMemory::kBase;
constexpr vasicd::GpuAddr kArea = kCode + kCodePages * FuzzMemory::kPage;
constexpr vasicd::GpuAddr kData = kArea + kAreaPages * FuzzMemory::kPage;
constexpr std::uint64_t kInstructions = 256;
constexpr unsigned kTurns = 3;
constexpr unsigned kChanges = 8;

class Driver {
 public:
  explicit Driver(fuzz::Input& in) : in_(in), pool_(1) {
    memory_.give(0, kStackBytes / FuzzMemory::kPage);
    memory_.give(kVmid, kCodePages + kAreaPages + kDataPages);
    info_.cu_count = 1 + in_.below(4);
  }

  void run() {
    const auto isa = static_cast<gcn::Isa>(in_.below(4));
    const vasicd::Launch launch = make_launch();
    const vasicd::SavePlace place{.stack = FuzzMemory::kBase,
                                  .stack_bytes = kStackBytes,
                                  .area = kArea,
                                  .area_bytes = kAreaPages * FuzzMemory::kPage,
                                  .vmid = kVmid};
    put_code();
    if (!vasicd::check(isa, launch).ok()) return;
    const std::uint64_t most_groups = vasicd::groups_that_fit(isa, launch, place);
    if (most_groups == 0) return;
    auto dispatch = std::make_unique<Dispatch>(info_, isa, launch, most_groups, 0);
    for (;;) {
      if (!turns(*dispatch)) return;
      const auto saved = vasicd::save_dispatch(*dispatch, memory_, place);
      fuzz::check(saved.ok(), "what is in flight fits into its save area");
      change_saved(saved->stack_offset);
      if (in_.empty()) return;
      auto resumed = vasicd::restore_dispatch(info_, isa, memory_, place, *saved);
      if (!resumed.ok()) return;
      dispatch = std::move(*resumed);
    }
  }

 private:
  std::uint32_t address_or_any() {
    return in_.flag() ? static_cast<std::uint32_t>(kData + in_.u16() % (kDataPages * FuzzMemory::kPage)) : in_.u32();
  }
  vasicd::Launch make_launch() {
    vasicd::Launch launch;
    launch.code = kCode;
    launch.rsrc1 = in_.u32() & ~(1u << 20);
    launch.rsrc2 = in_.u32();
    launch.rsrc3 = in_.u8();
    for (std::uint32_t& sgpr : launch.user_sgprs) sgpr = in_.flag() ? address_or_any() : 0;
    for (unsigned i = 0; i < launch.size.size(); ++i) {
      launch.groups[i] = 1 + in_.below(3);
      launch.size[i] = 1 + in_.below(i == 0 ? 130 : 3);
      launch.last_size[i] = 1 + in_.below(launch.size[i]);
    }
    launch.lds_bytes = in_.below(3) * 512;
    if (in_.flag()) {
      launch.scratch_wave_bytes = 1024;
      launch.scratch_waves = launch.waves_per_group() + in_.below(3);
    }
    return launch;
  }
  void put_code() {
    const auto code = in_.bytes(kCodePages * FuzzMemory::kPage / 2);
    const auto place = memory_.guest(kVmid, kCode, code.size());
    std::memcpy(place.data(), code.data(), code.size());
  }
  bool turns(Dispatch& dispatch) {
    for (unsigned n = 0; n < kTurns; ++n) {
      const auto turn = dispatch.turn(memory_, kVmid, pool_, kInstructions);
      if (turn.done || turn.stop.has_value()) return false;
    }
    return true;
  }
  void change_saved(std::uint32_t stack_offset) {
    for (unsigned n = in_.below(kChanges); n > 0; --n) {
      if (in_.flag()) {
        memory_.put(kVmid, kArea + in_.u32() % (kAreaPages * FuzzMemory::kPage - sizeof(std::uint32_t)), in_.u32());
      } else {
        const std::uint32_t bytes = kStackBytes - stack_offset;
        memory_.put(0, FuzzMemory::kBase + stack_offset + in_.u16() % bytes / 4 * 4, in_.u32());
      }
    }
  }

  fuzz::Input& in_;
  vasicd::WorkerPool pool_;
  FuzzMemory memory_;
  vasic_info info_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  Driver(in).run();
  return 0;
}
