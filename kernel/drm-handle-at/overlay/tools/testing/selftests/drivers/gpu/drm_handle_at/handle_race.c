// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Threads create, import, export, list and close objects of one file at the same few handles.
 * Each object has exactly one handle, which the inode of its DMA-buf shows, and the lists name
 * no handle that is not open. Wants a kernel with KASAN and lockdep.
 *
 * DRM_HANDLE_AT_SECONDS=N runs the first test for N seconds instead of five.
 *
 * Runs: once
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"

#define SIZE		DRM_PAGE
#define THREADS		8
/* Handles are 1 to HANDLES, so that threads meet. */
#define HANDLES		24
#define SHARED		8
#define CALLS		400
#define PAIRS		1000
#define LIMIT_S		3600

struct race {
	int drm;		/* the file with the handles */
	int peer;		/* the file that the shared objects come from */
	int shared[SHARED];	/* DMA-bufs */
	pthread_barrier_t begin, end;
	bool is_over;
	/* The first call that returned what it must not, and that. */
	const char *wrong_call;
	int wrong;
	/* How often each kind of call for GEM objects succeeded. */
	unsigned long created, imported, exported, closed, listed;
	/* How often calls for contexts, BO lists and sync objects did. */
	unsigned long others_created, others_closed, others_listed;
};

struct racer {
	struct race *race;
	__u64 random;
};

FIXTURE(handle_race) {
	struct race race;
};

FIXTURE_SETUP(handle_race)
{
	struct race *race = &self->race;
	unsigned int i;
	__u32 handle;

	memset(race, 0, sizeof(*race));
	race->drm = drm_open("amdgpu", DRM_RENDER_NODE);
	race->peer = drm_open("amdgpu", DRM_RENDER_NODE);
	if (race->drm == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, race->drm);
	ASSERT_LE(0, race->peer);
	for (i = 0; i < SHARED; i++) {
		ASSERT_EQ(0, gem_create(race->peer, SIZE, &handle));
		ASSERT_EQ(0, gem_export(race->peer, handle, &race->shared[i]));
	}
	pthread_barrier_init(&race->begin, NULL, THREADS + 1);
	pthread_barrier_init(&race->end, NULL, THREADS + 1);
}

FIXTURE_TEARDOWN(handle_race)
{
	struct race *race = &self->race;
	unsigned int i;

	for (i = 0; i < SHARED; i++)
		close(race->shared[i]);
	close(race->drm);
	close(race->peer);
	pthread_barrier_destroy(&race->begin);
	pthread_barrier_destroy(&race->end);
}

static __u32 next_random(struct racer *racer)
{
	racer->random ^= racer->random << 13;
	racer->random ^= racer->random >> 7;
	racer->random ^= racer->random << 17;
	return racer->random >> 16;
}

/* Counts the call if it succeeded; the last two arguments are errnos that it may return. */
static void expect(struct race *race, const char *call, int r, unsigned long *count,
		   int allowed, int also)
{
	if (!r)
		__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	else if (r != allowed && r != also &&
		 !__atomic_exchange_n(&race->wrong, r, __ATOMIC_RELAXED))
		race->wrong_call = call;
}

static void create(struct racer *racer)
{
	expect(racer->race, "create",
	       gem_create_at(racer->race->drm, SIZE, 1 + next_random(racer) % HANDLES),
	       &racer->race->created, -EEXIST, -EEXIST);
}

static void import(struct racer *racer)
{
	const int fd = racer->race->shared[next_random(racer) % SHARED];

	expect(racer->race, "import",
	       gem_import_at(racer->race->drm, fd, 1 + next_random(racer) % HANDLES),
	       &racer->race->imported, -EEXIST, -EBUSY);
}

/* Others may close the handle or not have created it. */
static void export(struct racer *racer)
{
	int fd;
	const int r = gem_export(racer->race->drm, 1 + next_random(racer) % HANDLES, &fd);

	expect(racer->race, "export", r, &racer->race->exported, -ENOENT, -ENOENT);
	if (!r)
		close(fd);
}

static void close_handle(struct racer *racer)
{
	expect(racer->race, "close",
	       gem_close(racer->race->drm, 1 + next_random(racer) % HANDLES),
	       &racer->race->closed, -EINVAL, -EINVAL);
}

static void list(struct racer *racer)
{
	struct drm_amdgpu_gem_list_handles_entry entries[MAX_LISTED];
	const int r = gem_list(racer->race->drm, entries);

	expect(racer->race, "list", r < 0 ? r : 0, &racer->race->listed, -EAGAIN, -EAGAIN);
}

