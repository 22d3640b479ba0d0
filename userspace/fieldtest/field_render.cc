// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A user of libdrm with objects of all kinds in a render node: GEM objects in VRAM, GTT, of its VM alone and of memory
// of the program, mapped once, twice, in part and not at all; contexts, a BO list, synchronization objects; work that
// was just submitted.
//   field_render --dir FOLDER [--kfd] [--children] [--child-alone] [--share] [--sync-files] [--undisturbed]
// --kfd: the pending work of demo_program in the same process, which uses another file of the render node. --children:
// a child has inherited the file and a mapping. --child-alone: a child has, and its parent has closed the file.
// --share: with two children of files of their own, which share objects with it (shared_objects.h), and with --kfd KFD
// does, too. --sync-files: it keeps sync files of the work, which the child inherits. The result is a checksum of what
// the objects have in the end; numbers and addresses are those that libdrm remembers.
#include <linux/sync_file.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "base/mapping.h"
#include "drmtest/harness/buffer.h"
#include "drmtest/harness/commands.h"
#include "drmtest/harness/submit.h"
#include "fieldtest/shared_objects.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/demo/pending_work.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/session.h"

namespace fieldtest {
namespace {

using base::Error;
using base::Result;
using base::Status;
using drmtest::AddressRange;
using drmtest::Bo;
using drmtest::Buffer;
using drmtest::Commands;
using drmtest::Context;
using drmtest::Device;
using drmtest::Job;
using drmtest::kPage;
using drmtest::Submitter;
using drmtest::SyncObject;

constexpr std::uint64_t kSize = 3 * drmtest::kMiB + kPage;
constexpr std::uint64_t kPartOffset = 16 * kPage;
constexpr std::uint64_t kPartSize = 4 * kPage;
constexpr std::uint32_t kSeed = 41;
constexpr std::uint32_t kHiddenSeed = 42;
constexpr std::uint32_t kBoundSeed = 43;
constexpr std::uint32_t kFillWord = 0x5eed0001;
constexpr std::uint32_t kLateWord = 0x5eed0002;
constexpr std::uint64_t kPoint = 5;
constexpr int kFillers = 9;  // objects that are freed, so that the others have no handles in a row

struct Options {
  bool kfd = false;
  bool children = false;
  bool child_alone = false;
  bool share = false;
  bool sync_files = false;
};

Status check_words(std::span<const std::uint32_t> words, std::uint32_t seed, const char* what) {
  const std::size_t wrong = drmtest::first_mismatch(words, seed);
  if (wrong == words.size()) return {};
  return Error(EIO, std::string(what) + ": word " + std::to_string(wrong) + " is wrong");
}

// A second mapping of a part of an object, for reading.
class PartMapping {
 public:
  static Result<PartMapping> create(const Device& device, const Bo& bo) {
    ASSIGN_OR_RETURN(AddressRange range, AddressRange::reserve(device, kPartSize));
    TRY(drmtest::check(amdgpu_bo_va_op_raw(device.handle(), bo.handle(), kPartOffset, kPartSize, range.begin(),
                                           AMDGPU_VM_PAGE_READABLE, AMDGPU_VA_OP_MAP),
                       "mapping a part of an object"));
    return PartMapping(std::move(range));
  }
  [[nodiscard]] std::uint64_t address() const { return range_.begin(); }

 private:
  explicit PartMapping(AddressRange range) : range_(std::move(range)) {}
  AddressRange range_;
};

// A range of addresses of no object.
class SparseMapping {
 public:
  static Result<SparseMapping> create(const Device& device) {
    ASSIGN_OR_RETURN(AddressRange range, AddressRange::reserve(device, kPartSize));
    SparseMapping mapping(device, std::move(range));
    TRY(mapping.operate(AMDGPU_VA_OP_MAP));
    return mapping;
  }
  // It is still there, and can be removed.
  [[nodiscard]] Status check() const { return operate(AMDGPU_VA_OP_UNMAP); }

