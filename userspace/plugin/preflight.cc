// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. Every refusal ends with what to do, where there is something to do.
#include "plugin/preflight.h"

#include <linux/kfd_criu_ioctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>

#include "base/os.h"
#include "base/text_file.h"
#include "plugin/criu_images.h"
#include "plugin/criu_options.h"
#include "plugin/topology/snapshot.h"

namespace plugin::preflight {
namespace {

using base::Error;
using base::Result;
using base::Status;

constexpr std::uint32_t kKfdMajor = 1;
constexpr std::uint32_t kKfdMinor = 8;  // DMA-bufs of GTT BOs

constexpr const char* kStreamSocket = "streamer-capture.sock";
// The first pid namespace of a machine has this number in every kernel (PROC_PID_INIT_INO).
constexpr std::string_view kInitPidNamespace = "pid:[4026531836]";
constexpr rlim_t kOwnDescriptors = 256;  // more than CRIU and this plugin have open beside BOs
// References to a DMA-buf that a BO costs, beside its own, when it was imported with AMDKFD_IOC_IMPORT_DMABUF on
// another GPU than the memory's: each such BO has a GEM object, which refers to the DMA-buf, and so does its
// attachment.
constexpr std::uint64_t kReferencesOfImport = 2;

Error refusal(const std::string& what, const std::string& why) { return Error(EOPNOTSUPP, what + ": " + why); }

const Task& task_of(const Tree& tree, const Process& process) { return tree.tasks[process.task]; }

std::string bo_name(const kfd::Bo& bo) { return "a BO of " + std::to_string(bo.size) + " bytes"; }

// `shortest`: the shortest abbreviation that is of no other option of CRIU.
Result<bool> has_argument(const Criu& criu, std::string_view argument, std::string_view shortest) {
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, criu.arguments());
  return criu_options::contains(arguments, argument, shortest);
}

Error lazy_pages_refusal() {
  return refusal("criu dump --lazy-pages",
                 "GPUs need all pages before their queues run, so the dump could not be restored; dump without it");
}

// Whether pids that this process reads in sysfs and debugfs are those that it reads in procfs.
Result<bool> is_in_first_pid_namespace(const System& system) {
  std::array<char, 32> link{};
  const std::string own_namespace = system.roots().proc + "/self/ns/pid";
  const ssize_t length = os::readlink(own_namespace.c_str(), link.data(), link.size());
  if (length < 0) return Error::from_errno(errno, own_namespace);
  return std::string_view(link.data(), static_cast<std::size_t>(length)) == kInitPidNamespace;
}

Error render_refusal(const std::string& file, const std::string& object) {
  return refusal(file, "it has " + object +
                           ", and on this kernel, which does not list objects of render nodes (patch series "
                           "drm-handle-at), only what was allocated through /dev/kfd can be saved; programs that use "
                           "the render node for graphics, video or hipMemCreate() have such objects");
}

// debugfs names a file of a GPU by the process that used it last; that is this process, whose ioctls have looked for
// objects. Linux before 6.7 names it by the process that opened it.
std::optional<std::uint32_t> find_listed_object(const Tree& tree, const std::vector<ListedFile>& files) {
  const pid_t self = os::getpid();
  const bool names_last_user =
      std::any_of(files.begin(), files.end(), [self](const ListedFile& file) { return file.pid == self; });
  for (const ListedFile& file : files) {
    const auto is_opener = [&](const Task& task) { return task.pid == file.pid; };
    const bool is_ours =
        names_last_user ? file.pid == self : std::any_of(tree.tasks.begin(), tree.tasks.end(), is_opener);
    if (is_ours && file.object) return file.object;
  }
  return std::nullopt;
}

// Memory as the programs being saved have it, with the first BO that was found.
struct Held {
  Process* process = nullptr;
  kfd::CheckpointedBo* bo = nullptr;
  memory_holders::Memory memory;
  struct OnGpu {
    std::uint64_t bos = 0;
    std::uint64_t mmap_offset = 0;  // of one of them
  };
  std::map<const topology::Node*, OnGpu> gpus;
  const topology::Node* home = nullptr;  // the GPU whose memory it is; null: unknown, or no GPU of these BOs
};

std::vector<Held> held_memories(std::vector<Process>& processes, const std::vector<topology::Node>& nodes) {
  std::map<std::uint64_t, Held> memories;  // by inode
  for (Process& process : processes) {
    for (kfd::CheckpointedBo& bo : process.state.bos) {
      if (!kfd::has_contents(bo.bo) || bo.inode == 0) continue;
      Held& held = memories.try_emplace(bo.inode, Held{&process, &bo, {.is_orphan = true}, {}, nullptr}).first->second;
      held.memory.explained += bo.dmabuf.valid() ? 2 : 1;
      held.memory.is_orphan = held.memory.is_orphan && bo.imported;
      held.memory.possible += std::max<std::size_t>(process.state.devices.size(), 1) - 1;
      const topology::Node* gpu = gpu_of(nodes, process.state, bo.bo.user_gpu_id);
      ++held.gpus[gpu].bos;
      held.gpus[gpu].mmap_offset = bo.bo.mmap_offset;
      if (!bo.imported) held.home = gpu;
    }
  }
  std::vector<Held> all;
  for (auto& [inode, held] : memories) {
    if (!held.bo->dmabuf.valid()) ++held.memory.explained;  // the descriptor that count_references() gets
    all.push_back(held);
  }
  return all;
}

// A DMA-buf of its own; nothing: the BO has one already.
Result<base::UniqueFd> export_held(const Services& services, const Tree& tree, const Held& held) {
  if (held.bo->dmabuf.valid()) return base::UniqueFd();
  const int kfd = tree.files[held.process->file].fd.get();
  auto dmabuf = services.kfd.export_bo(kfd, held.process->pause, *held.bo);
  if (!dmabuf.ok()) return std::move(dmabuf).error().wrap(task_of(tree, *held.process).name());
  return dmabuf;
}

// Finds out on which GPU the memory is, where more than one is possible, and explains BOs on others.
Status explain_imports(const Services& services, const Tree& tree, const std::vector<topology::Node>& nodes,
                       Held& held) {
  const auto gpus =
      std::count_if(nodes.begin(), nodes.end(), [](const topology::Node& node) { return node.gpu_id != 0; });
  if (held.home == nullptr && gpus == 1) held.home = held.gpus.begin()->first;
  if (held.home == nullptr) {
    ASSIGN_OR_RETURN(const base::UniqueFd exported, export_held(services, tree, held));
    const int dmabuf = exported.valid() ? exported.get() : held.bo->dmabuf.get();
    for (const auto& [gpu, on_gpu] : held.gpus) {
      ASSIGN_OR_RETURN(const base::UniqueFd render, services.system.open_render(gpu->render_minor()));
      ASSIGN_OR_RETURN(const bool is_home, services.render.is_home(render.get(), dmabuf, on_gpu.mmap_offset));
      if (is_home) held.home = gpu;
    }
    held.memory.is_remote = held.home == nullptr;
  }
  for (const auto& [gpu, on_gpu] : held.gpus)
    if (gpu != held.home) held.memory.explained += on_gpu.bos * kReferencesOfImport;
  return {};
}

// Render nodes that were opened for questions about memory.
using RenderNodes = std::map<const topology::Node*, base::UniqueFd>;

Result<int> open_once(const Services& services, const topology::Node& gpu, RenderNodes& open) {
  base::UniqueFd& render = open[&gpu];
  if (!render.valid()) {
    ASSIGN_OR_RETURN(render, services.system.open_render(gpu.render_minor()));
  }
  return render.get();
}

Result<std::uint64_t> count_references(const Services& services, const Tree& tree, const Held& held) {
  ASSIGN_OR_RETURN(const base::UniqueFd exported, export_held(services, tree, held));
  return services.count_references(exported.valid() ? exported.get() : held.bo->dmabuf.get());
}

// The kernel tells with this ABI only which BOs have the same memory.
Status refuse_sharing(const Tree& tree, const std::vector<Process>& processes) {
  std::map<std::uint64_t, const Process*> seen;  // by inode
  for (const Process& process : processes) {
    for (const kfd::CheckpointedBo& bo : process.state.bos) {
      if (bo.inode == 0) continue;
      const auto [found, is_new] = seen.emplace(bo.inode, &process);
      if (is_new) continue;
      const std::string name = task_of(tree, process).name();
      if (found->second != &process)
        return refusal(name, bo_name(bo.bo) + " shares its memory with " + task_of(tree, *found->second).name() +
                                 "; the released ABI of KFD would give each memory of its own");
      return refusal(name, "two BOs of " + std::to_string(bo.bo.size) +
                               " bytes have the same memory; the released ABI of KFD would give each memory of its "
                               "own");
    }
  }
  return {};
}

}  // namespace

