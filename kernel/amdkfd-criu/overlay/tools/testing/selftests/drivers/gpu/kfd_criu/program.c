// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What it knows of its queues is what every generation from gfx9 on has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "program.h"
#include "svm.h"
#include "work.h"

#define EVENT_PAGE_SIZE		(KFD_SIGNAL_EVENT_LIMIT * 8)
#define WAIT_LIMIT_MS		10000
/* So long nothing happens behind a closed gate. */
#define GATE_HOLDS_MS		50
/* mmap offsets of /dev/kfd (amdkfd, KFD_MMAP_GPU_ID()). */
#define GPU_ID_SHIFT		46
#define GPU_ID_MASK		(0xffffULL << GPU_ID_SHIFT)

/* The words that the CPU and the queues share. */
enum {
	GATE,
	SDMA_DONE,
	SDMA_BEHIND,
	PM4_DONE,
	PM4_BEHIND,
};

/* What the CPU writes over a word of a packet that was done: it is not done again. */
#define SEEN			100
#define PATTERN(i)		(0x5eed0000U + (i))
/* The pattern's words; those before it are written by packets. */
#define PATTERN_FIRST		16
#define PATTERN_END		64

static __u64 word_va(const struct program *program, unsigned int word)
{
	return program->numbers.words + word * sizeof(__u32);
}

static __u32 read_word(const __u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void write_word(__u32 *word, __u32 value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static int map_host_memory(struct program *program)
{
	void *at = mmap((void *)HOST_MEMORY, HOST_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	program->user = (__u32 *)USER_PAGE;
	program->svm = (__u32 *)SVM_PAGE;
	return 0;
}

static int make_user_bo(struct kfd *kfd, struct program *program)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = kfd->next_va,
		.size = KFD_PAGE,
		.mmap_offset = USER_PAGE,
		.gpu_id = kfd->gpus[0].id,
		.flags = KFD_BO_USERPTR,
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.device_ids_array_ptr = (unsigned long)&args.gpu_id,
		.n_devices = 1,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	if (r)
		return r;
	kfd->next_va += 2 * KFD_PAGE;
	program->numbers.user = args.va_addr;
	map.handle = args.handle;
	return kfd_call(kfd->fd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map);
}

static int make_memory(struct kfd *kfd, struct program *program)
{
	struct kfd_bo words, vram;
	unsigned int i;
	int r;

	r = map_host_memory(program);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &words);
	r = r ? r : kfd_bo_create_visible(kfd, 0, KFD_PAGE, &vram);
	r = r ? r : make_user_bo(kfd, program);
	r = r ? r : svm_set_access(kfd, (void *)SVM_PAGE, KFD_PAGE, 0,
				   KFD_IOCTL_SVM_ATTR_ACCESS);
	if (r)
		return r;
	program->words = words.cpu;
	program->vram = vram.cpu;
	program->numbers.words = words.va;
	program->numbers.vram = vram.va;
	for (i = PATTERN_FIRST; i < PATTERN_END; i++) {
		program->vram[i] = PATTERN(i);
		program->user[i] = PATTERN(i);
		program->svm[i] = PATTERN(i);
	}
	return 0;
}

static int make_event(const struct kfd *kfd, __u64 page, bool auto_reset,
		      __u64 *id)
{
	struct kfd_ioctl_create_event_args args = {
		.event_page_offset = page,
		.event_type = KFD_IOC_EVENT_SIGNAL,
		.auto_reset = auto_reset,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_EVENT, &args);

	*id = args.event_id;
	return r;
}

static int make_events(struct kfd *kfd, struct program *program)
{
	struct recording_numbers *numbers = &program->numbers;
	struct kfd_ioctl_set_event_args set;
	struct kfd_bo page;
	int r;

	r = kfd_bo_create(kfd, 0, KFD_BO_GTT, EVENT_PAGE_SIZE, &page);
	/* The process has one page, which comes with its first event. */
	r = r ? r : make_event(kfd, page.handle, false, &numbers->set_event);
	r = r ? r : make_event(kfd, 0, true, &numbers->waiting_event);
	if (r)
		return r;
	numbers->event_page = page.va;
	set.event_id = numbers->set_event;
	return kfd_call(kfd->fd, AMDKFD_IOC_SET_EVENT, &set);
}

static int make_compute_queue(struct kfd *kfd, struct kfd_queue *queue)
{
	struct kfd_bo area;
	const struct work_compute wish = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
		.percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.priority = KFD_MAX_QUEUE_PRIORITY / 2,
		.area = &area,
	};
	int r = work_save_area_create(kfd, 0, &area);

	return r ? r : work_compute_create(kfd, 0, &wish, queue);
}

