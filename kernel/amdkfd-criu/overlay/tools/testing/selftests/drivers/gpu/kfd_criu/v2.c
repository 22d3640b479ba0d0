// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The extensible ABI: what it refuses, how its structures may grow, and a checkpoint that
 * is restored.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/event.h"
#include "lib/fixture.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/svm.h"

#define CALL(size)	_IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, \
			     _IOC_NR(AMDKFD_IOC_CRIU), size)
#define UNKNOWN_TYPE	1000
/* Values that every generation of hardware accepts. */
#define APERTURE_BASE	0x100000000ULL
#define APERTURE_SIZE	0x10000ULL

static int call_sized(int fd, void *args, size_t size)
{
	return ioctl(fd, CALL(size), args) ? -errno : 0;
}

static struct kfd_criu_record_device *device_of(const struct kfd_v2_image *image,
						const struct kfd_gpu *gpu)
{
	struct kfd_criu_record_device *device;
	unsigned int i;

	for (i = 0; (device = (void *)v2_nth(image, KFD_CRIU_RECORD_DEVICE, i)); i++)
		if (device->user_gpu_id == gpu->id)
			break;
	return device;
}

/* Appends a record of a type that no kernel knows. */
static void append_unknown(struct kfd_v2_image *image, __u16 flags)
{
	struct kfd_criu_record_image *first = (void *)image->data;
	struct kfd_criu_record *last = v2_record(image, image->size);

	*last = (struct kfd_criu_record){
		.type = UNKNOWN_TYPE,
		.version = 1,
		.flags = flags,
		.fixed_size = sizeof(*last),
		.size = sizeof(*last) + 8,
	};
	image->size += last->size;
	first->size = image->size;
	first->num_records++;
}

FIXTURE(v2) {
	struct kfd kfd;
	struct fixture fixture;
	struct kfd_v2_image image;
};

FIXTURE_SETUP(v2)
{
	memset(&self->image, 0, sizeof(self->image));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, fixture_create(&self->kfd, &self->fixture, FIXTURE_BOS));
}

FIXTURE_TEARDOWN(v2)
{
	free(self->image.data);
	kfd_close(&self->kfd);
}

TEST_F(v2, probe_returns_operations_and_record_versions)
{
	struct kfd_criu_probe probe = {};
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_PROBE,
		.data = (unsigned long)&probe,
		.data_size = sizeof(probe),
	};

	ASSERT_EQ(0, kfd_v2(self->kfd.fd, &args));
	EXPECT_EQ(sizeof(probe), probe.size);
	EXPECT_EQ(sizeof(args), probe.args_size);
	EXPECT_EQ(0x3ff, probe.ops & 0x3ff);
	EXPECT_EQ(1, probe.minor_version);
	EXPECT_EQ(KFD_CRIU_PAUSE_DRM_OBJECTS,
		  probe.pause_flags & KFD_CRIU_PAUSE_DRM_OBJECTS);
	EXPECT_EQ(1, probe.record_versions[KFD_CRIU_RECORD_SVM_RANGE]);
	EXPECT_EQ(0, probe.record_versions[0]);
	/* A caller that was compiled before the last member existed. */
	probe.pause_flags = ~0ULL;
	args.data_size = offsetof(struct kfd_criu_probe, pause_flags);
	EXPECT_EQ(0, kfd_v2(self->kfd.fd, &args));
	EXPECT_EQ(~0ULL, probe.pause_flags);
	args.data_size = 3;
	EXPECT_EQ(-EINVAL, kfd_v2(self->kfd.fd, &args));
}

TEST_F(v2, larger_arguments_are_accepted_if_the_rest_is_zero)
{
	struct {
		struct kfd_criu_args args;
		__u64 more[4];
	} larger = { .args.op = KFD_CRIU_CMD_STATE };

	EXPECT_EQ(0, call_sized(self->kfd.fd, &larger, sizeof(larger)));
	larger.args = (struct kfd_criu_args){ .op = KFD_CRIU_CMD_STATE };
	larger.more[3] = 1;
	EXPECT_EQ(-E2BIG, call_sized(self->kfd.fd, &larger, sizeof(larger)));
	larger.args = (struct kfd_criu_args){ .op = KFD_CRIU_CMD_STATE };
	EXPECT_EQ(-EINVAL, call_sized(self->kfd.fd, &larger,
				      KFD_CRIU_ARGS_SIZE_VER0 - 1));
	EXPECT_EQ(-EINVAL, call_sized(self->kfd.fd, &larger,
				      sizeof(struct kfd_ioctl_criu_args)));
}

