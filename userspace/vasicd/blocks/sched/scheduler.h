// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the HWS and the MES share: processes and their VMIDs, queues and their hardware slots, and how these are shared
// when there are not enough. A process or queue that has used up its quantum, or has nothing to do, is preempted at a
// packet boundary for the one that waits longest. Does not know what a queue's packets mean, nor which scheduler asked
// for it (hws.h, mes.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vasic/vasic_abi.h"
#include "vasicd/blocks/queue/packet_queue.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/context/context.h"

namespace vasicd {

// A queue that is to run.
struct QueueSpec {
  QueueKind kind = QueueKind::kCompute;                // or kSdma
  std::optional<unsigned> sdma_engine = std::nullopt;  // nothing: whichever is least used
  GpuAddr mqd = 0;                                     // VMID 0
  GpuAddr wptr_addr = 0;                               // 0: as the MQD says
  std::uint32_t doorbell = 0;                          // dword index
  std::uint64_t gang = 0;                              // gang of the MES; 0: none
  std::uint64_t quantum_ns = 0;                        // how long it keeps a slot that others wait for
  unsigned priority = 0;                               // queues of higher priority get a slot first
  bool is_static = false;                              // keeps its slot while its process has a VMID
  bool gws = false;                                    // uses the global wave sync: one such queue is mapped at a time

  bool operator==(const QueueSpec&) const = default;
};

struct ProcessSpec {
  std::uint64_t id = 0;  // identifies the process to the HWS or MES
  std::uint32_t pasid = 0;
  std::uint64_t page_directory = 0;  // as amdgpu_gmc_pd_addr() makes it
  std::uint64_t quantum_ns = 0;      // how long it keeps a VMID that others wait for
  bool retry = false;                // its faults on absent pages are to be retried
};

struct ProcessRequest {
  ProcessSpec process;
  std::vector<QueueSpec> queues;
};

// The VMIDs and slots that queues may use. Bit n of a compute pipe or SDMA engine is its slot n.
struct SchedulerResources {
  static constexpr unsigned kSlots = 8;  // a pipe or engine has at most
  static constexpr unsigned kPipes = 8;  // of the first MEC, at most
  std::uint32_t vmid_mask = 0;
  std::array<std::uint8_t, kPipes> compute{};
  std::uint8_t sdma = 0xff;
};

class Scheduler {
 public:
  // `name`: "hws" or "mes", for the trace.
  Scheduler(EngineContext context, std::string name) : context_(context), name_(std::move(name)) {}

  // A queue in a slot, or a process with a VMID, that is not in `resources` any more is unmapped (unless it hangs).
  void set_resources(const SchedulerResources& resources);
  // At most so many processes run at the same time; 0: as many as there are VMIDs.
  void limit_processes(unsigned limit) { process_limit_ = limit; }

  // Schedules these processes and queues, and no other. Queues that were scheduled before are not disturbed.
  void replace(std::vector<ProcessRequest> fresh);
  // Doorbells of the queues that replace() would have to stop, but cannot because they hang.
  [[nodiscard]] std::vector<std::uint32_t> hung_outside(const std::vector<ProcessRequest>& fresh) const;

  // Adds a queue; a process that has the id of a known one is that process. EBUSY if a queue has its MQD or doorbell,
  // EINVAL if PASID or page directory differ from those that the process had before, or if there are too many queues or
  // processes.
  base::Status add(const ProcessSpec& process, const QueueSpec& queue);

  using Selector = std::function<bool(const ProcessSpec&, const QueueSpec&)>;
  [[nodiscard]] bool contains(const Selector& selected) const;
  // Each stops the selected queues, and returns the doorbells of those that it cannot stop because they hang; these
  // stay as they are. A reset stops hung queues too.
  std::vector<std::uint32_t> remove(UnloadMode mode, const Selector& selected);  // for good
  std::vector<std::uint32_t> suspend(const Selector& selected);                  // until resume()
  std::vector<std::uint32_t> save(const Selector& selected);                     // MQDs are written, queues continue
  void resume(const Selector& selected);

  // For the driver, which addresses slots: the base of the ring in a slot, if any; and the removal of the queue from
  // its slot and from the lists. EBUSY: the slot is empty; ETIME: the queue hangs.
  [[nodiscard]] std::optional<GpuAddr> query(const HqdSlot& slot) const;
  base::Status unload(const HqdSlot& slot, UnloadMode mode);

