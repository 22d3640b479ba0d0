// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that several restored processes share, in one of them: it takes from the others, or makes, what it needs
// before its own state is restored, and gives them what was allocated for it as soon as the kernel has made that. The
// plan (sharing.h) has no cycle, so that no two processes wait for each other. CRIU keeps the descriptors meanwhile,
// and exactly one process loads the contents: that which allocated the memory. resume() sees that all have.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/os.h"
#include "plugin/made_memory.h"
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
  explicit Peer(std::uint32_t pid) : pidfd_(os::pidfd_open(static_cast<pid_t>(pid), 0)) {}

  // Waits a moment; false when it has ended, even if its parent does not know yet.
  [[nodiscard]] bool is_alive() const {
    if (!pidfd_.valid()) return false;
    pollfd file{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    return os::poll(&file, 1, kPollMs) == 0 || (file.revents & POLLIN) == 0;
  }

 private:
  UniqueFd pidfd_;
};

}  // namespace

// The descriptors that `request` then names.
Result<std::vector<UniqueFd>> Restore::take_memories(Loader& loader, kfd::RestoreRequest& request) {
  const Shared& shared = *shared_.at(loader.process().session_id);
  const std::size_t self = shared.session.index_of(loader.process().owner);
  TRY(make_memories(loader, shared, self));
  std::vector<UniqueFd> taken;
  const auto memories = shared.session.plan.memories();
  for (std::size_t i = 0; i < memories.size(); ++i) {
    if (!has(memories[i], self) || provides(memories[i], self)) continue;
    auto memory = wait_for_memory(shared, i);
    if (!memory.ok()) return std::move(memory).error().wrap(name_of(memories[i]));
    taken.push_back(std::move(memory).value());
    request.memories.push_back({memories[i].inode, taken.back().get()});
  }
  return taken;
}

// Makes what this process needs and nobody has begun to make. The others do not wait for the contents.
Status Restore::make_memories(Loader& loader, const Shared& shared, std::size_t process) {
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
  if (claimed.empty()) return {};
  ASSIGN_OR_RETURN(const std::vector<UniqueFd> made,
                   plugin::make_memories(parts_.system, parts_.kfd, loader.plan().kfd(), wanted,
                                         [this] { return next_unused_pid(); }));
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    ASSIGN_OR_RETURN(const int number, parts_.criu.keep_file(made[i].get()));
    board_.offer_memory(shared.first + claimed[i], number);
  }
  for (std::size_t i = 0; i < claimed.size(); ++i) TRY(load_memory(loader, shared, claimed[i], made[i].get()));
  return {};
}

Result<UniqueFd> Restore::wait_for_memory(const Shared& shared, std::size_t memory) const {
  const sharing::Memory& wanted = shared.session.plan.memories()[memory];
  std::optional<Peer> peer;
  for (;;) {
    const RestoreBoard::Memory now = board_.memory(shared.first + memory);
    if (now.state == State::kAvailable || now.state == State::kLoaded)
      return parts_.criu.kept_file(static_cast<int>(now.value));
    const std::uint32_t pid = wanted.has_provider ? shared.session.files[wanted.origin.process]->kfd()->pid : now.value;
    if (!peer) peer.emplace(pid);
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
    auto number = parts_.criu.keep_file(dmabuf.get());
    if (!number.ok()) return std::move(number).error().wrap(name_of(memories[i]));
    board_.offer_memory(shared.first + i, *number);
  }
  return {};
}

Status Restore::load_memories(Loader& loader, const SavedFile& process, int kfd_fd,
                              std::vector<kfd::RestoredBo>& restored) {
  const Shared& shared = *shared_.at(process.session_id);
  const std::size_t self = shared.session.index_of(process.owner);
  const auto memories = shared.session.plan.memories();
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
