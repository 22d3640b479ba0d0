// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads images back. What a Catalogue answers has passed every check but those of pages files, which open_contents()
// and Contents make.
#pragma once

#include <memory>
#include <optional>

#include "plugin/image/contents.h"

namespace plugin::image {

// Opens the pages file and compares it with manifest and index. Fails for files without an index. The result
// borrows `loaded`.
base::Result<Contents> open_contents(int dir_fd, const Loaded& loaded);

// The steps of Catalogue::read(). Each error begins with the name of the file. Nothing when there is no manifest.
base::Result<std::optional<Manifest>> load_manifest(int dir_fd);
base::Result<Loaded> load_file(int dir_fd, const std::shared_ptr<const Session>& session, const FileEntry& entry);

// Whether the pages files of other files that a file needs are there, and those that were referred to.
base::Status check_sources(int dir_fd, const FileEntry& entry);

// Version 1: a file whose manifest exists. Its session knows only what this file says.
base::Result<Loaded> load_file_1(int dir_fd, std::uint32_t id);

}  // namespace plugin::image
