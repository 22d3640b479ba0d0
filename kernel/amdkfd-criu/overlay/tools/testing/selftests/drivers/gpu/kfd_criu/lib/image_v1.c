// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Sizes in an image are trusted: the kernel wrote it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "criu_op.h"
#include "image_v1.h"

static void *allocate(__u64 count, size_t size)
{
	return calloc(count + 1, size);
}

int kfd_v1_image_prepare(int fd, struct kfd_v1_image *image)
{
	int r;

	memset(image, 0, sizeof(*image));
	image->args.op = KFD_CRIU_OP_PROCESS_INFO;
	r = kfd_v1(fd, &image->args);
	if (r)
		return r;
	image->devices = allocate(image->args.num_devices, sizeof(*image->devices));
	image->bos = allocate(image->args.num_bos, sizeof(*image->bos));
	image->priv = allocate(image->args.priv_data_size, 1);
	image->args.devices = (unsigned long)image->devices;
	image->args.bos = (unsigned long)image->bos;
	image->args.priv_data = (unsigned long)image->priv;
	return image->devices && image->bos && image->priv ? 0 : -ENOMEM;
}

int kfd_v1_image_checkpoint(int fd, struct kfd_v1_image *image)
{
	image->args.op = KFD_CRIU_OP_CHECKPOINT;
	return kfd_v1(fd, &image->args);
}

int kfd_v1_image_dump(int fd, struct kfd_v1_image *image)
{
	int r = kfd_v1_image_prepare(fd, image);

	return r ? r : kfd_v1_image_checkpoint(fd, image);
}

int kfd_v1_image_restore(struct kfd *kfd, struct kfd_v1_image *image)
{
	unsigned int i, j;

	for (i = 0; i < image->args.num_devices; i++)
		for (j = 0; j < kfd->num_gpus; j++)
			if (image->devices[i].actual_gpu_id == kfd->gpus[j].id)
				image->devices[i].drm_fd = kfd->gpus[j].drm;
	image->args.op = KFD_CRIU_OP_RESTORE;
	return kfd_v1(kfd->fd, &image->args);
}

void kfd_v1_image_close_files(struct kfd_v1_image *image)
{
	unsigned int i;

	for (i = 0; i < image->args.num_bos; i++) {
		if ((int)image->bos[i].dmabuf_fd > 2)
			close(image->bos[i].dmabuf_fd);
		image->bos[i].dmabuf_fd = -1;
	}
}

void kfd_v1_image_free(struct kfd_v1_image *image)
{
	free(image->devices);
	free(image->bos);
	free(image->priv);
	memset(image, 0, sizeof(*image));
}

__u32 v1_word(const struct kfd_v1_image *image, __u64 at)
{
	__u32 value;

	memcpy(&value, image->priv + at, sizeof(value));
	return value;
}

__u64 v1_bos(const struct kfd_v1_image *image)
{
	return V1_PROCESS_SIZE + image->args.num_devices * V1_DEVICE_SIZE;
}

__u64 v1_objects(const struct kfd_v1_image *image)
{
	return v1_bos(image) + image->args.num_bos * V1_BO_SIZE;
}

__u64 v1_object_size(const struct kfd_v1_image *image, __u64 at)
{
	switch (v1_word(image, at)) {
	case V1_QUEUE:
		return V1_QUEUE_SIZE + v1_word(image, at + V1_MQD_SIZE) +
		       v1_word(image, at + V1_CTL_STACK_SIZE);
	case V1_EVENT:
		return V1_EVENT_SIZE;
	default:
		return V1_SVM_ATTRIBUTES +
		       (V1_SVM_COMMON + image->args.num_devices) *
		       sizeof(struct kfd_ioctl_svm_attribute);
	}
}
