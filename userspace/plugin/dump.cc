// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. Read dump_kfd() top to bottom.
#include "plugin/dump.h"

#include <fcntl.h>

#include <cerrno>

#include "base/os.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::uint32_t kKfdMajor = 1;
constexpr std::uint32_t kKfdMinor = 8;  // dmabufs of GTT BOs

std::string bo_name(std::size_t index, const kfd::Bo& bo) {
  return "BO " + std::to_string(index) + " of " + std::to_string(bo.size) + " bytes";
}

// The topology node of the GPU that the program calls user_id.
const topology::Node* gpu_of(const std::vector<topology::Node>& nodes, const std::vector<kfd::Device>& devices,
                             std::uint32_t user_id) {
  for (const kfd::Device& device : devices)
    if (device.user_id == user_id) return topology::find_gpu(nodes, device.actual_id);
  return nullptr;
}

}  // namespace

Result<Claim> Dump::dump_file(int fd, std::uint32_t id) {
  struct stat status {};
  if (os::fstat(fd, &status) != 0) return Error::from_errno(errno, "fstat of the program's file");
  const DeviceFile device = parts_.system.identify(status);
  if (device.kind == DeviceKind::kNotOurs) return Claim::kNotMine;
  if (auto saved = dump_device(fd, id, device); !saved.ok()) {
    failed_ = true;
    return std::move(saved).error();
  }
  return Claim::kMine;
}

Status Dump::dump_device(int fd, std::uint32_t id, const DeviceFile& device) {
  if (device.kind == DeviceKind::kKfd) return dump_kfd(fd, id);
  return dump_render(fd, id, device.minor);
}

Result<image::SessionWriter*> Dump::images() {
  if (images_ == nullptr) {
    ASSIGN_OR_RETURN(images_, image::SessionWriter::create(parts_.criu.image_dir(), session_id_));
  }
  return images_.get();
}

Status Dump::commit() {
  ASSIGN_OR_RETURN(const auto nodes, parts_.system.topology());
  session_.nodes = topology::select(nodes, gpus_);
  TRY(images_->prepare(std::move(session_)));
  return images_->commit();
}

Status Dump::dump_kfd(int fd, std::uint32_t id) {
  TRY(check_version());
  ASSIGN_OR_RETURN(const Paused* paused, pause(fd));
  const kfd::ProcessInfo& info = paused->pause.info;
  auto checkpoint = parts_.kfd.checkpoint(fd, paused->pause);
  if (!checkpoint.ok())
    return std::move(checkpoint).error().wrap("saving the kernel's state of " + std::to_string(info.num_bos) + " BOs");
  ASSIGN_OR_RETURN(const auto nodes, parts_.system.topology());
  ASSIGN_OR_RETURN(SharedFiles shared, parts_.system.read_shared_files(parts_.system.find_tracee(info.pid)));

  image::KfdFile kfd;
  kfd.pid = info.pid;
  kfd.num_objects = info.num_objects;
  kfd.devices = checkpoint->devices;
  kfd.priv_data = std::move(checkpoint->priv_data);
  kfd.shared_files = std::move(shared.files);
  kfd.own_mount_namespace = shared.own_mount_namespace;

  ASSIGN_OR_RETURN(auto writer, image::Writer::create(parts_.criu.image_dir(), id));
  TRY(save_bos(*paused, std::move(checkpoint->bos), nodes, writer, kfd));
  image::File file{session_id_, topology::select(nodes, actual_ids(kfd.devices)), std::move(kfd)};
  return writer.commit(file);
}

Status Dump::check_version() {
  // Asked of a file of our own: KFD answers a tracer on the program's file only for checkpoint operations.
  ASSIGN_OR_RETURN(const UniqueFd own, parts_.system.open_kfd());
  ASSIGN_OR_RETURN(const kfd::Version version, parts_.kfd.version(own.get()));
  if (version.major != kKfdMajor || version.minor < kKfdMinor)
    return Error(ENOTSUP, "the kernel's KFD interface is " + std::to_string(version.major) + "." +
                              std::to_string(version.minor) + ", checkpoint needs 1.8 or a later 1.x (Linux 5.18)");
  return {};
}

