// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Communication with the host process: BARs, commands, kicks, TLB invalidation.
 * No other file reads or writes the shared control pages; the order of each word
 * is documented in vasic_abi.h.
 *
 * When the host stops answering the device is lost: every wait has a limit, the
 * first that expires is reported, and later ones do not wait at all.
 */
#include <linux/delay.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/iopoll.h>

#include "amdgpu.h"
#include "amdgpu_reset.h"
#include "vasic.h"
#include "uapi_layout.h"

#define VASIC_COMMAND_TIMEOUT_US	(5 * USEC_PER_SEC)
#define VASIC_COMMAND_SPIN_US		200
#define VASIC_TLB_TIMEOUT_US		(2 * USEC_PER_SEC)

static void __iomem *vasic_guest_words_at(struct vasic_device *vd)
{
	return vd->ctl + VASIC_OFF_GUEST;
}

static void __iomem *vasic_host_words_at(struct vasic_device *vd)
{
	return vd->ctl + VASIC_OFF_HOST;
}

/* May be called in atomic context. */
static void vasic_lose(struct vasic_device *vd, const char *what)
{
	if (xchg(&vd->lost, true))
		return;
	dev_err(vd->adev->dev,
		"vasic: host process does not answer (%s), device lost\n",
		what);
	if (READ_ONCE(vd->watched))
		amdgpu_reset_domain_schedule(vd->adev->reset_domain,
					     &vd->lost_work);
}

/**
 * vasic_kick - wake the host process
 * @vd: the device
 *
 * Orders all earlier stores before the kick.
 */
void vasic_kick(struct vasic_device *vd)
{
	wmb(); /* rings and doorbells are visible before the host looks */
	writel(VASIC_KICK_VALUE, vd->bar0 + VASIC_IVSHMEM_DOORBELL);
}

static int vasic_status_to_errno(u32 status)
{
	switch (status) {
	case VASIC_OK:
		return 0;
	case VASIC_EINVAL:
		return -EINVAL;
	case VASIC_ENOSYS:
		return -EOPNOTSUPP;
	case VASIC_EBUSY:
		return -EBUSY;
	case VASIC_EFAULT:
		return -EFAULT;
	case VASIC_ETIME:
		return -ETIME;
	case VASIC_ESTATE:
		return -ENXIO;
	default:
		return -EPROTO;
	}
}

static bool vasic_reply_seq_is(struct vasic_device *vd, u32 seq)
{
	return readl(vd->ctl + VASIC_OFF_REPLY +
		     offsetof(struct vasic_reply, seq)) == seq;
}

static u32 vasic_host_state(struct vasic_device *vd)
{
	return readl(vasic_host_words_at(vd) + offsetof(struct vasic_host_words, state));
}

/* A host process that ends in an orderly way sets VASIC_HOST_GONE first, so the
 * driver need not wait for the timeout.
 */
static bool vasic_reply_or_end(struct vasic_device *vd, u32 seq)
{
	return vasic_host_state(vd) == VASIC_HOST_GONE ||
	       vasic_reply_seq_is(vd, seq);
}

static int vasic_wait_reply(struct vasic_device *vd, u32 seq)
{
	bool done;
	int r;

	r = read_poll_timeout_atomic(vasic_reply_seq_is, done, done, 1,
				     VASIC_COMMAND_SPIN_US, false, vd, seq);
	if (!r)
		return 0;
	r = read_poll_timeout(vasic_reply_or_end, done, done, 50,
			      VASIC_COMMAND_TIMEOUT_US, false, vd, seq);
	if (r)
		return r;
	return vasic_reply_seq_is(vd, seq) ? 0 : -ENODEV;
}

static int vasic_command_locked(struct vasic_device *vd, u32 opcode,
				struct vasic_args *args)
{
	void __iomem *cmd = vd->ctl + VASIC_OFF_COMMAND;
	void __iomem *reply = vd->ctl + VASIC_OFF_REPLY;
	u32 status;
	int i;

	if (vasic_is_lost(vd))
		return -ENODEV;

	vd->command_seq++;
	for (i = 0; i < ARRAY_SIZE(args->cmd.arg); i++)
		writeq(args ? args->cmd.arg[i] : 0,
		       cmd + offsetof(struct vasic_command, cmd) + 8 * i);
	writel(opcode, cmd + offsetof(struct vasic_command, opcode));
	wmb(); /* the request is complete before its number appears */
	writel(vd->command_seq, cmd + offsetof(struct vasic_command, seq));
	vasic_kick(vd);

