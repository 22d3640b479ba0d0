// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The process and its devices at checkpoint and restore.
 *
 * A device has two ids: gpu_id is the driver's, user_gpu_id the one by which
 * the program knows the device. They are equal until a process is restored on
 * another device.
 *
 * Locks: the callers hold p->mutex.
 */
#include <drm/drm_file.h>
#include <linux/fs.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_topology.h"
#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_ttm.h"
#include "amdgpu_xcp.h"

/* An mmap offset has 16 bits for a GPU id (KFD_MMAP_GPU_ID). */
#define GPU_ID_MASK	0xffff

/**
 * kfd_criu_process_describe - describe state that belongs to no single device
 * @p: the process
 * @cp: returns the description
 */
void kfd_criu_process_describe(const struct kfd_process *p,
			       struct kfd_criu_process *cp)
{
	cp->xnack = p->xnack_enabled;
	cp->runtime = p->runtime_info.runtime_state ==
		      DEBUG_RUNTIME_STATE_ENABLED;
	cp->ttmp = p->runtime_info.ttmp_setup;
	cp->r_debug = p->runtime_info.r_debug;
}

/**
 * kfd_criu_process_restore - restore state that belongs to no single device
 * @p: process being restored; its devices are bound, and it has no queues yet
 * @cp: description from an image
 *
 * Return: 0; -EINVAL if @cp has settings of a runtime that is not enabled; as
 * kfd_criu_xnack_restore() and AMDKFD_IOC_RUNTIME_ENABLE.
 */
int kfd_criu_process_restore(struct kfd_process *p,
			     const struct kfd_criu_process *cp)
{
	int r;

	if (!cp->runtime && (cp->ttmp || cp->r_debug))
		return -EINVAL;
	r = kfd_criu_xnack_restore(p, cp->xnack);
	if (r)
		return r;
	if (cp->runtime)
		return kfd_runtime_enable(p, cp->r_debug, cp->ttmp);
	return 0;
}

/**
 * kfd_criu_process_is_untouched - check whether a process has none of the
 * objects that an image can contain
 * @p: the process; no ioctl of the program is in progress
 *
 * Events, the signal page and the runtime need no VM, so a process without a
 * bound device may have them. BOs, queues, SVM ranges, memory policies, trap
 * handlers and scratch addresses need one. The XNACK mode is no object: RESTORE
 * sets it, and puts it back after a failure.
 *
 * Return: true if the process has no such object.
 */
bool kfd_criu_process_is_untouched(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_file)
			return false;
	/* The page remains when the program has destroyed all of its events. */
	return !READ_ONCE(p->signal_page) && !kfd_criu_event_has_any(p) &&
	       p->runtime_info.runtime_state == DEBUG_RUNTIME_STATE_DISABLED;
}

/**
 * kfd_criu_process_save_gpu_ids - remember by which ids the program knows its
 * devices
 * @p: process that is about to be restored
 */
void kfd_criu_process_save_gpu_ids(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		p->pdds[i]->saved_user_gpu_id = p->pdds[i]->user_gpu_id;
}

/**
 * kfd_criu_process_restore_gpu_ids - give the devices their ids from before a
 * restore that failed
 * @p: process after kfd_criu_process_save_gpu_ids(); its objects are destroyed
 */
void kfd_criu_process_restore_gpu_ids(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		p->pdds[i]->user_gpu_id = p->pdds[i]->saved_user_gpu_id;
}

/**
 * kfd_criu_device_compat_describe - get the properties that must be equal at
 * restore
 * @node: the device
 * @compat: returns the properties
 *
 * Return: 0; -ENODEV if the topology has no such device.
 */
int kfd_criu_device_compat_describe(const struct kfd_node *node,
				    struct kfd_criu_device_compat *compat)
{
	const struct kfd_topology_device *topo =
		kfd_topology_device_by_id(node->id);

	if (!topo)
		return -ENODEV;
	memset(compat, 0, sizeof(*compat));
	compat->gfx_target_version = topo->node_props.gfx_target_version;
	compat->num_xcc = NUM_XCC(node->xcc_mask);
	compat->cwsr_size = topo->node_props.cwsr_size;
	compat->ctl_stack_size = topo->node_props.ctl_stack_size;
	compat->mqd_layout =
		kfd_criu_mqd_layout_id(node, KFD_QUEUE_TYPE_COMPUTE);
	compat->sdma_mqd_layout =
		kfd_criu_mqd_layout_id(node, KFD_QUEUE_TYPE_SDMA);
	return 0;
}

/**
 * kfd_criu_device_compat_check - check whether a device can replace a device of
 * an image
 * @gpu_id: driver's id of a device of this machine
 * @compat: properties of the device of the image
 *
 * Return: 0; -ENODEV if there is no such device; -ENXIO if its properties
 * differ.
 */
