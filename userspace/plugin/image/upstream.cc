// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Their ids of GPUs are those that the program knows, in all files: the same number stands for user id and actual id
// here. Their pages files, one a GPU, are one sequence of bytes for Contents, by ascending id of the GPU.
#include "plugin/image/upstream.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "base/os.h"
#include "plugin/image/file_bytes.h"
#include "plugin/image/upstream_format.h"

namespace plugin::image::upstream {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr const char* kCriuFiles = "files.img";
// CRIU writes such a file for each mount namespace that is not its own.
constexpr std::string_view kMountPoints = "mountpoints-";
constexpr std::uint32_t kDefaultMode = 0666;  // that libhsakmt asks for

struct Names {
  std::set<std::uint32_t> kfd;
  std::set<std::uint32_t> render;
  std::set<std::uint32_t> dmabuf;
  bool mount_namespace = false;
};

Result<Names> list(int dir_fd) {
  // A file of its own: listing moves the position, which the caller's descriptor shares with CRIU's.
  UniqueFd copy(os::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return Error::from_errno(errno, "opening the image directory");
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(os::fdopendir(copy.get()), os::closedir);
  if (dir == nullptr) return Error::from_errno(errno, "listing the image directory");
  (void)copy.release();  // closedir() closes it
  Names names;
  errno = 0;
  while (const dirent* entry = os::readdir(dir.get())) {
    if (std::string_view(entry->d_name).starts_with(kMountPoints)) names.mount_namespace = true;
    if (const auto name = parse_name(entry->d_name)) {
      if (name->kind == NameKind::kKfd) names.kfd.insert(name->id);
      if (name->kind == NameKind::kRender) names.render.insert(name->id);
      if (name->kind == NameKind::kDmabuf) names.dmabuf.insert(name->id);
    }
    errno = 0;
  }
  if (errno != 0) return Error::from_errno(errno, "listing the image directory");
  return names;
}

struct OpenFile {
  UniqueFd fd;
  std::uint64_t size = 0;
};

Result<OpenFile> open_file(int dir_fd, const std::string& name) {
  UniqueFd fd(os::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return Error::from_errno(errno, "opening " + name);
  struct stat status {};
  if (os::fstat(fd.get(), &status) != 0) return Error::from_errno(errno, "fstat of " + name);
  if (!S_ISREG(status.st_mode)) return Error(EINVAL, name + ": not a regular file");
  return OpenFile{std::move(fd), static_cast<std::uint64_t>(status.st_size)};
}

Result<std::uint64_t> read_length(const OpenFile& file) {
  std::array<std::byte, kLengthSize> bytes{};
  TRY(read_all(file.fd.get(), bytes, 0));
  return decode_length(bytes, file.size);
}

Result<std::vector<std::byte>> read_payload(const OpenFile& file) {
  ASSIGN_OR_RETURN(const std::uint64_t length, read_length(file));
  if (length > kMaxMessage) return Error(EINVAL, "larger than any such file can be");
  std::vector<std::byte> payload(length);
  TRY(read_all(file.fd.get(), payload, kLengthSize));
  return payload;
}

template <typename T>
Result<T> named(const std::string& name, Result<T> result) {
  if (result.ok()) return result;
  return std::move(result).error().wrap(name);
}

// CRIU's list of open files; what it says of libhsakmt's is a help, not a condition.
SharedMemoryFiles read_shared_memory_files(int dir_fd) {
  const auto file = open_file(dir_fd, kCriuFiles);
  if (!file.ok() || file->size > kMaxMessage) return {};
  std::vector<std::byte> bytes(file->size);
  if (!read_all(file->fd.get(), bytes, 0).ok()) return {};
  return shared_memory_files(bytes);
}

std::vector<SharedFile> shared_files(const Kfd& kfd, const SharedMemoryFiles& known) {
  std::vector<SharedFile> files;
  if (kfd.shared_memory_size == 0) return files;
  SharedFile memory{
      std::string(kSharedFileNames[0]), std::string(kfd.shared_memory_size, '\0'), kDefaultMode, 0, 0, {}};
  const std::size_t magic = std::min(memory.contents.size(), sizeof(kfd.shared_memory_magic));
  std::memcpy(memory.contents.data(), &kfd.shared_memory_magic, magic);
  if (known.memory_mode != 0) memory.mode = known.memory_mode;
  // A sem_t that has the value 1 and that processes may share.
  SharedFile semaphore{std::string(kSharedFileNames[1]), std::string(kSemaphoreSize, '\0'), kDefaultMode, 0, 0, {}};
  semaphore.contents[0] = 1;
  semaphore.contents[8] = static_cast<char>(0x80);
  if (known.semaphore_mode != 0) semaphore.mode = known.semaphore_mode;
  if (!known.semaphore_link.empty()) semaphore.links.push_back(known.semaphore_link);
  files.push_back(std::move(memory));
  files.push_back(std::move(semaphore));
  return files;
}

// The pages file of a GPU has exactly the contents of its BOs.
Result<OpenFile> open_pages(int dir_fd, const std::string& name, std::uint64_t contents) {
  ASSIGN_OR_RETURN(OpenFile file, open_file(dir_fd, name));
  ASSIGN_OR_RETURN(const std::uint64_t length, named(name, read_length(file)));
  if (length != contents)
    return Error(EINVAL, name + ": has contents of " + std::to_string(length) + " bytes, the BOs have " +
                             std::to_string(contents));
  return file;
}

Result<OpenFile> open_pages(int dir_fd, std::uint32_t id, std::uint32_t gpu_id, std::uint64_t contents) {
  auto file = open_pages(dir_fd, pages_name(id, gpu_id), contents);
  if (file.ok() || file.error().code() != ENOENT) return file;
  return Error(ENOENT,
               pages_name(id, gpu_id) +
                   " is missing: the image directory was not copied completely, or the dumped program had "
                   "been restored before, and CRIU's own plugin does not save the GPU memory of such a program");
}

struct DecodedFile {
  Kfd kfd;
  FileEntry entry;
};

Result<DecodedFile> decode_file(int dir_fd, std::uint32_t id) {
  const std::string name = kfd_name(id);
  ASSIGN_OR_RETURN(const OpenFile file, open_file(dir_fd, name));
  ASSIGN_OR_RETURN(const auto payload, named(name, read_payload(file)));
  ASSIGN_OR_RETURN(Kfd kfd, named(name, decode_kfd(payload)));
  FileEntry entry;
  entry.id = id;
  entry.kind = Kind::kKfd;
  entry.metadata_length = payload.size();
  entry.metadata_hash = hash_bytes(payload);
  for (const auto& [gpu_id, contents] : kfd.contents) {
    if (contents == 0) continue;
    TRY(open_pages(dir_fd, id, gpu_id, contents));
    entry.pages_length += kLengthSize + contents;
  }
  return DecodedFile{std::move(kfd), entry};
}

KfdFile to_file(Kfd& kfd, const SharedMemoryFiles& shared, bool mount_namespace) {
  KfdFile file;
  file.pid = kfd.pid;
  file.num_objects = kfd.num_objects;
  for (const std::uint32_t gpu_id : kfd.gpu_ids) file.devices.push_back({gpu_id, gpu_id});
  file.priv_data = std::move(kfd.priv_data);
  file.shared_files = shared_files(kfd, shared);
  file.own_mount_namespace = mount_namespace;
  return file;
}

// Where each pages file begins in the sequence of them, by gpu_id.
std::map<std::uint32_t, std::uint64_t> beginnings(const std::map<std::uint32_t, std::uint64_t>& contents) {
  std::map<std::uint32_t, std::uint64_t> begin;
  std::uint64_t end = 0;
  for (const auto& [gpu_id, length] : contents) {
    if (length == 0) continue;
    begin[gpu_id] = end;
    end += kLengthSize + length;
  }
  return begin;
}

// A chunk is one piece, which is stored.
Index to_index(const Kfd& kfd) {
  Index index;
  index.piece_size = index.chunk_size;
  auto begin = beginnings(kfd.contents);
  for (const Bo& bo : kfd.bos) {
    index.bos.push_back({bo.bo});
    if (bo.pages_offset == 0) continue;
    const std::uint64_t first = begin[bo.bo.user_gpu_id] + bo.pages_offset;
    for (std::uint64_t i = 0; i < chunk_count(bo.bo.size, index.chunk_size); ++i)
      index.chunks.push_back({first + i * index.chunk_size, 0, 1});
  }
  return index;
}

std::uint64_t session_id(std::span<const topology::Node> nodes) {
  std::string text;
  for (const topology::Node& node : nodes)
    text += std::to_string(node.node_id) + ':' + std::to_string(node.gpu_id) + ';';
  return hash_bytes(std::as_bytes(std::span(text)));
}

// Their files say nothing of the dump that made them. Those of one dump describe the same machine.
class Sessions {
 public:
  // Adds a process that was dumped on a machine with these nodes.
  std::shared_ptr<Session> with(const std::vector<topology::Node>& nodes, std::uint32_t pid) {
    auto found = std::find_if(sessions_.begin(), sessions_.end(),
                              [&nodes](const auto& session) { return session->nodes == nodes; });
    if (found == sessions_.end()) {
      auto session = std::make_shared<Session>();
      session->id = session_id(nodes);
      session->version = Version::kUpstream;
      session->nodes = nodes;
      found = sessions_.insert(sessions_.end(), std::move(session));
    }
    (*found)->processes.push_back({pid, {}});
    return *found;
  }
  // That with the GPU; an error unless there is exactly one.
  [[nodiscard]] Result<std::shared_ptr<const Session>> with_gpu(std::uint32_t gpu_id) const {
    std::shared_ptr<const Session> found;
    for (const auto& session : sessions_) {
      if (std::none_of(session->nodes.begin(), session->nodes.end(),
                       [gpu_id](const topology::Node& node) { return node.gpu_id == gpu_id; }))
        continue;
      if (found != nullptr)
        return Error(EINVAL,
                     "two dumps of different machines are in the directory, and both may be its own; remove one");
      found = session;
    }
    if (found == nullptr) return Error(EINVAL, "no amdgpu-kfd-*.img describes its GPU " + std::to_string(gpu_id));
    return found;
  }

 private:
  std::vector<std::shared_ptr<Session>> sessions_;
};

Result<Loaded> load_kfd(int dir_fd, std::uint32_t id, const SharedMemoryFiles& shared, bool mount_namespace,
                        Sessions& sessions) {
  ASSIGN_OR_RETURN(DecodedFile decoded, decode_file(dir_fd, id));
  const auto session = sessions.with(decoded.kfd.nodes, decoded.kfd.pid);
  Index index = to_index(decoded.kfd);
  Loaded loaded(session, decoded.entry, {id, to_file(decoded.kfd, shared, mount_namespace)}, std::move(index));
  if (auto status = validate(loaded.file(), *session); !status.ok())
    return std::move(status).error().wrap(kfd_name(id));
  return loaded;
}

Result<Loaded> load_render(int dir_fd, std::uint32_t id, const Sessions& sessions) {
  const std::string name = render_name(id);
  ASSIGN_OR_RETURN(const OpenFile open, open_file(dir_fd, name));
  ASSIGN_OR_RETURN(const auto payload, named(name, read_payload(open)));
  ASSIGN_OR_RETURN(const Render render, named(name, decode_render(payload)));
  if (render.objects != 0)
    return Error(EOPNOTSUPP, name + ": has " + std::to_string(render.objects) +
                                 " GEM objects that are not KFD's, which this plugin does not restore");
  ASSIGN_OR_RETURN(const auto session, named(name, sessions.with_gpu(render.gpu_id)));
  RenderFile contents;
  contents.gpu_id = render.gpu_id;
  if (session->processes.size() == 1) contents.owner = session->processes.front().pid;
  File file{id, contents};
  if (auto status = validate(file, *session); !status.ok()) return std::move(status).error().wrap(name);
  FileEntry entry;
  entry.id = id;
  entry.kind = Kind::kRender;
  entry.metadata_length = payload.size();
  entry.metadata_hash = hash_bytes(payload);
  return Loaded(session, entry, std::move(file), {});
}

}  // namespace

Result<std::map<std::uint32_t, Result<Loaded>>> read(int dir_fd) {
  ASSIGN_OR_RETURN(const Names names, list(dir_fd));
  std::map<std::uint32_t, Result<Loaded>> files;
  if (names.kfd.empty() && names.render.empty() && names.dmabuf.empty()) return files;
  const SharedMemoryFiles shared = read_shared_memory_files(dir_fd);
  Sessions sessions;
  for (const std::uint32_t id : names.kfd)
    files.emplace(id, load_kfd(dir_fd, id, shared, names.mount_namespace, sessions));
  for (const std::uint32_t id : names.render) files.emplace(id, load_render(dir_fd, id, sessions));
  for (const std::uint32_t id : names.dmabuf)
    files.emplace(id, Error(EOPNOTSUPP, dmabuf_name(id) + ": a DMA-buf, which this plugin does not restore"));
  return files;
}

Result<Contents> open_contents(int dir_fd, const Loaded& loaded) {
  std::map<std::uint32_t, std::uint64_t> contents;
  for (const BoRecord& record : loaded.kfd()->bos)
    if (stores_contents(record)) contents[record.bo.user_gpu_id] += record.bo.size;
  std::vector<Contents::Pages> pages;
  for (const auto& [gpu_id, begin] : beginnings(contents)) {
    ASSIGN_OR_RETURN(OpenFile file, open_pages(dir_fd, loaded.id(), gpu_id, contents[gpu_id]));
    pages.push_back({pages_name(loaded.id(), gpu_id), std::move(file.fd), begin});
  }
  return Contents(loaded, std::move(pages));
}

}  // namespace plugin::image::upstream
