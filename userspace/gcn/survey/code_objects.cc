// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every offset and size in a file may be wrong: what is not inside the file is not there.
#include "gcn/survey/code_objects.h"

#include <elf.h>

#include <cstring>
#include <optional>

namespace gcn::survey {
namespace {

constexpr unsigned kAmdGpu = 224;      // EM_AMDGPU
constexpr unsigned char kHsa = 64;     // ELFOSABI_AMDGPU_HSA
constexpr std::uint32_t kMach = 0xff;  // EF_AMDGPU_MACH
constexpr std::size_t kMostSymbols = 1U << 24;

using Bytes = std::span<const std::byte>;

std::optional<Isa> isa_of(std::uint32_t flags) {
  switch (flags & kMach) {  // EF_AMDGPU_MACH_AMDGCN_GFX*
    case 0x2c:
      return Isa::kGfx900;
    case 0x2f:
      return Isa::kGfx906;
    case 0x30:
      return Isa::kGfx908;
    case 0x3f:
      return Isa::kGfx90a;
    default:
      return std::nullopt;
  }
}

std::optional<Bytes> part(Bytes file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return std::nullopt;
  return file.subspan(offset, size);
}

template <typename T>
std::optional<T> get(Bytes file, std::uint64_t offset) {
  const auto bytes = part(file, offset, sizeof(T));
  if (!bytes) return std::nullopt;
  T value;
  std::memcpy(&value, bytes->data(), sizeof(T));
  return value;
}

std::string_view text_at(Bytes strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(strings.data() + offset);
  return {begin, ::strnlen(begin, strings.size() - offset)};
}

class Elf {
 public:
  // Nothing, unless `file` begins with a code object for such a chip.
  static std::optional<Elf> read(Bytes file) {
    const auto head = get<Elf64_Ehdr>(file, 0);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
        head->e_ident[EI_OSABI] != kHsa || head->e_machine != kAmdGpu || head->e_shentsize != sizeof(Elf64_Shdr))
      return std::nullopt;
    const auto isa = isa_of(head->e_flags);
    if (!isa) return std::nullopt;
    Elf elf(file, *isa);
    for (unsigned i = 0; i < head->e_shnum; ++i) {
      const auto section = get<Elf64_Shdr>(file, head->e_shoff + i * std::uint64_t{sizeof(Elf64_Shdr)});
      if (!section) return std::nullopt;
      elf.sections_.push_back(*section);
    }
    return elf;
  }

  [[nodiscard]] CodeObject code_object() const {
    CodeObject object{.isa = isa_, .functions = {}};
    for (const Elf64_Shdr& section : sections_) {
      // Both tables have the kernels; the first one also has functions that nobody else sees.
      if (section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && !has(SHT_SYMTAB)))
        add_functions(section, object.functions);
    }
    return object;
  }

 private:
  Elf(Bytes file, Isa isa) : file_(file), isa_(isa) {}

  [[nodiscard]] bool has(unsigned type) const {
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == type) return true;
    return false;
  }

  void add_functions(const Elf64_Shdr& table, std::vector<Function>& functions) const {
    if (table.sh_link >= sections_.size()) return;
    const Elf64_Shdr& names = sections_[table.sh_link];
    const Bytes strings = part(file_, names.sh_offset, names.sh_size).value_or(Bytes());
    for (std::uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym) && i < kMostSymbols; ++i) {
      const auto symbol = get<Elf64_Sym>(file_, table.sh_offset + i * sizeof(Elf64_Sym));
      if (!symbol) return;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx >= sections_.size()) continue;
      const Elf64_Shdr& section = sections_[symbol->st_shndx];
      if (section.sh_type != SHT_PROGBITS || symbol->st_value < section.sh_addr) continue;
      const auto code = part(file_, section.sh_offset + (symbol->st_value - section.sh_addr), symbol->st_size);
      if (code && !code->empty()) functions.push_back({text_at(strings, symbol->st_name), *code});
    }
  }

  Bytes file_;
  Isa isa_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace

std::vector<CodeObject> find_code_objects(Bytes file) {
  std::vector<CodeObject> objects;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::string_view magic(ELFMAG, SELFMAG);
  for (std::size_t at = text.find(magic); at != std::string_view::npos; at = text.find(magic, at + 1)) {
    const auto elf = Elf::read(file.subspan(at));
    if (elf) objects.push_back(elf->code_object());
  }
  return objects;
}

}  // namespace gcn::survey
