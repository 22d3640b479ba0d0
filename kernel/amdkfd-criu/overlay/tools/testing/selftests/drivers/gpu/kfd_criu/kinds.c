// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Each queue does something, then stands before a gate with something behind it; one
 * is stopped by its percentage. What the GPU or the driver does not have is left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "kinds.h"
#include "svm.h"
#include "work.h"

#define PAGE_OF_EVENTS		(KFD_SIGNAL_EVENT_LIMIT * 8)
#define SVM_BYTES		(8 * KFD_PAGE)
#define WAIT_LIMIT_MS		10000
#define PRIORITY		11
#define GRANULARITY		3
#define SVM_LAST		3	/* attribute: the second GPU's access */
/* As every generation of hardware can have it. */
#define APERTURE_BASE		0x100000000ULL
#define APERTURE_SIZE		0x10000ULL
#define TRAP_HANDLER		0x200000000ULL
#define SCRATCH			0x30000000U

/* Of struct kinds.words: words, and behind them the signals of the AQL queue. */
enum {
	GATE,
	SDMA_DONE,
	SDMA_BEHIND,
	PM4_DONE,
	PM4_BEHIND,
	XGMI_BEHIND,
	IDLE_BEHIND,
	RUNS,
};

#define GATE_SIGNAL		1024
#define DONE_SIGNAL		1088
#define BEHIND_SIGNAL		1152

/* What the CPU writes over a word of a packet that was done: it is not done again. */
#define SEEN			100
#define PATTERN			0x5eed0001U

static __u32 *word(const struct kinds *kinds, unsigned int i)
{
	return (__u32 *)kinds->words.cpu + i;
}

static __u64 word_va(const struct kinds *kinds, unsigned int i)
{
	return kinds->words.va + i * sizeof(__u32);
}

static struct work_signal *signal_at(const struct kinds *kinds,
				     unsigned int offset)
{
	return kinds->words.cpu + offset;
}

static __u32 read_word(const __u32 *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* ---- the process and its GPUs ---- */

/* On GPU 0; what belongs to the process comes before any queue. */
static int make_settings(const struct kfd *kfd)
{
	struct kfd_ioctl_set_memory_policy_args policy = {
		.gpu_id = kfd->gpus[0].id,
		.default_policy = KFD_IOC_CACHE_POLICY_NONCOHERENT,
		.alternate_policy = KFD_IOC_CACHE_POLICY_COHERENT,
		.alternate_aperture_base = APERTURE_BASE,
		.alternate_aperture_size = APERTURE_SIZE,
	};
	struct kfd_ioctl_set_trap_handler_args trap = {
		.gpu_id = kfd->gpus[0].id,
		.tba_addr = TRAP_HANDLER,
		.tma_addr = TRAP_HANDLER + KFD_PAGE,
	};
	struct kfd_ioctl_set_scratch_backing_va_args scratch = {
		.gpu_id = kfd->gpus[0].id,
		.va_addr = SCRATCH,
	};
	struct kfd_ioctl_runtime_enable_args runtime = {
		.r_debug = TRAP_HANDLER,
		.mode_mask = KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_SET_MEMORY_POLICY, &policy);

	r = r ? r : kfd_call(kfd->fd, AMDKFD_IOC_SET_TRAP_HANDLER, &trap);
	r = r ? r : kfd_call(kfd->fd, AMDKFD_IOC_SET_SCRATCH_BACKING_VA, &scratch);
	return r ? r : kfd_call(kfd->fd, AMDKFD_IOC_RUNTIME_ENABLE, &runtime);
}

/* ---- memory ---- */

static int map_to_second_gpu(const struct kfd *kfd, const struct kfd_bo *bo)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = bo->handle,
		.device_ids_array_ptr = (unsigned long)&kfd->gpus[1].id,
		.n_devices = 1,
	};

	return kfd->num_gpus < 2 ? 0 :
				   kfd_call(kfd->fd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args);
}

/* Not every machine has a page of registers for programs. */
static int make_io(struct kfd *kfd, struct kinds *kinds)
{
	const __u64 slice = kfd->gpus[0].gfx_version < GFX9 ? KFD_PAGE :
							      2 * KFD_PAGE;
	const __u32 flags = KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			    KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	int r;

	r = kfd_bo_create(kfd, 0, flags | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
			  slice, &kinds->doorbells);
	if (r)
		return r;
	r = kfd_bo_create(kfd, 0, flags | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP,
			  KFD_PAGE, &kinds->registers);
	return r == -ENOMEM ? 0 : r;
}

