// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Which operation is permitted in which state, what a failed restore leaves, and GPU ids of
 * a process that is restored on other GPUs.
 *
 * Runs: per-chip, siblings
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/debug_trap.h"
#include "lib/event.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/svm.h"

#define DEBUGFS		"/sys/kernel/debug"
#define RANGE_SIZE	(64UL << 20)
#define GRANULARITY	3
#define CHILDREN	3
#define POLL_LIMIT_MS	10000

FIXTURE(states) {
	struct kfd kfd;
	struct fixture fixture;
	struct kfd_v1_image image;
};

FIXTURE_SETUP(states)
{
	memset(&self->image, 0, sizeof(self->image));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, fixture_create(&self->kfd, &self->fixture, FIXTURE_BOS));
}

FIXTURE_TEARDOWN(states)
{
	kfd_v1_image_close_files(&self->image);
	kfd_v1_image_free(&self->image);
	kfd_close(&self->kfd);
}

TEST_F(states, a_running_process_must_be_paused_first)
{
	struct kfd_v1_image none = { 0 };

	none.args.devices = 1;
	none.args.bos = 1;
	none.args.priv_data = 1;
	EXPECT_EQ(-EINVAL, kfd_v1_image_checkpoint(self->kfd.fd, &none));
	EXPECT_EQ(-EINVAL, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(-EINVAL, kfd_v1_resume(self->kfd.fd, getpid()));
}

TEST_F(states, pausing_twice_needs_one_unpause)
{
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(-EINVAL, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(-EINVAL, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
}

TEST_F(states, a_process_that_has_objects_is_not_restored)
{
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(-EBUSY, kfd_v1_image_restore(&self->kfd, &self->image));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(-EINVAL, kfd_v1_image_restore(&self->kfd, &self->image));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
}

TEST_F(states, a_process_that_is_debugged_is_not_checkpointed)
{
	int ends[2], r;

	ASSERT_EQ(0, pipe(ends));
	r = kfd_debug_trap(&self->kfd, getpid(), KFD_IOC_DBG_TRAP_ENABLE, ends[1]);
	if (r == -ENODEV)
		SKIP(return, "amdkfd does not debug programs on this GPU");
	ASSERT_EQ(0, r);
	EXPECT_EQ(-EOPNOTSUPP,
		  kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
	ASSERT_EQ(0, kfd_debug_trap(&self->kfd, getpid(),
				    KFD_IOC_DBG_TRAP_DISABLE, -1));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

static int restores_in_order(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;
	struct kfd_bo bo;

	if (kfd_v1_image_restore(kfd, image))
		return 1;
	if (kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &bo) != -EBUSY)
		return 2;
	if (kfd_event_create(kfd) != -EBUSY)
		return 3;
	if (kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO) != -EBUSY)
		return 4;
	if (kfd_v1_image_restore(kfd, image) != -EBUSY)
		return 5;
	if (kfd_available(kfd, 0) < 0)
		return 6;
	if (kfd_v1_resume(kfd->fd, getpid()))
		return 7;
	if (kfd_v1_resume(kfd->fd, getpid()) != -EINVAL)
		return 8;
	kfd->next_va += 1 << 30;
	if (kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &bo))
		return 9;
	return kfd_event_create(kfd) > 0 ? 0 : 10;
}

TEST_F(states, other_calls_are_refused_until_the_resume)
{
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(restores_in_order, &self->image));
}

static int is_checkpointed_the_same(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;
	struct kfd_v1_image again;
	unsigned int i;

	if (kfd_v1_image_restore(kfd, image) || kfd_v1_resume(kfd->fd, getpid()))
		return 1;
	if (kfd_v1_image_dump(kfd->fd, &again))
		return 2;
	if (again.args.priv_data_size != image->args.priv_data_size ||
	    memcmp(again.priv, image->priv, image->args.priv_data_size))
		return 3;
	for (i = 0; i < again.args.num_bos; i++)
		if (again.bos[i].addr != image->bos[i].addr ||
		    again.bos[i].size != image->bos[i].size ||
		    again.bos[i].alloc_flags != image->bos[i].alloc_flags)
			return 4;
	return 0;
}

TEST_F(states, a_restored_process_is_checkpointed_as_the_first_one)
{
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(is_checkpointed_the_same, &self->image));
}

