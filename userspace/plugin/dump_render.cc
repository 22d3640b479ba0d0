// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The part of a dump that saves render nodes with their objects. What these are was read before (render_objects.h).
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "plugin/dump.h"
#include "plugin/topology/snapshot.h"

namespace plugin {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

// In files that KFD uses, memory of KFD is saved with KFD's state, and what is left in found_ like that of other files.
Status Dump::take_kfd_objects() {
  for (std::size_t i = 0; i < tree_.files.size(); ++i) {
    if (!found_[i] || roles_[i].binding == image::Binding::kOther) continue;
    const auto process = std::find_if(processes_.begin(), processes_.end(),
                                      [&](const Process& each) { return each.pid == roles_[i].owner; });
    if (process == processes_.end()) return Error(ESRCH, tree_.name_of(tree_.files[i]) + ": KFD uses it for nobody");
    if (auto status = take_objects_of(i, *process); !status.ok())
      return std::move(status).error().wrap(tree_.name_of(tree_.files[i]));
  }
  return refuse_hidden_objects();
}

Status Dump::take_objects_of(std::size_t file, const Process& process) {
  if (!process.pause.has_objects)
    return Error(
        EOPNOTSUPP,
        "it has GEM objects, and KFD uses its VM; with the released ABI of KFD they can only be saved in a file "
        "that the program has opened for them alone");
  const std::size_t asked = tree_.asked_holder(tree_.files[file]).task;
  if (asked != process.task)
    return Error(EOPNOTSUPP,
                 "it has GEM objects in the VM that KFD uses for " + name_of(process) + ", and " +
                     tree_.tasks[asked].name() +
                     " with a lower pid has the file too, which CRIU would ask for it; end that program, or "
                     "let it close the file");
  const topology::Node* gpu = topology::find_render_minor(nodes_, tree_.files[file].device.minor);
  for (const kfd::Device& device : process.state.devices)
    if (device.actual_id == gpu->gpu_id)
      return kfd_objects::take(*found_[file], process.state, device.user_id, handles_of_kfd_);
  return Error(ESRCH, "KFD has no VM of it");
}

// The kernel also counts objects of files that nobody has open any more but KFD.
Status Dump::refuse_hidden_objects() const {
  for (const Process& process : processes_) {
    if (!process.pause.has_objects) continue;
    for (const kfd::Device& device : process.state.devices) {
      const topology::Node* gpu = topology::find_gpu(nodes_, device.actual_id);
      if (gpu != nullptr && keeps_render_file(process, gpu->render_minor())) continue;
      return Error(EOPNOTSUPP, name_of(process) + ": it has objects of render nodes, and has closed the file of GPU " +
                                   std::to_string(device.actual_id) +
                                   " that KFD uses, so that it is unknown which of them are in this file");
    }
  }
  return {};
}

std::vector<std::size_t> Dump::files_with_objects() const {
  std::vector<std::size_t> files;
  for (std::size_t i = 0; i < found_.size(); ++i)
    if (found_[i]) files.push_back(i);
  return files;
}

std::vector<sharing::Process> Dump::sharers_with_objects() const {
  std::vector<sharing::Process> sharers;
  for (const std::size_t file : files_with_objects()) {
    sharing::Process& sharer =
        sharers.emplace_back(sharing::Process{tree_.name_of(tree_.files[file]), false, {}, true});
    for (const image::BoRecord& record : found_[file]->bos)
      sharer.bos.push_back({record.inode, record.bo.size, record.bo.alloc_flags, record.imported, false});
  }
  return sharers;
}

Result<image::RenderFile> Dump::save_render(std::size_t file, std::uint32_t id, std::uint32_t open_flags) {
  const OpenFile& open = tree_.files[file];
  const topology::Node* gpu = topology::find_render_minor(nodes_, open.device.minor);
  image::RenderFile out{gpu->gpu_id, open_flags, roles_[file].binding, roles_[file].owner};
  if (!found_[file]) return out;
  out.objects = std::move(found_[file]->objects);
  out.bos = std::move(found_[file]->bos);
  const auto files = files_with_objects();
  const std::size_t self =
      processes_.size() + static_cast<std::size_t>(std::find(files.begin(), files.end(), file) - files.begin());
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t bytes = 0;
  for (image::BoRecord& record : out.bos) {
    record.bo.user_gpu_id = gpu->gpu_id;
    const auto shared = record.inode == 0 ? std::nullopt : sharing_.find(record.inode);
    record.stored_elsewhere = shared && sharing_.memories()[*shared].origin.process != self;
    if (image::stores_contents(record)) bytes += record.bo.size;
  }
  const Copying copying(*this);
  copy::ParallelReads reads;
  if (bytes != 0) {
    ASSIGN_OR_RETURN(copy::Copier* const copier, copier_of(*gpu));
    image::FileWriter& contents = writer_->file(id);
    reads.add(*copier, [&, next = std::size_t{0}]() mutable { return read_object(open, out, next, contents); });
  }
  TRY(reads.run());
  const auto time = std::chrono::steady_clock::now() - begin;
  services_.criu.inform(tree_.name_of(open) + ": " + std::to_string(out.bos.size()) + " GEM objects, " +
                        std::to_string(bytes >> 10) + " KiB in " +
                        std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms");
  return out;
}

Result<std::optional<copy::Read>> Dump::read_object(const OpenFile& file, const image::RenderFile& out,
                                                    std::size_t& next, image::FileWriter& writer) {
  for (; next < out.bos.size(); ++next) {
    const image::BoRecord& record = out.bos[next];
    if (!image::stores_contents(record)) continue;
    std::string name = "contents of GEM object " + std::to_string(record.handle);
    const copy::Sink sink = sink_into(writer, image::name_of(image::Kind::kRender, out.owner, record));
    auto dmabuf = services_.render.driver->export_gem(file.fd.get(), out.objects.gem[next].handle);
    if (!dmabuf.ok()) return base::Error(dmabuf.error()).wrap(name);
    if (dmabuf->has_value()) {
      ++next;
      return std::optional(copy::Read{std::move(**dmabuf), record.bo.size, std::move(name), sink});
    }
    auto outcome = copy::make_mapping_copier(record.bo.mmap_offset)->read(file.fd.get(), record.bo.size, sink);
    if (!outcome.ok()) return std::move(outcome).error().error.wrap(name);
  }
  return std::optional<copy::Read>();
}

// That of the first render node; preflight has refused a sync file without any.
std::uint32_t Dump::first_gpu() const {
  const auto render = std::find_if(tree_.files.begin(), tree_.files.end(),
                                   [](const OpenFile& file) { return file.device.kind == DeviceKind::kRender; });
  return render == tree_.files.end() ? 0 : topology::find_render_minor(nodes_, render->device.minor)->gpu_id;
}

Status Dump::save_lost(const dmabuf_memory::Found& memory, const OpenFile& file, image::FileWriter& writer,
                       image::DmabufFile& out) {
  out.gpu_id = memory.gpu->gpu_id;
  out.object = memory.object;
  out.alloc_flags = memory.alloc_flags;
  out.bos = {memory.record};
  const Copying copying(*this);
  ASSIGN_OR_RETURN(copy::Copier * copier, copier_of(*memory.gpu));
  const auto name = image::name_of(image::Kind::kDmabuf, 0, memory.record);
  auto outcome = copier->read(file.fd.get(), memory.record.bo.size, sink_into(writer, name));
  if (!outcome.ok()) return std::move(outcome).error().error;
  return {};
}

}  // namespace plugin
