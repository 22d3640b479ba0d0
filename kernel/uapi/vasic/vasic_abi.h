/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Shared-memory ABI between the guest driver (kernel/amdgpu-vasic) and the
 * host process (userspace/vasicd) of the virtual AMD GPU.
 *
 * The transport is QEMU's ivshmem-doorbell device:
 *   BAR0  ivshmem registers; a store to its DOORBELL register is a "kick"
 *   BAR1  MSI-X table
 *   BAR2  the memory described here
 *
 * Rules:
 *  - Every word has exactly one writer, named "G" (guest) or "H" (host). The
 *    doorbell aperture is the one exception, see VASIC_DOORBELL_EMPTY.
 *  - A word documented "release" is stored last, after everything that it
 *    announces; its reader loads it with acquire order before it looks at the
 *    rest. All other words are plain.
 *  - Everything is little endian. Sizes and offsets are asserted in
 *    uapi_layout.h, as C11 in the kernel and as C++20 on the host.
 *  - The host never trusts a byte of BAR2 that a guest can write, which is all
 *    of it: it keeps private copies of what it wrote and validates the rest.
 *
 * Compatibility: VASIC_ABI_VERSION changes when an existing offset or meaning
 * changes. New fields go into the reserved space of struct vasic_info and are
 * announced by @info_size; new commands answer VASIC_ENOSYS on older hosts.
 */
#ifndef VASIC_ABI_H
#define VASIC_ABI_H

#include <linux/types.h>

/* The PCI identity of every ivshmem device, not of ours alone: never bind by
 * it without having checked VASIC_ABI_MAGIC too.
 */
#define VASIC_PCI_VENDOR_ID	0x1af4
#define VASIC_PCI_DEVICE_ID	0x1110

#define VASIC_ABI_MAGIC		0x5550474349534156ULL	/* "VASICGPU" */
#define VASIC_ABI_VERSION	2

/* ivshmem: BAR0 registers (QEMU docs/specs/ivshmem-spec) and peer ids */
#define VASIC_IVSHMEM_IVPOSITION	0x08
#define VASIC_IVSHMEM_DOORBELL		0x0c
#define VASIC_PEER_HOST			0
#define VASIC_PEER_GUEST		1
#define VASIC_VECTORS			2	/* MSI-X vectors per direction */
#define VASIC_VECTOR_KICK		0	/* G->H: look at everything */
#define VASIC_VECTOR_IH			0	/* H->G: the IH ring has entries */
/* value to store to BAR0 DOORBELL in order to kick the host */
#define VASIC_KICK_VALUE	((VASIC_PEER_HOST << 16) | VASIC_VECTOR_KICK)

/* BAR2 map; byte offsets. */
#define VASIC_OFF_INFO		0x000000	/* H: struct vasic_info */
#define VASIC_OFF_GUEST		0x001000	/* G: struct vasic_guest_words */
#define VASIC_OFF_HOST		0x002000	/* H: struct vasic_host_words */
#define VASIC_OFF_COMMAND	0x003000	/* G: struct vasic_command */
#define VASIC_OFF_REPLY		0x004000	/* H: struct vasic_reply */
/* G before HQD_LOAD and HQD_PREPARE, H before the reply of HQD_UNLOAD: the MQD of a queue that
 * is loaded by value, see VASIC_HQD_BY_VALUE.
 */
#define VASIC_OFF_MQD		0x005000
#define VASIC_MQD_MAX_SIZE	0x001000
/* The window the driver uses as its MMIO BAR. No behaviour is behind it: stray
 * RREG32/WREG32 of shared amdgpu code land here and do no harm.
 */
#define VASIC_OFF_MMIO		0x100000
#define VASIC_MMIO_SIZE		0x100000
#define VASIC_OFF_DOORBELL	0x200000
#define VASIC_DOORBELL_SIZE	0x200000
#define VASIC_OFF_VRAM		0x400000	/* VRAM up to the end of the BAR */

/*
 * A doorbell is a slot of vasic_info.doorbell_size bytes (4 or 8) at
 * VASIC_OFF_DOORBELL + 4 * index, index being the driver's dword index; that of
 * a 64-bit slot is always even. The guest stores a write pointer; the host
 * atomically exchanges it for all ones, so that no ring of the bell is lost, not
 * even of an equal value. When a queue is mapped the host first empties the
 * slot, then reads the write pointer from memory.
 */