Status refuse_streaming(const Criu& criu) {
  const bool has_socket = os::faccessat(criu.image_dir(), kStreamSocket, F_OK, 0) == 0;
  if (!has_socket && errno != ENOENT) return Error::from_errno(errno, kStreamSocket);
  ASSIGN_OR_RETURN(const bool is_asked, has_argument(criu, "--stream", "--str"));
  if (!has_socket && !is_asked) return {};
  return refusal("criu dump --stream",
                 "the image streamer does not carry the images of this plugin; dump to a directory");
}

Status refuse_lazy_pages(const Criu& criu) {
  ASSIGN_OR_RETURN(const bool is_asked, has_argument(criu, "--lazy-pages", "--la"));
  if (is_asked) return lazy_pages_refusal();
  return {};
}

Status refuse_missing_pages(const Criu& criu, const Tree& tree) {
  for (const Task& task : tree.tasks) {
    const auto lacks = lacks_pages(criu.image_dir(), task.inner_pid);
    if (lacks.ok() && *lacks) return lazy_pages_refusal();
    if (lacks.ok()) continue;
    if (lacks.error().code() != EPROTO) return lacks.error();
    criu.warn(lacks.error().message() + "; if this dump is one with --lazy-pages, it cannot be restored");
  }
  return {};
}

