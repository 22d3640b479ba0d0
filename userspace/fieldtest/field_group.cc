// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Several processes that use the GPU and are checkpointed together.
//   field_group --dir FOLDER --shared [--counting | --outside] [--undisturbed]
//   field_group --dir FOLDER --processes N [--undisturbed]
//   field_group --dir FOLDER --shape SHAPE [--times N] [--undisturbed]
// --shared: two processes map one buffer, as by hipIpcOpenMemHandle(); after "go" the reader's SDMA has to read what
// the writer's CPU stores then. With --counting the reader's SDMA also counts in the buffer all the time. --processes:
// N children have memory and a queue each. --outside: the reader is no child of the writer, so it is not checkpointed.
// --shape: see field_sharing.h; --times N has each memory of the shape N times.
// The files in FOLDER are those of kfdtest-criu/demo/message_files.h.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/file_socket.h"
#include "fieldtest/field_sharing.h"
#include "fieldtest/program_file.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/session.h"

namespace fieldtest {
namespace {

using base::UniqueFd;
using kfdtest::Gpu;
using kfdtest::GpuMemory;
using kfdtest::MemoryKind;
using kfdtest::MessageFiles;
using kfdtest::QueueKind;
using kfdtest::RingQueue;
using kfdtest::Session;

constexpr std::uint64_t kMaxProcesses = 64;
constexpr std::size_t kSharedSize = 64 * kfdtest::kKiB;
constexpr std::size_t kProcessBytes = 256 * kfdtest::kKiB;
constexpr std::uint32_t kBefore = 0x0bef04e0, kAfter = 0x00af7e40;
// Byte offsets in the shared buffer, and in the reader's page.
constexpr std::size_t kValue = 0, kCounter = 64;
constexpr std::size_t kCopy = 0, kFence = 2048;

struct Options {
  kfdtest::CommandLine line;
  bool shared = false;
  bool counting = false;
  bool outside = false;
  std::uint64_t processes = 0;
  const Shape* shape = nullptr;
  std::uint64_t times = 1;
};

// ---- files between the processes -----------------------------------------------

// Waits without a limit: the process may be checkpointed while it waits.
std::string wait_for_file(const Options& options, const std::string& name) {
  std::string line;
  while ((line = first_line(options.line, name)).empty()) kfdtest::poll_pause();
  return line;
}

void wait_for_go(const Options& options, const MessageFiles& messages) {
  while (!options.line.undisturbed() && !messages.told_to_go()) kfdtest::poll_pause();
}

std::string checksum_of(std::span<const std::byte> bytes) {
  kfdtest::Checksum checksum;
  checksum.add(bytes);
  return checksum.hex();
}

// ---- a shared buffer -------------------------------------------------------------

// The process that imported the buffer.
class Reader {
 public:
  static base::Result<Reader> start(const Gpu& gpu, int socket) {
    ASSIGN_OR_RETURN(const UniqueFd dmabuf, base::receive_file(socket));
    ASSIGN_OR_RETURN(kfdtest::Block block, ioctls_of(gpu).import_dmabuf(gpu, dmabuf.get(), kSharedSize));
    ASSIGN_OR_RETURN(GpuMemory shared, GpuMemory::take(gpu, std::move(block)));
    ASSIGN_OR_RETURN(GpuMemory page, GpuMemory::allocate(gpu, MemoryKind::kGtt, kfdtest::kPageSize));
    ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kSdma));
    return Reader(std::move(shared), std::move(page), std::move(queue));
  }

  // The word that the GPU reads in the buffer.
  base::Result<std::uint32_t> read() {
    kfdtest::SdmaCommands commands(queue_.gpu());
    commands.copy(page_.gpu_address(kCopy), shared_.gpu_address(kValue), sizeof(std::uint32_t));
    TRY(finish(commands));
    return page_.load32(kCopy);
  }

  // Adds 1 to the counter in the buffer.
  base::Status count() {
    kfdtest::SdmaCommands commands(queue_.gpu());
    commands.atomic_add64(shared_.gpu_address(kCounter), 1);
    TRY(finish(commands));
    ++counted_;
    return {};
  }
  [[nodiscard]] std::uint64_t counted() const { return counted_; }

 private:
  Reader(GpuMemory shared, GpuMemory page, RingQueue queue)
      : shared_(std::move(shared)), page_(std::move(page)), queue_(std::move(queue)) {}

  base::Status finish(kfdtest::SdmaCommands& commands) {
    ++round_;
    TRY(queue_.submit(commands.fence(page_.gpu_address(kFence), round_).dwords()));
    return kfdtest::wait_for_word(page_, kFence, round_);
  }

  GpuMemory shared_;
  GpuMemory page_;
  RingQueue queue_;
  std::uint32_t round_ = 0;
  std::uint64_t counted_ = 0;
};

base::Status be_reader(const Options& options, const MessageFiles& messages, UniqueFd socket) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  ASSIGN_OR_RETURN(Reader reader, Reader::start(session.gpus().front(), socket.get()));
  socket.reset();
  ASSIGN_OR_RETURN(const std::uint32_t before, reader.read());
  if (before != kBefore) return base::Error(EIO, "the reader does not see the shared buffer");
  TRY(messages.publish("reader", "ready"));
  while (first_line(options.line, "written").empty()) {
    if (options.counting) {
      TRY(reader.count());
    } else {
      kfdtest::poll_pause();
    }
  }
  ASSIGN_OR_RETURN(const std::uint32_t after, reader.read());
  messages.say("the reader sees " + std::to_string(after));
  if (after != kAfter) return base::Error(EIO, "the reader sees another value than the writer has stored");
  return messages.publish("counted", "at " + std::to_string(reader.counted()));
}

