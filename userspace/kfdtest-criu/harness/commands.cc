// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Encodes the commands of commands.h as packets.
#include "kfdtest-criu/harness/commands.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "packets/atomic.h"
#include "packets/compute.h"
#include "packets/pm4.h"
#include "packets/sdma.h"

namespace kfdtest {
namespace {

namespace aql = packets::aql;
namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;

// No type-3 packet has this opcode (kfd_pm4_opcodes.h, soc15d.h).
constexpr auto kUnknownOpcode = static_cast<pm4::Opcode>(0xff);
constexpr std::size_t kBadPacketDwords = 3;

constexpr std::uint64_t kFillMaxBytes = std::uint64_t{1} << 21;  // within the limit of every format, and whole dwords

const sdma::Format& format_of(const Generation& generation) { return sdma::format(generation.sdma_format); }

}  // namespace

Pm4Commands& Pm4Commands::write(std::uint64_t address, std::span<const std::uint32_t> words) {
  pm4::write_data(dwords_, address, words);
  return *this;
}

Pm4Commands& Pm4Commands::copy32(std::uint64_t destination, std::uint64_t source) {
  pm4::copy_data(dwords_, {.src = source, .dst = destination});
  return *this;
}

Pm4Commands& Pm4Commands::copy64(std::uint64_t destination, std::uint64_t source) {
  pm4::copy_data(dwords_, {.wide = true, .src = source, .dst = destination});
  return *this;
}

Pm4Commands& Pm4Commands::atomic_add32(std::uint64_t address, std::uint32_t addend) {
  pm4::atomic_mem(dwords_, {.code = packets::atomic_code32(packets::AtomicOp::kAdd), .addr = address, .src = addend});
  return *this;
}

Pm4Commands& Pm4Commands::atomic_add64(std::uint64_t address, std::uint64_t addend) {
  pm4::atomic_mem(dwords_, {.code = packets::atomic_code64(packets::AtomicOp::kAdd), .addr = address, .src = addend});
  return *this;
}

Pm4Commands& Pm4Commands::wait_equal(std::uint64_t address, std::uint32_t value) {
  pm4::wait_reg_mem(dwords_, {.addr = address, .reference = value});
  return *this;
}

Pm4Commands& Pm4Commands::fence(std::uint64_t address, std::uint64_t value) {
  pm4::release_mem(dwords_, {.data_sel = pm4::ReleaseData::k64, .addr = address, .data = value}, generation_.gfx_level);
  return *this;
}

Pm4Commands& Pm4Commands::signal(const KfdEvent& event) {
  pm4::release_mem(dwords_,
                   {.int_sel = pm4::ReleaseInt::kAfterWrite,
                    .data_sel = pm4::ReleaseData::k64,
                    .addr = event.mailbox(),
                    .data = event.trigger(),
                    .int_ctxid = event.trigger()},
                   generation_.gfx_level);
  return *this;
}

Pm4Commands& Pm4Commands::clock(std::uint64_t address) {
  pm4::release_mem(dwords_, {.data_sel = pm4::ReleaseData::kGpuClock, .addr = address}, generation_.gfx_level);
  return *this;
}

Pm4Commands& Pm4Commands::indirect(std::uint64_t address, std::size_t dwords) {
  pm4::indirect_buffer(dwords_, address, static_cast<std::uint32_t>(dwords));
  return *this;
}

Pm4Commands& Pm4Commands::nop(std::size_t dwords) {
  pm4::nop(dwords_, dwords);
  return *this;
}

Pm4Commands& Pm4Commands::wave(std::uint64_t address, std::uint32_t s0) {
  namespace compute = packets::compute;
  constexpr std::uint32_t kCodeUnit = 256;
  const std::uint64_t code = address / kCodeUnit;
  pm4::set_sh_reg(dwords_, compute::kNumThreadX, packets::Words{1, 1, 1});
  pm4::set_sh_reg(dwords_, compute::kPgmLo, packets::Words{packets::lo32(code), packets::hi32(code)});
  pm4::set_sh_reg(dwords_, compute::kPgmRsrc1, packets::Words{0, compute::kRsrc2UserSgpr.put(1)});
  pm4::set_sh_reg(dwords_, compute::kUserData0, packets::Words{s0});
  pm4::dispatch_direct(dwords_, 1, 1, 1, compute::kComputeShaderEn.put(1) | compute::kForceStartAt000.put(1));
  return *this;
}

Pm4Commands& Pm4Commands::bad_opcode() {
  dwords_.push_back(pm4::header(kUnknownOpcode, kBadPacketDwords));
  dwords_.insert(dwords_.end(), kBadPacketDwords - 1, 0);
  return *this;
}

base::Result<MessageWave> MessageWave::create(const Gpu& gpu) {
  // s_mov_b32 m0, s0; s_sendmsg sendmsg(MSG_INTERRUPT); s_endpgm
  constexpr std::array<std::uint32_t, 3> kCode = {0xbefc0000, 0xbf900001, 0xbf810000};
  ASSIGN_OR_RETURN(GpuMemory code, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  std::memcpy(code.data(), kCode.data(), sizeof(kCode));
  return MessageWave(gpu, std::move(code));
}

Pm4Commands MessageWave::signal(const KfdEvent& event) const {
  const std::array<std::uint32_t, 2> slot = {event.trigger(), 0};
  Pm4Commands commands(*gpu_);
  commands.write(event.mailbox(), slot).wave(code_.gpu_address(), event.trigger());
  return commands;
}

SdmaCommands& SdmaCommands::copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size) {
  sdma::copy_linear_split(dwords_, destination, source, size, format_of(generation_));
  return *this;
}

SdmaCommands& SdmaCommands::fill(std::uint64_t address, std::uint64_t size, std::uint32_t word) {
  for (std::uint64_t done = 0; done < size; done += kFillMaxBytes)
    sdma::const_fill(dwords_, address + done, word, static_cast<std::uint32_t>(std::min(size - done, kFillMaxBytes)),
                     sdma::FillSize::kDword, format_of(generation_));
  return *this;
}

SdmaCommands& SdmaCommands::write(std::uint64_t address, std::span<const std::uint32_t> words) {
  sdma::write_linear(dwords_, address, words, format_of(generation_));
  return *this;
}

SdmaCommands& SdmaCommands::atomic_add64(std::uint64_t address, std::uint64_t addend) {
  sdma::atomic(dwords_, {.code = packets::atomic_code64(packets::AtomicOp::kAdd), .addr = address, .src = addend});
  return *this;
}

SdmaCommands& SdmaCommands::wait_equal(std::uint64_t address, std::uint32_t value) {
  sdma::poll_regmem(dwords_, {.addr = address, .reference = value});
  return *this;
}

SdmaCommands& SdmaCommands::fence(std::uint64_t address, std::uint32_t value) {
  sdma::fence(dwords_, address, value, format_of(generation_));
  return *this;
}

SdmaCommands& SdmaCommands::signal(const KfdEvent& event) {
  sdma::fence(dwords_, event.mailbox(), event.trigger(), format_of(generation_));
  sdma::trap(dwords_, event.trigger());
  return *this;
}

SdmaCommands& SdmaCommands::clock(std::uint64_t address) {
  sdma::timestamp_get_global(dwords_, address);
  return *this;
}

SdmaCommands& SdmaCommands::nop(std::size_t dwords) {
  sdma::nop(dwords_, dwords);
  return *this;
}

AqlSignal::AqlSignal(const GpuMemory& memory, std::size_t offset, std::int64_t value, const KfdEvent* event)
    : memory_(&memory), offset_(offset) {
  static_assert(kSize == sizeof(aql::Signal));
  aql::Signal signal;
  signal.kind = aql::kSignalKindUser;
  signal.value = value;
  if (event != nullptr) {
    signal.event_mailbox_ptr = event->mailbox();
    signal.event_id = event->trigger();
  }
  std::memcpy(memory.data() + offset, &signal, sizeof(signal));
}

std::uint64_t AqlSignal::value_address() const { return gpu_address() + offsetof(aql::Signal, value); }

std::int64_t AqlSignal::value() const {
  return static_cast<std::int64_t>(memory_->load64(offset_ + offsetof(aql::Signal, value)));
}

void AqlSignal::store(std::int64_t value) const {
  memory_->store64(offset_ + offsetof(aql::Signal, value), static_cast<std::uint64_t>(value));
}

namespace {

AqlBytes barrier(aql::Type type, std::span<const AqlSignal* const> dependencies, const AqlSignal* completion) {
  static_assert(kAqlBarrierDependencies == aql::kBarrierSignals);
  static_assert(std::is_same_v<AqlBytes, aql::Slot>);
  aql::Barrier packet;
  packet.header = aql::header(type, /*barrier=*/true);
  const std::size_t count = std::min(dependencies.size(), kAqlBarrierDependencies);
  for (std::size_t i = 0; i < count; ++i) packet.dep_signal[i] = dependencies[i]->gpu_address();
  if (completion != nullptr) packet.completion_signal = completion->gpu_address();
  return aql::to_slot(packet);
}

}  // namespace

AqlBytes aql_barrier_and(std::span<const AqlSignal* const> dependencies, const AqlSignal* completion) {
  return barrier(aql::kBarrierAnd, dependencies, completion);
}

AqlBytes aql_barrier_or(std::span<const AqlSignal* const> dependencies, const AqlSignal* completion) {
  return barrier(aql::kBarrierOr, dependencies, completion);
}

AqlBytes aql_barrier_value(const AqlValueWait& wait, const AqlSignal* completion) {
  aql::BarrierValue packet;
  packet.header = aql::header(aql::kVendorSpecific, /*barrier=*/true);
  packet.signal = wait.signal == nullptr ? 0 : wait.signal->gpu_address();
  packet.condition = wait.condition;
  packet.value = wait.value;
  packet.mask = wait.mask;
  packet.completion_signal = completion == nullptr ? 0 : completion->gpu_address();
  return aql::to_slot(packet);
}

AqlBytes aql_pm4(std::uint64_t address, std::size_t dwords, const AqlSignal* completion) {
  return aql::to_slot(aql::vendor_pm4_ib(address, static_cast<std::uint32_t>(dwords),
                                         completion == nullptr ? 0 : completion->gpu_address()));
}

AqlBytes aql_agent_dispatch() {
  aql::AgentDispatch packet;
  packet.header = aql::header(aql::kAgentDispatch);
  return aql::to_slot(packet);
}

base::Status run_alone(const Gpu& gpu, SdmaCommands commands) {
  constexpr std::uint32_t kDone = 1;
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kSdma));
  ASSIGN_OR_RETURN(GpuMemory fence, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  fence.store32(0, 0);
  TRY(queue.submit(commands.fence(fence.gpu_address(), kDone).dwords()));
  return wait_for_word(fence, 0, kDone);
}

base::Status wait_for_word(const GpuMemory& memory, std::size_t offset, std::uint32_t value, Duration limit) {
  if (wait_until([&] { return memory.load32(offset) == value; }, limit)) return {};
  return base::Error(ETIME, "word at " + std::to_string(offset) + " is " + std::to_string(memory.load32(offset)) +
                                ", not " + std::to_string(value));
}

}  // namespace kfdtest
