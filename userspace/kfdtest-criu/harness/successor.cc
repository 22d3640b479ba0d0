// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An image is in memory only: what the kernel says, the contents of BOs, and where they were mapped.
#include "kfdtest-criu/harness/successor.h"

#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mapping.h"
#include "base/unique_fd.h"
#include "kfd/extensible_kfd.h"
#include "kfd/kfd.h"
#include "kfdtest-criu/harness/contents.h"
#include "kfdtest-criu/harness/gem_image.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/memory.h"

namespace kfdtest {
namespace {

constexpr const char* kKfdPath = "/dev/kfd";
constexpr std::string_view kRenderPrefix = "/dev/dri/renderD";
constexpr std::string_view kDmabufPrefix = "/dmabuf:";
// KFD's mmap offsets (amdkfd/kfd_priv.h, KFD_MMAP_GPU_ID): bits 61 to 46.
constexpr unsigned kGpuIdShift = 46;
constexpr std::uint64_t kGpuIdMask = std::uint64_t{0xffff} << kGpuIdShift;

// A mapping of a GPU's memory or doorbells in this process.
struct GpuMapping {
  std::uint64_t start = 0;
  std::size_t size = 0;
  std::uint64_t offset = 0;
  int protection = 0;
  std::string path;
};

// An open DMA-buf.
struct OpenDmabuf {
  int number = -1;
  std::uint64_t inode = 0;
  std::uint32_t kfd_flags = 0;
  Contents contents;  // none of memory that a BO or a GEM object has
};

struct Image {
  kfd::Pause pause;
  kfd::Checkpoint checkpoint;
  std::vector<Contents> contents;           // one for each BO
  std::vector<std::vector<SavedGem>> gems;  // of each GPU's render node
  std::vector<OpenDmabuf> dmabufs;
  std::vector<GpuMapping> mappings;
  std::size_t turned = 0;  // Successor::turned_ of the process that took it
};

// Parses a line of /proc/PID/maps; nothing if the mapping is not a GPU's.
std::optional<GpuMapping> parse_mapping(const std::string& line) {
  std::uint64_t end = 0;
  std::array<char, 5> flags{};
  int path_at = 0;
  GpuMapping mapping;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping.start, &end,
                  flags.data(), &mapping.offset, &path_at) != 4)
    return std::nullopt;
  mapping.path = line.substr(static_cast<std::size_t>(path_at));
  if (mapping.path != kKfdPath && !mapping.path.starts_with(kRenderPrefix)) return std::nullopt;
  mapping.size = end - mapping.start;
  if (flags[0] == 'r') mapping.protection |= PROT_READ;
  if (flags[1] == 'w') mapping.protection |= PROT_WRITE;
  return mapping;
}

std::vector<GpuMapping> own_gpu_mappings() {
  std::vector<GpuMapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (auto mapping = parse_mapping(line); mapping.has_value()) mappings.push_back(std::move(*mapping));
  return mappings;
}

bool has_object(const Image& image, std::uint64_t inode) {
  return std::ranges::find(image.checkpoint.bos, inode, &kfd::CheckpointedBo::inode) != image.checkpoint.bos.end() ||
         std::ranges::any_of(image.gems, [inode](const std::vector<SavedGem>& gems) {
           return std::ranges::find(gems, inode, &SavedGem::inode) != gems.end();
         });
}

// The DMA-bufs that this process has open, whose objects the image has already.
base::Result<std::vector<OpenDmabuf>> save_dmabufs(const Image& image, const kfd::Client& client) {
  std::vector<OpenDmabuf> dmabufs;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", code)) {
    std::error_code gone;
    if (!std::filesystem::read_symlink(entry.path(), gone).native().starts_with(kDmabufPrefix)) continue;
    OpenDmabuf dmabuf{.number = std::atoi(entry.path().filename().c_str()), .inode = 0, .kfd_flags = 0, .contents = {}};
    struct stat found {};
    if (::fstat(dmabuf.number, &found) != 0) return base::Error::from_errno(errno, "the inode of a DMA-buf");
    dmabuf.inode = found.st_ino;
    ASSIGN_OR_RETURN(const kfd::DmabufInfo info, client.dmabuf_info(dmabuf.number));
    // KFD does not say whether memory is writable; it makes DMA-bufs that are, of memory that is.
    const int mode = ::fcntl(dmabuf.number, F_GETFL) & O_ACCMODE;
    dmabuf.kfd_flags = info.flags;
    if (mode == O_RDWR) dmabuf.kfd_flags |= static_cast<std::uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE);
    if (!has_object(image, dmabuf.inode)) {
      ASSIGN_OR_RETURN(const base::Mapping bytes,
                       base::Mapping::shared(dmabuf.number, info.size, 0, "reading a DMA-buf"));
      dmabuf.contents = Contents::of(bytes.bytes());
    }
    dmabufs.push_back(std::move(dmabuf));
  }
  if (code) return base::Error(code.value(), "the list of open files");
  return dmabufs;
}

