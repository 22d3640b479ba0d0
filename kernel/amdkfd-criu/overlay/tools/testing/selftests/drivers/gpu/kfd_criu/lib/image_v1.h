/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images of version 1: checkpoint and restore, and the layout of their private data, which
 * is that of amdkfd's C structures. Functions return 0 or a negative errno unless their
 * comment says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_IMAGE_V1_H
#define KFD_CRIU_SELFTEST_IMAGE_V1_H

#include "kfd.h"

/* The result of a checkpoint, in memory of the test. */
struct kfd_v1_image {
	struct kfd_ioctl_criu_args args;
	struct kfd_criu_device_bucket *devices;
	struct kfd_criu_bo_bucket *bos;
	unsigned char *priv;
	__u64 handle;	/* of a BO in the image, if a test wants to pass it to a child */
};

/* Pauses the process and allocates the buffers that PROCESS_INFO asks for. */
int kfd_v1_image_prepare(int fd, struct kfd_v1_image *image);
/* CHECKPOINT of a process for which the image is prepared. */
int kfd_v1_image_checkpoint(int fd, struct kfd_v1_image *image);
/* Pauses the process, allocates the buffers and checkpoints it. */
int kfd_v1_image_dump(int fd, struct kfd_v1_image *image);
/* RESTORE on the GPUs of the image, through the render nodes that `kfd` has open. */
int kfd_v1_image_restore(struct kfd *kfd, struct kfd_v1_image *image);
/* Closes the DMA-bufs that CHECKPOINT or RESTORE opened. */
void kfd_v1_image_close_files(struct kfd_v1_image *image);
void kfd_v1_image_free(struct kfd_v1_image *image);

/* Bytes of the structures of the private data. */
#define V1_PROCESS_SIZE	8
#define V1_DEVICE_SIZE	8
#define V1_BO_SIZE	272
#define V1_QUEUE_SIZE	120	/* then come the queue's MQDs and control stacks */
#define V1_EVENT_SIZE	64

/* enum kfd_criu_object_type: the first word of each object behind the BOs. */
#define V1_QUEUE	0
#define V1_EVENT	1
#define V1_SVM		2

/* enum kfd_queue_type, enum kfd_queue_format */
#define V1_TYPE_COMPUTE	0
#define V1_TYPE_SDMA	1
#define V1_FORMAT_PM4	0
#define V1_FORMAT_AQL	1

/* struct kfd_criu_queue_priv_data: offsets of its members. */
enum {
	V1_RING = 8,
	V1_RING_SIZE = 16,
	V1_READ_POINTER = 24,
	V1_WRITE_POINTER = 32,
	V1_EOP = 48,
	V1_SAVE_AREA = 56,
	V1_GPU_ID = 64,
	V1_TYPE = 68,
	V1_FORMAT = 72,
	V1_QUEUE_ID = 76,
	V1_PRIORITY = 80,
	V1_PERCENTAGE = 84,
	V1_DOORBELL_ID = 88,
	V1_GWS = 92,
	V1_SDMA_ID = 96,
	V1_EOP_SIZE = 100,
	V1_SAVE_AREA_SIZE = 104,
	V1_CTL_STACK_SIZE = 108,
	V1_MQD_SIZE = 112,
};

/* struct kfd_criu_event_priv_data: offsets of its members. */
enum {
	V1_PAGE_HANDLE = 8,
	V1_EVENT_ID = 16,
	V1_AUTO_RESET = 20,
	V1_EVENT_TYPE = 24,
	V1_SIGNALED = 28,
};

/* struct kfd_criu_svm_range_priv_data: offsets of its members. */
enum {
	V1_SVM_START = 8,
	V1_SVM_PAGES = 16,
	V1_SVM_ATTRIBUTES = 24,
};

/* Number of attributes of every SVM range; then there is one more for each device. */
#define V1_SVM_COMMON	4

/* struct kfd_criu_bo_priv_data: offsets of its members. */
enum {
	V1_USER_ADDRESS = 0,
	V1_HANDLE = 8,
	V1_MAPPED = 12,
};

/* Offsets in the private data where the BOs begin, and where the objects behind them do. */
__u64 v1_bos(const struct kfd_v1_image *image);
__u64 v1_objects(const struct kfd_v1_image *image);
/* Bytes of the object at an offset, with its MQDs or attributes. */
__u64 v1_object_size(const struct kfd_v1_image *image, __u64 at);
/* The 32-bit word at an offset. */
__u32 v1_word(const struct kfd_v1_image *image, __u64 at);

#endif /* KFD_CRIU_SELFTEST_IMAGE_V1_H */