Result<Dump::Paused*> Dump::pause(int fd) {
  // Kept before the pause, so that no failure can leave queues paused with nobody to wake them.
  Paused paused{UniqueFd(os::fcntl(fd, F_DUPFD_CLOEXEC, 0)), {}, false};
  if (!paused.file.valid()) return Error::from_errno(errno, "duplicating the program's /dev/kfd");
  paused_.push_back(std::move(paused));
  auto pause = parts_.kfd.pause(fd);
  if (!pause.ok()) return std::move(pause).error().wrap("pausing the program's queues");
  paused_.back().pause = std::move(pause).value();
  paused_.back().certain = true;
  return &paused_.back();
}

Status Dump::save_bos(const Paused& paused, std::vector<kfd::CheckpointedBo> bos, const std::vector<topology::Node>& nodes,
                      image::Writer& writer, image::KfdFile& out) {
  for (std::size_t i = 0; i < bos.size(); ++i) {
    const std::string name = bo_name(i, bos[i].bo);
    if (bos[i].bo.size == 0) continue;  // a bucket that the kernel did not fill
    const topology::Node* gpu = gpu_of(nodes, out.devices, bos[i].bo.user_gpu_id);
    if (gpu == nullptr) return Error(ENODEV, name + ": its GPU is not in sysfs (hidden by a device cgroup?)");
    auto record = save_bo(paused, std::move(bos[i]), *gpu, writer);
    if (!record.ok()) return std::move(record).error().wrap(name);
    out.bos.push_back(std::move(record).value());
  }
  // The staging buffers are pinned memory; the next file may need it on another GPU.
  copiers_.clear();
  return {};
}

Result<image::BoRecord> Dump::save_bo(const Paused& paused, kfd::CheckpointedBo bo, const topology::Node& gpu, image::Writer& writer) {
  image::BoRecord record{bo.bo, {}};
  if (!kfd::has_contents(bo.bo)) return record;
  ASSIGN_OR_RETURN(copy::Copier * copier, copier_of(gpu));
  ASSIGN_OR_RETURN(const UniqueFd dmabuf, parts_.kfd.export_bo(paused.file.get(), paused.pause, bo));
  auto outcome = copier->read(dmabuf.get(), bo.bo.size,
                              [&](std::span<const std::byte> slice) { return writer.append(slice, record.chunks); });
  if (!outcome.ok()) return std::move(outcome).error().error;
  return record;
}

Result<copy::Copier*> Dump::copier_of(const topology::Node& gpu) {
  auto& copier = copiers_[gpu.gpu_id];
  if (copier == nullptr) {
    ASSIGN_OR_RETURN(const UniqueFd render, parts_.system.open_render(gpu.render_minor()));
    ASSIGN_OR_RETURN(copier, parts_.make_copier(render.get(), parts_.options));
  }
  return copier.get();
}

Status Dump::dump_render(int fd, std::uint32_t id, std::uint32_t minor) {
  ASSIGN_OR_RETURN(const auto nodes, parts_.system.topology());
  const topology::Node* gpu = topology::find_render_minor(nodes, minor);
  const std::string name = "renderD" + std::to_string(minor);
  if (gpu == nullptr) return Error(ENODEV, name + ": KFD does not know this GPU, so its files cannot be checkpointed");
  const int flags = os::fcntl(fd, F_GETFL);
  if (flags < 0) return Error::from_errno(errno, name + ": F_GETFL");
  const image::RenderFile render{gpu->gpu_id, static_cast<std::uint32_t>(flags & O_NONBLOCK),
                                 parts_.system.render_binding(fd), 0};
  ASSIGN_OR_RETURN(image::SessionWriter * writer, images());
  gpus_.push_back(gpu->gpu_id);
  return writer->add({id, render});
}

std::vector<Error> Dump::finish() {
  std::vector<Error> errors;
  if (images_ != nullptr) {
    auto status = failed_ ? images_->discard() : commit();
    if (!status.ok()) errors.push_back(std::move(status).error());
    images_.reset();
  }
  for (Paused& paused : paused_) {
    auto status = parts_.kfd.unpause(paused.file.get(), paused.pause);
    // When pausing itself failed, the kernel has undone it, and refuses.
    if (status.ok() || !paused.certain) continue;
    const bool over = status.error().code() == ENOTRECOVERABLE;
    errors.push_back(
        std::move(status).error().wrap("process " + std::to_string(paused.pause.info.pid) +
                                       (over ? ": a GPU was reset while it was saved, its image is worth nothing"
                                             : ": its GPU queues stay paused, it must be ended")));
  }
  paused_.clear();
  copiers_.clear();
  return errors;
}

}  // namespace plugin
