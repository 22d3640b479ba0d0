// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * BOs in the private data of version 1 and in the array of their public part,
 * and the DMA-bufs by which CRIU reads and writes their contents.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/file.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_criu_v1.h"
#include "kfd_priv.h"

/* In a BO's public part: the BO has no DMA-buf. */
#define NO_DMABUF_FD	((u32)-1)

#define DMABUFS_PER_BLOCK 120

/*
 * DMA-bufs whose descriptors are installed if the whole operation succeeds.
 * They are kept in a list of blocks instead of one array, because their number
 * is only claimed by the caller.
 */
struct kfd_criu_v1_dmabuf_block {
	struct list_head link;
	unsigned int n;
	struct kfd_criu_v1_dmabuf {
		struct file *file;
		int fd;
	} dmabufs[DMABUFS_PER_BLOCK];
};

/*
 * Returns an unused element; NULL if there is no memory. The caller increments
 * block->n.
 */
static struct kfd_criu_v1_dmabuf *
kfd_criu_v1_next_dmabuf(struct list_head *blocks)
{
	struct kfd_criu_v1_dmabuf_block *last = NULL;

	if (!list_empty(blocks))
		last = list_last_entry(blocks, struct kfd_criu_v1_dmabuf_block,
				       link);
	if (!last || last->n == DMABUFS_PER_BLOCK) {
		last = kmalloc(sizeof(*last), GFP_KERNEL_ACCOUNT);
		if (!last)
			return NULL;
		last->n = 0;
		list_add_tail(&last->link, blocks);
	}
	return &last->dmabufs[last->n];
}

/* @fd returns the descriptor that will be installed, or NO_DMABUF_FD. */
static int kfd_criu_v1_add_dmabuf(struct list_head *blocks, struct kgd_mem *mem,
				  u32 flags, u32 *fd)
{
	struct kfd_criu_v1_dmabuf *dmabuf;
	int r;

	*fd = NO_DMABUF_FD;
	if (!kfd_criu_bo_has_contents(flags))
		return 0;
	dmabuf = kfd_criu_v1_next_dmabuf(blocks);
	if (!dmabuf)
		return -ENOMEM;
	r = kfd_criu_bo_export(mem, &dmabuf->file);
	if (r)
		return r;
	/* The released kernels do not set O_CLOEXEC either. */
	dmabuf->fd = get_unused_fd_flags(0);
	if (dmabuf->fd < 0) {
		fput(dmabuf->file);
		return dmabuf->fd;
	}
	*fd = dmabuf->fd;
	list_last_entry(blocks, struct kfd_criu_v1_dmabuf_block, link)->n++;
	return 0;
}

/**
 * kfd_criu_v1_finish_dmabufs - install the descriptors of DMA-bufs, or drop them
 * @blocks: the DMA-bufs of an operation; is not valid afterwards
 * @keep: the operation has succeeded
 *
 * The last step of an operation, because an installed descriptor cannot be
 * taken back.
 */
void kfd_criu_v1_finish_dmabufs(struct list_head *blocks, bool keep)
{
	struct kfd_criu_v1_dmabuf_block *block, *next;
	unsigned int i;

	list_for_each_entry_safe(block, next, blocks, link) {
		for (i = 0; i < block->n; i++) {
			struct kfd_criu_v1_dmabuf *dmabuf = &block->dmabufs[i];

			if (keep) {
				fd_install(dmabuf->fd, dmabuf->file);
			} else {
				put_unused_fd(dmabuf->fd);
				fput(dmabuf->file);
			}
		}
		kfree(block);
	}
}

/* The caller has cleared @bucket and @record. */
static void kfd_criu_v1_fill_bo(const struct kfd_process *p,
				const struct kfd_criu_bo *cb,
				struct kfd_criu_bo_bucket *bucket,
				struct kfd_criu_bo_priv_data *record)
{
	unsigned int i, n = 0;

	bucket->addr = cb->va;
	bucket->size = cb->size;
	bucket->offset = cb->mmap_offset;
	bucket->gpu_id = cb->gpu_id;
	bucket->alloc_flags = cb->flags;
	record->user_addr = cb->user_addr;
	record->idr_handle = cb->handle;
	for_each_set_bit(i, cb->mapped, p->n_pdds)
		record->mapped_gpuids[n++] = p->pdds[i]->user_gpu_id;
}

/* Context of kfd_criu_v1_write_bo() as a callback of idr_for_each(). */
struct kfd_criu_v1_bo_writer {
	const struct kfd_process_device *pdd;
	struct kfd_criu_bo_bucket __user *out;
	struct kfd_criu_v1_cursor *c;
	struct list_head *dmabufs;
};

