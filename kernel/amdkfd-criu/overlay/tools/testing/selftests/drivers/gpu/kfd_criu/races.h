/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images that keep a restore busy, for whoever wants to come in the middle of it.
 * Functions return 0 or a negative errno where nothing else is said.
 */
#ifndef KFD_CRIU_SELFTEST_RACES_H
#define KFD_CRIU_SELFTEST_RACES_H

#include "kfd.h"

/* An image whose reader waits until it is brought. */
struct late_image {
	struct kfd_v2_image image;
	size_t room;
	int faults;
};

/* Whether the kernel has what they take. */
bool late_images_are_possible(void);
int late_image_make(struct late_image *late, size_t size);
/* Waits until somebody reads it; false after ten seconds. */
bool late_image_is_wanted(const struct late_image *late);
int late_image_bring(const struct late_image *late,
		     const struct kfd_v2_image *image);

/* Of 64 GiB and 2^32 records, almost, that a reader may leave out. */
int endless_image_make(struct kfd_v2_image *image);

#endif /* KFD_CRIU_SELFTEST_RACES_H */
