// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Makes a recording for `recorded` on a machine with one GPU and a kernel whose images
 * are of interest: record FOLDER writes FOLDER/CHIP.txt.
 */
#include <stdio.h>
#include <string.h>
#include "program.h"

static int fail(const char *what, int r)
{
	fprintf(stderr, "record: %s: %s\n", what, strerror(-r));
	return 1;
}

static int record(struct kfd *kfd, const char *path)
{
	struct recording recording;
	struct program program;
	int r;

	r = kfd_acquire_vms(kfd);
	r = r ? r : program_start(kfd, &program);
	if (r)
		return fail("starting the program", r);
	r = program_wait_at_gate(&program);
	if (r)
		return fail("running it", r);
	r = program_take(kfd, &program, &recording);
	if (r)
		return fail("its checkpoint", r);
	r = recording_write(path, &recording);
	return r ? fail(path, r) : 0;
}

int main(int argc, char **argv)
{
	char chip[16], path[4096];
	struct kfd kfd;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: record FOLDER\n");
		return 64;
	}
	r = kfd_open(&kfd);
	if (r)
		return fail("/dev/kfd", r);
	if (kfd.num_gpus != 1) {
		fprintf(stderr, "record: this machine has %u GPUs\n",
			kfd.num_gpus);
		return 1;
	}
	recording_chip(kfd.gpus[0].gfx_version, chip, sizeof(chip));
	snprintf(path, sizeof(path), "%s/%s.txt", argv[1], chip);
	return record(&kfd, path);
}
