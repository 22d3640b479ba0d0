// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Fences, binary and timeline sync objects, sync files, semaphores.
#include <poll.h>
#include <xf86drm.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "drmtest/harness/buffer.h"
#include "drmtest/tests/submitter_fixture.h"

namespace drmtest {
namespace {

class SyncTest : public SubmitterTest<GpuTest> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SubmitterTest::SetUp());
    ASSERT_OK_AND_ASSIGN(Buffer page, Buffer::create(device(), gtt(kPage)));
    page_.emplace(std::move(page));
  }
  void TearDown() override {
    page_.reset();
    SubmitterTest::TearDown();
  }

  // Submits a job that ends only after open_gate().
  base::Result<amdgpu_cs_fence> submit_gated(Job job = {}) {
    Commands commands(device(), AMDGPU_HW_IP_DMA);
    commands.wait_equal(page_->address(), 1);
    job.bos.push_back(page_->handle());
    return submitter().submit(job, commands);
  }
  void open_gate() { page_->store(0, 1); }
  base::Result<amdgpu_cs_fence> submit_nop(Job job = {}) {
    Commands commands(device(), AMDGPU_HW_IP_DMA);
    return submitter().submit(job, commands.nop());
  }

  int wait_object(std::uint32_t handle, Nanoseconds limit, unsigned flags = 0) const {
    return amdgpu_cs_syncobj_wait(device().handle(), &handle, 1, from_now(limit), flags, nullptr);
  }
  int wait_point(std::uint32_t handle, std::uint64_t point, Nanoseconds limit, unsigned flags = 0) const {
    return amdgpu_cs_syncobj_timeline_wait(device().handle(), &handle, &point, 1, from_now(limit), flags, nullptr);
  }
  int signal_point(std::uint32_t handle, std::uint64_t point) const {
    return amdgpu_cs_syncobj_timeline_signal(device().handle(), &handle, &point, 1);
  }
  std::uint64_t last_point(std::uint32_t handle) const {
    std::uint64_t point = ~std::uint64_t{0};
    EXPECT_EQ(amdgpu_cs_syncobj_query(device().handle(), &handle, &point, 1), 0);
    return point;
  }

 private:
  std::optional<Buffer> page_;
};

TEST_P(SyncTest, a_fence_expires_with_its_job_and_not_before) {
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence fence, submit_gated());
  ASSERT_OK_AND_ASSIGN(bool ended, wait(fence, Nanoseconds(0)));
  EXPECT_FALSE(ended);
  ASSERT_OK_AND_ASSIGN(ended, wait(fence, kQuietPeriod));
  EXPECT_FALSE(ended);
  open_gate();
  ASSERT_OK_AND_ASSIGN(ended, wait(fence));
  EXPECT_TRUE(ended);
}

TEST_P(SyncTest, sequence_numbers_grow_and_one_that_was_never_given_out_is_refused) {
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence first, submit_nop());
  ASSERT_OK_AND_ASSIGN(amdgpu_cs_fence second, submit_nop());
  EXPECT_EQ(second.fence, first.fence + 1);
  ASSERT_OK_AND_ASSIGN(const bool ended, wait(second));
  EXPECT_TRUE(ended);
  second.fence += 1000;
  const auto unknown = wait(second);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), EINVAL);
}

TEST_P(SyncTest, a_wait_for_several_fences_ends_with_one_or_with_all) {
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence done, submit_nop());
  ASSERT_OK_AND_ASSIGN(const bool ended, wait(done));
  ASSERT_TRUE(ended);
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence pending, submit_gated());
  std::array fences = {pending, done};
  const auto quiet = static_cast<std::uint64_t>(kQuietPeriod.count());
  std::uint32_t status = 0;
  std::uint32_t first = 99;
  ASSERT_EQ(amdgpu_cs_wait_fences(fences.data(), fences.size(), false, quiet, &status, &first), 0);
  EXPECT_EQ(status, 1U);
  EXPECT_EQ(first, 1U);
  ASSERT_EQ(amdgpu_cs_wait_fences(fences.data(), fences.size(), true, quiet, &status, nullptr), 0);
  EXPECT_EQ(status, 0U);
  open_gate();
  const auto deadline = static_cast<std::uint64_t>(kDeadline.count());
  ASSERT_EQ(amdgpu_cs_wait_fences(fences.data(), fences.size(), true, deadline, &status, nullptr), 0);
  EXPECT_EQ(status, 1U);
}

