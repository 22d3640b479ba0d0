// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. Read prepare(), restore_process() and settle() in this order. Mappings are in restore_mappings.cc.
#include "plugin/restore.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <string_view>

#include "base/os.h"
#include "base/text_file.h"
#include "plugin/image/upstream.h"
#include "plugin/inert_file.h"
#include "plugin/kfd_objects.h"
#include "plugin/restore_loader.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::uint32_t kMappedThroughKfd = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP;

constexpr std::string_view kUnknownFiles =
    "programs share GPU memory, or have DMA-bufs of it, and CRIU's images are not readable, which say whose files a "
    "process has to wait for";
constexpr std::string_view kNoFdstore =
    "programs share GPU memory, or have DMA-bufs of it, and this CRIU has no fdstore_add() and fdstore_get(), by which "
    "they pass it to each other";

kfd::Abi abi_of(const SavedFile& process) {
  return process.loaded->session().abi == image::Abi::kExtensible ? kfd::Abi::kExtensible : kfd::Abi::kReleased;
}

bool has_plugin_mapping(const CriuTask& task) {
  return std::any_of(task.vmas.begin(), task.vmas.end(),
                     [](const CriuVma& vma) { return vma.source == CriuVma::Source::kPlugin; });
}

}  // namespace

// ---- In CRIU's main process, before the tree ----

void Restore::prepare() {
  catalogue_.emplace(image::Catalogue::read(services_.criu.image_dir()));
  if (!catalogue_->ok()) return;
  files_ = saved_files(**catalogue_);
  if (files_.empty()) return;
  auto criu = CriuImages::read(services_.criu.image_dir());
  if (criu.ok()) {
    find_owners(files_, *criu);
    criu_ = std::move(criu).value();
  } else if (!base::is_absence(criu.error()) && criu.error().code() != EPROTO) {
    criu_status_ = std::move(criu).error();
  } else {
    services_.criu.warn(
        "descriptors of mappings may be left open in the program, because CRIU's images are not readable: " +
        criu.error().message());
  }
  std::erase_if(files_, [this](const SavedFile& file) { return !is_wanted(file); });
  std::size_t num_memories = 0;
  for (const SavedFile& file : files_) {
    if (!plans_.contains(file.session_id)) {
      plans_.emplace(file.session_id, make_plan(file.session_id));
      const auto& shared = shared_.emplace(file.session_id, find_shared(file.session_id, num_memories)).first->second;
      if (shared.ok()) num_memories += shared->session.plan.memories().size();
    }
    const image::KfdFile* kfd = file.loaded->kfd();
    if (kfd != nullptr && !kfd->own_mount_namespace) shared_files_.emplace(file.id, create_shared_files(file));
  }
  if (!files_.empty()) {
    auto locks = services_.system.lock_links();
    for (const Error& error : locks.failures) services_.criu.warn(error.message());
    locks_ = std::move(locks.files);
  }
  make_board();
}

// A GPU without memory is needed as well: libhsakmt names it to the kernel in later ioctls, which would fail, when the
// program allocates or frees host memory.
Result<RestorePlan> Restore::make_plan(std::uint64_t session_id) const {
  auto plan = RestorePlan::make(services_.system, services_.options, needed_gpus(files_, session_id));
  if (plan.ok() || plan.error().code() != ENODEV) return plan;
  std::string unused;
  for (const std::uint32_t gpu_id : gpus_without_memory(files_, session_id)) unused += " " + std::to_string(gpu_id);
  if (unused.empty()) return plan;
  return Error(ENODEV, plan.error().message() + "; the programs have no memory on GPU" + unused +
                           ", but they have opened it, and libhsakmt maps host memory to every GPU that it has opened, "
                           "so it cannot be left out; give a program only the GPUs that it is to use, by a device "
                           "cgroup");
}

std::string_view Restore::notice() const {
  for (const SavedFile& file : files_)
    if (file.loaded->session().version == image::Version::kUpstream) return image::upstream::kNotice;
  return {};
}

