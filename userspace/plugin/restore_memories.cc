// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that several restored processes share, or files of render nodes, in one of them: it takes from the others, or
// makes, what it needs before its own state is restored, or the objects of the file are created, and gives them what
// was allocated for it as soon as the kernel has made that. Whoever makes memory waits for nobody meanwhile. The plan
// (sharing.h) has no cycle, so that no two processes wait for each other. CRIU keeps the descriptors meanwhile, in
// queues of sockets (queued_file.h), which CRIU's main process empties when all processes are restored: it may live as
// long as the program, and what it kept would never be freed. Each socket has as many descriptors as a message can
// have, because CRIU's own queue, in which a socket takes as much room as one with a single descriptor, is short where
// CRIU may not enlarge it. Exactly one process loads the contents: that which allocated the memory. resume() sees that
// this was done for all memory of a process that uses KFD; a task that fails in a file, or is ended in a mapping, ends
// the restore.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <set>
#include <string>

#include "base/os.h"
#include "plugin/made_memory.h"
#include "plugin/peer.h"
#include "plugin/queued_file.h"
#include "plugin/render_objects.h"
#include "plugin/restore.h"
#include "plugin/restore_loader.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;
using State = RestoreBoard::Memory::State;

bool has(const sharing::Memory& memory, std::size_t process) {
  return std::binary_search(memory.holders.begin(), memory.holders.end(), process);
}

bool provides(const sharing::Memory& memory, std::size_t process) {
  return memory.has_provider && memory.origin.process == process;
}

std::string name_of(const sharing::Memory& memory) {
  return "shared memory of " + std::to_string(memory.size) + " bytes";
}

// What the operator can do when CRIU cannot keep descriptors of `memories` memories.
std::string remedy_of(int code, std::size_t memories) {
  if (code == EAGAIN || code == ENOBUFS)
    return ": the queue of its fdstore is full, in which every process that gives memory to others needs a place for "
           "each " +
           std::to_string(kMaxQueuedFiles) + "; give CRIU CAP_NET_ADMIN, or raise net.core.wmem_max";
  if (code == ETOOMANYREFS)
    return ": too many descriptors are in queues of sockets, where each of the " + std::to_string(memories) +
           " memories that the processes share needs one; give CRIU CAP_SYS_RESOURCE, or raise its limit of open files "
           "(ulimit -n)";
  return "";
}

// Where a descriptor is that CRIU keeps, as a word of the board.
struct KeptAt {
  int number = 0;         // of the socket
  std::size_t index = 0;  // of the file in its queue
};

int word_of(const KeptAt& at) { return at.number * static_cast<int>(kMaxQueuedFiles) + static_cast<int>(at.index); }

KeptAt kept_at(std::uint32_t word) {
  return {static_cast<int>(word / kMaxQueuedFiles), static_cast<std::size_t>(word % kMaxQueuedFiles)};
}

}  // namespace

// Offers memories of the plan to all processes; at most kMaxQueuedFiles.
Status Restore::keep_memories(const Shared& shared, std::span<const std::size_t> memories,
                              std::span<const int> dmabufs) {
  const auto all = shared.session.plan.memories();
  const auto failure = [&](Error error) {
    const std::string remedy = remedy_of(error.code(), all.size());
    return Error(error.code(), error.message() + remedy).wrap(name_of(all[memories.front()]));
  };
  auto socket = queue_files(dmabufs);
  if (!socket.ok()) return failure(std::move(socket).error());
  const auto number = services_.criu.keep_file(socket->get());
  if (!number.ok()) return failure(number.error());
  if (*number > INT_MAX / static_cast<int>(kMaxQueuedFiles) - 1)
    return failure(Error(EOVERFLOW, "CRIU keeps too many descriptors"));
  for (std::size_t i = 0; i < memories.size(); ++i)
    board_.offer_memory(shared.first + memories[i], word_of({*number, i}));
  return {};
}