	if (vasic_wait_reply(vd, vd->command_seq)) {
		vasic_lose(vd, "command");
		return -ENODEV;
	}
	rmb(); /* the answer is read after its number */
	status = readl(reply + offsetof(struct vasic_reply, status));
	for (i = 0; args && i < ARRAY_SIZE(args->value); i++)
		args->value[i] = readq(reply +
				       offsetof(struct vasic_reply, value) +
				       8 * i);
	return vasic_status_to_errno(status);
}

/**
 * vasic_command - send a command to the host and wait for the answer
 * @vd: the device
 * @opcode: enum vasic_opcode
 * @args: arguments in, values out; may be NULL if there are none
 *
 * May sleep.
 *
 * Return: 0, or the errno of the reply's status, or -ENODEV if the device is or
 * got lost.
 */
int vasic_command(struct vasic_device *vd, u32 opcode, struct vasic_args *args)
{
	guard(mutex)(&vd->command_lock);
	return vasic_command_locked(vd, opcode, args);
}

/* Sends a command together with an MQD in the MQD page. */
static int vasic_command_with_mqd(struct vasic_device *vd, u32 opcode,
				  struct vasic_args *args, const void *mqd,
				  u32 size)
{
	guard(mutex)(&vd->command_lock);
	memcpy_toio(vd->ctl + VASIC_OFF_MQD, mqd, size);
	return vasic_command_locked(vd, opcode, args);
}

static struct vasic_hqd vasic_sdma_hqd(struct vasic_sdma_slot slot)
{
	return (struct vasic_hqd) {
		.kind = VASIC_QUEUE_SDMA,
		.pipe = slot.engine,
		.slot = slot.queue,
	};
}

/**
 * vasic_sdma_hqd_prepare - clear a stale doorbell value before a user SDMA queue is loaded
 * @vd: the device
 * @slot: where the queue is going to be loaded, and the size of the MQD
 * @mqd: its MQD, which has no GPU address
 *
 * The caller calls this before it reads the write pointer from user memory.
 *
 * Return: 0 or a negative errno, see vasic_command().
 */
int vasic_sdma_hqd_prepare(struct vasic_device *vd, struct vasic_sdma_slot slot,
			   const void *mqd)
{
	struct vasic_args args = {
		.cmd.hqd_prepare = {
			.hqd = vasic_sdma_hqd(slot),
			.flags = VASIC_HQD_BY_VALUE,
		},
	};

	return vasic_command_with_mqd(vd, VASIC_CMD_HQD_PREPARE, &args, mqd,
				      slot.size);
}

/**
 * vasic_sdma_hqd_load - load a user SDMA queue whose MQD has no GPU address
 * @vd: the device
 * @slot: where to, and the size of the MQD
 * @mqd: the MQD
 *
 * Return: 0 or a negative errno, see vasic_command().
 */
int vasic_sdma_hqd_load(struct vasic_device *vd, struct vasic_sdma_slot slot,
			const void *mqd)
{
	struct vasic_args args = {
		.cmd.hqd_load = {
			.hqd = vasic_sdma_hqd(slot),
			.flags = VASIC_HQD_BY_VALUE,
		},
	};

	return vasic_command_with_mqd(vd, VASIC_CMD_HQD_LOAD, &args, mqd,
				      slot.size);
}

/**
 * vasic_sdma_hqd_unload - undo vasic_sdma_hqd_load()
 * @vd: the device
 * @slot: where from, and the size of the MQD
 * @mqd: written back on success
 *
 * Return: 0 or a negative errno, see vasic_command().
 */
int vasic_sdma_hqd_unload(struct vasic_device *vd, struct vasic_sdma_slot slot,
			  void *mqd)
{
	struct vasic_args args = {
		.cmd.hqd_unload = {
			.hqd = vasic_sdma_hqd(slot),
			.mode = VASIC_UNLOAD_SAVE,
			.flags = VASIC_HQD_BY_VALUE,
		},
	};
	int r;

	guard(mutex)(&vd->command_lock);
	r = vasic_command_locked(vd, VASIC_CMD_HQD_UNLOAD, &args);
	if (!r)
		memcpy_fromio(mqd, vd->ctl + VASIC_OFF_MQD, slot.size);
	return r;
}

/**
 * vasic_reset - bring the device to its power-on state; VRAM keeps its contents
 * @vd: the device
 *
 * Return: 0 or a negative errno, see vasic_command().
 */
int vasic_reset(struct vasic_device *vd)
{
	struct vasic_args args = {
		.cmd.reset.abi_version = VASIC_ABI_VERSION,
	};

	return vasic_command(vd, VASIC_CMD_RESET, &args);
}