 private:
  SparseMapping(const Device& device, AddressRange range) : device_(device.handle()), range_(std::move(range)) {}
  [[nodiscard]] Status operate(std::uint32_t operation) const {
    return drmtest::check(
        amdgpu_bo_va_op_raw(device_, nullptr, 0, kPartSize, range_.begin(), AMDGPU_VM_PAGE_PRT, operation),
        "a sparse mapping");
  }
  amdgpu_device_handle device_;
  AddressRange range_;
};

// A list of objects that the driver remembers.
class BoList {
 public:
  static Result<BoList> create(const Device& device, std::vector<amdgpu_bo_handle> bos) {
    amdgpu_bo_list_handle handle = nullptr;
    TRY(drmtest::check(
        amdgpu_bo_list_create(device.handle(), static_cast<std::uint32_t>(bos.size()), bos.data(), nullptr, &handle),
        "amdgpu_bo_list_create"));
    return BoList(handle);
  }
  BoList(BoList&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  BoList& operator=(BoList&&) = delete;
  BoList(const BoList&) = delete;
  BoList& operator=(const BoList&) = delete;
  ~BoList() {
    if (handle_ != nullptr) amdgpu_bo_list_destroy(handle_);
  }
  [[nodiscard]] amdgpu_bo_list_handle get() const { return handle_; }

 private:
  explicit BoList(amdgpu_bo_list_handle handle) : handle_(handle) {}
  amdgpu_bo_list_handle handle_ = nullptr;
};

// Descriptors that tell when a job has finished: as the driver names it, and with a name of the program.
class SyncFiles {
 public:
  static Result<SyncFiles> of(const Device& device, amdgpu_cs_fence job) {
    std::uint32_t descriptor = 0;
    TRY(drmtest::check(
        amdgpu_cs_fence_to_handle(device.handle(), &job, AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD, &descriptor),
        "amdgpu_cs_fence_to_handle"));
    SyncFiles files;
    files.drivers_.reset(static_cast<int>(descriptor));
    sync_merge_data merge{};
    kName.copy(merge.name, sizeof(merge.name) - 1);
    merge.fd2 = files.drivers_.get();
    if (::ioctl(files.drivers_.get(), SYNC_IOC_MERGE, &merge) != 0) return Error::from_errno(errno, "SYNC_IOC_MERGE");
    files.own_.reset(merge.fence);
    ASSIGN_OR_RETURN(const sync_file_info info, info_of(files.drivers_));
    files.drivers_name_ = info.name;
    return files;
  }

  // After the checkpoint: both can be polled, have their names, and a job can wait for them.
  Status check(const Device& device, std::uint32_t sync_object) const {
    TRY(expect_finished(drivers_, drivers_name_));
    TRY(expect_finished(own_, std::string(kName)));
    return drmtest::check(amdgpu_cs_syncobj_import_sync_file(device.handle(), sync_object, own_.get()),
                          "amdgpu_cs_syncobj_import_sync_file");
  }

 private:
  static constexpr std::string_view kName = "a name of the program";

  static Result<sync_file_info> info_of(const base::UniqueFd& file) {
    sync_file_info info{};
    if (::ioctl(file.get(), SYNC_IOC_FILE_INFO, &info) != 0) return Error::from_errno(errno, "SYNC_IOC_FILE_INFO");
    return info;
  }

  static Status expect_finished(const base::UniqueFd& file, const std::string& name) {
    pollfd ready{.fd = file.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 0) != 1) return Error(EIO, "a sync file of finished work cannot be read");
    ASSIGN_OR_RETURN(const sync_file_info info, info_of(file));
    if (info.status == 1 && info.name == name) return {};
    return Error(EIO,
                 "the sync file '" + name + "' is now '" + info.name + "' with status " + std::to_string(info.status));
  }

  base::UniqueFd drivers_;
  std::string drivers_name_;
  base::UniqueFd own_;
};

// Everything in one file.
class Objects {
 public:
  static Result<std::unique_ptr<Objects>> create() {
    const auto nodes = drmtest::render_nodes();
    if (nodes.empty()) return Error(ENODEV, "no render node");
    ASSIGN_OR_RETURN(Device device, Device::open(nodes.front().path));
    std::unique_ptr<Objects> objects(new Objects(std::move(device)));
    TRY(objects->make());
    TRY(objects->make_user_memory());
    TRY(objects->submit());
    return objects;
  }

  [[nodiscard]] std::span<const std::uint32_t> mapped() const { return vram_->words(); }

  // Keeps sync files of the job that was just submitted.
  Status keep_sync_files() { return place(sync_files_, SyncFiles::of(device_, sent_)); }

  // Nothing else can be done with the objects afterwards.
  Status close_file() {
    TRY(drmtest::poll_until_ended(sent_));
    // libdrm has a descriptor of its own.
    for (const int fd : {device_.fd(), amdgpu_device_get_fd(device_.handle())})
      if (::close(fd) != 0) return Error::from_errno(errno, "closing the render node");
    return {};
  }

