// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The device's round and its commands. Every command argument is hostile; arguments that reach the engines are in
// range.
#include "vasicd/device.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>

#include "vasicd/context/trace.h"

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

// The slot that a command names, if the chip has it.
std::optional<HqdSlot> hqd_slot(const vasic_info& info, const vasic_hqd& hqd) {
  const bool sdma = hqd.kind == VASIC_QUEUE_SDMA;
  const std::uint64_t pipes = sdma ? info.sdma_count : std::uint64_t{info.mec_count} * info.pipes_per_mec;
  const std::uint64_t slots = sdma ? kSdmaSlots : info.queues_per_pipe;
  if (hqd.kind > VASIC_QUEUE_SDMA || hqd.pipe >= pipes || hqd.slot >= slots || hqd.xcc >= info.xcc_count)
    return std::nullopt;
  return HqdSlot{.kind = static_cast<QueueKind>(hqd.kind),
                 .pipe = static_cast<unsigned>(hqd.pipe),
                 .slot = static_cast<unsigned>(hqd.slot),
                 .xcc = static_cast<unsigned>(hqd.xcc)};
}

// Clamped, so that a value that does not fit into unsigned is refused as too large. 0: the driver does not say.
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
  // The shared memory stays mapped: the guest sees words that do not change any more.
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
  // No interrupt can be delivered any more, so the device is lost until a RESET.
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
  const auto& arg = command->cmd.arg;
  tracef(slot_.trace, "cmd: %s %s%s%s args=0x%llx,0x%llx,0x%llx,0x%llx,0x%llx,0x%llx", name(command->opcode),
         name(outcome.status), outcome.why.empty() ? "" : " why=", outcome.why.c_str(), arg[0], arg[1], arg[2], arg[3],
         arg[4], arg[5]);
  vasic_reply reply{};
  reply.seq = command->seq;
  reply.status = outcome.status;
  reply.value[0] = outcome.value[0];
  reply.value[1] = outcome.value[1];
  slot_.region.answer(reply);
  return true;
}

Device::Outcome Device::execute(const vasic_command& command) {
  const vasic_cmd& cmd = command.cmd;
  if (command.opcode == VASIC_CMD_NOP) return {VASIC_OK, "", {gpu_clock()}};
  if (command.opcode == VASIC_CMD_RESET) return command_reset(cmd.reset);
  if (state_ != VASIC_HOST_READY) return {VASIC_ESTATE, "hung"};
  switch (command.opcode) {
    case VASIC_CMD_MC_SETUP:
      return command_mc_setup(cmd.mc_setup);
    case VASIC_CMD_IH_SETUP:
      return command_ih_setup(cmd.ih_setup);
    case VASIC_CMD_RING_LOAD:
      return command_ring_load(cmd.ring_load);
    case VASIC_CMD_RING_UNLOAD:
      return command_ring_unload(cmd.ring_unload);
    case VASIC_CMD_HQD_LOAD:
    case VASIC_CMD_HQD_UNLOAD:
    case VASIC_CMD_HQD_QUERY:
    case VASIC_CMD_HQD_PREPARE:
      return command_hqd(command.opcode, cmd);
    case VASIC_CMD_REG_WRITE:
      return command_reg_write(cmd.reg_write);
    case VASIC_CMD_MES_ADD_QUEUE:
    case VASIC_CMD_MES_REMOVE_QUEUE:
    case VASIC_CMD_MES_SUSPEND:
    case VASIC_CMD_MES_RESUME:
    case VASIC_CMD_MES_RESET_QUEUE:
      return command_mes(command.opcode, cmd);
    default:
      return {VASIC_ENOSYS, "opcode"};
  }
}

Device::Outcome Device::command_reset(const vasic_cmd_reset& cmd) {
  if (cmd.abi_version != VASIC_ABI_VERSION) return {VASIC_EINVAL, "abi-version", {VASIC_ABI_VERSION}};
  reset();
  return {};
}

Device::Outcome Device::command_mc_setup(const vasic_cmd_mc_setup& cmd) {
  const McLayout layout{.vram_base = cmd.vram_base,
                        .gart_base = cmd.gart_base,
                        .gart_size = cmd.gart_size,
                        .gart_table = cmd.gart_table,
                        .table_bits = table_bits(cmd.table_bits),
                        .va_pages = cmd.va_pages};
  if (layout.gart_size > slot_.info.gart_size) return {VASIC_EINVAL, "gart-size"};
  if (!slot_.bus.attach(slot_.gpu, cmd.bar_address)) return {VASIC_EINVAL, "bar-address"};
  if (!memory_.set_mc(layout)) return {VASIC_EINVAL, "layout"};
  return {};
}