/**
 * vasic_tlb_invalidate - make the host drop all cached translations
 * @vd: the device
 *
 * When this returns no access through an older translation is under way or
 * will be started, or the device is lost. May be called in atomic context.
 * Costs a few loads and stores while the host is idle, see
 * struct vasic_host_words.walk_epoch.
 */
void vasic_tlb_invalidate(struct vasic_device *vd)
{
	void __iomem *epoch_at = vasic_host_words_at(vd) +
		offsetof(struct vasic_host_words, walk_epoch);
	unsigned long flags;
	u32 epoch, now;

	spin_lock_irqsave(&vd->tlb_lock, flags);
	if (vasic_is_lost(vd))
		goto out;
	mb(); /* page table stores before the new generation */
	writel(++vd->tlb_gen, vasic_guest_words_at(vd) +
	       offsetof(struct vasic_guest_words, tlb_gen));
	mb(); /* the new generation before the epoch is read */
	epoch = readl(epoch_at);
	if ((epoch & 1) &&
	    read_poll_timeout_atomic(readl, now, now != epoch, 1,
				     VASIC_TLB_TIMEOUT_US, false, epoch_at))
		vasic_lose(vd, "TLB invalidation");
out:
	spin_unlock_irqrestore(&vd->tlb_lock, flags);
}

/**
 * vasic_ih_write_rptr - give entries of the IH ring back to the host
 * @vd: the device
 * @rptr: read pointer, in bytes
 */
void vasic_ih_write_rptr(struct vasic_device *vd, u32 rptr)
{
	mb(); /* entries are consumed before they are given back */
	writel(rptr, vasic_guest_words_at(vd) +
	       offsetof(struct vasic_guest_words, ih_rptr));
}

/**
 * vasic_host_is_alive - see whether the host process is still there
 * @vd: the device
 *
 * While the host is busy its heartbeat counts. When it is idle the heartbeat
 * stands still, so a NOP finds out whether it answers.
 *
 * Return: false if the device is lost.
 */
bool vasic_host_is_alive(struct vasic_device *vd)
{
	u32 beat = readl(vasic_host_words_at(vd) +
			 offsetof(struct vasic_host_words, heartbeat));
	struct vasic_args args = {};

	if (vasic_host_state(vd) != VASIC_HOST_GONE && beat != vd->heartbeat) {
		vd->heartbeat = beat;
		return true;
	}
	return vasic_command(vd, VASIC_CMD_NOP, &args) != -ENODEV;
}

/**
 * vasic_clock - read the GPU clock counter, as time stamps of packets show it
 * @vd: the device
 *
 * The host reads its clock while the caller waits, so a time stamp that the GPU
 * writes before this call is not larger than the result, and one that it writes
 * afterwards is not smaller. A clock of the guest would drift away from it. That
 * is also so with concurrent callers: each gets the value of its own command. May
 * sleep.
 *
 * Return: ticks of info.clock_khz; the last value read if the device is lost.
 */
u64 vasic_clock(struct vasic_device *vd)
{
	struct vasic_args args = {};

	guard(mutex)(&vd->command_lock);
	if (!vasic_command_locked(vd, VASIC_CMD_NOP, &args))
		vd->clock = args.value[0];
	return vd->clock;
}

static bool vasic_memory_is_sane(const struct vasic_info *info,
				 resource_size_t bar_size)
{
	return info->bar_size <= bar_size &&
	       info->vram_size <= info->bar_size - VASIC_OFF_VRAM &&
	       info->vram_visible_size <= info->vram_size &&
	       IS_ALIGNED(info->vram_size, SZ_1M) && info->vram_size;
}

/* The driver has tables for these formats and no other. */
static bool vasic_formats_are_known(const struct vasic_info *info)
{
	return info->gfx_level >= 7 && info->gfx_level <= 12 &&
	       info->pte_format <= VASIC_PTE_GFX12 &&
	       info->ih_format <= VASIC_IH_SOC21 &&
	       info->sdma_format <= VASIC_SDMA_V7 &&
	       info->scheduler <= VASIC_SCHEDULER_MES &&
	       (info->doorbell_size == sizeof(u32) ||
		info->doorbell_size == sizeof(u64)) &&
	       (info->vm_levels == 1 || info->vm_levels == 3) &&
	       info->vm_address_bits >= 40 && info->vm_address_bits <= 48;
}

