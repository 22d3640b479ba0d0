// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: a dump of version 1 as the last plugin wrote it that wrote this version. File 7 is a /dev/kfd of process
// 42 on GPU 200 with one BO of 1 MiB and 300 bytes, of which the first chunk is zero, and a userptr; file 9 a render
// node.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/temp_dir.h"

namespace plugin::testing {

struct RecordedFile {
  std::string_view name;
  std::string_view hex;
};
inline constexpr std::array<RecordedFile, 4> kVersion1 = {{
    {"amdgpu-7.img",
     "414d444b464443520100000001000000c00000000000000097dce90243875e5ab9df11fdca464a40090b000000000000"
     "00120408001000121c080110c8011a0f0a0a73696d645f636f756e7410f0012204080010021a9001082a100318808040"
     "2205086410c8012a3308802010ac82401880a001206428013210000000000000000000100000000000003a1000000000"
     "00000000cb15b792594c7eb52a11088080808080801c10802018002064280432030102033a300a116873616b6d745f73"
     "68617265645f6d656d120673686172656418b60320002800320c6c696e6b5f72656d61702e354000"},
    {"amdgpu-9.img",
     "414d444b46444352010000000100000031000000000000004a97758cf345029f0d5b29071b033a58090b000000000000"
     "00121c080110c8011a0f0a0a73696d645f636f756e7410f001220408001002220808c8011080101801"},
    {"amdgpu-manifest-7.img",
     "414d444b4644435201000000020000001a00000000000000aaf402168b796305079b9f0675aea3f6090b000000000000"
     "00100718c0012197dce90243875e5a288040"},
    {"amdgpu-manifest-9.img",
     "414d444b46444352010000000200000018000000000000007b3ad4c9929b05e41474394ec30ea10e090b000000000000"
     "0010091831214a97758cf345029f2800"},
}};
// The header of the pages file; its page is filled with zeros, then comes version_1_chunk() and zeros.
inline constexpr std::string_view kVersion1Pages =
    "414d444b46444352010000000300000000100000000000000000000000000000ac9c55273709f79c";
inline constexpr std::size_t kVersion1Chunk = 300;

inline std::string bytes_of_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

inline std::string version_1_chunk() {
  std::string bytes;
  for (std::size_t i = 0; i < kVersion1Chunk; ++i) bytes += static_cast<char>((i * 7 + i / 256) | 1);
  return bytes;
}

inline void write_version_1(const std::string& dir) {
  for (const RecordedFile& file : kVersion1)
    base::write_file(dir + "/" + std::string(file.name), bytes_of_hex(file.hex));
  std::string pages = bytes_of_hex(kVersion1Pages);
  pages.resize(4096);
  pages += version_1_chunk();
  pages.resize(2 * 4096);
  base::write_file(dir + "/amdgpu-pages-7.img", pages);
}

}  // namespace plugin::testing
