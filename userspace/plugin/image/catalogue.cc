// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/catalogue.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "plugin/image/directory.h"
#include "plugin/image/upstream.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;

std::vector<std::uint32_t> ids_of(const std::vector<std::pair<Name, std::string>>& names, NameKind kind) {
  std::vector<std::uint32_t> ids;
  for (const auto& [name, spelled] : names)
    if (name.kind == kind) ids.push_back(name.id);
  return ids;
}

bool contains(const std::vector<std::uint32_t>& ids, std::uint32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Adds to a dump of version 1 what one of its files says.
void merge(const Session& from, Session& into) {
  for (const topology::Node& node : from.nodes)
    if (std::none_of(into.nodes.begin(), into.nodes.end(),
                     [&node](const topology::Node& other) { return other.node_id == node.node_id; }))
      into.nodes.push_back(node);
  for (const Process& process : from.processes)
    if (std::find(into.processes.begin(), into.processes.end(), process) == into.processes.end())
      into.processes.push_back(process);
}

}  // namespace

Result<Catalogue> Catalogue::read(int dir_fd) {
  ASSIGN_OR_RETURN(const auto names, list_names(dir_fd));
  const auto manifests_1 = ids_of(names, NameKind::kManifest1);
  auto metadata = ids_of(names, NameKind::kMetadata);
  std::erase_if(metadata, [&manifests_1](std::uint32_t id) { return contains(manifests_1, id); });
  Catalogue catalogue;
  catalogue.read_version_2(dir_fd, metadata);
  catalogue.read_version_1(dir_fd, manifests_1);
  catalogue.refuse_second_states();
  // An older image must not stand in for a damaged file of ours.
  if (catalogue.sessions_.empty() && catalogue.files_.empty()) TRY(catalogue.read_upstream(dir_fd));
  return catalogue;
}

// `metadata` are the ids of files that version 1 does not claim.
void Catalogue::read_version_2(int dir_fd, const std::vector<std::uint32_t>& metadata) {
  auto manifest = load_manifest(dir_fd);
  if (!manifest.ok()) {
    for (const std::uint32_t id : metadata) files_.emplace(id, Error(manifest.error()));
    return;
  }
  if (*manifest) {
    const auto session = std::make_shared<const Session>(std::move((*manifest)->session));
    for (const FileEntry& entry : (*manifest)->files) files_.emplace(entry.id, load_file(dir_fd, session, entry));
    sessions_.push_back(session);
  }
  const std::string why =
      *manifest ? ": is not part of the dump of " + std::string(kManifestName) + ": it is left over from another one"
                : ": there is no " + std::string(kManifestName) + ": the dump did not complete, dump again";
  for (const std::uint32_t id : metadata)
    if (!files_.contains(id)) files_.emplace(id, Error(EINVAL, metadata_name(id) + why));
}

// A restore knows the state of a process by its pid.
void Catalogue::refuse_second_states() {
  std::map<std::pair<const Session*, std::uint32_t>, unsigned> states;
  for (const auto& [id, file] : files_)
    if (file.ok() && file->kfd() != nullptr) ++states[{&file->session(), file->kfd()->pid}];
  for (auto& [id, file] : files_) {
    if (!file.ok() || file->kfd() == nullptr || states[{&file->session(), file->kfd()->pid}] == 1) continue;
    file = Error(EINVAL, metadata_name(id) + ": invalid: the dump has the state of process " +
                             std::to_string(file->kfd()->pid) + " twice");
  }
}

void Catalogue::read_version_1(int dir_fd, const std::vector<std::uint32_t>& manifests) {
  std::vector<std::pair<std::uint32_t, Result<Loaded>>> files;
  std::map<std::uint64_t, std::shared_ptr<Session>> sessions;
  for (const std::uint32_t id : manifests) {
    files.emplace_back(id, load_file_1(dir_fd, id));
    if (!files.back().second.ok()) continue;
    const Session& own = files.back().second->session();
    auto& session = sessions[own.id];
    if (session == nullptr)
      session = std::make_shared<Session>(own);
    else
      merge(own, *session);
  }
  for (auto& [id, loaded] : files) {
    if (loaded.ok()) loaded = std::move(*loaded).in_session(sessions[loaded->session().id]);
    files_.emplace(id, std::move(loaded));
  }
  for (auto& [id, session] : sessions) sessions_.push_back(std::move(session));
}

Status Catalogue::read_upstream(int dir_fd) {
  ASSIGN_OR_RETURN(auto files, upstream::read(dir_fd));
  for (auto& [id, loaded] : files) {
    if (loaded.ok() && std::none_of(sessions_.begin(), sessions_.end(),
                                    [own = &loaded->session()](const auto& session) { return session.get() == own; }))
      sessions_.push_back(loaded->shared_session());
    files_.emplace(id, std::move(loaded));
  }
  return {};
}

Result<const Loaded*> Catalogue::find(std::uint32_t id) const {
  const auto [begin, end] = files_.equal_range(id);
  if (begin == end) return static_cast<const Loaded*>(nullptr);
  const auto good = std::find_if(begin, end, [](const auto& file) { return file.second.ok(); });
  if (good == end) return Error(begin->second.error());
  return &good->second.value();
}

std::vector<const Session*> Catalogue::sessions() const {
  std::vector<const Session*> found;
  for (const auto& session : sessions_)
    if (!files_of(*session).empty()) found.push_back(session.get());
  return found;
}

std::vector<const Loaded*> Catalogue::intact() const {
  std::vector<const Loaded*> found;
  for (const auto& [id, loaded] : files_)
    if (loaded.ok()) found.push_back(&loaded.value());
  return found;
}

std::vector<const Loaded*> Catalogue::files_of(const Session& session) const {
  auto found = intact();
  std::erase_if(found, [&session](const Loaded* loaded) { return &loaded->session() != &session; });
  return found;
}

std::vector<Catalogue::Damage> Catalogue::damaged() const {
  std::vector<Damage> found;
  for (const auto& [id, loaded] : files_)
    if (!loaded.ok()) found.push_back({id, Error(loaded.error())});
  return found;
}

}  // namespace plugin::image
