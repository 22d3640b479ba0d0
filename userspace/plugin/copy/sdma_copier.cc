// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/copy/sdma_copier.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "plugin/copy/sdma_packet.h"

namespace plugin::copy {
namespace {

using base::Error;
using base::Result;
using base::Status;

// A slice never needs more packets than fit its IB.
static_assert(packet_count(kSliceSize, packets::sdma::kFormat2) * kMaxPacketDwords + kIbAlignDwords <= kIbDwords);

static_assert(kStepSize <= max_packet_bytes(packets::sdma::kFormat2));
// The most that one submission fills, so that it ends within the time that a slice may take.
constexpr std::uint64_t kMaxFill = 256U << 20;

constexpr std::uint64_t kStagingAlign = 4096;

// A BO that is being copied, imported for as long as a submission may use it.
struct Job {
  std::string name;
  std::uint64_t size = 0;
  std::unique_ptr<GpuMemory> memory;
  Sink sink;
};

// A job in a submission, and the bytes of the staging buffer that its sink gets.
struct Part {
  std::shared_ptr<const Job> job;
  std::size_t at = 0;
  std::size_t length = 0;
  std::uint64_t number = 0;  // for the sink's settle()
};

// A submission.
struct Slot {
  enum class State {
    kGathered,   // or empty
    kUnderWay,   // the GPU has it
    kDelivered,  // sinks have its bytes and may still need them
  };
  packets::Words words;
  std::vector<Part> parts;
  std::size_t used = 0;      // bytes of the staging buffer
  std::uint64_t filled = 0;  // bytes that the GPU sets to zero
  std::size_t taken = 0;     // parts whose sinks were given their bytes
  State state = State::kGathered;
};

// Which BOs a failure may be of.
std::string names_in(const Slot& slot) {
  const std::string& first = slot.parts.front().job->name;
  const std::string& last = slot.parts.back().job->name;
  if (slot.parts.size() == 1 || first.empty()) return first;
  return first + " to " + last + " (" + std::to_string(slot.parts.size()) + " in one submission)";
}

Error named(Error error, const std::string& name) {
  return name.empty() ? std::move(error) : std::move(error).wrap(name);
}

class SdmaCopier final : public Copier {
 public:
  SdmaCopier(std::unique_ptr<SdmaEngine> engine, const packets::sdma::Format& format)
      : engine_(std::move(engine)), format_(format) {}

  ~SdmaCopier() override { abandon(); }

  Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) override {
    TRY(start_read({dmabuf, size, {}}, sink));
    return finish_one();
  }
  Outcome write(int dmabuf, std::uint64_t size, Source& source) override {
    TRY(start_write({dmabuf, size, {}}, source));
    return finish_one();
  }

  Outcome start_read(const Bo& bo, const Sink& sink) override {
    TRY(begin_read(bo, sink));
    for (;;) {
      auto left = advance();
      if (!left.ok()) return broken(std::move(left).error());
      if (*left == 0) return {};
    }
  }
  Outcome start_write(const Bo& bo, Source& source) override {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Job> job, begin(bo, {}));
    Status status = gather_write(job, source);
    if (status.ok()) status = end(*job);
    if (status.ok()) return {};
    abandon();
    return broken(std::move(status).error());
  }
  Outcome begin_read(const Bo& bo, const Sink& sink) override {
    ASSIGN_OR_RETURN(reading_, begin(bo, sink));
    begun_ = 0;
    return {};
  }
  Result<std::uint64_t> advance() override {
    if (reading_ == nullptr) return std::uint64_t{0};
    Status status = gather_slice();
    if (!status.ok()) {
      abandon();
      return std::move(status).error();
    }
    const std::uint64_t left = reading_->size - begun_;
    if (left == 0) reading_ = nullptr;
    return left;
  }
  Status finish() override {
    Status status = complete_all();
    if (!status.ok()) abandon();
    return status;
  }
  [[nodiscard]] std::chrono::nanoseconds waited() const override { return waited_; }

