// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Operations of the extensible ABI (include/uapi/linux/kfd_criu_ioctl.h). An
 * image is a sequence of records, each of which begins with its type and
 * length.
 */
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/uaccess.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_priv.h"

/* Members of struct kfd_criu_args that an operation reads. */
#define READS_DATA	BIT(0)
#define READS_GPUS	BIT(1)	/* and memories */
#define READS_BO	BIT(2)
#define READS_PID	BIT(3)	/* and timeout_ms */
#define READS_PAUSE	BIT(4)

struct kfd_criu_v2_op {
	u8 reads;
	u64 flags;
};

#define OP(name, ...) \
	[KFD_CRIU_CMD_##name - KFD_CRIU_CMD_PROBE] = { __VA_ARGS__ }

static const struct kfd_criu_v2_op kfd_criu_v2_ops[] = {
	OP(PROBE, READS_DATA),
	OP(PAUSE, 0, KFD_CRIU_PAUSE_DRM_OBJECTS),
	OP(CHECKPOINT, READS_DATA | READS_PAUSE),
	OP(UNPAUSE, READS_PAUSE),
	OP(RESTORE, READS_DATA | READS_GPUS, KFD_CRIU_PRIVATE_COPY),
	OP(RESUME, READS_PID, KFD_CRIU_RESUME_FD),
	OP(ABORT),
	OP(EXPORT_BO, READS_BO | READS_PAUSE),
	OP(STATE),
	OP(BO_OFFSET, READS_BO | READS_PAUSE),
};

static int kfd_criu_v2_check_events(struct kfd_process *p,
				    struct kfd_criu_args *args)
{
	const int r = kfd_criu_event_has_unknown_type(p);

	if (r <= 0)
		return r;
	args->reason = KFD_CRIU_REASON_EVENT_TYPE;
	return -EOPNOTSUPP;
}

static int kfd_criu_v2_measure(struct kfd_process *p, void *data)
{
	struct kfd_criu_args *args = data;
	struct kfd_criu_stream s = {};
	int r;

	/* A process without a VM on any GPU could not be restored. */
	if (!p->kgd_process_info)
		return -ENODEV;
	r = kfd_criu_v2_check_events(p, args);
	if (r)
		return r;
	r = kfd_criu_write_image(&s, p);
	args->data_size = s.pos;
	args->pid = kfd_criu_session_pid(p);
	return r;
}

static int kfd_criu_v2_report(const struct kfd_criu_args *args)
{
	struct kfd_criu_probe report = {
		.size = sizeof(report),
		.args_size = sizeof(*args),
		.ops = (1ULL << ARRAY_SIZE(kfd_criu_v2_ops)) - 1,
		.restore_flags = KFD_CRIU_PRIVATE_COPY,
		.resume_flags = KFD_CRIU_RESUME_FD,
		.minor_version = KFD_CRIU_MINOR_VERSION,
		.pause_flags = KFD_CRIU_PAUSE_DRM_OBJECTS,
	};
	u32 type;

	for (type = 1; type <= KFD_CRIU_MAX_RECORD_TYPE; type++)
		report.record_versions[type] =
			kfd_criu_max_record_version(type);
	if (args->data_size < sizeof(report.size))
		return -EINVAL;
	if (copy_to_user(u64_to_user_ptr(args->data), &report,
			 min_t(u64, args->data_size, sizeof(report))))
		return -EFAULT;
	return 0;
}

static int kfd_criu_v2_pause(struct kfd_process *p, struct kfd_criu_args *args)
{
	struct kfd_criu_new_file new;
	int r;

	r = kfd_criu_session_check_restoring(p, KFD_CRIU_OP_PROCESS_INFO);
	if (r)
		return r;
	r = kfd_criu_file_pause(p, &new,
				args->flags & KFD_CRIU_PAUSE_DRM_OBJECTS,
				&args->reason, kfd_criu_v2_measure, args);
	if (r)
		return r;
	args->fd = kfd_criu_file_publish(&new);
	return 0;
}

static int kfd_criu_v2_checkpoint(struct kfd_process *p,
				  struct kfd_criu_args *args,
				  const struct file *pause)
{
	struct kfd_criu_stream s = {
		.data = u64_to_user_ptr(args->data),
		.size = args->data_size,
	};
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT, &args->reason);
	if (r)
		return r;
	if (!kfd_criu_file_is_paused(pause))
		return -EINVAL;
	r = kfd_criu_drm_file_check(p, kfd_criu_file_saves_drm_objects(pause),
				    &args->reason);
	if (r)
		return r;
	r = kfd_criu_v2_check_events(p, args);
	if (r)
		return r;
	r = kfd_criu_write_image(&s, p);
	if (r)
		return r;
	args->data_size = s.pos;
	return s.pos > s.size ? -E2BIG : 0;
}

