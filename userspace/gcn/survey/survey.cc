// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// usage: gcn_survey NAME FILE...
//
// Looks for instructions that vasicd does not execute in the machine code that the files have for gfx900, gfx906,
// gfx908 and gfx90a: libraries, or files of kernels. Prints a row of a table for each chip: NAME, the chip, how many
// functions and instructions there are, how many are not executed, and each of these with its number. A dword that is
// no instruction of the chip, constants between functions for example, counts as `?`. Status: 0, also if some are not
// executed; 1 if a file cannot be read or no file has code; 64 usage.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "gcn/decode/decode.h"
#include "gcn/execute.h"
#include "gcn/survey/code_objects.h"

namespace gcn::survey {
namespace {

constexpr auto kChips = std::to_array<std::string_view>({"gfx900", "gfx906", "gfx908", "gfx90a"});

struct Count {
  std::uint64_t functions = 0;
  std::uint64_t instructions = 0;
  std::uint64_t not_executed = 0;
  std::map<std::string_view, std::uint64_t> missing;
};
using Counts = std::array<Count, kChips.size()>;

void count_function(Isa isa, std::span<const std::byte> code, Count& count) {
  ++count.functions;
  std::vector<std::uint32_t> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), words.size() * 4);
  for (std::size_t i = 0; i < words.size();) {
    const auto instruction = decode(isa, std::span(words).subspan(i));
    const bool is_executed = instruction && handlers()[instruction->op] != nullptr;
    ++count.instructions;
    if (!is_executed) {
      ++count.not_executed;
      ++count.missing[instruction ? name(instruction->op) : "?"];
    }
    i += instruction ? instruction->bytes / 4 : 1;
  }
}

// False, with a message, if the file cannot be read.
bool count_file(const char* path, Counts& counts) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat found {};
  if (file < 0 || ::fstat(file, &found) != 0 || found.st_size == 0) {
    std::fprintf(stderr, "gcn_survey: error: %s: %s\n", path, file < 0 ? std::strerror(errno) : "is empty");
    if (file >= 0) ::close(file);
    return false;
  }
  const auto size = static_cast<std::size_t>(found.st_size);
  void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (bytes == MAP_FAILED) {
    std::fprintf(stderr, "gcn_survey: error: %s: %s\n", path, std::strerror(errno));
    return false;
  }
  for (const CodeObject& object : find_code_objects({static_cast<const std::byte*>(bytes), size}))
    for (const Function& function : object.functions)
      count_function(object.isa, function.code, counts[static_cast<std::size_t>(object.isa)]);
  ::munmap(bytes, size);
  return true;
}

void print(const char* name, std::string_view chip, const Count& count) {
  std::string missing;
  for (const auto& [operation, times] : count.missing)
    missing += (missing.empty() ? "`" : ", `") + std::string(operation) + "` " + std::to_string(times);
  std::printf("| %s | %s | %llu | %llu | %llu | %s |\n", name, std::string(chip).c_str(),
              static_cast<unsigned long long>(count.functions), static_cast<unsigned long long>(count.instructions),
              static_cast<unsigned long long>(count.not_executed), missing.c_str());
}

}  // namespace
}  // namespace gcn::survey

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: gcn_survey NAME FILE...\n");
    return 64;
  }
  gcn::survey::Counts counts;
  bool is_good = true;
  for (int i = 2; i < argc; ++i) is_good = gcn::survey::count_file(argv[i], counts) && is_good;
  bool has_code = false;
  for (std::size_t chip = 0; chip < counts.size(); ++chip) {
    if (counts[chip].functions == 0) continue;
    has_code = true;
    gcn::survey::print(argv[1], gcn::survey::kChips[chip], counts[chip]);
  }
  if (!has_code) std::fprintf(stderr, "gcn_survey: error: the files have no code for these chips\n");
  return is_good && has_code ? 0 : 1;
}
