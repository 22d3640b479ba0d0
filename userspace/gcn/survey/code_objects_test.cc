// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of code_objects.h on a code object that the test makes, whole, damaged and among other bytes.
#include "gcn/survey/code_objects.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace gcn::survey {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kGfx906 = 0x2f, kGfx90a = 0x3f, kGfx1030 = 0x36;
constexpr std::uint64_t kCodeAddress = 0x1000;
constexpr std::size_t kCodeSize = 24;

template <typename T>
std::size_t append(Bytes& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(&bytes[at], &value, sizeof(T));
  return at;
}

Elf64_Shdr section(unsigned type, std::size_t offset, std::size_t size, unsigned link = 0, std::uint64_t address = 0) {
  Elf64_Shdr result{};
  result.sh_type = type;
  result.sh_offset = offset;
  result.sh_size = size;
  result.sh_link = link;
  result.sh_addr = address;
  return result;
}

Elf64_Sym function(unsigned name, std::uint64_t address, std::size_t size) {
  Elf64_Sym result{};
  result.st_name = name;
  result.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  result.st_shndx = 1;
  result.st_value = address;
  result.st_size = size;
  return result;
}

// Sections: none, code, symbols, names. The functions `a` and `bc` share the code.
Bytes code_object(std::uint32_t mach) {
  Bytes file;
  Elf64_Ehdr head{};
  append(file, head);
  const std::size_t code = file.size();
  for (std::uint8_t i = 0; i < kCodeSize; ++i) file.push_back(std::byte{i});
  const std::size_t names = file.size();
  for (const char letter : {'\0', 'a', '\0', 'b', 'c', '\0'}) file.push_back(static_cast<std::byte>(letter));
  const std::size_t symbols = append(file, Elf64_Sym{});
  append(file, function(1, kCodeAddress, 8));
  append(file, function(3, kCodeAddress + 8, kCodeSize - 8));
  const std::size_t sections = append(file, Elf64_Shdr{});
  append(file, section(SHT_PROGBITS, code, kCodeSize, 0, kCodeAddress));
  append(file, section(SHT_SYMTAB, symbols, sections - symbols, 3));
  append(file, section(SHT_STRTAB, names, symbols - names));
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_OSABI] = 64;
  head.e_machine = 224;
  head.e_flags = mach | 0x500;  // and features
  head.e_shoff = sections;
  head.e_shnum = 4;
  head.e_shentsize = sizeof(Elf64_Shdr);
  std::memcpy(file.data(), &head, sizeof(head));
  return file;
}

TEST(CodeObjects, have_functions_with_their_code) {
  const Bytes file = code_object(kGfx906);
  const auto objects = find_code_objects(file);
  ASSERT_EQ(objects.size(), 1U);
  EXPECT_EQ(objects[0].isa, Isa::kGfx906);
  ASSERT_EQ(objects[0].functions.size(), 2U);
  EXPECT_EQ(objects[0].functions[0].name, "a");
  EXPECT_EQ(objects[0].functions[1].name, "bc");
  EXPECT_EQ(objects[0].functions[1].code.size(), kCodeSize - 8);
  EXPECT_EQ(objects[0].functions[1].code.front(), std::byte{8});
}

TEST(CodeObjects, are_found_among_other_bytes_and_other_chips) {
  Bytes file(100, std::byte{0x7f});
  for (const std::uint32_t mach : {kGfx906, kGfx1030, kGfx90a}) {
    const Bytes object = code_object(mach);
    file.insert(file.end(), object.begin(), object.end());
    file.insert(file.end(), 33, std::byte{'E'});
  }
  const auto objects = find_code_objects(file);
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[1].isa, Isa::kGfx90a);
}

TEST(CodeObjects, that_are_cut_off_are_passed_over) {
  const Bytes file = code_object(kGfx906);
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_TRUE(find_code_objects(std::span(file).first(size)).empty()) << size;
}

TEST(CodeObjects, with_any_byte_changed_have_no_code_outside_the_file) {
  std::mt19937 random(3);
  const Bytes whole = code_object(kGfx906);
  for (unsigned turn = 0; turn < 20000; ++turn) {
    Bytes file = whole;
    for (unsigned changes = 0; changes < 3; ++changes) file[random() % file.size()] = static_cast<std::byte>(random());
    for (const CodeObject& object : find_code_objects(file)) {
      for (const Function& each : object.functions) {
        ASSERT_GE(each.code.data(), file.data());
        ASSERT_LE(each.code.data() + each.code.size(), file.data() + file.size());
      }
    }
  }
}

}  // namespace
}  // namespace gcn::survey
