// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Gives VMIDs to processes and slots to their queues, for a limited time when others wait.
#include <algorithm>
#include <bit>
#include <cinttypes>

#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/blocks/queue/trace_line.h"
#include "vasicd/blocks/sched/queue_loader.h"
#include "vasicd/blocks/sched/scheduler.h"

namespace vasicd {

namespace {

constexpr std::uint64_t kMinQuantumNs = 1'000'000;
constexpr std::uint64_t kMaxQuantumNs = 1'000'000'000;
// A queue without work loses its slot sooner, but not so soon that the scheduler does nothing but switch.
constexpr std::uint64_t kMinIdleQuantumNs = 500'000;
constexpr std::uint64_t kMaxIdleQuantumNs = 8'000'000;
constexpr std::uint64_t kLookNs = 200'000;

}  // namespace

// --- VMIDs.

bool Scheduler::process_waits(const Process& process) {
  return process.vmid == 0 &&
         std::any_of(process.queues.begin(), process.queues.end(), [](const auto& queue) { return queue->waits(); });
}

unsigned Scheduler::free_vmid() const {
  std::uint32_t free = resources_.vmid_mask;
  unsigned bound = 0;
  for (const auto& process : processes_) {
    free &= ~(1u << process->vmid);
    bound += process->vmid != 0 ? 1 : 0;
  }
  if (process_limit_ != 0 && bound >= process_limit_) return 0;
  for (unsigned vmid = 1; vmid < VASIC_MAX_VMID; ++vmid) {
    if (((free >> vmid) & 1u) != 0) return vmid;
  }
  return 0;
}

void Scheduler::bind(Process& process, unsigned vmid) {
  process.vmid = vmid;
  process.since = now();
  trace_line(context_.trace, name_, "map_process pasid=%u vmid=%u pd=0x%" PRIx64, process.spec.pasid, vmid,
             process.spec.page_directory);
  context_.registers.bind_vmid(vmid, process.spec.page_directory, process.spec.pasid);
  context_.registers.set_retry(vmid, process.spec.retry);
}

void Scheduler::unbind(Process& process) {
  if (process.vmid == 0) return;
  context_.registers.unbind_vmid(process.vmid);
  trace_line(context_.trace, name_, "unmap_process pasid=%u vmid=%u", process.spec.pasid, process.vmid);
  process.vmid = 0;
  process.since = now();
}

bool Scheduler::vacate(Process& process) {
  if (std::any_of(process.queues.begin(), process.queues.end(), [](const auto& queue) { return queue->hung(); })) {
    return false;
  }
  for (auto& queue : process.queues) {
    if (queue->mapped()) unmap(*queue, UnloadMode::kSave);
  }
  unbind(process);
  return true;
}

void Scheduler::give_vmids() {
  for (auto& process : processes_) {
    const bool used = std::any_of(process->queues.begin(), process->queues.end(),
                                  [](const auto& queue) { return queue->mapped() || queue->waits(); });
    if (!used) unbind(*process);
  }
  for (unsigned vmid = free_vmid(); vmid != 0; vmid = free_vmid()) {
    // The process that has been waiting longest is first; the order of the list breaks ties.
    Process* next = nullptr;
    for (auto& process : processes_) {
      if (process_waits(*process) && (next == nullptr || process->since < next->since)) next = process.get();
    }
    if (next == nullptr) return;
    bind(*next, vmid);
  }
}

// --- Slots.

bool Scheduler::usable(const HqdSlot& slot) const {
  const std::uint8_t mask = slot.kind == QueueKind::kSdma ? resources_.sdma : resources_.compute[slot.pipe];
  return ((mask >> slot.slot) & 1u) != 0;
}

std::optional<HqdSlot> Scheduler::free_slot(const QueueSpec& spec) {
  HqdSlot slot{.kind = spec.kind};
  if (spec.kind == QueueKind::kCompute) {
    // Pipe by pipe, as they work in parallel.
    for (slot.slot = 0; slot.slot < SchedulerResources::kSlots; ++slot.slot) {
      for (slot.pipe = 0; slot.pipe < SchedulerResources::kPipes; ++slot.pipe) {
        if (usable(slot) && ((used(slot) >> slot.slot) & 1u) == 0) return slot;
      }
    }
    return std::nullopt;
  }
  slot.pipe = spec.sdma_engine.value_or(0);
  if (!spec.sdma_engine.has_value()) {
    const auto load = [&](unsigned engine) { return std::popcount(used_sdma_[engine]); };
    for (unsigned engine = 1; engine < context_.info.sdma_count; ++engine) {
      if (load(engine) < load(slot.pipe)) slot.pipe = engine;
    }
  }
  for (slot.slot = 0; slot.slot < SchedulerResources::kSlots; ++slot.slot) {
    if (usable(slot) && ((used(slot) >> slot.slot) & 1u) == 0) return slot;
  }
  return std::nullopt;
}

bool Scheduler::gws_taken() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
    return std::any_of(process->queues.begin(), process->queues.end(),
                       [](const auto& queue) { return queue->mapped() && queue->spec.gws; });
  });
}