TEST_P(SyncTest, a_sync_object_is_signaled_and_reset_by_the_cpu) {
  ASSERT_OK_AND_ASSIGN(const SyncObject object, SyncObject::create(device()));
  const std::uint32_t handle = object.handle();
  EXPECT_EQ(wait_object(handle, Nanoseconds(0)), -EINVAL) << "no fence, and none asked for";
  EXPECT_EQ(wait_object(handle, kQuietPeriod, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT), -ETIME);
  ASSERT_EQ(amdgpu_cs_syncobj_signal(device().handle(), &handle, 1), 0);
  EXPECT_EQ(wait_object(handle, Nanoseconds(0)), 0);
  ASSERT_EQ(amdgpu_cs_syncobj_reset(device().handle(), &handle, 1), 0);
  EXPECT_EQ(wait_object(handle, Nanoseconds(0)), -EINVAL);
  ASSERT_OK_AND_ASSIGN(const SyncObject born, SyncObject::create(device(), DRM_SYNCOBJ_CREATE_SIGNALED));
  EXPECT_EQ(wait_object(born.handle(), Nanoseconds(0)), 0);
}

TEST_P(SyncTest, a_job_signals_a_sync_object_and_another_one_waits_for_it) {
  ASSERT_OK_AND_ASSIGN(const SyncObject object, SyncObject::create(device()));
  ASSERT_OK(submit_gated({.signal = {{object.handle()}}}));
  ASSERT_OK_AND_ASSIGN(const Context other, Context::create(device()));
  ASSERT_OK_AND_ASSIGN(Submitter submitter, Submitter::create(device(), other));
  Commands nop(device(), AMDGPU_HW_IP_DMA);
  ASSERT_OK_AND_ASSIGN(
      const amdgpu_cs_fence waiting,
      submitter.submit({.ring = device().rings(AMDGPU_HW_IP_DMA) - 1, .wait_for = {{object.handle()}}}, nop.nop()));
  ASSERT_OK_AND_ASSIGN(bool ended, wait(waiting, kQuietPeriod));
  EXPECT_FALSE(ended);
  EXPECT_EQ(wait_object(object.handle(), Nanoseconds(0)), -ETIME);
  open_gate();
  ASSERT_OK_AND_ASSIGN(ended, wait(waiting));
  EXPECT_TRUE(ended);
  EXPECT_EQ(wait_object(object.handle(), kDeadline), 0);
}

TEST_P(SyncTest, a_sync_object_given_away_as_a_file_is_the_same_object) {
  ASSERT_OK_AND_ASSIGN(const SyncObject object, SyncObject::create(device()));
  int fd = -1;
  ASSERT_EQ(amdgpu_cs_export_syncobj(device().handle(), object.handle(), &fd), 0);
  const base::UniqueFd owner(fd);
  std::uint32_t handle = 0;
  ASSERT_EQ(amdgpu_cs_import_syncobj(device().handle(), fd, &handle), 0);
  const SyncObject imported(device(), handle);
  const std::uint32_t original = object.handle();
  ASSERT_EQ(amdgpu_cs_syncobj_signal(device().handle(), &original, 1), 0);
  EXPECT_EQ(wait_object(imported.handle(), Nanoseconds(0)), 0);
}

TEST_P(SyncTest, a_fence_becomes_a_file_that_can_be_polled) {
  ASSERT_OK_AND_ASSIGN(amdgpu_cs_fence fence, submit_gated());
  std::uint32_t handle = 0;
  ASSERT_EQ(amdgpu_cs_fence_to_handle(device().handle(), &fence, AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD, &handle), 0);
  const base::UniqueFd file(static_cast<int>(handle));
  pollfd poll_fd{.fd = file.get(), .events = POLLIN, .revents = 0};
  constexpr int kQuietMs = static_cast<int>(kQuietPeriod.count() / 1'000'000);
  constexpr int kDeadlineMs = static_cast<int>(kDeadline.count() / 1'000'000);
  EXPECT_EQ(poll(&poll_fd, 1, kQuietMs), 0);
  ASSERT_OK_AND_ASSIGN(const SyncObject object, SyncObject::create(device()));
  ASSERT_EQ(amdgpu_cs_syncobj_import_sync_file(device().handle(), object.handle(), file.get()), 0);
  EXPECT_EQ(wait_object(object.handle(), Nanoseconds(0)), -ETIME);
  open_gate();
  EXPECT_EQ(poll(&poll_fd, 1, kDeadlineMs), 1);
  EXPECT_EQ(wait_object(object.handle(), kDeadline), 0);
}

