// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * An image does not contain what the program has created with ioctls of the render node: a
 * process that has such objects is refused, and is not refused any more once they are gone,
 * or if the caller saves them.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/gem.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"

#define SIZE	(2 * KFD_PAGE)
/* An address that lies in the address space of every GPU and that no BO of the test has. */
#define FREE_VA	(32ULL << 30)

/* What the program creates, and where. */
struct objects {
	int drm;
	struct kfd_bo bo;	/* of amdkfd, on the same GPU */
	int fd;			/* DMA-buf of the BO */
	__u32 handle;
};

FIXTURE(gem_objects) {
	struct kfd kfd;
	struct objects objects;
};

FIXTURE_VARIANT(gem_objects) {
	int (*create)(struct objects *objects);
	int (*destroy)(const struct objects *objects);
	__u32 reason;
	/* Nobody can save it: no list shows it, or a mapping of amdkfd is not there any more. */
	bool hidden;
	unsigned int gpu;
};

static int create_gem(struct objects *objects)
{
	return gem_create(objects->drm, SIZE, &objects->handle);
}

static int close_gem(const struct objects *objects)
{
	return gem_close(objects->drm, objects->handle);
}

static int import_bo(struct objects *objects)
{
	return gem_import(objects->drm, objects->fd, &objects->handle);
}

static int map_gem(struct objects *objects)
{
	int r = create_gem(objects);

	return r ? r : gem_map(objects->drm, objects->handle, FREE_VA, SIZE);
}

static int unmap_and_close(const struct objects *objects)
{
	int r = gem_unmap(objects->drm, objects->handle, FREE_VA, SIZE);

	return r ? r : close_gem(objects);
}

/* This is how HIP's virtual memory management maps memory of amdkfd. */
static int map_bo(struct objects *objects)
{
	int r = import_bo(objects);

	return r ? r : gem_map(objects->drm, objects->handle, FREE_VA, SIZE);
}

/* The VM keeps the mapping without the handle, because amdkfd has mapped the BO as well. */
static int map_bo_and_close(struct objects *objects)
{
	int r = map_bo(objects);

	return r ? r : close_gem(objects);
}

static int clear(const struct objects *objects)
{
	return gem_clear(objects->drm, FREE_VA, SIZE);
}

/* The VM has as many mappings as before. */
static int replace_mapping_of_bo(struct objects *objects)
{
	int r = create_gem(objects);

	return r ? r : gem_replace(objects->drm, objects->handle,
				   objects->bo.va, SIZE);
}

/* The mapping that is left is not the one that amdkfd has created. */
static int clear_part_of_bo(struct objects *objects)
{
	return gem_clear(objects->drm, objects->bo.va, KFD_PAGE);
}

static int clear_all_of_bo(const struct objects *objects)
{
	return gem_clear(objects->drm, objects->bo.va, SIZE);
}

static int map_prt(struct objects *objects)
{
	return gem_map_prt(objects->drm, FREE_VA, SIZE);
}

static int unmap_prt(const struct objects *objects)
{
	return gem_unmap_prt(objects->drm, FREE_VA, SIZE);
}

static int create_context(struct objects *objects)
{
	return gem_context_create(objects->drm, &objects->handle);
}

static int destroy_context(const struct objects *objects)
{
	return gem_context_destroy(objects->drm, objects->handle);
}

static int create_bo_list(struct objects *objects)
{
	return gem_bo_list_create(objects->drm, &objects->handle);
}

static int destroy_bo_list(const struct objects *objects)
{
	return gem_bo_list_destroy(objects->drm, objects->handle);
}

static int create_syncobj(struct objects *objects)
{
	return gem_syncobj_create(objects->drm, &objects->handle);
}

static int destroy_syncobj(const struct objects *objects)
{
	return gem_syncobj_destroy(objects->drm, objects->handle);
}

FIXTURE_VARIANT_ADD(gem_objects, gem_object) {
	.create = create_gem,
	.destroy = close_gem,
	.reason = KFD_CRIU_REASON_GEM_OBJECT,
};

FIXTURE_VARIANT_ADD(gem_objects, gem_object_on_the_second_gpu) {
	.create = create_gem,
	.destroy = close_gem,
	.reason = KFD_CRIU_REASON_GEM_OBJECT,
	.gpu = 1,
};

FIXTURE_VARIANT_ADD(gem_objects, handle_of_a_bo) {
	.create = import_bo,
	.destroy = close_gem,
	.reason = KFD_CRIU_REASON_GEM_OBJECT,
};

FIXTURE_VARIANT_ADD(gem_objects, mapping) {
	.create = map_gem,
	.destroy = unmap_and_close,
	.reason = KFD_CRIU_REASON_GEM_MAPPING,
};

