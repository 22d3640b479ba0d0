// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. A byte through a socket lets a child go one step further, and a byte comes back when it has.
#include "fieldtest/shared_objects.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/file_socket.h"
#include "drmtest/harness/commands.h"
#include "drmtest/harness/submit.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"

namespace fieldtest {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;
using drmtest::Bo;
using drmtest::Buffer;
using drmtest::Device;
using drmtest::kPage;

constexpr std::uint64_t kSize = drmtest::kMiB + kPage;
constexpr std::uint32_t kOwnSeed = 71;
constexpr std::uint32_t kGivenSeed = 72;
constexpr std::uint32_t kKfdSeed = 73;
// The first word of page i of the object is for writer i.
constexpr std::size_t kPageWords = kPage / sizeof(std::uint32_t);
constexpr std::uint32_t kChildWord = 0x5eed1000;
constexpr std::uint32_t kParentWord = 0x5eed2000;
constexpr std::uint32_t kKfdWord = 0x5eed3000;
constexpr std::size_t kLateMapper = 0;
constexpr std::size_t kMaker = 1;  // the child with an object of its own

Status expect_pattern(const Buffer& buffer, std::uint32_t seed, const std::string& what) {
  const std::size_t wrong = drmtest::first_mismatch(buffer.words(), seed);
  if (wrong == buffer.words().size()) return {};
  return Error(EIO, what + ": word " + std::to_string(wrong) + " is wrong");
}

Status expect_word(const Buffer& buffer, std::size_t page, std::uint32_t expected, const std::string& what) {
  const std::uint32_t word = buffer.load(page * kPageWords);
  return word == expected ? Status() : Error(EIO, what + ": " + std::to_string(word));
}

Result<Device> open_device() {
  const auto nodes = drmtest::render_nodes();
  if (nodes.empty()) return Error(ENODEV, "no render node");
  return Device::open(nodes.front().path);
}

Result<Buffer> create(const Device& device, const drmtest::BoSpec& spec, std::uint32_t seed) {
  ASSIGN_OR_RETURN(Buffer buffer, Buffer::create(device, spec));
  drmtest::write_pattern(buffer.words(), seed);
  return buffer;
}

Result<Buffer> import(const Device& device, int dmabuf) {
  amdgpu_bo_import_result result{};
  TRY(drmtest::check(
      amdgpu_bo_import(device.handle(), amdgpu_bo_handle_type_dma_buf_fd, static_cast<std::uint32_t>(dmabuf), &result),
      "amdgpu_bo_import"));
  Bo bo(result.buf_handle, result.alloc_size);
  ASSIGN_OR_RETURN(const auto words, bo.words());
  return Buffer::map(device, std::move(bo), words);
}

// By the GPU.
Status write(const Device& device, const Buffer& buffer, std::size_t page, std::uint32_t word) {
  ASSIGN_OR_RETURN(const drmtest::Context context, drmtest::Context::create(device));
  ASSIGN_OR_RETURN(drmtest::Submitter submitter, drmtest::Submitter::create(device, context));
  drmtest::Job job;
  job.bos = {buffer.handle()};
  ASSIGN_OR_RETURN(const amdgpu_cs_fence fence,
                   submitter.submit(job, drmtest::Commands(device, job.ip).write(buffer.address(page * kPage), word)));
  return drmtest::poll_until_ended(fence);
}

Status tell(int socket) {
  const char byte = 1;
  if (::write(socket, &byte, 1) != 1) return Error::from_errno(errno, "telling another process");
  return {};
}

Status wait_for(int socket) {
  char byte = 0;
  ssize_t length = -1;
  do {
    length = ::read(socket, &byte, 1);
  } while (length < 0 && errno == EINTR);
  if (length == 1) return {};
  return length == 0 ? Error(ECANCELED, "another process has ended") : Error::from_errno(errno, "waiting");
}

Status be_child(std::size_t number, int socket) {
  ASSIGN_OR_RETURN(UniqueFd dmabuf, base::receive_file(socket));
  ASSIGN_OR_RETURN(const Device device, open_device());
  ASSIGN_OR_RETURN(const Buffer object, import(device, dmabuf.get()));
  std::optional<Buffer> made;
  if (number != kLateMapper) dmabuf.reset();
  if (number == kMaker) {
    ASSIGN_OR_RETURN(Buffer own, create(device, drmtest::gtt(kSize), kGivenSeed));
    made.emplace(std::move(own));
    ASSIGN_OR_RETURN(const UniqueFd given, made->bo().dma_buf());
    TRY(base::send_file(socket, given.get()));
  }
  TRY(tell(socket));
  TRY(wait_for(socket));  // through the checkpoint
  TRY(expect_pattern(object, kOwnSeed, "the object of the parent, in a child"));
  if (made) TRY(expect_pattern(*made, kGivenSeed, "the object of a child"));
  TRY(tell(socket));
  TRY(wait_for(socket));  // all have looked
  TRY(write(device, object, number + 1, kChildWord + static_cast<std::uint32_t>(number)));
  if (made) TRY(write(device, *made, 0, kChildWord));
  if (dmabuf.valid()) {
    ASSIGN_OR_RETURN(const Device another, open_device());
    ASSIGN_OR_RETURN(const Buffer again, import(another, dmabuf.get()));
    TRY(expect_word(again, number + 1, kChildWord + static_cast<std::uint32_t>(number), "a new import"));
  }
  TRY(tell(socket));
  TRY(wait_for(socket));  // all have written
  TRY(expect_word(object, 0, kParentWord, "what the parent wrote, in a child"));
  for (std::size_t i = 0; i < 2; ++i)
    TRY(expect_word(object, i + 1, kChildWord + static_cast<std::uint32_t>(i), "what a child wrote, in a child"));
  return tell(socket);
}

}  // namespace

