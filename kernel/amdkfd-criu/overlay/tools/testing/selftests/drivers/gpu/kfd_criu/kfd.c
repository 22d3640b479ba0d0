// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Thin: an ioctl each, and what /sys/class/kfd says. And what every program of tests
 * wants of the machine before it begins.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "../../../kselftest.h"
#include "kfd.h"

#define NODES		"/sys/class/kfd/kfd/topology/nodes"
#define PROCESSES	"/sys/class/kfd/kfd/proc"
#define PROCESSES_LIMIT_S 30
/* HSA_MEM_HEAP_TYPE_FB_PUBLIC */
#define HEAP_VISIBLE	1
/* In the address space of every GPU. */
#define FIRST_VA	(8ULL << 30)
#define CHILD_LIMIT_S	60

int kfd_call(int fd, unsigned long request, void *args)
{
	int r;

	do
		r = ioctl(fd, request, args);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* Names in a folder but "." and "..", or a negative errno. */
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

/* Tests count what GPUs have left, take all their queues, and restore queues where they
 * were: they would fail for somebody else's work, and disturb it. Processes that have
 * ended are there until a worker has freed them.
 */
static bool gpus_are_idle(void)
{
	int i;

	for (i = 0; i < PROCESSES_LIMIT_S * 100 && count_names(PROCESSES) > 0; i++)
		usleep(10 * 1000);
	return count_names(PROCESSES) <= 0;
}

/* Before the program's first test. */
__attribute__((constructor)) static void check_machine(void)
{
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

/* Read once, for children as well: a test may open thousands of times. */
static struct kfd_gpu gpus[KFD_MAX_GPUS];
static unsigned int num_gpus;

/* Tests that want one GPU take the first. */
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

static int map_to_gpu(const struct kfd *kfd, unsigned int gpu, __u64 handle)
{
	__u32 id = kfd->gpus[gpu].id;
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = (unsigned long)&id,
		.n_devices = 1,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args);
}

static __u64 take_va(struct kfd *kfd, __u64 size)
{
	const __u64 va = kfd->next_va;

	kfd->next_va += size + KFD_PAGE;
	return va;
}

int kfd_bo_create(struct kfd *kfd, unsigned int gpu, __u32 flags, __u64 size,
		  struct kfd_bo *bo)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = take_va(kfd, size),
		.size = size,
		.gpu_id = kfd->gpus[gpu].id,
		.flags = flags,
	};
	int r;

	memset(bo, 0, sizeof(*bo));
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
		bo->cpu = mmap(NULL, size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bo->cpu == MAP_FAILED)
			return -errno;
		args.mmap_offset = (unsigned long)bo->cpu;
	}
	r = kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
	if (r)
		return r;
	bo->handle = args.handle;
	bo->va = args.va_addr;
	/* What is mapped twice in a row is there once. */
	bo->size = flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM ? size / 2 : size;
	r = map_to_gpu(kfd, gpu, bo->handle);
	if (r || !(flags & (KFD_IOC_ALLOC_MEM_FLAGS_GTT |
			    KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)))
		return r;
	bo->cpu = mmap(NULL, bo->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       kfd->gpus[gpu].drm, args.mmap_offset);
	return bo->cpu == MAP_FAILED ? -errno : 0;
}

int kfd_bo_create_visible(struct kfd *kfd, unsigned int gpu, __u64 size,
			  struct kfd_bo *bo)
{
	const __u32 flags = kfd->gpus[gpu].visible ?
		KFD_BO_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC : KFD_BO_GTT;

	return kfd_bo_create(kfd, gpu, flags, size, bo);
}

int kfd_bo_export(const struct kfd *kfd, __u64 handle, int *fd)
{
	struct kfd_ioctl_export_dmabuf_args args = {
		.handle = handle,
		.flags = O_CLOEXEC,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_EXPORT_DMABUF, &args);

	*fd = args.dmabuf_fd;
	return r;
}

int kfd_bo_import(struct kfd *kfd, unsigned int gpu, int fd, __u64 size,
		  struct kfd_bo *bo)
{
	struct kfd_ioctl_import_dmabuf_args args = {
		.va_addr = take_va(kfd, size),
		.gpu_id = kfd->gpus[gpu].id,
		.dmabuf_fd = fd,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_IMPORT_DMABUF, &args);