static int kfd_criu_v2_unpause(struct kfd_process *p,
			       struct kfd_criu_args *args, struct file *pause)
{
	const int r = kfd_criu_file_unpause(p, pause);

	if (r == -ENOTRECOVERABLE)
		args->reason = kfd_criu_session_reset_reason(p);
	return r;
}

static int kfd_criu_v2_add_memory(struct kfd_criu_memories *memories,
				  const struct kfd_criu_shared_memory __user *from)
{
	struct kfd_criu_shared_memory memory;
	struct dma_buf *dmabuf;

	if (copy_from_user(&memory, from, sizeof(memory)))
		return -EFAULT;
	if (memory.reserved || !memory.inode)
		return -EINVAL;
	dmabuf = dma_buf_get(memory.dmabuf_fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	return kfd_criu_memories_add(memories, memory.inode, dmabuf);
}

static int kfd_criu_v2_init_ctx(struct kfd_criu_restore_ctx *ctx,
				const struct kfd_criu_args *args)
{
	const struct kfd_criu_shared_memory __user *from =
		u64_to_user_ptr(args->memories);
	u32 i;
	int r;

	memset(ctx, 0, sizeof(*ctx));
	ctx->args = args;
	ctx->gpus = kfd_criu_gpus_create(args);
	if (IS_ERR(ctx->gpus))
		return PTR_ERR(ctx->gpus);
	ctx->memories =
		kfd_criu_memories_create(args->flags & KFD_CRIU_PRIVATE_COPY ?
						 KFD_CRIU_MISSING_COPY :
						 KFD_CRIU_MISSING_REFUSE);
	if (IS_ERR(ctx->memories)) {
		r = PTR_ERR(ctx->memories);
		goto err_destroy_gpus;
	}
	for (i = 0; i < args->num_memories; i++) {
		r = kfd_criu_check_killed();
		if (r)
			goto err_destroy;
		r = kfd_criu_v2_add_memory(ctx->memories, &from[i]);
		if (r)
			goto err_destroy;
	}
	return 0;

err_destroy:
	kfd_criu_memories_destroy(ctx->memories);
err_destroy_gpus:
	kfd_criu_gpus_destroy(ctx->gpus);
	return r;
}

/*
 * A queue brings registers that no other ioctl can set. Access is checked before
 * the restore starts, so that a caller without it gets no aborted process, and
 * not for images without queues, so that the audit log does not record attempts
 * that were not made.
 */
static int kfd_criu_v2_check_registers(struct kfd_process *p,
				       struct kfd_criu_restore_ctx *ctx)
{
	int r;

	if (!ctx->needs_registers)
		return 0;
	r = kfd_criu_check_access(p, DRM_CHECKPOINT_WRITE_STATE, false);
	ctx->may_write_registers = !r;
	return r;
}

static int kfd_criu_v2_restore(struct kfd_process *p,
			       struct kfd_criu_args *args)
{
	struct kfd_criu_stream s = {
		.data = u64_to_user_ptr(args->data),
		.size = args->data_size,
	};
	struct kfd_criu_restore_ctx ctx;
	int r;

	r = kfd_criu_check_restore(p);
	if (r)
		return r;
	r = kfd_criu_v2_init_ctx(&ctx, args);
	if (r)
		return r;
	r = kfd_criu_check_image(&s, &ctx);
	if (r)
		goto out_destroy;
	r = kfd_criu_v2_check_registers(p, &ctx);
	if (r)
		goto out_destroy;
	r = kfd_criu_begin_restore(p);
	if (r)
		goto out_destroy;
	r = kfd_criu_read_image(p, &s, &ctx);
	if (!r)
		r = kfd_criu_memories_check_used(ctx.memories);
	kfd_criu_end_restore(p, r);
out_destroy:
	args->record = ctx.record;
	kfd_criu_memories_destroy(ctx.memories);
	kfd_criu_gpus_destroy(ctx.gpus);
	return r;
}

static int kfd_criu_v2_find_bo(struct kfd_process *p,
			       struct kfd_criu_args *args,
			       const struct file *pause,
			       struct kfd_process_device **pdd,
			       struct kgd_mem **mem)
{
	int r;

	if (pause) {
		r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT,
					   &args->reason);
		if (r)
			return r;
		if (!kfd_criu_file_is_paused(pause))
			return -EINVAL;
	} else if (kfd_criu_session_state(p) != KFD_CRIU_RESTORED) {
		return -EINVAL;
	}
	*pdd = kfd_process_device_data_by_id(p, args->gpu_id);
	if (!*pdd)
		return -ENOENT;
	*mem = kfd_process_device_translate_handle(*pdd, args->handle);
	return *mem ? 0 : -ENOENT;
}

