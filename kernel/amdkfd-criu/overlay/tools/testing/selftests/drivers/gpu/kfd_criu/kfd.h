/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * /dev/kfd for tests of checkpoint and restore. Functions return 0 or a negative
 * errno where nothing else is said.
 */
#ifndef KFD_CRIU_SELFTEST_KFD_H
#define KFD_CRIU_SELFTEST_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/kfd_ioctl.h>

#define KFD_MAX_GPUS	16
#define KFD_PAGE	4096UL

/* Of version 1, as CRIU's plugin and amdkfd have them: bytes. */
#define KFD_V1_PROCESS	8
#define KFD_V1_DEVICE	8
#define KFD_V1_BO	272
#define KFD_V1_EVENT	64

struct kfd_gpu {
	__u32 id;
	__u32 render_minor;
	__u32 gfx_version;	/* decimal, 90006 is gfx906 */
	int drm;		/* -1: its VM is not acquired */
};

/* A process's view of all GPUs. */
struct kfd {
	int fd;
	unsigned int num_gpus;
	struct kfd_gpu gpus[KFD_MAX_GPUS];
	__u64 next_va;
};

/* Opens /dev/kfd and the GPUs' render nodes; -ENODEV without a GPU. */
int kfd_open(struct kfd *kfd);
/* Of one GPU, or of all. */
int kfd_acquire_vm(struct kfd *kfd, unsigned int gpu);
int kfd_acquire_vms(struct kfd *kfd);
void kfd_close(struct kfd *kfd);

/* A BO of a GPU, mapped to it and, if it can be, into the process. */
struct kfd_bo {
	__u64 handle;
	__u64 va;
	__u64 size;
	void *cpu;	/* NULL: not mapped */
};

#define KFD_BO_GTT	(KFD_IOC_ALLOC_MEM_FLAGS_GTT | \
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT)
#define KFD_BO_VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | \
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)
#define KFD_BO_USERPTR	(KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | \
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT)

int kfd_bo_create(struct kfd *kfd, unsigned int gpu, __u32 flags, __u64 size,
		  struct kfd_bo *bo);
/* The id of a new signal event, or a negative errno. */
int kfd_event_create(struct kfd *kfd);
/* Bytes of VRAM that a GPU has left, or a negative errno. */
long long kfd_available(const struct kfd *kfd, unsigned int gpu);
/* Within ten seconds: workers free memory. */
bool kfd_available_becomes(const struct kfd *kfd, unsigned int gpu,
			   long long bytes);

/* AMDKFD_IOC_CRIU_OP on a file. */
int kfd_criu(int fd, struct kfd_ioctl_criu_args *args);
int kfd_criu_op(int fd, __u32 op);
int kfd_criu_resume(int fd, int pid);

/* What a checkpoint gave; memory of the process. */
struct kfd_image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket *devices;
	struct kfd_criu_bo_bucket *bos;
	unsigned char *priv;
	__u64 handle;	/* of a BO in it, for whoever wants to tell it */
};

/* Room for what PROCESS_INFO tells. */
int kfd_image_prepare(int fd, struct kfd_image *image);
int kfd_image_checkpoint(int fd, struct kfd_image *image);
/* Both of it. */
int kfd_image_take(int fd, struct kfd_image *image);
/* On the same GPUs, through the render nodes that `kfd` has open. */
int kfd_image_restore(struct kfd *kfd, struct kfd_image *image);
/* The DMA-bufs that came with it. */
void kfd_image_close_files(struct kfd_image *image);
void kfd_image_free(struct kfd_image *image);

/* Files that this process has open. */
int count_files(void);

#endif /* KFD_CRIU_SELFTEST_KFD_H */
