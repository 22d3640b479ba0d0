// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Losing the device: notice that the host process is gone even while no command
 * is sent, and end everything that waits for it.
 *
 * The driver stays bound, and the memory of the BAR outlives the host process.
 * Users of the device learn about it through amdgpu's own recovery, with a reset
 * that fails: fences complete with an error, amdkfd's processes get their reset
 * event. Afterwards the device is unplugged for DRM clients, and no ring accepts
 * work.
 */
#include <drm/drm_drv.h>

#include "amdgpu.h"
#include "amdgpu_reset.h"
#include "vasic.h"

#define VASIC_WATCH_PERIOD	(2 * HZ)

/* TTM still submits buffer moves to the rings, and their jobs must fail at once.
 * Fences that were emitted since the recovery would never signal, so they are
 * completed here; the scheduler is stopped meanwhile, so that no job finds its
 * ring ready in between.
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

static void vasic_fail_recovery(struct amdgpu_device *adev)
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

/* Runs in the reset domain, so never concurrently with another recovery. */
static void vasic_lost_work(struct work_struct *work)
{
	struct vasic_device *vd = container_of(work, struct vasic_device,
					       lost_work);
	int idx;

	if (!drm_dev_enter(adev_to_drm(vd->adev), &idx))
		return; /* the device is being removed */
	vasic_fail_recovery(vd->adev);
	drm_dev_exit(idx);
	/* A scheduler entity that finds none of its rings ready has no run
	 * queue, which drm_sched does not expect. Unplugging first keeps every
	 * client from submitting.
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
		return; /* vasic_lose() has scheduled lost_work */
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
 * vasic_watch_start - begin to check whether the host is alive
 * @vd: the device; amdgpu has initialised all of it
 */
void vasic_watch_start(struct vasic_device *vd)
{
	WRITE_ONCE(vd->watched, true);
	schedule_delayed_work(&vd->watch_work, VASIC_WATCH_PERIOD);
}

/**
 * vasic_watch_stop - stop checking, before the device is removed
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
 * Return: true if @adev is a virtual device whose host does not answer any more.
 */
bool vasic_device_is_lost(struct amdgpu_device *adev)
{
	return amdgpu_is_vasic(adev) && vasic_is_lost(adev->vasic);
}
