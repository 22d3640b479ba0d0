/* SPDX-License-Identifier: MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The virtual AMD GPU as amdgpu sees it. This directory fills the ops tables
 * that real hardware fills and forwards to the host process; it decides and
 * computes nothing that the host can. The memory both sides share is described
 * in vasic_abi.h, and vasic_bus.c is the only file that touches it.
 *
 * Hooks in amdgpu and amdkfd call the functions of the first half; they compile
 * to nothing without CONFIG_DRM_AMDGPU_VASIC.
 */
#ifndef VASIC_H
#define VASIC_H

#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "vasic_abi.h"

struct amdgpu_device;
struct amdgpu_ip_block_version;
struct kfd2kgd_calls;

/* A bit of enum amd_chip_flags that amd_shared.h does not use. */
#define AMD_IS_VASIC	0x80000000UL

#ifdef CONFIG_DRM_AMDGPU_VASIC

/* Rows for amdgpu's PCI table. Every ivshmem device has this id: whether a
 * device that matches is a virtual GPU is found out by vasic_pci_probe().
 */
#define VASIC_PCI_IDS \
	{ PCI_DEVICE(VASIC_PCI_VENDOR_ID, VASIC_PCI_DEVICE_ID), \
	  .driver_data = AMD_IS_VASIC },

#define amdgpu_is_vasic(adev)	(!!(adev)->vasic)

int vasic_pci_probe(struct pci_dev *pdev, unsigned long *flags);
int vasic_attach(struct amdgpu_device *adev);
int vasic_set_ip_blocks(struct amdgpu_device *adev);
void vasic_doorbell_init(struct amdgpu_device *adev);
const struct kfd2kgd_calls *vasic_kfd2kgd(struct amdgpu_device *adev,
					  const struct kfd2kgd_calls *asic,
					  u32 target);
bool vasic_device_is_lost(struct amdgpu_device *adev);
void vasic_xgmi_identify(struct amdgpu_device *adev);

#else

#define VASIC_PCI_IDS
#define amdgpu_is_vasic(adev)	((void)(adev), false)

static inline int vasic_pci_probe(struct pci_dev *pdev, unsigned long *flags)
{
	return 0;
}

static inline int vasic_attach(struct amdgpu_device *adev)
{
	return 0;
}

static inline int vasic_set_ip_blocks(struct amdgpu_device *adev)
{
	return -ENODEV;
}

static inline void vasic_doorbell_init(struct amdgpu_device *adev)
{
}

static inline const struct kfd2kgd_calls *
vasic_kfd2kgd(struct amdgpu_device *adev, const struct kfd2kgd_calls *asic,
	      u32 target)
{
	return asic;
}

static inline void vasic_xgmi_identify(struct amdgpu_device *adev)
{
}

static inline bool vasic_device_is_lost(struct amdgpu_device *adev)
{
	return false;
}

#endif /* CONFIG_DRM_AMDGPU_VASIC */

/*
 * What follows is used by the files of this directory only.
 */

#ifdef CONFIG_DRM_AMDGPU_VASIC

#include "amdgpu_gmc.h"

/* Sizes of amdgpu's arrays. */
#define VASIC_SDMA_PER_AID		8
#define VASIC_MAX_AID			4
#define VASIC_MAX_PIPES_PER_MEC		4
#define VASIC_MAX_QUEUES_PER_PIPE	8

/* Node ids of IH entries that belong to one AID. */
#define VASIC_NODES_PER_AID	4

/* Dwords of a packet that writes one dword, SDMA and PM4 alike. */
#define VASIC_WRITE_DW		5

