// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One process, one VM: guest RAM, the bus, and for each GPU its BAR, device thread and socket. The main thread's loop
// accepts guests, notices that they have gone, and power-cycles their GPU.
// Knows no block and no register.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "vasicd/context/trace.h"
#include "vasicd/control/server.h"
#include "vasicd/device_thread.h"
#include "vasicd/host/options.h"
#include "vasicd/mem/bus.h"
#include "vasicd/transport/ivshmem.h"
#include "vasicd/waves/worker_pool.h"

namespace vasicd {

class Host {
 public:
  // Takes the lock of options.dir, creates everything, listens. Errors are one line for the user.
  static base::Result<std::unique_ptr<Host>> create(const Options& options, const EngineFactory& make_engines);
  ~Host();

  // "vasicd: ready pid=<pid> ram=/proc/<pid>/fd/<n> gpus=<n>"
  [[nodiscard]] std::string ready_line() const;

  // Serves guests until `stop_fd` is readable or, with options.once, until the last of the guests has gone.
  base::Status serve(int stop_fd);

 private:
  struct Gpu;

  Host() = default;
  base::Status lock_directory(const std::string& dir);
  base::Status add_gpus(const Options& options, const EngineFactory& make_engines);
  base::Status start_control(const std::string& path);
  void serve_gpu(Gpu& gpu);

  bool once_ = false;
  bool any_guest_yet_ = false;
  base::UniqueFd lock_;
  std::unique_ptr<TraceFile> trace_file_;
  SteadyClock clock_;
  WorkerPool workers_;
  SharedMemory ram_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::unique_ptr<Bus> bus_;
  std::unique_ptr<control::Server> control_;
};

}  // namespace vasicd
