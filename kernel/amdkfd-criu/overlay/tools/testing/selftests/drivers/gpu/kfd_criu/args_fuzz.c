// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Fuzzes the ioctl arguments of both ABIs. The calling process either has GPU memory and
 * an event, or it has no object and holds images that it can be restored from. A call must
 * either fail and change nothing, or do what its operation does.
 *
 * KFD_CRIU_MUTATIONS=N makes 20 * N calls, as image_fuzz tries N images of each ABI;
 * KFD_CRIU_SEED=N begins with another seed.
 *
 * Runs: once
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
#define CALLS_IN_A_PROCESS		200
#define MOST_CHANGES		4
/*
 * Buffers of the calls. Nothing else is mapped within 4 GiB of them, so that an address of
 * which one half was changed reaches no other memory of the process.
 */
#define ARENA			((unsigned char *)0x500000000UL)
#define PART			0x40000
#define CONTENT			"content"
#define LARGEST_ARGS		256

union args {
	struct kfd_ioctl_criu_args v1;
	struct kfd_criu_args v2;
	unsigned char bytes[LARGEST_ARGS];
};

enum outcome {
	PASSED,
	NO_PROCESS,
	UNEXPECTED_ERRNO,
	WRONG_STATE,
	WRONG_CONTENTS,
};

struct caller {
	struct kfd *kfd;
	/* What the process can be restored from; NULL: it has objects from the beginning. */
	const struct fixture *sample;
	struct fixture fixture;
	/* Arguments of PROCESS_INFO or of the sample, with buffers of the arena. */
	struct kfd_ioctl_criu_args v1;
	__u64 v2_size;
	__u64 handle;	/* of an existing BO */
	/*
	 * The number at which one pause is kept open, if has_pause. Files that calls open
	 * have higher numbers.
	 */
	int pause_fd;
	bool has_pause;
	bool owns_pause;	/* of version 1 */
};

struct trials {
	const struct fixture *sample;
	unsigned long seed, n;
	/* In memory that the children share with the test. */
	struct {
		unsigned long done, refused;
		/* How often each state was reached. */
		unsigned long restored, resumed, aborted;
		/* The last call: its arguments, the state before and after it. */
		__u32 size, op;
		int before, after, result;
	} *seen;
};

static void *part(unsigned int i)
{
	return ARENA + i * PART;
}

/*
 * Closes all files but those of the GPUs, so that files which calls open have numbers from
 * pause_fd on.
 */
static bool close_all_but(struct caller *caller)
{
	int last = caller->kfd->fd, fd;
	unsigned int i;

	for (i = 0; i < caller->kfd->num_gpus; i++)
		if (caller->kfd->gpus[i].drm > last)
			last = caller->kfd->gpus[i].drm;
	syscall(__NR_close_range, last + 1, ~0U, 0);
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd < last);
	close(fd);
	caller->pause_fd = fd;
	return fd > last;
}

