// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which GPU of this machine stands for which GPU of a dump, and how its devices are opened. Made once for a dump, in
// CRIU's main process, so that all restored tasks agree and none of them needs /sys or the /dev of this machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugin/devices.h"
#include "plugin/options.h"
#include "plugin/topology/match.h"

namespace plugin {

class RestorePlan {
 public:
  // `source`: the GPUs of the dump.
  static base::Result<RestorePlan> make(const Devices& devices, const Options& options,
                                        std::vector<topology::Node> source);

  [[nodiscard]] const std::vector<topology::Node>& source() const { return source_; }
  [[nodiscard]] const DeviceNode& kfd() const { return kfd_; }
  // The GPU of this machine that stands for the image's.
  [[nodiscard]] base::Result<std::uint32_t> destination_of(std::uint32_t source_gpu) const;
  // The render node of a GPU that was chosen.
  [[nodiscard]] const DeviceNode& render(std::uint32_t destination_gpu) const;
  // Whether this is /dev/kfd or the render node of a GPU that was chosen.
  [[nodiscard]] bool has_device(dev_t number) const;
  // Who has SDMA queues on the chosen GPUs, as a sentence; empty when nobody has.
  [[nodiscard]] std::string holders(const Devices& devices) const;

 private:
  std::vector<topology::Node> source_;
  topology::GpuMap gpus_;
  DeviceNode kfd_;
  std::map<std::uint32_t, DeviceNode> render_;  // by destination gpu_id
};

}  // namespace plugin
