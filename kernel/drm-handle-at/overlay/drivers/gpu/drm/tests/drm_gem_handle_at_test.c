// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of drm_gem_handle_create_at() with a driver that has nothing but GEM
 * objects. They look from inside the driver's callbacks at what user space could
 * see at that moment, and let the callbacks fail, which no test in user space can.
 */
#include <kunit/device.h>
#include <kunit/test.h>
#include <linux/err.h>
#include <linux/idr.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include "../drm_internal.h"

#define HANDLE	42

struct handle_test {
	struct drm_device *dev;
	struct drm_file *file;
	/* Calls of the driver's callbacks. */
	unsigned int opened, closed, freed;
	/* What open() returns. */
	int open_result;
	/* Called by open(). */
	void (*while_open)(struct kunit *test);
};

struct handle_test_object {
	struct drm_gem_object base;
	struct kunit *test;
};

static int handle_test_open(struct drm_gem_object *obj, struct drm_file *file)
{
	struct kunit *test = container_of(obj, struct handle_test_object, base)->test;
	struct handle_test *t = test->priv;

	t->opened++;
	if (t->while_open)
		t->while_open(test);
	return t->open_result;
}

static void handle_test_close(struct drm_gem_object *obj, struct drm_file *file)
{
	struct kunit *test = container_of(obj, struct handle_test_object, base)->test;
	struct handle_test *t = test->priv;

	t->closed++;
}

static void handle_test_free(struct drm_gem_object *obj)
{
	struct handle_test_object *object = container_of(obj, struct handle_test_object, base);
	struct handle_test *t = object->test->priv;

	t->freed++;
	drm_gem_object_release(obj);
	kfree(object);
}

static const struct drm_gem_object_funcs handle_test_funcs = {
	.free = handle_test_free,
	.open = handle_test_open,
	.close = handle_test_close,
};

static const struct drm_driver handle_test_driver = {
	.driver_features = DRIVER_GEM,
	.name = "handle_at_test",
};

/* The caller has the only reference. */
static struct drm_gem_object *handle_test_create(struct kunit *test)
{
	struct handle_test *t = test->priv;
	struct handle_test_object *object = kzalloc(sizeof(*object), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, object);
	object->test = test;
	object->base.funcs = &handle_test_funcs;
	drm_gem_private_object_init(t->dev, &object->base, PAGE_SIZE);
	return &object->base;
}

/* Creates an object whose only reference is that of the handle, if it gets one. */
static int handle_test_create_at(struct kunit *test, u32 handle)
{
	struct handle_test *t = test->priv;
	struct drm_gem_object *obj = handle_test_create(test);
	const int ret = drm_gem_handle_create_at(t->file, obj, handle);

	drm_gem_object_put(obj);
	return ret;
}

static bool handle_test_is_visible(struct handle_test *t, u32 handle)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(t->file, handle);

	if (!obj)
		return false;
	drm_gem_object_put(obj);
	return true;
}

static void handle_test_object_has_the_handle(struct kunit *test)
{
	struct handle_test *t = test->priv;
	struct drm_gem_object *obj = handle_test_create(test), *found;

	KUNIT_ASSERT_EQ(test, drm_gem_handle_create_at(t->file, obj, HANDLE), 0);
	found = drm_gem_object_lookup(t->file, HANDLE);
	KUNIT_EXPECT_PTR_EQ(test, found, obj);
	KUNIT_EXPECT_EQ(test, obj->handle_count, 1);
	drm_gem_object_put(found);
	drm_gem_object_put(obj);
	KUNIT_EXPECT_EQ(test, t->freed, 0);
	KUNIT_EXPECT_EQ(test, drm_gem_handle_delete(t->file, HANDLE), 0);
	KUNIT_EXPECT_FALSE(test, handle_test_is_visible(t, HANDLE));
	KUNIT_EXPECT_EQ(test, t->opened, 1);
	KUNIT_EXPECT_EQ(test, t->closed, 1);
	KUNIT_EXPECT_EQ(test, t->freed, 1);
}

static void handle_test_range(struct kunit *test)
{
	struct handle_test *t = test->priv;
	struct drm_gem_object *obj;
	int handle, count = 0;

	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, INT_MAX), -EINVAL);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, INT_MAX + 1U), -EINVAL);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, U32_MAX), -EINVAL);
	KUNIT_EXPECT_EQ(test, t->opened, 0);
	KUNIT_EXPECT_EQ(test, t->freed, 4);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, 1), 0);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, DRM_GEM_MAX_HANDLE), 0);
	KUNIT_EXPECT_TRUE(test, handle_test_is_visible(t, 1));
	KUNIT_EXPECT_TRUE(test, handle_test_is_visible(t, DRM_GEM_MAX_HANDLE));

	/* Drivers go through the objects like this, and a warning fails the test. */
	idr_for_each_entry(&t->file->object_idr, obj, handle)
		count++;
	KUNIT_EXPECT_EQ(test, count, 2);
}

