// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// All state of one run of CRIU: what it works with, and the dump or the restore under way.
#pragma once

#include <memory>
#include <optional>

#include "kfd/driver_kfd.h"
#include "plugin/dump.h"
#include "plugin/restore.h"
#include "plugin/services.h"

namespace plugin {

// A pre-dump saves no file and pauses nothing.
enum class Mode { kDump, kPreDump, kRestore };

class Session {
 public:
  // Wrong options are no failure here. The real operating system, KFD and copiers; `criu` is borrowed.
  static base::Result<std::unique_ptr<Session>> create(Mode mode, Criu& criu, base::Result<Options> options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] System& system() { return system_; }
  // Null in a run of the other kind.
  [[nodiscard]] Dump* dump() { return dump_ ? &*dump_ : nullptr; }
  [[nodiscard]] Restore* restore() { return restore_ ? &*restore_ : nullptr; }

 private:
  Session(Criu& criu, base::Result<Options> options);

  System system_;
  kfd::DriverKfd kfd_;
  Services services_;
  std::optional<Dump> dump_;
  std::optional<Restore> restore_;
};

}  // namespace plugin
