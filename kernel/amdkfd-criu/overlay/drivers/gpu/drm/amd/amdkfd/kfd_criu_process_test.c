// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of operations on a process whose devices have fake queue
 * managers: an operation that fails half way is undone, wrong calls are
 * refused, and RESUME reports why the queues do not run. One test destroys two
 * VMs of a process concurrently. Tests that need neither a process nor a device
 * are in kfd_criu_test.c.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/idr.h>
#include <linux/init_task.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_events.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_mqd_manager.h"
#include "v9_structs.h"
#include "amdgpu.h"
#include "amdgpu_ih.h"
#include "amdgpu_xcp.h"

#define DEVICES		2
#define GFX9		90006
#define IV_BYTES	32	/* of an interrupt in the ring */
/* Upper word of its time stamp, of which 16 bits count. */
#define IV_TIME_WORD	2
/* Modulo 48 bits this time is before 0, which stands for no interrupt. */
#define IV_LATE_TIME	0xc000
#define LATE_TIME	((u64)IV_LATE_TIME << 32)

/* ---- what the VMs of a process share ---- */

static void criu_test_restore_no_pages(struct work_struct *work)
{
}

static void criu_test_restore_pages(struct work_struct *work)
{
	struct amdkfd_process_info *info =
		container_of(to_delayed_work(work), struct amdkfd_process_info,
			     restore_userptr_work);

	mutex_lock(&info->notifier_lock);
	info->evicted_bos = 0;
	mutex_unlock(&info->notifier_lock);
}

static struct amdkfd_process_info *criu_test_make_process_info(work_func_t worker)
{
	struct amdkfd_process_info *info = kzalloc(sizeof(*info), GFP_KERNEL);

	if (!info)
		return NULL;
	info->eviction_fence = amdgpu_amdkfd_fence_create(dma_fence_context_alloc(1),
							  current->active_mm, NULL);
	if (!info->eviction_fence) {
		kfree(info);
		return NULL;
	}
	mutex_init(&info->lock);
	mutex_init(&info->notifier_lock);
	INIT_LIST_HEAD(&info->vm_list_head);
	INIT_LIST_HEAD(&info->kfd_bo_list);
	INIT_LIST_HEAD(&info->userptr_valid_list);
	INIT_LIST_HEAD(&info->userptr_inval_list);
	INIT_DELAYED_WORK(&info->restore_userptr_work, worker);
	info->pid = get_pid(task_pid(current));
	return info;
}

/* Frees what criu_test_make_process_info() has allocated, for a process without VMs. */
static void criu_test_free_process_info(struct amdkfd_process_info *info)
{
	cancel_delayed_work_sync(&info->restore_userptr_work);
	dma_fence_put(&info->eviction_fence->base);
	put_pid(info->pid);
	kfree(info);
}

/* ---- a process without hardware ---- */

/* Results of the fake device's queue manager, and the balance of its calls. */
struct fake_dqm {
	struct device_queue_manager dqm;
	int evict;
	int restore;
	int evicted;	/* evictions minus restores, as in amdkfd */
};

struct fake {
	struct kfd_process p;
	struct kfd_process_device pdds[DEVICES];
	struct kfd_node nodes[DEVICES];
	struct kfd_dev devs[DEVICES];
	struct fake_dqm dqms[DEVICES];
	struct amdgpu_device adev;
};

static int criu_test_fake_evict(struct device_queue_manager *dqm,
		      struct qcm_process_device *qpd)
{
	struct fake_dqm *fake = container_of(dqm, struct fake_dqm, dqm);

	fake->evicted++;
	return fake->evict;
}

static int criu_test_fake_restore(struct device_queue_manager *dqm,
			struct qcm_process_device *qpd)
{
	struct fake_dqm *fake = container_of(dqm, struct fake_dqm, dqm);

	/* After -ENOMEM the queues stay evicted. */
	if (fake->restore != -ENOMEM)
		fake->evicted--;
	return fake->restore;
}

static struct fake *criu_test_make_fake(struct kunit *test)
{
	struct fake *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	/* The thread of RESUME has a second reference for a while. */
	kref_init(&fake->p.ref);
	mutex_init(&fake->p.mutex);
	mutex_init(&fake->p.event_mutex);
	idr_init(&fake->p.event_idr);
	INIT_LIST_HEAD(&fake->p.pqm.queues);
	fake->p.lead_thread = current->group_leader;
	fake->p.mm = fake;	/* any value but NULL */
	fake->p.n_pdds = DEVICES;
	kfd_criu_session_init(&fake->p);
	for (i = 0; i < DEVICES; i++) {
		struct device_queue_manager *dqm = &fake->dqms[i].dqm;

		fake->p.pdds[i] = &fake->pdds[i];
		fake->pdds[i].process = &fake->p;
		fake->pdds[i].dev = &fake->nodes[i];
		fake->pdds[i].user_gpu_id = i + 1;
		INIT_LIST_HEAD(&fake->pdds[i].qpd.queues_list);
		fake->nodes[i].dqm = dqm;
		fake->nodes[i].kfd = &fake->devs[i];
		fake->nodes[i].adev = &fake->adev;
		fake->nodes[i].xcc_mask = 1;
		INIT_LIST_HEAD(&fake->nodes[i].smi_clients);
		fake->devs[i].device_info.gfx_target_version = GFX9;
		mutex_init(&dqm->lock_hidden);
		dqm->ops.evict_process_queues = criu_test_fake_evict;
		dqm->ops.restore_process_queues = criu_test_fake_restore;
	}
	return fake;
}

/* Nothing uses the process any more. */
static void criu_test_free_fake(struct fake *fake)
{
	kfd_criu_session_fini(&fake->p);
	idr_destroy(&fake->p.event_idr);
}

static int criu_test_pause(struct fake *fake,
		 int (*measure)(struct kfd_process *p, void *args))
{
	u32 pid;
	int r;

	mutex_lock(&fake->p.mutex);
	r = kfd_criu_owned_pause(&fake->p, &pid, measure, NULL);
	mutex_unlock(&fake->p.mutex);
	return r;
}

static int criu_test_unpause(struct fake *fake)
{
	int r;

	mutex_lock(&fake->p.mutex);
	r = kfd_criu_owned_unpause(&fake->p);
	mutex_unlock(&fake->p.mutex);
	return r;
}

