// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/saved_files.h"

#include <fcntl.h>

#include <algorithm>

#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

constexpr std::uint32_t kRegisters = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP;

SavedFile saved_file(const image::Loaded& loaded) {
  return {loaded.id(),
          loaded.kind(),
          image::owner_of(loaded.file()),
          static_cast<int>(image::open_flags_of(loaded.file()) & O_NONBLOCK),
          loaded.session().id,
          &loaded};
}

bool has_file(const CriuTask& task, std::uint32_t id) {
  for (const ExternalFd& fd : task.files)
    if (fd.file_id == id) return true;
  return false;
}

bool has_kfd_state(const std::vector<SavedFile>& files, std::uint64_t session_id, std::uint32_t pid) {
  for (const SavedFile& file : files)
    if (file.kind == image::Kind::kKfd && file.session_id == session_id && file.owner == pid) return true;
  return false;
}

// The GPUs that an image's file needs.
std::vector<std::uint32_t> gpus_of(const image::Loaded& loaded) {
  std::vector<std::uint32_t> ids;
  if (const auto* kfd = loaded.kfd()) {
    for (const kfd::Device& device : kfd->devices) ids.push_back(device.actual_id);
  } else if (const auto* render = loaded.render()) {
    ids.push_back(render->gpu_id);
  } else if (const auto* dmabuf = loaded.dmabuf(); dmabuf != nullptr && dmabuf->gpu_id != 0) {
    ids.push_back(dmabuf->gpu_id);
  } else if (const auto* sync_file = loaded.sync_file()) {
    ids.push_back(sync_file->gpu_id);
  }
  return ids;
}

}  // namespace

std::vector<SavedFile> saved_files(const image::Catalogue& catalogue) {
  std::vector<SavedFile> files;
  for (const image::Loaded* loaded : catalogue.intact()) files.push_back(saved_file(*loaded));
  return files;
}

void find_owners(std::vector<SavedFile>& files, const CriuImages& tasks) {
  for (SavedFile& file : files) {
    const image::RenderFile* render = file.loaded->render();
    if (render == nullptr || render->binding == image::Binding::kOther || file.owner != 0) continue;
    for (const auto& [pid, task] : tasks.tasks()) {
      if (!has_file(task, file.id) || !has_kfd_state(files, file.session_id, pid)) continue;
      file.owner = pid;
      break;
    }
  }
}

std::vector<topology::Node> needed_gpus(const std::vector<SavedFile>& files, std::uint64_t session_id) {
  std::vector<topology::Node> nodes;
  for (const SavedFile& file : files) {
    if (file.session_id != session_id) continue;
    for (const std::uint32_t gpu_id : gpus_of(*file.loaded)) {
      if (topology::find_gpu(nodes, gpu_id) == nullptr)
        nodes.push_back(*topology::find_gpu(file.loaded->session().nodes, gpu_id));
    }
  }
  return nodes;
}

std::vector<std::uint32_t> gpus_without_memory(const std::vector<SavedFile>& files, std::uint64_t session_id) {
  std::vector<std::uint32_t> without;
  for (const topology::Node& node : needed_gpus(files, session_id)) {
    const bool has_memory = std::any_of(files.begin(), files.end(), [&](const SavedFile& file) {
      const image::KfdFile* kfd = file.session_id == session_id ? file.loaded->kfd() : nullptr;
      return kfd != nullptr && std::any_of(kfd->bos.begin(), kfd->bos.end(), [&](const image::BoRecord& record) {
               return (record.bo.alloc_flags & kRegisters) == 0 &&
                      image::actual_id_of(*kfd, record.bo.user_gpu_id) == node.gpu_id;
             });
    });
    if (!has_memory) without.push_back(node.gpu_id);
  }
  return without;
}

}  // namespace plugin
