// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One pair of functions per message: to it and from it. Messages of version 1 are only read.
#include "plugin/image/codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "amdgpu.pb.h"
#include "plugin/image/message_shapes.h"
#include "plugin/image/wire.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;

template <typename Message>
Status parse(std::span<const std::byte> bytes, const WireShape& shape, Message& message) {
  TRY(WireBudget().take(bytes, shape));
  if (bytes.size() > INT_MAX || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error(EINVAL, "invalid image: not a protobuf message");
  return {};
}

// ---- topology ----

void to_message(const topology::Node& node, amdkfd_criu::Node& out) {
  out.set_node_id(node.node_id);
  out.set_gpu_id(node.gpu_id);
  for (const auto& [name, value] : node.properties) {
    auto* property = out.add_properties();
    property->set_name(name);
    property->set_value(value);
  }
  for (const topology::Link& link : node.links) {
    auto* message = out.add_links();
    message->set_to(link.to);
    message->set_type(link.type);
  }
}

topology::Node from_message(const amdkfd_criu::Node& in) {
  topology::Node node;
  node.node_id = in.node_id();
  node.gpu_id = in.gpu_id();
  for (const auto& property : in.properties()) node.properties[property.name()] = property.value();
  for (const auto& link : in.links()) node.links.push_back({link.to(), link.type()});
  return node;
}

// ---- files ----

void to_message(const SharedFile& file, amdkfd_criu::SharedFile& out) {
  out.set_name(file.name);
  out.set_contents(file.contents);
  out.set_mode(file.mode);
  out.set_uid(file.uid);
  out.set_gid(file.gid);
  for (const std::string& link : file.links) out.add_links(link);
}

void to_message(const KfdFile& kfd, amdkfd_criu::Kfd& out) {
  out.set_pid(kfd.pid);
  out.set_open_flags(kfd.open_flags);
  out.set_num_objects(kfd.num_objects);
  for (const kfd::Device& device : kfd.devices) {
    auto* message = out.add_devices();
    message->set_user_gpu_id(device.user_id);
    message->set_actual_gpu_id(device.actual_id);
  }
  out.set_priv_data(kfd.priv_data.data(), kfd.priv_data.size());
  for (const SharedFile& file : kfd.shared_files) to_message(file, *out.add_shared_files());
  out.set_own_mount_namespace(kfd.own_mount_namespace);
  for (const ForeignMemory& memory : kfd.foreign_memories) {
    auto* message = out.add_foreign_memories();
    message->set_inode(memory.inode);
    message->set_alloc_flags(memory.alloc_flags);
  }
}

// Everything but BOs.
KfdFile from_message(const amdkfd_criu::Kfd& in) {
  KfdFile kfd;
  kfd.pid = in.pid();
  kfd.open_flags = in.open_flags();
  kfd.num_objects = in.num_objects();
  for (const auto& device : in.devices()) kfd.devices.push_back({device.user_gpu_id(), device.actual_gpu_id()});
  const auto priv_data = std::as_bytes(std::span(in.priv_data()));
  kfd.priv_data.assign(priv_data.begin(), priv_data.end());
  for (const auto& file : in.shared_files())
    kfd.shared_files.push_back({file.name(),
                                file.contents(),
                                file.mode(),
                                file.uid(),
                                file.gid(),
                                {file.links().begin(), file.links().end()}});
  kfd.own_mount_namespace = in.own_mount_namespace();
  for (const auto& memory : in.foreign_memories())
    kfd.foreign_memories.push_back({memory.inode(), memory.alloc_flags()});
  return kfd;
}

GemMapping from_message(const amdkfd_criu::GemMapping& in) { return {in.addr(), in.size(), in.offset(), in.flags()}; }

template <typename Message, typename Object>
void metadata_from_message(const Message& in, Object& object) {
  object.metadata_flags = in.metadata_flags();
  object.tiling = in.tiling();
  const auto metadata = std::as_bytes(std::span(in.metadata()));
  object.metadata.assign(metadata.begin(), metadata.end());
}

GemObject from_message(const amdkfd_criu::GemObject& in) {
  GemObject object{in.handle(), in.domains(), in.flags(), in.alignment()};
  for (const auto& mapping : in.mappings()) object.mappings.push_back(from_message(mapping));
  metadata_from_message(in, object);
  object.user_addr = in.user_addr();
  object.user_flags = in.user_flags();
  return object;
}

KfdGem from_message(const amdkfd_criu::KfdGem& in) {
  KfdGem object{in.handle(), in.inode(), in.size()};
  for (const auto& mapping : in.mappings()) object.mappings.push_back(from_message(mapping));
  metadata_from_message(in, object);
  return object;
}

// Everything but BOs.
RenderFile from_message(const amdkfd_criu::RenderNode& in) {
  RenderFile render{in.gpu_id(), in.open_flags(), static_cast<Binding>(in.binding()), in.owner_pid()};
  for (const auto& object : in.gem_objects()) render.objects.gem.push_back(from_message(object));
  for (const auto& object : in.kfd_gem_objects()) render.objects.kfd_gem.push_back(from_message(object));
  for (const auto& mapping : in.sparse_mappings()) render.objects.sparse.push_back(from_message(mapping));
  for (const auto& context : in.contexts())
    render.objects.contexts.push_back({context.id(), context.priority(), context.sequence()});
  for (const auto& list : in.bo_lists()) {
    BoList& out = render.objects.bo_lists.emplace_back(BoList{list.handle()});
    for (const auto& entry : list.entries()) out.entries.push_back({entry.handle(), entry.priority()});
  }
  for (const auto& syncobj : in.syncobjs())
    render.objects.syncobjs.push_back({syncobj.handle(), static_cast<SyncobjState>(syncobj.state()), syncobj.point()});
  return render;
}

template <typename Other>
void to_message(const Other& file, amdkfd_criu::OtherKfd& out) {
  out.set_owner_pid(file.owner);
  out.set_open_flags(file.open_flags);
}

void to_message(const GemMapping& mapping, amdkfd_criu::GemMapping& out) {
  out.set_addr(mapping.addr);
  out.set_size(mapping.size);
  out.set_offset(mapping.offset);
  out.set_flags(mapping.flags);
}

template <typename Object, typename Message>
void metadata_to_message(const Object& object, Message& out) {
  out.set_metadata_flags(object.metadata_flags);
  out.set_tiling(object.tiling);
  out.set_metadata(object.metadata.data(), object.metadata.size());
}

void to_message(const GemObject& object, amdkfd_criu::GemObject& out) {
  out.set_handle(object.handle);
  out.set_domains(object.domains);
  out.set_flags(object.flags);
  out.set_alignment(object.alignment);
  for (const GemMapping& mapping : object.mappings) to_message(mapping, *out.add_mappings());
  metadata_to_message(object, out);
  if (object.user_flags == 0) return;
  out.set_user_addr(object.user_addr);
  out.set_user_flags(object.user_flags);
}

void to_message(const KfdGem& object, amdkfd_criu::KfdGem& out) {
  out.set_handle(object.handle);
  out.set_inode(object.inode);
  out.set_size(object.size);
  for (const GemMapping& mapping : object.mappings) to_message(mapping, *out.add_mappings());
  metadata_to_message(object, out);
}

void to_message(const RenderFile& render, amdkfd_criu::RenderNode& out) {
  out.set_gpu_id(render.gpu_id);
  out.set_open_flags(render.open_flags);
  out.set_binding(static_cast<amdkfd_criu::RenderNode::Binding>(render.binding));
  out.set_owner_pid(render.owner);
  for (const GemObject& object : render.objects.gem) to_message(object, *out.add_gem_objects());
  for (const KfdGem& object : render.objects.kfd_gem) to_message(object, *out.add_kfd_gem_objects());
  for (const GemMapping& mapping : render.objects.sparse) to_message(mapping, *out.add_sparse_mappings());
  for (const GpuContext& context : render.objects.contexts) {
    auto* message = out.add_contexts();
    message->set_id(context.id);
    message->set_priority(context.priority);
    message->set_sequence(context.sequence);
  }
  for (const BoList& list : render.objects.bo_lists) {
    auto* message = out.add_bo_lists();
    message->set_handle(list.handle);
    for (const BoListEntry& entry : list.entries) {
      auto* out_entry = message->add_entries();
      out_entry->set_handle(entry.handle);
      out_entry->set_priority(entry.priority);
    }
  }
  for (const Syncobj& syncobj : render.objects.syncobjs) {
    auto* message = out.add_syncobjs();
    message->set_handle(syncobj.handle);
    message->set_state(static_cast<amdkfd_criu::Syncobj::State>(syncobj.state));
    message->set_point(syncobj.point);
  }
}

DmabufFile from_message(const amdkfd_criu::Dmabuf& in) {
  DmabufFile dmabuf{in.inode(), in.size(), in.name(), in.open_flags(), in.read_only(), in.gpu_id()};
  dmabuf.object.domains = in.domains();
  dmabuf.object.flags = in.flags();
  dmabuf.object.alignment = in.alignment();
  dmabuf.alloc_flags = in.alloc_flags();
  metadata_from_message(in, dmabuf.object);
  return dmabuf;
}

void to_message(const DmabufFile& dmabuf, amdkfd_criu::Dmabuf& out) {
  out.set_inode(dmabuf.inode);
  out.set_size(dmabuf.size);
  out.set_name(dmabuf.name);
  out.set_open_flags(dmabuf.open_flags);
  if (dmabuf.read_only) out.set_read_only(true);
  if (dmabuf.gpu_id == 0) return;
  out.set_gpu_id(dmabuf.gpu_id);
  out.set_domains(dmabuf.object.domains);
  out.set_flags(dmabuf.object.flags);
  out.set_alignment(dmabuf.object.alignment);
  if (dmabuf.alloc_flags != 0) out.set_alloc_flags(dmabuf.alloc_flags);
  if (has_metadata(dmabuf.object)) metadata_to_message(dmabuf.object, out);
}

Error unknown_kind() { return {EINVAL, "invalid image: of a kind of device file that this plugin does not know"}; }

Result<DecodedFile> from_message(const amdkfd_criu::File& in) {
  DecodedFile decoded;
  decoded.session_id = in.session_id();
  decoded.file.id = in.id();
  if (in.has_kfd())
    decoded.file.contents = from_message(in.kfd());
  else if (in.has_render_node())
    decoded.file.contents = from_message(in.render_node());
  else if (in.has_second())
    decoded.file.contents = SecondFile{in.second().owner_pid(), in.second().open_flags()};
  else if (in.has_inert())
    decoded.file.contents = InertFile{in.inert().owner_pid(), in.inert().open_flags()};
  else if (in.has_dmabuf())
    decoded.file.contents = from_message(in.dmabuf());
  else if (in.has_sync_file())
    decoded.file.contents = SyncFile{in.sync_file().gpu_id(), in.sync_file().name(), in.sync_file().open_flags()};
  else
    return unknown_kind();
  return decoded;
}

// ---- BOs of version 1 ----

// A program's BO takes no less on average; what a reader makes of it takes twice as much.
constexpr std::size_t kLeastBoBytes = 32;
constexpr std::size_t kFewBos = 1U << 16;

// Counts BOs of a Kfd message and their chunks before anything is allocated.
Status reserve_index_1(std::span<const std::byte> kfd, Index& index) {
  std::size_t bos = 0;
  std::size_t chunks = 0;
  WireReader reader(kfd);
  WireField field;
  while (reader.next(field)) {
    if (field.number != amdkfd_criu::Kfd::kBosFieldNumber || field.type != kWireBytes) continue;
    ++bos;
    WireReader bo_reader(field.payload);
    WireField bo_field;
    while (bo_reader.next(bo_field)) {
      if (bo_field.number != amdkfd_criu::Bo::kChunkOffsetFieldNumber) continue;
      chunks += bo_field.type == kWireBytes ? bo_field.payload.size() / sizeof(std::uint64_t) : 1;
    }
  }
  if (bos > kFewBos + kfd.size() / kLeastBoBytes) return Error(EFBIG, "invalid image: too many BOs for its length");
  index.bos.reserve(bos);
  index.chunks.reserve(chunks);
  return {};
}

// Adds one field to a message, as far as the budget permits.
Status merge_field(const WireField& field, const WireShape& shape, WireBudget& budget,
                   google::protobuf::MessageLite& message) {
  TRY(budget.take(field.whole, shape));
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(field.whole.data()),
                                                static_cast<int>(field.whole.size()));
  if (!message.MergeFromCodedStream(&stream)) return Error(EINVAL, "invalid image: not a protobuf message");
  return {};
}

