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
 * Who writes what:
 *
 *     guest (G)                    BAR2                    host (H)
 *                           +---------------+ 0x000000
 *                           |     info      | <--- what GPU this is, once
 *                           +---------------+ 0x001000
 *     tlb_gen, ih_rptr ---> |  guest words  |
 *                           +---------------+ 0x002000
 *                           |  host words   | <--- walk_epoch, tlb_ack,
 *                           +---------------+      state, heartbeat
 *                           |               | 0x003000
 *     opcode, arguments,    |    command    |
 *     then seq -----------> |               |
 *                           +---------------+ 0x004000
 *                           |     reply     | <--- status, values, then seq
 *                           +---------------+ 0x005000
 *     MQD to be loaded ---> |      MQD      | <--- MQD of a stopped queue
 *                           +---------------+ 0x100000
 *     stray WREG32 -------> |     MMIO      |      (never read)
 *                           +---------------+ 0x200000
 *     write pointers -----> |   doorbells   | <--- EMPTY, in exchange
 *                           +---------------+ 0x400000
 *     whole VRAM ---------> |     VRAM      | <--- what engines and waves do
 *                           +---------------+ bar_size
 *
 * A command (struct vasic_command, struct vasic_reply):
 *
 *     guest                               host
 *     writes opcode and arguments
 *     seq = n            (release)
 *     kick ---------------------------->  seq == n            (acquire)
 *                                         executes it
 *                                         writes status and values
 *     reply.seq == n     (acquire)  <---  reply.seq = n       (release)
 *
 * A TLB invalidation (walk_epoch of struct vasic_host_words):
 *
 *     guest                               host
 *                                         walk_epoch = odd
 *     changes page tables                 full barrier
 *     tlb_gen++                           reads tlb_gen; if it changed,
 *     full barrier                          drops cached translations
 *     reads walk_epoch                    uses translations
 *     if odd, waits until it changes <--- walk_epoch = even   (release)
 *
 * An interrupt (VASIC_CMD_IH_SETUP says where the ring is, in guest memory):
 *
 *     guest                               host
 *                                         writes entries
 *                                         write pointer       (release)
 *     wakes up  <------------------------ MSI-X vector VASIC_VECTOR_IH
 *     reads entries
 *     ih_rptr            (release)  --->  may reuse their space
 *
 * Rules:
 *  - Every word has exactly one writer, named "G" (guest) or "H" (host). The
 *    doorbell aperture, the MQD page and VRAM are the exceptions: who may write
 *    them when is said at VASIC_DOORBELL_EMPTY and VASIC_OFF_MQD; VRAM is
 *    ordered by the packets that engines execute.
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

/* Every ivshmem device has this PCI identity, so a driver binds to one only
 * after it has found VASIC_ABI_MAGIC in BAR2.
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
/* The MQD of a queue that is loaded by value, see VASIC_HQD_BY_VALUE. The guest
 * writes it before HQD_LOAD and HQD_PREPARE, the host before it answers HQD_UNLOAD.
 */
#define VASIC_OFF_MQD		0x005000
#define VASIC_MQD_MAX_SIZE	0x001000
/* The window that the driver uses as its MMIO BAR. It is plain memory, so that
 * stray RREG32 and WREG32 of shared amdgpu code do no harm.
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
 * atomically exchanges it for all ones, so that no doorbell write is lost, not
 * even one of an equal value. When a queue is mapped the host first empties the
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

/* Entries of the IH ring. After a VM fault (sources 146 and 147) the driver of
 * gfx7 and gfx8 hardware reads registers; the virtual GPU has none, so its
 * entries carry their values in dwords that hardware leaves unused: the second
 * dword is the number of the page, the fourth is
 * VM_CONTEXT1_PROTECTION_FAULT_STATUS (protections 7:0, client 20:12, write 24,
 * VMID 28:25).
 */
enum vasic_ih_format {
	VASIC_IH_CIK = 0,	/* gfx7, gfx8: 16 bytes, no client id */
	VASIC_IH_SOC15 = 1,	/* gfx9, gfx10: 32 bytes, SOC15_IH_CLIENTID_* */
	VASIC_IH_SOC21 = 2,	/* gfx11, gfx12: 32 bytes, SOC21_IH_CLIENTID_* */
};

