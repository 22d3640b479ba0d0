// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Engines: owns kernel rings, hardware queue slots and the scheduler, and gives each queue its share of a step. One
// step copies at most one queue's budget in all, so that doorbells of the others are seen soon; a queue that did not
// get its turn is first in the next step.
#include "vasicd/blocks/engines.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <tuple>
#include <vector>

#include "vasic/vasic_abi.h"
#include "vasicd/blocks/cp/cp_ring.h"
#include "vasicd/blocks/queue/hqd.h"
#include "vasicd/blocks/queue/packet_queue.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/sched/hws.h"
#include "vasicd/blocks/sched/mes.h"
#include "vasicd/blocks/sched/queue_loader.h"
#include "vasicd/blocks/sched/scheduler.h"
#include "vasicd/blocks/sdma/sdma_queue.h"

namespace vasicd {
namespace {

constexpr unsigned kSdmaSlotsPerEngine = 8;

class EnginesImpl final : public Engines {
 public:
  EnginesImpl(const vasic_info& info, EngineContext context);

  base::Status load_ring(const KernelRing& ring) override;
  base::Status unload_ring(RingKind kind, unsigned instance, UnloadMode mode) override;
  base::Status prepare_hqd(const HqdSlot& slot, GpuAddr mqd) override;
  base::Status load_hqd(const HqdSlot& slot, GpuAddr mqd, unsigned vmid) override;
  base::Status unload_hqd(const HqdSlot& slot, UnloadMode mode) override;
  base::Result<HqdState> query_hqd(const HqdSlot& slot) override;
  base::Status prepare_hqd_value(const HqdSlot& slot, packets::WordView mqd) override;
  base::Status load_hqd_value(const HqdSlot& slot, packets::WordView mqd) override;
  base::Result<packets::Words> unload_hqd_value(const HqdSlot& slot, UnloadMode mode) override;
  base::Status mes_add_queue(const MesQueue& queue) override;
  base::Status mes_remove_queue(std::uint32_t doorbell, std::uint64_t gang) override;
  base::Status mes_suspend(std::uint64_t gang) override;
  base::Status mes_resume(std::uint64_t gang) override;
  base::Status mes_reset_queue(std::uint32_t doorbell) override;
  void reset() override;
  bool step() override;
  std::optional<std::string> step_packet() override;
  [[nodiscard]] std::vector<QueueStatus> queues() override;
  [[nodiscard]] bool anything_mapped() const override {
    return !rings_.empty() || hws_.loaded(0) || user_queues_mapped();
  }
  [[nodiscard]] bool user_queues_mapped() const override { return !slots_.empty() || scheduler_.anything_mapped(); }

 private:
  // A queue that the driver loaded into a slot without a scheduler. The driver does so for each XCC, and all of them
  // are one queue: that of the first XCC runs, and the first unload stops it.
  struct Loaded {
    std::unique_ptr<PacketQueue> queue;  // null: stopped, and to be unloaded from the other XCCs
    GpuAddr pq_base = 0;
    std::uint32_t xccs = 0;
  };
  // Pipe or engine, slot; compute and SDMA apart.
  using SlotKey = std::tuple<QueueKind, unsigned, unsigned>;
  using RingKey = std::pair<RingKind, unsigned>;

  void append_queues(std::vector<PacketQueue*>& out);
  void order_turns();
  [[nodiscard]] bool may_run(const PacketQueue& queue) const;
  [[nodiscard]] base::Status check_slot(const HqdSlot& slot) const;
  [[nodiscard]] base::Status check_free(const HqdSlot& slot) const;
  Loaded* loaded_at(const HqdSlot& slot);
  base::Status join_xcc(const HqdSlot& slot, const Mqd& mqd);
  base::Status prepare(QueueKind kind, const Mqd& mqd);
  base::Status put(const HqdSlot& slot, const Mqd& mqd, unsigned vmid);
  base::Status check_mes() const;

