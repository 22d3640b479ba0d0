/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The test's view of /dev/kfd and its GPUs, and the child processes that tests restore.
 * Functions return 0 or a negative errno unless their comment says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_KFD_H
#define KFD_CRIU_SELFTEST_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/kfd_ioctl.h>
#include <linux/kfd_criu_ioctl.h>

/* MAX_GPU_INSTANCE of amdkfd. */
#define KFD_MAX_GPUS	64
#define KFD_PAGE	4096UL
/* Versions of GPUs from which on the hardware differs, as in struct kfd_gpu. */
#define GFX9		90000
#define GFX10		100000

struct kfd_gpu {
	unsigned int node;	/* number of its node in the topology */
	__u32 id;		/* gpu_id */
	__u32 render_minor;
	__u32 gfx_version;	/* decimal: 90006 is gfx906 */
	bool visible;		/* processes can map its VRAM; not so behind a small BAR */
	int drm;		/* file of its render node */
};

/* One process's /dev/kfd and all GPUs. */
struct kfd {
	int fd;
	unsigned int num_gpus;
	struct kfd_gpu gpus[KFD_MAX_GPUS];
	__u64 next_va;	/* the first GPU address that no BO of the test uses */
};

/*
 * The main() of every test program. Options that list the tests work anywhere, without
 * root and without a GPU; when tests are to run, the machine is checked first.
 */
#define KFD_TEST_MAIN \
	int main(int argc, char **argv) \
	{ \
		kfd_check_machine(argc, argv); \
		return test_harness_run(argc, argv); \
	}

/*
 * Skips the whole program if the tests could not run or would disturb other processes;
 * does nothing if the arguments only ask for the list of tests or for help.
 */
void kfd_check_machine(int argc, char **argv);

/*
 * Opens /dev/kfd and the GPUs' render nodes; -ENODEV without a GPU. The GPUs are in the
 * order of the topology, except that the GPU that KFD_CRIU_GPU names (counted from 0)
 * comes first.
 */
int kfd_open(struct kfd *kfd);
void kfd_close(struct kfd *kfd);
/* Binds the process to one GPU, or to all GPUs. */
int kfd_acquire_vm(struct kfd *kfd, unsigned int gpu);
int kfd_acquire_vms(struct kfd *kfd);

/* Calls ioctl() until no signal interrupts it. */
int kfd_call(int fd, unsigned long request, void *args);

/* A property of the GPU's topology node; 0 if the node has no property of that name. */
unsigned long long kfd_gpu_property(const struct kfd_gpu *gpu,
				    const char *name);
/* Free bytes of the GPU's VRAM, or a negative errno. */
long long kfd_available(const struct kfd *kfd, unsigned int gpu);
/*
 * Waits up to ten seconds until the GPU has at least so many free bytes: workers of the
 * driver free memory, that of other processes too. False when the time is over.
 */
bool kfd_available_becomes(const struct kfd *kfd, unsigned int gpu,
			   long long bytes);

/*
 * Waits up to ten seconds until the driver has destroyed the queues of a process that has
 * exited: a worker does it, and until then no other process gets its SDMA queues. False when
 * the time is over.
 */
bool kfd_process_is_released(pid_t pid);

/*
 * Calls body in a child process that has nothing but newly opened GPUs, and waits for it and
 * for the driver to release it. Returns the child's exit status, which is what body returned,
 * or -1 if a signal ended the child, for example the alarm after a minute, or if the driver
 * does not release it.
 */
int kfd_in_child(int (*body)(struct kfd *kfd, void *data), void *data);
/* Starts such a child without waiting for it. Returns its process id, or -1. */
pid_t kfd_start_child(int (*body)(struct kfd *kfd, void *data), void *data);

/* A file of another process, as pidfd_getfd() gives it to a checkpointer; negative: none. */
int kfd_take_file(pid_t pid, int number);
/* Number of files that this process has open. */
int count_files(void);
/* Anonymous memory that child processes share with the test; MAP_FAILED without. */
void *shared_memory(size_t size);
/* Microseconds of a clock that only goes forward. */
__u64 now_us(void);
/* Waits up to ten seconds until the word has the value; false when the time is over. */
bool wait_for_word(const __u32 *word, __u32 value);
/* Sets the word to 1, for wait_for_word() of another thread or process. */
void set_word(__u32 *word);
/*
 * Waits for the end of a child, at most for the limit. Returns its status as waitpid() stores
 * it, or -ETIME.
 */
int ends_within(pid_t pid, unsigned int limit_ms);
/*
 * Whether the kernel checks or counts what it executes (KASAN, lockdep, gcov), so that it is
 * too slow for limits of milliseconds.
 */
bool kernel_is_instrumented(void);

#endif /* KFD_CRIU_SELFTEST_KFD_H */
