// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests of the device without packet processors: engines that record their calls and return what a test sets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vasicd/blocks/engines.h"
#include "vasicd/device.h"

namespace vasicd {

class FakeEngines final : public Engines {
 public:
  // Shared with the test; outlives the device.
  struct Script {
    std::vector<std::string> calls;
    base::Status next;                         // result of the next load / unload
    HqdState hqd;                              // result of query_hqd
    std::function<bool(EngineContext&)> step;  // empty: nothing to do
    bool anything_mapped = false;
    bool user_queues_mapped = false;
    std::vector<QueueStatus> queues;  // result of queues
    KernelRing ring;
    HqdSlot slot;
    GpuAddr mqd = 0;
    packets::Words mqd_words;
    MesQueue mes_queue;
    unsigned vmid = 0;
    UnloadMode mode = UnloadMode::kDrain;
  };

  FakeEngines(Script& script, EngineContext context) : script_(script), context_(context) {}

  static EngineFactory factory(Script& script) {
    return
        [&script](const vasic_info&, EngineContext context) { return std::make_unique<FakeEngines>(script, context); };
  }

  base::Status load_ring(const KernelRing& ring) override {
    script_.ring = ring;
    return called("load_ring");
  }
  base::Status unload_ring(RingKind kind, unsigned instance, UnloadMode mode) override {
    script_.mode = mode;
    return called((kind == RingKind::kSdma ? "unload_ring sdma" : "unload_ring compute") + std::to_string(instance));
  }
  base::Status prepare_hqd(const HqdSlot& slot, GpuAddr mqd) override {
    script_.slot = slot;
    script_.mqd = mqd;
    return called("prepare_hqd");
  }
  base::Status load_hqd(const HqdSlot& slot, GpuAddr mqd, unsigned vmid) override {
    script_.slot = slot;
    script_.mqd = mqd;
    script_.vmid = vmid;
    return called("load_hqd");
  }
  base::Status unload_hqd(const HqdSlot& slot, UnloadMode mode) override {
    script_.slot = slot;
    script_.mode = mode;
    return called("unload_hqd");
  }
  base::Result<HqdState> query_hqd(const HqdSlot& slot) override {
    script_.slot = slot;
    script_.calls.emplace_back("query_hqd");
    return script_.hqd;
  }
  base::Status prepare_hqd_value(const HqdSlot& slot, packets::WordView mqd) override {
    script_.slot = slot;
    script_.mqd_words.assign(mqd.begin(), mqd.end());
    return called("prepare_hqd_value");
  }
  base::Status load_hqd_value(const HqdSlot& slot, packets::WordView mqd) override {
    script_.slot = slot;
    script_.mqd_words.assign(mqd.begin(), mqd.end());
    return called("load_hqd_value");
  }
  base::Result<packets::Words> unload_hqd_value(const HqdSlot& slot, UnloadMode mode) override {
    script_.slot = slot;
    script_.mode = mode;
    TRY(called("unload_hqd_value"));
    return script_.mqd_words;
  }
  base::Status mes_add_queue(const MesQueue& queue) override {
    script_.mes_queue = queue;
    return called("mes_add_queue");
  }
  base::Status mes_remove_queue(std::uint32_t doorbell, std::uint64_t gang) override {
    return called("mes_remove_queue " + std::to_string(doorbell) + " of " + std::to_string(gang));
  }
  base::Status mes_suspend(std::uint64_t gang) override { return called("mes_suspend " + std::to_string(gang)); }
  base::Status mes_resume(std::uint64_t gang) override { return called("mes_resume " + std::to_string(gang)); }
  base::Status mes_reset_queue(std::uint32_t doorbell) override {
    return called("mes_reset_queue " + std::to_string(doorbell));
  }
  void reset() override { script_.calls.emplace_back("reset"); }
  bool step() override { return script_.step && script_.step(context_); }
  [[nodiscard]] bool anything_mapped() const override { return script_.anything_mapped; }
  [[nodiscard]] bool user_queues_mapped() const override { return script_.user_queues_mapped; }
  std::optional<std::string> step_packet() override {
    return script_.step && script_.step(context_) ? std::optional<std::string>("fake") : std::nullopt;
  }
  [[nodiscard]] std::vector<QueueStatus> queues() override { return script_.queues; }

 private:
  base::Status called(std::string call) {
    script_.calls.push_back(std::move(call));
    return std::exchange(script_.next, base::Status{});
  }

  Script& script_;
  EngineContext context_;
};

}  // namespace vasicd
