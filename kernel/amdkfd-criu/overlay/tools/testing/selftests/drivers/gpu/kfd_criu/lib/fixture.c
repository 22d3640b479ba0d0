// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Creates the objects of a process and checkpoints them. What the queues do, and how that
 * is checked, is in fixture_check.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "criu_op.h"
#include "event.h"
#include "fixture.h"
#include "fixture_words.h"
#include "leak_check.h"
#include "settings.h"
#include "svm.h"

#define USER_PAGE		FIXTURE_HOST_MEMORY
#define SVM_PAGE		(FIXTURE_HOST_MEMORY + KFD_PAGE)
#define SVM_BYTES		(8 * KFD_PAGE)
#define GRANULARITY		3
#define SVM_LAST		3	/* index of the attribute for the second GPU */
/* Values that every generation of hardware accepts. */
#define APERTURE_BASE		0x100000000ULL
#define TRAP_HANDLER		0x200000000ULL
#define SCRATCH			0x30000000U

/* ---- settings ---- */

/* Settings of GPU 0 and of the process, which the driver accepts only before any queue. */
static int make_settings(const struct kfd *kfd)
{
	const struct kfd_settings settings = {
		.handler = TRAP_HANDLER,
		.scratch = SCRATCH,
		.aperture = APERTURE_BASE,
		.default_policy = KFD_IOC_CACHE_POLICY_NONCOHERENT,
		.alternate_policy = KFD_IOC_CACHE_POLICY_COHERENT,
	};
	struct kfd_ioctl_runtime_enable_args runtime = {
		.r_debug = TRAP_HANDLER,
		.mode_mask = KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK,
	};
	int r = kfd_settings_make(kfd, 0, &settings);

	return r ? r : kfd_call(kfd->fd, AMDKFD_IOC_RUNTIME_ENABLE, &runtime);
}

/* ---- memory ---- */

int fixture_map_host_memory(void)
{
	void *at = mmap((void *)FIXTURE_HOST_MEMORY, FIXTURE_HOST_BYTES,
			PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return at == MAP_FAILED ? -errno : 0;
}

static int create_simple_bos(struct kfd *kfd, struct fixture *fixture)
{
	int r = kfd_bo_create(kfd, 0, KFD_BO_GTT, 2 * KFD_PAGE, &fixture->gtt);

	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_VRAM, KFD_VRAM_SIZE,
				  &fixture->vram[0]);
	return r ? r : kfd_bo_create(kfd, 0, KFD_BO_USERPTR, KFD_PAGE,
				     &fixture->user);
}

static int create_user_bo(struct kfd *kfd, struct fixture *fixture)
{
	int r;

	if (fixture->kind == FIXTURE_FULL)
		return kfd_bo_create(kfd, 0, KFD_BO_USERPTR, KFD_PAGE,
				     &fixture->user);
	r = fixture_map_host_memory();
	return r ? r : kfd_bo_wrap(kfd, 0, (void *)USER_PAGE, KFD_PAGE,
				   &fixture->user);
}

/* Not every machine has a page of registers that processes may map. */
static int create_io_bos(struct kfd *kfd, struct fixture *fixture)
{
	const __u64 slice = kfd->gpus[0].gfx_version < GFX9 ? KFD_PAGE :
							      2 * KFD_PAGE;
	const __u32 flags = KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			    KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	int r;

	r = kfd_bo_create(kfd, 0, flags | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
			  slice, &fixture->doorbells);
	if (r)
		return r;
	r = kfd_bo_create(kfd, 0, flags | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP,
			  KFD_PAGE, &fixture->registers);
	return r == -ENOMEM ? 0 : r;
}

static int create_imports(struct kfd *kfd, struct fixture *fixture)
{
	int fd, r = kfd_bo_export(kfd, fixture->gtt.handle, &fd);

	if (r)
		return r;
	r = kfd_bo_import(kfd, 0, fd, KFD_PAGE, &fixture->imported);
	if (!r && kfd->num_gpus > 1)
		r = kfd_bo_import(kfd, 1, fd, KFD_PAGE, &fixture->imported_peer);
	close(fd);
	return r;
}

/* The BOs that only FIXTURE_FULL has. */
static int create_further_bos(struct kfd *kfd, struct fixture *fixture)
{
	unsigned int i;
	int r = 0;

	for (i = 0; !r && i < FIXTURE_VRAM; i++)
		r = kfd_bo_create(kfd, 0, KFD_BO_VRAM, 2 * KFD_PAGE,
				  &fixture->vram[i]);
	if (!r && kfd->num_gpus > 1)
		r = kfd_bo_map_to_gpu(kfd, 1, fixture->event_page.handle);
	r = r ? r : create_io_bos(kfd, fixture);
	return r ? r : create_imports(kfd, fixture);
}

