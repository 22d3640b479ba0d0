/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images of the extensible ABI, between its operations (kfd_criu_v2.c), who writes one
 * (kfd_criu_v2_write.c) and who reads it (kfd_criu_v2_read.c).
 */
#ifndef KFD_CRIU_V2_H_INCLUDED
#define KFD_CRIU_V2_H_INCLUDED

#include <linux/kfd_criu_ioctl.h>
#include <linux/types.h>

struct kfd_criu_memories;
struct kfd_process;

#define KFD_CRIU_MAX_RECORD_TYPE KFD_CRIU_RECORD_SVM_RANGE

/* Of a type of records; 0: it is not known. */
static inline u16 kfd_criu_max_record_version(u32 type)
{
	if (type == KFD_CRIU_RECORD_SVM_RANGE)
		return IS_ENABLED(CONFIG_HSA_AMD_SVM);
	return type && type <= KFD_CRIU_MAX_RECORD_TYPE;
}

/**
 * struct kfd_criu_stream - an image being written, or read
 * @data: where
 * @room: bytes there are
 * @at: next record; beyond @room it is only counted
 * @records: so many so far
 */
struct kfd_criu_stream {
	u8 __user *data;
	u64 size;
	u64 pos;
	u32 num_records;
};

/**
 * struct kfd_criu_restore_ctx - what an image is restored with
 * @args: of the operation
 * @memories: what its BOs may be
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
