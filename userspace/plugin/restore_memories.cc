// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that several restored processes share, in one of them: it takes from the others, or makes, what it needs
// before its own state is restored, and gives them what was allocated for it as soon as the kernel has made that. The
// plan (sharing.h) has no cycle, so that no two processes wait for each other. CRIU keeps each descriptor meanwhile, in
// the queue of a socket (queued_file.h), which CRIU's main process empties when all processes are restored: it may live
// as long as the program, and what it kept would never be freed. Exactly one process loads the contents: that which
// allocated the memory. resume() sees that all have.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/os.h"
#include "plugin/made_memory.h"
#include "plugin/queued_file.h"
#include "plugin/restore.h"
#include "plugin/restore_loader.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;
using State = RestoreBoard::Memory::State;

constexpr int kPollMs = 1;

bool has(const sharing::Memory& memory, std::size_t process) {
  return std::binary_search(memory.holders.begin(), memory.holders.end(), process);
}

bool provides(const sharing::Memory& memory, std::size_t process) {
  return memory.has_provider && memory.origin.process == process;
}

std::string name_of(const sharing::Memory& memory) {
  return "shared memory of " + std::to_string(memory.size) + " bytes";
}

// Another task of the restore.
class Peer {
 public:
  static Result<Peer> find(std::uint32_t pid) {
    UniqueFd pidfd(os::pidfd_open(static_cast<pid_t>(pid), 0));
    if (!pidfd.valid() && errno != ESRCH)
      return Error::from_errno(errno, "watching process " + std::to_string(pid) + ", which allocates it");
    return Peer(std::move(pidfd));
  }

  // Waits a moment; false when it has ended, even if its parent does not know yet.
  [[nodiscard]] bool is_alive() const {
    if (!pidfd_.valid()) return false;
    pollfd file{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    return os::poll(&file, 1, kPollMs) == 0 || (file.revents & POLLIN) == 0;
  }

 private:
  explicit Peer(UniqueFd pidfd) : pidfd_(std::move(pidfd)) {}

  UniqueFd pidfd_;  // invalid: it had ended
};

// What the operator can do when CRIU cannot keep one more of `memories` descriptors.
std::string remedy_of(int code, std::size_t memories) {
  const std::string each = " each of the " + std::to_string(memories) + " memories that the processes share needs ";
  if (code == EAGAIN || code == ENOBUFS)
    return ": the queue of its fdstore is full, in which" + each +
           "a place; give CRIU CAP_NET_ADMIN, or raise net.core.wmem_max";
  if (code == ETOOMANYREFS)
    return ": too many descriptors are in queues of sockets, where" + each +
           "two; give CRIU CAP_SYS_RESOURCE, or raise its limit of open files (ulimit -n)";
  return "";
}

}  // namespace

// The number that CRIU gave it.
Result<int> Restore::keep_memory(const Shared& shared, std::size_t memory, int dmabuf) const {
  const auto memories = shared.session.plan.memories();
  const auto failure = [&](Error error) {
    const std::string remedy = remedy_of(error.code(), memories.size());
    return Error(error.code(), error.message() + remedy).wrap(name_of(memories[memory]));
  };
  auto socket = queue_file(dmabuf);
  if (!socket.ok()) return failure(std::move(socket).error());
  auto number = parts_.criu.keep_file(socket->get());
  if (!number.ok()) return failure(std::move(number).error());
  return number;
}

// In CRIU's main process, when every process has what it needs.
void Restore::release_memories() {
  for (const auto& [session_id, shared] : shared_) {
    if (!shared.ok()) continue;
    for (std::size_t i = 0; i < shared->session.plan.memories().size(); ++i) {
      const RestoreBoard::Memory memory = board_.memory(shared->first + i);
      if (memory.state != State::kAvailable && memory.state != State::kLoaded) continue;
      const auto socket = parts_.criu.kept_file(static_cast<int>(memory.value));
      const Status status = socket.ok() ? empty_queue(socket->get()) : Status(socket.error());
      if (!status.ok())
        parts_.criu.warn(name_of(shared->session.plan.memories()[i]) +
                         " stays allocated as long as CRIU runs, and the processes cannot be dumped again until it "
                         "ends: " +
                         status.error().message());
    }
  }
}

// The descriptors that `request` then names.
Result<Restore::Taken> Restore::take_memories(Loader& loader, kfd::RestoreRequest& request) {
  const Shared& shared = *shared_.at(loader.process().session_id);
  const std::size_t self = shared.session.index_of(loader.process().owner);
  Taken taken;
  ASSIGN_OR_RETURN(taken.made, make_memories(loader, shared, self));
  const auto memories = shared.session.plan.memories();
  for (std::size_t i = 0; i < memories.size(); ++i) {
    if (!has(memories[i], self) || provides(memories[i], self)) continue;
    auto memory = wait_for_memory(shared, i);
    if (!memory.ok()) return std::move(memory).error().wrap(name_of(memories[i]));
    taken.descriptors.push_back(std::move(memory).value());
    request.memories.push_back({memories[i].inode, taken.descriptors.back().get()});
  }
  return taken;
}

