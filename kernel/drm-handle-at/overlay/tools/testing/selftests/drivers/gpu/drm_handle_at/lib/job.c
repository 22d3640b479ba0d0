// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Submits one job with the ioctls of amdgpu. All versions of SDMA know its packet.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include "drm.h"
#include "job.h"

#define JOB_SIZE	(2 * DRM_PAGE)
/* Where the GPU maps the object. */
#define JOB_VA		(5ULL << 30)
/* The index of the gate, on its own page, and the value with which it is open. */
#define GATE		(DRM_PAGE / 4)
#define GATE_OPEN	1
/* POLL_REGMEM of memory, until it is equal, then NOPs up to the size that IBs have. */
#define IB_WORDS	8
#define POLL_MEMORY	(8U | 3U << 28 | 1U << 31)
/* Retries without end, four clocks apart. */
#define POLL_FOREVER	0x0fff0004U

#define ACCESS \
	(AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_PAGE_EXECUTABLE)

static int map(const struct gated_job *job)
{
	struct drm_amdgpu_gem_va args = {
		.handle = job->object,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = ACCESS,
		.va_address = JOB_VA,
		.map_size = JOB_SIZE,
	};

	return drm_call(job->drm, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

static void write_commands(struct gated_job *job)
{
	const __u64 gate = JOB_VA + 4 * GATE;
	const __u32 words[IB_WORDS] = {
		POLL_MEMORY, (__u32)gate, gate >> 32, GATE_OPEN, ~0U, POLL_FOREVER,
	};
	unsigned int i;

	for (i = 0; i < IB_WORDS; i++)
		job->words[i] = words[i];
	job->words[GATE] = 0;
}

static int submit(struct gated_job *job)
{
	struct drm_amdgpu_bo_list_entry entry = { .bo_handle = job->object };
	struct drm_amdgpu_bo_list_in list = {
		.operation = ~0U,
		.list_handle = ~0U,
		.bo_number = 1,
		.bo_info_size = sizeof(entry),
		.bo_info_ptr = (unsigned long)&entry,
	};
	struct drm_amdgpu_cs_chunk_ib ib = {
		.va_start = JOB_VA,
		.ib_bytes = 4 * IB_WORDS,
		.ip_type = AMDGPU_HW_IP_DMA,
	};
	struct drm_amdgpu_cs_chunk chunks[] = {
		{
			.chunk_id = AMDGPU_CHUNK_ID_IB,
			.length_dw = sizeof(ib) / 4,
			.chunk_data = (unsigned long)&ib,
		},
		{
			.chunk_id = AMDGPU_CHUNK_ID_BO_HANDLES,
			.length_dw = sizeof(list) / 4,
			.chunk_data = (unsigned long)&list,
		},
	};
	const __u64 pointers[] = { (unsigned long)&chunks[0], (unsigned long)&chunks[1] };
	union drm_amdgpu_cs args = {
		.in = {
			.ctx_id = job->context,
			.num_chunks = 2,
			.chunks = (unsigned long)pointers,
		},
	};
	const int r = drm_call(job->drm, DRM_IOCTL_AMDGPU_CS, &args);

	if (!r)
		job->sequence = args.out.handle;
	return r;
}

int gated_job_submit(struct gated_job *job, int drm, __u32 context, __u32 object)
{
	int r;

	memset(job, 0, sizeof(*job));
	job->drm = drm;
	job->context = context;
	job->object = object;
	r = gem_create_at(drm, JOB_SIZE, object);
	if (r)
		return r;
	job->words = gem_mmap(drm, object, JOB_SIZE);
	if (job->words == MAP_FAILED) {
		job->words = NULL;
		return -ENOMEM;
	}
	write_commands(job);
	r = map(job);
	return r ? r : submit(job);
}

void gated_job_open_gate(struct gated_job *job)
{
	job->words[GATE] = GATE_OPEN;
}

int gated_job_wait(const struct gated_job *job, unsigned int limit_s)
{
	union drm_amdgpu_wait_cs args = {
		.in = {
			.handle = job->sequence,
			.ip_type = AMDGPU_HW_IP_DMA,
			.ctx_id = job->context,
		},
	};
	struct timespec now;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &now);
	args.in.timeout = (now.tv_sec + limit_s) * 1000000000ULL + now.tv_nsec;
	r = drm_call(job->drm, DRM_IOCTL_AMDGPU_WAIT_CS, &args);
	return !r && args.out.status ? -ETIME : r;
}

void gated_job_free(struct gated_job *job)
{
	if (job->words)
		munmap((void *)job->words, JOB_SIZE);
	gem_close(job->drm, job->object);
}