Result<Restore::Shared> Restore::find_shared(std::uint64_t session_id, std::size_t first) const {
  std::vector<const image::Loaded*> files;
  for (const SavedFile& file : files_)
    if (file.session_id == session_id) files.push_back(file.loaded);
  TRY(kfd_objects::check(files));
  ASSIGN_OR_RETURN(SessionSharing session, sharing_of(
                                               files, [this](const auto& file) { return is_late(file); },
                                               [this](const auto& dmabuf) { return is_needed(dmabuf); }));
  if (!session.plan.memories().empty() && !criu_) return Error(EPROTO, std::string(kUnknownFiles));
  if (!session.plan.memories().empty() && !services_.criu.passes_files())
    return Error(ENOTSUP, std::string(kNoFdstore));
  return Shared{std::move(session), first};
}

// CRIU asks the process with the lowest pid for a file.
std::optional<std::uint32_t> Restore::asked_task(std::uint32_t file_id) const {
  if (!criu_) return std::nullopt;
  for (const auto& [pid, task] : criu_->tasks())
    if (std::any_of(task.files.begin(), task.files.end(),
                    [file_id](const ExternalFd& fd) { return fd.file_id == file_id; }))
      return pid;
  return std::nullopt;
}

// If CRIU does not ask the process whose state comes with the file, this one is restored when it has all of its files.
bool Restore::is_late(const image::Loaded& file) const { return asked_task(file.id()) != image::owner_of(file.file()); }

// A task that has a BO of the memory exports it. Another one is given it like a process that shares memory.
bool Restore::is_needed(const image::Loaded& dmabuf) const {
  const auto asked = asked_task(dmabuf.id());
  const SavedFile* process = asked ? process_of(*asked) : nullptr;
  if (process == nullptr || process->session_id != dmabuf.session().id) return true;
  return !kfd_objects::bo_with(*process->loaded->kfd(), dmabuf.dmabuf()->inode);
}

bool Restore::is_wanted(const SavedFile& file) const {
  // Without CRIU's images the files of a dump that was left in the directory cannot be told from those of this one.
  return !criu_ || criu_->uses_file(file.id);
}

Status Restore::create_shared_files(const SavedFile& process) const {
  for (const image::SharedFile& file : process.loaded->kfd()->shared_files)
    TRY(services_.system.create_shared_file(file));
  return {};
}

void Restore::make_board() {
  std::vector<RestoreBoard::Process> processes;
  for (const SavedFile& file : files_)
    if (const image::KfdFile* kfd = file.loaded->kfd())
      processes.push_back({kfd->pid, kfd->bos.size(), kfd->devices.size()});
  std::size_t memories = 0;
  for (const auto& [session_id, shared] : shared_)
    if (shared.ok()) memories += shared->session.plan.memories().size();
  auto board = RestoreBoard::create(processes, memories);
  if (board.ok())
    board_ = std::move(board).value();
  else
    board_status_ = std::move(board).error();
}

Status Restore::ready() {
  if (!catalogue_) prepare();
  TRY(services_.options_status);
  TRY(criu_status_);
  return board_status_;
}

const SavedFile* Restore::find_saved(std::uint32_t id) const {
  for (const SavedFile& file : files_)
    if (file.id == id) return &file;
  return nullptr;
}

const SavedFile* Restore::process_of(std::uint32_t pid) const {
  for (const SavedFile& file : files_)
    if (file.kind == image::Kind::kKfd && file.owner == pid) return &file;
  return nullptr;
}

Result<const RestorePlan*> Restore::plan_of(const SavedFile& file) const {
  const auto& plan = plans_.at(file.session_id);
  if (!plan.ok()) return plan.error();
  if (const auto& shared = shared_.at(file.session_id); !shared.ok()) return shared.error();
  return &*plan;
}

// ---- In a restored task ----

Restore::Task& Restore::task() {
  const pid_t pid = services_.criu.pid();
  const auto [found, is_new] = tasks_.try_emplace(pid, services_.system, services_.criu);
  Task& current = found->second;
  if (is_new) {
    current.criu = criu_ ? criu_->find(static_cast<std::uint32_t>(pid)) : nullptr;
    current.process = process_of(static_cast<std::uint32_t>(pid));
  }
  return current;
}