// In CRIU's main process, when every process has what it needs.
void Restore::release_memories() {
  std::set<int> released;
  for (const auto& [session_id, shared] : shared_) {
    if (!shared.ok()) continue;
    for (std::size_t i = 0; i < shared->session.plan.memories().size(); ++i) {
      const RestoreBoard::Memory memory = board_.memory(shared->first + i);
      if (memory.state != State::kAvailable && memory.state != State::kLoaded) continue;
      const int number = kept_at(memory.value).number;
      if (!released.insert(number).second) continue;
      const auto socket = services_.criu.kept_file(number);
      const Status status = socket.ok() ? empty_queue(socket->get()) : Status(socket.error());
      if (!status.ok())
        services_.criu.warn(name_of(shared->session.plan.memories()[i]) +
                            " stays allocated as long as CRIU runs, and the processes cannot be dumped again until it "
                            "ends: " +
                            status.error().message());
    }
  }
}

// For a process, or for the objects of a file: `self` is its index in the plan.
Result<Restore::Taken> Restore::take_memories(const RestorePlan& plan, const Shared& shared, std::size_t self) {
  const auto memories = shared.session.plan.memories();
  Taken taken;
  std::vector<std::size_t> claimed;
  for (std::size_t i = 0; i < memories.size(); ++i)
    if (!memories[i].has_provider && has(memories[i], self) &&
        board_.claim_memory(shared.first + i, static_cast<std::uint32_t>(services_.criu.pid())))
      claimed.push_back(i);
  ASSIGN_OR_RETURN(taken.made, make_memories(plan, shared, claimed));
  std::map<int, std::vector<UniqueFd>> received;
  for (std::size_t i = 0; i < memories.size(); ++i) {
    if (!has(memories[i], self) || provides(memories[i], self)) continue;
    auto memory = wait_for_memory(shared, i, received);
    if (!memory.ok()) return std::move(memory).error().wrap(name_of(memories[i]));
    taken.dmabufs.emplace(memories[i].inode, std::move(memory).value());
  }
  return taken;
}

// Makes what this task has claimed. Contents come later, in load_memories(), so that nobody waits for them.
Result<std::vector<Restore::MadeMemory>> Restore::make_memories(const RestorePlan& plan, const Shared& shared,
                                                                const std::vector<std::size_t>& claimed) {
  std::vector<MadeMemory> made;
  if (claimed.empty()) return made;
  for (const std::size_t index : claimed) made.push_back({index, UniqueFd()});
  TRY(make_kfd_memories(plan, shared, made));
  TRY(make_gem_memories(plan, shared, made));
  for (std::size_t first = 0; first < claimed.size(); first += kMaxQueuedFiles) {
    const std::size_t count = std::min(kMaxQueuedFiles, claimed.size() - first);
    std::vector<int> dmabufs;
    for (std::size_t i = first; i < first + count; ++i) dmabufs.push_back(made[i].dmabuf.get());
    TRY(keep_memories(shared, std::span(claimed).subspan(first, count), dmabufs));
  }
  return made;
}

Status Restore::make_kfd_memories(const RestorePlan& plan, const Shared& shared, std::vector<MadeMemory>& memories) {
  std::vector<MadeMemory*> places;
  std::vector<MemoryToMake> wanted;
  for (MadeMemory& each : memories) {
    const sharing::Memory& memory = shared.session.plan.memories()[each.index];
    if (shared.session.is_gem(memory)) continue;
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan.destination_of(shared.session.gpu_of(memory)));
    wanted.push_back({plan.render(gpu_id),
                      {.size = memory.size, .gpu_id = gpu_id, .alloc_flags = shared.session.alloc_flags_of(memory)}});
    places.push_back(&each);
  }
  if (wanted.empty()) return {};
  services_.kfd.use_abi(kfd::Abi::kExtensible);
  ASSIGN_OR_RETURN(std::vector<UniqueFd> made, plugin::make_memories(services_.system, services_.kfd, plan.kfd(),
                                                                     wanted, [this] { return next_unused_pid(); }));
  for (std::size_t i = 0; i < places.size(); ++i) places[i]->dmabuf = std::move(made[i]);
  return {};
}