int program_start(struct kfd *kfd, struct program *program)
{
	struct recording_numbers *numbers = &program->numbers;
	struct kfd_queue *sdma = &program->sdma, *compute = &program->compute;
	int r;

	memset(program, 0, sizeof(*program));
	numbers->gfx_version = kfd->gpus[0].gfx_version;
	if (!svm_is_there(kfd))
		return -EOPNOTSUPP;
	r = make_memory(kfd, program);
	r = r ? r : make_events(kfd, program);
	r = r ? r : kfd_queue_create(kfd, 0, sdma);
	r = r ? r : make_compute_queue(kfd, compute);
	numbers->sdma_ring = sdma->ring.va;
	numbers->sdma_memory = sdma->memory.va;
	numbers->sdma_id = sdma->id;
	numbers->sdma_doorbell = sdma->doorbell_offset;
	numbers->compute_ring = compute->ring.va;
	numbers->compute_memory = compute->memory.va;
	numbers->compute_id = compute->id;
	numbers->compute_doorbell = compute->doorbell_offset;
	return r;
}

int program_wait_at_gate(struct program *program)
{
	__u32 *words = program->words;

	write_word(&words[GATE], 0);
	write_word(&words[SDMA_BEHIND], 0);
	write_word(&words[PM4_BEHIND], 0);
	work_sdma_write(&program->sdma, word_va(program, SDMA_DONE), 1);
	work_pm4_write(&program->compute, word_va(program, PM4_DONE), 1);
	if (!work_becomes(&words[SDMA_DONE], 1) || !work_becomes(&words[PM4_DONE], 1))
		return -ETIME;
	write_word(&words[SDMA_DONE], SEEN);
	write_word(&words[PM4_DONE], SEEN);
	work_sdma_wait(&program->sdma, word_va(program, GATE), 1);
	work_sdma_write(&program->sdma, word_va(program, SDMA_BEHIND), 1);
	work_pm4_wait(&program->compute, word_va(program, GATE), 1);
	work_pm4_write(&program->compute, word_va(program, PM4_BEHIND), 1);
	return 0;
}

static bool has_contents(const struct kfd_criu_bo_bucket *bo)
{
	return bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_GTT |
				  KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
}

static int copy_contents(const struct kfd *kfd, struct recording *recording)
{
	const struct kfd_image *image = &recording->image;
	unsigned int i;

	if (image->args.num_bos > RECORDING_BOS)
		return -E2BIG;
	for (i = 0; i < image->args.num_bos; i++) {
		const struct kfd_criu_bo_bucket *bo = &image->bos[i];
		void *bytes;

		if (!has_contents(bo))
			continue;
		bytes = mmap(NULL, bo->size, PROT_READ, MAP_SHARED,
			     kfd->gpus[0].drm, bo->offset);
		recording->contents[i] = malloc(bo->size);
		if (bytes == MAP_FAILED || !recording->contents[i])
			return -ENOMEM;
		memcpy(recording->contents[i], bytes, bo->size);
		munmap(bytes, bo->size);
	}
	return 0;
}

int program_take(const struct kfd *kfd, const struct program *program,
		 struct recording *recording)
{
	int r;

	memset(recording, 0, sizeof(*recording));
	recording->numbers = program->numbers;
	recording->numbers.sdma_written = program->sdma.written;
	recording->numbers.compute_written = program->compute.written;
	r = kfd_image_take(kfd->fd, &recording->image);
	kfd_image_close_files(&recording->image);
	if (r)
		return r;
	r = copy_contents(kfd, recording);
	if (r)
		return r;
	recording->host = malloc(HOST_BYTES);
	if (!recording->host)
		return -ENOMEM;
	memcpy(recording->host, (void *)HOST_MEMORY, HOST_BYTES);
	return 0;
}

/* Where the process finds what it had at an address of the GPU. */
static void found(struct program *program, __u64 va, void *cpu)
{
	const struct recording_numbers *numbers = &program->numbers;

	if (va == numbers->words)
		program->words = cpu;
	else if (va == numbers->vram)
		program->vram = cpu;
	else if (va == numbers->sdma_ring)
		program->sdma.ring.cpu = cpu;
	else if (va == numbers->sdma_memory)
		program->sdma.memory.cpu = cpu;
	else if (va == numbers->compute_ring)
		program->compute.ring.cpu = cpu;
	else if (va == numbers->compute_memory)
		program->compute.memory.cpu = cpu;
}

static int write_contents(const struct kfd *kfd,
			  const struct recording *recording,
			  struct program *program)
{
	const struct kfd_image *image = &recording->image;
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
		memcpy(bytes, recording->contents[i], bo->size);
		found(program, bo->addr, bytes);
	}
	return 0;
}

