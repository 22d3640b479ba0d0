// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A HIP program that tests and demos checkpoint; it does not know about checkpoints. It computes a layer of a
// transformer whose softmax stays in flight, its waves waiting in the middle of their rows, until the caller lets it
// continue.
//   hip_demo --dir FOLDER [--undisturbed]
// The caller and the program communicate by files, as with the demo program (kfdtest-criu/demo/message_files.h). The
// result is a checksum of the layer's bits.
#include <hip/hip_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hiptest/device_memory.h"
#include "hiptest/transformer.h"
#include "kfdtest-criu/demo/message_files.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/pattern.h"

namespace hiptest {
namespace {

constexpr int kUsage = 64;

struct Options {
  std::string folder;
  bool undisturbed = false;
};

base::Status run_demo(const Options& options, const kfdtest::MessageFiles& messages) {
  std::uint32_t* gate = nullptr;
  TRY(checked(hipHostMalloc(reinterpret_cast<void**>(&gate), sizeof(*gate), hipHostMallocCoherent), "hipHostMalloc"));
  __atomic_store_n(gate, options.undisturbed ? 1 : 0, __ATOMIC_RELEASE);
  const auto layer = make_transformer();
  TRY(layer->prepare());
  TRY(layer->begin(gate));
  messages.say("pending: waves wait in the middle of a softmax");
  if (!options.undisturbed) {
    TRY(messages.publish("state", "pending " + std::to_string(::getpid())));
    while (!messages.told_to_go()) kfdtest::poll_pause();
    messages.say("go: the program continues");
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
  }
  ASSIGN_OR_RETURN(const std::vector<double> result, layer->end());
  kfdtest::Checksum checksum;
  checksum.add(std::as_bytes(std::span(result)));
  return messages.publish_result(checksum.hex());
}

base::Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--undisturbed") == 0) {
      options.undisturbed = true;
    } else if (std::strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
      options.folder = argv[++i];
    } else {
      return base::Error(EINVAL, std::string("no option ") + argv[i]);
    }
  }
  if (options.folder.empty()) return base::Error(EINVAL, "--dir is needed");
  return options;
}

}  // namespace
}  // namespace hiptest

int main(int argc, char** argv) {
  const auto options = hiptest::parse(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "hip_demo: %s\n", options.error().message().c_str());
    return hiptest::kUsage;
  }
  const kfdtest::MessageFiles messages(options->folder);
  const base::Status status = hiptest::run_demo(*options, messages);
  return status.ok() ? EXIT_SUCCESS : messages.fail(status.error().message());
}
