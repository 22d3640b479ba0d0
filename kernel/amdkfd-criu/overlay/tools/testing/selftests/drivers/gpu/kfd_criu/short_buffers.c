// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Memory of the caller that ends anywhere within an image of an object of every kind,
 * and files for which there is no room: refused, and nothing is left.
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

struct brink {
	unsigned char *pages;
	size_t size;	/* before the end */
};

static int brink_make(struct brink *brink, size_t size)
{
	brink->size = (size + KFD_PAGE - 1) / KFD_PAGE * KFD_PAGE;
	brink->pages = mmap(NULL, brink->size + 16 * KFD_PAGE,
			    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (brink->pages == MAP_FAILED)
		return -errno;
	return mprotect(brink->pages + brink->size, 16 * KFD_PAGE, PROT_NONE) ?
		       -errno : 0;
}

/* Where to begin so that so many bytes are there. */
static unsigned char *brink_after(const struct brink *brink, size_t bytes)
{
	return brink->pages + brink->size - bytes;
}

static void brink_free(const struct brink *brink)
{
	munmap(brink->pages, brink->size + 16 * KFD_PAGE);
}

static int restores_v2(struct kfd *kfd, void *data)
{
	const int r = kfd_v2_image_restore(kfd, data);
	const int state = kfd_v2_state(kfd);

	if (r && state != KFD_CRIU_STATE_RUNNING &&
	    state != KFD_CRIU_STATE_ABORTED)
		return 255;
	return -r;
}

/* An image that ends with its k-th record, of which so many bytes are there. */
static int restore_cut(const struct brink *brink, const struct kfd_v2_image *image,
		       __u64 at, unsigned int records, __u64 there)
{
	struct kfd_v2_image cut = {
		.data = brink_after(brink, at + there),
		.size = at + v2_record(image, at)->size,
	};
	struct kfd_criu_record_image *first = (void *)cut.data;

	memcpy(cut.data, image->data, at + there);
	if (at) {
		first->size = cut.size;
		first->num_records = records;
	}
	return kfd_in_child(restores_v2, &cut);
}

TEST_F_TIMEOUT(short_buffers, an_image_that_is_not_all_there_is_refused, LIMIT_S)
{
	const struct kfd_v2_image *image = &self->fixture.v2;
	unsigned int records = 1;
	struct brink brink;
	__u64 at;

	ASSERT_EQ(0, brink_make(&brink, image->size));
	for (at = 0; at < image->size; at += v2_record(image, at)->size) {
		const struct kfd_criu_record *record = v2_record(image, at);
		const __u64 fixed = v2_fixed_size(record->type);
		const __u64 there[] = { 0, sizeof(*record), fixed };
		unsigned int i;

		for (i = 0; i < (record->size > fixed ? 3 : 2); i++) {
			EXPECT_EQ(EFAULT, restore_cut(&brink, image, at,
						      records, there[i]))
				TH_LOG("record %u of type %u, %llu bytes",
				       records, record->type,
				       (unsigned long long)there[i]);
		}
		records++;
	}
	brink_free(&brink);
}

static int restores_v1(struct kfd *kfd, void *data)
{
	const int files = count_files();
	const int r = kfd_v1_image_restore(kfd, data);
	const int state = kfd_v2_state(kfd);

	if (r && (count_files() != files || (state != KFD_CRIU_STATE_RUNNING &&
					     state != KFD_CRIU_STATE_ABORTED)))
		return 255;
	return -r;
}

static int restore_v1_cut(const struct brink *brink,
			  const struct kfd_v1_image *image, __u64 there)
{
	struct kfd_v1_image cut = *image;

	cut.args.priv_data = (unsigned long)brink_after(brink, there);
	memcpy(brink_after(brink, there), image->priv, there);
	return kfd_in_child(restores_v1, &cut);
}

TEST_F_TIMEOUT(short_buffers, private_data_that_are_not_all_there_are_refused, LIMIT_S)
{
	const struct kfd_v1_image *image = &self->fixture.v1;
	struct brink brink;
	__u64 at;

	ASSERT_EQ(0, brink_make(&brink, image->args.priv_data_size));
	EXPECT_EQ(EFAULT, restore_v1_cut(&brink, image, 0));
	EXPECT_EQ(EFAULT, restore_v1_cut(&brink, image, V1_PROCESS_SIZE));
	for (at = v1_bos(image); at < v1_objects(image); at += 3 * V1_BO_SIZE)
		EXPECT_EQ(EFAULT, restore_v1_cut(&brink, image, at));
	for (at = v1_objects(image); at < image->args.priv_data_size;
	     at += v1_object_size(image, at)) {
		EXPECT_EQ(EFAULT, restore_v1_cut(&brink, image, at));
		EXPECT_EQ(EFAULT, restore_v1_cut(&brink, image, at + 4));
		if (v1_word(image, at) == V1_QUEUE) {
			EXPECT_EQ(EFAULT, restore_v1_cut(&brink, image,
							 at + V1_QUEUE_SIZE));
		}
	}
	brink_free(&brink);
}

TEST_F_TIMEOUT(short_buffers, arrays_that_are_not_all_there_are_refused, LIMIT_S)
{
	struct kfd_v1_image image = self->fixture.v1;
	const size_t devices = image.args.num_devices * sizeof(*image.devices);
	const size_t bos = image.args.num_bos * sizeof(*image.bos);
	struct brink brink;
	__u64 was;

	ASSERT_EQ(0, brink_make(&brink, devices + bos));
	was = image.args.bos;
	image.args.bos = (unsigned long)brink_after(&brink, sizeof(*image.bos));
	memcpy((void *)(unsigned long)image.args.bos, image.bos,
	       sizeof(*image.bos));
	EXPECT_EQ(EFAULT, kfd_in_child(restores_v1, &image));
	/* What a BO has become is told in its place. */
	image.args.bos = (unsigned long)brink.pages;
	memcpy(brink.pages, image.bos, bos);
	ASSERT_EQ(0, mprotect(brink.pages, KFD_PAGE, PROT_READ));
	EXPECT_EQ(EFAULT, kfd_in_child(restores_v1, &image));
	image.args.bos = was;
	image.args.devices = (unsigned long)brink_after(&brink, 0);
	EXPECT_EQ(EFAULT, kfd_in_child(restores_v1, &image));
	brink_free(&brink);
}

/* ---- room that ends ---- */

static void expect_no_room_v1(struct __test_metadata *_metadata,
			      const struct kfd *kfd, struct kfd_v1_image *image,
			      const struct brink *brink, __u64 there)
{
	image->args.priv_data = (unsigned long)brink_after(brink, there);
	EXPECT_EQ(-EFAULT, kfd_v1_image_checkpoint(kfd->fd, image))
		TH_LOG("%llu bytes", (unsigned long long)there);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(kfd));
}