static int criu_test_measure_ok(struct kfd_process *p, void *args)
{
	return 0;
}

static int criu_test_measure_fails(struct kfd_process *p, void *args)
{
	return -EOPNOTSUPP;
}

static void criu_test_expect_state(struct kunit *test, const struct fake *fake,
			 enum kfd_criu_state state, int evicted)
{
	unsigned int i;

	KUNIT_EXPECT_EQ(test, state, fake->p.criu.state);
	for (i = 0; i < DEVICES; i++)
		KUNIT_EXPECT_EQ(test, evicted, fake->dqms[i].evicted);
}

/* ---- pauses ---- */

static void a_process_without_devices_is_not_paused(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	fake->p.n_pdds = 0;
	KUNIT_EXPECT_EQ(test, -ENODEV, criu_test_pause(fake, criu_test_measure_ok));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	criu_test_free_fake(fake);
}

static void a_pause_whose_measurement_fails_is_undone(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, criu_test_pause(fake, criu_test_measure_fails));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	KUNIT_EXPECT_EQ(test, 0, criu_test_pause(fake, criu_test_measure_ok));
	/* A failed measurement does not end a pause that existed before. */
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, criu_test_pause(fake, criu_test_measure_fails));
	criu_test_expect_state(test, fake, KFD_CRIU_PAUSED, 1);
	KUNIT_EXPECT_EQ(test, 0, criu_test_unpause(fake));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	criu_test_free_fake(fake);
}

static void a_device_that_does_not_stop_undoes_a_pause(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	fake->dqms[1].evict = -ETIME;
	KUNIT_EXPECT_EQ(test, -ETIME, criu_test_pause(fake, criu_test_measure_ok));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	/* A device that is being reset has no queues on the hardware. */
	fake->dqms[1].evict = -EIO;
	KUNIT_EXPECT_EQ(test, -EIO, criu_test_pause(fake, criu_test_measure_ok));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	/* The device that is being reset need not be the last one. */
	fake->dqms[0].evict = -EIO;
	fake->dqms[1].evict = 0;
	KUNIT_EXPECT_EQ(test, -EIO, criu_test_pause(fake, criu_test_measure_ok));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	criu_test_free_fake(fake);
}

static int criu_test_begin_pause(struct fake *fake)
{
	u32 reason;
	int r;

	mutex_lock(&fake->p.mutex);
	r = kfd_criu_begin_pause(&fake->p, false, &reason);
	mutex_unlock(&fake->p.mutex);
	return r;
}

static int criu_test_end_pause(struct fake *fake)
{
	int r;

	mutex_lock(&fake->p.mutex);
	r = kfd_criu_end_pause(&fake->p);
	mutex_unlock(&fake->p.mutex);
	return r;
}

static void a_process_is_paused_until_the_last_pause_ends(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	KUNIT_ASSERT_EQ(test, 0, criu_test_begin_pause(fake));
	KUNIT_ASSERT_EQ(test, 0, criu_test_pause(fake, criu_test_measure_ok));
	KUNIT_ASSERT_EQ(test, 0, criu_test_begin_pause(fake));
	criu_test_expect_state(test, fake, KFD_CRIU_PAUSED, 1);
	KUNIT_EXPECT_EQ(test, 0, criu_test_end_pause(fake));
	KUNIT_EXPECT_EQ(test, 0, criu_test_unpause(fake));
	/* There is no pause of version 1 any more, but another one. */
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_unpause(fake));
	criu_test_expect_state(test, fake, KFD_CRIU_PAUSED, 1);
	KUNIT_EXPECT_EQ(test, 0, criu_test_end_pause(fake));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	criu_test_free_fake(fake);
}

/* Nothing wakes up for a process, but while version 1 pauses it. */
static void only_a_pause_of_version_1_has_a_timer(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct delayed_work *work = &fake->p.criu.owner_work;

	KUNIT_EXPECT_FALSE(test, delayed_work_pending(work));
	KUNIT_ASSERT_EQ(test, 0, criu_test_begin_pause(fake));
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(work));
	KUNIT_ASSERT_EQ(test, 0, criu_test_pause(fake, criu_test_measure_ok));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(work));
	KUNIT_ASSERT_EQ(test, 0, criu_test_unpause(fake));
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(work));
	KUNIT_ASSERT_EQ(test, 0, criu_test_end_pause(fake));
	criu_test_free_fake(fake);
}

static void a_pause_ends_on_all_devices(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	KUNIT_ASSERT_EQ(test, 0, criu_test_pause(fake, criu_test_measure_ok));
	fake->dqms[0].restore = -ETIME;
	/*
	 * The device is going to be reset, and the pause is over nevertheless.
	 */
	KUNIT_EXPECT_EQ(test, -ETIME, criu_test_unpause(fake));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	criu_test_free_fake(fake);
}

/* State that was read after the reset may not be the process's state. */
static void the_end_of_a_pause_reports_a_reset(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	KUNIT_ASSERT_EQ(test, 0, criu_test_pause(fake, criu_test_measure_ok));
	fake->pdds[1].is_lost = true;
	KUNIT_EXPECT_EQ(test, -ENOTRECOVERABLE, criu_test_unpause(fake));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	KUNIT_EXPECT_EQ(test, KFD_CRIU_REASON_GPU_RESET,
			kfd_criu_session_reset_reason(&fake->p));
	criu_test_free_fake(fake);
}

static void the_end_of_a_pause_reports_a_queue_that_was_reset(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	KUNIT_EXPECT_EQ(test, KFD_CRIU_REASON_NONE,
			kfd_criu_session_reset_reason(&fake->p));
	KUNIT_ASSERT_EQ(test, 0, criu_test_begin_pause(fake));
	fake->pdds[1].has_reset_queue = true;
	KUNIT_EXPECT_EQ(test, -ENOTRECOVERABLE, criu_test_end_pause(fake));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	KUNIT_EXPECT_EQ(test, KFD_CRIU_REASON_QUEUE_RESET,
			kfd_criu_session_reset_reason(&fake->p));
	criu_test_free_fake(fake);
}

/* ---- restores ---- */

