// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Probes of the loading CRIU. Nothing here may print or fail at load time: a plugin that does not load fails every
// dump.
#include "plugin/criu_api.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "base/os.h"
#include "base/text_file.h"
#include "plugin/criu_options.h"

namespace plugin::criu_api {
namespace {

// struct cr_plugin_ctl of CRIU: a list head, then a list head per hook.
constexpr std::size_t kListHead = 16;

// States of programs: opts.final_state of CRIU, and the argument of pstree_switch_state().
constexpr int kAlive = 1;

struct Undo {
  const char* function;
  const char* what_stays;
};
// The steps of CRIU's cr_dump_finish() that answer nothing.
constexpr std::array kUndos = {
    Undo{"network_unlock",
         "rules that lock the network of the programs may stay; see `iptables -S` for the chain CRIU, and `nft list "
         "tables` of nftables for a table with CRIU in its name, in their network namespace, and delete them"},
    Undo{"delete_link_remaps", "files named link_remap.* may stay beside files of the programs; delete them"},
    Undo{"clean_cr_time_mounts", "mounts of CRIU may stay in the mount namespace of the programs"}};

template <typename Function>
Function* host_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

unsigned host_max_hooks() {
  void* table = ::dlsym(RTLD_DEFAULT, "cr_plugin_ctl");
  Dl_info info{};
  void* extra = nullptr;
  if (table == nullptr || ::dladdr1(table, &info, &extra, RTLD_DL_SYMENT) == 0 || extra == nullptr)
    return kFirstMaxHooks;
  const auto size = static_cast<const ElfW(Sym)*>(extra)->st_size;
  if (size < kListHead * (1 + kFirstMaxHooks)) return kFirstMaxHooks;
  return static_cast<unsigned>(std::min<std::size_t>(size / kListHead - 1, kMaxHooks));
}

std::vector<std::string> release_programs() {
  std::vector<std::string> stays;
  const auto missing = [&stays](const char* function, const std::string& what) {
    stays.push_back(std::string("this CRIU has no ") + function + "(): " + what);
  };
  // CRIU's structure of options begins with the state in which it leaves the programs. When they are to run on, CRIU
  // has undone everything before it called exit().
  const auto* final_state = static_cast<const int*>(::dlsym(RTLD_DEFAULT, "opts"));
  if (final_state == nullptr || *final_state != kAlive) {
    if (const auto unsuspend = host_function<int()>("unsuspend_lsm"))
      (void)unsuspend();
    else
      missing("unsuspend_lsm", "AppArmor may not confine the programs");
    for (const Undo& undo : kUndos) {
      if (const auto function = host_function<void()>(undo.function))
        function();
      else
        missing(undo.function, undo.what_stays);
    }
  }
  const auto switch_state = host_function<void(void*, int)>("pstree_switch_state");
  auto* const root = static_cast<void**>(::dlsym(RTLD_DEFAULT, "root_item"));
  if (switch_state != nullptr && root != nullptr)
    switch_state(*root, kAlive);
  else
    missing("pstree_switch_state", "programs stay in the freezer cgroup, if --freeze-cgroup named one; thaw it");
  return stays;
}

bool add_to_inventory() {
  const auto add = host_function<int(const char*)>("add_inventory_plugin");
  return add == nullptr || add(kPluginName) == 0;
}

void take_from_inventory() {
  // Newer versions take only the name. The answer does not matter: whether the image has files of ours is known from
  // our own part of it, and plugins before this one did not add their name.
  const auto take = host_function<bool(const char*, std::size_t)>("check_and_remove_inventory_plugin");
  if (take != nullptr) (void)take(kPluginName, std::string_view(kPluginName).size());
}

void log(Level level, std::string_view message) {
  static const auto print = host_function<void(unsigned, const char*, ...)>("print_on_level");
  if (print == nullptr) return;
  const char* prefix = level == Level::kError ? "Error (amdgpu_plugin): " : "amdgpu_plugin: ";
  while (!message.empty()) {
    const auto end = std::min(message.find('\n'), message.size());
    print(static_cast<unsigned>(level), "%s%s\n", prefix, std::string(message.substr(0, end)).c_str());
    message.remove_prefix(std::min(end + 1, message.size()));
  }
}

std::vector<std::string> plugin_options() {
  const auto function = host_function<int(int*, char***)>("criu_plugin_get_options");
  int count = 0;
  char** values = nullptr;
  if (function == nullptr || function(&count, &values) != 0 || values == nullptr) return {};
  std::vector<std::string> options;
  for (int i = 1; i < count && values[i] != nullptr; ++i) options.emplace_back(values[i]);  // 0 is CRIU's own name
  return options;
}

int RealCriu::image_dir() const {
  const auto function = host_function<int()>("criu_get_image_dir");
  return function == nullptr ? -EBADF : function();
}

int RealCriu::unused_fd() const {
  const auto function = host_function<int(pid_t)>("find_unused_fd_pid");
  return function == nullptr ? -1 : function(os::getpid());
}

base::Result<std::vector<std::string>> RealCriu::arguments() const {
  ASSIGN_OR_RETURN(std::string text, base::read_text("/proc/self/cmdline"));
  std::vector<std::string> arguments;
  // Each argument ends with a NUL.
  std::istringstream in(std::move(text));
  for (std::string argument; std::getline(in, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.erase(arguments.begin());
  return criu_options::all(
      std::move(arguments), [](const char* name) -> const char* { return std::getenv(name); },
      base::read_text_if_there);
}

// CRIU's fdstore is a datagram socket that all tasks of a restore inherit. It is connected to itself, so no limit of
// messages is in its way, and CRIU raises the limits of its buffers: each descriptor is a message that stays in it
// until CRIU ends, because the number of a descriptor is its place in the queue.
bool RealCriu::passes_files() const {
  return ::dlsym(RTLD_DEFAULT, "fdstore_add") != nullptr && ::dlsym(RTLD_DEFAULT, "fdstore_get") != nullptr;
}

base::Result<int> RealCriu::keep_file(int fd) const {
  const auto function = host_function<int(int)>("fdstore_add");
  errno = os::fault("fdstore_add");
  const int number = function == nullptr || errno != 0 ? -1 : function(fd);
  if (number < 0) return base::Error(errno > 0 ? errno : EIO, "CRIU cannot keep a descriptor for other tasks");
  return int{number};
}

base::Result<base::UniqueFd> RealCriu::kept_file(int number) const {
  const auto function = host_function<int(int)>("fdstore_get");
  errno = os::fault("fdstore_get");
  base::UniqueFd fd(function == nullptr || errno != 0 ? -1 : function(number));
  if (!fd.valid()) return base::Error(errno > 0 ? errno : EIO, "CRIU does not give a descriptor that it keeps");
  return fd;
}

bool RealCriu::takes_vma_fd() const {
  // The function came with the version that changed the rule.
  return ::dlsym(RTLD_DEFAULT, "exec_rpc_query_external_files") != nullptr ||
         ::dlsym(RTLD_DEFAULT, "rpc_query_external_files") != nullptr;
}

}  // namespace plugin::criu_api
