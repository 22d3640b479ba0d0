// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A program that uses the virtual memory API of the HSA runtime (hsa_amd_vmem_*), as HIP 6 does, without HIP: VRAM that
// is mapped at two places of a reserved range, one of which the CPU reaches as well, and whose DMA-buf stays open.
//   field_hsa_vmm --dir FOLDER [--undisturbed]
// After the checkpoint the GPU's copies read and write through each mapping, the DMA-buf is imported and mapped, and
// new memory is created. The result is a checksum of what was read. Needs the runtime of ROCm 6.0 or later: its
// functions and structures are those of hsa/hsa.h and hsa/hsa_ext_amd.h. The files in FOLDER are those of
// kfdtest-criu/demo/message_files.h.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "fieldtest/runtime_library.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/harness/pattern.h"

namespace fieldtest {
namespace {

using base::Error;
using base::Result;
using base::Status;

// hsa_agent_t, hsa_amd_memory_pool_t, hsa_signal_t, hsa_amd_vmem_alloc_handle_t
struct Agent {
  std::uint64_t handle = 0;
};
struct Pool {
  std::uint64_t handle = 0;
};
struct Signal {
  std::uint64_t handle = 0;
};
struct Memory {
  std::uint64_t handle = 0;
};
// hsa_amd_memory_access_desc_t
struct Access {
  int permissions = 3;  // HSA_ACCESS_PERMISSION_RW
  Agent agent;
};

constexpr std::uint64_t kSeed = 97;
constexpr std::uint64_t kNoFlags = 0;
// Places in the reserved range, each of the same size.
enum Place : std::size_t { kFirst, kAgain, kImported, kNew, kPlaces };

// The first agent of a kind, and the first pool of it that fits.
class Device {
 public:
  static Result<Device> find(const RuntimeLibrary& hsa, std::uint32_t kind) {
    Device device(hsa, kind);
    TRY(hsa.call("hsa_iterate_agents", &look_at_agent, static_cast<void*>(&device)));
    if (device.agent.handle == 0) return Error(ENODEV, "no agent of kind " + std::to_string(kind));
    TRY(hsa.call("hsa_amd_agent_iterate_memory_pools", device.agent, &look_at_pool, static_cast<void*>(&device)));
    if (device.pool.handle == 0) return Error(ENODEV, "no memory pool of an agent");
    return device;
  }

  Agent agent;
  Pool pool;

  static constexpr std::uint32_t kCpu = 0, kGpu = 1;  // hsa_device_type_t

 private:
  Device(const RuntimeLibrary& hsa, std::uint32_t kind) : hsa_(&hsa), kind_(kind) {}

  static int look_at_agent(Agent agent, void* data) {
    auto& device = *static_cast<Device*>(data);
    std::uint32_t kind = 0;
    constexpr int kInfoDevice = 17;  // HSA_AGENT_INFO_DEVICE
    if (device.agent.handle == 0 && device.hsa_->call("hsa_agent_get_info", agent, kInfoDevice, as_void(&kind)).ok() &&
        kind == device.kind_)
      device.agent = agent;
    return 0;
  }

  // Coarse-grained memory of a GPU, fine-grained memory of a CPU.
  static int look_at_pool(Pool pool, void* data) {
    auto& device = *static_cast<Device*>(data);
    constexpr int kInfoSegment = 0, kInfoFlags = 1, kInfoMayAllocate = 5;  // HSA_AMD_MEMORY_POOL_INFO_*
    constexpr std::uint32_t kGlobal = 0, kFineGrained = 2, kCoarseGrained = 4;
    std::uint32_t segment = 1, flags = 0;
    bool may_allocate = false;
    const auto ask = [&](int info, void* answer) {
      return device.hsa_->call("hsa_amd_memory_pool_get_info", pool, info, answer).ok();
    };
    if (device.pool.handle != 0 || !ask(kInfoSegment, &segment) || segment != kGlobal || !ask(kInfoFlags, &flags) ||
        !ask(kInfoMayAllocate, &may_allocate) || !may_allocate)
      return 0;
    if ((flags & (device.kind_ == kGpu ? kCoarseGrained : kFineGrained)) != 0) device.pool = pool;
    return 0;
  }

  static void* as_void(void* pointer) { return pointer; }

  const RuntimeLibrary* hsa_;
  std::uint32_t kind_;
};

class Program {
 public:
  static Result<Program> make(const RuntimeLibrary& hsa) {
    TRY(hsa.call("hsa_init"));
    ASSIGN_OR_RETURN(const Device gpu, Device::find(hsa, Device::kGpu));
    ASSIGN_OR_RETURN(const Device cpu, Device::find(hsa, Device::kCpu));
    Program program(hsa, gpu, cpu);
    TRY(program.begin());
    return program;
  }

  // Something that changes nothing that is in the result.
  Status beat() { return copy(page_, cpu_.agent, at(kFirst), gpu_.agent); }

  // After the checkpoint.
  Status check(kfdtest::Checksum& checksum) {
    TRY(expect(kFirst, kSeed, checksum));
    TRY(expect(kAgain, kSeed, checksum));
    TRY(expect_cpu(kSeed));
    TRY(write(kAgain, kSeed + 1));
    TRY(expect(kFirst, kSeed + 1, checksum));
    TRY(expect_cpu(kSeed + 1));

    Memory imported;
    TRY(hsa_->call("hsa_amd_vmem_import_shareable_handle", exported_.get(), &imported));
    TRY(map(imported, kImported, false));
    TRY(expect(kImported, kSeed + 1, checksum));

    ASSIGN_OR_RETURN(const Memory late, create());
    TRY(map(late, kNew, false));
    TRY(write(kNew, kSeed + 2));
    TRY(expect(kNew, kSeed + 2, checksum));
    TRY(hsa_->call("hsa_amd_vmem_unmap", at(kAgain), size_));
    return expect(kFirst, kSeed + 1, checksum);
  }