 private:
  static Failure broken(Error error) { return {FailureKind::kBroken, std::move(error)}; }

  // A larger BO has submissions of its own, so that one never needs much more memory at once than a slice.
  static bool is_large(std::uint64_t size) { return size > kSliceSize; }

  base::Expected<std::shared_ptr<const Job>, Failure> begin(const Bo& bo, const Sink& sink) {
    if (engine_->hung()) return Failure{FailureKind::kUnreachable, Error(EIO, "the DMA ring did not answer before")};
    auto memory = engine_->import(bo.dmabuf, bo.size);
    if (!memory.ok()) return Failure{FailureKind::kUnreachable, std::move(memory).error()};
    if (Status status = is_large(bo.size) ? flush() : Status(); !status.ok()) {
      abandon();
      return broken(std::move(status).error());
    }
    return std::make_shared<const Job>(Job{bo.name, bo.size, std::move(memory).value(), sink});
  }
  // All of the job is gathered.
  Status end(const Job& job) { return is_large(job.size) ? flush() : Status(); }

  Status gather_slice() {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kSliceSize, reading_->size - begun_));
    TRY(make_room(packet_count(length, format_), length, 0));
    Slot& slot = slots_[current_];
    append_copy(slot.words, reading_->memory->va() + begun_, engine_->staging_va(current_) + slot.used, length,
                format_);
    slot.parts.push_back({reading_, slot.used, length});
    slot.used += aligned(length);
    begun_ += length;
    return begun_ == reading_->size ? end(*reading_) : Status();
  }

  // What is stored goes through the staging buffers; zeros are made by the GPU.
  Status gather_write(const std::shared_ptr<const Job>& job, Source& source) {
    std::uint64_t zeros = 0;  // the next bytes
    std::uint64_t step = 0;
    for (std::uint64_t at = 0; at < job->size; at += step) {
      if (zeros == 0) zeros = source.skip_zeros(job->size - at);
      const std::uint64_t to = job->memory->va() + at;
      if (zeros != 0) {
        step = std::min(zeros, max_packet_bytes(format_));
        TRY(make_room(1, 0, step));
        Slot& slot = slot_with(job);
        append_zeros(slot.words, to, step, format_);
        slot.filled += step;
        zeros -= step;
      } else {
        step = std::min<std::uint64_t>(kStepSize, job->size - at);
        TRY(make_room(1, step, 0));
        Slot& slot = slot_with(job);
        if (Status status = source.read(engine_->staging(current_).subspan(slot.used, step)); !status.ok())
          return named(std::move(status).error(), job->name);
        append_copy(slot.words, engine_->staging_va(current_) + slot.used, to, step, format_);
        slot.used += aligned(step);
      }
    }
    return {};
  }

  static std::size_t aligned(std::uint64_t bytes) {
    return static_cast<std::size_t>((bytes + kStagingAlign - 1) / kStagingAlign * kStagingAlign);
  }

  Slot& slot_with(const std::shared_ptr<const Job>& job) {
    Slot& slot = slots_[current_];
    if (slot.parts.empty() || slot.parts.back().job != job) slot.parts.push_back({job, 0, 0});
    return slot;
  }

  // The current slot is gathered, and has room for so many packets, staged bytes and zeros.
  Status make_room(std::size_t packets, std::uint64_t staged, std::uint64_t filled) {
    const Slot& slot = slots_[current_];
    if (slot.state == Slot::State::kGathered &&
        (slot.words.size() + packets * kMaxPacketDwords + kIbAlignDwords > kIbDwords || slot.parts.size() >= kMaxBos ||
         slot.used + staged > kSliceSize || slot.filled + filled > kMaxFill))
      TRY(flush());
    return settle(current_);
  }

  // Submits what was gathered. The next slot is the oldest one.
  Status flush() {
    Slot& slot = slots_[current_];
    if (slot.state != Slot::State::kGathered || slot.words.empty()) return {};
    pad(slot.words);
    std::vector<const GpuMemory*> bos;
    bos.reserve(slot.parts.size());
    for (const Part& part : slot.parts) bos.push_back(part.job->memory.get());
    if (Status status = engine_->submit(current_, slot.words, bos); !status.ok())
      return named(std::move(status).error(), names_in(slot));
    slot.state = Slot::State::kUnderWay;
    current_ = (current_ + 1) % kSlots;
    // The sinks get their next bytes before they are asked to settle those of the slot that is needed next.
    std::size_t under_way = 0;
    for (const Slot& each : slots_) under_way += each.state == Slot::State::kUnderWay ? 1 : 0;
    for (std::size_t i = 0; i < kSlots && under_way > kSlots / 2; ++i) {
      const std::size_t oldest = (current_ + i) % kSlots;
      if (slots_[oldest].state != Slot::State::kUnderWay) continue;
      TRY(deliver(oldest));
      --under_way;
    }
    return {};
  }

  // Waits for a slot that is under way, and gives the sinks what it has read.
  Status deliver(std::size_t index) {
    Slot& slot = slots_[index];
    if (slot.state != Slot::State::kUnderWay) return {};
    const auto begin = std::chrono::steady_clock::now();
    Status done = engine_->wait(index);
    waited_ += std::chrono::steady_clock::now() - begin;
    if (!done.ok()) return named(std::move(done).error(), names_in(slot));
    slot.state = Slot::State::kDelivered;
    for (Part& part : slot.parts) {
      if (part.length != 0) {
        auto number = part.job->sink.take(engine_->staging(index).subspan(part.at, part.length));
        if (!number.ok()) return named(std::move(number).error(), part.job->name);
        part.number = *number;
      }
      ++slot.taken;
    }
    return {};
  }

  // The slot is empty, or is still gathered.
  Status settle(std::size_t index) {
    TRY(deliver(index));
    Slot& slot = slots_[index];
    if (slot.state != Slot::State::kDelivered) return {};
    for (std::size_t i = 0; i < slot.taken; ++i)
      if (slot.parts[i].length != 0)
        if (Status status = slot.parts[i].job->sink.settle(slot.parts[i].number); !status.ok())
          return named(std::move(status).error(), names_in(slot));
    slot = {};
    return {};
  }

  // The current slot is the oldest one, if it is not gathered.
  Status complete_all() {
    TRY(flush());
    for (std::size_t i = 0; i < kSlots; ++i) TRY(deliver((current_ + i) % kSlots));
    for (std::size_t i = 0; i < kSlots; ++i) TRY(settle((current_ + i) % kSlots));
    return {};
  }

  Outcome finish_one() {
    Status status = finish();
    if (!status.ok()) return Failure{FailureKind::kBroken, std::move(status).error()};
    return {};
  }

  // Nothing may be in flight when the BOs go, and no sink may use a staging buffer. None is given anything.
  void abandon() {
    for (std::size_t i = 0; i < kSlots; ++i) (void)engine_->wait(i);
    for (Slot& slot : slots_) {
      for (std::size_t i = 0; i < slot.taken; ++i)
        if (slot.parts[i].length != 0) (void)slot.parts[i].job->sink.settle(slot.parts[i].number);
      slot = {};
    }
    current_ = 0;
    reading_ = nullptr;
  }

  std::unique_ptr<SdmaEngine> engine_;
  const packets::sdma::Format& format_;
  std::array<Slot, kSlots> slots_;
  std::size_t current_ = 0;
  std::shared_ptr<const Job> reading_;  // what advance() goes on with
  std::uint64_t begun_ = 0;             // its bytes that are gathered
  std::chrono::nanoseconds waited_{};
};

}  // namespace

std::unique_ptr<Copier> make_sdma_copier(std::unique_ptr<SdmaEngine> engine, const packets::sdma::Format& format) {
  return std::make_unique<SdmaCopier>(std::move(engine), format);
}

}  // namespace plugin::copy
