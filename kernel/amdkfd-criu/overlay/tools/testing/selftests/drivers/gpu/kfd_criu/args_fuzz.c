// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Arguments that nobody ever meant, of both ABIs, to a process that has GPU memory and an
 * event, or to one that has nothing, and images at hand that it can be restored from:
 * each call is refused, and then nothing has happened, or does what its operation does.
 * Twenty for each image of the program `image`, with the same environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/event.h"
#include "lib/fixture.h"
#include "lib/kfd.h"
#include "lib/rand.h"

#define LIMIT_S			36000
#define CALLS_FOR_AN_IMAGE	20
#define MOST_IN_ONE		200
#define MOST_CHANGES		4
/* Nothing else is mapped within 4 GiB, which is as far as half an address can be wrong. */
#define ARENA			((unsigned char *)0x500000000UL)
#define PART			0x40000
#define CONTENT			"content"
#define LARGEST_ARGS		256

union args {
	struct kfd_ioctl_criu_args v1;
	struct kfd_criu_v2_args v2;
	unsigned char bytes[LARGEST_ARGS];
};

enum outcome {
	AS_IT_SHOULD_BE,
	NO_PROCESS,
	NOT_AN_ANSWER,
	ANOTHER_STATE,
	NOT_THE_SAME,
};

struct walk {
	struct kfd *kfd;
	/* What it can be restored from; NULL: it has objects from the beginning. */
	const struct fixture *sample;
	struct fixture fixture;
	/* Of PROCESS_INFO, or of the sample, with places of the arena. */
	struct kfd_ioctl_criu_args v1;
	__u64 v2_size;
	__u64 handle;	/* of a BO */
	int first_free_fd;
};

struct trials {
	const struct fixture *sample;
	unsigned long seed, n;
	/* In memory that is shared. */
	struct {
		unsigned long done, refused;
		/* Times that a state was reached. */
		unsigned long restored, resumed, aborted;
		/* The last call. */
		__u32 size, op;
		int before, after, result;
	} *seen;
};

static void *part(unsigned int i)
{
	return ARENA + i * PART;
}

/* From here on files of its own have the numbers from first_free_fd on. */
static bool close_all_but(struct walk *walk)
{
	int last = walk->kfd->fd, fd;
	unsigned int i;

	for (i = 0; i < walk->kfd->num_gpus; i++)
		if (walk->kfd->gpus[i].drm > last)
			last = walk->kfd->gpus[i].drm;
	syscall(__NR_close_range, last + 1, ~0U, 0);
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd < last);
	close(fd);
	walk->first_free_fd = fd;
	return fd > last;
}

