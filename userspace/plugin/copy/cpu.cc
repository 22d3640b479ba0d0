// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The CPU copier, and the choice among copiers.
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
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

// A view of one slice of a dmabuf, with the cache maintenance that dmabufs want around CPU access.
class View {
 public:
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  View(View&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_), dmabuf_(other.dmabuf_), flags_(other.flags_) {}
  ~View() {
    if (data_ == nullptr) return;
    sync(DMA_BUF_SYNC_END);
    os::munmap(data_, size_);
  }

  static Result<View> open(int dmabuf, std::uint64_t offset, std::size_t size, int protection) {
    void* data = os::mmap(nullptr, size, protection, MAP_SHARED, dmabuf, static_cast<off_t>(offset));
    if (data == MAP_FAILED) return Error::from_errno(errno, "mapping a BO for the CPU");
    View view(data, size, dmabuf, (protection & PROT_WRITE) != 0 ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ);
    view.sync(DMA_BUF_SYNC_START);
    return view;
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), size_}; }

 private:
  View(void* data, std::size_t size, int dmabuf, std::uint64_t flags)
      : data_(data), size_(size), dmabuf_(dmabuf), flags_(flags) {}

  // Queues are paused and fences waited for; where the file knows no such request, there is nothing to keep coherent.
  void sync(std::uint64_t phase) const {
    dma_buf_sync request{};
    request.flags = flags_ | phase;
    (void)os::ioctl(dmabuf_, DMA_BUF_IOCTL_SYNC, &request);
  }

  void* data_;
  std::size_t size_;
  int dmabuf_;
  std::uint64_t flags_;
};

class CpuCopier final : public Copier {
 public:
  // Through memory of our own: the kernel refuses direct or zero-copy I/O on a mapping of a BO (EFAULT).
  Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) override {
    return each_slice(dmabuf, size, PROT_READ, [&](std::span<std::byte> view) {
      bounce_.assign(view.begin(), view.end());
      return sink(bounce_);
    });
  }
  Outcome write(int dmabuf, std::uint64_t size, const Source& source) override {
    return each_slice(dmabuf, size, PROT_READ | PROT_WRITE, [&](std::span<std::byte> view) -> Status {
      bounce_.resize(view.size());
      TRY(source(bounce_));
      std::copy(bounce_.begin(), bounce_.end(), view.begin());
      return {};
    });
  }

 private:
  static Outcome each_slice(int dmabuf, std::uint64_t size, int protection,
                            const std::function<Status(std::span<std::byte>)>& body) {
    for (std::uint64_t offset = 0; offset < size; offset += kSliceSize) {
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kSliceSize, size - offset));
      auto view = View::open(dmabuf, offset, length, protection);
      if (!view.ok())
        return Failure{offset == 0 ? FailureKind::kUnreachable : FailureKind::kBroken, std::move(view).error()};
      if (auto status = body(view->bytes()); !status.ok())
        return Failure{FailureKind::kBroken, std::move(status).error()};
    }
    return {};
  }

  std::vector<std::byte> bounce_;
};

// Copies by SDMA, and by the CPU what SDMA cannot reach.
class AutoCopier final : public Copier {
 public:
  // Without `sdma`, `why_no_sdma` says why.
  AutoCopier(std::unique_ptr<Copier> sdma, std::string why_no_sdma)
      : sdma_(std::move(sdma)), why_no_sdma_(std::move(why_no_sdma)) {}

  Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) override {
    return first_that_works([&](Copier& copier) { return copier.read(dmabuf, size, sink); });
  }
  Outcome write(int dmabuf, std::uint64_t size, const Source& source) override {
    return first_that_works([&](Copier& copier) { return copier.write(dmabuf, size, source); });
  }

 private:
  template <typename Copy>
  Outcome first_that_works(const Copy& copy) {
    std::string reason = why_no_sdma_;
    if (sdma_) {
      Outcome outcome = copy(*sdma_);
      if (outcome.ok() || outcome.error().kind == FailureKind::kBroken) return outcome;
      reason = outcome.error().error.message();
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

std::unique_ptr<Copier> make_cpu_copier() { return std::make_unique<CpuCopier>(); }

Result<std::unique_ptr<Copier>> make_copier(int render_fd, const Options& options) {
  if (options.copy == CopyMethod::kCpu) return make_cpu_copier();
  auto sdma = make_sdma_copier(render_fd, options.fence_timeout);
  if (options.copy == CopyMethod::kSdma) return sdma;
  if (sdma.ok()) return std::unique_ptr<Copier>(std::make_unique<AutoCopier>(std::move(sdma).value(), std::string()));
  return std::unique_ptr<Copier>(std::make_unique<AutoCopier>(nullptr, sdma.error().message()));
}

}  // namespace plugin::copy