base::Result<Image> take_image(kfd::Kfd& kfd, const Session& session) {
  const int fd = ioctls_of(session.gpus().front()).client().fd();
  Image image;
  ASSIGN_OR_RETURN(image.pause, kfd.pause_with_objects(fd));
  ASSIGN_OR_RETURN(image.checkpoint, kfd.checkpoint(fd, image.pause));
  for (kfd::CheckpointedBo& each : image.checkpoint.bos) {
    image.contents.emplace_back();
    if (!kfd::has_contents(each.bo)) continue;
    ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, kfd.export_bo(fd, image.pause, each));
    ASSIGN_OR_RETURN(const base::Mapping bytes,
                     base::Mapping::shared(dmabuf.get(), each.bo.size, 0, "reading a buffer"));
    image.contents.back() = Contents::of(bytes.bytes());
  }
  for (const Gpu& gpu : session.gpus()) {
    image.gems.emplace_back();
    if (!image.pause.has_objects) continue;
    ASSIGN_OR_RETURN(image.gems.back(), save_gems(ioctls_of(gpu).render_fd(gpu), image.checkpoint.bos));
  }
  ASSIGN_OR_RETURN(image.dmabufs, save_dmabufs(image, ioctls_of(session.gpus().front()).client()));
  image.mappings = own_gpu_mappings();
  return image;
}

// Opens `path` at descriptor `number`, in place of the file that is open there.
base::Status reopen(const std::string& path, int number) {
  const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) return base::Error::from_errno(errno, path);
  if (::dup3(file.get(), number, O_CLOEXEC) < 0) return base::Error::from_errno(errno, "dup3");
  return {};
}

// The GPU of this machine that GPU `i` of the session is after `turned` turns.
const Gpu& in_place_of(const Session& session, std::size_t i, std::size_t turned) {
  return session.gpus()[(i + turned) % session.gpus().size()];
}

// Unmaps and closes what fork() left of the predecessor's GPU memory, and waits for the end of its process.
base::Status part_from(pid_t predecessor, const Image& image, const Session& session, std::size_t turned) {
  for (const GpuMapping& each : image.mappings)
    if (::mmap(reinterpret_cast<void*>(each.start), each.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == MAP_FAILED)
      return base::Error::from_errno(errno, "unmapping the predecessor's memory");
  const std::vector<Gpu>& gpus = session.gpus();
  KfdDriver& driver = ioctls_of(gpus.front());
  TRY(reopen(kKfdPath, driver.client().fd()));
  for (const OpenDmabuf& each : image.dmabufs) TRY(reopen("/dev/null", each.number));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Gpu& now = in_place_of(session, i, turned);
    TRY(reopen(std::string(kRenderPrefix) + std::to_string(now.render_minor), driver.render_fd(gpus[i])));
  }
  const std::string entry = "/sys/class/kfd/kfd/proc/" + std::to_string(predecessor);
  if (!wait_until([&] { return !std::filesystem::exists(entry); }))
    return base::Error(ETIME, "the predecessor keeps its GPUs");
  return {};
}

kfd::RestoreRequest request_for(const Image& image, const Session& session, std::size_t turned) {
  const std::vector<Gpu>& gpus = session.gpus();
  kfd::RestoreRequest request;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    request.devices.push_back({.user_id = gpus[i].gpu_id,
                               .actual_id = in_place_of(session, i, turned).gpu_id,
                               .drm_fd = ioctls_of(gpus[i]).render_fd(gpus[i])});
  for (const kfd::CheckpointedBo& each : image.checkpoint.bos) request.bos.push_back(each.bo);
  request.priv_data = image.checkpoint.priv_data;
  request.num_objects = image.pause.info.num_objects;
  return request;
}

// What a restore has made.
struct Restored {
  std::vector<kfd::RestoredBo> bos;
  std::vector<std::vector<std::uint64_t>> gem_offsets;  // in the render node of each GPU, as Image::gems
};

std::vector<HeldMemory> held_by(const Image& image) {
  std::vector<HeldMemory> held;
  for (const kfd::CheckpointedBo& each : image.checkpoint.bos)
    held.push_back({.address = each.bo.addr, .descriptor = -1, .inode = each.inode, .kfd_flags = each.bo.alloc_flags});
  for (const auto& gems : image.gems)
    for (const SavedGem& gem : gems)
      for (const GemMapping& mapping : gem.mappings)
        held.push_back({.address = mapping.address, .descriptor = -1, .inode = gem.inode, .kfd_flags = 0});
  for (const OpenDmabuf& each : image.dmabufs)
    held.push_back({.address = 0, .descriptor = each.number, .inode = each.inode, .kfd_flags = each.kfd_flags});
  return held;
}