Result<std::optional<int>> Restore::restore_file(std::uint32_t id) {
  if (!catalogue_) prepare();
  if (!catalogue_->ok()) return catalogue_->error();
  ASSIGN_OR_RETURN(const image::Loaded* loaded, (*catalogue_)->find(id));
  const SavedFile* file = loaded == nullptr ? nullptr : find_saved(id);
  if (file == nullptr) return std::optional<int>();
  TRY(ready());
  Task& current = task();
  current.asked.insert(id);
  auto restored = restore_saved(current, *file);
  if (!restored.ok()) set_failed(current);
  ASSIGN_OR_RETURN(UniqueFd fd, std::move(restored));
  if (file->open_flags != 0 && os::fcntl(fd.get(), F_SETFL, file->open_flags) < 0)
    return Error::from_errno(errno, "setting flags of a device file");
  settle_without_mapping(current);
  return std::optional<int>(fd.release());
}

std::uint32_t Restore::next_unused_pid() const {
  if (!criu_) return 0;
  return criu_->unused_pid(static_cast<std::uint32_t>(board_.next_number()));
}

Result<UniqueFd> Restore::restore_saved(Task& current, const SavedFile& file) {
  ASSIGN_OR_RETURN(const RestorePlan* plan, plan_of(file));
  const bool is_owner = file.owner == static_cast<std::uint32_t>(services_.criu.pid());
  const NextPid next_pid = [this] { return next_unused_pid(); };
  switch (file.kind) {
    case image::Kind::kKfd:
      if (!is_owner) return open_inert(services_.system, plan->kfd(), file.open_flags, next_pid);
      TRY(restore_process(current));
      return current.held.duplicate(*current.kfd);
    case image::Kind::kSecond:
      if (is_owner) return services_.system.open_node(plan->kfd(), file.open_flags);
      return open_inert(services_.system, plan->kfd(), file.open_flags, next_pid);
    case image::Kind::kInert:
      return open_inert(services_.system, plan->kfd(), file.open_flags, next_pid);
    case image::Kind::kDmabuf:
      return restore_dmabuf(current, *plan, file);
    case image::Kind::kSyncFile:
      return restore_sync_file(*plan, *file.loaded->sync_file());
    case image::Kind::kRender:
      break;
  }
  const image::RenderFile& render = *file.loaded->render();
  ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan->destination_of(render.gpu_id));
  // The program maps BOs through this file, and the kernel lets it only through the one that KFD was given.
  const bool used_by_kfd =
      render.binding != image::Binding::kOther && current.process != nullptr && (is_owner || file.owner == 0);
  if (!used_by_kfd) {
    ASSIGN_OR_RETURN(UniqueFd fd, services_.system.open_node(plan->render(gpu_id), file.open_flags));
    // Objects of a file whose VM KFD uses are in the file of that process only.
    if (render.binding == image::Binding::kOther) TRY(restore_objects(*plan, file, fd.get(), {}));
    return fd;
  }
  ASSIGN_OR_RETURN(const HeldFiles::Key key, render_key(current, *plan, gpu_id));
  return current.held.duplicate(key);
}

// The task restores its own state first, so that it waits for others only when nobody waits for it any more.
Result<UniqueFd> Restore::restore_dmabuf(Task& current, const RestorePlan& plan, const SavedFile& file) {
  const image::DmabufFile& dmabuf = *file.loaded->dmabuf();
  std::optional<std::size_t> bo;
  if (current.process != nullptr) {
    TRY(restore_process(current));
    if (current.process->session_id == file.session_id)
      bo = kfd_objects::bo_with(*current.process->loaded->kfd(), dmabuf.inode);
    if (current.restored.empty() && bo) return Error(ECANCELED, "the GPU state of its process was not restored");
  }
  auto restored = bo ? services_.kfd.export_restored(current.held.number(*current.kfd),
                                                     current.process->loaded->kfd()->bos[*bo].bo, current.restored[*bo])
                     : take_dmabuf(plan, file);
  if (!restored.ok()) return std::move(restored).error().wrap("DMA-buf of " + std::to_string(dmabuf.size) + " bytes");
  if (!dmabuf.name.empty()) TRY(services_.name_dmabuf(restored->get(), dmabuf.name));
  return restored;
}

