// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Each member of a shape is a chain of processes (successor.h). What the members do does not depend on how they are
// restored. The memory of a restore is new memory that the first giver has a child allocate, as a process that belongs
// to nobody, and sends to the others.
#include "kfdtest-criu/tests/shared_scenarios.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <new>
#include <span>
#include <utility>

#include "base/file_socket.h"
#include "base/mapping.h"
#include "base/unique_fd.h"
#include "kfd/extensible_kfd.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/memory.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/successor.h"

namespace kfdtest {
namespace {

constexpr std::string_view kPrefix = "share/";
constexpr std::size_t kSize = 64 * kKiB;
constexpr std::uint64_t kSeed = 131;
constexpr unsigned kGenerations = 2;
// Where a member writes in each memory.
constexpr std::size_t kWordStride = 256;

// A process gives memory to another one. Whoever is the first giver of a memory allocates it.
struct Gift {
  std::size_t memory;
  std::size_t from;
  std::size_t to;
};

struct Shape {
  std::string_view name;
  std::size_t members;
  std::vector<Gift> gifts;

  [[nodiscard]] std::size_t memories() const {
    std::size_t count = 0;
    for (const Gift& gift : gifts) count = std::max(count, gift.memory + 1);
    return count;
  }
  [[nodiscard]] std::size_t first_giver(std::size_t memory) const {
    return std::ranges::find(gifts, memory, &Gift::memory)->from;
  }
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"pair", 2, {{0, 0, 1}}},
      {"three", 3, {{0, 0, 1}, {0, 0, 2}}},
      {"chain", 3, {{0, 0, 1}, {0, 1, 2}}},
      {"cycle", 3, {{0, 0, 1}, {1, 1, 2}, {2, 2, 0}}},
  };
  return all;
}

// Where all processes of a shape meet.
class Meeting {
 public:
  static base::Result<Meeting> create(std::size_t members) {
    ASSIGN_OR_RETURN(base::Mapping page, base::Mapping::shared_anonymous(kPageSize, "a page for all members"));
    new (page.data()) std::atomic<std::uint64_t>(0);
    return Meeting(std::move(page), members);
  }
  // Returns when all have called it as often as this process and those before it in its chain.
  base::Status meet() {
    auto& came = *std::launder(reinterpret_cast<std::atomic<std::uint64_t>*>(page_.data()));
    came.fetch_add(1);
    met_ += members_;
    return wait_until([&] { return came.load() >= met_; }) ? base::Status()
                                                           : base::Error(ETIME, "not all members have come");
  }

 private:
  Meeting(base::Mapping page, std::size_t members) : page_(std::move(page)), members_(members) {}
  base::Mapping page_;
  std::size_t members_;
  std::uint64_t met_ = 0;
};

// Sockets by which each member sends files to each other one.
class Post {
 public:
  static base::Result<Post> create(std::size_t members) {
    Post post;
    for (std::size_t from = 0; from < members; ++from) {
      for (std::size_t to = 0; to < members; ++to) {
        int pair[2] = {-1, -1};
        if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) != 0)
          return base::Error::from_errno(errno, "socketpair");
        post.ends_.emplace(std::pair(from, to), std::pair(base::UniqueFd(pair[0]), base::UniqueFd(pair[1])));
      }
    }
    return post;
  }
  [[nodiscard]] base::Status send(std::size_t from, std::size_t to, int file) const {
    return base::send_file(ends_.at({from, to}).first.get(), file);
  }
  [[nodiscard]] base::Result<base::UniqueFd> receive(std::size_t from, std::size_t to) const {
    return base::receive_file(ends_.at({from, to}).second.get());
  }

 private:
  std::map<std::pair<std::size_t, std::size_t>, std::pair<base::UniqueFd, base::UniqueFd>> ends_;
};

