// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Mappings of device files in a task that is being restored: which file and offset CRIU has to map, and through which
// descriptor, so that none is left over. The files and the GPU state are restored before (restore.cc).
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

#include "base/os.h"
#include "plugin/mapping_runs.h"
#include "plugin/peer.h"
#include "plugin/restore.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

std::string describe(std::string_view path, std::uint64_t addr, std::uint64_t offset) {
  return std::string(path) + " at " + std::to_string(addr) + ", offset " + std::to_string(offset);
}

}  // namespace

Result<std::optional<VmaAnswer>> Restore::update_vma(std::string_view path, std::uint64_t addr, std::uint64_t offset) {
  if (!catalogue_) prepare();
  if (files_.empty()) return std::optional<VmaAnswer>();
  Task& current = task();
  if (current.process == nullptr) {
    ASSIGN_OR_RETURN(auto object, locate_object(current, path, addr, offset));
    if (object) return object;
    return locate_inherited(current, addr, offset);
  }
  auto found = locate_own(current, path, addr, offset);
  if (!found.ok()) set_failed(current);
  return found;
}

Result<std::optional<VmaAnswer>> Restore::locate_own(Task& current, std::string_view path, std::uint64_t addr,
                                                     std::uint64_t offset) {
  TRY(ready());
  TRY(settle(current));
  ASSIGN_OR_RETURN(auto found, locate(current, path, addr, offset));
  if (services_.criu.takes_vma_fd() && is_last_mapping(current, addr)) current.held.release_all_but(std::nullopt);
  return found;
}

Result<std::optional<VmaAnswer>> Restore::locate(Task& current, std::string_view path, std::uint64_t addr,
                                                 std::uint64_t offset) {
  ASSIGN_OR_RETURN(auto object, locate_object(current, path, addr, offset));
  if (object) return object;
  const DeviceFile device = services_.system.identify_path(path);
  // A BO says more than a path, whose node may be another one here, or was never more than a name.
  auto found = locate_exactly(current.bos, addr, offset);
  if (!found && device.kind == DeviceKind::kRender) {
    ASSIGN_OR_RETURN(const RestorePlan* plan, plan_of(*current.process));
    std::optional<std::uint32_t> source_gpu;
    if (const topology::Node* node = topology::find_render_minor(plan->source(), device.minor))
      source_gpu = node->gpu_id;
    found = locate_render_vma(current.bos, source_gpu, addr, offset);
    if (!found) return Error(ENXIO, describe(path, addr, offset) + ": a mapping of memory that is no BO of KFD's");
  }
  if (found) {
    ASSIGN_OR_RETURN(const VmaAnswer result,
                     answer(current, current.render.at(found->destination_gpu), addr, found->new_offset));
    return std::optional<VmaAnswer>(result);
  }
  if (device.kind != DeviceKind::kKfd && !locate_exactly(current.kfd_bos, addr, offset))
    return std::optional<VmaAnswer>();
  const auto moved = locate_kfd_vma(current.gpus, offset);
  if (!moved) return Error(ENXIO, describe(path, addr, offset) + ": a mapping of a GPU that the image does not have");
  ASSIGN_OR_RETURN(const VmaAnswer result, answer(current, *current.kfd, addr, *moved));
  return std::optional<VmaAnswer>(result);
}