// In one file for each GPU, which is closed at the end: then the DMA-bufs alone have the memory.
Status Restore::make_gem_memories(const RestorePlan& plan, const Shared& shared,
                                  std::vector<MadeMemory>& memories) const {
  struct File {
    UniqueFd fd;
    std::uint32_t last_handle = 0;
  };
  std::map<std::uint32_t, File> files;  // by gpu_id
  for (MadeMemory& each : memories) {
    const sharing::Memory& memory = shared.session.plan.memories()[each.index];
    if (!shared.session.is_gem(memory)) continue;
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan.destination_of(shared.session.gpu_of(memory)));
    File& file = files[gpu_id];
    if (!file.fd.valid()) {
      ASSIGN_OR_RETURN(file.fd, services_.system.open_node(plan.render(gpu_id)));
    }
    image::GemObject object = shared.session.gem_of(memory);
    object.handle = ++file.last_handle;
    const auto access = shared.session.read_only.contains(memory.inode) ? render_objects::Access::kReadOnly
                                                                        : render_objects::Access::kReadWrite;
    auto made = render_objects::make_apart(*services_.render.driver, file.fd.get(), object, memory.size, access);
    if (!made.ok()) return std::move(made).error().wrap(name_of(memory));
    each.dmabuf = std::move(made).value();
  }
  return {};
}

// `received`: what this process has of each socket of CRIU's. Each memory of a socket is taken once.
Result<UniqueFd> Restore::wait_for_memory(const Shared& shared, std::size_t memory,
                                          std::map<int, std::vector<UniqueFd>>& received) const {
  const sharing::Memory& wanted = shared.session.plan.memories()[memory];
  std::optional<Peer> peer;
  for (;;) {
    const RestoreBoard::Memory now = board_.memory(shared.first + memory);
    if (now.state == State::kAvailable || now.state == State::kLoaded) {
      const KeptAt at = kept_at(now.value);
      auto& files = received[at.number];
      if (files.empty()) {
        ASSIGN_OR_RETURN(const UniqueFd socket, services_.criu.kept_file(at.number));
        ASSIGN_OR_RETURN(files, queued_files(socket.get()));
      }
      if (at.index >= files.size()) return Error(EPROTO, "CRIU keeps another descriptor in its place");
      return std::move(files[at.index]);
    }
    const std::uint32_t pid = wanted.has_provider ? shared.session.files[wanted.origin.process]->kfd()->pid : now.value;
    if (!peer) {
      ASSIGN_OR_RETURN(peer, Peer::find(pid, "which allocates it"));
    }
    // A task that makes memory for a DMA-buf may have no state in KFD.
    const auto slot = board_.find(pid);
    const bool has_failed = slot && board_.progress(*slot) == Progress::kFailed;
    if (!has_failed && peer->is_alive()) continue;
    // It may have offered the memory and ended since.
    if (board_.memory(shared.first + memory).state != now.state) continue;
    return Error(ESRCH, "process " + std::to_string(pid) + ", which allocates it, has ended or was not restored");
  }
}

// For a task that has no BO of the memory.
Result<UniqueFd> Restore::take_dmabuf(const RestorePlan& plan, const SavedFile& file) {
  const Shared& shared = *shared_.at(file.session_id);
  const auto memory = shared.session.plan.find(file.loaded->dmabuf()->inode);
  if (!memory) return Error(EINVAL, "invalid image: no process gives its memory to this task");
  const auto self = static_cast<std::uint32_t>(services_.criu.pid());
  std::map<int, std::vector<UniqueFd>> received;
  if (shared.session.plan.memories()[*memory].has_provider || !board_.claim_memory(shared.first + *memory, self))
    return wait_for_memory(shared, *memory, received);
  ASSIGN_OR_RETURN(std::vector<MadeMemory> made, make_memories(plan, shared, {*memory}));
  Loader loader(services_, plan, file);
  TRY(start_loading(loader, shared, *memory, made.front().dmabuf.get()));
  TRY(finish_loading(loader, shared, {&*memory, 1}));
  loader.end();
  return std::move(made.front().dmabuf);
}

