// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. Read prepare(), save() and finish() top to bottom.
#include "plugin/dump.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/os.h"
#include "base/text_file.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

// What the released ABI leaves out can neither be saved nor seen.
constexpr std::string_view kNotDescribed =
    "this kernel's KFD does not describe trap handlers, the state of AMDKFD_IOC_RUNTIME_ENABLE, memory policies and "
    "ages of events: a restored program has those of a new one";

image::Abi image_abi(kfd::Abi abi) {
  return abi == kfd::Abi::kExtensible ? image::Abi::kExtensible : image::Abi::kReleased;
}

// O_NONBLOCK or nothing; what else a file was opened with is the same for all device files, or is lost by CRIU too.
Result<std::uint32_t> open_flags_of(int fd) {
  const int flags = os::fcntl(fd, F_GETFL);
  if (flags < 0) return Error::from_errno(errno, "F_GETFL");
  return static_cast<std::uint32_t>(flags & O_NONBLOCK);
}

Result<bool> is_read_only(int fd) {
  const int flags = os::fcntl(fd, F_GETFL);
  if (flags < 0) return Error::from_errno(errno, "F_GETFL");
  return (flags & O_ACCMODE) == O_RDONLY;
}

}  // namespace

Result<Claim> Dump::handle_vma(const struct stat& status) {
  ASSIGN_OR_RETURN(const DeviceFile device, services_.system.identify(status));
  if (device.kind == DeviceKind::kNotOurs) return Claim::kNotMine;
  TRY(begin());
  return Claim::kMine;
}

Result<Claim> Dump::dump_file(int fd, std::uint32_t id) {
  struct stat status {};
  if (os::fstat(fd, &status) != 0) return Error::from_errno(errno, "fstat of the program's file");
  ASSIGN_OR_RETURN(const DeviceFile device, services_.system.identify(status));
  if (device.kind == DeviceKind::kNotOurs) {
    ASSIGN_OR_RETURN(const bool may_be_ours, is_dmabuf_or_sync_file(fd));
    if (!may_be_ours) return Claim::kNotMine;
    ASSIGN_OR_RETURN(const bool uses_gpus, programs_use_gpus());
    if (!uses_gpus) return Claim::kNotMine;
  }
  TRY(begin());
  auto saved = save(fd, id);
  if (saved.ok()) return Claim::kMine;
  state_ = State::kFailed;
  return std::move(saved).error();
}

Result<bool> Dump::is_dmabuf_or_sync_file(int fd) const {
  ASSIGN_OR_RETURN(const auto dmabuf, services_.find_dmabuf(fd));
  if (dmabuf) return true;
  ASSIGN_OR_RETURN(const auto file, services_.find_sync_file(fd));
  return file.has_value();
}

// DMA-bufs and sync files are also of other drivers. Without a GPU of ours, CRIU and its other plugins decide about
// them as without this plugin. The programs stand, so the answer stays what it is.
Result<bool> Dump::programs_use_gpus() {
  if (state_ != State::kIdle) return true;
  if (!uses_gpus_) {
    ASSIGN_OR_RETURN(const Tree tree, scan_tree(services_.system));
    uses_gpus_ = std::any_of(tree.files.begin(), tree.files.end(), [](const OpenFile& file) {
      return file.device.kind == DeviceKind::kKfd || file.device.kind == DeviceKind::kRender;
    });
  }
  return bool{*uses_gpus_};
}

Status Dump::begin() {
  if (state_ == State::kSaving) return {};
  if (state_ != State::kIdle) return Error(ECANCELED, "the dump has failed before");
  // If this fails, CRIU ends the dump and calls finish().
  state_ = State::kFailed;
  TRY(prepare());
  state_ = State::kSaving;
  return {};
}

