// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A loop of collective operations of RCCL on all of some GPUs, in one process or in one for each GPU.
//   field_rccl --dir FOLDER [--gpus N] [--processes] [--undisturbed]
// Each round is a sum over all GPUs (ncclAllReduce), a copy from one to all (ncclBroadcast) and a copy of a part of
// each to all (ncclAllGather), and every number is compared with what it should be. Rounds go on until somebody has
// made the checkpoint, so that falls into one, with kernels of RCCL at work that wait for each other. The result is a
// checksum of the rounds after it. The files in FOLDER are those of kfdtest-criu/demo/message_files.h.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
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

// ncclComm_t and hipStream_t.
using Communicator = void*;
using Stream = void*;

// ncclUniqueId: by what the processes of a communicator find each other.
struct UniqueId {
  std::array<char, 128> bytes{};
};

constexpr std::uint64_t kMostGpus = 8;
constexpr std::size_t kCount = std::size_t{64} * 840;  // a multiple of each number of GPUs up to kMostGpus
constexpr int kUint32 = 3, kSum = 0;                   // ncclUint32, ncclSum
constexpr unsigned kLastRounds = 3;

std::uint32_t number(std::uint32_t round, std::size_t gpu, std::size_t i) {
  return static_cast<std::uint32_t>(2654435761U * (i + 1) + 40503U * (gpu + 1) + 2246822519U * round);
}

// ---- the GPUs of one process --------------------------------------------------------

class Rank {
 public:
  static Result<Rank> create(const HipLibrary& hip, int gpu) {
    Rank rank(hip, gpu);
    TRY(rank.choose());
    TRY(hip.call("hipStreamCreate", &rank.stream_));
    TRY(hip.call("hipMalloc", &rank.in_, kBytes));
    TRY(hip.call("hipMalloc", &rank.out_, kBytes));
    return rank;
  }

  [[nodiscard]] Status choose() const { return hip_->call("hipSetDevice", gpu_); }
  [[nodiscard]] std::size_t gpu() const { return static_cast<std::size_t>(gpu_); }
  [[nodiscard]] Stream stream() const { return stream_; }
  [[nodiscard]] const void* in() const { return in_; }
  [[nodiscard]] void* out() const { return out_; }

  [[nodiscard]] Status fill(std::uint32_t round) const {
    std::vector<std::uint32_t> numbers(kCount);
    for (std::size_t i = 0; i < kCount; ++i) numbers[i] = number(round, gpu(), i);
    TRY(choose());
    return hip_->copy(in_, numbers.data(), kBytes);
  }
  // Waits for the GPU.
  [[nodiscard]] Result<std::vector<std::uint32_t>> result() const {
    std::vector<std::uint32_t> numbers(kCount);
    TRY(choose());
    TRY(hip_->call("hipStreamSynchronize", stream_));
    TRY(hip_->copy(numbers.data(), out_, kBytes));
    return numbers;
  }

 private:
  static constexpr std::size_t kBytes = kCount * sizeof(std::uint32_t);
  Rank(const HipLibrary& hip, int gpu) : hip_(&hip), gpu_(gpu) {}

  const HipLibrary* hip_;
  int gpu_;
  Stream stream_ = nullptr;
  void* in_ = nullptr;
  void* out_ = nullptr;
};

class Ranks {
 public:
  // All `gpus` of the machine.
  static Result<Ranks> all(const HipLibrary& hip, std::size_t gpus) {
    ASSIGN_OR_RETURN(Ranks ranks, open(hip, gpus));
    std::vector<int> numbers;
    for (std::size_t i = 0; i < gpus; ++i) {
      ASSIGN_OR_RETURN(Rank rank, Rank::create(hip, static_cast<int>(i)));
      ranks.mine_.push_back(rank);
      numbers.push_back(static_cast<int>(i));
    }
    ranks.communicators_.resize(gpus);
    TRY(ranks.call("ncclCommInitAll", ranks.communicators_.data(), static_cast<int>(gpus),
                   static_cast<const int*>(numbers.data())));
    return ranks;
  }
  // One of them; the others are in processes with the same id.
  static Result<Ranks> one(const HipLibrary& hip, std::size_t gpus, std::size_t gpu, const UniqueId& id) {
    ASSIGN_OR_RETURN(Ranks ranks, open(hip, gpus));
    ASSIGN_OR_RETURN(Rank rank, Rank::create(hip, static_cast<int>(gpu)));
    ranks.mine_.push_back(rank);
    ranks.communicators_.resize(1);
    TRY(ranks.call("ncclCommInitRank", ranks.communicators_.data(), static_cast<int>(gpus), id, static_cast<int>(gpu)));
    return ranks;
  }
  static Result<UniqueId> make_id() {
    ASSIGN_OR_RETURN(const RuntimeLibrary rccl, RuntimeLibrary::open({kLibrary}));
    UniqueId id;
    TRY(rccl.call("ncclGetUniqueId", &id));
    return id;
  }

