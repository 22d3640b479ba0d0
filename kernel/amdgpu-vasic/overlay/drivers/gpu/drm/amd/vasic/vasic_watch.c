// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Losing the device: notice that the host process is gone although nobody asks
 * it anything, and let go of everything that waits for it.
 *
 * The driver stays bound, and the memory of the BAR outlives the host process.
 * What can be told is told through amdgpu's own recovery, with a reset that
 * fails: fences complete with an error, amdkfd's processes get their reset event.
 * Afterwards the device is unplugged for DRM's clients, and no ring accepts work.
 */
#include <drm/drm_drv.h>

#include "amdgpu.h"
#include "amdgpu_reset.h"
#include "vasic.h"

#define VASIC_WATCH_PERIOD	(2 * HZ)

/* Buffer moves of the kernel go on to use the rings: their jobs fail at once. What
 * was emitted since the recovery has nobody who completes it; jobs that run now would
 * have found their ring ready.
 */
static void vasic_disable_rings(struct amdgpu_device *adev)
{
	int i;

	for (i = 0; i < AMDGPU_MAX_RINGS; i++) {
		struct amdgpu_ring *ring = adev->rings[i];

		if (amdgpu_ring_sched_ready(ring)) {
			drm_sched_wqueue_stop(&ring->sched);
			ring->sched.ready = false;
			amdgpu_fence_driver_force_completion(ring, NULL);
			drm_sched_wqueue_start(&ring->sched);
		} else if (ring) {
			ring->sched.ready = false;
		}
	}
}

static void vasic_let_go(struct amdgpu_device *adev)
{
	struct amdgpu_reset_context context = {
		.method = AMD_RESET_METHOD_NONE,
		.reset_req_dev = adev,
		.src = AMDGPU_RESET_SRC_UNKNOWN,
	};

	set_bit(AMDGPU_NEED_FULL_RESET, &context.flags);
	set_bit(AMDGPU_SKIP_COREDUMP, &context.flags);
	amdgpu_device_gpu_recover(adev, NULL, &context);
}

/* Runs in the reset domain, so never beside another recovery. */
static void vasic_lost_work(struct work_struct *work)
{
	struct vasic_device *vd = container_of(work, struct vasic_device,
					       lost_work);
	int idx;

	if (!drm_dev_enter(adev_to_drm(vd->adev), &idx))
		return; /* it is being removed anyway */
	vasic_let_go(vd->adev);
	drm_dev_exit(idx);
	/* An entity that may choose among rings and finds none ready has no
	 * run queue, which the scheduler does not expect: so first keep every
	 * client away.
	 */
	drm_dev_unplug(adev_to_drm(vd->adev));
	vasic_disable_rings(vd->adev);
}

static void vasic_watch_work(struct work_struct *work)
{
	struct vasic_device *vd = container_of(to_delayed_work(work),
					       struct vasic_device, watch_work);

	if (vasic_is_lost(vd))
		return;
	if (!vasic_host_is_alive(vd))
		return; /* just lost */
	schedule_delayed_work(&vd->watch_work, VASIC_WATCH_PERIOD);
}

/**
 * vasic_watch_init - initialise the work items
 * @vd: the device
 */
void vasic_watch_init(struct vasic_device *vd)
{
	INIT_WORK(&vd->lost_work, vasic_lost_work);
	INIT_DELAYED_WORK(&vd->watch_work, vasic_watch_work);
}

/**
 * vasic_watch_start - from now on a lost device is let go of
 * @vd: the device; amdgpu has initialised all of it
 */
void vasic_watch_start(struct vasic_device *vd)
{
	WRITE_ONCE(vd->watched, true);
	schedule_delayed_work(&vd->watch_work, VASIC_WATCH_PERIOD);
}

/**
 * vasic_watch_stop - the device is about to be removed
 * @vd: the device
 */
void vasic_watch_stop(struct vasic_device *vd)
{
	WRITE_ONCE(vd->watched, false);
	cancel_delayed_work_sync(&vd->watch_work);
	cancel_work_sync(&vd->lost_work);
}

/**
 * vasic_device_is_lost - hook of amdkfd_fence_wait_timeout()
 * @adev: any device
 *
 * Return: whether no answer is to be expected from a virtual device.
 */
bool vasic_device_is_lost(struct amdgpu_device *adev)
{
	return amdgpu_is_vasic(adev) && vasic_is_lost(adev->vasic);
}