Status Dump::prepare() {
  TRY(services_.options_status);
  TRY(preflight::refuse_streaming(services_.criu));
  TRY(preflight::refuse_lazy_pages(services_.criu));
  ASSIGN_OR_RETURN(tree_, scan_tree(services_.system));
  ASSIGN_OR_RETURN(nodes_, services_.system.topology());
  TRY(preflight::refuse_dmabufs(services_, tree_));
  TRY(preflight::refuse_unknown_gpus(tree_, nodes_));
  ASSIGN_OR_RETURN(found_, render_objects::read(services_, tree_));
  ASSIGN_OR_RETURN(lists_objects_, render_objects::are_listed(services_, tree_));
  TRY(preflight::refuse_render_holders(services_, tree_,
                                       [this](std::size_t file) { return found_[file].has_value(); }));
  TRY(preflight::refuse_sync_files(services_, tree_));
  roles_.resize(tree_.files.size());
  TRY(choose_abi());
  // It may take long, so it comes before the pause.
  TRY(read_earlier());
  TRY(pause_all());
  TRY(choose_files());
  TRY(preflight::refuse_unreachable(services_.system, tree_, processes_));
  TRY(read_states());
  TRY(check_processes());
  // What processes share of KFD's memory does not tell which of their files KFD uses.
  ASSIGN_OR_RETURN(sharing_, preflight::plan_sharing(tree_, processes_, abi_, {}));
  TRY(bind_render_files());
  TRY(take_kfd_objects());
  TRY(check_memory());
  TRY(preflight::refuse_lost_mappings(
      tree_, processes_, nodes_,
      [this](const Process& process, std::uint32_t minor) { return keeps_render_file(process, minor); },
      [this](std::size_t task, const auto& mapping) {
        return render_objects::is_of_object(tree_, found_, task, mapping);
      }));
  TRY(refuse_owners_without_hook());
  return start_image();
}

Status Dump::choose_abi() {
  const bool uses_kfd = std::any_of(tree_.files.begin(), tree_.files.end(),
                                    [](const OpenFile& file) { return file.device.kind == DeviceKind::kKfd; });
  if (!uses_kfd) return {};
  // Asked of a file of our own: KFD answers a tracer on the program's file only for checkpoint operations.
  ASSIGN_OR_RETURN(const UniqueFd own, services_.system.open_kfd());
  ASSIGN_OR_RETURN(const kfd::Version version, services_.kfd.version(own.get()));
  TRY(preflight::refuse_old_kfd(version));
  ASSIGN_OR_RETURN(abi_, services_.kfd.choose_abi(own.get()));
  services_.criu.inform(abi_ == kfd::Abi::kExtensible ? "KFD has the extensible ABI" : "KFD has the released ABI");
  if (abi_ == kfd::Abi::kReleased) services_.criu.warn(kNotDescribed);
  return {};
}

Status Dump::pause_all() {
  paused_since_ = Clock::now();
  std::optional<Clock::time_point> first;
  for (std::size_t i = 0; i < tree_.files.size(); ++i) {
    const OpenFile& file = tree_.files[i];
    if (file.device.kind != DeviceKind::kKfd) continue;
    // Directly before the pause: it ends the one that another file of the same process got. Old kernels would evict the
    // queues a second time, and one UNPAUSE would not let them run.
    auto is_traced = services_.kfd.is_traced(file.fd.get());
    if (!is_traced.ok()) return std::move(is_traced).error().wrap(tree_.name_of(file));
    // False: not of a process of the tree, but inherited from a program that must not be paused.
    if (!*is_traced) continue;
    if (auto status = pause(i); !status.ok()) return std::move(status).error().wrap(tree_.name_of(file));
    if (!first) first = Clock::now();
  }
  const auto now = Clock::now();
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(now - first.value_or(now));
  services_.criu.inform("paused " + std::to_string(processes_.size()) + " processes within " +
                        std::to_string(time.count()) + " us of each other");
  return {};
}

