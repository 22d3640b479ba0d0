// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A process that is restored on other GPUs, or that uses only some GPUs of the machine: its
 * settings of a GPU are restored on the GPU that takes its place and on no other, and its
 * SVM ranges name no GPU that it does not use. A restore that fails before a GPU is bound
 * leaves the process as it was. Also a process for whose queues the hardware has no slots
 * left.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/event.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/settings.h"
#include "lib/svm.h"

#define TWO		2
#define WRITTEN		0x5eed0002U
#define RANGE_SIZE	(2 * KFD_PAGE)

/* Settings that every generation of hardware accepts, different for each GPU. */
static const struct kfd_settings settings[TWO] = {
	{ 0x200000000ULL, 0x30000000, 0x100000000ULL,
	  KFD_IOC_CACHE_POLICY_NONCOHERENT, KFD_IOC_CACHE_POLICY_COHERENT },
	{ 0x240000000ULL, 0x40000000, 0x180000000ULL,
	  KFD_IOC_CACHE_POLICY_COHERENT, KFD_IOC_CACHE_POLICY_NONCOHERENT },
};

FIXTURE(devices) {
	struct kfd kfd;
	/* The image, and the GPU on which each GPU of the image is restored. */
	struct move {
		struct kfd_v2_image image;
		unsigned int num_targets;
		unsigned int targets[TWO];
	} move;
};

FIXTURE_SETUP(devices)
{
	memset(&self->move, 0, sizeof(self->move));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (self->kfd.num_gpus < TWO)
		SKIP(return, "fewer than two AMD GPUs");
	if (self->kfd.gpus[0].gfx_version != self->kfd.gpus[1].gfx_version)
		SKIP(return, "the first two AMD GPUs are not of one kind");
	ASSERT_EQ(0, kfd_acquire_vm(&self->kfd, 0));
}

FIXTURE_TEARDOWN(devices)
{
	free(self->move.image.data);
	kfd_close(&self->kfd);
}

static int restore(const struct kfd *kfd, const struct move *move)
{
	struct kfd_criu_gpu devices[TWO] = {};
	unsigned int i;
	int r;

	for (i = 0; i < move->num_targets; i++) {
		const struct kfd_gpu *gpu = &kfd->gpus[move->targets[i]];

		devices[i].user_gpu_id = kfd->gpus[i].id;
		devices[i].gpu_id = gpu->id;
		devices[i].drm_fd = gpu->drm;
	}
	r = kfd_v2_image_restore_on(kfd, &move->image, devices, move->num_targets);
	return r ? r : kfd_v2_resume(kfd);
}

/* ---- settings ---- */

static bool is_acquired(const struct kfd_criu_record_device *device)
{
	return device->flags & KFD_CRIU_DEVICE_ACQUIRED;
}

/* The device with that user_gpu_id; for 0 the device that the process does not use. */
static struct kfd_criu_record_device *device_of(const struct kfd_v2_image *image,
						__u32 user_gpu_id)
{
	struct kfd_criu_record_device *device;
	unsigned int i;

	for (i = 0; (device = (void *)v2_nth(image, KFD_CRIU_RECORD_DEVICE, i)); i++)
		if (user_gpu_id ? device->user_gpu_id == user_gpu_id :
				  !is_acquired(device))
			break;
	return device;
}

static bool has_same_settings(const struct kfd_criu_record_device *a,
			      const struct kfd_criu_record_device *b)
{
	return a->flags == b->flags && a->tba == b->tba && a->tma == b->tma &&
	       a->scratch == b->scratch &&
	       a->default_policy == b->default_policy &&
	       a->alternate_policy == b->alternate_policy &&
	       a->aperture_base == b->aperture_base &&
	       a->aperture_size == b->aperture_size;
}

/* Returns 0, or the number of the first device whose settings changed, counted from 1. */
static int check_settings(struct kfd *kfd, void *data)
{
	const struct move *move = data;
	const struct kfd_criu_record_device *was, *is;
	struct kfd_v2_image again;
	unsigned int i;

	if (restore(kfd, move))
		return 10;
	if (kfd_v2_image_dump(kfd->fd, &again))
		return 11;
	for (i = 0; (was = (void *)v2_nth(&move->image, KFD_CRIU_RECORD_DEVICE, i)); i++) {
		is = device_of(&again, is_acquired(was) ? was->user_gpu_id : 0);
		if (!is || !has_same_settings(was, is))
			return i + 1;
	}
	return 0;
}