 private:
  Program(const RuntimeLibrary& hsa, const Device& gpu, const Device& cpu) : hsa_(&hsa), gpu_(gpu), cpu_(cpu) {}

  Status begin() {
    constexpr int kInfoGranule = 6;  // HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE
    TRY(hsa_->call("hsa_amd_memory_pool_get_info", gpu_.pool, kInfoGranule, static_cast<void*>(&size_)));
    size_ = std::max<std::size_t>(size_, 1 << 20);
    TRY(hsa_->call("hsa_amd_memory_pool_allocate", cpu_.pool, size_, std::uint32_t{0}, &page_));
    TRY(hsa_->call("hsa_amd_agents_allow_access", std::uint32_t{1}, static_cast<const Agent*>(&gpu_.agent),
                   static_cast<const std::uint32_t*>(nullptr), static_cast<const void*>(page_)));
    TRY(hsa_->call("hsa_signal_create", std::int64_t{0}, std::uint32_t{0}, static_cast<const Agent*>(nullptr), &done_));
    TRY(hsa_->call("hsa_amd_vmem_address_reserve", &range_, kPlaces * size_, std::uint64_t{0}, kNoFlags));
    ASSIGN_OR_RETURN(const Memory memory, create());
    TRY(map(memory, kFirst, true));
    TRY(map(memory, kAgain, false));
    int file = -1;
    TRY(hsa_->call("hsa_amd_vmem_export_shareable_handle", &file, memory, kNoFlags));
    exported_.reset(file);
    return write(kFirst, kSeed);
  }

  [[nodiscard]] void* at(Place place) const { return static_cast<std::byte*>(range_) + place * size_; }

  Result<Memory> create() const {
    constexpr int kMemoryTypeNone = 0;  // MEMORY_TYPE_NONE
    Memory memory;
    TRY(hsa_->call("hsa_amd_vmem_handle_create", gpu_.pool, size_, kMemoryTypeNone, kNoFlags, &memory));
    return memory;
  }

  Status map(Memory memory, Place place, bool for_cpu) const {
    TRY(hsa_->call("hsa_amd_vmem_map", at(place), size_, std::size_t{0}, memory, kNoFlags));
    std::array<Access, 2> access;
    access[0].agent = gpu_.agent;
    access[1].agent = cpu_.agent;
    return hsa_->call("hsa_amd_vmem_set_access", at(place), size_, static_cast<const Access*>(access.data()),
                      std::size_t{for_cpu ? 2U : 1U});
  }

  // By the GPU.
  Status copy(void* to, Agent to_agent, const void* from, Agent from_agent) const {
    auto* const store = hsa_->function<void(Signal, std::int64_t)>("hsa_signal_store_screlease");
    auto* const wait =
        hsa_->function<std::int64_t(Signal, int, std::int64_t, std::uint64_t, int)>("hsa_signal_wait_scacquire");
    if (store == nullptr || wait == nullptr) return Error(ENOSYS, "the runtime has no signals");
    store(done_, 1);
    TRY(hsa_->call("hsa_amd_memory_async_copy", to, to_agent, from, from_agent, size_, std::uint32_t{0},
                   static_cast<const Signal*>(nullptr), done_));
    constexpr int kLessThan = 2, kBlocked = 0;  // HSA_SIGNAL_CONDITION_LT, HSA_WAIT_STATE_BLOCKED
    wait(done_, kLessThan, 1, UINT64_MAX, kBlocked);
    return {};
  }

  [[nodiscard]] std::span<std::byte> page() const { return {static_cast<std::byte*>(page_), size_}; }

  Status write(Place place, std::uint64_t seed) const {
    kfdtest::fill_pattern(page(), seed);
    return copy(at(place), gpu_.agent, page_, cpu_.agent);
  }

  Status expect(Place place, std::uint64_t seed, kfdtest::Checksum& checksum) const {
    std::ranges::fill(page(), std::byte{0});
    TRY(copy(page_, cpu_.agent, at(place), gpu_.agent));
    checksum.add(page());
    if (!kfdtest::find_mismatch(page(), seed)) return {};
    return Error(EIO, "the memory at place " + std::to_string(place) + " has other contents");
  }

  [[nodiscard]] Status expect_cpu(std::uint64_t seed) const {
    if (!kfdtest::find_mismatch({static_cast<std::byte*>(at(kFirst)), size_}, seed)) return {};
    return Error(EIO, "the CPU sees other memory than the GPU");
  }

  const RuntimeLibrary* hsa_;
  Device gpu_;
  Device cpu_;
  std::size_t size_ = 0;
  void* page_ = nullptr;   // memory of the CPU
  Signal done_;            // 0 when a copy has ended
  void* range_ = nullptr;  // reserved
  base::UniqueFd exported_;
};

Status run(const kfdtest::CommandLine& line, const kfdtest::MessageFiles& messages) {
  ASSIGN_OR_RETURN(const RuntimeLibrary hsa, RuntimeLibrary::open({"libhsa-runtime64.so.1"}));
  ASSIGN_OR_RETURN(Program program, Program::make(hsa));
  messages.say("pending");
  TRY(wait_pending(line, messages, kfdtest::counted([&] { return program.beat(); })));
  kfdtest::Checksum checksum;
  TRY(program.check(checksum));
  return messages.publish_result(checksum.hex());
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  kfdtest::CommandLine line;
  // Not by exit(): destructors of the runtime do not need to run.
  ::_exit(run_program(argc, argv, line,
                      [&](const kfdtest::MessageFiles& messages) { return fieldtest::run(line, messages); }));
}