Status Dump::pause(std::size_t file) {
  const int fd = tree_.files[file].fd.get();
  ASSIGN_OR_RETURN(kfd::Pause pause, lists_objects_ ? services_.kfd.pause_with_objects(fd) : services_.kfd.pause(fd));
  const std::uint32_t pid = pause.info.pid;
  roles_[file].owner = pid;
  for (const Process& process : processes_)
    if (process.pid == pid) return {};
  processes_.push_back({.pid = pid, .task = 0, .file = file, .pause = std::move(pause), .state = {}});
  return {};
}

Status Dump::read_states() {
  std::uint64_t count = 0;
  for (const Process& process : processes_) count += process.pause.info.num_bos;  // 0 with the extensible ABI
  if (count != 0) preflight::reserve_descriptors(count);
  for (Process& process : processes_) {
    auto state = services_.kfd.checkpoint(fd_of(process), process.pause);
    if (!state.ok() && (state.error().code() == EMFILE || state.error().code() == ENFILE) && count != 0)
      return preflight::too_many_descriptors(tree_, process, count);
    if (!state.ok()) return std::move(state).error().wrap(name_of(process));
    process.state = std::move(state).value();
  }
  return {};
}

Status Dump::check_processes() const {
  for (const Process& process : processes_) {
    TRY(preflight::refuse_too_many_gpus(tree_, process, abi_));
    TRY(preflight::refuse_empty_bos(tree_, process));
    TRY(preflight::refuse_hidden_gpus(tree_, process, nodes_));
  }
  return {};
}

Status Dump::check_memory() {
  const render_objects::KfdMemories of_kfd = preflight::memories_of_kfd(processes_);
  if (abi_ == kfd::Abi::kReleased) TRY(render_objects::refuse_shared_with_kfd(tree_, found_, of_kfd));
  TRY(render_objects::find_makers(tree_, found_, of_kfd));
  ASSIGN_OR_RETURN(sharing_, preflight::plan_sharing(tree_, processes_, abi_, sharers_with_objects()));
  TRY(read_foreign_memories());
  ASSIGN_OR_RETURN(lost_, preflight::lost_dmabufs(services_, tree_, processes_, nodes_, found_, abi_));
  const std::uint64_t bytes = bytes_to_save();
  meter_.emplace(services_.criu, "GPU memory", bytes);
  TRY(preflight::refuse_unpassable_memory(services_, tree_, processes_, sharing_, [this](std::size_t index) {
    return index < processes_.size() ? name_of(processes_[index])
                                     : tree_.name_of(tree_.files[files_with_objects()[index - processes_.size()]]);
  }));
  TRY(preflight::refuse_outside_gem_holders(services_, tree_, found_, of_kfd));
  TRY(preflight::refuse_foreign_mappings(tree_, processes_, nodes_, [this](std::size_t task, const auto& mapping) {
    return render_objects::is_of_object(tree_, found_, task, mapping);
  }));
  ASSIGN_OR_RETURN(const std::uint64_t space, image::SessionWriter::free_space(services_.criu.image_dir()));
  services_.criu.warn(preflight::warn_of_space(bytes, space));
  return preflight::refuse_outside_holders(services_, tree_, processes_, nodes_, found_, handles_of_kfd_);
}

Status Dump::bind_render_files() {
  std::map<std::size_t, std::vector<const Process*>> undecided;  // by file
  for (std::size_t i = 0; i < tree_.files.size(); ++i) {
    const OpenFile& file = tree_.files[i];
    if (file.device.kind == DeviceKind::kDmabuf) roles_[i].kind = image::Kind::kDmabuf;
    if (file.device.kind == DeviceKind::kSyncFile) roles_[i].kind = image::Kind::kSyncFile;
    if (file.device.kind != DeviceKind::kRender) continue;
    roles_[i].kind = image::Kind::kRender;
    auto found = look_at_binding(file, roles_[i]);
    if (!found.ok()) return std::move(found).error().wrap(tree_.name_of(file));
    undecided[i] = std::move(found).value();
  }
  for (auto& [i, processes] : undecided) {
    const OpenFile& file = tree_.files[i];
    if (roles_[i].binding == image::Binding::kKfd) continue;
    // KFD uses one file of a GPU for a process.
    std::erase_if(processes, [&](const Process* each) { return has_bound_file(*each, file.device.minor); });
    if (auto status = bind_undecided(file, roles_[i], processes); !status.ok())
      return std::move(status).error().wrap(tree_.name_of(file));
  }
  return {};
}