base::Status be_writer(const Options& options, const MessageFiles& messages, UniqueFd socket) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const GpuMemory shared, GpuMemory::allocate(gpu, MemoryKind::kGtt, kSharedSize));
  std::fill(shared.bytes().begin(), shared.bytes().end(), std::byte{0});
  shared.store32(kValue, kBefore);
  {
    ASSIGN_OR_RETURN(const UniqueFd dmabuf, ioctls_of(gpu).client().export_dmabuf(shared.block().handle));
    TRY(base::send_file(socket.get(), dmabuf.get()));
  }
  (void)wait_for_file(options, "reader");
  socket.reset();
  TRY(messages.publish("state", "pending " + std::to_string(::getpid())));
  wait_for_go(options, messages);
  shared.store32(kValue, kAfter);
  TRY(messages.publish("written", "yes"));
  const std::string counted = wait_for_file(options, "counted");
  messages.say("the writer sees " + std::to_string(shared.load64(kCounter)) + " counted, the reader " + counted);
  if (counted != "at " + std::to_string(shared.load64(kCounter)))
    return base::Error(EIO, "the counter of the writer is not that of the reader");
  return messages.publish("result", "RESULT " + checksum_of(shared.bytes().first(sizeof(std::uint32_t))));
}

base::Status share(const Options& options, const MessageFiles& messages) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return base::Error::from_errno(errno, "socketpair");
  UniqueFd parents(pair[0]);
  UniqueFd childs(pair[1]);
  const pid_t child = ::fork();
  if (child < 0) return base::Error::from_errno(errno, "fork");
  if (child == 0) {
    parents.reset();
    // The kernel gives a process whose parent has ended to init.
    const pid_t orphan = options.outside ? ::fork() : 0;
    if (orphan < 0) ::_exit(messages.fail("fork"));
    if (orphan > 0) ::_exit(EXIT_SUCCESS);
    const base::Status status = be_reader(options, messages, std::move(childs));
    ::_exit(status.ok() ? EXIT_SUCCESS : messages.fail(status.error().message()));
  }
  childs.reset();
  if (options.outside) ::waitpid(child, nullptr, 0);
  TRY(be_writer(options, messages, std::move(parents)));
  if (!options.outside) ::waitpid(child, nullptr, 0);
  return {};
}

// ---- many processes ---------------------------------------------------------------------

base::Status be_one_of_many(const Options& options, const MessageFiles& messages, std::uint64_t number) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  const Gpu& gpu = session.gpus().front();
  ASSIGN_OR_RETURN(const GpuMemory vram, GpuMemory::allocate(gpu, MemoryKind::kVram, kProcessBytes));
  ASSIGN_OR_RETURN(const GpuMemory page, GpuMemory::allocate(gpu, MemoryKind::kGtt, kfdtest::kPageSize));
  ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu, QueueKind::kPm4));
  kfdtest::fill_pattern(vram.bytes(), number);
  std::fill(page.bytes().begin(), page.bytes().end(), std::byte{0});
  auto copy = [&](std::size_t offset, std::uint32_t fence) -> base::Status {
    TRY(queue.submit(kfdtest::Pm4Commands(gpu)
                         .copy64(page.gpu_address(offset), vram.gpu_address(8 * offset))
                         .fence(page.gpu_address(kFence), fence)
                         .dwords()));
    return kfdtest::wait_for_word(page, kFence, fence);
  };
  TRY(copy(0, 1));
  TRY(messages.publish("ready." + std::to_string(number), "yes"));
  wait_for_go(options, messages);
  TRY(copy(8, 2));
  kfdtest::Checksum checksum;
  checksum.add(vram.bytes());
  checksum.add(page.bytes());
  return messages.publish("sum." + std::to_string(number), checksum.hex());
}

base::Status lead_processes(const Options& options, const MessageFiles& messages) {
  for (std::uint64_t number = 0; number < options.processes; ++number) {
    const pid_t child = ::fork();
    if (child < 0) return base::Error::from_errno(errno, "fork");
    if (child == 0) {
      const base::Status status = be_one_of_many(options, messages, number);
      ::_exit(status.ok() ? EXIT_SUCCESS : messages.fail(status.error().message()));
    }
    (void)wait_for_file(options, "ready." + std::to_string(number));
  }
  TRY(messages.publish("state", "pending " + std::to_string(::getpid())));
  wait_for_go(options, messages);
  std::string sums;
  for (std::uint64_t number = 0; number < options.processes; ++number)
    sums += wait_for_file(options, "sum." + std::to_string(number));
  TRY(messages.publish("result", "RESULT " + checksum_of(std::as_bytes(std::span(sums)))));
  while (::wait(nullptr) > 0) {
  }
  return {};
}

base::Status run(const Options& options, const MessageFiles& messages) {
  if (options.shape != nullptr) return be_shape({options.line, *options.shape, options.times}, messages);
  if (options.shared == (options.processes != 0))
    return base::Error(EINVAL, "one of --shared, --processes and --shape");
  return options.shared ? share(options, messages) : lead_processes(options, messages);
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  fieldtest::Options options;
  options.line.flag("--shared", options.shared)
      .flag("--counting", options.counting)
      .flag("--outside", options.outside)
      .number("--processes", options.processes, 1, fieldtest::kMaxProcesses)
      .number("--times", options.times, 1, fieldtest::kMaxTimes)
      .words("--shape", fieldtest::shape_words(options.shape));
  return run_program(argc, argv, options.line,
                     [&](const kfdtest::MessageFiles& messages) { return fieldtest::run(options, messages); });
}
