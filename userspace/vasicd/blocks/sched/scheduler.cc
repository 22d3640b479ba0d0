// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Lists of processes and queues, and which queue is in which slot. Who gets a VMID or a slot, and for how long, is
// decided in scheduler_share.cc.
#include "vasicd/blocks/sched/scheduler.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "vasicd/blocks/queue/trace_line.h"
#include "vasicd/blocks/sched/queue_loader.h"

namespace vasicd {

namespace {

constexpr std::size_t kMaxQueues = 4096;
constexpr std::size_t kMaxProcesses = 1024;

bool same_process(const ProcessSpec& a, const ProcessSpec& b) {
  return a.id == b.id && a.pasid == b.pasid && a.page_directory == b.page_directory;
}

}  // namespace

void Scheduler::set_resources(const SchedulerResources& resources) {
  resources_ = resources;
  const vasic_info& info = context_.info;
  const auto slots = static_cast<std::uint8_t>((1u << std::min(info.queues_per_pipe, resources_.kSlots)) - 1);
  for (unsigned pipe = 0; pipe < resources_.kPipes; ++pipe) {
    resources_.compute[pipe] &= pipe < info.pipes_per_mec ? slots : std::uint8_t{0};
  }
  for (auto& process : processes_) {
    if (process->vmid != 0 && ((resources_.vmid_mask >> process->vmid) & 1u) == 0) vacate(*process);
    for (auto& queue : process->queues) {
      if (queue->mapped() && !usable(queue->slot) && !queue->hung()) unmap(*queue, UnloadMode::kSave);
    }
  }
  schedule();
}

Scheduler::Process* Scheduler::find(std::uint64_t id) {
  const auto it = std::find_if(processes_.begin(), processes_.end(), [&](const auto& p) { return p->spec.id == id; });
  return it == processes_.end() ? nullptr : it->get();
}

// Moves queues that both lists name from the old list to the new one, without disturbing them.
void Scheduler::carry_over(Process& old, Process& fresh) {
  fresh.vmid = std::exchange(old.vmid, 0);
  fresh.since = old.since;
  std::unordered_map<GpuAddr, std::unique_ptr<Queue>*> by_mqd;
  for (auto& queue : old.queues) by_mqd[queue->spec.mqd] = &queue;
  for (auto& queue : fresh.queues) {
    const auto it = by_mqd.find(queue->spec.mqd);
    if (it == by_mqd.end() || *it->second == nullptr || !((*it->second)->spec == queue->spec)) continue;
    queue = std::move(*it->second);
    queue->broken = false;  // the driver may have corrected the MQD
  }
  std::erase(old.queues, nullptr);
}

void Scheduler::replace(std::vector<ProcessRequest> fresh) {
  std::vector<std::unique_ptr<Process>> old = std::exchange(processes_, {});
  std::unordered_map<std::uint64_t, Process*> by_id;
  for (auto& process : old) by_id[process->spec.id] = process.get();
  queue_count_ = 0;
  for (ProcessRequest& request : fresh) {
    if (request.queues.empty()) continue;
    auto process = std::make_unique<Process>();
    process->spec = request.process;
    process->since = now();
    for (const QueueSpec& spec : request.queues) {
      process->queues.push_back(std::make_unique<Queue>());
      process->queues.back()->spec = spec;
      process->queues.back()->since = now();
    }
    const auto it = by_id.find(request.process.id);
    if (it != by_id.end() && same_process(it->second->spec, process->spec)) carry_over(*it->second, *process);
    queue_count_ += process->queues.size();
    processes_.push_back(std::move(process));
  }
  for (auto& process : old) {
    for (auto& queue : process->queues) {
      if (queue->mapped()) unmap(*queue, queue->hung() ? UnloadMode::kReset : UnloadMode::kSave);
    }
    unbind(*process);
  }
  schedule();
}

std::vector<std::uint32_t> Scheduler::hung_outside(const std::vector<ProcessRequest>& fresh) const {
  std::vector<std::uint32_t> doorbells;
  for (const auto& process : processes_) {
    const auto request = std::find_if(fresh.begin(), fresh.end(),
                                      [&](const ProcessRequest& r) { return same_process(r.process, process->spec); });
    for (const auto& queue : process->queues) {
      if (!queue->hung()) continue;
      const bool stays = request != fresh.end() && std::find(request->queues.begin(), request->queues.end(),
                                                             queue->spec) != request->queues.end();
      if (!stays) doorbells.push_back(queue->spec.doorbell);
    }
  }
  return doorbells;
}

base::Status Scheduler::add(const ProcessSpec& spec, const QueueSpec& queue) {
  Process* process = find(spec.id);
  if (process != nullptr && !same_process(process->spec, spec)) {
    return base::Error(EINVAL, "process has another PASID or page directory than before");
  }
  if (contains([&](const ProcessSpec&, const QueueSpec& other) {
        return other.mqd == queue.mqd || other.doorbell == queue.doorbell;
      })) {
    return base::Error(EBUSY, "queue is there");
  }
  if (queue_count_ == kMaxQueues) return base::Error(EINVAL, "too many queues");
  if (process == nullptr) {
    if (processes_.size() == kMaxProcesses) return base::Error(EINVAL, "too many processes");
    processes_.push_back(std::make_unique<Process>());
    process = processes_.back().get();
    process->since = now();
  }
  process->spec = spec;
  process->queues.push_back(std::make_unique<Queue>());
  process->queues.back()->spec = queue;
  process->queues.back()->since = now();
  ++queue_count_;
  schedule();
  return {};
}

bool Scheduler::contains(const Selector& selected) const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    return std::any_of(process->queues.begin(), process->queues.end(),
                       [&](const auto& queue) { return selected(process->spec, queue->spec); });
  });
}