Result<std::vector<const Dump::Process*>> Dump::look_at_binding(const OpenFile& file, Role& role) {
  std::vector<const Process*> undecided;
  for (const Process& process : processes_) {
    ASSIGN_OR_RETURN(const std::optional<bool> is_bound, is_bound_to(file, process));
    if (is_bound.value_or(false)) {
      role.owner = process.pid;
      role.binding = image::Binding::kKfd;
      return std::vector<const Process*>();
    }
    const auto& holders = file.holders;
    if (!is_bound &&
        std::any_of(holders.begin(), holders.end(), [&](const Holder& each) { return each.task == process.task; }))
      undecided.push_back(&process);
  }
  return undecided;
}

// A process has acquired this GPU, and has no memory on it that tells the files apart: none, or only memory that other
// processes, or this file, have too. KFD took the VM of one of its files; it can only be this one if the process has no
// other of this GPU.
Status Dump::bind_undecided(const OpenFile& file, Role& role, const std::vector<const Process*>& undecided) const {
  role.binding = image::Binding::kOther;
  if (undecided.empty()) return {};
  const Process& process = *undecided.front();
  const auto is_candidate = [&](const OpenFile& each) {
    return each.device.kind == DeviceKind::kRender && each.device.minor == file.device.minor &&
           std::any_of(each.holders.begin(), each.holders.end(),
                       [&](const Holder& holder) { return holder.task == process.task; });
  };
  if (undecided.size() > 1 || std::count_if(tree_.files.begin(), tree_.files.end(), is_candidate) != 1)
    return Error(EOPNOTSUPP,
                 "the program has several open files of this GPU, and no memory on it that only the file has which KFD "
                 "uses, so it is unknown which one that is; a program that allocates memory there can be saved");
  role.owner = process.pid;
  role.binding = image::Binding::kKfd;
  return {};
}

// Whether another file of this render node is known to be the one that KFD uses for the process.
bool Dump::has_bound_file(const Process& process, std::uint32_t minor) const {
  for (std::size_t i = 0; i < tree_.files.size(); ++i)
    if (tree_.files[i].device.kind == DeviceKind::kRender && tree_.files[i].device.minor == minor &&
        roles_[i].binding == image::Binding::kKfd && roles_[i].owner == process.pid)
      return true;
  return false;
}

bool Dump::keeps_render_file(const Process& process, std::uint32_t minor) const {
  for (std::size_t i = 0; i < tree_.files.size(); ++i) {
    const OpenFile& file = tree_.files[i];
    if (file.device.kind != DeviceKind::kRender || file.device.minor != minor || roles_[i].owner != process.pid)
      continue;
    if (std::any_of(file.holders.begin(), file.holders.end(),
                    [&](const Holder& each) { return each.task == process.task; }))
      return true;
  }
  return false;
}

// Nothing when it cannot be known: the process has the GPU, but no BO there that could be mapped.
Result<std::optional<bool>> Dump::is_bound_to(const OpenFile& file, const Process& process) {
  const auto& found = found_[static_cast<std::size_t>(&file - tree_.files.data())];
  const auto has_handle = [&found](std::uint64_t inode) {
    return found && inode != 0 && std::any_of(found->bos.begin(), found->bos.end(), [inode](const image::BoRecord& bo) {
             return bo.inode == inode;
           });
  };
  const topology::Node* gpu = topology::find_render_minor(nodes_, file.device.minor);
  const auto& devices = process.state.devices;
  if (std::none_of(devices.begin(), devices.end(),
                   [&](const kfd::Device& device) { return device.actual_id == gpu->gpu_id; }))
    return std::optional<bool>(false);
  for (const kfd::CheckpointedBo& each : process.state.bos) {
    if (!kfd::has_contents(each.bo) || preflight::gpu_of(nodes_, process.state, each.bo.user_gpu_id) != gpu) continue;
    // The files of all processes that have it may map it, and so may any file that has a GEM handle of it.
    if (sharing_.find(each.inode) || has_handle(each.inode)) continue;
    ASSIGN_OR_RETURN(const std::optional<bool> may_map, services_.render.may_map(file.fd.get(), each.bo.mmap_offset));
    if (may_map) return may_map;
  }
  return std::optional<bool>();
}

