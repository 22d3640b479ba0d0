// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Open files of render nodes that programs of a dump have in common with others. A restore opens the files anew and
// creates their objects again, and a program that was not dumped keeps the old ones.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/os.h"
#include "plugin/preflight.h"
#include "plugin/render_holders.h"

namespace plugin::preflight {
namespace {

using base::Error;
using base::Status;
using render_holders::Client;

// A file of the dump that has objects.
struct NamedFile {
  const OpenFile* file = nullptr;
  Client client;
};

Error refused_holder(const std::string& file, const render_holders::Holder& holder) {
  return Error(EOPNOTSUPP, file + ": it has objects of a render node, and program '" + holder.comm + "' (process " +
                               std::to_string(holder.pid) +
                               "), which is not part of the dump, has the same open file " + "as descriptor " +
                               std::to_string(holder.number) +
                               "; after a restore each would have objects of its own. Dump it together with the "
                               "program, or let it close the file");
}

}  // namespace

Status refuse_render_holders(const Services& services, const Tree& tree,
                             const std::function<bool(std::size_t file)>& has_objects) {
  std::vector<NamedFile> files;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < tree.files.size(); ++i) {
    const OpenFile& file = tree.files[i];
    if (!has_objects(i)) continue;
    auto client = services.find_render_client(file.fd.get());
    if (!client.ok()) return std::move(client).error().wrap(tree.name_of(file));
    if (!*client) {
      services.criu.warn(
          tree.name_of(file) +
          ": this kernel's procfs has no drm-client-id of it, so it is unknown whether a program outside "
          "of the dump has the same open file");
      continue;
    }
    clients.push_back(**client);
    files.push_back({&file, **client});
  }
  if (files.empty()) return {};
  // This process has a descriptor of each file of the dump.
  const auto is_inside = [&tree, self = os::getpid()](pid_t pid) {
    return pid == self ||
           std::any_of(tree.tasks.begin(), tree.tasks.end(), [pid](const Task& task) { return task.pid == pid; });
  };
  ASSIGN_OR_RETURN(const render_holders::Search search,
                   render_holders::find(services.system.roots().proc, clients, is_inside));
  if (search.holder) {
    const auto shared = std::find_if(files.begin(), files.end(),
                                     [&search](const NamedFile& each) { return each.client == search.holder->client; });
    return refused_holder(tree.name_of(*shared->file), *search.holder);
  }
  if (search.hidden != 0)
    services.criu.warn("processes that are not part of the dump and whose descriptors CRIU may not read: " +
                       std::to_string(search.hidden) +
                       "; it is unknown whether one of them has an open file of a render node whose objects are saved. "
                       "CAP_SYS_PTRACE in the initial user namespace lets CRIU read them");
  return {};
}

}  // namespace plugin::preflight
