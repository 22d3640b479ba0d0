// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Claiming the device, if the module parameter and the magic allow it, and the
 * list of its IP blocks. The host says which GPU it is.
 */
#include <linux/device.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pci_ids.h>

#include "amdgpu.h"
#include "vasic.h"

static bool vasic_enable;
module_param_named(vasic, vasic_enable, bool, 0444);
MODULE_PARM_DESC(vasic, "Claim virtual AMD GPUs (ivshmem devices with VASIC_ABI_MAGIC), for tests (default: false)");

/* Gives the device its own identity back, by which a driver that is loaded again
 * finds it.
 */
static void vasic_restore_ids(void *data)
{
	struct pci_dev *pdev = data;

	pdev->vendor = VASIC_PCI_VENDOR_ID;
	pdev->device = VASIC_PCI_DEVICE_ID;
	pci_read_config_byte(pdev, PCI_REVISION_ID, &pdev->revision);
}

/* sysfs and amdkfd's topology shall show the ids of the chip, by which libdrm and
 * rocm-smi find AMD's GPUs. The config space, which the host owns, is unchanged.
 */
static int vasic_set_ids(struct pci_dev *pdev, const struct vasic_info *info)
{
	if (!info->pci_device_id)
		return 0;
	pdev->vendor = PCI_VENDOR_ID_ATI;
	pdev->device = info->pci_device_id;
	pdev->revision = info->pci_revision;
	return devm_add_action_or_reset(&pdev->dev, vasic_restore_ids, pdev);
}

/**
 * vasic_pci_probe - hook of amdgpu_pci_probe(): decide whether to bind
 * @pdev: the device; its BARs are not mapped yet
 * @flags: driver_data of its row in the PCI table; the chip is added
 *
 * A device that is claimed has the PCI ids of its chip until the driver leaves it.
 *
 * Return: 0 for every device that is not an ivshmem device, and for one that has
 * the magic if amdgpu.vasic=1; -ENODEV for any other ivshmem device; another
 * negative errno if BAR2 cannot be read or its ABI version is not this driver's.
 */
int vasic_pci_probe(struct pci_dev *pdev, unsigned long *flags)
{
	struct vasic_info info;
	void __iomem *page;
	int r;

	if (!(*flags & AMD_IS_VASIC))
		return 0;
	if (!vasic_enable || pci_resource_len(pdev, 2) <= VASIC_OFF_VRAM)
		return -ENODEV;

	r = pci_enable_device_mem(pdev);
	if (r)
		return r;
	page = ioremap(pci_resource_start(pdev, 2) + VASIC_OFF_INFO,
		       sizeof(info));
	if (page) {
		memcpy_fromio(&info, page, sizeof(info));
		iounmap(page);
	}
	pci_disable_device(pdev);
	if (!page)
		return -ENOMEM;
	if (info.magic != VASIC_ABI_MAGIC)
		return -ENODEV;
	if (info.abi_version != VASIC_ABI_VERSION ||
	    info.info_size < sizeof(info) || info.asic_type >= CHIP_LAST) {
		dev_err(&pdev->dev, "vasic: host speaks ABI %u, this kernel %u\n",
			info.abi_version, VASIC_ABI_VERSION);
		return -EPROTO;
	}
	*flags = AMD_IS_VASIC | info.asic_type;
	return vasic_set_ids(pdev, &info);
}

/**
 * vasic_set_ip_blocks - hook of amdgpu_device_ip_early_init()
 * @adev: the virtual device
 *
 * Called instead of amdgpu_discovery_set_ip_blocks(), which reads the discovery
 * table of real hardware, and instead of the functions of older chips. The
 * description by the host takes the place of that table.
 *
 * Return: 0 or a negative errno.
 */
int vasic_set_ip_blocks(struct amdgpu_device *adev)
{
	static const struct amdgpu_ip_block_version * const blocks[] = {
		&vasic_common_ip_block, &vasic_gmc_ip_block, &vasic_ih_ip_block,
		&vasic_gfx_ip_block, &vasic_sdma_ip_block, &vasic_mes_ip_block,
	};
	const struct vasic_info *info = &adev->vasic->info;
	int count = ARRAY_SIZE(blocks);
	int i, r;

	adev->family = info->family;
	adev->gfx.xcc_mask = BIT(info->xcc_count) - 1;
	adev->sdma.num_instances = info->sdma_count;
	adev->sdma.sdma_mask = BIT(info->sdma_count) - 1;
	adev->ip_versions[GC_HWIP][0] = info->gc_ip;
	adev->ip_versions[MMHUB_HWIP][0] = info->mmhub_ip;
	adev->ip_versions[OSSSYS_HWIP][0] = info->osssys_ip;
	adev->ip_versions[SDMA0_HWIP][0] = info->sdma_ip;
	adev->ip_versions[SDMA1_HWIP][0] = info->sdma_ip;
	if (info->scheduler != VASIC_SCHEDULER_MES)
		count--; /* leave out the MES, the last block */
	for (i = 0; i < count; i++) {
		r = amdgpu_device_ip_block_add(adev, blocks[i]);
		if (r)
			return r;
	}
	return 0;
}