Status read_bo_1(const amdkfd_criu::Bo& in, Index& index) {
  if (in.chunk_offset_size() != in.chunk_hash_size())
    return Error(EINVAL, "invalid image: a BO's chunk index has offsets and checksums of different number");
  BoRecord record;
  record.bo = {in.addr(), in.size(), in.mmap_offset(), in.gpu_id(), in.alloc_flags()};
  index.bos.push_back(record);
  // A chunk of version 1 is one piece.
  for (int i = 0; i < in.chunk_offset_size(); ++i) {
    const std::uint64_t offset = in.chunk_offset(i);
    index.chunks.push_back({offset, in.chunk_hash(i), offset == 0 ? 0ULL : 1ULL});
  }
  return {};
}

void to_message(const Timing& timing, amdkfd_criu::Timing& out) {
  out.set_paused_us(timing.paused_us);
  out.set_copying_us(timing.copying_us);
  out.set_gpu_us(timing.gpu_us);
  out.set_hashing_us(timing.hashing_us);
  out.set_writing_us(timing.writing_us);
  out.set_copied_bytes(timing.copied_bytes);
  out.set_stored_bytes(timing.stored_bytes);
  out.set_referred_bytes(timing.referred_bytes);
  out.set_equal_bytes(timing.equal_bytes);
  out.set_syncing_us(timing.syncing_us);
}

