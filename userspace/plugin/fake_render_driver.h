// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Render nodes in memory for tests: open files with objects, whose "DMA-bufs" are memfds. Follows the driver's rules
// about numbers: one that is taken fails. Each call counts as a system call (base/os.h).
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "plugin/fake_criu_restore.h"
#include "plugin/image/format.h"
#include "plugin/render_driver.h"

namespace plugin::testing {

class FakeRenderDriver final : public RenderDriver {
 public:
  struct Gem {
    ListedGem listed;
    std::vector<image::GemMapping> mappings = {};
    GemMetadata metadata = {};
    std::optional<std::uint64_t> mmap_offset = {};
    int busy = 0;  // how often is_idle() says no
    base::UniqueFd memory = {};
    ListedUserptr user = {};  // without flags: it is no memory of a program
  };
  struct File {
    base::UniqueFd fd;
    std::map<std::uint32_t, Gem> gem = {};
    std::vector<image::GemMapping> sparse = {};
    std::map<std::uint32_t, ListedContext> contexts = {};
    std::vector<ListedBoListEntry> bo_lists = {};
    std::map<std::uint32_t, ListedSyncobj> syncobjs = {};
    std::map<std::uint32_t, SyncobjNow> states = {};
  };

  bool lists = true;
  int import_errno = 0;      // what every import fails with
  std::uint32_t losses = 0;  // of VRAM
  std::uint64_t next_offset = 0x100000000;
  std::deque<File> files;
  std::map<ino_t, ListedGem> known;             // what objects of each memory are listed as
  std::map<ino_t, GemMetadata> known_metadata;  // of memory that files without handles have set