/**
 * struct vasic_device - one virtual GPU
 * @adev: the amdgpu device that drives it
 * @info: a copy of the host's description, checked once when attached
 * @bar0: ivshmem registers
 * @ctl: first pages of BAR2, up to VASIC_OFF_MMIO
 * @command_lock: serialises commands; taken last, may sleep
 * @command_seq: sequence number of the last command
 * @tlb_lock: serialises invalidations; may be taken in atomic context
 * @tlb_gen: last generation written
 * @lost: the host stopped answering; the driver does not wait for it any more
 * @watched: all of amdgpu is initialised, so that @lost_work may run
 * @watch_work: checks periodically whether the host is alive
 * @lost_work: ends everything that waits for the host
 * @heartbeat: the host's heartbeat when @watch_work read it last
 * @clock: GPU clock counter when it was read last, in ticks
 * @fault_status: status of the last VM fault (gfx7 and gfx8)
 * @vmid_pasid: PASID of each VMID, as far as the guest knows it
 */
struct vasic_device {
	struct amdgpu_device *adev;
	struct vasic_info info;
	void __iomem *bar0;
	void __iomem *ctl;
	struct mutex command_lock;	/* the command page, @command_seq, @clock */
	u32 command_seq;
	spinlock_t tlb_lock;		/* @tlb_gen and its word */
	u32 tlb_gen;
	bool lost;
	bool watched;
	struct delayed_work watch_work;
	struct work_struct lost_work;
	u32 heartbeat;
	u64 clock;
	u32 fault_status;
	u16 vmid_pasid[VASIC_MAX_VMID];
};

static inline bool vasic_is_lost(const struct vasic_device *vd)
{
	return READ_ONCE(vd->lost);
}

/**
 * struct vasic_args - arguments and answers of one command
 * @cmd: arguments; which member is used follows from the opcode
 * @value: as documented at enum vasic_opcode; written on success
 */
struct vasic_args {
	union vasic_cmd cmd;
	u64 value[7];
};

/**
 * struct vasic_pte_layout - what follows from enum vasic_pte_format
 * @funcs: functions for amdgpu_gmc
 * @gart_flags: flags of every GART entry
 * @vram_base: MC address of VRAM
 * @mc_bits: bits of an MC address
 * @dma_bits: bits of a bus address
 * @min_vm_gib: least size of a virtual address space, GiB
 */
struct vasic_pte_layout {
	struct amdgpu_gmc_funcs funcs;
	u64 gart_flags;
	u64 vram_base;
	u32 mc_bits;
	u32 dma_bits;
	u32 min_vm_gib;
};

/**
 * struct vasic_sdma_slot - where a user SDMA queue is without the HWS
 * @engine: SDMA engine
 * @queue: queue slot of the engine
 * @size: size of its MQD, bytes
 */
struct vasic_sdma_slot {
	u32 engine;
	u32 queue;
	u32 size;
};

struct amdgpu_ib;
struct amdgpu_job;
struct amdgpu_ring;

/* vasic_bus.c */
int vasic_command(struct vasic_device *vd, u32 opcode, struct vasic_args *args);
int vasic_sdma_hqd_prepare(struct vasic_device *vd, struct vasic_sdma_slot slot,
			   const void *mqd);
int vasic_sdma_hqd_load(struct vasic_device *vd, struct vasic_sdma_slot slot,
			const void *mqd);
int vasic_sdma_hqd_unload(struct vasic_device *vd, struct vasic_sdma_slot slot,
			  void *mqd);
int vasic_reset(struct vasic_device *vd);
void vasic_kick(struct vasic_device *vd);
void vasic_tlb_invalidate(struct vasic_device *vd);
void vasic_ih_write_rptr(struct vasic_device *vd, u32 rptr);
u64 vasic_clock(struct vasic_device *vd);
bool vasic_host_is_alive(struct vasic_device *vd);

/* vasic_watch.c */
void vasic_watch_init(struct vasic_device *vd);
void vasic_watch_start(struct vasic_device *vd);
void vasic_watch_stop(struct vasic_device *vd);

/* vasic_gmc.c, for the tables of vasic_pte.c */
void vasic_flush_gpu_tlb(struct amdgpu_device *adev, uint32_t vmid,
			 uint32_t vmhub, uint32_t flush_type);
void vasic_flush_gpu_tlb_pasid(struct amdgpu_device *adev, uint16_t pasid,
			       uint32_t flush_type, bool all_hub, uint32_t inst);