static int fails_before_anything(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;
	struct kfd_bo bo;

	*(__u32 *)image->priv = 2; /* no kernel has this version */
	if (kfd_v1_image_restore(kfd, image) != -EINVAL)
		return 1;
	if (kfd_acquire_vms(kfd))
		return 2;
	return kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &bo) ? 3 : 0;
}

TEST_F(states, a_restore_that_is_refused_at_once_changes_nothing)
{
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(fails_before_anything, &self->image));
}

static int fails_at_the_end(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;
	const long long before = kfd_available(kfd, 0);
	const int files = count_files();
	struct kfd_bo bo;

	image->args.priv_data_size++;
	if (kfd_v1_image_restore(kfd, image) != -EINVAL)
		return 1;
	if (count_files() != files)
		return 2;
	if (!kfd_available_becomes(kfd, 0, before))
		return 3;
	if (kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &bo) != -EIO)
		return 4;
	if (kfd_event_create(kfd) != -EIO)
		return 5;
	image->args.priv_data_size--;
	if (kfd_v1_image_restore(kfd, image) != -EIO)
		return 6;
	if (kfd_v1_resume(kfd->fd, getpid()) != -EIO)
		return 7;
	return kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO) == -EIO ? 0 : 8;
}

TEST_F(states, a_restore_that_fails_leaves_nothing)
{
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(fails_at_the_end, &self->image));
	/* The process that was checkpointed continues. */
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

static int dies_before_resume(struct kfd *kfd, void *data)
{
	return kfd_v1_image_restore(kfd, data);
}

TEST_F(states, a_restored_process_may_die_before_it_is_resumed)
{
	long long before;

	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	before = kfd_available(&self->kfd, 0);
	EXPECT_EQ(0, kfd_in_child(dies_before_resume, &self->image));
	EXPECT_TRUE(kfd_available_becomes(&self->kfd, 0, before));
}

