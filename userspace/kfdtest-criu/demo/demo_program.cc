// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The program the demo checkpoints: an ordinary user of libhsakmt that knows nothing of checkpoints.
//   demo_program --dir FOLDER [--gpus 1|2] [--seed N] [--svm] [--undisturbed]
// Puts its GPU work in place, says "pending", waits for the file "go", lets the work finish, and prints a checksum of
// everything. With --undisturbed it waits for nothing. See outside.h for the files.
#include <hsakmt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/parse.h"
#include "kfdtest-criu/demo/outside.h"
#include "kfdtest-criu/demo/pending_work.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/env/gpu.h"

namespace kfdtest {
namespace {

constexpr int kUsage = 64;

struct Options {
  std::string folder;
  std::uint64_t gpus = 1;
  std::uint64_t seed = 0xde30;
  bool svm = false;  // one more queue, with its save area in SVM
  bool undisturbed = false;
};

base::Status run_demo(const Options& options, const Outside& outside) {
  ASSIGN_OR_RETURN(const Session session, Session::open(DriverKind::kThunk));
  if (session.gpus().size() < options.gpus) return base::Error(ENODEV, "not enough GPUs");
  const Gpu& gpu = session.gpus().front();
  outside.say("setup: GPU of node " + std::to_string(gpu.node) + ", " + std::to_string(gpu.vram_size / kMiB) +
              " MiB VRAM");
  ASSIGN_OR_RETURN(const auto work, PendingWork::start(gpu, options.seed));
  std::unique_ptr<SecondGpuWork> second;
  if (options.gpus == 2) {
    ASSIGN_OR_RETURN(second, SecondGpuWork::start(session.gpus()[1], options.seed + 3));
  }
  std::unique_ptr<SvmQueueWork> svm;
  if (options.svm) {
    ASSIGN_OR_RETURN(svm, SvmQueueWork::start(gpu));
  }
  outside.say("pending: packets wait in PM4, SDMA and AQL queues, a thread waits for an event");
  if (!options.undisturbed) {
    TRY(outside.publish("state", "pending " + std::to_string(::getpid())));
    while (!outside.told_to_go()) poll_pause();
    outside.say("go: the program continues");
  }
  TRY(work->expect_pending());
  if (second) TRY(second->expect_pending());
  if (svm) TRY(svm->expect_pending());
  TRY(work->finish());
  if (second) TRY(second->finish());
  if (svm) TRY(svm->finish());
  outside.say("finished: the event arrived, all queues are idle");
  Checksum checksum;
  work->add_to(checksum);
  if (second) second->add_to(checksum);
  if (svm) svm->add_to(checksum);
  outside.say("RESULT " + checksum.hex());
  return outside.publish("result", "RESULT " + checksum.hex());
}

base::Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--undisturbed" || name == "--svm") {
      (name == "--svm" ? options.svm : options.undisturbed) = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (name == "--dir") {
      options.folder = value;
      continue;
    }
    std::uint64_t* const number = name == "--gpus" ? &options.gpus : name == "--seed" ? &options.seed : nullptr;
    if (number == nullptr) return base::Error(EINVAL, "no option " + name);
    const auto parsed = base::parse_u64(value);
    if (!parsed.has_value()) return base::Error(EINVAL, name + " wants a number");
    *number = *parsed;
  }
  if (options.folder.empty()) return base::Error(EINVAL, "--dir is needed");
  if (options.gpus < 1 || options.gpus > 2) return base::Error(EINVAL, "--gpus is 1 or 2");
  return options;
}

}  // namespace
}  // namespace kfdtest

int main(int argc, char** argv) {
  const auto options = kfdtest::parse(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "demo_program: %s\n", options.error().message().c_str());
    return kfdtest::kUsage;
  }
  const kfdtest::Outside outside(options->folder);
  const base::Status status = kfdtest::run_demo(*options, outside);
  return status.ok() ? EXIT_SUCCESS : outside.fail(status.error().message());
}