uint64_t vasic_emit_flush_gpu_tlb(struct amdgpu_ring *ring, unsigned int vmid,
				  uint64_t pd_addr);
void vasic_emit_pasid_mapping(struct amdgpu_ring *ring, unsigned int vmid,
			      unsigned int pasid);
const struct vasic_pte_layout *vasic_pte_layout(struct vasic_device *vd);

/* vasic_fault.c */
void vasic_fault_early_init(struct amdgpu_device *adev);
int vasic_fault_sw_init(struct amdgpu_device *adev);
void vasic_fault_sw_fini(struct amdgpu_device *adev);
u32 vasic_fault_vmid(struct amdgpu_device *adev);

/* vasic_xgmi.c */
int vasic_xgmi_early_init(struct amdgpu_device *adev);
u64 vasic_xgmi_place(struct amdgpu_device *adev, u64 vram_base);

/* vasic_gfx.c */
int vasic_node_to_xcc(struct amdgpu_device *adev, int node);

/* vasic_compute.c */
void vasic_compute_early_init(struct amdgpu_device *adev);
int vasic_compute_sw_init(struct amdgpu_device *adev);
void vasic_compute_sw_fini(struct amdgpu_device *adev);
int vasic_compute_start(struct amdgpu_device *adev);
void vasic_compute_stop(struct amdgpu_device *adev);

/* vasic_sdma_packet.c */
void vasic_sdma_write_packet(const struct vasic_device *vd, u64 addr, u32 value,
			     u32 packet[VASIC_WRITE_DW]);
void vasic_sdma_emit_ib(struct amdgpu_ring *ring, struct amdgpu_job *job,
			struct amdgpu_ib *ib, uint32_t flags);
void vasic_sdma_emit_fence(struct amdgpu_ring *ring, u64 addr, u64 seq,
			   unsigned int flags);
void vasic_sdma_emit_pipeline_sync(struct amdgpu_ring *ring);
void vasic_sdma_emit_wreg(struct amdgpu_ring *ring, uint32_t reg, uint32_t value);
void vasic_sdma_set_packets(struct amdgpu_device *adev);

/* vasic_ring.c */
typedef void (*vasic_write_packet_t)(const struct vasic_device *vd, u64 addr,
				     u32 value, u32 packet[VASIC_WRITE_DW]);
uint64_t vasic_ring_get_rptr(struct amdgpu_ring *ring);
uint64_t vasic_ring_get_wptr(struct amdgpu_ring *ring);
void vasic_ring_set_wptr(struct amdgpu_ring *ring);
u32 vasic_ring_doorbell(struct amdgpu_device *adev, u32 slot);
int vasic_ring_load(struct amdgpu_ring *ring);
int vasic_ring_unload(struct amdgpu_ring *ring, enum vasic_unload_mode mode);
int vasic_ring_start(struct amdgpu_ring *ring);
void vasic_ring_stop(struct amdgpu_ring *ring);
void vasic_ring_emit_addr(struct amdgpu_ring *ring, u64 addr);
void vasic_ring_emit_vm_flush(struct amdgpu_ring *ring, unsigned int vmid,
			      uint64_t pd_addr);
int vasic_ring_reset(struct amdgpu_ring *ring, unsigned int vmid);
int vasic_ring_test_ring(struct amdgpu_ring *ring,
			 vasic_write_packet_t write_packet);
int vasic_ring_test_ib(struct amdgpu_ring *ring, long timeout,
		       vasic_write_packet_t write_packet);

extern const struct amdgpu_ip_block_version vasic_common_ip_block;
extern const struct amdgpu_ip_block_version vasic_gmc_ip_block;
extern const struct amdgpu_ip_block_version vasic_ih_ip_block;
extern const struct amdgpu_ip_block_version vasic_gfx_ip_block;
extern const struct amdgpu_ip_block_version vasic_sdma_ip_block;
extern const struct amdgpu_ip_block_version vasic_mes_ip_block;

#endif /* CONFIG_DRM_AMDGPU_VASIC */

#endif /* VASIC_H */
