// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A user of libhsakmt with the pending work of demo_program and one addition that makes its checkpoint difficult.
//   field_program --dir FOLDER [--gem mapped|handle|address|high] [--children high|low] [--also kfd|pidfd] [--late]
//                 [--no-gpu] [--undisturbed]
// --late: allocates memory and creates a queue after the pending work has ended. --no-gpu: without KFD, so that only a
// GEM object uses the GPU. The files in FOLDER are those of kfdtest-criu/demo/outside.h. The result is that of
// demo_program --gpus 1 whatever the additions are: they only have to be what they were.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fieldtest/additions.h"
#include "kfdtest-criu/demo/outside.h"
#include "kfdtest-criu/demo/pending_work.h"
#include "kfdtest-criu/env/deadline.h"

namespace fieldtest {
namespace {

using kfdtest::DriverKind;
using kfdtest::GpuMemory;
using kfdtest::MemoryKind;

constexpr int kUsage = 64;
constexpr std::uint64_t kSeed = 0xde30;  // demo_program's
constexpr std::uint64_t kLateSeed = 7;
constexpr std::size_t kLateSize = 4 * kfdtest::kMiB;

struct Options {
  std::string folder;
  Additions additions;
  bool late = false;
  bool gpu = true;
  bool undisturbed = false;
};

// Memory that is allocated now is mapped by files that were opened long ago.
base::Status allocate_late(const kfdtest::Gpu& gpu) {
  ASSIGN_OR_RETURN(const GpuMemory vram, GpuMemory::allocate(gpu, MemoryKind::kVram, kLateSize));
  ASSIGN_OR_RETURN(const GpuMemory gtt, GpuMemory::allocate(gpu, MemoryKind::kGtt, kLateSize));
  kfdtest::fill_pattern(vram.bytes(), kLateSeed);
  TRY(run_alone(gpu, kfdtest::SdmaCommands(gpu).copy(gtt.gpu_address(), vram.gpu_address(), kLateSize)));
  if (kfdtest::find_mismatch(gtt.bytes(), kLateSeed))
    return base::Error(EIO, "memory allocated late has other contents");
  return {};
}

void wait_for_go(const kfdtest::Outside& outside) {
  while (!outside.told_to_go()) kfdtest::poll_pause();
  outside.say("go: the program continues");
}

base::Status run(const Options& options, const kfdtest::Outside& outside) {
  std::optional<kfdtest::Session> session;
  std::unique_ptr<kfdtest::PendingWork> work;
  if (options.gpu) {
    ASSIGN_OR_RETURN(kfdtest::Session opened, kfdtest::Session::open(DriverKind::kThunk));
    session.emplace(std::move(opened));
    ASSIGN_OR_RETURN(work, kfdtest::PendingWork::start(session->gpus().front(), kSeed));
  }
  ASSIGN_OR_RETURN(Added added, Added::make(options.additions));
  outside.say("pending");
  if (!options.undisturbed) {
    TRY(outside.publish("state", "pending " + std::to_string(::getpid())));
    wait_for_go(outside);
  }
  kfdtest::Checksum checksum;
  if (work) {
    TRY(work->expect_pending());
    TRY(work->finish());
    work->add_to(checksum);
  }
  TRY(added.check());
  if (options.late) TRY(allocate_late(session->gpus().front()));
  outside.say("RESULT " + checksum.hex());
  return outside.publish("result", "RESULT " + checksum.hex());
}

base::Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--undisturbed" || name == "--late") {
      (name == "--late" ? options.late : options.undisturbed) = true;
    } else if (name == "--no-gpu") {
      options.gpu = false;
    } else {
      const std::string value = i + 1 < argc ? argv[++i] : "";
      ASSIGN_OR_RETURN(const bool taken, options.additions.take(name, value));
      if (!taken && name != "--dir") return base::Error(EINVAL, "no option " + name);
      if (!taken) options.folder = value;
    }
  }
  if (options.folder.empty()) return base::Error(EINVAL, "--dir is needed");
  if (options.late && !options.gpu) return base::Error(EINVAL, "--late needs a GPU");
  return options;
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  const auto options = fieldtest::parse(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "field_program: %s\n", options.error().message().c_str());
    return fieldtest::kUsage;
  }
  const kfdtest::Outside outside(options->folder);
  const base::Status status = fieldtest::run(*options, outside);
  return status.ok() ? EXIT_SUCCESS : outside.fail(status.error().message());
}
