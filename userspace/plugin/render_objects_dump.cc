// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads the objects of the render nodes of a dump. The programs stand, so nothing changes but what the GPU finishes.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/os.h"
#include "plugin/preflight.h"
#include "plugin/proc_text.h"
#include "plugin/render_objects.h"
#include "plugin/wait_for_gpu.h"

namespace plugin::render_objects {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;
Error refusal(const std::string& why) { return Error(EOPNOTSUPP, why); }

class Reader {
 public:
  // `asked`: the process that CRIU asks for the file at restore, and that will create its objects.
  Reader(const Services& services, int fd, pid_t asked, Deadline deadline)
      : services_(services), driver_(*services.render.driver), fd_(fd), asked_(asked), deadline_(deadline) {}

  Result<Found> read() {
    ASSIGN_OR_RETURN(found_.vram_losses, driver_.vram_losses(fd_));
    TRY(read_contexts());
    ASSIGN_OR_RETURN(const std::vector<ListedGem> listed, driver_.gem_objects(fd_));
    TRY(refuse_too_many("GEM objects", listed.size(), image::kMaxGemObjects));
    ASSIGN_OR_RETURN(const std::vector<ListedUserptr> userptrs, driver_.userptrs(fd_));
    for (const ListedUserptr& each : userptrs) userptrs_.emplace(each.handle, each);
    for (const ListedGem& each : listed)
      if (auto status = read_gem(each); !status.ok())
        return std::move(status).error().wrap("GEM object " + std::to_string(each.handle));
    ASSIGN_OR_RETURN(found_.objects.sparse, driver_.mappings(fd_, 0));
    std::size_t mappings = found_.objects.sparse.size();
    for (const image::GemObject& object : found_.objects.gem) mappings += object.mappings.size();
    TRY(refuse_too_many("mappings of GEM objects", mappings, image::kMaxGemMappings));
    ASSIGN_OR_RETURN(const std::vector<ListedBoListEntry> entries, driver_.bo_lists(fd_));
    TRY(refuse_too_many("entries of BO lists", entries.size(), image::kMaxBoListEntries));
    ASSIGN_OR_RETURN(found_.objects.bo_lists, group_bo_lists(entries));
    TRY(refuse_too_many("BO lists", found_.objects.bo_lists.size(), image::kMaxBoLists));
    ASSIGN_OR_RETURN(const std::vector<ListedSyncobj> syncobjs, driver_.syncobjs(fd_));
    TRY(refuse_too_many("synchronization objects", syncobjs.size(), image::kMaxSyncobjs));
    for (const ListedSyncobj& each : syncobjs)
      if (auto status = read_syncobj(each); !status.ok())
        return std::move(status).error().wrap("synchronization object " + std::to_string(each.handle));
    return std::move(found_);
  }

 private:
  // An image would not be valid, which is too late to find out when it is written.
  static Status refuse_too_many(const char* what, std::size_t count, std::size_t most) {
    if (count <= most) return {};
    return refusal("it has " + std::to_string(count) + " " + what + ", and an image has room for " +
                   std::to_string(most));
  }

  Status read_contexts() {
    std::vector<ListedContext> contexts;
    TRY(wait_for_gpu(deadline_, "a context", [&]() -> Result<bool> {
      ASSIGN_OR_RETURN(contexts, driver_.contexts(fd_));
      return std::none_of(contexts.begin(), contexts.end(), [](const ListedContext& each) { return each.is_busy; });
    }));
    for (const ListedContext& each : contexts) {
      if (const std::string reason = why_not(each); !reason.empty())
        return refusal("context " + std::to_string(each.id) + ": " + reason);
      found_.objects.contexts.push_back({each.id, each.priority, each.sequence});
    }
    return {};
  }

  Status read_gem(const ListedGem& listed) {
    Origin origin{listed.is_import, why_not(listed), 0};
    ASSIGN_OR_RETURN(const std::optional<UniqueFd> dmabuf, driver_.export_gem(fd_, listed.handle));
    if (origin.why_not.empty()) {
      ASSIGN_OR_RETURN(const std::uint64_t flags, driver_.all_flags(fd_, listed.handle));
      origin.why_not = why_not_with(flags);
    }
    // Another object of the dump may have the memory, but nobody can give this one such a number.
    if (!origin.why_not.empty() && (!dmabuf || !is_handle(listed.handle))) return refusal(origin.why_not);
    if (origin.is_import)
      origin.why_not =
          "its memory was imported from " + exporter_of(dmabuf->get()) + ", which would have to give it again";
    TRY(wait_for_gpu(deadline_, "it", [&] { return driver_.is_idle(fd_, listed.handle); }));
    // Memory of another GPU may have a domain and flags that an image has not; such an object is imported at restore.
    auto domains = static_cast<std::uint32_t>(listed.domains) & image::kGemDomains;
    if (domains == 0) domains = image::kGemGtt;
    image::GemObject object{listed.handle, domains, listed.flags & image::kGemFlags, listed.alignment};
    image::BoRecord record;
    record.handle = listed.handle;
    record.bo.size = listed.size;
    record.bo.alloc_flags =
        (domains & image::kGemVram) != 0 ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM : KFD_IOC_ALLOC_MEM_FLAGS_GTT;
    const auto user = userptrs_.find(listed.handle);
    if (!dmabuf && user == userptrs_.end() && (listed.flags & image::kGemVmAlwaysValid) == 0)
      return refusal(
          "the driver does not export it, although it is neither memory of a program nor bound to the file's VM");
    if (dmabuf) {
      struct stat status {};
      if (os::fstat(dmabuf->get(), &status) != 0) return Error::from_errno(errno, "fstat of its DMA-buf");
      record.inode = status.st_ino;
      ASSIGN_OR_RETURN(origin.references, services_.count_references(dmabuf->get()));
    }
    ASSIGN_OR_RETURN(const std::optional<std::uint64_t> offset, driver_.mmap_offset(fd_, listed.handle));
    if (user != userptrs_.end()) TRY(read_user_memory(user->second, object, record));
    if (!dmabuf && !offset && object.user_flags == 0)
      return refusal("neither the CPU nor another VM than the file's can read it");
    record.bo.mmap_offset = offset.value_or(0);
    ASSIGN_OR_RETURN(object.mappings, driver_.mappings(fd_, listed.handle));
    ASSIGN_OR_RETURN(GemMetadata metadata, driver_.metadata(fd_, listed.handle));
    object.metadata_flags = metadata.flags;
    object.tiling = metadata.tiling;
    object.metadata = std::move(metadata.bytes);
    found_.objects.gem.push_back(std::move(object));
    found_.bos.push_back(record);
    found_.origins.push_back(std::move(origin));
    return {};
  }