static int kfd_criu_v1_write_bo(int handle, void *mem, void *data)
{
	struct kfd_criu_v1_bo_writer *writer = data;
	struct kfd_criu_bo_priv_data record;
	struct kfd_criu_bo_bucket bucket;
	struct kfd_criu_bo cb;
	int r;

	/*
	 * Before anything else, so that CONFIG_INIT_STACK_ALL_ZERO need not
	 * clear them once more.
	 */
	memset(&record, 0, sizeof(record));
	memset(&bucket, 0, sizeof(bucket));
	r = kfd_criu_bo_describe(writer->pdd, handle, mem, &cb);
	if (r)
		return r;
	kfd_criu_v1_fill_bo(writer->pdd->process, &cb, &bucket, &record);
	r = kfd_criu_v1_add_dmabuf(writer->dmabufs, mem, cb.flags,
				   &bucket.dmabuf_fd);
	if (r)
		return r;
	if (copy_to_user(writer->out, &bucket, sizeof(bucket)))
		return -EFAULT;
	writer->out++;
	return kfd_criu_v1_write(writer->c, &record, sizeof(record));
}

/**
 * kfd_criu_v1_write_bos - describe all BOs of a process
 * @p: the process; its mutex is held
 * @bos: array of struct kfd_criu_bo_bucket in user memory
 * @c: position of the BOs in the private data; is moved behind them
 * @dmabufs: gets the DMA-bufs, see kfd_criu_v1_finish_dmabufs()
 *
 * Handles are created and freed under p->mutex only, so there are as many as
 * were counted.
 *
 * Return: 0; -EINVAL if the private data are too short; -EFAULT, -ENOMEM, -EMFILE.
 */
int kfd_criu_v1_write_bos(const struct kfd_process *p, u64 bos,
			  struct kfd_criu_v1_cursor *c,
			  struct list_head *dmabufs)
{
	struct kfd_criu_v1_bo_writer writer = {
		.out = u64_to_user_ptr(bos),
		.c = c,
		.dmabufs = dmabufs,
	};
	unsigned int i;
	int r;

	for (i = 0; i < p->n_pdds; i++) {
		writer.pdd = p->pdds[i];
		r = idr_for_each(&p->pdds[i]->alloc_idr, kfd_criu_v1_write_bo,
				 &writer);
		if (r)
			return r;
	}
	return 0;
}

static int kfd_criu_v1_parse_bo(struct kfd_process *p, struct kfd_criu_bo *cb,
				const struct kfd_criu_bo_bucket *bucket,
				const struct kfd_criu_bo_priv_data *record)
{
	unsigned int i;

	memset(cb, 0, sizeof(*cb));
	cb->gpu_id = bucket->gpu_id;
	cb->handle = record->idr_handle;
	cb->flags = bucket->alloc_flags;
	cb->va = bucket->addr;
	cb->size = bucket->size;
	cb->user_addr = record->user_addr;
	for (i = 0; i < p->n_pdds && record->mapped_gpuids[i]; i++) {
		int index = kfd_process_gpuidx_from_gpuid(p,
							  record->mapped_gpuids[i]);

		if (index < 0)
			return -EINVAL;
		__set_bit(index, cb->mapped);
	}
	return 0;
}

static int kfd_criu_v1_restore_bo(struct kfd_process *p,
				  struct kfd_criu_bo_bucket __user *in,
				  struct kfd_criu_v1_cursor *c,
				  struct list_head *dmabufs)
{
	struct kfd_criu_bo_priv_data record;
	struct kfd_criu_bo_bucket bucket;
	struct kfd_criu_bo cb;
	struct kgd_mem *mem;
	int r;

	if (copy_from_user(&bucket, in, sizeof(bucket)))
		return -EFAULT;
	r = kfd_criu_v1_read(c, &record, sizeof(record));
	if (r)
		return r;
	r = kfd_criu_v1_parse_bo(p, &cb, &bucket, &record);
	if (r)
		return r;
	r = kfd_criu_bo_restore(p, &cb, NULL, &mem);
	if (r)
		return r;
	r = kfd_criu_v1_add_dmabuf(dmabufs, mem, cb.flags, &bucket.dmabuf_fd);
	if (r)
		return r;
	if (put_user(cb.mmap_offset, &in->restored_offset) ||
	    put_user(bucket.dmabuf_fd, &in->dmabuf_fd))
		return -EFAULT;
	return 0;
}

/**
 * kfd_criu_v1_restore_bos - create the BOs of an image
 * @p: process in the state RESTORING, with its devices bound; its mutex is held
 * @args: how many BOs there are, and where their public part is
 * @c: position of the BOs in the private data; is moved behind them
 * @dmabufs: gets the DMA-bufs, see kfd_criu_v1_finish_dmabufs()
 *
 * Return: 0; as kfd_criu_finish_devices(), kfd_criu_check_killed() and
 * kfd_criu_bo_restore(); -EINVAL if a record is invalid or the private data are
 * too short; -EFAULT, -ENOMEM, -EMFILE.
 */
int kfd_criu_v1_restore_bos(struct kfd_process *p,
			    const struct kfd_ioctl_criu_args *args,
			    struct kfd_criu_v1_cursor *c,
			    struct list_head *dmabufs)
{
	struct kfd_criu_bo_bucket __user *in = u64_to_user_ptr(args->bos);
	u32 i;
	int r;

	r = kfd_criu_finish_devices(p);
	if (r)
		return r;
	for (i = 0; i < args->num_bos; i++) {
		r = kfd_criu_check_killed();
		if (r)
			return r;
		r = kfd_criu_v1_restore_bo(p, &in[i], c, dmabufs);
		if (r)
			return r;
	}
	return 0;
}
