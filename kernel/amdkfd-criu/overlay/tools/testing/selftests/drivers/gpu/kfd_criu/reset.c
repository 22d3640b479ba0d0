// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A GPU that is reset before, between and after the operations. The state of a process on
 * the GPU is lost, so it can be neither checkpointed nor resumed; the next process can use
 * the GPU. A reset disturbs a display on the GPU, so tests skip without KFD_CRIU_RESET=1.
 *
 * Runs: per-scheduler, alone
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"

#define LIMIT_S		120

/*
 * Opens the file in debugfs that resets the GPU when it is read; read() returns when the
 * reset is over. The file's folder is named after the PCI device.
 */
static int open_reset(const struct kfd_gpu *gpu)
{
	char device[PATH_MAX], path[PATH_MAX];
	ssize_t length;

	snprintf(path, sizeof(path), "/sys/class/drm/renderD%u/device",
		 gpu->render_minor);
	length = readlink(path, device, sizeof(device) - 1);
	if (length < 0)
		return -1;
	device[length] = '\0';
	snprintf(path, sizeof(path),
		 "/sys/kernel/debug/dri/%s/amdgpu_gpu_recover",
		 basename(device));
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool may_reset(void)
{
	const char *answer = getenv("KFD_CRIU_RESET");

	return answer && !strcmp(answer, "1");
}

static int reset_gpu(const struct kfd_gpu *gpu)
{
	const int fd = open_reset(gpu);
	char answer[64];
	int r;

	if (fd < 0)
		return -errno;
	r = read(fd, answer, sizeof(answer)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

FIXTURE(reset) {
	struct kfd kfd;
	struct fixture fixture;
	struct kfd_v1_image v1;
	struct kfd_v2_image image;
};

FIXTURE_SETUP(reset)
{
	int fd;

	memset(&self->v1, 0, sizeof(self->v1));
	memset(&self->image, 0, sizeof(self->image));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (!may_reset())
		SKIP(return, "KFD_CRIU_RESET=1 would reset the GPU");
	fd = open_reset(&self->kfd.gpus[0]);
	if (fd < 0)
		SKIP(return, "no amdgpu_gpu_recover in debugfs");
	close(fd);
	ASSERT_EQ(0, fixture_create(&self->kfd, &self->fixture, FIXTURE_BOS));
}

FIXTURE_TEARDOWN(reset)
{
	kfd_v1_image_close_files(&self->v1);
	kfd_v1_image_free(&self->v1);
	free(self->image.data);
	kfd_close(&self->kfd);
}

TEST_F_TIMEOUT(reset, a_process_that_lost_its_gpu_is_not_checkpointed, LIMIT_S)
{
	ASSERT_EQ(0, reset_gpu(&self->kfd.gpus[0]));
	EXPECT_EQ(-ENOTRECOVERABLE,
		  kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(-ENOTRECOVERABLE,
		  kfd_v2_pause(self->kfd.fd, &self->image.pause_fd));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

TEST_F_TIMEOUT(reset, a_paused_process_that_lost_its_gpu_can_only_be_unpaused, LIMIT_S)
{
	ASSERT_EQ(0, kfd_v1_image_prepare(self->kfd.fd, &self->v1));
	ASSERT_EQ(0, kfd_v2_image_prepare(self->kfd.fd, &self->image));
	ASSERT_EQ(0, reset_gpu(&self->kfd.gpus[0]));
	EXPECT_EQ(-ENOTRECOVERABLE,
		  kfd_v1_image_checkpoint(self->kfd.fd, &self->v1));
	EXPECT_EQ(-ENOTRECOVERABLE,
		  kfd_v2_image_checkpoint(self->kfd.fd, &self->image));
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	/* UNPAUSE reports the loss: contents that were read since the reset are wrong. */
	EXPECT_EQ(-ENOTRECOVERABLE,
		  kfd_v2_unpause(self->kfd.fd, self->image.pause_fd));
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	EXPECT_EQ(-ENOTRECOVERABLE,
		  kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

static int is_reset_before_resume(struct kfd *kfd, void *data)
{
	const long long before = kfd_available(kfd, 0);

	if (kfd_v2_image_restore(kfd, data))
		return 1;
	if (reset_gpu(&kfd->gpus[0]))
		return 2;
	if (kfd_v2_resume(kfd) != -ENOTRECOVERABLE)
		return 3;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_ABORTED)
		return 4;
	return kfd_available_becomes(kfd, 0, before) ? 0 : 5;
}

static int is_restored(struct kfd *kfd, void *data)
{
	if (kfd_v2_image_restore(kfd, data))
		return 1;
	return kfd_v2_resume(kfd) ? 2 : 0;
}

TEST_F_TIMEOUT(reset, a_restored_process_that_lost_its_gpu_is_not_resumed, LIMIT_S)
{
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(is_reset_before_resume, &self->image));
	/* The image can still be restored, on the GPU after its reset. */
	EXPECT_EQ(0, kfd_in_child(is_restored, &self->image));
}

static int can_use_queue(struct kfd *kfd, void *data)
{
	struct kfd_queue queue;

	(void)data;
	if (kfd_acquire_vms(kfd) || kfd_queue_create(kfd, 0, &queue))
		return 1;
	return kfd_queue_runs(kfd, &queue) ? 0 : 2;
}

TEST_F_TIMEOUT(reset, the_next_process_can_use_the_gpu, LIMIT_S)
{
	ASSERT_EQ(0, reset_gpu(&self->kfd.gpus[0]));
	EXPECT_EQ(0, kfd_in_child(can_use_queue, NULL));
}

KFD_TEST_MAIN
