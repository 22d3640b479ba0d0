// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads ELF segments and symbols and kernel descriptors, and sets up the initial registers.
#include "gcn/random/code_object.h"

#include <elf.h>

#include <fstream>
#include <iterator>

namespace gcn {
namespace {

// Offsets of fields in a kernel descriptor.
constexpr Address kGroupSegment = 0;
constexpr Address kPrivateSegment = 4;
constexpr Address kEntry = 16;
constexpr Address kRsrc3 = 44;
constexpr Address kRsrc1 = 48;
constexpr Address kRsrc2 = 52;
constexpr Address kProperties = 56;

std::uint32_t bits(std::uint32_t value, unsigned first, unsigned count) {
  return value >> first & ((std::uint32_t{1} << count) - 1);
}

// The buffer descriptor of scratch memory: swizzled, 64 lanes interleaved, the lane's number added.
std::array<std::uint32_t, 4> scratch_descriptor(Address base, std::uint32_t bytes) {
  return {static_cast<std::uint32_t>(base), static_cast<std::uint32_t>(base >> 32) | 1u << 31, bytes,
          3u << 21 | 1u << 23 | 4u << 15};
}

// Hands out scalar registers in order.
class UserRegisters {
 public:
  explicit UserRegisters(Wave& wave) : wave_(wave) {}
  void add(std::uint32_t value) { wave_.scalar[next_++] = value; }
  void add64(std::uint64_t value) {
    add(static_cast<std::uint32_t>(value));
    add(static_cast<std::uint32_t>(value >> 32));
  }

 private:
  Wave& wave_;
  unsigned next_ = 0;
};

std::uint32_t mode_of(std::uint32_t rsrc1) {
  return bits(rsrc1, 12, 8) | bits(rsrc1, 21, 1) << 8 | bits(rsrc1, 23, 1) << 9 | bits(rsrc1, 26, 1) << 23;
}

void prepare_vector_registers(const Kernel& kernel, Wave& wave) {
  const std::uint32_t granules = bits(kernel.rsrc1, 0, 6) + 1;
  if (wave.isa == Isa::kGfx90a) {
    const std::uint32_t vector = (bits(kernel.rsrc3, 0, 6) + 1) * 4;
    wave.vgpr.assign(vector, Vgpr{});
    wave.agpr.assign(granules * 8 > vector ? granules * 8 - vector : 0, Vgpr{});
  } else {
    wave.vgpr.assign(granules * 4, Vgpr{});
    wave.agpr.clear();
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) wave.vgpr[0][lane] = lane;
}

}  // namespace

CodeObject::CodeObject(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  file_.resize(text.size());
  std::memcpy(file_.data(), text.data(), text.size());
}

// Returns zeroes beyond the end.
template <typename T>
T CodeObject::at(std::size_t offset) const {
  T value{};
  if (offset <= file_.size() && sizeof(T) <= file_.size() - offset) {
    std::memcpy(&value, file_.data() + offset, sizeof value);
  }
  return value;
}

void CodeObject::load(FlatMemory& memory, Address base) {
  base_ = base;
  const auto header = at<Elf64_Ehdr>(0);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    const Address to = base - memory.base() + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || segment.p_offset + segment.p_filesz > file_.size() ||
        to + segment.p_filesz > memory.bytes().size()) {
      continue;
    }
    std::memcpy(&memory.bytes()[to], &file_[segment.p_offset], segment.p_filesz);
  }
}

std::optional<std::uint64_t> CodeObject::symbol(std::string_view name) const {
  const auto header = at<Elf64_Ehdr>(0);
  const auto section = [&](std::size_t n) { return at<Elf64_Shdr>(header.e_shoff + n * sizeof(Elf64_Shdr)); };
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr strings = section(symbols.sh_link);
    for (std::size_t n = 0; n < symbols.sh_size / sizeof(Elf64_Sym); ++n) {
      const auto entry = at<Elf64_Sym>(symbols.sh_offset + n * sizeof(Elf64_Sym));
      const std::size_t text = strings.sh_offset + entry.st_name;
      if (text + name.size() >= file_.size()) continue;
      if (std::memcmp(&file_[text], name.data(), name.size()) == 0 && file_[text + name.size()] == std::byte{0}) {
        return entry.st_value;
      }
    }
  }
  return std::nullopt;
}

std::optional<Kernel> CodeObject::find(const FlatMemory& memory, std::string_view name) const {
  const std::optional<std::uint64_t> offset = symbol(std::string(name) + ".kd");
  if (!offset) return std::nullopt;
  const Address descriptor = base_ + *offset;
  const auto word = [&](Address at) { return memory.get<std::uint32_t>(descriptor + at); };
  return Kernel{.entry = descriptor + memory.get<std::uint64_t>(descriptor + kEntry),
                .lds_bytes = word(kGroupSegment),
                .scratch_bytes = word(kPrivateSegment),
                .rsrc1 = word(kRsrc1),
                .rsrc2 = word(kRsrc2),
                .rsrc3 = word(kRsrc3),
                .properties = word(kProperties) & 0xffff};
}

void prepare(const Kernel& kernel, const Launch& launch, Wave& wave) {
  constexpr std::uint32_t kScratchBytes = 0x7fffffff;  // no limit: FlatMemory refuses what is beyond its end
  wave.pc = kernel.entry;
  wave.scalar = {};
  wave.set_exec(~std::uint64_t{0});
  wave.mode = mode_of(kernel.rsrc1);
  wave.sgprs = operand::kSgprs;
  prepare_vector_registers(kernel, wave);
  const auto asks = [&](unsigned bit) { return bits(kernel.properties, bit, 1) != 0; };
  UserRegisters user(wave);
  if (asks(0)) {
    for (const std::uint32_t word : scratch_descriptor(launch.scratch, kScratchBytes)) user.add(word);
  }
  if (asks(1)) user.add64(0);  // dispatch packet
  if (asks(2)) user.add64(0);  // queue
  if (asks(3)) user.add64(launch.arguments);
  if (asks(4)) user.add64(0);  // dispatch number
  if (asks(5)) user.add64(launch.scratch);
  if (asks(6)) user.add(kernel.scratch_bytes);
  for (unsigned bit = 7; bit <= 9; ++bit) {
    if (bits(kernel.rsrc2, bit, 1) != 0) user.add(0);  // work-group number: x, y, z
  }
  if (bits(kernel.rsrc2, 10, 1) != 0) user.add(0);  // about the work-group
  if (bits(kernel.rsrc2, 0, 1) != 0) user.add(launch.wave_offset);
}

}  // namespace gcn
