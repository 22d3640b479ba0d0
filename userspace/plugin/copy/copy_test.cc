// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Words of SDMA packets, and the CPU copier over memory files. SDMA itself runs in the guest's tests.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>

#include "base/os_failing.h"
#include "plugin/copy/copier.h"
#include "plugin/copy/sdma_packet.h"
#include "plugin/image/format.h"
#include "plugin/test_support.h"

namespace plugin::copy {
namespace {

static_assert(kSliceSize % image::kChunkSize == 0);

namespace sdma = packets::sdma;

constexpr std::array kFormats = {&sdma::kFormat2, &sdma::kFormat3, &sdma::kFormat4,
                                 &sdma::kFormat5, &sdma::kFormat6, &sdma::kFormat7};

TEST(SdmaPacket, has_the_count_and_the_length_of_its_generation) {
  packets::Words words;
  append_copy(words, 0x1122334455667788, 0x99aabbccddeeff00, 4096, sdma::kFormat4);
  pad(words);
  EXPECT_EQ(words, (packets::Words{1, 4095, 0, 0x55667788, 0x11223344, 0xddeeff00, 0x99aabbcc, 0}));
  words.clear();
  append_copy(words, 0x1000, 0x2000, 4096, sdma::kFormat2);
  EXPECT_EQ(words, (packets::Words{1, 4096, 0, 0x1000, 0, 0x2000, 0}));
}

// Engines of gfx12 take eight dwords for a copy: with seven, the second packet of a copy would not be found.
TEST(SdmaPacket, a_large_copy_is_split_without_gap_or_overlap) {
  constexpr std::uint64_t kBytes = (9ULL << 20) + 1;
  for (const sdma::Format* format : kFormats) {
    packets::Words words;
    append_copy(words, 0, 1ULL << 40, kBytes, *format);
    ASSERT_EQ(words.size(), packet_count(kBytes, *format) * format->copy_linear_dwords);
    ASSERT_LE(format->copy_linear_dwords, kMaxPacketDwords);
    std::uint64_t done = 0;
    for (packets::WordView rest(words); !rest.empty(); rest = rest.subspan(format->copy_linear_dwords)) {
      const auto copy = sdma::decode_copy(rest, *format);
      ASSERT_TRUE(copy && sdma::op_of(rest[0]) == sdma::kCopy) << format->generation;
      EXPECT_EQ(copy->src, done);
      EXPECT_EQ(copy->dst, (1ULL << 40) + done);
      EXPECT_LE(copy->bytes, max_packet_bytes(*format));
      done += copy->bytes;
    }
    EXPECT_EQ(done, kBytes) << format->generation;
    pad(words);
    EXPECT_EQ(words.size() % kIbAlignDwords, 0U);
  }
}

// Knows of no zeros.
class FunctionSource final : public Source {
 public:
  explicit FunctionSource(std::function<base::Status(std::span<std::byte>)> fill) : fill_(std::move(fill)) {}
  std::uint64_t skip_zeros(std::uint64_t /*limit*/) override { return 0; }
  base::Status read(std::span<std::byte> out) override { return fill_(out); }

