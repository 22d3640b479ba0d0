// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * An image in which one member of one record is wrong is refused with the documented errno
 * and leaves no object: the tables are lib/refusal_v1.c and lib/refusal_v2.c. Also wrong
 * arguments, devices that do not exist, and hardware that is already in use.
 *
 * Runs: once, small-bar
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/leak_check.h"
#include "lib/queue.h"
#include "lib/refusal.h"

#define LIMIT_S		600

FIXTURE(refuse) {
	struct kfd kfd;
	struct fixture fixture;
};

FIXTURE_SETUP(refuse)
{
	int r = fixture_open_checkpointed(&self->kfd, &self->fixture,
					  FIXTURE_FULL);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
}

FIXTURE_TEARDOWN(refuse)
{
	fixture_free(&self->fixture);
	kfd_close(&self->kfd);
}

/* ---- the tables ---- */

static bool applies(const struct kfd *kfd, const struct fixture *fixture,
		    enum refusal_need need)
{
	switch (need) {
	case SAVES_WAVES:
		return fixture->cwsr_area.size;
	case OWN_DOORBELLS:
		return kfd->gpus[0].gfx_version >= GFX9;
	case SVM:
		return fixture->svm;
	case REGISTERS:
		return fixture->registers.size;
	case TWO_GPUS:
		return kfd->num_gpus > 1;
	case SMALL_BAR:
		return !kfd->gpus[0].visible;
	default:
		return true;
	}
}

static __u64 get(const void *at, unsigned int bytes)
{
	__u64 value = 0;

	memcpy(&value, at, bytes);
	return value;
}

static bool matches(const struct refusal *row, const void *record)
{
	return !((get(record + row->match_at, 4) ^ row->match) & row->match_mask);
}

static void change(const struct refusal *row, void *record, const void *next)
{
	__u64 value = row->value;

	if (row->change == ADD)
		value += get(record + row->at, row->bytes);
	else if (row->change == SAME)
		value = get(next + row->at, row->bytes);
	memcpy(record + row->at, &value, row->bytes);
}

/* The n-th part of an image of version 1 that the row selects, or NULL. */
static void *find_v1(const struct kfd_v1_image *image, const struct refusal *row,
		     unsigned int n)
{
	static const __u32 types[] = {
		[V1_IN_QUEUE] = V1_QUEUE,
		[V1_IN_EVENT] = V1_EVENT,
		[V1_IN_SVM] = V1_SVM,
	};
	unsigned int i;
	__u64 at;

	if (row->record == V1_IN_PROCESS)
		return image->priv;
	if (row->record == V1_IN_DEVICE)
		return n < image->args.num_devices ? &image->devices[n] : NULL;
	if (row->record == V1_IN_BO || row->record == V1_IN_BO_PRIVATE) {
		for (i = 0; i < image->args.num_bos; i++)
			if (matches(row, &image->bos[i]) && n-- == 0)
				return row->record == V1_IN_BO ?
					       (void *)&image->bos[i] :
					       image->priv + v1_bos(image) +
						       i * V1_BO_SIZE;
		return NULL;
	}
	for (at = v1_objects(image); at < image->args.priv_data_size;
	     at += v1_object_size(image, at))
		if (v1_word(image, at) == types[row->record] &&
		    matches(row, image->priv + at) && n-- == 0)
			return image->priv + at;
	return NULL;
}

static void *find_v2(const struct kfd_v2_image *image,
		     const struct refusal *row, unsigned int n)
{
	struct kfd_criu_record *record;
	unsigned int i;

	for (i = 0; (record = v2_nth(image, row->record, i)); i++)
		if (matches(row, record) && n-- == 0)
			return record;
	return NULL;
}

struct trial {
	const struct refusal *row;
	struct fixture *fixture;
	int (*restore)(struct kfd *kfd, struct trial *trial);
};

