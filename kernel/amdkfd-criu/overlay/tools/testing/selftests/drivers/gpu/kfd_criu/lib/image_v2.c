// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Sizes in an image are trusted: the kernel wrote it.
 */
#include <errno.h>
#include <stdlib.h>
#include "criu_op.h"
#include "image_v2.h"

int kfd_v2_image_prepare(int fd, struct kfd_v2_image *image)
{
	struct kfd_criu_v2_args args = { .op = KFD_CRIU_V2_PAUSE };
	int r = kfd_v2(fd, &args);

	if (r)
		return r;
	image->size = args.data_size;
	image->data = calloc(1, image->size + 64);
	return image->data ? 0 : -ENOMEM;
}

int kfd_v2_image_checkpoint(int fd, const struct kfd_v2_image *image)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_CHECKPOINT,
		.data = (unsigned long)image->data,
		.data_size = image->size,
	};
	int r = kfd_v2(fd, &args);

	return !r && args.data_size != image->size ? -EPROTO : r;
}

int kfd_v2_image_dump(int fd, struct kfd_v2_image *image)
{
	int r = kfd_v2_image_prepare(fd, image);

	return r ? r : kfd_v2_image_checkpoint(fd, image);
}

int kfd_v2_image_restore(const struct kfd *kfd,
			 const struct kfd_v2_image *image)
{
	return kfd_v2_image_restore_with(kfd, image, NULL, 0);
}

int kfd_v2_image_restore_on(const struct kfd *kfd,
			    const struct kfd_v2_image *image,
			    const struct kfd_criu_v2_device *devices,
			    unsigned int num_devices)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_RESTORE,
		.data = (unsigned long)image->data,
		.data_size = image->size,
		.devices = (unsigned long)devices,
		.num_devices = num_devices,
	};

	return kfd_v2(kfd->fd, &args);
}

int kfd_v2_image_restore_with(const struct kfd *kfd,
			      const struct kfd_v2_image *image,
			      const struct kfd_criu_v2_memory *memories,
			      unsigned int num_memories)
{
	struct kfd_criu_v2_device devices[KFD_MAX_GPUS] = {};
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_RESTORE,
		.data = (unsigned long)image->data,
		.data_size = image->size,
		.devices = (unsigned long)devices,
		.num_devices = kfd->num_gpus,
		.memories = (unsigned long)memories,
		.num_memories = num_memories,
	};
	unsigned int i;

	for (i = 0; i < kfd->num_gpus; i++) {
		devices[i].user_gpu_id = kfd->gpus[i].id;
		devices[i].gpu_id = kfd->gpus[i].id;
		devices[i].drm_fd = kfd->gpus[i].drm;
	}
	return kfd_v2(kfd->fd, &args);
}

struct kfd_criu_record *v2_record(const struct kfd_v2_image *image, __u64 at)
{
	return (struct kfd_criu_record *)(image->data + at);
}

struct kfd_criu_record *v2_nth(const struct kfd_v2_image *image, __u32 type,
			       unsigned int n)
{
	struct kfd_criu_record *record;
	__u64 at;

	for (at = 0; at < image->size; at += record->size) {
		record = v2_record(image, at);
		if (record->type == type && n-- == 0)
			return record;
	}
	return NULL;
}

__u64 v2_fixed_size(__u32 type)
{
	static const __u64 sizes[] = {
		sizeof(struct kfd_criu_record),
		sizeof(struct kfd_criu_record_image),
		sizeof(struct kfd_criu_record_device),
		sizeof(struct kfd_criu_record_process),
		sizeof(struct kfd_criu_record_bo),
		sizeof(struct kfd_criu_record_queue),
		sizeof(struct kfd_criu_record_event_page),
		sizeof(struct kfd_criu_record_event),
		sizeof(struct kfd_criu_record_svm_range),
	};

	return sizes[type < sizeof(sizes) / sizeof(*sizes) ? type : 0];
}