static bool map_arena(void)
{
	return mmap(ARENA, 4 * PART, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == ARENA;
}

static bool begin_with_objects(struct walk *walk)
{
	struct kfd *kfd = walk->kfd;
	int r;

	if (fixture_create(kfd, &walk->fixture, FIXTURE_BOS) ||
	    kfd_event_create(kfd) < 0 || !close_all_but(walk))
		return false;
	memcpy(walk->fixture.gtt.cpu, CONTENT, sizeof(CONTENT));
	walk->handle = walk->fixture.gtt.handle;
	walk->v2_size = PART;
	walk->v1.op = KFD_CRIU_OP_PROCESS_INFO;
	r = kfd_v1(kfd->fd, &walk->v1);
	return !r && !kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
}

/* Devices of both ABIs are the same, but for the name of what is 0. */
static void bring_images(const struct walk *walk)
{
	const struct fixture *sample = walk->sample;
	struct kfd_criu_device_bucket *devices = part(0);
	unsigned int i;

	for (i = 0; i < walk->kfd->num_gpus; i++) {
		devices[i].user_gpu_id = walk->kfd->gpus[i].id;
		devices[i].actual_gpu_id = walk->kfd->gpus[i].id;
		devices[i].drm_fd = walk->kfd->gpus[i].drm;
		devices[i].pad = 0;
	}
	memcpy(part(1), sample->v1.bos,
	       sample->v1.args.num_bos * sizeof(*sample->v1.bos));
	memcpy(part(2), sample->v1.priv, sample->v1.args.priv_data_size);
	memcpy(part(3), sample->v2.data, sample->v2.size);
}

static bool begin_empty(struct walk *walk)
{
	const struct fixture *sample = walk->sample;

	walk->v1 = sample->v1.args;
	walk->v2_size = sample->v2.size;
	walk->handle = sample->gtt.handle;
	return sample->v1.args.priv_data_size <= PART &&
	       sample->v2.size <= PART && close_all_but(walk);
}

static bool begin(struct walk *walk, struct kfd *kfd, const struct fixture *sample)
{
	memset(walk, 0, sizeof(*walk));
	walk->kfd = kfd;
	walk->sample = sample;
	if (!(sample ? begin_empty(walk) : begin_with_objects(walk)))
		return false;
	walk->v1.devices = (unsigned long)part(0);
	walk->v1.bos = (unsigned long)part(1);
	walk->v1.priv_data = (unsigned long)part(2);
	return map_arena();
}

static void mean_v1(const struct walk *walk, struct kfd_ioctl_criu_args *args)
{
	*args = walk->v1;
	args->op = rand_next() % (KFD_CRIU_OP_RESUME + 1);
	args->pid = getpid();
}

static void mean_v2(const struct walk *walk, struct kfd_criu_v2_args *args)
{
	const __u32 ops = KFD_CRIU_V2_BO_OFFSET - KFD_CRIU_V2_PROBE + 1;

	args->op = KFD_CRIU_V2_PROBE + rand_next() % ops;
	switch (args->op) {
	case KFD_CRIU_V2_PROBE:
		args->data_size = sizeof(struct kfd_criu_v2_probe);
		args->data = (unsigned long)part(3);
		break;
	case KFD_CRIU_V2_CHECKPOINT:
		args->data_size = PART;
		args->data = (unsigned long)part(3);
		break;
	case KFD_CRIU_V2_RESTORE:
		args->data_size = walk->v2_size;
		args->data = (unsigned long)part(3);
		args->devices = (unsigned long)part(0);
		args->num_devices = walk->kfd->num_gpus;
		break;
	case KFD_CRIU_V2_EXPORT_BO:
	case KFD_CRIU_V2_BO_OFFSET:
		args->gpu_id = walk->kfd->gpus[0].id;
		args->handle = walk->handle;
		break;
	case KFD_CRIU_V2_RESUME:
		args->pid = getpid();
	}
}

/* Bytes of them. */
static __u32 some_args(const struct walk *walk, union args *args)
{
	const bool is_v2 = rand_next() % 2;
	unsigned int changes = rand_next() % (MOST_CHANGES + 1);
	__u32 size = is_v2 ? sizeof(args->v2) : sizeof(args->v1);

	memset(args, 0, sizeof(*args));
	if (is_v2)
		mean_v2(walk, &args->v2);
	else
		mean_v1(walk, &args->v1);
	if (rand_next() % 8 == 0)
		size = rand_next() % (sizeof(*args) + 1);
	while (changes--)
		rand_change_one_word(args, size);
	/* As the kernel takes what is missing. */
	memset(args->bytes + size, 0, sizeof(*args) - size);
	return size;
}

static bool is_answer(int r)
{
	switch (-r) {
	case 0:
	case E2BIG:
	case EACCES:
	case EBADF:
	case EAGAIN:
	case EBUSY:
	case EEXIST:
	case EFAULT:
	case EINVAL:
	case EIO:
	case EMFILE:
	case ENODEV:
	case ENOENT:
	case ENOMEM:
	case ENOSPC:
	case ENOTTY:
	case ENXIO:
	case EOPNOTSUPP:
	case EPERM:
	case EPROTONOSUPPORT:
	case ESRCH:
	case ETIME:
		return true;
	default:
		return false;
	}
}

/* Of an operation that succeeded. */
static int state_after(__u32 op, int before)
{
	switch (op) {
	case KFD_CRIU_OP_PROCESS_INFO:
	case KFD_CRIU_V2_PAUSE:
		return KFD_CRIU_STATE_PAUSED;
	case KFD_CRIU_OP_RESTORE:
	case KFD_CRIU_V2_RESTORE:
		return KFD_CRIU_STATE_RESTORED;
	case KFD_CRIU_OP_UNPAUSE:
	case KFD_CRIU_V2_UNPAUSE:
	case KFD_CRIU_OP_RESUME:
	case KFD_CRIU_V2_RESUME:
		return KFD_CRIU_STATE_RUNNING;
	case KFD_CRIU_V2_ABORT:
		return KFD_CRIU_STATE_ABORTED;
	default:
		return before;
	}
}

/* One that failed changes nothing, or has been aborted, if it was to bring a process. */
static bool is_state_after_failure(__u32 op, int before, int after)
{
	const bool restores = op == KFD_CRIU_OP_RESTORE || op == KFD_CRIU_V2_RESTORE;
	const bool resumes = op == KFD_CRIU_OP_RESUME || op == KFD_CRIU_V2_RESUME;

	if (after == before)
		return true;
	return after == KFD_CRIU_STATE_ABORTED &&
	       ((restores && before == KFD_CRIU_STATE_RUNNING) ||
		(resumes && before == KFD_CRIU_STATE_RESTORED));
}

static bool is_state(const struct trials *trials)
{
	const __u32 op = trials->seen->op;
	const int before = trials->seen->before, after = trials->seen->after;
	const int r = trials->seen->result;

	if (r && r != -ETIME)
		return is_state_after_failure(op, before, after);
	return after == state_after(op, before);
}

static void count_states(struct trials *trials)
{
	const int before = trials->seen->before, after = trials->seen->after;

	if (before == after)
		return;
	trials->seen->restored += after == KFD_CRIU_STATE_RESTORED;
	trials->seen->aborted += after == KFD_CRIU_STATE_ABORTED;
	trials->seen->resumed += before == KFD_CRIU_STATE_RESTORED &&
				 after == KFD_CRIU_STATE_RUNNING;
}

static enum outcome call(struct walk *walk, struct trials *trials)
{
	union args args;
	const __u32 size = some_args(walk, &args);
	int r;

	if (walk->sample)
		bring_images(walk);
	trials->seen->size = size;
	/* Both ABIs have it at the same place. */
	trials->seen->op = args.v2.op;
	trials->seen->before = kfd_v2_state(walk->kfd);
	r = kfd_call(walk->kfd->fd,
		     _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
			  _IOC_NR(AMDKFD_IOC_CRIU_OP), size), &args);
	syscall(__NR_close_range, walk->first_free_fd, ~0U, 0);
	trials->seen->result = r;
	trials->seen->refused += r < 0;
	trials->seen->after = kfd_v2_state(walk->kfd);
	count_states(trials);
	if (!is_answer(r))
		return NOT_AN_ANSWER;
	return is_state(trials) ? AS_IT_SHOULD_BE : ANOTHER_STATE;
}