	memset(bo, 0, sizeof(*bo));
	bo->handle = args.handle;
	bo->va = args.va_addr;
	bo->size = size;
	return r ? r : map_to_gpu(kfd, gpu, bo->handle);
}

int kfd_bo_wrap(struct kfd *kfd, unsigned int gpu, void *memory, __u64 size,
		struct kfd_bo *bo)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = take_va(kfd, size),
		.size = size,
		.mmap_offset = (unsigned long)memory,
		.gpu_id = kfd->gpus[gpu].id,
		.flags = KFD_BO_USERPTR,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	bo->handle = args.handle;
	bo->va = args.va_addr;
	bo->size = size;
	bo->cpu = memory;
	return r ? r : map_to_gpu(kfd, gpu, bo->handle);
}

int kfd_bo_free(const struct kfd *kfd, unsigned int gpu,
		const struct kfd_bo *bo)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args unmap = {
		.handle = bo->handle,
		.device_ids_array_ptr = (unsigned long)&kfd->gpus[gpu].id,
		.n_devices = 1,
	};
	struct kfd_ioctl_free_memory_of_gpu_args args = {
		.handle = bo->handle,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &unmap);

	return r ? r : kfd_call(kfd->fd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

/* At the address that the GPU has for it, as programs do: without firmware that
 * schedules, the driver looks for write pointers in the program's memory.
 */
int kfd_bo_find(const struct kfd *kfd, unsigned int gpu, struct kfd_bo *bo)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_BO_OFFSET,
		.gpu_id = bo->handle >> 32,
		.handle = bo->handle,
	};
	int r = kfd_v2(kfd->fd, &args);

	if (r)
		return r;
	bo->cpu = mmap((void *)(unsigned long)bo->va, bo->size,
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		       kfd->gpus[gpu].drm, args.offset);
	return bo->cpu == MAP_FAILED ? -errno : 0;
}

/* As above, of one that is at another place. */
int kfd_bo_place(struct kfd_bo *bo)
{
	bo->cpu = mremap(bo->cpu, bo->size, bo->size,
			 MREMAP_MAYMOVE | MREMAP_FIXED,
			 (void *)(unsigned long)bo->va);
	return bo->cpu == MAP_FAILED ? -errno : 0;
}

int kfd_event_create(struct kfd *kfd)
{
	struct kfd_ioctl_create_event_args args = {
		.event_type = KFD_IOC_EVENT_HW_EXCEPTION,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_EVENT, &args);

	return r ? r : (int)(args.event_id & 0x7fffffff);
}

/* Where what is in a queue's memory. */
#define WRITE_POINTER	0
#define READ_POINTER	8
#define FENCE		64
/* Doorbells are of 4 bytes before gfx9, and of 8 from then on. */
#define GFX9		90000
#define GFX10		100000
/* SDMA_OP_FENCE; from gfx10 on with SDMA_PKT_FENCE_HEADER_MTYPE(), or the word may stay
 * in a cache.
 */
#define SDMA_FENCE	5
#define SDMA_UNCACHED	(3 << 16)
#define FENCE_LIMIT_MS	10000

/* Before gfx9 the kernel tells where the process's doorbells are, and the id says
 * which of them it is.
 */
int kfd_queue_map_doorbell(const struct kfd *kfd, struct kfd_queue *queue,
			   __u64 offset)
{
	const bool small = kfd->gpus[queue->gpu].gfx_version < GFX9;
	const size_t size = small ? KFD_PAGE : 2 * KFD_PAGE;
	const __u64 at = small ? queue->id * 4 : offset % size;
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  kfd->fd, offset - offset % size);

	if (page == MAP_FAILED)
		return -errno;
	queue->doorbell = page + at;
	queue->doorbell_offset = offset;
	queue->small_doorbell = small;
	queue->mtypes = kfd->gpus[queue->gpu].gfx_version >= GFX10;
	return 0;
}