int kfd_criu_device_compat_check(u32 gpu_id,
				 const struct kfd_criu_device_compat *compat)
{
	const struct kfd_node *node = kfd_device_by_id(gpu_id);
	struct kfd_criu_device_compat here;
	int r;

	if (!node)
		return -ENODEV;
	r = kfd_criu_device_compat_describe(node, &here);
	if (r)
		return r;
	return memcmp(&here, compat, sizeof(here)) ? -ENXIO : 0;
}

/**
 * kfd_criu_settings_describe - describe what the program has set on a device
 * @pdd: the process on the device
 * @cs: returns the description
 */
void kfd_criu_settings_describe(const struct kfd_process_device *pdd,
				struct kfd_criu_settings *cs)
{
	const struct qcm_process_device *qpd = &pdd->qpd;
	const u64 *tma = qpd->cwsr_kaddr ?
				 qpd->cwsr_kaddr + KFD_CWSR_TMA_OFFSET : NULL;

	/*
	 * With CWSR the program's handler is stored there, see
	 * kfd_process_set_trap_handler().
	 */
	cs->tba = tma ? tma[0] : qpd->tba_addr;
	cs->tma = tma ? tma[1] : qpd->tma_addr;
	cs->scratch = qpd->sh_hidden_private_base;
	cs->policy = pdd->memory_policy;
}

/*
 * Until all devices of an image are bound, an unbound one may have the same
 * user_gpu_id.
 */
static struct kfd_process_device *kfd_criu_find_bound_pdd(struct kfd_process *p,
							  u32 user_gpu_id)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_file &&
		    p->pdds[i]->user_gpu_id == user_gpu_id)
			return p->pdds[i];
	return NULL;
}

/**
 * kfd_criu_settings_restore - restore what the program had set on a device
 * @p: process being restored; the device is bound
 * @user_gpu_id: id by which the program knows the device
 * @cs: description from an image
 *
 * Return: 0; -EINVAL if no such device is bound, or the memory policy is
 * invalid.
 */
int kfd_criu_settings_restore(struct kfd_process *p, u32 user_gpu_id,
			      const struct kfd_criu_settings *cs)
{
	struct kfd_process_device *pdd =
		kfd_criu_find_bound_pdd(p, user_gpu_id);

	if (!pdd)
		return -EINVAL;
	kfd_process_set_trap_handler(&pdd->qpd, cs->tba, cs->tma);
	pdd->qpd.sh_hidden_private_base = cs->scratch;
	return cs->policy.is_set ? kfd_set_memory_policy(pdd, &cs->policy) : 0;
}

/**
 * kfd_criu_xnack_restore - restore the XNACK mode of a process
 * @p: process being restored; it has no queues and no SVM ranges yet
 * @enabled: the mode: whether GPUs retry page faults
 *
 * Return: 0; -EPERM if a device of the process does not support XNACK.
 */
int kfd_criu_xnack_restore(struct kfd_process *p, bool enabled)
{
	if (enabled && !kfd_process_xnack_mode(p, true))
		return -EPERM;
	p->xnack_enabled = enabled;
	return 0;
}

/**
 * kfd_criu_node_has_vm - check whether a VM is one of a device and of the same
 * partition of it
 * @node: the device
 * @fpriv: private data of an open file of amdgpu, which has the VM
 *
 * The VM of another device has page tables that this one cannot use. With the
 * VM of another partition the driver would allocate VRAM from that partition and
 * count it there. The file of a card node is of no partition.
 *
 * Return: whether the VM can be bound to the device.
 */
bool kfd_criu_node_has_vm(const struct kfd_node *node,
			  const struct amdgpu_fpriv *fpriv)
{
	if (amdgpu_ttm_adev(fpriv->vm.root.bo->tbo.bdev) != node->adev)
		return false;
	return !node->xcp || fpriv->xcp_id == node->xcp->id;
}

static int kfd_criu_check_drm_file(const struct kfd_node *node,
				   struct file *drm_file)
{
	struct amdgpu_fpriv *fpriv;
	int r;

	r = amdgpu_file_to_fpriv(drm_file, &fpriv);
	if (r)
		return r;
	return kfd_criu_node_has_vm(node, fpriv) ? 0 : -EINVAL;
}

/**
 * kfd_criu_device_check - check whether a device can be bound to a file
 * @cd: which device replaces which
 * @drm_file: file of the device's render node; NULL if the device is not to be
 *	bound
 *
 * Return: 0; -EINVAL if an id of @cd is invalid, or the file is not one of that
 * device; -ENODEV if there is no such device.
 */
int kfd_criu_device_check(const struct kfd_criu_device *cd,
			  struct file *drm_file)
{
	const struct kfd_node *node;

	if (!cd->user_gpu_id || cd->user_gpu_id > GPU_ID_MASK)
		return -EINVAL;
	node = kfd_device_by_id(cd->gpu_id);
	if (!node)
		return -ENODEV;
	return drm_file ? kfd_criu_check_drm_file(node, drm_file) : 0;
}

