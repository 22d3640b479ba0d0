// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Construction of all parts, and the loop over sockets.
#include "vasicd/host/host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace vasicd {
namespace {

constexpr const char* kLockName = "/vasicd.lock";

// Eventfds that interrupt the guest, of one GPU.
class GuestLine final : public InterruptLine {
 public:
  explicit GuestLine(const Vectors& vectors) : vectors_(vectors) {}
  void signal() override { ::eventfd_write(vectors_[VASIC_VECTOR_IH].get(), 1); }

 private:
  const Vectors& vectors_;
};

void drain(const Vectors& vectors) {
  eventfd_t count = 0;
  for (const auto& vector : vectors) (void)::eventfd_read(vector.get(), &count);
}

std::string lock_holder(int fd) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  if (got <= 0) return "?";
  std::string pid(text.data(), static_cast<std::size_t>(got));
  return pid.substr(0, pid.find('\n'));
}

}  // namespace

// Members are destroyed in reverse order: the socket first, then the thread, then what the thread uses.
struct Host::Gpu {
  Gpu(const vasic_info& chip, TraceFile* trace_file, unsigned gpu_index, const Clock& clock)
      : info(chip), trace(trace_file, gpu_index, clock), index(gpu_index) {}

  vasic_info info;
  GpuTrace trace;
  unsigned index;
  std::unique_ptr<Region> region;
  Vectors host_vectors;
  Vectors guest_vectors;
  GuestLine line{guest_vectors};
  std::unique_ptr<DeviceThread> thread;
  std::unique_ptr<IvshmemServer> server;

  [[nodiscard]] IvshmemOffer offer() const {
    return {.memory = region->fd(), .host = host_vectors, .guest = guest_vectors};
  }
};

Host::~Host() {
  control_.reset();
  // Sockets are closed first, so that no guest connects to a device that is being destroyed; then the threads end,
  // which use the bus.
  for (auto& gpu : gpus_) gpu->server.reset();
  for (auto& gpu : gpus_) gpu->thread.reset();
}

base::Result<std::unique_ptr<Host>> Host::create(const Options& options, const EngineFactory& make_engines) {
  std::unique_ptr<Host> host(new Host);
  host->once_ = options.once;
  TRY(host->lock_directory(options.dir));
  if (!options.trace.empty()) {
    ASSIGN_OR_RETURN(host->trace_file_, TraceFile::create(options.trace));
  }
  ASSIGN_OR_RETURN(host->ram_, SharedMemory::create(options.ram_size, "vasic-ram"));
  TRY(host->add_gpus(options, make_engines));
  if (!options.control.empty()) TRY(host->start_control(options.control));
  return host;
}

base::Status Host::lock_directory(const std::string& dir) {
  const std::string path = dir + kLockName;
  lock_ = base::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_.valid()) return base::Error::from_errno(errno, path);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::Error::from_errno(errno, path);
    return base::Error(EBUSY, dir + ": another vasicd (pid " + lock_holder(lock_.get()) + ") is running here");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock_.get(), 0) != 0 || ::pwrite(lock_.get(), pid.data(), pid.size(), 0) < 0)
    return base::Error::from_errno(errno, path);
  return {};
}

base::Status Host::add_gpus(const Options& options, const EngineFactory& make_engines) {
  std::vector<Bar> bars;
  std::vector<std::span<std::byte>> vram;
  for (const vasic_info& info : options.gpus) {
    auto gpu = std::make_unique<Gpu>(info, trace_file_.get(), static_cast<unsigned>(gpus_.size()), clock_);
    ASSIGN_OR_RETURN(gpu->region, Region::create(info));
    ASSIGN_OR_RETURN(gpu->host_vectors, create_vectors());
    ASSIGN_OR_RETURN(gpu->guest_vectors, create_vectors());
    bars.push_back({.bytes = gpu->region->bytes(), .reach = VASIC_OFF_VRAM + info.vram_visible_size});
    vram.push_back(gpu->region->vram());
    gpus_.push_back(std::move(gpu));
  }
  bus_ = std::make_unique<Bus>(GuestRam(ram_.mapping.bytes(), options.ram_low), std::move(bars));
  for (auto& gpu : gpus_) {
    const DeviceSlot slot{.gpu = gpu->index,
                          .info = gpu->info,
                          .region = *gpu->region,
                          .bus = *bus_,
                          .line = gpu->line,
                          .trace = gpu->trace,
                          .clock = clock_,
                          .workers = workers_,
                          .hive = hive_of(options.gpus, gpu->index, vram)};
    gpu->thread = std::make_unique<DeviceThread>(slot, make_engines, gpu->host_vectors[VASIC_VECTOR_KICK].get());
    ASSIGN_OR_RETURN(gpu->server, IvshmemServer::listen(options.dir + "/gpu" + std::to_string(gpu->index) + ".sock"));
  }
  return {};
}

base::Status Host::start_control(const std::string& path) {
  std::vector<control::Target> targets;
  for (const auto& gpu : gpus_) targets.push_back({.thread = *gpu->thread, .trace = gpu->trace.buffer()});
  ASSIGN_OR_RETURN(control_, control::Server::start(path, targets));
  return {};
}

std::string Host::ready_line() const {
  const std::string pid = std::to_string(::getpid());
  return "vasicd: ready pid=" + pid + " ram=/proc/" + pid + "/fd/" + std::to_string(ram_.fd.get()) +
         " gpus=" + std::to_string(gpus_.size());
}

void Host::serve_gpu(Gpu& gpu) {
  // The end of the old guest is handled first, because a new guest may have connected already.
  if (gpu.server->client_gone()) {
    gpu.trace.line("guest: disconnected");
    if (const auto cycled = gpu.thread->power_cycle(); !cycled.ok())
      std::fprintf(stderr, "vasicd: gpu%u: %s\n", gpu.index, cycled.error().message().c_str());
    drain(gpu.guest_vectors);
  }
  const bool had_client = gpu.server->client() >= 0;
  if (const auto accepted = gpu.server->accept(gpu.offer()); !accepted.ok())
    std::fprintf(stderr, "vasicd: gpu%u: %s\n", gpu.index, accepted.error().message().c_str());
  if (!had_client && gpu.server->client() >= 0) {
    any_guest_yet_ = true;
    gpu.trace.line("guest: connected");
  }
}

base::Status Host::serve(int stop_fd) {
  while (true) {
    std::vector<pollfd> watched{{.fd = stop_fd, .events = POLLIN, .revents = 0}};
    for (const auto& gpu : gpus_) {
      watched.push_back({.fd = gpu->server->listener(), .events = POLLIN, .revents = 0});
      // poll() ignores the negative descriptor of an absent client.
      watched.push_back({.fd = gpu->server->client(), .events = POLLIN, .revents = 0});
    }
    if (::poll(watched.data(), watched.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return base::Error::from_errno(errno, "poll");
    }
    if (watched.front().revents != 0) return {};
    for (const auto& gpu : gpus_) serve_gpu(*gpu);
    const bool any_guest = std::ranges::any_of(gpus_, [](const auto& gpu) { return gpu->server->client() >= 0; });
    if (once_ && any_guest_yet_ && !any_guest) return {};
  }
}

}  // namespace vasicd