/* Which packets the SDMA engines understand. */
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
	__u32 pci_device_id;		/* PCI id of the modelled chip */
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
	__u32 clock_khz;		/* rate of the GPU clock counter */
	__u32 gfx_level;		/* 7..12: layouts of MQDs, PM4 and HIQ packets */
	__u32 pte_format;		/* enum vasic_pte_format */
	__u32 vm_levels;		/* page directories above a page table: 1 or 3 */
	__u32 vm_address_bits;		/* bits of a GPU virtual address */
	__u32 ih_format;		/* enum vasic_ih_format */
	__u32 sdma_format;		/* enum vasic_sdma_format */
	__u32 doorbell_size;		/* bytes of one slot: 4 or 8 */
	__u32 scheduler;		/* enum vasic_scheduler */
	__u32 mes_version;		/* firmware of the scheduler pipe; 0: no MES */
	__u32 compute_rings;		/* kernel rings that execute PM4 */
	__u32 retry_faults;		/* 1: a fault on an address without PTE is retried
					 * in processes that ask for it (XNACK)
					 */
	__u32 xgmi_num_nodes;		/* nodes of the hive; 0: in no hive */
	__u32 sdma_per_aid;		/* engines of one AID; = sdma_count but for GC 9.4.3 */
	/* Bytes between the VRAM of two nodes of a hive, a power of two; 0: in no
	 * hive. A VRAM offset in a page table entry of a hive's GPU counts from
	 * node 0: its own VRAM begins at xgmi_node_id * xgmi_segment_size, that of
	 * its peers in their segments. MC addresses count from node 0 too:
	 * vasic_cmd_mc_setup.vram_base is where the GPU's own segment begins.
	 */
	__u64 xgmi_segment_size;
	/* Caches, as a discovery table has them, in KiB; all 0 where amdkfd has a
	 * table of the chip's caches itself.
	 */
	__u32 vector_l1_kib;		/* of a CU */
	__u32 scalar_inst_kib;		/* instruction cache of an SQC */
	__u32 scalar_data_kib;		/* data cache of an SQC */
	__u32 cu_per_sqc;		/* 1 or 2: CUs that share an SQC */
	__u32 gl1_kib;			/* of a shader array; 0: none */
	__u32 l2_kib;			/* of an XCC */
	__u32 mall_kib;			/* last level, of the GPU; 0: none */
	/* Bytes of a cache line; 0 where discovery tables do not say, because
	 * amdkfd then has a number of its own.
	 */
	__u32 vector_line;
	__u32 scalar_inst_line;
	__u32 scalar_data_line;
	__u32 l2_line;
	__u32 reserved[38];
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
 *	does not. On every even->odd step the host reads tlb_gen after the store
 *	with a full barrier between, and drops cached translations if it changed.
 *	The guest stores tlb_gen, then a full barrier, then reads walk_epoch: an
 *	even value or a changed one means that nothing old is in use any more.
 * @tlb_ack: release. Last tlb_gen that the host has acted on.
 * @state: release. enum vasic_host_state.
 * @heartbeat: counts loop iterations, so that the guest can see that the host lives.
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

enum vasic_status {
	VASIC_OK = 0,
	VASIC_EINVAL = 1,	/* an argument is out of the device's range */
	VASIC_ENOSYS = 2,	/* no such opcode in this host */
	VASIC_EBUSY = 3,	/* the slot is occupied, or is not mapped */
	VASIC_EFAULT = 4,	/* an address could not be translated */
	VASIC_ETIME = 5,	/* a queue did not stop */
	VASIC_ESTATE = 6,	/* not before VASIC_CMD_MC_SETUP, or the device is lost */
};

/* Kinds of queues in struct vasic_hqd and struct vasic_cmd_mes_add_queue. */
enum vasic_queue_kind {
	VASIC_QUEUE_COMPUTE = 0,
	VASIC_QUEUE_HIQ = 1,
	VASIC_QUEUE_SDMA = 2,
};

/* Kinds of kernel rings in struct vasic_cmd_ring_load and vasic_cmd_ring_unload. */
enum vasic_ring_kind {
	VASIC_RING_SDMA = 0,
	VASIC_RING_COMPUTE = 1,
};

/* How a queue or ring is to stop. */
enum vasic_unload_mode {
	VASIC_UNLOAD_DRAIN = 0,	/* waves run to their end */
	VASIC_UNLOAD_SAVE = 1,	/* waves are saved */
	VASIC_UNLOAD_RESET = 2,	/* at once, nothing is saved; ends a hang */
};

/* vasic_cmd_hqd_*.flags: the MQD has no GPU address (an SDMA MQD without the
 * hardware scheduler); it is exchanged through VASIC_OFF_MQD.
 */
#define VASIC_HQD_BY_VALUE	1

