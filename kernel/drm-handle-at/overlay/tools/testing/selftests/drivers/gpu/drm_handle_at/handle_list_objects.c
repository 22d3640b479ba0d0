// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The lists of contexts, BO lists and GEM objects of user memory have what is needed to
 * create them again, and tell what a new context would not have.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"
#include "lib/job.h"

#define SIZE		(4 * DRM_PAGE)
#define HANDLE		77
#define OTHER		78
#define MAX_CONTEXT	4095
#define SPACE		512
#define MANY		400
#define PATTERN		0xa5
/* An address that cannot be written. */
#define BAD_POINTER	((void *)8)
#define NOBODY		65534
/* In which a job ends that has nothing to wait for. */
#define LIMIT_S		10

#define USERPTR_FLAGS	(AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER | \
			 AMDGPU_GEM_USERPTR_VALIDATE)

FIXTURE(handle_list_objects) {
	int drm, peer;
	/* Bytes that have PATTERN until a list is written there. */
	union {
		unsigned char bytes[SPACE * sizeof(struct drm_amdgpu_list_context)];
		struct drm_amdgpu_list_context contexts[SPACE];
		struct drm_amdgpu_list_bo_list_entry bo_lists[SPACE];
		struct drm_amdgpu_list_userptr userptrs[SPACE];
	};
};

FIXTURE_SETUP(handle_list_objects)
{
	self->drm = drm_open("amdgpu", DRM_RENDER_NODE);
	self->peer = drm_open("amdgpu", DRM_RENDER_NODE);
	if (self->drm == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, self->drm);
	ASSERT_LE(0, self->peer);
	memset(self->bytes, PATTERN, sizeof(self->bytes));
}

FIXTURE_TEARDOWN(handle_list_objects)
{
	close(self->drm);
	close(self->peer);
}

/* ---- contexts ---- */

static int create_context(int drm, __u32 id, __s32 priority)
{
	union drm_amdgpu_ctx args = {
		.in = {
			.op = AMDGPU_CTX_OP_ALLOC_AT,
			.ctx_id = id,
			.priority = priority,
		},
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_CTX, &args);
}

