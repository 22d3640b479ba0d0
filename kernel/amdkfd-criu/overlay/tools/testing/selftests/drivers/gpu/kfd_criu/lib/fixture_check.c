// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The work of the fixture's queues: each executes a packet, then waits for a word (the
 * gate) with a packet behind it, which it must execute after the restore and not before.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "criu_op.h"
#include "event.h"
#include "fixture.h"
#include "fixture_words.h"

#define WAIT_LIMIT_MS		10000

/* Words of the GTT BO. Image files rely on the first five. */
enum {
	GATE,
	SDMA_DONE,
	SDMA_BEHIND,
	PM4_DONE,
	PM4_BEHIND,
	XGMI_BEHIND,
	STOPPED_BEHIND,
	RUNS,
	NUM_WORDS,
};

/* Offsets in the GTT BO of the AQL queue's signals, which mean the same. */
#define GATE_SIGNAL		1024
#define DONE_SIGNAL		1088
#define BEHIND_SIGNAL		1152

/*
 * The CPU stores this number over the word of a packet that was executed: the word shows
 * if the packet is executed again.
 */
#define SEEN			100
#define PATTERN(i)		(0x5eed0000U + (i))
/* Words with a pattern; packets write only to words before them. */
#define PATTERN_FIRST		16
#define PATTERN_END		64

static __u32 *word(const struct fixture *fixture, unsigned int i)
{
	return (__u32 *)fixture->gtt.cpu + i;
}

static __u64 word_va(const struct fixture *fixture, unsigned int i)
{
	return fixture->gtt.va + i * sizeof(__u32);
}

static __u32 read_word(const struct fixture *fixture, unsigned int i)
{
	return __atomic_load_n(word(fixture, i), __ATOMIC_ACQUIRE);
}

static void write_word(const struct fixture *fixture, unsigned int i,
		       __u32 value)
{
	__atomic_store_n(word(fixture, i), value, __ATOMIC_RELEASE);
}

static struct hsa_signal *signal_at(const struct fixture *fixture,
				    unsigned int offset)
{
	return fixture->gtt.cpu + offset;
}

void fixture_fill(__u32 *page)
{
	unsigned int i;

	for (i = PATTERN_FIRST; i < PATTERN_END; i++)
		page[i] = PATTERN(i);
}

static bool is_filled(const __u32 *page)
{
	unsigned int i;

	for (i = PATTERN_FIRST; i < PATTERN_END; i++)
		if (page[i] != PATTERN(i))
			return false;
	return true;
}

/* ---- before the checkpoint ---- */

static void close_gate(struct fixture *fixture)
{
	unsigned int i;

	for (i = 0; i < NUM_WORDS; i++)
		write_word(fixture, i, 0);
	signal_at(fixture, GATE_SIGNAL)->value = 1;
	signal_at(fixture, DONE_SIGNAL)->value = 1;
	signal_at(fixture, BEHIND_SIGNAL)->value = 1;
}

static int run_first_packets(const struct kfd *kfd, struct fixture *fixture)
{
	struct hsa_signal *done = signal_at(fixture, DONE_SIGNAL);
	const bool aql = fixture->aql.ring.size;

	kfd_sdma_write(&fixture->sdma, word_va(fixture, SDMA_DONE), 1);
	kfd_pm4_write(&fixture->pm4, word_va(fixture, PM4_DONE), 1);
	if (aql)
		kfd_aql_barrier(kfd, &fixture->aql, 0,
				fixture->gtt.va + DONE_SIGNAL);
	if (!wait_for_word(word(fixture, SDMA_DONE), 1) ||
	    !wait_for_word(word(fixture, PM4_DONE), 1) ||
	    (aql && !wait_for_word((__u32 *)&done->value, 0)))
		return -ETIME;
	write_word(fixture, SDMA_DONE, SEEN);
	write_word(fixture, PM4_DONE, SEEN);
	done->value = SEEN;
	return 0;
}

