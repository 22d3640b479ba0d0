// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The steps of a dump: for each device file of the program, pause its queues, save, and leave them paused until CRIU
// has saved host memory too; finish() lets them run again, whatever happened before.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin/image/writer.h"
#include "plugin/parts.h"

namespace plugin {

class Dump {
 public:
  Dump(Parts& parts, std::uint64_t session_id) : parts_(parts), session_id_(session_id) {}

  // fd (borrowed) is the program's open file. When kMine is answered, its image is written; finish() commits.
  base::Result<Claim> dump_file(int fd, std::uint32_t id);

  // Commits the images if every dump_file() succeeded, else removes them. Un-pauses every queue that dump_file()
  // paused. Answers what failed or could not be undone.
  std::vector<base::Error> finish();

 private:
  // A file of the program through which its queues are, or may be, paused.
  struct Paused {
    base::UniqueFd file;
    kfd::Pause pause;
    bool certain = false;
  };

  base::Status dump_kfd(int fd, std::uint32_t id);
  base::Status dump_render(int fd, std::uint32_t id, std::uint32_t minor);
  base::Status check_version();
  base::Result<Paused*> pause(int fd);
  base::Status save_bos(const Paused& paused, std::vector<kfd::CheckpointedBo> bos, const std::vector<topology::Node>& nodes,
                        image::Writer& writer, image::KfdFile& out);
  base::Result<image::BoRecord> save_bo(const Paused& paused, kfd::CheckpointedBo bo, const topology::Node& gpu, image::Writer& writer);
  base::Result<copy::Copier*> copier_of(const topology::Node& gpu);

  Parts& parts_;
  std::uint64_t session_id_;
  std::unique_ptr<image::SessionWriter> images_;  // from the first file of ours on
  image::Session session_;
  std::vector<std::uint32_t> gpus_;  // that the files need
  bool failed_ = false;
  std::vector<Paused> paused_;
  std::map<std::uint32_t, std::unique_ptr<copy::Copier>> copiers_;  // by actual gpu_id
};

}  // namespace plugin
