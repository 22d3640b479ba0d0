/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images of version 2, the extensible ABI: checkpoint and restore, and the sequence of
 * records that an image is. Functions return 0 or a negative errno unless their comment
 * says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_IMAGE_V2_H
#define KFD_CRIU_SELFTEST_IMAGE_V2_H

#include "kfd.h"

/* Records in memory of the test, which has space for one more small record. */
struct kfd_v2_image {
	unsigned char *data;
	__u64 size;
	int pause_fd;	/* pauses the process that the image is of */
	/*
	 * The image whose GPUs RESTORE is given, when the test itself cannot read this one;
	 * NULL: this one.
	 */
	const struct kfd_v2_image *gpus_of;
};

/* Pauses the process and allocates the buffer that its checkpoint needs. */
int kfd_v2_image_prepare(int fd, struct kfd_v2_image *image);
/* CHECKPOINT of a process for which the image is prepared. */
int kfd_v2_image_checkpoint(int fd, const struct kfd_v2_image *image);
/* Pauses the process, allocates the buffer and checkpoints it. */
int kfd_v2_image_dump(int fd, struct kfd_v2_image *image);
/* RESTORE on the GPUs of the image, through the render nodes that `kfd` has open. */
int kfd_v2_image_restore(const struct kfd *kfd,
			 const struct kfd_v2_image *image);
/* RESTORE on the devices that the caller chooses. */
int kfd_v2_image_restore_on(const struct kfd *kfd,
			    const struct kfd_v2_image *image,
			    const struct kfd_criu_gpu *devices,
			    unsigned int num_devices);
/* RESTORE with memory of BOs that exists already. */
int kfd_v2_image_restore_with(const struct kfd *kfd,
			      const struct kfd_v2_image *image,
			      const struct kfd_criu_shared_memory *memories,
			      unsigned int num_memories);

/*
 * Fills in kfd_criu_args.gpus so that each GPU of the image is restored on itself. Returns
 * the number of elements.
 */
unsigned int kfd_v2_image_gpus(const struct kfd *kfd,
			       const struct kfd_v2_image *image,
			       struct kfd_criu_gpu *gpus);

/* The record of a GPU; NULL if the image has none. */
struct kfd_criu_record_device *v2_device(const struct kfd_v2_image *image,
					 __u32 user_gpu_id);
/* The record at an offset. */
struct kfd_criu_record *v2_record(const struct kfd_v2_image *image, __u64 at);
/* The n-th record of a type, counted from 0; NULL if there are fewer. */
struct kfd_criu_record *v2_nth(const struct kfd_v2_image *image, __u32 type,
			       unsigned int n);
/* The record of a BO, by the handle that the program knows; NULL: there is none. */
struct kfd_criu_record_bo *v2_bo(const struct kfd_v2_image *image, __u64 handle);
/* Bytes of the type's C structure; what follows it depends on the record. */
__u64 v2_fixed_size(__u32 type);

#endif /* KFD_CRIU_SELFTEST_IMAGE_V2_H */
