// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Calls the ioctls that take numbers, and those that list objects, with random arguments. A
 * call fails with an errno that it can have, or gives the object the number it was asked for.
 *
 * DRM_HANDLE_AT_CALLS=N makes N calls instead of 50,000; DRM_HANDLE_AT_SEED=N begins with
 * another seed.
 *
 * Runs: once
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"

#define LIMIT_S		3600
#define DEFAULT_CALLS	50000
/* The file is opened again after so many calls, which frees what they created. */
#define CALLS_OF_A_FILE	250
#define MOST_CHANGES	3
#define SIZE		(4 * DRM_PAGE)
#define LARGEST_SIZE	(256 * DRM_PAGE)
#define LARGEST_ARGS	128
/*
 * Buffers of the calls. Nothing else is mapped within 4 GiB of them, so that an address of
 * which one half was changed reaches no other memory of the test.
 */
#define ARENA		((unsigned char *)0x500000000UL)
#define ARENA_SIZE	0x10000UL
#define ENTRIES		16
/* More than the calls of a file create, so that lists are not only counted. */
#define MOST_LISTED	CALLS_OF_A_FILE
#define LIST_TYPES	(AMDGPU_LIST_USERPTRS - AMDGPU_LIST_CONTEXTS + 1)

union args {
	struct drm_prime_handle_at import;
	union drm_amdgpu_gem_create create;
	struct drm_amdgpu_gem_userptr userptr;
	union drm_amdgpu_ctx context;
	union drm_amdgpu_bo_list bo_list;
	struct drm_syncobj_create syncobj;
	struct drm_syncobj_handle syncobj_import;
	struct drm_amdgpu_gem_list_handles list;
	struct drm_amdgpu_gem_op op;
	struct drm_amdgpu_list_objects objects;
	struct drm_syncobj_list syncobjs;
	__u32 words[LARGEST_ARGS / 4];
};

FIXTURE(handle_fuzz) {
	int drm, peer;
	int dmabuf, syncobj;
};

static __u64 state;

static __u32 next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 16;
}