  // After the checkpoint: what the objects had, and what they can still do.
  Status check(kfdtest::Checksum& checksum) {
    TRY(drmtest::poll_until_ended(sent_));
    TRY(check_words(vram_->words(), kSeed, "VRAM"));
    TRY(check_words(bound_->words(), kBoundSeed, "memory of the VM"));
    TRY(expect_word(gtt_->load(0), kFillWord, "what SDMA has written before"));
    TRY(expect_word(gtt_->load(kSize / 8), kFillWord, "what a compute ring has written before"));
    TRY(check_hidden());
    TRY(check_part());
    TRY(check_list());
    TRY(check_user_memory());
    TRY(check_syncobjs());
    TRY(sparse_->check());
    checksum.add(std::as_bytes(vram_->words()));
    checksum.add(std::as_bytes(gtt_->words()));
    checksum.add(std::as_bytes(bound_->words()));
    return {};
  }

 private:
  explicit Objects(Device device) : device_(std::move(device)) {}

  Result<Buffer> buffer(const drmtest::BoSpec& spec) const { return Buffer::create(device_, spec); }

  template <typename T>
  static Status place(std::optional<T>& where, Result<T> made) {
    if (!made.ok()) return std::move(made).error();
    where.emplace(std::move(made).value());
    return {};
  }

  Status make() {
    std::vector<Bo> fillers;
    for (int i = 0; i < kFillers; ++i) {
      ASSIGN_OR_RETURN(Bo filler, Bo::create(device_, drmtest::gtt(kPage)));
      fillers.push_back(std::move(filler));
    }
    TRY(place(vram_, buffer(drmtest::vram(kSize))));
    while (fillers.size() > 2) fillers.pop_back();
    drmtest::BoSpec hidden = drmtest::vram(kSize);
    hidden.flags = AMDGPU_GEM_CREATE_NO_CPU_ACCESS;
    TRY(place(hidden_, buffer(hidden)));
    TRY(place(gtt_, buffer(drmtest::gtt(kSize))));
    drmtest::BoSpec bound = drmtest::gtt(kSize);
    bound.flags = AMDGPU_GEM_CREATE_VM_ALWAYS_VALID;
    TRY(place(bound_, buffer(bound)));
    TRY(place(unmapped_, Bo::create(device_, drmtest::gtt(4 * kPage))));
    TRY(place(part_, PartMapping::create(device_, vram_->bo())));
    TRY(place(sparse_, SparseMapping::create(device_)));
    {
      ASSIGN_OR_RETURN(const Context gone, Context::create(device_));
      TRY(place(context_, Context::create(device_)));
    }
    TRY(place(low_, Context::create(device_, AMDGPU_CTX_PRIORITY_LOW)));
    TRY(place(submitter_, Submitter::create(device_, *context_)));
    TRY(place(ib_, buffer(drmtest::gtt(kPage))));
    TRY(place(list_, BoList::create(device_, {gtt_->handle(), ib_->handle()})));
    TRY(place(empty_, SyncObject::create(device_)));
    TRY(place(signaled_, SyncObject::create(device_, DRM_SYNCOBJ_CREATE_SIGNALED)));
    return place(timeline_, SyncObject::create(device_));
  }

  // The GPU has reached it before the checkpoint.
  Status make_user_memory() {
    ASSIGN_OR_RETURN(base::Mapping pages, base::Mapping::anonymous(kPartSize, "user memory"));
    user_pages_ = std::move(pages);
    amdgpu_bo_handle handle = nullptr;
    TRY(drmtest::check(amdgpu_create_bo_from_user_mem(device_.handle(), user_pages_.data(), kPartSize, &handle),
                       "amdgpu_create_bo_from_user_mem"));
    Bo bo(handle, kPartSize);
    const std::span words(reinterpret_cast<std::uint32_t*>(user_pages_.data()), kPartSize / sizeof(std::uint32_t));
    TRY(place(user_, Buffer::map(device_, std::move(bo), words)));
    drmtest::write_pattern(words, kBoundSeed);
    Job job;
    job.bos = {user_->handle()};
    return run(job, Commands(device_, job.ip).write(user_->address(), kFillWord));
  }

  // The GPU reads what is in the program's memory now, and writes there.
  Status check_user_memory() {
    TRY(expect_word(user_->load(0), kFillWord, "user memory"));
    user_->store(1, kLateWord);
    ASSIGN_OR_RETURN(const Buffer copy, buffer(drmtest::gtt(kPartSize)));
    Job job;
    job.bos = {copy.handle(), user_->handle()};
    TRY(run(job, Commands(device_, job.ip)
                     .copy(copy.address(), user_->address(), kPartSize)
                     .write(user_->address(2 * sizeof(std::uint32_t)), kLateWord)));
    TRY(expect_word(copy.load(0), kFillWord, "what the GPU reads in user memory"));
    TRY(expect_word(copy.load(1), kLateWord, "what the GPU reads in user memory"));
    return expect_word(user_->load(2), kLateWord, "what the GPU has written into user memory");
  }

