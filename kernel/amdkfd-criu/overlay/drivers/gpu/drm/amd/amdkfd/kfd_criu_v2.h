/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images of the extensible ABI: interface between the operations
 * (kfd_criu_v2.c), the writer of images (kfd_criu_v2_write.c) and the reader
 * (kfd_criu_v2_read.c).
 */
#ifndef KFD_CRIU_V2_H_INCLUDED
#define KFD_CRIU_V2_H_INCLUDED

#include <linux/kfd_criu_ioctl.h>
#include <linux/types.h>

struct kfd_criu_memories;
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
 * struct kfd_criu_restore_ctx - what user space supplies besides the image
 * @args: args of the RESTORE operation
 * @memories: memory that BOs of the image are to share (struct
 *	kfd_criu_v2_memory)
 */
struct kfd_criu_restore_ctx {
	const struct kfd_criu_v2_args *args;
	struct kfd_criu_memories *memories;
};

/* kfd_criu_v2_write.c */
int kfd_criu_write_image(struct kfd_criu_stream *s, struct kfd_process *p);

/* kfd_criu_v2_read.c */
int kfd_criu_check_image(const struct kfd_criu_stream *image);
int kfd_criu_read_image(struct kfd_process *p, struct kfd_criu_stream *s,
			const struct kfd_criu_restore_ctx *ctx);

#endif /* KFD_CRIU_V2_H_INCLUDED */
