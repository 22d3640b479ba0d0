// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Buffers of the caller that end in the middle of an image of an object of every kind, and
 * a caller that may open no more files: the operation is refused and leaves nothing.
 *
 * Runs: once
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"

#define LIMIT_S		600

FIXTURE(short_buffers) {
	struct kfd kfd;
	struct fixture fixture;
};

FIXTURE_SETUP(short_buffers)
{
	int r = fixture_open_checkpointed(&self->kfd, &self->fixture,
					  FIXTURE_FULL);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
}

FIXTURE_TEARDOWN(short_buffers)
{
	fixture_free(&self->fixture);
	kfd_close(&self->kfd);
}

/* Pages that are accessible, and after them pages that are not. */
struct guarded {
	unsigned char *pages;
	size_t size;	/* bytes of the accessible pages */
};

static int guarded_create(struct guarded *buffer, size_t size)
{
	buffer->size = (size + KFD_PAGE - 1) / KFD_PAGE * KFD_PAGE;
	buffer->pages = mmap(NULL, buffer->size + 16 * KFD_PAGE,
			     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (buffer->pages == MAP_FAILED)
		return -errno;
	return mprotect(buffer->pages + buffer->size, 16 * KFD_PAGE, PROT_NONE) ?
		       -errno : 0;
}

/* The address behind which so many bytes are accessible. */
static unsigned char *guarded_before(const struct guarded *buffer, size_t bytes)
{
	return buffer->pages + buffer->size - bytes;
}

static void guarded_free(const struct guarded *buffer)
{
	munmap(buffer->pages, buffer->size + 16 * KFD_PAGE);
}

static int restore_v2(struct kfd *kfd, void *data)
{
	const int r = kfd_v2_image_restore(kfd, data);
	const int state = kfd_v2_state(kfd);

	if (r && state != KFD_CRIU_STATE_RUNNING &&
	    state != KFD_CRIU_STATE_ABORTED)
		return 255;
	return -r;
}

/* Restores the image up to its n-th record, of which so many bytes are accessible. */
static int restore_cut(const struct guarded *buffer, const struct kfd_v2_image *image,
		       __u64 at, unsigned int records, __u64 there)
{
	struct kfd_v2_image cut = {
		.data = guarded_before(buffer, at + there),
		.size = at + v2_record(image, at)->size,
		.gpus_of = image,
	};
	struct kfd_criu_record_image *first = (void *)cut.data;

	memcpy(cut.data, image->data, at + there);
	if (at) {
		first->size = cut.size;
		first->num_records = records;
	}
	return kfd_in_child(restore_v2, &cut);
}

TEST_F_TIMEOUT(short_buffers, an_extensible_image_that_ends_too_early_is_refused, LIMIT_S)
{
	const struct kfd_v2_image *image = &self->fixture.v2;
	unsigned int records = 1;
	struct guarded buffer;
	__u64 at;

	ASSERT_EQ(0, guarded_create(&buffer, image->size));
	for (at = 0; at < image->size; at += v2_record(image, at)->size) {
		const struct kfd_criu_record *record = v2_record(image, at);
		const __u64 fixed = v2_fixed_size(record->type);
		const __u64 there[] = { 0, sizeof(*record), fixed };
		unsigned int i;

		for (i = 0; i < (record->size > fixed ? 3 : 2); i++) {
			EXPECT_EQ(EFAULT, restore_cut(&buffer, image, at,
						      records, there[i]))
				TH_LOG("record %u of type %u, %llu bytes",
				       records, record->type,
				       (unsigned long long)there[i]);
		}
		records++;
	}
	guarded_free(&buffer);
}

static int restore_v1(struct kfd *kfd, void *data)
{
	const int files = count_files();
	const int r = kfd_v1_image_restore(kfd, data);
	const int state = kfd_v2_state(kfd);

	if (r && (count_files() != files || (state != KFD_CRIU_STATE_RUNNING &&
					     state != KFD_CRIU_STATE_ABORTED)))
		return 255;
	return -r;
}

static int restore_v1_cut(const struct guarded *buffer,
			  const struct kfd_v1_image *image, __u64 there)
{
	struct kfd_v1_image cut = *image;

	cut.args.priv_data = (unsigned long)guarded_before(buffer, there);
	memcpy(guarded_before(buffer, there), image->priv, there);
	return kfd_in_child(restore_v1, &cut);
}

TEST_F_TIMEOUT(short_buffers, private_data_that_end_too_early_are_refused, LIMIT_S)
{
	const struct kfd_v1_image *image = &self->fixture.v1;
	struct guarded buffer;
	__u64 at;

	ASSERT_EQ(0, guarded_create(&buffer, image->args.priv_data_size));
	EXPECT_EQ(EFAULT, restore_v1_cut(&buffer, image, 0));
	EXPECT_EQ(EFAULT, restore_v1_cut(&buffer, image, V1_PROCESS_SIZE));
	for (at = v1_bos(image); at < v1_objects(image); at += 3 * V1_BO_SIZE)
		EXPECT_EQ(EFAULT, restore_v1_cut(&buffer, image, at));
	for (at = v1_objects(image); at < image->args.priv_data_size;
	     at += v1_object_size(image, at)) {
		EXPECT_EQ(EFAULT, restore_v1_cut(&buffer, image, at));
		EXPECT_EQ(EFAULT, restore_v1_cut(&buffer, image, at + 4));
		if (v1_word(image, at) == V1_QUEUE) {
			EXPECT_EQ(EFAULT, restore_v1_cut(&buffer, image,
							 at + V1_QUEUE_SIZE));
		}
	}
	guarded_free(&buffer);
}

TEST_F_TIMEOUT(short_buffers, arrays_that_end_too_early_are_refused, LIMIT_S)
{
	struct kfd_v1_image image = self->fixture.v1;
	const size_t devices = image.args.num_devices * sizeof(*image.devices);
	const size_t bos = image.args.num_bos * sizeof(*image.bos);
	struct guarded buffer;
	__u64 was;

	ASSERT_EQ(0, guarded_create(&buffer, devices + bos));
	was = image.args.bos;
	image.args.bos = (unsigned long)guarded_before(&buffer, sizeof(*image.bos));
	memcpy((void *)(unsigned long)image.args.bos, image.bos,
	       sizeof(*image.bos));
	EXPECT_EQ(EFAULT, kfd_in_child(restore_v1, &image));
	/* The driver writes to the bucket of each BO. */
	image.args.bos = (unsigned long)buffer.pages;
	memcpy(buffer.pages, image.bos, bos);
	ASSERT_EQ(0, mprotect(buffer.pages, KFD_PAGE, PROT_READ));
	EXPECT_EQ(EFAULT, kfd_in_child(restore_v1, &image));
	image.args.bos = was;
	image.args.devices = (unsigned long)guarded_before(&buffer, 0);
	EXPECT_EQ(EFAULT, kfd_in_child(restore_v1, &image));
	guarded_free(&buffer);
}

/* ---- buffers for a checkpoint ---- */

static void expect_fault_v1(struct __test_metadata *_metadata,
			    const struct kfd *kfd, struct kfd_v1_image *image,
			      const struct guarded *buffer, __u64 there)
{
	image->args.priv_data = (unsigned long)guarded_before(buffer, there);
	EXPECT_EQ(-EFAULT, kfd_v1_image_checkpoint(kfd->fd, image))
		TH_LOG("%llu bytes", (unsigned long long)there);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(kfd));
}

