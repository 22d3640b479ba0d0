// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The released ABI of AMDKFD_IOC_CRIU_OP: its five operations, and how the
 * process, its devices and its BOs are stored in the private data of version 1;
 * see kfd_criu_v1_queue.c for the other objects. Devices and BOs also have a
 * public part, in arrays that are passed separately.
 *
 *   private data:  process | devices | BOs | queues, events, SVM ranges
 */
#include <linux/file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

/* In a BO's public part: the BO has no DMA-buf. */
#define NO_DMABUF_FD	((u32)-1)

/* Position in the private data that are being read or written. */
struct kfd_criu_v1_cursor {
	u8 __user *data;
	u64 size;
	u64 pos;
};

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

static struct kfd_criu_v1_cursor
kfd_criu_v1_cursor_init(const struct kfd_ioctl_criu_args *args)
{
	return (struct kfd_criu_v1_cursor){
		.data = u64_to_user_ptr(args->priv_data),
		.size = args->priv_data_size,
	};
}

static bool kfd_criu_v1_has_space(const struct kfd_criu_v1_cursor *c, u64 bytes)
{
	return c->pos <= c->size && c->size - c->pos >= bytes;
}

static int kfd_criu_v1_write(struct kfd_criu_v1_cursor *c, const void *record,
			     size_t bytes)
{
	if (!kfd_criu_v1_has_space(c, bytes))
		return -EINVAL;
	if (copy_to_user(c->data + c->pos, record, bytes))
		return -EFAULT;
	c->pos += bytes;
	return 0;
}

static int kfd_criu_v1_read(struct kfd_criu_v1_cursor *c, void *record,
			    size_t bytes)
{
	if (!kfd_criu_v1_has_space(c, bytes))
		return -EINVAL;
	if (copy_from_user(record, c->data + c->pos, bytes))
		return -EFAULT;
	c->pos += bytes;
	return 0;
}

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

/*
 * The last step of an operation, because an installed descriptor cannot be
 * taken back.
 */
static void kfd_criu_v1_finish_dmabufs(struct list_head *blocks, bool keep)
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

/*
 * Computes the numbers that PROCESS_INFO returns and that CHECKPOINT must be
 * called with.
 */
static int kfd_criu_v1_measure(struct kfd_process *p, void *data)
{
	struct kfd_ioctl_criu_args *args = data;
	u32 queues, events, svm_ranges;
	u64 queue_bytes;
	int r;

	r = kfd_criu_event_count(p, &events);
	if (r)
		return r;
	r = kfd_criu_svm_count_killable(p, &svm_ranges);
	if (r)
		return r;
	r = kfd_criu_v1_queue_sizes(p, &queues, &queue_bytes);
	if (r)
		return r;
	args->num_devices = p->n_pdds;
	args->num_bos = kfd_criu_bo_count(p);
	args->num_objects = queues + events + svm_ranges;
	args->priv_data_size =
		sizeof(struct kfd_criu_process_priv_data) +
		(u64)p->n_pdds * sizeof(struct kfd_criu_device_priv_data) +
		(u64)args->num_bos * sizeof(struct kfd_criu_bo_priv_data) +
		queue_bytes +
		(u64)events * sizeof(struct kfd_criu_event_priv_data) +
		svm_ranges * kfd_criu_v1_svm_size(p->n_pdds);
	return 0;
}

static int kfd_criu_v1_write_process(const struct kfd_process *p,
				     struct kfd_criu_v1_cursor *c)
{
	const struct kfd_criu_process_priv_data record = {
		.version = KFD_CRIU_PRIV_VERSION,
		.xnack_mode = p->xnack_enabled,
	};

	return kfd_criu_v1_write(c, &record, sizeof(record));
}

static int kfd_criu_v1_write_devices(const struct kfd_process *p, u64 devices,
				     struct kfd_criu_v1_cursor *c)
{
	struct kfd_criu_device_bucket __user *out = u64_to_user_ptr(devices);
	const struct kfd_criu_device_priv_data record = {};
	unsigned int i;
	int r;