static bool map_arena(void)
{
	return mmap(ARENA, 4 * PART, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == ARENA;
}

static bool prepare_objects(struct caller *caller)
{
	struct kfd *kfd = caller->kfd;
	int r;

	if (fixture_create(kfd, &caller->fixture, FIXTURE_BOS) ||
	    kfd_event_create(kfd) < 0 || !close_all_but(caller))
		return false;
	memcpy(caller->fixture.gtt.cpu, CONTENT, sizeof(CONTENT));
	caller->handle = caller->fixture.gtt.handle;
	caller->v2_size = PART;
	caller->v1.op = KFD_CRIU_OP_PROCESS_INFO;
	r = kfd_v1(kfd->fd, &caller->v1);
	return !r && !kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
}

/* Both ABIs have the same C structure of a device, except for the name of its last member. */
static void copy_images(const struct caller *caller)
{
	const struct fixture *sample = caller->sample;
	struct kfd_criu_device_bucket *devices = part(0);
	unsigned int i;

	for (i = 0; i < caller->kfd->num_gpus; i++) {
		devices[i].user_gpu_id = caller->kfd->gpus[i].id;
		devices[i].actual_gpu_id = caller->kfd->gpus[i].id;
		devices[i].drm_fd = caller->kfd->gpus[i].drm;
		devices[i].pad = 0;
	}
	memcpy(part(1), sample->v1.bos,
	       sample->v1.args.num_bos * sizeof(*sample->v1.bos));
	memcpy(part(2), sample->v1.priv, sample->v1.args.priv_data_size);
	memcpy(part(3), sample->v2.data, sample->v2.size);
}

static bool prepare_images(struct caller *caller)
{
	const struct fixture *sample = caller->sample;

	caller->v1 = sample->v1.args;
	caller->v2_size = sample->v2.size;
	caller->handle = sample->gtt.handle;
	return sample->v1.args.priv_data_size <= PART &&
	       sample->v2.size <= PART && close_all_but(caller);
}

static bool prepare(struct caller *caller, struct kfd *kfd, const struct fixture *sample)
{
	memset(caller, 0, sizeof(*caller));
	caller->kfd = kfd;
	caller->sample = sample;
	if (!(sample ? prepare_images(caller) : prepare_objects(caller)))
		return false;
	caller->v1.devices = (unsigned long)part(0);
	caller->v1.bos = (unsigned long)part(1);
	caller->v1.priv_data = (unsigned long)part(2);
	return map_arena();
}

/* Valid arguments of a random operation. */
static void valid_v1(const struct caller *caller, struct kfd_ioctl_criu_args *args)
{
	*args = caller->v1;
	args->op = rand_next() % (KFD_CRIU_OP_RESUME + 1);
	args->pid = getpid();
}

static void valid_v2(const struct caller *caller, struct kfd_criu_args *args)
{
	const __u32 ops = KFD_CRIU_CMD_BO_OFFSET - KFD_CRIU_CMD_PROBE + 1;

	args->op = KFD_CRIU_CMD_PROBE + rand_next() % ops;
	switch (args->op) {
	case KFD_CRIU_CMD_PROBE:
		args->data_size = sizeof(struct kfd_criu_probe);
		args->data = (unsigned long)part(3);
		break;
	case KFD_CRIU_CMD_PAUSE:
		args->flags = rand_next() % 2 ? KFD_CRIU_PAUSE_DRM_OBJECTS : 0;
		break;
	case KFD_CRIU_CMD_CHECKPOINT:
		args->data_size = PART;
		args->data = (unsigned long)part(3);
		args->pause_fd = caller->pause_fd;
		break;
	case KFD_CRIU_CMD_UNPAUSE:
		args->pause_fd = caller->pause_fd;
		break;
	case KFD_CRIU_CMD_RESTORE:
		args->data_size = caller->v2_size;
		args->data = (unsigned long)part(3);
		args->gpus = (unsigned long)part(0);
		args->num_gpus = caller->kfd->num_gpus;
		break;
	case KFD_CRIU_CMD_EXPORT_BO:
	case KFD_CRIU_CMD_BO_OFFSET:
		args->gpu_id = caller->kfd->gpus[0].id;
		args->handle = caller->handle;
		args->pause_fd = rand_next() % 4 ? caller->pause_fd : KFD_NO_PAUSE;
		break;
	case KFD_CRIU_CMD_RESUME:
		args->pid = rand_next() % 2 ? getpid() : 0;
		args->flags = rand_next() % 2 ? KFD_CRIU_RESUME_FD : 0;
	}
}

/* Stores random arguments and returns their size. */
static __u32 random_args(const struct caller *caller, union args *args)
{
	const bool is_v2 = rand_next() % 2;
	unsigned int changes = rand_next() % (MOST_CHANGES + 1);
	__u32 size = is_v2 ? sizeof(args->v2) : sizeof(args->v1);

	memset(args, 0, sizeof(*args));
	if (is_v2)
		valid_v2(caller, &args->v2);
	else
		valid_v1(caller, &args->v1);
	if (rand_next() % 8 == 0)
		size = rand_next() % (sizeof(*args) + 1);
	while (changes--)
		rand_change_one_word(args, size);
	/* The driver takes members behind the size as 0. */
	memset(args->bytes + size, 0, sizeof(*args) - size);
	return size;
}

static bool is_expected_errno(int r)
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
	case EREMOTE:
	case ESRCH:
	case ETIME:
	case EXDEV:
		return true;
	default:
		return false;
	}
}