TEST_F(handle_list_objects, contexts_are_listed_with_what_creates_them)
{
	const struct drm_amdgpu_list_context wanted[] = {
		{ .id = 1, .priority = AMDGPU_CTX_PRIORITY_NORMAL, .sequence = 1 },
		{ .id = HANDLE, .priority = AMDGPU_CTX_PRIORITY_VERY_LOW, .sequence = 1 },
		{ .id = MAX_CONTEXT, .priority = AMDGPU_CTX_PRIORITY_HIGH, .sequence = 1 },
	};
	const int count = sizeof(wanted) / sizeof(*wanted);
	int i;

	EXPECT_EQ(0, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	for (i = count - 1; i >= 0; i--)
		ASSERT_EQ(0, create_context(self->drm, wanted[i].id, wanted[i].priority));
	ASSERT_EQ(0, create_context(self->peer, 2, AMDGPU_CTX_PRIORITY_LOW));
	ASSERT_EQ(0, create_context(self->drm, OTHER, AMDGPU_CTX_PRIORITY_LOW));
	ASSERT_EQ(0, context_destroy(self->drm, OTHER));
	ASSERT_EQ(count, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	EXPECT_EQ(0, memcmp(wanted, self->contexts, sizeof(wanted)));

	for (i = 0; i < count; i++) {
		const struct drm_amdgpu_list_context *entry = &self->contexts[i];

		ASSERT_EQ(0, context_destroy(self->drm, entry->id));
		ASSERT_EQ(0, create_context(self->drm, entry->id, entry->priority));
	}
	memset(self->bytes, PATTERN, sizeof(self->bytes));
	ASSERT_EQ(count, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	EXPECT_EQ(0, memcmp(wanted, self->contexts, sizeof(wanted)));
	ASSERT_EQ(1, list_objects(self->peer, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	EXPECT_EQ(2, self->contexts[0].id);
}

/* Waits until the context has no flag. Returns its flags. */
static __u32 flags_in_the_end(int drm)
{
	struct drm_amdgpu_list_context contexts[2];
	const time_t end = time(NULL) + LIMIT_S;

	do {
		if (list_objects(drm, AMDGPU_LIST_CONTEXTS, contexts, 2) != 2)
			return ~0U;
	} while (contexts[0].flags && time(NULL) < end);
	return contexts[0].flags;
}

TEST_F(handle_list_objects, a_context_is_busy_until_its_work_has_finished)
{
	struct gated_job job;

	ASSERT_EQ(0, context_create_at(self->drm, HANDLE));
	ASSERT_EQ(0, context_create_at(self->drm, OTHER));
	ASSERT_EQ(0, gated_job_submit(&job, self->drm, HANDLE, 1));
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	EXPECT_EQ(AMDGPU_LIST_CONTEXT_BUSY, self->contexts[0].flags);
	EXPECT_EQ(OTHER, self->contexts[1].id);
	EXPECT_EQ(0, self->contexts[1].flags);
	/* The job is running, or waits for the engine; neither ends without the gate. */
	EXPECT_EQ(-ETIME, gated_job_wait(&job, 1));
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	EXPECT_EQ(AMDGPU_LIST_CONTEXT_BUSY, self->contexts[0].flags);

	gated_job_open_gate(&job);
	EXPECT_EQ(0, gated_job_wait(&job, LIMIT_S));
	EXPECT_EQ(0, flags_in_the_end(self->drm));
	gated_job_free(&job);
}

static int skip_fences(int drm, __u32 id, __u64 sequence)
{
	union drm_amdgpu_ctx args = {
		.in = {
			.op = AMDGPU_CTX_OP_SKIP_FENCES,
			.flags = (__u32)sequence,
			.ctx_id = id,
			.priority = sequence >> 32,
		},
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_CTX, &args);
}

/* The number that the next fence has at least, of the only context. */
static __u64 listed_sequence(int drm)
{
	struct drm_amdgpu_list_context context;

	if (list_objects(drm, AMDGPU_LIST_CONTEXTS, &context, 1) != 1)
		return 0;
	return context.sequence;
}

TEST_F(handle_list_objects, a_new_context_knows_the_fences_of_the_old_one)
{
	struct gated_job job, old = { .drm = self->drm, .context = HANDLE };
	__u64 sequence;
	int i;

	ASSERT_EQ(0, context_create_at(self->drm, HANDLE));
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, gated_job_submit(&job, self->drm, HANDLE, 1));
		EXPECT_EQ(i, job.sequence);
		EXPECT_EQ(i + 1, listed_sequence(self->drm));
		gated_job_open_gate(&job);
		ASSERT_EQ(0, gated_job_wait(&job, LIMIT_S));
		gated_job_free(&job);
	}
	sequence = listed_sequence(self->drm);
	ASSERT_EQ(0, context_destroy(self->drm, HANDLE));
	ASSERT_EQ(0, context_create_at(self->drm, HANDLE));
	ASSERT_EQ(0, skip_fences(self->drm, HANDLE, sequence));
	EXPECT_EQ(sequence, listed_sequence(self->drm));
	for (old.sequence = 1; old.sequence < sequence; old.sequence++)
		EXPECT_EQ(0, gated_job_wait(&old, LIMIT_S));
	EXPECT_EQ(-EINVAL, gated_job_wait(&old, LIMIT_S));
	/* The wait has used an engine. */
	EXPECT_EQ(-EBUSY, skip_fences(self->drm, HANDLE, sequence));
	ASSERT_EQ(0, gated_job_submit(&job, self->drm, HANDLE, 1));
	EXPECT_EQ(sequence, job.sequence);
	gated_job_open_gate(&job);
	EXPECT_EQ(0, gated_job_wait(&job, LIMIT_S));
	EXPECT_EQ(sequence + 1, listed_sequence(self->drm));
	gated_job_free(&job);
}

TEST_F(handle_list_objects, the_fences_of_a_context_begin_with_any_number)
{
	const __u64 sequences[] = { 1, 0xffffffff, 1ULL << 32, 0x123456789, ~0ULL >> 1 };
	struct gated_job job;
	unsigned int i;

	EXPECT_EQ(-EINVAL, skip_fences(self->drm, HANDLE, 5));
	for (i = 0; i < sizeof(sequences) / sizeof(*sequences); i++) {
		ASSERT_EQ(0, context_create_at(self->drm, HANDLE));
		EXPECT_EQ(0, skip_fences(self->drm, HANDLE, 7));
		EXPECT_EQ(-EINVAL, skip_fences(self->drm, HANDLE, 0));
		EXPECT_EQ(-EINVAL, skip_fences(self->drm, HANDLE, 1ULL << 63));
		EXPECT_EQ(-EINVAL, skip_fences(self->drm, HANDLE, ~0ULL));
		EXPECT_EQ(-EINVAL, skip_fences(self->drm, OTHER, 5));
		EXPECT_EQ(7, listed_sequence(self->drm));
		EXPECT_EQ(0, skip_fences(self->drm, HANDLE, sequences[i]));
		EXPECT_EQ(sequences[i], listed_sequence(self->drm));
		ASSERT_EQ(0, gated_job_submit(&job, self->drm, HANDLE, 1));
		EXPECT_EQ(sequences[i], job.sequence);
		EXPECT_EQ(-ETIME, gated_job_wait(&job, 0));
		EXPECT_EQ(-EBUSY, skip_fences(self->drm, HANDLE, sequences[i]));
		gated_job_open_gate(&job);
		EXPECT_EQ(0, gated_job_wait(&job, LIMIT_S));
		gated_job_free(&job);
		ASSERT_EQ(0, context_destroy(self->drm, HANDLE));
	}
}

TEST_F(handle_list_objects, a_priority_from_the_drm_master_is_reported)
{
	union drm_amdgpu_sched args = {
		.in = {
			.op = AMDGPU_SCHED_OP_CONTEXT_PRIORITY_OVERRIDE,
			.fd = self->drm,
			.priority = AMDGPU_CTX_PRIORITY_LOW,
			.ctx_id = HANDLE,
		},
	};
	const int master = drm_open("amdgpu", DRM_PRIMARY_NODE);

	ASSERT_LE(0, master);
	ASSERT_EQ(0, context_create_at(self->drm, HANDLE));
	ASSERT_EQ(0, context_create_at(self->drm, OTHER));
	ASSERT_EQ(0, drm_call(master, DRM_IOCTL_AMDGPU_SCHED, &args));
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	EXPECT_EQ(AMDGPU_LIST_CONTEXT_OVERRIDDEN, self->contexts[0].flags);
	EXPECT_EQ(AMDGPU_CTX_PRIORITY_NORMAL, self->contexts[0].priority);
	EXPECT_EQ(0, self->contexts[1].flags);
	close(master);
}

static int stable_pstate(int drm, __u32 op, __u32 id, __u32 *pstate)
{
	union drm_amdgpu_ctx args = {
		.in = {
			.op = op,
			.flags = op == AMDGPU_CTX_OP_SET_STABLE_PSTATE ? *pstate : 0,
			.ctx_id = id,
		},
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_CTX, &args);

	if (!r && op == AMDGPU_CTX_OP_GET_STABLE_PSTATE)
		*pstate = args.out.pstate.flags;
	return r;
}

TEST_F(handle_list_objects, only_the_context_that_set_the_stable_pstate_has_it)
{
	__u32 pstate = AMDGPU_CTX_STABLE_PSTATE_PEAK;

	ASSERT_EQ(0, context_create_at(self->drm, HANDLE));
	ASSERT_EQ(0, context_create_at(self->drm, OTHER));
	if (stable_pstate(self->drm, AMDGPU_CTX_OP_SET_STABLE_PSTATE, OTHER, &pstate))
		TH_LOG("the GPU has no stable pstates");
	/* A GPU without power management accepts it, and has no level afterwards. */
	ASSERT_EQ(0, stable_pstate(self->drm, AMDGPU_CTX_OP_GET_STABLE_PSTATE, OTHER, &pstate));
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->contexts, SPACE));
	EXPECT_EQ(AMDGPU_CTX_STABLE_PSTATE_NONE, self->contexts[0].stable_pstate);
	EXPECT_EQ(pstate, self->contexts[1].stable_pstate);
}

/* ---- BO lists ---- */

static int change_bo_list(int drm, __u32 operation, __u32 list,
			  const struct drm_amdgpu_bo_list_entry *entries, __u32 count)
{
	union drm_amdgpu_bo_list args = {
		.in = {
			.operation = operation,
			.list_handle = list,
			.bo_number = count,
			.bo_info_size = sizeof(*entries),
			.bo_info_ptr = (unsigned long)entries,
		},
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_BO_LIST, &args);
}

static int create_bo_list(int drm, __u32 list, const struct drm_amdgpu_bo_list_entry *entries,
			  __u32 count)
{
	return change_bo_list(drm, AMDGPU_BO_LIST_OP_CREATE_AT, list, entries, count);
}

TEST_F(handle_list_objects, bo_lists_are_listed_with_what_creates_them)
{
	/* Without order the driver would have to list entries of equal priorities in any order. */
	const struct drm_amdgpu_bo_list_entry three[] = { { 5, 3 }, { 6, 1 }, { HANDLE, 32 } };
	const struct drm_amdgpu_bo_list_entry one[] = { { HANDLE, 99 } };
	const struct drm_amdgpu_list_bo_list_entry wanted[] = {
		{ .list = 1, .flags = AMDGPU_LIST_BO_LIST_EMPTY },
		{ .list = HANDLE, .handle = 6, .priority = 1 },
		{ .list = HANDLE, .handle = 5, .priority = 3 },
		{ .list = HANDLE, .handle = HANDLE, .priority = 32 },
		/* The driver has no higher priority than this. */
		{ .list = MAX_HANDLE, .handle = HANDLE, .priority = 32 },
	};
	const struct drm_amdgpu_list_bo_list_entry *entry;
	struct drm_amdgpu_bo_list_entry again[3];
	int i;

	EXPECT_EQ(0, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, self->bo_lists, SPACE));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, 5));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, 6));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, gem_create_at(self->peer, SIZE, HANDLE));
	ASSERT_EQ(0, create_bo_list(self->drm, MAX_HANDLE, one, 1));
	ASSERT_EQ(0, create_bo_list(self->drm, HANDLE, three, 3));
	ASSERT_EQ(0, create_bo_list(self->drm, 1, three, 0));
	ASSERT_EQ(0, create_bo_list(self->drm, OTHER, three, 3));
	ASSERT_EQ(0, bo_list_destroy(self->drm, OTHER));
	ASSERT_EQ(0, create_bo_list(self->peer, 2, one, 1));
	ASSERT_EQ(5, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, self->bo_lists, SPACE));
	EXPECT_EQ(0, memcmp(wanted, self->bo_lists, sizeof(wanted)));

	ASSERT_EQ(0, bo_list_destroy(self->drm, HANDLE));
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, NULL, 0));
	entry = self->bo_lists + 1;
	for (i = 0; i < 3; i++) {
		again[i].bo_handle = entry[i].handle;
		again[i].bo_priority = entry[i].priority;
	}
	ASSERT_EQ(0, create_bo_list(self->drm, entry->list, again, 3));
	memset(self->bytes, PATTERN, sizeof(self->bytes));
	ASSERT_EQ(5, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, self->bo_lists, SPACE));
	EXPECT_EQ(0, memcmp(wanted, self->bo_lists, sizeof(wanted)));

	/* An update replaces the entries of the list. */
	ASSERT_EQ(0, change_bo_list(self->drm, AMDGPU_BO_LIST_OP_UPDATE, HANDLE, one, 1));
	ASSERT_EQ(3, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, self->bo_lists, SPACE));
	EXPECT_EQ(HANDLE, self->bo_lists[1].list);
	EXPECT_EQ(HANDLE, self->bo_lists[1].handle);
}

