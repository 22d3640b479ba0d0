// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Decides whether a task may checkpoint or restore the client of a GPU driver.
 * Does not know what a client is, nor when an operation on it makes sense.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/user_namespace.h>
#include <drm/drm_checkpoint.h>

/**
 * DOC: access to checkpoint and restore
 *
 * A checkpointer and a GPU driver have three kinds of operations on a client,
 * which is what a process has opened in the driver:
 *
 *  - Looking and naming: to list the objects of the client with their sizes and
 *    flags, and to create an object under a chosen id in the client's own table.
 *    Whoever has the client's file may do this. The kernel gives the file of
 *    another process only to a task that may attach to that process with ptrace,
 *    see pidfd_getfd().
 *  - Stopping the client's work, and reading state of the hardware that no other
 *    ioctl returns, such as the registers of a queue: DRM_CHECKPOINT_QUIESCE and
 *    DRM_CHECKPOINT_READ_STATE.
 *  - Writing state that no other ioctl can make: DRM_CHECKPOINT_WRITE_STATE.
 *
 * Possession of the file is not enough for the last two kinds, because a file can
 * be inherited, or passed on through a socket. drm_checkpoint_may() decides about
 * them. The caller has to be the process itself, or be permitted to attach to it
 * with ptrace, and needs ``CAP_CHECKPOINT_RESTORE`` or ``CAP_SYS_ADMIN``:
 *
 * =========================================== ====================================
 * Operation                                   User namespace of the capability
 * =========================================== ====================================
 * DRM_CHECKPOINT_QUIESCE                      that of the process
 * DRM_CHECKPOINT_READ_STATE                   that of the process
 * DRM_CHECKPOINT_WRITE_STATE, state validated that of the process
 * DRM_CHECKPOINT_WRITE_STATE, otherwise       the initial one
 * =========================================== ====================================
 *
 * Any user can become root of a new user namespace. So the first three rows do not
 * restrict what a process does to itself. They restrict what others can do with a
 * file that was inherited or passed on, and confine root of a container to the
 * processes of the container. A driver may declare state validated only if it has
 * checked that the process could have got into this state by ordinary ioctls and
 * by work that it submitted. State that the driver passes to the hardware without
 * understanding it is not validated.
 *
 * A process that may not be dumped, for example because its program is set-uid,
 * can only be accessed by itself and with ``CAP_SYS_PTRACE``. Security modules are
 * asked as for every attempt to attach with ptrace.
 */

/*
 * Whether the caller has the capability in the user namespace that the owner has
 * now. The reference is needed because the owner may change its credentials and
 * so drop the last reference to the namespace.
 */
static bool drm_checkpoint_capable_for(struct task_struct *owner)
{
	struct user_namespace *ns;
	bool capable;

	rcu_read_lock();
	ns = get_user_ns(__task_cred(owner)->user_ns);
	rcu_read_unlock();
	capable = checkpoint_restore_ns_capable(ns);
	put_user_ns(ns);
	return capable;
}

/**
 * drm_checkpoint_may - check whether the caller may checkpoint or restore a client
 * @owner: a task of the process that owns the client; the caller has a reference
 *	to it. The task may have exited.
 * @what: what the caller wants to do
 * @state_is_validated: for DRM_CHECKPOINT_WRITE_STATE: the driver checks that the
 *	process could have got into the state without the operation. Ignored
 *	otherwise.
 *
 * The credentials are those of current, so a driver calls this in the ioctl, not
 * in a worker. A refusal is reported to the audit subsystem; a driver calls this
 * once for each operation, and not to find out what it might permit later.
 *
 * Context: Process context. Takes the task_lock() of @owner.
 *
 * Return: 0. -EPERM if the caller is neither in the thread group of @owner nor
 * permitted to attach to @owner with ptrace. -EACCES if the caller lacks the
 * capability.
 */
int drm_checkpoint_may(struct task_struct *owner, enum drm_checkpoint_what what,
		       bool state_is_validated)
{
	bool capable;

	/* True for every task of the owner's own thread group. */
	if (!ptrace_may_access(owner, PTRACE_MODE_ATTACH_REALCREDS))
		return -EPERM;
	/* A capability in the initial namespace is one in all namespaces. */
	if (what == DRM_CHECKPOINT_WRITE_STATE && !state_is_validated)
		capable = checkpoint_restore_ns_capable(&init_user_ns);
	else
		capable = drm_checkpoint_capable_for(owner);
	return capable ? 0 : -EACCES;
}
EXPORT_SYMBOL_GPL(drm_checkpoint_may);
