// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Creates the objects of a render node in a new open file. One of user memory refers to the address space of the task
// that creates it, which is the one that has the file; CRIU restores the memory there later, and the driver looks at it
// when the GPU is to use it. If one of them fails, the caller closes the file, and all of them are gone.
#include <cerrno>

#include "plugin/render_driver.h"
#include "plugin/render_objects.h"

namespace plugin::render_objects {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

Status named(Status status, const char* what, std::uint32_t number) {
  if (status.ok()) return status;
  return std::move(status).error().wrap(std::string(what) + " " + std::to_string(number));
}

Status set_metadata(RenderDriver& driver, int fd, const image::GemObject& object) {
  if (!image::has_metadata(object)) return {};
  return driver.set_metadata(fd, object);
}

// `dmabuf`: null for an object of its own.
Status create_gem(RenderDriver& driver, int fd, const image::GemObject& object, std::uint64_t size, const int* dmabuf) {
  if (object.user_flags != 0)
    TRY(driver.create_userptr(fd, object, size));
  else if (dmabuf != nullptr)
    TRY(driver.import_gem(fd, object.handle, *dmabuf));
  else
    TRY(driver.create_gem(fd, object, size));
  TRY(set_metadata(driver, fd, object));
  for (const image::GemMapping& mapping : object.mappings) TRY(driver.map(fd, object.handle, mapping));
  return {};
}

Status import_kfd(RenderDriver& driver, int fd, const image::KfdGem& object, const KfdMemory& kfd_memory) {
  image::GemObject imported;
  imported.handle = object.handle;
  imported.mappings = object.mappings;
  imported.metadata_flags = object.metadata_flags;
  imported.tiling = object.tiling;
  imported.metadata = object.metadata;
  ASSIGN_OR_RETURN(const UniqueFd dmabuf, kfd_memory(object.inode));
  const int number = dmabuf.get();
  return create_gem(driver, fd, imported, object.size, &number);
}

}  // namespace

Result<UniqueFd> make_apart(RenderDriver& driver, int fd, const image::GemObject& object, std::uint64_t size,
                            Access access) {
  TRY(driver.create_gem(fd, object, size));
  TRY(set_metadata(driver, fd, object));
  ASSIGN_OR_RETURN(std::optional<UniqueFd> dmabuf, access == Access::kReadOnly
                                                       ? driver.export_read_only(fd, object.handle)
                                                       : driver.export_gem(fd, object.handle));
  if (!dmabuf)
    return Error(EPERM, "the driver does not export the GEM object, by which others are to be given its memory");
  return std::move(*dmabuf);
}

Status create(RenderDriver& driver, int fd, const image::RenderFile& render, const std::map<std::size_t, int>& given,
              const KfdMemory& kfd_memory) {
  const image::RenderObjects& objects = render.objects;
  for (std::size_t i = 0; i < objects.gem.size(); ++i) {
    const auto dmabuf = given.find(i);
    TRY(named(create_gem(driver, fd, objects.gem[i], render.bos[i].bo.size,
                         dmabuf == given.end() ? nullptr : &dmabuf->second),
              "GEM object", objects.gem[i].handle));
  }
  for (const image::KfdGem& object : objects.kfd_gem)
    TRY(named(import_kfd(driver, fd, object, kfd_memory), "GEM object", object.handle));
  for (const image::GemMapping& mapping : objects.sparse) TRY(driver.map(fd, 0, mapping));
  for (const image::GpuContext& context : objects.contexts)
    TRY(named(driver.create_context(fd, context), "context", context.id));
  for (const image::BoList& list : objects.bo_lists)
    TRY(named(driver.create_bo_list(fd, list), "BO list", list.handle));
  for (const image::Syncobj& syncobj : objects.syncobjs)
    TRY(named(driver.create_syncobj(fd, syncobj), "synchronization object", syncobj.handle));
  return {};
}

}  // namespace plugin::render_objects