#define VASIC_DOORBELL_EMPTY	0xffffffffffffffffULL
#define VASIC_DOORBELL_EMPTY32	0xffffffffU

#define VASIC_MAX_SE		8
#define VASIC_MAX_SH_PER_SE	4
#define VASIC_MAX_SDMA		16
#define VASIC_MAX_VMID		16
#define VASIC_MAX_XCC		8
#define VASIC_NAME_LEN		32

/* IP versions are encoded as amdgpu's IP_VERSION(): major << 24 | minor << 16 | rev << 8 */
#define VASIC_IP_VERSION(mj, mn, rv)	(((mj) << 24) | ((mn) << 16) | ((rv) << 8))

/* Layout of page table entries (amdgpu_vm.h: AMDGPU_PTE_*, AMDGPU_PDE_*). */
enum vasic_pte_format {
	VASIC_PTE_GFX7 = 0,	/* gfx7, gfx8: 40 address bits, no PDE as PTE */
	VASIC_PTE_GFX9 = 1,	/* PDE as PTE is bit 54, MTYPE_VG10 */
	VASIC_PTE_GFX10 = 2,	/* gfx10, gfx11: as gfx9 with MTYPE_NV10 */
	VASIC_PTE_GFX12 = 3,	/* PDE as PTE is bit 63, PRT bit 56 */
};

/* Entries of the IH ring. Those of VASIC_IH_CIK have no room for what a driver
 * reads from registers after a VM fault (sources 146 and 147), so ours carry it:
 * the second dword is the number of the page, the fourth is
 * VM_CONTEXT1_PROTECTION_FAULT_STATUS (protections 7:0, client 20:12, write 24,
 * VMID 28:25).
 */
enum vasic_ih_format {
	VASIC_IH_CIK = 0,	/* gfx7, gfx8: 16 bytes, no client id */
	VASIC_IH_SOC15 = 1,	/* gfx9, gfx10: 32 bytes, SOC15_IH_CLIENTID_* */
	VASIC_IH_SOC21 = 2,	/* gfx11, gfx12: 32 bytes, SOC21_IH_CLIENTID_* */
};

/* Packets of the SDMA engines. */
enum vasic_sdma_format {
	VASIC_SDMA_V2 = 0,	/* gfx7: cik_sdma.c */
	VASIC_SDMA_V3 = 1,	/* gfx8: tonga_sdma_pkt_open.h */
	VASIC_SDMA_V4 = 2,	/* gfx9: vega10_sdma_pkt_open.h */
	VASIC_SDMA_V5 = 3,	/* gfx10: navi10_sdma_pkt_open.h */
	VASIC_SDMA_V6 = 4,	/* gfx11: sdma_v6_0_0_pkt_open.h */
	VASIC_SDMA_V7 = 5,	/* gfx12 */
};

/* Who maps amdkfd's queues. */
enum vasic_scheduler {
	VASIC_SCHEDULER_HWS = 0,	/* packets on the HIQ */
	VASIC_SCHEDULER_MES = 1,	/* VASIC_CMD_MES_* */
};

/**
 * struct vasic_info - what GPU this is; written once by the host before QEMU
 * may connect, constant afterwards. The guest has no table of its own.
 *
 * Sizes are in bytes unless named otherwise.
 */
