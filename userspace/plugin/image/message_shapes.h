// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the messages of amdgpu.proto may cost: for each message the kind of each field, by its number, how many of them
// one file may have, and how long one may be. codec.cc checks a file against this before protobuf sees it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "amdgpu.pb.h"
#include "plugin/image/format.h"
#include "plugin/image/wire.h"

namespace plugin::image {

inline constexpr std::uint32_t kMaxProperties = 1U << 15;
inline constexpr std::uint32_t kMaxTopologyLinks = 1U << 15;
inline constexpr std::uint32_t kMaxFiles = 1U << 16;
inline constexpr std::uint32_t kMaxProcesses = 1U << 14;
inline constexpr std::uint32_t kMaxSharedFiles = 8;

inline constexpr WireRule kScalar{kWireVarint};
inline constexpr WireRule kFixed{kWireFixed64};
inline constexpr WireRule bytes_field(std::uint32_t most, std::size_t longest) { return {kWireBytes, most, longest}; }
inline constexpr WireRule message_field(const WireShape& shape, std::uint32_t most) {
  return {kWireBytes, most, kMaxMetadata, &shape};
}

inline constexpr std::array kPropertyRules = {bytes_field(kMaxProperties, kMaxText), kScalar};
inline constexpr WireShape kPropertyShape{kPropertyRules};
inline constexpr std::array kLinkRules = {kScalar, kScalar};
inline constexpr WireShape kLinkShape{kLinkRules};
inline constexpr std::array kNodeRules = {kScalar, kScalar, message_field(kPropertyShape, kMaxProperties),
                                          message_field(kLinkShape, kMaxTopologyLinks)};
inline constexpr WireShape kNodeShape{kNodeRules};
inline constexpr std::array kDeviceRules = {kScalar, kScalar};
inline constexpr WireShape kDeviceShape{kDeviceRules};
inline constexpr std::array kSharedFileRules = {bytes_field(kMaxSharedFiles, kMaxText),
                                                bytes_field(kMaxSharedFiles, kMaxSharedFile),
                                                kScalar,
                                                kScalar,
                                                kScalar,
                                                bytes_field(kMaxSharedFiles* kMaxLinks, kMaxText)};
inline constexpr WireShape kSharedFileShape{kSharedFileRules};
inline constexpr std::array kForeignMemoryRules = {kFixed, kScalar};
inline constexpr WireShape kForeignMemoryShape{kForeignMemoryRules};
// In version 1 decode_kfd_1() takes BOs and priv_data before protobuf sees them.
inline constexpr std::array kKfdRules = {kScalar,
                                         kScalar,
                                         kScalar,
                                         message_field(kDeviceShape, kMaxDevices),
                                         bytes_field(0, 0),
                                         bytes_field(1, kMaxMetadata),
                                         message_field(kSharedFileShape, kMaxSharedFiles),
                                         kScalar,
                                         kScalar,
                                         message_field(kForeignMemoryShape, kMaxForeignMemories)};
inline constexpr WireShape kKfdShape{kKfdRules};
inline constexpr std::array kOtherKfdRules = {kScalar, kScalar};
inline constexpr WireShape kOtherKfdShape{kOtherKfdRules};
inline constexpr std::array kGemMappingRules = {kScalar, kScalar, kScalar, kScalar};
inline constexpr WireShape kGemMappingShape{kGemMappingRules};
inline constexpr std::array kGemObjectRules = {kScalar,
                                               kScalar,
                                               kScalar,
                                               kScalar,
                                               message_field(kGemMappingShape, kMaxGemMappings),
                                               kScalar,
                                               kScalar,
                                               bytes_field(kMaxGemObjects, kMaxGemMetadata),
                                               kScalar,
                                               kScalar};
inline constexpr WireShape kGemObjectShape{kGemObjectRules};
inline constexpr std::array kKfdGemRules = {kScalar,
                                            kFixed,
                                            kScalar,
                                            message_field(kGemMappingShape, kMaxGemMappings),
                                            kScalar,
                                            kScalar,
                                            bytes_field(kMaxGemObjects, kMaxGemMetadata)};
inline constexpr WireShape kKfdGemShape{kKfdGemRules};
inline constexpr std::array kGpuContextRules = {kScalar, kScalar, kScalar};
inline constexpr WireShape kGpuContextShape{kGpuContextRules};
inline constexpr std::array kBoListEntryRules = {kScalar, kScalar};
inline constexpr WireShape kBoListEntryShape{kBoListEntryRules};
inline constexpr std::array kBoListRules = {kScalar, message_field(kBoListEntryShape, kMaxBoListEntries)};
inline constexpr WireShape kBoListShape{kBoListRules};
inline constexpr std::array kSyncobjRules = {kScalar, kScalar, kScalar};
inline constexpr WireShape kSyncobjShape{kSyncobjRules};
inline constexpr std::array kRenderNodeRules = {kScalar,
                                                kScalar,
                                                kScalar,
                                                kScalar,
                                                message_field(kGemObjectShape, kMaxGemObjects),
                                                message_field(kGpuContextShape, kMaxContext),
                                                message_field(kBoListShape, kMaxBoLists),
                                                message_field(kSyncobjShape, kMaxSyncobjs),
                                                message_field(kGemMappingShape, kMaxGemMappings),
                                                message_field(kKfdGemShape, kMaxGemObjects)};
inline constexpr WireShape kRenderNodeShape{kRenderNodeRules};
inline constexpr std::array kDmabufRules = {
    kFixed,  kScalar, bytes_field(1, kMaxDmabufName), kScalar, kScalar, kScalar, kScalar, kScalar, kScalar, kScalar,
    kScalar, kScalar, bytes_field(1, kMaxGemMetadata)};
inline constexpr WireShape kDmabufShape{kDmabufRules};
inline constexpr std::array kFirstFileRules = {kFixed,
                                               message_field(kNodeShape, kMaxNodes),
                                               message_field(kKfdShape, 1),
                                               message_field(kRenderNodeShape, 1),
                                               message_field(kOtherKfdShape, 1),
                                               message_field(kOtherKfdShape, 1),
                                               kScalar};
inline constexpr std::array kSyncFileRules = {kScalar, bytes_field(1, kMaxSyncFileName), kScalar};
inline constexpr WireShape kSyncFileShape{kSyncFileRules};
inline constexpr std::size_t kDmabufNumber = amdkfd_criu::File::kDmabufFieldNumber;
inline constexpr std::size_t kSyncFileNumber = amdkfd_criu::File::kSyncFileFieldNumber;
// The numbers between them are of no field.
inline constexpr auto kFileRules = [] {
  std::array<WireRule, kSyncFileNumber> rules{};
  std::copy(kFirstFileRules.begin(), kFirstFileRules.end(), rules.begin());
  rules[kDmabufNumber - 1] = message_field(kDmabufShape, 1);
  rules[kSyncFileNumber - 1] = message_field(kSyncFileShape, 1);
  return rules;
}();
inline constexpr WireShape kFileShape{kFileRules};
inline constexpr std::array kManifest1Rules = {kFixed, kScalar, kScalar, kFixed, kScalar};
inline constexpr WireShape kManifest1Shape{kManifest1Rules};
inline constexpr std::array kSourceRules = {kScalar, kScalar, kFixed, kScalar};
inline constexpr WireShape kSourceShape{kSourceRules};
inline constexpr std::array kSessionFileRules = {
    kScalar, kScalar, kScalar, kFixed, kScalar, kFixed, kScalar, message_field(kSourceShape, kMaxSources), kScalar};
inline constexpr WireShape kSessionFileShape{kSessionFileRules};
inline constexpr std::array kProcessRules = {kScalar, bytes_field(kMaxProcesses, kMaxText)};
inline constexpr WireShape kProcessShape{kProcessRules};
inline constexpr std::array kTimingRules = {kScalar, kScalar, kScalar, kScalar, kScalar,
                                            kScalar, kScalar, kScalar, kScalar};
inline constexpr WireShape kTimingShape{kTimingRules};
inline constexpr std::array kSessionRules = {kFixed,
                                             kScalar,
                                             bytes_field(1, kMaxText),
                                             message_field(kNodeShape, kMaxNodes),
                                             message_field(kSessionFileShape, kMaxFiles),
                                             message_field(kProcessShape, kMaxProcesses),
                                             message_field(kTimingShape, 1)};
inline constexpr WireShape kSessionShape{kSessionRules};

}  // namespace plugin::image