int kfd_queue_create(struct kfd *kfd, unsigned int gpu, struct kfd_queue *queue)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = KFD_PAGE,
		.gpu_id = kfd->gpus[gpu].id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = KFD_MAX_QUEUE_PRIORITY / 2,
	};
	int r;

	memset(queue, 0, sizeof(*queue));
	queue->gpu = gpu;
	r = kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE, &queue->ring);
	r = r ? r : kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE,
				  &queue->memory);
	r = r ? r : kfd_bo_place(&queue->memory);
	if (r)
		return r;
	args.ring_base_address = queue->ring.va;
	args.write_pointer_address = queue->memory.va + WRITE_POINTER;
	args.read_pointer_address = queue->memory.va + READ_POINTER;
	r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (r)
		return r;
	queue->id = args.queue_id;
	return kfd_queue_map_doorbell(kfd, queue, args.doorbell_offset);
}

int kfd_queue_destroy(const struct kfd *kfd, const struct kfd_queue *queue)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = queue->id };

	return kfd_call(kfd->fd, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

int kfd_queue_find(const struct kfd *kfd, struct kfd_queue *queue)
{
	int r = kfd_bo_find(kfd, queue->gpu, &queue->ring);

	r = r ? r : kfd_bo_find(kfd, queue->gpu, &queue->memory);
	return r ? r : kfd_queue_map_doorbell(kfd, queue,
					      queue->doorbell_offset);
}

/* Before gfx9 pointers and doorbells have 32 bits. */
void kfd_queue_ring(const struct kfd_queue *queue, unsigned int pointer_at,
		    __u64 pointer, __u64 bell)
{
	void *at = queue->memory.cpu + pointer_at;

	if (queue->small_doorbell) {
		__atomic_store_n((__u32 *)at, pointer, __ATOMIC_RELEASE);
		__atomic_store_n((__u32 *)queue->doorbell, bell,
				 __ATOMIC_RELEASE);
	} else {
		__atomic_store_n((__u64 *)at, pointer, __ATOMIC_RELEASE);
		__atomic_store_n((__u64 *)queue->doorbell, bell,
				 __ATOMIC_RELEASE);
	}
}

/* Before gfx9 pointers wrap with the ring. */
void kfd_queue_submit(struct kfd_queue *queue, unsigned int unit,
		      const __u32 *packet, unsigned int dwords)
{
	__u32 *ring = queue->ring.cpu;
	unsigned int i;
	__u64 pointer;

	for (i = 0; i < dwords; i++) {
		ring[queue->written % queue->ring.size / sizeof(*ring)] =
			packet[i];
		queue->written += sizeof(*ring);
	}
	pointer = queue->written;
	if (queue->small_doorbell)
		pointer %= queue->ring.size;
	kfd_queue_ring(queue, WRITE_POINTER, pointer / unit, pointer / unit);
}

void kfd_queue_write(struct kfd_queue *queue, __u64 va, __u32 value)
{
	const __u32 packet[] = {
		queue->mtypes ? SDMA_FENCE | SDMA_UNCACHED : SDMA_FENCE,
		va, va >> 32, value,
	};

	kfd_queue_submit(queue, 1, packet, sizeof(packet) / sizeof(*packet));
}

bool kfd_queue_runs(const struct kfd *kfd, struct kfd_queue *queue)
{
	__u32 *fence = queue->memory.cpu + FENCE;
	int i;

	__atomic_store_n(fence, 0, __ATOMIC_RELEASE);
	kfd_queue_write(queue, queue->memory.va + FENCE, 1);
	for (i = 0; i < FENCE_LIMIT_MS * 10; i++) {
		if (__atomic_load_n(fence, __ATOMIC_ACQUIRE))
			return true;
		usleep(100);
	}
	return false;
}

int kfd_objects_create(struct kfd *kfd, struct kfd_objects *objects)
{
	int r = kfd_bo_create(kfd, 0, KFD_BO_GTT, 2 * KFD_PAGE, &objects->gtt);

	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_VRAM, KFD_VRAM_SIZE,
				  &objects->vram);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_USERPTR, KFD_PAGE,
				  &objects->user);
	if (r)
		return r;
	objects->event = kfd_event_create(kfd);
	return objects->event < 0 ? objects->event : 0;
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

int kfd_in_child(int (*body)(struct kfd *kfd, void *data), void *data)
{
	pid_t pid = kfd_start_child(body, data);
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
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

int count_files(void)
{
	return count_names("/proc/self/fd");
}
