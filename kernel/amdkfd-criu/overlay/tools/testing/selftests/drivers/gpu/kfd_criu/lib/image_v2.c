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
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };
	int r = kfd_v2(fd, &args);

	if (r)
		return r;
	image->pause_fd = args.fd;
	image->gpus_of = NULL;
	image->size = args.data_size;
	image->data = calloc(1, image->size + 64);
	return image->data ? 0 : -ENOMEM;
}

int kfd_v2_image_checkpoint(int fd, const struct kfd_v2_image *image)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_CHECKPOINT,
		.pause_fd = image->pause_fd,
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
			    const struct kfd_criu_gpu *devices,
			    unsigned int num_devices)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESTORE,
		.data = (unsigned long)image->data,
		.data_size = image->size,
		.gpus = (unsigned long)devices,
		.num_gpus = num_devices,
	};

	return kfd_v2(kfd->fd, &args);
}

int kfd_v2_image_restore_with(const struct kfd *kfd,
			      const struct kfd_v2_image *image,
			      const struct kfd_criu_shared_memory *memories,
			      unsigned int num_memories)
{
	struct kfd_criu_gpu gpus[KFD_MAX_GPUS];
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESTORE,
		.data = (unsigned long)image->data,
		.data_size = image->size,
		.gpus = (unsigned long)gpus,
		.num_gpus = kfd_v2_image_gpus(kfd, image, gpus),
		.memories = (unsigned long)memories,
		.num_memories = num_memories,
	};

	return kfd_v2(kfd->fd, &args);
}

unsigned int kfd_v2_image_gpus(const struct kfd *kfd,
			       const struct kfd_v2_image *image,
			       struct kfd_criu_gpu *gpus)
{
	const struct kfd_criu_record_device *device;
	unsigned int i, n = 0;

	if (image->gpus_of)
		image = image->gpus_of;
	for (i = 0; i < kfd->num_gpus; i++) {
		const struct kfd_gpu *gpu = &kfd->gpus[i];

		device = v2_device(image, gpu->id);
		if (!device)
			continue;
		gpus[n++] = (struct kfd_criu_gpu){
			.user_gpu_id = gpu->id,
			.gpu_id = gpu->id,
			.drm_fd = device->flags & KFD_CRIU_DEVICE_ACQUIRED ?
					  gpu->drm : -1,
		};
	}
	return n;
}

struct kfd_criu_record_device *v2_device(const struct kfd_v2_image *image,
					 __u32 user_gpu_id)
{
	struct kfd_criu_record_device *device;
	unsigned int i;

	for (i = 0; (device = (void *)v2_nth(image, KFD_CRIU_RECORD_DEVICE, i)); i++)
		if (device->user_gpu_id == user_gpu_id)
			return device;
	return NULL;
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

struct kfd_criu_record_bo *v2_bo(const struct kfd_v2_image *image, __u64 handle)
{
	struct kfd_criu_record_bo *bo;
	unsigned int i;

	for (i = 0; (bo = (void *)v2_nth(image, KFD_CRIU_RECORD_BO, i)); i++)
		if (bo->gpu_id == handle >> 32 && bo->handle == (__u32)handle)
			break;
	return bo;
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