// New memory, which belongs to no process when this returns.
base::Result<base::UniqueFd> make_memory(const Gpu& gpu, const kfd::Bo& like, const Post& post, std::size_t self) {
  const pid_t child = ::fork();
  if (child < 0) return base::Error::from_errno(errno, "fork");
  if (child == 0) {
    const std::string render = "/dev/dri/renderD" + std::to_string(gpu.render_minor);
    const base::UniqueFd own(::open("/dev/kfd", O_RDWR | O_CLOEXEC));
    const base::UniqueFd drm(::open(render.c_str(), O_RDWR | O_CLOEXEC));
    kfd::ExtensibleKfd kfd;
    const auto made = kfd.allocate(
        own.get(), {.size = like.size, .gpu_id = gpu.gpu_id, .alloc_flags = like.alloc_flags, .drm_fd = drm.get()});
    if (!made.ok()) std::fprintf(stderr, "%s\n", made.error().message().c_str());
    ::_exit(made.ok() && post.send(self, self, made->get()).ok() ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) != child)
    if (errno != EINTR) return base::Error::from_errno(errno, "waitpid");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
    return base::Error(EIO, "no memory was made; see the message above");
  return post.receive(self, self);
}

class Member final : public MemoryExchange {
 public:
  Member(const Shape& shape, std::size_t self, Meeting& meeting, const Post& post, const Session& session)
      : shape_(&shape), self_(self), meeting_(&meeting), post_(&post), session_(&session), mine_(shape.memories()) {}

  base::Status run() {
    ASSIGN_OR_RETURN(page_, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kSize));
    TRY(share());
    TRY(meeting_->meet());
    SuccessorCheckpointer checkpointer(*session_, GpuOrder::kSame, CriuAbi::kExtensible, PageSharing::kNone, this);
    std::uint32_t round = 0;
    TRY(write_in_turns(++round));
    for (unsigned generation = 0; generation < kGenerations; ++generation) {
      TRY(checkpointer.hand_over());
      TRY(meeting_->meet());  // all have written the contents
      TRY(check(round));
      TRY(meeting_->meet());
      TRY(write_in_turns(++round));
    }
    return {};
  }

  base::Result<std::vector<kfd::SharedMemory>> memories(const kfd::Checkpoint& checkpoint) override {
    std::vector<kfd::SharedMemory> memories;
    for (std::size_t memory = 0; memory < mine_.size(); ++memory) {
      if (!mine_[memory]) continue;
      const auto bo = std::ranges::find(checkpoint.bos, mine_[memory]->gpu_address(),
                                        [](const kfd::CheckpointedBo& each) { return each.bo.addr; });
      if (bo == checkpoint.bos.end()) return base::Error(ENOENT, "the image has no BO of a shared memory");
      ASSIGN_OR_RETURN(base::UniqueFd dmabuf, take(memory, bo->bo));
      memories.push_back({bo->inode, dmabuf.get()});
      taken_.push_back(std::move(dmabuf));
    }
    return memories;
  }
  void exchanged() override { taken_.clear(); }

 private:
  [[nodiscard]] const Gpu& gpu() const { return session_->gpus().front(); }

  base::Result<base::UniqueFd> take(std::size_t memory, const kfd::Bo& like) {
    const std::size_t giver = shape_->first_giver(memory);
    if (giver != self_) return post_->receive(giver, self_);
    ASSIGN_OR_RETURN(base::UniqueFd made, make_memory(gpu(), like, *post_, self_));
    for (const Gift& gift : shape_->gifts)
      if (gift.memory == memory) TRY(post_->send(self_, gift.to, made.get()));
    return made;
  }

  base::Status share() {
    for (const Gift& gift : shape_->gifts) {
      auto& memory = mine_[gift.memory];
      if (gift.from == self_) {
        if (!memory) {
          ASSIGN_OR_RETURN(memory, GpuMemory::allocate(gpu(), MemoryKind::kVram, kSize));
          fill_pattern(memory->bytes(), kSeed + gift.memory);
        }
        ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, ioctls_of(gpu()).client().export_dmabuf(memory->block().handle));
        TRY(post_->send(self_, gift.to, dmabuf.get()));
      } else if (gift.to == self_) {
        ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, post_->receive(gift.from, self_));
        ASSIGN_OR_RETURN(Block block, ioctls_of(gpu()).import_dmabuf(gpu(), dmabuf.get(), kSize));
        ASSIGN_OR_RETURN(memory, GpuMemory::take(gpu(), std::move(block)));
      }
    }
    return {};
  }

  // The GPU of one after the other writes, and the GPUs of all see it.
  base::Status write_in_turns(std::uint32_t round) {
    for (std::size_t writer = 0; writer < shape_->members; ++writer) {
      if (writer == self_)
        for (const auto& memory : mine_)
          if (memory)
            TRY(run_alone(gpu(), SdmaCommands(gpu()).fence(memory->gpu_address(place(writer)), word(writer, round))));
      TRY(meeting_->meet());
    }
    return check(round);
  }

  static std::size_t place(std::size_t writer) { return (writer + 1) * kWordStride; }
  static std::uint32_t word(std::size_t writer, std::uint32_t round) {
    return static_cast<std::uint32_t>(round << 8 | (writer + 1));
  }
  [[nodiscard]] bool has(std::size_t member, std::size_t memory) const {
    return std::ranges::any_of(shape_->gifts, [&](const Gift& gift) {
      return gift.memory == memory && (gift.from == member || gift.to == member);
    });
  }

  // What the GPU reads is the pattern, and the words of all who have the memory.
  base::Status check(std::uint32_t round) {
    for (std::size_t memory = 0; memory < mine_.size(); ++memory) {
      if (!mine_[memory]) continue;
      std::ranges::fill(page_->bytes(), std::byte{0});
      TRY(run_alone(gpu(), SdmaCommands(gpu()).copy(page_->gpu_address(), mine_[memory]->gpu_address(), kSize)));
      for (std::size_t writer = 0; writer < shape_->members; ++writer) {
        if (!has(writer, memory)) continue;
        if (page_->load32(place(writer)) != word(writer, round))
          return base::Error(EIO, "member " + std::to_string(self_) + " does not see what member " +
                                      std::to_string(writer) + " wrote into memory " + std::to_string(memory));
        std::vector<std::byte> original(kSize);
        fill_pattern(original, kSeed + memory);
        std::copy_n(original.begin() + static_cast<std::ptrdiff_t>(place(writer)), sizeof(std::uint32_t),
                    page_->bytes().begin() + static_cast<std::ptrdiff_t>(place(writer)));
      }
      if (find_mismatch(page_->bytes(), kSeed + memory))
        return base::Error(
            EIO, "member " + std::to_string(self_) + ": memory " + std::to_string(memory) + " has lost its contents");
    }
    return {};
  }

  const Shape* shape_;
  std::size_t self_;
  Meeting* meeting_;
  const Post* post_;
  const Session* session_;
  std::vector<std::optional<GpuMemory>> mine_;  // by memory
  std::optional<GpuMemory> page_;               // what the GPU has read
  std::vector<base::UniqueFd> taken_;           // during a restore
};

