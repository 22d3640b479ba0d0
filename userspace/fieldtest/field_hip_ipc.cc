// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Two processes that share an event of HIP: hipIpcGetEventHandle() in one, hipIpcOpenEventHandle() in the other. HIP
// keeps such an event in a file in /dev/shm, which both processes map and let their GPU write.
//   field_hip_ipc --dir FOLDER [--undisturbed]
// Before and after the checkpoint the parent's GPU writes memory and records the event, and the child waits for it with
// its CPU and with its GPU. The result is a checksum of the memory. The files in FOLDER are those of
// kfdtest-criu/demo/message_files.h.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "fieldtest/hip_library.h"
#include "fieldtest/value_socket.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/harness/pattern.h"

namespace fieldtest {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

using Event = void*;  // hipEvent_t

// hipIpcEventHandle_t
struct Handle {
  std::array<std::byte, 64> bytes{};
};

// What the parent tells the child to do, and the child's answer; `failed` never comes from a child that works.
enum class Word : char { query = 'q', wait = 'w', wait_on_gpu = 'g', done = 'd', not_yet = 'n', failed = 'f' };

constexpr std::size_t kSize = 1 << 20;
constexpr unsigned kDisableTiming = 0x2, kInterprocess = 0x4;
constexpr Event kNullStream = nullptr;
constexpr int kNotReady = 600;  // hipErrorNotReady

// ---- the child ---------------------------------------------------------------------

Result<Word> obey(const HipLibrary& hip, Event event, Word word) {
  switch (word) {
    case Word::query: {
      ASSIGN_OR_RETURN(const int state, hip.state("hipEventQuery", event));
      if (state != 0 && state != kNotReady) return Error(EIO, "hipEventQuery: " + std::to_string(state));
      return state == 0 ? Word::done : Word::not_yet;
    }
    case Word::wait:
      TRY(hip.call("hipEventSynchronize", event));
      return Word::done;
    case Word::wait_on_gpu:
      TRY(hip.call("hipStreamWaitEvent", kNullStream, event, 0U));
      TRY(hip.call("hipStreamSynchronize", kNullStream));
      return Word::done;
    default:
      return Error(EINVAL, "an unknown word");
  }
}

Status be_child(const UniqueFd& socket) {
  ASSIGN_OR_RETURN(const HipLibrary hip, HipLibrary::open());
  ASSIGN_OR_RETURN(const Handle handle, receive_value<Handle>(socket));
  Event event = nullptr;
  TRY(hip.call("hipIpcOpenEventHandle", &event, handle));
  while (true) {
    const auto word = receive_value<Word>(socket);
    if (!word.ok()) return {};  // the parent has ended
    auto answer = obey(hip, event, *word);
    TRY(send_value(socket, answer.ok() ? *answer : Word::failed));
    TRY(answer);
  }
}

// ---- the parent --------------------------------------------------------------------

class Parent {
 public:
  static Result<Parent> start(const HipLibrary& hip, UniqueFd socket) {
    Parent parent(hip, std::move(socket));
    TRY(hip.call("hipMalloc", &parent.memory_, kSize));
    TRY(hip.call("hipEventCreateWithFlags", &parent.event_, kDisableTiming | kInterprocess));
    Handle handle;
    TRY(hip.call("hipIpcGetEventHandle", &handle, parent.event_));
    TRY(send_value(parent.socket_, handle));
    return parent;
  }

  // The GPU writes memory, and both processes see the event behind that.
  Status record(int byte) {
    TRY(hip_->call("hipMemsetAsync", memory_, byte, kSize, kNullStream));
    TRY(hip_->call("hipEventRecord", event_, kNullStream));
    TRY(expect(Word::wait, Word::done));
    TRY(expect(Word::query, Word::done));
    return expect(Word::wait_on_gpu, Word::done);
  }

  Result<std::vector<std::byte>> memory() const {
    std::vector<std::byte> bytes(kSize);
    TRY(hip_->copy(bytes.data(), memory_, kSize));
    return bytes;
  }

 private:
  Parent(const HipLibrary& hip, UniqueFd socket) : hip_(&hip), socket_(std::move(socket)) {}

  Status expect(Word word, Word wanted) {
    TRY(send_value(socket_, word));
    ASSIGN_OR_RETURN(const Word answer, receive_value<Word>(socket_));
    if (answer == wanted) return {};
    return Error(EIO, std::string("the other process answers '") + static_cast<char>(answer) + "' to '" +
                          static_cast<char>(word) + "'");
  }

  const HipLibrary* hip_;
  UniqueFd socket_;
  void* memory_ = nullptr;
  Event event_ = nullptr;
};

Status be_parent(const kfdtest::CommandLine& line, const kfdtest::MessageFiles& messages, UniqueFd socket) {
  ASSIGN_OR_RETURN(const HipLibrary hip, HipLibrary::open());
  ASSIGN_OR_RETURN(Parent parent, Parent::start(hip, std::move(socket)));
  TRY(parent.record(1));
  messages.say("pending");
  const kfdtest::Beat beat = kfdtest::counted([&]() -> Status {
    TRY(parent.memory());
    return {};
  });
  TRY(wait_pending(line, messages, beat));
  kfdtest::Checksum checksum;
  for (const int byte : {2, 3}) {
    TRY(parent.record(byte));
    ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, parent.memory());
    checksum.add(bytes);
  }
  return messages.publish_result(checksum.hex());
}

// The child is made first: HIP does not work in a process that is forked from one that uses it.
Status run(const kfdtest::CommandLine& line, const kfdtest::MessageFiles& messages) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return Error::from_errno(errno, "socketpair");
  UniqueFd parents(pair[0]);
  UniqueFd childs(pair[1]);
  const pid_t child = ::fork();
  if (child < 0) return Error::from_errno(errno, "fork");
  if (child == 0) {
    parents.reset();
    const Status status = be_child(childs);
    ::_exit(status.ok() ? EXIT_SUCCESS : messages.fail(status.error().message()));
  }
  childs.reset();
  const Status status = be_parent(line, messages, std::move(parents));
  ::waitpid(child, nullptr, 0);
  return status;
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  kfdtest::CommandLine line;
  // Not by exit(): destructors of HIP's libraries do not need to run.
  ::_exit(run_program(argc, argv, line,
                      [&](const kfdtest::MessageFiles& messages) { return fieldtest::run(line, messages); }));
}