  // Shares time; true if there is new work. The queues themselves are stepped by the caller.
  bool step();
  // Returns to the power-on state; nothing is saved.
  void reset();

  // The queues that are mapped now, until the next call of anything else.
  [[nodiscard]] const std::vector<PacketQueue*>& mapped();
  [[nodiscard]] bool anything_mapped() const { return running_ > 0; }

 private:
  struct Queue {
    QueueSpec spec;
    std::uint64_t since = 0;  // when it was mapped, or began to wait
    std::unique_ptr<PacketQueue> hardware;
    HqdSlot slot;            // if mapped
    std::uint32_t xccs = 0;  // where the slot is occupied; not 0: mapped
    GpuAddr pq_base = 0;
    bool suspended = false;
    bool broken = false;  // its MQD makes no sense

    [[nodiscard]] bool mapped() const { return xccs != 0; }
    [[nodiscard]] bool waits() const { return !mapped() && !suspended && !broken; }
    [[nodiscard]] bool hung() const { return hardware != nullptr && hardware->hung(); }
    [[nodiscard]] bool idle() const { return hardware == nullptr || hardware->idle(); }
  };
  struct Process {
    ProcessSpec spec;
    unsigned vmid = 0;        // 0: not scheduled
    std::uint64_t since = 0;  // when it got, or lost, its VMID
    std::vector<std::unique_ptr<Queue>> queues;
  };
  // The slots that queues of processes with a VMID wait for.
  struct Demand {
    std::size_t compute = 0;
    std::size_t gws = 0;
    std::size_t any_sdma = 0;
    std::array<std::size_t, VASIC_MAX_SDMA> sdma{};
    void add(const Queue& queue, bool gws_taken);
    // Whether `queue` has a slot that is wanted; if so, the demand is one less.
    bool take(const Queue& queue);
  };

  [[nodiscard]] std::uint64_t now() const { return context_.clock.now_ns(); }

  // Lists.
  Process* find(std::uint64_t id);
  static void carry_over(Process& old, Process& fresh);
  template <typename Act>
  std::vector<std::uint32_t> stop(UnloadMode mode, const Selector& selected, Act act);
  void drop_empty();

  // VMIDs.
  bool schedule();
  void give_vmids();
  [[nodiscard]] static bool process_waits(const Process& process);
  [[nodiscard]] unsigned free_vmid() const;
  void bind(Process& process, unsigned vmid);
  void unbind(Process& process);
  // Preempts its queues and takes its VMID; not if one of them hangs.
  bool vacate(Process& process);

  // Slots.
  bool give_slots();
  [[nodiscard]] Queue* at(const HqdSlot& slot) const;
  [[nodiscard]] bool usable(const HqdSlot& slot) const;
  [[nodiscard]] std::uint8_t& used(const HqdSlot& slot);
  [[nodiscard]] std::optional<HqdSlot> free_slot(const QueueSpec& spec);
  [[nodiscard]] bool gws_taken() const;
  [[nodiscard]] base::Result<std::unique_ptr<PacketQueue>> load(const Process& process, const Queue& queue,
                                                                const HqdSlot& slot) const;
  bool map(Process& process, Queue& queue, const HqdSlot& slot);
  void unmap(Queue& queue, UnloadMode mode);
  void stop_hardware(Queue& queue, UnloadMode mode);

  // Time.
  std::size_t free_vmids();
  std::size_t free_slots();
  [[nodiscard]] bool expired(std::uint64_t since, std::uint64_t quantum_ns, bool idle) const;

  EngineContext context_;
  std::string name_;
  SchedulerResources resources_;
  unsigned process_limit_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  std::size_t queue_count_ = 0;
  std::array<std::uint8_t, SchedulerResources::kPipes> used_compute_{};
  std::array<std::uint8_t, VASIC_MAX_SDMA> used_sdma_{};
  bool any_waits_ = false;
  std::uint64_t next_look_ = 0;           // when to share time again
  std::uint64_t idle_quantum_ = 500'000;  // how long an idle queue keeps its slot
  std::size_t running_ = 0;               // queues that have hardware
  std::vector<PacketQueue*> mapped_;      // these queues, unless running_changed_
  bool running_changed_ = false;
};

}  // namespace vasicd