TEST_F(v2, arguments_that_an_operation_does_not_use_must_be_zero)
{
	const struct kfd_criu_args wrong[] = {
		{ .op = KFD_CRIU_CMD_STATE, .flags = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .data = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .data_size = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .gpus = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .num_gpus = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .gpu_id = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .handle = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .pid = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .state = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .fd = -1 },
		{ .op = KFD_CRIU_CMD_STATE, .pause_fd = -1 },
		{ .op = KFD_CRIU_CMD_STATE, .offset = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .memories = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .num_memories = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .timeout_ms = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .reason = 1 },
		{ .op = KFD_CRIU_CMD_STATE, .record = 1 },
		{ .op = KFD_CRIU_CMD_PAUSE, .flags = KFD_CRIU_PAUSE_DRM_OBJECTS << 1 },
		{ .op = KFD_CRIU_CMD_RESUME, .flags = KFD_CRIU_RESUME_FD << 1 },
		{ .op = KFD_CRIU_CMD_RESTORE, .flags = KFD_CRIU_PRIVATE_COPY << 1 },
		{ .op = KFD_CRIU_CMD_BO_OFFSET + 1 },
		{ .op = ~0U },
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct kfd_criu_args args = wrong[i];

		EXPECT_EQ(-EINVAL, kfd_v2(self->kfd.fd, &args))
			TH_LOG("args %u", i);
	}
}

TEST_F(v2, pause_returns_the_size_of_the_image_and_the_process_id)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };

	ASSERT_EQ(0, kfd_v2(self->kfd.fd, &args));
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, args.state);
	EXPECT_EQ(getpid(), args.pid);
	EXPECT_LT(0, args.data_size);
	EXPECT_EQ(FD_CLOEXEC, fcntl(args.fd, F_GETFD));
	EXPECT_EQ(0, kfd_v2_unpause(self->kfd.fd, args.fd));
}

/* AMDKFD_IOC_CREATE_EVENT accepts types that neither it nor an image knows. */
TEST_F(v2, a_process_with_an_event_of_an_unknown_type_is_refused)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };
	struct kfd_ioctl_destroy_event_args destroy = { 0 };

	ASSERT_EQ(0, kfd_event_create_type(&self->kfd, 0, KFD_IOC_EVENT_MEMORY + 1,
					   false, &destroy.event_id));
	EXPECT_EQ(-EOPNOTSUPP, kfd_v2(self->kfd.fd, &args));
	EXPECT_EQ(KFD_CRIU_REASON_EVENT_TYPE, args.reason);
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, args.state);
	ASSERT_EQ(0, kfd_call(self->kfd.fd, AMDKFD_IOC_DESTROY_EVENT, &destroy));
	args = (struct kfd_criu_args){ .op = KFD_CRIU_CMD_PAUSE };
	EXPECT_EQ(0, kfd_v2(self->kfd.fd, &args));
	close(args.fd);
}

/* AMDKFD_IOC_SVM stores bits that it does not know; an image with them would be refused. */
TEST_F(v2, an_image_has_no_unknown_flags_of_svm_ranges)
{
	const struct kfd_ioctl_svm_attribute attribute = {
		.type = KFD_IOCTL_SVM_ATTR_SET_FLAGS,
		.value = 1U << 31 | KFD_IOCTL_SVM_FLAG_GPU_EXEC,
	};
	struct kfd_criu_record_svm_range *range;
	void *memory;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	memory = svm_memory(KFD_PAGE);
	ASSERT_NE(NULL, memory);
	ASSERT_EQ(0, svm_set(&self->kfd, memory, KFD_PAGE, &attribute, 1));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	range = (void *)v2_nth(&self->image, KFD_CRIU_RECORD_SVM_RANGE, 0);
	ASSERT_NE(NULL, range);
	EXPECT_EQ(0, range->flags >> 31);
	EXPECT_NE(0, range->flags & KFD_IOCTL_SVM_FLAG_GPU_EXEC);
}