static int make_imports(struct kfd *kfd, struct kinds *kinds)
{
	int fd, r = kfd_bo_export(kfd, kinds->words.handle, &fd);

	if (r)
		return r;
	r = kfd_bo_import(kfd, 0, fd, KFD_PAGE, &kinds->imported);
	if (!r && kfd->num_gpus > 1)
		r = kfd_bo_import(kfd, 1, fd, KFD_PAGE, &kinds->twin);
	close(fd);
	return r;
}

static int make_memory(struct kfd *kfd, struct kinds *kinds)
{
	unsigned int i;
	int r;

	r = kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &kinds->words);
	r = r ? r : kfd_bo_create_visible(kfd, 0, KFD_PAGE, &kinds->visible);
	for (i = 0; !r && i < KINDS_HIDDEN; i++)
		r = kfd_bo_create(kfd, 0, KFD_BO_VRAM, 2 * KFD_PAGE,
				  &kinds->hidden[i]);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_USERPTR, KFD_PAGE,
				  &kinds->user);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, PAGE_OF_EVENTS,
				  &kinds->page);
	r = r ? r : map_to_second_gpu(kfd, &kinds->page);
	r = r ? r : make_io(kfd, kinds);
	r = r ? r : make_imports(kfd, kinds);
	r = r ? r : work_save_area_create(kfd, 0, &kinds->area);
	if (r)
		return r;
	*(__u32 *)kinds->visible.cpu = PATTERN;
	*(__u32 *)kinds->user.cpu = PATTERN;
	return 0;
}

/* One half with everything set, the other as it comes. */
static int make_svm_ranges(const struct kfd *kfd, struct kinds *kinds)
{
	const struct kfd_ioctl_svm_attribute attributes[] = {
		{ KFD_IOCTL_SVM_ATTR_ACCESS, kfd->gpus[0].id },
		{ KFD_IOCTL_SVM_ATTR_GRANULARITY, GRANULARITY },
		{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_RO },
		{ KFD_IOCTL_SVM_ATTR_NO_ACCESS, kfd->gpus[1].id },
	};
	int r;

	if (!svm_is_there(kfd))
		return 0;
	kinds->svm = svm_memory(SVM_BYTES);
	if (!kinds->svm)
		return -errno;
	*kinds->svm = PATTERN;
	r = svm_set(kfd, kinds->svm, SVM_BYTES / 2, attributes,
		    kfd->num_gpus > 1 ? SVM_LAST + 1 : SVM_LAST);
	return r ? r : svm_set_access(kfd, (void *)kinds->svm + SVM_BYTES / 2,
				      SVM_BYTES / 2, 0,
				      KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE);
}

/* ---- queues ---- */

struct kfd_queue *kinds_queue(struct kinds *kinds, unsigned int i)
{
	struct kfd_queue *const queues[KINDS_QUEUES] = {
		&kinds->pm4,  &kinds->aql,  &kinds->idle,
		&kinds->sdma, &kinds->xgmi,
	};

	return queues[i];
}

static int make_xgmi_queue(struct kfd *kfd, struct kfd_queue *queue)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = KFD_PAGE,
		.gpu_id = kfd->gpus[0].id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
	};
	int r;

	if (!kfd_gpu_property(&kfd->gpus[0], "num_sdma_xgmi_engines"))
		return 0;
	r = kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &queue->ring);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &queue->memory);
	if (r)
		return r;
	args.ring_base_address = queue->ring.va;
	args.write_pointer_address = queue->memory.va;
	args.read_pointer_address = queue->memory.va + sizeof(__u64);
	r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_QUEUE, &args);
	queue->id = args.queue_id;
	return r ? r : kfd_queue_map_doorbell(kfd, queue, args.doorbell_offset);
}

/* From gfx10 on compute units come in pairs. */
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