TEST_F(devices, settings_are_restored_on_the_gpu_that_takes_the_place)
{
	struct move *move = &self->move;
	const struct kfd_criu_record_device *device;

	ASSERT_EQ(0, kfd_settings_make(&self->kfd, 0, &settings[0]));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &move->image));
	device = device_of(&move->image, self->kfd.gpus[0].id);
	ASSERT_NE(NULL, device);
	EXPECT_EQ(KFD_CRIU_DEVICE_ACQUIRED | KFD_CRIU_DEVICE_POLICY, device->flags);
	EXPECT_EQ(settings[0].handler, device->tba);
	EXPECT_EQ(settings[0].scratch, device->scratch);
	move->num_targets = 1;
	EXPECT_EQ(0, kfd_in_child(check_settings, move));
	move->targets[0] = 1;
	EXPECT_EQ(0, kfd_in_child(check_settings, move));
}

TEST_F(devices, settings_are_not_mixed_up_when_gpus_are_swapped)
{
	struct move *move = &self->move;

	ASSERT_EQ(0, kfd_acquire_vm(&self->kfd, 1));
	ASSERT_EQ(0, kfd_settings_make(&self->kfd, 0, &settings[0]));
	ASSERT_EQ(0, kfd_settings_make(&self->kfd, 1, &settings[1]));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &move->image));
	move->num_targets = TWO;
	move->targets[0] = 1;
	EXPECT_EQ(0, kfd_in_child(check_settings, move));
}

/* ---- SVM ranges ---- */

static struct kfd_criu_record_svm_range *range_of(const struct kfd_v2_image *image)
{
	return (void *)v2_nth(image, KFD_CRIU_RECORD_SVM_RANGE, 0);
}

/* The entry of the range for a device; NULL if the range has none. The range is the last
 * record of the image.
 */
static struct kfd_criu_svm_device *access_of(const struct kfd_v2_image *image,
					     __u32 gpu_id)
{
	struct kfd_criu_record_svm_range *range = range_of(image);
	struct kfd_criu_svm_device *devices = (void *)(range + 1);
	unsigned int i;

	for (i = 0; i < range->num_access; i++)
		if (devices[i].gpu_id == gpu_id)
			return &devices[i];
	return NULL;
}

static void set_access(struct kfd_v2_image *image, __u32 gpu_id, __u32 access)
{
	struct kfd_criu_record_image *first = (void *)image->data;
	struct kfd_criu_record_svm_range *range = range_of(image);
	struct kfd_criu_svm_device *device = access_of(image, gpu_id);

	if (!device) {
		device = (void *)(image->data + image->size);
		range->num_access++;
		range->record.size += sizeof(*device);
		image->size += sizeof(*device);
		first->size = image->size;
	}
	device->gpu_id = gpu_id;
	device->access = access;
}

static void drop_device(struct kfd_v2_image *image, __u32 user_gpu_id)
{
	struct kfd_criu_record_image *first = (void *)image->data;
	struct kfd_criu_record_device *device = device_of(image, user_gpu_id);
	unsigned char *next = (unsigned char *)(device + 1);

	memmove(device, next, image->data + image->size - next);
	image->size -= sizeof(*device);
	first->size = image->size;
	first->num_records--;
}

/* Creates a range that only GPU 0 has access to. Returns its memory, or NULL. */
static __u32 *make_range(const struct kfd *kfd)
{
	__u32 *memory = svm_memory(RANGE_SIZE);

	if (!memory)
		return NULL;
	*memory = 1;
	return svm_set_access(kfd, memory, RANGE_SIZE, 0,
			      KFD_IOCTL_SVM_ATTR_ACCESS) ? NULL : memory;
}

TEST_F(devices, an_svm_range_names_no_gpu_that_is_not_used)
{
	const struct kfd_v2_image *image = &self->move.image;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_NE(NULL, make_range(&self->kfd));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->move.image));
	ASSERT_NE(NULL, range_of(image));
	EXPECT_EQ(1, range_of(image)->num_access);
	ASSERT_NE(NULL, access_of(image, self->kfd.gpus[0].id));
	EXPECT_EQ(KFD_IOCTL_SVM_ATTR_ACCESS,
		  access_of(image, self->kfd.gpus[0].id)->access);
}

/* Lets the GPU on which the process was restored write to the range, by a new queue. */
static bool is_reached(struct kfd *kfd, const struct move *move, __u32 *memory)
{
	const unsigned int gpu = move->targets[0];
	struct kfd_queue queue;

	kfd->gpus[gpu].id = kfd->gpus[0].id;
	if (kfd_queue_create(kfd, gpu, &queue))
		return false;
	kfd_sdma_write(&queue, (unsigned long)memory, WRITTEN);
	return wait_for_word(memory, WRITTEN);
}