static void only_the_process_itself_can_restore(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct list_head queue;

	/* Gives the test's thread an mm. */
	KUNIT_ASSERT_NE(test, 0, kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ,
					       MAP_ANONYMOUS | MAP_PRIVATE, 0));
	/* The process has the mm of the program before exec. */
	KUNIT_EXPECT_EQ(test, -EPERM, kfd_criu_check_restore(&fake->p));
	fake->p.mm = current->mm;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_check_restore(&fake->p));
	list_add(&queue, &fake->p.pqm.queues);
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_check_restore(&fake->p));
	list_del(&queue);
	fake->p.lead_thread = &init_task;
	KUNIT_EXPECT_EQ(test, -EPERM, kfd_criu_check_restore(&fake->p));
	fake->p.lead_thread = current->group_leader;
	criu_test_free_fake(fake);
}

static void a_restore_needs_a_process_without_objects(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct kfd_event event = {};
	int id;

	fake->pdds[1].drm_file = (struct file *)fake;
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_begin_restore(&fake->p));
	fake->pdds[1].drm_file = NULL;
	id = idr_alloc(&fake->p.event_idr, &event, 1, 2, GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, 1, id);
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_begin_restore(&fake->p));
	idr_remove(&fake->p.event_idr, id);
	fake->p.signal_page = (void *)fake;
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_begin_restore(&fake->p));
	fake->p.signal_page = NULL;
	fake->p.runtime_info.runtime_state = DEBUG_RUNTIME_STATE_ENABLED;
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_begin_restore(&fake->p));
	fake->p.runtime_info.runtime_state = DEBUG_RUNTIME_STATE_DISABLED;
	fake->dqms[0].evict = -ETIME;
	KUNIT_EXPECT_EQ(test, -ETIME, kfd_criu_begin_restore(&fake->p));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	fake->dqms[0].evict = 0;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_begin_restore(&fake->p));
	criu_test_expect_state(test, fake, KFD_CRIU_RESTORING, 1);
	criu_test_free_fake(fake);
}

static void a_restore_fails_while_an_ioctl_is_in_progress(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	const unsigned int nr = _IOC_NR(AMDKFD_IOC_CREATE_EVENT);

	KUNIT_ASSERT_EQ(test, 0, kfd_criu_session_begin_ioctl(&fake->p, nr));
	KUNIT_EXPECT_EQ(test, -EBUSY, kfd_criu_begin_restore(&fake->p));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	kfd_criu_session_end_ioctl(&fake->p, nr);
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_begin_restore(&fake->p));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			kfd_criu_session_begin_ioctl(&fake->p, nr));
	criu_test_free_fake(fake);
}

static void settings_go_to_the_bound_device(struct kunit *test)
{
	const struct kfd_criu_settings cs = { .scratch = 77 };
	struct fake *fake = criu_test_make_fake(test);

	/* Device 0 is not in the image but still has the same user_gpu_id. */
	fake->pdds[1].user_gpu_id = fake->pdds[0].user_gpu_id;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_settings_restore(&fake->p, 1, &cs));
	fake->pdds[1].drm_file = (struct file *)fake;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_settings_restore(&fake->p, 1, &cs));
	KUNIT_EXPECT_EQ(test, 0, fake->pdds[0].qpd.sh_hidden_private_base);
	KUNIT_EXPECT_EQ(test, 77, fake->pdds[1].qpd.sh_hidden_private_base);
	fake->pdds[1].drm_file = NULL;
	criu_test_free_fake(fake);
}

static void only_a_restored_process_can_be_aborted(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_abort(&fake->p));
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_finish_devices(&fake->p));
	criu_test_free_fake(fake);
}

static void invalid_settings_and_devices_are_refused(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct kfd_criu_process cp = { .ttmp = true };
	struct kfd_criu_settings cs = {};
	struct kfd_criu_device_compat compat = {};
	struct kfd_criu_device cd = { .user_gpu_id = 1, .gpu_id = ~0U };

	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_process_restore(&fake->p, &cp));
	cp = (struct kfd_criu_process){ .r_debug = 1 };
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_process_restore(&fake->p, &cp));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_settings_restore(&fake->p, 77, &cs));
	KUNIT_EXPECT_EQ(test, -ENODEV,
			kfd_criu_device_compat_check(~0U, &compat));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_device_restore(&fake->p, &cd, NULL));
	criu_test_free_fake(fake);
}

static void ids_of_devices_are_put_back(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	unsigned int i;

	kfd_criu_process_save_gpu_ids(&fake->p);
	for (i = 0; i < DEVICES; i++)
		fake->pdds[i].user_gpu_id = DEVICES - i;
	kfd_criu_process_restore_gpu_ids(&fake->p);
	for (i = 0; i < DEVICES; i++)
		KUNIT_EXPECT_EQ(test, i + 1, fake->pdds[i].user_gpu_id);
	criu_test_free_fake(fake);
}

/* The virtual GPU has no partitions, so no selftest can open the file of one. */
static void a_vm_is_one_of_the_devices_partition(struct kunit *test)
{
	struct amdgpu_fpriv *fpriv = kunit_kzalloc(test, sizeof(*fpriv), GFP_KERNEL);
	struct amdgpu_bo *root = kunit_kzalloc(test, sizeof(*root), GFP_KERNEL);
	struct amdgpu_xcp *xcp = kunit_kzalloc(test, sizeof(*xcp), GFP_KERNEL);
	struct fake *fake = criu_test_make_fake(test);
	struct kfd_node *node = &fake->nodes[0];

	KUNIT_ASSERT_NOT_NULL(test, fpriv);
	KUNIT_ASSERT_NOT_NULL(test, root);
	KUNIT_ASSERT_NOT_NULL(test, xcp);
	root->tbo.bdev = &fake->adev.mman.bdev;
	fpriv->vm.root.bo = root;
	/* A GPU that has no partitions does not set xcp_id. */
	KUNIT_EXPECT_TRUE(test, kfd_criu_node_has_vm(node, fpriv));
	xcp->id = 3;
	node->xcp = xcp;
	KUNIT_EXPECT_FALSE(test, kfd_criu_node_has_vm(node, fpriv));
	fpriv->xcp_id = 3;
	KUNIT_EXPECT_TRUE(test, kfd_criu_node_has_vm(node, fpriv));
	/* The file of the card node. */
	fpriv->xcp_id = AMDGPU_XCP_NO_PARTITION;
	KUNIT_EXPECT_FALSE(test, kfd_criu_node_has_vm(node, fpriv));
	fpriv->xcp_id = 3;
	node->adev = NULL;
	KUNIT_EXPECT_FALSE(test, kfd_criu_node_has_vm(node, fpriv));
	criu_test_free_fake(fake);
}

