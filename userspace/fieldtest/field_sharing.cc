// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. Processes wait for each other by files in the folder of the program.
#include "fieldtest/field_sharing.h"

#include <amdgpu_drm.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "base/file_socket.h"
#include "base/mapping.h"
#include "fieldtest/program_file.h"
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

constexpr std::size_t kSize = 16 * kfdtest::kKiB;
constexpr std::size_t kFence = kSize;  // behind the copy in the process's own memory

constexpr std::size_t kProcesses = 16;

// Each process allocates one memory, and gives it to the process that many numbers behind it; 0: to nobody.
std::vector<Gift> ring(std::size_t distance) {
  std::vector<Gift> gifts;
  for (std::size_t member = 0; member < kProcesses; ++member)
    gifts.push_back({member, member, (member + distance) % kProcesses});
  return gifts;
}

const std::array kShapes = {
    Shape{"ring", kProcesses, ring(1)},
    Shape{"lone", kProcesses, ring(0)},
    Shape{"three", 3, {{0, 0, 1}, {1, 0, 1}, {0, 0, 2}, {1, 0, 2}}},
    Shape{"chain", 3, {{0, 0, 1}, {0, 1, 2}, {1, 1, 2}}},
    Shape{"cycle", 3, {{0, 0, 1}, {1, 1, 0}, {2, 1, 2}, {3, 2, 0}, {4, 2, 0}}},
    Shape{"freed", 3, {{0, 0, 1}, {0, 1, 2}, {1, 0, 1}, {1, 0, 2}}, true},
    Shape{"ended", 3, {{0, 2, 0}, {0, 2, 1}, {1, 2, 0}, {1, 0, 1}}, false, 2},
    Shape{"alone", 2, {{0, 1, 0}, {1, 1, 0}}, false, 1},
    Shape{"peers", 2, {{0, 0, 1}, {1, 0, 1}, {2, 1, 0}}, false, 0, true},
    Shape{"apart", 4, {{0, 0, 1}, {0, 0, 3}, {1, 0, 1}, {2, 1, 0}, {2, 1, 2}}, false, 0, true, true},
    Shape{"apart-freed", 4, {{0, 0, 1}, {0, 0, 2}, {1, 0, 1}, {1, 0, 3}}, true, 0, true, true},
    Shape{"kept", 3, {{0, 0, 1}, {1, 1, 2}, {2, 2, 0}, {3, 0, 0}}, false, 0, false, false, true},
    Shape{"kept-freed", 3, {{0, 0, 1}, {1, 0, 2}, {2, 1, 0}, {2, 1, 2}}, true, 0, false, false, true},
    Shape{"kept-plain", 3, {{0, 1, 0}, {1, 2, 0}, {1, 2, 1}}, false, 0, false, false, true, false, true},
    Shape{"kept-nobody", 1, {{0, 0, 0}}, true, 0, false, false, true},
    Shape{"kept-queued", 1, {{0, 0, 0}}, false, 0, false, false, true, true},
    Shape{"described", 1, {{0, 0, 0}}, false, 0, false, false, false, false, false, true}};

// Sets metadata as a graphics driver does for a tiled image.
base::Status describe(const Gpu& gpu, int dmabuf) {
  const std::string path = "/dev/dri/renderD" + std::to_string(gpu.render_minor);
  const UniqueFd render(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!render.valid()) return base::Error::from_errno(errno, path);
  drm_prime_handle imported{};
  imported.fd = dmabuf;
  if (::ioctl(render.get(), DRM_IOCTL_PRIME_FD_TO_HANDLE, &imported) != 0)
    return base::Error::from_errno(errno, "DRM_IOCTL_PRIME_FD_TO_HANDLE");
  drm_amdgpu_gem_metadata metadata{};
  metadata.handle = imported.handle;
  metadata.op = AMDGPU_GEM_METADATA_OP_SET_METADATA;
  metadata.data.data_size_bytes = sizeof(std::uint32_t);
  if (::ioctl(render.get(), DRM_IOCTL_AMDGPU_GEM_METADATA, &metadata) != 0)
    return base::Error::from_errno(errno, "DRM_IOCTL_AMDGPU_GEM_METADATA");
  return {};
}

// Waits without a limit, because the process may be checkpointed while it waits, unless another process has failed.
base::Status wait_for(const ShapeOptions& options, const std::string& name) {
  while (first_line(options.line, name).empty()) {
    if (first_line(options.line, "result").starts_with("FAILED"))
      return base::Error(ECANCELED, "another process has failed");
    kfdtest::poll_pause();
  }
  return {};
}

