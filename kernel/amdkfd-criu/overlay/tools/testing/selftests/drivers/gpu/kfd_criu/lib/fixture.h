/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Processes to checkpoint: creates the objects of a process, checkpoints them, finds them
 * again in the process that is restored, and checks that everything continues. Functions
 * return 0 or a negative errno unless their comment says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_FIXTURE_H
#define KFD_CRIU_SELFTEST_FIXTURE_H

#include "bo.h"
#include "image_v1.h"
#include "image_v2.h"
#include "kfd.h"
#include "queue.h"

struct leak_baseline;

enum fixture_kind {
	/* A GTT, a VRAM and a user memory BO on GPU 0, and an event. */
	FIXTURE_BOS,
	/*
	 * What FIXTURE_BOS has, an SVM range, and an SDMA queue that has no work: its memory is
	 * all zeros, so it works again without its contents.
	 */
	FIXTURE_IDLE_QUEUE,
	/*
	 * Memory of each kind that programs map, an SVM range, events, and an SDMA and a
	 * PM4 queue that wait in the middle of their work. User memory is at fixed
	 * addresses, so that an image file can be restored on another machine.
	 */
	FIXTURE_PORTABLE,
	/*
	 * An object of every kind that the GPUs have, and queues of every kind that wait in
	 * the middle of their work. What the GPU or the driver does not have is left out.
	 */
	FIXTURE_FULL,
};

#define FIXTURE_BOS_COUNT	3	/* BOs of FIXTURE_BOS */
#define FIXTURE_QUEUES		5
#define FIXTURE_VRAM		2
#define FIXTURE_CONTENTS	13
/* Types of events that AMDKFD_IOC_CREATE_EVENT knows; KFD_IOC_EVENT_MEMORY is the last. */
#define FIXTURE_EVENT_TYPES	(KFD_IOC_EVENT_MEMORY + 1)

/* Two pages of FIXTURE_PORTABLE: one is a BO of user memory, one is an SVM range. */
#define FIXTURE_HOST_MEMORY	0x1000000000UL
#define FIXTURE_HOST_BYTES	(2 * KFD_PAGE)

struct fixture {
	enum fixture_kind kind;
	/* BOs of GPU 0; size 0: this kind of fixture, or this GPU, does not have the BO. */
	struct kfd_bo gtt;
	struct kfd_bo visible;		/* VRAM that the process maps */
	struct kfd_bo vram[FIXTURE_VRAM]; /* VRAM that the process does not map */
	struct kfd_bo user;
	struct kfd_bo doorbells;
	struct kfd_bo registers;
	struct kfd_bo event_page;
	struct kfd_bo cwsr_area;
	struct kfd_bo imported;		/* gtt, imported by GPU 0 */
	struct kfd_bo imported_peer;	/* gtt, imported by GPU 1 */
	/* Ring size 0: there is no such queue. */
	struct kfd_queue pm4;
	struct kfd_queue aql;
	struct kfd_queue stopped;	/* a PM4 queue with queue percentage 0 */
	struct kfd_queue sdma;
	struct kfd_queue xgmi;
	/* Ids; 0: there is no such event. */
	__u32 events[FIXTURE_EVENT_TYPES];
	__u32 set_event;
	__u32 *svm;			/* NULL: no SVM range */
	bool svm_writable;		/* the GPU may write to the SVM range */
	bool gws;			/* the AQL queue has global wave sync */
	/* What fixture_checkpoint() stored: both images, and the contents of BOs. */
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	void *contents[FIXTURE_CONTENTS];
};

/*
 * Acquires all VMs and creates the objects, in a process that has no object yet.
 * -EOPNOTSUPP: FIXTURE_PORTABLE needs SVM, which the GPU or the driver does not have.
 */
int fixture_create(struct kfd *kfd, struct fixture *fixture,
		   enum fixture_kind kind);
/*
 * Lets the queues run into the middle of their work, checkpoints the process with both
 * ABIs, and destroys its queues, whose hardware slots are then free for the processes that
 * are restored. The process stays paused.
 */
int fixture_checkpoint(struct kfd *kfd, struct fixture *fixture);
/* Opens the GPUs, creates the objects and checkpoints them. -ENODEV: there is no GPU. */
int fixture_open_checkpointed(struct kfd *kfd, struct fixture *fixture,
			      enum fixture_kind kind);
/*
 * What fixture_open_checkpointed() does; then the process runs again, and `before` is what
 * tests compare with: the process with its images.
 */
int fixture_open_running(struct kfd *kfd, struct fixture *fixture,
			 enum fixture_kind kind, struct leak_baseline *before);
void fixture_free(struct fixture *fixture);

/* Maps the memory at FIXTURE_HOST_MEMORY, for FIXTURE_PORTABLE. */
int fixture_map_host_memory(void);
/* The i-th queue, with ring size 0 if there is no such queue. */
struct kfd_queue *fixture_queue(struct fixture *fixture, unsigned int i);
int fixture_destroy_queues(const struct kfd *kfd, struct fixture *fixture);

/*
 * Gives every queue some packets that it executes and, behind a gate that is closed, more
 * packets that it does not execute yet.
 */
int fixture_start_work(const struct kfd *kfd, struct fixture *fixture);
/*
 * In a process that is paused, or restored and not yet resumed: maps the BOs, the queues and
 * their doorbells, and fills the BOs with their contents.
 */
int fixture_remap(const struct kfd *kfd, int pause_fd, struct fixture *fixture);
/* Unmaps these BOs, because a BO that is mapped stays alive even after ABORT. */
void fixture_unmap(struct fixture *fixture);
/*
 * In a process that was restored and resumed: opens the gate. Returns NULL if all queues
 * continue, memory is as it was and events work, else a sentence that says what is wrong.
 */
const char *fixture_check(const struct kfd *kfd, struct fixture *fixture);
/*
 * In a process that waits at no gate: returns NULL if every queue executes a packet, else a
 * sentence that names the queue that does not. The stopped queue is left out.
 */
const char *fixture_run_queues(const struct kfd *kfd, struct fixture *fixture);
/*
 * In a process that was restored from FIXTURE_IDLE_QUEUE and runs: checks that its queue
 * executes a packet. -ETIME: it does not.
 */
int fixture_check_idle_queue(const struct kfd *kfd, struct fixture *fixture);

#endif /* KFD_CRIU_SELFTEST_FIXTURE_H */
