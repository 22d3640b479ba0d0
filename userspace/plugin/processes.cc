// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/processes.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/uio.h>

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
// At most IOV_MAX.
constexpr std::size_t kPagesAtOnce = 512;

// Bits of an entry of /proc/PID/pagemap: the page is swapped out; it is a guard page (Linux 6.15).
constexpr std::uint64_t kSwappedOut = 1ULL << 62;
constexpr std::uint64_t kGuardPage = 1ULL << 58;

struct Range {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

// "START-END", hexadecimal.
std::optional<Range> parse_range(std::string_view text) {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto start = parse_integer<std::uint64_t>(text.substr(0, dash), 16);
  const auto end = parse_integer<std::uint64_t>(text.substr(dash + 1), 16);
  if (!start || !end || *start >= *end) return std::nullopt;
  return Range{*start, *end};
}

// The mappings in smaps, as in proc(5), that are registered for missing pages: VmFlags has "um". A GPU can have nothing
// of one that cannot be read now, which has no "rd".
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
      bool is_missing = false, is_readable = false;
      while (words >> word) {
        is_missing = is_missing || word == "um";
        is_readable = is_readable || word == "rd";
      }
      if (is_missing && is_readable) ranges.push_back(*current);
    }
  }
  return ranges;
}

// Whether a page that cannot be read is a guard page (MADV_GUARD_INSTALL), which the program cannot read either. Linux
// 6.13 and 6.14 tell only that it is no missing page: there is an entry, as of one that is swapped out.
bool is_guard_page(const std::string& pagemap, std::uint64_t address) {
  const UniqueFd file(os::open(pagemap.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t entry = 0;
  const auto at = static_cast<off_t>(address / kPageSize * sizeof(entry));
  if (!file.valid() || os::pread(file.get(), &entry, sizeof(entry), at) != static_cast<ssize_t>(sizeof(entry)))
    return false;
  return (entry & (kGuardPage | kSwappedOut)) != 0;
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
  // One byte of each page. The kernel waits for a page that userfaultfd(2) has to fill only if it may let go of the
  // process's memory meanwhile: process_vm_readv(2) allows that, a read of /proc/PID/mem fails with EIO.
  std::vector<std::byte> bytes(kPagesAtOnce);
  std::vector<iovec> pages;
  std::uint64_t filled = 0;
  for (const Range& range : ranges) {
    for (std::uint64_t page = range.start; page < range.end;) {
      pages.clear();
      for (std::uint64_t next = page; next < range.end && pages.size() < kPagesAtOnce; next += kPageSize)
        pages.push_back({reinterpret_cast<void*>(next), 1});
      const iovec local{bytes.data(), pages.size()};
      const ssize_t count = os::process_vm_readv(pid, &local, 1, pages.data(), pages.size());
      if (count < 0 && errno == EINTR) continue;
      const int code = count < 0 ? errno : EIO;
      if (count < 0 && code == EFAULT && is_guard_page(process + "/pagemap", page)) {
        page += kPageSize;
        continue;
      }
      if (count <= 0)
        return Error::from_errno(code, "process " + std::to_string(pid) + ": the page at " + hexadecimal(page) +
                                           ", which --lazy-pages has to bring");
      // Fewer than asked for: the next one failed, and fails again.
      filled += static_cast<std::uint64_t>(count) * kPageSize;
      page += static_cast<std::uint64_t>(count) * kPageSize;
    }
  }
  return filled;
}

}  // namespace plugin
