// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The part of a dump that saves KFD's memory. All GPUs are read at once, for all processes: a dump of many GPUs, in one
// process or in as many, takes as long as the slowest of them, or as the disk takes for all.
#include <algorithm>

#include "plugin/dump.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Result;
using base::Status;
using base::UniqueFd;

std::string bo_name(std::size_t index, const kfd::Bo& bo) {
  return "BO " + std::to_string(index) + " of " + std::to_string(bo.size) + " bytes";
}

std::string gpu_name(const topology::Node& gpu) {
  return "GPU " + std::to_string(gpu.gpu_id) + " (renderD" + std::to_string(gpu.render_minor()) + ")";
}

// A BO of which one with the same memory was saved before it.
bool shares_contents(const std::vector<image::BoRecord>& before, const kfd::CheckpointedBo& bo) {
  return bo.inode != 0 && std::any_of(before.begin(), before.end(), [&](const image::BoRecord& record) {
           return record.inode == bo.inode && record.bo.size == bo.bo.size && image::stores_contents(record);
         });
}

}  // namespace

Result<image::KfdFile> Dump::save_process(Process& process, std::uint32_t id) {
  const auto self = static_cast<std::size_t>(&process - processes_.data());
  image::KfdFile out;
  out.pid = process.pid;
  out.num_objects = process.pause.info.num_objects;
  out.devices = process.state.devices;
  ASSIGN_OR_RETURN(SharedFiles shared, services_.system.read_shared_files(tree_.tasks[process.task].pid));
  out.shared_files = std::move(shared.files);
  out.own_mount_namespace = shared.own_mount_namespace;
  TRY(writer_->give_id(*saved_[self].contents, id));
  out.bos = std::move(saved_[self].bos);
  for (const sharing::Memory& memory : sharing_.memories())
    if (const auto foreign = foreign_.find(memory.inode); foreign != foreign_.end() && memory.origin.process == self)
      out.foreign_memories.push_back({memory.inode, foreign->second});
  out.priv_data = std::move(process.state.priv_data);
  return out;
}

Status Dump::save_contents() {
  if (!saved_.empty()) return {};
  saved_.resize(processes_.size());
  const Copying copying(*this);
  WantedOfGpus wanted;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    saved_[i].contents = &writer_->nameless_file();
    place_bos(i, wanted);
  }
  copy::ParallelReads reads;
  for (const auto& [gpu, bos] : wanted) {
    auto copier = copier_of(*gpu);
    if (!copier.ok()) return std::move(copier).error().wrap(gpu_name(*gpu));
    reads.add(**copier, [this, &bos = bos, next = std::size_t{0}]() mutable -> Result<std::optional<copy::Read>> {
      if (next == bos.size()) return std::optional<copy::Read>();
      ASSIGN_OR_RETURN(copy::Read read, read_bo(bos[next++]));
      return std::optional(std::move(read));
    });
  }
  TRY(reads.run());
  for (const auto& [gpu, bos] : wanted) {
    std::uint64_t bytes = 0;
    for (const Wanted& each : bos) bytes += each.process->state.bos[each.bo].bo.size;
    services_.criu.inform(gpu_name(*gpu) + ": " + std::to_string(bos.size()) + " BOs, " + std::to_string(bytes >> 10) +
                          " KiB");
  }
  return {};
}

void Dump::place_bos(std::size_t process, WantedOfGpus& wanted) {
  Process& self = processes_[process];
  image::FileWriter& contents = *saved_[process].contents;
  for (std::size_t i = 0; i < self.state.bos.size(); ++i) {
    const kfd::CheckpointedBo& bo = self.state.bos[i];
    image::BoRecord record{bo.bo, bo.handle, bo.inode, false, bo.imported, false};
    place_contents(process, i, record);
    if (image::stores_contents(record)) {
      const topology::Node* gpu = preflight::gpu_of(nodes_, self.state, bo.bo.user_gpu_id);
      wanted[gpu].push_back({&self, i, sink_into(contents, image::name_of(image::Kind::kKfd, self.pid, record))});
    }
    saved_[process].bos.push_back(record);
  }
}

void Dump::place_contents(std::size_t process, std::size_t bo, image::BoRecord& record) const {
  const auto shared = record.inode == 0 ? std::nullopt : sharing_.find(record.inode);
  if (!shared) {
    record.shares_contents = shares_contents(saved_[process].bos, processes_[process].state.bos[bo]);
    return;
  }
  const sharing::Place& origin = sharing_.memories()[*shared].origin;
  record.shares_contents = origin.process == process && origin.bo != bo;
  record.stored_elsewhere = origin.process != process;
}

Result<copy::Read> Dump::read_bo(const Wanted& wanted) {
  kfd::CheckpointedBo& bo = wanted.process->state.bos[wanted.bo];
  std::string name = name_of(*wanted.process) + ": " + bo_name(wanted.bo, bo.bo);
  auto dmabuf = services_.kfd.export_bo(fd_of(*wanted.process), wanted.process->pause, bo);
  if (!dmabuf.ok()) return std::move(dmabuf).error().wrap(name);
  return copy::Read{std::move(dmabuf).value(), bo.bo.size, std::move(name), wanted.sink};
}

Result<copy::Copier*> Dump::copier_of(const topology::Node& gpu) {
  auto& copier = copiers_[gpu.gpu_id];
  if (copier == nullptr) {
    ASSIGN_OR_RETURN(const UniqueFd render, services_.system.open_render(gpu.render_minor()));
    ASSIGN_OR_RETURN(copier, services_.make_copier(render.get(), services_.options));
  }
  return copier.get();
}

}  // namespace plugin