/* The handle of the only entry of the only BO list, or ~0. */
static __u32 listed_handle(int drm)
{
	struct drm_amdgpu_list_bo_list_entry entry;

	if (list_objects(drm, AMDGPU_LIST_BO_LISTS, &entry, 1) != 1 || entry.flags)
		return ~0U;
	return entry.handle;
}

TEST_F(handle_list_objects, an_object_of_a_bo_list_has_the_handle_that_is_open)
{
	int fd;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, 1));
	ASSERT_EQ(0, bo_list_create_at(self->drm, HANDLE, OTHER));
	ASSERT_EQ(0, gem_export(self->drm, HANDLE, &fd));
	EXPECT_EQ(HANDLE, listed_handle(self->drm));
	ASSERT_EQ(0, gem_close(self->drm, HANDLE));
	EXPECT_EQ(0, listed_handle(self->drm));
	/* Another object has the number now. */
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	EXPECT_EQ(0, listed_handle(self->drm));
	ASSERT_EQ(0, gem_import_at(self->drm, fd, 5));
	EXPECT_EQ(5, listed_handle(self->drm));
	/* Without a descriptor, too, the list keeps the object whose handles are closed. */
	ASSERT_EQ(0, gem_close(self->drm, 5));
	ASSERT_EQ(0, close(fd));
	EXPECT_EQ(0, listed_handle(self->drm));
}

