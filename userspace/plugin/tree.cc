// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// procfs names the tracees, their descriptors and mappings; pidfd_getfd() gives the open files themselves, without an
// ioctl and without the help of the task.
#include "plugin/tree.h"

#include <linux/kcmp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/os.h"
#include "base/text_file.h"
#include "plugin/dmabuf_file.h"
#include "plugin/sync_file.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

std::string device_path(const DeviceFile& device) {
  if (device.kind == DeviceKind::kDmabuf) return "a DMA-buf";
  if (device.kind == DeviceKind::kSyncFile) return "a sync file";
  return device.kind == DeviceKind::kKfd ? "/dev/kfd" : "/dev/dri/renderD" + std::to_string(device.minor);
}

template <typename T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Entries of a directory that are numbers, ascending.
Result<std::vector<int>> numbers_in(const std::string& path) {
  std::vector<int> numbers;
  DIR* dir = os::opendir(path.c_str());
  if (dir == nullptr) return Error::from_errno(errno, path);
  int code = 0;
  while (true) {
    errno = 0;  // tells a failure from the end
    const dirent* entry = os::readdir(dir);
    code = errno;
    if (entry == nullptr) break;
    if (const auto number = parse_number<int>(entry->d_name)) numbers.push_back(*number);
  }
  os::closedir(dir);
  if (code != 0) return Error::from_errno(code, path);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The value of a line "KEY:<white space>VALUE" of /proc/PID/status.
std::string field_of(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    const auto value = line.find_first_not_of(" \t", key.size() + 1);
    return value == std::string::npos ? std::string() : line.substr(value);
  }
  return {};
}

// What a link of /proc/PID/fd says of a file that is no device.
Result<DeviceKind> kind_of_link(const std::string& path) {
  std::array<char, 32> target{};
  const ssize_t length = os::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return Error::from_errno(errno, path);
  const std::string_view link(target.data(), static_cast<std::size_t>(length));
  if (link.starts_with(dmabuf_file::kPath)) return DeviceKind::kDmabuf;
  return link == sync_file::kPath ? DeviceKind::kSyncFile : DeviceKind::kNotOurs;
}

// A line of /proc/PID/maps.
struct MapsLine {
  std::string range;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::string path;  // empty: anonymous
};

std::optional<MapsLine> parse_maps_line(const std::string& text) {
  std::istringstream words(text);
  MapsLine line;
  std::string mode;
  std::string offset;
  std::string device;
  std::string inode;
  if (!(words >> line.range >> mode >> offset >> device >> inode)) return std::nullopt;
  words >> std::ws;
  std::getline(words, line.path);
  const auto dash = line.range.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto start = parse_number<std::uint64_t>(std::string_view(line.range).substr(0, dash), 16);
  const auto end = parse_number<std::uint64_t>(std::string_view(line.range).substr(dash + 1), 16);
  const auto at = parse_number<std::uint64_t>(offset, 16);
  if (!start || !end || !at || *end <= *start) return std::nullopt;
  line.start = *start;
  line.end = *end;
  line.offset = *at;
  return line;
}

Result<bool> is_same_file(int one, int other) {
  const long order = os::kcmp(os::getpid(), os::getpid(), KCMP_FILE, static_cast<unsigned long>(one),
                              static_cast<unsigned long>(other));
  if (order < 0) return Error::from_errno(errno, "kcmp of two files");
  return order == 0;
}

class Scan {
 public:
  explicit Scan(const System& system) : system_(system) {}

  Result<Tree> run() {
    ASSIGN_OR_RETURN(const std::vector<int> pids, numbers_in(system_.roots().proc));
    for (const pid_t pid : pids) {
      ASSIGN_OR_RETURN(const bool is_tracee, is_traced_here(pid));
      if (is_tracee) TRY(add_task(pid));
    }
    return std::move(tree_);
  }

 private:
  [[nodiscard]] std::string path_of(pid_t pid, std::string_view entry) const {
    return system_.roots().proc + "/" + std::to_string(pid) + "/" + std::string(entry);
  }

  // Other processes come and go meanwhile.
  [[nodiscard]] Result<bool> is_traced_here(pid_t pid) const {
    const auto status = base::read_text(path_of(pid, "status"));
    if (!status.ok() && (status.error().code() == ENOENT || status.error().code() == ESRCH)) return false;
    if (!status.ok()) return status.error();
    return field_of(*status, "TracerPid") == std::to_string(os::gettid());
  }

  Status add_task(pid_t pid) {
    Task task;
    task.pid = pid;
    ASSIGN_OR_RETURN(const std::string status, base::read_text(path_of(pid, "status")));
    // The pids of the task from this namespace inwards.
    const std::string pids = field_of(status, "NSpid");
    const auto inner = parse_number<std::uint32_t>(std::string_view(pids).substr(pids.find_last_of(" \t") + 1));
    if (!inner) return Error(EPROTO, path_of(pid, "status") + " has no NSpid");
    task.inner_pid = *inner;
    ASSIGN_OR_RETURN(task.comm, base::read_text(path_of(pid, "comm")));
    if (!task.comm.empty() && task.comm.back() == '\n') task.comm.pop_back();
    tree_.tasks.push_back(std::move(task));
    TRY(add_mappings(pid));
    return add_descriptors(pid);
  }

