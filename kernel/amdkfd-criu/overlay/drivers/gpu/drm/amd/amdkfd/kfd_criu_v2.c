// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The operations of the extensible ABI (include/uapi/linux/kfd_criu_ioctl.h). An image
 * is a row of records, each of which says what it is and how long.
 */
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/uaccess.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_priv.h"

/* Bits of members of struct kfd_criu_v2_args. */
#define USES_DATA	BIT(0)
#define USES_DEVICES	BIT(1)
#define USES_BO		BIT(2)
#define USES_PID	BIT(3)
#define USES_MEMORIES	BIT(4)
#define GIVES_SIZE	BIT(5)	/* and the process's id */

static const u8 used[] = {
	[KFD_CRIU_V2_PROBE - KFD_CRIU_V2_PROBE] = USES_DATA,
	[KFD_CRIU_V2_PAUSE - KFD_CRIU_V2_PROBE] = GIVES_SIZE,
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

static int measure(struct kfd_process *p, void *data)
{
	struct kfd_criu_v2_args *args = data;
	struct kfd_criu_stream s = {};
	int r;

	/* There would be nothing to restore it on. */
	if (!p->kgd_process_info)
		return -ENODEV;
	r = kfd_criu_write_image(&s, p);
	args->data_size = s.at;
	return r;
}

static int probe(const struct kfd_criu_v2_args *args)
{
	struct kfd_criu_v2_probe answer = {
		.size = sizeof(answer),
		.args_size = sizeof(*args),
		.ops = (1ULL << ARRAY_SIZE(used)) - 1,
	};
	u32 type;

	for (type = 1; type <= KFD_CRIU_NEWEST_TYPE; type++)
		answer.record_versions[type] = kfd_criu_newest_version(type);
	if (args->data_size < sizeof(answer.size))
		return -EINVAL;
	if (copy_to_user(u64_to_user_ptr(args->data), &answer,
			 min_t(u64, args->data_size, sizeof(answer))))
		return -EFAULT;
	return 0;
}

static int checkpoint(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	struct kfd_criu_stream s = {
		.data = u64_to_user_ptr(args->data),
		.room = args->data_size,
	};
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT);
	if (!r)
		r = kfd_criu_write_image(&s, p);
	if (r)
		return r;
	args->data_size = s.at;
	return s.at > s.room ? -E2BIG : 0;
}

static int give_one(struct kfd_criu_memories *memories,
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

static int get_given(struct kfd_criu_given *given,
		     const struct kfd_criu_v2_args *args)
{
	const struct kfd_criu_v2_memory __user *from =
		u64_to_user_ptr(args->memories);
	u32 i;
	int r = 0;

	given->args = args;
	given->memories = kfd_criu_memories_create();
	if (IS_ERR(given->memories))
		return PTR_ERR(given->memories);
	for (i = 0; !r && i < args->num_memories; i++) {
		r = kfd_criu_go_on();
		if (!r)
			r = give_one(given->memories, &from[i]);
	}
	if (r)
		kfd_criu_memories_destroy(given->memories);
	return r;
}

static int restore(struct kfd_process *p, const struct kfd_criu_v2_args *args)
{
	struct kfd_criu_stream s = {
		.data = u64_to_user_ptr(args->data),
		.room = args->data_size,
	};
	struct kfd_criu_given given;
	int r;

	r = kfd_criu_may_restore(p);
	if (!r)
		r = kfd_criu_check_image(&s);
	if (!r)
		r = get_given(&given, args);
	if (r)
		return r;
	r = kfd_criu_begin_restore(p);
	if (!r) {
		r = kfd_criu_read_image(p, &s, &given);
		kfd_criu_end_restore(p, r);
	}
	kfd_criu_memories_destroy(given.memories);
	return r;
}

static int find_bo(struct kfd_process *p, const struct kfd_criu_v2_args *args,
		   struct kfd_process_device **pdd, struct kgd_mem **mem)
{
	int r;

	if (kfd_criu_session_state(p) != KFD_CRIU_RESTORED) {
		r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT);
		if (r)
			return r;
	}
	*pdd = kfd_process_device_data_by_id(p, args->gpu_id);
	*mem = *pdd ? kfd_process_device_translate_handle(*pdd, args->handle) :
		      NULL;
	return *mem ? 0 : -ENOENT;
}

