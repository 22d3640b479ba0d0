/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Sizes and offsets of every structure in vasic_abi.h, checked where this file
 * is included: in the kernel (C11) and on the host (C++20). An edit of
 * vasic_abi.h that moves a word does not compile. Includers include vasic_abi.h
 * first, because its path is not the same in both trees.
 */
#ifndef UAPI_LAYOUT_H
#define UAPI_LAYOUT_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <assert.h>
#include <stddef.h>
#endif

#define VASIC_ASSERT_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size), #type " changed size")
#define VASIC_ASSERT_AT(type, member, offset) \
	static_assert(offsetof(struct type, member) == (offset), \
		      #type "." #member " moved")

VASIC_ASSERT_SIZE(vasic_info, 640);
VASIC_ASSERT_AT(vasic_info, magic, 0);
VASIC_ASSERT_AT(vasic_info, abi_version, 8);
VASIC_ASSERT_AT(vasic_info, bar_size, 16);
VASIC_ASSERT_AT(vasic_info, vram_size, 24);
VASIC_ASSERT_AT(vasic_info, gart_size, 40);
VASIC_ASSERT_AT(vasic_info, name, 72);
VASIC_ASSERT_AT(vasic_info, gpu_index, 104);
VASIC_ASSERT_AT(vasic_info, gc_ip, 128);
VASIC_ASSERT_AT(vasic_info, xcc_count, 144);
VASIC_ASSERT_AT(vasic_info, cu_bitmap, 164);
VASIC_ASSERT_AT(vasic_info, simd_per_cu, 292);
VASIC_ASSERT_AT(vasic_info, gfx_level, 380);
VASIC_ASSERT_AT(vasic_info, doorbell_size, 404);
VASIC_ASSERT_AT(vasic_info, xgmi_segment_size, 432);
VASIC_ASSERT_AT(vasic_info, vector_l1_kib, 440);
VASIC_ASSERT_AT(vasic_info, l2_line, 480);
VASIC_ASSERT_AT(vasic_info, reserved, 484);

VASIC_ASSERT_SIZE(vasic_guest_words, 64);
VASIC_ASSERT_AT(vasic_guest_words, tlb_gen, 0);
VASIC_ASSERT_AT(vasic_guest_words, ih_rptr, 4);

VASIC_ASSERT_SIZE(vasic_host_words, 64);
VASIC_ASSERT_AT(vasic_host_words, walk_epoch, 0);
VASIC_ASSERT_AT(vasic_host_words, tlb_ack, 4);
VASIC_ASSERT_AT(vasic_host_words, state, 8);

VASIC_ASSERT_SIZE(vasic_command, 120);
VASIC_ASSERT_AT(vasic_command, opcode, 4);
VASIC_ASSERT_AT(vasic_command, cmd, 8);

/* Words of a command, counted from the first argument. */
#define VASIC_ASSERT_ARG(type, member, index) \
	VASIC_ASSERT_AT(type, member, 8 * (index))

static_assert(sizeof(union vasic_cmd) == 112, "vasic_cmd changed size");
VASIC_ASSERT_SIZE(vasic_cmd_reset, 8);
VASIC_ASSERT_ARG(vasic_cmd_reset, abi_version, 0);

VASIC_ASSERT_SIZE(vasic_cmd_mc_setup, 56);
VASIC_ASSERT_ARG(vasic_cmd_mc_setup, vram_base, 0);
VASIC_ASSERT_ARG(vasic_cmd_mc_setup, gart_base, 1);
VASIC_ASSERT_ARG(vasic_cmd_mc_setup, gart_size, 2);
VASIC_ASSERT_ARG(vasic_cmd_mc_setup, gart_table, 3);
VASIC_ASSERT_ARG(vasic_cmd_mc_setup, bar_address, 4);
VASIC_ASSERT_ARG(vasic_cmd_mc_setup, table_bits, 5);
VASIC_ASSERT_ARG(vasic_cmd_mc_setup, va_pages, 6);

VASIC_ASSERT_SIZE(vasic_cmd_ih_setup, 24);
VASIC_ASSERT_ARG(vasic_cmd_ih_setup, ring, 0);
VASIC_ASSERT_ARG(vasic_cmd_ih_setup, size, 1);
VASIC_ASSERT_ARG(vasic_cmd_ih_setup, wptr_addr, 2);

VASIC_ASSERT_SIZE(vasic_cmd_ring_load, 56);
VASIC_ASSERT_ARG(vasic_cmd_ring_load, instance, 0);
VASIC_ASSERT_ARG(vasic_cmd_ring_load, base, 1);
VASIC_ASSERT_ARG(vasic_cmd_ring_load, size, 2);
VASIC_ASSERT_ARG(vasic_cmd_ring_load, rptr_addr, 3);
VASIC_ASSERT_ARG(vasic_cmd_ring_load, doorbell, 4);
VASIC_ASSERT_ARG(vasic_cmd_ring_load, wptr_addr, 5);
VASIC_ASSERT_ARG(vasic_cmd_ring_load, kind, 6);

VASIC_ASSERT_SIZE(vasic_cmd_ring_unload, 24);
VASIC_ASSERT_ARG(vasic_cmd_ring_unload, instance, 0);
VASIC_ASSERT_ARG(vasic_cmd_ring_unload, kind, 1);
VASIC_ASSERT_ARG(vasic_cmd_ring_unload, mode, 2);

VASIC_ASSERT_SIZE(vasic_hqd, 40);
VASIC_ASSERT_ARG(vasic_hqd, kind, 0);
VASIC_ASSERT_ARG(vasic_hqd, mqd, 1);
VASIC_ASSERT_ARG(vasic_hqd, pipe, 2);
VASIC_ASSERT_ARG(vasic_hqd, slot, 3);
VASIC_ASSERT_ARG(vasic_hqd, xcc, 4);

VASIC_ASSERT_SIZE(vasic_cmd_hqd_load, 56);
VASIC_ASSERT_ARG(vasic_cmd_hqd_load, hqd, 0);
VASIC_ASSERT_ARG(vasic_cmd_hqd_load, vmid, 5);
VASIC_ASSERT_ARG(vasic_cmd_hqd_load, flags, 6);
VASIC_ASSERT_SIZE(vasic_cmd_hqd_unload, 56);
VASIC_ASSERT_ARG(vasic_cmd_hqd_unload, hqd, 0);
VASIC_ASSERT_ARG(vasic_cmd_hqd_unload, mode, 5);
VASIC_ASSERT_ARG(vasic_cmd_hqd_unload, flags, 6);
VASIC_ASSERT_SIZE(vasic_cmd_hqd_query, 40);
VASIC_ASSERT_ARG(vasic_cmd_hqd_query, hqd, 0);
VASIC_ASSERT_SIZE(vasic_cmd_hqd_prepare, 56);
VASIC_ASSERT_ARG(vasic_cmd_hqd_prepare, hqd, 0);
VASIC_ASSERT_ARG(vasic_cmd_hqd_prepare, flags, 6);

VASIC_ASSERT_SIZE(vasic_cmd_reg_write, 16);
VASIC_ASSERT_ARG(vasic_cmd_reg_write, index, 0);
VASIC_ASSERT_ARG(vasic_cmd_reg_write, value, 1);

VASIC_ASSERT_SIZE(vasic_cmd_mes_add_queue, 104);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, pasid, 0);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, page_directory, 1);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, process_context, 2);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, gang_context, 3);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, mqd, 4);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, wptr_addr, 5);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, wptr_mc_addr, 6);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, doorbell, 7);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, kind, 8);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, flags, 9);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, quanta, 10);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, priority, 11);
VASIC_ASSERT_ARG(vasic_cmd_mes_add_queue, gws, 12);
VASIC_ASSERT_SIZE(vasic_cmd_mes_remove_queue, 16);
VASIC_ASSERT_ARG(vasic_cmd_mes_remove_queue, doorbell, 0);
VASIC_ASSERT_ARG(vasic_cmd_mes_remove_queue, gang_context, 1);
VASIC_ASSERT_SIZE(vasic_cmd_mes_gang, 8);
VASIC_ASSERT_ARG(vasic_cmd_mes_gang, gang_context, 0);
VASIC_ASSERT_SIZE(vasic_cmd_mes_reset_queue, 8);
VASIC_ASSERT_ARG(vasic_cmd_mes_reset_queue, doorbell, 0);

VASIC_ASSERT_SIZE(vasic_reply, 64);
VASIC_ASSERT_AT(vasic_reply, status, 4);
VASIC_ASSERT_AT(vasic_reply, value, 8);

#endif /* UAPI_LAYOUT_H */