FIXTURE_VARIANT_ADD(gem_objects, mapping_on_the_second_gpu) {
	.create = map_gem,
	.destroy = unmap_and_close,
	.reason = KFD_CRIU_REASON_GEM_MAPPING,
	.gpu = 1,
};

FIXTURE_VARIANT_ADD(gem_objects, mapping_of_a_bo) {
	.create = map_bo,
	.destroy = unmap_and_close,
	.reason = KFD_CRIU_REASON_GEM_MAPPING,
};

FIXTURE_VARIANT_ADD(gem_objects, mapping_of_a_bo_without_a_handle) {
	.create = map_bo_and_close,
	.destroy = clear,
	.reason = KFD_CRIU_REASON_GEM_MAPPING,
	.hidden = true,
};

FIXTURE_VARIANT_ADD(gem_objects, mapping_instead_of_that_of_a_bo) {
	.create = replace_mapping_of_bo,
	.destroy = close_gem,
	.reason = KFD_CRIU_REASON_GEM_MAPPING,
	.hidden = true,
};

FIXTURE_VARIANT_ADD(gem_objects, mapping_of_a_part_of_a_bo) {
	.create = clear_part_of_bo,
	.destroy = clear_all_of_bo,
	.reason = KFD_CRIU_REASON_GEM_MAPPING,
	.hidden = true,
};

FIXTURE_VARIANT_ADD(gem_objects, partially_resident_texture) {
	.create = map_prt,
	.destroy = unmap_prt,
	.reason = KFD_CRIU_REASON_GEM_MAPPING,
};

FIXTURE_VARIANT_ADD(gem_objects, context) {
	.create = create_context,
	.destroy = destroy_context,
	.reason = KFD_CRIU_REASON_DRM_CONTEXT,
};

FIXTURE_VARIANT_ADD(gem_objects, bo_list) {
	.create = create_bo_list,
	.destroy = destroy_bo_list,
	.reason = KFD_CRIU_REASON_DRM_CONTEXT,
};

FIXTURE_VARIANT_ADD(gem_objects, syncobj) {
	.create = create_syncobj,
	.destroy = destroy_syncobj,
	.reason = KFD_CRIU_REASON_DRM_CONTEXT,
};

FIXTURE_SETUP(gem_objects)
{
	struct objects *objects = &self->objects;

	memset(objects, 0, sizeof(*objects));
	objects->fd = -1;
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (variant->gpu >= self->kfd.num_gpus)
		SKIP(return, "one GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	objects->drm = self->kfd.gpus[variant->gpu].drm;
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, variant->gpu, KFD_BO_GTT, SIZE,
				   &objects->bo));
	ASSERT_EQ(0, kfd_bo_export(&self->kfd, objects->bo.handle,
				   &objects->fd));
}

FIXTURE_TEARDOWN(gem_objects)
{
	if (self->objects.fd >= 0)
		close(self->objects.fd);
	kfd_close(&self->kfd);
}

/* Returns the errno of the operation, and why it is refused. */
static int op_reason(int fd, struct kfd_criu_args *args, __u32 *reason)
{
	const int r = kfd_v2(fd, args);

	*reason = args->reason;
	return r;
}

static int pause_reason(int fd, __u32 *reason)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };

	return op_reason(fd, &args, reason);
}

static int checkpoint_reason(int fd, const struct kfd_v2_image *image,
			     __u32 *reason)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_CHECKPOINT,
		.data = (unsigned long)image->data,
		.data_size = image->size,
		.pause_fd = image->pause_fd,
	};

	return op_reason(fd, &args, reason);
}