/* vasic_cmd_mes_add_queue.flags */
#define VASIC_MES_AQL		0x1
#define VASIC_MES_TRAP		0x2
#define VASIC_MES_EXCLUSIVE	0x4

enum vasic_opcode {
	/* Do nothing, which proves that the host answers. No arguments.
	 * value[0]: the GPU clock counter, ticks of vasic_info.clock_khz.
	 */
	VASIC_CMD_NOP = 0,
	/* Return to the power-on state: all queues and rings gone, IH off, VMIDs
	 * cleared. VRAM keeps its contents. struct vasic_cmd_reset.
	 */
	VASIC_CMD_RESET = 1,
	/* Tell the host where the guest put things. struct vasic_cmd_mc_setup. */
	VASIC_CMD_MC_SETUP = 2,
	/* Place the IH ring, or turn the IH off. struct vasic_cmd_ih_setup. */
	VASIC_CMD_IH_SETUP = 3,
	/* Load a kernel ring. struct vasic_cmd_ring_load. */
	VASIC_CMD_RING_LOAD = 4,
	/* Stop a kernel ring. struct vasic_cmd_ring_unload. DRAIN stops at a
	 * packet boundary, VASIC_ETIME if the ring hangs; RESET drops the packet
	 * that hangs.
	 */
	VASIC_CMD_RING_UNLOAD = 5,
	/* Load a queue into a hardware slot. struct vasic_cmd_hqd_load. The write
	 * pointer is in the MQD where that has no address to poll it from: SDMA
	 * queues by value and compute queues of gfx7 and gfx8.
	 */
	VASIC_CMD_HQD_LOAD = 6,
	/* Stop a queue and write its HQD back into the MQD.
	 * struct vasic_cmd_hqd_unload. VASIC_ETIME if the queue hangs.
	 */
	VASIC_CMD_HQD_UNLOAD = 7,
	/* Ask what is in a slot. struct vasic_cmd_hqd_query. value[0]: 1 if the
	 * slot is occupied, value[1]: the pq base address of its queue.
	 */
	VASIC_CMD_HQD_QUERY = 8,
	/* Write a register of the VASIC_REG_* space. struct vasic_cmd_reg_write. */
	VASIC_CMD_REG_WRITE = 9,
	/*
	 * What amdgpu_mes_funcs asks of the MES scheduler (gfx11, gfx12).
	 */
	/* Map a queue. struct vasic_cmd_mes_add_queue. */
	VASIC_CMD_MES_ADD_QUEUE = 10,
	/* Unmap a queue and save it. struct vasic_cmd_mes_remove_queue.
	 * VASIC_ETIME if the queue hangs: it stays mapped.
	 */
	VASIC_CMD_MES_REMOVE_QUEUE = 11,
	/* Unmap the queues of a gang until MES_RESUME. struct vasic_cmd_mes_gang. */
	VASIC_CMD_MES_SUSPEND = 12,
	/* Map suspended queues again. struct vasic_cmd_mes_gang. */
	VASIC_CMD_MES_RESUME = 13,
	/* Unmap a queue without saving it, which ends a hang.
	 * struct vasic_cmd_mes_reset_queue.
	 */
	VASIC_CMD_MES_RESET_QUEUE = 14,
	/* Empty the doorbell of a queue that is to be loaded; not for the HIQ.
	 * struct vasic_cmd_hqd_prepare. The guest sends it before it reads a write
	 * pointer that it puts into the MQD itself: a doorbell that was written
	 * earlier is older than that pointer.
	 */
	VASIC_CMD_HQD_PREPARE = 15,
};

/*
 * Arguments of the commands. Each structure lies over the first words of
 * union vasic_cmd; the host ignores the words behind it.
 */

/**
 * struct vasic_cmd_reset - VASIC_CMD_RESET
 * @abi_version: the guest's VASIC_ABI_VERSION
 */
struct vasic_cmd_reset {
	__u64 abi_version;
};

/**
 * struct vasic_cmd_mc_setup - VASIC_CMD_MC_SETUP
 * @vram_base: GPU (MC) address of VRAM
 * @gart_base: GPU address of the GART aperture
 * @gart_size: its size, bytes
 * @gart_table: VRAM offset of the GART table (8-byte PTE per 4 KiB page)
 * @bar_address: bus address of BAR2
 * @table_bits: log2 of the entries of a page table: 9, except on chips of one
 *	page directory level (vm_levels is 1), where the driver chooses it
 * @va_pages: 4 KiB pages of a GPU virtual address space; 0: as many as
 *	vm_address_bits allow
 *
 * A page directory entry of VASIC_PTE_GFX7 holds a GPU (MC) address. Page
 * directory entries of the other formats, and all page table entries, hold an
 * offset in VRAM.
 */
