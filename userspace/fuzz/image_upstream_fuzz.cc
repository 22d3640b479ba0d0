// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Messages of CRIU's own amdgpu plugin: what is accepted has only possible sizes, and contents that lie one behind the
// other in the pages file of a known GPU.
#include <map>
#include <span>

#include "fuzz/input.h"
#include "plugin/image/format.h"
#include "plugin/image/upstream_format.h"

namespace {

using fuzz::check;
namespace upstream = plugin::image::upstream;

void check_kfd(std::span<const std::byte> bytes) {
  const auto kfd = upstream::decode_kfd(bytes);
  if (!kfd.ok()) {
    check(!kfd.error().message().empty(), "a refusal has a reason");
    return;
  }
  check(kfd->pid != 0 && !kfd->priv_data.empty(), "there is a process with state");
  check(kfd->contents.size() == kfd->gpu_ids.size() && !kfd->gpu_ids.empty(), "there is a GPU");
  check(kfd->nodes.size() <= upstream::kMaxDevices && kfd->bos.size() <= upstream::kMaxBos, "counts are within limits");
  check(kfd->shared_memory_size <= upstream::kMaxSharedMemory, "the shared file is small");
  std::map<std::uint32_t, std::uint64_t> end;
  for (const upstream::Bo& bo : kfd->bos) {
    check(bo.bo.size != 0 && bo.bo.size % plugin::image::kPageSize == 0, "a BO has whole pages");
    check(bo.bo.addr + bo.bo.size >= bo.bo.addr, "a BO ends behind its beginning");
    check(kfd->contents.contains(bo.bo.user_gpu_id), "a BO is of a known GPU");
    check((bo.pages_offset != 0) == kfd::has_contents(bo.bo), "VRAM and GTT have contents, others have none");
    if (bo.pages_offset == 0) continue;
    std::uint64_t& at = end[bo.bo.user_gpu_id];
    check(bo.pages_offset == upstream::kLengthSize + at, "contents lie one behind the other");
    at += bo.bo.size;
  }
  for (const auto& [gpu_id, length] : kfd->contents) check(end[gpu_id] == length, "a pages file has all contents");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 4) {
    case 0:
    case 1:
      check_kfd(bytes);
      break;
    case 2:
      if (const auto render = upstream::decode_render(bytes); render.ok())
        check(render->gpu_id != 0 && render->objects <= upstream::kMaxBos, "a render node has a GPU");
      break;
    default:
      check(plugin::image::upstream::shared_memory_files(bytes).memory_mode <= 0777, "permissions only");
  }
  return 0;
}
