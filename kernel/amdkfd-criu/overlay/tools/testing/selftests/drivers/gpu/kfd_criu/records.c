// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images are those that the kernel wrote: their sizes are believed.
 */
#include <string.h>
#include "records.h"

__u32 v1_word(const struct kfd_image *image, __u64 at)
{
	__u32 value;

	memcpy(&value, image->priv + at, sizeof(value));
	return value;
}

__u64 v1_bos(const struct kfd_image *image)
{
	return KFD_V1_PROCESS + image->args.num_devices * KFD_V1_DEVICE;
}

__u64 v1_objects(const struct kfd_image *image)
{
	return v1_bos(image) + image->args.num_bos * KFD_V1_BO;
}

__u64 v1_object_size(const struct kfd_image *image, __u64 at)
{
	switch (v1_word(image, at)) {
	case V1_QUEUE:
		return KFD_V1_QUEUE + v1_word(image, at + V1_MQD_SIZE) +
		       v1_word(image, at + V1_CTL_STACK_SIZE);
	case V1_EVENT:
		return KFD_V1_EVENT;
	default:
		return V1_SVM_ATTRIBUTES +
		       (V1_SVM_COMMON + image->args.num_devices) *
		       sizeof(struct kfd_ioctl_svm_attribute);
	}
}

struct kfd_criu_record *v2_record(const struct kfd_v2_image *image, __u64 at)
{
	return (struct kfd_criu_record *)(image->data + at);
}

struct kfd_criu_record *v2_nth(const struct kfd_v2_image *image, __u32 type,
			       unsigned int n)
{
	struct kfd_criu_record *record;
	__u64 at;

	for (at = 0; at < image->size; at += record->size) {
		record = v2_record(image, at);
		if (record->type == type && n-- == 0)
			return record;
	}
	return NULL;
}

__u64 v2_fixed_size(__u32 type)
{
	static const __u64 sizes[] = {
		sizeof(struct kfd_criu_record),
		sizeof(struct kfd_criu_record_image),
		sizeof(struct kfd_criu_record_device),
		sizeof(struct kfd_criu_record_process),
		sizeof(struct kfd_criu_record_bo),
		sizeof(struct kfd_criu_record_queue),
		sizeof(struct kfd_criu_record_event_page),
		sizeof(struct kfd_criu_record_event),
		sizeof(struct kfd_criu_record_svm_range),
	};

	return sizes[type < sizeof(sizes) / sizeof(*sizes) ? type : 0];
}
