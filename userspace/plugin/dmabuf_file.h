// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the kernel says of an open DMA-buf, whoever has exported it. There is one open file for each DMA-buf: the kernel
// gives all descriptors of it, also those of several exports, the same file.
//
// CRIU 4.1.1 (dump_one_file() of files.c): the inode of a DMA-buf has no file type, and its file system is none that
// CRIU knows, so CRIU calls DUMP_EXT_FILE, and RESTORE_EXT_FILE in the task with the lowest pid of those that have the
// file, which sends it to the others. A mapping is refused by CRIU itself if the plugin has not been called before,
// because its file is neither regular nor a device (handle_vma() of proc_parse.c). CRIU 3.17.1 behaves alike in the
// tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace plugin::dmabuf_file {

// How links in /proc/PID/fd and lines of /proc/PID/maps name it; the name that a program has given it follows.
inline constexpr const char* kPath = "/dmabuf:";

struct Info {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::string exporter;  // the module that exports it: "drm" for all GPUs
  std::string name;      // by DMA_BUF_SET_NAME; empty: it has none
};

// What a descriptor of this process is; nothing: no DMA-buf, or procfs does not show it. `proc` is where procfs is
// mounted.
base::Result<std::optional<Info>> info_of(const std::string& proc, int fd);

base::Status set_name(int fd, const std::string& name);

}  // namespace plugin::dmabuf_file
