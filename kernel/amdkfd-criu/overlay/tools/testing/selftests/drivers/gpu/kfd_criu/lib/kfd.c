// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Opens /dev/kfd, reads the topology in /sys/class/kfd, starts child processes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../../../../kselftest.h"
#include "kfd.h"

#define NODES		"/sys/class/kfd/kfd/topology/nodes"
#define PROCESSES	"/sys/class/kfd/kfd/proc"
#define PROCESSES_LIMIT_S 30
/* HSA_MEM_HEAP_TYPE_FB_PUBLIC */
#define HEAP_VISIBLE	1
/* An address that lies in the address space of every GPU. */
#define FIRST_VA	(8ULL << 30)
#define CHILD_LIMIT_S	240
#define WAIT_LIMIT_MS	10000

int kfd_call(int fd, unsigned long request, void *args)
{
	int r;

	do
		r = ioctl(fd, request, args);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* Number of names in a folder except "." and "..", or a negative errno. */
static int count_names(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *name;
	int n = 0;

	if (!folder)
		return -errno;
	while ((name = readdir(folder)))
		n += name->d_name[0] != '.';
	closedir(folder);
	return n;
}

/*
 * Tests count the free memory of GPUs, take all their queues, and restore queues in the
 * hardware slots that they had: the work of another program would make them fail, and
 * they would disturb it. A process that has ended is listed until a worker has freed it.
 */
static bool gpus_are_idle(void)
{
	int i;

	for (i = 0; i < PROCESSES_LIMIT_S * 100 && count_names(PROCESSES) > 0; i++)
		usleep(10 * 1000);
	return count_names(PROCESSES) <= 0;
}

/* Whether the harness will only print something. */
static bool runs_no_test(int argc, char **argv)
{
	int option;
	bool prints = false;

	opterr = 0;
	while ((option = getopt(argc, argv, "hlF:f:V:v:t:T:r:")) != -1)
		prints |= option == 'h' || option == 'l' || option == '?';
	opterr = 1;
	optind = 1;
	return prints;
}

void kfd_check_machine(int argc, char **argv)
{
	if (runs_no_test(argc, argv))
		return;
	if (geteuid())
		ksft_exit_skip("not root\n");
	if (!gpus_are_idle())
		ksft_exit_skip("other programs use GPUs: see " PROCESSES "\n");
}

static unsigned long long read_number(const char *path, const char *name)
{
	unsigned long long value, found = 0;
	char key[64];
	FILE *file;

	file = fopen(path, "r");
	if (!file)
		return 0;
	if (!name && fscanf(file, "%llu", &value) == 1)
		found = value;
	while (name && fscanf(file, "%63s %llu", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	fclose(file);
	return found;
}

static bool is_node(unsigned int node)
{
	char path[128];

	snprintf(path, sizeof(path), NODES "/%u", node);
	return !access(path, F_OK);
}

static bool read_node(unsigned int node, struct kfd_gpu *gpu)
{
	char path[128];

	snprintf(path, sizeof(path), NODES "/%u/gpu_id", node);
	gpu->id = read_number(path, NULL);
	snprintf(path, sizeof(path), NODES "/%u/properties", node);
	gpu->render_minor = read_number(path, "drm_render_minor");
	gpu->gfx_version = read_number(path, "gfx_target_version");
	snprintf(path, sizeof(path), NODES "/%u/mem_banks/0/properties", node);
	gpu->visible = read_number(path, "heap_type") == HEAP_VISIBLE;
	gpu->node = node;
	gpu->drm = -1;
	return gpu->id;
}

unsigned long long kfd_gpu_property(const struct kfd_gpu *gpu, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), NODES "/%u/properties", gpu->node);
	return read_number(path, name);
}

static int open_render_node(struct kfd_gpu *gpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", gpu->render_minor);
	gpu->drm = open(path, O_RDWR | O_CLOEXEC);
	return gpu->drm < 0 ? -errno : 0;
}

/* Filled once and inherited by children, because a test may open the GPUs thousands of times. */
static struct kfd_gpu gpus[KFD_MAX_GPUS];
static unsigned int num_gpus;

/* Moves the GPU to the front, because tests that need one GPU take the first. */
static void choose_gpu(const char *number)
{
	const unsigned long chosen = strtoul(number, NULL, 10);
	struct kfd_gpu first;

	if (chosen >= num_gpus) {
		printf("# KFD_CRIU_GPU=%s: there are %u\n", number, num_gpus);
		num_gpus = 0;
		return;
	}
	first = gpus[chosen];
	memmove(gpus + 1, gpus, chosen * sizeof(*gpus));
	gpus[0] = first;
}

static void find_gpus(void)
{
	const char *chosen = getenv("KFD_CRIU_GPU");
	unsigned int node;

	for (node = 0; is_node(node) && num_gpus < KFD_MAX_GPUS; node++)
		num_gpus += read_node(node, &gpus[num_gpus]);
	if (chosen)
		choose_gpu(chosen);
}

int kfd_open(struct kfd *kfd)
{
	unsigned int i;
	int r = 0;

	memset(kfd, 0, sizeof(*kfd));
	if (!num_gpus)
		find_gpus();
	if (!num_gpus)
		return -ENODEV;
	kfd->next_va = FIRST_VA;
	kfd->num_gpus = num_gpus;
	memcpy(kfd->gpus, gpus, sizeof(gpus));
	kfd->fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (kfd->fd < 0)
		return -errno;
	for (i = 0; !r && i < num_gpus; i++)
		r = open_render_node(&kfd->gpus[i]);
	return r;
}

int kfd_acquire_vm(struct kfd *kfd, unsigned int gpu)
{
	struct kfd_ioctl_acquire_vm_args args = {
		.drm_fd = kfd->gpus[gpu].drm,
		.gpu_id = kfd->gpus[gpu].id,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_ACQUIRE_VM, &args);
}

int kfd_acquire_vms(struct kfd *kfd)
{
	unsigned int i;
	int r = 0;

	for (i = 0; !r && i < kfd->num_gpus; i++)
		r = kfd_acquire_vm(kfd, i);
	return r;
}

void kfd_close(struct kfd *kfd)
{
	unsigned int i;

	for (i = 0; i < kfd->num_gpus; i++)
		if (kfd->gpus[i].drm >= 0)
			close(kfd->gpus[i].drm);
	if (kfd->fd >= 0)
		close(kfd->fd);
}

pid_t kfd_start_child(int (*body)(struct kfd *kfd, void *data), void *data)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct kfd kfd;

		alarm(CHILD_LIMIT_S);
		if (kfd_open(&kfd))
			_exit(255);
		_exit(body(&kfd, data));
	}
	return pid;
}