/* Called in a child, which has its own copy of the image. */
static int restore_v1(struct kfd *kfd, struct trial *trial)
{
	struct kfd_v1_image *image = &trial->fixture->v1;
	const struct refusal *row = trial->row;
	void *record = find_v1(image, row, 0);
	int r;

	if (!record)
		return -ENOKEY;
	change(row, record, find_v1(image, row, 1));
	r = kfd_v1_image_restore(kfd, image);
	if (!r)
		kfd_v1_image_close_files(image);
	return r;
}

/* Number of a record in its image, starting at 1. Call it before the image is changed. */
static __u32 number_of(const struct kfd_v2_image *image, const void *record)
{
	__u32 number = 1;
	__u64 at;

	for (at = 0; image->data + at != record; at += v2_record(image, at)->size)
		number++;
	return number;
}

/* Returns -EBADMSG if RESTORE refuses another record than the one that is wrong. */
static int restore_v2(struct kfd *kfd, struct trial *trial)
{
	struct kfd_v2_image *image = &trial->fixture->v2;
	const struct refusal *row = trial->row;
	void *record = find_v2(image, row, 0);
	void *next = find_v2(image, row, 1);
	struct kfd_criu_gpu gpus[KFD_MAX_GPUS];
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESTORE,
		.data = (unsigned long)image->data,
		.data_size = image->size,
		.gpus = (unsigned long)gpus,
	};
	__u32 wrong, twin;
	int r;

	if (!record)
		return -ENOKEY;
	wrong = number_of(image, record);
	/*
	 * The first of two equal records is accepted, but for doorbells before gfx9: there
	 * the number must be that of the queue.
	 */
	twin = row->change == SAME ? number_of(image, next) : wrong;
	change(row, record, next);
	args.num_gpus = kfd_v2_image_gpus(kfd, image, gpus);
	r = kfd_v2(kfd->fd, &args);
	return r && args.record != wrong && args.record != twin ? -EBADMSG : r;
}

static int is_refused(struct kfd *kfd, void *data)
{
	struct trial *trial = data;
	struct leak_baseline before;
	int r, wrong;

	leak_baseline_take(kfd, &before);
	r = trial->restore(kfd, trial);
	if (!r && trial->row->time == AT_RESUME)
		r = kfd_v1_resume(kfd->fd, getpid());
	if (!r)
		return 0;
	wrong = leak_check(kfd, &before);
	return wrong ? wrong : -r;
}

static void try_all(struct __test_metadata *_metadata, const struct kfd *kfd,
		    struct trial *trial, const struct refusal *rows,
		    unsigned int n)
{
	unsigned int i, tried = 0;

	for (i = 0; i < n; i++) {
		if (!applies(kfd, trial->fixture, rows[i].need))
			continue;
		trial->row = &rows[i];
		EXPECT_EQ(rows[i].error, kfd_in_child(is_refused, trial))
			TH_LOG("row %u: %s, record %u", i, rows[i].what,
			       rows[i].record);
		tried++;
	}
	TH_LOG("%u of %u rows", tried, n);
}

TEST_F_TIMEOUT(refuse, wrong_members_of_released_images, LIMIT_S)
{
	struct trial trial = { .fixture = &self->fixture, .restore = restore_v1 };

	try_all(_metadata, &self->kfd, &trial, v1_refusals, num_v1_refusals);
}

TEST_F_TIMEOUT(refuse, wrong_members_of_extensible_images, LIMIT_S)
{
	struct trial trial = { .fixture = &self->fixture, .restore = restore_v2 };

	try_all(_metadata, &self->kfd, &trial, v2_refusals, num_v2_refusals);
}

/* ---- arguments ---- */

/* Each wrong argument is refused before the driver reads the image. */
static int refuses_args(struct kfd *kfd, void *data)
{
	struct fixture *fixture = data;
	struct kfd_v1_image wrong[6];
	unsigned int i;

	for (i = 0; i < 6; i++)
		wrong[i] = fixture->v1;
	wrong[0].args.bos = 0;
	wrong[1].args.devices = 0;
	wrong[2].args.priv_data = 0;
	wrong[3].args.priv_data_size = 0;
	wrong[4].args.num_bos = ~0U;
	wrong[5].args.num_devices = KFD_MAX_GPUS + 1;
	for (i = 0; i < 6; i++) {
		struct leak_baseline before;

		leak_baseline_take(kfd, &before);
		wrong[i].args.op = KFD_CRIU_OP_RESTORE;
		if (kfd_v1(kfd->fd, &wrong[i].args) != -EINVAL ||
		    leak_check(kfd, &before))
			return i + 1;
	}
	return 0;
}