// Processes that have a memory, when all gifts have been made.
std::map<std::size_t, std::set<std::size_t>> holders_of(const Shape& shape) {
  std::map<std::size_t, std::set<std::size_t>> holders;
  std::map<std::size_t, std::size_t> owners;
  for (const Gift& gift : shape.gifts) {
    owners.emplace(gift.memory, gift.from);
    holders[gift.memory].insert({gift.from, gift.to});
  }
  for (auto& [memory, members] : holders) {
    if (shape.owner_frees) members.erase(owners.at(memory));
    if (shape.ends != 0) members.erase(shape.ends);
  }
  return holders;
}

struct Pipe {
  UniqueFd from;
  UniqueFd to;
};

std::string numbered(const std::string& what, std::size_t first, std::size_t second) {
  return what + "." + std::to_string(first) + "." + std::to_string(second);
}

class Member {
 public:
  Member(const ShapeOptions& options, const MessageFiles& messages, std::size_t number)
      : options_(options), messages_(messages), number_(number) {}

  // Opens the GPU, and gives and takes memory. The pipes are those of the gifts.
  base::Status join(std::vector<Pipe> pipes) {
    if (is_plain()) return pass_all(pipes);
    const std::size_t gpu = options_.shape.uses_other_gpus && number_ % 2 != 0 ? 1 : 0;
    const bool opens_one = options_.shape.opens_one_gpu;
    ASSIGN_OR_RETURN(Session session, opens_one ? Session::open_one(gpu) : Session::open());
    session_.emplace(std::move(session));
    if (!opens_one && gpu >= session_->gpus().size()) return base::Error(ENODEV, "this shape needs two GPUs");
    gpu_ = &session_->gpus()[opens_one ? 0 : gpu];
    ASSIGN_OR_RETURN(GpuMemory own, GpuMemory::allocate(*gpu_, MemoryKind::kGtt, kSize + kfdtest::kPageSize));
    own_.emplace(std::move(own));
    ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(*gpu_, QueueKind::kSdma));
    queue_.emplace(std::move(queue));
    TRY(pass_all(pipes));
    if (options_.shape.owner_frees)
      std::erase_if(memories_, [this](const auto& each) { return allocated_.contains(each.first); });
    return {};
  }

  // Everything that is there was there before the checkpoint.
  base::Status check() {
    for (const auto& [key, memory] : memories_) {
      ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, read(memory));
      if (kfdtest::find_mismatch(bytes, seed_of(key)))
        return base::Error(
            EIO, "member " + std::to_string(number_) + ": memory " + std::to_string(key.first) + " has other contents");
    }
    return check_kept();
  }

  // All members write into each memory one after the other, and see what the others have written. In the last copy of
  // each memory.
  base::Status write_in_turn(std::size_t& seen) {
    for (const auto& [memory, holders] : holders_of(options_.shape)) {
      if (!holders.contains(number_)) continue;
      for (const std::size_t writer : holders) {
        const std::string step = numbered("written", memory, writer);
        const auto value = static_cast<std::uint32_t>(0x5ea50000 + 0x100 * memory + writer);
        const Key key{memory, options_.times - 1};
        if (writer == number_) {
          TRY(write(key, value));
          TRY(messages_.publish(step, "yes"));
          // The next one to write must not be earlier than the last one to read.
          for (const std::size_t reader : holders)
            if (reader != writer) TRY(wait_for(options_, step + "." + std::to_string(reader)));
          TRY(messages_.publish(step + ".all", "yes"));
          continue;
        }
        TRY(wait_for(options_, step));
        ASSIGN_OR_RETURN(const bool sees_it, sees(key, value));
        if (!sees_it)
          return base::Error(EIO, "member " + std::to_string(number_) + " does not see what member " +
                                      std::to_string(writer) + " wrote into memory " + std::to_string(memory));
        ++seen;
        TRY(messages_.publish(step + "." + std::to_string(number_), "yes"));
        TRY(wait_for(options_, step + ".all"));
      }
    }
    return {};
  }

 private:
  using Key = std::pair<std::size_t, std::size_t>;  // memory, time

  static std::uint64_t seed_of(const Key& key) { return 1000 * (key.first + 1) + key.second; }

  [[nodiscard]] bool is_plain() const { return options_.shape.has_plain_parent && number_ == 0; }

  base::Status pass_all(const std::vector<Pipe>& pipes) {
    for (std::size_t time = 0; time < options_.times; ++time)
      for (std::size_t i = 0; i < options_.shape.gifts.size(); ++i) TRY(pass(options_.shape.gifts[i], time, pipes[i]));
    return {};
  }

  // A new mapping of a descriptor, and a new BO that is imported from it, have the memory.
  base::Status check_kept() {
    for (const auto& [key, socket] : queued_) {
      ASSIGN_OR_RETURN(UniqueFd dmabuf, base::receive_file(socket.get()));
      kept_.emplace_back(key, std::move(dmabuf));
    }
    for (const auto& [key, dmabuf] : kept_) {
      const std::string where =
          "member " + std::to_string(number_) + ", descriptor of memory " + std::to_string(key.first);
      ASSIGN_OR_RETURN(const base::Mapping mapping, base::Mapping::shared(dmabuf.get(), kSize, 0, where));
      if (kfdtest::find_mismatch(mapping.bytes(), seed_of(key))) return base::Error(EIO, where + ": other contents");
      if (is_plain()) continue;
      ASSIGN_OR_RETURN(kfdtest::Block block, ioctls_of(*gpu_).import_dmabuf(*gpu_, dmabuf.get(), kSize));
      ASSIGN_OR_RETURN(const GpuMemory memory, GpuMemory::take(*gpu_, std::move(block)));
      ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, read(memory));
      if (kfdtest::find_mismatch(bytes, seed_of(key)))
        return base::Error(EIO, where + ": the GPU reads other contents");
    }
    return {};
  }

  base::Status write(const Key& key, std::uint32_t value) {
    if (is_plain()) {
      ASSIGN_OR_RETURN(const base::Mapping mapping, map_kept(key));
      *reinterpret_cast<volatile std::uint32_t*>(mapping.data()) = value;
      return {};
    }
    kfdtest::SdmaCommands commands(*gpu_);
    commands.write(memories_.at(key).gpu_address(), std::span(&value, 1));
    return finish(commands);
  }

  // Through the descriptor, too, if it is kept.
  base::Result<bool> sees(const Key& key, std::uint32_t value) {
    if (has_kept(key)) {
      ASSIGN_OR_RETURN(const base::Mapping mapping, map_kept(key));
      if (*reinterpret_cast<const volatile std::uint32_t*>(mapping.data()) != value) return false;
    }
    if (is_plain()) return true;
    ASSIGN_OR_RETURN(const auto bytes, read(memories_.at(key)));
    std::uint32_t word = 0;
    std::copy_n(bytes.begin(), sizeof(word), reinterpret_cast<std::byte*>(&word));
    return word == value;
  }

  [[nodiscard]] bool has_kept(const Key& key) const {
    return std::any_of(kept_.begin(), kept_.end(), [&key](const auto& each) { return each.first == key; });
  }
  [[nodiscard]] base::Result<base::Mapping> map_kept(const Key& key) const {
    for (const auto& [kept, dmabuf] : kept_)
      if (kept == key) return base::Mapping::shared(dmabuf.get(), kSize, 0, "a descriptor of memory");
    return base::Error(ENOENT, "no descriptor of memory " + std::to_string(key.first));
  }

  base::Status pass(const Gift& gift, std::size_t time, const Pipe& pipe) {
    const Key key{gift.memory, time};
    if (gift.from == number_) {
      if (!memories_.contains(key)) TRY(allocate(key));
      ASSIGN_OR_RETURN(UniqueFd dmabuf, ioctls_of(*gpu_).client().export_dmabuf(memories_.at(key).block().handle));
      if (options_.shape.is_described) TRY(describe(*gpu_, dmabuf.get()));
      TRY(base::send_file(pipe.from.get(), dmabuf.get()));
      if (options_.shape.keeps_dmabufs) kept_.emplace_back(key, std::move(dmabuf));
    }
    if (gift.to == number_ && options_.shape.leaves_in_queue) {
      queued_.emplace_back(key, UniqueFd(::fcntl(pipe.to.get(), F_DUPFD_CLOEXEC, 0)));
    } else if (gift.to == number_) {
      ASSIGN_OR_RETURN(UniqueFd dmabuf, base::receive_file(pipe.to.get()));
      if (!is_plain() && !memories_.contains(key)) {
        ASSIGN_OR_RETURN(kfdtest::Block block, ioctls_of(*gpu_).import_dmabuf(*gpu_, dmabuf.get(), kSize));
        ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::take(*gpu_, std::move(block)));
        memories_.emplace(key, std::move(memory));
      }
      if (options_.shape.keeps_dmabufs) kept_.emplace_back(key, std::move(dmabuf));
    }
    return {};
  }

  base::Status allocate(const Key& key) {
    const MemoryKind kind = key.first % 2 == 0 ? MemoryKind::kGtt : MemoryKind::kVram;
    ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::allocate(*gpu_, kind, kSize));
    kfdtest::fill_pattern(own_->bytes().first(kSize), seed_of(key));
    kfdtest::SdmaCommands commands(*gpu_);
    commands.copy(memory.gpu_address(), own_->gpu_address(), kSize);
    TRY(finish(commands));
    memories_.emplace(key, std::move(memory));
    allocated_.insert(key);
    return {};
  }

  base::Result<std::span<const std::byte>> read(const GpuMemory& memory) {
    kfdtest::SdmaCommands commands(*gpu_);
    commands.copy(own_->gpu_address(), memory.gpu_address(), kSize);
    TRY(finish(commands));
    return std::span<const std::byte>(own_->bytes().first(kSize));
  }

  base::Status finish(kfdtest::SdmaCommands& commands) {
    ++round_;
    TRY(queue_->submit(commands.fence(own_->gpu_address(kFence), round_).dwords()));
    return kfdtest::wait_for_word(*own_, kFence, round_);
  }

  const ShapeOptions& options_;
  const MessageFiles& messages_;
  std::size_t number_;
  std::optional<Session> session_;
  const Gpu* gpu_ = nullptr;
  std::optional<GpuMemory> own_;
  std::optional<RingQueue> queue_;
  std::map<Key, GpuMemory> memories_;
  std::vector<std::pair<Key, UniqueFd>> kept_;
  std::vector<std::pair<Key, UniqueFd>> queued_;  // sockets
  std::set<Key> allocated_;
  std::uint32_t round_ = 0;
};

