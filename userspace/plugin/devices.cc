// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Devices: sysfs has the numbers. See the header for contracts.
#include "plugin/devices.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "base/os.h"
#include "plugin/proc_text.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::UniqueFd;

constexpr std::string_view kRenderName = "renderD";
constexpr std::string_view kCardName = "card";
constexpr std::string_view kDriver = "amdgpu";

// What sysfs calls the types of queues, as numbers: KFD_QUEUE_TYPE_SDMA, KFD_QUEUE_TYPE_SDMA_XGMI and
// KFD_QUEUE_TYPE_SDMA_BY_ENG_ID of the driver.
constexpr std::array<std::string_view, 3> kSdmaTypes = {"1", "4", "5"};
// Entries of processes that use KFD, below the root of sysfs.
constexpr const char* kKfdProcesses = "/class/kfd/kfd/proc/";

std::string device_number(dev_t device) { return std::to_string(major(device)) + ":" + std::to_string(minor(device)); }

std::optional<dev_t> parse_device(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto major_number = parse_integer<std::uint32_t>(text.substr(0, colon));
  const auto minor_number = parse_integer<std::uint32_t>(text.substr(colon + 1));
  if (!major_number || !minor_number) return std::nullopt;
  return makedev(*major_number, *minor_number);
}

Result<DeviceNode> node_of(std::string name, const std::string& sysfs_file) {
  ASSIGN_OR_RETURN(const std::string text, first_word(sysfs_file));
  const auto number = parse_device(text);
  if (!number) return Error(ENODEV, sysfs_file + ": no device number");
  return DeviceNode{std::move(name), *number};
}

// N of the entry cardN; nothing when there is none.
Result<std::optional<std::uint32_t>> find_card(const std::string& path) {
  DIR* dir = os::opendir(path.c_str());
  if (dir == nullptr) {
    auto error = Error::from_errno(errno, path);
    if (base::is_absence(error)) return std::optional<std::uint32_t>();
    return error;
  }
  std::optional<std::uint32_t> number;
  errno = 0;  // tells a failure from the end
  while (const dirent* entry = os::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(kCardName)) number = parse_integer<std::uint32_t>(name.substr(kCardName.size()));
    errno = 0;
  }
  const int code = errno;
  os::closedir(dir);
  if (code != 0) return Error::from_errno(code, path);
  return number;
}

// Makes the node in `directory`, opens it, and takes its name away again.
Result<UniqueFd> open_new_node(int directory, const std::string& name, dev_t number, int flags) {
  constexpr mode_t kOwnerOnly = S_IFCHR | 0600;
  (void)os::unlinkat(directory, name.c_str(), 0);  // of a task that was killed in here
  if (os::mknodat(directory, name.c_str(), kOwnerOnly, number) != 0) return Error::from_errno(errno, "mknod");
  auto fd = open_device_at(directory, name, number, flags);
  (void)os::unlinkat(directory, name.c_str(), 0);
  return fd;
}

