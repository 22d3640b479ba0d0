// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * VM faults: where each generation reports them and what the entry contains. A
 * fault that may be retried is handed to amdgpu_vm, which may map the page;
 * amdkfd sees every other fault and turns it into a memory exception event.
 */
#include <linux/bitfield.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_gmc.h"
#include "ivsrcid/ivsrcid_vislands30.h"
#include "ivsrcid/vmc/irqsrcs_vmc_1_0.h"
#include "soc15_ih_clientid.h"
#include "vasic.h"

/* Dwords of a SOC15 entry; amdgpu_irq_delegate() copies whole entries. */
#define VASIC_SOC15_ENTRY_DW	8
#define VASIC_FAULT_WRITE	0x20	/* src_data[1] */
#define VASIC_FAULT_RETRY	0x80

/* VM_CONTEXT1_PROTECTION_FAULT_STATUS */
#define VASIC_STATUS_PROT_VALID	0x7
#define VASIC_STATUS_PROT_READ	0x8
#define VASIC_STATUS_PROT_WRITE	0x10
#define VASIC_STATUS_PROT_EXEC	0x20
#define VASIC_STATUS_CLIENT	GENMASK(20, 12)
#define VASIC_STATUS_WRITE	BIT(24)
#define VASIC_STATUS_VMID	GENMASK(28, 25)

static int vasic_fault_set(struct amdgpu_device *adev,
			   struct amdgpu_irq_src *src, unsigned int type,
			   enum amdgpu_interrupt_state state)
{
	return 0; /* faults are always reported */
}

static void vasic_fault_report(struct amdgpu_device *adev, const char *kind,
			       u64 addr, bool write,
			       const struct amdgpu_iv_entry *entry)
{
	dev_err_ratelimited(adev->dev,
			    "vasic: %s page fault at 0x%016llx (%s, vmid:%u pasid:%u)\n",
			    kind, addr, write ? "write" : "read", entry->vmid,
			    entry->pasid);
}

/* Stores what amdkfd reads with amdgpu_amdkfd_gpuvm_get_vm_fault_info(), as
 * gmc_v7_0_process_interrupt() does, and the status for vasic_fault_vmid().
 */
static void vasic_fault_publish(struct amdgpu_device *adev, u32 status,
				u32 page)
{
	struct kfd_vm_fault_info *info = adev->gmc.vm_fault_info;
	u32 vmid = FIELD_GET(VASIC_STATUS_VMID, status);

	WRITE_ONCE(adev->vasic->fault_status, status);
	if (!amdgpu_amdkfd_is_kfd_vmid(adev, vmid) ||
	    atomic_read_acquire(&adev->gmc.vm_fault_info_updated))
		return;
	info->vmid = vmid;
	info->mc_id = FIELD_GET(VASIC_STATUS_CLIENT, status);
	info->status = status;
	info->page_addr = page;
	info->prot_valid = status & VASIC_STATUS_PROT_VALID;
	info->prot_read = status & VASIC_STATUS_PROT_READ;
	info->prot_write = status & VASIC_STATUS_PROT_WRITE;
	info->prot_exec = status & VASIC_STATUS_PROT_EXEC;
	atomic_set_release(&adev->gmc.vm_fault_info_updated, 1);
}

static int vasic_fault_process_cik(struct amdgpu_device *adev,
				   struct amdgpu_irq_src *src,
				   struct amdgpu_iv_entry *entry)
{
	u32 page = le32_to_cpu(entry->iv_entry[1]);
	u32 status = le32_to_cpu(entry->iv_entry[3]);
	u64 addr = (u64)page << AMDGPU_GPU_PAGE_SHIFT;

	WRITE_ONCE(adev->vasic->vmid_pasid[entry->vmid % VASIC_MAX_VMID],
		   entry->pasid);
	amdgpu_vm_update_fault_cache(adev, entry->pasid, addr, status,
				     AMDGPU_GFXHUB(0));
	vasic_fault_report(adev, "no-retry", addr, status & VASIC_STATUS_WRITE,
			   entry);
	vasic_fault_publish(adev, status, page);
	return 0;
}

/* Returns true if amdgpu_vm handles the fault, now or from the software ring. */
static bool vasic_fault_recovers(struct amdgpu_device *adev,
				 struct amdgpu_iv_entry *entry, u64 addr)
{
	bool write = entry->src_data[1] & VASIC_FAULT_WRITE;

	/* only the first fault of a page, and not in the interrupt handler */
	if (entry->ih != &adev->irq.ih_soft &&
	    amdgpu_gmc_filter_faults(adev, entry->ih, addr, entry->pasid,
				     entry->timestamp))
		return true;
	if (entry->ih == &adev->irq.ih) {
		amdgpu_irq_delegate(adev, entry, VASIC_SOC15_ENTRY_DW);
		return true;
	}
	return amdgpu_vm_handle_fault(adev, entry->pasid, entry->vmid,
				      entry->node_id, addr, entry->timestamp,
				      write);
}

