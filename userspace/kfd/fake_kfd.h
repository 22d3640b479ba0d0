// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A /dev/kfd in memory for tests: processes with devices and BOs, whose "dmabufs" are memfds. It has either ABI.
// fail_at names the operation that fails; every call is recorded, and counts as a system call (base/os.h), as it is one
// on a real /dev/kfd. Follows the kernel's rules about order
// (CHECKPOINT and UNPAUSE want a pause) so that a wrong order fails here too.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/mapping.h"
#include "kfd/kfd.h"

namespace kfd {

// A process to checkpoint.
struct FakeProcess {
  struct FakeBo {
    Bo bo;
    std::vector<std::byte> contents;
    std::uint32_t handle = 0;
    std::uint64_t inode = 0;  // 0: one that no other BO has
    bool imported = false;
    std::vector<std::uint32_t> mapped = {};
  };

  std::vector<Device> devices;
  std::vector<FakeBo> bos;
  std::vector<std::byte> priv_data;
  std::uint32_t num_objects = 0;
  std::uint32_t pid = 0;
  bool traced = true;        // by the caller
  bool was_reset = false;    // a GPU that it uses, while it was paused
  bool has_objects = false;  // of render nodes: only pause_with_objects() pauses it

  // What happened.
  bool paused = false;          // by the released ABI
  unsigned evicted = 0;         // what PROCESS_INFO and UNPAUSE of the released ABI have counted
  unsigned evictions = 0;       // how often its queues stopped
  [[nodiscard]] bool stands();  // whether its queues are stopped now, by either ABI

  std::deque<base::UniqueFd> pause_ends;  // the other ends of the pause files of the extensible ABI
};

class FakeKfd final : public Kfd {
 public:
  using FakeBo = FakeProcess::FakeBo;

  FakeKfd() : processes(1) {}

  // The first process owns every file that add_file() was not told of.
  std::deque<FakeProcess> processes;
  std::vector<Device>& devices = processes_front().devices;
  std::vector<FakeBo>& bos = processes_front().bos;
  std::vector<std::byte>& priv_data = processes_front().priv_data;
  std::uint32_t& num_objects = processes_front().num_objects;
  std::uint32_t& pid = processes_front().pid;
  bool& paused = processes_front().paused;

  FakeProcess& add_process(std::uint32_t pid);
  // `process` has opened the file behind the descriptor.
  void add_file(int fd, const FakeProcess& process);

  Version kfd_version{1, 16};
  Abi abi = Abi::kReleased;

  // Faults: the operation named as the method of Kfd fails with fail_errno, for one process or for all (0).
  std::string fail_at;
  int fail_errno = 5;
  std::uint32_t fail_pid = 0;

  // What happened.
  std::vector<std::string> calls;
  std::optional<RestoreRequest> restored;
  std::vector<pid_t> resumed;
  // Copies of the descriptors that restore() was given: /dev/kfd, then the render nodes. High numbers.
  std::vector<base::UniqueFd> restored_files;

  // For tests of shared memory: restore() follows the kernel's rules about it, and the memory of each BO of each
  // restore() is here, as a high descriptor; -1 without contents.
  bool keeps_memory = false;
  std::vector<std::vector<base::UniqueFd>> restored_memories;

  [[nodiscard]] bool all_stand();
  [[nodiscard]] bool all_run();
  // Contents of restored BO `index`, as the copier left them.
  [[nodiscard]] std::vector<std::byte> restored_contents(std::size_t index) const;

  base::Result<Version> version(int fd) override;
  base::Result<Abi> choose_abi(int fd) override;
  void use_abi(Abi used) override { abi = used; }
  base::Result<bool> is_traced(int fd) override;
  base::Result<Pause> pause(int fd) override;
  base::Result<Pause> pause_with_objects(int fd) override;
  base::Result<Checkpoint> checkpoint(int fd, const Pause& pause) override;
  base::Result<base::UniqueFd> export_bo(int fd, const Pause& pause, CheckpointedBo& bo) override;
  base::Status confirm(int fd, Pause& pause) override;
  base::Status unpause(int fd, Pause& pause) override;
  base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) override;
  base::Result<base::UniqueFd> export_restored(int fd, const Bo& bo, RestoredBo& restored_bo) override;
  base::Status resume(int fd, pid_t target) override;
  base::Result<base::UniqueFd> allocate(int fd, const Allocation& allocation) override;

 private:
  base::Result<Pause> pause(int fd, bool saves_objects);
  struct File {
    base::UniqueFd fd;
    std::size_t process = 0;  // index
  };

  FakeProcess& processes_front() { return processes.front(); }
  FakeProcess& process_of(int fd);
  base::Status step(int fd, const std::string& name, Operation operation);

  std::vector<File> files_;
  base::Status give_memories();
  // The memory of restored BO `index`, which has contents; keeps no descriptor of it.
  base::Result<base::UniqueFd> make_restored_memory(std::size_t index);

  std::vector<base::Mapping> restored_memory_;  // by BO; empty without contents
};

// The name of the memfd that FakeKfd::allocate() makes.
[[nodiscard]] std::string fake_memory_name(const Allocation& allocation);
// The offset that FakeKfd::restore() gives to BO `index`.
[[nodiscard]] std::uint64_t fake_restored_offset(std::size_t index);

}  // namespace kfd
