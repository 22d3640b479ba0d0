// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The CPU copier, and the choice among copiers.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/os.h"
#include "plugin/copy/copier.h"
#include "plugin/copy/sdma.h"

namespace plugin::copy {
namespace {

using base::Error;
using base::Result;
using base::Status;

// Where a copier finds a BO.
struct Place {
  std::uint64_t offset = 0;
  bool is_dmabuf = true;
};

// A view of one slice of a BO, with the cache maintenance that dmabufs want around CPU access. A render node would take
// the number of that ioctl for one of its own, and coherence is the program's business there.
class View {
 public:
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  View(View&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_), file_(other.file_), flags_(other.flags_) {}
  ~View() { (void)finish(); }

  static Result<View> open(int file, const Place& place, std::size_t size, int protection) {
    void* data = os::mmap(nullptr, size, protection, MAP_SHARED, file, static_cast<off_t>(place.offset));
    if (data == MAP_FAILED) return Error::from_errno(errno, "mapping a BO for the CPU");
    const std::uint64_t flags = (protection & PROT_WRITE) != 0 ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ;
    View view(data, size, file, place.is_dmabuf ? flags : 0);
    TRY(view.sync(DMA_BUF_SYNC_START));
    return view;
  }
  // The memory is not complete before this has succeeded.
  Status finish() {
    if (data_ == nullptr) return {};
    Status status = sync(DMA_BUF_SYNC_END);
    os::munmap(std::exchange(data_, nullptr), size_);
    return status;
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), size_}; }

 private:
  View(void* data, std::size_t size, int file, std::uint64_t flags)
      : data_(data), size_(size), file_(file), flags_(flags) {}

  // Queues are paused and fences waited for; where the file knows no such request, there is nothing to keep coherent.
  [[nodiscard]] Status sync(std::uint64_t phase) const {
    if (flags_ == 0) return {};
    dma_buf_sync request{};
    request.flags = flags_ | phase;
    int result = 0;
    do {
      result = os::ioctl(file_, DMA_BUF_IOCTL_SYNC, &request);
    } while (result < 0 && (errno == EINTR || errno == EAGAIN));
    if (result == 0 || errno == ENOTTY) return {};
    return Error::from_errno(errno, "DMA_BUF_IOCTL_SYNC of a BO");
  }

  void* data_;
  std::size_t size_;
  int file_;
  std::uint64_t flags_;  // DMA_BUF_SYNC_*; 0: no dmabuf
};

// Where a copy continues when a page of it raises SIGBUS; null: no copy is in progress. CRIU runs a plugin in one
// thread.
sigjmp_buf* g_after_bus_error = nullptr;

void handle_bus_error(int /*signal*/) {
  if (g_after_bus_error != nullptr) siglongjmp(*g_after_bus_error, 1);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  (void)os::sigaction(SIGBUS, &action, nullptr);
}

class BusErrorHandler {
 public:
  BusErrorHandler() {
    struct sigaction action {};
    action.sa_handler = handle_bus_error;
    action.sa_flags = SA_NODEFER;  // the jump does not restore the mask of signals
    (void)os::sigaction(SIGBUS, &action, &old_);
    // CRIU blocks all signals before it forks the processes that it restores, and the kernel kills a process whose
    // fault raises a blocked signal.
    sigset_t bus_error;
    sigemptyset(&bus_error);
    sigaddset(&bus_error, SIGBUS);
    (void)os::pthread_sigmask(SIG_UNBLOCK, &bus_error, &mask_);
  }
  BusErrorHandler(const BusErrorHandler&) = delete;
  BusErrorHandler& operator=(const BusErrorHandler&) = delete;
  ~BusErrorHandler() {
    (void)os::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    (void)os::sigaction(SIGBUS, &old_, nullptr);
  }

 private:
  sigset_t mask_{};
  struct sigaction old_ {};
};

// The kernel raises SIGBUS for a page of a BO that it cannot give to the CPU: the GPU was unplugged, its reset lost the
// memory, or the CPU does not see this part of VRAM. CRIU must not die of it. Without `from`, zeros are written.
[[gnu::noinline]] Status copy_bytes(std::byte* to, const std::byte* from, std::size_t size) {
  const BusErrorHandler handler;
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    g_after_bus_error = nullptr;
    return Error(EIO, "copying a BO by the CPU: the kernel gives no memory for a page of it (SIGBUS)");
  }
  g_after_bus_error = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (from == nullptr)
    std::memset(to, 0, size);
  else
    std::memcpy(to, from, size);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  g_after_bus_error = nullptr;
  return {};
}

class CpuCopier final : public Copier {
 public:
  explicit CpuCopier(Place place) : place_(place) {}

