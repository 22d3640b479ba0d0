// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A user of libhsakmt with the pending work of demo_program and one addition that makes its checkpoint difficult.
//   field_program --dir FOLDER [--gem mapped|handle|address|high] [--children high|low] [--also kfd|pidfd]
//                 [--late] [--buffers N] [--no-gpu] [--undisturbed]
// --late: allocates memory and creates a queue after the pending work has ended. --buffers: has N further buffers, each
// of which is mapped. --no-gpu: without KFD, so that only a GEM object uses the GPU. The files in FOLDER are those of
// kfdtest-criu/demo/message_files.h. The result is that of demo_program --gpus 1 whatever the additions are: they only
// have to be what they were.
#include <cerrno>
#include <cstdint>
#include <vector>

#include "fieldtest/additions.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/demo/pending_work.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/session.h"

namespace fieldtest {
namespace {

using kfdtest::DriverKind;
using kfdtest::GpuMemory;
using kfdtest::MemoryKind;

constexpr std::uint64_t kSeed = 0xde30;  // demo_program's
constexpr std::uint64_t kLateSeed = 7;
constexpr std::size_t kLateSize = 4 * kfdtest::kMiB;
constexpr std::uint64_t kMaxBuffers = 10000;

struct Options {
  Additions additions;
  bool late = false;
  bool no_gpu = false;
  std::uint64_t buffers = 0;
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

// Buffers of one page, each with a mapping of its own.
base::Result<std::vector<GpuMemory>> allocate_pages(const kfdtest::Gpu& gpu, std::uint64_t count) {
  std::vector<GpuMemory> pages;
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(GpuMemory page, GpuMemory::allocate(gpu, MemoryKind::kGtt, kfdtest::kPageSize));
    kfdtest::fill_pattern(page.bytes(), i);
    pages.push_back(std::move(page));
  }
  return pages;
}

base::Status check_pages(const std::vector<GpuMemory>& pages) {
  for (std::size_t i = 0; i < pages.size(); ++i)
    if (kfdtest::find_mismatch(pages[i].bytes(), i))
      return base::Error(EIO, "page " + std::to_string(i) + " has other contents");
  return {};
}

base::Status run(const kfdtest::CommandLine& line, const Options& options, const kfdtest::MessageFiles& messages) {
  std::optional<kfdtest::Session> session;
  std::unique_ptr<kfdtest::PendingWork> work;
  std::vector<GpuMemory> pages;
  if (!options.no_gpu) {
    ASSIGN_OR_RETURN(kfdtest::Session opened, kfdtest::Session::open(DriverKind::kThunk));
    session.emplace(std::move(opened));
    ASSIGN_OR_RETURN(work, kfdtest::PendingWork::start(session->gpus().front(), kSeed));
    ASSIGN_OR_RETURN(pages, allocate_pages(session->gpus().front(), options.buffers));
  }
  ASSIGN_OR_RETURN(Added added, Added::make(options.additions));
  messages.say("pending");
  kfdtest::Beat beat;
  if (work) beat = [&work] { return work->beat(); };
  TRY(wait_pending(line, messages, beat));
  kfdtest::Checksum checksum;
  if (work) {
    TRY(work->expect_pending());
    TRY(work->finish());
    work->add_to(checksum);
  }
  TRY(added.check());
  TRY(check_pages(pages));
  if (options.late) TRY(allocate_late(session->gpus().front()));
  return messages.publish_result(checksum.hex());
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  fieldtest::Options options;
  kfdtest::CommandLine line;
  options.additions.declare(line);
  line.flag("--late", options.late)
      .flag("--no-gpu", options.no_gpu)
      .number("--buffers", options.buffers, 1, fieldtest::kMaxBuffers);
  return run_program(argc, argv, line, [&](const kfdtest::MessageFiles& messages) -> base::Status {
    if (options.no_gpu && (options.late || options.buffers != 0))
      return base::Error(EINVAL, "--late and --buffers need a GPU");
    return run(line, options, messages);
  });
}