/* ---- works that hang ---- */

/*
 * RESUME must succeed long before LONG_MS. Tests in which it cannot succeed
 * wait for all of SHORT_MS, each time the driver is loaded.
 */
#define LONG_MS		5000
#define SHORT_MS	50

/* Hangs until it is released, but not for ever, so that a test can fail. */
static struct {
	struct completion started;
	struct completion release;
	struct mutex *lock;	/* which the work holds meanwhile; may be NULL */
} hang;

static void criu_test_hang_fn(struct work_struct *work)
{
	if (hang.lock)
		mutex_lock(hang.lock);
	complete(&hang.started);
	if (wait_for_completion_timeout(&hang.release, msecs_to_jiffies(LONG_MS)))
		msleep(SHORT_MS);
	if (hang.lock)
		mutex_unlock(hang.lock);
}

/* Returns when the work hangs. */
static void criu_test_start_hang(struct work_struct *work, struct workqueue_struct *wq,
		       struct mutex *lock)
{
	init_completion(&hang.started);
	init_completion(&hang.release);
	hang.lock = lock;
	INIT_WORK(work, criu_test_hang_fn);
	queue_work(wq, work);
	wait_for_completion(&hang.started);
}

/* From here to criu_test_live_again(), SIGKILL is pending for the thread of the test. */
static void criu_test_be_killed(void)
{
	allow_kernel_signal(SIGKILL);
	send_sig(SIGKILL, current, 1);
}

static void criu_test_live_again(void)
{
	flush_signals(current);
	disallow_signal(SIGKILL);
}

/* ---- RESUME says whether the queues run ---- */

static struct fake *criu_test_make_restored(struct kunit *test, work_func_t worker)
{
	struct amdkfd_process_info *info = criu_test_make_process_info(worker);
	struct fake *fake = criu_test_make_fake(test);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, info);
	INIT_LIST_HEAD(&fake->p.pqm.queues);
	INIT_LIST_HEAD(&fake->p.svms.criu_svm_metadata_list);
	for (i = 0; i < DEVICES; i++)
		idr_init(&fake->pdds[i].alloc_idr);
	/* RESTORE leaves MMU notifications blocked. */
	info->block_mmu_notifications = true;
	fake->p.kgd_process_info = info;
	fake->p.criu.state = KFD_CRIU_RESTORED;
	return fake;
}

/* The thread of RESUME gives up the process after it has published the result. */
static void criu_test_wait_for_resume(const struct fake *fake)
{
	while (kref_read(&fake->p.ref) > 1)
		msleep(20);
}

static void criu_test_free_restored(struct fake *fake)
{
	unsigned int i;

	criu_test_wait_for_resume(fake);
	criu_test_free_process_info(fake->p.kgd_process_info);
	for (i = 0; i < DEVICES; i++)
		idr_destroy(&fake->pdds[i].alloc_idr);
	criu_test_free_fake(fake);
}

static void a_resume_returns_when_the_queues_run(struct kunit *test)
{
	struct fake *fake = criu_test_make_restored(test, criu_test_restore_pages);

	/* A device without a VM of the process is ignored. */
	fake->pdds[0].qpd.evicted = 1;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_resume(&fake->p, LONG_MS));
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	criu_test_free_restored(fake);
}

static void a_resume_reports_missing_user_pages(struct kunit *test)
{
	struct fake *fake = criu_test_make_restored(test, criu_test_restore_no_pages);

	KUNIT_EXPECT_EQ(test, -ETIME, kfd_criu_resume(&fake->p, SHORT_MS));
	criu_test_wait_for_resume(fake);
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	criu_test_free_restored(fake);
}

static void a_resume_reports_evicted_queues(struct kunit *test)
{
	struct fake *fake = criu_test_make_restored(test, criu_test_restore_pages);

	fake->pdds[1].drm_priv = fake;	/* any value but NULL */
	fake->pdds[1].qpd.evicted = 1;
	KUNIT_EXPECT_EQ(test, -ETIME, kfd_criu_resume(&fake->p, SHORT_MS));
	criu_test_wait_for_resume(fake);
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	/* RESUME cannot be repeated, even after -ETIME. */
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_resume(&fake->p, SHORT_MS));
	criu_test_free_restored(fake);
}

/* Memory that somebody else uses until a fence is signaled. */
struct used_memory {
	struct kgd_mem mem;
	struct dma_fence fence;
	spinlock_t lock;
	struct delayed_work signal;
};

static const char *criu_test_name_of_fence(struct dma_fence *fence)
{
	return "test";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = criu_test_name_of_fence,
	.get_timeline_name = criu_test_name_of_fence,
};

static void criu_test_signal_fence(struct work_struct *work)
{
	struct used_memory *used = container_of(to_delayed_work(work),
						struct used_memory, signal);

	dma_fence_signal(&used->fence);
}

static struct used_memory *criu_test_make_used_memory(struct kunit *test,
					    struct fake *fake)
{
	struct used_memory *used = kunit_kzalloc(test, sizeof(*used), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, used);
	mutex_init(&used->mem.lock);
	amdgpu_sync_create(&used->mem.sync);
	spin_lock_init(&used->lock);
	/* The reference of the test is not given up, so the fence is not freed. */
	dma_fence_init(&used->fence, &fence_ops, &used->lock,
		       dma_fence_context_alloc(1), 1);
	INIT_DELAYED_WORK(&used->signal, criu_test_signal_fence);
	KUNIT_ASSERT_EQ(test, 0, amdgpu_sync_fence(&used->mem.sync, &used->fence,
						   GFP_KERNEL));
	KUNIT_ASSERT_LT(test, 0, idr_alloc(&fake->pdds[0].alloc_idr, &used->mem,
					   1, 0, GFP_KERNEL));
	return used;
}