struct vasic_info {
	__u64 magic;			/* VASIC_ABI_MAGIC */
	__u32 abi_version;		/* VASIC_ABI_VERSION */
	__u32 info_size;		/* sizeof(struct vasic_info) of the host */
	__u64 bar_size;			/* BAR2, power of two */
	__u64 vram_size;		/* from VASIC_OFF_VRAM */
	__u64 vram_visible_size;	/* CPU-visible part, <= vram_size */
	__u64 gart_size;
	__u64 unique_id;
	__u64 xgmi_hive_id;		/* 0: in no hive */
	__u64 xgmi_node_id;		/* physical node, 0..xgmi_num_nodes-1 */
	char name[VASIC_NAME_LEN];	/* "gfx906", NUL-terminated */
	__u32 gpu_index;		/* 0-based, in the host process */
	__u32 asic_type;		/* enum amd_asic_type */
	__u32 family;			/* AMDGPU_FAMILY_* of amdgpu_drm.h */
	__u32 pci_device_id;		/* of the chip that is modelled */
	__u32 pci_revision;
	__u32 external_rev_id;
	__u32 gc_ip;
	__u32 sdma_ip;
	__u32 mmhub_ip;
	__u32 osssys_ip;
	__u32 xcc_count;
	__u32 se_count;			/* per XCC */
	__u32 sh_per_se;
	__u32 cu_per_sh;		/* slots, some may be fused off */
	__u32 cu_count;			/* active, per XCC */
	__u32 cu_bitmap[VASIC_MAX_SE][VASIC_MAX_SH_PER_SE];
	__u32 simd_per_cu;
	__u32 max_waves_per_simd;
	__u32 wave_front_size;
	__u32 max_scratch_slots_per_cu;
	__u32 lds_size_kib;
	__u32 rb_per_se;
	__u32 tile_pipes;
	__u32 tcc_count;
	__u32 gb_addr_config;
	__u32 mec_count;
	__u32 pipes_per_mec;
	__u32 queues_per_pipe;
	__u32 sdma_count;
	__u32 gws_size;
	__u32 gds_size;
	__u32 first_kfd_vmid;		/* VMIDs [first_kfd_vmid, 15] are KFD's */
	__u32 vram_type;		/* AMDGPU_VRAM_TYPE_* */
	__u32 vram_width;		/* bits */
	__u32 mec_fw_version;
	__u32 mec_feature_version;
	__u32 sdma_fw_version;
	__u32 clock_khz;		/* of the GPU clock counter */
	__u32 gfx_level;		/* 7..12: layouts of MQDs, PM4 and HIQ packets */
	__u32 pte_format;		/* enum vasic_pte_format */
	__u32 vm_levels;		/* page directories above a page table: 1 or 3 */
	__u32 vm_address_bits;		/* of a GPU virtual address */
	__u32 ih_format;		/* enum vasic_ih_format */
	__u32 sdma_format;		/* enum vasic_sdma_format */
	__u32 doorbell_size;		/* bytes of one slot: 4 or 8 */
	__u32 scheduler;		/* enum vasic_scheduler */
	__u32 mes_version;		/* of the scheduler pipe; 0: no MES */
	__u32 compute_rings;		/* kernel rings that execute PM4 */
	__u32 retry_faults;		/* 1: a fault on an address without PTE is retried
					 * in processes that ask for it (XNACK)
					 */
	__u32 xgmi_num_nodes;		/* in the hive; 0: in no hive */
	__u32 sdma_per_aid;		/* engines of one AID; = sdma_count but for GC 9.4.3 */
	/* Bytes between the VRAM of two nodes of a hive, a power of two; 0: in no
	 * hive. A VRAM offset in a page table entry of a hive's GPU counts from
	 * node 0: its own VRAM begins at xgmi_node_id * xgmi_segment_size, that of
	 * its peers in their segments. The same holds for MC addresses:
	 * MC_SETUP.arg[0] is where its own segment begins.
	 */
	__u64 xgmi_segment_size;
	__u32 reserved[49];
};

/**
 * struct vasic_guest_words - live words the guest writes (G).
 * @tlb_gen: release. Counts TLB invalidations. The guest bumps it after it has
 *	changed page tables; see @walk_epoch for when an invalidation is done.
 * @ih_rptr: release. Read pointer of the IH ring, bytes.
 */
struct vasic_guest_words {
	__u32 tlb_gen;
	__u32 ih_rptr;
	__u32 reserved[14];
};

/**
 * struct vasic_host_words - live words the host writes (H).
 * @walk_epoch: release. Odd while the host uses translations, even while it
 *	does not. On every even->odd step the host reads @tlb_gen after the store
 *	with a full barrier between, and drops cached translations if it changed.
 *	The guest stores tlb_gen, then a full barrier, then reads walk_epoch: an
 *	even value or a changed one means that nothing old is in use any more.
 * @tlb_ack: release. Last tlb_gen that the host has acted on.
 * @state: release. enum vasic_host_state.
 * @heartbeat: counts loop iterations; a guest may see that the host lives.
 */
struct vasic_host_words {
	__u32 walk_epoch;
	__u32 tlb_ack;
	__u32 state;
	__u32 heartbeat;
	__u32 reserved[12];
};

enum vasic_host_state {
	VASIC_HOST_GONE = 0,	/* no process behind the memory */
	VASIC_HOST_READY = 1,
	VASIC_HOST_HUNG = 2,	/* device lost by its own decision; needs RESET */
};

