// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: a device without QEMU, together with the guest's side of the ABI. One thread: the guest acts, then the
// device is polled. The helpers write what amdgpu would write; tests may also write anything else anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "packets/ih.h"
#include "vasicd/device.h"
#include "vasicd/waves/worker_pool.h"

namespace vasicd {

// A clock that stands still until the test advances it.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] std::uint64_t now_ns() const override { return now_; }
  void advance(std::uint64_t ns) { now_ += ns; }

 private:
  std::uint64_t now_ = 1'000'000'000;
};

class RecordingTrace final : public Trace {
 public:
  [[nodiscard]] bool enabled() const override { return true; }
  void line(std::string_view text) override { lines.emplace_back(text); }
  // Whether a line contains `text`.
  [[nodiscard]] bool has(std::string_view text) const;

  std::vector<std::string> lines;
};

class CountingLine final : public InterruptLine {
 public:
  void signal() override { ++signals; }
  int signals = 0;
};

struct LoopbackConfig {
  const char* spec = "gfx906,vram=64M";
  std::uint64_t ram_size = std::uint64_t{64} << 20;
  std::uint64_t ram_low = std::uint64_t{32} << 20;
};

// Guest RAM and the BARs of one or several GPUs.
class VirtualMachine {
 public:
  explicit VirtualMachine(const LoopbackConfig& config = {}, unsigned gpus = 1);

  [[nodiscard]] std::span<std::byte> ram() const { return ram_.mapping.bytes(); }
  [[nodiscard]] Bus& bus() { return *bus_; }
  [[nodiscard]] WorkerPool& workers() { return workers_; }
  [[nodiscard]] const vasic_info& info(unsigned gpu) const { return infos_[gpu]; }
  // VRAM of the nodes of the hive that this GPU is in.
  [[nodiscard]] std::vector<std::span<std::byte>> hive(unsigned gpu) const;
  [[nodiscard]] Region& region(unsigned gpu) { return *regions_[gpu]; }
  // Where the guest's firmware put BAR2 of this GPU.
  [[nodiscard]] std::uint64_t bar_address(unsigned gpu) const;

  // Page-aligned memory from two bump allocators: returns a GPA / a VRAM offset of this GPU.
  std::uint64_t allocate_ram(std::uint64_t size, std::uint64_t align = kGpuPageSize);
  std::uint64_t allocate_vram(unsigned gpu, std::uint64_t size, std::uint64_t align = kGpuPageSize);

 private:
  SharedMemory ram_;
  std::vector<vasic_info> infos_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::unique_ptr<Bus> bus_;
  WorkerPool workers_{1};
  std::uint64_t next_ram_;
  std::vector<std::uint64_t> next_vram_;
};

// One GPU of a VirtualMachine and its driver.
class Loopback {
 public:
  static constexpr GpuAddr kVramBase = 0x8000000000;
  static constexpr GpuAddr kGartBase = 0x10000000;
  static constexpr std::uint64_t kGartSize = std::uint64_t{16} << 20;
  static constexpr unsigned kTableBits = 9;
  static constexpr std::uint64_t kIhSize = 4096;

  // A VM of its own.
  explicit Loopback(EngineFactory make_engines, const LoopbackConfig& config = {});
  // GPU `gpu` of a VM that outlives it.
  Loopback(VirtualMachine& vm, unsigned gpu, EngineFactory make_engines);

  Device& device() { return *device_; }
  VirtualMachine& vm() { return vm_; }
  Region& region() { return region_; }
  [[nodiscard]] std::span<std::byte> vram() const { return region_.vram(); }
  RecordingTrace& trace() { return trace_; }
  ManualClock& clock() { return clock_; }
  CountingLine& line() { return line_; }

  // Where the driver puts this GPU's VRAM: node 0 of a hive at kVramBase, the others behind it.
  [[nodiscard]] GpuAddr vram_base() const;
  // MC_SETUP and IH_SETUP with the addresses above; true if both were answered OK.
  bool start();

  // Sends one command and polls the device until it answers.
  vasic_reply command(std::uint32_t opcode, const vasic_cmd& cmd = {});
  // Sends REG_WRITE and returns the status of the reply.
  std::uint32_t write_register(std::uint64_t index, std::uint64_t value);
  // Polls until nothing advances; false if that does not happen within `rounds`.
  bool settle(int rounds = 10000);
  void ring_doorbell(std::uint32_t dword_index, std::uint64_t value);

  [[nodiscard]] const vasic_host_words& host_words() const;
  vasic_guest_words& guest_words();

  // Consumes the next entry of the IH ring.
  std::optional<packets::ih::Entry> next_interrupt();

  // Maps [va, va + size) in the page tables of `pd_offset` (VRAM offset of a root table), with pages of `page_size`
  // (4 KiB, 2 MiB or 1 GiB). `address` is a VRAM offset, or a bus address if flags has pte::kSystem.
  void map(std::uint64_t pd_offset, GpuAddr va, std::uint64_t address, std::uint64_t size, std::uint64_t flags,
           std::uint64_t page_size = kGpuPageSize);
  // A fresh, empty root table, as a VRAM offset.
  std::uint64_t new_page_directory() { return vm_.allocate_vram(gpu_, kGpuPageSize); }
  // Binds a VMID by REG_WRITE.
  void bind(unsigned vmid, std::uint64_t pd_offset, std::uint32_t pasid);
  void invalidate_tlb();

  std::uint64_t& vram_word(std::uint64_t offset);
  std::uint64_t& ram_word(std::uint64_t gpa);

 private:
  std::uint64_t& table_entry(std::uint64_t pd_offset, GpuAddr va, unsigned leaf_shift);

  std::unique_ptr<VirtualMachine> own_vm_;
  VirtualMachine& vm_;
  unsigned gpu_;
  Region& region_;
  RecordingTrace trace_;
  ManualClock clock_;
  CountingLine line_;
  std::uint32_t seq_ = 0;
  std::uint64_t ih_ring_;
  std::uint64_t ih_wptr_word_;
  std::uint64_t gart_table_;
  std::unique_ptr<Device> device_;
};

}  // namespace vasicd
