// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What cannot be brought back is refused before anything is saved, and the programs run on. Each function knows one
// reason; its error names the program, the file and the reason. The table in the man page has a row for each.
// Not here: what KFD refuses itself (kfd/), and what is found out only while contents are read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kfd/kfd.h"
#include "plugin/criu.h"
#include "plugin/dmabuf_memory.h"
#include "plugin/render_objects.h"
#include "plugin/services.h"
#include "plugin/sharing.h"
#include "plugin/topology/node.h"
#include "plugin/tree.h"

namespace plugin::preflight {

// A process of the dump that has state in KFD.
struct Process {
  std::uint32_t pid = 0;  // in its own pid namespace
  std::size_t task = 0;   // index in Tree::tasks
  std::size_t file = 0;   // index in Tree::files: one that the process itself has open
  kfd::Pause pause;
  kfd::Checkpoint state;
};

// What the render nodes of the dump have, in the order of Tree::files.
using Objects = std::vector<std::optional<render_objects::Found>>;

// ---- before a process is paused ---------------------------------------------

// `criu dump --stream` sends only CRIU's own images; ours would stay behind.
base::Status refuse_streaming(const Criu& criu);
// `criu dump --lazy-pages`: pages that a GPU uses must be there before its queues run, so such a dump cannot be
// restored. The command line and CRIU's configuration files tell; a caller that asks for it by RPC is recognised at the
// end, by refuse_missing_pages().
base::Status refuse_lazy_pages(const Criu& criu);
base::Status refuse_old_kfd(kfd::Version version);
// DMA-bufs that a task has mapped, and open ones that no DRM driver has exported.
base::Status refuse_dmabufs(const Services& services, const Tree& tree);
// Sync files of work that does not finish, or has failed; and all, if no program has a GPU's render node open, through
// which a restore would make them.
base::Status refuse_sync_files(const Services& services, const Tree& tree);
// GEM objects, contexts and synchronization objects of render nodes, on a kernel that does not list them.
base::Status refuse_render_objects(const Services& services, const Tree& tree);
// Open files of render nodes with objects that a program outside of the dump has as well.
base::Status refuse_render_holders(const Services& services, const Tree& tree,
                                   const std::function<bool(std::size_t file)>& has_objects);
// Render nodes of GPUs that KFD does not have.
base::Status refuse_unknown_gpus(const Tree& tree, const std::vector<topology::Node>& nodes);

// ---- while all are paused ---------------------------------------------------

// A process that uses KFD although nobody of the tree can reach its file.
base::Status refuse_unreachable(const System& system, const Tree& tree, const std::vector<Process>& processes);
// Before CHECKPOINT of the released ABI, which makes a descriptor for each BO at once. Raises the soft limit of this
// process, if it may.
void reserve_descriptors(std::uint64_t count);
// Why CHECKPOINT of `process` failed with EMFILE: `count` descriptors are needed by all processes together.
base::Error too_many_descriptors(const Tree& tree, const Process& process, std::uint64_t count);
base::Status refuse_too_many_gpus(const Tree& tree, const Process& process, kfd::Abi abi);
// A BO that the kernel counted but did not describe: its record in the private data would have nothing beside it.
base::Status refuse_empty_bos(const Tree& tree, const Process& process);
// BOs of which the GPU is not in sysfs.
base::Status refuse_hidden_gpus(const Tree& tree, const Process& process, const std::vector<topology::Node>& nodes);
// Which memory KFD has.
[[nodiscard]] render_objects::KfdMemories memories_of_kfd(const std::vector<Process>& processes);
// Who shares which memory: the processes, then the files of render nodes. Refuses memory that processes share with the
// released ABI, which could only give each BO memory of its own.
base::Result<sharing::Plan> plan_sharing(const Tree& tree, const std::vector<Process>& processes, kfd::Abi abi,
                                         std::vector<sharing::Process> render_files);
// Memory that the processes of a restore could not give each other: a CRIU without the means, or whose queue of
// descriptors is too short. It is the CRIU of the dump that is asked. `name_of` names what has an index in the plan.
base::Status refuse_unpassable_memory(const Services& services, const Tree& tree, const std::vector<Process>& processes,
                                      const sharing::Plan& plan,
                                      const std::function<std::string(std::size_t process)>& name_of);
// Open DMA-bufs of memory that no BO of the processes and no GEM object has, by index in Tree::files. Refuses those
// that a restore could not make again, that somebody else has, or that only the released ABI names.
base::Result<std::map<std::size_t, dmabuf_memory::Found>> lost_dmabufs(const Services& services, const Tree& tree,
                                                                       const std::vector<Process>& processes,
                                                                       const std::vector<topology::Node>& nodes,
                                                                       const Objects& found, kfd::Abi abi);
// Memory of KFD that somebody outside the tree gave or was given, and such whose metadata nothing brings back.
// `handles`: the references of GEM handles that `found` does not have, by inode.
base::Status refuse_outside_holders(const Services& services, const Tree& tree, std::vector<Process>& processes,
                                    const std::vector<topology::Node>& nodes, const Objects& found,
                                    const std::map<std::uint64_t, std::uint64_t>& handles);
// Memory of GEM objects that somebody outside the tree has, and none of it is of KFD.
base::Status refuse_outside_gem_holders(const Services& services, const Tree& tree, const Objects& found,
                                        const render_objects::KfdMemories& of_kfd);
// Mappings of render nodes that are neither of a BO of KFD nor, by `is_of_object`, of an object that is saved.
base::Status refuse_foreign_mappings(
    const Tree& tree, const std::vector<Process>& processes, const std::vector<topology::Node>& nodes,
    const std::function<bool(std::size_t task, const DeviceMapping& mapping)>& is_of_object);
// Mappings of render nodes that a restore could not make again, although KFD has their memory: it looks for them in the
// BOs of the process itself, or, for a process without state in KFD, at the address where the GPU of another process
// has them, and maps them through that process's render node. `keeps_render_file` says whether a process still has the
// open file of the render node with this minor number that KFD uses, `is_of_object` whether an object of a render node
// that the task has open has the memory, too.
base::Status refuse_lost_mappings(
    const Tree& tree, const std::vector<Process>& processes, const std::vector<topology::Node>& nodes,
    const std::function<bool(const Process& process, std::uint32_t minor)>& keeps_render_file,
    const std::function<bool(std::size_t task, const DeviceMapping& mapping)>& is_of_object);

// A warning, not a refusal: zeros take no room, so the contents may need less. Empty if there is enough.
std::string warn_of_space(std::uint64_t needed, std::uint64_t space);

// ---- when CRIU has saved everything ------------------------------------------

// Host memory that CRIU has not written, but would serve later.
base::Status refuse_missing_pages(const Criu& criu, const Tree& tree);

// ---- used by the dump as well -----------------------------------------------

// The topology node of the GPU that the process calls user_id; null if there is none.
const topology::Node* gpu_of(const std::vector<topology::Node>& nodes, const kfd::Checkpoint& state,
                             std::uint32_t user_id);
// Descriptors of DMA-bufs that programs and this process have, by inode.
base::Result<std::map<std::uint64_t, std::uint64_t>> count_dmabufs(const Services& services, const Tree& tree);

}  // namespace plugin::preflight
