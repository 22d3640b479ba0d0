/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * /dev/kfd for tests of checkpoint and restore. Functions return 0 or a negative
 * errno where nothing else is said.
 */
#ifndef KFD_CRIU_SELFTEST_KFD_H
#define KFD_CRIU_SELFTEST_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/kfd_ioctl.h>
#include <linux/kfd_criu_ioctl.h>

/* As many as amdkfd has (MAX_GPU_INSTANCE). */
#define KFD_MAX_GPUS	64
#define KFD_PAGE	4096UL

/* Of version 1, as CRIU's plugin and amdkfd have them: bytes. */
#define KFD_V1_PROCESS	8
#define KFD_V1_DEVICE	8
#define KFD_V1_BO	272
#define KFD_V1_QUEUE	120	/* and its MQDs and control stacks */
#define KFD_V1_EVENT	64

struct kfd_gpu {
	unsigned int node;	/* of topology */
	__u32 id;
	__u32 render_minor;
	__u32 gfx_version;	/* decimal, 90006 is gfx906 */
	bool visible;		/* programs map its VRAM; else, behind a small BAR, none */
	int drm;		/* -1: its VM is not acquired */
};

/* A process's view of all GPUs. */
struct kfd {
	int fd;
	unsigned int num_gpus;
	struct kfd_gpu gpus[KFD_MAX_GPUS];
	__u64 next_va;
};

/* Opens /dev/kfd and the GPUs' render nodes; -ENODEV without a GPU. The GPUs are in the
 * order of topology, but the one that KFD_CRIU_GPU names (from 0 on) is the first.
 */
int kfd_open(struct kfd *kfd);

/* An ioctl: 0 or a negative errno. */
int kfd_call(int fd, unsigned long request, void *args);
/* Of one GPU, or of all. */
int kfd_acquire_vm(struct kfd *kfd, unsigned int gpu);
int kfd_acquire_vms(struct kfd *kfd);
void kfd_close(struct kfd *kfd);

/* A property of the GPU's node of topology; 0 if it has none of that name. */
unsigned long long kfd_gpu_property(const struct kfd_gpu *gpu,
				    const char *name);

/* A BO of a GPU, mapped to it and into the process; VRAM into the latter only if it is
 * public.
 */
struct kfd_bo {
	__u64 handle;
	__u64 va;
	__u64 size;
	void *cpu;	/* NULL: not mapped */
};

#define KFD_BO_GTT	(KFD_IOC_ALLOC_MEM_FLAGS_GTT | \
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT)
#define KFD_BO_VRAM	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | \
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)
#define KFD_BO_USERPTR	(KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | \
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | \
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT)

int kfd_bo_create(struct kfd *kfd, unsigned int gpu, __u32 flags, __u64 size,
		  struct kfd_bo *bo);
/* The same, mapped into the process in any case: in VRAM, or in GTT if none of it can be. */
int kfd_bo_create_visible(struct kfd *kfd, unsigned int gpu, __u64 size,
			  struct kfd_bo *bo);
/* A DMA-buf of a BO; and a BO that is the memory of one, not mapped to the process. */
int kfd_bo_export(const struct kfd *kfd, __u64 handle, int *fd);
int kfd_bo_import(struct kfd *kfd, unsigned int gpu, int fd, __u64 size,
		  struct kfd_bo *bo);
/* A BO that is memory which the process has already. */
int kfd_bo_wrap(struct kfd *kfd, unsigned int gpu, void *memory, __u64 size,
		struct kfd_bo *bo);
int kfd_bo_free(const struct kfd *kfd, unsigned int gpu,
		const struct kfd_bo *bo);
/* In a process that was restored with it: maps it to the process. */
int kfd_bo_find(const struct kfd *kfd, unsigned int gpu, struct kfd_bo *bo);
/* Moves its mapping to the address that the GPU has for it. */
int kfd_bo_place(struct kfd_bo *bo);
/* The id of a new signal event, or a negative errno. */
int kfd_event_create(struct kfd *kfd);
/* An SDMA queue without a packet. It has a place of its GPU to itself: only when it is
 * gone can another process restore it there.
 */
struct kfd_queue {
	__u32 id;
	unsigned int gpu;
	struct kfd_bo ring;
	struct kfd_bo memory;	/* write pointer, read pointer, fence */
	void *doorbell;
	__u64 doorbell_offset;	/* of mmap() on /dev/kfd */
	bool small_doorbell;	/* of 4 bytes, before gfx9 */
	bool mtypes;		/* SDMA packets say how memory is cached, from gfx10 on */
	__u64 written;		/* bytes, since it was made */
};

int kfd_queue_create(struct kfd *kfd, unsigned int gpu,
		     struct kfd_queue *queue);
/* Maps its doorbell, of which AMDKFD_IOC_CREATE_QUEUE said that it is at an offset. */
int kfd_queue_map_doorbell(const struct kfd *kfd, struct kfd_queue *queue,
			   __u64 offset);