// Before this process loads any contents, so that nobody waits for them.
Status Restore::offer_memories(const SavedFile& process, int kfd_fd, std::vector<kfd::RestoredBo>& restored) {
  const Shared& shared = *shared_.at(process.session_id);
  const std::size_t self = shared.session.index_of(process.id);
  const auto memories = shared.session.plan.memories();
  std::vector<std::size_t> provided;
  for (std::size_t i = 0; i < memories.size(); ++i)
    if (provides(memories[i], self)) provided.push_back(i);
  for (std::span<const std::size_t> rest(provided); !rest.empty();) {
    const auto now = rest.first(std::min(kMaxQueuedFiles, rest.size()));
    rest = rest.subspan(now.size());
    std::vector<UniqueFd> files;
    std::vector<int> dmabufs;
    for (const std::size_t memory : now) {
      const std::size_t bo = memories[memory].origin.bo;
      ASSIGN_OR_RETURN(UniqueFd dmabuf,
                       services_.kfd.export_restored(kfd_fd, process.loaded->kfd()->bos[bo].bo, restored[bo]));
      dmabufs.push_back(dmabuf.get());
      files.push_back(std::move(dmabuf));
    }
    TRY(keep_memories(shared, now, dmabufs));
  }
  return {};
}

Status Restore::load_memories(Loader& loader, const SavedFile& process, int kfd_fd,
                              std::vector<kfd::RestoredBo>& restored, const std::vector<MadeMemory>& made) {
  const Shared& shared = *shared_.at(process.session_id);
  const std::size_t self = shared.session.index_of(process.id);
  const auto memories = shared.session.plan.memories();
  std::vector<std::size_t> loaded;
  for (const MadeMemory& memory : made) {
    TRY(start_loading(loader, shared, memory.index, memory.dmabuf.get()));
    loaded.push_back(memory.index);
  }
  for (std::size_t i = 0; i < memories.size(); ++i) {
    if (!provides(memories[i], self)) continue;
    const std::size_t bo = memories[i].origin.bo;
    ASSIGN_OR_RETURN(const UniqueFd dmabuf,
                     services_.kfd.export_restored(kfd_fd, process.loaded->kfd()->bos[bo].bo, restored[bo]));
    TRY(start_loading(loader, shared, i, dmabuf.get()));
    loaded.push_back(i);
  }
  return finish_loading(loader, shared, loaded);
}

// The contents are there when finish_loading() has succeeded; until then, small memories share submissions to the GPU.
Status Restore::start_loading(Loader& loader, const Shared& shared, std::size_t memory, int dmabuf) {
  const sharing::Memory& wanted = shared.session.plan.memories()[memory];
  const sharing::Place& place = shared.session.contents[memory];
  return loader.start(*shared.session.files[place.process], place.bo, shared.session.gpu_of(wanted), dmabuf,
                      name_of(wanted) + ": " + Loader::name_of(place.bo));
}

Status Restore::finish_loading(Loader& loader, const Shared& shared, std::span<const std::size_t> memories) {
  TRY(loader.finish());
  for (const std::size_t memory : memories) board_.set_loaded(shared.first + memory);
  return {};
}

Status Restore::require_loaded(const SavedFile& process) const {
  const auto& shared = shared_.at(process.session_id);
  if (!shared.ok()) return shared.error();
  const std::size_t self = shared->session.index_of(process.id);
  const auto memories = shared->session.plan.memories();
  for (std::size_t i = 0; i < memories.size(); ++i)
    if (has(memories[i], self) && board_.memory(shared->first + i).state != State::kLoaded)
      return Error(EIO, "the contents of " + name_of(memories[i]) + " were not loaded");
  return {};
}

}  // namespace plugin
