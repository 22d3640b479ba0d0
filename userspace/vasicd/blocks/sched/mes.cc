// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Checks the requests of the driver and passes them to the scheduler.
#include "vasicd/blocks/sched/mes.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>

#include "vasic/vasic_abi.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/blocks/queue/trace_line.h"
#include "vasicd/blocks/sched/queue_loader.h"

namespace vasicd {

namespace {

const std::string kName = "mes";
constexpr std::uint64_t kQuantumUnitNs = 100;
constexpr std::uint8_t kComputeSlots = 0x0c;
constexpr std::uint8_t kSdmaSlots = 0xfc;

Scheduler::Selector of_gang(std::uint64_t gang) {
  return [gang](const ProcessSpec&, const QueueSpec& queue) { return gang == 0 || queue.gang == gang; };
}

Scheduler::Selector of_doorbell(std::uint32_t doorbell) {
  return [doorbell](const ProcessSpec&, const QueueSpec& queue) { return queue.doorbell == doorbell; };
}

}  // namespace

void Mes::start() {
  SchedulerResources resources;
  for (unsigned vmid = std::max(context_.info.first_kfd_vmid, 1u); vmid < VASIC_MAX_VMID; ++vmid) {
    resources.vmid_mask |= 1u << vmid;
  }
  resources.compute.fill(kComputeSlots);
  resources.sdma = kSdmaSlots;
  scheduler_.set_resources(resources);
}

base::Status Mes::alive() const {
  if (context_.controls.hung(kName)) return base::Error(ETIME, "MES hangs");
  return {};
}

base::Status Mes::add_queue(const MesQueue& queue) {
  TRY(alive());
  if (queue.kind == QueueKind::kHiq) return base::Error(EINVAL, "MES schedules no HIQ");
  if (queue.process_context == 0) return base::Error(EINVAL, "queue without a process context");
  if (queue.gang_context == 0) return base::Error(EINVAL, "queue without a gang context");
  if (!context_.doorbells.in_range(queue.doorbell)) return base::Error(EINVAL, "doorbell is out of range");
  TRY(check_user_queue(context_, queue.kind, queue.mqd));
  trace_line(context_.trace, kName, "add_queue pasid=%u doorbell=0x%x mqd=0x%" PRIx64 " gang=0x%" PRIx64, queue.pasid,
             queue.doorbell, queue.mqd, queue.gang_context);
  return scheduler_.add({.id = queue.process_context,
                         .pasid = queue.pasid,
                         .page_directory = queue.page_directory,
                         .quantum_ns = queue.process_quantum * kQuantumUnitNs},
                        {.kind = queue.kind,
                         .mqd = queue.mqd,
                         .wptr_addr = queue.wptr_addr,
                         .doorbell = queue.doorbell,
                         .gang = queue.gang_context,
                         .quantum_ns = queue.gang_quantum * kQuantumUnitNs,
                         .priority = queue.priority,
                         .gws = queue.exclusive});
}

base::Status Mes::remove_queue(std::uint32_t doorbell, std::uint64_t gang) {
  TRY(alive());
  const Scheduler::Selector queue = of_doorbell(doorbell);
  if (!scheduler_.contains(queue)) return base::Error(ENOENT, "no queue of this doorbell");
  const auto meant = [&](const ProcessSpec& process, const QueueSpec& spec) {
    return queue(process, spec) && spec.gang == gang;
  };
  if (!scheduler_.contains(meant)) return base::Error(EINVAL, "queue is of another gang");
  trace_line(context_.trace, kName, "remove_queue doorbell=0x%x", doorbell);
  if (context_.controls.take_failing_unmap()) return base::Error(ETIME, "remove_queue fails, as asked for");
  if (!scheduler_.remove(UnloadMode::kSave, meant).empty()) return base::Error(ETIME, "queue hangs");
  return {};
}

base::Status Mes::suspend(std::uint64_t gang) {
  TRY(alive());
  if (gang != 0 && !scheduler_.contains(of_gang(gang))) return base::Error(ENOENT, "no such gang");
  trace_line(context_.trace, kName, "suspend gang=0x%" PRIx64, gang);
  if (context_.controls.take_failing_unmap()) return base::Error(ETIME, "suspend fails, as asked for");
  if (!scheduler_.suspend(of_gang(gang)).empty()) return base::Error(ETIME, "a queue hangs");
  return {};
}

base::Status Mes::resume(std::uint64_t gang) {
  TRY(alive());
  if (gang != 0 && !scheduler_.contains(of_gang(gang))) return base::Error(ENOENT, "no such gang");
  trace_line(context_.trace, kName, "resume gang=0x%" PRIx64, gang);
  scheduler_.resume(of_gang(gang));
  return {};
}

base::Status Mes::reset_queue(std::uint32_t doorbell) {
  TRY(alive());
  if (!scheduler_.contains(of_doorbell(doorbell))) return base::Error(ENOENT, "no queue of this doorbell");
  trace_line(context_.trace, kName, "reset_queue doorbell=0x%x", doorbell);
  scheduler_.remove(UnloadMode::kReset, of_doorbell(doorbell));
  return {};
}

}  // namespace vasicd
