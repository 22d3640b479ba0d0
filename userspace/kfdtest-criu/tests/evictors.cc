// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Each evictor causes what it is named after and waits until KFD's SMI events name it as the reason.
#include "kfdtest-criu/tests/evictors.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "kfd/kfd.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/smi_events.h"
#include "kfdtest-criu/tests/scenario_process.h"

namespace kfdtest {
namespace {

constexpr std::uint64_t kSeed = 0xe71c;
constexpr std::size_t kSize = 64 * kKiB;

// Sets the queue's percentage to 0.
class PercentageEvictor final : public Evictor {
 public:
  // pqm_update_queue_properties() looks for a mapping of the ring's size, but the ring's BO is half as large.
  [[nodiscard]] std::string not_applicable(const Gpu& gpu, QueueKind kind) const override {
    return kind == QueueKind::kAql && gpu.generation.aql_ring_mapped_twice
               ? "the driver cannot update an AQL queue whose ring is mapped twice"
               : "";
  }
  base::Status prepare(const Gpu& /*gpu*/) override { return {}; }
  base::Status evict(StepQueue& queue) override { return queue.queue().set_percentage(kStopped); }
  [[nodiscard]] bool holds() const override { return true; }
  base::Status resume(StepQueue& queue) override { return queue.queue().set_percentage(kFullPercentage); }
};

// Creates a second queue: KFD makes a new run list, and takes every queue off the hardware for that.
class NewQueueEvictor final : public Evictor {
 public:
  base::Status prepare(const Gpu& gpu) override {
    gpu_ = &gpu;
    return {};
  }
  base::Status evict(StepQueue& /*queue*/) override {
    ASSIGN_OR_RETURN(StepQueue other, StepQueue::create(*gpu_, QueueKind::kPm4));
    TRY(other.submit(1));
    other.open(1);
    return other.wait_done(1);
  }
  base::Status resume(StepQueue& /*queue*/) override { return {}; }

 private:
  const Gpu* gpu_ = nullptr;
};

// Pauses the process by PROCESS_INFO, the first step of a checkpoint.
class CriuEvictor final : public Evictor {
 public:
  base::Status prepare(const Gpu& gpu) override {
    gpu_ = &gpu;
    ASSIGN_OR_RETURN(SmiEvents events, SmiEvents::open(gpu, {SmiKind::kQueueEviction}));
    events_.emplace(std::move(events));
    return {};
  }
  base::Status evict(StepQueue& /*queue*/) override {
    ASSIGN_OR_RETURN(pause_, kfd_.pause(fd()));
    if (pause_.info.num_devices == 0 || pause_.info.num_bos == 0) return base::Error(EIO, "PROCESS_INFO found nothing");
    return events_->wait_for_eviction(EvictionTrigger::kCriuCheckpoint);
  }
  [[nodiscard]] bool holds() const override { return true; }
  base::Status resume(StepQueue& /*queue*/) override { return kfd_.unpause(fd(), pause_); }

 private:
  [[nodiscard]] int fd() const { return ioctls_of(*gpu_).client().fd(); }
  const Gpu* gpu_ = nullptr;
  kfd::RealKfd kfd_;
  kfd::Pause pause_;
  std::optional<SmiEvents> events_;
};

// Drops the CPU's pages under memory that the GPU has mapped: a userptr, or an SVM range.
class PagesEvictor : public Evictor {
 public:
  explicit PagesEvictor(EvictionTrigger trigger) : trigger_(trigger) {}
  base::Status evict(StepQueue& /*queue*/) override {
    if (::madvise(pages().data(), pages().size(), MADV_DONTNEED) != 0)
      return base::Error::from_errno(errno, "dropping pages");
    return events_->wait_for_eviction(trigger_);
  }
  base::Status resume(StepQueue& /*queue*/) override {
    ASSIGN_OR_RETURN(const std::string line, events_->wait_for(SmiKind::kQueueRestore));
    return {};
  }

 protected:
  base::Status open_events(const Gpu& gpu) {
    ASSIGN_OR_RETURN(SmiEvents events, SmiEvents::open(gpu, {SmiKind::kQueueEviction, SmiKind::kQueueRestore}));
    events_.emplace(std::move(events));
    return {};
  }
  [[nodiscard]] virtual std::span<std::byte> pages() const = 0;