  // Computes a round on all GPUs and checks what those of this process have. Adds it to `checksum` if there is one.
  Status compute(std::uint32_t round, kfdtest::Checksum* checksum) {
    for (const Rank& rank : mine_) TRY(rank.fill(round));
    const std::size_t part = kCount / gpus_;
    const std::size_t root = round % gpus_;

    TRY(each([&](const Rank& rank, Communicator communicator) {
      return call("ncclAllReduce", rank.in(), rank.out(), kCount, kUint32, kSum, communicator, rank.stream());
    }));
    TRY(check("ncclAllReduce", checksum, [&](std::size_t i) {
      std::uint32_t sum = 0;
      for (std::size_t gpu = 0; gpu < gpus_; ++gpu) sum += number(round, gpu, i);
      return sum;
    }));
    TRY(each([&](const Rank& rank, Communicator communicator) {
      return call("ncclBroadcast", rank.in(), rank.out(), kCount, kUint32, static_cast<int>(root), communicator,
                  rank.stream());
    }));
    TRY(check("ncclBroadcast", checksum, [&](std::size_t i) { return number(round, root, i); }));
    TRY(each([&](const Rank& rank, Communicator communicator) {
      return call("ncclAllGather", rank.in(), rank.out(), part, kUint32, communicator, rank.stream());
    }));
    return check("ncclAllGather", checksum, [&](std::size_t i) { return number(round, i / part, i % part); });
  }

 private:
  static constexpr const char* kLibrary = "librccl.so.1";

  Ranks(const RuntimeLibrary& rccl, std::size_t gpus) : rccl_(rccl), gpus_(gpus) {}
  static Result<Ranks> open(const HipLibrary& hip, std::size_t gpus) {
    int count = 0;
    TRY(hip.call("hipGetDeviceCount", &count));
    if (static_cast<std::size_t>(count) < gpus)
      return Error(ENODEV, "HIP has " + std::to_string(count) + " GPUs, " + std::to_string(gpus) + " are wanted");
    ASSIGN_OR_RETURN(const RuntimeLibrary rccl, RuntimeLibrary::open({kLibrary}));
    return Ranks(rccl, gpus);
  }

  // Calls a function of RCCL; the error has its name and RCCL's text.
  template <typename... Arguments>
  [[nodiscard]] Status call(const char* name, Arguments... arguments) const {
    ASSIGN_OR_RETURN(const int error, rccl_.state(name, arguments...));
    if (error == 0) return {};
    auto* const text = rccl_.function<const char*(int)>("ncclGetErrorString");
    return Error(EIO, std::string(name) + ": " + (text == nullptr ? std::to_string(error) : text(error)));
  }

  // A collective operation begins on all GPUs of a process at once.
  template <typename Operation>
  Status each(const Operation& operation) {
    TRY(call("ncclGroupStart"));
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      TRY(mine_[i].choose());
      TRY(operation(mine_[i], communicators_[i]));
    }
    return call("ncclGroupEnd");
  }

  template <typename Expected>
  Status check(const char* operation, kfdtest::Checksum* checksum, const Expected& expected) {
    for (const Rank& rank : mine_) {
      ASSIGN_OR_RETURN(const std::vector<std::uint32_t> numbers, rank.result());
      for (std::size_t i = 0; i < kCount; ++i)
        if (numbers[i] != expected(i))
          return Error(EIO, std::string(operation) + ": number " + std::to_string(i) + " of GPU " +
                                std::to_string(rank.gpu()) + " is wrong");
      if (checksum != nullptr) checksum->add(std::as_bytes(std::span(numbers)));
    }
    return {};
  }

  RuntimeLibrary rccl_;
  std::size_t gpus_;
  std::vector<Rank> mine_;
  std::vector<Communicator> communicators_;
};

// ---- processes ----------------------------------------------------------------------

// What the first process tells another one, and the answer.
struct Message {
  std::uint32_t round = 0;
  std::uint32_t failed = 0;
};

