// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The released ABI of AMDKFD_IOC_CRIU_OP: its five operations, and how the
 * process and its devices are stored in the private data of version 1. The other
 * objects are in kfd_criu_v1_bo.c, kfd_criu_v1_queue.c, kfd_criu_v1_event.c and
 * kfd_criu_v1_svm.c. Devices and BOs also have a public part, in arrays that are
 * passed separately.
 *
 *   private data:  process | devices | BOs | queues, events, SVM ranges
 */
#include <linux/file.h>
#include <linux/list.h>
#include <linux/uaccess.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_criu_v1.h"
#include "kfd_priv.h"

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

/**
 * kfd_criu_v1_write - write a record to the private data
 * @c: position in the private data; is moved behind the record
 * @record: the record
 * @bytes: its size
 *
 * Return: 0; -EINVAL if the private data are too short; -EFAULT.
 */
int kfd_criu_v1_write(struct kfd_criu_v1_cursor *c, const void *record,
		      size_t bytes)
{
	if (!kfd_criu_v1_has_space(c, bytes))
		return -EINVAL;
	if (copy_to_user(c->data + c->pos, record, bytes))
		return -EFAULT;
	c->pos += bytes;
	return 0;
}

/**
 * kfd_criu_v1_read - read a record from the private data
 * @c: position in the private data; is moved behind the record
 * @record: returns the record
 * @bytes: its size
 *
 * Return: 0; -EINVAL if the private data are too short; -EFAULT.
 */
int kfd_criu_v1_read(struct kfd_criu_v1_cursor *c, void *record, size_t bytes)
{
	if (!kfd_criu_v1_has_space(c, bytes))
		return -EINVAL;
	if (copy_from_user(record, c->data + c->pos, bytes))
		return -EFAULT;
	c->pos += bytes;
	return 0;
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
