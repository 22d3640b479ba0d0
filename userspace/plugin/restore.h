// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The steps of a restore. In CRIU's main process, before the tree of processes exists: images are read and GPUs chosen,
// once. In each restored task, a fork of it: files, GPU state and mappings, when CRIU asks for them. In the main
// process again, when the whole tree stands: queues run. The GPU state of a process is restored by that process, at the
// first question that CRIU asks it, because KFD gives it to nobody else. CRIU asks the process with the lowest pid for
// a file that several have; if that is not the owner, it gets a stand-in, and the owner puts its own file in the place
// of those that it received (held_files.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/criu_images.h"
#include "plugin/held_files.h"
#include "plugin/image/catalogue.h"
#include "plugin/render_objects.h"
#include "plugin/restore_board.h"
#include "plugin/restore_plan.h"
#include "plugin/saved_files.h"
#include "plugin/services.h"
#include "plugin/session_sharing.h"
#include "plugin/vma_map.h"

namespace plugin {

class Loader;

struct VmaAnswer {
  std::uint64_t offset = 0;
  int fd = -1;  // who owns it is Criu::takes_vma_fd()
};

class Restore {
 public:
  explicit Restore(Services& services) : services_(services) {}

  // CRIU calls this before it makes the tree of processes. Never fails: the directory may be that of a program without
  // GPU, with images that another dump left. What went wrong is the answer to the first question about a file of ours.
  void prepare();
  // After prepare(): what the operator should know of the images; empty: nothing.
  [[nodiscard]] std::string_view notice() const;

  // The open file for image `id`; nothing when the image is not ours. The caller owns the descriptor.
  base::Result<std::optional<int>> restore_file(std::uint32_t id);

  // Nothing when the mapping is not of a device of ours.
  base::Result<std::optional<VmaAnswer>> update_vma(std::string_view path, std::uint64_t addr, std::uint64_t offset);

  // Lets the queues of a restored process run.
  base::Result<Claim> resume(pid_t pid);

 private:
  // What a task has done so far.
  struct Task {
    Task(const System& system, const Criu& host) : held(system, host) {}

    HeldFiles held;
    const CriuTask* criu = nullptr;                  // null: CRIU's images could not be read
    const SavedFile* process = nullptr;              // its KFD state; null: it has none
    std::optional<HeldFiles::Key> kfd;               // set when the KFD state is restored
    std::optional<base::Status> settled;             // how settle() ended
    std::map<std::uint32_t, HeldFiles::Key> render;  // by destination gpu_id: the file whose VM KFD uses
    std::map<std::uint32_t, HeldFiles::Key> second;  // by file id
    std::set<std::uint32_t> asked;                   // files that CRIU asked this task for
    std::vector<kfd::RestoredBo> restored;           // the BOs of its KFD state, as the kernel has made them
    std::vector<MappableBo> bos;                     // mapped through a render node
    std::vector<MappableBo> kfd_bos;                 // mapped through /dev/kfd
    std::vector<MappedGpu> gpus;
    // For CRIU that takes descriptors of mappings: the last mapping that was answered, the descriptors then, and the
    // one that CRIU took for the run of that mapping, which CRIU has open until it has mapped the whole run.
    std::optional<std::size_t> previous_vma;
    std::vector<int> previous_descriptors;
    int run_descriptor = -1;
  };

  // What processes of a session share, and where it is on the board.
  struct Shared {
    SessionSharing session;
    std::size_t first = 0;  // on the board
  };

  // Shared memory that this task has made.
  struct MadeMemory {
    std::size_t index = 0;  // in the plan
    base::UniqueFd dmabuf;
  };
  struct Taken {
    std::map<std::uint64_t, base::UniqueFd> dmabufs;  // by inode at the dump
    std::vector<MadeMemory> made;
  };

  base::Status ready();
  Task& task();
  [[nodiscard]] const SavedFile* find_saved(std::uint32_t id) const;
  [[nodiscard]] const SavedFile* process_of(std::uint32_t pid) const;
  [[nodiscard]] bool is_wanted(const SavedFile& file) const;
  [[nodiscard]] base::Result<RestorePlan> make_plan(std::uint64_t session_id) const;
  base::Result<const RestorePlan*> plan_of(const SavedFile& file) const;
  [[nodiscard]] base::Result<Shared> find_shared(std::uint64_t session_id, std::size_t first) const;
  [[nodiscard]] std::optional<std::uint32_t> asked_task(std::uint32_t file_id) const;
  [[nodiscard]] bool is_late(const image::Loaded& file) const;
  [[nodiscard]] bool is_needed(const image::Loaded& dmabuf) const;
  void make_board();