FileEntry from_message(const amdkfd_criu::SessionFile& in) {
  FileEntry entry{in.id(),
                  static_cast<Kind>(in.kind()),
                  in.metadata_length(),
                  in.metadata_hash(),
                  in.index_length(),
                  in.index_hash(),
                  in.pages_length(),
                  {},
                  in.packed()};
  for (const auto& source : in.sources())
    entry.sources.push_back({source.depth(), source.id(), source.session_id(), source.pages_length()});
  return entry;
}

Timing from_message(const amdkfd_criu::Timing& message) {
  return {message.paused_us(),   message.copying_us(),   message.gpu_us(),       message.hashing_us(),
          message.writing_us(),  message.copied_bytes(), message.stored_bytes(), message.referred_bytes(),
          message.equal_bytes(), message.syncing_us()};
}

// BOs go to `index` one by one.
Result<KfdFile> decode_kfd_1(std::span<const std::byte> bytes, Index& index) {
  TRY(reserve_index_1(bytes, index));
  amdkfd_criu::Kfd message;
  amdkfd_criu::Bo bo;
  WireBudget budget;
  std::span<const std::byte> priv_data;
  WireReader reader(bytes);
  WireField field;
  while (reader.next(field)) {
    if (field.number == amdkfd_criu::Kfd::kBosFieldNumber && field.type == kWireBytes) {
      if (!bo.ParseFromArray(field.payload.data(), static_cast<int>(field.payload.size())))
        return Error(EINVAL, "invalid image: a BO is not a protobuf message");
      TRY(read_bo_1(bo, index));
    } else if (field.number == amdkfd_criu::Kfd::kPrivDataFieldNumber && field.type == kWireBytes) {
      priv_data = field.payload;
    } else {
      TRY(merge_field(field, kKfdShape, budget, message));
    }
  }
  if (reader.malformed()) return Error(EINVAL, "invalid image: not a protobuf message");
  index.chunk_size = message.chunk_size();
  index.piece_size = message.chunk_size();
  KfdFile kfd = from_message(message);
  kfd.priv_data.assign(priv_data.begin(), priv_data.end());
  return kfd;
}

}  // namespace

