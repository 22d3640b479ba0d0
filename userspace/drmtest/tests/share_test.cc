// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that two GPUs or two processes share (PRIME), and memory of the process that the GPU uses (userptr).
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "drmtest/env/gpu_test.h"
#include "drmtest/harness/buffer.h"
#include "drmtest/harness/submit.h"
#include "drmtest/tests/scenarios.h"

namespace drmtest {
namespace {

constexpr std::uint64_t kSize = kMiB;

base::Status gpu_copy(const Device& device, const Buffer& to, const Buffer& from) {
  ASSIGN_OR_RETURN(const Context context, Context::create(device));
  ASSIGN_OR_RETURN(Submitter submitter, Submitter::create(device, context));
  Commands commands(device, AMDGPU_HW_IP_DMA);
  commands.copy(to.address(), from.address(), to.size());
  return submitter.run({.bos = {to.handle(), from.handle()}}, commands);
}

base::Result<Buffer> import(const Device& device, int fd) {
  amdgpu_bo_import_result imported{};
  TRY(check(
      amdgpu_bo_import(device.handle(), amdgpu_bo_handle_type_dma_buf_fd, static_cast<std::uint32_t>(fd), &imported),
      "amdgpu_bo_import"));
  return Buffer::map(device, Bo(imported.buf_handle, imported.alloc_size), {});
}

class ShareTest : public GpuTest {};

TEST_P(ShareTest, every_gpu_of_the_machine_reads_and_writes_an_exported_bo) {
  for (const BoSpec& spec : {gtt(kSize), vram(kSize)}) {
    ASSERT_OK_AND_ASSIGN(const Buffer exported, Buffer::create(device(), spec));
    ASSERT_OK_AND_ASSIGN(const base::UniqueFd fd, exported.bo().dma_buf());
    for (const Node& node : render_nodes()) {
      if (node.path == GetParam().path) continue;
      ASSERT_OK_AND_ASSIGN(const Device other, Device::open(node.path));
      ASSERT_OK_AND_ASSIGN(const Buffer imported, import(other, fd.get()));
      ASSERT_EQ(imported.size(), kSize);
      ASSERT_OK_AND_ASSIGN(const Buffer copied, Buffer::create(other, gtt(kSize)));
      write_pattern(exported.words(), spec.heap);
      ASSERT_OK(gpu_copy(other, copied, imported));
      EXPECT_EQ(first_mismatch(copied.words(), spec.heap), kSize / 4) << node.name << " reads heap " << spec.heap;
      write_pattern(copied.words(), spec.heap + 1);
      ASSERT_OK(gpu_copy(other, imported, copied));
      EXPECT_EQ(first_mismatch(exported.words(), spec.heap + 1), kSize / 4)
          << node.name << " writes heap " << spec.heap;
    }
  }
}

TEST_P(ShareTest, an_import_by_the_exporter_is_the_same_bo) {
  ASSERT_OK_AND_ASSIGN(const Bo bo, Bo::create(device(), gtt(kSize)));
  ASSERT_OK_AND_ASSIGN(const base::UniqueFd fd, bo.dma_buf());
  amdgpu_bo_import_result imported{};
  ASSERT_OK(check(amdgpu_bo_import(device().handle(), amdgpu_bo_handle_type_dma_buf_fd,
                                   static_cast<std::uint32_t>(fd.get()), &imported),
                  "import"));
  EXPECT_EQ(imported.buf_handle, bo.handle());
  amdgpu_bo_free(imported.buf_handle);  // importing took a reference
}

TEST_P(ShareTest, a_bo_lives_on_in_its_dma_buf) {
  ASSERT_OK_AND_ASSIGN(const Buffer copied, Buffer::create(device(), gtt(kSize)));
  base::UniqueFd fd;
  {
    ASSERT_OK_AND_ASSIGN(const Buffer exported, Buffer::create(device(), vram(kSize)));
    write_pattern(exported.words(), 6);
    ASSERT_OK_AND_ASSIGN(fd, exported.bo().dma_buf());
  }
  ASSERT_OK_AND_ASSIGN(const Buffer imported, import(device(), fd.get()));
  ASSERT_OK(gpu_copy(device(), copied, imported));
  EXPECT_EQ(first_mismatch(copied.words(), 6), kSize / 4);
}

TEST_P(ShareTest, another_process_reads_and_writes_an_exported_bo) {
  constexpr std::uint32_t kSeed = 20;
  for (const BoSpec& spec : {gtt(kSize), vram(kSize)}) {
    ASSERT_OK_AND_ASSIGN(const Buffer exported, Buffer::create(device(), spec));
    write_pattern(exported.words(), kSeed);
    ASSERT_OK_AND_ASSIGN(const base::UniqueFd fd, exported.bo().dma_buf());
    const base::UniqueFd inherited(dup(fd.get()));  // without FD_CLOEXEC
    for (const Node& node : render_nodes()) {
      write_pattern(exported.words(), kSeed);
      ASSERT_EQ(run_in_other_process({"import-and-copy", node.path, std::to_string(inherited.get()),
                                      std::to_string(kSize), std::to_string(kSeed)}),
                0)
          << node.name << ", heap " << spec.heap;
      EXPECT_EQ(first_mismatch(exported.words(), kSeed + 1), kSize / 4) << node.name << ", heap " << spec.heap;
    }
  }
}

TEST_P(ShareTest, what_is_no_dma_buf_is_not_imported) {
  EXPECT_FALSE(import(device(), device().fd()).ok());
  EXPECT_FALSE(import(device(), -1).ok());
}

// Makes a BO of this process's memory (userptr).
class UserMemoryTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    memory_ = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override { munmap(memory_, kSize); }
  [[nodiscard]] std::span<std::uint32_t> words() const { return {static_cast<std::uint32_t*>(memory_), kSize / 4}; }
  base::Result<Buffer> buffer() const {
    amdgpu_bo_handle handle = nullptr;
    TRY(check(amdgpu_create_bo_from_user_mem(device().handle(), memory_, kSize, &handle), "userptr"));
    return Buffer::map(device(), Bo(handle, kSize), words());
  }
  [[nodiscard]] void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

TEST_P(UserMemoryTest, the_gpu_reads_and_writes_it) {
  ASSERT_OK_AND_ASSIGN(const Buffer user, buffer());
  ASSERT_OK_AND_ASSIGN(const Buffer local, Buffer::create(device(), vram(kSize)));
  write_pattern(words(), 4);
  ASSERT_OK(gpu_copy(device(), local, user));
  EXPECT_EQ(first_mismatch(local.words(), 4), kSize / 4);
  write_pattern(local.words(), 5);
  ASSERT_OK(gpu_copy(device(), user, local));
  EXPECT_EQ(first_mismatch(words(), 5), kSize / 4);
}

TEST_P(UserMemoryTest, pages_that_the_kernel_replaced_are_found_again) {
  ASSERT_OK_AND_ASSIGN(const Buffer user, buffer());
  ASSERT_OK_AND_ASSIGN(const Buffer local, Buffer::create(device(), gtt(kSize)));
  for (std::uint32_t round = 1; round <= 3; ++round) {
    ASSERT_EQ(madvise(memory(), kSize, MADV_DONTNEED), 0);
    write_pattern(words(), round);
    ASSERT_OK(gpu_copy(device(), local, user));
    EXPECT_EQ(first_mismatch(local.words(), round), kSize / 4) << "round " << round;
  }
}

TEST_P(UserMemoryTest, a_job_on_memory_that_has_gone_is_refused_and_the_next_one_works) {
  ASSERT_OK_AND_ASSIGN(const Buffer user, buffer());
  ASSERT_OK_AND_ASSIGN(const Buffer local, Buffer::create(device(), gtt(kSize)));
  ASSERT_EQ(mprotect(memory(), kSize, PROT_NONE), 0);
  const base::Status status = gpu_copy(device(), local, user);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), EFAULT);
  ASSERT_EQ(mprotect(memory(), kSize, PROT_READ | PROT_WRITE), 0);
  EXPECT_OK(gpu_copy(device(), local, user));
}

TEST_P(UserMemoryTest, what_is_not_whole_pages_of_memory_is_refused) {
  amdgpu_bo_handle handle = nullptr;
  char* begin = static_cast<char*>(memory());
  EXPECT_NE(amdgpu_create_bo_from_user_mem(device().handle(), begin + 1, kPage, &handle), 0);
  EXPECT_NE(amdgpu_create_bo_from_user_mem(device().handle(), begin, kPage + 1, &handle), 0);
  constexpr std::uintptr_t kKernelAddress = 0xffff888000000000;
  EXPECT_NE(amdgpu_create_bo_from_user_mem(device().handle(), reinterpret_cast<void*>(kKernelAddress), kPage, &handle),
            0);
}

EVERY_GPU(ShareTest);
EVERY_GPU(UserMemoryTest);

}  // namespace
}  // namespace drmtest
