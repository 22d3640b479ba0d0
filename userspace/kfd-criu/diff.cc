// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// `diff`: what of the programs in two dumps is different. What a restore on another machine changes (ids of the driver,
// offsets for mmap, CRIU's numbers of files) is not compared. Chunks with equal checksums are not read; images of
// CRIU's own plugin have no checksums, and are read as a whole.
#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "kfd-criu/json.h"
#include "kfd-criu/names.h"
#include "kfd-criu/run.h"
#include "kfd-criu/sessions.h"

namespace kfd_criu {
namespace {

namespace image = plugin::image;
using base::Error;
using base::Result;

constexpr std::size_t kSlice = 1U << 20;

// Prints differences as they are found.
class Report {
 public:
  Report(const Options& options, const Output& output) : output_(output), json_(output.out), is_json_(options.json) {
    if (is_json_) json_.begin_object().field("magic", "AMDGPU_DIFF").key("entries").begin_array();
  }

  // `left` or `right` is empty when the thing is only on the other side.
  void add(const std::string& where, std::string_view what, const std::string& left, const std::string& right) {
    status_ = Exit::kDiffers;
    if (is_json_) {
      json_.begin_object().field("where", where).field("what", what);
      json_.field("left", left).field("right", right).end_object();
      return;
    }
    output_.out << where << ": " << what << ": " << (left.empty() ? "(none)" : printable(left)) << " | "
                << (right.empty() ? "(none)" : printable(right)) << '\n';
  }