bool kfd_process_is_released(pid_t pid)
{
	char path[64];
	int i;

	snprintf(path, sizeof(path), PROCESSES "/%d", pid);
	for (i = 0; i < 10000 && !access(path, F_OK); i++)
		usleep(1000);
	return access(path, F_OK) != 0;
}

int kfd_in_child(int (*body)(struct kfd *kfd, void *data), void *data)
{
	pid_t pid = kfd_start_child(body, data);
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid ||
	    !kfd_process_is_released(pid))
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

long long kfd_available(const struct kfd *kfd, unsigned int gpu)
{
	struct kfd_ioctl_get_available_memory_args args = {
		.gpu_id = kfd->gpus[gpu].id,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_AVAILABLE_MEMORY, &args);

	return r ? r : (long long)args.available;
}

bool kfd_available_becomes(const struct kfd *kfd, unsigned int gpu,
			   long long bytes)
{
	int i;

	for (i = 0; i < 1000 && kfd_available(kfd, gpu) < bytes; i++)
		usleep(10 * 1000);
	return kfd_available(kfd, gpu) >= bytes;
}

int kfd_take_file(pid_t pid, int number)
{
	const int pidfd = syscall(SYS_pidfd_open, pid, 0);
	const int fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);

	close(pidfd);
	return fd;
}

int count_files(void)
{
	return count_names("/proc/self/fd");
}

void *shared_memory(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

__u64 now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

bool wait_for_word(const __u32 *word, __u32 value)
{
	int i;

	for (i = 0; i < WAIT_LIMIT_MS * 10; i++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
			return true;
		usleep(100);
	}
	return false;
}

void set_word(__u32 *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

int ends_within(pid_t pid, unsigned int limit_ms)
{
	const __u64 begin = now_us();
	int status;

	do {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		usleep(1000);
	} while (now_us() - begin < limit_ms * 1000ULL);
	return -ETIME;
}

bool kernel_is_instrumented(void)
{
	static const char *const functions[] = {
		" kasan_report\n", " lock_acquire\n", " __gcov_init\n",
	};
	FILE *file = fopen("/proc/kallsyms", "r");
	bool found = false;
	char line[512];
	unsigned int i;

	while (file && !found && fgets(line, sizeof(line), file))
		for (i = 0; i < sizeof(functions) / sizeof(*functions); i++)
			found |= strstr(line, functions[i]) != NULL;
	if (file)
		fclose(file);
	return found;
}