Status Restore::wait_for(std::uint32_t pid, Progress wanted, const std::string& what) const {
  const std::string name = "process " + std::to_string(pid) + ", " + what + ", ";
  const auto slot = board_.find(pid);
  if (!slot) return Error(ESRCH, name + "is not one of the dump");
  ASSIGN_OR_RETURN(const Peer peer, Peer::find(pid, what));
  switch (board_.wait(*slot, wanted, services_.longest_wait, [&peer] { return peer.is_alive(); })) {
    case RestoreBoard::Waited::kReached:
      return {};
    case RestoreBoard::Waited::kEnded:
      return Error(ESRCH, name + "has ended or was not restored");
    case RestoreBoard::Waited::kTooLong:
      break;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(services_.longest_wait).count();
  return Error(ETIMEDOUT, name + "has done nothing for it in " + std::to_string(seconds) + " seconds");
}

// A process that uses no GPU itself may have mappings of BOs that it inherited from the process that made them. The
// kernel allows them only through a file of that process.
Result<std::optional<VmaAnswer>> Restore::locate_inherited(Task& current, std::uint64_t addr, std::uint64_t offset) {
  for (const SavedFile& process : files_) {
    const image::KfdFile* kfd = process.loaded->kfd();
    if (kfd == nullptr) continue;
    for (std::size_t i = 0; i < kfd->bos.size(); ++i) {
      const kfd::Bo& bo = kfd->bos[i].bo;
      if (!kfd::has_contents(bo)) continue;
      const MappableBo mappable{bo.addr, bo.size, bo.mmap_offset, 0, 0, 0};
      if (!locate_exactly({&mappable, 1}, addr, offset)) continue;
      TRY(ready());
      const std::size_t slot = *board_.find(kfd->pid);
      TRY(wait_for(kfd->pid, Progress::kSettled, "whose memory this one has mapped"));
      const std::uint32_t source = image::actual_id_of(*kfd, bo.user_gpu_id);
      const auto device = std::find_if(kfd->devices.begin(), kfd->devices.end(),
                                       [source](const kfd::Device& d) { return d.actual_id == source; });
      const int number = board_.descriptor(slot, static_cast<std::size_t>(device - kfd->devices.begin()));
      if (number < 0)
        return Error(ENXIO,
                     "process " + std::to_string(kfd->pid) +
                         ", whose memory this one has mapped, has no mapping of its own: it kept no render node");
      ASSIGN_OR_RETURN(UniqueFd file, services_.system.copy_descriptor(static_cast<pid_t>(kfd->pid), number));
      ASSIGN_OR_RETURN(const HeldFiles::Key key, current.held.hold(std::move(file)));
      ASSIGN_OR_RETURN(const VmaAnswer result,
                       answer(current, key, addr, board_.offset(slot, i) + (offset - bo.mmap_offset)));
      if (services_.criu.takes_vma_fd()) current.held.release_all_but(std::nullopt);
      return std::optional<VmaAnswer>(result);
    }
  }
  return std::optional<VmaAnswer>();
}

Result<VmaAnswer> Restore::answer(Task& current, HeldFiles::Key key, std::uint64_t addr, std::uint64_t offset) {
  ASSIGN_OR_RETURN(const int fd, services_.criu.takes_vma_fd()
                                     ? taken_descriptor(current, current.held.number(key), addr)
                                     : lent_descriptor(current, key, addr));
  return VmaAnswer{offset, fd};
}

// For CRIU that duplicates what it is answered, after this call. The last answer must not be a descriptor that only
// this object holds, or it would stay open: then a duplicate that CRIU made for another mapping, which CRIU closes
// later.
Result<int> Restore::lent_descriptor(Task& current, HeldFiles::Key key, std::uint64_t addr) {
  if (!is_last_mapping(current, addr)) return current.held.number(key);
  if (current.held.is_held(key)) {
    ASSIGN_OR_RETURN(const auto duplicate, services_.system.find_duplicate(current.held.number(key)));
    if (!duplicate) {
      current.held.release_all_but(key);
      return current.held.number(key);
    }
    current.held.release_all_but(std::nullopt);
    return int{*duplicate};
  }
  current.held.release_all_but(std::nullopt);
  return current.held.number(key);
}

// Through the wrong file the kernel refuses the mapping, or shows another object at the same offset. CRIU 3.17 to 4.2
// give each mapping of a device an id of its own (fd_id_generate_special() of file-ids.c), so that no run has two.
Status Restore::require_same_file(int number, int run_descriptor, std::uint64_t addr) const {
  ASSIGN_OR_RETURN(const bool is_same, services_.system.same_file(number, run_descriptor));
  if (is_same) return {};
  return Error(ENOTSUP, "the mapping at " + std::to_string(addr) +
                            ": CRIU's images name one file for it and for the mapping before it, and they are of two "
                            "open files of the device; restore with images of a CRIU that names one for each");
}

// For CRIU that takes what it is answered, see mapping_runs.h.
Result<int> Restore::taken_descriptor(Task& current, int number, std::uint64_t addr) {
  const auto vma = current.criu == nullptr ? std::nullopt : find_vma(current.criu->vmas, addr);
  const auto previous = current.previous_vma;
  ASSIGN_OR_RETURN(const bool has_opened, file_opened_since(current));
  const bool continues = vma && previous && is_same_run(current.criu->vmas, *previous, *vma, has_opened);
  int fd = number;  // CRIU does not look at it
  if (continues) {
    TRY(require_same_file(number, current.run_descriptor, addr));
  } else {
    fd = os::fcntl(number, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return Error::from_errno(errno, "duplicating a device file for the mapping at " + std::to_string(addr));
    current.run_descriptor = fd;
  }
  current.previous_vma = vma;
  if (vma && may_open(current.criu->vmas, *vma)) {
    auto descriptors = services_.system.descriptors();
    if (!descriptors.ok() && !continues) os::close(fd);
    if (!descriptors.ok()) return std::move(descriptors).error();
    current.previous_descriptors = std::move(descriptors).value();
  }
  return int{fd};
}

// Whether a descriptor of a file with a path has appeared since the last mapping.
Result<bool> Restore::file_opened_since(const Task& current) const {
  if (!current.previous_vma || !may_open(current.criu->vmas, *current.previous_vma)) return false;
  ASSIGN_OR_RETURN(const std::vector<int> descriptors, services_.system.descriptors());
  if (descriptors.empty()) return true;  // the task's /proc does not show them
  for (const int fd : descriptors) {
    const auto& before = current.previous_descriptors;
    if (std::find(before.begin(), before.end(), fd) != before.end()) continue;
    ASSIGN_OR_RETURN(const std::string path, services_.system.descriptor_path(fd));
    // CRIU makes anonymous shared memory in these, which does not end the run. In doubt it has ended: then CRIU may
    // forget a duplicate, which stays open in the program; else it would take, and close, a descriptor of the program.
    if (!path.starts_with('/') || path.starts_with("/dev/zero") || path.starts_with("/SYSV")) continue;
    if (path.starts_with("/memfd:") && !may_open_memfd(current.criu->vmas, *current.previous_vma)) continue;
    return true;
  }
  return false;
}

bool Restore::is_last_mapping(const Task& current, std::uint64_t addr) const {
  if (current.criu == nullptr) return false;
  const auto& vmas = current.criu->vmas;
  const auto last = std::find_if(vmas.rbegin(), vmas.rend(),
                                 [](const CriuVma& vma) { return vma.source == CriuVma::Source::kPlugin; });
  return last != vmas.rend() && last->start == addr;
}

}  // namespace plugin
