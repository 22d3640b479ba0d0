/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What kfd_criu_svm.c and kfd_criu_svm_register.c share: ranges between RESTORE
 * and RESUME.
 */
#ifndef KFD_CRIU_SVM_H_INCLUDED
#define KFD_CRIU_SVM_H_INCLUDED

#include "kfd_criu.h"
#include "kfd_priv.h"

/* A range of criu_svm_metadata_list that RESUME will register. */
struct kfd_criu_svm_staged {
	struct list_head list;
	struct kfd_criu_svm range;
};

/*
 * A device without a VM of the process, or without SVM support, cannot have
 * access.
 */
static inline bool kfd_criu_svm_supported(const struct kfd_process *p,
					  unsigned int i)
{
	return p->pdds[i]->drm_priv && test_bit(i, p->svms.bitmap_supported);
}

#endif