static int is_restored_v1(struct kfd *kfd, void *data)
{
	struct leak_baseline before;
	int r;

	leak_baseline_take(kfd, &before);
	r = kfd_v1_image_restore(kfd, data);
	return leak_check(kfd, &before) ?: -r;
}

static int is_restored_v2(struct kfd *kfd, void *data)
{
	struct leak_baseline before;
	int r;

	leak_baseline_take(kfd, &before);
	r = kfd_v2_image_restore(kfd, data);
	return r ? leak_check(kfd, &before) ?: -r : 0;
}

TEST_F_TIMEOUT(refuse, wrong_arguments_of_a_restore, LIMIT_S)
{
	struct kfd_v1_image *image = &self->fixture.v1;

	EXPECT_EQ(0, kfd_in_child(refuses_args, &self->fixture));
	image->args.num_objects++;
	EXPECT_EQ(EINVAL, kfd_in_child(is_restored_v1, image));
	image->args.num_objects -= 2;
	EXPECT_EQ(EINVAL, kfd_in_child(is_restored_v1, image));
	image->args.num_objects++;
	image->args.num_devices = 0;
	EXPECT_EQ(EINVAL, kfd_in_child(is_restored_v1, image));
}

/* Which of the device arguments is wrong. */
struct choice {
	struct fixture *fixture;
	const struct kfd *parent;	/* render nodes of another process */
	unsigned int wrong;
};

/* Changes the arguments in one way; returns whether there is a way of that number. */
static bool spoil_gpus(const struct choice *choice, struct kfd *kfd,
		       struct kfd_criu_args *args, struct kfd_criu_gpu *gpus)
{
	switch (choice->wrong) {
	case 0:
		gpus[0].reserved = 1;
		break;
	case 1:
		gpus[0].gpu_id = ~0U;
		break;
	case 2:
		gpus[0].drm_fd = -1;
		break;
	case 3:
		gpus[0].drm_fd = kfd->fd;
		break;
	case 4:
		gpus[0].drm_fd = choice->parent->gpus[0].drm;
		break;
	case 5:
		args->num_gpus = 0;
		break;
	case 6:
		args->gpus = 8;
		break;
	case 7:
		gpus[0].drm_fd = -2;
		break;
	case 8:
		args->num_gpus = KFD_CRIU_MAX_GPUS + 1;
		break;
	case 9:
		gpus[args->num_gpus++] = (struct kfd_criu_gpu){
			.user_gpu_id = 1,	/* not in the image */
			.gpu_id = gpus[0].gpu_id,
			.drm_fd = -1,
		};
		break;
	case 10:
		gpus[args->num_gpus++] = gpus[0];
		break;
	case 11:
		gpus[0].user_gpu_id = 0x10000;
		break;
	case 12:
		if (args->num_gpus < 2)
			gpus[1] = gpus[0];
		args->num_gpus = 2;
		gpus[1].user_gpu_id = gpus[0].user_gpu_id;
		break;
	case 13:
		args->num_gpus = 2;
		gpus[1].gpu_id = gpus[0].gpu_id;
		gpus[1].drm_fd = gpus[0].drm_fd;
		break;
	default:
		return false;
	}
	return true;
}

