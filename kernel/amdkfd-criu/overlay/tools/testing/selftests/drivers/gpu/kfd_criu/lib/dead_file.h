/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A file whose server stops to answer: a FUSE file system that consists of one file. The
 * server is a child process of the test.
 */
#ifndef KFD_CRIU_SELFTEST_DEAD_FILE_H
#define KFD_CRIU_SELFTEST_DEAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

/* What the test and the server tell each other, in memory that both share. */
struct dead_file_words {
	__u32 answers;	/* written by the test: 1 if the server answers reads */
	__u32 asked;	/* written by the server: number of reads it has not answered */
};

struct dead_file {
	int fd;		/* the file, open for reading; -1 if there is none */
	pid_t server;	/* 0 if there is no server */
	struct dead_file_words *words;
};

/*
 * Mounts the file system and opens its file, of the given size and full of zeros. Its
 * contents cannot be read until dead_file_answer(). Returns 0; -ENODEV if the kernel has
 * no FUSE; another negative errno.
 */
int dead_file_create(struct dead_file *file, size_t size);
/* As dead_file_create(), but not even SIGKILL ends the wait for a page. */
int dead_file_create_uninterruptible(struct dead_file *file, size_t size);
/* Lets the server answer all reads, also those that wait. */
void dead_file_answer(const struct dead_file *file);
/* Waits up to ten seconds until a read waits for the server; false without one. */
bool dead_file_is_asked(const struct dead_file *file);
/* Ends the server with SIGKILL: all reads fail, also those that wait. */
void dead_file_kill_server(struct dead_file *file);
/* Ends the server and unmounts the file system. */
void dead_file_destroy(struct dead_file *file);

#endif /* KFD_CRIU_SELFTEST_DEAD_FILE_H */