Status refuse_old_kfd(kfd::Version version) {
  if (version.major == kKfdMajor && version.minor >= kKfdMinor) return {};
  return Error(ENOTSUP, "the kernel's KFD interface is " + std::to_string(version.major) + "." +
                            std::to_string(version.minor) + ", checkpoint needs 1.8 or a later 1.x (Linux 5.18)");
}

Status refuse_render_objects(const Services& services, const Tree& tree) {
  const auto probe = [&](std::uint32_t last_handle, std::optional<std::uint32_t> only_minor) -> Status {
    for (const OpenFile& file : tree.files) {
      if (file.device.kind != DeviceKind::kRender || file.device.minor != only_minor.value_or(file.device.minor))
        continue;
      auto found = services.render.objects(file.fd.get(), last_handle);
      if (!found.ok()) return std::move(found).error().wrap(tree.name_of(file));
      if (!found->empty()) return render_refusal(tree.name_of(file), *found);
    }
    return {};
  };
  TRY(probe(render_file::kFewHandles, {}));
  ASSIGN_OR_RETURN(const bool knows_pids, is_in_first_pid_namespace(services.system));
  std::set<std::uint32_t> seen;
  for (const OpenFile& file : tree.files) {
    const std::uint32_t minor = file.device.minor;
    if (file.device.kind != DeviceKind::kRender || !seen.insert(minor).second) continue;
    std::optional<std::vector<ListedFile>> listed;
    if (knows_pids) {
      ASSIGN_OR_RETURN(listed, services.system.listed_files(minor));
    }
    if (!listed) {
      TRY(probe(render_file::kManyHandles, minor));
      services.criu.inform("renderD" + std::to_string(minor) +
                           ": debugfs does not list GEM objects, so handles above " +
                           std::to_string(render_file::kManyHandles) + " are not seen");
    } else if (const auto object = find_listed_object(tree, *listed)) {
      return render_refusal(tree.name_of(file), "GEM object " + std::to_string(*object));
    }
  }
  return {};
}

Status refuse_unknown_gpus(const Tree& tree, const std::vector<topology::Node>& nodes) {
  for (const OpenFile& file : tree.files) {
    if (file.device.kind != DeviceKind::kRender) continue;
    if (topology::find_render_minor(nodes, file.device.minor) != nullptr) continue;
    return Error(ENODEV, tree.name_of(file) + ": KFD does not know this GPU, so its files cannot be checkpointed");
  }
  return {};
}

