// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which other processes have an open file of a render node. Processes inherit such a file, or receive it, and then have
// its objects in common; DRM numbers the file, and procfs tells the number of each descriptor. Not here: what a dump
// does about it (preflight_render_holders.cc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace plugin::render_holders {

// An open file as DRM names it in /proc/PID/fdinfo: drm-client-id, which every descriptor of the file has, and
// drm-pdev, the PCI address of the GPU (empty: it is no PCI device).
struct Client {
  std::uint64_t id = 0;
  std::string device;
  bool operator==(const Client&) const = default;
};

// Nothing: the text of fdinfo is of no DRM file, or the kernel does not number them.
[[nodiscard]] std::optional<Client> parse_client(const std::string& fdinfo);

// The client behind a descriptor of this process. `proc` is where procfs is mounted, here and below.
base::Result<std::optional<Client>> client_of(const std::string& proc, int fd);

struct Holder {
  pid_t pid = 0;
  std::string comm;
  int number = -1;  // of the descriptor
  Client client;
};

struct Search {
  std::optional<Holder> holder;  // that with the lowest pid
  // Processes whose descriptors may not be looked at; only counted up to the holder.
  std::size_t hidden = 0;
};

// Looks through the descriptors of all processes but those that `is_inside` names. A process that ends meanwhile has
// none.
base::Result<Search> find(const std::string& proc, std::span<const Client> clients,
                          const std::function<bool(pid_t pid)>& is_inside);

}  // namespace plugin::render_holders