int kfd_queue_destroy(const struct kfd *kfd, const struct kfd_queue *queue);
/* In a process that was restored with it, as kfd_bo_find(). */
int kfd_queue_find(const struct kfd *kfd, struct kfd_queue *queue);
/* Puts a packet into its ring and rings. Its pointers and its doorbell count so many
 * bytes. Rings are never full: tests write few packets.
 */
void kfd_queue_submit(struct kfd_queue *queue, unsigned int unit,
		      const __u32 *packet, unsigned int dwords);
/* Stores a write pointer, which is so far in its memory, and rings. */
void kfd_queue_ring(const struct kfd_queue *queue, unsigned int pointer_at,
		    __u64 pointer, __u64 bell);
/* An SDMA packet that writes a word. */
void kfd_queue_write(struct kfd_queue *queue, __u64 va, __u32 value);
/* Gives it a fence to write, and waits ten seconds for it. */
bool kfd_queue_runs(const struct kfd *kfd, struct kfd_queue *queue);

/* What most tests checkpoint: a BO of each kind and an event. */
struct kfd_objects {
	struct kfd_bo gtt, vram, user;
	int event;
};

#define KFD_OBJECTS_BOS	3
/* Of the VRAM among them: as fine as AMDKFD_IOC_AVAILABLE_MEMORY counts. */
#define KFD_VRAM_SIZE	(2 << 20)

int kfd_objects_create(struct kfd *kfd, struct kfd_objects *objects);

/* Calls it in a process that has nothing of this one's but open GPUs. Its exit status
 * is what it returns; -1 when it has none, for example after a minute.
 */
int kfd_in_child(int (*body)(struct kfd *kfd, void *data), void *data);
/* The same, and does not wait for it: its id, or -1. */
pid_t kfd_start_child(int (*body)(struct kfd *kfd, void *data), void *data);
/* Bytes of VRAM that a GPU has left, or a negative errno. */
long long kfd_available(const struct kfd *kfd, unsigned int gpu);
/* That or more, within ten seconds: workers free memory, of other processes too. */
bool kfd_available_becomes(const struct kfd *kfd, unsigned int gpu,
			   long long bytes);

/* AMDKFD_IOC_CRIU_OP on a file. */
int kfd_criu(int fd, struct kfd_ioctl_criu_args *args);
int kfd_criu_op(int fd, __u32 op);
int kfd_criu_resume(int fd, int pid);

/* What a checkpoint gave; memory of the process. */
struct kfd_image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket *devices;
	struct kfd_criu_bo_bucket *bos;
	unsigned char *priv;
	__u64 handle;	/* of a BO in it, for whoever wants to tell it */
};

/* Room for what PROCESS_INFO tells. */
int kfd_image_prepare(int fd, struct kfd_image *image);
int kfd_image_checkpoint(int fd, struct kfd_image *image);
/* Both of it. */
int kfd_image_take(int fd, struct kfd_image *image);
/* On the same GPUs, through the render nodes that `kfd` has open. */
int kfd_image_restore(struct kfd *kfd, struct kfd_image *image);
/* The DMA-bufs that came with it. */
void kfd_image_close_files(struct kfd_image *image);
void kfd_image_free(struct kfd_image *image);

/* The extensible ABI. */
int kfd_v2(int fd, struct kfd_criu_v2_args *args);
int kfd_v2_op(int fd, __u32 op);
int kfd_v2_resume(const struct kfd *kfd);
/* enum kfd_criu_state, or a negative errno */
int kfd_v2_state(const struct kfd *kfd);
/* Of one BO; *fd is new. */
int kfd_v2_export(const struct kfd *kfd, __u64 handle, int *fd);

/* Records; memory of the process, with room for one more small record. */
struct kfd_v2_image {
	unsigned char *data;
	__u64 size;
};

/* Pauses, and makes room for what there is. */
int kfd_v2_image_prepare(int fd, struct kfd_v2_image *image);
int kfd_v2_image_checkpoint(int fd, const struct kfd_v2_image *image);
/* Both of it. */
int kfd_v2_image_take(int fd, struct kfd_v2_image *image);
/* On the same GPUs, through the render nodes that `kfd` has open. */
int kfd_v2_image_restore(const struct kfd *kfd,
			 const struct kfd_v2_image *image);
/* On GPUs that are chosen. */
int kfd_v2_image_restore_on(const struct kfd *kfd,
			    const struct kfd_v2_image *image,
			    const struct kfd_criu_v2_device *devices,
			    unsigned int num_devices);
/* With memory that is there already. */
int kfd_v2_image_restore_with(const struct kfd *kfd,
			      const struct kfd_v2_image *image,
			      const struct kfd_criu_v2_memory *memories,
			      unsigned int num_memories);

/* Files that this process has open. */
int count_files(void);

#endif /* KFD_CRIU_SELFTEST_KFD_H */