static void create_other(struct racer *racer)
{
	const int drm = racer->race->drm;
	const __u32 number = 1 + next_random(racer) % HANDLES;
	int r, also = -EEXIST;

	switch (next_random(racer) % 3) {
	case 0:
		r = context_create_at(drm, number);
		break;
	case 1:
		/* The object of the list may not exist. */
		r = bo_list_create_at(drm, 1 + next_random(racer) % HANDLES, number);
		also = -ENOENT;
		break;
	default:
		r = syncobj_create_at(drm, 0, number);
	}
	expect(racer->race, "create another object", r, &racer->race->others_created, -EEXIST,
	       also);
}

static void destroy_other(struct racer *racer)
{
	const int drm = racer->race->drm;
	const __u32 number = 1 + next_random(racer) % HANDLES;
	int r;

	switch (next_random(racer) % 3) {
	case 0:
		r = context_destroy(drm, number);
		break;
	case 1:
		/* Succeeds without a list, too. */
		r = bo_list_destroy(drm, number);
		break;
	default:
		r = syncobj_destroy(drm, number);
	}
	expect(racer->race, "destroy another object", r, &racer->race->others_closed, -EINVAL,
	       -EINVAL);
}

/* What a list of one type wrote. */
union entries {
	struct drm_amdgpu_list_context contexts[HANDLES];
	struct drm_amdgpu_list_bo_list_entry bo_lists[HANDLES];
	struct drm_amdgpu_list_userptr userptrs[HANDLES];
	struct drm_syncobj_list_entry syncobjs[HANDLES];
};

/* Whether the numbers, which are the first word of entries, are possible and in order. */
static bool are_numbers(const void *entries, size_t size, int count)
{
	const unsigned char *bytes = entries;
	__u32 number, last = 0;
	int i;

	for (i = 0; i < count; i++) {
		memcpy(&number, bytes + i * size, sizeof(number));
		if (number <= last || number > HANDLES)
			return false;
		last = number;
	}
	return true;
}

static void list_other(struct racer *racer)
{
	const int drm = racer->race->drm;
	union entries entries;
	size_t size;
	int r;

	switch (next_random(racer) % 4) {
	case 0:
		r = list_objects(drm, AMDGPU_LIST_CONTEXTS, &entries, HANDLES);
		size = sizeof(entries.contexts[0]);
		break;
	case 1:
		r = list_objects(drm, AMDGPU_LIST_BO_LISTS, &entries, HANDLES);
		size = sizeof(entries.bo_lists[0]);
		break;
	case 2:
		r = list_objects(drm, AMDGPU_LIST_USERPTRS, &entries, HANDLES);
		size = sizeof(entries.userptrs[0]);
		break;
	default:
		r = syncobj_list(drm, entries.syncobjs, HANDLES);
		size = sizeof(entries.syncobjs[0]);
	}
	if (r > HANDLES || !are_numbers(&entries, size, r))
		r = -EBADMSG;
	expect(racer->race, "list other objects", r < 0 ? r : 0, &racer->race->others_listed,
	       -EAGAIN, -EAGAIN);
}

static void *run(void *data)
{
	void (*const calls[])(struct racer *racer) = {
		create, import, export, close_handle, close_handle, list,
		create_other, destroy_other, list_other, list_other,
	};
	struct racer *racer = data;
	struct race *race = racer->race;
	unsigned int i;

	for (;;) {
		pthread_barrier_wait(&race->begin);
		if (race->is_over)
			return NULL;
		for (i = 0; i < CALLS; i++)
			calls[next_random(racer) % (sizeof(calls) / sizeof(*calls))](racer);
		pthread_barrier_wait(&race->end);
	}
}

/* Number of handles whose object another handle has too, or that have no object. */
static int wrong_handles(int drm, int *count)
{
	struct drm_amdgpu_gem_list_handles_entry entries[MAX_LISTED];
	__u64 inodes[MAX_LISTED];
	int i, j, wrong = 0;

	*count = gem_list(drm, entries);
	for (i = 0; i < *count; i++) {
		inodes[i] = gem_inode(drm, entries[i].gem_handle);
		wrong += !inodes[i];
		for (j = 0; j < i; j++)
			wrong += inodes[j] == inodes[i];
	}
	return wrong;
}

/* Number of BO lists whose object has a handle that is not open. */
static int wrong_bo_lists(int drm)
{
	struct drm_amdgpu_gem_list_handles_entry handles[MAX_LISTED];
	struct drm_amdgpu_list_bo_list_entry entries[HANDLES];
	const int count = list_objects(drm, AMDGPU_LIST_BO_LISTS, entries, HANDLES);
	const int open = gem_list(drm, handles);
	int i, j, wrong = count < 0 || count > HANDLES || open < 0;

	for (i = 0; !wrong && i < count; i++) {
		for (j = 0; j < open && handles[j].gem_handle != entries[i].handle; j++)
			;
		wrong += entries[i].handle && j == open;
	}
	return wrong;
}

static time_t seconds(void)
{
	const char *text = getenv("DRM_HANDLE_AT_SECONDS");

	return text ? atoi(text) : 5;
}