// Through a file of its own of the render node, which is closed again.
Result<UniqueFd> Restore::restore_sync_file(const RestorePlan& plan, const image::SyncFile& file) const {
  ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan.destination_of(file.gpu_id));
  ASSIGN_OR_RETURN(const UniqueFd render, services_.system.open_node(plan.render(gpu_id)));
  auto made = services_.create_sync_file(render.get(), file.name);
  if (!made.ok()) return std::move(made).error().wrap("making a sync file");
  return made;
}

Status Restore::restore_process(Task& current) {
  if (current.kfd) return {};
  const SavedFile& process = *current.process;
  const image::KfdFile& kfd = *process.loaded->kfd();
  ASSIGN_OR_RETURN(const RestorePlan* plan, plan_of(process));
  if (const auto made = shared_files_.find(process.id); made != shared_files_.end()) TRY(made->second);
  if (kfd.own_mount_namespace) TRY(create_shared_files(process));
  // The kernel sees nothing of an image whose contents cannot be there.
  Loader loader(services_, *plan, process);
  TRY(loader.open_contents(*process.loaded));
  ASSIGN_OR_RETURN(UniqueFd fd, services_.system.open_node(plan->kfd(), process.open_flags));
  ASSIGN_OR_RETURN(kfd::RestoreRequest request, make_request(current, *plan, kfd));
  const std::size_t slot = *board_.find(kfd.pid);
  board_.set_progress(slot, Progress::kRestoring);
  services_.kfd.use_abi(abi_of(process));
  const Shared& shared = *shared_.at(process.session_id);
  ASSIGN_OR_RETURN(Taken memories, take_memories(*plan, shared, shared.session.index_of(process.id)));
  for (const auto& [inode, dmabuf] : memories.dmabufs) request.memories.push_back({inode, dmabuf.get()});
  auto restored = services_.kfd.restore(fd.get(), std::move(request));
  memories.dmabufs.clear();
  if (!restored.ok()) {
    std::string what = "giving the kernel back its state";
    if (const std::string holders = restored.error().code() == EBUSY ? plan->holders(services_.system) : "";
        !holders.empty())
      what += " (" + holders + ")";
    return std::move(restored).error().wrap(what);
  }
  ASSIGN_OR_RETURN(current.kfd, current.held.hold(std::move(fd)));
  TRY(remember(current, *plan, *restored));
  const int kfd_fd = current.held.number(*current.kfd);
  TRY(offer_memories(process, kfd_fd, *restored));
  TRY(load_memories(loader, process, kfd_fd, *restored, memories.made));
  memories.made.clear();
  TRY(fill_bos(loader, kfd_fd, process, *restored));
  loader.end();
  TRY(restore_kfd_objects(current, *plan, kfd_fd, *restored));
  current.restored = std::move(restored).value();
  board_.set_progress(slot, Progress::kRestored);
  return {};
}

Result<kfd::RestoreRequest> Restore::make_request(Task& current, const RestorePlan& plan, const image::KfdFile& kfd) {
  kfd::RestoreRequest request;
  request.num_objects = kfd.num_objects;
  request.priv_data = kfd.priv_data;
  for (const kfd::Device& device : kfd.devices) {
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan.destination_of(device.actual_id));
    ASSIGN_OR_RETURN(const HeldFiles::Key render, render_key(current, plan, gpu_id));
    request.devices.push_back({device.user_id, gpu_id, current.held.number(render)});
  }
  for (const image::BoRecord& record : kfd.bos) {
    request.bos.push_back(record.bo);
    request.origins.push_back({record.inode, record.imported});
  }
  return request;
}

Result<HeldFiles::Key> Restore::render_key(Task& current, const RestorePlan& plan, std::uint32_t gpu_id) {
  if (const auto found = current.render.find(gpu_id); found != current.render.end())
    return HeldFiles::Key{found->second};
  ASSIGN_OR_RETURN(UniqueFd fd, services_.system.open_node(plan.render(gpu_id)));
  ASSIGN_OR_RETURN(const HeldFiles::Key key, current.held.hold(std::move(fd)));
  current.render.emplace(gpu_id, key);
  return HeldFiles::Key{key};
}