static int export_bo(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	struct kfd_process_device *pdd;
	struct kgd_mem *mem;
	struct file *file;
	int fd, r;

	r = find_bo(p, args, &pdd, &mem);
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
	/* From here on it is the caller's, who finds its number in the args. */
	fd_install(fd, file);
	args->fd = fd;
	return 0;
}

static int bo_offset(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	struct kfd_process_device *pdd;
	struct kfd_criu_bo cb;
	struct kgd_mem *mem;
	int r;

	r = find_bo(p, args, &pdd, &mem);
	if (!r)
		r = kfd_criu_bo_describe(pdd, args->handle, mem, &cb);
	if (!r)
		args->offset = cb.mmap_offset;
	return r;
}

static int locked_op(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	switch (args->op) {
	case KFD_CRIU_V2_PROBE:
		return probe(args);
	case KFD_CRIU_V2_PAUSE:
		return kfd_criu_pause(p, &args->pid, measure, args);
	case KFD_CRIU_V2_CHECKPOINT:
		return checkpoint(p, args);
	case KFD_CRIU_V2_UNPAUSE:
		return kfd_criu_unpause(p);
	case KFD_CRIU_V2_RESTORE:
		return restore(p, args);
	case KFD_CRIU_V2_ABORT:
		return kfd_criu_abort(p);
	case KFD_CRIU_V2_EXPORT_BO:
		return export_bo(p, args);
	case KFD_CRIU_V2_STATE:
		return 0;
	case KFD_CRIU_V2_BO_OFFSET:
		return bo_offset(p, args);
	default:
		return -EINVAL;
	}
}

/**
 * kfd_criu_v2_check - whether args are args
 * @args: of any operation from KFD_CRIU_V2_PROBE on
 *
 * What an operation only gives may be left from another one.
 *
 * Return: 0; -EINVAL for an operation, a flag or a member that there is not.
 */
int kfd_criu_v2_check(const struct kfd_criu_v2_args *args)
{
	const u32 op = args->op - KFD_CRIU_V2_PROBE;
	u8 uses;

	if (op >= ARRAY_SIZE(used) || args->flags || args->reserved ||
	    args->reserved2)
		return -EINVAL;
	uses = used[op];
	if ((!(uses & USES_DATA) && args->data) ||
	    (!(uses & (USES_DATA | GIVES_SIZE)) && args->data_size) ||
	    (!(uses & USES_DEVICES) && (args->devices || args->num_devices)) ||
	    (!(uses & USES_BO) && (args->gpu_id || args->handle)) ||
	    (!(uses & (USES_PID | GIVES_SIZE)) && args->pid) ||
	    (!(uses & USES_MEMORIES) && (args->memories || args->num_memories)))
		return -EINVAL;
	return 0;
}

/**
 * kfd_criu_v2_ioctl - the operations of the extensible ABI
 * @p: the process; the caller may checkpoint and restore it
 * @args: kfd_criu_v2_check() has passed them
 *
 * Return: 0 or a negative errno, as the operations say in kfd_criu_ioctl.h.
 */
int kfd_criu_v2_ioctl(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	int r;

	if (args->op == KFD_CRIU_V2_RESUME) {
		args->state = kfd_criu_session_state(p);
		return kfd_criu_resume_pid(args->pid, &args->state);
	}
	mutex_lock(&p->mutex);
	r = locked_op(p, args);
	args->state = kfd_criu_session_state(p);
	mutex_unlock(&p->mutex);
	return r;
}