static int allocate_gws(const struct kfd *kfd, struct kinds *kinds)
{
	struct kfd_ioctl_alloc_queue_gws_args args = {
		.queue_id = kinds->aql.id,
		.num_gws = 1,
	};

	if (!kfd_gpu_property(&kfd->gpus[0], "num_gws"))
		return 0;
	kinds->gws = true;
	return kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_QUEUE_GWS, &args);
}

static int make_queues(struct kfd *kfd, struct kinds *kinds)
{
	struct work_compute wish = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
		.percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.priority = PRIORITY,
		.area = &kinds->area,
	};
	int r;

	r = work_compute_create(kfd, 0, &wish, &kinds->pm4);
	r = r ? r : set_cu_mask(kfd, &kinds->pm4);
	wish.percentage = 0;
	r = r ? r : work_compute_create(kfd, 0, &wish, &kinds->idle);
	wish.percentage = KFD_MAX_QUEUE_PERCENTAGE;
	wish.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	r = r ? r : work_compute_create(kfd, 0, &wish, &kinds->aql);
	r = r ? r : allocate_gws(kfd, kinds);
	r = r ? r : kfd_queue_create(kfd, 0, &kinds->sdma);
	return r ? r : make_xgmi_queue(kfd, &kinds->xgmi);
}

/* ---- events ---- */

static int make_event(const struct kfd *kfd, __u64 page, __u32 type, __u32 *id)
{
	struct kfd_ioctl_create_event_args args = {
		.event_page_offset = page,
		.event_type = type,
		.auto_reset = type == KFD_IOC_EVENT_SIGNAL,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_EVENT, &args);

	*id = args.event_id;
	return r;
}

/* The process has one page, which comes with its first event. */
static int make_events(const struct kfd *kfd, struct kinds *kinds)
{
	struct kfd_ioctl_set_event_args set;
	__u32 type;
	int r;

	r = make_event(kfd, kinds->page.handle, KFD_IOC_EVENT_SIGNAL,
		       &kinds->set_event);
	for (type = 0; !r && type < KINDS_EVENT_TYPES; type++)
		r = make_event(kfd, 0, type, &kinds->events[type]);
	set.event_id = kinds->set_event;
	return r ? r : kfd_call(kfd->fd, AMDKFD_IOC_SET_EVENT, &set);
}

int kinds_make(struct kfd *kfd, struct kinds *kinds)
{
	int r;

	memset(kinds, 0, sizeof(*kinds));
	r = kfd_acquire_vms(kfd);
	r = r ? r : make_settings(kfd);
	r = r ? r : make_memory(kfd, kinds);
	r = r ? r : make_queues(kfd, kinds);
	r = r ? r : make_events(kfd, kinds);
	return r ? r : make_svm_ranges(kfd, kinds);
}

/* ---- work that ends ---- */

static bool pm4_runs(struct kinds *kinds)
{
	__atomic_store_n(word(kinds, RUNS), 0, __ATOMIC_RELEASE);
	work_pm4_write(&kinds->pm4, word_va(kinds, RUNS), 1);
	return work_becomes(word(kinds, RUNS), 1);
}

static bool aql_runs(const struct kfd *kfd, struct kinds *kinds)
{
	struct work_signal *done = signal_at(kinds, DONE_SIGNAL);

	__atomic_store_n(&done->value, 1, __ATOMIC_RELEASE);
	work_aql_barrier(kfd, &kinds->aql, 0, kinds->words.va + DONE_SIGNAL);
	return work_becomes((__u32 *)&done->value, 0);
}

const char *kinds_run(const struct kfd *kfd, struct kinds *kinds)
{
	if (!kfd_queue_runs(kfd, &kinds->sdma))
		return "the SDMA queue does not run";
	if (kinds->xgmi.ring.size && !kfd_queue_runs(kfd, &kinds->xgmi))
		return "the SDMA queue for XGMI does not run";
	if (!pm4_runs(kinds))
		return "the PM4 queue does not run";
	return aql_runs(kfd, kinds) ? NULL : "the AQL queue does not run";
}

/* ---- checkpoint ---- */