/**
 * struct vasic_command - one synchronous request of the guest (G).
 * @seq: release. Stored last, previous value + 1, then the host is kicked. The
 *	guest serialises commands and waits for struct vasic_reply.seq == @seq.
 */
struct vasic_command {
	__u32 seq;
	__u32 opcode;		/* enum vasic_opcode */
	__u64 arg[14];
};

/**
 * struct vasic_reply - the answer (H).
 * @seq: release. The command that is answered.
 * @status: enum vasic_status
 */
struct vasic_reply {
	__u32 seq;
	__u32 status;
	__u64 value[7];
};

enum vasic_status {
	VASIC_OK = 0,
	VASIC_EINVAL = 1,	/* an argument is out of the device's range */
	VASIC_ENOSYS = 2,	/* no such opcode in this host */
	VASIC_EBUSY = 3,	/* the slot is occupied, or is not mapped */
	VASIC_EFAULT = 4,	/* an address could not be translated */
	VASIC_ETIME = 5,	/* a queue did not stop */
	VASIC_ESTATE = 6,	/* not possible before VASIC_CMD_MC_SETUP or the like */
};

/* Queue kinds of HQD_LOAD and friends. */
enum vasic_queue_kind {
	VASIC_QUEUE_COMPUTE = 0,
	VASIC_QUEUE_HIQ = 1,
	VASIC_QUEUE_SDMA = 2,
};

/* Kernel rings of RING_LOAD and friends. */
enum vasic_ring_kind {
	VASIC_RING_SDMA = 0,
	VASIC_RING_COMPUTE = 1,
};

/* How a queue or ring is to stop. */
enum vasic_unload_mode {
	VASIC_UNLOAD_DRAIN = 0,	/* waves run to their end */
	VASIC_UNLOAD_SAVE = 1,	/* waves are saved */
	VASIC_UNLOAD_RESET = 2,	/* at once, nothing is saved; ends a hang too */
};

/* arg[6] of HQD_LOAD, HQD_PREPARE and HQD_UNLOAD: the MQD has no GPU address (an SDMA MQD
 * without the hardware scheduler); it is exchanged through VASIC_OFF_MQD.
 */
#define VASIC_HQD_BY_VALUE	1

/* arg[9] of MES_ADD_QUEUE */
#define VASIC_MES_AQL		0x1
#define VASIC_MES_TRAP		0x2
#define VASIC_MES_EXCLUSIVE	0x4

