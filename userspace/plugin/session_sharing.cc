// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/session_sharing.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "kfd/abi.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;

constexpr auto kWritable = static_cast<std::uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE);

// The id of the GPU of a BO on the machine of the dump.
std::uint32_t gpu_id_of(const image::Loaded& file, const image::BoRecord& record) {
  return file.kfd() != nullptr ? image::actual_id_of(*file.kfd(), record.bo.user_gpu_id) : record.bo.user_gpu_id;
}

std::string name_of(const image::Loaded& file) {
  if (file.kfd() != nullptr) return "process " + std::to_string(file.kfd()->pid);
  return (file.dmabuf() != nullptr ? "DMA-buf, file " : "render node, file ") + std::to_string(file.id());
}

sharing::Process process_of(const image::Loaded& file, bool is_late) {
  sharing::Process process{name_of(file), is_late, {}, file.kfd() == nullptr};
  for (const image::BoRecord& record : image::bos_of(file.file()))
    process.bos.push_back({kfd::has_contents(record.bo) ? record.inode : 0, record.bo.size, record.bo.alloc_flags,
                           record.imported, image::stores_contents(record)});
  return process;
}

Status check_contents(const SessionSharing& found) {
  for (const image::Loaded* file : found.files)
    for (const image::BoRecord& record : image::bos_of(file->file()))
      if (record.stored_elsewhere && !found.plan.find(record.inode))
        return Error(EINVAL, name_of(*file) + ": the contents of shared memory of " + std::to_string(record.bo.size) +
                                 " bytes are not stored");
  return {};
}

// The released ABI of KFD can neither be given memory nor name that of its BOs.
Status check_abi(const SessionSharing& found) {
  if (found.files.empty() || found.files.front()->session().abi == image::Abi::kExtensible) return {};
  for (const sharing::Memory& memory : found.plan.memories())
    for (const std::size_t holder : memory.holders)
      if (found.files[holder]->kfd() != nullptr)
        return Error(EINVAL, "processes share memory, which the released ABI of KFD cannot give them");
  return {};
}

// It could not be exported to those who share it.
Status check_gem(const SessionSharing& found) {
  for (const sharing::Memory& memory : found.plan.memories())
    if (memory.is_gem && (found.gem_of(memory).flags & image::kGemVmAlwaysValid) != 0)
      return Error(EINVAL, name_of(*found.files[memory.origin.process]) + ": GEM object " +
                               std::to_string(found.gem_of(memory).handle) +
                               " is shared, and only the VM of its file can have it");
  return {};
}

// The dump, which goes through processes in another order than this, has written these with the contents.
std::map<std::uint64_t, std::uint32_t> foreign_flags_of(const SessionSharing& found) {
  std::map<std::uint64_t, std::uint32_t> flags;
  for (std::size_t process = 0; process < found.files.size(); ++process) {
    const image::KfdFile* kfd = found.files[process]->kfd();
    if (kfd == nullptr) continue;
    for (const image::ForeignMemory& foreign : kfd->foreign_memories)
      if (const auto memory = found.plan.find(foreign.inode); memory && found.contents[*memory].process == process)
        flags.emplace(foreign.inode, foreign.alloc_flags);
  }
  return flags;
}

Status check_dmabuf(const SessionSharing& found, const image::Loaded& file) {
  const image::DmabufFile& dmabuf = *file.dmabuf();
  bool is_known = false;
  for (const image::Loaded* other : found.files) {
    for (const image::BoRecord& record : image::bos_of(other->file())) {
      if (!kfd::has_contents(record.bo) || record.inode != dmabuf.inode) continue;
      if (record.bo.size != dmabuf.size)
        return Error(EINVAL, "file " + std::to_string(file.id()) + ": a DMA-buf of " + std::to_string(dmabuf.size) +
                                 " bytes has the memory of a BO of " + std::to_string(record.bo.size) + " bytes of " +
                                 name_of(*other));
      if (other->kfd() != nullptr && file.session().abi != image::Abi::kExtensible)
        return Error(EINVAL, "file " + std::to_string(file.id()) +
                                 ": a DMA-buf of memory that the released ABI of KFD does not name");
      is_known = true;
    }
  }
  if (is_known) return {};
  return Error(EINVAL, "file " + std::to_string(file.id()) + ": a DMA-buf of memory that no BO of the dump has");
}