TEST_F(gem_objects, are_refused_by_pause)
{
	const int fd = self->kfd.fd;
	const int files = count_files();
	int pause_fd;
	__u32 reason;

	ASSERT_EQ(0, variant->create(&self->objects));
	EXPECT_EQ(-EOPNOTSUPP, kfd_v1_op(fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(-EOPNOTSUPP, pause_reason(fd, &reason));
	EXPECT_EQ(variant->reason, reason);
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
	EXPECT_EQ(files, count_files());
	ASSERT_EQ(0, variant->destroy(&self->objects));
	EXPECT_EQ(0, kfd_v1_op(fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(fd, KFD_CRIU_OP_UNPAUSE));
	ASSERT_EQ(0, kfd_v2_pause(fd, &pause_fd));
	EXPECT_EQ(0, kfd_v2_unpause(fd, pause_fd));
}

/* A thread that was not stopped may create them after the pause. */
TEST_F(gem_objects, are_refused_by_checkpoint)
{
	const int fd = self->kfd.fd;
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	__u32 reason;

	ASSERT_EQ(0, kfd_v1_image_prepare(fd, &v1));
	ASSERT_EQ(0, kfd_v2_image_prepare(fd, &v2));
	ASSERT_EQ(0, variant->create(&self->objects));
	EXPECT_EQ(-EOPNOTSUPP, kfd_v1_image_checkpoint(fd, &v1));
	EXPECT_EQ(-EOPNOTSUPP, checkpoint_reason(fd, &v2, &reason));
	EXPECT_EQ(variant->reason, reason);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	ASSERT_EQ(0, variant->destroy(&self->objects));
	EXPECT_EQ(0, kfd_v1_image_checkpoint(fd, &v1));
	EXPECT_EQ(0, kfd_v2_image_checkpoint(fd, &v2));
	EXPECT_EQ(0, kfd_v1_op(fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(0, kfd_v2_unpause(fd, v2.pause_fd));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
	kfd_v1_image_close_files(&v1);
	kfd_v1_image_free(&v1);
	free(v2.data);
}

static int pause_and_save(int fd, struct kfd_criu_args *args)
{
	*args = (struct kfd_criu_args){
		.op = KFD_CRIU_CMD_PAUSE,
		.flags = KFD_CRIU_PAUSE_DRM_OBJECTS,
	};
	return kfd_v2(fd, args);
}

TEST_F(gem_objects, are_left_to_a_caller_who_saves_them)
{
	const int fd = self->kfd.fd;
	const int files = count_files();
	struct kfd_criu_args args;
	struct kfd_v2_image image = {};
	__u32 reason;

	ASSERT_EQ(0, variant->create(&self->objects));
	if (variant->hidden) {
		EXPECT_EQ(-EOPNOTSUPP, pause_and_save(fd, &args));
		EXPECT_EQ(KFD_CRIU_REASON_GEM_MAPPING, args.reason);
		EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
		EXPECT_EQ(files, count_files());
		return;
	}
	ASSERT_EQ(0, pause_and_save(fd, &args));
	image.pause_fd = args.fd;
	image.size = args.data_size;
	image.data = malloc(image.size);
	ASSERT_NE(NULL, image.data);
	/* Somebody else's pause is refused, and so is version 1. */
	EXPECT_EQ(-EOPNOTSUPP, kfd_v1_op(fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(-EOPNOTSUPP, pause_reason(fd, &reason));
	EXPECT_EQ(variant->reason, reason);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	EXPECT_EQ(0, kfd_v2_image_checkpoint(fd, &image));
	EXPECT_EQ(0, kfd_v2_unpause(fd, image.pause_fd));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
	free(image.data);
}

/* A thread that was not stopped may create them after the pause. */
TEST_F(gem_objects, are_left_by_checkpoint_to_a_caller_who_saves_them)
{
	const int fd = self->kfd.fd;
	struct kfd_v2_image image = {};
	struct kfd_criu_args args;
	__u32 reason;

	ASSERT_EQ(0, pause_and_save(fd, &args));
	image.pause_fd = args.fd;
	image.size = args.data_size;
	image.data = malloc(image.size);
	ASSERT_NE(NULL, image.data);
	ASSERT_EQ(0, variant->create(&self->objects));
	EXPECT_EQ(variant->hidden ? -EOPNOTSUPP : 0,
		  checkpoint_reason(fd, &image, &reason));
	EXPECT_EQ(variant->hidden ? KFD_CRIU_REASON_GEM_MAPPING :
				    KFD_CRIU_REASON_NONE, reason);
	EXPECT_EQ(0, kfd_v2_unpause(fd, image.pause_fd));
	free(image.data);
}

FIXTURE(other_objects) {
	struct kfd kfd;
};

FIXTURE_SETUP(other_objects)
{
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
}

FIXTURE_TEARDOWN(other_objects)
{
	kfd_close(&self->kfd);
}

/* The driver knows only the files that the program has passed to AMDKFD_IOC_ACQUIRE_VM. */
TEST_F(other_objects, objects_of_another_file_are_not_refused)
{
	struct objects objects = {};

	objects.drm = gem_open_render_node(&self->kfd.gpus[0]);
	ASSERT_LE(0, objects.drm);
	ASSERT_EQ(0, map_gem(&objects));
	ASSERT_EQ(0, create_context(&objects));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	close(objects.drm);
}

static int create_gem_in_parents_file(struct kfd *kfd, void *data)
{
	return -create_gem(data);
}

TEST_F(other_objects, objects_of_a_child_that_has_inherited_the_file_are_refused)
{
	struct objects objects = { .drm = self->kfd.gpus[0].drm };

	ASSERT_EQ(0, kfd_in_child(create_gem_in_parents_file, &objects));
	EXPECT_EQ(-EOPNOTSUPP, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	/* The file's first handle is 1. */
	ASSERT_EQ(0, gem_close(objects.drm, 1));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

static int unmap_from_gpu(const struct kfd *kfd, __u64 handle)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = (unsigned long)&kfd->gpus[0].id,
		.n_devices = 1,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &args);
}

/* Mappings that amdkfd has created are those of BOs of every kind, and some BOs have two. */
TEST_F(other_objects, bos_of_all_kinds_are_not_refused)
{
	struct kfd *kfd = &self->kfd;
	struct kfd_bo bo, import;
	int fd;

	ASSERT_EQ(0, kfd_bo_create(kfd, 0, KFD_BO_USERPTR, SIZE, &bo));
	ASSERT_EQ(0, kfd_bo_create(kfd, 0, KFD_BO_VRAM, SIZE, &bo));
	ASSERT_EQ(0, kfd_bo_create(kfd, 0, KFD_BO_GTT |
				   KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM,
				   SIZE, &bo));
	ASSERT_EQ(0, kfd_bo_create(kfd, 0, KFD_BO_GTT, SIZE, &bo));
	ASSERT_EQ(0, kfd_bo_export(kfd, bo.handle, &fd));
	ASSERT_EQ(0, kfd_bo_import(kfd, 0, fd, SIZE, &import));
	if (kfd->num_gpus > 1) {
		ASSERT_EQ(0, kfd_bo_map_to_gpu(kfd, 1, bo.handle));
		ASSERT_EQ(0, kfd_bo_import(kfd, 1, fd, SIZE, &import));
	}
	ASSERT_EQ(0, kfd_bo_create(kfd, 0, KFD_BO_GTT, SIZE, &bo));
	ASSERT_EQ(0, unmap_from_gpu(kfd, bo.handle));
	EXPECT_EQ(0, kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE));
	close(fd);
}

/* What a restored process has to create by itself, and the image of the rest. */
struct restored {
	struct kfd_v2_image image;
	struct kfd_bo bo;
};

/*
 * Returns 0 if the memory of the BO has a handle and two mappings of the program, beside
 * that of amdkfd, before its queues run.
 */
static int restore_and_map(struct kfd *kfd, void *data)
{
	const struct restored *restored = data;
	const int drm = kfd->gpus[0].drm;
	struct kfd_criu_args args;
	__u32 handle;
	int fd;

	if (kfd_v2_image_restore(kfd, &restored->image))
		return 100;
	if (kfd_v2_export(kfd, KFD_NO_PAUSE, restored->bo.handle, &fd))
		return 101;
	if (gem_import(drm, fd, &handle))
		return 102;
	close(fd);
	if (gem_map(drm, handle, FREE_VA, SIZE) ||
	    gem_map(drm, handle, FREE_VA + SIZE, KFD_PAGE))
		return 103;
	/* This is where amdkfd has mapped it. */
	if (gem_map(drm, handle, restored->bo.va, SIZE) != -EINVAL)
		return 104;
	if (kfd_v2_resume(kfd))
		return 105;
	/* The process can be checkpointed again. */
	if (pause_and_save(kfd->fd, &args))
		return 106;
	return kfd_v2_unpause(kfd->fd, args.fd) ? 107 : 0;
}

TEST_F(other_objects, are_created_before_the_queues_of_a_restored_process_run)
{
	struct restored restored;

	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, SIZE,
				   &restored.bo));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &restored.image));
	EXPECT_EQ(0, kfd_in_child(restore_and_map, &restored));
	EXPECT_EQ(0, kfd_v2_unpause(self->kfd.fd, restored.image.pause_fd));
	free(restored.image.data);
}

/* Two BOs of one memory use its mappings like a BO and a GEM handle, but no list shows them. */
TEST_F(other_objects, bos_of_one_memory_hide_no_mapping)
{
	struct kfd *kfd = &self->kfd;
	const int drm = kfd->gpus[0].drm;
	struct kfd_criu_args args;
	struct kfd_bo bo, import;
	__u32 handle;
	int fd;

	ASSERT_EQ(0, kfd_bo_create(kfd, 0, KFD_BO_GTT, SIZE, &bo));
	ASSERT_EQ(0, kfd_bo_export(kfd, bo.handle, &fd));
	ASSERT_EQ(0, kfd_bo_import(kfd, 0, fd, SIZE, &import));
	ASSERT_EQ(0, pause_and_save(kfd->fd, &args));
	ASSERT_EQ(0, kfd_v2_unpause(kfd->fd, args.fd));
	ASSERT_EQ(0, gem_import(drm, fd, &handle));
	ASSERT_EQ(0, gem_map(drm, handle, FREE_VA, SIZE));
	ASSERT_EQ(0, pause_and_save(kfd->fd, &args));
	ASSERT_EQ(0, kfd_v2_unpause(kfd->fd, args.fd));
	ASSERT_EQ(0, gem_close(drm, handle));
	EXPECT_EQ(-EOPNOTSUPP, pause_and_save(kfd->fd, &args));
	EXPECT_EQ(KFD_CRIU_REASON_GEM_MAPPING, args.reason);
	close(fd);
}

KFD_TEST_MAIN