Status Dump::save(int fd, std::uint32_t id) {
  ASSIGN_OR_RETURN(const OpenFile* found, tree_.find(fd));
  if (found == nullptr)
    return Error(ESRCH,
                 "CRIU saves a device file, DMA-buf or sync file that no program has open which this thread traces: "
                 "either it is on its way through a socket (SCM_RIGHTS), and a program must receive it before the "
                 "dump, or /proc is that of another pid namespace");
  const OpenFile& file = *found;
  const auto index = static_cast<std::size_t>(found - tree_.files.data());
  Role& role = roles_[index];
  const std::string name = tree_.name_of(file);
  if (role.saved) return Error(EEXIST, name + ": CRIU saves it twice");
  auto flags = open_flags_of(file.fd.get());
  if (!flags.ok()) return std::move(flags).error().wrap(name);
  image::File out;
  out.id = id;
  switch (role.kind) {
    case image::Kind::kKfd: {
      TRY(save_contents());
      auto saved = save_process(processes_[*role.process], id);
      if (!saved.ok()) return std::move(saved).error().wrap(name);
      saved->open_flags = *flags;
      out.contents = std::move(saved).value();
      break;
    }
    case image::Kind::kSecond:
      out.contents = image::SecondFile{role.owner, *flags};
      break;
    case image::Kind::kInert:
      out.contents = image::InertFile{role.owner, *flags};
      break;
    case image::Kind::kRender: {
      auto saved = save_render(index, id, *flags);
      if (!saved.ok()) return std::move(saved).error().wrap(name);
      out.contents = std::move(saved).value();
      break;
    }
    case image::Kind::kDmabuf: {
      ASSIGN_OR_RETURN(const auto dmabuf, services_.find_dmabuf(file.fd.get()));
      if (!dmabuf) return Error(EPROTO, name + ": procfs does not say of which DMA-buf it is");
      ASSIGN_OR_RETURN(const bool read_only, is_read_only(file.fd.get()));
      image::DmabufFile saved{dmabuf->inode, dmabuf->size, dmabuf->name, *flags, read_only};
      if (const auto lost = lost_.find(index); lost != lost_.end())
        if (auto status = save_lost(lost->second, file, writer_->file(id), saved); !status.ok())
          return std::move(status).error().wrap(name);
      out.contents = std::move(saved);
      break;
    }
    case image::Kind::kSyncFile: {
      ASSIGN_OR_RETURN(const auto info, services_.find_sync_file(file.fd.get()));
      if (!info) return Error(EPROTO, name + ": procfs does not say that it is a sync file");
      out.contents = image::SyncFile{first_gpu(), info->name, *flags};
      break;
    }
  }
  TRY(writer_->add(std::move(out)));
  role.saved = true;
  services_.criu.inform("saved " + name);
  return saved_all() ? finish_image() : Status();
}

bool Dump::saved_all() const {
  return std::all_of(roles_.begin(), roles_.end(), [](const Role& role) { return role.saved; });
}

