// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: what CRIU does at restore, written anew from its sources. It has images that say who opens a shared file
// (files.c), and rules for what happens to the answer of UPDATE_VMA_MAP (files-reg.c).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/kcmp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plugin/restore.h"
#include "plugin/test_support.h"

namespace plugin::testing {

// Writes CRIU's images.
class FakeCriuImages {
 public:
  static constexpr std::uint32_t kRegular = 1U << 0, kFilePrivate = 1U << 6, kFileShared = 1U << 7,
                                 kAnonymousShared = 1U << 8, kAnonymousPrivate = 1U << 9, kPlugin = 1U << 27;
  struct Vma {
    std::uint64_t start = 0;
    std::uint64_t offset = 0;
    std::uint32_t file_id = 0;
    std::uint32_t status = kRegular;
    std::uint32_t flags = O_RDWR;
    bool premapped = false;  // not in the image
    std::string path;        // not in the image
  };
  struct Fd {
    int number = 0;
    std::uint32_t file_id = 0;
    bool external = true;
    std::uint32_t flags = 0;
  };
  struct Task {
    std::uint32_t parent = 0;
    std::vector<std::uint32_t> threads;
    std::vector<Fd> files;
    std::vector<Vma> vmas;
  };
  std::map<std::uint32_t, Task> tasks;

  void write(const std::string& dir) const {
    std::string tree;
    for (const auto& [pid, task] : tasks) {
      std::string threads;
      for (const std::uint32_t thread : task.threads) threads += varint(thread);
      tree += message(number(1, pid) + number(2, task.parent) + number(3, pid) + number(4, pid) + bytes(5, threads));
      const std::string name = std::to_string(pid) + ".img";
      write_file(dir + "/ids-" + name, head(0x54432030) + message(number(1, pid) + number(2, 1000 + pid)));
      std::string files;
      for (const Fd& fd : task.files)
        files += message(number(1, fd.file_id) + number(2, fd.flags) + number(3, fd.external ? 16 : 1) +
                         number(4, static_cast<std::uint64_t>(fd.number)));
      write_file(dir + "/fdinfo-" + std::to_string(1000 + pid) + ".img", head(0x56213732) + files);
      std::string mm = number(1, 5);
      for (const Vma& vma : task.vmas)
        mm += bytes(14, number(1, vma.start) + number(2, vma.start + 0x1000) + number(3, vma.offset) +
                            number(4, vma.file_id) + number(5, 3) + number(6, 1) + number(7, vma.status) +
                            number(8, 1) + number(10, vma.flags));
      write_file(dir + "/mm-" + name, head(0x57492820) + message(mm));
    }
    write_file(dir + "/pstree.img", head(0x50273030) + tree);
  }

  static std::string varint(std::uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
    return text + static_cast<char>(value);
  }
  static std::string number(std::uint32_t member, std::uint64_t value) { return varint(member << 3) + varint(value); }
  static std::string bytes(std::uint32_t member, const std::string& value) {
    return varint((member << 3) | 2) + varint(value.size()) + value;
  }
  static std::string word(std::uint32_t value) {
    std::string text;
    for (int i = 0; i < 4; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  }
  static std::string head(std::uint32_t magic) { return word(0x54564319) + word(magic); }
  static std::string message(const std::string& content) {
    return word(static_cast<std::uint32_t>(content.size())) + content;
  }
};

// Which file a descriptor is of: device and number, and for devices of ours which open file.
inline bool same_open_file(int a, int b) { return ::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, a, b) == 0; }

// CRIU's open_vmas() and what its restorer does with the result, for the two rules about plugin_fd.
class MappingModel {
 public:
  explicit MappingModel(bool takes_fd) : takes_fd_(takes_fd) {}

  // What the kernel would map.
  struct Mapped {
    std::uint64_t start = 0;
    std::uint64_t offset = 0;
    base::UniqueFd file;  // a copy
  };

  // Opens the files of all mappings; false when the plugin fails.
  bool open_vmas(Restore& restore, const std::vector<FakeCriuImages::Vma>& vmas) {
    for (const auto& vma : vmas) {
      State state{vma.start, vma.offset, -1, false};
      const bool is_file = (vma.status & (FakeCriuImages::kFilePrivate | FakeCriuImages::kFileShared)) != 0;
      if (is_file && !vma.premapped) {
        if (!open_filemap(restore, vma, state)) return false;
      } else if ((vma.status & FakeCriuImages::kAnonymousShared) != 0) {
        state.fd = ::memfd_create("shared", 0);
        state.close = true;
      }
      opened_.push_back(state);
      if (is_file && !vma.premapped) current_vma_ = opened_.size() - 1;
    }
    end_run();
    return true;
  }

  // Maps and closes, in order; false when a mapping would fail for want of its file.
  bool map_all() {
    for (const State& state : opened_) {
      if (state.fd < 0) continue;
      base::UniqueFd copy(::fcntl(state.fd, F_DUPFD_CLOEXEC, 2000));
      if (!copy.valid()) return false;
      mapped_.push_back({state.start, state.offset, std::move(copy)});
      if (state.close) ::close(state.fd);
    }
    return true;
  }

  [[nodiscard]] std::vector<Mapped>& mapped() { return mapped_; }

 private:
  struct State {
    std::uint64_t start = 0;
    std::uint64_t offset = 0;
    int fd = -1;
    bool close = false;
  };

  bool open_filemap(Restore& restore, const FakeCriuImages::Vma& vma, State& state) {
    int plugin_fd = -1;
    if ((vma.status & FakeCriuImages::kPlugin) != 0) {
      const auto answer = restore.update_vma(vma.path, vma.start, vma.offset);
      if (!answer.ok()) {
        ADD_FAILURE() << answer.error().message();
        return false;
      }
      if (answer->has_value()) {
        state.offset = (*answer)->offset;
        plugin_fd = (*answer)->fd;
      }
    }
    if (!has_context_ || flags_ != vma.flags || file_id_ != vma.file_id) {
      int fd = plugin_fd;
      if (plugin_fd < 0) fd = ::open("/etc/passwd", O_RDONLY);
      if (plugin_fd >= 0 && !takes_fd_) fd = ::dup(plugin_fd);
      if (fd < 0) return false;
      end_run();
      has_context_ = true;
      flags_ = vma.flags;
      file_id_ = vma.file_id;
      context_fd_ = fd;
    }
    state.fd = context_fd_;
    return true;
  }

  void end_run() {
    if (current_vma_) opened_[*current_vma_].close = true;
  }

  bool takes_fd_;
  bool has_context_ = false;
  std::uint32_t flags_ = 0;
  std::uint32_t file_id_ = 0;
  int context_fd_ = -1;
  std::optional<std::size_t> current_vma_;
  std::vector<State> opened_;
  std::vector<Mapped> mapped_;
};

}  // namespace plugin::testing