  // A new object refers to the memory of the process that creates it.
  [[nodiscard]] Status read_user_memory(const ListedUserptr& user, image::GemObject& object,
                                        image::BoRecord& record) const {
    if (user.pid == 0) return refusal("it is memory (userptr) of a program that has ended or was replaced by execve()");
    if (user.pid != asked_)
      return refusal("it is memory (userptr) of process " + std::to_string(user.pid) + ", and process " +
                     std::to_string(asked_) + " restores the file");
    if ((user.flags & ~image::kUserFlags) != 0 || (user.flags & (image::kUserReadOnly | image::kUserRegister)) == 0)
      return refusal("it is memory of the program (userptr) with flags that this plugin does not know");
    object.user_addr = user.addr;
    object.user_flags = user.flags;
    record.bo.alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
    return {};
  }

  // procfs has its name.
  [[nodiscard]] std::string exporter_of(int dmabuf) const {
    auto name = field(services_.system.roots().proc + "/self/fdinfo/" + std::to_string(dmabuf), "exp_name");
    return name.ok() && !name->empty() ? "'" + *name + "'" : "another driver";
  }

  Status read_syncobj(const ListedSyncobj& listed) {
    if (const std::string reason = why_not(listed); !reason.empty()) return refusal(reason);
    SyncobjNow now;
    TRY(wait_for_gpu(deadline_, "it waits for something: a queue or another program", [&]() -> Result<bool> {
      ASSIGN_OR_RETURN(now, driver_.syncobj(fd_, listed.handle));
      return now.has_value();
    }));
    found_.objects.syncobjs.push_back(*now);
    return {};
  }

  const Services& services_;
  RenderDriver& driver_;
  int fd_;
  pid_t asked_;
  std::map<std::uint32_t, ListedUserptr> userptrs_;
  Deadline deadline_;
  Found found_;
};

}  // namespace

Result<bool> are_listed(const Services& services, const Tree& tree) {
  bool listed = false;
  for (const OpenFile& file : tree.files) {
    if (file.device.kind != DeviceKind::kRender) continue;
    auto has_lists = services.render.driver->has_lists(file.fd.get());
    if (!has_lists.ok()) return std::move(has_lists).error().wrap(tree.name_of(file));
    if (!*has_lists) return false;
    listed = true;
  }
  return bool{listed};
}

Result<std::vector<std::optional<Found>>> read(const Services& services, const Tree& tree) {
  std::vector<std::optional<Found>> found(tree.files.size());
  ASSIGN_OR_RETURN(const bool listed, are_listed(services, tree));
  if (!listed) {
    TRY(preflight::refuse_render_objects(services, tree));
    return found;
  }
  const Deadline deadline = std::chrono::steady_clock::now() + services.options.fence_timeout;
  for (std::size_t i = 0; i < tree.files.size(); ++i) {
    if (tree.files[i].device.kind != DeviceKind::kRender) continue;
    const pid_t asked = tree.tasks[tree.asked_holder(tree.files[i]).task].pid;
    auto read = Reader(services, tree.files[i].fd.get(), asked, deadline).read();
    if (!read.ok()) return std::move(read).error().wrap(tree.name_of(tree.files[i]));
    if (read->objects.empty()) continue;
    found[i] = std::move(read).value();
    ASSIGN_OR_RETURN(const std::string engine, services.render.video_engine(tree.files[i].fd.get()));
    if (!engine.empty())
      return refusal(tree.name_of(tree.files[i]) + ": it has used the GPU's engine '" + engine +
                     "', whose video sessions cannot be read; close the file before the dump");
  }
  return found;
}

Status confirm(const Services& services, const Tree& tree, std::span<const std::optional<Found>> found) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    const int fd = tree.files[i].fd.get();
    const std::string lost = tree.name_of(tree.files[i]) + ": what was saved is not its state, because ";
    ASSIGN_OR_RETURN(const std::uint32_t losses, services.render.driver->vram_losses(fd));
    if (losses != found[i]->vram_losses)
      return Error(ENOTRECOVERABLE, lost + "the GPU lost the contents of VRAM during the dump");
    ASSIGN_OR_RETURN(const std::vector<ListedContext> contexts, services.render.driver->contexts(fd));
    for (const ListedContext& context : contexts)
      if (context.is_guilty || context.was_reset)
        return Error(ENOTRECOVERABLE,
                     lost + "the GPU was reset during the dump (context " + std::to_string(context.id) + ")");
  }
  return {};
}

}  // namespace plugin::render_objects