struct vasic_cmd_mc_setup {
	__u64 vram_base;
	__u64 gart_base;
	__u64 gart_size;
	__u64 gart_table;
	__u64 bar_address;
	__u64 table_bits;
	__u64 va_pages;
};

/**
 * struct vasic_cmd_ih_setup - VASIC_CMD_IH_SETUP
 * @ring: bus address of the IH ring; entries are as vasic_info.ih_format says
 * @size: its size in bytes, a power of two; 0 turns the IH off
 * @wptr_addr: bus address of the write-pointer word, which counts bytes
 */
struct vasic_cmd_ih_setup {
	__u64 ring;
	__u64 size;
	__u64 wptr_addr;
};

/**
 * struct vasic_cmd_ring_load - VASIC_CMD_RING_LOAD
 * @instance: SDMA engine or number of the compute ring
 * @base: GPU address of the ring, VMID 0
 * @size: its size in bytes
 * @rptr_addr: GPU address of the read-pointer word
 * @doorbell: dword index of its doorbell
 * @wptr_addr: GPU address of the write-pointer word
 * @kind: enum vasic_ring_kind
 *
 * Pointer words are 64-bit and never wrap: bytes of an SDMA ring, dwords of a
 * compute ring. The doorbell of a 32-bit aperture carries their low half.
 */
struct vasic_cmd_ring_load {
	__u64 instance;
	__u64 base;
	__u64 size;
	__u64 rptr_addr;
	__u64 doorbell;
	__u64 wptr_addr;
	__u64 kind;
};

/**
 * struct vasic_cmd_ring_unload - VASIC_CMD_RING_UNLOAD
 * @instance: as in struct vasic_cmd_ring_load
 * @kind: enum vasic_ring_kind
 * @mode: enum vasic_unload_mode
 */
struct vasic_cmd_ring_unload {
	__u64 instance;
	__u64 kind;
	__u64 mode;
};

/**
 * struct vasic_hqd - a hardware slot for a queue, and the MQD that goes with it
 * @kind: enum vasic_queue_kind
 * @mqd: GPU address of the MQD, VMID 0; not used by HQD_UNLOAD and HQD_QUERY,
 *	nor with VASIC_HQD_BY_VALUE
 * @pipe: pipe of the MEC; the engine of an SDMA queue
 * @slot: queue slot of the pipe or engine
 * @xcc: which XCC
 */
struct vasic_hqd {
	__u64 kind;
	__u64 mqd;
	__u64 pipe;
	__u64 slot;
	__u64 xcc;
};

/**
 * struct vasic_cmd_hqd_load - VASIC_CMD_HQD_LOAD
 * @hqd: where to load it, and from which MQD
 * @vmid: VMID of the queue; 0: the MQD says it
 * @flags: 0 or VASIC_HQD_BY_VALUE
 */
struct vasic_cmd_hqd_load {
	struct vasic_hqd hqd;
	__u64 vmid;
	__u64 flags;
};

/**
 * struct vasic_cmd_hqd_unload - VASIC_CMD_HQD_UNLOAD
 * @hqd: the slot
 * @mode: enum vasic_unload_mode
 * @flags: 0 or VASIC_HQD_BY_VALUE
 */
struct vasic_cmd_hqd_unload {
	struct vasic_hqd hqd;
	__u64 mode;
	__u64 flags;
};

/**
 * struct vasic_cmd_hqd_query - VASIC_CMD_HQD_QUERY
 * @hqd: the slot
 */
struct vasic_cmd_hqd_query {
	struct vasic_hqd hqd;
};

/**
 * struct vasic_cmd_hqd_prepare - VASIC_CMD_HQD_PREPARE
 * @hqd: where the queue is going to be loaded, and its MQD
 * @reserved: not used
 * @flags: 0 or VASIC_HQD_BY_VALUE
 */
struct vasic_cmd_hqd_prepare {
	struct vasic_hqd hqd;
	__u64 reserved;
	__u64 flags;
};

/**
 * struct vasic_cmd_reg_write - VASIC_CMD_REG_WRITE
 * @index: VASIC_REG_*
 * @value: 32 bits
 */
struct vasic_cmd_reg_write {
	__u64 index;
	__u64 value;
};

