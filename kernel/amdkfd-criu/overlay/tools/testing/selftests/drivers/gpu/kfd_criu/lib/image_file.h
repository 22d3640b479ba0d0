/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * An image of version 1 that outlives its machine: with the memory of the process and what
 * the process knew about its objects. It can be stored in a text file, whose format
 * image_files/README describes. Functions return 0 or a negative errno.
 */
#ifndef KFD_CRIU_SELFTEST_IMAGE_FILE_H
#define KFD_CRIU_SELFTEST_IMAGE_FILE_H

#include "fixture.h"
#include "image_v1.h"
#include "kfd.h"

#define IMAGE_FILE_BOS	16

/*
 * What the process knew: GPU addresses of its BOs, ids, mmap offsets of doorbells, and
 * bytes written to rings. The names are those in the file.
 */
struct image_file_numbers {
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

struct image_file {
	struct image_file_numbers numbers;
	struct kfd_v1_image image;
	/* Contents of the image's BOs; NULL: the BO has no contents of its own. */
	unsigned char *contents[IMAGE_FILE_BOS];
	/* The memory at FIXTURE_HOST_MEMORY. */
	unsigned char *host;
};

/* Stores the name of a chip, for example "gfx906" for 90006. */
void image_file_chip(__u32 gfx_version, char *name, size_t size);

/* Writes to and reads from a text file. -EPROTO: the file has another format. */
int image_file_write(const char *path, const struct image_file *file);
int image_file_read(const char *path, struct image_file *file);
void image_file_free(struct image_file *file);

/* Pauses and checkpoints a process with FIXTURE_PORTABLE. */
int image_file_dump(const struct kfd *kfd, const struct fixture *fixture,
		    struct image_file *file);
/*
 * Restores and resumes the process on GPU 0, if the image's device says so. The calling
 * process must have no objects.
 */
int image_file_restore(struct kfd *kfd, struct image_file *file,
		       struct fixture *fixture);

#endif /* KFD_CRIU_SELFTEST_IMAGE_FILE_H */