static int create_memory(struct kfd *kfd, struct fixture *fixture)
{
	int r;

	r = kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &fixture->gtt);
	r = r ? r : kfd_bo_create_visible(kfd, 0, KFD_PAGE, &fixture->visible);
	r = r ? r : create_user_bo(kfd, fixture);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_EVENT_PAGE_SIZE,
				  &fixture->event_page);
	if (!r && fixture->kind == FIXTURE_FULL)
		r = create_further_bos(kfd, fixture);
	r = r ? r : kfd_cwsr_area_create(kfd, 0, &fixture->cwsr_area);
	if (r)
		return r;
	fixture_fill(fixture->visible.cpu);
	fixture_fill(fixture->user.cpu);
	return 0;
}

/* ---- SVM ranges ---- */

static int create_range(const struct kfd *kfd, struct fixture *fixture)
{
	fixture->svm_writable = true;
	return svm_set_access(kfd, fixture->svm, KFD_PAGE, 0,
			      KFD_IOCTL_SVM_ATTR_ACCESS);
}

/* A range with every attribute set, and a range with the least of them. */
static int create_ranges(const struct kfd *kfd, struct fixture *fixture)
{
	const struct kfd_ioctl_svm_attribute attributes[] = {
		{ KFD_IOCTL_SVM_ATTR_ACCESS, kfd->gpus[0].id },
		{ KFD_IOCTL_SVM_ATTR_GRANULARITY, GRANULARITY },
		{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_RO },
		{ KFD_IOCTL_SVM_ATTR_NO_ACCESS, kfd->gpus[1].id },
	};
	int r = svm_set(kfd, fixture->svm, SVM_BYTES / 2, attributes,
			kfd->num_gpus > 1 ? SVM_LAST + 1 : SVM_LAST);

	return r ? r : svm_set_access(kfd, (void *)fixture->svm + SVM_BYTES / 2,
				      SVM_BYTES / 2, 0,
				      KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE);
}

static int create_svm(const struct kfd *kfd, struct fixture *fixture)
{
	if (!svm_is_supported(kfd))
		return fixture->kind == FIXTURE_PORTABLE ? -EOPNOTSUPP : 0;
	if (fixture->kind == FIXTURE_PORTABLE)
		fixture->svm = (__u32 *)SVM_PAGE;
	else
		fixture->svm = svm_memory(SVM_BYTES);
	if (!fixture->svm)
		return -errno;
	fixture_fill(fixture->svm);
	return fixture->kind == FIXTURE_FULL ? create_ranges(kfd, fixture) :
					       create_range(kfd, fixture);
}

/* ---- queues ---- */

struct kfd_queue *fixture_queue(struct fixture *fixture, unsigned int i)
{
	struct kfd_queue *const queues[FIXTURE_QUEUES] = {
		&fixture->pm4,	&fixture->aql,	&fixture->stopped,
		&fixture->sdma, &fixture->xgmi,
	};

	return queues[i];
}

/* From gfx10 on the driver wants compute units in pairs. */
static int set_cu_mask(const struct kfd *kfd, const struct kfd_queue *queue)
{
	const __u32 mask[] = { 0x3, 0, 0, 0xc0000000 };
	struct kfd_ioctl_set_cu_mask_args args = {
		.queue_id = queue->id,
		.num_cu_mask = 32 * sizeof(mask) / sizeof(*mask),
		.cu_mask_ptr = (unsigned long)mask,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_SET_CU_MASK, &args);
}

static int allocate_gws(const struct kfd *kfd, struct fixture *fixture)
{
	struct kfd_ioctl_alloc_queue_gws_args args = {
		.queue_id = fixture->aql.id,
		.num_gws = 1,
	};

	if (!kfd_gpu_property(&kfd->gpus[0], "num_gws"))
		return 0;
	fixture->gws = true;
	return kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_QUEUE_GWS, &args);
}

/* The queues that only FIXTURE_FULL has. */
static int create_further_queues(struct kfd *kfd, struct fixture *fixture)
{
	struct kfd_compute_queue_options options = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
		.priority = FIXTURE_PRIORITY,
		.area = &fixture->cwsr_area,
	};
	int r = set_cu_mask(kfd, &fixture->pm4);

	r = r ? r : kfd_compute_queue_create(kfd, 0, &options,
					     &fixture->stopped);
	options.percentage = KFD_MAX_QUEUE_PERCENTAGE;
	options.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	r = r ? r : kfd_compute_queue_create(kfd, 0, &options, &fixture->aql);
	r = r ? r : allocate_gws(kfd, fixture);
	if (!r && kfd_gpu_property(&kfd->gpus[0], "num_sdma_xgmi_engines"))
		r = kfd_sdma_queue_create(kfd, 0, KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
					  &fixture->xgmi);
	return r;
}

static int create_queues(struct kfd *kfd, struct fixture *fixture)
{
	const struct kfd_compute_queue_options options = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
		.percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.priority = FIXTURE_PRIORITY,
		.area = &fixture->cwsr_area,
	};
	int r = kfd_compute_queue_create(kfd, 0, &options, &fixture->pm4);

	r = r ? r : kfd_queue_create(kfd, 0, &fixture->sdma);
	if (!r && fixture->kind == FIXTURE_FULL)
		r = create_further_queues(kfd, fixture);
	return r;
}

