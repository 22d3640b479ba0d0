// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SVM ranges in the private data of the released ABI, version 1; see
 * kfd_criu_v1_queue.c.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

/*
 * Attributes of a range: two locations, flags, granularity; then one for each
 * device's access.
 */
#define NUM_COMMON_ATTRS 4

/**
 * kfd_criu_v1_svm_size - bytes of the record of an SVM range
 * @num_devices: number of devices of the process
 *
 * Return: the bytes of one record.
 */
u64 kfd_criu_v1_svm_size(u32 num_devices)
{
	return struct_size_t(struct kfd_criu_svm_range_priv_data, attrs,
			     NUM_COMMON_ATTRS + num_devices);
}

static void kfd_criu_v1_fill_svm(const struct kfd_process *p,
				 struct kfd_criu_svm_range_priv_data *out,
				 const struct kfd_criu_svm *cs)
{
	struct kfd_ioctl_svm_attribute *attr = out->attrs;
	unsigned int i;

	out->object_type = KFD_CRIU_OBJECT_TYPE_SVM_RANGE;
	out->start_addr = cs->start;
	out->size = cs->npages;
	attr[0].type = KFD_IOCTL_SVM_ATTR_PREFERRED_LOC;
	attr[0].value = cs->preferred_loc;
	attr[1].type = KFD_IOCTL_SVM_ATTR_PREFETCH_LOC;
	attr[1].value = cs->prefetch_loc;
	attr[2].type = KFD_IOCTL_SVM_ATTR_SET_FLAGS;
	attr[2].value = cs->flags;
	attr[3].type = KFD_IOCTL_SVM_ATTR_GRANULARITY;
	attr[3].value = cs->granularity;
	attr += NUM_COMMON_ATTRS;
	for (i = 0; i < p->n_pdds; i++) {
		attr[i].type = kfd_criu_svm_access_to_attr(cs->access[i]);
		attr[i].value = p->pdds[i]->user_gpu_id;
	}
}

static int
kfd_criu_v1_parse_svm_attr(struct kfd_process *p,
			   const struct kfd_ioctl_svm_attribute *attr,
			   struct kfd_criu_svm *cs)
{
	int access;

	switch (attr->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
		cs->preferred_loc = attr->value;
		return 0;
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		cs->prefetch_loc = attr->value;
		return 0;
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
		cs->flags = attr->value;
		return 0;
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		cs->granularity = attr->value;
		return 0;
	default:
		access = kfd_criu_svm_access_from_attr(attr->type);
		if (access < 0)
			return access;
		return kfd_criu_svm_add_access(p, cs, attr->value, access);
	}
}

static int kfd_criu_v1_parse_svm(struct kfd_process *p, u32 num_devices,
				 struct kfd_criu_svm *cs,
				 const struct kfd_criu_svm_range_priv_data *in)
{
	u32 i;

	memset(cs, 0, sizeof(*cs));
	cs->start = in->start_addr;
	cs->npages = in->size;
	cs->preferred_loc = KFD_IOCTL_SVM_LOCATION_UNDEFINED;
	cs->prefetch_loc = KFD_IOCTL_SVM_LOCATION_UNDEFINED;
	for (i = 0; i < NUM_COMMON_ATTRS + num_devices; i++) {
		int r = kfd_criu_v1_parse_svm_attr(p, &in->attrs[i], cs);

		if (r)
			return r;
	}
	return 0;
}

/**
 * kfd_criu_v1_checkpoint_svm - write the records of all SVM ranges of a process
 * @p: the process
 * @priv: private data
 * @offset: position in the private data; advanced
 * @size: bytes of private data; the ranges are last and must fill the rest
 *
 * Return: 0; -EINVAL if the ranges do not fill the rest, because the number of
 * ranges or of the objects before them has changed since PROCESS_INFO; -EFAULT,
 * -ENOMEM.
 */
int kfd_criu_v1_checkpoint_svm(struct kfd_process *p, u8 __user *priv,
			       u64 *offset, u64 size)
{
	const u64 bytes = kfd_criu_v1_svm_size(p->n_pdds);
	struct kfd_criu_svm_range_priv_data *record;
	struct kfd_criu_svm *ranges;
	u64 count;
	u32 i;
	int r;

	if (*offset > size)
		return -EINVAL;
	count = div64_u64(size - *offset, bytes);
	if (count > U32_MAX || count * bytes != size - *offset)
		return -EINVAL;
	r = kfd_criu_svm_save(p, &ranges, count);
	if (r)
		return r == -EAGAIN ? -EINVAL : r;
	record = kzalloc(bytes, GFP_KERNEL);
	if (!record) {
		r = -ENOMEM;
		goto out_free_ranges;
	}
	for (i = 0; i < count; i++) {
		kfd_criu_v1_fill_svm(p, record, &ranges[i]);
		if (copy_to_user(priv + *offset, record, bytes)) {
			r = -EFAULT;
			goto out_free_record;
		}
		*offset += bytes;
	}
out_free_record:
	kfree(record);
out_free_ranges:
	kvfree(ranges);
	return r;
}

/**
 * kfd_criu_v1_stage_svm - stage the SVM range that a record describes
 * @p: process being restored
 * @num_devices: number of devices of the image
 * @priv: private data
 * @offset: position of the record in the private data; advanced
 * @size: bytes of private data
 *
 * Return: 0; -EINVAL if the range or an attribute is invalid; -EFAULT, -ENOMEM.
 */
int kfd_criu_v1_stage_svm(struct kfd_process *p, u32 num_devices,
			  const u8 __user *priv, u64 *offset, u64 size)
{
	const u64 bytes = kfd_criu_v1_svm_size(num_devices);
	struct kfd_criu_svm_range_priv_data *record;
	struct kfd_criu_svm cs;
	int r;

	if (*offset > size || size - *offset < bytes)
		return -EINVAL;
	record = kmalloc(bytes, GFP_KERNEL);
	if (!record)
		return -ENOMEM;
	if (copy_from_user(record, priv + *offset, bytes)) {
		r = -EFAULT;
		goto out_free;
	}
	*offset += bytes;
	r = kfd_criu_v1_parse_svm(p, num_devices, &cs, record);
	if (r)
		goto out_free;
	r = kfd_criu_svm_stage(p, &cs);
out_free:
	kfree(record);
	return r;
}