/* The fence is that of another driver, which may take seconds. */
static void a_resume_does_not_wait_for_a_fence_beyond_its_time(struct kunit *test)
{
	struct fake *fake = criu_test_make_restored(test, criu_test_restore_pages);
	struct used_memory *used = criu_test_make_used_memory(test, fake);

	schedule_delayed_work(&used->signal, msecs_to_jiffies(LONG_MS));
	KUNIT_EXPECT_EQ(test, -ETIME, kfd_criu_resume(&fake->p, SHORT_MS));
	KUNIT_EXPECT_FALSE(test, dma_fence_is_signaled(&used->fence));
	KUNIT_EXPECT_EQ(test, KFD_CRIU_RESUMING, fake->p.criu.state);
	/* The mutex is free for others meanwhile, such as the exit of the process. */
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&fake->p.mutex));
	flush_delayed_work(&used->signal);
	criu_test_wait_for_resume(fake);
	criu_test_expect_state(test, fake, KFD_CRIU_RUNNING, 0);
	amdgpu_sync_free(&used->mem.sync);
	criu_test_free_restored(fake);
}

#define HOLD_MS		(12 * SHORT_MS)

static void criu_test_hold_mutex_fn(struct work_struct *work)
{
	mutex_lock(hang.lock);
	complete(&hang.started);
	msleep(HOLD_MS);
	mutex_unlock(hang.lock);
}

/* The time that passes while an operation keeps the mutex is not added. */
static void a_resume_that_waits_twice_takes_no_longer(struct kunit *test)
{
	struct fake *fake = criu_test_make_restored(test, criu_test_restore_pages);
	struct work_struct *work = kunit_kzalloc(test, sizeof(*work), GFP_KERNEL);
	const unsigned long begin = jiffies;

	KUNIT_ASSERT_NOT_NULL(test, work);
	/* Another RESUME has begun, and does not end. */
	fake->p.criu.state = KFD_CRIU_RESUMING;
	fake->p.criu.resume_result = -EINPROGRESS;
	init_completion(&hang.started);
	hang.lock = &fake->p.mutex;
	INIT_WORK(work, criu_test_hold_mutex_fn);
	queue_work(system_unbound_wq, work);
	wait_for_completion(&hang.started);
	KUNIT_EXPECT_EQ(test, -ETIME,
			kfd_criu_resume(&fake->p, HOLD_MS + SHORT_MS));
	KUNIT_EXPECT_LT(test, jiffies_to_msecs(jiffies - begin), 2 * HOLD_MS);
	flush_work(work);
	criu_test_free_restored(fake);
}

/* ---- private data of version 1 that end too early ---- */

static void private_data_are_not_read_or_written_beyond_their_end(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	u64 at;

	at = 1;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_restore_queue(&fake->p, NULL, &at, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_restore_event(&fake->p, NULL, &at, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_stage_svm(&fake->p, 0, NULL, &at, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_checkpoint_svm(&fake->p, NULL, &at, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_checkpoint_events(&fake->p, NULL, &at, 0));
	at = 0;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_restore_queue(&fake->p, NULL, &at, 8));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_restore_event(&fake->p, NULL, &at, 8));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_stage_svm(&fake->p, 0, NULL, &at, 8));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_checkpoint_svm(&fake->p, NULL, &at, 8));
	KUNIT_EXPECT_EQ(test, 0, at);
	criu_test_free_fake(fake);
}

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
static void a_changed_number_of_svm_ranges_is_noticed(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct kfd_criu_svm *ranges;
	u64 at = 0;

	mutex_init(&fake->p.svms.lock);
	INIT_LIST_HEAD(&fake->p.svms.list);
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			kfd_criu_svm_save(&fake->p, &ranges, 1));
	KUNIT_EXPECT_NULL(test, ranges);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_v1_checkpoint_svm(&fake->p, NULL, &at,
						   kfd_criu_v1_svm_size(DEVICES)));
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_svm_save(&fake->p, &ranges, 0));
	kvfree(ranges);
	criu_test_free_fake(fake);
}
#endif

/* ---- waits that do not end ---- */

static void a_wait_for_interrupts_can_be_killed(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct kfd_node *node = &fake->nodes[1];

	fake->pdds[1].runtime_inuse = true;
	node->interrupts_active = true;
	criu_test_start_hang(&node->interrupt_work, system_unbound_wq, NULL);
	criu_test_be_killed();
	KUNIT_EXPECT_EQ(test, -EINTR, kfd_criu_event_drain_interrupts(&fake->p));
	criu_test_live_again();
	KUNIT_EXPECT_NE(test, 0, work_busy(&node->interrupt_work));
	complete(&hang.release);
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_event_drain_interrupts(&fake->p));
	KUNIT_EXPECT_EQ(test, 0, work_busy(&node->interrupt_work));
	flush_work(&node->interrupt_work);
	criu_test_free_fake(fake);
}

/* As the functions of real GPUs do after an overflow of the ring. */
static u32 criu_test_get_wptr_after_overflow(struct amdgpu_device *adev,
				   struct amdgpu_ih_ring *ih)
{
	ih->rptr = 2 * IV_BYTES;
	return IV_BYTES;
}

static const struct amdgpu_ih_funcs ih_without_timestamps = {
	.get_wptr = criu_test_get_wptr_after_overflow,
};

static const struct amdgpu_ih_funcs ih_with_timestamps = {
	.decode_iv = amdgpu_ih_decode_iv_helper,
	.get_wptr = criu_test_get_wptr_after_overflow,
	.decode_iv_ts = amdgpu_ih_decode_iv_ts_helper,
};

/* Only the interrupt handler may change the read pointer of the ring. */
static void a_wait_for_interrupts_does_not_change_the_ring(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct amdgpu_ih_ring *ih = &fake->adev.irq.ih;
	u32 *ring = kunit_kzalloc(test, 2 * IV_BYTES, GFP_KERNEL);
	/* Bit 0 tells of the overflow. */
	u32 wptr = IV_BYTES | 1;

	KUNIT_ASSERT_NOT_NULL(test, ring);
	ring[IV_TIME_WORD] = IV_LATE_TIME;
	ih->enabled = true;
	ih->ring = ring;
	ih->ptr_mask = 2 * IV_BYTES - 1;
	ih->wptr_cpu = &wptr;
	ih->rptr = IV_BYTES;
	init_waitqueue_head(&ih->wait_process);
	fake->pdds[0].runtime_inuse = true;
	fake->adev.irq.ih_funcs = &ih_without_timestamps;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_event_drain_interrupts(&fake->p));
	KUNIT_EXPECT_EQ(test, IV_BYTES, ih->rptr);
	fake->adev.irq.ih_funcs = &ih_with_timestamps;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_event_drain_interrupts(&fake->p));
	KUNIT_EXPECT_EQ(test, IV_BYTES, ih->rptr);
	/* An interrupt that is not handled is waited for, but not for ever. */
	ih->rptr = 0;
	criu_test_be_killed();
	KUNIT_EXPECT_EQ(test, -ERESTARTSYS,
			kfd_criu_event_drain_interrupts(&fake->p));
	criu_test_live_again();
	KUNIT_EXPECT_EQ(test, 0, ih->rptr);
	/* It is handled once the time of a later one was processed. */
	ih->processed_timestamp = LATE_TIME + 1;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_event_drain_interrupts(&fake->p));
	KUNIT_EXPECT_EQ(test, 0, ih->rptr);
	criu_test_free_fake(fake);
}

