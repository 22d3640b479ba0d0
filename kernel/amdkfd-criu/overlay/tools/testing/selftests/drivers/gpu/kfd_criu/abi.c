// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * AMDKFD_IOC_CRIU_OP as released with Linux 5.18: sizes, numbers, counts and errnos, with
 * a checkpoint of the test's own process. Also event pages and inherited files of /dev/kfd,
 * which were fixed together with it.
 *
 * Runs: once
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/kfd.h"

TEST(struct_sizes_and_ioctl_number_are_as_released)
{
	EXPECT_EQ(56, sizeof(struct kfd_ioctl_criu_args));
	EXPECT_EQ(0xc0384b22, AMDKFD_IOC_CRIU_OP);
	EXPECT_EQ(16, sizeof(struct kfd_criu_device_bucket));
	EXPECT_EQ(48, sizeof(struct kfd_criu_bo_bucket));
}

FIXTURE(process) {
	struct kfd kfd;
	struct fixture fixture;
	struct kfd_v1_image image;
};

FIXTURE_SETUP(process)
{
	memset(&self->image, 0, sizeof(self->image));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, fixture_create(&self->kfd, &self->fixture, FIXTURE_BOS));
	ASSERT_EQ(0, kfd_v1_image_prepare(self->kfd.fd, &self->image));
}

FIXTURE_TEARDOWN(process)
{
	kfd_v1_image_close_files(&self->image);
	kfd_v1_image_free(&self->image);
	kfd_close(&self->kfd);
}

TEST_F(process, counts_are_exact)
{
	const struct kfd_ioctl_criu_args *args = &self->image.args;

	EXPECT_EQ(self->kfd.num_gpus, args->num_devices);
	EXPECT_EQ(FIXTURE_BOS_COUNT, args->num_bos);
	EXPECT_EQ(1, args->num_objects);
	EXPECT_EQ(getpid(), args->pid);
	EXPECT_EQ(V1_PROCESS_SIZE + self->kfd.num_gpus * V1_DEVICE_SIZE +
			  FIXTURE_BOS_COUNT * V1_BO_SIZE + V1_EVENT_SIZE,
		  args->priv_data_size);
}

static const struct kfd_criu_bo_bucket *find_bo(const struct kfd_v1_image *image,
						const struct kfd_bo *bo)
{
	unsigned int i;

	for (i = 0; i < image->args.num_bos; i++)
		if (image->bos[i].addr == bo->va)
			return &image->bos[i];
	return NULL;
}