static int kfd_criu_v2_export_bo(struct kfd_process *p,
				 struct kfd_criu_args *args,
				 const struct file *pause)
{
	struct kfd_process_device *pdd;
	struct kgd_mem *mem;
	struct file *file;
	int fd, r;

	r = kfd_criu_v2_find_bo(p, args, pause, &pdd, &mem);
	if (r)
		return r;
	if (!kfd_criu_bo_has_contents(mem->alloc_flags))
		return -EINVAL;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	r = kfd_criu_bo_export(mem, &file);
	if (r) {
		put_unused_fd(fd);
		return r;
	}
	/*
	 * After this the descriptor belongs to the caller, who finds its number
	 * in the args.
	 */
	fd_install(fd, file);
	args->fd = fd;
	return 0;
}

static int kfd_criu_v2_get_bo_offset(struct kfd_process *p,
				     struct kfd_criu_args *args,
				     const struct file *pause)
{
	struct kfd_process_device *pdd;
	struct kfd_criu_bo cb;
	struct kgd_mem *mem;
	int r;

	r = kfd_criu_v2_find_bo(p, args, pause, &pdd, &mem);
	if (r)
		return r;
	r = kfd_criu_bo_describe(pdd, args->handle, mem, &cb);
	if (r)
		return r;
	args->offset = cb.mmap_offset;
	return 0;
}

static int kfd_criu_v2_op_locked(struct kfd_process *p,
				 struct kfd_criu_args *args, struct file *pause)
{
	switch (args->op) {
	case KFD_CRIU_CMD_CHECKPOINT:
		return kfd_criu_v2_checkpoint(p, args, pause);
	case KFD_CRIU_CMD_UNPAUSE:
		return kfd_criu_v2_unpause(p, args, pause);
	case KFD_CRIU_CMD_RESTORE:
		return kfd_criu_v2_restore(p, args);
	case KFD_CRIU_CMD_ABORT:
		return kfd_criu_abort(p);
	case KFD_CRIU_CMD_EXPORT_BO:
		return kfd_criu_v2_export_bo(p, args, pause);
	case KFD_CRIU_CMD_BO_OFFSET:
		return kfd_criu_v2_get_bo_offset(p, args, pause);
	default:
		return -EINVAL;
	}
}

static int kfd_criu_v2_resume(struct kfd_process *p, struct kfd_criu_args *args)
{
	const u32 limit_ms = args->timeout_ms ? args->timeout_ms :
						KFD_CRIU_RESUME_TIMEOUT_MS;
	struct kfd_criu_new_file new;
	int r;

	if (!(args->flags & KFD_CRIU_RESUME_FD))
		return kfd_criu_resume(p, limit_ms);
	r = kfd_criu_start_resume(p, jiffies + msecs_to_jiffies(limit_ms));
	if (r)
		return r;
	/* The process resumes even if there is no descriptor to poll. */
	r = kfd_criu_file_resume(p, &new);
	if (r)
		return r;
	args->fd = kfd_criu_file_publish(&new);
	return 0;
}

/* RESUME of a process that may be another one than that of the file. */
static int kfd_criu_v2_resume_any(struct kfd_process *p,
				  struct kfd_criu_args *args)
{
	struct kfd_process *target = p;
	int r;

	if (args->pid)
		target = kfd_criu_find_process(args->pid);
	if (!target)
		return -ESRCH;
	r = kfd_criu_check_access(target, DRM_CHECKPOINT_QUIESCE, false);
	if (r)
		goto out_unref;
	r = kfd_criu_v2_resume(target, args);
	args->state = kfd_criu_session_state(target);
out_unref:
	if (args->pid)
		kfd_unref_process(target);
	return r;
}

/**
 * kfd_criu_v2_check - check that args are valid for their operation
 * @args: args of any operation from KFD_CRIU_CMD_PROBE on
 *
 * Return: 0; -EINVAL for an unknown operation or flag, or if a member that the
 * operation does not read is not 0.
 */
int kfd_criu_v2_check(const struct kfd_criu_args *args)
{
	const u32 op = args->op - KFD_CRIU_CMD_PROBE;
	u8 reads;

	if (op >= ARRAY_SIZE(kfd_criu_v2_ops) ||
	    args->flags & ~kfd_criu_v2_ops[op].flags)
		return -EINVAL;
	reads = kfd_criu_v2_ops[op].reads;
	if ((!(reads & READS_DATA) && (args->data || args->data_size)) ||
	    (!(reads & READS_GPUS) && (args->gpus || args->num_gpus ||
				       args->memories || args->num_memories)) ||
	    (!(reads & READS_BO) && (args->gpu_id || args->handle)) ||
	    (!(reads & READS_PID) && (args->pid || args->timeout_ms)) ||
	    (!(reads & READS_PAUSE) && args->pause_fd) ||
	    args->state || args->fd || args->offset || args->reason ||
	    args->record)
		return -EINVAL;
	return 0;
}