/* Gives the object another handle, which only primary nodes do. */
static int open_again(int drm, __u32 handle, __u32 *other)
{
	struct drm_gem_flink name = { .handle = handle };
	struct drm_gem_open args = {};
	int r = drm_call(drm, DRM_IOCTL_GEM_FLINK, &name);

	if (r)
		return r;
	args.name = name.name;
	r = drm_call(drm, DRM_IOCTL_GEM_OPEN, &args);
	*other = args.handle;
	return r;
}

TEST_F(handle_list_objects, an_object_with_two_handles_has_the_lower_one)
{
	const int drm = drm_open("amdgpu", DRM_PRIMARY_NODE);
	__u32 other;

	ASSERT_LE(0, drm);
	ASSERT_EQ(0, gem_create_at(drm, SIZE, HANDLE));
	ASSERT_EQ(0, open_again(drm, HANDLE, &other));
	ASSERT_GT(HANDLE, other);
	ASSERT_EQ(0, bo_list_create_at(drm, HANDLE, OTHER));
	EXPECT_EQ(other, listed_handle(drm));
	ASSERT_EQ(0, gem_close(drm, other));
	EXPECT_EQ(HANDLE, listed_handle(drm));
	ASSERT_EQ(0, gem_close(drm, HANDLE));
	EXPECT_EQ(0, listed_handle(drm));
	close(drm);
}

