// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/render_driver.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>

#include "base/os.h"
#include "drm/handle_at.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr int kMostTries = 16;  // a list that grows is read again

// 0 or an errno.
int call(int fd, unsigned long request, void* argument) {
  while (os::ioctl(fd, request, argument) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

Status do_call(int fd, unsigned long request, void* argument, const char* what) {
  const int code = call(fd, request, argument);
  if (code != 0) return Error::from_errno(code, what);
  return {};
}

// `ask(entries, count)` sets count to the number there is, and fills the entries if they have room for it; 0 or an
// errno. A list of nothing is asked for first.
template <typename Entry, typename Ask>
Result<std::vector<Entry>> read_list(const char* what, const Ask& ask) {
  std::vector<Entry> entries;
  for (int i = 0; i < kMostTries; ++i) {
    auto count = static_cast<std::uint32_t>(entries.size());
    const int code = ask(entries.data(), count);
    if (code == EAGAIN) continue;
    if (code != 0) return Error::from_errno(code, what);
    if (count <= entries.size()) {
      entries.resize(count);
      return entries;
    }
    entries.resize(count);
  }
  return Error(EAGAIN, std::string(what) + ": the list does not stop growing");
}

int list_gem(int fd, drm_uapi::GemListEntry* entries, std::uint32_t& count) {
  drm_uapi::GemList list{};
  list.entries = reinterpret_cast<std::uintptr_t>(entries);
  list.num_entries = count;
  const int code = call(fd, drm_uapi::kListGem, &list);
  count = list.num_entries;
  return code;
}

int list_mappings(int fd, std::uint32_t handle, drm_uapi::GemVmEntry* entries, std::uint32_t& count) {
  drm_uapi::GemOp op{};
  op.handle = handle;
  op.op = drm_uapi::kGetMappingInfo;
  op.value = reinterpret_cast<std::uintptr_t>(entries);
  op.num_entries = count;
  const int code = call(fd, drm_uapi::kGemOp, &op);
  count = op.num_entries;
  return code;
}

template <typename Entry>
int list_objects(int fd, std::uint32_t type, Entry* entries, std::uint32_t& count) {
  drm_uapi::ObjectList list{};
  list.type = type;
  list.entry_size = sizeof(Entry);
  list.entries = reinterpret_cast<std::uintptr_t>(entries);
  list.count = count;
  const int code = call(fd, drm_uapi::kListObjects, &list);
  count = list.count;
  return code;
}

int list_syncobjs(int fd, drm_uapi::SyncobjEntry* entries, std::uint32_t& count) {
  drm_uapi::SyncobjList list{};
  list.entries = reinterpret_cast<std::uintptr_t>(entries);
  list.count = count;
  const int code = call(fd, drm_uapi::kListSyncobjs, &list);
  count = list.count;
  return code;
}

// The point up to which a timeline is signaled, or that was submitted last; 0 without a timeline.
Result<std::uint64_t> query_point(int fd, std::uint32_t handle, std::uint32_t flags) {
  std::uint64_t point = 0;
  drm_syncobj_timeline_array args{};
  args.handles = reinterpret_cast<std::uintptr_t>(&handle);
  args.points = reinterpret_cast<std::uintptr_t>(&point);
  args.count_handles = 1;
  args.flags = flags;
  TRY(do_call(fd, DRM_IOCTL_SYNCOBJ_QUERY, &args, "DRM_IOCTL_SYNCOBJ_QUERY"));
  return point;
}

// Nothing: the driver gives none.
Result<std::optional<UniqueFd>> export_dmabuf(int fd, std::uint32_t handle, std::uint32_t flags) {
  drm_prime_handle args{};
  args.handle = handle;
  args.flags = flags;
  const int code = call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);
  if (code == EPERM) return std::optional<UniqueFd>();
  if (code != 0) return Error::from_errno(code, "DRM_IOCTL_PRIME_HANDLE_TO_FD");
  return std::optional<UniqueFd>(UniqueFd(args.fd));
}

}  // namespace

Result<bool> RealRenderDriver::has_lists(int fd) {
  std::uint32_t gem = 0;
  std::uint32_t sparse = 0;
  std::uint32_t contexts = 0;
  std::uint32_t entries = 0;
  std::uint32_t userptrs = 0;
  std::uint32_t syncobjs = 0;
  // A kernel that does not know the first ones may have other ioctls with the numbers of the last ones, so each is
  // asked for only if the one before is there.
  const std::array<std::function<int()>, 6> questions = {
      [&] { return list_gem(fd, nullptr, gem); },
      [&] { return list_mappings(fd, 0, nullptr, sparse); },
      [&] { return list_objects<drm_uapi::ContextEntry>(fd, drm_uapi::kContexts, nullptr, contexts); },
      [&] { return list_objects<drm_uapi::ListedBo>(fd, drm_uapi::kBoListEntries, nullptr, entries); },
      [&] { return list_objects<drm_uapi::UserptrEntry>(fd, drm_uapi::kUserptrs, nullptr, userptrs); },
      [&] { return list_syncobjs(fd, nullptr, syncobjs); }};
  for (const auto& ask : questions) {
    const int code = ask();
    // What a kernel answers that does not know the number, of DRM itself and of the driver, or no object 0.
    if (code == EINVAL || code == ENOTTY || code == EOPNOTSUPP || code == ENOENT) return false;
    if (code != 0) return Error::from_errno(code, "asking whether the kernel lists the objects of a render node");
  }
  return true;
}

