/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Buffer objects. Functions return 0 or a negative errno.
 */
#ifndef KFD_CRIU_SELFTEST_BO_H
#define KFD_CRIU_SELFTEST_BO_H

#include "kfd.h"

/* AMDKFD_IOC_AVAILABLE_MEMORY counts VRAM in units of this size. */
#define KFD_VRAM_SIZE	(2 << 20)

struct kfd_bo {
	__u64 handle;
	__u64 va;	/* address for the GPU */
	__u64 size;	/* 0: the fixture does not have this BO */
	void *cpu;	/* NULL: the process does not map it */
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

/*
 * Creates a BO and maps it to the GPU. The process maps GTT and user memory, and VRAM
 * only with KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC.
 */
int kfd_bo_create(struct kfd *kfd, unsigned int gpu, __u32 flags, __u64 size,
		  struct kfd_bo *bo);
/* Creates a BO that the process maps: in VRAM, or in GTT behind a small BAR. */
int kfd_bo_create_visible(struct kfd *kfd, unsigned int gpu, __u64 size,
			  struct kfd_bo *bo);
/* Creates a BO from memory that the process has already. */
int kfd_bo_wrap(struct kfd *kfd, unsigned int gpu, void *memory, __u64 size,
		struct kfd_bo *bo);
/* Stores a new DMA-buf file of the BO in *fd. */
int kfd_bo_export(const struct kfd *kfd, __u64 handle, int *fd);
/* Creates a BO from the memory of a DMA-buf. The process does not map it. */
int kfd_bo_import(struct kfd *kfd, unsigned int gpu, int fd, __u64 size,
		  struct kfd_bo *bo);
/* Maps the BO to another GPU too. */
int kfd_bo_map_to_gpu(const struct kfd *kfd, unsigned int gpu, __u64 handle);
int kfd_bo_free(const struct kfd *kfd, unsigned int gpu,
		const struct kfd_bo *bo);
/*
 * Moves the process's mapping to the address that the GPU uses, as ROCm does. Without
 * firmware that schedules, the driver reads write pointers at that address of the process.
 */
int kfd_bo_move_to_va(struct kfd_bo *bo);
/* In a restored process: maps the BO at the address that the GPU uses. */
int kfd_bo_remap(const struct kfd *kfd, int pause_fd, unsigned int gpu,
		 struct kfd_bo *bo);

#endif /* KFD_CRIU_SELFTEST_BO_H */
