// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The device's round and its commands. Every command argument is hostile; what reaches the engines is in range.
#include "vasicd/device.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>
#include <tuple>

#include "vasicd/trace.h"

namespace vasicd {
namespace {

constexpr std::uint32_t kAllVmids = (1u << VASIC_MAX_VMID) - 1;
constexpr std::uint64_t kMinKernelRing = 256;
constexpr std::uint64_t kMaxKernelRing = std::uint64_t{1} << 26;
constexpr std::uint64_t kRingAlign = 256;  // ring bases are programmed in units of 256 bytes
constexpr std::uint64_t kPointerAlign = sizeof(std::uint64_t);
constexpr std::uint32_t kMaxPasid = 0xffff;
constexpr std::uint64_t kMesPriorities = 5;  // amdgpu_mes.h: AMDGPU_MES_PRIORITY_NUM_LEVELS
constexpr std::uint32_t kMesFlags = VASIC_MES_AQL | VASIC_MES_TRAP | VASIC_MES_EXCLUSIVE;
constexpr std::uint64_t kSdmaSlots = 8;  // of an engine
constexpr std::uint64_t kTooManyTableBits = 64;
constexpr std::uint64_t kMqdAlign = sizeof(std::uint32_t);

const char* name(std::uint32_t opcode) {
  switch (opcode) {
    case VASIC_CMD_NOP:
      return "NOP";
    case VASIC_CMD_RESET:
      return "RESET";
    case VASIC_CMD_MC_SETUP:
      return "MC_SETUP";
    case VASIC_CMD_IH_SETUP:
      return "IH_SETUP";
    case VASIC_CMD_RING_LOAD:
      return "RING_LOAD";
    case VASIC_CMD_RING_UNLOAD:
      return "RING_UNLOAD";
    case VASIC_CMD_HQD_LOAD:
      return "HQD_LOAD";
    case VASIC_CMD_HQD_UNLOAD:
      return "HQD_UNLOAD";
    case VASIC_CMD_HQD_QUERY:
      return "HQD_QUERY";
    case VASIC_CMD_REG_WRITE:
      return "REG_WRITE";
    case VASIC_CMD_MES_ADD_QUEUE:
      return "MES_ADD_QUEUE";
    case VASIC_CMD_MES_REMOVE_QUEUE:
      return "MES_REMOVE_QUEUE";
    case VASIC_CMD_MES_SUSPEND:
      return "MES_SUSPEND";
    case VASIC_CMD_MES_RESUME:
      return "MES_RESUME";
    case VASIC_CMD_MES_RESET_QUEUE:
      return "MES_RESET_QUEUE";
    case VASIC_CMD_HQD_PREPARE:
      return "HQD_PREPARE";
    default:
      return "UNKNOWN";
  }
}

const char* name(vasic_status status) {
  switch (status) {
    case VASIC_OK:
      return "ok";
    case VASIC_EINVAL:
      return "EINVAL";
    case VASIC_ENOSYS:
      return "ENOSYS";
    case VASIC_EBUSY:
      return "EBUSY";
    case VASIC_EFAULT:
      return "EFAULT";
    case VASIC_ETIME:
      return "ETIME";
    case VASIC_ESTATE:
      return "ESTATE";
  }
  return "?";
}

vasic_status status_of(const base::Error& error) {
  switch (error.code()) {
    case EBUSY:
    case ENOENT:
      return VASIC_EBUSY;
    case EFAULT:
      return VASIC_EFAULT;
    case ETIME:
    case ETIMEDOUT:
      return VASIC_ETIME;
    case ENOSYS:
    case EOPNOTSUPP:
      return VASIC_ENOSYS;
    default:
      return VASIC_EINVAL;
  }
}

InterruptClass class_of(InterruptKind kind) {
  switch (kind) {
    case InterruptKind::kCpEndOfPipe:
      return InterruptClass::kEndOfPipe;
    case InterruptKind::kSdmaTrap:
      return InterruptClass::kTrap;
    case InterruptKind::kSqMessage:
      return InterruptClass::kMessage;
    default:
      return InterruptClass::kError;
  }
}

// The HQD slot that a command names, if the chip has it.
std::optional<HqdSlot> hqd_slot(const vasic_info& info, const vasic_command& command) {
  const std::uint64_t kind = command.arg[0];
  const std::uint64_t pipe = command.arg[2];
  const std::uint64_t slot = command.arg[3];
  const std::uint64_t xcc = command.arg[4];
  const std::uint64_t pipes =
      kind == VASIC_QUEUE_SDMA ? info.sdma_count : std::uint64_t{info.mec_count} * info.pipes_per_mec;
  const std::uint64_t slots = kind == VASIC_QUEUE_SDMA ? kSdmaSlots : info.queues_per_pipe;
  if (kind > VASIC_QUEUE_SDMA || pipe >= pipes || slot >= slots || xcc >= info.xcc_count) return std::nullopt;
  return HqdSlot{.kind = static_cast<QueueKind>(kind),
                 .pipe = static_cast<unsigned>(pipe),
                 .slot = static_cast<unsigned>(slot),
                 .xcc = static_cast<unsigned>(xcc)};
}

// What is too large for unsigned is too large anyway. 0: a driver that does not say.
unsigned table_bits(std::uint64_t bits) {
  return bits == 0 ? PageWalker::kMinTableBits : static_cast<unsigned>(std::min(bits, kTooManyTableBits));
}

VramSpace vram_space(const DeviceSlot& slot) {
  if (slot.hive.empty()) return slot.region.vram();
  return {slot.hive, slot.info.xgmi_node_id, slot.info.xgmi_segment_size};
}

}  // namespace

void Device::Interrupts::raise(const Interrupt& interrupt) {
  if (!dropped(class_of(interrupt.kind))) deliver(device_.encoder_.entry(interrupt));
}

void Device::Interrupts::raise_fault(const MemoryFault& fault, const FaultClient& client) {
  if (!device_.gmc_.report_fault(fault, device_.slot_.clock.now_ns())) return;
  if (!dropped(InterruptClass::kFault)) deliver(device_.encoder_.entry(fault, client));
}

bool Device::Interrupts::dropped(InterruptClass which) {
  ++device_.counters_.interrupts;
  if (!device_.controls_.take_dropped_interrupt(which)) return false;
  ++device_.counters_.interrupts_dropped;
  tracef(device_.slot_.trace, "ih: drop class=%u", static_cast<unsigned>(which));
  return true;
}

void Device::Interrupts::deliver(packets::ih::Entry entry) {
  entry.timestamp = device_.gpu_clock();
  entry.pasid = static_cast<std::uint16_t>(device_.gmc_.pasid(entry.vmid));
  device_.ih_.raise(entry);
}

Device::Device(DeviceSlot slot, const EngineFactory& make_engines)
    : slot_(slot),
      memory_(vram_space(slot), slot.bus, page_format(slot.info.pte_format)),
      gmc_(memory_, slot.trace, slot.info.retry_faults != 0),
      encoder_(slot.info),
      ih_(slot.info.ih_format, slot.region, slot.bus.ram(), slot.line, slot.trace),
      interrupts_(*this),
      engines_(make_engines(slot.info, EngineContext{slot.info, memory_, interrupts_, gmc_, slot.region, slot.trace,
                                                     slot.clock, controls_, slot.workers})) {
  set_state(VASIC_HOST_READY);
}

Device::~Device() { set_state(VASIC_HOST_GONE); }

void Device::set_state(vasic_host_state state) {
  state_ = state;
  slot_.region.set_state(state);
}

void Device::hang(const char* reason) {
  set_state(VASIC_HOST_HUNG);
  tracef(slot_.trace, "device: hung reason=%s", reason);
}

void Device::remove(Removal removal) {
  removed_ = true;
  // What the guest shares stays mapped: it sees words that do not change any more.
  if (removal == Removal::kAnnounced) set_state(VASIC_HOST_GONE);
  state_ = VASIC_HOST_GONE;
  tracef(slot_.trace, "device: removed announced=%u", removal == Removal::kAnnounced ? 1u : 0u);
}

Device::Counters Device::counters() const {
  Counters counters = counters_;
  counters.interrupts_dropped += ih_.dropped();
  counters.interrupts_waiting = ih_.waiting_count();
  return counters;
}

bool Device::poll() {
  if (removed_) return false;
  slot_.region.set_heartbeat(++heartbeat_);
  enter_translations();
  bool advanced = run_command();
  if (state_ == VASIC_HOST_READY && engines_->step()) advanced = true;
  leave_translations();
  return flush_interrupts() || advanced;
}

bool Device::flush_interrupts() {
  switch (ih_.flush()) {
    case Ih::Flush::kIdle:
      return false;
    case Ih::Flush::kDelivered:
      return true;
    case Ih::Flush::kBadReadPointer:
      break;
  }
  // A guest that cannot be told anything any more is lost; RESET brings it back.
  hang("ih-rptr");
  return false;
}

std::optional<std::string> Device::step_packet() {
  if (state_ != VASIC_HOST_READY) return std::nullopt;
  enter_translations();
  auto queue = engines_->step_packet();
  leave_translations();
  flush_interrupts();
  return queue;
}

void Device::enter_translations() {
  const std::uint32_t gen = slot_.region.open_walk_epoch(++walk_epoch_);
  if (gen == tlb_gen_) return;
  memory_.invalidate(kAllVmids);
  tlb_gen_ = gen;
}

void Device::leave_translations() { slot_.region.close_walk_epoch(tlb_gen_, ++walk_epoch_); }

Attention Device::attention() const {
  if (state_ != VASIC_HOST_READY) return Attention::kKicks;
  if (engines_->user_queues_mapped()) return Attention::kUserQueues;
  if (engines_->anything_mapped() || ih_.waiting()) return Attention::kKernel;
  return Attention::kKicks;
}

void Device::reset() {
  controls_.device_reset();
  engines_->reset();
  ih_.reset();
  gmc_.reset();
  slot_.bus.detach(slot_.gpu);
  set_state(VASIC_HOST_READY);
}

std::uint64_t Device::gpu_clock() const { return gpu_ticks(slot_.clock.now_ns(), slot_.info.clock_khz); }

base::Status Device::power_cycle() {
  removed_ = false;
  reset();
  TRY(slot_.region.power_on(slot_.info));
  last_seq_ = walk_epoch_ = tlb_gen_ = heartbeat_ = 0;
  set_state(VASIC_HOST_READY);
  tracef(slot_.trace, "device: power-cycle");
  return {};
}

bool Device::run_command() {
  const auto command = slot_.region.command_after(last_seq_);
  if (!command) return false;
  last_seq_ = command->seq;
  ++counters_.commands;
  const Outcome outcome = execute(*command);
  tracef(slot_.trace, "cmd: %s %s%s%s args=0x%llx,0x%llx,0x%llx,0x%llx,0x%llx,0x%llx", name(command->opcode),
         name(outcome.status), outcome.why.empty() ? "" : " why=", outcome.why.c_str(), command->arg[0],
         command->arg[1], command->arg[2], command->arg[3], command->arg[4], command->arg[5]);
  vasic_reply reply{};
  reply.seq = command->seq;
  reply.status = outcome.status;
  reply.value[0] = outcome.value[0];
  reply.value[1] = outcome.value[1];
  slot_.region.answer(reply);
  return true;
}

Device::Outcome Device::execute(const vasic_command& command) {
  if (command.opcode == VASIC_CMD_NOP) return {VASIC_OK, "", {gpu_clock()}};
  if (command.opcode == VASIC_CMD_RESET) return command_reset(command);
  if (state_ != VASIC_HOST_READY) return {VASIC_ESTATE, "hung"};
  switch (command.opcode) {
    case VASIC_CMD_MC_SETUP:
      return command_mc_setup(command);
    case VASIC_CMD_IH_SETUP:
      return command_ih_setup(command);
    case VASIC_CMD_RING_LOAD:
      return command_ring_load(command);
    case VASIC_CMD_RING_UNLOAD:
      return command_ring_unload(command);
    case VASIC_CMD_HQD_LOAD:
    case VASIC_CMD_HQD_UNLOAD:
    case VASIC_CMD_HQD_QUERY:
    case VASIC_CMD_HQD_PREPARE:
      return command_hqd(command);
    case VASIC_CMD_REG_WRITE:
      return command_reg_write(command);
    case VASIC_CMD_MES_ADD_QUEUE:
    case VASIC_CMD_MES_REMOVE_QUEUE:
    case VASIC_CMD_MES_SUSPEND:
    case VASIC_CMD_MES_RESUME:
    case VASIC_CMD_MES_RESET_QUEUE:
      return command_mes(command);
    default:
      return {VASIC_ENOSYS, "opcode"};
  }
}

Device::Outcome Device::command_reset(const vasic_command& command) {
  if (command.arg[0] != VASIC_ABI_VERSION) return {VASIC_EINVAL, "abi-version", {VASIC_ABI_VERSION}};
  reset();
  return {};
}

Device::Outcome Device::command_mc_setup(const vasic_command& command) {
  const McLayout layout{.vram_base = command.arg[0],
                        .gart_base = command.arg[1],
                        .gart_size = command.arg[2],
                        .gart_table = command.arg[3],
                        .table_bits = table_bits(command.arg[5]),
                        .va_pages = command.arg[6]};
  if (layout.gart_size > slot_.info.gart_size) return {VASIC_EINVAL, "gart-size"};
  if (!slot_.bus.attach(slot_.gpu, command.arg[4])) return {VASIC_EINVAL, "bar-address"};
  if (!memory_.set_mc(layout)) return {VASIC_EINVAL, "layout"};
  return {};
}

Device::Outcome Device::command_ih_setup(const vasic_command& command) {
  if (!ih_.setup(command.arg[0], command.arg[1], command.arg[2])) return {VASIC_EINVAL, "ring"};
  return {};
}

// The kind, if the chip has such a ring.
std::optional<RingKind> Device::ring_kind(std::uint64_t kind, std::uint64_t instance) const {
  if (kind > VASIC_RING_COMPUTE) return std::nullopt;
  const std::uint64_t count = kind == VASIC_RING_SDMA ? slot_.info.sdma_count : slot_.info.compute_rings;
  return instance < count ? std::optional(static_cast<RingKind>(kind)) : std::nullopt;
}

Device::Outcome Device::command_ring_load(const vasic_command& command) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  const auto [instance, base, size, rptr, doorbell, wptr] =
      std::tuple(command.arg[0], command.arg[1], command.arg[2], command.arg[3], command.arg[4], command.arg[5]);
  const auto kind = ring_kind(command.arg[6], instance);
  if (!kind) return {VASIC_EINVAL, "instance"};
  if (size < kMinKernelRing || size > kMaxKernelRing || !std::has_single_bit(size)) return {VASIC_EINVAL, "size"};
  if (base % kRingAlign != 0) return {VASIC_EINVAL, "base"};
  if (rptr % kPointerAlign != 0 || wptr % kPointerAlign != 0) return {VASIC_EINVAL, "pointer"};
  const auto index = static_cast<std::uint32_t>(doorbell);
  if (index != doorbell || !slot_.region.in_range(index)) return {VASIC_EINVAL, "doorbell"};
  const auto loaded = engines_->load_ring({.kind = *kind,
                                           .instance = static_cast<unsigned>(instance),
                                           .base = base,
                                           .size = size,
                                           .rptr_addr = rptr,
                                           .wptr_addr = wptr,
                                           .doorbell = index});
  if (!loaded.ok()) return {status_of(loaded.error()), loaded.error().message()};
  return {};
}