base::Status be_member(const ShapeOptions& options, const MessageFiles& messages, std::size_t number,
                       std::vector<Pipe> pipes) {
  const bool is_first = number == 0;
  Member member(options, messages, number);
  TRY(member.join(std::move(pipes)));
  TRY(messages.publish("ready." + std::to_string(number), "yes"));
  // All have memory until all have taken what they are given.
  for (std::size_t i = 0; i < options.shape.members; ++i) TRY(wait_for(options, "ready." + std::to_string(i)));
  if (number == options.shape.ends && !is_first) return {};
  if (is_first) {
    if (options.shape.ends != 0) ::wait(nullptr);
    TRY(messages.publish("state", "pending " + std::to_string(::getpid())));
  }
  while (!options.line.undisturbed() && !messages.told_to_go()) kfdtest::poll_pause();
  TRY(member.check());
  std::size_t seen = 0;
  TRY(messages.publish("checked." + std::to_string(number), "yes"));
  for (std::size_t i = 0; i < options.shape.members; ++i)
    if (i != options.shape.ends || i == 0) TRY(wait_for(options, "checked." + std::to_string(i)));
  TRY(member.write_in_turn(seen));
  return messages.publish("seen." + std::to_string(number), "at " + std::to_string(seen));
}

}  // namespace