/* The state after an operation that succeeded. */
static int state_after(const struct caller *caller, __u32 op, int before)
{
	switch (op) {
	case KFD_CRIU_OP_PROCESS_INFO:
	case KFD_CRIU_CMD_PAUSE:
	case KFD_CRIU_OP_UNPAUSE:
	case KFD_CRIU_CMD_UNPAUSE:
		return caller->has_pause || caller->owns_pause ?
			       KFD_CRIU_STATE_PAUSED : KFD_CRIU_STATE_RUNNING;
	case KFD_CRIU_OP_RESTORE:
	case KFD_CRIU_CMD_RESTORE:
		return KFD_CRIU_STATE_RESTORED;
	case KFD_CRIU_OP_RESUME:
	case KFD_CRIU_CMD_RESUME:
		return KFD_CRIU_STATE_RUNNING;
	case KFD_CRIU_CMD_ABORT:
		return KFD_CRIU_STATE_ABORTED;
	default:
		return before;
	}
}

/*
 * An operation that failed keeps the state, except that RESTORE and RESUME may abort the
 * process.
 */
static bool is_state_after_failure(__u32 op, int before, int after)
{
	const bool restores = op == KFD_CRIU_OP_RESTORE || op == KFD_CRIU_CMD_RESTORE;
	const bool resumes = op == KFD_CRIU_OP_RESUME || op == KFD_CRIU_CMD_RESUME;

	if (after == before)
		return true;
	return after == KFD_CRIU_STATE_ABORTED &&
	       ((restores && before == KFD_CRIU_STATE_RUNNING) ||
		(resumes && before == KFD_CRIU_STATE_RESTORED));
}

static bool is_state(const struct caller *caller, const struct trials *trials)
{
	const __u32 op = trials->seen->op;
	const int before = trials->seen->before, after = trials->seen->after;
	const int r = trials->seen->result;

	if (r && r != -ETIME)
		return is_state_after_failure(op, before, after);
	return after == state_after(caller, op, before);
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

/* Keeps the first pause open; a second one ends when its file is closed. */
static void keep_pause(struct caller *caller, __u32 op, int fd)
{
	if (op == KFD_CRIU_OP_PROCESS_INFO)
		caller->owns_pause = true;
	if (op == KFD_CRIU_OP_UNPAUSE)
		caller->owns_pause = false;
	if (op == KFD_CRIU_CMD_PAUSE && !caller->has_pause) {
		if (fd != caller->pause_fd)
			dup2(fd, caller->pause_fd);
		caller->has_pause = true;
	}
	if (op == KFD_CRIU_CMD_UNPAUSE)
		caller->has_pause = false;
}

static enum outcome call(struct caller *caller, struct trials *trials)
{
	union args args;
	const __u32 size = random_args(caller, &args);
	int r;

	if (caller->sample)
		copy_images(caller);
	trials->seen->size = size;
	/* Both ABIs have the operation at the same offset. */
	trials->seen->op = args.v2.op;
	trials->seen->before = kfd_v2_state(caller->kfd);
	r = kfd_call(caller->kfd->fd,
		     _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
			  _IOC_NR(AMDKFD_IOC_CRIU_OP), size), &args);
	if (!r)
		keep_pause(caller, args.v2.op, args.v2.fd);
	syscall(__NR_close_range, caller->pause_fd + caller->has_pause, ~0U, 0);
	trials->seen->result = r;
	trials->seen->refused += r < 0;
	/* RESUME that does not wait has a result a moment later. */
	trials->seen->after = kfd_v2_settled_state(caller->kfd);
	count_states(trials);
	if (!is_expected_errno(r))
		return UNEXPECTED_ERRNO;
	return is_state(caller, trials) ? PASSED : WRONG_STATE;
}

