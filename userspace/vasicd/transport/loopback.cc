// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The guest's side, in its simplest form. Set-up that fails is a broken test and aborts.
#include "vasicd/transport/loopback.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "vasicd/chip.h"

namespace vasicd {
namespace {

constexpr std::uint64_t kFirstBar = std::uint64_t{1} << 40;
constexpr int kCommandRounds = 100;
constexpr std::uint64_t kTableBytes = 4096;
constexpr unsigned kLevelMask = 511;

template <typename T>
T must(base::Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "loopback: %s\n", result.error().message().c_str());
    std::abort();
  }
  return std::move(result).value();
}

}  // namespace

bool RecordingTrace::has(std::string_view text) const {
  return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

VirtualMachine::VirtualMachine(const LoopbackConfig& config, unsigned gpus)
    : ram_(must(SharedMemory::create(config.ram_size, "loopback-ram"))), next_ram_(kGpuPageSize) {
  std::vector<Bar> bars;
  for (unsigned gpu = 0; gpu < gpus; ++gpu) {
    infos_.push_back(must(parse_gpu_spec(config.spec, gpu)));
  }
  if (!join_hives(infos_).ok()) std::abort();
  for (unsigned gpu = 0; gpu < gpus; ++gpu) {
    regions_.push_back(must(Region::create(infos_[gpu])));
    bars.push_back({.bytes = regions_.back()->bytes(), .reach = VASIC_OFF_VRAM + infos_[gpu].vram_visible_size});
    next_vram_.push_back(0);
  }
  bus_ = std::make_unique<Bus>(GuestRam(ram(), config.ram_low), std::move(bars));
}

std::vector<std::span<std::byte>> VirtualMachine::hive(unsigned gpu) const {
  std::vector<std::span<std::byte>> vram;
  for (const auto& region : regions_) vram.push_back(region->vram());
  return hive_of(infos_, gpu, vram);
}

std::uint64_t VirtualMachine::bar_address(unsigned gpu) const { return kFirstBar + gpu * infos_[gpu].bar_size; }

std::uint64_t VirtualMachine::allocate_ram(std::uint64_t size, std::uint64_t align) {
  next_ram_ = (next_ram_ + align - 1) / align * align;
  return std::exchange(next_ram_, next_ram_ + size);
}

std::uint64_t VirtualMachine::allocate_vram(unsigned gpu, std::uint64_t size, std::uint64_t align) {
  std::uint64_t& next = next_vram_[gpu];
  next = (next + align - 1) / align * align;
  return std::exchange(next, next + size);
}

Loopback::Loopback(EngineFactory make_engines, const LoopbackConfig& config)
    : own_vm_(std::make_unique<VirtualMachine>(config)),
      vm_(*own_vm_),
      gpu_(0),
      region_(vm_.region(0)),
      ih_ring_(vm_.allocate_ram(kIhSize)),
      ih_wptr_word_(vm_.allocate_ram(kGpuPageSize)),
      gart_table_(vm_.allocate_vram(0, kGartSize / kGpuPageSize * sizeof(std::uint64_t))) {
  device_ = std::make_unique<Device>(
      DeviceSlot{gpu_, vm_.info(gpu_), region_, vm_.bus(), line_, trace_, clock_, vm_.workers(), vm_.hive(gpu_)},
      make_engines);
}

Loopback::Loopback(VirtualMachine& vm, unsigned gpu, EngineFactory make_engines)
    : vm_(vm),
      gpu_(gpu),
      region_(vm_.region(gpu)),
      ih_ring_(vm_.allocate_ram(kIhSize)),
      ih_wptr_word_(vm_.allocate_ram(kGpuPageSize)),
      gart_table_(vm_.allocate_vram(gpu, kGartSize / kGpuPageSize * sizeof(std::uint64_t))) {
  device_ = std::make_unique<Device>(
      DeviceSlot{gpu_, vm_.info(gpu_), region_, vm_.bus(), line_, trace_, clock_, vm_.workers(), vm_.hive(gpu_)},
      make_engines);
}

GpuAddr Loopback::vram_base() const {
  const vasic_info& info = vm_.info(gpu_);
  return kVramBase + info.xgmi_node_id * info.xgmi_segment_size;
}

bool Loopback::start() {
  const auto mc = command(VASIC_CMD_MC_SETUP, {.mc_setup = {.vram_base = vram_base(),
                                                            .gart_base = kGartBase,
                                                            .gart_size = kGartSize,
                                                            .gart_table = gart_table_,
                                                            .bar_address = vm_.bar_address(gpu_),
                                                            .table_bits = kTableBits,
                                                            .va_pages = 0}});
  const auto ih =
      command(VASIC_CMD_IH_SETUP, {.ih_setup = {.ring = ih_ring_, .size = kIhSize, .wptr_addr = ih_wptr_word_}});
  return mc.status == VASIC_OK && ih.status == VASIC_OK;
}

vasic_reply Loopback::command(std::uint32_t opcode, const vasic_cmd& cmd) {
  auto& shared = *reinterpret_cast<vasic_command*>(region_.bytes().data() + VASIC_OFF_COMMAND);
  const auto& reply = *reinterpret_cast<const vasic_reply*>(region_.bytes().data() + VASIC_OFF_REPLY);
  shared.opcode = opcode;
  shared.cmd = cmd;
  std::atomic_ref(shared.seq).store(++seq_, std::memory_order_release);
  for (int round = 0; round < kCommandRounds && reply.seq != seq_; ++round) device_->poll();
  return reply;
}

std::uint32_t Loopback::write_register(std::uint64_t index, std::uint64_t value) {
  return command(VASIC_CMD_REG_WRITE, {.reg_write = {.index = index, .value = value}}).status;
}

bool Loopback::settle(int rounds) {
  for (int round = 0; round < rounds; ++round)
    if (!device_->poll()) return true;
  return false;
}

void Loopback::ring_doorbell(std::uint32_t dword_index, std::uint64_t value) {
  auto& slot = *reinterpret_cast<std::uint64_t*>(region_.bytes().data() + VASIC_OFF_DOORBELL + 4ul * dword_index);
  std::atomic_ref(slot).store(value, std::memory_order_release);
}

const vasic_host_words& Loopback::host_words() const {
  return *reinterpret_cast<const vasic_host_words*>(region_.bytes().data() + VASIC_OFF_HOST);
}

vasic_guest_words& Loopback::guest_words() {
  return *reinterpret_cast<vasic_guest_words*>(region_.bytes().data() + VASIC_OFF_GUEST);
}

std::optional<packets::ih::Entry> Loopback::next_interrupt() {
  std::uint32_t& rptr = guest_words().ih_rptr;
  const auto wptr = static_cast<std::uint32_t>(ram_word(ih_wptr_word_));
  if (rptr == wptr) return std::nullopt;
  const auto* words = reinterpret_cast<const std::uint32_t*>(vm_.ram().data() + ih_ring_ + rptr);
  const bool is_cik = vm_.info(gpu_).ih_format == VASIC_IH_CIK;
  rptr =
      static_cast<std::uint32_t>((rptr + (is_cik ? packets::ih::kCikEntryBytes : packets::ih::kEntryBytes)) % kIhSize);
  if (is_cik) return packets::ih::decode_cik(std::span<const std::uint32_t, packets::ih::kCikEntryDwords>(words, 4));
  return packets::ih::decode(std::span<const std::uint32_t, packets::ih::kEntryDwords>(words, 8));
}

std::uint64_t& Loopback::table_entry(std::uint64_t pd_offset, GpuAddr va, unsigned leaf_shift) {
  std::uint64_t table = pd_offset;
  for (unsigned shift = 39; shift > leaf_shift; shift -= 9) {
    std::uint64_t& entry = vram_word(table + 8 * ((va >> shift) & kLevelMask));
    if ((entry & pte::kValid) == 0) entry = vm_.allocate_vram(gpu_, kTableBytes) | pte::kValid;
    table = entry & pte::kAddressMask;
  }
  return vram_word(table + 8 * ((va >> leaf_shift) & kLevelMask));
}

void Loopback::map(std::uint64_t pd_offset, GpuAddr va, std::uint64_t address, std::uint64_t size, std::uint64_t flags,
                   std::uint64_t page_size) {
  const auto leaf_shift = static_cast<unsigned>(std::countr_zero(page_size));
  const std::uint64_t leaf_flags = flags | (page_size == kGpuPageSize ? 0 : pte::kHuge);
  for (std::uint64_t done = 0; done < size; done += page_size)
    table_entry(pd_offset, va + done, leaf_shift) = (address + done) | leaf_flags;
}

void Loopback::bind(unsigned vmid, std::uint64_t pd_offset, std::uint32_t pasid) {
  const std::uint64_t pd = pd_offset | pte::kValid;
  write_register(VASIC_REG_VM_PD_LO(vmid), pd & 0xffffffff);
  write_register(VASIC_REG_VM_PD_HI(vmid), pd >> 32);
  write_register(VASIC_REG_VM_PASID(vmid), pasid);
}

void Loopback::invalidate_tlb() { std::atomic_ref(guest_words().tlb_gen).fetch_add(1); }

std::uint64_t& Loopback::vram_word(std::uint64_t offset) {
  return *reinterpret_cast<std::uint64_t*>(vram().data() + offset);
}

std::uint64_t& Loopback::ram_word(std::uint64_t gpa) {
  return *reinterpret_cast<std::uint64_t*>(vm_.bus().ram().at(gpa, sizeof(std::uint64_t)).data());
}

}  // namespace vasicd