/**
 * struct vasic_cmd_mes_add_queue - VASIC_CMD_MES_ADD_QUEUE
 * @pasid: PASID of the process
 * @page_directory: its page directory base as amdgpu_gmc_pd_addr() makes it
 * @process_context: address that identifies the process
 * @gang_context: address that identifies the gang
 * @mqd: GPU address of the MQD, VMID 0
 * @wptr_addr: write-pointer address in the process
 * @wptr_mc_addr: write-pointer address in VMID 0, or 0
 * @doorbell: dword index of its doorbell
 * @kind: enum vasic_queue_kind
 * @flags: VASIC_MES_*
 * @quanta: units of 100 ns: process quantum in the high half, gang quantum in
 *	the low half
 * @priority: global priority level
 * @gws: gws base in the high half, gws size in the low half
 */
struct vasic_cmd_mes_add_queue {
	__u64 pasid;
	__u64 page_directory;
	__u64 process_context;
	__u64 gang_context;
	__u64 mqd;
	__u64 wptr_addr;
	__u64 wptr_mc_addr;
	__u64 doorbell;
	__u64 kind;
	__u64 flags;
	__u64 quanta;
	__u64 priority;
	__u64 gws;
};

/**
 * struct vasic_cmd_mes_remove_queue - VASIC_CMD_MES_REMOVE_QUEUE
 * @doorbell: dword index, which identifies the queue
 * @gang_context: as in struct vasic_cmd_mes_add_queue
 */
struct vasic_cmd_mes_remove_queue {
	__u64 doorbell;
	__u64 gang_context;
};

/**
 * struct vasic_cmd_mes_gang - VASIC_CMD_MES_SUSPEND, VASIC_CMD_MES_RESUME
 * @gang_context: as in struct vasic_cmd_mes_add_queue; 0: every gang
 */
struct vasic_cmd_mes_gang {
	__u64 gang_context;
};

/**
 * struct vasic_cmd_mes_reset_queue - VASIC_CMD_MES_RESET_QUEUE
 * @doorbell: dword index, which identifies the queue
 */
struct vasic_cmd_mes_reset_queue {
	__u64 doorbell;
};

/**
 * union vasic_cmd - arguments of a command, by its opcode
 * @arg: all words, for those who copy or print arguments of any command
 */
union vasic_cmd {
	__u64 arg[14];
	struct vasic_cmd_reset reset;
	struct vasic_cmd_mc_setup mc_setup;
	struct vasic_cmd_ih_setup ih_setup;
	struct vasic_cmd_ring_load ring_load;
	struct vasic_cmd_ring_unload ring_unload;
	struct vasic_cmd_hqd_load hqd_load;
	struct vasic_cmd_hqd_unload hqd_unload;
	struct vasic_cmd_hqd_query hqd_query;
	struct vasic_cmd_hqd_prepare hqd_prepare;
	struct vasic_cmd_reg_write reg_write;
	struct vasic_cmd_mes_add_queue mes_add_queue;
	struct vasic_cmd_mes_remove_queue mes_remove_queue;
	struct vasic_cmd_mes_gang mes_gang;
	struct vasic_cmd_mes_reset_queue mes_reset_queue;
};

/**
 * struct vasic_command - one synchronous request of the guest (G).
 * @seq: release. Stored last, previous value + 1, then the host is kicked. The
 *	guest serialises commands and waits for struct vasic_reply.seq == @seq.
 * @opcode: enum vasic_opcode
 * @cmd: its arguments
 */
struct vasic_command {
	__u32 seq;
	__u32 opcode;
	union vasic_cmd cmd;
};

/**
 * struct vasic_reply - the answer (H).
 * @seq: release. The command that is answered.
 * @status: enum vasic_status
 * @value: as said at enum vasic_opcode, on success
 */
struct vasic_reply {
	__u32 seq;
	__u32 status;
	__u64 value[7];
};

/*
 * Registers, by dword index, 32 bits each. VASIC_CMD_REG_WRITE writes them, and
 * so do packets of rings (SDMA SRBM_WRITE, PM4 register writes), because amdgpu
 * switches VMIDs from within a ring.
 */
#define VASIC_REG_VM_PD_LO(vmid)	(0x1000 + 2 * (vmid))
#define VASIC_REG_VM_PD_HI(vmid)	(0x1001 + 2 * (vmid))
#define VASIC_REG_VM_PASID(vmid)	(0x1040 + (vmid))
#define VASIC_REG_TLB_INVALIDATE	0x1060	/* value: bit mask of VMIDs */

#endif /* VASIC_ABI_H */
