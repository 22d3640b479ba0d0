// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The program the demo checkpoints: an ordinary user of libhsakmt that knows nothing of checkpoints.
//   demo_program --dir FOLDER [--gpus 1|2] [--seed N] [--svm] [--undisturbed]
// Puts its GPU work in place, says "pending", waits for the file "go", lets the work finish, and prints a checksum of
// everything. With --undisturbed it waits for nothing. See message_files.h for the files.
#include <hsakmt.h>

#include <cstdint>

#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/demo/pending_work.h"
#include "kfdtest-criu/harness/gpu.h"
#include "kfdtest-criu/harness/session.h"

namespace kfdtest {
namespace {

struct Options {
  std::uint64_t gpus = 1;
  std::uint64_t seed = 0xde30;
  bool svm = false;  // one more queue, with its save area in SVM
};

base::Status run_demo(const CommandLine& line, const Options& options, const MessageFiles& messages) {
  ASSIGN_OR_RETURN(const Session session, Session::open(DriverKind::kThunk));
  if (session.gpus().size() < options.gpus) return base::Error(ENODEV, "not enough GPUs");
  const Gpu& gpu = session.gpus().front();
  messages.say("setup: GPU of node " + std::to_string(gpu.node) + ", " + std::to_string(gpu.vram_size / kMiB) +
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
  messages.say("pending: packets wait in PM4, SDMA and AQL queues, a thread waits for an event");
  TRY(wait_pending(line, messages, [&work] { return work->beat(); }));
  TRY(work->expect_pending());
  if (second) TRY(second->expect_pending());
  if (svm) TRY(svm->expect_pending());
  TRY(work->finish());
  if (second) TRY(second->finish());
  if (svm) TRY(svm->finish());
  messages.say("finished: the event arrived, all queues are idle");
  Checksum checksum;
  work->add_to(checksum);
  if (second) second->add_to(checksum);
  if (svm) svm->add_to(checksum);
  return messages.publish_result(checksum.hex());
}

}  // namespace
}  // namespace kfdtest

int main(int argc, char** argv) {
  kfdtest::Options options;
  kfdtest::CommandLine line;
  line.number("--gpus", options.gpus, 1, 2).number("--seed", options.seed, 0, UINT64_MAX).flag("--svm", options.svm);
  return run_program(argc, argv, line,
                     [&](const kfdtest::MessageFiles& messages) { return run_demo(line, options, messages); });
}
