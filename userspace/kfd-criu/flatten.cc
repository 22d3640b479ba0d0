// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// `flatten`: contents that a dump has in earlier dumps are stored in it, so that it needs none of them. The whole dump
// is written anew into a folder of the image directory and committed there; then its files take the places of the old
// ones, the manifest last. Killed before the commit, the dump is as it was; killed after it, the directory has no
// manifest for as long as nobody runs the command again, which goes on.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "kfd-criu/names.h"
#include "kfd-criu/run.h"
#include "kfd-criu/sessions.h"
#include "plugin/image/directory.h"
#include "plugin/image/writer.h"

namespace kfd_criu {
namespace {

namespace image = plugin::image;
using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr const char* kFolder = image::kFlattenFolder.data();
constexpr std::size_t kBuffer = std::size_t{8} * image::kChunkSize;

Result<UniqueFd> open_directory(int at, const std::string& name) {
  UniqueFd dir(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!dir.valid()) return Error::from_errno(errno, name);
  return dir;
}

Status move_file(int from, int to, const std::string& name) {
  if (::renameat(from, name.c_str(), to, name.c_str()) != 0) return Error::from_errno(errno, "moving " + name);
  return {};
}

// Contents of a BO go through two buffers: one is read into while the workers of the writer have the other.
class Copy {
 public:
  explicit Copy(image::FileWriter& writer) : writer_(writer) {}

  Status add(const image::Contents& contents, std::size_t bo) {
    image::BoReader reader(contents, bo);
    for (std::uint64_t rest = contents.bos()[bo].bo.size; rest != 0;) {
      Buffer& buffer = buffers_[next_];
      next_ = (next_ + 1) % buffers_.size();
      TRY(writer_.settle(buffer.number));
      const auto part = std::span(buffer.bytes).first(static_cast<std::size_t>(std::min<std::uint64_t>(rest, kBuffer)));
      TRY(reader.read(part));
      ASSIGN_OR_RETURN(buffer.number, writer_.append(part));
      rest -= part.size();
    }
    return {};
  }

