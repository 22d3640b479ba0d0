// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the plugin asks of the operating system. Holds no state.
#pragma once

#include "plugin/devices.h"
#include "plugin/processes.h"
#include "plugin/shm.h"

namespace plugin {

class System : public Devices, public Processes, public Shm {
 public:
  explicit System(const Roots& roots) : Devices(roots), Processes(roots), Shm(roots) {}
};

}  // namespace plugin
