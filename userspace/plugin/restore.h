// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The steps of a restore: GPUs are chosen once for the whole image directory; each task gets its KFD state back, with
// contents, when CRIU asks for its files; mappings are redirected; queues run again when the whole tree stands.
// Runs in CRIU (prepare, resume) and in each restored task, a fork of it (the rest): tables are keyed by pid, since a
// task starts with a copy of its parent's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "plugin/image/catalogue.h"
#include "plugin/parts.h"
#include "plugin/vma_map.h"

namespace plugin {

struct VmaAnswer {
  std::uint64_t offset = 0;
  int fd = -1;  // -1: CRIU opens the path itself; else who owns it is Criu::takes_vma_fd()
};

class Restore {
 public:
  explicit Restore(Parts& parts) : parts_(parts) {}

  // CRIU calls this before it makes the tree of processes: reads all images, and makes the files that must exist in
  // CRIU's own mount namespace.
  base::Status prepare();

  // The open file for image `id`; nothing when the image is not ours. The caller owns the descriptor.
  base::Result<std::optional<int>> restore_file(std::uint32_t id);

  // Nothing when the path is not a device of ours in this task.
  base::Result<std::optional<VmaAnswer>> update_vma(std::string_view path, std::uint64_t addr, std::uint64_t offset);

  // Lets the queues of a restored process run.
  base::Result<Claim> resume(pid_t pid);

 private:
  // An open render node: parked at a number that the program does not use, or the program's own once that is known.
  struct RenderFd {
    base::UniqueFd parked;
    int number = -1;
  };
  struct Task {
    std::map<std::uint32_t, RenderFd> render;  // by destination gpu_id: the file whose VM KFD uses
    std::vector<MappableBo> bos;
    std::vector<MappedGpu> gpus;
    bool settled = false;
  };
  // Choice of GPUs, for all files of one dump.
  struct Plan {
    const image::Session* session = nullptr;
    std::vector<topology::Node> source;
    std::vector<topology::Node> destination;
    topology::GpuMap gpus;
  };

  // Reads the images unless that is done.
  base::Result<const image::Catalogue*> catalogue();
  base::Result<const Plan*> plan_for(const image::Session& session);
  base::Status collect_sources(Plan& plan);
  // The GPU in plan.destination that stands for the image's.
  static base::Result<const topology::Node*> destination_of(const Plan& plan, std::uint32_t source_gpu);
  base::Result<base::UniqueFd> restore_render(const Plan& plan, const image::RenderFile& render);
  base::Result<base::UniqueFd> restore_kfd(const Plan& plan, const image::KfdFile& kfd,
                                           const image::Contents& contents);
  base::Result<kfd::RestoreRequest> make_request(const Plan& plan, const image::KfdFile& kfd);
  base::Status fill_bos(const Plan& plan, const image::KfdFile& kfd, const image::Contents& contents,
                        std::vector<kfd::RestoredBo> restored);
  base::Result<int> kfd_render_fd(const topology::Node& gpu);
  base::UniqueFd park(base::UniqueFd fd) const;
  void settle(Task& task) const;
  Task& task();
  base::Status remember(const Plan& plan, const image::KfdFile& kfd, const std::vector<kfd::RestoredBo>& restored);

  Parts& parts_;
  std::optional<image::Catalogue> catalogue_;
  std::optional<Plan> plan_;
  std::map<pid_t, Task> tasks_;
};

}  // namespace plugin