std::string encode(const Manifest& manifest) {
  amdkfd_criu::Session message;
  message.set_session_id(manifest.session.id);
  message.set_abi(static_cast<amdkfd_criu::Session::Abi>(manifest.session.abi));
  message.set_kernel_release(manifest.session.kernel_release);
  for (const topology::Node& node : manifest.session.nodes) to_message(node, *message.add_nodes());
  for (const FileEntry& file : manifest.files) {
    auto* out = message.add_files();
    out->set_id(file.id);
    out->set_kind(static_cast<amdkfd_criu::SessionFile::Kind>(file.kind));
    out->set_metadata_length(file.metadata_length);
    out->set_metadata_hash(file.metadata_hash);
    out->set_index_length(file.index_length);
    out->set_index_hash(file.index_hash);
    out->set_pages_length(file.pages_length);
    if (file.packed) out->set_packed(true);
    for (const Source& source : file.sources) {
      auto* referred = out->add_sources();
      referred->set_depth(source.depth);
      referred->set_id(source.id);
      referred->set_session_id(source.session_id);
      referred->set_pages_length(source.pages_length);
    }
  }
  for (const Process& process : manifest.session.processes) {
    auto* out = message.add_processes();
    out->set_pid(process.pid);
    out->set_comm(process.comm);
  }
  if (manifest.session.timing) to_message(*manifest.session.timing, *message.mutable_timing());
  return message.SerializeAsString();
}

