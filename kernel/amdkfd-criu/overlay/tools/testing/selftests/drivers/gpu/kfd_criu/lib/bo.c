// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Every BO gets an address of its own in the GPU's address space, in the order of creation.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include "bo.h"
#include "criu_op.h"

int kfd_bo_map_to_gpu(const struct kfd *kfd, unsigned int gpu, __u64 handle)
{
	__u32 id = kfd->gpus[gpu].id;
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = (unsigned long)&id,
		.n_devices = 1,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args);
}

static __u64 take_va(struct kfd *kfd, __u64 size)
{
	const __u64 va = kfd->next_va;

	kfd->next_va += size + KFD_PAGE;
	return va;
}

int kfd_bo_create(struct kfd *kfd, unsigned int gpu, __u32 flags, __u64 size,
		  struct kfd_bo *bo)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = take_va(kfd, size),
		.size = size,
		.gpu_id = kfd->gpus[gpu].id,
		.flags = flags,
	};
	int r;

	memset(bo, 0, sizeof(*bo));
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
		bo->cpu = mmap(NULL, size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bo->cpu == MAP_FAILED)
			return -errno;
		args.mmap_offset = (unsigned long)bo->cpu;
	}
	r = kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
	if (r)
		return r;
	bo->handle = args.handle;
	bo->va = args.va_addr;
	/* The driver maps the memory of such a BO twice in a row. */
	bo->size = flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM ? size / 2 : size;
	r = kfd_bo_map_to_gpu(kfd, gpu, bo->handle);
	if (r || !(flags & (KFD_IOC_ALLOC_MEM_FLAGS_GTT |
			    KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)))
		return r;
	bo->cpu = mmap(NULL, bo->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       kfd->gpus[gpu].drm, args.mmap_offset);
	return bo->cpu == MAP_FAILED ? -errno : 0;
}

int kfd_bo_create_visible(struct kfd *kfd, unsigned int gpu, __u64 size,
			  struct kfd_bo *bo)
{
	const __u32 flags = kfd->gpus[gpu].visible ?
		KFD_BO_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC : KFD_BO_GTT;

	return kfd_bo_create(kfd, gpu, flags, size, bo);
}

int kfd_bo_export(const struct kfd *kfd, __u64 handle, int *fd)
{
	struct kfd_ioctl_export_dmabuf_args args = {
		.handle = handle,
		.flags = O_CLOEXEC,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_EXPORT_DMABUF, &args);

	*fd = args.dmabuf_fd;
	return r;
}

int kfd_bo_import(struct kfd *kfd, unsigned int gpu, int fd, __u64 size,
		  struct kfd_bo *bo)
{
	struct kfd_ioctl_import_dmabuf_args args = {
		.va_addr = take_va(kfd, size),
		.gpu_id = kfd->gpus[gpu].id,
		.dmabuf_fd = fd,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_IMPORT_DMABUF, &args);

	memset(bo, 0, sizeof(*bo));
	bo->handle = args.handle;
	bo->va = args.va_addr;
	bo->size = size;
	return r ? r : kfd_bo_map_to_gpu(kfd, gpu, bo->handle);
}

int kfd_bo_wrap(struct kfd *kfd, unsigned int gpu, void *memory, __u64 size,
		struct kfd_bo *bo)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = take_va(kfd, size),
		.size = size,
		.mmap_offset = (unsigned long)memory,
		.gpu_id = kfd->gpus[gpu].id,
		.flags = KFD_BO_USERPTR,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	bo->handle = args.handle;
	bo->va = args.va_addr;
	bo->size = size;
	bo->cpu = memory;
	return r ? r : kfd_bo_map_to_gpu(kfd, gpu, bo->handle);
}

int kfd_bo_free(const struct kfd *kfd, unsigned int gpu,
		const struct kfd_bo *bo)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args unmap = {
		.handle = bo->handle,
		.device_ids_array_ptr = (unsigned long)&kfd->gpus[gpu].id,
		.n_devices = 1,
	};
	struct kfd_ioctl_free_memory_of_gpu_args args = {
		.handle = bo->handle,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &unmap);

	return r ? r : kfd_call(kfd->fd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

int kfd_bo_remap(const struct kfd *kfd, int pause_fd, unsigned int gpu,
		 struct kfd_bo *bo)
{
	__u64 offset;
	int r = kfd_v2_bo_offset(kfd, pause_fd, bo->handle >> 32, bo->handle,
				 &offset);

	if (r)
		return r;
	bo->cpu = mmap((void *)(unsigned long)bo->va, bo->size,
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		       kfd->gpus[gpu].drm, offset);
	return bo->cpu == MAP_FAILED ? -errno : 0;
}

int kfd_bo_move_to_va(struct kfd_bo *bo)
{
	bo->cpu = mremap(bo->cpu, bo->size, bo->size,
			 MREMAP_MAYMOVE | MREMAP_FIXED,
			 (void *)(unsigned long)bo->va);
	return bo->cpu == MAP_FAILED ? -errno : 0;
}