/* Whatever it went through, it is a process that goes on, or one that ends. */
static enum outcome end(const struct walk *walk, const struct trials *trials)
{
	struct kfd *kfd = walk->kfd;

	if (trials->seen->after == KFD_CRIU_STATE_ABORTED)
		return AS_IT_SHOULD_BE;
	if (trials->seen->after == KFD_CRIU_STATE_PAUSED &&
	    kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE))
		return NOT_THE_SAME;
	if (trials->seen->after == KFD_CRIU_STATE_RESTORED &&
	    kfd_v1_resume(kfd->fd, getpid()))
		return NOT_THE_SAME;
	if (kfd_event_create(kfd) < 0)
		return NOT_THE_SAME;
	return walk->sample || !strcmp(walk->fixture.gtt.cpu, CONTENT) ?
		       AS_IT_SHOULD_BE : NOT_THE_SAME;
}

static int call_often(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	enum outcome outcome = AS_IT_SHOULD_BE;
	struct walk walk;
	unsigned int i;

	rand_seed(trials->seed + trials->seen->done);
	if (!begin(&walk, kfd, rand_next() % 2 ? trials->sample : NULL))
		return NO_PROCESS;
	for (i = 0; i < MOST_IN_ONE && trials->seen->done + i < trials->n; i++) {
		outcome = call(&walk, trials);
		if (outcome)
			return outcome;
		/* From there it goes nowhere. */
		if (trials->seen->after == KFD_CRIU_STATE_ABORTED) {
			i++;
			break;
		}
	}
	outcome = end(&walk, trials);
	if (!outcome)
		trials->seen->done += i;
	return outcome;
}

FIXTURE(args_fuzz) {
	struct kfd kfd;
	struct fixture sample;
};

FIXTURE_SETUP(args_fuzz)
{
	int r = fixture_open_checkpointed(&self->kfd, &self->sample,
					  FIXTURE_IDLE_QUEUE);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
	ASSERT_EQ(0, kfd_v2_op(self->kfd.fd, KFD_CRIU_V2_UNPAUSE));
}

FIXTURE_TEARDOWN(args_fuzz)
{
	fixture_free(&self->sample);
	kfd_close(&self->kfd);
}

TEST_F_TIMEOUT(args_fuzz, changed_at_random_they_are_refused_or_others, LIMIT_S)
{
	struct trials trials = {
		.sample = &self->sample,
		.seed = rand_first_seed(),
		.n = CALLS_FOR_AN_IMAGE * rand_mutations(),
		.seen = shared_memory(sizeof(*trials.seen)),
	};
	int r = AS_IT_SHOULD_BE;

	ASSERT_NE(MAP_FAILED, trials.seen);
	while (!r && trials.seen->done < trials.n)
		r = kfd_in_child(call_often, &trials);
	ASSERT_EQ(AS_IT_SHOULD_BE, r)
		TH_LOG("KFD_CRIU_SEED=%lu: operation %#x, %u bytes: %d, state %d, then %d",
		       trials.seed + trials.seen->done, trials.seen->op,
		       trials.seen->size, trials.seen->result,
		       trials.seen->before, trials.seen->after);
	TH_LOG("%lu of %lu calls refused", trials.seen->refused, trials.n);
	EXPECT_LT(0, trials.seen->refused);
	EXPECT_LT(trials.seen->refused, trials.n);
	TH_LOG("%lu times restored, %lu resumed, %lu aborted",
	       trials.seen->restored, trials.seen->resumed, trials.seen->aborted);
	/* Else it never came further than to what RESTORE looks at first. */
	EXPECT_LT(0, trials.seen->restored);
	EXPECT_LT(0, trials.seen->resumed);
	EXPECT_LT(0, trials.seen->aborted);
	munmap(trials.seen, sizeof(*trials.seen));
}

KFD_TEST_MAIN