  [[nodiscard]] std::uint32_t next_unused_pid() const;
  base::Result<base::UniqueFd> restore_saved(Task& current, const SavedFile& file);
  base::Status restore_process(Task& current);
  base::Status create_shared_files(const SavedFile& process) const;
  base::Result<kfd::RestoreRequest> make_request(Task& current, const RestorePlan& plan, const image::KfdFile& kfd);
  base::Status fill_bos(Loader& loader, int kfd_fd, const SavedFile& process,
                        std::vector<kfd::RestoredBo>& restored) const;
  base::Result<Taken> take_memories(const RestorePlan& plan, const Shared& shared, std::size_t self);
  base::Status keep_memories(const Shared& shared, std::span<const std::size_t> memories, std::span<const int> dmabufs);
  void release_memories();
  base::Result<std::vector<MadeMemory>> make_memories(const RestorePlan& plan, const Shared& shared,
                                                      const std::vector<std::size_t>& claimed);
  base::Status make_kfd_memories(const RestorePlan& plan, const Shared& shared, std::vector<MadeMemory>& memories);
  base::Status make_gem_memories(const RestorePlan& plan, const Shared& shared,
                                 std::vector<MadeMemory>& memories) const;
  base::Result<base::UniqueFd> wait_for_memory(const Shared& shared, std::size_t memory,
                                               std::map<int, std::vector<base::UniqueFd>>& received) const;
  base::Status offer_memories(const SavedFile& process, int kfd_fd, std::vector<kfd::RestoredBo>& restored);
  static base::Status start_loading(Loader& loader, const Shared& shared, std::size_t memory, int dmabuf);
  base::Status finish_loading(Loader& loader, const Shared& shared, std::span<const std::size_t> memories);
  base::Status load_memories(Loader& loader, const SavedFile& process, int kfd_fd,
                             std::vector<kfd::RestoredBo>& restored, const std::vector<MadeMemory>& made);
  base::Result<base::UniqueFd> restore_dmabuf(Task& current, const RestorePlan& plan, const SavedFile& file);
  base::Result<base::UniqueFd> restore_sync_file(const RestorePlan& plan, const image::SyncFile& file) const;
  base::Result<base::UniqueFd> take_dmabuf(const RestorePlan& plan, const SavedFile& file);
  [[nodiscard]] base::Status require_loaded(const SavedFile& process) const;
  base::Result<HeldFiles::Key> render_key(Task& current, const RestorePlan& plan, std::uint32_t gpu_id);
  base::Status remember(Task& current, const RestorePlan& plan, const std::vector<kfd::RestoredBo>& restored);

  base::Status restore_objects(const RestorePlan& plan, const SavedFile& file, int fd,
                               const render_objects::KfdMemory& kfd_memory);
  base::Status restore_kfd_objects(Task& current, const RestorePlan& plan, int kfd_fd,
                                   std::vector<kfd::RestoredBo>& restored);

  void set_failed(const Task& current);
  base::Status settle(Task& current);
  base::Status settle_files(Task& current);
  void settle_without_mapping(Task& current);
  base::Result<std::optional<VmaAnswer>> locate_own(Task& current, std::string_view path, std::uint64_t addr,
                                                    std::uint64_t offset);
  base::Status claim_descriptors(Task& current);
  base::Result<std::optional<VmaAnswer>> locate(Task& current, std::string_view path, std::uint64_t addr,
                                                std::uint64_t offset);
  base::Result<std::optional<VmaAnswer>> locate_object(Task& current, std::string_view path, std::uint64_t addr,
                                                       std::uint64_t offset);
  // Waits for another process, because this task needs what it makes. `what`: "whose memory this one has mapped".
  [[nodiscard]] base::Status wait_for(std::uint32_t pid, Progress wanted, const std::string& what) const;
  base::Result<std::optional<VmaAnswer>> locate_inherited(Task& current, std::uint64_t addr, std::uint64_t offset);
  base::Result<VmaAnswer> answer(Task& current, HeldFiles::Key key, std::uint64_t addr, std::uint64_t offset);
  base::Result<int> taken_descriptor(Task& current, int number, std::uint64_t addr);
  [[nodiscard]] base::Status require_same_file(int number, int run_descriptor, std::uint64_t addr) const;
  base::Result<int> lent_descriptor(Task& current, HeldFiles::Key key, std::uint64_t addr);
  [[nodiscard]] base::Result<bool> file_opened_since(const Task& current) const;
  [[nodiscard]] bool is_last_mapping(const Task& current, std::uint64_t addr) const;

  Services& services_;
  std::optional<base::Result<image::Catalogue>> catalogue_;  // set by prepare()
  std::vector<SavedFile> files_;
  std::optional<CriuImages> criu_;
  std::map<std::uint64_t, base::Result<RestorePlan>> plans_;  // by session
  std::map<std::uint32_t, base::Status> shared_files_;        // by id of the KFD file: whether they could be made
  std::map<std::uint64_t, base::Result<Shared>> shared_;      // by session
  RestoreBoard board_;
  base::Status board_status_;
  base::Status criu_status_;           // CRIU's images are there, and could not be read
  std::vector<base::UniqueFd> locks_;  // of names in /dev/shm, until resume()
  bool is_complete_ = false;           // CRIU has called resume()
  std::map<pid_t, Task> tasks_;        // a task starts with a copy of its parent's
};

}  // namespace plugin