kfdtest::CommandLine::Words shape_words(const Shape*& chosen) {
  kfdtest::CommandLine::Words words;
  for (const Shape& shape : kShapes) words.emplace_back(shape.name, [&chosen, &shape] { chosen = &shape; });
  return words;
}

base::Status be_shape(const ShapeOptions& options, const MessageFiles& messages) {
  std::vector<Pipe> pipes;
  for (std::size_t i = 0; i < options.shape.gifts.size(); ++i) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return base::Error::from_errno(errno, "socketpair");
    pipes.push_back({UniqueFd(pair[0]), UniqueFd(pair[1])});
  }
  for (std::size_t number = 1; number < options.shape.members; ++number) {
    const pid_t child = ::fork();
    if (child < 0) return base::Error::from_errno(errno, "fork");
    if (child > 0) continue;
    const base::Status status = be_member(options, messages, number, std::move(pipes));
    ::_exit(status.ok() ? EXIT_SUCCESS : messages.fail(status.error().message()));
  }
  TRY(be_member(options, messages, 0, std::move(pipes)));
  for (std::size_t number = 1; number < options.shape.members; ++number)
    if (number != options.shape.ends) TRY(wait_for(options, "seen." + std::to_string(number)));
  TRY(messages.publish("result", "RESULT 5ea5000000000001"));
  while (::wait(nullptr) > 0) {
  }
  return {};
}

}  // namespace fieldtest