// A tmpfs that nobody else sees, and that ends with its last open file.
Result<UniqueFd> detached_tmpfs() {
  const UniqueFd context(os::fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context.valid()) return Error::from_errno(errno, "fsopen");
  if (os::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return Error::from_errno(errno, "fsconfig");
  UniqueFd mount(os::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
  if (!mount.valid()) return Error::from_errno(errno, "fsmount");
  return mount;
}

}  // namespace

Result<UniqueFd> open_device_at(int directory, const std::string& name, dev_t number, int flags) {
  UniqueFd fd(os::openat(directory, name.c_str(), flags | O_NOFOLLOW));
  struct stat status {};
  if (!fd.valid() || os::fstat(fd.get(), &status) != 0) return Error::from_errno(errno, "open");
  if (!S_ISCHR(status.st_mode) || status.st_rdev != number)
    return Error(ENXIO, "open: somebody has replaced the node by another file");
  return fd;
}

Result<DeviceFile> Devices::identify(const struct stat& status) const {
  if (!S_ISCHR(status.st_mode)) return DeviceFile();
  const std::string number = device_number(status.st_rdev);
  ASSIGN_OR_RETURN(const std::string kfd, first_word(roots_.sys + "/class/kfd/kfd/dev"));
  if (number == kfd) return DeviceFile{DeviceKind::kKfd, 0};
  const std::string node = roots_.sys + "/dev/char/" + number;
  ASSIGN_OR_RETURN(const std::string target, read_link_if_there(node));
  const std::string name = base_name(target);
  if (!name.starts_with(kRenderName)) return DeviceFile();
  const auto minor_number = parse_integer<std::uint32_t>(std::string_view(name).substr(kRenderName.size()));
  if (!minor_number) return DeviceFile();
  ASSIGN_OR_RETURN(const std::string driver, read_link_if_there(node + "/device/driver"));
  if (base_name(driver) != kDriver) return DeviceFile();
  return DeviceFile{DeviceKind::kRender, *minor_number};
}

DeviceFile Devices::identify_path(std::string_view path) const {
  while (path.starts_with("//")) path.remove_prefix(1);
  if (path == "/dev/kfd") return {DeviceKind::kKfd, 0};
  const std::string prefix = "/dev/dri/" + std::string(kRenderName);
  if (!path.starts_with(prefix)) return {};
  const auto minor_number = parse_integer<std::uint32_t>(path.substr(prefix.size()));
  if (!minor_number) return {};
  return {DeviceKind::kRender, *minor_number};
}

Result<DeviceNode> Devices::kfd_node() const { return node_of("kfd", roots_.sys + "/class/kfd/kfd/dev"); }

Result<DeviceNode> Devices::render_node(std::uint32_t minor_number) const {
  const std::string name = std::string(kRenderName) + std::to_string(minor_number);
  return node_of("dri/" + name, roots_.sys + "/class/drm/" + name + "/dev");
}

Result<UniqueFd> Devices::open_path(const std::string& path, dev_t number, int flags) const {
  UniqueFd fd(os::open(path.c_str(), flags));
  struct stat status {};
  if (!fd.valid() || os::fstat(fd.get(), &status) != 0) return Error::from_errno(errno, path);
  if (!S_ISCHR(status.st_mode) || status.st_rdev != number) return Error(ENXIO, path + " is another device");
  return fd;
}

Result<UniqueFd> Devices::open_short_lived(const DeviceNode& node, int flags) const {
  const std::string name =
      std::string(kShortLivedNode) + std::to_string(os::getpid()) + "." + std::to_string(minor(node.number));
  std::string tried;
  for (const char* directory : {"/dri", "", "/shm"}) {
    const std::string path = roots_.dev + directory;
    const UniqueFd at(os::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at.valid()) continue;
    auto fd = open_new_node(at.get(), name, node.number, flags);
    if (fd.ok()) return fd;
    tried += "; a node in " + path + ": " + fd.error().message();
  }
  auto mount = detached_tmpfs();
  if (!mount.ok()) return Error(mount.error().code(), mount.error().message() + tried);
  auto fd = open_new_node(mount->get(), name, node.number, flags);
  if (!fd.ok()) return Error(fd.error().code(), fd.error().message() + tried);
  return fd;
}

Result<UniqueFd> Devices::open_node(const DeviceNode& node, int extra_flags) const {
  const int flags = O_RDWR | O_CLOEXEC | extra_flags;
  const std::string path = roots_.dev + "/" + node.name;
  auto usual = open_path(path, node.number, flags);
  if (usual.ok()) return usual;
  auto other = open_short_lived(node, flags);
  if (other.ok()) return other;
  // The second attempt is for paths that are missing or wrong; for all else the first error is the reason.
  const int code = usual.error().code();
  std::string message = "opening device " + device_number(node.number) + ": " + std::move(usual).error().message();
  if (code == ENOENT || code == ENOTDIR || code == ENXIO) message += "; " + other.error().message();
  return Error(code, message);
}

Result<UniqueFd> Devices::open_kfd() const {
  ASSIGN_OR_RETURN(const DeviceNode node, kfd_node());
  return open_node(node);
}

Result<UniqueFd> Devices::open_render(std::uint32_t minor_number, int extra_flags) const {
  ASSIGN_OR_RETURN(const DeviceNode node, render_node(minor_number));
  return open_node(node, extra_flags);
}

Result<std::vector<topology::Node>> Devices::topology() const {
  return topology::snapshot(roots_.sys + "/class/kfd/kfd/topology");
}

// "pid %8d command NAME:"
constexpr std::string_view kCommand = " command ";
constexpr std::size_t kGemInfoName = 12 + kCommand.size();

// debugfs has the GPU under the number of its card. In amdgpu_gem_info a line "pid PID command NAME:" begins each file,
// and a line "HANDLE: ..." follows for each of its objects.
Result<std::optional<std::vector<ListedFile>>> Devices::listed_files(std::uint32_t minor_number) const {
  const std::string drm =
      roots_.sys + "/class/drm/" + std::string(kRenderName) + std::to_string(minor_number) + "/device/drm";
  ASSIGN_OR_RETURN(const auto card, find_card(drm));
  if (!card) return std::optional<std::vector<ListedFile>>();
  auto text = base::read_text(roots_.sys + "/kernel/debug/dri/" + std::to_string(*card) + "/amdgpu_gem_info");
  if (!text.ok()) {
    const int code = text.error().code();
    // EPERM: the kernel is locked down.
    if (base::is_absence(text.error()) || code == EACCES || code == EPERM)
      return std::optional<std::vector<ListedFile>>();
    return std::move(text).error();
  }
  std::vector<ListedFile> files;
  std::istringstream lines(std::move(text).value());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    pid_t pid = 0;
    if (!(words >> first)) continue;
    // A program chooses the 15 bytes of its name, newlines too. They are too few for the columns of a header.
    if (first == "pid" && words >> pid && line.size() > kGemInfoName &&
        line.substr(kGemInfoName - kCommand.size(), kCommand.size()) == kCommand) {
      files.push_back({pid, {}});
    } else if (line.starts_with("\t\t0x") && first.ends_with(':') && !files.empty() && !files.back().object) {
      files.back().object = parse_integer<std::uint32_t>(std::string_view(first).substr(2, first.size() - 3), 16);
    }
  }
  return std::optional(std::move(files));
}