base::Status be_member(const Shape& shape, std::size_t self, Meeting& meeting, const Post& post) {
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Session session, Session::open());
    return Member(shape, self, meeting, post, session).run();
  });
}

base::Status run_shape(const Shape& shape) {
  ASSIGN_OR_RETURN(Meeting meeting, Meeting::create(shape.members));
  ASSIGN_OR_RETURN(const Post post, Post::create(shape.members));
  std::vector<pid_t> members;
  for (std::size_t i = 0; i < shape.members; ++i) {
    const pid_t member = ::fork();
    if (member < 0) return base::Error::from_errno(errno, "fork");
    if (member == 0) {
      const base::Status status = be_member(shape, i, meeting, post);
      if (!status.ok()) std::fprintf(stderr, "member %zu: %s\n", i, status.error().message().c_str());
      ::_exit(status.ok() ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    members.push_back(member);
  }
  bool good = true;
  for (const pid_t member : members) {
    int status = 0;
    while (::waitpid(member, &status, 0) != member)
      if (errno != EINTR) return base::Error::from_errno(errno, "waitpid");
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
  }
  return good ? base::Status() : base::Error(EIO, "a member failed; see its message above");
}

}  // namespace

std::vector<std::string> shared_shapes() {
  std::vector<std::string> names;
  for (const Shape& shape : shapes()) names.emplace_back(shape.name);
  return names;
}

std::string shared_scenario(std::string_view shape) { return std::string(kPrefix) + std::string(shape); }

std::optional<base::Status> run_shared_scenario(std::string_view name) {
  const auto found =
      std::ranges::find_if(shapes(), [name](const Shape& each) { return name == shared_scenario(each.name); });
  if (found == shapes().end()) return std::nullopt;
  return run_shape(*found);
}

}  // namespace kfdtest