static int check_range(struct kfd *kfd, void *data)
{
	const struct move *move = data;
	const int r = restore(kfd, move);

	if (r)
		return -r;
	return is_reached(kfd, move,
			  (void *)(unsigned long)range_of(&move->image)->start) ?
		       0 : 255;
}

TEST_F(devices, an_svm_range_is_reached_by_the_gpu_that_takes_the_place)
{
	struct move *move = &self->move;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_NE(NULL, make_range(&self->kfd));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &move->image));
	ASSERT_NE(NULL, range_of(&move->image));
	move->num_targets = 1;
	EXPECT_EQ(0, kfd_in_child(check_range, move));
	move->targets[0] = 1;
	EXPECT_EQ(0, kfd_in_child(check_range, move));
	/* Older kernels wrote images whose ranges name GPUs that the process does not use. */
	set_access(&move->image, self->kfd.gpus[1].id,
		   KFD_IOCTL_SVM_ATTR_NO_ACCESS);
	EXPECT_EQ(0, kfd_in_child(check_range, move));
	move->targets[0] = 0;
	EXPECT_EQ(0, kfd_in_child(check_range, move));
}

/* The driver has no page tables of the process on a GPU that the process does not use. */
TEST_F(devices, an_svm_range_is_refused_to_a_gpu_that_is_not_used)
{
	void *memory;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	memory = make_range(&self->kfd);
	ASSERT_NE(NULL, memory);
	EXPECT_EQ(-EINVAL, svm_set_access(&self->kfd, memory, RANGE_SIZE, 1,
					  KFD_IOCTL_SVM_ATTR_ACCESS));
	EXPECT_EQ(-EINVAL, svm_set_access(&self->kfd, memory, RANGE_SIZE, 1,
					  KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE));
	EXPECT_EQ(0, svm_set_access(&self->kfd, memory, RANGE_SIZE, 0,
				    KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE));
}

static int is_refused(struct kfd *kfd, void *data)
{
	return -restore(kfd, data);
}

/* The process does not use GPU 1; for the last two images GPU 1 is no device of them. */
TEST_F(devices, an_image_cannot_give_an_svm_range_to_another_gpu)
{
	struct move *move = &self->move;
	const __u32 other = self->kfd.gpus[1].id;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_NE(NULL, make_range(&self->kfd));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &move->image));
	ASSERT_NE(NULL, range_of(&move->image));
	ASSERT_NE(NULL, device_of(&move->image, other));
	move->num_targets = 1;
	set_access(&move->image, other, KFD_IOCTL_SVM_ATTR_ACCESS);
	EXPECT_EQ(EINVAL, kfd_in_child(is_refused, move));
	set_access(&move->image, other, KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE);
	EXPECT_EQ(EINVAL, kfd_in_child(is_refused, move));
	drop_device(&move->image, other);
	EXPECT_EQ(EINVAL, kfd_in_child(is_refused, move));
	set_access(&move->image, other, KFD_IOCTL_SVM_ATTR_ACCESS);
	EXPECT_EQ(EINVAL, kfd_in_child(is_refused, move));
}

/* Removes all devices but the first, and lets the range name the second one. */
static void name_second_gpu(struct kfd_v1_image *image)
{
	const __u64 devices = (image->args.num_devices - 1) * V1_DEVICE_SIZE;
	const __u64 attributes = (image->args.num_devices - 1) *
				 sizeof(struct kfd_ioctl_svm_attribute);
	unsigned char *second = image->priv + V1_PROCESS_SIZE + V1_DEVICE_SIZE;
	struct kfd_ioctl_svm_attribute *access;

	image->args.priv_data_size -= devices;
	memmove(second, second + devices,
		image->priv + image->args.priv_data_size - second);
	image->args.num_devices = 1;
	access = (void *)(image->priv + v1_objects(image) + V1_SVM_ATTRIBUTES);
	access[V1_SVM_COMMON].type = KFD_IOCTL_SVM_ATTR_ACCESS;
	access[V1_SVM_COMMON].value = image->devices[1].user_gpu_id;
	image->args.priv_data_size -= attributes;
}

static int is_refused_v1(struct kfd *kfd, void *data)
{
	const int r = kfd_v1_image_restore(kfd, data);

	return -(r ? r : kfd_v1_resume(kfd->fd, getpid()));
}

