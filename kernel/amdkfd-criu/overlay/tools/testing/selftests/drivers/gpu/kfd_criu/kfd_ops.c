// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * AMDKFD_IOC_CRIU_OP by both ABIs, and the images that it makes and takes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include "kfd.h"

#define V2_CALL		_IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x22, \
			     sizeof(struct kfd_criu_v2_args))

int kfd_criu(int fd, struct kfd_ioctl_criu_args *args)
{
	return kfd_call(fd, AMDKFD_IOC_CRIU_OP, args);
}

int kfd_criu_op(int fd, __u32 op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return kfd_criu(fd, &args);
}

int kfd_criu_resume(int fd, int pid)
{
	struct kfd_ioctl_criu_args args = {
		.op = KFD_CRIU_OP_RESUME,
		.pid = pid,
	};

	return kfd_criu(fd, &args);
}

static void *room(__u64 count, size_t size)
{
	return calloc(count + 1, size);
}

int kfd_image_prepare(int fd, struct kfd_image *image)
{
	int r;

	memset(image, 0, sizeof(*image));
	image->args.op = KFD_CRIU_OP_PROCESS_INFO;
	r = kfd_criu(fd, &image->args);
	if (r)
		return r;
	image->devices = room(image->args.num_devices, sizeof(*image->devices));
	image->bos = room(image->args.num_bos, sizeof(*image->bos));
	image->priv = room(image->args.priv_data_size, 1);
	image->args.devices = (unsigned long)image->devices;
	image->args.bos = (unsigned long)image->bos;
	image->args.priv_data = (unsigned long)image->priv;
	return image->devices && image->bos && image->priv ? 0 : -ENOMEM;
}

int kfd_image_checkpoint(int fd, struct kfd_image *image)
{
	image->args.op = KFD_CRIU_OP_CHECKPOINT;
	return kfd_criu(fd, &image->args);
}

int kfd_image_take(int fd, struct kfd_image *image)
{
	int r = kfd_image_prepare(fd, image);

	return r ? r : kfd_image_checkpoint(fd, image);
}

int kfd_image_restore(struct kfd *kfd, struct kfd_image *image)
{
	unsigned int i, j;

	for (i = 0; i < image->args.num_devices; i++)
		for (j = 0; j < kfd->num_gpus; j++)
			if (image->devices[i].actual_gpu_id == kfd->gpus[j].id)
				image->devices[i].drm_fd = kfd->gpus[j].drm;
	image->args.op = KFD_CRIU_OP_RESTORE;
	return kfd_criu(kfd->fd, &image->args);
}

void kfd_image_close_files(struct kfd_image *image)
{
	unsigned int i;

	for (i = 0; i < image->args.num_bos; i++) {
		if ((int)image->bos[i].dmabuf_fd > 2)
			close(image->bos[i].dmabuf_fd);
		image->bos[i].dmabuf_fd = -1;
	}
}

void kfd_image_free(struct kfd_image *image)
{
	free(image->devices);
	free(image->bos);
	free(image->priv);
	memset(image, 0, sizeof(*image));
}

int kfd_v2(int fd, struct kfd_criu_v2_args *args)
{
	return kfd_call(fd, V2_CALL, args);
}

int kfd_v2_op(int fd, __u32 op)
{
	struct kfd_criu_v2_args args = { .op = op };

	return kfd_v2(fd, &args);
}

int kfd_v2_resume(const struct kfd *kfd)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_RESUME,
		.pid = getpid(),
	};

	return kfd_v2(kfd->fd, &args);
}

int kfd_v2_state(const struct kfd *kfd)
{
	struct kfd_criu_v2_args args = { .op = KFD_CRIU_V2_STATE };
	int r = kfd_v2(kfd->fd, &args);

	return r ? r : (int)args.state;
}

int kfd_v2_export(const struct kfd *kfd, __u64 handle, int *fd)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_EXPORT_BO,
		.gpu_id = handle >> 32,
		.handle = handle,
	};
	int r = kfd_v2(kfd->fd, &args);

	*fd = args.fd;
	return r;
}

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

int kfd_v2_image_take(int fd, struct kfd_v2_image *image)
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
