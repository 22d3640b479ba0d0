// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The server reads requests from /dev/fuse and writes replies, without libfuse. The root of
 * the file system is the file itself, so no name is ever looked up.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/fuse.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "dead_file.h"
#include "kfd.h"

#define MOUNT_POINT	"/tmp/kfd_criu_dead_file"
#define REQUEST_BYTES	(FUSE_MIN_READ_BUFFER + (128 << 10))
#define MAX_WAITING	128
#define MAX_READ	(128 << 10)
#define POLL_MS		5
#define VALID_S		3600
#define FILE_MODE	(S_IFREG | 0600)

struct server {
	int fuse;
	size_t size;
	bool interruptible;
	struct dead_file_words *words;
	/* Reads that wait for an answer. */
	struct fuse_in_header waiting[MAX_WAITING];
	__u32 bytes[MAX_WAITING];
	unsigned int num_waiting;
};

static void reply(const struct server *server,
		  const struct fuse_in_header *request, int error,
		  const void *data, size_t size)
{
	struct fuse_out_header header = {
		.len = sizeof(header) + size,
		.error = error,
		.unique = request->unique,
	};
	struct iovec parts[] = {
		{ &header, sizeof(header) },
		{ (void *)data, size },
	};

	if (writev(server->fuse, parts, size ? 2 : 1) < 0 && errno != ENOENT)
		perror("# writing to /dev/fuse");
}

static void reply_init(const struct server *server,
		       const struct fuse_in_header *request)
{
	const struct fuse_init_in *in = (const void *)(request + 1);
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		/* Without read-ahead whoever needs a page sends the request itself. */
		.max_readahead = server->interruptible ? in->max_readahead : 0,
		.flags = server->interruptible ? in->flags & FUSE_ASYNC_READ : 0,
		.max_write = KFD_PAGE,
	};

	reply(server, request, 0, &out, sizeof(out));
}

static void reply_attributes(const struct server *server,
			     const struct fuse_in_header *request)
{
	struct fuse_attr_out out = {
		.attr_valid = VALID_S,
		.attr = {
			.ino = FUSE_ROOT_ID,
			.size = server->size,
			.mode = FILE_MODE,
			.nlink = 1,
		},
	};

	reply(server, request, 0, &out, sizeof(out));
}

static void answer_reads(struct server *server)
{
	static const char zeros[MAX_READ];
	unsigned int i;

	for (i = 0; i < server->num_waiting; i++)
		reply(server, &server->waiting[i], 0, zeros, server->bytes[i]);
	server->num_waiting = 0;
}

/* A read past the end of the file is shorter than the kernel asked for. */
static __u32 read_size(const struct server *server,
		       const struct fuse_read_in *in)
{
	const __u64 left = in->offset < server->size ?
			   server->size - in->offset : 0;
	const __u32 wanted = in->size < MAX_READ ? in->size : MAX_READ;

	return left < wanted ? left : wanted;
}

static void take_read(struct server *server,
		      const struct fuse_in_header *request)
{
	const unsigned int i = server->num_waiting;

	if (i == MAX_WAITING) {
		reply(server, request, -ENOMEM, NULL, 0);
		return;
	}
	server->waiting[i] = *request;
	server->bytes[i] = read_size(server, (const void *)(request + 1));
	server->num_waiting++;
	__atomic_add_fetch(&server->words->asked, 1, __ATOMIC_RELEASE);
}

static void serve(struct server *server, const struct fuse_in_header *request)
{
	const struct fuse_open_out opened = { 0 };

	switch (request->opcode) {
	case FUSE_INIT:
		reply_init(server, request);
		break;
	case FUSE_GETATTR:
		reply_attributes(server, request);
		break;
	case FUSE_OPEN:
		reply(server, request, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		take_read(server, request);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		reply(server, request, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(server, request, -ENOSYS, NULL, 0);
	}
}

static void run_server(struct server *server)
{
	static union {
		struct fuse_in_header header;
		char bytes[REQUEST_BYTES];
	} request;
	struct pollfd fuse = { .fd = server->fuse, .events = POLLIN };

	for (;;) {
		if (poll(&fuse, 1, POLL_MS) == 1) {
			if (read(server->fuse, &request, sizeof(request)) > 0)
				serve(server, &request.header);
			else if (errno == ENODEV)
				_exit(0);
		}
		if (__atomic_load_n(&server->words->answers, __ATOMIC_ACQUIRE))
			answer_reads(server);
	}
}

static int mount_file(int fuse)
{
	char options[128];
	const int file = open(MOUNT_POINT, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (file < 0)
		return -errno;
	close(file);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=%o,user_id=0,group_id=0", fuse, FILE_MODE);
	if (mount("kfd_criu", MOUNT_POINT, "fuse", MS_NOSUID | MS_NODEV, options))
		return -errno;
	return 0;
}

static int start_server(struct dead_file *file, int fuse, size_t size,
			bool interruptible)
{
	file->server = fork();
	if (file->server < 0) {
		file->server = 0;
		return -errno;
	}
	if (!file->server) {
		struct server server = {
			.fuse = fuse,
			.size = size,
			.interruptible = interruptible,
			.words = file->words,
		};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_server(&server);
	}
	return 0;
}

/* The size of the file is not known before its attributes are asked for. */
static int open_file(struct dead_file *file, size_t size)
{
	struct stat status;

	file->fd = open(MOUNT_POINT, O_RDONLY | O_CLOEXEC);
	if (file->fd < 0 || fstat(file->fd, &status))
		return -errno;
	return status.st_size == (off_t)size ? 0 : -EIO;
}

static int create(struct dead_file *file, size_t size, bool interruptible)
{
	const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int r;

	memset(file, 0, sizeof(*file));
	file->fd = -1;
	if (fuse < 0)
		return -ENODEV;
	file->words = shared_memory(sizeof(*file->words));
	if (file->words == MAP_FAILED) {
		close(fuse);
		return -ENOMEM;
	}
	r = mount_file(fuse);
	r = r ? r : start_server(file, fuse, size, interruptible);
	close(fuse);
	r = r ? r : open_file(file, size);
	if (r)
		dead_file_destroy(file);
	return r;
}

int dead_file_create(struct dead_file *file, size_t size)
{
	return create(file, size, true);
}

int dead_file_create_uninterruptible(struct dead_file *file, size_t size)
{
	return create(file, size, false);
}

void dead_file_answer(const struct dead_file *file)
{
	__atomic_store_n(&file->words->answers, 1, __ATOMIC_RELEASE);
}

bool dead_file_is_asked(const struct dead_file *file)
{
	int i;

	for (i = 0; i < 10000; i++) {
		if (__atomic_load_n(&file->words->asked, __ATOMIC_ACQUIRE))
			return true;
		usleep(1000);
	}
	return false;
}

void dead_file_kill_server(struct dead_file *file)
{
	if (!file->server)
		return;
	kill(file->server, SIGKILL);
	waitpid(file->server, NULL, 0);
	file->server = 0;
}

void dead_file_destroy(struct dead_file *file)
{
	dead_file_kill_server(file);
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	umount2(MOUNT_POINT, MNT_DETACH);
	unlink(MOUNT_POINT);
	if (file->words && file->words != MAP_FAILED)
		munmap(file->words, sizeof(*file->words));
	file->words = NULL;
}