static int find_queue(const struct kfd *kfd, struct kfd_queue *queue,
		      __u64 offset)
{
	const __u64 id = kfd->gpus[0].id;

	queue->gpu = 0;
	queue->ring.size = KFD_PAGE;
	queue->memory.size = KFD_PAGE;
	return kfd_queue_map_doorbell(kfd, queue, (offset & ~GPU_ID_MASK) |
						  id << GPU_ID_SHIFT);
}

static int find_queues(const struct kfd *kfd, struct program *program)
{
	const struct recording_numbers *numbers = &program->numbers;
	int r;

	program->sdma.id = numbers->sdma_id;
	program->sdma.ring.va = numbers->sdma_ring;
	program->sdma.memory.va = numbers->sdma_memory;
	program->sdma.written = numbers->sdma_written;
	program->compute.id = numbers->compute_id;
	program->compute.ring.va = numbers->compute_ring;
	program->compute.memory.va = numbers->compute_memory;
	program->compute.written = numbers->compute_written;
	r = find_queue(kfd, &program->sdma, numbers->sdma_doorbell);
	return r ? r : find_queue(kfd, &program->compute,
				  numbers->compute_doorbell);
}

int program_restore(struct kfd *kfd, struct recording *recording,
		    struct program *program)
{
	int r;

	memset(program, 0, sizeof(*program));
	program->numbers = recording->numbers;
	r = map_host_memory(program);
	r = r ? r : kfd_image_restore(kfd, &recording->image);
	kfd_image_close_files(&recording->image);
	if (r)
		return r;
	memcpy((void *)HOST_MEMORY, recording->host, HOST_BYTES);
	r = write_contents(kfd, recording, program);
	r = r ? r : find_queues(kfd, program);
	return r ? r : kfd_criu_resume(kfd->fd, getpid());
}

static bool is_pattern(const __u32 *page)
{
	unsigned int i;

	for (i = PATTERN_FIRST; i < PATTERN_END; i++)
		if (page[i] != PATTERN(i))
			return false;
	return true;
}

static const char *queues_go_on(struct program *program)
{
	__u32 *words = program->words;

	usleep(GATE_HOLDS_MS * 1000);
	if (read_word(&words[SDMA_BEHIND]))
		return "the SDMA queue ran through a closed gate";
	if (read_word(&words[PM4_BEHIND]))
		return "the PM4 queue ran through a closed gate";
	write_word(&words[GATE], 1);
	if (!work_becomes(&words[SDMA_BEHIND], 1))
		return "the SDMA queue stands before the gate";
	if (!work_becomes(&words[PM4_BEHIND], 1))
		return "the PM4 queue stands before the gate";
	if (read_word(&words[SDMA_DONE]) != SEEN ||
	    read_word(&words[PM4_DONE]) != SEEN)
		return "a queue began again";
	return NULL;
}

static const char *memory_is_reached(struct program *program)
{
	if (!is_pattern(program->vram) || !is_pattern(program->user) ||
	    !is_pattern(program->svm))
		return "memory changed";
	work_pm4_write(&program->compute, program->numbers.vram, SEEN);
	work_pm4_write(&program->compute, program->numbers.user, SEEN + 1);
	work_pm4_write(&program->compute, SVM_PAGE, SEEN + 2);
	if (!work_becomes(program->vram, SEEN))
		return "the PM4 queue does not reach VRAM";
	if (!work_becomes(program->user, SEEN + 1))
		return "the PM4 queue does not reach the BO of user memory";
	if (!work_becomes(program->svm, SEEN + 2))
		return "the PM4 queue does not reach the SVM range";
	return NULL;
}

static const char *events_go_on(const struct kfd *kfd, struct program *program)
{
	const __u32 id = program->numbers.waiting_event;

	if (work_wait(kfd, program->numbers.set_event, 0) !=
	    KFD_IOC_WAIT_RESULT_COMPLETE)
		return "the event that was set is not";
	if (work_wait(kfd, id, 0) != KFD_IOC_WAIT_RESULT_TIMEOUT)
		return "the event that was not set is";
	work_sdma_write(&program->sdma,
			program->numbers.event_page + id * sizeof(__u64), id);
	work_sdma_trap(&program->sdma, id);
	if (work_wait(kfd, id, WAIT_LIMIT_MS) != KFD_IOC_WAIT_RESULT_COMPLETE)
		return "the SDMA queue does not signal the event";
	return NULL;
}

const char *program_goes_on(const struct kfd *kfd, struct program *program)
{
	const char *wrong = queues_go_on(program);

	wrong = wrong ?: memory_is_reached(program);
	wrong = wrong ?: events_go_on(kfd, program);
	if (!wrong && !kfd_queue_runs(kfd, &program->sdma))
		wrong = "the SDMA queue ends";
	return wrong;
}