  // Through memory of our own: the kernel refuses direct or zero-copy I/O on a mapping of a BO (EFAULT).
  Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) override {
    return each_slice(dmabuf, size, PROT_READ, [&](std::span<std::byte> view) -> Status {
      bounce_.resize(view.size());
      TRY(copy_bytes(bounce_.data(), view.data(), view.size()));
      return sink(bounce_);
    });
  }
  Outcome write(int dmabuf, std::uint64_t size, Source& source) override {
    return each_slice(dmabuf, size, PROT_READ | PROT_WRITE, [&](std::span<std::byte> view) -> Status {
      while (!view.empty()) {
        const auto zeros = static_cast<std::size_t>(source.skip_zeros(view.size()));
        if (zeros != 0) TRY(copy_bytes(view.data(), nullptr, zeros));
        view = view.subspan(zeros);
        bounce_.resize(std::min(view.size(), kStepSize));
        if (bounce_.empty()) break;
        TRY(source.read(bounce_));
        TRY(copy_bytes(view.data(), bounce_.data(), bounce_.size()));
        view = view.subspan(bounce_.size());
      }
      return {};
    });
  }

 private:
  [[nodiscard]] Outcome each_slice(int file, std::uint64_t size, int protection,
                                   const std::function<Status(std::span<std::byte>)>& body) const {
    for (std::uint64_t offset = 0; offset < size; offset += kSliceSize) {
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kSliceSize, size - offset));
      auto view = View::open(file, {place_.offset + offset, place_.is_dmabuf}, length, protection);
      if (!view.ok())
        return Failure{offset == 0 ? FailureKind::kUnreachable : FailureKind::kBroken, std::move(view).error()};
      Status status = body(view->bytes());
      if (Status end = view->finish(); status.ok()) status = std::move(end);
      if (!status.ok()) return Failure{FailureKind::kBroken, std::move(status).error()};
    }
    return {};
  }

  Place place_;
  std::vector<std::byte> bounce_;
};

// Copies by SDMA, and by the CPU what SDMA cannot reach.
class AutoCopier final : public Copier {
 public:
  AutoCopier(std::unique_ptr<Copier> sdma, std::string why_no_sdma)
      : sdma_(std::move(sdma)), why_no_sdma_(std::move(why_no_sdma)) {}

  Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) override {
    return first_that_works([&](Copier& copier) { return copier.read(dmabuf, size, sink); });
  }
  Outcome write(int dmabuf, std::uint64_t size, Source& source) override {
    return first_that_works([&](Copier& copier) { return copier.write(dmabuf, size, source); });
  }
  Outcome start_read(const Bo& bo, const Sink& sink) override {
    return first_that_works([&](Copier& copier) { return copier.start_read(bo, sink); });
  }
  Outcome start_write(const Bo& bo, Source& source) override {
    return first_that_works([&](Copier& copier) { return copier.start_write(bo, source); });
  }
  Outcome begin_read(const Bo& bo, const Sink& sink) override {
    return first_that_works([&](Copier& copier) { return copier.begin_read(bo, sink); });
  }
  Result<std::uint64_t> advance() override {
    return sdma_ ? sdma_->advance() : Result<std::uint64_t>(std::uint64_t{0});
  }
  Status finish() override { return sdma_ ? sdma_->finish() : Status(); }
  [[nodiscard]] std::chrono::nanoseconds waited() const override {
    return sdma_ ? sdma_->waited() : std::chrono::nanoseconds();
  }

 private:
  template <typename Copy>
  Outcome first_that_works(const Copy& copy) {
    std::string reason = why_no_sdma_;
    if (sdma_) {
      Outcome outcome = copy(*sdma_);
      if (outcome.ok() || outcome.error().kind == FailureKind::kBroken) return outcome;
      reason = outcome.error().error.message();
      // The CPU delivers at once what it reads: earlier BOs come first.
      if (Status status = finish(); !status.ok()) return Failure{FailureKind::kBroken, std::move(status).error()};
    }
    Outcome outcome = copy(*cpu_);
    if (outcome.ok()) return outcome;
    Failure failure = std::move(outcome).error();
    return Failure{failure.kind, Error(failure.error.code(), failure.error.message() + " (and SDMA: " + reason + ")")};
  }

  std::unique_ptr<Copier> sdma_;
  std::string why_no_sdma_;
  std::unique_ptr<Copier> cpu_ = make_cpu_copier();
};

}  // namespace

std::unique_ptr<Copier> make_cpu_copier() { return std::make_unique<CpuCopier>(Place{}); }

std::unique_ptr<Copier> make_auto_copier(std::unique_ptr<Copier> sdma, std::string why_no_sdma) {
  return std::make_unique<AutoCopier>(std::move(sdma), std::move(why_no_sdma));
}

std::unique_ptr<Copier> make_mapping_copier(std::uint64_t offset) {
  return std::make_unique<CpuCopier>(Place{offset, false});
}

Result<std::unique_ptr<Copier>> make_copier(int render_fd, Method method, std::chrono::seconds fence_timeout) {
  if (method == Method::kCpu) return make_cpu_copier();
  auto sdma = make_sdma_copier(render_fd, fence_timeout);
  if (method == Method::kSdma) return sdma;
  if (sdma.ok()) return make_auto_copier(std::move(sdma).value(), {});
  return make_auto_copier(nullptr, sdma.error().message());
}

}  // namespace plugin::copy
