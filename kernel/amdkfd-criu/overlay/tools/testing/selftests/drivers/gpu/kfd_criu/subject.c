// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 */
#include <errno.h>
#include <stdlib.h>
#include "subject.h"
#include "svm.h"

static int make_svm_range(const struct kfd *kfd)
{
	void *memory;

	if (!svm_is_there(kfd))
		return 0;
	memory = svm_memory(KFD_PAGE);
	return memory ? svm_set_access(kfd, memory, KFD_PAGE, 0,
				       KFD_IOCTL_SVM_ATTR_ACCESS) : -errno;
}

int subject_make(struct kfd *kfd, struct subject *subject)
{
	int r = kfd_acquire_vms(kfd);

	r = r ? r : kfd_objects_create(kfd, &subject->has);
	r = r ? r : make_svm_range(kfd);
	return r ? r : kfd_queue_create(kfd, 0, &subject->queue);
}

int subject_take(struct kfd *kfd, struct subject *subject)
{
	int r = kfd_image_take(kfd->fd, &subject->v1);

	kfd_image_close_files(&subject->v1);
	r = r ? r : kfd_v2_image_take(kfd->fd, &subject->v2);
	r = r ? r : kfd_v2_op(kfd->fd, KFD_CRIU_V2_UNPAUSE);
	return r ? r : kfd_queue_destroy(kfd, &subject->queue);
}

void subject_free(struct subject *subject)
{
	kfd_image_free(&subject->v1);
	free(subject->v2.data);
}

/* Where BOs are mapped is told while it is paused. */
int subject_goes_on(const struct kfd *kfd, struct subject *subject)
{
	int r = kfd_v2_op(kfd->fd, KFD_CRIU_V2_PAUSE);

	r = r ? r : kfd_queue_find(kfd, &subject->queue);
	r = r ? r : kfd_v2_op(kfd->fd, KFD_CRIU_V2_UNPAUSE);
	if (r)
		return r;
	return kfd_queue_runs(kfd, &subject->queue) ? 0 : -ETIME;
}

int subject_is_possible(struct kfd *kfd, void *data)
{
	struct subject subject;

	(void)data;
	return subject_make(kfd, &subject) ||
	       !kfd_queue_runs(kfd, &subject.queue);
}
