// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Fakes of everything in context.h, for tests of the engines: flat memory that can be cut into pages, some of them bad;
// recorders for interrupts, registers and trace; doorbells and a clock set by hand.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "vasicd/context/context.h"
#include "vasicd/waves/worker_pool.h"

namespace vasicd {

// Address 0 of every VMID is byte 0 of one array. Pages named in bad_pages fault, in any VMID.
class FakeMemory final : public Memory {
 public:
  static constexpr std::uint64_t kPage = 4096;
  explicit FakeMemory(std::size_t bytes)
      : memory_(static_cast<std::byte*>(std::calloc(bytes, 1))), bytes_(memory_.get(), memory_ ? bytes : 0) {}

  MemoryResult<std::span<std::byte>> map(unsigned vmid, GpuAddr va, std::size_t limit, Access access) override {
    if (va >= bytes_.size() || bad_pages.contains(va / kPage)) {
      return MemoryFault{vmid, va, access, FaultKind::kNotPresent, retry};
    }
    if (access == Access::kWrite && read_only_pages.contains(va / kPage)) {
      return MemoryFault{vmid, va, access, FaultKind::kNotWritable};
    }
    std::uint64_t run = std::min<std::uint64_t>(limit, bytes_.size() - va);
    if (paged) run = std::min(run, kPage - va % kPage);
    vmids_used.insert(vmid);
    return bytes_.subspan(static_cast<std::size_t>(va), static_cast<std::size_t>(run));
  }

  [[nodiscard]] bool retries(unsigned /*vmid*/) const override { return retry; }

  [[nodiscard]] bool is_local(const std::byte* byte) const override {
    return static_cast<std::uint64_t>(byte - bytes_.data()) < remote_from;
  }

  template <typename T>
  T get(GpuAddr va) const {
    T value;
    std::memcpy(&value, bytes_.data() + va, sizeof(T));
    return value;
  }
  template <typename T>
  void put(GpuAddr va, T value) {
    std::memcpy(bytes_.data() + va, &value, sizeof(T));
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

  bool paged = true;
  bool retry = false;                 // whether faults on bad pages are to be retried
  GpuAddr remote_from = ~GpuAddr{0};  // addresses from here on are behind the link
  std::set<std::uint64_t> bad_pages;
  std::set<std::uint64_t> read_only_pages;
  std::set<unsigned> vmids_used;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  // From calloc(), whose zeroed pages cost nothing until they are touched; tests touch few of them.
  std::unique_ptr<std::byte, Free> memory_;
  std::span<std::byte> bytes_;
};

struct FakeInterrupts final : InterruptSink {
  struct Fault {
    MemoryFault fault;
    FaultClient client;
  };
  void raise(const Interrupt& interrupt) override { raised.push_back(interrupt); }
  void raise_fault(const MemoryFault& fault, const FaultClient& client) override { faults.push_back({fault, client}); }
  std::vector<Interrupt> raised;
  std::vector<Fault> faults;
};

struct FakeRegisters final : Registers {
  bool write(std::uint32_t index, std::uint32_t value) override {
    written[index] = value;
    return true;
  }
  void bind_vmid(unsigned vmid, std::uint64_t pd, std::uint32_t pasid_of) override { bound[vmid] = {pd, pasid_of}; }
  void unbind_vmid(unsigned vmid) override { bound.erase(vmid); }
  void set_retry(unsigned vmid, bool retry) override { retried[vmid] = retry; }
  [[nodiscard]] std::uint32_t pasid(unsigned vmid) const override {
    const auto it = bound.find(vmid);
    return it == bound.end() ? 0 : it->second.second;
  }
  std::map<std::uint32_t, std::uint32_t> written;
  std::map<unsigned, std::pair<std::uint64_t, std::uint32_t>> bound;
  std::map<unsigned, bool> retried;
};

struct FakeDoorbells final : Doorbells {
  std::optional<std::uint64_t> take(std::uint32_t index) override {
    const auto it = rung.find(index);
    if (it == rung.end()) return std::nullopt;
    const std::uint64_t value = it->second;
    rung.erase(it);
    return value;
  }
  [[nodiscard]] bool in_range(std::uint32_t index) const override { return index < 0x80000; }
  std::map<std::uint32_t, std::uint64_t> rung;
};

struct FakeTrace final : Trace {
  [[nodiscard]] bool enabled() const override { return on; }
  void line(std::string_view text) override { lines.emplace_back(text); }
  [[nodiscard]] bool contains(std::string_view text) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
  [[nodiscard]] std::size_t count(std::string_view text) const {
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(), [&](const std::string& line) { return line.find(text) != std::string::npos; }));
  }
  bool on = true;
  std::vector<std::string> lines;
};

struct FakeClock final : Clock {
  [[nodiscard]] std::uint64_t now_ns() const override { return now; }
  std::uint64_t now = 1'000'000'000;
};

struct FakeContext {
  explicit FakeContext(std::size_t memory_bytes) : memory(memory_bytes) {
    info.clock_khz = 1'000'000;
    info.gfx_level = 9;
    info.sdma_format = VASIC_SDMA_V4;
    info.doorbell_size = 8;
  }
  EngineContext context() { return context_with(memory); }
  // A context with these fakes but other memory.
  EngineContext context_with(Memory& other) {
    return {info, other, interrupts, registers, doorbells, trace, clock, controls, workers};
  }

  vasic_info info{};
  Controls controls;
  WorkerPool workers{2};
  FakeMemory memory;
  FakeInterrupts interrupts;
  FakeRegisters registers;
  FakeDoorbells doorbells;
  FakeTrace trace;
  FakeClock clock;
};

}  // namespace vasicd