static void the_first_interrupt_sets_the_time_of_a_ring(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct amdgpu_ih_ring *ih = &fake->adev.irq.ih;
	u32 *ring = kunit_kzalloc(test, IV_BYTES, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ring);
	ring[IV_TIME_WORD] = IV_LATE_TIME;
	ih->ring = ring;
	fake->adev.irq.ih_funcs = &ih_with_timestamps;
	/* If it is a retry fault, it is not stale. */
	KUNIT_EXPECT_FALSE(test, amdgpu_gmc_filter_faults(&fake->adev, ih, PAGE_SIZE, 1,
							  LATE_TIME));
	amdgpu_irq_dispatch(&fake->adev, ih);
	KUNIT_EXPECT_EQ(test, LATE_TIME, ih->processed_timestamp);
	KUNIT_EXPECT_TRUE(test, amdgpu_gmc_filter_faults(&fake->adev, ih, PAGE_SIZE, 1,
							 LATE_TIME - 1));
	criu_test_free_fake(fake);
}

/* How long a handler runs after it has taken the last interrupt out of the ring. */
#define HANDLER_MS 20

struct slow_handler {
	unsigned int irq;
	bool empty;	/* the ring is */
	bool queued;	/* the interrupt is, for the worker of amdkfd */
	struct completion done;
};

static irqreturn_t criu_test_handle_slowly(int irq, void *data)
{
	struct slow_handler *slow = data;

	smp_store_release(&slow->empty, true);
	mdelay(HANDLER_MS);
	WRITE_ONCE(slow->queued, true);
	return IRQ_HANDLED;
}

static int criu_test_interrupt_fn(void *data)
{
	struct slow_handler *slow = data;

	local_irq_disable();
	generic_handle_irq(slow->irq);
	local_irq_enable();
	complete(&slow->done);
	return 0;
}

/* Raises an interrupt that has no hardware, on another CPU if there is one. */
static void criu_test_start_slow_handler(struct kunit *test, struct slow_handler *slow)
{
	const unsigned int cpu = cpumask_any_but(cpu_online_mask,
						 raw_smp_processor_id());
	const int irq = irq_alloc_desc(NUMA_NO_NODE);
	struct task_struct *task;

	KUNIT_ASSERT_GT(test, irq, 0);
	slow->irq = irq;
	init_completion(&slow->done);
	irq_set_chip_and_handler(irq, &dummy_irq_chip, handle_simple_irq);
	irq_clear_status_flags(irq, IRQ_NOREQUEST);
	KUNIT_ASSERT_EQ(test, 0, request_irq(irq, criu_test_handle_slowly, 0,
					     "kfd_criu_test", slow));
	task = kthread_create(criu_test_interrupt_fn, slow, "kfd_criu_irq");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	if (cpu < nr_cpu_ids)
		kthread_bind(task, cpu);
	wake_up_process(task);
}

/* The handler takes an interrupt out of the ring before it queues it. */
static void an_interrupt_that_is_being_handled_is_waited_for(struct kunit *test)
{
	struct slow_handler *slow = kunit_kzalloc(test, sizeof(*slow), GFP_KERNEL);
	struct fake *fake = criu_test_make_fake(test);
	struct amdgpu_ih_ring *ih = &fake->adev.irq.ih;
	u32 wptr = IV_BYTES;

	KUNIT_ASSERT_NOT_NULL(test, slow);
	ih->enabled = true;
	ih->ptr_mask = 2 * IV_BYTES - 1;
	ih->wptr_cpu = &wptr;
	ih->rptr = wptr;
	init_waitqueue_head(&ih->wait_process);
	fake->pdds[0].runtime_inuse = true;
	fake->adev.irq.ih_funcs = &ih_without_timestamps;
	criu_test_start_slow_handler(test, slow);
	fake->adev.irq.irq = slow->irq;
	fake->adev.irq.installed = true;
	while (!smp_load_acquire(&slow->empty))
		cond_resched();
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_event_drain_interrupts(&fake->p));
	KUNIT_EXPECT_TRUE(test, READ_ONCE(slow->queued));
	wait_for_completion(&slow->done);
	free_irq(slow->irq, slow);
	irq_free_desc(slow->irq);
	criu_test_free_fake(fake);
}

static void later_interrupts_are_not_waited_for(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct kfd_node *node = &fake->nodes[0];

	fake->pdds[0].runtime_inuse = true;
	node->interrupts_active = true;
	/* The worker has taken out one that came when the wait had begun. */
	node->ih_fifo.kfifo.in = 8;
	node->ih_fifo.kfifo.out = 16;
	criu_test_start_hang(&node->interrupt_work, system_unbound_wq, NULL);
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_event_drain_interrupts(&fake->p));
	KUNIT_EXPECT_NE(test, 0, work_busy(&node->interrupt_work));
	complete(&hang.release);
	flush_work(&node->interrupt_work);
	/* An interrupt in the queue is waited for, even before its work is queued. */
	node->ih_fifo.kfifo.in = 24;
	criu_test_be_killed();
	KUNIT_EXPECT_EQ(test, -EINTR, kfd_criu_event_drain_interrupts(&fake->p));
	criu_test_live_again();
	/* A device that is removed has freed the queue. */
	node->interrupts_active = false;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_event_drain_interrupts(&fake->p));
	criu_test_free_fake(fake);
}

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
static struct fake *criu_test_make_fake_with_svms(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);

	mutex_init(&fake->p.svms.lock);
	INIT_LIST_HEAD(&fake->p.svms.list);
	return fake;
}

