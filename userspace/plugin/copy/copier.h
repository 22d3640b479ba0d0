// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Moves contents of BOs between a GPU and host memory. A Copier belongs to one GPU, has one fixed pool of buffers
// whatever the BOs' size, and is used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace plugin::copy {

// Gets a BO's contents in order, slice by slice; all but the last have kSliceSize bytes.
class Sink {
 public:
  // Answers a number for Settle: until that has returned, the bytes stay as they are.
  using Take = std::function<base::Result<std::uint64_t>(std::span<const std::byte>)>;
  // Returns when the bytes of all calls of Take up to the one that answered `number` are needed no more.
  using Settle = std::function<base::Status(std::uint64_t number)>;

  Sink() = default;
  Sink(Take take, Settle settle) : take_(std::move(take)), settle_(std::move(settle)) {}
  // Takes a function that needs the bytes no more when it returns.
  template <typename Function>
  requires std::is_invocable_r_v<base::Status, Function&, std::span<const std::byte>> Sink(Function function)
      : take_([function = std::move(function)](std::span<const std::byte> slice) -> base::Result<std::uint64_t> {
          TRY(function(slice));
          return std::uint64_t{0};
        }) {}

  [[nodiscard]] base::Result<std::uint64_t> take(std::span<const std::byte> slice) const { return take_(slice); }
  [[nodiscard]] base::Status settle(std::uint64_t number) const {
    return settle_ == nullptr ? base::Status() : settle_(number);
  }
  // Both.
  base::Status operator()(std::span<const std::byte> slice) const {
    ASSIGN_OR_RETURN(const std::uint64_t number, take(slice));
    return settle(number);
  }

 private:
  Take take_;
  Settle settle_;
};

// The BO's contents in order.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  // Passes over the next bytes that are known to be zero, and returns how many these are: at most `limit`.
  virtual std::uint64_t skip_zeros(std::uint64_t limit) = 0;
  // Fills `out` with the next bytes.
  virtual base::Status read(std::span<std::byte> out) = 0;
};

// A multiple of the image's chunk size, so that a slice ends where a chunk ends.
inline constexpr std::size_t kSliceSize = 8U << 20;
// The most that a source is asked for at once. Between two steps it is asked for zeros.
inline constexpr std::size_t kStepSize = 1U << 20;

// A BO of several that are copied in a row. `name` is that in errors; dmabuf is borrowed for the call that is given it.
struct Bo {
  int dmabuf = -1;
  std::uint64_t size = 0;
  std::string name;
};

// Whether a failed copy may be tried in another way: kUnreachable promises that no byte was asked for or delivered.
enum class FailureKind { kUnreachable, kBroken };
struct Failure {
  FailureKind kind;
  base::Error error;
};
using Outcome = base::Expected<void, Failure>;

// As `outcome`, with the name in front of what broke.
inline Outcome named(Outcome outcome, const std::string& name) {
  if (outcome.ok() || name.empty() || outcome.error().kind == FailureKind::kUnreachable) return outcome;
  Failure failure = std::move(outcome).error();
  return Failure{failure.kind, std::move(failure.error).wrap(name)};
}

class Copier {
 public:
  Copier() = default;
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  virtual ~Copier() = default;

  // dmabuf is borrowed for the call.
  virtual Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) = 0;
  virtual Outcome write(int dmabuf, std::uint64_t size, Source& source) = 0;

  // Many BOs, of which several may be under way at once. All is copied when finish() has succeeded. Sinks are called in
  // the order of the BOs, until then; sources before start_write() returns. A failure that is kBroken, and that of
  // finish(), may be that of an earlier BO and begins with its name; after it no sink is given anything. Whether
  // finish() was called or not, each sink is asked to settle what it was given before the copier ends.
  virtual Outcome start_read(const Bo& bo, const Sink& sink) {
    return named(this->read(bo.dmabuf, bo.size, sink), bo.name);
  }
  virtual Outcome start_write(const Bo& bo, Source& source) {
    return named(this->write(bo.dmabuf, bo.size, source), bo.name);
  }
  virtual base::Status finish() { return {}; }

  // What start_read() does, in parts, for a thread that keeps several copiers busy: begin_read(), then advance() until
  // it answers 0. Each advance() begins at most a slice, and answers how many bytes of the BO it has not begun yet. A
  // copier that does not work beside its caller has read all when begin_read() returns.
  virtual Outcome begin_read(const Bo& bo, const Sink& sink) { return start_read(bo, sink); }
  virtual base::Result<std::uint64_t> advance() { return std::uint64_t{0}; }
  // How long all calls together have waited for the GPU.
  [[nodiscard]] virtual std::chrono::nanoseconds waited() const { return {}; }
};

// The CPU, through mmap() of the dmabuf: for what it can see.
std::unique_ptr<Copier> make_cpu_copier();

// The CPU, for a BO of which there is no DMA-buf: instead of one, read() and write() are given the file of the render
// node that the BO is in, which has it at `offset`.
std::unique_ptr<Copier> make_mapping_copier(std::uint64_t offset);

// `sdma`, and the CPU for BOs that it cannot reach. Without `sdma`, `why_no_sdma` says why.
std::unique_ptr<Copier> make_auto_copier(std::unique_ptr<Copier> sdma, std::string why_no_sdma);

enum class Method { kAuto, kSdma, kCpu };

// The one that copies by `method`, for the GPU behind `render_fd` (borrowed; the copier opens nothing else and leaves
// no trace in that file once destroyed). kAuto is SDMA, and the CPU for BOs or GPUs that SDMA cannot reach.
base::Result<std::unique_ptr<Copier>> make_copier(int render_fd, Method method, std::chrono::seconds fence_timeout);

}  // namespace plugin::copy