  // The work is not waited for.
  Status submit() {
    drmtest::write_pattern(vram_->words(), kSeed);
    drmtest::write_pattern(bound_->words(), kBoundSeed);
    drmtest::write_pattern(gtt_->words(), kHiddenSeed);
    Job job;
    job.bos = {gtt_->handle(), hidden_->handle()};
    TRY(run(job, Commands(device_, job.ip).copy(hidden_->address(), gtt_->address(), kSize)));
    gtt_->fill(0);
    job.signal = {{timeline_->handle(), kPoint}};
    ASSIGN_OR_RETURN(sent_, submitter_->submit(job, Commands(device_, job.ip).fill(gtt_->address(), kPage, kFillWord)));
    job.signal.clear();
    job.ip = AMDGPU_HW_IP_COMPUTE;
    auto sent = submitter_->submit(job, Commands(device_, job.ip).write(gtt_->address(kSize / 2), kFillWord));
    if (!sent.ok()) return std::move(sent).error();
    return {};
  }

  Status run(const Job& job, Commands& commands) {
    ASSIGN_OR_RETURN(const amdgpu_cs_fence fence, submitter_->submit(job, commands));
    return drmtest::poll_until_ended(fence);
  }

  static Status expect_word(std::uint32_t word, std::uint32_t expected, const char* what) {
    if (word == expected) return {};
    return Error(EIO, std::string(what) + " is " + std::to_string(word));
  }

  // By the old context, to which the driver gives new work.
  Status check_hidden() {
    ASSIGN_OR_RETURN(const Buffer copy, buffer(drmtest::gtt(kSize)));
    Job job;
    job.bos = {copy.handle(), hidden_->handle()};
    TRY(run(job, Commands(device_, job.ip).copy(copy.address(), hidden_->address(), kSize)));
    return check_words(copy.words(), kHiddenSeed, "VRAM without a CPU mapping");
  }

  Status check_part() {
    ASSIGN_OR_RETURN(const Buffer copy, buffer(drmtest::gtt(kPartSize)));
    Job job;
    job.bos = {copy.handle(), vram_->handle()};
    TRY(run(job, Commands(device_, job.ip).copy(copy.address(), part_->address(), kPartSize)));
    const auto expected = vram_->words().subspan(kPartOffset / 4, kPartSize / 4);
    if (!std::equal(expected.begin(), expected.end(), copy.words().begin()))
      return Error(EIO, "the mapping of a part shows something else");
    return {};
  }

  // The list has the only objects that the job uses.
  Status check_list() {
    Commands commands(device_, AMDGPU_HW_IP_DMA);
    const auto dwords = commands.fill(gtt_->address(kPage), kPage, kLateWord).padded();
    std::copy(dwords.begin(), dwords.end(), ib_->words().begin());
    amdgpu_cs_ib_info ib{};
    ib.ib_mc_address = ib_->address();
    ib.size = static_cast<std::uint32_t>(dwords.size());
    amdgpu_cs_request request{};
    request.ip_type = AMDGPU_HW_IP_DMA;
    request.resources = list_->get();
    request.number_of_ibs = 1;
    request.ibs = &ib;
    for (const Context* context : {&*low_, &*context_}) {
      gtt_->store(kPage / 4, 0);
      TRY(drmtest::check(amdgpu_cs_submit(context->handle(), 0, &request, 1), "amdgpu_cs_submit"));
      TRY(drmtest::poll_until_ended({.context = context->handle(),
                                     .ip_type = AMDGPU_HW_IP_DMA,
                                     .ip_instance = 0,
                                     .ring = 0,
                                     .fence = request.seq_no}));
      TRY(expect_word(gtt_->load(kPage / 4), kLateWord, "what a job with the BO list has written"));
    }
    return {};
  }

