/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What kfd_criu_v1.c and kfd_criu_v1_bo.c share. The functions of the other
 * kfd_criu_v1_*.c, which earlier patches call too, are in kfd_criu.h.
 */
#ifndef KFD_CRIU_V1_H
#define KFD_CRIU_V1_H

#include <linux/list.h>
#include <linux/types.h>

struct kfd_ioctl_criu_args;
struct kfd_process;

/**
 * struct kfd_criu_v1_cursor - position in the private data that are being read or
 * written
 * @data: the private data
 * @size: their size, bytes
 * @pos: how much of them was read or written, bytes
 */
struct kfd_criu_v1_cursor {
	u8 __user *data;
	u64 size;
	u64 pos;
};

/* kfd_criu_v1.c */
int kfd_criu_v1_write(struct kfd_criu_v1_cursor *c, const void *record,
		      size_t bytes);
int kfd_criu_v1_read(struct kfd_criu_v1_cursor *c, void *record, size_t bytes);

/* kfd_criu_v1_bo.c */
void kfd_criu_v1_finish_dmabufs(struct list_head *blocks, bool keep);
int kfd_criu_v1_write_bos(const struct kfd_process *p, u64 bos,
			  struct kfd_criu_v1_cursor *c,
			  struct list_head *dmabufs);
int kfd_criu_v1_restore_bos(struct kfd_process *p,
			    const struct kfd_ioctl_criu_args *args,
			    struct kfd_criu_v1_cursor *c,
			    struct list_head *dmabufs);

#endif /* KFD_CRIU_V1_H */
