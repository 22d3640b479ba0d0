// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A program that uses HIP's virtual memory management: two memories in one reserved range of addresses, one of them
// mapped at two places, and its exported DMA-buf stays open.
//   field_hip_vmm --dir FOLDER [--undisturbed]
// After the checkpoint the GPU reads what it wrote before, what it writes through one mapping it reads through the
// other, the DMA-buf is imported and mapped, and new memory is created. The result is a checksum of what was read.
// Needs HIP 5.7 or later. The files in FOLDER are those of kfdtest-criu/demo/message_files.h.
#include <unistd.h>

#include <array>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "fieldtest/hip_library.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/harness/pattern.h"

namespace fieldtest {
namespace {

using base::Error;
using base::Result;
using base::Status;

using Memory = void*;  // hipMemGenericAllocationHandle_t

constexpr std::uint64_t kSeed = 83;
constexpr unsigned long long kNoFlags = 0;
constexpr int kFileDescriptor = 1;  // hipMemHandleTypePosixFileDescriptor; HIP 6 wants a pointer to the descriptor
// Places in the reserved range, each of the same size.
enum Place : std::size_t { kFirst, kSecond, kFirstAgain, kImported, kNew, kPlaces };

class Program {
 public:
  explicit Program(const HipLibrary& hip) : hip_(hip) {}

  Status make() {
    const HipAllocationProperties properties;
    constexpr int kMinimum = 0;  // hipMemAllocationGranularityMinimum
    TRY(hip_.call("hipMemGetAllocationGranularity", &size_, &properties, kMinimum));
    TRY(hip_.call("hipMemAddressReserve", &range_, kPlaces * size_, size_, static_cast<void*>(nullptr), kNoFlags));
    ASSIGN_OR_RETURN(first_, create());
    ASSIGN_OR_RETURN(const Memory second, create());
    TRY(map(first_, kFirst));
    TRY(map(second, kSecond));
    TRY(map(first_, kFirstAgain));
    int file = -1;
    TRY(hip_.call("hipMemExportToShareableHandle", static_cast<void*>(&file), first_, kFileDescriptor, kNoFlags));
    exported_.reset(file);
    TRY(write(kFirst, kSeed));
    return write(kSecond, kSeed + 1);
  }

  // Something that changes nothing that is in the result.
  Status beat() {
    std::uint32_t word = 0;
    return hip_.copy(&word, at(kFirst), sizeof(word));
  }

  // After the checkpoint.
  Status check(kfdtest::Checksum& checksum) {
    TRY(expect(kFirst, kSeed, checksum));
    TRY(expect(kSecond, kSeed + 1, checksum));
    TRY(expect(kFirstAgain, kSeed, checksum));
    TRY(write(kFirstAgain, kSeed + 2));
    TRY(expect(kFirst, kSeed + 2, checksum));

    Memory imported = nullptr;
    int file = exported_.get();
    TRY(hip_.call("hipMemImportFromShareableHandle", &imported, static_cast<void*>(&file), kFileDescriptor));
    TRY(map(imported, kImported));
    TRY(expect(kImported, kSeed + 2, checksum));

    ASSIGN_OR_RETURN(const Memory late, create());
    TRY(map(late, kNew));
    TRY(write(kNew, kSeed + 3));
    TRY(expect(kNew, kSeed + 3, checksum));
    TRY(expect(kFirst, kSeed + 2, checksum));

    TRY(hip_.call("hipMemUnmap", at(kFirstAgain), size_));
    TRY(hip_.call("hipMemRelease", late));
    return expect(kFirst, kSeed + 2, checksum);
  }

 private:
  [[nodiscard]] void* at(Place place) const { return static_cast<std::byte*>(range_) + place * size_; }

  Result<Memory> create() const {
    Memory memory = nullptr;
    const HipAllocationProperties properties;
    TRY(hip_.call("hipMemCreate", &memory, size_, &properties, kNoFlags));
    return memory;
  }

  Status map(Memory memory, Place place) const {
    TRY(hip_.call("hipMemMap", at(place), size_, std::size_t{0}, memory, kNoFlags));
    const HipAccess access;
    return hip_.call("hipMemSetAccess", at(place), size_, &access, std::size_t{1});
  }

  Status write(Place place, std::uint64_t seed) const {
    std::vector<std::byte> bytes(size_);
    kfdtest::fill_pattern(bytes, seed);
    return hip_.copy(at(place), bytes.data(), size_);
  }

  Status expect(Place place, std::uint64_t seed, kfdtest::Checksum& checksum) const {
    std::vector<std::byte> bytes(size_);
    TRY(hip_.copy(bytes.data(), at(place), size_));
    checksum.add(bytes);
    if (!kfdtest::find_mismatch(bytes, seed)) return {};
    return Error(EIO, "the memory at place " + std::to_string(place) + " has other contents");
  }

  const HipLibrary& hip_;
  std::size_t size_ = 0;  // HIP's granularity
  void* range_ = nullptr;
  Memory first_ = nullptr;
  base::UniqueFd exported_;
};

Status run(const kfdtest::CommandLine& line, const kfdtest::MessageFiles& messages) {
  ASSIGN_OR_RETURN(const HipLibrary hip, HipLibrary::open());
  Program program(hip);
  TRY(program.make());
  messages.say("pending");
  TRY(wait_pending(line, messages, kfdtest::counted([&] { return program.beat(); })));
  kfdtest::Checksum checksum;
  TRY(program.check(checksum));
  return messages.publish_result(checksum.hex());
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  kfdtest::CommandLine line;
  // Not by exit(): destructors of HIP's libraries do not need to run.
  ::_exit(run_program(argc, argv, line,
                      [&](const kfdtest::MessageFiles& messages) { return fieldtest::run(line, messages); }));
}