/* MiB of system memory that amdkfd has reserved for processes; -1: it is not known. */
static long long reserved(void)
{
	long long mib = -1;
	FILE *file;

	if (access(DEBUGFS "/kfd", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	file = fopen(DEBUGFS "/kfd/mem_limit", "r");
	if (!file)
		return -1;
	if (fscanf(file, "System mem used %lldM", &mib) != 1)
		mib = -1;
	fclose(file);
	return mib;
}

/*
 * Waits up to ten seconds until no more is reserved: workers of the driver give it back, that
 * of other processes too.
 */
static bool reserved_becomes(long long mib)
{
	int i;

	for (i = 0; i < 1000 && reserved() > mib; i++)
		usleep(10 * 1000);
	return reserved() >= 0 && reserved() <= mib;
}

/* Switches XNACK to the mode that is not the default of processes. */
static int switch_xnack(const struct kfd *kfd)
{
	struct kfd_ioctl_set_xnack_mode_args args = { .xnack_enabled = -1 };
	int r = kfd_call(kfd->fd, AMDKFD_IOC_SET_XNACK_MODE, &args);

	args.xnack_enabled = !args.xnack_enabled;
	return r ? r : kfd_call(kfd->fd, AMDKFD_IOC_SET_XNACK_MODE, &args);
}

/*
 * Creates a large range and one of a page. No GPU has access to them, so the driver reserves
 * memory for their size, and only without XNACK.
 */
static int make_ranges(const struct kfd *kfd)
{
	const struct kfd_ioctl_svm_attribute attribute = {
		.type = KFD_IOCTL_SVM_ATTR_GRANULARITY,
		.value = GRANULARITY,
	};
	void *memory = svm_memory(RANGE_SIZE + KFD_PAGE);
	int r;

	if (!memory)
		return -errno;
	r = svm_set(kfd, memory, RANGE_SIZE, &attribute, 1);
	return r ? r : svm_set(kfd, memory + RANGE_SIZE, KFD_PAGE, &attribute, 1);
}

/* The last of the ranges; the driver may have split the large one. */
static struct kfd_criu_record_svm_range *last_range(const struct kfd_v2_image *image)
{
	struct kfd_criu_record *next, *last = NULL;
	unsigned int i;

	for (i = 0; (next = v2_nth(image, KFD_CRIU_RECORD_SVM_RANGE, i)); i++)
		last = next;
	return (void *)last;
}

static int fails_to_resume(struct kfd *kfd, void *data)
{
	if (kfd_v2_image_restore(kfd, data))
		return 1;
	if (kfd_v2_resume(kfd) != -EFAULT)
		return 2;
	return kfd_v2_state(kfd) == KFD_CRIU_STATE_ABORTED ? 0 : 3;
}

/* The driver registers all ranges but the last one, which has no memory under it. */
TEST_F(states, a_resume_that_fails_returns_its_memory_in_any_xnack_mode)
{
	struct kfd_criu_record_svm_range *last;
	struct kfd_v2_image image;
	long long before, available;
	int i;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	if (switch_xnack(&self->kfd))
		SKIP(return, "the GPUs cannot switch XNACK");
	if (reserved() < 0)
		SKIP(return, "no mem_limit of amdkfd in debugfs");
	ASSERT_EQ(0, make_ranges(&self->kfd));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &image));
	last = last_range(&image);
	ASSERT_NE(NULL, last);
	last->start += SVM_AWAY;
	before = reserved();
	available = kfd_available(&self->kfd, 0);
	/* Memory of the last child may still be reserved, that of the others is not. */
	for (i = 0; i < CHILDREN; i++)
		EXPECT_EQ(0, kfd_in_child(fails_to_resume, &image));
	EXPECT_TRUE(reserved_becomes(before))
		TH_LOG("%lld MiB were %lld", reserved(), before);
	EXPECT_TRUE(kfd_available_becomes(&self->kfd, 0, available));
	free(image.data);
}

/* ---- RESUME that does not wait ---- */

static int resume_file(const struct kfd *kfd, int *fd)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.flags = KFD_CRIU_RESUME_FD,
	};
	const int r = kfd_v2(kfd->fd, &args);

	*fd = args.fd;
	return r;
}

/* The events of poll() of one file, for which this waits; 0 if there are none in time. */
static int wait_for_events(int fd)
{
	struct pollfd file = { .fd = fd, .events = POLLIN };

	return poll(&file, 1, POLL_LIMIT_MS) < 0 ? -errno : file.revents;
}

static int resumes_without_waiting(struct kfd *kfd, void *data)
{
	int fd;

	if (kfd_v2_image_restore(kfd, data))
		return 1;
	if (resume_file(kfd, &fd))
		return 2;
	if (fcntl(fd, F_GETFD) != FD_CLOEXEC)
		return 3;
	if (wait_for_events(fd) != POLLIN)
		return 4;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 5;
	/* It is no pause. */
	if (kfd_v2_unpause(kfd->fd, fd) != -EINVAL)
		return 6;
	return resume_file(kfd, &fd) == -EINVAL ? 0 : 7;
}

TEST_F(states, a_resume_that_does_not_wait_returns_a_file_to_poll)
{
	struct kfd_v2_image image;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &image));
	EXPECT_EQ(0, kfd_in_child(resumes_without_waiting, &image));
	free(image.data);
}

static int fails_later(struct kfd *kfd, void *data)
{
	int fd;

	if (kfd_v2_image_restore(kfd, data))
		return 1;
	if (resume_file(kfd, &fd))
		return 2;
	if (wait_for_events(fd) != POLLERR)
		return 3;
	return kfd_v2_state(kfd) == KFD_CRIU_STATE_ABORTED ? 0 : 4;
}

