// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Offsets in an image follow from the counts of what stands in front.
#include "kfdtest-criu/tests/taken_image.h"

#include <fcntl.h>

#include <string>
#include <utility>

#include "kfdtest-criu/harness/kfd_driver.h"

namespace kfdtest {

base::Result<TakenImage> TakenImage::take(const Session& session) {
  return take(ioctls_of(session.gpus().front()).client().fd(), session.gpus());
}

base::Result<TakenImage> TakenImage::take(int fd, std::vector<Gpu> gpus) {
  kfd::RealKfd kfd;
  TakenImage image;
  image.gpus_ = std::move(gpus);
  ASSIGN_OR_RETURN(kfd::Pause pause, kfd.pause(fd));
  image.num_objects = pause.info.num_objects;
  ASSIGN_OR_RETURN(image.checkpoint, kfd.checkpoint(fd, pause));
  TRY(kfd.unpause(fd, pause));
  return image;
}

std::span<std::byte> TakenImage::objects() {
  const std::size_t begin =
      kProcessRecordSize + checkpoint.devices.size() * kDeviceRecordSize + checkpoint.bos.size() * kBoRecordSize;
  return std::span(checkpoint.priv_data).subspan(begin);
}

base::Result<Restoree> Restoree::open(const TakenImage& image) {
  ASSIGN_OR_RETURN(kfd::Client client, kfd::Client::open());
  Restoree restoree(std::move(client));
  for (const Gpu& gpu : image.gpus()) {
    const std::string path = "/dev/dri/renderD" + std::to_string(gpu.render_minor);
    restoree.render_nodes_.emplace_back(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!restoree.render_nodes_.back().valid()) return base::Error::from_errno(errno, path);
  }
  return restoree;
}

kfd::RestoreRequest Restoree::request(const TakenImage& image) const {
  kfd::RestoreRequest request;
  for (std::size_t i = 0; i < image.gpus().size(); ++i) {
    const std::uint32_t id = image.gpus()[i].gpu_id;
    request.devices.push_back({.user_id = id, .actual_id = id, .drm_fd = render_nodes_[i].get()});
  }
  for (const kfd::CheckpointedBo& each : image.checkpoint.bos) request.bos.push_back(each.bo);
  request.priv_data = image.checkpoint.priv_data;
  request.num_objects = image.num_objects;
  return request;
}

base::Status Restoree::expect_refused(kfd::RestoreRequest request) const {
  kfd::RealKfd kfd;
  if (kfd.restore(client_.fd(), std::move(request)).ok()) return base::Error(EIO, "the kernel took the image");
  return {};
}

}  // namespace kfdtest