	for (i = 0; i < p->n_pdds; i++) {
		const struct kfd_criu_device_bucket bucket = {
			.user_gpu_id = p->pdds[i]->user_gpu_id,
			.actual_gpu_id = p->pdds[i]->dev->id,
		};

		if (copy_to_user(&out[i], &bucket, sizeof(bucket)))
			return -EFAULT;
		r = kfd_criu_v1_write(c, &record, sizeof(record));
		if (r)
			return r;
	}
	return 0;
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

/*
 * Handles are created and freed under p->mutex only, so there are as many as
 * were counted.
 */
static int kfd_criu_v1_write_bos(const struct kfd_process *p, u64 bos,
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

static int kfd_criu_v1_write_objects(struct kfd_process *p,
				     struct kfd_criu_v1_cursor *c)
{
	int r;

	r = kfd_criu_v1_checkpoint_queues(p, c->data, &c->pos);
	if (r)
		return r;
	r = kfd_criu_v1_checkpoint_events(p, c->data, &c->pos, c->size);
	if (r)
		return r;
	return kfd_criu_v1_checkpoint_svm(p, c->data, &c->pos, c->size);
}

static int kfd_criu_v1_write_all(struct kfd_process *p,
				 const struct kfd_ioctl_criu_args *args,
				 struct list_head *dmabufs)
{
	struct kfd_criu_v1_cursor c = kfd_criu_v1_cursor_init(args);
	int r;

	r = kfd_criu_v1_write_process(p, &c);
	if (r)
		return r;
	r = kfd_criu_v1_write_devices(p, args->devices, &c);
	if (r)
		return r;
	r = kfd_criu_v1_write_bos(p, args->bos, &c, dmabufs);
	if (r)
		return r;
	return kfd_criu_v1_write_objects(p, &c);
}

static bool kfd_criu_v1_same_counts(const struct kfd_ioctl_criu_args *a,
				    const struct kfd_ioctl_criu_args *b)
{
	return a->num_devices == b->num_devices && a->num_bos == b->num_bos &&
	       a->num_objects == b->num_objects &&
	       a->priv_data_size == b->priv_data_size;
}

static int kfd_criu_v1_checkpoint(struct kfd_process *p,
				  const struct kfd_ioctl_criu_args *args)
{
	struct kfd_ioctl_criu_args now = *args;
	LIST_HEAD(dmabufs);
	u32 reason;
	int r;

	if (!args->devices || !args->bos || !args->priv_data)
		return -EINVAL;
	if (!p->n_pdds)
		return -ENODEV;
	r = kfd_criu_check_owned_pause(p);
	if (r)
		return r;
	r = kfd_criu_drm_file_check(p, false, &reason);
	if (r)
		return r;
	r = kfd_criu_v1_measure(p, &now);
	if (r)
		return r;
	if (!kfd_criu_v1_same_counts(&now, args))
		return -EINVAL;
	r = kfd_criu_v1_write_all(p, args, &dmabufs);
	kfd_criu_v1_finish_dmabufs(&dmabufs, !r);
	return r;
}

static int kfd_criu_v1_restore_process(struct kfd_process *p,
				       struct kfd_criu_v1_cursor *c)
{
	struct kfd_criu_process_priv_data record;
	int r;

	r = kfd_criu_v1_read(c, &record, sizeof(record));
	if (r)
		return r;
	if (record.version != KFD_CRIU_PRIV_VERSION || record.xnack_mode > 1)
		return -EINVAL;
	return kfd_criu_xnack_restore(p, record.xnack_mode);
}

static int
kfd_criu_v1_restore_device(struct kfd_process *p,
			   const struct kfd_criu_device_bucket __user *in)
{
	struct kfd_criu_device_bucket bucket;
	struct kfd_criu_device cd;
	struct file *drm_file;
	int r;

	if (copy_from_user(&bucket, in, sizeof(bucket)))
		return -EFAULT;
	cd.user_gpu_id = bucket.user_gpu_id;
	cd.gpu_id = bucket.actual_gpu_id;
	drm_file = fget(bucket.drm_fd);
	if (!drm_file)
		return -EINVAL;
	r = kfd_criu_device_restore(p, &cd, drm_file);
	fput(drm_file);
	return r;
}

static int kfd_criu_v1_restore_devices(struct kfd_process *p,
				       const struct kfd_ioctl_criu_args *args,
				       struct kfd_criu_v1_cursor *c)
{
	const struct kfd_criu_device_bucket __user *in =
		u64_to_user_ptr(args->devices);
	struct kfd_criu_device_priv_data record;
	u32 i;
	int r;

	if (args->num_devices > p->n_pdds)
		return -EINVAL;
	for (i = 0; i < args->num_devices; i++) {
		r = kfd_criu_v1_read(c, &record, sizeof(record));
		if (r)
			return r;
		r = kfd_criu_v1_restore_device(p, &in[i]);
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

static int kfd_criu_v1_restore_bos(struct kfd_process *p,
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

static int kfd_criu_v1_restore_object(struct kfd_process *p, u32 num_devices,
				      struct kfd_criu_v1_cursor *c)
{
	u32 type;

	BUILD_BUG_ON(offsetof(struct kfd_criu_queue_priv_data, object_type));
	BUILD_BUG_ON(offsetof(struct kfd_criu_event_priv_data, object_type));
	BUILD_BUG_ON(offsetof(struct kfd_criu_svm_range_priv_data, object_type));

	if (!kfd_criu_v1_has_space(c, sizeof(type)))
		return -EINVAL;
	if (copy_from_user(&type, c->data + c->pos, sizeof(type)))
		return -EFAULT;
	switch (type) {
	case KFD_CRIU_OBJECT_TYPE_QUEUE:
		return kfd_criu_v1_restore_queue(p, c->data, &c->pos, c->size);
	case KFD_CRIU_OBJECT_TYPE_EVENT:
		return kfd_criu_v1_restore_event(p, c->data, &c->pos, c->size);
	case KFD_CRIU_OBJECT_TYPE_SVM_RANGE:
		return kfd_criu_v1_stage_svm(p, num_devices, c->data, &c->pos,
					     c->size);
	default:
		return -EINVAL;
	}
}

static int kfd_criu_v1_restore_objects(struct kfd_process *p,
				       const struct kfd_ioctl_criu_args *args,
				       struct kfd_criu_v1_cursor *c)
{
	u32 i;
	int r;

	for (i = 0; i < args->num_objects; i++) {
		r = kfd_criu_check_killed();
		if (r)
			return r;
		r = kfd_criu_v1_restore_object(p, args->num_devices, c);
		if (r)
			return r;
	}
	return c->pos == c->size ? 0 : -EINVAL;
}

static int kfd_criu_v1_restore_all(struct kfd_process *p,
				   const struct kfd_ioctl_criu_args *args,
				   struct list_head *dmabufs)
{
	struct kfd_criu_v1_cursor c = kfd_criu_v1_cursor_init(args);
	int r;

	r = kfd_criu_v1_restore_process(p, &c);
	if (r)
		return r;
	r = kfd_criu_v1_restore_devices(p, args, &c);
	if (r)
		return r;
	r = kfd_criu_v1_restore_bos(p, args, &c, dmabufs);
	if (r)
		return r;
	return kfd_criu_v1_restore_objects(p, args, &c);
}

static int kfd_criu_v1_restore(struct kfd_process *p,
			       const struct kfd_ioctl_criu_args *args)
{
	LIST_HEAD(dmabufs);
	int r;

	if ((args->num_bos && !args->bos) || !args->devices ||
	    !args->priv_data || !args->priv_data_size || !args->num_devices)
		return -EINVAL;
	/* Refused before anything is restored. */
	if (args->priv_data_size / sizeof(struct kfd_criu_bo_priv_data) <
	    args->num_bos)
		return -EINVAL;
	r = kfd_criu_check_restore(p);
	if (r)
		return r;
	r = kfd_criu_begin_restore(p);
	if (r)
		return r;
	r = kfd_criu_v1_restore_all(p, args, &dmabufs);
	kfd_criu_end_restore(p, r);
	kfd_criu_v1_finish_dmabufs(&dmabufs, !r);
	return r;
}

static int kfd_criu_v1_resume(u32 pid)
{
	struct kfd_process *p = kfd_criu_find_process(pid);
	int r;

	if (!p)
		return -ESRCH;
	r = kfd_criu_check_tracer_access(p, DRM_CHECKPOINT_QUIESCE, false);
	if (r)
		goto out_unref;
	r = kfd_criu_resume(p, KFD_CRIU_RESUME_TIMEOUT_MS);
	/*
	 * RESUME of the released ABI cannot report that the queues do not run
	 * yet.
	 */
	if (r == -ETIME)
		r = 0;
out_unref:
	kfd_unref_process(p);
	return r;
}

/*
 * Access to the process of the file. An image of version 1 has no records that
 * could be told apart, so all of RESTORE needs the right to write registers.
 */
static int kfd_criu_v1_check_access(struct kfd_process *p, u32 op)
{
	enum drm_checkpoint_what what = DRM_CHECKPOINT_QUIESCE;

	if (op == KFD_CRIU_OP_CHECKPOINT)
		what = DRM_CHECKPOINT_READ_STATE;
	else if (op == KFD_CRIU_OP_RESTORE)
		what = DRM_CHECKPOINT_WRITE_STATE;
	return kfd_criu_check_tracer_access(p, what, false);
}

static int kfd_criu_v1_op_locked(struct kfd_process *p,
				 struct kfd_ioctl_criu_args *args)
{
	switch (args->op) {
	case KFD_CRIU_OP_PROCESS_INFO:
		return kfd_criu_owned_pause(p, &args->pid, kfd_criu_v1_measure,
					    args);
	case KFD_CRIU_OP_CHECKPOINT:
		return kfd_criu_v1_checkpoint(p, args);
	case KFD_CRIU_OP_UNPAUSE:
		return kfd_criu_owned_unpause(p);
	case KFD_CRIU_OP_RESTORE:
		return kfd_criu_v1_restore(p, args);
	default:
		return -EINVAL;
	}
}

/**
 * kfd_criu_v1_ioctl - execute an operation of the released ABI
 * @filep: open file of /dev/kfd
 * @p: the file's process
 * @data: struct kfd_ioctl_criu_args
 *
 * Return: 0; as kfd_criu_check_tracer_access() and
 * kfd_criu_event_drain_interrupts(); -EINVAL for invalid args or in
 * the wrong state; -EBUSY if another thread group has paused the process or it
 * is being restored; -EIO after a failed restore; -ESRCH if the process to
 * resume does not exist; -ENODEV, -EFAULT, -ENOMEM, -EOPNOTSUPP, -ENOSPC,
 * -EMFILE.
 */
int kfd_criu_v1_ioctl(struct file *filep, struct kfd_process *p, void *data)
{
	struct kfd_ioctl_criu_args *args = data;
	int r;

	r = kfd_criu_v1_check_access(p, args->op);
	if (r)
		return r;
	if (args->op >= KFD_CRIU_OPS)
		return -EINVAL;
	if (args->op == KFD_CRIU_OP_RESUME) {
		r = kfd_criu_v1_resume(args->pid);
	} else {
		r = kfd_criu_session_check_restoring(p, args->op);
		if (r)
			return r;
		if (args->op == KFD_CRIU_OP_CHECKPOINT) {
			r = kfd_criu_event_drain_interrupts(p);
			if (r)
				return r;
		}
		r = mutex_lock_killable(&p->mutex);
		if (r)
			return r;
		r = kfd_criu_v1_op_locked(p, args);
		mutex_unlock(&p->mutex);
	}
	if (r)
		pr_debug("CRIU operation %u: %d\n", args->op, r);
	return r;
}