enum vasic_opcode {
	/* Nothing; proves that the host answers. value[0]: the GPU clock counter,
	 * ticks of vasic_info.clock_khz.
	 */
	VASIC_CMD_NOP = 0,
	/* Back to power-on state: all queues and rings gone, IH off, VMIDs
	 * cleared. VRAM keeps its contents. arg[0]: guest's VASIC_ABI_VERSION.
	 */
	VASIC_CMD_RESET = 1,
	/* Where the guest put things. arg[0]: GPU (MC) address of VRAM,
	 * arg[1]: GPU address of the GART aperture, arg[2]: its size,
	 * arg[3]: VRAM offset of the GART table (8-byte PTE per 4 KiB page),
	 * arg[4]: bus address of BAR2, arg[5]: log2 of the entries of a page
	 * table, 9 but for chips of one page directory level (vm_levels is 1),
	 * where the driver chooses it; arg[6]: 4 KiB pages of a GPU virtual
	 * address space, 0: as many as vm_address_bits allow. A page directory
	 * entry of VASIC_PTE_GFX7 holds a GPU (MC) address, of the others an
	 * offset in VRAM, and so does every page table entry.
	 */
	VASIC_CMD_MC_SETUP = 2,
	/* arg[0]: bus address of the IH ring, arg[1]: size in bytes (power of
	 * two), arg[2]: bus address of the write-pointer word. Size 0 turns the
	 * IH off. Entries are as vasic_info.ih_format says; the write pointer
	 * counts bytes.
	 */
	VASIC_CMD_IH_SETUP = 3,
	/* Kernel ring. arg[0]: instance, arg[1]: GPU address, VMID 0,
	 * arg[2]: size in bytes, arg[3]: GPU address of the read-pointer word,
	 * arg[4]: doorbell dword index, arg[5]: GPU address of the write-pointer
	 * word, arg[6]: enum vasic_ring_kind. Pointer words are 64-bit and never
	 * wrap: bytes of an SDMA ring, dwords of a compute ring. The doorbell of
	 * a 32-bit aperture carries their low half.
	 */
	VASIC_CMD_RING_LOAD = 4,
	/* arg[0]: instance, arg[1]: enum vasic_ring_kind, arg[2]: enum
	 * vasic_unload_mode: DRAIN stops at a packet boundary, VASIC_ETIME if the
	 * ring hangs; RESET forgets the packet that hangs.
	 */
	VASIC_CMD_RING_UNLOAD = 5,
	/* Load a queue into a hardware slot. arg[0]: enum vasic_queue_kind,
	 * arg[1]: GPU address of the MQD, VMID 0, arg[2]: pipe (SDMA: engine),
	 * arg[3]: queue slot, arg[4]: xcc, arg[5]: VMID (0: from the MQD),
	 * arg[6]: 0 or VASIC_HQD_BY_VALUE, then arg[1] is not used.
	 * The write pointer is in the MQD where that has no address to poll
	 * it from: SDMA queues by value and compute queues of gfx7 and gfx8.
	 */
	VASIC_CMD_HQD_LOAD = 6,
	/* Stop it and write the HQD back into the MQD. arg[0]: kind,
	 * arg[2]: pipe (SDMA: engine), arg[3]: slot, arg[4]: xcc,
	 * arg[5]: enum vasic_unload_mode. arg[6]: 0 or VASIC_HQD_BY_VALUE.
	 * VASIC_ETIME if it hangs.
	 */
	VASIC_CMD_HQD_UNLOAD = 7,
	/* value[0]: 1 if the slot is occupied, value[1]: its pq base address.
	 * Arguments as HQD_UNLOAD.
	 */
	VASIC_CMD_HQD_QUERY = 8,
	/* Write a register of the VASIC_REG_* space. arg[0]: index, arg[1]: value. */
	VASIC_CMD_REG_WRITE = 9,
	/*
	 * The MES scheduler (gfx11, gfx12), what amdgpu_mes_funcs asks of it.
	 * Map a queue. arg[0]: PASID, arg[1]: page directory base as
	 * amdgpu_gmc_pd_addr() makes it, arg[2]: process context address,
	 * arg[3]: gang context address, arg[4]: GPU address of the MQD, VMID 0,
	 * arg[5]: write-pointer address in the process, arg[6]: the same in
	 * VMID 0 or 0, arg[7]: doorbell dword index, arg[8]: enum
	 * vasic_queue_kind, arg[9]: VASIC_MES_*, arg[10]: process quantum in the
	 * high, gang quantum in the low half (units of 100 ns), arg[11]: global
	 * priority level, arg[12]: gws base in the high, size in the low half.
	 */
	VASIC_CMD_MES_ADD_QUEUE = 10,
	/* Unmap and save it. arg[0]: doorbell dword index, arg[1]: gang context.
	 * VASIC_ETIME if it hangs: it stays mapped.
	 */
	VASIC_CMD_MES_REMOVE_QUEUE = 11,
	/* Unmap for a while. arg[0]: gang context, 0: every gang. */
	VASIC_CMD_MES_SUSPEND = 12,
	/* Map again what is suspended. arg[0]: as above. */
	VASIC_CMD_MES_RESUME = 13,
	/* Unmap without saving; ends a hang. arg[0]: doorbell dword index. */
	VASIC_CMD_MES_RESET_QUEUE = 14,
	/* Empty the doorbell of a queue that is to be loaded. Arguments as
	 * HQD_LOAD; not for the HIQ. Before the guest reads a write pointer that
	 * it puts into the MQD itself: what was rung earlier is older than that.
	 */
	VASIC_CMD_HQD_PREPARE = 15,
};

/*
 * Registers that rings write too (SDMA SRBM_WRITE, PM4 register writes); dword
 * index space, 32 bits each. They exist because amdgpu switches VMIDs from
 * within a ring.
 */
#define VASIC_REG_VM_PD_LO(vmid)	(0x1000 + 2 * (vmid))
#define VASIC_REG_VM_PD_HI(vmid)	(0x1001 + 2 * (vmid))
#define VASIC_REG_VM_PASID(vmid)	(0x1040 + (vmid))
#define VASIC_REG_TLB_INVALIDATE	0x1060	/* value: bit mask of VMIDs */

#endif /* VASIC_ABI_H */