/* So many handles that their hash table has collisions, and each object twice. */
TEST_F(handle_list_objects, each_of_many_objects_has_its_handle)
{
	struct drm_amdgpu_bo_list_entry entries[SPACE];
	bool found[MANY + 1] = {};
	__u32 i;

	for (i = 1; i <= MANY; i++) {
		ASSERT_EQ(0, gem_create_at(self->drm, DRM_PAGE, i));
		entries[i - 1].bo_handle = i;
		entries[i - 1].bo_priority = i % 32;
	}
	ASSERT_EQ(0, create_bo_list(self->drm, HANDLE, entries, MANY));
	for (i = 2; i <= MANY; i += 2)
		ASSERT_EQ(0, gem_close(self->drm, i));
	ASSERT_EQ(MANY, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, self->bo_lists, SPACE));
	for (i = 0; i < MANY; i++) {
		const __u32 handle = self->bo_lists[i].handle;

		ASSERT_GE(MANY, handle);
		ASSERT_TRUE(!handle || handle % 2);
		ASSERT_TRUE(!handle || handle % 32 == self->bo_lists[i].priority);
		ASSERT_TRUE(!handle || !found[handle]);
		found[handle] = true;
	}
	for (i = 1; i <= MANY; i += 2)
		EXPECT_TRUE(found[i]);
}

/* ---- user memory ---- */