TEST_F(process, buckets_describe_the_devices_and_bos)
{
	const struct kfd_criu_bo_bucket *bo;
	unsigned int i;

	ASSERT_EQ(0, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
	for (i = 0; i < self->kfd.num_gpus; i++) {
		EXPECT_NE(0, self->image.devices[i].user_gpu_id);
		EXPECT_EQ(self->image.devices[i].user_gpu_id,
			  self->image.devices[i].actual_gpu_id);
	}
	bo = find_bo(&self->image, &self->fixture.gtt);
	ASSERT_NE(NULL, bo);
	EXPECT_EQ(self->fixture.gtt.size, bo->size);
	EXPECT_EQ(self->kfd.gpus[0].id, bo->gpu_id);
	EXPECT_EQ(KFD_BO_GTT, bo->alloc_flags);
	bo = find_bo(&self->image, &self->fixture.vram[0]);
	ASSERT_NE(NULL, bo);
	EXPECT_EQ(self->fixture.vram[0].size, bo->size);
	EXPECT_EQ(KFD_BO_VRAM, bo->alloc_flags);
	bo = find_bo(&self->image, &self->fixture.user);
	ASSERT_NE(NULL, bo);
	EXPECT_EQ((__u32)-1, bo->dmabuf_fd);
	EXPECT_EQ(1, *(__u32 *)self->image.priv);
}

/* Returns the number of the check that fails. */
static int opens_files_as_released(struct kfd *kfd, void *data)
{
	struct kfd_v1_image *image = data;
	unsigned int i;

	if (kfd_v1_image_restore(kfd, image))
		return 1;
	for (i = 0; i < image->args.num_bos; i++) {
		const int fd = image->bos[i].dmabuf_fd;

		if (fd < 0)
			continue;
		if (fcntl(fd, F_GETFD))
			return 2;
		if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
			return 3;
	}
	return 0;
}

TEST_F(process, restored_bo_files_have_the_released_flags)
{
	ASSERT_EQ(0, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
	EXPECT_EQ(0, kfd_in_child(opens_files_as_released, &self->image));
}

TEST_F(process, bo_files_are_dma_bufs_with_the_released_flags)
{
	const struct kfd_criu_bo_bucket *bo;
	char *bytes;

	memcpy(self->fixture.gtt.cpu, "contents", sizeof("contents"));
	ASSERT_EQ(0, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
	bo = find_bo(&self->image, &self->fixture.gtt);
	ASSERT_NE(NULL, bo);
	bytes = mmap(NULL, bo->size, PROT_READ, MAP_SHARED, bo->dmabuf_fd, 0);
	ASSERT_NE(MAP_FAILED, bytes);
	EXPECT_STREQ("contents", bytes);
	EXPECT_EQ(0, fcntl(bo->dmabuf_fd, F_GETFD));
	EXPECT_EQ(O_RDWR, fcntl(bo->dmabuf_fd, F_GETFL) & O_ACCMODE);
}

TEST_F(process, unknown_operations_are_refused)
{
	EXPECT_EQ(-EINVAL, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_RESUME + 1));
	EXPECT_EQ(-EINVAL, kfd_v1_op(self->kfd.fd, ~0U));
}

/* Calls CHECKPOINT with arguments that are not those that PROCESS_INFO returned. */
static int checkpoint_with_wrong_args(const struct kfd_v1_image *image, int fd,
				      void (*spoil)(struct kfd_ioctl_criu_args *args))
{
	struct kfd_v1_image wrong = *image;

	spoil(&wrong.args);
	return kfd_v1_image_checkpoint(fd, &wrong);
}

#define SPOILER(name, change) \
	static void name(struct kfd_ioctl_criu_args *args) \
	{ \
		change; \
	}

SPOILER(no_devices_pointer, args->devices = 0)
SPOILER(no_bos_pointer, args->bos = 0)
SPOILER(no_priv_pointer, args->priv_data = 0)
SPOILER(more_devices, args->num_devices++)
SPOILER(fewer_bos, args->num_bos--)
SPOILER(more_bos, args->num_bos = ~0U)
SPOILER(more_objects, args->num_objects++)
SPOILER(smaller_buffer, args->priv_data_size--)
SPOILER(larger_buffer, args->priv_data_size = ~0ULL)

TEST_F(process, counts_that_process_info_did_not_return_are_refused)
{
	static void (*const spoilers[])(struct kfd_ioctl_criu_args *args) = {
		no_devices_pointer, no_bos_pointer, no_priv_pointer,
		more_devices,	    fewer_bos,	    more_bos,
		more_objects,	    smaller_buffer, larger_buffer,
	};
	const int files = count_files();
	unsigned int i;

	for (i = 0; i < sizeof(spoilers) / sizeof(*spoilers); i++)
		EXPECT_EQ(-EINVAL, checkpoint_with_wrong_args(&self->image,
							      self->kfd.fd,
							      spoilers[i]))
			TH_LOG("change %u", i);
	EXPECT_EQ(files, count_files());
	EXPECT_EQ(0, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
}

/* An address range that is reserved but not accessible. */
static __u64 unmapped_address(void)
{
	void *pages = mmap(NULL, 1 << 20, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return (unsigned long)pages;
}

SPOILER(devices_nowhere, args->devices = unmapped_address())
SPOILER(bos_nowhere, args->bos = unmapped_address())
SPOILER(priv_nowhere, args->priv_data = unmapped_address())

TEST_F(process, unmapped_buffers_fail_and_leak_no_file)
{
	static void (*const spoilers[])(struct kfd_ioctl_criu_args *args) = {
		devices_nowhere, bos_nowhere, priv_nowhere,
	};
	const int files = count_files();
	unsigned int i;

	for (i = 0; i < sizeof(spoilers) / sizeof(*spoilers); i++)
		EXPECT_EQ(-EFAULT, checkpoint_with_wrong_args(&self->image,
							      self->kfd.fd,
							      spoilers[i]))
			TH_LOG("change %u", i);
	EXPECT_EQ(files, count_files());
	EXPECT_EQ(0, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
}

/* The caller may open one more file, but not two: the driver has to close the first. */
TEST_F(process, a_checkpoint_opens_all_bo_files_or_none)
{
	const int lowest = dup(self->kfd.fd);
	struct rlimit limit, was;
	const int files = count_files() - 1;

	ASSERT_LE(0, lowest);
	close(lowest);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &was));
	limit.rlim_cur = lowest + 1;
	limit.rlim_max = was.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &was));
	EXPECT_EQ(files, count_files());
	EXPECT_EQ(0, kfd_v1_image_checkpoint(self->kfd.fd, &self->image));
}

/* The driver once followed a NULL pointer for a GPU whose VM the process had not acquired. */
TEST(a_gpu_whose_vm_is_not_acquired_is_checkpointed)
{
	struct kfd_v1_image image;
	struct kfd_bo bo;
	struct kfd kfd;

	if (kfd_open(&kfd) == -ENODEV || kfd.num_gpus < 2)
		SKIP(return, "fewer than two AMD GPUs");
	ASSERT_EQ(0, kfd_acquire_vm(&kfd, 0));
	ASSERT_EQ(0, kfd_bo_create(&kfd, 0, KFD_BO_GTT, KFD_PAGE, &bo));
	EXPECT_EQ(0, kfd_v1_image_dump(kfd.fd, &image));
	kfd_v1_image_close_files(&image);
	kfd_v1_image_free(&image);
	kfd_close(&kfd);
}

/* ---- event pages and inherited files ---- */

/* KFD_MMAP_TYPE_EVENTS of the driver. */
#define EVENTS_OFFSET	((off_t)(2ULL << 62))
/* Environment variable with the number of the file that the program inherits. */
#define INHERITED	"KFD_CRIU_INHERITED_FILE"

/* The event page is a BO of the process: /dev/kfd would map other memory in its place. */
TEST(an_event_page_in_a_bo_is_not_mapped_through_dev_kfd)
{
	struct kfd_ioctl_create_event_args args = {
		.event_type = KFD_IOC_EVENT_SIGNAL,
	};
	struct kfd_bo page;
	struct kfd kfd;

	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vm(&kfd, 0));
	ASSERT_EQ(0, kfd_bo_create(&kfd, 0, KFD_BO_GTT,
				   KFD_SIGNAL_EVENT_LIMIT * sizeof(__u64), &page));
	args.event_page_offset = page.handle;
	ASSERT_EQ(0, kfd_call(kfd.fd, AMDKFD_IOC_CREATE_EVENT, &args));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page.size, PROT_READ | PROT_WRITE,
				   MAP_SHARED, kfd.fd, EVENTS_OFFSET));
	EXPECT_EQ(EINVAL, errno);
	kfd_close(&kfd);
}

/*
 * If this program was started with an inherited file, it only uses the file, and the errno
 * is its exit status. Runs before main(), which would run the tests.
 */
__attribute__((constructor(101))) static void use_inherited_file(void)
{
	struct kfd_ioctl_get_version_args version;
	const char *fd = getenv(INHERITED);

	if (fd)
		_exit(-kfd_call(atoi(fd), AMDKFD_IOC_GET_VERSION, &version));
}

static int exec_with_file(struct kfd *kfd, void *data)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", kfd->fd);
	if (fcntl(kfd->fd, F_SETFD, 0) || setenv(INHERITED, number, 1))
		return 1;
	execl("/proc/self/exe", "abi", NULL);
	return 1;
}

/* The file belongs to the memory that the process had before exec. */
TEST(an_inherited_file_is_refused_after_exec)
{
	struct kfd kfd;

	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	kfd_close(&kfd);
	EXPECT_EQ(EBADF, kfd_in_child(exec_with_file, NULL));
}

KFD_TEST_MAIN