Status refuse_unreachable(const System& system, const Tree& tree, const std::vector<Process>& processes) {
  const auto is_known = [&](std::size_t task) {
    return std::any_of(processes.begin(), processes.end(), [&](const Process& each) { return each.task == task; });
  };
  ASSIGN_OR_RETURN(const bool sysfs_tells, is_in_first_pid_namespace(system));
  for (std::size_t i = 0; i < tree.tasks.size(); ++i) {
    if (is_known(i)) continue;
    const Task& task = tree.tasks[i];
    const std::string entry = system.roots().sys + "/class/kfd/kfd/proc/" + std::to_string(task.pid);
    // A child does not inherit mappings of /dev/kfd.
    const bool maps_kfd = std::any_of(task.mappings.begin(), task.mappings.end(), [](const DeviceMapping& mapping) {
      return mapping.device.kind == DeviceKind::kKfd;
    });
    const bool is_in_sysfs = sysfs_tells && os::access(entry.c_str(), F_OK) == 0;
    if (sysfs_tells && !is_in_sysfs && errno != ENOENT) return Error::from_errno(errno, entry);
    if (!maps_kfd && !is_in_sysfs) continue;
    return refusal(task.name(), "it uses KFD, but has closed the /dev/kfd that it opened, so its state cannot be read");
  }
  return {};
}

