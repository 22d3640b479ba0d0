// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Thin: an ioctl each, and what /sys/class/kfd says.
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
#include "kfd.h"

#define NODES		"/sys/class/kfd/kfd/topology/nodes"
/* HSA_MEM_HEAP_TYPE_FB_PUBLIC */
#define HEAP_VISIBLE	1
/* In the address space of every GPU. */
#define FIRST_VA	(8ULL << 30)
#define CHILD_LIMIT_S	60
#define V2_CALL		_IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x22, \
			     sizeof(struct kfd_criu_v2_args))

int kfd_call(int fd, unsigned long request, void *args)
{
	int r;

	do
		r = ioctl(fd, request, args);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
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

static void find_gpus(void)
{
	unsigned int node;

	for (node = 0; is_node(node) && num_gpus < KFD_MAX_GPUS; node++)
		num_gpus += read_node(node, &gpus[num_gpus]);
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
#define SDMA_OP_FENCE	5
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

bool kfd_queue_runs(const struct kfd *kfd, struct kfd_queue *queue)
{
	__u32 *packet = queue->ring.cpu + queue->written % queue->ring.size;
	__u32 *fence = queue->memory.cpu + FENCE;
	const __u64 va = queue->memory.va + FENCE;
	int i;

	__atomic_store_n(fence, 0, __ATOMIC_RELEASE);
	packet[0] = SDMA_OP_FENCE;
	packet[1] = va;
	packet[2] = va >> 32;
	packet[3] = 1;
	queue->written += 4 * sizeof(*packet);
	__atomic_store_n((__u64 *)(queue->memory.cpu + WRITE_POINTER),
			 queue->written, __ATOMIC_RELEASE);
	if (queue->small_doorbell)
		__atomic_store_n((__u32 *)queue->doorbell, queue->written,
				 __ATOMIC_RELEASE);
	else
		__atomic_store_n((__u64 *)queue->doorbell, queue->written,
				 __ATOMIC_RELEASE);
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

int kfd_in_child(int (*body)(struct kfd *kfd, void *data), void *data)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct kfd kfd;

		alarm(CHILD_LIMIT_S);
		if (kfd_open(&kfd))
			_exit(255);
		_exit(body(&kfd, data));
	}
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

int kfd_criu(int fd, struct kfd_ioctl_criu_args *args)
{
	return kfd_call(fd, AMDKFD_IOC_CRIU_OP, args);
}

int kfd_criu_op(int fd, __u32 op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return kfd_criu(fd, &args);
}

int kfd_criu_resume(int fd, int pid)
{
	struct kfd_ioctl_criu_args args = {
		.op = KFD_CRIU_OP_RESUME,
		.pid = pid,
	};

	return kfd_criu(fd, &args);
}

static void *room(__u64 count, size_t size)
{
	return calloc(count + 1, size);
}

int kfd_image_prepare(int fd, struct kfd_image *image)
{
	int r;

	memset(image, 0, sizeof(*image));
	image->args.op = KFD_CRIU_OP_PROCESS_INFO;
	r = kfd_criu(fd, &image->args);
	if (r)
		return r;
	image->devices = room(image->args.num_devices, sizeof(*image->devices));
	image->bos = room(image->args.num_bos, sizeof(*image->bos));
	image->priv = room(image->args.priv_data_size, 1);
	image->args.devices = (unsigned long)image->devices;
	image->args.bos = (unsigned long)image->bos;
	image->args.priv_data = (unsigned long)image->priv;
	return image->devices && image->bos && image->priv ? 0 : -ENOMEM;
}

int kfd_image_checkpoint(int fd, struct kfd_image *image)
{
	image->args.op = KFD_CRIU_OP_CHECKPOINT;
	return kfd_criu(fd, &image->args);
}

int kfd_image_take(int fd, struct kfd_image *image)
{
	int r = kfd_image_prepare(fd, image);

	return r ? r : kfd_image_checkpoint(fd, image);
}

int kfd_image_restore(struct kfd *kfd, struct kfd_image *image)
{
	unsigned int i, j;

	for (i = 0; i < image->args.num_devices; i++)
		for (j = 0; j < kfd->num_gpus; j++)
			if (image->devices[i].actual_gpu_id == kfd->gpus[j].id)
				image->devices[i].drm_fd = kfd->gpus[j].drm;
	image->args.op = KFD_CRIU_OP_RESTORE;
	return kfd_criu(kfd->fd, &image->args);
}

void kfd_image_close_files(struct kfd_image *image)
{
	unsigned int i;

	for (i = 0; i < image->args.num_bos; i++) {
		if ((int)image->bos[i].dmabuf_fd > 2)
			close(image->bos[i].dmabuf_fd);
		image->bos[i].dmabuf_fd = -1;
	}
}

void kfd_image_free(struct kfd_image *image)
{
	free(image->devices);
	free(image->bos);
	free(image->priv);
	memset(image, 0, sizeof(*image));
}

int kfd_v2(int fd, struct kfd_criu_v2_args *args)
{
	return kfd_call(fd, V2_CALL, args);
}

int kfd_v2_op(int fd, __u32 op)
{
	struct kfd_criu_v2_args args = { .op = op };

	return kfd_v2(fd, &args);
}

int kfd_v2_resume(const struct kfd *kfd)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_RESUME,
		.pid = getpid(),
	};

	return kfd_v2(kfd->fd, &args);
}