static int kfd_criu_bind_pdd(struct kfd_process_device *pdd,
			     struct file *drm_file)
{
	int r;

	r = kfd_criu_check_drm_file(pdd->dev, drm_file);
	if (r)
		return r;
	return kfd_process_device_init_vm(pdd, drm_file);
}

/*
 * Resumes the device from runtime suspend and allocates doorbells. A process
 * keeps both as long as it has a VM on the device.
 */
static int kfd_criu_activate_pdd(struct kfd_process *p,
				 struct kfd_process_device *pdd)
{
	struct kfd_process_device *bound;

	bound = kfd_bind_process_to_device(pdd->dev, p);
	if (IS_ERR(bound))
		return PTR_ERR(bound);
	return kfd_alloc_process_doorbells(pdd->dev->kfd, pdd);
}

/*
 * Finds a device that is not bound and may get the requested user_gpu_id; NULL:
 * none.
 */
static struct kfd_process_device *
kfd_criu_find_unbound_pdd(struct kfd_process *p,
			  const struct kfd_criu_device *cd)
{
	struct kfd_node *node = kfd_device_by_id(cd->gpu_id);
	struct kfd_process_device *pdd;

	if (!node || !cd->user_gpu_id || cd->user_gpu_id > GPU_ID_MASK ||
	    kfd_criu_find_bound_pdd(p, cd->user_gpu_id))
		return NULL;
	pdd = kfd_get_process_device_data(node, p);
	return pdd && !pdd->drm_file ? pdd : NULL;
}

/**
 * kfd_criu_device_restore - bind a device of this machine in place of a device
 * of an image
 * @p: process being restored
 * @cd: which device replaces which
 * @drm_file: file of the device's render node; the process takes a reference
 *
 * Return: 0; -EINVAL if there is no such device, the file is not one of that
 * device, or an id or the file's VM is in use; -EBUSY; -ENOMEM.
 */
int kfd_criu_device_restore(struct kfd_process *p,
			    const struct kfd_criu_device *cd,
			    struct file *drm_file)
{
	struct kfd_process_device *pdd = kfd_criu_find_unbound_pdd(p, cd);
	u32 old_id;
	int r;

	if (!pdd)
		return -EINVAL;
	old_id = pdd->user_gpu_id;
	pdd->user_gpu_id = cd->user_gpu_id;
	r = kfd_criu_bind_pdd(pdd, drm_file);
	if (r) {
		pdd->user_gpu_id = old_id;
		return r;
	}
	get_file(drm_file);
	return kfd_criu_activate_pdd(p, pdd);
}

/**
 * kfd_criu_device_set_user_gpu_id - restore the id of a device that the program
 * does not use
 * @p: process being restored
 * @cd: which device replaces which
 *
 * If another unbound device has that id, the two devices exchange their ids.
 *
 * Return: 0; -EINVAL if there is no such device, or the device or the id is in
 * use.
 */
int kfd_criu_device_set_user_gpu_id(struct kfd_process *p,
				    const struct kfd_criu_device *cd)
{
	struct kfd_process_device *pdd = kfd_criu_find_unbound_pdd(p, cd);
	struct kfd_process_device *other;

	if (!pdd)
		return -EINVAL;
	other = kfd_process_device_data_by_id(p, cd->user_gpu_id);
	if (other)
		other->user_gpu_id = pdd->user_gpu_id;
	pdd->user_gpu_id = cd->user_gpu_id;
	return 0;
}

static bool
kfd_criu_user_gpu_id_is_taken(struct kfd_process *p,
			      const struct kfd_process_device *except,
			      u32 user_gpu_id)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i] != except &&
		    p->pdds[i]->user_gpu_id == user_gpu_id)
			return true;
	return false;
}

/*
 * Gives the devices that are not in the image ids which the program does not
 * use. Otherwise one of them might answer when the program means a device of
 * its own.
 */
static void kfd_criu_assign_spare_ids(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++) {
		struct kfd_process_device *pdd = p->pdds[i];
		u32 id = pdd->user_gpu_id;

		if (pdd->drm_file)
			continue;
		while (!id || kfd_criu_user_gpu_id_is_taken(p, pdd, id))
			id = (id + 1) & GPU_ID_MASK;
		pdd->user_gpu_id = id;
	}
}

/**
 * kfd_criu_finish_devices - prepare for objects on devices after all devices
 * were restored
 * @p: process being restored
 *
 * User memory moves to its final place before RESUME. MMU notifications are
 * blocked until then, because no queue can access that memory yet.
 *
 * Return: 0; -EINVAL if the process has no VM on any device, so that it could
 * not be resumed.
 */
int kfd_criu_finish_devices(struct kfd_process *p)
{
	if (!p->kgd_process_info)
		return -EINVAL;
	kfd_criu_assign_spare_ids(p);
	amdgpu_amdkfd_block_mmu_notifications(p->kgd_process_info);
	return 0;
}
