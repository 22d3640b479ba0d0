// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For the unit tests: a CRIU, and a machine (sysfs, /dev, /proc) made of plain files. Character devices that every
// machine has stand in for the GPU's: /dev/null is its /dev/kfd, /dev/zero its render node.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/temp_dir.h"
#include "base/unique_fd.h"
#include "plugin/criu.h"
#include "plugin/system.h"

namespace plugin::testing {

using base::read_file;
using base::TempDir;
using base::write_file;

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* dir = ::opendir("/proc/self/fd");
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

class FakeCriu final : public Criu {
 public:
  explicit FakeCriu(const std::string& dir) : dir_(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  [[nodiscard]] int image_dir() const override { return dir_.get(); }
  void use_dir(const std::string& dir) { dir_.reset(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
  [[nodiscard]] int unused_fd() const override { return 900; }
  [[nodiscard]] bool takes_vma_fd() const override { return new_rule; }

  [[nodiscard]] pid_t pid() const override { return task == 0 ? ::getpid() : task; }
  void warn(std::string_view message) const override { warnings.emplace_back(message); }
  void inform(std::string_view message) const override { informed.emplace_back(message); }
  [[nodiscard]] bool has_informed(const std::string& part) const {
    return std::any_of(informed.begin(), informed.end(),
                       [&part](const std::string& line) { return line.find(part) != std::string::npos; });
  }

  [[nodiscard]] bool passes_files() const override { return has_fdstore; }
  [[nodiscard]] base::Result<int> keep_file(int fd) const override {
    if (const int code = os::fault("fdstore_add"); code != 0) return base::Error(code, "fdstore_add");
    kept.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 3000));
    return static_cast<int>(kept.size()) - 1;
  }
  [[nodiscard]] base::Result<base::UniqueFd> kept_file(int number) const override {
    if (const int code = os::fault("fdstore_get"); code != 0) return base::Error(code, "fdstore_get");
    return base::UniqueFd(::fcntl(kept[static_cast<std::size_t>(number)].get(), F_DUPFD_CLOEXEC, 0));
  }

  [[nodiscard]] base::Result<std::vector<std::string>> arguments() const override { return command_line; }

  bool new_rule = false;
  std::vector<std::string> command_line = {"dump", "-t", "7"};
  pid_t task = 0;  // 0: this process
  bool has_fdstore = true;
  mutable std::vector<base::UniqueFd> kept;
  mutable std::vector<std::string> warnings;
  mutable std::vector<std::string> informed;

 private:
  base::UniqueFd dir_;
};

// What a DMA-buf has that only one BO uses: those of the GEM object, its handle, KFD's BO and one descriptor.
inline constexpr std::uint64_t kReferencesOfOne = 4;

// A machine with GPUs; adds them one by one.
class FakeMachine {
 public:
  FakeMachine() {
    write_file(root() + "/sys/class/kfd/kfd/dev", "1:3\n");
    std::filesystem::create_directories(root() + "/dev/dri");
    std::filesystem::create_symlink("/dev/null", root() + "/dev/kfd");
    std::filesystem::create_directories(root() + "/dev/shm");
    std::filesystem::create_directories(root() + "/proc");
    std::filesystem::create_directory_symlink("/proc/self", root() + "/proc/self");
    add_char_device("1:5", "renderD128", "amdgpu");
    add_char_device("1:7", "renderD129", "i915");
    write_file(node(0) + "/gpu_id", "0\n");
    write_file(node(0) + "/properties", "cpu_cores_count 2\n");
  }

  void add_gpu(std::uint32_t index, std::uint32_t gpu_id, std::uint32_t minor, std::uint64_t vram = 1U << 30) {
    write_file(node(index) + "/gpu_id", std::to_string(gpu_id) + "\n");
    write_file(node(index) + "/properties", "simd_count 240\ngfx_target_version 90006\ndrm_render_minor " +
                                                std::to_string(minor) + "\nfw_version 440\n");
    write_file(node(index) + "/mem_banks/0/properties",
               "heap_type 1\nsize_in_bytes " + std::to_string(vram) + "\nflags 0\n");
    write_file(node(index) + "/io_links/0/properties", "type 2\nnode_from " + std::to_string(index) + "\nnode_to 0\n");
    const std::string name = "renderD" + std::to_string(minor);
    const auto [path, number] = stand_in(minor);
    std::filesystem::create_symlink(path, root() + "/dev/dri/" + name);
    write_file(root() + "/sys/class/drm/" + name + "/dev", number + "\n");
  }

  // Another process that has a queue; type 0 is compute, 1 is SDMA.
  void add_queue(pid_t pid, const std::string& comm, std::uint32_t gpu_id, int type = 1) {
    const std::string queue = root() + "/sys/class/kfd/kfd/proc/" + std::to_string(pid) + "/queues/0";
    write_file(queue + "/type", std::to_string(type));
    write_file(queue + "/gpuid", std::to_string(gpu_id));
    write_file(root() + "/proc/" + std::to_string(pid) + "/comm", comm + "\n");
  }

  // A process that this thread traces, with /dev/shm of its own or ours.
  void add_tracee(pid_t pid, std::uint32_t innermost, const std::string& maps, bool own_namespace = false) {
    const std::string path = root() + "/proc/" + std::to_string(pid);
    write_file(path + "/status",
               "TracerPid:\t" + std::to_string(::gettid()) + "\nNSpid:\t" + std::to_string(pid) +
                   (innermost == static_cast<std::uint32_t>(pid) ? "" : "\t" + std::to_string(innermost)) + "\n");
    write_file(path + "/maps", maps);
    std::filesystem::create_directories(path + "/ns");
    std::array<char, 64> ns{};
    if (::readlink("/proc/self/ns/mnt", ns.data(), ns.size() - 1) < 0) ADD_FAILURE() << "no mount namespace";
    std::filesystem::create_symlink(own_namespace ? "mnt:[1]" : ns.data(), path + "/ns/mnt");
    std::filesystem::create_directories(path + "/root" + root());
    // The process's root is ours: its /dev is found under the same path.
    std::filesystem::create_directory_symlink(root() + "/dev", path + "/root" + root() + "/dev");
  }

  [[nodiscard]] const std::string& root() const { return dir_.path(); }
  [[nodiscard]] Roots roots() const { return {root() + "/sys", root() + "/dev", root() + "/proc"}; }
  [[nodiscard]] std::string node(std::uint32_t index) const {
    return root() + "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(index);
  }

 private:
  // A character device that every machine has, for a render node.
  static std::pair<std::string, std::string> stand_in(std::uint32_t minor) {
    if (minor == 128) return {"/dev/zero", "1:5"};
    if (minor == 129) return {"/dev/random", "1:8"};
    return {"/dev/urandom", "1:9"};
  }

  void add_char_device(const std::string& number, const std::string& name, const std::string& driver) {
    const std::string device = root() + "/sys/devices/" + name + "/drm/" + name;
    std::filesystem::create_directories(device + "/device");
    std::filesystem::create_symlink("../../../../bus/pci/drivers/" + driver, device + "/device/driver");
    std::filesystem::create_directories(root() + "/sys/dev/char");
    std::filesystem::create_directory_symlink("../../devices/" + name + "/drm/" + name,
                                              root() + "/sys/dev/char/" + number);
  }

  TempDir dir_;
};

}  // namespace plugin::testing
