// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Run list parser.
#include "vasicd/blocks/sched/hws_run_list.h"

#include <optional>
#include <unordered_set>

#include "vasicd/blocks/queue/queue_types.h"

namespace vasicd {
namespace {

namespace pm4 = packets::pm4;

constexpr std::uint64_t kNsPerMs = 1'000'000;

class Parser {
 public:
  Parser(Memory& memory, pm4::HwsFormat format) : memory_(memory), format_(format) {}

  ParsedRunList parse(pm4::RunList buffer) {
    std::unordered_set<std::uint64_t> seen;
    for (std::optional<pm4::RunList> next = buffer; next.has_value() && list_.error == nullptr;) {
      if (!seen.insert(next->ib).second) break;
      if (seen.size() > kMaxRunListBuffers) {
        list_.error = "too many chained buffers";
        break;
      }
      next = parse_buffer(*next);
    }
    return std::move(list_);
  }

 private:
  // Returns the buffer that this one chains to.
  std::optional<pm4::RunList> parse_buffer(const pm4::RunList& buffer) {
    if (buffer.dwords > kMaxRunListDwords) return fail("buffer is too long");
    packets::Words words(buffer.dwords);
    if (!memory_.read(0, buffer.ib, std::as_writable_bytes(std::span(words))).ok()) return fail("buffer unreadable");
    for (packets::WordView rest(words); !rest.empty();) {
      const pm4::Header header = pm4::decode_header(rest.front());
      if (header.type == pm4::kType3 && header.dwords > rest.size()) return fail("packet is cut off");
      const packets::WordView packet = rest.first(header.dwords);
      rest = rest.subspan(header.dwords);
      if (header.type == pm4::kType2 || (header.type == pm4::kType3 && header.opcode == pm4::kNop)) continue;
      if (header.type != pm4::kType3) return fail("not a packet");
      if (header.opcode == pm4::kRunList) {
        const auto chained = pm4::decode_run_list(packet, format_);
        if (!chained.has_value() || !chained->chain) return fail("run list inside a run list");
        return chained;
      }
      if (!parse_packet(header, packet)) return std::nullopt;
    }
    return std::nullopt;
  }

  bool parse_packet(const pm4::Header& header, packets::WordView packet) {
    if (header.opcode == pm4::kMapProcess) {
      const auto p = pm4::decode_map_process(packet, format_);
      if (!p.has_value()) return fail("short map_process"), false;
      return add_process(*p);
    }
    if (header.opcode == pm4::kMapQueues) {
      const auto p = pm4::decode_map_queues(packet, format_);
      if (!p.has_value()) return fail("short map_queues"), false;
      return add_queue(*p);
    }
    return fail("unknown packet"), false;
  }

  bool add_process(const pm4::MapProcess& p) {
    if (list_.processes.size() == kMaxRunListProcesses) return fail("too many processes"), false;
    if (!pasids_.insert(p.pasid).second) return fail("process listed twice"), false;
    list_.processes.push_back(
        {{p.pasid, p.pasid, p.page_directory, std::uint64_t{p.quantum} * pm4::kQuantumMs * kNsPerMs,
          pm4::kRetryDisable.get(p.sh_mem_config) == 0},
         {}});
    return true;
  }

  bool add_queue(const pm4::MapQueues& p) {
    if (list_.processes.empty()) return fail("queue without a process"), false;
    if (mqds_.size() == kMaxRunListQueues) return fail("too many queues"), false;
    if (p.num_queues != 1) return fail("not one queue"), false;
    if (p.queue_sel != pm4::kMapHwsChoosesSlot) return fail("queue for a slot of the driver's choice"), false;
    const auto sdma = p.sdma_engine();
    if (!p.compute() && !sdma.has_value()) return fail("queue for an engine that does not exist"), false;
    if (!mqds_.insert(p.mqd).second) return fail("queue listed twice"), false;
    ProcessRequest& process = list_.processes.back();
    process.queues.push_back({.kind = p.compute() ? QueueKind::kCompute : QueueKind::kSdma,
                              .sdma_engine = sdma,
                              .mqd = p.mqd,
                              .wptr_addr = p.wptr_addr,
                              .doorbell = p.doorbell,
                              .quantum_ns = process.process.quantum_ns,
                              .is_static = p.queue_type >= pm4::kQueueTypeStatic,
                              .gws = p.gws});
    return true;
  }

  std::nullopt_t fail(const char* why) {
    list_.error = why;
    return std::nullopt;
  }

  Memory& memory_;
  pm4::HwsFormat format_;
  ParsedRunList list_;
  std::unordered_set<std::uint32_t> pasids_;
  std::unordered_set<std::uint64_t> mqds_;
};

}  // namespace

ParsedRunList parse_run_list(Memory& memory, pm4::HwsFormat format, const pm4::RunList& first) {
  return Parser(memory, format).parse(first);
}

}  // namespace vasicd