static void a_wait_for_unmapped_ranges_can_be_killed(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake_with_svms(test);
	struct work_struct *work = &fake->p.svms.deferred_list_work;
	u32 n = 1;

	criu_test_start_hang(work, system_unbound_wq, NULL);
	criu_test_be_killed();
	KUNIT_EXPECT_EQ(test, -EINTR, kfd_criu_svm_count_killable(&fake->p, &n));
	criu_test_live_again();
	KUNIT_EXPECT_NE(test, 0, work_busy(work));
	complete(&hang.release);
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_svm_count_killable(&fake->p, &n));
	KUNIT_EXPECT_EQ(test, 0, n);
	KUNIT_EXPECT_EQ(test, 0, work_busy(work));
	flush_work(work);
	criu_test_free_fake(fake);
}

/* Threads that are not stopped can keep the worker busy for ever. */
static void a_wait_for_unmapped_ranges_is_limited(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake_with_svms(test);
	struct work_struct *work = &fake->p.svms.deferred_list_work;
	u32 n;

	criu_test_start_hang(work, system_unbound_wq, NULL);
	KUNIT_EXPECT_EQ(test, -EAGAIN, kfd_criu_svm_count_killable(&fake->p, &n));
	KUNIT_EXPECT_NE(test, 0, work_busy(work));
	complete(&hang.release);
	flush_work(work);
	criu_test_free_fake(fake);
}

/* A thread that registers a range keeps the lock until its memory is there. */
static void svm_ranges_are_read_under_their_lock(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake_with_svms(test);
	struct work_struct *registration =
		kunit_kzalloc(test, sizeof(*registration), GFP_KERNEL);
	struct kfd_criu_svm *ranges;
	u32 n;

	KUNIT_ASSERT_NOT_NULL(test, registration);
	INIT_WORK(&fake->p.svms.deferred_list_work, criu_test_hang_fn);
	criu_test_start_hang(registration, system_unbound_wq, &fake->p.svms.lock);
	criu_test_be_killed();
	KUNIT_EXPECT_EQ(test, -EINTR, kfd_criu_svm_count_killable(&fake->p, &n));
	KUNIT_EXPECT_EQ(test, -EINTR, kfd_criu_svm_save(&fake->p, &ranges, 0));
	criu_test_live_again();
	KUNIT_EXPECT_NULL(test, ranges);
	complete(&hang.release);
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_svm_count(&fake->p));
	KUNIT_EXPECT_FALSE(test, mutex_is_locked(&fake->p.svms.lock));
	flush_work(registration);
	criu_test_free_fake(fake);
}

/* Another process keeps all of the workqueue busy. */
static void a_resume_does_not_wait_for_one_that_hangs(struct kunit *test)
{
	struct fake *fake = criu_test_make_restored(test, criu_test_restore_pages);
	struct kfd_criu_svm range = { .start = 1, .npages = 1 };
	struct work_struct *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_EQ(test, 0, kfd_criu_svm_stage(&fake->p, &range));
	workqueue_set_max_active(kfd_criu_resume_wq, 1);
	criu_test_start_hang(other, kfd_criu_resume_wq, NULL);
	/* The thread of the test has no memory in which the range could be. */
	KUNIT_EXPECT_EQ(test, -ESRCH, kfd_criu_resume(&fake->p, LONG_MS / 2));
	complete(&hang.release);
	flush_work(other);
	workqueue_set_max_active(kfd_criu_resume_wq, WQ_UNBOUND_MAX_ACTIVE);
	criu_test_free_restored(fake);
}
#endif

/* ---- queues ---- */

static void a_queue_of_unknown_type_is_refused(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct kfd_criu_queue cq;
	u64 bytes, at = 0;
	u32 count;

	KUNIT_ASSERT_NOT_NULL(test, q);
	q->properties.type = KFD_QUEUE_TYPE_DIQ;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			kfd_criu_queue_describe(&fake->pdds[0], q, &cq));
	list_add(&q->list, &fake->pdds[1].qpd.queues_list);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			kfd_criu_v1_queue_sizes(&fake->p, &count, &bytes));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			kfd_criu_v1_checkpoint_queues(&fake->p, NULL, &at));
	criu_test_free_fake(fake);
}

static void one_compute_queue_can_have_the_global_wave_sync(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct kfd_process_device *pdd = &fake->pdds[0];
	struct kfd_criu_queue cq = {
		.gws = true,
		.qp = { .type = KFD_QUEUE_TYPE_COMPUTE, .queue_size = SZ_4K },
	};

	KUNIT_EXPECT_EQ(test, -ENODEV, kfd_criu_queue_check(pdd, &cq));
	pdd->dev->gws = fake;
	pdd->dev->dqm->sched_policy = KFD_SCHED_POLICY_NO_HWS;
	KUNIT_EXPECT_EQ(test, -ENODEV, kfd_criu_queue_check(pdd, &cq));
	pdd->dev->dqm->sched_policy = KFD_SCHED_POLICY_HWS;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_queue_check(pdd, &cq));
	pdd->qpd.num_gws = 1;
	KUNIT_EXPECT_EQ(test, -EBUSY, kfd_criu_queue_check(pdd, &cq));
	pdd->qpd.num_gws = 0;
	cq.qp.type = KFD_QUEUE_TYPE_SDMA;
	KUNIT_EXPECT_EQ(test, -EBUSY, kfd_criu_queue_check(pdd, &cq));
	criu_test_free_fake(fake);
}

static uint64_t criu_test_fake_stride(struct mqd_manager *mm, struct queue_properties *q)
{
	return 2 * PAGE_SIZE;
}