/* A GPU that is refused leaves the process as it was. */
static int restores_on_wrong_device(struct kfd *kfd, void *data)
{
	const struct choice *choice = data;
	struct kfd_criu_gpu gpus[KFD_CRIU_MAX_GPUS + 1] = {};
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESTORE,
		.data = (unsigned long)choice->fixture->v2.data,
		.data_size = choice->fixture->v2.size,
		.gpus = (unsigned long)gpus,
		.num_gpus = kfd_v2_image_gpus(kfd, &choice->fixture->v2, gpus),
	};
	struct leak_baseline before;
	int r;

	if (!spoil_gpus(choice, kfd, &args, gpus))
		return 255;
	leak_baseline_take(kfd, &before);
	r = kfd_v2(kfd->fd, &args);
	if (args.state != KFD_CRIU_STATE_RUNNING)
		return 254;
	return leak_check(kfd, &before) ?: -r;
}

TEST_F_TIMEOUT(refuse, devices_that_do_not_exist, LIMIT_S)
{
	static const int errors[] = {
		EINVAL, ENODEV, EINVAL, EINVAL, EINVAL, ENODEV,
		EFAULT, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL,
		EINVAL, EINVAL,
	};
	struct choice choice = { &self->fixture, &self->kfd, 0 };

	for (; choice.wrong < sizeof(errors) / sizeof(*errors); choice.wrong++) {
		EXPECT_EQ(errors[choice.wrong], kfd_in_child(restores_on_wrong_device, &choice))
			TH_LOG("choice %u", choice.wrong);
	}
	EXPECT_EQ(255, kfd_in_child(restores_on_wrong_device, &choice));
}

/* An SDMA queue cannot have global wave sync. */
static int restore_with_wave_sync(struct kfd *kfd, struct fixture *fixture, __u32 type)
{
	struct kfd_criu_record_queue *queue;
	unsigned int i;

	for (i = 0; (queue = (void *)v2_nth(&fixture->v2, KFD_CRIU_RECORD_QUEUE, i)); i++)
		queue->flags = queue->type == type ? KFD_CRIU_QUEUE_GWS : 0;
	return is_restored_v2(kfd, &fixture->v2);
}

static int has_wave_sync_for_sdma(struct kfd *kfd, void *data)
{
	return restore_with_wave_sync(kfd, data, KFD_IOC_QUEUE_TYPE_SDMA);
}

/* The fixture has two queues of this type, but a process has global wave sync once. */
static int has_wave_sync_twice(struct kfd *kfd, void *data)
{
	return restore_with_wave_sync(kfd, data, KFD_IOC_QUEUE_TYPE_COMPUTE);
}

TEST_F_TIMEOUT(refuse, wave_sync_that_the_gpu_cannot_give, LIMIT_S)
{
	const int error = self->fixture.gws ? EBUSY : ENODEV;

	EXPECT_EQ(error, kfd_in_child(has_wave_sync_for_sdma, &self->fixture));
	EXPECT_EQ(error, kfd_in_child(has_wave_sync_twice, &self->fixture));
}

/* XNACK is accepted only where AMDKFD_IOC_SET_XNACK_MODE can enable it. */
TEST_F_TIMEOUT(refuse, retried_faults_on_gpus_without_xnack, LIMIT_S)
{
	struct kfd_ioctl_set_xnack_mode_args args = { .xnack_enabled = 1 };
	struct kfd_criu_record_process *process =
		(void *)v2_nth(&self->fixture.v2, KFD_CRIU_RECORD_PROCESS, 0);
	const bool can = !ioctl(self->kfd.fd, AMDKFD_IOC_SET_XNACK_MODE, &args);

	process->flags |= KFD_CRIU_PROCESS_XNACK;
	EXPECT_EQ(can ? 0 : EPERM,
		  kfd_in_child(is_restored_v2, &self->fixture.v2));
}

/* ---- one GPU of two ---- */

FIXTURE(one_gpu) {
	struct kfd kfd;
	struct kfd_bo bo;
	struct kfd_queue queue;
	struct kfd_v2_image image;
	struct kfd_criu_record_device *other;
};

