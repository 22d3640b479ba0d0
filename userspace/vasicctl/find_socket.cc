// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "vasicctl/find_socket.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace vasicctl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "control.sock";

// A dangling link is what a virtual machine that was killed leaves behind.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::is_socket(path, error);
}

std::string resolved(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path.string() : real.string();
}

}  // namespace

fs::path find_vm_dir(const fs::path& from, const char* out_dir) {
  if (out_dir != nullptr && *out_dir != '\0') return fs::path(out_dir) / "vm";
  std::error_code error;
  for (fs::path at = from;; at = at.parent_path()) {
    if (fs::exists(at / "scripts" / "vm.sh", error)) return at / "out" / "vm";
    if (at == at.parent_path()) return from / "out" / "vm";
  }
}

base::Result<std::string> find_socket(const Options& options, const char* environment, const fs::path& vm_dir) {
  if (!options.socket.empty()) return resolved(options.socket);
  if (!options.vm.empty()) {
    const fs::path path = vm_dir / options.vm / kName;
    if (!is_there(path))
      return base::Error(ENOENT, "no virtual machine '" + options.vm + "' runs: no " + path.string());
    return resolved(path);
  }
  if (environment != nullptr && *environment != '\0') return resolved(environment);
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(vm_dir, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path path = entry->path() / kName;
    if (!entry->is_symlink(error) && is_there(path)) found.push_back(path);  // "latest" is a link
  }
  if (found.empty()) {
    return base::Error(ENOENT,
                       "no virtual machine runs in " + vm_dir.string() + "; give --socket, --vm or VASIC_CONTROL");
  }
  if (found.size() > 1) {
    std::ranges::sort(found);
    std::string names;
    for (const fs::path& path : found) names += " " + path.parent_path().filename().string();
    return base::Error(EINVAL, "several virtual machines run, give --vm, one of:" + names);
  }
  return resolved(found.front());
}

}  // namespace vasicctl