/* Has no fixture, because the fixture destroys the queues after its checkpoint. */
TEST(a_checkpoint_into_a_buffer_that_ends_too_early_is_refused)
{
	struct kfd_v1_image first, second;
	struct kfd_v2_image image;
	struct fixture fixture;
	struct guarded buffer;
	struct kfd kfd;
	int files;
	__u64 at;

	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, fixture_create(&kfd, &fixture, FIXTURE_FULL));
	ASSERT_EQ(0, kfd_v2_image_dump(kfd.fd, &image));
	ASSERT_EQ(0, kfd_v1_image_dump(kfd.fd, &first));
	kfd_v1_image_close_files(&first);
	ASSERT_EQ(0, guarded_create(&buffer, first.args.priv_data_size + image.size));
	for (at = 0; at < image.size; at += v2_record(&image, at)->size) {
		const struct kfd_criu_record *record = v2_record(&image, at);
		const __u64 fixed = v2_fixed_size(record->type);
		const __u64 there[] = { 0, fixed, record->size - 4 };
		unsigned int i;

		for (i = 0; i < (record->size > fixed ? 3 : 1); i++) {
			const struct kfd_v2_image cut = {
				.data = guarded_before(&buffer, at + there[i]),
				.size = image.size,
				.pause_fd = image.pause_fd,
			};

			EXPECT_EQ(-EFAULT, kfd_v2_image_checkpoint(kfd.fd, &cut))
				TH_LOG("record of type %u, %llu bytes",
				       record->type,
				       (unsigned long long)there[i]);
		}
	}
	second = first;
	files = count_files();
	expect_fault_v1(_metadata, &kfd, &second, &buffer, 0);
	expect_fault_v1(_metadata, &kfd, &second, &buffer, V1_PROCESS_SIZE);
	expect_fault_v1(_metadata, &kfd, &second, &buffer, v1_bos(&first));
	for (at = v1_objects(&first); at < first.args.priv_data_size;
	     at += v1_object_size(&first, at)) {
		expect_fault_v1(_metadata, &kfd, &second, &buffer, at);
		expect_fault_v1(_metadata, &kfd, &second, &buffer,
				at + v1_object_size(&first, at) - 4);
	}
	EXPECT_EQ(files, count_files());
	guarded_free(&buffer);
	kfd_close(&kfd);
}

/* ---- files ---- */

static int exports_beyond_the_limit(struct kfd *kfd, void *data)
{
	struct fixture *fixture = data;
	struct rlimit limit;
	int fd, files = count_files();

	if (kfd_v2_image_restore(kfd, &fixture->v2) ||
	    getrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	limit.rlim_cur = 3;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 2;
	if (kfd_v2_export(kfd, KFD_NO_PAUSE, fixture->gtt.handle, &fd) != -EMFILE)
		return 3;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return count_files() == files ? 0 : 4;
}

TEST_F_TIMEOUT(short_buffers, no_file_is_opened_beyond_the_limit_of_the_process, LIMIT_S)
{
	EXPECT_EQ(0, kfd_in_child(exports_beyond_the_limit, &self->fixture));
}

KFD_TEST_MAIN
