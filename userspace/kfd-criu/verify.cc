// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// `verify`: the readers' own checks, then what no checksum covers: bytes between chunks, and files of no dump. Contents
// are read chunk by chunk, so that memory does not grow with them. Images of CRIU's own plugin have no checksums: of
// them it says that numbers and lengths agree, and that everything can be read.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "kfd-criu/json.h"
#include "kfd-criu/names.h"
#include "kfd-criu/run.h"
#include "kfd-criu/sessions.h"
#include "plugin/image/directory.h"
#include "plugin/session_sharing.h"

namespace kfd_criu {
namespace {

namespace image = plugin::image;
using base::Error;
using base::Result;
using base::Status;

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator<(const Extent& other) const { return begin < other.begin; }
};

Status must_be_zero(int fd, const std::string& name, Extent extent) {
  std::array<char, 4096> bytes{};
  while (extent.begin < extent.end) {
    const auto want = std::min<std::uint64_t>(bytes.size(), extent.end - extent.begin);
    const ssize_t got = ::pread(fd, bytes.data(), want, static_cast<off_t>(extent.begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno(errno, name);
    if (got == 0) return Error(EINVAL, name + ": truncated");
    const auto* end = bytes.data() + got;
    const auto* at = std::find_if(bytes.data(), bytes.data() + got, [](char c) { return c != 0; });
    if (at != end)
      return Error(EINVAL, name + ": damaged: the byte at " +
                               std::to_string(extent.begin + static_cast<std::uint64_t>(at - bytes.data())) +
                               " is not 0, and lies between chunks");
    extent.begin += static_cast<std::uint64_t>(got);
  }
  return {};
}

// Places in the pages file that a checksum covers: those of chunks, and the header.
std::vector<Extent> covered_extents(const image::Loaded& loaded, const image::Contents& contents) {
  std::vector<Extent> extents{{0, image::kHeaderSize}};
  for (std::size_t bo = 0; bo < contents.bos().size(); ++bo) {
    const std::uint64_t size = contents.bos()[bo].bo.size;
    std::uint64_t index = 0;
    for (const image::Chunk& chunk : contents.chunks(bo)) {
      const std::uint64_t length = image::chunk_length(size, contents.chunk_size(), index++);
      if (chunk.offset == 0 || image::refers(loaded.entry(), chunk)) continue;
      extents.push_back({chunk.offset, chunk.offset + image::stored_length(chunk, length, loaded.index().piece_size)});
    }
  }
  std::sort(extents.begin(), extents.end());
  return extents;
}

Status verify_padding(int dir_fd, const image::Loaded& loaded, const image::Contents& contents) {
  const std::string name = image::pages_name(loaded.id());
  const base::UniqueFd fd(::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return Error::from_errno(errno, name);
  std::uint64_t checked = 0;
  for (const Extent& extent : covered_extents(loaded, contents)) {
    if (extent.begin > checked) TRY(must_be_zero(fd.get(), name, {checked, extent.begin}));
    checked = std::max(checked, extent.end);
  }
  return must_be_zero(fd.get(), name, {checked, loaded.entry().pages_length});
}

// Bytes of contents that were read.
Result<std::uint64_t> verify_file(int dir_fd, const image::Loaded& loaded) {
  if (!image::has_index(loaded.file())) return std::uint64_t{0};
  ASSIGN_OR_RETURN(const image::Contents contents, image::open_contents(dir_fd, loaded));
  TRY(contents.verify());
  const std::uint64_t length = loaded.entry().pages_length;
  if (length != 0 && !is_upstream(loaded.session())) TRY(verify_padding(dir_fd, loaded, contents));
  std::uint64_t referred = 0;
  for (std::size_t bo = 0; bo < contents.bos().size(); ++bo) referred += totals_of(loaded, contents, bo).referred;
  return length + referred;
}

// What files of a dump say about each other: memory that several processes share. A damaged file may be the one that
// another one needs.
Status verify_session(const Images& images, const image::Session& session) {
  if (!images.catalogue.damaged().empty()) return {};
  const auto no = [](const image::Loaded&) { return false; };
  const auto found = plugin::sharing_of(images.catalogue.files_of(session), no, no);
  return found.ok() ? Status() : found.error();
}

// Names of the plugin's files that are of no dump in the directory.
Result<std::vector<std::string>> strays(const Images& images, const std::set<std::uint32_t>& known) {
  ASSIGN_OR_RETURN(const auto found, image::list_names(images.dir.get()));
  const auto sessions = images.catalogue.sessions();
  const bool committed = std::any_of(sessions.begin(), sessions.end(), [](const image::Session* session) {
    return session->version == image::Version::k2;
  });
  std::vector<std::string> names;
  for (const auto& [name, spelled] : found) {
    const bool unfinished = name.kind == image::NameKind::kUnfinishedManifest ||
                            name.kind == image::NameKind::kUnfinishedManifest1 ||
                            name.kind == image::NameKind::kUnfinishedPages;
    const bool manifest = name.kind == image::NameKind::kManifest;
    if (unfinished || (manifest ? !committed && known.empty() : !known.contains(name.id))) names.push_back(spelled);
  }
  return names;
}

// One line, or one entry, for each file.
class Report {
 public:
  Report(const Options& options, const Output& output) : output_(output), json_(output.out), is_json_(options.json) {
    if (is_json_) json_.begin_object().field("magic", "AMDGPU_VERIFY").key("entries").begin_array();
  }

  void good(const image::Loaded& loaded, std::uint64_t bytes) {
    if (is_json_) {
      json_.begin_object().field("id", std::uint64_t{loaded.id()}).field("kind", kind_text(loaded.kind()));
      json_.hex_field("session_id", loaded.session().id).field("result", "good").field("bytes", bytes);
      json_.field("checksums", !is_upstream(loaded.session())).end_object();
      return;
    }
    output_.out << "file " << loaded.id() << " (" << kind_text(loaded.kind()) << "): good";
    if (is_upstream(loaded.session())) output_.out << " as far as an image without checksums shows";
    if (bytes != 0) output_.out << ", " << size_text(bytes) << " of contents read";
    output_.out << '\n';
  }

  void bad(std::uint32_t id, const Error& error) {
    const Exit status = status_of(error);
    status_ = worse(status_, status);
    const std::string_view result = status == Exit::kDiffers ? "damaged" : "unreadable";
    if (is_json_) {
      json_.begin_object().field("id", std::uint64_t{id}).field("result", result);
      json_.field("error", error.message()).end_object();
      return;
    }
    output_.out << "file " << id << ": " << result << ": " << printable(error.message()) << '\n';
  }

  Exit finish() {
    if (is_json_) json_.end_array().end_object();
    return status_;
  }

 private:
  const Output& output_;
  Json json_;
  bool is_json_;
  Exit status_ = Exit::kGood;
};

}  // namespace

Result<Exit> run_verify(const Options& options, const Output& output) {
  ASSIGN_OR_RETURN(const Images images, open_images(options.directory));
  std::set<std::uint32_t> known;
  Report report(options, output);
  for (const image::Loaded* loaded : images.catalogue.intact()) {
    known.insert(loaded->id());
    auto bytes = verify_file(images.dir.get(), *loaded);
    if (bytes.ok() && loaded->kfd() != nullptr)
      if (auto status = verify_session(images, loaded->session()); !status.ok()) bytes = std::move(status).error();
    if (bytes.ok())
      report.good(*loaded, *bytes);
    else
      report.bad(loaded->id(), bytes.error());
  }
  for (const auto& damage : images.catalogue.damaged()) {
    known.insert(damage.id);
    report.bad(damage.id, damage.error);
  }
  const auto names = strays(images, known);
  if (!names.ok()) report.bad(0, names.error());
  if (names.ok())
    for (const std::string& name : *names)
      report.bad(image::parse_name(name)->id,
                 Error(EINVAL, name + ": belongs to no dump in this directory (left by another one, or of one whose "
                                      "manifest is lost)"));
  return report.finish();
}

}  // namespace kfd_criu
