// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The packets that amdkfd puts on the HIQ and that only the hardware scheduler understands, in the three formats there
// are. Layouts: amdkfd/kfd_pm4_headers_{vi,ai,aldebaran}.h; which chip uses which format, and which fields:
// amdkfd/kfd_packet_manager{,_vi,_v9}.c.
#pragma once

#include "packets/pm4.h"

namespace packets::pm4 {

enum class HwsFormat : std::uint8_t {
  kVi,         // gfx7, gfx8
  kV9,         // gfx9, gfx10
  kAldebaran,  // GC 9.4.2 to 9.4.4: kV9 with a longer MAP_PROCESS
};
// kfd_packet_manager.c: pm_init(); `gc_ip` as IP_VERSION() encodes it.
constexpr HwsFormat hws_format(std::uint32_t gfx_level, std::uint32_t gc_ip) {
  constexpr std::uint32_t kGc942 = 9u << 24 | 4u << 16 | 2u << 8;
  constexpr std::uint32_t kGc944 = 9u << 24 | 4u << 16 | 4u << 8;
  if (gfx_level < 9) return HwsFormat::kVi;
  return gc_ip >= kGc942 && gc_ip <= kGc944 ? HwsFormat::kAldebaran : HwsFormat::kV9;
}

// Doorbell dword index; how many bits it has.
constexpr Field hws_doorbell(HwsFormat format) { return format == HwsFormat::kVi ? Field{2, 21} : Field{2, 26}; }

// --- SET_RESOURCES
inline constexpr Field kResVmidMask{0, 16};
inline constexpr Field kResUnmapLatency{16, 8};
inline constexpr Field kResQueueType{29, 3};
inline constexpr std::uint32_t kResQueueTypeHiq = 1;
inline constexpr std::size_t kSetResourcesDwords = 8;
inline constexpr unsigned kUnmapLatencyMs = 100;  // unit of unmap_latency

struct SetResources {
  std::uint32_t vmid_mask = 0;
  std::uint64_t queue_mask = 0;     // queues of the first MEC: bit pipe * 8 + queue
  std::uint32_t unmap_latency = 0;  // how long a queue may take to stop
  std::uint64_t gws_mask = 0;
};
inline void set_resources(Words& out, const SetResources& p) {
  append(out,
         {header(kSetResources, kSetResourcesDwords),
          kResVmidMask.put(p.vmid_mask) | kResUnmapLatency.put(p.unmap_latency) | kResQueueType.put(kResQueueTypeHiq),
          lo32(p.queue_mask), hi32(p.queue_mask), lo32(p.gws_mask), hi32(p.gws_mask), 0, 0});
}
inline std::optional<SetResources> decode_set_resources(WordView p) {
  if (p.size() < kSetResourcesDwords) return std::nullopt;
  return SetResources{kResVmidMask.get(p[1]), join(p[2], p[3]), kResUnmapLatency.get(p[1]), join(p[4], p[5])};
}

// --- RUN_LIST; inside a run list with CHAIN it continues, or loops to, another buffer.
inline constexpr Field kRunListSize{0, 20};
inline constexpr Field kRunListChain{20, 1};
inline constexpr Field kRunListIdleDisable{22, 1};  // not VI
inline constexpr Field kRunListValid{23, 1};
inline constexpr Field kRunListProcesses{24, 4};
inline constexpr Field kRunListBaseHiVi{0, 16};
inline constexpr std::size_t kRunListDwords = 4;

struct RunList {
  std::uint64_t ib = 0;
  std::uint32_t dwords = 0;
  bool chain = false;
  std::uint32_t processes = 0;  // to run at the same time, at most; 0: as many as there are VMIDs
};
inline void run_list(Words& out, const RunList& p, HwsFormat format = HwsFormat::kV9) {
  const bool idle_disable = p.chain && format != HwsFormat::kVi;
  append(out, {header(kRunList, kRunListDwords), lo32(p.ib) & ~3u, hi32(p.ib),
               kRunListSize.put(p.dwords) | kRunListChain.put(p.chain ? 1 : 0) |
                   kRunListIdleDisable.put(idle_disable ? 1 : 0) | kRunListValid.put(1) |
                   kRunListProcesses.put(p.processes)});
}
inline std::optional<RunList> decode_run_list(WordView p, HwsFormat format = HwsFormat::kV9) {
  if (p.size() < kRunListDwords) return std::nullopt;
  const std::uint32_t base_hi = format == HwsFormat::kVi ? kRunListBaseHiVi.get(p[2]) : p[2];
  return RunList{join(p[1] & ~3u, base_hi), kRunListSize.get(p[3]), kRunListChain.get(p[3]) != 0,
                 kRunListProcesses.get(p[3])};
}

// --- MAP_PROCESS
inline constexpr Field kProcessPasid{0, 16};
inline constexpr Field kProcessQuantum{25, 7};
inline constexpr Field kProcessSdmaEnable{7, 1};
inline constexpr Field kProcessGws{0, 7};
inline constexpr Field kProcessGwsVi{0, 6};
inline constexpr Field kProcessQueues{22, 10};
inline constexpr Field kProcessPageTableVi{0, 28};
inline constexpr unsigned kProcessPageShiftVi = 12;  // the page table's address counts pages
inline constexpr unsigned kShaderAddressShift = 8;   // tba and tma count 256 bytes
inline constexpr unsigned kQuantumMs = 1;            // unit of the quantum

constexpr std::size_t map_process_dwords(HwsFormat format) { return format == HwsFormat::kAldebaran ? 21 : 16; }

// SH_MEM_CONFIG of gfx9 (gc_9_4_2_sh_mask.h); amdkfd clears it for a process with XNACK.
inline constexpr Field kRetryDisable{12, 1};

struct MapProcess {
  std::uint32_t pasid = 0;
  std::uint32_t quantum = 10;
  std::uint64_t page_directory = 0;  // as amdgpu_gmc_pd_addr() makes it
  std::uint32_t queues = 0;
  std::uint32_t num_gws = 0;
  std::uint32_t sh_mem_config = 0;
  std::uint32_t sh_mem_bases = 0;
  std::uint64_t tba = 0;  // trap handler and its memory; VI sets them up elsewhere
  std::uint64_t tma = 0;
};
inline void map_process(Words& out, const MapProcess& p, HwsFormat format = HwsFormat::kV9) {
  const std::size_t at = out.size();
  out.resize(at + map_process_dwords(format));
  const std::span<std::uint32_t> w = std::span(out).subspan(at);
  w[0] = header(kMapProcess, w.size());
  w[1] = kProcessPasid.put(p.pasid) | kProcessQuantum.put(p.quantum);
  w[4] = p.sh_mem_bases;
  w[5] = p.sh_mem_config;
  w[13] = kProcessQueues.put(p.queues);
  if (format == HwsFormat::kVi) {
    w[2] = kProcessPageTableVi.put(static_cast<std::uint32_t>(p.page_directory >> kProcessPageShiftVi));
    w[13] |= kProcessGwsVi.put(p.num_gws);
    return;
  }
  w[2] = lo32(p.page_directory);
  w[3] = hi32(p.page_directory);
  w[6] = lo32(p.tba >> kShaderAddressShift);
  w[7] = hi32(p.tba >> kShaderAddressShift);
  w[8] = lo32(p.tma >> kShaderAddressShift);
  w[9] = hi32(p.tma >> kShaderAddressShift);
  w[13] |= kProcessGws.put(p.num_gws) | kProcessSdmaEnable.put(1);
}
inline std::optional<MapProcess> decode_map_process(WordView p, HwsFormat format = HwsFormat::kV9) {
  if (p.size() < map_process_dwords(format)) return std::nullopt;
  MapProcess m;
  m.pasid = kProcessPasid.get(p[1]);
  m.quantum = kProcessQuantum.get(p[1]);
  m.sh_mem_bases = p[4];
  m.sh_mem_config = p[5];
  m.queues = kProcessQueues.get(p[13]);
  if (format == HwsFormat::kVi) {
    m.page_directory = std::uint64_t{kProcessPageTableVi.get(p[2])} << kProcessPageShiftVi;
    m.num_gws = kProcessGwsVi.get(p[13]);
    return m;
  }
  constexpr Field kShaderAddressHi{0, 8};  // above is TRAP_EN of gfx10
  m.page_directory = join(p[2], p[3]);
  m.tba = join(p[6], kShaderAddressHi.get(p[7])) << kShaderAddressShift;
  m.tma = join(p[8], kShaderAddressHi.get(p[9])) << kShaderAddressShift;
  m.num_gws = kProcessGws.get(p[13]);
  return m;
}

// --- MAP_QUEUES
enum class QueueEngine : std::uint8_t { kCompute = 0, kSdma0 = 2, kSdma1 = 3 };
inline constexpr Field kMapExtendedEngine{2, 2};  // not VI
inline constexpr Field kMapQueueSel{4, 2};
inline constexpr Field kMapGws{12, 1};  // not VI
inline constexpr Field kMapQueueType{21, 3};
inline constexpr Field kMapEngine{26, 3};
inline constexpr Field kMapNumQueues{29, 3};
inline constexpr std::uint32_t kMapHwsChoosesSlot = 1;
inline constexpr std::uint32_t kExtendedLegacy = 0;  // `engine` is what it says
inline constexpr std::uint32_t kExtendedSdma0To7 = 1;
inline constexpr std::uint32_t kExtendedSdma8To15 = 2;
inline constexpr std::uint32_t kQueueTypeNormal = 0;
inline constexpr std::uint32_t kQueueTypeStatic = 2;  // 2 and 3 are not preempted by "all non-static"
inline constexpr std::size_t kMapQueuesDwords = 7;

struct MapQueues {
  QueueEngine engine = QueueEngine::kCompute;
  std::uint32_t extended_engine = kExtendedLegacy;
  std::uint32_t queue_type = kQueueTypeNormal;
  std::uint32_t doorbell = 0;  // dword index
  std::uint64_t mqd = 0;       // VMID 0
  std::uint64_t wptr_addr = 0;
  std::uint32_t queue_sel = kMapHwsChoosesSlot;
  std::uint32_t num_queues = 1;
  bool gws = false;  // may use the global wave sync: at most one at a time