bool Scheduler::give_slots() {
  std::vector<std::pair<Process*, Queue*>> waiting;
  for (auto& process : processes_) {
    if (process->vmid == 0) continue;
    for (auto& queue : process->queues) {
      if (queue->waits()) waiting.emplace_back(process.get(), queue.get());
    }
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) {
    if (a.second->spec.priority != b.second->spec.priority) return a.second->spec.priority > b.second->spec.priority;
    return a.second->since < b.second->since;
  });
  bool work = false;
  for (const auto& [process, queue] : waiting) {
    if (queue->spec.gws && gws_taken()) continue;
    const auto slot = free_slot(queue->spec);
    if (slot.has_value() && map(*process, *queue, *slot)) work = !queue->idle() || work;
  }
  return work;
}

bool Scheduler::schedule() {
  give_vmids();
  const bool work = give_slots();
  any_waits_ = std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
    return std::any_of(process->queues.begin(), process->queues.end(),
                       [](const auto& queue) { return queue->waits(); });
  });
  return work;
}

// --- Time.

bool Scheduler::expired(std::uint64_t since, std::uint64_t quantum_ns, bool idle) const {
  const std::uint64_t ran = now() - since;
  return ran >= std::clamp(quantum_ns, kMinQuantumNs, kMaxQuantumNs) || (idle && ran >= idle_quantum_);
}

// Takes VMIDs from as many processes as wait for one.
std::size_t Scheduler::free_vmids() {
  auto waiting = std::count_if(processes_.begin(), processes_.end(), [](const auto& p) { return process_waits(*p); });
  std::size_t freed = 0;
  for (auto& process : processes_) {
    if (waiting == 0) break;
    if (process->vmid == 0) continue;
    const bool idle =
        std::all_of(process->queues.begin(), process->queues.end(), [](const auto& queue) { return queue->idle(); });
    if (!expired(process->since, process->spec.quantum_ns, idle) || !vacate(*process)) continue;
    ++freed;
    --waiting;
  }
  return freed;
}

void Scheduler::Demand::add(const Queue& queue, bool gws_taken) {
  if (queue.spec.gws && gws_taken) {
    ++gws;
  } else if (queue.spec.kind == QueueKind::kCompute) {
    ++compute;
  } else if (queue.spec.sdma_engine.has_value()) {
    ++sdma[*queue.spec.sdma_engine];
  } else {
    ++any_sdma;
  }
}

bool Scheduler::Demand::take(const Queue& queue) {
  std::size_t* wanted = &compute;
  if (queue.slot.kind == QueueKind::kSdma) wanted = sdma[queue.slot.pipe] > 0 ? &sdma[queue.slot.pipe] : &any_sdma;
  if (queue.spec.gws && gws > 0) wanted = &gws;
  if (*wanted == 0) return false;
  --*wanted;
  return true;
}

// Takes slots from as many queues as wait for a slot of that kind.
std::size_t Scheduler::free_slots() {
  Demand demand;
  std::vector<Queue*> mapped;
  const bool gws = gws_taken();
  for (auto& process : processes_) {
    if (process->vmid == 0) continue;
    for (auto& queue : process->queues) {
      if (queue->waits()) demand.add(*queue, gws);
      if (queue->hardware != nullptr) mapped.push_back(queue.get());
    }
  }
  std::sort(mapped.begin(), mapped.end(), [](const Queue* a, const Queue* b) { return a->since < b->since; });
  std::size_t freed = 0;
  for (Queue* queue : mapped) {
    if (queue->spec.is_static || queue->hung()) continue;
    if (!expired(queue->since, queue->spec.quantum_ns, queue->idle()) || !demand.take(*queue)) continue;
    unmap(*queue, UnloadMode::kSave);
    ++freed;
  }
  return freed;
}

bool Scheduler::step() {
  if (!any_waits_ || now() < next_look_) return false;
  next_look_ = now() + kLookNs;
  const std::size_t vmids = free_vmids();
  const std::size_t slots = free_slots();
  if (vmids + slots == 0) return false;
  const bool work = schedule();
  // When all queues are idle, looking at all of them often is not worth the time.
  idle_quantum_ = work ? kMinIdleQuantumNs : std::min(2 * idle_quantum_, kMaxIdleQuantumNs);
  return work;
}

}  // namespace vasicd