// Makes what this process needs and nobody has begun to make. Its contents come later, in load_memories(), so that
// nobody waits for them.
Result<std::vector<Restore::MadeMemory>> Restore::make_memories(Loader& loader, const Shared& shared,
                                                                std::size_t process) {
  const auto memories = shared.session.plan.memories();
  std::vector<std::size_t> claimed;
  std::vector<MemoryToMake> wanted;
  for (std::size_t i = 0; i < memories.size(); ++i) {
    const sharing::Memory& memory = memories[i];
    if (memory.has_provider || !has(memory, process)) continue;
    if (!board_.claim_memory(shared.first + i, loader.process().owner)) continue;
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, loader.plan().destination_of(shared.session.gpu_of(memory)));
    claimed.push_back(i);
    wanted.push_back({loader.plan().render(gpu_id),
                      {.size = memory.size, .gpu_id = gpu_id, .alloc_flags = shared.session.alloc_flags_of(memory)}});
  }
  std::vector<MadeMemory> result;
  if (claimed.empty()) return result;
  ASSIGN_OR_RETURN(std::vector<UniqueFd> made, plugin::make_memories(parts_.system, parts_.kfd, loader.plan().kfd(),
                                                                     wanted, [this] { return next_unused_pid(); }));
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    ASSIGN_OR_RETURN(const int number, keep_memory(shared, claimed[i], made[i].get()));
    board_.offer_memory(shared.first + claimed[i], number);
    result.push_back({claimed[i], std::move(made[i])});
  }
  return result;
}

Result<UniqueFd> Restore::wait_for_memory(const Shared& shared, std::size_t memory) const {
  const sharing::Memory& wanted = shared.session.plan.memories()[memory];
  std::optional<Peer> peer;
  for (;;) {
    const RestoreBoard::Memory now = board_.memory(shared.first + memory);
    if (now.state == State::kAvailable || now.state == State::kLoaded) {
      ASSIGN_OR_RETURN(const UniqueFd socket, parts_.criu.kept_file(static_cast<int>(now.value)));
      return queued_file(socket.get());
    }
    const std::uint32_t pid = wanted.has_provider ? shared.session.files[wanted.origin.process]->kfd()->pid : now.value;
    if (!peer) {
      ASSIGN_OR_RETURN(peer, Peer::find(pid));
    }
    const bool has_failed = board_.progress(*board_.find(pid)) == Progress::kFailed;
    if (!has_failed && peer->is_alive()) continue;
    // It may have offered the memory and ended since.
    if (board_.memory(shared.first + memory).state != now.state) continue;
    return Error(ESRCH, "process " + std::to_string(pid) + ", which allocates it, has ended or was not restored");
  }
}

// Before this process loads any contents, so that nobody waits for them.
Status Restore::offer_memories(const SavedFile& process, int kfd_fd, std::vector<kfd::RestoredBo>& restored) {
  const Shared& shared = *shared_.at(process.session_id);
  const std::size_t self = shared.session.index_of(process.owner);
  const auto memories = shared.session.plan.memories();
  for (std::size_t i = 0; i < memories.size(); ++i) {
    if (!provides(memories[i], self)) continue;
    const std::size_t bo = memories[i].origin.bo;
    ASSIGN_OR_RETURN(const UniqueFd dmabuf,
                     parts_.kfd.export_restored(kfd_fd, process.loaded->kfd()->bos[bo].bo, restored[bo]));
    ASSIGN_OR_RETURN(const int number, keep_memory(shared, i, dmabuf.get()));
    board_.offer_memory(shared.first + i, number);
  }
  return {};
}

Status Restore::load_memories(Loader& loader, const SavedFile& process, int kfd_fd,
                              std::vector<kfd::RestoredBo>& restored, const std::vector<MadeMemory>& made) {
  const Shared& shared = *shared_.at(process.session_id);
  const std::size_t self = shared.session.index_of(process.owner);
  const auto memories = shared.session.plan.memories();
  for (const MadeMemory& memory : made) TRY(load_memory(loader, shared, memory.index, memory.dmabuf.get()));
  for (std::size_t i = 0; i < memories.size(); ++i) {
    if (!provides(memories[i], self)) continue;
    const std::size_t bo = memories[i].origin.bo;
    ASSIGN_OR_RETURN(const UniqueFd dmabuf,
                     parts_.kfd.export_restored(kfd_fd, process.loaded->kfd()->bos[bo].bo, restored[bo]));
    TRY(load_memory(loader, shared, i, dmabuf.get()));
  }
  return {};
}

Status Restore::load_memory(Loader& loader, const Shared& shared, std::size_t memory, int dmabuf) {
  const sharing::Memory& wanted = shared.session.plan.memories()[memory];
  const sharing::Place& place = shared.session.contents[memory];
  auto status = loader.load(*shared.session.files[place.process], place.bo, shared.session.gpu_of(wanted), dmabuf);
  if (!status.ok()) return std::move(status).error().wrap(name_of(wanted));
  board_.set_loaded(shared.first + memory);
  return {};
}

Status Restore::require_loaded(const SavedFile& process) const {
  const auto& shared = shared_.at(process.session_id);
  if (!shared.ok()) return shared.error();
  const std::size_t self = shared->session.index_of(process.owner);
  const auto memories = shared->session.plan.memories();
  for (std::size_t i = 0; i < memories.size(); ++i)
    if (has(memories[i], self) && board_.memory(shared->first + i).state != State::kLoaded)
      return Error(EIO, "the contents of " + name_of(memories[i]) + " were not loaded");
  return {};
}

}  // namespace plugin
