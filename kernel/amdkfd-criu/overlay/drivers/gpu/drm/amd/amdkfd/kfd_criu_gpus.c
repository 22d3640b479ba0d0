// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The GPUs of this machine that the caller of RESTORE has chosen
 * (kfd_criu_args.gpus). The array is copied once, and its files are looked up
 * once, so that another thread cannot exchange them after they were checked.
 */
#include <linux/file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_priv.h"

static bool kfd_criu_gpus_conflict(const struct kfd_criu_device *a,
				   const struct kfd_criu_device *b)
{
	return a->user_gpu_id == b->user_gpu_id || a->gpu_id == b->gpu_id;
}

static bool kfd_criu_gpus_are_unique(const struct kfd_criu_gpus *gpus)
{
	u32 i, j;

	for (i = 1; i < gpus->n; i++)
		for (j = 0; j < i; j++)
			if (kfd_criu_gpus_conflict(&gpus->choices[i].device,
						   &gpus->choices[j].device))
				return false;
	return true;
}

/* Appends an element. The caller destroys @gpus after a failure. */
static int kfd_criu_gpus_add(struct kfd_criu_gpus *gpus,
			     const struct kfd_criu_gpu *gpu)
{
	struct kfd_criu_gpu_choice *choice = &gpus->choices[gpus->n];

	if (gpu->reserved || gpu->drm_fd < -1)
		return -EINVAL;
	choice->device.user_gpu_id = gpu->user_gpu_id;
	choice->device.gpu_id = gpu->gpu_id;
	if (gpu->drm_fd >= 0) {
		choice->drm_file = fget(gpu->drm_fd);
		if (!choice->drm_file)
			return -EINVAL;
	}
	gpus->n++;
	return kfd_criu_device_check(&choice->device, choice->drm_file);
}

static int kfd_criu_gpus_copy(struct kfd_criu_gpus *gpus,
			      const struct kfd_criu_gpu __user *from, u32 n)
{
	struct kfd_criu_gpu gpu;
	u32 i;
	int r;

	for (i = 0; i < n; i++) {
		if (copy_from_user(&gpu, &from[i], sizeof(gpu)))
			return -EFAULT;
		r = kfd_criu_gpus_add(gpus, &gpu);
		if (r)
			return r;
	}
	return kfd_criu_gpus_are_unique(gpus) ? 0 : -EINVAL;
}

/**
 * kfd_criu_gpus_create - copy and check the GPUs that the caller has chosen
 * @args: args of RESTORE
 *
 * Return: the GPUs, to be destroyed with kfd_criu_gpus_destroy(); -EINVAL if
 * there are too many, an element is invalid or its file is not one of its GPU,
 * or two elements have the same id; -ENODEV if there is no GPU with an id;
 * -EFAULT; -ENOMEM.
 */
struct kfd_criu_gpus *kfd_criu_gpus_create(const struct kfd_criu_args *args)
{
	struct kfd_criu_gpus *gpus;
	int r;

	if (args->num_gpus > KFD_CRIU_MAX_GPUS)
		return ERR_PTR(-EINVAL);
	gpus = kzalloc(struct_size(gpus, choices, args->num_gpus),
		       GFP_KERNEL_ACCOUNT);
	if (!gpus)
		return ERR_PTR(-ENOMEM);
	r = kfd_criu_gpus_copy(gpus, u64_to_user_ptr(args->gpus),
			       args->num_gpus);
	if (r) {
		kfd_criu_gpus_destroy(gpus);
		return ERR_PTR(r);
	}
	return gpus;
}

/**
 * kfd_criu_gpus_destroy - free what kfd_criu_gpus_create() has returned
 * @gpus: the GPUs
 */
void kfd_criu_gpus_destroy(struct kfd_criu_gpus *gpus)
{
	u32 i;

	for (i = 0; i < gpus->n; i++)
		if (gpus->choices[i].drm_file)
			fput(gpus->choices[i].drm_file);
	kfree(gpus);
}

/**
 * kfd_criu_gpus_find - find the GPU that replaces a GPU of the image
 * @gpus: the GPUs that the caller has chosen
 * @user_gpu_id: id by which the program knows the GPU
 *
 * Return: the choice, or NULL.
 */
struct kfd_criu_gpu_choice *kfd_criu_gpus_find(struct kfd_criu_gpus *gpus,
					       u32 user_gpu_id)
{
	u32 i;

	for (i = 0; i < gpus->n; i++)
		if (gpus->choices[i].device.user_gpu_id == user_gpu_id)
			return &gpus->choices[i];
	return NULL;
}

/**
 * kfd_criu_gpus_all_in_image - check whether the image has a record for each GPU
 * that the caller has chosen
 * @gpus: the GPUs, after the records of the image have been checked
 *
 * Return: whether it has.
 */
bool kfd_criu_gpus_all_in_image(const struct kfd_criu_gpus *gpus)
{
	u32 i;

	for (i = 0; i < gpus->n; i++)
		if (!gpus->choices[i].has_record)
			return false;
	return true;
}