 private:
  std::function<base::Status(std::span<std::byte>)> fill_;
};

base::UniqueFd memory_file(std::size_t size) {
  base::UniqueFd fd(::memfd_create("bo", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  return fd;
}

TEST(CpuCopier, writes_and_reads_back_in_slices) {
  const std::size_t size = kSliceSize + 12345;
  const base::UniqueFd bo = memory_file(size);
  auto copier = make_cpu_copier();
  std::uint8_t next = 1;
  FunctionSource source([&next](std::span<std::byte> step) -> base::Status {
    EXPECT_LE(step.size(), kStepSize);
    std::fill(step.begin(), step.end(), std::byte{next++});
    return {};
  });
  ASSERT_TRUE(copier->write(bo.get(), size, source).ok());
  std::vector<std::byte> all;
  ASSERT_TRUE(copier
                  ->read(bo.get(), size,
                         [&all](std::span<const std::byte> slice) -> base::Status {
                           all.insert(all.end(), slice.begin(), slice.end());
                           return {};
                         })
                  .ok());
  ASSERT_EQ(all.size(), size);
  constexpr std::uint8_t kSteps = kSliceSize / kStepSize;
  EXPECT_EQ(all[kSliceSize - 1], std::byte{kSteps});
  EXPECT_EQ(all[kSliceSize], std::byte{kSteps + 1});
  EXPECT_EQ(next, kSteps + 2);
}

TEST(CpuCopier, a_bo_of_a_render_node_is_where_its_offset_says) {
  const base::UniqueFd file = memory_file(3 * 4096);
  auto copier = make_mapping_copier(4096);
  FunctionSource source([](std::span<std::byte> step) -> base::Status {
    std::fill(step.begin(), step.end(), std::byte{7});
    return {};
  });
  ASSERT_TRUE(copier->write(file.get(), 4096, source).ok());
  std::vector<std::byte> all(3 * 4096);
  ASSERT_EQ(::pread(file.get(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
  EXPECT_EQ(std::count(all.begin(), all.end(), std::byte{7}), 4096);
  EXPECT_EQ(all[4096], std::byte{7});
  std::vector<std::byte> read;
  ASSERT_TRUE(copier
                  ->read(file.get(), 4096,
                         [&read](std::span<const std::byte> slice) -> base::Status {
                           read.assign(slice.begin(), slice.end());
                           return {};
                         })
                  .ok());
  EXPECT_EQ(read, std::vector<std::byte>(4096, std::byte{7}));
}

class ZeroSource final : public Source {
 public:
  std::uint64_t skip_zeros(std::uint64_t limit) override { return limit; }
  base::Status read(std::span<std::byte> /*out*/) override { return base::Error(EIO, "zeros are not read"); }
};

TEST(CpuCopier, zeros_are_written_and_not_read) {
  const std::size_t size = kSliceSize + 4096;
  const base::UniqueFd bo = memory_file(size);
  const std::vector<std::byte> before(size, std::byte{9});
  ASSERT_EQ(::pwrite(bo.get(), before.data(), size, 0), static_cast<ssize_t>(size));
  ZeroSource source;
  ASSERT_TRUE(make_cpu_copier()->write(bo.get(), size, source).ok());
  std::vector<std::byte> after(size, std::byte{9});
  ASSERT_EQ(::pread(bo.get(), after.data(), size, 0), static_cast<ssize_t>(size));
  EXPECT_EQ(std::count(after.begin(), after.end(), std::byte{0}), static_cast<std::ptrdiff_t>(size));
  EXPECT_EQ(::ftruncate(bo.get(), 4096), 0);
  const auto outcome = make_cpu_copier()->write(bo.get(), size, source);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().error.code(), EIO);
}

TEST(CpuCopier, what_cannot_be_mapped_is_unreachable_and_a_failing_sink_is_not) {
  auto copier = make_cpu_copier();
  const auto sink = [](std::span<const std::byte>) -> base::Status { return base::Error(ENOSPC, "full"); };
  auto outcome = copier->read(-1, 4096, sink);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kUnreachable);
  const base::UniqueFd bo = memory_file(4096);
  outcome = copier->read(bo.get(), 4096, sink);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kBroken);
  EXPECT_EQ(outcome.error().error.code(), ENOSPC);
}

// As memory of a GPU that was reset or unplugged.
TEST(CpuCopier, memory_that_is_gone_is_an_error_and_no_signal) {
  const base::UniqueFd bo = memory_file(kSliceSize + 8192);
  auto copier = make_cpu_copier();
  std::size_t delivered = 0;
  const auto shrink = [&](std::span<const std::byte> slice) -> base::Status {
    delivered += slice.size();
    EXPECT_EQ(::ftruncate(bo.get(), kSliceSize + 4096), 0);
    return {};
  };
  auto outcome = copier->read(bo.get(), kSliceSize + 8192, shrink);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, FailureKind::kBroken);
  EXPECT_EQ(outcome.error().error.code(), EIO);
  EXPECT_EQ(delivered, kSliceSize);
  FunctionSource source([](std::span<std::byte>) -> base::Status { return {}; });
  outcome = copier->write(bo.get(), kSliceSize + 8192, source);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().error.code(), EIO);
}

// CRIU blocks all signals but SIGCHLD before it forks the processes that it restores.
TEST(CpuCopier, memory_that_is_gone_is_an_error_while_signals_are_blocked) {
  sigset_t all, before, after;
  sigfillset(&all);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &all, &before), 0);
  const base::UniqueFd bo = memory_file(4096);
  EXPECT_EQ(::ftruncate(bo.get(), 0), 0);
  const auto outcome =
      make_cpu_copier()->read(bo.get(), 4096, [](std::span<const std::byte>) -> base::Status { return {}; });
  EXPECT_EQ(::pthread_sigmask(SIG_SETMASK, &before, &after), 0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().error.code(), EIO);
  EXPECT_EQ(sigismember(&after, SIGBUS), 1);
}

TEST(CpuCopier, leaves_the_signals_handler_as_it_was) {
  const base::UniqueFd bo = memory_file(4096);
  struct sigaction before {};
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGBUS, nullptr, &before), 0);
  ASSERT_TRUE(make_cpu_copier()->read(bo.get(), 4096, [](auto) -> base::Status { return {}; }).ok());
  ASSERT_EQ(::sigaction(SIGBUS, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  EXPECT_EQ(after.sa_flags, before.sa_flags);
}

// The copy makes three calls that can fail: mmap, and DMA_BUF_IOCTL_SYNC at the beginning and at the end.
TEST(CpuCopier, a_cache_that_cannot_be_synced_is_an_error_unless_a_signal_interrupted_it) {
  const base::UniqueFd bo = memory_file(4096);
  for (const std::uint64_t call : {2U, 3U}) {
    for (const int code : {EIO, EINTR}) {
      os::fail_call(call, code);
      const auto outcome = make_cpu_copier()->read(bo.get(), 4096, [](auto) -> base::Status { return {}; });
      EXPECT_EQ(os::failed_call(), "ioctl");
      os::fail_call(0, 0);
      EXPECT_EQ(outcome.ok(), code == EINTR) << call;
    }
  }
}

TEST(MakeCopier, without_a_gpu_auto_uses_the_cpu_and_sdma_fails) {
  const base::UniqueFd not_a_gpu = memory_file(4096);
  constexpr std::chrono::seconds kTimeout{10};
  auto copier = make_copier(not_a_gpu.get(), Method::kAuto, kTimeout);
  ASSERT_TRUE(copier.ok());
  const base::UniqueFd bo = memory_file(4096);
  EXPECT_TRUE((*copier)->read(bo.get(), 4096, [](std::span<const std::byte>) -> base::Status { return {}; }).ok());
  EXPECT_FALSE(make_copier(not_a_gpu.get(), Method::kSdma, kTimeout).ok());
}

}  // namespace
}  // namespace plugin::copy
