// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// HIQ packets. The HIQ belongs to the driver: a bad packet is traced and skipped, but words that are no packet at all
// hang the scheduler, because amdkfd's debugfs file hang_hws relies on it.
#include "vasicd/blocks/sched/hws.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <utility>

#include "packets/ih.h"
#include "vasicd/blocks/queue/trace_line.h"
#include "vasicd/blocks/sched/hws_run_list.h"

namespace vasicd {

namespace ih = packets::ih;
namespace pm4 = packets::pm4;

namespace {

const std::string kName = "hws";
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::size_t kLoggedDoorbells = 16;  // queue_doorbell_id0..15
constexpr unsigned kMec = 1;

}  // namespace

Hws::Hws(EngineContext context, Scheduler& scheduler)
    : context_(context),
      scheduler_(scheduler),
      format_(pm4::hws_format(context.info.gfx_level, context.info.gc_ip)),
      layout_(packets::mqd::compute_layout(context.info.gfx_level)) {}

base::Status Hws::load_hiq(unsigned xcc, GpuAddr mqd) {
  if (loaded(xcc)) return base::Error(EBUSY, "HIQ is loaded");
  ASSIGN_OR_RETURN(const Mqd place, compute_mqd_at(context_, mqd));
  ASSIGN_OR_RETURN(ComputeHqd hqd, read_compute_mqd(layout_, place));
  if (hqd.aql) return base::Error(EINVAL, "HIQ is not a PM4 queue");
  if (!context_.doorbells.in_range(hqd.doorbell)) return base::Error(EINVAL, "HIQ doorbell is out of range");
  if (xcc != 0) {
    xccs_ |= 1u << xcc;
    return {};
  }
  context_.doorbells.take(hqd.doorbell);
  if (hqd.wptr_poll != 0) {
    auto wptr = context_.memory.load64(0, hqd.wptr_poll);
    if (!wptr.ok()) return base::Error(EFAULT, "HIQ write pointer is not readable");
    hqd.wptr = *wptr;
  }
  hqd_ = hqd;
  ring_ = WordSource{0, hqd_.base, hqd_.ring_dwords - 1};
  mqd_ = place;
  xccs_ |= 1u;
  trace_line(context_.trace, kName, "load_hiq base=0x%" PRIx64 " dwords=%" PRIu64 " doorbell=0x%x", hqd_.base,
             hqd_.ring_dwords, hqd_.doorbell);
  return {};
}

base::Status Hws::unload_hiq(unsigned xcc, UnloadMode mode) {
  if (!loaded(xcc)) return base::Error(EBUSY, "HIQ is not loaded");
  if (xcc != 0) {
    xccs_ &= ~(1u << xcc);
    return {};
  }
  const auto all = [](const ProcessSpec&, const QueueSpec&) { return true; };
  if (mode == UnloadMode::kReset) {
    context_.controls.cure(kName);
  } else if (stuck_ || context_.controls.hung(kName)) {
    return base::Error(ETIME, "HIQ hangs");
  }
  if (!scheduler_.remove(mode, all).empty()) return base::Error(ETIME, "a queue hangs");
  if (mode != UnloadMode::kReset && !write_compute_mqd(layout_, mqd_, hqd_).ok()) {
    trace_line(context_.trace, kName, "HIQ MQD is not writable");
  }
  xccs_ &= ~1u;
  stuck_ = false;
  waits_since_.reset();
  trace_line(context_.trace, kName, "unload_hiq");
  return {};
}

void Hws::reset() {
  xccs_ = 0;
  stuck_ = false;
  waits_since_.reset();
}

bool Hws::step(unsigned packets) {
  if (!loaded(0) || stuck_ || context_.controls.hung(kName)) return false;
  if (const auto rung = context_.doorbells.take(hqd_.doorbell); rung.has_value()) hqd_.wptr = *rung;
  bool advanced = false;
  for (unsigned i = 0; i < packets && execute_next(); ++i) advanced = true;
  if (advanced && hqd_.rptr_report != 0) {
    auto stored = context_.memory.store32(0, hqd_.rptr_report, hqd_.rptr);
    if (!stored.ok()) memory_trouble(stored.error());
  }
  return advanced;
}

bool Hws::execute_next() {
  const std::uint64_t available = (hqd_.wptr - hqd_.rptr) & ring_.mask;
  if (available == 0 || stuck_) return false;
  std::uint32_t header = 0;
  auto fetched = fetch_words(context_.memory, ring_, hqd_.rptr, std::span(&header, 1));
  std::size_t dwords = pm4::decode_header(header).dwords;
  if (fetched.ok() && dwords > available) {
    trace_line(context_.trace, kName, "packet header=0x%08x is cut off", header);
    dwords = static_cast<std::size_t>(available);
  } else if (fetched.ok()) {
    packets::Words packet(dwords);
    fetched = fetch_words(context_.memory, ring_, hqd_.rptr, std::span(packet));
    if (fetched.ok() && execute(packet) == Progress::kWait) return false;
  }
  if (!fetched.ok()) {
    memory_trouble(fetched.error());
    dwords = static_cast<std::size_t>(available);  // the ring cannot be read: drop its contents
  }
  hqd_.rptr = static_cast<std::uint32_t>((hqd_.rptr + dwords) & ring_.mask);
  return true;
}

void Hws::memory_trouble(const MemoryFault& fault) {
  trace_line(context_.trace, kName, "fault vmid=%u va=0x%" PRIx64, fault.vmid, fault.va);
  context_.interrupts.raise_fault(fault, {});
}

void Hws::stick(const char* why) {
  trace_line(context_.trace, kName, "hangs reason: %s", why);
  stuck_ = true;
}

Hws::Progress Hws::execute(packets::WordView packet) {
  const pm4::Header header = pm4::decode_header(packet.front());
  if (header.type == pm4::kType2) return Progress::kDone;
  if (header.type != pm4::kType3) {
    stick("not a packet");
    return Progress::kWait;
  }
  switch (header.opcode) {
    case pm4::kNop:
      break;
    case pm4::kSetResources:
      set_resources(packet);
      break;
    case pm4::kRunList:
      return run_list(packet);
    case pm4::kUnmapQueues:
      return unmap_queues(packet);
    case pm4::kQueryStatus:
      query_status(packet);
      break;
    case pm4::kWriteData:
      write_data(packet);
      break;
    case pm4::kReleaseMem:
      release_mem(packet);
      break;
    default:
      trace_line(context_.trace, kName, "packet header=0x%08x ignored", packet.front());
  }
  return Progress::kDone;
}

void Hws::set_resources(packets::WordView packet) {
  const auto p = pm4::decode_set_resources(packet);
  if (!p.has_value()) return trace_line(context_.trace, kName, "short set_resources ignored");
  SchedulerResources resources;
  resources.vmid_mask = p->vmid_mask & ~1u;  // VMID 0 belongs to the driver
  for (unsigned pipe = 0; pipe < SchedulerResources::kPipes; ++pipe) {
    resources.compute[pipe] = static_cast<std::uint8_t>(p->queue_mask >> (pipe * SchedulerResources::kSlots));
  }
  unmap_latency_ns_ = std::uint64_t{p->unmap_latency} * pm4::kUnmapLatencyMs * kNsPerMs;
  trace_line(context_.trace, kName, "set_resources vmid_mask=0x%04x queue_mask=0x%" PRIx64, resources.vmid_mask,
             p->queue_mask);
  scheduler_.set_resources(resources);
}

Hws::Progress Hws::await(const std::vector<std::uint32_t>& hung_doorbells) {
  if (hung_doorbells.empty()) {
    waits_since_.reset();
    return Progress::kDone;
  }
  const std::uint64_t now = context_.clock.now_ns();
  if (!waits_since_.has_value()) {
    waits_since_ = now;
    trace_line(context_.trace, kName, "waits for doorbell=0x%x", hung_doorbells.front());
  }
  if (now - *waits_since_ < unmap_latency_ns_) return Progress::kWait;
  waits_since_.reset();
  log_hung(hung_doorbells);
  return Progress::kDone;
}

void Hws::log_hung(const std::vector<std::uint32_t>& doorbells) {
  for (std::size_t i = 0; i < std::min(doorbells.size(), kLoggedDoorbells); ++i) {
    trace_line(context_.trace, kName, "abandons doorbell=0x%x", doorbells[i]);
    auto stored = mqd_.put(layout_.queue_doorbell_id0 + i, doorbells[i]);
    if (!stored.ok()) return memory_trouble(stored.error());
  }
}

Hws::Progress Hws::run_list(packets::WordView packet) {
  const auto p = pm4::decode_run_list(packet, format_);
  if (!p.has_value()) {
    trace_line(context_.trace, kName, "short run_list ignored");
    return Progress::kDone;
  }
  ParsedRunList list = parse_run_list(context_.memory, format_, *p);
  const std::vector<std::uint32_t> hung = scheduler_.hung_outside(list.processes);
  if (!hung.empty()) return await(hung);
  waits_since_.reset();
  if (list.error != nullptr) trace_line(context_.trace, kName, "run_list malformed: %s", list.error);
  std::size_t queues = 0;
  for (const ProcessRequest& process : list.processes) queues += process.queues.size();
  trace_line(context_.trace, kName, "run_list addr=0x%" PRIx64 " dwords=%u processes=%zu queues=%zu", p->ib, p->dwords,
             list.processes.size(), queues);
  scheduler_.limit_processes(p->processes);
  scheduler_.replace(std::move(list.processes));
  return Progress::kDone;
}

Hws::Progress Hws::unmap_queues(packets::WordView packet) {
  const auto p = pm4::decode_unmap_queues(packet, format_);
  if (!p.has_value()) {
    trace_line(context_.trace, kName, "short unmap_queues ignored");
    return Progress::kDone;
  }
  if (!waits_since_.has_value()) {
    if (context_.controls.take_failing_unmap()) {
      stick("unmap_queues fails, as asked for");
      return Progress::kWait;
    }
    trace_line(context_.trace, kName, "unmap_queues action=%u select=%u pasid=%u", static_cast<unsigned>(p->action),
               static_cast<unsigned>(p->select), p->select == pm4::UnmapSelect::kPasid ? p->pasid : 0);
  }
  const auto doorbells = std::span(p->doorbells).first(std::min<std::size_t>(p->num_doorbells, 4));
  const auto selected = [&](const ProcessSpec& process, const QueueSpec& queue) {
    switch (p->select) {
      case pm4::UnmapSelect::kDoorbells:
        return std::find(doorbells.begin(), doorbells.end(), queue.doorbell) != doorbells.end();
      case pm4::UnmapSelect::kPasid:
        return process.pasid == p->pasid;
      case pm4::UnmapSelect::kAllNonStatic:
        return !queue.is_static;
      case pm4::UnmapSelect::kAll:
        break;
    }
    return true;
  };
  if (p->action == pm4::UnmapAction::kPreemptNoUnmap) return await(scheduler_.save(selected));
  // Disabling the queues of a process takes them off the list too: the driver sends another run list when they may run
  // again.
  const UnloadMode mode = p->action == pm4::UnmapAction::kReset ? UnloadMode::kReset : UnloadMode::kSave;
  return await(scheduler_.remove(mode, selected));
}

void Hws::query_status(packets::WordView packet) {
  const auto p = pm4::decode_query_status(packet);
  if (!p.has_value()) return trace_line(context_.trace, kName, "short query_status ignored");
  trace_line(context_.trace, kName, "query_status addr=0x%" PRIx64 " data=0x%" PRIx64, p->addr, p->data);
  if (p->command != pm4::QueryCommand::kInterruptOnly) {
    auto stored = context_.memory.store64(0, p->addr, p->data);
    if (!stored.ok()) return memory_trouble(stored.error());
  }
  if (p->command == pm4::QueryCommand::kInterruptOnly || p->command == pm4::QueryCommand::kFenceAndInterrupt) {
    raise_eop(p->context_id);
  }
}

void Hws::raise_eop(std::uint32_t context_id) {
  context_.interrupts.raise(
      {.kind = InterruptKind::kCpEndOfPipe, .ring_id = ih::eop_ring_id(kMec, 0, 0), .data = {context_id}});
}

// A register write sets the grace period of preemption, which concerns waves only, so it has no effect here.
void Hws::write_data(packets::WordView packet) {
  const auto p = pm4::decode_write_data(packet);
  if (!p.has_value()) return trace_line(context_.trace, kName, "short write_data ignored");
  if (p->dst == pm4::WriteDst::kRegister) {
    return trace_line(context_.trace, kName, "write_data reg=0x%x value=0x%x", packets::lo32(p->addr), p->data.front());
  }
  trace_line(context_.trace, kName, "write_data addr=0x%" PRIx64 " dwords=%zu", p->addr, p->data.size());
  auto written = context_.memory.write(0, p->addr, std::as_bytes(p->data));
  if (!written.ok()) memory_trouble(written.error());
}

void Hws::release_mem(packets::WordView packet) {
  packets::Words whole(packet.begin(), packet.end());
  if (format_ == pm4::HwsFormat::kVi) whole.push_back(0);  // this format has no interrupt context
  const auto p = pm4::decode_release_mem(whole);
  if (!p.has_value()) return trace_line(context_.trace, kName, "short release_mem ignored");
  trace_line(context_.trace, kName, "release_mem addr=0x%" PRIx64 " data=0x%" PRIx64, p->addr, p->data);
  MemoryResult<void> stored;
  if (p->data_sel == pm4::ReleaseData::kLow32) {
    stored = context_.memory.store32(0, p->addr, packets::lo32(p->data));
  } else if (p->data_sel == pm4::ReleaseData::k64) {
    stored = context_.memory.store64(0, p->addr, p->data);
  } else if (p->data_sel == pm4::ReleaseData::kGpuClock) {
    stored = context_.memory.store64(0, p->addr, context_.ticks());
  }
  if (!stored.ok()) return memory_trouble(stored.error());
  if (p->int_sel == pm4::ReleaseInt::kOnly || p->int_sel == pm4::ReleaseInt::kAfterWrite) raise_eop(p->int_ctxid);
}

}  // namespace vasicd
