// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One dump is one transaction. At the first hook all processes of the tree that use KFD are paused, and everything that
// cannot be brought back is refused; then each file is saved when CRIU asks for it; finish() commits all of them or
// none. The processes stay paused until CRIU has saved host memory too.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/copy/parallel_reads.h"
#include "plugin/copy_meter.h"
#include "plugin/image/writer.h"
#include "plugin/kfd_objects.h"
#include "plugin/preflight.h"
#include "plugin/render_objects.h"
#include "plugin/services.h"
#include "plugin/tree.h"

namespace plugin {

class Dump {
 public:
  Dump(Services& services, std::uint64_t session_id) : services_(services), session_id_(session_id) {}

  // CRIU has found a mapping of this file in the tree.
  base::Result<Claim> handle_vma(const struct stat& status);
  // fd (borrowed) is the program's open file.
  base::Result<Claim> dump_file(int fd, std::uint32_t id);

  struct End {
    std::vector<base::Error> errors;
    // There is no image, but CRIU takes the dump for a success and is about to kill the programs: it must be ended.
    bool must_end_criu = false;
    // The image is there.
    bool committed = false;
  };
  // `result` is CRIU's: 0 for success. Commits, or removes what was written and lets the processes run.
  End finish(int result);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kIdle, kSaving, kFailed, kOver };
  using Process = preflight::Process;

  // What an open file of the tree is, by its index in Tree::files.
  struct Role {
    image::Kind kind = image::Kind::kInert;
    std::uint32_t owner = 0;             // see image::File
    std::optional<std::size_t> process;  // kKfd: index in processes_
    image::Binding binding = image::Binding::kUnknown;
    bool saved = false;
  };

  // What a process has in the image, once its contents are saved.
  struct Saved {
    image::FileWriter* contents = nullptr;
    std::vector<image::BoRecord> bos;
  };

  // Contents are copied as long as this object lives: within one hook of CRIU. Workers end first, which may still use
  // the staging buffers of the copiers. Those are pinned memory; the next process may need it on another GPU.
  class Copying {
   public:
    explicit Copying(Dump& dump) : dump_(dump), working_(std::in_place, *dump.writer_) {}
    Copying(const Copying&) = delete;
    Copying& operator=(const Copying&) = delete;
    ~Copying();

   private:
    Dump& dump_;
    std::optional<image::Working> working_;
    Clock::time_point begin_ = Clock::now();
  };

  base::Status begin();
  base::Status prepare();
  base::Status choose_abi();
  base::Status pause_all();
  base::Status pause(std::size_t file);
  base::Status choose_files();
  [[nodiscard]] base::Status refuse_owners_without_hook() const;
  base::Status read_states();
  [[nodiscard]] base::Status check_processes() const;
  base::Status check_memory();
  [[nodiscard]] std::uint64_t bytes_to_save() const;
  base::Status bind_render_files();
  // Finds out whether KFD uses the file; else the processes that it may use the file for.
  base::Result<std::vector<const Process*>> look_at_binding(const OpenFile& file, Role& role);
  base::Status bind_undecided(const OpenFile& file, Role& role, const std::vector<const Process*>& undecided) const;
  [[nodiscard]] bool has_bound_file(const Process& process, std::uint32_t minor) const;
  base::Result<std::optional<bool>> is_bound_to(const OpenFile& file, const Process& process);
  // Whether the process has the file of this render node that KFD uses. After bind_render_files().
  [[nodiscard]] bool keeps_render_file(const Process& process, std::uint32_t minor) const;
  base::Status start_image();
  base::Status read_earlier();

  base::Status take_kfd_objects();
  base::Status take_objects_of(std::size_t file, const Process& process);
  [[nodiscard]] base::Status refuse_hidden_objects() const;
  // Indices in Tree::files. In the plan they follow the processes.
  [[nodiscard]] std::vector<std::size_t> files_with_objects() const;
  [[nodiscard]] std::vector<sharing::Process> sharers_with_objects() const;
  base::Result<image::RenderFile> save_render(std::size_t file, std::uint32_t id, std::uint32_t open_flags);
  // The next of `bos`, from `next` on, for the copier of the file's GPU.
  base::Result<std::optional<copy::Read>> read_object(const OpenFile& file, const image::RenderFile& out,
                                                      std::size_t& next, image::FileWriter& writer);

