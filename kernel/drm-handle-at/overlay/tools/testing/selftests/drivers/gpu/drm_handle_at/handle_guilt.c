// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The list of contexts tells which have seen a GPU reset and which are guilty of one. A
 * reset disturbs a display on the GPU, so tests skip without KFD_CRIU_RESET=1.
 *
 * Runs: alone
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"
#include "lib/job.h"

#define GUILTY		77	/* the context whose job hangs */
#define INNOCENT	78
#define AFTERWARDS	79
/* The driver ends a job after amdgpu.lockup_timeout, which is 10 s by default. */
#define JOB_LIMIT_S	60
#define LIMIT_S		120

FIXTURE(handle_guilt) {
	int drm;
	struct drm_amdgpu_list_context contexts[8];
};

/* Opens the file in debugfs that resets the GPU when it is read. */
static int open_reset(int drm)
{
	char link[64], device[PATH_MAX], path[PATH_MAX];
	struct stat status;
	ssize_t length;

	if (fstat(drm, &status))
		return -1;
	snprintf(link, sizeof(link), "/sys/dev/char/%u:%u/device", major(status.st_rdev),
		 minor(status.st_rdev));
	length = readlink(link, device, sizeof(device) - 1);
	if (length < 0)
		return -1;
	device[length] = '\0';
	snprintf(path, sizeof(path), "/sys/kernel/debug/dri/%s/amdgpu_gpu_recover",
		 basename(device));
	return open(path, O_RDONLY | O_CLOEXEC);
}

FIXTURE_SETUP(handle_guilt)
{
	const char *answer = getenv("KFD_CRIU_RESET");

	self->drm = drm_open("amdgpu", DRM_RENDER_NODE);
	if (self->drm == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (!answer || strcmp(answer, "1"))
		SKIP(return, "KFD_CRIU_RESET=1 would reset the GPU");
	ASSERT_LE(0, self->drm);
	ASSERT_EQ(0, context_create_at(self->drm, GUILTY));
	ASSERT_EQ(0, context_create_at(self->drm, INNOCENT));
}

FIXTURE_TEARDOWN(handle_guilt)
{
	close(self->drm);
}

/*
 * What the ordinary ioctl says about the context, as AMDGPU_LIST_CONTEXT_*. *over: no reset is
 * in progress.
 */
static __u32 queried_flags(int drm, __u32 id, bool *over)
{
	union drm_amdgpu_ctx args = {
		.in = {
			.op = AMDGPU_CTX_OP_QUERY_STATE2,
			.ctx_id = id,
		},
	};
	__u32 flags = 0;

	if (drm_call(drm, DRM_IOCTL_AMDGPU_CTX, &args))
		return ~0U;
	if (args.out.state.flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY)
		flags |= AMDGPU_LIST_CONTEXT_GUILTY;
	if (args.out.state.flags &
	    (AMDGPU_CTX_QUERY2_FLAGS_RESET | AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST))
		flags |= AMDGPU_LIST_CONTEXT_RESET;
	*over = !(args.out.state.flags & AMDGPU_CTX_QUERY2_FLAGS_RESET_IN_PROGRESS);
	return flags;
}

/* Waits until a reset has been and is over, so that the flags do not change any more. */
static bool wait_for_reset(int drm)
{
	const time_t end = time(NULL) + JOB_LIMIT_S;
	bool over;

	do {
		if (queried_flags(drm, INNOCENT, &over) & AMDGPU_LIST_CONTEXT_RESET && over)
			return true;
	} while (time(NULL) < end);
	return false;
}

TEST_F_TIMEOUT(handle_guilt, the_context_whose_job_hung_is_guilty, LIMIT_S)
{
	struct gated_job job, again;
	bool over;
	__u32 flags;
	int r;

	ASSERT_EQ(0, gated_job_submit(&job, self->drm, GUILTY, 1));
	r = gated_job_wait(&job, JOB_LIMIT_S);
	/* The fence of a job that a reset has ended has an error, or is just signaled. */
	ASSERT_TRUE(!r || r == -ETIME || r == -ECANCELED || r == -ENODATA)
		TH_LOG("the job: %d", r);
	ASSERT_TRUE(wait_for_reset(self->drm));
	ASSERT_EQ(0, context_create_at(self->drm, AFTERWARDS));
	ASSERT_EQ(3, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, 8));
	flags = self->contexts[0].flags;
	EXPECT_EQ(queried_flags(self->drm, GUILTY, &over), flags);
	EXPECT_EQ(AMDGPU_LIST_CONTEXT_RESET, flags & ~AMDGPU_LIST_CONTEXT_GUILTY);
	EXPECT_EQ(AMDGPU_LIST_CONTEXT_RESET, self->contexts[1].flags);
	EXPECT_EQ(0, self->contexts[2].flags);

	/*
	 * The driver calls nobody guilty if the reset of the ring was enough. Then the
	 * context is refused for the error of its job.
	 */
	TH_LOG("the context is %sguilty", flags & AMDGPU_LIST_CONTEXT_GUILTY ? "" : "not ");
	gated_job_free(&job);
	r = gated_job_submit(&again, self->drm, GUILTY, 1);
	EXPECT_TRUE(r == -ECANCELED || (r == -ETIME && !(flags & AMDGPU_LIST_CONTEXT_GUILTY)))
		TH_LOG("another job: %d", r);
	gated_job_open_gate(&again);
	gated_job_free(&again);
}

TEST_F_TIMEOUT(handle_guilt, a_reset_that_nobody_is_guilty_of_is_seen_by_all_contexts, LIMIT_S)
{
	const int fd = open_reset(self->drm);
	char answer[64];

	if (fd < 0)
		SKIP(return, "no amdgpu_gpu_recover in debugfs");
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, 8));
	EXPECT_EQ(0, self->contexts[0].flags);
	EXPECT_EQ(0, self->contexts[1].flags);
	ASSERT_LT(0, read(fd, answer, sizeof(answer)));
	close(fd);
	ASSERT_TRUE(wait_for_reset(self->drm));
	ASSERT_EQ(0, context_create_at(self->drm, AFTERWARDS));
	ASSERT_EQ(3, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, 8));
	EXPECT_EQ(AMDGPU_LIST_CONTEXT_RESET, self->contexts[0].flags);
	EXPECT_EQ(AMDGPU_LIST_CONTEXT_RESET, self->contexts[1].flags);
	EXPECT_EQ(0, self->contexts[2].flags);
}

DRM_TEST_MAIN