void reserve_descriptors(std::uint64_t count) {
  struct rlimit limit {};
  const rlim_t needed = count + kOwnDescriptors;
  if (os::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  (void)os::setrlimit(RLIMIT_NOFILE, &limit);  // CHECKPOINT says whether it is enough
}

Error too_many_descriptors(const Tree& tree, const Process& process, std::uint64_t count) {
  struct rlimit limit {};
  const bool is_known = os::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return Error(EMFILE,
               task_of(tree, process).name() +
                   ": the released ABI of KFD gives out a descriptor for each BO at once; all programs together "
                   "have " +
                   std::to_string(count) + " BOs, and CRIU may have " +
                   (is_known ? std::to_string(limit.rlim_cur) : std::string("too few")) +
                   " open files: raise its RLIMIT_NOFILE");
}

Status refuse_too_many_gpus(const Tree& tree, const Process& process, kfd::Abi abi) {
  const std::size_t limit = abi == kfd::Abi::kExtensible ? std::size_t{KFD_CRIU_MAX_GPUS} : image::kMaxDevices;
  if (process.state.devices.size() <= limit) return {};
  return refusal(task_of(tree, process).name(), "it uses " + std::to_string(process.state.devices.size()) +
                                                    " GPUs, and at most " + std::to_string(limit) + " can be restored");
}

Status refuse_empty_bos(const Tree& tree, const Process& process) {
  for (std::size_t i = 0; i < process.state.bos.size(); ++i) {
    if (process.state.bos[i].bo.size != 0) continue;
    return Error(EIO, task_of(tree, process).name() + ": the kernel has counted BO " + std::to_string(i) +
                          " but not described it, so the image could not be restored; dump again");
  }
  return {};
}

Status refuse_hidden_gpus(const Tree& tree, const Process& process, const std::vector<topology::Node>& nodes) {
  for (const kfd::CheckpointedBo& each : process.state.bos) {
    if (gpu_of(nodes, process.state, each.bo.user_gpu_id) != nullptr) continue;
    return Error(ENODEV, task_of(tree, process).name() + ": " + bo_name(each.bo) + ": its GPU " +
                             std::to_string(each.bo.user_gpu_id) +
                             " is not in sysfs; a device cgroup that CRIU is in may hide it");
  }
  return {};
}

render_objects::KfdMemories memories_of_kfd(const std::vector<Process>& processes) {
  render_objects::KfdMemories memories;
  for (const Process& process : processes) {
    for (const kfd::CheckpointedBo& bo : process.state.bos) {
      if (bo.inode == 0 || !kfd::has_contents(bo.bo)) continue;
      bool& is_allocated = memories[bo.inode];
      is_allocated = is_allocated || !bo.imported;
    }
  }
  return memories;
}

Result<sharing::Plan> plan_sharing(const Tree& tree, const std::vector<Process>& processes, kfd::Abi abi,
                                   std::vector<sharing::Process> render_files) {
  if (abi == kfd::Abi::kReleased) TRY(refuse_sharing(tree, processes));
  std::vector<sharing::Process> sharers;
  for (const Process& process : processes) {
    sharing::Process& sharer = sharers.emplace_back();
    sharer.name = task_of(tree, process).name();
    if (abi == kfd::Abi::kReleased) continue;
    for (const kfd::CheckpointedBo& bo : process.state.bos)
      sharer.bos.push_back({bo.inode, bo.bo.size, bo.bo.alloc_flags, bo.imported, false});
  }
  std::move(render_files.begin(), render_files.end(), std::back_inserter(sharers));
  return sharing::Plan::make(sharers);
}

Status refuse_outside_holders(const Services& services, const Tree& tree, std::vector<Process>& processes,
                              const std::vector<topology::Node>& nodes, const Objects& objects,
                              const std::map<std::uint64_t, std::uint64_t>& handles) {
  std::vector<Held> memories = held_memories(processes, nodes);
  ASSIGN_OR_RETURN(const auto open, count_dmabufs(services, tree));
  const auto of_objects = render_objects::gem_memories(objects);
  for (Held& held : memories) {
    if (const auto found = open.find(held.bo->inode); found != open.end()) held.memory.explained += found->second;
    if (const auto found = handles.find(held.bo->inode); found != handles.end()) held.memory.explained += found->second;
    const auto found = of_objects.find(held.bo->inode);
    if (found == of_objects.end()) continue;
    held.memory.explained += found->second.references;
    if (found->second.has_maker) held.memory.is_orphan = false;
  }
  std::vector<memory_holders::Memory> counted;
  RenderNodes render_nodes;
  for (Held& held : memories) {
    TRY(explain_imports(services, tree, nodes, held));
    ASSIGN_OR_RETURN(const base::UniqueFd exported, export_held(services, tree, held));
    const int dmabuf = exported.valid() ? exported.get() : held.bo->dmabuf.get();
    ASSIGN_OR_RETURN(held.memory.references, services.count_references(dmabuf));
    counted.push_back(held.memory);
    // An object of a render node of the programs brings metadata back.
    if (handles.contains(held.bo->inode) || of_objects.contains(held.bo->inode)) continue;
    const topology::Node* gpu = held.home != nullptr ? held.home : held.gpus.begin()->first;
    ASSIGN_OR_RETURN(const int render, open_once(services, *gpu, render_nodes));
    ASSIGN_OR_RETURN(const bool has_metadata, services.render.has_metadata(render, dmabuf));
    if (has_metadata)
      return refusal(task_of(tree, *held.process).name(),
                     bo_name(held.bo->bo) +
                         " has metadata (tiling), and no open render node of these programs has "
                         "its memory, by which a restore could give it back");
  }
  const std::uint64_t by_kernel = memory_holders::kernel_references(counted);
  for (Held& held : memories) {
    const std::uint64_t known = memory_holders::most_known(held.memory, by_kernel);
    ASSIGN_OR_RETURN(held.memory.references, memory_holders::recount(held.memory.references, known, [&] {
                       return count_references(services, tree, held);
                     }));
    if (held.memory.references <= known) continue;
    return refusal(
        task_of(tree, *held.process).name(),
        bo_name(held.bo->bo) + ": somebody outside of the programs being saved has its memory (its DMA-buf has " +
            std::to_string(held.memory.references) + " references, of which " +
            std::to_string(held.memory.explained + memory_holders::kernel_references_of(held.memory, by_kernel)) +
            " are known); after a restore each would have memory of its own. Save all programs that share "
            "memory, or end the others");
  }
  return {};
}

std::string warn_of_space(std::uint64_t needed, std::uint64_t space) {
  if (needed <= space) return {};
  return "GPU memory of " + std::to_string(needed) + " bytes is to be saved, and the image directory has room for " +
         std::to_string(space) + "; the dump fails unless enough of it is zero";
}

const topology::Node* gpu_of(const std::vector<topology::Node>& nodes, const kfd::Checkpoint& state,
                             std::uint32_t user_id) {
  for (const kfd::Device& device : state.devices)
    if (device.user_id == user_id) return topology::find_gpu(nodes, device.actual_id);
  return nullptr;
}

}  // namespace plugin::preflight