  // Memory that only this DMA-buf has.
  base::Status save_lost(const dmabuf_memory::Found& memory, const OpenFile& file, image::FileWriter& writer,
                         image::DmabufFile& out);

  base::Status save(int fd, std::uint32_t id);
  // The GPU through whose render node sync files are made at restore.
  [[nodiscard]] std::uint32_t first_gpu() const;
  // Where the contents of the next BO go, which is this memory.
  copy::Sink sink_into(image::FileWriter& writer, const image::MemoryName& name);
  base::Result<image::KfdFile> save_process(Process& process, std::uint32_t id);
  // Saves the contents of all BOs of KFD, when CRIU asks for the first of its files.
  base::Status save_contents();
  // A BO of KFD whose contents are to be saved.
  struct Wanted {
    Process* process;
    std::size_t bo;
    copy::Sink sink;
  };
  using WantedOfGpus = std::map<const topology::Node*, std::vector<Wanted>>;
  // Decides for all BOs of a process where their contents are stored.
  void place_bos(std::size_t process, WantedOfGpus& wanted);
  // Marks where the contents of a BO are stored.
  void place_contents(std::size_t process, std::size_t bo, image::BoRecord& record) const;
  base::Result<copy::Read> read_bo(const Wanted& wanted);
  // How memory was allocated that no BO of the processes was allocated for.
  base::Status read_foreign_memories();
  base::Result<copy::Copier*> copier_of(const topology::Node& gpu);
  base::Status finish_image();
  // When all contents are copied: once.
  const image::Timing& timing();
  void tell_timing() const;

  [[nodiscard]] base::Result<bool> is_dmabuf_or_sync_file(int fd) const;
  base::Result<bool> programs_use_gpus();
  base::Status commit();
  void release_pauses();
  void unpause_all(std::vector<base::Error>& errors);
  [[nodiscard]] bool saved_all() const;
  [[nodiscard]] int fd_of(const Process& process) const { return tree_.files[process.file].fd.get(); }
  [[nodiscard]] std::string name_of(const Process& process) const { return tree_.tasks[process.task].name(); }

  Services& services_;
  std::uint64_t session_id_;
  State state_ = State::kIdle;
  std::optional<bool> uses_gpus_;  // whether a program has a file of a GPU; asked for DMA-bufs and sync files only
  kfd::Abi abi_ = kfd::Abi::kReleased;
  Tree tree_;
  std::vector<topology::Node> nodes_;
  std::vector<Role> roles_;                                  // as Tree::files
  std::vector<std::optional<render_objects::Found>> found_;  // as Tree::files
  std::map<std::size_t, dmabuf_memory::Found> lost_;         // DMA-bufs, by index in Tree::files
  bool lists_objects_ = false;                               // whether found_ has all there are
  kfd_objects::References handles_of_kfd_;                   // after take_kfd_objects()
  std::vector<Process> processes_;                           // paused, or about to be
  std::vector<Saved> saved_;                                 // as processes_; after save_contents()
  sharing::Plan sharing_;                                    // of processes_, and of files with objects
  std::map<std::uint64_t, std::uint32_t> foreign_;           // by inode; after read_foreign_memories()
  std::unique_ptr<const image::Earlier> earlier_;            // from read_earlier() until start_image()
  std::unique_ptr<image::SessionWriter> writer_;
  std::map<std::uint32_t, std::unique_ptr<copy::Copier>> copiers_;  // by actual gpu_id
  Clock::time_point paused_since_;  // or, without a process that uses KFD, since the dump began
  std::optional<CopyMeter> meter_;
  image::Timing timing_;
};

}  // namespace plugin