/* After all its calls the process must be aborted, or be able to continue. */
static enum outcome end(const struct caller *caller, const struct trials *trials)
{
	struct kfd *kfd = caller->kfd;

	if (trials->seen->after == KFD_CRIU_STATE_ABORTED)
		return PASSED;
	if (caller->owns_pause && kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE))
		return WRONG_CONTENTS;
	if (caller->has_pause && kfd_v2_unpause(kfd->fd, caller->pause_fd))
		return WRONG_CONTENTS;
	if (trials->seen->after == KFD_CRIU_STATE_RESTORED &&
	    kfd_v1_resume(kfd->fd, getpid()))
		return WRONG_CONTENTS;
	if (kfd_event_create(kfd) < 0)
		return WRONG_CONTENTS;
	return caller->sample || !strcmp(caller->fixture.gtt.cpu, CONTENT) ?
		       PASSED : WRONG_CONTENTS;
}

static int make_calls(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	enum outcome outcome = PASSED;
	struct caller caller;
	unsigned int i;

	rand_seed(trials->seed + trials->seen->done);
	if (!prepare(&caller, kfd, rand_next() % 2 ? trials->sample : NULL))
		return NO_PROCESS;
	for (i = 0; i < CALLS_IN_A_PROCESS && trials->seen->done + i < trials->n; i++) {
		outcome = call(&caller, trials);
		if (outcome)
			return outcome;
		/* No operation leaves this state. */
		if (trials->seen->after == KFD_CRIU_STATE_ABORTED) {
			i++;
			break;
		}
	}
	outcome = end(&caller, trials);
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
	ASSERT_EQ(0, kfd_v2_unpause(self->kfd.fd, self->sample.v2.pause_fd));
}

FIXTURE_TEARDOWN(args_fuzz)
{
	fixture_free(&self->sample);
	kfd_close(&self->kfd);
}

TEST_F_TIMEOUT(args_fuzz, random_arguments_are_refused_or_obeyed, LIMIT_S)
{
	struct trials trials = {
		.sample = &self->sample,
		.seed = rand_first_seed(),
		.n = CALLS_FOR_AN_IMAGE * rand_mutations(),
		.seen = shared_memory(sizeof(*trials.seen)),
	};
	int r = PASSED;

	ASSERT_NE(MAP_FAILED, trials.seen);
	while (!r && trials.seen->done < trials.n)
		r = kfd_in_child(make_calls, &trials);
	ASSERT_EQ(PASSED, r)
		TH_LOG("KFD_CRIU_SEED=%lu: operation %#x, %u bytes: %d, state %d, then %d",
		       trials.seed + trials.seen->done, trials.seen->op,
		       trials.seen->size, trials.seen->result,
		       trials.seen->before, trials.seen->after);
	TH_LOG("%lu of %lu calls refused", trials.seen->refused, trials.n);
	EXPECT_LT(0, trials.seen->refused);
	EXPECT_LT(trials.seen->refused, trials.n);
	TH_LOG("%lu times restored, %lu resumed, %lu aborted",
	       trials.seen->restored, trials.seen->resumed, trials.seen->aborted);
	/* Otherwise no image got past the first checks of RESTORE. */
	EXPECT_LT(0, trials.seen->restored);
	EXPECT_LT(0, trials.seen->resumed);
	EXPECT_LT(0, trials.seen->aborted);
	munmap(trials.seen, sizeof(*trials.seen));
}

KFD_TEST_MAIN