Device::Outcome Device::command_ring_unload(const vasic_command& command) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  const auto kind = ring_kind(command.arg[1], command.arg[0]);
  if (!kind) return {VASIC_EINVAL, "instance"};
  if (command.arg[2] > VASIC_UNLOAD_RESET) return {VASIC_EINVAL, "mode"};
  const auto unloaded =
      engines_->unload_ring(*kind, static_cast<unsigned>(command.arg[0]), static_cast<UnloadMode>(command.arg[2]));
  if (!unloaded.ok()) return {status_of(unloaded.error()), unloaded.error().message()};
  return {};
}

Device::Outcome Device::command_hqd(const vasic_command& command) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  const auto slot = hqd_slot(slot_.info, command);
  if (!slot) return {VASIC_EINVAL, "slot"};
  if (command.opcode == VASIC_CMD_HQD_QUERY) {
    const auto state = engines_->query_hqd(*slot);
    if (!state.ok()) return {status_of(state.error()), state.error().message()};
    return {VASIC_OK, "", {state->occupied ? 1u : 0u, state->pq_base}};
  }
  if (command.arg[6] > VASIC_HQD_BY_VALUE) return {VASIC_EINVAL, "flags"};
  const auto done = command.opcode == VASIC_CMD_HQD_LOAD      ? load_hqd(*slot, command)
                    : command.opcode == VASIC_CMD_HQD_PREPARE ? prepare_hqd(*slot, command)
                                                              : unload_hqd(*slot, command);
  if (!done.ok()) return {status_of(done.error()), done.error().message()};
  return {};
}

