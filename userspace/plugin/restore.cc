// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. Read restore_file() and restore_kfd() top to bottom.
#include "plugin/restore.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <string_view>

#include "base/os.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

// park() takes one of so many descriptor numbers above the program's; CRIU's own files follow.
constexpr int kParkRoom = 16;

std::uint32_t actual_id_of(const image::KfdFile& kfd, std::uint32_t user_id) {
  for (const kfd::Device& device : kfd.devices)
    if (device.user_id == user_id) return device.actual_id;
  return 0;  // validate() has excluded it
}

// The GPUs that an image's file needs.
std::vector<std::uint32_t> gpus_of(const image::Loaded& loaded) {
  std::vector<std::uint32_t> ids;
  if (const auto* kfd = loaded.kfd()) {
    for (const kfd::Device& device : kfd->devices) ids.push_back(device.actual_id);
  } else if (const auto* render = loaded.render()) {
    ids.push_back(render->gpu_id);
  }
  return ids;
}

Status fill_bo(copy::Copier& copier, const image::Contents& contents, std::size_t bo, std::uint64_t size, int dmabuf) {
  image::BoReader reader(contents, bo);
  auto outcome = copier.write(dmabuf, size, [&reader](std::span<std::byte> slice) { return reader.read(slice); });
  if (!outcome.ok()) return std::move(outcome).error().error;
  return {};
}

}  // namespace

Status Restore::prepare() {
  ASSIGN_OR_RETURN(const image::Catalogue* images, catalogue());
  // A damaged image is refused when CRIU asks for it; it may be a left-over that nobody asks for.
  for (const image::Loaded* loaded : images->intact()) {
    const image::KfdFile* kfd = loaded->kfd();
    if (kfd == nullptr || kfd->own_mount_namespace) continue;
    for (const image::SharedFile& file : kfd->shared_files) TRY(parts_.system.create_shared_file(file));
  }
  return {};
}

Result<const image::Catalogue*> Restore::catalogue() {
  if (!catalogue_) {
    ASSIGN_OR_RETURN(catalogue_, image::Catalogue::read(parts_.criu.image_dir()));
  }
  return &*catalogue_;
}

Result<std::optional<int>> Restore::restore_file(std::uint32_t id) {
  ASSIGN_OR_RETURN(const image::Catalogue* images, catalogue());
  ASSIGN_OR_RETURN(const image::Loaded* loaded, images->find(id));
  if (loaded == nullptr) return std::optional<int>();
  if (loaded->kfd() == nullptr && loaded->render() == nullptr)
    return Error(ENOTSUP, image::metadata_name(id) + ": is of a kind that this plugin cannot restore");
  UniqueFd fd;
  if (const auto* render = loaded->render()) {
    ASSIGN_OR_RETURN(const Plan* plan, plan_for(loaded->session()));
    ASSIGN_OR_RETURN(fd, restore_render(*plan, *render));
  } else {
    ASSIGN_OR_RETURN(const image::Contents contents, image::open_contents(parts_.criu.image_dir(), *loaded));
    ASSIGN_OR_RETURN(const Plan* plan, plan_for(loaded->session()));
    ASSIGN_OR_RETURN(fd, restore_kfd(*plan, *loaded->kfd(), contents));
  }
  return std::optional<int>(fd.release());
}

Result<const Restore::Plan*> Restore::plan_for(const image::Session& session) {
  if (plan_ && plan_->session == &session) return &*plan_;
  Plan plan;
  plan.session = &session;
  TRY(collect_sources(plan));
  ASSIGN_OR_RETURN(plan.destination, parts_.system.topology());
  std::set<std::uint32_t> usable;
  for (const topology::Node& node : plan.destination)
    if (node.gpu_id != 0 && parts_.system.open_render(node.render_minor()).ok()) usable.insert(node.gpu_id);
  const topology::MatchPolicy policy{parts_.options.check_firmware, parts_.options.gpu_map};
  ASSIGN_OR_RETURN(plan.gpus, topology::match(plan.source, plan.destination, usable, policy));
  plan_ = std::move(plan);
  return &*plan_;
}

Status Restore::collect_sources(Plan& plan) {
  ASSIGN_OR_RETURN(const image::Catalogue* images, catalogue());
  for (const image::Loaded* loaded : images->files_of(*plan.session)) {
    for (const std::uint32_t gpu_id : gpus_of(*loaded)) {
      if (topology::find_gpu(plan.source, gpu_id) == nullptr)
        plan.source.push_back(*topology::find_gpu(plan.session->nodes, gpu_id));
    }
  }
  return {};
}

