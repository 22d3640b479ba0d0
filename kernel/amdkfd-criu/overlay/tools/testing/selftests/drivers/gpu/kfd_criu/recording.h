/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A checkpoint that outlives the machine it was taken on: the image of a program of
 * version 1, its memory, and what the program knew. A file of text, see
 * recordings/README.
 */
#ifndef KFD_CRIU_SELFTEST_RECORDING_H
#define KFD_CRIU_SELFTEST_RECORDING_H

#include "kfd.h"

#define RECORDING_BOS	16

/* What the program knew: addresses of its BOs in the GPU's address space, ids, mmap
 * offsets of doorbells, and bytes written to rings.
 */
struct recording_numbers {
	__u64 gfx_version;
	__u64 words;
	__u64 vram;
	__u64 user;
	__u64 event_page;
	__u64 sdma_ring;
	__u64 sdma_memory;
	__u64 sdma_id;
	__u64 sdma_doorbell;
	__u64 sdma_written;
	__u64 compute_ring;
	__u64 compute_memory;
	__u64 compute_id;
	__u64 compute_doorbell;
	__u64 compute_written;
	__u64 set_event;
	__u64 waiting_event;
};

struct recording {
	struct recording_numbers numbers;
	struct kfd_image image;
	/* Of the image's BOs; NULL: it has none. */
	unsigned char *contents[RECORDING_BOS];
	/* The pages of host_memory() in program.h. */
	unsigned char *host;
};

/* "gfx906" of 90006. */
void recording_chip(__u32 gfx_version, char *name, size_t size);

/* Functions return 0 or a negative errno; -EPROTO for a file that is none. */
int recording_write(const char *path, const struct recording *recording);
int recording_read(const char *path, struct recording *recording);
void recording_free(struct recording *recording);

#endif /* KFD_CRIU_SELFTEST_RECORDING_H */
