// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A tool, no test: `dump_image FOLDER` writes FOLDER/CHIP.txt, an image that the running
 * kernel makes, for the test old_images. The machine must have exactly one GPU.
 */
#include <stdio.h>
#include <string.h>
#include "lib/fixture.h"
#include "lib/image_file.h"
#include "lib/kfd.h"

static int fail(const char *what, int r)
{
	fprintf(stderr, "dump_image: %s: %s\n", what, strerror(-r));
	return 1;
}

static int dump(struct kfd *kfd, const char *path)
{
	struct image_file file;
	struct fixture fixture;
	int r;

	r = fixture_create(kfd, &fixture, FIXTURE_PORTABLE);
	if (r)
		return fail("creating the objects", r);
	r = fixture_start_work(kfd, &fixture);
	if (r)
		return fail("running the queues", r);
	r = image_file_dump(kfd, &fixture, &file);
	if (r)
		return fail("checkpoint", r);
	r = image_file_write(path, &file);
	return r ? fail(path, r) : 0;
}

int main(int argc, char **argv)
{
	char chip[16], path[4096];
	struct kfd kfd;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: dump_image FOLDER\n");
		return 64;
	}
	kfd_check_machine(argc, argv);
	r = kfd_open(&kfd);
	if (r)
		return fail("/dev/kfd", r);
	if (kfd.num_gpus != 1) {
		fprintf(stderr, "dump_image: this machine has %u GPUs\n",
			kfd.num_gpus);
		return 1;
	}
	image_file_chip(kfd.gpus[0].gfx_version, chip, sizeof(chip));
	snprintf(path, sizeof(path), "%s/%s.txt", argv[1], chip);
	return dump(&kfd, path);
}