template <typename Act>
std::vector<std::uint32_t> Scheduler::stop(UnloadMode mode, const Selector& selected, Act act) {
  std::vector<std::uint32_t> hung;
  for (auto& process : processes_) {
    for (auto& queue : process->queues) {
      if (!selected(process->spec, queue->spec)) continue;
      if (queue->hung() && mode != UnloadMode::kReset) {
        hung.push_back(queue->spec.doorbell);
        continue;
      }
      if (queue->mapped()) unmap(*queue, mode);
      act(queue);
    }
  }
  drop_empty();
  schedule();
  return hung;
}

// Deletes queues that were removed, and processes without queues.
void Scheduler::drop_empty() {
  queue_count_ = 0;
  for (auto& process : processes_) {
    std::erase(process->queues, nullptr);
    queue_count_ += process->queues.size();
    if (process->queues.empty()) unbind(*process);
  }
  std::erase_if(processes_, [](const auto& process) { return process->queues.empty(); });
}

std::vector<std::uint32_t> Scheduler::remove(UnloadMode mode, const Selector& selected) {
  return stop(mode, selected, [](std::unique_ptr<Queue>& queue) { queue.reset(); });
}

std::vector<std::uint32_t> Scheduler::suspend(const Selector& selected) {
  return stop(UnloadMode::kSave, selected, [](std::unique_ptr<Queue>& queue) { queue->suspended = true; });
}

std::vector<std::uint32_t> Scheduler::save(const Selector& selected) {
  return stop(UnloadMode::kSave, selected, [](std::unique_ptr<Queue>&) {});
}

void Scheduler::resume(const Selector& selected) {
  for (auto& process : processes_) {
    for (auto& queue : process->queues) {
      if (!queue->suspended || !selected(process->spec, queue->spec)) continue;
      queue->suspended = false;
      queue->since = now();
    }
  }
  schedule();
}

Scheduler::Queue* Scheduler::at(const HqdSlot& slot) const {
  for (const auto& process : processes_) {
    if (process->vmid == 0) continue;
    for (const auto& queue : process->queues) {
      if (!queue->mapped() || queue->slot.kind != slot.kind) continue;
      if (queue->slot.pipe != slot.pipe || queue->slot.slot != slot.slot) continue;
      if (slot.kind == QueueKind::kSdma || ((queue->xccs >> slot.xcc) & 1u) != 0) return queue.get();
    }
  }
  return nullptr;
}

