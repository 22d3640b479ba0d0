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

/* Members of struct kfd_criu_v2_args that an operation reads or writes. */
#define USES_DATA	BIT(0)
#define USES_DEVICES	BIT(1)
#define USES_BO		BIT(2)
#define USES_PID	BIT(3)
#define USES_MEMORIES	BIT(4)
#define RETURNS_SIZE	BIT(5)	/* and the process id */

static const u8 kfd_criu_v2_op_members[] = {
	[KFD_CRIU_V2_PROBE - KFD_CRIU_V2_PROBE] = USES_DATA,
	[KFD_CRIU_V2_PAUSE - KFD_CRIU_V2_PROBE] = RETURNS_SIZE,
	[KFD_CRIU_V2_CHECKPOINT - KFD_CRIU_V2_PROBE] = USES_DATA,
	[KFD_CRIU_V2_UNPAUSE - KFD_CRIU_V2_PROBE] = 0,
	[KFD_CRIU_V2_RESTORE - KFD_CRIU_V2_PROBE] = USES_DATA | USES_DEVICES |
						    USES_MEMORIES,
	[KFD_CRIU_V2_RESUME - KFD_CRIU_V2_PROBE] = USES_PID,
	[KFD_CRIU_V2_ABORT - KFD_CRIU_V2_PROBE] = 0,
	[KFD_CRIU_V2_EXPORT_BO - KFD_CRIU_V2_PROBE] = USES_BO,
	[KFD_CRIU_V2_STATE - KFD_CRIU_V2_PROBE] = 0,
	[KFD_CRIU_V2_BO_OFFSET - KFD_CRIU_V2_PROBE] = USES_BO,
};

static int kfd_criu_v2_measure(struct kfd_process *p, void *data)
{
	struct kfd_criu_v2_args *args = data;
	struct kfd_criu_stream s = {};
	int r;

	/* A process without a VM on any GPU could not be restored. */
	if (!p->kgd_process_info)
		return -ENODEV;
	r = kfd_criu_write_image(&s, p);
	args->data_size = s.pos;
	return r;
}

static int kfd_criu_v2_report(const struct kfd_criu_v2_args *args)
{
	struct kfd_criu_v2_probe report = {
		.size = sizeof(report),
		.args_size = sizeof(*args),
		.ops = (1ULL << ARRAY_SIZE(kfd_criu_v2_op_members)) - 1,
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

static int kfd_criu_v2_checkpoint(struct kfd_process *p,
				  struct kfd_criu_v2_args *args)
{
	struct kfd_criu_stream s = {
		.data = u64_to_user_ptr(args->data),
		.size = args->data_size,
	};
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT);
	if (r)
		return r;
	r = kfd_criu_write_image(&s, p);
	if (r)
		return r;
	args->data_size = s.pos;
	return s.pos > s.size ? -E2BIG : 0;
}

static int kfd_criu_v2_add_memory(struct kfd_criu_memories *memories,
				  const struct kfd_criu_v2_memory __user *from)
{
	struct kfd_criu_v2_memory memory;
	struct dma_buf *dmabuf;

	if (copy_from_user(&memory, from, sizeof(memory)))
		return -EFAULT;
	if (memory.reserved || !memory.identity)
		return -EINVAL;
	dmabuf = dma_buf_get(memory.dmabuf_fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	return kfd_criu_memories_add(memories, memory.identity, dmabuf);
}

static int kfd_criu_v2_init_ctx(struct kfd_criu_restore_ctx *ctx,
				const struct kfd_criu_v2_args *args)
{
	const struct kfd_criu_v2_memory __user *from =
		u64_to_user_ptr(args->memories);
	u32 i;
	int r;

	ctx->args = args;
	ctx->memories = kfd_criu_memories_create();
	if (IS_ERR(ctx->memories))
		return PTR_ERR(ctx->memories);
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
	return r;
}

static int kfd_criu_v2_restore(struct kfd_process *p,
			       const struct kfd_criu_v2_args *args)
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
	r = kfd_criu_check_image(&s);
	if (r)
		return r;
	r = kfd_criu_v2_init_ctx(&ctx, args);
	if (r)
		return r;
	r = kfd_criu_begin_restore(p);
	if (r)
		goto out_destroy;
	r = kfd_criu_read_image(p, &s, &ctx);
	kfd_criu_end_restore(p, r);
out_destroy:
	kfd_criu_memories_destroy(ctx.memories);
	return r;
}

static int kfd_criu_v2_find_bo(struct kfd_process *p,
			       const struct kfd_criu_v2_args *args,
			       struct kfd_process_device **pdd,
			       struct kgd_mem **mem)
{
	int r;

	if (kfd_criu_session_state(p) != KFD_CRIU_RESTORED) {
		r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT);
		if (r)
			return r;
	}
	*pdd = kfd_process_device_data_by_id(p, args->gpu_id);
	if (!*pdd)
		return -ENOENT;
	*mem = kfd_process_device_translate_handle(*pdd, args->handle);
	return *mem ? 0 : -ENOENT;
}