static unsigned long number_of(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

/* Handles that are often free, taken, or none. */
static __u32 random_handle(void)
{
	switch (next_random() % 8) {
	case 0:
		return 0;
	case 1:
		return MAX_HANDLE;
	case 2:
		return next_random();
	default:
		return 1 + next_random() % 32;
	}
}

static __u32 random_word(__u32 was)
{
	switch (next_random() % 5) {
	case 0:
		return 0;
	case 1:
		return ~0U;
	case 2:
		return was ^ 1U << next_random() % 32;
	case 3:
		return was + 1;
	default:
		return next_random();
	}
}

struct call {
	unsigned long request;
};

/* Makes valid arguments. */
static void choose(struct call *call, union args *args, int dmabuf, int syncobj)
{
	const __u32 handle = random_handle();

	memset(args, 0, sizeof(*args));
	switch (next_random() % 11) {
	case 0:
		call->request = DRM_IOCTL_PRIME_FD_TO_HANDLE_AT;
		args->import.handle = handle;
		args->import.fd = dmabuf;
		break;
	case 1:
		call->request = DRM_IOCTL_AMDGPU_GEM_CREATE;
		args->create.in.bo_size = SIZE;
		args->create.in.alignment = DRM_PAGE;
		args->create.in.domains = AMDGPU_GEM_DOMAIN_GTT;
		args->create.in.domain_flags = AMDGPU_GEM_CREATE_AT_HANDLE;
		args->create.in.handle = handle;
		break;
	case 2:
		call->request = DRM_IOCTL_AMDGPU_GEM_USERPTR;
		args->userptr.addr = (unsigned long)ARENA;
		args->userptr.size = SIZE;
		args->userptr.flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER |
				      AMDGPU_GEM_USERPTR_AT_HANDLE;
		args->userptr.handle = handle;
		break;
	case 3:
		call->request = DRM_IOCTL_AMDGPU_CTX;
		args->context.in.op = next_random() % 4 ? AMDGPU_CTX_OP_ALLOC_AT :
							  AMDGPU_CTX_OP_SKIP_FENCES;
		args->context.in.ctx_id = handle;
		break;
	case 4:
		call->request = DRM_IOCTL_AMDGPU_BO_LIST;
		args->bo_list.in.operation = AMDGPU_BO_LIST_OP_CREATE_AT;
		args->bo_list.in.list_handle = handle;
		args->bo_list.in.bo_info_size = sizeof(struct drm_amdgpu_bo_list_entry);
		args->bo_list.in.bo_info_ptr = (unsigned long)ARENA;
		break;
	case 5:
		call->request = DRM_IOCTL_SYNCOBJ_CREATE;
		args->syncobj.handle = handle;
		args->syncobj.flags = DRM_SYNCOBJ_CREATE_AT_HANDLE;
		break;
	case 6:
		call->request = DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE;
		args->syncobj_import.handle = handle;
		args->syncobj_import.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_AT_HANDLE;
		args->syncobj_import.fd = syncobj;
		break;
	case 7:
		call->request = DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES;
		args->list.entries = (unsigned long)ARENA;
		args->list.num_entries = ENTRIES;
		break;
	case 8:
		call->request = DRM_IOCTL_AMDGPU_LIST_OBJECTS;
		args->objects.type = AMDGPU_LIST_CONTEXTS + next_random() % LIST_TYPES;
		args->objects.entry_size = args->objects.type == AMDGPU_LIST_CONTEXTS ?
						   sizeof(struct drm_amdgpu_list_context) :
						   sizeof(struct drm_amdgpu_list_userptr);
		args->objects.entries = (unsigned long)ARENA;
		args->objects.count = MOST_LISTED;
		break;
	case 9:
		call->request = DRM_IOCTL_SYNCOBJ_LIST;
		args->syncobjs.entries = (unsigned long)ARENA;
		args->syncobjs.count = MOST_LISTED;
		break;
	default:
		call->request = DRM_IOCTL_AMDGPU_GEM_OP;
		args->op.handle = handle;
		args->op.op = AMDGPU_GEM_OP_GET_MAPPING_INFO;
		args->op.value = (unsigned long)ARENA;
		args->op.num_entries = ENTRIES;
	}
}

/*
 * Large objects would leave no memory for other calls. Domains of which there is little are not
 * about handles, either.
 */
static void limit(const struct call *call, union args *args)
{
	if (call->request == DRM_IOCTL_AMDGPU_GEM_USERPTR && args->userptr.size > LARGEST_SIZE)
		args->userptr.size = SIZE;
	if (call->request != DRM_IOCTL_AMDGPU_GEM_CREATE)
		return;
	if (args->create.in.bo_size > LARGEST_SIZE)
		args->create.in.bo_size = SIZE;
	args->create.in.domains &= ~(__u64)(AMDGPU_GEM_DOMAIN_GDS | AMDGPU_GEM_DOMAIN_GWS |
					    AMDGPU_GEM_DOMAIN_OA);
	args->create.in.domain_flags &= ~(__u64)AMDGPU_GEM_CREATE_ENCRYPTED;
}

/* The number that the object is to have, or 0 if any will do. */
static __u32 wanted(const struct call *call, const union args *args)
{
	switch (call->request) {
	case DRM_IOCTL_AMDGPU_GEM_CREATE:
		return args->create.in.domain_flags & AMDGPU_GEM_CREATE_AT_HANDLE ?
			       args->create.in.handle : 0;
	case DRM_IOCTL_AMDGPU_GEM_USERPTR:
		return args->userptr.flags & AMDGPU_GEM_USERPTR_AT_HANDLE ?
			       args->userptr.handle : 0;
	case DRM_IOCTL_AMDGPU_CTX:
		return args->context.in.op == AMDGPU_CTX_OP_ALLOC_AT ?
			       args->context.in.ctx_id : 0;
	case DRM_IOCTL_AMDGPU_BO_LIST:
		return args->bo_list.in.operation == AMDGPU_BO_LIST_OP_CREATE_AT ?
			       args->bo_list.in.list_handle : 0;
	case DRM_IOCTL_SYNCOBJ_CREATE:
		return args->syncobj.flags & DRM_SYNCOBJ_CREATE_AT_HANDLE ?
			       args->syncobj.handle : 0;
	case DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE:
		return args->syncobj_import.flags & DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_AT_HANDLE ?
			       args->syncobj_import.handle : 0;
	default:
		return 0;
	}
}

/* The number that the kernel has returned. */
static __u32 returned(const struct call *call, const union args *args)
{
	switch (call->request) {
	case DRM_IOCTL_AMDGPU_GEM_USERPTR:
		return args->userptr.handle;
	default:
		/* The first member of the others. */
		return args->words[0];
	}
}

/* How many entries a list that may have been written has; 0 of calls that list nothing. */
static __u32 listed(const struct call *call, const union args *args)
{
	switch (call->request) {
	case DRM_IOCTL_AMDGPU_LIST_OBJECTS:
		return args->objects.count;
	case DRM_IOCTL_SYNCOBJ_LIST:
		return args->syncobjs.count;
	default:
		return 0;
	}
}

static bool is_expected_errno(int r)
{
	switch (-r) {
	case 0:
	case EACCES:
	case EAGAIN:
	case EBADF:
	case EBUSY:
	case EEXIST:
	case EFAULT:
	case EINVAL:
	case ENOENT:
	case ENOMEM:
	case ENOSPC:
	case EOPNOTSUPP:
	case EOVERFLOW:
	case EPERM:
		return true;
	default:
		return false;
	}
}

FIXTURE_SETUP(handle_fuzz)
{
	__u32 handle;

	self->drm = -1;
	self->peer = drm_open("amdgpu", DRM_RENDER_NODE);
	if (self->peer == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, self->peer);
	ASSERT_EQ(0, gem_create(self->peer, SIZE, &handle));
	ASSERT_EQ(0, gem_export(self->peer, handle, &self->dmabuf));
	ASSERT_EQ(0, syncobj_create_at(self->peer, 0, 1));
	ASSERT_EQ(0, syncobj_export(self->peer, 1, &self->syncobj));
	ASSERT_EQ(ARENA, mmap(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
}

FIXTURE_TEARDOWN(handle_fuzz)
{
	close(self->syncobj);
	close(self->dmabuf);
	close(self->drm);
	close(self->peer);
	munmap(ARENA, ARENA_SIZE);
}

TEST_F_TIMEOUT(handle_fuzz, random_arguments_are_refused_or_obeyed, LIMIT_S)
{
	const unsigned long calls = number_of("DRM_HANDLE_AT_CALLS", DEFAULT_CALLS);
	const unsigned long seed = number_of("DRM_HANDLE_AT_SEED", 1);
	unsigned long i, refused = 0, obeyed = 0, lists = 0;
	struct call call;
	union args args;
	__u32 size, want, space;
	int r, changes;

	for (i = 0; i < calls; i++) {
		state = 0x9e3779b97f4a7c15ULL * (seed + i) | 1;
		next_random();
		if (i % CALLS_OF_A_FILE == 0) {
			close(self->drm);
			self->drm = drm_open("amdgpu", DRM_RENDER_NODE);
			ASSERT_LE(0, self->drm);
		}
		choose(&call, &args, self->dmabuf, self->syncobj);
		size = _IOC_SIZE(call.request);
		for (changes = next_random() % (MOST_CHANGES + 1); changes; changes--) {
			__u32 *word = &args.words[next_random() % (size / 4)];

			*word = random_word(*word);
		}
		limit(&call, &args);
		if (next_random() % 8 == 0)
			size = next_random() % (LARGEST_ARGS + 1);
		want = wanted(&call, &args);
		space = listed(&call, &args);
		r = drm_call(self->drm, _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE,
					     _IOC_NR(call.request), size), &args);
		ASSERT_TRUE(is_expected_errno(r))
			TH_LOG("DRM_HANDLE_AT_SEED=%lu: ioctl %#lx, %u bytes: %d", seed + i,
			       call.request, size, r);
		refused += r < 0;
		/* The kernel takes what is behind the size as 0, so also the number. */
		if (r || size < _IOC_SIZE(call.request))
			continue;
		lists += listed(&call, &args) && listed(&call, &args) <= space;
		if (!want)
			continue;
		obeyed++;
		ASSERT_EQ(want, returned(&call, &args))
			TH_LOG("DRM_HANDLE_AT_SEED=%lu: ioctl %#lx", seed + i, call.request);
	}
	TH_LOG("%lu of %lu calls refused, %lu gave the number that was asked for", refused, calls,
	       obeyed);
	TH_LOG("%lu calls listed objects", lists);
	EXPECT_LT(0, refused);
	EXPECT_LT(0, obeyed);
	EXPECT_LT(0, lists);
}

DRM_TEST_MAIN