Device::Outcome Device::command_ih_setup(const vasic_cmd_ih_setup& cmd) {
  if (!ih_.setup(cmd.ring, cmd.size, cmd.wptr_addr)) return {VASIC_EINVAL, "ring"};
  return {};
}

// The kind, if the chip has such a ring.
std::optional<RingKind> Device::ring_kind(std::uint64_t kind, std::uint64_t instance) const {
  if (kind > VASIC_RING_COMPUTE) return std::nullopt;
  const std::uint64_t count = kind == VASIC_RING_SDMA ? slot_.info.sdma_count : slot_.info.compute_rings;
  return instance < count ? std::optional(static_cast<RingKind>(kind)) : std::nullopt;
}

// The index of a doorbell, if it is one.
std::optional<std::uint32_t> Device::doorbell(std::uint64_t index) const {
  const auto dword = static_cast<std::uint32_t>(index);
  return dword == index && slot_.region.in_range(dword) ? std::optional(dword) : std::nullopt;
}

Device::Outcome Device::outcome_of(const base::Status& done) {
  if (!done.ok()) return {status_of(done.error()), done.error().message()};
  return {};
}

Device::Outcome Device::command_ring_load(const vasic_cmd_ring_load& cmd) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  const auto kind = ring_kind(cmd.kind, cmd.instance);
  if (!kind) return {VASIC_EINVAL, "instance"};
  if (cmd.size < kMinKernelRing || cmd.size > kMaxKernelRing || !std::has_single_bit(cmd.size))
    return {VASIC_EINVAL, "size"};
  if (cmd.base % kRingAlign != 0) return {VASIC_EINVAL, "base"};
  if (cmd.rptr_addr % kPointerAlign != 0 || cmd.wptr_addr % kPointerAlign != 0) return {VASIC_EINVAL, "pointer"};
  const auto index = doorbell(cmd.doorbell);
  if (!index) return {VASIC_EINVAL, "doorbell"};
  return outcome_of(engines_->load_ring({.kind = *kind,
                                         .instance = static_cast<unsigned>(cmd.instance),
                                         .base = cmd.base,
                                         .size = cmd.size,
                                         .rptr_addr = cmd.rptr_addr,
                                         .wptr_addr = cmd.wptr_addr,
                                         .doorbell = *index}));
}

Device::Outcome Device::command_ring_unload(const vasic_cmd_ring_unload& cmd) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  const auto kind = ring_kind(cmd.kind, cmd.instance);
  if (!kind) return {VASIC_EINVAL, "instance"};
  if (cmd.mode > VASIC_UNLOAD_RESET) return {VASIC_EINVAL, "mode"};
  return outcome_of(
      engines_->unload_ring(*kind, static_cast<unsigned>(cmd.instance), static_cast<UnloadMode>(cmd.mode)));
}

Device::Outcome Device::command_hqd(std::uint32_t opcode, const vasic_cmd& cmd) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  // The arguments of each of these commands begin with the slot.
  const auto slot = hqd_slot(slot_.info, cmd.hqd_query.hqd);
  if (!slot) return {VASIC_EINVAL, "slot"};
  switch (opcode) {
    case VASIC_CMD_HQD_QUERY:
      return query_hqd(*slot);
    case VASIC_CMD_HQD_LOAD:
      return outcome_of(load_hqd(*slot, cmd.hqd_load));
    case VASIC_CMD_HQD_PREPARE:
      return outcome_of(prepare_hqd(*slot, cmd.hqd_prepare));
    default:
      return outcome_of(unload_hqd(*slot, cmd.hqd_unload));
  }
}

Device::Outcome Device::query_hqd(const HqdSlot& slot) {
  const auto state = engines_->query_hqd(slot);
  if (!state.ok()) return {status_of(state.error()), state.error().message()};
  return {VASIC_OK, "", {state->occupied ? 1u : 0u, state->pq_base}};
}

base::Status Device::prepare_hqd(const HqdSlot& slot, const vasic_cmd_hqd_prepare& cmd) {
  if (cmd.flags > VASIC_HQD_BY_VALUE) return base::Error(EINVAL, "flags");
  if (cmd.flags == VASIC_HQD_BY_VALUE) return engines_->prepare_hqd_value(slot, slot_.region.mqd());
  if (cmd.hqd.mqd % kMqdAlign != 0) return base::Error(EINVAL, "mqd");
  return engines_->prepare_hqd(slot, cmd.hqd.mqd);
}