static int work(const struct kfd *kfd, struct kinds *kinds)
{
	struct work_signal *done = signal_at(kinds, DONE_SIGNAL);

	signal_at(kinds, GATE_SIGNAL)->value = 1;
	signal_at(kinds, BEHIND_SIGNAL)->value = 1;
	done->value = 1;
	work_sdma_write(&kinds->sdma, word_va(kinds, SDMA_DONE), 1);
	work_pm4_write(&kinds->pm4, word_va(kinds, PM4_DONE), 1);
	work_aql_barrier(kfd, &kinds->aql, 0, kinds->words.va + DONE_SIGNAL);
	if (!work_becomes(word(kinds, SDMA_DONE), 1) ||
	    !work_becomes(word(kinds, PM4_DONE), 1) ||
	    !work_becomes((__u32 *)&done->value, 0))
		return -ETIME;
	*word(kinds, SDMA_DONE) = SEEN;
	*word(kinds, PM4_DONE) = SEEN;
	done->value = SEEN;
	work_sdma_wait(&kinds->sdma, word_va(kinds, GATE), 1);
	work_sdma_write(&kinds->sdma, word_va(kinds, SDMA_BEHIND), 1);
	work_pm4_wait(&kinds->pm4, word_va(kinds, GATE), 1);
	work_pm4_write(&kinds->pm4, word_va(kinds, PM4_BEHIND), 1);
	work_aql_barrier(kfd, &kinds->aql, kinds->words.va + GATE_SIGNAL,
			 kinds->words.va + BEHIND_SIGNAL);
	work_pm4_write(&kinds->idle, word_va(kinds, IDLE_BEHIND), 1);
	if (kinds->xgmi.ring.size) {
		work_sdma_wait(&kinds->xgmi, word_va(kinds, GATE), 1);
		work_sdma_write(&kinds->xgmi, word_va(kinds, XGMI_BEHIND), 1);
	}
	return 0;
}

/* The BOs whose contents matter and that the CPU reaches; NULL at the end. */
static struct kfd_bo *content(struct kinds *kinds, unsigned int i)
{
	struct kfd_bo *const first[] = { &kinds->words, &kinds->visible,
					 &kinds->page };
	const unsigned int n = sizeof(first) / sizeof(*first);
	struct kfd_queue *queue;

	if (i < n)
		return first[i];
	if ((i - n) / 2 >= KINDS_QUEUES)
		return NULL;
	queue = kinds_queue(kinds, (i - n) / 2);
	return (i - n) % 2 ? &queue->memory : &queue->ring;
}

static int keep_contents(struct kinds *kinds)
{
	const struct kfd_bo *bo;
	unsigned int i;

	for (i = 0; (bo = content(kinds, i)); i++) {
		if (!bo->size)
			continue;
		kinds->contents[i] = malloc(bo->size);
		if (!kinds->contents[i])
			return -ENOMEM;
		memcpy(kinds->contents[i], bo->cpu, bo->size);
	}
	return 0;
}

int kinds_take(struct kfd *kfd, struct kinds *kinds)
{
	unsigned int i;
	int r;

	r = work(kfd, kinds);
	r = r ? r : kfd_image_take(kfd->fd, &kinds->v1);
	kfd_image_close_files(&kinds->v1);
	r = r ? r : kfd_v2_image_take(kfd->fd, &kinds->v2);
	r = r ? r : keep_contents(kinds);
	for (i = 0; !r && i < KINDS_QUEUES; i++)
		if (kinds_queue(kinds, i)->ring.size)
			r = kfd_queue_destroy(kfd, kinds_queue(kinds, i));
	return r;
}

void kinds_free(struct kinds *kinds)
{
	unsigned int i;

	for (i = 0; i < KINDS_CONTENTS; i++)
		free(kinds->contents[i]);
	kfd_image_free(&kinds->v1);
	free(kinds->v2.data);
}

/* ---- after a restore ---- */

int kinds_find(const struct kfd *kfd, struct kinds *kinds)
{
	struct kfd_bo *bo;
	unsigned int i;
	int r = 0;

	for (i = 0; !r && (bo = content(kinds, i)); i++) {
		if (!bo->size)
			continue;
		r = kfd_bo_find(kfd, 0, bo);
		if (!r)
			memcpy(bo->cpu, kinds->contents[i], bo->size);
	}
	for (i = 0; !r && i < KINDS_QUEUES; i++) {
		struct kfd_queue *queue = kinds_queue(kinds, i);

		if (queue->ring.size)
			r = kfd_queue_map_doorbell(kfd, queue,
						   queue->doorbell_offset);
	}
	return r;
}