Result<std::vector<ListedGem>> RealRenderDriver::gem_objects(int fd) {
  ASSIGN_OR_RETURN(const auto entries, read_list<drm_uapi::GemListEntry>(
                                           "DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES",
                                           [fd](auto* out, std::uint32_t& count) { return list_gem(fd, out, count); }));
  std::vector<ListedGem> result;
  for (const auto& each : entries)
    result.push_back({each.handle, each.size, each.preferred_domains, each.alloc_flags, each.alignment,
                      (each.flags & drm_uapi::kGemIsImport) != 0});
  return result;
}

Result<std::uint64_t> RealRenderDriver::all_flags(int fd, std::uint32_t handle) {
  drm_amdgpu_gem_create_in created{};
  drm_amdgpu_gem_op question{};
  question.handle = handle;
  question.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO;
  question.value = reinterpret_cast<std::uintptr_t>(&created);
  TRY(do_call(fd, DRM_IOCTL_AMDGPU_GEM_OP, &question, "AMDGPU_GEM_OP_GET_GEM_CREATE_INFO"));
  return std::uint64_t{created.domain_flags};
}

Result<std::vector<ListedUserptr>> RealRenderDriver::userptrs(int fd) {
  ASSIGN_OR_RETURN(const auto entries,
                   read_list<drm_uapi::UserptrEntry>("listing user memory", [fd](auto* out, std::uint32_t& count) {
                     return list_objects(fd, drm_uapi::kUserptrs, out, count);
                   }));
  std::vector<ListedUserptr> result;
  for (const auto& each : entries) result.push_back({each.handle, each.flags, each.addr, each.pid});
  return result;
}

Result<std::vector<image::GemMapping>> RealRenderDriver::mappings(int fd, std::uint32_t handle) {
  ASSIGN_OR_RETURN(const auto entries, read_list<drm_uapi::GemVmEntry>("AMDGPU_GEM_OP_GET_MAPPING_INFO",
                                                                       [fd, handle](auto* out, std::uint32_t& count) {
                                                                         return list_mappings(fd, handle, out, count);
                                                                       }));
  std::vector<image::GemMapping> result;
  for (const auto& each : entries) result.push_back({each.addr, each.size, each.offset, each.flags});
  return result;
}

Result<GemMetadata> RealRenderDriver::metadata(int fd, std::uint32_t handle) {
  drm_amdgpu_gem_metadata args{};
  args.handle = handle;
  args.op = AMDGPU_GEM_METADATA_OP_GET_METADATA;
  TRY(do_call(fd, DRM_IOCTL_AMDGPU_GEM_METADATA, &args, "DRM_IOCTL_AMDGPU_GEM_METADATA"));
  GemMetadata result{args.data.flags, args.data.tiling_info, {}};
  const auto bytes = std::as_bytes(std::span(args.data.data));
  const auto length = std::min<std::size_t>(args.data.data_size_bytes, bytes.size());
  result.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
  return result;
}

Result<std::optional<std::uint64_t>> RealRenderDriver::mmap_offset(int fd, std::uint32_t handle) {
  drm_amdgpu_gem_mmap args{};
  args.in.handle = handle;
  const int code = call(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &args);
  if (code == EPERM) return std::optional<std::uint64_t>();
  if (code != 0) return Error::from_errno(code, "DRM_IOCTL_AMDGPU_GEM_MMAP");
  return std::optional<std::uint64_t>(args.out.addr_ptr);
}

Result<std::optional<UniqueFd>> RealRenderDriver::export_gem(int fd, std::uint32_t handle) {
  return export_dmabuf(fd, handle, DRM_CLOEXEC | DRM_RDWR);
}

Result<std::optional<UniqueFd>> RealRenderDriver::export_read_only(int fd, std::uint32_t handle) {
  return export_dmabuf(fd, handle, DRM_CLOEXEC);
}

Result<bool> RealRenderDriver::is_idle(int fd, std::uint32_t handle) {
  drm_amdgpu_gem_wait_idle args{};
  args.in.handle = handle;  // and a deadline that is over
  TRY(do_call(fd, DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE, &args, "DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE"));
  return args.out.status == 0;
}