base::Status Device::prepare_hqd(const HqdSlot& slot, const vasic_command& command) {
  if (command.arg[6] == VASIC_HQD_BY_VALUE) return engines_->prepare_hqd_value(slot, slot_.region.mqd());
  if (command.arg[1] % kMqdAlign != 0) return base::Error(EINVAL, "mqd");
  return engines_->prepare_hqd(slot, command.arg[1]);
}

base::Status Device::load_hqd(const HqdSlot& slot, const vasic_command& command) {
  if (command.arg[5] >= VASIC_MAX_VMID) return base::Error(EINVAL, "vmid");
  if (command.arg[6] == VASIC_HQD_BY_VALUE) return engines_->load_hqd_value(slot, slot_.region.mqd());
  if (command.arg[1] % kMqdAlign != 0) return base::Error(EINVAL, "mqd");
  return engines_->load_hqd(slot, command.arg[1], static_cast<unsigned>(command.arg[5]));
}

base::Status Device::unload_hqd(const HqdSlot& slot, const vasic_command& command) {
  if (command.arg[5] > static_cast<std::uint64_t>(UnloadMode::kReset)) return base::Error(EINVAL, "mode");
  const auto mode = static_cast<UnloadMode>(command.arg[5]);
  if (command.arg[6] != VASIC_HQD_BY_VALUE) return engines_->unload_hqd(slot, mode);
  ASSIGN_OR_RETURN(const packets::Words mqd, engines_->unload_hqd_value(slot, mode));
  slot_.region.put_mqd(mqd);
  return {};
}