  // The file behind a descriptor; a new one if it is none of them.
  File& file(int fd) {
    for (File& each : files)
      if (same_open_file(each.fd.get(), fd)) return each;
    files.push_back({base::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 4000))});
    return files.back();
  }

  // An object with these contents.
  Gem& add(int fd, const ListedGem& listed, const std::vector<std::byte>& contents) {
    Gem& gem = file(fd).gem[listed.handle];
    gem.listed = listed;
    gem.mmap_offset = next_offset;
    next_offset += listed.size;
    gem.memory.reset(::fcntl(base::UniqueFd(::memfd_create("gem", MFD_CLOEXEC)).get(), F_DUPFD_CLOEXEC, 4000));
    EXPECT_EQ(::ftruncate(gem.memory.get(), static_cast<off_t>(listed.size)), 0);
    EXPECT_EQ(::pwrite(gem.memory.get(), contents.data(), contents.size(), 0), static_cast<ssize_t>(contents.size()));
    struct stat memory {};
    EXPECT_EQ(::fstat(gem.memory.get(), &memory), 0);
    known[memory.st_ino] = listed;
    return gem;
  }

  static std::vector<std::byte> contents(const Gem& gem) {
    std::vector<std::byte> bytes(gem.listed.size);
    EXPECT_EQ(::pread(gem.memory.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }

  base::Result<bool> has_lists(int /*fd*/) override {
    TRY(step("has_lists"));
    return bool{lists};
  }
  base::Result<std::vector<ListedGem>> gem_objects(int fd) override {
    TRY(step("gem_objects"));
    std::vector<ListedGem> all;
    for (const auto& [handle, gem] : file(fd).gem) {
      all.push_back(gem.listed);
      all.back().flags &= kListedFlags;
    }
    return all;
  }
  base::Result<std::uint64_t> all_flags(int fd, std::uint32_t handle) override {
    TRY(step("all_flags"));
    return file(fd).gem.at(handle).listed.flags | kWipeOnRelease;
  }
  base::Result<std::vector<ListedUserptr>> userptrs(int fd) override {
    TRY(step("userptrs"));
    std::vector<ListedUserptr> all;
    for (const auto& [handle, gem] : file(fd).gem)
      if (gem.user.flags != 0) all.push_back(gem.user);
    return all;
  }
  base::Result<std::vector<image::GemMapping>> mappings(int fd, std::uint32_t handle) override {
    TRY(step("mappings"));
    if (handle == 0) return std::vector<image::GemMapping>(file(fd).sparse);
    return std::vector<image::GemMapping>(file(fd).gem.at(handle).mappings);
  }
  base::Result<GemMetadata> metadata(int fd, std::uint32_t handle) override {
    TRY(step("metadata"));
    return GemMetadata(file(fd).gem.at(handle).metadata);
  }
  base::Result<std::optional<std::uint64_t>> mmap_offset(int fd, std::uint32_t handle) override {
    TRY(step("mmap_offset"));
    return std::optional<std::uint64_t>(file(fd).gem.at(handle).mmap_offset);
  }
  base::Result<std::optional<base::UniqueFd>> export_gem(int fd, std::uint32_t handle) override {
    TRY(step("export_gem"));
    const Gem& gem = file(fd).gem.at(handle);
    if (gem.user.flags != 0 || (gem.listed.flags & image::kGemVmAlwaysValid) != 0)
      return std::optional<base::UniqueFd>();
    return std::optional<base::UniqueFd>(base::UniqueFd(::fcntl(gem.memory.get(), F_DUPFD_CLOEXEC, 0)));
  }
  base::Result<std::optional<base::UniqueFd>> export_read_only(int fd, std::uint32_t handle) override {
    TRY(step("export_read_only"));
    const std::string path = "/proc/self/fd/" + std::to_string(file(fd).gem.at(handle).memory.get());
    return std::optional<base::UniqueFd>(base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  }
  base::Result<bool> is_idle(int fd, std::uint32_t handle) override {
    TRY(step("is_idle"));
    Gem& gem = file(fd).gem.at(handle);
    if (gem.busy == 0) return true;
    --gem.busy;
    return false;
  }
  base::Result<std::uint32_t> vram_losses(int /*fd*/) override {
    TRY(step("vram_losses"));
    return std::uint32_t{losses};
  }
  base::Result<std::vector<ListedContext>> contexts(int fd) override {
    TRY(step("contexts"));
    std::vector<ListedContext> all;
    for (const auto& [id, context] : file(fd).contexts) all.push_back(context);
    return all;
  }
  base::Result<std::vector<ListedBoListEntry>> bo_lists(int fd) override {
    TRY(step("bo_lists"));
    return std::vector<ListedBoListEntry>(file(fd).bo_lists);
  }
  base::Result<std::vector<ListedSyncobj>> syncobjs(int fd) override {
    TRY(step("syncobjs"));
    std::vector<ListedSyncobj> all;
    for (const auto& [handle, syncobj] : file(fd).syncobjs) all.push_back(syncobj);
    return all;
  }
  base::Result<SyncobjNow> syncobj(int fd, std::uint32_t handle) override {
    TRY(step("syncobj"));
    return SyncobjNow(file(fd).states.at(handle));
  }

  base::Status create_gem(int fd, const image::GemObject& object, std::uint64_t size) override {
    TRY(step("create_gem"));
    if (file(fd).gem.contains(object.handle)) return base::Error(EEXIST, "handle is taken");
    add(fd, {object.handle, size, object.domains, object.flags, object.alignment, false}, {});
    return {};
  }
  base::Status create_userptr(int fd, const image::GemObject& object, std::uint64_t size) override {
    TRY(step("create_userptr"));
    if (file(fd).gem.contains(object.handle)) return base::Error(EEXIST, "handle is taken");
    Gem& gem = add(fd, {object.handle, size, image::kGemGtt, 0, object.alignment, false}, {});
    gem.mmap_offset.reset();
    gem.user = {object.handle, object.user_flags, object.user_addr, ::getpid()};
    return {};
  }
  base::Status import_gem(int fd, std::uint32_t handle, int dmabuf) override {
    TRY(step("import_gem"));
    if (import_errno != 0) return base::Error::from_errno(import_errno, "fake import_gem");
    if (file(fd).gem.contains(handle)) return base::Error(EEXIST, "handle is taken");
    struct stat memory {};
    EXPECT_EQ(::fstat(dmabuf, &memory), 0);
    for (const auto& [number, gem] : file(fd).gem) {
      struct stat other {};
      EXPECT_EQ(::fstat(gem.memory.get(), &other), 0);
      if (other.st_ino == memory.st_ino) return base::Error(EBUSY, "its memory has another handle");
    }
    Gem& gem = file(fd).gem[handle];
    gem.listed = known[memory.st_ino];
    gem.metadata = known_metadata[memory.st_ino];
    gem.listed.handle = handle;
    gem.listed.size = static_cast<std::uint64_t>(memory.st_size);
    gem.memory.reset(::fcntl(dmabuf, F_DUPFD_CLOEXEC, 4000));
    // One object has one offset, in whichever files it has handles.
    const auto [offset, is_new] = offsets_.try_emplace(memory.st_ino, next_offset);
    if (is_new) next_offset += gem.listed.size;
    gem.mmap_offset = offset->second;
    return {};
  }
  base::Status set_metadata(int fd, const image::GemObject& object) override {
    TRY(step("set_metadata"));
    Gem& gem = file(fd).gem.at(object.handle);
    gem.metadata = {object.metadata_flags, object.tiling, object.metadata};
    struct stat memory {};
    EXPECT_EQ(::fstat(gem.memory.get(), &memory), 0);
    known_metadata[memory.st_ino] = gem.metadata;
    return {};
  }
  base::Status map(int fd, std::uint32_t handle, const image::GemMapping& mapping) override {
    TRY(step("map"));
    (handle == 0 ? file(fd).sparse : file(fd).gem.at(handle).mappings).push_back(mapping);
    return {};
  }
  base::Status create_context(int fd, const image::GpuContext& context) override {
    TRY(step("create_context"));
    ListedContext listed;
    listed.id = context.id;
    listed.priority = context.priority;
    listed.sequence = context.sequence;
    if (!file(fd).contexts.emplace(context.id, listed).second) return base::Error(EEXIST, "id is taken");
    return {};
  }
  base::Status create_bo_list(int fd, const image::BoList& list) override {
    TRY(step("create_bo_list"));
    if (list.entries.empty()) file(fd).bo_lists.push_back({list.handle, 0, 0, true});
    for (const image::BoListEntry& entry : list.entries)
      file(fd).bo_lists.push_back({list.handle, entry.handle, entry.priority, false});
    return {};
  }
  base::Status create_syncobj(int fd, const image::Syncobj& syncobj) override {
    TRY(step("create_syncobj"));
    if (!file(fd).syncobjs.emplace(syncobj.handle, ListedSyncobj{syncobj.handle}).second)
      return base::Error(EEXIST, "handle is taken");
    file(fd).states[syncobj.handle] = syncobj;
    return {};
  }

 private:
  // What the kernel lists: flags that DRM_IOCTL_AMDGPU_GEM_CREATE takes.
  static constexpr std::uint64_t kListedFlags = 0xf | 1U << 6 | 1U << 7 | 1U << 10 | 1U << 12 | 1U << 16;
  static constexpr std::uint64_t kWipeOnRelease = 1U << 9;  // the driver gives it to all memory

  static base::Status step(const char* name) {
    if (const int code = os::fault(name); code != 0) return base::Error(code, std::string("fake ") + name);
    return {};
  }

  std::map<ino_t, std::uint64_t> offsets_;  // of imported memory
};

}  // namespace plugin::testing
