/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What is where in an image: the private data of version 1, as amdkfd lays its C
 * structures out, and the records of the extensible ABI.
 */
#ifndef KFD_CRIU_SELFTEST_RECORDS_H
#define KFD_CRIU_SELFTEST_RECORDS_H

#include "kfd.h"

/* enum kfd_criu_object_type: what a record behind those of the BOs begins with. */
#define V1_QUEUE	0
#define V1_EVENT	1
#define V1_SVM		2

/* enum kfd_queue_type, enum kfd_queue_format */
#define V1_TYPE_COMPUTE	0
#define V1_TYPE_SDMA	1
#define V1_FORMAT_PM4	0
#define V1_FORMAT_AQL	1

/* struct kfd_criu_queue_priv_data: bytes from its beginning. */
enum {
	V1_RING = 8,
	V1_RING_SIZE = 16,
	V1_READ_POINTER = 24,
	V1_WRITE_POINTER = 32,
	V1_EOP = 48,
	V1_SAVE_AREA = 56,
	V1_GPU_ID = 64,
	V1_TYPE = 68,
	V1_FORMAT = 72,
	V1_QUEUE_ID = 76,
	V1_PRIORITY = 80,
	V1_PERCENTAGE = 84,
	V1_DOORBELL_ID = 88,
	V1_GWS = 92,
	V1_SDMA_ID = 96,
	V1_EOP_SIZE = 100,
	V1_SAVE_AREA_SIZE = 104,
	V1_CTL_STACK_SIZE = 108,
	V1_MQD_SIZE = 112,
};

/* struct kfd_criu_event_priv_data */
enum {
	V1_PAGE_HANDLE = 8,
	V1_EVENT_ID = 16,
	V1_AUTO_RESET = 20,
	V1_EVENT_TYPE = 24,
	V1_SIGNALED = 28,
};

/* struct kfd_criu_svm_range_priv_data */
enum {
	V1_SVM_START = 8,
	V1_SVM_PAGES = 16,
	V1_SVM_ATTRIBUTES = 24,
};

/* Attributes of every SVM range; then there is one for each device. */
#define V1_SVM_COMMON	4

/* struct kfd_criu_bo_priv_data */
enum {
	V1_USER_ADDRESS = 0,
	V1_HANDLE = 8,
	V1_MAPPED = 12,
};

/* Where in the private data the BOs' records begin, and those of other objects. */
__u64 v1_bos(const struct kfd_image *image);
__u64 v1_objects(const struct kfd_image *image);
/* Bytes of another object's record, with its MQDs or attributes. */
__u64 v1_object_size(const struct kfd_image *image, __u64 at);
__u32 v1_word(const struct kfd_image *image, __u64 at);

struct kfd_criu_record *v2_record(const struct kfd_v2_image *image, __u64 at);
/* Of a type, the n-th one; NULL: there are fewer. */
struct kfd_criu_record *v2_nth(const struct kfd_v2_image *image, __u32 type,
			       unsigned int n);
/* Bytes of its struct; what is behind them depends on the record. */
__u64 v2_fixed_size(__u32 type);

#endif /* KFD_CRIU_SELFTEST_RECORDS_H */