std::optional<GpuAddr> Scheduler::query(const HqdSlot& slot) const {
  const Queue* const queue = at(slot);
  return queue == nullptr ? std::nullopt : std::optional(queue->pq_base);
}

base::Status Scheduler::unload(const HqdSlot& slot, UnloadMode mode) {
  Queue* const queue = at(slot);
  if (queue == nullptr) return base::Error(EBUSY, "queue slot is empty");
  if (queue->hung() && mode != UnloadMode::kReset) return base::Error(ETIME, "queue hangs");
  // The driver goes through the XCCs one by one; the queue is stopped by the first.
  const std::uint32_t left = slot.kind == QueueKind::kSdma ? 0 : queue->xccs & ~(1u << slot.xcc);
  if (queue->hardware != nullptr) stop_hardware(*queue, mode);
  if (left != 0) {
    queue->xccs = left;
    return {};
  }
  unmap(*queue, mode);
  for (auto& process : processes_) {
    for (auto& each : process->queues) {
      if (each.get() == queue) each.reset();
    }
  }
  drop_empty();
  schedule();
  return {};
}

void Scheduler::stop_hardware(Queue& queue, UnloadMode mode) {
  queue.hardware->unload(mode);
  queue.hardware.reset();
  --running_;
  running_changed_ = true;
}

void Scheduler::unmap(Queue& queue, UnloadMode mode) {
  if (queue.hardware != nullptr) stop_hardware(queue, mode);
  queue.xccs = 0;
  queue.since = now();
  used(queue.slot) &= static_cast<std::uint8_t>(~(1u << queue.slot.slot));
}

base::Result<std::unique_ptr<PacketQueue>> Scheduler::load(const Process& process, const Queue& queue,
                                                           const HqdSlot& slot) const {
  ASSIGN_OR_RETURN(const Mqd mqd, user_mqd_at(context_, slot.kind, queue.spec.mqd));
  return load_user_queue(context_, {slot, process.vmid, queue.spec.wptr_addr}, mqd);
}

bool Scheduler::map(Process& process, Queue& queue, const HqdSlot& slot) {
  const QueueSpec& spec = queue.spec;
  trace_line(context_.trace, name_, "map_queue pasid=%u vmid=%u doorbell=0x%x mqd=0x%" PRIx64 " queue=%s",
             process.spec.pasid, process.vmid, spec.doorbell, spec.mqd, slot_name(slot).c_str());
  auto loaded = load(process, queue, slot);
  if (!loaded.ok()) {
    trace_line(context_.trace, name_, "map_queue pasid=%u mqd=0x%" PRIx64 " failed: %s", process.spec.pasid, spec.mqd,
               loaded.error().message().c_str());
    queue.broken = true;
    return false;
  }
  queue.hardware = std::move(loaded).value();
  queue.pq_base = queue.hardware->pq_base();
  queue.slot = slot;
  queue.since = now();
  queue.xccs = spec.kind == QueueKind::kSdma ? 1u : (1u << std::max(context_.info.xcc_count, 1u)) - 1;
  used(slot) |= static_cast<std::uint8_t>(1u << slot.slot);
  ++running_;
  running_changed_ = true;
  return true;
}

std::uint8_t& Scheduler::used(const HqdSlot& slot) {
  return slot.kind == QueueKind::kSdma ? used_sdma_[slot.pipe] : used_compute_[slot.pipe];
}

void Scheduler::reset() {
  for (auto& process : processes_) unbind(*process);
  processes_.clear();
  queue_count_ = running_ = 0;
  running_changed_ = true;
  resources_ = {};
  used_compute_ = {};
  used_sdma_ = {};
  process_limit_ = 0;
  any_waits_ = false;
}

const std::vector<PacketQueue*>& Scheduler::mapped() {
  if (!running_changed_) return mapped_;
  mapped_.clear();
  for (const auto& process : processes_) {
    for (const auto& queue : process->queues) {
      if (queue->hardware != nullptr) mapped_.push_back(queue->hardware.get());
    }
  }
  running_changed_ = false;
  return mapped_;
}

}  // namespace vasicd