TEST_F(devices, an_image_of_the_released_abi_cannot_give_it_either)
{
	struct kfd_v1_image image;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_NE(NULL, make_range(&self->kfd));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &image));
	ASSERT_EQ(V1_SVM, v1_word(&image, v1_objects(&image)));
	name_second_gpu(&image);
	EXPECT_EQ(EINVAL, kfd_in_child(is_refused_v1, &image));
	kfd_v1_image_free(&image);
}

/* ---- ids of GPUs after a failed restore ---- */

/* Stores the ids by which the process knows its GPUs, in the order of the topology. */
static int known_ids(const struct kfd *kfd, __u32 *ids)
{
	struct kfd_process_device_apertures apertures[KFD_MAX_GPUS] = {};
	struct kfd_ioctl_get_process_apertures_new_args args = {
		.kfd_process_device_apertures_ptr = (unsigned long)apertures,
		.num_of_nodes = kfd->num_gpus,
	};
	const int r = kfd_call(kfd->fd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args);
	unsigned int i;

	for (i = 0; i < kfd->num_gpus; i++)
		ids[i] = apertures[i].gpu_id;
	return r;
}

/* A restore that exchanges the ids of two GPUs, and then fails. */
struct exchange {
	struct kfd_v2_image image;
	int used;	/* open file of GPU 0's render node, or -1 */
	int error;	/* the error of the restore, or 0 for any */
};

static int keeps_its_ids(struct kfd *kfd, void *data)
{
	const struct exchange *exchange = data;
	const struct kfd_criu_gpu gpus[TWO] = {
		{ kfd->gpus[0].id, kfd->gpus[1].id, -1 },
		{ kfd->gpus[1].id, kfd->gpus[0].id, exchange->used },
	};
	__u32 before[KFD_MAX_GPUS], after[KFD_MAX_GPUS];
	int r;

	if (known_ids(kfd, before))
		return 1;
	r = kfd_v2_image_restore_on(kfd, &exchange->image, gpus, TWO);
	if (!r || (exchange->error && r != exchange->error))
		return 2;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 3;
	if (known_ids(kfd, after))
		return 4;
	return memcmp(before, after, kfd->num_gpus * sizeof(*before)) ? 5 : 0;
}

/* The ids are exchanged before the driver finds that the image has no GPU to bind. */
TEST_F(devices, a_failed_restore_leaves_the_ids_of_gpus)
{
	struct exchange exchange = { .used = -1, .error = -EINVAL };
	struct kfd_criu_record_device *device;
	unsigned int i;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->move.image));
	exchange.image = self->move.image;
	for (i = 0; (device = (void *)v2_nth(&exchange.image, KFD_CRIU_RECORD_DEVICE, i)); i++)
		device->flags = 0;
	EXPECT_EQ(0, kfd_in_child(keeps_its_ids, &exchange));
}

/*
 * GPU 1 gets the id of GPU 0, then GPU 0 cannot be bound: its render node has a VM of another
 * process already.
 */
TEST_F(devices, a_gpu_that_cannot_be_bound_leaves_the_ids_of_gpus)
{
	struct exchange exchange = { .used = self->kfd.gpus[0].drm };
	struct kfd_criu_record_device *device;
	unsigned int i;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->move.image));
	exchange.image = self->move.image;
	for (i = 0; (device = (void *)v2_nth(&exchange.image, KFD_CRIU_RECORD_DEVICE, i)); i++)
		device->flags = device->user_gpu_id == self->kfd.gpus[1].id ?
				       KFD_CRIU_DEVICE_ACQUIRED : 0;
	EXPECT_EQ(0, kfd_in_child(keeps_its_ids, &exchange));
}

/* ---- a process that is not new ---- */

FIXTURE(used_process) {
	struct kfd kfd;
	struct kfd_bo page;
	struct both_images {
		struct kfd_v1_image v1;
		struct kfd_v2_image v2;
	} images;
};

FIXTURE_SETUP(used_process)
{
	__u32 id;

	memset(&self->images, 0, sizeof(self->images));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vm(&self->kfd, 0));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, KFD_EVENT_PAGE_SIZE,
				   &self->page));
	ASSERT_EQ(0, kfd_event_create_type(&self->kfd, self->page.handle,
					   KFD_IOC_EVENT_SIGNAL, false, &id));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->images.v1));
	ASSERT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->images.v2));
}