static u32 vasic_fault_hub(struct amdgpu_device *adev,
			   const struct amdgpu_iv_entry *entry)
{
	int xcc;

	if (entry->client_id == SOC15_IH_CLIENTID_VMC)
		return AMDGPU_MMHUB0(entry->node_id / VASIC_NODES_PER_AID);
	xcc = vasic_node_to_xcc(adev, entry->node_id);
	return AMDGPU_GFXHUB(xcc < 0 ? 0 : xcc);
}

static int vasic_fault_process_soc15(struct amdgpu_device *adev,
				     struct amdgpu_irq_src *src,
				     struct amdgpu_iv_entry *entry)
{
	bool retry = entry->src_data[1] & VASIC_FAULT_RETRY;
	u64 addr = (u64)entry->src_data[0] << AMDGPU_GPU_PAGE_SHIFT;

	addr |= ((u64)entry->src_data[1] & 0xf) << 44;
	if (retry && vasic_fault_recovers(adev, entry, addr))
		return 1; /* amdkfd must not see it */
	vasic_fault_report(adev, retry ? "retry" : "no-retry", addr,
			   entry->src_data[1] & VASIC_FAULT_WRITE, entry);
	amdgpu_vm_update_fault_cache(adev, entry->pasid, addr,
				     entry->src_data[1],
				     vasic_fault_hub(adev, entry));
	return 0;
}

static const struct amdgpu_irq_src_funcs vasic_fault_funcs_cik = {
	.set = vasic_fault_set,
	.process = vasic_fault_process_cik,
};

static const struct amdgpu_irq_src_funcs vasic_fault_funcs_soc15 = {
	.set = vasic_fault_set,
	.process = vasic_fault_process_soc15,
};

/* Client and source ids of faults, indexed by enum vasic_ih_format. The client of
 * the UTCL2 is named GFX in SOC21.
 */
static const struct {
	u32 client;
	u32 source;
} vasic_fault_sources[][2] = {
	[VASIC_IH_CIK] = {
		{ AMDGPU_IRQ_CLIENTID_LEGACY, VISLANDS30_IV_SRCID_GFX_PAGE_INV_FAULT },
		{ AMDGPU_IRQ_CLIENTID_LEGACY, VISLANDS30_IV_SRCID_GFX_MEM_PROT_FAULT },
	},
	[VASIC_IH_SOC15] = {
		{ SOC15_IH_CLIENTID_VMC, VMC_1_0__SRCID__VM_FAULT },
		{ SOC15_IH_CLIENTID_UTCL2, VMC_1_0__SRCID__VM_FAULT },
	},
	[VASIC_IH_SOC21] = {
		{ SOC21_IH_CLIENTID_VMC, VMC_1_0__SRCID__VM_FAULT },
		{ SOC21_IH_CLIENTID_GFX, VMC_1_0__SRCID__VM_FAULT },
	},
};

/**
 * vasic_fault_early_init - choose the functions that read fault entries
 * @adev: the virtual device
 */
void vasic_fault_early_init(struct amdgpu_device *adev)
{
	adev->gmc.vm_fault.num_types = 1;
	adev->gmc.vm_fault.funcs =
		adev->vasic->info.ih_format == VASIC_IH_CIK ?
		&vasic_fault_funcs_cik : &vasic_fault_funcs_soc15;
}

/**
 * vasic_fault_sw_init - register the sources of faults
 * @adev: the virtual device
 *
 * Return: 0 or a negative errno.
 */
int vasic_fault_sw_init(struct amdgpu_device *adev)
{
	u32 format = adev->vasic->info.ih_format;
	int i, r;

	if (format == VASIC_IH_CIK) {
		adev->gmc.vm_fault_info =
			kzalloc(sizeof(*adev->gmc.vm_fault_info), GFP_KERNEL);
		if (!adev->gmc.vm_fault_info)
			return -ENOMEM;
		atomic_set_release(&adev->gmc.vm_fault_info_updated, 0);
	}
	for (i = 0; i < ARRAY_SIZE(vasic_fault_sources[format]); i++) {
		r = amdgpu_irq_add_id(adev, vasic_fault_sources[format][i].client,
				      vasic_fault_sources[format][i].source,
				      &adev->gmc.vm_fault);
		if (r)
			return r;
	}
	return 0;
}

/**
 * vasic_fault_sw_fini - undo vasic_fault_sw_init()
 * @adev: the virtual device
 */
void vasic_fault_sw_fini(struct amdgpu_device *adev)
{
	kfree(adev->gmc.vm_fault_info);
	adev->gmc.vm_fault_info = NULL;
}

/**
 * vasic_fault_vmid - return the VMID of the last fault, a register on hardware
 * @adev: the virtual device
 *
 * Return: a VMID, 0 before the first fault.
 */
u32 vasic_fault_vmid(struct amdgpu_device *adev)
{
	return FIELD_GET(VASIC_STATUS_VMID,
			 READ_ONCE(adev->vasic->fault_status));
}