base::Status Device::load_hqd(const HqdSlot& slot, const vasic_cmd_hqd_load& cmd) {
  if (cmd.flags > VASIC_HQD_BY_VALUE) return base::Error(EINVAL, "flags");
  if (cmd.vmid >= VASIC_MAX_VMID) return base::Error(EINVAL, "vmid");
  if (cmd.flags == VASIC_HQD_BY_VALUE) return engines_->load_hqd_value(slot, slot_.region.mqd());
  if (cmd.hqd.mqd % kMqdAlign != 0) return base::Error(EINVAL, "mqd");
  return engines_->load_hqd(slot, cmd.hqd.mqd, static_cast<unsigned>(cmd.vmid));
}

base::Status Device::unload_hqd(const HqdSlot& slot, const vasic_cmd_hqd_unload& cmd) {
  if (cmd.flags > VASIC_HQD_BY_VALUE) return base::Error(EINVAL, "flags");
  if (cmd.mode > VASIC_UNLOAD_RESET) return base::Error(EINVAL, "mode");
  const auto mode = static_cast<UnloadMode>(cmd.mode);
  if (cmd.flags != VASIC_HQD_BY_VALUE) return engines_->unload_hqd(slot, mode);
  ASSIGN_OR_RETURN(const packets::Words mqd, engines_->unload_hqd_value(slot, mode));
  slot_.region.put_mqd(mqd);
  return {};
}

Device::Outcome Device::command_mes(std::uint32_t opcode, const vasic_cmd& cmd) {
  if (!memory_.mc_ready()) return {VASIC_ESTATE, "no-mc-setup"};
  switch (opcode) {
    case VASIC_CMD_MES_ADD_QUEUE:
      return outcome_of(mes_add_queue(cmd.mes_add_queue));
    case VASIC_CMD_MES_REMOVE_QUEUE:
      return outcome_of(mes_remove_queue(cmd.mes_remove_queue));
    case VASIC_CMD_MES_SUSPEND:
      return outcome_of(engines_->mes_suspend(cmd.mes_gang.gang_context));
    case VASIC_CMD_MES_RESUME:
      return outcome_of(engines_->mes_resume(cmd.mes_gang.gang_context));
    default:
      return outcome_of(mes_reset_queue(cmd.mes_reset_queue));
  }
}

base::Status Device::mes_add_queue(const vasic_cmd_mes_add_queue& cmd) {
  const auto index = doorbell(cmd.doorbell);
  if (!index) return base::Error(EINVAL, "doorbell");
  if (cmd.pasid > kMaxPasid) return base::Error(EINVAL, "pasid");
  if (cmd.mqd % kMqdAlign != 0) return base::Error(EINVAL, "mqd");
  if (cmd.kind != VASIC_QUEUE_COMPUTE && cmd.kind != VASIC_QUEUE_SDMA) return base::Error(EINVAL, "kind");
  if ((cmd.flags & ~std::uint64_t{kMesFlags}) != 0) return base::Error(EINVAL, "flags");
  if (cmd.priority >= kMesPriorities) return base::Error(EINVAL, "priority");
  const std::uint64_t gws_end = std::uint64_t{packets::hi32(cmd.gws)} + packets::lo32(cmd.gws);
  if (gws_end > slot_.info.gws_size) return base::Error(EINVAL, "gws");
  return engines_->mes_add_queue({.pasid = static_cast<std::uint32_t>(cmd.pasid),
                                  .page_directory = cmd.page_directory,
                                  .process_context = cmd.process_context,
                                  .gang_context = cmd.gang_context,
                                  .mqd = cmd.mqd,
                                  .wptr_addr = cmd.wptr_addr,
                                  .doorbell = *index,
                                  .kind = static_cast<QueueKind>(cmd.kind),
                                  .exclusive = (cmd.flags & VASIC_MES_EXCLUSIVE) != 0,
                                  .process_quantum = packets::hi32(cmd.quanta),
                                  .gang_quantum = packets::lo32(cmd.quanta),
                                  .priority = static_cast<std::uint32_t>(cmd.priority)});
}

base::Status Device::mes_remove_queue(const vasic_cmd_mes_remove_queue& cmd) {
  const auto index = doorbell(cmd.doorbell);
  if (!index) return base::Error(EINVAL, "doorbell");
  return engines_->mes_remove_queue(*index, cmd.gang_context);
}

base::Status Device::mes_reset_queue(const vasic_cmd_mes_reset_queue& cmd) {
  const auto index = doorbell(cmd.doorbell);
  if (!index) return base::Error(EINVAL, "doorbell");
  return engines_->mes_reset_queue(*index);
}

Device::Outcome Device::command_reg_write(const vasic_cmd_reg_write& cmd) {
  const auto index = static_cast<std::uint32_t>(cmd.index);
  const auto value = static_cast<std::uint32_t>(cmd.value);
  if (index != cmd.index || value != cmd.value) return {VASIC_EINVAL, "width"};
  if (!gmc_.write(index, value)) return {VASIC_EINVAL, "index"};
  return {};
}

}  // namespace vasicd
