// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An image directory as the commands see it: its dumps, what is damaged, and how large contents are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/image/catalogue.h"

namespace kfd_criu {

struct Images {
  std::string path;
  base::UniqueFd dir;
  plugin::image::Catalogue catalogue;
};

// Fails if the directory cannot be read or has no file of the plugin.
base::Result<Images> open_images(const std::string& path);

// A number of BOs and their bytes. `size` is what the BOs hold, `stored` what of it is in pages files of the dump,
// `referred` what is in those of earlier dumps; the rest was zero. Bytes of BOs without contents of their own are in
// neither.
struct Totals {
  std::uint64_t bos = 0;
  std::uint64_t size = 0;
  std::uint64_t stored = 0;
  std::uint64_t referred = 0;
  std::uint64_t saved = 0;  // by compression, of either

  [[nodiscard]] std::uint64_t zero() const { return size - stored - referred - saved; }
  Totals& operator+=(const Totals& other);
};

// The bytes of the BO with this index in bos_of() the file. A BO whose contents are stored with another one has a size
// of 0.
[[nodiscard]] Totals totals_of(const plugin::image::Loaded& loaded, const plugin::image::Contents& contents,
                               std::size_t bo);

[[nodiscard]] std::string_view kind_text(plugin::image::Kind kind);
[[nodiscard]] std::string_view abi_text(plugin::image::Abi abi);
// "format 2"
[[nodiscard]] std::string format_text(const plugin::image::Session& session);
// Whether CRIU's own plugin wrote it: then contents have no checksums, and are in one pages file for each GPU.
[[nodiscard]] bool is_upstream(const plugin::image::Session& session);
// "session 00000000deadbeef"
[[nodiscard]] std::string session_text(const plugin::image::Session& session);

}  // namespace kfd_criu