int fixture_start_work(const struct kfd *kfd, struct fixture *fixture)
{
	int r;

	close_gate(fixture);
	r = run_first_packets(kfd, fixture);
	if (r)
		return r;
	kfd_sdma_wait(&fixture->sdma, word_va(fixture, GATE), 1);
	kfd_sdma_write(&fixture->sdma, word_va(fixture, SDMA_BEHIND), 1);
	kfd_pm4_wait(&fixture->pm4, word_va(fixture, GATE), 1);
	kfd_pm4_write(&fixture->pm4, word_va(fixture, PM4_BEHIND), 1);
	if (fixture->aql.ring.size)
		kfd_aql_barrier(kfd, &fixture->aql,
				fixture->gtt.va + GATE_SIGNAL,
				fixture->gtt.va + BEHIND_SIGNAL);
	if (fixture->stopped.ring.size)
		kfd_pm4_write(&fixture->stopped,
			      word_va(fixture, STOPPED_BEHIND), 1);
	if (fixture->xgmi.ring.size) {
		kfd_sdma_wait(&fixture->xgmi, word_va(fixture, GATE), 1);
		kfd_sdma_write(&fixture->xgmi, word_va(fixture, XGMI_BEHIND), 1);
	}
	return 0;
}

struct kfd_bo *fixture_content(struct fixture *fixture, unsigned int i)
{
	struct kfd_bo *const first[] = { &fixture->gtt, &fixture->visible,
					 &fixture->event_page };
	const unsigned int n = sizeof(first) / sizeof(*first);
	struct kfd_queue *queue;

	if (i < n)
		return first[i];
	if ((i - n) / 2 >= FIXTURE_QUEUES)
		return NULL;
	queue = fixture_queue(fixture, (i - n) / 2);
	return (i - n) % 2 ? &queue->memory : &queue->ring;
}

/* ---- after the restore ---- */

int fixture_remap(const struct kfd *kfd, int pause_fd, struct fixture *fixture)
{
	struct kfd_bo *bo;
	unsigned int i;
	int r = 0;

	for (i = 0; !r && (bo = fixture_content(fixture, i)); i++) {
		if (!bo->size)
			continue;
		r = kfd_bo_remap(kfd, pause_fd, 0, bo);
		if (!r)
			memcpy(bo->cpu, fixture->contents[i], bo->size);
	}
	for (i = 0; !r && i < FIXTURE_QUEUES; i++) {
		struct kfd_queue *queue = fixture_queue(fixture, i);

		if (queue->ring.size)
			r = kfd_queue_map_doorbell(kfd, queue,
						   queue->doorbell_offset);
	}
	return r;
}

void fixture_unmap(struct fixture *fixture)
{
	const struct kfd_bo *bo;
	unsigned int i;

	for (i = 0; (bo = fixture_content(fixture, i)); i++)
		if (bo->size)
			munmap((void *)(unsigned long)bo->va, bo->size);
}

/* Gives the queue whose percentage is 0 a share of the GPU. */
static int start_stopped_queue(const struct kfd *kfd,
			       const struct fixture *fixture)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = fixture->stopped.ring.va,
		.ring_size = fixture->stopped.ring.size,
		.queue_id = fixture->stopped.id,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = FIXTURE_PRIORITY,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

static const char *check_waiting_queues(struct fixture *fixture)
{
	struct hsa_signal *behind = signal_at(fixture, BEHIND_SIGNAL);
	const bool aql = fixture->aql.ring.size;

	if (read_word(fixture, SDMA_BEHIND) || read_word(fixture, PM4_BEHIND) ||
	    read_word(fixture, XGMI_BEHIND) || (aql && behind->value != 1))
		return "a queue ran through a closed gate";
	__atomic_store_n(&signal_at(fixture, GATE_SIGNAL)->value, 0,
			 __ATOMIC_RELEASE);
	write_word(fixture, GATE, 1);
	if (!wait_for_word(word(fixture, SDMA_BEHIND), 1))
		return "the SDMA queue does not pass the open gate";
	if (!wait_for_word(word(fixture, PM4_BEHIND), 1))
		return "the PM4 queue does not pass the open gate";
	if (aql && !wait_for_word((__u32 *)&behind->value, 0))
		return "the AQL queue does not pass the open gate";
	if (fixture->xgmi.ring.size &&
	    !wait_for_word(word(fixture, XGMI_BEHIND), 1))
		return "the SDMA queue for XGMI does not pass the open gate";
	if (read_word(fixture, SDMA_DONE) != SEEN ||
	    read_word(fixture, PM4_DONE) != SEEN ||
	    (aql && signal_at(fixture, DONE_SIGNAL)->value != SEEN))
		return "a queue executed a packet twice";
	return NULL;
}