FIXTURE_SETUP(one_gpu)
{
	memset(&self->image, 0, sizeof(self->image));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (self->kfd.num_gpus < 2)
		SKIP(return, "fewer than two AMD GPUs");
	ASSERT_EQ(0, kfd_acquire_vm(&self->kfd, 0));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, KFD_PAGE,
				   &self->bo));
	ASSERT_EQ(0, kfd_queue_create(&self->kfd, 0, &self->queue));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	ASSERT_EQ(0, kfd_queue_destroy(&self->kfd, &self->queue));
	self->other = (void *)v2_nth(&self->image, KFD_CRIU_RECORD_DEVICE, 1);
	ASSERT_NE(NULL, self->other);
	ASSERT_EQ(0, self->other->flags);
}

FIXTURE_TEARDOWN(one_gpu)
{
	free(self->image.data);
	kfd_close(&self->kfd);
}

TEST_F(one_gpu, is_restored_without_the_other)
{
	struct kfd_criu_record_queue *queue =
		(void *)v2_nth(&self->image, KFD_CRIU_RECORD_QUEUE, 0);
	struct kfd_criu_record_bo *bo =
		(void *)v2_nth(&self->image, KFD_CRIU_RECORD_BO, 0);
	const __u32 first = self->kfd.gpus[0].id;
	const __u32 second = self->kfd.gpus[1].id;
	__u32 *mapped = (void *)(bo + 1);

	EXPECT_EQ(0, kfd_in_child(is_restored_v2, &self->image));
	bo->gpu_id = second;
	EXPECT_EQ(EINVAL, kfd_in_child(is_restored_v2, &self->image));
	bo->gpu_id = first;
	*mapped = second;
	EXPECT_EQ(EINVAL, kfd_in_child(is_restored_v2, &self->image));
	*mapped = first;
	queue->gpu_id = second;
	EXPECT_EQ(EINVAL, kfd_in_child(is_restored_v2, &self->image));
}

/* Restores on both GPUs. Only GPU 0 has to have a file. */
static int restores_with_file_of_other(struct kfd *kfd, void *data)
{
	const struct kfd_v2_image *image = data;
	struct kfd_criu_gpu gpus[KFD_MAX_GPUS];
	const unsigned int n = kfd_v2_image_gpus(kfd, image, gpus);
	int r;

	gpus[1].drm_fd = kfd->gpus[1].drm;
	r = kfd_v2_image_restore_on(kfd, image, gpus, n);
	return kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING ? 254 : -r;
}

TEST_F(one_gpu, gets_no_file_of_the_other)
{
	EXPECT_EQ(EINVAL, kfd_in_child(restores_with_file_of_other, &self->image));
}

/* Restores on GPU 0, and also chooses GPU 1, of which the image says nothing. */
static int restores_on_gpu_without_record(struct kfd *kfd, void *data)
{
	const struct kfd_v2_image *image = data;
	const struct kfd_criu_gpu gpus[] = {
		{ kfd->gpus[0].id, kfd->gpus[0].id, kfd->gpus[0].drm },
		{ kfd->gpus[1].id, kfd->gpus[1].id, -1 },
	};
	const int r = kfd_v2_image_restore_on(kfd, image, gpus, 2);

	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 254;
	/* Without that element the image can be restored. */
	return kfd_v2_image_restore_on(kfd, image, gpus, 1) ? 253 : -r;
}

TEST_F(one_gpu, is_not_restored_on_a_gpu_without_a_record)
{
	struct kfd_criu_record_image *first = (void *)self->image.data;
	unsigned char *next = (unsigned char *)(self->other + 1);

	memmove(self->other, next, self->image.data + self->image.size - next);
	self->image.size -= sizeof(*self->other);
	first->size = self->image.size;
	first->num_records--;
	EXPECT_EQ(EINVAL, kfd_in_child(restores_on_gpu_without_record, &self->image));
}

/*
 * The image has one device, with the id of the machine's GPU 1, and it is restored on GPU 0.
 * The process then knows GPU 0 by the id of GPU 1, and needs another id for GPU 1.
 */