TEST_F(v2, records_are_in_order_and_fill_the_image)
{
	unsigned int count[KFD_CRIU_RECORD_SVM_RANGE + 1] = {};
	const struct kfd_criu_record_image *first;
	__u32 newest = 0, records = 0;
	__u64 at;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	for (at = 0; at < self->image.size; records++) {
		const struct kfd_criu_record *record =
			v2_record(&self->image, at);

		ASSERT_GE(record->type, newest);
		ASSERT_LE(record->type, KFD_CRIU_RECORD_SVM_RANGE);
		ASSERT_EQ(1, record->version);
		ASSERT_EQ(0, record->size % 8);
		ASSERT_GE(record->size, sizeof(*record));
		newest = record->type;
		count[newest]++;
		at += record->size;
	}
	EXPECT_EQ(at, self->image.size);
	first = (void *)self->image.data;
	EXPECT_EQ(KFD_CRIU_IMAGE_MAGIC, first->magic);
	EXPECT_EQ(self->image.size, first->size);
	EXPECT_EQ(records, first->num_records);
	EXPECT_EQ(1, count[KFD_CRIU_RECORD_IMAGE]);
	EXPECT_EQ(1, count[KFD_CRIU_RECORD_PROCESS]);
	EXPECT_EQ(self->kfd.num_gpus, count[KFD_CRIU_RECORD_DEVICE]);
	EXPECT_EQ(FIXTURE_BOS_COUNT, count[KFD_CRIU_RECORD_BO]);
	EXPECT_EQ(1, count[KFD_CRIU_RECORD_EVENT]);
}

TEST_F(v2, an_image_that_does_not_fit_is_not_written)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_CHECKPOINT };

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	args.pause_fd = self->image.pause_fd;
	memset(self->image.data, 0, self->image.size);
	args.data = (unsigned long)self->image.data;
	args.data_size = self->image.size - 8;
	EXPECT_EQ(-E2BIG, kfd_v2(self->kfd.fd, &args));
	EXPECT_EQ(self->image.size, args.data_size);
	/* The buffer must not look like an image. */
	EXPECT_EQ(0, *(__u64 *)(self->image.data +
				offsetof(struct kfd_criu_record_image, magic)));
}

static int is_restored_the_same(struct kfd *kfd, void *data)
{
	struct kfd_v2_image *image = data;
	struct kfd_v2_image again;
	__u64 at, at2 = 0;

	if (kfd_v2_image_restore(kfd, image))
		return 1;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RESTORED)
		return 2;
	if (kfd_v2_resume(kfd))
		return 3;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 4;
	if (kfd_v2_image_dump(kfd->fd, &again))
		return 5;
	if (again.size != image->size)
		return 6;
	for (at = 0; at < image->size; at += v2_record(image, at)->size) {
		struct kfd_criu_record *was = v2_record(image, at);
		struct kfd_criu_record *is = v2_record(&again, at2);

		/* mmap offsets and inodes are new after each restore. */
		if (was->type == KFD_CRIU_RECORD_BO) {
			struct kfd_criu_record_bo *bo = (void *)was;

			bo->mmap_offset = ((struct kfd_criu_record_bo *)is)->mmap_offset;
			bo->inode = ((struct kfd_criu_record_bo *)is)->inode;
		}
		if (memcmp(was, is, was->size))
			return 10 + was->type;
		at2 += is->size;
	}
	return 0;
}

static int is_accepted(struct kfd *kfd, void *data)
{
	return -kfd_v2_image_restore(kfd, data);
}

TEST_F(v2, a_restored_process_is_checkpointed_as_the_first_one)
{
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(is_restored_the_same, &self->image));
}