static void handle_test_taken(struct kunit *test)
{
	struct handle_test *t = test->priv;
	struct drm_gem_object *obj = handle_test_create(test), *found;

	KUNIT_ASSERT_EQ(test, drm_gem_handle_create_at(t->file, obj, HANDLE), 0);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, HANDLE), -EEXIST);
	KUNIT_EXPECT_EQ(test, t->freed, 1);
	found = drm_gem_object_lookup(t->file, HANDLE);
	KUNIT_EXPECT_PTR_EQ(test, found, obj);
	drm_gem_object_put(found);
	drm_gem_object_put(obj);
	KUNIT_EXPECT_EQ(test, drm_gem_handle_delete(t->file, HANDLE), 0);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, HANDLE), 0);
}

static void handle_test_others_avoid_it(struct kunit *test)
{
	struct handle_test *t = test->priv;
	struct drm_gem_object *obj;
	static const u32 expected[] = { 1, 3 };
	unsigned int i;
	u32 handle;

	KUNIT_ASSERT_EQ(test, handle_test_create_at(test, 2), 0);
	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		obj = handle_test_create(test);
		KUNIT_EXPECT_EQ(test, drm_gem_handle_create(t->file, obj, &handle), 0);
		KUNIT_EXPECT_EQ(test, handle, expected[i]);
		drm_gem_object_put(obj);
	}
}

/* Another thread sees this while the driver prepares the object. */
static void handle_test_look_while_open(struct kunit *test)
{
	struct handle_test *t = test->priv;

	t->while_open = NULL;
	KUNIT_EXPECT_FALSE(test, handle_test_is_visible(t, HANDLE));
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, HANDLE), -EEXIST);
	KUNIT_EXPECT_EQ(test, drm_gem_handle_delete(t->file, HANDLE), -EINVAL);
}

static void handle_test_reserved_is_invisible(struct kunit *test)
{
	struct handle_test *t = test->priv;

	t->while_open = handle_test_look_while_open;
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, HANDLE), 0);
	KUNIT_EXPECT_EQ(test, t->opened, 1);
	KUNIT_EXPECT_TRUE(test, handle_test_is_visible(t, HANDLE));
}

static void handle_test_open_fails(struct kunit *test)
{
	struct handle_test *t = test->priv;

	t->open_result = -EIO;
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, HANDLE), -EIO);
	KUNIT_EXPECT_FALSE(test, handle_test_is_visible(t, HANDLE));
	KUNIT_EXPECT_EQ(test, t->closed, 0);
	KUNIT_EXPECT_EQ(test, t->freed, 1);
	t->open_result = 0;
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, HANDLE), 0);
}

static void handle_test_cancel(struct kunit *test)
{
	struct handle_test *t = test->priv;
	struct drm_gem_object *obj = handle_test_create(test);
	u32 handle = 0;

	mutex_lock(&t->dev->object_name_lock);
	KUNIT_ASSERT_EQ(test, drm_gem_handle_reserve(t->file, obj, HANDLE, &handle), 0);
	KUNIT_EXPECT_EQ(test, handle, HANDLE);
	KUNIT_EXPECT_FALSE(test, handle_test_is_visible(t, HANDLE));
	KUNIT_EXPECT_TRUE(test, drm_vma_node_is_allowed(&obj->vma_node, t->file));
	drm_gem_handle_cancel(t->file, obj, handle);
	KUNIT_EXPECT_FALSE(test, drm_vma_node_is_allowed(&obj->vma_node, t->file));
	KUNIT_EXPECT_EQ(test, obj->handle_count, 0);
	KUNIT_EXPECT_EQ(test, t->closed, 1);
	drm_gem_object_put(obj);
	KUNIT_EXPECT_EQ(test, t->freed, 1);
	KUNIT_EXPECT_EQ(test, handle_test_create_at(test, HANDLE), 0);
}

static int handle_test_init(struct kunit *test)
{
	struct handle_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct device *parent;

	KUNIT_ASSERT_NOT_NULL(test, t);
	parent = kunit_device_register(test, "drm_gem_handle_at");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, parent);
	t->dev = drm_dev_alloc(&handle_test_driver, parent);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->dev);
	test->priv = t;
	t->file = drm_file_alloc(t->dev->primary);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->file);
	return 0;
}

static void handle_test_exit(struct kunit *test)
{
	struct handle_test *t = test->priv;

	if (!t)
		return;
	t->while_open = NULL;
	if (!IS_ERR_OR_NULL(t->file))
		drm_file_free(t->file);
	drm_dev_put(t->dev);
}

static struct kunit_case handle_test_cases[] = {
	KUNIT_CASE(handle_test_object_has_the_handle),
	KUNIT_CASE(handle_test_range),
	KUNIT_CASE(handle_test_taken),
	KUNIT_CASE(handle_test_others_avoid_it),
	KUNIT_CASE(handle_test_reserved_is_invisible),
	KUNIT_CASE(handle_test_open_fails),
	KUNIT_CASE(handle_test_cancel),
	{}
};

static struct kunit_suite handle_test_suite = {
	.name = "drm_gem_handle_at",
	.init = handle_test_init,
	.exit = handle_test_exit,
	.test_cases = handle_test_cases,
};

kunit_test_suite(handle_test_suite);