Result<std::unique_ptr<SharedObjects>> SharedObjects::fork() {
  std::unique_ptr<SharedObjects> objects(new SharedObjects());
  for (std::size_t i = 0; i < objects->children_.size(); ++i) {
    std::array<int, 2> pair{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
      return Error::from_errno(errno, "socketpair");
    UniqueFd own(pair[0]);
    const UniqueFd other(pair[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return Error::from_errno(errno, "fork");
    if (pid == 0) {
      own.reset();
      const Status status = be_child(i, other.get());
      if (!status.ok()) std::fprintf(stderr, "child %zu: %s\n", i, status.error().message().c_str());
      ::_exit(status.ok() ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    objects->children_[i] = {pid, std::move(own)};
  }
  return objects;
}

Status SharedObjects::share(const kfdtest::Gpu* gpu) {
  ASSIGN_OR_RETURN(Device device, open_device());
  device_.emplace(std::move(device));
  ASSIGN_OR_RETURN(Buffer own, create(*device_, drmtest::vram(kSize), kOwnSeed));
  own_.emplace(std::move(own));
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const int socket = children_[i].socket.get();
    ASSIGN_OR_RETURN(const UniqueFd dmabuf, own_->bo().dma_buf());
    TRY(base::send_file(socket, dmabuf.get()));
    if (i == kMaker) {
      ASSIGN_OR_RETURN(const UniqueFd received, base::receive_file(socket));
      ASSIGN_OR_RETURN(Buffer given, import(*device_, received.get()));
      given_.emplace(std::move(given));
    }
    TRY(wait_for(socket));
  }
  return gpu == nullptr ? Status() : share_with_kfd(*gpu);
}

Status SharedObjects::share_with_kfd(const kfdtest::Gpu& gpu) {
  gpu_ = &gpu;
  kfdtest::KfdDriver& driver = kfdtest::ioctls_of(gpu);
  ASSIGN_OR_RETURN(const UniqueFd dmabuf, own_->bo().dma_buf());
  ASSIGN_OR_RETURN(kfdtest::Block block, driver.import_dmabuf(gpu, dmabuf.get(), kSize));
  ASSIGN_OR_RETURN(kfdtest::GpuMemory bo, kfdtest::GpuMemory::take(gpu, std::move(block)));
  bo_.emplace(std::move(bo));
  ASSIGN_OR_RETURN(kfdtest::GpuMemory memory,
                   kfdtest::GpuMemory::allocate(gpu, kfdtest::MemoryKind::kGtt, kSize + kPage));
  memory_.emplace(std::move(memory));
  ASSIGN_OR_RETURN(const UniqueFd exported, driver.client().export_dmabuf(memory_->block().handle));
  ASSIGN_OR_RETURN(Buffer object, import(*device_, exported.get()));
  object_.emplace(std::move(object));
  drmtest::write_pattern(object_->words(), kKfdSeed);
  ASSIGN_OR_RETURN(kfdtest::RingQueue queue, kfdtest::RingQueue::create(gpu, kfdtest::QueueKind::kSdma));
  queue_.emplace(std::move(queue));
  return {};
}

// The GPU copies what its BO of own_ has into memory that the CPU sees by KFD and by the render node.
Status SharedObjects::check_kfd() {
  TRY(expect_pattern(*object_, kKfdSeed, "memory of KFD in a render node"));
  const std::uint32_t fence = kKfdWord + 1;
  kfdtest::SdmaCommands commands(*gpu_);
  commands.copy(memory_->gpu_address(), bo_->gpu_address(), kSize);
  TRY(queue_->submit(commands.fence(memory_->gpu_address(kSize), fence).dwords()));
  TRY(kfdtest::wait_for_word(*memory_, kSize, fence));
  if (!std::equal(own_->words().begin(), own_->words().end(), object_->words().begin()))
    return Error(EIO, "KFD's BO of a GEM object has other memory");
  memory_->store32(0, kKfdWord);
  return expect_word(*object_, 0, kKfdWord, "what the CPU wrote into memory of KFD");
}

Status SharedObjects::check() {
  TRY(expect_pattern(*own_, kOwnSeed, "the object of the parent"));
  TRY(expect_pattern(*given_, kGivenSeed, "the object of a child, in the parent"));
  if (gpu_ != nullptr) TRY(check_kfd());
  const auto step = [this]() -> Status {
    for (const Child& child : children_) TRY(tell(child.socket.get()));
    for (const Child& child : children_) TRY(wait_for(child.socket.get()));
    return {};
  };
  TRY(step());  // all have looked
  TRY(write(*device_, *own_, 0, kParentWord));
  TRY(step());  // all have written
  for (std::size_t i = 0; i < children_.size(); ++i)
    TRY(expect_word(*own_, i + 1, kChildWord + static_cast<std::uint32_t>(i), "what a child wrote"));
  TRY(expect_word(*given_, 0, kChildWord, "what a child wrote into its object"));
  TRY(step());
  for (const Child& child : children_) {
    int status = 0;
    if (::waitpid(child.pid, &status, 0) != child.pid || !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS)
      return Error(EIO, "a child has failed");
  }
  return {};
}

}  // namespace fieldtest