Result<std::uint32_t> RealRenderDriver::vram_losses(int fd) {
  std::uint32_t count = 0;
  drm_amdgpu_info question{};
  question.query = AMDGPU_INFO_VRAM_LOST_COUNTER;
  question.return_pointer = reinterpret_cast<std::uintptr_t>(&count);
  question.return_size = sizeof(count);
  TRY(do_call(fd, DRM_IOCTL_AMDGPU_INFO, &question, "DRM_IOCTL_AMDGPU_INFO"));
  return count;
}

Result<std::vector<ListedContext>> RealRenderDriver::contexts(int fd) {
  ASSIGN_OR_RETURN(const auto entries,
                   read_list<drm_uapi::ContextEntry>("listing contexts", [fd](auto* out, std::uint32_t& count) {
                     return list_objects(fd, drm_uapi::kContexts, out, count);
                   }));
  std::vector<ListedContext> result;
  for (const auto& each : entries)
    result.push_back({each.id, each.priority, (each.flags & drm_uapi::kContextGuilty) != 0,
                      (each.flags & drm_uapi::kContextReset) != 0, (each.flags & drm_uapi::kContextBusy) != 0,
                      (each.flags & drm_uapi::kContextOverridden) != 0, each.stable_pstate, each.sequence});
  return result;
}

Result<std::vector<ListedBoListEntry>> RealRenderDriver::bo_lists(int fd) {
  ASSIGN_OR_RETURN(const auto entries,
                   read_list<drm_uapi::ListedBo>("listing BO lists", [fd](auto* out, std::uint32_t& count) {
                     return list_objects(fd, drm_uapi::kBoListEntries, out, count);
                   }));
  std::vector<ListedBoListEntry> result;
  for (const auto& each : entries)
    result.push_back({each.list, each.handle, each.priority, (each.flags & drm_uapi::kListIsEmpty) != 0});
  return result;
}

Result<std::vector<ListedSyncobj>> RealRenderDriver::syncobjs(int fd) {
  ASSIGN_OR_RETURN(const auto entries, read_list<drm_uapi::SyncobjEntry>("listing synchronization objects",
                                                                         [fd](auto* out, std::uint32_t& count) {
                                                                           return list_syncobjs(fd, out, count);
                                                                         }));
  std::vector<ListedSyncobj> result;
  for (const auto& each : entries)
    result.push_back(
        {each.handle, (each.flags & drm_uapi::kSyncobjShared) != 0, (each.flags & drm_uapi::kSyncobjEventfd) != 0});
  return result;
}

Result<SyncobjNow> RealRenderDriver::syncobj(int fd, std::uint32_t handle) {
  ASSIGN_OR_RETURN(const std::uint64_t signaled, query_point(fd, handle, 0));
  ASSIGN_OR_RETURN(const std::uint64_t submitted, query_point(fd, handle, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED));
  if (signaled < submitted) return SyncobjNow();
  if (submitted != 0) return SyncobjNow(image::Syncobj{handle, image::SyncobjState::kTimeline, signaled});
  drm_syncobj_wait args{};
  args.handles = reinterpret_cast<std::uintptr_t>(&handle);
  args.count_handles = 1;
  const int code = call(fd, DRM_IOCTL_SYNCOBJ_WAIT, &args);
  if (code == 0) return SyncobjNow(image::Syncobj{handle, image::SyncobjState::kSignaled, 0});
  if (code == ETIME) return SyncobjNow();
  if (code == EINVAL) return SyncobjNow(image::Syncobj{handle, image::SyncobjState::kEmpty, 0});  // it has no fence
  return Error::from_errno(code, "DRM_IOCTL_SYNCOBJ_WAIT");
}

Status RealRenderDriver::create_gem(int fd, const image::GemObject& object, std::uint64_t size) {
  drm_uapi::GemCreate args{};
  args.size = size;
  args.alignment = object.alignment;
  args.domains = object.domains;
  args.flags = object.flags | drm_uapi::kCreateAtHandle;
  args.handle = object.handle;
  return do_call(fd, drm_uapi::kGemCreate, &args, "DRM_IOCTL_AMDGPU_GEM_CREATE at a handle");
}

Status RealRenderDriver::create_userptr(int fd, const image::GemObject& object, std::uint64_t size) {
  drm_amdgpu_gem_userptr args{};
  args.addr = object.user_addr;
  args.size = size;
  // The driver would look at the memory at once.
  args.flags = (object.user_flags & ~std::uint32_t{AMDGPU_GEM_USERPTR_VALIDATE}) | drm_uapi::kUserptrAtHandle;
  args.handle = object.handle;
  return do_call(fd, DRM_IOCTL_AMDGPU_GEM_USERPTR, &args, "DRM_IOCTL_AMDGPU_GEM_USERPTR at a handle");
}

