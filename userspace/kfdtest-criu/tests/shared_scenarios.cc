// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Each member of a shape is a chain of processes (successor.h). What the members do does not depend on how they are
// restored. Memory that several members have is made anew for a restore: the first of them has a child make it, which
// ends, and sends it to the others.
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
#include <cstring>
#include <map>
#include <new>
#include <span>
#include <utility>

#include "base/file_socket.h"
#include "base/mapping.h"
#include "base/unique_fd.h"
#include "kfd/extensible_kfd.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/gem.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/memory.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/session.h"
#include "kfdtest-criu/harness/successor.h"
#include "kfdtest-criu/tests/shared_holding.h"
#include "kfdtest-criu/tests/shared_shapes.h"

namespace kfdtest {
namespace {

constexpr std::string_view kPrefix = "share/";
constexpr std::uint64_t kSeed = 131;
constexpr unsigned kGenerations = 2;
// The distance of the places where holdings write in a memory: each in a page of its own.
constexpr std::size_t kWordStride = kPageSize + 256;

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
  // One member less comes from now on.
  void leave() { --members_; }

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

// New memory like that of a GEM object, as a DMA-buf.
base::Result<base::UniqueFd> make_gem(int render) {
  ASSIGN_OR_RETURN(const std::uint32_t handle, gem::create(render, kSharedSize));
  return gem::export_dmabuf(render, handle);
}

base::Result<base::UniqueFd> make_bo(int render, const Gpu& gpu, std::uint32_t kfd_flags) {
  const base::UniqueFd own(::open("/dev/kfd", O_RDWR | O_CLOEXEC));
  kfd::ExtensibleKfd kfd;
  return kfd.allocate(own.get(),
                      {.size = kSharedSize, .gpu_id = gpu.gpu_id, .alloc_flags = kfd_flags, .drm_fd = render});
}

// New memory, which belongs to no process when this returns. `kfd_flags` are those of HeldMemory.
base::Result<base::UniqueFd> make_memory(const Gpu& gpu, std::uint32_t kfd_flags, const Post& post, std::size_t self) {
  const pid_t child = ::fork();
  if (child < 0) return base::Error::from_errno(errno, "fork");
  if (child == 0) {
    const std::string path = "/dev/dri/renderD" + std::to_string(gpu.render_minor);
    const base::UniqueFd render(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    const auto made = kfd_flags == 0 ? make_gem(render.get()) : make_bo(render.get(), gpu, kfd_flags);
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
      : shape_(&shape), self_(self), meeting_(&meeting), post_(&post), session_(&session) {}

  base::Status run() {
    for (std::size_t i = 0; i < shape_->gpus(); ++i) {
      ASSIGN_OR_RETURN(GpuMemory pages, GpuMemory::allocate(gpu(i), MemoryKind::kGtt, kSharedSize));
      read_.push_back(std::move(pages));
    }
    TRY(share());
    TRY(meeting_->meet());
    std::erase_if(mine_, [this](const auto& mine) { return shape_->holdings[mine.first].freed; });
    if (shape_->ends == self_) return {};
    if (shape_->ends != kNobody) meeting_->leave();
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

  base::Result<std::vector<kfd::SharedMemory>> memories(std::span<const HeldMemory> held) override {
    std::vector<kfd::SharedMemory> memories;
    for (std::size_t memory = 0; memory < shape_->memories(); ++memory) {
      if (!shape_->has(self_, memory) || !shape_->is_exchanged(memory)) continue;
      const auto in_image = std::ranges::find_if(held, [&](const HeldMemory& each) {
        return std::ranges::any_of(mine_, [&](const auto& mine) {
          return shape_->holdings[mine.first].memory == memory && mine.second.is(each);
        });
      });
      if (in_image == held.end()) return base::Error(ENOENT, "the image does not have a shared memory");
      ASSIGN_OR_RETURN(base::UniqueFd dmabuf, take(memory, in_image->kfd_flags));
      memories.push_back({in_image->inode, dmabuf.get()});
      taken_.push_back(std::move(dmabuf));
    }
    return memories;
  }
  void exchanged() override { taken_.clear(); }

 private:
  [[nodiscard]] const Gpu& gpu(std::size_t i) const { return session_->gpus()[i]; }

  // One process that has a memory makes the new one and sends it to all others that have it.
  base::Result<base::UniqueFd> take(std::size_t memory, std::uint32_t kfd_flags) {
    const std::size_t maker = shape_->maker(memory);
    if (maker != self_) return post_->receive(maker, self_);
    const auto allocation = std::ranges::find(shape_->holdings, memory, &Holding::memory);
    ASSIGN_OR_RETURN(base::UniqueFd made, make_memory(gpu(allocation->gpu), kfd_flags, *post_, self_));
    for (std::size_t member = 0; member < shape_->members(); ++member)
      if (member != self_ && shape_->has(member, memory)) TRY(post_->send(self_, member, made.get()));
    return made;
  }

  base::Status share() {
    for (std::size_t i = 0; i < shape_->holdings.size(); ++i) {
      const Holding& each = shape_->holdings[i];
      const std::size_t giver = each.from == kNobody ? kNobody : shape_->holdings[each.from].member;
      if (giver == self_) {
        ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, mine_.at(each.from).export_dmabuf());
        TRY(post_->send(self_, each.member, dmabuf.get()));
      }
      if (each.member == self_) TRY(get(i, giver));
    }
    return {};
  }

  base::Status get(std::size_t holding, std::size_t giver) {
    const Holding& each = shape_->holdings[holding];
    if (giver == kNobody) {
      ASSIGN_OR_RETURN(Held held, Held::allocate(gpu(each.gpu), each.as));
      TRY(held.fill(kSeed + each.memory));
      mine_.emplace(holding, std::move(held));
    } else {
      ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, post_->receive(giver, self_));
      ASSIGN_OR_RETURN(Held held, Held::import(gpu(each.gpu), each.as, dmabuf.get()));
      mine_.emplace(holding, std::move(held));
    }
    return each.used_by == each.gpu ? base::Status() : mine_.at(holding).map_also(gpu(each.used_by));
  }

  // The GPU of one holding after the other writes, and the GPUs of all see it.
  base::Status write_in_turns(std::uint32_t round) {
    for (std::size_t writer = 0; writer < shape_->holdings.size(); ++writer) {
      if (const auto held = mine_.find(writer); held != mine_.end()) {
        TRY(held->second.store32(gpu(shape_->holdings[writer].used_by), place(writer), word(writer, round)));
      }
      TRY(meeting_->meet());
    }
    return check(round);
  }

  static std::size_t place(std::size_t writer) { return (writer + 1) * kWordStride; }
  static std::uint32_t word(std::size_t writer, std::uint32_t round) {
    return static_cast<std::uint32_t>(round << 8 | (writer + 1));
  }

  // What each holding reads is the pattern, and the words of all that are of the same memory.
  base::Status check(std::uint32_t round) {
    for (const auto& [holding, held] : mine_) {
      const std::size_t used_by = shape_->holdings[holding].used_by;
      const std::vector<std::byte> wanted = contents(shape_->holdings[holding].memory, round);
      ASSIGN_OR_RETURN(const std::vector<Piece> pieces, held.read(gpu(used_by), read_[used_by]));
      for (const Piece& piece : pieces) {
        const auto at = wanted.begin() + static_cast<std::ptrdiff_t>(piece.offset);
        const auto wrong = std::ranges::mismatch(piece.bytes, std::ranges::subrange(at, wanted.end())).in1;
        if (wrong == piece.bytes.end()) continue;
        const auto byte = piece.offset + static_cast<std::size_t>(wrong - piece.bytes.begin());
        return base::Error(EIO, "holding " + std::to_string(holding) + " has another byte " + std::to_string(byte) +
                                    "; holding N has written at " + std::to_string(kWordStride) + " * (N + 1)");
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<std::byte> contents(std::size_t memory, std::uint32_t round) const {
    std::vector<std::byte> bytes(kSharedSize);
    fill_pattern(bytes, kSeed + memory);
    for (std::size_t writer = 0; writer < shape_->holdings.size(); ++writer) {
      const Holding& each = shape_->holdings[writer];
      if (each.memory != memory || each.freed) continue;
      const std::uint32_t written = word(writer, round);
      std::memcpy(bytes.data() + place(writer), &written, sizeof(written));
    }
    return bytes;
  }

  const Shape* shape_;
  std::size_t self_;
  Meeting* meeting_;
  const Post* post_;
  const Session* session_;
  std::map<std::size_t, Held> mine_;   // by holding
  std::vector<GpuMemory> read_;        // what each GPU has read
  std::vector<base::UniqueFd> taken_;  // during a restore
};

base::Status be_member(const Shape& shape, std::size_t self, Meeting& meeting, const Post& post) {
  return run_with_successors([&]() -> base::Status {
    ASSIGN_OR_RETURN(const Session session, Session::open());
    return Member(shape, self, meeting, post, session).run();
  });
}

base::Status run_shape(const Shape& shape) {
  ASSIGN_OR_RETURN(Meeting meeting, Meeting::create(shape.members()));
  ASSIGN_OR_RETURN(const Post post, Post::create(shape.members()));
  std::vector<pid_t> members;
  for (std::size_t i = 0; i < shape.members(); ++i) {
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

std::size_t gpus_of_shape(std::string_view shape) { return std::ranges::find(shapes(), shape, &Shape::name)->gpus(); }

std::string shared_scenario(std::string_view shape) { return std::string(kPrefix) + std::string(shape); }

std::optional<base::Status> run_shared_scenario(std::string_view name) {
  const auto found =
      std::ranges::find_if(shapes(), [name](const Shape& each) { return name == shared_scenario(each.name); });
  if (found == shapes().end()) return std::nullopt;
  return run_shape(*found);
}

}  // namespace kfdtest