void kinds_unmap(struct kinds *kinds)
{
	const struct kfd_bo *bo;
	unsigned int i;

	for (i = 0; (bo = content(kinds, i)); i++)
		if (bo->size)
			munmap((void *)(unsigned long)bo->va, bo->size);
}

/* Lets the queue run that was stopped. */
static int start_idle(const struct kfd *kfd, const struct kinds *kinds)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = kinds->idle.ring.va,
		.ring_size = kinds->idle.ring.size,
		.queue_id = kinds->idle.id,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = PRIORITY,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

static const char *queues_go_on(const struct kfd *kfd, struct kinds *kinds)
{
	struct work_signal *behind = signal_at(kinds, BEHIND_SIGNAL);

	if (read_word(word(kinds, SDMA_BEHIND)) ||
	    read_word(word(kinds, PM4_BEHIND)) ||
	    read_word(word(kinds, XGMI_BEHIND)) || behind->value != 1)
		return "a queue ran through a closed gate";
	__atomic_store_n(&signal_at(kinds, GATE_SIGNAL)->value, 0,
			 __ATOMIC_RELEASE);
	__atomic_store_n(word(kinds, GATE), 1, __ATOMIC_RELEASE);
	if (!work_becomes(word(kinds, SDMA_BEHIND), 1))
		return "the SDMA queue stands before the gate";
	if (!work_becomes(word(kinds, PM4_BEHIND), 1))
		return "the PM4 queue stands before the gate";
	if (!work_becomes((__u32 *)&behind->value, 0))
		return "the AQL queue stands before the gate";
	if (kinds->xgmi.ring.size && !work_becomes(word(kinds, XGMI_BEHIND), 1))
		return "the SDMA queue for XGMI stands before the gate";
	if (*word(kinds, SDMA_DONE) != SEEN || *word(kinds, PM4_DONE) != SEEN ||
	    signal_at(kinds, DONE_SIGNAL)->value != SEEN)
		return "a queue began again";
	if (read_word(word(kinds, IDLE_BEHIND)))
		return "the stopped queue runs";
	if (start_idle(kfd, kinds) || !work_becomes(word(kinds, IDLE_BEHIND), 1))
		return "the stopped queue is dead";
	return NULL;
}

static const char *memory_is_reached(struct kinds *kinds)
{
	if (*(__u32 *)kinds->visible.cpu != PATTERN ||
	    *(__u32 *)kinds->user.cpu != PATTERN ||
	    (kinds->svm && *kinds->svm != PATTERN))
		return "memory changed";
	work_pm4_write(&kinds->pm4, kinds->visible.va, SEEN);
	work_pm4_write(&kinds->pm4, kinds->user.va, SEEN);
	if (!work_becomes(kinds->visible.cpu, SEEN))
		return "the PM4 queue does not reach VRAM";
	if (!work_becomes(kinds->user.cpu, SEEN))
		return "the PM4 queue does not reach the BO of user memory";
	return NULL;
}

static const char *events_go_on(const struct kfd *kfd, struct kinds *kinds)
{
	const __u32 waiting = kinds->events[KFD_IOC_EVENT_SIGNAL];
	__u32 type;

	if (work_wait(kfd, kinds->set_event, 0) != KFD_IOC_WAIT_RESULT_COMPLETE)
		return "the event that was set is not";
	for (type = 0; type < KINDS_EVENT_TYPES; type++)
		if (work_wait(kfd, kinds->events[type], 0) !=
		    KFD_IOC_WAIT_RESULT_TIMEOUT)
			return "an event that was not set is, or is not there";
	work_sdma_write(&kinds->sdma, kinds->page.va + waiting * 8, waiting);
	work_sdma_trap(&kinds->sdma, waiting);
	if (work_wait(kfd, waiting, WAIT_LIMIT_MS) !=
	    KFD_IOC_WAIT_RESULT_COMPLETE)
		return "the SDMA queue does not signal the event";
	return NULL;
}

const char *kinds_go_on(const struct kfd *kfd, struct kinds *kinds)
{
	const char *wrong = queues_go_on(kfd, kinds);

	wrong = wrong ?: memory_is_reached(kinds);
	return wrong ?: events_go_on(kfd, kinds);
}