base::Status Device::mes_add_queue(const vasic_command& command) {
  const auto doorbell = static_cast<std::uint32_t>(command.arg[7]);
  const auto pasid = static_cast<std::uint32_t>(command.arg[0]);
  if (doorbell != command.arg[7] || !slot_.region.in_range(doorbell)) return base::Error(EINVAL, "doorbell");
  if (pasid != command.arg[0] || pasid > kMaxPasid) return base::Error(EINVAL, "pasid");
  if (command.arg[4] % kMqdAlign != 0) return base::Error(EINVAL, "mqd");
  if (command.arg[8] != VASIC_QUEUE_COMPUTE && command.arg[8] != VASIC_QUEUE_SDMA) return base::Error(EINVAL, "kind");
  if ((command.arg[9] & ~std::uint64_t{kMesFlags}) != 0) return base::Error(EINVAL, "flags");
  if (command.arg[11] >= kMesPriorities) return base::Error(EINVAL, "priority");
  const std::uint64_t gws_end = std::uint64_t{packets::hi32(command.arg[12])} + packets::lo32(command.arg[12]);
  if (gws_end > slot_.info.gws_size) return base::Error(EINVAL, "gws");
  return engines_->mes_add_queue({.pasid = pasid,
                                  .page_directory = command.arg[1],
                                  .process_context = command.arg[2],
                                  .gang_context = command.arg[3],
                                  .mqd = command.arg[4],
                                  .wptr_addr = command.arg[5],
                                  .doorbell = doorbell,
                                  .kind = static_cast<QueueKind>(command.arg[8]),
                                  .exclusive = (command.arg[9] & VASIC_MES_EXCLUSIVE) != 0,
                                  .process_quantum = packets::hi32(command.arg[10]),
                                  .gang_quantum = packets::lo32(command.arg[10]),
                                  .priority = packets::lo32(command.arg[11])});
}