  // Devices are looked up once for each number.
  Result<DeviceFile> identify(const struct stat& status) {
    if (!S_ISCHR(status.st_mode)) return DeviceFile();
    const auto found = devices_.find(status.st_rdev);
    if (found != devices_.end()) return DeviceFile{found->second};
    ASSIGN_OR_RETURN(const DeviceFile device, system_.identify(status));
    devices_[status.st_rdev] = device;
    return DeviceFile{device};
  }

  Result<DeviceFile> identify_mapping(pid_t pid, const MapsLine& line) {
    struct stat status {};
    const std::string file = path_of(pid, "map_files/" + line.range);
    // The path may name something else by now, or be one of another mount namespace.
    if (os::stat(file.c_str(), &status) == 0) return identify(status);
    // EPERM, EACCES: map_files needs a capability that CRIU has not got in a user namespace.
    const Error error = Error::from_errno(errno, file);
    if (!base::is_absence(error) && error.code() != EPERM && error.code() != EACCES) return error;
    return system_.identify_path(line.path);
  }

  Status add_mappings(pid_t pid) {
    ASSIGN_OR_RETURN(const std::string maps, base::read_text(path_of(pid, "maps")));
    std::istringstream lines(maps);
    for (std::string text; std::getline(lines, text);) {
      const auto line = parse_maps_line(text);
      if (!line) return Error(EPROTO, path_of(pid, "maps") + ": cannot understand '" + text + "'");
      if (!line->path.starts_with('/')) continue;
      if (line->path.starts_with(dmabuf_file::kPath)) {
        tree_.mapped_dmabufs.push_back({tree_.tasks.size() - 1, "a mapping at 0x" + line->range});
        continue;
      }
      ASSIGN_OR_RETURN(const DeviceFile device, identify_mapping(pid, *line));
      if (device.kind == DeviceKind::kNotOurs) continue;
      tree_.tasks.back().mappings.push_back({device, line->start, line->end - line->start, line->offset});
    }
    return {};
  }

  Status add_descriptors(pid_t pid) {
    ASSIGN_OR_RETURN(const std::vector<int> numbers, numbers_in(path_of(pid, "fd")));
    UniqueFd pidfd;
    for (const int number : numbers) {
      const std::string path = path_of(pid, "fd/" + std::to_string(number));
      ASSIGN_OR_RETURN(const DeviceKind kind, kind_of_link(path));
      if (kind != DeviceKind::kNotOurs) {
        TRY(add_file(pidfd, {kind, 0}, pid, number));
        continue;
      }
      struct stat status {};
      if (os::stat(path.c_str(), &status) != 0) return Error::from_errno(errno, path);
      ASSIGN_OR_RETURN(const DeviceFile device, identify(status));
      if (device.kind != DeviceKind::kNotOurs) TRY(add_file(pidfd, device, pid, number));
    }
    return {};
  }

  Status add_file(UniqueFd& pidfd, const DeviceFile& device, pid_t pid, int number) {
    const std::string name =
        tree_.tasks.back().name() + ", descriptor " + std::to_string(number) + " (" + device_path(device) + ")";
    if (!pidfd.valid()) pidfd.reset(os::pidfd_open(pid, 0));
    if (!pidfd.valid()) return Error::from_errno(errno, name + ": pidfd_open");
    UniqueFd fd(os::pidfd_getfd(pidfd.get(), number, 0));
    if (!fd.valid()) return Error::from_errno(errno, name + ": pidfd_getfd");
    const Holder holder{tree_.tasks.size() - 1, number};
    for (OpenFile& file : tree_.files) {
      if (file.device.kind != device.kind || file.device.minor != device.minor) continue;
      ASSIGN_OR_RETURN(const bool is_same, is_same_file(file.fd.get(), fd.get()));
      if (!is_same) continue;
      file.holders.push_back(holder);
      return {};
    }
    tree_.files.push_back({std::move(fd), device, {holder}});
    return {};
  }

  const System& system_;
  Tree tree_;
  std::map<dev_t, DeviceFile> devices_;
};

}  // namespace

std::string Task::name() const { return "program '" + comm + "' (process " + std::to_string(pid) + ")"; }

Result<const OpenFile*> Tree::find(int fd) const {
  for (const OpenFile& file : files) {
    ASSIGN_OR_RETURN(const bool is_same, is_same_file(file.fd.get(), fd));
    if (is_same) return &file;
  }
  return nullptr;
}

Result<std::size_t> Tree::count_descriptors(const OpenFile& file) const {
  std::vector<Holder> counted;
  for (const Holder& holder : file.holders) {
    bool is_counted = false;
    for (const Holder& other : counted) {
      if (other.number != holder.number) continue;
      const long order = os::kcmp(tasks[other.task].pid, tasks[holder.task].pid, KCMP_FILES, 0, 0);
      if (order < 0) return Error::from_errno(errno, "kcmp of two tables of descriptors");
      is_counted = is_counted || order == 0;
    }
    if (!is_counted) counted.push_back(holder);
  }
  return counted.size();
}

const Holder& Tree::asked_holder(const OpenFile& file) const {
  return *std::min_element(file.holders.begin(), file.holders.end(), [this](const Holder& one, const Holder& other) {
    return tasks[one.task].inner_pid < tasks[other.task].inner_pid;
  });
}

std::string Tree::name_of(const OpenFile& file) const {
  const Holder& holder = file.holders.front();
  return tasks[holder.task].name() + ", descriptor " + std::to_string(holder.number) + " (" + device_path(file.device) +
         ")";
}

Result<Tree> scan_tree(const System& system) { return Scan(system).run(); }

}  // namespace plugin