// The DMA-buf of a restored GEM object, by the inode that it has in the image.
base::Result<base::UniqueFd> export_gem(const Image& image, const Session& session, std::uint64_t inode) {
  for (std::size_t i = 0; i < image.gems.size(); ++i) {
    const auto gem = std::ranges::find(image.gems[i], inode, &SavedGem::inode);
    const Gpu& gpu = session.gpus()[i];
    if (gem != image.gems[i].end()) return gem::export_dmabuf(ioctls_of(gpu).render_fd(gpu), gem->object.handle);
  }
  return base::Error(ENOENT, "nobody has made the memory of an open DMA-buf");
}

// Restores BOs of KFD, objects of render nodes and open DMA-bufs, without contents.
base::Result<Restored> restore_memory(const Image& image, const Session& session, std::size_t turned, kfd::Kfd& kfd,
                                      MemoryExchange* exchange) {
  const int fd = ioctls_of(session.gpus().front()).client().fd();
  std::vector<kfd::SharedMemory> given;
  if (exchange != nullptr) {
    ASSIGN_OR_RETURN(given, exchange->memories(held_by(image)));
  }
  const std::vector<kfd::CheckpointedBo>& bos = image.checkpoint.bos;
  kfd::RestoreRequest request = request_for(image, session, turned);
  std::ranges::copy_if(given, std::back_inserter(request.memories), [&](const kfd::SharedMemory& each) {
    return std::ranges::find(bos, each.inode, &kfd::CheckpointedBo::inode) != bos.end();
  });
  Restored restored;
  ASSIGN_OR_RETURN(restored.bos, kfd.restore(fd, std::move(request)));

  const auto memory_of = [&](std::uint64_t inode) -> base::Result<base::UniqueFd> {
    const auto shared = std::ranges::find(given, inode, &kfd::SharedMemory::inode);
    if (shared != given.end()) return base::UniqueFd(::fcntl(shared->dmabuf, F_DUPFD_CLOEXEC, 0));
    const auto bo = std::ranges::find(bos, inode, &kfd::CheckpointedBo::inode);
    if (bo == bos.end()) return base::UniqueFd();
    return kfd.export_restored(fd, bo->bo, restored.bos[static_cast<std::size_t>(bo - bos.begin())]);
  };
  for (std::size_t i = 0; i < image.gems.size(); ++i) {
    const Gpu& gpu = session.gpus()[i];
    restored.gem_offsets.emplace_back();
    ASSIGN_OR_RETURN(restored.gem_offsets.back(),
                     restore_gems(ioctls_of(gpu).render_fd(gpu), image.gems[i], memory_of));
  }
  for (const OpenDmabuf& each : image.dmabufs) {
    ASSIGN_OR_RETURN(base::UniqueFd memory, memory_of(each.inode));
    if (!memory.valid()) {
      ASSIGN_OR_RETURN(memory, export_gem(image, session, each.inode));
    }
    if (::dup3(memory.get(), each.number, O_CLOEXEC) < 0) return base::Error::from_errno(errno, "dup3 of a DMA-buf");
  }
  if (exchange != nullptr) exchange->exchanged();
  return restored;
}

base::Status write_contents(const Image& image, std::vector<kfd::RestoredBo>& restored, kfd::Kfd& kfd, int fd) {
  for (std::size_t i = 0; i < restored.size(); ++i) {
    if (image.contents[i].empty()) continue;
    ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, kfd.export_restored(fd, image.checkpoint.bos[i].bo, restored[i]));
    TRY(image.contents[i].write(dmabuf.get()));
  }
  for (const OpenDmabuf& each : image.dmabufs)
    if (!each.contents.empty()) TRY(each.contents.write(each.number));
  return {};
}

