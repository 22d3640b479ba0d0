// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a program has besides the memory and the queues that KFD gave it, and what makes its checkpoint difficult: GEM
// objects, children, further open files. Each addition is made before the checkpoint and checked after it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "drmtest/harness/buffer.h"
#include "kfdtest-criu/demo/command_line.h"

namespace fieldtest {

// How a GEM object of a render node is used: mapped by the CPU; known by its handle only; mapped by the GPU too; known
// by a handle that is high because lower ones existed when it was made.
enum class GemUse : std::uint8_t { kMapped, kHandle, kAddress, kHighHandle };

// A GEM object of 1 MiB with a pattern, made by libdrm in a file of the first render node that is its own.
class GemObject {
 public:
  static base::Result<std::unique_ptr<GemObject>> create(GemUse use);
  // The object is still there and has the pattern.
  base::Status check();

 private:
  explicit GemObject(drmtest::Device device) : device_(std::move(device)) {}
  drmtest::Device device_;
  std::optional<drmtest::Bo> bo_;
  std::optional<drmtest::Buffer> buffer_;
};

// Whether the process ids of the children are above that of the parent, or below, as after the ids wrapped around.
enum class Pids : std::uint8_t { kHigh, kLow };

// Two children that inherit all files and wait, like the workers of a data loader.
class Children {
 public:
  static base::Result<Children> fork(Pids pids);
  Children(Children&& other) noexcept : pids_(std::exchange(other.pids_, {})) {}
  Children& operator=(Children&&) = delete;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();
  // Both are alive, and the driver refuses them the /dev/kfd of their parent, as it did before. Ends them.
  base::Status finish();

 private:
  Children() = default;
  std::vector<pid_t> pids_;
};

// Opens /dev/kfd once more and keeps it open.
[[nodiscard]] base::Result<base::UniqueFd> open_kfd_again();
// Keeps a pidfd of the guest's init open, which CRIU cannot dump, with a number above those of all other files.
[[nodiscard]] base::Result<base::UniqueFd> hold_pidfd();

// A DMA-buf that the driver vgem has exported, whose module must be loaded, with a pattern.
class VgemDmabuf {
 public:
  static base::Result<VgemDmabuf> create();
  base::Status check() const;

 private:
  explicit VgemDmabuf(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
};

// The additions that a command line asks for.
struct Additions {
  std::optional<GemUse> gem;
  std::optional<Pids> children;
  bool kfd_again = false;
  bool pidfd = false;
  bool vgem = false;

  // Makes the options known; this must live until the line is read.
  void declare(kfdtest::CommandLine& line);
};

// The additions of one process, once they are made.
class Added {
 public:
  static base::Result<Added> make(const Additions& wanted);
  base::Status check();

 private:
  std::unique_ptr<GemObject> gem_;
  base::UniqueFd kfd_;
  base::UniqueFd pidfd_;
  std::optional<VgemDmabuf> vgem_;
  std::optional<Children> children_;
};

}  // namespace fieldtest