bool Devices::has_kfd_entry(std::uint32_t pid) const {
  return os::access((roots_.sys + kKfdProcesses + std::to_string(pid)).c_str(), F_OK) == 0;
}

std::vector<QueueHolder> Devices::sdma_holders() const {
  std::set<std::pair<pid_t, std::uint32_t>> found;
  const std::string processes = roots_.sys + kKfdProcesses;
  const auto pids = numbers_in<pid_t>(processes);
  for (const pid_t pid : pids.ok() ? *pids : std::vector<pid_t>()) {
    const std::string directory = processes + std::to_string(pid) + "/queues/";
    const auto queues = numbers_in<std::uint32_t>(directory);
    for (const auto queue : queues.ok() ? *queues : std::vector<std::uint32_t>()) {
      const std::string path = directory + std::to_string(queue);
      const auto type = first_word(path + "/type");
      const auto gpu = first_word(path + "/gpuid");
      if (!type.ok() || !gpu.ok()) continue;
      const auto gpu_id = parse_integer<std::uint32_t>(*gpu);
      bool is_sdma = false;
      for (const std::string_view sdma : kSdmaTypes) is_sdma = is_sdma || *type == sdma;
      if (is_sdma && gpu_id) found.insert({pid, *gpu_id});
    }
  }
  std::vector<QueueHolder> holders;
  for (const auto& [pid, gpu_id] : found) {
    std::string comm = base::read_text_or_empty(roots_.proc + "/" + std::to_string(pid) + "/comm");
    while (!comm.empty() && comm.back() == '\n') comm.pop_back();
    holders.push_back({pid, std::move(comm), gpu_id});
  }
  return holders;
}

}  // namespace plugin