// Where a mapping's memory is after the restore: file and offset; file -1 if it is unknown.
std::pair<int, std::uint64_t> place_of(const GpuMapping& mapping, const Image& image, const Restored& restored,
                                       const Session& session, std::size_t turned) {
  const std::vector<Gpu>& gpus = session.gpus();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    KfdDriver& driver = ioctls_of(gpus[i]);
    const Gpu& was = in_place_of(session, i, image.turned);
    // The kernel wants the id that the GPU has on this machine.
    const std::uint64_t id = in_place_of(session, i, turned).gpu_id;
    if (mapping.path == kKfdPath && (mapping.offset & kGpuIdMask) == std::uint64_t{was.gpu_id} << kGpuIdShift)
      return {driver.client().fd(), (mapping.offset & ~kGpuIdMask) | id << kGpuIdShift};
    if (mapping.path != std::string(kRenderPrefix) + std::to_string(was.render_minor)) continue;
    for (std::size_t bo = 0; bo < restored.bos.size(); ++bo) {
      const kfd::Bo& each = image.checkpoint.bos[bo].bo;
      if (each.user_gpu_id == gpus[i].gpu_id && each.mmap_offset == mapping.offset)
        return {driver.render_fd(gpus[i]), restored.bos[bo].mmap_offset};
    }
    for (std::size_t gem = 0; gem < image.gems[i].size(); ++gem)
      if (image.gems[i][gem].mmap_offset == mapping.offset)
        return {driver.render_fd(gpus[i]), restored.gem_offsets[i][gem]};
  }
  return {-1, 0};
}

base::Status map_again(const Image& image, const Restored& restored, const Session& session, std::size_t turned) {
  for (const GpuMapping& each : image.mappings) {
    const auto [file, offset] = place_of(each, image, restored, session, turned);
    if (file < 0) return base::Error(ENOENT, "nobody knows the mapping of " + each.path);
    if (::mmap(reinterpret_cast<void*>(each.start), each.size, each.protection, MAP_SHARED | MAP_FIXED, file,
               static_cast<off_t>(offset)) == MAP_FAILED)
      return base::Error::from_errno(errno, "mapping " + each.path + " again");
  }
  return {};
}

base::Status resume_beside_child(kfd::Kfd& kfd, int fd) {
  const pid_t child = ::fork();
  if (child < 0) return base::Error::from_errno(errno, "fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::pause();
    ::_exit(EXIT_FAILURE);
  }
  base::Status status = kfd.resume(fd, ::getpid());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return status;
}

base::Status take_over(pid_t predecessor, const Image& image, const Session& session, std::size_t turned, kfd::Kfd& kfd,
                       PageSharing sharing, MemoryExchange* exchange) {
  TRY(part_from(predecessor, image, session, turned));
  const int fd = ioctls_of(session.gpus().front()).client().fd();
  ASSIGN_OR_RETURN(Restored restored, restore_memory(image, session, turned, kfd, exchange));
  TRY(write_contents(image, restored.bos, kfd, fd));
  TRY(map_again(image, restored, session, turned));
  return sharing == PageSharing::kWithChild ? resume_beside_child(kfd, fd) : kfd.resume(fd, ::getpid());
}

[[noreturn]] void end(const base::Status& status, int done) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().message().c_str());
  const char mark = '!';
  const bool told = status.ok() && ::write(done, &mark, sizeof(mark)) == sizeof(mark);
  ::_exit(told ? EXIT_SUCCESS : EXIT_FAILURE);
}

// Waits for all children, adopted ones included; true if all ended with status 0.
bool wait_for_all() {
  bool good = true;
  for (;;) {
    int status = 0;
    if (::waitpid(-1, &status, 0) >= 0)
      good = good && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
    else if (errno != EINTR)
      return good;
  }
}

}  // namespace

base::Status SuccessorCheckpointer::hand_over() {
  kfd::RealKfd released;
  kfd::ExtensibleKfd extensible;
  kfd::Kfd& kfd = abi_ == CriuAbi::kReleased ? static_cast<kfd::Kfd&>(released) : extensible;
  ASSIGN_OR_RETURN(Image image, take_image(kfd, *session_));
  image.turned = turned_;
  const pid_t self = ::getpid();
  const pid_t successor = ::fork();
  if (successor < 0) return base::Error::from_errno(errno, "fork");
  if (successor > 0) ::_exit(EXIT_SUCCESS);
  if (order_ == GpuOrder::kRotated) ++turned_;
  return take_over(self, image, *session_, turned_, kfd, sharing_, exchange_);
}

base::Status run_with_successors(const std::function<base::Status()>& program) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return base::Error::from_errno(errno, "becoming a subreaper");
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return base::Error::from_errno(errno, "pipe");
  const base::UniqueFd from(ends[0]);
  base::UniqueFd to(ends[1]);
  const pid_t first = ::fork();
  if (first < 0) return base::Error::from_errno(errno, "fork");
  if (first == 0) end(program(), to.get());
  to.reset();
  const bool good = wait_for_all();
  char mark = 0;
  const bool told = ::read(from.get(), &mark, sizeof(mark)) == sizeof(mark);
  return good && told ? base::Status() : base::Error(EIO, "a process of the chain failed; see its message above");
}

}  // namespace kfdtest