static bool vasic_counts_are_sane(const struct vasic_info *info)
{
	return info->sdma_count >= 1 &&
	       info->sdma_count <= min(AMDGPU_MAX_SDMA_INSTANCES, VASIC_MAX_SDMA) &&
	       info->sdma_per_aid >= 1 && info->sdma_per_aid <= VASIC_SDMA_PER_AID &&
	       DIV_ROUND_UP(info->sdma_count, info->sdma_per_aid) <= VASIC_MAX_AID &&
	       info->se_count >= 1 && info->se_count <= VASIC_MAX_SE &&
	       info->sh_per_se >= 1 && info->sh_per_se <= VASIC_MAX_SH_PER_SE &&
	       info->xcc_count >= 1 && info->xcc_count <= VASIC_MAX_XCC &&
	       (info->xcc_count == 1 || info->gc_ip == VASIC_IP_VERSION(9, 4, 3)) &&
	       info->mec_count >= 1 && info->pipes_per_mec >= 1 &&
	       info->pipes_per_mec <= VASIC_MAX_PIPES_PER_MEC &&
	       info->queues_per_pipe >= 1 &&
	       info->queues_per_pipe <= VASIC_MAX_QUEUES_PER_PIPE &&
	       info->compute_rings <= min(AMDGPU_MAX_COMPUTE_RINGS,
					  info->pipes_per_mec * info->queues_per_pipe) &&
	       info->first_kfd_vmid >= 1 && info->first_kfd_vmid < VASIC_MAX_VMID;
}

/* amdkfd walks the CUs in steps of those that share a cache. */
static bool vasic_caches_are_sane(const struct vasic_info *info)
{
	return !info->vector_l1_kib ||
	       info->cu_per_sqc == 1 || info->cu_per_sqc == 2;
}

static int vasic_check_info(const struct vasic_info *info,
			    resource_size_t bar_size)
{
	if (!vasic_memory_is_sane(info, bar_size) ||
	    !vasic_formats_are_known(info) || !vasic_counts_are_sane(info) ||
	    !vasic_caches_are_sane(info) || !info->clock_khz)
		return -EPROTO;
	return 0;
}

static int vasic_map(struct vasic_device *vd, struct pci_dev *pdev)
{
	vd->bar0 = devm_ioremap(&pdev->dev, pci_resource_start(pdev, 0),
				pci_resource_len(pdev, 0));
	vd->ctl = devm_ioremap(&pdev->dev, pci_resource_start(pdev, 2),
			       VASIC_OFF_MMIO);
	if (!vd->bar0 || !vd->ctl)
		return -ENOMEM;
	memcpy_fromio(&vd->info, vd->ctl + VASIC_OFF_INFO, sizeof(vd->info));
	return vasic_check_info(&vd->info, pci_resource_len(pdev, 2));
}

/**
 * vasic_attach - hook of amdgpu_device_init(): find the device's memory
 * @adev: any device; does nothing if it is not virtual
 *
 * Sets adev->vasic and points the MMIO window at memory without any effect.
 *
 * Return: 0 or a negative errno.
 */
int vasic_attach(struct amdgpu_device *adev)
{
	struct pci_dev *pdev = adev->pdev;
	struct vasic_device *vd;
	int r;

	if (!(adev->flags & AMD_IS_VASIC))
		return 0;

	vd = devm_kzalloc(&pdev->dev, sizeof(*vd), GFP_KERNEL);
	if (!vd)
		return -ENOMEM;
	vd->adev = adev;
	mutex_init(&vd->command_lock);
	spin_lock_init(&vd->tlb_lock);
	r = vasic_map(vd, pdev);
	if (r)
		return dev_err_probe(&pdev->dev, r,
				     "vasic: unusable device description\n");
	vd->command_seq = readl(vd->ctl + VASIC_OFF_REPLY +
				offsetof(struct vasic_reply, seq));
	vd->tlb_gen = readl(vasic_guest_words_at(vd) +
			    offsetof(struct vasic_guest_words, tlb_gen));
	r = vasic_reset(vd);
	if (r)
		return r;

	adev->vasic = vd;
	adev->rmmio_base = pci_resource_start(pdev, 2) + VASIC_OFF_MMIO;
	adev->rmmio_size = VASIC_MMIO_SIZE;
	dev_info(&pdev->dev, "vasic: virtual %.*s, GPU %u of its host process\n",
		 VASIC_NAME_LEN, vd->info.name, vd->info.gpu_index);
	return 0;
}

/**
 * vasic_doorbell_init - hook of amdgpu_doorbell_init(): the aperture's place
 * @adev: any device; does nothing if it is not virtual
 */
void vasic_doorbell_init(struct amdgpu_device *adev)
{
	if (!amdgpu_is_vasic(adev))
		return;
	adev->doorbell.base = pci_resource_start(adev->pdev, 2) +
			      VASIC_OFF_DOORBELL;
	adev->doorbell.size = VASIC_DOORBELL_SIZE;
}
