// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/processes.h"

#include <fcntl.h>
#include <linux/kcmp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <sstream>

#include "base/os.h"
#include "plugin/proc_text.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::UniqueFd;

constexpr std::uint64_t kPageSize = 4096;

struct Range {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// "START-END", hexadecimal.
std::optional<Range> parse_range(std::string_view text) {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto start = parse_integer<std::uint64_t>(text.substr(0, dash), 16);
  const auto end = parse_integer<std::uint64_t>(text.substr(dash + 1), 16);
  if (!start || !end || *start >= *end) return std::nullopt;
  return Range{*start, *end};
}

// The mappings in smaps, as in proc(5), that are registered for missing pages: VmFlags has "um".
std::vector<Range> missing_ranges(const std::string& smaps) {
  std::vector<Range> ranges;
  std::optional<Range> current;
  std::istringstream in(smaps);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word)) continue;
    if (const auto range = parse_range(word)) {
      current = range;
    } else if (word == "VmFlags:" && current) {
      while (words >> word)
        if (word == "um") ranges.push_back(*current);
    }
  }
  return ranges;
}

}  // namespace

Result<std::vector<std::uint32_t>> Processes::namespace_pids(pid_t pid) const {
  ASSIGN_OR_RETURN(const std::string pids, field(roots_.proc + "/" + std::to_string(pid) + "/status", "NSpid"));
  return numbers_of(pids);
}

Result<bool> Processes::same_file(int first, int second) const {
  const pid_t self = os::getpid();
  const long order =
      os::kcmp(self, self, KCMP_FILE, static_cast<unsigned long>(first), static_cast<unsigned long>(second));
  if (order < 0 && errno != EBADF)
    return Error::from_errno(errno, "kcmp of descriptors " + std::to_string(first) + " and " + std::to_string(second));
  return order == 0;
}

Result<std::optional<int>> Processes::find_duplicate(int fd) const {
  ASSIGN_OR_RETURN(const std::vector<int> numbers, descriptors());
  for (const int other : numbers) {
    if (other == fd) continue;
    ASSIGN_OR_RETURN(const bool is_same, same_file(fd, other));
    if (is_same) return std::optional<int>(other);
  }
  return std::optional<int>();
}

Result<std::vector<int>> Processes::descriptors() const {
  ASSIGN_OR_RETURN(const std::vector<int> entries, numbers_in<int>(roots_.proc + "/self/fd"));
  std::vector<int> numbers;
  for (const int fd : entries) {
    ASSIGN_OR_RETURN(const std::string path, descriptor_path(fd));
    if (!path.empty()) numbers.push_back(fd);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<std::string> Processes::descriptor_path(int fd) const {
  return read_link_if_there(roots_.proc + "/self/fd/" + std::to_string(fd));
}

Result<UniqueFd> Processes::copy_descriptor(pid_t pid, int number) const {
  const UniqueFd process(os::pidfd_open(pid, 0));
  if (!process.valid()) return Error::from_errno(errno, "pidfd_open of process " + std::to_string(pid));
  UniqueFd fd(os::pidfd_getfd(process.get(), number, 0));
  if (!fd.valid())
    return Error::from_errno(
        errno, "pidfd_getfd of descriptor " + std::to_string(number) + " of process " + std::to_string(pid));
  return fd;
}

Result<std::uint64_t> Processes::fill_missing_memory(pid_t pid) const {
  const std::string process = roots_.proc + "/" + std::to_string(pid);
  ASSIGN_OR_RETURN(const std::string smaps, base::read_text_if_there(process + "/smaps"));
  const std::vector<Range> ranges = missing_ranges(smaps);
  if (ranges.empty()) return std::uint64_t{0};
  const UniqueFd memory(os::open((process + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid()) return Error::from_errno(errno, process + "/mem");
  std::uint64_t filled = 0;
  for (const Range& range : ranges) {
    for (std::uint64_t page = range.start; page < range.end; page += kPageSize) {
      std::byte byte{};
      ssize_t count = 0;
      do {
        count = os::pread(memory.get(), &byte, 1, static_cast<off_t>(page));
      } while (count < 0 && errno == EINTR);
      // A mapping that nobody may read has no contents that a GPU could want.
      if (count < 0 && errno != EIO && errno != EFAULT) return Error::from_errno(errno, process + "/mem");
      if (count == 1) filled += kPageSize;
    }
  }
  return filled;
}

}  // namespace plugin
