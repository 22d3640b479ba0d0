// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoints a process with FIXTURE_PORTABLE into an image in memory, and restores it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "criu_op.h"
#include "image_file.h"

/* Where mmap offsets of /dev/kfd have the GPU id (KFD_MMAP_GPU_ID() of amdkfd). */
#define GPU_ID_SHIFT		46
#define GPU_ID_MASK		(0xffffULL << GPU_ID_SHIFT)

/* ---- to an image ---- */

static bool has_contents(const struct kfd_criu_bo_bucket *bo)
{
	return bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_GTT |
				  KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
}

static int copy_contents(const struct kfd *kfd, struct image_file *file)
{
	const struct kfd_v1_image *image = &file->image;
	unsigned int i;

	if (image->args.num_bos > IMAGE_FILE_BOS)
		return -E2BIG;
	for (i = 0; i < image->args.num_bos; i++) {
		const struct kfd_criu_bo_bucket *bo = &image->bos[i];
		void *bytes;

		if (!has_contents(bo))
			continue;
		bytes = mmap(NULL, bo->size, PROT_READ, MAP_SHARED,
			     kfd->gpus[0].drm, bo->offset);
		file->contents[i] = malloc(bo->size);
		if (bytes == MAP_FAILED || !file->contents[i])
			return -ENOMEM;
		memcpy(file->contents[i], bytes, bo->size);
		munmap(bytes, bo->size);
	}
	return 0;
}

static void copy_numbers(const struct kfd *kfd, const struct fixture *fixture,
			 struct image_file_numbers *numbers)
{
	*numbers = (struct image_file_numbers){
		.gfx_version = kfd->gpus[0].gfx_version,
		.words = fixture->gtt.va,
		.vram = fixture->visible.va,
		.user = fixture->user.va,
		.event_page = fixture->event_page.va,
		.sdma_ring = fixture->sdma.ring.va,
		.sdma_memory = fixture->sdma.memory.va,
		.sdma_id = fixture->sdma.id,
		.sdma_doorbell = fixture->sdma.doorbell_offset,
		.sdma_written = fixture->sdma.written,
		.compute_ring = fixture->pm4.ring.va,
		.compute_memory = fixture->pm4.memory.va,
		.compute_id = fixture->pm4.id,
		.compute_doorbell = fixture->pm4.doorbell_offset,
		.compute_written = fixture->pm4.written,
		.set_event = fixture->set_event,
		.waiting_event = fixture->events[KFD_IOC_EVENT_SIGNAL],
	};
}

int image_file_dump(const struct kfd *kfd, const struct fixture *fixture,
		    struct image_file *file)
{
	int r;

	memset(file, 0, sizeof(*file));
	copy_numbers(kfd, fixture, &file->numbers);
	r = kfd_v1_image_dump(kfd->fd, &file->image);
	kfd_v1_image_close_files(&file->image);
	if (r)
		return r;
	r = copy_contents(kfd, file);
	if (r)
		return r;
	file->host = malloc(FIXTURE_HOST_BYTES);
	if (!file->host)
		return -ENOMEM;
	memcpy(file->host, (void *)FIXTURE_HOST_MEMORY, FIXTURE_HOST_BYTES);
	return 0;
}

/* ---- from an image ---- */

static void take_queue(struct kfd_queue *queue, __u64 id, __u64 ring,
		       __u64 memory, __u64 written)
{
	queue->id = id;
	queue->ring.va = ring;
	queue->ring.size = KFD_PAGE;
	queue->memory.va = memory;
	queue->memory.size = KFD_PAGE;
	queue->written = written;
}

/* The fixture as it was when the image was made, without mappings. */
static void take_numbers(const struct image_file_numbers *numbers,
			 struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->kind = FIXTURE_PORTABLE;
	fixture->gtt.va = numbers->words;
	fixture->visible.va = numbers->vram;
	fixture->user.va = numbers->user;
	fixture->user.cpu = (void *)FIXTURE_HOST_MEMORY;
	fixture->svm = (void *)(FIXTURE_HOST_MEMORY + KFD_PAGE);
	fixture->svm_writable = true;
	fixture->event_page.va = numbers->event_page;
	fixture->set_event = numbers->set_event;
	fixture->events[KFD_IOC_EVENT_SIGNAL] = numbers->waiting_event;
	take_queue(&fixture->sdma, numbers->sdma_id, numbers->sdma_ring,
		   numbers->sdma_memory, numbers->sdma_written);
	take_queue(&fixture->pm4, numbers->compute_id, numbers->compute_ring,
		   numbers->compute_memory, numbers->compute_written);
}

/* Stores where the process has mapped the BO that the GPU knows at an address. */
static void set_mapping(struct fixture *fixture, __u64 va, void *cpu)
{
	struct kfd_bo *const bos[] = {
		&fixture->gtt,		&fixture->visible,
		&fixture->sdma.ring,	&fixture->sdma.memory,
		&fixture->pm4.ring,	&fixture->pm4.memory,
	};
	unsigned int i;

	for (i = 0; i < sizeof(bos) / sizeof(*bos); i++)
		if (bos[i]->va == va)
			bos[i]->cpu = cpu;
}

static int write_contents(const struct kfd *kfd, const struct image_file *file,
			  struct fixture *fixture)
{
	const struct kfd_v1_image *image = &file->image;
	unsigned int i;

	for (i = 0; i < image->args.num_bos; i++) {
		const struct kfd_criu_bo_bucket *bo = &image->bos[i];
		void *bytes;

		if (!has_contents(bo))
			continue;
		bytes = mmap(NULL, bo->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     kfd->gpus[0].drm, bo->restored_offset);
		if (bytes == MAP_FAILED)
			return -errno;
		memcpy(bytes, file->contents[i], bo->size);
		set_mapping(fixture, bo->addr, bytes);
	}
	return 0;
}

/* The mmap offset of a doorbell contains the GPU id of the machine. */
static int map_doorbell(const struct kfd *kfd, struct kfd_queue *queue,
			__u64 offset)
{
	const __u64 id = kfd->gpus[0].id;

	return kfd_queue_map_doorbell(kfd, queue, (offset & ~GPU_ID_MASK) |
						  id << GPU_ID_SHIFT);
}

int image_file_restore(struct kfd *kfd, struct image_file *file,
		       struct fixture *fixture)
{
	const struct image_file_numbers *numbers = &file->numbers;
	int r;

	take_numbers(numbers, fixture);
	r = fixture_map_host_memory();
	r = r ? r : kfd_v1_image_restore(kfd, &file->image);
	kfd_v1_image_close_files(&file->image);
	if (r)
		return r;
	memcpy((void *)FIXTURE_HOST_MEMORY, file->host, FIXTURE_HOST_BYTES);
	r = write_contents(kfd, file, fixture);
	r = r ? r : map_doorbell(kfd, &fixture->sdma, numbers->sdma_doorbell);
	r = r ? r : map_doorbell(kfd, &fixture->pm4, numbers->compute_doorbell);
	return r ? r : kfd_v1_resume(kfd->fd, getpid());
}