static const char *check_stopped_queue(const struct kfd *kfd,
				       struct fixture *fixture)
{
	if (!fixture->stopped.ring.size)
		return NULL;
	if (read_word(fixture, STOPPED_BEHIND))
		return "the stopped queue runs";
	if (start_stopped_queue(kfd, fixture) ||
	    !wait_for_word(word(fixture, STOPPED_BEHIND), 1))
		return "the stopped queue does not start";
	return NULL;
}

static bool is_written(struct fixture *fixture, __u64 va, const __u32 *cpu,
		       __u32 value)
{
	kfd_pm4_write(&fixture->pm4, va, value);
	return wait_for_word(cpu, value);
}

static const char *check_memory(struct fixture *fixture)
{
	if (!is_filled(fixture->visible.cpu) || !is_filled(fixture->user.cpu) ||
	    (fixture->svm && !is_filled(fixture->svm)))
		return "memory changed";
	if (!is_written(fixture, fixture->visible.va, fixture->visible.cpu, SEEN))
		return "the PM4 queue does not reach VRAM";
	if (!is_written(fixture, fixture->user.va, fixture->user.cpu, SEEN + 1))
		return "the PM4 queue does not reach the BO of user memory";
	if (fixture->svm_writable &&
	    !is_written(fixture, (unsigned long)fixture->svm, fixture->svm,
			SEEN + 2))
		return "the PM4 queue does not reach the SVM range";
	return NULL;
}

static const char *check_events(const struct kfd *kfd, struct fixture *fixture)
{
	const __u32 waiting = fixture->events[KFD_IOC_EVENT_SIGNAL];
	__u32 type;

	if (kfd_event_wait(kfd, fixture->set_event, 0) !=
	    KFD_IOC_WAIT_RESULT_COMPLETE)
		return "the event that was set is not set";
	for (type = 0; type < FIXTURE_EVENT_TYPES; type++)
		if (fixture->events[type] &&
		    kfd_event_wait(kfd, fixture->events[type], 0) !=
		    KFD_IOC_WAIT_RESULT_TIMEOUT)
			return "an event that was not set is set or missing";
	kfd_sdma_write(&fixture->sdma, fixture->event_page.va + waiting * 8,
		       waiting);
	kfd_sdma_trap(&fixture->sdma, waiting);
	if (kfd_event_wait(kfd, waiting, WAIT_LIMIT_MS) !=
	    KFD_IOC_WAIT_RESULT_COMPLETE)
		return "the SDMA queue does not signal the event";
	return NULL;
}

const char *fixture_check(const struct kfd *kfd, struct fixture *fixture)
{
	const char *wrong = check_waiting_queues(fixture);

	wrong = wrong ?: check_stopped_queue(kfd, fixture);
	wrong = wrong ?: check_memory(fixture);
	return wrong ?: check_events(kfd, fixture);
}

/* BO_OFFSET tells where BOs are mapped only while the process is paused. */
int fixture_check_idle_queue(const struct kfd *kfd, struct fixture *fixture)
{
	int pause_fd, r = kfd_v2_pause(kfd->fd, &pause_fd);

	r = r ? r : fixture_remap(kfd, pause_fd, fixture);
	r = r ? r : kfd_v2_unpause(kfd->fd, pause_fd);
	if (r)
		return r;
	return kfd_queue_runs(kfd, &fixture->sdma) ? 0 : -ETIME;
}

/* ---- queues that wait at no gate ---- */

static bool pm4_runs(struct fixture *fixture)
{
	write_word(fixture, RUNS, 0);
	kfd_pm4_write(&fixture->pm4, word_va(fixture, RUNS), 1);
	return wait_for_word(word(fixture, RUNS), 1);
}

static bool aql_runs(const struct kfd *kfd, struct fixture *fixture)
{
	struct hsa_signal *done = signal_at(fixture, DONE_SIGNAL);

	__atomic_store_n(&done->value, 1, __ATOMIC_RELEASE);
	kfd_aql_barrier(kfd, &fixture->aql, 0, fixture->gtt.va + DONE_SIGNAL);
	return wait_for_word((__u32 *)&done->value, 0);
}

const char *fixture_run_queues(const struct kfd *kfd, struct fixture *fixture)
{
	if (!kfd_queue_runs(kfd, &fixture->sdma))
		return "the SDMA queue does not run";
	if (fixture->xgmi.ring.size && !kfd_queue_runs(kfd, &fixture->xgmi))
		return "the SDMA queue for XGMI does not run";
	if (!pm4_runs(fixture))
		return "the PM4 queue does not run";
	return aql_runs(kfd, fixture) ? NULL : "the AQL queue does not run";
}