TEST_F(v2, a_memory_policy_is_restored)
{
	struct kfd_ioctl_set_memory_policy_args args = {
		.gpu_id = self->kfd.gpus[0].id,
		.default_policy = KFD_IOC_CACHE_POLICY_NONCOHERENT,
		.alternate_policy = KFD_IOC_CACHE_POLICY_COHERENT,
		.alternate_aperture_base = APERTURE_BASE,
		.alternate_aperture_size = APERTURE_SIZE,
	};
	struct kfd_criu_record_device *device;

	ASSERT_EQ(0, ioctl(self->kfd.fd, AMDKFD_IOC_SET_MEMORY_POLICY, &args));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	device = device_of(&self->image, &self->kfd.gpus[0]);
	ASSERT_NE(NULL, device);
	EXPECT_EQ(KFD_CRIU_DEVICE_ACQUIRED | KFD_CRIU_DEVICE_POLICY,
		  device->flags);
	EXPECT_EQ(KFD_IOC_CACHE_POLICY_NONCOHERENT, device->default_policy);
	EXPECT_EQ(APERTURE_BASE, device->aperture_base);
	EXPECT_EQ(APERTURE_SIZE, device->aperture_size);
	EXPECT_EQ(0, kfd_in_child(is_restored_the_same, &self->image));
	device->alternate_policy = 2;
	EXPECT_EQ(EINVAL, kfd_in_child(is_accepted, &self->image));
}

TEST_F(v2, an_unknown_record_that_is_not_required_is_ignored)
{
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	append_unknown(&self->image, 0);
	EXPECT_EQ(0, kfd_in_child(is_accepted, &self->image));
}

static int is_without_event(struct kfd *kfd, void *data)
{
	struct kfd_v2_image again;

	if (kfd_v2_image_restore(kfd, data) || kfd_v2_resume(kfd))
		return 1;
	if (kfd_v2_image_dump(kfd->fd, &again))
		return 2;
	return v2_nth(&again, KFD_CRIU_RECORD_EVENT, 0) ? 3 : 0;
}

/* Removes everything but the record's header. */
static void empty(struct kfd_v2_image *image, struct kfd_criu_record *record)
{
	struct kfd_criu_record_image *first = (void *)image->data;
	const __u64 cut = record->size - sizeof(*record);
	unsigned char *next = (unsigned char *)record + record->size;

	memmove(record + 1, next, image->data + image->size - next);
	record->fixed_size = sizeof(*record);
	record->size = sizeof(*record);
	image->size -= cut;
	first->size = image->size;
}

/* A kernel that does not know the version knows neither its members nor its size. */
TEST_F(v2, an_unknown_version_that_is_not_required_is_ignored)
{
	struct kfd_criu_record *record;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	record = v2_nth(&self->image, KFD_CRIU_RECORD_EVENT, 0);
	ASSERT_NE(NULL, record);
	record->version = 2;
	record->flags = 0;
	EXPECT_EQ(0, kfd_in_child(is_without_event, &self->image));
	empty(&self->image, record);
	EXPECT_EQ(0, kfd_in_child(is_without_event, &self->image));
}

static int is_refused_untouched(struct kfd *kfd, void *data)
{
	const int r = kfd_v2_image_restore(kfd, data);

	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING || kfd_acquire_vms(kfd))
		return 255;
	return -r;
}

TEST_F(v2, an_unknown_record_that_is_required_is_refused)
{
	struct kfd_criu_record *record;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	record = v2_nth(&self->image, KFD_CRIU_RECORD_EVENT, 0);
	ASSERT_NE(NULL, record);
	record->version = 2;
	EXPECT_EQ(EPROTONOSUPPORT,
		  kfd_in_child(is_refused_untouched, &self->image));
	record->version = 1;
	append_unknown(&self->image, KFD_CRIU_RECORD_REQUIRED);
	EXPECT_EQ(EPROTONOSUPPORT,
		  kfd_in_child(is_refused_untouched, &self->image));
}

TEST_F_TIMEOUT(v2, an_image_of_another_length_is_refused, 600)
{
	__u64 whole;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	whole = self->image.size;
	for (self->image.size = 0; self->image.size < whole;
	     self->image.size += 72)
		EXPECT_EQ(EINVAL,
			  kfd_in_child(is_refused_untouched, &self->image))
			TH_LOG("%llu of %llu bytes",
			       (unsigned long long)self->image.size,
			       (unsigned long long)whole);
}