int fixture_destroy_queues(const struct kfd *kfd, struct fixture *fixture)
{
	unsigned int i;
	int r = 0;

	for (i = 0; !r && i < FIXTURE_QUEUES; i++)
		if (fixture_queue(fixture, i)->ring.size)
			r = kfd_queue_destroy(kfd, fixture_queue(fixture, i));
	return r;
}

/* ---- events ---- */

/* A process has one event page, which it names when it creates its first event. */
static int create_events(const struct kfd *kfd, struct fixture *fixture)
{
	const __u32 types = fixture->kind == FIXTURE_FULL ?
		FIXTURE_EVENT_TYPES : KFD_IOC_EVENT_SIGNAL + 1;
	__u32 type;
	int r;

	/* A portable process is checkpointed again after it was checked: its event stays set. */
	r = kfd_event_create_type(kfd, fixture->event_page.handle,
				  KFD_IOC_EVENT_SIGNAL,
				  fixture->kind == FIXTURE_FULL,
				  &fixture->set_event);
	for (type = 0; !r && type < types; type++)
		r = kfd_event_create_type(kfd, 0, type,
					  type == KFD_IOC_EVENT_SIGNAL,
					  &fixture->events[type]);
	return r ? r : kfd_event_set(kfd, fixture->set_event);
}

/* ---- the process ---- */

static int create_simple(struct kfd *kfd, struct fixture *fixture)
{
	int r = create_simple_bos(kfd, fixture);

	r = r ? r : kfd_event_create_type(kfd, 0, KFD_IOC_EVENT_HW_EXCEPTION, false,
					  &fixture->events[KFD_IOC_EVENT_HW_EXCEPTION]);
	if (r || fixture->kind == FIXTURE_BOS)
		return r;
	r = create_svm(kfd, fixture);
	return r ? r : kfd_queue_create(kfd, 0, &fixture->sdma);
}

int fixture_create(struct kfd *kfd, struct fixture *fixture,
		   enum fixture_kind kind)
{
	int r;

	memset(fixture, 0, sizeof(*fixture));
	fixture->kind = kind;
	r = kfd_acquire_vms(kfd);
	if (r)
		return r;
	if (kind < FIXTURE_PORTABLE)
		return create_simple(kfd, fixture);
	if (kind == FIXTURE_PORTABLE && !svm_is_supported(kfd))
		return -EOPNOTSUPP;
	if (kind == FIXTURE_FULL)
		r = make_settings(kfd);
	r = r ? r : create_memory(kfd, fixture);
	r = r ? r : create_queues(kfd, fixture);
	r = r ? r : create_events(kfd, fixture);
	return r ? r : create_svm(kfd, fixture);
}

static int keep_contents(struct fixture *fixture)
{
	const struct kfd_bo *bo;
	unsigned int i;

	for (i = 0; (bo = fixture_content(fixture, i)); i++) {
		if (!bo->size)
			continue;
		fixture->contents[i] = malloc(bo->size);
		if (!fixture->contents[i])
			return -ENOMEM;
		memcpy(fixture->contents[i], bo->cpu, bo->size);
	}
	return 0;
}

int fixture_checkpoint(struct kfd *kfd, struct fixture *fixture)
{
	int r = 0;

	if (fixture->kind >= FIXTURE_PORTABLE)
		r = fixture_start_work(kfd, fixture);
	r = r ? r : kfd_v1_image_dump(kfd->fd, &fixture->v1);
	kfd_v1_image_close_files(&fixture->v1);
	r = r ? r : kfd_v2_image_dump(kfd->fd, &fixture->v2);
	r = r ? r : kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
	r = r ? r : keep_contents(fixture);
	return r ? r : fixture_destroy_queues(kfd, fixture);
}

int fixture_open_checkpointed(struct kfd *kfd, struct fixture *fixture,
			      enum fixture_kind kind)
{
	int r = kfd_open(kfd);

	memset(fixture, 0, sizeof(*fixture));
	r = r ? r : fixture_create(kfd, fixture, kind);
	return r ? r : fixture_checkpoint(kfd, fixture);
}

int fixture_open_running(struct kfd *kfd, struct fixture *fixture,
			 enum fixture_kind kind, struct leak_baseline *before)
{
	int r = fixture_open_checkpointed(kfd, fixture, kind);

	r = r ? r : kfd_v2_unpause(kfd->fd, fixture->v2.pause_fd);
	if (!r)
		leak_baseline_take(kfd, before);
	return r;
}

void fixture_free(struct fixture *fixture)
{
	unsigned int i;

	for (i = 0; i < FIXTURE_CONTENTS; i++)
		free(fixture->contents[i]);
	kfd_v1_image_free(&fixture->v1);
	free(fixture->v2.data);
}
