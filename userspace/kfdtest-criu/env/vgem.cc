// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/env/vgem.h"

#include <fcntl.h>
#include <libdrm/drm.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace kfdtest {

base::Result<base::UniqueFd> open_vgem() {
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/dri", code)) {
    if (!entry.path().filename().string().starts_with("card")) continue;
    base::UniqueFd card(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
    std::array<char, 8> name{};
    drm_version version{};
    version.name = name.data();
    version.name_len = name.size() - 1;
    if (card.valid() && ::ioctl(card.get(), DRM_IOCTL_VERSION, &version) == 0 &&
        std::string_view(name.data()) == "vgem")
      return card;
  }
  return base::Error(ENODEV, "no device of vgem");
}

}  // namespace kfdtest