/* The buffer holds MQD and control stack of two XCCs, one page each. */
static void mqds_of_all_xccs_are_saved_when_the_queue_is_evicted(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test);
	struct mqd_manager *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	u8 *mqds = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	struct queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct kfd_criu_mqd mqd = { .n_xcc = 2, .mqd_size = 4, .ctl_stack_size = 4 };

	KUNIT_ASSERT_NOT_NULL(test, mm);
	KUNIT_ASSERT_NOT_NULL(test, mqds);
	KUNIT_ASSERT_NOT_NULL(test, q);
	memset(mqds, 'a', 4);
	memset(mqds + PAGE_SIZE, 'b', 4);
	memset(mqds + 2 * PAGE_SIZE, 'c', 4);
	memset(mqds + 3 * PAGE_SIZE, 'd', 4);
	mm->mqd_stride = criu_test_fake_stride;
	fake->dqms[0].dqm.mqd_mgrs[KFD_MQD_TYPE_CP] = mm;
	q->device = &fake->nodes[0];
	q->mqd = mqds;
	q->properties.type = KFD_QUEUE_TYPE_COMPUTE;
	q->properties.is_active = true;
	KUNIT_EXPECT_EQ(test, -EBUSY, kfd_criu_mqd_save(q, &mqd));
	KUNIT_EXPECT_NULL(test, mqd.data);
	q->properties.is_active = false;
	KUNIT_ASSERT_EQ(test, 0, kfd_criu_mqd_save(q, &mqd));
	KUNIT_EXPECT_MEMEQ(test, mqd.data, "aaaaccccbbbbdddd", 16);
	kvfree(mqd.data);
	/* Only the used part of the control stack is copied. */
	mqd.n_xcc = 1;
	((struct v9_mqd *)mqds)->cp_hqd_cntl_stack_offset = 3;
	KUNIT_ASSERT_EQ(test, 0, kfd_criu_mqd_save(q, &mqd));
	KUNIT_EXPECT_MEMEQ(test, mqd.data, "aaaa\0\0\0b", 8);
	kvfree(mqd.data);
	criu_test_free_fake(fake);
}

/* ---- the end of VMs ---- */

/* Time for a new thread to run until it waits for a lock. */
#define BLOCKED_MS	50

struct vm_close {
	struct amdgpu_vm vm;
	struct completion done;
};

static int criu_test_close_vm(void *data)
{
	struct vm_close *close = data;

	amdgpu_amdkfd_gpuvm_destroy_cb(NULL, &close->vm);
	complete(&close->done);
	return 0;
}

static void criu_test_start_close(struct kunit *test, struct vm_close *close, bool urgent)
{
	struct task_struct *task = kthread_create(criu_test_close_vm, close, "closing");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, 0);
	if (urgent)
		sched_set_fifo(task);
	wake_up_process(task);
	msleep(BLOCKED_MS);
}

/*
 * The second thread runs as soon as the first one releases the lock, and
 * overtakes it.
 */
static void process_info_is_freed_with_the_last_vm(struct kunit *test)
{
	struct vm_close *close = kunit_kcalloc(test, 2, sizeof(*close),
					       GFP_KERNEL);
	struct amdkfd_process_info *info = criu_test_make_process_info(criu_test_restore_no_pages);
	struct dma_fence *fence;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, close);
	KUNIT_ASSERT_NOT_NULL(test, info);
	/*
	 * Two extra references, so that the fence survives even if it is put
	 * twice.
	 */
	fence = dma_fence_get(dma_fence_get(&info->eviction_fence->base));
	for (i = 0; i < 2; i++) {
		init_completion(&close[i].done);
		close[i].vm.process_info = info;
		list_add_tail(&close[i].vm.vm_list_node, &info->vm_list_head);
		atomic_inc(&info->n_vms);
	}
	mutex_lock(&info->lock);
	criu_test_start_close(test, &close[0], false);
	criu_test_start_close(test, &close[1], true);
	mutex_unlock(&info->lock);
	for (i = 0; i < 2; i++)
		wait_for_completion(&close[i].done);
	KUNIT_EXPECT_EQ(test, 2, kref_read(&fence->refcount));
	for (i = kref_read(&fence->refcount); i > 0; i--)
		dma_fence_put(fence);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_process_without_devices_is_not_paused),
	KUNIT_CASE(a_pause_whose_measurement_fails_is_undone),
	KUNIT_CASE(a_device_that_does_not_stop_undoes_a_pause),
	KUNIT_CASE(a_process_is_paused_until_the_last_pause_ends),
	KUNIT_CASE(only_a_pause_of_version_1_has_a_timer),
	KUNIT_CASE(a_pause_ends_on_all_devices),
	KUNIT_CASE(the_end_of_a_pause_reports_a_reset),
	KUNIT_CASE(the_end_of_a_pause_reports_a_queue_that_was_reset),
	KUNIT_CASE(only_the_process_itself_can_restore),
	KUNIT_CASE(a_restore_needs_a_process_without_objects),
	KUNIT_CASE(a_restore_fails_while_an_ioctl_is_in_progress),
	KUNIT_CASE(settings_go_to_the_bound_device),
	KUNIT_CASE(only_a_restored_process_can_be_aborted),
	KUNIT_CASE(invalid_settings_and_devices_are_refused),
	KUNIT_CASE(ids_of_devices_are_put_back),
	KUNIT_CASE(a_vm_is_one_of_the_devices_partition),
	KUNIT_CASE(a_resume_returns_when_the_queues_run),
	KUNIT_CASE(a_resume_reports_missing_user_pages),
	KUNIT_CASE(a_resume_reports_evicted_queues),
	KUNIT_CASE(a_resume_does_not_wait_for_a_fence_beyond_its_time),
	KUNIT_CASE(a_resume_that_waits_twice_takes_no_longer),
	KUNIT_CASE(private_data_are_not_read_or_written_beyond_their_end),
#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
	KUNIT_CASE(a_changed_number_of_svm_ranges_is_noticed),
	KUNIT_CASE(a_wait_for_unmapped_ranges_can_be_killed),
	KUNIT_CASE(a_wait_for_unmapped_ranges_is_limited),
	KUNIT_CASE(svm_ranges_are_read_under_their_lock),
	KUNIT_CASE(a_resume_does_not_wait_for_one_that_hangs),
#endif
	KUNIT_CASE(a_wait_for_interrupts_can_be_killed),
	KUNIT_CASE(a_wait_for_interrupts_does_not_change_the_ring),
	KUNIT_CASE(the_first_interrupt_sets_the_time_of_a_ring),
	KUNIT_CASE(an_interrupt_that_is_being_handled_is_waited_for),
	KUNIT_CASE(later_interrupts_are_not_waited_for),
	KUNIT_CASE(a_queue_of_unknown_type_is_refused),
	KUNIT_CASE(one_compute_queue_can_have_the_global_wave_sync),
	KUNIT_CASE(mqds_of_all_xccs_are_saved_when_the_queue_is_evicted),
	KUNIT_CASE(process_info_is_freed_with_the_last_vm),
	{}
};

static struct kunit_suite suite = {
	.name = "kfd_criu_process",
	.test_cases = cases,
};

kunit_test_suite(suite);