TEST_F(handle_list_objects, user_memory_is_listed_with_what_creates_it)
{
	unsigned char *memory = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct drm_amdgpu_gem_userptr readonly = {
		.addr = (unsigned long)memory + SIZE,
		.size = SIZE,
		.flags = AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_AT_HANDLE,
		.handle = MAX_HANDLE,
	};
	const struct drm_amdgpu_list_userptr wanted[] = {
		{ .handle = HANDLE, .flags = USERPTR_FLAGS, .addr = (unsigned long)memory,
		  .pid = getpid() },
		{ .handle = MAX_HANDLE, .flags = AMDGPU_GEM_USERPTR_READONLY,
		  .addr = (unsigned long)memory + SIZE, .pid = getpid() },
	};

	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, 1));
	EXPECT_EQ(0, list_objects(self->drm, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	ASSERT_EQ(0, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_USERPTR, &readonly));
	ASSERT_EQ(0, userptr_create_at(self->drm, memory, SIZE, HANDLE));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, OTHER));
	EXPECT_EQ(0, list_objects(self->peer, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	EXPECT_EQ(0, memcmp(wanted, self->userptrs, sizeof(wanted)));

	/* Memory that was unmapped is still that of the object. */
	munmap(memory, 2 * SIZE);
	memset(self->bytes, PATTERN, sizeof(self->bytes));
	ASSERT_EQ(2, list_objects(self->drm, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	EXPECT_EQ(0, memcmp(wanted, self->userptrs, sizeof(wanted)));
	ASSERT_EQ(0, gem_close(self->drm, HANDLE));
	ASSERT_EQ(1, list_objects(self->drm, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	EXPECT_EQ(MAX_HANDLE, self->userptrs[0].handle);
}

/* Returns the status with which a child ends, or -1 if it ends otherwise. */
static int exit_status(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Status 0: in a pid namespace without other processes, the only entry of the list has pid 0. */
static int list_in_new_namespace(int drm)
{
	struct drm_amdgpu_list_userptr entry;
	pid_t child;

	if (unshare(CLONE_NEWPID))
		return 3;
	child = fork();
	if (!child) {
		if (list_objects(drm, AMDGPU_LIST_USERPTRS, &entry, 1) != 1)
			_exit(2);
		_exit(entry.pid != 0);
	}
	return exit_status(child);
}

TEST_F(handle_list_objects, user_memory_is_listed_with_the_process_that_has_it)
{
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	int from_maker[2], to_maker[2];
	pid_t maker, child;
	char byte;

	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_EQ(0, pipe2(from_maker, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(to_maker, O_CLOEXEC));
	maker = fork();
	if (!maker) {
		if (userptr_create_at(self->drm, memory, SIZE, HANDLE) ||
		    write(from_maker[1], "", 1) != 1 || read(to_maker[0], &byte, 1) != 1)
			_exit(1);
		execl("/bin/sleep", "sleep", "60", NULL);
		_exit(1);
	}
	ASSERT_LT(0, maker);
	close(from_maker[1]);
	ASSERT_EQ(1, read(from_maker[0], &byte, 1));
	/* This process, too, has memory at the address. */
	ASSERT_EQ(1, list_objects(self->drm, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	EXPECT_EQ(maker, self->userptrs[0].pid);
	EXPECT_EQ((unsigned long)memory, self->userptrs[0].addr);
	child = fork();
	if (!child)
		_exit(list_in_new_namespace(self->drm));
	EXPECT_EQ(0, exit_status(child));

	/* The pipe ends when execve() has closed the maker's end. */
	ASSERT_EQ(1, write(to_maker[1], "", 1));
	ASSERT_EQ(0, read(from_maker[0], &byte, 1));
	ASSERT_EQ(1, list_objects(self->drm, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	EXPECT_EQ(0, self->userptrs[0].pid);
	EXPECT_EQ(0, kill(maker, SIGKILL));
	EXPECT_EQ(-1, exit_status(maker));
	ASSERT_EQ(1, list_objects(self->drm, AMDGPU_LIST_USERPTRS, self->userptrs, SPACE));
	EXPECT_EQ(0, self->userptrs[0].pid);
}

/* ---- all lists ---- */

/* Creates two objects of each type. */
static int create_pairs(int drm, void *memory)
{
	const __u32 numbers[] = { HANDLE, OTHER };
	int i, r = gem_create_at(drm, SIZE, 1);

	for (i = 0; !r && i < 2; i++) {
		r = context_create_at(drm, numbers[i]);
		if (!r)
			r = bo_list_create_at(drm, 1, numbers[i]);
		if (!r)
			r = userptr_create_at(drm, memory, DRM_PAGE, numbers[i]);
	}
	return r;
}

static const __u32 types[] = {
	AMDGPU_LIST_CONTEXTS, AMDGPU_LIST_BO_LISTS, AMDGPU_LIST_USERPTRS,
};

static const __u32 sizes[] = {
	sizeof(struct drm_amdgpu_list_context),
	sizeof(struct drm_amdgpu_list_bo_list_entry),
	sizeof(struct drm_amdgpu_list_userptr),
};

#define TYPES	((int)(sizeof(types) / sizeof(*types)))

TEST_F(handle_list_objects, nothing_is_written_if_the_array_is_too_small)
{
	void *memory = mmap(NULL, DRM_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	int i;

	ASSERT_NE(MAP_FAILED, memory);
	for (i = 0; i < TYPES; i++) {
		EXPECT_EQ(0, list_objects(self->drm, types[i], NULL, 0));
		EXPECT_EQ(0, list_objects(self->drm, types[i], BAD_POINTER, SPACE));
	}
	ASSERT_EQ(0, create_pairs(self->drm, memory));
	for (i = 0; i < TYPES; i++) {
		EXPECT_EQ(2, list_objects(self->drm, types[i], BAD_POINTER, 0));
		EXPECT_EQ(2, list_objects(self->drm, types[i], BAD_POINTER, 1));
		EXPECT_EQ(2, list_objects(self->drm, types[i], self->bytes, 1));
		EXPECT_EQ(PATTERN, self->bytes[0]);
		/* Nothing is written behind the last one, either. */
		EXPECT_EQ(2, list_objects(self->drm, types[i], self->bytes, 0xffffffff));
		EXPECT_NE(PATTERN, self->bytes[2 * sizes[i] - 1]);
		EXPECT_EQ(PATTERN, self->bytes[2 * sizes[i]]);
		memset(self->bytes, PATTERN, sizeof(self->bytes));
	}
	munmap(memory, DRM_PAGE);
}

TEST_F(handle_list_objects, a_list_that_has_grown_is_listed_with_a_larger_array)
{
	__u32 i;

	ASSERT_EQ(0, gem_create_at(self->drm, DRM_PAGE, 1));
	for (i = 1; i < MANY; i++) {
		ASSERT_EQ(0, context_create_at(self->drm, i));
		ASSERT_EQ(0, bo_list_create_at(self->drm, 1, i));
	}
	ASSERT_EQ(MANY - 1, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, NULL, 0));
	ASSERT_EQ(MANY - 1, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, NULL, 0));
	ASSERT_EQ(0, context_create_at(self->drm, MANY));
	ASSERT_EQ(0, bo_list_create_at(self->drm, 1, MANY));
	ASSERT_EQ(MANY, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->bytes, MANY - 1));
	ASSERT_EQ(MANY, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, self->bytes, MANY - 1));
	EXPECT_EQ(PATTERN, self->bytes[0]);
	ASSERT_EQ(MANY, list_objects(self->drm, AMDGPU_LIST_CONTEXTS, self->bytes, MANY));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(i + 1, self->contexts[i].id);
	ASSERT_EQ(MANY, list_objects(self->drm, AMDGPU_LIST_BO_LISTS, self->bytes, MANY));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(i + 1, self->bo_lists[i].list);
}

static int list_with(int drm, __u32 type, __u32 entry_size, __u32 flags, void *entries)
{
	struct drm_amdgpu_list_objects args = {
		.type = type,
		.entry_size = entry_size,
		.entries = (unsigned long)entries,
		.count = SPACE,
		.flags = flags,
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_LIST_OBJECTS, &args);
}

TEST_F(handle_list_objects, wrong_arguments_are_refused)
{
	const __u32 no_types[] = { 0, TYPES + 1, 0x7fffffff, 0x80000001, 0xffffffff };
	const __u32 no_sizes[] = { 0, 4, 12, 15, 17, 20, 23, 25, 32, 0x80000010, 0xffffffff };
	void *memory = mmap(NULL, DRM_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	unsigned int i, j;

	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_EQ(0, create_pairs(self->drm, memory));
	for (i = 0; i < sizeof(no_types) / sizeof(*no_types); i++)
		for (j = 0; j < TYPES; j++)
			EXPECT_EQ(-EINVAL, list_with(self->drm, no_types[i], sizes[j], 0,
						     self->bytes));
	for (i = 0; i < TYPES; i++) {
		for (j = 0; j < sizeof(no_sizes) / sizeof(*no_sizes); j++)
			EXPECT_EQ(-EINVAL, list_with(self->drm, types[i], no_sizes[j], 0,
						     self->bytes));
		/* The size of a type that has another one */
		j = types[i] != AMDGPU_LIST_BO_LISTS;
		EXPECT_EQ(-EINVAL, list_with(self->drm, types[i], sizes[j], 0, self->bytes));
		EXPECT_EQ(-EINVAL, list_with(self->drm, types[i], sizes[i], 1, self->bytes));
		EXPECT_EQ(-EINVAL, list_with(self->drm, types[i], sizes[i], 1U << 31, self->bytes));
		EXPECT_EQ(-EFAULT, list_with(self->drm, types[i], sizes[i], 0, BAD_POINTER));
		EXPECT_EQ(-EFAULT, list_with(self->drm, types[i], sizes[i], 0, (void *)-16L));
	}
	EXPECT_EQ(PATTERN, self->bytes[0]);

	/* The file is all the caller needs. */
	ASSERT_EQ(0, seteuid(NOBODY));
	for (i = 0; i < TYPES; i++)
		EXPECT_EQ(0, list_with(self->drm, types[i], sizes[i], 0, self->bytes));
	ASSERT_EQ(0, seteuid(0));
	munmap(memory, DRM_PAGE);
}

DRM_TEST_MAIN