FIXTURE_TEARDOWN(used_process)
{
	kfd_v1_image_close_files(&self->images.v1);
	kfd_v1_image_free(&self->images.v1);
	free(self->images.v2.data);
	kfd_close(&self->kfd);
}

/* Both images are refused, and the process can still do what it wants. */
static int is_refused_as_used(struct kfd *kfd, void *data)
{
	struct both_images *images = data;

	if (kfd_v1_image_restore(kfd, &images->v1) != -EINVAL)
		return 10;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 11;
	if (kfd_v2_image_restore(kfd, &images->v2) != -EINVAL)
		return 12;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 13;
	return kfd_acquire_vms(kfd) ? 14 : 0;
}

static int has_had_an_event(struct kfd *kfd, void *data)
{
	struct kfd_ioctl_destroy_event_args args = {};

	if (kfd_event_create_type(kfd, 0, KFD_IOC_EVENT_SIGNAL, false, &args.event_id) ||
	    kfd_call(kfd->fd, AMDKFD_IOC_DESTROY_EVENT, &args))
		return 1;
	return is_refused_as_used(kfd, data);
}

/* The driver keeps the event page of a process whose events are destroyed. */
TEST_F(used_process, is_not_restored_after_its_events)
{
	EXPECT_EQ(0, kfd_in_child(has_had_an_event, &self->images));
}

/* Returns the number of the first call that succeeds. */
static int sets_without_vm(struct kfd *kfd, void *data)
{
	const struct kfd_ioctl_svm_attribute attribute = {
		.type = KFD_IOCTL_SVM_ATTR_GRANULARITY,
		.value = 4,
	};
	void *memory = svm_memory(RANGE_SIZE);

	if (!kfd_settings_policy(kfd, 0, &settings[0]))
		return 1;
	if (!kfd_settings_handler(kfd, 0, &settings[0]))
		return 2;
	if (!kfd_settings_scratch(kfd, 0, &settings[0]))
		return 3;
	return svm_set(kfd, memory, RANGE_SIZE, &attribute, 1) ? 0 : 4;
}

/* So RESTORE need not look for them in a process that has no VM. */
TEST_F(used_process, has_no_settings_and_no_svm_range_without_a_vm)
{
	EXPECT_EQ(0, kfd_in_child(sets_without_vm, NULL));
}

/* ---- no slot for a queue ---- */

#define TRIES		64
#define LIMIT_S		300

/* Bytes of system memory that the driver allocated for a GPU, for all processes. */
static long long gtt_used(const struct kfd_gpu *gpu)
{
	char path[96];
	long long bytes = -1;
	FILE *file;

	snprintf(path, sizeof(path),
		 "/sys/class/drm/renderD%u/device/mem_info_gtt_used",
		 gpu->render_minor);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lld", &bytes) != 1)
		bytes = -1;
	if (file)
		fclose(file);
	return bytes;
}

/* Takes all slots for queues, then tries so often to create one more. */
static int create_too_many_queues(struct kfd *kfd, void *data)
{
	const unsigned int *tries = data;
	struct kfd_queue queue;
	unsigned int i;

	if (kfd_acquire_vms(kfd))
		return 1;
	for (i = 0; !kfd_queue_create(kfd, 0, &queue); i++)
		if (i > 1000)
			return 2;
	for (i = 0; i < *tries; i++)
		if (!kfd_queue_create(kfd, 0, &queue))
			return 3;
	return 0;
}

FIXTURE(queue_slots) {
	struct kfd kfd;
};

FIXTURE_SETUP(queue_slots)
{
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
}

FIXTURE_TEARDOWN(queue_slots)
{
	kfd_close(&self->kfd);
}

TEST_F_TIMEOUT(queue_slots, creating_too_many_leaks_no_memory, LIMIT_S)
{
	const struct kfd_gpu *gpu = &self->kfd.gpus[0];
	unsigned int tries = 1;
	long long before;
	int i;

	EXPECT_EQ(0, kfd_in_child(create_too_many_queues, &tries));
	before = gtt_used(gpu);
	ASSERT_LT(0, before);
	tries = TRIES;
	EXPECT_EQ(0, kfd_in_child(create_too_many_queues, &tries));
	/* A worker of the driver frees what the child had. */
	for (i = 0; i < 1000 && gtt_used(gpu) >= before + TRIES * (long long)KFD_PAGE; i++)
		usleep(10 * 1000);
	EXPECT_GT(before + TRIES * (long long)KFD_PAGE, gtt_used(gpu));
}

KFD_TEST_MAIN