/* The driver finds out that there is no memory under the range when no process waits. */
TEST_F(states, a_resume_that_fails_when_nobody_waits_is_reported_by_poll)
{
	struct kfd_v2_image image;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_EQ(0, make_ranges(&self->kfd));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &image));
	ASSERT_NE(NULL, last_range(&image));
	last_range(&image)->start += SVM_AWAY;
	EXPECT_EQ(0, kfd_in_child(fails_later, &image));
	free(image.data);
}

static int restores_with_swapped_render_nodes(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;
	const int file = kfd->gpus[0].drm;

	kfd->gpus[0].drm = kfd->gpus[1].drm;
	kfd->gpus[1].drm = file;
	return kfd_v1_image_restore(kfd, image) == -EINVAL ? 0 : 1;
}

TEST_F(states, a_gpu_is_acquired_with_its_own_render_node_only)
{
	if (self->kfd.num_gpus < 2)
		SKIP(return, "fewer than two AMD GPUs");
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(restores_with_swapped_render_nodes, &self->image));
}

static int restores_with_one_id_twice(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;

	image->devices[1].user_gpu_id = image->devices[0].user_gpu_id;
	return kfd_v1_image_restore(kfd, image) == -EINVAL ? 0 : 1;
}

TEST_F(states, two_gpus_with_the_same_id_are_refused)
{
	if (self->kfd.num_gpus < 2)
		SKIP(return, "fewer than two AMD GPUs");
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(restores_with_one_id_twice, &self->image));
}

static int export_size(struct kfd *kfd, __u64 handle)
{
	struct kfd_ioctl_export_dmabuf_args args = {
		.handle = handle,
		.flags = O_CLOEXEC,
	};
	int size, r = ioctl(kfd->fd, AMDKFD_IOC_EXPORT_DMABUF, &args);

	if (r)
		return -errno;
	size = lseek(args.dmabuf_fd, 0, SEEK_END);
	close(args.dmabuf_fd);
	return size;
}

static bool knows_gpu_as(const struct kfd *kfd, __u32 id)
{
	struct kfd_process_device_apertures apertures[KFD_MAX_GPUS] = {};
	struct kfd_ioctl_get_process_apertures_new_args args = {
		.kfd_process_device_apertures_ptr = (unsigned long)apertures,
		.num_of_nodes = kfd->num_gpus,
	};
	unsigned int i;

	if (ioctl(kfd->fd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args))
		return false;
	for (i = 0; i < args.num_of_nodes; i++)
		if (apertures[i].gpu_id == id)
			return true;
	return false;
}

/*
 * Restores on GPU 1 what was on GPU 0, and so on. Handles contain the GPU ids that the
 * process knows (MAKE_HANDLE() of amdkfd), so these must not change.
 */
static int keeps_its_gpu_ids(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;
	const unsigned int n = image->args.num_devices;
	unsigned int i;

	for (i = 0; i < n; i++)
		image->devices[i].actual_gpu_id =
			image->devices[(i + 1) % n].user_gpu_id;
	if (kfd_v1_image_restore(kfd, image) || kfd_v1_resume(kfd->fd, getpid()))
		return 1;
	if (export_size(kfd, image->handle) != 2 * (int)KFD_PAGE)
		return 2;
	for (i = 0; i < n; i++)
		if (!knows_gpu_as(kfd, image->devices[i].user_gpu_id))
			return 3;
	return 0;
}

TEST_F(states, a_process_on_other_gpus_keeps_its_gpu_ids)
{
	if (self->kfd.num_gpus < 2)
		SKIP(return, "fewer than two AMD GPUs");
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	self->image.handle = self->fixture.gtt.handle;
	EXPECT_EQ(0, kfd_in_child(keeps_its_gpu_ids, &self->image));
}

KFD_TEST_MAIN
