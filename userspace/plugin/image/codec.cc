// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One pair of functions per message: to it and from it.
#include "plugin/image/codec.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "amdgpu.pb.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;

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

void to_message(const BoRecord& record, amdkfd_criu::Bo& out) {
  out.set_addr(record.bo.addr);
  out.set_size(record.bo.size);
  out.set_mmap_offset(record.bo.mmap_offset);
  out.set_gpu_id(record.bo.user_gpu_id);
  out.set_alloc_flags(record.bo.alloc_flags);
  for (const Chunk& chunk : record.chunks) {
    out.add_chunk_offset(chunk.offset);
    out.add_chunk_hash(chunk.hash);
  }
}

Result<BoRecord> from_message(const amdkfd_criu::Bo& in) {
  if (in.chunk_offset_size() != in.chunk_hash_size())
    return Error(EINVAL, "invalid image: a BO's chunk index has offsets and checksums of different number");
  BoRecord record;
  record.bo = {in.addr(), in.size(), in.mmap_offset(), in.gpu_id(), in.alloc_flags()};
  for (int i = 0; i < in.chunk_offset_size(); ++i) record.chunks.push_back({in.chunk_offset(i), in.chunk_hash(i)});
  return record;
}

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
  out.set_num_objects(kfd.num_objects);
  out.set_chunk_size(kfd.chunk_size);
  for (const kfd::Device& device : kfd.devices) {
    auto* message = out.add_devices();
    message->set_user_gpu_id(device.user_id);
    message->set_actual_gpu_id(device.actual_id);
  }
  for (const BoRecord& record : kfd.bos) to_message(record, *out.add_bos());
  out.set_priv_data(kfd.priv_data.data(), kfd.priv_data.size());
  for (const SharedFile& file : kfd.shared_files) to_message(file, *out.add_shared_files());
  out.set_own_mount_namespace(kfd.own_mount_namespace);
}

Result<KfdFile> from_message(const amdkfd_criu::Kfd& in) {
  KfdFile kfd;
  kfd.pid = in.pid();
  kfd.num_objects = in.num_objects();
  kfd.chunk_size = in.chunk_size();
  for (const auto& device : in.devices()) kfd.devices.push_back({device.user_gpu_id(), device.actual_gpu_id()});
  for (const auto& bo : in.bos()) {
    ASSIGN_OR_RETURN(BoRecord record, from_message(bo));
    kfd.bos.push_back(std::move(record));
  }
  kfd.priv_data.resize(in.priv_data().size());
  std::transform(in.priv_data().begin(), in.priv_data().end(), kfd.priv_data.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  for (const auto& file : in.shared_files())
    kfd.shared_files.push_back({file.name(),
                                file.contents(),
                                file.mode(),
                                file.uid(),
                                file.gid(),
                                {file.links().begin(), file.links().end()}});
  kfd.own_mount_namespace = in.own_mount_namespace();
  return kfd;
}

Result<RenderFile> from_message(const amdkfd_criu::RenderNode& in) {
  RenderFile render;
  render.gpu_id = in.gpu_id();
  render.open_flags = in.open_flags();
  render.binding = static_cast<Binding>(in.binding());
  return render;
}

template <typename Message>
bool parse(std::span<const std::byte> bytes, Message& message) {
  if (bytes.size() > INT_MAX) return false;
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::string encode(const File& file) {
  amdkfd_criu::File message;
  message.set_session_id(file.session_id);
  for (const topology::Node& node : file.nodes) to_message(node, *message.add_nodes());
  if (const auto* kfd = std::get_if<KfdFile>(&file.kind)) {
    to_message(*kfd, *message.mutable_kfd());
  } else if (const auto* render = std::get_if<RenderFile>(&file.kind)) {
    auto* out = message.mutable_render_node();
    out->set_gpu_id(render->gpu_id);
    out->set_open_flags(render->open_flags);
    out->set_binding(static_cast<amdkfd_criu::RenderNode::Binding>(render->binding));
  }
  return message.SerializeAsString();
}

std::string encode(const Manifest& manifest) {
  amdkfd_criu::Manifest message;
  message.set_session_id(manifest.session_id);
  message.set_id(manifest.id);
  message.set_metadata_length(manifest.metadata_length);
  message.set_metadata_hash(manifest.metadata_hash);
  message.set_pages_length(manifest.pages_length);
  return message.SerializeAsString();
}

Result<File> decode_file(std::span<const std::byte> bytes) {
  amdkfd_criu::File message;
  if (!parse(bytes, message)) return Error(EINVAL, "invalid image: not a protobuf message");
  File file;
  file.session_id = message.session_id();
  for (const auto& node : message.nodes()) file.nodes.push_back(from_message(node));
  if (message.has_kfd()) {
    ASSIGN_OR_RETURN(file.kind, from_message(message.kfd()));
  } else if (message.has_render_node()) {
    ASSIGN_OR_RETURN(file.kind, from_message(message.render_node()));
  } else {
    return Error(EINVAL, "invalid image: of a kind of device file that this plugin does not know");
  }
  return file;
}

Result<Manifest> decode_manifest(std::span<const std::byte> bytes) {
  amdkfd_criu::Manifest message;
  if (!parse(bytes, message)) return Error(EINVAL, "invalid image: not a protobuf message");
  return Manifest{message.session_id(), message.id(), message.metadata_length(), message.metadata_hash(),
                  message.pages_length()};
}

}  // namespace plugin::image