Status Restore::remember(Task& current, const RestorePlan& plan, const std::vector<kfd::RestoredBo>& restored) {
  const image::KfdFile& kfd = *current.process->loaded->kfd();
  const std::size_t slot = *board_.find(kfd.pid);
  for (const kfd::Device& device : kfd.devices) {
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan.destination_of(device.actual_id));
    current.gpus.push_back({device.actual_id, gpu_id});
  }
  for (std::size_t i = 0; i < kfd.bos.size(); ++i) {
    const kfd::Bo& bo = kfd.bos[i].bo;
    board_.set_offset(slot, i, restored[i].mmap_offset);
    const std::uint32_t source = image::actual_id_of(kfd, bo.user_gpu_id);
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan.destination_of(source));
    auto& bos = kfd::has_contents(bo) ? current.bos : current.kfd_bos;
    if (!kfd::has_contents(bo) && (bo.alloc_flags & kMappedThroughKfd) == 0) continue;  // the process's own memory
    bos.push_back({bo.addr, bo.size, bo.mmap_offset, restored[i].mmap_offset, source, gpu_id});
  }
  return {};
}

Status Restore::fill_bos(Loader& loader, int kfd_fd, const SavedFile& process,
                         std::vector<kfd::RestoredBo>& restored) const {
  const image::KfdFile& kfd = *process.loaded->kfd();
  const sharing::Plan& shared = shared_.at(process.session_id)->session.plan;
  for (std::size_t i = 0; i < kfd.bos.size(); ++i) {
    const image::BoRecord& record = kfd.bos[i];
    if (!image::stores_contents(record) || (record.inode != 0 && shared.find(record.inode))) continue;
    // One at a time: CRIU without CAP_SYS_RESOURCE may not have a descriptor for each.
    ASSIGN_OR_RETURN(const UniqueFd dmabuf, services_.kfd.export_restored(kfd_fd, record.bo, restored[i]));
    TRY(loader.start(*process.loaded, i, image::actual_id_of(kfd, record.bo.user_gpu_id), dmabuf.get(),
                     Loader::name_of(i)));
  }
  return loader.finish();
}

// ---- Descriptors ----

// CRIU continues when a mapping fails, so nothing that follows in this task may succeed.
void Restore::set_failed(const Task& current) {
  const auto slot = current.process == nullptr ? std::nullopt : board_.find(current.process->owner);
  if (slot) board_.set_progress(*slot, Progress::kFailed);
}

Status Restore::settle(Task& current) {
  if (!current.settled) current.settled = settle_files(current);
  return *current.settled;
}

Status Restore::settle_files(Task& current) {
  TRY(restore_process(current));
  TRY(claim_descriptors(current));
  TRY(current.held.settle(current.criu != nullptr, [this](int fd) {
    struct stat status {};
    return os::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) &&
           std::any_of(plans_.begin(), plans_.end(), [&status](const auto& plan) {
             return plan.second.ok() && plan.second->has_device(status.st_rdev);
           });
  }));
  const image::KfdFile& kfd = *current.process->loaded->kfd();
  const std::size_t slot = *board_.find(kfd.pid);
  for (std::size_t i = 0; i < kfd.devices.size(); ++i) {
    const auto render = current.render.find(current.gpus[i].destination_gpu);
    if (render != current.render.end()) board_.set_descriptor(slot, i, current.held.number(render->second));
  }
  board_.set_progress(slot, Progress::kSettled);
  return {};
}

// CRIU calls a process that maps nothing of its GPUs for its files and never again: its last file is the last moment. A
// file that CRIU has asked another process for stays a stand-in, so such a process is not settled.
void Restore::settle_without_mapping(Task& current) {
  if (current.criu == nullptr || !current.kfd || has_plugin_mapping(*current.criu)) return;
  for (const ExternalFd& fd : current.criu->files) {
    const SavedFile* file = find_saved(fd.file_id);
    if (file == nullptr || current.asked.contains(file->id)) continue;
    if (file->owner == current.process->owner) return;
    // It exports DMA-bufs through its /dev/kfd.
    if (file->kind == image::Kind::kDmabuf && asked_task(file->id) == current.process->owner) return;
  }
  current.held.release_all_but(std::nullopt);
  if (const auto slot = board_.find(current.process->owner); board_.progress(*slot) == Progress::kRestored)
    board_.set_progress(*slot, Progress::kSettled);
}