Device::Outcome Device::command_mes(const vasic_command& command) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  const auto doorbell = static_cast<std::uint32_t>(command.arg[0]);
  base::Status done;
  switch (command.opcode) {
    case VASIC_CMD_MES_ADD_QUEUE:
      done = mes_add_queue(command);
      break;
    case VASIC_CMD_MES_SUSPEND:
      done = engines_->mes_suspend(command.arg[0]);
      break;
    case VASIC_CMD_MES_RESUME:
      done = engines_->mes_resume(command.arg[0]);
      break;
    default:
      if (doorbell != command.arg[0] || !slot_.region.in_range(doorbell)) return {VASIC_EINVAL, "doorbell"};
      done = command.opcode == VASIC_CMD_MES_RESET_QUEUE ? engines_->mes_reset_queue(doorbell)
                                                         : engines_->mes_remove_queue(doorbell, command.arg[1]);
  }
  if (!done.ok()) return {status_of(done.error()), done.error().message()};
  return {};
}

Device::Outcome Device::command_reg_write(const vasic_command& command) {
  const auto index = static_cast<std::uint32_t>(command.arg[0]);
  const auto value = static_cast<std::uint32_t>(command.arg[1]);
  if (index != command.arg[0] || value != command.arg[1]) return {VASIC_EINVAL, "width"};
  if (!gmc_.write(index, value)) return {VASIC_EINVAL, "index"};
  return {};
}

}  // namespace vasicd
