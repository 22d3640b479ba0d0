/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images that keep RESTORE busy, so that a test can do something in the middle of it.
 * Functions return 0 or a negative errno unless their comment says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_SLOW_IMAGE_H
#define KFD_CRIU_SELFTEST_SLOW_IMAGE_H

#include "image_v2.h"

/* An image in memory that blocks its reader until the test fills it. */
struct blocking_image {
	struct kfd_v2_image image;
	size_t there;		/* bytes of the image that can be read from the beginning */
	unsigned char *missing;	/* the pages behind them */
	size_t missing_size;
	int faults;		/* userfaultfd of these pages */
};

/* Returns whether the kernel has userfaultfd. */
bool blocking_images_are_supported(void);
int blocking_image_create(struct blocking_image *blocking, size_t size);
/* Only the bytes behind the first ones block; those can be read, and are copied from `image`. */
int blocking_image_create_tail(struct blocking_image *blocking,
			       const struct kfd_v2_image *image, size_t there);
/* Waits until a thread reads the image. False when ten seconds are over. */
bool blocking_image_is_read(const struct blocking_image *blocking);
/* Fills the image with another one, so that its reader continues. */
int blocking_image_fill(const struct blocking_image *blocking,
			const struct kfd_v2_image *image);

/* An image of almost 64 GiB and 2^32 records, which the driver reads and ignores. */
int endless_image_create(struct kfd_v2_image *image);

#endif /* KFD_CRIU_SELFTEST_SLOW_IMAGE_H */