  template <typename T>
  void compare(const std::string& where, std::string_view what, const T& left, const T& right) {
    if (left != right) add(where, what, std::to_string(left), std::to_string(right));
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

// One dump of a directory.
struct Side {
  const Images& images;
  const image::Session& session;
};

// By what a file of one dump is found in the other: its kind, its process, the program's id of its GPU, and the how
// manieth of these it is.
using FileKey = std::tuple<image::Kind, std::uint32_t, std::uint32_t, std::size_t>;

std::map<std::uint32_t, std::uint32_t> user_ids(const std::vector<const image::Loaded*>& files) {
  std::map<std::uint32_t, std::uint32_t> ids;
  for (const image::Loaded* loaded : files)
    if (const image::KfdFile* kfd = loaded->kfd())
      for (const kfd::Device& device : kfd->devices) ids.emplace(device.actual_id, device.user_id);
  return ids;
}

std::map<FileKey, const image::Loaded*> files_of(const Side& side) {
  const auto files = side.images.catalogue.files_of(side.session);
  const auto users = user_ids(files);
  std::map<FileKey, const image::Loaded*> keyed;
  for (const image::Loaded* loaded : files) {
    std::uint32_t gpu = 0;
    if (const auto* render = loaded->render()) {
      const auto user = users.find(render->gpu_id);
      gpu = user == users.end() ? render->gpu_id : user->second;
    }
    FileKey key{loaded->kind(), image::owner_of(loaded->file()), gpu, 0};
    while (keyed.contains(key)) ++std::get<3>(key);
    keyed.emplace(key, loaded);
  }
  return keyed;
}

std::string name_of(const FileKey& key) {
  const auto& [kind, owner, gpu, number] = key;
  std::string name = "process " + std::to_string(owner) + ", " + std::string(kind_text(kind)) + " file";
  if (gpu != 0) name += " of GPU " + std::to_string(gpu);
  if (number != 0) name += " (" + std::to_string(number + 1) + ")";
  return name;
}

// ---- contents -------------------------------------------------------------------------------------------------------

struct Changed {
  std::uint64_t bytes = 0;
  std::uint64_t first = 0;
  std::uint64_t size = 0;
};

void count_changes(std::span<const std::byte> left, std::span<const std::byte> right, std::uint64_t offset,
                   Changed& changed) {
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i]) continue;
    if (changed.bytes++ == 0) changed.first = offset + i;
  }
}

// Both sides cut contents into the same chunks and have checksums: only chunks with other ones are read.
Result<Changed> compare_chunks(const image::Contents& left, std::size_t left_bo, const image::Contents& right,
                               std::size_t right_bo, std::uint64_t size) {
  Changed changed{.size = size};
  const auto left_chunks = left.chunks(left_bo);
  const auto right_chunks = right.chunks(right_bo);
  std::vector<std::byte> left_bytes;
  std::vector<std::byte> right_bytes;
  for (std::size_t i = 0; i < std::min(left_chunks.size(), right_chunks.size()); ++i) {
    if (left_chunks[i].hash == right_chunks[i].hash) continue;
    left_bytes.resize(image::chunk_length(size, left.chunk_size(), i));
    right_bytes.resize(left_bytes.size());
    TRY(left.read_chunk(left_chunks[i], left_bytes));
    TRY(right.read_chunk(right_chunks[i], right_bytes));
    count_changes(left_bytes, right_bytes, i * left.chunk_size(), changed);
  }
  return changed;
}

Result<Changed> compare_bytes(const image::Contents& left, std::size_t left_bo, const image::Contents& right,
                              std::size_t right_bo, std::uint64_t size) {
  Changed changed{.size = size};
  image::BoReader left_reader(left, left_bo);
  image::BoReader right_reader(right, right_bo);
  std::vector<std::byte> left_bytes;
  std::vector<std::byte> right_bytes;
  for (std::uint64_t offset = 0; offset < size; offset += kSlice) {
    left_bytes.resize(std::min<std::uint64_t>(kSlice, size - offset));
    right_bytes.resize(left_bytes.size());
    TRY(left_reader.read(left_bytes));
    TRY(right_reader.read(right_bytes));
    count_changes(left_bytes, right_bytes, offset, changed);
  }
  return changed;
}

// The one of these BOs whose contents are those of a BO that stores none itself.
std::optional<std::size_t> find_contents(std::span<const image::BoRecord> bos, const image::BoRecord& record) {
  for (std::size_t i = 0; i < bos.size(); ++i)
    if (image::stores_contents(bos[i]) && bos[i].inode == record.inode && bos[i].bo.size == record.bo.size) return i;
  return std::nullopt;
}

// Where the contents of a BO are stored. Opens the other file of the dump if they are there.
struct Stored {
  std::optional<image::Contents> opened;
  std::size_t bo = 0;
};

Result<Stored> contents_of(const Side& side, const image::Contents& own, std::size_t bo) {
  const image::BoRecord& record = own.bos()[bo];
  Stored stored{std::nullopt, bo};
  if (record.stored_elsewhere) {
    for (const image::Loaded* loaded : side.images.catalogue.files_of(side.session)) {
      const auto found = find_contents(image::bos_of(loaded->file()), record);
      if (!found) continue;
      ASSIGN_OR_RETURN(stored.opened, image::open_contents(side.images.dir.get(), *loaded));
      stored.bo = *found;
      return stored;
    }
    return Error(EINVAL, side.images.path + ": the contents of shared memory of " + std::to_string(record.bo.size) +
                             " bytes are not stored");
  }
  if (record.shares_contents) stored.bo = find_contents(own.bos(), record).value_or(bo);
  return stored;
}

// ---- BOs ------------------------------------------------------------------------------------------------------------

using BoKey = std::tuple<std::uint32_t, std::uint64_t, std::size_t>;  // GPU, address, how manieth there

std::map<BoKey, std::size_t> bos_of(const image::KfdFile& kfd) {
  std::map<BoKey, std::size_t> bos;
  for (std::size_t i = 0; i < kfd.bos.size(); ++i) {
    BoKey key{kfd.bos[i].bo.user_gpu_id, kfd.bos[i].bo.addr, 0};
    while (bos.contains(key)) ++std::get<2>(key);
    bos.emplace(key, i);
  }
  return bos;
}

std::string bo_text(const image::BoRecord& record) {
  return std::string(bo_kind(record.bo)) + ", " + std::to_string(record.bo.size) + " bytes, flags 0x" +
         hex(record.bo.alloc_flags);
}

class KfdComparison {
 public:
  KfdComparison(Report& report, std::string where, const image::Loaded& left, const image::Loaded& right)
      : report_(report), where_(std::move(where)), left_(left), right_(right) {}