/*
 * Access to the process of the file. RESUME checks access to the process that it
 * resumes, and RESTORE checks more if the image has queues.
 */
static int kfd_criu_v2_check_access(struct kfd_process *p, u32 op)
{
	switch (op) {
	case KFD_CRIU_CMD_PROBE:
	case KFD_CRIU_CMD_STATE:
	case KFD_CRIU_CMD_UNPAUSE:
	case KFD_CRIU_CMD_RESUME:
		return 0;
	case KFD_CRIU_CMD_PAUSE:
	case KFD_CRIU_CMD_ABORT:
		return kfd_criu_check_access(p, DRM_CHECKPOINT_QUIESCE, false);
	case KFD_CRIU_CMD_RESTORE:
		return kfd_criu_check_access(p, DRM_CHECKPOINT_WRITE_STATE,
					     true);
	default:
		return kfd_criu_check_access(p, DRM_CHECKPOINT_READ_STATE,
					     false);
	}
}

/* EXPORT_BO and BO_OFFSET need no pause if the process was restored. */
static bool kfd_criu_v2_has_no_pause(const struct kfd_criu_args *args)
{
	const u8 reads = kfd_criu_v2_ops[args->op - KFD_CRIU_CMD_PROBE].reads;

	return !(reads & READS_PAUSE) ||
	       (reads & READS_BO && args->pause_fd == -1);
}

/* The operation of version 1 that is permitted in RESTORING exactly if @op is. */
static enum kfd_criu_op kfd_criu_v2_op_of(u32 op)
{
	if (op == KFD_CRIU_CMD_CHECKPOINT)
		return KFD_CRIU_OP_CHECKPOINT;
	if (op == KFD_CRIU_CMD_RESTORE)
		return KFD_CRIU_OP_RESTORE;
	return KFD_CRIU_OP_UNPAUSE;
}

static int kfd_criu_v2_op(struct kfd_process *p, struct kfd_criu_args *args)
{
	struct file *pause = NULL;
	int r;

	args->state = kfd_criu_session_state(p);
	r = kfd_criu_v2_check_access(p, args->op);
	if (r)
		return r;
	/*
	 * Everybody who has the file may call these, so they must not keep the
	 * mutex while a server of user space supplies the page for the answer.
	 */
	if (args->op == KFD_CRIU_CMD_STATE)
		return 0;
	if (args->op == KFD_CRIU_CMD_PROBE)
		return kfd_criu_v2_report(args);
	if (args->op == KFD_CRIU_CMD_RESUME)
		return kfd_criu_v2_resume_any(p, args);
	if (args->op == KFD_CRIU_CMD_PAUSE) {
		r = kfd_criu_v2_pause(p, args);
		args->state = kfd_criu_session_state(p);
		return r;
	}
	if (!kfd_criu_v2_has_no_pause(args)) {
		r = kfd_criu_file_get(args->pause_fd, p, &pause);
		if (r)
			return r;
	}
	r = kfd_criu_session_check_restoring(p, kfd_criu_v2_op_of(args->op));
	if (r)
		goto out_put;
	if (args->op == KFD_CRIU_CMD_CHECKPOINT) {
		r = kfd_criu_event_drain_interrupts(p);
		if (r)
			goto out_put;
	}
	r = mutex_lock_killable(&p->mutex);
	if (r)
		goto out_put;
	r = kfd_criu_v2_op_locked(p, args, pause);
	args->state = kfd_criu_session_state(p);
	mutex_unlock(&p->mutex);
out_put:
	if (pause)
		fput(pause);
	return r;
}

/**
 * kfd_criu_v2_ioctl - execute an operation of the extensible ABI
 * @p: the process of the file
 * @args: args that have passed kfd_criu_v2_check()
 *
 * Return: 0 or a negative errno, see the operations in kfd_criu_ioctl.h.
 */
int kfd_criu_v2_ioctl(struct kfd_process *p, struct kfd_criu_args *args)
{
	const struct kfd_criu_args in = *args;
	const int r = kfd_criu_v2_op(p, args);

	/* A call that was interrupted can be repeated with the same args. */
	if (r == -ERESTARTSYS || r == -EINTR)
		*args = in;
	return r;
}