TEST_F(v2, another_gfx_version_is_refused)
{
	struct kfd_criu_record_device *device;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	device = (void *)v2_nth(&self->image, KFD_CRIU_RECORD_DEVICE, 0);
	ASSERT_NE(NULL, device);
	device->gfx_target_version++;
	EXPECT_EQ(ENXIO, kfd_in_child(is_refused_untouched, &self->image));
}

/* Removes all records from the first one of the type on. */
static void cut_before(struct kfd_v2_image *image, __u32 type)
{
	struct kfd_criu_record_image *first = (void *)image->data;
	__u64 at;

	first->num_records = 0;
	for (at = 0; at < image->size && v2_record(image, at)->type < type;
	     at += v2_record(image, at)->size)
		first->num_records++;
	image->size = at;
	first->size = at;
}

static int is_restored_and_resumed(struct kfd *kfd, void *data)
{
	int r = kfd_v2_image_restore(kfd, data);

	return -(r ? r : kfd_v2_resume(kfd));
}

TEST_F(v2, an_image_needs_devices_but_no_objects)
{
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	cut_before(&self->image, KFD_CRIU_RECORD_PROCESS);
	EXPECT_EQ(0, kfd_in_child(is_restored_and_resumed, &self->image));
	cut_before(&self->image, KFD_CRIU_RECORD_DEVICE);
	EXPECT_EQ(EINVAL, kfd_in_child(is_refused_untouched, &self->image));
}

static int export_bo(const FIXTURE_DATA(v2) *self, const struct kfd_bo *bo,
		     int pause_fd, int *fd)
{
	return kfd_v2_export(&self->kfd, pause_fd, bo->handle, fd);
}

TEST_F(v2, a_bo_is_exported_only_while_the_process_is_paused)
{
	char *bytes;
	int fd, pause;

	memcpy(self->fixture.gtt.cpu, "contents", sizeof("contents"));
	EXPECT_EQ(-EINVAL, export_bo(self, &self->fixture.gtt, KFD_NO_PAUSE, &fd));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(-EINVAL, export_bo(self, &self->fixture.gtt, KFD_NO_PAUSE, &fd));
	pause = self->image.pause_fd;
	ASSERT_EQ(0, export_bo(self, &self->fixture.gtt, pause, &fd));
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	bytes = mmap(NULL, self->fixture.gtt.size, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, bytes);
	EXPECT_STREQ("contents", bytes);
	close(fd);
	EXPECT_EQ(-ENOENT,
		  kfd_v2_export(&self->kfd, pause,
				self->fixture.gtt.handle + 77, &fd));
	EXPECT_EQ(-EINVAL, export_bo(self, &self->fixture.user, pause, &fd));
	ASSERT_EQ(0, kfd_v2_unpause(self->kfd.fd, pause));
	EXPECT_EQ(-EBADF, export_bo(self, &self->fixture.gtt, pause, &fd));
}

static int aborts_restore(struct kfd *kfd, void *data)
{
	const long long before = kfd_available(kfd, 0);

	if (kfd_v2_image_restore(kfd, data))
		return 1;
	if (kfd_v2_op(kfd->fd, KFD_CRIU_CMD_ABORT))
		return 2;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_ABORTED)
		return 3;
	if (!kfd_available_becomes(kfd, 0, before))
		return 4;
	return kfd_v2_op(kfd->fd, KFD_CRIU_CMD_ABORT) == -EINVAL ? 0 : 5;
}

/* The kernel must not wait for an image while interrupts of queues may come. */
TEST_F(v2, a_program_with_a_queue_is_refused_before_its_image_is_read)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESTORE,
		.data = ~0xfffULL,
		.data_size = 0x1000,
	};
	struct kfd_queue queue;

	ASSERT_EQ(0, kfd_queue_create(&self->kfd, 0, &queue));
	EXPECT_EQ(-EINVAL, kfd_v2(self->kfd.fd, &args));
	EXPECT_EQ(0, args.record);
	EXPECT_EQ(0, kfd_queue_destroy(&self->kfd, &queue));
}

TEST_F(v2, a_restore_can_be_aborted)
{
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	EXPECT_EQ(-EINVAL, kfd_v2_op(self->kfd.fd, KFD_CRIU_CMD_ABORT));
	EXPECT_EQ(0, kfd_in_child(aborts_restore, &self->image));
}

KFD_TEST_MAIN
