// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// DMA-bufs that programs have, and memory that the tasks of a restore have to give each other:
// Restore::restore_dmabuf() and restore_memories.cc do it, and what they could not do is refused here.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>

#include "base/os.h"
#include "plugin/preflight.h"
#include "plugin/queued_file.h"

namespace plugin::preflight {
namespace {

using base::Error;
using base::Result;
using base::Status;

// The module that exports the DMA-bufs of all DRM drivers.
constexpr std::string_view kGpuExporter = "drm";

Error refused(const std::string& what, const std::string& why) { return Error(EOPNOTSUPP, what + ": " + why); }

Result<dmabuf_file::Info> dmabuf_of(const Services& services, const Tree& tree, const OpenFile& file) {
  auto info = services.find_dmabuf(file.fd.get());
  if (info.ok() && info->has_value()) return std::move(info).value().value();
  const Error error = info.ok() ? Error(EPROTO, "procfs does not say of which DMA-buf it is") : info.error();
  return Error(error).wrap(tree.name_of(file));
}

bool has_memory(const Process& process, std::uint64_t inode) {
  return std::any_of(process.state.bos.begin(), process.state.bos.end(),
                     [inode](const kfd::CheckpointedBo& bo) { return kfd::has_contents(bo.bo) && bo.inode == inode; });
}

// Descriptors that this process has of a DMA-buf: that of the tree, and those of a program whose descriptors CRIU has
// taken to look at them.
Result<std::size_t> own_descriptors(const Services& services, const OpenFile& file) {
  struct stat wanted {};
  if (os::fstat(file.fd.get(), &wanted) != 0) return Error::from_errno(errno, "fstat of a DMA-buf");
  ASSIGN_OR_RETURN(const std::vector<int> numbers, services.system.descriptors());
  std::size_t count = 0;
  for (const int number : numbers) {
    struct stat status {};
    if (os::fstat(number, &status) == 0 && status.st_dev == wanted.st_dev && status.st_ino == wanted.st_ino) ++count;
  }
  return count;
}

struct GivenDmabuf {
  std::string task;  // for messages
  std::uint64_t inode = 0;
};

// The DMA-bufs that CRIU will ask tasks for which have no BO of the memory: such a task gets the DMA-buf like processes
// that share the memory.
Result<std::vector<GivenDmabuf>> given_dmabufs(const Services& services, const Tree& tree,
                                               const std::vector<Process>& processes) {
  std::vector<GivenDmabuf> dmabufs;
  for (const OpenFile& file : tree.files) {
    if (file.device.kind != DeviceKind::kDmabuf) continue;
    ASSIGN_OR_RETURN(const auto info, dmabuf_of(services, tree, file));
    const std::size_t asked = tree.asked_holder(file).task;
    if (std::none_of(processes.begin(), processes.end(),
                     [&](const Process& process) { return process.task == asked && has_memory(process, info.inode); }))
      dmabufs.push_back({tree.tasks[asked].name(), info.inode});
  }
  return dmabufs;
}

std::size_t messages_of(std::size_t files) { return (files + kMaxQueuedFiles - 1) / kMaxQueuedFiles; }

// How many at most. A process gives what it provides in messages of its own; who makes memory for others is decided at
// the restore, and a DMA-buf that a task is given takes a message by itself.
std::size_t count_messages(const sharing::Plan& plan, const std::vector<GivenDmabuf>& dmabufs) {
  std::map<std::size_t, std::size_t> provided;  // by process
  std::size_t made = 0;
  for (const sharing::Memory& memory : plan.memories())
    ++(memory.has_provider ? provided[memory.origin.process] : made);
  std::size_t messages = made + dmabufs.size();
  for (const auto& [process, count] : provided) messages += messages_of(count);
  return messages;
}

}  // namespace

Status refuse_dmabufs(const Services& services, const Tree& tree) {
  if (!tree.mapped_dmabufs.empty()) {
    const Tree::MappedDmabuf& first = tree.mapped_dmabufs.front();
    return refused(tree.tasks[first.task].name() + ", " + first.what,
                   "it is of a DMA-buf, which CRIU cannot map again; a program may have open, but not mapped, those of "
                   "its memory of GPUs");
  }
  for (const OpenFile& file : tree.files) {
    if (file.device.kind != DeviceKind::kDmabuf) continue;
    ASSIGN_OR_RETURN(const auto info, dmabuf_of(services, tree, file));
    if (info.exporter != kGpuExporter)
      return refused(tree.name_of(file),
                     "it was exported by '" + info.exporter + "', and only DMA-bufs of memory of GPUs can be saved");
  }
  return {};
}

Result<std::map<std::uint64_t, std::uint64_t>> count_dmabufs(const Services& services, const Tree& tree) {
  std::map<std::uint64_t, std::uint64_t> counts;  // by inode
  for (const OpenFile& file : tree.files) {
    if (file.device.kind != DeviceKind::kDmabuf) continue;
    ASSIGN_OR_RETURN(const auto info, dmabuf_of(services, tree, file));
    ASSIGN_OR_RETURN(const std::size_t programs, tree.count_descriptors(file));
    ASSIGN_OR_RETURN(const std::size_t own, own_descriptors(services, file));
    counts[info.inode] += programs + own;
  }
  return counts;
}

namespace {

// `why`: no GPU can be said to have the memory.
Error refused_dmabuf(const std::string& name, const dmabuf_file::Info& info, const std::string& why) {
  return refused(name, "it was exported by '" + info.exporter + "', and its " + std::to_string(info.size) +
                           " bytes are memory of no BO of KFD and of no GEM object that these programs have; " + why +
                           "; close it before the dump");
}

// The memory may be that of a BO which KFD does not name.
Error refused_by_released_abi(const std::string& name) {
  return refused(name,
                 "it is of no GEM object, and the released ABI of KFD does not give DMA-bufs back; close it before the "
                 "dump");
}

// Nobody but descriptors of the programs and of this process have the memory.
Status refuse_shared_dmabuf(const Services& services, const OpenFile& file, const std::string& name,
                            std::uint64_t known) {
  const auto count = [&] { return services.count_references(file.fd.get()); };
  ASSIGN_OR_RETURN(std::uint64_t references, count());
  ASSIGN_OR_RETURN(references, memory_holders::recount(references, known, count));
  if (references <= known) return {};
  return refused(name, "its memory is of no BO of KFD and of no GEM object that these programs have, and it has " +
                           std::to_string(references) + " references, of which " + std::to_string(known) +
                           " are known: somebody else has it; after a restore each would have memory of its own. Save "
                           "all programs that share it, or close it before the dump");
}

}  // namespace

Result<std::map<std::size_t, dmabuf_memory::Found>> lost_dmabufs(const Services& services, const Tree& tree,
                                                                 const std::vector<Process>& processes,
                                                                 const std::vector<topology::Node>& nodes,
                                                                 const Objects& found, kfd::Abi abi) {
  std::map<std::size_t, dmabuf_memory::Found> lost;
  const auto of_objects = render_objects::gem_memories(found);
  ASSIGN_OR_RETURN(const auto open, count_dmabufs(services, tree));
  const bool may_be_of_kfd = abi == kfd::Abi::kReleased && !processes.empty();
  for (std::size_t i = 0; i < tree.files.size(); ++i) {
    const OpenFile& file = tree.files[i];
    if (file.device.kind != DeviceKind::kDmabuf) continue;
    ASSIGN_OR_RETURN(const auto info, dmabuf_of(services, tree, file));
    if (of_objects.contains(info.inode)) continue;
    const bool is_of_kfd = std::any_of(processes.begin(), processes.end(),
                                       [&info](const Process& process) { return has_memory(process, info.inode); });
    if (is_of_kfd && abi == kfd::Abi::kExtensible) continue;
    if (is_of_kfd) return refused_by_released_abi(tree.name_of(file));
    ASSIGN_OR_RETURN(const bool can_find, dmabuf_memory::can_find(services, nodes));
    if (!can_find && may_be_of_kfd) return refused_by_released_abi(tree.name_of(file));
    if (!can_find)
      return refused_dmabuf(tree.name_of(file), info,
                            "this kernel does not list GEM objects, so that nothing more can be learnt of it");
    auto memory = dmabuf_memory::find(services, nodes, file.fd.get(), info);
    if (!memory.ok()) return std::move(memory).error().wrap(tree.name_of(file) + ": its memory");
    if (!*memory) return refused_dmabuf(tree.name_of(file), info, "it is memory of none of the GPUs that KFD has");
    TRY(refuse_shared_dmabuf(services, file, tree.name_of(file), open.at(info.inode)));
    lost.emplace(i, std::move(**memory));
  }
  return lost;
}

Status refuse_unpassable_memory(const Services& services, const Tree& tree, const std::vector<Process>& processes,
                                const sharing::Plan& plan,
                                const std::function<std::string(std::size_t process)>& name_of) {
  ASSIGN_OR_RETURN(const std::vector<GivenDmabuf> dmabufs, given_dmabufs(services, tree, processes));
  if (plan.memories().empty() && dmabufs.empty()) return {};
  const std::string name =
      plan.memories().empty() ? dmabufs.front().task : name_of(plan.memories().front().origin.process);
  constexpr std::string_view kMemory = "it has memory, or a DMA-buf of memory, that other programs have, and ";
  if (!services.criu.passes_files())
    return refused(name, std::string(kMemory) +
                             "this CRIU does not export fdstore_add() and fdstore_get(), by which a restore passes it; "
                             "use one that does, as those of Debian do");
  const std::size_t messages = count_messages(plan, dmabufs);
  ASSIGN_OR_RETURN(const std::size_t room, queue_capacity(messages));
  if (room >= messages) return {};
  return refused(name, std::string(kMemory) + "a restore needs " + std::to_string(messages) +
                           " places in CRIU's fdstore to pass it, which has " + std::to_string(room) +
                           "; give CRIU CAP_NET_ADMIN, or raise net.core.wmem_max");
}

}  // namespace plugin::preflight
