// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// import-and-copy NODE FD SIZE SEED: imports the dma-buf FD, checks that it holds SEED's pattern by a copy of the GPU,
// and overwrites it with SEED + 1's.
#include "drmtest/tests/scenarios.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "drmtest/harness/buffer.h"
#include "drmtest/harness/submit.h"

extern char** environ;

namespace drmtest {
namespace {

base::Status copy(const Device& device, Submitter& submitter, const Buffer& to, const Buffer& from) {
  Commands commands(device, AMDGPU_HW_IP_DMA);
  commands.copy(to.address(), from.address(), to.size());
  return submitter.run({.bos = {to.handle(), from.handle()}}, commands);
}

base::Status import_and_copy(const std::string& node, int fd, std::uint64_t size, std::uint32_t seed) {
  ASSIGN_OR_RETURN(const Device device, Device::open(node));
  ASSIGN_OR_RETURN(const Context context, Context::create(device));
  ASSIGN_OR_RETURN(Submitter submitter, Submitter::create(device, context));
  ASSIGN_OR_RETURN(const Buffer copied, Buffer::create(device, gtt(size)));
  amdgpu_bo_import_result imported{};
  TRY(check(
      amdgpu_bo_import(device.handle(), amdgpu_bo_handle_type_dma_buf_fd, static_cast<std::uint32_t>(fd), &imported),
      "import"));
  ASSIGN_OR_RETURN(const Buffer shared, Buffer::map(device, Bo(imported.buf_handle, imported.alloc_size), {}));
  if (shared.size() != size) return base::Error(EINVAL, "the imported BO has another size");
  TRY(copy(device, submitter, copied, shared));
  if (first_mismatch(copied.words(), seed) != copied.words().size()) return base::Error(EILSEQ, "other contents");
  write_pattern(copied.words(), seed + 1);
  return copy(device, submitter, shared, copied);
}

}  // namespace

int run_scenario(const std::vector<std::string>& arguments) {
  base::Status status = base::Error(EINVAL, "no such scenario");
  if (arguments.size() == 5 && arguments[0] == "import-and-copy")
    status = import_and_copy(arguments[1], std::stoi(arguments[2]), std::stoull(arguments[3]),
                             static_cast<std::uint32_t>(std::stoul(arguments[4])));
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "scenario %s: %s\n", arguments[0].c_str(), status.error().message().c_str());
  return EXIT_FAILURE;
}

int run_in_other_process(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"drmtest", "--scenario"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) != 0) return EXIT_FAILURE;
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return EXIT_FAILURE;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace drmtest
