// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Prints what the processes of a session are.
//   field_look SESSION
// It prints for each process, in the form that tests/harness/field.py reads: its state and those of its threads, its
// tracer, its descriptors with targets and flags, how many mappings of devices it has, and its video memory and queues
// as amdkfd shows them. In an emulated guest the start of a program takes longer than all of this, so one program does
// it. What has ended meanwhile is left out.
#include <dirent.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/parse.h"

namespace {

constexpr int kUsage = 64;
// Field of /proc/PID/stat behind the name, which ends with the last parenthesis: state, parent, group, session.
constexpr int kSessionField = 4;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  std::vector<std::string> names;
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  return names;
}

// Prints the lines of a file that begin with a word, each behind a prefix.
void print_lines(const std::string& path, std::string_view word, const std::string& prefix) {
  std::istringstream text(text_of(path));
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(word)) std::printf("%s%s\n", prefix.c_str(), line.c_str());
}

bool is_of_session(const std::string& process, std::uint64_t session) {
  const std::string stat = text_of(process + "/stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int number = 0; number < kSessionField; ++number) fields >> field;
  return base::parse_u64(field) == session;
}

void print_descriptors(const std::string& process) {
  for (const std::string& number : names_in(process + "/fd")) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink((process + "/fd/" + number).c_str(), target.data(), target.size() - 1);
    if (size >= 0) std::printf("fd %s -> %s\n", number.c_str(), target.data());
    print_lines(process + "/fdinfo/" + number, "flags:", process + "/fdinfo/" + number + ":");
  }
}

int device_mappings(const std::string& process) {
  std::istringstream maps(text_of(process + "/maps"));
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(" /dev/") != std::string::npos) ++count;
  return count;
}

void print_process(const std::string& pid) {
  const std::string process = "/proc/" + pid;
  const std::string kfd = "/sys/class/kfd/kfd/proc/" + pid;
  std::printf("process %s\n", pid.c_str());
  print_lines(process + "/status", "State:", "");
  print_lines(process + "/status", "TracerPid:", "");
  for (const std::string& thread : names_in(process + "/task"))
    print_lines(process + "/task/" + thread + "/status", "State:", "thread ");
  print_descriptors(process);
  std::printf("mappings %d\n", device_mappings(process));
  for (const std::string& name : names_in(kfd))
    if (name.starts_with("vram_")) print_lines(kfd + "/" + name, "", kfd + "/" + name + ":");
  std::printf("queues %zu\n", names_in(kfd + "/queues").size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<std::uint64_t> session = argc == 2 ? base::parse_u64(argv[1]) : std::nullopt;
  if (!session) {
    std::fprintf(stderr, "usage: field_look SESSION\n");
    return kUsage;
  }
  for (const std::string& name : names_in("/proc"))
    if (base::parse_u64(name) && is_of_session("/proc/" + name, *session)) print_process(name);
  return 0;
}
