// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfd-criu/sessions.h"

#include <fcntl.h>

#include <cerrno>

#include "kfd-criu/names.h"
#include "plugin/image/directory.h"

namespace kfd_criu {

namespace image = plugin::image;
using base::Error;
using base::Result;

Result<Images> open_images(const std::string& path) {
  base::UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Error::from_errno(errno, path);
  auto catalogue = image::Catalogue::read(dir.get());
  if (!catalogue.ok()) return std::move(catalogue).error().wrap(path);
  ASSIGN_OR_RETURN(const auto names, image::list_names(dir.get()));
  const bool has_files = !catalogue->intact().empty() || !catalogue->damaged().empty();
  if (names.empty() && !has_files)
    return Error(ENOENT, path + ": has no image of the plugin (is it CRIU's image directory?)");
  return Images{path, std::move(dir), std::move(catalogue).value()};
}

Totals& Totals::operator+=(const Totals& other) {
  bos += other.bos;
  size += other.size;
  stored += other.stored;
  referred += other.referred;
  saved += other.saved;
  return *this;
}

Totals totals_of(const image::Loaded& loaded, const image::Contents& contents, std::size_t bo) {
  const image::BoRecord& record = contents.bos()[bo];
  if (!image::stores_contents(record)) return {.bos = 1};
  Totals totals{.bos = 1, .size = record.bo.size};
  std::uint64_t index = 0;
  for (const image::Chunk& chunk : contents.chunks(bo)) {
    const std::uint64_t length = image::chunk_length(record.bo.size, contents.chunk_size(), index++);
    const std::uint64_t stored = image::stored_length(chunk, length, loaded.index().piece_size);
    (image::refers_to_earlier(loaded.entry(), chunk) ? totals.referred : totals.stored) += stored;
    totals.saved += image::pieces_length(chunk, length, loaded.index().piece_size) - stored;
  }
  return totals;
}

std::string_view kind_text(image::Kind kind) {
  switch (kind) {
    case image::Kind::kKfd:
      return "kfd";
    case image::Kind::kSecond:
      return "second";
    case image::Kind::kInert:
      return "inert";
    case image::Kind::kDmabuf:
      return "dmabuf";
    case image::Kind::kSyncFile:
      return "sync_file";
    case image::Kind::kRender:
      break;
  }
  return "render";
}

std::string_view abi_text(image::Abi abi) { return abi == image::Abi::kExtensible ? "extensible" : "released"; }

std::string format_text(const image::Session& session) {
  if (is_upstream(session)) return "format of CRIU's own plugin";
  return "format " + std::to_string(static_cast<std::uint32_t>(session.version));
}

bool is_upstream(const image::Session& session) { return session.version == image::Version::kUpstream; }

std::string session_text(const image::Session& session) { return "session " + hex16(session.id); }

}  // namespace kfd_criu
