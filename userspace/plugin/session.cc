// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Wiring: the only place that knows the real parts.
#include "plugin/session.h"

#include <sys/random.h>

#include <cerrno>
#include <utility>

#include "base/os.h"
#include "plugin/copy/copier.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;

// What tells the files of this dump from older ones in the same directory.
Result<std::uint64_t> new_session_id() {
  std::uint64_t id = 0;
  if (os::getrandom(&id, sizeof(id), 0) != static_cast<ssize_t>(sizeof(id)))
    return Error::from_errno(errno, "getrandom");
  return id;
}

Result<std::unique_ptr<copy::Copier>> make_copier(int render_fd, const Options& options) {
  return copy::make_copier(render_fd, options.copy, options.fence_timeout);
}

}  // namespace

Session::Session(Criu& criu, Result<Options> options)
    : system_(Roots{}), services_{criu, system_, kfd_, make_copier, options.ok() ? *options : Options{}} {
  if (!options.ok()) services_.options_status = std::move(options).error();
}

Result<std::unique_ptr<Session>> Session::create(Mode mode, Criu& criu, Result<Options> options) {
  ASSIGN_OR_RETURN(const std::uint64_t id, new_session_id());
  std::unique_ptr<Session> session(new Session(criu, std::move(options)));
  if (mode == Mode::kDump)
    session->dump_.emplace(session->services_, id);
  else if (mode == Mode::kRestore)
    session->restore_.emplace(session->services_);
  return session;
}

}  // namespace plugin