 private:
  struct Buffer {
    std::vector<std::byte> bytes = std::vector<std::byte>(kBuffer);
    std::uint64_t number = 0;  // what is to be settled before the bytes may change
  };
  image::FileWriter& writer_;
  std::array<Buffer, 2> buffers_;
  std::size_t next_ = 0;
};

Status write_contents(int dir_fd, const image::Loaded& loaded, image::FileWriter& writer) {
  ASSIGN_OR_RETURN(const image::Contents contents, image::open_contents(dir_fd, loaded));
  Copy copy(writer);
  Status status;
  for (std::size_t bo = 0; bo < contents.bos().size() && status.ok(); ++bo)
    if (image::stores_contents(contents.bos()[bo])) status = copy.add(contents, bo);
  // Also after a failure: until then the workers have the buffers.
  auto settled = writer.settle_all();
  return status.ok() ? std::move(settled) : std::move(status);
}

Status write_dump(const Images& images, const image::Session& session, int folder) {
  ASSIGN_OR_RETURN(const auto writer, image::SessionWriter::create(folder, session.id));
  const auto files = images.catalogue.files_of(session);
  if (std::any_of(files.begin(), files.end(), [](const image::Loaded* loaded) { return loaded->entry().packed; }))
    writer->pack_by(image::Packing::kAlways);  // or it would take more space than before
  for (const image::Loaded* loaded : files) {
    if (image::has_index(loaded->file())) {
      const image::Working working(*writer);
      TRY(write_contents(images.dir.get(), *loaded, writer->file(loaded->id())));
    }
    TRY(writer->add(loaded->file()));
  }
  TRY(writer->prepare(session));
  return writer->commit();
}

std::set<std::string> names_of(const image::Manifest& manifest) {
  std::set<std::string> names = {std::string(image::kManifestName)};
  for (const image::FileEntry& entry : manifest.files) {
    names.insert(image::metadata_name(entry.id));
    if (entry.index_length != 0) names.insert(image::index_name(entry.id));
    if (entry.pages_length != 0) names.insert(image::pages_name(entry.id));
  }
  return names;
}

// Puts the committed dump of the folder in the place of the one in the directory; goes on where another one was killed.
Status take_over(int dir_fd, int folder, const image::Manifest& manifest) {
  const std::string last(image::kManifestName);
  TRY(image::remove_if_there(dir_fd, last));
  TRY(image::sync_directory(dir_fd));
  ASSIGN_OR_RETURN(const auto fresh, image::list_names(folder));
  for (const auto& [name, spelled] : fresh)
    if (spelled != last) TRY(move_file(folder, dir_fd, spelled));
  const auto wanted = names_of(manifest);
  ASSIGN_OR_RETURN(const auto all, image::list_names(dir_fd));
  for (const auto& [name, spelled] : all)
    if (!wanted.contains(spelled)) TRY(image::remove_if_there(dir_fd, spelled));
  TRY(image::sync_directory(dir_fd));
  TRY(move_file(folder, dir_fd, last));
  TRY(image::sync_directory(dir_fd));
  if (::unlinkat(dir_fd, kFolder, AT_REMOVEDIR) != 0) return Error::from_errno(errno, kFolder);
  return {};
}

// The manifest of the dump that another run has committed in the folder, if there is one and the directory has no newer
// dump. A new dump removes the folder.
Result<std::optional<image::Manifest>> interrupted(int dir_fd) {
  struct stat status {};
  if (::fstatat(dir_fd, kFolder, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
    return std::optional<image::Manifest>();
  ASSIGN_OR_RETURN(const UniqueFd folder, open_directory(dir_fd, kFolder));
  ASSIGN_OR_RETURN(auto fresh, image::load_manifest(folder.get()));
  ASSIGN_OR_RETURN(const auto present, image::load_manifest(dir_fd));
  if (fresh && present && present->session.id != fresh->session.id) fresh.reset();
  return fresh;
}

// Whether a dump refers to files of an earlier one. False: or it cannot be read.
bool refers(int dir_fd) {
  const auto manifest = image::load_manifest(dir_fd);
  if (!manifest.ok() || !*manifest) return false;
  const auto& files = (*manifest)->files;
  return std::any_of(files.begin(), files.end(), image::needs_earlier);
}

// A dump that refers to this one needs its files as they are. Those beside it are found, as `../NAME` is the usual
// path.
Status refuse_if_needed(int dir_fd, const std::string& path) {
  struct stat own {};
  if (::fstat(dir_fd, &own) != 0) return Error::from_errno(errno, path);
  std::error_code failed;
  std::filesystem::directory_iterator beside(std::filesystem::path(path) / "..", failed);
  for (; !failed && beside != std::filesystem::directory_iterator(); beside.increment(failed)) {
    const std::string other = beside->path().string();
    const UniqueFd dir(::open(other.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir.valid()) continue;
    const auto parent = image::open_parent(dir.get());
    struct stat status {};
    if (!parent.ok() || ::fstat(parent->get(), &status) != 0) continue;
    if (status.st_dev == own.st_dev && status.st_ino == own.st_ino && refers(dir.get()))
      return Error(EBUSY, path + ": the dump in " + std::filesystem::path(other).lexically_normal().string() +
                              " needs its files as they are: flatten that one first");
  }
  return {};
}

Status write_and_take_over(const Images& images, const image::Session& session) {
  const int dir_fd = images.dir.get();
  if (::mkdirat(dir_fd, kFolder, 0700) != 0 && errno != EEXIST) return Error::from_errno(errno, kFolder);
  ASSIGN_OR_RETURN(const UniqueFd folder, open_directory(dir_fd, kFolder));
  if (auto status = write_dump(images, session, folder.get()); !status.ok()) {
    (void)::unlinkat(dir_fd, kFolder, AT_REMOVEDIR);
    return status;
  }
  ASSIGN_OR_RETURN(const auto manifest, image::load_manifest(folder.get()));
  if (!manifest) return Error(EIO, "the new manifest is gone");
  return take_over(dir_fd, folder.get(), *manifest);
}

}  // namespace

Result<Exit> run_flatten(const Options& options, const Output& output) {
  UniqueFd dir(::open(options.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Error::from_errno(errno, options.directory);
  ASSIGN_OR_RETURN(const auto manifest, interrupted(dir.get()));
  if (manifest) {
    ASSIGN_OR_RETURN(const UniqueFd folder, open_directory(dir.get(), kFolder));
    TRY(take_over(dir.get(), folder.get(), *manifest));
    output.out << options.directory << ": completed what another run had begun; it needs no earlier dump\n";
    return Exit::kGood;
  }
  ASSIGN_OR_RETURN(const Images images, open_images(options.directory));
  if (const auto damaged = images.catalogue.damaged(); !damaged.empty()) {
    output.error << "kfd-criu: error: " << printable(damaged.front().error.message()) << '\n';
    return status_of(damaged.front().error);
  }
  Totals totals;
  const image::Session* session = nullptr;
  for (const image::Loaded* loaded : images.catalogue.intact()) {
    if (!image::needs_earlier(loaded->entry())) continue;
    session = &loaded->session();
    ASSIGN_OR_RETURN(const image::Contents contents, image::open_contents(images.dir.get(), *loaded));
    for (std::size_t bo = 0; bo < contents.bos().size(); ++bo) totals += totals_of(*loaded, contents, bo);
  }
  if (session == nullptr) {
    output.out << options.directory << ": needs no earlier dump\n";
    return Exit::kGood;
  }
  TRY(refuse_if_needed(images.dir.get(), options.directory));
  TRY(write_and_take_over(images, *session));
  output.out << options.directory << ": stored " << size_text(totals.referred)
             << " of earlier dumps; it needs none of them\n";
  return Exit::kGood;
}

}  // namespace kfd_criu