  base::Status run(const Side& left, const Side& right) {
    compare_values();
    sides_ = {&left, &right};
    ASSIGN_OR_RETURN(const image::Contents left_contents, image::open_contents(left.images.dir.get(), left_));
    ASSIGN_OR_RETURN(const image::Contents right_contents, image::open_contents(right.images.dir.get(), right_));
    const auto left_bos = bos_of(*left_.kfd());
    const auto right_bos = bos_of(*right_.kfd());
    for (const auto& [key, index] : left_bos) {
      const auto other = right_bos.find(key);
      if (other == right_bos.end())
        report_.add(where_bo(key), "BO", bo_text(left_.kfd()->bos[index]), "");
      else
        TRY(compare_bo(where_bo(key), index, left_contents, other->second, right_contents));
    }
    for (const auto& [key, index] : right_bos)
      if (!left_bos.contains(key)) report_.add(where_bo(key), "BO", "", bo_text(right_.kfd()->bos[index]));
    return {};
  }

 private:
  [[nodiscard]] std::string where_bo(const BoKey& key) const {
    return where_ + ", BO 0x" + hex(std::get<1>(key)) + " of GPU " + std::to_string(std::get<0>(key));
  }

  void compare_values() {
    const image::KfdFile& left = *left_.kfd();
    const image::KfdFile& right = *right_.kfd();
    std::set<std::uint32_t> gpus;
    for (const kfd::Device& device : left.devices) gpus.insert(device.user_id);
    for (const kfd::Device& device : right.devices)
      if (gpus.erase(device.user_id) == 0) report_.add(where_, "GPU", "", std::to_string(device.user_id));
    for (const std::uint32_t gpu : gpus) report_.add(where_, "GPU", std::to_string(gpu), "");
    report_.compare(where_, "objects", left.num_objects, right.num_objects);
    if (left_.session().abi != right_.session().abi)
      report_.add(where_, "ABI of the kernel state", std::string(abi_text(left_.session().abi)),
                  std::string(abi_text(right_.session().abi)));
    else if (left.priv_data != right.priv_data)
      report_.add(where_, "kernel state", std::to_string(left.priv_data.size()) + " bytes",
                  std::to_string(right.priv_data.size()) + " bytes, not the same");
    compare_shared_files(left, right);
  }

  void compare_shared_files(const image::KfdFile& left, const image::KfdFile& right) {
    std::map<std::string, const image::SharedFile*> others;
    for (const image::SharedFile& file : right.shared_files) others.emplace(file.name, &file);
    for (const image::SharedFile& file : left.shared_files) {
      const auto other = others.find(file.name);
      if (other == others.end()) {
        report_.add(where_, "/dev/shm/" + file.name, std::to_string(file.contents.size()) + " bytes", "");
        continue;
      }
      if (file.contents != other->second->contents)
        report_.add(where_, "/dev/shm/" + file.name, std::to_string(file.contents.size()) + " bytes",
                    std::to_string(other->second->contents.size()) + " bytes, not the same");
      others.erase(other);
    }
    for (const auto& [name, file] : others)
      report_.add(where_, "/dev/shm/" + name, "", std::to_string(file->contents.size()) + " bytes");
  }

  base::Status compare_bo(const std::string& where, std::size_t left_index, const image::Contents& left_contents,
                          std::size_t right_index, const image::Contents& right_contents) {
    const image::BoRecord& left = left_.kfd()->bos[left_index];
    const image::BoRecord& right = right_.kfd()->bos[right_index];
    if (left.bo.size != right.bo.size || left.bo.alloc_flags != right.bo.alloc_flags) {
      report_.add(where, "BO", bo_text(left), bo_text(right));
      return {};
    }
    if (!kfd::has_contents(left.bo)) return {};
    ASSIGN_OR_RETURN(const Stored left_stored, contents_of(*sides_[0], left_contents, left_index));
    ASSIGN_OR_RETURN(const Stored right_stored, contents_of(*sides_[1], right_contents, right_index));
    const image::Contents& from = left_stored.opened ? *left_stored.opened : left_contents;
    const image::Contents& to = right_stored.opened ? *right_stored.opened : right_contents;
    const bool have_checksums = !is_upstream(left_.session()) && !is_upstream(right_.session());
    const bool same_chunks = have_checksums && from.chunk_size() == to.chunk_size();
    ASSIGN_OR_RETURN(const Changed changed, (same_chunks ? compare_chunks : compare_bytes)(
                                                from, left_stored.bo, to, right_stored.bo, left.bo.size));
    if (changed.bytes != 0)
      report_.add(where, "contents", count_text(changed.bytes, "byte") + " of " + std::to_string(changed.size),
                  "first at 0x" + hex(changed.first));
    return {};
  }