  Status check_syncobjs() {
    std::uint32_t handle = timeline_->handle();
    std::uint64_t point = 0;
    TRY(drmtest::check(amdgpu_cs_syncobj_query(device_.handle(), &handle, &point, 1), "amdgpu_cs_syncobj_query"));
    if (point != kPoint) return Error(EIO, "the timeline is at point " + std::to_string(point));
    Job job;
    job.wait_for = {{timeline_->handle(), kPoint}, {signaled_->handle(), 0}};
    // The driver takes either points or binary ones to be signaled.
    job.signal = {{empty_->handle(), 0}};
    TRY(run(job, Commands(device_, job.ip).nop()));
    job.signal = {{timeline_->handle(), kPoint + 1}};
    job.wait_for.push_back({empty_->handle(), 0});
    TRY(run(job, Commands(device_, job.ip).nop()));
    TRY(drmtest::check(amdgpu_cs_syncobj_query(device_.handle(), &handle, &point, 1), "amdgpu_cs_syncobj_query"));
    if (point != kPoint + 1) return Error(EIO, "the timeline did not go on from point " + std::to_string(point));
    if (!sync_files_) return {};
    TRY(sync_files_->check(device_, empty_->handle()));
    job.wait_for = {{empty_->handle(), 0}};
    job.signal.clear();
    return run(job, Commands(device_, job.ip).nop());
  }

  Device device_;
  std::optional<Buffer> vram_;
  std::optional<Buffer> hidden_;
  std::optional<Buffer> gtt_;
  std::optional<Buffer> bound_;
  base::Mapping user_pages_;
  std::optional<Buffer> user_;
  std::optional<Bo> unmapped_;
  std::optional<PartMapping> part_;
  std::optional<SparseMapping> sparse_;
  std::optional<Context> context_;
  std::optional<Context> low_;
  std::optional<Submitter> submitter_;
  std::optional<Buffer> ib_;
  std::optional<BoList> list_;
  std::optional<SyncObject> empty_;
  std::optional<SyncObject> signaled_;
  std::optional<SyncObject> timeline_;
  amdgpu_cs_fence sent_{};  // of a job from before the checkpoint
  std::optional<SyncFiles> sync_files_;
};

// The child waits for SIGUSR1, and its exit status tells whether the inherited mapping shows what it did.
Result<pid_t> start_child(const Objects& objects) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return Error::from_errno(errno, "fork");
  if (pid != 0) return pid_t{pid};
  while (::sigwaitinfo(&set, nullptr) != SIGUSR1) {
  }
  ::_exit(check_words(objects.mapped(), kSeed, "").ok() ? EXIT_SUCCESS : EXIT_FAILURE);
}

Status finish_child(pid_t pid) {
  int status = 0;
  if (::kill(pid, SIGUSR1) != 0 || ::waitpid(pid, &status, 0) != pid) return Error::from_errno(errno, "the child");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
    return Error(EIO, "the child's inherited mapping is not what it was");
  return {};
}

Status run(const kfdtest::CommandLine& line, const Options& options, const kfdtest::MessageFiles& messages) {
  std::unique_ptr<SharedObjects> shared;
  if (options.share) {
    ASSIGN_OR_RETURN(shared, SharedObjects::fork());
  }
  std::optional<kfdtest::Session> session;
  std::unique_ptr<kfdtest::PendingWork> work;
  if (options.kfd) {
    ASSIGN_OR_RETURN(kfdtest::Session opened, kfdtest::Session::open(kfdtest::DriverKind::kIoctls));
    session.emplace(std::move(opened));
    ASSIGN_OR_RETURN(work, kfdtest::PendingWork::start(session->gpus().front(), kSeed));
  }
  ASSIGN_OR_RETURN(auto objects, Objects::create());
  if (options.sync_files) TRY(objects->keep_sync_files());
  if (shared) TRY(shared->share(session ? &session->gpus().front() : nullptr));
  std::optional<pid_t> child;
  if (options.children || options.child_alone) {
    ASSIGN_OR_RETURN(child, start_child(*objects));
  }
  if (options.child_alone) TRY(objects->close_file());
  messages.say("pending");
  TRY(wait_pending(line, messages));
  kfdtest::Checksum checksum;
  if (work) {
    TRY(work->expect_pending());
    TRY(work->finish());
    work->add_to(checksum);
  }
  if (child) TRY(finish_child(*child));
  if (options.child_alone) {
    checksum.add(std::as_bytes(objects->mapped()));
    // Their destructors need the file.
    (void)objects.release();
  } else {
    TRY(objects->check(checksum));
  }
  if (shared) TRY(shared->check());
  return messages.publish_result(checksum.hex());
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  fieldtest::Options options;
  kfdtest::CommandLine line;
  line.flag("--kfd", options.kfd).flag("--children", options.children).flag("--child-alone", options.child_alone);
  line.flag("--share", options.share).flag("--sync-files", options.sync_files);
  return run_program(argc, argv, line, [&](const kfdtest::MessageFiles& messages) -> base::Status {
    return fieldtest::run(line, options, messages);
  });
}
