// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The pages of a blocking image are served by userfaultfd. An endless image is a file of
 * the smallest records, mapped many times in a row.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "slow_image.h"

#define FAULT_LIMIT_MS	10000
#define UNKNOWN_TYPE	1000

static int userfaultfd(void)
{
	const int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_api api = { .api = UFFD_API };

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -errno;
	}
	return fd < 0 ? -errno : fd;
}

bool blocking_images_are_supported(void)
{
	const int fd = userfaultfd();

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static size_t whole_pages(size_t size)
{
	return (size + KFD_PAGE - 1) / KFD_PAGE * KFD_PAGE;
}

/* The missing pages begin at a page boundary, so the image need not. */
static int create(struct blocking_image *blocking, size_t size, size_t there)
{
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	const size_t front = whole_pages(there);
	unsigned char *memory;

	blocking->there = there;
	blocking->missing_size = whole_pages(size - there);
	blocking->faults = userfaultfd();
	memory = mmap(NULL, front + blocking->missing_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || blocking->faults < 0)
		return -ENOMEM;
	blocking->missing = memory + front;
	blocking->image.size = size;
	blocking->image.data = blocking->missing - there;
	area.range.start = (unsigned long)blocking->missing;
	area.range.len = blocking->missing_size;
	return ioctl(blocking->faults, UFFDIO_REGISTER, &area) ? -errno : 0;
}

int blocking_image_create(struct blocking_image *blocking, size_t size)
{
	return create(blocking, size, 0);
}

int blocking_image_create_tail(struct blocking_image *blocking,
			       const struct kfd_v2_image *image, size_t there)
{
	const int r = create(blocking, image->size, there);

	if (!r)
		memcpy(blocking->image.data, image->data, there);
	return r;
}

bool blocking_image_is_read(const struct blocking_image *blocking)
{
	struct pollfd fault = { .fd = blocking->faults, .events = POLLIN };

	return poll(&fault, 1, FAULT_LIMIT_MS) == 1;
}

int blocking_image_fill(const struct blocking_image *blocking,
			const struct kfd_v2_image *image)
{
	struct uffdio_copy copy = {
		.dst = (unsigned long)blocking->missing,
		.len = blocking->missing_size,
	};
	void *pages = mmap(NULL, blocking->missing_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (pages == MAP_FAILED)
		return -errno;
	memcpy(pages, image->data + blocking->there, image->size - blocking->there);
	copy.src = (unsigned long)pages;
	r = ioctl(blocking->faults, UFFDIO_COPY, &copy) ? -errno : 0;
	munmap(pages, blocking->missing_size);
	return r;
}

/* The file is mapped so often that there are fewer than 2^32 records. */
#define ENDLESS_FILE	(64UL << 20)
#define ENDLESS_TIMES	1023
#define ENDLESS_SIZE	(KFD_PAGE + ENDLESS_FILE * ENDLESS_TIMES)
/* Offset in the first page where the smallest records begin. */
#define SHORT_RECORDS	64

static void fill(void *memory, size_t size)
{
	struct kfd_criu_record *record = memory;
	size_t i;

	for (i = 0; i < size / sizeof(*record); i++)
		record[i] = (struct kfd_criu_record){
			.type = UNKNOWN_TYPE,
			.version = 1,
			.size = sizeof(*record),
		};
}

/* Writes the first record, and a second one whose length lets the others end with the page. */
static void begin_endless(unsigned char *page)
{
	struct kfd_criu_record_image *first = (void *)page;
	struct kfd_criu_record *second = (void *)(first + 1);

	*first = (struct kfd_criu_record_image){
		.record = {
			.type = KFD_CRIU_RECORD_IMAGE,
			.version = 1,
			.flags = KFD_CRIU_RECORD_REQUIRED,
			.size = sizeof(*first),
		},
		.magic = KFD_CRIU_IMAGE_MAGIC,
		.size = ENDLESS_SIZE,
	};
	fill(second, sizeof(*second));
	second->size = SHORT_RECORDS - sizeof(*first);
	fill(page + SHORT_RECORDS, KFD_PAGE - SHORT_RECORDS);
	first->num_records = 2 + (first->size - SHORT_RECORDS) / sizeof(*second);
}

static unsigned char *map_endless(int file)
{
	unsigned char *image = mmap(NULL, ENDLESS_SIZE, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				    -1, 0);
	unsigned int i;

	if (image == MAP_FAILED || mprotect(image, KFD_PAGE, PROT_READ | PROT_WRITE))
		return NULL;
	begin_endless(image);
	for (i = 0; i < ENDLESS_TIMES; i++)
		if (mmap(image + KFD_PAGE + i * ENDLESS_FILE, ENDLESS_FILE,
			 PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
			return NULL;
	return image;
}

static int make_endless_file(void)
{
	const int file = memfd_create("records", MFD_CLOEXEC);
	void *records;

	if (file < 0 || ftruncate(file, ENDLESS_FILE))
		return -errno;
	records = mmap(NULL, ENDLESS_FILE, PROT_READ | PROT_WRITE, MAP_SHARED,
		       file, 0);
	if (records == MAP_FAILED)
		return -errno;
	fill(records, ENDLESS_FILE);
	munmap(records, ENDLESS_FILE);
	return file;
}

int endless_image_create(struct kfd_v2_image *image)
{
	const int file = make_endless_file();

	if (file < 0)
		return file;
	image->size = ENDLESS_SIZE;
	image->data = map_endless(file);
	close(file);
	return image->data ? 0 : -ENOMEM;
}