  Report& report_;
  std::string where_;
  const image::Loaded& left_;
  const image::Loaded& right_;
  std::array<const Side*, 2> sides_{};
};

// ---- dumps ----------------------------------------------------------------------------------------------------------

Result<const image::Session*> only_session(const Images& images) {
  if (!images.catalogue.damaged().empty()) {
    const auto damaged = images.catalogue.damaged();
    return Error(damaged.front().error).wrap(images.path);
  }
  const auto sessions = images.catalogue.sessions();
  if (sessions.size() != 1)
    return Error(ENOTUNIQ, images.path + ": has files of " + std::to_string(sessions.size()) + " dumps, not of one");
  return sessions.front();
}

void compare_processes(const Side& left, const Side& right, Report& report) {
  std::multimap<std::uint32_t, std::string> others;
  for (const image::Process& process : right.session.processes) others.emplace(process.pid, process.comm);
  for (const image::Process& process : left.session.processes) {
    const auto other = others.find(process.pid);
    const std::string where = "process " + std::to_string(process.pid);
    if (other == others.end()) {
      report.add(where, "process", process.comm.empty() ? "is there" : process.comm, "");
      continue;
    }
    // Version 1 and CRIU's own plugin have no names.
    if (!process.comm.empty() && !other->second.empty() && process.comm != other->second)
      report.add(where, "name", process.comm, other->second);
    others.erase(other);
  }
  for (const auto& [pid, comm] : others)
    report.add("process " + std::to_string(pid), "process", "", comm.empty() ? "is there" : comm);
}

void compare_other(const std::string& where, const image::Loaded& left, const image::Loaded& right, Report& report) {
  const auto* left_render = left.render();
  const auto* right_render = right.render();
  if (left_render != nullptr && right_render != nullptr)
    report.compare(where, "binding to KFD", static_cast<int>(left_render->binding),
                   static_cast<int>(right_render->binding));
  const auto* left_dmabuf = left.dmabuf();
  const auto* right_dmabuf = right.dmabuf();
  if (left_dmabuf != nullptr && right_dmabuf != nullptr) {
    report.compare(where, "size", left_dmabuf->size, right_dmabuf->size);
    if (left_dmabuf->name != right_dmabuf->name)
      report.add(where, "name", printable(left_dmabuf->name), printable(right_dmabuf->name));
  }
  const auto* left_sync_file = left.sync_file();
  const auto* right_sync_file = right.sync_file();
  if (left_sync_file != nullptr && right_sync_file != nullptr && left_sync_file->name != right_sync_file->name)
    report.add(where, "name", printable(left_sync_file->name), printable(right_sync_file->name));
}

base::Status compare(const Side& left, const Side& right, Report& report) {
  compare_processes(left, right, report);
  const auto left_files = files_of(left);
  const auto right_files = files_of(right);
  for (const auto& [key, file] : left_files) {
    const auto other = right_files.find(key);
    const std::string where = name_of(key);
    if (other == right_files.end()) {
      report.add(where, "file", "id " + std::to_string(file->id()), "");
      continue;
    }
    report.compare(where, "open flags", image::open_flags_of(file->file()),
                   image::open_flags_of(other->second->file()));
    if (file->kfd() != nullptr)
      TRY(KfdComparison(report, where, *file, *other->second).run(left, right));
    else
      compare_other(where, *file, *other->second, report);
  }
  for (const auto& [key, file] : right_files)
    if (!left_files.contains(key)) report.add(name_of(key), "file", "", "id " + std::to_string(file->id()));
  return {};
}

}  // namespace

Result<Exit> run_diff(const Options& options, const Output& output) {
  ASSIGN_OR_RETURN(const Images left, open_images(options.directory));
  ASSIGN_OR_RETURN(const Images right, open_images(options.other));
  Report report(options, output);
  const auto compare_both = [&]() -> base::Status {
    ASSIGN_OR_RETURN(const image::Session* left_session, only_session(left));
    ASSIGN_OR_RETURN(const image::Session* right_session, only_session(right));
    return compare({left, *left_session}, {right, *right_session}, report);
  };
  const base::Status status = compare_both();
  const Exit differs = report.finish();
  if (status.ok()) return differs;
  output.error << "kfd-criu: error: " << printable(status.error().message()) << '\n';
  return worse(differs, status_of(status.error()));
}

}  // namespace kfd_criu
