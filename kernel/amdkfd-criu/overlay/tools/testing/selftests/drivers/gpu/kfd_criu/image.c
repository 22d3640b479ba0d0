// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images that nobody ever wrote. Each is restored in a process of its own: it may be
 * refused, or be another valid one; nothing else may happen, and the kernel's log says
 * so. KFD_CRIU_MUTATIONS=N tries more of them, KFD_CRIU_SEED=N begins elsewhere.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "kfd.h"

#define DEFAULT_MUTATIONS	200
#define CHANGES			3

static unsigned long number_of(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static __u64 random_state;

/* Always the same row of numbers (xorshift64). */
static __u64 random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Numbers at which code changes its mind, and others. */
static __u32 random_word(__u32 was)
{
	switch (random_number() % 6) {
	case 0:
		return 0;
	case 1:
		return ~0U;
	case 2:
		return was ^ 1U << random_number() % 32;
	case 3:
		return was + 1;
	case 4:
		return 1U << random_number() % 32;
	default:
		return random_number();
	}
}

static void change_words(void *data, __u64 bytes)
{
	__u32 *words = data;

	if (bytes >= sizeof(*words)) {
		__u32 *word = &words[random_number() % (bytes / sizeof(*words))];

		*word = random_word(*word);
	}
}

static void mutate(struct kfd_image *image)
{
	unsigned int i;

	for (i = 0; i < CHANGES; i++) {
		switch (random_number() % 8) {
		case 0:
			image->args.num_bos = random_word(image->args.num_bos);
			break;
		case 1:
			image->args.num_objects =
				random_word(image->args.num_objects);
			break;
		case 2:
			image->args.priv_data_size =
				random_number() % (image->args.priv_data_size + 2);
			break;
		case 3:
			change_words(image->devices, image->args.num_devices *
						     sizeof(*image->devices));
			break;
		case 4:
			change_words(image->bos, sizeof(*image->bos) * 3);
			break;
		default:
			change_words(image->priv, image->args.priv_data_size);
		}
	}
}

FIXTURE(image) {
	struct kfd kfd;
	struct kfd_bo gtt, vram, user;
	struct kfd_image image;
};

FIXTURE_SETUP(image)
{
	memset(&self->image, 0, sizeof(self->image));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, 2 * KFD_PAGE,
				   &self->gtt));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_VRAM, 4 * KFD_PAGE,
				   &self->vram));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_USERPTR, KFD_PAGE,
				   &self->user));
	ASSERT_LT(0, kfd_event_create(&self->kfd));
	ASSERT_LT(0, kfd_event_create(&self->kfd));
	ASSERT_EQ(0, kfd_image_take(self->kfd.fd, &self->image));
}

FIXTURE_TEARDOWN(image)
{
	kfd_image_close_files(&self->image);
	kfd_image_free(&self->image);
	kfd_close(&self->kfd);
}

/* Whether what came back is an answer. */
static bool is_answer(int r)
{
	switch (-r) {
	case 0:
	case EINVAL:
	case EFAULT:
	case EPERM:
	case ENOMEM:
	case ENOSPC:
	case EBUSY:
	case EMFILE:
	case ENODEV:
	case EOPNOTSUPP:
		return true;
	default:
		return false;
	}
}

static int restore_and_resume(struct kfd_image *image)
{
	struct kfd kfd;
	int r = kfd_open(&kfd);

	if (r)
		return 254;
	r = kfd_image_restore(&kfd, image);
	if (!r)
		r = kfd_criu_resume(kfd.fd, getpid());
	return is_answer(r) ? -r : 255;
}

static int in_child(struct kfd_image *image)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		_exit(restore_and_resume(image));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(image, every_length_but_the_right_one_is_refused)
{
	const __u64 size = self->image.args.priv_data_size;
	__u64 at;

	/* Borders of records and what is around them. */
	for (at = 0; at < size; at = at < 64 ? at + 4 : at + 68) {
		self->image.args.priv_data_size = at;
		EXPECT_EQ(EINVAL, in_child(&self->image))
			TH_LOG("%llu of %llu bytes", (unsigned long long)at,
			       (unsigned long long)size);
	}
	self->image.args.priv_data_size = size;
	EXPECT_EQ(0, in_child(&self->image));
}

static void copy_image(struct kfd_image *to, const struct kfd_image *from)
{
	memcpy(to->devices, from->devices,
	       from->args.num_devices * sizeof(*to->devices));
	memcpy(to->bos, from->bos, from->args.num_bos * sizeof(*to->bos));
	memcpy(to->priv, from->priv, from->args.priv_data_size);
	to->args = from->args;
	to->args.devices = (unsigned long)to->devices;
	to->args.bos = (unsigned long)to->bos;
	to->args.priv_data = (unsigned long)to->priv;
}

TEST_F_TIMEOUT(image, changed_at_random_it_is_refused_or_another_one, 3600)
{
	const unsigned long n = number_of("KFD_CRIU_MUTATIONS",
					  DEFAULT_MUTATIONS);
	unsigned long i, accepted = 0;
	struct kfd_image changed = {
		.devices = calloc(self->image.args.num_devices + 1,
				  sizeof(*changed.devices)),
		.bos = calloc(self->image.args.num_bos + 1,
			      sizeof(*changed.bos)),
		.priv = calloc(self->image.args.priv_data_size + 8, 1),
	};

	for (i = 0; i < n; i++) {
		const unsigned long seed = number_of("KFD_CRIU_SEED", 1) + i;
		int r;

		copy_image(&changed, &self->image);
		random_state = 0x9e3779b97f4a7c15ULL * seed | 1;
		mutate(&changed);
		r = in_child(&changed);
		ASSERT_TRUE(r >= 0 && r < 254)
			TH_LOG("KFD_CRIU_SEED=%lu ends with %d", seed, r);
		accepted += !r;
	}
	TH_LOG("%lu of %lu images accepted", accepted, n);
	EXPECT_LT(accepted, n);
	kfd_image_free(&changed);
	/* The one that was checkpointed goes on. */
	EXPECT_EQ(0, kfd_criu_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

TEST_HARNESS_MAIN
