// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The chain of pending_work.h. Offsets are odd on purpose: copies cross pages and are not aligned.
#include "kfdtest-criu/demo/pending_work.h"

#include <algorithm>
#include <cerrno>

namespace kfdtest {
namespace {

constexpr std::size_t kVramSize = 8 * kMiB;
constexpr std::size_t kGttSize = 4 * kMiB;
constexpr std::size_t kUserptrSize = 2 * kMiB;

// Byte offsets in the page of words.
constexpr std::size_t kGate = 0x000;  // the program opens it
constexpr std::size_t kSdmaFirstDone = 0x040;
constexpr std::size_t kPm4Done = 0x080;
constexpr std::size_t kWarmUp = 0x0c0;
constexpr std::size_t kPm4Counter = 0x100;
constexpr std::size_t kSignals = 0x800;
constexpr std::uint32_t kOpen = 0x600d;

constexpr std::uint32_t kWarmUpRounds = 20;
// Much longer than any checkpoint takes; the script that checkpoints has time limits of its own.
constexpr std::chrono::hours kEventLimit{24};

// First copy: userptr -> VRAM. Second: VRAM -> GTT, overlapping the first one's destination.
constexpr std::size_t kFirstSource = 5;
constexpr std::size_t kFirstTarget = kMiB + 3;
constexpr std::size_t kFirstSize = kUserptrSize - 77;
constexpr std::size_t kSecondSource = kMiB - 1001;
constexpr std::size_t kSecondTarget = 4099;
constexpr std::size_t kSecondSize = 2 * kMiB + 13;
// After PM4: GTT -> VRAM far away, VRAM -> userptr.
constexpr std::size_t kThirdSource = 4096 - 7;
constexpr std::size_t kThirdTarget = 5 * kMiB + 1;
constexpr std::size_t kThirdSize = 3 * kMiB - 100;
constexpr std::size_t kFourthSource = 5 * kMiB + 9000;
constexpr std::size_t kFourthTarget = 333;
constexpr std::size_t kFourthSize = kMiB + 777;

// Where PM4 works: words inside what the copies have moved.
constexpr std::size_t kPm4InVram = kMiB + 64;
constexpr std::size_t kPm4InGtt = 8192;
constexpr std::size_t kPm4InUserptr = kMiB + 4096;  // where the fourth copy does not reach

base::Error passed(std::string_view what) { return {EIO, std::string(what) + " went on although its gate is closed"}; }

}  // namespace

base::Result<std::unique_ptr<PendingWork>> PendingWork::start(const Gpu& gpu, std::uint64_t seed) {
  std::unique_ptr<PendingWork> work(new PendingWork);
  TRY(work->allocate(gpu, seed));
  TRY(work->run_to_completion());
  TRY(work->submit_aql());
  TRY(work->submit_sdma_first());
  TRY(work->submit_pm4());
  TRY(work->submit_sdma_second());
  work->sleeper_ = std::async(std::launch::async, [event = &*work->event_] {
    return event->wait(std::chrono::duration_cast<std::chrono::milliseconds>(kEventLimit));
  });
  TRY(work->expect_pending());
  return work;
}

PendingWork::~PendingWork() {
  if (sleeper_.valid()) (void)event_->set();  // its thread is joined by the future
}

base::Status PendingWork::allocate(const Gpu& gpu, std::uint64_t seed) {
  ASSIGN_OR_RETURN(vram_, GpuMemory::allocate(gpu, MemoryKind::kVram, kVramSize));
  ASSIGN_OR_RETURN(gtt_, GpuMemory::allocate(gpu, MemoryKind::kGtt, kGttSize));
  ASSIGN_OR_RETURN(userptr_, GpuMemory::allocate(gpu, MemoryKind::kUserptr, kUserptrSize));
  ASSIGN_OR_RETURN(words_, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  fill_pattern(vram_->bytes(), seed);
  fill_pattern(gtt_->bytes(), seed + 1);
  fill_pattern(userptr_->bytes(), seed + 2);
  std::fill(words_->bytes().begin(), words_->bytes().end(), std::byte{0});
  ASSIGN_OR_RETURN(event_, KfdEvent::create(gpu));
  ASSIGN_OR_RETURN(RingQueue pm4, RingQueue::create(gpu, QueueKind::kPm4));
  pm4_.emplace(std::move(pm4));
  ASSIGN_OR_RETURN(RingQueue sdma, RingQueue::create(gpu, QueueKind::kSdma));
  sdma_.emplace(std::move(sdma));
  ASSIGN_OR_RETURN(AqlQueue aql, AqlQueue::create(gpu));
  aql_.emplace(std::move(aql));
  std::size_t at = kSignals;
  for (auto* const signal : {&by_program_, &by_sdma_, &middle_}) {
    signal->emplace(*words_, at, 1);
    at += AqlSignal::kSize;
  }
  done_.emplace(*words_, at, kWarmUpRounds + 1, &*event_);
  return {};
}

// Moves the queues' pointers away from those of fresh queues.
base::Status PendingWork::run_to_completion() {
  for (std::uint32_t round = 1; round <= kWarmUpRounds; ++round) {
    TRY(pm4_->submit(Pm4Commands(pm4_->gpu()).atomic_add32(word(kWarmUp), 1).nop(round).dwords()));
    TRY(sdma_->submit(SdmaCommands(sdma_->gpu()).atomic_add64(word(kWarmUp + 8), round).nop(round).dwords()));
    TRY(aql_->submit(aql_barrier_and({}, &*done_)));
    ASSIGN_OR_RETURN(const WaitOutcome outcome, event_->wait(std::chrono::seconds(20)));
    if (outcome != WaitOutcome::kSignaled) return base::Error(ETIME, "no event of a plain barrier");
  }
  TRY(pm4_->wait_idle());
  TRY(sdma_->wait_idle());
  TRY(aql_->wait_idle());
  return wait_for_word(*words_, kWarmUp, kWarmUpRounds);
}

base::Status PendingWork::submit_sdma_first() {
  return sdma_->submit(SdmaCommands(sdma_->gpu())
                           .wait_equal(word(kGate), kOpen)
                           .copy(vram_->gpu_address(kFirstTarget), userptr_->gpu_address(kFirstSource), kFirstSize)
                           .copy(gtt_->gpu_address(kSecondTarget), vram_->gpu_address(kSecondSource), kSecondSize)
                           .fence(word(kSdmaFirstDone), kOpen)
                           .dwords());
}

base::Status PendingWork::submit_pm4() {
  const std::uint32_t immediate[] = {0x1111dead, 0x2222beef, 0x3333cafe};
  Pm4Commands commands(pm4_->gpu());
  commands.wait_equal(word(kSdmaFirstDone), kOpen);
  for (std::size_t i = 0; i < 16; ++i)
    commands.copy64(vram_->gpu_address(kPm4InVram + 8 * i), gtt_->gpu_address(kPm4InGtt + 8 * (15 - i)))
        .atomic_add64(gtt_->gpu_address(kPm4InGtt + 8 * i), 0x0123'4567'89ab'cdef + i)
        .atomic_add32(word(kPm4Counter), 3);
  commands.write(userptr_->gpu_address(kPm4InUserptr), immediate)
      .copy32(userptr_->gpu_address(kPm4InUserptr + 64), vram_->gpu_address(kPm4InVram))
      .fence(word(kPm4Done), kOpen);
  return pm4_->submit(commands.dwords());
}

base::Status PendingWork::submit_sdma_second() {
  constexpr std::uint32_t kZero64[] = {0, 0};
  return sdma_->submit(SdmaCommands(sdma_->gpu())
                           .wait_equal(word(kPm4Done), kOpen)
                           .copy(vram_->gpu_address(kThirdTarget), gtt_->gpu_address(kThirdSource), kThirdSize)
                           .copy(userptr_->gpu_address(kFourthTarget), vram_->gpu_address(kFourthSource), kFourthSize)
                           .atomic_add64(vram_->gpu_address(kVramSize - 8), 0xfedc'ba98'7654'3210)
                           .write(by_sdma_->value_address(), kZero64)
                           .dwords());
}

base::Status PendingWork::submit_aql() {
  const AqlSignal* const both[] = {&*by_sdma_, &*by_program_};
  TRY(aql_->submit(aql_barrier_and(both, &*middle_)));
  const AqlSignal* const after[] = {&*middle_};
  return aql_->submit(aql_barrier_and(after, &*done_));
}

base::Status PendingWork::expect_pending() const {
  if (words_->load32(kSdmaFirstDone) != 0) return passed("SDMA");
  if (words_->load32(kPm4Done) != 0 || words_->load32(kPm4Counter) != 0) return passed("PM4");
  if (by_sdma_->value() != 1 || middle_->value() != 1 || done_->value() != 1) return passed("AQL");
  if (sleeper_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return passed("the waiting thread");
  return {};
}

base::Result<std::uint64_t> PendingWork::beat() {
  const Gpu& gpu = sdma_->gpu();
  ASSIGN_OR_RETURN(const GpuMemory counter, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  counter.store32(0, static_cast<std::uint32_t>(beats_));
  counter.store32(4, 0);
  TRY(run_alone(gpu, SdmaCommands(gpu).atomic_add64(counter.gpu_address(), 1)));
  if (counter.load64(0) != beats_ + 1) return base::Error(EIO, "the GPU did not count");
  return ++beats_;
}

base::Status PendingWork::finish() {
  words_->store32(kGate, kOpen);
  by_program_->store(0);
  if (!wait_until([this] { return sleeper_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }))
    return base::Error(ETIME, "nobody woke the waiting thread: sdma " + std::to_string(words_->load32(kSdmaFirstDone)) +
                                  ", pm4 " + std::to_string(words_->load32(kPm4Done)) + ", aql gate " +
                                  std::to_string(by_sdma_->value()) + ", done " + std::to_string(done_->value()));
  ASSIGN_OR_RETURN(const WaitOutcome outcome, sleeper_.get());
  if (outcome != WaitOutcome::kSignaled) return base::Error(ETIME, "the wait for the event timed out");
  TRY(pm4_->wait_idle());
  TRY(sdma_->wait_idle());
  return aql_->wait_idle();
}

void PendingWork::add_to(Checksum& checksum) const {
  for (const auto* const memory : {&*vram_, &*gtt_, &*userptr_}) checksum.add(memory->bytes());
  checksum.add(words_->bytes().first(kSignals));
  for (const auto* const signal : {&*by_program_, &*by_sdma_, &*middle_, &*done_}) {
    const std::int64_t value = signal->value();
    checksum.add(std::as_bytes(std::span(&value, 1)));
  }
}

base::Result<std::unique_ptr<SecondGpuWork>> SecondGpuWork::start(const Gpu& gpu, std::uint64_t seed) {
  std::unique_ptr<SecondGpuWork> work(new SecondGpuWork);
  ASSIGN_OR_RETURN(work->vram_, GpuMemory::allocate(gpu, MemoryKind::kVram, kMiB));
  ASSIGN_OR_RETURN(work->words_, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  fill_pattern(work->vram_->bytes(), seed);
  std::fill(work->words_->bytes().begin(), work->words_->bytes().end(), std::byte{0});
  ASSIGN_OR_RETURN(RingQueue pm4, RingQueue::create(gpu, QueueKind::kPm4));
  work->pm4_.emplace(std::move(pm4));
  TRY(work->pm4_->submit(Pm4Commands(gpu)
                             .wait_equal(work->words_->gpu_address(kGate), kOpen)
                             .atomic_add64(work->vram_->gpu_address(kPageSize), 0x5ec0'4d00'0000'0001)
                             .fence(work->words_->gpu_address(kPm4Done), kOpen)
                             .dwords()));
  return work;
}

base::Status SecondGpuWork::expect_pending() const {
  if (words_->load32(kPm4Done) != 0) return passed("PM4 of the second GPU");
  return {};
}

base::Status SecondGpuWork::finish() {
  words_->store32(kGate, kOpen);
  return wait_for_word(*words_, kPm4Done, kOpen);
}

base::Result<std::unique_ptr<SvmQueueWork>> SvmQueueWork::start(const Gpu& gpu) {
  std::unique_ptr<SvmQueueWork> work(new SvmQueueWork);
  ASSIGN_OR_RETURN(work->words_, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  std::fill(work->words_->bytes().begin(), work->words_->bytes().end(), std::byte{0});
  ASSIGN_OR_RETURN(SvmQueue queue, SvmQueue::create(gpu));
  work->queue_.emplace(std::move(queue));
  TRY(work->queue_->submit(Pm4Commands(gpu)
                               .wait_equal(work->words_->gpu_address(kGate), kOpen)
                               .fence(work->words_->gpu_address(kPm4Done), kOpen)
                               .dwords()));
  return work;
}

base::Status SvmQueueWork::expect_pending() const {
  if (words_->load32(kPm4Done) != 0) return passed("PM4 with an SVM save area");
  return {};
}

base::Status SvmQueueWork::finish() {
  words_->store32(kGate, kOpen);
  return wait_for_word(*words_, kPm4Done, kOpen);
}

}  // namespace kfdtest