  const vasic_info& info_;
  EngineContext context_;
  const bool has_mes_;
  Scheduler scheduler_;
  Hws hws_;
  Mes mes_;
  std::map<RingKey, std::unique_ptr<PacketQueue>> rings_;
  std::map<SlotKey, Loaded> slots_;
  std::vector<PacketQueue*> turn_;  // queues in the order of their turns, in step()
  std::size_t first_ = 0;           // index of the queue that is first in step()
  std::size_t first_stepped_ = 0;   // index of the queue that is first in step_packet()
  unsigned steps_ = 0;
};

EnginesImpl::EnginesImpl(const vasic_info& info, EngineContext context)
    : info_(info),
      context_(context),
      has_mes_(info.scheduler == VASIC_SCHEDULER_MES),
      scheduler_(context, has_mes_ ? "mes" : "hws"),
      hws_(context, scheduler_),
      mes_(context, scheduler_) {
  if (has_mes_) mes_.start();
}

base::Status EnginesImpl::load_ring(const KernelRing& ring) {
  const unsigned count = ring.kind == RingKind::kSdma ? info_.sdma_count : info_.compute_rings;
  if (ring.instance >= count) return base::Error(EINVAL, "no such ring");
  const RingKey key{ring.kind, ring.instance};
  if (rings_.contains(key)) return base::Error(EBUSY, "ring is loaded");
  if (ring.kind == RingKind::kSdma) {
    ASSIGN_OR_RETURN(rings_[key], SdmaQueue::load_ring(context_, ring));
  } else {
    ASSIGN_OR_RETURN(rings_[key], ComputeRing::load(context_, ring));
  }
  return {};
}

base::Status EnginesImpl::unload_ring(RingKind kind, unsigned instance, UnloadMode mode) {
  const auto it = rings_.find({kind, instance});
  if (it == rings_.end()) return base::Error(EBUSY, "ring is not loaded");
  if (it->second->hung() && mode != UnloadMode::kReset) return base::Error(ETIME, "ring hangs");
  it->second->unload(mode);
  rings_.erase(it);
  return {};
}

base::Status EnginesImpl::check_slot(const HqdSlot& slot) const {
  bool exists = true;  // the HIQ: each XCC has one, in any slot that the driver chooses
  if (slot.kind == QueueKind::kSdma) exists = slot.pipe < info_.sdma_count && slot.slot < kSdmaSlotsPerEngine;
  if (slot.kind == QueueKind::kCompute) {
    exists = slot.pipe < info_.mec_count * info_.pipes_per_mec && slot.slot < info_.queues_per_pipe;
  }
  if (!exists || slot.xcc >= std::max(info_.xcc_count, 1u)) return base::Error(EINVAL, "no such queue slot");
  return {};
}

base::Status EnginesImpl::check_free(const HqdSlot& slot) const {
  const auto it = slots_.find({slot.kind, slot.pipe, slot.slot});
  const bool taken = it != slots_.end() && ((it->second.xccs >> slot.xcc) & 1u) != 0;
  if (taken || scheduler_.query(slot).has_value()) return base::Error(EBUSY, "queue slot is occupied");
  return {};
}

EnginesImpl::Loaded* EnginesImpl::loaded_at(const HqdSlot& slot) {
  const auto it = slots_.find({slot.kind, slot.pipe, slot.slot});
  const unsigned xcc = slot.kind == QueueKind::kSdma ? 0 : slot.xcc;
  return it != slots_.end() && ((it->second.xccs >> xcc) & 1u) != 0 ? &it->second : nullptr;
}

base::Status EnginesImpl::prepare(QueueKind kind, const Mqd& mqd) {
  ASSIGN_OR_RETURN(const std::uint32_t doorbell, doorbell_of(context_, kind, mqd));
  context_.doorbells.take(doorbell);
  return {};
}

base::Status EnginesImpl::put(const HqdSlot& slot, const Mqd& mqd, unsigned vmid) {
  ASSIGN_OR_RETURN(auto queue, load_user_queue(context_, {slot, vmid, 0}, mqd));
  const GpuAddr pq_base = queue->pq_base();
  slots_[{slot.kind, slot.pipe, slot.slot}] = {std::move(queue), pq_base, 1u};
  return {};
}

base::Status EnginesImpl::join_xcc(const HqdSlot& slot, const Mqd& mqd) {
  const auto it = slots_.find({slot.kind, slot.pipe, slot.slot});
  if (it == slots_.end()) return base::Error(EINVAL, "queue is not loaded on the first XCC");
  ASSIGN_OR_RETURN(const ComputeHqd hqd, read_compute_mqd(packets::mqd::compute_layout(info_.gfx_level), mqd));
  if (hqd.base != it->second.pq_base) return base::Error(EINVAL, "another queue is loaded on the first XCC");
  it->second.xccs |= 1u << slot.xcc;
  return {};
}

base::Status EnginesImpl::prepare_hqd(const HqdSlot& slot, GpuAddr mqd) {
  TRY(check_slot(slot));
  if (slot.kind == QueueKind::kHiq) return base::Error(EINVAL, "the HIQ needs no preparation");
  ASSIGN_OR_RETURN(const Mqd place, user_mqd_at(context_, slot.kind, mqd));
  return prepare(slot.kind, place);
}

base::Status EnginesImpl::load_hqd(const HqdSlot& slot, GpuAddr mqd, unsigned vmid) {
  TRY(check_slot(slot));
  if (slot.kind == QueueKind::kHiq) {
    if (has_mes_) return base::Error(EOPNOTSUPP, "the MES schedules, there is no HIQ");
    return hws_.load_hiq(slot.xcc, mqd);
  }
  if (vmid >= VASIC_MAX_VMID) return base::Error(EINVAL, "no such VMID");
  TRY(check_free(slot));
  ASSIGN_OR_RETURN(const Mqd place, user_mqd_at(context_, slot.kind, mqd));
  if (slot.kind == QueueKind::kCompute && slot.xcc != 0) return join_xcc(slot, place);
  return put(slot, place, vmid);
}

base::Status EnginesImpl::unload_hqd(const HqdSlot& slot, UnloadMode mode) {
  TRY(check_slot(slot));
  if (slot.kind == QueueKind::kHiq) return hws_.unload_hiq(slot.xcc, mode);
  Loaded* const loaded = loaded_at(slot);
  if (loaded == nullptr) return scheduler_.unload(slot, mode);
  if (loaded->queue != nullptr) {
    if (loaded->queue->hung() && mode != UnloadMode::kReset) return base::Error(ETIME, "queue hangs");
    loaded->queue->unload(mode);
    loaded->queue.reset();
  }
  loaded->xccs &= slot.kind == QueueKind::kSdma ? 0u : ~(1u << slot.xcc);
  if (loaded->xccs == 0) slots_.erase({slot.kind, slot.pipe, slot.slot});
  return {};
}

base::Result<HqdState> EnginesImpl::query_hqd(const HqdSlot& slot) {
  TRY(check_slot(slot));
  if (slot.kind == QueueKind::kHiq) {
    return hws_.loaded(slot.xcc) ? HqdState{true, hws_.hiq_base()} : HqdState{};
  }
  if (const Loaded* const loaded = loaded_at(slot); loaded != nullptr) return HqdState{true, loaded->pq_base};
  const auto scheduled = scheduler_.query(slot);
  return scheduled.has_value() ? HqdState{true, *scheduled} : HqdState{};
}

base::Status EnginesImpl::prepare_hqd_value(const HqdSlot& slot, packets::WordView mqd) {
  TRY(check_slot(slot));
  if (slot.kind != QueueKind::kSdma) return base::Error(EINVAL, "only MQDs of SDMA queues go by value");
  return prepare(slot.kind, Mqd(mqd));
}

base::Status EnginesImpl::load_hqd_value(const HqdSlot& slot, packets::WordView mqd) {
  TRY(check_slot(slot));
  if (slot.kind != QueueKind::kSdma) return base::Error(EINVAL, "only MQDs of SDMA queues go by value");
  TRY(check_free(slot));
  return put(slot, Mqd(mqd), 0);
}

base::Result<packets::Words> EnginesImpl::unload_hqd_value(const HqdSlot& slot, UnloadMode mode) {
  TRY(check_slot(slot));
  if (slot.kind != QueueKind::kSdma) return base::Error(EINVAL, "only MQDs of SDMA queues go by value");
  Loaded* const loaded = loaded_at(slot);
  if (loaded == nullptr || loaded->queue == nullptr) return base::Error(EBUSY, "queue slot is empty");
  if (loaded->queue->hung() && mode != UnloadMode::kReset) return base::Error(ETIME, "queue hangs");
  loaded->queue->unload(mode);
  const packets::WordView saved = loaded->queue->mqd().words();
  packets::Words words(saved.begin(), saved.end());
  slots_.erase({slot.kind, slot.pipe, slot.slot});
  return words;
}

base::Status EnginesImpl::check_mes() const {
  if (!has_mes_) return base::Error(EOPNOTSUPP, "this chip has no MES");
  return {};
}

base::Status EnginesImpl::mes_add_queue(const MesQueue& queue) {
  TRY(check_mes());
  return mes_.add_queue(queue);
}

base::Status EnginesImpl::mes_remove_queue(std::uint32_t doorbell, std::uint64_t gang) {
  TRY(check_mes());
  return mes_.remove_queue(doorbell, gang);
}

base::Status EnginesImpl::mes_suspend(std::uint64_t gang) {
  TRY(check_mes());
  return mes_.suspend(gang);
}

base::Status EnginesImpl::mes_resume(std::uint64_t gang) {
  TRY(check_mes());
  return mes_.resume(gang);
}

base::Status EnginesImpl::mes_reset_queue(std::uint32_t doorbell) {
  TRY(check_mes());
  return mes_.reset_queue(doorbell);
}

void EnginesImpl::reset() {
  rings_.clear();
  slots_.clear();
  hws_.reset();
  scheduler_.reset();
  if (has_mes_) mes_.start();
  first_ = 0;
}

void EnginesImpl::append_queues(std::vector<PacketQueue*>& out) {
  for (const auto& [key, ring] : rings_) out.push_back(ring.get());
  for (const auto& [where, loaded] : slots_) {
    if (loaded.queue != nullptr) out.push_back(loaded.queue.get());
  }
  out.insert(out.end(), scheduler_.mapped().begin(), scheduler_.mapped().end());
}

bool EnginesImpl::may_run(const PacketQueue& queue) const {
  return context_.controls.running() == Running::kAll || queue.ring_vmid() == 0;
}

std::optional<std::string> EnginesImpl::step_packet() {
  if (hws_.step(1)) return "hws";
  scheduler_.step();
  turn_.clear();
  append_queues(turn_);
  for (std::size_t i = 0; i < turn_.size(); ++i) {
    PacketQueue* const queue = turn_[(first_stepped_ + i) % turn_.size()];
    Budget budget = Budget::whole_packet();
    queue->step(budget);
    if (budget.packets != 0) continue;
    first_stepped_ = (first_stepped_ + i + 1) % turn_.size();
    return queue->name();
  }
  return std::nullopt;
}

std::vector<QueueStatus> EnginesImpl::queues() {
  std::vector<PacketQueue*> all;
  append_queues(all);
  std::vector<QueueStatus> states;
  for (const PacketQueue* queue : all) states.push_back(queue->status());
  return states;
}

// Orders queues by priority, and those of equal priority so that one that did not get its turn is first. Every few
// steps priority is ignored and each queue is first in its turn, so that no queue starves.
void EnginesImpl::order_turns() {
  constexpr unsigned kFairTurn = 8;
  const bool fair = ++steps_ % kFairTurn == 0;
  first_ %= turn_.size();
  const std::size_t first = fair ? steps_ / kFairTurn % turn_.size() : first_;
  std::rotate(turn_.begin(), turn_.begin() + static_cast<std::ptrdiff_t>(first), turn_.end());
  if (fair) return;
  std::stable_sort(turn_.begin(), turn_.end(),
                   [](const PacketQueue* a, const PacketQueue* b) { return a->priority() > b->priority(); });
}

bool EnginesImpl::step() {
  if (context_.controls.running() == Running::kNothing) return false;
  first_stepped_ = 0;
  bool advanced = hws_.step(Budget::kPackets);
  advanced = scheduler_.step() || advanced;
  turn_.clear();
  append_queues(turn_);
  if (turn_.empty()) return advanced;
  order_turns();
  std::uint64_t bytes = Budget::kBytes;
  for (std::size_t i = 0; i < turn_.size() && bytes > 0; ++i) {
    PacketQueue* const queue = turn_[i];
    ++first_;
    if (!may_run(*queue)) continue;
    Budget budget;
    budget.bytes = bytes;
    advanced = queue->step(budget) || advanced;
    bytes = budget.bytes;
  }
  return advanced;
}

}  // namespace

std::unique_ptr<Engines> Engines::create(const vasic_info& info, EngineContext context) {
  return std::make_unique<EnginesImpl>(info, context);
}

}  // namespace vasicd
