// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: images as CRIU's own amdgpu plugin writes them, MADE here from the documented layout, field by field, in
// each variant that its versions have. Nothing here was recorded; recorded/ has what was.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "kfd/kfd.h"

namespace plugin::image::testing {

// Which version's fields an image has.
enum class Age {
  k3_17,     // 3.17 to 4.2
  kCriuDev,  // since the end of 2025: GEM handles of BOs, GEM objects of render nodes
};

// A protobuf message, written by hand so that the test does not trust the code that it tests.
class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    varint(field << 3U);
    varint(value);
    return *this;
  }
  Message& bytes(unsigned field, const std::string& value) {
    varint((field << 3U) | 2U);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(unsigned field, const Message& value) { return bytes(field, value.text_); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) text_ += static_cast<char>((value & 0x7f) | 0x80);
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

inline std::string with_length(const std::string& payload) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((payload.size() >> (8 * i)) & 0xff);
  return length + payload;
}

struct MadeBo {
  kfd::Bo bo;
  std::string contents;  // as long as the BO when its flags say VRAM or GTT
};

// A process; change what a test is about, then take its files.
struct MadeDump {
  Age age = Age::k3_17;
  std::uint32_t pid = 42;
  std::vector<std::uint32_t> gpus = {100};
  std::vector<MadeBo> bos;
  std::string priv_data = "state";
  std::uint64_t shared_size = 8;
  // What the counts say less what is there.
  int missing_gpus = 0;
  int missing_cpus = 0;
  int missing_bos = 0;
  std::uint32_t invisible_gpus = 0;  // nodes without any number that is not zero

  static Message node(std::uint32_t node_id, std::uint32_t gpu_id, std::uint32_t cores, std::uint32_t link_to) {
    Message m;
    const bool gpu = gpu_id != 0;
    m.number(1, node_id).number(2, gpu_id).number(3, cores).number(4, gpu ? 240 : 0).number(5, gpu ? 1 : 0);
    m.number(6, gpu ? 101 : 0).number(7, gpu ? 1 : 0).number(8, gpu ? 10 : 0).number(9, gpu ? 64 : 0).number(10, 0);
    m.number(11, gpu ? 64 : 0).number(12, gpu ? 64 : 0).number(13, gpu ? 4 : 0).number(14, gpu ? 1 : 0);
    m.number(15, gpu ? 16 : 0).number(16, gpu ? 4 : 0).number(17, gpu ? 32 : 0).number(18, gpu ? 0x1002 : 0);
    m.number(19, gpu ? 0x66a1 : 0).number(20, 0).number(21, gpu ? 127 + node_id : 0).number(22, 0);
    m.number(23, gpu ? 2 : 0).number(24, 0).number(25, gpu ? 8 : 0).number(26, gpu ? 24 : 0);
    m.number(27, gpu ? 440 : 0).number(28, gpu ? 1 : 0).number(29, gpu ? 145 : 0).number(30, gpu ? 1 : 0);
    m.number(31, gpu ? 1U << 30U : 0);
    if (cores != 0 || gpu) m.message(32, Message().number(1, 2).number(2, link_to));
    return m;
  }

  [[nodiscard]] Message bo_entry(const kfd::Bo& bo) const {
    Message m;
    m.number(1, bo.addr).number(2, bo.size).number(3, bo.mmap_offset).number(4, bo.alloc_flags);
    m.number(5, bo.user_gpu_id);
    if (age == Age::kCriuDev) m.number(6, 0xffffffffU);
    return m;
  }

  [[nodiscard]] Message kfd() const {
    Message m;
    m.number(1, pid).number(2, gpus.size() + static_cast<std::uint64_t>(missing_gpus));
    m.number(3, 1 + invisible_gpus + static_cast<std::uint64_t>(missing_cpus));
    // Nodes come in the order of a directory listing, not by id.
    std::uint32_t node_id = static_cast<std::uint32_t>(gpus.size());
    for (auto gpu = gpus.rbegin(); gpu != gpus.rend(); ++gpu) m.message(4, node(node_id--, *gpu, 0, 0));
    m.message(4, node(0, 0, 2, 1));
    for (std::uint32_t i = 0; i < invisible_gpus; ++i) m.message(4, node(0, 0, 0, 0));
    m.number(5, bos.size() + static_cast<std::uint64_t>(missing_bos));
    for (const MadeBo& made : bos) m.message(6, bo_entry(made.bo));
    m.number(7, 3).number(8, shared_size).number(9, 0x54415348).bytes(10, priv_data);
    return m;
  }

  static bool has_contents(const kfd::Bo& bo) {
    return (bo.alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)) != 0;
  }

  // By name: every file that the plugin would have written for device file `id`.
  [[nodiscard]] std::map<std::string, std::string> files(std::uint32_t id) const {
    std::map<std::string, std::string> files;
    files["amdgpu-kfd-" + std::to_string(id) + ".img"] = with_length(kfd().text());
    for (const std::uint32_t gpu : gpus) {
      std::string contents;
      for (const MadeBo& made : bos)
        if (made.bo.user_gpu_id == gpu && has_contents(made.bo)) contents += made.contents;
      char hex[16];
      (void)std::snprintf(hex, sizeof(hex), "%04x", gpu);
      files["amdgpu-pages-" + std::to_string(id) + "-" + hex + ".img"] = with_length(contents);
    }
    return files;
  }

  static std::string render(Age age, std::uint32_t gpu, std::uint32_t objects = 0) {
    Message m;
    m.number(1, gpu);
    if (age == Age::kCriuDev) {
      m.number(2, 30).number(3, 128).number(4, objects);
      for (std::uint32_t i = 0; i < objects; ++i) m.message(5, Message().number(1, 4096).number(2, i + 1));
    }
    return with_length(m.text());
  }
};

}  // namespace plugin::image::testing
