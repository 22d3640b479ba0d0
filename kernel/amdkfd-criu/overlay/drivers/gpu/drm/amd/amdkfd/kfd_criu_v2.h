/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images of the extensible ABI: interface between the operations
 * (kfd_criu_v2.c), the writer of images (kfd_criu_v2_write.c) and the reader
 * (kfd_criu_v2_read.c, kfd_criu_record.c, kfd_criu_gpus.c).
 */
#ifndef KFD_CRIU_V2_H_INCLUDED
#define KFD_CRIU_V2_H_INCLUDED

#include <linux/kfd_criu_ioctl.h>
#include <linux/types.h>
#include "kfd_criu.h"

struct file;
struct kfd_criu_memories;
struct kfd_criu_mqd;
struct kfd_criu_queue;
struct kfd_process;

#define KFD_CRIU_MAX_RECORD_TYPE KFD_CRIU_RECORD_SVM_RANGE

/*
 * Newest version of a record type that this kernel reads and writes; 0: unknown
 * type.
 */
static inline u16 kfd_criu_max_record_version(u32 type)
{
	if (type == KFD_CRIU_RECORD_SVM_RANGE)
		return IS_ENABLED(CONFIG_HSA_AMD_SVM);
	return type && type <= KFD_CRIU_MAX_RECORD_TYPE;
}

/**
 * struct kfd_criu_stream - position in an image that is being written or read
 * @data: start of the image in user memory
 * @size: bytes of the buffer at @data; 0: the writer only measures the image
 * @pos: offset of the next record; beyond @size the writer counts bytes without
 *	storing
 * @num_records: number of records before @pos
 */
struct kfd_criu_stream {
	u8 __user *data;
	u64 size;
	u64 pos;
	u32 num_records;
};

/**
 * struct kfd_criu_gpu_choice - a GPU of this machine that replaces one of the
 * image (struct kfd_criu_gpu)
 * @device: which device replaces which
 * @drm_file: file of the device's render node; NULL: none, because the process
 *	does not use the device
 * @has_record: the image has a record of the device
 */
struct kfd_criu_gpu_choice {
	struct kfd_criu_device device;
	struct file *drm_file;
	bool has_record;
};

/**
 * struct kfd_criu_gpus - all GPUs that the caller of RESTORE has chosen
 * @n: number of elements
 * @choices: the GPUs; no two have an id in common
 */
struct kfd_criu_gpus {
	u32 n;
	struct kfd_criu_gpu_choice choices[];
};

/**
 * struct kfd_criu_restore_ctx - what a restore needs besides the image
 * @args: args of the RESTORE operation
 * @gpus: GPUs that the caller has chosen
 * @memories: memory that BOs of the image are to share (struct
 *	kfd_criu_shared_memory)
 * @needs_registers: kfd_criu_check_image() has seen a queue of which the driver
 *	does not check everything, see kfd_criu_mqd_is_validated()
 * @may_write_registers: the caller may restore such a queue, see
 *	kfd_criu_check_access()
 * @record: number of the record that is being read, starting at 1; 0: none.
 *	After a failure it is the record that was refused.
 */
struct kfd_criu_restore_ctx {
	const struct kfd_criu_args *args;
	struct kfd_criu_gpus *gpus;
	struct kfd_criu_memories *memories;
	bool needs_registers;
	bool may_write_registers;
	u32 record;
};

/**
 * struct kfd_criu_v2_record - record that is being read
 * @record: its header
 * @image: the members, if it is of this type
 * @process: likewise
 * @device: likewise
 * @bo: likewise
 * @queue: likewise
 * @page: likewise
 * @event: likewise
 * @svm: likewise
 * @payload: what follows the members, in user memory
 * @payload_bytes: bytes of @payload, including padding
 */
struct kfd_criu_v2_record {
	union {
		struct kfd_criu_record record;
		struct kfd_criu_record_image image;
		struct kfd_criu_record_process process;
		struct kfd_criu_record_device device;
		struct kfd_criu_record_bo bo;
		struct kfd_criu_record_queue queue;
		struct kfd_criu_record_event_page page;
		struct kfd_criu_record_event event;
		struct kfd_criu_record_svm_range svm;
	};
	const u8 __user *payload;
	u64 payload_bytes;
};

/* kfd_criu_gpus.c */
struct kfd_criu_gpus *kfd_criu_gpus_create(const struct kfd_criu_args *args);
void kfd_criu_gpus_destroy(struct kfd_criu_gpus *gpus);
struct kfd_criu_gpu_choice *kfd_criu_gpus_find(struct kfd_criu_gpus *gpus,
					       u32 user_gpu_id);
bool kfd_criu_gpus_all_in_image(const struct kfd_criu_gpus *gpus);

/* kfd_criu_v2_mqd.c */
u32 kfd_criu_v2_num_words(const struct kfd_node *node, enum kfd_queue_type type);
size_t kfd_criu_v2_mqd_bytes(const struct kfd_criu_mqd *mqd, u32 num_words);
void *kfd_criu_v2_pack_mqds(const struct kfd_node *node,
			    const struct kfd_criu_queue *cq);
int kfd_criu_v2_unpack_mqds(const struct kfd_node *node,
			    struct kfd_criu_queue *cq, u32 num_words,
			    const void *payload);

/* kfd_criu_v2_write.c */
int kfd_criu_write_image(struct kfd_criu_stream *s, struct kfd_process *p);

/* kfd_criu_record.c */
int kfd_criu_next_record(struct kfd_criu_stream *s,
			 struct kfd_criu_v2_record *in,
			 struct kfd_criu_restore_ctx *ctx, u32 last_type,
			 u32 *type);

/* kfd_criu_v2_read.c */
int kfd_criu_check_image(const struct kfd_criu_stream *image,
			 struct kfd_criu_restore_ctx *ctx);
int kfd_criu_read_image(struct kfd_process *p, struct kfd_criu_stream *s,
			struct kfd_criu_restore_ctx *ctx);

#endif /* KFD_CRIU_V2_H_INCLUDED */