Result<const topology::Node*> Restore::destination_of(const Plan& plan, std::uint32_t source_gpu) {
  const auto found = plan.gpus.find(source_gpu);
  const topology::Node* node = found == plan.gpus.end() ? nullptr : topology::find_gpu(plan.destination, found->second);
  if (node == nullptr)
    return Error(EINVAL, "no GPU was chosen for GPU " + std::to_string(source_gpu) + " of the image");
  return node;
}

Result<UniqueFd> Restore::restore_render(const Plan& plan, const image::RenderFile& render) {
  ASSIGN_OR_RETURN(const topology::Node* gpu, destination_of(plan, render.gpu_id));
  if (render.binding == image::Binding::kOther)
    return parts_.system.open_render(gpu->render_minor(), static_cast<int>(render.open_flags & O_NONBLOCK));
  // The program maps BOs through this file, and the kernel lets it only through the one that KFD was given.
  ASSIGN_OR_RETURN(const int shared, kfd_render_fd(*gpu));
  UniqueFd fd(os::fcntl(shared, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return Error::from_errno(errno, "duplicating a render node");
  if ((render.open_flags & O_NONBLOCK) != 0) (void)os::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd;
}

Result<UniqueFd> Restore::restore_kfd(const Plan& plan, const image::KfdFile& kfd, const image::Contents& contents) {
  if (kfd.own_mount_namespace)
    for (const image::SharedFile& file : kfd.shared_files) TRY(parts_.system.create_shared_file(file));
  ASSIGN_OR_RETURN(UniqueFd fd, parts_.system.open_kfd());
  ASSIGN_OR_RETURN(kfd::RestoreRequest request, make_request(plan, kfd));
  auto restored = parts_.kfd.restore(fd.get(), std::move(request));
  if (!restored.ok()) return std::move(restored).error().wrap("giving the kernel back its state");
  TRY(remember(plan, kfd, *restored));
  TRY(fill_bos(plan, kfd, contents, std::move(restored).value()));
  return fd;
}

Result<kfd::RestoreRequest> Restore::make_request(const Plan& plan, const image::KfdFile& kfd) {
  kfd::RestoreRequest request;
  request.num_objects = kfd.num_objects;
  request.priv_data = kfd.priv_data;
  for (const kfd::Device& device : kfd.devices) {
    ASSIGN_OR_RETURN(const topology::Node* gpu, destination_of(plan, device.actual_id));
    ASSIGN_OR_RETURN(const int render, kfd_render_fd(*gpu));
    request.devices.push_back({device.user_id, gpu->gpu_id, render});
  }
  for (const image::BoRecord& record : kfd.bos) request.bos.push_back(record.bo);
  return request;
}

Status Restore::remember(const Plan& plan, const image::KfdFile& kfd, const std::vector<kfd::RestoredBo>& restored) {
  Task& current = task();
  for (const kfd::Device& device : kfd.devices) {
    ASSIGN_OR_RETURN(const topology::Node* gpu, destination_of(plan, device.actual_id));
    current.gpus.push_back({device.actual_id, gpu->gpu_id});
  }
  for (std::size_t i = 0; i < kfd.bos.size(); ++i) {
    const kfd::Bo& bo = kfd.bos[i].bo;
    if (!kfd::has_contents(bo)) continue;  // mapped through /dev/kfd or not at all
    const std::uint32_t source = actual_id_of(kfd, bo.user_gpu_id);
    ASSIGN_OR_RETURN(const topology::Node* gpu, destination_of(plan, source));
    current.bos.push_back({bo.addr, bo.size, bo.mmap_offset, restored[i].mmap_offset, source, gpu->gpu_id});
  }
  return {};
}

Status Restore::fill_bos(const Plan& plan, const image::KfdFile& kfd, const image::Contents& contents,
                         std::vector<kfd::RestoredBo> restored) {
  std::map<std::uint32_t, std::unique_ptr<copy::Copier>> copiers;  // by destination gpu_id
  for (std::size_t i = 0; i < kfd.bos.size(); ++i) {
    const image::BoRecord& record = kfd.bos[i];
    if (!image::stores_contents(record)) continue;
    ASSIGN_OR_RETURN(const topology::Node* gpu, destination_of(plan, actual_id_of(kfd, record.bo.user_gpu_id)));
    auto& copier = copiers[gpu->gpu_id];
    if (copier == nullptr) {
      // A file of its own: the copier's VM must not be the program's.
      ASSIGN_OR_RETURN(const UniqueFd render, parts_.system.open_render(gpu->render_minor()));
      ASSIGN_OR_RETURN(copier, parts_.make_copier(render.get(), parts_.options));
    }
    const UniqueFd dmabuf = std::move(restored[i].dmabuf);
    if (auto status = fill_bo(*copier, contents, i, record.bo.size, dmabuf.get()); !status.ok())
      return std::move(status).error().wrap("contents of BO " + std::to_string(i));
  }
  return {};
}

Result<int> Restore::kfd_render_fd(const topology::Node& gpu) {
  RenderFd& render = task().render[gpu.gpu_id];
  if (render.number >= 0) return int{render.number};
  ASSIGN_OR_RETURN(UniqueFd fd, parts_.system.open_render(gpu.render_minor()));
  render.parked = park(std::move(fd));
  render.number = render.parked.get();
  return int{render.number};
}

UniqueFd Restore::park(UniqueFd fd) const {
  // Everything below is or will be the program's; CRIU's own files are far above.
  const int lowest = parts_.criu.unused_fd();
  if (lowest < 0) return fd;
  UniqueFd copy(os::fcntl(fd.get(), F_DUPFD_CLOEXEC, lowest));
  if (copy.get() < lowest || copy.get() >= lowest + kParkRoom) return fd;
  return copy;
}

void Restore::settle(Task& current) const {
  if (current.settled) return;
  current.settled = true;
  for (auto& [gpu_id, render] : current.render) {
    const auto own = parts_.system.find_duplicate(render.parked.get());
    if (!own) continue;  // the program had no render node of this GPU open: ours must stay for the mappings to come
    render.number = *own;
    render.parked.reset();
  }
}

Restore::Task& Restore::task() { return tasks_[os::getpid()]; }

Result<std::optional<VmaAnswer>> Restore::update_vma(std::string_view path, std::uint64_t addr, std::uint64_t offset) {
  const DeviceFile device = parts_.system.identify_path(path);
  Task& current = task();
  if (device.kind == DeviceKind::kNotOurs || current.gpus.empty()) return std::optional<VmaAnswer>();
  const std::string where = std::string(path) + " at " + std::to_string(addr) + ", offset " + std::to_string(offset);
  if (device.kind == DeviceKind::kKfd) {
    const auto moved = locate_kfd_vma(current.gpus, offset);
    if (!moved) return Error(ENXIO, where + ": a mapping of a GPU that the image does not have");
    return std::optional<VmaAnswer>(VmaAnswer{*moved, -1});
  }
  settle(current);
  std::optional<std::uint32_t> source_gpu;
  if (const topology::Node* node = topology::find_render_minor(plan_->source, device.minor)) source_gpu = node->gpu_id;
  const auto found = locate_render_vma(current.bos, source_gpu, addr, offset);
  if (!found) return Error(ENXIO, where + ": a mapping of memory that is no BO of KFD's");
  const int number = current.render[found->destination_gpu].number;
  if (!parts_.criu.takes_vma_fd()) return std::optional<VmaAnswer>(VmaAnswer{found->new_offset, number});
  const int copy = os::fcntl(number, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return Error::from_errno(errno, where + ": duplicating the render node");
  return std::optional<VmaAnswer>(VmaAnswer{found->new_offset, copy});
}

Result<Claim> Restore::resume(pid_t pid) {
  if (pid <= 0) return Claim::kNotMine;
  const auto pids = parts_.system.namespace_pids(pid);
  if (pids.empty()) return Claim::kNotMine;
  ASSIGN_OR_RETURN(const image::Catalogue* images, catalogue());
  const auto intact = images->intact();
  const bool mine = std::any_of(intact.begin(), intact.end(), [&](const image::Loaded* loaded) {
    return loaded->kfd() != nullptr && loaded->kfd()->pid == pids.back();
  });
  if (!mine) return Claim::kNotMine;
  ASSIGN_OR_RETURN(const UniqueFd fd, parts_.system.open_kfd());
  auto status = parts_.kfd.resume(fd.get(), pid);
  if (status.ok()) return Claim::kMine;
  // Two namespaces may use one pid; the other process has nothing to resume.
  if (status.error().code() == ESRCH && pids.size() > 1) return Claim::kNotMine;
  return std::move(status).error().wrap("process " + std::to_string(pid) + ": resuming its GPU queues");
}

}  // namespace plugin