static int gets_id_of_other_gpu(struct kfd *kfd, void *data)
{
	const struct kfd_v2_image *image = data;
	struct kfd_process_device_apertures apertures[KFD_MAX_GPUS] = {};
	struct kfd_ioctl_get_process_apertures_new_args known = {
		.kfd_process_device_apertures_ptr = (unsigned long)apertures,
		.num_of_nodes = kfd->num_gpus,
	};
	struct kfd_criu_gpu device = {
		.user_gpu_id = kfd->gpus[1].id,
		.gpu_id = kfd->gpus[0].id,
		.drm_fd = kfd->gpus[0].drm,
	};

	if (kfd_v2_image_restore_on(kfd, image, &device, 1) || kfd_v2_resume(kfd))
		return 1;
	if (ioctl(kfd->fd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &known))
		return 2;
	/* Each GPU must have an id, and no two GPUs the same. */
	if (!apertures[0].gpu_id || !apertures[1].gpu_id ||
	    apertures[0].gpu_id == apertures[1].gpu_id)
		return 3;
	return apertures[0].gpu_id == kfd->gpus[1].id ||
	       apertures[1].gpu_id == kfd->gpus[1].id ? 0 : 4;
}

TEST_F(one_gpu, may_get_the_id_of_the_other_gpu)
{
	struct kfd_criu_record_image *first = (void *)self->image.data;
	struct kfd_criu_record_device *device =
		(void *)v2_nth(&self->image, KFD_CRIU_RECORD_DEVICE, 0);

	device->user_gpu_id = self->kfd.gpus[1].id;
	self->other->user_gpu_id = self->kfd.gpus[0].id;
	self->image.size = (unsigned char *)(self->other + 1) - self->image.data;
	first->size = self->image.size;
	first->num_records = 3;
	EXPECT_EQ(0, kfd_in_child(gets_id_of_other_gpu, &self->image));
}

TEST_F(one_gpu, returns_offsets_of_its_own_bos_only)
{
	const __u32 first = self->kfd.gpus[0].id;
	const int pause = self->image.pause_fd;
	struct kfd_criu_args probe = {
		.op = KFD_CRIU_CMD_PROBE,
		.data = 8,
		.data_size = sizeof(struct kfd_criu_probe),
	};
	__u64 offset;
	int fd;

	EXPECT_EQ(0, kfd_v2_bo_offset(&self->kfd, pause, first, self->bo.handle,
				      &offset));
	EXPECT_EQ(-ENOENT, kfd_v2_bo_offset(&self->kfd, pause, first, ~0U,
					    &offset));
	EXPECT_EQ(-ENOENT, kfd_v2_bo_offset(&self->kfd, pause, ~0U,
					    self->bo.handle, &offset));
	EXPECT_EQ(-ENOENT, kfd_v2_export(&self->kfd, pause, ~0ULL, &fd));
	EXPECT_EQ(-EFAULT, kfd_v2(self->kfd.fd, &probe));
	ASSERT_EQ(0, kfd_v2_unpause(self->kfd.fd, pause));
	EXPECT_EQ(-EINVAL, kfd_v2_bo_offset(&self->kfd, KFD_NO_PAUSE, first,
					    self->bo.handle, &offset));
	/* Process 1 exists, but does not use GPUs. */
	EXPECT_EQ(-ESRCH, kfd_v1_resume(self->kfd.fd, 1));
}

/* The slot of a queue cannot be given to a second queue. */
TEST(a_queue_slot_that_is_taken_is_refused)
{
	struct kfd_v2_image image;
	struct kfd_queue queue;
	struct kfd kfd;

	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&kfd));
	ASSERT_EQ(0, kfd_queue_create(&kfd, 0, &queue));
	ASSERT_EQ(0, kfd_v2_image_dump(kfd.fd, &image));
	EXPECT_EQ(EBUSY, kfd_in_child(is_restored_v2, &image));
	ASSERT_EQ(0, kfd_queue_destroy(&kfd, &queue));
	EXPECT_EQ(0, kfd_in_child(is_restored_v2, &image));
	free(image.data);
	kfd_close(&kfd);
}

KFD_TEST_MAIN
