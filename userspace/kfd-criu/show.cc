// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// `show`: dumps, processes, GPUs, files, and how large contents are. Reads no contents.
#include <array>
#include <cerrno>
#include <map>
#include <optional>

#include "kfd-criu/json.h"
#include "kfd-criu/names.h"
#include "kfd-criu/run.h"
#include "kfd-criu/sessions.h"
#include "plugin/topology/snapshot.h"

namespace kfd_criu {
namespace {

namespace image = plugin::image;
namespace topology = plugin::topology;
using base::Error;
using base::Result;

// A KFD file with its index; without one when its pages file is missing or damaged.
struct Opened {
  const image::Loaded* loaded;
  std::optional<image::Contents> contents;
  std::optional<Error> error;
};

Opened open_file(const Images& images, const image::Loaded* loaded) {
  Opened opened{loaded, {}, {}};
  if (loaded->kfd() == nullptr) return opened;
  auto contents = image::open_contents(images.dir.get(), *loaded);
  if (contents.ok())
    opened.contents.emplace(std::move(contents).value());
  else
    opened.error.emplace(std::move(contents).error());
  return opened;
}

Totals totals_of_bo(const Opened& opened, std::size_t bo) {
  return opened.contents ? totals_of(*opened.loaded, *opened.contents, bo) : Totals{.bos = 1};
}

std::string contents_text(const Totals& totals) {
  return size_text(totals.size) + ": " + size_text(totals.stored) + " stored, " +
         (totals.referred == 0 ? "" : size_text(totals.referred) + " in earlier dumps, ") +
         (totals.saved == 0 ? "" : size_text(totals.saved) + " saved by compression, ") + size_text(totals.zero()) +
         " zero";
}

// ---- for people ---------------------------------------------------------------------------------------------------

void print_gpu(const image::Session& session, const kfd::Device& device, std::ostream& out) {
  out << "    GPU " << device.actual_id;
  if (device.user_id != device.actual_id) out << ", " << device.user_id << " for the program";
  if (const topology::Node* node = topology::find_gpu(session.nodes, device.actual_id))
    out << ": " << gfx_name(*node) << ", renderD" << node->render_minor() << ", VRAM "
        << size_text(node->property(topology::kVramSize));
  out << '\n';
}

void print_bos(const Opened& opened, bool each, std::ostream& out) {
  const auto& bos = opened.loaded->kfd()->bos;
  std::map<std::string_view, Totals> kinds;
  std::map<std::string_view, std::uint64_t> sizes;
  for (std::size_t i = 0; i < bos.size(); ++i) {
    const kfd::Bo& bo = bos[i].bo;
    const Totals totals = totals_of_bo(opened, i);
    kinds[bo_kind(bo)] += totals;
    sizes[bo_kind(bo)] += bo.size;
    if (!each) continue;
    out << "      0x" << hex(bo.addr) << " " << bo_kind(bo) << " of GPU " << bo.user_gpu_id << ", "
        << size_text(bo.size);
    if (bos[i].shares_contents) out << ", memory of another BO";
    if (bos[i].stored_elsewhere) out << ", memory of another process or of a render node";
    if (image::stores_contents(bos[i])) out << ": " << size_text(totals.stored) << " stored";
    if (totals.referred != 0) out << ", " << size_text(totals.referred) << " in earlier dumps";
    out << '\n';
  }
  for (const auto& [kind, totals] : kinds) {
    out << "    " << kind << ": " << count_text(totals.bos, "BO") << ", ";
    out << (totals.size != 0 ? contents_text(totals) : size_text(sizes[kind])) << '\n';
  }
}

void print_kfd(const Opened& opened, const Options& options, std::ostream& out) {
  const image::Loaded& loaded = *opened.loaded;
  const image::KfdFile& kfd = *loaded.kfd();
  out << "  file " << loaded.id() << ": /dev/kfd of process " << kfd.pid << '\n';
  for (const kfd::Device& device : kfd.devices) print_gpu(loaded.session(), device, out);
  print_bos(opened, options.every_bo, out);
  out << "    kernel state: " << size_text(kfd.priv_data.size());
  if (kfd.num_objects != 0) out << ", " << count_text(kfd.num_objects, "object");
  out << '\n';
  for (const image::SharedFile& file : kfd.shared_files)
    out << "    /dev/shm/" << file.name << ": " << size_text(file.contents.size()) << ", "
        << count_text(file.links.size(), "link") << " of CRIU"
        << (kfd.own_mount_namespace ? ", in a mount namespace of its own" : "") << '\n';
  if (opened.error) out << "    contents: " << printable(opened.error->message()) << '\n';
}

std::string owner_text(std::uint32_t owner) {
  return owner == 0 ? "a process outside of the dump" : "process " + std::to_string(owner);
}

struct ObjectCount {
  std::size_t count = 0;
  std::string_view text;
  std::string_view key;
};

std::array<ObjectCount, 4> counts_of(const image::RenderObjects& objects) {
  return {{{objects.gem.size(), "GEM objects", "gem_objects"},
           {objects.contexts.size(), "contexts", "contexts"},
           {objects.bo_lists.size(), "BO lists", "bo_lists"},
           {objects.syncobjs.size(), "synchronization objects", "syncobjs"}}};
}

void print_other(const image::Loaded& loaded, std::ostream& out) {
  out << "  file " << loaded.id() << ": ";
  if (const auto* second = loaded.second()) out << "another open /dev/kfd of " << owner_text(second->owner);
  if (const auto* inert = loaded.inert()) out << "/dev/kfd inherited from " << owner_text(inert->owner);
  if (const auto* render = loaded.render()) {
    const topology::Node* node = topology::find_gpu(loaded.session().nodes, render->gpu_id);
    out << "render node of GPU " << render->gpu_id;
    if (node != nullptr) out << " (renderD" << node->render_minor() << ")";
    if (render->binding == image::Binding::kKfd) out << ", whose memory map is that of KFD";
    if (render->binding == image::Binding::kOther) out << ", independent of KFD";
    if (render->owner != 0) out << ", " << owner_text(render->owner);
    for (const ObjectCount& each : counts_of(render->objects))
      if (each.count != 0) out << ", " << each.count << ' ' << each.text;
  }
  if (const auto* dmabuf = loaded.dmabuf()) {
    out << "DMA-buf of " << dmabuf->size << " bytes, memory " << dmabuf->inode;
    if (!dmabuf->name.empty()) out << ", called '" << printable(dmabuf->name) << "'";
  }
  if (const auto* sync_file = loaded.sync_file())
    out << "sync file of finished work, called '" << printable(sync_file->name) << "'";
  out << '\n';
}

std::string_view limit_text(image::Limit limit) {
  constexpr std::array<std::string_view, 4> kTexts = {"nothing", "gpus", "files", "checksums"};
  return kTexts.at(static_cast<std::size_t>(limit));
}

std::string ms_text(std::uint64_t us) { return std::to_string(us / 1000) + " ms"; }

void print_timing(const image::Session& session, std::ostream& out) {
  if (!session.timing) {
    out << "  timing: not in this image\n";
    return;
  }
  const image::Timing& timing = *session.timing;
  out << "  timing: GPU queues paused for " << ms_text(timing.paused_us)
      << " until GPU memory and state were on the disk\n"
      << "    copying: " << ms_text(timing.copying_us) << " for " << size_text(timing.copied_bytes);
  if (timing.copying_us != 0) out << ", " << (timing.copied_bytes >> 20) * 1'000'000 / timing.copying_us << " MiB/s";
  out << "; " << size_text(timing.stored_bytes) << " stored";
  if (timing.equal_bytes != 0) out << ", " << size_text(timing.equal_bytes) << " equal to what is stored";
  if (timing.referred_bytes != 0) out << ", " << size_text(timing.referred_bytes) << " as in earlier dumps";
  out << '\n'
      << "    waiting for GPUs: " << ms_text(timing.gpu_us)
      << "; in all threads, checksums and compression: " << ms_text(timing.hashing_us)
      << ", writing: " << ms_text(timing.writing_us) << "; files synced in " << ms_text(timing.syncing_us) << '\n'
      << "    limited by: " << limit_text(image::limit_of(timing)) << '\n';
}

void print_sources(const image::Loaded& loaded, std::ostream& out) {
  for (const image::Source& source : loaded.entry().sources)
    if (source.depth == 0)
      out << "    has equal contents in " << image::source_name(source) << '\n';
    else
      out << "    needs " << image::source_name(source) << " of session " << hex16(source.session_id) << '\n';
}

Totals print_session(const Images& images, const image::Session& session, const Options& options, std::ostream& out,
                     Exit& status) {
  out << session_text(session) << ": " << format_text(session) << ", " << abi_text(session.abi) << " ABI";
  if (!session.kernel_release.empty()) out << ", Linux " << printable(session.kernel_release);
  out << '\n';
  for (const image::Process& process : session.processes) {
    out << "  process " << process.pid;
    if (!process.comm.empty()) out << " (" << printable(process.comm) << ")";
    out << '\n';
  }
  if (options.timing) print_timing(session, out);
  Totals total;
  for (const image::Loaded* loaded : images.catalogue.files_of(session)) {
    if (loaded->kfd() == nullptr) {
      print_other(*loaded, out);
      print_sources(*loaded, out);
      continue;
    }
    const Opened opened = open_file(images, loaded);
    print_kfd(opened, options, out);
    print_sources(*loaded, out);
    if (opened.error) status = worse(status, status_of(*opened.error));
    for (std::size_t i = 0; i < loaded->kfd()->bos.size(); ++i) total += totals_of_bo(opened, i);
  }
  return total;
}

void print(const Images& images, const Options& options, std::ostream& out, Exit& status) {
  for (const image::Session* session : images.catalogue.sessions()) {
    const Totals total = print_session(images, *session, options, out, status);
    out << "  contents of " << count_text(total.bos, "BO") << ": " << contents_text(total) << '\n';
  }
  for (const auto& damage : images.catalogue.damaged())
    out << "file " << damage.id << ": cannot be used: " << printable(damage.error.message()) << '\n';
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

void write_nodes(const std::vector<topology::Node>& nodes, Json& json) {
  json.key("nodes").begin_array();
  for (const topology::Node& node : nodes) {
    json.begin_object().field("node_id", std::uint64_t{node.node_id}).field("gpu_id", std::uint64_t{node.gpu_id});
    if (node.gpu_id != 0) json.field("gfx", gfx_name(node));
    json.key("properties").begin_object();
    for (const auto& [name, value] : node.properties) json.field(name, value);
    json.end_object().key("links").begin_array();
    for (const topology::Link& link : node.links)
      json.begin_object().field("to", std::uint64_t{link.to}).field("type", std::uint64_t{link.type}).end_object();
    json.end_array().end_object();
  }
  json.end_array();
}

void write_timing(const image::Timing& timing, Json& json) {
  json.key("timing").begin_object().field("paused_us", timing.paused_us).field("copying_us", timing.copying_us);
  json.field("gpu_us", timing.gpu_us).field("hashing_us", timing.hashing_us).field("writing_us", timing.writing_us);
  json.field("syncing_us", timing.syncing_us);
  json.field("copied_bytes", timing.copied_bytes).field("stored_bytes", timing.stored_bytes);
  json.field("referred_bytes", timing.referred_bytes).field("equal_bytes", timing.equal_bytes);
  json.field("limit", limit_text(image::limit_of(timing))).end_object();
}

void write_totals(const Totals& totals, Json& json) {
  json.field("size", totals.size).field("stored", totals.stored).field("zero", totals.zero());
  json.field("referred", totals.referred).field("saved", totals.saved);
}

void write_bos(const Opened& opened, Json& json) {
  const auto& bos = opened.loaded->kfd()->bos;
  Totals total;
  json.key("bos").begin_array();
  for (std::size_t i = 0; i < bos.size(); ++i) {
    const image::BoRecord& record = bos[i];
    const Totals totals = totals_of_bo(opened, i);
    total += totals;
    json.begin_object().hex_field("addr", record.bo.addr).field("bytes", record.bo.size);
    json.field("kind", bo_kind(record.bo)).field("gpu_id", std::uint64_t{record.bo.user_gpu_id});
    json.hex_field("alloc_flags", record.bo.alloc_flags).hex_field("mmap_offset", record.bo.mmap_offset);
    json.field("handle", std::uint64_t{record.handle}).field("inode", record.inode);
    json.field("shares_contents", record.shares_contents).field("imported", record.imported);
    json.field("stored_elsewhere", record.stored_elsewhere);
    if (image::stores_contents(record)) {
      json.key("contents").begin_object();
      write_totals(totals, json);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array().key("contents").begin_object();
  write_totals(total, json);
  json.end_object();
}

void write_kfd(const Opened& opened, Json& json) {
  const image::KfdFile& kfd = *opened.loaded->kfd();
  json.field("pid", std::uint64_t{kfd.pid}).field("num_objects", std::uint64_t{kfd.num_objects});
  json.field("priv_data_bytes", std::uint64_t{kfd.priv_data.size()});
  json.field("own_mount_namespace", kfd.own_mount_namespace).key("devices").begin_array();
  for (const kfd::Device& device : kfd.devices)
    json.begin_object()
        .field("user_gpu_id", std::uint64_t{device.user_id})
        .field("actual_gpu_id", std::uint64_t{device.actual_id})
        .end_object();
  json.end_array().key("shared_files").begin_array();
  for (const image::SharedFile& file : kfd.shared_files) {
    json.begin_object().field("name", file.name).field("bytes", std::uint64_t{file.contents.size()});
    json.field("mode", std::uint64_t{file.mode}).field("uid", std::uint64_t{file.uid});
    json.field("gid", std::uint64_t{file.gid}).key("links").begin_array();
    for (const std::string& link : file.links) json.value(link);
    json.end_array().end_object();
  }
  json.end_array();
  if (opened.error) json.field("error", opened.error->message());
  write_bos(opened, json);
}

void write_file(const Images& images, const image::Loaded* loaded, Json& json, Exit& status) {
  json.begin_object().field("id", std::uint64_t{loaded->id()}).field("kind", kind_text(loaded->kind()));
  json.hex_field("open_flags", image::open_flags_of(loaded->file()));
  json.key("sources").begin_array();
  for (const image::Source& source : loaded->entry().sources)
    json.begin_object()
        .field("path", image::source_name(source))
        .hex_field("session_id", source.session_id)
        .end_object();
  json.end_array();
  if (loaded->kfd() != nullptr) {
    const Opened opened = open_file(images, loaded);
    write_kfd(opened, json);
    if (opened.error) status = worse(status, status_of(*opened.error));
  } else {
    json.field("owner", std::uint64_t{image::owner_of(loaded->file())});
  }
  if (const auto* dmabuf = loaded->dmabuf()) {
    json.field("inode", dmabuf->inode).field("size", dmabuf->size).field("name", dmabuf->name);
  }
  if (const auto* sync_file = loaded->sync_file())
    json.field("gpu_id", std::uint64_t{sync_file->gpu_id}).field("name", sync_file->name);
  if (const auto* render = loaded->render()) {
    constexpr std::array<std::string_view, 3> kBindings = {"unknown", "kfd", "other"};
    json.field("gpu_id", std::uint64_t{render->gpu_id});
    json.field("binding", kBindings.at(static_cast<std::size_t>(render->binding)));
    for (const ObjectCount& each : counts_of(render->objects))
      if (each.count != 0) json.field(each.key, std::uint64_t{each.count});
  }
  json.end_object();
}

void write(const Images& images, Json& json, Exit& status) {
  json.begin_object().field("magic", "AMDGPU_SESSION").key("entries").begin_array();
  for (const image::Session* session : images.catalogue.sessions()) {
    json.begin_object().hex_field("session_id", session->id);
    if (is_upstream(*session))
      json.field("format", "upstream");
    else
      json.field("format", std::uint64_t{static_cast<std::uint32_t>(session->version)});
    json.field("abi", abi_text(session->abi)).field("kernel_release", session->kernel_release);
    json.key("processes").begin_array();
    for (const image::Process& process : session->processes)
      json.begin_object().field("pid", std::uint64_t{process.pid}).field("comm", process.comm).end_object();
    json.end_array();
    write_nodes(session->nodes, json);
    if (session->timing) write_timing(*session->timing, json);
    json.key("files").begin_array();
    for (const image::Loaded* loaded : images.catalogue.files_of(*session)) write_file(images, loaded, json, status);
    json.end_array().end_object();
  }
  for (const auto& damage : images.catalogue.damaged())
    json.begin_object().field("id", std::uint64_t{damage.id}).field("error", damage.error.message()).end_object();
  json.end_array().end_object();
}

}  // namespace

Result<Exit> run_show(const Options& options, const Output& output) {
  ASSIGN_OR_RETURN(const Images images, open_images(options.directory));
  Exit status = Exit::kGood;
  for (const auto& damage : images.catalogue.damaged()) status = worse(status, status_of(damage.error));
  if (options.json) {
    Json json(output.out);
    write(images, json, status);
  } else {
    print(images, options, output.out, status);
  }
  return status;
}

}  // namespace kfd_criu