  // Number of the SDMA engine; nothing for a compute queue, or for an engine that no chip has.
  [[nodiscard]] std::optional<unsigned> sdma_engine() const {
    const auto number = static_cast<unsigned>(engine);
    if (extended_engine == kExtendedSdma0To7) return number;
    if (extended_engine == kExtendedSdma8To15) return number + 8;
    if (engine != QueueEngine::kSdma0 && engine != QueueEngine::kSdma1) return std::nullopt;
    return number - static_cast<unsigned>(QueueEngine::kSdma0);
  }
  [[nodiscard]] bool compute() const { return extended_engine == kExtendedLegacy && engine == QueueEngine::kCompute; }
};
inline void map_queues(Words& out, const MapQueues& p, HwsFormat format = HwsFormat::kV9) {
  const bool vi = format == HwsFormat::kVi;
  append(out, {header(kMapQueues, kMapQueuesDwords),
               kMapExtendedEngine.put(vi ? 0 : p.extended_engine) | kMapQueueSel.put(p.queue_sel) |
                   kMapGws.put(p.gws && !vi ? 1 : 0) | kMapQueueType.put(p.queue_type) |
                   kMapEngine.put(static_cast<std::uint32_t>(p.engine)) | kMapNumQueues.put(p.num_queues),
               hws_doorbell(format).put(p.doorbell), lo32(p.mqd), hi32(p.mqd), lo32(p.wptr_addr), hi32(p.wptr_addr)});
}
inline std::optional<MapQueues> decode_map_queues(WordView p, HwsFormat format = HwsFormat::kV9) {
  if (p.size() < kMapQueuesDwords) return std::nullopt;
  const bool vi = format == HwsFormat::kVi;
  MapQueues m;
  m.engine = static_cast<QueueEngine>(kMapEngine.get(p[1]));
  m.extended_engine = vi ? kExtendedLegacy : kMapExtendedEngine.get(p[1]);
  m.queue_type = kMapQueueType.get(p[1]);
  m.doorbell = hws_doorbell(format).get(p[2]);
  m.mqd = join(p[3], p[4]);
  m.wptr_addr = join(p[5], p[6]);
  m.queue_sel = kMapQueueSel.get(p[1]);
  m.num_queues = kMapNumQueues.get(p[1]);
  m.gws = !vi && kMapGws.get(p[1]) != 0;
  return m;
}

// --- UNMAP_QUEUES. With SDMA IP 5.2 and newer the driver sets the extended engine; which queues are meant depends on
// the selection alone.
enum class UnmapAction : std::uint8_t { kPreempt = 0, kReset = 1, kDisableProcess = 2, kPreemptNoUnmap = 3 };
enum class UnmapSelect : std::uint8_t { kDoorbells = 0, kPasid = 1, kAll = 2, kAllNonStatic = 3 };
inline constexpr Field kUnmapAction{0, 2};
inline constexpr Field kUnmapExtendedEngine{2, 2};  // not VI
inline constexpr Field kUnmapSelect{4, 2};
inline constexpr Field kUnmapNumQueues{29, 3};
inline constexpr std::size_t kUnmapMaxDoorbells = 4;
inline constexpr std::size_t kUnmapQueuesDwords = 6;

struct UnmapQueues {
  UnmapAction action = UnmapAction::kPreempt;
  UnmapSelect select = UnmapSelect::kAll;
  std::uint32_t pasid = 0;
  std::uint32_t num_doorbells = 0;
  std::uint32_t doorbells[kUnmapMaxDoorbells] = {};
  std::uint32_t extended_engine = kExtendedLegacy;
};
inline void unmap_queues(Words& out, const UnmapQueues& p, HwsFormat format = HwsFormat::kV9) {
  const bool by_doorbell = p.select == UnmapSelect::kDoorbells;
  const Field doorbell = hws_doorbell(format);
  append(out, {header(kUnmapQueues, kUnmapQueuesDwords),
               kUnmapAction.put(static_cast<std::uint32_t>(p.action)) |
                   kUnmapExtendedEngine.put(format == HwsFormat::kVi ? 0 : p.extended_engine) |
                   kUnmapSelect.put(static_cast<std::uint32_t>(p.select)) | kUnmapNumQueues.put(p.num_doorbells),
               by_doorbell ? doorbell.put(p.doorbells[0]) : kProcessPasid.put(p.pasid), doorbell.put(p.doorbells[1]),
               doorbell.put(p.doorbells[2]), doorbell.put(p.doorbells[3])});
}
inline std::optional<UnmapQueues> decode_unmap_queues(WordView p, HwsFormat format = HwsFormat::kV9) {
  if (p.size() < kUnmapQueuesDwords) return std::nullopt;
  UnmapQueues u;
  u.action = static_cast<UnmapAction>(kUnmapAction.get(p[1]));
  u.select = static_cast<UnmapSelect>(kUnmapSelect.get(p[1]));
  u.pasid = kProcessPasid.get(p[2]);
  u.num_doorbells = kUnmapNumQueues.get(p[1]);
  for (std::size_t i = 0; i < kUnmapMaxDoorbells; ++i) u.doorbells[i] = hws_doorbell(format).get(p[2 + i]);
  u.extended_engine = format == HwsFormat::kVi ? kExtendedLegacy : kUnmapExtendedEngine.get(p[1]);
  return u;
}

// --- QUERY_STATUS
enum class QueryCommand : std::uint8_t { kInterruptOnly = 0, kFence = 1, kFenceAfterAck = 2, kFenceAndInterrupt = 3 };
enum class QueryInterrupt : std::uint8_t { kCompletion = 0, kProcess = 1, kQueue = 2 };
inline constexpr Field kQueryContext{0, 28};
inline constexpr Field kQueryInterrupt{28, 2};
inline constexpr Field kQueryCommand{30, 2};
inline constexpr std::size_t kQueryStatusDwords = 7;

struct QueryStatus {
  std::uint32_t context_id = 0;
  QueryCommand command = QueryCommand::kFenceAfterAck;
  std::uint64_t addr = 0;
  std::uint64_t data = 0;
  QueryInterrupt interrupt = QueryInterrupt::kCompletion;
};
inline void query_status(Words& out, const QueryStatus& p) {
  append(out, {header(kQueryStatus, kQueryStatusDwords),
               kQueryContext.put(p.context_id) | kQueryInterrupt.put(static_cast<std::uint32_t>(p.interrupt)) |
                   kQueryCommand.put(static_cast<std::uint32_t>(p.command)),
               0, lo32(p.addr), hi32(p.addr), lo32(p.data), hi32(p.data)});
}
inline std::optional<QueryStatus> decode_query_status(WordView p) {
  if (p.size() < kQueryStatusDwords) return std::nullopt;
  return QueryStatus{kQueryContext.get(p[1]), static_cast<QueryCommand>(kQueryCommand.get(p[1])), join(p[3], p[4]),
                     join(p[5], p[6]), static_cast<QueryInterrupt>(kQueryInterrupt.get(p[1]))};
}

}  // namespace packets::pm4