TEST_F_TIMEOUT(handle_race, an_object_has_one_handle_whatever_threads_do, LIMIT_S)
{
	const time_t end = time(NULL) + seconds();
	struct race *race = &self->race;
	struct racer racers[THREADS];
	pthread_t threads[THREADS];
	unsigned int i, rounds = 0;
	int wrong, count = 0;

	for (i = 0; i < THREADS; i++) {
		racers[i].race = race;
		racers[i].random = 0x9e3779b97f4a7c15ULL * (i + 1);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run, &racers[i]));
	}
	do {
		pthread_barrier_wait(&race->begin);
		pthread_barrier_wait(&race->end);
		wrong = wrong_handles(race->drm, &count) + wrong_bo_lists(race->drm);
		rounds++;
	} while (!wrong && count >= 0 && !race->wrong && time(NULL) < end);
	race->is_over = true;
	pthread_barrier_wait(&race->begin);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);

	EXPECT_EQ(0, wrong);
	EXPECT_LE(0, count);
	EXPECT_EQ(0, race->wrong)
		TH_LOG("%s: %d", race->wrong_call, race->wrong);
	TH_LOG("%u rounds: %lu created, %lu imported, %lu exported, %lu closed, %lu listed", rounds,
	       race->created, race->imported, race->exported, race->closed, race->listed);
	TH_LOG("contexts, BO lists and sync objects: %lu created, %lu closed, %lu listed",
	       race->others_created, race->others_closed, race->others_listed);
	/* Otherwise the threads did not meet. */
	EXPECT_LT(0, race->created);
	EXPECT_LT(0, race->imported);
	EXPECT_LT(0, race->exported);
	EXPECT_LT(0, race->closed);
	EXPECT_LT(0, race->listed);
	EXPECT_LT(0, race->others_created);
	EXPECT_LT(0, race->others_closed);
	EXPECT_LT(0, race->others_listed);
	for (i = 1; i <= HANDLES; i++)
		gem_close(race->drm, i);
	EXPECT_EQ(0, gem_count(race->drm));
}

/* Two threads do the same thing at the same time. */
struct pair {
	pthread_barrier_t begin, end;
	int (*call)(const struct race *race, unsigned int thread);
	const struct race *race;
	int results[2];
};

struct twin {
	struct pair *pair;
	unsigned int thread;
};

static void *run_twin(void *data)
{
	const struct twin *twin = data;
	struct pair *pair = twin->pair;
	unsigned int i;

	for (i = 0; i < PAIRS; i++) {
		pthread_barrier_wait(&pair->begin);
		pair->results[twin->thread] = pair->call(pair->race, twin->thread);
		pthread_barrier_wait(&pair->end);
	}
	return NULL;
}

static int create_at_same_handle(const struct race *race, unsigned int thread)
{
	return gem_create_at(race->drm, SIZE, 1);
}

static int import_at_same_handle(const struct race *race, unsigned int thread)
{
	return gem_import_at(race->drm, race->shared[thread], 1);
}

static int import_same_object(const struct race *race, unsigned int thread)
{
	return gem_import_at(race->drm, race->shared[0], 1 + thread);
}

/* Returns how often not exactly one of the two won, or the other got another errno. */
static int unfair_pairs(struct race *race, int (*call)(const struct race *, unsigned int),
			int loses)
{
	struct pair pair = { .race = race, .call = call };
	struct twin twins[2];
	pthread_t threads[2];
	unsigned int i;
	int unfair = 0;

	pthread_barrier_init(&pair.begin, NULL, 3);
	pthread_barrier_init(&pair.end, NULL, 3);
	for (i = 0; i < 2; i++) {
		twins[i].pair = &pair;
		twins[i].thread = i;
		if (pthread_create(&threads[i], NULL, run_twin, &twins[i]))
			abort();
	}
	for (i = 0; i < PAIRS; i++) {
		pthread_barrier_wait(&pair.begin);
		pthread_barrier_wait(&pair.end);
		unfair += !((pair.results[0] == 0 && pair.results[1] == loses) ||
			    (pair.results[1] == 0 && pair.results[0] == loses));
		unfair += gem_count(race->drm) != 1;
		gem_close(race->drm, 1);
		gem_close(race->drm, 2);
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&pair.begin);
	pthread_barrier_destroy(&pair.end);
	return unfair;
}

TEST_F_TIMEOUT(handle_race, one_of_two_threads_gets_the_handle, LIMIT_S)
{
	EXPECT_EQ(0, unfair_pairs(&self->race, create_at_same_handle, -EEXIST));
	EXPECT_EQ(0, unfair_pairs(&self->race, import_at_same_handle, -EEXIST));
	EXPECT_EQ(0, unfair_pairs(&self->race, import_same_object, -EBUSY));
	EXPECT_EQ(0, gem_count(self->race.drm));
}

DRM_TEST_MAIN