int kfd_v2_state(const struct kfd *kfd)
{
	struct kfd_criu_v2_args args = { .op = KFD_CRIU_V2_STATE };
	int r = kfd_v2(kfd->fd, &args);

	return r ? r : (int)args.state;
}

int kfd_v2_export(const struct kfd *kfd, __u64 handle, int *fd)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_EXPORT_BO,
		.gpu_id = handle >> 32,
		.handle = handle,
	};
	int r = kfd_v2(kfd->fd, &args);

	*fd = args.fd;
	return r;
}

int kfd_v2_image_prepare(int fd, struct kfd_v2_image *image)
{
	struct kfd_criu_v2_args args = { .op = KFD_CRIU_V2_PAUSE };
	int r = kfd_v2(fd, &args);

	if (r)
		return r;
	image->size = args.data_size;
	image->data = calloc(1, image->size + 64);
	return image->data ? 0 : -ENOMEM;
}

int kfd_v2_image_checkpoint(int fd, const struct kfd_v2_image *image)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_CHECKPOINT,
		.data = (unsigned long)image->data,
		.data_size = image->size,
	};
	int r = kfd_v2(fd, &args);

	return !r && args.data_size != image->size ? -EPROTO : r;
}

int kfd_v2_image_take(int fd, struct kfd_v2_image *image)
{
	int r = kfd_v2_image_prepare(fd, image);

	return r ? r : kfd_v2_image_checkpoint(fd, image);
}

int kfd_v2_image_restore(const struct kfd *kfd,
			 const struct kfd_v2_image *image)
{
	return kfd_v2_image_restore_with(kfd, image, NULL, 0);
}

int kfd_v2_image_restore_with(const struct kfd *kfd,
			      const struct kfd_v2_image *image,
			      const struct kfd_criu_v2_memory *memories,
			      unsigned int num_memories)
{
	struct kfd_criu_v2_device devices[KFD_MAX_GPUS] = {};
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_RESTORE,
		.data = (unsigned long)image->data,
		.data_size = image->size,
		.devices = (unsigned long)devices,
		.num_devices = kfd->num_gpus,
		.memories = (unsigned long)memories,
		.num_memories = num_memories,
	};
	unsigned int i;

	for (i = 0; i < kfd->num_gpus; i++) {
		devices[i].user_gpu_id = kfd->gpus[i].id;
		devices[i].gpu_id = kfd->gpus[i].id;
		devices[i].drm_fd = kfd->gpus[i].drm;
	}
	return kfd_v2(kfd->fd, &args);
}

int count_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	if (!folder)
		return -errno;
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}
