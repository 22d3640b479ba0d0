// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of amdgpu_amdkfd_gpuvm_export_dmabuf(), which CHECKPOINT and
 * EXPORT_BO call: it returns the DMA-buf of the BO that asks for it, and none
 * if the GEM handle belongs to another BO. The device has no hardware; two BOs
 * without memory have their handles in the file of its DRM client.
 */
#include <kunit/device.h>
#include <kunit/test.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/iopoll.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_object.h"

/* Limit for a worker to release a DMA-buf that the test has put. */
#define RELEASE_LIMIT_US	(10 * USEC_PER_SEC)

struct export_bo {
	struct amdgpu_bo bo;
	struct kgd_mem mem;
};

struct export_client {
	struct drm_file file;
	struct export_bo first, second;
};

static const struct file_operations kfd_criu_export_fops = {
	.owner = THIS_MODULE,
};

static const struct drm_driver kfd_criu_export_driver = {
	.driver_features = DRIVER_GEM,
	.fops = &kfd_criu_export_fops,
	.name = "kfd_criu_export",
	.desc = "device of a unit test",
};

/* The memory of the BO belongs to KUnit, which frees it after the test. */
static const struct drm_gem_object_funcs kfd_criu_export_object_funcs = {
	.free = drm_gem_object_release,
};

static void kfd_criu_export_add_bo(struct kunit *test, struct amdgpu_device *adev,
				   struct export_bo *bo)
{
	struct drm_gem_object *obj = &bo->bo.tbo.base;

	drm_gem_private_object_init(adev_to_drm(adev), obj, PAGE_SIZE);
	obj->funcs = &kfd_criu_export_object_funcs;
	bo->bo.tbo.bdev = &adev->mman.bdev;
	bo->mem.bo = &bo->bo;
	mutex_init(&bo->mem.lock);
	KUNIT_ASSERT_EQ(test, 0, drm_gem_handle_create(adev->kfd.client.file, obj,
						       &bo->mem.gem_handle));
}

static int kfd_criu_export_init(struct kunit *test)
{
	struct export_client *client = kunit_kzalloc(test, sizeof(*client), GFP_KERNEL);
	struct device *dev = kunit_device_register(test, "kfd_criu_export");
	struct amdgpu_device *adev;

	KUNIT_ASSERT_NOT_NULL(test, client);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	adev = devm_drm_dev_alloc(dev, &kfd_criu_export_driver, struct amdgpu_device, ddev);
	KUNIT_ASSERT_FALSE(test, IS_ERR(adev));
	adev->dev = dev;
	idr_init_base(&client->file.object_idr, 1);
	spin_lock_init(&client->file.table_lock);
	mutex_init(&client->file.prime.lock);
	client->file.prime.dmabufs = RB_ROOT;
	client->file.prime.handles = RB_ROOT;
	adev->kfd.client.file = &client->file;
	kfd_criu_export_add_bo(test, adev, &client->first);
	kfd_criu_export_add_bo(test, adev, &client->second);
	test->priv = client;
	return 0;
}

static void kfd_criu_export_remove_bo(struct kunit *test, struct export_client *client,
				      struct export_bo *bo)
{
	struct drm_gem_object *obj = &bo->bo.tbo.base;
	unsigned int refs;

	if (bo->mem.dmabuf)
		dma_buf_put(bo->mem.dmabuf);
	KUNIT_EXPECT_EQ(test, 0, drm_gem_handle_delete(&client->file,
						       bo->mem.gem_handle));
	/* A kernel thread puts files with a delay; a DMA-buf has a reference to its BO. */
	flush_delayed_fput();
	KUNIT_EXPECT_EQ(test, 0, read_poll_timeout(kref_read, refs, refs == 1, USEC_PER_MSEC,
						   RELEASE_LIMIT_US, false, &obj->refcount));
	drm_gem_object_put(obj);
	mutex_destroy(&bo->mem.lock);
}

static void kfd_criu_export_exit(struct kunit *test)
{
	struct export_client *client = test->priv;

	if (!client)
		return;
	kfd_criu_export_remove_bo(test, client, &client->first);
	kfd_criu_export_remove_bo(test, client, &client->second);
	idr_destroy(&client->file.object_idr);
}

static void each_bo_is_exported_as_itself(struct kunit *test)
{
	struct export_client *client = test->priv;
	struct dma_buf *first, *second, *again;

	KUNIT_ASSERT_EQ(test, 0, amdgpu_amdkfd_gpuvm_export_dmabuf(&client->first.mem, &first));
	KUNIT_EXPECT_PTR_EQ(test, (void *)&client->first.bo.tbo.base, first->priv);
	KUNIT_ASSERT_EQ(test, 0, amdgpu_amdkfd_gpuvm_export_dmabuf(&client->second.mem, &second));
	KUNIT_EXPECT_PTR_EQ(test, (void *)&client->second.bo.tbo.base, second->priv);
	KUNIT_ASSERT_EQ(test, 0, amdgpu_amdkfd_gpuvm_export_dmabuf(&client->first.mem, &again));
	KUNIT_EXPECT_PTR_EQ(test, first, again);
	dma_buf_put(first);
	dma_buf_put(second);
	dma_buf_put(again);
}

static void a_bo_with_the_handle_of_another_bo_is_not_exported(struct kunit *test)
{
	struct export_client *client = test->priv;
	struct dma_buf *second, *first = NULL;
	u32 handle = client->first.mem.gem_handle;
	long refs;

	KUNIT_ASSERT_EQ(test, 0, amdgpu_amdkfd_gpuvm_export_dmabuf(&client->second.mem, &second));
	refs = file_count(second->file);
	client->first.mem.gem_handle = client->second.mem.gem_handle;
	KUNIT_EXPECT_EQ(test, -ENOENT,
			amdgpu_amdkfd_gpuvm_export_dmabuf(&client->first.mem, &first));
	KUNIT_EXPECT_NULL(test, first);
	KUNIT_EXPECT_NULL(test, client->first.mem.dmabuf);
	KUNIT_EXPECT_EQ(test, refs, file_count(second->file));
	if (first)
		dma_buf_put(first);
	client->first.mem.gem_handle = handle;
	dma_buf_put(second);
}

static struct kunit_case kfd_criu_export_cases[] = {
	KUNIT_CASE(each_bo_is_exported_as_itself),
	KUNIT_CASE(a_bo_with_the_handle_of_another_bo_is_not_exported),
	{}
};

static struct kunit_suite kfd_criu_export_suite = {
	.name = "kfd_criu_export",
	.init = kfd_criu_export_init,
	.exit = kfd_criu_export_exit,
	.test_cases = kfd_criu_export_cases,
};

kunit_test_suite(kfd_criu_export_suite);
