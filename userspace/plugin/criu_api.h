// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The seam to CRIU: the only includer of its header. One binary serves every version since 3.17: the descriptor has
// room for all hooks that exist, and says at load time how many the CRIU that loads it has.
// All symbols of CRIU are looked up at run time, so none is missing in an older or newer one.
#pragma once

// The header declares a descriptor with as many hooks as it knows; ours has another type.
#define CR_PLUGIN_DESC cr_plugin_desc_of_the_header
extern "C" {
#include <criu/criu-plugin.h>
}
#undef CR_PLUGIN_DESC

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/criu.h"

namespace plugin::criu_api {

enum class Stage {
  kDump = CR_PLUGIN_STAGE__DUMP,
  kPreDump = CR_PLUGIN_STAGE__PRE_DUMP,
  kRestore = CR_PLUGIN_STAGE__RESTORE
};

inline constexpr unsigned kVersion = CRIU_PLUGIN_GEN_VERSION(0, 2, 0);
inline constexpr unsigned kFirstMaxHooks = 10;  // CRIU 3.17, the first with the hooks that we need
inline constexpr unsigned kMaxHooks = 64;       // more than any CRIU has

// Layout of cr_plugin_desc_t.
struct Descriptor {
  const char* name;
  int (*init)(int stage);
  void (*exit)(int stage, int result);
  unsigned version;
  unsigned max_hooks;
  void* hooks[kMaxHooks];
};
static_assert(offsetof(Descriptor, exit) == offsetof(cr_plugin_desc_t, exit));
static_assert(offsetof(Descriptor, max_hooks) == offsetof(cr_plugin_desc_t, max_hooks));
static_assert(offsetof(Descriptor, hooks) == offsetof(cr_plugin_desc_t, hooks));

// How many hooks the loading CRIU has.
[[nodiscard]] unsigned host_max_hooks();

// With this many hooks, RESTORE_EXT_FILE has a second argument: `bool *retry_needed`.
inline constexpr unsigned kRetryMaxHooks = 14;

// CRIU 4.1 and later write into the image's inventory which plugins a restore needs, and refuse the restore if one of
// them does not take its name out of the list in init. Upstream's plugin for AMD GPUs has the name that ours has.
inline constexpr const char* kPluginName = "amdgpu_plugin";
// Adds our name to the inventory of the dump; CRIU does not look whether it is there already. False: out of memory.
[[nodiscard]] bool add_to_inventory();
// Takes our name out of the inventory of a restore.
void take_from_inventory();

// For exit() of a dump that CRIU takes for a success, before CRIU is ended: undoes what CRIU has done to the programs,
// as CRIU does when a dump fails, and lets them go. Returns what stays because this CRIU has no function for it, with
// the remedy.
[[nodiscard]] std::vector<std::string> release_programs();

enum class Level { kError = 1, kWarning = 2, kInfo = 3, kDebug = 4 };
// To CRIU's log, line by line.
void log(Level level, std::string_view message);

// The options of all plugins, "--PLUGIN.NAME=VALUE"; none before CRIU 4.3.
[[nodiscard]] std::vector<std::string> plugin_options();

class RealCriu final : public Criu {
 public:
  [[nodiscard]] int image_dir() const override;
  [[nodiscard]] int unused_fd() const override;
  [[nodiscard]] bool takes_vma_fd() const override;
  [[nodiscard]] bool passes_files() const override;
  [[nodiscard]] base::Result<int> keep_file(int fd) const override;
  [[nodiscard]] base::Result<base::UniqueFd> kept_file(int number) const override;
  [[nodiscard]] base::Result<std::vector<std::string>> arguments() const override;
  void inform(std::string_view message) const override { log(Level::kInfo, message); }
  void warn(std::string_view message) const override { log(Level::kWarning, message); }
};

}  // namespace plugin::criu_api