// Everything but the rename that commits: what can fail slowly or for want of space is done while CRIU can still fail.
Status Dump::finish_image() {
  image::Session session;
  session.abi = image_abi(abi_);
  ASSIGN_OR_RETURN(session.kernel_release, base::read_text(services_.system.roots().proc + "/sys/kernel/osrelease"));
  if (session.kernel_release.ends_with('\n')) session.kernel_release.pop_back();
  std::set<std::uint32_t> gpus;
  for (const Process& process : processes_) {
    session.processes.push_back({process.pid, tree_.tasks[process.task].comm});
    for (const kfd::Device& device : process.state.devices) gpus.insert(device.actual_id);
  }
  for (const OpenFile& file : tree_.files)
    if (file.device.kind == DeviceKind::kRender)
      gpus.insert(topology::find_render_minor(nodes_, file.device.minor)->gpu_id);
  for (const auto& [file, memory] : lost_) gpus.insert(memory.gpu->gpu_id);
  session.nodes = topology::select(nodes_, {gpus.begin(), gpus.end()});
  return writer_->prepare(std::move(session), [this] { return timing(); });
}

Dump::End Dump::finish(int result) {
  End end;
  if (state_ == State::kIdle || state_ == State::kOver) return end;
  if (result == 0) {
    auto status = commit();
    if (status.ok()) {
      tell_timing();
      release_pauses();
      end.committed = true;
    } else {
      end.errors.push_back(std::move(status).error());
      end.must_end_criu = true;
    }
  }
  if (result != 0 || end.must_end_criu) {
    if (writer_ != nullptr)
      if (auto status = writer_->discard(); !status.ok()) end.errors.push_back(std::move(status).error());
    unpause_all(end.errors);
  }
  writer_.reset();
  processes_.clear();
  saved_.clear();
  tree_ = Tree();
  found_.clear();
  lost_.clear();
  state_ = State::kOver;
  return end;
}

Status Dump::commit() {
  if (state_ != State::kSaving) return Error(ECANCELED, "CRIU has ignored that the dump failed");
  for (std::size_t i = 0; i < roles_.size(); ++i)
    if (!roles_[i].saved) return Error(ENODATA, tree_.name_of(tree_.files[i]) + ": CRIU did not save this file");
  TRY(preflight::refuse_missing_pages(services_.criu, tree_));
  for (Process& process : processes_)
    if (auto status = services_.kfd.confirm(fd_of(process), process.pause); !status.ok())
      return std::move(status).error().wrap(name_of(process) + ": what was saved is not its state");
  TRY(render_objects::confirm(services_, tree_, found_));
  for (const auto& [file, memory] : lost_)
    if (auto status = dmabuf_memory::confirm(services_, memory); !status.ok())
      return std::move(status).error().wrap(tree_.name_of(tree_.files[file]));
  TRY(writer_->commit());
  if (abi_ == kfd::Abi::kExtensible) return {};
  // The released ABI has no pause that ends with CRIU, so the queues run from here until CRIU kills the program.
  for (Process& process : processes_) {
    auto status = services_.kfd.unpause(fd_of(process), process.pause);
    // EINVAL: the pause was over before. ENOTRECOVERABLE: something was reset during it.
    if (!status.ok() && (status.error().code() == ENOTRECOVERABLE || status.error().code() == EINVAL))
      return std::move(status).error().wrap(name_of(process) + ": what was saved is not its state");
    if (!status.ok()) services_.criu.warn(name_of(process) + ": " + status.error().message());
  }
  return {};
}

// Extensible ABI: the pauses end when CRIU has killed the programs and exits, or, with --leave-running, just exits.
void Dump::release_pauses() {
  for (Process& process : processes_) (void)process.pause.file.release();
}

void Dump::unpause_all(std::vector<Error>& errors) {
  for (Process& process : processes_) {
    auto status = services_.kfd.unpause(fd_of(process), process.pause);
    // EINVAL: a pause that has ended already. ENOTRECOVERABLE: it has ended, and a reset no longer matters.
    if (status.ok() || status.error().code() == EINVAL || status.error().code() == ENOTRECOVERABLE) continue;
    errors.push_back(
        std::move(status).error().wrap(name_of(process) + ": its GPU queues may stay paused; if so, it must be ended"));
  }
}

}  // namespace plugin