TEST_P(SyncTest, a_timeline_advances_as_the_cpu_signals_it) {
  ASSERT_OK_AND_ASSIGN(const SyncObject timeline, SyncObject::create(device()));
  EXPECT_EQ(last_point(timeline.handle()), 0U);
  ASSERT_EQ(signal_point(timeline.handle(), 5), 0);
  EXPECT_EQ(last_point(timeline.handle()), 5U);
  EXPECT_EQ(wait_point(timeline.handle(), 3, Nanoseconds(0)), 0);
  EXPECT_EQ(wait_point(timeline.handle(), 6, Nanoseconds(0)), -EINVAL) << "nobody has promised it";
  EXPECT_EQ(wait_point(timeline.handle(), 6, kQuietPeriod, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT), -ETIME);
  ASSERT_EQ(signal_point(timeline.handle(), 10), 0);
  EXPECT_EQ(last_point(timeline.handle()), 10U);
}

TEST_P(SyncTest, jobs_wait_for_points_and_signal_points) {
  ASSERT_OK_AND_ASSIGN(const SyncObject timeline, SyncObject::create(device()));
  ASSERT_OK(submit_gated({.signal = {{timeline.handle(), 1}}}));
  ASSERT_OK(submit_nop({.wait_for = {{timeline.handle(), 1}}, .signal = {{timeline.handle(), 2}}}));
  EXPECT_EQ(wait_point(timeline.handle(), 2, kQuietPeriod), -ETIME);
  EXPECT_EQ(last_point(timeline.handle()), 0U);
  open_gate();
  EXPECT_EQ(wait_point(timeline.handle(), 2, kDeadline), 0);
  EXPECT_EQ(last_point(timeline.handle()), 2U);
}

TEST_P(SyncTest, a_point_is_available_when_it_is_submitted) {
  ASSERT_OK_AND_ASSIGN(const SyncObject timeline, SyncObject::create(device()));
  constexpr unsigned kAvailable = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE;
  EXPECT_NE(wait_point(timeline.handle(), 1, kQuietPeriod, kAvailable), 0);
  ASSERT_OK(submit_gated({.signal = {{timeline.handle(), 1}}}));
  EXPECT_EQ(wait_point(timeline.handle(), 1, kDeadline, kAvailable), 0);
  EXPECT_EQ(wait_point(timeline.handle(), 1, Nanoseconds(0)), -ETIME);
  open_gate();
  EXPECT_EQ(wait_point(timeline.handle(), 1, kDeadline), 0);
}

TEST_P(SyncTest, a_fence_is_transferred_between_a_timeline_and_a_binary_object) {
  ASSERT_OK_AND_ASSIGN(const SyncObject timeline, SyncObject::create(device()));
  ASSERT_OK_AND_ASSIGN(const SyncObject binary, SyncObject::create(device()));
  ASSERT_OK(submit_gated({.signal = {{timeline.handle(), 4}}}));
  ASSERT_EQ(amdgpu_cs_syncobj_transfer(device().handle(), binary.handle(), 0, timeline.handle(), 4, 0), 0);
  EXPECT_EQ(wait_object(binary.handle(), kQuietPeriod), -ETIME);
  open_gate();
  EXPECT_EQ(wait_object(binary.handle(), kDeadline), 0);
  ASSERT_OK_AND_ASSIGN(const SyncObject target, SyncObject::create(device()));
  ASSERT_EQ(amdgpu_cs_syncobj_transfer(device().handle(), target.handle(), 9, binary.handle(), 0, 0), 0);
  EXPECT_EQ(wait_point(target.handle(), 9, kDeadline), 0);
}