 private:
  EvictionTrigger trigger_;
  std::optional<SmiEvents> events_;
};

class UserptrEvictor final : public PagesEvictor {
 public:
  UserptrEvictor() : PagesEvictor(EvictionTrigger::kUserptr) {}
  base::Status prepare(const Gpu& gpu) override {
    ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kUserptr, kSize));
    fill_pattern(memory.bytes(), kSeed);
    memory_.emplace(std::move(memory));
    return open_events(gpu);
  }

 private:
  [[nodiscard]] std::span<std::byte> pages() const override { return memory_->bytes(); }
  std::optional<GpuMemory> memory_;
};

class SvmEvictor final : public PagesEvictor {
 public:
  SvmEvictor() : PagesEvictor(EvictionTrigger::kSvm) {}
  [[nodiscard]] std::string not_applicable(const Gpu& gpu, QueueKind /*kind*/) const override {
    return gpu.has_svm() ? "" : "the driver offers no SVM for this chip";
  }
  base::Status prepare(const Gpu& gpu) override {
    ASSIGN_OR_RETURN(memory_, base::Mapping::anonymous(kSize, "pages for SVM"));
    fill_pattern(memory_.bytes(), kSeed);
    const kfd_ioctl_svm_attribute attributes[] = {{KFD_IOCTL_SVM_ATTR_ACCESS, gpu.gpu_id}};
    TRY(ioctls_of(gpu).client().svm_set(reinterpret_cast<std::uint64_t>(memory_.data()), kSize, attributes));
    return open_events(gpu);
  }

 private:
  [[nodiscard]] std::span<std::byte> pages() const override { return memory_.bytes(); }
  base::Mapping memory_;
};

// Starts a process that allocates so much VRAM, through amdgpu, that there is not enough for both.
class TtmEvictor final : public Evictor {
 public:
  base::Status prepare(const Gpu& gpu) override {
    for (unsigned i = 0; i < kBuffers; ++i) {
      ASSIGN_OR_RETURN(GpuMemory memory,
                       GpuMemory::allocate(gpu, MemoryKind::kVram, gpu.vram_size / kMiB * 6 / 10 / kBuffers * kMiB));
      fill_pattern(memory.bytes().first(kSize), kSeed + i);
      buffers_.push_back(std::move(memory));
    }
    ASSIGN_OR_RETURN(SmiEvents events, SmiEvents::open(gpu, {SmiKind::kQueueEviction, SmiKind::kQueueRestore}));
    events_.emplace(std::move(events));
    return {};
  }
  base::Status evict(StepQueue& /*queue*/) override {
    TRY(spawn_scenario("take_vram"));
    return events_->wait_for_eviction(EvictionTrigger::kTtm);
  }
  base::Status resume(StepQueue& /*queue*/) override {
    ASSIGN_OR_RETURN(const std::string line, events_->wait_for(SmiKind::kQueueRestore));
    return {};
  }
  [[nodiscard]] base::Status verify() const override {
    for (unsigned i = 0; i < kBuffers; ++i)
      if (find_mismatch(buffers_[i].bytes().first(kSize), kSeed + i).has_value())
        return base::Error(EIO, "VRAM lost its contents when it was evicted");
    return {};
  }

 private:
  static constexpr unsigned kBuffers = 3;
  std::vector<GpuMemory> buffers_;
  std::optional<SmiEvents> events_;
};

using Maker = std::unique_ptr<Evictor> (*)();

template <typename Kind>
std::unique_ptr<Evictor> make() {
  return std::make_unique<Kind>();
}

const std::map<std::string, Maker, std::less<>>& makers() {
  static const std::map<std::string, Maker, std::less<>> table = {
      {"percentage_0", make<PercentageEvictor>},
      {"new_queue", make<NewQueueEvictor>},
      {"criu", make<CriuEvictor>},
      {"userptr", make<UserptrEvictor>},
      {"svm", make<SvmEvictor>},
      {"ttm", make<TtmEvictor>},
  };
  return table;
}

}  // namespace

std::vector<std::string> evictor_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) names.push_back(name);
  return names;
}

std::unique_ptr<Evictor> make_evictor(std::string_view name) {
  const auto found = makers().find(name);
  return found == makers().end() ? nullptr : found->second();
}

}  // namespace kfdtest
