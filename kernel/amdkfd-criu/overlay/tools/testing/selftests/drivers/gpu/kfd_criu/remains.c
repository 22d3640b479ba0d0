// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A process that was aborted answers nothing about its objects: sysfs and the GPUs' free
 * memory tell of them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "remains.h"

#define PROCESSES	"/sys/class/kfd/kfd/proc"

int remains_count_queues(void)
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

void remains_look(const struct kfd *kfd, struct remains_before *before)
{
	unsigned int i;

	before->files = count_files();
	for (i = 0; i < kfd->num_gpus; i++)
		before->available[i] = kfd_available(kfd, i);
}

/* A GPU that was bound may have another name now. */
static bool is_free_again(const struct kfd *kfd,
			  const struct remains_before *before, unsigned int gpu)
{
	return kfd_available(kfd, gpu) < 0 ||
	       kfd_available_becomes(kfd, gpu, before->available[gpu]);
}

int remains_of(const struct kfd *kfd, const struct remains_before *before)
{
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_PROCESS_INFO };
	const int state = kfd_v2_state(kfd);
	unsigned int i;

	if (state != KFD_CRIU_STATE_RUNNING && state != KFD_CRIU_STATE_ABORTED)
		return REMAINS_STATE;
	if (before->files && count_files() != before->files)
		return REMAINS_FILE;
	if (remains_count_queues() > 0)
		return REMAINS_QUEUE;
	for (i = 0; i < kfd->num_gpus; i++)
		if (!is_free_again(kfd, before, i))
			return REMAINS_MEMORY;
	if (state == KFD_CRIU_STATE_ABORTED)
		return NO_REMAINS;
	if (kfd_criu(kfd->fd, &args) || args.num_bos || args.num_objects)
		return REMAINS_OBJECT;
	return kfd_criu_op(kfd->fd, KFD_CRIU_OP_UNPAUSE) ? REMAINS_PAUSE :
							    NO_REMAINS;
}
