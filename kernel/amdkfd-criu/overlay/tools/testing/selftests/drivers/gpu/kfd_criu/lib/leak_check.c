// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The driver refuses every operation on an aborted process, so sysfs and the GPUs' free
 * memory have to show whether any of its objects is left.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "criu_op.h"
#include "leak_check.h"

#define PROCESSES	"/sys/class/kfd/kfd/proc"

int leak_count_queues(void)
{
	DIR *folder;
	char path[64];
	int n = 0;

	snprintf(path, sizeof(path), PROCESSES "/%d/queues", getpid());
	folder = opendir(path);
	if (!folder)
		return -errno;
	while (readdir(folder))
		n++;
	closedir(folder);
	return n - 2;	/* . and .. */
}

void leak_baseline_take(const struct kfd *kfd, struct leak_baseline *baseline)
{
	unsigned int i;

	baseline->files = count_files();
	for (i = 0; i < kfd->num_gpus; i++)
		baseline->available[i] = kfd_available(kfd, i);
}

/* The process may know the GPU by another id now; then its memory cannot be asked for. */
static bool is_free_again(const struct kfd *kfd,
			  const struct leak_baseline *baseline, unsigned int gpu)
{
	return kfd_available(kfd, gpu) < 0 ||
	       kfd_available_becomes(kfd, gpu, baseline->available[gpu]);
}

int leak_check(const struct kfd *kfd, const struct leak_baseline *baseline)
{
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_PROCESS_INFO };
	const int state = kfd_v2_state(kfd);
	unsigned int i;

	if (state != KFD_CRIU_STATE_RUNNING && state != KFD_CRIU_STATE_ABORTED)
		return LEAK_STATE;
	if (baseline->files && count_files() != baseline->files)
		return LEAK_FILE;
	if (leak_count_queues() > 0)
		return LEAK_QUEUE;
	for (i = 0; i < kfd->num_gpus; i++)
		if (!is_free_again(kfd, baseline, i))
			return LEAK_MEMORY;
	if (state == KFD_CRIU_STATE_ABORTED)
		return LEAK_NONE;
	if (kfd_v1(kfd->fd, &args) || args.num_bos || args.num_objects)
		return LEAK_OBJECT;
	return kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE) ? LEAK_PAUSE :
							    LEAK_NONE;
}