std::string encode(const File& file, std::uint64_t session_id) {
  amdkfd_criu::File message;
  message.set_session_id(session_id);
  message.set_id(file.id);
  if (const auto* kfd = std::get_if<KfdFile>(&file.contents)) to_message(*kfd, *message.mutable_kfd());
  if (const auto* second = std::get_if<SecondFile>(&file.contents)) to_message(*second, *message.mutable_second());
  if (const auto* inert = std::get_if<InertFile>(&file.contents)) to_message(*inert, *message.mutable_inert());
  if (const auto* render = std::get_if<RenderFile>(&file.contents)) to_message(*render, *message.mutable_render_node());
  if (const auto* dmabuf = std::get_if<DmabufFile>(&file.contents)) to_message(*dmabuf, *message.mutable_dmabuf());
  if (const auto* sync_file = std::get_if<SyncFile>(&file.contents)) {
    message.mutable_sync_file()->set_gpu_id(sync_file->gpu_id);
    message.mutable_sync_file()->set_name(sync_file->name);
    message.mutable_sync_file()->set_open_flags(sync_file->open_flags);
  }
  return message.SerializeAsString();
}

// Takes the messages out of a field, so that their memory is free again when the caller has read them.
template <typename Message>
google::protobuf::RepeatedPtrField<Message> taken(google::protobuf::RepeatedPtrField<Message>* field) {
  return std::move(*field);
}

Result<Manifest> decode_manifest(std::span<const std::byte> bytes) {
  amdkfd_criu::Session message;
  TRY(parse(bytes, kSessionShape, message));
  Manifest manifest;
  manifest.session.id = message.session_id();
  manifest.session.version = Version::k2;
  manifest.session.abi = static_cast<Abi>(message.abi());
  manifest.session.kernel_release = message.kernel_release();
  for (const auto& node : taken(message.mutable_nodes())) manifest.session.nodes.push_back(from_message(node));
  manifest.files.reserve(static_cast<std::size_t>(message.files_size()));
  for (const auto& file : taken(message.mutable_files())) manifest.files.push_back(from_message(file));
  for (const auto& process : taken(message.mutable_processes()))
    manifest.session.processes.push_back({process.pid(), process.comm()});
  if (message.has_timing()) manifest.session.timing = from_message(message.timing());
  return manifest;
}

Result<DecodedFile> decode_file(std::span<const std::byte> bytes) {
  amdkfd_criu::File message;
  TRY(parse(bytes, kFileShape, message));
  return from_message(message);
}

Result<Manifest1> decode_manifest_1(std::span<const std::byte> bytes) {
  amdkfd_criu::Manifest message;
  TRY(parse(bytes, kManifest1Shape, message));
  Manifest1 manifest;
  manifest.session_id = message.session_id();
  manifest.file.id = message.id();
  manifest.file.metadata_length = message.metadata_length();
  manifest.file.metadata_hash = message.metadata_hash();
  manifest.file.pages_length = message.pages_length();
  return manifest;
}

Result<DecodedFile1> decode_file_1(std::span<const std::byte> bytes) {
  amdkfd_criu::File message;
  DecodedFile1 decoded;
  WireBudget budget;
  bool has_kfd = false;
  WireReader reader(bytes);
  WireField field;
  while (reader.next(field)) {
    if (field.number != amdkfd_criu::File::kKfdFieldNumber || field.type != kWireBytes) {
      TRY(merge_field(field, kFileShape, budget, message));
      continue;
    }
    if (has_kfd) return Error(EINVAL, "invalid image: two states of one file");
    has_kfd = true;
    ASSIGN_OR_RETURN(decoded.file.contents, decode_kfd_1(field.payload, decoded.index));
  }
  if (reader.malformed()) return Error(EINVAL, "invalid image: not a protobuf message");
  decoded.session_id = message.session_id();
  for (const auto& node : message.nodes()) decoded.nodes.push_back(from_message(node));
  if (message.has_render_node() && !has_kfd)
    decoded.file.contents = from_message(message.render_node());
  else if (!has_kfd)
    return unknown_kind();
  return decoded;
}

}  // namespace plugin::image