Status be_child(const UniqueFd& socket, std::size_t gpus, std::size_t gpu) {
  ASSIGN_OR_RETURN(const UniqueId id, receive_value<UniqueId>(socket));
  ASSIGN_OR_RETURN(const HipLibrary hip, HipLibrary::open());
  ASSIGN_OR_RETURN(Ranks ranks, Ranks::one(hip, gpus, gpu, id));
  while (true) {
    const auto message = receive_value<Message>(socket);
    if (!message.ok()) return {};  // the parent has ended
    const Status computed = ranks.compute(message->round, nullptr);
    TRY(send_value(socket, Message{.round = message->round, .failed = computed.ok() ? 0U : 1U}));
    TRY(computed);
  }
}

// Children that this process has made before it used HIP, each with a GPU; none if it has all GPUs.
class Children {
 public:
  static Result<Children> fork(std::size_t gpus, const kfdtest::MessageFiles& messages) {
    Children children;
    for (std::size_t gpu = 1; gpu < gpus; ++gpu) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return Error::from_errno(errno, "socketpair");
      UniqueFd parents(pair[0]);
      const UniqueFd childs(pair[1]);
      const pid_t child = ::fork();
      if (child < 0) return Error::from_errno(errno, "fork");
      if (child == 0) {
        parents.reset();
        children.sockets_.clear();
        const Status status = be_child(childs, gpus, gpu);
        ::_exit(status.ok() ? EXIT_SUCCESS : messages.fail(status.error().message()));
      }
      children.sockets_.push_back(std::move(parents));
    }
    return children;
  }

  template <typename Value>
  [[nodiscard]] Status tell(const Value& value) const {
    for (const UniqueFd& socket : sockets_) TRY(send_value(socket, value));
    return {};
  }
  [[nodiscard]] Status must_have_computed() const {
    for (const UniqueFd& socket : sockets_) {
      ASSIGN_OR_RETURN(const Message message, receive_value<Message>(socket));
      if (message.failed != 0) return Error(EIO, "a process failed; its message is in the log");
    }
    return {};
  }
  void end() {
    sockets_.clear();
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }

 private:
  std::vector<UniqueFd> sockets_;
};

Status compute(const Children& children, Ranks& ranks, std::uint32_t round, kfdtest::Checksum* checksum) {
  TRY(children.tell(Message{.round = round, .failed = 0}));
  TRY(ranks.compute(round, checksum));
  return children.must_have_computed();
}

Status be_first(const kfdtest::CommandLine& line, const kfdtest::MessageFiles& messages, const Children& children,
                std::size_t gpus, bool is_alone) {
  ASSIGN_OR_RETURN(const HipLibrary hip, HipLibrary::open());
  std::optional<Ranks> ranks;
  if (is_alone) {
    ASSIGN_OR_RETURN(ranks, Ranks::all(hip, gpus));
  } else {
    ASSIGN_OR_RETURN(const UniqueId id, Ranks::make_id());
    TRY(children.tell(id));
    ASSIGN_OR_RETURN(ranks, Ranks::one(hip, gpus, 0, id));
  }
  std::uint32_t round = 1;
  TRY(compute(children, *ranks, round, nullptr));
  messages.say("pending");
  if (!line.undisturbed()) {
    TRY(messages.publish("beats", "0"));
    TRY(messages.publish("state", "pending " + std::to_string(::getpid())));
    while (!messages.told_to_go()) {
      TRY(compute(children, *ranks, ++round, nullptr));
      if (messages.take_beat()) TRY(messages.publish("beats", std::to_string(round)));
    }
  }
  kfdtest::Checksum checksum;
  for (std::uint32_t last = 1; last <= kLastRounds; ++last) TRY(compute(children, *ranks, last, &checksum));
  return messages.publish_result(checksum.hex());
}

Status run(const kfdtest::CommandLine& line, const kfdtest::MessageFiles& messages, std::size_t gpus, bool processes) {
  ASSIGN_OR_RETURN(Children children, Children::fork(processes ? gpus : 1, messages));
  const Status status = be_first(line, messages, children, gpus, !processes);
  children.end();
  return status;
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  std::uint64_t gpus = 2;
  bool processes = false;
  kfdtest::CommandLine line;
  line.number("--gpus", gpus, 2, fieldtest::kMostGpus);
  line.flag("--processes", processes);
  // Not by exit(): destructors of HIP's libraries do not need to run.
  ::_exit(run_program(argc, argv, line, [&](const kfdtest::MessageFiles& messages) {
    return fieldtest::run(line, messages, gpus, processes);
  }));
}