Result<SessionSharing> make(SessionSharing found, const std::function<bool(const image::Loaded& file)>& is_late,
                            std::set<std::uint64_t> needed) {
  std::vector<sharing::Process> processes;
  for (const image::Loaded* file : found.files) processes.push_back(process_of(*file, is_late(*file)));
  ASSIGN_OR_RETURN(found.plan, sharing::Plan::make(processes, std::move(needed)));
  TRY(check_abi(found));
  TRY(check_gem(found));
  ASSIGN_OR_RETURN(found.contents, sharing::find_contents(found.plan, processes));
  TRY(check_contents(found));
  found.foreign_flags = foreign_flags_of(found);
  return found;
}

}  // namespace

std::uint32_t SessionSharing::alloc_flags_of(const sharing::Memory& memory) const {
  const image::Loaded& file = *files[memory.origin.process];
  std::uint32_t flags =
      file.dmabuf() != nullptr ? file.dmabuf()->alloc_flags : file.kfd()->bos[memory.origin.bo].bo.alloc_flags;
  const std::uint32_t kind = flags & kfd::abi::kMemoryKinds;
  if (const auto foreign = foreign_flags.find(memory.inode); foreign != foreign_flags.end()) flags = foreign->second;
  // A BO of an AQL queue is one by its own flag, and not by its memory. The CPU can write through the DMA-buf of a
  // writable one.
  return kind | (flags & kfd::abi::kMemoryAttributes) | (read_only.contains(memory.inode) ? 0 : kWritable);
}

bool SessionSharing::is_gem(const sharing::Memory& memory) const {
  const image::DmabufFile* dmabuf = files[memory.origin.process]->dmabuf();
  return memory.is_gem && (dmabuf == nullptr || dmabuf->alloc_flags == 0);
}

const image::GemObject& SessionSharing::gem_of(const sharing::Memory& memory) const {
  const image::Loaded& file = *files[memory.origin.process];
  return file.dmabuf() != nullptr ? file.dmabuf()->object : file.render()->objects.gem[memory.origin.bo];
}

std::uint32_t SessionSharing::gpu_of(const sharing::Memory& memory) const {
  const image::Loaded& file = *files[memory.origin.process];
  return gpu_id_of(file, image::bos_of(file.file())[memory.origin.bo]);
}

std::size_t SessionSharing::index_of(std::uint32_t file_id) const {
  const auto found =
      std::find_if(files.begin(), files.end(), [file_id](const image::Loaded* file) { return file->id() == file_id; });
  return static_cast<std::size_t>(found - files.begin());
}

Result<SessionSharing> sharing_of(const std::vector<const image::Loaded*>& files,
                                  const std::function<bool(const image::Loaded& file)>& is_late,
                                  const std::function<bool(const image::Loaded& dmabuf)>& is_needed) {
  SessionSharing found;
  for (const image::Loaded* file : files)
    if (file->kfd() != nullptr) found.files.push_back(file);
  for (const image::Loaded* file : files)
    if (file->kfd() == nullptr && !image::bos_of(file->file()).empty()) found.files.push_back(file);
  std::set<std::uint64_t> needed;
  for (const image::Loaded* file : files) {
    if (file->dmabuf() == nullptr) continue;
    if (auto status = check_dmabuf(found, *file); !status.ok()) return std::move(status).error().wrap("invalid image");
    if (file->dmabuf()->read_only) found.read_only.insert(file->dmabuf()->inode);
    if (is_needed(*file)) needed.insert(file->dmabuf()->inode);
  }
  auto result = make(std::move(found), is_late, std::move(needed));
  if (result.ok()) return result;
  return std::move(result).error().wrap("invalid image");
}

}  // namespace plugin