TEST_P(SyncTest, what_is_no_sync_object_is_refused) {
  constexpr std::uint32_t kNone = 0x7fffffff;
  std::uint32_t handle = kNone;
  EXPECT_EQ(wait_object(kNone, Nanoseconds(0)), -ENOENT);
  EXPECT_NE(amdgpu_cs_syncobj_signal(device().handle(), &handle, 1), 0);
  EXPECT_NE(amdgpu_cs_destroy_syncobj(device().handle(), kNone), 0);
  EXPECT_NE(amdgpu_cs_import_syncobj(device().handle(), device().fd(), &handle), 0) << "a file of another kind";
}

// Submits through amdgpu_cs_submit(), the older of libdrm's two interfaces, the only one with semaphores.
class SemaphoreTest : public GpuTest {
 protected:
  static constexpr std::uint32_t kIp = AMDGPU_HW_IP_DMA;

  // Runs the IB at the start of `ib`.
  base::Result<amdgpu_cs_fence> submit(const Context& context, const Buffer& ib, Commands& commands,
                                       std::vector<amdgpu_bo_handle> bos) {
    const auto dwords = commands.padded();
    std::copy(dwords.begin(), dwords.end(), ib.words().begin());
    bos.push_back(ib.handle());
    amdgpu_bo_list_handle list = nullptr;
    TRY(check(
        amdgpu_bo_list_create(device().handle(), static_cast<std::uint32_t>(bos.size()), bos.data(), nullptr, &list),
        "amdgpu_bo_list_create"));
    amdgpu_cs_ib_info info{
        .flags = 0, .ib_mc_address = ib.address(), .size = static_cast<std::uint32_t>(dwords.size())};
    amdgpu_cs_request request{};
    request.ip_type = kIp;
    request.resources = list;
    request.number_of_ibs = 1;
    request.ibs = &info;
    const int result = amdgpu_cs_submit(context.handle(), 0, &request, 1);
    TRY(check(amdgpu_bo_list_destroy(list), "amdgpu_bo_list_destroy"));
    TRY(check(result, "amdgpu_cs_submit"));
    return amdgpu_cs_fence{
        .context = context.handle(), .ip_type = kIp, .ip_instance = 0, .ring = 0, .fence = request.seq_no};
  }
};

TEST_P(SemaphoreTest, a_semaphore_orders_jobs_of_two_contexts) {
  ASSERT_OK_AND_ASSIGN(const Context first, Context::create(device()));
  ASSERT_OK_AND_ASSIGN(const Context second, Context::create(device()));
  ASSERT_OK_AND_ASSIGN(const Buffer gate, Buffer::create(device(), gtt(kPage)));
  ASSERT_OK_AND_ASSIGN(const Buffer first_ib, Buffer::create(device(), gtt(kPage)));
  ASSERT_OK_AND_ASSIGN(const Buffer second_ib, Buffer::create(device(), gtt(kPage)));
  amdgpu_semaphore_handle semaphore = nullptr;
  ASSERT_EQ(amdgpu_cs_create_semaphore(&semaphore), 0);
  Commands wait_for_gate(device(), kIp);
  ASSERT_OK(submit(first, first_ib, wait_for_gate.wait_equal(gate.address(), 1), {gate.handle()}));
  ASSERT_EQ(amdgpu_cs_signal_semaphore(first.handle(), kIp, 0, 0, semaphore), 0);
  ASSERT_EQ(amdgpu_cs_wait_semaphore(second.handle(), kIp, 0, 0, semaphore), 0);
  Commands nop(device(), kIp);
  ASSERT_OK_AND_ASSIGN(const amdgpu_cs_fence fence, submit(second, second_ib, nop.nop(), {}));
  ASSERT_OK_AND_ASSIGN(bool ended, wait(fence, kQuietPeriod));
  EXPECT_FALSE(ended);
  gate.store(0, 1);
  ASSERT_OK_AND_ASSIGN(ended, wait(fence));
  EXPECT_TRUE(ended);
  EXPECT_EQ(amdgpu_cs_destroy_semaphore(semaphore), 0);
}

EVERY_GPU(SemaphoreTest);
EVERY_GPU(SyncTest);

}  // namespace
}  // namespace drmtest