static int kfd_criu_v2_export_bo(struct kfd_process *p,
				 struct kfd_criu_v2_args *args)
{
	struct kfd_process_device *pdd;
	struct kgd_mem *mem;
	struct file *file;
	int fd, r;

	r = kfd_criu_v2_find_bo(p, args, &pdd, &mem);
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
				     struct kfd_criu_v2_args *args)
{
	struct kfd_process_device *pdd;
	struct kfd_criu_bo cb;
	struct kgd_mem *mem;
	int r;

	r = kfd_criu_v2_find_bo(p, args, &pdd, &mem);
	if (r)
		return r;
	r = kfd_criu_bo_describe(pdd, args->handle, mem, &cb);
	if (r)
		return r;
	args->offset = cb.mmap_offset;
	return 0;
}

static int kfd_criu_v2_op_locked(struct kfd_process *p,
				 struct kfd_criu_v2_args *args)
{
	switch (args->op) {
	case KFD_CRIU_V2_PROBE:
		return kfd_criu_v2_report(args);
	case KFD_CRIU_V2_PAUSE:
		return kfd_criu_pause(p, &args->pid, kfd_criu_v2_measure, args);
	case KFD_CRIU_V2_CHECKPOINT:
		return kfd_criu_v2_checkpoint(p, args);
	case KFD_CRIU_V2_UNPAUSE:
		return kfd_criu_unpause(p);
	case KFD_CRIU_V2_RESTORE:
		return kfd_criu_v2_restore(p, args);
	case KFD_CRIU_V2_ABORT:
		return kfd_criu_abort(p);
	case KFD_CRIU_V2_EXPORT_BO:
		return kfd_criu_v2_export_bo(p, args);
	case KFD_CRIU_V2_STATE:
		return 0;
	case KFD_CRIU_V2_BO_OFFSET:
		return kfd_criu_v2_get_bo_offset(p, args);
	default:
		return -EINVAL;
	}
}

/**
 * kfd_criu_v2_check - check that args are valid for their operation
 * @args: args of any operation from KFD_CRIU_V2_PROBE on
 *
 * Members that the kernel only writes may hold anything, so a caller can use
 * the args of one call for the next one.
 *
 * Return: 0; -EINVAL for an unknown operation or flag, or if a member that the
 * operation does not use is not 0.
 */
int kfd_criu_v2_check(const struct kfd_criu_v2_args *args)
{
	const u32 op = args->op - KFD_CRIU_V2_PROBE;
	u8 uses;

	if (op >= ARRAY_SIZE(kfd_criu_v2_op_members) || args->flags ||
	    args->reserved || args->reserved2)
		return -EINVAL;
	uses = kfd_criu_v2_op_members[op];
	if ((!(uses & USES_DATA) && args->data) ||
	    (!(uses & (USES_DATA | RETURNS_SIZE)) && args->data_size) ||
	    (!(uses & USES_DEVICES) && (args->devices || args->num_devices)) ||
	    (!(uses & USES_BO) && (args->gpu_id || args->handle)) ||
	    (!(uses & (USES_PID | RETURNS_SIZE)) && args->pid) ||
	    (!(uses & USES_MEMORIES) && (args->memories || args->num_memories)))
		return -EINVAL;
	return 0;
}

/**
 * kfd_criu_v2_ioctl - execute an operation of the extensible ABI
 * @p: the process; kfd_criu_check_access() has admitted the caller
 * @args: args that have passed kfd_criu_v2_check()
 *
 * Return: 0 or a negative errno, see the operations in kfd_criu_ioctl.h.
 */
int kfd_criu_v2_ioctl(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	int r;

	if (args->op == KFD_CRIU_V2_RESUME) {
		args->state = kfd_criu_session_state(p);
		return kfd_criu_resume_pid(args->pid, &args->state);
	}
	mutex_lock(&p->mutex);
	r = kfd_criu_v2_op_locked(p, args);
	args->state = kfd_criu_session_state(p);
	mutex_unlock(&p->mutex);
	return r;
}
