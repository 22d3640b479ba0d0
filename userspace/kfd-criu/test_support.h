// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For the tests: the program without its process, directories with a dump, and a check that text is JSON.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "kfd-criu/run.h"
#include "plugin/image/test_support.h"

namespace kfd_criu::testing {

struct Outcome {
  Exit status = Exit::kGood;
  std::string out;
  std::string error;
};

inline Outcome run_tool(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream error;
  const Exit status = run(arguments, {.out = out, .error = error});
  return {status, out.str(), error.str()};
}

// Two pieces of contents with a zero one between them, and an odd end.
inline std::vector<std::byte> sparse_contents() {
  namespace image = plugin::image;
  std::vector<std::byte> contents(2 * image::kPieceSize + 300);
  const auto some = image::pattern(300);
  std::copy(some.begin(), some.end(), contents.begin());
  std::copy(some.begin(), some.end(), contents.begin() + 2 * image::kPieceSize);
  return contents;
}

// What is written, which a test changes.
struct Dump {
  std::uint64_t session_id = plugin::image::kSession;
  plugin::image::Session session = plugin::image::test_session();
  plugin::image::KfdFile kfd = plugin::image::test_kfd();
  std::uint32_t first_id = plugin::image::kKfdId;  // of the KFD file; the render node has the next one
  std::vector<std::vector<std::byte>> contents;    // of each BO that stores some
  plugin::image::Packing packing = plugin::image::Packing::kNever;

  Dump() {
    namespace image = plugin::image;
    const auto bytes = sparse_contents();
    kfd.bos = {image::test_bo(bytes.size()), image::test_bo(image::kPageSize, KFD_IOC_ALLOC_MEM_FLAGS_GTT),
               image::test_bo(image::kPageSize, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)};
    kfd.bos[1].bo.addr = 0x100000;
    kfd.bos[1].inode = 0;
    kfd.bos[2].bo.addr = 0x200000;
    kfd.bos[2].inode = 0;
    contents = {bytes, std::vector<std::byte>(image::kPageSize)};
  }

  [[nodiscard]] base::Status write(const std::string& path) const {
    namespace image = plugin::image;
    const base::UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSIGN_OR_RETURN(auto earlier, image::Earlier::read(dir.get()));
    ASSIGN_OR_RETURN(auto writer, image::SessionWriter::create(dir.get(), session_id));
    writer->refer_to(std::move(earlier));
    writer->pack_by(packing);
    auto bytes = contents.begin();
    for (const image::BoRecord& bo : kfd.bos) {
      if (!image::stores_contents(bo) || bytes == contents.end()) continue;
      writer->file(first_id).begin_bo(image::name_of(image::Kind::kKfd, kfd.pid, bo));
      TRY(writer->file(first_id).append(*bytes++));
    }
    TRY(writer->add({first_id, kfd}));
    TRY(writer->add(
        {first_id + 1, image::RenderFile{kfd.devices.at(0).actual_id, O_NONBLOCK, image::Binding::kKfd, kfd.pid}}));
    TRY(writer->prepare(session));
    return writer->commit();
  }
};

inline void write_dump(const std::string& path, const std::function<void(Dump&)>& change = {}) {
  Dump dump;
  if (change) change(dump);
  const auto status = dump.write(path);
  ASSERT_TRUE(status.ok()) << status.error().message();
}

// The rest of `text` behind one JSON value; nothing when there is none.
inline std::optional<std::string_view> after_json(std::string_view text);

inline std::string_view after_space(std::string_view text) {
  const auto at = text.find_first_not_of(" \n");
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

inline std::optional<std::string_view> after_string(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) < 0x20 || static_cast<unsigned char>(text[i]) >= 0x7f) return {};
    if (text[i] == '"') return text.substr(i + 1);
    if (text[i] == '\\') ++i;
  }
  return {};
}

inline std::optional<std::string_view> after_members(std::string_view text, bool keyed, char end) {
  text = after_space(text.substr(1));
  if (text.starts_with(end)) return text.substr(1);
  while (true) {
    if (keyed) {
      if (!text.starts_with('"')) return {};
      const auto key = after_string(text);
      if (!key || !key->starts_with(": ")) return {};
      text = key->substr(2);
    }
    const auto value = after_json(text);
    if (!value) return {};
    text = after_space(*value);
    if (text.starts_with(end)) return text.substr(1);
    if (!text.starts_with(',')) return {};
    text = after_space(text.substr(1));
  }
}

inline std::optional<std::string_view> after_json(std::string_view text) {
  text = after_space(text);
  if (text.empty()) return {};
  if (text[0] == '{') return after_members(text, true, '}');
  if (text[0] == '[') return after_members(text, false, ']');
  if (text[0] == '"') return after_string(text);
  for (const std::string_view word : {"true", "false"})
    if (text.starts_with(word)) return text.substr(word.size());
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits == 0 ? std::nullopt : std::optional(text.substr(digits));
}

inline bool is_json(std::string_view text) {
  const auto rest = after_json(text);
  return rest && after_space(*rest).empty();
}

}  // namespace kfd_criu::testing