/* As the fixture, but its queues are still there. */
TEST(an_image_may_end_anywhere)
{
	struct kfd_v1_image first, second;
	struct kfd_v2_image image;
	struct fixture fixture;
	struct brink brink;
	struct kfd kfd;
	int files;
	__u64 at;

	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, fixture_create(&kfd, &fixture, FIXTURE_FULL));
	ASSERT_EQ(0, kfd_v2_image_dump(kfd.fd, &image));
	ASSERT_EQ(0, kfd_v1_image_dump(kfd.fd, &first));
	kfd_v1_image_close_files(&first);
	ASSERT_EQ(0, brink_make(&brink, first.args.priv_data_size + image.size));
	for (at = 0; at < image.size; at += v2_record(&image, at)->size) {
		const struct kfd_criu_record *record = v2_record(&image, at);
		const __u64 fixed = v2_fixed_size(record->type);
		const __u64 there[] = { 0, fixed, record->size - 4 };
		unsigned int i;

		for (i = 0; i < (record->size > fixed ? 3 : 1); i++) {
			const struct kfd_v2_image room = {
				.data = brink_after(&brink, at + there[i]),
				.size = image.size,
			};

			EXPECT_EQ(-EFAULT, kfd_v2_image_checkpoint(kfd.fd, &room))
				TH_LOG("record of type %u, %llu bytes",
				       record->type,
				       (unsigned long long)there[i]);
		}
	}
	second = first;
	files = count_files();
	expect_no_room_v1(_metadata, &kfd, &second, &brink, 0);
	expect_no_room_v1(_metadata, &kfd, &second, &brink, V1_PROCESS_SIZE);
	expect_no_room_v1(_metadata, &kfd, &second, &brink, v1_bos(&first));
	for (at = v1_objects(&first); at < first.args.priv_data_size;
	     at += v1_object_size(&first, at)) {
		expect_no_room_v1(_metadata, &kfd, &second, &brink, at);
		expect_no_room_v1(_metadata, &kfd, &second, &brink,
				  at + v1_object_size(&first, at) - 4);
	}
	EXPECT_EQ(files, count_files());
	brink_free(&brink);
	kfd_close(&kfd);
}

/* ---- files ---- */

static int has_no_room_for_files(struct kfd *kfd, void *data)
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
	if (kfd_v2_export(kfd, fixture->gtt.handle, &fd) != -EMFILE)
		return 3;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return count_files() == files ? 0 : 4;
}

TEST_F_TIMEOUT(short_buffers, files_are_not_made_without_room_for_them, LIMIT_S)
{
	EXPECT_EQ(0, kfd_in_child(has_no_room_for_files, &self->fixture));
}

KFD_TEST_MAIN