Status RealRenderDriver::import_gem(int fd, std::uint32_t handle, int dmabuf) {
  drm_uapi::PrimeHandleAt args{};
  args.handle = handle;
  args.fd = dmabuf;
  return do_call(fd, drm_uapi::kPrimeFdToHandleAt, &args, "DRM_IOCTL_PRIME_FD_TO_HANDLE_AT");
}

Status RealRenderDriver::set_metadata(int fd, const image::GemObject& object) {
  drm_amdgpu_gem_metadata args{};
  args.handle = object.handle;
  args.op = AMDGPU_GEM_METADATA_OP_SET_METADATA;
  args.data.flags = object.metadata_flags;
  args.data.tiling_info = object.tiling;
  args.data.data_size_bytes = static_cast<std::uint32_t>(object.metadata.size());
  if (object.metadata.size() > sizeof(args.data.data)) return Error(EINVAL, "metadata of a GEM object: too long");
  if (!object.metadata.empty()) std::memcpy(args.data.data, object.metadata.data(), object.metadata.size());
  return do_call(fd, DRM_IOCTL_AMDGPU_GEM_METADATA, &args, "DRM_IOCTL_AMDGPU_GEM_METADATA");
}

Status RealRenderDriver::map(int fd, std::uint32_t handle, const image::GemMapping& mapping) {
  drm_amdgpu_gem_va args{};
  args.handle = handle;
  args.operation = AMDGPU_VA_OP_MAP;
  args.flags = static_cast<std::uint32_t>(mapping.flags);
  args.va_address = mapping.addr;
  args.offset_in_bo = mapping.offset;
  args.map_size = mapping.size;
  return do_call(fd, DRM_IOCTL_AMDGPU_GEM_VA, &args, "DRM_IOCTL_AMDGPU_GEM_VA");
}

Status RealRenderDriver::create_context(int fd, const image::GpuContext& context) {
  drm_amdgpu_ctx args{};
  args.in.op = drm_uapi::kContextAllocAt;
  args.in.ctx_id = context.id;
  args.in.priority = context.priority;
  TRY(do_call(fd, DRM_IOCTL_AMDGPU_CTX, &args, "DRM_IOCTL_AMDGPU_CTX at an id"));
  // Fences from before the dump have to be older than any of the new context, and signaled.
  drm_amdgpu_ctx skip{};
  skip.in.op = drm_uapi::kContextSkipFences;
  skip.in.ctx_id = context.id;
  skip.in.flags = static_cast<std::uint32_t>(context.sequence);
  skip.in.priority = static_cast<std::int32_t>(context.sequence >> 32);
  return do_call(fd, DRM_IOCTL_AMDGPU_CTX, &skip, "DRM_IOCTL_AMDGPU_CTX, skipping fences");
}

Status RealRenderDriver::create_bo_list(int fd, const image::BoList& list) {
  std::vector<drm_amdgpu_bo_list_entry> entries;
  for (const image::BoListEntry& each : list.entries) entries.push_back({each.handle, each.priority});
  drm_amdgpu_bo_list args{};
  args.in.operation = drm_uapi::kBoListCreateAt;
  args.in.list_handle = list.handle;
  args.in.bo_number = static_cast<std::uint32_t>(entries.size());
  args.in.bo_info_size = sizeof(drm_amdgpu_bo_list_entry);
  args.in.bo_info_ptr = reinterpret_cast<std::uintptr_t>(entries.data());
  return do_call(fd, DRM_IOCTL_AMDGPU_BO_LIST, &args, "DRM_IOCTL_AMDGPU_BO_LIST at a handle");
}

Status RealRenderDriver::create_syncobj(int fd, const image::Syncobj& syncobj) {
  drm_syncobj_create args{};
  args.handle = syncobj.handle;
  args.flags = drm_uapi::kSyncobjCreateAt;
  if (syncobj.state == image::SyncobjState::kSignaled) args.flags |= DRM_SYNCOBJ_CREATE_SIGNALED;
  TRY(do_call(fd, DRM_IOCTL_SYNCOBJ_CREATE, &args, "DRM_IOCTL_SYNCOBJ_CREATE at a handle"));
  if (syncobj.state != image::SyncobjState::kTimeline) return {};
  std::uint64_t point = syncobj.point;
  std::uint32_t handle = syncobj.handle;
  drm_syncobj_timeline_array signal{};
  signal.handles = reinterpret_cast<std::uintptr_t>(&handle);
  signal.points = reinterpret_cast<std::uintptr_t>(&point);
  signal.count_handles = 1;
  return do_call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &signal, "DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL");
}

}  // namespace plugin
