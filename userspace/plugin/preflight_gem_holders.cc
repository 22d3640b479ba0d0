// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory of GEM objects that somebody has beside the programs of the dump. Everybody who was given it has a reference
// to its DMA-buf (memory_holders.h). What KFD has as well is counted with the BOs of KFD.
#include <cerrno>
#include <set>

#include "plugin/preflight.h"

namespace plugin::preflight {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

Result<std::uint64_t> count_references(const Services& services, const OpenFile& file, std::uint32_t handle) {
  ASSIGN_OR_RETURN(const std::optional<UniqueFd> dmabuf, services.render.driver->export_gem(file.fd.get(), handle));
  if (!dmabuf) return Error(EPERM, "the driver exports its DMA-buf no longer");
  return services.count_references(dmabuf->get());
}

}  // namespace

Status refuse_outside_gem_holders(const Services& services, const Tree& tree, const Objects& found,
                                  const render_objects::KfdMemories& of_kfd) {
  const auto memories = render_objects::gem_memories(found);
  if (memories.empty()) return {};
  ASSIGN_OR_RETURN(const auto open, count_dmabufs(services, tree));
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    for (std::size_t k = 0; k < found[i]->bos.size(); ++k) {
      const image::BoRecord& record = found[i]->bos[k];
      if (record.inode == 0 || of_kfd.contains(record.inode) || !seen.insert(record.inode).second) continue;
      const auto descriptors = open.find(record.inode);
      const std::uint64_t known = render_objects::kOwnReferences - render_objects::kReferencesOfHandle +
                                  memories.at(record.inode).references +
                                  (descriptors == open.end() ? 0 : descriptors->second);
      ASSIGN_OR_RETURN(const std::uint64_t references,
                       memory_holders::recount(found[i]->origins[k].references, known, [&] {
                         return count_references(services, tree.files[i], record.handle);
                       }));
      if (references > known)
        return Error(EOPNOTSUPP, tree.name_of(tree.files[i]) + ": GEM object " + std::to_string(record.handle) +
                                     " is shared: its DMA-buf has " + std::to_string(references) +
                                     " references, of which " + std::to_string(known) +
                                     " are known: somebody else has it; after a restore each would have memory of its "
                                     "own. Save all programs that share it, or end the sharing before the dump");
    }
  }
  return {};
}

}  // namespace plugin::preflight
