// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How a dump begins its image, and to which earlier dump it refers.
#include <cerrno>
#include <utility>

#include "plugin/criu_options.h"
#include "plugin/dump.h"

namespace plugin {

using base::Status;

Status Dump::read_earlier() {
  ASSIGN_OR_RETURN(const auto arguments, services_.criu.arguments());
  // A link that another dump has left must not make this one depend on a directory that nobody has named.
  if (!criu_options::may_have_parent(arguments)) return {};
  auto earlier = image::Earlier::read(services_.criu.image_dir());
  if (!earlier.ok() && earlier.error().code() == ELOOP) return std::move(earlier).error();
  if (earlier.ok())
    earlier_ = std::move(*earlier);
  else
    services_.criu.warn("all contents are stored in this dump, as if there were no dump before it: " +
                        earlier.error().message());
  return {};
}

// Not before everything that can be refused was: it removes older images from the directory.
Status Dump::start_image() {
  ASSIGN_OR_RETURN(writer_, image::SessionWriter::create(services_.criu.image_dir(), session_id_));
  writer_->pack_by(services_.options.compress);
  if (earlier_ == nullptr) return {};
  services_.criu.inform("contents that are those of the dump before this one are not stored again");
  writer_->refer_to(std::move(earlier_));
  return {};
}

}  // namespace plugin