// Finds out which of the program's descriptors are of which file of this task.
Status Restore::claim_descriptors(Task& current) {
  if (current.criu == nullptr) return {};
  ASSIGN_OR_RETURN(const RestorePlan* plan, plan_of(*current.process));
  for (const ExternalFd& fd : current.criu->files) {
    const SavedFile* file = find_saved(fd.file_id);
    if (file == nullptr || file->owner != current.process->owner) continue;
    if (file->kind == image::Kind::kKfd) {
      current.held.claim(*current.kfd, fd);
    } else if (file->kind == image::Kind::kRender) {
      ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan->destination_of(file->loaded->render()->gpu_id));
      ASSIGN_OR_RETURN(const HeldFiles::Key key, render_key(current, *plan, gpu_id));
      current.held.claim(key, fd);
    } else if (file->kind == image::Kind::kSecond && !current.asked.contains(file->id)) {
      auto found = current.second.find(file->id);
      if (found == current.second.end()) {
        ASSIGN_OR_RETURN(UniqueFd second, services_.system.open_node(plan->kfd(), file->open_flags));
        ASSIGN_OR_RETURN(const HeldFiles::Key key, current.held.hold(std::move(second)));
        found = current.second.emplace(file->id, key).first;
      }
      current.held.claim(found->second, fd);
    }
  }
  return {};
}

// ---- In CRIU's main process, when the tree stands ----

Result<Claim> Restore::resume(pid_t pid) {
  // All names and memories are made and taken. Without --restore-detached CRIU now lives as long as the program.
  locks_.clear();
  if (!is_complete_) release_memories();
  is_complete_ = true;
  if (pid <= 0 || files_.empty()) return Claim::kNotMine;
  ASSIGN_OR_RETURN(const auto pids, services_.system.namespace_pids(pid));
  const auto slot = pids.empty() ? std::nullopt : board_.find(pids.back());
  if (!slot) return Claim::kNotMine;
  const std::string process = "process " + std::to_string(pid);
  const Progress progress = board_.progress(*slot);
  if (progress == Progress::kNothing) {
    // Without CRIU's images the file may be of another dump, and this a process that never had a GPU.
    if (!criu_) return Claim::kNotMine;
    return Error(ESRCH,
                 process + ": its GPU state was not restored, because CRIU asked it for no device file or mapping");
  }
  if (progress == Progress::kRestoring || progress == Progress::kFailed)
    return Error(EIO, process + ": its GPU state is incomplete");
  // Without CRIU's images only a mapping settles a process, and it may have none.
  if (criu_ && progress != Progress::kSettled)
    return Error(EIO, process +
                          ": its device files are not in their places, because CRIU did not ask it for its "
                          "mappings, or asked another process for a file");
  if (const SavedFile* saved = process_of(pids.back()))
    if (auto status = require_loaded(*saved); !status.ok()) return std::move(status).error().wrap(process);
  ASSIGN_OR_RETURN(const std::uint64_t filled, services_.system.fill_missing_memory(pid));
  if (filled != 0)
    services_.criu.warn(process + ": loaded " + std::to_string(filled >> 20) +
                        " MiB that were to come later (--lazy-pages), because GPUs cannot wait for memory");
  ASSIGN_OR_RETURN(const UniqueFd fd, services_.system.open_kfd());
  if (const SavedFile* saved = process_of(pids.back())) services_.kfd.use_abi(abi_of(*saved));
  auto status = services_.kfd.resume(fd.get(), pid);
  if (!status.ok() && status.error().code() == ETIME) {
    services_.criu.warn(process + ": its GPU queues run later, the kernel is still preparing its memory");
    return Claim::kMine;
  }
  if (status.ok()) return Claim::kMine;
  return std::move(status).error().wrap(process + ": resuming its GPU queues");
}

}  // namespace plugin
